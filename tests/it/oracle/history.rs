//! The parts of a conversation: pairs of calls and results, turns, sizes, and messages that can never be sent
//! (rules H1 to H3, T1, T2).

use super::*;

impl Oracle<'_> {
    /// Pairs a result with the nearest earlier call that has none, otherwise with the next call of its turn
    /// (rule H1). A second result for a call is never paired (rule H3).
    pub fn pair(&mut self, at: usize) {
        let line = &self.s.lines[at];
        if let Some(id) = line.answers {
            for before in (0..at).rev() {
                for (call, name) in self.s.lines[before].calls.iter().enumerate() {
                    if *name == id && self.answers[before][call].is_none() {
                        self.answers[before][call] = Some(at);
                        self.owner[at] = Some(before);
                        return;
                    }
                }
            }
            let answered = |line: usize| {
                let calls = self.s.lines[line].calls.iter().zip(&self.answers[line]);
                calls.into_iter().any(|(name, answer)| *name == id && answer.is_some())
            };
            if (0..at).any(answered) {
                self.second.insert(at);
            }
        }
        let turn = (0..at).rev().find(|before| self.is_head(*before)).unwrap_or(0);
        for (call, name) in line.calls.iter().enumerate() {
            // A user message begins a turn, so no result of its turn comes before it.
            let early = (turn..at).filter(|_| !self.is_head(at)).find(|before| {
                self.s.lines[*before].answers == Some(name)
                    && self.owner[*before].is_none()
                    && !self.second.contains(before)
            });
            if let Some(early) = early {
                self.answers[at][call] = Some(early);
                self.owner[early] = Some(at);
            }
        }
    }

    pub fn empty(&self, at: usize) -> bool {
        let line = &self.s.lines[at];
        line.role != Role::Tool && line.size == 0 && line.calls.is_empty()
    }

    pub fn is_head(&self, at: usize) -> bool {
        self.s.lines[at].role == Role::User && !self.empty(at)
    }

    pub fn leading(&self, at: usize) -> bool {
        self.s.lines[..=at].iter().all(|line| line.role == Role::System)
    }

    /// Returns the turns as (user message, exchanges), oldest first. An exchange is named by its first
    /// message.
    pub fn turns(&self) -> Vec<(Option<usize>, Vec<usize>)> {
        let mut turns: Vec<(Option<usize>, Vec<usize>)> = Vec::new();
        for at in (0..self.s.lines.len()).filter(|at| !self.leading(*at)) {
            if self.is_head(at) {
                turns.push((Some(at), Vec::new()));
            } else {
                if turns.is_empty() {
                    turns.push((None, Vec::new()));
                }
                if self.owner[at].is_none() {
                    turns.last_mut().unwrap().1.push(at);
                }
            }
        }
        turns
    }

    pub fn members(&self, at: usize) -> Vec<usize> {
        std::iter::once(at).chain(self.answers[at].iter().flatten().copied()).collect()
    }

    /// Returns the size of a user's call or its result, which are sent as user text, numbered if there are
    /// several (rule H9).
    fn said_by_the_user(&self, at: usize) -> Option<i64> {
        let head = self.owner[at].unwrap_or(at);
        if !self.is_head(head) || self.s.lines[head].calls.is_empty() {
            return None;
        }
        let calls = self.s.lines[head].calls.len();
        let number = |nth: usize| if calls > 1 { format!(" number=\"{}\"", nth + 1) } else { String::new() };
        if at != head {
            let nth = self.answers[head].iter().position(|answer| *answer == Some(at)).unwrap();
            let fence = format!("<tool_result{}>\n\n</tool_result>", number(nth)).len() as i64;
            return Some(frame("user") + self.bytes_sent(at) + fence);
        }
        let call = |nth: usize| {
            let name = generate::tool_of(self.s.lines[head].calls[nth]);
            format!("<tool_call{} name=\"{name}\">\n{{}}\n</tool_call>", number(nth)).len() as i64
        };
        Some(frame("user") + self.texts[at].len() as i64 + (0..calls).map(call).sum::<i64>())
    }

    pub fn message_size(&self, at: usize) -> i64 {
        if let Some(size) = self.said_by_the_user(at) {
            return size;
        }
        let line = &self.s.lines[at];
        let call = |id: &&str| (3 + generate::tool_of(id).len() + 2) as i64;
        let calls: i64 = line.calls.iter().map(call).sum();
        frame(line.role.name()) + self.bytes_sent(at) + calls
    }

    pub fn size(&self, unit: Unit) -> i64 {
        match unit {
            Unit::System => frame("system") + self.s.system.unwrap() as i64,
            Unit::Focus => {
                frame("system") + ("Focus of this conversation: ".len() + self.s.focus.unwrap()) as i64
            }
            Unit::State(at) => {
                frame("user")
                    + (format!("<state id=\"st{at}\">\n\n</state>").len() + self.s.states[at]) as i64
            }
            Unit::Note(at) => frame("system") + self.s.note_text(at).len() as i64,
            Unit::Rule(at) => frame("user") + ("Standing rule: ".len() + self.s.rule_text(at).len()) as i64,
            Unit::Message(at) => {
                let calls = self.s.lines[at].calls.iter().zip(&self.answers[at]);
                let missing = calls.filter(|(_, answer)| answer.is_none() && !self.is_head(at));
                let made_up = missing.map(|(call, _)| {
                    let name = generate::tool_of(call);
                    frame("tool") + format!("No result was recorded for the call of {name}.").len() as i64
                });
                let members: i64 = self.members(at).into_iter().map(|at| self.message_size(at)).sum();
                members + made_up.sum::<i64>()
            }
            Unit::Document(at) => self.size_in(at, self.form(at)),
        }
    }

    /// Returns the number of the template of documents. Returns `None` for the default one.
    pub fn template(&self) -> Option<usize> {
        let header = &self.s.config.rag.template.header;
        generate::TEMPLATES.iter().position(|(own, _)| own == header)
    }

    /// Returns the tokens of a document in a form: 0 is the whole text, 1 the first variant.
    pub fn size_in(&self, at: usize, form: usize) -> i64 {
        let document = &self.items[at];
        let text = if form == 0 { &document.text } else { &document.variants[form - 1] };
        let record = "history, no instruction";
        let origin = document.recalls.map(|_| record).or(document.origin);
        let attribute = |name: &str, value: Option<String>| {
            value.map_or(String::new(), |value| format!(" {name}=\"{value}\""))
        };
        let origin = origin.map(str::to_owned);
        let id = attribute("id", Some(document.id.to_owned()));
        // The length of a date does not depend on the day: years have four digits.
        let date = document.date.map(|_| "2026-11-27".to_owned());
        let header = match self.template() {
            None => id + &attribute("source", origin),
            Some(0) => {
                let position = document.position.map(|position| format!("no. {position}"));
                attribute("n", position) + &attribute("file", origin) + &id + &attribute("on", date)
            }
            Some(2) => attribute("on", date) + &attribute("source", document.recalls.and(origin)),
            Some(_) => {
                let points = attribute("of", Some(format!("{} points", document.score)));
                let named = |origin: &String| (form > 0).then(|| format!("v{}, {origin}", form - 1));
                // Recalled messages have no forms, but always a source.
                let source = attribute("source", document.recalls.and(origin.clone()));
                String::from(" kind=\"&lt;page&gt;\"")
                    + &points
                    + &attribute("as", origin.as_ref().and_then(named))
                    + &source
            }
        };
        let has_label = self.s.config.rag.labels && document.recalls.is_none();
        let label = self.labels.borrow().get(&at).copied().or(has_label.then_some(1));
        let label = label.map_or(String::new(), |label| format!(" label=\"[{label}]\""));
        let fence = format!("<document{label}{header}>\n</document>\n");
        // A line break that the text lacks, and a backslash in each delimiter that it contains.
        let added = usize::from(!text.ends_with('\n')) + text.to_lowercase().matches("<document").count();
        (fence.len() + text.len() + added) as i64
    }

    pub fn never(&self, at: usize) -> Option<&'static str> {
        if self.second.contains(&at) {
            Some("second_result")
        } else if self.s.lines[at].role == Role::Tool && self.owner[at].is_none() {
            Some("orphan_result")
        } else if self.empty(at) {
            Some("empty_message")
        } else if self.s.config.conversation.repair == Repair::Drop
            && self.answers[at].contains(&None)
            && !self.is_head(at)
        {
            Some("missing_result")
        } else {
            None
        }
    }

    pub fn over(&self, ttl: Option<Ttl>) -> bool {
        // These sessions have no earlier question about expired items, so `ask` keeps everything one more
        // turn.
        ttl == Some(Ttl::NoneRemaining) && self.s.config.ttl_policy == TtlPolicy::Automatic
    }

    pub fn expired(&self, at: usize) -> bool {
        let votes = self.members(at).into_iter().map(|at| &self.s.lines[at].life);
        let votes: Vec<bool> = votes
            .filter(|life| life.ttl.is_some() || life.pin.is_some())
            .map(|life| !self.over(life.ttl))
            .collect();
        !votes.is_empty() && !votes.contains(&true)
    }

    pub fn pinned(&self, at: usize) -> Option<Priority> {
        self.members(at).into_iter().filter_map(|at| self.s.lines[at].life.pin).min()
    }

    pub fn live_question(&self) -> Option<usize> {
        self.turns().last().and_then(|turn| turn.0)
    }

    pub fn required(&self) -> Vec<usize> {
        let Some((head, exchanges)) = self.turns().pop() else { return Vec::new() };
        let speaks = |at: &&usize| self.s.lines[**at].role == Role::Assistant && !self.empty(**at);
        let open = exchanges.iter().rev().find(speaks).filter(|at| !self.s.lines[**at].calls.is_empty());
        let open = open.filter(|at| self.never(**at).is_none()).copied();
        let newest = exchanges.iter().rev().find(|at| self.never(**at).is_none()).copied();
        let mut required: Vec<usize> = head.or(newest).into_iter().collect();
        required.extend(open.filter(|open| !required.contains(open)));
        required
    }

    /// Returns the reason that excludes a message or exchange before any budget is considered.
    pub fn dead(&self, turn: &(Option<usize>, Vec<usize>), at: usize) -> Option<&'static str> {
        let required = self.required();
        if let Some(rule) = self.never(at) {
            return Some(rule);
        }
        if required.contains(&at) {
            return None;
        }
        let by_head =
            turn.0.is_some_and(|head| head != at && !required.contains(&head) && self.expired(head));
        (self.expired(at) || by_head && self.pinned(at).is_none()).then_some("ttl_expired")
    }
}
