//! The token costs of messages, documents and tools as they are sent: counter and wire format together (rule
//! N3).

use crate::{
    config::DocumentHeader,
    error::{Error, Repr},
    item::RagItem,
    media,
    message::{Message, Part, Reasoning, Role, Tool, ToolCall, WireFormat},
    provider::weight::Weight,
    provider::{
        conform::{TargetProfile, TurnPosition, is_object},
        media_prices::MediaPrices,
        model::{Form, Model},
        wording,
    },
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

/// The most that an image costs for any model, and the most of any other medium: a document of 1,000 pages
/// (figures: `config/models.toml`).
const IMAGE_MOST: u64 = 48_169;
const MEDIUM_MOST: u64 = 26_501_000;
/// Returns the most tokens of an image, or of another medium.
#[cfg(test)]
pub(crate) fn most_tokens(is_image: bool) -> u64 {
    if is_image { IMAGE_MOST } else { MEDIUM_MOST }
}

/// The most that a wire format adds to a part, a call or a name, and that our own words add to a message.
const FRAME_MOST: u64 = 3;
const WORDS_MOST: u64 = 80;
/// Bytes of encrypted reasoning for one token: its text is not shown, and base64 is four bytes for three.
const SEALED_BYTES: u64 = 4;

/// Arguments of at most this many bytes are parsed when a message is pushed, to know whether they are an
/// object.
const READ_ON_PUSH: usize = 1 << 16;

/// In the order of their numbers, by which frames are found.
const ROLES: [Role; 5] = [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool];
const _: () = {
    let mut at = 0;
    while at < ROLES.len() {
        assert!(ROLES[at] as usize == at);
        at += 1;
    }
};

/// Tokens that are counted around texts.
#[derive(Debug, Clone, Copy, Default)]
struct Frames {
    /// A message without content, by role in the order of `ROLES`.
    roles: [u64; ROLES.len()],
    /// A part of a message's content; plain text is one.
    part: u64,
    /// Before the first message.
    start: u64,
    /// After the last one, where the reply begins.
    priming: u64,
    /// A tool call.
    call: u64,
    /// A speaker's name.
    name: u64,
    /// A message of calls alone is none.
    calls_apart: bool,
    /// Tokens that declaring any tool adds.
    tools: u64,
}

impl Frames {
    /// Of a wire format, or what a counter's own rule puts in its place.
    fn of(form: &Form, counter: &TokenCounter) -> Result<Self, Error> {
        let mut roles = [0; ROLES.len()];
        for (frame, role) in roles.iter_mut().zip(ROLES) {
            *frame = match counter.tokens_per_message() {
                Some(tokens) => tokens,
                None if form.role => form.message + counter.count(role.name())?.tokens,
                None => form.message,
            };
        }
        let priming = if counter.tokens_per_message().is_some() { 0 } else { form.priming };
        let Form { part, call, calls_apart, name, tools, .. } = *form;
        Ok(Self { roles, part, start: 0, priming, call, calls_apart, name, tools })
    }
}

/// The meter of the texts that are sent to one target.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    counter: TokenCounter,
    profile: TargetProfile,
    frames: Frames,
    media: MediaPrices,
    /// The marks under which counts are remembered of messages that are sent otherwise than they are: in the
    /// live turn, and elsewhere.
    tags: [u32; 2],
    /// Which attributes the wrapper of a document has.
    header: DocumentHeader,
    /// The block around the documents: a message of its own, and the lines at both ends.
    block: u64,
    /// The tools that were declared last: an application declares the same ones with every request.
    tools: Arc<Mutex<Option<Arc<DeclaredTools>>>>,
    #[cfg(feature = "chat-template")]
    rendered: Option<Arc<Rendered>>,
}

