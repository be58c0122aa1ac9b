//! The index over the messages of one conversation.
//!
//! - Input: a conversation, and later the same one with more messages.
//! - Output: postings by word, and the passages that they name.
//! - Rules: messages are indexed in their order, so an index that was updated at any times equals one that
//!   was built at once. Messages of the application, messages without words, and forgotten ones have no
//!   passage. A rewind and a fresh start end a passage.

use crate::{
    passage::{LONGEST_PIECE, Passage, Piece, pieces},
    postings::Postings,
    record::{Reader, Writer},
    words::each_word,
};
use context_window::{
    Conversation, ItemId, Message, Part, Role, Tool,
    compaction::CompactionKind,
    conversation::{Entry, Event},
};
use foldhash::fast::RandomState;
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::{borrow::Cow, collections::BTreeSet, ops::Range};

/// An index over the messages of one conversation, in memory. It has no texts: those are in the conversation.
///
/// Messages whose texts are not loaded, as after `SessionStore::load_active`, are passed over. Index the
/// whole conversation once, and open the index from its file later. Hits in texts that are not loaded are
/// left out.
///
/// ```
/// use context_window::{Conversation, Message};
/// use context_window_recall::RecallIndex;
///
/// let mut log = Conversation::from([Message::user("My cat is called Fig."), Message::assistant("Noted.")]);
/// let mut index = RecallIndex::new();
/// assert_eq!(index.update(&log), 2);
/// log.push(Message::user("Who sleeps on my sofa?"));
/// assert_eq!(index.update(&log), 1);
/// ```
#[derive(Debug, Clone, Default)]
pub struct RecallIndex {
    /// The words in the order of their first occurrence. Nothing depends on the order of their hashes.
    pub(crate) words: IndexMap<SmolStr, Postings, RandomState>,
    pub(crate) passages: Vec<Passage>,
    /// The number of words of each passage, apart from it because a query reads many of them.
    pub(crate) lengths: Vec<u16>,
    /// The number of words of all passages.
    pub(crate) sum: u64,
    /// The bytes of all indexed texts, each with a line break.
    bytes: u64,
    /// The number of messages that were read.
    messages: u32,
    /// The number of events that were read.
    events: usize,
    /// The last message with a checksum: its position and checksum. It shows if a conversation is the same.
    last: Option<(u32, u64)>,
    /// The messages that rewinds removed.
    removed: Vec<Range<u32>>,
    /// The fresh starts that were not undone: the number of each as a compaction, and the messages before it.
    fresh_starts: Vec<(u32, u32)>,
    /// True if a rewind or a fresh start followed the last passage.
    is_closed: bool,
    pub(crate) forgotten: BTreeSet<ItemId>,
    /// What was indexed since the last save, if it is to be saved.
    pub(crate) writer: Option<Writer>,
}

impl PartialEq for RecallIndex {
    /// Compares the content. Writers differ by the time of the last save.
    fn eq(&self, other: &Self) -> bool {
        self.words.iter().eq(other.words.iter())
            && self.passages == other.passages
            && (&self.lengths, self.sum, self.bytes) == (&other.lengths, other.sum, other.bytes)
            && (self.messages, self.events, self.last) == (other.messages, other.events, other.last)
            && (&self.removed, &self.fresh_starts) == (&other.removed, &other.fresh_starts)
            && self.is_closed == other.is_closed
            && self.forgotten == other.forgotten
    }
}

impl Eq for RecallIndex {}

impl RecallIndex {
    /// Creates an empty index.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Indexes the messages that the conversation got since the last update, and returns their number. If it
    /// is another conversation, or lost messages, indexes it from its beginning.
    pub fn update(&mut self, log: &Conversation) -> usize {
        if !self.is_of(log) {
            // A conversation only grows, so one that differs is another one.
            self.clear();
        }
        let before = self.messages;
        for entry in log.entries_from(self.messages as usize, self.events) {
            match entry {
                Entry::Message(message) => self.push(log, message),
                Entry::Event(event) => self.read_event(log, event),
            }
        }
        (self.messages - before) as usize
    }

