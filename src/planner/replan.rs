//! The adjustments with which a request is planned again.
//!
//! Input: the faults that a round of planning finds in its prompt. Output: what the next round does
//! otherwise. Rules: K1 to K4 and S10 (texts that are lost), S5 (documents given up), N3 and H5 (tokens
//! withheld), S7 (results shortened).

use crate::{
    config::ReasoningPolicy,
    conversation::Conversation,
    item::ItemId,
    plan::{
        DropReason, DroppedReasoning, Notice, NoticeCode, PlannedItem, ReasoningReport, anchor::SentAgain,
    },
    planner::rendering::ToolResultRendering,
    provider::model::MismatchSwitch,
};
use std::collections::{BTreeMap, BTreeSet};

/// The rounds with more tokens withheld, at most, for a prompt that its joins push over the budget (rule N3).
pub(crate) const TRIES: u32 = 3;

/// The renderings of tool results that a request is tried with, at most: as the last prompt had them, without
/// the retained texts of earlier turns, cleared, without any retained text, clipped (rules S7, S10).
const RENDERINGS: usize = 5;

/// Texts and reasoning that a prompt loses.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Retained texts that the request brings again, and that have left the prompt (rule S10).
    pub(crate) missing: SentAgain,
    /// Reasoning that the provider would refuse, by position (rules K1 to K3).
    pub(crate) lost: BTreeMap<u32, DropReason>,
}

/// The adjustments that one round of planning makes.
///
/// There are five, and each is monotone: it adds to its list, sets its flag or raises its number, and never
/// takes that back. They are ordered, from the first to the last field below; an adjustment of one starts
/// those after it again, because they were made for a prompt that is no longer planned. So the rounds of a
/// request ascend in a lexicographic order over finite values, and there is a last one
/// ([`Replan::most_rounds`]).
#[derive(Debug, Clone, Default)]
pub(crate) struct Replan {
    /// Messages that are sent without their reasoning, by position, with the reasons (rules K1 to K4).
    reasoning_withheld: BTreeMap<u32, DropReason>,
    /// Texts that are sent again: the request brings them, and the retained ones have left the prompt (rule
    /// S10).
    sent_again: SentAgain,
    /// True if the documents of the last prompt, which do not fit, compete with all others (rules S5, S8).
    gives_up_documents: bool,
    /// Tokens of the budget that are kept from the items, and the number of times that they were raised
    /// (rules N3, H5).
    tokens_withheld: u64,
    tries: u32,
    /// The tool results as they are sent, if that is not how the last prompt had them (rule S7).
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

    /// Adjusts the next round to the faults of a prompt: texts that have left it are sent again, or reasoning
    /// is withheld. Returns `None` if there is a next round, and otherwise the lost reasoning that is sent
    /// all the same, because the provider is to drop it.
    pub(crate) fn mend(
        &mut self,
        faults: Faults,
        policy: ReasoningPolicy,
    ) -> Option<BTreeMap<u32, DropReason>> {
        if self.send_again(faults.missing) {
            return None;
        }
        if policy == ReasoningPolicy::Provider {
            return Some(faults.lost);
        }
        (!self.withhold_reasoning(faults.lost)).then(BTreeMap::new)
    }

    /// Withholds reasoning that the provider would refuse. Returns true if any of it is newly withheld.
    fn withhold_reasoning(&mut self, lost: BTreeMap<u32, DropReason>) -> bool {
        let before = self.reasoning_withheld.len();
        self.reasoning_withheld.extend(lost);
        self.restarts_if(self.reasoning_withheld.len() > before)
    }

    /// Sends texts of the request again. Returns true if any of them was not sent again before.
    fn send_again(&mut self, missing: SentAgain) -> bool {
        let is_new = self.sent_again.takes(missing);
        self.restarts_if(is_new)
    }

    /// Gives up the documents of the last prompt.
    pub(crate) fn give_up_documents(&mut self) {
        debug_assert!(!self.gives_up_documents, "documents are given up once");
        self.restarts_if(true);
        self.gives_up_documents = true;
    }

    /// Returns these adjustments with the documents of the last prompt given up, or not.
    pub(crate) fn with_documents_given_up(&self, gives_up: bool) -> Self {
        Self { gives_up_documents: gives_up, ..self.clone() }
    }

    /// Withholds more tokens from the items if a prompt is over its budget by `excess` tokens, which are known only once it is
    /// laid out; at least the tokens of the placeholder messages that its provider requires. Returns false if the prompt fits,
    /// or that was tried too often: then it stays as it is.
    pub(crate) fn withhold_tokens(&mut self, excess: u64, required: u64) -> bool {
        if excess == 0 || self.tries == TRIES {
            return false;
        }
        self.tokens_withheld = tokens_to_withhold(self.tokens_withheld, excess, required);
        self.tries += 1;
        // With fewer tokens the results are clipped to another length, so they are tried from the beginning.
        self.rendering = None;
        self.changes_candidates = false;
        true
    }

    /// Sends tool results shorter than in the round before, which had them as in `before`.
    pub(crate) fn shorten_results(&mut self, before: &ToolResultRendering, rendering: ToolResultRendering) {
        debug_assert!(rendering.follows(before), "{rendering:?} after {before:?}");
        self.rendering = Some(rendering);
        self.changes_candidates = false;
    }

    /// Starts the adjustments again that were made for another prompt. Returns `changed`.
    fn restarts_if(&mut self, changed: bool) -> bool {
        if changed {
            self.gives_up_documents = false;
            (self.tokens_withheld, self.tries) = (0, 0);
            self.rendering = None;
            self.changes_candidates = true;
        }
        changed
    }

    /// Returns the number of rounds that planning may take at most.
    pub(crate) fn most_rounds(log: &Conversation) -> usize {
        let texts = log.sent_with().all_documents().map(|(_, documents)| documents.len()).sum::<usize>()
            + log.sent_with().all_state().count();
        let losses = log.messages().len().saturating_add(texts).saturating_add(log.system().len());
        // Each loss may be found in a round of its own, and a text may be both a document and state.
        let rounds = losses.saturating_mul(2).saturating_add(1);
        rounds.saturating_mul(2 * (TRIES as usize + 1) * RENDERINGS)
    }

    /// Checks if the last adjustment changes the candidates, so that they are gathered again.
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

    /// Returns the tokens that are kept from the items.
    pub(crate) fn tokens_withheld(&self) -> u64 {
        self.tokens_withheld
    }

    /// Returns the tool results as they are sent. Returns `None` if that is as in the last prompt.
    pub(crate) fn rendering(&self) -> Option<&ToolResultRendering> {
        self.rendering.as_ref()
    }

    /// Returns the report on the reasoning of these rows, with a notice for each reason why some of it is
    /// withheld. `left` is sent all the same, for the provider to drop.
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
        lost.retain(|position, _| is_included(position));
        let lost =
            lost.into_iter().map(|(at, why)| DroppedReasoning { id: log.message_id(at), why }).collect();
        (ReasoningReport { sent, lost, switch }, notices)
    }
}

/// Returns the tokens to withhold from the items next, after `withheld`, for a prompt that is over its budget by `excess`
/// tokens, `required` of them in placeholder messages. It is always more.
pub(crate) fn tokens_to_withhold(withheld: u64, excess: u64, required: u64) -> u64 {
    let next = withheld.saturating_add(excess).max(required);
    debug_assert!(next > withheld || withheld == u64::MAX, "{next} after {withheld}");
    next
}
