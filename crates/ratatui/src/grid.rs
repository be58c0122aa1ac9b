//! The composition of the prompt as a grid of cells, with a legend and the largest items.

use super::Theme;
use context_window::{ContextPlan, plan::Kind};
use context_window_report as report;
use context_window_report::{cut, cut_ids, fitted, grouped, palette};
use ratatui_core::{buffer::Buffer, layout::Rect, style::Style, widgets::Widget};

/// The prompt budget and the reply reserve as cells, each with the sign and colour of its kind of tokens. A
/// legend lists the tokens by kind. If there is room, the largest items follow below or at the right.
///
/// The grid has 10 rows and usually 10 columns. For a context length of at least 1,000,000 tokens, a wide
/// area has 20 columns. A narrow area has 5 columns.
///
/// ```
/// # use context_window::*;
/// # use context_window_ratatui::PromptGrid;
/// # use ratatui_core::{buffer::Buffer, layout::Rect, widgets::Widget};
/// # let mut model = Model::custom("small");
/// # model.tokenizer = Some("chars/4".into());
/// # let manager = ContextWindowManager::configured(model, Config::default())?;
/// # let log = Conversation::from([Message::user("How long do refunds take?")]);
/// # let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(20)))?;
/// # let area = Rect::new(0, 0, 60, 10);
/// # let mut buffer = Buffer::empty(area);
/// PromptGrid::new(&plan).render(area, &mut buffer);
/// # let line: String = (0..60).map(|x| buffer[(x, 0)].symbol()).collect();
/// assert!(line.starts_with(" U U U "));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PromptGrid<'a> {
    plan: &'a ContextPlan,
    theme: Theme,
}

const ROWS: u16 = PromptGrid::ROWS;

/// The columns of the legend.
const LEGEND: u16 = 30;
/// The columns of the largest items, if they are at the right of the legend.
const LARGEST: u16 = 24;

impl PromptGrid<'_> {
    /// The number of cell rows. A lower area cuts off the last rows.
    pub const ROWS: u16 = 10;
}

impl<'a> PromptGrid<'a> {
    /// Creates the grid of this plan.
    #[must_use]
    pub fn new(plan: &'a ContextPlan) -> Self {
        Self { plan, theme: Theme::default() }
    }

    /// Sets the styles.
    #[must_use]
    pub fn with_theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }

    /// Returns the number of cells in a row for an area of `width` screen columns.
    fn columns(&self, width: u16) -> u16 {
        match (width, report::grid_columns(self.plan.limits.model_context_len)) {
            (..51, _) => 5,
            (71.., 20) => 20,
            _ => 10,
        }
    }
}

