//! The log of a conversation.

use crate::{
    data::{Committed, ConversationJSON, OpenCall},
    error::{input, thrown},
    json::{self, Plain, WireBody, WireList},
    plan::Plan,
    shared_log::SharedLog,
    wire::{message, messages_json, messages_of, placed, rendered, wire_format},
};
use context_window as core;
use context_window_formats::{ReadOptions, SessionFile};
use core::{Message, PinnedItem, Priority, StandingRule, Ttl, events::LogEvent, usage::ReplyReport};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// Messages in a provider's format.
    #[wasm_bindgen(typescript_type = "WireMessages")]
    pub type Messages;
    /// A reply: a text, or a message in a provider's format.
    #[wasm_bindgen(typescript_type = "string | WireMessage")]
    pub type Reply;
    /// A provider's response, or its usage alone.
    #[wasm_bindgen(typescript_type = "object")]
    pub type Response;
    /// The result of `pushReply`.
    #[wasm_bindgen(typescript_type = "Committed")]
    pub type Pushed;
    /// The JSON of a conversation.
    #[wasm_bindgen(typescript_type = "ConversationJSON")]
    pub type WholeJson;
    /// Tool calls without results.
    #[wasm_bindgen(typescript_type = "OpenCall[]")]
    pub type OpenCalls;
}

/// The version of the JSON of a conversation.
const VERSION: u32 = 1;

/// The append-only log of a conversation: messages, pins, compactions and sent prompts. Nothing is ever
/// removed from it.
#[wasm_bindgen]
pub struct Conversation {
    log: SharedLog,
}

impl Conversation {
    pub(crate) fn shared(&self) -> &SharedLog {
        &self.log
    }

    fn from_log(log: core::Conversation) -> Self {
        Self { log: SharedLog::new(log) }
    }
}

#[wasm_bindgen]
impl Conversation {
    /// Creates a conversation, empty or with these messages. `wireFormat` is their format: `openai`
    /// (default, and messages of the AI SDK and other tools), `openai_responses`, `anthropic` or `gemini`.
    #[wasm_bindgen(constructor)]
    pub fn new(
        #[wasm_bindgen(unchecked_optional_param_type = "WireMessages")] messages: Option<Messages>,
        #[wasm_bindgen(unchecked_optional_param_type = "WireFormat")] wire_format: Option<String>,
    ) -> Result<Conversation, JsValue> {
        let conversation = Self::from_log(core::Conversation::new());
        if let Some(messages) = messages {
            conversation.push(messages, wire_format)?;
        }
        Ok(conversation)
    }

    /// Appends a message or a list of messages, and returns their ids. Appends all of them or none.
    pub fn push(
        &self,
        messages: Messages,
        #[wasm_bindgen(unchecked_optional_param_type = "WireFormat")] wire_format: Option<String>,
    ) -> Result<Vec<String>, JsValue> {
        let form = self::wire_format(wire_format.as_deref())?;
        let json = messages_json(&messages)?;
        let pushed = context_window_formats::push_json(&mut *self.log.change()?, &json, form);
        Ok(pushed.map_err(|error| placed(&error))?.iter().map(ToString::to_string).collect())
    }

    /// Adds a system text to the beginning of every prompt.
    #[wasm_bindgen(js_name = pushSystem)]
    pub fn push_system(&self, id: String, text: String) -> Result<(), JsValue> {
        self.log.change()?.push_system(id, text);
        Ok(())
    }

    /// Stores a reply with the plan of its prompt. `response` is the provider's response with its usage and
    /// finish reason, or its usage alone.
    #[wasm_bindgen(js_name = pushReply)]
    pub fn push_reply(
        &self,
        plan: &Plan,
        reply: Reply,
        #[wasm_bindgen(unchecked_optional_param_type = "object")] response: Option<Response>,
        #[wasm_bindgen(unchecked_optional_param_type = "WireFormat")] wire_format: Option<String>,
    ) -> Result<Pushed, JsValue> {
        let form = self::wire_format(wire_format.as_deref())?;
        let reply = match reply.as_string() {
            Some(text) => Message::assistant(text),
            None => message(&messages_json(&reply)?, form, "reply")?,
        };
        // Only the assistant answers a prompt, so any other role is a mistake of the caller.
        if reply.role() != core::Role::Assistant {
            let role = reply.role().name();
            return Err(input(format!("reply: has the role {role}; expected the role assistant")));
        }
        let report = response.as_ref().map_or_else(|| Ok(ReplyReport::new()), |response| report(response))?;
        let committed = self.log.change()?.push_reply(plan.core(), reply, report);
        let committed = Committed { id: committed.id.to_string(), events: committed.events };
        Ok(json::value(&committed)?.unchecked_into())
    }

    /// Ends a turn. The TTL of each included item is reduced by one.
    #[wasm_bindgen(js_name = completeTurn)]
    pub fn complete_turn(&self, plan: &Plan) -> Result<(), JsValue> {
        self.log.change()?.complete_turn(plan.core());
        Ok(())
    }

