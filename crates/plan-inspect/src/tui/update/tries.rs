//! The changes that a user tries (what-if): budget, pins, expiry, exclusion and fixes. Also their undo and
//! saving.

use super::super::{
    ask::Question,
    state::{App, Effect, Fix},
    what_if::Saved,
};
use super::compaction;
use crate::input;
use context_window::plan::{Decision, Remedy};
use context_window_ratatui::{Attempt, ItemTexts, ListRow, NoticeAction, WhatIfState};
use context_window_report as report;

/// Applies a tried change and requests a new plan if the changes differ.
pub(super) fn try_out(app: &mut App, change: impl FnOnce(&mut WhatIfState) -> bool) -> Vec<Question> {
    if change(&mut app.what_if) { vec![app.ask_for_a_plan()] } else { Vec::new() }
}

/// Undoes the last tried change or compaction.
pub(super) fn undo(app: &mut App) -> Vec<Question> {
    app.fix = None;
    if let Some(questions) = compaction::undo(app) {
        return questions;
    }
    let questions = try_out(app, WhatIfState::undo);
    if questions.is_empty() {
        app.note = "nothing to undo".into();
    }
    questions
}

/// Moves the budget one step up or down.
pub(super) fn slide(app: &mut App, up: bool) -> Vec<Question> {
    if app.known().is_none() {
        return Vec::new();
    }
    try_out(app, if up { WhatIfState::larger } else { WhatIfState::smaller })
}

/// Tries a change with the selected item and reports the result.
pub(super) fn try_with_item(
    app: &mut App,
    attempt: impl FnOnce(&mut WhatIfState, Decision<'_>, &ItemTexts<'_>) -> Attempt,
) -> Vec<Question> {
    // The attempt needs the changes mutably and the app's texts at once, so it works on a copy.
    let mut what_if = app.what_if.clone();
    let attempt = match (app.list.selected_row(), app.row()) {
        (Some(ListRow::LeftOut(nth)), _) => what_if.bring_back(nth),
        (_, Some(row)) => attempt(&mut what_if, row, &app.texts()),
        _ => return Vec::new(),
    };
    app.what_if = what_if;
    app.note = attempt.to_string();
    if attempt.changed() { vec![app.ask_for_a_plan()] } else { Vec::new() }
}

/// Shows the next fix for a prompt over budget; after the last one, the first.
///
/// A fix that raises the budget or unpins an item is tried in addition to the other tried changes. Fixes
/// that shorten an item or lower the reply reserve cannot be tried here.
pub(super) fn try_fix(app: &mut App) -> Vec<Question> {
    let last = app.fix.take().filter(|fix| fix.after == *app.what_if.changes() && fix.at == app.at);
    // The previous fix is undone, even if it was successful.
    let (all, number, before) = match last {
        Some(fix) => (fix.all.clone(), (fix.number + 1) % fix.all.len().max(1), fix.before),
        None => (fixes(app).into(), 0, app.what_if.changes().clone()),
    };
    let Some((fix, said)) = all.get(number) else {
        app.note = "the prompt fits: nothing to fix".into();
        return Vec::new();
    };
    let after = match fix {
        Remedy::RaiseBudget { to } => Some(before.clone().with_budget(Some(*to))),
        Remedy::Unpin { id } => Some(before.clone().with_pin(id.clone(), false)),
        _ => None,
    };
    let place = format!("fix {} of {}", number + 1, all.len());
    let next = if all.len() > 1 { "; f shows the next" } else { "" };
    app.note = match after {
        Some(_) => format!("{place}, tried: {said}; u undoes it{next}"),
        None => format!("{place}, cannot be tried here: {said}{next}"),
    };
    let changes = after.unwrap_or_else(|| before.clone());
    app.fix = Some(Fix { all: all.clone(), number, at: app.at.clone(), before, after: changes.clone() });
    try_out(app, |what_if| what_if.set_changes(changes))
}

/// Returns the fixes of the plan on the screen with their descriptions. If this plan fits, it returns those
/// of the plan without tried changes.
fn fixes(app: &App) -> Vec<(Remedy, String)> {
    let Some(known) = app.known() else { return Vec::new() };
    let plans = [&known.plan, &known.base];
    let Some((plan, overflow)) = plans.iter().find_map(|plan| Some((plan, plan.overflow.as_ref()?))) else {
        return Vec::new();
    };
    overflow.remedies.iter().map(|fix| (fix.clone(), report::remedy(fix, &plan.limits))).collect()
}

/// Tries the selected action of a notice.
pub(super) fn try_action(app: &mut App, action: &NoticeAction) -> Vec<Question> {
    let subject = app.subject.clone();
    app.note = format!("{}: {}", report::brief(action.id().as_str()), action.label());
    try_out(app, |what_if| what_if.try_action(action, &subject.session().log))
}

/// Saves the tried changes and the applied compactions, each to its own file.
pub(super) fn save(app: &mut App) {
    let (is_tried, is_applied) = (!app.what_if.changes().is_empty(), !app.applied.is_empty());
    if !is_tried && !is_applied {
        app.note = "no what-if changes to save".into();
    }
    if is_applied {
        compaction::save(app);
    }
    if is_tried {
        save_changes(app);
    }
}

/// Saves the tried changes with the number of the prompt that they were tried at.
fn save_changes(app: &mut App) {
    let tried = app.what_if.changes();
    let mark = app.place_of_prompt().and_then(|place| app.marks.get(place));
    let prompt = mark.map_or(app.subject.prompts, |mark| mark.figures.number);
    let saved = Saved {
        file: input::name(&app.subject.source.session),
        session: app.subject.name.clone(),
        prompt,
        prompt_budget: tried.budget(),
        pinned: tried.pins().clone(),
        expired: tried.expired().clone(),
        excluded: tried.excluded().clone(),
    };
    match serde_json::to_string_pretty(&saved) {
        Ok(json) => app.effects.push(Effect::Write(json + "\n")),
        Err(error) => app.note = format!("not saved: {error}"),
    }
}
