//! Which rows are shown: `reason:cap section:rag >500 kettle`. Terms are joined by "and".

use super::subject::Subject;
use context_window::{ContextPlan, ExcludedReason, plan::Decision, report};

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Filter {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq)]
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
#[derive(Debug, Clone, PartialEq)]
struct Wanted {
    part: String,
    typed: String,
}

/// What may come before a colon.
const KEYS: &str = "reason, section, source or id";

impl Filter {
    /// Reads a filter; says what is wrong with one that cannot be read.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let terms: Result<Vec<Term>, String> = text.split_whitespace().map(term).collect();
        Ok(Self { terms: terms? })
    }

    pub(crate) fn matches(&self, subject: &Subject, plan: &ContextPlan, row: Decision<'_>) -> bool {
        self.terms.iter().all(|term| term.matches(subject, plan, row))
    }
}

fn term(word: &str) -> Result<Term, String> {
    let number = |digits: &str| {
        let plain: String = digits.chars().filter(|c| *c != ',' && *c != '_').collect();
        plain.parse::<u64>().map_err(|_| format!("`{word}`: expected a number of tokens, as in >500"))
    };
    if let Some(digits) = word.strip_prefix('>') {
        return match digits.strip_prefix('=') {
            Some(digits) => number(digits).map(|least| least.saturating_sub(1)).map(Term::More),
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
            return Err(format!("`{key}:` is not a filter key; expected {KEYS}, >500, <500, or a text"));
        }
        _ => Term::Text(wanted(word)),
    })
}

impl Term {
    fn matches(&self, subject: &Subject, plan: &ContextPlan, row: Decision<'_>) -> bool {
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
                ids(row).any(|id| has(id, part)) || subject.stands_for(row, typed)
            }
            Self::More(than) => row.tokens().n > *than,
            Self::Less(than) => row.tokens().n < *than,
            Self::Text(Wanted { part, typed }) => {
                ids(row).any(|id| has(id, part))
                    || subject.stands_for(row, typed)
                    || has(&report::row(plan, row).why, part)
            }
        }
    }
}

/// The name of the reason; of what is held back, that of what holds it.
pub(crate) fn reason(row: Decision<'_>) -> &'static str {
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
    [first, row.id()].into_iter().map(context_window::ItemId::as_str)
}
