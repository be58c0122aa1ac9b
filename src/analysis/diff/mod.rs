//! The differences between two plans, and the one input that each comes from.

use super::Explainer;
use crate::{
    error::Error,
    item::{ItemId, Source},
    plan::ExcludedCode,
    plan::IncludedReason,
    plan::{ContextPlan, Decision, prefix::Prefix},
};
use serde::Serialize;
use std::collections::BTreeSet;

mod states;
mod thoughts;
mod tools;
mod inputs;

pub use thoughts::ReasoningChange;
pub use tools::ToolsChange;

use inputs::{ComparisonInputs, Input};
use states::{States, shared};

/// Every change between two plans.
///
/// ```
/// use context_window::{
///     Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits, TokenCounter,
///     analysis::{Cause, Diff},
/// };
///
/// # fn main() -> Result<(), context_window::Error> {
/// # let manager = ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
/// let log = Conversation::from([
///     Message::user("How long do refunds take?"),
///     Message::assistant("5 days."),
///     Message::user("Thanks!"),
/// ]);
/// let before = PlanRequest::new(&log);
/// let after = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(10));
/// let diff = Diff::between(&manager.explainer(&before), &manager.explainer(&after))?;
/// assert!(diff.changes.iter().all(|change| change.cause == Cause::Budget));
/// assert_eq!(diff.changes[0].to.to_string(), "out: budget");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diff {
    /// In the order of the second plan: included items, excluded items, then items that only the first plan
    /// has.
    pub changes: Vec<Change>,
    /// Messages whose reasoning is sent in one of the plans only, or lost for another reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thoughts: Vec<ReasoningChange>,
    /// The declared tools, if they differ. They are the beginning of a prompt: any change ends the cached
    /// prefix there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolsChange>,
    /// The part of the first prompt that the second repeats, as a provider's cache can serve it.
    pub prefix: Option<Prefix>,
}

/// One item whose state differs between the two plans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// Its id.
    pub id: ItemId,
    /// True if it is a document: their ids are a namespace of their own.
    pub document: bool,
    /// True if a plan has an item of the other namespace under this id too (rule O5).
    #[serde(skip)]
    pub shares_id: bool,
    /// Its state in the first plan.
    pub from: ItemState,
    /// Its state in the second plan.
    pub to: ItemState,
    /// True if only the text that is sent for it differs.
    pub text_changed: bool,
    /// The input that this comes from.
    pub cause: Cause,
    /// The evidence for that, from planning again.
    pub evidence: Evidence,
}

/// The state of an item in one plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ItemState {
    /// The plan does not know it.
    Absent,
    /// It is in.
    Included(IncludedReason),
    /// It is out.
    Excluded(ExcludedCode),
}

/// Writes `absent`, `in: REASON` or `out: REASON`, with the names that reasons have in JSON.
impl std::fmt::Display for ItemState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent => f.write_str("absent"),
            Self::Included(reason) => write!(f, "in: {}", reason.name()),
            Self::Excluded(code) => write!(f, "out: {}", code.name()),
        }
    }
}

/// As it is displayed.
impl Serialize for ItemState {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The input that a change comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// The item was added, or other items were added, removed or changed and so freed or used tokens.
    NewItem,
    /// The item was removed.
    RemovedItem,
    /// The item has another text.
    ChangedItem,
    /// A TTL counted down, or was set.
    Expiry,
    /// Limits or token calibration.
    Budget,
    /// Something was pinned or unpinned.
    Pin,
    /// The priority of a pin.
    Priority,
    /// The score or origin of a document.
    Score,
    /// A broken history was repaired in another way: a placeholder result was added or removed.
    Repair,
    /// The model, its wire format or the tokenizer.
    Model,
    /// Messages were archived, or a rewind took them away or brought them back.
    Compaction,
    /// The options of the planner.
    Config,
    /// The last prompt: the start of its window, its documents (rule S5).
    LastPrompt,
}

