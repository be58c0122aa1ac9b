//! Compaction during the chat: a summary is requested while the user continues, and older messages are
//! archived once it has arrived. Until then, and if it fails, the conversation is unchanged.

use super::{Chat, Turn};
use crate::answerer::{Answerer, remote::Remote};
use crate::event::Event;
use context_window::compaction::{Compaction, CompactionRequest, CompactionState};
use context_window::config::CompactionStrategy;
use context_window::{Error, ItemId};
use context_window_report as report;

/// A running compaction.
pub(super) struct Compacting {
    number: u64,
    job: CompactionRequest,
    task: tokio::task::AbortHandle,
    /// The result that arrived during a reply. It is applied after the reply, which was planned without it.
    answer: Option<Result<String, String>>,
    /// True if the user reviews the summary before it is used.
    is_reviewed: bool,
}

/// A question about a compaction that waits for the user's answer.
pub enum Preview {
    /// The messages that it would archive.
    Job(CompactionRequest),
    /// The summary that would replace them.
    Summary(CompactionRequest, String),
}

impl Chat {
    /// Checks the fill level of the window after a reply, and starts a compaction that is due.
    pub(super) fn watch(&mut self) {
        let usage = match self.manager.usage(&self.request()) {
            Ok(usage) => usage,
            Err(error) => return self.fail(error.to_string()),
        };
        let events = self.log.observe_usage(usage);
        self.tell(events);
        if self.compacting.is_some() {
            return;
        }
        match self.manager.compactor().due(&self.request()) {
            Ok(Some(job)) => {
                self.say("The window is nearly full, so older messages are compacted.");
                self.compact(job, false);
            }
            Ok(None) => {}
            Err(error) => self.fail(error.to_string()),
        }
    }

    /// Shows the effect of `/compact`, which an answer of yes then applies.
    pub(super) fn preview_compaction(&mut self) -> String {
        if self.compacting.is_some() {
            return "A compaction is running.".into();
        }
        let job = match self.manager.compactor().now(&self.request()) {
            Ok(Some(job)) if job.archived_ids().len() > 1 => job,
            Ok(_) => {
                let why = match self.manager.compactor().state(&self.request()) {
                    Ok(CompactionState::Waiting(why)) => why.text(),
                    _ => "there is too little to compact yet",
                };
                return format!("Nothing was compacted: {why}.");
            }
            Err(error) => return error.to_string(),
        };
        let by = self.maker(&job).map(|remote| format!("a summary by {}", remote.model));
        let by = by.unwrap_or_else(|| "a digest, made without a model".into());
        let (count, ids) = (job.messages_archived(), job.archived_ids());
        let said = format!(
            "Compaction would archive {count} messages, {} to {}. In their place: {by}. Nothing is deleted; /undo reverts \
             it. Enter applies it, Esc cancels.",
            ids[0],
            ids[ids.len() - 1]
        );
        self.preview = Some(Preview::Job(job));
        said
    }

    /// Returns the model for the summary of a job, or `None` if the job needs no model.
    fn maker(&self, job: &CompactionRequest) -> Option<&Remote> {
        match &self.choice.answerer {
            Answerer::Remote(remote) if job.strategy() == CompactionStrategy::Summary => Some(remote),
            _ => None,
        }
    }

    /// Handles the answer to a preview.
    pub fn decide(&mut self, yes: bool) {
        match self.preview.take() {
            Some(Preview::Job(job)) if yes => self.compact(job, true),
            Some(Preview::Summary(job, summary)) if yes => self.use_summary(&job, Ok(summary)),
            Some(_) => self.say("Nothing was compacted."),
            None => {}
        }
    }

    fn compact(&mut self, job: CompactionRequest, is_reviewed: bool) {
        let Some(summariser) = self.maker(&job).map(Remote::summariser) else {
            let done = self.manager.compactor().compact_without_model(&mut self.log, &job);
            return self.compacted(done);
        };
        self.started += 1;
        let (number, tasks, asked) = (self.started, self.tasks.clone(), job.clone());
        let task = self.tasks.runtime.spawn(async move {
            let summary = summariser.summarise(&asked).await;
            tasks.send(Event::Summarised(number, summary.map_err(|error| error.to_string())));
        });
        self.say(format!("Summarising {} messages; you can continue the chat.", job.messages_archived()));
        let task = task.abort_handle();
        self.compacting = Some(Compacting { number, job, task, answer: None, is_reviewed });
    }

    pub(super) fn summarised(&mut self, number: u64, summary: Result<String, String>) {
        if let Some(compacting) = self.compacting.as_mut().filter(|compacting| compacting.number == number) {
            compacting.answer = Some(summary);
            self.take_summary();
        }
    }

    /// Replaces the archived messages by their summary, unless a reply is running. Shows a summary that the
    /// user reviews first, with the rules that it quotes.
    pub(super) fn take_summary(&mut self) {
        if !matches!(self.turn, Turn::Idle) {
            return;
        }
        let Some(compacting) = self.compacting.take_if(|compacting| compacting.answer.is_some()) else {
            return;
        };
        let Some(answer) = compacting.answer else { return };
        match answer {
            Ok(summary) if compacting.is_reviewed => {
                self.say(format!("The summary:\n{summary}\nEnter uses it, Esc discards it."));
                self.preview = Some(Preview::Summary(compacting.job, summary));
            }
            answer => self.use_summary(&compacting.job, answer),
        }
    }

    /// Replaces the archived messages by a summary. Compacts without a model if there is none.
    fn use_summary(&mut self, job: &CompactionRequest, answer: Result<String, String>) {
        let compactor = self.manager.compactor();
        let applied = answer.and_then(|text| {
            compactor.apply_summary(&mut self.log, job, &text).map_err(|error| error.to_string())
        });
        let done = match applied {
            Ok(record) => Ok(record),
            Err(why) => {
                let done = compactor.compact_without_model(&mut self.log, job);
                self.fail(format!("There is no summary, so the compaction is done without a model: {why}"));
                done
            }
        };
        self.compacted(done);
    }

    fn compacted(&mut self, done: Result<Compaction, Error>) {
        match done {
            Ok(record) => {
                let (count, freed) = (record.messages_archived, report::grouped(record.freed()));
                self.say(format!("{count} messages are archived, {freed} tokens freed. /undo reverts this."));
                if !record.left_out.is_empty() {
                    let ids: Vec<&str> = record.left_out.iter().map(ItemId::as_str).collect();
                    self.say(format!("The prompt has no room for {}.", ids.join(", ")));
                }
            }
            Err(error) => self.fail(format!("Nothing was compacted: {error}")),
        }
        self.changed();
    }

    /// Stops a compaction and leaves the conversation unchanged.
    pub(super) fn stop_compacting(&mut self) {
        if let Some(compacting) = self.compacting.take() {
            compacting.task.abort();
            self.say("The compaction was stopped; nothing changed.");
        }
    }
}
