//! What is known of a plan, printed: text for people, JSON for machines.

pub use crate::plain::grouped;
use crate::{
    explain::Explanation,
    model::Limits,
    plan::{ContextPlan, Remedy},
};

mod explanation;
mod json;
mod page;
mod text;

pub use explanation::Explained;
pub use text::Text;

/// The plan as a text report, 80 columns wide unless [`Text::width`] says otherwise.
#[must_use]
pub fn text(plan: &ContextPlan) -> Text<'_> {
    Text::new(plan)
}

/// The plan as one JSON object (`version` 1), indented, without any text of the prompt but a hash per included row.
#[must_use]
pub fn json(plan: &ContextPlan) -> String {
    json::plan(plan, true)
}

/// An explanation as a few lines for people.
#[must_use]
pub fn explanation(explanation: &Explanation) -> Explained<'_> {
    Explained(explanation)
}

/// A change that makes a plan of these limits fit, in words.
#[must_use]
pub fn remedy(remedy: &Remedy, limits: &Limits) -> String {
    match remedy {
        Remedy::RaiseBudget { to } => {
            let most = limits.largest_budget();
            let beyond = if *to > most {
                format!(", more than the {} that this model takes", grouped(most))
            } else {
                String::new()
            };
            format!("raise the prompt budget to {}{beyond}", grouped(*to))
        }
        Remedy::LowerCompletion { to } => format!("lower max_completion to {}", grouped(*to)),
        Remedy::Unpin { id } => format!("unpin {}", text::short(id.as_str())),
        Remedy::Shorten { id, by } => {
            format!("shorten {} by {} tokens", text::short(id.as_str()), grouped(*by))
        }
    }
}

/// A text without anything that a terminal would act on: controls and direction marks become `?`.
#[must_use]
pub fn printable(text: &str) -> String {
    let marks = ['\u{61c}', '\u{200e}', '\u{200f}'];
    let acts = |c: char| {
        c.is_control() || marks.contains(&c) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if acts(c) { '?' } else { c }).collect()
}

/// A printable text of at most 60 characters: enough of an id to know it by.
#[must_use]
pub fn brief(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some(_) => text.chars().take(MOST - 1).map(|c| printable(&c.to_string())).collect::<String>() + "…",
        None => printable(text),
    }
}

impl ContextPlan {
    /// A hash of everything the plan says (blake3 over its compact JSON without this field, 64 hexadecimal digits),
    /// computed when asked for: equal plans have equal fingerprints on any machine (rule O3).
    #[must_use]
    pub fn fingerprint(&self) -> String {
        json::fingerprint(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_is_printed() {
        assert_eq!(printable("a\u{1b}[31m\u{202e}b\nc"), "a?[31m?b?c");
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
