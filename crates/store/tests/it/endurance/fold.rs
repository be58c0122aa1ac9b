//! The active part, computed a second time in the simplest way from the entries of the log only.

use context_window::{
    conversation::{Entry, Event},
    *,
};
use std::collections::BTreeSet;

/// One part of the active conversation in the simple fold.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Message(usize),
    Summary(u32),
}

/// Returns the active part from the entries only, without ranges or positions that other code computed.
pub fn folded(log: &Conversation) -> Vec<Part> {
    let id_of = |at: usize, message: &Message| {
        message.id().map_or_else(|| format!("m{at}"), |id| id.as_str().to_owned())
    };
    let ids: Vec<String> =
        log.messages().iter().enumerate().map(|(at, message)| id_of(at, message)).collect();
    let find = |id: &ItemId| ids.iter().position(|known| known == id.as_str()).unwrap();
    let mut active: Vec<Part> = Vec::new();
    // The active part right before each message.
    let mut before: Vec<Vec<Part>> = Vec::new();
    let mut leading = true;
    let mut leads: BTreeSet<usize> = BTreeSet::new();
    // An undone compaction has no effect.
    let undone: BTreeSet<u32> = log
        .entries()
        .filter_map(|entry| match entry {
            Entry::Event(Event::CompactionUndone { number }) => Some(*number),
            _ => None,
        })
        .collect();
    for entry in log.entries() {
        match entry {
            Entry::Event(Event::Compacted(record)) if undone.contains(&record.number) => {}
            Entry::Message(message) => {
                let at = before.len();
                before.push(active.clone());
                leading &= message.role().instructs();
                if leading {
                    leads.insert(at);
                }
                active.push(Part::Message(at));
            }
            Entry::Event(Event::Compacted(record)) => {
                let place = |id: &ItemId| active.iter().position(|part| *part == Part::Message(find(id)));
                let led = active
                    .iter()
                    .take_while(|part| matches!(part, Part::Message(at) if leads.contains(at)))
                    .count();
                let start = record.from.as_ref().map_or(Some(led), place).unwrap();
                let end = record.first_active.as_ref().map_or(Some(active.len()), place).unwrap();
                let head = record.head.as_ref().map(|id| Part::Message(find(id)));
                let summary = record.summary.as_ref().map(|_| Part::Summary(record.number));
                let stands = head.into_iter().filter(|head| active[start..end].contains(head)).chain(summary);
                let stands: Vec<Part> = stands.collect();
                active.splice(start..end, stands);
            }
            Entry::Event(Event::Rewound { before: id }) => active = before[find(id)].clone(),
            _ => {}
        }
    }
    active
}
