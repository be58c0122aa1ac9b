//! Events of background work. They reach the chat through one channel, so that one thread makes all
//! decisions.

use crate::answerer::{Piece, Reply};
use crate::index::Refreshed;
use context_window::RetrievedItems;
use std::sync::mpsc::Sender;

#[derive(Debug)]
pub enum Event {
    /// A key, a paste or a new size of the terminal.
    Terminal(ratatui::crossterm::event::Event),
    /// Numbers of indexed files and of all files to index.
    Indexing(usize, usize),
    Indexed(Result<Refreshed, String>),
    /// Documents for the question of this turn.
    Found(u64, Result<RetrievedItems, String>),
    /// A piece of the reply of this turn.
    Piece(u64, Piece),
    /// The reply of this turn, or the error.
    Replied(u64, Result<Reply, String>),
    /// The summary of this compaction, or the error.
    Summarised(u64, Result<String, String>),
}

/// The runtime of the tasks, and the channel for their results.
#[derive(Clone)]
pub struct Tasks {
    pub runtime: tokio::runtime::Handle,
    pub sender: Sender<Event>,
}

impl Tasks {
    /// Sends an event to the chat. It is ignored if the chat has ended.
    pub fn send(&self, event: Event) {
        let _ = self.sender.send(event);
    }
}
