//! Large tool results of which the prompt has only beginning and end.
//!
//! - Input: the options, the declared tools, and the last prompt.
//! - Output: the form of each result, which is that of its first prompt.
//! - Rules: S7.

use super::{Candidates, results::answered_exchange};
use crate::{
    config::{Config, ToolResults},
    conversation::Conversation,
    message::{Message, Part, Role, ShortForm, Tool},
    plan::{Anchor, Offload, ResultForm},
    planner::request::PlanRequest,
    provider::{
        meter,
        wording::{self, RECALL},
    },
};
use std::{borrow::Cow, cell::OnceCell, ops::Range};

/// The forms of tool results in one request.
#[derive(Debug, Default)]
pub(super) struct ResultForms {
    /// The forms, as the next prompt finds them.
    recorded: Vec<ResultForm>,
    /// The first position of each form, ascending.
    starts: Vec<u32>,
    /// True if the options ask for offloading.
    wants: bool,
    /// True if the request declares the tool that reads offloaded results.
    declares: bool,
    /// The large offloaded results, each with the bytes that the prompt lacks of all up to it.
    saved: OnceCell<Vec<(u32, u64)>>,
}

impl ResultForms {
    /// Continues the forms of the last prompt. Results after it have the form of this request.
    pub(super) fn for_request(request: &PlanRequest<'_>, config: &Config, last: Option<&Anchor>) -> Self {
        let (log, options) = (request.log, config.conversation);
        let wants = options.tool_results == ToolResults::Offload;
        let declares = request.tools.iter().any(reads_results);
        let limits = Offload { above: options.offload_above, keep: options.offload_keep };
        let offload = Some(limits).filter(|_| wants && declares);
        // A form whose first message is unknown, in another conversation, does not apply.
        let known = |form: &ResultForm| {
            Some((form.clone(), form.from.as_ref().map_or(Some(0), |id| log.position_of(id))?))
        };
        let last_forms = last.map_or(&[][..], |last| &last.result_forms);
        let (mut recorded, mut starts): (Vec<ResultForm>, Vec<u32>) =
            last_forms.iter().filter_map(known).unzip();
        sort(&mut starts);
        let newest = |recorded: &[ResultForm]| recorded.last().and_then(|form| form.offload);
        if newest(&recorded) != offload {
            let start = last.map_or(0, |last| first_unsent(log, last));
            // A form that changes no result is forgotten. Otherwise an option that alternates would leave
            // many.
            while let (Some(form), Some(from)) = (recorded.pop(), starts.pop()) {
                if differs(log, from..start, form.offload, newest(&recorded)) {
                    recorded.push(form);
                    starts.push(from);
                    break;
                }
            }
            // Without a message after the last prompt, no result can have another form yet.
            if newest(&recorded) != offload && (start == 0 || start < log.turns().messages()) {
                recorded.push(ResultForm { from: (start > 0).then(|| log.message_id(start)), offload });
                starts.push(start);
                sort(&mut starts);
            }
        }
        Self { recorded, starts, wants, declares, saved: OnceCell::new() }
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

    /// Checks if the request declares the tool that reads offloaded results.
    pub(crate) fn declares_recall(&self) -> bool {
        self.forms.declares
    }

    /// Checks if a result is sent whole only because no declared tool could read the rest.
    pub(crate) fn lacks_recall_tool(&self, position: u32) -> bool {
        self.forms.wants
            && !self.forms.declares
            && self.is_large(position, self.config.conversation.offload_above)
            && self.offloaded(position).is_none()
            && !self.is_read_back(position)
    }

    /// Returns the bytes of the messages in a range of positions, with offloaded results as they are sent.
    pub(crate) fn bytes(&self, range: &Range<u32>) -> u64 {
        let bytes = self.log.turns().bytes(range);
        if !self.forms.any() {
            return bytes;
        }
        let saved = self.forms.saved.get_or_init(|| {
            let mut sum = 0;
            let large = self.log.turns().large_results().iter();
            let results = large.filter_map(|at| {
                let short = self.offloaded(*at)?;
                sum += meter::bytes(self.log.message(*at)).saturating_sub(meter::bytes(&short));
                Some((*at, sum))
            });
            results.collect()
        });
        let before = |position: u32| {
            let after = saved.partition_point(|(at, _)| *at < position);
            after.checked_sub(1).map_or(0, |last| saved[last].1)
        };
        bytes.saturating_sub(before(range.end) - before(range.start))
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
        let is_offloaded = self.is_large(position, limits.above) && !self.is_read_back(position);
        is_offloaded.then_some(limits.keep)
    }

    /// Checks if the texts of a result have more than this number of bytes.
    fn is_large(&self, position: u32, above: u64) -> bool {
        count_bytes(self.log.message(position)) > above
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

/// Checks if a tool reads offloaded results. An application may have a tool of its own with that name.
fn reads_results(tool: &Tool) -> bool {
    tool.name == RECALL && tool.hosted.is_none() && tool.schema.contains("\"handle\"")
}

/// Returns the bytes of the texts of a message.
fn count_bytes(message: &Message) -> u64 {
    message.plain_texts().map(|text| text.len() as u64).sum()
}

/// Checks if the results in a range have another form under one limit than under another.
fn differs(log: &Conversation, range: Range<u32>, form: Option<Offload>, other: Option<Offload>) -> bool {
    let above = form.iter().chain(&other).map(|offload| offload.above).min();
    let Some(above) = above.filter(|_| form != other) else { return false };
    range
        .map(|position| log.message(position))
        .any(|message| message.role() == Role::Tool && count_bytes(message) > above)
}

/// Sorts the starts of forms. A damaged anchor may have another order; a form then begins with the next one
/// at the latest, and the next one decides.
fn sort(starts: &mut [u32]) {
    for at in (1..starts.len()).rev() {
        starts[at - 1] = starts[at - 1].min(starts[at]);
    }
}

/// Returns the position of the first message that the last prompt cannot have sent.
fn first_unsent(log: &Conversation, last: &Anchor) -> u32 {
    // The order of a prompt may differ from that of the log, so the last message is not the last item.
    let sent = last
        .prompt
        .as_ref()
        .and_then(|prompt| prompt.iter().filter_map(|piece| log.position_of(&piece.id)).max());
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
    let changed: Vec<Option<String>> = parts.iter().map(|part| shorten(text_of(part)?)).collect();
    if changed.iter().all(Option::is_none) {
        return None;
    }
    let parts = changed.into_iter().zip(parts);
    let parts = parts.map(|(text, part)| text.map_or(part, Part::Text));
    Some(message.replacing_content(parts.collect()))
}

fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text(text) => Some(text),
        Part::Image { .. } | Part::Opaque { .. } => None,
    }
}
