//! A second planner, written from docs/rules.md and apart from the first: slow, plain, and by brute force where that is
//! possible (every classification of sections for B5, every cut of the window for S4). It has to agree on every
//! decision of every small instance. A token is a byte, the framing is OpenAI's: 3 and the role's name a message,
//! 3 for priming, 3 a call.
#![allow(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::print_stderr,
    unreachable_pub,
    missing_docs,
    reason = "a test"
)]

#[path = "oracle/steady.rs"]
mod steady;
mod support;

use context_window::{
    ExcludedReason, Fill, HeldBy, PolicyRule, Priority, Repair, Role, Section, Ttl, TtlPolicy,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use support::generate::{self, Session};

/// What became of one id: in for a reason and on whose account, or out for one.
type Verdicts = BTreeMap<String, String>;

/// The verdicts, the sections' budgets, where the window starts, whether a set was given up, and the message
/// before which results are cleared.
type Decided = (Verdicts, [i64; 3], Option<String>, bool, usize);

#[derive(Clone)]
struct Oracle<'a> {
    s: &'a Session,
    /// For each call of each message, the message that answers it.
    answers: Vec<Vec<Option<usize>>>,
    /// For each result, the message with its call; none for orphans.
    owner: Vec<Option<usize>>,
    second: BTreeSet<usize>,
    kept: BTreeMap<Unit, (Section, &'static str)>,
    /// S7: results before this message are cleared.
    cleared: usize,
    /// S7: results of the open exchange keep so many bytes.
    clip: Option<usize>,
    /// S5: pins of the window that found no room are paid for by the conversation.
    paid: bool,
    /// S5: the set could not stay.
    no_set: bool,
}

/// Why a decision has to be made again.
enum Again {
    /// S7: results before this message are cleared, those of the open exchange clipped to so many bytes.
    Shorter(usize, Option<usize>),
    Paid,
    NoSet,
}

/// What is decided as one: an exchange goes by the message it starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    System,
    Focus,
    State(usize),
    Note(usize),
    Message(usize),
    Document(usize),
}

/// What holds everything that is not in the minimum, where that alone is over the budget.
const OVERFLOW: &str = "budget/overflow";

fn frame(role: &str) -> i64 {
    3 + role.len() as i64
}

impl<'a> Oracle<'a> {
    fn new(s: &'a Session) -> Self {
        let mut oracle = Self {
            s,
            answers: s.lines.iter().map(|line| vec![None; line.calls.len()]).collect(),
            owner: vec![None; s.lines.len()],
            second: BTreeSet::new(),
            kept: BTreeMap::new(),
            cleared: 0,
            clip: None,
            paid: false,
            no_set: false,
        };
        for at in 0..s.lines.len() {
            oracle.pair(at);
        }
        oracle
    }

