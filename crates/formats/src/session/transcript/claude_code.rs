//! Conversion of Claude Code transcripts to sessions. `docs/reference/session.md` lists the result of each
//! event.

use super::{super::Session, check_unknown, whole};
use crate::error::Error;
use crate::{
    session::chat::LogKeys,
    session::compacted::Known,
    session::content::Content,
    session::place::Place,
    session::reader::Reader,
    session::timestamp::Timestamp,
    session::unread::Unread,
    session::unread_keys::UnreadKeys,
    session::wire,
    session::wire::{Name, Role},
};
use context_window::{ItemId, Usage, WireFormat, text::plain};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an event: an object")]
struct Event {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    subtype: Option<String>,
    uuid: Option<String>,
    parent_uuid: Option<String>,
    #[serde(default)]
    is_compact_summary: Option<bool>,
    #[serde(default)]
    is_meta: Option<bool>,
    #[serde(default)]
    is_api_error_message: Option<bool>,
    #[serde(default)]
    is_visible_in_transcript_only: Option<bool>,
    message: Option<Box<RawValue>>,
    timestamp: Option<Timestamp>,
    compact_metadata: Option<Boundary>,
    attachment: Option<Attachment>,
    tool_use_result: Option<IgnoredAny>,
}

/// The data of a compaction in its boundary event.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, expecting = "an object")]
struct Boundary {
    pre_tokens: Option<u64>,
    post_tokens: Option<u64>,
    preserved_messages: Option<Preserved>,
    preserved_segment: Option<Preserved>,
}

