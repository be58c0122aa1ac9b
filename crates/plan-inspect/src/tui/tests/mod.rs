//! Screens of real plans. Other files test keys and the mouse.

mod chance;
mod compaction;
mod keys;
mod mouse;
mod prompts;

use super::{script::Script, state::App, subject::Subject};
use crate::args::{Cli, Command, Tui};
use clap::Parser;
use context_window_ratatui::Theme;
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier},
};

const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

fn arguments(text: &str) -> Tui {
    context_window_testing::enter_root();
    let all = ["plan-inspect", "tui"].into_iter().chain(text.split_whitespace());
    let Command::Tui(args) = Cli::try_parse_from(all).unwrap().command else { panic!("not the tui") };
    *args
}

fn subject(text: &str) -> Subject {
    Subject::read(&arguments(text)).unwrap()
}

fn app(text: &str, theme: Theme, (width, height): (u16, u16)) -> App {
    super::app(&arguments(text), theme, Rect::new(0, 0, width, height)).unwrap()
}

fn screen(arguments: &str, size: (u16, u16), keys: &str) -> Script {
    let mut script = Script::open(app(arguments, Theme::colours(), size));
    script.press(keys).unwrap();
    script
}

/// A plan that excludes documents.
const CHAT: &str = "examples/support-chat.json --budget 400";
/// A conversation with a compaction, and the same one with a small budget.
const TALK: &str = "examples/long-talk.json";
const TALK_SMALL: &str = "examples/long-talk.json --budget 200";
/// A conversation that fills most of its context window.
const FULL: &str = "examples/long-talk.json --context-len 520 --max-completion 64";
/// A prompt whose required items exceed the budget.
const OVER: &str = "examples/overflow.json";

#[test]
fn every_screen_looks_as_it_did() {
    let screens = [
        ("plan", CHAT, "j"),
        ("plan_out", CHAT, "o"),
        ("plan_filtered", CHAT, "/section:rag >40<Enter>"),
        ("plan_filter_typed", CHAT, "/reason:si"),
        ("plan_sorted", CHAT, "ss"),
        ("plan_what_if", CHAT, "+<lt><lt>G"),
        ("plan_pinned", "examples/support-chat.json --budget 330", "op"),
        ("plan_earlier", TALK, "[["),
        ("plan_overflow", OVER, ""),
        ("notices", OVER, "!"),
        ("detail", CHAT, "o<Enter>"),
        ("sections", CHAT, "<S-Tab>jj"),
        ("timeline", TALK, "2kkkkk"),
        ("diff", TALK, "{d"),
        ("diff_first", TALK, "2g<Enter>d"),
        ("diff_what_if", CHAT, "+<lt>d"),
        ("config", "examples/support-chat.json --preset agent", "4"),
        ("items", TALK, "5G"),
        ("items_marker", TALK, "5G{<Enter>"),
        ("items_found", TALK, "5/rye<Enter>nn"),
        ("items_earlier", TALK, "[[[5"),
        ("compaction", FULL, "c"),
        ("compacted", FULL, "c<Enter>"),
        ("start_fresh", FULL, "cl"),
        ("help", CHAT, "?"),
    ];
    for (name, arguments, keys) in screens {
        for (width, height) in SIZES {
            let script = screen(arguments, (width, height), keys);
            insta::assert_snapshot!(format!("{name}_{width}x{height}"), script.text().unwrap());
        }
    }
    // A screen below 60x15 shows only a message, in every view.
    for (name, arguments, keys) in screens {
        let text = screen(arguments, (59, 14), keys).text().unwrap();
        assert_eq!(text.trim_end(), "terminal too small: 59x14, expected 60x15", "{name}");
    }
}

/// The message for a screen that is too small contains only whole words at every size.
#[test]
fn too_small_screen_shows_a_whole_message() {
    let sizes = (1..60)
        .map(|width| (width, 14))
        .chain((1..15).flat_map(|height| [(60, height), (21, height), (8, height)]));
    for (width, height) in sizes {
        let text = screen(CHAT, (width, height), "").text().unwrap();
        let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let whole = format!("terminal too small: {width}x{height}, expected 60x15");
        let texts = [&*whole, "too small: expected 60x15", "needs 60x15", "60x15", ""];
        assert!(texts.contains(&&*said), "{width}x{height}: {said}");
        assert!(!said.is_empty() || width < 5, "{width}x{height}");
        if usize::from(width) >= whole.len() || width >= 20 && height >= 4 {
            assert_eq!(said, whole);
        }
    }
}

fn modifiers(buffer: &Buffer, y: u16) -> Vec<bool> {
    (0..buffer.area.width).map(|x| buffer[(x, y)].modifier.contains(Modifier::REVERSED)).collect()
}

