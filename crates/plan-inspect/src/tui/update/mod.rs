//! Updates of the state: an event changes the state and can result in questions.

mod compaction;
mod moves;
mod prompts;
mod search;
mod tries;
mod mouse;

use super::{
    ask::{Answer, At, Question},
    keys::{self, Action},
    layout::inside,
    state::{App, Effect, Follow, Loadable, Pane, Popup, View},
    subject::Subject,
};
use context_window::{Section, config::LoadedConfig};
use context_window_ratatui::{DetailState, ItemListState, NoticeListState, Shown, WhatIfState};
use context_window_report as report;
use moves::{page, scrolls, sideways, step, turn_pane};
use prompts::{compare, comparison, to_compaction, to_number, to_prompt};
use ratatui::{
    crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
    layout::Rect,
};
use search::{choose, filter, list_anew};
use std::{mem, sync::Arc};
use tries::{save, slide, try_action, try_fix, try_out, try_with_item, undo};
use tui_input::{Input, InputRequest};

/// Handles input: a key, a mouse event, a paste or a resize.
pub(crate) fn input(app: &mut App, event: &Event) -> Vec<Question> {
    let mut questions = match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => key_pressed(app, *key),
        Event::Mouse(mouse) => mouse::clicked(app, *mouse),
        Event::Resize(width, height) => {
            app.size = Rect::new(0, 0, *width, *height);
            Vec::new()
        }
        Event::Paste(text) if app.input.is_some() => {
            // Pasted text is edited like typed text, character by character.
            text.chars().for_each(|c| edit(app, InputRequest::InsertChar(c)));
            Vec::new()
        }
        _ => Vec::new(),
    };
    settle(app);
    questions.extend(listing(app));
    questions.extend(explanation(app));
    questions
}

/// Handles the answer to a question. An outdated answer is ignored.
pub(crate) fn answer(app: &mut App, answer: Answer) -> Vec<Question> {
    let mut questions = Vec::new();
    match answer {
        Answer::Planned { ticket, answer } if ticket == app.ticket => {
            app.remember_item();
            match answer {
                Ok(planned) => {
                    app.what_if.set_base(&planned.base);
                    app.planned = Loadable::Answered(planned);
                }
                Err(error) => app.planned = Loadable::Failed(error),
            }
            // The rows of the items view and the explanation belong to the old plan.
            app.listed = Loadable::Nothing;
            app.list_anew();
            app.explained = (String::new(), Loadable::Nothing);
            if app.view == View::Diff {
                questions.extend(comparison(app));
            }
        }
        Answer::Listed { ticket, answer } if ticket == app.ticket => {
            app.listed = answer.map_or_else(Loadable::Failed, Loadable::Answered);
            app.list_anew();
            if mem::take(&mut app.to_end) {
                app.list.select(usize::MAX);
            }
        }
        Answer::Explained { ticket, id, answer } if ticket == app.ticket && id == app.explained.0 => {
            app.explained.1 = answer.map_or_else(Loadable::Failed, Loadable::Answered);
        }
        Answer::Compared { ticket, answer } if ticket == app.ticket => {
            app.diff = answer.map_or_else(Loadable::Failed, Loadable::Answered);
        }
        Answer::Step { epoch, mark } if epoch == app.epoch => {
            // If the last prompt is selected, the selection moves along to the new one.
            let at_end = app.prompt.selected + 1 >= app.marks.len();
            app.marks.push(*mark);
            if at_end && app.at == At::Now {
                app.prompt.selected = app.marks.len() - 1;
            }
        }
        Answer::Replayed { epoch, failed } if epoch == app.epoch => {
            app.replayed = failed.map_or(Loadable::Answered(()), Loadable::Failed);
            if let Some(number) = app.goes_to.take() {
                questions.extend(to_number(app, number));
            }
            if app.view == View::Diff && matches!(app.diff, Loadable::Nothing) {
                questions.extend(comparison(app));
            }
        }
        Answer::Offered { of, action, answer }
            if Arc::ptr_eq(&of, &app.subject) && action == app.banner.chosen() =>
        {
            app.offered = answer.map_or_else(Loadable::Failed, Loadable::Answered);
        }
        Answer::Reloaded(answer) => questions.extend(reloaded(app, answer)),
        // The answer belongs to an outdated question.
        _ => {}
    }
    settle(app);
    questions.extend(listing(app));
    questions.extend(explanation(app));
    questions
}

