//! Generates sessions, most of them broken: dangling, orphan, doubled, early and late results, empty
//! messages, pins and TTL on anything, repeated documents. They are small, so that a brute-force oracle can
//! plan them too.

use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Error, ItemId, Message, Model, PinnedItem,
    PlanRequest, Priority, RagItem, RequestLimits, RetrievedItems, Role, StandingRule, TokenCounter, Tool,
    ToolCall, Ttl,
    config::{Placement, RagFill, Repair, Sections, ToolResults, TtlPolicy},
    plan::Anchor,
};
use proptest::prelude::*;
use std::{ops::Range, sync::LazyLock};

mod texts;

pub use texts::{TEMPLATES, with_texts};

/// Returns true if `FULL=1` requests every case.
pub fn is_full() -> bool {
    std::env::var_os("FULL").is_some_and(|full| full == "1")
}

/// Returns the configuration of a property test: few cases by default, many with `FULL=1`.
pub fn cases(few: u32, many: u32) -> ProptestConfig {
    ProptestConfig {
        cases: if is_full() { many } else { few },
        max_shrink_iters: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Returns a counter with one token per byte, so that sizes can be read off the case.
pub fn bytes() -> TokenCounter {
    TokenCounter::from_fn("bytes", |text| Ok::<_, std::fmt::Error>(text.len() as u64))
}

#[derive(Debug, Clone)]
pub struct Life {
    pub pin: Option<Priority>,
    pub ttl: Option<Ttl>,
}

#[derive(Debug, Clone)]
pub struct Line {
    pub role: Role,
    pub size: usize,
    pub calls: Vec<&'static str>,
    pub answers: Option<&'static str>,
    pub life: Life,
}

#[derive(Debug, Clone)]
pub struct Document {
    pub id: &'static str,
    pub text: String,
    pub score: i32,
    pub origin: Option<&'static str>,
    pub ttl: Option<Ttl>,
    pub span: Option<Range<u64>>,
    pub position: Option<u64>,
    pub date: Option<i64>,
    /// The messages that it quotes, as a place and a number of lines. The place may be any number.
    pub recalls: Option<(usize, usize)>,
    /// The number of its list, if the session has several.
    pub list: usize,
    /// The lengths of its variants, per mille of its text. Some are no shorter than the one before.
    pub variants: Vec<u16>,
    /// The ids of documents beside which it is sent.
    pub requires: Vec<&'static str>,
    /// The name of its group.
    pub group: Option<&'static str>,
}

/// The names of ranked lists. The first one is that of the list that has no name.
pub const LISTS: [&str; 3] = ["documents", "words", "titles"];

/// An item of the conversation that contains the text of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quoting {
    Line(usize),
    Note(usize),
}

#[derive(Debug, Clone)]
pub struct Session {
    pub system: Option<usize>,
    pub focus: Option<usize>,
    pub states: Vec<usize>,
    pub notes: Vec<(usize, Priority, Option<Ttl>)>,
    /// Rules of the user of the application: the bytes of each, and the number of a user message, if it is
    /// from one.
    pub rules: Vec<(usize, Option<usize>)>,
    pub lines: Vec<Line>,
    pub rag: Vec<Document>,
    /// True if the documents come in several ranked lists.
    pub has_lists: bool,
    /// Texts at the end of messages and notes.
    pub quotes: Vec<(Quoting, String)>,
    pub budget: u64,
    pub config: Config,
    /// True if the request declares the tool that reads offloaded results.
    pub declares_recall: bool,
    pub before: Option<Before>,
}

/// The tool that reads offloaded results.
pub static RECALL: LazyLock<[Tool; 1]> = LazyLock::new(|| [Tool::new(Tool::RECALL, "", "{\"handle\":{}}")]);

/// Returns the name of the tool of a call.
pub fn tool_of(call: &str) -> &'static str {
    if call == "z" { "recall" } else { "f" }
}

