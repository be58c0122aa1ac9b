//! Conversion of wire messages to a conversation, one message at a time.

use super::{
    anthropic::{self, Nested},
    chat::{self, LogKeys, MessageTemplate},
    compacted,
    content::Content,
    dialects,
    open_calls::OpenCalls,
    place::Place,
    unread_keys, wire,
};
use crate::{error::Error, scan};
use context_window::{
    Conversation, ItemId, Message, Part, PinnedItem, RagItem, RetrievedItems, Role, StandingRule, ToolCall,
    Usage, WireFormat,
    conversation::{Event, ProviderSummary, SentText},
    message::PieceKind,
    plan::Anchor,
    provider::wording,
    render::keep_as_written,
    text::plain,
};
use serde_json::value::RawValue;

pub(crate) struct Reader<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) log: Conversation,
    /// The key of the content that is read next, and true if the numbers of its parts match the file.
    pub(crate) content: (String, bool),
    /// The wire format that parts of an unknown type are assumed to have.
    pub(crate) unknown: WireFormat,
    /// Message keys that are the log's own and are not sent.
    pub(crate) log_keys: LogKeys,
    /// True if unknown values are omitted with a note.
    pub(crate) is_lenient: bool,
    /// Tool calls that wait for results without an id.
    pub(crate) open: OpenCalls,
    /// True if a message contained content of Anthropic's format only.
    pub(crate) of_anthropic: bool,
    /// The number of messages read, without compactions.
    pub(crate) read: usize,
    /// The number of compactions found, usable or not.
    pub(crate) compactions: usize,
    /// The documents of the message that was read last.
    pub(crate) retrieved: RetrievedItems,
    /// Notes on content that was not used, each with the reason.
    pub(crate) ignored: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(place: Place<'a>) -> Self {
        Self {
            place,
            log: Conversation::new(),
            content: (String::new(), true),
            unknown: WireFormat::OpenAiChat,
            log_keys: LogKeys::default(),
            is_lenient: false,
            open: OpenCalls::default(),
            of_anthropic: false,
            read: 0,
            compactions: 0,
            retrieved: RetrievedItems::default(),
            ignored: Vec::new(),
        }
    }

    /// Adds tool calls of earlier messages that still wait for their results.
    pub(crate) fn expects<'c>(&mut self, calls: impl Iterator<Item = &'c ToolCall>) {
        self.open.add(calls);
    }

    /// Omits an unknown value, with a note.
    ///
    /// # Errors
    ///
    /// Returns an error with the place unless the reading is lenient.
    pub(crate) fn leave(&mut self, key: &str, detail: &str) -> Result<(), Error> {
        if !self.is_lenient {
            return Err(self.place.fault(key, detail));
        }
        self.ignored.push(format!("left out: {} {detail}", plain::short_path(key)));
        Ok(())
    }

    /// Adds the system texts and pinned notes, which precede the messages.
    pub(crate) fn add_preamble(
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
                // As in a conversation, a note pinned again replaces the first one (ids, O5).
                self.ignored.push(format!(
                    "note `{}` is pinned twice: the last one is used",
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

    /// Adds the user's rules, which follow the messages that say them.
    pub(crate) fn add_rules(&mut self, rules: Vec<wire::Rule>) -> Result<(), Error> {
        for (at, rule) in rules.into_iter().enumerate() {
            let message = rule.message.map(wire::Id::into_text);
            let kept = StandingRule::new(rule.id.into_text(), rule.text);
            let kept = message.into_iter().fold(kept, StandingRule::from_message);
            let place = self.place;
            self.log
                .keep_rule(kept)
                .map_err(|error| place.fault(&format!("rules[{at}]"), &error.to_string()))?;
        }
        Ok(())
    }

    /// Returns the id of the next message: its own, or one made of its position.
    pub(crate) fn next_id(&self, own: Option<String>) -> ItemId {
        own.map_or_else(|| ItemId::from(format!("m{}", self.read)), ItemId::from)
    }

    /// Records a compaction, which is an entry of the log and not a message. An incomplete one leaves the
    /// messages unchanged and adds a note.
    pub(crate) fn compaction(&mut self, block: Result<compacted::Block, String>, next: Option<&ItemId>) {
        self.compactions += 1;
        match block.and_then(|block| block.record(&self.log, next)) {
            Ok(record) => self.log.record(Event::Compacted(Box::new(record))),
            Err(why) => self.ignored.push(format!("compaction {} is not used: {why}", self.compactions)),
        }
    }

    /// Adds a message of a logged request. A message that the provider made of the messages before it is
    /// recorded as a compaction (provider compaction, C11).
    pub(crate) fn logged(&mut self, message: Message, provider: &str) {
        let made = match message.parts() {
            [Part::Opaque { wire_format, json }] => ProviderSummary::from_block(provider, *wire_format, json),
            _ => None,
        };
        // A provider summary at the very start has no messages to replace, so it stays a message.
        match made.filter(|_| !self.log.messages().is_empty()) {
            Some(made) => self.compaction(Ok(compacted::Block::from_provider(made)), None),
            None => drop(self.log.push(message)),
        }
    }

    /// Adds the next message, with the id of its position among the messages read.
    pub(crate) fn message(&mut self, mut wire: wire::Message) -> Result<(), Error> {
        let position = self.read;
        self.read += 1;
        let (pinned, ttl) = (wire.pinned.unwrap_or_default(), wire.ttl);
        let (priority, asked) = (wire.priority.unwrap_or_default(), wire.ttl_asked.unwrap_or_default());
        let documents = wire.documents.take().unwrap_or_default();
        let asks = wire.role == wire::Role::User;
        if !documents.is_empty() && !asks {
            return Err(self.place.fault("documents", "are allowed only in a user message"));
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
        self.retrieved = documents.into_items();
        let sent = |item: &RagItem| SentText::new(item.id.clone(), wording::document(item));
        if !self.retrieved.is_empty() {
            // The user message is the last one pushed, because its tool results come first.
            let question = self.log.message_id(self.log.turns().messages() - 1);
            if self.log.messages().last().is_none_or(|last| last.role() != Role::User) {
                return Err(self.place.fault(
                    "documents",
                    "are allowed only in a user message, but this message contains only tool results",
                ));
            }
            self.log.remember_documents(question, self.retrieved.iter().map(sent))?;
        }
        Ok(())
    }

    /// Records the usage that a provider reported for the next reply. No plan of this library produced that
    /// prompt, so its counts are 0 and the token calibration ignores it. A replay and the bill use the entry.
    pub(crate) fn reported(&mut self, usage: Usage) {
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

    /// Converts a wire message to messages of the log. A user message that contains tool results becomes
    /// several.
    fn neutral(&mut self, position: usize, mut wire: wire::Message) -> Result<Vec<Message>, Error> {
        wire.tool_call_id = wire.tool_call_id.filter(wire::Name::is_given);
        for call in wire.tool_calls.iter_mut().flatten() {
            call.id = call.id.take().filter(wire::Name::is_given);
        }
        let role = match wire.role {
            wire::Role::System => Role::System,
            wire::Role::Developer => Role::Developer,
            wire::Role::User => Role::User,
            wire::Role::Assistant => Role::Assistant,
            wire::Role::Tool | wire::Role::Function => Role::Tool,
        };
        let around = MessageTemplate::read(&wire, &self.log_keys);
        let is_beside = |json: &&str| around.json.is_some() && *json != "null";
        // Images become parts only if the object around the message is kept, so that they can be written
        // back.
        let images = wire.keys.iter().find(|key| key.name == "images");
        let images = images.and_then(|key| key.unread.as_deref()).map(RawValue::get).filter(is_beside);
        let images = images.and_then(|json| dialects::images(&wire, json));
        let tool_name = (wire.role == wire::Role::Tool).then(|| tool_name(&wire)).flatten();
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
        self.of_anthropic |= pieces.iter().flatten().any(own)
            || pieces.is_some() && raws.iter().any(|raw| anthropic::is_cited_text(raw.get()));
        let answers = match wire.role {
            wire::Role::Tool => match (wire.tool_call_id, tool_name) {
                (Some(id), _) => Some(id.into_text()),
                (None, Some(name)) => Some(self.answered_by_name(&name)),
                (None, None) => self.answered_by_place(),
            },
            wire::Role::Function => Some(self.answered_by_name(wire.name.as_deref().unwrap_or_default())),
            _ => None,
        };
        let (mut results, mut message) = match (answers, pieces) {
            (Some(id), None) => (Vec::new(), Message::tool(id, text)),
            (Some(id), Some(pieces)) => {
                let nested = self.joined(pieces, &raws)?;
                let message = Message::tool(id, text).with_parts(nested.message.parts().to_vec());
                let pieces: Vec<_> =
                    nested.pieces.iter().map(|(kind, json)| (*kind, json.as_deref())).collect();
                (Vec::new(), keep_as_written(message, self.unknown, &pieces))
            }
            (None, None) => (Vec::new(), Message::new(role, text)),
            (None, Some(pieces)) => {
                let nested = |content| self.nested(content);
                let mut all = anthropic::split_results(role, pieces, &raws, self.unknown, &nested)?;
                let last = all.pop().unwrap_or_else(|| Message::new(role, ""));
                (all, last)
            }
        };
        // Default ids follow the positions in the file. Results from inside a message get its position and a
        // number of their own, so the message after them needs an explicit id.
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
        // The object around the message, if kept, records an empty `reasoning_content` already.
        let reasoning = wire.reasoning_content.filter(|text| !text.is_empty() || around.json.is_none());
        if let Some(reasoning) = reasoning.map(Into::into).or(around.reasoning) {
            message = message.with_reasoning(reasoning);
        }
        let wire_calls = wire.tool_calls.unwrap_or_default();
        let call_jsons: Vec<Option<String>> = wire_calls.iter().map(chat::call_json).collect();
        self.without_lost_arguments(&wire_calls)?;
        let calls = Self::calls(position, wire_calls, wire.function_call);
        // Some logs contain each call twice, as a content block and in `tool_calls`.
        let in_content: Vec<ToolCall> = message.tool_calls().to_vec();
        let others = calls.into_iter().filter(|call| !in_content.iter().any(|other| other.id == call.id));
        let calls: Vec<ToolCall> = in_content.iter().cloned().chain(others).collect();
        let is_own = in_content.is_empty() && results.is_empty() && self.unknown == WireFormat::OpenAiChat;
        let message = if calls.is_empty() { message } else { message.with_tool_calls(calls) };
        results.push(if is_own { in_chat(message, around.json.as_deref(), &call_jsons) } else { message });
        Ok(results)
    }

    fn pieces(&self, parts: &[Box<RawValue>]) -> Result<Vec<anthropic::Piece>, Error> {
        let (content, numbered) = &self.content;
        let key = |at| if *numbered { format!("{content}[{at}]") } else { content.clone() };
        let piece = |(at, raw): (usize, &RawValue)| {
            let read = piece(raw, self.unknown).and_then(|piece| match &piece {
                anthropic::Piece::Part(Part::Opaque { .. }) if !self.is_lenient => known(piece, raw),
                _ => Ok(piece),
            });
            read.map_err(|detail| self.place.fault(&key(at), &detail))
        };
        parts.iter().map(|raw| &**raw).enumerate().map(piece).collect()
    }

    /// Returns the content of a piece inside a tool result. A nested result contributes its own content.
    fn parts_of(&self, piece: anthropic::Piece) -> Result<Vec<Part>, Error> {
        Ok(match piece {
            anthropic::Piece::Part(part) => vec![part],
            anthropic::Piece::Result { content, .. } => self.nested(content)?.message.as_parts(),
            anthropic::Piece::Call(call) => vec![Part::Text(call.arguments)],
            anthropic::Piece::Reasoning(reasoning) => vec![Part::Text(reasoning.text)],
        })
    }

    /// Returns the content of a tool result.
    fn nested(&self, content: Content) -> Result<Nested, Error> {
        Ok(match content {
            Content::Null => Nested { message: Message::user(""), pieces: Vec::new() },
            Content::Text(text) => Nested { message: Message::user(text), pieces: Vec::new() },
            Content::Parts(raws) => self.joined(self.pieces(&raws)?, &raws)?,
        })
    }

    /// Returns the pieces of a tool result's content as one message.
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

    /// Checks that no call has its arguments under an unknown key.
    fn without_lost_arguments(&mut self, calls: &[wire::Call]) -> Result<(), Error> {
        let message = self.content.0.strip_suffix(".content").unwrap_or_default().to_owned();
        for (at, call) in calls.iter().enumerate().filter(|(_, call)| call.function.arguments.is_none()) {
            let unread = call.function.keys.iter().chain(&call.keys);
            let lost = unread.filter_map(|key| Some((key, scan::find_any(key.unread.as_deref()?.get())?)));
            for (key, found) in lost {
                let key = format!("{message}.tool_calls[{at}].function.{}", key.name);
                let hint = "did you mean `arguments`? (--lenient leaves it out)";
                self.leave(&key, &format!("is unknown and contains {}; {hint}", found.name))?;
            }
        }
        Ok(())
    }

    fn calls(position: usize, calls: Vec<wire::Call>, legacy: Option<wire::CalledFunction>) -> Vec<ToolCall> {
        let call = |id: String, function: wire::CalledFunction| {
            ToolCall::new(id, function.name, wire::arguments(function.arguments.as_deref()))
        };
        let mut all = Vec::with_capacity(calls.len());
        for (at, wire) in calls.into_iter().enumerate() {
            let id = wire.id.map_or_else(|| format!("call_{position}_{at}"), wire::Name::into_text);
            all.push(call(id, wire.function));
        }
        all.extend(legacy.map(|function| call(format!("call_{position}"), function)));
        all
    }

    /// Returns the id of the call that a result of the tool `name` answers. Makes up an id if no such call is
    /// open.
    fn answered_by_name(&mut self, name: &str) -> String {
        self.open.catch_up(self.log.messages());
        self.open.answered_by(Some(name)).unwrap_or_else(|| format!("call_of_{name}"))
    }

    /// Returns the id of the call that a result without id and name answers. Returns `None` if no call is
    /// open.
    fn answered_by_place(&mut self) -> Option<String> {
        self.open.catch_up(self.log.messages());
        self.open.answered_by(None)
    }

    /// Adds the query as the last user message, unless a user message has content.
    pub(crate) fn query(&mut self, query: Option<String>) {
        let asked = |message: &Message| message.role() == Role::User && !message.is_empty();
        if let Some(query) = query.filter(|query| !query.trim().is_empty())
            && !self.log.messages().iter().any(asked)
        {
            self.log.push(Message::user(query).with_id("query"));
        }
    }
}

/// Attaches the JSON of a Chat message and of its calls, if they came in another form than this library
/// writes.
fn in_chat(message: Message, around: Option<&str>, calls: &[Option<String>]) -> Message {
    if around.is_none() && calls.iter().all(Option::is_none) {
        return message;
    }
    let mut pieces: Vec<(PieceKind, Option<&str>)> = vec![(PieceKind::Around, around)];
    let content = message.written().map(|written| written.pieces.clone()).unwrap_or_default();
    // Pieces are matched to the message's reasoning in order. Reasoning from the content comes first there,
    // so any other reasoning follows it.
    let in_content = content.iter().filter(|piece| piece.kind == PieceKind::Reasoning).count();
    let reasonings = message.reasoning().iter().skip(in_content).map(|_| (PieceKind::Reasoning, None));
    if in_content == 0 {
        pieces.extend(reasonings.clone());
    }
    if content.is_empty() {
        pieces.extend(message.as_parts().iter().map(|_| (PieceKind::Part, None)));
    }
    pieces.extend(content.iter().map(|piece| (piece.kind, piece.json.as_deref())));
    if in_content > 0 {
        pieces.extend(reasonings);
    }
    pieces.extend(calls.iter().map(|json| (PieceKind::Call, json.as_deref())));
    keep_as_written(message, WireFormat::OpenAiChat, &pieces)
}

/// Returns the name of the tool that a result names outside its content (Ollama, Mistral).
fn tool_name(wire: &wire::Message) -> Option<String> {
    let others = wire.keys.iter().find(|key| key.name == "tool_name");
    let others = others.and_then(|key| serde_json::from_str(key.unread.as_deref()?.get()).ok());
    others.or_else(|| wire.name.clone()).filter(|name: &String| !name.is_empty())
}

/// Checks that a part of an unknown type is one that its provider may accept. Parts of other tools are an
/// error.
fn known(piece: anthropic::Piece, raw: &RawValue) -> Result<anthropic::Piece, String> {
    let kind: Option<String> =
        serde_json::from_str(raw.get()).ok().and_then(|part: wire::PartType| part.kind);
    let Some(found) = unread_keys::foreign_part(raw.get(), kind.as_deref()) else { return Ok(piece) };
    let kind = kind
        .map_or("has no `type`".to_owned(), |kind| format!("has the unknown type `{}`", plain::short(&kind)));
    Err(format!(
        "{kind} and contains {found}; expected a part of a request body (--lenient sends it unchanged)"
    ))
}

pub(crate) fn piece(raw: &RawValue, unknown: WireFormat) -> Result<anthropic::Piece, String> {
    let json = raw.get();
    // Some writers put bare strings into the list of parts.
    if let Ok(text) = serde_json::from_str::<String>(json) {
        return Ok(anthropic::Piece::Part(Part::Text(text)));
    }
    let kind: wire::PartType =
        serde_json::from_str(json).map_err(|_| "expected a part: a string or an object".to_owned())?;
    if let Some(reasoning) = dialects::thought(json, unknown) {
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

/// Returns texts with their ids. A text without an id gets `letter` and its position.
pub(crate) fn named(texts: Vec<wire::Text>, letter: &str) -> Vec<(ItemId, String)> {
    let id = |at: usize, id: Option<wire::Id>| {
        id.map_or_else(|| format!("{letter}{at}"), wire::Id::into_text).into()
    };
    texts.into_iter().enumerate().map(|(at, text)| (id(at, text.id), text.text)).collect()
}
