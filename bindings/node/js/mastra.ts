// An adapter for Mastra: a processor that gives the model the messages that fit.
import { toWire, wireTools, withoutOrphans, type SdkMessage } from "./sdk.js";
import { Trimmer, type TrimOptions } from "./trimmer.js";

export type { SdkMessage } from "./sdk.js";
export type { TrimOptions } from "./trimmer.js";

/** A tool of Mastra, by the parts that are counted. */
export interface MastraTool {
  type?: string | undefined;
  description?: string | undefined;
  /** The schema of its arguments, as JSON under `jsonSchema`. */
  parameters?: unknown;
}

/** The key under which the tools of a step are kept for its prompt. */
const TOOLS = "context-window:tools";

/**
 * A processor for `inputProcessors` of an agent. Each step of a model gets the messages that fit, with its tools
 * counted. Memory and stored messages keep everything. Put it last, because it counts the prompt as it is sent.
 */
export class ContextWindowProcessor {
  readonly id = "context-window";
  readonly name = "Context window";
  readonly #trimmer: Trimmer<SdkMessage>;

  constructor(options?: TrimOptions) {
    this.#trimmer = new Trimmer<SdkMessage>(toWire, options);
  }

  /** Keeps the tools of a step, because its prompt has none. */
  processInputStep({ tools, activeTools, state }: { tools?: Record<string, unknown>; activeTools?: string[]; state: Record<string, unknown> }): undefined {
    const active = Object.entries(tools ?? {}).filter(([name]) => activeTools === undefined || activeTools.includes(name));
    state[TOOLS] = active.map(([name, given]) => {
      const { type = "function", description, parameters } = given as MastraTool;
      const inputSchema = (parameters as { jsonSchema?: unknown } | undefined)?.jsonSchema ?? parameters;
      return { type, name, description, inputSchema };
    });
  }

  /** Returns the prompt with the messages that fit. */
  processLLMRequest<M extends SdkMessage>({ prompt, state }: { prompt: M[]; state?: Record<string, unknown> }): { prompt: M[] } {
    const kept = this.#trimmer.trim(prompt, wireTools(state?.[TOOLS] as unknown[] | undefined)) as M[];
    return { prompt: withoutOrphans(kept, prompt) };
  }

  /** Gives the memory back. */
  free(): void {
    this.#trimmer.free();
  }
}
