//! Which rows of a plan are shown: `reason:cap section:rag >500 kettle`. Terms are joined by "and".

use super::ItemTexts;
use crate::{
    plan::{ContextPlan, Decision, reason::ExcludedReason},
    report,
};
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
/// | `kettle` | that text in the id, or in why the row is in or out |
///
/// Capitals do not matter. Without any term it holds for every row.
///
/// ```
/// use context_window::widgets::Filter;
///
/// let filter: Filter = "reason:cap >500".parse()?;
/// assert!(!filter.is_empty());
/// let error = "tokens:5".parse::<Filter>().unwrap_err();
/// assert_eq!(error.term(), "tokens:5");
/// assert!(error.to_string().contains("expected reason, section, source or id"));
/// # Ok::<(), context_window::widgets::FilterError>(())
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
    /// The term as it was typed; it may hold anything.
    #[must_use]
    pub fn term(&self) -> &str {
        &self.term
    }
}

/// What is wrong, and what was expected, in a printable line.
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
    /// Anything else: in the id, or in the row's reason.
    Text(Wanted),
}

/// A part of an id or text in lower case, and as it was typed: a whole id inside of a row is that id alone.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    part: String,
    typed: String,
}

/// What may come before a colon.
const KEYS: &str = "reason, section, source or id";

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let terms: Result<Vec<Term>, FilterError> = text.split_whitespace().map(term).collect();
        Ok(Self { terms: terms? })
    }
}

impl Filter {
    /// Whether it holds for every row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether it holds for a row of this plan. `texts` finds messages inside of a run by their ids; without a conversation
    /// ([`ItemTexts::new`]) a run is known by the ids of its first and last message.
    #[must_use]
    pub fn matches(&self, plan: &ContextPlan, row: Decision<'_>, texts: &ItemTexts<'_>) -> bool {
        self.terms.iter().all(|term| term.matches(plan, row, texts))
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
    let wanted = |text: &str| Wanted { part: text.to_lowercase(), typed: text.to_owned() };
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

impl Term {
    fn matches(&self, plan: &ContextPlan, row: Decision<'_>, texts: &ItemTexts<'_>) -> bool {
        let has = |text: &str, part: &str| text.to_lowercase().contains(part);
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
            Self::More(than) => row.tokens().n > *than,
            Self::Less(than) => row.tokens().n < *than,
            Self::Text(Wanted { part, typed }) => {
                ids(row).any(|id| has(id, part))
                    || texts.represents(row, typed)
                    || has(&report::row(plan, row).why, part)
            }
        }
    }
}

/// The name of the reason; of what is held back, that of what holds it.
pub(super) fn reason(row: Decision<'_>) -> &'static str {
    match row {
        Decision::Included(item) => item.reason.name(),
        Decision::Excluded(item) => match &item.reason {
            ExcludedReason::Budget { held_by, .. } => held_by.name(),
            other => other.name(),
        },
    }
}

fn ids(row: Decision<'_>) -> impl Iterator<Item = &str> {
    let first = match row {
        Decision::Included(item) => &item.id,
        Decision::Excluded(item) => &item.id,
    };
    [first, row.id()].into_iter().map(crate::item::ItemId::as_str)
}
