//! The adaptation of a single message to a target: its role, content, author's name and reasoning.

use super::{
    TargetProfile, TurnPosition, has_one_place,
    opaque::{self, PartContext, adds_tools},
};
use crate::{
    config::ThinkTags,
    message::{Content, Message, Part, Reasoning, Role, ToolCall, WireFormat, Written},
    provider::{model::KeptReasoning, wording},
    text::size,
};
use serde_json::Value;
use std::borrow::Cow;

/// The tags that some models write around their reasoning.
const THINK_BEGIN: &str = "<think>";
const THINK_END: &str = "</think>";

/// The changes that a message needs for a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(crate) struct Changes {
    /// True if a later system message becomes a note (later system messages, rule H4).
    pub(crate) becomes_note: bool,
    /// True if the developer role becomes the system role.
    renamed_role: bool,
    /// True if parts are dropped or replaced (preserved parts, rule H6).
    pub(crate) parts: bool,
    /// True if blank text is dropped from a message with other content.
    blanks: bool,
    /// True if cache marks in the JSON of a part are removed.
    marks: bool,
    /// True if the author's name is dropped or changed (unsupported fields, rule H7).
    pub(crate) name: bool,
    /// True if reasoning is dropped (unsupported fields, rule H7).
    pub(crate) reasoning: bool,
    /// True if only empty reasoning is dropped, which loses no information.
    no_reasoning: bool,
    /// True if reasoning between tags in the text is dropped (reasoning in tags, rule K9).
    think_tags: bool,
    /// True if an empty result gets a text (dropped messages, rule H3).
    empty_result: bool,
    /// True if arguments that are not a JSON object are wrapped in one (preserved parts, rule H6).
    pub(crate) arguments: bool,
    /// True if function names are changed to characters that the target accepts (preserved parts, rule H6).
    pub(crate) functions: bool,
    /// True if several pieces of reasoning become one text, because the wire format has one field for them.
    joins_reasoning: bool,
    /// True if several texts become one, because the wire format has no list of texts there.
    joined: bool,
}

/// The replacement of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Replacement {
    Same,
    Text(String),
    Nothing,
}

