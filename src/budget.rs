//! How much there is, and how it is shared (rules B1, B4, B5, S6).

use crate::{
    candidates::{Pool, Scale},
    config::Config,
    error::{Error, Repr},
    item::Section,
    model::{Limits, RequestLimits},
    plan::BudgetSource,
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

/// Shares `total` tokens out, of which `reserved` are kept for the documents' block. `merge` is what merging state saves
/// while there is nothing but the minimum: no budget foresees it, but a minimum that fits by it is no overflow.
///
/// # Errors
///
/// Whatever weighing the candidates runs into.
pub(crate) fn divide(
    total: u64,
    reserved: u64,
    merge: u64,
    config: &Config,
    pool: &Pool<'_>,
    scale: &Scale<'_>,
) -> Result<Budgets, Error> {
    let minimums = minimums(pool, scale)?;
    let least = minimums.iter().fold(0, |sum: u64, m| sum.saturating_add(*m));
    let within = total.saturating_sub(reserved);
    let fits = |total: u64| least <= total.saturating_add(merge);
    let no_block = !fits(within) && reserved > 0;
    let total = if no_block { total } else { within };
    let overflow = !fits(total);
    let mut pots = Section::ALL.map(|section| {
        let options = config.sections.of(section);
        let minimum = minimums[section as usize];
        Pot { share: options.share, cap: options.cap, minimum, demand: minimum, budget: minimum }
    });
    if least <= total {
        demand::fill_in(&mut pots, total, no_block, config, pool, scale)?;
        fill::share_out(&mut pots, total);
    }
    let for_minimum = total.saturating_add(merge);
    Ok(Budgets { pots, overflow, least, total, for_minimum, no_block })
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
        insta::assert_snapshot!(budget(4000, 4096, 80).unwrap_err(), @"no room for a prompt: context_len 4000 - max_completion 4096 - safety_buffer 80 leaves -176 tokens; raise context_len, lower max_completion or safety_buffer, or ask for a budget");
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
