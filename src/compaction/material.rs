//! The material of a summary (rule C3): the active messages up to the boundary, in the order of the prompt.

use super::{
    digest::{self, Earlier, Line},
    retention::RetentionBoundary,
};
use crate::{
    conversation::{Compaction, CompactionKind, Conversation, HistoryRow, SentText},
    error::{Error, Repr},
    message::Message,
    plan::anchor::Sticky,
    planner::{
        eligibility::Eligibility, manager::ContextWindowManager, replan::Replan, request::PlanRequest,
    },
};
use std::collections::BTreeMap;

/// The parts of the request, in the order of the prompt.
#[derive(Debug, Clone, Default)]
pub(super) struct Material {
    /// The fixed part of the prompt: system texts, focus hint, notes.
    pub(super) system: Vec<Message>,
    pub(super) notes: Vec<Message>,
    pub(super) pieces: Vec<Piece>,
}

/// A message of the prompt, and its part in the summary.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) message: Message,
    /// The documents and the state right before it (rule S10).
    pub(super) documents: Vec<SentText>,
    pub(super) state: Vec<SentText>,
    pub(super) is: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// The summary replaces it.
    Archived,
    /// It stays: the question before the summary, or a message that a pin keeps.
    Stays,
    /// An earlier summary, which is folded in.
    Summary(Box<EarlierSummary>),
}

/// An earlier summary: its record, and the written summaries that it begins with if it is a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EarlierSummary {
    pub(super) record: Compaction,
    carried: Vec<String>,
}

impl EarlierSummary {
    fn new(log: &Conversation, record: &Compaction) -> Self {
        let carried = if is_digest(record) { carried_by(log, record.number) } else { Vec::new() };
        Self { record: record.clone(), carried }
    }

    /// Returns the text, which may be blank if the host's state is all there is.
    pub(super) fn text(&self) -> &str {
        self.record.summary.as_deref().unwrap_or_default()
    }
}

/// Checks if no model wrote the text of a summary: a digest, also one beside a summary of a provider that
/// does not show its text.
fn is_digest(record: &Compaction) -> bool {
    let is_shown = record.provider_summary.as_ref().is_none_or(|made| made.text().is_some());
    record.kind == CompactionKind::Digest || !is_shown
}

/// Returns the written summaries that a digest begins with: those that it folded, and those of the digests
/// that it folded.
fn carried_by(log: &Conversation, number: u32) -> Vec<String> {
    let records: BTreeMap<u32, &Compaction> =
        log.compactions().map(|record| (record.number, record)).collect();
    let folded_by = |number: u32| {
        let folded = log.archive_index().folded_by(number).into_iter().rev();
        folded.filter_map(|number| records.get(&number).copied()).collect::<Vec<_>>()
    };
    // The next one last. A chain of digests may be as long as a conversation, so that nothing recurs here.
    let mut open = folded_by(number);
    let mut carried = Vec::new();
    while let Some(record) = open.pop() {
        if is_digest(record) {
            open.extend(folded_by(record.number));
        } else {
            carried.extend(record.summary.clone());
        }
    }
    carried
}

impl Material {
    /// Collects the active messages up to the boundary. Expired messages, and those that can never be sent,
    /// are left out.
    pub(super) fn of(
        manager: &ContextWindowManager,
        request: &PlanRequest<'_>,
        kept: RetentionBoundary,
    ) -> Result<Self, Error> {
        let log = request.log;
        let candidates = manager.candidates(request, Sticky::default(), &Replan::default())?;
        let leading = log.turns().leading();
        let from = kept.from.unwrap_or(leading);
        let first = kept.first.unwrap_or_else(|| log.turns().messages());
        let leads = (0..leading).map(|position| log.message(position).clone());
        let mut material = Self {
            system: log.system().iter().cloned().chain(leads).filter(|text| !text.is_empty()).collect(),
            notes: log.note_entries().iter().map(|(_, note)| note.message.clone()).collect(),
            pieces: Vec::new(),
        };
        let apart = log.apart(kept.head);
        for part in log.active() {
            let piece = match part {
                HistoryRow::Compaction(record) => {
                    let place = log.archive_index().place_of(record.number);
                    if place <= from && kept.from.is_some() || place > first {
                        continue;
                    }
                    let message = candidates.summary_message(record.number);
                    let is = Kind::Summary(Box::new(EarlierSummary::new(log, record)));
                    Piece { message, documents: Vec::new(), state: Vec::new(), is }
                }
                HistoryRow::Message { id, .. } => {
                    let Some(position) = log.position_of(&id).filter(|position| *position >= leading) else {
                        continue;
                    };
                    let archived = log.archive_index().archived(position).is_some();
                    let inside = (from..first).contains(&position);
                    if !(inside || archived && kept.from.is_none()) {
                        continue;
                    }
                    let stays = archived || apart.contains(&position);
                    let dead = match candidates.candidate_of(position).filter(|_| !stays) {
                        Some(id) => matches!(candidates.eligibility(id)?, Eligibility::Out(_)),
                        None => false,
                    };
                    if dead {
                        continue;
                    }
                    if !log.message(position).is_loaded() {
                        return Err(Error::new(Repr::NotLoaded));
                    }
                    let message = candidates.said(position).into_owned();
                    let (documents, state) = candidates.retained().texts_before(position);
                    Piece { message, documents, state, is: if stays { Kind::Stays } else { Kind::Archived } }
                }
                // The active part has no marks of the history.
                HistoryRow::Rewound(_) | HistoryRow::CompactionUndone(_) => continue,
            };
            material.pieces.push(piece);
        }
        Ok(material)
    }
}

impl Piece {
    /// Returns the earlier summary, if it has any text.
    pub(super) fn summary(&self) -> Option<&EarlierSummary> {
        match &self.is {
            Kind::Summary(summary) if !summary.text().trim().is_empty() => Some(summary),
            _ => None,
        }
    }

    /// Checks if a provider made it in place of messages.
    pub(super) fn is_by_provider(&self) -> bool {
        matches!(&self.is, Kind::Summary(summary) if summary.record.provider_summary.is_some())
    }

    /// Returns the piece as lines of a transcript.
    pub(super) fn lines(&self) -> Vec<Line> {
        let line = |text| Line { text, is_summary: false };
        match &self.is {
            Kind::Summary(_) => {
                let summary = self.summary().into_iter();
                let text = |summary: &EarlierSummary| format!("Earlier summary: {}", summary.text());
                summary.map(|summary| Line { text: text(summary), is_summary: true }).collect()
            }
            _ => digest::lines(&self.message).into_iter().map(line).collect(),
        }
    }
}

impl Material {
    /// Returns the texts of the earlier summaries as a digest takes them.
    pub(super) fn earlier(&self) -> Earlier {
        let mut earlier = Earlier::default();
        for summary in self.pieces.iter().filter_map(Piece::summary) {
            if is_digest(&summary.record) {
                earlier.push_digest(summary.text(), summary.carried.clone());
            } else {
                earlier.written.push(summary.text().to_owned());
            }
        }
        earlier
    }

    /// Checks if an earlier summary is folded in.
    pub(super) fn folds_a_summary(&self) -> bool {
        self.pieces.iter().any(|piece| piece.summary().is_some())
    }
}
