//! The pieces of a message in the order of the provider's original JSON, with the fields that the neutral
//! fields do not cover. A renderer combines a message and its pieces to components in the original order
//! (rule H6).

use super::{Message, Part, Reasoning, ToolCall, WireFormat};
use crate::text::object::Object;
use serde::{Deserialize, Serialize};

/// The pieces of a message in their original form: their order, and the JSON of each with gaps for the
/// neutral fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[doc(hidden)]
pub struct Written {
    /// The wire format of the JSON. It is not sent in any other format.
    pub wire_format: WireFormat,
    /// The pieces in order.
    pub pieces: Vec<Piece>,
}

/// A piece of a message. It has JSON unless the wire format writes the neutral field in the same form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[doc(hidden)]
pub struct Piece {
    /// The kind of neutral field that the piece represents.
    pub kind: PieceKind,
    /// The original JSON. Keys that neutral fields fill hold `""`, `[]` or null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Box<str>>,
}

/// The kind of neutral field that a piece represents. The nth piece of a kind represents the nth field of
/// that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[doc(hidden)]
pub enum PieceKind {
    /// The object around the following parts: a Chat message, a message item or a tool result.
    Around,
    /// Text or another part of the content.
    Part,
    /// A part that is a separate item (`OpenAI` Responses).
    Item,
    /// A tool call.
    Call,
    /// A piece of reasoning.
    Reasoning,
}

