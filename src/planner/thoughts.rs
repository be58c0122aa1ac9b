//! Which reasoning of earlier replies a prompt can hold (rules K1 to K4).
//!
//! Newer models check what they are sent of their own reasoning: a block is valid only behind the prompt that it was made
//! behind. Every committed reply remembers that prompt as one hash (`PromptHead`), so a planned prompt can be compared with
//! it, item by item. A thought passes if
//!
//! - everything before its message is sent as it was then, reasoning apart, and nothing more (K1);
//! - the thought that is sent before it is the one that was sent before it then, or none is (K2): what is sent is one
//!   unbroken run, whose oldest part may be missing;
//! - the model reads what that model thought (K3).
//!
//! A reply that was never committed (a session from elsewhere) is taken for one that was made behind all messages before it.
//!
//! To withhold a thought changes what the prompt costs, and so what is in it: the prompt is planned again until nothing more
//! is lost. Each round withholds more, so there is a last one.

use crate::{
    config::ReasoningPolicy,
    conversation::Conversation,
    item::{ItemId, ItemKind, Section},
    message::Role,
    plan::{
        ContextPlan, ExcludedItem, ExcludedReason, Loss, LostThought, Notice, NoticeCode, PlannedItem,
        PolicyRule, PrefixCause, PromptPiece, Thoughts, anchor::PromptHeads,
    },
    provider::model::{BoundTo, Model},
};
use std::collections::{BTreeMap, BTreeSet};

/// What is withheld of a request, and why.
#[derive(Debug, Default)]
pub(crate) struct Withheld {
    /// The positions of the messages.
    pub(crate) positions: BTreeSet<u32>,
    lost: BTreeMap<u32, Loss>,
}

impl Withheld {
    /// Before anything is planned: nothing, or everything where the options drop it.
    pub(crate) fn at_first(log: &Conversation, policy: ReasoningPolicy) -> Self {
        let mut withheld = Self::default();
        if policy == ReasoningPolicy::Drop {
            let with = (0..).zip(log.messages()).filter(|(_, message)| !message.reasoning().is_empty());
            withheld.lost = with.map(|(position, _)| (position, Loss::Dropped)).collect();
            withheld.positions = withheld.lost.keys().copied().collect();
        }
        withheld
    }

    /// Withholds these too. Returns whether any of them was not withheld yet.
    pub(crate) fn takes(&mut self, lost: BTreeMap<u32, Loss>) -> bool {
        let before = self.positions.len();
        self.positions.extend(lost.keys());
        self.lost.extend(lost);
        self.positions.len() > before
    }

    /// What a plan says of it: a notice for each reason, and the list. `lost` is what is sent all the same.
    pub(crate) fn tell(self, plan: &mut ContextPlan, log: &Conversation, left: BTreeMap<u32, Loss>) {
        let withheld = self.lost;
        let sent = plan.included.iter().filter(|row| !row.body.reasoning().is_empty()).count() as u64;
        if withheld.is_empty() && left.is_empty() {
            plan.thoughts = Thoughts { sent, ..Thoughts::default() };
            return;
        }
        let in_the_plan: BTreeSet<&ItemId> = plan.included.iter().map(|row| &row.id).collect();
        let is_in = |position: &u32| in_the_plan.contains(&log.message_id(*position));
        let mut reasons: BTreeMap<&Loss, Vec<ItemId>> = BTreeMap::new();
        for (position, why) in withheld.iter().filter(|(at, why)| is_in(at) && **why != Loss::Dropped) {
            reasons.entry(why).or_default().push(log.message_id(*position));
        }
        let notices = reasons.into_iter().map(|(why, ids)| Notice {
            code: NoticeCode::ReasoningWithheld,
            ids,
            text: format!("reasoning is not sent: {why}"),
        });
        let notices: Vec<Notice> = notices.collect();
        let lost = withheld.into_iter().chain(left).filter(|(position, _)| is_in(position));
        let lost: BTreeMap<u32, Loss> = lost.collect();
        plan.thoughts = Thoughts {
            sent,
            lost: lost.into_iter().map(|(at, why)| LostThought { id: log.message_id(at), why }).collect(),
            switch: None,
        };
        plan.notices.extend(notices);
    }
}

/// A thought of the planned prompt.
struct Thought<'p> {
    position: u32,
    row: &'p PlannedItem,
    /// Why it cannot be sent, whatever is sent before it.
    fault: Option<Loss>,
    /// The thought that was sent right before it when it was made.
    after: Option<ItemId>,
}

