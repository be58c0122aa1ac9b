//! Interactive widgets: their snapshots, and properties for every plan and every key.

use super::{drawn, levels, plan, session, text};
use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Message, Model, PinnedItem, PlanRequest,
    RagItem, RequestLimits, Ttl,
    config::TtlPolicy,
    plan::{Decision, NoticeCode},
    usage::Level,
};
use context_window_ratatui::{
    Banner, BannerAction, BannerState, BudgetSlider, DetailState, Filter, FilterLine, FilterLineState,
    ItemDetail, ItemExplanation, ItemList, ItemListState, ItemTexts, ListRow, Move, NoticeAction, NoticeList,
    NoticeListState, PromptGrid, Shown, SortBy, Theme, WhatIf, WhatIfEffect, WhatIfState,
};
use context_window_report as report;
use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier},
    widgets::{StatefulWidget, Widget},
};
use std::collections::BTreeSet;

fn asking(model: &str) -> ContextWindowManager {
    let mut config = Config::default();
    config.ttl_policy = TtlPolicy::Ask;
    ContextWindowManager::configured(Model::named(model).unwrap(), config).unwrap()
}

/// Creates a conversation with an expired note, an expired message, a pin that does not fit, and documents of
/// which one is excluded.
fn desk() -> (Conversation, Vec<RagItem>) {
    let mut log = Conversation::new();
    log.push_system("s0", "Answer from the documents.");
    log.pin(PinnedItem::new("voucher", "Ida has a voucher.").with_ttl(Ttl::turns(0)));
    log.pin(PinnedItem::new("manual", "The whole manual of the kettle. ".repeat(60)));
    for n in 0..6 {
        log.push(Message::user(format!("Question {n}: does kettle {n} whistle?")));
        log.push(Message::assistant(format!("Answer {n}: it does, quietly.")));
    }
    log.push(Message::user("How long do refunds take?"));
    log.set_ttl("m0", Ttl::NoneRemaining).unwrap();
    let documents = vec![
        RagItem::new("refunds", 0.92, "\n  Refunds take 5 days.\nThey go to the card."),
        RagItem::new("hours", 0.1, "We are open from 9 to 18. ".repeat(40)),
    ];
    (log, documents)
}

fn request<'a>(log: &'a Conversation, documents: &[RagItem]) -> PlanRequest<'a> {
    PlanRequest::new(log).with_rag(documents.to_vec()).with_limits(RequestLimits::prompt_budget(260))
}

fn page(width: u16, theme: Theme) -> Buffer {
    let (log, documents) = desk();
    let manager = asking("gpt-4o");
    let plan = manager.build_plan(&request(&log, &documents)).unwrap();
    let texts = ItemTexts::new().with_log(&log).with_documents(&documents);
    let row = plan.find("hours").unwrap();
    let why = WhatIf::new().explain(&manager, &request(&log, &documents), row).unwrap();
    let mut what_if = WhatIfState::from_plan(&plan);
    what_if.larger_steps();
    what_if.smaller();
    what_if.toggle_pin(plan.find("m3").unwrap(), &texts);
    let (_, effect) = what_if.plan(&manager, &request(&log, &documents)).unwrap();
    drawn(width, 45, |area, buffer| {
        let row_at = |y, height| Rect { y, height, ..area };
        let mut list = ItemListState::new();
        let mut line = FilterLineState::default();
        ItemList::new(&plan).with_texts(&texts).with_theme(theme).render(row_at(0, 6), buffer, &mut list);
        "section:documents >x".chars().for_each(|c| line.insert(c, &mut list));
        list.set_shown(Shown::Out);
        ItemList::new(&plan).with_theme(theme).render(row_at(6, 4), buffer, &mut list);
        FilterLine::new().with_theme(theme).render(row_at(10, 1), buffer, &mut line);
        ItemDetail::new(&plan, row).with_texts(&texts).with_explanation(&why).with_theme(theme).render(
            row_at(12, 12),
            buffer,
            &mut DetailState::default(),
        );
        BudgetSlider::new(&what_if).with_effect(&effect).with_theme(theme).render(row_at(25, 1), buffer);
        let mut notices = NoticeListState::with_turns(3);
        NoticeList::new(&plan).with_theme(theme).render(row_at(27, 7), buffer, &mut notices);
        notices.apply_move(Move::Last);
        notices.next_action();
        NoticeList::new(&plan).with_theme(theme).render(row_at(34, 5), buffer, &mut notices);
        for (usage, y) in levels().iter().zip([39, 39, 42]) {
            let mut state = BannerState::default();
            Banner::new(usage).with_theme(theme).render(row_at(y, 3), buffer, &mut state);
        }
    })
}

#[test]
fn widgets_match_their_snapshots() {
    for width in [40, 80, 120] {
        insta::assert_snapshot!(format!("interactive_{width}"), text(&page(width, Theme::plain())));
    }
}

