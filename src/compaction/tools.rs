//! Two tools with which an agent manages its own window: their definitions, and the answers to their calls.

use super::{CompactionState, Compactor};
use crate::{
    conversation::{Compaction, CompactionKind, Conversation},
    error::Error,
    message::{Message, Tool, ToolCall},
    planner::request::PlanRequest,
    provider::model::RequestLimits,
    text::size,
};
use serde_json::{Value, json};

/// The name of the tool that returns the use of the window.
const STATS: &str = "context_stats";

/// The name of the tool that compacts.
const COMPACT: &str = "compact_context";

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ContextCall {
    /// The result: push it as the answer to the call.
    Answer(Message),
    /// The agent wants its conversation compacted, with this summary of its own if it gave one. Push the
    /// message as the answer to the call; then call [`Compactor::compact_for_agent`].
    Compact {
        /// The answer to the call.
        answer: Message,
        /// The agent's own summary.
        summary: Option<String>,
    },
}

impl Compactor<'_> {
    /// Returns the definitions of `context_stats` and `compact_context`, to be declared in addition to an
    /// application's own tools.
    #[must_use]
    pub fn tools() -> [Tool; 2] {
        let none = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let summary = json!({
            "type": "object",
            "properties": {"summary": {
                "type": "string",
                "description": "What has to be remembered: the task, what was done, decisions, names, next steps. \
                                Without it a digest is made."
            }},
            "additionalProperties": false
        });
        [
            Tool::new(
                STATS,
                "How full your context window is: tokens, limit, percent, level, messages, compactions.",
                none.to_string(),
            ),
            Tool::new(
                COMPACT,
                "Replaces the older part of this conversation by a summary. Nothing is deleted; the user keeps every word. \
                 Use it between two steps of a long task, before the window is full.",
                summary.to_string(),
            ),
        ]
    }

    /// Answers a call of one of [`Compactor::tools`]. Returns `None` for a call of another tool. Arguments
    /// that are not the expected object are answered with the expected form, for the model to read.
    ///
    /// # Errors
    ///
    /// As [`crate::ContextWindowManager::build_plan`].
    pub fn answer_call(
        &self,
        request: &PlanRequest<'_>,
        call: &ToolCall,
    ) -> Result<Option<ContextCall>, Error> {
        let arguments = if call.arguments.trim().is_empty() { "{}" } else { call.arguments.as_str() };
        let arguments: Value = size::tree(arguments).unwrap_or_default();
        let failed = |expected: &str| {
            let text = json!({"error": format!("expected {expected}")}).to_string();
            Ok(Some(ContextCall::Answer(Message::tool(&call.id, text).into_failed())))
        };
        match call.name.as_str() {
            STATS | COMPACT if !arguments.is_object() => failed("a JSON object of arguments"),
            STATS => {
                let stats = json!(self.manager.stats(request)?);
                Ok(Some(ContextCall::Answer(Message::tool(&call.id, stats.to_string()))))
            }
            COMPACT => {
                let summary = match &arguments["summary"] {
                    Value::Null => None,
                    Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
                    _ => return failed("`summary` to be a text"),
                };
                let text = json!({"compaction": "follows this answer"}).to_string();
                Ok(Some(ContextCall::Compact { answer: Message::tool(&call.id, text), summary }))
            }
            _ => Ok(None),
        }
    }

    /// Compacts because the agent asked for it, with its own summary or a digest. If nothing can be compacted
    /// now, returns the state that blocks it. Empty tools and limits without a value are those of the prompt
    /// that was sent last.
    ///
    /// # Errors
    ///
    /// As [`Compactor::apply_summary`].
    pub fn compact_for_agent(
        &self,
        log: &mut Conversation,
        tools: &[Tool],
        limits: RequestLimits,
        summary: Option<&str>,
    ) -> Result<CompactionOutcome, Error> {
        let request = PlanRequest::like_last(log).with_tools(tools).with_limits(limits);
        let (state, job) = self.decide(&self.manager.completed(&request), None, super::Initiator::Asked)?;
        let Some(job) = job else { return Ok(CompactionOutcome::Blocked(state)) };
        let record = match summary {
            // The agent has read every earlier summary in its prompt, which a request for a summary may not
            // hold.
            Some(summary) => {
                let text = super::summary_text(summary).map(str::to_owned);
                let archived =
                    text.and_then(|text| self.archive_by(log, &job, CompactionKind::Summary, Some(text)));
                super::noted(log, archived)?
            }
            None => self.compact_without_model(log, &job)?,
        };
        Ok(CompactionOutcome::Compacted(Box::new(record)))
    }
}

/// The outcome of a compaction that somebody asked for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CompactionOutcome {
    /// It was made: its record in the log.
    Compacted(Box<Compaction>),
    /// It was not made, and nothing changed: the state that blocks it.
    Blocked(CompactionState),
}
