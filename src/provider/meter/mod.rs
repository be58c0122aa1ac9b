//! Token counts of messages, documents and tools in the form in which they are sent. A meter combines a
//! counter with a wire format (counts match the sent text, rule N3).

use crate::{
    config::{DocumentTemplate, HeaderField, HeaderTemplate},
    error::{Error, Repr},
    media,
    message::{Message, Part, Reasoning, Role, Tool, ToolCall, WireFormat},
    provider::weight::Weight,
    provider::{
        conform::{TargetProfile, TurnPosition, is_object},
        header,
        media_prices::MediaPrices,
        model::{Model, WireFormatCosts},
        native,
        sent_document::{BlockLayout, SentFormat},
        wording,
    },
    rag::LabelledItem,
    tokens::{Certainty, DocumentText, TokenCount, TokenCounter},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod declared;
#[cfg(feature = "chat-template")]
mod template;
mod tools;

use declared::DeclaredTools;
pub(crate) use declared::{DeclarationNote, and_more};

#[cfg(feature = "chat-template")]
use {crate::message::Prompt, template::Rendered};

/// The maximum tokens of an image for any model, and of any other medium: a document of 1,000 pages (figures:
/// `config/models.toml`).
const MAX_IMAGE_TOKENS: u64 = 48_169;
const MAX_MEDIUM_TOKENS: u64 = 26_501_000;
/// Returns the maximum tokens of an image, or of another medium.
#[cfg(test)]
pub(crate) fn most_tokens(is_image: bool) -> u64 {
    if is_image { MAX_IMAGE_TOKENS } else { MAX_MEDIUM_TOKENS }
}

/// The maximum tokens that a wire format adds to a part, a call or a name.
const MAX_FRAME_TOKENS: u64 = 3;
/// The maximum bytes of a text that this library adds to a message.
const MAX_WORDS_TOKENS: u64 = 80;
/// The bytes of encrypted reasoning per token. The text is hidden, and base64 has four bytes for three.
const BYTES_PER_HIDDEN_TOKEN: u64 = 4;

/// The maximum size in bytes of arguments that are parsed when a message is added, to check that they are an
/// object.
const READ_ON_PUSH: usize = 1 << 16;

/// Bits by which the cached counts of documents as blocks differ, without citations and with them.
const NATIVE_HASHES: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];

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

    /// Returns a document between its delimiters.
    pub(crate) fn delimited_document<'i>(&self, item: impl Into<LabelledItem<'i>>) -> String {
        wording::labelled_document(item.into(), &self.header)
    }

    /// Counts a document of the block together with its delimiters. `hash` is the
    /// [`text_hash`](crate::text::hash::text_hash) of the text that is sent.
    pub(crate) fn document<'i>(
        &self,
        item: impl Into<LabelledItem<'i>>,
        hash: u64,
        limit: u64,
    ) -> Result<Weight, Error> {
        let item = item.into();
        // A count as a block, which is longer, has a key of its own.
        let (hash, part) = match self.format() {
            SentFormat::Text => (hash, 0),
            SentFormat::Native { citations } => {
                (hash ^ NATIVE_HASHES[usize::from(citations)], self.frames.part)
            }
        };
        let Some(limit) = limit.checked_sub(part) else { return Ok(Weight::Over) };
        // The cache key has the id and the origin, or any other header as it is written.
        let other = (!self.header.is_default).then(|| header::header_attributes(item, &self.header).into());
        let document = DocumentText {
            text: item.sent_text(),
            hash,
            id: item.id.as_str(),
            origin: header::source(item.item).filter(|_| other.is_none()),
            header: other.as_ref(),
            label: item.label,
        };
        let text = || self.format().written(&[&self.delimited_document(item)]).concat();
        Ok(match self.counter.count_document_within(document, limit, text)?.into() {
            Weight::Exactly(tokens) => Weight::Exactly(tokens.saturating_add(part)),
            Weight::Over => Weight::Over,
        })
    }

    /// Counts a text that recurs from request to request. Without a limit the count is never `None`, so the
    /// fallback is not reached.
    fn count_recurring(&self, text: &str) -> Result<u64, Error> {
        Ok(self.counter.count_recurring_within(text, u64::MAX)?.unwrap_or(u64::MAX))
    }

    /// Counts the pieces of one document, given between delimiters, as they are sent. Also returns the tokens
    /// of the whole document minus their sum.
    pub(crate) fn document_pieces(&self, sent: &[&str]) -> Result<(Vec<u64>, i128), Error> {
        let written = self.format().written(sent);
        let mut tokens: Vec<u64> =
            written.iter().map(|piece| self.count_recurring(piece)).collect::<Result<_, _>>()?;
        let joined = match written.as_slice() {
            [_] => 0,
            _ => self.joins(&written.concat(), tokens.iter().copied())?,
        };
        if let (Some(first), SentFormat::Native { .. }) = (tokens.first_mut(), self.format()) {
            *first = first.saturating_add(self.frames.part);
        }
        Ok((tokens, joined))
    }

    /// Returns overlapping documents as one text between delimiters, as it is sent, in pieces: one for each.
    /// Each document comes with the bytes at its beginning that the one before it contains.
    pub(crate) fn joined_documents(&self, chunks: &[(LabelledItem<'_>, usize)]) -> Vec<String> {
        wording::joined_documents(chunks, &self.header)
    }

    /// Counts a part of a document without delimiters.
    pub(crate) fn document_part(&self, text: &str) -> Result<u64, Error> {
        self.count_recurring(&match self.format() {
            SentFormat::Text => wording::delimited_part(text, "document"),
            SentFormat::Native { .. } => native::escaped(text),
        })
    }

    /// Counts the id of a further document in the header of a joined text, and its label.
    pub(crate) fn further_id(&self, item: LabelledItem<'_>) -> Result<u64, Error> {
        let label = match item.label {
            Some(_) => self.count_recurring(&header::further_label(item.label))?,
            None => 0,
        };
        let id = if self.header.contains(HeaderField::Id) {
            self.count_recurring(&header::further_id(&item))?
        } else {
            0
        };
        Ok(id.saturating_add(label))
    }

    /// Returns a number of bytes that bounds the tokens of a document with its delimiters.
    pub(crate) fn document_bytes(&self, item: LabelledItem<'_>) -> u64 {
        let header = if self.header.is_default {
            // Escapes lengthen `"` to 6 bytes in id and origin.
            (item.id.as_str().len() + header::source(item.item).map_or(0, |source| source.len())) * 6
        } else {
            header::header_attributes(item, &self.header).len()
        };
        let label = item.label.map_or(0, |label| header::label(label).len() + 9);
        // An escape lengthens `<d` by one byte in the text.
        let bytes = item.sent_text().len() * 2 + header + 64 + label;
        // JSON lengthens a character by five bytes at most.
        (if self.format() == SentFormat::Text { bytes } else { bytes * 6 + 256 }) as u64
    }

    /// Returns the tokens of the message around documents, without the documents. A message of native ones
    /// has no lines of its own, and the text before them and each of them is a part.
    pub(crate) fn block(&self) -> u64 {
        let text = match (self.format(), &self.layout.introduction) {
            (SentFormat::Text, _) => self.frames.part + self.lines,
            (SentFormat::Native { .. }, Some(_)) => self.frames.part + self.introduction_tokens,
            (SentFormat::Native { .. }, None) => 0,
        };
        self.role_frame(Role::User) + text
    }

    /// Returns true if the counts of the block and of its documents add up to the count of the whole.
    pub(crate) fn block_adds_up(&self) -> bool {
        // Each native document is counted by itself.
        self.format() != SentFormat::Text || self.counter.adds_up_at_delimiters()
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

/// Returns a number of bytes that bounds the tokens of a message without its frame, for any target. It covers
/// the texts, and reserves space for parts, names, calls, media and texts that this library adds.
#[doc(hidden)]
#[must_use]
pub fn bytes(message: &Message) -> u64 {
    if let Some(sizes) = message.sizes() {
        return sizes.bytes;
    }
    let (parts, images) = (message.parts().len() as u64, message.images().count() as u64);
    let others = message.parts().iter().map(|part| match part {
        Part::Opaque { json, .. } => media::count(json),
        Part::Text(_) | Part::Image { .. } => 0,
    });
    let media = images * MAX_IMAGE_TOKENS + others.sum::<u64>() * MAX_MEDIUM_TOKENS;
    let noted = message.role().instructs() && !message.is_empty();
    let silent = message.role() == Role::Tool && message.text().trim().is_empty();
    let named = if message.has_opaque_parts() { parts } else { images };
    let framed = parts + u64::from(message.name().is_some()) + message.tool_calls().len() as u64;
    // Arguments that are not an object become a string in one, and a text that could close a note's delimiter
    // is escaped.
    let wrapped = |call: &ToolCall| {
        if call.arguments.len() <= READ_ON_PUSH && is_object(&call.arguments) {
            return 0;
        }
        // A JSON escape lengthens such a byte by at most 5 bytes.
        let escaped = call.arguments.bytes().filter(|byte| *byte < 0x20 || b"\"\\".contains(byte)).count();
        5 * escaped as u64 + 9
    };
    let wrapping: u64 = message.tool_calls().iter().map(wrapped).sum();
    let delimiters: u64 = if noted {
        message.texts().map(|text| text.bytes().filter(|byte| *byte == b'<').count() as u64).sum()
    } else {
        0
    };
    let words = u64::from(noted) + u64::from(silent) + named;
    text_bytes(message) + wrapping + delimiters + media + framed * MAX_FRAME_TOKENS + words * MAX_WORDS_TOKENS
}

/// Returns an upper bound in bytes for a message that is sent in the user role (calls of the user, rule H9).
/// It is a message whose calls become text, or the result of such a call. The bound includes the lines around
/// them.
#[doc(hidden)]
#[must_use]
pub fn bytes_of_a_user(message: &Message) -> u64 {
    if let Some(sizes) = message.sizes() {
        return sizes.bytes_of_a_user;
    }
    let calls = message.tool_calls();
    let results = u64::from(message.role() == Role::Tool);
    if calls.is_empty() && results == 0 {
        return bytes(message);
    }
    let texts =
        message.texts().map(|text| text.bytes().filter(|byte| b"<\"&>".contains(byte)).count() as u64);
    bytes(message)
        + 6 * texts.sum::<u64>()
        + (calls.len() as u64 + results) * (MAX_WORDS_TOKENS + MAX_FRAME_TOKENS)
}

/// Returns the bytes of a message's texts and of its hidden reasoning, without anything around them.
pub(crate) fn text_bytes(message: &Message) -> u64 {
    message.texts().map(|text| text.len() as u64).sum::<u64>() + hidden_reasoning_tokens(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wire_format_adds_more_than_its_bounds() {
        use WireFormat::{Anthropic, ChatTemplate, Gemini, OpenAiChat, OpenAiResponses, Plain};
        for wire_format in [OpenAiChat, OpenAiResponses, Anthropic, Gemini, ChatTemplate, Plain] {
            let form = WireFormatCosts::from_wire_format(wire_format);
            assert!(
                [form.part, form.call, form.name].iter().all(|frame| *frame <= MAX_FRAME_TOKENS),
                "{wire_format:?}"
            );
        }
        let longest = wording::left_out_part(&"x".repeat(100));
        assert!(
            [longest.len(), wording::LEFT_OUT_IMAGE.len(), wording::system_note("").len()]
                .iter()
                .all(|length| *length as u64 <= MAX_WORDS_TOKENS)
        );
        let call = ToolCall::new("c", "", "");
        let longest =
            [wording::user_call(&call, Some(9_999_999)), wording::user_result("", true, Some(9_999_999))];
        assert!(longest.iter().all(|text| text.len() as u64 <= MAX_WORDS_TOKENS), "{longest:?}");
    }
}
