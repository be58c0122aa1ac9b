// Messages and tools of the AI SDK as those of OpenAI. Mastra sends the same prompts.
import type { WireMessage } from "./data.js";

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

/** Returns a message of the AI SDK as messages of OpenAI. */
export function toWire(message: SdkMessage): WireMessage[] {
  const { role, content } = message;
  if (typeof content === "string") return [{ role, content }];
  const parts = content as readonly Part[];
  // It costs nothing, and the function that made it empty was asked to keep it.
  if (parts.length === 0) return [];
  if (role === "tool") {
    const results = parts.filter((part) => part.type === "tool-result");
    return results.map((part) => ({ role, tool_call_id: part.toolCallId, content: outputText(part.output) }));
  }
  const calls = parts.filter((part) => part.type === "tool-call" && part.providerExecuted !== true);
  const texts = parts.filter((part) => !["tool-call", "tool-approval-request"].includes(part.type) || part.providerExecuted === true);
  const tool_calls = calls.map((part) => ({
    id: part.toolCallId,
    type: "function",
    function: { name: part.toolName, arguments: JSON.stringify(part.input ?? {}) },
  }));
  return [{ role, content: texts.map(contentPart), ...(tool_calls.length === 0 ? {} : { tool_calls }) }];
}

function contentPart(part: Part): object {
  switch (part.type) {
    case "text":
    case "reasoning":
      return { type: "text", text: part.text };
    case "image":
    case "file":
      return filePart(part);
    default:
      // Counted as its text: a call of a provider's own tool, an approval, a source.
      return { type: "text", text: JSON.stringify(part) };
  }
}

/** Returns a picture as OpenAI has it, and any other file as the text that counts it. */
function filePart(part: Part): object {
  const data = part.image ?? part.data;
  const type = String(part.mediaType ?? "image/png");
  const url = data instanceof URL ? data.href : typeof data === "string" && /^(https?|data):/.test(data) ? data : undefined;
  if (!type.startsWith("image")) return { type: "text", text: typeof data === "string" ? data : `[file of type ${type}]` };
  return { type: "image_url", image_url: { url: url ?? `data:${type};base64,${typeof data === "string" ? data : ""}` } };
}

function outputText(output: unknown): string {
  const value = (output as { value?: unknown } | null | undefined)?.value ?? output;
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** Returns the functions of a prompt as OpenAI declares them. Tools of a provider have no definition to count. */
export function wireTools(tools: readonly unknown[] | undefined): unknown[] {
  const functions = ((tools ?? []) as Part[]).filter((tool) => tool.type === "function");
  return functions.map(({ name, description, inputSchema }) => ({ type: "function", function: { name, description, parameters: inputSchema } }));
}