/// Shows a reloaded session, or keeps it until the user resumes.
fn reloaded(app: &mut App, answer: Result<Arc<Subject>, String>) -> Vec<Question> {
    match answer {
        Ok(subject) => {
            if let Follow::Paused(waiting) = &mut app.follow {
                *waiting = Some(subject);
                app.note = "paused: the session has grown".into();
                return Vec::new();
            }
            // If the last row was selected, the selection follows the growing session.
            app.to_end = app.view == View::Items && app.list.selected() + 1 >= app.list.rows().len();
            app.subject = subject;
            app.note.clear();
            if !app.applied.is_empty() {
                app.applied.clear();
                app.note = "the session has grown: the applied compaction was undone".into();
            }
            // The preview was made for the old session.
            app.popup.take_if(|popup| *popup == Popup::Compaction);
            app.unread = false;
            app.start()
        }
        Err(error) => {
            app.unread = true;
            app.note = format!("reload failed: {error}");
            Vec::new()
        }
    }
}

/// Limits selections and scrolls them into view.
fn settle(app: &mut App) {
    let places = app.places();
    let height = |area: Rect, used: u16| usize::from(inside(area).height.saturating_sub(used));
    app.list.scroll_into(inside(app.list_area()).height);
    let body = height(places.body, 0);
    app.config.settle(LoadedConfig::keys().count(), body.saturating_sub(1));
    app.prompt.settle(app.marks.len(), height(super::view::prompts_area(places.body), 1));
    let changes = match &app.diff {
        Loadable::Answered(diff) => diff.changes.len(),
        _ => 0,
    };
    app.differences.settle(changes, body.saturating_sub(2));
    app.section = app.section.min(Section::ALL.len() - 1);
}

/// Returns the question for the rows of the items view, if they are not known.
fn listing(app: &mut App) -> Option<Question> {
    if app.view != View::Items || app.plan().is_none() || !matches!(app.listed, Loadable::Nothing) {
        return None;
    }
    app.listed = Loadable::Asked;
    Some(Question::List { ticket: app.ticket, at: app.at.clone(), what_if: app.what_if.changes().clone() })
}

/// Returns the question for the explanation of the selected row, if it is not known.
fn explanation(app: &mut App) -> Option<Question> {
    // A qualified id is unique, even if a document shares the id of a message.
    let name = app.row()?.qualified_id();
    if app.explained.0 == name && !matches!(app.explained.1, Loadable::Nothing) {
        return None;
    }
    app.scrolled = 0;
    app.detail = DetailState::default();
    app.explained = (name.clone(), Loadable::Asked);
    Some(Question::Explain {
        ticket: app.ticket,
        at: app.at.clone(),
        what_if: app.what_if.changes().clone(),
        id: name,
    })
}

fn key_pressed(app: &mut App, key: KeyEvent) -> Vec<Question> {
    // Ctrl-C quits from everywhere, even while a filter is typed.
    let quits = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    if quits {
        app.effects.push(Effect::Quit);
        return Vec::new();
    }
    if app.input.is_some() {
        typed(app, key);
        return Vec::new();
    }
    app.note.clear();
    keys::action(key).map(|action| act(app, action)).unwrap_or_default()
}

