//! Messages of the wire → the log, one after another.

use super::{
    anthropic::{self, Nested},
    chat::{self, Around, LogKeys},
    compacted,
    content::Content,
    dialects,
    place::Place,
    wire,
};
use crate::error::Error;
use context_window::{
    Conversation, ItemId, Message, Part, PinnedItem, RagItem, Role, ToolCall, Usage, WireFormat,
    config::DocumentHeader,
    conversation::{Event, ProviderSummary, SentText},
    message::PieceKind,
    plan::Anchor,
    provider::wording,
    render::keep_as_written,
    text::plain,
};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, VecDeque};

pub(super) struct Reader<'a> {
    pub(super) place: Place<'a>,
    pub(super) log: Conversation,
    /// Where a part stands that is read next: the key of its message's content, and whether its number there is known.
    pub(super) content: (String, bool),
    /// The wire format that a part of an unknown type came in.
    pub(super) unknown: WireFormat,
    /// Keys that the log has for itself.
    pub(super) log_keys: LogKeys,
    /// Legacy function calls without a result yet: by the function's name the ids made up for its calls.
    legacy: BTreeMap<String, Vec<String>>,
    /// Ids made up for calls that came without one, those of one message together, the newest message last.
    unnamed: Vec<VecDeque<String>>,
    /// A message held what only Anthropic has.
    pub(super) of_anthropic: bool,
    /// Messages that were read: compactions among them are none.
    pub(super) read: usize,
    /// Compactions that were met, usable or not.
    pub(super) compactions: usize,
    /// The documents of the message that was read last.
    pub(super) retrieved: Vec<RagItem>,
    /// What could not be used, and why.
    pub(super) ignored: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(place: Place<'a>) -> Self {
        Self {
            place,
            log: Conversation::new(),
            content: (String::new(), true),
            unknown: WireFormat::OpenAiChat,
            log_keys: LogKeys::default(),
            legacy: BTreeMap::new(),
            unnamed: Vec::new(),
            of_anthropic: false,
            read: 0,
            compactions: 0,
            retrieved: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// Calls that were read before, and still wait for their results: a result may name its function alone, or nothing.
    pub(super) fn expects<'c>(&mut self, calls: impl Iterator<Item = &'c ToolCall>) {
        let mut unnamed = VecDeque::new();
        for call in calls {
            self.legacy.entry(call.name.clone()).or_default().push(call.id.clone());
            unnamed.push_back(call.id.clone());
        }
        self.unnamed.extend((!unnamed.is_empty()).then_some(unnamed));
    }

    /// System texts and pinned notes, which come before the messages.
    pub(super) fn head(
        &mut self,
        system: Option<wire::System>,
        instructions: Vec<String>,
        notes: Vec<wire::Note>,
    ) -> Result<(), Error> {
        let mut texts = match system {
            None => Vec::new(),
            Some(wire::System::One(text)) => vec![wire::Text { id: None, text }],
            Some(wire::System::Many(texts)) => texts,
        };
        texts.extend(instructions.into_iter().map(|text| wire::Text { id: None, text }));
        for (id, text) in named(texts, "s") {
            self.log.push_system(id, text);
        }
        for note in notes {
            let id = ItemId::from(note.id.into_text());
            if self.log.has_note(&id) {
                // As in a conversation, a note that is pinned again takes the place of the first (rule O5).
                self.ignored.push(format!(
                    "note `{}` is pinned twice: the last one counts",
                    plain::short(id.as_str())
                ));
            }
            let mut item = PinnedItem::new(&id, note.text).with_priority(note.priority.unwrap_or_default());
            item.ttl = note.ttl;
            self.log.pin(item);
            if let (Some(ttl), Some(true)) = (note.ttl, note.ttl_asked) {
                self.log.restore_ttl(id, ttl, true)?;
            }
        }
        Ok(())
    }

    /// A compaction, which is an entry of the log and no message. One that is incomplete leaves the messages as they are.
    pub(super) fn compaction(
        &mut self,
        block: Result<compacted::Block, String>,
        next: Option<&wire::Message>,
    ) {
        self.compactions += 1;
        let next = next.map(|next| match &next.id {
            Some(name) => ItemId::from(name.to_string()),
            None => ItemId::from(format!("m{}", self.read)),
        });
        match block.and_then(|block| block.record(&self.log, next.as_ref())) {
            Ok(record) => self.log.record(Event::Compacted(Box::new(record))),
            Err(why) => self.ignored.push(format!("compaction {} is not used: {why}", self.compactions)),
        }
    }

    /// A message of a logged request; one that is what the provider made of those before it is a compaction (rule C11).
    pub(super) fn logged(&mut self, message: Message, provider: &str) {
        let made = match message.parts() {
            [Part::Opaque { wire_format, json }] => ProviderSummary::from_block(provider, *wire_format, json),
            _ => None,
        };
        match made.filter(|_| !self.log.messages().is_empty()) {
            Some(made) => self.compaction(Ok(compacted::Block::of_provider(made)), None),
            None => drop(self.log.push(message)),
        }
    }

    /// The next message, at the position that it has among those that were read.
    pub(super) fn message(&mut self, mut wire: wire::Message) -> Result<(), Error> {
        let position = self.read;
        self.read += 1;
        let (pinned, ttl) = (wire.pinned.unwrap_or_default(), wire.ttl);
        let (priority, asked) = (wire.priority.unwrap_or_default(), wire.ttl_asked.unwrap_or_default());
        let documents = wire.documents.take().unwrap_or_default();
        let asks = wire.role == wire::Role::User;
        if !documents.is_empty() && !asks {
            return Err(self.place.fault("documents", "belong to a message of the role user"));
        }
        for message in self.neutral(position, wire)? {
            let id = self.log.push(message);
            self.log.check_ids(std::iter::empty())?;
            if pinned {
                self.log.pin_message(&id, priority)?;
            }
            if let Some(ttl) = ttl {
                self.log.restore_ttl(id, ttl, asked)?;
            }
        }
        self.retrieved = documents.into_iter().map(wire::Passage::into_item).collect();
        let sent = |item: &RagItem| {
            SentText::new(item.id.clone(), wording::document(item, DocumentHeader::default()))
        };
        if !self.retrieved.is_empty() {
            let question = self.log.message_id(self.log.turns().messages() - 1);
            if self.log.messages().last().is_none_or(|last| last.role() != Role::User) {
                return Err(self
                    .place
                    .fault("documents", "belong to a question, and this message holds results only"));
            }
            self.log.remember_documents(question, self.retrieved.iter().map(sent))?;
        }
        Ok(())
    }

    /// What a provider reported on the reply that comes next. No plan of ours stands behind it, so it teaches no window and
    /// no counter: it is what a replay and the bill know of that prompt.
    pub(super) fn reported(&mut self, usage: Usage) {
        self.log.record(Event::Sent {
            counted: 0,
            volatile_tokens: 0,
            dropped_tokens: 0,
            fixed_tokens: 0,
            archives: self.log.archive_events(),
            tokenizer: String::new(),
            anchor: Box::new(Anchor::default()),
            usage: Some(usage),
        });
    }

    /// A message of the wire as messages of the log: more than one where results stand in what the user says.
    fn neutral(&mut self, position: usize, wire: wire::Message) -> Result<Vec<Message>, Error> {
        let role = match wire.role {
            wire::Role::System => Role::System,
            wire::Role::Developer => Role::Developer,
            wire::Role::User => Role::User,
            wire::Role::Assistant => Role::Assistant,
            wire::Role::Tool | wire::Role::Function => Role::Tool,
        };
        let around = Around::read(&wire, &self.log_keys);
        let is_beside = |json: &&str| around.json.is_some() && *json != "null";
        let images = wire.keys.iter().find(|key| key.name == "images");
        let images = images.and_then(|key| key.unread.as_deref()).map(RawValue::get).filter(is_beside);
        let images = images.and_then(|json| dialects::images(&wire, json));
        let (text, pieces, raws) = match wire.content {
            Content::Null => (around.refusal.clone().unwrap_or_default(), None, Vec::new()),
            Content::Text(text) if text.is_empty() => {
                (around.refusal.clone().unwrap_or_default(), None, Vec::new())
            }
            Content::Text(text) => (text, None, Vec::new()),
            Content::Parts(parts) => (String::new(), Some(self.pieces(&parts)?), parts),
        };
        let own = |piece: &anthropic::Piece| match piece {
            anthropic::Piece::Part(_) => false,
            anthropic::Piece::Reasoning(reasoning) => reasoning.wire_format != Some(WireFormat::OpenAiChat),
            anthropic::Piece::Call(_) | anthropic::Piece::Result { .. } => true,
        };
        self.of_anthropic |= pieces.iter().flatten().any(own);
        let answers = match wire.role {
            wire::Role::Tool => wire.tool_call_id.map(wire::Name::into_text).or_else(|| self.unnamed_call()),
            wire::Role::Function => Some(self.legacy_call(wire.name.as_deref())),
            _ => None,
        };
        let (mut results, mut message) = match (answers, pieces) {
            (Some(id), None) => (Vec::new(), Message::tool(id, text)),
            (Some(id), Some(pieces)) => {
                let said = self.joined(pieces, &raws)?;
                let message = Message::tool(id, text).with_parts(said.message.parts().to_vec());
                let pieces: Vec<_> =
                    said.pieces.iter().map(|(kind, json)| (*kind, json.as_deref())).collect();
                (Vec::new(), keep_as_written(message, self.unknown, &pieces))
            }
            (None, None) => (Vec::new(), Message::new(role, text)),
            (None, Some(pieces)) => {
                let nested = |content| self.nested(content);
                let mut all = anthropic::apart(role, pieces, &raws, self.unknown, &nested)?;
                let last = all.pop().unwrap_or_else(|| Message::new(role, ""));
                (all, last)
            }
        };
        // Positions are those of the file: results that stood in a message bear its number and one of their own.
        let shifted = !results.is_empty() || self.log.messages().len() != position;
        let id = wire.id.map(wire::Id::into_text).or_else(|| shifted.then(|| format!("m{position}")));
        for (nth, result) in results.iter_mut().enumerate() {
            *result = result.clone().with_id(format!("m{position}.{nth}"));
        }
        if let Some(id) = id {
            message = message.with_id(id);
        }
        if let Some(images) = images {
            message = dialects::with_images(message, images);
        }
        if let Some(audio) = wire.audio {
            let part = Part::Opaque {
                wire_format: WireFormat::OpenAiChat,
                json: format!("{{\"type\":\"audio\",\"audio\":{}}}", audio.get()),
            };
            message = message.with_parts([part]);
        }
        if let Some(name) = wire.name.filter(|_| wire.role != wire::Role::Function) {
            message = message.with_name(name);
        }
        let reasoning = wire.reasoning_content.filter(|text| !text.is_empty() || around.json.is_none());
        if let Some(reasoning) = reasoning.map(Into::into).or(around.reasoning) {
            message = message.with_reasoning(reasoning);
        }
        let wire_calls = wire.tool_calls.unwrap_or_default();
        let call_jsons: Vec<Option<String>> = wire_calls.iter().map(chat::call_json).collect();
        let calls = self.calls(position, wire_calls, wire.function_call);
        // Some logs say each call twice, as a block and beside the content.
        let said: Vec<ToolCall> = message.tool_calls().to_vec();
        let beside = calls.into_iter().filter(|call| !said.iter().any(|other| other.id == call.id));
        let calls: Vec<ToolCall> = said.iter().cloned().chain(beside).collect();
        let is_own = said.is_empty() && results.is_empty() && self.unknown == WireFormat::OpenAiChat;
        let message = if calls.is_empty() { message } else { message.with_tool_calls(calls) };
        results.push(if is_own { in_chat(message, around.json.as_deref(), &call_jsons) } else { message });
        Ok(results)
    }

    fn pieces(&self, parts: &[Box<RawValue>]) -> Result<Vec<anthropic::Piece>, Error> {
        let (content, numbered) = &self.content;
        let key = |at| if *numbered { format!("{content}[{at}]") } else { content.clone() };
        let piece = |(at, raw): (usize, &RawValue)| {
            piece(raw, self.unknown).map_err(|detail| self.place.fault(&key(at), &detail))
        };
        parts.iter().map(|raw| &**raw).enumerate().map(piece).collect()
    }

    /// Returns what a piece of a result's content says: another result in it is its content.
    fn parts_of(&self, piece: anthropic::Piece) -> Result<Vec<Part>, Error> {
        Ok(match piece {
            anthropic::Piece::Part(part) => vec![part],
            anthropic::Piece::Result { content, .. } => self.nested(content)?.message.as_parts(),
            anthropic::Piece::Call(call) => vec![Part::Text(call.arguments)],
            anthropic::Piece::Reasoning(reasoning) => vec![Part::Text(reasoning.text)],
        })
    }

    /// Returns what a result holds.
    fn nested(&self, content: Content) -> Result<Nested, Error> {
        Ok(match content {
            Content::Null => Nested { message: Message::user(""), pieces: Vec::new() },
            Content::Text(text) => Nested { message: Message::user(text), pieces: Vec::new() },
            Content::Parts(raws) => self.joined(self.pieces(&raws)?, &raws)?,
        })
    }

    /// Returns the pieces of a result's content as one message.
    fn joined(&self, pieces: Vec<anthropic::Piece>, raws: &[Box<RawValue>]) -> Result<Nested, Error> {
        let (mut parts, mut written) = (Vec::new(), Vec::new());
        for (piece, raw) in pieces.into_iter().zip(raws) {
            let is_part = matches!(piece, anthropic::Piece::Part(_));
            let own = self.parts_of(piece)?;
            written.extend(own.iter().map(|_| (PieceKind::Part, is_part.then(|| raw.get().to_owned()))));
            parts.extend(own);
        }
        Ok(Nested { message: Message::user("").with_parts(parts), pieces: written })
    }

    fn calls(
        &mut self,
        position: usize,
        calls: Vec<wire::Call>,
        legacy: Option<wire::CalledFunction>,
    ) -> Vec<ToolCall> {
        let call = |id: String, function: wire::CalledFunction| {
            ToolCall::new(id, function.name, wire::arguments(function.arguments.as_deref()))
        };
        let mut all = Vec::with_capacity(calls.len());
        let mut unnamed = VecDeque::new();
        for (at, wire) in calls.into_iter().enumerate() {
            let id = wire.id.map_or_else(
                || {
                    let id = format!("call_{position}_{at}");
                    unnamed.push_back(id.clone());
                    id
                },
                wire::Name::into_text,
            );
            all.push(call(id, wire.function));
        }
        if !unnamed.is_empty() {
            self.unnamed.push(unnamed);
        }
        if let Some(function) = legacy {
            let id = format!("call_{position}");
            self.legacy.entry(function.name.clone()).or_default().push(id.clone());
            all.push(call(id, function));
        }
        all
    }

    /// The first call without an id of the nearest message that has one open: results come in the order of the calls.
    fn unnamed_call(&mut self) -> Option<String> {
        let id = self.unnamed.last_mut()?.pop_front();
        self.unnamed.pop_if(|calls| calls.is_empty());
        id
    }

    /// The id of the nearest legacy call of this function that has no result yet; a made-up one where there is none.
    fn legacy_call(&mut self, function: Option<&str>) -> String {
        let function = function.unwrap_or_default();
        let open = self.legacy.get_mut(function).and_then(Vec::pop);
        open.unwrap_or_else(|| format!("call_of_{function}"))
    }

    /// The query is the live question where no user message has anything in it.
    pub(super) fn query(&mut self, query: Option<String>) {
        let asked = |message: &Message| message.role() == Role::User && !message.is_empty();
        if let Some(query) = query.filter(|query| !query.trim().is_empty())
            && !self.log.messages().iter().any(asked)
        {
            self.log.push(Message::user(query).with_id("query"));
        }
    }
}

