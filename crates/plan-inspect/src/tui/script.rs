//! The screen without a terminal. Keys come from a text, every question is answered before the next key, and
//! the result is text.

use super::{
    ask::{self, Question},
    picker::{Picked, Picker},
    state::{App, Effect},
    update, view,
};
use anyhow::{Context, Result, bail};
use context_window::text::plain;
use ratatui::{
    Terminal,
    backend::TestBackend,
    buffer::Buffer,
    crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers},
    layout::Rect,
};

/// A screen that is controlled by keys in a text.
pub(crate) struct Script {
    pub(crate) app: App,
    /// The effects that were requested, oldest first.
    pub(crate) effects: Vec<Effect>,
}

impl Script {
    pub(crate) fn open(mut app: App) -> Self {
        let questions = app.start();
        let mut script = Self { app, effects: Vec::new() };
        script.answer(questions);
        script
    }

    /// Presses keys in order. A character is itself; other keys have names: `<Enter>`, `<Tab>`, `<C-d>`,
    /// `<lt>`.
    pub(crate) fn press(&mut self, keys: &str) -> Result<()> {
        let mut rest = keys;
        while let Some((event, after)) = next_key(rest)? {
            self.handle_event(&event);
            rest = after;
        }
        Ok(())
    }

    pub(crate) fn handle_event(&mut self, event: &Event) {
        let questions = update::input(&mut self.app, event);
        self.answer(questions);
        self.effects.append(&mut self.app.effects);
    }

    /// Answers questions and those that result from the answers, until none are left.
    fn answer(&mut self, mut questions: Vec<Question>) {
        while !questions.is_empty() {
            let mut next = Vec::new();
            for question in questions {
                let mut answers = Vec::new();
                match (&question, ask::answer(&self.app.subject, &question)) {
                    (_, Some(answer)) => answers.push(answer),
                    (Question::Replay { epoch }, None) => ask::replay(&self.app.subject, *epoch, |answer| {
                        answers.push(answer);
                        true
                    }),
                    _ => {}
                }
                next.extend(answers.into_iter().flat_map(|answer| update::answer(&mut self.app, answer)));
            }
            questions = next;
        }
    }

    /// Draws the screen into a buffer.
    pub(crate) fn buffer(&self) -> Result<Buffer> {
        let Rect { width, height, .. } = self.app.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height))?;
        terminal.draw(|frame| view::draw(frame, &self.app))?;
        Ok(terminal.backend().buffer().clone())
    }

    /// Draws the screen as text, line by line.
    pub(crate) fn text(&self) -> Result<String> {
        Ok(text_of(&self.buffer()?))
    }
}

/// Returns the text of a buffer, line by line.
fn text_of(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in 0..buffer.area.height {
        // `covered` is the number of cells that the last character still covers.
        let (mut line, mut covered) = (String::new(), 0);
        for x in 0..buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            // A wide character also covers the next cell, which is skipped.
            if covered == 0 {
                line.push_str(symbol);
                covered = unicode_width::UnicodeWidthStr::width(symbol);
            }
            covered = covered.saturating_sub(1);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Splits off the first key. Returns `None` if there are no keys left.
fn next_key(keys: &str) -> Result<Option<(Event, &str)>> {
    let Some(first) = keys.chars().next() else { return Ok(None) };
    let named = keys.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    let (event, after) = match named.and_then(|(name, after)| Some((key(name)?, after))) {
        Some(found) => found,
        // A single character between angle brackets is taken literally, for example in `<a>`.
        None if first == '<' && named.is_some_and(|(name, _)| name.len() > 1) => {
            let name = named.map_or("", |(name, _)| name);
            let name = plain::short(name);
            bail!("--keys: <{name}> is not a key; expected <Enter>, <Esc>, <Tab>, <lt>, <C-d> and the like");
        }
        None => (KeyEvent::from(KeyCode::Char(first)), &keys[first.len_utf8()..]),
    };
    Ok(Some((Event::Key(event), after)))
}

/// Returns a key by its name, or `None` if the name is unknown.
fn key(name: &str) -> Option<KeyEvent> {
    if let Some(letter) = name.strip_prefix("C-") {
        let mut letters = letter.chars();
        let letter = letters.next().filter(|_| letters.next().is_none())?;
        return Some(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL));
    }
    Some(KeyEvent::from(match name {
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "S-Tab" => KeyCode::BackTab,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "PgUp" => KeyCode::PageUp,
        "PgDn" => KeyCode::PageDown,
        "BS" => KeyCode::Backspace,
        "Del" => KeyCode::Delete,
        "Space" => KeyCode::Char(' '),
        "lt" => KeyCode::Char('<'),
        "F1" => KeyCode::F(1),
        _ => return None,
    }))
}

/// Draws the list of sessions after these keys. If a key chooses a session, `open` draws it with the
/// remaining keys.
pub(crate) fn print_picker(
    mut picker: Picker,
    size: Rect,
    keys: &str,
    open: impl FnOnce(String, &str) -> Result<String>,
) -> Result<String> {
    let mut rest = keys;
    while let Some((event, after)) = next_key(rest)? {
        match picker.handle_event(&event) {
            Picked::Session(id) => return open(id, after),
            Picked::Nothing | Picked::Quit => rest = after,
        }
    }
    let mut terminal = Terminal::new(TestBackend::new(size.width, size.height))?;
    terminal.draw(|frame| picker.draw(frame))?;
    Ok(text_of(terminal.backend().buffer()))
}

/// Draws the screen once after these keys and returns it as text.
pub(crate) fn print(app: App, keys: &str) -> Result<String> {
    let mut script = Script::open(app);
    script.press(keys)?;
    script.text().context("the screen cannot be drawn")
}
