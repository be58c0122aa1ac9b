//! Which rows of a plan are shown: `reason:cap section:rag >500 kettle`. Terms are joined by "and".

use super::ItemTexts;
use context_window::{ContextPlan, ExcludedItem, ExcludedReason, plan::Decision};
use context_window_report as report;
use std::{error, fmt, str::FromStr};

/// A filter of rows. Terms that all have to hold, divided by blanks:
///
/// | term | holds for |
/// | --- | --- |
/// | `section:documents` | rows of a section, by the name that people or JSON use, or a part of it |
/// | `reason:cap` | rows that are in or out for a reason; of dropped ones, what held them back |
/// | `source:tool`, `role:user` | rows of a source or role |
/// | `id:m1` | ids with that part; of a run also the whole id of a message inside |
/// | `>500` `>=500` `<100` `<=100` | rows of more or fewer tokens |
/// | `kettle` | that text in the id, in why the row is in or out, or in what it says, as far as texts are known |
///
/// Capitals do not matter. Without any term it holds for every row.
///
/// ```
/// use context_window_ratatui::Filter;
///
/// let filter: Filter = "reason:cap >500".parse()?;
/// assert!(!filter.is_empty());
/// let error = "tokens:5".parse::<Filter>().unwrap_err();
/// assert_eq!(error.term(), "tokens:5");
/// assert!(error.to_string().contains("expected reason, section, source or id"));
/// # Ok::<(), context_window_ratatui::FilterError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    terms: Vec<Term>,
}

/// A term that cannot be read, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    term: String,
    said: String,
}

impl FilterError {
    /// Returns the term as it was typed; it may hold anything.
    #[must_use]
    pub fn term(&self) -> &str {
        &self.term
    }
}

/// Returns the fault and the expected form, in a printable line.
impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

impl error::Error for FilterError {}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    Reason(String),
    Section(String),
    Source(String),
    Id(Wanted),
    More(u64),
    Less(u64),
    /// Anything else: in the id, in the row's reason, or in its text.
    Text(Wanted),
}

/// A part of an id or text in lower case, and as it was typed: a whole id inside of a row is that id alone.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    part: String,
    typed: String,
}

/// The keys that may come before a colon.
const KEYS: &str = "reason, section, source or id";

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let terms: Result<Vec<Term>, FilterError> = text.split_whitespace().map(term).collect();
        Ok(Self { terms: terms? })
    }
}

impl Filter {
    /// Returns true if it holds for every row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Checks if it holds for a row of this plan. `texts` finds messages inside of a run by their ids and by
    /// their texts; without a conversation ([`ItemTexts::new`]) a run is known by the ids of its first and
    /// last message.
    #[must_use]
    pub fn matches(&self, plan: &ContextPlan, row: Decision<'_>, texts: &ItemTexts<'_>) -> bool {
        self.matches_after(plan, row, texts, &mut LastWhy::default())
    }

    /// As [`Filter::matches`], for one row after another.
    pub(super) fn matches_after<'p>(
        &self,
        plan: &'p ContextPlan,
        row: Decision<'p>,
        texts: &ItemTexts<'_>,
        why: &mut LastWhy<'p>,
    ) -> bool {
        self.terms.iter().all(|term| term.matches(plan, row, texts, why))
    }

    /// Returns a text in a line of so many columns, from shortly before the first thing in it that is looked
    /// for, where its beginning does not show that.
    pub(super) fn excerpt(&self, beginning: &str, text: &str, columns: usize) -> Option<String> {
        const SHOWN: usize = 400;
        let found = self.terms.iter().filter_map(|term| match term {
            Term::Text(Wanted { part, .. }) if part.is_empty() => None,
            Term::Text(Wanted { part, .. }) if Needle::new(part).find(beginning).is_some() => Some(None),
            Term::Text(Wanted { part, .. }) => Needle::new(part).find(text).map(Some),
            _ => None,
        });
        let at = found.into_iter().next()??;
        let (before, _) = text.split_at(at);
        let from =
            before.char_indices().rev().take((columns / 4).min(20)).last().map_or(at, |(from, _)| from);
        let shown: String = text[from..].chars().take(SHOWN).collect();
        let line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(format!("… {}", report::printable(&line)))
    }
}

