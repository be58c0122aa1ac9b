//! Sessions that Gemini CLI records.

use super::part;
use crate::{
    foreign::{
        node::{Fault, Fields, Node, Reading},
        talk::Talk,
    },
    session::unread::Unread,
};
use serde_json::json;
use std::collections::BTreeMap;

/// The records of a session: a header with the messages, or lines that add, replace and take back messages.
#[derive(Default)]
pub(super) struct Recorded<'a> {
    messages: Vec<Node<'a>>,
    /// The indexes of the messages, by their ids.
    places: BTreeMap<String, usize>,
    taken_back: usize,
    commands: usize,
    /// Counts of messages that are shown on the screen only.
    aside: Unread,
}

impl<'a> Recorded<'a> {
    /// Converts records to contents of Gemini.
    pub(super) fn read(
        records: Vec<Node<'a>>,
        talk: &mut Talk,
        reading: &mut Reading,
    ) -> Result<Vec<String>, Fault> {
        let mut recorded = Self::default();
        reading.each(records, |node, reading| recorded.record(node, talk, reading))?;
        let messages = std::mem::take(&mut recorded.messages);
        let contents = reading.each(messages, |node, reading| recorded.message(node, talk, reading))?;
        recorded.notes(reading);
        Ok(contents.into_iter().flatten().collect())
    }

    /// Reads a line of a session, or the object of a whole session.
    fn record(&mut self, node: &Node<'a>, talk: &mut Talk, reading: &mut Reading) -> Result<(), Fault> {
        let fields = node.object()?;
        if let Some(id) = fields.text("$rewindTo")? {
            // As in Gemini CLI, an unknown id takes all messages back.
            self.take_back(self.places.get(&id).copied().unwrap_or_default());
            return fields.finish(reading);
        }
        if let Some(set) = fields.get("$set") {
            let set = set.object()?;
            self.about(&set, talk, true)?;
            set.finish(reading)?;
            return fields.finish(reading);
        }
        if fields.has("projectHash") || fields.has("messages") {
            self.about(&fields, talk, false)?;
            return fields.finish(reading);
        }
        self.put(node)
    }

    /// Reads the fields of a session, with its messages.
    fn about(&mut self, fields: &Fields<'a>, talk: &mut Talk, replaces: bool) -> Result<(), Fault> {
        fields.ignore(&["projectHash", "startTime", "lastUpdated", "summary", "memoryScratchpad"]);
        fields.ignore(&["directories", "kind"]);
        talk.id = fields.name("sessionId")?.or_else(|| talk.id.take());
        if let Some(messages) = fields.get("messages") {
            if replaces {
                self.take_back(0);
            }
            for message in messages.list()? {
                self.put(&message)?;
            }
        }
        Ok(())
    }

    /// Adds a message. A line that repeats an earlier message replaces it, because the new one also has its
    /// calls and results.
    fn put(&mut self, node: &Node<'a>) -> Result<(), Fault> {
        let own = node.object()?;
        let id = own.name("id")?;
        if let Some(at) = id.as_ref().and_then(|id| self.places.get(id)) {
            let before = self.messages[*at].object()?;
            let is_same =
                |key| own.get(key).map(|node| node.compact()) == before.get(key).map(|node| node.compact());
            // A message with the same id but other content is a message of its own.
            if is_same("type") && is_same("content") {
                self.messages[*at] = node.clone();
                return Ok(());
            }
        }
        self.places.extend(id.map(|id| (id, self.messages.len())));
        self.messages.push(node.clone());
        Ok(())
    }

    /// Removes the messages from index `to` on.
    fn take_back(&mut self, to: usize) {
        self.taken_back += self.messages.len() - to;
        self.messages.truncate(to);
        self.places.retain(|_, at| *at < to);
    }

    /// Converts a message to contents of Gemini.
    fn message(
        &mut self,
        node: &Node<'a>,
        talk: &mut Talk,
        reading: &mut Reading,
    ) -> Result<Vec<String>, Fault> {
        let fields = node.object()?;
        fields.ignore(&["id", "timestamp", "displayContent", "tokens"]);
        let kind = fields.need("type")?;
        match &*kind.text()? {
            "user" => {
                let parts = parts(&fields.need("content")?, reading)?;
                fields.finish(reading)?;
                if is_command(&parts) {
                    self.commands += 1;
                    return Ok(Vec::new());
                }
                Ok(vec![content("user", &parts)])
            }
            "gemini" => {
                talk.model = fields.text("model")?.or_else(|| talk.model.take());
                let contents = reply(&fields, reading)?;
                fields.finish(reading)?;
                Ok(contents)
            }
            aside @ ("info" | "error" | "warning") => {
                self.aside.count(aside);
                Ok(Vec::new())
            }
            _ => {
                Err(kind
                    .unknown("is not a message of Gemini CLI; expected user, gemini, info, error or warning"))
            }
        }
    }

