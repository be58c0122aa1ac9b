//! What is tried: another budget, a pin, a lifetime; taken back, or written down.

use super::super::{
    ask::Question,
    state::{App, Effect, Fix},
    what_if::Saved,
};
use super::compaction;
use crate::input;
use context_window::plan::{Decision, Remedy};
use context_window_ratatui::{Attempt, ItemTexts, NoticeAction, WhatIfState};
use context_window_report as report;

/// Changes what is tried, and plans again where that is something else.
pub(super) fn try_out(app: &mut App, change: impl FnOnce(&mut WhatIfState) -> bool) -> Vec<Question> {
    if change(&mut app.what_if) { vec![app.ask_for_a_plan()] } else { Vec::new() }
}

pub(super) fn undo(app: &mut App) -> Vec<Question> {
    if let Some(questions) = compaction::undo(app) {
        return questions;
    }
    let questions = try_out(app, WhatIfState::undo);
    if questions.is_empty() {
        app.note = "nothing to undo".into();
    }
    questions
}

pub(super) fn slide(app: &mut App, up: bool) -> Vec<Question> {
    if app.known().is_none() {
        return Vec::new();
    }
    try_out(app, if up { WhatIfState::larger } else { WhatIfState::smaller })
}

/// Tries something with the selected item, and says what came of it.
pub(super) fn try_with_item(
    app: &mut App,
    attempt: impl FnOnce(&mut WhatIfState, Decision<'_>, &ItemTexts<'_>) -> Attempt,
) -> Vec<Question> {
    let mut what_if = app.what_if.clone();
    let Some(row) = app.row() else { return Vec::new() };
    let attempt = attempt(&mut what_if, row, &app.texts());
    app.what_if = what_if;
    app.note = attempt.to_string();
    if attempt.changed() { vec![app.ask_for_a_plan()] } else { Vec::new() }
}

/// Tries the next single change that makes a prompt fit, beside what is tried already: another budget, or a pin less. What shortens an
/// item, or leaves less for the reply, cannot be tried here.
pub(super) fn try_fix(app: &mut App) -> Vec<Question> {
    // The one before is taken back, also where it helped.
    let (tried, before) = match app.fix.take() {
        Some(fix) if fix.after == *app.what_if.changes() => (fix.number + 1, fix.before),
        _ => (0, app.what_if.changes().clone()),
    };
    let known = app.known();
    let over = known.and_then(|known| known.plan.overflow.as_ref().or(known.base.overflow.as_ref()));
    let Some((known, overflow)) = known.zip(over) else {
        app.note = "the prompt fits: nothing to fix".into();
        return Vec::new();
    };
    let can_be_tried = |remedy: &&Remedy| matches!(remedy, Remedy::RaiseBudget { .. } | Remedy::Unpin { .. });
    let fixes: Vec<&Remedy> = overflow.remedies.iter().filter(can_be_tried).collect();
    if fixes.is_empty() {
        app.note = "none of the fixes can be tried here: ! lists them".into();
        return Vec::new();
    }
    let fix = fixes[tried % fixes.len()];
    let next = if fixes.len() > 1 { ", f tries the next" } else { "" };
    let note = format!("tried: {}; u undoes it{next}", report::remedy(fix, &known.plan.limits));
    let changes = match fix {
        Remedy::RaiseBudget { to } => before.clone().with_budget(Some(*to)),
        Remedy::Unpin { id } => before.clone().with_pin(id.clone(), false),
        _ => return Vec::new(),
    };
    app.note = note;
    app.fix = Some(Fix { number: tried, before, after: changes.clone() });
    try_out(app, |what_if| what_if.set(changes))
}

/// Tries what the selected notice offers.
pub(super) fn try_action(app: &mut App, action: &NoticeAction) -> Vec<Question> {
    let subject = app.subject.clone();
    app.note = format!("{}: {}", report::brief(action.id().as_str()), action.label());
    try_out(app, |what_if| what_if.try_action(action, &subject.session().log))
}

/// Saves what is tried and what was applied, each as a file of its own.
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
