//! Movement between prompts and compactions, and comparisons of prompts.

use super::super::{
    ask::Question,
    state::{App, Comparison, Loadable, View},
};
use context_window_ratatui::{ListRow, WhatIf};

/// Goes to another prompt. `which` maps the current index and the number of prompts to the new index, or to
/// `None` if there is no such prompt.
pub(super) fn to_prompt(app: &mut App, which: impl FnOnce(usize, usize) -> Option<usize>) -> Vec<Question> {
    let place = match (app.place_of_prompt(), &app.replayed) {
        (Some(place), _) => place,
        (None, Loadable::Failed(error)) => {
            app.note = format!("earlier prompts cannot be planned: {error}");
            return Vec::new();
        }
        (None, _) => {
            app.note = "earlier prompts are still being planned".into();
            return Vec::new();
        }
    };
    let Some(next) = which(place, app.marks.len()) else {
        app.note = if place == 0 {
            "this is the first planned prompt".into()
        } else {
            "this is the last prompt".into()
        };
        return Vec::new();
    };
    app.prompt.selected = next;
    app.at = app.at_mark(next);
    app.diff = Loadable::Nothing;
    vec![app.ask_for_a_plan()]
}

/// Goes to the prompt with this number.
pub(super) fn to_number(app: &mut App, number: usize) -> Vec<Question> {
    let place = app.marks.iter().position(|mark| mark.figures.number == number);
    let questions = to_prompt(app, |_, _| place);
    if place.is_none() && matches!(app.replayed, Loadable::Answered(())) {
        app.note = format!("prompt {number} is not among the planned prompts");
    }
    questions
}

/// Goes to the next or previous compaction. In the items view this is its marker, elsewhere the first prompt
/// after it.
pub(super) fn to_compaction(app: &mut App, forward: bool) -> Vec<Question> {
    if app.view == View::Items {
        let rows = app.list.rows();
        let is_one = |at: &usize| matches!(rows[*at], ListRow::Compaction(_));
        let (from, len) = (app.list.selected(), rows.len());
        let found =
            if forward { (from + 1..len).find(is_one) } else { (0..from.min(len)).rev().find(is_one) };
        match found {
            Some(at) => app.list.select(at),
            None => app.note = if forward { "no later compaction" } else { "no earlier compaction" }.into(),
        }
        return Vec::new();
    }
    let compacted: Vec<bool> = (0..app.marks.len()).map(|place| app.was_compacted(place)).collect();
    let found = |place: usize, len: usize| {
        let is_one = |at: &usize| compacted[*at];
        if forward { (place + 1..len).find(is_one) } else { (0..place).rev().find(is_one) }
    };
    let questions = to_prompt(app, found);
    // A message about the running replay is more useful than this one.
    if questions.is_empty() && !app.note.contains("being planned") {
        app.note = if forward { "no later compaction" } else { "no earlier compaction" }.into();
    }
    questions
}

/// Returns the question for the diff view. Returns `None` if there is nothing to compare with.
pub(super) fn comparison(app: &mut App) -> Option<Question> {
    let from = match app.comparison() {
        Some(Comparison::WithoutChanges) => Some((app.at.clone(), WhatIf::default())),
        Some(Comparison::Other) => None,
        Some(Comparison::Before) => {
            let before = app.place_of_prompt()?.checked_sub(1)?;
            Some((app.at_mark(before), WhatIf::default()))
        }
        None => {
            app.diff = Loadable::Nothing;
            return None;
        }
    };
    app.diff = Loadable::Pending;
    Some(Question::Compare { ticket: app.ticket, from, to: (app.at.clone(), app.what_if.changes().clone()) })
}

/// Selects the nearest comparison. If the differences are already shown, it selects the next one.
pub(super) fn compare(app: &mut App) {
    if app.view != View::Diff {
        app.compared = None;
        return;
    }
    let all = app.comparisons();
    let at = all.iter().position(|one| Some(*one) == app.comparison());
    app.compared = at.map(|at| all[(at + 1) % all.len()]);
    if all.len() < 2 {
        app.note = "no other comparison".into();
    }
}
