//! The documents of a request, with their places in the ranked lists of several retrievers.

use super::RagItem;
use foldhash::quality::RandomState;
use indexmap::IndexMap;
use serde::Serialize;
use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeSet,
    ops::Deref,
    sync::Arc,
};

/// The name of the list that [`crate::PlanRequest::with_rag`] sets.
const UNNAMED: &str = "documents";

/// The documents of a request: one list, or several ranked lists.
///
/// A document that several lists contain, with the same id and text, is one item. Rule S8 describes how the
/// lists are fused.
///
/// ```
/// use context_window::{RagItem, RetrievedItems};
///
/// let by_words =
///     [RagItem::new("refunds", 12.3, "Refunds take 5 days."), RagItem::new("hours", 4.0, "9 to 18.")];
/// let by_meaning = [RagItem::new("refunds", 0.92, "Refunds take 5 days.")];
/// let documents = RetrievedItems::from_iter(by_words).with_list("meaning", by_meaning);
/// assert_eq!(documents.len(), 2);
/// assert_eq!(documents.list_names().collect::<Vec<_>>(), ["documents", "meaning"]);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RetrievedItems {
    items: Vec<RagItem>,
    /// The lists in the order in which they were added. Empty if there is one list without a name.
    lists: Vec<RankedList>,
}

/// A ranked list of one retriever.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankedList {
    pub(crate) name: Arc<str>,
    /// The documents of the list, as indices of the items, each with its score in this list.
    pub(crate) hits: Vec<(usize, f64)>,
}

/// The rank of a document in one of several lists; the best document has rank 1.
///
/// ```
/// use context_window::{
///     Config, ContextWindowManager, Conversation, ListRank, Message, Model, PlanRequest, TokenCounter,
/// };
///
/// # fn main() -> Result<(), context_window::Error> {
/// # let manager =
/// #     ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let refunds = (12.3, "refunds", "Refunds take 5 days.");
/// let request = PlanRequest::new(&log)
///     .with_rag_list("words", [refunds, (4.0, "hours", "9 to 18.")])
///     .with_rag_list("meaning", [(0.92, "refunds", "Refunds take 5 days.")]);
/// let plan = manager.build_plan(&request)?;
/// let ranks: &[ListRank] = &plan.included[0].ranks();
/// assert_eq!((&*ranks[1].list, ranks[1].rank), ("meaning", 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct ListRank {
    /// The name of the list.
    pub list: Arc<str>,
    /// The rank in the list.
    pub rank: u64,
}

impl ListRank {
    pub(crate) fn new(list: Arc<str>, rank: u64) -> Self {
        Self { list, rank }
    }
}

impl RetrievedItems {
    /// Adds the list of a retriever, in any order. A list of the same name is extended.
    #[must_use]
    pub fn with_list<I>(mut self, name: impl Into<Arc<str>>, items: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<RagItem>,
    {
        let name = name.into();
        if self.lists.is_empty() && !self.items.is_empty() {
            let hits = self.items.iter().map(|item| item.score).enumerate().collect();
            self.lists.push(RankedList { name: UNNAMED.into(), hits });
        }
        let place = self.lists.iter().position(|list| list.name == name).unwrap_or_else(|| {
            self.lists.push(RankedList { name, hits: Vec::new() });
            self.lists.len() - 1
        });
        // Of several copies, the best one is shared by further lists, whatever the order of the input.
        let mut known: IndexMap<_, usize, RandomState> = IndexMap::default();
        for (at, item) in self.items.iter().enumerate() {
            let best = known.entry((item.id.clone(), Arc::clone(&item.text))).or_insert(at);
            if compare_copies(item, &self.items[*best]).is_lt() {
                *best = at;
            }
        }
        let mut is_hit = vec![false; self.items.len()];
        for (at, _) in &self.lists[place].hits {
            is_hit[*at] = true;
        }
        let items: Vec<RagItem> = items.into_iter().map(Into::into).collect();
        let mut best_first: Vec<usize> = (0..items.len()).collect();
        best_first.sort_by(|a, b| compare_copies(&items[*a], &items[*b]));
        let mut shared = vec![None; items.len()];
        for number in best_first {
            let item = &items[number];
            // A list that repeats a document has two rows for it, and the second is a duplicate.
            let at = known.get(&(item.id.clone(), Arc::clone(&item.text))).copied().filter(|at| !is_hit[*at]);
            if let Some(at) = at {
                is_hit[at] = true;
                shared[number] = Some(at);
            }
        }
        for (item, shared) in items.into_iter().zip(shared) {
            let score = item.score;
            let at = shared.unwrap_or(self.items.len());
            match self.items.get_mut(at) {
                Some(copy) => copy.complete_from(item),
                None => self.items.push(item),
            }
            self.lists[place].hits.push((at, score));
        }
        self
    }

    /// Returns the names of the lists. Returns nothing if there is only a list without a name.
    pub fn list_names(&self) -> impl Iterator<Item = &str> {
        self.lists.iter().map(|list| &*list.name)
    }

    /// Returns the documents of each list, with the scores that they have in it.
    pub fn lists(&self) -> impl Iterator<Item = (&str, Vec<RagItem>)> {
        self.lists.iter().map(|list| {
            let item = |(at, score): &(usize, f64)| RagItem { score: *score, ..self.items[*at].clone() };
            (&*list.name, list.hits.iter().map(item).collect())
        })
    }

    /// Returns the lists that have names.
    pub(crate) fn named_lists(&self) -> &[RankedList] {
        &self.lists
    }

    /// Returns the lists if there are several, whose ranks are fused.
    pub(crate) fn fused_lists(&self) -> &[RankedList] {
        if self.lists.len() > 1 { &self.lists } else { &[] }
    }

    /// Returns `items`, which have the places of these ones, with the ranks that another request gives them.
    /// `places` has the place here of each document there. Documents that are only here keep their ranks.
    pub(crate) fn with_ranks_of(&self, items: Vec<RagItem>, other: &Self, places: &[Option<usize>]) -> Self {
        let ranked: BTreeSet<usize> = places.iter().flatten().copied().collect();
        let mut mixed = Self { items, lists: Vec::new() };
        for list in &other.lists {
            let hits = list.hits.iter().filter_map(|(at, score)| Some((places[*at]?, *score)));
            mixed.lists.push(RankedList { name: Arc::clone(&list.name), hits: hits.collect() });
        }
        for list in &self.lists {
            let own = list.hits.iter().filter(|(at, _)| !ranked.contains(at)).copied();
            match mixed.lists.iter_mut().find(|known| known.name == list.name) {
                Some(known) => known.hits.extend(own),
                None => mixed.lists.push(RankedList { name: Arc::clone(&list.name), hits: own.collect() }),
            }
        }
        mixed
    }

    /// Keeps the documents for which `keeps` returns true.
    pub fn retain(&mut self, mut keeps: impl FnMut(&RagItem) -> bool) {
        let stays: Vec<bool> = self.items.iter().map(&mut keeps).collect();
        let mut places = Vec::with_capacity(stays.len());
        let mut next = 0;
        for stays in &stays {
            places.push(next);
            next += usize::from(*stays);
        }
        for list in &mut self.lists {
            list.hits.retain(|(at, _)| stays[*at]);
            list.hits.iter_mut().for_each(|(at, _)| *at = places[*at]);
        }
        let mut at = 0;
        self.items.retain(|_| {
            at += 1;
            stays[at - 1]
        });
    }

    /// Returns the documents without their lists.
    #[must_use]
    pub fn into_items(self) -> Vec<RagItem> {
        self.items
    }
}

/// Compares two documents with the same id and text: the best one comes first. Of equal ones, the one with
/// more attributes does, because a copy from another list has completed it.
fn compare_copies(a: &RagItem, b: &RagItem) -> Ordering {
    fn known<T>(attribute: Option<T>) -> (bool, Option<T>) {
        (attribute.is_none(), attribute)
    }
    let rest = |item: &RagItem| {
        let span = item.span.as_ref().map(|span| (span.start, span.end));
        let messages = item.messages.as_ref().map(|messages| (messages.start, messages.end));
        let places = (known(span), known(item.position), known(messages));
        let variants = (item.variants.is_empty(), item.variants.clone());
        let requires = (item.requires.is_empty(), item.requires.clone(), known(item.group.clone()));
        (Reverse(item.date), known(item.origin.clone()), known(item.ttl), places, variants, requires)
    };
    b.score.total_cmp(&a.score).then_with(|| rest(a).cmp(&rest(b)))
}

impl Deref for RetrievedItems {
    type Target = [RagItem];

