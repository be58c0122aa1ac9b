//! Mouse events and changes of the size.

use super::{
    super::{
        script::Script,
        state::{Pane, View},
    },
    CHAT, TALK, screen, selected,
};
use ratatui::crossterm::event::{Event, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

pub(super) fn mouse(kind: MouseEventKind, column: u16, row: u16) -> Event {
    Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
}

#[test]
fn the_mouse_chooses_scrolls_and_slides() {
    let click = MouseEventKind::Down(MouseButton::Left);
    let mut it = screen(CHAT, (120, 40), "");
    let find = |it: &Script, text: &str| {
        let picture = it.text().unwrap();
        let (y, line) = picture.lines().enumerate().find(|(_, line)| line.contains(text)).unwrap();
        let x = line.chars().count() - line[line.find(text).unwrap()..].chars().count();
        (u16::try_from(x).unwrap(), u16::try_from(y).unwrap())
    };
    let (x, y) = find(&it, "- care");
    it.handle_event(&mouse(click, x, y));
    assert_eq!(it.app.row_id(), Some(("care", true)));
    let (x, y) = find(&it, "Documents    ");
    it.handle_event(&mouse(click, x, y));
    assert_eq!((it.app.pane, it.app.section), (Pane::Sections, 2));
    it.handle_event(&mouse(MouseEventKind::ScrollUp, 60, 8));
    assert_eq!(it.app.row_id().map(|row| row.0), Some("faults"));
    let (x, y) = find(&it, "●");
    it.handle_event(&mouse(click, x + 7, y));
    let more = it.app.what_if.changes().budget().unwrap();
    assert!((560..700).contains(&more), "{more}");
    let (x, _) = find(&it, "4 Config");
    it.handle_event(&mouse(click, x, 0));
    assert_eq!(it.app.view, View::Config);
    it.handle_event(&mouse(click, 3, 10));
    assert_eq!(it.app.config.selected, 5);

    // Clicks select a bar of the timeline, both in the plan view and in the timeline view.
    let mut it = screen(TALK, (120, 40), "");
    let foot = |it: &Script| {
        let picture = it.text().unwrap();
        let at = picture.lines().position(|line| line.contains("C compaction")).unwrap();
        u16::try_from(at).unwrap() - 2
    };
    let y = foot(&it);
    // After the axis, each bar is three columns wide.
    it.handle_event(&mouse(click, 10 + 3 * 6, y));
    assert_eq!(it.app.place_of_prompt(), Some(6));
    assert_eq!(it.buffer().unwrap()[(10 + 3 * 6, y)].symbol(), "C", "the bar that was clicked");
    assert_eq!(it.buffer().unwrap()[(10 + 3 * 6, y + 1)].symbol(), "^", "and its mark is not covered");
    it.handle_event(&mouse(click, 10 + 3 * 12, y));
    assert_eq!(it.app.place_of_prompt(), Some(6), "there is no bar");
    it.press("2").unwrap();
    let y = foot(&it);
    it.handle_event(&mouse(click, 10 + 7 * 2 + 3, y - 1));
    assert_eq!((it.app.view, it.app.prompt.selected), (View::Timeline, 2));
}

#[test]
fn a_changed_size_keeps_the_selected_row_in_sight() {
    let mut it = screen(TALK, (120, 40), "G");
    for (width, height) in [(60, 15), (200, 50), (61, 16), (100, 18), (59, 14), (1, 1), (0, 0), (80, 24)] {
        it.handle_event(&Event::Resize(width, height));
        let text = it.text().unwrap();
        if (width, height) >= (60, 15) {
            assert!(selected(&it).contains("- m2.."), "{width}x{height}\n{text}");
        }
    }
}
