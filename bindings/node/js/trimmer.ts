import { BudgetError, Conversation, InputError, Manager, type Plan } from "context-window";
import type { Anchor, ConfigTables, WireMessage } from "./data.js";

/** Options of every adapter. */
export interface TrimOptions {
  /** The model whose rules and tokenizer count (default: an unknown model, with estimates). */
  model?: string;
  /** A manager of your own, in place of `model` and the next three. */
  manager?: Manager;
  /** Another tokenizer: an encoding that is loaded, or an estimate such as `chars/4`. */
  tokenizer?: string;
  /** A counter of your own: returns the tokens of a text. */
  counter?: (text: string) => number;
  /** Options as tables. */
  config?: ConfigTables;
  /** Maximum tokens of the messages (default: the model's prompt budget). */
  maxTokens?: number;
  /**
   * The treatment of messages that a prompt needs and that exceed the budget: `warn` (default) warns and sends
   * them, `throw` throws a `BudgetError`, `send` sends them. With `warn`, `trimMessages` and `pruneMessages`
   * return the system messages alone, because they are no prompt yet.
   */
  onOverflow?: "throw" | "warn" | "send";
  /** Is called with each plan. Do not keep it: it is freed afterwards. */
  onPlan?: (plan: Plan) => void;
}

/**
 * Reads the message of a framework at a place in its list: the same as messages of OpenAI, none if a prompt can
 * omit it. It depends only on the messages up to this place.
 */
export type ToWire<M> = (message: M, at: number, all: readonly M[]) => WireMessage[];

/** The use of the messages that fit: a prompt that a model gets next, or a list that is no prompt yet. */
export type Use = "prompt" | "list";

const KNOWN = ["model", "manager", "tokenizer", "counter", "config", "maxTokens", "onOverflow", "onPlan"];

/** The conversations that are remembered. A server has several at a time, and each keeps its own window. */
const REMEMBERED = 16;

/** A conversation of an earlier call: its messages as text, their ids, its log, and the record of its prompt. */
interface Remembered {
  texts: string[];
  ids: string[][];
  log: Conversation;
  anchor: Anchor | undefined;
  /** The fingerprint of the first prompt whose messages all later ones repeat. */
  epoch: string;
}

/** A row of a plan, by the keys that are read. */
interface Row {
  id: string;
  kind: string;
  role: string;
  /** The id of the message whose call lacks a result. */
  of?: string;
}

/** The messages that fit, their tokens, and the fingerprints of the prompt and of the first one that it repeats. */
export interface Fitting<M> {
  messages: M[];
  tokens: number;
  fingerprint: string;
  epoch: string;
  isOverflow: boolean;
}

/** Chooses the messages of a prompt, and returns the objects that it was given. */
export class Trimmer<M> {
  readonly #toWire: ToWire<M>;
  readonly #options: TrimOptions;
  readonly #manager: Manager;
  readonly #use: Use;
  /** The last conversations, the newest first. */
  #recent: Remembered[] = [];

