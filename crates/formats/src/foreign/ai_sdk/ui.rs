//! Messages of the user interface: version 5 and later (`parts` with `tool-NAME`), and version 4
//! (`tool-invocation`).

use super::{
    super::{
        node::{Fault, Fields, Node, Reading},
        talk::{Answer, Call, Entry, Piece, arguments},
    },
    file,
    turn::{Left, Turn, signature, thought},
};
use context_window::Role;
use serde_json::Value;

/// The SDK's text for a call that the user denied.
pub(super) const DENIED: &str = "Tool call execution denied.";

/// Reads a message. Returns several entries if the user sent text between the assistant's steps.
pub(super) fn message(node: &Node<'_>, left: &mut Left, reading: &mut Reading) -> Result<Vec<Entry>, Fault> {
    let fields = node.object()?;
    let kind = fields.need("role")?;
    let role = match &*kind.text()? {
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        // Data of an application for its own page (version 4).
        "data" => {
            left.data += 1;
            return Ok(Vec::new());
        }
        _ => return Err(kind.unknown("is not a role of a message with `parts`")),
    };
    let id = fields.name("id")?;
    fields.ignore(&["metadata", "createdAt", "annotations", "chatId", "revisionId", "updatedAt", "data"]);
    fields.ignore(&["compaction"]);
    let parts = fields.get("parts").map(|parts| parts.list()).transpose()?.unwrap_or_default();
    let has_parts = !parts.is_empty();
    let mut said = Said::new(&parts, role);
    reading.each(parts, |part, reading| said.part(part, left, reading))?;
    said.beside(&fields, has_parts, left, reading)?;
    fields.finish(reading)?;
    Ok(said.into_entries(role, id))
}

/// The content of a message's parts.
struct Said {
    role: Role,
    turn: Turn,
    /// The texts of the parts, which version 4 repeats outside the parts.
    texts: String,
    thoughts: String,
    invocations: Vec<(String, Value)>,
    urls: Vec<String>,
    /// The step of the last call in version 4.
    step: u64,
    /// Finished messages, including those of the user.
    entries: Vec<Entry>,
}

impl Said {
    fn new(parts: &[Node<'_>], role: Role) -> Self {
        let is_step = |part: &Node<'_>| {
            part.object()
                .and_then(|part| part.text("type"))
                .is_ok_and(|kind| kind.as_deref() == Some("step-start"))
        };
        Self {
            role,
            turn: Turn::new(parts.iter().any(is_step)),
            texts: String::new(),
            thoughts: String::new(),
            invocations: Vec::new(),
            urls: Vec::new(),
            step: 0,
            entries: Vec::new(),
        }
    }

    fn part(&mut self, node: &Node<'_>, left: &mut Left, reading: &mut Reading) -> Result<(), Fault> {
        let fields = node.object()?;
        let kind = fields.need("type")?;
        let name = kind.text()?;
        match name.as_str() {
            "text" => {
                fields.ignore(&["state", "providerMetadata", "citations"]);
                self.text(fields.need("text")?.text()?);
            }
            "reasoning" => self.reasoning(&fields)?,
            "file" | "reasoning-file" => {
                self.urls.extend(fields.get("url").filter(Node::is_text).map(|url| url.text()).transpose()?);
                self.turn.say(Piece::Part(file::part(&fields, &["url", "data"], false)?));
            }
            "step-start" => self.turn.end_step(),
            // A compaction was read before the message.
            "context_compaction" => fields.ignore_all(),
            "tool-invocation" => {
                let invocation = fields.need("toolInvocation")?;
                self.invocation(&invocation, left, reading)?;
            }
            "dynamic-tool" => {
                fields.ignore(&["dynamic"]);
                let name = fields.need("toolName")?.text()?;
                self.tool(&fields, &name, left)?;
            }
            "source" | "source-url" | "source-document" => {
                fields.ignore_all();
                left.sources += 1;
            }
            "steering-message" => self.steering(&fields, left, reading)?,
            tool if tool.starts_with("tool-") => {
                self.tool(&fields, &tool["tool-".len()..], left)?;
            }
            data if data.starts_with("data-") => {
                fields.ignore_all();
                left.data += 1;
            }
            _ => return Err(kind.unknown("is not a known part of a message of the AI SDK")),
        }
        fields.finish(reading)
    }

    fn text(&mut self, text: String) {
        self.texts.push_str(&text);
        if !text.is_empty() {
            self.turn.say(Piece::text(text));
        }
    }

