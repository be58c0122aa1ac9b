//! Plain data that no JSON Schema of the project describes. The types of JavaScript are written from these.

use crate::error::input;
use context_window::{
    ItemId, ToolCall, analysis, plan::ItemMessage, provider::ModelEntry, usage::ContextEvent,
};
use context_window_report as report;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tsify::Tsify;
use wasm_bindgen::prelude::*;

/// The types from the JSON Schemas, which the build writes.
#[wasm_bindgen(typescript_custom_section)]
const SCHEMAS: &str = r#"import type {
  Anchor, ConfigTables, PlanJSON, SharedRequest, WireMessage, WireMessages,
} from "./data.js";"#;

/// The options of a manager.
#[derive(Default, Serialize, Deserialize, Tsify)]
#[serde(default, deny_unknown_fields)]
pub struct ManagerOptions {
    /// Options as tables, or as TOML text.
    #[tsify(optional, type = "ConfigTables | string")]
    pub(crate) config: Option<Value>,
    /// A name from `presets()`.
    #[tsify(optional)]
    pub(crate) preset: Option<String>,
    /// Another tokenizer: an encoding that is loaded, or an estimate (`chars/4`, `chars/3.5`, `bytes`).
    #[tsify(optional)]
    pub(crate) tokenizer: Option<String>,
    /// A counter of your own: returns the tokens of a text.
    #[tsify(optional, type = "(text: string) => number")]
    pub(crate) counter: Option<()>,
    /// The TOML text of a file of models.
    #[tsify(optional)]
    pub(crate) models: Option<String>,
    /// The format in which prompts are counted, if it is not the model's own.
    #[tsify(optional, type = "WireFormat")]
    pub(crate) wire_format: Option<String>,
}

/// The format of messages and of request bodies.
#[derive(Serialize, Deserialize, Tsify)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "a type of JavaScript only")]
pub enum WireFormat {
    Openai,
    OpenaiResponses,
    Anthropic,
    Gemini,
}

/// The keys of a request that a session file lacks.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Tsify)]
#[serde(default, deny_unknown_fields)]
pub struct Beside {
    /// The account, for reasoning that the provider binds to it.
    #[tsify(optional)]
    pub(crate) account: Option<String>,
    /// The end user, for the same.
    #[tsify(optional)]
    pub(crate) end_user: Option<String>,
    /// True for a separate row for each excluded message.
    #[tsify(optional)]
    pub(crate) excluded_messages: bool,
    /// True to add the earlier messages that the question needs.
    #[tsify(optional)]
    pub(crate) recall: bool,
}

#[wasm_bindgen(typescript_custom_section)]
const REQUEST: &str = "/** A request of a prompt: keys of a session file, and those of `Beside`. */
export type PlanRequest = SharedRequest & Beside;";

/// A model that is known by name.
#[derive(Serialize, Tsify)]
pub struct KnownModel {
    name: String,
    provider: String,
    wire_format: String,
    /// The size of the context window in tokens.
    context_len: Option<f64>,
    /// Maximum tokens of a reply.
    max_output: Option<f64>,
    tokenizer: Option<String>,
    /// True if counts are estimates.
    estimated: bool,
}

impl From<&ModelEntry> for KnownModel {
    fn from(entry: &ModelEntry) -> Self {
        Self {
            name: entry.name.clone(),
            provider: entry.provider.clone(),
            wire_format: entry.wire_format.name().to_owned(),
            // Tokens are far below 2^53, so a float has them exactly.
            context_len: entry.context_len.map(|tokens| tokens as f64),
            max_output: entry.max_output.map(|tokens| tokens as f64),
            tokenizer: entry.tokenizer.clone(),
            estimated: entry.is_estimated(),
        }
    }
}

/// The result of `pushReply`.
#[derive(Serialize, Tsify)]
pub struct Committed {
    /// The reply's id.
    pub(crate) id: String,
    /// Events for a user interface, each with its kind under `event`.
    #[tsify(type = "({ event: string } & Record<string, unknown>)[]")]
    pub(crate) events: Vec<ContextEvent>,
}

/// A tool call without a result.
#[derive(Serialize, Tsify)]
pub struct OpenCall {
    id: String,
    name: String,
    /// The arguments as JSON text.
    arguments: String,
}

impl From<&ToolCall> for OpenCall {
    fn from(call: &ToolCall) -> Self {
        Self { id: call.id.clone(), name: call.name.clone(), arguments: call.arguments.clone() }
    }
}

/// A message of a prompt, before the provider's format joins messages.
#[derive(Serialize, Tsify)]
pub struct PromptItem {
    /// The ids of its rows. The documents of one block are one message.
    ids: Vec<String>,
    kind: String,
    role: String,
    text: String,
}

impl From<ItemMessage> for PromptItem {
    fn from(item: ItemMessage) -> Self {
        Self {
            ids: item.ids.iter().map(ItemId::to_string).collect(),
            kind: item.kind.name().to_owned(),
            role: item.message.role().name().to_owned(),
            text: item.message.text().to_owned(),
        }
    }
}

