//! Conversion between JavaScript values and JSON, with JavaScript's own `JSON`.

use crate::error::input;
use serde::{Serialize, de::DeserializeOwned};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// Plain data.
    #[wasm_bindgen(typescript_type = "unknown")]
    pub type Plain;
    /// The messages of a provider's request.
    #[wasm_bindgen(typescript_type = "WireMessage[]")]
    pub type WireList;
    /// The body of a provider's request.
    #[wasm_bindgen(typescript_type = "Record<string, any>")]
    pub type WireBody;
    /// The use of a context window.
    #[wasm_bindgen(typescript_type = "Record<string, any>")]
    pub type UsageJson;
}

/// Returns a value as JSON. `name` names it in errors.
pub(crate) fn text(value: &JsValue, name: &str) -> Result<String, JsValue> {
    let written = js_sys::JSON::stringify(value)
        .map_err(|error| input(format!("{name}: {}; expected plain data", described(&error))))?;
    // `undefined` and functions have no JSON.
    let written: JsValue = written.into();
    match written.as_string() {
        Some(text) => Ok(with_whole_characters(text)),
        None => Err(input(format!("{name}: expected plain data, found {}", kind(value)))),
    }
}

/// Returns plain data as a value of Rust.
pub(crate) fn read<T: DeserializeOwned>(value: &JsValue, name: &str) -> Result<T, JsValue> {
    serde_json::from_str(&text(value, name)?).map_err(|error| input(format!("{name}: {error}")))
}

/// Returns plain data as a JavaScript value.
pub(crate) fn value(data: &impl Serialize) -> Result<JsValue, JsValue> {
    let json = serde_json::to_string(data).map_err(|error| input(error.to_string()))?;
    parse(&json)
}

/// Parses JSON.
pub(crate) fn parse(json: &str) -> Result<JsValue, JsValue> {
    js_sys::JSON::parse(json)
}

/// Returns a number of JavaScript as a whole number. Returns `None` if it is negative or has a fraction.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both are checked")]
pub(crate) fn whole(number: f64) -> Option<u64> {
    // The fraction of infinity is NaN, so infinity has no whole number either.
    (number >= 0.0 && number.fract() == 0.0).then_some(number as u64)
}

/// Returns the type of a value for an error.
pub(crate) fn kind(value: &JsValue) -> String {
    if value.is_null() { "null".into() } else { value.js_typeof().as_string().unwrap_or_default() }
}

/// Describes a value that was thrown: the message of an error, or the value itself.
pub(crate) fn described(value: &JsValue) -> String {
    // A property of an application's object may be a function that throws. The library catches that here, and
    // nowhere else.
    let property = |name: &str| js_sys::Reflect::get(value, &name.into()).ok()?.as_string();
    let text = value.as_string().or_else(|| property("message"));
    text.unwrap_or_else(|| value.as_f64().map_or_else(|| kind(value), |number| number.to_string()))
}

/// Returns JSON in which each escape of half a character is the replacement character. JavaScript strings may
/// end in the middle of a character, and UTF-8 has no such half.
fn with_whole_characters(json: String) -> String {
    if !json.contains("\\ud") {
        return json;
    }
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut whole = String::with_capacity(json.len());
    let mut at = 0;
    while let Some(found) = json[at..].find('\\') {
        let start = at + found;
        whole.push_str(&json[at..start]);
        // A whole pair is never escaped, so every escape of a surrogate is half a character.
        let is_half = unit(start).is_some_and(|unit| (0xd800..0xe000).contains(&unit));
        let end = if is_half { start + 6 } else { start + 2 };
        whole.push_str(if is_half { "\\ufffd" } else { &json[start..end] });
        at = end;
    }
    whole.push_str(&json[at..]);
    whole
}
