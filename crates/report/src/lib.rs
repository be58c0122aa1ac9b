//! Reports of a plan: text, Markdown and a web page for people, and lines for snapshot tests. Print the text
//! forms with `{}`; a web page is rendered to a string.
//!
//! ```
//! use context_window::{ContextWindowManager, Conversation, Message, PlanRequest};
//! use context_window_report::{self as report, Explained, Grid, History, Markdown, RowText, Snapshot, Text};
//!
//! # fn main() -> Result<(), context_window::Error> {
//! let manager = ContextWindowManager::for_model("gpt-4o")?;
//! let log = Conversation::from([Message::user("How long do refunds take?")]);
//! let request = PlanRequest::new(&log);
//! let plan = manager.build_plan(&request)?;
//!
//! let text: Text<'_> = report::text(&plan).with_width(100);
//! let markdown: Markdown<'_> = report::markdown(&plan);
//! let grid: Grid<'_> = report::grid(&plan);
//! let snapshot: Snapshot<'_> = report::snapshot(&plan);
//! let history: History<'_> = report::history(&log);
//! println!("{text}\n{markdown}\n{grid}\n{snapshot}\n{history}");
//!
//! let row: RowText = report::row(&plan, plan.find("m0").expect("the question is in"));
//! assert_eq!(row.id, "m0");
//! let explanation = manager.explainer(&request).explain("m0")?;
//! let explained: Explained<'_> = report::explanation(&explanation);
//! assert!(explained.to_string().contains("m0"));
//! # Ok(())
//! # }
//! ```

pub use context_window::text::plain::{dollars, grouped};
use context_window::{
    ContextPlan, Conversation, TokenCount,
    analysis::Explanation,
    conversation::{Compaction, CompactionKind},
    plan::Remedy,
    provider::Limits,
};

mod columns;
mod message;
mod page;
mod percent;
mod row;
mod change;
mod explanation;
mod words;
mod snapshot;
mod history;
pub mod palette;
mod grid;
#[cfg(feature = "html")]
mod html;
mod markdown;
mod text;

pub use change::{ChangeText, change};
pub use columns::{cut, cut_ids, fitted, fitted_id, wrapped};
pub use explanation::Explained;
pub use grid::Grid;
#[doc(hidden)]
pub use grid::columns as grid_columns;
pub use history::History;
#[cfg(feature = "html")]
pub use html::{Error, Html, TablePage};
pub use markdown::{Markdown, markdown_cell};
pub use message::{call_line, message_lines, shown};
pub use percent::{percent, percentages, share, usage_percent};
pub use row::{RowText, repeats, row, section, source, ttl, why};
pub use snapshot::Snapshot;
pub use text::Text;
#[doc(hidden)]
pub use words::large_item;
pub use words::{advice, advised, conflict, largest, sentence, tenths};

/// Renders the composition of the prompt as a grid of cells. The default width is 80 columns; set it with
/// [`Grid::with_width`].
#[must_use]
pub fn grid(plan: &ContextPlan) -> Grid<'_> {
    Grid::new(plan)
}

/// Renders the plan as Markdown for comments on pull requests. It contains the composition of the prompt, and
/// the excluded items with their reasons.
#[must_use]
pub fn markdown(plan: &ContextPlan) -> Markdown<'_> {
    Markdown::new(plan)
}

/// Renders the plan as a text report. The default width is 80 columns; set it with [`Text::with_width`].
#[must_use]
pub fn text(plan: &ContextPlan) -> Text<'_> {
    Text::new(plan)
}

/// Renders the plan as lines for a snapshot test.
///
/// Each included item has a line, in prompt order, with its section, id, kind, tokens and reason. Then follow
/// lines for excluded items, notices, sections and parts of the overhead. The last line is the total.
///
/// The lines contain no text of the prompt. Equal plans give equal lines on every machine. The columns are
/// not aligned, so a change in one row changes no other line.
///
/// ```
/// use context_window::{ContextWindowManager, Conversation, Message, PlanRequest, RequestLimits};
/// use context_window_report as report;
///
/// # fn main() -> Result<(), context_window::Error> {
/// let manager = ContextWindowManager::for_model("gpt-4o")?;
/// let log = Conversation::from([Message::system("Be brief."), Message::user("How are you?")]);
/// let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(50)))?;
/// insta::assert_snapshot!(report::snapshot(&plan), @r"
/// in   System + pins  m0  system_text  7  required: system text
/// in   Conversation   m1  message  8  required: live question
/// System + pins  7 of 7
/// Conversation   8 of 8
/// Documents      0 of 0
/// Overhead       reply header 3
/// Total          18 of 50, 32 free
/// ");
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn snapshot(plan: &ContextPlan) -> Snapshot<'_> {
    Snapshot::new(plan)
}

