//! Citations in replies: documents by their labels, and quotes of their texts (rule S16).

mod brackets;
mod native;
mod quotes;

use crate::{
    item::ItemId,
    message::Message,
    plan::{ContextPlan, PlannedItem},
    provider::{header, sent_document::SentFormat, wording},
};
use brackets::Brackets;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Range,
    sync::Arc,
};

/// The documents that a reply can cite, by their labels (rule S16).
///
/// ```
/// # fn main() -> Result<(), context_window::Error> {
/// # #[cfg(feature = "openai")] {
/// use context_window::{
///     Config, ContextWindowManager, Conversation, Message, Model, PlanRequest,
///     analysis::{Citation, CitationVerdict, Citations},
/// };
///
/// let mut config = Config::default();
/// config.rag.labels = true;
/// let manager = ContextWindowManager::configured(Model::named("gpt-4o")?, config)?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let request = PlanRequest::new(&log).with_rag([(0.92, "refunds", "Refunds take 5 days.")]);
/// let plan = manager.build_plan(&request)?;
///
/// let citations: Citations = plan.citations();
/// let found: Vec<Citation> = citations.check("They \"take 5 days\" [1], or three [2].");
/// assert_eq!(found[0].document.as_ref().unwrap(), "refunds");
/// assert_eq!(found[0].verdict, CitationVerdict::Valid);
/// assert_eq!(found[1].verdict, CitationVerdict::Unknown);
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Citations {
    /// The documents of the prompt, each with its text for comparisons.
    sent: BTreeMap<u32, (ItemId, Arc<str>)>,
    /// Documents of earlier prompts that are not in this one.
    earlier: BTreeMap<u32, ItemId>,
    /// The native documents of the prompt in order: the document with its text, or `None` for a block of the
    /// application.
    native: Vec<Option<(ItemId, Arc<str>)>>,
}

/// A citation that the provider writes beside the text of a reply (rule S20).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NativeCitation {
    /// The number of the document among all native documents of the prompt, from 0.
    pub document_index: u64,
    /// The cited document. `None` if the prompt has no document with this number.
    pub document: Option<ItemId>,
    /// The cited text.
    pub cited_text: String,
    /// The result of the check.
    pub verdict: CitationVerdict,
}

/// A label in a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Citation {
    /// The label, as the number in `[1]`.
    pub label: u32,
    /// The place of the label in the reply, with its brackets, in bytes.
    pub range: Range<usize>,
    /// The place of the quote before it, without quotation marks, in bytes. `None` if there is none.
    pub quote: Option<Range<usize>>,
    /// The cited document. `None` if no document has the label.
    pub document: Option<ItemId>,
    /// The result of the check.
    pub verdict: CitationVerdict,
}

/// The result of checking a citation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CitationVerdict {
    /// The document is in the prompt, and contains the quote if there is one. Runs of white space count as
    /// one space, an ellipsis replaces left out text, and the punctuation at the end may differ.
    Valid,
    /// The document is in the prompt, but does not contain the quote.
    Misquoted,
    /// An earlier prompt of the conversation contained the document, this one does not.
    NotSent,
    /// No document of the conversation has this label.
    Unknown,
}

impl CitationVerdict {
    /// Returns the name in JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Misquoted => "misquoted",
            Self::NotSent => "not_sent",
            Self::Unknown => "unknown",
        }
    }
}

impl Citations {
    /// Returns the labels of the prompt with the ids of their documents, in ascending order.
    pub fn labels(&self) -> impl Iterator<Item = (u32, &ItemId)> {
        self.sent.iter().map(|(label, (id, _))| (*label, id))
    }

    /// Returns the id of the document with a label, also of an earlier prompt. Returns `None` if no document
    /// has it.
    #[must_use]
    pub fn document(&self, label: u32) -> Option<&ItemId> {
        self.sent.get(&label).map(|(id, _)| id).or_else(|| self.earlier.get(&label))
    }

    /// Checks the citations in a reply, in their order. Labels in code, and in a quote from a document, are
    /// none.
    #[must_use]
    pub fn check(&self, reply: &str) -> Vec<Citation> {
        let all = brackets::find(reply);
        let confirmed = self.confirmed_quotes(reply, &all);
        let mut found = Vec::new();
        for one in all {
            let before = confirmed.range(..(one.range.start, usize::MAX)).next_back();
            if before.is_some_and(|(_, end)| one.range.end <= *end) {
                continue;
            }
            let is_said =
                one.quote.as_ref().is_none_or(|quote| confirmed.contains(&(quote.start, quote.end)));
            found.extend(one.labels.iter().map(|label| Citation {
                label: *label,
                range: one.range.clone(),
                quote: one.quote.clone(),
                document: self.document(*label).cloned(),
                verdict: match (self.sent.get(label), self.earlier.get(label)) {
                    (Some(_), _) if is_said => CitationVerdict::Valid,
                    (Some(_), _) => CitationVerdict::Misquoted,
                    (None, Some(_)) => CitationVerdict::NotSent,
                    (None, None) => CitationVerdict::Unknown,
                },
            }));
        }
        found
    }

