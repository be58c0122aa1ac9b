//! Water-filling in whole numbers.
//!
//! - Input: the share, minimum and demand of each section, and the tokens to divide.
//! - Output: the budget of each section: `clamp(λ·share, minimum, demand)`, with the one λ that makes the
//!   budgets sum to these tokens.
//! - Rules: B5.
//!
//! λ is a whole number of steps here, and `unit` steps are one token per per mille of share. Every share
//! divides `unit`, so each λ at which a section reaches its minimum or demand is exact. Shares are at most
//! 1,000, so `unit` is at most 10^9, and no product below exceeds 128 bits.

use super::SectionBudget;

/// Sets the budgets. The minimums must fit into `total`, and no demand may be below its minimum.
pub(super) fn share_out(sections: &mut [SectionBudget; 3], total: u64) {
    // A section without a share stays at its minimum: λ cannot raise it, only free tokens can.
    let reachable =
        |section: &SectionBudget| if section.share == 0 { section.minimum } else { section.demand };
    let wanted: u128 = sections.iter().map(|section| u128::from(reachable(section))).sum();
    let target = wanted.min(u128::from(total));

    // The product of all shares is a multiple of each of them.
    let unit: u128 = sections.iter().map(|section| u128::from(section.share.max(1))).product();
    let lambda = highest_step_within(sections, unit, target);
    let rises = sections.map(|section| {
        let level = u128::from(section.share) * lambda;
        let is_between =
            u128::from(section.minimum) * unit <= level && level < u128::from(section.demand) * unit;
        section.share > 0 && is_between
    });
    // Sections that λ holds at a bound get it exactly; the others divide the rest.
    let mut left = target;
    for (section, rises) in sections.iter_mut().zip(rises) {
        if !rises {
            section.budget = held_budget(section, unit, lambda);
            left -= u128::from(section.budget);
        }
    }
    divide_among(sections, rises, left);
}

/// Returns the largest λ at which some section starts or stops growing and the budgets still sum to at most
/// `target` tokens.
fn highest_step_within(sections: &[SectionBudget; 3], unit: u128, target: u128) -> u128 {
    let with_share = sections.iter().filter(|section| section.share > 0);
    let steps = with_share.flat_map(|section| {
        [section.minimum, section.demand]
            .map(|tokens| u128::from(tokens) * (unit / u128::from(section.share)))
    });
    // At most six steps. The sum grows with λ, so the solution lies between this step and the next one.
    steps.filter(|step| sum_at(sections, unit, *step) <= target * unit).max().unwrap_or(0)
}

/// Returns the sum of the budgets at λ, times `unit`.
fn sum_at(sections: &[SectionBudget; 3], unit: u128, lambda: u128) -> u128 {
    let budget = |section: &SectionBudget| {
        let (least, most) = (u128::from(section.minimum) * unit, u128::from(section.demand) * unit);
        (u128::from(section.share) * lambda).clamp(least, most)
    };
    sections.iter().map(budget).sum()
}

/// Returns the budget of a section that λ holds at its minimum or its demand.
fn held_budget(section: &SectionBudget, unit: u128, lambda: u128) -> u64 {
    let below = u128::from(section.share) * lambda < u128::from(section.demand) * unit;
    if section.share == 0 || below { section.minimum } else { section.demand }
}

