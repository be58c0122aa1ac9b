//! Messages derived from others: with another text, role, ids or parts, or joined. The original message does
//! not change.

use super::{Content, Message, Part, Role, ShortForm, ToolCall, WireFormat, Written};
use crate::item::ItemId;
use std::{borrow::Cow, sync::OnceLock};

impl Message {
    /// Returns the message without its id.
    #[doc(hidden)]
    #[must_use]
    pub fn without_id(self) -> Self {
        if self.id().is_none() {
            return self;
        }
        self.edit(|extra| extra.id = None)
    }

    /// Returns a copy whose tool calls have these ids, in order (rule H1).
    pub(crate) fn with_call_ids(&self, ids: Vec<String>) -> Self {
        self.clone().edit(|extra| {
            for (call, id) in extra.calls.iter_mut().zip(ids) {
                call.id = id;
            }
        })
    }

    /// Returns a copy of a tool result that answers this call id (rule H1).
    pub(crate) fn answering(&self, call_id: &str) -> Self {
        let call_id = call_id.into();
        self.clone().edit(|extra| extra.answers = Some(call_id))
    }

    /// Returns a copy whose whole content is this text (rule S7).
    pub(crate) fn with_new_text(&self, text: String) -> Self {
        let mut message = self.clone();
        message.inner_mut().text = text.into();
        let text = message.text().to_owned();
        message.edit(|extra| {
            extra.rare.parts.clear();
            if let Some(written) = extra.rare.written.as_deref_mut() {
                written.replace_text(&text);
            }
        })
    }

    /// Returns a shorter form of a tool result in a plan in which its id is `id`, as `make` returns it. It is
    /// cached in a message that answers a call, so that `make` mostly runs once.
    pub(crate) fn shortened(
        &self,
        id: &ItemId,
        form: ShortForm,
        make: impl FnOnce() -> Option<Self>,
    ) -> Option<Self> {
        // A message without optional fields answers no call, so it needs no cache.
        let cell = self.extra().map(|extra| &extra.short.0);
        // A message that is part of two conversations may have two ids, so the cached id is compared.
        if let Some((_, _, short)) =
            cell.and_then(OnceLock::get).map(|kept| &**kept).filter(|kept| (&kept.0, kept.1) == (id, form))
        {
            return Some(short.clone());
        }
        let short = make()?;
        cell.map(|cell| cell.set(Box::new((id.clone(), form, short.clone()))));
        Some(short)
    }