impl Meter {
    pub(crate) fn new(counter: TokenCounter, model: &Model, header: DocumentHeader) -> Result<Self, Error> {
        #[cfg(feature = "chat-template")]
        let rendered = model.template.as_ref();
        #[cfg(feature = "chat-template")]
        let rendered = rendered.map(|template| Rendered::new(template, &counter)).transpose()?;
        let form = model.form();
        let frames = match model.wire_format {
            WireFormat::Plain => Frames::default(),
            _ => Frames::of(&form, &counter)?,
        };
        #[cfg(feature = "chat-template")]
        let frames = match &rendered {
            Some(rendered) if model.wire_format == WireFormat::ChatTemplate => rendered.frames(&counter)?,
            _ => frames,
        };
        let lines = counter.count(wording::BLOCK_OPEN)?.tokens + counter.count(wording::BLOCK_CLOSE)?.tokens;
        let mut meter = Self {
            counter,
            profile: TargetProfile::of(model),
            frames,
            media: model.media_prices(),
            tags: [TokenCounter::next_id(), TokenCounter::next_id()],
            header,
            block: lines,
            tools: Arc::default(),
            #[cfg(feature = "chat-template")]
            rendered: rendered.map(Arc::new),
        };
        meter.block += meter.role_frame(Role::User) + frames.part;
        Ok(meter)
    }

    /// Returns the constraints of the prompt's target.
    pub(crate) fn profile(&self) -> &TargetProfile {
        &self.profile
    }

    pub(crate) fn counter(&self) -> &TokenCounter {
        &self.counter
    }

    /// Returns the certainty of a text that was counted in full. With a chat template it is an estimate: the
    /// tokens that the template adds are only measured from examples.
    pub(crate) fn certainty(&self) -> Certainty {
        if self.is_rendered() { Certainty::Estimate } else { self.counter.certainty() }
    }

    /// Returns the certainty of a text that was counted only up to a limit.
    pub(crate) fn at_least(&self) -> Certainty {
        if self.is_rendered() { Certainty::Estimate } else { self.counter.limited_certainty() }
    }

    /// Returns a number of this counter as a count in full.
    pub(crate) fn counted(&self, n: u64) -> TokenCount {
        TokenCount { tokens: n, certainty: self.certainty() }
    }

    /// Returns the count of a message, with the certainty of its parts that are no text.
    pub(crate) fn counted_message(&self, message: &Message, n: u64) -> TokenCount {
        TokenCount { tokens: n, certainty: self.certainty().max(self.not_text(message)) }
    }

    /// Upper bound in tokens for a number of messages of this many bytes in all (see [`bytes`]).
    pub(crate) fn bound(&self, bytes: u64, messages: u64) -> TokenCount {
        let frame = self.frames.roles.iter().max().copied().unwrap_or_default() + self.frames.part;
        let sure = self.certainty() != Certainty::Estimate;
        let proven = self.counter.max_tokens(bytes).filter(|_| sure);
        TokenCount {
            tokens: proven.unwrap_or(bytes).saturating_add(frame.saturating_mul(messages)),
            certainty: if proven.is_some() { Certainty::UpperBound } else { Certainty::Estimate },
        }
    }

    /// Counts a message that is not joined with others, as it is sent; the exact count of its texts is
    /// remembered with it.
    pub(crate) fn message(
        &self,
        message: &Message,
        turn_position: TurnPosition,
        limit: u64,
    ) -> Result<Weight, Error> {
        let sent = self.profile.message(message, turn_position);
        self.weigh(message, &sent, turn_position, limit)
    }

