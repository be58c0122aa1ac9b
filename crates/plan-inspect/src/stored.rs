//! The sessions of an SQLite or PostgreSQL store, opened read-only.

use anyhow::{Result, anyhow, bail};
use context_window_formats::Session;
use context_window_report as report;
use context_window_store::{ListOptions, SessionStore, SessionSummary};
use std::path::Path;

/// The maximum number of ids that an error names.
const SOME: usize = 10;

/// A store that is open for reading.
#[derive(Debug)]
pub(crate) struct Stored {
    name: String,
    store: SessionStore,
}

/// Returns the address of a store, or `None` if the path is a file.
pub(crate) fn address(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| SessionStore::is_address(text))
}

/// Returns the name of a store for messages. It contains no password.
pub(crate) fn name(address: &str) -> String {
    if address.starts_with("sqlite:") { address.into() } else { "a PostgreSQL store".into() }
}

/// Returns the file of a store, or `None` if the store is not in a file.
pub(crate) fn file(address: &str) -> Option<&Path> {
    let path = address.strip_prefix("sqlite:")?;
    Some(Path::new(path.strip_prefix("//").unwrap_or(path)))
}

impl Stored {
    /// Opens a store for reading.
    pub(crate) fn open(address: &str) -> Result<Self> {
        let store = SessionStore::open_read_only(address)?;
        Ok(Self { name: store.name().to_owned(), store })
    }

    /// Returns all sessions, the newest first and archived ones last.
    pub(crate) fn summaries(&mut self) -> Result<Vec<SessionSummary>> {
        let mut all = Vec::new();
        for options in [ListOptions::new(), ListOptions::new().archived()] {
            let mut page = self.store.list(&options)?;
            // Each page begins after the last session of the page before it.
            while let Some(last) = page.last() {
                let next = options.clone().after(last);
                all.append(&mut page);
                page = self.store.list(&next)?;
            }
        }
        Ok(all)
    }

    /// Loads the session with this id, or the only session. Its model is that of its newest prompt.
    pub(crate) fn session(&mut self, id: Option<&str>) -> Result<Session> {
        let id = match id {
            Some(id) => id.to_owned(),
            None => self.only()?,
        };
        let summary = self.store.summary(&id)?;
        let (log, _) = self.store.load(&id)?;
        let mut session = Session::from(log);
        session.model = summary.and_then(|summary| summary.model);
        session.id = Some(id);
        Ok(session)
    }

    /// Returns the number of entries of a session, which grows with every write. Returns `None` if there is
    /// no such session.
    pub(crate) fn revision(&mut self, id: &str) -> Option<u64> {
        self.store.summary(id).ok().flatten().map(|summary| summary.revision)
    }

    /// Returns the id of the only session. Returns an error if there are none or several.
    pub(crate) fn only(&mut self) -> Result<String> {
        let summaries = self.summaries()?;
        match summaries.as_slice() {
            [only] => Ok(only.id.clone()),
            [] => bail!("{} contains no sessions; add some with `plan-inspect store import`", self.name),
            several => {
                let ids: Vec<String> = several.iter().take(SOME).map(|one| report::brief(&one.id)).collect();
                let more = if several.len() > SOME { ", ..." } else { "" };
                let count = report::grouped(several.len() as u64);
                Err(anyhow!(
                    "{} contains {count} sessions; choose one with --id: {}{more}",
                    self.name,
                    ids.join(", ")
                ))
            }
        }
    }
}
