// An adapter for LangChain.js: the same message objects, in a prompt that fits.
import { RunnableLambda } from "@langchain/core/runnables";
import { convertToOpenAITool, isLangChainTool } from "@langchain/core/utils/function_calling";
import { InputError } from "context-window";
import { Trimmer, type TrimOptions } from "./trimmer.js";
import type { WireMessage } from "./data.js";

export type { TrimOptions } from "./trimmer.js";

interface ToolCall {
  id?: string | undefined;
  name: string;
  args: unknown;
}

/** A message of LangChain, by the parts that are read. */
export interface LangChainMessage {
  getType(): string;
  content: unknown;
}

const ROLES: Record<string, string> = { human: "user", ai: "assistant", system: "system", developer: "developer", tool: "tool", function: "tool" };

/** Returns a message of LangChain as a message of OpenAI. */
function toWire(message: LangChainMessage): WireMessage[] {
  const { content } = message;
  const { tool_calls, tool_call_id, role: generic } = message as { tool_calls?: ToolCall[]; tool_call_id?: string; role?: string };
  const role = ROLES[message.getType()] ?? generic ?? "user";
  // A mark of LangGraph that a message is removed from the state.
  if (message.getType() === "remove") return [];
  const calls = (tool_calls ?? []).map((call) => ({
    id: call.id ?? "",
    type: "function",
    function: { name: call.name, arguments: JSON.stringify(call.args ?? {}) },
  }));
  const parts = Array.isArray(content) ? content.filter((part) => part?.type !== "tool_use").map(contentPart) : content;
  return [{ role, content: parts, ...(calls.length === 0 ? {} : { tool_calls: calls }), ...(role === "tool" ? { tool_call_id } : {}) }];
}

function contentPart(part: unknown): unknown {
  const { type } = (part ?? {}) as { type?: string };
  return typeof part === "string" || type === "text" || type === "image_url" ? part : { type: "text", text: JSON.stringify(part) };
}

/** The options of `trimMessages`: those of LangChain that a plan has a meaning for, and those of every adapter. */
export interface TrimMessagesOptions extends TrimOptions {
  maxTokens: number;
  /** Counts the tokens of messages, as in LangChain. It gets one message at a time, with a text alone. */
  tokenCounter?: (text: string) => number;
  /** Only `last` has a meaning: the newest turns stay. */
  strategy?: "last";
  /** System messages always stay, so only true is accepted. */
  includeSystem?: true;
}

/**
 * Returns the messages that fit. It replaces `trimMessages` of LangChain: the live question and the system
 * messages stay, calls and their results stay together, and the window begins with a message of the user.
 * Without messages, returns a runnable.
 */
export function trimMessages<M extends LangChainMessage>(messages: readonly M[], options: TrimMessagesOptions): M[];
export function trimMessages<M extends LangChainMessage>(options: TrimMessagesOptions): RunnableLambda<M[], M[]>;
export function trimMessages<M extends LangChainMessage>(first: readonly M[] | TrimMessagesOptions, options?: TrimMessagesOptions): M[] | RunnableLambda<M[], M[]> {
  const trimmer = trimmerOf((options ?? first) as TrimMessagesOptions);
  if (options === undefined) return RunnableLambda.from((messages: M[]) => trimmer.trim(messages) as M[]);
  try {
    return trimmer.trim(first as readonly M[]) as M[];
  } finally {
    trimmer.free();
  }
}

function trimmerOf({ tokenCounter, strategy = "last", includeSystem = true, ...options }: TrimMessagesOptions): Trimmer<LangChainMessage> {
  if (strategy !== "last") throw new InputError("Input", `strategy: ${strategy}; expected last, because the live question has to stay`);
  if (includeSystem !== true) throw new InputError("Input", "includeSystem: false; expected true, because system messages always stay");
  if (options.maxTokens === undefined) throw new InputError("Input", "maxTokens: nothing; expected a number of tokens");
  return new Trimmer<LangChainMessage>(toWire, tokenCounter === undefined ? options : { ...options, counter: tokenCounter }, true);
}

/** The parts of a model call of an agent that are read. */
export interface ModelCall {
  messages: readonly LangChainMessage[];
  /** The system message, which the messages do not have. */
  systemMessage?: LangChainMessage | undefined;
  tools?: readonly unknown[] | undefined;
}

/**
 * Returns a middleware for `createAgent`: each prompt of the model fits, with its system message and its tools
 * counted. The state of the agent keeps every message.
 */
export function contextWindowMiddleware(options?: TrimOptions) {
  const trimmer = new Trimmer<LangChainMessage>(toWire, options);
  return {
    name: "contextWindow",
    wrapModelCall<R extends ModelCall, A>(request: R, handler: (request: R) => A): A {
      const { messages, systemMessage: system, tools } = request;
      const before = system !== undefined && String(system.content ?? "") !== "" ? [system] : [];
      const kept = trimmer.trim([...before, ...messages], wireTools(tools));
      return handler({ ...request, messages: kept.filter((message) => message !== system) });
    },
  };
}

/** Returns the functions of a call as OpenAI declares them. Tools of a provider have no definition to count. */
function wireTools(tools: readonly unknown[] | undefined): unknown[] {
  return (tools ?? []).filter((tool) => isLangChainTool(tool)).map((tool) => convertToOpenAITool(tool as Parameters<typeof convertToOpenAITool>[0]));
}
