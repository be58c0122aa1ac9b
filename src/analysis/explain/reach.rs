//! The range of budgets over which a solution stays the same.

use super::{many_budgets::ManyBudgets, slack::Slack};
use crate::planner::{
    budget::{BudgetVariable, Budgets},
    select::Selector,
    solve::Solution,
};

/// Returns the largest number of available tokens, up to `most`, at which every decision is as in this
/// solution.
pub(super) fn up(solution: &Solution<'_, ManyBudgets>, most: i128) -> i128 {
    let holds = holds(solution, |slack| &slack.growth, |now, then| then - now);
    let available = solution.available;
    available + gallop((most - available).max(0), |step| holds(available + step))
}

/// Returns the smallest number of available tokens, down to `least`, at which every decision is as in this
/// solution.
pub(super) fn down(solution: &Solution<'_, ManyBudgets>, least: i128) -> i128 {
    let holds = holds(solution, |slack| &slack.fall, |now, then| now - then);
    let available = solution.available;
    available - gallop((available - least).max(0), |step| holds(available - step))
}

/// Returns a check of other numbers of available tokens. It is true if every decision is as in this solution,
/// because no variable of any trial moves as far as its slack.
fn holds<'s>(
    solution: &'s Solution<'_, ManyBudgets>,
    side: fn(&Slack) -> &[u64; BudgetVariable::ALL.len()],
    moved: fn(i128, i128) -> i128,
) -> impl Fn(i128) -> bool + 's {
    // The present values are computed once, because the search calls the check many times.
    let now: Vec<[i128; BudgetVariable::ALL.len()]> = solution
        .trials
        .iter()
        .map(|trial| values(&trial.selector, &trial.budgets, solution.available))
        .collect();
    move |available| {
        solution.trials.iter().zip(&now).all(|(trial, now)| {
            let then = values(&trial.selector, &trial.budgets, available);
            let slack = side(&trial.heard);
            (0..now.len()).all(|variable| moved(now[variable], then[variable]) < i128::from(slack[variable]))
        })
    }
}

/// Returns the value of each variable with `available` tokens, if the decisions about the minimum and pins
/// are those of `like`.
fn values(
    selector: &Selector<'_, ManyBudgets>,
    like: &Budgets,
    available: i128,
) -> [i128; BudgetVariable::ALL.len()] {
    let budgets = selector.demands.at(available, like, selector.config);
    BudgetVariable::ALL.map(|variable| budgets.value(variable, selector.config))
}

/// Returns the largest number up to `most` such that `holds` is true for every number up to it. `holds` must
/// stay false once it is false.
fn gallop(most: i128, holds: impl Fn(i128) -> bool) -> i128 {
    // The steps double until one fails, then bisection finds the exact number. The work is the logarithm of
    // the result, not of `most`.
    let (mut good, mut step) = (0, 1);
    while good < most && holds((good + step).min(most)) {
        good = (good + step).min(most);
        step *= 2;
    }
    let mut bad = (good + step).min(most + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if holds(middle) { good = middle } else { bad = middle }
    }
    good
}
