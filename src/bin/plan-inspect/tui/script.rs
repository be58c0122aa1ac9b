//! The screen without a terminal: keys from a text, every question answered before the next key, the picture as text.

use super::{
    ask::{self, Question},
    state::{App, Effect},
    update, view,
};
use anyhow::{Context, Result, bail};
use ratatui::{
    Terminal,
    backend::TestBackend,
    buffer::Buffer,
    crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers},
    layout::Rect,
};

pub(crate) struct Script {
    pub(crate) app: App,
    /// Orders that were given, oldest first.
    pub(crate) effects: Vec<Effect>,
}

impl Script {
    pub(crate) fn open(mut app: App) -> Self {
        let questions = app.start();
        let mut script = Self { app, effects: Vec::new() };
        script.answer(questions);
        script
    }

    /// Presses keys one after another: characters as they are, others by name: `<Enter>`, `<Tab>`, `<C-d>`, `<lt>`.
    pub(crate) fn press(&mut self, keys: &str) -> Result<()> {
        let mut rest = keys;
        while let Some(first) = rest.chars().next() {
            let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
            let (event, after) = match named.and_then(|(name, after)| Some((key(name)?, after))) {
                Some(found) => found,
                None if first == '<' && named.is_some_and(|(name, _)| name.len() > 1) => {
                    let name = named.map_or("", |(name, _)| name);
                    bail!(
                        "--keys: <{name}> is not a key; expected <Enter>, <Esc>, <Tab>, <lt>, <C-d> and the like"
                    );
                }
                None => (KeyEvent::from(KeyCode::Char(first)), &rest[first.len_utf8()..]),
            };
            self.happens(&Event::Key(event));
            rest = after;
        }
        Ok(())
    }

    pub(crate) fn happens(&mut self, event: &Event) {
        let questions = update::input(&mut self.app, event);
        self.answer(questions);
        self.effects.append(&mut self.app.effects);
    }

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

    /// The picture.
    pub(crate) fn buffer(&self) -> Result<Buffer> {
        let Rect { width, height, .. } = self.app.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height))?;
        terminal.draw(|frame| view::draw(frame, &self.app))?;
        Ok(terminal.backend().buffer().clone())
    }

    /// The picture's text, line by line.
    pub(crate) fn text(&self) -> Result<String> {
        let buffer = self.buffer()?;
        let mut text = String::new();
        for y in 0..buffer.area.height {
            let (mut line, mut covered) = (String::new(), 0);
            for x in 0..buffer.area.width {
                let symbol = buffer[(x, y)].symbol();
                // A wide character covers the cell behind it.
                if covered == 0 {
                    line.push_str(symbol);
                    covered = unicode_width::UnicodeWidthStr::width(symbol);
                }
                covered = covered.saturating_sub(1);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        Ok(text)
    }
}

/// A key by its name.
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

/// Draws once, after these keys, and hands the picture over as text.
pub(crate) fn print(app: App, keys: &str) -> Result<String> {
    let mut script = Script::open(app);
    script.press(keys)?;
    script.text().context("the screen cannot be drawn")
}
