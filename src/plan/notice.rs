//! Notices to the reader of a plan.

use crate::item::ItemId;
use serde::{Serialize, Serializer, ser::SerializeStruct};

/// A notice to the reader of a plan: a repair, a question about a TTL, a feature that a provider does not
/// accept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    /// The event, as a code that stays the same across versions.
    pub code: NoticeCode,
    /// The items it is about.
    pub ids: Vec<ItemId>,
    /// The event, in a sentence.
    pub text: String,
}

impl Notice {
    /// Returns the rule it comes from (`docs/rules.md`).
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

            /// Returns the rule it comes from (`docs/rules.md`).
            #[must_use]
            pub fn rule(self) -> &'static str {
                match self { $(Self::$name => $rule),+ }
            }
        }
    };
}

codes! {
    /// The budget is larger than the context window.
    BudgetAboveWindow "budget_above_window" "B1";
    /// The model is not in the registry: default limits apply.
    UnknownModel "unknown_model" "B2";
    /// The body of the request states limits.
    StatedLimits "stated_limits" "B8";
    /// The provider adds context that is not in the count.
    RemoteContext "remote_context" "B8";
    /// The context length is unknown: levels and compaction are off.
    UnknownLimit "unknown_limit" "B2";
    /// Counted in the wire format of `OpenAI` Chat, because no chat template is given.
    NoChatTemplate "no_chat_template" "N3";
    /// What the options ask of the provider is done here, because it does not do it.
    EditedHere "edited_here" "C12";
    /// The last usage report is not believed.
    ReportIgnored "report_ignored" "N6";
    /// A pin does not fit.
    PinDropped "pin_dropped" "S2";
    /// Messages of the user that nobody has answered are left out.
    UnansweredLeftOut "unanswered_left_out" "S13";
    /// The sticky window no longer fitted, and was cut to its low mark.
    WindowCut "window_cut" "S5";
    /// Documents and state of earlier prompts are no longer sent.
    DocumentsReleased "documents_released" "S10";
    /// A note is sent from the next question on.
    PinWaits "pin_waits" "S10";
    /// The sticky window is not continued.
    WindowLost "window_lost" "S5";
    /// Old tool results are sent as stubs.
    ResultsCleared "results_cleared" "S7";
    /// Tool results are sent without their middle.
    ResultsClipped "results_clipped" "S7";
    /// No tool result is cleared, because no last prompt is known.
    NothingToClear "nothing_to_clear" "S7";
    /// A call id that is used twice is renamed.
    CallIdRenamed "call_id_renamed" "H1";
    /// A result is moved right after its call.
    ResultMoved "result_moved" "H1";
    /// A placeholder result is sent for a call without one.
    PlaceholderResult "placeholder_result" "H2";
    /// Instructions between messages are sent as a note.
    InstructionsAsNote "instructions_as_note" "H4";
    /// A placeholder message is sent, because the provider requires one.
    PlaceholderMessage "placeholder_message" "H5";
    /// Call ids are changed to what the provider accepts.
    CallIdsChanged "call_ids_changed" "H6";
    /// Calls of the current turn have no signature.
    SignatureMissing "signature_missing" "H6";
    /// A part that the provider does not support is replaced by a placeholder.
    PartReplaced "part_replaced" "H6";
    /// Messages that hold nothing but what another provider wrote are left out.
    ForeignMessage "foreign_message" "H6";
    /// Arguments that are no JSON object are wrapped in one.
    ArgumentsWrapped "arguments_wrapped" "H6";
    /// Function names of calls are changed to what the provider accepts.
    FunctionRenamed "function_renamed" "H6";
    /// Tools that only another provider runs are not declared.
    ToolsNotDeclared "tools_not_declared" "H6";
    /// Names of tools are changed to what the provider accepts.
    ToolsRenamed "tools_renamed" "H6";
    /// Fields of tools that only another provider takes are left out.
    ToolFieldsLeftOut "tool_fields_left_out" "H6";
    /// The speaker's name is dropped or changed.
    NameChanged "name_changed" "H7";
    /// Reasoning is dropped.
    ReasoningDropped "reasoning_dropped" "H7";
    /// Reasoning is not sent, because its provider would refuse it or leave it out.
    ReasoningWithheld "reasoning_withheld" "K1";
    /// Parameters of a tool are declared otherwise than given.
    SchemaChanged "schema_changed" "H8";
    /// Tool calls of the user and their results are sent as user text.
    UserCallsAsText "user_calls_as_text" "H9";
    /// A compaction is one of another provider: a text is sent in its place.
    ForeignCompaction "foreign_compaction" "C11";
    /// An expired item stays for one more turn: pin it again, or it goes.
    TtlQuestion "ttl_question" "T2";
}

impl std::fmt::Display for NoticeCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
