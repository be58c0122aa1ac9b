//! Every widget on one page, printed as text: what an application on ratatui draws into its own layout.
//!
//! `cargo run --example widgets --features widgets`
#![allow(clippy::print_stdout, reason = "an example that prints")]

use context_window::{
    ContextWindowManager, Error,
    conversation::HistoryRow,
    io::Session,
    widgets::{CompactionMarker, ContextPreview, PreviewState, SectionGauge, StatusLine, UsageBar},
};
use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    widgets::{StatefulWidget, Widget},
};

fn main() -> Result<(), Error> {
    print!("{}", page()?);
    Ok(())
}

pub(crate) fn page() -> Result<String, Error> {
    let session = Session::from_json(include_str!("long-talk.json"))?;
    let manager = ContextWindowManager::for_model("gpt-4o")?;
    let plan = manager.build_plan(&session.request())?;

    let mut page = Buffer::empty(Rect::new(0, 0, 80, 24));
    let row = |y, height| Rect::new(0, y, 80, height);

    StatusLine::new(&plan.usage).render(row(0, 1), &mut page);
    UsageBar::new(&plan.usage).render(row(1, 2), &mut page);
    for (section, y) in plan.sections.iter().zip(4..) {
        SectionGauge::new(section).render(row(y, 1), &mut page);
    }
    let records = session.log.display().filter_map(|row| match row {
        HistoryRow::Compaction(record) => Some(record),
        _ => None,
    });
    for record in records {
        CompactionMarker::new(record).with_expanded(true).render(row(8, 7), &mut page);
    }
    // The state outlives the picture: the application moves `selected` when a key is pressed.
    let mut state = PreviewState { selected: 2, ..PreviewState::default() };
    ContextPreview::new(&plan).render(row(16, 8), &mut page, &mut state);

    let line = |y| (0..80).map(|x| page[(x, y)].symbol()).collect::<String>();
    Ok((0..24).map(|y| line(y).trim_end().to_owned() + "\n").collect())
}
