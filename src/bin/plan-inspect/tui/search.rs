//! A text that is looked for in the log, in capitals or not.

use regex::{Regex, RegexBuilder};

#[derive(Debug, Clone, Default)]
pub(crate) struct Search {
    text: String,
    /// None where nothing is looked for.
    pattern: Option<Regex>,
}

impl Search {
    pub(crate) fn new(text: &str) -> Self {
        let pattern = RegexBuilder::new(&regex::escape(text)).case_insensitive(true).build();
        Self { text: text.to_owned(), pattern: pattern.ok().filter(|_| !text.is_empty()) }
    }

    /// As it was typed.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pattern.is_none()
    }

    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.place_in(text).is_some()
    }

    /// The byte offset of its first occurrence in a text.
    pub(crate) fn place_in(&self, text: &str) -> Option<usize> {
        self.pattern.as_ref()?.find(text).map(|found| found.start())
    }
}
