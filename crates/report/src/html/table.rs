//! Tables as a web page without a script, in the style of a plan's page.

use super::Error;
use super::{STYLE, STYLE_HASH, rendered, shown::visible};
use minijinja::{Value, context, value::Serde};
use serde::Serialize;

const NAME: &str = "table.html";
const PAGE: &str = include_str!("table.html");

/// Lines and tables as one self-contained web page, for example the differences between two plans. All texts
/// are escaped.
///
/// ```
/// use context_window_report::TablePage;
///
/// let rows = vec![("left", vec!["m3".into(), "dropped".into()])];
/// let page = TablePage::new("monday → tuesday").with_table(vec!["item".into(), "after".into()], rows);
/// assert!(page.render().unwrap().contains("<td>dropped</td>"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct TablePage {
    title: String,
    lines: Vec<String>,
    tables: Vec<Table>,
}

#[derive(Debug, Clone, Serialize)]
struct Table {
    headings: Vec<String>,
    rows: Vec<(&'static str, Vec<String>)>,
}

impl TablePage {
    /// Creates a page with this title.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Adds lines above the tables.
    #[must_use]
    pub fn with_lines(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.lines.extend(lines);
        self
    }

    /// Adds a table with its headings. Each row has a class (`came`, `left` or empty) and its cells.
    #[must_use]
    pub fn with_table(mut self, headings: Vec<String>, rows: Vec<(&'static str, Vec<String>)>) -> Self {
        self.tables.push(Table { headings, rows });
        self
    }

    /// Renders the page.
    ///
    /// # Errors
    ///
    /// Returns an error if a template of this crate is faulty.
    pub fn render(&self) -> Result<String, Error> {
        let all = |texts: &[String]| texts.iter().map(|text| visible(text)).collect::<Vec<_>>();
        let tables = self.tables.iter().map(|table| Table {
            headings: all(&table.headings),
            rows: table.rows.iter().map(|(class, cells)| (*class, all(cells))).collect(),
        });
        let page = context! {
            style => Value::from_safe_string(STYLE.into()),
            style_hash => STYLE_HASH,
            title => visible(&self.title),
            lines => all(&self.lines),
            tables => Value::from(Serde(tables.collect::<Vec<_>>())),
        };
        rendered(NAME, PAGE, page)
    }
}
