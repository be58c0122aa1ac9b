//! The model of each session: a session continues with the model last requested for it.

use super::{Chat, manager};
use crate::{models, private};
use anyhow::{Context, Result};
use context_window::config::ReasoningPolicy;
use context_window_report as report;
use context_window_store::save_whole;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Model names by session id, in a file next to the conversations. A session without a requested model is not
/// in it: the environment chooses again, as at its start.
pub(super) struct Remembered {
    path: PathBuf,
}

impl Remembered {
    pub(super) fn new(data: &Path) -> Self {
        Self { path: data.join("models.json") }
    }

    fn read(&self) -> Result<BTreeMap<String, String>> {
        if !self.path.exists() {
            return Ok(BTreeMap::new());
        }
        let text = fs::read_to_string(&self.path)?;
        let expected = "expected the names of models by the ids of sessions; mend the file, or delete it";
        serde_json::from_str(&text).context(expected)
    }

    fn write(&self, session: &str, model: &str) -> Result<()> {
        // Two chats may write to one folder.
        let _lock = private::lock(&self.path.with_extension("lock"))?;
        let mut all = self.read()?;
        if all.insert(session.into(), model.into()).as_deref() != Some(model) {
            save_whole(&self.path, serde_json::to_string_pretty(&all)?.as_bytes())?;
        }
        Ok(())
    }
}

impl Chat {
    /// Changes to another model, with a planner for it.
    pub(super) fn change_model(&mut self, name: &str) -> Result<()> {
        let choice = models::choose(Some(name), &self.environment)?;
        self.manager = manager(&self.args, &choice, ReasoningPolicy::default())?;
        self.choice = choice;
        self.named = Some(name.to_owned());
        Ok(())
    }

    /// Saves the model requested for this session.
    pub(super) fn remember_model(&mut self, name: &str) {
        self.named = Some(name.to_owned());
        let Some(remembered) = &self.remembered else { return };
        if let Err(error) = remembered.write(&self.saved.id, name) {
            let path = remembered.path.display().to_string();
            self.fail(format!("The model is not saved for the next start: {path}: {error:#}"));
        }
    }

    /// Continues with the model last requested for this session. If it is unavailable, another model is used,
    /// with a remark.
    pub(super) fn resume_model(&mut self) {
        let Some(remembered) = &self.remembered else { return };
        let name = match remembered.read() {
            Ok(mut all) => all.remove(&self.saved.id),
            Err(error) => {
                let path = remembered.path.display().to_string();
                return self.fail(format!("{path}: the model of this session is unknown: {error:#}"));
            }
        };
        let Some(name) = name.filter(|name| self.named.as_ref() != Some(name)) else { return };
        match self.change_model(&name) {
            Ok(()) => self.replan(),
            Err(error) => {
                let (name, model) = (report::brief(&name), &self.choice.model.name);
                let said = format!("This session was used with {name}; {model} answers now: {error:#}");
                self.fail(said);
            }
        }
    }
}
