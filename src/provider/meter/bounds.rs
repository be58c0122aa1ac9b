//! Upper bounds of the tokens of a message in bytes, for any target. They need no counter.

use super::hidden_reasoning_tokens;
use crate::{
    media,
    message::{Message, Part, Role, ToolCall},
    provider::conform::is_object,
};

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
/// The maximum size in bytes of arguments that are parsed when a message is added, to check that they are an
/// object.
const READ_ON_PUSH: usize = 1 << 16;

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
    use crate::{
        message::WireFormat,
        provider::{model::WireFormatCosts, wording},
    };

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
