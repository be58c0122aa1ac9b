// Names of the types that are generated from the JSON Schemas of the project.
import type { ConfigData, PlanData, SessionData } from "./types.js";

/** A whole plan, as `plan-inspect --json` prints it. */
export type PlanJSON = PlanData.Root;
/** Options as tables, as in `config/default.toml`. */
export type ConfigTables = ConfigData.Root;
/** A record of a prompt (`Plan.anchor`). */
export type Anchor = SessionData.Previous;
/** A retrieved document. */
export type RetrievedDocument = SessionData.Document;
/** Limits in tokens. */
export type Limits = SessionData.Limits;

/** The keys of a request that a session file has, too. */
export interface SharedRequest {
  /** Tool definitions in any provider's format. */
  tools?: unknown[] | null;
  /** Retrieved documents: an array, or an object with an array for each ranked list. */
  rag?: SessionData.Session["rag"];
  /** The subject of the conversation, sent after the system texts. */
  focus?: string | null;
  /** Volatile texts by their ids, such as a clock or open files; sent last. */
  state?: Record<string, string> | SessionData.Texts | null;
  limits?: Limits | null;
  previous?: Anchor | null;
  /** The format of the reply, if it has to follow a JSON schema. */
  output_config?: unknown;
}

/** A message in a provider's format. An empty conversation also takes those of tools, such as the AI SDK's `UIMessage`. */
export type WireMessage = object;
/** A message or a list of messages in a provider's format. */
export type WireMessages = WireMessage | readonly WireMessage[];
