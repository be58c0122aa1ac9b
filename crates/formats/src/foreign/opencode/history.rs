//! Messages of opencode, and the selection of those that are still sent.

use crate::foreign::node::{Fault, Fields, Node, Reading};
use std::collections::BTreeSet;

/// A message and its parts.
pub(super) struct Message<'a> {
    pub(super) id: Option<String>,
    pub(super) is_user: bool,
    pub(super) info: Fields<'a>,
    pub(super) parts: Vec<Node<'a>>,
}

impl<'a> Message<'a> {
    pub(super) fn read(node: &Node<'a>, reading: &mut Reading) -> Result<Self, Fault> {
        let fields = node.object()?;
        let info = fields.need("info")?.object()?;
        let parts = fields.need("parts")?.list()?;
        fields.finish(reading)?;
        let role = info.need("role")?;
        let is_user = match &*role.text()? {
            "user" => true,
            "assistant" => false,
            _ => return Err(role.unknown("is not a role of opencode; expected user or assistant")),
        };
        Ok(Self { id: info.name("id")?, is_user, info, parts })
    }

    /// Returns the part of a type. Returns `None` if the message has none.
    fn part(&self, kind: &str) -> Option<Fields<'a>> {
        let is_one = |part: &Fields<'a>| part.text("type").ok().flatten().as_deref() == Some(kind);
        self.parts.iter().filter_map(|part| part.object().ok()).find(is_one)
    }

    /// Returns the id of the summary request that the message answers. Returns `None` for any other message.
    fn summarises(&self) -> Option<String> {
        let is_summary = !self.is_user
            && self.info.is_true("summary")
            && self.info.has("finish")
            && !self.info.has("error");
        self.info.name("parentID").ok()?.filter(|_| is_summary)
    }
}

/// Removes the messages that the user took back: everything from the named message or part on.
pub(super) fn take_back(messages: &mut Vec<Message<'_>>, revert: &Fields<'_>) -> Result<(), Fault> {
    let (to, part) = (revert.need("messageID")?.name()?, revert.name("partID")?);
    let Some(at) = messages.iter().position(|message| message.id.as_ref() == Some(&to)) else {
        return Ok(());
    };
    let is_it = |node: &Node<'_>| node.object().ok()?.name("id").ok()?.filter(|id| Some(id) == part.as_ref());
    let inside = messages[at].parts.iter().position(|node| is_it(node).is_some());
    match inside.filter(|inside| *inside > 0) {
        Some(inside) => {
            messages[at].parts.truncate(inside);
            messages.truncate(at + 1);
        }
        // Without a named part, or at the first part, the whole message is taken back.
        None => messages.truncate(at),
    }
    Ok(())
}

/// Removes the messages that the newest summary replaces.
pub(super) fn without_compacted(messages: &mut Vec<Message<'_>>) {
    let summarised: BTreeSet<String> = messages.iter().filter_map(Message::summarises).collect();
    let is_request = |message: &Message<'_>| {
        let is_done = message.id.as_ref().is_some_and(|id| summarised.contains(id));
        message.is_user && is_done && message.part("compaction").is_some()
    };
    let Some(at) = messages.iter().rposition(is_request) else { return };
    let tail = messages[at].part("compaction").and_then(|part| part.name("tail_start_id").ok().flatten());
    let tail = tail.and_then(|id| messages[..at].iter().position(|message| message.id.as_ref() == Some(&id)));
    // The request and its summary come first, and the messages that the summary keeps follow them.
    let kept: Vec<Message<'_>> = messages.drain(tail.unwrap_or(at)..at).collect();
    messages.drain(..tail.unwrap_or(at));
    let behind = messages.len().min(2);
    messages.splice(behind..behind, kept);
}