/// The evidence for a cause, from planning again with only one input changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Evidence {
    /// From the first request, this input alone makes the change.
    Alone,
    /// If this input is reset to its value in the first request, the change disappears.
    Needed,
    /// Several inputs are needed. Changed one by one in a fixed order, the change appears at this one.
    Last,
}

impl Cause {
    /// Returns its name in JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NewItem => "new_item",
            Self::RemovedItem => "removed_item",
            Self::ChangedItem => "changed_item",
            Self::Expiry => "expiry",
            Self::Budget => "budget",
            Self::Pin => "pin",
            Self::Priority => "priority",
            Self::Score => "score",
            Self::Repair => "repair",
            Self::Model => "model",
            Self::Compaction => "compaction",
            Self::Config => "config",
            Self::LastPrompt => "last_prompt",
        }
    }
}

impl Diff {
    /// Compares two plans by their inputs. Each item whose state differs is one change, also inside a run of
    /// messages.
    ///
    /// # Errors
    ///
    /// Any error of planning the two requests; a mixture of them that makes no plan is no evidence.
    pub fn between(before: &Explainer<'_>, after: &Explainer<'_>) -> Result<Self, Error> {
        let [before, after] = [before, after].map(|side| (side.manager, side.request));
        let plans = (before.0.plan(before.1)?, after.0.plan(after.1)?);
        let sides = ComparisonInputs { before, after };
        let thoughts = thoughts::changes(&plans.0, &plans.1);
        let tools = ToolsChange::between(&plans.0.prompt().tools, &plans.1.prompt().tools);
        let prefix = plans.1.prefix(&plans.0.anchor());
        let states = (States::of(&plans.0, before.1), States::of(&plans.1, after.1));
        let shared = shared(before.1.log, after.1.log);
        let items = states.1.items(&states.0, shared).into_iter().chain(states.0.items(&states.1, shared));
        let mut seen = BTreeSet::new();
        let mut changed: Vec<(Item, Snapshot, Snapshot)> = Vec::new();
        for item in items {
            if !seen.insert(item.clone()) {
                continue;
            }
            let (from, to) = (Snapshot::of(states.0.row(&item)), Snapshot::of(states.1.row(&item)));
            if from != to {
                changed.push((item, from, to));
            }
        }
        if changed.is_empty() {
            return Ok(Self { changes: Vec::new(), thoughts, tools, prefix });
        }
        let trials = Trials::run(&sides);
        let trials = trials.indexed(&sides);
        let change = |(item, from, to): (Item, Snapshot, Snapshot)| {
            let (input, evidence) = trials.cause_of(&item, &from, &to);
            let cause = cause(input, &from, &to);
            let other = Item { id: item.id.clone(), document: !item.document };
            Change {
                shares_id: states.0.row(&other).or(states.1.row(&other)).is_some(),
                id: item.id,
                document: item.document,
                from: from.state,
                to: to.state,
                text_changed: from.state == to.state,
                cause,
                evidence,
            }
        };
        Ok(Self { changes: changed.into_iter().map(change).collect(), thoughts, tools, prefix })
    }
}

/// An item by its namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    id: ItemId,
    document: bool,
}

/// The state of an item, and the text that is sent for it.
#[derive(Debug, PartialEq, Eq)]
struct Snapshot {
    state: ItemState,
    /// A hash of the text that is sent for it.
    sent: Option<String>,
    /// True if it is a placeholder, which no participant wrote.
    made_up: bool,
}

impl Snapshot {
    fn of(row: Option<Decision<'_>>) -> Self {
        match row {
            Some(Decision::Included(row)) => Self {
                state: ItemState::Included(row.reason),
                sent: Some(row.hash()),
                made_up: row.source == Source::Synthetic,
            },
            Some(Decision::Excluded(row)) => {
                Self { state: ItemState::Excluded(row.reason.code()), sent: None, made_up: false }
            }
            None => Self { state: ItemState::Absent, sent: None, made_up: false },
        }
    }
}

