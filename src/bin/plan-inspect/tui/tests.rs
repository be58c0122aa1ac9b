//! Screens of real plans, every key, and keys at random.

use super::{
    keys::BINDINGS,
    script::Script,
    state::{Known, Order, Pane, Popup, View},
    subject::Subject,
};
use crate::args::{Cli, Command};
use clap::Parser;
use context_window::widgets::Theme;
use ratatui::{
    buffer::Buffer,
    crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind},
    style::{Color, Modifier},
};

const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

fn subject(arguments: &str) -> Subject {
    let all = ["plan-inspect", "tui"].into_iter().chain(arguments.split_whitespace());
    let Command::Tui(args) = Cli::try_parse_from(all).unwrap().command else { panic!("not the tui") };
    Subject::read(&args).unwrap()
}

fn screen(arguments: &str, size: (u16, u16), keys: &str) -> Script {
    let mut script = Script::open(subject(arguments), Theme::colours(), size);
    script.press(keys).unwrap();
    script
}

/// A plan that leaves documents out, a conversation that was compacted, and a minimum that does not fit.
const CHAT: &str = "examples/support-chat.json --budget 400";
const TALK: &str = "examples/long-talk.json";
const TALK_SMALL: &str = "examples/long-talk.json --budget 200";
const OVER: &str = "examples/overflow.json";

#[test]
fn every_screen_looks_as_it_did() {
    let screens = [
        ("plan", CHAT, "j"),
        ("plan_out", CHAT, "x"),
        ("plan_filtered", CHAT, "/section:rag >40<Enter>"),
        ("plan_filter_typed", CHAT, "/reason:si"),
        ("plan_sorted", CHAT, "ss"),
        ("plan_what_if", CHAT, "+<lt><lt>G"),
        ("plan_pinned", "examples/support-chat.json --budget 330", "xp"),
        ("plan_earlier", TALK, "[["),
        ("plan_overflow", OVER, ""),
        ("notices", OVER, "!"),
        ("detail", CHAT, "x<Enter>"),
        ("sections", CHAT, "<S-Tab>jj"),
        ("timeline", TALK, "2kkkkk"),
        ("diff", TALK, "{d"),
        ("diff_first", TALK, "2g<Enter>d"),
        ("diff_what_if", CHAT, "+<lt>d"),
        ("config", "examples/support-chat.json --preset agent", "4"),
        ("log", TALK, "5{<Enter>"),
        ("log_found", TALK, "5/rye<Enter>nn"),
        ("help", CHAT, "?"),
    ];
    for (name, arguments, keys) in screens {
        for (width, height) in SIZES {
            let script = screen(arguments, (width, height), keys);
            insta::assert_snapshot!(format!("{name}_{width}x{height}"), script.text().unwrap());
        }
    }
    // Below 60x15 there is a word and nothing else, whatever is shown.
    for (name, arguments, keys) in screens {
        let text = screen(arguments, (59, 14), keys).text().unwrap();
        assert_eq!(text.trim_end(), "terminal too small: 59x14, expected 60x15", "{name}");
    }
}

fn modifiers(buffer: &Buffer, y: u16) -> Vec<bool> {
    (0..buffer.area.width).map(|x| buffer[(x, y)].modifier.contains(Modifier::REVERSED)).collect()
}

