//! Slow questions about a plan and the threads that answer them, so that no key press waits for the planner.

use super::{Event, subject::Subject};
use crate::{
    args::Tui,
    compaction::Compacted,
    prompt::Figures,
    stored::{self, Stored},
};
use anyhow::Result;
use context_window::{
    ContextPlan, ContextWindowManager, Conversation, Model, PlanRequest, RetrievedItems,
    analysis::{Diff, Step},
    plan::{Anchor, Kind},
    usage::CostTerms,
};
use context_window_formats::Session;
use context_window_ratatui::{BannerAction, WhatIf, WhatIfEffect};
use context_window_report as report;
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Sender},
    },
    thread,
    time::{Duration, SystemTime},
};

/// The prompt that a question is about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum At {
    /// The session's next prompt, as `plan-inspect plan` plans it.
    Now,
    /// An earlier prompt, as the replay planned it.
    Earlier(Arc<EarlierState>),
}

/// The position of an earlier prompt in the log, with the prompt before it.
#[derive(Debug, PartialEq)]
pub(crate) struct EarlierState {
    /// The number of messages before the prompt.
    pub(crate) messages: usize,
    /// The prompt before it: its number of messages, and the anchor that it was planned with.
    pub(crate) before: Option<(usize, Anchor)>,
}

/// A request for an answer about the subject. Answers carry the `ticket` or `epoch` of their question, so
/// that outdated ones can be dropped.
#[derive(Debug, Clone)]
pub(crate) enum Question {
    /// The plan with the tried changes, and the one without.
    Plan { ticket: u64, at: At, what_if: WhatIf },
    /// The plan with a row for each excluded message.
    List { ticket: u64, at: At, what_if: WhatIf },
    /// The reason for including or excluding an item.
    Explain { ticket: u64, at: At, what_if: WhatIf, id: String },
    /// The differences between two plans. Without `from`, the other plan is that of the session given by
    /// `--against`.
    Compare { ticket: u64, from: Option<(At, WhatIf)>, to: (At, WhatIf) },
    /// A compaction or a fresh start, previewed with the tried prompt budget.
    Compact { action: BannerAction, what_if: WhatIf },
    /// All prompts of the session, in order.
    Replay { epoch: u64 },
}

/// An answer to a [`Question`], or the reloaded session.
#[derive(Debug)]
pub(crate) enum Answer {
    Planned {
        ticket: u64,
        answer: Result<Planned, String>,
    },
    Listed {
        ticket: u64,
        answer: Result<Arc<ContextPlan>, String>,
    },
    Explained {
        ticket: u64,
        id: String,
        answer: Result<String, String>,
    },
    Compared {
        ticket: u64,
        answer: Result<Diff, String>,
    },
    /// The preview of a compaction. It is valid only for the subject `of`.
    Offered {
        of: Arc<Subject>,
        action: BannerAction,
        answer: Result<Option<Offer>, String>,
    },
    Step {
        epoch: u64,
        mark: Box<PromptMark>,
    },
    Replayed {
        epoch: u64,
        failed: Option<String>,
    },
    Reloaded(Result<Arc<Subject>, String>),
}

/// A plan with the tried changes, the plan without them, and their differences.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) plan: Arc<ContextPlan>,
    pub(crate) base: Arc<ContextPlan>,
    /// The first 8 characters of the plan's fingerprint.
    pub(crate) fingerprint: String,
    pub(crate) effect: WhatIfEffect,
    /// The conversation at the time of an earlier prompt.
    pub(crate) past: Option<Arc<Conversation>>,
}

/// A compaction that can be applied.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) compacted: Arc<Compacted>,
    /// The subject after the compaction.
    pub(crate) after: Arc<Subject>,
    /// The description of the compaction, line by line.
    pub(crate) text: String,
}

/// A prompt of the timeline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PromptMark {
    pub(crate) figures: Figures,
    /// The tokens by kind, with tool results as one kind.
    pub(crate) kinds: Vec<(Kind, u64)>,
    /// The anchor for planning the next prompt.
    pub(crate) anchor: Anchor,
}

