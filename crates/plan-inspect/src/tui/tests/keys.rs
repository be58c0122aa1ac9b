//! The keys, and searching and opening with them.

use super::{
    super::{
        keys::BINDINGS,
        script::Script,
        state::{Effect, Loadable, Pane, Popup, View},
    },
    CHAT, TALK, TALK_SMALL, screen, selected,
};
use context_window::conversation::HistoryRow;
use context_window_ratatui::ListRow;
use context_window_report as report;

/// Walks through every view and every key, and checks the effect of each.
#[test]
fn every_key_has_its_documented_effect() {
    let mut it = screen(CHAT, (120, 40), "");
    let press = |it: &mut Script, keys: &str| it.press(keys).unwrap();
    let total = it.app.list.rows().len();
    assert_eq!(total, 15);

    press(&mut it, "G");
    assert_eq!(it.app.list.selected(), total - 1);
    press(&mut it, "gj<Down><Up>kl");
    assert_eq!((it.app.list.selected(), it.app.pane), (0, Pane::Detail));
    press(&mut it, "h<Tab><Tab>");
    assert_eq!(it.app.pane, Pane::Sections);
    press(&mut it, "jj<Enter>");
    assert_eq!((it.app.pane, it.app.list.rows().len()), (Pane::Items, 5));
    press(&mut it, "<Esc>");
    assert_eq!(it.app.list.rows().len(), total);

    press(&mut it, "i");
    assert_eq!(it.app.list.rows().len(), 13);
    press(&mut it, "o");
    assert_eq!(it.app.list.rows().len(), 2);
    press(&mut it, "a/care<Enter>");
    assert_eq!((it.app.list.rows().len(), it.app.row_id()), (1, Some(("care", true))));
    assert!(matches!(&it.app.explained.1, Loadable::Answered(said) if said.contains("enters at")));
    press(&mut it, "/<C-u>wrong:x tokens:5<Enter>");
    assert!(it.app.note.contains("is not a filter key"), "{}", it.app.note);
    press(&mut it, "<Esc><Esc>");
    assert_eq!(it.app.list.rows().len(), total);

    press(&mut it, "sg");
    assert_eq!(it.app.row_id().map(|row| row.0), Some("care"), "the largest first");
    press(&mut it, "Sssss");
    press(&mut it, "Sg");
    assert_eq!(it.app.row_id().map(|row| row.0), Some("s0"));

    press(&mut it, "+>");
    assert_eq!(it.app.what_if.changes().budget(), Some(440));
    press(&mut it, ">>-.");
    assert_eq!(it.app.what_if.changes().budget(), Some(524));
    assert!(
        it.app.known().unwrap().effect.came.iter().any(|id| id.as_str() == "care"),
        "57 more bring it in"
    );
    press(&mut it, "u");
    assert_eq!(it.app.what_if.changes().budget(), None, "sliding is undone in one");
    press(&mut it, "<lt>,=");
    assert_eq!(it.app.what_if.changes().budget(), None);

    press(&mut it, "g/id:m0<Enter>p");
    assert_eq!(it.app.what_if.changes().pins().get("m0"), Some(&true));
    assert_eq!(
        context_window_report::row(it.app.plan().unwrap(), it.app.row().unwrap()).why,
        "pinned: user message, priority high"
    );
    press(&mut it, "p");
    assert!(it.app.what_if.changes().is_empty());
    press(&mut it, "t");
    assert!(it.app.known().unwrap().effect.went.iter().any(|id| id.as_str() == "m0"), "it has expired");
    press(&mut it, "wu<Esc>");
    assert!(
        matches!(&it.effects[0], Effect::Write(json) if json.contains("\"m0\": true") && json.contains("support-chat.json")),
        "{:?}",
        it.effects
    );
    press(&mut it, "/id:care<Enter>p");
    assert!(it.app.note.contains("documents cannot be pinned"));
    press(&mut it, "y");
    assert_eq!(it.effects[1], Effect::Copy("care".into()));
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
    assert_eq!((it.app.view, it.app.config.selected), (View::Items, 0));
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
    assert!(!it.effects.contains(&Effect::Quit), "Esc never quits");
    press(&mut it, "q<C-z>");
    assert_eq!(it.effects[2..], [Effect::Quit, Effect::Suspend]);
    press(&mut it, "/abc<C-c>");
    assert_eq!(it.effects.last(), Some(&Effect::Quit), "Ctrl-C quits from anywhere");
}

