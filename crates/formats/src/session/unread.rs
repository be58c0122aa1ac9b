//! What is met and not read, counted by its type: one note says all of it.

use context_window::text::plain::{grouped, short};
use std::collections::BTreeMap;

/// Types, each with how many there are.
#[derive(Default)]
pub(crate) struct Unread(BTreeMap<String, u64>);

impl Unread {
    pub(crate) fn count(&mut self, kind: &str) {
        // Longer names are cut where they are shown; here they only have to stay apart.
        *self.0.entry(kind.to_owned()).or_default() += 1;
    }

    /// `12 events are not read: 9 progress, 3 system/turn_duration`, where there are any.
    pub(crate) fn note(&self, one: &str, many: &str) -> Option<String> {
        const MOST: usize = 12;
        let all: u64 = self.0.values().sum();
        let what = if all == 1 { one } else { many };
        let mut kinds: Vec<(&String, u64)> = self.0.iter().map(|(kind, count)| (kind, *count)).collect();
        // The most frequent first, and by name among equals.
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let more = kinds.iter().skip(MOST).map(|(_, count)| count).sum::<u64>();
        let shown =
            kinds.iter().take(MOST).map(|(kind, count)| format!("{} {}", grouped(*count), short(kind)));
        let more = (more > 0).then(|| format!("{} of other types", grouped(more)));
        let list: Vec<String> = shown.chain(more).collect();
        (all > 0).then(|| format!("{} {what}: {}", grouped(all), list.join(", ")))
    }
}
