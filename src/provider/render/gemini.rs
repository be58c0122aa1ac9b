//! The request body of Gemini `generateContent`: instructions in a separate field, and alternating contents
//! of user and model.

use super::{
    fill::{Fill, fill, filled, json as to_json},
    json::{Declared, Function, Raw, object, opaque, schema, tool_fills},
};
use crate::{
    message::{Component, Message, Prompt, RESULT_PLACE, Role, Tool, ToolCall, WireFormat},
    provider::conform::{inline_image, is_object},
    text::object::Object,
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap};

/// A request body of Gemini: `systemInstruction`, `contents` and `tools`, without the model's parameters.
/// Calls and results keep their original ids, if any. Results are in the order of their calls, because Vertex
/// refuses ids (vercel/ai#15664).
#[derive(Debug)]
pub(super) struct GeminiBody<'a> {
    pub(super) prompt: &'a Prompt,
}

/// The replacement of a missing signature that is required for a call, as published by the provider
/// (ai.google.dev, thought signatures, read 2026-11-22).
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

impl GeminiBody<'_> {
    fn system(&self) -> Vec<WirePart<'_>> {
        let head = self.prompt.messages.iter().take_while(|message| message.role().instructs());
        head.flat_map(parts).collect()
    }

    /// Returns the tools. All functions form one tool, at the place of the first function, or inside the tool
    /// of the provider that they came with. Provider-run tools follow in their order.
    fn tools(&self) -> Vec<WireTool<'_>> {
        let tools = &self.prompt.tools;
        let declarations: Vec<_> =
            tools.iter().filter(|tool| tool.hosted.is_none()).map(Declared::new).collect();
        let mut functions = (!declarations.is_empty()).then_some(Declarations { declarations });
        // A provider's own tool may contain functions and hosted tools together; the functions go back into
        // it.
        let beside = |tool: &Tool| tool.hosted_json().and_then(functions_key).is_some();
        let is_beside = tools.iter().any(beside);
        let mut all = Vec::new();
        for tool in tools {
            let Some(json) = tool.hosted_json() else {
                all.extend(functions.take_if(|_| !is_beside).map(WireTool::Functions));
                continue;
            };
            let Some((key, mut object)) = functions_key(json) else {
                all.extend(serde_json::from_str(json).ok().map(WireTool::Hosted));
                continue;
            };
            match functions.take() {
                Some(functions) => object.set(key, to_json(&functions.declarations)),
                None => drop(object.remove(key)),
            }
            all.extend(RawValue::from_string(object.to_json()).ok().map(WireTool::Written));
        }
        all
    }

    /// Returns the contents in order. Tool results and the user message after them are added together.
    fn contents(&self) -> Vec<Content<'_>> {
        let messages = &self.prompt.messages;
        let head = messages.iter().take_while(|message| message.role().instructs()).count();
        let live = current_turn(messages);
        let mut contents = Contents::default();
        let mut at = head;
        while let Some(message) = messages.get(at) {
            if message.role() == Role::Assistant {
                let signed = self.prompt.wants.signed_calls && at >= live;
                contents.add_reply(message, signed);
                at += 1;
                continue;
            }
            // A run of results answers the calls of the message before it, and shares a content with the next
            // user text.
            let results = messages[at..].iter().take_while(|message| message.role() == Role::Tool).count();
            let calls = at.checked_sub(1).map(|before| &messages[before]);
            let answers = answers(calls, &messages[at..at + results]);
            at += results;
            let said = messages.get(at).filter(|next| !matches!(next.role(), Role::Assistant | Role::Tool));
            at += usize::from(said.is_some());
            contents.add_answers(answers, said);
        }
        contents.all
    }
}

impl Serialize for GeminiBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let system = self.system();
        let mut map = serializer.serialize_map(None)?;
        if !system.is_empty() {
            map.serialize_entry("systemInstruction", &Instruction { parts: system })?;
        }
        map.serialize_entry("contents", &self.contents())?;
        let tools = self.tools();
        if !tools.is_empty() {
            map.serialize_entry("tools", &tools)?;
        }
        map.end()
    }
}

#[derive(Debug, Serialize)]
struct Instruction<'a> {
    parts: Vec<WirePart<'a>>,
}

