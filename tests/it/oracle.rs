//! A second planner, written from docs/rules.md and apart from the first: slow, plain, and by brute force where that is
//! possible (every classification of sections for B5, every cut of the window for S4). It has to agree on every
//! decision of every small instance. A token is a byte, the wire format is OpenAI's: 3 and the role's name a message,
//! 3 for priming, 3 a call.

mod budget;
mod candidates;
mod history;
mod offers;
mod sticky;
mod verdicts;

use crate::support::generate::{self, Session};
use context_window::{
    ExcludedReason, Priority, Role, Section, Ttl,
    config::{RagFill, Repair, TtlPolicy},
    plan::{LimitedBy, PolicyRule},
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// What became of one id: in for a reason and on whose account, or out for one.
type Verdicts = BTreeMap<String, String>;

/// Everything that has to agree.
struct Decided {
    verdicts: Verdicts,
    budgets: [i64; 3],
    start: Option<String>,
    /// Whether a set was given up.
    no_set: bool,
    /// The message before which results are cleared.
    cleared: usize,
}

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

/// Pins that found no room: how much there was for each, and what held it.
type Fallen = BTreeMap<Unit, (i64, String)>;

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

    fn used(&self, section: Section) -> i64 {
        let of = self.kept.iter().filter(|(_, (payer, _))| *payer == section);
        of.map(|(unit, _)| self.size(*unit)).sum()
    }

    fn keep(&mut self, unit: Unit, section: Section, reason: &'static str) {
        self.kept.entry(unit).or_insert((section, reason));
    }

    fn cap(&self, section: Section) -> i64 {
        self.s.config.sections.section(section).cap.map_or(i64::MAX, |cap| cap as i64)
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
            let (no_set, cleared) = (self.no_set, self.cleared);
            let verdicts = self.verdicts(&BTreeMap::new(), OVERFLOW);
            return Ok(Decided { verdicts, budgets: minimums, start, no_set, cleared });
        }
        // S2: pins before all others, out of whatever the minimum leaves, those that are never dropped within the limit too.
        let never_dropped = self.kept.iter().filter(|(_, (_, reason))| *reason == "pinned");
        let never_dropped: i64 = never_dropped.map(|(unit, _)| self.size(*unit)).sum();
        let limit = there * i64::from(self.s.config.sections.pins_limit) / 1000;
        let cap = (self.cap(Section::SystemPinned) - self.used(Section::SystemPinned)).max(0);
        let fallen_at_first = self.offer_pins(there - least, 0, cap, (limit - never_dropped).max(0));
        let minimums = Section::ALL.map(|section| self.used(section));
        let least: i64 = minimums.iter().sum();
        let merge = self.merge();
        if least > 0 && least > there - reserve + merge {
            reserve = 0;
        }
        let total = (there - reserve).max(0);
        let no_documents = competing && reserve == 0;
        // A minimum that fits by what merging saves leaves nothing to share out.
        let budgets = if least > total { minimums } else { self.budgets(total, minimums, no_documents) };
        let spare = |oracle: &Self, section: Section| budgets[section as usize] - oracle.used(section);
        let fallen_first = self.offer_pins(spare(&self, Section::SystemPinned), 0, i64::MAX, i64::MAX);
        let budget = budgets[Section::Conversation as usize];
        // A window that goes on from the last one: as it was, or cut to a low mark.
        let mut held: Option<Option<i64>> = None;
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
                let used = self.used(Section::Conversation);
                self.offer_window(budget - used, 0, i64::MAX, low - used, true);
                held = Some(Some(low));
            }
        } else {
            self.offer_window(spare(&self, Section::Conversation), 0, i64::MAX, i64::MAX, false);
        }
        let room = spare(&self, Section::Rag);
        let share = total * i64::from(self.s.config.sections.rag.share) / 1000;
        self.offer_documents_first(room, share);
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
            let fallen = self.offer_pins(room, merge, cap, i64::MAX);
            let (room, cap) = left(&self, Section::Conversation);
            let merge = self.merge();
            let behind = match held {
                Some(low) => {
                    if let Some(low) = low {
                        self.offer_window(room, merge, cap, low - self.used(Section::Conversation), true);
                    }
                    "budget/sticky_window"
                }
                None => self.offer_window(room, merge, cap, i64::MAX, false),
            };
            let (room, cap) = left(&self, Section::Rag);
            let Some(passed) = self.offer_documents(room + self.merge(), cap, share) else {
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
        for (unit, last) in fallen {
            let first = &fallen_at_first[&unit];
            out.insert(unit, if first.0 >= last.0 { first.1.clone() } else { last.1 });
        }
        let (no_set, cleared) = (self.no_set, self.cleared);
        Ok(Decided { verdicts: self.verdicts(&out, behind), budgets, start, no_set, cleared })
    }
}

proptest! {
    #![proptest_config(generate::cases(3_000, 100_000))]

    #[test]
    fn the_planner_agrees_with_the_oracle(session in generate::session()) {
        let plan = session.plan().unwrap();
        let expected = Oracle::new(&session).decide();
        let named_by = Oracle { no_set: expected.no_set, ..Oracle::new(&session) };
        prop_assert_eq!(&verdicts::planned(&session, &named_by, &plan), &expected.verdicts);
        prop_assert_eq!(Section::ALL.map(|section| plan.section(section).budget as i64), expected.budgets);
        prop_assert_eq!(plan.window_start.map(|id| id.to_string()), expected.start);
        let boundary = (expected.cleared > 0).then(|| format!("m{}", expected.cleared));
        prop_assert_eq!(plan.cleared_before.map(|id| id.to_string()), boundary);
    }
}
