//! The styles of every widget.

use context_window::{Section, plan::Kind, usage::Level};
use context_window_report::palette;
use ratatui_core::style::{Color, Modifier, Style};

/// The 16 colours of a terminal by their numbers.
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
            // A row of its own colour would be hard to read reversed.
            selected: Style::new().fg(Color::Reset).bg(Color::Reset).add_modifier(Modifier::REVERSED),
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

    /// The colour of a kind of tokens, the same on every surface; none where there are no colours.
    #[must_use]
    pub fn kind(&self, kind: &Kind) -> Style {
        if *self == Self::plain() {
            return Style::new();
        }
        Style::new().fg(SIXTEEN[usize::from(palette::colour(kind)) % SIXTEEN.len()])
    }

    /// The colour of a section; none where there are no colours.
    #[must_use]
    pub fn section(&self, section: Section) -> Style {
        self.kind(&match section {
            Section::SystemPinned => Kind::System,
            Section::Conversation => Kind::Assistant,
            Section::Rag => Kind::Documents(String::new()),
        })
    }

    /// The style of a prompt of so many tokens under a budget: amber from nine tenths on, red above it.
    #[must_use]
    pub fn fill(&self, tokens: u64, budget: u64) -> Style {
        match u128::from(tokens) * 10 {
            full if full > u128::from(budget) * 10 => self.alarm,
            full if full >= u128::from(budget) * 9 && budget > 0 => self.warning,
            _ => self.good,
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
