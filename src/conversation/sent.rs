//! Sent prompts and the providers' reports on them.

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

/// A provider's report on one sent prompt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastReport {
    /// The position of the reply.
    pub(crate) replied_at: u32,
    /// Tokens of input, caches and output, as reported by the provider.
    pub(crate) context_size: u64,
    /// Tokens that the plan counted for documents and state.
    pub(crate) volatile_tokens: u64,
    /// Estimated tokens of the active messages that the plan dropped.
    pub(crate) dropped_tokens: u64,
    /// Tokens that the plan counted for the fixed part of the prompt.
    pub(crate) fixed_tokens: u64,
}

impl Conversation {
    /// Returns the documents and state entries that were sent with messages.
    pub(crate) fn sent_with(&self) -> &SentWith {
        &self.sent_with
    }

    /// Remembers the documents that were sent with a user message, for a prompt that did not go through
    /// [`Conversation::push_reply`]. They are retained with the message (rule S10). To get a document as it
    /// is sent, use [`crate::ContextWindowManager::sent_document`].
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

    /// Returns true if a plan is the first to answer a user message that has remembered documents. The
    /// documents of the plan then replace them.
    pub(super) fn chooses_documents_anew(&self, plan: &ContextPlan) -> bool {
        let live = plan.carryover.live.as_ref().and_then(|id| self.position_of(id));
        live.is_some_and(|live| live + 1 == self.len() && !self.sent_with.documents(live).is_empty())
    }

    /// Returns the documents and the state entries of a plan that are retained with the conversation's
    /// messages (rule S10). Both are empty if the configuration retains none.
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

    /// Returns at most `most` of the newest usage reports for this target and tokenizer, oldest first.
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

    /// Returns the newest plausible report for this target that is newer than every compaction, undo and
    /// rewind. Prompts without a usage report are skipped.
    pub(crate) fn last_report(&self, target: &Target, tokenizer: &str, window: u64) -> Option<LastReport> {
        // Bounds the search: a long series of implausible reports must not make planning scan the whole
        // log.
        const LOOKED_AT: usize = 16;
        // Reports before a compaction or rewind include tokens of archived messages.
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
            // Plausibility is judged against the report before it, so the iterator runs one report ahead.
            let before = reports.next();
            if report.is_believed(before.map(|(_, before)| before), window) {
                return Some(last);
            }
            newest = before;
        }
        None
    }

    /// Returns the anchor of the prompt that a message replies to, or `None` if it is unknown. Binary search,
    /// because positions of replies rise.
    pub(crate) fn prompt_of(&self, reply: u32) -> Option<&Anchor> {
        let at = self.sent.partition_point(|at| self.events[*at].0 < reply);
        match &self.events[*self.sent.get(at)?] {
            (replied_at, Event::Sent { anchor, .. }) if *replied_at == reply => Some(anchor),
            _ => None,
        }
    }

    /// Returns the anchor of the last sent prompt (sticky window, rule S5).
    #[must_use]
    pub fn anchor(&self) -> Option<&Anchor> {
        match &self.events[*self.sent.last()?].1 {
            Event::Sent { anchor, .. } => Some(anchor),
            _ => None,
        }
    }

    /// Returns the messages of the last sent prompt by its rows, or `None` if they are unknown or older than
    /// [`Conversation::anchor`].
    pub(crate) fn sent_rows(&self) -> Option<&Arc<[Message]>> {
        let (event, rows) = self.sent_rows.as_ref()?;
        (self.sent.last() == Some(event)).then_some(rows)
    }
}
