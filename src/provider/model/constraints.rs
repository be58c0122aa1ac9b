//! The constraints of a target, as data: `[provider]`, and `constraints` of a wire format or a model, in
//! `config/models.toml`.

use crate::{config::ThinkTags, message::WireFormat};
use serde::{Deserialize, Serialize};

/// The place of instructions in a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SystemPlace {
    /// Instructions are messages, in any position and number.
    #[default]
    Anywhere,
    /// Instructions are one message, before all others.
    Leading,
    /// Instructions are in a separate field, apart from the messages.
    Apart,
}

/// The reasoning that a target accepts back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeptReasoning {
    /// No reasoning: the target has no field for it, or refuses it.
    Never,
    /// The reasoning of the current turn, which the target needs to continue it.
    Live,
    /// All reasoning.
    #[default]
    Always,
}

/// The call ids that a target accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallIds {
    /// Any text.
    #[default]
    Any,
    /// Any text of at most 40 characters.
    Short,
    /// Any text of at most 40 characters, each id once per prompt.
    Once,
    /// Letters, digits, `_` and `-`, each id once per prompt.
    Word,
    /// Exactly nine letters and digits, each id once per prompt.
    Nine,
}

macro_rules! constraints {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $free:expr,)*) => {
        /// The constraints of a target beyond its wire format. An unset constraint falls back to that of the
        /// provider, and then to that of the wire format. Model files set them.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub(crate) struct ProviderConstraints {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub(crate) $name: Option<$kind>,)*
        }

        impl ProviderConstraints {
            /// Returns these constraints, with unset ones taken from `other`.
            #[must_use]
            pub(crate) fn over(self, other: Self) -> Self {
                Self { $($name: self.$name.or(other.$name),)* }
            }

            /// Resolves all constraints. An unset constraint does not apply.
            pub(crate) fn decided(self) -> Accepts {
                Accepts { $($name: self.$name.unwrap_or($free),)* }
            }
        }

        /// The resolved constraints of a target.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct Accepts {
            $($(#[$doc])* pub(crate) $name: $kind,)*
        }
    };
}

// A constraint that can add or join messages must also be part of `TargetProfile::may_demand` and
// `changes_at`. Otherwise the explanations of plans are wrong.
constraints! {
    /// The place of instructions.
    system: SystemPlace = SystemPlace::Anywhere,
    /// True if a system message may also be among the other messages, although the wire format has a separate
    /// field. It must come after a user message, and be the last or precede an assistant message.
    inner_system: bool = false,
    /// True if the target knows the developer role. Otherwise the message gets the system role.
    developer: bool = true,
    /// True if the first message must be a user message.
    user_first: bool = false,
    /// True if the last message must not be an assistant message.
    user_last: bool = false,
    /// True if adjacent messages of one role must be one message.
    alternates: bool = false,
    /// True if a user message may follow tool results.
    user_after_results: bool = true,
    /// True if a message may contain its author's name.
    names: bool = true,
    /// True if the result of a tool may be empty.
    empty_results: bool = true,
    /// The call ids that the target accepts.
    call_ids: CallIds = CallIds::Any,
    /// The reasoning that the target accepts back.
    reasoning: KeptReasoning = KeptReasoning::Always,
    /// The treatment of text between `<think>` and `</think>` in a reply; `auto` means `keep`.
    think_tags: ThinkTags = ThinkTags::Keep,
    /// True if each assistant message of a prompt with tools must contain reasoning, even an empty one.
    fills_reasoning: bool = false,
    /// True if the first call of each step of the current turn must have a signature (Gemini 3).
    signed_calls: bool = false,
    /// True if the prompt may contain cache breakpoints.
    breakpoints: bool = false,
}

impl ProviderConstraints {
    /// Returns true if no constraint is set.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The constraints of one provider's models in one wire format: one `[provider.NAME]`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProviderEntry {
    pub(crate) wire_format: WireFormat,
    pub(crate) constraints: ProviderConstraints,
}
