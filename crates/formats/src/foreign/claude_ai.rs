//! Exports of Claude.ai: conversations with all branches, of which the current one is read. Results are
//! inside the assistant messages.

use super::{
    FormatReader,
    node::{Fault, Fields, Node, Reading},
    shape::Shape,
    talk::{Answer, Call, Entry, Piece, Step, Talk, arguments, usual_piece},
};
use crate::{format::FileFormat, session::unread::Unread};
use context_window::{Part, Role, text::plain};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const READER: FormatReader =
    FormatReader::new(FileFormat::ClaudeAi, fits, read).with_conversations(conversations);

/// The parent of the first messages.
const ROOT: &str = "00000000-0000-4000-8000-000000000000";

fn fits(shape: &Shape) -> bool {
    // A line of a file is a whole conversation.
    !shape.is_lines && (shape.container == "chat_messages" || shape.any_has(&["chat_messages"]))
}

fn conversations<'a>(node: &Node<'a>) -> Option<Vec<(Option<String>, Node<'a>)>> {
    let named = |node: Node<'a>| (node.as_object().and_then(|object| object.text("uuid")), node);
    Some(node.list().ok()?.into_iter().map(named).collect())
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let node = &node.only("conversations")?;
    let fields = node.object()?;
    fields.ignore(&["name", "summary", "account", "settings", "project", "snapshot_name", "creator"]);
    let mut chat = Chat::default();
    chat.talk.id = fields.name("uuid")?;
    chat.talk.model = fields.text("model")?;
    let leaf = fields.name("current_leaf_message_uuid")?;
    let all = fields.need("chat_messages")?.list()?;
    fields.finish(reading)?;
    let total = all.len();
    let branch = branch(all, leaf.as_deref())?;
    reading.note_count(
        total - branch.len(),
        "message of another branch is left out",
        "messages of other branches are left out",
    );
    let entries = reading.each(branch, |node, reading| chat.message(node, reading))?;
    chat.talk.steps = entries.into_iter().flatten().map(Step::Entry).collect();
    chat.notes(reading);
    Ok(chat.talk)
}

/// Returns the messages of the current branch, the oldest first. Returns all messages if none names a parent.
fn branch<'a>(all: Vec<Node<'a>>, leaf: Option<&str>) -> Result<Vec<Node<'a>>, Fault> {
    let mut names = Vec::with_capacity(all.len());
    for node in &all {
        let fields = node.object()?;
        names.push((fields.name("uuid")?, fields.name("parent_message_uuid")?));
    }
    if names.iter().all(|(_, parent)| parent.is_none()) {
        return Ok(all);
    }
    let by_id: BTreeMap<&str, usize> =
        names.iter().enumerate().filter_map(|(at, (id, _))| Some((id.as_deref()?, at))).collect();
    let find = |id: &str| {
        let detail = format!("has no message `{}`, although another message refers to it", plain::short(id));
        by_id.get(id).copied().ok_or_else(|| Fault { path: "chat_messages".into(), detail })
    };
    // The export of an account names no leaf. The last message is the newest.
    let mut at = Some(leaf.map_or(Ok(all.len() - 1), find)?);
    let mut on_it = BTreeSet::new();
    // The walk stops at a message seen before, so a cycle of parents cannot loop forever.
    while let Some(nth) = at.filter(|nth| on_it.insert(*nth)) {
        let parent = names[nth].1.as_deref().filter(|parent| *parent != ROOT);
        at = parent.map(find).transpose()?;
    }
    Ok(all.into_iter().enumerate().filter(|(nth, _)| on_it.contains(nth)).map(|(_, node)| node).collect())
}

#[derive(Default)]
struct Chat {
    talk: Talk,
    files: usize,
    /// Counts of blocks without content.
    aside: Unread,
}

impl Chat {
    fn message(&mut self, node: &Node<'_>, reading: &mut Reading) -> Result<Option<Entry>, Fault> {
        let fields = node.object()?;
        fields.ignore(&["index", "created_at", "updated_at", "input_mode", "truncated", "stop_reason"]);
        fields.ignore(&["parent_message_uuid", "files_v2", "sync_sources", "image_count", "file_count"]);
        let id = fields.name("uuid")?;
        let sender = fields.need("sender")?;
        let role = match &*sender.text()? {
            "human" | "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return Err(sender.unknown("is not a sender of Claude.ai; expected human or assistant")),
        };
        let mut pieces = Vec::new();
        for node in fields.get("attachments").map(|all| all.list()).transpose()?.unwrap_or_default() {
            pieces.extend(attachment(&node, reading)?);
        }
        self.files +=
            fields.get("files").map(|files| files.list()).transpose()?.map_or(0, |files| files.len());
        let text = fields.text("text")?.filter(|text| !text.is_empty());
        let blocks = fields.get("content").map(|content| content.list()).transpose()?.unwrap_or_default();
        // Older exports have the text only. Newer ones repeat the text of the blocks there.
        if blocks.is_empty() {
            pieces.extend(text.clone().map(Piece::text));
        }
        let has_blocks = !blocks.is_empty();
        let blocks: Vec<Piece> =
            reading.each(blocks, |node, reading| self.block(node, reading))?.into_iter().flatten().collect();
        // Blank blocks do not replace the text of the message.
        if has_blocks && blocks.is_empty() {
            pieces.extend(text.map(Piece::text));
        }
        pieces.extend(blocks);
        fields.finish(reading)?;
        let entry = Entry::new(role, pieces).with_id(id);
        Ok(Some(entry).filter(|entry| !entry.pieces.is_empty()))
    }