/// A content, with its original keys if it came with others.
#[derive(Debug)]
struct Content<'a> {
    role: &'static str,
    around: Option<&'a str>,
    parts: Vec<WirePart<'a>>,
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = self.around.and_then(Object::parse).unwrap_or_else(|| {
            let mut usual = Object::default();
            usual.set_text("role", self.role);
            usual.set("parts", "[]".into());
            usual
        });
        // A content that came without parts stays so, as long as it has none.
        if object.get("parts").is_some() || !self.parts.is_empty() {
            object.set("parts", to_json(&self.parts));
        }
        object.serialize(serializer)
    }
}

/// The contents built so far.
#[derive(Default)]
struct Contents<'a> {
    all: Vec<Content<'a>>,
}

impl<'a> Contents<'a> {
    /// Begins a content. If the last one is still empty and has no original keys, gives it those of `around`.
    fn begin(&mut self, role: &'static str, around: Option<&'a str>) {
        match self.all.last_mut() {
            Some(last) if around.is_some() && last.around.is_none() && last.parts.is_empty() => {
                last.around = around;
            }
            _ => self.all.push(Content { role, around, parts: Vec::new() }),
        }
    }

    fn push(&mut self, part: WirePart<'a>) {
        if let Some(last) = self.all.last_mut() {
            last.parts.push(part);
        }
    }

    /// Adds the model's parts. The first call gets a signature if it has one or if one is required.
    fn add_reply(&mut self, message: &'a Message, signed: bool) {
        self.begin("model", None);
        let mut signature = if signed { Signature::Demanded } else { Signature::Own };
        for component in message.components(WireFormat::Gemini) {
            match component {
                Component::Around { json } => self.begin("model", Some(json)),
                Component::Call { .. } => {
                    self.push(wire_part(&component, std::mem::take(&mut signature)));
                }
                ref part if is_sent(part) => self.push(wire_part(part, Signature::Elsewhere)),
                _ => {}
            }
        }
    }

    /// Adds tool results and the user message that follows them, in one or more contents.
    fn add_answers(&mut self, answers: Vec<Answer<'a>>, said: Option<&'a Message>) {
        let components = said.map(|said| said.components(WireFormat::Gemini)).unwrap_or_default();
        let is_place = |component: &Component<'_>| component.json().is_some_and(|json| json == RESULT_PLACE);
        let places = components.iter().filter(|component| is_place(component)).count();
        let is_apart = matches!(components.first(), Some(Component::Around { .. })) && places == 0;
        // Results come first if there is no text, or if the text came as a content of its own.
        let is_first = is_apart || said.is_none();
        // The first place also takes the results that have no place of their own.
        let mut further = answers.len().saturating_sub(places);
        let mut answers = answers.into_iter();
        self.begin("user", None);
        if is_first {
            answers.by_ref().for_each(|answer| self.add_answer(answer));
            if said.is_some() && self.all.last().is_some_and(|last| !last.parts.is_empty()) {
                self.begin("user", None);
            }
        }
        for component in &components {
            match component {
                Component::Around { json } if *json == RESULT_PLACE => {
                    let own = 1 + std::mem::take(&mut further);
                    answers.by_ref().take(own).for_each(|answer| self.add_answer(answer));
                }
                Component::Around { json } => self.begin("user", Some(json)),
                part if is_sent(part) => self.push(wire_part(part, Signature::Elsewhere)),
                _ => {}
            }
        }
        // Text after tool results ends the request as if the model had spoken last; text before them does not
        // (dive#287). Therefore the remaining results come last: text follows results only if it came so.
        answers.for_each(|answer| self.add_answer(answer));
    }

    /// Adds a result, in a content of its own if it came with one.
    fn add_answer(&mut self, answer: Answer<'a>) {
        if answer.around.is_some() {
            self.begin("user", answer.around);
        }
        self.push(answer.part);
    }
}