#[test]
fn plain_theme_has_no_colour_and_the_same_text() {
    let (coloured, plain) = (page(100, Theme::colours()), page(100, Theme::plain()));
    assert_eq!(text(&coloured), text(&plain));
    assert!(plain.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
}

/// Widgets do not panic and draw only inside their area, for any area, including an empty one and one away
/// from the corner.
#[test]
fn every_size_is_drawn() {
    let (log, documents) = desk();
    let manager = asking("gpt-4o");
    let plan = manager.build_plan(&request(&log, &documents)).unwrap();
    let texts = ItemTexts::new().with_log(&log).with_documents(&documents);
    let (usage, what_if) = (levels()[2], WhatIfState::from_plan(&plan));
    let whole = Rect::new(0, 0, 150, 14);
    let widths = (0..40).chain([79, 80, 100, 119, 120, 140]);
    for area in widths.flat_map(|width| (0..9).map(move |height| Rect::new(3, 2, width, height))) {
        let mut list = ItemListState::new();
        let mut notices = NoticeListState::default();
        let mut detail = DetailState::default();
        for which in 0..7 {
            let mut buffer = Buffer::empty(whole);
            let mut line = FilterLineState::default();
            list.apply_move(Move::Last);
            notices.apply_move(Move::Down);
            detail.apply_move(Move::PageDown);
            match which {
                0 => ItemList::new(&plan).with_texts(&texts).render(area, &mut buffer, &mut list),
                1 => ItemList::new(&plan).render(area, &mut buffer, &mut list),
                2 => ItemDetail::new(&plan, plan.find("hours").unwrap()).with_texts(&texts).render(
                    area,
                    &mut buffer,
                    &mut detail,
                ),
                3 => NoticeList::new(&plan).render(area, &mut buffer, &mut notices),
                4 => Banner::new(&usage).render(area, &mut buffer, &mut BannerState::default()),
                5 => BudgetSlider::new(&what_if).render(area, &mut buffer),
                _ => FilterLine::new().render(area, &mut buffer, &mut line),
            }
            for (x, y) in (0..14).flat_map(|y| (0..150).map(move |x| (x, y))) {
                let blank = buffer[(x, y)].symbol() == " ";
                assert!(
                    area.contains((x, y).into()) || blank,
                    "{which} in {area}: {x},{y}\n{}",
                    text(&buffer)
                );
            }
        }
    }
    // An empty area, and the smallest one.
    for size in [0, 1] {
        drawn(size, size, |area, buffer| {
            ItemList::new(&plan).render(area, buffer, &mut ItemListState::new());
            BudgetSlider::new(&what_if).render(area, buffer);
        });
    }
}

/// After any keys, the selected row exists, is visible, and is the only marked row.
#[test]
fn the_selected_row_is_in_sight() {
    let plans = [
        ("support-chat", Some(RequestLimits::prompt_budget(400))),
        ("long-talk", Some(RequestLimits::prompt_budget(200))),
    ]
    .map(|(name, limits)| (session(name), plan(name, limits)));
    let mut state = ItemListState::new();
    let mut seed = 7_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    let (mut at, mut checked) = (0, 0);
    for round in 0..2_000 {
        match random(14) {
            0 => state.apply_move(Move::First),
            1 => state.apply_move(Move::Last),
            2 => state.apply_move(Move::PageDown),
            3 => state.apply_move(Move::PageUp),
            4 => state.apply_move(Move::By(isize::try_from(random(9)).unwrap() - 4)),
            5 => state.sort_next(),
            6 => state.reverse_order(),
            7 => state.set_shown([Shown::All, Shown::In, Shown::Out][random(3)]),
            8 => state
                .set_filter(["", "m", ">20", "section:doc", "nothing-is-called-this"][random(5)])
                .unwrap(),
            9 => {
                state.select_line(u16::try_from(random(12)).unwrap());
            }
            10 => {
                at = random(2);
                state.refresh_rows(&plans[at].1, &ItemTexts::new().with_log(&plans[at].0.log));
            }
            _ => state.apply_move(Move::Down),
        }
        let (session, plan) = &plans[at];
        let texts = ItemTexts::new().with_log(&session.log);
        let (width, height) =
            (u16::try_from(40 + random(90)).unwrap(), u16::try_from(2 + random(9)).unwrap());
        let view = drawn(width, height, |area, buffer| {
            ItemList::new(plan).with_texts(&texts).render(area, buffer, &mut state);
        });
        let marked: Vec<u16> =
            (1..height).filter(|y| view[(0, *y)].modifier.contains(Modifier::REVERSED)).collect();
        let Some(row) = state.row(plan) else {
            assert!(state.rows().is_empty() && marked.is_empty(), "round {round}\n{}", text(&view));
            continue;
        };
        assert_eq!(marked.len(), 1, "round {round}\n{}", text(&view));
        assert_eq!(usize::from(marked[0]) - 1 + state.offset(), state.selected(), "round {round}");
        let line = text(&view).lines().nth(usize::from(marked[0])).unwrap().to_owned();
        let start: String = report::row(plan, row).id.chars().take(4).collect();
        assert!(line[2..].starts_with(&start), "round {round}: {line} is not {start}");
        checked += 1;
    }
    assert!(checked > 1_000, "{checked}");
}

#[test]
fn a_filter_of_everything_shows_everything() {
    for (name, budget) in [("support-chat", 400), ("long-talk", 200), ("overflow", 180), ("pins-ttl", 150)] {
        let plan = plan(name, Some(RequestLimits::prompt_budget(budget)));
        let (all, texts) = (u32::try_from(plan.row_count()).unwrap(), ItemTexts::new());
        let rows = |choose: &dyn Fn(&mut ItemListState)| {
            let mut state = ItemListState::new();
            choose(&mut state);
            state.refresh_rows(&plan, &texts);
            state.rows().to_vec()
        };
        let everything: Vec<ListRow> = (0..all).map(ListRow::Item).collect();
        for filter in ["", "  ", ">=0", "<=18446744073709551614", "section:"] {
            assert_eq!(rows(&|state| state.set_filter(filter).unwrap()), everything, "{name}: {filter}");
        }
        let mut both = rows(&|state| state.set_shown(Shown::In));
        both.extend(rows(&|state| state.set_shown(Shown::Out)));
        assert_eq!(both, everything, "{name}");
        for sort in SortBy::ALL {
            let mut sorted = rows(&|state| state.sort_by(sort));
            sorted.sort_unstable();
            assert_eq!(sorted, everything, "{name} by {sort:?}");
        }
        for at in everything {
            let ListRow::Item(number) = at else { panic!("no item") };
            let row = plan.row_at(number as usize).unwrap();
            let id = row.id().as_str();
            assert!(
                rows(&|state| state.set_filter(&format!("id:{id}")).unwrap()).contains(&at),
                "{name}: {id}"
            );
            let more: Filter = format!(">={} <={}", row.token_estimate().tokens, row.token_estimate().tokens)
                .parse()
                .unwrap();
            assert!(more.matches(&plan, row, &texts), "{name}: {id}");
        }
    }
}

/// Documents with one reason have different ranks, so a filter must read the text of each.
#[test]
fn ranks_in_several_lists_are_shown_in_place_of_scores() {
    let documents = |ids: [&'static str; 3]| {
        ids.into_iter().zip([3.5, 2.5, 1.5]).map(|(id, score)| RagItem::new(id, score, format!("Text {id}.")))
    };
    let config = Config::from_toml("rag.max_items = 1", "test").unwrap();
    let manager = ContextWindowManager::configured(Model::named("gpt-4o").unwrap(), config).unwrap();
    let log = Conversation::from([Message::user("Does it whistle?")]);
    let one = PlanRequest::new(&log).with_rag_list("words", documents(["a", "b", "c"]));
    let several = one.clone().with_rag_list("meaning", documents(["a", "c", "b"]));
    let lines = |request: &PlanRequest<'_>, id: &str| -> Vec<String> {
        let (plan, texts) = (manager.build_plan(request).unwrap(), ItemTexts::from_request(request));
        let lines = ItemDetail::new(&plan, plan.find(id).unwrap()).with_texts(&texts).lines(80);
        lines.iter().map(ToString::to_string).collect()
    };
    let (alone, fused) = (lines(&one, "b"), lines(&several, "b"));
    assert!(alone[0].starts_with("out: skipped: the limit of 1 documents is reached, "), "{alone:?}");
    assert!(alone.contains(&"  score 2.5".to_owned()), "{alone:?}");
    let expected = "out: skipped: the limit of 1 documents is reached (words 2, meaning 3), ";
    assert!(fused[0].starts_with(expected) && !fused.iter().any(|line| line.contains("score")), "{fused:?}");
    let plan = manager.build_plan(&several).unwrap();
    let mut state = ItemListState::new();
    for (filter, ids) in [("meaning", vec!["a", "b", "c"]), ("2)", vec!["c"])] {
        state.set_filter(filter).unwrap();
        state.refresh_rows(&plan, &ItemTexts::new());
        let rows = state.rows().iter().filter_map(|row| match row {
            ListRow::Item(at) => plan.row_at(*at as usize),
            _ => None,
        });
        assert_eq!(rows.map(|row| row.id().as_str()).collect::<Vec<_>>(), ids, "{filter}");
    }
}