    /// Removes messages by their ids, and returns the number of those that were indexed. They are not indexed
    /// again. No word remains that only they had.
    ///
    /// The index is built again from the conversation, because it does not know which message of a passage a
    /// word is from. Remove them from the conversation as well, and from the places that you store it.
    pub fn forget(&mut self, log: &Conversation, ids: impl IntoIterator<Item = ItemId>) -> usize {
        self.update(log);
        let mut count = 0;
        for id in ids {
            let position = log.position_of_message(id.as_str());
            if self.forgotten.insert(id) {
                count +=
                    usize::from(position.is_some_and(|at| {
                        indexed_text(&log.messages()[at]).is_some() && !is_read_back(log, at)
                    }));
            }
        }
        // From the beginning, so that postings, numbers of words and sums have no trace of them.
        self.clear();
        self.update(log);
        count
    }

    /// Returns the number of messages that were read.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.messages as usize
    }

    /// Returns the approximate size of the index in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let words = self.words.iter().map(|(word, postings)| {
            let heap = if word.is_heap_allocated() { word.len() + 16 } else { 0 };
            heap + postings.size()
        });
        let entry = size_of::<SmolStr>() + 2 * size_of::<u64>();
        words.sum::<usize>()
            + self.words.capacity() * entry
            + self.passages.capacity() * size_of::<Passage>()
            + self.lengths.capacity() * size_of::<u16>()
    }

    /// Forgets everything but the forgotten ids.
    pub(crate) fn clear(&mut self) {
        let (forgotten, writer) = (std::mem::take(&mut self.forgotten), self.writer.take());
        *self = Self { forgotten, writer: writer.map(|_| Writer::new()), ..Self::default() };
    }

    /// Checks if a conversation begins with the messages that were read.
    pub(crate) fn is_of(&self, log: &Conversation) -> bool {
        let (messages, events) = log.lengths();
        let is_same = |(at, sum): (u32, u64)| {
            log.messages()
                .get(at as usize)
                .is_some_and(|message| checksum(message).is_none_or(|own| own == sum))
        };
        self.messages as usize <= messages && self.events <= events && self.last.is_none_or(is_same)
    }

    /// Returns the messages that rewinds removed.
    pub(crate) fn removed(&self) -> &[Range<u32>] {
        &self.removed
    }

    /// Returns the messages before the newest fresh start. The user does not want to go on with them.
    pub(crate) fn before_fresh_start(&self) -> Option<Range<u32>> {
        self.fresh_starts.last().map(|(_, messages)| 0..*messages)
    }

    /// Checks if a message has no passage because it was forgotten.
    pub(crate) fn is_forgotten(&self, log: &Conversation, position: usize) -> bool {
        !self.forgotten.is_empty() && self.forgotten.contains(&log.message_id(position as u32))
    }

    /// Returns the text by which a message is found. Returns `None` if it is forgotten, has no words, is an
    /// instruction of the application or a result of the tool `recall`, or if its texts are not loaded.
    pub(crate) fn text_of<'l>(&self, log: &'l Conversation, position: usize) -> Option<Cow<'l, str>> {
        // The conversation may still have the text of a forgotten message.
        let is_out = self.is_forgotten(log, position) || is_read_back(log, position);
        indexed_text(&log.messages()[position]).filter(|_| !is_out)
    }

    /// Returns the passages with a message or a part of it.
    pub(crate) fn passages_of(&self, message: u32) -> Range<usize> {
        let first = self.passages.partition_point(|passage| passage.end.message < message);
        first..self.passages.partition_point(|passage| passage.start.message <= message).max(first)
    }

    fn read_event(&mut self, log: &Conversation, event: &Event) {
        self.events += 1;
        match event {
            Event::Rewound { before } => {
                let Some(position) = log.position_of_message(before.as_str()) else { return };
                let start = position as u32;
                // A file is read before the events, when all of its messages are known already.
                if start < self.messages {
                    self.removed.push(start..self.messages);
                }
                // A rewind undoes the compactions after the message that it goes back to (rule C1).
                self.fresh_starts.retain(|(_, messages)| *messages <= start);
            }
            Event::Compacted(record) if record.kind == CompactionKind::Fresh => {
                self.fresh_starts.push((record.number, self.messages));
            }
            Event::CompactionUndone { number } => {
                self.fresh_starts.retain(|(undone, _)| undone != number);
                return;
            }
            _ => return,
        }
        self.is_closed = !self.passages.is_empty();
    }

    /// Indexes the next message.
    fn push(&mut self, log: &Conversation, message: &Message) {
        let is_forgotten = self.is_forgotten(log, self.messages as usize);
        let sum = if is_forgotten { None } else { checksum(message) };
        if let Some(writer) = &mut self.writer {
            writer.message(sum, self.is_closed);
        }
        let text = self.text_of(log, self.messages as usize);
        let mut pieces = Vec::new();
        if let Some(text) = text {
            pieces = self.pieces(&text);
        }
        if let Some(writer) = &mut self.writer {
            writer.pieces(&pieces, &self.words);
        }
        self.add(sum, &pieces);
    }

    /// Splits the text of the next message into pieces, each with its words and their numbers.
    fn pieces(&mut self, text: &str) -> Vec<(u32, Vec<(u32, u32)>)> {
        let (mut numbers, mut ends) = (Vec::new(), Vec::new());
        let words = &mut self.words;
        each_word(text, |word, end| {
            let number = match words.get_index_of(word) {
                Some(number) => number,
                None => words.insert_full(word.into(), Postings::empty()).0,
            };
            numbers.push(number as u32);
            ends.push(end as u32);
        });
        let mut first = 0;
        let pieces = pieces(text, &ends).into_iter().map(|end| {
            let after = ends.partition_point(|word| *word <= end);
            let words = &mut numbers[first..after];
            first = after;
            // Numbers in order have small differences in the file.
            words.sort_unstable();
            let counted = words.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect();
            (end, counted)
        });
        pieces.collect()
    }

    /// Adds the pieces of the next message: the end of each in bytes, and its words with their counts.
    fn add(&mut self, sum: Option<u64>, pieces: &[(u32, Vec<(u32, u32)>)]) {
        let message = self.messages;
        let mut start = 0;
        for (end, words) in pieces {
            let count = words.iter().map(|(_, count)| *count).sum::<u32>();
            let piece = Piece { message, start, end: *end, words: count };
            match (self.passages.last_mut(), self.lengths.last_mut()) {
                (Some(last), Some(length))
                    if !self.is_closed && Passage::has_room(u32::from(*length), count) =>
                {
                    last.extend(piece);
                    *length += count as u16;
                }
                _ => {
                    self.passages.push(Passage::new(piece, self.bytes));
                    self.lengths.push(count as u16);
                }
            }
            self.is_closed = false;
            self.sum += u64::from(count);
            self.bytes += u64::from(end - start);
            start = *end;
            let passage = self.passages.len() as u32 - 1;
            for (word, count) in words {
                self.words[*word as usize].add(passage, *count);
            }
        }
        // The line break after a message is between the spans of its last piece and the next message's first.
        self.bytes += u64::from(!pieces.is_empty());
        self.last = sum.map(|sum| (message, sum)).or(self.last);
        self.messages += 1;
    }

    /// Reads the messages of a frame of a file.
    ///
    /// # Errors
    ///
    /// Returns the reason if a message is invalid or is not that of the conversation. The index then has a
    /// part of it, and has to be cleared.
    pub(crate) fn read(&mut self, bytes: &[u8], log: &Conversation) -> Result<(), ReadFault> {
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let Some(message) = log.messages().get(self.messages as usize) else {
                return Err(ReadFault::OtherConversation);
            };
            let (sum, is_closed) = reader.message().ok_or(ReadFault::Damaged)?;
            if let (Some(sum), Some(own)) = (sum, checksum(message))
                && sum != own
            {
                return Err(ReadFault::OtherConversation);
            }
            let pieces = reader.pieces(&mut self.words).ok_or(ReadFault::Damaged)?;
            let is_valid = |(_, words): &(u32, Vec<(u32, u32)>)| {
                let count = words.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
                (1..=u64::from(LONGEST_PIECE)).contains(&count)
            };
            if !pieces.iter().all(is_valid) {
                return Err(ReadFault::Damaged);
            }
            self.is_closed = is_closed && !self.passages.is_empty();
            self.add(sum, &pieces);
        }
        Ok(())
    }

    /// Reads the events before the next message, after messages were read from a file.
    pub(crate) fn read_events(&mut self, log: &Conversation) {
        let messages = self.messages;
        (self.messages, self.events, self.is_closed) = (0, 0, false);
        let last = self.passages.last().map(|passage| passage.end.message);
        for entry in log.entries() {
            match entry {
                Entry::Message(_) if self.messages == messages => break,
                Entry::Message(_) => {
                    self.messages += 1;
                    // A passage goes on after messages that have none.
                    self.is_closed &= last.is_none_or(|last| self.messages > last + 1);
                }
                Entry::Event(event) => self.read_event(log, event),
            }
        }
    }
}

