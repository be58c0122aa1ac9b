//! Offers of room to pins, window and documents (rules S2 to S4, S8, B6).

use super::*;
use context_window::config::Variants;

impl Oracle<'_> {
    /// Includes pins as room allows. Returns the others, with the tokens available for each and the limit
    /// that excluded it.
    pub fn offer_pins(&mut self, room: i64, merge: i64, cap: i64, limit: i64) -> Fallen {
        let mut out = BTreeMap::new();
        let (mut spent, mut merge) = (0, merge);
        for (unit, brought, _) in self.pins() {
            if self.kept.contains_key(&unit) {
                continue;
            }
            let units: Vec<Unit> =
                std::iter::once(unit).chain(brought).filter(|unit| !self.kept.contains_key(unit)).collect();
            let size: i64 = units.iter().map(|unit| self.size(*unit)).sum();
            let follows = self.follows_the_question(unit);
            let there = (room + if follows { 0 } else { merge }).max(0);
            let whole = there.min(limit);
            let (now, capped) = (whole.min(cap) - spent, cap < whole);
            if size <= now {
                spent += size;
                if follows {
                    merge = 0;
                }
                units.into_iter().for_each(|unit| self.keep(unit, Section::SystemPinned, "pinned"));
            } else {
                let held = match () {
                    () if capped => "budget/cap",
                    () if limit < there => "budget/pins_limit",
                    () => "budget/size",
                };
                out.insert(unit, (now.max(0), held.to_owned()));
            }
        }
        if out.is_empty() {
            return self.offer_rules(room, merge, cap, limit, spent);
        }
        // A pin is left out, so the rules wait (rule R3).
        out
    }

    /// Includes rules of the user as room allows, after pins that took `spent` tokens (rule R3).
    pub fn offer_rules(&mut self, room: i64, merge: i64, cap: i64, limit: i64, spent: i64) -> Fallen {
        let mut out = BTreeMap::new();
        let mut spent = spent;
        for unit in self.sent_rules().into_iter().map(Unit::Rule) {
            if self.kept.contains_key(&unit) {
                continue;
            }
            let taken = self.kept.keys().filter(|unit| matches!(unit, Unit::Rule(_)));
            let taken: i64 = taken.map(|unit| self.size(*unit)).sum();
            let rules = (self.s.config.compaction.rules_limit as i64 - taken).max(0);
            let there = (room + merge).max(0);
            let whole = there.min(limit);
            let now = (whole.min(cap) - spent).min(rules);
            if self.size(unit) <= now {
                spent += self.size(unit);
                self.keep(unit, Section::SystemPinned, "rule");
            } else {
                let held = match () {
                    () if rules + spent < whole.min(cap) => "budget/rules_limit",
                    () if cap < whole => "budget/cap",
                    () if limit < there => "budget/pins_limit",
                    () => "budget/size",
                };
                out.insert(unit, (now.max(0), held.to_owned()));
            }
        }
        out
    }

    /// Tries every cut of the conversation, from keeping nothing to keeping everything, and takes the longest
    /// that fits (rule S4). Returns the limit that excluded the rest.
    pub fn offer_window(
        &mut self,
        room: i64,
        merge: i64,
        cap: i64,
        most: i64,
        floored: bool,
    ) -> &'static str {
        let turns = self.turns();
        let alive =
            |oracle: &Self, turn: &(Option<usize>, Vec<usize>), at: usize| oracle.dead(turn, at).is_none();
        let new = |oracle: &Self, turn: &(Option<usize>, Vec<usize>), at: usize| {
            !oracle.kept.contains_key(&Unit::Message(at)) && alive(oracle, turn, at)
        };
        let live_open = turns.last().is_some_and(|turn| turn.1.iter().any(|at| new(self, turn, *at)));
        let beyond_the_mark = if live_open { room } else { room + merge };
        let room = beyond_the_mark.min(most);
        let capped = cap < room.max(0);
        let (room, beyond_the_mark) = (room.min(cap), beyond_the_mark.min(cap));
        let no_user = turns.len() == 1 && turns[0].0.is_none();
        // A cut: the turns after it are whole, and a number of exchanges is kept of the turn that it splits.
        let mut cuts: Vec<(usize, Option<usize>)> = Vec::new();
        for (number, turn) in turns.iter().enumerate().rev() {
            cuts.push((number + 1, None));
            if turn.0.is_some() || no_user {
                cuts.extend((1..turn.1.len()).map(|kept| (number + 1, Some(kept))));
            }
        }
        cuts.push((0, None));
        // A cut never reaches back before the start of the last window (rule S5).
        if let Some(floor) = self.floor().filter(|_| floored) {
            cuts.retain(|(whole_from, trimmed)| self.is_behind(&turns, *whole_from, *trimmed, floor));
        }
        let mut best: (usize, usize, Vec<usize>) = (0, 0, Vec::new());
        for (whole_from, trimmed) in cuts {
            let mut units = Vec::new();
            for turn in &turns[whole_from..] {
                let dead_head = turn.0.is_some_and(|head| {
                    !alive(self, turn, head) && !self.kept.contains_key(&Unit::Message(head))
                });
                if dead_head {
                    continue;
                }
                let all = turn.0.into_iter().chain(turn.1.iter().copied());
                units.extend(all.filter(|at| new(self, turn, *at)));
            }
            if let Some(kept) = trimmed {
                let turn = &turns[whole_from - 1];
                let suffix = &turn.1[turn.1.len() - kept..];
                let joining: Vec<usize> = suffix.iter().copied().filter(|at| new(self, turn, *at)).collect();
                let dead_head = turn.0.is_some_and(|head| {
                    !alive(self, turn, head) && !self.kept.contains_key(&Unit::Message(head))
                });
                if dead_head || joining.is_empty() {
                    continue;
                }
                units.extend(joining);
                units.extend(turn.0.filter(|head| new(self, turn, *head)));
            }
            let size: i64 = units.iter().map(|at| self.size(Unit::Message(*at))).sum();
            let longer = (turns.len() - whole_from, trimmed.unwrap_or(0)) >= (best.0, best.1);
            if size <= room.max(0) && longer {
                best = (turns.len() - whole_from, trimmed.unwrap_or(0), units);
            }
        }
        if best.0 < 2
            && let Some(units) = self.newest_answered(&turns, beyond_the_mark).filter(|_| floored)
        {
            best = (2, 0, units);
        }
        let (whole, _, units) = best;
        for at in units {
            self.keep(Unit::Message(at), Section::Conversation, "recent");
        }
        if whole == turns.len() {
            "nothing"
        } else if capped {
            "budget/cap"
        } else {
            "budget/window"
        }
    }

    /// Returns the messages to add so that the newest turn before the live one stays beyond the low mark.
    /// Returns `None` unless all of it was in the window and it fits (rule S5).
    fn newest_answered(&self, turns: &[(Option<usize>, Vec<usize>)], room: i64) -> Option<Vec<usize>> {
        let of = turns.len().checked_sub(2)?;
        let joins = |turn: &(Option<usize>, Vec<usize>), at: usize| {
            !self.kept.contains_key(&Unit::Message(at)) && self.dead(turn, at).is_none()
        };
        if let Some(floor) = self.floor() {
            let at = turns.iter().position(|turn| turn.0 == Some(floor) || turn.1.contains(&floor))?;
            let behind = turns[of].1.iter().take_while(|at| **at != floor);
            let was_whole = turns[of].0 == Some(floor) || behind.copied().all(|at| !joins(&turns[of], at));
            if at > of || at == of && !was_whole {
                return None;
            }
        }
        let of_turn = |turn: &(Option<usize>, Vec<usize>)| -> Vec<usize> {
            let is_out = |head: &usize| !self.kept.contains_key(&Unit::Message(*head));
            if turn.0.is_some_and(|head| is_out(&head) && self.dead(turn, head).is_some()) {
                return Vec::new();
            }
            let all = turn.0.into_iter().chain(turn.1.iter().copied());
            all.filter(|at| joins(turn, *at)).collect()
        };
        let mut units = of_turn(&turns[of]);
        if units.is_empty() {
            return None;
        }
        units.extend(of_turn(&turns[of + 1]));
        let size: i64 = units.iter().map(|at| self.size(Unit::Message(*at))).sum();
        (size <= room.max(0)).then_some(units)
    }

    /// Returns `None` if the documents of the last prompt were to stay and not even the first one fits.
    pub fn offer_documents(&mut self, room: i64, cap: i64, share: i64) -> Option<BTreeMap<Unit, String>> {
        if self.has_a_set() {
            return self.offer_the_set(room, cap, share);
        }
        let all: Vec<usize> = self.documents().into_iter().map(|(at, _)| at).collect();
        Some(self.offer(&all, self.s.config.rag.fill, room, cap))
    }

    /// Offers the room to these documents, in order.
    pub fn offer(&mut self, these: &[usize], fill: RagFill, room: i64, cap: i64) -> BTreeMap<Unit, String> {
        let mut left = room.min(cap);
        let mut stopped = false;
        let mut out = BTreeMap::new();
        for (at, never) in self.documents() {
            let unit = Unit::Document(at);
            if never.is_some() || !these.contains(&at) {
                continue;
            }
            if self.kept.contains_key(&unit) {
                if self.s.config.rag.variants == Variants::Depth {
                    left = self.grow(at, left);
                }
                continue;
            }
            if let Some(reason) = self.left.get(&at) {
                out.insert(unit, reason.clone());
                continue;
            }
            if self.depends(at) {
                out.insert(unit, "requires".to_owned());
                continue;
            }
            if out.contains_key(&unit) {
                // It was decided with its group.
                continue;
            }
            let used = self.used(Section::Rag);
            if let Some(reasons) = self.offer_group(at, left, (room, cap), stopped) {
                left -= self.used(Section::Rag) - used;
                stopped |= fill == RagFill::Prefix && reasons.values().any(|one| one.starts_with("budget"));
                out.retain(|unit, _| !self.kept.contains_key(unit));
                for (at, reason) in reasons {
                    out.insert(Unit::Document(at), self.known_reason(at, reason));
                }
                continue;
            }
            let Some(reason) = self.offer_one(at, left, (room, cap), stopped, false) else {
                left -= self.used(Section::Rag) - used;
                continue;
            };
            stopped |= fill == RagFill::Prefix && reason.starts_with("budget");
            out.insert(unit, self.known_reason(at, reason));
        }
        out
    }

    /// Returns the reason of a document. A text that was contained when it fitted keeps that reason, unless a
    /// document has left since.
    fn known_reason(&mut self, at: usize, reason: String) -> String {
        if reason.starts_with("near_duplicate")
            || reason.starts_with("repeats")
            || reason.starts_with("in_window")
        {
            self.contained.entry(at).or_insert_with(|| reason.clone());
        }
        let known = self.contained.get(&at).filter(|_| self.left.is_empty()).cloned();
        known.unwrap_or(reason)
    }

    /// Offers the `left` tokens of a room to a document. Returns the reason to exclude it, or `None` if it is
    /// kept. A member of a group is offered them in its shortest form.
    pub fn offer_one(
        &mut self,
        at: usize,
        left: i64,
        (room, cap): (i64, i64),
        stopped: bool,
        is_group: bool,
    ) -> Option<String> {
        let included = self.included_documents();
        let mut forms = self.forms_of(at);
        if is_group || self.s.config.rag.variants == Variants::Breadth && !self.depends(at) {
            forms = forms.split_off(forms.len() - 1);
        }
        let recalled = self.left_for_recalled(at);
        // Forms are tried in their order, and the last one decides.
        let mut form = forms[0];
        let mut refused = None;
        for tried in forms {
            form = tried;
            refused = if let Some(limit) = self.over_a_limit_of_tokens(at, form, &included) {
                Some(limit)
            } else if stopped {
                Some("budget/prefix")
            } else if self.size_in(at, form) > left.min(recalled) {
                let taken = room.min(cap) - left;
                Some(match () {
                    () if cap - taken < (room - taken).max(0).min(recalled) => "budget/cap",
                    () if recalled < room - taken => "budget/recall_share",
                    () => "budget/size",
                })
            } else {
                None
            };
            if refused.is_none() || refused == Some("budget/prefix") {
                break;
            }
        }
        if let Some(limit) = self.over_a_limit_of_items(at, &included) {
            return Some(limit.to_owned());
        }
        if let Some(reason) = refused {
            return Some(reason.to_owned());
        }
        if let Some(contained) = self.near_duplicate(at, &included).or_else(|| self.repeats(at)) {
            return Some(contained);
        }
        self.forms.insert(at, form);
        let reason = if self.items[at].recalls.is_some() { "recalled" } else { "relevant" };
        self.keep(Unit::Document(at), Section::Rag, reason);
        None
    }

    /// Returns the tokens left of the share of recalled messages, if the document is one (rule S15).
    fn left_for_recalled(&self, at: usize) -> i64 {
        if self.items[at].recalls.is_none() {
            return i64::MAX;
        }
        let recalled = self.included_documents().into_iter().filter(|at| self.items[*at].recalls.is_some());
        let used: i64 = recalled.map(|at| self.size(Unit::Document(at))).sum();
        (self.most_recalled - used).max(0)
    }

    pub fn included_documents(&self) -> Vec<usize> {
        let document = |unit: &Unit| if let Unit::Document(at) = unit { Some(*at) } else { None };
        self.kept.keys().filter_map(document).collect()
    }

    /// Returns the limit of items that excludes a document next to included ones (rule S9).
    pub fn over_a_limit_of_items(&self, at: usize, included: &[usize]) -> Option<&'static str> {
        self.over_limits(at, 0, included).0
    }

    /// Returns the limit of tokens that excludes a form of a document next to included ones (rule S9).
    pub fn over_a_limit_of_tokens(&self, at: usize, form: usize, included: &[usize]) -> Option<&'static str> {
        self.over_limits(at, form, included).1
    }

    fn over_limits(
        &self,
        at: usize,
        form: usize,
        included: &[usize],
    ) -> (Option<&'static str>, Option<&'static str>) {
        let rules = &self.s.config.rag;
        let tokens = |of: &[usize]| of.iter().map(|at| self.size(Unit::Document(*at))).sum::<i64>();
        let with = |limit: Option<u64>, of: &[usize]| {
            limit.is_some_and(|most| tokens(of) + self.size_in(at, form) > most as i64)
        };
        let origin = self.items[at].origin;
        let of_origin: Vec<usize> = included
            .iter()
            .copied()
            .filter(|other| origin.is_some() && self.source(*other) == self.source(at))
            .collect();
        let source = rules.max_source_items.filter(|_| origin.is_some());
        let source_tokens = rules.max_source_tokens.filter(|_| origin.is_some());
        let list = self.best_list(at);
        let limits = list.and_then(|list| rules.lists.get(generate::LISTS[list])).copied();
        let of_list: Vec<usize> = included
            .iter()
            .copied()
            .filter(|other| list.is_some() && self.best_list(*other) == list)
            .collect();
        let is_full = |limit: Option<u64>, of: &[usize]| limit.is_some_and(|most| of.len() as u64 >= most);
        let items = match () {
            () if is_full(rules.max_items, included) => Some("max_items"),
            () if is_full(source, &of_origin) => Some("max_source_items"),
            () if is_full(limits.and_then(|list| list.max_items), &of_list) => Some("max_list_items"),
            () => None,
        };
        let tokens = match () {
            () if with(source_tokens, &of_origin) => Some("max_source_tokens"),
            () if with(limits.and_then(|list| list.max_tokens), &of_list) => Some("max_list_tokens"),
            () => None,
        };
        (items, tokens)
    }

    /// Returns the source of a document. Recalled messages have sources of their own.
    pub fn source(&self, at: usize) -> (Option<&'static str>, bool) {
        (self.items[at].origin, self.items[at].recalls.is_some())
    }

    /// Lets new documents leave whose text the conversation contains since it grew (rules S9, B6).
    pub fn drop_repeats(&mut self) {
        let repeated: Vec<(usize, String)> =
            self.included_documents().into_iter().filter_map(|at| Some((at, self.repeats(at)?))).collect();
        for (at, reason) in repeated {
            self.kept.remove(&Unit::Document(at));
            self.forms.remove(&at);
            self.left.insert(at, reason);
        }
    }
}
