//! A chat: the conversation, its plan, and the running work. It knows no terminal and no keys; events arrive
//! through [`Chat::handle`].

mod citations;
mod commands;
mod compacting;
mod items;
mod recalled;
mod remembered;
mod saved;
mod turn;

use crate::answerer::Answerer;
use crate::args::Args;
use crate::event::{Event, Tasks};
use crate::index::{Index, Refreshed};
use crate::models::{self, Choice, Environment};
use anyhow::Result;
use compacting::Compacting;
pub use compacting::Preview;
use context_window::config::{CompactionStrategy, ReasoningPolicy, RulePolicy, TtlPolicy};
use context_window::plan::Decision;
use context_window::usage::{ContextEvent, Level};
use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Error, PlanRequest, RequestLimits,
    RetrievedItems,
};
use context_window_ratatui::{RowExplanation, TranscriptRemark, WhatIf};
use recalled::Recalled;
use remembered::Remembered;
use saved::Saved;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use turn::Sent;
pub use turn::Turn;

/// A search for documents.
struct Search {
    number: u64,
    question: String,
    /// The question before it.
    before: String,
    /// Maximum number of documents.
    most: usize,
}

pub struct Chat {
    pub args: Args,
    environment: Environment,
    tasks: Tasks,
    index: Arc<Mutex<Index>>,
    saved: Saved,
    recalled: Recalled,
    /// The requested models of sessions; `None` if one question starts a new session.
    remembered: Option<Remembered>,
    /// The model requested by name; `None` if the environment chose.
    named: Option<String>,
    pub choice: Choice,
    manager: ContextWindowManager,
    pub log: Conversation,
    /// The documents of the newest question, and the earlier turns that it needs.
    pub documents: RetrievedItems,
    /// The checked citations of the last reply, if it has any.
    pub citations: Option<String>,
    /// Documents that `/drop` excludes.
    left_out: WhatIf,
    /// The newest prompt; after a change, the next one with the same documents.
    pub plan: ContextPlan,
    /// Messages of the chat itself, which are not part of the conversation.
    pub remarks: Vec<TranscriptRemark>,
    pub turn: Turn,
    /// True if the newest reply is complete.
    pub is_whole: bool,
    /// Number of started searches, requests and compactions.
    started: u64,
    compacting: Option<Compacting>,
    /// A compaction in preview that waits for the user's answer.
    pub preview: Option<Preview>,
    /// The last sent prompts, the newest last, which `/diff` compares.
    sent: Vec<Sent>,
    /// The cost of this run's replies, in billionths of a dollar.
    spent: u64,
    pub indexing: Option<(usize, usize)>,
    pub indexed: Refreshed,
}

