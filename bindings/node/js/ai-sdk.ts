// An adapter for the AI SDK: the same messages by reference, in a prompt that fits.
import { toWire, wireTools, type SdkMessage } from "./sdk.js";
import { Trimmer, type TrimOptions } from "./trimmer.js";

export type { SdkMessage } from "./sdk.js";
export type { TrimOptions } from "./trimmer.js";

/**
 * Returns a `prepareStep` for `generateText` and `streamText`: each step of an agent gets the messages that fit.
 */
export function prepareStep(options?: TrimOptions) {
  const trimmer = new Trimmer<SdkMessage>(toWire, options);
  return <M extends SdkMessage>({ messages }: { messages: readonly M[] }): { messages: M[] } => ({
    messages: trimmer.trim(messages) as M[],
  });
}

/** Returns a middleware for `wrapLanguageModel`: each prompt of the model fits, with its tools counted. */
export function contextWindowMiddleware(options?: TrimOptions) {
  const trimmer = new Trimmer<SdkMessage>(toWire, options);
  return {
    async transformParams<P extends { prompt: readonly SdkMessage[]; tools?: readonly unknown[] | undefined }>({ params }: { params: P }): Promise<P> {
      return { ...params, prompt: trimmer.trim(params.prompt, wireTools(params.tools)) };
    },
  };
}

/**
 * Returns the messages that fit. It replaces `pruneMessages` of the AI SDK, which removes by kind: here a
 * message leaves only if the budget needs it, and a call never leaves without its result.
 */
export function pruneMessages<M extends SdkMessage>({ messages, ...options }: TrimOptions & { messages: readonly M[] }): M[] {
  const trimmer = new Trimmer<SdkMessage>(toWire, options, true);
  try {
    return trimmer.trim(messages) as M[];
  } finally {
    trimmer.free();
  }
}
