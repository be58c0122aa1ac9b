//! The rows of what is out (rule O2): runs of neighbouring messages with one reason are one row, and what the walk
//! did not examine is not examined here either.

use super::included::source_of;
use crate::{
    conversation::Note,
    error::Error,
    item::{ItemId, ItemKind, Priority, RagItem, Section, Source},
    message::Message,
    plan::{
        ExcludedItem,
        reason::{ExcludedReason, HeldBy, PolicyRule},
    },
    planner::{
        candidates::{Pool, Unit},
        select::Selection,
    },
    provider::{
        conform::Standing,
        meter::{self, Meter},
    },
    tokens::{Certainty, TokenCount},
};
use std::{borrow::Cow, collections::BTreeMap, ops::Range};

/// # Errors
///
/// Where the request asks for exact counts of what is out, and the counter fails.
pub(super) fn rows(pool: &Pool<'_>, meter: &Meter, chosen: &Selection) -> Result<Vec<ExcludedItem>, Error> {
    let mut rows = empty_texts(pool);
    rows.extend(notes(pool, meter, chosen));
    rows.extend(messages(pool, meter, chosen));
    rows.extend(documents(pool, meter, chosen));
    if pool.request().counts_excluded {
        let documents = pool.documents().iter().zip(0..).filter(|(document, rank)| {
            document.out.is_some() || chosen.passed_over.contains_key(&Unit::Document(*rank))
        });
        let mut documents = documents.map(|(_, rank)| pool.document(rank));
        // Rows of notes come in the order of the notes.
        let mut notes = pool.log().notes().iter();
        for row in &mut rows {
            let document = if row.section == Section::Rag { documents.next() } else { None };
            let is_note = row.source == Some(Source::Pinned);
            let note = if is_note { notes.find(|note| note.item.id == row.id) } else { None };
            row.tokens = exactly(row, document, note, pool, meter)?;
        }
    }
    Ok(rows)
}

/// What a row's items cost, each as a message of its own, whatever is proven by less (rule N4).
fn exactly(
    row: &ExcludedItem,
    document: Option<&RagItem>,
    note: Option<&Note>,
    pool: &Pool<'_>,
    meter: &Meter,
) -> Result<TokenCount, Error> {
    if let Some(item) = document {
        return Ok(meter.counted(meter.document(item, u64::MAX)?.in_full()));
    }
    let log = pool.log();
    let first = log.position_of(&row.id);
    let as_it_is = |position: u32| match pool.as_text_of_the_user(position) {
        Some(text) => Cow::Owned(text),
        None => Cow::Borrowed(log.message(position)),
    };
    let messages: Vec<(Cow<'_, Message>, Standing)> = match (note, first) {
        (Some(note), _) => vec![(Cow::Borrowed(&note.message), Standing::Head)],
        (None, Some(first)) => {
            let run = first..first + u32::try_from(row.count).unwrap_or(u32::MAX);
            run.map(|position| (as_it_is(position), pool.standing_of(position))).collect()
        }
        // A system text or state with nothing in it.
        (None, None) => return Ok(row.tokens),
    };
    let mut sum = meter.counted(0);
    for (message, standing) in messages {
        let n = meter.message(&message, standing, u64::MAX)?.in_full();
        let TokenCount { n, certainty } = meter.counted_message(&message, n);
        sum = TokenCount { n: sum.n.saturating_add(n), certainty: sum.certainty.max(certainty) };
    }
    Ok(sum)
}

/// System texts and state with nothing in them (rule H3).
fn empty_texts(pool: &Pool<'_>) -> Vec<ExcludedItem> {
    let row = |(id, source): &(ItemId, Source)| ExcludedItem {
        id: id.clone(),
        last_id: None,
        count: 1,
        kind: if *source == Source::State { ItemKind::State } else { ItemKind::SystemText },
        source: Some(*source),
        section: Section::SystemPinned,
        priority: Some(Priority::Normal),
        ttl: None,
        reason: Pool::empty_message(),
        tokens: TokenCount { n: 0, certainty: Certainty::Exact },
    };
    pool.empty_texts.iter().map(row).collect()
}

