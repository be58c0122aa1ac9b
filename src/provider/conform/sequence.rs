//! All messages of a prompt as a target takes them: instructions where they may be, the user first and last, neighbours of
//! one role as one message, ids of calls (rules H4 to H6).

use super::{
    TargetProfile, call_ids, has_one_place,
    opaque::{Half, adds_tools, half, is_compaction},
};
use crate::{
    message::{Content, Mark, Message, Part, Role, WireFormat},
    provider::{model::SystemPlace, wording},
};
use std::collections::{BTreeMap, BTreeSet};

/// The messages as they are sent, and what that made of the given ones.
#[derive(Debug, Default)]
pub(crate) struct Normalized {
    pub(crate) messages: Vec<Message>,
    /// The end of each given message in the result, by index.
    pub(crate) places: Vec<Mark>,
    /// Placeholder messages that the target demands, in order (rule H5).
    pub(crate) inserted: Vec<Inserted>,
    /// The roles of the messages that became part of another one.
    pub(crate) merged: Vec<Role>,
    /// How many instructions became one text; 0 where none did.
    pub(crate) joined: usize,
    /// Messages as they were and as they are sent, where the target does not take all of them in their position.
    pub(crate) rewritten: Vec<(Message, Message)>,
    /// Ids of calls, as they were and as they are sent.
    pub(crate) renamed: Vec<(String, String)>,
}

/// A placeholder message.
#[derive(Debug)]
pub(crate) struct Inserted {
    pub(crate) why: Missing,
    /// The given message that it comes before; their number where it is last.
    pub(crate) before: usize,
    pub(crate) message: Message,
}

/// What a target misses in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// A first message of the user.
    Lead,
    /// One of the assistant between results and a user message.
    Bridge,
    /// A last message of the user.
    Continue,
}

impl Missing {
    pub(super) fn message(self) -> Message {
        match self {
            Self::Lead => Message::user(wording::LEAD),
            Self::Bridge => Message::assistant(wording::BRIDGE),
            Self::Continue => Message::user(wording::GO_ON),
        }
    }
}

impl TargetProfile {
    /// The messages in the order and number in which this target takes them. What it takes comes back as it is.
    pub(crate) fn sequence(&self, messages: Vec<Message>) -> Normalized {
        let mut sent = Sent {
            profile: self,
            done: Normalized {
                messages: Vec::with_capacity(messages.len()),
                places: Vec::with_capacity(messages.len()),
                ..Normalized::default()
            },
            server_tools: ServerTools::read(self, &messages),
            run: Vec::new(),
            parts: 0,
        };
        let lead = self.wants_lead(&messages);
        let head = messages.iter().take_while(|message| message.role().instructs()).count();
        let mut messages = messages.into_iter();
        let instructions: Vec<Message> = messages.by_ref().take(head).collect();
        sent.instructions(instructions);
        if lead {
            sent.supply(Missing::Lead);
        }
        let messages: Vec<Message> = messages.collect();
        let mut next = vec![None; messages.len()];
        for at in (1..messages.len()).rev() {
            let role = messages[at].role();
            next[at - 1] = if role.instructs() { next[at] } else { Some(role) };
        }
        for (message, next) in messages.into_iter().zip(next) {
            let message = sent.in_its_place(message, next);
            let message = sent.called_once(message);
            if self.wants_bridge(sent.last(), &message) {
                sent.supply(Missing::Bridge);
            }
            sent.give(message);
        }
        sent.end();
        sent.done.renamed = call_ids::fit(&mut sent.done.messages, self.accepts.call_ids);
        sent.done
    }

    /// Whether a prompt of these messages needs a placeholder user message at its beginning (rule H5).
    fn wants_lead(&self, messages: &[Message]) -> bool {
        let first = messages.iter().find(|message| !message.role().instructs());
        self.accepts.user_first
            && !messages.is_empty()
            && first.is_none_or(|first| first.role() != Role::User && !is_compaction(first))
    }

