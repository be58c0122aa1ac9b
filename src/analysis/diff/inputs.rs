//! The inputs of a plan, and mixtures of the inputs of two plans. A mixture takes each input from one of the
//! two.

use crate::{
    analysis::Explainer,
    conversation::{Conversation, MixedConversation},
    error::Error,
    item::ItemId,
    plan::ContextPlan,
    planner::request::PlanRequest,
    rag::{RagItem, RetrievedItems},
};
use std::{borrow::Cow, collections::BTreeMap};

/// An input that may differ between two plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    Model,
    Config,
    Budget,
    Items,
    Archived,
    Pins,
    Priorities,
    Lifetimes,
    Scores,
    LastPrompt,
}

impl Input {
    /// All inputs, in the order in which they are changed one after the other.
    pub(super) const ALL: [Self; 10] = [
        Self::Model,
        Self::Config,
        Self::Items,
        Self::Archived,
        Self::Pins,
        Self::Priorities,
        Self::Lifetimes,
        Self::Scores,
        Self::LastPrompt,
        Self::Budget,
    ];
}

/// The two sides of a comparison.
#[derive(Clone, Copy)]
pub(super) struct ComparisonInputs<'a> {
    pub(super) before: Explainer<'a>,
    pub(super) after: Explainer<'a>,
}

impl<'a> ComparisonInputs<'a> {
    /// Returns the inputs that differ, in the order of [`Input::ALL`].
    pub(super) fn differing(&self) -> Vec<Input> {
        Input::ALL.into_iter().filter(|input| self.differs(*input)).collect()
    }