#[test]
fn filter_error_names_the_expected_term() {
    for (filter, term, expected) in [
        (">x", ">x", "expected a number of tokens"),
        ("a <=", "<=", "expected a number of tokens"),
        ("m1 ttl:3", "ttl:3", "expected reason, section, source or id"),
        (">\u{1b}[31m", ">\u{1b}[31m", "`>?[31m`: expected"),
    ] {
        let error = filter.parse::<Filter>().unwrap_err();
        assert_eq!(error.term(), term);
        assert!(error.to_string().contains(expected), "{error}");
    }
    let mut state = ItemListState::new();
    state.set_filter("section:documents").unwrap();
    assert!(state.set_filter(">x").is_err());
    assert_eq!(state.filter(), "section:documents", "the last one stays");
}

/// An item selected in one plan is selected in the next one, also if it is part of a run there.
#[test]
fn the_selected_item_stays_selected() {
    let session = session("long-talk");
    let texts = ItemTexts::new().with_log(&session.log);
    let (large, small) =
        (plan("long-talk", None), plan("long-talk", Some(RequestLimits::prompt_budget(120))));
    for at in 0..large.included.len() {
        let (row, mut state) = (large.row_at(at).unwrap(), ItemListState::new());
        state.refresh_rows(&large, &texts);
        state.select(at);
        state.remember_plan(&large);
        state.refresh_rows(&small, &texts);
        let now = state.row(&small).unwrap();
        let gone = small.find(&row.qualified_id()).is_none() && !texts.represents(now, row.id().as_str());
        assert!(texts.represents(now, row.id().as_str()) || now.id() == row.id() || gone, "{}", row.id());
        assert!(!gone || row.kind().name() == "summary", "{}", row.id());
    }
}

