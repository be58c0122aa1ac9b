//! Retrieved documents of one request, in one list or in several ranked lists.

use crate::item::{ItemId, Ttl};
use std::{ops::Range, sync::Arc};

mod labelled;
mod retrieved;

pub(crate) use labelled::LabelledItem;
pub(crate) use retrieved::RankedList;
pub use retrieved::{ListRank, RetrievedItems};

/// The value of rank 0 in a list of weight 1. Large enough that neighbouring ranks differ up to the largest
/// number of documents.
const FUSED_UNIT: u64 = 1 << 40;

/// The constant of reciprocal rank fusion: the influence of the first ranks falls as it grows (Cormack,
/// Clarke and Buettcher 2009).
const FUSION_K: u64 = 60;

/// Returns the value of a rank in a list of this weight, from which fused ranks are summed (rule S8).
#[doc(hidden)]
#[must_use]
pub fn fused_value(weight: u64, rank: u64) -> u64 {
    weight.saturating_mul(FUSED_UNIT) / FUSION_K.saturating_add(rank)
}

/// A retrieved document. It is included as a whole or not at all (rule S8).
///
/// ```
/// use context_window::{Conversation, Message, PlanRequest, RagItem};
///
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let refunds = RagItem::new("refunds", 0.92, "Refunds take 5 days.").with_origin("faq.md");
/// let request = PlanRequest::new(&log).with_rag([refunds]);
/// // Tuples of score, id and text are documents too.
/// let request = request.with_rag([(0.4, "hours", "Open from 9 to 18.")]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RagItem {
    #[doc(hidden)]
    pub id: ItemId,
    #[doc(hidden)]
    pub text: Arc<str>,
    #[doc(hidden)]
    pub score: f64,
    #[doc(hidden)]
    pub origin: Option<Arc<str>>,
    #[doc(hidden)]
    pub ttl: Option<Ttl>,
    #[doc(hidden)]
    pub span: Option<Range<u64>>,
    #[doc(hidden)]
    pub position: Option<u64>,
    #[doc(hidden)]
    pub date: Option<i64>,
    #[doc(hidden)]
    pub messages: Option<Range<u32>>,
}

impl RagItem {
    /// Creates a document with its score. Larger scores are better. `build_plan` rejects NaN and infinite
    /// scores.
    #[must_use]
    pub fn new(id: impl Into<ItemId>, score: f64, text: impl Into<Arc<str>>) -> Self {
        Self {
            id: id.into(),
            text: text.into(),
            score,
            origin: None,
            ttl: None,
            span: None,
            position: None,
            date: None,
            messages: None,
        }
    }

    /// Returns the document's id.
    #[must_use]
    pub fn id(&self) -> &ItemId {
        &self.id
    }

    /// Returns the document's score. Larger is better.
    #[must_use]
    pub fn score(&self) -> f64 {
        self.score
    }

    /// Returns the document's text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Sets the origin of the document, such as a file or a collection. `max_source_tokens` limits the tokens
    /// per origin (rule S9).
    #[must_use]
    pub fn with_origin(mut self, origin: impl Into<Arc<str>>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Sets the place of this text in its origin, as a range of bytes or of characters. Neighbours that
    /// overlap or touch are sent as one text (rule S14).
    #[must_use]
    pub fn with_span(mut self, span: Range<u64>) -> Self {
        self.span = Some(span);
        self
    }

    /// Sets the number of this chunk in its origin. The chunk with the next number follows it (rule S14).
    #[must_use]
    pub fn with_position(mut self, position: u64) -> Self {
        self.position = Some(position);
        self
    }

    /// Sets the date of the document, in seconds since 1970 (UTC). Of equal scores, and of two versions with
    /// one id, the newer one comes first (rules S8, S9).
    #[must_use]
    pub fn with_date(mut self, seconds: i64) -> Self {
        self.date = Some(seconds);
        self
    }

    /// Sets the positions of the messages that this text quotes, counted from the first message of
    /// [`crate::Conversation::messages`]. A document with messages is a recalled one (rule S15): it is left
    /// out while they stand in the window.
    #[must_use]
    pub fn with_messages(mut self, positions: Range<usize>) -> Self {
        let position = |at| u32::try_from(at).unwrap_or(u32::MAX);
        // A range that ends before its start is empty.
        let end = positions.end.max(positions.start);
        self.messages = Some(position(positions.start)..position(end));
        self
    }

    /// Sets the document's TTL. The caller counts it down; the conversation never changes it.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Ttl) -> Self {
        self.ttl = Some(ttl);
        self
    }
}

impl RagItem {
    /// Returns a hash of the text, by which a label knows its document (rule S16; blake3, 16 hexadecimal
    /// digits).
    #[doc(hidden)]
    #[must_use]
    pub fn text_fingerprint(&self) -> String {
        blake3::hash(self.text.as_bytes()).to_hex()[..16].into()
    }

    /// Fills in the attributes that only another copy of this document has.
    fn complete_from(&mut self, other: Self) {
        self.origin = self.origin.take().or(other.origin);
        self.ttl = self.ttl.or(other.ttl);
        self.span = self.span.take().or(other.span);
        self.position = self.position.or(other.position);
        self.date = self.date.or(other.date);
        self.messages = self.messages.take().or(other.messages);
    }
}

impl<I: Into<ItemId>, T: Into<Arc<str>>> From<(f64, I, T)> for RagItem {
    /// Converts (score, id, text), the shape that vector stores of the `rig` family return.
    fn from((score, id, text): (f64, I, T)) -> Self {
        Self::new(id, score, text)
    }
}
