// An adapter for the AI SDK: the same messages by reference, in a prompt that fits.
import { pruneMessages as pruneByKind, type ModelMessage } from "ai";
import { toWire, wireTools, withoutOrphans, type SdkMessage } from "./sdk.js";
import { Trimmer, type TrimOptions } from "./trimmer.js";

export type { SdkMessage } from "./sdk.js";
export type { TrimOptions } from "./trimmer.js";

/** The parts of a step that are read. */
export interface Step<M> {
  messages: readonly M[];
  initialMessages?: readonly M[] | undefined;
  responseMessages?: readonly M[] | undefined;
  instructions?: unknown;
}

/**
 * Returns a `prepareStep` for `generateText` and `streamText`: each step of an agent gets the messages that fit,
 * with its instructions counted. Tools are counted by `contextWindowMiddleware`.
 */
export function prepareStep(options?: TrimOptions) {
  const trimmer = new Trimmer<SdkMessage>(toWire, options);
  return <M extends SdkMessage>({ messages, initialMessages, responseMessages, instructions }: Step<M>): { messages: M[] } => {
    // The messages of a step are those that the last step returned, so the ones that left are missing there.
    const whole = new Set([...(initialMessages ?? []), ...(responseMessages ?? [])]);
    const all = messages.every((message) => whole.has(message)) ? [...whole] : [...messages];
    const before = systemMessages(instructions);
    const kept = trimmer.trim([...before, ...all]).filter((message) => !before.includes(message));
    return { messages: withoutOrphans(kept as M[], all) };
  };
}

/** Returns the instructions of a step as messages. */
function systemMessages(instructions: unknown): SdkMessage[] {
  if (typeof instructions === "string") return instructions === "" ? [] : [{ role: "system", content: instructions }];
  return (Array.isArray(instructions) ? instructions : instructions == null ? [] : [instructions]) as SdkMessage[];
}

/** Returns a middleware for `wrapLanguageModel`: each prompt of the model fits, with its tools counted. */
export function contextWindowMiddleware(options?: TrimOptions) {
  const trimmer = new Trimmer<SdkMessage>(toWire, options);
  return {
    async transformParams<P extends { prompt: readonly SdkMessage[]; tools?: readonly unknown[] | undefined }>({ params }: { params: P }): Promise<P> {
      return { ...params, prompt: withoutOrphans(trimmer.trim(params.prompt, wireTools(params.tools)), params.prompt) };
    },
  };
}

/** The options of `pruneMessages`: those of the AI SDK, and those of every adapter. */
export interface PruneOptions<M> extends TrimOptions {
  messages: readonly M[];
  reasoning?: ByKind["reasoning"];
  toolCalls?: ByKind["toolCalls"];
  emptyMessages?: ByKind["emptyMessages"];
}

type ByKind = Parameters<typeof pruneByKind>[0];

/**
 * Returns the messages that fit. It replaces `pruneMessages` of the AI SDK: after it has removed the kinds that
 * you name, a message leaves only if the budget needs it, and a call never leaves without its result.
 */
export function pruneMessages<M extends SdkMessage>({ messages, reasoning, toolCalls, emptyMessages, ...options }: PruneOptions<M>): M[] {
  const kinds = Object.entries({ reasoning, toolCalls, emptyMessages }).filter(([, value]) => value !== undefined);
  const given = { ...Object.fromEntries(kinds), messages: messages as unknown as ModelMessage[] };
  const rest = kinds.length === 0 ? messages : (pruneByKind(given) as unknown as M[]);
  const trimmer = new Trimmer<SdkMessage>(toWire, options, "list");
  try {
    return withoutOrphans(trimmer.trim(rest) as M[], rest);
  } finally {
    trimmer.free();
  }
}
