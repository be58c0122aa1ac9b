//! The conversation on disk. Data confirmed by a save survives a crash, and two chats on one session never
//! overwrite each other.

use super::{Chat, turn::is_open};
use anyhow::{Context, Result};
use context_window::{Conversation, Message, Role};
use context_window_store::{Error, ErrorKind, SessionStore};
use std::path::Path;

/// The system text of a new conversation.
const SYSTEM: &str = "You answer questions about a folder of documents. Answer from the documents in the prompt and cite \
    them by their labels, as: \"their words\" [1]. Where they do not say, say so.";

/// The stored session of a conversation.
pub(super) struct Saved {
    pub(super) store: SessionStore,
    pub(super) id: String,
    revision: u64,
    /// True if something is not on disk.
    pub(super) is_behind: bool,
}

impl Saved {
    pub(super) fn open(path: &Path, id: &str) -> Result<(Self, Conversation)> {
        let store = SessionStore::open(&format!("sqlite:{}", path.display()));
        let store = store.context("the conversations cannot be opened")?;
        let mut saved = Self { store, id: id.into(), revision: 0, is_behind: false };
        let log = saved.switch(id)?;
        Ok((saved, log))
    }

    /// Switches to a session, and creates it if it does not exist.
    pub(super) fn switch(&mut self, id: &str) -> Result<Conversation, Error> {
        let (mut log, revision) = self.store.load_or_new(id)?;
        (self.id, self.revision) = (id.into(), revision);
        if log.messages().is_empty() {
            log.push(Message::system(SYSTEM));
        }
        Ok(log)
    }

    /// Returns a greeting with the state of the session.
    pub(super) fn welcome(&self, log: &Conversation) -> String {
        let questions = log.messages().iter().filter(|message| message.role() == Role::User).count();
        let open = if is_open(log) { "\nThe last question has no reply; /retry asks again." } else { "" };
        match questions {
            0 => format!("Session \"{}\" starts.", self.id),
            1 => format!("Session \"{}\" continues: 1 question so far.{open}", self.id),
            _ => format!("Session \"{}\" continues: {questions} questions so far.{open}", self.id),
        }
    }

    /// Returns an unused session id derived from this one.
    fn free_id(&mut self) -> Result<String, Error> {
        for number in 2u64.. {
            let id = format!("{}-{number}", self.id);
            if self.store.summary(&id)?.is_none() {
                return Ok(id);
            }
        }
        unreachable!("numbers do not end")
    }
}

impl Chat {
    /// Writes new entries. If another chat changed this session in the meantime and the changes cannot be
    /// merged, this chat continues as its own session with all its entries. The other chat keeps the old
    /// session.
    pub(super) fn save(&mut self) {
        let saved = &mut self.saved;
        let mut said = None;
        let mut written = saved.store.save(&saved.id, &mut self.log, saved.revision);
        if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::Conflict) {
            let taken = saved.free_id().and_then(|id| Ok((saved.store.import(&id, &self.log)?, id)));
            written = taken.map(|(revision, id)| {
                let old = std::mem::replace(&mut saved.id, id);
                said = Some(format!(
                    "Another chat wrote to session \"{old}\". Nothing is lost: this one continues as \"{}\", and \
                     /sessions {old} shows the other one.",
                    saved.id
                ));
                revision
            });
        }
        let is_another = said.is_some();
        saved.is_behind = written.is_err();
        match written {
            Ok(revision) => saved.revision = revision,
            Err(error) => said = Some(format!("Not saved: {error}. The next message tries again.")),
        }
        said.into_iter().for_each(|said| self.fail(said));
        if is_another {
            // The index of the old session is the other chat's. A new session has none yet, which is nothing
            // to remark on.
            drop(self.open_recall());
            if let Some(name) = self.named.clone() {
                self.remember_model(&name);
            }
        }
        self.save_recall();
    }
}
