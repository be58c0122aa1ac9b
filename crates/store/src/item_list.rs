//! A session as a list of JSON texts. Reading or removing the newest ones does not read the rest.

use crate::backend::KnownState;
use crate::entry::{Row, SessionName};
use crate::error::Error;
use crate::session_store::{MAX_TRIES, SessionStore, check_id, conflict};
use context_window::{
    Conversation, ItemId, Message, Part, Role, WireFormat,
    conversation::{Compaction, CompactionKind, Event, HistoryRow},
    events::LogEvent,
};
use serde::{Deserialize, de::IgnoredAny};
use std::{borrow::Cow, ops::ControlFlow};

/// The version of the entry format that this module reads by itself.
const VERSION: u32 = 1;

/// The largest number of entries that one query reads. With more, their texts no longer fit into the
/// cache of a processor between two steps.
const MOST_ROWS: u64 = 1_024;

/// The smallest number of entries that one query reads. A removed item leaves two entries behind.
const LEAST_ROWS: u64 = 8;

/// A part of a message that contains an item. Other programs see a part of an unknown type. Earlier versions
/// wrote the item as a string in this object.
#[derive(Deserialize)]
struct HeldItem<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    json: String,
}

/// The parts of a message's entry that a list needs. Reading only these takes a third of the time.
#[derive(Deserialize)]
struct ItemEntry {
    version: u32,
    entry: ItemMessage,
}

#[derive(Deserialize)]
struct ItemMessage {
    message: ItemParts,
}

#[derive(Deserialize)]
struct ItemParts {
    id: Option<ItemId>,
    #[serde(default)]
    parts: Vec<ItemPart>,
}

#[derive(Deserialize)]
struct ItemPart {
    opaque: Option<OpaquePart>,
}

#[derive(Deserialize)]
struct OpaquePart {
    json: String,
}

/// An item that was not removed, with the id of its message.
struct LiveItem {
    id: ItemId,
    json: String,
}

/// Returns the id of the item in entry `n`. It contains the number, so that a removal leads to its entry
/// without reading the entries in between.
fn item_id(n: u64) -> ItemId {
    ItemId::from(format!("entry-{n}"))
}

/// Returns the entry number of an id that [`item_id`] made.
fn entry_of(id: &ItemId) -> Option<u64> {
    id.as_str().strip_prefix("entry-")?.parse().ok()
}

/// Returns the beginning of a part with an item of type `kind`. The item and a brace follow.
fn opening(kind: &str) -> String {
    format!("{{\"type\":{},\"item\":", serde_json::Value::from(kind))
}

/// Returns the item in a part of an unknown type, if it is an item of type `kind`. `opening` is the beginning
/// of such a part.
fn item_of(part: Cow<'_, str>, kind: &str, opening: &str) -> Option<String> {
    if let Some(item) = part.strip_prefix(opening) {
        let item = item.strip_suffix('}')?;
        // A part of another writer may have further keys, and is not an item then.
        serde_json::from_str::<IgnoredAny>(item).ok()?;
        let mut item = part.into_owned();
        item.drain(..opening.len());
        item.pop();
        return Some(item);
    }
    let held: HeldItem<'_> = serde_json::from_str(&part).ok()?;
    (held.r#type == kind).then_some(held.json)
}

/// Checks if a compaction archives all messages before it.
fn archives_everything(record: &Compaction) -> bool {
    record.kind == CompactionKind::Fresh && record.from.is_none() && record.first_active.is_none()
}

/// Returns the items of type `kind` in a message.
fn items_of<'a>(message: &'a Message, kind: &'a str) -> impl Iterator<Item = String> + 'a {
    let opening = opening(kind);
    message.parts().iter().filter_map(move |part| match part {
        Part::Opaque { json, .. } => item_of(json.into(), kind, &opening),
        _ => None,
    })
}

/// A reader that receives entries from the newest one back.
struct Backward<'a> {
    kind: &'a str,
    opening: String,
    limit: usize,
    /// The items that were not removed, newest first.
    live: Vec<LiveItem>,
    /// The message before which the log was rewound. All entries after it are removed.
    until: Option<ItemId>,
}

/// The reason why a backward read ends or continues elsewhere.
enum Turn {
    /// All requested items were read, or all earlier ones are removed.
    Done,
    /// The entries from this number on are removed.
    Before(u64),
    /// Only a read of the whole session can tell.
    Whole,
}

