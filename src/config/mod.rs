//! All options of the planner as plain data. `config/default.toml` documents the keys.
//!
//! ```
//! use context_window::config::{
//!     CompactionOptions, CompactionOverrides, CompactionStrategy, Config, ConfigLayers,
//!     ConversationOptions, DefaultModel, DocumentOrder, DocumentTemplate, Leave, ListOptions,
//!     LoadedConfig, Placement, RagFill, RagOptions, ReasoningPolicy, Repair, RequestForm, RetainOptions,
//!     SectionOptions, Sections, SummaryOptions, ThinkTags, TokenOptions, ToolResults, TtlPolicy,
//!     UsageBase, UsageOptions, Variants,
//! };
//!
//! # fn main() -> Result<(), context_window::Error> {
//! let mut config = Config::default();
//! config.sections = Sections::shares(200, 500, 300);
//! let documents: &mut SectionOptions = &mut config.sections.rag;
//! documents.cap = Some(4_000);
//!
//! let model: &mut DefaultModel = &mut config.default_model;
//! model.tokenizer = "chars/4".into();
//! let conversation: &mut ConversationOptions = &mut config.conversation;
//! (conversation.repair, conversation.tool_results) = (Repair::Drop, ToolResults::Clip);
//! (conversation.reasoning, conversation.think_tags) = (ReasoningPolicy::Keep, ThinkTags::Keep);
//! let rag: &mut RagOptions = &mut config.rag;
//! rag.fill = RagFill::Prefix;
//! let template: &mut DocumentTemplate = &mut rag.template;
//! template.header = r#"file="{source}" of="{date}""#.into();
//! (rag.order, rag.variants) = (DocumentOrder::Edges, Variants::Breadth);
//! rag.near_duplicates = 95;
//! let titles: &mut ListOptions = rag.lists.entry("titles".into()).or_default();
//! titles.weight = 2;
//! (rag.placement, rag.leave) = (Placement::BeforeQuestion, Leave::AtCut);
//! config.ttl_policy = TtlPolicy::Ask;
//! let tokens: &mut TokenOptions = &mut config.tokens;
//! tokens.calibrate = false;
//! let usage: &mut UsageOptions = &mut config.usage;
//! usage.base = UsageBase::Context;
//!
//! let compaction: &mut CompactionOptions = &mut config.compaction;
//! compaction.strategy = CompactionStrategy::Summary;
//! let retain: &mut RetainOptions = &mut compaction.retain;
//! retain.messages = Some(8);
//! let summary: &mut SummaryOptions = &mut compaction.summary;
//! summary.form = RequestForm::Transcript;
//! let mut own = CompactionOverrides::default();
//! own.percent = Some(70);
//! compaction.models.insert("gpt-4o".into(), own);
//! config.validate()?;
//!
//! // The same options as files have them, layer over layer.
//! let loaded: LoadedConfig = ConfigLayers::new().with_text("config.toml", "[rag]\nmax_items = 5\n").load()?;
//! assert_eq!(loaded.config.rag.max_items, Some(5));
//! # Ok(())
//! # }
//! ```

use crate::{error::Error, item::Section};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::Path};

mod fault;
mod single;
mod compaction;
mod document_template;
mod rag;
mod presets;
mod validate;
mod shares;
mod load;

pub use compaction::{
    CompactionOptions, CompactionOverrides, CompactionStrategy, RequestForm, RetainOptions, RulePolicy,
    SummaryOptions,
};
pub use document_template::DocumentTemplate;
pub(crate) use document_template::{HeaderAttribute, HeaderField, HeaderPiece, HeaderTemplate};
use fault::Fault;
pub use load::{ConfigLayers, LoadedConfig};
pub use rag::{DocumentFormat, DocumentOrder, Leave, ListOptions, Placement, RagFill, RagOptions, Variants};

