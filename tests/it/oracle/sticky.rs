//! State that a prompt leaves for the next one, in the oracle's terms (rules S5, S7).

use super::{BTreeMap, Oracle, RagFill, Role, Section, Unit};
use crate::support::generate;
use context_window::config::ToolResults;

impl Oracle<'_> {
    // ---- The window (rule S5)

    /// Returns the unit at which the last prompt's window started.
    pub fn start_before(&self) -> Option<usize> {
        let start = self.s.before.as_ref()?.start;
        if start >= self.s.lines.len() || self.leading(start) {
            return None;
        }
        Some(if self.is_head(start) { start } else { self.owner[start].unwrap_or(start) })
    }

    /// Returns the earliest message that a cut may reach.
    pub fn floor(&self) -> Option<usize> {
        self.start_before()
    }

    /// Returns true if a cut keeps no message before `floor`.
    pub fn is_behind(
        &self,
        turns: &[(Option<usize>, Vec<usize>)],
        whole_from: usize,
        trimmed: Option<usize>,
        floor: usize,
    ) -> bool {
        let of = turns.iter().position(|turn| turn.0 == Some(floor) || turn.1.contains(&floor)).unwrap();
        let by_head = turns[of].0 == Some(floor) || turns[of].1.first() == Some(&floor);
        match trimmed {
            None => whole_from > of || whole_from == of && by_head,
            Some(kept) => {
                let turn = &turns[whole_from - 1];
                whole_from - 1 > of
                    || whole_from - 1 == of && (by_head || turn.1[turn.1.len() - kept] >= floor)
            }
        }
    }

    /// Returns the units to include if the last prompt's window continues.
    pub fn resumed(&self) -> Option<Vec<usize>> {
        let start = self.start_before()?;
        let turns = self.turns();
        let of = turns.iter().position(|turn| turn.0 == Some(start) || turn.1.contains(&start)).unwrap();
        let mut units = Vec::new();
        for (number, turn) in turns.iter().enumerate().skip(of) {
            let kept = |at: usize| self.kept.get(&Unit::Message(at));
            let lives = |at: usize| kept(at).is_none() && self.dead(turn, at).is_none();
            let head_is_dead = turn.0.is_some_and(|head| kept(head).is_none() && !lives(head));
            let suffix: Vec<usize> = turn
                .1
                .iter()
                .copied()
                .filter(|at| number > of || turn.0 == Some(start) || *at >= start)
                .collect();
            if number == of && turn.0 != Some(start) {
                let paid = |at: &usize| matches!(kept(*at), Some((Section::Conversation, _)));
                let reaches = suffix.iter().any(|at| paid(at) || lives(*at));
                let missing = turn.1.iter().any(|at| *at < start && lives(*at));
                let gap = turn.0.is_none() && turns.len() > 1 && missing;
                if head_is_dead || gap || !reaches {
                    continue;
                }
            }
            if !head_is_dead {
                units.extend(turn.0.into_iter().chain(suffix).filter(|at| lives(*at)));
            }
        }
        Some(units)
    }

    // ---- The documents (rule S5)

    /// Returns the documents of the last prompt in its order, if the question is the same and one of them
    /// still competes.
    pub fn set(&self) -> Vec<&'static str> {
        let before = self.s.before.as_ref().filter(|before| before.same_question && !self.no_set);
        let Some(before) = before.filter(|_| self.live_question().is_some()) else { return Vec::new() };
        let rules = &self.s.config.rag;
        let good = |at: usize| {
            let document = &self.items[at];
            before.set.contains(&document.id)
                && !self.over(document.ttl)
                && rules.min_score.is_none_or(|least| f64::from(document.score) >= least)
                && rules
                    .max_item_tokens
                    .is_none_or(|most| self.size_in(at, self.form_before(at)) <= most as i64)
        };
        if (0..self.items.len()).any(good) { before.set.clone() } else { Vec::new() }
    }

    /// Returns true if the live question was sent without this document.
    pub fn sent_without(&self, at: usize) -> bool {
        let before = self.s.before.as_ref().filter(|before| before.same_question);
        let sent = before.is_some_and(|before| !before.set.contains(&self.items[at].id));
        self.live_question().is_some() && sent
    }

    pub fn has_a_set(&self) -> bool {
        !self.set().is_empty()
    }

    /// Returns the rank of a document in the last prompt; all others come last.
    pub fn place_in_the_set(&self, at: usize) -> usize {
        let place = self.set().iter().position(|id| *id == self.items[at].id);
        // The rank may differ from the place in the prompt.
        let ranks = self.s.before.as_ref().map_or(&[][..], |before| &before.ranks);
        place.map_or(usize::MAX, |place| ranks.get(place).map_or(place, |rank| *rank as usize))
    }

    /// Returns true if a document may be included. If documents of the last prompt are kept, only those may.
    pub fn competes(&self, at: usize) -> bool {
        let set = self.set();
        set.is_empty() || set.contains(&self.items[at].id)
    }

    /// Makes the first offer: all documents of the last prompt within the section's budget, otherwise the
    /// first ones within its share.
    pub fn offer_documents_first(&mut self, budget: i64, share: i64) {
        if !self.has_a_set() {
            self.offer_documents(budget, i64::MAX, 0);
            return;
        }
        let before = (self.kept.clone(), self.forms.clone());
        let set = self.members_of_the_set();
        let out = self.offer(&set, RagFill::Prefix, budget, i64::MAX);
        if out.values().any(|reason| reason.starts_with("budget")) {
            (self.kept, self.forms) = before;
            self.offer(&set, RagFill::Prefix, budget.min(share), i64::MAX);
        }
    }

    fn members_of_the_set(&self) -> Vec<usize> {
        (0..self.items.len()).filter(|at| self.place_in_the_set(*at) < usize::MAX).collect()
    }

    /// Offers the free tokens to all documents of the last prompt or none of them. If none is included yet,
    /// as many of the first ones as fit are. Returns `None` if not even one fits.
    pub fn offer_the_set(&mut self, room: i64, cap: i64, share: i64) -> Option<BTreeMap<Unit, String>> {
        let set = self.members_of_the_set();
        let before = (self.kept.clone(), self.forms.clone());
        let out = self.offer(&set, RagFill::Prefix, room, cap);
        let had = before.0.keys().any(|unit| matches!(unit, Unit::Document(_)));
        if !had && self.kept == before.0 {
            return None;
        }
        let mut out = out;
        if had && out.values().any(|reason| reason.starts_with("budget")) {
            (self.kept, self.forms) = before;
        } else if had && self.kept == before.0 {
            // Others are added after them, up to the share (rule S5).
            let others: Vec<usize> = self.documents().into_iter().map(|(at, _)| at).collect();
            let left = share - self.used(Section::Rag);
            out = self.offer(&others, self.s.config.rag.fill, room.min(left), cap);
        }
        let mut verdicts = BTreeMap::new();
        for (at, never) in self.documents() {
            let unit = Unit::Document(at);
            if never.is_none() && !self.kept.contains_key(&unit) {
                let policy = out.get(&unit).filter(|reason| !reason.starts_with("budget"));
                verdicts.insert(unit, policy.cloned().unwrap_or_else(|| "budget/sticky_documents".into()));
            }
        }
        Some(verdicts)
    }

    // ---- Clearing and clipping (rule S7)

    pub fn cleared_before(&self) -> usize {
        let clears = self.s.config.conversation.tool_results == ToolResults::Clear;
        let before = self.s.before.as_ref().and_then(|before| before.cleared);
        before.filter(|at| clears && *at < self.s.lines.len()).unwrap_or(0)
    }

    /// Returns the bytes of a message's own text as sent.
    pub fn bytes_sent(&self, at: usize) -> i64 {
        self.text_sent(at).len() as i64
    }

    /// Returns a message's own text as sent.
    pub fn text_sent(&self, at: usize) -> String {
        let text = &self.texts[at];
        let shorter = match self.clip {
            Some(clip) if self.in_the_open_exchange(at) => self.clipped(at, clip),
            _ if at < self.cleared => self.stub(at),
            _ => None,
        };
        shorter.or_else(|| self.offloaded(at)).unwrap_or_else(|| text.clone())
    }

    /// Returns a result clipped to this number of bytes. An offloaded one keeps the line with its handle.
    fn clipped(&self, at: usize, bytes: usize) -> Option<String> {
        match self.offloaded(at).and(self.kept_outside(at)) {
            Some(keep) if keep <= bytes as u64 => None,
            Some(_) => without_middle(&self.texts[at], bytes, &handle(at)),
            None => clipped(at, &self.texts[at], bytes),
        }
    }

    /// Returns an offloaded result as sent.
    fn offloaded(&self, at: usize) -> Option<String> {
        without_middle(&self.texts[at], self.kept_outside(at)? as usize, &handle(at))
    }

    /// Returns the bytes that a result above its limit keeps. Results of users' calls and of the tool
    /// `recall` have no limit.
    fn kept_outside(&self, at: usize) -> Option<u64> {
        let owner = self.owner[at].filter(|owner| !self.is_head(*owner))?;
        let nth = self.answers[owner].iter().position(|answer| *answer == Some(at))?;
        let (above, keep) = self.limits_of_results(at)?;
        let is_read_back = generate::tool_of(self.s.lines[owner].calls[nth]) == "recall";
        (!is_read_back && self.texts[at].len() as u64 > above).then_some(keep)
    }

    /// Returns the limit above which a result is offloaded, with the bytes that it keeps. Results that the
    /// last prompt may have sent have the form that it recorded.
    fn limits_of_results(&self, at: usize) -> Option<(u64, u64)> {
        let options = self.s.config.conversation;
        let offloads = options.tool_results == ToolResults::Offload && self.s.declares_recall;
        let now = offloads.then_some((options.offload_above, options.offload_keep));
        let known = self.s.lines.len();
        let Some(before) = &self.s.before else { return now };
        let sent = |line: &generate::Line| line.role == Role::Assistant && line.answers.is_none();
        let replied = self.s.lines.iter().rposition(sent).map_or(0, |at| at + 1);
        let asked = if before.same_question { self.live_question().map_or(0, |at| at + 1) } else { 0 };
        let new = replied.max(asked);
        let mut forms = before.forms.clone();
        // A form whose first message is unknown does not apply.
        forms.retain(|form| form.0 < known || form.0 == 0);
        if forms.last().and_then(|form| form.1) != now && (new < known || new == 0) {
            forms.push((new, now));
        }
        // A form that begins after the next one begins with it.
        let start = |nth: usize| forms[nth..].iter().map(|form| form.0).min().unwrap_or_default();
        let of = (0..forms.len()).rfind(|nth| start(*nth) <= at)?;
        forms[of].1
    }

    fn open(&self) -> Option<usize> {
        let turn = self.turns().pop()?;
        let speaks = |at: &&usize| self.s.lines[**at].role == Role::Assistant && !self.empty(**at);
        turn.1.iter().rev().find(speaks).copied().filter(|at| !self.s.lines[*at].calls.is_empty())
    }

    fn in_the_open_exchange(&self, at: usize) -> bool {
        self.owner[at].is_some() && self.owner[at] == self.open()
    }

    /// Returns a result's stub, if the result may be cleared.
    fn stub(&self, at: usize) -> Option<String> {
        let owner = self.owner[at].filter(|owner| !self.is_head(*owner))?;
        let size = self.texts[at].len();
        let stub = format!("[Result m{at} was cleared: {size} bytes. Call again if it is needed.]");
        let free = self.pinned(owner).is_none() && !self.required().contains(&owner);
        (free && stub.len() < size).then_some(stub)
    }

    /// Returns the new boundary if clearing is worth while: from the newest result back, freeing at most
    /// `most` tokens.
    pub fn clear_to(&self, most: i64) -> Option<usize> {
        let options = self.s.config.conversation;
        let start = self.start_before()?;
        // The result of a user's call is user text (rule H9).
        let is_result = |at: &usize| self.owner[*at].is_some_and(|owner| !self.is_head(owner));
        let results: Vec<usize> = (start..self.s.lines.len()).filter(is_result).collect();
        let keep = options.keep_results as usize;
        let whole = results.len().checked_sub(keep)?;
        if options.tool_results != ToolResults::Clear {
            return None;
        }
        let boundary = if keep == 0 { self.s.lines.len() - 1 } else { results[whole] };
        let boundary = boundary.min(self.open().unwrap_or(usize::MAX));
        let least = options.clear_at_least.max(1) as i64;
        let (mut freed, mut weighed) = (0, 0);
        for at in results.into_iter().rev().filter(|at| (self.cleared.max(start)..boundary).contains(at)) {
            let owner = self.owner[at].unwrap();
            let turns = self.turns();
            let turn = turns.iter().find(|turn| turn.1.contains(&owner)).unwrap();
            let Some(stub) = self.stub(at).map(|stub| stub.len()) else { continue };
            if owner < start || self.dead(turn, owner).is_some() {
                continue;
            }
            let sent = self.offloaded(at).unwrap_or_else(|| self.texts[at].clone());
            let (frame, size) = (super::frame("tool"), sent.len() as i64);
            let limit = frame + stub as i64 + (least - freed);
            freed += (size - stub as i64).min(least - freed);
            weighed += (frame + size).min(limit);
            if freed >= least {
                return Some(boundary);
            }
            if weighed > most {
                return None;
            }
        }
        None
    }

    /// Returns the longest clip at which the minimum fits, by trying all of them.
    pub fn clip_to(&self, least: i64, total: i64) -> Option<usize> {
        let results = self.s.config.conversation.tool_results;
        if !matches!(results, ToolResults::Clip | ToolResults::Offload) || self.clip.is_some() {
            return None;
        }
        let open = self.open().filter(|open| self.required().contains(open))?;
        let results = (0..self.s.lines.len()).filter(|at| self.owner[*at] == Some(open));
        let longest = results.clone().map(|at| self.texts[at].len()).max()?;
        let size = |clip: usize| {
            let clipped = Oracle { clip: Some(clip), ..self.clone() };
            clipped.size(Unit::Message(open))
        };
        let whole = self.size(Unit::Message(open));
        let shortens = |clip: &usize| results.clone().any(|at| self.clipped(at, *clip).is_some());
        (200..=longest).rev().find(|clip| shortens(clip) && least - whole + size(*clip) <= total)
    }
}

/// Returns a text clipped to this number of bytes, or `None` if that is no shorter.
fn clipped(at: usize, text: &str, bytes: usize) -> Option<String> {
    let size = text.len();
    without_middle(text, bytes, &format!(" of the {size} bytes of m{at} are left out here."))
}

/// Returns the end of the line of an offloaded result.
fn handle(at: usize) -> String {
    format!(" of SIZE bytes are left out here. To read them, call recall with the handle m{at}.")
}

/// Returns a text with this number of bytes of its beginning and end, or `None` if that is no shorter.
fn without_middle(text: &str, bytes: usize, line: &str) -> Option<String> {
    let size = text.len();
    let gap = size.checked_sub(bytes).filter(|gap| *gap > 0)?;
    let note = format!("\n[{gap}{}]\n", line.replace("SIZE", &size.to_string()));
    let end = size - bytes / 2;
    let clipped = format!("{}{note}{}", &text[..end - gap], &text[end..]);
    (clipped.len() < size).then_some(clipped)
}
