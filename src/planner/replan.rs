//! Adjustments between the rounds of planning one request.
//!
//! - Input: the faults that a round finds in its prompt.
//! - Output: the changes that the next round makes.
//! - Rules: K1 to K4, S10 and R1 (lost texts), S5 (documents given up), N3 and H5 (tokens withheld), S7
//!   (results shortened).

use crate::{
    config::ReasoningPolicy,
    conversation::{Conversation, Notes},
    item::ItemId,
    plan::{
        DropReason, DroppedReasoning, Notice, NoticeCode, PlannedItem, ReasoningReport, anchor::SentAgain,
    },
    planner::rendering::ToolResultRendering,
    provider::model::MismatchSwitch,
};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of times that more tokens are withheld from one prompt, because joining messages pushes it
/// over its budget (rule N3).
pub(crate) const MAX_TRIES: u32 = 3;

/// Maximum number of renderings of tool results that are tried for one prompt (rules S7, S10).
///
/// In order: as in the last prompt, without the retained texts of earlier turns, cleared, without any
/// retained text, clipped, and with the demand of recalled messages.
const RENDERINGS: usize = 6;

/// The adjustments for one round of planning.
///
/// There are five kinds, in the order of the fields below. An adjustment never undoes one of its own kind: it
/// adds to a list, sets a flag, raises a number or shortens tool results. It resets the kinds after it,
/// except the lists, because they were made for a prompt that is no longer planned. So the rounds ascend in a
/// lexicographic order over finite values, and planning ends after at most [`Replan::max_rounds`] rounds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Replan {
    /// Messages that are sent without their reasoning, by position, with the reasons (rules K1 to K4).
    reasoning_withheld: BTreeMap<u32, DropReason>,
    /// Texts that are sent again, because the request repeats them and their retained copies have left the
    /// prompt (rule S10), or because they are rules whose messages have left it (rule R1).
    sent_again: SentAgain,
    /// True if the documents of the last prompt do not fit and now compete with all others (rules S5, S8).
    gives_up_documents: bool,
    /// Tokens of the budget that items may not use, and the number of times that this amount was raised
    /// (rules N3, H5).
    tokens_withheld: u64,
    tries: u32,
    /// The rendering of tool results, if it differs from that of the last prompt (rule S7).
    rendering: Option<ToolResultRendering>,
    /// True if the last adjustment was one of the first three, which change the candidates.
    changes_candidates: bool,
}

impl Replan {
    /// Returns the adjustments of the first round: none, or all reasoning withheld if the options drop it.
    pub(crate) fn new(log: &Conversation, policy: ReasoningPolicy) -> Self {
        let mut replan = Self::default();
        if policy == ReasoningPolicy::Drop {
            let with = (0..).zip(log.messages()).filter(|(_, message)| !message.reasoning().is_empty());
            replan.reasoning_withheld = with.map(|(position, _)| (position, DropReason::Dropped)).collect();
        }
        replan
    }

    /// Adjusts the next round to the faults of a prompt: sends lost texts again, or withholds reasoning.
    ///
    /// `missing` are retained texts that the request repeats, and rules, that are no longer in the prompt
    /// (rules S10, R1). `lost` is reasoning that the provider would refuse, by position of its message (rules
    /// K1 to K3).
    ///
    /// Returns `None` if there is a next round. Otherwise returns the lost reasoning that is sent anyway,
    /// because the provider drops it.
    pub(crate) fn adjust_to(
        &mut self,
        missing: SentAgain,
        lost: BTreeMap<u32, DropReason>,
        policy: ReasoningPolicy,
    ) -> Option<BTreeMap<u32, DropReason>> {
        // Texts first: reasoning may be valid again once the prompt has its texts back.
        if self.send_again(missing) {
            return None;
        }
        if policy == ReasoningPolicy::Provider {
            return Some(lost);
        }
        (!self.withhold_reasoning(lost)).then(BTreeMap::new)
    }

    /// Withholds reasoning that the provider would refuse. Returns true if any of it is newly withheld.
    fn withhold_reasoning(&mut self, lost: BTreeMap<u32, DropReason>) -> bool {
        let before = self.reasoning_withheld.len();
        self.reasoning_withheld.extend(lost);
        self.reset_later_if(self.reasoning_withheld.len() > before)
    }

    /// Sends texts of the request again. Returns true if any of them is new on the list.
    fn send_again(&mut self, missing: SentAgain) -> bool {
        let is_new = self.sent_again.insert(missing);
        self.reset_later_if(is_new)
    }

    /// Sends rules of the user whose messages have left the prompt. Returns true if any of them is new on the
    /// list.
    pub(crate) fn send_rules(&mut self, rules: BTreeSet<ItemId>) -> bool {
        self.send_again(SentAgain { rules, ..SentAgain::default() })
    }

    /// Lets the documents of the last prompt compete with all others.
    pub(crate) fn give_up_documents(&mut self) {
        debug_assert!(!self.gives_up_documents, "documents are given up once");
        self.reset_later_if(true);
        self.gives_up_documents = true;
    }

    /// Returns these adjustments with the documents of the last prompt given up, or kept.
    pub(crate) fn with_documents_given_up(&self, gives_up: bool) -> Self {
        Self { gives_up_documents: gives_up, ..self.clone() }
    }

