//! A chat: the conversation, its plan, and what is going on. No terminal and no keys; events come in by [`Chat::handle`].

mod commands;
mod compacting;
mod saved;
mod turn;

use crate::{
    answerer::Answerer,
    args::Args,
    event::{Event, Tasks},
    index::{Index, Refreshed},
    models::{self, Choice, Environment},
};
use anyhow::Result;
use compacting::Compacting;
use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, PlanRequest, RagItem, RequestLimits,
    compaction::CompactionRequest,
    config::{CompactionStrategy, ReasoningPolicy, TtlPolicy},
    usage::{ContextEvent, Level},
    widgets::{RowExplanation, WhatIf},
};
use saved::Saved;
use std::{
    path::Path,
    sync::{Arc, Mutex},
};
use turn::Sent;
pub use turn::Turn;

/// What the chat itself says, beside the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// How many messages the conversation had then.
    pub after: usize,
    pub is_error: bool,
    pub text: String,
}

pub struct Chat {
    pub args: Args,
    environment: Environment,
    tasks: Tasks,
    index: Arc<Mutex<Index>>,
    saved: Saved,
    pub choice: Choice,
    manager: ContextWindowManager,
    pub log: Conversation,
    /// The documents of the newest question.
    pub documents: Vec<RagItem>,
    /// Documents that `/drop` leaves out.
    left_out: WhatIf,
    /// The newest prompt; after a change, the next one with the same documents.
    pub plan: ContextPlan,
    pub notes: Vec<Note>,
    pub turn: Turn,
    /// How many searches, requests and compactions were begun.
    started: u64,
    compacting: Option<Compacting>,
    /// A compaction that was shown and waits for a yes.
    pub preview: Option<CompactionRequest>,
    /// The prompts that were sent last, the newest last: what `/diff` compares.
    sent: Vec<Sent>,
    /// What this run's replies cost, in billionths of a dollar.
    spent: u64,
    pub indexing: Option<(usize, usize)>,
    pub indexed: Refreshed,
    waiting: Option<String>,
}

