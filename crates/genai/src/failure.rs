//! The reasons for a failed attempt, as messages without API keys and without text of the prompt.

use context_window::{Message, usage::is_context_overflow};
use genai::{resolver, webc};
use serde_json::Value;
use std::error::Error as _;

/// The maximum length in characters of a provider's message in an error.
const SAID: usize = 200;
/// The number of consecutive words that count as a quotation if they also occur in the prompt.
const ECHO_WORDS: usize = 4;
/// The minimum length in bytes of a single word that counts as a quotation.
const ECHO_BYTES: usize = 20;
/// The minimum length in bytes of a real key. Shorter ones are placeholders ("none", "ollama").
const KEY: usize = 8;

/// A failed attempt.
#[derive(Debug)]
pub(super) struct Failure {
    /// The failure in this crate's own words.
    what: String,
    /// The provider's message, unchanged. It may quote anything that was sent.
    said: String,
    /// True if the prompt is too long, so that a smaller request is worth sending.
    overflow: bool,
}

impl Failure {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), said: String::new(), overflow: false }
    }

    /// Creates a failure because the prompt is too long.
    pub(super) fn overflow(what: impl Into<String>) -> Self {
        Self { overflow: true, ..Self::new(what) }
    }

    /// Converts an error of the client library. Its own texts are used only if they cannot contain the
    /// prompt.
    pub(super) fn from_error(error: genai::Error) -> Self {
        match error {
            genai::Error::WebModelCall { webc_error, .. }
            | genai::Error::WebAdapterCall { webc_error, .. } => Self::of_call(webc_error),
            genai::Error::HttpError { status, body, .. } => Self::of_status(status.as_u16(), &status, &body),
            // The library's message for this error contains the whole request.
            genai::Error::ChatResponseGeneration { response_body, .. } => Self::of_body(&response_body)
                .unwrap_or_else(|| Self::new("the reply is not in the wire format of this provider")),
            genai::Error::ChatResponse { body, .. } => {
                Self::of_body(&body).unwrap_or_else(|| Self::new("the reply contains no text"))
            }
            genai::Error::Resolver { resolver_error, .. } => Self::of_key(resolver_error),
            genai::Error::Internal(_) => Self::new("the URL cannot be used"),
            genai::Error::ClientBuildFail { cause } => {
                Self { said: cause, ..Self::new("the HTTP client could not be created") }
            }
            _ => Self::new("the request could not be created"),
        }
    }

    /// Converts an error of the key lookup. It names the environment variable, never a value.
    pub(super) fn of_key(error: resolver::Error) -> Self {
        Self::new(match error {
            resolver::Error::ApiKeyEnvNotFound { env_name } => {
                format!("there is no API key, neither given nor in the variable {env_name}")
            }
            _ => "there is no API key".to_owned(),
        })
    }

    /// Converts an error of the HTTP layer.
    fn of_call(error: webc::Error) -> Self {
        match error {
            webc::Error::ResponseFailedStatus { status, body, .. } => {
                Self::of_status(status.as_u16(), &status, &body)
            }
            webc::Error::ResponseFailedNotJson { content_type, .. } => {
                Self { said: content_type, ..Self::new("the reply is not JSON") }
            }
            webc::Error::ResponseFailedInvalidJson { .. } => Self::new("the reply is not complete JSON"),
            webc::Error::Reqwest(error) => {
                let decoded = error.is_body() || error.is_decode();
                let what = if decoded {
                    "the connection closed before the reply was complete"
                } else {
                    "the connection failed"
                };
                // The URL may contain a key.
                let error = error.without_url();
                let mut said = error.to_string();
                // The outer error only names the operation; the reason, such as a refused connection, is in
                // its sources.
                let mut source = error.source();
                while let Some(cause) = source {
                    said = format!("{said}: {cause}");
                    source = cause.source();
                }
                Self { said, ..Self::new(what) }
            }
            webc::Error::JsonValueExt(_) => Self::new("the reply is not in the wire format of this provider"),
        }
    }

    /// Converts an HTTP error status and its body.
    fn of_status(code: u16, status: &impl ToString, body: &str) -> Self {
        let json: Option<Value> = serde_json::from_str(body).ok();
        let said = match &json {
            Some(json) => message(json).unwrap_or_default(),
            // An HTML page for people, not a message.
            None if body.trim_start().starts_with('<') => String::new(),
            None => body.to_owned(),
        };
        // 413: the request is too large for the provider or for a proxy.
        let overflow = is_context_overflow(body) || code == 413;
        Self { what: format!("HTTP {}", status.to_string()), said, overflow }
    }

    /// Returns the error in the body of an answer, or `None` if the body has none.
    pub(super) fn of_body(body: &Value) -> Option<Self> {
        // Some gateways report a failure inside of a choice, with HTTP status 200.
        let error = ["/error", "/choices/0/error"]
            .into_iter()
            .find_map(|at| body.pointer(at).filter(|error| is_error(error)))?;
        let said = message(error).unwrap_or_default();
        let overflow = is_context_overflow(&error.to_string());
        Some(Self { what: "the reply is an error".to_owned(), said, overflow })
    }

    pub(super) fn is_overflow(&self) -> bool {
        self.overflow
    }

    /// Returns the message for people. It contains the provider's message only if that does not quote the
    /// prompt.
    pub(super) fn detail(&self, key: &str, prompt: &[Message]) -> String {
        let what = &self.what;
        let said = without_keys(&self.said, key);
        match said.as_str() {
            "" => what.clone(),
            said if repeats(said, prompt) => {
                format!("{what} (the error text quotes the prompt and is not shown)")
            }
            said => format!("{what}: {said}"),
        }
    }
}

