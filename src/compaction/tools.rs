//! Two tools for an agent that manages its own context window: their definitions, and the answers to their
//! calls.

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

/// The name of the tool that returns the context window usage.
const STATS: &str = "context_stats";

/// The name of the tool that compacts the conversation.
const COMPACT: &str = "compact_context";

/// The outcome of a call to one of these tools.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ContextCall {
    /// The tool result. Push it to the log.
    Answer(Message),
    /// The agent requests a compaction, optionally with its own summary. Push the answer to the log, then
    /// call [`Compactor::compact_for_agent`].
    Compact {
        /// The tool result of the call.
        answer: Message,
        /// The agent's own summary, if it provided one.
        summary: Option<String>,
    },
}

impl Compactor<'_> {
    /// Returns the definitions of `context_stats` and `compact_context`. Declare them in addition to your
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

    /// Answers a call of one of [`Compactor::tools`]. Returns `None` for a call of another tool. If the
    /// arguments are invalid, the answer describes the expected form, for the model to read.
    ///
    /// # Errors
    ///
    /// The errors of [`crate::ContextWindowManager::build_plan`].
    pub fn answer_call(
        &self,
        request: &PlanRequest<'_>,
        call: &ToolCall,
    ) -> Result<Option<ContextCall>, Error> {
        // Some models send no arguments for a call without parameters.
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
                    _ => return failed("`summary` to be a string"),
                };
                let text = json!({"compaction": "follows this answer"}).to_string();
                Ok(Some(ContextCall::Compact { answer: Message::tool(&call.id, text), summary }))
            }
            _ => Ok(None),
        }
    }

    /// Compacts at the request of the agent, with its own summary or a digest. If a compaction is blocked,
    /// returns the blocking state. Empty tools, and limits without a value, are replaced by those of the last
    /// sent prompt.
    ///
    /// # Errors
    ///
    /// The errors of [`Compactor::apply_summary`].
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
            // No request check here: the agent has read every earlier summary in its prompt, even if a
            // summary request could not contain them.
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

/// The outcome of an explicitly requested compaction.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CompactionOutcome {
    /// The compaction was made, with this record in the log.
    Compacted(Box<Compaction>),
    /// The compaction was blocked by this state, and nothing changed.
    Blocked(CompactionState),
}
