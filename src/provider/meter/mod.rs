//! Token counts of messages, documents and tools in the form in which they are sent. A meter combines a
//! counter with a wire format (counts match the sent text, rule N3).

use crate::{
    config::{DocumentTemplate, HeaderTemplate},
    error::{Error, Repr},
    message::{Message, Reasoning, Role, Tool, WireFormat},
    provider::{
        conform::{TargetProfile, TurnPosition},
        media_prices::MediaPrices,
        model::{Model, WireFormatCosts},
        sent_document::{BlockLayout, SentFormat},
        weight::Weight,
        wording,
    },
    tokens::{Certainty, TokenCount, TokenCounter},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod bounds;
mod declared;
mod documents;
#[cfg(feature = "chat-template")]
mod template;
mod tools;

#[cfg(test)]
pub(crate) use bounds::most_tokens;
pub(crate) use bounds::text_bytes;
pub use bounds::{bytes, bytes_of_a_user};
use declared::DeclaredTools;
pub(crate) use declared::{DeclarationNote, and_more};

#[cfg(feature = "chat-template")]
use {crate::message::Prompt, template::Rendered};

/// The bytes of encrypted reasoning per token. The text is hidden, and base64 has four bytes for three.
const BYTES_PER_HIDDEN_TOKEN: u64 = 4;

/// The roles in the order of their discriminants, which are the indices of `Frames::roles`.
const ROLES: [Role; 5] = [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool];
const _: () = {
    let mut at = 0;
    while at < ROLES.len() {
        assert!(ROLES[at] as usize == at);
        at += 1;
    }
};

/// The tokens that are counted around texts.
#[derive(Debug, Clone, Copy, Default)]
struct Frames {
    /// The tokens of a message without content, by role in the order of `ROLES`.
    roles: [u64; ROLES.len()],
    /// The tokens of a part of a message's content; plain text is one part.
    part: u64,
    /// The tokens before the first message.
    start: u64,
    /// The tokens after the last message, at the start of the reply.
    priming: u64,
    /// The tokens of a tool call.
    call: u64,
    /// The tokens of an author's name.
    name: u64,
    /// True if calls are separate items, so that a message of calls alone has no tokens of its own.
    calls_apart: bool,
    /// The tokens that the declaration of any tools adds.
    tools: u64,
}

impl Frames {
    /// Creates the tokens of a wire format, or those of the counter's own rule.
    fn from_costs(form: &WireFormatCosts, counter: &TokenCounter) -> Result<Self, Error> {
        let mut roles = [0; ROLES.len()];
        for (frame, role) in roles.iter_mut().zip(ROLES) {
            *frame = match counter.tokens_per_message() {
                Some(tokens) => tokens,
                None if form.role => form.message + counter.count(role.name())?.tokens,
                None => form.message,
            };
        }
        let priming = if counter.tokens_per_message().is_some() { 0 } else { form.priming };
        let WireFormatCosts { part, call, calls_apart, name, tools, .. } = *form;
        Ok(Self { roles, part, start: 0, priming, call, calls_apart, name, tools })
    }
}

/// A counter of the texts that are sent to one target.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    counter: TokenCounter,
    profile: TargetProfile,
    frames: Frames,
    media: MediaPrices,
    /// The tags of cached counts for messages whose sent form differs from the given one: in the current
    /// turn, and elsewhere.
    tags: [u32; 2],
    /// The attributes in the delimiters of a document.
    header: Arc<HeaderTemplate>,
    /// The block of documents.
    layout: Arc<BlockLayout>,
    /// The tokens of the text before native documents.
    introduction_tokens: u64,
    /// The tokens of the lines around documents that are text.
    lines: u64,
    /// The last declared tools. An application usually declares the same tools with every request.
    tools: Arc<Mutex<Option<Arc<DeclaredTools>>>>,
    #[cfg(feature = "chat-template")]
    rendered: Option<Arc<Rendered>>,
}