    /// Withholds more tokens from the items, for a prompt that exceeds its budget by `excess` tokens. The
    /// excess is known only after layout.
    ///
    /// Withholds at least `required` tokens: those of the placeholder messages that the provider demands.
    /// Returns false if the prompt fits, or if the limit of tries is reached; the prompt then stays as it is.
    pub(crate) fn withhold_tokens(&mut self, excess: u64, required: u64) -> bool {
        if excess == 0 || self.tries == MAX_TRIES {
            return false;
        }
        self.tokens_withheld = tokens_to_withhold(self.tokens_withheld, excess, required);
        self.tries += 1;
        // Clipped lengths depend on the available tokens, so all renderings are tried again from the first.
        self.rendering = None;
        self.changes_candidates = false;
        true
    }

    /// Changes the rendering for the next round. `before` is the rendering of this round.
    pub(crate) fn change_rendering(&mut self, before: &ToolResultRendering, rendering: ToolResultRendering) {
        debug_assert!(rendering.follows(before), "{rendering:?} after {before:?}");
        self.rendering = Some(rendering);
        self.changes_candidates = false;
    }

    /// Resets the later adjustments if `changed` is true, because they were made for another prompt. Returns
    /// `changed`.
    fn reset_later_if(&mut self, changed: bool) -> bool {
        if changed {
            self.gives_up_documents = false;
            (self.tokens_withheld, self.tries) = (0, 0);
            self.rendering = None;
            self.changes_candidates = true;
        }
        changed
    }

    /// Returns the maximum number of rounds for a conversation.
    pub(crate) fn max_rounds(log: &Conversation, notes: &Notes) -> usize {
        let texts = log.sent_with().all_documents().map(|(_, documents)| documents.len()).sum::<usize>()
            + log.sent_with().all_state().count();
        let rules = notes.iter().filter(|(_, note)| note.rule.is_some()).count();
        let losses = log.messages().len() + texts + log.system().len() + rules;
        // Each loss may be found in a round of its own, and a text may be both a document and state.
        let rounds = losses.saturating_mul(2).saturating_add(1);
        // Withheld tokens and renderings restart after each loss, and once more if documents are given up.
        rounds.saturating_mul(2 * (MAX_TRIES as usize + 1) * RENDERINGS)
    }

    /// Checks if the last adjustment changes the candidates, so that they must be gathered again.
    pub(crate) fn changes_candidates(&self) -> bool {
        self.changes_candidates
    }

    /// Returns the positions of the messages that are sent without their reasoning.
    pub(crate) fn without_reasoning(&self) -> impl Iterator<Item = u32> {
        self.reasoning_withheld.keys().copied()
    }

    /// Returns the texts that are sent again.
    pub(crate) fn sent_again(&self) -> &SentAgain {
        &self.sent_again
    }

    /// Checks if the documents of the last prompt compete with all others.
    pub(crate) fn gives_up_documents(&self) -> bool {
        self.gives_up_documents
    }

    /// Returns the tokens that items may not use.
    pub(crate) fn tokens_withheld(&self) -> u64 {
        self.tokens_withheld
    }

    /// Returns the rendering of tool results. Returns `None` if it is that of the last prompt.
    pub(crate) fn rendering(&self) -> Option<&ToolResultRendering> {
        self.rendering.as_ref()
    }

    /// Reports on the reasoning of the included rows, with one notice for each reason. `left` is lost
    /// reasoning that is sent anyway, for the provider to drop.
    pub(crate) fn report_reasoning(
        &self,
        included: &[PlannedItem],
        log: &Conversation,
        left: BTreeMap<u32, DropReason>,
        switch: Option<MismatchSwitch>,
    ) -> (ReasoningReport, Vec<Notice>) {
        let sent = included.iter().filter(|row| !row.body.reasoning().is_empty()).count() as u64;
        if self.reasoning_withheld.is_empty() && left.is_empty() {
            return (ReasoningReport { sent, switch, ..ReasoningReport::default() }, Vec::new());
        }
        let in_the_plan: BTreeSet<&ItemId> = included.iter().map(|row| &row.id).collect();
        let is_included = |position: &u32| in_the_plan.contains(&log.message_id(*position));
        let mut reasons: BTreeMap<&DropReason, Vec<ItemId>> = BTreeMap::new();
        // Reasoning that the options drop is expected: it needs no notice.
        for (position, why) in
            self.reasoning_withheld.iter().filter(|(at, why)| is_included(at) && **why != DropReason::Dropped)
        {
            reasons.entry(why).or_default().push(log.message_id(*position));
        }
        let notices = reasons.into_iter().map(|(why, ids)| Notice {
            code: NoticeCode::ReasoningWithheld,
            ids,
            text: format!("reasoning is not sent: {why}"),
        });
        let notices = notices.collect();
        let mut lost = self.reasoning_withheld.clone();
        lost.extend(left);
        // A message that the prompt excludes anyway has not lost its reasoning.
        lost.retain(|position, _| is_included(position));
        let lost =
            lost.into_iter().map(|(at, why)| DroppedReasoning { id: log.message_id(at), why }).collect();
        (ReasoningReport { sent, lost, switch }, notices)
    }
}

/// Returns the tokens to withhold from the items in the next round, for a prompt that exceeds its budget by
/// `excess` tokens.
///
/// `withheld` is the amount of this round, `required` the tokens of placeholder messages. The result is
/// always larger than `withheld`.
pub(crate) fn tokens_to_withhold(withheld: u64, excess: u64, required: u64) -> u64 {
    let next = withheld.saturating_add(excess).max(required);
    debug_assert!(next > withheld || withheld == u64::MAX, "{next} after {withheld}");
    next
}
