//! An explanation as a few lines of text for people.

use super::{brief, printable, row};
use context_window::{
    ItemId, TokenCount,
    analysis::{Explanation, Interval},
    text::plain::grouped,
};
use std::fmt::{self, Write};

/// The maximum number of ids or intervals that a line names.
const NAMED: usize = 8;

/// An explanation as text that ends with a line break. It has no width and no colour settings.
#[derive(Debug)]
pub struct Explained<'a>(pub(super) &'a Explanation, pub(super) bool);

impl Explained<'_> {
    /// Sets if another item has the same id (default: no). A document then shows its `rag:` namespace,
    /// because ids of documents and of other items are separate (namespaces, rule O5).
    #[must_use]
    pub fn with_shared_id(self, is_shared: bool) -> Self {
        Self(self.0, is_shared)
    }

    /// Returns the id of the item, or the first and last id and the count of a run of messages.
    #[must_use]
    pub fn name(&self) -> String {
        let namespace = if self.0.document && self.1 { "rag:" } else { "" };
        let id = format!("{namespace}{}", row::short(self.0.id.as_str()));
        match &self.0.first_id {
            Some(first) => format!("{}..{id} ({})", row::short(first.as_str()), grouped(self.0.count)),
            None => id,
        }
    }

    /// Returns the token count as reports write it. For a run, this is the count of the whole run. Returns
    /// `None` if the explanation has no count.
    #[must_use]
    pub fn cost(&self) -> Option<String> {
        self.0.run_tokens.map(row::number).or_else(|| self.own_tokens())
    }

    /// Returns the token count of the item itself. For a run, this is the count of its newest message with
    /// its exchange, which enters the prompt first.
    fn own_tokens(&self) -> Option<String> {
        let tokens = self.0.tokens?;
        Some(row::number(TokenCount { tokens, certainty: self.0.certainty }))
    }
}

impl Explained<'_> {
    /// Returns the answers that follow the reason, each with its label. Answers without text are left out.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let it = self.0;
        let newest = format!("the newest message ({}) and its exchange", brief(it.id.as_str()));
        let [costs, answered] = match (self.cost(), self.own_tokens()) {
            (Some(run), Some(own)) if it.run_tokens.is_some() => {
                [format!(", this run needs {run}"), format!("{newest}, which need {own}")]
            }
            (Some(cost), _) if it.run_tokens.is_some() => [format!(", this run needs {cost}"), newest],
            (Some(cost), _) => [format!(", this item needs {cost}"), newest],
            (None, _) => [String::new(), newest],
        };
        let mut lines = vec![
            ("applies to", if it.first_id.is_some() { answered } else { String::new() }),
            ("prompt budget", format!("{}{costs}", grouped(it.prompt_budget))),
            ("blocked by", names(&it.displaced_by)),
            ("in the archive", it.recalled_as.as_ref().map_or_else(String::new, comes_back)),
        ];
        if let (false, Some(at)) = (it.included, it.enters_at) {
            let more = grouped(at.saturating_sub(it.prompt_budget));
            lines.push(("enters at", format!("{}, {more} more", grouped(at))));
            lines.push(("would push out", names(&it.leaves_then)));
        }
        // A single interval without an end adds nothing to the other lines.
        if it.intervals.len() > 1 || it.intervals.first().is_some_and(|only| only.to.is_some()) {
            lines.push(("in at", intervals(&it.intervals, it.more)));
        }
        match it.stays_from {
            Some(from) if from != it.prompt_budget => {
                lines.push(("always from", grouped(from)));
            }
            None if it.enters_at.is_some() => {
                lines.push(("always from", "never: the largest budget drops it".into()));
            }
            _ => {}
        }
        if let Some(at) = it.leaves_at {
            let less = grouped(it.prompt_budget.saturating_sub(at));
            lines.push(("drops at", format!("{}, {less} less", grouped(at))));
        }
        match &it.never {
            Some(why) if it.included => lines.push(("drops at", format!("never: {why}"))),
            Some(why) => lines.push(("enters at", format!("never: {}", printable(&why.to_string())))),
            None => {}
        }
        lines.retain(|(_, text)| !text.is_empty());
        lines
    }
}

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.0.included { "in" } else { "out" };
        writeln!(f, "{}  {place}: {}", self.name(), printable(&self.0.reason.to_string()))?;
        self.lines().iter().try_for_each(|(what, text)| writeln!(f, "  {what:<14} {text}"))
    }
}

/// Describes the document that brings an excluded message back.
fn comes_back(document: &ItemId) -> String {
    format!("comes back for this question as {}", brief(document.as_str()))
}

/// Joins ids with commas. More than [`NAMED`] ids become a count.
fn names(ids: &[ItemId]) -> String {
    let mut text: Vec<String> = ids.iter().take(NAMED).map(|id| brief(id.as_str())).collect();
    if ids.len() > NAMED {
        text.push(format!("and {} more", ids.len() - NAMED));
    }
    text.join(", ")
}

/// Joins budget intervals with commas. The intervals after the first [`NAMED`], and `more` further ones,
/// become a count.
fn intervals(all: &[Interval], more: u64) -> String {
    let mut text = String::new();
    for (at, Interval { from, to }) in all.iter().take(NAMED).enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _ = match to {
            Some(to) if to == from => write!(text, "{comma}{}", grouped(*from)),
            Some(to) => write!(text, "{comma}{} to {}", grouped(*from), grouped(*to)),
            None => write!(text, "{comma}{} and more", grouped(*from)),
        };
    }
    match all.len().saturating_sub(NAMED) as u64 + more {
        0 => text,
        more => format!("{text}, and {} more intervals", grouped(more)),
    }
}
