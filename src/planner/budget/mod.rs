//! How much there is, and how it is shared (rules B1, B4, B5, S6).

use crate::{
    config::Config,
    error::{Error, Repr},
    item::Section,
    plan::BudgetSource,
    planner::candidates::{Pool, Scale},
    provider::model::{Limits, RequestLimits},
};

mod demand;
mod fill;
pub(crate) mod remedies;

/// What a section has to have, what it could use, and what it gets; tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pot {
    pub(crate) share: u16,
    pub(crate) cap: Option<u64>,
    pub(crate) minimum: u64,
    pub(crate) demand: u64,
    pub(crate) budget: u64,
}

/// The three pots, in the order of [`Section::ALL`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budgets {
    pub(crate) pots: [Pot; 3],
    /// The minimums alone are too much: they are all there is in the plan (rule S6).
    pub(crate) overflow: bool,
    /// What the minimums come to.
    pub(crate) least: u64,
    /// What there is to share.
    pub(crate) total: u64,
    /// What there is for the minimum alone, where that lets state be merged.
    pub(crate) for_minimum: u64,
    /// What is kept of the total for the documents' block.
    pub(crate) kept: u64,
    /// The block's reserve was needed for the minimums: no document can come in.
    pub(crate) no_block: bool,
}

/// Tokens the prompt may take (rule B1), and what that number came from.
///
/// # Errors
///
/// `ErrorKind::Budget` when it is not positive, with the numbers.
pub(crate) fn prompt_budget(limits: Limits, asked: RequestLimits) -> Result<(u64, BudgetSource), Error> {
    let wide = i128::from;
    let of_window = wide(limits.context_len) - wide(limits.max_completion);
    let safety = limits.safety_buffer;
    let (left, source, formula) = match (asked.prompt_budget, limits.max_input) {
        (Some(0), _) => return Err(Error::new(Repr::NothingAsked)),
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
                limits.context_len, limits.max_completion
            ),
        ),
    };
    match u64::try_from(left) {
        Ok(budget) if budget > 0 => Ok((budget, source)),
        _ => Err(Error::new(Repr::NoBudget { formula, left })),
    }
}

/// What there is to share out; tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Supply {
    /// All of it.
    pub(crate) total: u64,
    /// How far it is below nothing, where what is sent in any case is more than the budget.
    pub(crate) below: u64,
    /// What of it is kept for the documents' block.
    pub(crate) reserved: u64,
    /// What merging state saves while there is nothing but the minimum: no budget foresees it, but a minimum that fits
    /// by it is no overflow.
    pub(crate) merge: u64,
}

/// What the sections want: what they have to have, and what they could use of so much.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    minimums: [u64; 3],
    least: u64,
    demands: [u64; 3],
}

impl Wanted {
    /// What the sections want of no more than `total` tokens.
    ///
    /// # Errors
    ///
    /// Whatever weighing the candidates runs into.
    pub(crate) fn of(total: u64, config: &Config, pool: &Pool<'_>, scale: &Scale<'_>) -> Result<Self, Error> {
        let minimums = minimums(pool, scale)?;
        let least = minimums.iter().fold(0, |sum: u64, m| sum.saturating_add(*m));
        let mut wanted = Self { minimums, least, demands: minimums };
        if least <= total {
            wanted.demands = demand::of(&wanted.pots(total, config), total, config, pool, scale)?;
        }
        Ok(wanted)
    }

    /// The pots, each with what it could use of `total`, which is no more than what was asked about.
    fn pots(&self, total: u64, config: &Config) -> [Pot; 3] {
        Section::ALL.map(|section| {
            let options = config.sections.of(section);
            let minimum = self.minimums[section as usize];
            let pot =
                Pot { share: options.share, cap: options.cap, minimum, demand: minimum, budget: minimum };
            let demand = self.demands[section as usize].min(ceiling(&pot, total)).max(minimum);
            Pot { demand, ..pot }
        })
    }

    /// Shares out what there is. The scale keeps what that rested on.
    pub(crate) fn divide(&self, supply: Supply, config: &Config, scale: &Scale<'_>) -> Budgets {
        let Supply { total, below, reserved, merge } = supply;
        let least = self.least.saturating_sub(merge);
        let fits = |total: u64, least: u64| {
            scale.trace(|trace| trace.compared(total, least.saturating_add(below)));
            least <= total
        };
        // A minimum of nothing fits whatever is reserved.
        let beside = |reserved: u64| if least == 0 { 0 } else { least.saturating_add(reserved) };
        let no_block = reserved > 0 && !fits(total, beside(reserved));
        let kept = if no_block { 0 } else { reserved };
        let overflow = !fits(total, beside(kept));
        let to_share = total.saturating_sub(kept);
        let pots = self.pots(0, config);
        let mut budgets =
            Budgets { pots, overflow, least: self.least, total: to_share, for_minimum: 0, kept, no_block };
        if self.least == 0 || fits(total, self.least.saturating_add(kept)) {
            budgets.pots = self.shared_out(to_share, no_block, config);
        }
        budgets.for_minimum = to_share.saturating_add(merge);
        budgets
    }

    /// The budgets of another total, where the same is decided about the minimum as in these budgets.
    pub(crate) fn at(&self, total: u64, like: &Budgets, config: &Config) -> Budgets {
        let mut budgets = Budgets { total, ..*like };
        if self.least <= total {
            budgets.pots = self.shared_out(total, like.no_block, config);
        }
        budgets
    }

    fn shared_out(&self, total: u64, no_block: bool, config: &Config) -> [Pot; 3] {
        let mut pots = self.pots(total, config);
        if no_block {
            let rag = &mut pots[Section::Rag as usize];
            rag.demand = rag.minimum;
        }
        fill::share_out(&mut pots, total);
        pots
    }
}

impl Budgets {
    /// What a section was given.
    pub(crate) fn of(&self, section: Section) -> u64 {
        self.pots[section as usize].budget
    }
}

/// What a section may hold beside its minimum: its cap, and never more than there is.
fn ceiling(pot: &Pot, total: u64) -> u64 {
    pot.cap.unwrap_or(u64::MAX).min(total).max(pot.minimum)
}

/// What the minimum costs, by section.
fn minimums(pool: &Pool<'_>, scale: &Scale<'_>) -> Result<[u64; 3], Error> {
    let mut sums = [0u64; 3];
    for (unit, section, _) in pool.minimum() {
        let sum = &mut sums[section as usize];
        *sum = sum.saturating_add(scale.whole(unit)?);
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(context_len: u64, max_completion: u64, safety: u64) -> Result<u64, Error> {
        let limits = Limits { context_len, max_input: None, max_completion, safety_buffer: safety };
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
            context_len: 400_000,
            max_input: Some(272_000),
            max_completion: 100_000,
            safety_buffer: 1_024,
        };
        let (budget, source) = prompt_budget(limits, RequestLimits::new()).unwrap();
        assert_eq!((budget, source), (270_976, BudgetSource::MaxInput));
    }
}
