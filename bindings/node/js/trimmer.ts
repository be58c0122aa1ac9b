import { BudgetError, InputError } from "context-window";
import { Conversation, Manager, type Plan } from "context-window";
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
   * What happens if the messages that a prompt needs exceed the budget. `warn` (default) writes a warning and
   * returns the system messages alone, `throw` throws a `BudgetError`, `send` returns all that is needed.
   */
  onOverflow?: "throw" | "warn" | "send";
  /** Is called with each plan. Do not keep it: it is freed afterwards. */
  onPlan?: (plan: Plan) => void;
}

/** Reads one message of a framework: the same as messages of OpenAI, none if a prompt can omit it. */
export type ToWire<M> = (message: M) => WireMessage[];

const KNOWN = ["model", "manager", "tokenizer", "counter", "config", "maxTokens", "onOverflow", "onPlan"];

/** Chooses the messages of a prompt, and returns the objects that it was given. */
export class Trimmer<M> {
  readonly #toWire: ToWire<M>;
  readonly #options: TrimOptions;
  readonly #manager: Manager;
  /** The messages of the last call as text, their ids, and the record of its prompt. */
  #last: { texts: string[]; ids: string[][]; log: Conversation; anchor: Anchor } | undefined;

  constructor(toWire: ToWire<M>, options: TrimOptions = {}) {
    const unknown = Object.keys(options).find((key) => !KNOWN.includes(key));
    if (unknown !== undefined) {
      throw new InputError("Input", `options: unknown key \`${unknown}\`; expected one of ${KNOWN.join(", ")}`);
    }
    if (options.maxTokens !== undefined && !(Number.isSafeInteger(options.maxTokens) && options.maxTokens > 0)) {
      throw new InputError("Input", `maxTokens: ${options.maxTokens}; expected a number of tokens, 1 or more`);
    }
    const { model = "default", counter, config = {} } = options;
    // The default encoding need not be loaded, and an unknown model is estimated anyway.
    const tokenizer = options.tokenizer ?? (options.model === undefined ? "chars/4" : undefined);
    this.#toWire = toWire;
    this.#options = options;
    // A call without a result would get one, which is no object of the framework.
    const own = { ...config, conversation: { repair: "drop", tool_results: "keep", ...config.conversation } } as ConfigTables;
    this.#manager = options.manager ?? new Manager(model, {
      config: own,
      ...(tokenizer === undefined ? {} : { tokenizer }),
      ...(counter === undefined ? {} : { counter }),
    });
  }

  /** Returns the messages that fit, in their order. Calls and their results stay together. */
  trim(messages: readonly M[], tools?: unknown[]): M[] {
    const { log, ids, texts, anchor } = this.#logged(messages);
    if (log.length === 0 && ids.every((own) => own.length === 0)) return [...messages];
    const { maxTokens, onPlan, onOverflow = "warn" } = this.#options;
    const plan = this.#manager.plan(log, {
      ...(maxTokens === undefined ? {} : { limits: { prompt_budget: maxTokens } }),
      ...(tools === undefined ? {} : { tools }),
      ...(anchor === undefined ? {} : { previous: anchor }),
    });
    try {
      onPlan?.(plan);
      this.#last = { texts, ids, log, anchor: plan.anchor() };
      const included = new Set(plan.included.map((row) => row.id));
      const kept = messages.filter((_, at) => ids[at]!.length === 0 || ids[at]!.some((id) => included.has(id)));
      if (!plan.isOverflow || onOverflow === "send") return kept;
      const text = `the messages that a prompt needs have ${plan.tokens} tokens; expected at most ${plan.budget}`;
      if (onOverflow === "throw") throw new BudgetError("Budget", text);
      console.warn(`context-window: ${text}: only system messages are returned`);
      return messages.filter((message) => this.#toWire(message).some((wire) => (wire as { role?: string }).role === "system"));
    } finally {
      plan.free();
    }
  }

  /** Returns the log of these messages. One that continues the last one is continued. */
  #logged(messages: readonly M[]) {
    const wires = messages.map((message) => this.#toWire(message));
    const texts = wires.map((wire) => JSON.stringify(wire));
    const last = this.#last;
    const continues = last !== undefined && last.texts.length <= texts.length && last.texts.every((text, at) => text === texts[at]);
    if (last !== undefined && !continues) last.log.free();
    const log = continues ? last.log : new Conversation();
    const ids = continues ? [...last.ids] : [];
    for (const wire of wires.slice(ids.length)) ids.push(wire.length === 0 ? [] : log.push(wire));
    return { log, ids, texts, anchor: continues ? last.anchor : undefined };
  }

  /** Gives the memory back. */
  free(): void {
    this.#last?.log.free();
    this.#last = undefined;
    if (this.#options.manager === undefined) this.#manager.free();
  }
}
