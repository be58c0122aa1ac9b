//! Counter and framing together: what a message, a document or a tool costs as it is sent (rule N3).

use crate::{
    error::Error,
    item::RagItem,
    message::{Message, Role, Tool},
    model::Framing,
    tokens::{Certainty, TokenCount, TokenCounter, Weight},
    wording,
};

mod tools;

/// Tokens for a tool call beside its name and arguments: measured on the API's answers for function calls
/// (openai-chat-tokens 0.2.8, read 2026-11-21).
const PER_CALL: u64 = 3;
/// Tokens for a name beside its text (cookbook, as for [`Framing::OpenAiChat`]).
const PER_NAME: u64 = 1;
/// Tokens of an image: 85 at low detail, otherwise 85 and 170 for each tile of 512 pixels after scaling to
/// 2048 x 2048 and a short side of 768. Its size is not known here, so the most that can be stands for it: 8 tiles.
const IMAGE_LOW: u64 = 85;
const IMAGE_MOST: u64 = 85 + 8 * 170;

const ROLES: [Role; 5] = [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool];

/// Weighs what is sent to one target.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    counter: TokenCounter,
    framing: Framing,
    /// Tokens of a message without content, by role in the order of `ROLES`.
    frames: [u64; ROLES.len()],
    /// The block around the documents: a message of its own, and the lines at both ends.
    block: u64,
    tag: u32,
}

impl Meter {
    pub(crate) fn new(counter: TokenCounter, framing: Framing) -> Result<Self, Error> {
        let mut frames = [0; ROLES.len()];
        for (frame, role) in frames.iter_mut().zip(ROLES) {
            *frame = match (counter.per_message(), framing) {
                (_, Framing::Plain) => 0,
                (Some(tokens), _) => tokens,
                (None, _) => 3 + counter.count(role.name())?.n,
            };
        }
        let tag = counter.tag() << 2 | u32::from(framing == Framing::Plain);
        let lines = counter.count(wording::BLOCK_OPEN)?.n + counter.count(wording::BLOCK_CLOSE)?.n;
        let mut meter = Self { counter, framing, frames, block: lines, tag };
        meter.block += meter.role_frame(Role::User);
        Ok(meter)
    }

    pub(crate) fn counter(&self) -> &TokenCounter {
        &self.counter
    }

    /// A number of this counter's that was counted in full.
    pub(crate) fn counted(&self, n: u64) -> TokenCount {
        let certainty = self.counter.certainty();
        TokenCount { n, certainty }
    }

    /// The same for a message: what is not text is counted at the most it can be.
    pub(crate) fn counted_message(&self, message: &Message, n: u64) -> TokenCount {
        let exact = self.counted(n);
        let guessed =
            message.images().any(|detail| image(detail) == IMAGE_MOST) || message.has_opaque_parts();
        let certainty = if guessed { exact.certainty.max(Certainty::UpperBound) } else { exact.certainty };
        TokenCount { n, certainty }
    }

    /// What is at most sent for so many messages of so many bytes in all (see [`bytes`]).
    pub(crate) fn bound(&self, bytes: u64, messages: u64) -> TokenCount {
        let frame = self.frames.iter().max().copied().unwrap_or_default();
        let proven = self.counter.certainty() == Certainty::Exact && self.counter.bounded_by_bytes();
        TokenCount {
            n: bytes.saturating_add(frame.saturating_mul(messages)),
            certainty: if proven { Certainty::UpperBound } else { Certainty::Estimate },
        }
    }

    /// A message as one of its own; the exact count is remembered beside it.
    pub(crate) fn message(&self, message: &Message, limit: u64) -> Result<Weight, Error> {
        if let Some(n) = message.remembered(self.tag) {
            return Ok(if n <= limit { Weight::Exactly(n) } else { Weight::Over });
        }
        let mut sum = self.frame(message);
        for text in message.texts() {
            if sum > limit {
                return Ok(Weight::Over);
            }
            match self.counter.count_to(text, limit - sum)? {
                Weight::Exactly(n) => sum = sum.saturating_add(n),
                Weight::Over => return Ok(Weight::Over),
            }
        }
        if sum > limit {
            return Ok(Weight::Over);
        }
        message.remember(self.tag, sum);
        Ok(Weight::Exactly(sum))
    }

    /// One document of the block, with its fence.
    pub(crate) fn document(&self, item: &RagItem, limit: u64) -> Result<Weight, Error> {
        // A text that is over the limit by its bytes alone is not even copied into its fence.
        if self.counter.surely_over(&item.text, limit) {
            return Ok(Weight::Over);
        }
        self.counter.count_to(&wording::document(item), limit)
    }

    /// What the block around the documents costs, without any.
    pub(crate) fn block(&self) -> u64 {
        self.block
    }

    /// Whether the sum over the block and its documents is the count of the whole.
    pub(crate) fn block_adds_up(&self) -> bool {
        self.counter.adds_up_at_fences()
    }

    /// Tokens saved by each part that joins another message in place of being one.
    pub(crate) fn saved_by_merging(&self) -> u64 {
        self.role_frame(Role::User)
    }

    /// What primes the reply.
    pub(crate) fn priming(&self) -> u64 {
        match (self.framing, self.counter.per_message()) {
            (Framing::Plain, _) | (_, Some(_)) => 0,
            (_, None) => 3,
        }
    }

    /// The tool definitions, all together.
    pub(crate) fn tools(&self, tools: &[Tool]) -> Result<TokenCount, Error> {
        tools::count(&self.counter, tools)
    }

    fn role_frame(&self, role: Role) -> u64 {
        ROLES.iter().position(|known| *known == role).map_or(0, |at| self.frames[at])
    }

    /// Everything that is counted for a message beside its texts.
    fn frame(&self, message: &Message) -> u64 {
        let images: u64 = message.images().map(image).sum();
        let extras = match self.framing {
            Framing::Plain => 0,
            _ => {
                let name = message.speaker().map_or(0, |_| PER_NAME);
                name + PER_CALL * message.tool_calls().len() as u64
            }
        };
        self.role_frame(message.role()) + images + extras
    }
}

fn image(detail: Option<&str>) -> u64 {
    match detail {
        Some("low") => IMAGE_LOW,
        _ => IMAGE_MOST,
    }
}

/// Bytes that bound the tokens of a message without its frame: texts, and room for names, calls and images.
pub(crate) fn bytes(message: &Message) -> u64 {
    let texts: u64 = message.texts().map(|text| text.len() as u64).sum();
    let images: u64 = message.images().map(image).sum();
    let name = message.speaker().map_or(0, |_| PER_NAME);
    texts + images + name + PER_CALL * message.tool_calls().len() as u64
}

/// The same bound for a document with its fence.
pub(crate) fn document_bytes(item: &RagItem) -> u64 {
    // Escapes at worst lengthen `"` to 6 bytes in id and origin, and `<d` by one byte in the text.
    let origin = item.origin.as_deref().map_or(0, str::len);
    (item.text.len() * 2 + (item.id.as_str().len() + origin) * 6 + 64) as u64
}