#[test]
fn compactions_are_found_and_open() {
    let mut it = screen(TALK, (80, 24), "{");
    let place = it.app.place_of_prompt().unwrap();
    assert!(it.app.marks[place].figures.compactions > it.app.marks[place - 1].figures.compactions);
    it.press("{").unwrap();
    assert!(it.app.note.contains("no earlier compaction"));
    it.press("5g}").unwrap();
    assert_eq!(it.app.list.selected_row(), Some(ListRow::Compaction(1)));
    it.press("e").unwrap();
    let text = it.text().unwrap();
    assert!(
        text.contains("Compaction #1 · Esc closes") && text.contains("archived m1 to m12 (12)"),
        "{text}"
    );
    it.press("<Esc>}").unwrap();
    assert!(it.app.note.contains("no later compaction"));
    // Markers of compactions do not support what-if changes.
    it.press("ptxy").unwrap();
    assert!(it.app.what_if.changes().is_empty() && it.effects.is_empty());
}

/// Returns the ids in the order of the list, each with its reason.
fn listed(it: &Script) -> Vec<(String, String)> {
    let plan = it.app.listed().unwrap();
    let row = |row: &ListRow| match row {
        ListRow::Item(at) => {
            let words = context_window_report::row(plan, plan.row_at(*at as usize).unwrap());
            (words.id, words.why)
        }
        other => (format!("{other:?}"), String::new()),
    };
    it.app.list.rows().iter().map(row).collect()
}

/// The items view has every message once, in the order of the session, with markers at compactions. Both
/// lists share the selected item.
#[test]
fn the_items_are_the_session() {
    for arguments in [CHAT, TALK, TALK_SMALL, super::OVER, "examples/agent-parallel-tools.json --budget 200"]
    {
        let mut it = screen(arguments, (100, 30), "5");
        let ids: Vec<String> = listed(&it).into_iter().map(|(id, _)| id).collect();
        let log = it.app.subject.session().log.clone();
        let markers = log.history().filter(|row| !matches!(row, HistoryRow::Message { .. }));
        assert_eq!(ids.iter().filter(|id| id.contains('(')).count(), markers.count(), "{ids:?}");
        let messages = log.history().filter_map(|row| match row {
            HistoryRow::Message { id, .. } => Some(id.to_string()),
            _ => None,
        });
        let places: Vec<usize> = messages
            .map(|id| ids.iter().position(|one| *one == id).unwrap_or_else(|| panic!("{id}: {ids:?}")))
            .collect();
        assert!(places.is_sorted(), "{arguments}: {ids:?}");
        let plan = it.app.listed().unwrap();
        assert!(plan.excluded.iter().all(|row| row.count == 1));
        // Both lists describe each item in the same way.
        let of_plan = it.app.plan().unwrap();
        assert_eq!(
            (&plan.included, plan.estimated_tokens_total),
            (&of_plan.included, of_plan.estimated_tokens_total)
        );
        let out = |plan: &context_window::ContextPlan| plan.excluded.iter().map(|row| row.count).sum::<u64>();
        assert_eq!(out(plan), out(of_plan));
        let sum = |plan: &context_window::ContextPlan| {
            plan.excluded.iter().map(|row| row.token_estimate.tokens).sum::<u64>()
        };
        assert_eq!(sum(plan), sum(of_plan), "exact counts add up");
        for place in 0..ids.len() {
            it.app.list.select(place);
            let Some((id, document)) = it.app.row_id().map(|(id, document)| (id.to_owned(), document)) else {
                continue;
            };
            it.press("1").unwrap();
            let row = it.app.row().unwrap();
            assert!(
                row.id().as_str() == id && row.is_document() == document
                    || it.app.texts().represents(row, &id),
                "{id}"
            );
            it.press("5").unwrap();
        }
    }
}

/// Keys for what-if changes act on the message, not on its run.
#[test]
fn a_message_of_a_run_is_tried_by_itself() {
    let mut it = screen("examples/long-talk.json --budget 130", (120, 40), "5/id:m15<Enter>");
    assert_eq!(it.app.row_id(), Some(("m15", false)));
    let text = it.text().unwrap();
    assert!(text.contains("dropped: older"), "{text}");
    it.press("y<Enter>").unwrap();
    assert_eq!(it.effects, [Effect::Copy("m15".into())]);
    let text = it.text().unwrap();
    assert!(text.contains("Detail m15 · Esc closes") && text.contains("0.6 kg rye flour"), "{text}");
    assert!(text.contains("prompt budget"), "what would bring it in\n{text}");
    it.press("<Esc>p").unwrap();
    assert_eq!(
        it.app.what_if.changes().pins().keys().map(context_window::ItemId::as_str).collect::<Vec<_>>(),
        ["m15"]
    );
    assert!(it.app.row().is_some_and(|row| row.id().as_str() == "m15"), "it stays selected");
    it.press("u").unwrap();
    assert!(it.app.what_if.changes().is_empty());
}

