//! What keys do.

use super::{Focus, Screen};
use crate::chat::Chat;
use context_window_ratatui::{DetailState, FilterLineState, Move};
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tui_input::{Input, backend::crossterm::EventHandler};

/// The longest line that a paste makes, in letters.
const PASTED: usize = 20_000;

impl Screen {
    /// Does what a key asks for; false where the chat is to end.
    pub(super) fn press(&mut self, chat: &mut Chat, event: &Event) -> bool {
        let key = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => key,
            Event::Paste(text) => {
                self.focus = Focus::Line;
                // At once: letter by letter takes the square of its length.
                let clean = |letter: char| if letter.is_control() { ' ' } else { letter };
                let mut line: Vec<char> = self.input.value().chars().collect();
                let (at, room) = (self.input.cursor().min(line.len()), PASTED.saturating_sub(line.len()));
                let pasted: Vec<char> = text.chars().take(room).map(clean).collect();
                let cursor = at + pasted.len();
                line.splice(at..at, pasted);
                self.input = Input::new(line.into_iter().collect()).with_cursor(cursor);
                return true;
            }
            _ => return true,
        };
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let was_ending = std::mem::take(&mut self.is_ending);
        match (key.code, is_control) {
            (KeyCode::Char('c'), true) => return self.interrupt(chat, was_ending),
            (KeyCode::Char('d'), true) => return false,
            (KeyCode::Tab | KeyCode::BackTab, _) if self.filter.is_none() => self.next_focus(chat),
            (KeyCode::PageUp, _) if self.focus == Focus::Line => self.transcript.go(Move::PageUp),
            (KeyCode::PageDown, _) if self.focus == Focus::Line => self.transcript.go(Move::PageDown),
            _ => match self.focus {
                Focus::Line => return self.write(chat, *key),
                Focus::Items => self.look(chat, key.code),
                Focus::Notices => self.answer(chat, key.code),
                Focus::Banner => self.choose(chat, key.code),
            },
        }
        true
    }

    /// Stops what is on its way; with nothing on its way empties the line, then ends.
    fn interrupt(&mut self, chat: &mut Chat, was_ending: bool) -> bool {
        if chat.can_stop() {
            chat.interrupt();
        } else if !self.input.value().is_empty() {
            self.input.reset();
        } else if was_ending {
            return false;
        } else {
            self.is_ending = true;
        }
        true
    }

    /// The next place that has something to do.
    fn next_focus(&mut self, chat: &Chat) {
        let order = [Focus::Line, Focus::Notices, Focus::Items, Focus::Banner];
        let at = order.iter().position(|focus| *focus == self.focus).unwrap_or_default();
        let next = order.iter().cycle().skip(at + 1).take(order.len()).find(|focus| self.has(**focus, chat));
        self.focus = next.copied().unwrap_or(Focus::Line);
    }

    fn write(&mut self, chat: &mut Chat, key: KeyEvent) -> bool {
        match key.code {
            KeyCode::Enter if chat.preview.is_some() && self.input.value().is_empty() => chat.decide(true),
            KeyCode::Enter => {
                let line = self.input.value_and_reset();
                self.transcript.go(Move::Last);
                if !line.trim().is_empty() && self.earlier.last() != Some(&line) {
                    self.earlier.push(line.clone());
                }
                self.looking_back = self.earlier.len();
                return chat.enter(&line);
            }
            KeyCode::Esc => {
                chat.decide(false);
                self.transcript.go(Move::Last);
            }
            KeyCode::Up => self.look_back(self.looking_back.saturating_sub(1)),
            KeyCode::Down => self.look_back(self.looking_back + 1),
            _ => drop(self.input.handle_event(&Event::Key(key))),
        }
        true
    }

    /// Shows a line that was sent before.
    fn look_back(&mut self, at: usize) {
        self.looking_back = at.min(self.earlier.len());
        let line = self.earlier.get(self.looking_back).cloned().unwrap_or_default();
        self.input = Input::new(line);
    }

    fn look(&mut self, chat: &Chat, key: KeyCode) {
        if let Some(filter) = &mut self.filter {
            match key {
                KeyCode::Enter => self.filter = None,
                KeyCode::Esc => {
                    filter.clear(&mut self.list);
                    self.filter = None;
                }
                KeyCode::Backspace => filter.erase(&mut self.list),
                KeyCode::Char(letter) => filter.insert(letter, &mut self.list),
                _ => {}
            }
            return self.refresh(chat);
        }
        let step = match key {
            KeyCode::Up | KeyCode::Char('k') => Move::Up,
            KeyCode::Down | KeyCode::Char('j') => Move::Down,
            KeyCode::PageUp => Move::PageUp,
            KeyCode::PageDown => Move::PageDown,
            KeyCode::Home | KeyCode::Char('g') => Move::First,
            KeyCode::End | KeyCode::Char('G') => Move::Last,
            other => {
                match other {
                    KeyCode::Enter => self.detail = self.detail.is_none().then(DetailState::default),
                    KeyCode::Esc if self.detail.is_some() => self.detail = None,
                    KeyCode::Esc if !self.list.filter().is_empty() => {
                        FilterLineState::default().clear(&mut self.list)
                    }
                    KeyCode::Esc => self.focus = Focus::Line,
                    KeyCode::Char('/') => {
                        self.filter = Some(FilterLineState::default());
                        let _ = self.list.set_filter("");
                    }
                    KeyCode::Char('s') => self.list.sort_next(),
                    KeyCode::Char('r') => self.list.reverse(),
                    _ => {}
                }
                return self.refresh(chat);
            }
        };
        match &mut self.detail {
            Some(detail) => detail.go(step),
            None => self.list.go(step),
        }
    }

    fn answer(&mut self, chat: &mut Chat, key: KeyCode) {
        match key {
            KeyCode::Up => self.notices.go(Move::Up),
            KeyCode::Down => self.notices.go(Move::Down),
            KeyCode::Left => self.notices.previous_action(),
            KeyCode::Right => self.notices.next_action(),
            KeyCode::Enter => {
                if let Some(action) = self.notices.action(&chat.plan) {
                    chat.answer(&action);
                }
            }
            KeyCode::Esc => self.focus = Focus::Line,
            _ => {}
        }
    }

    fn choose(&mut self, chat: &mut Chat, key: KeyCode) {
        match key {
            KeyCode::Left | KeyCode::Right => self.banner.next_action(),
            KeyCode::Enter => {
                if let Some(action) = self.banner.action(&chat.plan.usage) {
                    self.focus = Focus::Line;
                    chat.make_room(action);
                }
            }
            KeyCode::Esc => {
                self.banner.close(&chat.plan.usage);
                self.focus = Focus::Line;
            }
            _ => {}
        }
    }
}