impl Widget for PromptGrid<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let composition = self.plan.composition(12);
        let groups = composition.by_group();
        let columns = self.columns(area.width);
        let divided = groups.cells(usize::from(columns * ROWS));
        let kinds = groups.kinds.iter().zip(&divided.kinds);
        let kinds = kinds.flat_map(|((kind, _), count)| {
            std::iter::repeat_n((palette::sign(kind), self.theme.kind(kind)), *count)
        });
        let rest = [(palette::FREE, divided.free), (palette::REPLY, divided.reply)];
        let rest =
            rest.into_iter().flat_map(|(sign, count)| std::iter::repeat_n((sign, self.theme.faint), count));
        // Each cell takes two screen columns: a blank and its sign.
        for (at, (sign, style)) in (0..).zip(kinds.chain(rest)) {
            let (x, y): (u16, u16) = (at % columns, at / columns);
            if y < area.height && 2 * x + 1 < area.width {
                buffer.set_stringn(area.x + 2 * x + 1, area.y + y, sign.to_string(), 1, style);
            }
        }
        let legend_x = area.x + 2 * columns + 2;
        let parts: Vec<u64> = groups.kinds.iter().map(|(_, tokens)| *tokens).collect();
        let percents = report::percentages(&parts, groups.total);
        let kinds = groups.kinds.iter().zip(percents).map(|((kind, tokens), percent)| {
            (Some(palette::sign(kind)), kind.text(), *tokens, percent, self.theme.kind(kind))
        });
        // Shares are shares of the prompt. Free tokens and the reply reserve are not part of it.
        let none = String::new;
        let rest = [
            (Some(palette::FREE), "free".to_owned(), groups.free, none(), self.theme.faint),
            (Some(palette::REPLY), "reply reserve".to_owned(), groups.reply, none(), self.theme.faint),
        ];
        let right = legend_x + LEGEND + 2;
        let has_right = area.right() >= right + LARGEST;
        let mut legend: Vec<_> = kinds.chain(rest).filter(|(_, _, tokens, ..)| *tokens > 0).collect();
        // Rows that remain list single tools and sources by name.
        let mut spare = usize::from(ROWS).saturating_sub(legend.len());
        // Three rows stay free for the largest items, which are drawn below the legend here.
        if !has_right && area.height <= ROWS + 1 {
            spare = spare.saturating_sub(3).min(2);
        }
        for (group, _) in &groups.kinds {
            let by_name = |(kind, tokens): &(Kind, u64)| {
                let name =
                    kind.text().split_once(": ").map(|(_, name)| format!("  {}", report::brief(name)))?;
                let percent = report::share(*tokens, groups.total);
                Some((None, name, *tokens, percent, self.theme.kind(kind)))
            };
            let of_group = composition.kinds.iter().filter(|(kind, _)| kind.group() == *group);
            let names: Vec<_> = of_group.filter_map(by_name).take(spare).collect();
            let place = legend.iter().position(|(_, name, ..)| *name == group.text());
            if let Some(place) = place {
                spare -= names.len();
                let rest = legend.split_off(place + 1);
                legend.extend(names.into_iter().chain(rest));
            }
        }
        let listed = u16::try_from(legend.len()).unwrap_or(u16::MAX).min(ROWS);
        let left = usize::from(area.right().saturating_sub(legend_x));
        let names = if has_right { LEGEND.into() } else { left }.saturating_sub(16).clamp(10, 16);
        let cut_names = cut_ids(legend.iter().zip(1..).map(|((_, name, ..), at)| (at, name.as_str())), names);
        for (((sign, whole, tokens, percent, style), name), y) in
            legend.into_iter().zip(cut_names).zip(area.top()..area.bottom().min(area.top() + ROWS))
        {
            let mark = sign.unwrap_or(' ');
            let x = buffer.set_stringn(legend_x, y, format!("{mark} "), left, style).0;
            // Only names of tools and sources need shortening: only they may begin alike.
            let name = fitted(if sign.is_some() { &whole } else { &name }, names);
            let text = format!("{name} {:>7} {percent:>5}", grouped(tokens));
            buffer.set_stringn(x, y, text, left.saturating_sub(2), Style::new());
        }
        let largest = if has_right {
            Rect { x: right, width: area.right() - right, ..area }
        } else if area.height > ROWS + 1 {
            Rect { y: area.y + ROWS + 1, height: area.height - ROWS - 1, ..area }
        } else {
            // The rows below the legend.
            let below = listed + 1;
            let height = area.height.min(ROWS).saturating_sub(below);
            Rect { x: legend_x, y: area.y + below, width: area.right().saturating_sub(legend_x), height }
        };
        let ids: Vec<String> =
            composition.largest.iter().map(|item| report::printable(item.id.as_str())).collect();
        // Numbers make cut ids unique if they would look the same.
        let ids = cut_ids((1..).zip(ids.iter().map(String::as_str)), 7);
        for ((item, id), y) in composition.largest.iter().zip(ids).zip(largest.top()..largest.bottom()) {
            let style = self.theme.kind(&item.kind);
            let id = fitted(&id, 7) + " ";
            let x = buffer.set_stringn(largest.x, y, id, largest.width.into(), style).0;
            // In a narrow area, the kind is more useful than another number.
            let tokens = match largest.width {
                ..45 => String::new(),
                _ => format!("{:>8} ", report::tokens(item.tokens)),
            };
            let percent = report::share(item.tokens.tokens, composition.total);
            let text = format!("{tokens}{percent:>4} {}", report::large_item(item));
            let room = usize::from(largest.right().saturating_sub(x));
            buffer.set_stringn(x, y, cut(&text, room), room, Style::new());
        }
    }
}
