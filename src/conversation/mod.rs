//! The conversation log: an append-only sequence of messages and events that owns all state that lasts across
//! turns.

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
mod rules;
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
pub(crate) use notes::RuleNote;
#[doc(hidden)]
pub use notes::{Note, Notes};
pub use provider_summary::ProviderSummary;
#[doc(hidden)]
pub use provider_summary::TYPE as PROVIDER_COMPACTION;
use rules::KeptRules;
pub(crate) use rules::KnownRule;
pub use sent_with::SentText;
use sent_with::SentWith;
pub(crate) use sent_with::sent_state_row;
use settings::RecordedSettings;
#[doc(hidden)]
pub use turns::Turns;
pub(crate) use turns::{Exchange, Fault, Members, Place};

/// A conversation: system texts, messages, pinned notes, pins and TTLs by id, and the last sent prompt.
///
/// A conversation only grows. Planning reads it and never writes to it. Turns and exchanges are updated when
/// a message is pushed, and no message is counted until a plan examines it (lazy counting, rule N5).
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
    /// The events, each with the number of messages before it.
    events: Vec<(u32, Event)>,
    turns: Turns,
    ids: Ids,
    system: Vec<Message>,
    notes: Notes,
    pins: BTreeMap<u32, Priority>,
    rules: KeptRules,
    /// Lifetimes by id. A hash map, because planning looks up each message. Its hash is seeded at random,
    /// because ids may come from a hostile file. Removals change the iteration order, so nothing may depend
    /// on it.
    lifetimes: IndexMap<ItemId, Lifetime>,
    /// Expired documents that already got their one extra turn (rule T2).
    asked_documents: BTreeSet<ItemId>,
    /// Indexes into `events` of the sent prompts, oldest first.
    sent: Vec<usize>,
    /// Documents and state that were sent with user messages and are retained (rule S10).
    sent_with: SentWith,
    /// Limits, tools and focus hint of the last sent prompt.
    settings: RecordedSettings,
    /// Indexes into `events` of the compactions, oldest first.
    compactions: Vec<usize>,
    /// The largest compaction number assigned so far. No number is assigned twice.
    last_number: u32,
    /// The index in `events` of the newest compaction, undo or rewind.
    archived_at: Option<usize>,
    /// The number of compactions, undos and rewinds so far.
    archive_events: usize,
    /// The position of the newest user message that is not empty, archived or not.
    last_asked: Option<u32>,
    /// The archived ranges and the summaries that replace them.
    archive_index: ArchiveIndex,
    /// The tokens that the provider billed for all replies together.
    billed: Usage,
    /// The usage level at the last observation.
    level: Level,
    /// The number of failed summaries since the last successful one or the last user message. Not part of the
    /// log.
    failures: u32,
    /// The rows of the last sent prompt as messages, and the index of the event that records it. Unchanged
    /// rows are not hashed again. Not part of the log.
    sent_rows: Option<(usize, Arc<[Message]>)>,
    /// True while a reply is being received. Not part of the log.
    responding: bool,
    /// True while the log is being played back. Not part of the log.
    playback: bool,
}

/// The remaining TTL of a note or message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub struct Lifetime {
    #[doc(hidden)]
    pub left: Ttl,
    /// True if the policy `ask` already gave the item its one extra turn.
    pub(crate) asked: bool,
}

impl Conversation {
    /// Creates an empty conversation.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a message and returns its id. A message without an id of its own is called `m` and its
    /// position.
    ///
    /// A duplicate id is accepted here. `build_plan` reports it as `ErrorKind::Input` with the names of both
    /// items (unique ids, rule O5).
    pub fn push(&mut self, message: Message) -> ItemId {
        // Claimed before the push, because a default id is the position that the message is about to get
        let id = self.ids.claim_message(message.id(), &self.messages);
        // A new request of the user justifies another attempt at a summary.
        if message.role() == Role::User && !message.is_empty() {
            self.failures = 0;
            self.last_asked = Some(self.len());
        }
        self.turns.push(&message, &self.messages);
        self.messages.push(message);
        id
    }

    /// Adds a system text to the beginning of the prompt.
    pub fn push_system(&mut self, id: impl Into<ItemId>, text: impl Into<String>) {
        self.record(Event::SystemText { id: id.into(), text: text.into() });
    }

    /// Commits a sent prompt. Adds the reply to the log, and records the plan's token count, its anchor and
    /// the provider's report. The next plan starts its window at the same message (sticky window, rule S5).
    ///
    /// `report` is a [`ReplyReport`] or converts to one: `None`, a [`Usage`], a [`StopReason`], or a pair of
    /// both. Returns the reply's id and the events for a user interface. A plausible usage report is observed
    /// as by [`Conversation::observe_usage`]. An implausible one is returned as
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

