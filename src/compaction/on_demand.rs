//! The form in which a provider compacts itself (rule C11).

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

/// A request that asks a provider to compact: its path, its header and its body. The caller adds the model's
/// name, and for Anthropic `max_tokens` of several thousand: they cover the model's reasoning and the
/// summary.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OnDemandCompaction {
    /// The path of the provider's API.
    pub path: String,
    /// The header that has to be sent, name and value.
    pub header: Option<(String, String)>,
    body: Value,
}

impl OnDemandCompaction {
    /// Returns the body: it serialises as a JSON object, and prints as one.
    #[must_use]
    pub fn body(&self) -> impl Serialize + fmt::Display {
        &self.body
    }
}

impl CompactionRequest {
    /// Renders this job for the provider's own compaction: its model replaces the messages by items that only
    /// it reads. Pass its response to [`crate::conversation::ProviderSummary::from_json`] and the result to
    /// [`super::Compactor::apply_provider_summary`]. The model's later reasoning is made after these items,
    /// so the provider's check accepts it.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Input` if the provider has no such form; if the job keeps a question before its summary,
    /// because no message may precede the provider's items; and if the first message that is kept has the
    /// role of the last one that is compacted, or is a system message (Anthropic). `ErrorKind::Count` if the
    /// counter fails.
    pub fn on_demand(&self) -> Result<OnDemandCompaction, Error> {
        let model = self.made_with().model();
        let rule = model
            .on_demand_compaction()
            .filter(|_| matches!(model.wire_format, WireFormat::Anthropic | WireFormat::OpenAiResponses));
        let Some(rule) = rule else {
            let detail = "its provider is not asked for compactions; ask a model for a summary instead";
            return Err(Error::input(format!("model `{}`", short(&model.name)), detail));
        };
        if let Some(head) = self.head() {
            let detail =
                "stays before what the provider makes, and nothing may: compact at the end of the turn";
            return Err(Error::input(format!("message `{}`", short(head.as_str())), detail));
        }
        self.check_the_cut()?;
        let Some((mut prompt, _)) = self.as_sent(None)? else {
            let detail = "do not fit the window of the model that is to compact them: compact earlier";
            return Err(Error::input("the messages", detail));
        };
        // The reply is no answer, so the prompt needs no question at its end.
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