/// State left by the prompt before this one.
#[derive(Debug, Clone)]
pub struct Before {
    /// The message at which its window started.
    pub start: usize,
    pub set: Vec<&'static str>,
    /// The ranks of these documents, and the places of those that continue another one. Both may be damaged.
    pub ranks: Vec<u32>,
    pub joined: Vec<u32>,
    pub same_question: bool,
    pub cleared: Option<usize>,
    /// The forms of results: the first message of each, and the bytes above which results are offloaded with
    /// those that they keep.
    pub forms: Vec<(usize, Option<(u64, u64)>)>,
    /// The variants of documents that were not sent whole, by place. Some documents do not have them.
    pub variants: Vec<(u32, usize)>,
}

impl Session {
    pub fn log(&self) -> Conversation {
        self.log_with(usize::MAX, |_| {})
    }

    /// Builds the session's log and applies `change` right before the message at this position.
    pub fn log_with(&self, before: usize, change: impl Fn(&mut Conversation)) -> Conversation {
        let mut log = Conversation::new();
        if let Some(size) = self.system {
            log.push_system("s0", "S".repeat(size));
        }
        for (at, (_, priority, ttl)) in self.notes.iter().enumerate() {
            let mut note = PinnedItem::new(format!("n{at}"), self.note_text(at)).with_priority(*priority);
            if let Some(ttl) = ttl {
                note = note.with_ttl(*ttl);
            }
            log.pin(note);
        }
        for (at, line) in self.lines.iter().enumerate() {
            if at == before {
                change(&mut log);
            }
            let id = log.push(line.message_with(self.line_text(at)));
            if let Some(priority) = line.life.pin {
                log.pin_message(&id, priority).unwrap();
            }
            if let Some(ttl) = line.life.ttl {
                log.set_ttl(id, ttl).unwrap();
            }
        }
        for at in 0..self.rules.len() {
            let rule = StandingRule::new(format!("r{at}"), self.rule_text(at));
            let message = self.rule_message(at).map(|message| format!("m{message}"));
            log.keep_rule(message.into_iter().fold(rule, StandingRule::from_message)).unwrap();
        }
        log
    }

    /// Returns the text of a rule of the user. No two are equal.
    pub fn rule_text(&self, at: usize) -> String {
        format!("{at}{}", "R".repeat(self.rules[at].0))
    }

    /// Returns the user message of a rule of the user.
    pub fn rule_message(&self, at: usize) -> Option<usize> {
        let users: Vec<usize> =
            (0..self.lines.len()).filter(|at| self.lines[*at].message_role() == Role::User).collect();
        self.rules[at].1.filter(|_| !users.is_empty()).map(|number| users[number % users.len()])
    }

