//! Entries of the log (messages and events), and the effect of each event. Every change of a conversation
//! other than a new message is an event. Reading a log back applies the same events.

use super::{Compaction, Conversation, Note, SentText, ids::Owner};
use crate::{
    item::{ItemId, PinnedItem, Priority, Ttl},
    message::{Message, Tool},
    plan::anchor::Anchor,
    provider::model::RequestLimits,
    standing_rule::StandingRule,
    usage::{Level, Usage},
};

/// One entry of the log.
#[derive(Debug, Clone, Copy)]
pub enum Entry<'a> {
    /// A message.
    Message(&'a Message),
    /// An event between messages.
    Event(&'a Event),
}

/// A change of a conversation other than a new message.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A system text was added to the beginning of the prompt.
    SystemText {
        /// Its id.
        id: ItemId,
        /// The text.
        text: String,
    },
    /// A note was pinned, or pinned again under the same id.
    Pinned(PinnedItem),
    /// A message was pinned.
    MessagePinned {
        /// Its id.
        id: ItemId,
        /// Its priority among pinned items.
        priority: Priority,
    },
    /// A note or message is no longer pinned.
    Unpinned(ItemId),
    /// A rule of the user is kept, or replaced under the same id.
    RuleKept(StandingRule),
    /// A rule of the user was dropped.
    RuleDropped(ItemId),
    /// An item's TTL was set.
    TtlSet {
        /// Its id.
        id: ItemId,
        /// The remaining TTL.
        ttl: Ttl,
        /// True if the policy `ask` already gave it its one extra turn.
        asked: bool,
    },
    /// A prompt was sent and answered.
    Sent {
        /// The tokens that the plan counted, before any token calibration.
        counted: u64,
        /// The counted tokens of documents and state, which belong to this prompt only. The full conversation
        /// does not count them (rule U2).
        volatile_tokens: u64,
        /// Estimated tokens of the active messages that the plan dropped.
        dropped_tokens: u64,
        /// The counted tokens of the fixed part: system texts, notes, tools and pins of archived messages.
        fixed_tokens: u64,
        /// The number of compactions, undos and rewinds when the prompt was planned.
        archives: usize,
        /// The name of the tokenizer.
        tokenizer: String,
        /// The start of the window, the included documents and the target of the prompt. Only the newest
        /// anchor keeps the prompt itself.
        anchor: Box<Anchor>,
        /// The usage that the provider reported.
        usage: Option<Usage>,
    },
    /// The prompt recorded before this event held these documents and state entries. They are retained at the
    /// place at which they were sent (rule S10).
    SentWith {
        /// The user message that the documents come before. `None` if the documents come before the reply.
        question: Option<ItemId>,
        /// The documents, in the order in which they were sent.
        documents: Vec<SentText>,
        /// The state entries before the reply.
        state: Vec<SentText>,
    },
    /// Limits, tools or focus hint changed. The prompt recorded before this event was the first with these
    /// settings. A `None` field did not change.
    PromptSettings {
        /// The limits of the request.
        limits: Option<RequestLimits>,
        /// The focus hint. Empty if the focus hint was removed.
        focus: Option<String>,
        /// The tools that the log did not contain yet.
        new_tools: Vec<Tool>,
        /// The tools in order, as indexes (from 0) into all tools that the log contains.
        tools: Option<Vec<u32>>,
    },
    /// A turn ended. TTLs were counted down, and items were asked about.
    TurnCompleted {
        /// The remaining TTL of each counted item.
        counted_down: Vec<(ItemId, Ttl)>,
        /// The items that got their one extra turn.
        asked: Vec<ItemId>,
        /// The documents that got their one extra turn.
        documents_asked: Vec<ItemId>,
        /// The documents that were asked about before and now have a new TTL.
        documents_renewed: Vec<ItemId>,
    },
    /// Messages were archived.
    Compacted(Box<Compaction>),
    /// The newest compaction was undone. Its archived messages are sent again.
    CompactionUndone {
        /// The number of the compaction.
        number: u32,
    },
    /// The conversation was rewound to before this message. The messages from there on are archived.
    Rewound {
        /// The first message that was removed.
        before: ItemId,
    },
    /// The usage level changed, and the application received an event.
    LevelCrossed {
        /// The new level.
        level: Level,
    },
}

