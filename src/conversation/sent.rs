//! Sent prompts, and the reports of providers on them.

use super::{Conversation, Event, SentText, SentWith};
use crate::{
    error::Error,
    item::{ItemId, ItemKind, Section},
    message::Message,
    plan::{
        ContextPlan,
        anchor::{Anchor, Target},
    },
    usage::ReportedUsage,
};
use std::sync::Arc;

/// A provider's report on a sent prompt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastReport {
    /// The position of the reply.
    pub(crate) replied_at: u32,
    /// Input, caches and output, in the provider's tokens.
    pub(crate) context_size: u64,
    /// Tokens that the plan counted for documents and state.
    pub(crate) volatile_tokens: u64,
    /// Estimate of the active messages that the plan dropped, in tokens.
    pub(crate) dropped_tokens: u64,
    /// Tokens that the plan counted for the fixed part of the prompt.
    pub(crate) fixed_tokens: u64,
}

impl Conversation {
    /// Returns the documents and state that were sent with messages.
    pub(crate) fn sent_with(&self) -> &SentWith {
        &self.sent_with
    }

    /// Remembers the documents that a question was sent with, for a prompt that was not sent through
    /// [`Conversation::push_reply`]: they are retained with it (rule S10).
    /// [`crate::ContextWindowManager::sent_document`] returns a document as it is sent.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` if no message has this id.
    pub fn remember_documents(
        &mut self,
        question: impl Into<ItemId>,
        documents: impl IntoIterator<Item = SentText>,
    ) -> Result<(), Error> {
        let question = question.into();
        self.position(&question)?;
        let documents = documents.into_iter().collect();
        self.record(Event::SentWith { question: Some(question), documents, state: Vec::new() });
        Ok(())
    }

    /// Checks if a plan is the first to answer a question for which documents are remembered: then the
    /// documents that it sends replace them.
    pub(super) fn chooses_documents_anew(&self, plan: &ContextPlan) -> bool {
        let live = plan.carryover.live.as_ref().and_then(|id| self.position_of(id));
        live.is_some_and(|live| live + 1 == self.len() && !self.sent_with.documents(live).is_empty())
    }

    /// Returns the documents and state of a plan that are retained with the conversation's messages (rule
    /// S10).
    pub(super) fn sent_beside(plan: &ContextPlan) -> (Vec<SentText>, Vec<SentText>) {
        if !plan.carryover.documents_stay {
            return (Vec::new(), Vec::new());
        }
        let documents =
            plan.included.iter().filter(|row| row.kind.is_document() && row.section == Section::Rag);
        let documents = documents.map(|row| SentText::new(row.id.clone(), row.body.text()));
        let state = plan.included.iter().filter(|row| row.kind == ItemKind::State).filter_map(|row| {
            let new = plan.carryover.new_state.get(&row.id)?;
            Some(SentText::new(new.id.clone(), new.text.as_deref().unwrap_or(row.body.text())))
        });
        (documents.collect(), state.collect())
    }

    /// Returns the newest reports on prompts for this target that were counted with this tokenizer, at most
    /// `most` of them, the oldest first.
    pub(crate) fn reports(&self, target: &Target, tokenizer: &str, most: usize) -> Vec<ReportedUsage> {
        let newest = self.sent.iter().rev().take(most).map(|at| &self.events[*at].1);
        let of_target = newest.filter_map(|event| match event {
            Event::Sent { counted, tokenizer: with, anchor, usage, .. }
                if with == tokenizer && anchor.target.as_ref().is_some_and(|of| of.is(target)) =>
            {
                usage.map(|usage| ReportedUsage::new(*counted, usage))
            }
            _ => None,
        });
        let mut reports: Vec<ReportedUsage> = of_target.collect();
        reports.reverse();
        reports
    }

    /// Returns the newest report on a prompt for this target that is believed and newer than every compaction
    /// and rewind. A report without figures does not count: the one before it does.
    pub(crate) fn last_report(&self, target: &Target, tokenizer: &str, window: u64) -> Option<LastReport> {
        const LOOKED_AT: usize = 16;
        let newer = self.sent.iter().rev().take_while(|at| self.archived_at.is_none_or(|since| **at > since));
        let mut reports = newer.take(LOOKED_AT).filter_map(|at| match &self.events[*at] {
            (
                replied_at,
                Event::Sent {
                    counted,
                    volatile_tokens,
                    dropped_tokens,
                    fixed_tokens,
                    archives,
                    tokenizer: with,
                    anchor,
                    usage,
                },
            ) if with == tokenizer
                && *archives == self.archive_events
                && anchor.target.as_ref().is_some_and(|of| of.is(target)) =>
            {
                let usage = (*usage)?;
                let last = LastReport {
                    replied_at: *replied_at,
                    context_size: usage.context_size(),
                    volatile_tokens: *volatile_tokens,
                    dropped_tokens: *dropped_tokens,
                    fixed_tokens: *fixed_tokens,
                };
                Some((last, ReportedUsage::new(*counted, usage)))
            }
            _ => None,
        });
        let mut newest = reports.next();
        while let Some((last, report)) = newest {
            let before = reports.next();
            if report.is_believed(before.map(|(_, before)| before), window) {
                return Some(last);
            }
            newest = before;
        }
        None
    }

    /// Returns the prompt that a message is the reply to, if it is known.
    pub(crate) fn prompt_of(&self, reply: u32) -> Option<&Anchor> {
        let at = self.sent.partition_point(|at| self.events[*at].0 < reply);
        match &self.events[*self.sent.get(at)?] {
            (replied_at, Event::Sent { anchor, .. }) if *replied_at == reply => Some(anchor),
            _ => None,
        }
    }

    /// Returns the anchor of the last sent prompt (rule S5).
    #[must_use]
    pub fn anchor(&self) -> Option<&Anchor> {
        match &self.events[*self.sent.last()?].1 {
            Event::Sent { anchor, .. } => Some(anchor),
            _ => None,
        }
    }

    /// Returns the messages of the prompt that [`Conversation::anchor`] is of, by its rows, if they are
    /// known.
    pub(crate) fn sent_rows(&self) -> Option<&Arc<[Message]>> {
        let (event, rows) = self.sent_rows.as_ref()?;
        (self.sent.last() == Some(event)).then_some(rows)
    }
}