    pub fn request<'a>(&self, log: &'a Conversation) -> PlanRequest<'a> {
        let mut request = PlanRequest::new(log)
            .with_retrieved(self.retrieved())
            .with_limits(RequestLimits::prompt_budget(self.budget));
        if self.declares_recall {
            request = request.with_tools(&*RECALL);
        }
        if let Some(size) = self.focus {
            request = request.with_focus("F".repeat(size));
        }
        for (at, size) in self.states.iter().enumerate() {
            request = request.with_state(format!("st{at}"), "T".repeat(*size));
        }
        match &self.before {
            Some(before) => request.with_previous(self.anchor(before)),
            None => request,
        }
    }

    fn anchor(&self, before: &Before) -> Anchor {
        let live = |line: &Line| line.role == Role::User && (line.size > 0 || !line.calls.is_empty());
        let live = self.lines.iter().rposition(live);
        let message = |at: usize| format!("m{at}");
        let live = if before.same_question { live.map(message) } else { Some("another question".into()) };
        let forms = before.forms.iter().map(|(from, offload)| {
            let offload = offload.map(|(above, keep)| serde_json::json!({"above": above, "keep": keep}));
            serde_json::json!({"from": message(*from), "offload": offload})
        });
        let names = before.variants.iter().map(|(at, variant)| (*at, format!("v{variant}")));
        let anchor = serde_json::json!({
            "result_forms": forms.collect::<Vec<_>>(),
            "window_start": message(before.start),
            "live": live,
            "rag": before.set,
            "rag_ranks": before.ranks,
            "rag_joined": before.joined,
            "rag_forms": names.collect::<Vec<_>>(),
            "cleared_before": before.cleared.map(message),
        });
        serde_json::from_value(anchor).unwrap()
    }

    /// Returns the documents with their lists.
    pub fn retrieved(&self) -> RetrievedItems {
        if !self.has_lists {
            return self.rag.iter().map(Document::item).collect();
        }
        let list = |number: usize| self.rag.iter().filter(move |one| one.list == number).map(Document::item);
        let named = (1..).zip(&LISTS[1..]);
        named.fold(list(0).collect(), |items: RetrievedItems, (number, name)| {
            items.with_list(*name, list(number))
        })
    }

    /// Returns the text of a message.
    pub fn line_text(&self, at: usize) -> String {
        self.quoting(Quoting::Line(at), text_of(at, self.lines[at].size))
    }

    /// Returns the text of a note.
    pub fn note_text(&self, at: usize) -> String {
        self.quoting(Quoting::Note(at), "N".repeat(self.notes[at].0))
    }

    /// Adds its quotes to the own text of an item. A message without a text of its own quotes nothing.
    fn quoting(&self, by: Quoting, mut text: String) -> String {
        let has_text = !text.is_empty();
        for (_, quote) in self.quotes.iter().filter(|(at, _)| *at == by && has_text) {
            text.push(' ');
            text.push_str(quote);
        }
        text
    }

    /// Removes bytes from a text, beginning with its quotes.
    pub fn shorten(&mut self, by: Quoting, bytes: usize) {
        let mut left = bytes;
        for (_, quote) in self.quotes.iter_mut().rev().filter(|(at, _)| *at == by) {
            let cut = left.min(quote.len());
            quote.truncate(quote.len() - cut);
            left -= cut;
            if quote.is_empty() {
                left = left.saturating_sub(1);
            }
        }
        self.quotes.retain(|(_, quote)| !quote.is_empty());
        match by {
            Quoting::Line(at) => self.lines[at].size -= left,
            Quoting::Note(at) => self.notes[at].0 -= left,
        }
    }

    pub fn manager(&self) -> ContextWindowManager {
        // Only an estimating counter has a margin.
        let counter =
            if self.config.tokens.calibration_per_mille == 1_000 { bytes() } else { bytes().into_estimate() };
        ContextWindowManager::new(Model::custom("test"), counter, self.config.clone()).unwrap()
    }

    pub fn plan(&self) -> Result<ContextPlan, Error> {
        let log = self.log();
        self.manager().build_plan(&self.request(&log))
    }

    pub fn rag_ids(&self) -> Vec<String> {
        self.retrieved().iter().map(|item| item.id().to_string()).collect()
    }
}

impl Line {
    fn message_role(&self) -> Role {
        if self.answers.is_some() { Role::Tool } else { self.role }
    }

    fn message_with(&self, text: String) -> Message {
        let message = match self.answers {
            Some(id) => Message::tool(id, text),
            None => Message::new(self.role, text),
        };
        let calls = self.calls.iter().map(|id| ToolCall::new(*id, tool_of(id), "{}"));
        if self.calls.is_empty() { message } else { message.with_tool_calls(calls) }
    }
}

impl Document {
    /// Creates a document with a text of this size. Documents of one size have the same text, so that
    /// repeated texts occur.
    pub fn plain(id: &'static str, size: usize, score: i32) -> Self {
        let (origin, ttl, span, position, date, recalls) = (None, None, None, None, None, None);
        let text = "D".repeat(size);
        let (variants, requires, group, list) = (Vec::new(), Vec::new(), None, 0);
        Self { id, text, score, origin, ttl, span, position, date, recalls, list, variants, requires, group }
    }

    /// Returns the texts of the variants. The first one has the name `v0`.
    pub fn variant_texts(&self) -> Vec<String> {
        let cut = |share: &u16| {
            let bytes = self.text.len() * usize::from(*share) / 1000;
            self.text[..self.text.floor_char_boundary(bytes)].to_owned()
        };
        self.variants.iter().map(cut).collect()
    }

