//! Texts of a session as a page shows them. Invisible characters are spelled out, long texts are cut with a
//! note, and redacted texts become a hash and a size.

use crate::message::LEFT;
use context_window::{Message, Part, text::plain::grouped};
use serde::Serialize;
use std::fmt::Write as _;

/// The maximum number of characters shown of one text.
const SHOWN: usize = 4_000;

/// The number of bytes shown of all texts together. After that, only the beginning of each text is shown.
const SHOWN_IN_ALL: usize = 700_000;
const BEGINNING: usize = 200;

/// The maximum number of characters of a preview line.
const PREVIEW: usize = 160;

/// One text of an item.
#[derive(Debug, Serialize)]
pub(super) struct Piece {
    /// The name of the text; empty if it is the only text of the item.
    what: String,
    text: String,
    /// A note about the hidden part of the text; empty if nothing is hidden.
    note: String,
    /// True if the text is for programs, such as a tool call or a URL.
    code: bool,
}

impl Piece {
    /// Adds the name of the message to the name of the text, for items of several messages.
    pub(super) fn with_prefix(self, which: &str) -> Self {
        let colon = if self.what.is_empty() { "" } else { ": " };
        Self { what: format!("{which}{colon}{}", self.what), ..self }
    }
}

/// The conversion of texts for a page, with its limits.
#[derive(Debug)]
pub(super) struct Texts {
    redact: bool,
    left: usize,
}

impl Texts {
    pub(super) fn new(redact: bool) -> Self {
        Self { redact, left: SHOWN_IN_ALL }
    }

    /// Returns the texts of a message, each with its name. The only text of a message has no name.
    pub(super) fn pieces_of_message(&mut self, message: &Message) -> Vec<Piece> {
        let mut pieces = Vec::new();
        if !message.is_loaded() {
            pieces.push(Piece { note: LEFT.into(), ..self.piece("", "", false) });
        }
        for reasoning in message.reasoning() {
            let seal = reasoning.signature.as_deref().unwrap_or_default();
            match reasoning.text.as_str() {
                "" => pieces.push(self.piece("encrypted reasoning", seal, true)),
                text => pieces.push(self.piece("reasoning", text, false)),
            }
        }
        if let Some(name) = message.name() {
            pieces.push(self.piece("speaker", name, false));
        }
        if !message.text().is_empty() {
            pieces.push(self.piece("text", message.text(), false));
        }
        for part in message.parts() {
            pieces.push(match part {
                Part::Text(text) => self.piece("text", text, false),
                Part::Image { url, .. } => self.piece("image", url, true),
                Part::Opaque { json, .. } => self.piece("part of another type", json, true),
            });
        }
        for call in message.tool_calls() {
            let (what, text) = (format!("call {}", call.id), format!("{} {}", call.name, call.arguments));
            pieces.push(self.piece(&what, &text, true));
        }
        if pieces.is_empty() {
            pieces.push(Piece { note: "empty".into(), ..self.piece("", "", false) });
        }
        if let [Piece { what, .. }] = &mut pieces[..]
            && what == "text"
        {
            what.clear();
        }
        pieces
    }

    /// Converts one text. It is cut at the limit, or replaced by its hash and size on a redacted page.
    pub(super) fn piece(&mut self, what: &str, text: &str, code: bool) -> Piece {
        let what = visible(what);
        if self.redact {
            let hash = blake3::hash(text.as_bytes()).to_hex();
            let text = format!("blake3 {}, {} bytes", &hash[..16], grouped(text.len() as u64));
            return Piece { what, text, note: String::new(), code: true };
        }
        // The limit of the page is checked before the text, so the last long text can exceed it.
        let most = if self.left == 0 { BEGINNING } else { SHOWN };
        let (shown, cut) = beginning(text, most);
        self.left = self.left.saturating_sub(shown.len());
        let size = grouped(text.len() as u64);
        let note = if cut {
            format!("the first {} characters of {size} bytes", grouped(most as u64))
        } else {
            String::new()
        };
        Piece { what, text: visible(shown), note, code }
    }

