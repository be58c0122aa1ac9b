//! Requests for a provider's own compaction (rule C11).

use super::CompactionRequest;
use crate::{
    error::Error,
    message::{Role, WireFormat},
    provider::render,
    text::plain::short,
};
use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// A request for a provider's own compaction: its path, header and body. The caller adds the model's name
/// and, for Anthropic, a `max_tokens` of several thousand, which covers both reasoning and summary.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OnDemandCompaction {
    /// The path of the provider's API.
    pub path: String,
    /// The required header, as name and value.
    pub header: Option<(String, String)>,
    body: Value,
}

impl OnDemandCompaction {
    /// Returns the body. It serialises as a JSON object, and `Display` prints the same object.
    #[must_use]
    pub fn body(&self) -> impl Serialize + fmt::Display {
        &self.body
    }
}

impl CompactionRequest {
    /// Renders this job for the provider's own compaction. The provider's model replaces the messages by
    /// items that only this provider can read. Pass its response to
    /// [`crate::conversation::ProviderSummary::from_json`], and the result to
    /// [`super::Compactor::apply_provider_summary`]. Later reasoning of the model follows these items, so the
    /// provider's check accepts it.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Input` in these cases:
    ///
    /// - The provider has no such request.
    /// - The job keeps a user message before its summary; no message may precede the provider's items.
    /// - The first kept message has the role of the last compacted one, or is a system message (Anthropic).
    /// - The messages do not fit the context window of the model.
    ///
    /// `ErrorKind::Count` if the counter fails.
    pub fn on_demand(&self) -> Result<OnDemandCompaction, Error> {
        let model = self.made_with().model();
        let rule = model
            .on_demand_compaction()
            .filter(|_| matches!(model.wire_format, WireFormat::Anthropic | WireFormat::OpenAiResponses));
        let Some(rule) = rule else {
            let detail = "its provider has no compaction request; request a summary from a model instead";
            return Err(Error::input(format!("model `{}`", short(&model.name)), detail));
        };
        if let Some(head) = self.head() {
            let detail = "would precede the provider's compaction, which must come first; compact at the end of the turn";
            return Err(Error::input(format!("message `{}`", short(head.as_str())), detail));
        }
        self.check_the_cut()?;
        let Some((mut prompt, _)) = self.as_sent(None)? else {
            let detail = "do not fit the context window of the compacting model; compact earlier";
            return Err(Error::input("the messages", detail));
        };
        // The response is not a reply, so the synthetic user message at the end is not necessary.
        let ends = self.last_role() == Some(Role::Assistant);
        if ends && prompt.messages.last().is_some_and(|last| last.role() == Role::User) {
            prompt.messages.pop();
        }
        let body = match model.wire_format {
            WireFormat::Anthropic => serde_json::to_value(render::anthropic(&prompt)),
            _ => serde_json::to_value(render::openai_responses(&prompt)),
        };
        let mut body = body.map_err(|error| Error::input("the messages", error.to_string()))?;
        if let Some((key, json)) = rule.body {
            body[key] = serde_json::from_str(&json).unwrap_or_default();
        }
        Ok(OnDemandCompaction { path: rule.path, header: rule.header, body })
    }
}
