//! The division of the prompt budget among the sections.
//!
//! - Input: limits, costs of the minimum, demands.
//! - Output: the tokens of each section.
//! - Rules: B1, B4, B5, S6.
//!
//! There are three amounts, each derived from the one before:
//!
//! - The **prompt budget** limits the whole prompt (B1).
//! - [`Available`] is the prompt budget less the overhead of every prompt: declared tools and the reply
//!   header.
//! - The **section budgets** divide the available tokens. Pins take their part first (S2), and count as part
//!   of their section's minimum. Each section first gets its minimum, then grows with its share, and stops at
//!   its demand or its cap.
//!
//! Tokens that one section does not need go to the others at once. [`water_filling`] finds that division
//! exactly, in whole numbers.
//!
//! Invariants:
//!
//! - The section budgets never sum to more than the tokens to divide.
//! - If the minimums fit, every section gets at least its minimum.
//! - With the same pins, no section gets less if there is one token more.

use crate::{
    config::Config,
    error::{Error, Repr},
    item::Section,
    plan::BudgetSource,
    planner::candidates::{CandidateIndex, Costs},
    provider::model::{Limits, RequestLimits},
};

mod available;
mod variable;
mod water_filling;
mod demand;

use available::per_mille;
pub(crate) use available::{Available, clamped};
pub(crate) use variable::BudgetVariable;

/// The minimum, demand and budget of one section, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SectionBudget {
    /// Share in per mille of the tokens to divide.
    pub(crate) share: u16,
    pub(crate) cap: Option<u64>,
    pub(crate) minimum: u64,
    pub(crate) demand: u64,
    pub(crate) budget: u64,
}

impl SectionBudget {
    /// Returns the maximum that the section may hold: its cap, at most `total`, at least its minimum.
    fn ceiling(&self, total: u64) -> u64 {
        self.cap.unwrap_or(u64::MAX).min(total).max(self.minimum)
    }
}

/// The budgets of all sections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budgets {
    /// The sections in the order of [`Section::ALL`].
    pub(crate) sections: [SectionBudget; 3],
    /// The divided tokens. Nothing is reserved for the wrapper around documents if the minimums need its
    /// tokens.
    pub(crate) available: Available,
    /// The sum of the minimums in tokens, without droppable pins.
    pub(crate) minimum: u64,
    /// The tokens of the pins that came before everything else.
    pins: u64,
    /// True if the minimums alone exceed the available tokens; nothing else is included (overflow, S6).
    pub(crate) overflow: bool,
    /// True if the minimums need the tokens reserved for the documents' wrapper; no document can be included.
    no_documents: bool,
    /// The tokens saved by merging state while nothing but the minimum is included.
    merged_minimum: u64,
}

/// Returns the prompt budget in tokens, and its source (rule B1).
///
/// # Errors
///
/// `ErrorKind::Budget` with the numbers if the budget is not positive.
pub(crate) fn prompt_budget(limits: Limits, requested: RequestLimits) -> Result<(u64, BudgetSource), Error> {
    // In 128 bits: the sum of completion and safety buffer may exceed the context length, and 64 bits.
    let wide = i128::from;
    let of_window = wide(limits.model_context_len) - wide(limits.max_completion_tokens);
    let safety = limits.safety_buffer;
    let (left, source, formula) = match (requested.prompt_budget, limits.max_input) {
        (Some(0), _) => return Err(Error::new(Repr::ZeroBudget)),
        (Some(budget), _) => return Ok((budget, BudgetSource::Request)),
        (None, Some(cap)) if wide(cap) < of_window => (
            wide(cap) - wide(safety),
            BudgetSource::MaxInput,
            format!("max_input {cap} - safety_buffer {safety}"),
        ),
        (None, _) => (
            of_window - wide(safety),
            BudgetSource::ContextLen,
            format!(
                "context_len {} - max_completion {} - safety_buffer {safety}",
                limits.model_context_len, limits.max_completion_tokens
            ),
        ),
    };
    match u64::try_from(left) {
        Ok(budget) if budget > 0 => Ok((budget, source)),
        _ => Err(Error::new(Repr::NoBudget { formula, left })),
    }
}

/// The minimums and demands of the sections, in tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SectionDemands {
    minimums: [u64; 3],
    /// The sum of the minimums.
    minimum: u64,
    demands: [u64; 3],
    /// The demand of recalled messages, which have a share of the documents' section (rule S15).
    recalled: u64,
    /// True if state is merged into the live question while nothing but the minimum is included.
    merges: bool,
    /// True if documents stay with their question. The documents of one question then have a limit (rule
    /// S10).
    documents_stay: bool,
}

