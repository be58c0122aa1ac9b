//! Widgets of real plans: their text, their colours, and all sizes.

use context_window::{
    ContextPlan, ContextWindowManager, RequestLimits,
    conversation::Compaction,
    usage::{ContextUsage, Level},
};
use context_window_formats::Session;
use context_window_ratatui::{
    CompactionMarker, ContextPreview, ListRow, PreviewState, SectionGauge, Sign, StatusLine, Theme, UsageBar,
};
use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier},
    widgets::{StatefulWidget, Widget},
};

mod interactive;
mod transcript;

#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/widgets.rs"]
mod example;

#[test]
fn documented_example_matches_the_widget() {
    let page = std::fs::read_to_string(crate::support::root().join("docs/reference/screen.md")).unwrap();
    assert!(
        page.contains(&format!("```text\n{}```", example::page().unwrap())),
        "docs/reference/screen.md shows another one"
    );
}

fn session(name: &str) -> Session {
    Session::from_json(
        &std::fs::read_to_string(crate::support::root().join(format!("examples/{name}.json"))).unwrap(),
    )
    .unwrap()
}

fn plan(name: &str, limits: Option<RequestLimits>) -> ContextPlan {
    let session = session(name);
    let manager = ContextWindowManager::for_model("gpt-4o").unwrap();
    let request = session.request();
    let request = match limits {
        Some(limits) => request.with_limits(limits),
        None => request,
    };
    manager.build_plan(&request).unwrap()
}

fn record() -> Compaction {
    let session = session("long-talk");
    session.log.compactions().next().unwrap().clone()
}

fn drawn(width: u16, height: u16, draw: impl FnOnce(Rect, &mut Buffer)) -> Buffer {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    draw(area, &mut buffer);
    buffer
}

fn text(buffer: &Buffer) -> String {
    let line = |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..buffer.area.height).map(|y| line(y).trim_end().to_owned() + "\n").collect()
}

/// Returns the usage at the three levels, from one conversation in windows of three sizes.
fn levels() -> [ContextUsage; 3] {
    [128_000, 520, 400].map(|window| {
        let mut limits = RequestLimits::new();
        (limits.model_context_len, limits.max_completion_tokens) = (Some(window), Some(64));
        plan("long-talk", Some(limits)).usage
    })
}

#[test]
fn widgets_match_their_snapshots() {
    for width in [40, 80, 120] {
        let all = drawn(width, 26, |area, buffer| {
            let row = |y, height| Rect { y, height, ..area };
            for (usage, y) in levels().iter().zip([0, 3, 6]) {
                StatusLine::new(usage).render(row(y, 1), buffer);
                UsageBar::new(usage).render(row(y + 1, 2), buffer);
            }
            let plan = plan("support-chat", Some(RequestLimits::prompt_budget(400)));
            for (section, y) in plan.sections.iter().zip(9..) {
                SectionGauge::new(section).render(row(y, 1), buffer);
            }
            let record = record();
            CompactionMarker::new(&record).render(row(12, 1), buffer);
            CompactionMarker::new(&record).with_expanded(true).render(row(13, 7), buffer);
            let mut state = PreviewState { selected: 13, offset: 0 };
            ContextPreview::new(&plan).render(row(20, 6), buffer, &mut state);
        });
        insta::assert_snapshot!(format!("widgets_{width}"), text(&all));
    }
}

#[test]
fn the_status_line_is_tokens_of_budget() {
    let plan = plan("support-chat", Some(RequestLimits::prompt_budget(400)));
    let line = StatusLine::new(&plan.usage).line().to_string();
    assert_eq!(line, "ctx tokens: 370 / 400 (92 % of budget)");
    assert_eq!((plan.estimated_tokens_total.tokens, plan.prompt_budget), (370, 400));
}

