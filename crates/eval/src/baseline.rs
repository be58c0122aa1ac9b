//! Rules that applications use in place of a planner, to compare with.

use crate::counted::Counted;
use context_window::Role;
use context_window_recall::TextRanking;
use std::{fmt, str::FromStr};

/// A rule that selects messages and documents in place of the planner.
///
/// Every rule sends system texts, notes, tools and the question, and every rule but [`Baseline::Oracle`] the
/// system messages at the start. Each message has the token count of the planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Baseline {
    /// The newest messages until the budget is full.
    Newest,
    /// The newest messages until the budget is full, from a user message on: the rule of `trim_messages` in
    /// `LangChain` with `strategy="last"`, `start_on="human"` and `include_system=True`.
    LangChain,
    /// Retrieval alone: the messages and documents with the best BM25 score for the question.
    Bm25,
    /// Documents in the order of their scores until one does not fit, then the newest messages.
    BestScore,
    /// The evidence alone, as far as it fits: the upper bound for questions with all their evidence.
    Oracle,
}

impl Baseline {
    /// All baselines, in the order of reports.
    pub const ALL: [Self; 5] = [Self::Newest, Self::LangChain, Self::Bm25, Self::BestScore, Self::Oracle];

    /// Returns the name of the baseline.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::LangChain => "langchain",
            Self::Bm25 => "bm25",
            Self::BestScore => "best-score",
            Self::Oracle => "oracle",
        }
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Baseline {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|baseline| baseline.name() == name);
        found.ok_or_else(|| format!("no baseline `{name}`; expected one of {}", names()))
    }
}

/// The candidates of one prompt.
pub(crate) struct Candidates<'a> {
    /// The messages before the question.
    pub(crate) messages: &'a [Counted],
    pub(crate) question: &'a Counted,
    /// The documents, best first.
    pub(crate) documents: &'a [Counted],
    /// The evidence, as far as it is among the messages and documents.
    pub(crate) evidence: Vec<&'a Counted>,
    pub(crate) budget: u64,
    pub(crate) overhead: u64,
}

/// The selected items of one prompt, in the order in which they are sent.
pub(crate) struct Selected<'a> {
    pub(crate) items: Vec<&'a Counted>,
    pub(crate) tokens: u64,
}

impl Baseline {
    /// Selects the items of one prompt.
    pub(crate) fn select<'a>(self, candidates: &Candidates<'a>) -> Selected<'a> {
        // Only those at the start: a later system message is part of the conversation and can be dropped.
        let is_system = |item: &&Counted| item.role == Some(Role::System);
        let start = candidates.messages.iter().take_while(is_system).count();
        let (system, turns) = candidates.messages.split_at(if self == Self::Oracle { 0 } else { start });
        let required = system.iter().chain([candidates.question]).map(|item| item.tokens).sum::<u64>();
        // A budget that is too small for the required items leaves no room, and the prompt overflows.
        let mut room = Room { left: candidates.budget.saturating_sub(candidates.overhead + required) };
        let (documents, mut chosen): (Vec<&Counted>, Vec<&Counted>) = match self {
            Self::Newest | Self::LangChain => (Vec::new(), room.reserve_newest(turns)),
            Self::BestScore => {
                let documents =
                    candidates.documents.iter().take_while(|item| room.try_reserve(item)).collect();
                (documents, room.reserve_newest(turns))
            }
            // An item that does not fit is passed over, because a smaller one may fit.
            Self::Bm25 => {
                let all: Vec<&Counted> = turns.iter().chain(candidates.documents).collect();
                let ranking = TextRanking::new(all.iter().map(|item| item.text.as_str()));
                let best = ranking.best(&candidates.question.text).into_iter();
                let mut fitting: Vec<usize> =
                    best.map(|(at, _)| at).filter(|at| room.try_reserve(all[*at])).collect();
                fitting.sort_unstable();
                fitting.into_iter().map(|at| all[at]).partition(|item| item.role.is_none())
            }
            Self::Oracle => {
                let fitting = candidates.evidence.iter().copied().filter(|item| room.try_reserve(item));
                fitting.partition(|item| item.role.is_none())
            }
        };
        // The trimmed list may begin with a reply or a tool result, which providers refuse.
        if self == Self::LangChain {
            let first = chosen.iter().position(|item| item.role == Some(Role::User)).unwrap_or(chosen.len());
            chosen.drain(..first);
        }
        let items: Vec<&Counted> =
            system.iter().chain(chosen).chain(documents).chain([candidates.question]).collect();
        let tokens = candidates.overhead + items.iter().map(|item| item.tokens).sum::<u64>();
        Selected { items, tokens }
    }
}

/// The tokens that are left of a budget.
struct Room {
    left: u64,
}

impl Room {
    /// Reserves the tokens of an item. Returns false if they are not left.
    fn try_reserve(&mut self, item: &Counted) -> bool {
        let fits = item.tokens <= self.left;
        self.left -= if fits { item.tokens } else { 0 };
        fits
    }

    /// Reserves the newest messages until one does not fit. Returns them in the order of the conversation.
    fn reserve_newest<'a>(&mut self, messages: &'a [Counted]) -> Vec<&'a Counted> {
        let mut newest: Vec<&Counted> =
            messages.iter().rev().take_while(|item| self.try_reserve(item)).collect();
        newest.reverse();
        newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use context_window::ItemId;

    fn item(id: &str, role: Option<Role>, tokens: u64) -> Counted {
        Counted { id: ItemId::from(id), role, tokens, text: format!("text of {id}") }
    }

    fn ids(baseline: Baseline, budget: u64) -> Vec<String> {
        let (user, reply) = (Some(Role::User), Some(Role::Assistant));
        let messages = [
            item("s", Some(Role::System), 5),
            item("u1", user, 10),
            item("a1", reply, 10),
            item("u2", user, 10),
            item("a2", reply, 10),
        ];
        let documents = [item("d1", None, 20), item("d2", None, 30), item("d3", None, 5)];
        let question = item("u1", user, 10);
        let candidates = Candidates {
            messages: &messages,
            question: &question,
            documents: &documents,
            evidence: vec![&messages[1], &documents[1]],
            budget,
            overhead: 3,
        };
        let selected = baseline.select(&candidates);
        assert!(selected.tokens <= budget || selected.items.len() == 2);
        selected.items.iter().map(|item| item.id.to_string()).collect()
    }

    #[test]
    fn each_rule_selects_its_items() {
        assert_eq!(ids(Baseline::Newest, 49), ["s", "a1", "u2", "a2", "u1"]);
        assert_eq!(ids(Baseline::LangChain, 49), ["s", "u2", "a2", "u1"]);
        assert_eq!(ids(Baseline::BestScore, 49), ["s", "a2", "d1", "u1"]);
        assert_eq!(ids(Baseline::Bm25, 30), ["s", "u1", "u1"], "the words of the question come first");
        assert_eq!(ids(Baseline::Oracle, 60), ["u1", "d2", "u1"]);
        assert_eq!(ids(Baseline::Newest, 1), ["s", "u1"], "nothing else fits");
    }
}