/// A tool result, with the original keys of the content that it begins.
struct Answer<'a> {
    around: Option<&'a str>,
    part: WirePart<'a>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum WirePart<'a> {
    Text {
        text: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    Inline {
        inline_data: Inline<'a>,
    },
    #[serde(rename_all = "camelCase")]
    File {
        file_data: File<'a>,
    },
    #[serde(rename_all = "camelCase")]
    Call {
        function_call: Call<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    #[serde(rename_all = "camelCase")]
    Response {
        function_response: Response<'a>,
    },
    Raw(Raw<'a>),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Inline<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    mime_type: &'static str,
    file_uri: &'a str,
}

#[derive(Debug, Serialize)]
struct Call<'a> {
    name: &'a str,
    args: Raw<'a>,
}

#[derive(Debug, Serialize)]
struct Response<'a> {
    name: &'a str,
    response: Output<'a>,
}

/// A result in wire form. A JSON object is sent as it is, a text under the key that the provider reads (SDK
/// 3.4.0, read 2026-11-22).
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Object(Raw<'a>),
    Text { output: &'a str },
    Error { error: &'a str },
}

impl<'a> Output<'a> {
    fn from_result(result: &'a Message) -> Self {
        let text = result.plain_texts().next().unwrap_or_default();
        if is_object(text) {
            Self::Object(object(text))
        } else if result.is_failed() {
            Self::Error { error: text }
        } else {
            Self::Text { output: text }
        }
    }
}

/// Counts the steps of the current turn whose first call lacks a signature. Returns `None` if there are none,
/// or if the target requires no signatures.
pub(crate) fn unsigned_calls(prompt: &Prompt) -> Option<usize> {
    let steps = prompt.messages.iter().skip(current_turn(&prompt.messages));
    let unsigned =
        steps.filter_map(|message| message.tool_calls().first()).filter(|call| call.signature.is_none());
    Some(unsigned.count()).filter(|count| prompt.wants.signed_calls && *count > 0)
}

/// Returns the start of the current turn: the last user message that does not come right after tool results.
fn current_turn(messages: &[Message]) -> usize {
    let after_results = |at: usize| at > 0 && messages[at - 1].role() == Role::Tool;
    let begins = |at: &usize| messages[*at].role() == Role::User && !after_results(*at);
    (0..messages.len()).rev().find(begins).unwrap_or(0)
}

/// Returns the parts of a message without its calls and reasoning.
fn parts(message: &Message) -> impl Iterator<Item = WirePart<'_>> {
    let components = message.components(WireFormat::Gemini);
    let parts: Vec<_> = components.iter().filter(|component| component.is_content()).collect();
    parts.into_iter().map(|part| wire_part(part, Signature::Elsewhere)).collect::<Vec<_>>().into_iter()
}

/// Returns true for a component that is sent as a part. Reasoning is sent only if it came as one.
fn is_sent(component: &Component<'_>) -> bool {
    match component {
        Component::Reasoning { json, .. } => json.is_some(),
        Component::Around { .. } => false,
        _ => true,
    }
}

/// The signature of a call that has no original part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Signature {
    /// No signature: another call of the message has it.
    #[default]
    Elsewhere,
    /// The call's own signature, if it has one.
    Own,
    /// The call's own signature, or else the replacement that skips the check.
    Demanded,
}

/// Returns the part of a component. It is the original JSON with its keys filled, or else the usual form. If
/// a signature is demanded and missing, the replacement that skips the check is added.
fn wire_part<'a>(component: &Component<'a>, signature: Signature) -> WirePart<'a> {
    let signed = signature == Signature::Demanded;
    if let Some(raw) = component.json().and_then(|json| filled(json, &fills(component), None)) {
        let has_signature = |object: &Object| SIGNATURES.iter().any(|key| object.get(key).is_some());
        return match Object::parse(raw.get()).filter(|object| signed && !has_signature(object)) {
            Some(mut object) => {
                object.set_text("thoughtSignature", NO_SIGNATURE);
                WirePart::Raw(Cow::Owned(RawValue::from_string(object.to_json()).unwrap_or(raw)))
            }
            None => WirePart::Raw(Cow::Owned(raw)),
        };
    }
    match *component {
        Component::Text { text, .. } => WirePart::Text { text },
        Component::Image { url, .. } => match inline_image(url) {
            Some((mime_type, data)) => WirePart::Inline { inline_data: Inline { mime_type, data } },
            None => WirePart::File { file_data: File { mime_type: kind_of(url), file_uri: url } },
        },
        Component::Opaque { json, .. } => match opaque(json) {
            Ok(raw) => WirePart::Raw(raw),
            Err(text) => WirePart::Text { text },
        },
        Component::Call { call, .. } => WirePart::Call {
            function_call: Call { name: &call.name, args: object(&call.arguments) },
            thought_signature: call
                .signature
                .as_deref()
                .filter(|_| signature != Signature::Elsewhere)
                .or(signed.then_some(NO_SIGNATURE)),
        },
        Component::Reasoning { reasoning, .. } => WirePart::Text { text: &reasoning.text },
        Component::Around { .. } => WirePart::Text { text: "" },
    }
}

/// The keys of a signature in the spellings of the API and of the Python SDK.
const SIGNATURES: [&str; 2] = ["thoughtSignature", "thought_signature"];

