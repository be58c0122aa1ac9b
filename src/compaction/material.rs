//! What a summary is made from (rule C3): what is active up to the boundary, in the order of the prompt.

use super::{digest, retention::RetentionBoundary};
use crate::{
    conversation::{ActiveEntry, SentText},
    error::{Error, Repr},
    message::Message,
    plan::anchor::Sticky,
    planner::{expiry::Eligibility, manager::ContextWindowManager, request::PlanRequest},
};

/// What the request is made of, in the order of the prompt.
#[derive(Debug, Clone, Default)]
pub(super) struct Material {
    /// The fixed part of the prompt: system texts, focus hint, notes.
    pub(super) system: Vec<Message>,
    pub(super) notes: Vec<Message>,
    pub(super) pieces: Vec<Piece>,
}

/// A message of the prompt, and what it is to the summary.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) message: Message,
    /// The documents and the state that stand before it (rule S10).
    pub(super) documents: Vec<SentText>,
    pub(super) state: Vec<SentText>,
    pub(super) is: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// The summary replaces it.
    Archived,
    /// It stays: the question before the summary, or what a pin keeps.
    Stays,
    /// An earlier summary, which is folded in.
    Summary(String),
}

impl Material {
    /// What is active up to the boundary; what has expired or can never be sent is left out.
    pub(super) fn of(
        manager: &ContextWindowManager,
        request: &PlanRequest<'_>,
        kept: RetentionBoundary,
    ) -> Result<Self, Error> {
        let log = request.log;
        let candidates = manager.candidates(request, Sticky::default())?;
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
                ActiveEntry::Summary(record) => {
                    let place = log.archive_index().place_of(record.number);
                    if place <= from && kept.from.is_some() || place > first {
                        continue;
                    }
                    let text = record.summary.clone().unwrap_or_default();
                    let message = candidates.summary_message(record.number);
                    Piece { message, documents: Vec::new(), state: Vec::new(), is: Kind::Summary(text) }
                }
                ActiveEntry::Message { id, .. } => {
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
                    let (documents, state) = candidates.standing_before(position);
                    Piece { message, documents, state, is: if stays { Kind::Stays } else { Kind::Archived } }
                }
            };
            material.pieces.push(piece);
        }
        Ok(material)
    }
}

impl Piece {
    /// The text of an earlier summary.
    pub(super) fn summary(&self) -> Option<&str> {
        match &self.is {
            Kind::Summary(text) => Some(text),
            _ => None,
        }
    }

    /// The piece as lines of a transcript.
    pub(super) fn lines(&self) -> Vec<String> {
        match &self.is {
            Kind::Summary(text) => vec![format!("Earlier summary: {text}")],
            _ => digest::lines(&self.message),
        }
    }
}
