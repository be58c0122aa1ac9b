//! The state of the screen. Drawing depends on nothing else.

use super::{
    ask::{At, Mark, Offer, Past, Planned, Question},
    layout::Places,
    subject::Subject,
    what_if::Saved,
};
use crate::{args, compaction::Compacted};
use context_window::{
    ContextPlan,
    analysis::Diff,
    plan::{Anchor, Decision, Remedy},
};
use context_window_ratatui::{
    Banner, BannerState, DetailState, ItemListState, ItemTexts, NoticeListState, SortBy, Theme, WhatIf,
    WhatIfState,
};
use context_window_report as report;
use ratatui::layout::Rect;
use std::{mem, sync::Arc};
use tui_input::Input;

/// A view that fills the body of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Plan,
    Timeline,
    Diff,
    Config,
    /// All messages, notes and documents of the session in its order, over the whole screen.
    Items,
}

impl View {
    pub(crate) const ALL: [Self; 5] = [Self::Plan, Self::Timeline, Self::Diff, Self::Config, Self::Items];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plan => "Plan",
            Self::Timeline => "Timeline",
            Self::Diff => "Diff",
            Self::Config => "Config",
            Self::Items => "Items",
        }
    }
}

/// A pane of the plan view that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pane {
    Sections,
    Items,
    Detail,
}

/// A window over the current view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Popup {
    Help,
    Detail,
    /// The notices, and the fixes for a prompt over budget.
    Notices,
    /// The preview of a compaction or a fresh start.
    Compaction,
}

/// The selected row of a list and its scroll position, for lists other than the items.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) selected: usize,
    pub(crate) offset: usize,
}

impl Cursor {
    /// Limits the selected row to `len` rows, and scrolls it into a window of `height` lines.
    pub(crate) fn settle(&mut self, len: usize, height: usize) {
        self.selected = self.selected.min(len.saturating_sub(1));
        self.offset = self.offset.clamp((self.selected + 1).saturating_sub(height.max(1)), self.selected);
        // The last page is full, even after the list became shorter.
        self.offset = self.offset.min(len.saturating_sub(height));
    }
}

/// The plan that the current one is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// The plan without the tried changes.
    Untried,
    /// The session of `--against`.
    Other,
    /// The previous prompt.
    Before,
}

/// The state of a question.
#[derive(Debug)]
pub(crate) enum Loadable<T> {
    /// Not requested, or there is nothing to request.
    Nothing,
    Asked,
    Answered(T),
    Failed(String),
}

/// The relation of the screen to a growing session file.
#[derive(Debug)]
pub(crate) enum Follow {
    No,
    Yes,
    /// A reloaded session waits until the user resumes, if there is one.
    Paused(Option<Arc<Subject>>),
}

/// A side effect for the terminal to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    Quit,
    Suspend,
    Copy(String),
    /// The tried changes, written to a new file.
    Write(String),
    /// The compacted session, written to a new file.
    WriteSession(Box<NewSession>),
}

/// A compacted session to write.
#[derive(Debug, Clone)]
pub(crate) struct NewSession {
    pub(crate) source: args::Request,
    /// The compactions, oldest first.
    pub(crate) compactions: Vec<Arc<Compacted>>,
}

