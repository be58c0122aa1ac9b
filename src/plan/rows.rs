//! The rows of a plan: included and excluded items, each with its reason and its tokens.

use super::reason::{ExcludedReason, IncludedReason};
use crate::{
    item::{ItemId, ItemKind, Priority, Section, Source, Ttl},
    message::{Message, Role},
    provider::sent_document::{BlockLayout, SentFormat},
    rag::ListRank,
    tokens::TokenCount,
};
use std::sync::Arc;

/// One included item of the prompt.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PlannedItem {
    /// The id of the item.
    pub id: ItemId,
    /// Its kind.
    pub kind: ItemKind,
    /// Its source.
    pub source: Source,
    /// The section that pays for it.
    pub section: Section,
    /// The role in which it is sent; `None` for a document, which is part of the block of documents.
    pub role: Option<Role>,
    /// Its priority among pins.
    pub priority: Priority,
    /// Its TTL, if one is set.
    pub ttl: Option<Ttl>,
    /// The reason why it is included.
    pub reason: IncludedReason,
    /// The token count of the item.
    pub token_estimate: TokenCount,
    /// The facts that only a document of this request has. Most rows have none, so they stay small.
    pub(crate) document: Option<Box<DocumentFacts>>,
    #[doc(hidden)]
    pub body: Message,
}

/// The facts of a document of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DocumentFacts {
    pub(crate) origin: Option<Arc<str>>,
    /// The ranks in the lists of the request, if there are several.
    pub(crate) ranks: Box<[ListRank]>,
    /// The document before, whose text this one continues.
    pub(crate) continues: Option<ItemId>,
    /// The first and the last of the messages that the text quotes.
    pub(crate) messages: Option<[ItemId; 2]>,
    /// The label in the line before its text.
    pub(crate) label: Option<u32>,
    /// The form in which it is sent, unless it is sent whole.
    pub(crate) shorter_form: Option<ShorterForm>,
    /// The block in which it is sent. `None` for a plain one.
    pub(crate) block: Option<Arc<BlockLayout>>,
}

/// A form of a document that is not the whole text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ShorterForm {
    pub(crate) name: Arc<str>,
    /// The reason why the next fuller form is not sent.
    pub(crate) fuller: ExcludedReason,
}

impl PlannedItem {
    /// Returns the ranks of a document in the lists of the request. Returns nothing if there is one list.
    #[must_use]
    pub fn ranks(&self) -> &[ListRank] {
        self.document.as_ref().map_or(&[], |document| &document.ranks)
    }

    /// Returns the id of the chunk before, if this document continues its text (rule S14). Its tokens are
    /// then those of the text that it adds. Returns `None` for all other rows.
    #[must_use]
    pub fn continues(&self) -> Option<&ItemId> {
        self.document.as_ref()?.continues.as_ref()
    }

    /// Returns the first and the last of the messages that a recalled text quotes (rule S15). Returns `None`
    /// for all other rows.
    #[must_use]
    pub fn quoted_messages(&self) -> Option<[&ItemId; 2]> {
        let [first, last] = self.document.as_ref()?.messages.as_ref()?;
        Some([first, last])
    }

    /// Returns the label with which a reply cites this document (rule S16). Returns `None` if the documents
    /// of this prompt have no labels, and for retained documents and all other rows:
    /// [`ContextPlan::citations`](crate::ContextPlan::citations) has the labels of all.
    #[must_use]
    pub fn label(&self) -> Option<u32> {
        self.document.as_ref()?.label
    }

    /// Returns the name of the form in which a document of this request is sent (rule S17). Returns `None`
    /// if it is sent whole, and for all other rows.
    #[must_use]
    pub fn form(&self) -> Option<&str> {
        self.shorter_form().map(|form| &*form.name)
    }

    /// Returns the reason why the next fuller form of a document is not sent (rule S17). Returns `None` if
    /// the document is sent whole, and for all other rows.
    #[must_use]
    pub fn form_reason(&self) -> Option<&ExcludedReason> {
        self.shorter_form().map(|form| &form.fuller)
    }

    pub(crate) fn shorter_form(&self) -> Option<&ShorterForm> {
        self.document.as_ref()?.shorter_form.as_ref()
    }

