// An adapter for OpenClaw: a context engine that assembles the messages that fit.
import { Trimmer, type TrimOptions } from "./trimmer.js";
import type { WireMessage } from "./data.js";

export type { TrimOptions } from "./trimmer.js";

/** A message of OpenClaw, by the parts that are read. */
export interface OpenClawMessage {
  role: string;
}

/** The compaction of the host: `delegateCompactionToRuntime` of `openclaw/plugin-sdk/core`. */
export type Compact = (params: never) => Promise<unknown>;

/** Options of the engine. */
export interface EngineOptions extends TrimOptions {
  /** The id under which it is registered (default: `context-window`). */
  id?: string;
  /** Another compaction than that of the host. */
  compact?: Compact;
}

/** The part of a plugin's interface that is used. */
export interface PluginApi<E> {
  registerContextEngine(id: string, factory: () => E): void;
}

interface Block {
  type: string;
  [key: string]: unknown;
}

/** The keys of turns that are remembered, so that a repeated one is known as such. */
const TURNS = 512;

/** Returns a message of OpenClaw as a message of OpenAI. */
function toWire(message: OpenClawMessage): WireMessage[] {
  const { role, content, toolCallId } = message as { role: string; content?: unknown; toolCallId?: string };
  const blocks = (Array.isArray(content) ? content : [{ type: "text", text: typeof content === "string" ? content : "" }]) as Block[];
  if (role === "toolResult") return [{ role: "tool", tool_call_id: toolCallId, content: blocks.map(contentPart) }];
  // Entries of the host, such as a command of the user, are sent as text of the user.
  if (role !== "user" && role !== "assistant") return [{ role: "user", content: JSON.stringify(message) }];
  // The provider has completed an asynchronous call, so it has no result.
  const isOpen = (block: Block) => block.type === "toolCall" && block.async !== true;
  const tool_calls = blocks.filter(isOpen).map(({ id, name, arguments: given }) => ({
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(given ?? {}) },
  }));
  const parts = blocks.filter((block) => !isOpen(block)).map(contentPart);
  return [{ role, content: parts, ...(tool_calls.length === 0 ? {} : { tool_calls }) }];
}

function contentPart(block: Block): object {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "thinking":
      return { type: "text", text: block.thinking };
    case "image":
      return { type: "image_url", image_url: { url: `data:${String(block.mimeType)};base64,${String(block.data)}` } };
    default:
      return { type: "text", text: JSON.stringify(block) };
  }
}

/**
 * Returns the context engine as the host expects it: it assembles the messages that fit from those that the host
 * stores, so it stores nothing itself. Compactions are those of the host.
 */
export function contextEngine({ id = "context-window", compact, ...options }: EngineOptions = {}) {
  const trimmer = new Trimmer<OpenClawMessage>(toWire, options);
  const turns = new Set<string>();
  return {
    info: {
      id,
      name: "Context window",
      ownsCompaction: false,
      acceptedHostParams: ["runtimeContext" as const, "runtimeSettings" as const, "sessionKey" as const, "sessionTarget" as const],
      transcriptSemantics: {
        currentTurnFence: "before-current-turn-entry-v1" as const,
        turnAdvancementIdempotency: "atomic-idempotent-v1" as const,
      },
      hostRequirements: { "agent-run": { requiredCapabilities: ["assemble-before-prompt" as const] } },
    },

    async ingest(_params: object): Promise<{ ingested: boolean }> {
      // The transcript of the host is the log.
      return { ingested: true };
    },

    async assemble<M extends OpenClawMessage>({ messages, tokenBudget }: { messages: M[]; tokenBudget?: number }) {
      // The smaller of the host's budget and that of the options.
      const given = [tokenBudget, options.maxTokens].filter((tokens) => tokens != null);
      const fitting = trimmer.fit(messages, undefined, given.length > 0 ? Math.min(...given) : undefined);
      const { tokens: estimatedTokens, epoch, fingerprint } = fitting;
      // A prompt that only grows stays in the thread of a backend. After a cut, the thread begins again.
      const contextProjection = { mode: "thread_bootstrap" as const, epoch, fingerprint };
      return { messages: fitting.messages as M[], estimatedTokens, ...(epoch === "" ? {} : { contextProjection }) };
    },

    async compact<P extends object, R>(params: P): Promise<R> {
      return (await (compact ?? (await hostCompaction()))(params as never)) as R;
    },

    async commitTurn({ advancementKey }: { advancementKey: string }): Promise<{ status: "committed" | "duplicate" }> {
      if (turns.has(advancementKey)) return { status: "duplicate" };
      turns.add(advancementKey);
      // The oldest key is the first one, because a set keeps the order of insertion.
      if (turns.size > TURNS) for (const oldest of [...turns].slice(0, turns.size - TURNS)) turns.delete(oldest);
      return { status: "committed" };
    },
  };
}

/** Returns the compaction of the host, which only a process of OpenClaw has. */
async function hostCompaction(): Promise<Compact> {
  const name = "openclaw/plugin-sdk/core";
  const { delegateCompactionToRuntime } = (await import(name)) as { delegateCompactionToRuntime: Compact };
  return delegateCompactionToRuntime;
}

/** Registers the engine. Call it in the function that your plugin exports. */
export function registerContextWindow(api: PluginApi<ReturnType<typeof contextEngine>>, options: EngineOptions = {}): void {
  // The host makes an instance for each operation, and windows outlive it.
  const engine = contextEngine(options);
  api.registerContextEngine(engine.info.id, () => engine);
}
