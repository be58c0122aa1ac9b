//! Values of attributes in the lines around texts.

/// Characters that an attribute value cannot contain.
const ESCAPED: [char; 6] = ['&', '"', '<', '>', '\n', '\r'];

/// Writes a text as an attribute value: on one line, with `&`, `"`, `<` and `>` escaped.
pub(crate) fn push_escaped(text: &mut String, value: &str) {
    let mut rest = value;
    // Most values have nothing to escape, and are copied at once.
    while let Some(at) = rest.find(ESCAPED) {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        text.push_str(match after.as_bytes()[0] {
            b'&' => "&amp;",
            b'"' => "&quot;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            _ => " ",
        });
        rest = &after[1..];
    }
    text.push_str(rest);
}

/// Returns a text as an attribute value.
pub(crate) fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    push_escaped(&mut text, value);
    text
}

/// Returns the text of an attribute value. Line breaks stay spaces.
pub(crate) fn unescaped(value: &str) -> String {
    // The ampersand comes last, because it begins the other escapes.
    value.replace("&gt;", ">").replace("&lt;", "<").replace("&quot;", "\"").replace("&amp;", "&")
}