    /// Commits a reply as `push_reply` does, without an event of `tracing`. Used by replays.
    pub(crate) fn commit(&mut self, plan: &ContextPlan, reply: Message, report: ReplyReport) -> Committed {
        let ReplyReport { usage, stop, thinking_tokens, transformed, edits } = report;
        // The provider's count is the only one for hidden reasoning.
        let reply = match thinking_tokens {
            Some(tokens) => reply.with_reasoning_tokens(tokens),
            None => reply,
        };
        let dropped = transformed::dropped(plan, &transformed);
        self.responding = false;
        // The previous report is the reference, so this one is judged before the event below is recorded.
        let implausible = usage.and_then(|usage| self.implausible_report_event(plan, usage));
        let plausible = usage.filter(|_| implausible.is_none());
        let figures = plausible.and_then(|usage| self.usage_after(plan, usage));
        self.record(Event::Sent {
            counted: plan.counted(),
            volatile_tokens: plan.usage.volatile_tokens,
            dropped_tokens: plan.usage.dropped_tokens,
            fixed_tokens: plan.usage.fixed_tokens,
            archives: plan.carryover.archives,
            tokenizer: plan.tokenizer.clone(),
            // The provider read these messages without their reasoning, so the anchor describes them without
            // it.
            anchor: Box::new(plan.anchor().without_reasoning_of(&dropped.ids)),
            usage,
        });
        // After the event of the prompt, because settings describe the prompt recorded before them.
        self.record_settings(plan);
        // A message whose reasoning the provider dropped has a different hash than the plan computed for it.
        let sent = self.sent.last().filter(|_| dropped.ids.is_empty());
        self.sent_rows = sent.map(|event| (*event, plan.rows_sent()));
        let (documents, state) = Self::newly_retained_texts(plan);
        // An empty list is recorded too: it replaces the documents remembered for this question.
        let forgotten =
            plan.carryover.documents_stay && documents.is_empty() && self.replaces_documents(plan);
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
        events.extend(implausible);
        // Last, because a change of the level is recorded in the log, after the reply.
        events.extend(figures.into_iter().flat_map(|figures| self.observe_usage(figures)));
        Committed { id, events }
    }

    /// Ends a turn. Counts down by one the TTL of each item that this plan included, and marks the expired
    /// items and documents that the plan kept for one more turn (rules T2, T3).
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
            .documents_to_confirm
            .iter()
            .filter(|id| !self.asked_documents.contains(*id))
            .cloned()
            .collect();
        // Document ids are a separate namespace: a document must not count down the TTL of a message with its
        // id.
        for item in plan.included.iter().filter(|item| !item.kind.is_document()) {
            let Some(lifetime) = self.lifetimes.get(&item.id) else {
                continue;
            };
            if plan.carryover.items_to_confirm.contains(&item.id) {
                asked.push(item.id.clone());
            }
            let left = lifetime.left.after_turn();
            if left != lifetime.left {
                counted_down.push((item.id.clone(), left));
            }
        }
        self.record(Event::TurnCompleted { counted_down, asked, documents_asked, documents_renewed });
    }

    /// Rewinds the conversation to the point before this message. If the message is part of an exchange, the
    /// rewind begins at the first message of that exchange. All messages from there on are archived.
    /// Compactions after that point are undone, so the messages that they archived are sent again. The log
    /// keeps all entries.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` if no message has this id. `ErrorKind::Input` if an earlier rewind removed the
    /// message.
    pub fn rewind_before(&mut self, id: impl Into<ItemId>) -> Result<(), Error> {
        let before = id.into();
        let position = self.position(&before)?;
        if self.archive_index.archived(position) == Some(ArchivedBy::Rewind) {
            let detail = "was removed by an earlier rewind; expected a message of the current conversation";
            return Err(Error::input(format!("message `{}`", short(before.as_str())), detail));
        }
        // A rewind never splits a call from its results: it moves back to the first message of the exchange.
        let first = match self.turns.place_of(position) {
            Place::Exchange(at) => self.turns.exchange(at).members().into_iter().min().unwrap_or(position),
            Place::UserMessage(turn) => self.turns.user_message(turn).unwrap_or(position).min(position),
            _ => position,
        };
        let before = if first < position { self.message_id(first) } else { before };
        self.record(Event::Rewound { before });
        Ok(())
    }

    /// Archives the whole conversation without a summary (rule U4). The next prompt begins with the next
    /// message. System texts, pinned notes and pinned messages stay. The freed tokens are not counted.
    pub fn start_fresh(&mut self) {
        let record = self.compaction_record(CompactionKind::Fresh, None, None, None);
        record.trace("start_fresh", &TraceIds::default());
        self.record(Event::Compacted(Box::new(record)));
    }

    /// Undoes the newest compaction and returns its number, or `None` if nothing is compacted. The archived
    /// messages are sent again, later messages are kept, and the log keeps the record. No automatic
    /// compaction follows before the next message.
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

    /// Returns the tool calls of the newest exchange that have no result yet. An agent runs these next.
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

    /// Returns the number of messages. Positions are 32 bits wide, so a log holds at most 4,294,967,294
    /// messages.
    fn len(&self) -> u32 {
        u32::try_from(self.messages.len()).unwrap_or(u32::MAX)
    }

    #[doc(hidden)]
    #[must_use]
    pub fn position_of(&self, id: &ItemId) -> Option<u32> {
        self.ids.position(id, &self.messages)
    }

    /// Returns the position of the live turn's user message, or `None` if there is no live turn or it has
    /// none.
    pub(crate) fn live_question(&self) -> Option<u32> {
        self.turns.user_message(self.live_turn()?)
    }

    /// Returns the current tool call: the last exchange with calls of the current turn, or `None` if an
    /// assistant message follows it.
    pub(crate) fn open_exchange(&self) -> Option<ExchangeIndex> {
        self.live_turn()?;
        let open = self.turns.open_exchange(&self.messages)?;
        self.archive_index.archived(self.turns.exchange(open).at).is_none().then_some(open)
    }

    /// Returns the newest turn, or `None` if there is none or its first message is archived. A pin may still
    /// keep a part of an archived turn in the prompt.
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

    /// Checks that no id is used twice in the log, and that none of `others` is taken in it (rule O5). Fails
    /// on the first conflict.
    #[doc(hidden)]
    pub fn check_ids<'a>(
        &self,
        others: impl Iterator<Item = (&'a ItemId, &'static str)>,
    ) -> Result<(), Error> {
        self.ids.check(&self.messages, others)
    }
}

/// Two conversations are equal if they hold the same messages and events in the same order.
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