/// An earlier prompt lists only the items of its time.
#[test]
fn an_earlier_prompt_lists_its_messages() {
    let mut it = screen(TALK, (100, 30), "5");
    let all = listed(&it).len();
    assert!(listed(&it).iter().any(|(id, _)| id == "Compaction(1)"));
    it.press("[[[[[[[[").unwrap();
    let before = listed(&it);
    assert!(before.len() < all && !before.iter().any(|(id, _)| id.contains("Compaction")), "{before:?}");
}

/// The row of a match shows the matching text, wherever it occurs in the message.
#[test]
fn search_match_is_visible() {
    let (mut found, mut further_on) = (0, 0);
    for word in ["wheat", "rolls", "friday", "shelf", "grams", "salt", "60", "RYE"] {
        let mut it = screen(TALK, (80, 24), "5g");
        it.press(&format!("/{word}<Enter>")).unwrap();
        for place in 0..it.app.list.rows().len() {
            let line = selected(&it);
            assert!(line.to_lowercase().contains(&word.to_lowercase()), "{place}, {word}: {line}");
            found += 1;
            further_on += usize::from(line.contains("  … "));
            it.press("n").unwrap();
        }
    }
    assert!(found >= 20 && further_on > 0, "{found} {further_on}");
}

/// The search ignores case and takes every character literally. After the filter is cleared, the same row is
/// selected.
#[test]
fn looking_for_something_keeps_the_row() {
    let mut it = screen(TALK, (80, 24), "5g");
    let all = it.app.list.rows().len();
    let mut rows_of = |text: &str| {
        it.press(&format!("/<C-u>{text}<Enter>")).unwrap();
        it.app.list.rows().to_vec()
    };
    let wheat = rows_of("wheat");
    assert!(wheat.len() > 3 && wheat.len() < all);
    for same in ["Wheat", "WHEAT", "wHEAt"] {
        assert_eq!(rows_of(same), wheat);
    }
    // Characters of regular expressions have no special meaning.
    assert!(rows_of("(.*").is_empty() && rows_of("wheatx").is_empty());
    rows_of("wheat");
    it.press("n").unwrap();
    let id = it.app.row_id().map(|(id, _)| id.to_owned()).unwrap();
    it.press("<Esc>").unwrap();
    assert_eq!((it.app.row_id(), it.app.list.rows().len()), (Some((&*id, false)), all));
}

/// The same key undoes a tried change, even if the item is then part of a run.
#[test]
fn same_key_undoes_the_change() {
    let mut tried = 0;
    for (arguments, keys) in [(CHAT, "jjj"), (CHAT, "jjjj"), (CHAT, "j"), (TALK_SMALL, "jj")] {
        for key in ["t", "p"] {
            let mut it = screen(arguments, (120, 40), keys);
            let (id, document) = it.app.row_id().map(|(id, document)| (id.to_owned(), document)).unwrap();
            it.press(key).unwrap();
            if it.app.what_if.changes().is_empty() || it.app.subject.message(&id).is_none() {
                continue;
            }
            assert!(
                !document && it.app.subject.item_texts().represents(it.app.row().unwrap(), &id),
                "{arguments} {keys}{key}"
            );
            it.press(key).unwrap();
            assert!(it.app.what_if.changes().is_empty(), "{arguments} {keys}{key}: {:?}", it.app.what_if);
            tried += 1;
        }
    }
    assert!(tried >= 4, "{tried}");
}

