// Messages and tools of the AI SDK as those of OpenAI. Mastra sends the same prompts.
import type { WireMessage } from "./data.js";
import { filePart } from "./parts.js";

/** A part of a message. */
interface Part {
  type: string;
  [key: string]: unknown;
}

/** A message of the AI SDK: `ModelMessage`, or a message of a prompt of a language model. */
export interface SdkMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: string | readonly unknown[];
}

/**
 * Returns the message of the AI SDK at a place as messages of OpenAI. A call that the provider executes is one of OpenAI only if its result is in a later message: otherwise both are parts of one.
 */
export function toWire(message: SdkMessage, at: number, all: readonly SdkMessage[]): WireMessage[] {
  const { role, content } = message;
  if (typeof content === "string") return [{ role, content }];
  const parts = content as readonly Part[];
  // It costs nothing, and the function that made it empty was asked to keep it.
  if (parts.length === 0) return [];
  const results = parts.filter((part) => part.type === "tool-result" && isApart(part, at, all));
  const wires: WireMessage[] = results.map((part) => ({ role: "tool", tool_call_id: part.toolCallId, content: outputContent(part.output) }));
  if (role === "tool") return wires;
  const calls = parts.filter((part) => isCall(part, parts));
  const texts = parts.filter((part) => !calls.includes(part) && !results.includes(part) && part.type !== "tool-approval-request");
  const tool_calls = calls.map((part) => ({
    id: part.toolCallId,
    type: "function",
    function: { name: part.toolName, arguments: JSON.stringify(part.input ?? {}) },
  }));
  if (results.length > 0 && texts.length === 0 && calls.length === 0) return wires;
  return [...wires, { role, content: texts.map(contentPart), ...(tool_calls.length === 0 ? {} : { tool_calls }) }];
}

/** Returns true if a part is a call whose result is in another message. */
function isCall(part: Part, beside: readonly Part[]): boolean {
  const isSame = (other: Part) => other.toolCallId === part.toolCallId;
  if (part.type !== "tool-call") return false;
  return part.providerExecuted !== true || !beside.some((other) => ["tool-result", "tool-approval-request"].includes(other.type) && isSame(other));
}

/** Returns true if the call of a result is one of OpenAI. */
function isApart(result: Part, at: number, all: readonly SdkMessage[]): boolean {
  const isItsCall = (part: Part) => part.type === "tool-call" && part.toolCallId === result.toolCallId;
  for (let place = at; place >= 0; place--) {
    const { content } = all[place]!;
    const beside = typeof content === "string" ? [] : (content as readonly Part[]);
    const call = beside.find(isItsCall);
    if (call !== undefined) return isCall(call, beside);
  }
  // Without a call, the planner says so.
  return all[at]!.role === "tool";
}

/**
 * Returns the messages without those whose call or approval request has left. Such parts are no messages of
 * their own, so the planner does not know them.
 */
export function withoutOrphans<M extends SdkMessage>(kept: M[], all: readonly M[]): M[] {
  const ids = (messages: readonly M[], wanted: string[], key: string) =>
    messages.flatMap(({ content }) => (typeof content === "string" ? [] : (content as readonly Part[]))).filter(({ type }) => wanted.includes(type)).map((part) => part[key]);
  const left = (key: string, type: string) => {
    const present = new Set(ids(kept, [type], key));
    return new Set(ids(all, [type], key).filter((id) => !present.has(id)));
  };
  const [calls, requests] = [left("toolCallId", "tool-call"), left("approvalId", "tool-approval-request")];
  if (calls.size === 0 && requests.size === 0) return kept;
  const isOrphan = (part: Part) =>
    (part.type === "tool-result" && calls.has(part.toolCallId)) || (part.type === "tool-approval-response" && requests.has(part.approvalId));
  const rest = kept.filter(({ content }) => typeof content === "string" || !(content as readonly Part[]).some(isOrphan));
  // Another message may have lost its call by this.
  return rest.length === kept.length ? kept : withoutOrphans(rest, all);
}

function contentPart(part: Part): object {
  switch (part.type) {
    case "text":
    case "reasoning":
      return { type: "text", text: part.text };
    case "image":
      return filePart({ data: part.image ?? part.data, mediaType: String(part.mediaType ?? "image/png") });
    case "file":
      return filePart({ data: part.data, mediaType: String(part.mediaType ?? ""), filename: part.filename as string | undefined });
    default:
      // Counted as its text: a call of a provider's own tool, an approval, a source.
      return { type: "text", text: JSON.stringify(part) };
  }
}

/** Returns the content of a result: its text, or its parts with files. */
function outputContent(output: unknown): unknown {
  const value = (output as { value?: unknown } | null | undefined)?.value ?? output;
  if (typeof value === "string") return value;
  const parts = (output as { type?: string } | null | undefined)?.type === "content" && Array.isArray(value) ? (value as Part[]) : undefined;
  return parts === undefined ? (JSON.stringify(value) ?? "") : parts.map(resultPart);
}

function resultPart(part: Part): object {
  const mediaType = String(part.mediaType ?? (part.type.startsWith("image") ? "image/png" : ""));
  if (part.type === "text") return { type: "text", text: part.text };
  if (part.data !== undefined || part.url !== undefined) return filePart({ data: part.data ?? { type: "url", url: part.url }, mediaType, filename: part.filename as string | undefined });
  return { type: "text", text: JSON.stringify(part) };
}

/** Returns the functions of a prompt as OpenAI declares them. Tools of a provider have no definition to count. */
export function wireTools(tools: readonly unknown[] | undefined): unknown[] {
  const functions = ((tools ?? []) as Part[]).filter((tool) => tool.type === "function");
  return functions.map(({ name, description, inputSchema }) => ({ type: "function", function: { name, description, parameters: inputSchema } }));
}