    fn deref(&self) -> &[RagItem] {
        &self.items
    }
}

impl<T: Into<RagItem>> FromIterator<T> for RetrievedItems {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self { items: items.into_iter().map(Into::into).collect(), lists: Vec::new() }
    }
}

impl From<Vec<RagItem>> for RetrievedItems {
    fn from(items: Vec<RagItem>) -> Self {
        Self { items, lists: Vec::new() }
    }
}

impl<'a> IntoIterator for &'a RetrievedItems {
    type Item = &'a RagItem;
    type IntoIter = std::slice::Iter<'a, RagItem>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, score: f64, text: &str) -> RagItem {
        RagItem::new(id, score, text)
    }

    #[test]
    fn a_document_of_two_lists_is_one_item() {
        let mut items = RetrievedItems::from_iter([item("a", 9.0, "one"), item("b", 8.0, "two")]).with_list(
            "titles",
            [item("b", 0.9, "two").with_origin("o"), item("b", 0.8, "other"), item("c", 0.1, "x")],
        );
        let ids = |items: &RetrievedItems| items.iter().map(|item| item.id.to_string()).collect::<Vec<_>>();
        assert_eq!(ids(&items), ["a", "b", "b", "c"]);
        assert_eq!(items[1].origin.as_deref(), Some("o"));
        assert_eq!(items.lists[1].hits, [(1, 0.9), (2, 0.8), (3, 0.1)]);
        items.retain(|item| item.id != "a");
        assert_eq!(ids(&items), ["b", "b", "c"]);
        assert_eq!(items.lists[0].hits, [(0, 8.0)]);
        assert_eq!(items.lists[1].hits, [(0, 0.9), (1, 0.8), (2, 0.1)]);
    }

    #[test]
    fn copy_with_variants_or_a_group_is_shared_in_any_order() {
        let bare = item("a", 1.0, "one");
        for full in [bare.clone().with_variant("title", "o"), bare.clone().with_group("g")] {
            for copies in [[bare.clone(), full.clone()], [full.clone(), bare.clone()]] {
                let items = RetrievedItems::from_iter(copies.clone()).with_list("titles", [bare.clone()]);
                let shared = &items[items.lists[1].hits[0].0];
                assert_eq!(*shared, full);
            }
        }
    }

    #[test]
    fn best_of_several_copies_is_shared_in_any_order() {
        let copies = [item("a", 1.0, "one"), item("a", 3.0, "one").with_origin("o")];
        let reversed = [copies[1].clone(), copies[0].clone()];
        let second = [item("a", 0.2, "one"), item("a", 0.9, "one")];
        for (copies, best) in [(copies, 1), (reversed, 0)] {
            let items = RetrievedItems::from_iter(copies).with_list("titles", second.clone());
            assert_eq!(items.lists[1].hits, [(2, 0.2), (best, 0.9)]);
        }
    }
}
