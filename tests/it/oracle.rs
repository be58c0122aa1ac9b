//! A second planner, written from docs/rules.md independently of the first: slow, simple, and by brute force
//! if possible (every classification of sections for rule B5, every cut of the window for rule S4). Both have
//! to agree on every decision of every small instance. A token is a byte. The wire format is OpenAI's: 3
//! tokens and the role's name per message, 3 for priming, 3 per call.

mod budget;
mod candidates;
mod chunks;
mod dependents;
mod forms;
mod groups;
mod history;
mod offers;
mod sticky;
mod texts;
mod verdicts;

use crate::support::generate::{self, Session};
use context_window::{
    Config, ContextWindowManager, Conversation, ExcludedReason, Model, PlanRequest, PlannedItem, Priority,
    Role, Section, Ttl,
    config::{DocumentOrder, RagFill, Repair, TtlPolicy},
    plan::{LimitedBy, Overhead, PolicyRule},
};
use proptest::prelude::*;
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::LazyLock,
};
use texts::Item;

/// The decision for each id: included with reason and paying section, or excluded with reason.
type Verdicts = BTreeMap<String, String>;

/// All decisions that have to agree.
struct Decided {
    verdicts: Verdicts,
    /// The included documents in prompt order: ids, and ranks in lists.
    arranged: Vec<String>,
    budgets: [i64; 3],
    start: Option<String>,
    /// True if the documents of the last prompt were given up.
    no_set: bool,
    /// Index of the message before which results are cleared.
    cleared: usize,
}

#[derive(Clone)]
struct Oracle<'a> {
    s: &'a Session,
    items: Rc<Vec<Item>>,
    /// The labels of documents, as their order was last computed.
    labels: RefCell<BTreeMap<usize, u32>>,
    /// The text of each message.
    texts: Rc<Vec<String>>,
    /// For each call of each message, the message with its result.
    answers: Vec<Vec<Option<usize>>>,
    /// For each result, the message with its call; `None` for results without a call.
    owner: Vec<Option<usize>>,
    second: BTreeSet<usize>,
    kept: BTreeMap<Unit, (Section, &'static str)>,
    /// The forms of documents that are not kept in the fullest one (rule S17).
    forms: BTreeMap<usize, usize>,
    /// Documents that left because the conversation contains them, with the reason (rules S9, B6).
    left: BTreeMap<usize, String>,
    /// Documents that an earlier offer found in another text, with the reason.
    contained: BTreeMap<usize, String>,
    /// Index of the message before which results are cleared (rule S7).
    cleared: usize,
    /// Bytes kept of each result in the open exchange, if they are clipped (rule S7).
    clip: Option<usize>,
    /// True if the conversation pays for window pins without room in their own section (rule S5).
    paid: bool,
    /// True if the documents of the last prompt could not stay (rule S5).
    no_set: bool,
    /// True if the window is chosen anew, so that recalled messages count as a demand (rule S15).
    counts_recalled: bool,
    /// The most tokens of recalled messages.
    most_recalled: i64,
    /// The user's rules whose messages are not in the prompt (rule R1).
    rules_out: BTreeSet<usize>,
}

/// The reason to decide again.
enum Again {
    /// Results before this message are cleared, and those of the open exchange clipped to this number of
    /// bytes (rule S7).
    Shorter(usize, Option<usize>),
    Paid,
    NoSet,
    /// The window is cut, so recalled messages count.
    Recalled,
}

/// The items that are decided together. An exchange is named by its first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    System,
    Focus,
    State(usize),
    Note(usize),
    Rule(usize),
    Message(usize),
    Document(usize),
}

/// The reason for everything outside the minimum if the minimum alone exceeds the budget.
const OVERFLOW: &str = "budget/overflow";

/// Pins without room: the tokens available for each, and the limit that excluded it.
type Fallen = BTreeMap<Unit, (i64, String)>;

/// The tokens of the declared tool, as a prompt with nothing else has them.
static TOOL: LazyLock<i64> = LazyLock::new(|| {
    let manager =
        ContextWindowManager::new(Model::custom("test"), generate::bytes(), Config::default()).unwrap();
    let log = Conversation::new();
    let plan = manager.build_plan(&PlanRequest::new(&log).with_tools(&*generate::RECALL)).unwrap();
    let lines = plan.overhead.iter().filter(|line| line.what == Overhead::Tools);
    lines.map(|line| line.tokens).sum()
});

fn frame(role: &str) -> i64 {
    3 + role.len() as i64
}

