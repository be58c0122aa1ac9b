//! Hits of a search, as texts and as documents.
//!
//! - Input: passages that were found.
//! - Output: their texts, each turn after the name or role of its speaker and its date, and documents.
//! - Rules: each message of a passage is a document, so that the planner can leave out those that stand in
//!   the window. The span of a document is its place in the texts of the conversation, so that neighbours are
//!   joined to one text (rule S14).

use crate::{
    index::RecallIndex,
    options::RecallOptions,
    passage::Passage,
    search::{Found, each_text},
};
use context_window::{Conversation, ItemId, RagItem, text::date::as_day};
use std::ops::Range;

/// A passage of the conversation that a search found: a message, a part of a long one, or several short ones.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hit {
    /// The id of its first document: `recall:` and the id of its first message, with a number for the later
    /// parts of a long message, as in `recall:m4#2`.
    pub id: ItemId,
    /// The positions of its messages, counted from the first message of the conversation.
    pub messages: Range<usize>,
    /// The ids of its messages.
    pub ids: Vec<ItemId>,
    /// Its text, with the speaker of each message.
    pub text: String,
    /// Its score. Larger is better. Scores of different questions cannot be compared.
    pub score: u64,
    /// The date of its first message, in seconds since 1970 (UTC), if you gave it.
    pub date: Option<i64>,
    /// The place of its beginning in its first message, in bytes.
    pub(crate) start: usize,
    /// The texts of its messages.
    parts: Vec<Part>,
}

/// The text of one message in a hit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    position: usize,
    /// Its bytes in the text of the hit.
    text: Range<usize>,
    /// Its place in the texts of the conversation.
    span: Range<u64>,
    date: Option<i64>,
    /// Its score by its own words.
    score: u64,
}

impl Hit {
    /// Creates the hit of a passage. Returns `None` if a text of it is not loaded.
    pub(crate) fn new(
        index: &RecallIndex,
        log: &Conversation,
        options: &RecallOptions,
        found: Found,
        mut score: impl FnMut(&str, &Range<usize>) -> u64,
    ) -> Option<Self> {
        let passage = &index.passages[found.passage];
        let (mut text, mut offset, mut ids, mut parts) =
            (String::new(), passage.offset, Vec::new(), Vec::new());
        let is_loaded = each_text(index, log, passage, found.end, |position, whole, range| {
            let (begins, ends) = (range.start == 0, range.end == whole.len());
            let (score, part) = (score(whole, &range), &whole[range]);
            let message = &log.messages()[position];
            let id = log.message_id(position as u32);
            let date = options.dates.get(&id).copied();
            let (from, start) = (text.len(), offset);
            if begins {
                text.push_str(message.name().unwrap_or(message.role().name()));
                text.extend(date.into_iter().flat_map(|seconds| [", ".to_owned(), as_day(seconds)]));
                text.push_str(": ");
            }
            text.push_str(part);
            // Without a line break, the next part of a long message continues the text.
            if ends {
                text.push('\n');
            }
            offset += part.len() as u64 + u64::from(ends);
            parts.push(Part { position, text: from..text.len(), span: start..offset, date, score });
            ids.push(id);
        });
        if !is_loaded || ids.is_empty() {
            return None;
        }
        Some(Self {
            id: id(index, found.passage, &ids[0]),
            messages: passage.start.message as usize..passage.messages().end.min(found.end as usize),
            ids,
            text,
            score: found.score,
            date: parts.iter().find_map(|part| part.date),
            start: passage.start.byte as usize,
            parts,
        })
    }

    /// Returns the hit as documents for a request, without scores: one for each message. The one with the
    /// best score by its own words comes first, because the talk around it may not fit; the others are in
    /// order.
    pub(crate) fn into_documents(self) -> Vec<RagItem> {
        let Self { id, ids, text, parts, .. } = self;
        let ids = std::iter::once(id).chain(ids[1..].iter().map(|id| format!("recall:{id}").into()));
        let document = |(part, id): (&Part, ItemId)| {
            let item = RagItem::new(id, 0.0, &text[part.text.clone()])
                .with_origin("conversation")
                .with_span(part.span.clone())
                .with_messages(part.position..part.position + 1);
            part.date.map_or(item.clone(), |date| item.with_date(date))
        };
        let mut documents: Vec<RagItem> = parts.iter().zip(ids).map(document).collect();
        let best = parts.iter().map(|part| part.score).max();
        if let Some(at) = parts.iter().position(|part| Some(part.score) == best) {
            documents[..=at].rotate_right(1);
        }
        documents
    }
}

/// Returns the id of a passage's document.
fn id(index: &RecallIndex, passage: usize, first: &ItemId) -> ItemId {
    let start = index.passages[passage].start;
    if start.byte == 0 {
        return format!("recall:{first}").into();
    }
    // The parts of a long message follow each other.
    let before = index.passages[..passage].iter().rev();
    let part = 1 + before.take_while(|before: &&Passage| before.end.message == start.message).count();
    format!("recall:{first}#{part}").into()
}
