//! Retrieved documents of one request, in one list or in several ranked lists.

use crate::item::{ItemId, Ttl};
use std::{ops::Range, sync::Arc};

mod form;
mod labelled;
mod retrieved;

pub(crate) use form::Form;
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
    #[doc(hidden)]
    pub variants: Vec<(Arc<str>, Arc<str>)>,
    #[doc(hidden)]
    pub requires: Vec<ItemId>,
    #[doc(hidden)]
    pub group: Option<Arc<str>>,
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
            variants: Vec::new(),
            requires: Vec::new(),
            group: None,
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

    /// Adds a shorter text that may be sent instead of the whole one, with a name such as `summary` or
    /// `title` (rule S17). Add the longest first. Blank ones are never sent. `rag.variants` decides
    /// which documents are shortened. `build_plan` rejects more than 16 variants, and two with one name.
    ///
    /// ```
    /// use context_window::RagItem;
    ///
    /// let page = RagItem::new("refunds", 0.9, "Refunds take 5 days. A clerk checks the invoice first.")
    ///     .with_variant("summary", "Refunds take 5 days.")
    ///     .with_variant("title", "Refunds");
    /// ```
    #[must_use]
    pub fn with_variant(mut self, name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        self.variants.push((name.into(), text.into()));
        self
    }

    /// Names a document that this one is sent beside, such as the chunk that it follows. It is sent only from
    /// tokens that nothing else can use, and only while one of the named documents is in the prompt (rule
    /// S18). Documents that require each other are an error.
    ///
    /// ```
    /// use context_window::RagItem;
    ///
    /// let chunk = RagItem::new("terms#4", 0.9, "Refunds take 5 days.").with_position(4);
    /// let next = RagItem::new("terms#5", 0.0, "On Sundays, 6.").with_position(5).with_required("terms#4");
    /// ```
    #[must_use]
    pub fn with_required(mut self, id: impl Into<ItemId>) -> Self {
        self.requires.push(id.into());
        self
    }

    /// Sets the name of a group. All documents of a group are sent, or none of them (rule S19), such as the
    /// pages of a table. `build_plan` rejects a document that has a group and requires others.
    ///
    /// ```
    /// use context_window::RagItem;
    ///
    /// let pages = [(4, "January: 3"), (5, "February: 4")];
    /// let table = pages.map(|(at, text)| {
    ///     RagItem::new(format!("prices#{at}"), 0.8, text).with_group("prices")
    /// });
    /// ```
    #[must_use]
    pub fn with_group(mut self, name: impl Into<Arc<str>>) -> Self {
        self.group = Some(name.into());
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
    /// Returns a hash of the text and its variants, by which a label knows its document (rule S16; blake3, 16
    /// hexadecimal digits).
    #[doc(hidden)]
    #[must_use]
    pub fn text_fingerprint(&self) -> String {
        let mut hash = blake3::Hasher::new();
        hash.update(self.text.as_bytes());
        for (_, variant) in &self.variants {
            // The length comes first, so that text cannot move from one to the next.
            hash.update(&(variant.len() as u64).to_le_bytes()).update(variant.as_bytes());
        }
        hash.finalize().to_hex()[..16].into()
    }

    /// Returns the text of the variant with a name. Returns the whole text if `name` is `None` or unknown.
    #[doc(hidden)]
    #[must_use]
    pub fn form_text(&self, name: Option<&str>) -> &str {
        self.text_in(self.form_named(name))
    }

    /// Returns the forms that may be sent, the whole text first. Recalled messages have no others.
    pub(crate) fn forms(&self) -> impl Iterator<Item = Form> {
        let variants = if self.messages.is_some() { &[][..] } else { &self.variants };
        let sendable = Form::variants().zip(variants).filter(|(_, (_, text))| !text.trim().is_empty());
        std::iter::once(Form::WHOLE).chain(sendable.map(|(form, _)| form))
    }

    /// Returns the text of a form.
    pub(crate) fn text_in(&self, form: Form) -> &Arc<str> {
        form.variant().and_then(|at| self.variants.get(at)).map_or(&self.text, |(_, text)| text)
    }

    /// Returns the name of a form. Returns `None` for the whole text.
    pub(crate) fn form_name(&self, form: Form) -> Option<&Arc<str>> {
        form.variant().and_then(|at| self.variants.get(at)).map(|(name, _)| name)
    }

    /// Returns the form with a name. Returns the whole text if no form has it.
    pub(crate) fn form_named(&self, name: Option<&str>) -> Form {
        let has_name = |form: &Form| self.form_name(*form).map(|name| &**name) == name;
        self.forms().find(has_name).unwrap_or(Form::WHOLE)
    }

    /// Fills in the attributes that only another copy of this document has.
    fn complete_from(&mut self, other: Self) {
        self.origin = self.origin.take().or(other.origin);
        self.ttl = self.ttl.or(other.ttl);
        self.span = self.span.take().or(other.span);
        self.position = self.position.or(other.position);
        self.date = self.date.or(other.date);
        self.messages = self.messages.take().or(other.messages);
        if self.variants.is_empty() {
            self.variants = other.variants;
        }
        // A document that one list has for itself depends on nothing.
        if other.requires.is_empty() {
            self.requires.clear();
        }
        self.group = self.group.take().or(other.group);
    }
}

impl<I: Into<ItemId>, T: Into<Arc<str>>> From<(f64, I, T)> for RagItem {
    /// Converts (score, id, text), the shape that vector stores of the `rig` family return.
    fn from((score, id, text): (f64, I, T)) -> Self {
        Self::new(id, score, text)
    }
}