fn term(word: &str) -> Result<Term, FilterError> {
    let wrong = |said: String| FilterError { term: word.to_owned(), said };
    let number = |digits: &str| {
        let plain: String = digits.chars().filter(|c| *c != ',' && *c != '_').collect();
        let said = || format!("`{}`: expected a number of tokens, as in >500", report::brief(word));
        plain.parse::<u64>().map_err(|_| wrong(said()))
    };
    if let Some(digits) = word.strip_prefix('>') {
        return match digits.strip_prefix('=') {
            // 0 or more is every row.
            Some(digits) => number(digits).map(|least| match least.checked_sub(1) {
                Some(below) => Term::More(below),
                None => Term::Text(Wanted { part: String::new(), typed: String::new() }),
            }),
            None => number(digits).map(Term::More),
        };
    }
    if let Some(digits) = word.strip_prefix('<') {
        return match digits.strip_prefix('=') {
            Some(digits) => number(digits).map(|most| most.saturating_add(1)).map(Term::Less),
            None => number(digits).map(Term::Less),
        };
    }
    let text = |text: &str| text.to_lowercase();
    let wanted = |text: &str| Wanted { part: small(text).collect(), typed: text.to_owned() };
    Ok(match word.split_once(':') {
        Some(("reason", value)) => Term::Reason(text(value)),
        Some(("section", value)) => Term::Section(text(value)),
        Some(("source" | "role", value)) => Term::Source(text(value)),
        Some(("id", value)) => Term::Id(wanted(value)),
        // Ids may hold a colon: only what looks like a key is one.
        Some((key, _)) if ["tokens", "why", "in", "out", "state", "ttl", "priority"].contains(&key) => {
            return Err(wrong(format!(
                "`{key}:` is not a filter key; expected {KEYS}, >500, <500, or a text"
            )));
        }
        _ => Term::Text(wanted(word)),
    })
}

/// The reason of the last excluded row, in words: neighbouring rows mostly have one reason, and words take
/// time.
#[derive(Debug, Default)]
pub(super) struct LastWhy<'p> {
    reason: Option<&'p ExcludedReason>,
    words: String,
}

impl<'p> LastWhy<'p> {
    fn of(&mut self, plan: &'p ContextPlan, row: Decision<'p>) -> &str {
        let reason = match row {
            Decision::Excluded(ExcludedItem { reason: ExcludedReason::Duplicate { .. }, .. })
            | Decision::Included(_) => None,
            Decision::Excluded(item) => Some(&item.reason),
        };
        if reason.is_none() || self.reason != reason {
            self.words = report::why(plan, row);
            self.reason = reason;
        }
        &self.words
    }
}

impl Term {
    fn matches<'p>(
        &self,
        plan: &'p ContextPlan,
        row: Decision<'p>,
        texts: &ItemTexts<'_>,
        why: &mut LastWhy<'p>,
    ) -> bool {
        let has = |text: &str, part: &str| Needle::new(part).find(text).is_some();
        match self {
            Self::Reason(name) => has(reason(row), name),
            Self::Section(name) => {
                has(row.section().name(), name) || has(report::section(row.section()), name)
            }
            Self::Source(name) => {
                let (source, role) = match row {
                    Decision::Included(item) => (Some(item.source), item.role),
                    Decision::Excluded(item) => (item.source, None),
                };
                source.is_some_and(|source| has(source.name(), name))
                    || role.is_some_and(|role| has(role.name(), name))
            }
            Self::Id(Wanted { part, typed }) => {
                ids(row).any(|id| has(id, part)) || texts.represents(row, typed)
            }
            Self::More(than) => row.token_estimate().tokens > *than,
            Self::Less(than) => row.token_estimate().tokens < *than,
            Self::Text(Wanted { part, typed }) => {
                ids(row).any(|id| has(id, part))
                    || texts.represents(row, typed)
                    || texts.any_text(row, |text| has(text, part))
                    || has(why.of(plan, row), part)
            }
        }
    }
}