/// A neutral field of a message with its original JSON, in sending order.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Component<'a> {
    Around { json: &'a str },
    Text { at: usize, text: &'a str, is_part: bool, json: Option<&'a str> },
    Image { at: usize, url: &'a str, detail: Option<&'a str>, json: Option<&'a str> },
    Opaque { at: usize, json: &'a str, is_item: bool },
    Call { call: &'a ToolCall, json: Option<&'a str> },
    Reasoning { reasoning: &'a Reasoning, json: Option<&'a str> },
}

/// The keys that hold reasoning in an `OpenAI` Chat message.
pub(crate) const CHAT_REASONING: [&str; 5] =
    ["reasoning_content", "reasoning", "reasoning_details", "thinking", "tool_plan"];

/// The place of a tool result inside of a user content.
#[doc(hidden)]
pub const RESULT_PLACE: &str = r#"{"functionResponse":""}"#;

impl<'a> Component<'a> {
    /// Returns true for text and other parts of the content.
    pub(crate) fn is_content(&self) -> bool {
        matches!(self, Self::Text { .. } | Self::Image { .. } | Self::Opaque { .. })
    }

    /// Returns the JSON whose gaps the neutral field fills, or `None` if the provider wrote no other keys.
    pub(crate) fn json(&self) -> Option<&'a str> {
        match *self {
            Self::Text { json, .. }
            | Self::Image { json, .. }
            | Self::Call { json, .. }
            | Self::Reasoning { json, .. } => json,
            Self::Around { json } => Some(json),
            Self::Opaque { .. } => None,
        }
    }
}

impl Written {
    /// Returns the JSON of the object around all pieces, if the first piece is such an object.
    pub(crate) fn around(&self) -> Option<&str> {
        let first = self.pieces.first().filter(|piece| piece.kind == PieceKind::Around)?;
        first.json.as_deref()
    }

    /// Returns the pieces of messages that are joined to one. Returns `None` if no message has pieces, or if
    /// they are in different formats.
    pub(super) fn joined(messages: &[Message]) -> Option<Self> {
        let mut formats = messages.iter().filter_map(Message::written).map(|written| written.wire_format);
        let wire_format = formats.next()?;
        if formats.any(|other| other != wire_format) {
            return None;
        }
        let pieces = messages.iter().flat_map(|message| match message.written() {
            Some(written) => written.pieces.clone(),
            // A message without pieces still has fields, and the nth piece must represent the nth field of
            // the joined message.
            None => message.usual_pieces(),
        });
        Some(Self { wire_format, pieces: pieces.collect() })
    }

    /// Removes pieces by the kind and the sorted numbers of their fields.
    fn leave_out(&mut self, is_kind: impl Fn(PieceKind) -> bool, numbers: &[usize]) {
        if numbers.is_empty() {
            return;
        }
        let mut at = 0;
        self.pieces.retain(|piece| {
            // The number of a field counts only pieces of this kind.
            let own = at;
            at += usize::from(is_kind(piece.kind));
            !is_kind(piece.kind) || numbers.binary_search(&own).is_err()
        });
    }

    /// Changes the JSON objects of all pieces of a kind.
    fn change(&mut self, kind: PieceKind, change: impl Fn(&mut Object)) {
        for piece in self.pieces.iter_mut().filter(|piece| piece.kind == kind) {
            if let Some(mut object) = piece.json.as_deref().and_then(Object::parse) {
                change(&mut object);
                piece.json = Some(object.to_json().into());
            }
        }
    }

    /// Adapts the pieces to a message whose reasoning is not sent.
    pub(super) fn without_reasoning(&mut self) {
        self.pieces.retain(|piece| piece.kind != PieceKind::Reasoning);
        match self.wire_format {
            WireFormat::OpenAiChat => self.change(PieceKind::Around, |object| {
                for key in CHAT_REASONING {
                    object.remove(key);
                }
            }),
            // An item that belongs to reasoning and is referenced by id is rejected without that reasoning,
            // so ids are removed (coder/fantasy#30).
            WireFormat::OpenAiResponses => {
                for kind in [PieceKind::Around, PieceKind::Call] {
                    self.change(kind, |object| {
                        object.remove("id");
                    });
                }
            }
            _ => {}
        }
    }

    /// Replaces the content of a tool result by a text, in an object that holds its output as a whole.
    pub(super) fn say(&mut self, text: &str) {
        self.pieces.retain(|piece| piece.kind == PieceKind::Around);
        self.change(PieceKind::Around, |object| {
            // `[]` marks a list that the parts fill; a text fills a string instead.
            for key in ["content", "output"] {
                if object.get(key) == Some("[]") {
                    object.set_text(key, "");
                }
            }
            for key in ["functionResponse", "function_response"] {
                if let Some(mut response) = object.get(key).and_then(Object::parse) {
                    // The parts of a Gemini response are media of the old result, so they go.
                    response.remove("parts");
                    response.set_text("response", "");
                    object.set(key, response.to_json());
                }
            }
            if let Some(output) = object.get("output").and_then(|output| shell_output(output, text)) {
                object.set("output", output);
            }
        });
    }
}

/// Returns the output of a shell call with `text` as its only printed text. Returns `None` for any other
/// output.
fn shell_output(output: &str, text: &str) -> Option<String> {
    let mut printed: Vec<Object> = serde_json::from_str(output).ok()?;
    printed.truncate(1);
    let first = printed.first_mut().filter(|first| first.get("stdout").is_some())?;
    first.set_text("stdout", text);
    if first.get("stderr").is_some() {
        first.set_text("stderr", "");
    }
    serde_json::to_string(&printed).ok()
}

impl Message {
    /// Returns the pieces of a message in the default order: reasoning, content, calls.
    fn usual_pieces(&self) -> Vec<Piece> {
        let parts = self.parts().len() + usize::from(!self.text().is_empty());
        let kinds = [
            (PieceKind::Reasoning, self.reasoning().len()),
            (PieceKind::Part, parts),
            (PieceKind::Call, self.tool_calls().len()),
        ];
        kinds.into_iter().flat_map(|(kind, many)| vec![Piece { kind, json: None }; many]).collect()
    }

    /// Sets the pieces of the provider's original form.
    #[doc(hidden)]
    #[must_use]
    pub fn with_written(self, written: Written) -> Self {
        self.edit(|extra| extra.rare.written = Some(Box::new(written)))
    }

    /// Returns the pieces of the provider's original form, or `None` for a message without one.
    #[doc(hidden)]
    #[must_use]
    pub fn written(&self) -> Option<&Written> {
        self.extra().and_then(|extra| extra.rare.written.as_deref())
    }

    /// Returns the pieces if they were written in this wire format.
    pub(crate) fn written_in(&self, wire_format: WireFormat) -> Option<&Written> {
        let written = self.written()?;
        // A server that applies a chat template receives messages in the form of OpenAI Chat.
        let served = wire_format == WireFormat::ChatTemplate && written.wire_format == WireFormat::OpenAiChat;
        (written.wire_format == wire_format || served).then_some(written)
    }

    /// Returns true if the message begins a separate content object in its original Gemini form.
    pub(crate) fn begins_content(&self) -> bool {
        let around = self.written_in(WireFormat::Gemini).and_then(Written::around);
        around.is_some_and(|json| json != RESULT_PLACE)
    }

    /// Returns the components of the message in the sending order of this wire format: the original order if
    /// known, otherwise reasoning, content, calls.
    pub(crate) fn components(&self, wire_format: WireFormat) -> Vec<Component<'_>> {
        let mut fields = Fields::new(self);
        let mut all = Vec::new();
        let Some(written) = self.written_in(wire_format) else {
            fields.rest(&mut all, false);
            return all;
        };
        // Added parts belong behind the last original part, not behind the calls.
        let last_part = written.pieces.iter().rposition(|piece| is_part(piece.kind));
        for (nth, piece) in written.pieces.iter().enumerate() {
            let json = piece.json.as_deref();
            match piece.kind {
                PieceKind::Around => all.extend(json.map(|json| Component::Around { json })),
                PieceKind::Part | PieceKind::Item => all.extend(fields.part(json, piece.kind)),
                PieceKind::Call => all.extend(fields.call(json)),
                PieceKind::Reasoning => all.extend(fields.reasoning(json)),
            }
            // Parts that were added later come after the original parts.
            if last_part == Some(nth) || last_part.is_none() && piece.kind == PieceKind::Around {
                while let Some(part) = fields.part(None, PieceKind::Part) {
                    all.push(part);
                }
            }
        }
        fields.rest(&mut all, last_part.is_none());
        all
    }

    /// Returns true if a text may replace the content of this result, because its provider accepts a text
    /// there.
    pub(crate) fn may_say_another_text(&self) -> bool {
        let responses = self.written_in(WireFormat::OpenAiResponses).and_then(Written::around);
        let Some(around) = responses.and_then(Object::parse) else { return true };
        around
            .get("output")
            .is_some_and(|output| matches!(output, "\"\"" | "[]") || shell_output(output, "").is_some())
    }

    /// Returns true if this piece of reasoning was written in this wire format in another form than the
    /// neutral fields give.
    pub(crate) fn is_reasoning_written(&self, at: usize, wire_format: WireFormat) -> bool {
        let pieces = self.written_in(wire_format).map_or(&[][..], |written| &written.pieces);
        let mut own = pieces.iter().filter(|piece| piece.kind == PieceKind::Reasoning);
        own.nth(at).is_some_and(|piece| piece.json.is_some())
    }

    /// Returns true if only one kind of server accepts the form of this piece of reasoning. Its place is then
    /// inside of a Chat content, or under another key than `reasoning_content`.
    pub(crate) fn has_own_reasoning(&self, at: usize, wire_format: WireFormat) -> bool {
        let Some(written) =
            self.written_in(wire_format).filter(|written| written.wire_format == WireFormat::OpenAiChat)
        else {
            return false;
        };
        let around = written.around().and_then(Object::parse);
        let [_, own @ ..] = CHAT_REASONING;
        let has = |object: &Object| own.iter().any(|key| object.get(key).is_some());
        self.is_reasoning_written(at, wire_format) || around.as_ref().is_some_and(has)
    }

    /// Returns the numbers of the parts that are separate items in this wire format.
    pub(crate) fn items(&self, wire_format: WireFormat) -> Vec<usize> {
        let pieces = self.written_in(wire_format).map_or(&[][..], |written| &written.pieces);
        let parts = pieces.iter().filter(|piece| is_part(piece.kind)).enumerate();
        parts.filter(|(_, piece)| piece.kind == PieceKind::Item).map(|(at, _)| at).collect()
    }
}