impl PromptMark {
    pub(crate) fn from_step(step: &Step, model: &Model) -> Self {
        let mut anchor = step.plan.anchor();
        // The sent items are as large as a prompt, and there can be 1,000 marks.
        anchor.set_sent_items(None);
        let mut kinds = step.plan.composition(0).by_group().kinds;
        // Sorted by kind, so that each kind keeps its place in every bar.
        kinds.sort();
        Self { figures: Figures::from_step(step, model, CostTerms::default()), kinds, anchor }
    }
}

/// Answers a question synchronously. Returns `None` for a replay, which has many answers.
pub(crate) fn answer(subject: &Arc<Subject>, question: &Question) -> Option<Answer> {
    Some(match question {
        Question::Plan { ticket, at, what_if } => {
            Answer::Planned { ticket: *ticket, answer: planned(subject, at, what_if).map_err(error_text) }
        }
        Question::List { ticket, at, what_if } => {
            let answer = with_request(subject, at, what_if, |manager, request| {
                let request = request.clone().with_excluded_messages();
                let request = if subject.exact { request.with_excluded_counts() } else { request };
                Ok(Arc::new(manager.build_plan(&request)?))
            });
            Answer::Listed { ticket: *ticket, answer: answer.map_err(error_text) }
        }
        Question::Explain { ticket, at, what_if, id } => {
            let answer = with_request(subject, at, what_if, |manager, request| {
                Ok(report::explanation(&manager.explainer(request).explain(id)?).to_string())
            });
            Answer::Explained { ticket: *ticket, id: id.clone(), answer: answer.map_err(error_text) }
        }
        Question::Compare { ticket, from, to } => {
            let answer = compared(subject, from.as_ref(), to);
            Answer::Compared { ticket: *ticket, answer: answer.map_err(error_text) }
        }
        Question::Compact { action, what_if } => {
            let answer = offer_for(subject, *action, what_if).map_err(error_text);
            Answer::Offered { of: subject.clone(), action: *action, answer }
        }
        Question::Replay { .. } => return None,
    })
}

/// Previews a compaction of the present conversation. Returns `None` if there is nothing to compact.
fn offer_for(subject: &Subject, action: BannerAction, what_if: &WhatIf) -> Result<Option<Offer>> {
    let prepared = subject.prepared.clone().budget(what_if.budget());
    let compactor = prepared.manager.compactor();
    let state = compactor.state(&prepared.request())?;
    let compacted = match action {
        BannerAction::StartFresh => Compacted::fresh(&prepared)?,
        _ => match compactor.now(&prepared.request())? {
            Some(job) => Some(Compacted::from_job(&prepared, job, None)?),
            None => None,
        },
    };
    let Some(compacted) = compacted else { return Ok(None) };
    if let Some(why) = compacted.refusal() {
        anyhow::bail!("nothing to compact: {why}");
    }
    // The subject after the compaction is built here, on the worker thread, because counting its prompts
    // takes time.
    let after = Arc::new(subject.with_log(compacted.log.clone()));
    Ok(Some(Offer { text: compacted.text(state)?, after, compacted: Arc::new(compacted) }))
}

/// Converts an error to one printable line.
#[expect(clippy::needless_pass_by_value, reason = "as map_err hands it")]
fn error_text(error: anyhow::Error) -> String {
    report::printable(&format!("{error:#}").replace('\n', " "))
}