    /// Pins a note, which is planned before the conversation, up to the limit for pins: for `ttl` turns, or
    /// until it is unpinned. With `setTtl(id)` it is required. Replaces a note with the same id. `priority`
    /// is `low`, `normal` (default) or `high`.
    pub fn pin(
        &self,
        id: &str,
        text: &str,
        priority: Option<String>,
        ttl: Option<f64>,
    ) -> Result<(), JsValue> {
        let note = PinnedItem::new(id, text).with_priority(self::priority(priority.as_deref())?);
        // An explicit unlimited TTL would make the note required, so it is set only on request.
        let note = if ttl.is_some() { note.with_ttl(self::ttl(ttl)?) } else { note };
        self.log.change()?.pin(note);
        Ok(())
    }

    /// Pins a message of the conversation.
    #[wasm_bindgen(js_name = pinMessage)]
    pub fn pin_message(&self, id: String, priority: Option<String>) -> Result<(), JsValue> {
        let priority = self::priority(priority.as_deref())?;
        self.log.change()?.pin_message(id, priority).map_err(thrown)
    }

    /// Unpins a note or a message. Returns true if it was pinned.
    pub fn unpin(&self, id: String) -> Result<bool, JsValue> {
        Ok(self.log.change()?.unpin(id))
    }

    /// Keeps a lasting rule of the user, or confirms or edits one that was found. With `message`, the id of
    /// the user message that says it, it is sent only with prompts that leave this message out.
    #[wasm_bindgen(js_name = keepRule)]
    pub fn keep_rule(&self, id: &str, text: &str, message: Option<String>) -> Result<(), JsValue> {
        let rule = StandingRule::new(id, text);
        let rule = message.into_iter().fold(rule, StandingRule::from_message);
        self.log.change()?.keep_rule(rule).map_err(thrown)
    }

    /// Drops a rule of the user, also one that was found in a message. Returns true if the conversation has
    /// it.
    #[wasm_bindgen(js_name = dropRule)]
    pub fn drop_rule(&self, id: String) -> Result<bool, JsValue> {
        Ok(self.log.change()?.drop_rule(id))
    }

    /// Returns the user's rules.
    pub fn rules(&self) -> Result<Plain, JsValue> {
        let log = self.log.read()?;
        Ok(json::value(&log.rules().collect::<Vec<_>>())?.unchecked_into())
    }

    /// Sets the TTL of an item in turns. Without a number there is no limit, and a pinned item is required.
    #[wasm_bindgen(js_name = setTtl)]
    pub fn set_ttl(&self, id: String, turns: Option<f64>) -> Result<(), JsValue> {
        self.log.change()?.set_ttl(id, ttl(turns)?).map_err(thrown)
    }

    /// Rewinds to before this message. The message and all later ones are archived.
    #[wasm_bindgen(js_name = rewindBefore)]
    pub fn rewind_before(&self, id: String) -> Result<(), JsValue> {
        self.log.change()?.rewind_before(id).map_err(thrown)
    }

    /// Archives all messages without a summary. System texts, notes and pinned messages stay.
    #[wasm_bindgen(js_name = startFresh)]
    pub fn start_fresh(&self) -> Result<(), JsValue> {
        self.log.change()?.start_fresh();
        Ok(())
    }

    /// Undoes the newest compaction. Returns its number, or nothing if there is none.
    #[wasm_bindgen(js_name = undoCompaction)]
    pub fn undo_compaction(&self) -> Result<Option<u32>, JsValue> {
        Ok(self.log.change()?.undo_compaction())
    }

