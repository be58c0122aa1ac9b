//! Compaction beside the chat: a summary is asked for while the user goes on, and older messages are archived at once when it
//! is there. Until then, and where it fails, the conversation is as it was.

use super::{Chat, Turn};
use crate::{answerer::Answerer, event::Event};
use context_window::compaction::{Compaction, CompactionRequest};
use context_window::config::CompactionStrategy;
use context_window::report;

/// A compaction on its way.
pub(super) struct Compacting {
    number: u64,
    job: CompactionRequest,
    task: tokio::task::AbortHandle,
    /// What came of it while a reply was on its way: it is taken in after the reply, which was planned without it.
    answer: Option<Result<String, String>>,
}

impl Chat {
    /// Looks how full the window is after a reply, and begins a compaction that is due.
    pub(super) fn watch(&mut self) {
        let usage = match self.manager.usage(self.request()) {
            Ok(usage) => usage,
            Err(error) => return self.fail(error.to_string()),
        };
        let events = self.log.observe(usage);
        self.tell(events);
        if self.compacting.is_some() {
            return;
        }
        match self.manager.compactor().due(self.request()) {
            Ok(Some(job)) => self.compact(job),
            Ok(None) => {}
            Err(error) => self.fail(error.to_string()),
        }
    }

    /// What `/compact` would do; a yes does it.
    pub(super) fn preview_compaction(&mut self) {
        if self.compacting.is_some() {
            return self.say("A compaction is on its way.");
        }
        match self.manager.compactor().now(self.request()) {
            Ok(Some(job)) => {
                let [first, .., last] = job.archived_ids() else {
                    return self.say("There is too little to compact.");
                };
                let by = match (&self.choice.answerer, job.strategy()) {
                    (Answerer::Remote(remote), CompactionStrategy::Summary) => {
                        let (most, sent) = (report::grouped(job.max_tokens()), report::tokens(job.tokens()));
                        format!(
                            "a summary by {} of at most {most} tokens; the request for it has {sent}",
                            remote.model
                        )
                    }
                    (_, CompactionStrategy::SlidingWindow) => "nothing".into(),
                    _ => "a digest, made without a model".into(),
                };
                self.say(format!(
                    "Compaction would archive {} messages, {first} to {last}. In their place: {by}. Nothing is deleted; /undo \
                     takes it back. Enter does it, Esc leaves it.",
                    job.messages_archived()
                ));
                self.preview = Some(job);
            }
            Ok(None) => self.say("There is nothing to compact yet."),
            Err(error) => self.fail(error.to_string()),
        }
    }

    /// The answer to a preview.
    pub fn decide(&mut self, yes: bool) {
        match self.preview.take() {
            Some(job) if yes => self.compact(job),
            Some(_) => self.say("Nothing was compacted."),
            None => {}
        }
    }

    fn compact(&mut self, job: CompactionRequest) {
        let remote = match &self.choice.answerer {
            Answerer::Remote(remote) if job.strategy() == CompactionStrategy::Summary => remote.summariser(),
            _ => {
                let done = self
                    .manager
                    .compactor()
                    .fall_back(&mut self.log, &job)
                    .map_err(|error| error.to_string());
                return self.compacted(done);
            }
        };
        self.started += 1;
        let (number, tasks, asked) = (self.started, self.tasks.clone(), job.clone());
        let task = self.tasks.runtime.spawn(async move {
            let summary = remote.summarise(&asked).await;
            tasks.send(Event::Summarised(number, summary.map_err(|error| error.to_string())));
        });
        self.say(format!("Summarising {} messages; the chat goes on.", job.messages_archived()));
        self.compacting = Some(Compacting { number, job, task: task.abort_handle(), answer: None });
    }

    pub(super) fn summarised(&mut self, number: u64, summary: Result<String, String>) {
        if let Some(compacting) = self.compacting.as_mut().filter(|compacting| compacting.number == number) {
            compacting.answer = Some(summary);
            self.take_summary();
        }
    }

    /// Swaps the archived messages for their summary, unless a reply is on its way.
    pub(super) fn take_summary(&mut self) {
        if !matches!(self.turn, Turn::Idle) {
            return;
        }
        let Some(compacting) = self.compacting.take_if(|compacting| compacting.answer.is_some()) else {
            return;
        };
        let (compactor, job) = (self.manager.compactor(), &compacting.job);
        let answer = compacting.answer.unwrap_or_else(|| Err("there is no answer".into()));
        let apply =
            |text: String| compactor.apply(&mut self.log, job, &text).map_err(|error| error.to_string());
        match answer.and_then(apply) {
            Ok(record) => self.compacted(Ok(record)),
            Err(why) => {
                let done = compactor.fall_back(&mut self.log, job).map_err(|error| error.to_string());
                self.fail(format!("There is no summary, so it is done without one: {why}"));
                self.compacted(done);
            }
        }
    }

    fn compacted(&mut self, done: Result<Compaction, String>) {
        match done {
            Ok(record) => {
                let (count, freed) = (record.messages_archived, report::grouped(record.freed()));
                self.say(format!(
                    "{count} messages are archived, {freed} tokens freed. /undo takes them back."
                ));
                self.changed();
            }
            Err(error) => {
                self.log.compaction_failed();
                self.fail(format!("Nothing was compacted: {error}"));
            }
        }
    }

    /// Stops a compaction; the conversation is as it was.
    pub(super) fn stop_compacting(&mut self) {
        if let Some(compacting) = self.compacting.take() {
            compacting.task.abort();
            self.say("The compaction was stopped; nothing changed.");
        }
    }
}