    /// Whether a message of the user, coming after another one, needs one of the assistant between (rule H5).
    fn wants_bridge(&self, before: Option<&Message>, message: &Message) -> bool {
        !self.accepts.user_after_results
            && message.role() == Role::User
            && before.is_some_and(|before| before.role() == Role::Tool)
    }

    /// Whether it has to end with one.
    fn wants_more(&self, messages: &[Message]) -> bool {
        self.accepts.user_last && messages.last().is_some_and(|last| last.role() == Role::Assistant)
    }
}

/// The halves of uses of the provider's own tools, in the order of a prompt: of each, if it may stand there.
#[derive(Debug, Default)]
struct ServerTools {
    halves: Vec<bool>,
    next: usize,
}

impl ServerTools {
    /// Pairs each call with its result, once by each id: before the user speaks, since results of other tools may stand between.
    fn read(profile: &TargetProfile, messages: &[Message]) -> Self {
        let mut halves = Vec::new();
        if profile.wire_format != WireFormat::Anthropic {
            return Self::default();
        }
        let (mut waiting, mut used) = (BTreeMap::new(), BTreeSet::new());
        let mut last = 0;
        for message in messages {
            match message.role() {
                // Instructions may become a note of the user.
                Role::User | Role::System | Role::Developer => waiting.clear(),
                Role::Assistant => {
                    last = halves.len();
                    for half in message.parts().iter().filter_map(half) {
                        let at = halves.len();
                        halves.push(false);
                        match half {
                            Half::Call(id) if !used.contains(&id) => drop(waiting.insert(id, at)),
                            Half::Call(_) => {}
                            Half::Result(id) => {
                                if let Some(call) = waiting.remove(&id) {
                                    halves[call] = true;
                                    halves[at] = true;
                                    used.insert(id);
                                }
                            }
                        }
                    }
                }
                Role::Tool => {}
            }
        }
        // Its provider goes on with a message that ends the prompt, where no message of the user has to follow.
        let goes_on = messages.last().is_some_and(|last| last.role() == Role::Assistant);
        if goes_on && !profile.accepts.user_last {
            for call in waiting.into_values().filter(|call| *call >= last) {
                halves[call] = true;
            }
        }
        Self { halves, next: 0 }
    }

    /// Returns true if the next half in the order of the prompt may stand there.
    fn take(&mut self) -> bool {
        self.next += 1;
        self.halves.get(self.next - 1).copied().unwrap_or_default()
    }
}

struct Sent<'a> {
    profile: &'a TargetProfile,
    done: Normalized,
    server_tools: ServerTools,
    /// Messages of one role, side by side, and how many parts they have.
    run: Vec<Message>,
    parts: usize,
}