impl Chat {
    /// Opens the session of a folder, whose index and conversations are kept in `data`, and begins to index it.
    pub fn open(args: Args, data: &Path, environment: Environment, tasks: Tasks) -> Result<Self> {
        let choice = models::choose(args.model.as_deref(), args.effort.as_deref(), &environment)?;
        let manager = manager(&args, &choice, ReasoningPolicy::default())?;
        let index = Arc::new(Mutex::new(Index::open(&args.folder, &data.join("index"))?));
        let (saved, log) = Saved::open(&data.join("chats.db"), &args.session)?;
        let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(limits(&args)))?;
        let mut chat = Self {
            args,
            environment,
            tasks,
            index,
            saved,
            choice,
            manager,
            log,
            plan,
            documents: Vec::new(),
            left_out: WhatIf::new(),
            notes: Vec::new(),
            turn: Turn::Idle,
            started: 0,
            compacting: None,
            preview: None,
            sent: Vec::new(),
            spent: 0,
            indexing: Some((0, 0)),
            indexed: Refreshed::default(),
            waiting: None,
        };
        chat.welcome();
        chat.refresh_index();
        Ok(chat)
    }

    fn welcome(&mut self) {
        let (folder, says) = (self.args.folder.display(), &self.choice.says);
        self.say(format!("{folder}: ask about its documents. {says}. /help lists the commands."));
        if let Some(earlier) = self.saved.resumed(&self.log) {
            self.say(earlier);
        }
    }

    /// The name of the session.
    pub fn session(&self) -> &str {
        &self.saved.id
    }

    /// What the next prompt is planned from.
    pub fn request(&self) -> PlanRequest<'_> {
        PlanRequest::new(&self.log).with_rag(self.kept_documents()).with_limits(limits(&self.args))
    }

    /// The documents that `/drop` does not leave out.
    fn kept_documents(&self) -> Vec<RagItem> {
        self.documents.iter().filter(|document| self.left_out.keeps(document)).cloned().collect()
    }

    /// Why an item of the prompt is in or out.
    pub fn why(
        &self,
        row: context_window::plan::Decision<'_>,
    ) -> Result<RowExplanation, context_window::Error> {
        WhatIf::new().explain(&self.manager, &self.request(), row)
    }

    /// Takes in what happened.
    pub fn handle(&mut self, event: Event) {
        match event {
            Event::Terminal(_) => {}
            Event::Indexing(done, of) => self.indexing = Some((done, of)),
            Event::Indexed(result) => self.is_indexed(result),
            Event::Found(number, found) if self.turn.is(number) => self.found(found),
            Event::Piece(number, piece) if self.turn.is(number) => self.turn.hear(piece),
            Event::Replied(number, reply) if self.turn.is(number) => self.replied(reply),
            Event::Summarised(number, summary) => self.summarised(number, summary),
            // Of what was stopped.
            Event::Found(..) | Event::Piece(..) | Event::Replied(..) => {}
        }
    }

    /// Whether something goes on that will end with an event.
    pub fn is_busy(&self) -> bool {
        !matches!(self.turn, Turn::Idle) || self.indexing.is_some() || self.compacting.is_some()
    }

    fn refresh_index(&mut self) {
        self.indexing = Some((0, 0));
        let (index, tasks) = (self.index.clone(), self.tasks.clone());
        self.tasks.runtime.spawn_blocking(move || {
            let mut index = index.lock().expect("no thread panics with the index");
            let done = index.refresh(|done, of| tasks.send(Event::Indexing(done, of)));
            tasks.send(Event::Indexed(done.map_err(|error| format!("{error:#}"))));
        });
    }

    fn is_indexed(&mut self, result: Result<Refreshed, String>) {
        self.indexing = None;
        match result {
            Ok(done) => {
                if let Some(why) = &done.rebuilt {
                    self.say(format!("The index was damaged ({why}), so it was made again."));
                }
                if done.is_busy {
                    self.say("Another chat is indexing this folder; its index is used as it is.");
                }
                if done.files == 0 {
                    self.fail(format!(
                        "There is no document in {}: expected files that end in .md or .txt.",
                        self.args.folder.display()
                    ));
                } else if done.read + done.gone > 0 || self.indexed.files == 0 {
                    let (files, chunks, read) = (done.files, done.chunks, done.read);
                    self.say(format!(
                        "{files} files in {chunks} chunks; {read} read now, {} gone.",
                        done.gone
                    ));
                }
                if done.unreadable != self.indexed.unreadable && !done.unreadable.is_empty() {
                    let some = done.unreadable.iter().take(3).map(|(path, why)| format!("{path}: {why}"));
                    let some = some.collect::<Vec<_>>().join("; ");
                    self.fail(format!(
                        "{} files could not be read: {some}. /files lists all.",
                        done.unreadable.len()
                    ));
                }
                self.indexed = done;
            }
            Err(error) => self.fail(error),
        }
        if let Some(question) = self.waiting.take() {
            self.ask(&question);
        }
    }

    /// Says something beside the conversation.
    pub fn say(&mut self, text: impl Into<String>) {
        self.note(text.into(), false);
    }

    /// Says that something went wrong.
    pub fn fail(&mut self, text: impl Into<String>) {
        self.note(text.into(), true);
    }

    fn note(&mut self, text: String, is_error: bool) {
        self.notes.push(Note { after: self.log.messages().len(), is_error, text });
    }

    /// Plans again after a change and saves it.
    fn changed(&mut self) {
        self.replan();
        self.save();
    }

    fn replan(&mut self) {
        match self.manager.build_plan(&self.request()) {
            Ok(plan) => self.plan = plan,
            Err(error) => self.fail(error.to_string()),
        }
    }

    /// Tells of events of the window that a user has to know.
    fn tell(&mut self, events: Vec<ContextEvent>) {
        for event in events {
            match event {
                ContextEvent::LevelCrossed { to, .. } => {
                    self.say(format!("The conversation is {} now.", level(to)))
                }
                ContextEvent::MaxTokens => self.fail("The reply reached its largest length and was cut."),
                ContextEvent::WindowFull => {
                    self.fail("The reply filled the window and was cut. /compact makes room.")
                }
                ContextEvent::ReasoningDropped { reason, .. } => {
                    self.say(format!("The provider left earlier thoughts out: {reason}"))
                }
                _ => {}
            }
        }
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Normal => "well within its window",
        Level::Approaching => "approaching the limit of its window",
        _ => "at the limit of its window",
    }
}

/// The limits of `--context`: a quarter of it is for the reply, 4,096 tokens at most.
fn limits(args: &Args) -> RequestLimits {
    let smaller =
        |tokens| RequestLimits::new().with_context_len(tokens).with_max_completion((tokens / 4).min(4_096));
    args.context.map_or_else(RequestLimits::new, smaller)
}

/// The planner of a model.
fn manager(args: &Args, choice: &Choice, reasoning: ReasoningPolicy) -> Result<ContextWindowManager> {
    let mut config = match &args.config {
        Some(path) => Config::from_file(path)?,
        None => Config::default(),
    };
    if args.config.is_none() {
        // Whoever chats decides what becomes of an expired pin.
        config.ttl.policy = TtlPolicy::Ask;
    }
    if reasoning == ReasoningPolicy::Drop {
        config.conversation.reasoning = reasoning;
    }
    if matches!(choice.answerer, Answerer::Offline) {
        config.compaction.strategy = CompactionStrategy::Digest;
    }
    Ok(ContextWindowManager::configured(choice.model.clone(), config)?)
}