impl TargetProfile {
    /// Returns the message as this target accepts it, unchanged if possible.
    pub(crate) fn message<'m>(&self, message: &'m Message, turn_position: TurnPosition) -> Cow<'m, Message> {
        self.adapt(message, turn_position).0
    }

    /// Returns the message as this target accepts it, with the changes that were made.
    pub(crate) fn adapt<'m>(
        &self,
        message: &'m Message,
        turn_position: TurnPosition,
    ) -> (Cow<'m, Message>, Changes) {
        if self.accepts_unchanged(message) {
            return (Cow::Borrowed(message), Changes::default());
        }
        let changes = self.changes(message, turn_position);
        (self.apply(message, turn_position, changes), changes)
    }

    /// Returns true if a message needs no examination. Most messages are plain text, which every target
    /// accepts.
    fn accepts_unchanged(&self, message: &Message) -> bool {
        let text_alone = || {
            let is_text = message.is_plain() && !message.text().trim_start().is_empty();
            is_text && !message.role().instructs() && !self.may_have_think_tags(message)
        };
        self.wire_format == WireFormat::Plain || text_alone()
    }

    /// Returns the message with `changes` applied. They must be the changes of this message.
    fn apply<'m>(
        &self,
        message: &'m Message,
        turn_position: TurnPosition,
        changes: Changes,
    ) -> Cow<'m, Message> {
        if changes == Changes::default() {
            return Cow::Borrowed(message);
        }
        // All numbers of parts count the text, if it is not empty, as part 0.
        let all = || (0..message.parts().len() + usize::from(!message.text().is_empty())).collect();
        let (text, parts, no_parts) = if changes.becomes_note {
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
            if changes.think_tags { without_reasoning_tags(message, text, parts) } else { (text, parts) };
        let name = message.name().and_then(|name| self.name_of(message.role(), name)).map(Into::into);
        let (mut reasonings, mut no_reasonings) = (Vec::new(), Vec::new());
        for (at, reasoning) in message.reasoning().iter().enumerate() {
            if self.accepts_reasoning_item(message, at, turn_position) {
                reasonings.push(reasoning.clone());
            } else {
                no_reasonings.push(at);
            }
        }
        // The wire format has one field for reasoning, so the separate pieces become paragraphs of one text.
        if changes.joins_reasoning && reasonings.len() > 1 {
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
            role => sent.with_role(role),
        })
    }

    /// Returns the changes that a message needs for this target.
    fn changes(&self, message: &Message, turn_position: TurnPosition) -> Changes {
        let role = message.role();
        let context = PartContext::new(message);
        let accepts = &self.accepts;
        let only_texts = || message.parts().iter().all(|part| matches!(part, Part::Text(_)));
        // A note that the application wrote itself is already in the right form and keeps its role.
        let noted =
            || accepts.inner_system && only_texts() && message.plain_texts().all(wording::is_system_note);
        let added = || message.has_opaque_parts() && adds_tools(message);
        let becomes_note = role.instructs()
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
            && message.plain_texts().next().is_some_and(|text| text_after_reasoning(message, text).is_some());
        let left_out = |which: fn(&Reasoning) -> bool| {
            let mut all = message.reasoning().iter().enumerate();
            all.any(|(at, reasoning)| {
                which(reasoning) && !self.accepts_reasoning_item(message, at, turn_position)
            })
        };
        Changes {
            becomes_note,
            // A note gets the user or system role anyway, so its developer role needs no separate change.
            renamed_role: role == Role::Developer && !accepts.developer && !becomes_note,
            parts: !becomes_note
                && (message.parts().iter().any(|part| self.replacement(part, &context) != Replacement::Same)
                    || !self.items_without_reasoning(message, turn_position).is_empty()),
            blanks: !empty && self.omits_blanks() && {
                let text = message.text();
                (!text.is_empty() && blank(text)) || message.parts().iter().any(blank_part)
            },
            marks: message.parts().iter().any(|part| matches!(self.unmarked_part(part), Cow::Owned(_))),
            name,
            reasoning: think_tags || left_out(|reasoning| !reasoning.is_empty()),
            think_tags,
            no_reasoning: left_out(Reasoning::is_empty),
            empty_result: empty && !accepts.empty_results && !self.has_written_message(message),
            arguments: self.wants_objects()
                && message.tool_calls().iter().any(|call| !is_object(&call.arguments)),
            functions: message.tool_calls().iter().any(|call| *self.function(&call.name) != *call.name),
            joins_reasoning: self.joins_reasoning(message),
            joined: self.joins_texts(role)
                && !message.parts().is_empty()
                && message.written_in(self.wire_format).is_none()
                && !message.parts().iter().any(|part| self.is_carried(part, &context)),
        }
    }

    fn role_of(&self, message: &Message, changes: Changes) -> Role {
        match message.role() {
            // `sequence` decides later if the target accepts a system message here, because that depends on
            // its neighbours.
            _ if changes.becomes_note && self.accepts.inner_system => Role::System,
            _ if changes.becomes_note => Role::User,
            Role::Developer if changes.renamed_role => Role::System,
            role => role,
        }
    }

    /// Returns true if the text of a message may contain reasoning in tags, and the target treats that as
    /// reasoning.
    fn may_have_think_tags(&self, message: &Message) -> bool {
        self.accepts.think_tags == ThinkTags::Reasoning
            && message.role() == Role::Assistant
            && message.plain_texts().next().is_some_and(|text| text.contains(THINK_END))
    }

    /// Returns true if a message has several pieces of reasoning, but the wire format has one field for them.
    pub(crate) fn joins_reasoning(&self, message: &Message) -> bool {
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

    /// Returns true if the wire format expects the arguments of a call as a JSON object, not as a string.
    fn wants_objects(&self) -> bool {
        matches!(self.wire_format, WireFormat::Anthropic | WireFormat::Gemini)
    }

    /// Returns true if content of this role is a single text: the assistant's in Responses, a tool result of
    /// Gemini.
    fn joins_texts(&self, role: Role) -> bool {
        matches!(
            (self.wire_format, role),
            (WireFormat::OpenAiResponses, Role::Assistant) | (WireFormat::Gemini, Role::Tool)
        )
    }

    /// Returns true if the target refuses blank text next to other content, or ignores it.
    fn omits_blanks(&self) -> bool {
        !matches!(self.wire_format, WireFormat::OpenAiChat | WireFormat::ChatTemplate)
    }

    fn parts_of(&self, message: &Message) -> Vec<Part> {
        let context = PartContext::new(message);
        message.parts().iter().filter_map(|part| self.part_of(part, &context)).collect()
    }

    /// Returns a part as it is sent in this message, or `None` if it is dropped.
    fn part_of(&self, part: &Part, context: &PartContext<'_>) -> Option<Part> {
        if self.omits_blanks() && matches!(part, Part::Text(text) if text.trim().is_empty()) {
            return None;
        }
        match self.replacement(part, context) {
            Replacement::Same => Some(self.unmarked_part(part).into_owned()),
            Replacement::Text(text) => Some(Part::Text(text)),
            Replacement::Nothing => None,
        }
    }

    /// Returns the text and the parts that are sent, and the numbers of the dropped parts.
    fn kept_content(
        &self,
        message: &Message,
        turn_position: TurnPosition,
    ) -> (Box<str>, Vec<Part>, Vec<usize>) {
        let text = text_of(message);
        let first = usize::from(!message.text().is_empty());
        let mut no_parts: Vec<usize> =
            if first == 1 && text.is_empty() && self.omits_blanks() { vec![0] } else { Vec::new() };
        let without_reasoning = self.items_without_reasoning(message, turn_position);
        let context = PartContext::new(message);
        let mut parts = Vec::with_capacity(message.parts().len());
        for (at, part) in message.parts().iter().enumerate().map(|(at, part)| (at + first, part)) {
            let is_item = without_reasoning.binary_search(&at).is_ok();
            match self.part_of(part, &context).filter(|_| !is_item) {
                Some(part) => parts.push(part),
                None => no_parts.push(at),
            }
        }
        (text, parts, no_parts)
    }

    /// Returns the numbers of the items that the provider accepts only after their reasoning, if that is not
    /// sent.
    fn items_without_reasoning(&self, message: &Message, turn_position: TurnPosition) -> Vec<usize> {
        // Only Responses refuses an item without its reasoning; other formats do not bind the two.
        let own = |reasoning: &Reasoning| reasoning.wire_format == Some(self.wire_format);
        let mut all = message.reasoning().iter().enumerate();
        let is_lost = self.wire_format == WireFormat::OpenAiResponses
            && all.any(|(at, reasoning)| {
                own(reasoning) && !self.accepts_reasoning_item(message, at, turn_position)
            });
        if is_lost { message.items(self.wire_format) } else { Vec::new() }
    }

    /// Returns true if the provider wrote a JSON object around the content of the message.
    fn has_written_message(&self, message: &Message) -> bool {
        message.written_in(self.wire_format).and_then(Written::around).is_some()
    }

    /// Returns true if an assistant message has content, but none that this target accepts.
    pub(crate) fn accepts_nothing_of(&self, message: &Message) -> bool {
        let blank = |text: &str| text.trim().is_empty();
        let context = PartContext::new(message);
        let takes_none = |part: &Part| match part {
            Part::Text(text) => blank(text),
            part => self.replacement(part, &context) == Replacement::Nothing,
        };
        // The cheapest check first: most messages have no parts.
        !message.parts().is_empty()
            && message.role() == Role::Assistant
            && self.wire_format != WireFormat::Plain
            && message.tool_calls().is_empty()
            && blank(message.text())
            && message.parts().iter().all(takes_none)
    }

    /// Returns true if reasoning is sent back, that is, in its own wire format and while the target uses it.
    fn accepts_reasoning_item(&self, message: &Message, at: usize, turn_position: TurnPosition) -> bool {
        let reasoning = &message.reasoning()[at];
        let now = match self.accepts.reasoning {
            // Accepted only under the separate key in which the same server wrote it.
            KeptReasoning::Never => message.has_own_reasoning(at, self.wire_format),
            // A provider refuses an item without the reasoning that preceded it.
            KeptReasoning::Live => {
                turn_position == TurnPosition::Live || !message.items(self.wire_format).is_empty()
            }
            KeptReasoning::Always => true,
        };
        let is_signed = reasoning.signature.is_some() && reasoning.wire_format == Some(self.wire_format);
        let something = !reasoning.text.trim().is_empty();
        now && match self.wire_format {
            // The provider refuses reasoning without its signature, and a reasoning item without its id.
            WireFormat::Anthropic => is_signed,
            WireFormat::OpenAiResponses => {
                is_signed && reasoning.id.is_some() || message.is_reasoning_written(at, self.wire_format)
            }
            WireFormat::Gemini => message.is_reasoning_written(at, self.wire_format),
            _ => something && reasoning.signature.is_none(),
        }
    }

    /// Returns the replacement of a part that this target does not accept in a message of this role. An
    /// assistant message never gets replacement texts, because the model would read words that it did not
    /// write.
    fn replacement(&self, part: &Part, context: &PartContext<'_>) -> Replacement {
        let (message, role) = (context.message, context.message.role());
        let named = |text: String| {
            if role == Role::Assistant { Replacement::Nothing } else { Replacement::Text(text) }
        };
        match part {
            Part::Text(_) => Replacement::Same,
            Part::Image { url, .. } if self.accepts_image(role, url) => Replacement::Same,
            // Media of a result are sent back inside of its original object.
            Part::Image { .. }
                if role == Role::Tool
                    && self.wire_format == WireFormat::Gemini
                    && self.has_written_message(message) =>
            {
                Replacement::Same
            }
            Part::Image { .. } => named(wording::LEFT_OUT_IMAGE.into()),
            Part::Opaque { wire_format, json } => {
                let value: Value = size::tree(json).unwrap_or_default();
                let is_native = *wire_format == self.wire_format && value.is_object();
                if is_native && self.accepts_opaque(&value, context) {
                    return Replacement::Same;
                }
                if let Some(refusal) = opaque::refusal(&value) {
                    return Replacement::Text(refusal.into());
                }
                let kind = value.get("type").and_then(Value::as_str);
                named(wording::left_out_part(kind.unwrap_or("unknown")))
            }
        }
    }

    /// Returns a part without cache marks in its JSON.
    fn unmarked_part<'p>(&self, part: &'p Part) -> Cow<'p, Part> {
        match part {
            Part::Opaque { wire_format, json } => match self.unmarked(json) {
                Cow::Borrowed(_) => Cow::Borrowed(part),
                Cow::Owned(json) => Cow::Owned(Part::Opaque { wire_format: *wire_format, json }),
            },
            Part::Text(_) | Part::Image { .. } => Cow::Borrowed(part),
        }
    }

    /// Returns true if an opaque part is sent back unchanged.
    fn is_carried(&self, part: &Part, context: &PartContext<'_>) -> bool {
        matches!(part, Part::Opaque { .. }) && self.replacement(part, context) == Replacement::Same
    }

    fn accepts_image(&self, role: Role, url: &str) -> bool {
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

/// Returns the text of a message, or an empty text if it is blank.
fn text_of(message: &Message) -> Box<str> {
    if message.text().trim().is_empty() { "".into() } else { message.text().into() }
}

/// Returns true if a text is a JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && size::tree::<Value>(text).is_some()
}