const HOSTILE: [&str; 4] =
    ["\u{1b}[31mred", "a\u{202e}b\u{2066}c", "bell\u{7}\r\n\u{9b}2J", "日本👩‍👩‍👧e\u{301}\u{200f}"];

fn detail_lines(plan: &ContextPlan, row: Decision<'_>, texts: &ItemTexts<'_>, error: &str) -> String {
    let detail =
        ItemDetail::new(plan, row).with_texts(texts).with_explanation(ItemExplanation::Failed(error));
    detail.lines(80).iter().map(ToString::to_string).collect()
}

#[test]
fn no_session_text_reaches_the_terminal_as_control_characters() {
    for (at, hostile) in HOSTILE.iter().enumerate() {
        let mut log = Conversation::new();
        log.pin(
            PinnedItem::new(format!("note {hostile}"), format!("{hostile}\n\t{hostile}"))
                .with_ttl(Ttl::turns(0)),
        );
        log.pin(PinnedItem::new(format!("pin {hostile}"), "so many words ".repeat(900)));
        for n in 0..9 {
            log.push(
                Message::user(format!("{hostile} {}", "words ".repeat(40)))
                    .with_id(format!("m {n}{hostile}")),
            );
        }
        let documents = [
            RagItem::new(format!("doc {hostile}"), 0.5, *hostile),
            RagItem::new("b", 0.1, hostile.repeat(300)),
        ];
        let manager = asking("gpt-4o");
        let plan = manager.build_plan(&request(&log, &documents)).unwrap();
        assert!(plan.notices.len() >= 2 && plan.excluded.len() >= 2, "{at}");
        let texts = ItemTexts::new().with_log(&log).with_documents(&documents);
        let mut what_if = WhatIfState::from_plan(&plan);
        for (width, number) in
            [30, 80, 130].iter().flat_map(|width| (0..plan.row_count()).map(move |n| (*width, n)))
        {
            let row = plan.row_at(number).unwrap();
            let said = what_if.toggle_pin(row, &texts).to_string()
                + &what_if.toggle_expired(row, &texts).to_string();
            let (mut list, mut notices) = (ItemListState::new(), NoticeListState::default());
            list.set_filter(hostile.split_whitespace().next().unwrap()).unwrap();
            let mut line = FilterLineState::from_list(&list);
            line.insert('\u{1b}', &mut list);
            notices.apply_move(Move::By(isize::try_from(number).unwrap()));
            let title = ItemList::new(&plan).title(&list) + &ItemDetail::new(&plan, row).title();
            let view = drawn(width, 40, |area, buffer| {
                let rows = |y, height| Rect { y, height, ..area };
                ItemList::new(&plan).with_texts(&texts).render(rows(0, 9), buffer, &mut list);
                let error = ItemExplanation::Failed(hostile);
                let detail = ItemDetail::new(&plan, row).with_texts(&texts).with_explanation(error);
                detail.render(rows(9, 20), buffer, &mut DetailState::default());
                NoticeList::new(&plan).render(rows(29, 10), buffer, &mut notices);
                FilterLine::new().render(rows(39, 1), buffer, &mut line);
            });
            // The buffer removes most control characters itself, so the lines for other uses are checked too.
            let lines = detail_lines(&plan, row, &texts, hostile);
            let first = texts.first_line(row).unwrap_or_default();
            let acts = |c: char| {
                c.is_control()
                    || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
            };
            for symbol in view
                .content()
                .iter()
                .map(ratatui_core::buffer::Cell::symbol)
                .chain([&*said, &*title, &*lines, &*first])
            {
                assert!(!symbol.contains(acts), "{at}: {symbol:?}");
            }
        }
    }
}

