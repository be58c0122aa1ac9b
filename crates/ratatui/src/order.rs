//! A plan's rows in the order of the session, with a line wherever messages were archived or taken back.

use super::{CompactionMarker, ItemTexts, Theme};
use context_window::{
    ContextPlan, Conversation, ItemId, ItemKind, Section, conversation::HistoryRow, plan::Decision,
};
use context_window_report as report;
use ratatui_core::text::Line;

/// One line of an [`super::ItemList`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ListRow {
    /// A row of the plan, by its number ([`ContextPlan::row_at`]).
    Item(u32),
    /// The compaction of this number archived messages here.
    Compaction(u32),
    /// The compaction of this number was undone here.
    CompactionUndone(u32),
    /// The conversation went on from before the message at this position.
    Rewound(u32),
    /// The what-if leaves this item out of the request: its number among those of
    /// [`WhatIf::left_out`](super::WhatIf::left_out).
    LeftOut(u32),
}

impl ListRow {
    /// Returns the row of the plan, where it is one.
    pub(super) fn of(self, plan: &ContextPlan) -> Option<Decision<'_>> {
        match self {
            Self::Item(at) => plan.row_at(at as usize),
            _ => None,
        }
    }

    /// Returns the line of what is no row of a plan.
    pub(super) fn marker(self, log: &Conversation, theme: Theme, columns: u16) -> Line<'static> {
        let said = match self {
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
        Line::styled(report::cut(&said, columns.into()), theme.warning)
    }
}

/// The sort key of a line: before the conversation, in it, or after it; then by the position in the log; then
/// archived messages up to there, their summary, and the message that follows.
type Place = (u8, u32, u8);

/// Returns every row of the plan in the order of the session, with its markers where they are asked for.
/// Without a conversation, the plan's own order.
pub(super) fn of_session(plan: &ContextPlan, texts: &ItemTexts<'_>, markers: bool) -> Vec<ListRow> {
    let rows = (0..u32::try_from(plan.row_count()).unwrap_or(u32::MAX)).map(ListRow::Item);
    let Some(log) = texts.log() else { return rows.collect() };
    let all = markers_of(log);
    let summary = |number: u32| {
        let is_it = |(_, marker): &&(Place, ListRow)| *marker == ListRow::Compaction(number);
        all.iter().find(is_it).map(|((part, position, _), _)| (*part, *position, 1))
    };
    let mut placed: Vec<(Place, ListRow)> = rows
        .filter_map(|row| {
            let decision = row.of(plan)?;
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
                ItemKind::Summary { compaction } => summary(*compaction),
                ItemKind::Note | ItemKind::Document | ItemKind::State | ItemKind::FocusHint => None,
                _ => position(first),
            };
            Some((place.unwrap_or((if after { 2 } else { 0 }, 0, 0)), row))
        })
        .collect();
    if markers {
        placed.extend(all);
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, row)| row).collect()
}

/// Returns the events of a conversation between messages, each after the messages that were there.
fn markers_of(log: &Conversation) -> Vec<(Place, ListRow)> {
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