    /// Returns a tool result with shorter texts. `shorten` returns a shorter form of a text, or `None`. If
    /// the result has media, each text is shortened by itself; otherwise all texts are one. Returns `None` if
    /// none of its texts becomes shorter.
    pub(crate) fn with_shorter_texts(&self, shorten: impl Fn(&str) -> Option<String>) -> Option<Self> {
        if !self.accepts_new_text() {
            return None;
        }
        if !self.may_have_media() {
            let texts: Vec<&str> = self.plain_texts().collect();
            let whole = if let [text] = texts[..] { Cow::Borrowed(text) } else { texts.join("\n").into() };
            return shorten(&whole).map(|text| self.with_new_text(text));
        }
        let parts = self.as_parts();
        let changed: Vec<Option<String>> = parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => shorten(text),
                Part::Image { .. } | Part::Opaque { .. } => None,
            })
            .collect();
        if changed.iter().all(Option::is_none) {
            return None;
        }
        let parts = changed.into_iter().zip(parts);
        let parts = parts.map(|(text, part)| text.map_or(part, Part::Text));
        Some(self.replacing_content(parts.collect()))
    }

    /// Returns a copy in which `change` replaced every sent text, including call ids, and `change_json`
    /// replaced the JSON of call arguments and opaque parts.
    #[cfg(feature = "chat-template")]
    pub(crate) fn with_texts_changed(
        &self,
        change: &dyn Fn(&str) -> String,
        change_json: &dyn Fn(&str) -> String,
    ) -> Self {
        let mut message = self.clone();
        let inner = message.inner_mut();
        inner.text = change(&inner.text).into();
        if let Some(extra) = inner.extra.as_deref_mut() {
            // A chat template reads the neutral fields only.
            extra.rare.written = None;
            for part in &mut extra.rare.parts {
                match part {
                    Part::Text(text) => *text = change(text),
                    Part::Opaque { json, .. } => *json = change_json(json),
                    Part::Image { .. } => {}
                }
            }
            for call in &mut extra.calls {
                call.id = change(&call.id);
                call.name = change(&call.name);
                call.arguments = change_json(&call.arguments);
            }
            for reasoning in &mut extra.rare.reasoning {
                reasoning.text = change(&reasoning.text);
            }
            if let Some(name) = &mut extra.rare.name {
                *name = change(name).into();
            }
            if let Some(id) = &mut extra.answers {
                *id = change(id).into();
            }
        }
        message
    }

    /// Returns a copy whose whole content is these parts. There must be as many as before, each at the place
    /// of the old one, because the stored pieces refer to them by number.
    pub(crate) fn replacing_content(&self, parts: Vec<Part>) -> Self {
        let mut message = self.clone();
        message.inner_mut().text = "".into();
        message.edit(|extra| extra.rare.parts = parts)
    }

    /// Returns a copy without the parts with these numbers, which must be sorted. Plain text counts as part
    /// 0.
    pub(crate) fn without_parts(&self, numbers: &[usize]) -> Self {
        let text = usize::from(!self.text().is_empty());
        self.clone().edit(|extra| {
            let mut at = text;
            extra.rare.parts.retain(|_| {
                at += 1;
                numbers.binary_search(&(at - 1)).is_err()
            });
            extra.remove_pieces(numbers, &[]);
        })
    }

    /// Returns the content as parts. Plain text becomes the first of them.
    #[doc(hidden)]
    #[must_use]
    pub fn as_parts(&self) -> Vec<Part> {
        let own = Some(self.text()).filter(|text| !text.is_empty()).map(|text| Part::Text(text.into()));
        own.into_iter().chain(self.parts().iter().cloned()).collect()
    }

    /// Returns this message and the next one joined.
    #[cfg(feature = "chat-template")]
    pub(crate) fn joined_with(&self, next: &Self) -> Self {
        Self::joined(&[self.clone(), next.clone()])
    }

    /// Joins messages of one role: the parts of all and the calls of all. `messages` must not be empty.
    pub(crate) fn joined(messages: &[Self]) -> Self {
        let [first, rest @ ..] = messages else { return Self::user("") };
        let parts: Vec<Part> = messages.iter().flat_map(Self::as_parts).collect();
        let reasonings = messages.iter().flat_map(Self::reasoning).cloned().collect();
        // Speakers with different names cannot share one name field, so it is left out then.
        let named = |name: &&str| rest.iter().all(|next| next.name() == Some(name));
        let name = first.name().filter(named).map(Into::into);
        let calls = messages.iter().flat_map(Self::tool_calls).cloned().collect();
        let (no_parts, no_reasonings) = (Vec::new(), Vec::new());
        let content = Content { text: "".into(), parts, name, reasonings, no_parts, no_reasonings };
        let written = Written::joined(messages);
        first.with_content(content).edit(|extra| {
            extra.calls = calls;
            extra.rare.written = written.map(Box::new);
        })
    }

    /// Returns a copy in this role.
    pub(crate) fn with_role(&self, role: Role) -> Self {
        let mut message = self.clone();
        message.inner_mut().role = role;
        message
    }

    /// Returns a copy with this content, name and reasoning.
    pub(crate) fn with_content(&self, content: Content) -> Self {
        let mut message = self.clone();
        message.inner_mut().text = content.text;
        message.edit(|extra| {
            extra.rare.parts = content.parts;
            extra.rare.name = content.name;
            extra.rare.reasoning = content.reasonings;
            extra.remove_pieces(&content.no_parts, &content.no_reasonings);
        })
    }

    /// Returns a copy without its reasoning, and without the items that its provider accepts only after that
    /// reasoning.
    pub(crate) fn without_reasoning(&self) -> Self {
        if self.reasoning().is_empty() {
            return self.clone();
        }
        let message = self.without_parts(&self.items(WireFormat::OpenAiResponses));
        message.edit(|extra| {
            extra.rare.reasoning.clear();
            if let Some(written) = extra.rare.written.as_deref_mut() {
                written.without_reasoning();
            }
        })
    }

    /// Returns a copy with this token count for its reasoning, unless the reasoning already has a count.
    pub(crate) fn with_reasoning_tokens(&self, tokens: u64) -> Self {
        let known = self.reasoning().iter().any(|piece| piece.tokens.is_some());
        if known || self.reasoning().is_empty() {
            return self.clone();
        }
        // The count is reported for the whole reply, so the first piece carries it and the others get 0.
        self.clone().edit(|extra| {
            for (nth, piece) in extra.rare.reasoning.iter_mut().enumerate() {
                piece.tokens = Some(if nth == 0 { tokens } else { 0 });
            }
        })
    }

    /// Returns a copy whose tool calls are replaced by text parts, which `text` creates from them (rule H9).
    pub(crate) fn with_calls_as_texts(&self, text: impl Fn(usize, &ToolCall) -> String) -> Self {
        let calls = self.tool_calls().iter().enumerate();
        let texts: Vec<String> = calls.map(|(nth, call)| text(nth, call)).collect();
        self.with_texts(texts).edit(|extra| extra.calls = Box::default())
    }

    /// Returns a tool result as a user message (rule H9). `text` creates its text from the joined texts of
    /// the result, and other parts are kept.
    pub(crate) fn as_user_text(&self, text: impl Fn(&str) -> String) -> Self {
        let texts: Vec<&str> = self.plain_texts().collect();
        let others = self.parts().iter().filter(|part| !matches!(part, Part::Text(_))).cloned();
        let message = Self::user(text(&texts.join("\n\n")));
        let others: Vec<Part> = others.collect();
        let message = if others.is_empty() { message } else { message.with_parts(others) };
        match self.id() {
            Some(id) => message.with_id(id.clone()),
            None => message,
        }
    }

    /// Returns a copy with these texts as additional parts (rule O1).
    pub(crate) fn with_texts(&self, texts: impl IntoIterator<Item = String>) -> Self {
        let own = self.parts().to_vec();
        let texts = texts.into_iter().map(Part::Text);
        self.clone().with_parts(own.into_iter().chain(texts))
    }
}