/// Returns the keys of a part whose values come from neutral fields, in both spellings.
fn fills<'a>(component: &Component<'a>) -> Vec<Fill<'a>> {
    let signed = |signature: Option<&str>| -> Vec<Fill<'a>> {
        let fill = |key| signature.map(|signature| Fill::text(key, signature));
        SIGNATURES.into_iter().filter_map(fill).collect()
    };
    // The SDK writes snake case, the API camel case; a log may contain either.
    let both = |keys: [&'a str; 2], inner: &dyn Fn() -> Vec<Fill<'a>>| -> Vec<Fill<'a>> {
        keys.into_iter().map(|key| Fill::Inside(key, inner())).collect()
    };
    match component {
        Component::Text { text, .. } => vec![Fill::text("text", text)],
        Component::Image { url, .. } => match inline_image(url) {
            Some((mime_type, data)) => both(["inlineData", "inline_data"], &|| {
                vec![
                    Fill::text("mimeType", mime_type),
                    Fill::text("mime_type", mime_type),
                    Fill::text("data", data),
                ]
            }),
            None => both(["fileData", "file_data"], &|| {
                vec![Fill::text("fileUri", url), Fill::text("file_uri", url)]
            }),
        },
        Component::Call { call, .. } => {
            let function = || {
                vec![
                    Fill::text("id", &call.id),
                    Fill::text("name", &call.name),
                    Fill::Value("args", object(&call.arguments).get().into()),
                ]
            };
            let mut fills = both(["functionCall", "function_call"], &function);
            fills.extend(signed(call.signature.as_deref()));
            fills
        }
        Component::Reasoning { reasoning, .. } => {
            let mut fills = signed(reasoning.signature.as_deref());
            fills.push(Fill::text("text", &reasoning.text));
            fills
        }
        Component::Opaque { .. } | Component::Around { .. } => Vec::new(),
    }
}

/// Returns the filled keys of a component, and the JSON that this renderer writes for it.
pub(super) fn usual<'a>(component: &Component<'a>) -> (Vec<Fill<'a>>, String) {
    match component {
        // Reasoning is sent back only in its original form, so the empty object never equals it.
        Component::Reasoning { .. } | Component::Around { .. } => (fills(component), "{}".into()),
        part => (fills(part), to_json(&wire_part(part, Signature::Elsewhere))),
    }
}

/// Returns the media type of an image by the ending of its URL, `image/jpeg` if it is unknown.
#[must_use]
pub fn kind_of(url: &str) -> &'static str {
    let path = url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let kinds = [(".png", "image/png"), (".gif", "image/gif"), (".webp", "image/webp")];
    kinds.iter().find(|(end, _)| path.ends_with(end)).map_or("image/jpeg", |(_, kind)| kind)
}

/// Returns the JSON in which the text of a result is sent.
#[doc(hidden)]
#[must_use]
pub fn result_json(result: &Message) -> String {
    to_json(&Output::from_result(result))
}

/// Returns true for a data URL that every wire format accepts as an image.
#[doc(hidden)]
#[must_use]
pub fn is_inline_image(url: &str) -> bool {
    inline_image(url).is_some()
}

/// Returns the results in the order of their calls, with the names of their functions. Of several results
/// with one id, only the first is used. Results in their original form keep their own order.
fn answers<'a>(asked: Option<&'a Message>, results: &'a [Message]) -> Vec<Answer<'a>> {
    let calls = asked.map_or(&[][..], Message::tool_calls);
    // Reversed, so that the first result of an id is the one that stays in the map. O(n log n) in all.
    let by_call = results.iter().rev().filter_map(|result| Some((result.answers()?, result)));
    let by_call: BTreeMap<_, &Message> = by_call.collect();
    if results.iter().any(|result| result.written_in(WireFormat::Gemini).is_some()) {
        let calls = calls.iter().rev().map(|call| (call.id.as_str(), call));
        let calls: BTreeMap<_, _> = calls.collect();
        let own = results.iter().filter_map(|result| {
            let id = result.answers()?;
            by_call.get(id).filter(|first| std::ptr::eq(**first, result))?;
            Some(answer(calls.get(id)?, result))
        });
        return own.collect();
    }
    let own = |call: &'a ToolCall| Some(answer(call, by_call.get(call.id.as_str())?));
    calls.iter().filter_map(own).collect()
}

