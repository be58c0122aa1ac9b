//! Chat messages of `LlamaIndex`: `blocks` with a `block_type`, and what models wrote beside them in `additional_kwargs`.

use super::{
    Reader,
    node::{Fault, Fields, Node, Reading},
    shape::{Shape, text},
    talk::{Answer, Call, Entry, Piece, Step, Talk, arguments, data_url},
};
use crate::format::FileFormat;
use context_window::{Part, Role};

pub(super) const READER: Reader = Reader::new(FileFormat::LlamaIndex, fits, read);

fn fits(shape: &Shape) -> bool {
    shape.any_part("blocks", |block| !text(block, "block_type").is_empty())
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let messages = reading.each(node.list()?, message)?;
    Ok(Talk { steps: messages.into_iter().map(Step::Entry).collect(), ..Talk::default() })
}

fn message(node: &Node<'_>, reading: &mut Reading) -> Result<Entry, Fault> {
    let fields = node.object()?;
    let role = role(&fields)?;
    let beside = match fields.get("additional_kwargs") {
        Some(beside) => beside.object()?,
        None => Node::root("{}").object()?,
    };
    let blocks = fields.get("blocks").map(|blocks| blocks.list()).transpose()?.unwrap_or_default();
    let mut pieces = reading.each(blocks, block)?;
    let id = fields.name("id")?;
    if role == Role::Tool {
        let parts = pieces.into_iter().filter_map(|piece| match piece {
            Piece::Part(part) => Some(part),
            _ => None,
        });
        let answer = Answer {
            id: beside.name("tool_call_id")?,
            name: beside.text("name")?,
            parts: parts.collect(),
            is_failed: beside.is_true("is_error"),
        };
        pieces = vec![Piece::Answer(answer)];
    }
    beside.finish(reading)?;
    fields.finish(reading)?;
    Ok(Entry::new(node, role, pieces).with_id(id))
}

fn role(fields: &Fields<'_>) -> Result<Role, Fault> {
    let role = fields.need("role")?;
    Ok(match &*role.text()? {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" | "chatbot" | "model" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => return Err(role.fault("is no role of LlamaIndex")),
    })
}

fn block(node: &Node<'_>, reading: &mut Reading) -> Result<Piece, Fault> {
    let fields = node.object()?;
    let kind = fields.need("block_type")?;
    let piece = match &*kind.text()? {
        "text" => Piece::text(fields.need("text")?.text()?),
        "thinking" => {
            fields.ignore(&["num_tokens", "additional_information"]);
            let text = fields.text("content")?.unwrap_or_default();
            Piece::Thought(context_window::message::Reasoning::text(text))
        }
        "tool_call" => Piece::Call(Call {
            id: fields.name("tool_call_id")?,
            name: fields.need("tool_name")?.text()?,
            arguments: arguments(fields.get("tool_kwargs")),
            signature: None,
        }),
        "image" => {
            fields.ignore(&["path"]);
            let media_type = fields.text("image_mimetype")?.unwrap_or_else(|| "image/png".into());
            let url = match (fields.text("image")?, fields.text("url")?) {
                (Some(data), _) => data_url(&media_type, &data),
                (None, Some(url)) => url,
                (None, None) => return Err(node.fault("has no image; expected `image` or `url`")),
            };
            Piece::Part(Part::Image { url, detail: fields.text("detail")? })
        }
        _ => return Err(kind.fault("is no block of LlamaIndex that is known")),
    };
    fields.finish(reading)?;
    Ok(piece)
}