/// Handles a key while the user types a filter.
fn typed(app: &mut App, key: KeyEvent) {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Enter => {
            app.input = None;
        }
        KeyCode::Esc => {
            app.input = None;
            filter(app, "");
        }
        KeyCode::Char('u') if control => edit(app, InputRequest::DeleteLine),
        KeyCode::Char('w') if control => edit(app, InputRequest::DeletePrevWord),
        KeyCode::Char(c) if !control => edit(app, InputRequest::InsertChar(c)),
        KeyCode::Backspace => edit(app, InputRequest::DeletePrevChar),
        KeyCode::Delete => edit(app, InputRequest::DeleteNextChar),
        KeyCode::Left => edit(app, InputRequest::GoToPrevChar),
        KeyCode::Right => edit(app, InputRequest::GoToNextChar),
        KeyCode::Home => edit(app, InputRequest::GoToStart),
        KeyCode::End => edit(app, InputRequest::GoToEnd),
        _ => {}
    }
}

/// Edits the filter text and applies the filter at once.
fn edit(app: &mut App, request: InputRequest) {
    let Some(input) = &mut app.input else { return };
    input.handle(request);
    let text = input.value().to_owned();
    filter(app, &text);
}

/// Carries out the action of a key.
fn act(app: &mut App, action: Action) -> Vec<Question> {
    if app.popup == Some(Popup::Help) && !scrolls(action) && action != Action::Suspend {
        app.popup = None;
        return Vec::new();
    }
    // The preview is valid only for the plan on the screen, so actions that can change the plan close it.
    if app.popup == Some(Popup::Compaction) && !scrolls(action) && !compaction::stays_open(action) {
        app.popup = None;
    }
    match action {
        Action::Quit => app.effects.push(Effect::Quit),
        Action::Suspend => app.effects.push(Effect::Suspend),
        Action::Help => {
            app.scrolled = 0;
            app.popup = Some(Popup::Help);
        }
        Action::Notices => {
            app.notices = NoticeListState::default();
            app.popup = Some(Popup::Notices);
        }
        Action::Compact => return compaction::open(app),
        Action::Back => back(app),
        Action::View(number) => return show(app, View::ALL[usize::from(number)]),
        Action::NextPane => turn_pane(app, true),
        Action::PreviousPane => turn_pane(app, false),
        // With a filter, every row is a match.
        Action::Down | Action::NextHit => step(app, 1),
        Action::Up | Action::PreviousHit => step(app, -1),
        Action::Left => return sideways(app, false),
        Action::Right => return sideways(app, true),
        Action::PageDown => step(app, page(app)),
        Action::PageUp => step(app, -page(app)),
        Action::HalfDown => step(app, page(app) / 2),
        Action::HalfUp => step(app, -(page(app) / 2)),
        Action::Top => step(app, isize::MIN),
        Action::Bottom => step(app, isize::MAX),
        Action::Open => return open(app),
        Action::Filter => {
            if app.view != View::Items {
                app.go_to(View::Plan);
            }
            app.input = Some(Input::new(app.list.filter().to_owned()));
        }
        Action::ShowAll => choose(app, Shown::All),
        Action::ShowIn => choose(app, Shown::In),
        Action::ShowOut => choose(app, Shown::Out),
        Action::Sort => list_anew(app, ItemListState::sort_next),
        Action::Reverse => list_anew(app, ItemListState::reverse_order),
        Action::PreviousPrompt => return to_prompt(app, |place, _| place.checked_sub(1)),
        Action::NextPrompt => return to_prompt(app, |place, marks| (place + 1 < marks).then_some(place + 1)),
        Action::PreviousCompaction => return to_compaction(app, false),
        Action::NextCompaction => return to_compaction(app, true),
        Action::BudgetDown => return slide(app, false),
        Action::BudgetUp => return slide(app, true),
        Action::LargerSteps => app.what_if.larger_steps(),
        Action::SmallerSteps => app.what_if.smaller_steps(),
        Action::ResetBudget => return try_out(app, WhatIfState::reset_budget),
        Action::Pin => return try_with_item(app, WhatIfState::toggle_pin),
        Action::Expire => return try_with_item(app, WhatIfState::toggle_expired),
        Action::Exclude => return try_with_item(app, WhatIfState::exclude),
        Action::Fix => return try_fix(app),
        Action::Overview => app.overview = !app.overview,
        Action::Undo => return undo(app),
        Action::Diff => {
            compare(app);
            return show(app, View::Diff);
        }
        Action::Copy => match app.row_id() {
            Some((id, _)) => {
                let id = id.to_owned();
                app.effects.push(Effect::Copy(id));
            }
            None => app.note = "nothing to copy".into(),
        },
        Action::Save if app.popup == Some(Popup::Compaction) => compaction::save(app),
        Action::Save => save(app),
        Action::Pause => return pause(app),
    }
    Vec::new()
}

