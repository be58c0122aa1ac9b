//! The log: an append-only sequence of messages and events, which owns all state that lasts across turns.

use crate::{
    error::{Error, Repr},
    item::{ItemId, Priority, Section, Ttl},
    message::{Message, Role, ToolCall},
    plan::{ContextPlan, TraceIds},
    text::plain::short,
    usage::{Committed, ContextEvent, Level, ReplyReport, StopReason, Usage},
};
use indexmap::IndexMap;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

mod provider_summary;
mod compaction;
mod ids;
mod notes;
mod index;
mod sent_with;
mod entry;
mod mixed;
mod sent;
mod settings;
mod transformed;
mod status;
mod turns;
mod archive_index;
mod archive;
mod display;
mod pins;
mod loaded;

pub(crate) use archive_index::ArchivedBy;
pub(crate) use archive_index::{ArchiveIndex, ResolvedCompaction};
pub use compaction::{Compaction, CompactionKind, MessageRange};
pub use display::HistoryRow;
#[doc(hidden)]
pub use entry::{Entry, Event};
use ids::Ids;
pub(crate) use index::{ExchangeIndex, TurnIndex, index};
pub(crate) use mixed::MixedConversation;
#[doc(hidden)]
pub use notes::{Note, Notes};
pub use provider_summary::ProviderSummary;
#[doc(hidden)]
pub use provider_summary::TYPE as PROVIDER_COMPACTION;
pub use sent_with::SentText;
use sent_with::SentWith;
pub(crate) use sent_with::sent_state_row;
use settings::RecordedSettings;
#[doc(hidden)]
pub use turns::Turns;
pub(crate) use turns::{Exchange, Fault, Members, Place};

/// A conversation: system texts, messages, pinned notes, pins and TTL by id, and the last sent prompt.
///
/// It only grows; planning reads it and never writes. Turns and exchanges are updated as messages are pushed,
/// and no message is counted until a plan examines it (rule N5).
///
/// ```
/// use context_window::{Conversation, Message, PinnedItem};
///
/// let mut log = Conversation::new();
/// log.push_system("rules", "Answer from the documents.");
/// let id = log.push(Message::user("How long do refunds take?"));
/// assert_eq!(id, "m0");
/// log.push(Message::assistant("5 days."));
/// log.pin(PinnedItem::new("tone", "The customer likes short answers."));
/// assert_eq!(log.messages().len(), 2);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    messages: Vec<Message>,
    /// Each with the number of messages before it.
    events: Vec<(u32, Event)>,
    turns: Turns,
    ids: Ids,
    system: Vec<Message>,
    notes: Notes,
    pins: BTreeMap<u32, Priority>,
    lifetimes: Lifetimes,
    /// Documents whose TTL is used up and that got their one more turn (rule T2).
    asked_documents: BTreeSet<ItemId>,
    /// The events of sent prompts.
    sent: Vec<usize>,
    /// Documents and state that were sent with questions and are retained (rule S10).
    sent_with: SentWith,
    /// Limits, tools and focus hint of the last prompt.
    settings: RecordedSettings,
    /// The events that are compactions.
    compactions: Vec<usize>,
    /// The largest number that a compaction was given: none is given twice.
    last_number: u32,
    /// The newest compaction or rewind among the events, and the number of both.
    archived_at: Option<usize>,
    archive_events: usize,
    /// The newest user message with anything in it, archived or not.
    last_asked: Option<u32>,
    /// The archived messages.
    archive_index: ArchiveIndex,
    /// The tokens that all replies together were billed for.
    billed: Usage,
    /// The level of the last event.
    level: Level,
    /// Summaries that failed since the last one that did not, or the last user message. Not part of the log.
    failures: u32,
    /// The messages of a sent prompt, by its rows, and the event that records it: rows that stay as they were
    /// are not hashed again. Not part of the log.
    sent_rows: Option<(usize, Arc<[Message]>)>,
    /// A reply is being received. Not part of the log.
    responding: bool,
    /// The log is being played back. Not part of the log.
    playback: bool,
}

/// Lifetimes by id, hashed, because planning asks about each message. Ids may come from a hostile file, so
/// the hash is seeded at random; nothing may depend on the order.
pub(crate) type Lifetimes = IndexMap<ItemId, Lifetime>;

/// The remaining TTL of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub struct Lifetime {
    #[doc(hidden)]
    pub left: Ttl,
    /// True if the policy `ask` already gave it one more turn.
    pub(crate) asked: bool,
}

