/** The base class of all errors of this package. */
export class ContextWindowError extends Error {
  /** The kind of the error, for example `Budget` or `Input`. */
  readonly kind: string;
  /** The key, id or file that the error is about, if it names one. */
  readonly path: string | undefined;
  /** The expected value, or a way out, if the error names one. */
  readonly hint: string | undefined;

  constructor(kind: string, message: string) {
    super(message);
    this.name = new.target.name;
    this.kind = kind;
    // The place comes first: keys, numbers in brackets, and the line of a text.
    // Tables of options were written as a text that the caller has never seen.
    this.path = /^(?:config:\d+:\d+: )?([\w.[\]"#/-]+(?::\d+)*): /.exec(message)?.[1];
    // Below the first line is the place in a text of options.
    const line = message.split("\n", 1)[0] ?? "";
    const hint = line.lastIndexOf("; ");
    this.hint = hint < 0 ? undefined : line.slice(hint + 2);
  }
}

/** The limits leave no tokens for a prompt. */
export class BudgetError extends ContextWindowError {}
/** An option is unknown, of the wrong type or out of range. */
export class ConfigError extends ContextWindowError {}
/** A token counter failed or is not loaded. */
export class CountError extends ContextWindowError {}
/** A message, document, request or session is invalid. */
export class InputError extends ContextWindowError {}
/** No item has the given id. */
export class NotFoundError extends ContextWindowError {}
/** A compaction failed; nothing was archived. */
export class CompactionError extends ContextWindowError {}
/** The reply to a summary request contains no summary. */
export class NoSummaryError extends CompactionError {}
/** The conversation was compacted or rewound since the request was made. */
export class StaleError extends CompactionError {}
/** The context would not be smaller with this summary. */
export class NotSmallerError extends CompactionError {}
/** There are no messages to archive. */
export class NothingToCompactError extends CompactionError {}

const CLASSES: Record<string, new (kind: string, message: string) => ContextWindowError> = {
  Budget: BudgetError,
  Config: ConfigError,
  Count: CountError,
  Input: InputError,
  NotFound: NotFoundError,
  NoSummary: NoSummaryError,
  Stale: StaleError,
  NotSmaller: NotSmallerError,
  NothingToCompact: NothingToCompactError,
};

/** Creates an error of the class for a kind. */
export function createError(kind: string, message: string): ContextWindowError {
  return new (CLASSES[kind] ?? ContextWindowError)(kind, message);
}
