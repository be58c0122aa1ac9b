//! The decision for every id in the oracle's terms, and the planner's decisions translated to them (rule O2).

use super::*;

impl Oracle<'_> {
    /// Returns the oldest kept message of the conversation after which no live message is missing. A whole
    /// turn is named by its user message.
    pub fn start(&self) -> Option<String> {
        let turns = self.turns();
        let mut start = None;
        for turn in turns.iter().rev() {
            let dead_head = turn.0.is_some_and(|head| {
                self.dead(turn, head).is_some() && !self.kept.contains_key(&Unit::Message(head))
            });
            if dead_head {
                continue;
            }
            let mut whole = true;
            let mut oldest = None;
            for at in turn.1.iter().rev() {
                match self.kept.get(&Unit::Message(*at)) {
                    Some((Section::Conversation, _)) => oldest = Some(*at),
                    Some(_) => {}
                    None if self.dead(turn, *at).is_some() => {}
                    None => {
                        whole = false;
                        break;
                    }
                }
            }
            let head_missing = turn.0.is_some_and(|head| !self.kept.contains_key(&Unit::Message(head)));
            if head_missing {
                break;
            }
            // A turn included only by its pins is not kept as recent.
            let by_recency = |at: usize| {
                self.kept
                    .get(&Unit::Message(at))
                    .is_some_and(|(section, _)| *section == Section::Conversation)
            };
            let whole_start =
                turn.0.or(oldest).filter(|_| oldest.is_some() || turn.0.is_some_and(by_recency));
            start = if whole { whole_start.or(start) } else { oldest.or(start) };
            if !whole {
                break;
            }
        }
        start.map(|at| format!("m{at}"))
    }

    /// Returns one verdict per id. `behind` is the reason of items that the walk did not reach.
    pub fn verdicts(&self, out: &BTreeMap<Unit, String>, behind: &str) -> Verdicts {
        let overflow = behind == OVERFLOW;
        let held = behind.to_owned();
        let mut verdicts = Verdicts::new();
        let start = self.start();
        // If the window begins inside a turn, the turn's user message is included for the kept part (rule
        // S4).
        let begins_in = |at: &usize| start.as_ref() == Some(&format!("m{at}"));
        let trimmed = self.turns().into_iter().find(|turn| turn.1.iter().any(begins_in));
        let question = trimmed.and_then(|turn| turn.0).map(Unit::Message);
        for (unit, (section, reason)) in &self.kept {
            let reason = if question == Some(*unit) && *reason == "recent" { "question" } else { reason };
            let form = if let Unit::Document(at) = unit { self.form_name(*at) } else { String::new() };
            for (id, _) in self.ids(*unit) {
                verdicts.insert(id, format!("in {} {reason}{form}", section.name()));
            }
        }
        for at in 0..self.s.notes.len() {
            let unit = Unit::Note(at);
            let reason = if self.over(self.s.notes[at].2) {
                "ttl_expired".to_owned()
            } else if overflow {
                held.clone()
            } else {
                out.get(&unit).cloned().unwrap_or_default()
            };
            verdicts.entry(format!("n{at}")).or_insert(format!("out {reason}"));
        }
        for at in 0..self.s.rules.len() {
            let unit = Unit::Rule(at);
            let reason = match () {
                () if self.rule_expired(at) => "ttl_expired".to_owned(),
                () if !self.rules_out.contains(&at) => "in_window".to_owned(),
                () if overflow => held.clone(),
                () => out.get(&unit).cloned().unwrap_or_default(),
            };
            verdicts.entry(format!("r{at}")).or_insert(format!("out {reason}"));
        }
        for at in (0..self.s.lines.len()).filter(|at| self.leading(*at) && self.empty(*at)) {
            verdicts.insert(format!("m{at}"), "out empty_message".to_owned());
        }
        let pins: BTreeSet<Unit> = self.pins().into_iter().map(|(unit, ..)| unit).collect();
        let mut reached = !overflow;
        for turn in self.turns().iter().rev() {
            let head_dead = turn.0.filter(|head| {
                self.dead(turn, *head).is_some() && !self.kept.contains_key(&Unit::Message(*head))
            });
            // The walk stops in the first turn with a missing live message.
            let mut stopped = !reached;
            let mut order: Vec<usize> = turn.1.iter().rev().copied().collect();
            let head_missing = turn
                .0
                .is_some_and(|head| !self.kept.contains_key(&Unit::Message(head)) && head_dead.is_none());
            // A turn that is excluded completely is beyond the point at which the walk stopped (rule O2).
            let missing =
                |at: &usize| !self.kept.contains_key(&Unit::Message(*at)) && self.dead(turn, *at).is_none();
            let of_the_window = |at: &usize| {
                self.kept
                    .get(&Unit::Message(*at))
                    .is_some_and(|(section, _)| *section == Section::Conversation)
            };
            let newest_missing = turn.1.iter().rposition(missing).map_or(0, |at| at + 1);
            let touched =
                turn.1[newest_missing..].iter().any(of_the_window) || turn.0.iter().any(of_the_window);
            stopped |= head_dead.is_none() && (head_missing || newest_missing > 0 && !touched);
            order.extend(turn.0);
            for at in order {
                let unit = Unit::Message(at);
                if self.kept.contains_key(&unit) {
                    continue;
                }
                let pinned_dead = self.pinned(at).is_some()
                    && (self.never(at).is_some() || self.expired(at))
                    && !self.required().contains(&at);
                let reason = if pins.contains(&unit) {
                    // A pin without room is an ordinary message again, so the walk stopped at it.
                    stopped |= head_dead.is_none();
                    match () {
                        () if overflow => held.clone(),
                        // It expires with its user message (rules S3, T1).
                        () if head_dead.is_some_and(|head| head != at) => "ttl_expired".to_owned(),
                        () => out.get(&unit).cloned().unwrap_or_default(),
                    }
                } else if pinned_dead {
                    self.never(at).unwrap_or("ttl_expired").to_owned()
                } else if stopped {
                    held.clone()
                } else if let Some(reason) = self.dead(turn, at) {
                    reason.to_owned()
                } else {
                    stopped = true;
                    held.clone()
                };
                for (id, made_up) in self.ids(unit) {
                    if !made_up {
                        verdicts.insert(id, format!("out {reason}"));
                    }
                }
            }
            reached = !stopped && !head_missing;
        }
        for (at, never) in self.documents() {
            let unit = Unit::Document(at);
            if self.kept.contains_key(&unit) {
                continue;
            }
            let reason = never.unwrap_or_else(|| {
                if overflow { held.clone() } else { out.get(&unit).cloned().unwrap_or_default() }
            });
            verdicts.insert(self.ids(unit)[0].0.clone(), format!("out {reason}"));
        }
        verdicts
    }

    /// Returns the ids of a unit, each with true if it is a placeholder result. Documents are named by their
    /// index, because ids can repeat.
    pub fn ids(&self, unit: Unit) -> Vec<(String, bool)> {
        match unit {
            Unit::System => vec![("s0".into(), false)],
            Unit::Focus => vec![("focus".into(), false)],
            Unit::State(at) => vec![(format!("st{at}"), false)],
            Unit::Note(at) => vec![(format!("n{at}"), false)],
            Unit::Rule(at) => vec![(format!("r{at}"), false)],
            Unit::Document(at) => {
                let rank = self.documents().iter().position(|(document, _)| *document == at).unwrap();
                vec![(format!("rag {rank}"), false)]
            }
            Unit::Message(at) => {
                let real = self.members(at).into_iter().map(|at| (format!("m{at}"), false));
                let names = self.call_names(at);
                // There are no placeholder results in the user role (rule H9).
                let calls = if self.is_head(at) { 0 } else { names.len() };
                let missing = (0..calls).filter(|call| self.answers[at][*call].is_none());
                real.chain(missing.map(|call| (format!("synth:m{at}:{}", names[call]), true))).collect()
            }
        }
    }

    /// Repeated ids of one message become `x#2`, `x#3` and so on, never a name that already exists (rule H1).
    pub fn call_names(&self, at: usize) -> Vec<String> {
        let calls = &self.s.lines[at].calls;
        let mut names: Vec<String> = Vec::new();
        for (number, call) in calls.iter().enumerate() {
            let mut name = (*call).to_owned();
            if calls[..number].contains(call) {
                let free = |name: &String| !names.contains(name) && !calls.iter().any(|other| other == name);
                name = (2..).map(|n| format!("{call}#{n}")).find(free).unwrap();
            }
            names.push(name);
        }
        names
    }
}