fn notes(pool: &Pool<'_>, meter: &Meter, chosen: &Selection) -> Vec<ExcludedItem> {
    let notes = pool.log().notes().iter().zip(0..);
    let out = notes.filter_map(|(note, at)| {
        let unit = Unit::Note(at);
        let reason = pool.dead_pins.get(&unit).or_else(|| chosen.fallen.get(&unit))?;
        let bound = meter.bound(meter::text_bytes(&note.message), 1);
        Some(ExcludedItem {
            id: note.item.id.clone(),
            last_id: None,
            count: 1,
            kind: ItemKind::Note,
            source: Some(Source::Pinned),
            section: Section::SystemPinned,
            priority: Some(note.item.priority),
            ttl: pool.ttl_of(&note.item.id),
            reason: reason.clone(),
            tokens: tokens(meter, reason, bound),
        })
    });
    out.collect()
}

fn documents(pool: &Pool<'_>, meter: &Meter, chosen: &Selection) -> Vec<ExcludedItem> {
    let documents = pool.documents().iter().zip(0..);
    let out = documents.filter_map(|(document, rank)| {
        let unit = Unit::Document(rank);
        let reason = document.out.as_ref().or_else(|| chosen.passed_over.get(&unit))?;
        let item = pool.document(rank);
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
            tokens: tokens(meter, reason, bound),
        })
    });
    out.collect()
}

/// What a row says of its tokens: one more than the room it was weighed against, or its bound.
fn tokens(meter: &Meter, reason: &ExcludedReason, bound: TokenCount) -> TokenCount {
    let weighed_against = match reason {
        ExcludedReason::Budget { room, held_by: HeldBy::Size | HeldBy::Cap } => Some(*room),
        ExcludedReason::Policy(PolicyRule::MaxItemTokens { limit }) => Some(*limit),
        ExcludedReason::Policy(PolicyRule::MaxSourceTokens { used, limit }) => {
            Some(limit.saturating_sub(*used))
        }
        _ => None,
    };
    weighed_against
        .map_or(bound, |room| TokenCount { n: room.saturating_add(1), certainty: meter.at_least() })
}

/// Where a message that was looked at stands: in, or out for this reason at the cost of this section.
type Outcome = Option<(ExcludedReason, Section)>;

fn messages(pool: &Pool<'_>, meter: &Meter, chosen: &Selection) -> Vec<ExcludedItem> {
    let fallen = chosen.fallen.keys().map(|unit| (*unit, pool.members(*unit).len()));
    let mut runs = Runs { pool, meter, sizes: fallen.collect(), rows: Vec::new() };
    for position in &pool.empty_leading {
        let reason = Pool::empty_message();
        runs.add(*position..position + 1, &reason, Section::SystemPinned, true);
    }
    let log = pool.log().turns();
    let mut next = log.leading();
    for (position, outcome) in outcomes(pool, chosen) {
        runs.unexamined(next..position, chosen);
        if let Some((reason, section)) = outcome {
            runs.add(position..position + 1, &reason, section, true);
        }
        next = position + 1;
    }
    runs.unexamined(next..log.messages(), chosen);
    runs.finish(chosen)
}

/// Every message that was looked at, by position.
fn outcomes(pool: &Pool<'_>, chosen: &Selection) -> BTreeMap<u32, Outcome> {
    let mut outcomes = BTreeMap::new();
    let mut file = |unit: Unit, outcome: Outcome| {
        for position in pool.members(unit) {
            outcomes.insert(position, outcome.clone());
        }
    };
    for (unit, reason) in &chosen.dead {
        if !is_moved(pool, *unit) {
            file(*unit, Some((reason.clone(), Section::Conversation)));
        }
    }
    for (unit, reason) in chosen.fallen.iter().chain(&pool.dead_pins) {
        file(*unit, Some((reason.clone(), Section::SystemPinned)));
    }
    for unit in chosen.kept.keys() {
        file(*unit, None);
    }
    outcomes
}