impl SectionDemands {
    /// Counts the demands of the sections, up to `total` tokens.
    ///
    /// # Errors
    ///
    /// Fails if counting a candidate fails.
    pub(crate) fn count(
        total: u64,
        config: &Config,
        index: &CandidateIndex<'_>,
        costs: &Costs<'_>,
    ) -> Result<Self, Error> {
        let mut minimums = [0u64; 3];
        for (id, section, _) in index.minimum() {
            let sum = &mut minimums[section as usize];
            *sum = sum.saturating_add(costs.whole(id)?);
        }
        // A sum that saturates exceeds every budget anyway.
        let minimum = minimums.iter().fold(0, |sum: u64, m| sum.saturating_add(*m));
        let merges = index.merges_in_minimum();
        let documents_stay = index.documents_stay;
        let mut demands = Self { minimums, minimum, demands: minimums, recalled: 0, merges, documents_stay };
        // Under an overflow nothing beyond the minimum is included, so demands are not counted.
        if minimum <= total {
            (demands.demands, demands.recalled) =
                demand::count_demands(&demands.sections(total, 0, config), total, config, index, costs)?;
        }
        Ok(demands)
    }

    /// Returns the demands with documents that can use any number of tokens.
    pub(crate) fn with_any_documents(mut self) -> Self {
        self.demands[Section::Rag as usize] = u64::MAX;
        self
    }

    /// Returns the sections with their demands for `total` tokens, at most the number that they were counted
    /// for. `pins` are the tokens of pins that came first; they belong to the minimum of their section.
    fn sections(&self, total: u64, pins: u64, config: &Config) -> [SectionBudget; 3] {
        Section::ALL.map(|section| {
            let options = config.sections.section(section);
            let pins = if section == Section::SystemPinned { pins } else { 0 };
            let minimum = self.minimums[section as usize].saturating_add(pins);
            let own = SectionBudget {
                share: options.share,
                cap: options.cap,
                minimum,
                demand: minimum,
                budget: minimum,
            };
            let limit = if section == Section::Rag && self.documents_stay {
                per_mille(total, config.rag.question_limit)
            } else {
                u64::MAX
            };
            let recalled = if section == Section::Rag {
                self.recalled.min(per_mille(total, config.rag.recall_share))
            } else {
                0
            };
            // The demand may have been counted for a larger total, so it is reduced to this one.
            let demand = self.demands[section as usize].saturating_add(recalled);
            let demand = demand.min(own.ceiling(total)).min(limit).max(minimum);
            SectionBudget { demand, ..own }
        })
    }

    /// Returns the sum of the minimums, less the tokens that merging state saves in them. Budgets never count
    /// on these tokens, but a minimum that fits because of them is no overflow.
    fn least(&self, available: &Available) -> u64 {
        self.minimum.saturating_sub(if self.merges { available.merge } else { 0 })
    }

    /// Checks if the minimums alone exceed the available tokens (rule S6). Calls `report` with the available
    /// tokens and the tokens that are needed.
    pub(crate) fn overflow(&self, available: &Available, report: impl Fn(u64, u64)) -> bool {
        !fits(self.least(available), available, report)
    }

    /// Returns the budgets of the minimums alone.
    pub(crate) fn only_minimums(&self, available: Available, config: &Config) -> Budgets {
        let merged_minimum = self.minimum - self.least(&available);
        let no_documents = available.reserved() > 0;
        let available = Available { reserves_block: false, ..available };
        let sections = self.sections(0, 0, config);
        Budgets {
            sections,
            available,
            minimum: self.minimum,
            pins: 0,
            overflow: true,
            no_documents,
            merged_minimum,
        }
    }

    /// Divides the available tokens among the sections, if the minimums fit. Calls `report` with the
    /// available tokens and the tokens that are needed.
    pub(crate) fn divide(
        &self,
        available: Available,
        pins: u64,
        merges: bool,
        config: &Config,
        report: impl Fn(u64, u64),
    ) -> Budgets {
        let minimum = self.minimum.saturating_add(pins);
        let merged_minimum = if merges { available.merge } else { 0 };
        let reserved = available.reserved();
        // An empty minimum fits whatever is reserved.
        let no_documents = reserved > 0
            && minimum > 0
            && !fits(minimum.saturating_sub(merged_minimum).saturating_add(reserved), &available, &report);
        let available = Available { reserves_block: available.reserves_block && !no_documents, ..available };
        let sections = self.sections(0, pins, config);
        let budgets = Budgets {
            sections,
            available,
            minimum: self.minimum,
            pins,
            overflow: false,
            no_documents,
            merged_minimum,
        };
        if minimum == 0 || fits(minimum.saturating_add(available.reserved()), &available, report) {
            return self.divided(&budgets, config);
        }
        budgets
    }

