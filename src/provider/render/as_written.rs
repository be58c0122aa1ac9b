//! Messages that keep the JSON of their provider, if the wire format would write the neutral fields
//! differently (preserved parts, rule H6). The input is a message and the JSON of its pieces in order. The
//! output is the message with the necessary part of that JSON.

use super::{
    anthropic,
    fill::{Fill, empty, json},
    gemini,
    json::{Declared, Function},
    openai, responses,
};
use crate::{
    message::{Component, Message, Piece, PieceKind, Role, Tool, WireFormat, Written},
    text::{object::Object, plain::compact_json},
};

/// Returns the message with the order of its pieces and their original JSON. A piece keeps no JSON if the
/// wire format writes the same. A message whose pieces all do so, in the usual order, is returned unchanged.
/// The JSON of an object around other pieces must have an empty content: `""`, `[]` or null.
#[doc(hidden)]
#[must_use]
pub fn keep_as_written(
    message: Message,
    wire_format: WireFormat,
    pieces: &[(PieceKind, Option<&str>)],
) -> Message {
    let bare = pieces.iter().map(|(kind, _)| Piece { kind: *kind, json: None }).collect();
    let ordered = message.clone().with_written(Written { wire_format, pieces: bare });
    let components = ordered.components(wire_format);
    let mut rest = components.iter();
    let mut kept = Vec::with_capacity(pieces.len());
    // If there are several objects, each is needed, because they divide the content.
    let several = pieces.iter().filter(|(kind, _)| *kind == PieceKind::Around).count() > 1;
    for (kind, came) in pieces {
        let came = came.and_then(|came| unmarked(came, wire_format));
        let json = if *kind == PieceKind::Around {
            // An empty result that came as such keeps its object, so that no placeholder text replaces it.
            let is_usual = |came: &Object| {
                came.to_json() == usual_around(&message, wire_format)
                    && (message.role() != Role::Tool || message.texts().any(|text| !text.is_empty()))
            };
            came.filter(|came| several || !is_usual(came)).map(|mut came| {
                empty(&mut came, &around_fills(&message, wire_format));
                came.to_json()
            })
        } else {
            rest.next().and_then(|component| beside_fields(component, wire_format, came?))
        };
        kept.push(Piece { kind: *kind, json: json.map(Into::into) });
    }
    kept.retain(|piece| piece.kind != PieceKind::Around || piece.json.is_some());
    // Opaque parts and items are accepted back only in a message with its original form.
    let is_usual = !message.has_opaque_parts()
        && kept.iter().all(|piece| piece.json.is_none() && piece.kind != PieceKind::Item)
        && kept.is_sorted_by_key(|piece| rank(piece.kind));
    if is_usual { message } else { message.with_written(Written { wire_format, pieces: kept }) }
}

/// Returns the tool with its original definition, if the wire format would declare it differently.
#[doc(hidden)]
#[must_use]
pub fn keep_tool_as_written(tool: Tool, wire_format: WireFormat, definition: &str) -> Tool {
    // These keys belong to a schema, not to a definition, and a provider refuses them there.
    const MISPLACED: [&str; 3] = ["required", "properties", "additionalProperties"];
    let usual = |tool: &Tool| match wire_format {
        WireFormat::Anthropic => of_function::<anthropic::WireTool<'_>>(tool),
        WireFormat::OpenAiResponses => of_function::<responses::WireTool<'_>>(tool),
        WireFormat::OpenAiChat => of_function::<openai::WireTool<'_>>(tool),
        WireFormat::Gemini => of_function::<gemini::Declaration<'_>>(tool),
        WireFormat::ChatTemplate | WireFormat::Plain => (Vec::new(), String::new()),
    };
    let Some(mut came) = unmarked(definition, wire_format) else { return tool };
    if let Some(mut function) = came.get("function").and_then(Object::parse)
        && MISPLACED.iter().filter(|key| function.remove(key)).count() > 0
    {
        came.set("function", function.to_json());
    }
    for key in MISPLACED {
        came.remove(key);
    }
    let (fills, usual) = usual(&tool);
    // Comparison of compact JSON: only differences in values, keys and their order count.
    if came.to_json() == compact_json(&usual) {
        return tool;
    }
    empty(&mut came, &fills);
    Tool { written: Some((wire_format, came.to_json())), ..tool }
}

