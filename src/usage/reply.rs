//! What is told of a reply when it is committed.

use super::{ContextEvent, StopReason, Usage};
use crate::item::ItemId;

/// What a provider said of a reply: its usage report, and why the reply ended. `None`, a [`Usage`], a [`StopReason`] or a
/// pair of both can stand for it.
///
/// ```
/// use context_window::{Usage, usage::{ReplyReport, StopReason}};
///
/// let report = ReplyReport::new().with_usage(Usage::openai(1_000, 800, 50)).with_stop(StopReason::named("length"));
/// assert_eq!(report, (Usage::openai(1_000, 800, 50), StopReason::MaxTokens).into());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyReport {
    /// What was billed.
    pub usage: Option<Usage>,
    /// Why the reply ended.
    pub stop: Option<StopReason>,
}

impl ReplyReport {
    /// Nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The provider's usage report.
    #[must_use]
    pub fn with_usage(self, usage: Usage) -> Self {
        Self { usage: Some(usage), ..self }
    }

    /// Why the reply ended: [`StopReason::named`] reads a provider's word.
    #[must_use]
    pub fn with_stop(self, stop: StopReason) -> Self {
        Self { stop: Some(stop), ..self }
    }
}

impl From<Option<Usage>> for ReplyReport {
    fn from(usage: Option<Usage>) -> Self {
        Self { usage, stop: None }
    }
}

impl From<Usage> for ReplyReport {
    fn from(usage: Usage) -> Self {
        Self::new().with_usage(usage)
    }
}

impl From<StopReason> for ReplyReport {
    fn from(stop: StopReason) -> Self {
        Self::new().with_stop(stop)
    }
}

impl From<(Usage, StopReason)> for ReplyReport {
    fn from((usage, stop): (Usage, StopReason)) -> Self {
        Self::new().with_usage(usage).with_stop(stop)
    }
}

/// A reply that joined the log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Committed {
    /// Its id.
    pub id: ItemId,
    /// What a user interface is to be told (rule C10): the figures of the window as the provider reported them, a level that
    /// was crossed, a reply that reached its largest length or filled the window.
    pub events: Vec<ContextEvent>,
}
