//! Messages, tools and reasoning, independent of any provider and cheap to clone. [`crate::render`] converts
//! them to request bodies.

use crate::{
    item::ItemId,
    media::{Medium, PartMedia},
};
use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

mod call;
mod wire_format;
mod part;
mod prompt;
mod reasoning;
mod role;
mod written;
mod altered;
mod outlined;
mod stored;

pub use call::ToolCall;
#[doc(hidden)]
pub use outlined::Sizes;
pub use part::Part;
pub(crate) use prompt::{Mark, TargetRequirements};
pub use prompt::{Prompt, Tool};
pub use reasoning::Reasoning;
pub use role::Role;
pub use wire_format::WireFormat;
pub(crate) use written::{CHAT_REASONING, Component};
#[doc(hidden)]
pub use written::{Piece, PieceKind, RESULT_PLACE, Written};

/// A message: a role, text or parts, and optional calls, reasoning, id and name. Clones share the text.
///
/// ```
/// use context_window::{Message, Part, Role};
///
/// let question = Message::user("What is on this picture?")
///     .with_id("q1")
///     .with_parts([Part::Image { url: "https://example.com/cat.png".into(), detail: None }]);
/// assert_eq!(question.role(), Role::User);
/// assert_eq!(question.parts().len(), 2); // the text is the first part
/// ```
#[derive(Clone)]
pub struct Message(Arc<Inner>);

struct Inner {
    role: Role,
    text: Box<str>,
    extra: Option<Box<Extra>>,
    /// Two cached exact token counts. A tag numbers a token counter: one count is of the last counter with an
    /// even tag, the other of the last with an odd tag. The tag is in the upper 32 bits, the tokens in the
    /// lower 32 bits. 0 means "not counted".
    memos: [AtomicU64; 2],
}

/// Fields that a plain text message without an id lacks.
#[derive(Debug, Clone, Default, PartialEq)]
struct Extra {
    id: Option<ItemId>,
    calls: Box<[ToolCall]>,
    /// The id of the call that this result answers.
    answers: Option<Box<str>>,
    /// True if that call failed.
    failed: bool,
    /// The replacement of a tool result (rule S7), so that it is built and counted once.
    short: Cached<(ItemId, ShortForm, Message)>,
    rare: Rare,
}

/// Fields that few messages have. All other messages use only the size of a pointer for them.
#[derive(Debug, Clone, Default)]
struct Rare(Option<Box<RareFields>>);

#[derive(Debug, Clone, Default, PartialEq)]
struct RareFields {
    name: Option<Box<str>>,
    parts: Vec<Part>,
    reasoning: Vec<Reasoning>,
    /// The sizes of a message whose texts are in a store.
    sizes: Option<Sizes>,
    /// The JSON that a provider wrote for this message.
    written: Option<Box<Written>>,
    /// The media of each part, measured when they are first counted.
    media: Cached<[Option<PartMedia>]>,
}

impl Deref for Rare {
    type Target = RareFields;

    fn deref(&self) -> &RareFields {
        // A shared empty value, so that reading needs no allocation.
        static NOTHING: RareFields = RareFields {
            name: None,
            parts: Vec::new(),
            reasoning: Vec::new(),
            sizes: None,
            written: None,
            media: Cached(OnceLock::new()),
        };
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for Rare {
    fn deref_mut(&mut self) -> &mut RareFields {
        self.0.get_or_insert_default()
    }
}

impl PartialEq for Rare {
    fn eq(&self, other: &Self) -> bool {
        // Compared through `deref`, so that `None` equals a box of default fields.
        **self == **other
    }
}

/// A form of a tool result that is shorter than its text (rule S7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShortForm {
    /// One line with its id and bytes.
    Stub,
    /// This many bytes of its beginning and end.
    Offloaded(u64),
}

/// A cached value that derives from a message. It is not part of the message's content: it may change speed,
/// never a plan.
struct Cached<T: ?Sized>(OnceLock<Box<T>>);

impl<T: ?Sized> Default for Cached<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T: ?Sized> fmt::Debug for Cached<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cached")
    }
}

impl<T: ?Sized> Clone for Cached<T> {
    /// Returns an empty cache, because the copy may get other content.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T: ?Sized> PartialEq for Cached<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Content, name and reasoning of a message: the fields that a target may require in another form.
pub(crate) struct Content {
    pub(crate) text: Box<str>,
    pub(crate) parts: Vec<Part>,
    pub(crate) name: Option<Box<str>>,
    pub(crate) reasonings: Vec<Reasoning>,
    /// The sorted numbers of the parts that are left out. Plain text counts as one part.
    pub(crate) no_parts: Vec<usize>,
    /// The sorted numbers of the pieces of reasoning that are left out.
    pub(crate) no_reasonings: Vec<usize>,
}

impl Message {
    /// Creates a message of any role. [`Message::user`] and its siblings are shorter.
    #[must_use]
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self(Arc::new(Inner { role, text: text.into().into(), extra: None, memos: Default::default() }))
    }

