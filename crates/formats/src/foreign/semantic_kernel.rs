//! Chat histories of Semantic Kernel. Items have a `content_type` in Python and a `$type` in C#, whose keys
//! may begin in upper or lower case.

use super::{
    FormatReader, calls, media,
    media::Source,
    node::{Fault, Fields, Node, Reading},
    shape::{Shape, text},
    talk::{Answer, Call, Entry, Piece, Step, Talk, arguments},
};
use crate::format::FileFormat;
use context_window::{Part, Role};
use serde_json::Value;

pub(super) const READER: FormatReader = FormatReader::new(FileFormat::SemanticKernel, fits, read);

fn fits(shape: &Shape) -> bool {
    let is_labelled = |message: &Value| {
        let role = message.get("Role").or_else(|| message.get("role"));
        role.is_some_and(|role| role.get("Label").or_else(|| role.get("label")).is_some())
    };
    let is_own = |message: &Value| {
        let kind = text(message, "content_type");
        (kind == "message" || kind == "streaming_message") && message.get("items").is_some()
    };
    let is_typed = |part: &Value| text(part, "$type").ends_with("Content");
    shape.messages.iter().any(is_own)
        || shape.messages.iter().any(is_labelled)
        || ["Items", "items"].iter().any(|list| shape.any_part(list, is_typed))
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let mut talk = Talk::default();
    let messages = if node.is_list() {
        node.list()?
    } else {
        let fields = node.object()?;
        fields.ignore(&["target_count", "threshold_count", "auto_reduce", "thread_id"]);
        // The summary request of a history reducer is not part of the conversation.
        fields.ignore(&["summarization_instructions", "execution_settings", "service"]);
        let list = fields.first(&["messages", "Messages"]);
        let list = list.ok_or_else(|| node.fault("has no `messages`"))?.list()?;
        fields.finish(reading)?;
        list
    };
    let entries = reading.each(messages, |node, reading| message(node, reading, &mut talk.model))?;
    talk.steps = entries.into_iter().map(Step::Entry).collect();
    Ok(talk)
}

fn message(node: &Node<'_>, reading: &mut Reading, model: &mut Option<String>) -> Result<Entry, Fault> {
    let fields = node.object()?;
    fields.ignore(&[
        "content_type",
        "$type",
        "encoding",
        "Encoding",
        "finish_reason",
        "status",
        "choice_index",
    ]);
    fields.ignore(&["MimeType", "mimeType", "mime_type"]);
    let metadata = fields.first(&["metadata", "Metadata"]).map(|metadata| metadata.object()).transpose()?;
    let role = role(&fields)?;
    let own = fields.first(&["ai_model_id", "ModelId", "modelId"]).map(|model| model.text()).transpose()?;
    *model = own.or(model.take());
    let items = fields.first(&["items", "Items"]).map(|items| items.list()).transpose()?;
    let items = reading.each(items.unwrap_or_default(), item)?;
    let mut pieces: Vec<Piece> = items.into_iter().flatten().collect();
    let content = fields.first(&["content", "Content"]).map(|content| content.text()).transpose()?;
    // Early versions also wrote one text for the whole message, which repeats the items.
    let is_said = |text: &String| {
        pieces.iter().any(|piece| matches!(piece, Piece::Part(Part::Text(own)) if own == text))
    };
    if let Some(content) = content.filter(|content| !content.is_empty() && !is_said(content)) {
        pieces.insert(0, Piece::text(content));
    }
    let (known_calls, answered) = of_metadata(metadata.as_ref())?;
    calls::add(&mut pieces, known_calls)?;
    let is_answer = |piece: &Piece| matches!(piece, Piece::Answer(_));
    if role == Role::Tool && !pieces.iter().any(is_answer) {
        let parts = super::parts_of(node, pieces)?;
        pieces = vec![Piece::Answer(Answer { id: answered, parts, ..Answer::default() })];
    }
    // In a tool message, the name is that of the tool and not of a participant.
    let name = fields.first(&["name", "AuthorName", "authorName"]).map(|name| name.text()).transpose()?;
    fields.finish(reading)?;
    Ok(Entry::new(role, pieces).with_name(name.filter(|_| role != Role::Tool)))
}

