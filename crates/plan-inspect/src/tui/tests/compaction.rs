//! Compactions on the screen.

use super::{
    super::{
        ask::Answer,
        script::Script,
        state::{Effect, Loadable, Popup, View},
        terminal::write_session,
        update,
    },
    CHAT, FULL, TALK, screen, subject,
};
use std::sync::Arc;

fn fingerprint(it: &Script) -> String {
    it.app.plan().unwrap().fingerprint()
}

fn sent(it: &Script) -> u64 {
    it.app.plan().unwrap().usage.conversation_tokens.tokens
}

#[test]
fn preview_changes_nothing_and_lists_the_changes() {
    let before = fingerprint(&screen(FULL, (100, 30), ""));
    for (keys, says) in
        [("c", "archived    6 messages"), ("cl", "archived    11 messages"), ("cll", "digest:")]
    {
        let mut it = screen(FULL, (100, 30), keys);
        let text = it.text().unwrap();
        assert!(text.contains(says), "{keys}: {text}");
        assert_eq!(fingerprint(&it), before);
        it.press("<Esc>").unwrap();
        assert_eq!((it.app.popup, fingerprint(&it)), (None, before.clone()));
        assert!(it.app.applied.is_empty() && it.effects.is_empty());
    }
}

/// An applied compaction is planned at once. Undo reverts it step by step, together with changes tried before
/// and after it.
#[test]
fn applied_compaction_is_undone_in_order() {
    let mut it = screen(FULL, (100, 30), "");
    let own = fingerprint(&it);
    it.press("+<lt>").unwrap();
    let smaller = fingerprint(&it);
    let full = sent(&it);
    it.press("c<Enter>").unwrap();
    let compacted = fingerprint(&it);
    assert!(sent(&it) < full && compacted != smaller);
    assert!(it.app.note.contains("on this screen only"), "{}", it.app.note);
    it.press("cl<Enter>g/id:owner<Enter>t").unwrap();
    let fresh = sent(&it);
    assert!(fresh < 100, "{fresh}");
    assert_eq!(it.app.applied.len(), 2);
    it.press("uu").unwrap();
    assert_eq!(fingerprint(&it), compacted, "the TTL, then the fresh start");
    it.press("u").unwrap();
    assert_eq!((fingerprint(&it), it.app.applied.len()), (smaller, 0));
    it.press("u").unwrap();
    assert_eq!(fingerprint(&it), own);
    it.press("u").unwrap();
    assert_eq!(it.app.note, "nothing to undo");
}

/// The plan of the saved file equals the plan on the screen, and the session file is not changed.
#[test]
fn saved_file_gives_the_plan_on_the_screen() {
    let folder = tempfile::tempdir().unwrap();
    let source = std::fs::read(context_window_testing::root().join(TALK)).unwrap();
    for (number, keys) in
        ["cw", "c<Enter>w", "cl<Enter>w", "c<Enter>cl<Enter>w", "c<Enter>clw"].into_iter().enumerate()
    {
        let mut it = screen(TALK, (100, 30), keys);
        let Some(Effect::WriteSession(new)) = it.effects.pop() else { panic!("{keys}: {:?}", it.effects) };
        assert!(it.effects.is_empty());
        let path = write_session(folder.path(), &new).unwrap();
        let expected = if number == 0 {
            "long-talk-compacted.json".into()
        } else {
            format!("long-talk-compacted-{}.json", number + 1)
        };
        assert!(path.ends_with(&expected), "{path}");
        if keys.ends_with("clw") || keys == "cw" {
            it.press("<Enter>").unwrap();
        }
        let mut saved = subject(&path).prepared;
        // The file has no anchor of the last prompt, which also influences the plan.
        saved.session.previous.clone_from(&it.app.subject.session().previous);
        let plan = saved.manager.build_plan(&saved.request().with_excluded_counts()).unwrap();
        assert_eq!(plan.fingerprint(), fingerprint(&it), "{keys}");
    }
    assert_eq!(std::fs::read(context_window_testing::root().join(TALK)).unwrap(), source);
}

/// If the session file grows, the screen shows its new contents.
#[test]
fn growing_session_undoes_an_applied_compaction() {
    let mut it = screen(FULL, (100, 30), "");
    let own = fingerprint(&it);
    it.press("c<Enter>c").unwrap();
    assert_ne!(fingerprint(&it), own);
    let asked = update::answer(&mut it.app, Answer::Reloaded(Ok(Arc::new(subject(FULL)))));
    assert!(it.app.note.contains("was undone"), "{}", it.app.note);
    assert_eq!((it.app.popup, it.app.applied.len(), asked.len()), (None, 0, 2));
}

#[test]
fn a_short_conversation_has_nothing_to_compact() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hello.json");
    std::fs::write(&path, r#"[{"role": "user", "content": "Hello!"}]"#).unwrap();
    let mut it = screen(&path.display().to_string(), (100, 30), "c");
    assert!(matches!(it.app.offered, Loadable::Answered(None)));
    assert!(it.text().unwrap().contains("nothing to compact"));
    it.press("<Enter>w").unwrap();
    assert!(it.app.applied.is_empty() && it.effects.is_empty());
    // Another key closes the preview and also has its own effect.
    it.press("c5").unwrap();
    assert_eq!((it.app.popup, it.app.view), (None, View::Items));
}

/// A document takes the tokens that the compaction frees, so the prompt grows and nothing is applied.
#[test]
fn a_compaction_that_leaves_the_prompt_no_smaller_is_refused_with_figures() {
    let mut it = screen(CHAT, (100, 30), "c");
    let text = it.text().unwrap();
    assert!(text.contains("nothing to compact: the prompt has 370 tokens, and would have 389"), "{text}");
    it.press("<Enter>").unwrap();
    assert!(it.app.applied.is_empty());
}

#[test]
fn the_banner_is_shown_until_it_is_closed() {
    let mut it = screen(FULL, (100, 30), "");
    let shown = |it: &Script| it.text().unwrap().contains("! conversation at ");
    assert!(shown(&it));
    assert!(!shown(&screen(TALK, (100, 30), "")), "there is room");
    it.press("<Esc>").unwrap();
    assert!(!shown(&it));
    assert_eq!(it.app.popup, None);
    it.press("c").unwrap();
    assert_eq!(it.app.popup, Some(Popup::Compaction), "it can be asked for all the same");
}
