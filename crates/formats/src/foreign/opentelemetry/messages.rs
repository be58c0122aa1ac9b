//! Messages with parts: `gen_ai.input.messages` and `gen_ai.output.messages`.

use super::super::{
    media,
    media::Source,
    talk::{Call, arguments},
};
use super::{Answer, Entry, Fault, Node, Piece, Reading};
use context_window::{Role, Tool, message::Reasoning};

/// Reads a list of messages.
pub(super) fn list(node: &Node<'_>, reading: &mut Reading) -> Result<Vec<Entry>, Fault> {
    reading.each(node.list()?, message)
}

fn message(node: &Node<'_>, reading: &mut Reading) -> Result<Entry, Fault> {
    let fields = node.object()?;
    fields.ignore(&["finish_reason", "index"]);
    let role = role(&fields.need("role")?)?;
    let id = fields.name("id")?;
    let name = fields.text("name")?;
    let pieces = parts(&fields.need("parts")?, reading)?;
    fields.finish(reading)?;
    // In a tool message, the name is that of the tool and not of a participant.
    Ok(Entry::new(role, pieces).with_id(id).with_name(name.filter(|_| role != Role::Tool)))
}

pub(super) fn role(node: &Node<'_>) -> Result<Role, Fault> {
    Ok(match &*node.text()? {
        "system" | "developer" => Role::System,
        "user" | "human" => Role::User,
        "assistant" | "model" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => return Err(node.unknown("is not a known role; expected system, user, assistant or tool")),
    })
}

/// Reads the parts of a message, or of the system instructions.
pub(super) fn parts(node: &Node<'_>, reading: &mut Reading) -> Result<Vec<Piece>, Fault> {
    let all = reading.each(node.list()?, part)?;
    Ok(all.into_iter().flatten().collect())
}

fn part(node: &Node<'_>, reading: &mut Reading) -> Result<Option<Piece>, Fault> {
    let fields = node.object()?;
    let kind = fields.need("type")?;
    let content = || match fields.get("content") {
        Some(content) => content.text(),
        None => Err(node.fault("has no `content`: its writer did not capture it")),
    };
    let file = |source, usual: &str| {
        let modality = fields.text("modality")?.map_or_else(|| usual.to_owned(), |kind| format!("{kind}/"));
        let media_type = fields.first(&["mime_type", "media_type"]).map(|kind| kind.text()).transpose()?;
        let media_type = media_type.filter(|own| own.contains('/')).unwrap_or(modality);
        let media_type = if media_type == "image/" { "image/png".to_owned() } else { media_type };
        let part = media::known_part(&media_type, source, None).map(|part| Some(Piece::Part(part)));
        part.ok_or_else(|| node.fault(format!("is a file of the type `{media_type}`, which is not read")))
    };
    let piece = match &*kind.text()? {
        "text" => {
            let text = content()?;
            // A hidden prompt belonged to one earlier request. The model does not see it again.
            let is_hidden = fields.get("visible").is_some_and(|visible| visible.json() == "false");
            if is_hidden {
                reading.note_once("system prompts of single earlier requests are left out");
            }
            (!is_hidden).then(|| Piece::text(text))
        }
        "reasoning" | "thinking" => {
            let text = content()?;
            // The part does not name the provider of the signature, so the reasoning stays plain text.
            fields.ignore(&["signature"]);
            (!text.trim().is_empty()).then(|| Piece::Thought(Reasoning::text(text)))
        }
        "refusal" => Some(Piece::text(content()?)),
        "tool_call" => {
            fields.ignore(&["builtin", "code_arg_name", "code_arg_language"]);
            Some(Piece::Call(Call {
                id: fields.name("id")?,
                name: fields.need("name")?.text()?,
                arguments: arguments(fields.get("arguments")),
                signature: None,
            }))
        }
        "tool_call_response" => {
            fields.ignore(&["builtin"]);
            let result = fields.first(&["response", "result", "content"]);
            let result =
                result.ok_or_else(|| node.fault("has no `response`: its writer did not capture it"))?;
            let is_failed = fields.is_true("is_error");
            let answer = Answer::text(fields.name("id")?, fields.text("name")?, result.text_or_json());
            Some(Piece::Answer(answer.failed(is_failed)))
        }
        "server_tool_call" => {
            let call = fields.need("server_tool_call")?;
            let name = fields.text("name")?.unwrap_or_else(|| "server_tool".into());
            Some(Piece::Call(Call {
                id: fields.name("id")?,
                name,
                arguments: call.compact(),
                signature: None,
            }))
        }
        "server_tool_call_response" => {
            let response = fields.need("server_tool_call_response")?;
            Some(Piece::Answer(Answer::text(fields.name("id")?, None, response.text_or_json())))
        }
        "blob" | "binary" => file(Source::Data(content()?), "application/octet-stream")?,
        "uri" | "file_data" if fields.has("uri") => {
            file(Source::Url(fields.need("uri")?.text()?), "application/pdf")?
        }
        "file" | "file_data" => {
            file(Source::Id(fields.need("file_id")?.text()?), "application/octet-stream")?
        }
        "image-url" => Some(Piece::image(fields.need("url")?.text()?)),
        "document-url" => file(Source::Url(fields.need("url")?.text()?), "application/pdf")?,
        _ => return Err(kind.unknown("is not a known part of a message")),
    };
    fields.finish(reading)?;
    Ok(piece)
}

/// Reads tool definitions.
pub(super) fn tools(node: &Node<'_>, reading: &mut Reading) -> Result<Vec<Tool>, Fault> {
    reading.each(node.list()?, |node, _| {
        let fields = node.object()?;
        let function = fields.get("function").map(|function| function.object()).transpose()?;
        let own = function.as_ref().unwrap_or(&fields);
        let name = own.need("name")?.text()?;
        let description = own.text("description")?.unwrap_or_default();
        let schema = own.first(&["parameters", "inputSchema", "input_schema"]).map(|schema| schema.compact());
        Ok(Tool::new(name, description, schema.unwrap_or_default()))
    })
}
