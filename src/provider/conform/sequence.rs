//! The adaptation of the sequence of messages to a target (rules for sequences, H4 to H6). It covers the
//! place of instructions, the user's first and last message, merging of adjacent messages, and call ids.

use super::{
    TargetProfile, call_ids, has_one_place,
    opaque::{ServerToolPart, adds_tools, is_compaction, server_tool_part},
};
use crate::{
    message::{Content, Mark, Message, Part, Role, WireFormat},
    provider::{model::SystemPlace, wording},
};
use std::collections::{BTreeMap, BTreeSet};

/// The messages as they are sent, with the changes to the given ones.
#[derive(Debug, Default)]
pub(crate) struct Normalized {
    pub(crate) messages: Vec<Message>,
    /// The end of each given message in the result, by index.
    pub(crate) places: Vec<Mark>,
    /// Placeholder messages that the target requires, in order (turn order, rule H5).
    pub(crate) inserted: Vec<Inserted>,
    /// The roles of the messages that became part of another one.
    pub(crate) merged: Vec<Role>,
    /// The number of instructions that became one text, or 0 if none were joined.
    pub(crate) joined: usize,
    /// The changed messages as pairs of the old and the new form, if the target does not accept all of a
    /// message in its position.
    pub(crate) rewritten: Vec<(Message, Message)>,
    /// The changed call ids as pairs of the old and the new id.
    pub(crate) renamed: Vec<(String, String)>,
}

/// A placeholder message.
#[derive(Debug)]
pub(crate) struct Inserted {
    /// The reason for the message.
    pub(crate) why: Placeholder,
    /// The index of the given message that follows it, or the number of given messages if it is the last.
    pub(crate) before: usize,
    pub(crate) message: Message,
}

/// A message that a target requires and a prompt lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placeholder {
    /// A first user message.
    Lead,
    /// An assistant message between tool results and a user message.
    Bridge,
    /// A last user message.
    Continue,
}

impl Placeholder {
    /// Returns the placeholder message.
    pub(super) fn message(self) -> Message {
        match self {
            Self::Lead => Message::user(wording::LEAD),
            Self::Bridge => Message::assistant(wording::BRIDGE),
            Self::Continue => Message::user(wording::GO_ON),
        }
    }
}