/// The thoughts of a plan that its model would not take back, by position.
pub(crate) fn lost(plan: &ContextPlan, log: &Conversation, model: &Model) -> BTreeMap<u32, Loss> {
    let Some(rule) = &model.thinking else { return BTreeMap::new() };
    let now = plan.pieces();
    let tools = now.len() - plan.included.len();
    let mut heads = PromptHeads::of(&now);
    let mut thoughts: Vec<Thought<'_>> = Vec::new();
    for (at, row) in plan.included.iter().enumerate().filter(|(_, row)| !row.body.reasoning().is_empty()) {
        let Some(position) = log.position_of(&row.id) else { continue };
        let before_it = thoughts.last().map(|thought| thought.row.id.clone());
        let made_behind = log.prompt_of(position).and_then(|anchor| Some((anchor, anchor.head.as_ref()?)));
        let (fault, after) = match made_behind {
            Some((anchor, head)) => {
                let by = anchor.target.as_ref().map(|target| target.model.as_str());
                let unreadable = by.filter(|by| !rule.reads(&model.name, by));
                let is = heads.at(tools + at);
                let same = is.items == head.items && is.hash == head.hash;
                let bound = anchor.sender.as_ref().zip(plan.sender.as_ref()).filter(|(made_by, sends)| {
                    let bound_to =
                        by.filter(|by| *by != model.name).map_or_else(|| rule.bound_to.clone(), bound_to);
                    !made_by.may_be(sends, &bound_to)
                });
                let fault = match unreadable {
                    Some(by) => Some(Loss::Unreadable { model: by.to_owned() }),
                    None if bound.is_some() => Some(Loss::OtherSender),
                    None if same => None,
                    None => Some(changed(plan, log, &row.id, &now)),
                };
                (fault, head.thought.clone())
            }
            None => (abridged(plan, log, at, position), before_it),
        };
        thoughts.push(Thought { position, row, fault, after });
    }
    let run = unbroken(&thoughts);
    let out = thoughts.into_iter().enumerate().filter(|(at, _)| !run.contains(at));
    let by_provider = |why: &Loss| matches!(why, Loss::DroppedByProvider { .. });
    let known = |id: &ItemId| known_loss(plan, id).filter(by_provider).unwrap_or(Loss::ChainBroken);
    out.map(|(_, thought)| (thought.position, thought.fault.unwrap_or_else(|| known(&thought.row.id))))
        .collect()
}

/// Whom the reasoning of a model is bound to.
fn bound_to(model: &str) -> Vec<BoundTo> {
    let known = Model::named(model).ok().and_then(|model| model.thinking);
    known.map(|rule| rule.bound_to).unwrap_or_default()
}

/// The thoughts that are sent: the newest that can be, the one that stood before it when it was made, and so on.
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

/// Why a thought was lost to the last prompt already.
fn known_loss(plan: &ContextPlan, id: &ItemId) -> Option<Loss> {
    let last = &plan.before.as_ref()?.anchor;
    last.lost.iter().find(|lost| lost.id == *id).map(|lost| lost.why.clone())
}

/// Why a thought that was made behind another prompt is lost: as the last prompt said, where it was lost then already; else
/// by the first item at which this prompt differs from the last one.
fn changed(plan: &ContextPlan, log: &Conversation, id: &ItemId, now: &[PromptPiece]) -> Loss {
    let last = plan.before.as_ref().map(|last| &*last.anchor);
    if let Some(known) = known_loss(plan, id) {
        return known;
    }
    let then = last.and_then(|last| last.prompt.as_deref()).unwrap_or_default();
    let same = then.iter().zip(now).take_while(|(was, is)| was.is_sent_as(is)).count();
    let (at, cause) = match (then.get(same), now.get(same)) {
        (Some(was), _) => {
            let is_message = log.position_of(&was.0).is_some();
            (&was.0, plan.cause(&was.0, &now[same..], is_message))
        }
        (None, Some(is)) => (&is.0, PrefixCause::Inserted),
        (None, None) => return Loss::ChainBroken,
    };
    Loss::PrefixChanged { at: at.clone(), cause }
}

/// The first message before a thought of unknown birth that is not sent as it is in the log, or what stands between them.
fn abridged(plan: &ContextPlan, log: &Conversation, row: usize, position: u32) -> Option<Loss> {
    let changed = |at: &ItemId, cause| Some(Loss::PrefixChanged { at: at.clone(), cause });
    let before = &plan.included[..row];
    let made_up = |row: &&PlannedItem| match row.kind {
        ItemKind::Message => is_shortened(row, log),
        ItemKind::SystemText | ItemKind::FocusHint | ItemKind::Note => false,
        _ => true,
    };
    if let Some(row) = before.iter().find(made_up) {
        let cause = if row.kind == ItemKind::Message { PrefixCause::Changed } else { PrefixCause::Inserted };
        return changed(&row.id, cause);
    }
    let is_gone = |row: &&ExcludedItem| {
        let is_before =
            row.section != Section::Rag && log.position_of(&row.id).is_some_and(|at| at < position);
        // What was never said to a model, or taken back before the thought, is missed by nobody.
        let is_nothing = matches!(
            row.reason,
            ExcludedReason::Archived { compaction: None } | ExcludedReason::Policy(PolicyRule::EmptyMessage)
        );
        is_before && !is_nothing
    };
    let gone = plan.excluded.iter().find(is_gone)?;
    changed(&gone.id, plan.cause(&gone.id, &[], true))
}

/// Whether a tool result is sent as a stub, or without its middle.
fn is_shortened(row: &PlannedItem, log: &Conversation) -> bool {
    let Some(position) = log.position_of(&row.id).filter(|_| row.role == Some(Role::Tool)) else {
        return false;
    };
    let said = |texts: &mut dyn Iterator<Item = &str>| texts.map(str::len).sum::<usize>();
    let message = log.message(position);
    let whole = said(&mut message.plain_texts());
    whole != said(&mut row.body.plain_texts()) && whole > 0
}
