//! The form of each tool result: whole, or only beginning and end.
//!
//! - Input: the options, the declared tools, and the last prompt.
//! - Output: the limits of offloading at each position. A result has those of its first prompt.
//! - Rules: S7.

use crate::{
    config::{Config, ToolResults},
    conversation::Conversation,
    message::{Message, Role, Tool},
    plan::{Anchor, Offload, ResultForm},
    planner::request::PlanRequest,
};
use std::{cell::OnceCell, ops::Range};

/// The forms of tool results in one request.
#[derive(Debug, Default)]
pub(super) struct ResultForms {
    /// The forms, as the next prompt finds them.
    pub(super) recorded: Vec<ResultForm>,
    /// The first position of each form, ascending.
    starts: Vec<u32>,
    /// True if the options ask for offloading.
    pub(super) is_wanted: bool,
    /// True if the request declares the tool that reads offloaded results.
    pub(super) has_reader: bool,
    /// The large offloaded results, each with the bytes that the prompt lacks of all up to it.
    pub(super) saved: OnceCell<Vec<(u32, u64)>>,
}

impl ResultForms {
    /// Continues the forms of the last prompt. Results after it have the form of this request.
    pub(super) fn for_request(request: &PlanRequest<'_>, config: &Config, last: Option<&Anchor>) -> Self {
        let (log, options) = (request.log, config.conversation);
        let is_wanted = options.tool_results == ToolResults::Offload;
        let has_reader = request.tools.iter().any(Tool::reads_results);
        let limits = Offload { above: options.offload_above, keep: options.offload_keep };
        let offload = Some(limits).filter(|_| is_wanted && has_reader);
        // A form whose first message is unknown, in another conversation, does not apply.
        let known = |form: &ResultForm| {
            Some((form.clone(), form.from.as_ref().map_or(Some(0), |id| log.position_of(id))?))
        };
        let last_forms = last.map_or(&[][..], |last| &last.result_forms);
        let (mut recorded, mut starts): (Vec<ResultForm>, Vec<u32>) =
            last_forms.iter().filter_map(known).unzip();
        start_with_the_next(&mut starts);
        let newest = |recorded: &[ResultForm]| recorded.last().and_then(|form| form.offload);
        if newest(&recorded) != offload {
            let start = last.map_or(0, |last| first_unsent(log, last));
            // A form that changes no result is forgotten. Otherwise an option that alternates would leave
            // many.
            while let (Some(form), Some(from)) = (recorded.pop(), starts.pop()) {
                if any_differs(log, from..start, form.offload, newest(&recorded)) {
                    recorded.push(form);
                    starts.push(from);
                    break;
                }
            }
            // Without a message after the last prompt, no result can have another form yet.
            if newest(&recorded) != offload && (start == 0 || start < log.turns().messages()) {
                recorded.push(ResultForm { from: (start > 0).then(|| log.message_id(start)), offload });
                starts.push(start);
                start_with_the_next(&mut starts);
            }
        }
        Self { recorded, starts, is_wanted, has_reader, saved: OnceCell::new() }
    }

    /// Returns the limits that apply to a result.
    pub(super) fn limits_at(&self, position: u32) -> Option<Offload> {
        let after = self.starts.partition_point(|start| *start <= position);
        self.recorded.get(after.checked_sub(1)?)?.offload
    }

    /// Checks if any result may be offloaded.
    pub(super) fn any(&self) -> bool {
        self.recorded.iter().any(|form| form.offload.is_some())
    }
}

/// Returns the bytes of the texts of a message.
pub(super) fn count_bytes(message: &Message) -> u64 {
    message.plain_texts().map(|text| text.len() as u64).sum()
}

/// Checks if any result in a range has another form under one limit than under another.
fn any_differs(log: &Conversation, range: Range<u32>, form: Option<Offload>, other: Option<Offload>) -> bool {
    let above = form.iter().chain(&other).map(|offload| offload.above).min();
    let Some(above) = above.filter(|_| form != other) else { return false };
    range
        .map(|position| log.message(position))
        .any(|message| message.role() == Role::Tool && count_bytes(message) > above)
}

/// Lets each form begin with the next one at the latest. In a damaged anchor, a later form may begin earlier;
/// it then decides.
fn start_with_the_next(starts: &mut [u32]) {
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
