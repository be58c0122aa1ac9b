//! Compactions on the screen: preview, apply, save as a new file, undo.

use super::super::{
    ask::{At, Question},
    keys::Action,
    state::{App, Applied, Effect, Loadable, NewSession, Popup},
};

/// Opens the preview of the selected action.
pub(super) fn open(app: &mut App) -> Vec<Question> {
    app.popup = Some(Popup::Compaction);
    preview(app)
}

/// Checks if the preview stays open during an action. Scrolling is checked separately.
pub(super) fn stays_open(action: Action) -> bool {
    use Action::{Back, Compact, Left, Open, Quit, Right, Save, Suspend};
    matches!(action, Back | Compact | Left | Open | Quit | Right | Save | Suspend)
}

/// Switches to the other action, a compaction or a fresh start.
pub(super) fn other(app: &mut App) -> Vec<Question> {
    app.banner.next_action();
    preview(app)
}

/// Requests the preview of the selected action.
fn preview(app: &mut App) -> Vec<Question> {
    app.scrolled = 0;
    app.offered = Loadable::Pending;
    vec![Question::Compact { action: app.banner.chosen(), what_if: app.what_if.changes().clone() }]
}

/// Applies the shown compaction on the screen. The session file is not changed.
pub(super) fn apply(app: &mut App) -> Vec<Question> {
    let Loadable::Answered(Some(offer)) = std::mem::replace(&mut app.offered, Loadable::Nothing) else {
        return Vec::new();
    };
    // Undo compares this number to decide if a later tried change is undone first.
    let changes = app.what_if.undos();
    let before = std::mem::replace(&mut app.subject, offer.after);
    app.applied.push(Applied { compacted: offer.compacted, before, changes });
    app.note = "applied on this screen only: u undoes it, w saves a new file".into();
    changed(app)
}

/// Undoes the last compaction, unless changes were tried after it. Returns `None` if there is none to
/// undo.
pub(super) fn undo(app: &mut App) -> Option<Vec<Question>> {
    let last = app.applied.pop_if(|last| last.changes >= app.what_if.undos())?;
    app.subject = last.before;
    app.note = "compaction undone".into();
    Some(changed(app))
}

/// Starts again with the changed conversation.
fn changed(app: &mut App) -> Vec<Question> {
    app.at = At::Now;
    app.start()
}

/// Saves the session to a new file, with the applied compactions and the one in the preview.
pub(super) fn save(app: &mut App) {
    let offered = match &app.offered {
        Loadable::Answered(Some(offer)) if app.popup == Some(Popup::Compaction) => Some(&offer.compacted),
        _ => None,
    };
    let applied = app.applied.iter().map(|applied| &applied.compacted);
    let compactions: Vec<_> = applied.chain(offered).cloned().collect();
    if compactions.is_empty() {
        app.note = "nothing to save".into();
        return;
    }
    let source = app.subject.source.clone();
    app.effects.push(Effect::WriteSession(Box::new(NewSession { source, compactions })));
}

/// Closes the banner until the conversation fills more of its window.
pub(super) fn close_banner(app: &mut App) {
    let usage = app.plan().map(|plan| plan.usage);
    if let Some(usage) = usage {
        app.banner.close(&usage);
    }
}