/// A reason not to use the content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadFault {
    Damaged,
    OtherConversation,
}

/// Checks if a message is a result of the tool `recall`. Its text is that of earlier messages.
fn is_read_back(log: &Conversation, position: usize) -> bool {
    // A result follows its call closely. The limit keeps the effort small for results without calls.
    const MOST: usize = 100;
    let Some(id) = log.messages()[position].answers() else { return false };
    let mut calls = log.messages()[..position].iter().rev().take(MOST).flat_map(Message::tool_calls);
    calls.find(|call| call.id == id).is_some_and(|call| call.name == Tool::RECALL)
}

/// Returns the text of a message. Returns `None` if it has no words, is an instruction of the application, or
/// its texts are not loaded.
fn indexed_text(message: &Message) -> Option<Cow<'_, str>> {
    if message.role().instructs() || !message.is_loaded() {
        return None;
    }
    let text = plain_text(message);
    // Places in a text have 32 bits.
    (text.len() < u32::MAX as usize && has_words(&text)).then_some(text)
}

/// Returns the text and the text parts of a message.
pub(crate) fn plain_text(message: &Message) -> Cow<'_, str> {
    let mut texts = texts(message);
    let Some(first) = texts.next() else { return "".into() };
    texts.fold(first.into(), |all, text| (all + "\n") + text)
}

fn texts(message: &Message) -> impl Iterator<Item = &str> {
    let parts = message.parts().iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Image { .. } | Part::Opaque { .. } => None,
    });
    [message.text()].into_iter().chain(parts).filter(|text| !text.is_empty())
}

fn has_words(text: &str) -> bool {
    let mut found = false;
    // Most texts have a word in their beginning.
    for part in [&text[..text.floor_char_boundary(100)], text] {
        each_word(part, |_, _| found = true);
        if found {
            break;
        }
    }
    found
}

/// Returns a checksum of the content of a message, or `None` if its texts are not loaded.
fn checksum(message: &Message) -> Option<u64> {
    if !message.is_loaded() {
        return None;
    }
    let mut hash = blake3::Hasher::new();
    hash.update(&[match message.role() {
        Role::User => 1,
        Role::Assistant => 2,
        Role::Tool => 3,
        _ => 0,
    }]);
    for text in [message.name().unwrap_or_default()].into_iter().chain(texts(message)) {
        hash.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    let hash = hash.finalize();
    let (first, _) = hash.as_bytes().split_first_chunk().unwrap_or((&[0; 8], &[]));
    Some(u64::from_le_bytes(*first))
}