/// Every action names an item of the plan and has its stated effect.
#[test]
fn actions_have_their_stated_effect() {
    let (log, documents) = desk();
    let manager = asking("gpt-4o");
    let plan_of = |log: &Conversation| manager.build_plan(&request(log, &documents)).unwrap();
    let plan = plan_of(&log);
    let is_in = |plan: &ContextPlan, id: &str| plan.included.iter().any(|item| item.id == id);
    let asked = |plan: &ContextPlan, id: &str| {
        plan.notices
            .iter()
            .any(|notice| notice.code == NoticeCode::TtlQuestion && notice.ids.iter().any(|one| one == id))
    };
    let mut labels = Vec::new();
    for (at, notice) in plan.notices.iter().enumerate() {
        let actions = NoticeAction::for_notice(&plan, notice, 3);
        let offers = matches!(notice.code, NoticeCode::TtlQuestion | NoticeCode::PinDropped);
        assert_eq!(actions.is_empty(), !offers, "{notice:?}");
        // The list state offers the same actions in turn.
        let mut state = NoticeListState::with_turns(3);
        state.apply_move(Move::By(isize::try_from(at).unwrap()));
        for action in &actions {
            assert_eq!(state.action(&plan).as_ref(), Some(action));
            state.next_action();
        }
        for action in actions {
            let (mut changed, id) = (log.clone(), action.id().as_str());
            assert!(plan.find(id).is_some(), "{id}");
            action.apply(&mut changed).unwrap();
            let after = plan_of(&changed);
            match &action {
                NoticeAction::RePin { ttl: Some(Ttl::Unlimited), .. } => assert!(is_in(&after, id)),
                NoticeAction::RePin { .. } if notice.code == NoticeCode::TtlQuestion => {
                    assert!(is_in(&after, id) && !asked(&after, id) && changed.is_pinned(id), "{id}");
                }
                NoticeAction::Keep { .. } => assert!(is_in(&after, id) && !asked(&after, id), "{id}"),
                NoticeAction::Drop { .. } => assert!(!is_in(&after, id) && !asked(&after, id), "{id}"),
                _ => {}
            }
            // Trying an action leaves the conversation unchanged.
            let mut what_if = WhatIfState::from_plan(&plan);
            assert!(what_if.try_action(&action, &log), "{action:?}");
            let (tried, _) = what_if.plan(&manager, &request(&log, &documents)).unwrap();
            if matches!(action, NoticeAction::Drop { .. }) {
                assert!(!is_in(&tried, id) && !asked(&tried, id), "{id}");
            }
            assert_eq!(plan_of(&log), plan);
            labels.push(format!("{id}: {}", action.label()));
        }
    }
    assert_eq!(
        labels,
        [
            "manual: re-pin, priority high",
            "manual: re-pin as required",
            "manual: drop",
            "voucher: re-pin",
            "voucher: keep 3 turns",
            "voucher: drop",
            "m0: re-pin",
            "m0: keep 3 turns",
            "m0: drop",
        ]
    );
}

/// An action chosen for one notice does not apply to the notice that takes its place.
#[test]
fn an_action_is_chosen_for_its_own_notice() {
    let (mut log, documents) = desk();
    let manager = asking("gpt-4o");
    let plan = manager.build_plan(&request(&log, &documents)).unwrap();
    let mut state = NoticeListState::default();
    let draw = |plan: &ContextPlan, state: &mut NoticeListState| {
        drawn(80, 20, |area, buffer| NoticeList::new(plan).render(area, buffer, state));
    };
    state.apply_move(Move::By(1));
    draw(&plan, &mut state);
    state.next_action();
    state.next_action();
    let action = state.action(&plan).unwrap();
    assert_eq!(action, NoticeAction::Drop { id: "voucher".into() });
    action.apply(&mut log).unwrap();
    let plan = manager.build_plan(&request(&log, &documents)).unwrap();
    for _ in 0..2 {
        let next = state.action(&plan).unwrap();
        assert_eq!((next.id().as_str(), next.label().as_str()), ("m0", "re-pin"));
        draw(&plan, &mut state);
    }
}

