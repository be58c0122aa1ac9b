//! The labels of documents, with which replies cite them (rule S16).

use crate::{item::ItemId, rag::RagItem};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The most documents whose labels an anchor has, if the prompt has fewer. Of more, those that were sent last
/// count: another one gets a new label.
const MOST: usize = 256;

/// The labels that documents of a conversation have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "an object with last and given")]
pub(crate) struct Labels {
    /// The largest label that was sent, which is never given again. 0 if none was.
    last: u32,
    /// Documents in the order in which they were last sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    given: Vec<GivenLabel>,
}

/// The label of a document, the document's id, and a hash of its text: another text is another document.
type GivenLabel = (u32, ItemId, String);

impl Labels {
    /// Returns true if no label was ever sent.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the largest label that was sent. 0 if none was.
    pub(crate) fn last(&self) -> u32 {
        self.last
    }

    /// Adds the labels of a prompt.
    pub(crate) fn extend<'a>(&mut self, sent: impl IntoIterator<Item = (u32, &'a RagItem)>) {
        let sent: BTreeMap<u32, &RagItem> = sent.into_iter().collect();
        self.given.retain(|(known, ..)| !sent.contains_key(known));
        let stay = MOST.saturating_sub(sent.len());
        self.given.drain(..self.given.len().saturating_sub(stay));
        for (label, item) in sent {
            self.last = self.last.max(label);
            self.given.push((label, item.id.clone(), item.text_fingerprint()));
        }
    }

    /// Returns the labels with the ids of their documents.
    pub(crate) fn documents(&self) -> impl Iterator<Item = (u32, &ItemId)> {
        self.given.iter().map(|(label, id, _)| (*label, id))
    }

    /// Lets no label up to this one be given again.
    pub(crate) fn raise_to(&mut self, label: Option<u32>) {
        self.last = self.last.max(label.unwrap_or_default());
    }

    /// Removes the documents. No label of theirs is given again.
    pub(crate) fn forget_documents(&mut self) {
        self.given.clear();
    }
}

/// Labels for the documents of one request: those that they have, and new ones.
#[derive(Debug)]
pub(crate) struct LabelsToGive<'a> {
    known: BTreeMap<(&'a str, &'a str), u32>,
    /// The next label; `None` if there is none left.
    next: Option<u32>,
}

impl<'a> LabelsToGive<'a> {
    /// Creates them from the labels of the last prompt.
    pub(crate) fn after(labels: &'a Labels) -> Self {
        let (mut known, mut seen) = (BTreeMap::new(), BTreeSet::new());
        // Of an anchor from outside, one label may have two documents, and one document two labels.
        for (label, id, hash) in labels.given.iter().filter(|(label, ..)| seen.insert(*label)) {
            known.entry((id.as_str(), hash.as_str())).or_insert(*label);
        }
        let last = seen.last().copied().unwrap_or_default().max(labels.last);
        Self { known, next: last.checked_add(1) }
    }

    /// Returns the label that a document has. Returns `None` if it has none yet.
    pub(crate) fn known(&self, item: &RagItem) -> Option<u32> {
        if self.known.is_empty() {
            return None;
        }
        self.known.get(&(item.id.as_str(), item.text_fingerprint().as_str())).copied()
    }

    /// Returns the next label, for a document without one. It is given by [`LabelsToGive::give`].
    pub(crate) fn next(&self) -> Option<u32> {
        self.next
    }

    /// Gives the next label away.
    pub(crate) fn give(&mut self) {
        self.next = self.next.and_then(|next| next.checked_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_given_once_and_belong_to_a_text() {
        let item = |id: &str, text: &str| RagItem::new(id, 1.0, text);
        let (a, b) = (item("a", "one"), item("b", "two"));
        let mut labels = Labels::default();
        labels.extend([(1, &a), (4, &b)]);
        let mut give = LabelsToGive::after(&labels);
        assert_eq!((give.known(&a), give.known(&b), give.known(&item("a", "two"))), (Some(1), Some(4), None));
        assert_eq!(give.next(), Some(5));
        give.give();
        assert_eq!(give.next(), Some(6));
        labels.forget_documents();
        let give = LabelsToGive::after(&labels);
        assert_eq!((give.known(&a), give.next()), (None, Some(5)));
    }

    #[test]
    fn hostile_labels_are_not_given_twice() {
        let (a, b) = (RagItem::new("a", 1.0, "one"), RagItem::new("b", 1.0, "two"));
        let after = |label: u32| {
            let (one, two) = (a.text_fingerprint(), b.text_fingerprint());
            let json =
                format!(r#"{{"last": 2, "given": [[{label}, "a", "{one}"], [{label}, "b", "{two}"]]}}"#);
            let labels: Labels = serde_json::from_str(&json).unwrap();
            let give = LabelsToGive::after(&labels);
            (give.known(&a), give.known(&b), give.next())
        };
        assert_eq!(after(5), (Some(5), None, Some(6)));
        assert_eq!(after(u32::MAX), (Some(u32::MAX), None, None));
    }

    #[test]
    fn documents_that_were_sent_last_keep_their_labels() {
        let items: Vec<RagItem> = (0..1_500).map(|at| RagItem::new(format!("d{at}"), 1.0, "t")).collect();
        let mut labels = Labels::default();
        // The first document is in every prompt, the others in one each.
        for (label, item) in (1..).zip(&items) {
            labels.extend([(1, &items[0]), (label, item)]);
        }
        let known = |labels: &Labels, at: usize| LabelsToGive::after(labels).known(&items[at]);
        assert_eq!(labels.given.len(), MOST);
        assert_eq!(
            (known(&labels, 0), known(&labels, 1), known(&labels, 1_499)),
            (Some(1), None, Some(1_500))
        );
        assert_eq!(LabelsToGive::after(&labels).next(), Some(1_501));
        // All documents of a prompt keep theirs.
        labels.extend((1..).zip(&items));
        assert_eq!((labels.given.len(), known(&labels, 1)), (1_500, Some(2)));
    }
}