/// Translates the planner's decisions to the oracle's terms.
pub fn planned(oracle: &Oracle<'_>, plan: &context_window::ContextPlan) -> Verdicts {
    let mut verdicts = Verdicts::new();
    let mut ranks: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (rank, (at, never)) in oracle.documents().into_iter().enumerate() {
        let key =
            format!("{}{}", oracle.items[at].id, never.map_or(String::new(), |never| format!(" {never}")));
        ranks.entry(key).or_default().push(rank);
    }
    let mut rank = |key: String| {
        // A group is out whatever the budget, or for lack of tokens.
        let either = [key.clone(), key.trim_end_matches(" group").to_owned()];
        let is_left = |key: &&String| ranks.get(*key).is_some_and(|ranks| !ranks.is_empty());
        let found = either.iter().find(is_left).cloned();
        let ranks = found.and_then(|key| ranks.get_mut(&key));
        ranks.map_or_else(|| format!("unexpected {key}"), |ranks| format!("rag {}", ranks.remove(0)))
    };
    for row in &plan.included {
        let id = if row.section == Section::Rag { rank(row.id.to_string()) } else { row.id.to_string() };
        let form = row.form().map_or(String::new(), |form| format!(" {form}"));
        verdicts.insert(id, format!("in {} {}{form}", row.section.name(), row.reason.name()));
    }
    for row in &plan.excluded {
        let reason = match &row.reason {
            ExcludedReason::Budget { limited_by, .. } => format!(
                "budget/{}",
                match limited_by {
                    LimitedBy::Size => "size",
                    LimitedBy::Window => "window",
                    LimitedBy::Cap => "cap",
                    LimitedBy::PinsLimit => "pins_limit",
                    LimitedBy::RulesLimit => "rules_limit",
                    LimitedBy::RecallShare => "recall_share",
                    LimitedBy::Prefix => "prefix",
                    LimitedBy::Group => "group",
                    LimitedBy::Overflow => "overflow",
                    LimitedBy::StickyWindow => "sticky_window",
                    LimitedBy::StickyDocuments => "sticky_documents",
                    _ => "?",
                }
            ),
            ExcludedReason::Policy(rule) => rule.name().to_owned(),
            ExcludedReason::NearDuplicate { of, share } => format!("near_duplicate of {of} {share}"),
            ExcludedReason::Repeats { of, share } => format!("repeats of {of} {share}"),
            other => other.name().to_owned(),
        };
        let chosen_later = matches!(
            row.reason,
            ExcludedReason::Budget { .. }
                | ExcludedReason::NearDuplicate { .. }
                | ExcludedReason::Repeats { .. }
                | ExcludedReason::InWindow { .. }
                | ExcludedReason::Policy(
                    PolicyRule::MaxItems { .. }
                        | PolicyRule::MaxSourceItems { .. }
                        | PolicyRule::Requires { .. }
                        | PolicyRule::MaxSourceTokens { .. }
                        | PolicyRule::MaxListItems { .. }
                        | PolicyRule::MaxListTokens { .. }
                )
        );
        if row.section == Section::Rag {
            let key = if chosen_later { row.id.to_string() } else { format!("{} {reason}", row.id) };
            verdicts.insert(rank(key), format!("out {reason}"));
        } else if let Some(number) = row.id.as_str().strip_prefix('m') {
            let first: u64 = number.parse().unwrap();
            for at in first..first + row.count {
                verdicts.insert(format!("m{at}"), format!("out {reason}"));
            }
        } else {
            verdicts.insert(row.id.to_string(), format!("out {reason}"));
        }
    }
    verdicts
}
