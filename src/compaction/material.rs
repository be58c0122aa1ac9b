//! The material of a summary (rule C3): the active messages up to the boundary, in prompt order.

use super::{
    digest::{self, Earlier, Line},
    retention::RetentionBoundary,
};
use crate::{
    conversation::{Compaction, CompactionKind, Conversation, HistoryRow, SentText},
    error::{Error, Repr},
    message::Message,
    planner::{
        eligibility::Eligibility, manager::ContextWindowManager, replan::Replan, request::PlanRequest,
    },
};
use std::collections::BTreeMap;

/// The parts of a summary request, in prompt order.
#[derive(Debug, Clone, Default)]
pub(super) struct Material {
    /// System texts and leading system messages.
    pub(super) system: Vec<Message>,
    /// Pinned notes.
    pub(super) notes: Vec<Message>,
    /// The messages and earlier summaries up to the boundary.
    pub(super) pieces: Vec<Piece>,
}

/// A message of the prompt with its role in the summary.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// The message as it is sent.
    pub(super) message: Message,
    /// The message as it is in the conversation.
    pub(super) logged: Message,
    /// Documents that were sent right before it and are retained (rule S10).
    pub(super) documents: Vec<SentText>,
    /// State entries that were sent right before it and are retained.
    pub(super) state: Vec<SentText>,
    pub(super) is: Kind,
}

/// The role of a message in a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// The summary replaces the message.
    Archived,
    /// The message stays in the prompt: the user message before the summary, or a message kept by a pin.
    Stays,
    /// An earlier summary, which the new summary replaces.
    Summary(Box<EarlierSummary>),
}

/// An earlier summary: its record and, if it is a digest, the written summaries at its beginning.
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

    /// Returns the text. It is blank if the record has only state entries.
    pub(super) fn text(&self) -> &str {
        self.record.summary.as_deref().unwrap_or_default()
    }
}

/// Returns true if no model wrote the text of a summary. That is a digest, including one stored with a
/// provider's summary without visible text.
fn is_digest(record: &Compaction) -> bool {
    let is_shown = record.provider_summary.as_ref().is_none_or(|made| made.text().is_some());
    record.kind == CompactionKind::Digest || !is_shown
}

/// Returns the written summaries at the beginning of a digest: those that it replaced itself, and those of
/// the digests that it replaced.
fn carried_by(log: &Conversation, number: u32) -> Vec<String> {
    let records: BTreeMap<u32, &Compaction> =
        log.compactions().map(|record| (record.number, record)).collect();
    let folded_by = |number: u32| {
        let folded = log.archive_index().folded_by(number).into_iter().rev();
        folded.filter_map(|number| records.get(&number).copied()).collect::<Vec<_>>()
    };
    // A stack, with the next record last. A chain of digests may be as long as the conversation, so recursion
    // could overflow.
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
    /// Collects the active messages up to the boundary. Leaves out expired messages and messages that can
    /// never be sent. Fails with `ErrorKind::NotLoaded` if the text of a message is not loaded.
    pub(super) fn from_request(
        manager: &ContextWindowManager,
        request: &PlanRequest<'_>,
        kept: RetentionBoundary,
    ) -> Result<Self, Error> {
        let log = request.log;
        let candidates =
            manager.candidates(request, ContextWindowManager::sent_forms(request), &Replan::default())?;
        let leading = log.turns().leading();
        let from = kept.from.unwrap_or(leading);
        let first = kept.first.unwrap_or_else(|| log.turns().messages());
        let leads = (0..leading).map(|position| log.message(position).clone());
        let mut material = Self {
            system: log.system().iter().cloned().chain(leads).filter(|text| !text.is_empty()).collect(),
            notes: candidates.notes_to_summarise(),
            pieces: Vec::new(),
        };
        let kept_members = log.kept_with_user_message(kept.user_message);
        for part in log.active() {
            let piece = match part {
                HistoryRow::Compaction(record) => {
                    // A summary outside of the range is not replaced, so it is not part of the material.
                    let place = log.archive_index().place_of(record.number);
                    if place <= from && kept.from.is_some() || place > first {
                        continue;
                    }
                    let message = candidates.summary_message(record.number);
                    let is = Kind::Summary(Box::new(EarlierSummary::new(log, record)));
                    Piece { logged: message.clone(), message, documents: Vec::new(), state: Vec::new(), is }
                }
                HistoryRow::Message { id, .. } => {
                    let Some(position) = log.position_of(&id).filter(|position| *position >= leading) else {
                        continue;
                    };
                    // An archived message in the active part is one that a pin keeps; it comes after its
                    // summary.
                    let archived = log.archive_index().archived(position).is_some();
                    let inside = (from..first).contains(&position);
                    if !(inside || archived && kept.from.is_none()) {
                        continue;
                    }
                    let stays = archived || kept_members.contains(&position);
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
                    let message = candidates.full_message(position).into_owned();
                    let (documents, state) = candidates.retained().texts_before(position);
                    let is = if stays { Kind::Stays } else { Kind::Archived };
                    Piece { message, logged: log.message(position).clone(), documents, state, is }
                }
                // The active part contains no rewinds or undos.
                HistoryRow::Rewound(_) | HistoryRow::CompactionUndone(_) => continue,
            };
            material.pieces.push(piece);
        }
        Ok(material)
    }
}

impl Piece {
    /// Returns the earlier summary if its text is not blank.
    pub(super) fn summary(&self) -> Option<&EarlierSummary> {
        match &self.is {
            Kind::Summary(summary) if !summary.text().trim().is_empty() => Some(summary),
            _ => None,
        }
    }

    /// Returns true if the piece is a summary made by a provider.
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
    /// Returns the texts of the earlier summaries in the form that a digest needs.
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

    /// Returns true if the summary replaces an earlier summary with text.
    pub(super) fn folds_summary(&self) -> bool {
        self.pieces.iter().any(|piece| piece.summary().is_some())
    }
}