    fn item(&self) -> RagItem {
        let item = RagItem::new(self.id, f64::from(self.score), self.text.as_str());
        let item = self.origin.map_or(item.clone(), |origin| item.with_origin(origin));
        let item = self.span.clone().map_or(item.clone(), |span| item.with_span(span));
        let item = self.position.map_or(item.clone(), |position| item.with_position(position));
        let item = self.date.map_or(item.clone(), |date| item.with_date(date));
        let item = self.recalls.map_or(item.clone(), |(at, count)| item.with_messages(at..at + count));
        let item = self.group.map_or(item.clone(), |group| item.with_group(group));
        let item = self.requires.iter().fold(item, |item, id| item.with_required(*id));
        let variants = (0..).zip(self.variant_texts());
        let item = variants.fold(item, |item, (at, text)| item.with_variant(format!("v{at}"), text));
        self.ttl.map_or(item.clone(), |ttl| item.with_ttl(ttl))
    }
}

/// Returns a text of this size. Some turns have equal texts, as in real conversations.
fn text_of(at: usize, size: usize) -> String {
    char::from(b'a' + (at % 3) as u8).to_string().repeat(size)
}

pub fn id(name: &str) -> ItemId {
    name.into()
}

fn ttl() -> impl Strategy<Value = Option<Ttl>> {
    prop_oneof![
        6 => Just(None),
        1 => Just(Some(Ttl::Unlimited)),
        1 => Just(Some(Ttl::NoneRemaining)),
        1 => Just(Some(Ttl::turns(2))),
    ]
}

fn priority() -> impl Strategy<Value = Priority> {
    prop_oneof![Just(Priority::High), Just(Priority::Normal), Just(Priority::Low)]
}

fn life() -> impl Strategy<Value = Life> {
    let pin = prop_oneof![5 => Just(None), 1 => priority().prop_map(Some)];
    (pin, ttl()).prop_map(|(pin, ttl)| Life { pin, ttl })
}

const CALLS: [&str; 4] = ["x", "y", "z", "x#2"];

fn line() -> impl Strategy<Value = Line> {
    let call = prop::sample::select(&CALLS[..]);
    let size = prop_oneof![1 => Just(0usize), 8 => 1usize..50];
    let result = prop_oneof![6 => Just(None), 1 => (60usize..500).prop_map(Some)];
    let kind = prop_oneof![
        4 => Just((Role::User, false, false)),
        1 => Just((Role::User, true, false)),
        3 => Just((Role::Assistant, false, false)),
        3 => Just((Role::Assistant, true, false)),
        4 => Just((Role::Tool, false, true)),
        1 => Just((Role::System, false, false)),
    ];
    (kind, (size, result), prop::collection::vec(call.clone(), 1..4), call, life()).prop_map(
        |((role, calls, answers), (size, result), ids, id, life)| Line {
            role,
            size: result.filter(|_| answers).unwrap_or(size),
            calls: if calls { ids } else { Vec::new() },
            answers: answers.then_some(id),
            life,
        },
    )
}

fn document() -> impl Strategy<Value = Document> {
    (
        prop::sample::select(&["d1", "d2", "d3", "d4", "d5", "d6", "d7"][..]),
        1usize..60,
        0i32..4,
        prop::option::of(prop::sample::select(&["o1", "o2"][..])),
        ttl(),
    )
        .prop_map(|(id, size, score, origin, ttl)| Document {
            origin,
            ttl,
            ..Document::plain(id, size, score)
        })
}