/// All options. [`Config::default`] has the values of `config/default.toml`.
///
/// ```
/// use context_window::Config;
///
/// # fn main() -> Result<(), context_window::Error> {
/// let mut config = Config::preset("rag")?;
/// config.rag.max_items = Some(5);
/// config.validate()?;
/// // Or from TOML: an unknown key or a value out of range is an error with its line.
/// let error = Config::from_toml("[rag]\nmax_itmes = 5\n", "config.toml").unwrap_err();
/// assert!(error.to_string().contains("max_itmes"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Config {
    /// The preset that these options are based on (one of [`Config::presets`]). For information only, because
    /// the other fields already contain its values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Limits and tokenizer of a model that neither the request nor the registry describes. This is the table
    /// `[model.default]`.
    #[serde(rename = "model", with = "single::model")]
    pub default_model: DefaultModel,
    /// The shares of the prompt budget.
    pub sections: Sections,
    /// Options for the conversation.
    pub conversation: ConversationOptions,
    /// Options for retrieved documents.
    pub rag: RagOptions,
    /// The treatment of items whose TTL is used up. This is the option `ttl.policy`.
    #[serde(rename = "ttl", with = "single::ttl")]
    pub ttl_policy: TtlPolicy,
    /// Options for token counts.
    pub tokens: TokenOptions,
    /// The thresholds of the usage levels.
    pub usage: UsageOptions,
    /// Options for compaction.
    pub compaction: CompactionOptions,
}

impl Config {
    /// Parses options from TOML text. A missing option keeps its default. `origin` names the text in errors.
    /// To combine several texts, variables and flags, use [`ConfigLayers`].
    ///
    /// # Errors
    ///
    /// `ErrorKind::Config` for invalid TOML, unknown keys and presets, wrong types and values out of range.
    /// The error shows the line, the key, a caret and the allowed values.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, Error> {
        Ok(ConfigLayers::new().with_text(origin, text).load()?.config)
    }

    /// Reads options from a TOML file.
    ///
    /// # Errors
    ///
    /// The errors of [`Config::from_toml`], and an error if the file cannot be read.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        Ok(ConfigLayers::new().with_file(path)?.load()?.config)
    }

    /// Returns the names of the presets.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        presets::names()
    }

    /// Returns the options of a preset.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Config` if no preset has this name.
    pub fn preset(name: &str) -> Result<Self, Error> {
        Ok(ConfigLayers::new().with_pairs("preset", [("preset", name)]).load()?.config)
    }

    /// Checks conditions that types do not enforce: shares must sum to 1000, percentages must be at most 100,
    /// and a target must be below its trigger.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Config` with the key, the value found and the expected value.
    pub fn validate(&self) -> Result<(), Error> {
        Ok(self.check()?)
    }

    fn check(&self) -> Result<(), Fault> {
        validate::check(self)
    }

    /// Returns every key with a value. Keys are dotted, and values are in a form common to TOML and JSON.
    #[must_use]
    pub fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::new();
        // Serialised, so that every option is included without a list of keys to maintain.
        let mut open = vec![(String::new(), serde_json::to_value(self).unwrap_or_default())];
        while let Some((key, value)) = open.pop() {
            match value {
                serde_json::Value::Object(table) => {
                    let dot = if key.is_empty() { "" } else { "." };
                    open.extend(table.into_iter().map(|(name, value)| (format!("{key}{dot}{name}"), value)));
                }
                // Unset options have no value.
                serde_json::Value::Null => {}
                value => drop(settings.insert(key, value.to_string())),
            }
        }
        settings
    }
}

/// The table `[model.default]` (rule B2). Lengths are in tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct DefaultModel {
    /// Maximum tokens of prompt and completion together (default: 128,000).
    pub context_len: u64,
    /// Tokens reserved for the reply (default: 4,096, and at most a quarter of the context length).
    pub max_completion: u64,
    /// Tokens reserved for unforeseen overhead (default: min(1,024, context length / 50)).
    pub safety_buffer: Option<u64>,
    /// The name of the tokenizer (default: `o200k_base`).
    pub tokenizer: String,
}

impl Default for DefaultModel {
    fn default() -> Self {
        Self {
            context_len: 128_000,
            max_completion: 4_096,
            safety_buffer: None,
            tokenizer: "o200k_base".into(),
        }
    }
}

