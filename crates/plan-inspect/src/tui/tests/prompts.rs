//! Earlier prompts and changes tried at them, compared with the planner.

use super::{
    super::{
        script::Script,
        state::{Comparison, Effect, Loadable},
    },
    CHAT, OVER, TALK, TALK_SMALL, screen,
};

/// A file written with `w` gives the same plan at the same prompt with `--what-if`, and can be undone in the
/// same way.
#[test]
fn written_trial_file_gives_the_same_plan() {
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

/// `d` goes through all comparisons, and each one matches the planner's diff.
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
    // In another view, the comparison starts again with the nearest one.
    it.press("1d").unwrap();
    assert_eq!(it.app.comparison(), Some(Comparison::Untried));
    it.press("d3u").unwrap();
    assert_eq!(it.app.comparison(), Some(Comparison::Other));
}

/// If there are more prompts than columns, a column shows the worst of its prompts. This is one over budget,
/// with a compaction or with a cache break, or otherwise the largest.
#[test]
fn nothing_is_lost_in_a_crowded_timeline() {
    let mut it = screen(TALK, (80, 24), "2");
    // 1,000 marks without events, except at known prompts.
    let calm = it.app.marks[0].clone();
    it.app.marks = (0..1_000)
        .map(|place| {
            let mut mark = calm.clone();
            mark.figures.number = place + 1;
            mark.figures.over = u64::from(place == 340);
            mark.figures.compactions = usize::from(place >= 700);
            mark.figures.cause = (place == 120 || place == 860).then_some("dropped: budget");
            if place == 500 {
                mark.figures.tokens *= 2;
                mark.kinds.iter_mut().for_each(|(_, tokens)| *tokens *= 2);
            }
            mark
        })
        .collect();
    it.app.prompt.selected = 120;
    let picture = it.text().unwrap();
    let legend = picture.lines().position(|line| line.contains("! over budget")).unwrap();
    let [signs, chosen] = [legend - 2, legend - 1].map(|at| picture.lines().nth(at).unwrap());
    let column = |line: &str, sign: char| line.chars().position(|c| c == sign).unwrap();
    assert_eq!(['!', 'C', 'B'].map(|sign| signs.matches(sign).count()), [1, 1, 2], "{picture}");
    // The frame and the axis take 10 columns, the bars 69.
    let at = |place: usize| 10 + place * 69 / 1_000;
    assert_eq!((column(signs, '!'), column(signs, 'C'), column(signs, 'B')), (at(340), at(700), at(120)));
    assert_eq!(column(chosen, '^'), at(120), "what happened there does not cover what is selected");
    // The largest prompt has the full height of the chart, although its column represents 14 prompts.
    let top = picture.lines().nth(4).unwrap();
    assert_eq!(top.chars().position(|c| ('▁'..='█').contains(&c)), Some(at(500)), "{picture}");
}

/// An earlier prompt shows the same figures as the replay.
#[test]
fn earlier_prompts_equal_those_of_the_replay() {
    for arguments in [CHAT, TALK, OVER, "examples/agent-parallel-tools.json --budget 300"] {
        let mut it = screen(arguments, (120, 40), "");
        for place in (0..it.app.marks.len().saturating_sub(1)).rev() {
            it.press("[").unwrap();
            assert_eq!(it.app.place_of_prompt(), Some(place), "{arguments}");
            let (plan, mark) = (it.app.plan().unwrap(), &it.app.marks[place]);
            let repeated = plan.repeated().map(|prefix| (prefix.tokens, prefix.of));
            assert_eq!(
                (plan.estimated_tokens_total.tokens, repeated),
                (mark.figures.tokens, mark.figures.repeats()),
                "{arguments}, prompt {place}"
            );
        }
    }
}

/// The budget in the detail is the one at which the slider includes the item, at every prompt.
#[test]
fn stated_budget_is_the_one_that_includes_the_item() {
    let mut tried = 0;
    for arguments in [CHAT, TALK_SMALL, OVER, "examples/agent-parallel-tools.json --budget 200"] {
        let mut it = screen(arguments, (120, 40), "o");
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
                    // One token less than the reported budget must not include the item.
                    let what_if = context_window_ratatui::WhatIf::new().with_budget(Some(budget));
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

/// Every bar has the height of its prompt, and a cell for every kind that fills at least two cells.
#[test]
fn bar_heights_match_prompt_sizes() {
    let mut checked = 0;
    for (arguments, size) in [(TALK, (80, 24)), (TALK, (120, 40)), (TALK_SMALL, (80, 24)), (CHAT, (100, 30))]
    {
        let mut it = Script::open(super::app(arguments, context_window_ratatui::Theme::plain(), size));
        it.press("2").unwrap();
        let (buffer, text) = (it.buffer().unwrap(), it.text().unwrap());
        let legend = text.lines().position(|line| line.contains("! over budget")).unwrap();
        let top = text.lines().position(|line| line.contains("Timeline · ")).unwrap() + 1;
        let rows = u64::try_from(legend - 2 - top).unwrap();
        let label: String = text.lines().nth(top).unwrap().chars().skip(1).take(8).collect();
        let whole: u64 = label.trim().replace(',', "").parse().unwrap();
        let bars = it.app.marks.len();
        let wide = ((usize::from(size.0) - 2 - 9) / bars).min(7);
        for (number, mark) in it.app.marks.iter().enumerate() {
            let x = u16::try_from(10 + number * wide).unwrap();
            let cells = (top..top + rows as usize)
                .map(|y| buffer[(x, u16::try_from(y).unwrap())].symbol().to_owned());
            let cells: Vec<String> = cells.filter(|cell| cell != " " && cell != "─").collect();
            let eighths = mark.figures.tokens * rows * 8 / whole;
            assert_eq!(
                cells.len() as u64,
                eighths.div_ceil(8).max(u64::from(eighths > 0)),
                "{arguments} {number}\n{text}"
            );
            for (kind, tokens) in mark.kinds.iter().filter(|(_, tokens)| tokens * rows >= 2 * whole) {
                let sign = context_window_report::palette::sign(kind).to_string();
                assert!(cells.contains(&sign), "{arguments} {number}: {tokens} of {kind:?}\n{text}");
            }
            checked += 1;
        }
    }
    assert!(checked > 30);
}
