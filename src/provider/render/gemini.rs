//! Gemini `generateContent`, request side: instructions apart, contents of user and model in turn.

use super::{
    fill::Fill,
    json::{Declared, Function, Raw, object, opaque, schema, tool_fills},
};
use crate::{
    message::{Component, Message, Part, Prompt, Role, Tool, ToolCall, WireFormat},
    provider::conform::{inline_image, is_object},
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap};

/// A request body of Gemini: `systemInstruction`, `contents` and `tools`, without the model's parameters. Calls and results
/// have no ids there: results stand in the order of their calls (Vertex refuses ids: vercel/ai#15664).
#[derive(Debug)]
pub struct GeminiBody<'a> {
    pub(super) prompt: Cow<'a, Prompt>,
}

/// What replaces the signature of a call that has none, where one is demanded: the provider's own word for it
/// (ai.google.dev, thought signatures, read 2026-11-22).
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

impl GeminiBody<'_> {
    fn system(&self) -> Vec<WirePart<'_>> {
        let head = self.prompt.messages.iter().take_while(|message| message.role().instructs());
        head.flat_map(parts).collect()
    }

    /// All functions in one tool, and then what the provider runs itself.
    fn tools(&self) -> Vec<WireTool<'_>> {
        let hosted = |tool: &Tool| tool.hosted.is_some();
        let functions = self.prompt.tools.iter().filter(|tool| !hosted(tool));
        let declarations: Vec<_> = functions.map(Declared::new).collect();
        let functions =
            (!declarations.is_empty()).then_some(WireTool::Functions(Declarations { declarations }));
        let own = self.prompt.tools.iter().filter_map(Tool::hosted_json);
        let own = own.filter_map(|json| serde_json::from_str(json).ok()).map(WireTool::Hosted);
        functions.into_iter().chain(own).collect()
    }

    fn contents(&self) -> Vec<Content<'_>> {
        let messages = &self.prompt.messages;
        let head = messages.iter().take_while(|message| message.role().instructs()).count();
        let live = current_turn(messages);
        let mut contents: Vec<Content<'_>> = Vec::new();
        let mut at = head;
        while let Some(message) = messages.get(at) {
            if message.role() == Role::Assistant {
                let signed = self.prompt.wants.signed_calls && at >= live;
                contents.push(Content { role: "model", parts: spoken(message, signed) });
                at += 1;
                continue;
            }
            let results = messages[at..].iter().take_while(|message| message.role() == Role::Tool).count();
            let calls = at.checked_sub(1).map(|before| &messages[before]);
            let answers = answers(calls, &messages[at..at + results]);
            at += results;
            let said = messages.get(at).filter(|next| !matches!(next.role(), Role::Assistant | Role::Tool));
            at += usize::from(said.is_some());
            // Text after results ends a request as if the model had spoken last; before them it does not (dive#287).
            let parts = said.into_iter().flat_map(parts).chain(answers).collect();
            contents.push(Content { role: "user", parts });
        }
        contents
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

