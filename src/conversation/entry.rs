//! What the log is made of: messages and events, in order, and what follows from each event. Every change of
//! a conversation beside its messages is an event, and reading a log back takes the same way.

use super::{Compaction, Conversation, Note, SentText, ids::Owner};
use crate::{
    item::{ItemId, PinnedItem, Priority, Ttl},
    message::{Message, Tool},
    plan::anchor::Anchor,
    provider::model::RequestLimits,
    usage::{Level, Usage},
};

/// One entry of the log, in order.
#[derive(Debug, Clone, Copy)]
pub enum Entry<'a> {
    /// A message.
    Message(&'a Message),
    /// Something that happened between messages.
    Event(&'a Event),
}

/// What happens to a conversation beside its messages.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A system text joined the prompt's head.
    SystemText {
        /// Its id.
        id: ItemId,
        /// The text.
        text: String,
    },
    /// A note was pinned, or pinned again.
    Pinned(PinnedItem),
    /// A message was pinned.
    MessagePinned {
        /// Its id.
        id: ItemId,
        /// Its priority among pins.
        priority: Priority,
    },
    /// A note or message is no longer pinned.
    Unpinned(ItemId),
    /// An item's TTL was set.
    TtlSet {
        /// Its id.
        id: ItemId,
        /// What is left.
        ttl: Ttl,
        /// Whether the policy `ask` already gave it one more turn.
        asked: bool,
    },
    /// A prompt was sent and answered.
    Sent {
        /// What the plan counted, before any token calibration.
        counted: u64,
        /// The part of it that is for this prompt only: documents and state. The full conversation does not
        /// count them (rule U2).
        volatile_tokens: u64,
        /// Estimate of the active messages that the plan dropped, in tokens.
        dropped_tokens: u64,
        /// The fixed part of it: system texts, notes, tools and pins of archived messages.
        fixed_tokens: u64,
        /// How often the conversation had been compacted or rewound when it was planned.
        archives: usize,
        /// What it counted with.
        tokenizer: String,
        /// Where its window started, which documents it held, and what it was made for. Only the newest one
        /// keeps the prompt itself.
        anchor: Box<Anchor>,
        /// What the provider reported.
        usage: Option<Usage>,
    },
    /// The prompt before this held these, and they stay where they were sent (rule S10).
    SentWith {
        /// The question that the documents stand before; none where they stand before the reply.
        question: Option<ItemId>,
        /// The documents, in the order in which they were sent.
        documents: Vec<SentText>,
        /// The pieces of state that stand before the reply.
        state: Vec<SentText>,
    },
    /// Limits, tools or focus hint of the prompts changed: the prompt before this was the first with these. A
    /// part that is `None` stayed as it was.
    PromptSettings {
        /// The limits that the request set.
        limits: Option<RequestLimits>,
        /// The focus hint; empty if there is none any more.
        focus: Option<String>,
        /// Tools that the log did not hold yet.
        new_tools: Vec<Tool>,
        /// The tools in their order, by their numbers among all tools that the log holds, counted from 0.
        tools: Option<Vec<u32>>,
    },
    /// A turn ended: these TTL were counted down, these items were asked about.
    TurnCompleted {
        /// What is left of each.
        counted_down: Vec<(ItemId, Ttl)>,
        /// Items that got their one more turn.
        asked: Vec<ItemId>,
        /// Documents that got their one more turn.
        documents_asked: Vec<ItemId>,
        /// Documents that were asked about before, and came with a new TTL.
        documents_renewed: Vec<ItemId>,
    },
    /// Messages were archived.
    Compacted(Box<Compaction>),
    /// The newest compaction was taken back: what it archived is sent again.
    CompactionUndone {
        /// Its number.
        number: u32,
    },
    /// The conversation was rewound to before this message; the messages from there on are archived.
    Rewound {
        /// The first message that was taken away.
        before: ItemId,
    },
    /// The level of use crossed a boundary, and the application got an event.
    LevelCrossed {
        /// The level from here on.
        level: Level,
    },
}

