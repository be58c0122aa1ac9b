//! The range of budgets over which a solution stays as it is.

use super::{many_budgets::ManyBudgets, slack::Slack};
use crate::planner::{
    budget::{BudgetVariable, Budgets},
    select::Selector,
    solve::Solution,
};

/// Returns the most tokens, up to `most`, that may be available while everything is decided as in this
/// solution.
pub(super) fn up(solution: &Solution<'_, ManyBudgets>, most: i128) -> i128 {
    let holds = holds(solution, |slack| &slack.growth, |now, then| then - now);
    let available = solution.available;
    available + gallop((most - available).max(0), |step| holds(available + step))
}

/// Returns the fewest tokens, down to `least`, that may be available while everything is decided as in this
/// solution.
pub(super) fn down(solution: &Solution<'_, ManyBudgets>, least: i128) -> i128 {
    let holds = holds(solution, |slack| &slack.fall, |now, then| now - then);
    let available = solution.available;
    available - gallop((available - least).max(0), |step| holds(available - step))
}

/// Returns a check of other numbers of available tokens: true if everything is decided as in this solution,
/// because in every trial no variable moves as far as its slack.
fn holds<'s>(
    solution: &'s Solution<'_, ManyBudgets>,
    side: fn(&Slack) -> &[u64; BudgetVariable::ALL.len()],
    moved: fn(i128, i128) -> i128,
) -> impl Fn(i128) -> bool + 's {
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

/// Returns the value of each variable if so many tokens are available, and the same is decided about the
/// minimum.
fn values(
    selector: &Selector<'_, ManyBudgets>,
    like: &Budgets,
    available: i128,
) -> [i128; BudgetVariable::ALL.len()] {
    let budgets = selector.demands.at(available, like, selector.config);
    BudgetVariable::ALL.map(|variable| budgets.value(variable, selector.config))
}

/// The largest number of steps, no more than `most`, so that every number up to it holds. Requires `holds` to
/// be monotone: once false, it stays false.
fn gallop(most: i128, holds: impl Fn(i128) -> bool) -> i128 {
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
