//! The sessions of a store: SQLite or PostgreSQL, only read here.

use anyhow::{Result, anyhow, bail};
use context_window_formats::Session;
use context_window_report as report;
use context_window_store::{ListOptions, SessionStore, SessionSummary};
use std::path::Path;

/// Ids that an error names.
const SOME: usize = 10;

/// A store that is open for reading.
#[derive(Debug)]
pub(crate) struct Stored {
    name: String,
    store: SessionStore,
}

/// The address of a store, where a path is one rather than a file.
pub(crate) fn address(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| SessionStore::is_address(text))
}

/// What names a store to a person: no password.
pub(crate) fn name(address: &str) -> String {
    if address.starts_with("sqlite:") { address.into() } else { "a PostgreSQL store".into() }
}

/// The file that a store is in, where it is in one.
pub(crate) fn file(address: &str) -> Option<&Path> {
    let path = address.strip_prefix("sqlite:")?;
    Some(Path::new(path.strip_prefix("//").unwrap_or(path)))
}

impl Stored {
    pub(crate) fn open(address: &str) -> Result<Self> {
        let store = SessionStore::open_read_only(address)?;
        Ok(Self { name: store.name().to_owned(), store })
    }

    /// Every session, the newest first, those that were put away last.
    pub(crate) fn summaries(&mut self) -> Result<Vec<SessionSummary>> {
        let mut all = Vec::new();
        for options in [ListOptions::new(), ListOptions::new().archived()] {
            let mut page = self.store.list(&options)?;
            while let Some(last) = page.last() {
                let next = options.clone().after(last);
                all.append(&mut page);
                page = self.store.list(&next)?;
            }
        }
        Ok(all)
    }

    /// The session of this id, or the only one, with the model of its newest prompt.
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

    /// How many entries a session has, where it is there: whether it grew.
    pub(crate) fn revision(&mut self, id: &str) -> Option<u64> {
        self.store.summary(id).ok().flatten().map(|summary| summary.revision)
    }

    /// The id of the only session.
    pub(crate) fn only(&mut self) -> Result<String> {
        let summaries = self.summaries()?;
        match summaries.as_slice() {
            [only] => Ok(only.id.clone()),
            [] => bail!("{} holds no sessions yet; `plan-inspect store import` brings some", self.name),
            several => {
                let ids: Vec<String> = several.iter().take(SOME).map(|one| report::brief(&one.id)).collect();
                let more = if several.len() > SOME { ", ..." } else { "" };
                let count = report::grouped(several.len() as u64);
                Err(anyhow!(
                    "{} holds {count} sessions; choose one by --id: {}{more}",
                    self.name,
                    ids.join(", ")
                ))
            }
        }
    }
}