impl Meter {
    pub(crate) fn new(
        counter: TokenCounter,
        model: &Model,
        documents: &DocumentTemplate,
    ) -> Result<Self, Error> {
        let header = documents.parsed()?;
        let introduction = documents.introduction.trim();
        let introduction = (!introduction.is_empty()).then(|| introduction.into());
        // The template is compiled once per meter, since that is costly.
        #[cfg(feature = "chat-template")]
        let rendered = model.template.as_ref();
        #[cfg(feature = "chat-template")]
        let rendered = rendered.map(|template| Rendered::new(template, &counter)).transpose()?;
        let form = model.wire_format_costs();
        let frames = match model.wire_format {
            WireFormat::Plain => Frames::default(),
            _ => Frames::from_costs(&form, &counter)?,
        };
        #[cfg(feature = "chat-template")]
        let frames = match &rendered {
            Some(rendered) if model.wire_format == WireFormat::ChatTemplate => rendered.frames(&counter)?,
            _ => frames,
        };
        let open = wording::block_open(introduction.as_deref());
        let lines = counter.count(&open)?.tokens + counter.count(wording::BLOCK_CLOSE)?.tokens;
        Ok(Self {
            profile: TargetProfile::from_model(model),
            frames,
            media: model.media_prices(),
            tags: [TokenCounter::next_id(), TokenCounter::next_id()],
            header: Arc::new(header),
            introduction_tokens: introduction
                .as_deref()
                .map_or(Ok(0), |text| counter.count(text).map(|count| count.tokens))?,
            layout: Arc::new(BlockLayout { format: SentFormat::Text, introduction }),
            lines,
            counter,
            tools: Arc::default(),
            #[cfg(feature = "chat-template")]
            rendered: rendered.map(Arc::new),
        })
    }

    /// Returns the same meter for documents as content blocks.
    pub(crate) fn with_native_documents(&self, citations: bool) -> Self {
        let format = SentFormat::Native { citations };
        let introduction = self.layout.introduction.clone();
        Self { layout: Arc::new(BlockLayout { format, introduction }), ..self.clone() }
    }

    /// Returns the format in which documents are sent.
    pub(crate) fn format(&self) -> SentFormat {
        self.layout.format
    }

    /// Returns the block in which documents are sent.
    pub(crate) fn block_layout(&self) -> &Arc<BlockLayout> {
        &self.layout
    }

    /// Returns the profile of the target.
    pub(crate) fn profile(&self) -> &TargetProfile {
        &self.profile
    }

    pub(crate) fn counter(&self) -> &TokenCounter {
        &self.counter
    }

    /// Returns the certainty of a full count. With a chat template it is an estimate, because the tokens
    /// around a message are only measured from examples.
    pub(crate) fn certainty(&self) -> Certainty {
        if self.is_rendered() { Certainty::Estimate } else { self.counter.certainty() }
    }

    /// Returns the certainty of a count that stopped at a limit.
    pub(crate) fn at_least(&self) -> Certainty {
        if self.is_rendered() { Certainty::Estimate } else { self.counter.limited_certainty() }
    }

    /// Returns a number as a full count of this counter.
    pub(crate) fn counted(&self, n: u64) -> TokenCount {
        TokenCount { tokens: n, certainty: self.certainty() }
    }

    /// Returns the count of a message. Its certainty accounts for parts that are not text.
    pub(crate) fn counted_message(&self, message: &Message, n: u64) -> TokenCount {
        TokenCount { tokens: n, certainty: self.certainty().max(self.certainty_of_parts(message)) }
    }

    /// Returns an upper bound in tokens for `messages` messages of `bytes` bytes in total (see [`bytes`]).
    pub(crate) fn bound(&self, bytes: u64, messages: u64) -> TokenCount {
        let frame = self.frames.roles.iter().max().copied().unwrap_or_default() + self.frames.part;
        let sure = self.certainty() != Certainty::Estimate;
        // Without a proven bound, one token per byte is the estimate, which few vocabularies exceed.
        let proven = self.counter.max_tokens(bytes).filter(|_| sure);
        TokenCount {
            tokens: proven.unwrap_or(bytes).saturating_add(frame.saturating_mul(messages)),
            certainty: if proven.is_some() { Certainty::UpperBound } else { Certainty::Estimate },
        }
    }

    /// Counts a message as it is sent, without merging it with others. The exact count of its texts is cached
    /// in the message.
    pub(crate) fn message(
        &self,
        message: &Message,
        turn_position: TurnPosition,
        limit: u64,
    ) -> Result<Weight, Error> {
        let sent = self.profile.message(message, turn_position);
        self.weigh(message, &sent, turn_position, limit)
    }

    /// Counts a message whose sent form is already known.
    pub(crate) fn weigh(
        &self,
        message: &Message,
        sent: &Message,
        turn_position: TurnPosition,
        limit: u64,
    ) -> Result<Weight, Error> {
        // Archived messages may be in the log without their texts, and cannot be counted then.
        if !message.is_loaded() {
            return Err(Error::new(Repr::NotLoaded));
        }
        let has_media = sent.may_have_media();
        let tag = match turn_position {
            // The tokens of media depend on the model, so they must not be cached under the counter's id.
            _ if sent.is_same(message) && !has_media => self.counter.id(),
            TurnPosition::Live => self.tags[0],
            _ => self.tags[1],
        };
        let frame = self.frame(sent);
        // The frame is subtracted from the limit first, so that the cached count contains only the content.
        let Some(limit) = limit.checked_sub(frame) else { return Ok(Weight::Over) };
        let whole = |texts: u64| Weight::Exactly(texts.saturating_add(frame));
        if let Some(n) = message.remembered(tag) {
            return Ok(if n <= limit { whole(n) } else { Weight::Over });
        }
        let mut sum: u64 = if has_media { self.media_tokens(sent).tokens } else { 0 };
        if sum > limit {
            return Ok(Weight::Over);
        }
        for text in sent.counted_texts() {
            // Invariant: `sum <= limit`, so the subtraction cannot underflow.
            match self.counter.count_within(text, limit - sum)? {
                Some(n) => sum += n,
                None => return Ok(Weight::Over),
            }
        }
        message.remember(tag, sum);
        Ok(whole(sum))
    }

