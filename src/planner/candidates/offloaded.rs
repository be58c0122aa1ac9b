//! Large tool results of which the prompt has only beginning and end.
//!
//! - Input: the options, the declared tools, and the last prompt.
//! - Output: the form of each result, which is that of its first prompt.
//! - Rules: S7.

use super::{Candidates, results::answered_exchange};
use crate::{
    config::{Config, ToolResults},
    conversation::Conversation,
    item::ItemId,
    message::{Message, Part, Role, ShortForm},
    plan::{Anchor, Offload, ResultForm},
    planner::request::PlanRequest,
    provider::wording::{self, RECALL},
};
use std::borrow::Cow;

/// The forms of tool results in one request.
#[derive(Debug, Default)]
pub(super) struct ResultForms {
    /// The forms, as the next prompt finds them.
    recorded: Vec<ResultForm>,
    /// The first position of each form, ascending.
    starts: Vec<u32>,
    /// True if the options ask for offloading, but no tool reads the results.
    lacks_tool: bool,
}

impl ResultForms {
    /// Continues the forms of the last prompt. Results after it have the form of this request.
    pub(super) fn for_request(request: &PlanRequest<'_>, config: &Config, last: Option<&Anchor>) -> Self {
        let (log, options) = (request.log, config.conversation);
        let wants = options.tool_results == ToolResults::Offload;
        let declares = request.tools.iter().any(|tool| tool.name == RECALL && tool.hosted.is_none());
        let limits = Offload { above: options.offload_above, keep: options.offload_keep };
        let offload = Some(limits).filter(|_| wants && declares);
        let mut recorded = last.map(|last| last.result_forms.clone()).unwrap_or_default();
        if recorded.last().and_then(|form| form.offload) != offload {
            let start = last.map_or(0, |last| first_unsent(log, last));
            // Without a message after the last prompt, no result can have another form yet.
            if start == 0 || start < log.turns().messages() {
                let from = (start > 0).then(|| log.message_id(start));
                recorded.push(ResultForm { from, offload });
            }
        }
        // A form whose first message is unknown, in another conversation or after a rewind, does not apply.
        let position = |form: &ResultForm| match &form.from {
            Some(id) => log.position_of(id),
            None => Some(0),
        };
        recorded.retain(|form| position(form).is_some());
        let mut starts: Vec<u32> = recorded.iter().filter_map(position).collect();
        // Damaged anchors may have another order. A form then also applies from the start of the next one.
        for at in (1..starts.len()).rev() {
            starts[at - 1] = starts[at - 1].min(starts[at]);
        }
        Self { recorded, starts, lacks_tool: wants && !declares }
    }

    /// Returns the limits that apply to a result.
    fn limits_at(&self, position: u32) -> Option<Offload> {
        let after = self.starts.partition_point(|start| *start <= position);
        self.recorded.get(after.checked_sub(1)?)?.offload
    }

    /// Checks if any result may be offloaded.
    pub(super) fn any(&self) -> bool {
        self.recorded.iter().any(|form| form.offload.is_some())
    }
}

impl Candidates<'_> {
    /// Returns the forms of tool results, for the next prompt.
    pub(crate) fn result_forms(&self) -> &[ResultForm] {
        &self.forms.recorded
    }

    /// Checks if the options ask for offloading, but the request declares no tool that reads the results.
    pub(crate) fn lacks_recall_tool(&self) -> bool {
        self.forms.lacks_tool
    }

    /// Returns an offloaded result as it is sent. Returns `None` for all other messages.
    pub(crate) fn offloaded(&self, position: u32) -> Option<Message> {
        let bytes = self.offloaded_bytes(position)?;
        let (message, id) = (self.log.message(position), self.log.message_id(position));
        let keep = usize::try_from(bytes).unwrap_or(usize::MAX);
        message.shortened(&id, ShortForm::Offloaded(bytes), || {
            with_shorter_texts(message, |text| wording::offloaded_result(&id, text, keep))
        })
    }

    /// Returns the bytes that an offloaded result keeps. Returns `None` for all other messages.
    pub(super) fn offloaded_bytes(&self, position: u32) -> Option<u64> {
        if !self.forms.any() {
            return None;
        }
        let message = self.log.message(position);
        if message.role() != Role::Tool || !message.is_loaded() {
            return None;
        }
        let limits = self.forms.limits_at(position)?;
        let bytes: usize = message.plain_texts().map(str::len).sum();
        let is_large = bytes as u64 > limits.above;
        (is_large && !self.is_read_back(position)).then_some(limits.keep)
    }

    /// Checks if a result is an answer of the tool that reads offloaded results. Offloaded, it could never be
    /// read.
    fn is_read_back(&self, position: u32) -> bool {
        let Some(at) = answered_exchange(self, position) else { return true };
        let exchange = self.log.turns().exchange(at);
        let calls = self.log.message(exchange.at).tool_calls().iter();
        calls.zip(&exchange.answers).any(|(call, answer)| *answer == Some(position) && call.name == RECALL)
    }
}

/// Returns the position of the first message that the last prompt cannot have sent.
fn first_unsent(log: &Conversation, last: &Anchor) -> u32 {
    let sent = |id: &ItemId| log.position_of(id);
    let sent = last.prompt.as_ref().and_then(|prompt| prompt.iter().rev().find_map(|piece| sent(&piece.id)));
    // A prompt was sent before each reply.
    let replied = log.messages().iter().rposition(|message| message.role() == Role::Assistant);
    let after = |position: Option<u32>| position.map_or(0, |position| position + 1);
    let live = last.live.as_ref().and_then(|id| log.position_of(id));
    after(sent.or(live)).max(after(replied.map(|at| at as u32)))
}

/// Returns a tool result with shorter texts. `shorten` returns a shorter form of a text, or `None`. If the
/// result has media, each text is shortened by itself; otherwise all texts are one. Returns `None` if none of
/// its texts becomes shorter.
pub(super) fn with_shorter_texts(
    message: &Message,
    shorten: impl Fn(&str) -> Option<String>,
) -> Option<Message> {
    if !message.accepts_new_text() {
        return None;
    }
    if !message.may_have_media() {
        let texts: Vec<&str> = message.plain_texts().collect();
        let whole = if let [text] = texts[..] { Cow::Borrowed(text) } else { texts.join("\n").into() };
        return shorten(&whole).map(|text| message.with_new_text(text));
    }
    let parts = message.as_parts();
    let shorter: Vec<Option<String>> = parts.iter().map(|part| shorten(text_of(part)?)).collect();
    if shorter.iter().all(Option::is_none) {
        return None;
    }
    let parts = shorter.into_iter().zip(parts);
    let parts = parts.map(|(shorter, part)| shorter.map_or(part, Part::Text));
    Some(message.replacing_content(parts.collect()))
}

fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text(text) => Some(text),
        Part::Image { .. } | Part::Opaque { .. } => None,
    }
}
