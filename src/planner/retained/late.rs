//! System texts and tools that joined the head of a conversation after it was first sent.
//!
//! - Input: the request, and the last prompt.
//! - Output: [`LateAdditions`]: the system texts and tools to send at the end.
//! - Rules: S12, S10.
//!
//! The head of a prompt, its tools and system texts, comes before everything else. Any change there
//! invalidates the cache and all reasoning after it. So additions are sent at the end, if the target takes
//! instructions and tools there, and stay there like state.

use crate::{
    item::ItemId,
    message::{Role, Tool, WireFormat},
    plan::{Anchor, PromptPiece, TOOLS, Target, ToolsHash},
    planner::request::PlanRequest,
    provider::conform::TargetProfile,
};
use serde_json::Value;

/// System texts and tools that joined the head of a conversation after it was first sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct LateAdditions<'a> {
    /// The prompt that this one continues.
    last: Option<&'a [PromptPiece]>,
    /// The tools that are sent at the end.
    tools: &'a [Tool],
    /// True if something can be sent at the end now. Targets take instructions only after a user message or
    /// tool results.
    pub(crate) takes_more: bool,
}

impl<'a> LateAdditions<'a> {
    /// Finds the parts of the head that are sent at the end. There are none unless texts are retained.
    pub(crate) fn new(
        request: &'a PlanRequest<'a>,
        target: &Target,
        profile: &TargetProfile,
        is_on: bool,
    ) -> Self {
        let log = request.log;
        let takes_more =
            log.messages().last().is_some_and(|last| matches!(last.role(), Role::User | Role::Tool));
        if !is_on || !profile.takes_late_instructions() {
            return Self::default();
        }
        // After a compaction or a rewind, the beginning of the prompt changes anyway.
        let own = log.anchor().filter(|_| log.archive_events() == 0 || log.sent_since_the_record());
        // An anchor of the caller counts only if it is the conversation's own: otherwise the log has no
        // record of the sent texts.
        let same = |own: &&Anchor| request.previous.as_ref().is_none_or(|given| given.prompt == own.prompt);
        let last = own.filter(same).filter(|last| last.target.as_ref().is_some_and(|of| of.is(target)));
        let last = last.and_then(|last| last.prompt.as_deref());
        let on_top = match last {
            Some(last) if profile.takes_late_tools() => on_top(request.tools, last, profile),
            _ => request.tools.len(),
        };
        let late = Self { last, tools: &request.tools[on_top..], takes_more };
        let id = ItemId::from(TOOLS);
        let sent = log.sent_with().state_with_id(&id).map(|(_, sent)| sent.text.as_str());
        // If new tools cannot be sent at the end now, all tools are declared before the messages.
        match late.new_tools(profile, sent) {
            Some(_) if !takes_more => Self { tools: &[], ..late },
            _ => late,
        }
    }

    /// Checks if a system text is sent at the end, because the last prompt began without it.
    pub(crate) fn is_late(&self, id: &ItemId) -> bool {
        self.last.is_some_and(|last| !last.iter().any(|piece| piece.id == *id))
    }

    /// Returns the tools that are declared before the messages.
    pub(crate) fn on_top(&self, tools: &'a [Tool]) -> &'a [Tool] {
        &tools[..tools.len() - self.tools.len()]
    }

    /// Checks if all tools of a remembered list are still sent at the end.
    pub(crate) fn has_tools(&self, text: &str) -> bool {
        let sent: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
        !sent.is_empty() && sent.iter().all(|sent| self.tools.iter().any(|tool| *sent == stored(tool)))
    }

    /// Returns the tools at the end that none of the lists in `sent` contains, as a JSON list. Returns `None`
    /// if all of them were sent.
    pub(crate) fn new_tools<'t>(
        &self,
        profile: &TargetProfile,
        sent: impl Iterator<Item = &'t str>,
    ) -> Option<String> {
        let sent: Vec<Value> =
            sent.flat_map(|text| serde_json::from_str::<Vec<Value>>(text).unwrap_or_default()).collect();
        let declared = self.tools.iter().filter(|tool| profile.takes_tool(tool));
        let new: Vec<Value> = declared.map(stored).filter(|tool| !sent.contains(tool)).collect();
        (!new.is_empty()).then(|| Value::Array(new).to_string())
    }
}

/// Returns the number of tools that the last prompt began with: the longest beginning of the list with the
/// hash of that prompt. Returns all of them if there is none, because a changed tool cannot be sent at the
/// end.
fn on_top(tools: &[Tool], last: &[PromptPiece], profile: &TargetProfile) -> usize {
    let Some(declared) = last.first().filter(|piece| piece.id.as_str() == TOOLS) else {
        // Anthropic requires at least one tool before the messages.
        return if profile.wire_format() == WireFormat::OpenAiResponses { 0 } else { tools.len() };
    };
    let mut hash = ToolsHash::default();
    let mut on_top = None;
    // The longest match counts: tools that the target does not take leave the hash unchanged.
    for (at, tool) in tools.iter().enumerate() {
        if profile.takes_tool(tool) {
            hash.add(&profile.tool(tool));
        }
        on_top = (hash.text() == *declared.hash).then_some(at + 1).or(on_top);
    }
    on_top.unwrap_or(tools.len())
}

/// Returns a tool as the log remembers it.
fn stored(tool: &Tool) -> Value {
    let hosted = tool.hosted.as_ref().map(|(wire_format, json)| (wire_format, json.as_str()));
    let mut stored = serde_json::json!({
        "name": tool.name, "description": tool.description, "schema": tool.schema, "hosted": hosted,
    });
    if let Some((wire_format, json)) = &tool.written {
        stored["written"] = serde_json::json!([wire_format, json]);
    }
    stored
}

/// Parses the tools of a remembered list.
pub(crate) fn remembered(text: &str) -> Vec<Tool> {
    let stored: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let tool = |stored: Value| {
        let text = |key: &str| stored[key].as_str().unwrap_or_default().to_owned();
        let hosted = serde_json::from_value(stored["hosted"].clone()).unwrap_or_default();
        let written = serde_json::from_value(stored["written"].clone()).unwrap_or_default();
        Tool { hosted, written, ..Tool::new(text("name"), text("description"), text("schema")) }
    };
    stored.into_iter().map(tool).collect()
}
