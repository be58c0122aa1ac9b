//! Counts of unread values by type, reported in one note.

use context_window::text::plain::{grouped, short};
use std::collections::BTreeMap;

/// The number of values of each type.
#[derive(Default)]
pub(crate) struct Unread(BTreeMap<String, u64>);

impl Unread {
    pub(crate) fn count(&mut self, kind: &str) {
        // Long names are shortened when they are shown. Here they only have to stay distinct.
        *self.0.entry(kind.to_owned()).or_default() += 1;
    }

    /// Returns a note such as `12 events are not read: 9 progress, 3 system/turn_duration`. Returns `None` if
    /// nothing was counted.
    pub(crate) fn note(&self, one: &str, many: &str) -> Option<String> {
        const MAX_KINDS: usize = 12;
        let all: u64 = self.0.values().sum();
        let what = if all == 1 { one } else { many };
        let mut kinds: Vec<(&String, u64)> = self.0.iter().map(|(kind, count)| (kind, *count)).collect();
        // The sort is stable, so types with equal counts stay in the order of their names.
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let more = kinds.iter().skip(MAX_KINDS).map(|(_, count)| count).sum::<u64>();
        let shown =
            kinds.iter().take(MAX_KINDS).map(|(kind, count)| format!("{} {}", grouped(*count), short(kind)));
        let more = (more > 0).then(|| format!("{} of other types", grouped(more)));
        let list: Vec<String> = shown.chain(more).collect();
        (all > 0).then(|| format!("{} {what}: {}", grouped(all), list.join(", ")))
    }
}