/// Whether an exchange's only message stands in another exchange now.
fn is_moved(pool: &Pool<'_>, unit: Unit) -> bool {
    matches!(unit, Unit::Exchange(at) if pool.log().turns().is_moved(at))
}

struct Runs<'a, 'b> {
    pool: &'a Pool<'b>,
    meter: &'a Meter,
    /// How many messages each fallen pin has.
    sizes: BTreeMap<Unit, usize>,
    rows: Vec<(Range<u32>, ExcludedReason, Section, bool)>,
}

impl Runs<'_, '_> {
    fn unexamined(&mut self, range: Range<u32>, chosen: &Selection) {
        let pool = self.pool;
        let mut next = range.start;
        for (archived, by) in pool.log().archive_index().archived_in(range.clone()) {
            self.behind(next..archived.start, chosen);
            next = archived.end;
            self.add(archived, &by.into(), Section::Conversation, false);
        }
        self.behind(next..range.end, chosen);
    }

    /// Behind the point where the walk stopped.
    fn behind(&mut self, range: Range<u32>, chosen: &Selection) {
        if let (false, Some(reason)) = (range.is_empty(), &chosen.behind) {
            self.add(range, reason, Section::Conversation, false);
        }
    }

    /// Joins the range to the row before it, where that ends here and says the same.
    fn add(&mut self, range: Range<u32>, reason: &ExcludedReason, section: Section, seen: bool) {
        match self.rows.last_mut() {
            // What was not looked at has a reason of its own, so a row is either looked at or not.
            Some((last, known, of, _)) if last.end == range.start && known == reason && *of == section => {
                last.end = range.end;
            }
            _ => self.rows.push((range, reason.clone(), section, seen)),
        }
    }

    fn finish(self, chosen: &Selection) -> Vec<ExcludedItem> {
        let row = |(range, reason, section, seen)| self.row(&range, reason, section, seen, chosen);
        self.rows.iter().cloned().map(row).collect()
    }

    fn row(
        &self,
        range: &Range<u32>,
        reason: ExcludedReason,
        section: Section,
        seen: bool,
        chosen: &Selection,
    ) -> ExcludedItem {
        let log = self.pool.log();
        let count = range.end - range.start;
        let last = range.end - 1;
        let looked_at = seen || count == 1;
        let bound = self.meter.bound(log.turns().bytes(range), u64::from(count));
        ExcludedItem {
            id: log.message_id(range.start),
            last_id: (count > 1).then(|| log.message_id(last)),
            count: u64::from(count),
            kind: if range.start < log.turns().leading() { ItemKind::SystemText } else { ItemKind::Message },
            source: same(range, looked_at, |at| source_of(self.pool.role_of(at))),
            section,
            priority: same(range, looked_at, |at| log.pins().get(&at).copied().unwrap_or_default()),
            ttl: same(range, looked_at, |at| log.message_lifetime(at).map(|lifetime| lifetime.left))
                .flatten(),
            tokens: if self.is_weighed_alone(range, chosen) {
                tokens(self.meter, &reason, bound)
            } else {
                bound
            },
            reason,
        }
    }

    /// Whether the row is one fallen pin that was weighed by itself, without a user message that it brings.
    fn is_weighed_alone(&self, range: &Range<u32>, chosen: &Selection) -> bool {
        let unit = self.pool.unit_of(range.start).filter(|unit| chosen.fallen.contains_key(unit));
        unit.is_some_and(|unit| {
            self.pool.brought_by(unit).is_none_or(|head| chosen.has(head))
                && self.sizes.get(&unit) == Some(&range.len())
                && range.clone().all(|position| self.pool.unit_of(position) == Some(unit))
        })
    }
}

/// A field of a run: what all of its messages have, or nothing.
fn same<T: PartialEq>(range: &Range<u32>, looked_at: bool, of: impl Fn(u32) -> T) -> Option<T> {
    let mut values = range.clone().map(of);
    let first = values.next().filter(|_| looked_at)?;
    values.all(|value| value == first).then_some(first)
}