/// Divides the remaining tokens by share (Webster's method). Each section gets its whole tokens first. The
/// missing tokens go, one each, to the sections with the most share for every token that they would then
/// have; ties go in the order of the sections.
///
/// For three sections this stays within one token of the exact share. No section gets less if there is more
/// to divide, which the method of the largest remainder does not guarantee.
fn divide_among(sections: &mut [SectionBudget; 3], rises: [bool; 3], left: u128) {
    let rising = |at: &usize| rises[*at];
    let shares: u128 = (0..3).filter(rising).map(|at| u128::from(sections[at].share)).sum();
    if shares == 0 {
        return;
    }
    let mut given = 0;
    let mut claims = Vec::new();
    for at in (0..3).filter(rising) {
        let part = left * u128::from(sections[at].share);
        let whole = part / shares;
        given += whole;
        sections[at].budget = u64::try_from(whole).unwrap_or(u64::MAX);
        claims.push((whole, at));
    }
    let share = |at: usize| u128::from(sections[at].share);
    // Sorts by share / (whole + 1/2), larger first; cross-multiplied to stay in whole numbers.
    claims.sort_by(|(a, at), (b, bt)| {
        (share(*bt) * (2 * a + 1)).cmp(&(share(*at) * (2 * b + 1))).then(at.cmp(bt))
    });
    let missing = usize::try_from(left - given).unwrap_or(0);
    for (_, at) in claims.into_iter().take(missing) {
        sections[at].budget += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Steps of λ in the search below.
    const FINE: u64 = 1 << 20;

    fn sections(of: [(u16, u64, u64); 3]) -> [SectionBudget; 3] {
        of.map(|(share, minimum, demand)| SectionBudget {
            share,
            minimum,
            demand,
            ..SectionBudget::default()
        })
    }

    fn budgets(of: [(u16, u64, u64); 3], total: u64) -> [u64; 3] {
        let mut sections = sections(of);
        share_out(&mut sections, total);
        sections.map(|section| section.budget)
    }

    #[test]
    fn unmet_demands_divide_by_share() {
        let hungry = [(150, 0, 9_000), (550, 0, 9_000), (300, 0, 9_000)];
        assert_eq!(budgets(hungry, 1_000), [150, 550, 300]);
        // The last token goes to the section with the most share for it: 550/550.5 is more than 300/300.5.
        assert_eq!(budgets(hungry, 1_001), [150, 551, 300]);
    }

    /// Of 10 tokens, 1.5 and 5.5 are the parts of the first two sections. Their claims to the last token are
    /// equal: 150/1.5 is 550/5.5.
    #[test]
    fn equal_claims_go_in_the_order_of_the_sections() {
        assert_eq!(budgets([(150, 0, 9_000), (550, 0, 9_000), (300, 0, 9_000)], 10), [2, 5, 3]);
        assert_eq!(budgets([(550, 0, 9_000), (150, 0, 9_000), (300, 0, 9_000)], 10), [6, 1, 3]);
    }

    /// By largest remainder the third section would get 1 of 5 tokens, and 0 of 6.
    #[test]
    fn section_never_gets_less_from_a_larger_budget() {
        let hungry = [(450, 0, 9_000), (450, 0, 9_000), (100, 0, 9_000)];
        let third: Vec<u64> = (0..12).map(|total| budgets(hungry, total)[2]).collect();
        assert!(third.is_sorted(), "{third:?}");
    }

    #[test]
    fn behaviour_4_unused_shares_flow_to_the_others() {
        assert_eq!(budgets([(150, 0, 0), (550, 0, 9_000), (300, 0, 9_000)], 850), [0, 550, 300]);
        assert_eq!(budgets([(150, 0, 0), (550, 0, 0), (300, 0, 9_000)], 850), [0, 0, 850]);
        assert_eq!(budgets([(150, 0, 0), (550, 0, 0), (300, 0, 0)], 850), [0, 0, 0]);
        assert_eq!(budgets([(150, 400, 500), (550, 0, 900), (300, 0, 900)], 1_000), [400, 388, 212]);
    }

    #[test]
    fn zero_share_stays_at_its_minimum() {
        assert_eq!(budgets([(1000, 0, 10), (0, 5, 500), (0, 0, 500)], 1_000), [10, 5, 0]);
    }

    #[test]
    fn largest_demands_do_not_wrap() {
        let all = [(150, 0, u64::MAX), (550, 0, u64::MAX), (300, 0, u64::MAX)];
        let sum: u128 = budgets(all, u64::MAX).map(u128::from).iter().sum();
        assert_eq!(sum, u128::from(u64::MAX));
    }

    proptest! {
        /// With one token more, no section gets less, even if demands end at the total.
        #[test]
        fn budgets_only_grow(
            shares in (0u16..=1000, 0u16..=1000).prop_map(|(a, b)| { let (a, b) = (a.min(b), a.max(b)); [a, b - a, 1000 - b] }),
            minimums in prop::array::uniform3(0u64..40),
            extras in prop::array::uniform3(0u64..120),
        ) {
            let least = minimums.iter().sum::<u64>();
            let mut before = minimums;
            for total in least..least + 400 {
                let of = [0, 1, 2].map(|at| (shares[at], minimums[at], (minimums[at] + extras[at]).min(total).max(minimums[at])));
                let now = budgets(of, total);
                for at in 0..3 {
                    prop_assert!(before[at] <= now[at] && now[at] <= before[at] + 1, "{total}: {before:?} {now:?}");
                }
                before = now;
            }
        }

        /// Compares with a λ found by bisection over very fine steps, without the reasoning above. Each
        /// budget is within one token of `clamp(λ·share, minimum, demand)`, and the sum is exact.
        #[test]
        fn behaviour_3_budgets_agree_with_a_search_for_lambda(
            shares in (0u16..=1000, 0u16..=1000).prop_map(|(a, b)| { let (a, b) = (a.min(b), a.max(b)); [a, b - a, 1000 - b] }),
            minimums in prop::array::uniform3(0u64..60),
            extras in prop::array::uniform3(0u64..200),
            spare in 0u64..400,
        ) {
            let of = [0, 1, 2].map(|at| (shares[at], minimums[at], minimums[at] + extras[at]));
            let total = minimums.iter().sum::<u64>() + spare;
            let got = budgets(of, total);
            let reach: u64 = of.iter().map(|(share, minimum, demand)| if *share == 0 { *minimum } else { *demand }).sum();
            prop_assert_eq!(got.iter().sum::<u64>(), reach.min(total));
            let at_lambda = |lambda: u64| of.map(|(share, minimum, demand)|
                (u64::from(share) * lambda).clamp(minimum * FINE, demand * FINE));
            let (mut low, mut high) = (0u64, FINE * 700);
            while low < high {
                let middle = (low + high).div_ceil(2);
                if at_lambda(middle).iter().sum::<u64>() <= reach.min(total) * FINE { low = middle } else { high = middle - 1 }
            }
            for (budget, exact) in got.into_iter().zip(at_lambda(low)) {
                prop_assert!((budget * FINE).abs_diff(exact) <= FINE + 4000, "{:?} {:?}", got, at_lambda(low));
            }
        }
    }
}