impl Sent<'_> {
    /// The head: one text where there is one message for it.
    fn instructions(&mut self, instructions: Vec<Message>) {
        if self.profile.accepts.system != SystemPlace::Leading || instructions.len() < 2 {
            for message in instructions {
                self.give(message);
            }
            return;
        }
        let texts: Vec<&str> = instructions.iter().flat_map(Message::plain_texts).collect();
        self.done.joined = instructions.len();
        self.done.messages.push(Message::system(texts.join("\n\n")));
        self.done.places.extend(instructions.iter().map(|_| Mark { message: 0, part: 0 }));
    }

    /// Later system messages, one or several, stand as such only after a user message, last or before the assistant. `next` is
    /// the first message after them.
    fn in_its_place(&self, message: Message, next: Option<Role>) -> Message {
        if !message.role().instructs() || !has_one_place(&self.profile.accepts) {
            return message;
        }
        let before = self.last().map(Message::role);
        // Behind others that stand, this one does.
        let follows = matches!(before, Some(Role::User | Role::Tool | Role::System | Role::Developer));
        let stands =
            self.profile.accepts.inner_system && follows && matches!(next, None | Some(Role::Assistant));
        match message {
            message if stands => message,
            message if adds_tools(&message) => Message::user(wording::left_out_part("tool_addition")),
            message => message.in_role(Role::User),
        }
    }

    /// The provider's own tools are called once by each id, and each result has its call: what is neither is left out.
    fn called_once(&mut self, message: Message) -> Message {
        if self.profile.wire_format != WireFormat::Anthropic || message.role() != Role::Assistant {
            return message;
        }
        let first = usize::from(!message.text().is_empty());
        let mut numbers = Vec::new();
        for (at, part) in message.parts().iter().enumerate() {
            if half(part).is_some() && !self.server_tools.take() {
                numbers.push(at + first);
            }
        }
        if numbers.is_empty() {
            return message;
        }
        let without = message.without_parts(&numbers);
        // A broken history: no provider takes a message of nothing.
        let rewritten = if without.is_empty() {
            let part = message.parts().iter().find_map(Part::opaque).unwrap_or_default();
            without.with_texts([wording::left_out_part(part["type"].as_str().unwrap_or("unknown"))])
        } else {
            without
        };
        self.done.rewritten.push((message, rewritten.clone()));
        rewritten
    }

    /// A message that was given: its position is remembered.
    fn give(&mut self, message: Message) {
        self.push(message);
        self.done.places.push(Mark { message: self.done.messages.len(), part: self.parts.saturating_sub(1) });
    }

    fn supply(&mut self, why: Missing) {
        let message = why.message();
        self.done.inserted.push(Inserted { why, before: self.done.places.len(), message: message.clone() });
        self.push(message);
    }

    fn push(&mut self, message: Message) {
        let joins = self.profile.accepts.alternates
            && matches!(message.role(), Role::User | Role::Assistant)
            && !(self.profile.wire_format == WireFormat::Gemini && message.begins_content());
        if joins && self.run.last().is_some_and(|last| last.role() == message.role()) {
            self.done.merged.push(message.role());
        } else {
            self.end_run();
        }
        self.parts += message.parts().len() + usize::from(!message.text().is_empty());
        self.run.push(message);
    }

    /// Messages of one role that stand side by side are one.
    fn end_run(&mut self) {
        self.parts = 0;
        match self.run.len() {
            0 => {}
            1 => self.done.messages.append(&mut self.run),
            _ => self.done.messages.push(Message::joined(&std::mem::take(&mut self.run))),
        }
    }

    /// The last message so far.
    fn last(&self) -> Option<&Message> {
        self.run.last()
    }

    /// What may not be last is followed by a message of the user; what may is without what the provider refuses there.
    fn end(&mut self) {
        if self.profile.wants_more(&self.run) {
            self.supply(Missing::Continue);
        }
        self.end_run();
        if self.profile.wire_format == WireFormat::Anthropic
            && let Some(last) = self.done.messages.last_mut()
            && let Some(begun) = begun_reply(last)
        {
            self.done.rewritten.push((std::mem::replace(last, begun.clone()), begun));
        }
    }
}

/// An assistant message that the model is to go on with: no white space at its end, and no reasoning. None where it has
/// neither.
fn begun_reply(message: &Message) -> Option<Message> {
    let trimmed = |text: &str| text.trim_end().len() == text.len();
    let last_text = match message.parts().last() {
        Some(Part::Text(text)) => trimmed(text),
        Some(_) => true,
        None => trimmed(message.text()),
    };
    if message.role() != Role::Assistant || last_text && message.reasoning().is_empty() {
        return None;
    }
    let mut parts = message.parts().to_vec();
    if let Some(Part::Text(text)) = parts.last_mut() {
        text.truncate(text.trim_end().len());
    }
    let text = if parts.is_empty() { message.text().trim_end().into() } else { message.text().into() };
    let name = message.name().map(Into::into);
    let no_reasonings = (0..message.reasoning().len()).collect();
    let (reasonings, no_parts) = (Vec::new(), Vec::new());
    Some(message.with_content(Content { text, parts, name, reasonings, no_parts, no_reasonings }))
}
