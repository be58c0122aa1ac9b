//! One turn: a question, its documents, a plan, and the streamed reply.

use super::{Chat, Search, citations, limits, manager};
use crate::answerer::{Piece, Prompt, Reply};
use crate::args::Args;
use crate::chunks::TOKENS_EACH;
use crate::event::Event;
use context_window::config::ReasoningPolicy;
use context_window::conversation::HistoryRow;
use context_window::usage::{ReplyReport, StopReason, is_context_overflow, is_reasoning_refusal};
use context_window::{
    ContextPlan, ContextWindowManager, Conversation, Message, PlanRequest, RetrievedItems, Role,
};
use context_window_report as report;
use tokio::task::AbortHandle;

/// Maximum number of attempts to make a too long prompt smaller.
const SMALLER: u32 = 4;

/// The running work.
#[derive(Debug)]
pub enum Turn {
    Idle,
    /// A search for documents with this number.
    Searching(u64),
    Answering(Box<Answering>),
}

/// A reply in progress.
#[derive(Debug)]
pub struct Answering {
    number: u64,
    pub text: String,
    pub thought: String,
    plan: ContextPlan,
    /// Number of times that the plan was made smaller.
    smaller: u32,
    /// True if reasoning was dropped after a refusal.
    without_thoughts: bool,
    task: AbortHandle,
}

impl Turn {
    /// Returns true if an event with this number belongs to the running work, not to stopped work.
    pub(super) fn is(&self, number: u64) -> bool {
        match self {
            Self::Idle => false,
            Self::Searching(own) => *own == number,
            Self::Answering(answering) => answering.number == number,
        }
    }

    pub(super) fn hear(&mut self, piece: Piece) {
        if let Self::Answering(answering) = self {
            match piece {
                Piece::Text(text) => answering.text.push_str(&text),
                Piece::Thought(text) => answering.thought.push_str(&text),
            }
        }
    }
}

/// The inputs of the plan of a sent prompt.
pub(super) struct Sent {
    pub(super) manager: ContextWindowManager,
    log: Conversation,
    documents: RetrievedItems,
}

impl Sent {
    pub(super) fn request(&self, args: &Args) -> PlanRequest<'_> {
        PlanRequest::new(&self.log).with_retrieved(self.documents.clone()).with_limits(limits(args))
    }
}

/// Returns true if the newest active message is a user message, which then has no reply.
pub(super) fn is_open(log: &Conversation) -> bool {
    let last = log.active().last();
    matches!(last, Some(HistoryRow::Message { message, .. }) if message.role() == Role::User)
}

impl Chat {
    /// Adds a question to the conversation and saves it before anything is sent.
    pub fn ask(&mut self, question: &str) {
        if !matches!(self.turn, Turn::Idle) {
            return self.fail("A reply is pending; Ctrl-C stops it.");
        }
        if let Some(name) = self.named.clone() {
            self.remember_model(&name);
        }
        self.log.push(Message::user(question));
        self.documents = RetrievedItems::default();
        self.changed();
        self.search();
    }

    /// Asks the last question again if it has no reply.
    pub(super) fn retry(&mut self) {
        match self.turn {
            Turn::Idle if is_open(&self.log) => {
                self.changed();
                self.search();
            }
            Turn::Idle => self.fail("The last question has a reply; there is nothing to retry."),
            _ => self.fail("A reply is pending; Ctrl-C stops it."),
        }
    }

    /// Returns the active question that is `back` questions before the newest.
    fn question(&self, back: usize) -> String {
        let questions = self.log.active().filter_map(|entry| match entry {
            HistoryRow::Message { message, .. } if message.role() == Role::User => Some(message.text()),
            _ => None,
        });
        let questions: Vec<&str> = questions.collect();
        questions.iter().rev().nth(back).map_or_else(String::new, |text| (*text).to_owned())
    }

    /// Searches documents in the background, as many as the prompt has room for.
    fn search(&mut self) {
        if self.saved.is_behind {
            return self.fail("The question is not on disk, so it is not sent; /retry tries again.");
        }
        let most = match self.manager.retrieval_budget(&self.request()) {
            Ok(budget) => budget.top_k(TOKENS_EACH).min(self.args.documents),
            Err(error) => return self.fail(error.to_string()),
        };
        self.started += 1;
        self.turn = Turn::Searching(self.started);
        self.look_up(Some(Search {
            number: self.started,
            question: self.question(0),
            before: self.question(1),
            most: usize::try_from(most).unwrap_or(usize::MAX),
        }));
    }

    pub(super) fn found(&mut self, found: Result<RetrievedItems, String>) {
        self.turn = Turn::Idle;
        match found {
            Ok(documents) => self.documents = self.with_recalled(documents),
            Err(error) => {
                self.documents = self.with_recalled(RetrievedItems::default());
                self.fail(format!("No documents were found: {error}"));
            }
        }
        match self.manager.build_plan(&self.request()) {
            Ok(plan) => self.send(plan, 0, false),
            Err(error) => self.fail(error.to_string()),
        }
        self.take_summary();
    }

