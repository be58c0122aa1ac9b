//! What is tried: another budget, a pin, a lifetime; taken back, or written down.

use super::super::{
    ask::Question,
    state::{App, Effect},
    what_if::{Saved, WhatIf},
};
use context_window::{ExcludedReason, Source, plan::Decision, report};

/// Changes what is tried, and plans again.
pub(super) fn try_out(app: &mut App, change: impl FnOnce(&mut WhatIf)) -> Vec<Question> {
    let before = app.what_if.clone();
    change(&mut app.what_if);
    if before == app.what_if {
        return Vec::new();
    }
    // A row of budget steps is undone in one.
    let only_the_budget =
        |other: &WhatIf| other.pins == app.what_if.pins && other.expired == app.what_if.expired;
    let sliding = app.undo.last().is_some_and(only_the_budget) && only_the_budget(&before);
    if !sliding {
        app.undo.push(before);
    }
    vec![app.ask_for_a_plan()]
}

pub(super) fn undo(app: &mut App) -> Vec<Question> {
    let Some(before) = app.undo.pop() else {
        app.note = "nothing to undo".into();
        return Vec::new();
    };
    app.what_if = before;
    vec![app.ask_for_a_plan()]
}

pub(super) fn slide(app: &mut App, up: bool) -> Vec<Question> {
    let Some(planned) = app.known() else { return Vec::new() };
    let own = planned.base.prompt_budget;
    let most = planned.base.limits.largest_budget().max(own);
    let by = (own.saturating_mul(app.step) / 1000).max(1);
    let now = app.what_if.budget.unwrap_or(own);
    let next = if up { now.saturating_add(by).min(most) } else { now.saturating_sub(by).max(1) };
    try_out(app, |what_if| what_if.budget = Some(next).filter(|next| *next != own))
}

pub(super) fn pin(app: &mut App) -> Vec<Question> {
    let Some((id, document)) = app.row_id() else { return Vec::new() };
    let id = id.to_owned();
    if document {
        app.note = format!("{id} is a document: documents cannot be pinned");
        return Vec::new();
    }
    let log = &app.subject.session().log;
    let pinned = app.row().is_some_and(|row| match row {
        Decision::Included(item) => item.source == Source::Pinned || log.is_pinned(&id),
        Decision::Excluded(_) => log.is_pinned(&id),
    });
    let is_message = app.subject.message(&id).is_some();
    if !is_message && !pinned {
        app.note = format!("{id} is not a message or note: it cannot be pinned");
        return Vec::new();
    }
    app.note = match (pinned, app.row()) {
        (true, _) if !is_message => {
            format!("unpinned {id}: an unpinned note is removed; u undoes")
        }
        (false, Some(Decision::Excluded(row))) if row.count > 1 => {
            format!("pinned {id} (newest of {}-{id})", report::brief(row.id.as_str()))
        }
        (true, _) => format!("unpinned {id}"),
        (false, _) => format!("pinned {id} and its exchange"),
    };
    try_out(app, |what_if| {
        if what_if.pins.remove(&id).is_none() {
            what_if.pins.insert(id, !pinned);
        }
    })
}

pub(super) fn expire(app: &mut App) -> Vec<Question> {
    let Some((id, document)) = app.row_id() else { return Vec::new() };
    // What was turned round and is one of several since is turned back.
    let turned =
        app.what_if.expired.keys().find(|id| app.row().is_some_and(|row| app.subject.stands_for(row, id)));
    let id = turned.cloned().unwrap_or_else(|| id.to_owned());
    let is_note = app.subject.session().log.is_pinned(&id);
    if document || app.subject.message(&id).is_none() && !is_note {
        app.note = format!("{id} is not a message or note: it has no TTL");
        return Vec::new();
    }
    let expired = app.row().is_some_and(|row| match row {
        Decision::Included(_) => false,
        Decision::Excluded(item) => {
            matches!(item.reason, ExcludedReason::TtlExpired { .. })
        }
    });
    app.note = match (app.what_if.expired.contains_key(&id), expired) {
        (true, _) => format!("TTL of {id} restored"),
        (false, true) => format!("{id} set to 1 turn left; the rest of its exchange may still be expired"),
        (false, false) => format!("{id} set to expired"),
    };
    try_out(app, |what_if| {
        if what_if.expired.remove(&id).is_none() {
            what_if.expired.insert(id, !expired);
        }
    })
}

pub(super) fn save(app: &mut App) {
    if app.what_if.is_empty() {
        app.note = "no what-if changes to save".into();
        return;
    }
    let mark = app.place_of_prompt().and_then(|place| app.marks.get(place));
    let prompt = mark.map_or(app.subject.prompts, |mark| mark.figures.number);
    let tried = app.what_if.clone();
    let saved = Saved {
        file: app.subject.path.clone(),
        session: app.subject.name.clone(),
        prompt,
        prompt_budget: tried.budget,
        pinned: tried.pins,
        expired: tried.expired,
    };
    match serde_json::to_string_pretty(&saved) {
        Ok(json) => app.effects.push(Effect::Write(json + "\n")),
        Err(error) => app.note = format!("not saved: {error}"),
    }
}