impl Conversation {
    /// Creates an empty conversation.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a message and returns its id: the one it was given, or `m` and its position.
    ///
    /// A duplicate id is accepted here; `build_plan` reports it as `ErrorKind::Input` and names both items
    /// (rule O5).
    pub fn push(&mut self, message: Message) -> ItemId {
        let id = self.ids.claim_message(message.id(), &self.messages);
        if message.role() == Role::User && !message.is_empty() {
            self.failures = 0;
            self.last_asked = Some(self.len());
        }
        self.turns.push(&message, &self.messages);
        self.messages.push(message);
        id
    }

    /// Adds a system text to the head of the prompt.
    pub fn push_system(&mut self, id: impl Into<ItemId>, text: impl Into<String>) {
        self.record(Event::SystemText { id: id.into(), text: text.into() });
    }

    /// Commits a sent prompt: adds the reply to the log, with the plan's count, its anchor and the provider's
    /// report. The next plan starts its window at the same message (rule S5).
    ///
    /// `report` is a [`ReplyReport`] or converts to one: `None`, a [`Usage`], a [`StopReason`], a pair of
    /// both. Returns the reply's id and the events for a user interface. A usage report that is believed is
    /// observed as by [`Conversation::observe_usage`]; for another one the event is
    /// [`ContextEvent::ReportNotBelieved`].
    pub fn push_reply(
        &mut self,
        plan: &ContextPlan,
        reply: Message,
        report: impl Into<ReplyReport>,
    ) -> Committed {
        let report = report.into();
        let (stop, usage) = (report.stop, report.usage);
        let committed = self.commit(plan, reply, report);
        self.trace_reply(plan, stop, usage, &committed);
        committed
    }

    /// Commits as `push_reply` does, without an event of `tracing`. Used by replays.
    pub(crate) fn commit(&mut self, plan: &ContextPlan, reply: Message, report: ReplyReport) -> Committed {
        let ReplyReport { usage, stop, thinking_tokens, transformed, edits } = report;
        let reply = match thinking_tokens {
            Some(tokens) => reply.weighing_its_reasoning(tokens),
            None => reply,
        };
        let dropped = transformed::dropped(plan, &transformed);
        self.responding = false;
        let doubted = usage.and_then(|usage| self.doubted(plan, usage));
        let believed = usage.filter(|_| doubted.is_none());
        let figures = believed.and_then(|usage| self.figures_after(plan, usage));
        self.record(Event::Sent {
            counted: plan.counted(),
            volatile_tokens: plan.usage.volatile_tokens,
            dropped_tokens: plan.usage.dropped_tokens,
            fixed_tokens: plan.usage.fixed_tokens,
            archives: plan.carryover.archives,
            tokenizer: plan.tokenizer.clone(),
            anchor: Box::new(plan.anchor().without_reasoning_of(&dropped.ids)),
            usage,
        });
        self.record_settings(plan);
        // A message whose reasoning the provider dropped has another hash than the plan gave it.
        let sent = self.sent.last().filter(|_| dropped.ids.is_empty());
        self.sent_rows = sent.map(|event| (*event, plan.rows_sent()));
        let (documents, state) = Self::sent_beside(plan);
        let forgotten =
            plan.carryover.documents_stay && documents.is_empty() && self.chooses_documents_anew(plan);
        if !documents.is_empty() || !state.is_empty() || forgotten {
            let before_question = (forgotten || !documents.is_empty()) && !plan.carryover.documents_come_last;
            let question = plan.carryover.live.clone().filter(|_| before_question);
            self.record(Event::SentWith { question, documents, state });
        }
        let id = self.push(reply);
        let mut events: Vec<ContextEvent> = stop.and_then(StopReason::event).into_iter().collect();
        events.extend(dropped.events);
        events.extend(
            edits
                .into_iter()
                .map(|edit| ContextEvent::ClearedByProvider { edit: edit.kind, tokens: edit.cleared_tokens }),
        );
        events.extend(doubted);
        events.extend(figures.into_iter().flat_map(|figures| self.observe_usage(figures)));
        Committed { id, events }
    }

