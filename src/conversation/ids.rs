//! Ids of messages, notes and system texts in one namespace (rule O5). A default id (`m7`) is not stored; it
//! is derived from the position on lookup.

use crate::{
    error::{Error, Repr},
    item::ItemId,
    message::Message,
};
use indexmap::{IndexMap, map::Entry};
use std::fmt;

/// The ids in use, and the first conflict.
#[derive(Debug, Clone, Default)]
pub(super) struct Ids {
    /// Every explicit id. Messages without one are found by their position.
    given: IndexMap<ItemId, Owner>,
    /// The first id that was used twice, with both owners. Reported by [`Ids::check`].
    conflict: Option<(ItemId, Owner, Owner)>,
}

/// The owner of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Message(u32),
    Note,
    System(usize),
}

impl Ids {
    /// Claims and returns the id of a message that is about to be appended to `messages`.
    pub(super) fn claim_message(&mut self, given: Option<&ItemId>, messages: &[Message]) -> ItemId {
        let position = u32::try_from(messages.len()).unwrap_or(u32::MAX);
        let owner = Owner::Message(position);
        if let Some(id) = given {
            self.claim(id, owner, messages);
            return id.clone();
        }
        let id = ItemId::for_message(position);
        // Some other item may have been given the id `m7` explicitly before message 7 arrived.
        if let Some(first) = self.given.get(&id).copied() {
            self.clash(&id, first, owner);
        }
        id
    }

    /// Claims an id for an owner. Only a note may claim its own id again; any other second claim is a
    /// conflict.
    pub(super) fn claim(&mut self, id: &ItemId, owner: Owner, messages: &[Message]) {
        // An explicit id `m7` conflicts with message 7 if that message has no id of its own.
        let unnamed = default_position(id).filter(|position| is_unnamed(*position, messages));
        match unnamed {
            Some(position) => self.clash(id, Owner::Message(position), owner),
            None => self.insert(id, owner),
        }
    }

    fn insert(&mut self, id: &ItemId, owner: Owner) {
        match self.given.entry(id.clone()) {
            Entry::Vacant(free) => drop(free.insert(owner)),
            Entry::Occupied(existing) => {
                let first = *existing.get();
                if (first, owner) != (Owner::Note, Owner::Note) {
                    self.clash(id, first, owner);
                }
            }
        }
    }

    fn clash(&mut self, id: &ItemId, first: Owner, second: Owner) {
        // Only the first conflict is kept, because planning stops at it.
        self.conflict.get_or_insert_with(|| (id.clone(), first, second));
    }

    /// Releases the id of a removed note.
    pub(super) fn release_note(&mut self, id: &ItemId) {
        if self.is_note(id) {
            self.given.swap_remove(id);
        }
    }

    pub(super) fn is_note(&self, id: &ItemId) -> bool {
        self.given.get(id) == Some(&Owner::Note)
    }

    pub(super) fn position(&self, id: &ItemId, messages: &[Message]) -> Option<u32> {
        match self.given.get(id) {
            Some(Owner::Message(position)) => Some(*position),
            Some(_) => None,
            None => default_position(id).filter(|position| is_unnamed(*position, messages)),
        }
    }

    /// Checks for duplicate ids in the log and among `others`.
    pub(super) fn check<'a>(
        &self,
        messages: &[Message],
        others: impl Iterator<Item = (&'a ItemId, &'static str)>,
    ) -> Result<(), Error> {
        let error = |id: &ItemId, first: &dyn fmt::Display, second: &dyn fmt::Display| {
            Err(Error::new(Repr::DuplicateId {
                id: id.clone(),
                first: first.to_string(),
                second: second.to_string(),
            }))
        };
        if let Some((id, first, second)) = &self.conflict {
            return error(id, first, second);
        }
        let mut seen: IndexMap<&ItemId, &str> = IndexMap::new();
        for (id, what) in others {
            if let Some(owner) = self.given.get(id) {
                return error(id, owner, &what);
            }
            if let Some(position) = self.position(id, messages) {
                return error(id, &Owner::Message(position), &what);
            }
            if let Some(first) = seen.insert(id, what) {
                return error(id, &first, &what);
            }
        }
        Ok(())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(position) => write!(f, "message {position}"),
            Self::Note => f.write_str("a pinned note"),
            Self::System(position) => write!(f, "system text {position}"),
        }
    }
}

/// Returns the position that an id of the form `m7` belongs to by default. `m07` and `m+7` are ordinary ids.
fn default_position(id: &ItemId) -> Option<u32> {
    let digits = id.as_str().strip_prefix('m')?;
    // Only the spelling of `ItemId::for_message` counts: no leading zeros and no sign.
    let canonical = digits == "0" || !digits.starts_with(['0', '+']);
    digits.parse().ok().filter(|_| canonical)
}

fn is_unnamed(position: u32, messages: &[Message]) -> bool {
    messages.get(position as usize).is_some_and(|message| message.id().is_none())
}