/// Excluded messages with the same reason share a row. Filtering by the id of any of them finds the row.
#[test]
fn a_message_inside_of_a_row_is_found() {
    let mut it = screen("examples/long-talk.json --budget 120", (120, 40), "o");
    let runs = |it: &Script| -> Vec<String> {
        let plan = it.app.plan().unwrap();
        let rows = it.app.list.rows().iter().filter_map(|row| match row {
            ListRow::Item(at) => plan.row_at(*at as usize),
            _ => None,
        });
        rows.map(|row| context_window_report::row(plan, row).id).collect()
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

/// A filter by id also finds a named message inside a run, but only by its whole id.
#[test]
fn a_named_message_inside_of_a_row_is_found() {
    let messages: Vec<_> = (0..9)
        .map(|at| {
            serde_json::json!({
                "role": (["user", "assistant"][at % 2]),
                "id": format!("Turn-{}", char::from(b"abcdefghi"[at])),
                "content": "so many words that few of these have room ".repeat(5),
            })
        })
        .collect();
    let path = std::env::temp_dir().join(format!("context-window-{}-named.json", std::process::id()));
    std::fs::write(&path, serde_json::json!({"model": "gpt-4o", "messages": messages}).to_string()).unwrap();
    let mut it = screen(&format!("{} --budget 150", path.display()), (120, 40), "o");
    assert_eq!(it.app.list.rows().len(), 1, "{}", it.text().unwrap());
    for (name, found) in
        [("Turn-c", 1), ("Turn-d", 1), ("Turn-i", 0), ("Turn", 1), ("turn-c", 0), ("Turn-x", 0)]
    {
        for key in ["id:", ""] {
            it.press(&format!("/<C-u>{key}{name}<Enter>")).unwrap();
            assert_eq!(it.app.list.rows().len(), found, "{key}{name}");
        }
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn every_binding_is_in_the_help() {
    for size in [(120, 40), (60, 40)] {
        let text = screen(CHAT, size, "?").text().unwrap();
        for binding in BINDINGS {
            // Narrow screens cut long descriptions.
            let does: String = binding.does.chars().take(usize::from(size.0) - 18).collect();
            assert!(text.contains(&does), "{} at {size:?}", binding.shown);
        }
    }
}

#[test]
fn every_key_is_on_the_page() {
    let page =
        std::fs::read_to_string(context_window_testing::root().join("docs/reference/screen.md")).unwrap();
    for binding in BINDINGS {
        assert!(page.contains(&format!("| `{}` | {} |", binding.shown, binding.does)), "{}", binding.shown);
    }
}

#[test]
fn unknown_key_names_are_refused() {
    let mut it = screen(CHAT, (80, 24), "");
    assert!(it.press("<Entre>").unwrap_err().to_string().contains("<Entre> is not a key"));
    assert_eq!(crate::args::picture_size("120x40"), Ok((120, 40)));
    for wrong in ["120", "0x5", "x", "-1x3", "120x40x2", "99999x9"] {
        assert!(crate::args::picture_size(wrong).is_err(), "{wrong}");
    }
}

/// `x` excludes an item of any kind as a tried change. The rows show the effect, and it can be saved and
/// undone.
#[test]
fn an_item_is_excluded_as_a_tried_change() {
    let mut it = screen(CHAT, (120, 40), "/id:postage<Enter>x<Esc>");
    assert!(it.app.what_if.changes().excluded().iter().any(|id| id.as_str() == "postage"));
    let text = it.text().unwrap();
    assert!(text.contains("-0") || text.contains("-1"), "{text}");
    assert!(it.app.known().unwrap().effect.went.iter().any(|id| id.as_str() == "postage"), "{text}");
    assert!(text.contains("dropped postage"), "the what-if line names it\n{text}");
    it.press("w").unwrap();
    assert!(
        matches!(&it.effects[..], [super::super::state::Effect::Write(json)] if json.contains("\"postage\""))
    );
    it.press("u").unwrap();
    assert!(it.app.what_if.changes().is_empty());
    // Items that another budget brings in or drops have a mark.
    it.press("+>>>>").unwrap();
    assert!(it.text().unwrap().contains("+*care"), "{}", it.text().unwrap());
    it.press("=<lt><lt>").unwrap();
    assert!(it.text().unwrap().contains("-*"), "{}", it.text().unwrap());
}

/// The first view of a prompt over budget shows the fixes, and `f` tries one.
#[test]
fn a_fix_is_tried_by_a_key() {
    for size in [(120, 40), (100, 24), (80, 24)] {
        let mut it = screen(super::OVER, size, "");
        let text = it.text().unwrap();
        assert!(text.contains("Over budget by 66: f tries a fix"), "{size:?}\n{text}");
        assert!(text.contains("raise the prompt budget to 246"), "{size:?}\n{text}");
        it.press("f").unwrap();
        assert!(it.app.plan().unwrap().overflow.is_none(), "{size:?}: {}", it.app.note);
        assert!(it.text().unwrap().contains("u undoes it"));
        it.press("u").unwrap();
        assert!(it.app.plan().unwrap().overflow.is_some());
    }
    let mut it = screen(CHAT, (120, 40), "f");
    assert_eq!(it.app.note, "the prompt fits: nothing to fix");
    it.press("f").unwrap();
}

/// The key goes through all fixes in turn, including those that cannot be tried on the screen, and shows the
/// number of the current one.
#[test]
fn fixes_are_shown_in_turn() {
    for arguments in [super::OVER, "examples/overflow.json --budget 210"] {
        let mut it = screen(arguments, (120, 40), "");
        let overflow = it.app.plan().unwrap().overflow.clone().unwrap();
        let all = overflow.remedies.len();
        assert!(all > 1, "{arguments}");
        let limits = it.app.plan().unwrap().limits;
        for round in 0..2 {
            for (at, fix) in overflow.remedies.iter().enumerate() {
                it.press("f").unwrap();
                let (place, said) = (format!("fix {} of {all}", at + 1), report::remedy(fix, &limits));
                assert!(it.app.note.starts_with(&place), "{round}: {}", it.app.note);
                assert!(it.app.note.contains(&report::printable(&said)), "{round}: {}", it.app.note);
                let fits = it.app.plan().unwrap().overflow.is_none();
                assert_eq!(fits, it.app.note.contains("tried:"), "{}", it.app.note);
                assert!(it.text().unwrap().contains(&place));
            }
        }
        // After an undo, the key begins again with the first fix.
        it.press("u").unwrap();
        it.press("f").unwrap();
        assert!(it.app.note.starts_with("fix 1 of"), "{}", it.app.note);
    }
}

/// An excluded item keeps its row, marked and selected, and the same key includes it again.
#[test]
fn excluded_item_keeps_its_row() {
    for size in [(80, 24), (120, 40)] {
        for keys in ["/id:postage<Enter>", "/id:postage<Enter><Esc>", "5/id:postage<Enter>"] {
            let mut it = screen(CHAT, size, keys);
            it.press("x").unwrap();
            assert!(
                matches!(it.app.list.selected_row(), Some(ListRow::LeftOut(_))),
                "{keys}: {}",
                it.app.note
            );
            let text = it.text().unwrap();
            let line =
                text.lines().find(|line| line.contains("-*postage")).unwrap_or_else(|| panic!("{text}"));
            assert!(line.contains("left out"), "{line}");
            it.press("<Enter>").unwrap();
            it.press("<Esc>").unwrap();
            it.press("x").unwrap();
            assert_eq!(it.app.note, "postage is in the request again");
            assert!(it.app.what_if.changes().is_empty());
            assert_eq!(it.app.row_id().map(|(id, _)| id.to_owned()).as_deref(), Some("postage"), "{keys}");
            assert!(!it.text().unwrap().contains("-*postage"));
        }
    }
    // An unpinned note is removed, but its row remains.
    let mut it = screen("examples/pins-ttl.json", (120, 40), "/pinned:<Esc>");
    let log = &it.app.subject.session().log;
    let note = log.notes().next().unwrap().id().to_string();
    it.press(&format!("/id:{note}<Enter>p")).unwrap();
    let text = it.text().unwrap();
    assert!(text.contains(&format!("-*{note}")), "{}\n{text}", it.app.note);
    it.press("p").unwrap();
    assert!(it.app.what_if.changes().is_empty(), "{}", it.app.note);
}

/// Popups are as large as their contents.
#[test]
fn a_popup_is_as_large_as_its_content() {
    let it = screen(CHAT, (120, 40), "!");
    let text = it.text().unwrap();
    let frame: Vec<&str> =
        text.lines().filter(|line| line.contains("Notices · ") || line.contains("no notices")).collect();
    assert!(frame.len() <= 2, "{text}");
    let lines = text.lines().position(|line| line.contains("[Notices")).unwrap();
    assert!(lines > 10, "in the middle\n{text}");
    // The view is visible below the popup.
    assert!(text.lines().nth(lines + 6).unwrap().contains('│'), "{text}");
}

/// On a small screen, `v` shows the sections in place of the grid.
#[test]
fn the_overview_gives_way_to_the_sections() {
    let mut it = screen(CHAT, (80, 24), "");
    assert!(it.text().unwrap().contains("Contents of the prompt"));
    it.press("v").unwrap();
    let text = it.text().unwrap();
    assert!(text.contains("Sections") && !text.contains("Contents of the prompt"), "{text}");
}

/// A fix is tried in addition to other tried changes, even if only those exceed the budget. The next fix
/// replaces it.
#[test]
fn fixes_combine_with_other_changes() {
    let mut it = screen(CHAT, (120, 40), "++<lt><lt><lt><lt><lt><lt><lt><lt><lt>");
    assert!(it.app.plan().unwrap().overflow.is_some(), "{}", it.app.what_if.budget());
    assert!(it.text().unwrap().contains(": f tries a fix"));
    it.press("f").unwrap();
    assert!(it.app.plan().unwrap().overflow.is_none(), "{}", it.app.note);
    // The exclusion stays. The second fix replaces the first one, and undo starts again with the first.
    let mut it = screen("examples/overflow.json --budget 210", (120, 40), "/id:fire<Enter>x<Esc>");
    let excluded = it.app.what_if.changes().clone();
    it.press("f").unwrap();
    assert!(
        it.app.what_if.changes().budget().is_some() && it.app.note.contains("f shows the next"),
        "{}",
        it.app.note
    );
    let first = it.app.note.clone();
    it.press("f").unwrap();
    assert_eq!(it.app.what_if.changes().budget(), None, "{}", it.app.note);
    assert_ne!(it.app.note, first);
    assert_eq!(it.app.what_if.changes().excluded(), excluded.excluded());
    it.press("uuf").unwrap();
    assert_eq!(it.app.note, first, "from the beginning");
}

#[test]
fn required_item_cannot_be_excluded() {
    let mut it = screen(CHAT, (120, 40), "gx");
    assert_eq!(it.app.note, "s0 is required: it cannot be excluded");
    it.press("ax").unwrap();
    assert!(it.app.what_if.changes().is_empty());
}

/// A pin that does not fit is reported at once, with its tokens and the available ones.
#[test]
fn unfitting_pin_is_reported() {
    let session = serde_json::json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "Is it late?"}],
        "pinned": [{"id": "long", "text": "word ".repeat(400), "priority": "high"}]});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pin.json");
    std::fs::write(&path, session.to_string()).unwrap();
    for size in [(120, 40), (80, 24)] {
        let text = screen(&format!("{} --budget 300", path.display()), size, "").text().unwrap();
        assert!(text.contains("! long does not fit: 405 > "), "{text}");
    }
}