/// Handles Esc: closes the popup, clears the filter, closes the banner, or returns to the plan view.
fn back(app: &mut App) {
    if app.popup.take().is_some() {
        return;
    }
    if !app.list.filter().is_empty() {
        filter(app, "");
    } else if app.list.shown() != Shown::All {
        choose(app, Shown::All);
    } else if app.banner().is_some() {
        compaction::close_banner(app);
    } else {
        app.go_to(View::Plan);
        app.pane = Pane::Items;
    }
}

/// Changes the view and closes the popup.
fn show(app: &mut App, view: View) -> Vec<Question> {
    app.go_to(view);
    app.popup = None;
    if view == View::Timeline
        && let Some(place) = app.place_of_prompt()
    {
        app.prompt.selected = place;
    }
    if view == View::Diff { comparison(app).into_iter().collect() } else { Vec::new() }
}

/// Handles Enter, which depends on the popup, the view and the selected row.
fn open(app: &mut App) -> Vec<Question> {
    match app.popup.take() {
        Some(Popup::Compaction) => return compaction::apply(app),
        Some(Popup::Notices) => {
            let action = app.plan().and_then(|plan| app.notices.action(plan));
            return action.map(|action| try_action(app, &action)).unwrap_or_default();
        }
        Some(_) => return Vec::new(),
        None => {}
    }
    match app.view {
        View::Plan if app.pane == Pane::Sections => {
            let section = report::section(Section::ALL[app.section]).to_lowercase();
            // The filter accepts the first word of a section's name.
            let section = section.split(' ').next().unwrap_or_default();
            filter(app, &format!("section:{section}"));
            app.pane = Pane::Items;
        }
        View::Plan if app.row().is_some() => app.popup = Some(Popup::Detail),
        View::Timeline => {
            let place = app.prompt.selected;
            app.go_to(View::Plan);
            return to_prompt(app, |_, marks| (place < marks).then_some(place));
        }
        View::Items if app.list.selected_row().is_some() && app.listed().is_some() => {
            app.scrolled = 0;
            app.popup = Some(Popup::Detail);
        }
        View::Diff => {
            let Loadable::Answered(diff) = &app.diff else { return Vec::new() };
            let Some(change) = diff.changes.get(app.differences.selected) else { return Vec::new() };
            let (id, document) = (change.id.clone(), change.document);
            app.go_to(View::Plan);
            app.pane = Pane::Items;
            filter(app, "");
            app.list.set_shown(Shown::All);
            app.list.select_id(id, document);
            app.list_anew();
        }
        _ => {}
    }
    Vec::new()
}

/// Pauses or resumes following the session file.
fn pause(app: &mut App) -> Vec<Question> {
    // Taking the state out moves a waiting session without a clone.
    match mem::replace(&mut app.follow, Follow::Yes) {
        Follow::No => {
            app.follow = Follow::No;
            app.note = "not following; start with --follow".into();
            Vec::new()
        }
        Follow::Yes => {
            app.follow = Follow::Paused(None);
            Vec::new()
        }
        Follow::Paused(None) => Vec::new(),
        Follow::Paused(Some(subject)) => reloaded(app, Ok(subject)),
    }
}
