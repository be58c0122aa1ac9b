//! The handling of keys.

use super::{Focus, Screen, line};
use crate::chat::Chat;
use context_window_ratatui::{DetailState, FilterLineState, Move, Shown};
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tui_input::{Input, backend::crossterm::EventHandler};

/// Maximum number of pasted characters in a filter.
const FILTER: usize = 200;

impl Screen {
    /// Handles a key. Returns false if the chat should end.
    pub(super) fn press(&mut self, chat: &mut Chat, event: &Event) -> bool {
        let key = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => key,
            Event::Paste(text) => {
                self.paste(chat, text);
                return true;
            }
            _ => return true,
        };
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let was_ending = std::mem::take(&mut self.is_ending);
        self.note = None;
        match (key.code, is_control) {
            (KeyCode::Char('c'), true) => return self.interrupt(chat, was_ending),
            (KeyCode::Char('d'), true) => return false,
            (KeyCode::Tab, _) if self.filter.is_none() => self.next_focus(chat, false),
            (KeyCode::BackTab, _) if self.filter.is_none() => self.next_focus(chat, true),
            (KeyCode::PageUp, _) if self.focus == Focus::Line => self.transcript.apply_move(Move::PageUp),
            (KeyCode::PageDown, _) if self.focus == Focus::Line => self.transcript.apply_move(Move::PageDown),
            _ => match self.focus {
                Focus::Line => return self.write(chat, *key),
                Focus::Items => self.look(chat, key.code),
                Focus::Notices => self.answer(chat, key.code),
                Focus::Banner => self.choose(chat, key.code),
            },
        }
        true
    }

    /// Inserts a pasted text into the filter being typed, or else into the input line.
    fn paste(&mut self, chat: &Chat, text: &str) {
        match &mut self.filter {
            Some(filter) => {
                let letters = text.chars().filter(|letter| !letter.is_control()).take(FILTER);
                letters.for_each(|letter| filter.insert(letter, &mut self.list));
                self.refresh(chat);
            }
            None => {
                self.focus = Focus::Line;
                (self.input, self.note) = line::paste(&self.input, text);
            }
        }
    }

    /// Stops running work. Without running work, clears the line first and then ends.
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

    /// Moves the focus to the next or previous area that accepts actions.
    fn next_focus(&mut self, chat: &Chat, back: bool) {
        let mut order = [Focus::Line, Focus::Notices, Focus::Items, Focus::Banner];
        if back {
            order.reverse();
        }
        let at = order.iter().position(|focus| *focus == self.focus).unwrap_or_default();
        let next = order.iter().cycle().skip(at + 1).take(order.len()).find(|focus| self.has(**focus, chat));
        self.focus = next.copied().unwrap_or(Focus::Line);
        if self.focus == Focus::Notices && self.notices.action(&chat.plan).is_none() {
            // A notice that was only viewed before has no action.
            self.notice = None;
            self.select_notice(chat);
        }
    }

    fn write(&mut self, chat: &mut Chat, key: KeyEvent) -> bool {
        match key.code {
            KeyCode::Enter if key.modifiers.contains(KeyModifiers::ALT) => {
                self.input = line::break_line(&self.input);
            }
            KeyCode::Enter if chat.preview.is_some() && self.input.value().is_empty() => chat.decide(true),
            KeyCode::Enter => {
                let line = self.input.value_and_reset();
                self.transcript.apply_move(Move::Last);
                if !line.trim().is_empty() && self.earlier.last() != Some(&line) {
                    self.earlier.push(line.clone());
                }
                self.looking_back = self.earlier.len();
                return chat.enter(&line);
            }
            KeyCode::Esc => {
                chat.decide(false);
                self.transcript.apply_move(Move::Last);
            }
            KeyCode::Up | KeyCode::Down => match line::move_row(&self.input, key.code == KeyCode::Down) {
                Some(moved) => self.input = moved,
                None if key.code == KeyCode::Up => self.look_back(self.looking_back.saturating_sub(1)),
                None => self.look_back(self.looking_back + 1),
            },
            _ => drop(self.input.handle_event(&Event::Key(key))),
        }
        true
    }

    /// Shows an earlier input line; after the last one, the unsent draft.
    fn look_back(&mut self, at: usize) {
        let at = at.min(self.earlier.len());
        if at == self.looking_back {
            return;
        }
        if self.looking_back == self.earlier.len() {
            self.draft = self.input.value().to_owned();
        }
        self.looking_back = at;
        let line = self.earlier.get(at).cloned().unwrap_or_else(|| std::mem::take(&mut self.draft));
        self.input = Input::new(line);
    }

    fn look(&mut self, chat: &mut Chat, key: KeyCode) {
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
                    KeyCode::Char('r' | 'S') => self.list.reverse_order(),
                    KeyCode::Char('a') => self.list.set_shown(Shown::All),
                    KeyCode::Char('i') => self.list.set_shown(Shown::In),
                    KeyCode::Char('o') => self.list.set_shown(Shown::Out),
                    KeyCode::Char(change @ ('p' | 'x')) => self.change_item(chat, change == 'p'),
                    _ => {}
                }
                return self.refresh(chat);
            }
        };
        match &mut self.detail {
            Some(detail) => detail.apply_move(step),
            None => self.list.apply_move(step),
        }
    }

    /// Pins or unpins the selected item, or excludes it, and shows the result.
    fn change_item(&mut self, chat: &mut Chat, is_pin: bool) {
        let Some(row) = self.list.row(&chat.plan) else { return };
        let (id, is_document) = (row.id().clone(), row.is_document());
        let said = if is_pin { chat.toggle_pin(&id, is_document) } else { chat.exclude(&id, is_document) };
        chat.say(said.clone());
        self.note = Some(said);
    }

    fn answer(&mut self, chat: &mut Chat, key: KeyCode) {
        match key {
            KeyCode::Up | KeyCode::Down => {
                self.notices.apply_move(if key == KeyCode::Up { Move::Up } else { Move::Down });
                self.follow_notice(chat);
            }
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
