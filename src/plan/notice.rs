//! Notices for the reader of a plan.

use crate::item::ItemId;
use serde::{Serialize, Serializer, ser::SerializeStruct};

/// A notice for the reader of a plan, such as a repair, a question about a TTL, or a feature that a provider
/// does not accept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    /// The kind of event, as a code that is stable across versions.
    pub code: NoticeCode,
    /// The ids of the items that it is about.
    pub ids: Vec<ItemId>,
    /// The event in one sentence.
    pub text: String,
}

impl Notice {
    /// Returns the rule that the notice comes from (`docs/rules.md`).
    #[must_use]
    pub fn rule(&self) -> &'static str {
        self.code.rule()
    }
}

/// Writes an object with `rule`, `code`, `ids` and `text`.
impl Serialize for Notice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Notice", 4)?;
        object.serialize_field("rule", self.rule())?;
        object.serialize_field("code", &self.code)?;
        object.serialize_field("ids", &self.ids)?;
        object.serialize_field("text", &self.text)?;
        object.end()
    }
}

// One list of codes, so that none can lack its name in JSON or its rule.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $code:literal $rule:literal;)+) => {
        /// The kind of event that a notice is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[non_exhaustive]
        pub enum NoticeCode {
            $($(#[$doc])* #[serde(rename = $code)] $name,)+
        }

        impl NoticeCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Returns its name in JSON.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $code),+ }
            }

            /// Returns the rule that the notice comes from (`docs/rules.md`).
            #[must_use]
            pub fn rule(self) -> &'static str {
                match self { $(Self::$name => $rule),+ }
            }
        }
    };
}

codes! {
    /// A budget that is larger than the context window.
    BudgetAboveWindow "budget_above_window" "B1";
    /// A model that is not in the registry, so that default limits apply.
    UnknownModel "unknown_model" "B2";
    /// Limits that the body of the request states.
    StatedLimits "stated_limits" "B8";
    /// Context that the provider adds and the count does not contain.
    RemoteContext "remote_context" "B8";
    /// An unknown context length, which turns off levels and compaction.
    UnknownLimit "unknown_limit" "B2";
    /// A count in the wire format of `OpenAI` Chat, because no chat template is given.
    NoChatTemplate "no_chat_template" "N3";
    /// An edit that the options request of the provider, made by the planner because the provider does not
    /// make it.
    EditedHere "edited_here" "C12";
    /// A usage report that is not plausible and is ignored.
    ReportIgnored "report_ignored" "N6";
    /// A pin that does not fit.
    PinDropped "pin_dropped" "S2";
    /// A rule of the user that does not fit.
    RuleDropped "rule_dropped" "R3";
    /// A rule of the user that is sent once the user confirms it.
    RuleQuestion "rule_question" "R2";
    /// Unanswered messages of the user that are left out.
    UnansweredLeftOut "unanswered_left_out" "S13";
    /// A sticky window that no longer fitted and was cut to its low mark.
    WindowCut "window_cut" "S5";
    /// Documents and state of earlier prompts that are no longer sent.
    DocumentsReleased "documents_released" "S10";
    /// Documents that are sent as text, because the provider has no blocks for them.
    DocumentsAsText "documents_as_text" "S20";
    /// Documents that the model cannot cite, because blocks of the conversation have no citations.
    CitationsOff "citations_off" "S20";
    /// A note that is sent only from the next question on.
    PinWaits "pin_waits" "S10";
    /// A sticky window that is not continued.
    WindowLost "window_lost" "S5";
    /// Old tool results that are sent as stubs.
    ResultsCleared "results_cleared" "S7";
    /// Tool results that are sent without their middle.
    ResultsClipped "results_clipped" "S7";
    /// Large tool results that are sent without their middle, which the model reads with the tool `recall`.
    ResultsOffloaded "results_offloaded" "S7";
    /// Large tool results that are sent whole, because the request declares no tool `recall`.
    ResultsNotOffloaded "results_not_offloaded" "S7";
    /// No cleared tool results, because no last prompt is known.
    NothingToClear "nothing_to_clear" "S7";
    /// A call id that is used twice and is renamed.
    CallIdRenamed "call_id_renamed" "H1";
    /// A tool result that is moved directly after its call.
    ResultMoved "result_moved" "H1";
    /// A placeholder result for a tool call without one.
    PlaceholderResult "placeholder_result" "H2";
    /// Instructions between messages that are sent as a note.
    InstructionsAsNote "instructions_as_note" "H4";
    /// A placeholder message that the provider requires.
    PlaceholderMessage "placeholder_message" "H5";
    /// Call ids that are changed to a form that the provider accepts.
    CallIdsChanged "call_ids_changed" "H6";
    /// Tool calls of the current turn without a signature.
    SignatureMissing "signature_missing" "H6";
    /// A part that the provider does not support and that a placeholder replaces.
    PartReplaced "part_replaced" "H6";
    /// Messages that contain only content written by another provider, and are left out.
    ForeignMessage "foreign_message" "H6";
    /// Arguments that are not a JSON object and are wrapped in one.
    ArgumentsWrapped "arguments_wrapped" "H6";
    /// Function names of tool calls that are changed to a form that the provider accepts.
    FunctionRenamed "function_renamed" "H6";
    /// Tools that are not declared, because only another provider runs them.
    ToolsNotDeclared "tools_not_declared" "H6";
    /// Tool names that are changed to a form that the provider accepts.
    ToolsRenamed "tools_renamed" "H6";
    /// Fields of tools that are left out, because only another provider accepts them.
    ToolFieldsLeftOut "tool_fields_left_out" "H6";
    /// A speaker's name that is dropped or changed.
    NameChanged "name_changed" "H7";
    /// Reasoning that is dropped.
    ReasoningDropped "reasoning_dropped" "H7";
    /// Reasoning that is not sent, because its provider would refuse it or leave it out.
    ReasoningWithheld "reasoning_withheld" "K1";
    /// Parameters of a tool that are declared differently from the given schema.
    SchemaChanged "schema_changed" "H8";
    /// Tool calls of the user and their results that are sent as user text.
    UserCallsAsText "user_calls_as_text" "H9";
    /// A compaction by another provider, which a text replaces.
    ForeignCompaction "foreign_compaction" "C11";
    /// An expired item that stays for one more turn, unless it is pinned again.
    TtlQuestion "ttl_question" "T2";
}

impl std::fmt::Display for NoticeCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