#[test]
fn levels_are_green_amber_and_red_and_named() {
    let expected =
        [(Level::Normal, Color::Green), (Level::Approaching, Color::Yellow), (Level::AtLimit, Color::Red)];
    for (usage, (level, colour)) in levels().iter().zip(expected) {
        assert_eq!(usage.level, level);
        let bar = drawn(80, 2, |area, buffer| UsageBar::new(usage).render(area, buffer));
        let x = (0..80).find(|x| bar[(*x, 0)].symbol() == "█").unwrap();
        assert_eq!(bar[(x, 0)].fg, colour);
        let line = drawn(120, 1, |area, buffer| StatusLine::new(usage).render(area, buffer));
        // Red is for a prompt over its budget.
        let fits = if level == Level::AtLimit { Color::Yellow } else { colour };
        assert!(usage.prompt_tokens <= usage.budget);
        assert_eq!(line[(0, 0)].fg, fits);
        let mut over = *usage;
        over.budget = over.prompt_tokens - 1;
        let line_over = drawn(120, 1, |area, buffer| StatusLine::new(&over).render(area, buffer));
        assert_eq!(line_over[(0, 0)].fg, Color::Red);
        // Colour is never the only sign.
        assert_eq!(text(&line).contains("limit"), level != Level::Normal, "{}", text(&line));
        assert_eq!(text(&bar).contains('!'), level != Level::Normal, "{}", text(&bar));
    }
}

#[test]
fn a_plain_theme_has_no_colour_and_the_same_text() {
    let (usage, plan, record) = (levels()[2], plan("overflow", None), record());
    let page = |theme: Theme| {
        drawn(100, 20, |area, buffer| {
            let row = |y, height| Rect { y, height, ..area };
            StatusLine::new(&usage).with_theme(theme).render(row(0, 1), buffer);
            UsageBar::new(&usage).with_theme(theme).render(row(1, 2), buffer);
            SectionGauge::new(&plan.sections[0]).with_theme(theme).render(row(3, 1), buffer);
            CompactionMarker::new(&record).with_expanded(true).with_theme(theme).render(row(4, 7), buffer);
            ContextPreview::new(&plan).with_theme(theme).render(
                row(11, 9),
                buffer,
                &mut PreviewState::default(),
            );
        })
    };
    let (coloured, plain) = (page(Theme::colours()), page(Theme::plain()));
    assert_eq!(text(&coloured), text(&plain));
    assert!(plain.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(coloured.content().iter().any(|cell| cell.fg == Color::Red));
}

#[test]
fn scrolled_preview_shows_every_row_once() {
    let plan = plan("support-chat", Some(RequestLimits::prompt_budget(400)));
    let (mut state, mut seen) = (PreviewState::default(), Vec::new());
    for selected in 0..plan.row_count() {
        state.selected = selected;
        let view = drawn(90, 4, |area, buffer| ContextPreview::new(&plan).render(area, buffer, &mut state));
        let lines: Vec<u16> =
            (1..4).filter(|y| view[(0, *y)].modifier.contains(Modifier::REVERSED)).collect();
        assert_eq!(lines.len(), 1, "one row is selected\n{}", text(&view));
        seen.push(text(&view).lines().nth(usize::from(lines[0])).unwrap().to_owned());
    }
    for (at, line) in seen.iter().enumerate() {
        let row = plan.row_at(at).unwrap();
        assert!(line.starts_with(Sign::from_row(row).symbol()), "{line}");
    }
    let mut once = seen.clone();
    once.dedup();
    assert_eq!(once, seen);
    state.selected = usize::MAX;
    drawn(90, 4, |area, buffer| ContextPreview::new(&plan).render(area, buffer, &mut state));
    assert_eq!(state, PreviewState { selected: 14, offset: 12 });

    let some = [13, 0, 14].map(ListRow::Item);
    let view = drawn(90, 5, |area, buffer| {
        ContextPreview::new(&plan).with_rows(&some).render(area, buffer, &mut PreviewState::default());
    });
    let ids: Vec<&str> = [1, 2, 3].map(|y| ["- care", "+ s0", "- hours"][y - 1]).to_vec();
    for (line, id) in text(&view).lines().skip(1).zip(ids) {
        assert!(line.starts_with(id), "{line}");
    }
}

/// An excluded and selected row has the terminal's own colours, reversed, because dark grey on grey would be
/// unreadable.
#[test]
fn a_selected_row_can_be_read() {
    let plan = plan("support-chat", Some(RequestLimits::prompt_budget(400)));
    let mut state = PreviewState { selected: usize::MAX, offset: 0 };
    let theme = Theme::colours();
    let view = drawn(90, 5, |area, buffer| {
        ContextPreview::new(&plan).with_theme(theme).render(area, buffer, &mut state)
    });
    let row = text(&view).lines().position(|line| line.starts_with("- hours")).unwrap();
    for x in 0..90 {
        let cell = &view[(x, row as u16)];
        assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset), "{x}");
        assert!(cell.modifier.contains(Modifier::REVERSED));
    }
    // Included rows have the colour of their kind, and other excluded rows are faint.
    let other = text(&view).lines().position(|line| line.starts_with("- care")).unwrap();
    assert_eq!(view[(2, other as u16)].fg, Color::DarkGray);
}

