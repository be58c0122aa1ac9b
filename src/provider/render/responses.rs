//! The request body of `OpenAI` Responses, in which every message, call, result and piece of reasoning is a
//! separate item.

use super::{
    fill::{Fill, filled, json as to_json},
    json::{Declared, Function, Raw, opaque, opaque_with, schema, tool_fills},
    marked_in_requests,
    openai::{BREAKPOINT, Breakpoint, MARK},
};
use crate::{
    message::{Component, Message, Prompt, Reasoning, Role, Tool, ToolCall, WireFormat},
    text::object::Object,
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{
    json,
    value::{RawValue, to_raw_value},
};
use std::{borrow::Cow, collections::BTreeMap};

/// A request body of `OpenAI` Responses: `input` and `tools`, without the model's parameters. Instructions
/// stay in `input`, in their position, as messages of the system or developer role.
#[derive(Debug)]
pub(super) struct ResponsesBody<'a> {
    pub(super) prompt: &'a Prompt,
    /// True if cache breakpoints are written.
    pub(super) is_marked: bool,
}

impl ResponsesBody<'_> {
    fn items(&self) -> Vec<Item<'_>> {
        let mut items = Vec::new();
        // The item types of calls by call id. A result must have the type that fits its call, which came
        // earlier.
        let mut types = BTreeMap::new();
        for (at, message) in self.prompt.messages.iter().enumerate() {
            let marked = if self.is_marked { marked_in_requests(self.prompt, at) } else { Vec::new() };
            let components = message.components(WireFormat::OpenAiResponses);
            types.extend(components.iter().filter_map(own_type));
            let answer = message.answers().filter(|_| message.role() == Role::Tool);
            if let Some(call_id) = answer {
                let called = types.get(call_id).map(String::as_str);
                items.push(result(message, call_id, called, &components, &marked));
            } else {
                Said { message, marked: &marked, items: &mut items }.all(&components);
            }
        }
        items
    }
}

/// The items of a message that is not a tool result.
struct Said<'a, 's> {
    message: &'a Message,
    marked: &'s [usize],
    items: &'s mut Vec<Item<'a>>,
}

impl<'a> Said<'a, '_> {
    /// Adds the items of the components. A run of content components becomes one message item.
    fn all(&mut self, components: &[Component<'a>]) {
        let own_items = self.is_own_items(components);
        let mut rest = components;
        while let Some((component, behind)) = rest.split_first() {
            let follow = behind.iter().take_while(|next| is_content(next)).count();
            rest = match *component {
                Component::Around { json } => {
                    self.message_item(Some(json), &behind[..follow]);
                    &behind[follow..]
                }
                Component::Opaque { json, is_item, .. } if is_item || own_items => {
                    match opaque(json) {
                        Ok(raw) => self.items.push(Item::Own(raw)),
                        Err(_) => self.message_item(None, &rest[..1]),
                    }
                    behind
                }
                Component::Reasoning { reasoning, json } => {
                    self.items.push(thought(reasoning, json));
                    behind
                }
                Component::Call { call, json, .. } => {
                    self.items.push(called(call, json));
                    behind
                }
                Component::Text { .. } | Component::Image { .. } | Component::Opaque { .. } => {
                    self.message_item(None, &rest[..=follow]);
                    &behind[follow..]
                }
            };
        }
    }

    /// Returns true if the message has only opaque parts and no original form. Each part is then an item.
    /// Besides assistant messages, only instructions that add tools have this form.
    fn is_own_items(&self, components: &[Component<'_>]) -> bool {
        let may_be = self.message.role() == Role::Assistant || self.message.role().instructs();
        let mut content = components.iter().filter(|component| is_content(component));
        self.message.written_in(WireFormat::OpenAiResponses).is_none()
            && may_be
            && content.all(|component| matches!(component, Component::Opaque { .. }))
    }

    /// Adds a message item with the given parts, in the original object `json` if there is one.
    fn message_item(&mut self, json: Option<&'a str>, parts: &[Component<'a>]) {
        let role = self.message.role();
        let around = json.and_then(|json| {
            let mut around = Object::parse(json)?;
            match around.get("content") {
                Some("\"\"") => around.set("content", to_json(&as_a_text(parts, self.marked))),
                Some("[]") => around.set("content", to_json(&listed(parts, self.marked))),
                _ => {}
            }
            around.set("role", to_json(&role));
            filled(&around.to_json(), &[], None)
        });
        self.items.push(match around {
            Some(raw) => Item::Own(Cow::Owned(raw)),
            None => Item::Message { role, content: content(parts, self.marked) },
        });
    }
}

/// Returns true for text and other parts of a content, which are not items themselves.
fn is_content(component: &Component<'_>) -> bool {
    matches!(
        component,
        Component::Text { .. } | Component::Image { .. } | Component::Opaque { is_item: false, .. }
    )
}

