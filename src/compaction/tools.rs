//! Two tools with which an agent looks after its own window: ready definitions, and what answers them.

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

/// The name of the tool that tells how full the window is.
const STATS: &str = "context_stats";

/// The name of the tool that compacts.
const COMPACT: &str = "compact_context";

/// What became of a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ContextCall {
    /// The result: push it as the answer to the call.
    Answer(Message),
    /// The agent wants its conversation compacted, with this summary of its own if it gave one. Push the
    /// message as the answer to the call; then, the call being answered, [`Compactor::compact_for_agent`]
    /// does it.
    Compact {
        /// The answer to the call.
        answer: Message,
        /// What the agent wants to be remembered.
        summary: Option<String>,
    },
}

impl Compactor<'_> {
    /// The definitions of `context_stats` and `compact_context`, to be declared beside an application's own
    /// tools.
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

    /// Answers a call of one of [`Compactor::tools`]; none for a call of anything else. Arguments that are
    /// no such object are answered with what was expected: a model reads that.
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

    /// Compacts because the agent asked for it, with its own summary or a digest; says what state stands in
    /// the way where nothing can be compacted now. Empty tools and limits without a value are those of the
    /// prompt that was sent last.
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
            // The agent has read its prompt with every earlier summary, whatever a request for one holds.
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

/// What became of a compaction that somebody asked for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CompactionOutcome {
    /// It was made: its record in the log.
    Compacted(Box<Compaction>),
    /// It was not, and nothing changed: what is in its way.
    Blocked(CompactionState),
}
