//! The differences between two plans, each with the one input that causes it.

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
mod reasoning;
mod tools;
mod inputs;

pub use reasoning::ReasoningChange;
pub use tools::ToolsChange;

use inputs::{ComparisonInputs, Input};
use states::{States, shared};

/// All changes between two plans.
///
/// ```
/// use context_window::{
///     Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits, TokenCounter,
///     analysis::{Cause, Diff},
/// };
///
/// # fn main() -> Result<(), context_window::Error> {
/// # let manager =
/// #     ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
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
    /// The items whose state or text differs, in the order of the second plan: included items, excluded
    /// items, then items that only the first plan has.
    pub changes: Vec<Change>,
    /// Messages whose reasoning only one of the plans sends, or both drop for different reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thoughts: Vec<ReasoningChange>,
    /// The declared tools, if they differ. A prompt begins with its tools, so any change of them ends the
    /// cached prefix there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolsChange>,
    /// The beginning of the first prompt that the second repeats, which a provider's cache can serve.
    pub prefix: Option<Prefix>,
}

/// One item whose state differs between the two plans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// The id of the item.
    pub id: ItemId,
    /// True for a document. Document ids are a separate namespace.
    pub document: bool,
    /// True if one of the plans also has an item of the other namespace under this id (separate namespaces,
    /// rule O5).
    #[serde(skip)]
    pub shares_id: bool,
    /// The state of the item in the first plan.
    pub from: ItemState,
    /// The state of the item in the second plan.
    pub to: ItemState,
    /// True if only the text sent for the item differs.
    pub text_changed: bool,
    /// The input that causes the change.
    pub cause: Cause,
    /// The evidence for the cause, from planning again.
    pub evidence: Evidence,
}

/// The state of an item in one plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ItemState {
    /// An item that the plan does not contain.
    Absent,
    /// An included item with its reason.
    Included(IncludedReason),
    /// An excluded item with its reason.
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

/// Serializes the state as its display text.
impl Serialize for ItemState {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The input that causes a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// An added item, or the effect of added, removed or changed items on the tokens that are left for this
    /// one.
    NewItem,
    /// A removed item.
    RemovedItem,
    /// A changed text of the item.
    ChangedItem,
    /// A TTL that counted down or was set.
    Expiry,
    /// Changed limits or a changed token calibration.
    Budget,
    /// An added or removed pin.
    Pin,
    /// A changed priority of a pin.
    Priority,
    /// A changed score or origin of a document.
    Score,
    /// A different repair of a broken history: a placeholder result was added or removed.
    Repair,
    /// A different model, wire format or tokenizer.
    Model,
    /// Messages that were archived, or that a rewind removed or restored.
    Compaction,
    /// Changed options of the planner.
    Config,
    /// A different last prompt: the start of its window or its documents (sticky window, rule S5).
    LastPrompt,
}

/// The evidence for a cause, from planning again with only one input changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Evidence {
    /// A change that this input alone makes in the first request.
    Alone,
    /// A change that disappears if this input is reset to its value in the first request.
    Needed,
    /// A change that needs several inputs. With the inputs changed one by one in a fixed order, it appears at
    /// this one.
    Last,
}