/// Compares by identity of the compactions, because their contents are large.
impl PartialEq for NewSession {
    fn eq(&self, other: &Self) -> bool {
        let both = self.compactions.iter().zip(&other.compactions);
        self.compactions.len() == other.compactions.len()
            && both.into_iter().all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

impl Eq for NewSession {}

/// A compaction that was applied on the screen.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) compacted: Arc<Compacted>,
    /// The subject before the compaction.
    pub(crate) before: Arc<Subject>,
    /// The number of tried changes before the compaction. Later ones are undone first.
    pub(crate) changes: usize,
}

/// A fix that was shown for a prompt over budget. It is valid until something else changes.
#[derive(Debug)]
pub(crate) struct Fix {
    /// All fixes with their descriptions.
    pub(crate) all: Arc<[(Remedy, String)]>,
    /// The index of the shown fix.
    pub(crate) number: usize,
    /// The prompt of the fixes.
    pub(crate) at: At,
    /// The tried changes without and with the fix.
    pub(crate) before: WhatIf,
    pub(crate) after: WhatIf,
}

/// The state of the screen.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) subject: Arc<Subject>,
    pub(crate) theme: Theme,
    pub(crate) size: Rect,
    pub(crate) view: View,
    pub(crate) pane: Pane,
    pub(crate) popup: Option<Popup>,
    /// The filter text while the user types it.
    pub(crate) input: Option<Input>,
    pub(crate) at: At,
    pub(crate) planned: Loadable<Planned>,
    pub(crate) what_if: WhatIfState,
    /// The number of the prompt to show once the prompts are known.
    pub(crate) goes_to: Option<usize>,
    /// The list of the plan view and the items view. Both share the filter and the selected item.
    pub(crate) list: ItemListState,
    /// The plan with a row for each excluded message, for the items view.
    pub(crate) listed: Loadable<Arc<ContextPlan>>,
    /// The sort order of the other of the two views.
    pub(crate) other_order: SortBy,
    /// True if the last row is to be selected once the rows are known, to follow a growing session.
    pub(crate) to_end: bool,
    pub(crate) section: usize,
    /// True if a small screen shows the overview in place of the sections.
    pub(crate) overview: bool,
    /// The last tried fix of a prompt over budget.
    pub(crate) fix: Option<Fix>,
    pub(crate) detail: DetailState,
    pub(crate) notices: NoticeListState,
    /// The selected action for making the conversation smaller.
    pub(crate) banner: BannerState,
    /// The preview of that action. The inner `None` means that there is nothing to compact.
    pub(crate) offered: Loadable<Option<Offer>>,
    /// The compactions applied on the screen, oldest first.
    pub(crate) applied: Vec<Applied>,
    /// The scroll position of the help or a compaction, in lines.
    pub(crate) scrolled: u16,
    /// The id of the explained row, with its explanation.
    pub(crate) explained: (String, Loadable<String>),
    pub(crate) diff: Loadable<Diff>,
    /// The requested comparison, if there are several.
    pub(crate) compared: Option<Comparison>,
    pub(crate) differences: Cursor,
    pub(crate) marks: Vec<Mark>,
    pub(crate) replayed: Loadable<()>,
    pub(crate) prompt: Cursor,
    pub(crate) config: Cursor,
    pub(crate) follow: Follow,
    /// True if the last reload of the followed file failed.
    pub(crate) unread: bool,
    /// The last message in the foot.
    pub(crate) note: String,
    /// The number of the newest plan question. Answers with another ticket are outdated.
    pub(crate) ticket: u64,
    /// The number of the newest replay. Marks of other epochs are outdated.
    pub(crate) epoch: u64,
    pub(crate) effects: Vec<Effect>,
}

impl App {
    pub(crate) fn new(subject: Arc<Subject>, theme: Theme, size: Rect) -> Self {
        Self {
            subject,
            theme,
            size,
            view: View::Plan,
            pane: Pane::Items,
            popup: None,
            input: None,
            at: At::Now,
            planned: Loadable::Nothing,
            what_if: WhatIfState::default(),
            goes_to: None,
            list: ItemListState::new(),
            listed: Loadable::Nothing,
            other_order: SortBy::Session,
            to_end: false,
            section: 0,
            overview: true,
            fix: None,
            detail: DetailState::default(),
            notices: NoticeListState::default(),
            banner: BannerState::default(),
            offered: Loadable::Nothing,
            applied: Vec::new(),
            scrolled: 0,
            explained: (String::new(), Loadable::Nothing),
            diff: Loadable::Nothing,
            compared: None,
            differences: Cursor::default(),
            marks: Vec::new(),
            replayed: Loadable::Nothing,
            prompt: Cursor::default(),
            config: Cursor::default(),
            follow: Follow::No,
            unread: false,
            note: String::new(),
            ticket: 0,
            epoch: 0,
            effects: Vec::new(),
        }
    }