/// An explanation of one row is not shown for another row.
#[test]
fn an_explanation_is_of_its_own_row() {
    let (log, documents) = desk();
    let (manager, request) = (asking("gpt-4o"), request(&log, &documents));
    let plan = manager.build_plan(&request).unwrap();
    let [hours, refunds] = ["hours", "refunds"].map(|id| plan.find(id).unwrap());
    let why = WhatIf::new().explain(&manager, &request, hours).unwrap();
    let said = |row| {
        let lines = ItemDetail::new(&plan, row).with_explanation(&why).lines(80);
        lines.iter().any(|line| line.to_string().contains("prompt budget"))
    };
    assert_eq!((said(hours), said(refunds), why.item_id()), (true, false, "rag:hours"));
}

#[test]
fn action_for_a_removed_item_is_an_error() {
    let (mut log, documents) = desk();
    let plan = asking("gpt-4o").build_plan(&request(&log, &documents)).unwrap();
    let voucher = plan.notices.iter().find(|notice| notice.ids[0] == "voucher").unwrap();
    log.unpin("voucher");
    for action in NoticeAction::for_notice(&plan, voucher, 1) {
        let done = action.apply(&mut log);
        assert_eq!(done.is_err(), !matches!(action, NoticeAction::Drop { .. }), "{action:?}");
    }
}

#[test]
fn tried_changes_give_their_plan() {
    let (log, documents) = desk();
    let manager = asking("gpt-4o");
    let request = request(&log, &documents);
    let base = manager.build_plan(&request).unwrap();
    let texts = ItemTexts::from_request(&request);
    let mut state = WhatIfState::from_plan(&base);
    assert_eq!(state.plan(&manager, &request).unwrap(), (base.clone(), WhatIfEffect::default()));

    // The budget is never below 1 or above the model's limit, and its original value is no change.
    for _ in 0..3 {
        state.larger_steps();
    }
    for _ in 0..2_000 {
        assert!(!state.smaller() || state.budget() >= 1);
    }
    assert_eq!(state.budget(), 1);
    while state.larger() {}
    assert_eq!(state.budget(), base.limits.largest_budget());
    assert_eq!(state.undos(), 1, "a row of steps is undone in one");
    assert!(state.set_budget(260) && state.changes().is_empty());
    assert!(state.undo() && !state.undo());

    // Toggling an item twice restores it.
    for at in 0..base.row_count() {
        let row = base.row_at(at).unwrap();
        for toggle in [WhatIfState::toggle_pin, WhatIfState::toggle_expired] {
            let attempt = toggle(&mut state, row, &texts);
            assert_eq!(attempt.changed(), !state.changes().is_empty(), "{attempt}");
            if attempt.changed() {
                assert!(toggle(&mut state, row, &texts).changed() && state.changes().is_empty(), "{attempt}");
            }
        }
    }
    while state.undo() {}
    let refunds = base.find("refunds").unwrap();
    assert!(state.exclude(refunds, &texts).changed());
    let (plan, effect) = state.plan(&manager, &request).unwrap();
    assert!(plan.find("refunds").is_none() && effect.went.iter().any(|id| id == "refunds"));
    assert_eq!(manager.build_plan(&request).unwrap(), base, "the request is as it was");
    assert!(state.undo());

    // Applying the changes gives the plan that was tried.
    state.toggle_pin(base.find("m3").unwrap(), &texts);
    state.toggle_expired(base.find("m7").unwrap(), &texts);
    let (tried, _) = state.plan(&manager, &request).unwrap();
    let mut changed = log.clone();
    state.changes().apply(&mut changed);
    let limits = state.changes().limits(RequestLimits::prompt_budget(260));
    let done =
        manager.build_plan(&PlanRequest::new(&changed).with_rag(documents.clone()).with_limits(limits));
    assert_eq!(tried, done.unwrap());
}

#[test]
fn slider_matches_planning() {
    let (log, documents) = desk();
    let base = asking("gpt-4o").build_plan(&request(&log, &documents)).unwrap();
    let mut state = WhatIfState::from_plan(&base);
    for width in [20, 40, 80, 160] {
        let mut last = 0;
        for budget in (1..=520).step_by(13) {
            state.set_budget(budget);
            let area = Rect::new(2, 0, width, 1);
            let view = drawn(width + 2, 1, |_, buffer| BudgetSlider::new(&state).render(area, buffer));
            let line = text(&view);
            if !line.contains('●') {
                continue; // no room
            }
            let at = line.chars().position(|c| c == '●').unwrap();
            assert!(at >= last, "{width}: {budget}\n{line}");
            last = at;
            // A click on the mark selects that budget.
            let clicked = BudgetSlider::new(&state).budget_at(area, u16::try_from(at).unwrap()).unwrap();
            let column = 520 / (u64::from(width / 4).clamp(10, 40) - 1) + 1;
            assert!(clicked.abs_diff(budget) <= column, "{width}: {clicked} is not {budget}");
        }
        assert_eq!(BudgetSlider::new(&state).budget_at(Rect::new(2, 0, width, 1), 3), None);
    }
}

