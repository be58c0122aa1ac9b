//! The candidates in order (rules S1 to S3, S8, S9).

use super::*;

impl Oracle<'_> {
    pub fn required_system(&self) -> Vec<Unit> {
        let mut units: Vec<Unit> = Vec::new();
        units.extend(self.s.system.map(|_| Unit::System));
        units.extend(self.s.focus.map(|_| Unit::Focus));
        units.extend((0..self.s.states.len()).map(Unit::State));
        units.extend(
            (0..self.s.lines.len()).filter(|at| self.leading(*at) && !self.empty(*at)).map(Unit::Message),
        );
        units
    }

    /// Returns the pins in order: the unit, the user message included with it, and true if it is never
    /// dropped.
    pub fn pins(&self) -> Vec<(Unit, Option<Unit>, bool)> {
        let mut pins = Vec::new();
        for (at, (_, priority, ttl)) in self.s.notes.iter().enumerate() {
            if !self.over(*ttl) {
                pins.push((
                    (*priority, std::cmp::Reverse((0, at))),
                    (Unit::Note(at), None, *ttl == Some(Ttl::Unlimited)),
                ));
            }
        }
        let required = self.required();
        for (head, exchanges) in self.turns() {
            for at in head.into_iter().chain(exchanges.iter().copied()) {
                let Some(priority) = self.pinned(at) else { continue };
                if required.contains(&at) || self.never(at).is_some() || self.expired(at) {
                    continue;
                }
                let lives = |life: &generate::Life| life.pin.is_some() && life.ttl == Some(Ttl::Unlimited);
                let never_dropped = self.members(at).into_iter().any(|at| lives(&self.s.lines[at].life));
                let brought =
                    head.filter(|head| *head != at && (required.contains(head) || !self.expired(*head)));
                pins.push((
                    (priority, std::cmp::Reverse((1, at))),
                    (Unit::Message(at), brought.map(Unit::Message), never_dropped),
                ));
            }
        }
        pins.sort();
        pins.into_iter().map(|(_, pin)| pin).collect()
    }

    /// Returns the user's rules that may be sent, newest first (rules R1, R3).
    pub fn sent_rules(&self) -> Vec<usize> {
        let place =
            |at: usize| (self.s.rule_message(at).map_or(self.s.lines.len(), |message| message + 1), at);
        let mut rules: Vec<usize> = (0..self.s.rules.len())
            .filter(|at| self.rules_out.contains(at) && !self.rule_expired(*at))
            .collect();
        rules.sort_by_key(|at| std::cmp::Reverse(place(*at)));
        rules
    }

    /// Returns true if the message of a rule has expired.
    pub fn rule_expired(&self, at: usize) -> bool {
        self.s.rule_message(at).is_some_and(|message| self.over(self.s.lines[message].life.ttl))
    }

    /// Returns the rules whose messages are left out whatever else is included: those without a message, and,
    /// where no message is pinned, those of the turns before the last window.
    pub fn rules_surely_out(&self) -> BTreeSet<usize> {
        let turns = self.turns();
        let turn = |at: usize| turns.iter().position(|turn| turn.0 == Some(at) || turn.1.contains(&at));
        let pinned = self.s.lines.iter().any(|line| line.life.pin.is_some());
        let start = self.first_lasting_turn().filter(|_| !pinned);
        let is_out = |at: &usize| match self.s.rule_message(*at) {
            None => true,
            Some(message) => {
                let of = turn(message).filter(|_| self.is_head(message));
                of.zip(start).is_some_and(|(of, start)| of < start)
            }
        };
        (0..self.s.rules.len()).filter(is_out).collect()
    }

    fn first_lasting_turn(&self) -> Option<usize> {
        let start = self.start_before()?;
        self.turns().iter().position(|turn| turn.0 == Some(start) || turn.1.contains(&start))
    }

    /// Returns the rules whose messages are not among the kept items.
    pub fn rules_without_message(&self, kept: &BTreeSet<Unit>) -> BTreeSet<usize> {
        let sent: BTreeSet<String> = kept.iter().flat_map(|unit| self.ids(*unit)).map(|(id, _)| id).collect();
        let is_missing = |at: &usize| {
            let message = self.s.rule_message(*at);
            message.is_some_and(|message| !sent.contains(&format!("m{message}"))) && !self.rule_expired(*at)
        };
        (0..self.s.rules.len()).filter(is_missing).collect()
    }

    /// Returns the documents in order, with a reason for those that never compete.
    pub fn documents(&self) -> Vec<(usize, Option<String>)> {
        let mut incomplete = BTreeSet::new();
        loop {
            let documents = self.documents_without(&incomplete);
            let now = self.incomplete_groups(&documents);
            if now.is_subset(&incomplete) {
                return documents;
            }
            incomplete.extend(now);
        }
    }

    /// Returns the documents in order, without those of incomplete groups.
    fn documents_without(&self, incomplete: &BTreeSet<&'static str>) -> Vec<(usize, Option<String>)> {
        let rules = &self.s.config.rag;
        let mut known: Vec<usize> = Vec::new();
        let mut documents = Vec::new();
        let mut label = 1;
        for (at, _) in self.by_rank() {
            let document = &self.items[at];
            if rules.labels && document.recalls.is_none() {
                self.labels.borrow_mut().insert(at, label);
            }
            let repeats = known.iter().any(|known| {
                let same_text = document.recalls.is_none() && self.items[*known].text == document.text;
                self.items[*known].id == document.id || same_text
            });
            let out = if self.over(document.ttl) {
                Some("ttl_expired")
            } else if rules.min_score.is_some_and(|least| f64::from(document.score) < least) {
                Some("min_score")
            } else if rules
                .max_item_tokens
                .is_some_and(|most| self.size_in(at, self.forms_of(at)[0]) > most as i64)
            {
                Some("max_item_tokens")
            } else if document.recalls.is_some() && self.sent_without(at) {
                Some("question_sent")
            } else if self.is_in_incomplete_group(at, incomplete) {
                Some("group")
            } else if repeats {
                Some("duplicate")
            } else {
                known.push(at);
                label += u32::from(document.recalls.is_none());
                None
            };
            documents.push((at, out.map(str::to_owned)));
        }
        documents
    }
}
