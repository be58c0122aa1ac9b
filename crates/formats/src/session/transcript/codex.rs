//! Conversion of Codex CLI rollouts to sessions. `docs/reference/session.md` lists the result of each event.

use super::{super::Session, check_unknown, whole};
use crate::error::Error;
use crate::{
    session::compacted::Known, session::content::Content, session::place::Place, session::reader::Reader,
    session::responses, session::timestamp::Timestamp, session::unread::Unread,
};
use context_window::{
    Message, Part, Role, ToolCall, Usage, WireFormat, text::plain, text::plain::compact_json,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(expecting = "an event: an object")]
struct Event {
    #[serde(rename = "type")]
    kind: Option<String>,
    timestamp: Option<Timestamp>,
    payload: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Meta {
    model: Option<String>,
    instructions: Option<String>,
    base_instructions: Option<Instructions>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string, or an object with `text`")]
enum Instructions {
    Bare(String),
    Full { text: String },
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct TurnContext {
    model: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Compacted {
    message: Option<String>,
    replacement_history: Option<Vec<Box<RawValue>>>,
}

/// The type of a payload.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Kind {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Rollback {
    num_turns: usize,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct TokenCount {
    info: Option<TokenInfo>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct TokenInfo {
    last_token_usage: Option<Figures>,
}

#[derive(Deserialize)]
#[serde(default, expecting = "an object")]
#[derive(Default)]
#[expect(clippy::struct_field_names, reason = "the provider's names")]
struct Figures {
    input_tokens: u64,
    cached_input_tokens: u64,
    output_tokens: u64,
}

/// A call of the shell tool that the model was trained with. The item contains no tool name.
#[derive(Deserialize)]
#[serde(expecting = "a tool call: an object")]
struct ShellCall {
    call_id: Option<String>,
    id: Option<String>,
    action: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(expecting = "a tool result: an object")]
struct Output {
    call_id: Option<String>,
    output: Option<Box<RawValue>>,
}

/// A result in the form of older versions.
#[derive(Deserialize)]
struct OldOutput {
    content: String,
}

#[derive(Deserialize)]
#[serde(expecting = "reasoning: an object")]
struct Thought {
    content: Option<Content>,
}

/// The known types of events.
const KINDS: [&str; 7] = [
    "session_meta",
    "turn_context",
    "compacted",
    "response_item",
    "event_msg",
    "world_state",
    "ghost_commit",
];

/// Reads the events of a rollout.
pub(super) fn session(events: &[(Place<'_>, &str)], is_lenient: bool) -> Result<Session, Error> {
    let place = events[0].0;
    let mut rollout = Rollout::default();
    for (place, json) in events {
        let event: Event = place.parse(json)?;
        let kind = event.kind.as_deref().unwrap_or("no type");
        if !is_lenient && !KINDS.contains(&kind) {
            check_unknown(*place, kind, json)?;
        }
        rollout.event(*place, event)?;
    }
    rollout.log.end();
    let model = rollout.model.take();
    let mut reader = Reader::new(place);
    // Older versions repeat the user's instructions in the first message.
    let texts = std::mem::take(&mut rollout.instructions).into_iter();
    let is_said = |text: &str| rollout.log.messages.iter().any(|message| says(message, text));
    let texts: Vec<String> = texts.filter(|text| !text.trim().is_empty() && !is_said(text)).collect();
    reader.head(None, texts, Vec::new())?;
    let mut compactions = rollout.compactions.into_iter().peekable();
    for (at, message) in rollout.log.messages.into_iter().enumerate() {
        while let Some((_, known)) = compactions.next_if(|(before, _)| *before == at) {
            reader.compaction(Ok(known.into()), None);
        }
        if let Some(usage) = rollout.reports.get(&at) {
            reader.reported(*usage);
        }
        reader.log.push(message);
    }
    if rollout.taken_back > 0 {
        let count = plain::grouped(rollout.taken_back as u64);
        reader.ignored.push(format!("messages that the user removed are left out: {count}"));
    }
    compactions.for_each(|(_, known)| reader.compaction(Ok(known.into()), None));
    whole(reader, place, model, WireFormat::OpenAiResponses, &rollout.unread)
}

/// Maximum number of leading instructions that are compared. No known writer has more.
const LEADING: usize = 32;

/// Returns the texts of a message, separated by blank lines.
fn text_of(message: &Message) -> String {
    let parts = message.as_parts().into_iter();
    let texts = parts.filter_map(|part| if let Part::Text(text) = part { Some(text) } else { None });
    texts.collect::<Vec<String>>().join("\n\n")
}

/// Checks whether a user message is context that the agent generated.
fn is_context(message: &Message) -> bool {
    const BEGIN: [&str; 4] =
        ["<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<turn_aborted>"];
    let text = text_of(message);
    BEGIN.iter().any(|begin| text.trim_start().starts_with(begin))
}

/// Checks whether a message contains a text.
fn says(message: &Message, text: &str) -> bool {
    message.as_parts().iter().any(|part| matches!(part, Part::Text(part) if part.contains(text.trim())))
}

#[derive(Default)]
struct Rollout {
    log: responses::Log,
    instructions: Vec<String>,
    model: Option<String>,
    /// The reported usage, by the index of the reply.
    reports: BTreeMap<usize, Usage>,
    /// The compactions, each with the number of messages before it.
    compactions: Vec<(usize, Known)>,
    unread: Unread,
    /// The number of messages that the user took back.
    taken_back: usize,
    has_meta: bool,
}

impl Rollout {
    fn event(&mut self, place: Place<'_>, event: Event) -> Result<(), Error> {
        let payload = event.payload.as_deref().map_or("{}", RawValue::get);
        match event.kind.as_deref() {
            // A rollout that continues another one starts with the events of that one, so only the first
            // event counts.
            Some("session_meta") if !self.has_meta => {
                self.has_meta = true;
                let meta: Meta = place.parse_part("payload", payload)?;
                self.model = self.model.take().or(meta.model);
                let base = meta.base_instructions.map(|base| match base {
                    Instructions::Bare(text) | Instructions::Full { text } => text,
                });
                self.instructions.extend(base.into_iter().chain(meta.instructions));
            }
            Some("turn_context") => {
                let context: TurnContext = place.parse_part("payload", payload)?;
                self.model = context.model.filter(|model| !model.is_empty()).or(self.model.take());
            }
            Some("compacted") => {
                self.compacted(place, place.parse_part("payload", payload)?, event.timestamp)?;
            }
            Some("response_item") => self.item(place, "payload", payload)?,
            Some("event_msg") => self.message(place, payload)?,
            kind => self.unread.count(kind.unwrap_or("no type")),
        }
        Ok(())
    }

    /// Reads an event of the screen. Its messages repeat the items, so only token counts and rollbacks are
    /// read.
    fn message(&mut self, place: Place<'_>, payload: &str) -> Result<(), Error> {
        let Kind { kind } = place.parse_part("payload", payload)?;
        if kind.as_deref() == Some("token_count") {
            let count: TokenCount = place.parse_part("payload", payload)?;
            let figures = count.info.and_then(|info| info.last_token_usage).unwrap_or_default();
            let Figures { input_tokens, cached_input_tokens, output_tokens } = figures;
            let usage = Usage::openai(input_tokens, cached_input_tokens, output_tokens);
            // The counts follow the reply that they belong to.
            if let Some(reply) = self.log.reply().filter(|_| usage != Usage::default()) {
                self.reports.insert(reply, usage);
                return Ok(());
            }
        }
        if kind.as_deref() == Some("thread_rolled_back") {
            let rollback: Rollback = place.parse_part("payload", payload)?;
            self.take_back(rollback.num_turns);
            return Ok(());
        }
        self.unread.count(&format!("event_msg/{}", kind.as_deref().unwrap_or("no type")));
        Ok(())
    }

    /// Removes the last `turns` turns of the user, and everything after them.
    fn take_back(&mut self, turns: usize) {
        self.log.end();
        let is_prompt = |message: &Message| message.role() == Role::User && !is_context(message);
        let prompts = self.log.messages.iter().enumerate().filter(|(_, message)| is_prompt(message));
        let prompts: Vec<usize> = prompts.map(|(at, _)| at).collect();
        let nth = prompts.len().saturating_sub(turns);
        let Some(to) = prompts.get(nth).copied() else { return };
        self.taken_back += self.log.messages.len() - to;
        self.log.messages.truncate(to);
        self.reports.retain(|at, _| *at < to);
        self.compactions.retain(|(before, _)| *before <= to);
    }

    fn item(&mut self, place: Place<'_>, key: &str, json: &str) -> Result<(), Error> {
        let Kind { kind } = place.parse_part(key, json)?;
        let fault = |detail: String| place.fault(key, &plain::words(&detail));
        match kind.as_deref() {
            Some("local_shell_call") => {
                let call: ShellCall = place.parse_part(key, json)?;
                let id = call.call_id.or(call.id).ok_or_else(|| fault("expected a call_id".into()))?;
                let action = call.action.map_or_else(|| "{}".into(), |action| compact_json(action.get()));
                self.log.call(ToolCall::new(id, "local_shell", action));
                Ok(())
            }
            Some("function_call_output" | "custom_tool_call_output") => {
                let result: Output = place.parse_part(key, json)?;
                let output = result.output.as_deref().map_or("", RawValue::get);
                // Only older versions wrote the output as an object.
                if !output.starts_with('{') {
                    return self.log.raw(json).map_err(fault);
                }
                let id = result.call_id.ok_or_else(|| fault("expected a call_id".into()))?;
                let old = serde_json::from_str::<OldOutput>(output).map(|old| old.content);
                self.log.result(id, old.unwrap_or_else(|_| compact_json(output)));
                Ok(())
            }
            // A snapshot of the folder, used to undo changes of the agent.
            Some("ghost_snapshot") | None => {
                let kind = kind.as_deref().unwrap_or("no type");
                self.unread.count(&format!("response_item/{kind}"));
                Ok(())
            }
            Some("reasoning") => {
                let thought: Thought = place.parse_part(key, json)?;
                self.log.raw(json).map_err(fault)?;
                let text = thought.content.unwrap_or_default().take_texts();
                self.log.think(&text);
                Ok(())
            }
            _ => self.log.raw(json).map_err(fault),
        }
    }

    /// Records a compaction of all messages so far, and adds its replacement messages. Instructions at the
    /// start of the log stay anyway, so their copies are not added again.
    fn compacted(
        &mut self,
        place: Place<'_>,
        compacted: Compacted,
        timestamp: Option<Timestamp>,
    ) -> Result<(), Error> {
        self.log.end();
        let summary = compacted.message.filter(|text| !text.trim().is_empty());
        let before = self.log.messages.len();
        for (at, raw) in compacted.replacement_history.into_iter().flatten().enumerate() {
            self.item(place, &format!("payload.replacement_history[{at}]"), raw.get())?;
        }
        self.log.end();
        let instructs = |message: &&Message| matches!(message.role(), Role::System | Role::Developer);
        let leading = self.log.messages[..before].iter().take(LEADING).take_while(instructs);
        let leading: Vec<Message> = leading.cloned().collect();
        let stays = |message: &Message| {
            leading
                .iter()
                .any(|leads| leads.role() == message.role() && leads.as_parts() == message.as_parts())
        };
        let is_summary = |message: &Message| summary.as_ref().is_some_and(|summary| says(message, summary));
        // The replacements were read as ordinary items, so they are at the end of the log.
        let again = self.log.messages.split_off(before);
        // The message sent to the model contains the agent's wording around the summary, so that text is
        // preferred.
        let whole = again.iter().find(|message| is_summary(message)).map(text_of);
        self.log.messages.extend(again.into_iter().filter(|message| !stays(message) && !is_summary(message)));
        let summary = whole.or(summary);
        self.compactions.push((before, Known { summary, timestamp, ..Known::default() }));
        Ok(())
    }
}