/// The tables `[sections.*]` (rules B4, B5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SectionsForm", into = "SectionsForm")]
#[non_exhaustive]
pub struct Sections {
    /// System texts and pins (default share: 150).
    pub system_pinned: SectionOptions,
    /// The conversation (default share: 550).
    pub conversation: SectionOptions,
    /// Retrieved documents (default share: 300).
    pub rag: SectionOptions,
    /// The share of the divisible budget that pins may use before conversation and documents get theirs, per
    /// mille (rule S2; default: 500). This is the option `sections.system_pinned.pins_limit`.
    pub pins_limit: u16,
}

impl Default for Sections {
    fn default() -> Self {
        Self::shares(150, 550, 300)
    }
}

impl Sections {
    /// Creates options from shares in per mille, without caps. The shares must sum to 1000; `validate`
    /// rejects other sums.
    #[must_use]
    pub fn shares(system_pinned: u16, conversation: u16, rag: u16) -> Self {
        let section = |share| SectionOptions { share, cap: None };
        Self {
            system_pinned: section(system_pinned),
            conversation: section(conversation),
            rag: section(rag),
            pins_limit: 500,
        }
    }

    /// Returns the options of one section.
    #[must_use]
    pub fn section(&self, section: Section) -> SectionOptions {
        match section {
            Section::SystemPinned => self.system_pinned,
            Section::Conversation => self.conversation,
            Section::Rag => self.rag,
        }
    }
}

/// The share of the budget for one section.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SectionOptions {
    /// Share of the budget, per mille.
    pub share: u16,
    /// Hard limit in tokens. Required items and pins that cannot be dropped may exceed it.
    pub cap: Option<u64>,
}

/// The TOML form of [`Sections`]. A table may set a cap and keep the default share.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SectionsForm {
    system_pinned: SystemPinnedForm,
    conversation: SectionForm,
    rag: SectionForm,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SectionForm {
    share: Option<u16>,
    cap: Option<u64>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SystemPinnedForm {
    share: Option<u16>,
    cap: Option<u64>,
    pins_limit: Option<u16>,
}

impl From<SectionsForm> for Sections {
    fn from(form: SectionsForm) -> Self {
        // A share left out of the table keeps its default, so that a table may set only a cap.
        let section = |share: Option<u16>, cap: Option<u64>, default: SectionOptions| SectionOptions {
            share: share.unwrap_or(default.share),
            cap: cap.or(default.cap),
        };
        let SectionsForm { system_pinned, conversation, rag } = form;
        let default = Self::default();
        Self {
            system_pinned: section(system_pinned.share, system_pinned.cap, default.system_pinned),
            conversation: section(conversation.share, conversation.cap, default.conversation),
            rag: section(rag.share, rag.cap, default.rag),
            pins_limit: system_pinned.pins_limit.unwrap_or(default.pins_limit),
        }
    }
}

impl From<Sections> for SectionsForm {
    fn from(sections: Sections) -> Self {
        let section = |SectionOptions { share, cap }| SectionForm { share: Some(share), cap };
        let SectionOptions { share, cap } = sections.system_pinned;
        Self {
            system_pinned: SystemPinnedForm {
                share: Some(share),
                cap,
                pins_limit: Some(sections.pins_limit),
            },
            conversation: section(sections.conversation),
            rag: section(sections.rag),
        }
    }
}

/// The table `[conversation]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ConversationOptions {
    /// The share of its budget to which the window is cut if it no longer fits, per mille (sticky window,
    /// rule S5; default: 600). With 1000, the window moves in almost every turn.
    pub low_mark: u16,
    /// The repair of a tool call without a result.
    pub repair: Repair,
    /// The form of tool results in the prompt (rule S7).
    pub tool_results: ToolResults,
    /// Number of newest tool results that `clear` keeps whole (default: 3).
    pub keep_results: u64,
    /// Minimum tokens that clearing must free inside of the window (default: 2,000).
    pub clear_at_least: u64,
    /// Size above which `offload` keeps a result outside of the prompt, in bytes (default: 16,384).
    pub offload_above: u64,
    /// The beginning and end of an offloaded result in the prompt, in bytes together (default: 2,000).
    pub offload_keep: u64,
    /// The treatment of reasoning of earlier replies (rule K1).
    pub reasoning: ReasoningPolicy,
    /// The treatment of text between `<think>` and `</think>` in a reply (rule K9).
    pub think_tags: ThinkTags,
}

