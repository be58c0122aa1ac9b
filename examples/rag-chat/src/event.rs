//! What happens beside the chat and comes to it through one channel, so that everything is decided on one thread.

use crate::answerer::{Piece, Reply};
use crate::index::Refreshed;
use context_window::RagItem;
use std::sync::mpsc::Sender;

#[derive(Debug)]
pub enum Event {
    /// A key, a paste or a new size of the terminal.
    Terminal(ratatui::crossterm::event::Event),
    /// So many files are indexed, of so many.
    Indexing(usize, usize),
    Indexed(Result<Refreshed, String>),
    /// Documents for the question of this turn.
    Found(u64, Result<Vec<RagItem>, String>),
    /// A piece of the reply of this turn.
    Piece(u64, Piece),
    /// The reply of this turn, or why there is none.
    Replied(u64, Result<Reply, String>),
    /// The summary of this compaction, or why there is none.
    Summarised(u64, Result<String, String>),
}

/// Where tasks run, and where they say what came of them.
#[derive(Clone)]
pub struct Tasks {
    pub runtime: tokio::runtime::Handle,
    pub sender: Sender<Event>,
}

impl Tasks {
    /// Says something to the chat; one that has ended does not hear it.
    pub fn send(&self, event: Event) {
        let _ = self.sender.send(event);
    }
}