impl Chat {
    /// Opens the session of a folder, with index and conversations in `data`, and starts indexing.
    pub fn open(args: Args, data: &Path, environment: Environment, tasks: Tasks) -> Result<Self> {
        let name = args.session.as_deref().unwrap_or(if args.ask.is_some() { "asked" } else { "chat" });
        let is_afresh = args.ask.is_some() && args.session.is_none();
        let remembered = (!is_afresh).then(|| Remembered::new(data));
        let choice = models::choose(args.model.as_deref(), &environment)?;
        let manager = manager(&args, &choice, ReasoningPolicy::default())?;
        let index = Arc::new(Mutex::new(Index::open(&args.folder, &data.join("index"))?));
        let (saved, log) = Saved::open(&data.join("chats.db"), name)?;
        let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(limits(&args)))?;
        let mut chat = Self {
            args,
            environment,
            tasks,
            index,
            saved,
            recalled: Recalled::new(data),
            remembered,
            named: None,
            choice,
            manager,
            log,
            plan,
            documents: RetrievedItems::default(),
            citations: None,
            left_out: WhatIf::new(),
            remarks: Vec::new(),
            turn: Turn::Idle,
            is_whole: false,
            started: 0,
            compacting: None,
            preview: None,
            sent: Vec::new(),
            spent: 0,
            indexing: Some((0, 0)),
            indexed: Refreshed::default(),
        };
        match chat.args.model.clone() {
            Some(name) => chat.remember_model(&name),
            None => chat.resume_model(),
        }
        let (folder, says) = (chat.args.folder.display(), &chat.choice.says);
        let earlier = chat.saved.welcome(&chat.log);
        chat.say(format!("{folder}: ask about its documents. {says}. /help lists the commands. {earlier}"));
        chat.open_recall().into_iter().for_each(|said| chat.say(said));
        chat.look_up(None);
        Ok(chat)
    }

    /// Returns the name of the session.
    pub fn session(&self) -> &str {
        &self.saved.id
    }

    /// Returns the request for the next prompt.
    pub fn request(&self) -> PlanRequest<'_> {
        PlanRequest::new(&self.log).with_retrieved(self.kept_documents()).with_limits(limits(&self.args))
    }

    /// Returns the documents that `/drop` does not exclude.
    fn kept_documents(&self) -> RetrievedItems {
        let mut documents = self.documents.clone();
        documents.retain(|document| self.left_out.keeps_document(document));
        documents
    }

    /// Explains the inclusion or exclusion of an item of the prompt.
    pub fn why(&self, row: Decision<'_>) -> Result<RowExplanation, Error> {
        WhatIf::new().explain(&self.manager, &self.request(), row)
    }

    /// Handles an event.
    pub fn handle(&mut self, event: Event) {
        match event {
            Event::Terminal(_) => {}
            Event::Indexing(done, of) => self.indexing = Some((done, of)),
            Event::Indexed(result) => self.is_indexed(result),
            Event::Found(number, found) if self.turn.is(number) => self.found(found),
            Event::Piece(number, piece) if self.turn.is(number) => self.turn.hear(piece),
            Event::Replied(number, reply) if self.turn.is(number) => self.replied(reply),
            Event::Summarised(number, summary) => self.summarised(number, summary),
            // Events of stopped work.
            Event::Found(..) | Event::Piece(..) | Event::Replied(..) => {}
        }
    }

    /// Returns true if there is work that [`Chat::interrupt`] can stop.
    pub fn can_stop(&self) -> bool {
        !matches!(self.turn, Turn::Idle) || self.compacting.is_some()
    }

    /// Returns true if work is running that will end with an event.
    pub fn is_busy(&self) -> bool {
        self.can_stop() || self.indexing.is_some()
    }

    /// Stops running work and saves once more. Returns an error if something is not on disk.
    pub fn close(mut self) -> Result<(), String> {
        self.stop();
        self.save();
        let error = "rag-chat: the last messages are not on disk; /save FILE would have kept them";
        if self.saved.is_behind { Err(error.into()) } else { Ok(()) }
    }

    /// Indexes changes of the folder in the background, then searches for documents.
    fn look_up(&self, search: Option<Search>) {
        let (index, tasks) = (self.index.clone(), self.tasks.clone());
        self.tasks.runtime.spawn_blocking(move || {
            let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
            let refreshed = guarded(|| index.refresh(|done, of| tasks.send(Event::Indexing(done, of))));
            tasks.send(Event::Indexed(refreshed));
            if let Some(search) = search {
                let found = guarded(|| index.search(&search.question, &search.before, search.most));
                tasks.send(Event::Found(search.number, found));
            }
        });
    }

    fn is_indexed(&mut self, result: Result<Refreshed, String>) {
        self.indexing = None;
        match result {
            Ok(done) => {
                let Refreshed { files, chunks, read, gone, unreadable, rebuilt, is_busy } = &done;
                if let Some(why) = rebuilt {
                    self.say(format!("The index was damaged, so it is rebuilt: {why}"));
                }
                if *is_busy {
                    self.say("Another chat is indexing this folder; this one uses the present index.");
                } else if *files == 0 {
                    self.fail("There is no document in this folder: expected files that end in .md or .txt.");
                } else if read + gone > 0 || self.indexed.files == 0 {
                    self.say(format!(
                        "{files} files in {chunks} chunks; {read} new or changed, {gone} removed."
                    ));
                }
                if !unreadable.is_empty() && *unreadable != self.indexed.unreadable {
                    let some = unreadable.iter().take(20).map(|(path, why)| format!("\n{path}: {why}"));
                    let some = some.collect::<String>();
                    self.fail(format!("Files that could not be read: {}.{some}", unreadable.len()));
                }
                self.indexed = done;
            }
            Err(error) => self.fail(error),
        }
    }

    /// Shows a remark outside the conversation.
    pub fn say(&mut self, text: impl Into<String>) {
        self.remark(text.into(), false);
    }

    /// Shows an error.
    pub fn fail(&mut self, text: impl Into<String>) {
        self.remark(text.into(), true);
    }

    fn remark(&mut self, text: String, is_error: bool) {
        self.remarks.push(TranscriptRemark { after: self.log.history().count(), text, is_error });
    }

    /// Plans again after a change, and saves it.
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

    /// Shows the events of the window that concern the user.
    fn tell(&mut self, events: Vec<ContextEvent>) {
        for event in events {
            let said = match event {
                ContextEvent::LevelCrossed { to: Level::Normal, .. } => {
                    "The window has free space again.".into()
                }
                ContextEvent::LevelCrossed { to: Level::Approaching, .. } => {
                    "The window is getting full.".into()
                }
                ContextEvent::LevelCrossed { .. } => "The window is full; /compact frees space.".into(),
                ContextEvent::MaxTokens => "The reply reached its maximum length and was cut.".into(),
                ContextEvent::WindowFull => "The reply filled the window and was cut.".into(),
                ContextEvent::ReasoningDropped { reason, .. } => {
                    format!("Earlier reasoning was dropped: {reason}")
                }
                _ => continue,
            };
            self.say(said);
        }
    }
}

/// Runs work and returns its result. A panic, such as over a file that a library cannot read, becomes an
/// error.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T, String> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.map_err(|_| "the index panicked".to_owned())?.map_err(|error| format!("{error:#}"))
}

/// Returns the limits for `--context`: a quarter of it is reserved for the reply, at most 4,096 tokens.
fn limits(args: &Args) -> RequestLimits {
    let smaller = |tokens| {
        RequestLimits::new()
            .with_model_context_len(tokens)
            .with_max_completion_tokens((tokens / 4).min(4_096))
    };
    args.context.map_or_else(RequestLimits::new, smaller)
}

/// Builds the planner of a model.
fn manager(args: &Args, choice: &Choice, reasoning: ReasoningPolicy) -> Result<ContextWindowManager> {
    let mut config = match &args.config {
        Some(path) => Config::from_file(path)?,
        None => Config::default(),
    };
    if args.config.is_none() {
        // The user decides about an expired pin.
        config.ttl_policy = TtlPolicy::Ask;
        // And about a lasting rule, once its message leaves the prompt.
        config.compaction.rules = RulePolicy::Ask;
        // Replies cite documents by labels, which are checked.
        config.rag.labels = true;
    }
    if reasoning == ReasoningPolicy::Drop {
        config.conversation.reasoning = reasoning;
    }
    if matches!(choice.answerer, Answerer::Offline) {
        config.compaction.strategy = CompactionStrategy::Digest;
    }
    Ok(ContextWindowManager::configured(choice.model.clone(), config)?)
}