/// Returns the result of a call, in its original form if it has one.
fn answer<'a>(call: &'a ToolCall, result: &'a Message) -> Answer<'a> {
    let usual = || WirePart::Response {
        function_response: Response { name: &call.name, response: Output::from_result(result) },
    };
    let components = result.components(WireFormat::Gemini);
    let (mut around, mut part) = (None, None);
    for component in &components {
        let Component::Around { json } = component else { continue };
        let is_result = |object: &Object| RESPONSES.iter().any(|key| object.get(key).is_some());
        match Object::parse(json) {
            Some(object) if is_result(&object) => part = written_answer(object, call, result, &components),
            _ => around = Some(*json),
        }
    }
    Answer { around, part: part.unwrap_or_else(usual) }
}

/// The keys of a result in the spellings of the API and of the Python SDK.
const RESPONSES: [&str; 2] = ["functionResponse", "function_response"];

/// Returns a result in its original form, with its id, name, text and media filled in.
fn written_answer<'a>(
    mut object: Object,
    call: &ToolCall,
    result: &Message,
    components: &[Component<'a>],
) -> Option<WirePart<'a>> {
    let media = components
        .iter()
        .filter(|component| component.is_content() && !matches!(component, Component::Text { .. }));
    let media: Vec<WirePart<'_>> = media.map(|part| wire_part(part, Signature::Elsewhere)).collect();
    let response = to_json(&Output::from_result(result));
    for key in RESPONSES {
        let Some(mut inner) = object.get(key).and_then(Object::parse) else { continue };
        fill(
            &mut inner,
            &[
                Fill::text("id", &call.id),
                Fill::text("name", &call.name),
                Fill::Value("response", response.clone()),
            ],
        );
        if inner.get("parts").is_some_and(|parts| parts.starts_with('[')) {
            inner.set("parts", to_json(&media));
        }
        object.set(key, inner.to_json());
    }
    RawValue::from_string(object.to_json()).ok().map(|raw| WirePart::Raw(Cow::Owned(raw)))
}

/// A tool in wire form: all functions together, a provider-run tool, or a tool in its original form.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum WireTool<'a> {
    Functions(Declarations<'a>),
    Hosted(&'a RawValue),
    Written(Box<RawValue>),
}

/// The keys of functions in a tool, in the spellings of the API and of the Python SDK.
#[doc(hidden)]
pub const FUNCTIONS: [&str; 2] = ["functionDeclarations", "function_declarations"];

/// Returns the key of the functions in a tool that contains some, and the tool. Returns `None` for any other
/// tool.
fn functions_key(json: &str) -> Option<(&'static str, Object)> {
    let key = FUNCTIONS.into_iter().find(|key| json.contains(key))?;
    let object = Object::parse(json)?;
    object.get(key).is_some().then_some((key, object))
}

#[derive(Debug, Serialize)]
struct Declarations<'a> {
    #[serde(rename = "functionDeclarations")]
    declarations: Vec<Declared<'a, Declaration<'a>>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Declaration<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters_json_schema: Raw<'a>,
}

impl<'a> Function<'a> for Declaration<'a> {
    const WIRE_FORMAT: WireFormat = WireFormat::Gemini;

    fn fills(tool: &Tool) -> Vec<Fill<'static>> {
        tool_fills(tool, "parametersJsonSchema")
    }
}

impl<'a> From<&'a Tool> for Declaration<'a> {
    fn from(tool: &'a Tool) -> Self {
        Self { name: &tool.name, description: &tool.description, parameters_json_schema: schema(tool) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The result of a call is the first one that answers it, as a linear search finds it, in the order
        /// of the calls.
        #[test]
        fn results_equal_those_of_a_linear_search(
            calls in prop::collection::vec(0u8..6, 0..8),
            results in prop::collection::vec(0u8..6, 0..8),
        ) {
            let calls = calls.iter().map(|id| ToolCall::new(format!("c{id}"), "f", "{}"));
            let asked = Message::assistant("").with_tool_calls(calls);
            let result = |(at, id): (usize, &u8)| Message::tool(format!("c{id}"), format!("result {at}"));
            let results: Vec<Message> = results.iter().enumerate().map(result).collect();
            let searched = asked.tool_calls().iter().filter_map(|call| {
                let result = results.iter().find(|result| result.answers() == Some(&call.id))?;
                let response = Output::from_result(result);
                Some(WirePart::Response { function_response: Response { name: &call.name, response } })
            });
            let searched: Vec<WirePart<'_>> = searched.collect();
            let found = answers(Some(&asked), &results).into_iter().map(|answer| answer.part);
            let found: Vec<WirePart<'_>> = found.collect();
            prop_assert_eq!(serde_json::to_string(&found).unwrap(), serde_json::to_string(&searched).unwrap());
        }
    }
}
