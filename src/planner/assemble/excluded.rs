//! Rows of excluded items.
//!
//! - Input: the candidates, and the selection with its reasons.
//! - Output: one row for each run of neighbouring messages with one reason, and for each other item.
//! - Rules: O2, H3, N4.
//!
//! Items that the walk did not examine are not examined here either.

use super::included::source_of;
use crate::{
    conversation::Note,
    error::Error,
    item::{ItemId, ItemKind, Priority, Section, Source},
    message::Message,
    plan::{
        ExcludedItem,
        reason::{ExcludedReason, LimitedBy, PolicyRule},
    },
    planner::{
        candidates::{CandidateId, Candidates},
        select::Selection,
    },
    provider::{
        conform::TurnPosition,
        meter::{self, Meter},
    },
    rag::LabelledItem,
    text::hash::text_hash,
    tokens::{Certainty, TokenCount},
};
use std::{borrow::Cow, collections::BTreeMap, ops::Range};

/// Returns the rows of the excluded items.
///
/// # Errors
///
/// `ErrorKind::Count` if the request asks for exact counts of excluded items and the counter fails.
pub(super) fn rows(
    candidates: &Candidates<'_>,
    meter: &Meter,
    chosen: &Selection,
) -> Result<Vec<ExcludedItem>, Error> {
    let mut rows = empty_texts(candidates);
    rows.extend(notes(candidates, meter, chosen));
    rows.extend(messages(candidates, meter, chosen));
    rows.extend(documents(candidates, meter, chosen));
    if candidates.request().counts_excluded {
        let documents = candidates
            .index()
            .documents()
            .filter(|(rank, document)| document.out.is_some() || chosen.reasons.of_document(*rank).is_some());
        let mut documents =
            documents.map(|(rank, document)| candidates.document_in(rank, document.shortest()));
        // Rows of notes come in the order of the notes, so one pass over the notes is enough.
        let mut notes = candidates.notes().iter().map(|(_, note)| note);
        for row in &mut rows {
            let document = if row.section == Section::Rag { documents.next() } else { None };
            let is_note = matches!(row.kind, ItemKind::Note | ItemKind::Rule);
            let note = if is_note { notes.find(|note| note.item.id == row.id) } else { None };
            row.token_estimate = exactly(row, document, note, candidates, meter)?;
        }
    }
    Ok(rows)
}

/// Counts the items of a row in full, each as a message of its own (rule N4).
fn exactly(
    row: &ExcludedItem,
    document: Option<LabelledItem<'_>>,
    note: Option<&Note>,
    candidates: &Candidates<'_>,
    meter: &Meter,
) -> Result<TokenCount, Error> {
    if let Some(item) = document {
        return Ok(meter.counted(meter.document(item, text_hash(item.sent_text()), u64::MAX)?.in_full()));
    }
    let log = candidates.log();
    let first = log.position_of(&row.id);
    let messages: Vec<(Cow<'_, Message>, TurnPosition)> = match (note, first) {
        (Some(note), _) => vec![(Cow::Borrowed(&note.message), TurnPosition::Preamble)],
        (None, Some(first)) => {
            let run = first..first + u32::try_from(row.count).unwrap_or(u32::MAX);
            run.map(|position| (candidates.full_message(position), candidates.turn_position_of(position)))
                .collect()
        }
        // A system text or state entry without content has no tokens to count.
        (None, None) => return Ok(row.token_estimate),
    };
    let mut sum = meter.counted(0);
    for (message, turn_position) in messages {
        let n = meter.message(&message, turn_position, u64::MAX)?.in_full();
        let TokenCount { tokens: n, certainty } = meter.counted_message(&message, n);
        sum = TokenCount { tokens: sum.tokens.saturating_add(n), certainty: sum.certainty.max(certainty) };
    }
    Ok(sum)
}

/// Returns the rows of system texts and state entries without content (rule H3).
fn empty_texts(candidates: &Candidates<'_>) -> Vec<ExcludedItem> {
    let row = |(id, source): (ItemId, Source)| ExcludedItem {
        id,
        last_id: None,
        count: 1,
        kind: if source == Source::State { ItemKind::State } else { ItemKind::SystemText },
        source: Some(source),
        section: Section::SystemPinned,
        priority: Some(Priority::Normal),
        ttl: None,
        reason: Candidates::empty_message(),
        token_estimate: TokenCount { tokens: 0, certainty: Certainty::Exact },
        ranks: Box::default(),
    };
    candidates.empty_texts().map(row).collect()
}

/// Returns the rows of excluded notes and rules of the user.
fn notes(candidates: &Candidates<'_>, meter: &Meter, chosen: &Selection) -> Vec<ExcludedItem> {
    let notes = candidates.notes().iter();
    let out = notes.filter_map(|(at, note)| {
        let candidate = CandidateId::Note(at);
        let reason = candidates
            .index()
            .ineligible_pins
            .get(&candidate)
            .or_else(|| chosen.reasons.pins.get(&candidate))?;
        let bound = meter.bound(meter::text_bytes(&note.message), 1);
        Some(ExcludedItem {
            id: note.item.id.clone(),
            last_id: None,
            count: 1,
            kind: if note.rule.is_some() { ItemKind::Rule } else { ItemKind::Note },
            source: Some(if note.rule.is_some() { Source::Rule } else { Source::Pinned }),
            section: Section::SystemPinned,
            priority: Some(note.item.priority),
            ttl: candidates.ttl_of(&note.item.id),
            reason: reason.clone(),
            token_estimate: tokens(meter, reason, bound),
            ranks: Box::default(),
        })
    });
    out.collect()
}

