//! Tokens of the objects of a PDF.

use crate::media::work::Work;

/// A token with the bytes of names and numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'f> {
    DictionaryOpen,
    DictionaryClose,
    ArrayOpen,
    ArrayClose,
    Name(&'f [u8]),
    Integer(u64),
    /// The `R` of a reference.
    Reference,
    /// A string, a real number or a keyword, irrelevant for a page tree.
    Other,
}

/// An iterator over tokens with a limit of work.
#[derive(Debug)]
pub(super) struct Lexer<'f> {
    bytes: &'f [u8],
    at: usize,
}

impl<'f> Lexer<'f> {
    pub(super) fn new(bytes: &'f [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the number of bytes read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Returns the next token, or `None` at the end of the bytes or of the work.
    pub(super) fn next(&mut self, work: &mut Work) -> Option<Token<'f>> {
        let from = self.at;
        let token = self.token();
        #[cfg(test)]
        TOUCHED.set(TOUCHED.get() + (self.at - from) as u64);
        work.charge(self.at - from + 1)?;
        token
    }

    fn token(&mut self) -> Option<Token<'f>> {
        self.skip_space();
        let rest = self.bytes.get(self.at..)?;
        let (length, token) = match rest {
            [] => return None,
            [b'<', b'<', ..] => (2, Token::DictionaryOpen),
            [b'>', b'>', ..] => (2, Token::DictionaryClose),
            [b'[', ..] => (1, Token::ArrayOpen),
            [b']', ..] => (1, Token::ArrayClose),
            [b'(', ..] => (text_length(rest), Token::Other),
            [b'<', ..] => {
                (rest.iter().position(|byte| *byte == b'>').map_or(rest.len(), |at| at + 1), Token::Other)
            }
            [b'/', name @ ..] => {
                let length = regular(name);
                (length + 1, Token::Name(&name[..length]))
            }
            [byte, ..] if is_delimiter(*byte) => (1, Token::Other),
            _ => {
                let word = &rest[..regular(rest)];
                (word.len(), word_token(word))
            }
        };
        self.at += length;
        Some(token)
    }

    /// Skips white space and comments.
    fn skip_space(&mut self) {
        while let Some(byte) = self.bytes.get(self.at) {
            if *byte == b'%' {
                let rest = &self.bytes[self.at..];
                self.at += rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(rest.len());
            } else if is_space(*byte) {
                self.at += 1;
            } else {
                break;
            }
        }
    }
}

#[cfg(test)]
thread_local! {
    /// The number of bytes examined in this thread.
    static TOUCHED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Returns the number of bytes examined since the last call.
#[cfg(test)]
pub(super) fn touched() -> u64 {
    TOUCHED.take()
}

/// Returns the integers at the beginning of a text.
pub(super) fn integers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let words = bytes.split(|byte| is_space(*byte)).filter(|word| !word.is_empty());
    words.map_while(|word| str::from_utf8(word).ok()?.parse().ok())
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 0x0C | b'\r' | b' ')
}

fn is_delimiter(byte: u8) -> bool {
    b"()<>[]{}/%".contains(&byte)
}

/// Returns the length of a name or a word.
fn regular(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| !is_space(**byte) && !is_delimiter(**byte)).count()
}

fn word_token(word: &[u8]) -> Token<'_> {
    if word == b"R" {
        return Token::Reference;
    }
    let number = str::from_utf8(word).ok().and_then(|word| word.parse().ok());
    number.map_or(Token::Other, Token::Integer)
}

/// Returns the length of a string in parentheses, which may contain escapes and nested parentheses.
fn text_length(bytes: &[u8]) -> usize {
    let (mut depth, mut escaped) = (0_u64, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    bytes.len()
}