/// Calls `ask` with the manager and the request for a prompt, with the tried changes applied.
fn with_request<T>(
    subject: &Subject,
    at: &At,
    what_if: &WhatIf,
    ask: impl FnOnce(&ContextWindowManager, &PlanRequest<'_>) -> Result<T>,
) -> Result<T> {
    let prepared = &subject.prepared;
    let At::Earlier(past) = at else {
        return what_if.apply_to_request(&prepared.request(), |request| ask(&prepared.manager, request));
    };
    let mut session = as_of(&prepared.session, past.messages);
    session.previous = Some(match &past.before {
        // The plan of the previous prompt is made again, so that the anchor has its items and the cached
        // prefix is known.
        Some((messages, anchor)) => {
            let mut before = as_of(&prepared.session, *messages);
            before.previous = Some(anchor.clone());
            let request = before.request().with_limits(prepared.limits());
            prepared.manager.build_plan(&request)?.anchor()
        }
        None => Anchor::default(),
    });
    let request = session.request().with_limits(prepared.limits());
    what_if.apply_to_request(&request, |request| ask(&prepared.manager, request))
}

/// Returns the session at the time of an earlier prompt. Documents, focus and state belong to the last prompt
/// only, so they are left out.
fn as_of(session: &Session, messages: usize) -> Session {
    let mut past = session.clone();
    past.log = session.log.as_of(messages);
    (past.rag, past.focus, past.state) = (RetrievedItems::default(), None, Vec::new());
    past
}

/// Plans a prompt with and without the tried changes.
fn planned(subject: &Subject, at: &At, what_if: &WhatIf) -> Result<Planned> {
    let build = |what_if: &WhatIf, exact: bool| {
        with_request(subject, at, what_if, |manager, request| {
            let counted = if exact { request.clone().with_excluded_counts() } else { request.clone() };
            Ok(Arc::new(manager.build_plan(&counted)?))
        })
    };
    let base = build(&WhatIf::default(), subject.exact)?;
    let plan = if what_if.is_empty() { base.clone() } else { build(what_if, subject.exact)? };
    // The fingerprint is that of the plan without extra counts, as other commands show it.
    let shared = if subject.exact { build(what_if, false)? } else { plan.clone() };
    let fingerprint = shared.fingerprint().chars().take(8).collect();
    let effect =
        if what_if.is_empty() { WhatIfEffect::default() } else { WhatIfEffect::between(&base, &plan) };
    let past = match at {
        At::Now => None,
        At::Earlier(past) => Some(Arc::new(subject.session().log.as_of(past.messages))),
    };
    Ok(Planned { plan, base, fingerprint, effect, past })
}

/// Compares two plans. Returns an error if there is nothing to compare with.
fn compared(subject: &Subject, from: Option<&(At, WhatIf)>, to: &(At, WhatIf)) -> Result<Diff> {
    with_request(subject, &to.0, &to.1, |manager, after| match (from, &subject.against) {
        (Some((at, what_if)), _) => with_request(subject, at, what_if, |before_manager, before| {
            Ok(Diff::between(&before_manager.explainer(before), &manager.explainer(after))?)
        }),
        (None, Some(other)) => {
            Ok(Diff::between(&other.manager.explainer(&other.request()), &manager.explainer(after))?)
        }
        (None, None) => anyhow::bail!("nothing to compare with"),
    })
}

/// The sender of questions to the worker thread.
#[derive(Debug)]
pub(crate) struct Asker {
    questions: Sender<(Arc<Subject>, Question)>,
    events: Sender<Event>,
    /// The epoch of the current replay. Replays of older epochs stop.
    epoch: Arc<AtomicU64>,
}

impl Asker {
    /// Starts the worker thread, and a thread that watches the session file if `follow` is set.
    pub(crate) fn start(events: &Sender<Event>, follow: Option<Tui>) -> Self {
        let (questions, queue) = mpsc::channel::<(Arc<Subject>, Question)>();
        let answers = Guard(events.clone());
        thread::spawn(move || {
            let answers = answers;
            while let Ok(first) = queue.recv() {
                // All waiting questions are taken at once, so that outdated ones can be dropped.
                for (subject, question) in newest_questions(std::iter::once(first).chain(queue.try_iter())) {
                    if let Some(answer) = answer(&subject, &question) {
                        let _ = answers.0.send(Event::Answer(answer));
                    }
                }
            }
        });
        if let Some(args) = follow {
            let answers = Guard(events.clone());
            thread::spawn(move || watch(&args, &answers));
        }
        Self { questions, events: events.clone(), epoch: Arc::default() }
    }

    /// Sends a question to the worker thread. A replay gets its own thread, because it takes much longer.
    pub(crate) fn ask(&self, subject: &Arc<Subject>, question: Question) {
        let Question::Replay { epoch } = question else {
            // Sending fails only if the worker has panicked, which its guard reports.
            let _ = self.questions.send((subject.clone(), question));
            return;
        };
        // The epoch protects no other memory, so relaxed ordering is enough.
        self.epoch.store(epoch, Ordering::Relaxed);
        let (wanted, subject, answers) = (self.epoch.clone(), subject.clone(), Guard(self.events.clone()));
        thread::spawn(move || {
            let answers = answers;
            let ask = |answer| answers.0.send(Event::Answer(answer)).is_ok();
            replay(&subject, epoch, |answer| wanted.load(Ordering::Relaxed) == epoch && ask(answer));
        });
    }
}

/// Plans the newest prompts of the session and sends a mark for each. It stops early if `send` returns false.
pub(crate) fn replay(subject: &Subject, epoch: u64, mut send: impl FnMut(Answer) -> bool) {
    /// The maximum number of prompts, because users of a screen do not look further back.
    const NEWEST: usize = 1_000;
    let request = subject.prepared.request();
    for step in subject.prepared.manager.explainer(&request).replay_newest(NEWEST) {
        let answer = match step {
            Ok(step) => {
                Answer::Step { epoch, mark: Box::new(PromptMark::from_step(&step, &subject.prepared.model)) }
            }
            Err(error) => {
                send(Answer::Replayed { epoch, failed: Some(error_text(error.into())) });
                return;
            }
        };
        if !send(answer) {
            return;
        }
    }
    send(Answer::Replayed { epoch, failed: None });
}

/// Returns only the last question of each kind, because the others are outdated.
fn newest_questions(
    asked: impl Iterator<Item = (Arc<Subject>, Question)>,
) -> impl Iterator<Item = (Arc<Subject>, Question)> {
    let mut kinds = [None, None, None, None, None];
    for (subject, question) in asked {
        let kind = match question {
            Question::Plan { .. } => 0,
            Question::List { .. } => 1,
            Question::Compare { .. } => 3,
            Question::Compact { .. } => 4,
            _ => 2,
        };
        kinds[kind] = Some((subject, question));
    }
    kinds.into_iter().flatten()
}

/// The state of a session's source, which shows if the session has grown.
#[derive(PartialEq)]
enum SourceState {
    /// The length and modification time of a file.
    File(Option<(u64, Option<SystemTime>)>),
    /// The number of entries of a session in a store.
    Store(Option<u64>),
}

impl SourceState {
    /// Reads the present state. `store` keeps a store open between calls.
    fn now(args: &Tui, store: &mut Option<Stored>) -> Self {
        let (path, id) = (&args.request.session, &args.request.id);
        // A changed length or time is reason enough to read the file again.
        let Some(address) = stored::address(path) else {
            return Self::File(fs::metadata(path).ok().map(|data| (data.len(), data.modified().ok())));
        };
        if store.is_none() {
            *store = Stored::open(address).ok();
        }
        // The number of entries is a cheap query, so the session itself is loaded only if it has grown.
        let revision = store.as_mut().and_then(|store| match id {
            Some(id) => store.revision(id),
            None => store.only().ok().and_then(|id| store.revision(&id)),
        });
        if revision.is_none() {
            // The store is opened again at the next check.
            *store = None;
        }
        Self::Store(revision)
    }
}

/// Reloads the session whenever its source changes. If it cannot be read yet because a write is in progress,
/// the next check reads it.
fn watch(args: &Tui, answers: &Guard) {
    const BETWEEN: Duration = Duration::from_millis(400);
    let mut store = None;
    let mut last_state = SourceState::now(args, &mut store);
    loop {
        thread::sleep(BETWEEN);
        let now = SourceState::now(args, &mut store);
        if now == last_state {
            continue;
        }
        // The new state is kept even if the read fails. A write that is still in progress changes it again.
        last_state = now;
        let answer = Subject::read(args).map(Arc::new).map_err(error_text);
        if answers.0.send(Event::Answer(Answer::Reloaded(answer))).is_err() {
            return;
        }
    }
}

/// Reports a panic of its thread to the screen, which would otherwise wait for ever.
struct Guard(Sender<Event>);

impl Drop for Guard {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self.0.send(Event::Broken);
        }
    }
}
