//! Who a prompt is for: what one target takes, and messages made so that it takes them (rules H3 to H7). Sound messages
//! come back as they are.

use crate::{
    message::{Mark, Message, Prompt, Role, Tool, Wants, WireFormat},
    provider::model::{Accepts, Form, Model, SystemPlace},
};
use std::borrow::Cow;

mod opaque;
mod content;
mod letters;
mod call_ids;
mod schema;
mod sequence;
mod seams;

pub(crate) use content::{Changes, inline_image, is_object};
pub(crate) use schema::{Declared, DroppedSchema};
pub(crate) use seams::{SeamChanges, Seams};
pub(crate) use sequence::{Inserted, Missing, Normalized};

/// One target: its wire format, and what it accepts in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetProfile {
    wire_format: WireFormat,
    accepts: Accepts,
    /// Tools may be added at the end of the prompt.
    late_tools: bool,
}

/// Where a message is: what a target takes of it depends on that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnPosition {
    /// Before every turn: system texts, focus hint, notes.
    Preamble,
    /// In an earlier turn.
    Past,
    /// In the live turn.
    Live,
}

impl TargetProfile {
    pub(crate) fn of(model: &Model) -> Self {
        Self {
            wire_format: model.wire_format,
            accepts: model.accepts(),
            late_tools: model.takes_late_tools(),
        }
    }

    /// A target of this wire format of which nothing else is known.
    pub(crate) fn unknown(wire_format: WireFormat) -> Self {
        let form = Form::of(wire_format);
        Self { wire_format, accepts: form.constraints.decided(), late_tools: true }
    }

    pub(crate) fn wire_format(&self) -> WireFormat {
        self.wire_format
    }

    /// Whether a tool is declared to this target: one that a provider runs itself is its own only.
    pub(crate) fn takes_tool(&self, tool: &Tool) -> bool {
        tool.hosted.as_ref().is_none_or(|(wire_format, _)| *wire_format == self.wire_format)
    }

    /// A tool as it is declared.
    pub(crate) fn tool<'t>(&self, tool: &'t Tool) -> Cow<'t, Tool> {
        let name = self.function(&tool.name);
        let hosted = tool.hosted.as_ref().map(|(wire_format, json)| (*wire_format, self.unmarked(json)));
        let schema = match hosted {
            Some(_) => Cow::Borrowed(tool.schema.as_str()),
            None => self.schema(&tool.schema).text,
        };
        let same = matches!((&name, &hosted), (Cow::Borrowed(_), None | Some((_, Cow::Borrowed(_)))));
        // What another provider wrote is not declared here.
        let written = tool.written.as_ref().filter(|(own, _)| *own == self.wire_format);
        if same && *schema == tool.schema && written.is_some() == tool.written.is_some() {
            return Cow::Borrowed(tool);
        }
        Cow::Owned(Tool {
            name: name.into_owned(),
            description: tool.description.clone(),
            schema: schema.into_owned(),
            hosted: hosted.map(|(wire_format, json)| (wire_format, json.into_owned())),
            written: written.cloned(),
        })
    }

    /// The tools that this target takes, as they are declared.
    pub(crate) fn tools<'t>(&self, tools: &'t [Tool]) -> Cow<'t, [Tool]> {
        if tools.iter().all(|tool| self.takes_tool(tool) && matches!(self.tool(tool), Cow::Borrowed(_))) {
            return tools.into();
        }
        tools.iter().filter(|tool| self.takes_tool(tool)).map(|tool| self.tool(tool).into_owned()).collect()
    }

    pub(crate) fn wants(&self) -> Wants {
        Wants {
            signed_calls: self.accepts.signed_calls,
            reasoning: self.accepts.fills_reasoning,
            breakpoints: self.accepts.breakpoints,
        }
    }

    /// The placeholder messages that any prompt may need (rule H5); none where that depends on how many results are
    /// in it.
    pub(crate) fn may_demand(&self) -> Option<Vec<Message>> {
        let ends = [(self.accepts.user_first, Missing::Lead), (self.accepts.user_last, Missing::Continue)];
        let ends = ends.into_iter().filter(|(demanded, _)| *demanded).map(|(_, missing)| missing.message());
        self.accepts.user_after_results.then(|| ends.collect())
    }

    /// Whether instructions may stand at the end of the prompt, and keep their role.
    pub(crate) fn takes_late_instructions(&self) -> bool {
        let anywhere = self.accepts.system == SystemPlace::Anywhere || self.accepts.inner_system;
        anywhere && self.takes_state_last()
    }

    /// Whether tools may be added at the end of the prompt.
    pub(crate) fn takes_late_tools(&self) -> bool {
        self.late_tools && self.takes_late_instructions()
    }

    /// Whether state may come last, after whatever follows the live question (rule O1).
    pub(crate) fn takes_state_last(&self) -> bool {
        self.accepts.user_after_results
    }
}