impl Conversation {
    /// Returns all messages and events in order.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.entries_from(0, 0)
    }

    /// Returns a copy of the conversation at the time when it had `messages` messages, before the next prompt
    /// was sent. Later entries are left out. The original does not change.
    #[must_use]
    pub fn as_of(&self, messages: usize) -> Self {
        let mut past = Self::new();
        for entry in self.entries() {
            let is_there = past.messages.len() == messages;
            match entry {
                Entry::Message(_) | Entry::Event(Event::Sent { .. }) if is_there => break,
                Entry::Message(message) => drop(past.push(message.clone())),
                Entry::Event(event) => past.record(event.clone()),
            }
        }
        past
    }

    /// Returns an event by its index, or `None` if it is out of range.
    #[doc(hidden)]
    #[must_use]
    pub fn event(&self, at: usize) -> Option<&Event> {
        self.events.get(at).map(|(_, event)| event)
    }

    /// Returns the number of messages and the number of events.
    #[doc(hidden)]
    #[must_use]
    pub fn lengths(&self) -> (usize, usize) {
        (self.messages.len(), self.events.len())
    }

    /// Returns the numbers of messages and of events among the first `entries` entries. Binary search over
    /// the events.
    #[doc(hidden)]
    #[must_use]
    pub fn split_at(&self, entries: usize) -> (usize, usize) {
        // The index of an event's entry: the number of events before it plus the number of messages before
        // it.
        let entry_of = |(at, (before, _)): (usize, &(u32, Event))| at + *before as usize;
        let (mut low, mut high) = (0, self.events.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if entry_of((middle, &self.events[middle])) < entries { low = middle + 1 } else { high = middle }
        }
        (entries.saturating_sub(low).min(self.messages.len()), low)
    }

    /// Returns messages and events in log order, starting at these two indexes.
    #[doc(hidden)]
    pub fn entries_from(&self, messages: usize, events: usize) -> impl Iterator<Item = Entry<'_>> {
        let mut events = self.events[events..].iter().peekable();
        let mut messages = self.messages[messages..].iter().enumerate();
        std::iter::from_fn(move || {
            let position = self.messages.len() - messages.len();
            // Events with the position of a message happened before that message.
            if let Some((_, event)) = events.next_if(|(before, _)| *before as usize <= position) {
                return Some(Entry::Event(event));
            }
            messages.next().map(|(_, message)| Entry::Message(message))
        })
    }

    /// Appends an event and applies its effects. Every change of the conversation other than a new message
    /// goes through this function, and so does reading a log back.
    #[doc(hidden)]
    pub fn record(&mut self, event: Event) {
        let before = self.len();
        match &event {
            Event::SystemText { id, text } => {
                let owner = Owner::System(self.system.len());
                self.ids.claim(id, owner, &self.messages);
                self.system.push(Message::system(text).with_id(id.clone()));
            }
            Event::Pinned(item) => self.pin_note(item, before),
            Event::MessagePinned { id, priority } => {
                // Pinning a message whose TTL is used up is the answer to the policy `ask`: the TTL is
                // dropped.
                if self.lifetime(id).is_some_and(|lifetime| lifetime.left == Ttl::NoneRemaining) {
                    self.lifetimes.swap_remove(id);
                }
                if let Some(position) = self.position_of(id) {
                    self.pins.insert(position, *priority);
                    self.rebuild_turns_for(position);
                }
            }
            // Unpinning a note removes it; unpinning a message only removes its pin.
            Event::Unpinned(id) if self.has_note(id) => {
                self.notes.remove(id);
                self.ids.release_note(id);
                self.lifetimes.swap_remove(id);
            }
            Event::Unpinned(id) => {
                if let Some(position) = self.position_of(id) {
                    self.pins.remove(&position);
                    self.rebuild_turns_for(position);
                }
            }
            Event::RuleKept(rule) => self.rules.keep(rule, before),
            Event::RuleDropped(id) => self.rules.drop(id),
            Event::TtlSet { id, ttl, asked } => self.set_lifetime(id, *ttl, *asked),
            Event::Sent { usage, .. } => {
                self.billed += usage.unwrap_or_default();
                // Only the newest prompt is compared for its cached prefix, so older anchors release their
                // copies.
                if let Some(Event::Sent { anchor, .. }) = self.sent.last().map(|at| &mut self.events[*at].1) {
                    anchor.forget_details();
                }
                self.sent.push(self.events.len());
            }
            Event::SentWith { question, documents, state } => {
                // Documents without a question come right before the reply, which gets the next position.
                let last = Some(before).filter(|_| !documents.is_empty());
                let question = question.as_ref().map_or(last, |id| self.position_of(id));
                self.sent_with.remember(question, before, documents, state);
            }
            Event::PromptSettings { limits, focus, new_tools, tools } => {
                self.settings.apply(*limits, focus.as_deref(), new_tools, tools.as_deref());
            }
            Event::TurnCompleted { counted_down, asked, documents_asked, documents_renewed } => {
                self.asked_documents.extend(documents_asked.iter().cloned());
                for id in documents_renewed {
                    self.asked_documents.remove(id);
                }
                for (id, left) in counted_down {
                    self.lifetimes.entry(id.clone()).and_modify(|lifetime| lifetime.left = *left);
                }
                for id in asked {
                    self.lifetimes.entry(id.clone()).and_modify(|lifetime| lifetime.asked = true);
                }
            }
            Event::Compacted(record) => {
                // The context just shrank, so the next observation reports a crossing again.
                self.level = Level::Normal;
                if record.progress {
                    // A compaction ends a series of failures only if no trigger fires any more after it.
                    self.failures = 0;
                }
                self.compactions.push(self.events.len());
                self.last_number = self.last_number.max(record.number);
                if let Some(placed) = self.resolve(record) {
                    self.archive_index.compact(placed);
                    self.apply_compaction_to_turns();
                }
            }
            Event::CompactionUndone { number } => {
                self.archive_index.undo(*number);
                self.rebuild_turns();
            }
            Event::Rewound { before: id } => {
                if let Some(position) = self.position_of(id) {
                    self.archive_index.rewind(position, before);
                    self.rebuild_turns();
                }
            }
            Event::LevelCrossed { level } => self.level = *level,
        }
        if matches!(event, Event::Compacted(_) | Event::Rewound { .. } | Event::CompactionUndone { .. }) {
            self.archived_at = Some(self.events.len());
            self.archive_events += 1;
        }
        // Last, because the indexes recorded above are the length of `events` before the push.
        self.events.push((before, event));
    }

    /// Pins a note: claims its id, sets its TTL and adds it to the notes.
    fn pin_note(&mut self, item: &PinnedItem, before: u32) {
        self.ids.claim(&item.id, Owner::Note, &self.messages);
        match item.ttl {
            Some(left) => self.set_lifetime(&item.id, left, false),
            None => drop(self.lifetimes.swap_remove(&item.id)),
        }
        let message = Message::system(&*item.text);
        self.notes.push(Note { before, item: item.clone(), message, rule: None });
    }
}
