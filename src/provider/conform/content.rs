//! One message as a target takes it: its role, content, speaker and reasoning.

use super::{TargetProfile, TurnPosition, has_one_place, opaque::adds_tools};
use crate::{
    config::ThinkTags,
    message::{Content, Message, Part, Reasoning, Role, ToolCall, WireFormat, Written},
    provider::{model::KeptReasoning, wording},
    text::size,
};
use serde_json::Value;
use std::borrow::Cow;

/// The tags that some models write around what they think.
const THINK_BEGIN: &str = "<think>";
const THINK_END: &str = "</think>";

/// What had to be changed in a message for the target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(crate) struct Changes {
    /// A later system message became a note (rule H4).
    pub(crate) fenced: bool,
    /// The developer role became the system role.
    renamed_role: bool,
    /// Parts are left out or replaced (rule H6).
    pub(crate) parts: bool,
    /// Blank text beside something else is left out.
    blanks: bool,
    /// Cache marks that came with a part are left out.
    marks: bool,
    /// Who speaks is not said, or said in other letters (rule H7).
    pub(crate) name: bool,
    /// Reasoning is left out (rule H7).
    pub(crate) reasoning: bool,
    /// Reasoning with nothing in it is left out: nothing is lost with it.
    no_reasoning: bool,
    /// Reasoning inside of the text is left out (rule K9).
    think_tags: bool,
    /// An empty result says so (rule H3).
    empty_result: bool,
    /// Arguments that are no JSON object are put into one (rule H6).
    pub(crate) arguments: bool,
    /// Functions have names in the letters that the target takes (rule H6).
    pub(crate) functions: bool,
    /// Reasoning is one text if the wire format has one field for it.
    thoughts: bool,
    /// Texts are one text where the wire format has no list for them.
    joined: bool,
}

/// What stands in the place of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Instead {
    Same,
    Text(String),
    Nothing,
}

