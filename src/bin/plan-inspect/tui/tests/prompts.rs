//! Earlier prompts, and what is tried at them: held against the planner.

use super::{
    super::{
        script::Script,
        state::{Comparison, Effect, Loadable},
    },
    CHAT, OVER, TALK, TALK_SMALL, screen,
};

/// What `w` writes is tried again with `--what-if`: the same plan at the same prompt, and undone the same way.
#[test]
fn what_was_written_is_tried_again() {
    let path = std::env::temp_dir().join(format!("context-window-{}-what-if.json", std::process::id()));
    for (arguments, keys) in [
        (CHAT, "+<lt><lt>"),
        (CHAT, "g/id:m0<Enter>p<Esc>x."),
        (CHAT, "/id:m1<Enter>t<Esc>"),
        (CHAT, "/id:customer<Enter>p<Esc>"),
        (TALK, "[[[+,"),
        (TALK_SMALL, "2g<Enter>+>>"),
    ] {
        let mut it = screen(arguments, (120, 40), keys);
        it.press("w").unwrap();
        let Some(Effect::Write(text)) = it.effects.first() else {
            panic!("{arguments} {keys}: nothing was written");
        };
        std::fs::write(&path, text).unwrap();
        let mut again = screen(&format!("{arguments} --what-if {}", path.display()), (120, 40), "");
        assert_eq!(
            (again.app.what_if.changes(), &again.app.at),
            (it.app.what_if.changes(), &it.app.at),
            "{arguments} {keys}"
        );
        let fingerprint = |it: &Script| it.app.plan().unwrap().fingerprint();
        assert_eq!(fingerprint(&again), fingerprint(&it), "{arguments} {keys}");
        again.press("u").unwrap();
        assert!(again.app.what_if.changes().is_empty());
        assert_eq!(fingerprint(&again), again.app.known().unwrap().base.fingerprint());
    }
    std::fs::remove_file(&path).unwrap();
}

/// `d` goes through everything there is to compare with, and each comparison is what the planner says of the two.
#[test]
fn every_comparison_is_reached() {
    let other = "--against examples/agent-parallel-tools.json";
    let titles = |arguments: &str, keys: &str| -> Vec<String> {
        let mut it = screen(arguments, (120, 40), keys);
        let mut titles = Vec::new();
        for _ in 0..4 {
            it.press("d").unwrap();
            let text = it.text().unwrap();
            let title = text.lines().find_map(|line| line.split_once("[Diff · ")?.1.split_once(']')).unwrap();
            titles.push(title.0.to_owned());
            assert!(matches!(it.app.diff, Loadable::Answered(_)), "{title:?}");
        }
        titles
    };
    let tried = "what-if vs. current · d next comparison";
    let other_one = "this session with what-if changes vs. --against · d next comparison";
    let before = "this prompt with what-if changes vs. the previous one · d next comparison";
    assert_eq!(titles(&format!("{CHAT} {other}"), "+,"), [tried, other_one, before, tried]);
    assert_eq!(titles(CHAT, "+,"), [tried, before, tried, before]);
    assert_eq!(titles(CHAT, ""), ["this prompt vs. the previous one"; 4]);

    let mut it = screen(&format!("{CHAT} {other}"), (120, 40), "+,d");
    let changes = |it: &Script| match &it.app.diff {
        Loadable::Answered(diff) => {
            diff.changes.iter().map(|change| change.id.to_string()).collect::<Vec<_>>()
        }
        _ => panic!("no answer"),
    };
    let mut came_and_went: Vec<String> = Vec::new();
    let planned = it.app.known().unwrap();
    came_and_went.extend(planned.effect.came.iter().chain(&planned.effect.went).map(ToString::to_string));
    assert!(!came_and_went.is_empty() && came_and_went.iter().all(|id| changes(&it).contains(id)));
    it.press("d").unwrap();
    assert!(changes(&it).iter().any(|id| id == "m6"), "the other session has no such question");
    // Elsewhere it begins anew with the nearest.
    it.press("1d").unwrap();
    assert_eq!(it.app.comparison(), Some(Comparison::Untried));
    it.press("d3u").unwrap();
    assert_eq!(it.app.comparison(), Some(Comparison::Other));
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
    let signs = picture.lines().find(|line| line.contains('!') && !line.contains("cached")).unwrap();
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
            for place in 0..it.app.list.rows().len() {
                it.press(&format!("g{}", "j".repeat(place))).unwrap();
                let Loadable::Answered(said) = &it.app.explained.1 else {
                    panic!("{arguments}: not explained")
                };
                let budget = said
                    .lines()
                    .find_map(|line| line.trim().strip_prefix("enters at      ")?.split(", ").next());
                let budget = budget.filter(|budget| !budget.starts_with("never"));
                let Some(budget) = budget else { continue };
                let budget: u64 = budget.replace(',', "").parse().unwrap();
                let (id, document) = it.app.row_id().map(|(id, document)| (id.to_owned(), document)).unwrap();
                for (budget, enters) in [(budget, true), (budget - 1, false)] {
                    let what_if = context_window::widgets::WhatIf::new().with_budget(Some(budget));
                    let question =
                        super::super::ask::Question::Plan { ticket: 0, at: it.app.at.clone(), what_if };
                    let answer = super::super::ask::answer(&it.app.subject, &question);
                    let Some(super::super::ask::Answer::Planned { answer: Ok(planned), .. }) = answer else {
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

/// Every bar of the chart has as many half lines of repeated tokens as the prompt repeats, to the nearest.
#[test]
fn bars_show_what_is_repeated() {
    let mut checked = 0;
    for (arguments, size) in [(TALK, (80, 24)), (TALK, (120, 40)), (TALK_SMALL, (80, 24)), (CHAT, (100, 30))]
    {
        let it = screen(arguments, size, "2");
        let buffer = it.buffer().unwrap();
        let text = it.text().unwrap();
        let legend = text.lines().position(|line| line.contains("cached ░▂ new")).unwrap();
        let foot = u16::try_from(legend).unwrap() - 1;
        let bars = it.app.marks.len();
        let wide = ((usize::from(size.0) - 2) / bars).min(7);
        for (number, mark) in it.app.marks.iter().enumerate() {
            let x = u16::try_from(1 + number * wide).unwrap();
            let (mut whole, mut repeated) = (0_u64, 0_u64);
            for y in 4..foot {
                let (of, part) = match buffer[(x, y)].symbol() {
                    "█" => (2, 2),
                    "▓" => (2, 1),
                    "░" => (2, 0),
                    "▄" => (1, 1),
                    "▂" => (1, 0),
                    other => {
                        assert_eq!(other, " ");
                        (0, 0)
                    }
                };
                (whole, repeated) = (whole + of, repeated + part);
            }
            let (reused, _) = mark.figures.repeats().unwrap_or_default();
            let tokens = mark.figures.tokens;
            assert!(whole > 0, "{arguments} {number}");
            assert!((repeated * tokens).abs_diff(whole * reused) * 2 <= tokens, "{arguments} {number}");
            checked += 1;
        }
    }
    assert!(checked > 30);
}