impl TargetProfile {
    /// Returns the messages in the order and number that this target accepts. Accepted messages stay
    /// unchanged.
    pub(crate) fn sequence(&self, messages: Vec<Message>) -> Normalized {
        let mut sent = SequenceBuilder {
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
        let lead = self.needs_lead(&messages);
        let head = messages.iter().take_while(|message| message.role().instructs()).count();
        let mut messages = messages.into_iter();
        let instructions: Vec<Message> = messages.by_ref().take(head).collect();
        sent.instructions(instructions);
        if lead {
            sent.push_placeholder(Placeholder::Lead);
        }
        let messages: Vec<Message> = messages.collect();
        // `next[i]` is the role of the first message after `i` that is not an instruction. Filled from the
        // end, it takes one pass.
        let mut next = vec![None; messages.len()];
        for at in (1..messages.len()).rev() {
            let role = messages[at].role();
            next[at - 1] = if role.instructs() { next[at] } else { Some(role) };
        }
        for (message, next) in messages.into_iter().zip(next) {
            let message = sent.with_accepted_role(message, next);
            let message = sent.without_broken_server_calls(message);
            if self.needs_bridge(sent.last(), &message) {
                sent.push_placeholder(Placeholder::Bridge);
            }
            sent.push_given(message);
        }
        sent.finish();
        sent.done.renamed = call_ids::fit(&mut sent.done.messages, self.accepts.call_ids);
        sent.done
    }

    /// Returns true if the prompt needs a placeholder user message at its beginning (turn order, rule H5).
    fn needs_lead(&self, messages: &[Message]) -> bool {
        let first = messages.iter().find(|message| !message.role().instructs());
        self.accepts.user_first
            && !messages.is_empty()
            && first.is_none_or(|first| first.role() != Role::User && !is_compaction(first))
    }

    /// Returns true if a placeholder assistant message must separate `before` from this user message (turn
    /// order, rule H5).
    fn needs_bridge(&self, before: Option<&Message>, message: &Message) -> bool {
        !self.accepts.user_after_results
            && message.role() == Role::User
            && before.is_some_and(|before| before.role() == Role::Tool)
    }

    /// Returns true if the messages must end with a placeholder user message.
    fn needs_user_end(&self, messages: &[Message]) -> bool {
        self.accepts.user_last && messages.last().is_some_and(|last| last.role() == Role::Assistant)
    }
}

/// The calls and results of provider-run tools in the order of a prompt. Each entry is true if that call or
/// result may be sent.
#[derive(Debug, Default)]
struct ServerTools {
    halves: Vec<bool>,
    next: usize,
}

impl ServerTools {
    /// Pairs each call with its result, once per id. A pair must be complete before the next user message;
    /// results of other tools may come between.
    fn read(profile: &TargetProfile, messages: &[Message]) -> Self {
        let mut halves = Vec::new();
        if profile.wire_format != WireFormat::Anthropic {
            return Self::default();
        }
        let (mut waiting, mut used) = (BTreeMap::new(), BTreeSet::new());
        let mut last = 0;
        for message in messages {
            match message.role() {
                // Instructions may become notes of the user role, so they end the search like a user message.
                Role::User | Role::System | Role::Developer => waiting.clear(),
                Role::Assistant => {
                    last = halves.len();
                    for half in message.parts().iter().filter_map(server_tool_part) {
                        let at = halves.len();
                        halves.push(false);
                        match half {
                            // An id that was paired once is used up: each may occur once per prompt.
                            ServerToolPart::Call(id) if !used.contains(&id) => drop(waiting.insert(id, at)),
                            ServerToolPart::Call(_) => {}
                            ServerToolPart::Result(id) => {
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
        // The provider continues an assistant message at the end of the prompt, so its open calls still get
        // results.
        let goes_on = messages.last().is_some_and(|last| last.role() == Role::Assistant);
        if goes_on && !profile.accepts.user_last {
            for call in waiting.into_values().filter(|call| *call >= last) {
                halves[call] = true;
            }
        }
        Self { halves, next: 0 }
    }

    /// Advances to the next call or result and returns true if it may be sent.
    fn take_next(&mut self) -> bool {
        self.next += 1;
        self.halves.get(self.next - 1).copied().unwrap_or_default()
    }
}

/// The messages sent so far, and the open run of messages of one role.
struct SequenceBuilder<'a> {
    profile: &'a TargetProfile,
    done: Normalized,
    server_tools: ServerTools,
    /// The adjacent messages of one role that are not yet merged, and the number of their parts.
    run: Vec<Message>,
    parts: usize,
}

impl SequenceBuilder<'_> {
    /// Sends the leading instructions, as one text if the target has one message for them.
    fn instructions(&mut self, instructions: Vec<Message>) {
        if self.profile.accepts.system != SystemPlace::Leading || instructions.len() < 2 {
            for message in instructions {
                self.push_given(message);
            }
            return;
        }
        let texts: Vec<&str> = instructions.iter().flat_map(Message::plain_texts).collect();
        self.done.joined = instructions.len();
        self.done.messages.push(Message::system(texts.join("\n\n")));
        self.done.places.extend(instructions.iter().map(|_| Mark { message: 0, part: 0 }));
    }

    /// Returns a later system message in the role that the target accepts at its place. It keeps the system
    /// role only after a user message or tool results, and only at the end or before the assistant. `next` is
    /// the role of the first message after the instructions.
    fn with_accepted_role(&self, message: Message, next: Option<Role>) -> Message {
        if !message.role().instructs() || !has_one_place(&self.profile.accepts) {
            return message;
        }
        let before = self.last().map(Message::role);
        // A system message after another accepted one is accepted too.
        let follows = matches!(before, Some(Role::User | Role::Tool | Role::System | Role::Developer));
        let is_accepted =
            self.profile.accepts.inner_system && follows && matches!(next, None | Some(Role::Assistant));
        match message {
            message if is_accepted => message,
            message if adds_tools(&message) => Message::user(wording::left_out_part("tool_addition")),
            message => message.with_role(Role::User),
        }
    }

    /// Drops calls of provider-run tools without a result, results without a call, and repeated ids.
    fn without_broken_server_calls(&mut self, message: Message) -> Message {
        if self.profile.wire_format != WireFormat::Anthropic || message.role() != Role::Assistant {
            return message;
        }
        // All numbers of parts count the text, if it is not empty, as part 0.
        let first = usize::from(!message.text().is_empty());
        let mut numbers = Vec::new();
        for (at, part) in message.parts().iter().enumerate() {
            if server_tool_part(part).is_some() && !self.server_tools.take_next() {
                numbers.push(at + first);
            }
        }
        if numbers.is_empty() {
            return message;
        }
        let without = message.without_parts(&numbers);
        // Only broken histories have such messages. No provider accepts an empty message, so a text names the
        // part.
        let rewritten = if without.is_empty() {
            let part = message.parts().iter().find_map(Part::opaque).unwrap_or_default();
            without.with_texts([wording::left_out_part(part["type"].as_str().unwrap_or("unknown"))])
        } else {
            without
        };
        self.done.rewritten.push((message, rewritten.clone()));
        rewritten
    }

    /// Sends a given message and records its place in the result.
    fn push_given(&mut self, message: Message) {
        self.push(message);
        self.done.places.push(Mark { message: self.done.messages.len(), part: self.parts.saturating_sub(1) });
    }

    /// Sends a placeholder message.
    fn push_placeholder(&mut self, why: Placeholder) {
        let message = why.message();
        self.done.inserted.push(Inserted { why, before: self.done.places.len(), message: message.clone() });
        self.push(message);
    }

    /// Adds a message to the open run, or ends that run first.
    fn push(&mut self, message: Message) {
        // A content object of Gemini is sent back as it came, so a message that begins one is never merged.
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

    /// Sends the open run as one message.
    fn end_run(&mut self) {
        self.parts = 0;
        match self.run.len() {
            0 => {}
            1 => self.done.messages.append(&mut self.run),
            _ => self.done.messages.push(Message::joined(&std::mem::take(&mut self.run))),
        }
    }

    /// Returns the last message so far.
    fn last(&self) -> Option<&Message> {
        self.run.last()
    }

    /// Ends the prompt. Adds a user message if the assistant may not be last. Otherwise removes the parts of
    /// the last assistant message that the provider refuses there.
    fn finish(&mut self) {
        if self.profile.needs_user_end(&self.run) {
            self.push_placeholder(Placeholder::Continue);
        }
        self.end_run();
        if self.profile.wire_format == WireFormat::Anthropic
            && let Some(last) = self.done.messages.last_mut()
            && let Some(continued) = continued_reply(last)
        {
            self.done.rewritten.push((std::mem::replace(last, continued.clone()), continued));
        }
    }
}

/// Returns an assistant message that the model is to continue, without reasoning and without white space at
/// its end. Returns `None` if it has neither.
fn continued_reply(message: &Message) -> Option<Message> {
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
