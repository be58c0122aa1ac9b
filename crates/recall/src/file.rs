//! The file of an index.
//!
//! - Input and output: an index and the file that it is saved to.
//! - Rules: a file has a head with its version, and frames. Each frame has its length, a checksum of its
//!   number and content, and the content: messages, or forgotten ids. Frames are only appended; a frame that
//!   is not whole is cut off. Forgetting replaces the file. Nothing is lost with it: it can be built from the
//!   conversation.

use crate::{
    error::Error,
    index::{ReadFault, RecallIndex},
    record::Writer,
};
use context_window::{Conversation, ItemId};
use context_window_store::save_whole;
use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// The head of a file, with the version of its form and of the rules for words and passages.
const HEAD: &[u8] = b"context-window-recall 1\n";

/// The bytes of a frame before its content: length and checksum.
const FRAME_HEAD: usize = 12;

/// The kinds of frames.
const MESSAGES: u8 = 1;
const FORGOTTEN: u8 = 2;

/// The outcome of [`crate::Recall::open`]: the use that was made of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opened {
    /// The file had all messages of the conversation.
    Loaded,
    /// The file lacked messages at the end of the conversation. They were indexed.
    CaughtUp {
        /// The number of these messages.
        messages: usize,
    },
    /// The file could not be used. All messages were indexed.
    Rebuilt(RebuildReason),
}

/// The reason why an index file could not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RebuildReason {
    /// There was no file.
    Missing,
    /// The file is not an index, or its beginning is damaged.
    Damaged,
    /// The file has the form of another version.
    OtherVersion,
    /// The file is the index of another conversation, or has messages that the conversation lacks.
    OtherConversation,
}

/// The file that an index is saved to.
#[derive(Debug, Clone)]
pub(crate) struct IndexFile {
    path: PathBuf,
    /// The length of the valid frames, and their number.
    length: u64,
    frames: u64,
    /// True if the next save replaces the file.
    is_replaced: bool,
}

impl IndexFile {
    /// Opens a file, and returns the index in it, brought up to date.
    pub(crate) fn open(path: &Path, log: &Conversation) -> Result<(Self, RecallIndex, Opened), Error> {
        let mut index = RecallIndex::new();
        let mut file = Self { path: path.to_owned(), length: 0, frames: 0, is_replaced: false };
        let outcome = match fs::read(path) {
            Ok(bytes) => file.read(&bytes, &mut index, log),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(RebuildReason::Missing),
            Err(error) => return Err(Error::file(path, "cannot be read", &error)),
        };
        match outcome {
            Ok(()) => index.writer = Some(Writer { frames: Vec::new(), words: index.words.len() }),
            Err(_) => {
                index.writer = Some(Writer::new());
                index.clear();
                file.is_replaced = true;
            }
        }
        let messages = index.update(log);
        let opened = match outcome {
            Err(reason) => Opened::Rebuilt(reason),
            Ok(()) if messages > 0 => Opened::CaughtUp { messages },
            Ok(()) => Opened::Loaded,
        };
        Ok((file, index, opened))
    }

    /// Reads the valid frames.
    fn read(
        &mut self,
        bytes: &[u8],
        index: &mut RecallIndex,
        log: &Conversation,
    ) -> Result<(), RebuildReason> {
        let name = &HEAD[..HEAD.len() - 2];
        let Some(mut rest) = bytes.strip_prefix(HEAD) else {
            let is_index = bytes.starts_with(name);
            return Err(if is_index { RebuildReason::OtherVersion } else { RebuildReason::Damaged });
        };
        self.length = HEAD.len() as u64;
        while let Some(content) = next_frame(&mut rest, self.frames) {
            match content.split_first() {
                Some((&MESSAGES, content)) => index.read(content, log).map_err(|fault| match fault {
                    ReadFault::Damaged => RebuildReason::Damaged,
                    ReadFault::OtherConversation => RebuildReason::OtherConversation,
                })?,
                Some((&FORGOTTEN, content)) => {
                    // Ids have no line breaks here: they are written with escapes.
                    let ids = str::from_utf8(content).map_err(|_| RebuildReason::Damaged)?;
                    index.forgotten.extend(ids.split('\n').map(|id| ItemId::from(unescaped(id))));
                }
                _ => return Err(RebuildReason::Damaged),
            }
            self.length += (FRAME_HEAD + content.len()) as u64;
            self.frames += 1;
        }
        // Forgotten ids are in the first frame. Without it, they would be indexed again.
        if self.frames == 0 && !rest.is_empty() {
            return Err(RebuildReason::Damaged);
        }
        index.read_events(log);
        Ok(())
    }