impl TargetProfile {
    /// Returns the message as this target takes it, itself where that is as it is.
    pub(crate) fn message<'m>(&self, message: &'m Message, turn_position: TurnPosition) -> Cow<'m, Message> {
        self.adapted(message, turn_position).0
    }

    /// Returns the message as this target takes it, and what had to be changed.
    pub(crate) fn adapted<'m>(
        &self,
        message: &'m Message,
        turn_position: TurnPosition,
    ) -> (Cow<'m, Message>, Changes) {
        if self.takes_as_it_is(message) {
            return (Cow::Borrowed(message), Changes::default());
        }
        let changes = self.changes(message, turn_position);
        (self.changed(message, turn_position, changes), changes)
    }

    /// Whether nothing about a message has to be looked at: most are text, and every target takes that.
    fn takes_as_it_is(&self, message: &Message) -> bool {
        let text_alone = || {
            let is_text = message.is_plain() && !message.text().trim_start().is_empty();
            is_text && !message.role().instructs() && !self.may_have_think_tags(message)
        };
        self.wire_format == WireFormat::Plain || text_alone()
    }

    /// Returns the message with these changes, which are its own.
    fn changed<'m>(
        &self,
        message: &'m Message,
        turn_position: TurnPosition,
        changes: Changes,
    ) -> Cow<'m, Message> {
        if changes == Changes::default() {
            return Cow::Borrowed(message);
        }
        let all = || (0..message.parts().len() + usize::from(!message.text().is_empty())).collect();
        let (text, parts, no_parts) = if changes.fenced {
            (wording::system_note(&self.one_text(message)).into(), Vec::new(), all())
        } else if changes.empty_result {
            (wording::EMPTY_RESULT.into(), Vec::new(), all())
        } else if changes.joined {
            (self.one_text(message).into(), Vec::new(), all())
        } else if changes.parts || changes.blanks || changes.marks {
            self.kept_content(message, turn_position)
        } else {
            (message.text().into(), message.parts().to_vec(), Vec::new())
        };
        let (text, parts) =
            if changes.think_tags { without_thought(message, text, parts) } else { (text, parts) };
        let name = message.name().and_then(|name| self.name_of(message.role(), name)).map(Into::into);
        let (mut reasonings, mut no_reasonings) = (Vec::new(), Vec::new());
        for (at, reasoning) in message.reasoning().iter().enumerate() {
            if self.takes_back(message, at, turn_position) {
                reasonings.push(reasoning.clone());
            } else {
                no_reasonings.push(at);
            }
        }
        if changes.thoughts && reasonings.len() > 1 {
            let texts: Vec<&str> = reasonings.iter().map(|reasoning| reasoning.text.as_str()).collect();
            reasonings = vec![Reasoning::text(texts.join("\n\n"))];
        }
        let content = Content { text, parts, name, reasonings, no_parts, no_reasonings };
        let mut sent = message.with_content(content);
        if changes.arguments || changes.functions {
            let call = |call: &ToolCall| ToolCall {
                name: self.function(&call.name).into_owned(),
                arguments: if changes.arguments {
                    in_object(&call.arguments)
                } else {
                    call.arguments.clone()
                },
                ..call.clone()
            };
            sent = sent.with_tool_calls(message.tool_calls().iter().map(call));
        }
        Cow::Owned(match self.role_of(message, changes) {
            role if role == message.role() => sent,
            role => sent.in_role(role),
        })
    }

    /// What has to be changed in a message for this target.
    fn changes(&self, message: &Message, turn_position: TurnPosition) -> Changes {
        let role = message.role();
        let accepts = &self.accepts;
        let only_texts = || message.parts().iter().all(|part| matches!(part, Part::Text(_)));
        let noted =
            || accepts.inner_system && only_texts() && message.plain_texts().all(wording::is_system_note);
        let added = || message.has_opaque_parts() && adds_tools(message);
        let fenced = role.instructs()
            && turn_position != TurnPosition::Preamble
            && has_one_place(accepts)
            && !noted()
            && !added();
        let name = message.name().is_some_and(|name| self.name_of(role, name).as_deref() != Some(name));
        let blank = |text: &str| text.trim().is_empty();
        let blank_part = |part: &Part| matches!(part, Part::Text(text) if blank(text));
        let empty = role == Role::Tool && blank(message.text()) && message.parts().iter().all(blank_part);
        let think_tags = turn_position == TurnPosition::Past
            && self.may_have_think_tags(message)
            && message.plain_texts().next().is_some_and(|text| spoken(message, text).is_some());
        let left_out = |which: fn(&Reasoning) -> bool| {
            let mut all = message.reasoning().iter().enumerate();
            all.any(|(at, reasoning)| which(reasoning) && !self.takes_back(message, at, turn_position))
        };
        Changes {
            fenced,
            renamed_role: role == Role::Developer && !accepts.developer && !fenced,
            parts: !fenced
                && (message.parts().iter().any(|part| self.instead(role, part, message) != Instead::Same)
                    || !self.items_without_reasoning(message, turn_position).is_empty()),
            blanks: !empty && self.leaves_out_blanks() && {
                let text = message.text();
                (!text.is_empty() && blank(text)) || message.parts().iter().any(blank_part)
            },
            marks: message.parts().iter().any(|part| matches!(self.unmarked_part(part), Cow::Owned(_))),
            name,
            reasoning: think_tags || left_out(|reasoning| !reasoning.is_empty()),
            think_tags,
            no_reasoning: left_out(Reasoning::is_empty),
            empty_result: empty && !accepts.empty_results && !self.writes_around(message),
            arguments: self.wants_objects()
                && message.tool_calls().iter().any(|call| !is_object(&call.arguments)),
            functions: message.tool_calls().iter().any(|call| *self.function(&call.name) != *call.name),
            thoughts: self.joins_thoughts(message),
            joined: self.joins_texts(role)
                && !message.parts().is_empty()
                && message.written_in(self.wire_format).is_none()
                && !message.parts().iter().any(|part| self.is_carried(role, part, message)),
        }
    }

    fn role_of(&self, message: &Message, changes: Changes) -> Role {
        match message.role() {
            // Whether the target takes a system message there depends on its neighbours: see `sequence`.
            _ if changes.fenced && self.accepts.inner_system => Role::System,
            _ if changes.fenced => Role::User,
            Role::Developer if changes.renamed_role => Role::System,
            role => role,
        }
    }

    /// Checks whether text of a message may be reasoning in tags, for a target to which that is reasoning.
    fn may_have_think_tags(&self, message: &Message) -> bool {
        self.accepts.think_tags == ThinkTags::Reasoning
            && message.role() == Role::Assistant
            && message.plain_texts().next().is_some_and(|text| text.contains(THINK_END))
    }

    /// Whether a message bears several thoughts where the wire format has one field for them.
    pub(crate) fn joins_thoughts(&self, message: &Message) -> bool {
        let is_chunk = |at: usize| message.is_reasoning_written(at, self.wire_format);
        message.reasoning().len() > 1
            && matches!(self.wire_format, WireFormat::OpenAiChat | WireFormat::ChatTemplate)
            && !(0..message.reasoning().len()).any(is_chunk)
    }

    /// Returns the content as one text, with placeholders for parts that are not text.
    fn one_text(&self, message: &Message) -> String {
        let parts = self.parts_of(message);
        let texts = parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Image { .. } | Part::Opaque { .. } => None,
        });
        let own = Some(message.text()).filter(|text| !text.is_empty());
        own.into_iter().chain(texts).collect::<Vec<&str>>().join("\n\n")
    }

    /// Whether the arguments of a call are JSON objects on the wire, not texts.
    fn wants_objects(&self) -> bool {
        matches!(self.wire_format, WireFormat::Anthropic | WireFormat::Gemini)
    }

    /// Checks if content of this role is one text: the assistant's in a body of Responses, a tool result of
    /// Gemini.
    fn joins_texts(&self, role: Role) -> bool {
        matches!(
            (self.wire_format, role),
            (WireFormat::OpenAiResponses, Role::Assistant) | (WireFormat::Gemini, Role::Tool)
        )
    }

    /// Whether blank text beside something else is refused, or no use.
    fn leaves_out_blanks(&self) -> bool {
        !matches!(self.wire_format, WireFormat::OpenAiChat | WireFormat::ChatTemplate)
    }

    fn parts_of(&self, message: &Message) -> Vec<Part> {
        message.parts().iter().filter_map(|part| self.part_of(message, part)).collect()
    }

    /// Returns a part as it is sent in this message. Returns `None` if it is left out.
    fn part_of(&self, message: &Message, part: &Part) -> Option<Part> {
        if self.leaves_out_blanks() && matches!(part, Part::Text(text) if text.trim().is_empty()) {
            return None;
        }
        match self.instead(message.role(), part, message) {
            Instead::Same => Some(self.unmarked_part(part).into_owned()),
            Instead::Text(text) => Some(Part::Text(text)),
            Instead::Nothing => None,
        }
    }

    /// Returns the text and the parts that are sent, and the numbers of those that are not.
    fn kept_content(
        &self,
        message: &Message,
        turn_position: TurnPosition,
    ) -> (Box<str>, Vec<Part>, Vec<usize>) {
        let text = text_of(message);
        let first = usize::from(!message.text().is_empty());
        let mut no_parts: Vec<usize> =
            if first == 1 && text.is_empty() && self.leaves_out_blanks() { vec![0] } else { Vec::new() };
        let without_reasoning = self.items_without_reasoning(message, turn_position);
        let mut parts = Vec::with_capacity(message.parts().len());
        for (at, part) in message.parts().iter().enumerate().map(|(at, part)| (at + first, part)) {
            let is_item = without_reasoning.binary_search(&at).is_ok();
            match self.part_of(message, part).filter(|_| !is_item) {
                Some(part) => parts.push(part),
                None => no_parts.push(at),
            }
        }
        (text, parts, no_parts)
    }

    /// Returns the numbers of the items that their provider takes behind their reasoning alone, if that is
    /// not sent.
    fn items_without_reasoning(&self, message: &Message, turn_position: TurnPosition) -> Vec<usize> {
        let own = |reasoning: &Reasoning| reasoning.wire_format == Some(self.wire_format);
        let mut all = message.reasoning().iter().enumerate();
        let is_lost = self.wire_format == WireFormat::OpenAiResponses
            && all.any(|(at, reasoning)| own(reasoning) && !self.takes_back(message, at, turn_position));
        if is_lost { message.items(self.wire_format) } else { Vec::new() }
    }

    /// Returns true for a message whose provider wrote the object around its content.
    fn writes_around(&self, message: &Message) -> bool {
        message.written_in(self.wire_format).and_then(Written::around).is_some()
    }

    /// Returns true for a message of the assistant of which this target takes nothing, though it holds
    /// something.
    pub(crate) fn takes_nothing_of(&self, message: &Message) -> bool {
        let blank = |text: &str| text.trim().is_empty();
        let takes_none = |part: &Part| match part {
            Part::Text(text) => blank(text),
            part => self.instead(message.role(), part, message) == Instead::Nothing,
        };
        // Most messages are a text: nothing of it is looked at.
        !message.parts().is_empty()
            && message.role() == Role::Assistant
            && self.wire_format != WireFormat::Plain
            && message.tool_calls().is_empty()
            && blank(message.text())
            && message.parts().iter().all(takes_none)
    }

    /// Returns true if reasoning goes back: in the form it came in, while the target has use for it.
    fn takes_back(&self, message: &Message, at: usize, turn_position: TurnPosition) -> bool {
        let reasoning = &message.reasoning()[at];
        let now = match self.accepts.reasoning {
            // Its server wrote it, in a form of its own.
            KeptReasoning::Never => message.has_own_reasoning(at, self.wire_format),
            // An item that came behind it is refused without it.
            KeptReasoning::Live => {
                turn_position == TurnPosition::Live || !message.items(self.wire_format).is_empty()
            }
            KeptReasoning::Always => true,
        };
        let sealed = reasoning.signature.is_some() && reasoning.wire_format == Some(self.wire_format);
        let something = !reasoning.text.trim().is_empty();
        now && match self.wire_format {
            // A piece without its seal is refused, and so is an item without its id.
            WireFormat::Anthropic => sealed,
            WireFormat::OpenAiResponses => {
                sealed && reasoning.id.is_some() || message.is_reasoning_written(at, self.wire_format)
            }
            WireFormat::Gemini => message.is_reasoning_written(at, self.wire_format),
            _ => something && reasoning.signature.is_none(),
        }
    }

    /// Returns what replaces a part that this target does not take in a message of this role. Nothing is put
    /// into the assistant's mouth.
    fn instead(&self, role: Role, part: &Part, message: &Message) -> Instead {
        let named =
            |text: String| if role == Role::Assistant { Instead::Nothing } else { Instead::Text(text) };
        match part {
            Part::Text(_) => Instead::Same,
            Part::Image { url, .. } if self.takes_image(role, url) => Instead::Same,
            // Media of a result go back with it.
            Part::Image { .. }
                if role == Role::Tool
                    && self.wire_format == WireFormat::Gemini
                    && self.writes_around(message) =>
            {
                Instead::Same
            }
            Part::Image { .. } => named(wording::LEFT_OUT_IMAGE.into()),
            Part::Opaque { wire_format, json } => {
                let value: Value = size::tree(json).unwrap_or_default();
                let taken = *wire_format == self.wire_format && value.is_object();
                if taken && self.takes_opaque(role, &value, message) {
                    return Instead::Same;
                }
                let field = |key: &str| value.get(key).and_then(Value::as_str);
                if let Some(refusal) = field("refusal").filter(|said| !said.trim().is_empty()) {
                    return Instead::Text(refusal.into());
                }
                named(wording::left_out_part(field("type").unwrap_or("unknown")))
            }
        }
    }

    /// Returns a part without cache marks of its own.
    fn unmarked_part<'p>(&self, part: &'p Part) -> Cow<'p, Part> {
        match part {
            Part::Opaque { wire_format, json } => match self.unmarked(json) {
                Cow::Borrowed(_) => Cow::Borrowed(part),
                Cow::Owned(json) => Cow::Owned(Part::Opaque { wire_format: *wire_format, json }),
            },
            Part::Text(_) | Part::Image { .. } => Cow::Borrowed(part),
        }
    }

    /// Whether a part is of an unknown type and goes back as it came.
    fn is_carried(&self, role: Role, part: &Part, message: &Message) -> bool {
        matches!(part, Part::Opaque { .. }) && self.instead(role, part, message) == Instead::Same
    }

    fn takes_image(&self, role: Role, url: &str) -> bool {
        let here = match self.wire_format {
            WireFormat::Plain => true,
            WireFormat::Anthropic | WireFormat::OpenAiResponses => matches!(role, Role::User | Role::Tool),
            _ => role == Role::User,
        };
        here && match self.wire_format {
            WireFormat::Plain => true,
            _ if url.starts_with("data:") => inline_image(url).is_some(),
            _ => ["https://", "http://"].iter().any(|scheme| url.starts_with(scheme)),
        }
    }
}

