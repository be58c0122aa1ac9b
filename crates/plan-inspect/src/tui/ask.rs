//! Questions that take time, answered on threads of their own: no key waits for a plan.

use super::{Event, subject::Subject};
use crate::{
    args::Tui,
    compaction::Compacted,
    prompt::Figures,
    stored::{self, Stored},
};
use anyhow::Result;
use context_window::{
    ContextPlan, ContextWindowManager, Conversation, Model, PlanRequest,
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

/// Which prompt is meant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum At {
    /// The session's next one, as `plan-inspect plan` plans it.
    Now,
    /// An earlier one, as the replay planned it.
    Past(Arc<Past>),
}

/// The position of an earlier prompt in the log, and the anchors of the prompts before it.
#[derive(Debug, PartialEq)]
pub(crate) struct Past {
    pub(crate) messages: usize,
    /// The prompt before it: its messages, and what it went on from itself.
    pub(crate) before: Option<(usize, Anchor)>,
}

#[derive(Debug, Clone)]
pub(crate) enum Question {
    /// The plan, and the one without what is tried.
    Plan { ticket: u64, at: At, what_if: WhatIf },
    /// The plan with a row for each message that is out.
    List { ticket: u64, at: At, what_if: WhatIf },
    /// Why a row is in or out.
    Explain { ticket: u64, at: At, what_if: WhatIf, id: String },
    /// What differs; from the other session where there is no `from`.
    Compare { ticket: u64, from: Option<(At, WhatIf)>, to: (At, WhatIf) },
    /// What a compaction or a fresh start would do, under this prompt budget.
    Compact { action: BannerAction, what_if: WhatIf },
    /// Every prompt of the session, one after another.
    Replay { epoch: u64 },
}

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
    /// For the subject that was asked about, and no other.
    Offered {
        of: Arc<Subject>,
        action: BannerAction,
        answer: Result<Option<Offer>, String>,
    },
    Step {
        epoch: u64,
        mark: Box<Mark>,
    },
    Replayed {
        epoch: u64,
        failed: Option<String>,
    },
    Reloaded(Result<Arc<Subject>, String>),
}

/// A plan, the one without what is tried, and what the two differ in.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) plan: Arc<ContextPlan>,
    pub(crate) base: Arc<ContextPlan>,
    /// The first characters of the plan's fingerprint.
    pub(crate) fingerprint: String,
    pub(crate) effect: WhatIfEffect,
    /// The conversation as it was at an earlier prompt.
    pub(crate) past: Option<Arc<Conversation>>,
}

/// A compaction that can be applied.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) compacted: Arc<Compacted>,
    /// The subject after it.
    pub(crate) after: Arc<Subject>,
    /// What it does, line by line.
    pub(crate) text: String,
}

/// One prompt of the timeline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mark {
    pub(crate) figures: Figures,
    /// Tokens by kind, tool results as one.
    pub(crate) kinds: Vec<(Kind, u64)>,
    /// What it leaves behind for the next one.
    pub(crate) anchor: Anchor,
}

impl Mark {
    pub(crate) fn of(step: &Step, model: &Model) -> Self {
        let mut anchor = step.plan.anchor();
        // A prompt is long, and there may be many.
        anchor.set_sent_items(None);
        let mut kinds = step.plan.composition(0).by_group().kinds;
        kinds.sort();
        Self { figures: Figures::of(step, model, CostTerms::default()), kinds, anchor }
    }
}

/// Answers one question, here and now; a replay is none of them.
pub(crate) fn answer(subject: &Arc<Subject>, question: &Question) -> Option<Answer> {
    Some(match question {
        Question::Plan { ticket, at, what_if } => {
            Answer::Planned { ticket: *ticket, answer: planned(subject, at, what_if).map_err(said) }
        }
        Question::List { ticket, at, what_if } => {
            let answer = asked(subject, at, what_if, |manager, request| {
                let request = request.clone().with_excluded_messages();
                let request = if subject.exact { request.with_excluded_counts() } else { request };
                Ok(Arc::new(manager.build_plan(&request)?))
            });
            Answer::Listed { ticket: *ticket, answer: answer.map_err(said) }
        }
        Question::Explain { ticket, at, what_if, id } => {
            let answer = asked(subject, at, what_if, |manager, request| {
                Ok(report::explanation(&manager.explainer(request).explain(id)?).to_string())
            });
            Answer::Explained { ticket: *ticket, id: id.clone(), answer: answer.map_err(said) }
        }
        Question::Compare { ticket, from, to } => {
            let answer = compared(subject, from.as_ref(), to);
            Answer::Compared { ticket: *ticket, answer: answer.map_err(said) }
        }
        Question::Compact { action, what_if } => {
            let answer = offered(subject, *action, what_if).map_err(said);
            Answer::Offered { of: subject.clone(), action: *action, answer }
        }
        Question::Replay { .. } => return None,
    })
}