    fn notes(&self, reading: &mut Reading) {
        reading.note_count(
            self.taken_back,
            "message was removed by the user or replaced: it is left out",
            "messages were removed by the user or replaced: they are left out",
        );
        reading.note_count(
            self.commands,
            "command or context of the tool is left out, as the tool does when it resumes",
            "commands and contexts of the tool are left out, as the tool does when it resumes",
        );
        let aside = self.aside.note(
            "message is left out: it is only for the screen",
            "messages are left out: they are only for the screen",
        );
        reading.notes.extend(aside);
    }
}

/// Reads a reply: one content with its reasoning, text and calls, and one with their results.
fn reply(fields: &Fields<'_>, reading: &mut Reading) -> Result<Vec<String>, Fault> {
    let said = fields.get("content").map(|node| parts(&node, reading)).transpose()?.unwrap_or_default();
    let has = |key: &str| said.iter().any(|part| part.contains(&format!("\"{key}\"")));
    // Newer versions record the whole reply as content, so its calls and reasoning are not added again.
    let is_whole = has("functionCall") || has("thought");
    // The order within a reply is reasoning, text, calls; the results follow as a content of the user.
    let mut model = Vec::new();
    for thought in fields.get("thoughts").map(|node| node.list()).transpose()?.unwrap_or_default() {
        let thought = thought.object()?;
        thought.ignore(&["timestamp"]);
        let subject = thought.text("subject")?.filter(|subject| !subject.is_empty());
        let description = thought.text("description")?.unwrap_or_default();
        thought.finish(reading)?;
        let text = subject.map(|subject| format!("**{subject}** {description}")).unwrap_or(description);
        let is_said = text.trim().is_empty() || is_whole && has("thought");
        model.extend((!is_said).then(|| json!({ "text": text, "thought": true }).to_string()));
    }
    model.extend(said);
    let mut results = Vec::new();
    for call in fields.get("toolCalls").map(|node| node.list()).transpose()?.unwrap_or_default() {
        let call = call.object()?;
        call.ignore(&["status", "timestamp", "agentId", "displayName", "description", "resultDisplay"]);
        call.ignore(&["renderOutputAsMarkdown"]);
        let (id, name) = (call.name("id")?, call.need("name")?.text()?);
        let arguments = call.get("args").map_or_else(|| "{}".to_owned(), |args| args.json().to_owned());
        if !is_whole {
            let id = serde_json::to_string(&id).unwrap_or_default();
            let name = serde_json::to_string(&name).unwrap_or_default();
            model.push(format!("{{\"functionCall\":{{\"id\":{id},\"name\":{name},\"args\":{arguments}}}}}"));
        }
        if let Some(result) = call.get("result") {
            results.extend(answer(&result, id.as_deref(), &name, reading)?);
        }
        call.finish(reading)?;
    }
    let contents = [("model", model), ("user", results)].into_iter();
    Ok(contents.filter(|(_, parts)| !parts.is_empty()).map(|(role, parts)| content(role, &parts)).collect())
}

/// Reads the result of a call. Without a function response, its texts are the output of the call.
fn answer(
    node: &Node<'_>,
    id: Option<&str>,
    name: &str,
    reading: &mut Reading,
) -> Result<Vec<String>, Fault> {
    let parts = parts(node, reading)?;
    if parts.iter().any(|part| part.contains("\"functionResponse\"")) {
        return Ok(parts);
    }
    let text = |part: &String| Node::root(part).object().ok()?.text("text").ok()?;
    let texts: Vec<String> = parts.iter().filter_map(text).collect();
    let response = json!({ "output": texts.join("\n") });
    let response = json!({ "functionResponse": { "id": id, "name": name, "response": response } });
    let rest = parts.into_iter().filter(|part| text(part).is_none());
    Ok([response.to_string()].into_iter().chain(rest).collect())
}

/// Reads a content: a string, a part, or a list of both.
fn parts(node: &Node<'_>, reading: &mut Reading) -> Result<Vec<String>, Fault> {
    let nodes = if node.is_list() { node.list()? } else { vec![node.clone()] };
    let parts = reading.each(nodes, |node, reading| {
        if node.is_text() {
            return Ok(Some(node.text()?)
                .filter(|text| !text.is_empty())
                .map(|text| json!({ "text": text }).to_string()));
        }
        part(node, reading)?;
        Ok(Some(node.json().to_owned()))
    })?;
    Ok(parts.into_iter().flatten().collect())
}

fn content(role: &str, parts: &[String]) -> String {
    format!("{{\"role\":\"{role}\",\"parts\":[{}]}}", parts.join(","))
}

/// Checks whether the user's input is for the tool: a command, a question mark for help, or a generated
/// context.
fn is_command(parts: &[String]) -> bool {
    let text = |part: &String| Node::root(part).object().ok()?.text("text").ok()?;
    let texts: Vec<String> = parts.iter().filter_map(text).collect();
    let said = texts.concat();
    let said = said.trim();
    let is_slash = said.strip_prefix('/').is_some_and(|rest| {
        let name = rest.split_whitespace().next().unwrap_or_default();
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c))
    });
    // A message with a file is for the model, even if its text looks like a command.
    texts.len() == parts.len()
        && (is_slash
            || said == "?"
            || said.starts_with("<session_context>")
            || said.starts_with("<hook_context>"))
}