    /// Ends a turn: the TTL counts down by one for what this plan included, and items it asked about are
    /// marked, documents among them (rules T2, T3).
    #[doc(alias = "decrement_ttl")]
    #[doc(alias = "decrement TTL")]
    pub fn complete_turn(&mut self, plan: &ContextPlan) {
        let (mut counted_down, mut asked) = (Vec::new(), Vec::new());
        let documents = plan.included.iter().filter(|item| item.section == Section::Rag);
        let renewed = documents.filter(|item| item.ttl != Some(Ttl::NoneRemaining));
        let renewed = renewed.filter(|item| self.asked_documents.contains(&item.id));
        let documents_renewed = renewed.map(|item| item.id.clone()).collect();
        let documents_asked = plan
            .carryover
            .asked_documents
            .iter()
            .filter(|id| !self.asked_documents.contains(*id))
            .cloned()
            .collect();
        for item in plan.included.iter().filter(|item| !item.kind.is_document()) {
            let Some(lifetime) = self.lifetimes.get(&item.id) else {
                continue;
            };
            if plan.carryover.asked.contains(&item.id) {
                asked.push(item.id.clone());
            }
            let left = lifetime.left.after_turn();
            if left != lifetime.left {
                counted_down.push((item.id.clone(), left));
            }
        }
        self.record(Event::TurnCompleted { counted_down, asked, documents_asked, documents_renewed });
    }

    /// Rewinds the conversation to before this message, and before the call that it answers. The message and
    /// all later ones are archived, and later compactions are undone, so that the messages they archived are
    /// sent again. The log keeps all of it.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` if no message has this id, or an earlier rewind took it away.
    pub fn rewind_before(&mut self, id: impl Into<ItemId>) -> Result<(), Error> {
        let before = id.into();
        let position = self.position(&before)?;
        if self.archive_index.archived(position) == Some(ArchivedBy::Rewind) {
            let detail = "was removed by an earlier rewind; expected a message of the current conversation";
            return Err(Error::input(format!("message `{}`", short(before.as_str())), detail));
        }
        let first = match self.turns.place_of(position) {
            Place::Exchange(at) => self.turns.exchange(at).members().into_iter().min().unwrap_or(position),
            Place::Head(turn) => self.turns.head(turn).unwrap_or(position).min(position),
            _ => position,
        };
        let before = if first < position { self.message_id(first) } else { before };
        self.record(Event::Rewound { before });
        Ok(())
    }

    /// Archives everything without a summary (rule U4): the next prompt begins with the next message. System
    /// texts, pinned notes and pinned messages stay. The freed tokens are not counted.
    pub fn start_fresh(&mut self) {
        let record = self.compaction_record(CompactionKind::Fresh, None, None, None);
        record.trace("start_fresh", &TraceIds::default());
        self.record(Event::Compacted(Box::new(record)));
    }

    /// Undoes the newest compaction. Returns its number, or `None` if nothing is compacted. The messages that
    /// it archived are sent again, later messages are kept, and the log keeps the record. Nothing is
    /// compacted automatically again before the next message.
    pub fn undo_compaction(&mut self) -> Option<u32> {
        let number = self.archive_index.newest()?.number;
        self.record(Event::CompactionUndone { number });
        Some(number)
    }

    /// Returns the messages, oldest first.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the position of the message with this id among [`Conversation::messages`], or `None` if no
    /// message has it.
    #[must_use]
    pub fn position_of_message(&self, id: &str) -> Option<usize> {
        self.position_of(&ItemId::from(id)).map(|position| position as usize)
    }

    /// Returns the calls of the newest exchange that wait for their results: an agent has to run them now.
    pub fn open_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.open_exchange()
            .map(|at| self.turns.exchange(at))
            .into_iter()
            .flat_map(|exchange| {
                let calls = self.messages[exchange.at as usize].tool_calls();
                calls.iter().zip(&exchange.answers)
            })
            .filter_map(|(call, answer)| answer.is_none().then_some(call))
    }

    /// Returns the number of messages. Positions are 32 bits wide: a log holds at most 4,294,967,294
    /// messages.
    fn len(&self) -> u32 {
        u32::try_from(self.messages.len()).unwrap_or(u32::MAX)
    }

    #[doc(hidden)]
    #[must_use]
    pub fn position_of(&self, id: &ItemId) -> Option<u32> {
        self.ids.position(id, &self.messages)
    }

    /// Returns the position of the latest user message that is not empty.
    pub(crate) fn live_question(&self) -> Option<u32> {
        self.turns.head(self.live_turn()?)
    }

    /// Returns the live turn's last exchange with calls, if no assistant message follows it.
    pub(crate) fn open_exchange(&self) -> Option<ExchangeIndex> {
        self.live_turn()?;
        let open = self.turns.open_exchange(&self.messages)?;
        self.archive_index.archived(self.turns.exchange(open).at).is_none().then_some(open)
    }

    /// Returns the newest turn, unless it is archived and a pin keeps some of it.
    pub(crate) fn live_turn(&self) -> Option<TurnIndex> {
        let newest = self.turns.newest()?;
        let first = self.turns.first_of(newest)?;
        self.archive_index.archived(first).is_none().then_some(newest)
    }

    pub(crate) fn position(&self, id: &ItemId) -> Result<u32, Error> {
        self.position_of(id).ok_or_else(|| {
            Error::new(Repr::UnknownId {
                id: id.clone(),
                hint: "messages without an id of their own are called m0, m1, ... by position",
            })
        })
    }

    #[doc(hidden)]
    #[must_use]
    pub fn turns(&self) -> &Turns {
        &self.turns
    }

    #[doc(hidden)]
    #[must_use]
    pub fn message(&self, position: u32) -> &Message {
        &self.messages[position as usize]
    }

    #[doc(hidden)]
    #[must_use]
    pub fn message_id(&self, position: u32) -> ItemId {
        let given = self.message(position).id();
        given.cloned().unwrap_or_else(|| ItemId::for_message(position))
    }

    #[doc(hidden)]
    #[must_use]
    pub fn system(&self) -> &[Message] {
        &self.system
    }

    /// Fails on the first id that was used twice, and on one of `others` that is taken here (rule O5).
    #[doc(hidden)]
    pub fn check_ids<'a>(
        &self,
        others: impl Iterator<Item = (&'a ItemId, &'static str)>,
    ) -> Result<(), Error> {
        self.ids.check(&self.messages, others)
    }
}