#[derive(Debug, Serialize)]
struct Content<'a> {
    role: &'static str,
    parts: Vec<WirePart<'a>>,
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
    Opaque(Raw<'a>),
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

/// A result: an object as it is, or a text under the key that the provider reads it from (SDK 3.4.0, read 2026-11-22).
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Object(Raw<'a>),
    Text { output: &'a str },
    Error { error: &'a str },
}

impl<'a> Output<'a> {
    fn of(result: &'a Message) -> Self {
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

/// How many steps of the current turn begin with a call that has no signature, where the target wants one; none where
/// there is no such step.
pub(crate) fn unsigned_calls(prompt: &Prompt) -> Option<usize> {
    let steps = prompt.messages.iter().skip(current_turn(&prompt.messages));
    let unsigned =
        steps.filter_map(|message| message.tool_calls().first()).filter(|call| call.signature.is_none());
    Some(unsigned.count()).filter(|count| prompt.wants.signed_calls && *count > 0)
}

/// Where the current turn begins: at the last content of the user that holds no results, which is a content of its own.
fn current_turn(messages: &[Message]) -> usize {
    let after_results = |at: usize| at > 0 && messages[at - 1].role() == Role::Tool;
    let begins = |at: &usize| messages[*at].role() == Role::User && !after_results(*at);
    (0..messages.len()).rev().find(begins).unwrap_or(0)
}

fn parts(message: &Message) -> impl Iterator<Item = WirePart<'_>> {
    let own = Some(message.text()).filter(|text| !text.is_empty()).map(|text| WirePart::Text { text });
    own.into_iter().chain(message.parts().iter().map(wire_part))
}

fn wire_part(part: &Part) -> WirePart<'_> {
    match part {
        Part::Text(text) => WirePart::Text { text },
        Part::Image { url, .. } => match inline_image(url) {
            Some((mime_type, data)) => WirePart::Inline { inline_data: Inline { mime_type, data } },
            None => WirePart::File { file_data: File { mime_type: kind_of(url), file_uri: url } },
        },
        Part::Opaque { json, .. } => match opaque(json) {
            Ok(raw) => WirePart::Opaque(raw),
            Err(text) => WirePart::Text { text },
        },
    }
}

/// What an address says about the image behind it.
#[must_use]
pub fn kind_of(url: &str) -> &'static str {
    let path = url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let kinds = [(".png", "image/png"), (".gif", "image/gif"), (".webp", "image/webp")];
    kinds.iter().find(|(end, _)| path.ends_with(end)).map_or("image/jpeg", |(_, kind)| kind)
}

/// What the model said and called; the first call bears a signature, where there is one or has to be.
fn spoken(message: &Message, signed: bool) -> Vec<WirePart<'_>> {
    let calls = message.tool_calls().iter().enumerate().map(|(at, call)| WirePart::Call {
        function_call: Call { name: &call.name, args: object(&call.arguments) },
        thought_signature: call.signature.as_deref().or(signed.then_some(NO_SIGNATURE)).filter(|_| at == 0),
    });
    parts(message).chain(calls).collect()
}

/// Returns the keys that neutral fields fill, and the JSON that this renderer writes of a component.
pub(super) fn usual<'a>(_: &Component<'a>) -> (Vec<Fill<'a>>, String) {
    (Vec::new(), String::new())
}

/// Results in the order of their calls, each by its function's name: of several results with one id, the first.
fn answers<'a>(asked: Option<&'a Message>, results: &'a [Message]) -> Vec<WirePart<'a>> {
    let calls = asked.map_or(&[][..], Message::tool_calls);
    let by_call = results.iter().rev().filter_map(|result| Some((result.answers()?, result)));
    let by_call: BTreeMap<_, &Message> = by_call.collect();
    let answer = |call: &'a ToolCall| {
        let result = *by_call.get(call.id.as_str())?;
        let response = Output::of(result);
        Some(WirePart::Response { function_response: Response { name: &call.name, response } })
    };
    calls.iter().filter_map(answer).collect()
}

/// A tool: all functions as one, or one that the provider runs itself.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum WireTool<'a> {
    Functions(Declarations<'a>),
    Hosted(&'a RawValue),
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
        /// A call's result is the first that answers it, in the order of the calls: as a search from the first result finds it.
        #[test]
        fn results_are_those_that_a_search_finds(
            calls in prop::collection::vec(0u8..6, 0..8),
            results in prop::collection::vec(0u8..6, 0..8),
        ) {
            let calls = calls.iter().map(|id| ToolCall::new(format!("c{id}"), "f", "{}"));
            let asked = Message::assistant("").with_tool_calls(calls);
            let result = |(at, id): (usize, &u8)| Message::tool(format!("c{id}"), format!("result {at}"));
            let results: Vec<Message> = results.iter().enumerate().map(result).collect();
            let searched = asked.tool_calls().iter().filter_map(|call| {
                let result = results.iter().find(|result| result.answers() == Some(&call.id))?;
                let response = Output::of(result);
                Some(WirePart::Response { function_response: Response { name: &call.name, response } })
            });
            let searched: Vec<WirePart<'_>> = searched.collect();
            let found = serde_json::to_string(&answers(Some(&asked), &results)).unwrap();
            prop_assert_eq!(found, serde_json::to_string(&searched).unwrap());
        }
    }
}
