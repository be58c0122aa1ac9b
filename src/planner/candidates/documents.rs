//! Retrieved documents, and those that a policy excludes whatever the budget.
//!
//! - Input: the lists of documents of a request, and the set that the last prompt contained.
//! - Output: documents in the order of selection, each with the reason that already excludes it.
//! - Rules: S9 (policies and duplicates that need no budget), S19 (groups), S5 (the set), T1.

use super::{
    Rank, checks,
    ranking::{self, ListRanks, RankedItem},
};
use crate::{
    config::{RagOptions, Variants},
    error::Error,
    item::ItemId,
    plan::{
        anchor::{SentDocument, StickyDocuments},
        labels::{Labels, LabelsToGive},
        reason::{ExcludedReason, PolicyRule},
    },
    planner::eligibility::{Eligibility, EligibilityRules},
    provider::meter::Meter,
    provider::weight::Weight,
    rag::{Form, LabelledItem, RagItem, RetrievedItems},
    text::hash::text_hash,
};
use foldhash::{fast::FixedState, quality::RandomState};
use indexmap::IndexMap;
use smallvec::{SmallVec, smallvec};
use std::collections::{BTreeMap, BTreeSet};

/// A document of one request: its place, its origin, and the reason that already excludes it.
#[derive(Debug)]
pub(crate) struct Document {
    /// Its index in the request.
    pub(crate) at: usize,
    /// The number of its origin; `None` for a document without one.
    pub(crate) origin: Option<u32>,
    pub(crate) out: Option<ExcludedReason>,
    /// The hash of its whole text.
    pub(crate) hash: u64,
    /// The forms in which it may be sent, the fullest first (rule S17). At least one.
    pub(crate) forms: Forms,
    /// True if it quotes messages of the conversation (rule S15).
    pub(crate) is_recalled: bool,
    /// Its ranks in the lists that contain it, by number of the list. Empty if there is one list.
    pub(crate) ranks: ListRanks,
    /// Its place in the last prompt, if it stays from there (rule S5).
    pub(crate) sent_at: Option<u32>,
    /// True if it was sent there as one text with the document before it (rule S14).
    pub(crate) was_joined: bool,
    /// Its label, if documents have labels (rule S16).
    pub(crate) label: Option<u32>,
    /// The documents beside which it is sent, if it depends on any (rule S18).
    pub(crate) required: Option<Required>,
}

/// The forms of a document. Most have one.
type Forms = SmallVec<[Form; 1]>;

impl Document {
    /// Returns the fullest form in which the document may be sent.
    pub(crate) fn fullest(&self) -> Form {
        self.forms[0]
    }

    /// Returns the shortest form in which the document may be sent.
    pub(crate) fn shortest(&self) -> Form {
        self.forms[self.forms.len() - 1]
    }

    /// Checks if the document competes in several forms, or beside others only.
    pub(super) fn has_forms_or_depends(&self) -> bool {
        self.out.is_none() && (self.forms.len() > 1 || self.required.is_some())
    }

    /// Returns the number of the list that ranks the document best; the first of several.
    pub(crate) fn best_list(&self) -> Option<u32> {
        self.ranks.iter().min_by_key(|(list, rank)| (*rank, *list)).map(|(list, _)| *list)
    }
}

/// The documents beside which a document is sent: one of them is enough.
#[derive(Debug, Clone)]
pub(crate) struct Required {
    /// The first required id, which the reason names.
    pub(super) first: ItemId,
    /// Those of the request.
    pub(crate) ranks: Vec<Rank>,
    /// The messages before which some were sent with earlier questions.
    pub(crate) retained_at: Vec<u32>,
}

impl Required {
    /// Returns the reason to exclude a document while none that it requires is in the prompt.
    pub(crate) fn reason(&self) -> ExcludedReason {
        ExcludedReason::Policy(PolicyRule::Requires { of: self.first.clone() })
    }
}

/// The documents of the last prompt, as far as they decide about those of this one.
#[derive(Clone, Copy)]
pub(super) struct LastDocuments<'a> {
    /// The set that stays (rule S5).
    pub(super) set: StickyDocuments<'a>,
    /// The documents that were sent with the live question; `None` if it was not sent. No other message is
    /// recalled for it (rule S15).
    pub(super) with_question: Option<StickyDocuments<'a>>,
}