/// An item whose state differs between two plans, with the single input that causes the difference.
#[derive(Serialize, Tsify)]
pub struct Change {
    id: String,
    /// True for a document.
    document: bool,
    /// The state in the earlier plan, in words.
    before: String,
    /// The state in the later plan, in words.
    after: String,
    cause: String,
    /// The check that confirmed the cause, in words.
    verified_by: String,
}

impl From<&analysis::Change> for Change {
    fn from(change: &analysis::Change) -> Self {
        let report::ChangeText { before, after, verified_by, .. } = report::change(change);
        Self {
            id: change.id.to_string(),
            document: change.document,
            before,
            after,
            cause: change.cause.name().to_owned(),
            verified_by,
        }
    }
}

/// A citation in a reply, such as `[1]`.
#[derive(Serialize, Tsify)]
pub struct Citation {
    /// The number of the label.
    label: u32,
    /// The id of the document with this label.
    document: Option<String>,
    /// The quoted words, if the citation follows a quote.
    quote: Option<String>,
    /// The place of the label in the reply, in UTF-16 units.
    start: usize,
    end: usize,
    /// `valid`, `misquoted`, `unknown` or `not_sent`.
    verdict: String,
}

impl Citation {
    pub(crate) fn from_core(one: analysis::Citation, reply: &str) -> Self {
        // Strings of JavaScript count UTF-16 units.
        let units = |bytes: usize| reply[..bytes].encode_utf16().count();
        Self {
            label: one.label,
            document: one.document.map(|id| id.to_string()),
            quote: one.quote.map(|quote| reply[quote].to_owned()),
            start: units(one.range.start),
            end: units(one.range.end),
            verdict: one.verdict.name().to_owned(),
        }
    }
}

/// A citation that Anthropic writes beside the text of a reply.
#[derive(Serialize, Tsify)]
pub struct NativeCitation {
    document_index: u32,
    /// The id of the document with this number.
    document: Option<String>,
    cited_text: String,
    /// `valid`, `misquoted` or `unknown`.
    verdict: String,
}

impl TryFrom<analysis::NativeCitation> for NativeCitation {
    type Error = JsValue;

    fn try_from(one: analysis::NativeCitation) -> Result<Self, JsValue> {
        Ok(Self {
            // No prompt has as many documents, so a larger number is a fault of the reply.
            document_index: u32::try_from(one.document_index).map_err(|error| input(error.to_string()))?,
            document: one.document.map(|id| id.to_string()),
            cited_text: one.cited_text.clone(),
            verdict: one.verdict.name().to_owned(),
        })
    }
}

/// Token budgets for documents.
#[derive(Serialize, Tsify)]
pub struct RetrievalBudget {
    /// The documents' share of the budget.
    pub(crate) share: f64,
    /// The tokens that nothing else uses.
    pub(crate) free: f64,
    /// The share and the tokens that other sections do not use.
    pub(crate) most: f64,
}

/// The JSON of a conversation: every entry of its log, in order.
#[derive(Serialize, Deserialize, Tsify)]
#[serde(deny_unknown_fields)]
pub struct ConversationJSON {
    /// The version of this form.
    pub(crate) version: u32,
    #[tsify(type = "unknown[]")]
    pub(crate) events: Vec<context_window::events::LogEvent>,
}

/// The reason why an item is included or excluded, and the prompt budgets in tokens at which that changes.
#[derive(Serialize, Tsify)]
pub struct Explanation {
    id: String,
    included: bool,
    /// The reason, as in the plan's rows.
    reason: String,
    /// The item's tokens, if they were counted.
    tokens: Option<f64>,
    /// The smallest prompt budget above the current one at which the item is included.
    enters_at: Option<f64>,
    /// The largest prompt budget below the current one at which the item is excluded.
    leaves_at: Option<f64>,
    /// The prompt budget from which on the item is always included.
    stays_from: Option<f64>,
    /// The ids of the items that are included instead.
    displaced_by: Vec<String>,
    /// The ids of the items that are excluded if this one is included.
    leaves_then: Vec<String>,
    /// All of it in words.
    text: String,
}

impl From<&analysis::Explanation> for Explanation {
    fn from(inner: &analysis::Explanation) -> Self {
        let tokens = |tokens: Option<u64>| tokens.map(|tokens| tokens as f64);
        let ids = |ids: &[ItemId]| ids.iter().map(ItemId::to_string).collect();
        Self {
            id: inner.id.to_string(),
            included: inner.included,
            reason: inner.reason.to_string(),
            tokens: tokens(inner.tokens),
            enters_at: tokens(inner.enters_at),
            leaves_at: tokens(inner.leaves_at),
            stays_from: tokens(inner.stays_from),
            displaced_by: ids(&inner.displaced_by),
            leaves_then: ids(&inner.leaves_then),
            text: report::explanation(inner).to_string(),
        }
    }
}