    /// H1: the nearest unanswered call before; else the next one of the turn that comes; H3: a second result never.
    fn pair(&mut self, at: usize) {
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
            let early = (turn..at).find(|before| {
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

    fn empty(&self, at: usize) -> bool {
        let line = &self.s.lines[at];
        line.role != Role::Tool && line.size == 0 && line.calls.is_empty()
    }

    fn is_head(&self, at: usize) -> bool {
        self.s.lines[at].role == Role::User && !self.empty(at)
    }

    fn leading(&self, at: usize) -> bool {
        self.s.lines[..=at].iter().all(|line| line.role == Role::System)
    }

    /// The turns as (head, exchanges), oldest first; an exchange is named by its first message.
    fn turns(&self) -> Vec<(Option<usize>, Vec<usize>)> {
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

    fn members(&self, at: usize) -> Vec<usize> {
        std::iter::once(at).chain(self.answers[at].iter().flatten().copied()).collect()
    }

    fn message_size(&self, at: usize) -> i64 {
        let line = &self.s.lines[at];
        let calls = line.calls.len() as i64 * (3 + 1 + 2);
        frame(line.role.name()) + self.bytes_sent(at) + calls
    }

    fn size(&self, unit: Unit) -> i64 {
        match unit {
            Unit::System => frame("system") + self.s.system.unwrap() as i64,
            Unit::Focus => {
                frame("system") + ("Focus of this conversation: ".len() + self.s.focus.unwrap()) as i64
            }
            Unit::State(at) => {
                frame("user")
                    + (format!("<state id=\"st{at}\">\n\n</state>").len() + self.s.states[at]) as i64
            }
            Unit::Note(at) => frame("system") + self.s.notes[at].0 as i64,
            Unit::Message(at) => {
                let missing = self.answers[at].iter().filter(|answer| answer.is_none()).count() as i64;
                let made_up = frame("tool") + "No result was recorded for the call of f.".len() as i64;
                let members: i64 = self.members(at).into_iter().map(|at| self.message_size(at)).sum();
                members + missing * made_up
            }
            Unit::Document(at) => {
                let document = &self.s.rag[at];
                let source = document.origin.map_or(String::new(), |origin| format!(" source=\"{origin}\""));
                let fence = format!("<document id=\"{}\"{source}>\n\n</document>\n", document.id);
                (fence.len() + document.size) as i64
            }
        }
    }

    // ---- H2, H3, T1, T2

    fn never(&self, at: usize) -> Option<&'static str> {
        if self.second.contains(&at) {
            Some("second_result")
        } else if self.s.lines[at].role == Role::Tool && self.owner[at].is_none() {
            Some("orphan_result")
        } else if self.empty(at) {
            Some("empty_message")
        } else if self.s.config.conversation.repair == Repair::Drop && self.answers[at].contains(&None) {
            Some("missing_result")
        } else {
            None
        }
    }

    fn over(&self, ttl: Option<Ttl>) -> bool {
        // Nothing was asked about before in these sessions, so `ask` keeps everything one more turn.
        ttl == Some(Ttl::NoneRemaining) && self.s.config.ttl.policy == TtlPolicy::Automatic
    }

    fn expired(&self, at: usize) -> bool {
        let votes = self.members(at).into_iter().map(|at| &self.s.lines[at].life);
        let votes: Vec<bool> = votes
            .filter(|life| life.ttl.is_some() || life.pin.is_some())
            .map(|life| !self.over(life.ttl))
            .collect();
        !votes.is_empty() && !votes.contains(&true)
    }

    fn pinned(&self, at: usize) -> Option<Priority> {
        self.members(at).into_iter().filter_map(|at| self.s.lines[at].life.pin).min()
    }

    fn live_question(&self) -> Option<usize> {
        self.turns().last().and_then(|turn| turn.0)
    }

    fn required(&self) -> Vec<usize> {
        let Some((head, exchanges)) = self.turns().pop() else { return Vec::new() };
        let speaks = |at: &&usize| self.s.lines[**at].role == Role::Assistant && !self.empty(**at);
        let open = exchanges.iter().rev().find(speaks).filter(|at| !self.s.lines[**at].calls.is_empty());
        let open = open.filter(|at| self.never(**at).is_none()).copied();
        let newest = exchanges.iter().rev().find(|at| self.never(**at).is_none()).copied();
        let mut required: Vec<usize> = head.or(newest).into_iter().collect();
        required.extend(open.filter(|open| !required.contains(open)));
        required
    }

    /// Why a message or exchange is out before anything is weighed.
    fn dead(&self, turn: &(Option<usize>, Vec<usize>), at: usize) -> Option<&'static str> {
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

    // ---- S2, S3

    /// The pins in order: the unit, the user message it brings, and whether it is never dropped.
    fn pins(&self) -> Vec<(Unit, Option<Unit>, bool)> {
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

    // ---- S8, S9

    /// The documents in order, and why some of them never compete.
    fn documents(&self) -> Vec<(usize, Option<String>)> {
        let rules = self.s.config.rag;
        let mut order: Vec<usize> = (0..self.s.rag.len()).collect();
        order.sort_by_key(|at| {
            let document = &self.s.rag[*at];
            let place = self.place_in_the_set(*at);
            (place, -document.score, document.id, document.text(), document.origin, document.ttl)
        });
        let mut known: Vec<usize> = Vec::new();
        let mut documents = Vec::new();
        for at in order {
            let document = &self.s.rag[at];
            let repeats = known.iter().any(|known| {
                self.s.rag[*known].id == document.id || self.s.rag[*known].size == document.size
            });
            let out = if self.over(document.ttl) {
                Some("ttl_expired")
            } else if rules.min_score.is_some_and(|least| f64::from(document.score) < least) {
                Some("min_score")
            } else if rules.max_item_tokens.is_some_and(|most| self.size(Unit::Document(at)) > most as i64) {
                Some("max_item_tokens")
            } else if repeats {
                Some("duplicate")
            } else {
                known.push(at);
                None
            };
            documents.push((at, out.map(str::to_owned)));
        }
        documents
    }

    fn used(&self, section: Section) -> i64 {
        let of = self.kept.iter().filter(|(_, (payer, _))| *payer == section);
        of.map(|(unit, _)| self.size(*unit)).sum()
    }

    fn keep(&mut self, unit: Unit, section: Section, reason: &'static str) {
        self.kept.entry(unit).or_insert((section, reason));
    }

    // ---- B3 to B6, S4, S6

    fn cap(&self, section: Section) -> i64 {
        self.s.config.sections.of(section).cap.map_or(i64::MAX, |cap| cap as i64)
    }

    fn block(&self) -> i64 {
        frame("user") + ("<documents>\n".len() + "</documents>".len()) as i64
    }

    fn has_documents(&self) -> bool {
        self.kept.keys().any(|unit| matches!(unit, Unit::Document(_)))
    }

    fn follows_the_question(&self, unit: Unit) -> bool {
        let live = self.turns().pop();
        live.is_some_and(|(head, exchanges)| {
            head.is_some() && exchanges.iter().any(|at| Unit::Message(*at) == unit)
        })
    }

    /// What merging all state into the live question saves, as things stand.
    fn merge(&self) -> i64 {
        let follows = self.kept.keys().any(|unit| self.follows_the_question(*unit));
        if self.live_question().is_some() && !follows {
            frame("user") * self.s.states.len() as i64
        } else {
            0
        }
    }

    fn decide(mut self) -> Decided {
        self.cleared = self.cleared_before();
        loop {
            let again = Oracle { kept: BTreeMap::new(), ..self.clone() };
            self = match self.decide_once() {
                Ok(decided) => return decided,
                Err(Again::Shorter(cleared, clip)) => Oracle { cleared, clip, paid: false, ..again },
                Err(Again::Paid) => Oracle { paid: true, ..again },
                Err(Again::NoSet) => {
                    let cleared = again.cleared_before();
                    Oracle { cleared, clip: None, paid: false, no_set: true, ..again }
                }
            };
        }
    }

    /// The decision, or what has to be otherwise before there is one.
    fn decide_once(mut self) -> Result<Decided, Again> {
        for unit in self.required_system() {
            self.keep(unit, Section::SystemPinned, "required");
        }
        for at in self.required() {
            self.keep(Unit::Message(at), Section::Conversation, "required");
        }
        for (unit, brought, never_dropped) in self.pins() {
            if never_dropped {
                self.keep(unit, Section::SystemPinned, "pinned");
                if let Some(brought) = brought {
                    self.keep(brought, Section::SystemPinned, "pinned");
                }
            }
        }
        let minimums = Section::ALL.map(|section| self.used(section));
        let least: i64 = minimums.iter().sum();
        let there = (self.s.budget as i64 - 3).max(0);
        let competing = self.documents().iter().any(|(at, out)| out.is_none() && self.competes(*at));
        let mut reserve = if competing { self.block() } else { 0 };
        let merge = self.merge();
        if least > (there - reserve).max(0) + merge {
            reserve = 0;
        }
        let total = (there - reserve).max(0);
        if least > total + merge {
            if let Some(clip) = self.clip_to(least, total + merge) {
                return Err(Again::Shorter(self.cleared, Some(clip)));
            }
            let start = self.start();
            return Ok((
                self.verdicts(&BTreeMap::new(), OVERFLOW),
                minimums,
                start,
                self.no_set,
                self.cleared,
            ));
        }
        let no_documents = competing && reserve == 0;
        // A minimum that fits by what merging saves leaves nothing to share out.
        let budgets = if least > total { minimums } else { self.budgets(total, minimums, no_documents) };
        let spare = |oracle: &Self, section: Section| budgets[section as usize] - oracle.used(section);
        let fallen_first = self.offer_pins(spare(&self, Section::SystemPinned), 0, i64::MAX);
        let budget = budgets[Section::Conversation as usize];
        let mut held = None;
        let mut awaited = Vec::new();
        if let Some(units) = self.resumed() {
            let room = (budget - self.used(Section::Conversation)).max(0);
            let size = |units: &[usize]| units.iter().map(|at| self.size(Unit::Message(*at))).sum::<i64>();
            let pins = |at: &usize| fallen_first.contains_key(&Unit::Message(*at));
            let (late, others): (Vec<usize>, Vec<usize>) = units.iter().copied().partition(pins);
            if size(&others) > room
                && let Some(cleared) = self.clear_to(budget)
            {
                return Err(Again::Shorter(cleared, None));
            }
            let joining = if self.paid { units } else { others };
            if size(&joining) <= room {
                joining
                    .into_iter()
                    .for_each(|at| self.keep(Unit::Message(at), Section::Conversation, "recent"));
                held = Some(None);
                awaited = if self.paid { Vec::new() } else { late };
            } else {
                let low = budget * i64::from(self.s.config.conversation.low_mark) / 1000;
                self.offer_window(low - self.used(Section::Conversation), 0, i64::MAX, i64::MAX, true);
                held = Some(Some(low));
            }
        } else {
            self.offer_window(spare(&self, Section::Conversation), 0, i64::MAX, i64::MAX, false);
        }
        let room = spare(&self, Section::Rag);
        self.offer_documents_first(room, total * i64::from(self.s.config.sections.rag.share) / 1000);
        let (fallen, behind, passed) = loop {
            let before = self.kept.len();
            let left = |oracle: &Self, section: Section| {
                let used: i64 = Section::ALL.iter().map(|section| oracle.used(*section)).sum();
                let opens = oracle.has_documents() || section == Section::Rag;
                let block = if opens { oracle.block() } else { reserve };
                (
                    oracle.s.budget as i64 - 3 - used - block,
                    (oracle.cap(section) - oracle.used(section)).max(0),
                )
            };
            let (room, cap) = left(&self, Section::SystemPinned);
            let merge = self.merge();
            let fallen = self.offer_pins(room, merge, cap);
            let (room, cap) = left(&self, Section::Conversation);
            let merge = self.merge();
            let behind = match held {
                Some(low) => {
                    if let Some(low) = low {
                        self.offer_window(room, merge, cap, low - self.used(Section::Conversation), true);
                    }
                    "budget/steady"
                }
                None => self.offer_window(room, merge, cap, i64::MAX, false),
            };
            let (room, cap) = left(&self, Section::Rag);
            let Some(passed) = self.offer_documents(room + self.merge(), cap) else {
                return Err(Again::NoSet);
            };
            if self.kept.len() == before {
                if reserve == 0 || self.has_documents() {
                    break (fallen, behind, passed);
                }
                reserve = 0;
            }
        };
        if awaited.iter().any(|at| !self.kept.contains_key(&Unit::Message(*at))) {
            return Err(Again::Paid);
        }
        let start = self.start();
        let mut out: BTreeMap<Unit, String> = passed;
        out.extend(fallen);
        Ok((self.verdicts(&out, behind), budgets, start, self.no_set, self.cleared))
    }

    fn required_system(&self) -> Vec<Unit> {
        let mut units: Vec<Unit> = Vec::new();
        units.extend(self.s.system.map(|_| Unit::System));
        units.extend(self.s.focus.map(|_| Unit::Focus));
        units.extend((0..self.s.states.len()).map(Unit::State));
        units.extend(
            (0..self.s.lines.len()).filter(|at| self.leading(*at) && !self.empty(*at)).map(Unit::Message),
        );
        units
    }

    /// B5 by brute force: every way to hold each section at its minimum, at its demand, or at λ times its share.
    fn budgets(&self, total: i64, minimums: [i64; 3], no_documents: bool) -> [i64; 3] {
        let demands = self.demands(total, minimums, no_documents);
        let shares = Section::ALL.map(|section| i64::from(self.s.config.sections.of(section).share));
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
            // λ = left / rising. Each section has to be where λ puts it.
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
            // Without a rising section some λ has to put everything where it is.
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
            let mut parts: Vec<(i64, usize)> = Vec::new();
            let mut given = 0;
            for at in (0..3).filter(|at| way[*at] == 2) {
                budgets[at] = left * shares[at] / rising;
                given += budgets[at];
                parts.push((-(left * shares[at] % rising), at));
            }
            parts.sort();
            for (_, at) in parts.into_iter().take((left - given) as usize) {
                budgets[at] += 1;
            }
            return budgets;
        }
        unreachable!("some λ exists")
    }

    fn demands(&self, total: i64, minimums: [i64; 3], no_documents: bool) -> [i64; 3] {
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
        for turn in self.turns() {
            for at in turn.0.into_iter().chain(turn.1.iter().copied()) {
                if !paid.contains(&Unit::Message(at)) && self.dead(&turn, at).is_none() {
                    sums[1] += self.size(Unit::Message(at));
                }
            }
        }
        if !no_documents {
            let mut origins: BTreeMap<&str, i64> = BTreeMap::new();
            let mut items = 0;
            let competing = |(at, out): &(usize, Option<String>)| out.is_none() && self.competes(*at);
            for (at, _) in self.documents().into_iter().filter(competing) {
                let size = self.size(Unit::Document(at));
                if self.s.config.rag.max_items.is_some_and(|most| items >= most) {
                    break;
                }
                if let (Some(most), Some(origin)) =
                    (self.s.config.rag.max_source_tokens, self.s.rag[at].origin)
                {
                    let used = origins.entry(origin).or_default();
                    if *used + size > most as i64 {
                        continue;
                    }
                    *used += size;
                }
                items += 1;
                sums[2] += size;
            }
        }
        [0, 1, 2].map(|at| sums[at].min(total).min(self.cap(Section::ALL[at])).max(minimums[at]))
    }

    fn offer_pins(&mut self, room: i64, merge: i64, cap: i64) -> BTreeMap<Unit, String> {
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
            let whole = (room + if follows { 0 } else { merge }).max(0);
            let (now, capped) = (whole.min(cap) - spent, cap < whole);
            if size <= now {
                spent += size;
                if follows {
                    merge = 0;
                }
                units.into_iter().for_each(|unit| self.keep(unit, Section::SystemPinned, "pinned"));
            } else {
                out.insert(unit, if capped { "budget/cap" } else { "budget/size" }.to_owned());
            }
        }
        out
    }

    /// S4 by brute force: every cut of the conversation, from keeping nothing to keeping everything; the longest that
    /// fits is taken. Returns what holds the rest.
    fn offer_window(&mut self, room: i64, merge: i64, cap: i64, most: i64, floored: bool) -> &'static str {
        let turns = self.turns();
        let alive =
            |oracle: &Self, turn: &(Option<usize>, Vec<usize>), at: usize| oracle.dead(turn, at).is_none();
        let new = |oracle: &Self, turn: &(Option<usize>, Vec<usize>), at: usize| {
            !oracle.kept.contains_key(&Unit::Message(at)) && alive(oracle, turn, at)
        };
        let live_open = turns.last().is_some_and(|turn| turn.1.iter().any(|at| new(self, turn, *at)));
        let room = if live_open { room } else { room + merge }.min(most);
        let capped = cap < room.max(0);
        let room = room.min(cap);
        let no_user = turns.len() == 1 && turns[0].0.is_none();
        // A cut: the turns after it are whole, and of the turn it falls in so many exchanges are kept.
        let mut cuts: Vec<(usize, Option<usize>)> = Vec::new();
        for (number, turn) in turns.iter().enumerate().rev() {
            cuts.push((number + 1, None));
            if turn.0.is_some() || no_user {
                cuts.extend((1..turn.1.len()).map(|kept| (number + 1, Some(kept))));
            }
        }
        cuts.push((0, None));
        // S5: a cut never reaches back behind where the window started.
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

    /// Nothing, where a set was to stay and not even its first fits.
    fn offer_documents(&mut self, room: i64, cap: i64) -> Option<BTreeMap<Unit, String>> {
        if self.has_a_set() {
            return self.offer_the_set(room, cap);
        }
        let all: Vec<usize> = self.documents().into_iter().map(|(at, _)| at).collect();
        Some(self.offer(&all, self.s.config.rag.fill, room, cap))
    }

    /// These documents, in order.
    fn offer(&mut self, these: &[usize], fill: Fill, room: i64, cap: i64) -> BTreeMap<Unit, String> {
        let rules = self.s.config.rag;
        let capped = cap < room.max(0);
        let mut left = room.min(cap);
        let mut stopped = false;
        let mut out = BTreeMap::new();
        for (at, never) in self.documents() {
            let unit = Unit::Document(at);
            if never.is_some() || self.kept.contains_key(&unit) || !these.contains(&at) {
                continue;
            }
            let documents = || {
                self.kept.keys().filter_map(|unit| match unit {
                    Unit::Document(at) => Some(*at),
                    _ => None,
                })
            };
            let origin = self.s.rag[at].origin;
            let of_origin: i64 = documents()
                .filter(|other| origin.is_some() && self.s.rag[*other].origin == origin)
                .map(|other| self.size(Unit::Document(other)))
                .sum();
            let size = self.size(unit);
            let reason = if rules.max_items.is_some_and(|most| documents().count() as u64 >= most) {
                "max_items"
            } else if origin.is_some()
                && rules.max_source_tokens.is_some_and(|most| of_origin + size > most as i64)
            {
                "max_source_tokens"
            } else if stopped {
                "budget/prefix"
            } else if size > left {
                stopped = fill == Fill::Prefix;
                if capped { "budget/cap" } else { "budget/size" }
            } else {
                left -= size;
                self.keep(unit, Section::Rag, "relevant");
                continue;
            };
            out.insert(unit, reason.to_owned());
        }
        out
    }

    /// The oldest kept message of the conversation behind which nothing that lives is missing; a whole turn by its head.
    fn start(&self) -> Option<String> {
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
            // A turn that is in by its pins alone is not kept by recency.
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

    /// One verdict an id. `behind` holds what the walk did not reach.
    fn verdicts(&self, out: &BTreeMap<Unit, String>, behind: &str) -> Verdicts {
        let overflow = behind == OVERFLOW;
        let held = behind.to_owned();
        let mut verdicts = Verdicts::new();
        for (unit, (section, reason)) in &self.kept {
            for (id, _) in self.ids(*unit) {
                verdicts.insert(id, format!("in {} {reason}", section.name()));
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
        for at in (0..self.s.lines.len()).filter(|at| self.leading(*at) && self.empty(*at)) {
            verdicts.insert(format!("m{at}"), "out empty_message".to_owned());
        }
        let pins: BTreeSet<Unit> = self.pins().into_iter().map(|(unit, ..)| unit).collect();
        let mut reached = !overflow;
        for turn in self.turns().iter().rev() {
            let head_dead = turn.0.filter(|head| {
                self.dead(turn, *head).is_some() && !self.kept.contains_key(&Unit::Message(*head))
            });
            // The walk stops in the first turn of which something that lives is missing.
            let mut stopped = !reached;
            let mut order: Vec<usize> = turn.1.iter().rev().copied().collect();
            let head_missing = turn
                .0
                .is_some_and(|head| !self.kept.contains_key(&Unit::Message(head)) && head_dead.is_none());
            // O2: a turn that is left out altogether is behind the point where the walk stopped.
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
                    // A pin that got no room is an ordinary message again, and so the walk stopped at it.
                    stopped |= head_dead.is_none();
                    if overflow { held.clone() } else { out.get(&unit).cloned().unwrap_or_default() }
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

    /// The ids a unit stands for, and whether a repair made them up. Documents are named by their place, since ids repeat.
    fn ids(&self, unit: Unit) -> Vec<(String, bool)> {
        match unit {
            Unit::System => vec![("s0".into(), false)],
            Unit::Focus => vec![("focus".into(), false)],
            Unit::State(at) => vec![(format!("st{at}"), false)],
            Unit::Note(at) => vec![(format!("n{at}"), false)],
            Unit::Document(at) => {
                let rank = self.documents().iter().position(|(document, _)| *document == at).unwrap();
                vec![(format!("rag {rank}"), false)]
            }
            Unit::Message(at) => {
                let real = self.members(at).into_iter().map(|at| (format!("m{at}"), false));
                let names = self.call_names(at);
                let missing = (0..names.len()).filter(|call| self.answers[at][*call].is_none());
                real.chain(missing.map(|call| (format!("synth:m{at}:{}", names[call]), true))).collect()
            }
        }
    }

    /// H1: repeated ids of one message become `x#2`, `x#3`, never a name that is there already.
    fn call_names(&self, at: usize) -> Vec<String> {
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

/// The planner's verdicts in the oracle's words.
fn planned(session: &Session, oracle: &Oracle<'_>, plan: &context_window::ContextPlan) -> Verdicts {
    let mut verdicts = Verdicts::new();
    let mut ranks: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (rank, (at, never)) in oracle.documents().into_iter().enumerate() {
        let key =
            format!("{}{}", session.rag[at].id, never.map_or(String::new(), |never| format!(" {never}")));
        ranks.entry(key).or_default().push(rank);
    }
    let mut rank = |key: String| {
        let ranks = ranks.get_mut(&key).filter(|ranks| !ranks.is_empty());
        ranks.map_or_else(|| format!("unexpected {key}"), |ranks| format!("rag {}", ranks.remove(0)))
    };
    for row in &plan.included {
        let id = if row.section == Section::Rag { rank(row.id.to_string()) } else { row.id.to_string() };
        verdicts.insert(id, format!("in {} {}", row.section.name(), row.reason.name()));
    }
    for row in &plan.excluded {
        let reason = match &row.reason {
            ExcludedReason::Budget { held_by, .. } => format!(
                "budget/{}",
                match held_by {
                    HeldBy::Size => "size",
                    HeldBy::Window => "window",
                    HeldBy::Cap => "cap",
                    HeldBy::Prefix => "prefix",
                    HeldBy::Overflow => "overflow",
                    HeldBy::Steady => "steady",
                    HeldBy::SteadySet => "steady_set",
                    _ => "?",
                }
            ),
            ExcludedReason::Policy(rule) => rule.name().to_owned(),
            other => other.name().to_owned(),
        };
        let chosen_later = matches!(
            row.reason,
            ExcludedReason::Budget { .. }
                | ExcludedReason::Policy(PolicyRule::MaxItems { .. } | PolicyRule::MaxSourceTokens { .. })
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

proptest! {
    #![proptest_config(generate::cases(10_000, 100_000))]

    #[test]
    fn the_planner_agrees_with_the_oracle(session in generate::session()) {
        let plan = session.plan().unwrap();
        let (expected, budgets, start, no_set, cleared) = Oracle::new(&session).decide();
        let found = planned(&session, &Oracle { no_set, ..Oracle::new(&session) }, &plan);
        prop_assert_eq!(&found, &expected);
        let planned_budgets = plan.sections.map(|section| section.budget as i64);
        prop_assert_eq!(planned_budgets, budgets);
        prop_assert_eq!(plan.window_start.map(|id| id.to_string()), start);
        let boundary = (cleared > 0).then(|| format!("m{cleared}"));
        prop_assert_eq!(plan.cleared_before.map(|id| id.to_string()), boundary);
    }
}