/// Returns the name of the reason; of what is held back, that of what holds it.
pub(super) fn reason(row: Decision<'_>) -> &'static str {
    match row {
        Decision::Included(item) => item.reason.name(),
        Decision::Excluded(item) => match &item.reason {
            ExcludedReason::Budget { limited_by, .. } => limited_by.name(),
            other => other.name(),
        },
    }
}

fn ids(row: Decision<'_>) -> impl Iterator<Item = &str> {
    let first = match row {
        Decision::Included(item) => &item.id,
        Decision::Excluded(item) => &item.id,
    };
    [first, row.id()].into_iter().map(context_window::ItemId::as_str)
}

/// Returns a text in lower case, letter by letter: the Greek sigma that ends a word is the one inside of it.
fn small(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().flat_map(char::to_lowercase).map(|c| if c == 'ς' { 'σ' } else { c })
}

/// A text in lower case that is looked for in texts of any case.
#[derive(Debug, Clone, Copy)]
struct Needle<'a> {
    part: &'a str,
}

impl<'a> Needle<'a> {
    fn new(part: &'a str) -> Self {
        Self { part }
    }

    /// Returns the byte offset of its first occurrence.
    fn find(self, text: &str) -> Option<usize> {
        let Some(first) = self.part.chars().next() else { return Some(0) };
        let is_here = |at: usize| {
            let mut rest = small(&text[at..]);
            self.part.chars().all(|wanted| rest.next() == Some(wanted))
        };
        if !first.is_ascii() {
            return text.char_indices().map(|(at, _)| at).find(|at| is_here(*at));
        }
        let (lower, upper) = (first as u32 as u8, first.to_ascii_uppercase() as u32 as u8);
        // Of the letters beyond ASCII, `İ` and the Kelvin sign have an ASCII letter first in lower case.
        let also = text.char_indices().filter(|(_, c)| matches!(c, 'İ' | '\u{212a}')).map(|(at, _)| at);
        let near = memchr::memchr2_iter(lower, upper, text.as_bytes()).find(|at| is_here(*at));
        let far = if matches!(first, 'i' | 'k') && !text.is_ascii() {
            also.into_iter().find(|at| is_here(*at))
        } else {
            None
        };
        match (near, far) {
            (Some(near), Some(far)) => Some(near.min(far)),
            (near, far) => near.or(far),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Letter by letter in lower case, which is what is looked for too.
        #[test]
        fn search_text_is_found_by_lower_case(text in "[aAkKiIİ\u{212a}sßéÉ ]{0,12}", part in "[akisé]{1,3}") {
            let found = Needle::new(&part).find(&text);
            prop_assert_eq!(found.is_some(), starts(&text, &part));
            if let Some(at) = found {
                let rest: String = text[at..].chars().flat_map(char::to_lowercase).collect();
                prop_assert!(rest.starts_with(&part));
                let before = text[..at].char_indices().find(|(from, _)| {
                    text[*from..].chars().flat_map(char::to_lowercase).collect::<String>().starts_with(&part)
                });
                prop_assert!(before.is_none(), "the first one");
            }
        }
    }

    #[test]
    fn search_ignores_case_in_greek() {
        for (typed, text) in [("ΣΟΦΟΣ", "σοφος"), ("σοφος", "ο ΣΟΦΟΣ"), ("σοφοσ", "σοφος")]
        {
            let part: String = small(typed).collect();
            assert!(Needle::new(&part).find(text).is_some(), "{typed} in {text}");
        }
    }

    /// Checks if it begins with a letter of the text: no occurrence begins inside of the lower case of one
    /// letter.
    fn starts(text: &str, part: &str) -> bool {
        text.char_indices().any(|(at, _)| {
            text[at..].chars().flat_map(char::to_lowercase).collect::<String>().starts_with(part)
        })
    }
}
