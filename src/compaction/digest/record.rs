//! The record of messages from which a digest is written: requests, calls and the assistant's last words.

use super::{
    calls::{Call, Outcome},
    statements::Request,
    texts::message_text,
};
use crate::message::{Message, Role};
use std::collections::{BTreeMap, BTreeSet};

/// An event of the conversation, as one entry of a digest.
pub(super) enum Entry {
    Request(Request),
    Call(Call),
}

/// Everything that a digest may have.
#[derive(Default)]
pub(super) struct Record {
    /// Statements of earlier digests that had no room for all.
    pub(super) said: Vec<Request>,
    pub(super) entries: Vec<Entry>,
    /// Resources that earlier digests list, each with the name of the last call on it.
    pub(super) touched: Vec<(String, String)>,
    /// The assistant's last words.
    pub(super) last: Option<String>,
    pub(super) left_out: LeftOut,
}

/// Numbers of entries that earlier digests had no room for.
#[derive(Default)]
pub(super) struct LeftOut {
    pub(super) statements: u64,
    pub(super) calls: u64,
    pub(super) failed: u64,
    pub(super) touched: usize,
}

impl Record {
    /// Adds messages: user requests, and calls with their outcomes.
    pub(super) fn push_messages(&mut self, messages: &[&Message]) {
        let mut open: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for message in messages {
            let text = || Some(message_text(message)).filter(|text| !text.is_empty());
            match message.role() {
                Role::User => {
                    // A user with tools may call one without a word.
                    self.entries.extend(text().map(|text| Entry::Request(Request { text, times: 1 })));
                }
                Role::Assistant => self.last = text().or_else(|| self.last.take()),
                Role::Tool => {
                    // The newest open call with this id: ids may repeat in a long conversation.
                    let answered = message.answers().and_then(|id| open.get_mut(id)?.pop());
                    if let Some(Entry::Call(call)) = answered.map(|at| &mut self.entries[at]) {
                        call.outcome = Outcome::from_result(message);
                    }
                }
                _ => {}
            }
            for call in message.tool_calls() {
                open.entry(&call.id).or_default().push(self.entries.len());
                self.entries.push(Entry::Call(Call::new(call)));
            }
        }
    }

    /// Merges successive calls on one resource into the last one, and requests with the same text into the
    /// first one. A failed call is kept as a separate entry.
    pub(super) fn merge_repeats(&mut self) {
        let mut kept: Vec<Entry> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for entry in std::mem::take(&mut self.entries) {
            match entry {
                Entry::Request(request) => {
                    // The first one has the place, so that the order of different requests stays.
                    let place = *places.entry(request.text.clone()).or_insert(kept.len());
                    match kept.get_mut(place) {
                        Some(Entry::Request(first)) => first.times += request.times,
                        _ => kept.push(Entry::Request(request)),
                    }
                }
                Entry::Call(mut call) => {
                    if let Some(Entry::Call(last)) = kept.last() {
                        let is_same = call.resource.is_some() && call.resource == last.resource;
                        if is_same && call.name == last.name && !last.is_failed() {
                            call.times += last.times;
                            kept.pop();
                        }
                    }
                    kept.push(Entry::Call(call));
                }
            }
        }
        self.entries = kept;
    }

    /// Returns the resources with the name of the last call on each, in the order of these last calls.
    pub(super) fn touched(&self) -> Vec<(&str, &str)> {
        let called = self.calls().filter_map(|call| Some((call.resource.as_deref()?, call.name.as_str())));
        let earlier = self.touched.iter().map(|(resource, name)| (resource.as_str(), name.as_str()));
        let all: Vec<(&str, &str)> = earlier.chain(called).collect();
        let mut seen = BTreeSet::new();
        let mut touched: Vec<_> =
            all.into_iter().rev().filter(|(resource, _)| seen.insert(*resource)).collect();
        touched.reverse();
        touched
    }

    /// Returns the calls in their order.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.entries.iter().filter_map(|entry| if let Entry::Call(call) = entry { Some(call) } else { None })
    }

    /// Returns the statements of earlier digests and the requests, in their order.
    pub(super) fn requests(&self) -> Vec<&Request> {
        let requests = self.entries.iter().filter_map(|entry| match entry {
            Entry::Request(request) => Some(request),
            Entry::Call(_) => None,
        });
        self.said.iter().chain(requests).collect()
    }
}