fn config() -> impl Strategy<Value = Config> {
    let shares = (0u16..=1000, 0u16..=1000)
        .prop_map(|(a, b)| Sections::shares(a.min(b), a.max(b) - a.min(b), 1000 - a.max(b)));
    let pins_limit = prop_oneof![1 => Just(0), 2 => Just(500), 2 => 0u16..=1000, 1 => Just(1000)];
    let cap = || prop_oneof![4 => Just(None), 1 => (0u64..300).prop_map(Some)];
    let limit = |most: u64| prop_oneof![5 => Just(None), 1 => (1..most).prop_map(Some)];
    let choices = (0u8..2, 0u8..2, 0u8..3, 0u8..3, (0u8..4, 1u16..=1000, 0u64..3, 0u64..200), offload());
    (
        shares,
        (cap(), cap(), cap(), pins_limit),
        (limit(4), limit(120), limit(150)),
        prop::option::weighted(0.2, 0i32..4),
        choices,
    )
        .prop_map(
            |(sections, caps, (max_items, max_item_tokens, max_source_tokens), min_score, choices)| {
                let mut config = Config::default();
                config.sections = sections;
                config.sections.system_pinned.cap = caps.0;
                config.sections.conversation.cap = caps.1;
                config.sections.rag.cap = caps.2;
                config.sections.pins_limit = caps.3;
                config.rag.max_items = max_items;
                config.rag.max_item_tokens = max_item_tokens;
                config.rag.max_source_tokens = max_source_tokens;
                config.rag.min_score = min_score.map(f64::from);
                config.rag.fill = [RagFill::Backfill, RagFill::Prefix][usize::from(choices.0)];
                config.rag.placement =
                    [Placement::BeforeQuestion, Placement::BeforeConversation][usize::from(choices.1)];
                config.ttl_policy =
                    [TtlPolicy::Automatic, TtlPolicy::Ask, TtlPolicy::Unlimited][usize::from(choices.2)];
                config.conversation.repair =
                    [Repair::Synthesize, Repair::Drop, Repair::Synthesize][usize::from(choices.3)];
                let (results, low_mark, keep, least) = choices.4;
                config.conversation.tool_results =
                    [ToolResults::Keep, ToolResults::Clear, ToolResults::Clip, ToolResults::Offload]
                        [usize::from(results)];
                (config.conversation.offload_above, config.conversation.offload_keep) = choices.5;
                config.conversation.low_mark = low_mark;
                config.conversation.keep_results = keep;
                config.conversation.clear_at_least = least;
                config
            },
        )
}

/// Generates the bytes above which results are offloaded, and those that they keep.
fn offload() -> impl Strategy<Value = (u64, u64)> {
    (0u64..300, 0u64..120)
}

pub fn session() -> impl Strategy<Value = Session> {
    with_rules(with_texts(plain_session()))
}

/// Generates sessions without options that read the texts of documents.
fn plain_session() -> impl Strategy<Value = Session> {
    let size = || prop::option::weighted(0.4, 1usize..60);
    let note = (1usize..60, priority(), ttl());
    let parts = (size(), size(), prop::collection::vec(1usize..40, 0..3), prop::collection::vec(note, 0..4));
    let lists = (prop::collection::vec(line(), 0..14), prop::collection::vec(document(), 0..7));
    (parts, lists, 1u64..1500, (config(), any::<bool>()), prop::option::of(before())).prop_map(
        |((system, focus, states, notes), (lines, rag), budget, (config, declares), before)| Session {
            declares_recall: declares && config.conversation.tool_results == ToolResults::Offload,
            system,
            focus,
            states,
            notes,
            lines,
            rag,
            has_lists: false,
            quotes: Vec::new(),
            budget,
            config,
            before,
            rules: Vec::new(),
        },
    )
}

/// Generates sessions in which many small items compete for little room: droppable and undroppable notes,
/// documents about as large as their section's share, and a question with a long reply before it. Items then
/// fill gaps: a later item is included before an earlier one.
pub fn crowded() -> impl Strategy<Value = Session> {
    with_rules(with_texts(plain_crowded()))
}

