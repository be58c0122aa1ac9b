//! The entries of a digest that has no room for all, and their form.

use super::{
    calls::{Call, Outcome},
    record::Record,
    statements::{self, Statement},
    texts::{CALLED, EARLIER, LAST, SAID, TOUCHED, clipped, counted, joined_words},
};
use crate::{error::Error, tokens::TokenCounter};
use std::{collections::BTreeSet, fmt::Write as _};

/// Maximum number of listed resources.
pub(super) const MOST_TOUCHED: usize = 20;

/// Maximum bytes of a text that is cut, in successive attempts to fit the limit.
const CLIPS: [usize; 4] = [2_000, 600, 200, 80];

/// A part of a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Statement,
    Call,
    Touched,
}

/// The entries of a digest that has no room for all.
pub(super) struct Selection<'a> {
    /// The written summaries at the beginning of the digest.
    carried: &'a str,
    record: &'a Record,
    statements: Vec<Statement>,
    calls: Vec<&'a Call>,
    touched: Vec<(&'a str, &'a str)>,
    /// The chosen entries of each part, by their indices.
    chosen: BTreeSet<(Part, usize)>,
    /// The order in which they were chosen.
    order: Vec<(Part, usize)>,
    /// The best statement, cut, if none fits.
    cut: Option<String>,
    last: Option<String>,
    counter: &'a TokenCounter,
}

impl<'a> Selection<'a> {
    /// Chooses from a record as much as fits in `most` tokens: first statements, in half if there are calls,
    /// then failed and open calls in half of the rest and resources in half of that, the assistant's last
    /// words, other calls, and more statements.
    pub(super) fn choose(
        record: &'a Record,
        carried: &'a str,
        most: u64,
        counter: &'a TokenCounter,
    ) -> Result<Self, Error> {
        let touched = record.touched();
        let mut selection = Self {
            carried,
            record,
            statements: statements::statements(&record.requests()),
            calls: record.calls().collect(),
            touched,
            chosen: BTreeSet::new(),
            order: Vec::new(),
            cut: None,
            last: None,
            counter,
        };
        selection.fill(most)?;
        selection.drop_until_fits(most)?;
        Ok(selection)
    }

    fn fill(&mut self, most: u64) -> Result<(), Error> {
        let has_calls = !self.calls.is_empty() || !self.touched.is_empty();
        let used = self.tokens()?;
        let room = most.saturating_sub(used);
        let ranked: Vec<(Part, usize)> =
            statements::ranked(&self.statements).into_iter().map(|at| (Part::Statement, at)).collect();
        let share = if has_calls { room / 2 } else { room };
        self.add_statements(&ranked, used, share)?;
        if self.order.is_empty() {
            self.cut_statement(&ranked, used + room)?;
        }
        let newest = |calls: &[&Call], is_done: bool| -> Vec<(Part, usize)> {
            let newest = calls.iter().enumerate().rev();
            let chosen = newest.filter(|(_, call)| matches!(call.outcome, Outcome::Done(_)) == is_done);
            chosen.map(|(at, _)| (Part::Call, at)).collect()
        };
        let half = |used: u64| used + most.saturating_sub(used) / 2;
        self.add(&newest(&self.calls, false), half(self.tokens()?))?;
        let first = self.touched.len().saturating_sub(MOST_TOUCHED);
        let touched: Vec<_> = (first..self.touched.len()).rev().map(|at| (Part::Touched, at)).collect();
        self.add(&touched, half(self.tokens()?))?;
        self.add_last_words(most)?;
        self.add(&newest(&self.calls, true), most)?;
        self.add(&ranked, most)
    }

    /// Adds statements. Sentences of long messages leave half of the share to whole messages: a single pasted
    /// text has many.
    fn add_statements(&mut self, ranked: &[(Part, usize)], used: u64, share: u64) -> Result<(), Error> {
        let (parts, whole): (Vec<_>, Vec<_>) =
            ranked.iter().partition(|(_, at)| self.statements[*at].is_part);
        if !parts.is_empty() {
            self.add(&whole, used + share / 2)?;
            self.add(&parts, used + share)?;
        }
        self.add(ranked, used + share)
    }

    /// Adds the entries that fit, in their order, until the digest has `most` tokens.
    fn add(&mut self, entries: &[(Part, usize)], most: u64) -> Result<(), Error> {
        let mut left = most.saturating_sub(self.tokens()?);
        // Each line's count is rounded up, so the sum may exceed the digest's count by one token a line.
        let mut surplus = 0;
        for entry in entries {
            if self.chosen.contains(entry) {
                continue;
            }
            let line = self.line_of(*entry);
            let tokens = self.counter.count_up_to(&line, left + surplus)?.tokens;
            if tokens > left && tokens <= left + surplus {
                (left, surplus) = (most.saturating_sub(self.tokens()?), 0);
            }
            if tokens <= left {
                self.chosen.insert(*entry);
                self.order.push(*entry);
                (left, surplus) = (left - tokens, surplus + 1);
            }
        }
        Ok(())
    }

    /// Returns the line of an entry with a line break, below its heading if it is the first of its part.
    fn line_of(&self, (part, at): (Part, usize)) -> String {
        let is_first = self.chosen_of(part).next().is_none();
        let heading = if is_first { self.heading(part) } else { String::new() };
        format!("{heading}{}\n", self.entry((part, at)))
    }