    /// Returns the tokens that joining texts into one adds to the sum of their counts; negative if it saves
    /// some.
    pub(crate) fn joins(&self, joined: &str, texts: impl Iterator<Item = u64>) -> Result<i128, Error> {
        let whole = self.count_recurring(joined)?;
        Ok(i128::from(whole) - texts.map(i128::from).sum::<i128>())
    }

    /// Returns the tokens that instructions take as one text, minus those that they take separately.
    ///
    /// # Errors
    ///
    /// Returns an error if the counter fails.
    pub(crate) fn joined_instructions(&self, instructions: &[&Message]) -> Result<i128, Error> {
        let (mut texts, mut apart) = (Vec::new(), 0u64);
        for message in instructions {
            let sent = self.profile.message(message, TurnPosition::Preamble);
            texts.extend(sent.plain_texts().map(str::to_owned));
            apart += self.message(message, TurnPosition::Preamble, u64::MAX)?.in_full();
        }
        let apart = apart.saturating_sub(self.around_one_text(Role::System));
        self.joins(&texts.join("\n\n"), std::iter::once(apart))
    }

    /// Counts a text that recurs from request to request. Without a limit the count is never `None`, so the
    /// fallback is not reached.
    fn count_recurring(&self, text: &str) -> Result<u64, Error> {
        Ok(self.counter.count_recurring_within(text, u64::MAX)?.unwrap_or(u64::MAX))
    }

    /// Returns the tokens that are saved by each message of this role that merges with another one.
    pub(crate) fn saved_by_merging(&self, role: Role) -> u64 {
        self.role_frame(role)
    }

    /// Returns the tokens that the wire format adds around a message of one text.
    pub(crate) fn around_one_text(&self, role: Role) -> u64 {
        self.role_frame(role) + self.frames.part
    }

    /// Returns the tokens that the wire format adds before the first message.
    pub(crate) fn start(&self) -> u64 {
        self.frames.start
    }

    /// Returns the tokens of the reply's header.
    pub(crate) fn priming(&self) -> u64 {
        self.frames.priming
    }

    /// Returns the tools as they are declared, with their total token count.
    pub(crate) fn declared(&self, given: &[Tool]) -> Result<Arc<DeclaredTools>, Error> {
        if let Some(known) = self.last_declared(given) {
            return Ok(known);
        }
        let tools = self.profile.tools(given).into_owned();
        let count = if tools.is_empty() { self.counted(0) } else { self.count_tools(&tools)? };
        let notes = declared::notes(&self.profile, given, &tools);
        let declared = Arc::new(DeclaredTools { given: given.into(), tools, count, notes });
        *self.last_tools() = Some(Arc::clone(&declared));
        Ok(declared)
    }

    /// Returns the given tools in shared form, without a copy if the last declaration was of the same tools.
    pub(crate) fn shared_tools(&self, given: &[Tool]) -> Arc<[Tool]> {
        self.last_declared(given).map_or_else(|| given.into(), |known| Arc::clone(&known.given))
    }

    /// Returns the last declaration, or `None` if it was of other tools.
    fn last_declared(&self, given: &[Tool]) -> Option<Arc<DeclaredTools>> {
        self.last_tools().as_ref().filter(|known| *known.given == *given).map(Arc::clone)
    }