/// Returns the definition of a function as JSON in its provider's form, or `None` if it has no original form.
#[doc(hidden)]
#[must_use]
pub fn definition_as_written(tool: &Tool) -> Option<String> {
    let (wire_format, _) = tool.written.as_ref()?;
    Some(match wire_format {
        WireFormat::Anthropic => json(&Declared::<anthropic::WireTool<'_>>::new(tool)),
        WireFormat::OpenAiResponses => json(&Declared::<responses::WireTool<'_>>::new(tool)),
        WireFormat::OpenAiChat => json(&Declared::<openai::WireTool<'_>>::new(tool)),
        WireFormat::Gemini => {
            let declaration = json(&Declared::<gemini::Declaration<'_>>::new(tool));
            format!("{{\"functionDeclarations\":[{declaration}]}}")
        }
        WireFormat::ChatTemplate | WireFormat::Plain => return None,
    })
}

/// Returns the filled keys of a tool, and its usual declaration as JSON.
fn of_function<'a, T: Function<'a>>(tool: &'a Tool) -> (Vec<Fill<'static>>, String) {
    (T::fills(tool), json(&T::from(tool)))
}

/// Returns the rank of a kind in the usual order of all wire formats.
fn rank(kind: PieceKind) -> u8 {
    match kind {
        PieceKind::Around => 0,
        PieceKind::Reasoning => 1,
        PieceKind::Part | PieceKind::Item => 2,
        PieceKind::Call => 3,
    }
}

/// Parses a provider's object without its cache mark, which belongs to another prompt.
fn unmarked(json: &str, wire_format: WireFormat) -> Option<Object> {
    let mut object = Object::parse(&compact_json(json))?;
    if let Some(mark) = wire_format.cache_mark() {
        object.remove(mark);
    }
    Some(object)
}

/// Returns the JSON of a piece with the keys emptied whose values come from neutral fields. Returns `None` if
/// the wire format writes the same JSON.
fn beside_fields(component: &Component<'_>, wire_format: WireFormat, mut came: Object) -> Option<String> {
    if matches!(component, Component::Opaque { .. }) {
        return None;
    }
    let (fills, usual) = match wire_format {
        WireFormat::Anthropic => anthropic::usual(component),
        WireFormat::OpenAiResponses => responses::usual(component),
        WireFormat::OpenAiChat => openai::usual(component),
        WireFormat::Gemini => gemini::usual(component),
        WireFormat::ChatTemplate | WireFormat::Plain => return None,
    };
    if came.to_json() == usual {
        return None;
    }
    // Both are compared with emptied keys: if only their values differ, the neutral fields already have them.
    empty(&mut came, &fills);
    let mut usual = Object::parse(&usual)?;
    empty(&mut usual, &fills);
    Some(came.to_json()).filter(|came| *came != usual.to_json())
}

/// Returns the keys of an object around other pieces whose values come from neutral fields.
fn around_fills(message: &Message, wire_format: WireFormat) -> Vec<Fill<'_>> {
    let id = message.answers().unwrap_or_default();
    match wire_format {
        WireFormat::Anthropic => vec![Fill::text("tool_use_id", id)],
        WireFormat::OpenAiResponses => vec![Fill::text("call_id", id)],
        _ => Vec::new(),
    }
}

/// Returns the object that this wire format writes around the parts of a message, with an empty content.
fn usual_around(message: &Message, wire_format: WireFormat) -> String {
    let content = if message.parts().is_empty() { "\"\"" } else { "[]" };
    let mut object = Object::default();
    let result = message.answers().filter(|_| message.role() == Role::Tool);
    match (wire_format, result) {
        (WireFormat::OpenAiResponses, Some(id)) => {
            object.set_text("type", "function_call_output");
            object.set_text("call_id", id);
            object.set("output", content.into());
        }
        (WireFormat::OpenAiResponses, None) => {
            object.set_text("type", "message");
            object.set("role", json(&message.role()));
            object.set("content", content.into());
        }
        (WireFormat::Anthropic, Some(id)) => {
            object.set_text("type", "tool_result");
            object.set_text("tool_use_id", id);
            object.set("content", content.into());
            if message.is_failed() {
                object.set("is_error", "true".into());
            }
        }
        _ => {}
    }
    object.to_json()
}