    /// Creates a system message.
    #[must_use]
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, text)
    }

    /// Creates a user message.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, text)
    }

    /// Creates an assistant message.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, text)
    }

    /// Creates the result of the tool call with this id.
    #[must_use]
    pub fn tool(call_id: impl Into<String>, text: impl Into<String>) -> Self {
        let call_id = call_id.into().into_boxed_str();
        Self::new(Role::Tool, text).edit(|extra| extra.answers = Some(call_id))
    }

    /// Marks the call that this result answers as failed. Providers with a field for failures receive the
    /// mark.
    #[must_use]
    pub fn into_failed(self) -> Self {
        self.edit(|extra| extra.failed = true)
    }

    /// Sets the id. A message without an id is named by its position in the log, such as `m0`.
    #[must_use]
    pub fn with_id(self, id: impl Into<ItemId>) -> Self {
        let id = id.into();
        self.edit(|extra| extra.id = Some(id))
    }

    /// Sets the speaker's name.
    #[must_use]
    pub fn with_name(self, name: impl Into<String>) -> Self {
        let name = name.into().into_boxed_str();
        self.edit(|extra| extra.rare.name = Some(name))
    }

    /// Sets the tool calls of an assistant message, or of a user message if the user has tools. Calls of a
    /// user message are sent as text (rule H9).
    #[must_use]
    pub fn with_tool_calls(self, calls: impl IntoIterator<Item = ToolCall>) -> Self {
        let calls = calls.into_iter().collect();
        self.edit(|extra| extra.calls = calls)
    }

    /// Turns the content into a list of parts. An existing text becomes the first of them.
    #[must_use]
    pub fn with_parts(mut self, parts: impl IntoIterator<Item = Part>) -> Self {
        let mut all = Vec::new();
        let text = std::mem::replace(&mut self.inner_mut().text, "".into());
        if !text.is_empty() {
            all.push(Part::Text(text.as_ref().to_owned()));
        }
        all.extend(parts);
        self.edit(|extra| extra.rare.parts = all)
    }

    /// Adds reasoning to an assistant message: plain text, or reasoning signed by its provider.
    #[must_use]
    pub fn with_reasoning(self, reasoning: impl Into<Reasoning>) -> Self {
        let reasoning = reasoning.into();
        self.edit(|extra| extra.rare.reasoning.push(reasoning))
    }

    /// Returns the role.
    #[must_use]
    pub fn role(&self) -> Role {
        self.0.role
    }

    /// Returns the text if the content is plain text, or an empty string if it is a list of parts.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the parts if the content is a list, or an empty slice if it is plain text.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        self.extra().map_or(&[], |extra| &extra.rare.parts)
    }

    /// Returns the tool calls of the assistant, or of a user who has tools (rule H9).
    #[must_use]
    pub fn tool_calls(&self) -> &[ToolCall] {
        match self.extra() {
            Some(extra) if matches!(self.role(), Role::Assistant | Role::User) => &extra.calls,
            _ => &[],
        }
    }

    /// Returns the id of the call that this result answers, or `None` for other messages.
    #[must_use]
    pub fn answers(&self) -> Option<&str> {
        self.extra().and_then(|extra| extra.answers.as_deref())
    }

    /// Returns true if the call that this result answers failed.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        self.extra().is_some_and(|extra| extra.failed)
    }

    /// Returns the explicit id, or `None` if no id was set.
    #[must_use]
    pub fn id(&self) -> Option<&ItemId> {
        self.extra().and_then(|extra| extra.id.as_ref())
    }

    /// Returns the speaker's name, if one was set.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.extra().and_then(|extra| extra.rare.name.as_deref())
    }

    /// Returns the reasoning. Empty for all roles other than assistant.
    #[must_use]
    pub fn reasoning(&self) -> &[Reasoning] {
        match self.extra() {
            Some(extra) if self.role() == Role::Assistant => &extra.rare.reasoning,
            _ => &[],
        }
    }

    /// Returns true if the message has no content: only white space, and no call, image or other part.
    /// Reasoning alone does not count as content, because no provider accepts it alone. A tool result is
    /// never empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        if let Some(sizes) = self.sizes() {
            return sizes.is_empty;
        }
        let blank = |text: &str| text.trim().is_empty();
        self.role() != Role::Tool
            && blank(self.text())
            && self.extra().is_none_or(|extra| {
                self.tool_calls().is_empty()
                    && extra.rare.parts.iter().all(|part| matches!(part, Part::Text(text) if blank(text)))
            })
    }

    /// Returns true if the message is only text, without parts, calls, reasoning or name.
    pub(crate) fn is_plain(&self) -> bool {
        self.extra().is_none_or(|extra| {
            extra.calls.is_empty()
                && extra.rare.parts.is_empty()
                && extra.rare.reasoning.is_empty()
                && extra.rare.name.is_none()
        })
    }

    /// Returns the parts as texts, with a placeholder for each part that is not text.
    #[doc(hidden)]
    pub fn as_texts(&self) -> impl Iterator<Item = &str> {
        self.parts().iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Image { .. } => "[an image]",
            Part::Opaque { .. } => "[a part that is no text]",
        })
    }

    /// Returns the plain text, or the parts that are text.
    pub(crate) fn own_texts(&self) -> impl Iterator<Item = &str> {
        let parts = self.parts().iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Image { .. } | Part::Opaque { .. } => None,
        });
        [self.text()].into_iter().chain(parts)
    }

    /// Returns every text that is sent and counted, in a fixed order. Images are not included.
    #[doc(hidden)]
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts_without_media(&[])
    }

    /// Returns every text. For a part with media, returns only its text without the media. `media` has one
    /// entry for each part, or is empty.
    fn texts_without_media<'m>(&'m self, media: &'m [Option<PartMedia>]) -> impl Iterator<Item = &'m str> {
        let text = |(at, part): (usize, &'m Part)| match (part, media.get(at)) {
            (Part::Text(text), _) => Some(text.as_str()),
            (Part::Opaque { .. }, Some(Some(media))) => Some(&*media.text),
            (Part::Opaque { json, .. }, _) => Some(json.as_str()),
            (Part::Image { .. }, _) => None,
        };
        let parts = self.parts().iter().enumerate().filter_map(text);
        let calls = self.tool_calls().iter().flat_map(|call| [call.name.as_str(), call.arguments.as_str()]);
        let reasonings = self.reasoning().iter().map(|reasoning| reasoning.text.as_str());
        [self.text()].into_iter().chain(parts).chain(reasonings).chain(self.name()).chain(calls)
    }

    /// Returns every counted text. For a part with media, returns only its text without the media.
    pub(crate) fn counted_texts(&self) -> impl Iterator<Item = &str> {
        self.texts_without_media(self.measured())
    }

    pub(crate) fn has_opaque_parts(&self) -> bool {
        self.parts().iter().any(|part| matches!(part, Part::Opaque { .. }))
    }

    /// Returns true if any part is not text. Only such parts can have media.
    pub(crate) fn may_have_media(&self) -> bool {
        self.parts().iter().any(|part| !matches!(part, Part::Text(_)))
    }

    /// Returns true if any part is neither text nor media.
    pub(crate) fn has_parts_without_media(&self) -> bool {
        let mut parts = self.parts().iter().zip(self.measured());
        parts.any(|(part, media)| matches!(part, Part::Opaque { .. }) && media.is_none())
    }

    /// Returns the media of all parts.
    pub(crate) fn media(&self) -> impl Iterator<Item = &Medium> {
        self.measured().iter().flatten().flat_map(|part| &part.media)
    }

    /// Returns the media of each part, or an empty slice if all parts are text.
    fn measured(&self) -> &[Option<PartMedia>] {
        match self.extra() {
            Some(extra) if self.may_have_media() => {
                // On first use, because measuring decodes the headers of the data.
                let measure = || extra.rare.parts.iter().map(Part::measure).collect();
                extra.rare.media.0.get_or_init(measure)
            }
            _ => &[],
        }
    }

    /// Returns the requested detail of each image.
    pub(crate) fn images(&self) -> impl Iterator<Item = Option<&str>> {
        self.parts().iter().filter_map(|part| match part {
            Part::Image { detail, .. } => Some(detail.as_deref()),
            Part::Text(_) | Part::Opaque { .. } => None,
        })
    }

    /// Returns the plain text, or the text parts.
    pub(crate) fn plain_texts(&self) -> impl Iterator<Item = &str> {
        let parts = self.parts().iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Opaque { .. } | Part::Image { .. } => None,
        });
        Some(self.text()).filter(|text| !text.is_empty()).into_iter().chain(parts)
    }

    /// Checks if both are the same message in memory, not merely equal. Counts of one then hold for the
    /// other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the cached exact count of the counter with this tag, or `None` if it has not counted this
    /// message or another counter has replaced its count.
    pub(crate) fn remembered(&self, tag: u32) -> Option<u64> {
        // Slots by parity, so that two counters with successive tags do not evict each other.
        let memo = self.0.memos[tag as usize % 2].load(Ordering::Relaxed);
        (memo >> 32 == u64::from(tag)).then_some(memo & u64::from(u32::MAX))
    }

    /// Caches an exact count. The cache may change speed, never a plan (rule O3). Counts over 32 bits are not
    /// cached.
    pub(crate) fn remember(&self, tag: u32, tokens: u64) {
        if let Ok(tokens) = u32::try_from(tokens) {
            // One atomic for tag and count, so that relaxed ordering suffices: a reader sees a complete pair
            // or another tag.
            let memo = u64::from(tag) << 32 | u64::from(tokens);
            self.0.memos[tag as usize % 2].store(memo, Ordering::Relaxed);
        }
    }

    /// Returns bytes that represent all sent fields. Each field has a length prefix, so that two messages
    /// give the same bytes only if these fields are equal.
    pub(crate) fn canonical(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.text().len() + 32);
        let mut field = |tag: u8, text: &str| {
            bytes.push(tag);
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        };
        field(0, self.role().name());
        field(1, self.text());
        for part in self.parts() {
            match part {
                Part::Text(text) => field(2, text),
                Part::Image { url, detail } => {
                    field(3, url);
                    field(4, detail.as_deref().unwrap_or_default());
                }
                Part::Opaque { json, .. } => field(5, json),
            }
        }
        for call in self.tool_calls() {
            field(6, &call.id);
            field(7, &call.name);
            field(8, &call.arguments);
            if let Some(signature) = &call.signature {
                field(12, signature);
            }
        }
        for reasoning in self.reasoning() {
            field(10, &reasoning.text);
            for text in [&reasoning.id, &reasoning.signature].into_iter().flatten() {
                field(13, text);
            }
        }
        if self.is_failed() {
            field(14, "");
        }
        if let Some(written) = self.written() {
            field(15, written.wire_format.name());
            for piece in &written.pieces {
                // Kinds have tags from 16 on, above those of all other fields.
                field(16 + piece.kind as u8, piece.json.as_deref().unwrap_or_default());
            }
        }
        for (tag, text) in [(9, self.answers()), (11, self.name())] {
            if let Some(text) = text {
                field(tag, text);
            }
        }
        bytes
    }

    /// Returns the optional fields, if any is set.
    fn extra(&self) -> Option<&Extra> {
        self.0.extra.as_deref()
    }

    /// Returns the fields for a change. Clones them first if another handle shares them, and clears the
    /// cached counts.
    fn inner_mut(&mut self) -> &mut Inner {
        let inner = Arc::make_mut(&mut self.0);
        // Cached counts belong to the old content.
        inner.memos = Default::default();
        inner
    }

    /// Changes the optional fields. Allocates them if necessary, and frees them if they are empty afterwards.
    fn edit(mut self, change: impl FnOnce(&mut Extra)) -> Self {
        let extra = &mut self.inner_mut().extra;
        if let Some(fields) = extra.as_mut().and_then(|extra| extra.rare.0.as_mut()) {
            // A message that nobody shares was not cloned just now, so its media cache was not cleared. The
            // change may replace the parts.
            fields.media = Cached::default();
        }
        change(extra.get_or_insert_default());
        // Normalised, so that the message equals one that never had any of these fields.
        if let Some(extra) = extra.as_deref_mut().filter(|extra| *extra.rare == RareFields::default()) {
            extra.rare = Rare::default();
        }
        if extra.as_deref().is_some_and(|extra| *extra == Extra::default()) {
            *extra = None;
        }
        self
    }
}

