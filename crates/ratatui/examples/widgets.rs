//! Widgets on one page, printed as text: what an application on ratatui draws into its own layout.
//!
//! `cargo run -p context-window-ratatui --example widgets`
#![allow(clippy::print_stdout, reason = "an example that prints")]

use context_window::{
    Config, ContextWindowManager, Model, RequestLimits, config::TtlPolicy, conversation::HistoryRow,
};
use context_window_formats::Session;
use context_window_ratatui::{
    Banner, BannerState, BudgetSlider, CompactionMarker, DetailState, ItemDetail, ItemList, ItemListState,
    ItemTexts, NoticeList, NoticeListState, SectionGauge, Shown, StatusLine, UsageBar, WhatIfState,
};
use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    widgets::{StatefulWidget, Widget},
};

/// Columns and rows.
const PAGE: Rect = Rect::new(0, 0, 80, 38);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    print!("{}", page()?);
    Ok(())
}

pub(crate) fn page() -> Result<String, Box<dyn std::error::Error>> {
    let session = Session::from_json(include_str!("../../../examples/long-talk.json"))?;
    let manager = ContextWindowManager::for_model("gpt-4o")?;
    let plan = manager.build_plan(&session.request())?;

    let mut page = Buffer::empty(PAGE);
    let row = |y, height| Rect::new(0, y, 80, height);

    StatusLine::new(&plan.usage).render(row(0, 1), &mut page);
    UsageBar::new(&plan.usage).render(row(1, 2), &mut page);
    for (section, y) in plan.sections.iter().zip(4..) {
        SectionGauge::new(section).render(row(y, 1), &mut page);
    }
    let records = session.log.history().filter_map(|row| match row {
        HistoryRow::Compaction(record) => Some(record),
        _ => None,
    });
    for record in records {
        CompactionMarker::new(record).with_expanded(true).render(row(8, 7), &mut page);
    }

    // What a user moves in has a state that outlives the picture: the application calls it when a key is
    // pressed.
    let request = session.request().with_limits(RequestLimits::prompt_budget(250));
    let mut what_if = WhatIfState::default();
    what_if.plan(&manager, &request)?; // the budget without changes
    what_if.smaller();
    let (plan, effect) = what_if.plan(&manager, &request)?;
    let texts = ItemTexts::from_request(&request);

    let mut list = ItemListState::new();
    list.set_filter("section:conversation").expect("a filter");
    list.set_shown(Shown::Out);
    ItemList::new(&plan).with_texts(&texts).render(row(16, 4), &mut page, &mut list);
    if let Some(item) = list.row(&plan) {
        let why = what_if.changes().explain(&manager, &request, item)?;
        let detail = ItemDetail::new(&plan, item).with_texts(&texts);
        let detail = detail.with_explanation(&why);
        detail.render(row(21, 8), &mut page, &mut DetailState::default());
    }
    BudgetSlider::new(&what_if).with_effect(&effect).render(row(30, 1), &mut page);
    below(&mut page, row)?;

    let line = |y| (0..80).map(|x| page[(x, y)].symbol()).collect::<String>();
    Ok((0..PAGE.height).map(|y| line(y).trim_end().to_owned() + "\n").collect())
}

/// Questions to the user: expired items under the policy `ask`, and a conversation near its limit.
fn below(page: &mut Buffer, row: impl Fn(u16, u16) -> Rect) -> Result<(), Box<dyn std::error::Error>> {
    let mut config = Config::default();
    config.ttl_policy = TtlPolicy::Ask;
    let manager = ContextWindowManager::configured(Model::named("gpt-4o")?, config)?;
    let session = Session::from_json(include_str!("../../../examples/pins-ttl.json"))?;
    let plan = manager.build_plan(&session.request())?;
    // Enter applies what is selected: `state.action(&plan)` and `action.apply(&mut log)`.
    NoticeList::new(&plan).render(row(32, 4), page, &mut NoticeListState::with_turns(3));

    let limits = RequestLimits::new().with_model_context_len(456).with_max_completion_tokens(64);
    let session = Session::from_json(include_str!("../../../examples/long-talk.json"))?;
    let usage = manager.usage(&session.request().with_limits(limits))?;
    Banner::new(&usage).render(row(37, 1), page, &mut BannerState::default());
    Ok(())
}
