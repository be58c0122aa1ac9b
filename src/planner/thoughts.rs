//! Reasoning of earlier replies that the provider would refuse in this prompt.
//!
//! - Input: a laid-out prompt, and the prompts that produced its reasoning.
//! - Output: the positions of lost reasoning, with reasons.
//! - Rules: K1 to K5, K8.
//!
//! Newer models verify their own reasoning when it is sent back: a block is valid only after the prompt that
//! produced it. Every committed reply remembers that prompt as one hash (`PromptHead`), so a planned prompt
//! can be compared with it. The reasoning of a message is sent if
//!
//! - everything before the message is sent as it was then, except reasoning, and nothing more (K1);
//! - the reasoning sent before it is the one that was sent before it then, or none is (K2). So the reasoning
//!   of a prompt is one unbroken run, and only its oldest part may be missing;
//! - the model reads the reasoning of the model that made it, for this sender (K3, K8).
//!
//! A reply that was never committed (from an imported session, for example) has no such hash. For it, the
//! last prompt or the conversation itself shows the prompt that produced it (`Births`, K5).
//!
//! Withheld reasoning changes the tokens of the prompt, and so its items. The prompt is planned again until
//! no more reasoning is lost ([`Replan`](super::replan::Replan)).

use crate::{
    item::ItemId,
    plan::{
        DropReason, PlannedItem, SentPrompt,
        anchor::{Anchor, PromptHeads, Sender},
    },
    planner::{
        births::{Births, changed, known_loss},
        request::PlanRequest,
    },
    provider::model::{BoundTo, Model, ThinkingRule},
};
use std::collections::{BTreeMap, BTreeSet};

/// The reasoning of one message of the planned prompt.
struct Thought<'p> {
    position: u32,
    row: &'p PlannedItem,
    /// The reason to withhold it, whatever is sent before it.
    fault: Option<DropReason>,
    /// The message whose reasoning was sent right before it when it was made.
    after: Option<ItemId>,
}

/// Returns the reasoning of a prompt that its model would refuse, by position of its message.
pub(crate) fn lost(
    prompt: SentPrompt<'_>,
    request: &PlanRequest<'_>,
    model: &Model,
) -> BTreeMap<u32, DropReason> {
    let Some(rule) = &model.thinking else { return BTreeMap::new() };
    let (log, sender) = (request.log, request.sender.as_ref());
    let now = prompt.pieces();
    // Tool definitions are the first pieces and have no row, so pieces and rows differ by that offset.
    let tools = now.len() - prompt.included.len();
    // Each hash of a prompt beginning continues the one before it: all checks are linear in the rows.
    let mut heads = PromptHeads::from_pieces(&now);
    let births = Births::new(prompt, log, &now);
    let mut thoughts: Vec<Thought<'_>> = Vec::new();
    for (at, row) in prompt.included.iter().enumerate().filter(|(_, row)| !row.body.reasoning().is_empty()) {
        let Some(position) = log.position_of(&row.id) else { continue };
        let made_behind = log.prompt_of(position).and_then(|anchor| Some((anchor, anchor.head.as_ref()?)));
        let (fault, after) = match made_behind {
            Some((anchor, head)) => {
                let is = heads.at(tools + at);
                let same = is.items == head.items && is.hash == head.hash;
                let fault = || (!same).then(|| changed(prompt, log, &row.id, &now));
                (refused_to(anchor, sender, model, rule).or_else(fault), head.thought.clone())
            }
            None => {
                let before_it = thoughts.last().map(|thought| thought.row.id.clone());
                births.judge(at, position, before_it, |anchor| refused_to(anchor, sender, model, rule))
            }
        };
        thoughts.push(Thought { position, row, fault, after });
    }
    // Withheld reasoning is everything outside of the unbroken run, even if it has no fault of its own (K2).
    let run = unbroken(&thoughts);
    let out = thoughts.into_iter().enumerate().filter(|(at, _)| !run.contains(at));
    let by_provider = |why: &DropReason| matches!(why, DropReason::DroppedByProvider { .. });
    let known = |id: &ItemId| known_loss(prompt, id).filter(by_provider).unwrap_or(DropReason::ChainBroken);
    out.map(|(_, thought)| (thought.position, thought.fault.unwrap_or_else(|| known(&thought.row.id))))
        .collect()
}

/// Returns the reason that the reasoning made for a prompt cannot go to this model or sender at all (rules
/// K3, K8). Returns `None` if it can.
fn refused_to(
    made_for: &Anchor,
    sender: Option<&Sender>,
    model: &Model,
    rule: &ThinkingRule,
) -> Option<DropReason> {
    let by = made_for.target.as_ref().map(|target| target.model.as_str());
    if let Some(by) = by.filter(|by| !model.reads(rule, by)) {
        return Some(DropReason::Unreadable { model: by.to_owned() });
    }
    // An unknown sender on either side refuses nothing.
    let (made_by, sends) = made_for.sender.as_ref().zip(sender)?;
    let bound_to = by.filter(|by| *by != model.name).map_or_else(|| rule.bound_to.clone(), bound_to);
    (!made_by.may_be(sends, &bound_to)).then_some(DropReason::OtherSender)
}

/// Returns the accounts or end users that the reasoning of a model is bound to.
fn bound_to(model: &str) -> Vec<BoundTo> {
    let known = Model::named(model).ok().and_then(|model| model.thinking);
    known.map(|rule| rule.bound_to).unwrap_or_default()
}

/// Returns the reasoning that is sent, as indices: the newest without a fault, the one that was sent before
/// it when it was made, and so on back.
fn unbroken(thoughts: &[Thought<'_>]) -> BTreeSet<usize> {
    let mut run = BTreeSet::new();
    let mut next = thoughts.iter().rposition(|thought| thought.fault.is_none());
    while let Some(at) = next {
        run.insert(at);
        let after = thoughts[at].after.as_ref();
        let before = after.and_then(|id| thoughts[..at].iter().rposition(|thought| thought.row.id == *id));
        next = before.filter(|before| thoughts[*before].fault.is_none());
    }
    run
}