/// A larger part never has a shorter bar, any part has at least one column, and the whole fills all columns.
#[test]
fn bars_match_their_token_counts() {
    let (mut plan, mut last) = (plan("support-chat", None), 0);
    let section = &mut plan.sections[1];
    for used in 0..=200 {
        (section.used, section.budget) = (used, 100);
        let bar = drawn(70, 1, |area, buffer| SectionGauge::new(section).render(area, buffer));
        let (full, empty) = (text(&bar).matches('█').count(), text(&bar).matches('░').count());
        assert!(full >= last, "{used}");
        assert_eq!(full > 0, used > 0);
        assert_eq!(empty == 0, used >= 100, "{used}: {full} full, {empty} empty");
        last = full;
    }
    section.used = u64::MAX;
    section.budget = 0;
    drawn(70, 1, |area, buffer| SectionGauge::new(section).render(area, buffer));
}

#[test]
fn marker_takes_its_stated_rows() {
    let mut record = record();
    for summary in [
        None,
        Some("one\n\ntwo"),
        Some("日本語 👩‍👩‍👧 e\u{301} \u{1b}[31m \u{202e} and a very long line that goes on"),
    ] {
        record.summary = summary.map(str::to_owned);
        for expanded in [false, true] {
            for columns in [1, 5, 30, 60, 200] {
                let marker = CompactionMarker::new(&record).with_expanded(expanded);
                for line in marker.lines(columns) {
                    assert!(
                        !line.to_string().contains(|c: char| c.is_control() || c == '\u{202e}'),
                        "{line}"
                    );
                }
                let height = marker.height(columns);
                let view = drawn(columns, height + 2, |area, buffer| marker.render(area, buffer));
                let lines: Vec<String> = text(&view).lines().map(str::to_owned).collect();
                assert!(lines[usize::from(height)..].iter().all(String::is_empty), "{lines:?}");
                assert!(!text(&view).contains(['\u{1b}', '\u{202e}']));
            }
        }
    }
}

/// Widgets draw only inside their area, for any area, including an empty one and one away from the corner.
#[test]
fn nothing_is_drawn_outside_of_its_area() {
    let (usage, plan, record) = (levels()[1], plan("support-chat", None), record());
    let whole = Rect::new(0, 0, 50, 12);
    for area in (0..40).flat_map(|width| (0..6).map(move |height| Rect::new(3, 2, width, height))) {
        for which in 0..5 {
            let mut buffer = Buffer::empty(whole);
            match which {
                0 => StatusLine::new(&usage).render(area, &mut buffer),
                1 => UsageBar::new(&usage).render(area, &mut buffer),
                2 => SectionGauge::new(&plan.sections[1]).render(area, &mut buffer),
                3 => CompactionMarker::new(&record).with_expanded(true).render(area, &mut buffer),
                _ => {
                    let mut state = PreviewState { selected: 9, offset: 30 };
                    ContextPreview::new(&plan).render(area, &mut buffer, &mut state);
                }
            }
            for y in 0..12 {
                for x in 0..50 {
                    let outside = !area.contains((x, y).into());
                    let blank = buffer[(x, y)].symbol() == " ";
                    assert!(!outside || blank, "widget {which} in {area}: {x},{y}\n{}", text(&buffer));
                }
            }
        }
    }
}
