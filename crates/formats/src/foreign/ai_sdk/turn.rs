//! The steps of an assistant message: texts and calls, then the results.

use super::super::talk::{Answer, Call, Piece};
use context_window::{WireFormat, message::Reasoning, text::plain};
use serde_json::Value;

/// The pieces of a message in the order of events. The results of a step come after all its calls.
pub(super) struct Turn {
    /// True if the message marks the start of its steps.
    has_steps: bool,
    pieces: Vec<Piece>,
    answers: Vec<Answer>,
    /// True if the current step has a result of a tool that the provider ran.
    is_hosted: bool,
}

impl Turn {
    pub(super) fn new(has_steps: bool) -> Self {
        Self { has_steps, pieces: Vec::new(), answers: Vec::new(), is_hosted: false }
    }

    /// Ends a step.
    pub(super) fn end_step(&mut self) {
        self.pieces.extend(self.answers.drain(..).map(Piece::Answer));
        self.is_hosted = false;
    }

    /// Adds text or reasoning. It starts a new step if the results before it came from the provider, or if
    /// the message does not mark its steps.
    pub(super) fn say(&mut self, piece: Piece) {
        if self.is_hosted || !self.has_steps {
            self.end_step();
        }
        match (self.pieces.last_mut(), piece) {
            (Some(Piece::Thought(before)), Piece::Thought(more)) if is_same(before, &more) => {
                // The parts of one reasoning item are sent with a single signature, the last one.
                let parts = [std::mem::take(&mut before.text), more.text];
                before.text =
                    parts.iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join("\n\n");
                before.signature = more.signature.or(before.signature.take());
            }
            (_, piece) => self.pieces.push(piece),
        }
    }

    /// Adds a call, with its result if present.
    pub(super) fn call(&mut self, call: Call, answer: Option<Answer>, is_hosted: bool) {
        self.pieces.push(Piece::Call(call));
        if let Some(answer) = answer {
            self.answer(answer, is_hosted);
        }
    }

    /// Adds a result.
    pub(super) fn answer(&mut self, answer: Answer, is_hosted: bool) {
        // Results wait for the end of the step, because all its calls must come before them.
        self.answers.push(answer);
        // A provider's tool runs within the reply, so later text of the step comes after its result.
        self.is_hosted |= is_hosted;
    }

    /// Returns the pieces.
    pub(super) fn into_pieces(mut self) -> Vec<Piece> {
        self.end_step();
        self.pieces
    }

    /// Ends the step, and returns and removes the pieces so far.
    pub(super) fn take(&mut self) -> Vec<Piece> {
        self.end_step();
        std::mem::take(&mut self.pieces)
    }
}

/// Checks whether two reasoning pieces are parts of one item, from their ids.
fn is_same(one: &Reasoning, other: &Reasoning) -> bool {
    one.id.is_some() && one.id == other.id && one.wire_format == other.wire_format
}

/// Creates a reasoning piece from a text and the provider's metadata. Returns `None` if both are empty.
pub(super) fn thought(text: String, beside: Option<&Value>) -> Option<Piece> {
    let seal = |key: &str| {
        let of =
            |metadata: &Value| metadata.get(key)?.as_str().filter(|seal| !seal.is_empty()).map(str::to_owned);
        beside?.as_object()?.values().find_map(of)
    };
    if let Some(data) = seal("redactedData") {
        return Some(Piece::Thought(Reasoning::signed(WireFormat::Anthropic, "", data).into_redacted()));
    }
    if let Some(signature) = seal("signature") {
        return Some(Piece::Thought(Reasoning::signed(WireFormat::Anthropic, text, signature)));
    }
    let id = seal("itemId");
    if let Some(encrypted) = seal("reasoningEncryptedContent") {
        let sealed = Reasoning::signed(WireFormat::OpenAiResponses, text, encrypted);
        return Some(Piece::Thought(match id {
            Some(id) => sealed.with_id(id),
            None => sealed,
        }));
    }
    Piece::thought(text)
}

/// Returns the signature that Gemini returned with a call.
pub(super) fn signature(beside: Option<&Value>) -> Option<String> {
    let of = |metadata: &Value| metadata.get("thoughtSignature")?.as_str().map(str::to_owned);
    beside?.as_object()?.values().find_map(of)
}

/// Counts of content that is not sent to a model.
#[derive(Default)]
pub(super) struct Left {
    pub(super) sources: u64,
    pub(super) data: u64,
    pub(super) unfinished: u64,
    pub(super) approvals: u64,
}

impl Left {
    /// Returns a note for each kind with a count above 0.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let note = |(count, one, many): (u64, &str, &str)| {
            let what = if count == 1 { one } else { many };
            (count > 0).then(|| format!("{} {what}", plain::grouped(count)))
        };
        [
            (
                self.sources,
                "source is left out: it is not sent to a model",
                "sources are left out: they are not sent to a model",
            ),
            (
                self.data,
                "data part is left out: the SDK does not send it to a model",
                "data parts are left out: the SDK does not send them to a model",
            ),
            (
                self.unfinished,
                "call is left out: its input is incomplete",
                "calls are left out: their inputs are incomplete",
            ),
            (
                self.approvals,
                "approval is left out: it is not sent to a model",
                "approvals are left out: they are not sent to a model",
            ),
        ]
        .into_iter()
        .filter_map(note)
        .collect::<Vec<_>>()
        .into_iter()
    }
}
