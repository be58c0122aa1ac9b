//! A plan as Markdown for comments on pull requests.

use super::{
    grouped,
    row::{Rows, number, short},
    words,
};
use context_window::{ContextPlan, plan::Decision};
use std::fmt::{self, Write as _};

/// The maximum number of rows for excluded items. Further rows become a count.
const MOST_ROWS: usize = 20;

/// A plan as Markdown. Print it with `{}`.
#[derive(Debug, Clone, Copy)]
pub struct Markdown<'a> {
    plan: &'a ContextPlan,
}

impl<'a> Markdown<'a> {
    pub(super) fn new(plan: &'a ContextPlan) -> Self {
        Self { plan }
    }
}

impl fmt::Display for Markdown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        let percent = words::percent(plan.estimated_tokens_total.tokens, plan.prompt_budget);
        let (total, budget) = (number(plan.estimated_tokens_total), grouped(plan.prompt_budget));
        writeln!(f, "**{total} / {budget} tokens** ({percent}), {}\n", markdown_cell(&short(&plan.model)))?;
        if let Some(overflow) = &plan.overflow {
            writeln!(
                f,
                "**Over budget by {} tokens.** Any one of these makes it fit:\n",
                grouped(overflow.tokens)
            )?;
            for remedy in &overflow.remedies {
                writeln!(f, "- {}", markdown_cell(&super::remedy(remedy, &plan.limits)))?;
            }
            writeln!(f)?;
        }
        let composition = plan.composition(5);
        writeln!(f, "| contents of the prompt | tokens | share |\n| --- | ---: | ---: |")?;
        // The folded kinds are part of the table, so that the shares sum to 100 per cent.
        let kinds = words::kinds(&composition, 10).concat();
        let parts: Vec<u64> = kinds.iter().map(|(_, tokens)| *tokens).collect();
        let shares = words::percentages(&parts, composition.total);
        for ((name, tokens), share) in kinds.into_iter().zip(shares) {
            writeln!(f, "| {} | {} | {share} |", markdown_cell(&name), grouped(tokens))?;
        }
        writeln!(f, "\n| largest items | | tokens | share |\n| --- | --- | ---: | ---: |")?;
        for item in &composition.largest {
            let share = words::share(item.tokens.tokens, composition.total);
            let what = super::cut(&words::large_item(item), 80);
            let (id, tokens) = (markdown_cell(&short(item.id.as_str())), number(item.tokens));
            writeln!(f, "| {id} | {} | {tokens} | {share} |", markdown_cell(&what))?;
        }
        let out = &plan.excluded;
        if !out.is_empty() {
            let count: u64 = out.iter().map(|item| item.count).sum();
            writeln!(f, "\n| not in the prompt: {} | tokens | why |\n| --- | ---: | --- |", grouped(count))?;
            let rows = Rows::new(plan);
            for item in out.iter().take(MOST_ROWS) {
                let row = rows.row(Decision::Excluded(item));
                writeln!(
                    f,
                    "| {} | {} | {} |",
                    markdown_cell(&row.id),
                    markdown_cell(&row.tokens),
                    markdown_cell(&row.why)
                )?;
            }
            if let Some(more) = out.len().checked_sub(MOST_ROWS).filter(|more| *more > 0) {
                writeln!(f, "| {} rows more | | |", grouped(more as u64))?;
            }
        }
        if !plan.notices.is_empty() {
            writeln!(f)?;
        }
        for notice in &plan.notices {
            writeln!(f, "- {} {}", notice.rule(), markdown_cell(&words::sentence(notice)))?;
        }
        Ok(())
    }
}

/// Escapes a text for a table cell or a list item, so that nothing in it is Markdown or HTML. Line breaks and
/// tabs become spaces.
#[must_use]
pub fn markdown_cell(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    // Line breaks become spaces first, because `printable` would turn them into question marks.
    for c in super::printable(&text.replace(['\n', '\r', '\t'], " ")).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' | '~' | '!' | '@' => {
                // For example, an at sign would notify a person in a comment.
                let _ = write!(escaped, "&#{};", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::markdown_cell;

    #[test]
    fn no_text_is_markup() {
        assert_eq!(markdown_cell("a|b\n<c> @d `e`"), "a&#124;b &lt;c> &#64;d &#96;e&#96;");
    }
}
