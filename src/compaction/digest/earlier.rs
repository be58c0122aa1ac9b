//! Earlier summaries: those that a model or a person wrote, and digests, whose lines are read again.

use super::{
    calls::Call,
    record::{Entry, Record},
    statements::Request,
    texts::{ASKED, BEFORE, CALLED, EARLIER, INDENT, LAST, SAID, TOUCHED, numbers},
};

/// The earlier summaries that a digest replaces.
#[derive(Debug, Default)]
pub(in crate::compaction) struct Earlier {
    /// Summaries written by a model or a person. They are never truncated, because no other source can
    /// replace them.
    pub(in crate::compaction) written: Vec<String>,
    /// Digests, without the written summaries at their beginning.
    digests: Vec<String>,
}

impl Earlier {
    /// Adds a digest. `carried` are the written summaries at its beginning, which are kept separately.
    pub(in crate::compaction) fn push_digest(&mut self, text: &str, carried: Vec<String>) {
        // The prefix is compared as text; a digest that was edited by hand may lack it and is then kept as a
        // whole.
        let own = text.strip_prefix(BEFORE).and_then(|rest| rest.strip_prefix(&joined(&carried)));
        let own = if carried.is_empty() { text } else { own.unwrap_or(text) };
        self.digests.push(own.trim().to_owned());
        self.written.extend(carried);
    }

    /// Returns the written summaries as one text.
    pub(super) fn carried(&self) -> String {
        joined(&self.written)
    }

    /// Reads the digests, in their order.
    pub(super) fn read_digests(&self) -> Record {
        let mut record = Record::default();
        for digest in &self.digests {
            let mut lines = Lines { rest: digest };
            while let Some(line) = lines.next() {
                lines.read(line, &mut record);
            }
        }
        record
    }
}

/// Joins summaries in the form in which a digest begins with them.
fn joined(summaries: &[String]) -> String {
    let texts = summaries.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join("\n\n")
}

/// The lines of a digest that are not read yet.
struct Lines<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        let is_line = !self.rest.is_empty();
        self.rest = rest;
        is_line.then_some(line)
    }
}

impl Lines<'_> {
    /// Reads an entry that begins with a line. A line of no known form is a statement.
    fn read(&mut self, line: &str, record: &mut Record) {
        // Digests of an earlier release repeat these words.
        let line = line.trim_start_matches(BEFORE);
        if let Some(numbers_of) = line.strip_prefix(SAID) {
            let mut numbers = numbers(numbers_of);
            let (kept, all) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
            record.left_out.statements += all.saturating_sub(kept);
            record
                .said
                .extend(self.by_ref().take(usize::try_from(kept).unwrap_or(usize::MAX)).map(statement));
        } else if let Some((times, text)) = line.strip_prefix(ASKED).and_then(|asked| asked.split_once(": "))
        {
            let text = format!("{text}{}", self.indented());
            let times = numbers(times).next().unwrap_or(1);
            record.entries.push(Entry::Request(Request { text: text.trim_end().to_owned(), times }));
        } else if let Some(folded) = line.strip_prefix(EARLIER) {
            let mut numbers = numbers(folded);
            record.left_out.calls += numbers.next().unwrap_or(0);
            record.left_out.failed += numbers.next().unwrap_or(0);
        } else if let Some(more) = line.strip_prefix(TOUCHED) {
            self.read_touched(more, record);
        } else if let Some(last) = line.strip_prefix(LAST) {
            record.last = Some(format!("{last}{}", self.indented()).trim_end().to_owned());
        } else if let Some(call) = Call::from_line(line) {
            record.entries.push(Entry::Call(call));
        } else if line != CALLED && !line.trim().is_empty() {
            record.said.push(statement(line.trim()));
        }
    }

    /// Reads the lines below the heading of resources.
    fn read_touched(&mut self, heading: &str, record: &mut Record) {
        let mut numbers = numbers(heading);
        let (kept, all) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        record.left_out.touched += usize::try_from(all.saturating_sub(kept)).unwrap_or(usize::MAX);
        while let Some((resource, name)) = self.rest.strip_prefix("- ").and_then(|_| {
            let line = self.rest.lines().next()?;
            line.strip_prefix("- ")?.rsplit_once(": ")
        }) {
            record.touched.push((resource.to_owned(), name.to_owned()));
            self.next();
        }
    }

    /// Reads the following lines that belong to the same text.
    fn indented(&mut self) -> String {
        let mut text = String::new();
        while let Some(line) =
            self.rest.lines().next().filter(|line| line.is_empty() || line.starts_with(INDENT))
        {
            text.extend(["\n", line.strip_prefix(INDENT).unwrap_or_default()]);
            self.next();
        }
        text
    }
}

/// Reads a line below the heading of statements.
fn statement(line: &str) -> Request {
    let counted = line.strip_suffix(" times]").and_then(|line| line.rsplit_once(" ["));
    let counted = counted.and_then(|(text, times)| Some((text, times.parse::<u32>().ok()?.into())));
    let (text, times) = counted.unwrap_or((line, 1));
    Request { text: text.to_owned(), times }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_edited_by_hand_is_read_to_its_end() {
        let mut earlier = Earlier::default();
        let digest = "Free words.\nThe user asked, 3 times: Go\n\n  on.\n- run {}: no result\n- none\n\
                      The user said (4000000000 of 7):\none [99999999999999999999 times]\ntwo [2 times]";
        earlier.push_digest(digest, Vec::new());
        let record = earlier.read_digests();
        let texts: Vec<_> = record.requests().iter().map(|said| (said.text.clone(), said.times)).collect();
        let expected = [
            ("Free words.", 1),
            ("- none", 1),
            ("one [99999999999999999999 times]", 1),
            ("two", 2),
            ("Go\n\non.", 3),
        ];
        assert_eq!(texts, expected.map(|(text, times)| (text.to_owned(), times)));
        assert_eq!(record.calls().count(), 1);
    }
}
