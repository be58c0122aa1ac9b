//! Policies: options of the planner, or a baseline.

use crate::{baseline::Baseline, error::Error};
use context_window::Config;

/// A rule that decides the content of prompts: options of the planner, or a [`Baseline`].
#[derive(Debug, Clone)]
pub struct Policy {
    pub(crate) name: String,
    pub(crate) rule: Rule,
}

#[derive(Debug, Clone)]
pub(crate) enum Rule {
    Planner {
        config: Box<Config>,
        /// True if earlier messages come back for a question (`context-window-recall`).
        recalls: bool,
    },
    Baseline(Baseline),
}

impl Policy {
    /// The suffix of the name of a policy with recall.
    const SUFFIX: &'static str = "+recall";

    /// Creates a policy of the planner with these options.
    #[must_use]
    pub fn planner(name: impl Into<String>, config: Config) -> Self {
        Self { name: name.into(), rule: Rule::Planner { config: Box::new(config), recalls: false } }
    }

    /// Creates a policy of the planner with a preset, or with the default options for the name `default`.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Input` if there is no such preset.
    pub fn preset(name: &str) -> Result<Self, Error> {
        let config = match name {
            "default" => Config::default(),
            preset => Config::preset(preset)
                .map_err(|error| Error::input(format!("policy `{preset}`"), error.to_string()))?,
        };
        Ok(Self::planner(name, config))
    }

    /// Creates a policy that selects by a baseline.
    #[must_use]
    pub fn baseline(baseline: Baseline) -> Self {
        Self { name: baseline.name().into(), rule: Rule::Baseline(baseline) }
    }

    /// Brings earlier messages that a question needs back (`context-window-recall` with its default options).
    /// The name of the policy gets the suffix `+recall`. Does not change a baseline.
    #[must_use]
    pub fn with_recall(mut self) -> Self {
        if let Rule::Planner { recalls, .. } = &mut self.rule {
            // The name differs, because both rules may be rows of one table.
            *recalls = true;
            self.name.push_str(Self::SUFFIX);
        }
        self
    }

    /// Splits the suffix `+recall` from the name of a policy. Returns the rest, and true if there was a
    /// suffix.
    #[must_use]
    pub fn split_suffix(name: &str) -> (&str, bool) {
        name.strip_suffix(Self::SUFFIX).map_or((name, false), |base| (base, true))
    }

    /// Returns the name of the policy.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true for a baseline.
    #[must_use]
    pub fn is_baseline(&self) -> bool {
        matches!(self.rule, Rule::Baseline(_))
    }
}