/// The documents of one request, with all that decides on them before the budget does.
#[derive(Clone, Copy)]
pub(super) struct DocumentSource<'a> {
    pub(super) items: &'a RetrievedItems,
    /// The indices of the documents that are not retained.
    pub(super) new: &'a [usize],
    pub(super) rules: &'a RagOptions,
    pub(super) eligibility: &'a EligibilityRules<'a>,
    pub(super) meter: &'a Meter,
    pub(super) labels: Option<&'a Labels>,
}

impl<'a> DocumentSource<'a> {
    /// Sorts the new documents, then excludes them by TTL, policy and repetition, with the groups of those
    /// that a policy excludes (rule S19).
    ///
    /// The documents of the last prompt come first, in the order of their ranks then. The others follow
    /// by score or fused ranks, then date, id, text and origin. Also returns the number of documents in the
    /// set. That number is `None` if none of them may be sent.
    pub(super) fn documents(&self, last: LastDocuments<'_>) -> Result<(Vec<Document>, Option<u32>), Error> {
        checks::check(self.items)?;
        let mut incomplete = BTreeMap::new();
        // Terminates: each further pass excludes another group. It is a pass, because documents that repeat a
        // member of an excluded group are no duplicates.
        loop {
            let (documents, count) = self.in_order(last, &incomplete)?;
            let more = incomplete_groups(self.items, &documents, &incomplete);
            if more.is_empty() {
                return Ok((documents, count));
            }
            incomplete.extend(more);
        }
    }

    /// Returns the documents in order, and the number of those in the set. `incomplete` are the groups that a
    /// policy excludes.
    fn in_order(
        &self,
        last: LastDocuments<'_>,
        incomplete: &BTreeMap<&'a str, ItemId>,
    ) -> Result<(Vec<Document>, Option<u32>), Error> {
        let Self { items, new, rules, eligibility, meter, labels } = *self;
        let LastDocuments { set, with_question } = last;
        let was_sent = |id: &ItemId| with_question.is_none_or(|sent| sent.ids().contains(id));
        let lengths = || items.iter().map(|item| item.text.len() as u64);
        let longest = lengths().max().unwrap_or_default();
        // Lets the counter reserve its cache for all documents at once.
        meter.counter().reserve_documents(items.len() as u64, lengths().sum(), longest);
        let places = set.places();
        let ranked = ranking::ranked_items(items, new, &places, rules);
        let of_the_set = ranked.iter().take_while(|one| one.stays()).count();

        // Recalled messages have origins of their own, so that no other document is joined to them.
        let mut origins: IndexMap<(bool, &str), ()> = IndexMap::new();
        let mut ids = IndexMap::with_capacity_and_hasher(items.len(), RandomState::default());
        let mut texts = IndexMap::with_capacity_and_hasher(items.len(), FixedState::default());
        if new.len() < items.len() {
            let known: BTreeSet<usize> = new.iter().copied().collect();
            for (_, item) in items.iter().enumerate().filter(|(at, _)| !known.contains(at)) {
                // A retained document is in the prompt already, so a repetition of it is not sent either.
                find_repeat(&mut ids, &mut texts, item, text_hash(&item.text));
            }
        }
        let mut documents = Vec::with_capacity(items.len());
        let mut labels_to_give = labels.map(LabelsToGive::after);
        for RankedItem { at, ranks, .. } in ranked {
            let item = &items[at];
            let hash = text_hash(&item.text);
            let is_recalled = item.messages.is_some();
            // The conversation has no labels for its messages, so recalled ones have none either.
            let mut give = labels_to_give.as_mut().filter(|_| !is_recalled);
            let known = give.as_ref().and_then(|labels| labels.known(item));
            let label = known.or_else(|| give.as_ref()?.next());
            let before = places.get(&item.id);
            let missing = item.group.as_deref().and_then(|name| incomplete.get(name));
            let mut forms = forms(item, before, rules);
            let out = match policy((item, label), hash, &mut forms, rules, eligibility, meter)? {
                Some(reason) => Some(reason),
                // The prompt up to the question stays as it was sent.
                None if is_recalled && !was_sent(&item.id) => {
                    Some(ExcludedReason::Policy(PolicyRule::QuestionSent))
                }
                // A document of the last prompt stays without its group.
                None if before.is_none() && missing.is_some() => missing.map(without_member),
                None => find_repeat(&mut ids, &mut texts, item, hash),
            };
            if let Some(give) = give.as_mut().filter(|_| known.is_none() && out.is_none()) {
                give.give();
            }
            let origin = item.origin.as_deref();
            let origin = origin.map(|origin| origins.insert_full((is_recalled, origin), ()).0 as u32);
            documents.push(Document {
                at,
                origin,
                out,
                hash,
                forms,
                is_recalled,
                ranks,
                sent_at: before.map(|before| before.place),
                was_joined: before.is_some_and(|before| before.joined),
                label,
                required: None,
            });
        }
        // If no document of the set may be sent, rank all documents as if there were no set. Recurses once at
        // most.
        if !set.is_empty() && documents[..of_the_set].iter().all(|document| document.out.is_some()) {
            let last = LastDocuments { set: StickyDocuments::default(), with_question };
            return self.in_order(last, incomplete);
        }
        Ok((documents, (of_the_set > 0).then_some(of_the_set as u32)))
    }
}