fn line(buffer: &Buffer, y: u16) -> String {
    (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect()
}

/// The one line, beside the tabs', that is selected.
fn selected(script: &Script) -> String {
    let buffer = script.buffer().unwrap();
    let lines: Vec<u16> =
        (1..buffer.area.height).filter(|y| modifiers(&buffer, *y).contains(&true)).collect();
    assert_eq!(lines.len(), 1, "{lines:?}\n{}", script.text().unwrap());
    line(&buffer, lines[0])
}

#[test]
fn what_is_selected_is_reversed_and_said_in_signs_too() {
    for size in SIZES {
        let script = screen(CHAT, size, "jj");
        assert!(selected(&script).contains("^ voucher"), "{}", selected(&script));
        // The view that is shown: reversed, and in brackets.
        let buffer = script.buffer().unwrap();
        let tab: String = (0..size.0)
            .filter(|x| buffer[(*x, 0)].modifier.contains(Modifier::REVERSED))
            .map(|x| buffer[(x, 0)].symbol().to_owned())
            .collect();
        assert_eq!(tab, "[1 Plan]");
        for (keys, text) in [("2", "12"), ("4", "preset"), ("5", "m23"), ("{d", "summary:1")] {
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
    assert_eq!(fill("examples/long-talk.json --context-len 400 --max-completion 64"), Color::Red);
    assert_eq!(fill(OVER), Color::Red);
    for (arguments, keys) in [(CHAT, "xG"), (TALK, "2"), (OVER, ""), (TALK, "5"), (TALK, "d")] {
        let used = colours(&screen(arguments, (120, 40), keys));
        let basic = [Color::Reset, Color::Green, Color::Yellow, Color::Red, Color::DarkGray];
        assert!(used.iter().all(|colour| basic.contains(colour)), "{used:?}");
        assert!(used.len() > 1, "{keys}: no colour at all");
    }
}

#[test]
fn without_colour_there_is_none_and_the_text_is_the_same() {
    for (arguments, keys) in
        [(CHAT, "x"), (TALK, "2"), (OVER, ""), (TALK, "5{<Enter>"), (TALK, "d"), (TALK, "?")]
    {
        let mut plain = Script::open(subject(arguments), Theme::plain(), (120, 40));
        plain.press(keys).unwrap();
        assert_eq!(colours(&plain), [Color::Reset], "{keys}");
        assert_eq!(plain.text().unwrap(), screen(arguments, (120, 40), keys).text().unwrap(), "{keys}");
    }
}

/// A walk through every view and every key, with what each of them has to do.
#[test]
fn every_key_does_what_the_help_says() {
    let mut it = screen(CHAT, (120, 40), "");
    let press = |it: &mut Script, keys: &str| it.press(keys).unwrap();
    let total = it.app.list.rows.len();
    assert_eq!(total, 15);

    press(&mut it, "G");
    assert_eq!(it.app.list.place.selected, total - 1);
    press(&mut it, "gj<Down><Up>kl");
    assert_eq!((it.app.list.place.selected, it.app.pane), (0, Pane::Detail));
    press(&mut it, "h<Tab><Tab>");
    assert_eq!(it.app.pane, Pane::Sections);
    press(&mut it, "jj<Enter>");
    assert_eq!((it.app.pane, it.app.list.rows.len()), (Pane::Items, 5));
    press(&mut it, "<Esc>");
    assert_eq!(it.app.list.rows.len(), total);

    press(&mut it, "i");
    assert_eq!(it.app.list.rows.len(), 13);
    press(&mut it, "x");
    assert_eq!(it.app.list.rows.len(), 2);
    press(&mut it, "a/care<Enter>");
    assert_eq!((it.app.list.rows.len(), it.app.row_id()), (1, Some(("care", true))));
    assert!(matches!(&it.app.explained.1, Known::Answered(said) if said.contains("comes in")));
    press(&mut it, "/<C-u>wrong:x tokens:5<Enter>");
    assert!(it.app.note.contains("is no key"), "{}", it.app.note);
    press(&mut it, "<Esc><Esc>");
    assert_eq!(it.app.list.rows.len(), total);

    press(&mut it, "sg");
    assert_eq!(it.app.row_id().map(|row| row.0), Some("postage"), "the largest first");
    press(&mut it, "Sssss");
    press(&mut it, "Sg");
    assert_eq!(it.app.row_id().map(|row| row.0), Some("s0"));

    press(&mut it, "+>");
    assert_eq!(it.app.what_if.budget, Some(440));
    press(&mut it, ">>-.");
    assert_eq!(it.app.what_if.budget, Some(524));
    assert!(it.app.known().unwrap().came.iter().any(|id| id.as_str() == "care"), "57 more bring it in");
    press(&mut it, "u");
    assert_eq!(it.app.what_if.budget, None, "sliding is undone in one");
    press(&mut it, "<lt>,=");
    assert_eq!(it.app.what_if.budget, None);

    press(&mut it, "g/id:m0<Enter>p");
    assert_eq!(it.app.what_if.pins.get("m0"), Some(&true));
    assert_eq!(super::filter::reason(it.app.row().unwrap()), "pinned");
    press(&mut it, "p");
    assert!(it.app.what_if.is_empty());
    press(&mut it, "t");
    assert!(it.app.known().unwrap().went.iter().any(|id| id.as_str() == "m0"), "its TTL is used up");
    press(&mut it, "wu<Esc>");
    assert!(
        matches!(&it.orders[0], Order::Write(json) if json.contains("\"m0\": true") && json.contains("support-chat.json")),
        "{:?}",
        it.orders
    );
    press(&mut it, "/id:care<Enter>p");
    assert!(it.app.note.contains("documents are not pinned"));
    press(&mut it, "y");
    assert_eq!(it.orders[1], Order::Copy("care".into()));
    press(&mut it, "<Esc>");

    press(&mut it, "[");
    assert_eq!(it.app.place_of_prompt(), Some(2));
    assert_eq!(it.app.plan().unwrap().messages().len(), it.app.marks[2].figures.messages + 3);
    press(&mut it, "]]");
    assert_eq!(it.app.place_of_prompt(), Some(3));
    assert!(it.app.note.contains("last prompt"));
    press(&mut it, "2gl");
    assert_eq!((it.app.view, it.app.prompt.selected), (View::Timeline, 1));
    press(&mut it, "<Enter>");
    assert_eq!((it.app.view, it.app.place_of_prompt()), (View::Plan, Some(1)));
    press(&mut it, "d");
    assert_eq!(it.app.view, View::Diff);
    press(&mut it, "<Enter>");
    assert_eq!(it.app.view, View::Plan);

    press(&mut it, "4<PgDn><C-d><C-u><PgUp>5");
    assert_eq!((it.app.view, it.app.config.selected), (View::Log, 0));
    press(&mut it, "g<Enter>");
    assert_eq!(it.app.popup, Some(Popup::Detail));
    press(&mut it, "<Esc>1?");
    assert_eq!(it.app.popup, Some(Popup::Help));
    press(&mut it, "jq<F1><Esc><Esc><Esc>");
    assert_eq!((it.app.popup, it.app.view), (None, View::Plan));
    press(&mut it, "!");
    assert_eq!(it.app.popup, Some(Popup::Notices));
    press(&mut it, "<Esc>");
    press(&mut it, "<Space>");
    assert!(it.app.note.contains("--follow"));
    assert!(!it.orders.contains(&Order::Quit), "Esc never quits");
    press(&mut it, "q<C-z>");
    assert_eq!(it.orders[2..], [Order::Quit, Order::Suspend]);
    press(&mut it, "/abc<C-c>");
    assert_eq!(it.orders.last(), Some(&Order::Quit), "Ctrl-C quits from anywhere");
}

#[test]
fn compactions_are_found_and_open() {
    let mut it = screen(TALK, (80, 24), "{");
    let place = it.app.place_of_prompt().unwrap();
    assert!(it.app.marks[place].figures.compactions > it.app.marks[place - 1].figures.compactions);
    it.press("{").unwrap();
    assert!(it.app.note.contains("no compaction that way"));
    it.press("5g}e").unwrap();
    assert_eq!(it.app.open.iter().collect::<Vec<_>>(), [&1]);
    assert!(it.text().unwrap().contains("[-]"));
    it.press("e").unwrap();
    assert!(it.app.open.is_empty());
}

/// Messages that are out for one reason are one row: each of them finds it by its id, and others do not.
#[test]
fn a_message_inside_of_a_row_is_found() {
    let mut it = screen("examples/long-talk.json --budget 120", (120, 40), "x");
    let runs = |it: &Script| -> Vec<String> {
        let plan = it.app.plan().unwrap();
        let rows = it.app.list.rows.iter().filter_map(|at| plan.row_at(*at as usize));
        rows.map(|row| context_window::report::row(plan, row).id).collect()
    };
    let run = runs(&it).into_iter().find(|id| id.contains("..")).unwrap();
    let ends: Vec<usize> = run
        .split_once(" (")
        .unwrap()
        .0
        .split("..")
        .map(|id| id.strip_prefix('m').unwrap().parse().unwrap())
        .collect();
    assert!(ends[0] + 1 < ends[1], "{run}");
    for (at, found) in [(ends[0] + 1, true), (ends[1], true), (ends[1] + 1, false)] {
        it.press(&format!("/<C-u>id:m{at}<Enter>")).unwrap();
        assert_eq!(runs(&it).contains(&run), found, "m{at} in {run}");
    }
}

/// Where there are more prompts than columns, a column shows what happened at any of its own.
#[test]
fn nothing_is_lost_in_a_crowded_timeline() {
    let mut it = screen(TALK, (80, 24), "2");
    let calm = it.app.marks[0].clone();
    it.app.marks = (0..1_000)
        .map(|place| {
            let mut mark = calm.clone();
            mark.figures.number = place + 1;
            mark.figures.over = u64::from(place == 340);
            mark.figures.compactions = usize::from(place >= 700);
            mark
        })
        .collect();
    let picture = it.text().unwrap();
    let signs = picture.lines().find(|line| line.contains('!') && !line.contains("repeated")).unwrap();
    assert_eq!((signs.matches('!').count(), signs.matches('C').count()), (1, 1), "{picture}");
    let column = |sign: char| signs.chars().position(|c| c == sign).unwrap();
    assert_eq!((column('!'), column('C')), (1 + 340 * 78 / 1_000, 1 + 700 * 78 / 1_000));
}

/// What an earlier prompt shows is what the replay planned.
#[test]
fn earlier_prompts_are_those_of_the_replay() {
    for arguments in [CHAT, TALK, OVER, "examples/agent-parallel-tools.json --budget 300"] {
        let mut it = screen(arguments, (120, 40), "");
        for place in (0..it.app.marks.len().saturating_sub(1)).rev() {
            it.press("[").unwrap();
            assert_eq!(it.app.place_of_prompt(), Some(place), "{arguments}");
            let (plan, mark) = (it.app.plan().unwrap(), &it.app.marks[place]);
            let repeated = plan.repeated().map(|prefix| (prefix.tokens, prefix.of));
            assert_eq!(
                (plan.total.n, repeated),
                (mark.figures.tokens, mark.figures.repeats()),
                "{arguments}, prompt {place}"
            );
        }
    }
}

/// The budget that the detail names is the one at which the slider brings the item in, at every prompt.
#[test]
fn what_is_said_of_other_budgets_is_what_they_do() {
    let mut tried = 0;
    for arguments in [CHAT, TALK_SMALL, OVER, "examples/agent-parallel-tools.json --budget 200"] {
        let mut it = screen(arguments, (120, 40), "x");
        for _ in 0..it.app.marks.len() {
            for place in 0..it.app.list.rows.len() {
                it.press(&format!("g{}", "j".repeat(place))).unwrap();
                let Known::Answered(said) = &it.app.explained.1 else { panic!("{arguments}: not explained") };
                let budget = said
                    .lines()
                    .find_map(|line| line.trim().strip_prefix("comes in       at ")?.split(", ").next());
                let Some(budget) = budget else { continue };
                let budget: u64 = budget.replace(',', "").parse().unwrap();
                let (id, document) = it.app.row_id().map(|(id, document)| (id.to_owned(), document)).unwrap();
                for (budget, enters) in [(budget, true), (budget - 1, false)] {
                    let what_if = super::what_if::WhatIf { budget: Some(budget), ..Default::default() };
                    let question = super::ask::Question::Plan { ticket: 0, at: it.app.at.clone(), what_if };
                    let answer = super::ask::answer(&it.app.subject, &question);
                    let Some(super::ask::Answer::Planned { answer: Ok(planned), .. }) = answer else {
                        panic!("no plan")
                    };
                    let is_in = planned.plan.included.iter().any(|item| {
                        item.id.as_str() == id && document == (item.section == context_window::Section::Rag)
                    });
                    assert_eq!(is_in, enters, "{arguments}: {id} at {budget}");
                    tried += 1;
                }
            }
            it.press("[").unwrap();
        }
    }
    assert!(tried > 20, "{tried}");
}

fn mouse(kind: MouseEventKind, column: u16, row: u16) -> Event {
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
    it.happens(&mouse(click, x, y));
    assert_eq!(it.app.row_id(), Some(("care", true)));
    let (x, y) = find(&it, "rag    ");
    it.happens(&mouse(click, x, y));
    assert_eq!((it.app.pane, it.app.section), (Pane::Sections, 2));
    it.happens(&mouse(MouseEventKind::ScrollUp, 60, 8));
    assert_eq!(it.app.row_id().map(|row| row.0), Some("faults"));
    let (x, y) = find(&it, "●");
    it.happens(&mouse(click, x + 7, y));
    let more = it.app.what_if.budget.unwrap();
    assert!((560..700).contains(&more), "{more}");
    let (x, _) = find(&it, "4 Config");
    it.happens(&mouse(click, x, 0));
    assert_eq!(it.app.view, View::Config);
    it.happens(&mouse(click, 3, 10));
    assert_eq!(it.app.config.selected, 5);
}

#[test]
fn a_changed_size_keeps_the_selected_row_in_sight() {
    let mut it = screen(TALK, (120, 40), "G");
    for (width, height) in [(60, 15), (200, 50), (61, 16), (100, 18), (59, 14), (1, 1), (0, 0), (80, 24)] {
        it.happens(&Event::Resize(width, height));
        let text = it.text().unwrap();
        if (width, height) >= (60, 15) {
            assert!(selected(&it).contains("m12"), "{width}x{height}\n{text}");
        }
    }
}

#[test]
fn a_session_that_grows_is_shown_as_it_is() {
    use super::{ask::Answer, state::Follow, update};
    use std::sync::Arc;
    let mut it = screen(CHAT, (120, 40), "/section:rag<Enter>");
    it.app.follow = Follow::Yes;
    let grown = || Answer::Reloaded(Ok(Arc::new(subject(TALK))));
    it.press(" ").unwrap();
    assert!(update::answer(&mut it.app, grown()).is_empty(), "paused");
    assert!(it.text().unwrap().contains("paused"));
    it.press(" <Esc>").unwrap();
    assert_eq!(it.app.subject.name, TALK.rsplit('/').next().unwrap());
    assert!(it.text().unwrap().contains("summary:1"), "{}", it.text().unwrap());
    let questions = update::answer(&mut it.app, Answer::Reloaded(Err("half a line".into())));
    assert!(questions.is_empty());
    assert!(it.text().unwrap().contains("not read again: half a line"));
    it.press("j").unwrap();
    assert!(it.text().unwrap().contains("file not readable"), "it goes on saying so");
    update::answer(&mut it.app, grown());
    assert!(it.text().unwrap().contains("following"));
}

/// Answers come when they come: one to a question that nobody asks any more changes nothing.
#[test]
fn late_answers_change_nothing() {
    use super::{
        ask::{Answer, Question, answer},
        update,
    };
    let mut it = screen(CHAT, (120, 40), "xj");
    let key = |code| Event::Key(KeyEvent::from(KeyCode::Char(code)));
    // Two budgets after another, none of them answered yet.
    let earlier = update::input(&mut it.app, &key(','));
    let later = update::input(&mut it.app, &key(','));
    let answers = |questions: &[Question]| -> Vec<Answer> {
        questions.iter().filter_map(|question| answer(&it.app.subject, question)).collect()
    };
    let (earlier, later) = (answers(&earlier), answers(&later));
    assert!(!earlier.is_empty() && !later.is_empty());
    for answer in later {
        update::answer(&mut it.app, answer);
    }
    let shown = (it.app.plan().unwrap().prompt_budget, format!("{:?}", it.app.explained));
    assert_eq!(shown.0, 392);
    for answer in earlier {
        assert!(update::answer(&mut it.app, answer).is_empty());
    }
    let id = it.app.explained.0.clone();
    update::answer(&mut it.app, Answer::Explained { ticket: 0, id, answer: Ok("old".into()) });
    update::answer(&mut it.app, Answer::Compared { ticket: 0, answer: Err("old".into()) });
    let (epoch, marks) = (it.app.epoch - 1, it.app.marks.clone());
    update::answer(&mut it.app, Answer::Step { epoch, mark: Box::new(marks[0].clone()) });
    update::answer(&mut it.app, Answer::Replayed { epoch, failed: Some("old".into()) });
    assert_eq!((it.app.plan().unwrap().prompt_budget, format!("{:?}", it.app.explained)), shown);
    assert!(matches!(it.app.diff, Known::Nothing) && matches!(it.app.replayed, Known::Answered(())));
    assert_eq!(it.app.marks, marks);
}

/// Nothing that a terminal acts on gets onto the screen, whatever a session holds.
#[test]
fn hostile_texts_stay_text() {
    let hostile = "a\u{1b}[31m\u{7}\u{202e}b\r\n\u{0}\u{9b}31m\u{200f}c\u{1b}]52;c;aGk=\u{7}";
    let session = serde_json::json!({
        "id": hostile,
        "system": [{"id": hostile, "text": hostile}],
        "messages": [
            {"role": "user", "content": hostile, "id": format!("q{hostile}")},
            {"role": "assistant", "content": format!("日本語 👩‍👩‍👧 {hostile}")},
            {"role": "user", "content": hostile.repeat(500)},
        ],
        "rag": [{"id": format!("d{hostile}"), "text": hostile, "score": 0.5, "source": hostile}],
    });
    let path = std::env::temp_dir().join(format!("context-window-{}-hostile.json", std::process::id()));
    std::fs::write(&path, session.to_string()).unwrap();
    for keys in
        ["", "G<Enter>", "j<Enter>", "2", "d", "5", "5g<Enter>", "/\u{1b}\u{202e}x", "5/\u{9b}<Enter>"]
    {
        let script = screen(path.to_str().unwrap(), (100, 30), keys);
        let buffer = script.buffer().unwrap();
        for cell in buffer.content() {
            let bad =
                |c: char| c.is_control() || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}');
            assert!(!cell.symbol().chars().any(bad), "{keys:?}: {:?}", cell.symbol());
        }
    }
    std::fs::remove_file(&path).unwrap();
}

/// Thousands of keys, clicks and sizes: nothing breaks down, and what is selected is there.
#[test]
fn keys_at_random_break_nothing() {
    let full = std::env::var_os("FULL").is_some_and(|full| full == "1");
    let rounds = if full { 20_000 } else { 1_500 };
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut random = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let keys: Vec<char> = "jkhlgG/nNaixsS[]{}<>,.+-=ptudyw 12345?!e:0acrm".chars().collect();
    let named =
        [KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::BackTab, KeyCode::PageDown, KeyCode::Backspace];
    for arguments in
        [CHAT, TALK, OVER, "examples/pins-ttl.json", "examples/agent-parallel-tools.json --budget 200"]
    {
        let mut it = Script::open(subject(arguments), Theme::colours(), (100, 30));
        for round in 0..rounds {
            let event = match random(20) {
                0 => Event::Resize(u16::try_from(random(150)).unwrap(), u16::try_from(random(50)).unwrap()),
                1 | 2 => {
                    let (x, y) = (u16::try_from(random(150)).unwrap(), u16::try_from(random(50)).unwrap());
                    let kind = [
                        MouseEventKind::Down(MouseButton::Left),
                        MouseEventKind::ScrollDown,
                        MouseEventKind::ScrollUp,
                    ];
                    mouse(kind[usize::try_from(random(3)).unwrap()], x, y)
                }
                3..=6 => Event::Key(KeyEvent::from(named[usize::try_from(random(6)).unwrap()])),
                _ => {
                    let at = usize::try_from(random(keys.len() as u64)).unwrap();
                    Event::Key(KeyEvent::from(KeyCode::Char(keys[at])))
                }
            };
            it.happens(&event);
            it.buffer().unwrap();
            let app = &it.app;
            assert!(app.list.place.selected < app.list.rows.len().max(1), "round {round}, {event:?}");
            assert!(app.log.selected < app.subject.rows.len().max(1), "round {round}, {event:?}");
            assert!(matches!(app.planned, Known::Answered(_) | Known::Failed(_)), "round {round}, {event:?}");
            assert!(!matches!(app.explained.1, Known::Asked), "round {round}, {event:?}");
        }
        assert!(!it.orders.contains(&Order::Quit));
        // Whatever was tried, nothing of it is left when it is taken back.
        let plan = subject(arguments).prepared;
        let own = plan.manager.build_plan(&plan.request()).unwrap();
        it.happens(&Event::Resize(120, 40));
        for _ in 0..it.app.undo.len() {
            it.press("<Esc><Esc><Esc>u").unwrap();
        }
        assert!(it.app.what_if.is_empty(), "{arguments}: {:?}", it.app.what_if);
        for _ in 0..it.app.marks.len() {
            it.press("<Esc>]").unwrap();
        }
        assert_eq!(it.app.at, super::ask::At::Now, "{arguments}");
        assert_eq!(it.app.known().unwrap().plan.fingerprint(), own.fingerprint(), "{arguments}");
    }
}

#[test]
fn every_binding_is_in_the_help() {
    let text = screen(CHAT, (120, 40), "?").text().unwrap();
    for binding in BINDINGS {
        assert!(text.contains(binding.does), "{}", binding.shown);
    }
}

#[test]
fn every_key_is_on_the_page() {
    let page = std::fs::read_to_string("docs/screen.md").unwrap();
    for binding in BINDINGS {
        assert!(page.contains(&format!("| `{}` | {} |", binding.shown, binding.does)), "{}", binding.shown);
    }
}

#[test]
fn names_of_keys_that_are_none_are_refused() {
    let mut it = screen(CHAT, (80, 24), "");
    assert!(it.press("<Entre>").unwrap_err().to_string().contains("<Entre> is no key"));
    assert_eq!(super::size("120x40"), Ok((120, 40)));
    for wrong in ["120", "0x5", "x", "-1x3", "120x40x2", "99999x9"] {
        assert!(super::size(wrong).is_err(), "{wrong}");
    }
}
