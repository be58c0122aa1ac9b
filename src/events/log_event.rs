//! A conversation as data: its messages and events, one entry at a time, for an application's own store.

use super::record::StoredEvent;
use crate::plan::SentItems;
use crate::{
    conversation::{Compaction, Conversation, Entry, Event},
    error::{Error, Repr},
    item::ItemId,
    message::Message,
};
use serde::{Deserialize, Serialize};

/// The version of the entry format.
const VERSION: u32 = 1;

/// One entry of a conversation's log as data: a message, or an event between messages. Events are pins, TTLs,
/// compactions, rewinds, sent prompts with their usage reports, and others.
///
/// The JSON is `{"version":1,"entry":{"message":{...}}}` or `{"version":1,"entry":{"event":{...}}}`.
/// `docs/reference/events.md` lists all entries. Later versions of this crate read entries of the same format
/// version.
///
/// ```
/// use context_window::{Conversation, Message, PinnedItem, events::LogEvent};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut log = Conversation::from([Message::user("How long do refunds take?")]);
/// let json = log.events().map(|event| serde_json::to_string(&event));
/// let stored: Vec<String> = json.collect::<Result<_, _>>()?;
/// // Later: only the new entries.
/// log.pin(PinnedItem::new("tone", "The customer likes short answers."));
/// let new: Vec<LogEvent> = log.events_from(stored.len()).collect();
///
/// let events = stored.iter().map(|json| serde_json::from_str(json)).collect::<Result<Vec<LogEvent>, _>>()?;
/// let mut again = Conversation::from_events(events)?;
/// for event in new {
///     again.apply_event(event)?;
/// }
/// assert_eq!(again, log);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogEvent {
    version: u32,
    entry: StoredEntry,
}

/// The content of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredEntry {
    Message(Message),
    Event(Box<StoredEvent>),
}

impl LogEvent {
    /// Returns the kind of entry as in its JSON: `message`, `pinned`, `compacted`, ...
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match &self.entry {
            StoredEntry::Message(_) => "message",
            StoredEntry::Event(event) => event.kind(),
        }
    }

    pub(crate) fn from_entry(entry: Entry<'_>) -> Self {
        let entry = match entry {
            Entry::Message(message) => StoredEntry::Message(message.clone()),
            Entry::Event(event) => StoredEntry::Event(Box::new(event.clone().into())),
        };
        Self { version: VERSION, entry }
    }
}

/// Methods for stores.
impl LogEvent {
    #[doc(hidden)]
    #[must_use]
    pub fn message(&self) -> Option<&Message> {
        match &self.entry {
            StoredEntry::Message(message) => Some(message),
            StoredEntry::Event(_) => None,
        }
    }

    /// Returns the event, or `None` for a message.
    #[doc(hidden)]
    #[must_use]
    pub fn event(&self) -> Option<Event> {
        match &self.entry {
            StoredEntry::Message(_) => None,
            StoredEntry::Event(event) => Some((**event).clone().into()),
        }
    }

    /// Removes the items of a sent prompt from an entry. Returns the remaining entry, and the items if there
    /// were any. A store keeps the items separately, because consecutive prompts share most of them.
    #[doc(hidden)]
    #[must_use]
    pub fn without_prompt(mut self) -> (Self, Option<SentItems>) {
        let mut prompt = None;
        if let StoredEntry::Event(event) = &mut self.entry
            && let StoredEvent::Sent { .. } = &**event
        {
            // Converted and back, because only the in-memory anchor gives access to its items.
            let mut sent = Event::from((**event).clone());
            if let Event::Sent { anchor, .. } = &mut sent {
                prompt = anchor.sent_items();
                anchor.set_sent_items(None);
            }
            **event = sent.into();
        }
        (self, prompt)
    }

    /// Adds the items of a sent prompt back to its entry. Any other entry is returned unchanged.
    #[doc(hidden)]
    #[must_use]
    pub fn with_prompt(mut self, items: SentItems) -> Self {
        if let Some(mut event @ Event::Sent { .. }) = self.event() {
            if let Event::Sent { anchor, .. } = &mut event {
                anchor.set_sent_items(Some(items));
            }
            self.entry = StoredEntry::Event(Box::new(event.into()));
        }
        self
    }
}

/// A compaction that was made elsewhere, for example by a server for its client. Pass it to
/// [`Conversation::apply_event`].
impl From<Compaction> for LogEvent {
    fn from(record: Compaction) -> Self {
        Self::from_entry(Entry::Event(&Event::Compacted(Box::new(record))))
    }
}

