use crate::{item::ItemId, text::plain::fold_white_space};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A rule of the user: one lasting instruction of the user, in the user's words (rule R1).
///
/// ```
/// use context_window::{Conversation, Message, RuleSource, StandingRule};
///
/// # fn main() -> Result<(), context_window::Error> {
/// let mut log = Conversation::from([Message::user("Fix the tests. Never touch the migrations folder.")]);
/// log.keep_rule(StandingRule::new("migrations", "Never touch the migrations folder.").from_message("m0"))?;
/// let sources: Vec<RuleSource> = log.rules().map(|rule| rule.source()).collect();
/// assert_eq!(sources, [RuleSource::Application]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingRule {
    pub(crate) id: ItemId,
    pub(crate) text: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<ItemId>,
    #[serde(default)]
    pub(crate) source: RuleSource,
}

/// The source of a rule of the user (rule R2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RuleSource {
    /// The application, or a user who answered a question.
    #[default]
    Application,
    /// A model that was asked for a summary, and quoted the rule.
    Summary,
    /// Words of command or prohibition in a message of the user.
    CueWords,
}

impl RuleSource {
    /// Returns the name in JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Summary => "summary",
            Self::CueWords => "cue_words",
        }
    }
}

impl StandingRule {
    /// Creates a rule of the application. It is sent with each prompt.
    #[must_use]
    pub fn new(id: impl Into<ItemId>, text: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), text: text.into(), message: None, source: RuleSource::Application }
    }

    /// Sets the user message that says the rule. The rule is then sent only with prompts that do not include
    /// this message.
    #[must_use]
    pub fn from_message(mut self, id: impl Into<ItemId>) -> Self {
        self.message = Some(id.into());
        self
    }

    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> &ItemId {
        &self.id
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the id of the user message that says the rule. Returns `None` if there is none.
    #[must_use]
    pub fn message(&self) -> Option<&ItemId> {
        self.message.as_ref()
    }

    /// Returns the source of the rule.
    #[must_use]
    pub fn source(&self) -> RuleSource {
        self.source
    }

    /// Creates a rule that cue words show in a message of the user. `number` counts those of the message,
    /// from 1.
    pub(crate) fn found(message: &ItemId, number: usize, text: &str) -> Self {
        let id = format!("rule:{message}:{number}").into();
        Self { id, text: text.into(), message: Some(message.clone()), source: RuleSource::CueWords }
    }

    /// Creates a rule that a model quotes from a message of the user. `number` counts those of the message,
    /// from 1.
    pub(crate) fn quoted(message: &ItemId, number: usize, text: &str) -> Self {
        let id = format!("rule:{message}:quote{number}").into();
        Self { id, text: text.into(), message: Some(message.clone()), source: RuleSource::Summary }
    }

    /// Returns the text with each run of white space as one space, in which equal rules are equal.
    pub(crate) fn folded(&self) -> String {
        fold_white_space(&self.text)
    }
}