/// The prompt as any target of this wire format takes it; as it is, where it was made for one.
#[must_use]
pub fn normalized(prompt: &Prompt, wire_format: WireFormat) -> Cow<'_, Prompt> {
    // A server that applies the model's template is spoken to in the form of OpenAI Chat.
    let by_a_server =
        prompt.wire_format == Some(WireFormat::ChatTemplate) && wire_format == WireFormat::OpenAiChat;
    if prompt.wire_format == Some(wire_format) || by_a_server {
        return Cow::Borrowed(prompt);
    }
    let profile = TargetProfile::unknown(wire_format);
    let turn_positions = turn_positions(&prompt.messages);
    let each = prompt.messages.iter().zip(turn_positions).enumerate();
    // What only another provider can read is no message here.
    let each = each.filter(|(_, (message, _))| !profile.takes_nothing_of(message));
    let (given, messages): (Vec<usize>, Vec<Message>) = each
        .map(|(at, (message, turn_position))| (at, profile.message(message, turn_position).into_owned()))
        .unzip();
    let normalized = profile.sequence(messages);
    let place = |mark: &Mark| given.binary_search(&mark.message).ok().map(|at| normalized.places[at]);
    let marks = prompt.marks.iter().filter_map(place).collect();
    Cow::Owned(Prompt {
        messages: normalized.messages,
        tools: profile.tools(&prompt.tools).into_owned(),
        wire_format: Some(wire_format),
        wants: profile.wants(),
        marks,
    })
}

/// Where each message of a prompt is, as far as that can be seen: the turn that the last assistant message belongs to
/// is taken for the live one.
fn turn_positions(messages: &[Message]) -> Vec<TurnPosition> {
    let head = messages.iter().take_while(|message| message.role().instructs()).count();
    let live = live_from(messages);
    let turn_position = |at: usize| match at {
        at if at < head => TurnPosition::Preamble,
        at if at < live => TurnPosition::Past,
        _ => TurnPosition::Live,
    };
    (0..messages.len()).map(turn_position).collect()
}

/// The user message before the last one of the assistant, and those before it that come right after results; or the first
/// message of all.
fn live_from(messages: &[Message]) -> usize {
    let of = |role: Role| move |message: &Message| message.role() == role;
    let mut last = messages.iter().rposition(of(Role::Assistant)).unwrap_or(messages.len());
    loop {
        let Some(user) = messages[..last].iter().rposition(of(Role::User)) else { return 0 };
        let said = messages[..user].iter().rev().take_while(|message| message.role() == Role::User).count();
        let first = user - said;
        if first == 0 || messages[first - 1].role() != Role::Tool {
            return user;
        }
        last = first;
    }
}

/// Whether instructions may only come first or in a field of their own.
fn has_one_place(accepts: &Accepts) -> bool {
    accepts.system != SystemPlace::Anywhere
}