/// Returns a message of Chat with the object around it and the JSON of its calls, where they came in another form than ours.
fn in_chat(message: Message, around: Option<&str>, calls: &[Option<String>]) -> Message {
    if around.is_none() && calls.iter().all(Option::is_none) {
        return message;
    }
    let mut pieces: Vec<(PieceKind, Option<&str>)> = vec![(PieceKind::Around, around)];
    let content = message.written().map(|written| written.pieces.clone()).unwrap_or_default();
    let in_content = content.iter().filter(|piece| piece.kind == PieceKind::Reasoning).count();
    let thoughts = message.reasoning().iter().skip(in_content).map(|_| (PieceKind::Reasoning, None));
    if in_content == 0 {
        pieces.extend(thoughts.clone());
    }
    if content.is_empty() {
        pieces.extend(message.as_parts().iter().map(|_| (PieceKind::Part, None)));
    }
    pieces.extend(content.iter().map(|piece| (piece.kind, piece.json.as_deref())));
    if in_content > 0 {
        pieces.extend(thoughts);
    }
    pieces.extend(calls.iter().map(|json| (PieceKind::Call, json.as_deref())));
    keep_as_written(message, WireFormat::OpenAiChat, &pieces)
}

fn piece(raw: &RawValue, unknown: WireFormat) -> Result<anthropic::Piece, String> {
    let json = raw.get();
    if let Ok(text) = serde_json::from_str::<String>(json) {
        return Ok(anthropic::Piece::Part(Part::Text(text)));
    }
    let kind: wire::PartType =
        serde_json::from_str(json).map_err(|_| "expected a part: a text or an object".to_owned())?;
    if let Some(reasoning) = dialects::thought(json) {
        return Ok(anthropic::Piece::Reasoning(reasoning));
    }
    if let Some(piece) = anthropic::piece(json, kind.kind.as_deref()) {
        return Ok(piece);
    }
    let part = match kind.kind.as_deref() {
        Some("text" | "image_url") => {
            let known = serde_json::from_str(json).map_err(|error| plain::without_place(&error))?;
            match known {
                wire::Part::Text { text } => Part::Text(text),
                wire::Part::ImageUrl { image_url: wire::ImageUrl::Bare(url) } => {
                    Part::Image { url, detail: None }
                }
                wire::Part::ImageUrl { image_url: wire::ImageUrl::Full { url, detail } } => {
                    Part::Image { url, detail }
                }
            }
        }
        _ => Part::Opaque { wire_format: unknown, json: json.into() },
    };
    Ok(anthropic::Piece::Part(part))
}

/// Texts with their ids, or the given letter and a number.
pub(super) fn named(texts: Vec<wire::Text>, letter: &str) -> Vec<(ItemId, String)> {
    let id = |at: usize, id: Option<wire::Id>| {
        id.map_or_else(|| format!("{letter}{at}"), wire::Id::into_text).into()
    };
    texts.into_iter().enumerate().map(|(at, text)| (id(at, text.id), text.text)).collect()
}
