// An adapter for LangChain.js: the same message objects, in a prompt that fits.
import { trimMessages as trimAsLangChain, type BaseMessage } from "@langchain/core/messages";
import { RunnableLambda, type Runnable } from "@langchain/core/runnables";
import { convertToOpenAITool, isLangChainTool } from "@langchain/core/utils/function_calling";
import { InputError } from "context-window";
import { filePart } from "./parts.js";
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
  const { tool_calls, invalid_tool_calls, tool_call_id, role: generic } = message as {
    tool_calls?: ToolCall[];
    invalid_tool_calls?: ToolCall[];
    tool_call_id?: string;
    role?: string;
  };
  const role = ROLES[message.getType()] ?? generic ?? "user";
  // A mark of LangGraph that a message is removed from the state.
  if (message.getType() === "remove") return [];
  // An invalid call has a result, too: its error.
  const invalid = (invalid_tool_calls ?? []).filter(({ id }) => id !== undefined);
  const calls = [...(tool_calls ?? []), ...invalid].map((call) => ({
    id: call.id ?? "",
    type: "function",
    function: { name: call.name || "unknown", arguments: JSON.stringify(call.args ?? {}) },
  }));
  const parts = Array.isArray(content) ? content.filter((part) => !CALLS.includes(part?.type)).map(contentPart) : content;
  return [{ role, content: parts, ...(calls.length === 0 ? {} : { tool_calls: calls }), ...(role === "tool" ? { tool_call_id } : {}) }];
}

/** The blocks of calls, which a message has a second time as its calls. */
const CALLS: unknown[] = ["tool_use", "tool_call", "invalid_tool_call", "functionCall"];

function contentPart(part: unknown): unknown {
  const block = (part ?? {}) as { type?: string; [key: string]: unknown };
  if (typeof part === "string" || block.type === "text" || block.type === "image_url") return part;
  // Blocks of LangChain have their data at the top, those of Anthropic in a source.
  const { data, url, mimeType, mime_type, media_type } = { ...block, ...((block.source ?? {}) as Record<string, unknown>) } as Record<string, unknown>;
  if (data === undefined && url === undefined) return { type: "text", text: JSON.stringify(part) };
  const mediaType = String(mimeType ?? mime_type ?? media_type ?? (block.type === "image" ? "image/png" : ""));
  return filePart({ data: data ?? { type: "url", url }, mediaType, filename: block.title as string | undefined });
}

type LangChainOptions = Parameters<typeof trimAsLangChain>[1];

/** The options of `trimMessages`: those of LangChain, and those of every adapter. */
export interface TrimMessagesOptions extends TrimOptions, Omit<Partial<LangChainOptions>, "maxTokens"> {
  maxTokens: number;
}

/** The options that have a meaning only for LangChain's own function. */
const THEIRS = ["tokenCounter", "allowPartial", "textSplitter"] as const;

/**
 * Returns the messages that fit. It replaces `trimMessages` of LangChain: the live question stays, calls and
 * their results stay together, and the least important messages leave in place of the oldest. `startOn`, `endOn`
 * and `includeSystem` have the same meaning. With `strategy: "first"`, `allowPartial`, `textSplitter` or a
 * `tokenCounter`, LangChain's own function trims. Without messages, returns a runnable.
 */
export function trimMessages<M extends BaseMessage>(messages: M[], options: TrimMessagesOptions): Promise<M[]>;
export function trimMessages(options: TrimMessagesOptions): Runnable<BaseMessage[], BaseMessage[]>;
export function trimMessages<M extends BaseMessage>(first: M[] | TrimMessagesOptions, options?: TrimMessagesOptions): Promise<M[]> | Runnable<BaseMessage[], BaseMessage[]> {
  const { strategy, startOn, endOn, includeSystem, tokenCounter, allowPartial, textSplitter, ...own } = options ?? (first as TrimMessagesOptions);
  if (own.maxTokens === undefined) throw new InputError("Input", "maxTokens: nothing; expected a number of tokens");
  const theirs = { strategy, startOn, endOn, includeSystem, tokenCounter, allowPartial, textSplitter };
  if (strategy === "first" || THEIRS.some((key) => Boolean(theirs[key]))) {
    if (tokenCounter === undefined) throw new InputError("Input", "tokenCounter: nothing; expected a function of messages or a model, which LangChain needs for these options");
    const needed = { ...withoutUndefined(theirs), tokenCounter, maxTokens: own.maxTokens };
    return options === undefined ? trimAsLangChain(needed) : (trimAsLangChain(first as M[], needed) as Promise<M[]>);
  }
  if (strategy !== undefined && strategy !== "last") throw new InputError("Input", `strategy: ${String(strategy)}; expected first or last`);
  const kinds = { startOn: several(startOn), endOn: several(endOn), includeSystem: includeSystem === true };
  const trimmer = new Trimmer<LangChainMessage>(toWire, own, "list");
  if (options === undefined) return RunnableLambda.from(async (messages: BaseMessage[]) => trimmed(trimmer, messages, kinds));
  return (async () => {
    try {
      return trimmed(trimmer, first as M[], kinds);
    } finally {
      trimmer.free();
    }
  })();
}

interface Kinds {
  startOn: readonly unknown[];
  endOn: readonly unknown[];
  includeSystem: boolean;
}

function trimmed<M extends BaseMessage>(trimmer: Trimmer<LangChainMessage>, messages: readonly M[], { startOn, endOn, includeSystem }: Kinds): M[] {
  let end = messages.length;
  while (endOn.length > 0 && end > 0 && !isOneOf(messages[end - 1]!, endOn)) end--;
  const candidates = messages.slice(0, end);
  // Without `includeSystem`, the system message leaves first, as the oldest one.
  const others = candidates.filter((message) => message.getType() !== "system");
  const fitsWhole = includeSystem || others.length === candidates.length || trimmer.fitsWhole(candidates);
  const kept = trimmer.trim(fitsWhole ? candidates : others) as M[];
  if (startOn.length === 0) return kept;
  const isHead = (message: M) => includeSystem && message.getType() === "system";
  const start = kept.findIndex((message) => isOneOf(message, startOn));
  return kept.filter((message, at) => isHead(message) || (start >= 0 && at >= start));
}

/** Returns true if a message is of one of these types, given by name or by class. */
function isOneOf(message: BaseMessage, kinds: readonly unknown[]): boolean {
  return kinds.some((kind) => (typeof kind === "string" ? message.getType() === kind : message instanceof (kind as new () => unknown)));
}

function several<T>(given: T | T[] | undefined): T[] {
  return given === undefined ? [] : Array.isArray(given) ? given : [given];
}

function withoutUndefined<T extends object>(given: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as { [K in keyof T]: Exclude<T[K], undefined> };
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