    /// Returns the budgets for another total at which the decisions on the minimum and on pins are the same.
    pub(crate) fn budgets_at(&self, tokens: i128, like: &Budgets, config: &Config) -> Budgets {
        let budgets = Budgets { available: Available { tokens, ..like.available }, ..*like };
        let fits = self.minimum.saturating_add(like.pins) <= budgets.available.to_divide();
        if fits { self.divided(&budgets, config) } else { budgets }
    }

    /// Returns these budgets with the tokens divided among the sections.
    fn divided(&self, budgets: &Budgets, config: &Config) -> Budgets {
        let total = budgets.available.to_divide();
        let mut sections = self.sections(total, budgets.pins, config);
        if budgets.no_documents {
            let rag = &mut sections[Section::Rag as usize];
            rag.demand = rag.minimum;
        }
        water_filling::share_out(&mut sections, total);
        Budgets { sections, ..*budgets }
    }
}

/// Checks if at least `least` tokens are available, and reports the comparison.
fn fits(least: u64, available: &Available, report: impl Fn(u64, u64)) -> bool {
    let total = available.total();
    report(total, least.saturating_add(available.missing()));
    least <= total
}

impl Budgets {
    /// Returns the budget of a section.
    pub(crate) fn budget(&self, section: Section) -> u64 {
        self.sections[section as usize].budget
    }

    /// Returns the tokens for the minimum alone, with those that merging state saves in it.
    pub(crate) fn minimum_budget(&self) -> u64 {
        self.available.to_divide().saturating_add(self.merged_minimum)
    }

    /// Returns the low mark of the conversation's budget, to which its window is cut (rule S5).
    pub(crate) fn low_mark(&self, config: &Config) -> u64 {
        per_mille(self.budget(Section::Conversation), config.conversation.low_mark)
    }

    /// Returns the tokens of the documents' share, at most their budget (rule S5).
    pub(crate) fn document_share(&self) -> u64 {
        self.full_document_share().min(self.budget(Section::Rag))
    }

    /// Returns the tokens of the documents' share. Other documents may join the retained ones up to this
    /// amount (rule S5).
    pub(crate) fn full_document_share(&self) -> u64 {
        per_mille(self.available.to_divide(), self.sections[Section::Rag as usize].share)
    }

    /// Returns the value of a budget variable under these budgets, in tokens.
    pub(crate) fn value(&self, variable: BudgetVariable, config: &Config) -> i128 {
        i128::from(match variable {
            BudgetVariable::SystemPinned => self.budget(Section::SystemPinned),
            BudgetVariable::Conversation => self.budget(Section::Conversation),
            BudgetVariable::Rag => self.budget(Section::Rag),
            BudgetVariable::LowMark => self.low_mark(config),
            BudgetVariable::DocumentShare => self.document_share(),
            BudgetVariable::FullDocumentShare => self.full_document_share(),
            BudgetVariable::PinsLimit => self.available.for_pins(config.sections.pins_limit),
            BudgetVariable::QuestionLimit => self.available.question_limit(config.rag.question_limit),
            BudgetVariable::RecallShare => self.available.recall_share(config.rag.recall_share),
            BudgetVariable::Free => return self.available.tokens,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(context_len: u64, max_completion: u64, safety: u64) -> Result<u64, Error> {
        let limits = Limits {
            model_context_len: context_len,
            max_input: None,
            max_completion_tokens: max_completion,
            safety_buffer: safety,
        };
        prompt_budget(limits, RequestLimits::new()).map(|(budget, _)| budget)
    }

    #[test]
    fn behaviour_1_the_budget_never_wraps() {
        assert_eq!(budget(1000, 200, 100).unwrap(), 700);
        assert_eq!(budget(u64::MAX, 0, 0).unwrap(), u64::MAX);
        for (context, completion, safety) in
            [(0, 0, 0), (100, 100, 0), (100, u64::MAX, u64::MAX), (0, u64::MAX, u64::MAX)]
        {
            let error = budget(context, completion, safety).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Budget);
        }
        insta::assert_snapshot!(budget(4000, 4096, 80).unwrap_err(), @"no tokens left for a prompt: context_len 4000 - max_completion 4096 - safety_buffer 80 leaves -176 tokens; raise context_len, lower max_completion or safety_buffer, or set a budget");
    }

    #[test]
    fn behaviour_1_a_models_input_limit_caps_the_budget() {
        let limits = Limits {
            model_context_len: 400_000,
            max_input: Some(272_000),
            max_completion_tokens: 100_000,
            safety_buffer: 1_024,
        };
        let (budget, source) = prompt_budget(limits, RequestLimits::new()).unwrap();
        assert_eq!((budget, source), (270_976, BudgetSource::MaxInput));
    }
}
