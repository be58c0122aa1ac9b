//! The rows of a plan in session order, with markers for compactions, undone compactions and rewinds.

use super::{CompactionMarker, ItemTexts, Theme};
use context_window::{
    ContextPlan, Conversation, ItemId, ItemKind, Section, conversation::HistoryRow, plan::Decision,
};
use context_window_report as report;
use ratatui_core::text::Line;

/// A line of an [`super::ItemList`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ListRow {
    /// A row of the plan, by its index ([`ContextPlan::row_at`]).
    Item(u32),
    /// The position at which the compaction with this number archived messages.
    Compaction(u32),
    /// The position at which the compaction with this number was undone.
    CompactionUndone(u32),
    /// The position at which the conversation was rewound to before the message at this log position.
    Rewound(u32),
    /// An item that the trial removes from the request, by its index in
    /// [`WhatIf::left_out`](super::WhatIf::left_out).
    LeftOut(u32),
}

impl ListRow {
    /// Returns the row of the plan, or `None` for a marker.
    pub(super) fn decision(self, plan: &ContextPlan) -> Option<Decision<'_>> {
        match self {
            Self::Item(at) => plan.row_at(at as usize),
            _ => None,
        }
    }

    /// Returns the line of a marker. The line is empty for other rows, and for records that the conversation
    /// does not have.
    pub(super) fn marker(self, log: &Conversation, theme: Theme, columns: u16) -> Line<'static> {
        let text = match self {
            Self::Compaction(number) => {
                let record = log.compaction(number);
                let line =
                    record.map(|record| CompactionMarker::new(record).with_theme(theme).lines(columns));
                return line.and_then(|lines| lines.into_iter().next()).unwrap_or_default();
            }
            Self::CompactionUndone(number) => format!("── Compaction #{number} undone ──"),
            Self::Rewound(at) if at < log.turns().messages() => {
                format!("── Rewound to before {} ──", report::brief(log.message_id(at).as_str()))
            }
            Self::Item(_) | Self::Rewound(_) | Self::LeftOut(_) => String::new(),
        };
        Line::styled(report::cut(&text, columns.into()), theme.warning)
    }
}

/// The sort key of a line. The first number is 0 before the conversation, 1 inside it, and 2 after it. The
/// second number is the position in the log. The third number orders lines at one position: markers, a
/// summary, the message.
type Place = (u8, u32, u8);

/// Returns every row of the plan in session order, with the markers if `markers` is true. Without a
/// conversation, returns the plan's own order.
pub(super) fn session_rows(plan: &ContextPlan, texts: &ItemTexts<'_>, markers: bool) -> Vec<ListRow> {
    let rows = (0..u32::try_from(plan.row_count()).unwrap_or(u32::MAX)).map(ListRow::Item);
    let Some(log) = texts.log() else { return rows.collect() };
    let all = marker_rows(log);
    // A summary belongs at the marker of the compaction that wrote it.
    let summary = |number: u32| {
        let is_it = |(_, marker): &&(Place, ListRow)| *marker == ListRow::Compaction(number);
        all.iter().find(is_it).map(|((part, position, _), _)| (*part, *position, 1))
    };
    let mut placed: Vec<(Place, ListRow)> = rows
        .filter_map(|row| {
            let decision = row.decision(plan)?;
            let first = match decision {
                Decision::Included(item) => &item.id,
                Decision::Excluded(item) => &item.id,
            };
            let after = match decision {
                Decision::Included(item) => item.section != Section::SystemPinned,
                Decision::Excluded(_) => true,
            };
            let position = |id: &ItemId| log.position_of(id).map(|at| (1, at, 2));
            let place = match decision.kind() {
                // Items without a position in the log come before or after the conversation.
                ItemKind::Summary { compaction } => summary(*compaction),
                ItemKind::Note
                | ItemKind::Rule
                | ItemKind::Document
                | ItemKind::State
                | ItemKind::FocusHint => None,
                _ => position(first),
            };
            Some((place.unwrap_or((if after { 2 } else { 0 }, 0, 0)), row))
        })
        .collect();
    if markers {
        placed.extend(all);
    }
    // The sort is stable: rows with equal keys keep the plan's order.
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, row)| row).collect()
}

/// Returns the events of a conversation that occur between messages. The key's position is the number of
/// messages before the event.
fn marker_rows(log: &Conversation) -> Vec<(Place, ListRow)> {
    let mut messages = 0;
    let mut markers = Vec::new();
    for row in log.history() {
        let marker = match row {
            HistoryRow::Message { .. } => {
                messages += 1;
                continue;
            }
            HistoryRow::Compaction(record) => Some(ListRow::Compaction(record.number)),
            HistoryRow::CompactionUndone(number) => Some(ListRow::CompactionUndone(number)),
            HistoryRow::Rewound(id) => log.position_of(id).map(ListRow::Rewound),
        };
        markers.extend(marker.map(|marker| ((1, messages, 0), marker)));
    }
    markers
}