fn cause(input: Input, from: &Snapshot, to: &Snapshot) -> Cause {
    match input {
        Input::Items if from.made_up || to.made_up => Cause::Repair,
        Input::Items if to.state == ItemState::Absent => Cause::RemovedItem,
        Input::Items if from.state == to.state => Cause::ChangedItem,
        Input::Items => Cause::NewItem,
        Input::Model => Cause::Model,
        Input::Config => Cause::Config,
        Input::Budget => Cause::Budget,
        Input::Pins => Cause::Pin,
        Input::Priorities => Cause::Priority,
        Input::Lifetimes => Cause::Expiry,
        Input::Scores => Cause::Score,
        Input::Archived => Cause::Compaction,
        Input::LastPrompt => Cause::LastPrompt,
    }
}

/// Plans of mixtures of two requests.
struct Trials {
    inputs: Vec<Input>,
    /// With only this input changed.
    alone: Vec<Trial>,
    /// With everything but this input changed.
    without: Vec<Trial>,
    /// With this input and those before it changed.
    steps: Vec<Trial>,
}

/// One mixture: its plan, if it makes one, and whether its items are those of the second request.
struct Trial {
    plan: Option<ContextPlan>,
    later_items: bool,
}

impl Trials {
    fn run(sides: &ComparisonInputs<'_>) -> Self {
        let inputs = sides.differing();
        let trial =
            |after: &[Input]| Trial { plan: sides.plan(after), later_items: after.contains(&Input::Items) };
        let others =
            |input: &Input| inputs.iter().copied().filter(|other| other != input).collect::<Vec<Input>>();
        Self {
            alone: inputs.iter().map(|input| trial(&[*input])).collect(),
            without: inputs.iter().map(|input| trial(&others(input))).collect(),
            steps: (0..=inputs.len()).map(|n| trial(&inputs[..n])).collect(),
            inputs,
        }
    }

    /// Indexes every trial plan by item, so that many items can be looked up.
    fn indexed<'t>(&'t self, sides: &ComparisonInputs<'t>) -> Indexed<'t> {
        let states = |trials: &'t [Trial]| {
            let of = |trial: &'t Trial| {
                let request = if trial.later_items { sides.after.1 } else { sides.before.1 };
                trial.plan.as_ref().map(|plan| States::of(plan, request))
            };
            trials.iter().map(of).collect()
        };
        Indexed {
            inputs: &self.inputs,
            alone: states(&self.alone),
            without: states(&self.without),
            steps: states(&self.steps),
        }
    }
}

/// The state of every item in each mixture; none for a mixture that makes no plan.
struct Indexed<'t> {
    inputs: &'t [Input],
    alone: Vec<Option<States<'t>>>,
    without: Vec<Option<States<'t>>>,
    steps: Vec<Option<States<'t>>>,
}

impl Indexed<'_> {
    /// Returns the one input that a change comes from: one that makes it alone, else one without which it is
    /// not made, else the last one it takes.
    fn cause_of(&self, item: &Item, from: &Snapshot, to: &Snapshot) -> (Input, Evidence) {
        let is = |states: &Option<States<'_>>, wanted: &Snapshot| {
            states.as_ref().is_some_and(|states| Snapshot::of(states.row(item)) == *wanted)
        };
        let alone = self.alone.iter().position(|trial| is(trial, to));
        let needed = || self.without.iter().position(|trial| is(trial, from));
        let last = || {
            let comes = |at: &usize| !is(&self.steps[*at], to) && is(&self.steps[at + 1], to);
            (0..self.inputs.len()).rev().find(comes)
        };
        let found = alone.map(|at| (at, Evidence::Alone));
        let found = found.or_else(|| needed().map(|at| (at, Evidence::Needed)));
        let found = found.or_else(|| last().map(|at| (at, Evidence::Last)));
        // Two requests without a difference make one plan.
        found.map_or((Input::Items, Evidence::Last), |(at, shown)| (self.inputs[at], shown))
    }
}