impl Backward<'_> {
    /// Reads a row.
    fn read(&mut self, name: SessionName<'_>, row: &Row) -> Result<ControlFlow<Turn>, Error> {
        if row.kind == "message"
            && let Ok(entry) = serde_json::from_str::<ItemEntry>(name.intact(row)?)
            && entry.version == VERSION
        {
            return Ok(self.read_message(entry.entry.message));
        }
        Ok(self.read_event(row.n, &name.entry(row)?))
    }

    fn read_event(&mut self, n: u64, entry: &LogEvent) -> ControlFlow<Turn> {
        match entry.kind() {
            // The message was not removed when the log was rewound, so no event in between reaches behind it.
            "rewound" | "compacted" if self.until.is_some() => ControlFlow::Continue(()),
            "compacted" => {
                let Some(Event::Compacted(record)) = entry.event() else {
                    return ControlFlow::Break(Turn::Whole);
                };
                ControlFlow::Break(if archives_everything(&record) { Turn::Done } else { Turn::Whole })
            }
            "compaction_undone" | "message" => ControlFlow::Break(Turn::Whole),
            "rewound" => {
                let Some(Event::Rewound { before }) = entry.event() else {
                    return ControlFlow::Break(Turn::Whole);
                };
                let turn = match entry_of(&before) {
                    Some(at) if at < n => Turn::Before(at + 1),
                    _ => Turn::Whole,
                };
                self.until = Some(before);
                ControlFlow::Break(turn)
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn read_message(&mut self, message: ItemParts) -> ControlFlow<Turn> {
        if let Some(until) = &self.until {
            if message.id.as_ref() == Some(until) {
                self.until = None;
            }
            return ControlFlow::Continue(());
        }
        let parts = message.parts.into_iter().rev().filter_map(|part| part.opaque);
        let mut items =
            parts.filter_map(|part| item_of(part.json.into(), self.kind, &self.opening)).peekable();
        // Items of this list have ids. A message without one comes from another writer, who may have rewound
        // by positions.
        let Some(id) = message.id else {
            let has_items = items.peek().is_some();
            return if has_items { ControlFlow::Break(Turn::Whole) } else { ControlFlow::Continue(()) };
        };
        self.live.extend(items.map(|json| LiveItem { id: id.clone(), json }));
        if self.live.len() >= self.limit { ControlFlow::Break(Turn::Done) } else { ControlFlow::Continue(()) }
    }
}

/// A list of JSON texts ("items") in a session. Items of several types can be in one session; each call
/// names the type.
impl SessionStore {
    /// Appends items to a session, all or none. Creates the session if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SessionStore::append`], and `ErrorKind::Input` for an item that is not JSON.
    /// Returns a conflict only after 1,000 failed attempts.
    #[doc(hidden)]
    pub fn push_items(&mut self, id: &str, kind: &str, items: &[String]) -> Result<(), Error> {
        check_id(id)?;
        if items.is_empty() {
            return Ok(());
        }
        let opening = opening(kind);
        let parts = items.iter().enumerate().map(|(at, json)| {
            let fault = |error: serde_json::Error| Error::input(format!("items[{at}]"), error.to_string());
            serde_json::from_str::<IgnoredAny>(json).map_err(fault)?;
            Ok::<_, Error>(format!("{opening}{json}}}"))
        });
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        self.retry(id, |store| {
            let known = store.known(id)?;
            let messages = (known.next..).zip(&parts).map(|(n, json)| {
                let part = Part::Opaque { wire_format: WireFormat::OpenAiResponses, json: json.clone() };
                Message::new(Role::Assistant, "").with_parts([part]).with_id(item_id(n))
            });
            // A conversation converts the messages to entries.
            let events = Conversation::from(messages.collect::<Vec<_>>());
            store.append_to(id, known, events.events()).map(drop)
        })
    }

    /// Returns the newest `limit` items of this type in chronological order, or all of them.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SessionStore::load_or_new`].
    #[doc(hidden)]
    pub fn newest_items(&mut self, id: &str, kind: &str, limit: Option<usize>) -> Result<Vec<String>, Error> {
        check_id(id)?;
        let limit = limit.unwrap_or(usize::MAX);
        let (mut live, _) = self.live_items(id, kind, limit)?;
        live.truncate(limit);
        Ok(live.into_iter().rev().map(|item| item.json).collect())
    }

    /// Removes the newest item of this type and returns it. Returns `None` if there is none. The session is
    /// rewound to before the item's message, so later messages and items of other types are removed too. They
    /// are archived, not deleted.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SessionStore::load_or_new`] and [`SessionStore::append`]. Returns a conflict
    /// only after 1,000 failed attempts.
    #[doc(hidden)]
    pub fn pop_item(&mut self, id: &str, kind: &str) -> Result<Option<String>, Error> {
        check_id(id)?;
        self.retry(id, |store| {
            let (live, known) = store.live_items(id, kind, 1)?;
            let Some(newest) = live.into_iter().next() else { return Ok(None) };
            let rewound = serde_json::json!({
                "version": 1, "entry": {"event": {"rewound": {"before": newest.id}}},
            });
            let rewound: LogEvent = serde_json::from_value(rewound)
                .map_err(|error| Error::input("id of an item", error.to_string()))?;
            store.append_to(id, known, [rewound])?;
            Ok(Some(newest.json))
        })
    }

    /// Repeats a change that other writers overtake.
    fn retry<T>(
        &mut self,
        id: &str,
        mut change: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut last = None;
        for _ in 0..MAX_TRIES {
            match change(self) {
                Err(error) if error.conflict().is_some() => last = Some(error),
                done => return done,
            }
        }
        Err(last.unwrap_or_else(|| conflict(id, 0, 0)))
    }

    /// Returns the present state of a session, for an append.
    fn known(&mut self, id: &str) -> Result<KnownState, Error> {
        let head = self.backend.head(id)?;
        Ok(head.map_or(KnownState { key: None, next: 0 }, |head| KnownState {
            key: Some(head.key),
            next: head.next,
        }))
    }

    /// Returns at least the newest `limit` items that were not removed, newest first, and the state of the
    /// session at which they were read.
    fn live_items(
        &mut self,
        id: &str,
        kind: &str,
        limit: usize,
    ) -> Result<(Vec<LiveItem>, KnownState), Error> {
        let Some(head) = self.backend.head(id)? else {
            return Ok((Vec::new(), KnownState { key: None, next: 0 }));
        };
        let known = KnownState { key: Some(head.key), next: head.next };
        let store = self.backend.name().to_owned();
        let name = SessionName { store: &store, id };
        let mut backward = Backward { kind, opening: opening(kind), limit, live: Vec::new(), until: None };
        let (mut end, least) = (head.next, (limit as u64).clamp(LEAST_ROWS, MOST_ROWS));
        let mut size = least;
        'read: while end > 0 && backward.live.len() < limit {
            let range = end.saturating_sub(size)..end;
            // Twice as much each time, so that the number of queries stays small.
            size = (size * 2).min(MOST_ROWS);
            let mut rows: Vec<Row> = Vec::new();
            let mut take = |_: &_, row| {
                rows.push(row);
                Ok(())
            };
            self.backend.rows(&head, std::slice::from_ref(&range), &mut take)?;
            if rows.len() as u64 != range.end - range.start {
                return Err(
                    name.fault("has fewer entries than its row says, or was deleted while it was read")
                );
            }
            for row in rows.iter().rev() {
                match backward.read(name, row)? {
                    ControlFlow::Continue(()) => {}
                    ControlFlow::Break(Turn::Done) => break 'read,
                    ControlFlow::Break(Turn::Before(n)) => {
                        (end, size) = (n, least);
                        continue 'read;
                    }
                    ControlFlow::Break(Turn::Whole) => return self.live_items_of_whole(id, kind),
                }
            }
            end = range.start;
        }
        // The message was not found where its id says: another program wrote the session.
        if backward.until.is_some() && backward.live.len() < limit {
            return self.live_items_of_whole(id, kind);
        }
        Ok((backward.live, known))
    }

    /// Returns the items that were not removed, newest first, from all entries of a session.
    fn live_items_of_whole(&mut self, id: &str, kind: &str) -> Result<(Vec<LiveItem>, KnownState), Error> {
        let (log, known) = self.load_known(id)?;
        let mut live: Vec<LiveItem> = Vec::new();
        for row in log.history() {
            if let HistoryRow::Message { id, message, is_archived: false, .. } = row {
                live.extend(items_of(message, kind).map(|json| LiveItem { id: id.clone(), json }));
            }
        }
        live.reverse();
        Ok((live, known))
    }
}