    /// Reads reasoning: a text, or in version 4 details with signatures.
    fn reasoning(&mut self, fields: &Fields<'_>) -> Result<(), Fault> {
        fields.ignore(&["state", "id"]);
        let whole =
            fields.first(&["text", "reasoning"]).map(|text| text.text()).transpose()?.unwrap_or_default();
        self.thoughts.push_str(&whole);
        let beside = metadata(fields, &["providerMetadata"]);
        let Some(details) = fields.get("details").filter(Node::is_list) else {
            if let Some(piece) = thought(whole, beside.as_ref()) {
                self.turn.say(piece);
            }
            return Ok(());
        };
        let mut in_details = String::new();
        for detail in details.list()? {
            let value: Value = serde_json::from_str(detail.json()).unwrap_or_default();
            let key = if super::text(&value, "type") == "redacted" { "data" } else { "text" };
            let text = detail.object()?.need(key)?.text()?;
            let beside = match key {
                "data" => serde_json::json!({ "detail": { "redactedData": text } }),
                _ => serde_json::json!({ "detail": { "signature": value.get("signature") } }),
            };
            if key == "text" {
                in_details.push_str(&text);
            }
            if let Some(piece) = thought(if key == "text" { text } else { String::new() }, Some(&beside)) {
                self.turn.say(piece);
            }
        }
        if !in_details.contains(whole.trim()) {
            return Err(details.fault("do not contain the text of `reasoning`"));
        }
        Ok(())
    }

    /// Reads a call of version 5 or later, with its result.
    fn tool(&mut self, fields: &Fields<'_>, name: &str, left: &mut Left) -> Result<(), Fault> {
        let id = fields.need("toolCallId")?.name()?;
        fields.ignore(&["title", "toolMetadata", "preliminary", "inputEncoding", "resultProviderMetadata"]);
        let is_hosted = fields.is_true("providerExecuted");
        let beside = metadata(fields, &["callProviderMetadata"]);
        let (input, raw) = (fields.get("input"), fields.get("rawInput"));
        let (output, error) = (fields.get("output"), fields.get("errorText"));
        let approval = fields.get("approval").map(|approval| approval.object()).transpose()?;
        let reason = approval.as_ref().map(|approval| approval.text("reason")).transpose()?.flatten();
        let is_denied =
            approval.as_ref().and_then(|approval| approval.get("approved")).is_some_and(|is| !is.is_true());
        let state = fields.need("state")?;
        let said = state.text()?;
        if output.is_some() && said != "output-available" || error.is_some() && said != "output-error" {
            return Err(state.fault("does not fit the result of the call"));
        }
        let answer = |text: String| Answer::text(Some(id.clone()), Some(name.to_owned()), text);
        let denied = || answer(reason.clone().unwrap_or_else(|| DENIED.into())).failed(true);
        let answer = match said.as_str() {
            "input-streaming" => {
                left.unfinished += 1;
                return Ok(());
            }
            "approval-responded" if is_denied => Some(denied()),
            "output-denied" => Some(denied()),
            "input-available" | "approval-requested" | "approval-responded" => None,
            "output-available" => {
                let text = output.as_ref().map_or_else(|| "null".to_owned(), Node::text_or_json);
                Some(answer(text).failed(output.as_ref().is_some_and(is_mcp_error)))
            }
            "output-error" => {
                let error = error.ok_or_else(|| fields.node().fault("has no `errorText`"))?;
                Some(answer(error.text()?).failed(true))
            }
            _ => return Err(state.unknown("is not a known state of a tool call")),
        };
        let call = Call {
            id: Some(id.clone()),
            name: name.to_owned(),
            arguments: arguments(input.or(raw)),
            signature: signature(beside.as_ref()),
        };
        self.turn.call(call, answer, is_hosted);
        Ok(())
    }

    /// Reads a call of version 4.
    fn invocation(&mut self, node: &Node<'_>, left: &mut Left, reading: &mut Reading) -> Result<(), Fault> {
        let fields = node.object()?;
        let id = fields.need("toolCallId")?.name()?;
        let name = fields.need("toolName")?.text()?;
        let step = fields.get("step").and_then(|step| step.number()).unwrap_or(self.step);
        let (args, result, state) = (fields.get("args"), fields.get("result"), fields.need("state")?);
        self.invocations.push((id.clone(), serde_json::from_str(node.json()).unwrap_or_default()));
        fields.finish(reading)?;
        let answer = match (&*state.text()?, result) {
            ("partial-call", None) => {
                left.unfinished += 1;
                return Ok(());
            }
            ("call", None) => None,
            ("result", Some(result)) => {
                Some(Answer::text(Some(id.clone()), Some(name.clone()), result.text_or_json()))
            }
            ("result", None) => Some(Answer::text(Some(id.clone()), Some(name.clone()), "null")),
            _ => {
                return Err(state.unknown("is not a known state of a tool call, or does not fit its result"));
            }
        };
        // A new step number means that the results so far came before this call.
        if step != self.step {
            self.turn.end_step();
            self.step = step;
        }
        let call = Call { id: Some(id), name, arguments: arguments(args), signature: None };
        self.turn.call(call, answer, false);
        Ok(())
    }

