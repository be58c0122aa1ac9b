//! Calls that wait for their results, for results that bear no id (rule J8).

use context_window::{Message, ToolCall};
use std::collections::{BTreeMap, VecDeque};

/// The calls of a log that have no result yet. It is empty until a result without an id comes, and then
/// catches up: logs whose results all bear ids pay nothing.
#[derive(Default)]
pub(crate) struct OpenCalls {
    calls: Vec<OpenCall>,
    by_id: BTreeMap<String, usize>,
    /// Indexes of calls by name, those of one message together, the newest message last.
    by_name: BTreeMap<String, Vec<(usize, VecDeque<usize>)>>,
    /// Calls by message, the newest message last.
    groups: Vec<Group>,
    /// Indexes of groups that may have open calls, the newest last.
    nearest: Vec<usize>,
    /// Messages of the log that were looked at.
    seen: usize,
    /// Results that were given to a call by their position, where another call was open too.
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
    /// The number of those that are open.
    open: usize,
}

impl OpenCalls {
    /// Adds calls that wait for their results, as of one message.
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

    /// Looks at the messages that came since it was asked last.
    pub(crate) fn catch_up(&mut self, messages: &[Message]) {
        for message in messages.iter().skip(self.seen) {
            self.add(message.tool_calls());
            if let Some(at) = message.answers().and_then(|id| self.by_id.get(id)) {
                self.close(*at);
            }
        }
        self.seen = messages.len();
    }

    /// Returns the id of the call that a result without an id answers: the first open call of its name in the
    /// nearest message that has one, or without a name the first open call of the nearest message. Returns
    /// `None` if there is none.
    pub(crate) fn answered_by(&mut self, name: Option<&str>) -> Option<String> {
        match name {
            Some(name) => self.next_with_name(name),
            None => self.next(),
        }
    }

    /// Closes a call, and returns true if it was open.
    fn close(&mut self, at: usize) -> bool {
        let call = &mut self.calls[at];
        let was_open = std::mem::take(&mut call.is_open);
        self.groups[call.group].open -= usize::from(was_open);
        was_open
    }

    fn next_with_name(&mut self, name: &str) -> Option<String> {
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

    /// Returns a note on the results that were given to calls by their position, if there are any.
    pub(crate) fn note(&self) -> Option<String> {
        let guessed = context_window::text::plain::grouped(self.guessed);
        match self.guessed {
            0 => None,
            1 => Some("1 result bears no id and no name: it is taken for that of the next call".into()),
            _ => Some(format!(
                "{guessed} results bear no id and no name: they are taken for those of the calls in their order"
            )),
        }
    }
}

/// Returns a note on results whose calls the messages do not hold, and on those behind the first of a call:
/// no provider takes them.
pub(crate) fn note_on_results(messages: &[Message]) -> Option<String> {
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
        1 => Some("1 result stands in the file without its call: no provider takes it so".into()),
        lone => {
            let lone = context_window::text::plain::grouped(lone);
            Some(format!("{lone} results stand in the file without their calls: no provider takes them so"))
        }
    }
}
