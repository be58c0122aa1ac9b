//! Conversion of the `input` of `OpenAI` Responses to messages. Calls and reasoning are items there; they are
//! joined to the assistant message that they belong to.

use super::{
    content::Content,
    wire::{Name, arguments},
};
use context_window::{
    Message, Part, Role, ToolCall, WireFormat,
    message::{PieceKind, Reasoning},
    render::keep_as_written,
    text::{
        object::Object,
        plain::{self, compact_json},
        size,
    },
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::collections::BTreeMap;

/// The fields of all items that are read.
#[derive(Deserialize)]
struct Item {
    r#type: Option<String>,
    role: Option<Speaker>,
    content: Option<Content>,
    id: Option<String>,
    summary: Option<Vec<Text>>,
    encrypted_content: Option<String>,
    call_id: Option<Name>,
    name: Option<String>,
    /// The arguments of a function, or the text `input` of a custom tool.
    #[serde(alias = "input")]
    arguments: Option<Box<RawValue>>,
    output: Option<Content>,
}

/// The kind of an item, from its keys. A list of types would miss new ones.
enum Kind {
    Message(Role),
    Reasoning,
    /// A tool call, with the id that its result names.
    Call(String),
    /// A tool result, with the id of its call.
    Result(String),
    /// An item of its own: the work of one of the provider's tools, or a reference.
    Other,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Speaker {
    System,
    Developer,
    User,
    Assistant,
}

impl Speaker {
    fn role(self) -> Role {
        match self {
            Self::System => Role::System,
            Self::Developer => Role::Developer,
            Self::User => Role::User,
            Self::Assistant => Role::Assistant,
        }
    }
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

#[derive(Deserialize)]
struct WirePart {
    r#type: Option<String>,
    text: Option<String>,
    image_url: Option<String>,
    detail: Option<String>,
    refusal: Option<String>,
}

/// Returns the messages of the items. An error names the index of the item and the expected value.
pub(crate) fn messages(input: &RawValue) -> Result<Vec<Message>, (Option<usize>, String)> {
    let input: Content =
        serde_json::from_str(input.get()).map_err(|error| (None, plain::without_place(&error)))?;
    let items = match input {
        Content::Null => return Ok(Vec::new()),
        Content::Text(text) => return Ok(vec![Message::user(text)]),
        Content::Parts(items) => items,
    };
    let mut log = Log::default();
    for (at, raw) in items.iter().enumerate() {
        log.raw(raw.get()).map_err(|detail| (Some(at), detail))?;
    }
    log.end();
    Ok(log.messages)
}

/// The conversion state: finished messages, and the assistant message that is still open.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) messages: Vec<Message>,
    /// The assistant message that is being collected: reasoning and the items after it.
    open: Option<Open>,
    /// The index of the last assistant message.
    replied: Option<usize>,
    /// Call ids by item id, since some results name the item in place of the call.
    items: BTreeMap<String, String>,
    /// Ids of the calls without a result, by type and position. `places` is the reverse map.
    waiting: BTreeMap<(String, usize), String>,
    places: BTreeMap<String, (String, usize)>,
    calls: usize,
}

/// An assistant message with its items in their order.
#[derive(Default)]
struct Open {
    reasonings: Vec<Reasoning>,
    parts: Vec<Part>,
    /// True if the content is a single string and nothing else.
    is_text: bool,
    calls: Vec<ToolCall>,
    pieces: Vec<(PieceKind, Option<String>)>,
}

impl Open {
    /// Returns true if the message has more than reasoning.
    fn has_content(&self) -> bool {
        !self.parts.is_empty() || !self.calls.is_empty() || self.pieces.len() > self.reasonings.len()
    }

    fn into_message(self) -> Message {
        let Self { reasonings, mut parts, is_text, calls, pieces } = self;
        let message = match parts.pop() {
            Some(Part::Text(text)) if is_text && parts.is_empty() => Message::assistant(text),
            last => Message::assistant("").with_parts(parts.into_iter().chain(last)),
        };
        let message = reasonings.into_iter().fold(message, Message::with_reasoning);
        let message = if calls.is_empty() { message } else { message.with_tool_calls(calls) };
        kept(message, &pieces)
    }
}

/// Attaches the JSON pieces of an item to its message, so that it can be sent unchanged.
fn kept(message: Message, pieces: &[(PieceKind, Option<String>)]) -> Message {
    let pieces: Vec<_> = pieces.iter().map(|(kind, json)| (*kind, json.as_deref())).collect();
    keep_as_written(message, WireFormat::OpenAiResponses, &pieces)
}

impl Log {
    /// Adds the next item from its JSON. An error states the expected value.
    pub(crate) fn raw(&mut self, json: &str) -> Result<(), String> {
        let object = Object::parse(json).ok_or("expected an item: an object with a type or a role")?;
        match serde_json::from_str::<Item>(json) {
            Ok(item) => {
                let kind = self.kind(&item, &object)?;
                self.item(&item, &object, json, kind)
            }
            Err(error) => {
                // The type is not one that is read, so these keys have a meaning of their own there.
                const READ: [&str; 6] = [
                    "message",
                    "reasoning",
                    "function_call",
                    "function_call_output",
                    "custom_tool_call",
                    "custom_tool_call_output",
                ];
                let kind = object.text("type").filter(|kind| !READ.contains(&kind.as_str()));
                let kind = kind.ok_or_else(|| plain::without_place(&error))?;
                self.add_in_its_shape(&kind, &object, json);
                Ok(())
            }
        }
    }

    /// Adds an item whose keys have other shapes than the known ones.
    fn add_in_its_shape(&mut self, kind: &str, object: &Object, json: &str) {
        match (self.answered(kind, object), object.text("call_id")) {
            // Without a parsed output this cannot fail.
            (Some(id), _) => drop(self.result_item(id, kind, None, json)),
            (None, Some(id)) => {
                self.call_item(ToolCall::new(id, tool_name(kind), rest_of(object)), object, json);
            }
            (None, None) => self.carry(json),
        }
    }

    fn kind(&self, item: &Item, object: &Object) -> Result<Kind, String> {
        let call_id = || item.call_id.as_ref().map(Name::to_string);
        Ok(match (item.r#type.as_deref(), item.role.map(Speaker::role)) {
            (Some("message") | None, Some(role)) => Kind::Message(role),
            (Some("message"), None) => return Err("expected a role".into()),
            (Some("reasoning"), _) => Kind::Reasoning,
            (Some(kind), _) if self.answered(kind, object).is_some() => {
                Kind::Result(self.answered(kind, object).unwrap_or_default())
            }
            (Some("function_call" | "custom_tool_call"), _) => {
                let id = call_id().or_else(|| item.id.clone()).ok_or("expected a call_id")?;
                item.name.as_ref().ok_or("expected a name")?;
                Kind::Call(id)
            }
            (Some("function_call_output" | "custom_tool_call_output"), _) => {
                return Err("expected a call_id, or a call before it that waits for its output".into());
            }
            // The application answers a request, such as one for an approval. The answer names the id of the
            // request.
            (Some(kind), _) if kind.ends_with("_request") => {
                item.id.clone().or_else(call_id).map_or(Kind::Other, Kind::Call)
            }
            (Some(kind), _) if is_output(kind) => Kind::Other,
            (Some(_), _) => call_id().map_or(Kind::Other, Kind::Call),
            // A reference to an item that the provider stores needs no type.
            (None, None)
                if item.id.is_some() && object.iter().all(|(key, _)| key == "id" || key == "type") =>
            {
                Kind::Other
            }
            (None, None) => return Err("expected an item: an object with a type or a role".into()),
        })
    }

    /// Returns the id of the call that a result answers. Returns `None` for an item of another kind, and for
    /// the result of a tool that the provider ran itself.
    fn answered(&self, kind: &str, object: &Object) -> Option<String> {
        if !is_output(kind) {
            return None;
        }
        let by_id = || self.items.get(&object.text("id")?).cloned();
        // A function output without an id answers the oldest open call of its type.
        let by_place = || {
            let of = kind
                .strip_suffix("_output")
                .filter(|of| ["function_call", "custom_tool_call"].contains(of))?;
            // Keys are ordered by type and position, so the first one of the type is the oldest open call.
            let mut waiting = self.waiting.range((of.to_owned(), 0)..);
            waiting.next().filter(|((own, _), _)| own == of).map(|(_, id)| id.clone())
        };
        let named = object.text("call_id").or_else(|| object.text("approval_request_id"));
        named.or_else(by_id).or_else(by_place)
    }

    /// Adds a call whose item contains no tool name.
    pub(crate) fn call(&mut self, call: ToolCall) {
        let open = self.open.get_or_insert_default();
        open.calls.push(call);
        open.pieces.push((PieceKind::Call, None));
    }

    /// Adds the result of a call.
    pub(crate) fn result(&mut self, id: String, text: String) {
        self.end();
        self.messages.push(Message::tool(id, text));
    }

    /// Appends text to the last reasoning, if it is not in its summary already.
    pub(crate) fn append_reasoning(&mut self, text: &str) {
        let last = self.open.as_mut().and_then(|open| open.reasonings.last_mut());
        if let Some(last) = last.filter(|last| !text.is_empty() && !last.text.contains(text)) {
            let apart = if last.text.is_empty() { "" } else { "\n\n" };
            last.text = format!("{}{apart}{text}", last.text);
        }
    }

    /// Returns the index of the open assistant message, or of the last finished one. Returns `None` if there
    /// is none.
    pub(crate) fn reply(&self) -> Option<usize> {
        let last = self.replied.filter(|last| *last < self.messages.len());
        self.open.as_ref().map(|_| self.messages.len()).or(last)
    }

    fn item(&mut self, item: &Item, object: &Object, json: &str, kind: Kind) -> Result<(), String> {
        match kind {
            Kind::Message(Role::Assistant) => {
                let content = ItemContent::read(item.content.as_ref(), object, "content")?;
                // Without reasoning before it, text of the assistant begins a new message.
                let apart = |open: &Open| open.reasonings.is_empty() && open.has_content();
                if self.open.as_ref().is_some_and(apart) {
                    self.end();
                }
                let open = self.open.get_or_insert_default();
                open.is_text = content.is_text && open.parts.is_empty();
                open.pieces.extend(content.pieces);
                open.parts.extend(content.parts);
            }
            Kind::Message(role) => {
                self.end();
                let content = ItemContent::read(item.content.as_ref(), object, "content")?;
                self.messages.push(content.into_message(Message::new(role, "")));
            }
            Kind::Reasoning => {
                // Reasoning comes before the output that it led to, so it begins a new message.
                if self.open.as_ref().is_some_and(Open::has_content) {
                    self.end();
                }
                let open = self.open.get_or_insert_default();
                open.reasonings.push(reasoning(item));
                open.pieces.push((PieceKind::Reasoning, Some(json.into())));
            }
            Kind::Call(id) => {
                let kind = item.r#type.as_deref().unwrap_or_default();
                let name = item.name.clone().unwrap_or_else(|| tool_name(kind).into());
                let arguments = match &item.arguments {
                    Some(raw) => arguments(Some(raw)),
                    None if kind == "function_call" || kind == "custom_tool_call" => String::new(),
                    None => rest_of(object),
                };
                self.call_item(ToolCall::new(id, name, arguments), object, json);
            }
            Kind::Result(id) => {
                let kind = item.r#type.as_deref().unwrap_or_default();
                self.result_item(id, kind, item.output.as_ref().map(|output| (output, object)), json)?;
            }
            Kind::Other => self.carry(json),
        }
        Ok(())
    }

    fn call_item(&mut self, call: ToolCall, object: &Object, json: &str) {
        if let Some(id) = object.text("id") {
            self.items.insert(id, call.id.clone());
        }
        // A result may name its call by the id of the item or by the id of the call.
        self.items.insert(call.id.clone(), call.id.clone());
        let place = (object.text("type").unwrap_or_default(), self.calls);
        self.calls += 1;
        self.waiting.insert(place.clone(), call.id.clone());
        self.places.insert(call.id.clone(), place);
        let open = self.open.get_or_insert_default();
        open.calls.push(call);
        open.pieces.push((PieceKind::Call, Some(json.into())));
    }

    /// Adds a result. Its content is a string or a list of parts; otherwise all texts in its JSON are used.
    fn result_item(
        &mut self,
        id: String,
        kind: &str,
        output: Option<(&Content, &Object)>,
        json: &str,
    ) -> Result<(), String> {
        self.end();
        if let Some(place) = self.places.remove(&id) {
            self.waiting.remove(&place);
        }
        let content = match output {
            Some((output, object)) if kind == "function_call_output" || kind == "custom_tool_call_output" => {
                Some(ItemContent::read(Some(output), object, "output")?)
            }
            Some((output, object)) => {
                ItemContent::read(Some(output), object, "output").ok().filter(ItemContent::is_content)
            }
            None => None,
        };
        let message = match content {
            Some(content) => content.into_message(Message::tool(id, "")),
            None => {
                // The text of the message is only a reading of the item, so the whole item is kept for
                // sending.
                let around = [(PieceKind::Around, Some(json.to_owned()))];
                kept(in_its_json(id, &Object::parse(json).unwrap_or_default()), &around)
            }
        };
        self.messages.push(message);
        Ok(())
    }

    /// Adds an item of another kind to the message of the reasoning before it, or as a message of its own.
    fn carry(&mut self, json: &str) {
        let part = Part::Opaque { wire_format: WireFormat::OpenAiResponses, json: json.into() };
        let follows = self.open.as_ref().is_some_and(|open| !open.reasonings.is_empty());
        if !follows {
            self.end();
        }
        let open = self.open.get_or_insert_default();
        open.parts.push(part);
        open.is_text = false;
        open.pieces.push((PieceKind::Item, None));
        if !follows {
            // The item is not a reply, so the index of the last reply stays.
            let replied = self.replied;
            self.end();
            self.replied = replied;
        }
    }

    /// Finishes the open assistant message, if any.
    pub(crate) fn end(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.replied = Some(self.messages.len());
        self.messages.push(open.into_message());
    }
}

/// Returns true for the type of an item that answers a call.
fn is_output(kind: &str) -> bool {
    kind.ends_with("_output") || kind.ends_with("_response")
}

/// Returns the name of the tool that a call of this type addresses.
fn tool_name(kind: &str) -> &str {
    kind.strip_suffix("_call").or_else(|| kind.strip_suffix("_request")).unwrap_or(kind)
}

/// Returns the arguments of a call: its JSON without the keys that every item has.
fn rest_of(object: &Object) -> String {
    let mut rest = object.clone();
    for key in ["type", "id", "call_id", "status"] {
        rest.remove(key);
    }
    compact_json(&rest.to_json())
}

fn reasoning(item: &Item) -> Reasoning {
    let summary: Vec<&str> = item.summary.iter().flatten().map(|part| part.text.as_str()).collect();
    let text = summary.join("\n\n");
    let mut reasoning = match &item.encrypted_content {
        Some(seal) => Reasoning::signed(WireFormat::OpenAiResponses, text, seal),
        None => Reasoning::text(text),
    };
    reasoning.wire_format = Some(WireFormat::OpenAiResponses);
    reasoning.id.clone_from(&item.id);
    reasoning
}

/// Returns a result from an item with JSON of its own form: all texts in it, and an image if present.
fn in_its_json(id: String, object: &Object) -> Message {
    let output = object.get("output").map_or_else(|| rest_of(object), str::to_owned);
    let picture = Object::parse(&output).and_then(|output| output.text("image_url"));
    let message = Message::tool(id, texts_in(&output).join("\n\n"));
    match picture {
        Some(url) => message.with_parts([Part::Image { url, detail: None }]),
        None => message,
    }
}

/// Returns every text in a JSON value, without keys. Returns none for a value with too many parts.
fn texts_in(json: &str) -> Vec<String> {
    fn collect(value: &Value, texts: &mut Vec<String>) {
        match value {
            Value::String(text) if !text.is_empty() => texts.push(text.clone()),
            Value::Array(list) => list.iter().for_each(|value| collect(value, texts)),
            Value::Object(object) => {
                let content =
                    object.iter().filter(|(key, _)| !["type", "image_url", "status"].contains(&key.as_str()));
                content.for_each(|(_, value)| collect(value, texts));
            }
            _ => {}
        }
    }
    let mut texts = Vec::new();
    collect(&size::tree(json).unwrap_or_default(), &mut texts);
    texts
}

/// The content of an item, and its JSON pieces.
struct ItemContent {
    parts: Vec<Part>,
    is_text: bool,
    pieces: Vec<(PieceKind, Option<String>)>,
}

impl ItemContent {
    /// Reads the content under a key of an item.
    fn read(content: Option<&Content>, object: &Object, key: &str) -> Result<Self, String> {
        let mut around = object.clone();
        let (parts, is_text) = match content {
            None | Some(Content::Null) => (Vec::new(), true),
            Some(Content::Text(text)) => {
                around.set_text(key, "");
                let part = (Part::Text(text.clone()), None);
                (if text.is_empty() { Vec::new() } else { vec![part] }, true)
            }
            Some(Content::Parts(parts)) => {
                around.set(key, "[]".into());
                let part = |raw: &RawValue| Ok((part(raw)?, Some(raw.get().to_owned())));
                (parts.iter().map(|raw| part(raw)).collect::<Result<_, String>>()?, false)
            }
        };
        let mut pieces = vec![(PieceKind::Around, Some(around.to_json()))];
        let (parts, jsons): (Vec<Part>, Vec<Option<String>>) = parts.into_iter().unzip();
        pieces.extend(jsons.into_iter().map(|json| (PieceKind::Part, json)));
        Ok(Self { parts, is_text, pieces })
    }

    /// Returns true if all parts are of types that a result may contain.
    fn is_content(&self) -> bool {
        let typed = |json: &str| Object::parse(json).and_then(|part| part.text("type"));
        // The first piece is the object around the content.
        self.pieces.iter().skip(1).all(|(_, json)| {
            json.as_deref().is_none_or(|json| typed(json).is_some_and(|kind| kind.starts_with("input_")))
        })
    }

    fn into_message(mut self, message: Message) -> Message {
        let role = message.role();
        let message = match self.parts.pop() {
            Some(Part::Text(text)) if self.is_text => match message.answers() {
                Some(id) => Message::tool(id, text),
                None => Message::new(role, text),
            },
            last => message.with_parts(self.parts.into_iter().chain(last)),
        };
        kept(message, &self.pieces)
    }
}

fn part(raw: &RawValue) -> Result<Part, String> {
    let part: WirePart = serde_json::from_str(raw.get()).map_err(|error| plain::without_place(&error))?;
    let kind = part.r#type.as_deref().unwrap_or("text");
    let is_text = kind.ends_with("text") || kind == "refusal";
    Ok(match part {
        WirePart { text: Some(text), .. } | WirePart { refusal: Some(text), .. } if is_text => {
            Part::Text(text)
        }
        WirePart { image_url: Some(url), detail, .. } if kind == "input_image" => {
            Part::Image { url, detail: detail.filter(|detail| detail != "auto") }
        }
        _ => Part::Opaque { wire_format: WireFormat::OpenAiResponses, json: raw.get().into() },
    })
}