    /// Counts a message whose form for the target is known already: `sent`.
    pub(crate) fn weigh(
        &self,
        message: &Message,
        sent: &Message,
        turn_position: TurnPosition,
        limit: u64,
    ) -> Result<Weight, Error> {
        if !message.is_loaded() {
            return Err(Error::new(Repr::NotLoaded));
        }
        let has_media = sent.may_have_media();
        let tag = match turn_position {
            // The price of media depends on the model, not on the counter alone.
            _ if sent.is(message) && !has_media => self.counter.id(),
            TurnPosition::Live => self.tags[0],
            _ => self.tags[1],
        };
        let frame = self.frame(sent);
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
            match self.counter.count_within(text, limit - sum)? {
                Some(n) => sum += n,
                None => return Ok(Weight::Over),
            }
        }
        message.remember(tag, sum);
        Ok(whole(sum))
    }

    /// Returns the tokens that joining texts into one adds to the sum of their counts, or saves.
    pub(crate) fn joins(&self, joined: &str, texts: impl Iterator<Item = u64>) -> Result<i128, Error> {
        let whole = self.count_recurring(joined)?;
        Ok(i128::from(whole) - texts.map(i128::from).sum::<i128>())
    }

    /// Returns the tokens that instructions cost as one text, in addition to those that they cost apart.
    ///
    /// # Errors
    ///
    /// Counters that fail.
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

    /// Counts a document in its fence, as it is sent.
    pub(crate) fn fenced(&self, item: &RagItem) -> String {
        wording::document(item, self.header)
    }

    /// Counts one document of the block, with its fence; `hash` is the
    /// [`text_hash`](crate::text::hash::text_hash) of its text.
    pub(crate) fn document(&self, item: &RagItem, hash: u64, limit: u64) -> Result<Weight, Error> {
        let says_origin = self.header != DocumentHeader::Id;
        let says_score = self.header == DocumentHeader::IdSourceScore;
        let document = DocumentText {
            text: &item.text,
            hash,
            id: item.id.as_str(),
            origin: item.origin.as_ref().filter(|_| says_origin),
            score_bits: says_score.then_some(item.score.to_bits()),
        };
        Ok(self.counter.count_document_within(document, limit, || self.fenced(item))?.into())
    }

    /// Returns the tokens of a text that recurs from request to request. A text of more than `u64::MAX`
    /// tokens is none.
    fn count_recurring(&self, text: &str) -> Result<u64, Error> {
        Ok(self.counter.count_recurring_within(text, u64::MAX)?.unwrap_or(u64::MAX))
    }

    /// Counts a document as it was sent, with its fence, in tokens.
    pub(crate) fn sent_document(&self, text: &str) -> Result<u64, Error> {
        self.count_recurring(text)
    }

    /// Bytes that bound the tokens of a document with its fence.
    pub(crate) fn document_bytes(&self, item: &RagItem) -> u64 {
        // Escapes at worst lengthen `"` to 6 bytes in id and origin, and `<d` by one byte in the text.
        let origin = item.origin.as_deref().map_or(0, str::len);
        let score =
            if self.header == DocumentHeader::IdSourceScore { item.score.to_string().len() + 9 } else { 0 };
        (item.text.len() * 2 + (item.id.as_str().len() + origin) * 6 + 64 + score) as u64
    }

    /// Returns the tokens of the block around the documents, without any.
    pub(crate) fn block(&self) -> u64 {
        self.block
    }

    /// Returns true if the sum over the block and its documents is the count of the whole.
    pub(crate) fn block_adds_up(&self) -> bool {
        self.counter.adds_up_at_delimiters()
    }

    /// Returns the tokens saved by each message of this role that is joined with another one.
    pub(crate) fn saved_by_merging(&self, role: Role) -> u64 {
        self.role_frame(role)
    }

    /// Returns the tokens that the wire format adds around a message of one text.
    pub(crate) fn around_one_text(&self, role: Role) -> u64 {
        self.role_frame(role) + self.frames.part
    }

    /// Returns the tokens that the wire format puts before the first message.
    pub(crate) fn start(&self) -> u64 {
        self.frames.start
    }

    /// Returns the tokens of the reply's header.
    pub(crate) fn priming(&self) -> u64 {
        self.frames.priming
    }

    /// Returns the tools as they are declared, and their tokens all together.
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

    /// Returns the tools as the application gave them, shared with the last declaration if that was of the
    /// same ones.
    pub(crate) fn shared_tools(&self, given: &[Tool]) -> Arc<[Tool]> {
        self.last_declared(given).map_or_else(|| given.into(), |known| Arc::clone(&known.given))
    }

    /// Returns the last declaration if it was of these tools.
    fn last_declared(&self, given: &[Tool]) -> Option<Arc<DeclaredTools>> {
        self.last_tools().as_ref().filter(|known| *known.given == *given).map(Arc::clone)
    }

    fn last_tools(&self) -> MutexGuard<'_, Option<Arc<DeclaredTools>>> {
        // A poisoned lock still holds a whole value: it is replaced in one assignment.
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

    /// Returns true if the sent text is known only once the whole prompt is rendered.
    #[cfg(feature = "chat-template")]
    pub(crate) fn is_rendered(&self) -> bool {
        self.rendered.is_some()
    }

    #[cfg(not(feature = "chat-template"))]
    #[expect(clippy::unused_self, reason = "with chat templates it depends")]
    pub(crate) fn is_rendered(&self) -> bool {
        false
    }

    /// Breaks the names of control tokens in a prompt that is rendered (rule N2).
    #[cfg(feature = "chat-template")]
    pub(crate) fn neutralise(&self, prompt: &mut Prompt) {
        if let Some(rendered) = &self.rendered {
            rendered.neutral(prompt);
        }
    }

    /// Counts a whole prompt as rendered, if that is the form in which it is sent (rule N3).
    #[cfg(feature = "chat-template")]
    pub(crate) fn whole(&self, prompt: &Prompt) -> Result<Option<TokenCount>, Error> {
        let Some(rendered) = &self.rendered else { return Ok(None) };
        let media = prompt.messages.iter().map(|message| self.media_tokens(message).tokens);
        let media = media.fold(0, u64::saturating_add);
        let guessed =
            prompt.messages.iter().map(|message| self.not_text(message)).max().unwrap_or(Certainty::Exact);
        let n = rendered.prompt(&self.counter, prompt)?.saturating_add(media);
        Ok(Some(TokenCount { tokens: n, certainty: self.counter.certainty().max(guessed) }))
    }

    fn role_frame(&self, role: Role) -> u64 {
        self.frames.roles[role as usize]
    }

    /// Returns all tokens that are counted for a message apart from its texts and its media.
    fn frame(&self, message: &Message) -> u64 {
        if message.is_plain() && !message.text().is_empty() {
            return self.role_frame(message.role()) + self.frames.part;
        }
        let name = message.name().map_or(0, |_| self.frames.name);
        let parts = u64::from(!message.text().is_empty()) + message.parts().len() as u64;
        let calls = message.tool_calls().len() as u64;
        let is_none = self.frames.calls_apart && parts == 0 && message.role() == Role::Assistant;
        let own = if is_none { 0 } else { self.role_frame(message.role()) };
        own + self.frames.part * parts + name + self.frames.call * calls + sealed(message)
    }

    /// Returns the certainty of a message's count for its parts that are no text: they are counted at the
    /// most they can be, or estimated.
    fn not_text(&self, message: &Message) -> Certainty {
        if sealed(message) > 0 {
            return Certainty::Estimate;
        }
        let others = if message.has_parts_without_media() { Certainty::UpperBound } else { Certainty::Exact };
        others.max(self.media_tokens(message).certainty)
    }

    /// Returns true if any tokens of a message's media are estimated.
    pub(crate) fn estimates_media(&self, message: &Message) -> bool {
        message.may_have_media() && self.media_tokens(message).certainty == Certainty::Estimate
    }

    /// Returns the tokens of all media of a message.
    fn media_tokens(&self, message: &Message) -> TokenCount {
        let none = TokenCount { tokens: 0, certainty: Certainty::Exact };
        let counts = message.media().map(|medium| self.media.tokens(medium));
        counts.fold(none, |sum, count| TokenCount {
            tokens: sum.tokens.saturating_add(count.tokens),
            certainty: sum.certainty.max(count.certainty),
        })
    }
}