impl Cause {
    /// Returns the cause's name in JSON and reports.
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
    /// Compares the plans of two requests. Each item whose state or text differs is one change, even inside a
    /// run of excluded messages.
    ///
    /// # Errors
    ///
    /// Any error of planning the two requests. Requests that mix the inputs of both are planned to find the
    /// causes. One that cannot be planned is no error and no evidence.
    pub fn between(before: &Explainer<'_>, after: &Explainer<'_>) -> Result<Self, Error> {
        let plans = (before.manager.plan(before.request)?, after.manager.plan(after.request)?);
        let sides = ComparisonInputs { before: *before, after: *after };
        let thoughts = reasoning::changes(&plans.0, &plans.1);
        let tools = ToolsChange::between(&plans.0.prompt().tools, &plans.1.prompt().tools);
        let prefix = plans.1.prefix(&plans.0.anchor());
        let states =
            (States::from_plan(&plans.0, before.request), States::from_plan(&plans.1, after.request));
        let shared = shared(before.request.log, after.request.log);
        // Items of the second plan come first, in its order, then those that only the first plan has.
        let items = states.1.items(&states.0, shared).into_iter().chain(states.0.items(&states.1, shared));
        let mut seen = BTreeSet::new();
        let mut changed: Vec<(Item, Snapshot, Snapshot)> = Vec::new();
        for item in items {
            if !seen.insert(item.clone()) {
                continue;
            }
            let (from, to) =
                (Snapshot::from_decision(states.0.row(&item)), Snapshot::from_decision(states.1.row(&item)));
            if from != to {
                changed.push((item, from, to));
            }
        }
        // The trials plan about three times for each input that differs, so they run only if there is a
        // change.
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

/// An item's id with its namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    id: ItemId,
    document: bool,
}

/// An item's state and sent text, as far as a comparison needs them.
#[derive(Debug, PartialEq, Eq)]
struct Snapshot {
    state: ItemState,
    /// A hash of the text that is sent for the item; `None` if the item is not included.
    sent: Option<String>,
    /// True for a placeholder that the planner wrote.
    is_synthetic: bool,
}

impl Snapshot {
    fn from_decision(row: Option<Decision<'_>>) -> Self {
        match row {
            Some(Decision::Included(row)) => Self {
                state: ItemState::Included(row.reason),
                sent: Some(row.hash()),
                is_synthetic: row.source == Source::Synthetic,
            },
            Some(Decision::Excluded(row)) => {
                Self { state: ItemState::Excluded(row.reason.code()), sent: None, is_synthetic: false }
            }
            None => Self { state: ItemState::Absent, sent: None, is_synthetic: false },
        }
    }
}

fn cause(input: Input, from: &Snapshot, to: &Snapshot) -> Cause {
    match input {
        // Repairs come first: a placeholder is absent from one of the plans, but nobody added or removed it.
        Input::Items if from.is_synthetic || to.is_synthetic => Cause::Repair,
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

/// The results of requests that mix the inputs of the two compared requests: their plans, or the states of
/// their items.
struct Trials<T> {
    inputs: Vec<Input>,
    /// For each input, the trial with only that input changed.
    alone: Vec<T>,
    /// For each input, the trial with all other inputs changed.
    without: Vec<T>,
    /// For each `n` from 0, the trial with the first `n` inputs changed.
    steps: Vec<T>,
}

/// One mixed request, as its plan. `plan` is `None` if the request cannot be planned. `later_items` is true
/// if its items are those of the second request.
struct Trial {
    plan: Option<ContextPlan>,
    later_items: bool,
}

impl Trials<Trial> {
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

    /// Indexes the plan of every trial by item, so that many items can be looked up. Returns `None` for a
    /// trial without a plan.
    fn indexed<'t>(&'t self, sides: &ComparisonInputs<'t>) -> Trials<Option<States<'t>>> {
        let states = |trials: &'t [Trial]| {
            let of = |trial: &'t Trial| {
                let request = if trial.later_items { sides.after.request } else { sides.before.request };
                trial.plan.as_ref().map(|plan| States::from_plan(plan, request))
            };
            trials.iter().map(of).collect()
        };
        Trials {
            inputs: self.inputs.clone(),
            alone: states(&self.alone),
            without: states(&self.without),
            steps: states(&self.steps),
        }
    }
}

impl Trials<Option<States<'_>>> {
    /// Returns the input that causes a change, with the evidence. It is the first input that makes the change
    /// alone. If there is none, it is the first input without which the change disappears, and else the last
    /// step at which the change appears.
    fn cause_of(&self, item: &Item, from: &Snapshot, to: &Snapshot) -> (Input, Evidence) {
        let is = |states: &Option<States<'_>>, wanted: &Snapshot| {
            states.as_ref().is_some_and(|states| Snapshot::from_decision(states.row(item)) == *wanted)
        };
        let alone = self.alone.iter().position(|trial| is(trial, to));
        let needed = || self.without.iter().position(|trial| is(trial, from));
        let last = || {
            // The last such step counts, because a change may appear, disappear and appear again along the
            // steps.
            let comes = |at: &usize| !is(&self.steps[*at], to) && is(&self.steps[at + 1], to);
            (0..self.inputs.len()).rev().find(comes)
        };
        let found = alone.map(|at| (at, Evidence::Alone));
        let found = found.or_else(|| needed().map(|at| (at, Evidence::Needed)));
        let found = found.or_else(|| last().map(|at| (at, Evidence::Last)));
        // The steps lead from the first plan to the second, so one of them makes the change. The default only
        // applies if the first or the last step does not reproduce its plan.
        found.map_or((Input::Items, Evidence::Last), |(at, shown)| (self.inputs[at], shown))
    }
}