fn is_part(kind: PieceKind) -> bool {
    matches!(kind, PieceKind::Part | PieceKind::Item)
}

/// The neutral fields of a message that were not returned yet.
struct Fields<'a> {
    text: Option<&'a str>,
    parts: std::slice::Iter<'a, Part>,
    calls: std::slice::Iter<'a, ToolCall>,
    reasonings: std::slice::Iter<'a, Reasoning>,
    at: usize,
}

impl<'a> Fields<'a> {
    fn new(message: &'a Message) -> Self {
        Self {
            text: Some(message.text()).filter(|text| !text.is_empty()),
            parts: message.parts().iter(),
            calls: message.tool_calls().iter(),
            reasonings: message.reasoning().iter(),
            at: 0,
        }
    }

    fn part(&mut self, json: Option<&'a str>, kind: PieceKind) -> Option<Component<'a>> {
        let at = self.at;
        let component = match self.text.take() {
            Some(text) => Component::Text { at, text, is_part: false, json },
            None => match self.parts.next()? {
                Part::Text(text) => Component::Text { at, text, is_part: true, json },
                Part::Image { url, detail } => Component::Image { at, url, detail: detail.as_deref(), json },
                Part::Opaque { json, .. } => Component::Opaque { at, json, is_item: kind == PieceKind::Item },
            },
        };
        self.at += 1;
        Some(component)
    }

    fn call(&mut self, json: Option<&'a str>) -> Option<Component<'a>> {
        self.calls.next().map(|call| Component::Call { call, json })
    }

    fn reasoning(&mut self, json: Option<&'a str>) -> Option<Component<'a>> {
        self.reasonings.next().map(|reasoning| Component::Reasoning { reasoning, json })
    }

    /// Appends all remaining fields. With `first`, remaining reasoning and content go before the components
    /// in `all`.
    fn rest(&mut self, all: &mut Vec<Component<'a>>, first: bool) {
        let mut before: Vec<Component<'a>> = Vec::new();
        while let Some(reasoning) = self.reasoning(None) {
            before.push(reasoning);
        }
        while let Some(part) = self.part(None, PieceKind::Part) {
            before.push(part);
        }
        if first {
            before.append(all);
            *all = before;
        } else {
            all.append(&mut before);
        }
        while let Some(call) = self.call(None) {
            all.push(call);
        }
    }
}

impl super::Extra {
    /// Removes the pieces of the parts and reasoning with these sorted numbers.
    pub(super) fn leave_out(&mut self, parts: &[usize], reasonings: &[usize]) {
        if let Some(written) = self.rare.written.as_deref_mut() {
            written.leave_out(is_part, parts);
            let all = written.pieces.iter().filter(|piece| piece.kind == PieceKind::Reasoning).count();
            // Without any reasoning left, keys around it and ids that refer to it must go too.
            if all > 0 && reasonings.len() >= all {
                written.without_reasoning();
            } else {
                written.leave_out(|kind| kind == PieceKind::Reasoning, reasonings);
            }
        }
    }
}
