//! Section budgets, found by trying every combination (rule B5).

use super::*;

impl Oracle<'_> {
    /// Computes section budgets by brute force (rule B5): each section is at its minimum, at its demand, or
    /// at λ times its share.
    pub fn budgets(&self, total: i64, minimums: [i64; 3], no_documents: bool) -> [i64; 3] {
        let demands = self.demands(total, minimums, no_documents);
        let shares = Section::ALL.map(|section| i64::from(self.s.config.sections.section(section).share));
        let reach: i64 = (0..3).map(|at| if shares[at] == 0 { minimums[at] } else { demands[at] }).sum();
        let target = reach.min(total);
        for ways in 0..27 {
            let way = [ways % 3, ways / 3 % 3, ways / 9];
            let fixed: i64 = (0..3).map(|at| [minimums[at], demands[at], 0][way[at]]).sum();
            let rising: i64 = (0..3).filter(|at| way[*at] == 2).map(|at| shares[at]).sum();
            let left = target - fixed;
            if left < 0 || (rising == 0 && left != 0) {
                continue;
            }
            // λ = left / rising. Each section's budget has to follow from this λ.
            let consistent = (0..3).all(|at| {
                let (low, high) = (minimums[at], demands[at]);
                match (way[at], rising) {
                    (2, _) => {
                        shares[at] > 0
                            && shares[at] * left >= low * rising
                            && shares[at] * left <= high * rising
                    }
                    (0, 0) | (1, 0) => true,
                    (0, _) => shares[at] * left <= low * rising || low == high,
                    (_, _) => shares[at] * left >= high * rising || low == high,
                }
            });
            // Without a rising section, one λ has to exist that gives every section its budget.
            let some_lambda = rising > 0 || {
                let above = (0..3).filter(|at| way[*at] == 1 && minimums[*at] < demands[*at]);
                let below =
                    (0..3).filter(|at| way[*at] == 0 && minimums[*at] < demands[*at] && shares[*at] > 0);
                let at_least =
                    above
                        .map(|at| {
                            if shares[at] == 0 {
                                f64::INFINITY
                            } else {
                                demands[at] as f64 / shares[at] as f64
                            }
                        })
                        .fold(0.0, f64::max);
                let at_most =
                    below.map(|at| minimums[at] as f64 / shares[at] as f64).fold(f64::INFINITY, f64::min);
                at_least <= at_most && at_least.is_finite()
            };
            if !consistent || !some_lambda {
                continue;
            }
            let mut budgets = [0, 1, 2].map(|at| [minimums[at], demands[at], 0][way[at]]);
            // One token at a time goes to the section with the largest share divided by its budget plus a
            // half.
            let rises = |at: &usize| way[*at] == 2;
            (0..3).filter(rises).for_each(|at| budgets[at] = 0);
            for _ in 0..left {
                let claim = |at: &usize| shares[*at] as f64 / (2 * budgets[*at] + 1) as f64;
                let best = (0..3).filter(rises).map(|at| claim(&at)).fold(0.0, f64::max);
                let at = (0..3).filter(rises).find(|at| claim(at) >= best * (1.0 - 1e-12)).unwrap();
                budgets[at] += 1;
            }
            return budgets;
        }
        unreachable!("some λ exists")
    }

    pub fn demands(&self, total: i64, minimums: [i64; 3], no_documents: bool) -> [i64; 3] {
        let mut paid: BTreeSet<Unit> = self.required().into_iter().map(Unit::Message).collect();
        let mut sums = [minimums[0], minimums[1], 0];
        for (unit, brought, never_dropped) in self.pins() {
            for unit in std::iter::once(unit).chain(brought) {
                let first = paid.insert(unit);
                if first && !never_dropped && !self.kept.contains_key(&unit) {
                    sums[0] += self.size(unit);
                }
            }
        }
        // All rules count up to their limit; the kept ones are in the minimum already.
        let size = |rules: Vec<Unit>| rules.into_iter().map(|unit| self.size(unit)).sum::<i64>();
        let rules: Vec<Unit> = self.sent_rules().into_iter().map(Unit::Rule).collect();
        let kept = rules.iter().copied().filter(|unit| self.kept.contains_key(unit)).collect();
        sums[0] += size(rules).min(self.s.config.compaction.rules_limit as i64) - size(kept);
        for turn in self.turns() {
            for at in turn.0.into_iter().chain(turn.1.iter().copied()) {
                if !paid.contains(&Unit::Message(at)) && self.dead(&turn, at).is_none() {
                    sums[1] += self.size(Unit::Message(at));
                }
            }
        }
        if !no_documents {
            sums[2] = self.documents_demand(false);
            // Recalled messages count if the window is chosen anew, up to their share (rule S15).
            if self.counts_recalled {
                let share = total * i64::from(self.s.config.rag.recall_share) / 1000;
                sums[2] += self.documents_demand(true).min(share);
            }
        }
        [0, 1, 2].map(|at| sums[at].min(total).min(self.cap(Section::ALL[at])).max(minimums[at]))
    }

    /// Sums the recalled messages that compete, or the other documents, without near-duplicates.
    fn documents_demand(&self, are_recalled: bool) -> i64 {
        let (mut sum, mut counted) = (0, Vec::new());
        // Each document counts in the fullest form that no limit excludes.
        let mut oracle = Oracle { forms: BTreeMap::new(), ..self.clone() };
        let competing = |(at, out): &(usize, Option<String>)| {
            out.is_none()
                && !self.depends(*at)
                && self.competes(*at)
                && self.items[*at].recalls.is_some() == are_recalled
        };
        for (at, _) in self.documents().into_iter().filter(competing) {
            let fits = |form: &usize| oracle.over_a_limit_of_tokens(at, *form, &counted).is_none();
            match oracle.over_a_limit_of_items(at, &counted) {
                Some("max_items") => break,
                Some(_) => continue,
                // A near-duplicate of a counted document is no demand.
                None if oracle.near_duplicate(at, &counted).is_some() => continue,
                None => {}
            }
            if let Some(form) = oracle.forms_of(at).into_iter().find(fits) {
                counted.push(at);
                sum += oracle.size_in(at, form);
                oracle.forms.insert(at, form);
            }
        }
        sum
    }
}