/// Returns arguments as a JSON object. Empty arguments become `{}`; any other invalid text becomes the value
/// of `text`.
fn in_object(text: &str) -> String {
    if is_object(text) {
        return text.into();
    }
    let text = Some(text).filter(|text| !text.trim().is_empty());
    let pairs = text.map(|text| format!("\"text\":{}", Value::from(text)));
    format!("{{{}}}", pairs.unwrap_or_default())
}

/// Returns the media type and the base64 data of a data URL, or `None` if providers do not accept the image.
pub(crate) fn inline_image(url: &str) -> Option<(&str, &str)> {
    const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let kind = match head.strip_suffix(";base64")? {
        // `image/jpg` is a common but invalid name of the type.
        "image/jpg" => "image/jpeg",
        kind => kind,
    };
    // Complete base64 has groups of four characters, with at most two padding characters.
    let body = data.trim_end_matches('=');
    let padded = data.len().is_multiple_of(4) && data.len() - body.len() <= 2;
    let is_base64 =
        !body.is_empty() && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte));
    (IMAGE_TYPES.contains(&kind) && padded && is_base64).then_some((kind, data))
}

/// Returns the text after the reasoning in tags at its beginning. Returns `None` if there is no such
/// reasoning, or if nothing would remain of the message.
fn text_after_reasoning<'t>(message: &Message, text: &'t str) -> Option<&'t str> {
    let (reasoning, answer) = text.split_once(THINK_END)?;
    // Some chat templates put the opening tag into the prompt, so the reply contains only the closing one.
    let inside = reasoning.trim_start().strip_prefix(THINK_BEGIN).unwrap_or(reasoning);
    let answer = answer.trim_start();
    // Without text the message must still have a call, or it would be empty.
    let is_left = !answer.is_empty() || message.parts().is_empty() && !message.tool_calls().is_empty();
    (is_left && !inside.contains(THINK_BEGIN)).then_some(answer)
}

/// Returns the content without the reasoning in tags at the beginning of its first text.
fn without_reasoning_tags(message: &Message, text: Box<str>, mut parts: Vec<Part>) -> (Box<str>, Vec<Part>) {
    if !text.is_empty() {
        return (text_after_reasoning(message, &text).map(Into::into).unwrap_or(text), parts);
    }
    let first = parts.iter_mut().find_map(|part| match part {
        Part::Text(text) => Some(text),
        Part::Image { .. } | Part::Opaque { .. } => None,
    });
    if let Some(first) = first
        && let Some(answer) = text_after_reasoning(message, first).map(str::to_owned)
    {
        *first = answer;
    }
    (text, parts)
}