  constructor(toWire: ToWire<M>, given: TrimOptions = {}, use: Use = "prompt") {
    // A null counts as absent, as everywhere.
    const options = given ?? {};
    const unknown = Object.keys(options).find((key) => !KNOWN.includes(key));
    if (unknown !== undefined) {
      throw new InputError("Input", `options: unknown key \`${unknown}\`; expected one of ${KNOWN.join(", ")}`);
    }
    if (options.maxTokens !== undefined && !(Number.isSafeInteger(options.maxTokens) && options.maxTokens > 0)) {
      throw new InputError("Input", `maxTokens: ${options.maxTokens}; expected a number of tokens, 1 or more`);
    }
    if (options.onOverflow !== undefined && !["throw", "warn", "send"].includes(options.onOverflow)) {
      throw new InputError("Input", `onOverflow: ${String(options.onOverflow)}; expected throw, warn or send`);
    }
    if (options.onPlan !== undefined && typeof options.onPlan !== "function") {
      throw new InputError("Input", `onPlan: ${typeof options.onPlan}; expected a function of a plan`);
    }
    if (options.manager !== undefined) {
      const beside = (["model", "tokenizer", "counter", "config"] as const).find((key) => options[key] !== undefined);
      if (!(options.manager instanceof Manager)) throw new InputError("Input", "manager: expected an object of the class Manager");
      if (beside !== undefined) throw new InputError("Input", `${beside}: expected nothing beside manager, which has its own`);
    }
    const { model = "default", counter, config = {} } = options;
    // The default encoding need not be loaded, and an unknown model is estimated anyway.
    const tokenizer = options.tokenizer ?? (options.model === undefined ? "chars/4" : undefined);
    this.#toWire = toWire;
    this.#use = use;
    this.#options = options;
    // A provider refuses a call without a result, and one that is added is no object of the framework. In a list, such
    // a call may still wait for an approval.
    const repair = use === "list" ? "synthesize" : "drop";
    const own = { ...config, conversation: { repair, tool_results: "keep", ...config.conversation } } as ConfigTables;
    this.#manager = options.manager ?? new Manager(model, {
      config: own,
      ...(tokenizer === undefined ? {} : { tokenizer }),
      ...(counter === undefined ? {} : { counter }),
    });
  }

  /** Returns the messages that fit, in their order. Calls and their results stay together. */
  trim(messages: readonly M[], tools?: unknown[]): M[] {
    return this.fit(messages, tools).messages;
  }

  /** Returns true if all messages fit. */
  fitsWhole(messages: readonly M[]): boolean {
    const { messages: kept, isOverflow } = this.fit(messages, undefined, undefined, true);
    return kept.length === messages.length && !isOverflow;
  }

  /**
   * Returns the messages that fit, and figures of their prompt. `budget` overrides `maxTokens`. A trial is not
   * reported, and sends all that is needed.
   */
  fit(messages: readonly M[], tools?: unknown[], budget?: number, isTrial = false): Fitting<M> {
    const current = this.#logged(messages);
    const { log, ids, anchor } = current;
    if (log.length === 0) return { messages: [...messages], tokens: 0, fingerprint: "", epoch: "", isOverflow: false };
    const { onPlan, onOverflow = "warn" } = isTrial ? ({ onOverflow: "send" } as TrimOptions) : this.#options;
    const maxTokens = budget ?? this.#options.maxTokens;
    const plan = this.#manager.plan(log, {
      ...(maxTokens === undefined ? {} : { limits: { prompt_budget: maxTokens } }),
      ...(tools === undefined ? {} : { tools }),
      ...(anchor === undefined ? {} : { previous: anchor }),
    });
    try {
      onPlan?.(plan);
      current.anchor = plan.anchor();
      const repeated = plan.repeated as { tokens: number; of: number } | undefined;
      if (repeated === undefined || repeated.tokens < repeated.of) current.epoch = plan.fingerprint;
      const figures = { tokens: plan.tokens, fingerprint: plan.fingerprint, epoch: current.epoch, isOverflow: plan.isOverflow };
      const included = this.#returned(plan.included as Row[]);
      // The last one is the message itself; those before it are results that came with it.
      const fitting = messages.filter((_, at) => ids[at]!.length === 0 || included.has(ids[at]!.at(-1)!));
      // A prompt of no messages is none, even if the question is empty.
      const kept = fitting.length === 0 && !plan.isOverflow ? [...messages] : fitting;
      if (!plan.isOverflow || onOverflow === "send") return { messages: kept, ...figures };
      const text = `the messages that a prompt needs have ${plan.tokens} tokens; expected at most ${plan.budget}`;
      if (onOverflow === "throw") throw new BudgetError("Budget", text);
      console.warn(`context-window: ${text}; ${this.#use === "list" ? "only system messages are returned" : "they are sent nevertheless"}`);
      // An agent that lost its running call would call the tool again, without end.
      if (this.#use === "prompt") return { messages: kept, ...figures };
      const isSystem = (message: M) => this.#toWire(message, 0, [message]).some((wire) => (wire as { role?: string }).role === "system");
      return { messages: messages.filter(isSystem), ...figures };
    } finally {
      plan.free();
    }
  }

  /** Returns the conversation of these messages. One that continues a remembered one is continued. */
  #logged(messages: readonly M[]): Remembered {
    const wires = messages.map((message, at) => this.#read(message, at, messages));
    const texts = wires.map((wire) => JSON.stringify(wire));
    const continued = ({ texts: own }: Remembered) => own.length <= texts.length && own.every((text, at) => text === texts[at]);
    // The longest one, because a conversation may begin like another one.
    const [last] = this.#recent.filter(continued).sort((a, b) => b.texts.length - a.texts.length);
    const current = last ?? { texts: [], ids: [], log: new Conversation(), anchor: undefined, epoch: "" };
    // Each message is kept as soon as it is in the log, because a later one may be refused.
    this.#recent = [current, ...this.#recent.filter((one) => one !== current)];
    for (const old of this.#recent.splice(REMEMBERED)) old.log.free();
    for (let at = current.ids.length; at < wires.length; at++) {
      const wire = wires[at]!;
      current.ids.push(wire.length === 0 ? [] : named(at, () => current.log.push(wire)));
      current.texts.push(texts[at]!);
    }
    return current;
  }

  /**
   * Returns the ids of the rows that are returned. A result that the planner adds is no object of the framework,
   * so its call is returned only if its result may still come: at the end of a list.
   */
  #returned(rows: readonly Row[]): Set<string> {
    const ids = new Set(rows.map((row) => row.id));
    for (const { kind, of } of rows) {
      if (kind !== "placeholder_result") continue;
      const start = rows.findIndex((row) => row.id === of);
      let end = start + 1;
      while (rows[end]?.role === "tool") end++;
      if (this.#use === "list" && end === rows.length) continue;
      for (const row of rows.slice(start, end)) ids.delete(row.id);
    }
    return ids;
  }

  #read(message: M, at: number, all: readonly M[]): WireMessage[] {
    try {
      return this.#toWire(message, at, all);
    } catch (error) {
      throw new InputError("Input", `messages[${at}]: ${(error as Error).message}; expected a message of the framework`);
    }
  }

  /** Gives the memory back. */
  free(): void {
    for (const { log } of this.#recent) log.free();
    this.#recent = [];
    if (this.#options.manager === undefined) this.#manager.free();
  }
}

/** Names the message of an error by its place in the list: each is read alone. */
function named<T>(at: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const { message } = error as Error;
    throw message.startsWith("messages[0]") ? new InputError("Input", `messages[${at}]${message.slice("messages[0]".length)}`) : error;
  }
}
