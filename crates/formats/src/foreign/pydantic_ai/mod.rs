//! Messages of Pydantic AI: requests and responses, whose `parts` have a `part_kind`.

use super::{
    FormatReader,
    node::{Fault, Fields, Node, Reading},
    shape::{Shape, text},
    talk::{Answer, Entry, Piece, Step, Talk},
};
use crate::{format::FileFormat, session::compacted::Known};
use context_window::Role;
use serde_json::Value;

mod parts;

pub(super) const READER: FormatReader = FormatReader::new(FileFormat::PydanticAi, fits, read);

fn fits(shape: &Shape) -> bool {
    let is_message = |message: &Value| {
        matches!(text(message, "kind"), "request" | "response")
            && message.get("parts").is_some_and(Value::is_array)
            && message.get("role").is_none()
    };
    let is_one = shape.container == "parts" && shape.any_has(&["part_kind"]);
    is_one
        || shape.messages.iter().any(is_message)
        || shape.any_part("parts", |part| !text(part, "part_kind").is_empty())
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let messages = if node.is_list() {
        node.list()?
    } else {
        let fields = node.object()?;
        if fields.has("parts") {
            vec![node.clone()]
        } else {
            let list = fields.need("messages")?.list()?;
            fields.finish(reading)?;
            list
        }
    };
    // A system prompt of the scope `request` is sent only if it belongs to the last request.
    let last = messages.len().saturating_sub(1);
    let mut history = History::default();
    let mut at = 0;
    let steps = reading.each(messages, |node, reading| {
        at += 1;
        history.message(node, at - 1 == last, reading)
    })?;
    if history.replaced > 0 {
        reading.note("instructions of earlier requests, which the last one replaces, are left out");
    }
    if history.passed > 0 {
        reading.note("system prompts of single earlier requests are left out");
    }
    Ok(Talk {
        model: history.model,
        system: history.instructions.into_iter().collect(),
        steps: steps.into_iter().flatten().collect(),
        ..Talk::default()
    })
}

/// The data that later messages change.
#[derive(Default)]
struct History {
    model: Option<String>,
    /// The instructions of the last request. Each request contains all instructions.
    instructions: Option<String>,
    /// The number of instructions that a later request replaced.
    replaced: u64,
    /// The number of system prompts that belonged to one earlier request.
    passed: u64,
}

impl History {
    fn message(&mut self, node: &Node<'_>, is_last: bool, reading: &mut Reading) -> Result<Vec<Step>, Fault> {
        let fields = node.object()?;
        let kind = fields.need("kind")?;
        let is_request = match &*kind.text()? {
            "request" => true,
            "response" => false,
            _ => return Err(kind.unknown("is not a kind of message; expected request or response")),
        };
        fields.ignore(&[
            "usage",
            "metadata",
            "provider_details",
            "vendor_details",
            "failed_attempts",
            "state",
        ]);
        if is_request {
            let own = fields.text("instructions")?;
            // A request without instructions also replaces the earlier ones.
            let before = std::mem::replace(&mut self.instructions, own);
            self.replaced += u64::from(before.is_some() && before != self.instructions);
        } else {
            self.model = fields.text("model_name")?.or(self.model.take());
        }
        let parts = fields.need("parts")?.list()?;
        let role = if is_request { Role::User } else { Role::Assistant };
        let mut steps = Vec::new();
        let mut open: Vec<Piece> = Vec::new();
        for read in reading.each(parts, |part, reading| self.part(part, is_request, is_last, reading))? {
            match read {
                Read::Pieces(pieces) => open.extend(pieces),
                // A system prompt splits a message, because the log has no system part inside a user message.
                Read::System(text) => {
                    steps.extend(said(role, &mut open));
                    steps.push(Step::Entry(Entry::new(Role::System, vec![Piece::text(text)])));
                }
                Read::Compaction(summary) => {
                    steps.extend(said(role, &mut open));
                    let known = Known { summary: Some(summary), ..Known::default() };
                    steps.push(Step::Compaction(Box::new(Ok(known.into()))));
                }
            }
        }
        fields.finish(reading)?;
        steps.extend(said(role, &mut open));
        Ok(steps)
    }

    fn part(
        &mut self,
        node: &Node<'_>,
        is_request: bool,
        is_last: bool,
        reading: &mut Reading,
    ) -> Result<Read, Fault> {
        let fields = node.object()?;
        let kind = fields.need("part_kind")?;
        fields.ignore(&["timestamp", "metadata", "content_file_digests", "citations", "provider_details"]);
        let one = |piece| Read::Pieces(vec![piece]);
        let read = match (&*kind.text()?, is_request) {
            ("system-prompt", true) => {
                let text = fields.need("content")?.text()?;
                fields.ignore(&["dynamic_ref", "context_id"]);
                match fields.text("scope")?.as_deref() {
                    None | Some("conversation") => Read::System(text),
                    Some("request") if is_last => Read::System(text),
                    Some("request") => {
                        self.passed += 1;
                        Read::nothing()
                    }
                    Some(_) => {
                        return Err(node.fault("has an unknown `scope`; expected conversation or request"));
                    }
                }
            }
            ("user-prompt", true) => Read::Pieces(parts::prompt(&fields.need("content")?, reading)?),
            ("tool-return", true) | ("builtin-tool-return", false) => {
                one(Piece::Answer(parts::answer(&fields, reading)?))
            }
            ("retry-prompt", true) => one(parts::retry(&fields)?),
            ("retry-feedback", true) => {
                fields.ignore(&["retry"]);
                one(Piece::text(fields.need("content")?.text_or_json()))
            }
            ("compaction", _) => parts::compaction(&fields, is_request)?,
            ("speech", _) => one(parts::speech(&fields)?),
            ("instruction-delta", true) => {
                fields.ignore(&["id", "base_hash"]);
                match fields.text("content")? {
                    Some(text) => Read::System(text),
                    None => Read::nothing(),
                }
            }
            (
                "tool-availability-delta"
                | "capability-load-delta"
                | "model-settings-delta"
                | "instruction-baseline",
                true,
            ) => {
                // These are records for the application. The model sees other parts.
                fields.ignore_all();
                Read::nothing()
            }
            ("text", false) => one(Piece::text(fields.need("content")?.text()?)),
            ("thinking", false) => Read::Pieces(parts::thought(&fields)?.into_iter().collect()),
            ("tool-call" | "builtin-tool-call", false) => one(Piece::Call(parts::call(&fields)?)),
            ("file", false) => one(parts::file(&fields.need("content")?, reading)?),
            _ => return Err(kind.unknown("is not a known part of such a message")),
        };
        fields.ignore(&["id", "provider_name", "tool_kind"]);
        fields.finish(reading)?;
        Ok(read)
    }
}

/// Returns a message of the collected pieces, and empties them. Returns `None` if there are none.
fn said(role: Role, open: &mut Vec<Piece>) -> Option<Step> {
    (!open.is_empty()).then(|| Step::Entry(Entry::new(role, std::mem::take(open))))
}

/// The content of one part.
enum Read {
    Pieces(Vec<Piece>),
    System(String),
    /// The provider's summary of everything before it.
    Compaction(String),
}

impl Read {
    fn nothing() -> Self {
        Self::Pieces(Vec::new())
    }
}