/// Returns the rows of excluded documents.
fn documents(candidates: &Candidates<'_>, meter: &Meter, chosen: &Selection) -> Vec<ExcludedItem> {
    let out = candidates.index().documents().filter_map(|(rank, document)| {
        let reason = document.out.as_ref().or_else(|| chosen.reasons.of_document(rank))?;
        // Even its shortest form is not included.
        let item = candidates.document_in(rank, document.shortest());
        let bound = meter.bound(meter.document_bytes(item), 0);
        Some(ExcludedItem {
            id: item.id.clone(),
            last_id: None,
            count: 1,
            kind: ItemKind::Document,
            source: Some(Source::Rag),
            section: Section::Rag,
            priority: Some(Priority::Normal),
            ttl: item.ttl,
            reason: reason.clone(),
            token_estimate: tokens(meter, reason, bound),
            ranks: candidates.list_ranks(rank),
        })
    });
    out.collect()
}

/// Returns the tokens of a row: one more than its offer if it was compared with one, else its bound.
fn tokens(meter: &Meter, reason: &ExcludedReason, bound: TokenCount) -> TokenCount {
    let weighed_against = match reason {
        ExcludedReason::Budget {
            room,
            limited_by:
                LimitedBy::Size
                | LimitedBy::Cap
                | LimitedBy::PinsLimit
                | LimitedBy::RulesLimit
                | LimitedBy::QuestionLimit
                | LimitedBy::RecallShare,
        } => Some(*room),
        ExcludedReason::Policy(PolicyRule::MaxItemTokens { limit }) => Some(*limit),
        ExcludedReason::Policy(
            PolicyRule::MaxSourceTokens { used, limit } | PolicyRule::MaxListTokens { used, limit, .. },
        ) => Some(limit.saturating_sub(*used)),
        _ => None,
    };
    weighed_against
        .map_or(bound, |room| TokenCount { tokens: room.saturating_add(1), certainty: meter.at_least() })
}

/// Returns the rows of excluded messages, in log order.
fn messages(candidates: &Candidates<'_>, meter: &Meter, chosen: &Selection) -> Vec<ExcludedItem> {
    let dropped =
        chosen.reasons.pins.keys().map(|candidate| (*candidate, candidates.members(*candidate).len()));
    let mut runs = Runs { candidates, meter, sizes: dropped.collect(), rows: Vec::new() };
    for position in candidates.empty_leading() {
        let reason = Candidates::empty_message();
        runs.add(position..position + 1, &reason, Section::SystemPinned, true);
    }
    let log = candidates.log().turns();
    let mut next = log.leading();
    let (mut examined, mut out) = (kept(candidates, chosen), left_out(candidates, chosen));
    // An included message has no excluded row, even if a reason was recorded before it was included.
    for position in &examined {
        out.remove(position);
    }
    examined.extend(out.keys());
    #[expect(clippy::stable_sort_primitive, reason = "the stable sort makes use of runs that are in order")]
    examined.sort();
    examined.dedup();
    // A run between two examined messages is one row: the effort does not depend on its length.
    for position in examined {
        runs.unexamined(next..position, chosen);
        if let Some((reason, section)) = out.get(&position) {
            runs.add(position..position + 1, reason, *section, true);
        }
        next = position + 1;
    }
    runs.unexamined(next..log.messages(), chosen);
    runs.finish(chosen)
}

/// Returns the positions of the included messages. The newest was included first, so the reverse is mostly in
/// order.
fn kept(candidates: &Candidates<'_>, chosen: &Selection) -> Vec<u32> {
    let mut positions = Vec::with_capacity(2 * chosen.included.len());
    for candidate in chosen.included.ids().rev() {
        positions.extend(candidates.members(candidate));
    }
    positions
}

/// Returns the messages that were examined and excluded, by position, with reason and section. The reason of
/// an excluded pin replaces an earlier one.
fn left_out(candidates: &Candidates<'_>, chosen: &Selection) -> BTreeMap<u32, (ExcludedReason, Section)> {
    let mut out = BTreeMap::new();
    let mut file = |candidate: CandidateId, reason: &ExcludedReason, section: Section| {
        for position in candidates.members(candidate) {
            out.insert(position, (reason.clone(), section));
        }
    };
    for (candidate, reason) in &chosen.reasons.ineligible {
        if !is_moved(candidates, *candidate) {
            file(*candidate, reason, Section::Conversation);
        }
    }
    let never = &candidates.index().ineligible_pins;
    for (candidate, reason) in chosen.reasons.pins.iter().chain(&chosen.reasons.fallen_pins).chain(never) {
        file(*candidate, reason, Section::SystemPinned);
    }
    out
}

