//! The screen: the conversation, the prompt next to it, and an input line.

mod keys;
mod line;
pub mod markdown;
mod view;

use crate::chat::Chat;
use crate::event::{Event, Tasks};
use crate::once;
use anyhow::{Context, Result};
use context_window::plan::{Notice, NoticeCode};
use context_window::{Error, ItemId, Role};
use context_window_ratatui::{
    BannerState, DetailState, FilterLineState, ItemListState, ItemTexts, Move, NoticeAction, NoticeList,
    NoticeListState, RowExplanation, Theme, TranscriptState,
};
use ratatui::crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use std::{io::stdout, panic, process::ExitCode, sync::mpsc::Receiver, thread, time::Duration};
use tui_input::Input;

/// Turns that "keep" adds to an expired pin.
const TURNS: u32 = 3;

/// The area that receives keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    Line,
    Items,
    /// Expired pins, and pins that do not fit.
    Notices,
    /// The warning that the window is nearly full.
    Banner,
}

/// The state of the screen in addition to the chat: focus, selections and input.
struct Screen {
    focus: Focus,
    input: Input,
    /// Earlier input lines.
    earlier: Vec<String>,
    /// Position among the earlier lines.
    looking_back: usize,
    /// The unsent line, while earlier ones are shown.
    draft: String,
    /// The result of the last key, shown if the conversation is not visible.
    note: Option<String>,
    transcript: TranscriptState,
    list: ItemListState,
    filter: Option<FilterLineState>,
    detail: Option<DetailState>,
    /// The explanation of an item, with the id and plan it belongs to.
    why: Option<((String, String), Result<RowExplanation, Error>)>,
    notices: NoticeListState,
    /// The selected notice, by the data that identify it in the next plan.
    notice: Option<(NoticeCode, Vec<ItemId>)>,
    banner: BannerState,
    theme: Theme,
    /// True if Ctrl-C was pressed with nothing to stop; the next one ends the chat.
    is_ending: bool,
}

/// Draws until the user ends the chat. The terminal is restored in every case.
pub fn run(mut chat: Chat, events: &Receiver<Event>, tasks: Tasks) -> Result<ExitCode> {
    let mut terminal = ratatui::try_init().context("the terminal cannot be set up")?;
    let hook = panic::take_hook();
    let main = thread::current().id();
    panic::set_hook(Box::new(move |panic| {
        // A panic in a task is an error of the chat, and the screen stays.
        if thread::current().id() == main {
            let _ = execute!(stdout(), DisableBracketedPaste);
            hook(panic);
        }
    }));
    execute!(stdout(), EnableBracketedPaste)?;
    thread::spawn(move || {
        // Polls instead of blocking: after a resize, drawing reads the cursor position, and keys that arrive
        // meanwhile wait in a queue, which `read` alone does not check before the next key.
        while let Ok(is_there) = event::poll(Duration::from_millis(50)) {
            match is_there.then(event::read) {
                Some(Ok(event)) => tasks.send(Event::Terminal(event)),
                Some(Err(_)) => return,
                None => {}
            }
        }
    });
    let mut screen = Screen::new(&chat);
    let result: Result<()> = (|| loop {
        terminal.draw(|frame| view::draw(frame, &chat, &mut screen))?;
        let Ok(first) = events.recv() else { return Ok(()) };
        // All pending events are handled before the next drawing.
        for event in std::iter::once(first).chain(events.try_iter()) {
            match event {
                Event::Terminal(event) if !screen.press(&mut chat, &event) => return Ok(()),
                Event::Terminal(_) => {}
                event => chat.handle(event),
            }
            screen.refresh(&chat);
        }
    })();
    execute!(stdout(), DisableBracketedPaste)?;
    ratatui::try_restore()?;
    result?;
    Ok(once::end(chat))
}

impl Screen {
    fn new(chat: &Chat) -> Self {
        let questions = chat.log.messages().iter().filter(|message| message.role() == Role::User);
        let earlier: Vec<String> = questions.map(|message| message.text().to_owned()).collect();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let mut screen = Self {
            focus: Focus::Line,
            input: Input::default(),
            looking_back: earlier.len(),
            earlier,
            draft: String::new(),
            note: None,
            transcript: TranscriptState::default(),
            list: ItemListState::new(),
            filter: None,
            detail: None,
            why: None,
            notices: NoticeListState::with_turns(TURNS),
            notice: None,
            banner: BannerState::default(),
            theme: if plain { Theme::plain() } else { Theme::colours() },
            is_ending: false,
        };
        screen.refresh(chat);
        screen
    }

    /// Updates the screen after the plan changed.
    fn refresh(&mut self, chat: &Chat) {
        self.list.refresh_rows(&chat.plan, &ItemTexts::from_request(&chat.request()));
        if !self.has(self.focus, chat) {
            self.focus = Focus::Line;
        }
        self.select_notice(chat);
    }

    /// Selects the notice that was selected in the last plan, or else the first with an action.
    fn select_notice(&mut self, chat: &Chat) {
        let notices = &chat.plan.notices;
        let known =
            self.notice.as_ref().and_then(|known| notices.iter().position(|now| *known == about(now)));
        let asking = || {
            notices.iter().position(|notice| !NoticeAction::for_notice(&chat.plan, notice, TURNS).is_empty())
        };
        let Some(at) = known.or_else(asking) else { return };
        self.notice = notices.get(at).map(about);
        let place = NoticeList::new(&chat.plan).len() - notices.len() + at;
        if self.notices.selected() != place {
            self.notices.apply_move(Move::First);
            self.notices.apply_move(Move::By(place.cast_signed()));
        }
    }

    /// Remembers the notice that the user moved to; `None` for a line about a prompt over its budget.
    fn follow_notice(&mut self, chat: &Chat) {
        let notices = &chat.plan.notices;
        let above = NoticeList::new(&chat.plan).len() - notices.len();
        let at = self.notices.selected().min((above + notices.len()).saturating_sub(1));
        self.notice = at.checked_sub(above).and_then(|at| notices.get(at)).map(about);
    }

    /// Returns true if an area accepts actions.
    fn has(&self, focus: Focus, chat: &Chat) -> bool {
        match focus {
            Focus::Line | Focus::Items => true,
            Focus::Notices => self.asks(chat),
            Focus::Banner => self.banner.is_shown(&chat.plan.usage),
        }
    }

    /// Returns true if a notice has actions.
    fn asks(&self, chat: &Chat) -> bool {
        let of = |notice| NoticeAction::for_notice(&chat.plan, notice, TURNS);
        chat.plan.notices.iter().any(|notice| !of(notice).is_empty())
    }
}

/// Returns the data that identify a notice from one plan to the next.
fn about(notice: &Notice) -> (NoticeCode, Vec<ItemId>) {
    (notice.code, notice.ids.clone())
}