/// Renders the plan as one self-contained web page. It contains no foreign script, font or picture, and sends
/// no request.
///
/// ```
/// use context_window::{ContextWindowManager, Conversation, Message, PlanRequest};
/// use context_window_report::{self as report, Error, Html};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let manager = ContextWindowManager::for_model("gpt-4o")?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let plan = manager.build_plan(&PlanRequest::new(&log))?;
/// let html: Html<'_> = report::html(&plan).with_title("Refunds");
/// let page: Result<String, Error> = html.render();
/// assert!(page?.contains("<title>Refunds"));
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "html")]
#[must_use]
pub fn html(plan: &ContextPlan) -> Html<'_> {
    Html::new(plan)
}

/// Renders an explanation as a few lines of text for people.
#[must_use]
pub fn explanation(explanation: &Explanation) -> Explained<'_> {
    Explained(explanation, false)
}

/// Describes a change that makes an overflowing plan with these limits fit.
#[must_use]
pub fn remedy(remedy: &Remedy, limits: &Limits) -> String {
    match remedy {
        Remedy::RaiseBudget { to } => {
            let most = limits.largest_budget();
            let beyond = if *to > most {
                format!(", more than the {} that this model supports", grouped(most))
            } else {
                String::new()
            };
            format!("raise the prompt budget to {}{beyond}", grouped(*to))
        }
        Remedy::LowerCompletion { to } => {
            format!("lower the reply reserve (max_completion) to {}", grouped(*to))
        }
        Remedy::Unpin { id } => format!("unpin {}", row::short(id.as_str())),
        Remedy::Shorten { id, by } => {
            format!("shorten {} by {} tokens", row::short(id.as_str()), grouped(*by))
        }
    }
}

/// Renders a conversation as Markdown. It contains every message in full, including archived ones, and a
/// marker for each compaction and rewind. Texts are quoted, so no text can pass for a heading or a marker.
#[must_use]
pub fn history(log: &Conversation) -> History<'_> {
    History::new(log)
}

/// Formats a number of tokens with the mark of its certainty: `>=` at least, `<=` at most, `~` an estimate.
#[must_use]
pub fn tokens(tokens: TokenCount) -> String {
    row::number(tokens)
}

/// Describes a compaction in one line: `Context compacted #1: 45 messages archived, ~142,000 tokens freed`.
#[must_use]
pub fn compaction(record: &Compaction) -> String {
    let archived = record.messages_archived;
    let messages = if archived == 1 { "message" } else { "messages" };
    let freed = match record.freed() {
        0 => String::new(),
        freed => format!(", ~{} tokens freed", grouped(freed)),
    };
    let how = match record.kind {
        CompactionKind::Fresh => "Started fresh".to_owned(),
        CompactionKind::SlidingWindow => format!("Context compacted #{} without a summary", record.number),
        CompactionKind::Digest => format!("Context compacted #{} by a digest", record.number),
        CompactionKind::Summary => format!("Context compacted #{}", record.number),
    };
    format!("{how}: {} {messages} archived{freed}", grouped(archived))
}

/// Replaces every character that a terminal would interpret, such as controls and direction marks, with `?`.
#[must_use]
pub fn printable(text: &str) -> String {
    // Direction marks outside the two ranges below: Arabic letter mark, left-to-right mark, right-to-left
    // mark.
    let marks = ['\u{61c}', '\u{200e}', '\u{200f}'];
    let acts = |c: char| {
        c.is_control() || marks.contains(&c) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if acts(c) { '?' } else { c }).collect()
}

/// Shortens a text to at most 60 printable characters, enough to recognise an id. A longer text loses its
/// middle, because ids often differ at their end.
#[must_use]
pub fn brief(text: &str) -> String {
    const MOST: usize = 60;
    // Cut first: an id can be a megabyte long.
    printable(&columns::middle_cut(text, MOST).unwrap_or_else(|| text.to_owned()))
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
