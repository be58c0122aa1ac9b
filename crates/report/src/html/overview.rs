//! An overview of the prompt: a grid of cells, tokens by kind, and the largest items.

use super::{Html, bar::Bar, shown::visible};
use crate::{
    advice, cut,
    grid::columns,
    palette,
    row::{number, short},
    words,
};
use context_window::{
    plan::{Composition, Kind},
    text::plain::grouped,
};
use serde::Serialize;

/// The number of rows of the grid.
pub(super) const ROWS: usize = 10;

/// The maximum number of kinds in the list. The others share one line.
const KINDS: usize = 12;

/// The number of largest items in the list.
const LARGEST: usize = 5;

#[derive(Debug, Serialize)]
pub(super) struct Overview {
    /// The number of cells per row.
    columns: usize,
    /// The cells in reading order, each with the class of its kind.
    cells: Vec<Cell>,
    legend: Vec<Legend>,
    kinds: Vec<Line>,
    largest: Vec<Line>,
    advice: String,
}

#[derive(Debug, Serialize)]
struct Cell {
    class: &'static str,
    x: usize,
    y: usize,
}

#[derive(Debug, Serialize)]
struct Legend {
    class: &'static str,
    sign: char,
    name: String,
    tokens: String,
    percent: String,
}

/// A table row with a name, its tokens and their share of the whole.
#[derive(Debug, Serialize)]
struct Line {
    class: &'static str,
    id: String,
    name: String,
    tokens: String,
    percent: String,
    bar: Bar,
}

impl Overview {
    pub(super) fn new(html: &Html<'_>) -> Self {
        let plan = html.plan;
        let whole = plan.composition(LARGEST);
        let groups = whole.by_group();
        let columns = columns(plan.limits.model_context_len);
        // Names of tools and sources are texts of the session, so a redacted page shows only groups of kinds.
        let by_name = if html.redact { &groups } else { &whole };
        let scale = by_name.kinds.first().map_or(0, |(_, tokens)| *tokens);
        let (listed, folded) = by_name.kinds.split_at(KINDS.min(by_name.kinds.len()));
        let more: u64 = folded.iter().map(|(_, tokens)| tokens).sum();
        // The folded kinds are a part of their own, so that the shares sum to 100 per cent.
        let parts: Vec<u64> = listed.iter().map(|(_, tokens)| *tokens).chain([more]).collect();
        let mut percents = words::percentages(&parts, whole.total).into_iter();
        let kinds = listed.iter().zip(percents.by_ref()).map(|((kind, tokens), percent)| {
            Line::new(kind, ("", &kind.text()), (grouped(*tokens), percent), (*tokens, scale))
        });
        let mut kinds: Vec<Line> = kinds.collect();
        if !folded.is_empty() {
            let (name, percent) =
                (format!("{} kinds more", folded.len()), percents.next().unwrap_or_default());
            kinds.push(Line::new(&Kind::Overhead, ("", &name), (grouped(more), percent), (more, scale)));
        }
        let scale = whole.largest.first().map_or(0, |item| item.tokens.tokens);
        let largest = whole.largest.iter().map(|item| {
            let name = if html.redact { item.kind.group().text() } else { words::large_item(item) };
            let percent = words::share(item.tokens.tokens, whole.total);
            let names = (&*short(item.id.as_str()), &*cut(&name, 160));
            Line::new(&item.kind, names, (number(item.tokens), percent), (item.tokens.tokens, scale))
        });
        Self {
            columns,
            cells: cells(&groups, columns),
            legend: legend(&groups),
            kinds,
            largest: largest.collect(),
            advice: if html.redact { String::new() } else { visible(&advice(plan).unwrap_or_default()) },
        }
    }

    pub(super) fn cells(&self) -> usize {
        self.columns * ROWS
    }
}

impl Line {
    fn new(
        kind: &Kind,
        (id, name): (&str, &str),
        (tokens, percent): (String, String),
        (own, scale): (u64, u64),
    ) -> Self {
        let (class, id, name) = (palette::name(kind), visible(id), visible(name));
        Self { class, id, name, tokens, percent, bar: Bar::new(&[(class, own)], scale, scale) }
    }
}

fn cells(composition: &Composition, columns: usize) -> Vec<Cell> {
    let divided = composition.cells(columns * ROWS);
    let kinds = composition.kinds.iter().zip(&divided.kinds);
    let kinds = kinds.flat_map(|((kind, _), count)| std::iter::repeat_n(palette::name(kind), *count));
    let rest = [("free", divided.free), ("reply", divided.reply)];
    let rest = rest.into_iter().flat_map(|(class, count)| std::iter::repeat_n(class, count));
    let place = |(at, class)| Cell { class, x: at % columns, y: at / columns };
    kinds.chain(rest).enumerate().map(place).collect()
}

fn legend(composition: &Composition) -> Vec<Legend> {
    let parts: Vec<u64> = composition.kinds.iter().map(|(_, tokens)| *tokens).collect();
    // Free tokens and the reply reserve are not part of the prompt, so they get no percentage.
    let percents = words::percentages(&parts, composition.total).into_iter();
    let kinds = composition.kinds.iter().zip(percents).map(|((kind, tokens), percent)| {
        (palette::name(kind), palette::sign(kind), kind.text(), *tokens, percent)
    });
    let rest = [
        ("free", palette::FREE, "free".to_owned(), composition.free, String::new()),
        ("reply", palette::REPLY, "reply reserve".to_owned(), composition.reply, String::new()),
    ];
    let line = |(class, sign, name, tokens, percent): (_, _, String, u64, String)| Legend {
        class,
        sign,
        name: visible(&name),
        tokens: grouped(tokens),
        percent,
    };
    kinds.chain(rest).filter(|(_, _, _, tokens, _)| *tokens > 0).map(line).collect()
}
