//! Everything that a picture is drawn from.

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Plan,
    Timeline,
    Diff,
    Config,
    /// Every message, note and document of the session, in its order, over the whole screen.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pane {
    Sections,
    Items,
    Detail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Popup {
    Help,
    Detail,
    /// Notices, and what would help where the minimum does not fit.
    Notices,
    /// A compaction or a fresh start before it is applied.
    Compaction,
}

/// A list with a selected row that is not the plan's.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) selected: usize,
    pub(crate) offset: usize,
}

impl Cursor {
    /// Scrolls so that the selected row is visible, given the number of rows and of lines.
    pub(crate) fn settle(&mut self, len: usize, height: usize) {
        self.selected = self.selected.min(len.saturating_sub(1));
        self.offset = self.offset.clamp((self.selected + 1).saturating_sub(height.max(1)), self.selected);
        self.offset = self.offset.min(len.saturating_sub(height));
    }
}

/// What the plan on the screen is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// The plan without what is tried.
    Untried,
    /// The session of `--against`.
    Other,
    /// The prompt before.
    Before,
}

/// What became of a question.
#[derive(Debug)]
pub(crate) enum Loadable<T> {
    /// Nobody asked yet, or there is nothing to ask about.
    Nothing,
    Asked,
    Answered(T),
    Failed(String),
}

/// Whether the screen goes with the session's file.
#[derive(Debug)]
pub(crate) enum Follow {
    No,
    Yes,
    /// What has come meanwhile waits.
    Paused(Option<Arc<Subject>>),
}

/// What is to be done outside of the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    Quit,
    Suspend,
    Copy(String),
    /// What is tried, as a new file.
    Write(String),
    /// The session with the compaction in it, as a new file.
    WriteSession(Box<NewSession>),
}

/// A compacted session that has not been written.
#[derive(Debug, Clone)]
pub(crate) struct NewSession {
    pub(crate) source: args::Request,
    /// Oldest first.
    pub(crate) compactions: Vec<Arc<Compacted>>,
}

/// Two are equal where they are the same one: what they hold is large.
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
    /// The subject before it.
    pub(crate) before: Arc<Subject>,
    /// How many what-if changes there were by then: later ones are undone first.
    pub(crate) changes: usize,
}

/// A fix of a prompt over its budget that was shown: it counts as long as nothing else is changed.
#[derive(Debug)]
pub(crate) struct Fix {
    /// All fixes, each with its words.
    pub(crate) all: Arc<[(Remedy, String)]>,
    /// The place of this one among them.
    pub(crate) number: usize,
    /// The prompt that they are for.
    pub(crate) at: At,
    pub(crate) before: WhatIf,
    pub(crate) after: WhatIf,
}

#[derive(Debug)]
pub(crate) struct App {
    pub(crate) subject: Arc<Subject>,
    pub(crate) theme: Theme,
    pub(crate) size: Rect,
    pub(crate) view: View,
    pub(crate) pane: Pane,
    pub(crate) popup: Option<Popup>,
    /// The filter while it is being typed.
    pub(crate) input: Option<Input>,
    pub(crate) at: At,
    pub(crate) planned: Loadable<Planned>,
    pub(crate) what_if: WhatIfState,
    /// The number of the prompt to go to as soon as the prompts are known.
    pub(crate) goes_to: Option<usize>,
    /// The list of the plan view, and of the view of items: one choice of rows, and one selected item.
    pub(crate) list: ItemListState,
    /// The plan with a row for each message that is out: what the view of items lists.
    pub(crate) listed: Loadable<Arc<ContextPlan>>,
    /// The order of the other one of the two views.
    pub(crate) other_order: SortBy,
    /// Whether the last row is to be selected as soon as the rows are known: a session that grows is
    /// followed.
    pub(crate) to_end: bool,
    pub(crate) section: usize,
    /// Where there is little room: whether the overview is shown, not the sections.
    pub(crate) overview: bool,
    /// Which fix was tried last, of a prompt that is over its budget.
    pub(crate) fix: Option<Fix>,
    pub(crate) detail: DetailState,
    pub(crate) notices: NoticeListState,
    /// What is chosen where the conversation is to become smaller.
    pub(crate) banner: BannerState,
    /// What that would do; nothing inside where there is nothing to compact.
    pub(crate) offered: Loadable<Option<Offer>>,
    /// The compactions that were applied on the screen, oldest first.
    pub(crate) applied: Vec<Applied>,
    /// How far the help or a compaction is scrolled.
    pub(crate) scrolled: u16,
    /// The row that is explained, and its explanation.
    pub(crate) explained: (String, Loadable<String>),
    pub(crate) diff: Loadable<Diff>,
    /// Which comparison was asked for, where there are several.
    pub(crate) compared: Option<Comparison>,
    pub(crate) differences: Cursor,
    pub(crate) marks: Vec<Mark>,
    pub(crate) replayed: Loadable<()>,
    pub(crate) prompt: Cursor,
    pub(crate) config: Cursor,
    pub(crate) follow: Follow,
    /// The file that is followed could not be read the last time.
    pub(crate) unread: bool,
    /// What was last said at the foot.
    pub(crate) note: String,
    pub(crate) ticket: u64,
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

