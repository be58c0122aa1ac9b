//! The division of a transcript into sessions: a main thread, and one thread per sub-agent.

use super::event::Envelope;
use std::collections::{BTreeMap, BTreeSet};

/// One session of a transcript.
#[derive(Debug)]
pub(crate) struct Thread {
    /// The id of the session, if the transcript contains one.
    pub(crate) id: Option<String>,
    /// The indexes of its events in the file, ascending.
    pub(crate) events: Vec<usize>,
}

/// Returns the thread of a rollout. A rollout is one session, even if it starts with a copy of another one.
/// Its id is in the first `session_meta` event.
pub(crate) fn of_codex(events: &[Envelope]) -> Thread {
    let id = events.iter().find(|event| event.is_session_meta()).and_then(|event| event.payload_id.clone());
    Thread { id, events: (0..events.len()).collect() }
}

/// Divides the events into threads. An event belongs to the thread of its agent, or without an agent to that
/// of its parent. A sidechain without an agent's id starts a thread named after its first event.
///
/// A resumed session continues in the same file under another id, and its events may name parents that are
/// missing. So only a message without a parent starts another main thread.
pub(crate) fn of_claude_code(events: Vec<Envelope>) -> Vec<Thread> {
    let mut threads = Threads::default();
    let mut speaks = BTreeSet::new();
    for (at, event) in events.into_iter().enumerate() {
        let is_message = event.is_message();
        let parent = event.parent.as_ref().and_then(|parent| threads.of_event.get(parent)).copied();
        let nth = match (event.is_sidechain, event.agent, event.session) {
            (true, Some(agent), _) => threads.named(Some(agent), true),
            (true, None, session) => match parent.filter(|nth| threads.is_sidechain[*nth]) {
                Some(nth) => nth,
                None => threads.named(event.uuid.clone().or(session), true),
            },
            (false, _, session) => match parent.filter(|nth| !threads.is_sidechain[*nth]) {
                Some(nth) => nth,
                None => threads.main(session, is_message && event.parent.is_none()),
            },
        };
        if let Some(uuid) = event.uuid {
            // The first event with a uuid counts; copies in a resumed session do not move it.
            threads.of_event.entry(uuid).or_insert(nth);
        }
        threads.found[nth].events.push(at);
        if is_message {
            speaks.insert(nth);
        }
    }
    threads.threads_with_messages(&speaks)
}

#[derive(Default)]
struct Threads {
    found: Vec<Thread>,
    is_sidechain: Vec<bool>,
    newest_main: Option<usize>,
    by_name: BTreeMap<(bool, Option<String>), usize>,
    of_event: BTreeMap<String, usize>,
}

impl Threads {
    fn named(&mut self, id: Option<String>, is_sidechain: bool) -> usize {
        let key = (is_sidechain, id.clone());
        *self.by_name.entry(key).or_insert_with(|| {
            self.found.push(Thread { id, events: Vec::new() });
            self.is_sidechain.push(is_sidechain);
            if !is_sidechain {
                self.newest_main = Some(self.found.len() - 1);
            }
            self.found.len() - 1
        })
    }

    /// Returns the threads with at least one message. Events of other threads are added to the first one,
    /// which reports unread events.
    fn threads_with_messages(self, speaks: &BTreeSet<usize>) -> Vec<Thread> {
        let (mut speaking, mut silent) = (Vec::new(), Vec::new());
        for (nth, thread) in self.found.into_iter().enumerate() {
            if speaks.contains(&nth) {
                speaking.push(thread);
            } else {
                silent.extend(thread.events);
            }
        }
        if let Some(first) = speaking.first_mut() {
            first.events.extend(silent);
            // Events must stay in file order, because replies follow the calls before them.
            first.events.sort_unstable();
        }
        speaking
    }

    /// Returns the main thread of a session. Events without a session (titles, file snapshots) belong to the
    /// existing main thread, or to the next one.
    fn main(&mut self, session: Option<String>, begins: bool) -> usize {
        let key = (false, session.clone());
        if let Some(nth) = self.by_name.get(&key) {
            return *nth;
        }
        let open =
            self.newest_main.filter(|nth| self.found[*nth].id.is_none() || !begins || session.is_none());
        let Some(nth) = open else { return self.named(session, false) };
        let id = &mut self.found[nth].id;
        *id = id.take().or(session);
        self.by_name.insert(key, nth);
        nth
    }
}
