//! Session files, the input of `plan-inspect`. A file is one JSON object, an array of chat messages, JSON
//! lines of either, a transcript of a coding agent, or a log on disk.

use crate::error::Error;
use context_window::{
    Conversation, ItemId, PlanRequest, RequestLimits, RetrievedItems, Tool, WireFormat,
    plan::{Anchor, RemoteContext},
    text::plain,
};

pub(crate) mod bounded;
mod path;
pub(crate) mod place;
mod counted;
pub(crate) mod surrogates;
mod timestamp;
pub(crate) mod unread;
pub(crate) mod keys;
pub(crate) mod content;
pub(crate) mod id;
pub(crate) mod passages;
pub(crate) mod wire;
mod stated;
pub(crate) mod document;
pub(crate) mod anthropic;
mod dialects;
mod chat;
pub(crate) mod unread_keys;
pub(crate) mod compacted;
pub(crate) mod gemini;
pub(crate) mod responses;
mod sharegpt;
mod logged;
pub(crate) mod tools;
pub(crate) mod open_calls;
pub(crate) mod reader;
pub(crate) mod read;
mod redacted;
mod written;
pub(crate) mod transcript;

pub(crate) use counted::count_values;
pub use written::{SessionTexts, session_json};

/// The tokenizers that a session may name, even if this build lacks their features.
const BUILT_IN_TOKENIZERS: [&str; 5] = ["o200k_base", "cl100k_base", "chars/4", "chars/3.5", "bytes"];

/// A session: a conversation with the inputs of its next prompt.
///
/// ```
/// use context_window::{Config, ContextWindowManager, Model, TokenCounter};
/// use context_window_formats::Session;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (model, counter) = (Model::custom("m"), TokenCounter::chars_per_4());
/// # let manager = ContextWindowManager::new(model, counter, Config::default())?;
/// let json = r#"{"messages": [{"role": "user", "content": "How long do refunds take?"}]}"#;
/// let session = Session::from_json(json)?;
/// let plan = manager.build_plan(&session.request())?;
/// assert_eq!(plan.included.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Session {
    /// The session's id in the file.
    pub id: Option<String>,
    /// The name of the model, if the session contains one.
    pub model: Option<String>,
    /// The wire format of a logged request body, if its shape determines it. It is `None` for a session of
    /// this library and for `OpenAI` Chat.
    pub wire_format: Option<WireFormat>,
    /// The limits that the session sets, in tokens.
    pub limits: RequestLimits,
    /// The conversation.
    pub log: Conversation,
    /// The declared tools.
    pub tools: Vec<Tool>,
    /// The retrieved documents, with their ranked lists if there are several.
    pub rag: RetrievedItems,
    /// The focus hint.
    pub focus: Option<String>,
    /// The state entries: id and text.
    pub state: Vec<(ItemId, String)>,
    /// Remote context (B8): context that the provider adds, and that a logged body only names.
    pub remote: Vec<RemoteContext>,
    /// True if the reply has to follow a JSON schema.
    pub structured_output: bool,
    /// The record of the last prompt, for the sticky window (S5).
    pub previous: Option<Anchor>,
    /// The options of the application as the text of an options file. Written by [`session_json`].
    pub options: Option<String>,
    /// The name of the application's tokenizer. Written by [`session_json`].
    pub tokenizer: Option<String>,
    /// The unknown keys of the session, which are ignored.
    unread: Vec<String>,
    /// Notes on content that was not used, such as incomplete compactions.
    pub(crate) ignored: Vec<String>,
}

impl Session {
    /// Creates a session of a conversation, without model, tools or documents.
    fn from_log(log: Conversation) -> Self {
        Self {
            id: None,
            model: None,
            wire_format: None,
            limits: RequestLimits::default(),
            log,
            tools: Vec::new(),
            rag: RetrievedItems::default(),
            focus: None,
            state: Vec::new(),
            remote: Vec::new(),
            structured_output: false,
            previous: None,
            options: None,
            tokenizer: None,
            unread: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// Checks if another reading of the same file gives the same conversation.
    pub(crate) fn is_same_conversation(&self, other: &Self) -> bool {
        self.log.messages() == other.log.messages()
            && self.log.system() == other.log.system()
            && self.tools == other.tools
            && self.log.compactions().eq(other.log.compactions())
    }

    /// Checks that the session names only built-in tokenizers. Any other name is the path of a file, and the
    /// author of the session could then make you open a file of their choice.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Input`](crate::ErrorKind::Input) with the name, and with the key that holds it.
    pub fn check_tokenizer(&self) -> Result<(), Error> {
        let options = self.options.as_deref().and_then(|options| toml::from_str::<toml::Table>(options).ok());
        let of_options = options
            .as_ref()
            .and_then(|options| options.get("model")?.get("default")?.get("tokenizer")?.as_str());
        // A session may name a tokenizer under either of two keys.
        let named = [
            ("context_window.tokenizer", self.tokenizer.as_deref()),
            ("context_window.options.model.default.tokenizer", of_options),
        ];
        for (key, name) in named {
            if let Some(name) = name.filter(|name| !BUILT_IN_TOKENIZERS.contains(name)) {
                let (name, known) = (plain::short(name), BUILT_IN_TOKENIZERS.join(", "));
                let detail = format!(
                    "`{name}` is not a built-in tokenizer, and a session file must not specify a file; expected one of {known}"
                );
                return Err(Error::input(key, detail));
            }
        }
        Ok(())
    }

    /// Sets the notes on content that is not used.
    pub(crate) fn with_ignored(mut self, ignored: Vec<String>) -> Self {
        self.ignored = ignored;
        self
    }

    /// Returns the keys that are not read but are probably misspelt, each with the key that was probably
    /// meant. Unknown keys are not an error, because logs contain keys of their writers' own.
    #[must_use]
    pub fn unread_keys(&self) -> Vec<(String, &'static str)> {
        let suggested = |key: &String| Some((key.clone(), read::suggested_key(key)?));
        self.unread.iter().filter_map(suggested).collect()
    }

    /// Returns a note, with the reason, for each part of the session that is not used. One example is a
    /// compaction that is incomplete or names a missing message; its messages stay unchanged. Others are
    /// misspelt keys of messages, and events of a transcript that are not part of the conversation.
    #[must_use]
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// Returns the request for the session's next prompt.
    #[must_use]
    pub fn request(&self) -> PlanRequest<'_> {
        let mut request = PlanRequest::new(&self.log);
        request.focus.clone_from(&self.focus);
        request.state.clone_from(&self.state);
        request.previous.clone_from(&self.previous);
        request.wants_structured_output = self.structured_output;
        let request = request.with_remote_context(self.remote.iter().cloned());
        request.with_tools(&self.tools).with_retrieved(self.rag.clone()).with_limits(self.limits)
    }
}

/// Creates a session of a conversation, without model, tools or documents.
impl From<Conversation> for Session {
    fn from(log: Conversation) -> Self {
        Self::from_log(log)
    }
}

#[cfg(test)]
mod tests {
    /// A session may name every built-in tokenizer, and no others.
    #[test]
    fn built_in_tokenizers_match_the_counter() {
        assert_eq!(super::BUILT_IN_TOKENIZERS, context_window::TokenCounter::NAMES);
    }
}