    /// Tries what is in a file, at its prompt; to be undone like anything that is tried.
    pub(crate) fn begin_with(&mut self, saved: Saved) {
        if saved.session != self.subject.name {
            self.note = format!("these what-if changes were made for {}", report::brief(&saved.session));
        }
        self.goes_to = Some(saved.prompt).filter(|prompt| *prompt != self.subject.prompts);
        self.what_if.set_changes(saved.what_if());
    }

    /// The first questions.
    pub(crate) fn start(&mut self) -> Vec<Question> {
        self.epoch += 1;
        self.fix = None;
        self.marks.clear();
        self.replayed = Loadable::Asked;
        vec![self.ask_for_a_plan(), Question::Replay { epoch: self.epoch }]
    }

    pub(crate) fn ask_for_a_plan(&mut self) -> Question {
        self.ticket += 1;
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

    /// The banner of the plan on the screen, and the lines that it takes.
    pub(crate) fn banner(&self) -> Option<(Banner<'_>, u16)> {
        let banner = Banner::new(&self.plan()?.usage).with_theme(self.theme);
        let height = banner.height(self.size.width, &self.banner);
        (height > 0).then_some((banner, height))
    }

    /// Where everything is on the screen.
    pub(crate) fn places(&self) -> Places {
        let overview = self.overview && self.pane != Pane::Sections;
        Places::of(self.size, self.banner().map_or(0, |(_, height)| height), overview)
    }

    /// What there is to compare with, the nearest first.
    pub(crate) fn comparisons(&self) -> Vec<Comparison> {
        let before = self.place_of_prompt().is_some_and(|place| place > 0);
        let all = [
            (Comparison::Untried, !self.what_if.changes().is_empty()),
            (Comparison::Other, self.subject.against.is_some()),
            (Comparison::Before, before),
        ];
        all.into_iter().filter(|(_, is_there)| *is_there).map(|(comparison, _)| comparison).collect()
    }

    /// What it is compared with: what was asked for, else the nearest.
    pub(crate) fn comparison(&self) -> Option<Comparison> {
        let all = self.comparisons();
        self.compared.filter(|asked| all.contains(asked)).or(all.first().copied())
    }

    /// The plan whose rows are listed.
    pub(crate) fn listed(&self) -> Option<&ContextPlan> {
        match (self.view, &self.listed) {
            (View::Items, Loadable::Answered(plan)) => Some(plan),
            (View::Items, _) => None,
            _ => self.plan(),
        }
    }

    /// Where the list is on the screen.
    pub(crate) fn list_area(&self) -> Rect {
        let places = self.places();
        if self.view == View::Items { places.body } else { places.items }
    }

    /// Goes to a view. The two with a list have one selected item, and each its order.
    pub(crate) fn go_to(&mut self, view: View) {
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

    /// What items say, at the prompt on the screen.
    pub(crate) fn texts(&self) -> ItemTexts<'_> {
        texts(&self.subject, &self.planned).with_changes(self.what_if.changes())
    }

    /// The selected row of the plan; none where a marker is selected.
    pub(crate) fn row(&self) -> Option<Decision<'_>> {
        self.list.row(self.listed()?)
    }

    /// Its id, that of the last message for a run, and whether it is a document.
    pub(crate) fn row_id(&self) -> Option<(&str, bool)> {
        self.row().map(|row| (row.id().as_str(), row.is_document()))
    }

    /// Finds the rows of the list again, after another choice or in another plan.
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

    /// Keeps in mind which item is selected, before the list changes.
    pub(crate) fn remember_item(&mut self) {
        let mut list = mem::take(&mut self.list);
        if let Some(plan) = self.listed() {
            list.remember_plan(plan);
        }
        self.list = list;
    }

    /// An earlier prompt by its index among the marks; the last one is the current session.
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

    /// Whether the conversation was compacted right before the prompt of this index.
    pub(crate) fn was_compacted(&self, place: usize) -> bool {
        let before = place.checked_sub(1).and_then(|before| self.marks.get(before));
        self.marks
            .get(place)
            .is_some_and(|mark| mark.figures.is_compacted_since(before.map(|mark| &mark.figures)))
    }

    /// The index among the marks of the prompt on the screen, where it is one of them.
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

fn texts<'a>(subject: &'a Subject, planned: &'a Loadable<Planned>) -> ItemTexts<'a> {
    match planned {
        Loadable::Answered(Planned { past: Some(log), .. }) => subject.item_texts().with_log(log),
        _ => subject.item_texts(),
    }
}
