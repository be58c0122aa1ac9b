//! The choice of a session, if a file or store has several and the arguments name none.

use super::{Event, state::Cursor, terminal::Screen};
use crate::{args::Tui, input, listed::Listed};
use anyhow::Result;
use context_window_ratatui::Theme;
use context_window_report as report;
use ratatui::{
    Frame,
    crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEventKind},
    layout::Rect,
    text::Line,
    widgets::Block,
};
use std::sync::mpsc;

/// The list of sessions with the selected one.
pub(crate) struct Picker {
    sessions: Vec<Listed>,
    cursor: Cursor,
    size: Rect,
    theme: Theme,
}

/// The effect of an event on the choice.
pub(crate) enum Picked {
    /// No decision yet.
    Nothing,
    /// A chosen session, by its id.
    Session(String),
    Quit,
}

/// The end of the choice.
pub(crate) enum Ended {
    /// A chosen session, by its id.
    Session(String),
    Quit,
    /// A signal, by its number.
    Signal(i32),
}

impl Picker {
    /// Creates the list of sessions. Returns `None` if there is only one, or if the arguments name one.
    pub(crate) fn from_args(args: &Tui, theme: Theme, size: Rect) -> Result<Option<Self>> {
        // A pipe can be read only once, so its sessions cannot be listed first.
        let is_pipe = args.request.session.as_os_str() == "-";
        if args.request.id.is_some()
            || is_pipe
            || input::sessions(&args.request.session, args.request.reading.options())?.len()? < 2
        {
            return Ok(None);
        }
        let sessions = Listed::from_request(&args.request)?;
        Ok(Some(Self { sessions, cursor: Cursor::default(), size, theme }))
    }

    /// Draws and handles events until the user chooses a session or quits, or until a signal arrives.
    pub(crate) fn ask(mut self, screen: &mut Screen, queue: &mpsc::Receiver<Event>) -> Result<Ended> {
        loop {
            screen.draw_with(|frame| self.draw(frame))?;
            match queue.recv()? {
                Event::Signal(signal) => return Ok(Ended::Signal(signal)),
                Event::Broken => anyhow::bail!("an internal thread failed; see above"),
                Event::Input(event) => match self.happens(&event) {
                    Picked::Nothing => {}
                    Picked::Session(id) => return Ok(Ended::Session(id)),
                    Picked::Quit => return Ok(Ended::Quit),
                },
                Event::Answer(_) => {}
            }
        }
    }

    /// Handles a terminal event.
    pub(crate) fn happens(&mut self, event: &Input) -> Picked {
        let page = isize::try_from(self.lines()).unwrap_or(1);
        match event {
            Input::Key(key) if key.kind != KeyEventKind::Release => return self.pressed(*key, page),
            Input::Resize(width, height) => {
                self.size = Rect::new(0, 0, *width, *height);
                // Moves the selected row back into a smaller window.
                self.step(0);
            }
            Input::Mouse(mouse) => match mouse.kind {
                MouseEventKind::ScrollDown => self.step(3),
                MouseEventKind::ScrollUp => self.step(-3),
                _ => {}
            },
            _ => {}
        }
        Picked::Nothing
    }

    fn pressed(&mut self, key: KeyEvent, page: isize) -> Picked {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return Picked::Quit,
            KeyCode::Char('q') | KeyCode::Esc => return Picked::Quit,
            KeyCode::Enter => {
                let chosen = self.sessions.get(self.cursor.selected);
                return chosen.map_or(Picked::Nothing, |session| Picked::Session(session.id.clone()));
            }
            KeyCode::Char('j') | KeyCode::Down => self.step(1),
            KeyCode::Char('k') | KeyCode::Up => self.step(-1),
            // A step larger than any list selects the first or the last row.
            KeyCode::Char('g') | KeyCode::Home => self.step(isize::MIN / 2),
            KeyCode::Char('G') | KeyCode::End => self.step(isize::MAX / 2),
            KeyCode::PageDown => self.step(page),
            KeyCode::PageUp => self.step(-page),
            _ => {}
        }
        Picked::Nothing
    }

    fn step(&mut self, by: isize) {
        self.cursor.selected = self.cursor.selected.saturating_add_signed(by);
        self.cursor.settle(self.sessions.len(), self.lines());
    }

    /// Returns the number of lines for sessions: the screen without frame, heading and key line.
    fn lines(&self) -> usize {
        usize::from(self.size.height.saturating_sub(4)).max(1)
    }

    pub(crate) fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let title = format!("[Sessions · {} of {}]", self.cursor.selected + 1, self.sessions.len());
        let list = Rect { height: area.height.saturating_sub(1), ..area };
        frame.render_widget(Block::bordered().title(title).title_style(self.theme.heading), list);
        let inner = super::layout::inside(list);
        let models = self.sessions.iter().filter_map(|session| session.model.as_ref());
        let models = models.map(|model| model.chars().count()).max().unwrap_or_default().clamp(5, 24);
        let ids = usize::from(inner.width).saturating_sub(models + 10 + 12 + 6);
        let row = |[id, model, messages, tokens]: [String; 4]| {
            let (id, model) = (report::fitted(&id, ids), report::fitted(&model, models));
            format!("{id}  {model}  {messages:>10}  {tokens:>12}")
        };
        let heading = row(["session", "model", "messages", "tokens"].map(str::to_owned));
        frame.render_widget(
            Line::styled(heading, self.theme.heading),
            Rect { height: inner.height.min(1), ..inner },
        );
        let rows =
            self.sessions.iter().enumerate().skip(self.cursor.offset).zip(inner.top() + 1..inner.bottom());
        let rows: Vec<_> = rows.map(|((at, session), y)| (at, session.cells(), y)).collect();
        // Visible ids are cut together, so that different ids look different.
        let cut = report::cut_ids(rows.iter().map(|(at, cells, _)| (at + 1, cells[0].as_str())), ids);
        for ((at, mut cells, y), id) in rows.into_iter().zip(cut) {
            let line = Rect { y, height: 1, ..inner };
            cells[0] = id;
            frame.render_widget(Line::raw(row(cells)), line);
            if at == self.cursor.selected {
                frame.buffer_mut().set_style(line, self.theme.selected);
            }
        }
        let foot = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
        frame.render_widget(Line::styled("j k select  Enter open  q quit", self.theme.faint), foot);
    }
}
