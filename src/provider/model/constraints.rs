//! A target's demands on its prompts, as data: `[provider]`, and `constraints` of a wire format or a model,
//! in `config/models.toml`.

use crate::{config::ThinkTags, message::WireFormat};
use serde::{Deserialize, Serialize};

/// The place where a target takes instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SystemPlace {
    /// As messages, in any position and number.
    #[default]
    Anywhere,
    /// As one message, before all others.
    Leading,
    /// In a field of their own beside the messages.
    Apart,
}

/// The reasoning that is sent back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeptReasoning {
    /// None: the target has no field for it, or refuses it.
    Never,
    /// That of the live turn, which the target needs to continue it.
    Live,
    /// All of it.
    #[default]
    Always,
}

/// The ids of calls that a target takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallIds {
    /// Any text.
    #[default]
    Any,
    /// Any text of at most 40 characters.
    Short,
    /// Any text of at most 40 characters, each id once in a prompt.
    Once,
    /// Letters, digits, `_` and `-`, each id once in a prompt.
    Word,
    /// Exactly nine letters and digits, each id once in a prompt.
    Nine,
}

macro_rules! constraints {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $free:expr,)*) => {
        /// A target's demands beyond its wire format. A constraint that is not set is that of the
        /// provider, or else of the wire format. Model files set them.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub(crate) struct ProviderConstraints {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub(crate) $name: Option<$kind>,)*
        }

        impl ProviderConstraints {
            /// These constraints, and those of `other` where these are not set.
            #[must_use]
            pub(crate) fn over(self, other: Self) -> Self {
                Self { $($name: self.$name.or(other.$name),)* }
            }

            /// Returns every constraint decided; one that is not set does not apply.
            pub(crate) fn decided(self) -> Accepts {
                Accepts { $($name: self.$name.unwrap_or($free),)* }
            }
        }

        /// What one target accepts, every question answered.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct Accepts {
            $($(#[$doc])* pub(crate) $name: $kind,)*
        }
    };
}

// A constraint that can add or join messages must also be in `TargetProfile::may_demand` and `changes_at`, or
// explain is wrong.
constraints! {
    /// The place of instructions.
    system: SystemPlace = SystemPlace::Anywhere,
    /// True if a system message may be between others although the wire format has a field of its own for
    /// them: after a user message, last or before an assistant message.
    inner_system: bool = false,
    /// True if the developer role is known; otherwise it is sent as the system role.
    developer: bool = true,
    /// True if the first message has to be the user's.
    user_first: bool = false,
    /// True if the last message must not be the assistant's.
    user_last: bool = false,
    /// True if neighbours of one role have to be one message.
    alternates: bool = false,
    /// True if a user message may follow tool results.
    user_after_results: bool = true,
    /// True if a message may name its speaker.
    names: bool = true,
    /// True if the result of a tool may be empty.
    empty_results: bool = true,
    /// The ids of calls that are taken.
    call_ids: CallIds = CallIds::Any,
    /// The reasoning that is sent back.
    reasoning: KeptReasoning = KeptReasoning::Always,
    /// The treatment of text between `<think>` and `</think>` in a reply; `auto` is `keep`.
    think_tags: ThinkTags = ThinkTags::Keep,
    /// True if an assistant message of a prompt with tools has to bear reasoning, an empty one if it has
    /// none.
    fills_reasoning: bool = false,
    /// True if the first call of each step of the current turn has to bear a signature (Gemini 3).
    signed_calls: bool = false,
    /// True if cache breakpoints may be marked in the prompt.
    breakpoints: bool = false,
}

impl ProviderConstraints {
    /// Returns true if nothing is set.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The demands of one provider's models in one wire format: one `[provider.NAME]`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProviderEntry {
    pub(crate) wire_format: WireFormat,
    pub(crate) constraints: ProviderConstraints,
}