/// A compaction as it would be now; none where there is nothing to compact.
fn offered(subject: &Subject, action: BannerAction, what_if: &WhatIf) -> Result<Option<Offer>> {
    let prepared = subject.prepared.clone().budget(what_if.budget());
    let compactor = prepared.manager.compactor();
    let state = compactor.state(&prepared.request())?;
    let compacted = match action {
        BannerAction::StartFresh => Compacted::fresh(&prepared)?,
        _ => match compactor.now(&prepared.request())? {
            Some(job) => Some(Compacted::by(&prepared, job, None)?),
            None => None,
        },
    };
    let Some(compacted) = compacted else { return Ok(None) };
    if let Some(why) = compacted.refusal() {
        anyhow::bail!("nothing to compact: {why}");
    }
    let after = Arc::new(subject.with_log(compacted.log.clone()));
    Ok(Some(Offer { text: compacted.text(state)?, after, compacted: Arc::new(compacted) }))
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err hands it")]
fn said(error: anyhow::Error) -> String {
    report::printable(&format!("{error:#}").replace('\n', " "))
}

/// Asks the planner about a prompt under what is tried.
fn asked<T>(
    subject: &Subject,
    at: &At,
    what_if: &WhatIf,
    ask: impl FnOnce(&ContextWindowManager, &PlanRequest<'_>) -> Result<T>,
) -> Result<T> {
    let prepared = &subject.prepared;
    let At::Past(past) = at else {
        return what_if.apply_to_request(&prepared.request(), |request| ask(&prepared.manager, request));
    };
    let mut session = as_of(&prepared.session, past.messages);
    session.previous = Some(match &past.before {
        // With its prompt, so that the plan can say what it repeats of it.
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

/// The session as it was: what belongs to its last prompt only is not there.
fn as_of(session: &Session, messages: usize) -> Session {
    let mut past = session.clone();
    past.log = session.log.as_of(messages);
    (past.rag, past.focus, past.state) = (Vec::new(), None, Vec::new());
    past
}

fn planned(subject: &Subject, at: &At, what_if: &WhatIf) -> Result<Planned> {
    let build = |what_if: &WhatIf, exact: bool| {
        asked(subject, at, what_if, |manager, request| {
            let counted = if exact { request.clone().with_excluded_counts() } else { request.clone() };
            Ok(Arc::new(manager.build_plan(&counted)?))
        })
    };
    let base = build(&WhatIf::default(), subject.exact)?;
    let plan = if what_if.is_empty() { base.clone() } else { build(what_if, subject.exact)? };
    // The one that everybody else has of this request, who asks for no more counts.
    let shared = if subject.exact { build(what_if, false)? } else { plan.clone() };
    let fingerprint = shared.fingerprint().chars().take(8).collect();
    let effect =
        if what_if.is_empty() { WhatIfEffect::default() } else { WhatIfEffect::between(&base, &plan) };
    let past = match at {
        At::Now => None,
        At::Past(past) => Some(Arc::new(subject.session().log.as_of(past.messages))),
    };
    Ok(Planned { plan, base, fingerprint, effect, past })
}

fn compared(subject: &Subject, from: Option<&(At, WhatIf)>, to: &(At, WhatIf)) -> Result<Diff> {
    asked(subject, &to.0, &to.1, |manager, after| match (from, &subject.against) {
        (Some((at, what_if)), _) => asked(subject, at, what_if, |before_manager, before| {
            Ok(Diff::between(&before_manager.explainer(before), &manager.explainer(after))?)
        }),
        (None, Some(other)) => {
            Ok(Diff::between(&other.manager.explainer(&other.request()), &manager.explainer(after))?)
        }
        (None, None) => anyhow::bail!("nothing to compare with"),
    })
}

/// The threads that answer.
#[derive(Debug)]
pub(crate) struct Asker {
    questions: Sender<(Arc<Subject>, Question)>,
    happenings: Sender<Event>,
    /// The replay that is wanted: an older one stops by itself.
    epoch: Arc<AtomicU64>,
}

impl Asker {
    pub(crate) fn start(happenings: &Sender<Event>, follow: Option<Tui>) -> Self {
        let (questions, queue) = mpsc::channel::<(Arc<Subject>, Question)>();
        let answers = Guard(happenings.clone());
        thread::spawn(move || {
            let answers = answers;
            while let Ok(first) = queue.recv() {
                for (subject, question) in newest(std::iter::once(first).chain(queue.try_iter())) {
                    if let Some(answer) = answer(&subject, &question) {
                        let _ = answers.0.send(Event::Answer(answer));
                    }
                }
            }
        });
        if let Some(args) = follow {
            let answers = Guard(happenings.clone());
            thread::spawn(move || watch(&args, &answers));
        }
        Self { questions, happenings: happenings.clone(), epoch: Arc::default() }
    }

    pub(crate) fn ask(&self, subject: &Arc<Subject>, question: Question) {
        let Question::Replay { epoch } = question else {
            let _ = self.questions.send((subject.clone(), question));
            return;
        };
        self.epoch.store(epoch, Ordering::Relaxed);
        let (wanted, subject, answers) =
            (self.epoch.clone(), subject.clone(), Guard(self.happenings.clone()));
        thread::spawn(move || {
            let answers = answers;
            let ask = |answer| answers.0.send(Event::Answer(answer)).is_ok();
            replay(&subject, epoch, |answer| wanted.load(Ordering::Relaxed) == epoch && ask(answer));
        });
    }
}

/// Plans every prompt; ends early where the answers are no longer wanted.
pub(crate) fn replay(subject: &Subject, epoch: u64, mut send: impl FnMut(Answer) -> bool) {
    /// Who looks at a screen looks no further back.
    const NEWEST: usize = 1_000;
    let request = subject.prepared.request();
    for step in subject.prepared.manager.explainer(&request).replay_newest(NEWEST) {
        let answer = match step {
            Ok(step) => Answer::Step { epoch, mark: Box::new(Mark::of(&step, &subject.prepared.model)) },
            Err(error) => {
                send(Answer::Replayed { epoch, failed: Some(said(error.into())) });
                return;
            }
        };
        if !send(answer) {
            return;
        }
    }
    send(Answer::Replayed { epoch, failed: None });
}

/// Of each kind of question only the last one asked: the others are no longer of interest.
fn newest(
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

/// What tells whether a session grew.
#[derive(PartialEq)]
enum Seen {
    /// Length and time of a file.
    File(Option<(u64, Option<SystemTime>)>),
    /// Entries of a session in a store.
    Store(Option<u64>),
}

impl Seen {
    fn now(args: &Tui, store: &mut Option<Stored>) -> Self {
        let (path, id) = (&args.request.session, &args.request.id);
        let Some(address) = stored::address(path) else {
            return Self::File(fs::metadata(path).ok().map(|data| (data.len(), data.modified().ok())));
        };
        if store.is_none() {
            *store = Stored::open(address).ok();
        }
        let revision = store.as_mut().and_then(|store| match id {
            Some(id) => store.revision(id),
            None => store.only().ok().and_then(|id| store.revision(&id)),
        });
        if revision.is_none() {
            // It is opened again at the next look.
            *store = None;
        }
        Self::Store(revision)
    }
}

/// Reads the session again whenever its file has changed. One that is being written, and cannot be read yet,
/// is read at the next look.
fn watch(args: &Tui, answers: &Guard) {
    const BETWEEN: Duration = Duration::from_millis(400);
    let mut store = None;
    let mut seen = Seen::now(args, &mut store);
    loop {
        thread::sleep(BETWEEN);
        let now = Seen::now(args, &mut store);
        if now == seen {
            continue;
        }
        seen = now;
        let answer = Subject::read(args).map(Arc::new).map_err(said);
        if answers.0.send(Event::Answer(Answer::Reloaded(answer))).is_err() {
            return;
        }
    }
}

/// Tells the screen when its thread breaks down: otherwise it would wait for ever.
struct Guard(Sender<Event>);

impl Drop for Guard {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self.0.send(Event::Broken);
        }
    }
}