/// The overview lists each tool below the results of all tools, as far as there is space.
#[test]
fn tool_results_are_named() {
    for size in [(80, 24), (200, 50)] {
        let it = screen(TALK, size, "");
        let text = it.text().unwrap();
        let kinds = it.app.plan().unwrap().composition(0).kinds;
        let name = kinds.iter().find_map(|(kind, tokens)| match kind {
            context_window::plan::Kind::ToolResults(name) if !name.is_empty() => Some((name, *tokens)),
            _ => None,
        });
        let (name, tokens) = name.unwrap();
        let below =
            |line: &str| line.contains(&format!("  {name} ")) && line.contains(&format!(" {tokens} "));
        assert!(text.lines().any(below), "{name} {tokens} at {size:?}\n{text}");
    }
}

/// A rewind has its own line, which describes its meaning.
#[test]
fn a_rewind_is_a_line_among_the_items() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rewound.jsonl");
    let said = |role: &str, id: &str, before: serde_json::Value, text: &str| {
        serde_json::json!({"type": role, "uuid": id, "parentUuid": before, "message": {"role": role, "content": text}})
            .to_string()
    };
    let lines = [
        said("user", "a", serde_json::Value::Null, "One?"),
        said("assistant", "b", "a".into(), "1."),
        said("user", "c", "b".into(), "Two?"),
        said("user", "d", "b".into(), "Three?"),
    ];
    std::fs::write(&path, lines.join("\n")).unwrap();
    let it = screen(&path.display().to_string(), (80, 24), "5gjjj<Enter>");
    assert!(matches!(it.app.list.selected_row(), Some(ListRow::Rewound(2))), "{:?}", it.app.list.rows());
    let text = it.text().unwrap();
    assert!(
        text.contains("Rewound · Esc closes") && text.contains("to this marker are no longer sent."),
        "{text}"
    );
}