impl<'a> Oracle<'a> {
    fn new(s: &'a Session) -> Self {
        let mut oracle = Self {
            s,
            items: Rc::new(texts::items(s)),
            labels: RefCell::default(),
            texts: Rc::new((0..s.lines.len()).map(|at| s.line_text(at)).collect()),
            answers: s.lines.iter().map(|line| vec![None; line.calls.len()]).collect(),
            owner: vec![None; s.lines.len()],
            second: BTreeSet::new(),
            kept: BTreeMap::new(),
            forms: BTreeMap::new(),
            left: BTreeMap::new(),
            contained: BTreeMap::new(),
            cleared: 0,
            clip: None,
            paid: false,
            no_set: false,
            counts_recalled: false,
            most_recalled: 0,
            rules_out: BTreeSet::new(),
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

    /// Returns the tokens that every prompt has: three before the reply, and those of a declared tool.
    fn overhead(&self) -> i64 {
        3 + if self.s.declares_recall { *TOOL } else { 0 }
    }

    fn block(&self) -> i64 {
        // A backslash breaks the delimiter in the text before the documents.
        let introduction =
            if self.template() == Some(0) { "Found for <\\document> you:\nuse it.\n" } else { "" };
        frame("user") + ("<documents>\n".len() + introduction.len() + "</documents>".len()) as i64
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

    /// Returns the tokens saved by merging all state into the live question, for the items kept now.
    fn merge(&self) -> i64 {
        let follows = self.kept.keys().any(|unit| self.follows_the_question(*unit));
        if self.live_question().is_some() && !follows {
            frame("user") * self.s.states.len() as i64
        } else {
            0
        }
    }

    /// Returns true if a recalled message may be included.
    fn has_recalled(&self) -> bool {
        let documents = self.documents();
        documents
            .iter()
            .any(|(at, out)| out.is_none() && self.competes(*at) && self.items[*at].recalls.is_some())
    }

    /// Returns the decision once no rule's message is missing from the prompt that was planned without the
    /// rule (rule R1).
    fn decide(mut self) -> Decided {
        self.rules_out = self.rules_surely_out();
        loop {
            let (decided, kept) = self.clone().decide_with_rules();
            let missing = self.rules_without_message(&kept);
            if missing.is_subset(&self.rules_out) {
                return decided;
            }
            self.rules_out.extend(missing);
        }
    }

    /// Returns the decision, and the items that are kept.
    fn decide_with_rules(mut self) -> (Decided, BTreeSet<Unit>) {
        self.cleared = self.cleared_before();
        self.counts_recalled = self.start_before().is_none();
        loop {
            let again = Oracle {
                kept: BTreeMap::new(),
                forms: BTreeMap::new(),
                left: BTreeMap::new(),
                contained: BTreeMap::new(),
                ..self.clone()
            };
            self = match self.decide_once() {
                Ok(decided) => return decided,
                Err(Again::Shorter(cleared, clip)) => Oracle { cleared, clip, paid: false, ..again },
                Err(Again::Paid) => Oracle { paid: true, ..again },
                Err(Again::Recalled) => Oracle { counts_recalled: true, paid: false, ..again },
                Err(Again::NoSet) => {
                    let cleared = again.cleared_before();
                    let counts_recalled = again.start_before().is_none();
                    Oracle { cleared, clip: None, paid: false, no_set: true, counts_recalled, ..again }
                }
            };
        }
    }

    /// Returns the decision, or the change that has to be made before there is one.
    fn decide_once(mut self) -> Result<(Decided, BTreeSet<Unit>), Again> {
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
        let there = (self.s.budget as i64 - self.overhead()).max(0);
        let competing = self
            .documents()
            .iter()
            .any(|(at, out)| out.is_none() && self.competes(*at) && !self.depends(*at));
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
            let arranged = Vec::new();
            let decided = Decided { verdicts, arranged, budgets: minimums, start, no_set, cleared };
            return Ok((decided, self.kept.into_keys().collect()));
        }
        // Pins come before all others, from the tokens that the minimum leaves; undroppable pins count toward
        // the limit (rule S2).
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
        // If the minimum fits only through merging, there are no tokens left to share.
        let budgets = if least > total { minimums } else { self.budgets(total, minimums, no_documents) };
        let spare = |oracle: &Self, section: Section| budgets[section as usize] - oracle.used(section);
        let fallen_first = self.offer_pins(spare(&self, Section::SystemPinned), 0, i64::MAX, i64::MAX);
        let budget = budgets[Section::Conversation as usize];
        // A window that continues from the last prompt: unchanged, or cut to a low mark.
        let mut held: Option<Option<i64>> = None;
        let mut awaited = Vec::new();
        if let Some(units) = self.resumed() {
            let room = (budget - self.used(Section::Conversation)).max(0);
            let size = |units: &[usize]| units.iter().map(|at| self.size(Unit::Message(*at))).sum::<i64>();
            let pins = |at: &usize| fallen_first.contains_key(&Unit::Message(*at));
            let (late, others): (Vec<usize>, Vec<usize>) = units.iter().copied().partition(pins);
            if !self.counts_recalled
                && size(&others) > room
                && let Some(cleared) = self.clear_to(budget)
            {
                return Err(Again::Shorter(cleared, None));
            }
            let joining = if self.paid { units } else { others };
            if size(&joining) <= room && !self.counts_recalled {
                joining
                    .into_iter()
                    .for_each(|at| self.keep(Unit::Message(at), Section::Conversation, "recent"));
                held = Some(None);
                awaited = if self.paid { Vec::new() } else { late };
            } else {
                if !self.counts_recalled && self.has_recalled() {
                    return Err(Again::Recalled);
                }
                let low = budget * i64::from(self.s.config.conversation.low_mark) / 1000;
                let used = self.used(Section::Conversation);
                self.offer_window(budget - used, 0, i64::MAX, low - used, true);
                held = Some(Some(low));
            }
        } else {
            self.offer_window(spare(&self, Section::Conversation), 0, i64::MAX, i64::MAX, false);
        }
        self.most_recalled = total * i64::from(self.s.config.rag.recall_share) / 1000;
        let room = spare(&self, Section::Rag);
        let share = total * i64::from(self.s.config.sections.rag.share) / 1000;
        self.offer_documents_first(room, share);
        let (mut fallen, behind, passed, rules) = loop {
            let before = (self.kept.len(), self.left.len(), self.forms.clone());
            let left = |oracle: &Self, section: Section| {
                let used: i64 = Section::ALL.iter().map(|section| oracle.used(*section)).sum();
                let opens = oracle.has_documents() || section == Section::Rag;
                let block = if opens { oracle.block() } else { reserve };
                (
                    oracle.s.budget as i64 - oracle.overhead() - used - block,
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
            self.drop_repeats();
            let (room, cap) = left(&self, Section::Rag);
            let Some(passed) = self.offer_documents(room + self.merge(), cap, share) else {
                return Err(Again::NoSet);
            };
            if (self.kept.len(), self.left.len()) == (before.0, before.1) && self.forms == before.2 {
                if reserve == 0 || self.has_documents() {
                    let (room, cap) = left(&self, Section::SystemPinned);
                    let merge = self.merge();
                    let rules = self.offer_rules(room, merge, cap, i64::MAX, 0);
                    let used = |oracle: &Self| -> i64 {
                        Section::ALL.iter().map(|section| oracle.used(*section)).sum()
                    };
                    let ((room, cap), before) = (left(&self, Section::Rag), used(&self));
                    self.grow_at_the_end(room + self.merge(), cap, share);
                    if used(&self) >= before {
                        let (room, cap) = left(&self, Section::Rag);
                        let mut passed = passed;
                        self.offer_dependents(room + self.merge(), cap, share, &mut passed);
                        break (fallen, behind, passed, rules);
                    }
                }
                reserve = 0;
            }
        };
        fallen.retain(|unit, _| !matches!(unit, Unit::Rule(_)));
        fallen.extend(rules);
        if awaited.iter().any(|at| !self.kept.contains_key(&Unit::Message(*at))) {
            return Err(Again::Paid);
        }
        let start = self.start();
        let mut out: BTreeMap<Unit, String> = passed;
        for (unit, last) in fallen {
            // A rule that waited for a pin had no first offer.
            let first = fallen_at_first.get(&unit).filter(|first| first.0 >= last.0);
            out.insert(unit, first.map_or(last.1, |first| first.1.clone()));
        }
        let (no_set, cleared) = (self.no_set, self.cleared);
        let (verdicts, arranged) = (self.verdicts(&out, behind), self.arranged());
        let decided = Decided { verdicts, arranged, budgets, start, no_set, cleared };
        Ok((decided, self.kept.into_keys().collect()))
    }
}

proptest! {
    #![proptest_config(generate::cases(3_000, 100_000))]

    #[test]
    fn the_planner_agrees_with_the_oracle(mut session in prop_oneof![generate::session(), generate::crowded()]) {
        // Laws hold joined texts.
        session.config.rag.join_chunks = false;
        let plan = session.plan().unwrap();
        let expected = Oracle::new(&session).decide();
        let named_by = Oracle { no_set: expected.no_set, ..Oracle::new(&session) };
        prop_assert_eq!(&verdicts::planned(&named_by, &plan), &expected.verdicts);
        let documents = plan.included.iter().filter(|row| row.section == Section::Rag);
        let ranks = |row: &PlannedItem| row.ranks().iter().map(|rank| format!(" {} {}", rank.list, rank.rank)).collect::<String>();
        prop_assert_eq!(documents.map(|row| format!("{}{}", row.id, ranks(row))).collect::<Vec<_>>(), expected.arranged);
        prop_assert_eq!(Section::ALL.map(|section| plan.section(section).budget as i64), expected.budgets);
        prop_assert_eq!(plan.window_start.map(|id| id.to_string()), expected.start);
        let boundary = (expected.cleared > 0).then(|| format!("m{}", expected.cleared));
        prop_assert_eq!(plan.cleared_before.map(|id| id.to_string()), boundary);
    }
}