    /// Returns all messages, including archived ones, as those of a provider's request.
    pub fn messages(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "WireFormat")] wire_format: Option<String>,
    ) -> Result<WireList, JsValue> {
        let form = self::wire_format(wire_format.as_deref())?;
        let messages = messages_of(rendered(self.log.read()?.messages().to_vec(), form));
        Ok(json::value(&messages)?.unchecked_into())
    }

    /// Returns the body of a request with all messages, including archived ones.
    pub fn body(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "WireFormat")] wire_format: Option<String>,
    ) -> Result<WireBody, JsValue> {
        let form = self::wire_format(wire_format.as_deref())?;
        Ok(json::value(&rendered(self.log.read()?.messages().to_vec(), form))?.unchecked_into())
    }

    /// Returns the ids of all messages in order.
    pub fn ids(&self) -> Result<Vec<String>, JsValue> {
        let log = self.log.read()?;
        // Plans name a message without an id by its place, too.
        let id = |(at, message): (usize, &Message)| {
            message.id().map_or_else(|| format!("m{at}"), ToString::to_string)
        };
        Ok(log.messages().iter().enumerate().map(id).collect())
    }

    /// The number of messages, including archived ones.
    #[wasm_bindgen(getter)]
    pub fn length(&self) -> Result<usize, JsValue> {
        Ok(self.log.read()?.messages().len())
    }

    /// Returns the tool calls without results.
    #[wasm_bindgen(js_name = openCalls)]
    pub fn open_calls(&self) -> Result<OpenCalls, JsValue> {
        let log = self.log.read()?;
        Ok(json::value(&log.open_calls().map(OpenCall::from).collect::<Vec<_>>())?.unchecked_into())
    }

    /// The number of entries in the log.
    #[wasm_bindgen(getter, js_name = eventCount)]
    pub fn event_count(&self) -> Result<usize, JsValue> {
        Ok(self.log.read()?.event_count())
    }

    /// Returns the entries of the log from number `start` on, each as JSON text. Use them for a store of your
    /// own.
    pub fn events(&self, start: Option<usize>) -> Result<Vec<String>, JsValue> {
        let log = self.log.read()?;
        // Each entry is a text, so that a store can append it as a line.
        let entries = log.events_from(start.unwrap_or_default());
        entries.map(|entry| serde_json::to_string(&entry).map_err(|error| input(error.to_string()))).collect()
    }

    /// Appends an entry of another log.
    #[wasm_bindgen(js_name = applyEvent)]
    pub fn apply_event(&self, event: &str) -> Result<(), JsValue> {
        let event: LogEvent =
            serde_json::from_str(event).map_err(|error| input(format!("event: {error}")))?;
        self.log.change()?.apply_event(event).map_err(thrown)
    }

    /// Returns the whole conversation as plain data, for `JSON.stringify` and `fromJSON`.
    #[wasm_bindgen(js_name = toJSON)]
    pub fn to_json(&self) -> Result<WholeJson, JsValue> {
        let whole = ConversationJSON { version: VERSION, events: self.log.read()?.events().collect() };
        Ok(json::value(&whole)?.unchecked_into())
    }

    /// Restores a conversation from the data of `toJSON`, or from its text.
    #[wasm_bindgen(js_name = fromJSON)]
    pub fn from_json(
        #[wasm_bindgen(unchecked_param_type = "ConversationJSON | string")] data: JsValue,
    ) -> Result<Conversation, JsValue> {
        // A text is parsed here, because its entries may have numbers that JavaScript would round.
        let json = data.as_string().map_or_else(|| json::text(&data, "conversation"), Ok)?;
        let fault = |error: serde_json::Error| {
            input(format!("conversation: {error}; expected Conversation.toJSON()"))
        };
        let whole: ConversationJSON = serde_json::from_str(&json).map_err(fault)?;
        // Entries of a later version may mean something else.
        if whole.version != VERSION {
            let found = whole.version;
            return Err(input(format!("conversation: version {found}; expected version {VERSION}")));
        }
        Ok(Self::from_log(core::Conversation::from_events(whole.events).map_err(thrown)?))
    }

    /// Reads a conversation from a file of any known format: a session, a transcript of a coding agent, a
    /// logged request body, messages of the AI SDK. `lenient` skips what cannot be read.
    #[wasm_bindgen(js_name = fromFile)]
    pub fn from_file(
        name: &str,
        text: String,
        read_as: Option<String>,
        lenient: Option<bool>,
    ) -> Result<Conversation, JsValue> {
        let read = || -> Result<_, context_window_formats::Error> {
            let mut options = ReadOptions::new();
            if let Some(format) = read_as {
                options = options.read_as(format.parse()?);
            }
            let options = if lenient == Some(true) { options.lenient() } else { options };
            SessionFile::with_options(name, text.into_bytes(), options)?.session(None)
        };
        Ok(Self::from_log(read().map_err(thrown)?.log))
    }

    /// Returns an independent copy.
    pub fn copy(&self) -> Result<Conversation, JsValue> {
        Ok(Self::from_log(self.log.read()?.clone()))
    }
}

fn priority(name: Option<&str>) -> Result<Priority, JsValue> {
    let Some(name) = name else { return Ok(Priority::Normal) };
    let all = [Priority::Low, Priority::Normal, Priority::High];
    let found = all.into_iter().find(|priority| priority.name() == name);
    found.ok_or_else(|| input(format!("priority `{name}`: expected low, normal or high")))
}

fn ttl(turns: Option<f64>) -> Result<Ttl, JsValue> {
    let Some(given) = turns else { return Ok(Ttl::Unlimited) };
    // JavaScript has one type of numbers, so a wrong one would silently become another.
    let turns = json::whole(given).and_then(|turns| u32::try_from(turns).ok()).filter(|turns| *turns > 0);
    let fault = || input(format!("ttl: {given}; expected a number of turns, 1 or more"));
    turns.map(Ttl::turns).ok_or_else(fault)
}

/// Reads the report of a provider: its whole response, or its usage alone.
fn report(response: &JsValue) -> Result<ReplyReport, JsValue> {
    context_window_bindings::read_report(json::read(response, "response")?).map_err(input)
}