    /// Reads a text that the user sent while the assistant was working.
    fn steering(&mut self, fields: &Fields<'_>, left: &mut Left, reading: &mut Reading) -> Result<(), Fault> {
        let before = self.turn.take();
        if !before.is_empty() {
            self.entries.push(Entry::new(self.role, before));
        }
        let mut inside = Self::new(&[], Role::User);
        let parts = fields.need("parts")?.list()?;
        reading.each(parts, |part, reading| inside.part(part, left, reading))?;
        let id = fields.name("id")?;
        self.entries.push(Entry::new(Role::User, inside.turn.into_pieces()).with_id(id));
        Ok(())
    }

    /// Reads the keys of version 4 outside the parts: a copy of the parts, or all of the content.
    fn beside(
        &mut self,
        fields: &Fields<'_>,
        has_parts: bool,
        left: &mut Left,
        reading: &mut Reading,
    ) -> Result<(), Fault> {
        let (content, reasoning) = (fields.get("content"), fields.get("reasoning"));
        if let Some(reasoning) = reasoning {
            let text = reasoning.text()?;
            if !has_parts {
                if let Some(piece) = Piece::thought(text) {
                    self.turn.say(piece);
                }
            } else if !repeats(&self.thoughts, &text) {
                reading.leave(reasoning.fault("contains text that is in no part of the message"))?;
            }
        }
        let is_waiting =
            |calls: &[(String, Value)]| calls.iter().any(|(_, call)| super::text(call, "state") != "result");
        let invocations =
            fields.get("toolInvocations").map(|all| all.list()).transpose()?.unwrap_or_default();
        let known: Vec<(String, Value)> = invocations
            .iter()
            .map(|node| (String::new(), serde_json::from_str(node.json()).unwrap_or_default()))
            .collect();
        let text = content.as_ref().map(Node::text).transpose()?.unwrap_or_default();
        // If a call still waits for its result, the text came before the calls; otherwise it came last.
        let is_first = !has_parts && is_waiting(&known);
        if is_first {
            self.text(text.clone());
        }
        for node in invocations {
            let value: Value = serde_json::from_str(node.json()).unwrap_or_default();
            let id = super::text(&value, "toolCallId").to_owned();
            match self.invocations.iter().find(|(own, _)| *own == id) {
                Some((_, own)) if *own == value => {}
                Some(_) => reading.leave(node.fault("differs from the part of the same call"))?,
                None => self.invocation(&node, left, reading)?,
            }
        }
        if !has_parts && !is_first {
            self.turn.end_step();
            self.text(text);
        } else if let Some(content) = content.filter(|_| has_parts && !repeats(&self.texts, &text)) {
            reading.leave(content.fault("contains text that is in no part of the message"))?;
        }
        self.attachments(fields, reading)
    }

    /// Reads the files outside a user message's parts. Omits a file that is also a part.
    fn attachments(&mut self, fields: &Fields<'_>, reading: &mut Reading) -> Result<(), Fault> {
        let attachments = fields.first(&["experimental_attachments", "attachments"]);
        for node in attachments.map(|all| all.list()).transpose()?.unwrap_or_default() {
            let attachment = node.object()?;
            let url = attachment.need("url")?.text()?;
            let part = file::part(&attachment, &["url"], false)?;
            attachment.finish(reading)?;
            if !self.urls.contains(&url) {
                self.turn.say(Piece::Part(part));
            }
        }
        Ok(())
    }

    fn into_entries(mut self, role: Role, id: Option<String>) -> Vec<Entry> {
        let pieces = match role {
            // The SDK sends a system message as one text.
            Role::System => vec![Piece::text(std::mem::take(&mut self.texts))],
            _ => self.turn.take(),
        };
        // An empty assistant message was stopped before it began, so it is omitted.
        if !pieces.is_empty() || role != Role::Assistant {
            self.entries.push(Entry::new(role, pieces));
        }
        if let Some(first) = self.entries.iter_mut().find(|entry| entry.role == role) {
            first.id = id;
        }
        self.entries
    }
}

/// Returns the provider's metadata of a part.
pub(super) fn metadata(fields: &Fields<'_>, keys: &[&'static str]) -> Option<Value> {
    serde_json::from_str(fields.first(keys)?.json()).ok()
}

/// Checks whether a result of an MCP server is marked as failed.
fn is_mcp_error(node: &Node<'_>) -> bool {
    let Ok(fields) = node.object() else { return false };
    fields.get("content").is_some_and(|content| content.is_list()) && fields.is_true("isError")
}

/// Checks whether a text is part of another one, ignoring white space.
fn repeats(whole: &str, part: &str) -> bool {
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    bare(whole).contains(&bare(part))
}
