//! Counter and framing together: what a message, a document or a tool costs as it is sent (rule N3).

use crate::{
    error::Error,
    item::RagItem,
    message::{Message, Role, Tool},
    model::{Framing, Model},
    tokens::{Certainty, TokenCount, TokenCounter, Weight},
    wording,
};
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(feature = "chat-template")]
mod template;
mod tools;

#[cfg(feature = "chat-template")]
use {crate::message::Prompt, template::Rendered};

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

/// What is counted around texts; tokens.
#[derive(Debug, Clone, Copy, Default)]
struct Frames {
    /// A message without content, by role in the order of `ROLES`.
    roles: [u64; ROLES.len()],
    /// Before the first message.
    start: u64,
    /// After the last one, where the reply begins.
    priming: u64,
    /// A tool call.
    call: u64,
    /// A speaker's name.
    name: u64,
}

impl Frames {
    /// Of `OpenAI` Chat, or what a counter's own rule puts in its place.
    fn of_openai(counter: &TokenCounter) -> Result<Self, Error> {
        let mut roles = [0; ROLES.len()];
        for (frame, role) in roles.iter_mut().zip(ROLES) {
            *frame = match counter.per_message() {
                Some(tokens) => tokens,
                None => 3 + counter.count(role.name())?.n,
            };
        }
        let priming = if counter.per_message().is_some() { 0 } else { 3 };
        Ok(Self { roles, start: 0, priming, call: PER_CALL, name: PER_NAME })
    }
}

/// Tool definitions, and what they cost.
type LastTools = Option<(Vec<Tool>, TokenCount)>;

/// Weighs what is sent to one target.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    counter: TokenCounter,
    frames: Frames,
    /// The block around the documents: a message of its own, and the lines at both ends.
    block: u64,
    /// The tool definitions that were counted last: an application declares the same ones with every request.
    tools: Arc<Mutex<LastTools>>,
    #[cfg(feature = "chat-template")]
    rendered: Option<Arc<Rendered>>,
}

impl Meter {
    pub(crate) fn new(counter: TokenCounter, model: &Model) -> Result<Self, Error> {
        #[cfg(feature = "chat-template")]
        let rendered = model.template.as_ref().map(Rendered::new).transpose()?;
        let frames = match model.framing {
            Framing::Plain => Frames::default(),
            #[cfg(feature = "chat-template")]
            Framing::ChatTemplate if let Some(rendered) = &rendered => rendered.frames(&counter)?,
            _ => Frames::of_openai(&counter)?,
        };
        let lines = counter.count(wording::BLOCK_OPEN)?.n + counter.count(wording::BLOCK_CLOSE)?.n;
        let mut meter = Self {
            counter,
            frames,
            block: lines,
            tools: Arc::default(),
            #[cfg(feature = "chat-template")]
            rendered: rendered.map(Arc::new),
        };
        meter.block += meter.role_frame(Role::User);
        Ok(meter)
    }

    pub(crate) fn counter(&self) -> &TokenCounter {
        &self.counter
    }

    /// How sure a piece's number is that was counted in full: what a template puts around it is only learnt.
    pub(crate) fn certainty(&self) -> Certainty {
        if self.is_rendered() { Certainty::Estimate } else { self.counter.certainty() }
    }

    /// The same for one that was counted no further than to a limit.
    pub(crate) fn at_least(&self) -> Certainty {
        if self.is_rendered() { Certainty::Estimate } else { self.counter.at_least() }
    }

    /// A number of this counter's that was counted in full.
    pub(crate) fn counted(&self, n: u64) -> TokenCount {
        TokenCount { n, certainty: self.certainty() }
    }

    /// The same for a message: what is not text is counted at the most it can be.
    pub(crate) fn counted_message(&self, message: &Message, n: u64) -> TokenCount {
        TokenCount { n, certainty: self.certainty().max(not_text(message)) }
    }

    /// What is at most sent for so many messages of so many bytes in all (see [`bytes`]).
    pub(crate) fn bound(&self, bytes: u64, messages: u64) -> TokenCount {
        let frame = self.frames.roles.iter().max().copied().unwrap_or_default();
        let sure = self.certainty() != Certainty::Estimate;
        let proven = self.counter.most(bytes).filter(|_| sure);
        TokenCount {
            n: proven.unwrap_or(bytes).saturating_add(frame.saturating_mul(messages)),
            certainty: if proven.is_some() { Certainty::UpperBound } else { Certainty::Estimate },
        }
    }

