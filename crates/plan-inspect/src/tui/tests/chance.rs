//! Robustness of the screen: random keys, late answers, growing files and hostile texts.

use super::{
    super::{
        script::Script,
        state::{Effect, Follow, Loadable},
    },
    CHAT, OVER, TALK, app,
    mouse::mouse,
    screen, subject,
};
use context_window_ratatui::Theme;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, MouseButton, MouseEventKind};
use std::sync::Arc;

#[test]
fn growing_session_is_shown_with_its_latest_state() {
    use super::super::{ask::Answer, update};
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
    assert!(it.text().unwrap().contains("reload failed: half a line"));
    it.press("j").unwrap();
    assert!(it.text().unwrap().contains("file not readable"), "it goes on saying so");
    update::answer(&mut it.app, grown());
    assert!(it.text().unwrap().contains("following"));
}

/// A late answer belongs to an outdated question and changes nothing.
#[test]
fn late_answers_change_nothing() {
    use super::super::{
        ask::{Answer, Question, answer},
        update,
    };
    let mut it = screen(CHAT, (120, 40), "xj");
    let key = |code| Event::Key(KeyEvent::from(KeyCode::Char(code)));
    // Two budget changes in a row, and neither is answered yet.
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
    assert!(matches!(it.app.diff, Loadable::Nothing) && matches!(it.app.replayed, Loadable::Answered(())));
    assert_eq!(it.app.marks, marks);
}

/// No control character or direction mark of a session reaches the screen.
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
    for keys in [
        "",
        "G<Enter>",
        "j<Enter>",
        "2",
        "d",
        "5",
        "5g<Enter>",
        "/\u{1b}\u{202e}x",
        "5/\u{9b}<Enter>",
        "5{<Enter>",
    ] {
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

/// Thousands of random keys, clicks and sizes cause no panic, and the selection stays valid.
#[test]
fn keys_at_random_break_nothing() {
    let full = std::env::var_os("FULL").is_some_and(|full| full == "1");
    // A full run is slow, so it needs the environment variable `FULL=1`.
    let rounds = if full { 20_000 } else { 700 };
    // A fixed seed (xorshift) makes a failure reproducible.
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut random = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let keys: Vec<char> = "jkhlgG/nNaixsS[]{}<>,.+-=ptudyw 12345?!e:0accrm".chars().collect();
    let named =
        [KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::BackTab, KeyCode::PageDown, KeyCode::Backspace];
    for arguments in
        [CHAT, TALK, OVER, "examples/pins-ttl.json", "examples/agent-parallel-tools.json --budget 200"]
    {
        let mut it = Script::open(app(arguments, Theme::colours(), (100, 30)));
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
            assert!(app.list.selected() < app.list.rows().len().max(1), "round {round}, {event:?}");
            assert!(
                matches!(app.planned, Loadable::Answered(_) | Loadable::Failed(_)),
                "round {round}, {event:?}"
            );
            assert!(!matches!(app.explained.1, Loadable::Asked), "round {round}, {event:?}");
        }
        assert!(!it.effects.contains(&Effect::Quit));
        // Undoing all tried changes leads back to the original plan.
        let plan = subject(arguments).prepared;
        let own = plan.manager.build_plan(&plan.request().with_excluded_counts()).unwrap();
        it.happens(&Event::Resize(120, 40));
        for _ in 0..it.app.what_if.undos() + it.app.applied.len() {
            it.press("<Esc><Esc><Esc>u").unwrap();
        }
        assert!(it.app.what_if.changes().is_empty(), "{arguments}: {:?}", it.app.what_if);
        for _ in 0..it.app.marks.len() {
            it.press("<Esc>]").unwrap();
        }
        assert_eq!(it.app.at, super::super::ask::At::Now, "{arguments}");
        assert_eq!(it.app.known().unwrap().plan.fingerprint(), own.fingerprint(), "{arguments}");
    }
}

/// A row finds its text by its kind, even if its id looks like that of another kind.
#[test]
fn a_message_named_like_a_summary_shows_its_text() {
    let fixture = std::fs::read_to_string(
        context_window_testing::root().join("tests/fixtures/o2_a_message_named_like_a_summary.json"),
    )
    .unwrap();
    let fixture: serde_json::Value = serde_json::from_str(&fixture).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.json");
    std::fs::write(&path, fixture["session"].to_string()).unwrap();
    let it = screen(&path.display().to_string(), (120, 40), "g<Enter>");
    let text = it.text().unwrap();
    assert!(text.contains("Which boats are free?"), "{text}");
    assert!(!text.contains("not in this session"), "{text}");
}
