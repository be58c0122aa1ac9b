//! Parts of opencode messages.

use super::Opencode;
use crate::foreign::{
    node::{Fault, Fields, Node, Reading},
    talk::{Answer, Call, Piece, arguments},
};
use context_window::{Part, WireFormat, message::Reasoning};
use serde_json::json;

impl Opencode {
    /// Reads a part.
    pub(super) fn part(
        &mut self,
        node: &Node<'_>,
        is_user: bool,
        reading: &mut Reading,
    ) -> Result<Said, Fault> {
        let fields = node.object()?;
        fields.ignore(&["id", "sessionID", "messageID", "time", "synthetic"]);
        let kind = fields.need("type")?;
        let said = match &*kind.text()? {
            "text" => {
                fields.ignore(&["metadata"]);
                let text = fields.need("text")?.text()?;
                let is_ignored = is_user && fields.is_true("ignored");
                self.ignored += usize::from(is_ignored);
                if is_ignored || text.is_empty() { Said::Nothing } else { Said::Piece(Piece::text(text)) }
            }
            "reasoning" => {
                let about = fields.get("metadata");
                let thought = thought(fields.need("text")?.text()?, about)?;
                thought.map_or(Said::Nothing, |thought| Said::Piece(Piece::Thought(thought)))
            }
            "tool" => {
                let (call, answer) = self.call(&fields, reading)?;
                Said::Called(call, answer)
            }
            "file" => self.file(&fields)?.map_or(Said::Nothing, |part| Said::Piece(Piece::Part(part))),
            "compaction" => {
                fields.ignore(&["auto", "overflow", "tail_start_id"]);
                // opencode sends this text in place of the part.
                Said::Piece(Piece::text("What did we do so far?"))
            }
            "subtask" => {
                fields.ignore(&["prompt", "description", "agent", "model", "command"]);
                // opencode sends this text in place of the part.
                Said::Piece(Piece::text("The following tool was executed by the user"))
            }
            "step-start" | "step-finish" => {
                fields.ignore_all();
                Said::Step
            }
            aside @ ("retry" | "snapshot" | "patch" | "agent") => {
                fields.ignore_all();
                if aside == "retry" {
                    self.aside.count(aside);
                }
                Said::Nothing
            }
            _ => return Err(kind.unknown("is not a known part of opencode")),
        };
        fields.finish(reading)?;
        Ok(said)
    }

    /// Reads a call with its result, in the form that opencode sends.
    fn call(&mut self, fields: &Fields<'_>, reading: &mut Reading) -> Result<(Call, Answer), Fault> {
        let state = fields.need("state")?.object()?;
        state.ignore(&["title", "time", "raw"]);
        let about = fields.get("metadata").and_then(|about| about.object().ok()?.get("google")?.as_object());
        let call = Call {
            id: fields.name("callID")?,
            name: fields.need("tool")?.text()?,
            arguments: arguments(state.get("input")),
            signature: about.and_then(|about| about.text("thoughtSignature")),
        };
        let text = |text: String| Answer::text(call.id.clone(), Some(call.name.clone()), text);
        let status = state.need("status")?;
        let answer = match &*status.text()? {
            "completed" => {
                state.ignore(&["metadata"]);
                let is_cleared =
                    state.get("time").and_then(|time| time.object().ok()?.get("compacted")).is_some();
                let output = state.need("output")?.text()?;
                let files =
                    state.get("attachments").map(|files| files.list()).transpose()?.unwrap_or_default();
                // opencode sends this text in place of a cleared result.
                if is_cleared {
                    self.cleared += 1;
                    text("[Old tool result content cleared]".into())
                } else {
                    let mut answer = text(output);
                    let files = reading.each(files, |node, _| {
                        let file = node.object()?;
                        file.ignore(&["id", "sessionID", "messageID", "type"]);
                        self.file(&file)
                    })?;
                    answer.parts.extend(files.into_iter().flatten());
                    answer
                }
            }
            "error" => {
                let about = state.get("metadata").map(|about| about.object()).transpose()?;
                let error = state.need("error")?.text()?;
                let output = about.filter(|about| about.is_true("interrupted"));
                match output.and_then(|about| about.text("output").ok()?) {
                    Some(output) => text(output),
                    None => text(error).failed(true),
                }
            }
            "pending" | "running" => {
                state.ignore(&["metadata"]);
                text("[Tool execution was interrupted]".into()).failed(true)
            }
            _ => {
                return Err(
                    status.unknown("is not a state of a call; expected completed, error, running or pending")
                );
            }
        };
        state.finish(reading)?;
        Ok((call, answer))
    }

    /// Reads a file. Returns `None` for a file whose text is in another part, and for a file that is not in
    /// the session.
    fn file(&mut self, fields: &Fields<'_>) -> Result<Option<Part>, Fault> {
        fields.ignore(&["source"]);
        let (mime, url) = (fields.need("mime")?.text()?, fields.need("url")?.text()?);
        let name = fields.text("filename")?;
        if mime == "text/plain" || mime == "application/x-directory" {
            return Ok(None);
        }
        if url.starts_with("file:") {
            self.elsewhere += 1;
            return Ok(None);
        }
        if mime.starts_with("image/") {
            return Ok(Some(Part::Image { url, detail: None }));
        }
        let json = json!({ "type": "file", "file": { "filename": name, "file_data": url } }).to_string();
        Ok(Some(Part::Opaque { wire_format: WireFormat::OpenAiChat, json }))
    }
}

/// The content of a part.
pub(super) enum Said {
    Nothing,
    /// The start or end of a step of the reply.
    Step,
    Piece(Piece),
    Called(Call, Answer),
}

/// Creates reasoning from a text and the provider's signature. Returns `None` if both are empty.
fn thought(text: String, about: Option<Node<'_>>) -> Result<Option<Reasoning>, Fault> {
    let about = about.map(|about| about.object()).transpose()?;
    let of = |provider: &'static str| {
        let own = about.as_ref()?.get(provider)?;
        own.as_object()
    };
    if let Some(own) = of("anthropic") {
        if let Some(data) = own.text("redactedData") {
            return Ok(Some(Reasoning::signed(WireFormat::Anthropic, "", data).into_redacted()));
        }
        if let Some(signature) = own.text("signature") {
            return Ok(Some(Reasoning::signed(WireFormat::Anthropic, text, signature)));
        }
    }
    if let Some(own) = of("openai")
        && let Some(seal) = own.text("reasoningEncryptedContent")
    {
        let reasoning = Reasoning::signed(WireFormat::OpenAiResponses, text, seal);
        return Ok(Some(match own.text("itemId") {
            Some(id) => reasoning.with_id(id),
            None => reasoning,
        }));
    }
    Ok(Some(text).filter(|text| !text.trim().is_empty()).map(Reasoning::text))
}