    /// A message as one of its own; the exact count of its texts is remembered beside it.
    pub(crate) fn message(&self, message: &Message, limit: u64) -> Result<Weight, Error> {
        let frame = self.frame(message);
        let Some(limit) = limit.checked_sub(frame) else { return Ok(Weight::Over) };
        let whole = |texts: u64| Weight::Exactly(texts.saturating_add(frame));
        if let Some(n) = message.remembered(self.counter.tag()) {
            return Ok(if n <= limit { whole(n) } else { Weight::Over });
        }
        let mut sum: u64 = 0;
        for text in message.texts() {
            match self.counter.count_to(text, limit - sum)? {
                Weight::Exactly(n) => sum += n,
                Weight::Over => return Ok(Weight::Over),
            }
        }
        message.remember(self.counter.tag(), sum);
        Ok(whole(sum))
    }

    /// One document of the block, with its fence.
    pub(crate) fn document(&self, item: &RagItem, limit: u64) -> Result<Weight, Error> {
        // A text that is over the limit by its bytes alone is not even copied into its fence.
        if self.counter.surely_over(&item.text, limit) {
            return Ok(Weight::Over);
        }
        self.counter.count_recurring_to(&wording::document(item), limit)
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

    /// What stands before the first message.
    pub(crate) fn start(&self) -> u64 {
        self.frames.start
    }

    /// What primes the reply.
    pub(crate) fn priming(&self) -> u64 {
        self.frames.priming
    }

    /// The tool definitions, all together.
    pub(crate) fn tools(&self, tools: &[Tool]) -> Result<TokenCount, Error> {
        if tools.is_empty() {
            return Ok(self.counted(0));
        }
        // Whoever panicked here left a whole value behind.
        let last = || self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, count)) = last().as_ref().filter(|(known, _)| known == tools) {
            return Ok(*count);
        }
        let count = self.count_tools(tools)?;
        *last() = Some((tools.to_vec(), count));
        Ok(count)
    }

    #[cfg(feature = "chat-template")]
    fn count_tools(&self, tools: &[Tool]) -> Result<TokenCount, Error> {
        match &self.rendered {
            Some(rendered) => Ok(self.counted(rendered.tools(&self.counter, tools)?)),
            None => tools::count(&self.counter, tools),
        }
    }

    #[cfg(not(feature = "chat-template"))]
    fn count_tools(&self, tools: &[Tool]) -> Result<TokenCount, Error> {
        tools::count(&self.counter, tools)
    }

    /// Whether what is sent is known only once it is rendered as a whole.
    #[cfg(feature = "chat-template")]
    pub(crate) fn is_rendered(&self) -> bool {
        self.rendered.is_some()
    }

    #[cfg(not(feature = "chat-template"))]
    #[expect(clippy::unused_self, reason = "with chat templates it depends")]
    pub(crate) fn is_rendered(&self) -> bool {
        false
    }

    /// A whole prompt as rendered, where that is how it is sent (rule N3).
    #[cfg(feature = "chat-template")]
    pub(crate) fn whole(&self, prompt: &Prompt) -> Result<Option<TokenCount>, Error> {
        let Some(rendered) = &self.rendered else { return Ok(None) };
        let images: u64 = prompt.messages.iter().flat_map(Message::images).map(image).sum();
        let guessed = prompt.messages.iter().map(not_text).max().unwrap_or(Certainty::Exact);
        let n = rendered.prompt(&self.counter, prompt)? + images;
        Ok(Some(TokenCount { n, certainty: self.counter.certainty().max(guessed) }))
    }

    fn role_frame(&self, role: Role) -> u64 {
        ROLES.iter().position(|known| *known == role).map_or(0, |at| self.frames.roles[at])
    }

    /// Everything that is counted for a message beside its texts.
    fn frame(&self, message: &Message) -> u64 {
        let images: u64 = message.images().map(image).sum();
        let name = message.speaker().map_or(0, |_| self.frames.name);
        self.role_frame(message.role()) + images + name + self.frames.call * message.tool_calls().len() as u64
    }
}

/// How sure the number of a message is for what is not text in it: that is counted at the most it can be.
fn not_text(message: &Message) -> Certainty {
    let guessed = message.images().any(|detail| image(detail) == IMAGE_MOST) || message.has_opaque_parts();
    if guessed { Certainty::UpperBound } else { Certainty::Exact }
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
