//! What fills the prompt, at a glance: a grid of cells, tokens by kind, the largest items.

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

/// Rows of the grid.
pub(super) const ROWS: usize = 10;

/// Kinds that are listed by themselves; further ones are one line.
const KINDS: usize = 12;

/// Items that are called the largest.
const LARGEST: usize = 5;

#[derive(Debug, Serialize)]
pub(super) struct Overview {
    /// The grid's columns, and the class of each cell in the order of reading.
    columns: usize,
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

/// A row of a table: its name, its tokens and what they are of the whole.
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
        let by_name = if html.redact { &groups } else { &whole };
        let scale = by_name.kinds.first().map_or(0, |(_, tokens)| *tokens);
        let (listed, folded) = by_name.kinds.split_at(KINDS.min(by_name.kinds.len()));
        let more: u64 = folded.iter().map(|(_, tokens)| tokens).sum();
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
    // Of the prompt; what is free or kept for the reply is no part of it.
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