/// Finds the groups of which a policy excludes a member, each with the id of that member. Returns nothing but
/// those that are not `known`.
fn incomplete_groups<'a>(
    items: &'a RetrievedItems,
    documents: &[Document],
    known: &BTreeMap<&'a str, ItemId>,
) -> BTreeMap<&'a str, ItemId> {
    let mut found = BTreeMap::new();
    for document in documents {
        let item = &items[document.at];
        let Some(name) = item.group.as_deref().filter(|name| !known.contains_key(name)) else { continue };
        // The document that a duplicate repeats represents it.
        if !matches!(document.out, None | Some(ExcludedReason::Duplicate { .. })) {
            found.entry(name).or_insert_with(|| item.id.clone());
        }
    }
    found
}

/// Returns the reason to exclude the other members of a group because of one.
pub(crate) fn without_member(of: &ItemId) -> ExcludedReason {
    ExcludedReason::Policy(PolicyRule::Group { of: of.clone() })
}

/// Returns the forms in which a document may be sent. A document of the last prompt keeps the form that it
/// has there, `before`.
fn forms(item: &RagItem, before: Option<&SentDocument<'_>>, rules: &RagOptions) -> Forms {
    match before {
        Some(before) => smallvec![item.form_named(before.form)],
        None if item.variants.is_empty() || rules.variants == Variants::Off => smallvec![Form::WHOLE],
        None => item.forms().collect(),
    }
}

/// Returns the reason to exclude a document by its TTL, score or size. Returns `None` if it may be included.
/// Removes the forms that are too large, or all but the last if each is. `hash` is that of the whole text.
fn policy(
    (item, label): (&RagItem, Option<u32>),
    hash: u64,
    forms: &mut Forms,
    rules: &RagOptions,
    eligibility: &EligibilityRules<'_>,
    meter: &Meter,
) -> Result<Option<ExcludedReason>, Error> {
    if let Eligibility::Out(reason) = eligibility.document(&item.id, item.ttl) {
        return Ok(Some(reason));
    }
    if let Some(limit) = rules.min_score.filter(|limit| item.score < *limit) {
        let score = item.score;
        let rule = PolicyRule::MinScore { score, limit };
        return Ok(Some(ExcludedReason::Policy(rule)));
    }
    // The cheap checks come first: only this one counts tokens.
    let Some(limit) = rules.max_item_tokens else { return Ok(None) };
    let mut within = Forms::new();
    for form in &*forms {
        let item = LabelledItem { item, form: *form, label };
        if meter.document(item, item.hash(hash), limit)? != Weight::Over {
            within.push(*form);
        }
    }
    if within.is_empty() {
        forms.drain(..forms.len() - 1);
        return Ok(Some(ExcludedReason::Policy(PolicyRule::MaxItemTokens { limit })));
    }
    *forms = within;
    Ok(None)
}

/// Returns the reason to exclude a document if an earlier one has its id or its text. Otherwise records both,
/// the text by its hash.
fn find_repeat<'a>(
    ids: &mut IndexMap<&'a str, &'a RagItem, RandomState>,
    texts: &mut IndexMap<u64, SmallVec<[&'a RagItem; 1]>, FixedState>,
    item: &'a RagItem,
    hash: u64,
) -> Option<ExcludedReason> {
    let with_hash = texts.entry(hash).or_default();
    // Texts with equal hashes are compared, so a collision excludes nothing. People say the same in many
    // messages, and each is needed where it was said.
    let same_text =
        || with_hash.iter().copied().find(|first| item.messages.is_none() && first.text == item.text);
    if let Some(first) = ids.get(item.id.as_str()).copied().or_else(same_text) {
        return Some(ExcludedReason::Duplicate { of: first.id.clone() });
    }
    ids.insert(item.id.as_str(), item);
    with_hash.push(item);
    None
}