    /// Applies tried changes from a file and goes to their prompt. They can be undone like changes made
    /// with keys.
    pub(crate) fn begin_with(&mut self, saved: Saved) {
        if saved.session != self.subject.name {
            self.note = format!("these what-if changes were made for {}", report::brief(&saved.session));
        }
        // The last prompt is already on the screen.
        self.goes_to = Some(saved.prompt).filter(|prompt| *prompt != self.subject.prompts);
        self.what_if.set_changes(saved.what_if());
    }

    /// Resets the timeline and returns the first questions: the plan and the replay.
    pub(crate) fn start(&mut self) -> Vec<Question> {
        self.epoch += 1;
        self.fix = None;
        self.marks.clear();
        self.replayed = Loadable::Asked;
        vec![self.ask_for_a_plan(), Question::Replay { epoch: self.epoch }]
    }

    /// Returns the question for the plan of the current prompt with the tried changes.
    pub(crate) fn ask_for_a_plan(&mut self) -> Question {
        self.ticket += 1;
        // The old plan stays on the screen until the new one arrives.
        if !matches!(self.planned, Loadable::Answered(_)) {
            self.planned = Loadable::Asked;
        }
        Question::Plan { ticket: self.ticket, at: self.at.clone(), what_if: self.what_if.changes().clone() }
    }

    pub(crate) fn plan(&self) -> Option<&ContextPlan> {
        self.known().map(|planned| &*planned.plan)
    }

    pub(crate) fn known(&self) -> Option<&Planned> {
        match &self.planned {
            Loadable::Answered(planned) => Some(planned),
            _ => None,
        }
    }

    /// Returns the banner of the plan on the screen and its number of lines. Returns `None` if it is not
    /// shown.
    pub(crate) fn banner(&self) -> Option<(Banner<'_>, u16)> {
        let banner = Banner::new(&self.plan()?.usage).with_theme(self.theme);
        let height = banner.height(self.size.width, &self.banner);
        (height > 0).then_some((banner, height))
    }

    /// Returns the layout of the screen.
    pub(crate) fn places(&self) -> Places {
        let overview = self.overview && self.pane != Pane::Sections;
        Places::divide_area(self.size, self.banner().map_or(0, |(_, height)| height), overview)
    }

    /// Returns the available comparisons, the nearest first.
    pub(crate) fn comparisons(&self) -> Vec<Comparison> {
        let before = self.place_of_prompt().is_some_and(|place| place > 0);
        let all = [
            (Comparison::Untried, !self.what_if.changes().is_empty()),
            (Comparison::Other, self.subject.against.is_some()),
            (Comparison::Before, before),
        ];
        all.into_iter().filter(|(_, is_there)| *is_there).map(|(comparison, _)| comparison).collect()
    }

    /// Returns the requested comparison if it is available, otherwise the nearest one.
    pub(crate) fn comparison(&self) -> Option<Comparison> {
        let all = self.comparisons();
        self.compared.filter(|asked| all.contains(asked)).or(all.first().copied())
    }

    /// Returns the plan whose rows are listed.
    pub(crate) fn listed(&self) -> Option<&ContextPlan> {
        match (self.view, &self.listed) {
            (View::Items, Loadable::Answered(plan)) => Some(plan),
            (View::Items, _) => None,
            _ => self.plan(),
        }
    }

    /// Returns the area of the list.
    pub(crate) fn list_area(&self) -> Rect {
        let places = self.places();
        if self.view == View::Items { places.body } else { places.items }
    }