impl Conversation {
    /// Returns all messages and events in order, as data. [`Conversation::from_events`] builds the same
    /// conversation from them.
    pub fn events(&self) -> impl Iterator<Item = LogEvent> + '_ {
        self.events_from(0)
    }

    /// Returns the entries from index `first` on. For a store that holds `first` entries, these are the new
    /// ones.
    pub fn events_from(&self, first: usize) -> impl Iterator<Item = LogEvent> + '_ {
        let (messages, events) = self.split_at(first);
        self.entries_from(messages, events).map(LogEvent::from_entry)
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn event_count(&self) -> usize {
        let (messages, events) = self.lengths();
        messages + events
    }

    /// Builds a conversation from its entries in order.
    ///
    /// # Errors
    ///
    /// The errors of [`Conversation::apply_event`], with the index of the entry.
    pub fn from_events(events: impl IntoIterator<Item = LogEvent>) -> Result<Self, Error> {
        let mut log = Self::new();
        for (at, event) in events.into_iter().enumerate() {
            let at_entry = |error: Error| Error::input(format!("entry {at}"), error.to_string());
            log.apply_event(event).map_err(at_entry)?;
        }
        Ok(log)
    }

    /// Appends an entry that was recorded elsewhere: by this conversation in a store, or by a server that
    /// holds the same messages.
    ///
    /// # Errors
    ///
    /// - `ErrorKind::Input` for another format version, and for a compaction that archives nothing here or
    ///   separates a call from its result.
    /// - `ErrorKind::NotFound` if the entry names an unknown message.
    /// - `ErrorKind::Stale` for a compaction whose number is taken.
    ///
    /// Nothing is appended after an error.
    pub fn apply_event(&mut self, event: LogEvent) -> Result<(), Error> {
        let LogEvent { version, entry } = event;
        if version != VERSION {
            let detail = format!("has version {version}; expected version {VERSION}");
            return Err(Error::input("entry of a conversation", detail));
        }
        match entry {
            StoredEntry::Message(message) => drop(self.push(message)),
            StoredEntry::Event(event) => self.apply(*event)?,
        }
        Ok(())
    }

    /// Appends an event after checking that it is valid for this conversation.
    #[doc(hidden)]
    pub fn apply(&mut self, event: StoredEvent) -> Result<(), Error> {
        let event = Event::from(event);
        self.check(&event)?;
        self.record(event);
        Ok(())
    }

    /// Checks that an event refers only to known ids, tools and compactions.
    fn check(&self, event: &Event) -> Result<(), Error> {
        let known = |id: &ItemId| self.position(id).map(drop);
        match event {
            Event::MessagePinned { id, .. } | Event::Rewound { before: id } => known(id),
            Event::TtlSet { id, .. } if !self.has_note(id) => known(id),
            Event::RuleKept(rule) => rule.message().map_or(Ok(()), known),
            Event::CompactionUndone { number } => match self.archive_index().newest() {
                // Only the newest compaction can be undone, as in [`Conversation::undo_compaction`].
                Some(newest) if newest.number == *number => Ok(()),
                _ => Err(Error::new(Repr::StaleSummary)),
            },
            Event::PromptSettings { new_tools, tools, .. } => {
                // New tools get the next numbers, so this event may refer to them.
                let tool_count = self.recorded_tools() + new_tools.len();
                match tools.iter().flatten().find(|number| **number as usize >= tool_count) {
                    None => Ok(()),
                    Some(number) => {
                        let detail = format!(
                            "refers to tool {number} of {tool_count}; expected the number of an earlier tool"
                        );
                        Err(Error::input("prompt settings", detail))
                    }
                }
            }
            Event::Compacted(record) => {
                // Checked one by one, for an error that names the id.
                for id in [&record.head, &record.from, &record.first_active].into_iter().flatten() {
                    known(id)?;
                }
                // Numbers only rise, so a number that is not larger belongs to a record made from another
                // state of the log.
                if record.number <= self.last_compaction_number() {
                    return Err(Error::new(Repr::StaleSummary));
                }
                if self.would_archive(record) {
                    return Ok(());
                }
                let detail = "archives no messages of this conversation, or separates a tool call from its result; expected a compaction of this conversation";
                Err(Error::input(format!("compaction #{}", record.number), detail))
            }
            _ => Ok(()),
        }
    }
}
