//! Gemini CLI: checkpoints of `/chat save`, files of `/chat share` and `/restore`, and recorded sessions.

use super::{
    Reader,
    node::{Fault, Fields, Node, Reading},
    shape::{Shape, text},
    talk::{Step, Talk},
};
use crate::{
    format::FileFormat,
    session::{gemini, unread::Unread},
};
use context_window::WireFormat;
use serde_json::{json, value::RawValue};
use std::collections::BTreeMap;

pub(super) const READER: Reader = Reader::new(FileFormat::GeminiCli, fits, read);

/// Keys of a part of Gemini's.
const PARTS: [&str; 8] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "thoughtSignature",
    "executableCode",
    "codeExecutionResult",
];

fn fits(shape: &Shape) -> bool {
    let is_content = |message: &serde_json::Value| {
        let parts = message.get("parts").and_then(serde_json::Value::as_array);
        let is_part = |part: &serde_json::Value| {
            part.get("type").is_none() && PARTS.iter().any(|key| part.get(key).is_some())
        };
        matches!(text(message, "role"), "user" | "model")
            && message.get("content").is_none()
            && parts.is_some_and(|parts| parts.iter().all(is_part))
    };
    let are_contents = (shape.container.is_empty() || shape.container == "history")
        && !shape.messages.is_empty()
        && shape.messages.iter().all(is_content);
    let is_record = shape.messages.iter().any(|record| {
        record.get("projectHash").is_some()
            || record.get("$set").is_some()
            || record.get("$rewindTo").is_some()
            || text(record, "type") == "gemini" && record.get("content").is_some()
    });
    let is_session = |record: &serde_json::Value| record.get("messages").is_some();
    let are_sessions = shape.is_lines && shape.messages.iter().any(is_session);
    are_contents || is_record && !are_sessions || shape.has("projectHash") || shape.has("clientHistory")
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let mut talk = Talk { wire_format: Some(WireFormat::Gemini), ..Talk::default() };
    let list = if node.is_list() { Some(node.list()?) } else { None };
    let is_content = |node: &Node<'_>| node.as_object().is_some_and(|object| object.get("parts").is_some());
    let contents = match list {
        Some(list) if list.iter().any(is_content) => contents(list, reading)?,
        Some(records) => Recorded::read(records, &mut talk, reading)?,
        None => {
            let fields = node.object()?;
            fields.ignore(&["authType"]);
            // The screen's items stand under `history` where the contents have a key of their own.
            let client = fields.get("clientHistory");
            match client.or_else(|| fields.get("history")) {
                Some(history) => {
                    fields.ignore(&["history", "toolCall", "commitHash", "messageId", "filePath"]);
                    fields.finish(reading)?;
                    contents(history.list()?, reading)?
                }
                None => Recorded::read(vec![node.clone()], &mut talk, reading)?,
            }
        }
    };
    let contents = RawValue::from_string(format!("[{}]", contents.join(",")));
    let contents = contents.map_err(|_| node.expected("contents of Gemini"))?;
    let messages = gemini::messages(&contents).map_err(|(at, detail)| Fault {
        path: at.map(|at| format!("content {at}")).unwrap_or_default(),
        detail,
    })?;
    talk.steps = messages.into_iter().map(|message| Step::Message(Box::new(message))).collect();
    Ok(talk)
}

/// Checks contents, and returns them as they are spelt.
fn contents(list: Vec<Node<'_>>, reading: &mut Reading) -> Result<Vec<String>, Fault> {
    reading.each(list, |node, reading| {
        let fields = node.object()?;
        fields.need("role")?;
        for node in fields.need("parts")?.list()? {
            part(&node, reading)?;
        }
        fields.finish(reading)?;
        Ok(node.json().to_owned())
    })
}

/// Checks that a part holds nothing that nobody reads.
fn part(node: &Node<'_>, reading: &mut Reading) -> Result<(), Fault> {
    let fields = node.object()?;
    fields.ignore(&["thought", "fileData", "videoMetadata", "executableCode", "codeExecutionResult"]);
    fields.ignore(&["thoughtSignature"]);
    fields.text("text")?;
    for (key, keys) in [
        ("inlineData", &["mimeType", "data", "displayName"][..]),
        ("functionCall", &["id", "name", "args"]),
        ("functionResponse", &["id", "name", "response", "parts", "willContinue", "scheduling"]),
    ] {
        if let Some(inside) = fields.get(key) {
            let inside = inside.object()?;
            if key != "inlineData" {
                inside.need("name")?.text()?;
            }
            inside.ignore(keys);
            inside.finish(reading)?;
        }
    }
    fields.finish(reading)
}