    /// Changes the view. The plan view and the items view share the selected item, but each has its own
    /// order.
    pub(crate) fn go_to(&mut self, view: View) {
        // Changes between views without a list leave the rows as they are.
        let is_other_list = (view == View::Items) != (self.view == View::Items);
        if is_other_list {
            self.remember_item();
            let order = mem::replace(&mut self.other_order, self.list.sorted_by());
            self.list.sort_by(order);
        }
        self.view = view;
        if is_other_list {
            self.list_anew();
        }
    }

    /// Returns the texts of the items at the current prompt.
    pub(crate) fn texts(&self) -> ItemTexts<'_> {
        texts(&self.subject, &self.planned).with_changes(self.what_if.changes())
    }

    /// Returns the selected item. Returns `None` for a marker.
    pub(crate) fn row(&self) -> Option<Decision<'_>> {
        self.list.row(self.listed()?)
    }

    /// Returns the id of the selected item, and true if it is a document. A run has the id of its last
    /// message.
    pub(crate) fn row_id(&self) -> Option<(&str, bool)> {
        self.row().map(|row| (row.id().as_str(), row.is_document()))
    }

    /// Rebuilds the rows of the list after a change of the filter, the order or the plan.
    pub(crate) fn list_anew(&mut self) {
        let plan = match (self.view, &self.listed, &self.planned) {
            (View::Items, Loadable::Answered(plan), _) => plan,
            (View::Items, ..) => return,
            (.., Loadable::Answered(planned)) => &planned.plan,
            _ => return,
        };
        let texts = texts(&self.subject, &self.planned).with_changes(self.what_if.changes());
        self.list.refresh_rows(plan, &texts);
    }

    /// Remembers the selected item before the list changes.
    pub(crate) fn remember_item(&mut self) {
        // The list is taken out of `self`, because `listed` borrows all of it.
        let mut list = mem::take(&mut self.list);
        if let Some(plan) = self.listed() {
            list.remember_plan(plan);
        }
        self.list = list;
    }

    /// Returns an earlier prompt by its index among the marks. The last index is the present prompt of the
    /// session.
    pub(crate) fn at_mark(&self, place: usize) -> At {
        let Some(mark) = self.marks.get(place) else { return At::Now };
        if place + 1 == self.marks.len() && matches!(self.replayed, Loadable::Answered(())) {
            return At::Now;
        }
        let before = place.checked_sub(1).and_then(|before| self.marks.get(before));
        let anchor = |place: Option<usize>| {
            place
                .and_then(|place| self.marks.get(place))
                .map_or_else(Anchor::default, |mark| mark.anchor.clone())
        };
        At::Past(Arc::new(Past {
            messages: mark.figures.messages,
            before: before.map(|before| (before.figures.messages, anchor(place.checked_sub(2)))),
        }))
    }

    /// Checks if the conversation was compacted right before the prompt of this index.
    pub(crate) fn was_compacted(&self, place: usize) -> bool {
        let before = place.checked_sub(1).and_then(|before| self.marks.get(before));
        self.marks
            .get(place)
            .is_some_and(|mark| mark.figures.is_compacted_since(before.map(|mark| &mark.figures)))
    }

    /// Returns the index of the current prompt among the marks. Returns `None` if it is not known yet.
    pub(crate) fn place_of_prompt(&self) -> Option<usize> {
        match &self.at {
            At::Now => match self.replayed {
                Loadable::Answered(()) => self.marks.len().checked_sub(1),
                _ => None,
            },
            At::Past(past) => self.marks.iter().position(|mark| mark.figures.messages == past.messages),
        }
    }
}

/// Returns the texts of the items. For an earlier prompt, they are those of the conversation at its time.
fn texts<'a>(subject: &'a Subject, planned: &'a Loadable<Planned>) -> ItemTexts<'a> {
    match planned {
        Loadable::Answered(Planned { past: Some(log), .. }) => subject.item_texts().with_log(log),
        _ => subject.item_texts(),
    }
}