/// Returns the tokens of reasoning that is not shown, or only summed up: from the bytes by which its
/// signature is longer than its text. A signature of reasoning that is shown holds nothing more.
fn sealed(message: &Message) -> u64 {
    let hidden = |reasoning: &Reasoning| {
        if let Some(tokens) = reasoning.tokens {
            return tokens.saturating_sub((reasoning.text.len() as u64).div_ceil(SEALED_BYTES));
        }
        let seal = reasoning.signature.as_ref().map_or(0, |seal| seal.len() as u64);
        let shown = reasoning.wire_format == Some(WireFormat::Anthropic) && !reasoning.redacted;
        let bytes = if shown && !reasoning.text.is_empty() {
            0
        } else {
            seal.saturating_sub(reasoning.text.len() as u64)
        };
        bytes.div_ceil(SEALED_BYTES)
    };
    message.reasoning().iter().map(hidden).sum()
}

/// Bytes that bound the tokens of a message of the conversation without its frame, whoever it is sent to:
/// texts, and room for parts, names, calls, media and our own words.
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
    let media = images * IMAGE_MOST + others.sum::<u64>() * MEDIUM_MOST;
    let noted = message.role().instructs() && !message.is_empty();
    let silent = message.role() == Role::Tool && message.text().trim().is_empty();
    let named = if message.has_opaque_parts() { parts } else { images };
    let framed = parts + u64::from(message.name().is_some()) + message.tool_calls().len() as u64;
    // Arguments that are no object become a text in one, and what would close a note's fence is broken.
    let wrapped = |call: &ToolCall| {
        if call.arguments.len() <= READ_ON_PUSH && is_object(&call.arguments) {
            return 0;
        }
        let escaped = call.arguments.bytes().filter(|byte| *byte < 0x20 || b"\"\\".contains(byte)).count();
        5 * escaped as u64 + 9
    };
    let wrapping: u64 = message.tool_calls().iter().map(wrapped).sum();
    let fenced: u64 = if noted {
        message.texts().map(|text| text.bytes().filter(|byte| *byte == b'<').count() as u64).sum()
    } else {
        0
    };
    let words = u64::from(noted) + u64::from(silent) + named;
    text_bytes(message) + wrapping + fenced + media + framed * FRAME_MOST + words * WORDS_MOST
}

