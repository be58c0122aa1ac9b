//! Gemini CLI: checkpoints of `/chat save`, files of `/chat share` and `/restore`, and recorded sessions.

use super::{
    FormatReader,
    conversation::{ForeignConversation, Step},
    node::{Fault, Node, Reading},
    shape::{Shape, text},
};
use crate::{format::FileFormat, session::gemini};
use context_window::WireFormat;
use serde_json::value::RawValue;

mod recorded;

use recorded::Recorded;

pub(super) const READER: FormatReader = FormatReader::new(FileFormat::GeminiCli, fits, read);

/// Keys of a part in Gemini's format.
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

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<ForeignConversation, Fault> {
    let mut conversation =
        ForeignConversation { wire_format: Some(WireFormat::Gemini), ..ForeignConversation::default() };
    let list = if node.is_list() { Some(node.list()?) } else { None };
    // Contents have `parts` and records have `content`, so a single element decides.
    let is_content = |node: &Node<'_>| node.as_object().is_some_and(|object| object.get("parts").is_some());
    let contents = match list {
        Some(list) if list.iter().any(is_content) => contents(list, reading)?,
        Some(records) => Recorded::read(records, &mut conversation, reading)?,
        None => {
            let fields = node.object()?;
            fields.ignore(&["authType"]);
            // If the contents have a key of their own, `history` holds items of the screen.
            let client = fields.get("clientHistory");
            match client.or_else(|| fields.get("history")) {
                Some(history) => {
                    fields.ignore(&["history", "toolCall", "commitHash", "messageId", "filePath"]);
                    fields.finish(reading)?;
                    contents(history.list()?, reading)?
                }
                None => Recorded::read(vec![node.clone()], &mut conversation, reading)?,
            }
        }
    };
    // The contents are joined again as JSON, so that the reader of Gemini requests can read them.
    let contents = RawValue::from_string(format!("[{}]", contents.join(",")));
    let contents = contents.map_err(|_| node.expected("contents of Gemini"))?;
    let messages = gemini::messages(&contents).map_err(|(at, detail)| Fault {
        path: at.map(|at| format!("content {at}")).unwrap_or_default(),
        detail,
    })?;
    conversation.steps = messages.into_iter().map(|message| Step::Message(Box::new(message))).collect();
    Ok(conversation)
}

/// Checks contents, and returns them as unchanged JSON.
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

/// Checks that a part has no content under an unknown key.
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