/// Returns the plain text, without what is blank.
fn text_of(message: &Message) -> Box<str> {
    if message.text().trim().is_empty() { "".into() } else { message.text().into() }
}

/// Whether a text is a JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && size::tree::<Value>(text).is_some()
}

/// Arguments as a JSON object: nothing as an empty one, what is none as the text in one.
fn in_object(text: &str) -> String {
    if is_object(text) {
        return text.into();
    }
    let text = Some(text).filter(|text| !text.trim().is_empty());
    let pairs = text.map(|text| format!("\"text\":{}", Value::from(text)));
    format!("{{{}}}", pairs.unwrap_or_default())
}

/// Media type and base64 data of an image in a data URL, where both are what providers take.
pub(crate) fn inline_image(url: &str) -> Option<(&str, &str)> {
    const KINDS: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let kind = match head.strip_suffix(";base64")? {
        "image/jpg" => "image/jpeg",
        kind => kind,
    };
    let body = data.trim_end_matches('=');
    let padded = data.len().is_multiple_of(4) && data.len() - body.len() <= 2;
    let sound =
        !body.is_empty() && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte));
    (KINDS.contains(&kind) && padded && sound).then_some((kind, data))
}

/// Returns the text behind the reasoning in tags that it begins with. Returns `None` if it has none, or if
/// nothing would be left of the message.
fn spoken<'t>(message: &Message, text: &'t str) -> Option<&'t str> {
    let (thought, spoken) = text.split_once(THINK_END)?;
    // Some templates open the tag in the prompt: the reply closes it only.
    let inside = thought.trim_start().strip_prefix(THINK_BEGIN).unwrap_or(thought);
    let spoken = spoken.trim_start();
    let is_left = !spoken.is_empty() || message.parts().is_empty() && !message.tool_calls().is_empty();
    (is_left && !inside.contains(THINK_BEGIN)).then_some(spoken)
}

/// Returns the content without the reasoning in tags that its first text begins with.
fn without_thought(message: &Message, text: Box<str>, mut parts: Vec<Part>) -> (Box<str>, Vec<Part>) {
    if !text.is_empty() {
        return (spoken(message, &text).map(Into::into).unwrap_or(text), parts);
    }
    let first = parts.iter_mut().find_map(|part| match part {
        Part::Text(text) => Some(text),
        Part::Image { .. } | Part::Opaque { .. } => None,
    });
    if let Some(first) = first
        && let Some(spoken) = spoken(message, first).map(str::to_owned)
    {
        *first = spoken;
    }
    (text, parts)
}