impl Default for ConversationOptions {
    fn default() -> Self {
        Self {
            low_mark: 600,
            repair: Repair::default(),
            tool_results: ToolResults::default(),
            keep_results: 3,
            clear_at_least: 2_000,
            offload_above: 16_384,
            offload_keep: 2_000,
            reasoning: ReasoningPolicy::default(),
            think_tags: ThinkTags::default(),
        }
    }
}

/// The treatment of reasoning of earlier replies (rule K1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningPolicy {
    /// Sends reasoning as long as the provider accepts it, and leaves out reasoning that it would reject
    /// (default).
    #[default]
    Keep,
    /// Sends no reasoning.
    Drop,
    /// Sends all reasoning. The request asks the provider to drop reasoning that it would reject.
    Provider,
}

/// The treatment of text between `<think>` and `</think>` in a reply (rule K9).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThinkTags {
    /// The setting in the model's registry entry (default).
    #[default]
    Auto,
    /// Ordinary text.
    Keep,
    /// Reasoning, which is not sent after the end of the turn.
    Reasoning,
}

/// The form of tool results in the prompt (rule S7).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolResults {
    /// Unchanged.
    Keep,
    /// Old results are replaced by stubs, as soon as the sticky window no longer fits.
    Clear,
    /// Unchanged, unless the minimum does not fit. Then results of the current tool call keep only beginning
    /// and end (default). A provider accepts a prompt with a part of a result, but rejects a prompt that is
    /// too long.
    #[default]
    Clip,
    /// Unchanged. The provider clears old results on its own, as requested by the plan's `context_editing`
    /// (rule C12).
    Provider,
    /// Large results keep only beginning and end, from their first sending on and in every later prompt. The
    /// model reads the rest with the tool `recall`, which the request must declare. Results of the current
    /// tool call are also clipped, as with `Clip`.
    Offload,
}

/// The repair of a tool call without a result (rule H2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Repair {
    /// Adds a synthetic result derived from the call (default).
    #[default]
    Synthesize,
    /// Leaves the exchange out.
    Drop,
    /// Rejects the request: planning fails.
    Reject,
}

/// The treatment of an item whose TTL is used up (rule T2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TtlPolicy {
    /// It is left out (default).
    #[default]
    Automatic,
    /// It stays for exactly one more turn, with a notice.
    Ask,
    /// It stays.
    Unlimited,
}

/// The table `[tokens]` (rules N5, N6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct TokenOptions {
    /// True if usage reports of the provider correct estimated counts (default: true).
    pub calibrate: bool,
    /// Provider tokens per 1000 tokens of an estimating counter, used until the first usage report (default:
    /// 1000).
    pub calibration_per_mille: u32,
    /// Size in bytes of the cache for counts of texts that recur between requests (default: 8,388,608). It
    /// grows if the documents of one request need more. 0 disables it. The cache changes speed, never a plan.
    pub cache_bytes: u64,
}

impl Default for TokenOptions {
    fn default() -> Self {
        Self { calibrate: true, calibration_per_mille: 1_000, cache_bytes: 8 << 20 }
    }
}

/// The table `[usage]` (rules U2, U3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct UsageOptions {
    /// The percentage from which the level is "approaching" (default: 75).
    pub approaching: u16,
    /// The percentage from which the level is "at limit" (default: 100).
    pub at_limit: u16,
    /// The base of the percentage.
    pub base: UsageBase,
}

impl Default for UsageOptions {
    fn default() -> Self {
        Self { approaching: 75, at_limit: 100, base: UsageBase::default() }
    }
}

/// The base of a usage percentage (rules U3, C2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UsageBase {
    /// The capacity for input: context length minus completion, at most the input limit (default).
    #[default]
    Capacity,
    /// The context length.
    Context,
}