/// Returns true if the value of an `error` field is an error. Some servers send it as null, false or empty.
fn is_error(error: &Value) -> bool {
    !matches!(error, Value::Null | Value::Bool(false)) && *error != Value::String(String::new())
}

/// Returns the message in the body of an error. It looks at the keys that providers use.
fn message(body: &Value) -> Option<String> {
    // The most specific place first: `/error` is an object at most providers and a string at some.
    let places = ["/error/message", "/error", "/message", "/detail", ""];
    let text = places.into_iter().find_map(|at| body.pointer(at).and_then(Value::as_str));
    text.map(str::to_owned)
}

/// Returns the beginning of a text on one line. Words that look like keys are replaced by `[key]`.
fn without_keys(said: &str, key: &str) -> String {
    // Replaces the caller's key before the split into words: it may be part of a longer word.
    let said = if key.len() < KEY { said.to_owned() } else { said.replace(key, "[key]") };
    let bare = |word: &str| {
        let start = word.trim_start_matches(|c: char| !c.is_alphanumeric());
        ["sk-", "AIza"].iter().any(|prefix| start.starts_with(prefix))
    };
    let words = said.split_whitespace().map(|word| if bare(word) { "[key]" } else { word });
    let line = words.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SAID) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// Returns true if a provider's message quotes the prompt: 4 words in a row, or one word of 20 bytes or more.
fn repeats(said: &str, prompt: &[Message]) -> bool {
    // White space is normalized on both sides: providers quote prompts with other line breaks. Complexity:
    // the runs of a message times the length of the prompt.
    let said: Vec<&str> = said.split_whitespace().collect();
    let mut runs: Vec<String> = said.windows(ECHO_WORDS).map(|words| words.join(" ")).collect();
    runs.extend(said.iter().filter(|word| word.len() >= ECHO_BYTES).map(|word| (*word).to_owned()));
    prompt.iter().flat_map(Message::texts).any(|text| {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        runs.iter().any(|run| text.contains(run.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn detail(body: &Value, key: &str, prompt: &[Message]) -> String {
        Failure::of_status(401, &"401 Unauthorized", &body.to_string()).detail(key, prompt)
    }

    #[test]
    fn key_is_never_shown() {
        let body = json!({"error": {"message": "Incorrect API key provided: sk-ab***xy. Or topsecret1, \"sk-cd\"."}});
        let detail_of_body = detail(&body, "topsecret1", &[]);
        assert_eq!(
            detail_of_body,
            "HTTP 401 Unauthorized: Incorrect API key provided: [key] Or [key], [key]"
        );
    }

    #[test]
    fn error_text_that_repeats_the_prompt_is_omitted() {
        let prompt = [Message::user("My pin is\n1234, do not tell.")];
        let body = json!({"message": "cannot read \"My pin is 1234, do not tell.\""});
        assert!(detail(&body, "", &prompt).ends_with("is not shown)"));
        let body = json!({"detail": "cannot read this"});
        assert_eq!(detail(&body, "", &prompt), "HTTP 401 Unauthorized: cannot read this");
    }

    #[test]
    fn words_are_found_and_cut() {
        for body in [json!({"error": "no"}), json!({"error": {"message": "no"}}), json!("no")] {
            assert_eq!(detail(&body, "", &[]), "HTTP 401 Unauthorized: no");
        }
        let page = Failure::of_status(502, &"502 Bad Gateway", "<html>Bad</html>");
        assert_eq!(page.detail("", &[]), "HTTP 502 Bad Gateway");
        let long = Failure::of_status(500, &"500", &"ü ".repeat(500)).detail("", &[]);
        assert!(long.chars().count() < 220 && long.ends_with("..."), "{long}");
        assert!(Failure::of_body(&json!({"error": null, "choices": []})).is_none());
    }

    #[test]
    fn too_long_is_known_by_status_or_wording() {
        let overflows = |code, body: &str| Failure::of_status(code, &"", body).is_overflow();
        assert!(overflows(413, ""));
        assert!(overflows(400, r#"{"error":{"code":"context_length_exceeded"}}"#));
        assert!(!overflows(429, "Rate limit reached: too many tokens per minute"));
        assert!(
            Failure::of_body(&json!({"error": {"message": "prompt is too long"}})).unwrap().is_overflow()
        );
    }
}