    /// Returns the format in which a document is sent.
    pub(crate) fn format(&self) -> SentFormat {
        self.block().format
    }

    /// Returns the block in which a document is sent.
    pub(crate) fn block(&self) -> &BlockLayout {
        self.document.as_ref().and_then(|document| document.block.as_deref()).unwrap_or(&BlockLayout::PLAIN)
    }

    /// Returns the origin of a document. Returns `None` for all other rows.
    pub(crate) fn origin(&self) -> Option<&str> {
        self.document.as_ref()?.origin.as_deref()
    }

    /// Returns a hash of the message that is sent for this item (blake3, 32 hexadecimal digits). Each call
    /// computes it.
    #[must_use]
    pub fn hash(&self) -> String {
        // The same text in another format, or after another introduction, is another prompt.
        let block = self.block();
        if *block == BlockLayout::PLAIN {
            return hash_message(&self.body);
        }
        hash_message(&block.message(&[self.body.text()]))
    }
}

/// Returns a hash of a message as it is sent (blake3, 32 hexadecimal digits).
pub(super) fn hash_message(message: &Message) -> String {
    let hash = blake3::hash(&message.canonical()).to_hex();
    hash[..32].into()
}

/// One excluded item, or a run of neighbouring messages that are excluded for the same reason.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ExcludedItem {
    /// The id of the item, or of the first message of the run.
    pub id: ItemId,
    /// The id of the last message of the run; `None` for a single item.
    pub last_id: Option<ItemId>,
    /// Number of messages in the run; 1 for a single item.
    pub count: u64,
    /// Its kind.
    pub kind: ItemKind,
    /// Its source; `None` if sources in the run differ, or if none was examined.
    pub source: Option<Source>,
    /// The section that would have paid for it.
    pub section: Section,
    /// Its priority among pins; `None` if priorities in the run differ, or if none was examined.
    pub priority: Option<Priority>,
    /// Its TTL; `None` if none is set, if TTLs in the run differ, or if none was examined.
    pub ttl: Option<Ttl>,
    /// The reason why it is excluded.
    pub reason: ExcludedReason,
    /// Its token count, as far as its tokens were counted.
    pub token_estimate: TokenCount,
    pub(crate) ranks: Box<[ListRank]>,
}

impl ExcludedItem {
    /// Returns the ranks of a document in the lists of the request. Returns nothing if there is one list.
    #[must_use]
    pub fn ranks(&self) -> &[ListRank] {
        &self.ranks
    }
}

/// The decision on one candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision<'a> {
    /// An included item.
    Included(&'a PlannedItem),
    /// An excluded item, or a run of excluded messages.
    Excluded(&'a ExcludedItem),
}

impl<'a> Decision<'a> {
    /// Returns the id of the item. For a run of messages it is the id of the last one, which explanations use
    /// for the run.
    #[must_use]
    pub fn id(self) -> &'a ItemId {
        match self {
            Self::Included(item) => &item.id,
            Self::Excluded(item) => item.last_id.as_ref().unwrap_or(&item.id),
        }
    }

    /// Returns the kind of the item.
    #[must_use]
    pub fn kind(self) -> &'a ItemKind {
        match self {
            Self::Included(item) => &item.kind,
            Self::Excluded(item) => &item.kind,
        }
    }

    /// Returns the section that pays for the item, or would have paid.
    #[must_use]
    pub fn section(self) -> Section {
        match self {
            Self::Included(item) => item.section,
            Self::Excluded(item) => item.section,
        }
    }

    /// Returns the token count of the item, as far as its tokens were counted.
    #[must_use]
    pub fn token_estimate(self) -> TokenCount {
        match self {
            Self::Included(item) => item.token_estimate,
            Self::Excluded(item) => item.token_estimate,
        }
    }

    /// Returns true for a document. Document ids are a separate namespace (rule O5).
    #[must_use]
    pub fn is_document(self) -> bool {
        self.kind().is_document()
    }

    /// Returns the id with its namespace, `rag:ID` or `item:ID`, as
    /// [`ContextPlan::find`](crate::ContextPlan::find) and explanations
    /// accept it.
    #[must_use]
    pub fn qualified_id(self) -> String {
        format!("{}:{}", if self.is_document() { "rag" } else { "item" }, self.id())
    }
}
