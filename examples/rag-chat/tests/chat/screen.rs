//! The screen in a real terminal.
