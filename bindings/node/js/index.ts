export {
  CompactionJob,
  Conversation,
  Manager,
  Plan,
  count,
  isContextOverflow,
  isReasoningRefusal,
  models,
  presets,
} from "./core.js";
export * from "./errors.js";
export type * from "./data.js";
export type {
  Beside,
  Change,
  Citation,
  Committed,
  ConversationJSON,
  Explanation,
  KnownModel,
  ManagerOptions,
  NativeCitation,
  OpenCall,
  PlanRequest,
  PromptItem,
  RetrievalBudget,
  WireFormat,
} from "./core.js";
export type { EncodingName } from "./encodings.js";