    fn last_tools(&self) -> MutexGuard<'_, Option<Arc<DeclaredTools>>> {
        // The value is replaced in one assignment, so even a poisoned lock contains a complete one.
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(feature = "chat-template")]
    fn count_tools(&self, tools: &[Tool]) -> Result<TokenCount, Error> {
        match &self.rendered {
            Some(rendered) => Ok(self.counted(rendered.tools(&self.counter, tools)?)),
            None => self.count_tools_by_formula(tools),
        }
    }

    #[cfg(not(feature = "chat-template"))]
    fn count_tools(&self, tools: &[Tool]) -> Result<TokenCount, Error> {
        self.count_tools_by_formula(tools)
    }

    fn count_tools_by_formula(&self, tools: &[Tool]) -> Result<TokenCount, Error> {
        let TokenCount { tokens: n, certainty } = tools::count(&self.counter, tools)?;
        Ok(TokenCount { tokens: n + self.frames.tools, certainty })
    }

    /// Returns true if the sent text is known only after the whole prompt has been rendered.
    #[cfg(feature = "chat-template")]
    pub(crate) fn is_rendered(&self) -> bool {
        self.rendered.is_some()
    }

    #[cfg(not(feature = "chat-template"))]
    #[expect(clippy::unused_self, reason = "with chat templates it depends")]
    pub(crate) fn is_rendered(&self) -> bool {
        false
    }

    /// Breaks the control tokens in a prompt that is rendered (content is plain text, rule N2).
    #[cfg(feature = "chat-template")]
    pub(crate) fn neutralize(&self, prompt: &mut Prompt) {
        if let Some(rendered) = &self.rendered {
            rendered.neutralize(prompt);
        }
    }

    /// Counts a whole prompt as rendered, or returns `None` if the target has no chat template (counts match
    /// the sent text, rule N3).
    #[cfg(feature = "chat-template")]
    pub(crate) fn whole(&self, prompt: &Prompt) -> Result<Option<TokenCount>, Error> {
        let Some(rendered) = &self.rendered else { return Ok(None) };
        // A template renders placeholders for media, so the tokens of the media themselves are added.
        let media = prompt.messages.iter().map(|message| self.media_tokens(message).tokens);
        let media = media.fold(0, u64::saturating_add);
        let guessed = prompt
            .messages
            .iter()
            .map(|message| self.certainty_of_parts(message))
            .max()
            .unwrap_or(Certainty::Exact);
        let n = rendered.prompt(&self.counter, prompt)?.saturating_add(media);
        Ok(Some(TokenCount { tokens: n, certainty: self.counter.certainty().max(guessed) }))
    }

    fn role_frame(&self, role: Role) -> u64 {
        self.frames.roles[role as usize]
    }

    /// Returns the tokens of a message apart from its texts and its media.
    fn frame(&self, message: &Message) -> u64 {
        // The fast path: most messages are one plain text.
        if message.is_plain() && !message.text().is_empty() {
            return self.role_frame(message.role()) + self.frames.part;
        }
        let name = message.name().map_or(0, |_| self.frames.name);
        let parts = u64::from(!message.text().is_empty()) + message.parts().len() as u64;
        let calls = message.tool_calls().len() as u64;
        let is_none = self.frames.calls_apart && parts == 0 && message.role() == Role::Assistant;
        let own = if is_none { 0 } else { self.role_frame(message.role()) };
        own + self.frames.part * parts + name + self.frames.call * calls + hidden_reasoning_tokens(message)
    }

    /// Returns the certainty of a message's count with respect to its parts that are not text. They are
    /// counted by their upper bound or estimated.
    fn certainty_of_parts(&self, message: &Message) -> Certainty {
        if hidden_reasoning_tokens(message) > 0 {
            return Certainty::Estimate;
        }
        let others = if message.has_parts_without_media() { Certainty::UpperBound } else { Certainty::Exact };
        others.max(self.media_tokens(message).certainty)
    }

    /// Returns true if the token count of a message's media is an estimate.
    pub(crate) fn estimates_media(&self, message: &Message) -> bool {
        message.may_have_media() && self.media_tokens(message).certainty == Certainty::Estimate
    }

    /// Returns the total tokens of a message's media.
    fn media_tokens(&self, message: &Message) -> TokenCount {
        let none = TokenCount { tokens: 0, certainty: Certainty::Exact };
        let counts = message.media().map(|medium| self.media.tokens(medium));
        counts.fold(none, |sum, count| TokenCount {
            tokens: sum.tokens.saturating_add(count.tokens),
            certainty: sum.certainty.max(count.certainty),
        })
    }
}

/// Returns the tokens of hidden or only summarized reasoning. They are estimated from the bytes by which its
/// signature is longer than its text. The signature of visible reasoning contains no further text.
fn hidden_reasoning_tokens(message: &Message) -> u64 {
    let hidden = |reasoning: &Reasoning| {
        if let Some(tokens) = reasoning.tokens {
            return tokens.saturating_sub((reasoning.text.len() as u64).div_ceil(BYTES_PER_HIDDEN_TOKEN));
        }
        let seal = reasoning.signature.as_ref().map_or(0, |seal| seal.len() as u64);
        let shown = reasoning.wire_format == Some(WireFormat::Anthropic) && !reasoning.redacted;
        let bytes = if shown && !reasoning.text.is_empty() {
            0
        } else {
            seal.saturating_sub(reasoning.text.len() as u64)
        };
        bytes.div_ceil(BYTES_PER_HIDDEN_TOKEN)
    };
    message.reasoning().iter().map(hidden).sum()
}