fn line(buffer: &Buffer, y: u16) -> String {
    (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect()
}

/// Returns the only selected line, apart from the tabs.
fn selected(script: &Script) -> String {
    let buffer = script.buffer().unwrap();
    let lines: Vec<u16> =
        (1..buffer.area.height).filter(|y| modifiers(&buffer, *y).contains(&true)).collect();
    assert_eq!(lines.len(), 1, "{lines:?}\n{}", script.text().unwrap());
    line(&buffer, lines[0])
}

#[test]
fn selection_is_reversed_and_marked_in_text() {
    for size in SIZES {
        let script = screen(CHAT, size, "jj");
        assert!(selected(&script).contains("^ voucher"), "{}", selected(&script));
        // The tab of the current view is reversed and in brackets.
        let buffer = script.buffer().unwrap();
        let tab: String = (0..size.0)
            .filter(|x| buffer[(*x, 0)].modifier.contains(Modifier::REVERSED))
            .map(|x| buffer[(x, 0)].symbol().to_owned())
            .collect();
        assert_eq!(tab, "[1 Plan]");
        for (keys, text) in [("2", "12"), ("4", "preset"), ("5G", "m23"), ("{d", "summary:1")] {
            assert!(selected(&screen(TALK, size, keys)).contains(text), "{keys}");
        }
    }
}

fn colours(script: &Script) -> Vec<Color> {
    let buffer = script.buffer().unwrap();
    let mut all: Vec<Color> = buffer.content().iter().flat_map(|cell| [cell.fg, cell.bg]).collect();
    all.sort_by_key(|colour| format!("{colour:?}"));
    all.dedup();
    all
}

#[test]
fn levels_have_their_colours_and_sixteen_are_enough() {
    let fill = |arguments: &str| {
        let script = screen(arguments, (120, 40), "");
        let buffer = script.buffer().unwrap();
        let x = (0..120).find(|x| buffer[(*x, 1)].symbol() == "c").unwrap();
        assert!(line(&buffer, 1).contains("ctx tokens"));
        buffer[(x, 1)].fg
    };
    assert_eq!(fill("examples/long-talk.json"), Color::Green);
    assert_eq!(fill("examples/long-talk.json --context-len 520 --max-completion 64"), Color::Yellow);
    // The conversation exceeds its limit but the prompt fits. Red is reserved for a prompt that does not fit.
    assert_eq!(fill("examples/long-talk.json --context-len 400 --max-completion 64"), Color::Yellow);
    assert_eq!(fill(OVER), Color::Red);
    for (arguments, keys) in [(CHAT, "oG"), (TALK, "2"), (OVER, ""), (TALK, "5G"), (TALK, "d")] {
        let used = colours(&screen(arguments, (120, 40), keys));
        // Only the 16 named colours work on every terminal.
        let more = |colour: &Color| matches!(colour, Color::Indexed(_) | Color::Rgb(..));
        assert!(!used.iter().any(more), "{used:?}");
        assert!(used.len() > 1, "{keys}: no colour at all");
    }
}

#[test]
fn plain_theme_has_no_colour_and_the_same_text() {
    for (arguments, keys) in [(CHAT, "o"), (OVER, ""), (TALK, "5G{<Enter>"), (TALK, "d"), (TALK, "?")] {
        let mut plain = Script::open(app(arguments, Theme::plain(), (80, 24)));
        plain.press(keys).unwrap();
        assert_eq!(colours(&plain), [Color::Reset], "{keys}");
        assert_eq!(plain.text().unwrap(), screen(arguments, (80, 24), keys).text().unwrap(), "{keys}");
    }
}

/// Parts of the head that do not fit are left out completely. The prompt number and the state of the file are
/// always shown.
#[test]
fn header_is_never_cut() {
    for width in (60..=100).chain([119, 120, 140]) {
        let mut script = screen(CHAT, (width, 24), "[");
        script.app.follow = super::state::Follow::Paused(None);
        let text = script.text().unwrap();
        let head = text.lines().next().unwrap();
        let whole = format!("plan {}", script.app.known().unwrap().fingerprint);
        assert!(head.contains(" · prompt 3/4") && head.contains(" · paused"), "{width}: {head}");
        assert!(!head.contains("plan ") || head.contains(&whole), "{width}: {head}");
        assert!(!head.contains("gp") || head.contains("gpt-4o"), "{width}: {head}");
        let facts = text.lines().nth(2).unwrap();
        let repeats = script.app.plan().unwrap().repeated().unwrap();
        let total = script.app.plan().unwrap().estimated_tokens_total.tokens;
        let whole = format!(" · cached {} of this prompt's {total}", repeats.tokens);
        let facts = facts.split(" · context length").next().unwrap();
        assert!(facts.ends_with(&whole) || !facts.contains("cached"), "{width}: {facts}");
        let keys = text.lines().last().unwrap();
        assert!(
            "? help  q quit  / filter  a i o show  [ ] prompt  < > budget  p pin  x exclude  ! notices"
                .starts_with(keys)
        );
        assert!(
            ["quit", "filter", "show", "prompt", "budget", "pin", "exclude", "notices"]
                .iter()
                .any(|end| keys.ends_with(end))
        );
    }
}