/// Returns the id and item type of a call that is not a function call, or `None` for any other component.
fn own_type<'a>(component: &Component<'a>) -> Option<(&'a str, String)> {
    let Component::Call { call, json: Some(json), .. } = *component else { return None };
    let kind = Object::parse(json)?.text("type")?;
    (kind != "function_call").then_some((call.id.as_str(), kind))
}

/// Returns the item of a call: its original JSON with the keys filled, or a function call.
fn called<'a>(call: &'a ToolCall, json: Option<&'a str>) -> Item<'a> {
    match json.and_then(|json| filled(json, &call_fills(call), None)) {
        Some(raw) => Item::Own(Cow::Owned(raw)),
        None => Item::FunctionCall { call_id: &call.id, name: &call.name, arguments: &call.arguments },
    }
}

/// Returns the keys of a call whose values come from neutral fields.
fn call_fills(call: &ToolCall) -> Vec<Fill<'_>> {
    vec![
        Fill::text("call_id", &call.id),
        Fill::text("name", &call.name),
        Fill::text("arguments", &call.arguments),
        Fill::text("input", &call.arguments),
    ]
}

/// Returns the item of reasoning: its original JSON with the keys filled, or the usual form.
fn thought<'a>(own: &'a Reasoning, json: Option<&'a str>) -> Item<'a> {
    match json.and_then(|json| filled(json, &reasoning_fills(own), None)) {
        Some(raw) => Item::Own(Cow::Owned(raw)),
        None => reasoning(own),
    }
}

/// Returns the keys of reasoning whose values come from neutral fields.
fn reasoning_fills(reasoning: &Reasoning) -> Vec<Fill<'_>> {
    vec![Fill::text("encrypted_content", reasoning.signature.as_deref().unwrap_or_default())]
}

/// Returns the item of a result: in its original form, or in the type that its call requires.
fn result<'a>(
    message: &'a Message,
    call_id: &'a str,
    called: Option<&str>,
    components: &[Component<'a>],
    marked: &[usize],
) -> Item<'a> {
    let around = components.first().and_then(|first| match first {
        Component::Around { json } => Object::parse(json),
        _ => None,
    });
    let parts: Vec<Component<'a>> =
        components.iter().filter(|component| is_content(component)).copied().collect();
    if let Some(mut around) = around {
        match around.get("output") {
            Some("\"\"") => around.set("output", to_json(&as_a_text(&parts, marked))),
            Some("[]") => around.set("output", to_json(&listed(&parts, marked))),
            _ => {}
        }
        if let Some(raw) = filled(&around.to_json(), &[Fill::text("call_id", call_id)], None) {
            return Item::Own(Cow::Owned(raw));
        }
    }
    match called.and_then(|called| own_result(call_id, called, message)) {
        Some(raw) => Item::Own(Cow::Owned(raw)),
        None => Item::FunctionCallOutput { call_id, output: content(&parts, marked) },
    }
}

/// Returns a synthetic result in the type that a call of a tool other than a function requires. Returns
/// `None` for a call that accepts the result of a function.
fn own_result(call_id: &str, called: &str, message: &Message) -> Option<Box<RawValue>> {
    let text = message.plain_texts().collect::<Vec<&str>>().join("\n\n");
    let kind = format!("{called}_output");
    // A synthetic result replaces one that was lost, so it reports a failure: exit code 1, failed, not
    // approved.
    let item = match called {
        "shell_call" => json!({"type": kind, "call_id": call_id, "output": [
            {"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}
        ]}),
        "apply_patch_call" => {
            json!({"type": kind, "call_id": call_id, "status": "failed", "output": text})
        }
        "mcp_approval_request" => {
            json!({"type": "mcp_approval_response", "approval_request_id": call_id, "approve": false})
        }
        "local_shell_call" => json!({"type": kind, "id": call_id, "output": text}),
        "custom_tool_call" => json!({"type": kind, "call_id": call_id, "output": text}),
        _ => return None,
    };
    to_raw_value(&item).ok()
}

impl Serialize for ResponsesBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tools: Vec<Declared<'_, WireTool<'_>>> = self.prompt.tools.iter().map(Declared::new).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("input", &self.items())?;
        if !tools.is_empty() {
            map.serialize_entry("tools", &tools)?;
        }
        map.end()
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: Role,
        content: Content<'a>,
    },
    Reasoning {
        id: &'a str,
        summary: Vec<WirePart<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<&'a str>,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Content<'a>,
    },
    /// The original JSON of an item, such as a record of a provider-run tool.
    #[serde(untagged)]
    Own(Raw<'a>),
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<WirePart<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum WirePart<'a> {
    Text {
        r#type: &'static str,
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Option<Breakpoint>,
    },
    Image {
        r#type: &'static str,
        image_url: &'a str,
        detail: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Option<Breakpoint>,
    },
    Opaque(Raw<'a>),
}

/// Returns the usual form of a reasoning item.
fn reasoning(reasoning: &Reasoning) -> Item<'_> {
    let summary = Some(reasoning.text.as_str()).filter(|text| !text.is_empty()).map(|text| WirePart::Text {
        r#type: "summary_text",
        text,
        prompt_cache_breakpoint: None,
    });
    Item::Reasoning {
        id: reasoning.id.as_deref().unwrap_or_default(),
        summary: summary.into_iter().collect(),
        encrypted_content: reasoning.signature.as_deref(),
    }
}