#[test]
fn banner_is_shown_only_with_a_message() {
    for (usage, level) in levels().iter().zip([Level::Normal, Level::Approaching, Level::AtLimit]) {
        assert_eq!(usage.level, level);
        for width in [0, 1, 30, 60, 100, 200] {
            let (banner, mut state) = (Banner::new(usage), BannerState::default());
            let height = banner.height(width, &state);
            assert_eq!(height > 0, level > Level::Normal);
            let view = drawn(width, 60, |area, buffer| banner.render(area, buffer, &mut state));
            assert!(text(&view).lines().skip(height.into()).all(str::is_empty));
            assert_eq!(state.action(usage), (level > Level::Normal).then_some(BannerAction::CompactNow));
            state.next_action();
            assert_eq!(state.action(usage), (level > Level::Normal).then_some(BannerAction::StartFresh));
            state.close(usage);
            assert_eq!((banner.height(width, &state), state.action(usage)), (0, None));
        }
    }
    // The banner is red only for a prompt that does not fit.
    for mut usage in levels().into_iter().filter(|usage| usage.level > Level::Normal) {
        for (budget, colour, says) in [
            (usage.prompt_tokens, Color::Yellow, "; prompt fits"),
            (usage.prompt_tokens - 1, Color::Red, "!! "),
        ] {
            usage.budget = budget;
            let mut state = BannerState::default();
            let view = drawn(100, 1, |area, buffer| Banner::new(&usage).render(area, buffer, &mut state));
            assert_eq!(view[(0, 0)].fg, colour, "{usage:?}");
            assert!(text(&view).contains(says), "{}", text(&view));
        }
    }
    // A closed banner appears again at the next level, and after the level was left.
    let [normal, approaching, full] = levels();
    let mut state = BannerState::default();
    state.close(&approaching);
    assert!(state.is_shown(&full));
    drawn(9, 1, |area, buffer| Banner::new(&normal).render(area, buffer, &mut state));
    assert!(state.is_shown(&approaching));
}

/// The model's context length is shown next to the budget, if known.
#[test]
fn context_length_is_shown_with_the_budget() {
    let usage = plan("support-chat", Some(RequestLimits::prompt_budget(400))).usage;
    assert_eq!((usage.model_context_len, usage.to_string().as_str()), (128_000, "370 / 400 of 128,000"));
    assert_eq!(serde_json::to_value(usage).unwrap()["context_len"], 128_000);
}

#[test]
fn a_preview_is_the_first_line_of_the_text() {
    let (log, documents) = desk();
    let plan = asking("gpt-4o").build_plan(&request(&log, &documents)).unwrap();
    let texts = ItemTexts::new().with_log(&log).with_documents(&documents);
    let first = |texts: &ItemTexts<'_>, id: &str| texts.first_line(plan.find(id).unwrap());
    assert_eq!(first(&texts, "refunds").as_deref(), Some("Refunds take 5 days."));
    assert_eq!(first(&texts, "hours").unwrap()[..24], *"We are open from 9 to 18");
    assert_eq!(first(&texts, "s0").as_deref(), Some("Answer from the documents."));
    assert_eq!(first(&texts, "voucher").as_deref(), Some("Ida has a voucher."));
    assert_eq!(first(&texts, "m3").as_deref(), Some("Answer 1: it does, quietly."));
    // A plan alone contains the texts of included items only.
    assert!(first(&ItemTexts::new(), "m3").is_some() && first(&ItemTexts::new(), "hours").is_none());
}

/// The filter searches every message of a run, excluded documents, and the reason of each excluded row, also
/// of adjacent rows with different reasons.
#[test]
fn filter_finds_texts_and_reasons_of_excluded_items() {
    let mut log = Conversation::new();
    for n in 0..40 {
        let word = if n == 7 { "Nightingale" } else { "sparrow" };
        log.push(Message::user(format!("Question {n} about a {word}, with some words more.")));
        log.push(Message::assistant(format!("Answer {n}.")));
    }
    log.push(Message::user("Which birds were those?"));
    let mut config = Config::default();
    config.rag.min_score = Some(0.3);
    let manager = ContextWindowManager::configured(Model::named("gpt-4o").unwrap(), config).unwrap();
    let documents = [
        RagItem::new("a", 0.9, "A starling. ".repeat(60)),
        RagItem::new("b", 0.2, "A nightingale of low score."),
        RagItem::new("c", 0.8, "A wren. ".repeat(60)),
    ];
    let request = PlanRequest::new(&log).with_rag(documents).with_limits(RequestLimits::prompt_budget(120));
    let plan = manager.build_plan(&request).unwrap();
    let texts = ItemTexts::from_request(&request);
    let rows = |filter: &str| -> Vec<String> {
        let mut state = ItemListState::new();
        state.set_filter(filter).unwrap();
        state.refresh_rows(&plan, &texts);
        let row = |row: &ListRow| match row {
            ListRow::Item(at) => report::row(&plan, plan.row_at(*at as usize).unwrap()).id,
            _ => String::new(),
        };
        state.rows().iter().map(row).collect()
    };
    let run = plan.excluded.iter().find(|row| row.count > 1).expect("most messages are out");
    let inside = log.messages().iter().position(|message| message.text().contains("Nightingale")).unwrap();
    assert_ne!(run.last_id.as_ref().map(|id| id.as_str()), Some(&*format!("m{inside}")), "inside of the run");
    let found = rows("nightingale");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with(run.id.as_str()) && found[1] == "b", "{found:?}");
    assert_eq!(rows("minimum"), ["b"], "the reason of one among neighbours with another");
    let large = rows("large");
    assert!(large.contains(&"a".to_owned()) && large.contains(&"c".to_owned()), "{large:?}");
    assert!(!large.contains(&"b".to_owned()), "{large:?}");
}