    /// Marks the file as one that the next save replaces.
    pub(crate) fn replace(&mut self) {
        self.is_replaced = true;
    }

    /// Saves what was indexed since the last save.
    pub(crate) fn save(&mut self, index: &mut RecallIndex) -> Result<(), Error> {
        let words = index.words.len();
        let Some(writer) = &index.writer else { return Ok(()) };
        if writer.frames.is_empty() && !self.is_replaced {
            return Ok(());
        }
        // The writer has all messages then, because the index was built from its beginning.
        if self.is_replaced {
            (self.length, self.frames) = (0, 0);
        }
        let (mut bytes, mut frames) = (Vec::new(), self.frames);
        if self.is_replaced {
            bytes.extend_from_slice(HEAD);
            if !index.forgotten.is_empty() {
                let ids: Vec<String> = index.forgotten.iter().map(|id| escaped(id.as_str())).collect();
                push_frame(&mut bytes, &mut frames, FORGOTTEN, ids.join("\n").as_bytes());
            }
        }
        for content in &writer.frames {
            push_frame(&mut bytes, &mut frames, MESSAGES, content);
        }
        let written = if self.is_replaced { save_whole(&self.path, &bytes) } else { self.append(&bytes) };
        written.map_err(|error| Error::file(&self.path, "cannot be written", &error))?;
        self.length += bytes.len() as u64;
        (self.frames, self.is_replaced) = (frames, false);
        index.writer = Some(Writer { frames: Vec::new(), words });
        Ok(())
    }

    /// Writes frames after the valid ones. Not synced: the conversation has everything that a crash loses.
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(&self.path)?;
        // A damaged end would hide the frames after it.
        file.set_len(self.length)?;
        file.seek(SeekFrom::Start(self.length))?;
        file.write_all(bytes)
    }
}

/// Adds a frame.
fn push_frame(bytes: &mut Vec<u8>, frames: &mut u64, kind: u8, content: &[u8]) {
    bytes.extend((content.len() as u32 + 1).to_le_bytes());
    bytes.extend(checksum(*frames, &[kind], content));
    bytes.push(kind);
    bytes.extend_from_slice(content);
    *frames += 1;
}

/// Splits the content of the next frame from bytes. Returns `None` at the end, or if the frame is damaged.
fn next_frame<'a>(bytes: &mut &'a [u8], number: u64) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    let (content, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    (checksum(number, content, &[]) == *sum).then(|| {
        *bytes = rest;
        content
    })
}

/// Returns the first 8 bytes of a hash over the number and the content of a frame.
fn checksum(number: u64, kind: &[u8], content: &[u8]) -> [u8; 8] {
    let mut hash = blake3::Hasher::new();
    hash.update(&number.to_le_bytes()).update(kind).update(content);
    let hash = hash.finalize();
    hash.as_bytes().first_chunk().copied().unwrap_or_default()
}

fn escaped(id: &str) -> String {
    id.replace('\\', "\\\\").replace('\n', "\\n")
}

fn unescaped(text: &str) -> String {
    let mut id = String::new();
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match c {
            '\\' => id.push(if letters.next() == Some('n') { '\n' } else { '\\' }),
            c => id.push(c),
        }
    }
    id
}