/// Returns a content: a string for plain text without a breakpoint, otherwise a list.
fn content<'a>(parts: &[Component<'a>], marked: &[usize]) -> Content<'a> {
    match parts {
        [] => Content::Text(""),
        [Component::Text { at, text, is_part: false, .. }] if !marked.contains(at) => Content::Text(text),
        parts => listed(parts, marked),
    }
}

/// Returns a content that came as a string: a string if it is one text, otherwise like [`content`].
fn as_a_text<'a>(parts: &[Component<'a>], marked: &[usize]) -> Content<'a> {
    match parts {
        [Component::Text { at, text, json: None, .. }] if !marked.contains(at) => Content::Text(text),
        parts => content(parts, marked),
    }
}

/// Returns a content as a list.
fn listed<'a>(parts: &[Component<'a>], marked: &[usize]) -> Content<'a> {
    let mark = |at: &usize| marked.contains(at).then_some(BREAKPOINT);
    let part = |component: &Component<'a>| match component {
        Component::Text { at, .. } | Component::Image { at, .. } | Component::Opaque { at, .. } => {
            wire_part(component, mark(at))
        }
        Component::Around { .. } | Component::Call { .. } | Component::Reasoning { .. } => None,
    };
    Content::Parts(parts.iter().filter_map(part).collect())
}

/// Returns a part: its original JSON with the keys filled, or the usual form.
fn wire_part<'a>(component: &Component<'a>, mark: Option<Breakpoint>) -> Option<WirePart<'a>> {
    let written = |json: Option<&'a str>| {
        let mark = mark.map(|mark| (MARK, to_json(&mark)));
        filled(json?, &part_fills(component), mark).map(|raw| WirePart::Opaque(Cow::Owned(raw)))
    };
    let text = |text| WirePart::Text { r#type: "input_text", text, prompt_cache_breakpoint: mark };
    Some(match *component {
        Component::Text { text: own, json, .. } => written(json).unwrap_or_else(|| text(own)),
        Component::Opaque { json, .. } => match opaque_with(json, mark.map(|mark| (MARK, mark))) {
            Ok(raw) => WirePart::Opaque(raw),
            Err(json) => text(json),
        },
        Component::Image { url, detail, json, .. } => written(json).unwrap_or_else(|| {
            // The API refuses other values, which other wire formats know.
            let known = |detail: &&str| ["low", "high", "original"].contains(detail);
            WirePart::Image {
                r#type: "input_image",
                image_url: url,
                detail: detail.filter(known).unwrap_or("auto"),
                prompt_cache_breakpoint: mark,
            }
        }),
        Component::Around { .. } | Component::Call { .. } | Component::Reasoning { .. } => return None,
    })
}

/// Returns the keys of a part whose values come from neutral fields.
fn part_fills<'a>(component: &Component<'a>) -> Vec<Fill<'a>> {
    match component {
        Component::Text { text, .. } => vec![Fill::text("text", text), Fill::text("refusal", text)],
        Component::Image { url, .. } => vec![Fill::text("image_url", url)],
        _ => Vec::new(),
    }
}

/// Returns the filled keys of a component, and the JSON that this renderer writes for it.
pub(super) fn usual<'a>(component: &Component<'a>) -> (Vec<Fill<'a>>, String) {
    match component {
        Component::Call { call, .. } => (call_fills(call), to_json(&called(call, None))),
        Component::Reasoning { reasoning, .. } => {
            (reasoning_fills(reasoning), to_json(&thought(reasoning, None)))
        }
        part => (part_fills(part), wire_part(part, None).map(|part| to_json(&part)).unwrap_or_default()),
    }
}

#[derive(Debug, Serialize)]
pub(super) struct WireTool<'a> {
    r#type: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: Raw<'a>,
    strict: bool,
}

impl<'a> Function<'a> for WireTool<'a> {
    const WIRE_FORMAT: WireFormat = WireFormat::OpenAiResponses;

    fn fills(tool: &Tool) -> Vec<Fill<'static>> {
        tool_fills(tool, "parameters")
    }
}

impl<'a> From<&'a Tool> for WireTool<'a> {
    fn from(tool: &'a Tool) -> Self {
        Self {
            r#type: "function",
            name: &tool.name,
            description: &tool.description,
            parameters: schema(tool),
            strict: false,
        }
    }
}