    /// Returns the native documents of the prompt in the order of the provider's `document_index`: the id of
    /// each, or `None` for a block of the application. Returns nothing without `rag.format = "native"`.
    pub fn native_documents(&self) -> impl Iterator<Item = Option<&ItemId>> {
        self.native.iter().map(|document| document.as_ref().map(|(id, _)| id))
    }

    /// Checks the citations that the provider wrote beside the text of a reply, in their order. Those of
    /// blocks of the application are left out.
    #[must_use]
    pub fn check_native(&self, reply: &Message) -> Vec<NativeCitation> {
        native::find(reply)
            .into_iter()
            .filter_map(|(document_index, cited_text)| {
                let at = usize::try_from(document_index).unwrap_or(usize::MAX);
                let (document, verdict) = match self.native.get(at) {
                    Some(None) => return None,
                    None => (None, CitationVerdict::Unknown),
                    Some(Some((id, text))) if quotes::contains(text, &cited_text) => {
                        (Some(id.clone()), CitationVerdict::Valid)
                    }
                    Some(Some((id, _))) => (Some(id.clone()), CitationVerdict::Misquoted),
                };
                Some(NativeCitation { document_index, document, cited_text, verdict })
            })
            .collect()
    }

    /// Returns the quotes that a document with one of the labels after them contains, as bytes of the reply.
    fn confirmed_quotes(&self, reply: &str, all: &[Brackets]) -> BTreeSet<(usize, usize)> {
        // A quote before several labels may be from any of their documents.
        let mut labels: BTreeMap<(usize, usize), BTreeSet<u32>> = BTreeMap::new();
        for one in all {
            if let Some(quote) = &one.quote {
                labels.entry((quote.start, quote.end)).or_default().extend(&one.labels);
            }
        }
        labels.retain(|(start, end), labels| {
            let texts = labels.iter().filter_map(|label| Some(&self.sent.get(label)?.1));
            let mut texts: Vec<&Arc<str>> = texts.collect();
            texts.dedup_by(|a, b| Arc::ptr_eq(a, b));
            texts.into_iter().any(|text| quotes::contains(text, &reply[*start..*end]))
        });
        labels.into_keys().collect()
    }
}

impl ContextPlan {
    /// Returns the documents that a reply can cite, with `rag.labels` (rule S16).
    #[must_use]
    pub fn citations(&self) -> Citations {
        let mut citations = Citations::default();
        // Two documents may be equal blocks, so those of one text are taken in the order of the prompt.
        let mut blocks: BTreeMap<String, VecDeque<(ItemId, Arc<str>)>> = BTreeMap::new();
        let rows: Vec<&PlannedItem> = self.included.iter().filter(|row| row.kind.is_document()).collect();
        let mut rest = rows.as_slice();
        while let Some(first) = rest.first() {
            let labels = header::labels_in(first.body.text());
            let ends = |row: &&PlannedItem| wording::closes_document(row.body.text());
            // Chunks that are one text have one line before it, with a label for each.
            let length = rest.iter().position(ends).map_or(rest.len(), |last| last + 1);
            let (group, others) = rest.split_at(length);
            rest = others;
            let sent: String = group.iter().map(|row| row.body.text()).collect();
            let text: Arc<str> = quotes::comparable(&wording::text_of_document(&sent)).into();
            if first.format() != SentFormat::Text {
                let id = self.carryover.renamed.get(&first.id).unwrap_or(&first.id).clone();
                let pieces: Vec<&str> = group.iter().map(|row| row.body.text()).collect();
                let block = first.format().written(&pieces).concat();
                blocks.entry(block).or_default().push_back((id, Arc::clone(&text)));
            }
            for (row, label) in group.iter().zip(labels) {
                let id = self.carryover.renamed.get(&row.id).unwrap_or(&row.id).clone();
                citations.sent.entry(label).or_insert((id, Arc::clone(&text)));
            }
        }
        // The provider counts all native documents of the prompt, those of the application too.
        let parts = self.messages().iter().flat_map(Message::parts);
        let documents = parts.filter_map(native::document_json);
        citations.native = documents.map(|json| blocks.get_mut(json)?.pop_front()).collect();
        let earlier = self.carryover.labels.documents();
        let earlier = earlier.filter(|(label, _)| !citations.sent.contains_key(label));
        citations.earlier = earlier.map(|(label, id)| (label, id.clone())).collect();
        citations
    }
}
