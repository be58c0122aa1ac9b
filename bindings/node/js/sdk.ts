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
 * Returns the message of the AI SDK at a place as messages of OpenAI. A call that the provider executes is one of
 * OpenAI only if its result is in a later message: otherwise both are parts of one.
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
    const beside = partsOf(all[place]!);
    const call = beside.find(isItsCall);
    if (call !== undefined) return isCall(call, beside);
  }
  // Without a call, the planner says so.
  return all[at]!.role === "tool";
}

/**
 * Returns the messages with the calls of all results and the requests of all approvals: such parts may be no
 * messages of their own, so the planner does not know them. A message that lost its call leaves, too. In the
 * current turn the call comes back with its results, because an agent cannot go on without its running call.
 */
export function withoutOrphans<M extends SdkMessage>(kept: readonly M[], all: readonly M[]): M[] {
  const needs = needed(all);
  const turn = all.reduce((last, { role }, at) => (role === "user" ? at : last), -1);
  const given = new Set(kept);
  const present = new Set([...all.keys()].filter((at) => given.has(all[at]!)));
  const back = new Set<number>();
  // Each round removes a message or brings one back, and none is removed after it came back.
  for (let changed = true; changed; ) {
    changed = false;
    for (const at of [...present]) {
      const missing = needs[at]!.filter((one) => !present.has(one));
      if (missing.length === 0) continue;
      changed = true;
      if (at < turn && !back.has(at)) {
        present.delete(at);
        continue;
      }
      const results = needs.flatMap((own, result) => (own.some((one) => missing.includes(one)) ? [result] : []));
      for (const one of [...missing, ...results]) {
        present.add(one);
        back.add(one);
      }
    }
  }
  return all.filter((_, at) => present.has(at));
}

/** Returns the places of the calls and requests that each message needs, in messages before it. */
function needed(all: readonly SdkMessage[]): number[][] {
  // An id may be used again, so a result belongs to the last call before it.
  const [calls, requests] = [new Map<unknown, number>(), new Map<unknown, number>()];
  return all.map((message, at) => {
    const own = new Set<number | undefined>();
    for (const { type, toolCallId, approvalId } of partsOf(message)) {
      if (type === "tool-call") calls.set(toolCallId, at);
      if (type === "tool-approval-request") requests.set(approvalId, at);
      if (type === "tool-result") own.add(calls.get(toolCallId));
      if (type === "tool-approval-response") own.add(requests.get(approvalId));
    }
    return [...own].filter((one): one is number => one !== undefined && one !== at);
  });
}

function partsOf({ content }: SdkMessage): readonly Part[] {
  return typeof content === "string" ? [] : (content as readonly Part[]);
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

/** Returns a part of a result. Each of the names of its files has the data or an address. */
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