impl Conversation {
    /// Everything that happened, in order.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.entries_from(0, 0)
    }

    /// Returns a copy as it was when it had `messages` messages, before the next prompt was sent. What
    /// happened later is not in it; nothing of this one changes.
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

    /// Returns an event by its number.
    #[doc(hidden)]
    #[must_use]
    pub fn event(&self, at: usize) -> Option<&Event> {
        self.events.get(at).map(|(_, event)| event)
    }

    /// How many messages and how many events there are.
    #[doc(hidden)]
    #[must_use]
    pub fn lengths(&self) -> (usize, usize) {
        (self.messages.len(), self.events.len())
    }

    /// How many messages and events are among the first so many entries.
    #[doc(hidden)]
    #[must_use]
    pub fn split_at(&self, entries: usize) -> (usize, usize) {
        // The number of an event's entry: events before it, and messages before it.
        let entry_of = |(at, (before, _)): (usize, &(u32, Event))| at + *before as usize;
        let (mut low, mut high) = (0, self.events.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if entry_of((middle, &self.events[middle])) < entries { low = middle + 1 } else { high = middle }
        }
        (entries.saturating_sub(low).min(self.messages.len()), low)
    }

    /// Messages and events in log order, from these indexes on.
    #[doc(hidden)]
    pub fn entries_from(&self, messages: usize, events: usize) -> impl Iterator<Item = Entry<'_>> {
        let mut events = self.events[events..].iter().peekable();
        let mut messages = self.messages[messages..].iter().enumerate();
        std::iter::from_fn(move || {
            let position = self.messages.len() - messages.len();
            if let Some((_, event)) = events.next_if(|(before, _)| *before as usize <= position) {
                return Some(Entry::Event(event));
            }
            messages.next().map(|(_, message)| Entry::Message(message))
        })
    }

    /// Appends an event and takes from it what follows: every change of the conversation beside its messages
    /// goes this way, and so does reading it back.
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
                if self.lifetime(id).is_some_and(|lifetime| lifetime.left == Ttl::NoneRemaining) {
                    self.lifetimes.swap_remove(id);
                }
                if let Some(position) = self.position_of(id) {
                    self.pins.insert(position, *priority);
                    self.reshape_for(position);
                }
            }
            Event::Unpinned(id) if self.has_note(id) => {
                self.notes.remove(id);
                self.ids.release_note(id);
                self.lifetimes.swap_remove(id);
            }
            Event::Unpinned(id) => {
                if let Some(position) = self.position_of(id) {
                    self.pins.remove(&position);
                    self.reshape_for(position);
                }
            }
            Event::TtlSet { id, ttl, asked } => self.set_lifetime(id, *ttl, *asked),
            Event::Sent { usage, .. } => {
                self.billed += usage.unwrap_or_default();
                // How much is repeated is asked of the last prompt only.
                if let Some(Event::Sent { anchor, .. }) = self.sent.last().map(|at| &mut self.events[*at].1) {
                    anchor.prompt = None;
                    anchor.lost = Vec::new();
                }
                self.sent.push(self.events.len());
            }
            Event::SentWith { question, documents, state } => {
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
                self.level = Level::Normal;
                if record.progress {
                    self.failures = 0;
                }
                self.compactions.push(self.events.len());
                self.last_number = self.last_number.max(record.number);
                if let Some(placed) = self.placed(record) {
                    self.archive_index.compact(placed);
                    self.reshape_by_a_compaction();
                }
            }
            Event::CompactionUndone { number } => {
                self.archive_index.undo(*number);
                self.reshape();
            }
            Event::Rewound { before: id } => {
                if let Some(position) = self.position_of(id) {
                    self.archive_index.rewind(position, before);
                    self.reshape();
                }
            }
            Event::LevelCrossed { level } => self.level = *level,
        }
        if matches!(event, Event::Compacted(_) | Event::Rewound { .. } | Event::CompactionUndone { .. }) {
            self.archived_at = Some(self.events.len());
            self.archive_events += 1;
        }
        self.events.push((before, event));
    }

    fn pin_note(&mut self, item: &PinnedItem, before: u32) {
        self.ids.claim(&item.id, Owner::Note, &self.messages);
        match item.ttl {
            Some(left) => self.set_lifetime(&item.id, left, false),
            None => drop(self.lifetimes.swap_remove(&item.id)),
        }
        let message = Message::system(&*item.text);
        self.notes.push(Note { before, item: item.clone(), message });
    }
}
