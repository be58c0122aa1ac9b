//! What fills the prompt, at a glance: a grid of cells, tokens by kind, the largest items.

use super::{
    Html,
    bar::{Bar, percent},
    shown::visible,
};
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
        let columns = columns(plan.limits.context_len);
        let by_name = if html.redact { &groups } else { &whole };
        let scale = by_name.kinds.first().map_or(0, |(_, tokens)| *tokens);
        let kinds = by_name.kinds.iter().take(KINDS).map(|(kind, tokens)| {
            Line::new(kind, "", &kind.text(), grouped(*tokens), (*tokens, whole.total, scale))
        });
        let mut kinds: Vec<Line> = kinds.collect();
        if let Some(more) = by_name.kinds.get(KINDS..).filter(|more| !more.is_empty()) {
            let tokens: u64 = more.iter().map(|(_, tokens)| tokens).sum();
            let name = format!("{} kinds more", more.len());
            kinds.push(Line::new(&Kind::Overhead, "", &name, grouped(tokens), (tokens, whole.total, scale)));
        }
        let scale = whole.largest.first().map_or(0, |item| item.tokens.n);
        let largest = whole.largest.iter().map(|item| {
            let name = if html.redact { item.kind.group().text() } else { words::large_item(item) };
            let shares = (item.tokens.n, whole.total, scale);
            Line::new(&item.kind, &short(item.id.as_str()), &cut(&name, 160), number(item.tokens), shares)
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
    fn new(kind: &Kind, id: &str, name: &str, tokens: String, (own, whole, scale): (u64, u64, u64)) -> Self {
        let (class, id, name) = (palette::name(kind), visible(id), visible(name));
        Self {
            class,
            id,
            name,
            tokens,
            percent: percent(own, whole),
            bar: Bar::new(&[(class, own)], scale, scale),
        }
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
    let kinds = composition.kinds.iter();
    let kinds = kinds.map(|(kind, tokens)| (palette::name(kind), palette::sign(kind), kind.text(), *tokens));
    let rest = [
        ("free", palette::FREE, "free".to_owned(), composition.free),
        ("reply", palette::REPLY, "reply reserve".to_owned(), composition.reply),
    ];
    let line = |(class, sign, name, tokens): (_, _, String, u64)| Legend {
        class,
        sign,
        name: visible(&name),
        tokens: grouped(tokens),
        // Of the prompt; what is free or kept for the reply is no part of it.
        percent: if ["free", "reply"].contains(&class) {
            String::new()
        } else {
            percent(tokens, composition.total)
        },
    };
    kinds.chain(rest).filter(|(.., tokens)| *tokens > 0).map(line).collect()
}