    fn differs(&self, input: Input) -> bool {
        let [Explainer { manager, request: a }, Explainer { manager: other, request: b }] =
            [self.before, self.after];
        // Both mixtures hold the items of the first side. The pin, TTL or score of an item that only one side
        // has is part of that item, not a difference of its own.
        let mixtures = || (self.mixed(&[]), self.mixed(&[input]));
        // One shared log has the same items, pins and archive on both sides, so only other inputs are
        // compared.
        let one_log = std::ptr::eq(a.log, b.log);
        match input {
            Input::Model => !manager.is_for_the_target_of(other),
            Input::Config => manager.requested_config() != other.requested_config(),
            Input::Budget => a.limits != b.limits || a.calibration != b.calibration,
            Input::Items => {
                let texts = |request: &PlanRequest<'_>| {
                    let text = |item: &RagItem| {
                        let parts = (
                            item.text.clone(),
                            item.variants.clone(),
                            (item.requires.clone(), item.group.clone()),
                        );
                        (item.id.clone(), parts)
                    };
                    let mut texts: Vec<_> = request.rag.iter().map(text).collect();
                    // Sorted, because the order of the documents is no input: they are ranked by score (S8).
                    texts.sort();
                    texts
                };
                !one_log && !a.log.has_the_items_of(b.log)
                    || texts(a) != texts(b)
                    || a.focus != b.focus
                    || a.state != b.state
                    || a.tools != b.tools
            }
            Input::Archived => !one_log && a.log.all_archived().ne(b.log.all_archived()),
            Input::Pins | Input::Priorities if one_log => false,
            Input::Pins => {
                let ((then, _), (now, _)) = mixtures();
                now.pin_priorities().keys().ne(then.pin_priorities().keys())
            }
            Input::Priorities => {
                let ((then, _), (now, _)) = mixtures();
                now.pin_priorities() != then.pin_priorities()
                    || now.note_priorities() != then.note_priorities()
            }
            Input::Lifetimes => {
                let ((then, before), (now, after)) = mixtures();
                // Compared by position, because both mixtures hold the same documents.
                let ttl = |documents: &[RagItem]| documents.iter().map(|item| item.ttl).collect::<Vec<_>>();
                now.all_lifetimes() != then.all_lifetimes() || ttl(&after) != ttl(&before)
            }
            Input::Scores => {
                let ((_, before), (_, after)) = mixtures();
                // All that ranks documents or relates them to their source.
                let scores = |documents: &RetrievedItems| {
                    let of_item = |item: &RagItem| {
                        let place = (item.span.clone(), item.position, item.date);
                        (item.score.to_bits(), item.origin.clone(), place)
                    };
                    documents.iter().map(of_item).collect::<Vec<_>>()
                };
                scores(&after) != scores(&before) || after.fused_lists() != before.fused_lists()
            }
            Input::LastPrompt => a.previous != b.previous || a.log.all_sent() != b.log.all_sent(),
        }
    }

    /// Returns the log and the documents with the `after` inputs of the second side and all others of the
    /// first.
    fn mixed(&self, after: &[Input]) -> (Cow<'a, Conversation>, RetrievedItems) {
        let (a, b) = (self.before.request, self.after.request);
        let from = |input| if after.contains(&input) { b.log } else { a.log };
        let mixture = MixedConversation {
            items: from(Input::Items),
            pins: from(Input::Pins),
            priorities: from(Input::Priorities),
            lifetimes: from(Input::Lifetimes),
            sent: from(Input::LastPrompt),
            archived: from(Input::Archived),
        };
        let documents = |input| if after.contains(&input) { &b.rag } else { &a.rag };
        let items = documents(Input::Items);
        // Several documents may share one id (rule O5), so scores and TTLs are matched by id and number.
        let numbered = |list: &'a [RagItem]| numbered(list).zip(list).collect::<BTreeMap<_, _>>();
        let (scores, lifetimes) = (numbered(documents(Input::Scores)), numbered(documents(Input::Lifetimes)));
        let mixed = |(name, item): ((&ItemId, u32), &RagItem)| {
            let mut item = item.clone();
            if let Some(other) = scores.get(&name) {
                item.score = other.score;
                item.origin.clone_from(&other.origin);
                item.span.clone_from(&other.span);
                (item.position, item.date) = (other.position, other.date);
            }
            if let Some(other) = lifetimes.get(&name) {
                item.ttl = other.ttl;
            }
            item
        };
        let of_scores = documents(Input::Scores);
        let places: BTreeMap<_, usize> = self::numbered(items).zip(0..).collect();
        let found: Vec<Option<usize>> =
            self::numbered(of_scores).map(|name| places.get(&name).copied()).collect();
        let mixed = self::numbered(items).zip(items.iter()).map(mixed).collect();
        (mixture.log(), items.with_ranks_of(mixed, of_scores, &found))
    }

    /// Returns the plan with the `after` inputs of the second side and all others of the first. Returns
    /// `None` if the mixture cannot be planned.
    pub(super) fn plan(&self, after: &[Input]) -> Option<ContextPlan> {
        self.try_plan(after).ok()
    }

    fn try_plan(&self, after: &[Input]) -> Result<ContextPlan, Error> {
        let (a, b) = (self.before.request, self.after.request);
        let from = |input| if after.contains(&input) { b } else { a };
        let (log, rag) = self.mixed(after);
        let managers = |input| if after.contains(&input) { self.after.manager } else { self.before.manager };
        let manager =
            managers(Input::Model).with_config(managers(Input::Config).requested_config().clone())?;
        let items = from(Input::Items);
        let mut request = PlanRequest::new(&log)
            .with_retrieved(rag)
            .with_tools(items.tools)
            .with_limits(from(Input::Budget).limits);
        request.focus.clone_from(&items.focus);
        request.state.clone_from(&items.state);
        request.calibration = from(Input::Budget).calibration;
        request.previous.clone_from(&from(Input::LastPrompt).previous);
        manager.plan(&request)
    }
}

/// Returns each document's id with its number, from 1, among the documents of that id.
fn numbered(list: &[RagItem]) -> impl Iterator<Item = (&ItemId, u32)> {
    let mut seen: BTreeMap<&ItemId, u32> = BTreeMap::new();
    list.iter().map(move |item| {
        let count = seen.entry(&item.id).or_default();
        *count += 1;
        (&item.id, *count)
    })
}
