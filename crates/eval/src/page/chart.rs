//! Curves in a coordinate system, as numbers for an SVG picture.

use context_window_recall::log2;
use serde::Serialize;

/// The size of a chart, in SVG units, and its margins: left, right, top, bottom.
const SIZE: (u64, u64) = (640, 320);
const MARGINS: (u64, u64, u64, u64) = (44, 16, 12, 40);

/// The most marks on the horizontal axis.
const MARKS: usize = 8;

/// A chart of several curves. The vertical axis is a share from 0 to 100 %.
#[derive(Serialize)]
pub(super) struct Chart {
    width: u64,
    height: u64,
    left: u64,
    right: u64,
    bottom: u64,
    /// The label of the horizontal axis.
    label: &'static str,
    marks: Vec<Mark>,
    levels: Vec<Mark>,
    curves: Vec<Curve>,
}

/// A mark on an axis: its position and its text.
#[derive(Serialize)]
struct Mark {
    at: u64,
    text: String,
}

/// The curve of one policy.
#[derive(Serialize)]
struct Curve {
    name: String,
    /// The number of its colour and dashes.
    style: usize,
    /// The points of a polyline, separated by spaces.
    line: String,
    points: Vec<Point>,
}

#[derive(Serialize)]
struct Point {
    x: u64,
    y: u64,
    title: String,
}

/// A named series: horizontal value, share in per mille, and description of each point.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) style: usize,
    pub(super) points: Vec<(u64, u64, String)>,
}

impl Chart {
    /// Creates a chart. The horizontal axis is logarithmic: it has a mark for each of the smallest values
    /// that are different enough, with the text that `text` returns.
    ///
    /// Returns `None` if there are fewer than two different horizontal values.
    pub(super) fn new(
        label: &'static str,
        series: Vec<Series>,
        text: impl Fn(u64) -> String,
    ) -> Option<Self> {
        let mut values: Vec<u64> =
            series.iter().flat_map(|one| one.points.iter().map(|(value, ..)| (*value).max(1))).collect();
        values.sort_unstable();
        values.dedup();
        let (&first, &last) = (values.first()?, values.last().filter(|_| values.len() > 1)?);
        let (left, right, top, bottom) = MARGINS;
        let across = SIZE.0 - left - right;
        // Budgets double from one to the next, so a logarithmic axis spaces them evenly.
        let x = |value: u64| left + across * log2(value.max(1), first) / log2(last, first).max(1);
        let y = |per_mille: u64| top + (SIZE.1 - top - bottom) * (1_000 - per_mille.min(1_000)) / 1_000;
        let mut marks: Vec<Mark> = Vec::new();
        for value in values {
            // Texts of marks that are closer together would overlap.
            if marks.last().is_none_or(|last| x(value) >= last.at + across / MARKS as u64) {
                marks.push(Mark { at: x(value), text: text(value) });
            }
        }
        let curves = series.into_iter().map(|one| {
            let points: Vec<Point> = one
                .points
                .into_iter()
                .map(|(value, share, title)| Point { x: x(value), y: y(share), title })
                .collect();
            let line: Vec<String> = points.iter().map(|point| format!("{},{}", point.x, point.y)).collect();
            Curve { name: one.name, style: one.style, line: line.join(" "), points }
        });
        Some(Self {
            width: SIZE.0,
            height: SIZE.1,
            left,
            right: SIZE.0 - right,
            bottom: SIZE.1 - bottom,
            label,
            levels: (0..=4).map(|nth| Mark { at: y(nth * 250), text: format!("{} %", nth * 25) }).collect(),
            marks,
            curves: curves.collect(),
        })
    }
}