    /// Returns the beginning of the first text that is not empty, in one line. Returns an empty string on a
    /// redacted page.
    pub(super) fn preview(&self, pieces: &[Piece]) -> String {
        // Text of the message comes first. Reasoning and the speaker's name are used only without such a
        // text.
        let says = |piece: &&Piece| !["reasoning", "speaker"].contains(&&*piece.what);
        let (said, other): (Vec<&Piece>, Vec<&Piece>) = pieces.iter().partition(says);
        let texts = said.into_iter().chain(other);
        self.line(
            texts.map(|piece| piece.text.trim_start()).find(|text| !text.is_empty()).unwrap_or_default(),
        )
    }

    /// Returns the beginning of a text in one line. Returns an empty string on a redacted page.
    pub(super) fn line(&self, text: &str) -> String {
        if self.redact {
            return String::new();
        }
        // Twice the length of a preview is enough after spaces are collapsed, and bounds the work for a long
        // text.
        let (read, more) = beginning(text.trim_start(), 2 * PREVIEW);
        let line = visible(&read.split_whitespace().collect::<Vec<_>>().join(" "));
        match beginning(&line, PREVIEW) {
            (line, false) if !more => line.to_owned(),
            (line, _) => format!("{line}…"),
        }
    }
}

/// Returns the first `most` characters of a text, and true if the text is longer.
fn beginning(text: &str, most: usize) -> (&str, bool) {
    text.char_indices().nth(most).map_or((text, false), |(at, _)| (&text[..at], true))
}

/// Spells out the invisible characters of a text, as in ⟦U+202E⟧: controls, direction marks and others
/// without a shape of their own. Line breaks, tabs and joiners of letters and emoji remain.
pub(super) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            // A Windows line break is shown as a plain line break.
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' | '\t' => out.push(c),
            c if is_unseen(c) => drop(write!(out, "⟦U+{:04X}⟧", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// Checks if a character is invisible. The ranges are format characters, tags and noncharacters of Unicode.
fn is_unseen(c: char) -> bool {
    let invisible = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fdd0}'..='\u{fdef}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    // The last two code points of every plane are noncharacters.
    c.is_control() || invisible || u32::from(c) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escaped() {
        assert_eq!(visible("a\r\nb\tc\rd"), "a\nb\tc⟦U+000D⟧d");
        assert_eq!(
            visible("x\u{202e}y\u{1b}[31m\0\u{feff}\u{e0041}"),
            "x⟦U+202E⟧y⟦U+001B⟧[31m⟦U+0000⟧⟦U+FEFF⟧⟦U+E0041⟧"
        );
        let joined = "\u{1f469}\u{200d}\u{1f4bb} \u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}";
        assert_eq!(visible(joined), joined);
    }

    #[test]
    fn long_texts_are_cut_with_a_note() {
        let text = "ä".repeat(SHOWN + 1);
        let piece = Texts::new(false).piece("", &text, false);
        assert_eq!(piece.text.chars().count(), SHOWN);
        assert_eq!(piece.note, "the first 4,000 characters of 8,002 bytes");
        let mut full = Texts { redact: false, left: 1 };
        assert_eq!(
            full.piece("", &text, false).text.chars().count(),
            SHOWN,
            "the last one that is shown whole"
        );
        assert_eq!(full.piece("", &text, false).text.chars().count(), BEGINNING);
        let whole = Texts::new(false).piece("", "short", false);
        assert_eq!((whole.text.as_str(), whole.note.as_str()), ("short", ""));
    }

    #[test]
    fn redacted_text_is_a_hash_and_a_size() {
        let mut texts = Texts::new(true);
        let pieces = texts.pieces_of_message(&Message::user("a secret").with_name("Ida"));
        assert!(pieces.iter().all(|piece| piece.text.starts_with("blake3 ")), "{pieces:?}");
        assert_eq!(texts.preview(&pieces), "");
    }
}
