//! Filters for the rows of a plan, such as `reason:cap section:rag >500 kettle`. All terms must match.

use super::ItemTexts;
use context_window::{ContextPlan, ExcludedItem, ExcludedReason, plan::Decision};
use context_window_report as report;
use std::{error, fmt, str::FromStr};

/// A filter for rows. Its terms are separated by spaces, and a row must match all of them:
///
/// | term | matches |
/// | --- | --- |
/// | `section:documents` | rows of a section, by its display name, its JSON name, or a part of either |
/// | `reason:cap` | rows with this reason; for rows dropped by the budget, the limit that excluded them |
/// | `source:tool`, `role:user` | rows of a source or role |
/// | `id:m1` | ids that contain this text; for a run also the whole id of a message inside it |
/// | `>500` `>=500` `<100` `<=100` | rows of more or fewer tokens |
/// | `kettle` | this text in the id, in the reason, or in the item's text if it is known |
///
/// Matching ignores case. A filter without terms matches every row.
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

/// An error for a term that cannot be parsed, with the expected form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    term: String,
    text: String,
}

impl FilterError {
    /// Returns the term as the user typed it. It may contain unprintable characters.
    #[must_use]
    pub fn term(&self) -> &str {
        &self.term
    }
}

/// Writes the error and the expected form as one printable line.
impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl error::Error for FilterError {}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    Reason(String),
    Section(String),
    Source(String),
    Id(SearchText),
    More(u64),
    Less(u64),
    /// Any other text, searched in the id, the reason and the item's text.
    Text(SearchText),
}

/// A part of an id or text in lower case, and the form that the user typed. The typed form matches a message
/// inside a run only as a whole id.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SearchText {
    part: String,
    typed: String,
}

/// The keys that are allowed before a colon.
const KEYS: &str = "reason, section, source or id";

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let terms: Result<Vec<Term>, FilterError> = text.split_whitespace().map(term).collect();
        Ok(Self { terms: terms? })
    }
}

impl Filter {
    /// Returns true if the filter matches every row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Checks if a row of this plan matches. `texts` finds messages inside a run by id and by text. Without a
    /// conversation ([`ItemTexts::new`]), only the first and last id of a run are known.
    #[must_use]
    pub fn matches(&self, plan: &ContextPlan, row: Decision<'_>, texts: &ItemTexts<'_>) -> bool {
        self.matches_with_reason(plan, row, texts, &mut LastReason::default())
    }

    /// Checks a row like [`Filter::matches`]. `why` caches the reason's text between calls for successive
    /// rows.
    pub(super) fn matches_with_reason<'p>(
        &self,
        plan: &'p ContextPlan,
        row: Decision<'p>,
        texts: &ItemTexts<'_>,
        why: &mut LastReason<'p>,
    ) -> bool {
        self.terms.iter().all(|term| term.matches(plan, row, texts, why))
    }

    /// Returns an excerpt of `text` as one line that starts shortly before the first match of a text term.
    /// `columns` is the width available. Returns `None` if `beginning`, the visible start of the text,
    /// contains the match already, or if no text term matches.
    pub(super) fn excerpt(&self, beginning: &str, text: &str, columns: usize) -> Option<String> {
        const SHOWN: usize = 400;
        let found = self.terms.iter().filter_map(|term| match term {
            Term::Text(SearchText { part, .. }) if part.is_empty() => None,
            Term::Text(SearchText { part, .. }) if LowercasePattern::new(part).find(beginning).is_some() => {
                Some(None)
            }
            Term::Text(SearchText { part, .. }) => LowercasePattern::new(part).find(text).map(Some),
            _ => None,
        });
        // The first text term that matches decides. An inner `None` means that `beginning` shows its match
        // already.
        let at = found.into_iter().next()??;
        let (before, _) = text.split_at(at);
        // A fourth of the line is context before the match, so that the match itself stays visible.
        let from =
            before.char_indices().rev().take((columns / 4).min(20)).last().map_or(at, |(from, _)| from);
        let shown: String = text[from..].chars().take(SHOWN).collect();
        let line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(format!("… {}", report::printable(&line)))
    }
}

fn term(word: &str) -> Result<Term, FilterError> {
    let wrong = |text: String| FilterError { term: word.to_owned(), text };
    let number = |digits: &str| {
        let plain: String = digits.chars().filter(|c| *c != ',' && *c != '_').collect();
        let text = || format!("`{}`: expected a number of tokens, as in >500", report::brief(word));
        plain.parse::<u64>().map_err(|_| wrong(text()))
    };
    if let Some(digits) = word.strip_prefix('>') {
        return match digits.strip_prefix('=') {
            // `>=0` matches every row, and so does an empty text.
            Some(digits) => number(digits).map(|least| match least.checked_sub(1) {
                Some(below) => Term::More(below),
                None => Term::Text(SearchText { part: String::new(), typed: String::new() }),
            }),
            None => number(digits).map(Term::More),
        };
    }
    if let Some(digits) = word.strip_prefix('<') {
        return match digits.strip_prefix('=') {
            // A saturated bound only misses rows of exactly `u64::MAX` tokens, which do not exist.
            Some(digits) => number(digits).map(|most| most.saturating_add(1)).map(Term::Less),
            None => number(digits).map(Term::Less),
        };
    }
    let text = |text: &str| text.to_lowercase();
    let search_text =
        |text: &str| SearchText { part: lowercase_chars(text).collect(), typed: text.to_owned() };
    Ok(match word.split_once(':') {
        Some(("reason", value)) => Term::Reason(text(value)),
        Some(("section", value)) => Term::Section(text(value)),
        Some(("source" | "role", value)) => Term::Source(text(value)),
        Some(("id", value)) => Term::Id(search_text(value)),
        // Ids may contain a colon. Only words that look like a mistyped key are rejected.
        Some((key, _)) if ["tokens", "why", "in", "out", "state", "ttl", "priority"].contains(&key) => {
            return Err(wrong(format!(
                "`{key}:` is not a filter key; expected {KEYS}, >500, <500, or a word"
            )));
        }
        _ => Term::Text(search_text(word)),
    })
}