    /// Sends a plan. A plan that does not fit is not sent; the remedies are shown instead.
    fn send(&mut self, plan: ContextPlan, smaller: u32, without_thoughts: bool) {
        self.plan = plan.clone();
        if let Some(overflow) = &plan.overflow {
            let help = overflow.remedies.iter().map(|remedy| report::remedy(remedy, &plan.limits));
            let (help, conflict) = (help.collect::<Vec<_>>().join("; "), report::conflict(overflow));
            return self
                .fail(format!("Nothing was sent: these items do not fit: {conflict}. Remedies: {help}."));
        }
        let documents = self.kept_documents();
        let prompt = Prompt::from_plan(&plan, self.question(0), &documents);
        self.sent.push(Sent { manager: self.manager.clone(), log: self.log.clone(), documents });
        if self.sent.len() > 2 {
            self.sent.remove(0);
        }
        self.started += 1;
        let (number, tasks, answerer) = (self.started, self.tasks.clone(), self.choice.answerer.clone());
        let task = self.tasks.runtime.spawn(async move {
            let reply = answerer.answer(&prompt, &|piece| tasks.send(Event::Piece(number, piece))).await;
            tasks.send(Event::Replied(number, reply));
        });
        self.is_whole = false;
        self.log.set_responding(true);
        let (text, thought, task) = (String::new(), String::new(), task.abort_handle());
        let answering = Answering { number, text, thought, plan, smaller, without_thoughts, task };
        self.turn = Turn::Answering(Box::new(answering));
    }

    pub(super) fn replied(&mut self, reply: Result<Reply, String>) {
        let Turn::Answering(answering) = std::mem::replace(&mut self.turn, Turn::Idle) else { return };
        self.log.set_responding(false);
        match reply {
            Ok((message, report)) if message.text().trim().is_empty() => {
                self.refuse_empty(*answering, &report)
            }
            Ok((message, report)) => {
                self.commit(&answering.plan, message, report);
                self.is_whole = true;
            }
            Err(failure) => self.refused(*answering, failure),
        }
        self.take_summary();
    }

    /// Rejects a reply without text and adds its cost. The question waits for `/retry`.
    fn refuse_empty(&mut self, mut answering: Answering, report: &ReplyReport) {
        // Blanks do not count as text.
        answering.text.clear();
        self.spent += self.cost_of(report);
        let why = match report.stop {
            Some(StopReason::MaxTokens) => ": its reasoning reached the maximum length",
            Some(StopReason::ContextFull) => ": the window was full",
            Some(StopReason::ToolCalls) => ": it calls tools, and the chat has none",
            Some(StopReason::Refused) => ": the provider blocked it",
            _ => "",
        };
        self.refused(answering, format!("The reply is empty{why}"));
    }

    /// Adds a complete or partial reply to the conversation, and saves it.
    fn commit(&mut self, plan: &ContextPlan, message: Message, report: ReplyReport) {
        self.spent += self.cost_of(&report);
        self.citations = citations::describe(&plan.citations(), message.text());
        let committed = self.log.push_reply(plan, message, report);
        self.log.complete_turn(plan);
        self.tell(committed.events);
        self.citations.clone().into_iter().for_each(|said| self.say(said));
        self.changed();
        self.watch();
    }

    /// Returns the cost of a reply, in billionths of a dollar.
    fn cost_of(&self, report: &ReplyReport) -> u64 {
        report.usage.and_then(|usage| self.choice.model.usage_cost(usage, None)).unwrap_or_default()
    }

    /// Handles a refusal: retries with a smaller prompt or without reasoning if that can help, otherwise
    /// shows the error. Nothing is lost.
    fn refused(&mut self, answering: Answering, failure: String) {
        let Answering { text, plan, smaller, without_thoughts, .. } = answering;
        let next = if !text.is_empty() {
            None
        } else if is_context_overflow(&failure) && smaller < SMALLER {
            let next = self.manager.plan_after_overflow(&self.request(), &plan);
            self.say(format!(
                "The provider says that {} tokens are too many.",
                report::grouped(plan.estimated_tokens_total.tokens)
            ));
            Some((next.map_err(anyhow::Error::from), smaller + 1, without_thoughts))
        } else if is_reasoning_refusal(&failure) && !without_thoughts {
            // This lasts, because the provider would refuse the reasoning in each prompt. The conversation
            // keeps it.
            let next = manager(&self.args, &self.choice, ReasoningPolicy::Drop).and_then(|manager| {
                self.manager = manager;
                Ok(self.manager.build_plan(&self.request())?)
            });
            self.say("The model refuses its earlier reasoning; prompts are sent without it until /model.");
            Some((next, smaller, true))
        } else {
            None
        };
        match next {
            Some((Ok(next), smaller, without)) => return self.send(next, smaller, without),
            Some((Err(error), ..)) => self.fail(format!("{error:#}")),
            None if text.is_empty() => self.fail(format!("{failure}. /retry asks again.")),
            None => self.fail(format!("{failure}. The received part of the reply is kept.")),
        }
        self.keep(&plan, text);
    }

    /// Stops the reply and keeps its received part.
    pub(super) fn stop(&mut self) {
        match std::mem::replace(&mut self.turn, Turn::Idle) {
            Turn::Idle => {}
            Turn::Searching(_) => self.say("Stopped; /retry asks again."),
            Turn::Answering(answering) => {
                answering.task.abort();
                self.log.set_responding(false);
                self.say(
                    "Stopped; the received part of the reply is kept. /retry asks again if there is none.",
                );
                self.keep(&answering.plan, answering.text);
            }
        }
        self.take_summary();
    }

    /// A partial reply becomes a message. Without any text the question waits for `/retry`.
    fn keep(&mut self, plan: &ContextPlan, text: String) {
        if text.trim().is_empty() {
            self.changed();
        } else {
            self.commit(plan, Message::assistant(text), StopReason::Other.into());
        }
    }
}