    fn entry(&self, (part, at): (Part, usize)) -> String {
        match part {
            Part::Statement => self.statements[at].line(),
            Part::Call => self.calls[at].line(),
            Part::Touched => format!("- {}: {}", self.touched[at].0, self.touched[at].1),
        }
    }

    fn chosen_of(&self, part: Part) -> impl Iterator<Item = usize> {
        self.chosen.range((part, 0)..=(part, usize::MAX)).map(|(_, at)| *at)
    }

    /// Adds the best statement in part.
    fn cut_statement(&mut self, ranked: &[(Part, usize)], most: u64) -> Result<(), Error> {
        let Some((_, best)) = ranked.first() else { return Ok(()) };
        for clip in CLIPS {
            self.cut = Some(clipped(&self.statements[*best].text, clip));
            if self.tokens()? <= most {
                return Ok(());
            }
        }
        self.cut = None;
        Ok(())
    }

    /// Adds the assistant's last words, whole or in part.
    fn add_last_words(&mut self, most: u64) -> Result<(), Error> {
        let Some(last) = &self.record.last else { return Ok(()) };
        for clip in CLIPS {
            self.last = Some(clipped(&joined_words(last), clip));
            if self.tokens()? <= most {
                return Ok(());
            }
        }
        self.last = None;
        Ok(())
    }

    /// Removes the entries that were chosen last while the digest is too long. A tokenizer may count more for
    /// a text than for its lines.
    fn drop_until_fits(&mut self, most: u64) -> Result<(), Error> {
        while self.tokens()? > most {
            let Some(entry) = self.order.pop() else { break };
            self.chosen.remove(&entry);
        }
        Ok(())
    }

    fn tokens(&self) -> Result<u64, Error> {
        Ok(self.counter.count(&self.text())?.tokens)
    }

    /// Returns the line above the entries of a part.
    fn heading(&self, part: Part) -> String {
        let chosen = self.chosen_of(part).count();
        match part {
            Part::Statement => {
                let kept = chosen + usize::from(self.cut.is_some());
                let all = self.statements.len() as u64 + self.record.left_out.statements;
                format!("{SAID}{kept} of {all}):\n")
            }
            Part::Call => format!("{CALLED}\n"),
            Part::Touched => touched_heading(chosen, self.touched.len() + self.record.left_out.touched),
        }
    }

    /// Writes the digest.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let chosen: BTreeSet<usize> = self.chosen_of(Part::Call).collect();
        let (mut calls, mut failed) = (self.record.left_out.calls, self.record.left_out.failed);
        for (_, call) in self.calls.iter().enumerate().filter(|(at, _)| !chosen.contains(at)) {
            calls += call.times;
            failed += if call.is_failed() { call.times } else { 0 };
        }
        text.push_str(self.carried);
        text.push_str(&folded(calls, failed));
        for part in [Part::Statement, Part::Call, Part::Touched] {
            let cut = self.cut.as_ref().filter(|_| part == Part::Statement);
            let mut entries = self.chosen_of(part).map(|at| self.entry((part, at))).chain(cut.cloned());
            if let Some(first) = entries.next() {
                text.push_str(&self.heading(part));
                std::iter::once(first).chain(entries).for_each(|entry| {
                    let _ = writeln!(text, "{entry}");
                });
            }
        }
        if let Some(last) = &self.last {
            let _ = writeln!(text, "{LAST}{last}");
        }
        text.trim_end().to_owned()
    }
}

/// Formats the numbers of calls that are left out.
pub(super) fn folded(calls: u64, failed: u64) -> String {
    match calls {
        0 => String::new(),
        _ => format!("{EARLIER}{}, {failed} of the calls failed.\n", counted(calls, "tool call")),
    }
}

/// Formats the heading of resources.
pub(super) fn touched_heading(kept: usize, all: usize) -> String {
    let of = if kept < all { format!(" (the newest {kept} of {all})") } else { String::new() };
    format!("{TOUCHED}{of}:\n")
}

#[cfg(test)]
mod tests {
    use super::{
        super::{record::Entry, statements::Request},
        *,
    };
    use proptest::prelude::*;

    const TEXT: &str = "(never|please|todo|agreed)?( [a-d]{2,5}| is 8080| src/lid\\.rs){1,12}\\.";

    fn record(texts: Vec<String>) -> Record {
        let request = |text| Entry::Request(Request { text, times: 1 });
        Record { entries: texts.into_iter().map(request).collect(), ..Record::default() }
    }

    proptest! {
        #[test]
        fn no_statement_is_left_out_for_a_longer_one_of_lower_rank(
            texts in prop::collection::vec(TEXT, 1..30),
            most in 40u64..400,
        ) {
            let record = record(texts);
            let counter = TokenCounter::bytes();
            let selection = Selection::choose(&record, "", most, &counter).unwrap();
            prop_assert!(selection.text().len() as u64 <= most);
            let ranked = statements::ranked(&selection.statements);
            let length = |at: usize| selection.statements[at].line().len();
            let kept: BTreeSet<usize> = selection.chosen_of(Part::Statement).collect();
            for (rank, better) in ranked.iter().enumerate().filter(|(_, at)| !kept.contains(at)) {
                let mut worse = ranked[rank..].iter().filter(|at| kept.contains(at));
                prop_assert!(worse.all(|worse| length(*worse) < length(*better)), "{}", selection.text());
            }
        }
    }
}