/// A cache with the text of the last excluded row's reason. Neighbouring rows mostly share a reason, and its
/// text is slow to build.
#[derive(Debug, Default)]
pub(super) struct LastReason<'p> {
    reason: Option<&'p ExcludedReason>,
    words: String,
}

impl<'p> LastReason<'p> {
    fn find_reason(&mut self, plan: &'p ContextPlan, row: Decision<'p>) -> &str {
        // These texts depend on the row itself and not only on its reason, so they are never reused.
        let reason = match row {
            Decision::Excluded(ExcludedItem { reason: ExcludedReason::Duplicate { .. }, .. })
            | Decision::Included(_) => None,
            Decision::Excluded(item) => Some(&item.reason).filter(|_| item.ranks().is_empty()),
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
        why: &mut LastReason<'p>,
    ) -> bool {
        let has = |text: &str, part: &str| LowercasePattern::new(part).find(text).is_some();
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
            Self::Id(SearchText { part, typed }) => {
                ids(row).any(|id| has(id, part)) || texts.represents(row, typed)
            }
            Self::More(than) => row.token_estimate().tokens > *than,
            Self::Less(than) => row.token_estimate().tokens < *than,
            Self::Text(SearchText { part, typed }) => {
                ids(row).any(|id| has(id, part))
                    || texts.represents(row, typed)
                    // The cheapest test comes first; the text of the reason is the most expensive.
                    || texts.any_text(row, |text| has(text, part))
                    || has(why.find_reason(plan, row), part)
            }
        }
    }
}

/// Returns the name of the reason. For a row dropped by the budget, returns the name of the limit that
/// excluded it.
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
    // The first id and the last id of a run; they are equal for a single item.
    [first, row.id()].into_iter().map(context_window::ItemId::as_str)
}

/// Returns the text in lower case, character by character. The Greek final sigma becomes the ordinary one,
/// because case conversion of single characters does not know word ends.
fn lowercase_chars(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().flat_map(char::to_lowercase).map(|c| if c == 'ς' { 'σ' } else { c })
}

/// A lower-case text to search for in texts of any case.
#[derive(Debug, Clone, Copy)]
struct LowercasePattern<'a> {
    part: &'a str,
}

impl<'a> LowercasePattern<'a> {
    fn new(part: &'a str) -> Self {
        Self { part }
    }

    /// Returns the byte offset of the first match. An empty needle matches at 0.
    fn find(self, text: &str) -> Option<usize> {
        let Some(first) = self.part.chars().next() else { return Some(0) };
        // Matches are compared without a lower-case copy of the whole text, which may be long.
        let is_here = |at: usize| {
            let mut rest = lowercase_chars(&text[at..]);
            self.part.chars().all(|search_text| rest.next() == Some(search_text))
        };
        if !first.is_ascii() {
            return text.char_indices().map(|(at, _)| at).find(|at| is_here(*at));
        }
        let (lower, upper) = (first as u32 as u8, first.to_ascii_uppercase() as u32 as u8);
        // Two characters beyond ASCII, `İ` and the Kelvin sign, have a lower case that begins with an ASCII
        // letter.
        let also = text.char_indices().filter(|(_, c)| matches!(c, 'İ' | '\u{212a}')).map(|(at, _)| at);
        // The byte search is safe in UTF-8: ASCII bytes never occur inside longer characters.
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
        /// The text is converted to lower case character by character, as the needle is.
        #[test]
        fn search_text_is_found_by_lower_case(text in "[aAkKiIİ\u{212a}sßéÉ ]{0,12}", part in "[akisé]{1,3}") {
            let found = LowercasePattern::new(&part).find(&text);
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
            let part: String = lowercase_chars(typed).collect();
            assert!(LowercasePattern::new(&part).find(text).is_some(), "{typed} in {text}");
        }
    }

    /// Checks if a match begins at a character of the text. Matches that begin inside the lower case of a
    /// single character do not count.
    fn starts(text: &str, part: &str) -> bool {
        text.char_indices().any(|(at, _)| {
            text[at..].chars().flat_map(char::to_lowercase).collect::<String>().starts_with(part)
        })
    }
}
