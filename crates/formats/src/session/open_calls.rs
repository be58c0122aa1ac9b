//! Tool calls that wait for their results, for results without an id (result matching, J8).

use context_window::{Message, ToolCall};
use std::collections::{BTreeMap, VecDeque};

/// The calls of a log without a result. They are collected only once a result without an id occurs, so a log
/// whose results all have ids costs nothing.
#[derive(Default)]
pub(crate) struct OpenCalls {
    calls: Vec<OpenCall>,
    by_id: BTreeMap<String, usize>,
    /// Indexes of calls by name, grouped by message, the newest message last.
    by_name: BTreeMap<String, Vec<(usize, VecDeque<usize>)>>,
    /// Calls by message, the newest message last.
    groups: Vec<Group>,
    /// Indexes of groups that may have open calls, the newest last.
    nearest: Vec<usize>,
    /// The number of messages examined so far.
    seen: usize,
    /// The number of results that were matched by position although more than one call was open.
    guessed: u64,
}

struct OpenCall {
    id: String,
    group: usize,
    is_open: bool,
}

/// The calls of one message.
struct Group {
    calls: VecDeque<usize>,
    /// The number of open calls.
    open: usize,
}

impl OpenCalls {
    /// Adds calls of one message that wait for their results.
    pub(crate) fn add<'c>(&mut self, calls: impl IntoIterator<Item = &'c ToolCall>) {
        let group = self.groups.len();
        let first = self.calls.len();
        for call in calls {
            let at = self.calls.len();
            self.by_id.insert(call.id.clone(), at);
            let named = self.by_name.entry(call.name.clone()).or_default();
            match named.last_mut() {
                Some((of, calls)) if *of == group => calls.push_back(at),
                _ => named.push((group, VecDeque::from([at]))),
            }
            self.calls.push(OpenCall { id: call.id.clone(), group, is_open: true });
        }
        let open = self.calls.len() - first;
        if open > 0 {
            self.groups.push(Group { calls: (first..self.calls.len()).collect(), open });
            self.nearest.push(group);
        }
    }

    /// Examines the messages added since the last call of this function.
    pub(crate) fn catch_up(&mut self, messages: &[Message]) {
        for message in messages.iter().skip(self.seen) {
            self.add(message.tool_calls());
            if let Some(at) = message.answers().and_then(|id| self.by_id.get(id)) {
                self.close(*at);
            }
        }
        self.seen = messages.len();
    }

    /// Returns the id of the call that a result without an id answers, and closes that call. With a name, it
    /// is the first open call of this name in the newest message that has one. Without a name, it is the
    /// first open call of the newest message. Returns `None` if no call matches.
    pub(crate) fn answered_by(&mut self, name: Option<&str>) -> Option<String> {
        match name {
            Some(name) => self.next_with_name(name),
            None => self.next(),
        }
    }

    /// Closes a call. Returns true if it was open.
    fn close(&mut self, at: usize) -> bool {
        let call = &mut self.calls[at];
        let was_open = std::mem::take(&mut call.is_open);
        self.groups[call.group].open -= usize::from(was_open);
        was_open
    }

    fn next_with_name(&mut self, name: &str) -> Option<String> {
        // Closed calls stay in the queues and are skipped here. Each is removed once, so the total cost is
        // linear.
        loop {
            let groups = self.by_name.get_mut(name)?;
            let Some(at) = groups.last_mut()?.1.pop_front() else {
                groups.pop();
                continue;
            };
            if self.close(at) {
                return Some(self.calls[at].id.clone());
            }
        }
    }

    fn next(&mut self) -> Option<String> {
        loop {
            let nearest = *self.nearest.last()?;
            // With a single open call the match is certain, so only other matches count as guesses.
            let others = self.groups[nearest].open > 1;
            match self.groups[nearest].calls.pop_front() {
                Some(at) if self.close(at) => {
                    self.guessed += u64::from(others);
                    return Some(self.calls[at].id.clone());
                }
                Some(_) => {}
                None => drop(self.nearest.pop()),
            }
        }
    }

    /// Returns a note on the results that were matched by position, if any.
    pub(crate) fn note(&self) -> Option<String> {
        let guessed = context_window::text::plain::grouped(self.guessed);
        match self.guessed {
            0 => None,
            1 => Some("1 tool result has no id and no name: it is assigned to the next tool call".into()),
            _ => Some(format!(
                "{guessed} tool results have no id and no name: they are assigned to the tool calls in order"
            )),
        }
    }
}

/// Returns a note on results without a call in the messages, and on second results of one call. No provider
/// accepts either.
pub(crate) fn note_on_results(messages: &[Message]) -> Option<String> {
    // Ids may repeat in a log, so each id counts its calls without a result.
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    for call in messages.iter().flat_map(Message::tool_calls) {
        *calls.entry(call.id.as_str()).or_default() += 1;
    }
    let mut lone: u64 = 0;
    for id in messages.iter().filter_map(Message::answers) {
        match calls.get_mut(id) {
            Some(open) if *open > 0 => *open -= 1,
            _ => lone += 1,
        }
    }
    match lone {
        0 => None,
        1 => Some("1 tool result has no tool call in the file: providers reject it".into()),
        lone => {
            let lone = context_window::text::plain::grouped(lone);
            Some(format!("{lone} tool results have no tool call in the file: providers reject them"))
        }
    }
}
