//! The inputs of a plan, and mixtures of the inputs of two plans: each input is taken from the one or the other.

use crate::{
    conversation::{Conversation, MixedConversation},
    error::Error,
    item::{ItemId, RagItem},
    plan::ContextPlan,
    planner::{manager::ContextWindowManager, request::PlanRequest},
};
use std::{borrow::Cow, collections::BTreeMap};

/// One of the inputs that may differ between two plans.
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
    /// In the order in which they are changed one after the other.
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

/// A manager and what it is asked.
pub(super) type Side<'a> = (&'a ContextWindowManager, &'a PlanRequest<'a>);

/// The two sides of a comparison.
#[derive(Clone, Copy)]
pub(super) struct ComparisonInputs<'a> {
    pub(super) before: Side<'a>,
    pub(super) after: Side<'a>,
}

impl<'a> ComparisonInputs<'a> {
    /// The inputs that differ.
    pub(super) fn differing(&self) -> Vec<Input> {
        Input::ALL.into_iter().filter(|input| self.differs(*input)).collect()
    }

    fn differs(&self, input: Input) -> bool {
        let Self { before: (manager, a), after: (other, b) } = self;
        // What comes with an item that only one side has is no difference of its own.
        let mixtures = || (self.mixed(&[]), self.mixed(&[input]));
        let one_log = std::ptr::eq(a.log, b.log);
        match input {
            Input::Model => !manager.is_for_the_target_of(other),
            Input::Config => manager.asked_config() != other.asked_config(),
            Input::Budget => a.limits != b.limits || a.calibration != b.calibration,
            Input::Items => {
                let texts = |request: &PlanRequest<'_>| {
                    let mut texts: Vec<(ItemId, String)> =
                        request.rag.iter().map(|item| (item.id.clone(), item.text.to_string())).collect();
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
                let ttl = |documents: &[RagItem]| documents.iter().map(|item| item.ttl).collect::<Vec<_>>();
                now.all_lifetimes() != then.all_lifetimes() || ttl(&after) != ttl(&before)
            }
            Input::Scores => {
                let ((_, before), (_, after)) = mixtures();
                let scores = |documents: &[RagItem]| {
                    documents
                        .iter()
                        .map(|item| (item.score.to_bits(), item.origin.clone()))
                        .collect::<Vec<_>>()
                };
                scores(&after) != scores(&before)
            }
            Input::LastPrompt => a.previous != b.previous || a.log.all_sent() != b.log.all_sent(),
        }
    }

    /// The log and the documents with these inputs from after, the others from before.
    fn mixed(&self, after: &[Input]) -> (Cow<'a, Conversation>, Vec<RagItem>) {
        let (a, b) = (self.before.1, self.after.1);
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
        let numbered = |list: &'a [RagItem]| numbered(list).zip(list).collect::<BTreeMap<_, _>>();
        let (scores, lifetimes) = (numbered(documents(Input::Scores)), numbered(documents(Input::Lifetimes)));
        let mixed = |(name, item): ((&ItemId, u32), &RagItem)| {
            let mut item = item.clone();
            if let Some(other) = scores.get(&name) {
                item.score = other.score;
                item.origin.clone_from(&other.origin);
            }
            if let Some(other) = lifetimes.get(&name) {
                item.ttl = other.ttl;
            }
            item
        };
        let mixed = self::numbered(items).zip(items).map(mixed).collect();
        (mixture.log(), mixed)
    }

    /// The plan with these inputs from after, the others from before; none where they make no plan together.
    pub(super) fn plan(&self, after: &[Input]) -> Option<ContextPlan> {
        self.try_plan(after).ok()
    }

    fn try_plan(&self, after: &[Input]) -> Result<ContextPlan, Error> {
        let (a, b) = (self.before.1, self.after.1);
        let from = |input| if after.contains(&input) { b } else { a };
        let (log, rag) = self.mixed(after);
        let managers = |input| if after.contains(&input) { self.after.0 } else { self.before.0 };
        let manager = managers(Input::Model).with_config(managers(Input::Config).asked_config().clone())?;
        let items = from(Input::Items);
        let mut request = PlanRequest::new(&log)
            .with_rag(rag)
            .with_tools(items.tools)
            .with_limits(from(Input::Budget).limits);
        request.focus.clone_from(&items.focus);
        request.state.clone_from(&items.state);
        request.calibration = from(Input::Budget).calibration;
        request.previous.clone_from(&from(Input::LastPrompt).previous);
        manager.plan(&request)
    }
}

/// Each document by its id, and which of that id it is.
fn numbered(list: &[RagItem]) -> impl Iterator<Item = (&ItemId, u32)> {
    let mut seen: BTreeMap<&ItemId, u32> = BTreeMap::new();
    list.iter().map(move |item| {
        let count = seen.entry(&item.id).or_default();
        *count += 1;
        (&item.id, *count)
    })
}