impl Clone for Inner {
    fn clone(&self) -> Self {
        // The copy is about to change, so cached counts do not carry over.
        let (text, extra) = (self.text.clone(), self.extra.clone());
        Self { role: self.role, text, extra, memos: Default::default() }
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.role() == other.role() && self.text() == other.text() && self.extra() == other.extra()
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("role", &self.role())
            .field("text", &self.text())
            .field("extra", &self.extra())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_parts_are_measured_again() {
        let image = |url: &str| Part::Image { url: url.into(), detail: None };
        let message = Message::user("").with_parts([image("https://example.org/a.png")]);
        assert_eq!(message.media().count(), 1);
        let message =
            message.with_parts([image("https://example.org/a.png"), image("https://example.org/b.png")]);
        assert_eq!(message.media().count(), 2);
    }

    #[test]
    fn message_shared_by_two_conversations_has_a_stub_in_each() {
        let result = Message::tool("c", "a long result");
        let short = |id: &str, form| {
            let text = format!("{id} as {form:?}");
            result.shortened(&id.into(), form, || Some(result.with_new_text(text))).expect("it is shorter")
        };
        let stub = |id: &str| short(id, ShortForm::Stub);
        assert_eq!(stub("m1").text(), "m1 as Stub");
        assert_eq!(stub("m2").text(), "m2 as Stub");
        assert_eq!(short("m1", ShortForm::Offloaded(7)).text(), "m1 as Offloaded(7)");
        assert_eq!(stub("m1"), stub("m1"));
        assert_eq!(stub("m1").answers(), Some("c"));
        assert_eq!(result, result.clone(), "a stub is no part of what a message is");
    }
}
