//! An offer of tokens.
//!
//! - Input: the tokens left of the variables that limit an offer.
//! - Output: the tokens of the offer, and the reason to exclude a candidate that does not fit.
//! - Rules: none of its own.

use crate::{plan::reason::LimitedBy, planner::budget::BudgetVariable};

/// An offer of tokens to a section.
///
/// The offer is the minimum of several amounts: the rest of a budget variable, the rest of a second variable,
/// and the rest of a fixed cap. One of them binds. The others matter too: they bind once the first has grown
/// enough.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Tokens left of `variable`.
    left: u64,
    /// Tokens left of `variable`, without the tokens that merging state into the live question saves.
    left_without_merge: u64,
    /// Tokens left under the section's cap, or under the limit of rules of the user if that is smaller.
    under_cap: u64,
    /// The limit that `under_cap` belongs to.
    cap: LimitedBy,
    variable: BudgetVariable,
    /// A second variable that limits the offer, and the tokens left of it. For example the low mark (rule S5)
    /// or the limit of pins (rule S2).
    second_limit: Option<(BudgetVariable, u64)>,
    /// The same for a third one: the share of documents beside the limit of one question.
    third_limit: Option<(BudgetVariable, u64)>,
    /// The tokens left of the share of recalled messages (rule S15), if the candidate is one.
    of_recalled: Option<u64>,
    /// True if the walk through the conversation makes this offer (rule S4).
    in_walk: bool,
}

impl Room {
    /// Creates a room that one budget variable limits, with `tokens` left of it.
    pub(crate) fn new(tokens: u64, variable: BudgetVariable) -> Self {
        Self {
            left: tokens,
            left_without_merge: tokens,
            under_cap: u64::MAX,
            cap: LimitedBy::Cap,
            variable,
            second_limit: None,
            third_limit: None,
            of_recalled: None,
            in_walk: false,
        }
    }

    /// Adds the tokens that merging state saves.
    pub(super) fn with_merge(self, tokens: u64) -> Self {
        Self { left: self.left.saturating_add(tokens), ..self }
    }

    /// Limits the room to a cap, with `tokens` left under it.
    pub(super) fn under_cap(self, tokens: u64) -> Self {
        Self { under_cap: tokens, ..self }
    }

    /// Limits the room to `tokens` of the limit of rules of the user (rule R3).
    pub(super) fn for_rules(self, tokens: u64) -> Self {
        if tokens < self.under_cap {
            return Self { under_cap: tokens, cap: LimitedBy::RulesLimit, ..self };
        }
        self
    }

    /// Marks the room as an offer of the walk.
    pub(super) fn for_walk(self) -> Self {
        Self { in_walk: true, ..self }
    }

    /// Limits the room to `tokens` of a further variable.
    pub(super) fn at_most(self, tokens: u64, variable: BudgetVariable) -> Self {
        Self { second_limit: Some((variable, tokens)), third_limit: self.second_limit, ..self }
    }

    /// Limits the room to `tokens` of the share of recalled messages.
    pub(super) fn for_recalled(self, tokens: u64) -> Self {
        Self { of_recalled: Some(tokens), ..self }
    }

    /// Returns the room with `tokens` less of each limit but the share of recalled messages, which documents
    /// of the same offer have taken.
    pub(super) fn without(self, tokens: u64) -> Self {
        let rest = |left: u64| left.saturating_sub(tokens);
        Self {
            left: rest(self.left),
            left_without_merge: rest(self.left_without_merge),
            under_cap: if self.under_cap == u64::MAX { u64::MAX } else { rest(self.under_cap) },
            second_limit: self.second_limit.map(|(variable, left)| (variable, rest(left))),
            third_limit: self.third_limit.map(|(variable, left)| (variable, rest(left))),
            ..self
        }
    }

    /// Returns the room with `tokens` more of each limit but the share of recalled messages, which documents
    /// gave back for fuller forms.
    pub(super) fn with(self, tokens: u64) -> Self {
        let more = |left: u64| left.saturating_add(tokens);
        Self {
            left: more(self.left),
            left_without_merge: more(self.left_without_merge),
            under_cap: more(self.under_cap),
            second_limit: self.second_limit.map(|(variable, left)| (variable, more(left))),
            third_limit: self.third_limit.map(|(variable, left)| (variable, more(left))),
            ..self
        }
    }

    /// Returns the room without the tokens that merging state saves. State is not merged if something follows
    /// the live question, or may still be included after it.
    pub(super) fn without_merge(self) -> Self {
        Self { left: self.left_without_merge, ..self }
    }

    /// Checks if merging state makes the room larger.
    pub(super) fn counts_on_merge(self) -> bool {
        self.left != self.left_without_merge
    }

    /// Returns the tokens of the offer.
    pub(crate) fn tokens(self) -> u64 {
        self.uncapped().min(self.under_cap)
    }

    /// Returns the reason to exclude a candidate that does not fit: the cap or the second limit if it binds,
    /// or else `otherwise`.
    pub(super) fn limited_by(self, otherwise: LimitedBy) -> LimitedBy {
        let smallest = self.second_limit.into_iter().chain(self.third_limit).min_by_key(|(_, left)| *left);
        match smallest {
            _ if self.under_cap < self.uncapped() => self.cap,
            _ if self.of_recalled.is_some_and(|most| most < self.with_second_limit()) => {
                LimitedBy::RecallShare
            }
            Some((BudgetVariable::PinsLimit, most)) if most < self.left => LimitedBy::PinsLimit,
            Some((BudgetVariable::QuestionLimit, most)) if most < self.left => LimitedBy::QuestionLimit,
            _ => otherwise,
        }
    }

    /// Returns the variables that limit the offer: first the one that binds, or would bind without the cap.
    /// Each comes with the tokens that it leaves beyond the offer.
    pub(crate) fn limits(self) -> impl Iterator<Item = (BudgetVariable, u64)> {
        let tokens = self.tokens();
        let recalled = self.of_recalled.map(|most| (BudgetVariable::RecallShare, most));
        let mut limits = [Some((self.variable, self.left)), self.second_limit, self.third_limit, recalled];
        // A stable order: of equal limits, the earlier one counts as the one that binds.
        limits.sort_by_key(|limit| limit.map_or(u64::MAX, |(_, left)| left));
        // No difference is negative, because the offer is the least of all limits.
        limits.into_iter().flatten().map(move |(variable, left)| (variable, left - tokens))
    }

    /// Returns the tokens by which the offer may grow before the cap stops it.
    pub(crate) fn below_cap(self) -> u64 {
        self.under_cap - self.tokens()
    }

    /// Checks if the walk makes this offer.
    pub(crate) fn is_of_walk(self) -> bool {
        self.in_walk
    }

    /// Returns the tokens of the offer without the section's cap.
    fn uncapped(self) -> u64 {
        self.of_recalled.unwrap_or(u64::MAX).min(self.with_second_limit())
    }

    fn with_second_limit(self) -> u64 {
        let limits = self.second_limit.into_iter().chain(self.third_limit);
        limits.map(|(_, most)| most).fold(self.left, u64::min)
    }
}