/// Two conversations are equal if they have the same messages and events in the same order.
impl PartialEq for Conversation {
    fn eq(&self, other: &Self) -> bool {
        self.messages == other.messages && self.events == other.events
    }
}

impl FromIterator<Message> for Conversation {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        let mut log = Self::new();
        log.extend(messages);
        log
    }
}

impl<const N: usize> From<[Message; N]> for Conversation {
    fn from(messages: [Message; N]) -> Self {
        messages.into_iter().collect()
    }
}

impl From<Vec<Message>> for Conversation {
    fn from(messages: Vec<Message>) -> Self {
        messages.into_iter().collect()
    }
}

impl Extend<Message> for Conversation {
    fn extend<I: IntoIterator<Item = Message>>(&mut self, messages: I) {
        for message in messages {
            self.push(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_contain_the_whole_log_in_order() {
        let mut log = Conversation::new();
        log.push_system("s0", "Be brief.");
        log.push(Message::user("a"));
        log.pin(crate::PinnedItem::new("n", "note"));
        log.push(Message::assistant("b"));
        assert!(log.unpin("n") && !log.unpin("n"));
        let kinds: Vec<&str> = log
            .entries()
            .map(|entry| match entry {
                Entry::Message(message) => message.text(),
                Entry::Event(Event::SystemText { .. }) => "system",
                Entry::Event(Event::Pinned(_)) => "pinned",
                Entry::Event(Event::Unpinned(_)) => "unpinned",
                Entry::Event(_) => "other",
            })
            .collect();
        assert_eq!(kinds, ["system", "a", "pinned", "b", "unpinned"]);
    }

    #[cfg(feature = "openai")]
    #[test]
    fn push_reply_records_the_sent_prompt() {
        let manager = crate::ContextWindowManager::for_model("gpt-4o").unwrap();
        let mut log = Conversation::from([Message::user("How are you?")]);
        let plan = manager.build_plan(&crate::PlanRequest::new(&log)).unwrap();
        let usage = Usage::openai(11, 0, 3);
        assert_eq!(log.push_reply(&plan, Message::assistant("Well."), usage).id, "m1");
        let sent = log.entries().find_map(|entry| match entry {
            Entry::Event(Event::Sent { counted, anchor, usage, .. }) => Some((*counted, &**anchor, *usage)),
            _ => None,
        });
        assert_eq!(sent, Some((plan.estimated_tokens_total.tokens, &plan.anchor(), Some(usage))));
        assert_eq!(log.anchor(), Some(&plan.anchor()));
        assert_eq!(plan.anchor().window_start, Some("m0".into()));
        assert_eq!(log.messages().len(), 2);
    }

    #[test]
    fn open_calls_are_calls_without_results() {
        let call = |id: &str| ToolCall::new(id, "f", "{}");
        let mut log = Conversation::from([Message::user("go")]);
        assert_eq!(log.open_calls().count(), 0);
        log.push(Message::assistant("").with_tool_calls([call("a"), call("b")]));
        log.push(Message::tool("a", "done"));
        assert_eq!(log.open_calls().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["b"]);
        log.push(Message::user("never mind"));
        assert_eq!(log.open_calls().count(), 0);
    }
}
