//! The key bindings. The help lists the same table, so it is always complete.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A command that a key can trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Quit,
    Back,
    Help,
    NextPane,
    PreviousPane,
    View(u8),
    Down,
    Up,
    Left,
    Right,
    PageDown,
    PageUp,
    HalfDown,
    HalfUp,
    Top,
    Bottom,
    Open,
    Filter,
    NextHit,
    PreviousHit,
    ShowAll,
    ShowIn,
    ShowOut,
    Sort,
    Reverse,
    PreviousPrompt,
    NextPrompt,
    PreviousCompaction,
    NextCompaction,
    BudgetDown,
    BudgetUp,
    LargerSteps,
    SmallerSteps,
    ResetBudget,
    Pin,
    Expire,
    Exclude,
    Fix,
    Overview,
    Undo,
    Notices,
    Compact,
    Diff,
    Copy,
    Save,
    Pause,
    Suspend,
}

/// A key binding, which is a line of the help.
pub(crate) struct Binding {
    keys: &'static [KeyCode],
    control: bool,
    pub(crate) shown: &'static str,
    pub(crate) does: &'static str,
    action: Action,
}

const fn plain(keys: &'static [KeyCode], shown: &'static str, does: &'static str, action: Action) -> Binding {
    Binding { keys, control: false, shown, does, action }
}

const fn control(
    keys: &'static [KeyCode],
    shown: &'static str,
    does: &'static str,
    action: Action,
) -> Binding {
    Binding { keys, control: true, shown, does, action }
}

use KeyCode::{BackTab, Char, Down, End, Enter, Esc, F, Home, Left, PageDown, PageUp, Right, Tab, Up};

/// All key bindings with a line in the help, in its order.
pub(crate) const BINDINGS: &[Binding] = &[
    plain(&[Char('q')], "q", "quit (Ctrl-C from anywhere)", Action::Quit),
    plain(&[Esc], "Esc", "close popup, clear filter, close banner", Action::Back),
    plain(&[Char('?'), F(1)], "? F1", "this help", Action::Help),
    plain(&[Char('1')], "1-5", "view: plan, timeline, diff, config, items", Action::View(0)),
    plain(&[Tab], "Tab S-Tab", "next and previous pane", Action::NextPane),
    plain(&[Char('j'), Down], "j k ↑ ↓", "down, up", Action::Down),
    plain(&[Char('h'), Left], "h l ← →", "left, right", Action::Left),
    plain(&[Char('g'), Home], "g G Home End", "first, last", Action::Top),
    plain(&[PageDown], "PgDn PgUp", "page down, up; Ctrl-d Ctrl-u half a page", Action::PageDown),
    plain(&[Enter, Char('e')], "Enter e", "open: detail, section, prompt, compaction", Action::Open),
    plain(&[Char('/')], "/", "filter: text, section:doc, reason:cap, id:m1, >500", Action::Filter),
    plain(&[Char('n')], "n N", "next and previous match", Action::NextHit),
    plain(&[Char('a')], "a i o", "show all, only in, only out", Action::ShowAll),
    plain(&[Char('s')], "s S", "sort by next column, reverse", Action::Sort),
    plain(&[Char('[')], "[ ]", "previous and next prompt", Action::PreviousPrompt),
    plain(&[Char('{')], "{ }", "previous and next compaction", Action::PreviousCompaction),
    plain(&[Char('<'), Char(',')], "< > , .", "what-if: smaller and larger budget", Action::BudgetDown),
    plain(&[Char('+')], "+ -", "what-if: larger and smaller budget steps", Action::LargerSteps),
    plain(&[Char('=')], "=", "what-if: reset the budget", Action::ResetBudget),
    plain(&[Char('p')], "p", "what-if: pin or unpin the item", Action::Pin),
    plain(&[Char('t')], "t", "what-if: toggle expired", Action::Expire),
    plain(&[Char('x')], "x", "what-if: exclude the item", Action::Exclude),
    plain(
        &[Char('f')],
        "f",
        "what-if: try a fix for a prompt over budget (again: the next one)",
        Action::Fix,
    ),
    plain(&[Char('u')], "u", "what-if: undo the last change or compaction", Action::Undo),
    plain(&[Char('d')], "d", "diff (again: next comparison)", Action::Diff),
    plain(&[Char('v')], "v", "small screens: contents of the prompt, or sections", Action::Overview),
    plain(&[Char('!')], "!", "notices, and fixes for a prompt over budget", Action::Notices),
    plain(&[Char('c')], "c", "compact or start fresh: preview, apply, save", Action::Compact),
    plain(&[Char('y')], "y", "copy the item's id", Action::Copy),
    plain(&[Char('w')], "w", "save what-if changes or compacted session", Action::Save),
    plain(&[Char(' ')], "Space", "pause or resume following (--follow)", Action::Pause),
    control(&[Char('z')], "Ctrl-z", "suspend (`fg` resumes)", Action::Suspend),
];

/// The bindings without a line of their own in the help.
const ALSO: &[Binding] = &[
    plain(&[Char('2')], "", "", Action::View(1)),
    plain(&[Char('3')], "", "", Action::View(2)),
    plain(&[Char('4')], "", "", Action::View(3)),
    plain(&[Char('5')], "", "", Action::View(4)),
    plain(&[BackTab], "", "", Action::PreviousPane),
    plain(&[Char('k'), Up], "", "", Action::Up),
    plain(&[Char('l'), Right], "", "", Action::Right),
    plain(&[Char('G'), End], "", "", Action::Bottom),
    plain(&[PageUp], "", "", Action::PageUp),
    plain(&[Char('N')], "", "", Action::PreviousHit),
    plain(&[Char('i')], "", "", Action::ShowIn),
    plain(&[Char('o')], "", "", Action::ShowOut),
    plain(&[Char('S')], "", "", Action::Reverse),
    plain(&[Char(']')], "", "", Action::NextPrompt),
    plain(&[Char('}')], "", "", Action::NextCompaction),
    plain(&[Char('>'), Char('.')], "", "", Action::BudgetUp),
    plain(&[Char('-')], "", "", Action::SmallerSteps),
    control(&[Char('d')], "", "", Action::HalfDown),
    control(&[Char('u')], "", "", Action::HalfUp),
    control(&[Char('c')], "", "", Action::Quit),
];

/// Returns the action of a key, or `None` if the key has no binding.
pub(crate) fn action(key: KeyEvent) -> Option<Action> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    // Terminals and desktops use Alt for their own shortcuts.
    if key.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    // About 50 bindings, so a linear search per key is fast enough.
    let all = BINDINGS.iter().chain(ALSO);
    all.clone()
        .find(|binding| binding.control == control && binding.keys.contains(&key.code))
        .map(|binding| binding.action)
}
