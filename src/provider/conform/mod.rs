//! Adaptation of messages to a target: the roles, contents, tools and message order that it accepts (rules
//! for targets, H3 to H7). Messages that the target accepts are returned unchanged.

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

/// A target: its wire format, and the constraints that hold in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetProfile {
    wire_format: WireFormat,
    accepts: Accepts,
    /// True if tools may be added at the end of the prompt.
    late_tools: bool,
}

/// The position of a message in the prompt. It decides which parts of the message the target accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnPosition {
    /// The part before all turns: system texts, focus hint, notes.
    Preamble,
    /// An earlier turn.
    Past,
    /// The current turn, whose reply is not complete.
    Live,
}

impl TargetProfile {
    /// Creates the profile of a model.
    pub(crate) fn from_model(model: &Model) -> Self {
        Self {
            wire_format: model.wire_format,
            accepts: model.accepts(),
            late_tools: model.takes_late_tools(),
        }
    }

    /// Creates the profile of a target of which only the wire format is known.
    pub(crate) fn unknown(wire_format: WireFormat) -> Self {
        let form = Form::from_wire_format(wire_format);
        Self { wire_format, accepts: form.constraints.decided(), late_tools: true }
    }

    pub(crate) fn wire_format(&self) -> WireFormat {
        self.wire_format
    }

    /// Returns true if a tool is declared to this target. A provider-run tool is declared only in its own
    /// wire format.
    pub(crate) fn takes_tool(&self, tool: &Tool) -> bool {
        tool.hosted.as_ref().is_none_or(|(wire_format, _)| *wire_format == self.wire_format)
    }

    /// Returns a tool as it is declared to this target.
    pub(crate) fn tool<'t>(&self, tool: &'t Tool) -> Cow<'t, Tool> {
        let name = self.function(&tool.name);
        let hosted = tool.hosted.as_ref().map(|(wire_format, json)| (*wire_format, self.unmarked(json)));
        // Provider-run tools have no schema of ours; only cache marks are removed from their JSON.
        let schema = match hosted {
            Some(_) => Cow::Borrowed(tool.schema.as_str()),
            None => self.schema(&tool.schema).text,
        };
        let same = matches!((&name, &hosted), (Cow::Borrowed(_), None | Some((_, Cow::Borrowed(_)))));
        // The original JSON of another provider's definition is not valid here.
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

    /// Returns the tools that this target accepts, as they are declared.
    pub(crate) fn tools<'t>(&self, tools: &'t [Tool]) -> Cow<'t, [Tool]> {
        // The common case borrows the whole list: most prompts need no change to their tools.
        if tools.iter().all(|tool| self.takes_tool(tool) && matches!(self.tool(tool), Cow::Borrowed(_))) {
            return tools.into();
        }
        tools.iter().filter(|tool| self.takes_tool(tool)).map(|tool| self.tool(tool).into_owned()).collect()
    }

    /// Returns the properties of the target that the renderer needs.
    pub(crate) fn wants(&self) -> Wants {
        Wants {
            signed_calls: self.accepts.signed_calls,
            reasoning: self.accepts.fills_reasoning,
            breakpoints: self.accepts.breakpoints,
        }
    }

    /// Returns the placeholder messages that any prompt for this target may need (turn order, rule H5).
    /// Returns `None` if the target also needs one between tool results and a user message, because their
    /// number depends on the prompt.
    pub(crate) fn may_demand(&self) -> Option<Vec<Message>> {
        let ends = [(self.accepts.user_first, Missing::Lead), (self.accepts.user_last, Missing::Continue)];
        let ends = ends.into_iter().filter(|(demanded, _)| *demanded).map(|(_, missing)| missing.message());
        self.accepts.user_after_results.then(|| ends.collect())
    }

    /// Returns true if instructions at the end of the prompt keep their role.
    pub(crate) fn takes_late_instructions(&self) -> bool {
        let anywhere = self.accepts.system == SystemPlace::Anywhere || self.accepts.inner_system;
        anywhere && self.takes_state_last()
    }

    /// Returns true if tools may be added at the end of the prompt.
    pub(crate) fn takes_late_tools(&self) -> bool {
        self.late_tools && self.takes_late_instructions()
    }

    /// Returns true if state may be the last part of the prompt, after the messages that follow the last user
    /// message (prompt order, rule O1).
    pub(crate) fn takes_state_last(&self) -> bool {
        self.accepts.user_after_results
    }
}

/// Adapts a prompt to any target of a wire format. Returns it unchanged if it was made for that format.
#[must_use]
pub fn normalized(prompt: &Prompt, wire_format: WireFormat) -> Cow<'_, Prompt> {
    // A server that applies the model's chat template by itself receives requests in the OpenAI Chat format.
    let by_a_server =
        prompt.wire_format == Some(WireFormat::ChatTemplate) && wire_format == WireFormat::OpenAiChat;
    if prompt.wire_format == Some(wire_format) || by_a_server {
        return Cow::Borrowed(prompt);
    }
    let profile = TargetProfile::unknown(wire_format);
    let turn_positions = turn_positions(&prompt.messages);
    let each = prompt.messages.iter().zip(turn_positions).enumerate();
    // Messages that only another provider can read are dropped here.
    let each = each.filter(|(_, (message, _))| !profile.takes_nothing_of(message));
    let (given, messages): (Vec<usize>, Vec<Message>) = each
        .map(|(at, (message, turn_position))| (at, profile.message(message, turn_position).into_owned()))
        .unzip();
    let normalized = profile.sequence(messages);
    // `given` is sorted, because the messages keep their order, so a binary search finds a mark's message.
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

/// Returns the position of each message of a prompt, as far as the messages show it. The turn of the last
/// assistant message counts as the current one.
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

/// Returns the index of the first message of the current turn: the user message before the last assistant
/// message. User messages right after tool results belong to the same turn, so the search continues before
/// them. Returns 0 if there is none.
fn live_from(messages: &[Message]) -> usize {
    let of = |role: Role| move |message: &Message| message.role() == role;
    let mut last = messages.iter().rposition(of(Role::Assistant)).unwrap_or(messages.len());
    loop {
        let Some(user) = messages[..last].iter().rposition(of(Role::User)) else { return 0 };
        let said = messages[..user].iter().rev().take_while(|message| message.role() == Role::User).count();
        let first = user - said;
        // A user message behind tool results interrupts a turn and does not begin one.
        if first == 0 || messages[first - 1].role() != Role::Tool {
            return user;
        }
        last = first;
    }
}

/// Returns true if instructions are accepted only at the start or in a separate field.
fn has_one_place(accepts: &Accepts) -> bool {
    accepts.system != SystemPlace::Anywhere
}