/// Documents of one corpus share a long beginning, a long end, or both in their ids. All rows look different.
#[test]
fn long_ids_remain_distinguishable() {
    let common = "corpus/2026/quarterly/reports-of-all-branches/".repeat(2);
    let kinds: [fn(&str, usize) -> String; 3] = [
        |common, n| format!("{common}{n}"),
        |common, n| format!("{n}/{common}"),
        |common, n| format!("{common}{n}{common}"),
    ];
    let log = Conversation::from([Message::user("What sold best?")]);
    for id in kinds {
        let documents: Vec<RagItem> = (0..9)
            .map(|n| RagItem::new(id(&common, n).as_str(), 0.9, format!("{n} kettles were sold in {n}.")))
            .collect();
        let manager = asking("gpt-4o");
        let plan = manager.build_plan(&PlanRequest::new(&log).with_rag(documents)).unwrap();
        for width in [40, 60, 80, 100, 120] {
            let buffer = drawn(width, 14, |area, buffer| {
                ItemList::new(&plan).render(area, buffer, &mut ItemListState::new());
            });
            let lines = text(&buffer);
            let rows: Vec<&str> = lines.lines().filter(|line| line.contains("document")).collect();
            let different: BTreeSet<&&str> = rows.iter().collect();
            assert_eq!((rows.len(), different.len()), (9, 9), "{width}\n{lines}");
            let buffer = drawn(width, 24, |area, buffer| PromptGrid::new(&plan).render(area, buffer));
            let grid = text(&buffer);
            let largest: Vec<&str> = grid.lines().filter(|line| line.contains("document:")).collect();
            assert_eq!(largest.iter().collect::<BTreeSet<_>>().len(), largest.len(), "{width}\n{grid}");
        }
    }
}

/// An item that a what-if removes from the request keeps its row if the list knows it. One key includes it
/// again.
#[test]
fn omitted_item_has_a_row() {
    let (log, documents) = desk();
    let manager = asking("gpt-4o");
    let plan = manager.build_plan(&request(&log, &documents)).unwrap();
    let mut what_if = WhatIfState::from_plan(&plan);
    let texts = ItemTexts::new().with_log(&log).with_documents(&documents);
    let row = plan.find("hours").unwrap();
    let mut list = ItemListState::new();
    list.select_id("hours", true);
    list.refresh_rows(&plan, &texts);
    list.remember_plan(&plan);
    assert!(what_if.exclude(row, &texts).changed());
    let (without, _) = what_if.plan(&manager, &request(&log, &documents)).unwrap();
    assert!(without.find("hours").is_none());
    list.refresh_rows(&without, &texts.with_changes(what_if.changes()));
    let Some(ListRow::LeftOut(nth)) = list.selected_row() else { panic!("{:?}", list.selected_row()) };
    let buffer = drawn(80, 24, |area, buffer| {
        let texts = texts.with_changes(what_if.changes());
        ItemList::new(&without).with_texts(&texts).render(area, buffer, &mut list);
    });
    assert!(text(&buffer).contains("-*hours"), "{}", text(&buffer));
    // The row is shown for every filter, but not among the included items.
    list.set_filter("no row says this").unwrap();
    list.refresh_rows(&without, &texts.with_changes(what_if.changes()));
    assert_eq!(list.rows(), [ListRow::LeftOut(nth)]);
    list.set_shown(Shown::In);
    list.refresh_rows(&without, &texts.with_changes(what_if.changes()));
    assert!(list.rows().is_empty());
    assert_eq!(what_if.bring_back(nth).to_string(), "hours is in the request again");
    assert!(what_if.changes().is_empty() && !what_if.bring_back(nth).changed());
}