/// Checks if the only message of an exchange has become part of another exchange.
fn is_moved(candidates: &Candidates<'_>, candidate: CandidateId) -> bool {
    matches!(candidate, CandidateId::Exchange(at) if candidates.log().turns().is_moved(at))
}

/// Rows of excluded messages while they are collected.
struct Runs<'a, 'b> {
    candidates: &'a Candidates<'b>,
    meter: &'a Meter,
    /// The number of messages of each dropped pin.
    sizes: BTreeMap<CandidateId, usize>,
    rows: Vec<(Range<u32>, ExcludedReason, Section, bool)>,
}

impl Runs<'_, '_> {
    /// Adds messages that the walk did not examine. Those that a compaction archived have a reason of their
    /// own.
    fn unexamined(&mut self, range: Range<u32>, chosen: &Selection) {
        let candidates = self.candidates;
        let mut next = range.start;
        for (archived, by) in candidates.log().archive_index().archived_in(range.clone()) {
            self.before_window(next..archived.start, chosen);
            next = archived.end;
            self.add(archived, &by.into(), Section::Conversation, false);
        }
        self.before_window(next..range.end, chosen);
    }

    /// Adds messages older than the point at which the walk stopped.
    fn before_window(&mut self, range: Range<u32>, chosen: &Selection) {
        if let (false, Some(reason)) = (range.is_empty(), &chosen.reasons.before_window) {
            self.add(range, reason, Section::Conversation, false);
        }
    }

    /// Appends the range to the last row if that row ends here and has the same reason and section. Adds a
    /// row otherwise.
    fn add(&mut self, range: Range<u32>, reason: &ExcludedReason, section: Section, seen: bool) {
        match self.rows.last_mut() {
            // A run that was not examined has a reason of its own, so no row mixes examined and unexamined
            // messages.
            Some((last, known, of, _)) if last.end == range.start && known == reason && *of == section => {
                last.end = range.end;
            }
            _ => self.rows.push((range, reason.clone(), section, seen)),
        }
    }

    /// Converts the collected runs to rows: one for each run, or one for each message if the request wants
    /// that.
    fn finish(self, chosen: &Selection) -> Vec<ExcludedItem> {
        let row = |(range, reason, section, seen)| self.row(&range, reason, section, seen, chosen);
        let rows = self.rows.iter().cloned();
        if !self.candidates.request().lists_excluded {
            return rows.map(row).collect();
        }
        let alone = |(range, reason, section, seen): (Range<u32>, ExcludedReason, Section, bool)| {
            range.map(move |at| (at..at + 1, reason.clone(), section, seen))
        };
        rows.flat_map(alone).map(row).collect()
    }

    /// Builds the row of a run. `seen` is true if its messages were examined.
    fn row(
        &self,
        range: &Range<u32>,
        reason: ExcludedReason,
        section: Section,
        seen: bool,
        chosen: &Selection,
    ) -> ExcludedItem {
        let log = self.candidates.log();
        let count = range.end - range.start;
        let last = range.end - 1;
        // Fields of an unexamined run are not read, because that would cost time for each message.
        let examined = seen || count == 1;
        let bound = self.meter.bound(self.candidates.bytes_sent(range), u64::from(count));
        ExcludedItem {
            id: log.message_id(range.start),
            last_id: (count > 1).then(|| log.message_id(last)),
            count: u64::from(count),
            kind: if range.start < log.turns().leading() { ItemKind::SystemText } else { ItemKind::Message },
            source: same(range, examined, |at| source_of(self.candidates.role_of(at))),
            section,
            priority: same(range, examined, |at| log.pin_priorities().get(&at).copied().unwrap_or_default()),
            ttl: same(range, examined, |at| log.message_lifetime(at).map(|lifetime| lifetime.left)).flatten(),
            token_estimate: if self.is_weighed_alone(range, chosen) {
                tokens(self.meter, &reason, bound)
            } else {
                bound
            },
            ranks: Box::default(),
            reason,
        }
    }

    /// Checks if the row is one dropped pin that was counted by itself, without a user message that it
    /// brings.
    fn is_weighed_alone(&self, range: &Range<u32>, chosen: &Selection) -> bool {
        let candidate = self
            .candidates
            .candidate_of(range.start)
            .filter(|candidate| chosen.reasons.pins.contains_key(candidate));
        candidate.is_some_and(|candidate| {
            self.candidates.index().brought_by(candidate).is_none_or(|head| chosen.has(head))
                && self.sizes.get(&candidate) == Some(&range.len())
                && range.clone().all(|position| self.candidates.candidate_of(position) == Some(candidate))
        })
    }
}

/// Returns the value that all messages of a run have in common. Returns `None` if they differ or were not
/// examined.
fn same<T: PartialEq>(range: &Range<u32>, examined: bool, of: impl Fn(u32) -> T) -> Option<T> {
    let mut values = range.clone().map(of);
    let first = values.next().filter(|_| examined)?;
    values.all(|value| value == first).then_some(first)
}