fn plain_crowded() -> impl Strategy<Value = Session> {
    const IDS: [&str; 8] = ["d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7"];
    let unlimited = prop_oneof![2 => Just(None), 1 => Just(Some(Ttl::Unlimited))];
    let note = (2usize..120, priority(), unlimited).boxed();
    let lists = prop_oneof![
        1 => (prop::collection::vec(note.clone(), 3..8), prop::collection::vec(2usize..120, 0..1)),
        1 => (prop::collection::vec(note.clone(), 0..1), prop::collection::vec(2usize..120, 3..9)),
        1 => (prop::collection::vec(note, 2..6), prop::collection::vec(2usize..120, 2..7)),
    ];
    let options = prop_oneof![3 => Just(Config::default()), 1 => config()];
    (lists, 10usize..60, prop::option::weighted(0.8, 40usize..480), 1u64..700, options).prop_map(
        |((notes, sizes), question, reply, room, config)| {
            let life = Life { pin: None, ttl: None };
            let line = |role, size| Line { role, size, calls: Vec::new(), answers: None, life: life.clone() };
            let reply = reply.map(|size| line(Role::Assistant, size));
            let document =
                |(at, size): (usize, usize)| Document::plain(IDS[at], size, (IDS.len() - at) as i32);
            Session {
                system: None,
                focus: None,
                states: Vec::new(),
                notes,
                lines: [line(Role::User, question)].into_iter().chain(reply).collect(),
                rag: sizes.into_iter().enumerate().map(document).collect(),
                has_lists: false,
                quotes: Vec::new(),
                budget: question as u64 + room,
                config,
                declares_recall: false,
                before: None,
                rules: Vec::new(),
            }
        },
    )
}

/// Adds rules of the user to one of three sessions: of the application alone, or from messages of the user.
fn with_rules(sessions: impl Strategy<Value = Session>) -> impl Strategy<Value = Session> {
    let rule = (0usize..50, prop::option::weighted(0.8, 0usize..14));
    let limit = prop_oneof![2 => Just(1_000), 1 => 0u64..200];
    let rules = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(rule, 1..5)];
    (sessions, rules, limit).prop_map(|(mut session, rules, limit)| {
        session.rules = rules;
        session.config.compaction.rules_limit = limit;
        session
    })
}

/// Generates conversations without other demand for free tokens: one message is then decided by the sum of
/// the newer ones. They have a last prompt or none, and many user messages, one or none.
pub fn talk() -> impl Strategy<Value = Session> {
    (session(), 0u8..4).prop_map(|(mut session, who)| {
        (session.states, session.rag) = (Vec::new(), Vec::new());
        session.quotes.clear();
        session.notes.iter_mut().for_each(|note| note.2 = Some(Ttl::Unlimited));
        for (at, line) in session.lines.iter_mut().enumerate() {
            if line.life.pin.is_some() {
                line.life.ttl = Some(Ttl::Unlimited);
            }
            // Half of them are one long turn, with one user message or none.
            let asks = line.role == Role::User && (who > 1 || who == 1 && at == 0);
            if line.role == Role::User && !asks {
                line.role = Role::Assistant;
            }
        }
        session
    })
}

/// Generates conversations with mostly pinned messages, in turns of several exchanges. They have notes and
/// documents, and a last prompt or none.
pub fn pinned() -> impl Strategy<Value = Session> {
    let pins = prop::collection::vec(prop::option::weighted(0.8, priority()), 14);
    let without = (prop::bool::weighted(0.7), prop::bool::weighted(0.6));
    (session(), pins, without).prop_map(|(mut session, pins, (no_state, no_last_prompt))| {
        for (line, priority) in session.lines.iter_mut().zip(pins) {
            line.life.pin = priority;
        }
        if no_state {
            session.states.clear();
        }
        if no_last_prompt {
            session.before = None;
        }
        session
    })
}

fn before() -> impl Strategy<Value = Before> {
    let set = prop::sample::subsequence(&["d1", "d2", "d3", "d4", "d5", "d6", "d7"][..], 0..5).prop_shuffle();
    let form = (0usize..15, prop::option::of(offload()));
    let forms = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(form, 1..3)];
    (0usize..15, set, any::<bool>(), prop::option::of(0usize..15), forms).prop_map(
        |(start, set, same_question, cleared, forms)| {
            let (ranks, joined) = (Vec::new(), Vec::new());
            Before { start, set, ranks, joined, same_question, cleared, forms, variants: Vec::new() }
        },
    )
}

/// Returns an anchor without the limits of its prompt.
pub fn without_limits(anchor: &Anchor) -> Anchor {
    let mut anchor = serde_json::json!(anchor);
    anchor.as_object_mut().unwrap().remove("limits");
    serde_json::from_value(anchor).unwrap()
}