    fn block(&mut self, node: &Node<'_>, reading: &mut Reading) -> Result<Option<Piece>, Fault> {
        let fields = node.object()?;
        fields.ignore(&["start_timestamp", "stop_timestamp", "flags"]);
        let kind = fields.need("type")?;
        let kind_name = kind.text()?;
        let piece = match &*kind_name {
            "text" | "voice_note" => {
                fields.ignore(&["citations", "title"]);
                let text = fields.need("text")?.text()?;
                (!text.is_empty()).then(|| Piece::text(text))
            }
            "thinking" => {
                fields.ignore(&[
                    "summaries",
                    "cut_off",
                    "truncated",
                    "alternative_display_type",
                    "signature",
                ]);
                Piece::thought(fields.need("thinking")?.text()?)
            }
            "tool_use" => {
                of_the_screen(&fields);
                let call = Call {
                    id: fields.name("id")?,
                    name: fields.need("name")?.text()?,
                    arguments: arguments(fields.get("input")),
                    signature: None,
                };
                Some(Piece::Call(call))
            }
            "tool_result" => Some(Piece::Answer(answer(&fields, reading)?)),
            aside @ ("token_budget" | "flag") => {
                fields.ignore_all();
                self.aside.count(aside);
                None
            }
            _ => return Err(kind.unknown("is not a known block of Claude.ai")),
        };
        fields.finish(reading)?;
        Ok(piece)
    }

    fn notes(&self, reading: &mut Reading) {
        reading.note_count(self.files, "file is not in the export", "files are not in the export");
        let aside =
            self.aside.note("block has no content for the model", "blocks have no content for the model");
        reading.notes.extend(aside);
    }
}

/// Marks the display keys of a call or a result as read.
fn of_the_screen(fields: &Fields<'_>) {
    fields.ignore(&["message", "display_content", "integration_name", "integration_icon_url", "icon_name"]);
    fields.ignore(&["context", "approval_options", "approval_key", "is_mcp_app", "mcp_server_url", "meta"]);
}

/// Reads the text of an attached file, which was sent to the model with the message.
fn attachment(node: &Node<'_>, reading: &mut Reading) -> Result<Option<Piece>, Fault> {
    let fields = node.object()?;
    fields.ignore(&["id", "file_size", "file_type", "created_at"]);
    let name = fields.text("file_name")?.unwrap_or_default();
    let content = fields.text("extracted_content")?.filter(|text| !text.is_empty());
    fields.finish(reading)?;
    Ok(content.map(|content| Piece::text(format!("{name}\n\n{content}").trim_start().to_owned())))
}

/// Reads a result. Without an id, it answers the next open call of its tool.
fn answer(fields: &Fields<'_>, reading: &mut Reading) -> Result<Answer, Fault> {
    of_the_screen(fields);
    let (id, name) = (fields.name("tool_use_id")?, fields.text("name")?);
    let is_failed = fields.is_true("is_error");
    let structured = fields.get("structured_content");
    let parts = match fields.get("content") {
        Some(content) if content.is_list() => reading.each(content.list()?, item)?,
        Some(content) => vec![Part::Text(content.text()?)],
        None => Vec::new(),
    };
    // Servers repeat this value in their texts, so it is used only without texts.
    let structured = structured.filter(|_| parts.is_empty()).map(|node| Part::Text(node.compact()));
    Ok(Answer { id, name, parts: parts.into_iter().chain(structured).collect(), is_failed })
}

/// Reads an item of a result.
fn item(node: &Node<'_>, reading: &mut Reading) -> Result<Part, Fault> {
    let fields = node.object()?;
    fields.ignore(&["uuid", "metadata", "is_missing", "is_citable", "prompt_context_metadata", "citations"]);
    let kind = fields.need("type")?;
    let kind_name = kind.text()?;
    let part = match &*kind_name {
        "text" => Part::Text(fields.need("text")?.text()?),
        "knowledge" | "local_resource" => {
            let keys = ["title", "name", "url", "file_path", "text", "content"];
            let texts = keys.map(|key| fields.get(key).map(|node| node.text_or_json()));
            let texts: Vec<String> = texts.into_iter().flatten().filter(|text| !text.is_empty()).collect();
            Part::Text(texts.join("\n"))
        }
        "image" => match usual_piece(node, reading)? {
            Some(Piece::Part(part)) => {
                fields.ignore(&["source"]);
                part
            }
            _ => return Err(node.fault("is not a known image")),
        },
        _ => return Err(kind.fault("is not known content of a result of Claude.ai")),
    };
    fields.finish(reading)?;
    Ok(part)
}