/// Messages before the boundary that are still sent after it. Claude Code writes them in one of two forms.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, expecting = "an object")]
struct Preserved {
    uuids: Vec<String>,
    head_uuid: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Attachment {
    #[serde(rename = "type")]
    kind: Option<String>,
    /// A user message that was queued while the agent was working.
    prompt: Option<Content>,
}

/// The fields of a message other than its content.
#[derive(Deserialize)]
#[serde(expecting = "a message: an object")]
struct Said {
    id: Option<Name>,
    model: Option<String>,
    usage: Option<Figures>,
}

#[derive(Default, Deserialize)]
#[serde(default, expecting = "an object")]
#[expect(clippy::struct_field_names, reason = "the provider's names")]
struct Figures {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl Figures {
    /// Returns the usage. Returns `None` if all counts are 0.
    fn usage(&self) -> Option<Usage> {
        let [input, written, read, output] = [
            self.input_tokens,
            self.cache_creation_input_tokens,
            self.cache_read_input_tokens,
            self.output_tokens,
        ]
        .map(Option::unwrap_or_default);
        let usage = Usage::anthropic(input, written, read, output);
        (usage != Usage::default()).then_some(usage)
    }
}

/// Types of events outside the conversation: titles, snapshots, and screen output.
const BESIDE: [&str; 25] = [
    "system",
    "attachment",
    "summary",
    "progress",
    "file-history-snapshot",
    "queue-operation",
    "last-prompt",
    "custom-title",
    "ai-title",
    "task-summary",
    "agent-name",
    "agent-color",
    "agent-setting",
    "pr-link",
    "tag",
    "mode",
    "permission-mode",
    "worktree-state",
    "content-replacement",
    "attribution-snapshot",
    "speculation-accept",
    "saved_hook_context",
    "bridge-session",
    "frame-link",
    "fork-context-ref",
];

/// Maximum number of rewinds that are read, because each one scans the whole log.
const REWINDS: u64 = 1_000;

/// A change of the log, in file order.
enum Step<'a> {
    Message {
        place: Place<'a>,
        message: Box<wire::Message>,
        usage: Option<Usage>,
    },
    Compaction(Known),
    /// A rewind: the user continued from the messages before this one.
    Rewind {
        to: usize,
    },
}

/// Reads the events of one thread.
pub(super) fn session(events: &[(Place<'_>, &str)], is_lenient: bool) -> Result<Session, Error> {
    let place = events[0].0;
    let mut thread = Thread { is_lenient, ..Thread::default() };
    for (place, json) in events {
        let event: Event = place.parse(json)?;
        let kind = event.kind.as_deref().unwrap_or("no type");
        let is_message = matches!(kind, "user" | "assistant") && event.message.is_some();
        if !is_lenient && !is_message && !BESIDE.contains(&kind) {
            check_unknown(*place, kind, json)?;
        }
        thread.event(*place, event)?;
    }
    // A file may end right after a boundary.
    thread.end_of_boundary();
    let mut reader = Reader::new(place);
    reader.unknown = WireFormat::Anthropic;
    let mut rewinds = 0;
    for step in thread.steps {
        match step {
            Step::Message { place, message, usage } => {
                reader.place = place;
                reader.content = ("message.content".into(), true);
                if let Some(usage) = usage {
                    reader.reported(usage);
                }
                reader.message(*message)?;
            }
            Step::Compaction(known) => reader.compaction(Ok(known.into()), None),
            Step::Rewind { .. } if rewinds == REWINDS => {
                reader.ignored.push(format!(
                    "the user rewound more than {} times: later rewinds archive nothing",
                    plain::grouped(REWINDS)
                ));
                rewinds += 1;
            }
            Step::Rewind { .. } if rewinds > REWINDS => {}
            Step::Rewind { to } => {
                rewinds += 1;
                if let Err(error) = reader.log.rewind_before(format!("m{to}")) {
                    reader.ignored.push(format!("the rewind to before m{to} is not applied: {error}"));
                }
            }
        }
    }
    reader.ignored.append(&mut thread.left);
    reader.ignored.extend(thread.unread_keys.notes());
    for (count, one, many) in [
        (
            thread.repeated,
            "event repeats an earlier uuid: it is read once",
            "events repeat earlier uuids: they are read once",
        ),
        (
            thread.errors,
            "error message of the interface in place of a reply is left out",
            "error messages of the interface in place of replies are left out",
        ),
        (
            thread.shown,
            "message is only for the transcript: it is left out",
            "messages are only for the transcript: they are left out",
        ),
        (
            thread.results,
            "`toolUseResult` is not read: the tool result next to it is the model's input",
            "`toolUseResult` are not read: the tool results next to them are the model's input",
        ),
    ] {
        if count > 0 {
            reader.ignored.push(format!("{} {}", plain::grouped(count), if count == 1 { one } else { many }));
        }
    }
    whole(reader, place, thread.model, WireFormat::Anthropic, &thread.unread)
}

#[derive(Default)]
struct Thread<'a> {
    steps: Vec<Step<'a>>,
    /// The number of messages in `steps`. The id of the next message is `m` and this number.
    messages: usize,
    /// The number of messages up to each event, by the event's uuid.
    up_to: BTreeMap<String, usize>,
    /// The positions of the user messages that are still part of the conversation.
    prompts: Vec<usize>,
    /// The assistant message that may continue: the provider's id and the index of its step.
    open: Option<(String, usize)>,
    /// A boundary before its summary has been read.
    boundary: Option<Known>,
    model: Option<String>,
    unread: Unread,
    /// The unknown keys of messages.
    unread_keys: UnreadKeys,
    is_lenient: bool,
    /// Notes on values that a lenient reading omitted.
    left: Vec<String>,
    repeated: u64,
    results: u64,
    /// The number of errors that the agent recorded as replies.
    errors: u64,
    /// The number of messages that are shown to the user only.
    shown: u64,
}

impl<'a> Thread<'a> {
    fn event(&mut self, place: Place<'a>, event: Event) -> Result<(), Error> {
        // Resumed sessions repeat earlier events, so an event with a known uuid is read once.
        if event.uuid.as_ref().is_some_and(|uuid| self.up_to.contains_key(uuid)) {
            self.repeated += 1;
            return Ok(());
        }
        self.results += u64::from(event.tool_use_result.is_some());
        let (uuid, parent) = (event.uuid.clone(), event.parent_uuid.clone());
        let before = parent.as_ref().and_then(|parent| self.up_to.get(parent)).copied();
        let kind = event.kind.as_deref().unwrap_or("no type");
        let is_summary = event.is_compact_summary == Some(true);
        let up_to = match (kind, event.subtype.as_deref()) {
            ("assistant", _) if event.is_api_error_message == Some(true) => {
                self.errors += 1;
                None
            }
            ("user" | "assistant", _) if event.is_visible_in_transcript_only == Some(true) && !is_summary => {
                self.shown += 1;
                None
            }
            ("user" | "assistant", _) if event.message.is_some() => Some(self.message(place, event, before)?),
            ("system", Some("compact_boundary")) => {
                self.boundary(event);
                None
            }
            ("attachment", _) => self.attachment(place, event.attachment),
            (kind, subtype) => {
                self.unread
                    .count(&subtype.map_or_else(|| kind.to_owned(), |subtype| format!("{kind}/{subtype}")));
                None
            }
        };
        if let Some(uuid) = uuid {
            // An event without a message points to the position of its parent, so replies to it continue
            // there.
            self.up_to.insert(uuid, up_to.or(before).unwrap_or(self.messages));
        }
        Ok(())
    }

    /// Adds a message, or more content of the open one. Returns the number of messages up to it.
    fn message(&mut self, place: Place<'a>, event: Event, before: Option<usize>) -> Result<usize, Error> {
        let raw = event.message.as_deref().map_or("null", RawValue::get);
        let said: Said = place.parse_part("message", raw)?;
        let mut message: wire::Message = place.parse_part("message", raw)?;
        for lost in self.unread_keys.look_at(self.messages, &message, &LogKeys::default()) {
            let key = format!("message.{}", lost.key);
            if !self.is_lenient {
                return Err(place.fault(&key, &lost.detail));
            }
            self.left.push(format!("left out: line {}: {} {}", place.line, plain::short(&key), lost.detail));
        }
        // The provider's id is not unique in the log, because several events share it.
        message.id = None;
        if event.is_compact_summary == Some(true) {
            return Ok(self.summary(place, message, event.timestamp));
        }
        self.end_of_boundary();
        let usage = said.usage.as_ref().and_then(Figures::usage);
        if message.role == Role::Assistant {
            let is_real = |model: &String| !model.is_empty() && !model.starts_with('<');
            self.model = said.model.filter(is_real).or(self.model.take());
            return Ok(self.assistant(place, message, said.id.map(Name::into_text), usage));
        }
        let is_prompt = message.role == Role::User && event.is_meta != Some(true) && !has_result(&message);
        if is_prompt {
            self.prompt(before);
        }
        Ok(self.push(place, message, usage))
    }

    fn push(&mut self, place: Place<'a>, message: wire::Message, usage: Option<Usage>) -> usize {
        self.steps.push(Step::Message { place, message: Box::new(message), usage });
        self.messages += 1;
        self.messages
    }

    /// Adds content of the assistant. One message may span several events, with results of its calls between
    /// them.
    fn assistant(
        &mut self,
        place: Place<'a>,
        message: wire::Message,
        id: Option<String>,
        reported: Option<Usage>,
    ) -> usize {
        let begun = self.open.take().filter(|(open, _)| Some(open) == id.as_ref());
        if let Some((id, step)) = begun
            && let Step::Message { message: begun, usage, .. } = &mut self.steps[step]
        {
            begun.content.extend(message.content);
            *usage = reported.or(*usage);
            self.open = Some((id, step));
            return self.messages;
        }
        self.open = id.map(|id| (id, self.steps.len()));
        self.push(place, message, reported)
    }

    /// Records a user message, which ends the assistant's message. If it follows an earlier point than the
    /// end of the conversation, the user messages after that point and their replies are rewound.
    fn prompt(&mut self, before: Option<usize>) {
        self.open = None;
        if let Some(before) = before
            && self.prompts.last().is_some_and(|last| *last >= before)
        {
            // Positions are ascending, so `partition_point` can bisect them.
            self.prompts.truncate(self.prompts.partition_point(|prompt| *prompt < before));
            self.steps.push(Step::Rewind { to: before });
        }
        self.prompts.push(self.messages);
    }

    fn boundary(&mut self, event: Event) {
        self.end_of_boundary();
        let about = event.compact_metadata.unwrap_or_default();
        let kept = about.preserved_messages.into_iter().chain(about.preserved_segment);
        let kept = kept.flat_map(|kept| kept.uuids.into_iter().chain(kept.head_uuid)).next();
        let first = kept.and_then(|uuid| self.up_to.get(&uuid)).and_then(|up_to| up_to.checked_sub(1));
        self.boundary = Some(Known {
            first_active: first.map(|first| ItemId::from(format!("m{first}"))),
            tokens_before: about.pre_tokens,
            tokens_after: about.post_tokens,
            timestamp: event.timestamp,
            summary: None,
        });
    }

    /// Records a summary, with or without its boundary. Other content of the message becomes a message after
    /// it.
    fn summary(&mut self, place: Place<'a>, mut message: wire::Message, at: Option<Timestamp>) -> usize {
        let mut known = self.boundary.take().unwrap_or_default();
        known.timestamp = known.timestamp.or(at);
        known.summary = Some(message.content.take_texts());
        self.compaction(known);
        if message.holds_anything() { self.push(place, message, None) } else { self.messages }
    }

    /// Records a boundary without a summary, which archives the messages before it all the same.
    fn end_of_boundary(&mut self) {
        if let Some(known) = self.boundary.take() {
            self.compaction(known);
        }
    }

    fn compaction(&mut self, known: Known) {
        self.open = None;
        // Later events follow the compaction, so no rewind goes to a message before it.
        self.prompts.clear();
        self.steps.push(Step::Compaction(known));
    }

    /// Adds a queued user message. Other attachments are only counted.
    fn attachment(&mut self, place: Place<'a>, attachment: Option<Attachment>) -> Option<usize> {
        let (kind, prompt) =
            attachment.map_or((None, None), |attachment| (attachment.kind, attachment.prompt));
        match prompt {
            Some(content) if kind.as_deref() == Some("queued_command") => {
                self.end_of_boundary();
                self.prompt(None);
                Some(self.push(place, wire::Message::new(Role::User, content), None))
            }
            _ => {
                self.unread.count(&format!("attachment/{}", kind.as_deref().unwrap_or("no type")));
                None
            }
        }
    }
}

/// Checks whether a message contains a tool result. Such a message is not written by the user.
fn has_result(message: &wire::Message) -> bool {
    let Content::Parts(parts) = &message.content else { return false };
    let is_result = |raw: &RawValue| {
        // The search in the raw text is cheap and skips the parse of most parts.
        raw.get().contains("tool_result")
            && matches!(
                serde_json::from_str::<wire::PartType>(raw.get()).ok().and_then(|part| part.kind).as_deref(),
                Some("tool_result")
            )
    };
    parts.iter().any(|raw| is_result(raw))
}