/// Upper bound in bytes of a message that is sent in the user role: one whose calls are text, or the result
/// of such a call (rule H9). It includes the lines around them.
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
    bytes(message) + 6 * texts.sum::<u64>() + (calls.len() as u64 + results) * (WORDS_MOST + FRAME_MOST)
}

/// Bytes of a message's texts and of its sealed reasoning, without anything around them.
pub(crate) fn text_bytes(message: &Message) -> u64 {
    message.texts().map(|text| text.len() as u64).sum::<u64>() + sealed(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wire_format_adds_more_than_its_bounds() {
        use WireFormat::{Anthropic, ChatTemplate, Gemini, OpenAiChat, OpenAiResponses, Plain};
        for wire_format in [OpenAiChat, OpenAiResponses, Anthropic, Gemini, ChatTemplate, Plain] {
            let form = Form::of(wire_format);
            assert!(
                [form.part, form.call, form.name].iter().all(|frame| *frame <= FRAME_MOST),
                "{wire_format:?}"
            );
        }
        let longest = wording::left_out_part(&"x".repeat(100));
        assert!(
            [longest.len(), wording::LEFT_OUT_IMAGE.len(), wording::system_note("").len()]
                .iter()
                .all(|length| *length as u64 <= WORDS_MOST)
        );
        let call = ToolCall::new("c", "", "");
        let longest =
            [wording::user_call(&call, Some(9_999_999)), wording::user_result("", true, Some(9_999_999))];
        assert!(longest.iter().all(|text| text.len() as u64 <= WORDS_MOST), "{longest:?}");
    }
}
