//! The styles of all widgets.

use context_window::{Section, plan::Kind, usage::Level};
use context_window_report::palette;
use ratatui_core::style::{Color, Modifier, Style};

/// The 16 colours of a terminal, indexed by number.
const SIXTEEN: [Color; 16] = [
    Color::Black,
    Color::Red,
    Color::Green,
    Color::Yellow,
    Color::Blue,
    Color::Magenta,
    Color::Cyan,
    Color::Gray,
    Color::DarkGray,
    Color::LightRed,
    Color::LightGreen,
    Color::LightYellow,
    Color::LightBlue,
    Color::LightMagenta,
    Color::LightCyan,
    Color::White,
];

/// A set of styles, in the 16 colours of every terminal or without colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Theme {
    /// The style of good states: used room, included items.
    pub good: Style,
    /// The style of warnings: a window that fills up, a section that uses more than its budget.
    pub warning: Style,
    /// The style of alarms: a full window, a prompt over its budget.
    pub alarm: Style,
    /// The style of headings.
    pub heading: Style,
    /// The style of less important content: excluded items, hints.
    pub faint: Style,
    /// The style of the selected row.
    pub selected: Style,
}

impl Theme {
    /// Creates a theme in 16 colours.
    #[must_use]
    pub const fn colours() -> Self {
        Self {
            good: Style::new().fg(Color::Green),
            warning: Style::new().fg(Color::Yellow),
            alarm: Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            heading: Style::new().add_modifier(Modifier::BOLD),
            faint: Style::new().fg(Color::DarkGray),
            // The row's own colours are reset, because they would be hard to read in reverse.
            selected: Style::new().fg(Color::Reset).bg(Color::Reset).add_modifier(Modifier::REVERSED),
        }
    }

    /// Creates a theme without colour. It uses bold, dim, underlined and reversed text only.
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

    /// Returns the colour of a kind of tokens, the same in all reports and widgets. Returns an empty style
    /// for the theme without colour.
    #[must_use]
    pub fn kind(&self, kind: &Kind) -> Style {
        if *self == Self::plain() {
            return Style::new();
        }
        Style::new().fg(SIXTEEN[usize::from(palette::colour(kind)) % SIXTEEN.len()])
    }

    /// Returns the colour of a section. Returns an empty style for the theme without colour.
    #[must_use]
    pub fn section(&self, section: Section) -> Style {
        self.kind(&match section {
            Section::SystemPinned => Kind::System,
            Section::Conversation => Kind::Assistant,
            Section::Rag => Kind::Documents(String::new()),
        })
    }

    /// Returns the style of a prompt of `tokens` tokens: a warning from 90 % of the budget on, an alarm above
    /// the budget.
    #[must_use]
    pub fn fill(&self, tokens: u64, budget: u64) -> Style {
        // In 128 bits the products cannot overflow.
        match u128::from(tokens) * 10 {
            full if full > u128::from(budget) * 10 => self.alarm,
            full if full >= u128::from(budget) * 9 && budget > 0 => self.warning,
            _ => self.good,
        }
    }

    /// Returns the style of a usage level.
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