/// The records of a session: a header with the messages, or lines that add, replace and take back messages.
#[derive(Default)]
struct Recorded<'a> {
    messages: Vec<Node<'a>>,
    /// By its id, the place of a message.
    places: BTreeMap<String, usize>,
    taken_back: usize,
    commands: usize,
    /// Messages that are for the screen alone.
    aside: Unread,
}

impl<'a> Recorded<'a> {
    fn read(records: Vec<Node<'a>>, talk: &mut Talk, reading: &mut Reading) -> Result<Vec<String>, Fault> {
        let mut recorded = Self::default();
        reading.each(records, |node, reading| recorded.record(node, talk, reading))?;
        let messages = std::mem::take(&mut recorded.messages);
        let contents = reading.each(messages, |node, reading| recorded.message(node, talk, reading))?;
        recorded.notes(reading);
        Ok(contents.into_iter().flatten().collect())
    }

    /// Reads a line of a session, or the object that a session is.
    fn record(&mut self, node: &Node<'a>, talk: &mut Talk, reading: &mut Reading) -> Result<(), Fault> {
        let fields = node.object()?;
        if let Some(id) = fields.text("$rewindTo")? {
            // An id that is not there takes everything back.
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

    /// Reads what a session says of itself, with its messages.
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

    /// Adds a message. A line that was written before takes the place of that, if it says the same: it has its calls and
    /// results since.
    fn put(&mut self, node: &Node<'a>) -> Result<(), Fault> {
        let own = node.object()?;
        let id = own.name("id")?;
        if let Some(at) = id.as_ref().and_then(|id| self.places.get(id)) {
            let before = self.messages[*at].object()?;
            let is_same =
                |key| own.get(key).map(|node| node.compact()) == before.get(key).map(|node| node.compact());
            if is_same("type") && is_same("content") {
                self.messages[*at] = node.clone();
                return Ok(());
            }
        }
        self.places.extend(id.map(|id| (id, self.messages.len())));
        self.messages.push(node.clone());
        Ok(())
    }

    /// Takes back the messages from a place on.
    fn take_back(&mut self, to: usize) {
        self.taken_back += self.messages.len() - to;
        self.messages.truncate(to);
        self.places.retain(|_, at| *at < to);
    }

    /// Reads a message as contents of Gemini.
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
                Err(kind.fault("is no message of Gemini CLI; expected user, gemini, info, error or warning"))
            }
        }
    }

    fn notes(&self, reading: &mut Reading) {
        reading.note_count(
            self.taken_back,
            "message was taken back by the user or replaced: it is left out",
            "messages were taken back by the user or replaced: they are left out",
        );
        reading.note_count(
            self.commands,
            "command or context of the tool is left out, as the tool does when it resumes",
            "commands and contexts of the tool are left out, as the tool does when it resumes",
        );
        let aside = self.aside.note(
            "message is for the screen alone and left out",
            "messages are for the screen alone and left out",
        );
        aside.into_iter().for_each(|note| reading.note(note));
    }
}

/// Reads a reply: its thoughts, its content, its calls, and their results as a content of their own.
fn reply(fields: &Fields<'_>, reading: &mut Reading) -> Result<Vec<String>, Fault> {
    let said = fields.get("content").map(|node| parts(&node, reading)).transpose()?.unwrap_or_default();
    let has = |key: &str| said.iter().any(|part| part.contains(&format!("\"{key}\"")));
    let is_whole = has("functionCall") || has("thought");
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

/// Reads the result of a call. One without a response of a function is the output of the call.
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

/// Reads a content: a text, a part, or a list of both.
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

/// Checks whether what the user typed is for the tool: a command, the question mark for help, or a context that it made.
fn is_command(parts: &[String]) -> bool {
    let text = |part: &String| Node::root(part).object().ok()?.text("text").ok()?;
    let texts: Vec<String> = parts.iter().filter_map(text).collect();
    let said = texts.concat();
    let said = said.trim();
    let is_slash = said.strip_prefix('/').is_some_and(|rest| {
        let name = rest.split_whitespace().next().unwrap_or_default();
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c))
    });
    texts.len() == parts.len()
        && (is_slash
            || said == "?"
            || said.starts_with("<session_context>")
            || said.starts_with("<hook_context>"))
}
