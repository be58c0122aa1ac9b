//! `api_conversation_history.json` of Roo Code. Messages that it condensed or removed to make room stay in
//! the file with marks.

use super::{
    FormatReader,
    node::{Fault, Node, Reading},
    shape::{Shape, text},
    talk::Talk,
    task::Task,
};
use crate::format::FileFormat;
use context_window::WireFormat;
use std::collections::BTreeSet;

pub(super) const READER: FormatReader = FormatReader::new(FileFormat::Roo, fits, read);

/// Keys that only Roo Code writes.
const OWN: [&str; 6] =
    ["condenseParent", "condenseId", "truncationParent", "truncationId", "isSummary", "isTruncationMarker"];

fn fits(shape: &Shape) -> bool {
    let is_marked = |key: &&str| shape.any_has(&["role", key]);
    let is_message = |message: &serde_json::Value| {
        matches!(text(message, "role"), "user" | "assistant") || text(message, "type") == "reasoning"
    };
    let is_timed = |message: &&serde_json::Value| message.get("ts").is_some_and(serde_json::Value::is_number);
    let is_of_cline =
        |message: &serde_json::Value| message.get("modelInfo").is_some() || message.get("metrics").is_some();
    let timed = shape.messages.iter().filter(is_timed).count();
    let has_blocks = shape.any_part("content", |block| !text(block, "type").is_empty());
    let are_timed = has_blocks && 2 * timed > shape.messages.len() && shape.messages.iter().all(is_message);
    shape.container.is_empty()
        && !shape.messages.iter().any(is_of_cline)
        && (OWN.iter().any(is_marked) || are_timed)
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let all = node.list()?;
    let marks: Vec<Marks> = all.iter().map(Marks::read).collect::<Result<_, _>>()?;
    let fates = fates(&marks);
    let count = |fate: Fate| fates.iter().filter(|own| **own == fate).count();
    reading.note_count(
        count(Fate::Condensed),
        "message that Roo Code condensed is left out: its summary replaces it",
        "messages that Roo Code condensed are left out: their summary replaces them",
    );
    reading.note_count(
        count(Fate::Truncated),
        "message removed by Roo Code for lack of space is left out",
        "messages removed by Roo Code for lack of space are left out",
    );
    let total = all.len();
    let kept: Vec<Node<'_>> =
        all.into_iter().zip(&fates).filter(|(_, fate)| **fate == Fate::Sent).map(|(node, _)| node).collect();
    let mut task = Task::new(&kept, kept.len() == total);
    let steps = reading.each(kept, |node, reading| task.message(node, reading))?;
    task.notes(reading);
    let steps = steps.into_iter().flatten().collect();
    // Logs of other applications may have times too, so the wire format needs another sign.
    let has = |words: &[&str]| words.iter().any(|word| node.json().contains(&format!("\"{word}\"")));
    let is_anthropic = has(&["tool_use", "tool_result", "thinking", "base64"]) || has(&OWN);
    Ok(Talk { wire_format: is_anthropic.then_some(WireFormat::Anthropic), steps, ..Talk::default() })
}

/// The marks of a message.
struct Marks {
    is_user: bool,
    is_summary: bool,
    condense_id: Option<String>,
    condense_parent: Option<String>,
    truncation_id: Option<String>,
    truncation_parent: Option<String>,
}

impl Marks {
    fn read(node: &Node<'_>) -> Result<Self, Fault> {
        let fields = node.object()?;
        let role = fields.get("role").map(|role| role.text()).transpose()?;
        let is_marker = fields.is_true("isTruncationMarker");
        Ok(Self {
            is_user: role.as_deref() == Some("user"),
            is_summary: fields.is_true("isSummary"),
            condense_id: fields.text("condenseId")?,
            condense_parent: fields.text("condenseParent")?,
            truncation_id: fields.text("truncationId")?.filter(|_| is_marker),
            truncation_parent: fields.text("truncationParent")?,
        })
    }
}

/// The fate of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Sent,
    Condensed,
    Truncated,
}

/// Returns the fate of each message by the rules of Roo Code. A missing parent hides nothing, because the
/// user went back to a point before it.
fn fates(all: &[Marks]) -> Vec<Fate> {
    let last = all.iter().rposition(|marks| marks.is_summary);
    let first = last.unwrap_or_default();
    let summaries: BTreeSet<&str> = all
        .iter()
        .filter(|marks| marks.is_summary)
        .filter_map(|marks| marks.condense_id.as_deref())
        .collect();
    let markers: BTreeSet<&str> =
        all[first..].iter().filter_map(|marks| marks.truncation_id.as_deref()).collect();
    let names =
        |set: &BTreeSet<&str>, parent: &Option<String>| parent.as_deref().is_some_and(|id| set.contains(id));
    // Older versions write the summary as an assistant message, and send the task (the first message) before
    // it.
    let keeps_task = all.get(first).is_some_and(|summary| !summary.is_user);
    let fate = |(at, marks): (usize, &Marks)| {
        let is_task = at == 0 && keeps_task && marks.is_user && marks.condense_parent.is_none();
        if at < first && !is_task || last.is_none() && names(&summaries, &marks.condense_parent) {
            Fate::Condensed
        } else if names(&markers, &marks.truncation_parent) {
            Fate::Truncated
        } else {
            Fate::Sent
        }
    };
    all.iter().enumerate().map(fate).collect()
}
