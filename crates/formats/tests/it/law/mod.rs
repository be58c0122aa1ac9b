//! Property test of reading (rule J3): every text, call and result of a file is in its session, or reading it
//! is an error.
//!
//! A generated conversation is written in the shape of a tool by a writer that shares no code with the
//! reader, then read back and compared. The file is then damaged in many ways, and all texts left in it have
//! to be in the session. To add a tool, write its module with `shapes()` and name it in [`shapes`].

use context_window::{Message, Part, Role};
use context_window_formats::{FileFormat, ReadOptions, Session, SessionFile};
use serde_json::{Value, json};
use std::collections::BTreeSet;

mod ai_sdk;
mod bedrock;
mod chatgpt;
mod claude_ai;
mod cline;
mod dotnet_ai;
mod gemini_cli;
mod goose;
mod haystack;
mod langchain;
mod llamaindex;
mod mutate;
mod openai_agents;
mod opencode;
mod opentelemetry;
mod pydantic_ai;
mod roo;
mod semantic_kernel;
mod servers;
mod transcripts;
mod wire;

/// One event of a generated conversation.
#[derive(Debug, Clone)]
pub enum Event {
    System(String),
    User { text: String, image: Option<String> },
    Assistant { thought: Option<String>, text: Option<String>, calls: Vec<Called> },
    Result { call: Called, text: String, is_failed: bool },
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

/// The shape of a file: a tool's way to write, and the features it can express.
pub struct Shape {
    pub name: &'static str,
    pub format: FileFormat,
    pub write: fn(&[Event]) -> String,
    pub keeps: Keeps,
}

/// The features of a conversation that a shape can express. The others are removed before writing.
#[derive(Debug, Clone, Copy)]
pub struct Keeps {
    pub system: bool,
    /// A system text may come after the first message.
    pub late_system: bool,
    pub thoughts: bool,
    pub images: bool,
    pub failures: bool,
    pub ids: bool,
    /// Several calls may come before their results.
    pub parallel: bool,
}

pub const ALL: Keeps = Keeps {
    system: true,
    late_system: false,
    thoughts: true,
    images: true,
    failures: true,
    ids: true,
    parallel: true,
};

fn shapes() -> Vec<Shape> {
    let all = [
        wire::shapes(),
        ai_sdk::shapes(),
        bedrock::shapes(),
        chatgpt::shapes(),
        claude_ai::shapes(),
        cline::shapes(),
        dotnet_ai::shapes(),
        gemini_cli::shapes(),
        goose::shapes(),
        haystack::shapes(),
        langchain::shapes(),
        llamaindex::shapes(),
        openai_agents::shapes(),
        opencode::shapes(),
        opentelemetry::shapes(),
        pydantic_ai::shapes(),
        roo::shapes(),
        semantic_kernel::shapes(),
        servers::shapes(),
        transcripts::shapes(),
    ];
    all.into_iter().flatten().collect()
}

/// A pseudo-random sequence that is the same on every machine.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x51_7c_c1_b7)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// The smallest PNG.
pub const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Generates a conversation. Every text in it contains a unique word, so that a lost one is detected.
pub fn conversation(seed: u64, keeps: Keeps) -> Vec<Event> {
    let mut dice = Dice::new(seed);
    let mut words = 0;
    let mut text = |dice: &mut Dice| {
        words += 1;
        let more = ["", " of the boats", ".\nA second line, with \"quotes\" and a \\.", " — très bien, 好的"];
        format!("word{words}x says{}", more[dice.below(more.len())])
    };
    let mut events = Vec::new();
    if keeps.system && dice.one_in(2) {
        events.push(Event::System(text(&mut dice)));
    }
    let mut calls = 0;
    for turn in 0..1 + dice.below(4) {
        if keeps.system && keeps.late_system && turn > 0 && dice.one_in(6) {
            events.push(Event::System(text(&mut dice)));
        }
        let image = (keeps.images && dice.one_in(4)).then(|| PIXEL.to_owned());
        events.push(Event::User { text: text(&mut dice), image });
        for _ in 0..dice.below(3) {
            let thought = (keeps.thoughts && dice.one_in(3)).then(|| text(&mut dice));
            let said = dice.one_in(2).then(|| text(&mut dice));
            let called: Vec<Called> = (0..1 + dice.below(if keeps.parallel { 3 } else { 1 }))
                .map(|_| {
                    calls += 1;
                    let name = ["free_boats", "tide", "book"][dice.below(3)].to_owned();
                    let arguments = match dice.below(3) {
                        0 => json!({}),
                        1 => json!({ "day": text(&mut dice) }),
                        _ => json!({ "n": 3, "list": [text(&mut dice), null, true], "deep": { "a": 1.5 } }),
                    };
                    Called { id: format!("call_{calls}q"), name, arguments }
                })
                .collect();
            events.push(Event::Assistant { thought, text: said, calls: called.clone() });
            let mut results: Vec<Event> = Vec::new();
            for call in called {
                let is_failed = keeps.failures && dice.one_in(4);
                results.push(Event::Result { call, text: text(&mut dice), is_failed });
            }
            events.extend(results);
        }
        if !dice.one_in(5) {
            let thought = (keeps.thoughts && dice.one_in(4)).then(|| text(&mut dice));
            events.push(Event::Assistant { thought, text: Some(text(&mut dice)), calls: Vec::new() });
        }
    }
    events.push(Event::User { text: text(&mut dice), image: None });
    events
}

/// Returns the content of a session in order, as lines.
fn said(session: &Session, keeps: Keeps) -> Vec<String> {
    let mut lines: Vec<String> =
        session.log.system().iter().map(|message| format!("system: {}", message.text())).collect();
    let mut names = std::collections::BTreeMap::new();
    for message in session.log.messages() {
        for call in message.tool_calls() {
            names.insert(call.id.clone(), call.name.clone());
        }
        lines.extend(of_message(message, keeps, &names));
    }
    lines
}

fn of_message(
    message: &Message,
    keeps: Keeps,
    names: &std::collections::BTreeMap<String, String>,
) -> Vec<String> {
    let mut lines = Vec::new();
    let role = match message.role() {
        Role::Tool => {
            let id = message.answers().unwrap_or_default();
            let name = names.get(id).map_or("NOBODY", String::as_str);
            let id = if keeps.ids { id } else { "" };
            let failed = if message.is_failed() { " failed" } else { "" };
            format!("result of {name} {id}{failed}")
        }
        role => role.name().to_owned(),
    };
    for reasoning in message.reasoning() {
        lines.push(format!("thought: {}", reasoning.text));
    }
    let parts = message.as_parts();
    for part in &parts {
        match part {
            Part::Text(text) => lines.push(format!("{role}: {text}")),
            Part::Image { url, .. } => lines.push(format!("{role} image: {}", url.contains(PIXEL))),
            Part::Opaque { json, .. } => lines.push(format!("{role} opaque: {json}")),
        }
    }
    for call in message.tool_calls() {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
        let id = if keeps.ids { &*call.id } else { "" };
        lines.push(format!("call {} {id}: {arguments}", call.name));
    }
    lines
}

/// Returns the same lines for the written events.
fn expected(events: &[Event], keeps: Keeps) -> Vec<String> {
    let mut lines = Vec::new();
    let id = |call: &Called| if keeps.ids { call.id.clone() } else { String::new() };
    for event in events {
        match event {
            Event::System(text) => lines.push(format!("system: {text}")),
            Event::User { text, image } => {
                lines.push(format!("user: {text}"));
                lines.extend(image.as_ref().map(|_| "user image: true".to_owned()));
            }
            Event::Assistant { thought, text, calls } => {
                lines.extend(thought.iter().map(|thought| format!("thought: {thought}")));
                lines.extend(text.iter().map(|text| format!("assistant: {text}")));
                lines.extend(
                    calls.iter().map(|call| format!("call {} {}: {}", call.name, id(call), call.arguments)),
                );
            }
            Event::Result { call, text, is_failed } => {
                let failed = if *is_failed { " failed" } else { "" };
                lines.push(format!("result of {} {}{failed}: {text}", call.name, id(call)));
            }
        }
    }
    lines
}

/// Returns the lines without empty ones.
fn without_blank(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().filter(|line| line.split_once(": ").is_some_and(|(_, text)| !text.is_empty())).collect()
}

fn counts() -> (u64, u64) {
    if std::env::var_os("FULL").is_some() { (1_000, 20_000) } else { (30, 200) }
}

/// Returns the shapes to test: all of them, or the one that `LAW_SHAPE` names.
fn wanted() -> Vec<Shape> {
    let wanted = std::env::var_os("LAW_SHAPE")
        .and_then(|name| name.into_string().ok())
        .filter(|name| !name.is_empty());
    let is_wanted = |shape: &Shape| wanted.as_deref().is_none_or(|wanted| shape.name.starts_with(wanted));
    let shapes: Vec<Shape> = shapes().into_iter().filter(is_wanted).collect();
    assert!(!shapes.is_empty(), "no shape has the name {wanted:?}");
    shapes
}

#[test]
fn every_text_call_and_result_is_read_back() {
    for shape in wanted() {
        for seed in 0..counts().0 {
            let events = conversation(seed, shape.keeps);
            let text = (shape.write)(&events);
            let file = SessionFile::new("talk", text.clone().into_bytes());
            let session = file.and_then(|file| file.session(None));
            let session = session.unwrap_or_else(|error| panic!("{} {seed}: {error}\n{text}", shape.name));
            assert_eq!(
                without_blank(said(&session, shape.keeps)),
                expected(&events, shape.keeps),
                "{} {seed}\n{text}\n{:?}",
                shape.name,
                session.ignored()
            );
            // Reading by the format's name gives the same result as detection.
            let options = ReadOptions::new().read_as(shape.format);
            let named = SessionFile::with_options("talk", text.clone().into_bytes(), options);
            let named = named.and_then(|file| file.session(None));
            let named =
                named.unwrap_or_else(|error| panic!("{} {seed} by name: {error}\n{text}", shape.name));
            assert_eq!(
                said(&named, shape.keeps),
                said(&session, shape.keeps),
                "{} {seed}\n{text}",
                shape.name
            );
        }
    }
}

#[test]
fn a_damaged_file_loses_nothing_in_silence() {
    let shapes = wanted();
    let (first, second) = shapes.split_at(shapes.len() / 2);
    std::thread::scope(|scope| {
        scope.spawn(|| first.iter().for_each(damage));
        second.iter().for_each(damage);
    });
}

/// Damages files of one shape, and checks that all texts left in them are read or refused.
fn damage(shape: &Shape) {
    let (mut read, mut refused) = (0, 0);
    for seed in 0..counts().1 {
        let events = conversation(seed % 50, shape.keeps);
        let text = (shape.write)(&events);
        let whole = SessionFile::new("talk", text.clone().into_bytes()).and_then(|file| file.session(None));
        let notes = whole.map_or(0, |session| notes(&session));
        let damaged = mutate::damaged(&text, seed);
        let Ok(file) = SessionFile::new("talk", damaged.clone().into_bytes()) else {
            refused += 1;
            continue;
        };
        let mut known = BTreeSet::new();
        let mut is_error = false;
        for session in file.sessions() {
            match session {
                Ok(session) if self::notes(&session) <= notes => known.extend(words(&format!("{session:?}"))),
                _ => is_error = true,
            }
        }
        if is_error {
            refused += 1;
            continue;
        }
        read += 1;
        let lost: Vec<_> = words(&damaged).difference(&known).cloned().collect();
        let near = |text: &str| {
            let at = lost.first().and_then(|word| text.find(&**word)).unwrap_or_default();
            let (from, to) =
                (text.floor_char_boundary(at.saturating_sub(600)), text.ceil_char_boundary(at + 300));
            text[from..to].to_owned()
        };
        assert!(
            lost.is_empty(),
            "{} {seed}: {lost:?} of\n{}\nwhole:\n{}",
            shape.name,
            near(&damaged),
            near(&text)
        );
    }
    assert!(read > 0 && refused > 0, "{}: {read} read, {refused} refused", shape.name);
}

/// Returns the number of notes about values that are not read.
fn notes(session: &Session) -> usize {
    session.ignored().len() + session.unread_keys().len()
}

/// Returns the unique words that identify the texts of a conversation.
fn words(text: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (at, _) in text.match_indices("word") {
        let digits: String = text[at + 4..].chars().take_while(char::is_ascii_digit).collect();
        if !digits.is_empty() && text[at + 4 + digits.len()..].starts_with('x') {
            all.insert(format!("word{digits}x"));
        }
    }
    all
}
