//! Limits, tools and focus hint of the last prompt. Without them, neither the size of the full conversation
//! nor the context window is known.

use super::{Conversation, Event};
use crate::{
    message::Tool,
    plan::{ContextPlan, PromptSettings},
    provider::model::RequestLimits,
};

/// The settings, computed from the log's events.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordedSettings {
    last: PromptSettings,
    /// Every distinct tool that the log contains, in order of first use.
    tools: Vec<Tool>,
}

impl RecordedSettings {
    /// Returns the event that changes the last settings to `next`, or `None` if they are equal. Tools that
    /// the log already contains are referenced by index, so that a long list is stored once.
    fn change_to(&self, next: &PromptSettings) -> Option<Event> {
        if *next == self.last {
            return None;
        }
        let limits = (next.limits != self.last.limits).then_some(next.limits);
        let focus = (next.focus != self.last.focus).then(|| next.focus.clone().unwrap_or_default());
        let mut new_tools: Vec<Tool> = Vec::new();
        let mut number = |tool: &Tool| {
            let known = self.tools.iter().chain(&new_tools).position(|known| known == tool);
            let number = known.unwrap_or_else(|| {
                new_tools.push(tool.clone());
                self.tools.len() + new_tools.len() - 1
            });
            u32::try_from(number).unwrap_or(u32::MAX)
        };
        let tools =
            (next.tools != self.last.tools).then(|| next.tools.iter().map(&mut number).collect::<Vec<u32>>());
        Some(Event::PromptSettings { limits, focus, new_tools, tools })
    }

    /// Applies the changed settings. Indexes without a tool are ignored, because the log may come from a
    /// file.
    pub(super) fn apply(
        &mut self,
        limits: Option<RequestLimits>,
        focus: Option<&str>,
        new_tools: &[Tool],
        tools: Option<&[u32]>,
    ) {
        self.tools.extend_from_slice(new_tools);
        if let Some(limits) = limits {
            self.last.limits = limits;
        }
        if let Some(focus) = focus {
            self.last.focus = Some(focus.to_owned()).filter(|focus| !focus.is_empty());
        }
        if let Some(tools) = tools {
            let tool = |number: &u32| self.tools.get(*number as usize).cloned();
            self.last.tools = tools.iter().filter_map(tool).collect();
        }
    }
}

impl Conversation {
    /// Records limits, tools and focus hint of a plan if they differ from those of the previous plan.
    pub(super) fn record_settings(&mut self, plan: &ContextPlan) {
        if let Some(change) = self.settings.change_to(&plan.carryover.settings) {
            self.record(change);
        }
    }

    /// Returns limits, tools and focus hint of the last sent prompt.
    pub(crate) fn last_settings(&self) -> &PromptSettings {
        &self.settings.last
    }

    /// Returns the number of distinct tools that the log contains.
    pub(crate) fn recorded_tools(&self) -> usize {
        self.settings.tools.len()
    }
}
