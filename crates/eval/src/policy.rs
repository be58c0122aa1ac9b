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
        /// The number of earlier turns that are retrieved as documents for a question.
        retrieved_turns: usize,
    },
    Baseline(Baseline),
}

impl Policy {
    /// The number of earlier turns that reports retrieve for a policy with the suffix `+bm25`.
    pub const RETRIEVED_TURNS: usize = 80;

    /// The suffix of the name of a policy with retrieved turns.
    const SUFFIX: &'static str = "+bm25";

    /// Creates a policy of the planner with these options.
    #[must_use]
    pub fn planner(name: impl Into<String>, config: Config) -> Self {
        Self { name: name.into(), rule: Rule::Planner { config: Box::new(config), retrieved_turns: 0 } }
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

    /// Hands the earlier messages with the best BM25 score for each question over as documents, at most
    /// `count`. The name of the policy gets the suffix `+bm25`. Does not change a baseline.
    #[must_use]
    pub fn with_retrieved_turns(mut self, count: usize) -> Self {
        if let Rule::Planner { retrieved_turns, .. } = &mut self.rule {
            // The name differs, because both rules may be rows of one table.
            *retrieved_turns = count;
            self.name.push_str(Self::SUFFIX);
        }
        self
    }

    /// Splits the suffix `+bm25` from the name of a policy. Returns the rest, and true if there was a suffix.
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
