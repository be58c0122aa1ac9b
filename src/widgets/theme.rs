//! The styles of every widget.

use crate::usage::Level;
use ratatui_core::style::{Color, Modifier, Style};

/// Styles, from the 16 colours that every terminal has, or without any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Theme {
    /// What is well: room that is used, items that are in.
    pub good: Style,
    /// What wants attention: a window that fills up, a section that uses more than its budget.
    pub warning: Style,
    /// What is wrong: a window that is full, a prompt over its budget.
    pub alarm: Style,
    /// Headings.
    pub heading: Style,
    /// What is less important: items that are out, hints.
    pub faint: Style,
    /// The selected row.
    pub selected: Style,
}

impl Theme {
    /// In 16 colours.
    #[must_use]
    pub const fn colours() -> Self {
        Self {
            good: Style::new().fg(Color::Green),
            warning: Style::new().fg(Color::Yellow),
            alarm: Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            heading: Style::new().add_modifier(Modifier::BOLD),
            faint: Style::new().fg(Color::DarkGray),
            selected: Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    /// Without colour: bold, dim and reversed text only.
    #[must_use]
    pub const fn plain() -> Self {
        Self {
            good: Style::new(),
            warning: Style::new().add_modifier(Modifier::UNDERLINED),
            alarm: Style::new().add_modifier(Modifier::BOLD),
            heading: Style::new().add_modifier(Modifier::BOLD),
            faint: Style::new().add_modifier(Modifier::DIM),
            selected: Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    /// The style of a level: normal, amber, red.
    #[must_use]
    pub const fn level(&self, level: Level) -> Style {
        match level {
            Level::Normal => self.good,
            Level::Approaching => self.warning,
            Level::AtLimit => self.alarm,
        }
    }
}

impl Default for Theme {
    fn default() -> Self {
        Self::colours()
    }
}