/// Returns the calls, and the id of the answered call, from the metadata of early C# connectors.
#[expect(clippy::type_complexity, reason = "a pair of what is read at one place")]
fn of_metadata<'a>(metadata: Option<&Fields<'a>>) -> Result<(Vec<(Node<'a>, Call)>, Option<String>), Fault> {
    let Some(metadata) = metadata else { return Ok((Vec::new(), None)) };
    let calls = calls::list(metadata.get("ChatResponseMessage.FunctionToolCalls"))?;
    let id =
        metadata.first(&["ChatCompletionsToolCall.Id", "tool_call_id"]).map(|id| id.name()).transpose()?;
    Ok((calls, id))
}

fn role(fields: &Fields<'_>) -> Result<Role, Fault> {
    let role = fields.first(&["role", "Role"]).ok_or_else(|| fields.node().fault("has no `role`"))?;
    let name = if role.is_object() {
        let label = role.object()?.first(&["Label", "label"]);
        label.ok_or_else(|| role.fault("has no `Label`"))?.text()?
    } else {
        role.text()?
    };
    Ok(match &*name.to_ascii_lowercase() {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => return Err(role.unknown("is not a role of Semantic Kernel")),
    })
}

fn item(node: &Node<'_>, reading: &mut Reading) -> Result<Option<Piece>, Fault> {
    let fields = node.object()?;
    let kind = fields.first(&["content_type", "$type"]);
    let kind = kind.ok_or_else(|| node.fault("has no `content_type` or `$type`"))?;
    fields.ignore(&["ai_model_id", "ModelId", "modelId", "encoding", "choice_index", "index", "status"]);
    let name = kind.text()?;
    // Streamed items have the same keys under a prefixed type.
    let name = name.strip_prefix("streaming_").or_else(|| name.strip_prefix("Streaming")).unwrap_or(&name);
    let text = || {
        let text = fields.first(&["text", "Text"]);
        text.map(|text| text.text()).transpose()?.ok_or_else(|| node.fault("has no `text`"))
    };
    let metadata = fields.first(&["metadata", "Metadata"]);
    let piece = match name {
        "text" | "TextContent" | "ActionContent" => Some(Piece::text(text()?)),
        "reasoning" | "ReasoningContent" => Piece::thought(text()?),
        "image" | "ImageContent" => Some(file(&fields, "image/")?),
        "audio" | "AudioContent" => Some(file(&fields, "audio/")?),
        "binary" | "BinaryContent" => Some(file(&fields, "")?),
        "file_reference" | "FileReferenceContent" => {
            fields.ignore(&["tools", "Tools", "data_source"]);
            let id = fields
                .first(&["file_id", "FileId", "fileId"])
                .ok_or_else(|| node.fault("has no `file_id`"))?;
            media::known_part("", Source::Id(id.text()?), None).map(Piece::Part)
        }
        "function_call" | "FunctionCallContent" | "FunctionCallUpdateContent" => Some(Piece::Call(Call {
            id: fields.first(&["id", "Id", "CallId", "callId"]).map(|id| id.name()).transpose()?,
            name: function(&fields)?.ok_or_else(|| node.fault("has no function name"))?,
            arguments: arguments(fields.first(&["arguments", "Arguments"])),
            signature: None,
        })),
        "function_result" | "FunctionResultContent" => {
            let result = fields.first(&["result", "Result"]);
            let id = fields.first(&["id", "CallId", "callId", "call_id"]);
            let is_failed = metadata
                .is_some_and(|metadata| metadata.object().is_ok_and(|metadata| metadata.has("exception")));
            let text = result.map(|result| result.text_or_json()).unwrap_or_default();
            let id = id.map(|id| id.name()).transpose()?;
            Some(Piece::Answer(Answer::text(id, function(&fields)?, text).failed(is_failed)))
        }
        "annotation" | "AnnotationContent" => {
            fields.ignore_all();
            reading.note_once("annotations, which quote files, are left out");
            None
        }
        _ => return Err(kind.unknown("is not known content of Semantic Kernel")),
    };
    fields.finish(reading)?;
    Ok(piece)
}

/// Returns the name of a function for the model: the name of its plugin and its own.
fn function(fields: &Fields<'_>) -> Result<Option<String>, Fault> {
    let read = |keys: &[&'static str]| fields.first(keys).map(|name| name.text()).transpose();
    let whole = read(&["name", "Name"])?;
    let plugin = read(&["plugin_name", "PluginName", "pluginName"])?.filter(|plugin| !plugin.is_empty());
    let own = read(&["function_name", "FunctionName", "functionName"])?;
    let joined = own.map(|own| plugin.map(|plugin| format!("{plugin}-{own}")).unwrap_or(own));
    Ok(whole.filter(|name| !name.is_empty()).or(joined))
}

fn file(fields: &Fields<'_>, kind: &str) -> Result<Piece, Fault> {
    let read = |keys: &[&'static str]| {
        let text = fields.first(keys).map(|text| text.text()).transpose()?;
        Ok::<_, Fault>(text.filter(|text| !text.is_empty()))
    };
    let media_type = read(&["mime_type", "MimeType", "mimeType"])?;
    let data = read(&["data_uri", "DataUri", "dataUri", "data", "Data"])?;
    let url = read(&["uri", "Uri"])?;
    fields.ignore(&["data_format"]);
    let of_data = data.as_deref().and_then(|data| data.strip_prefix("data:")?.split([';', ',']).next());
    let media_type = media_type.or_else(|| of_data.map(str::to_owned));
    // A media type that contradicts the kind of the item is ignored.
    let media_type = media_type.filter(|own| own.starts_with(kind)).unwrap_or_else(|| match kind {
        "image/" => media::image_type(data.as_deref().unwrap_or_default()).to_owned(),
        kind => kind.to_owned(),
    });
    let source = match (data, url) {
        (Some(data), _) => Source::Data(data),
        (None, Some(url)) => Source::Url(url),
        (None, None) => {
            return Err(fields.node().fault("has no bytes; expected `data`, `data_uri` or `uri`"));
        }
    };
    media::known_part(&media_type, source, None).map(Piece::Part).ok_or_else(|| {
        fields.node().fault(format!("is a file of the type `{media_type}`, which is not read"))
    })
}
