//! Session files: what `plan-inspect` reads. One JSON object, a bare array of chat messages, JSON lines of
//! either, a transcript of a coding agent, or a log on disk.

use crate::error::Error;
use context_window::{
    Conversation, ItemId, PlanRequest, RagItem, RequestLimits, Tool, WireFormat,
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
mod tools;
pub(crate) mod open_calls;
pub(crate) mod reader;
pub(crate) mod read;
mod pushed;
mod redacted;
mod written;
pub(crate) mod transcript;

pub(crate) use counted::count_values;
pub use pushed::{push_json, tools_from_json};
pub use written::{SessionTexts, session_json};

/// Tokenizers that a session may name, whatever features this build has.
const BUILT_IN_TOKENIZERS: [&str; 5] = ["o200k_base", "cl100k_base", "chars/4", "chars/3.5", "bytes"];

/// One session: a conversation, and what its next prompt brings with it.
///
/// ```
/// use context_window::{Config, ContextWindowManager, Model, TokenCounter};
/// use context_window_formats::Session;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let manager = ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
/// let session = Session::from_json(r#"{"messages": [{"role": "user", "content": "How long do refunds take?"}]}"#)?;
/// let plan = manager.build_plan(&session.request())?;
/// assert_eq!(plan.included.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Session {
    /// Its id in the file.
    pub id: Option<String>,
    /// The model it names.
    pub model: Option<String>,
    /// The wire format of a logged request body, where its shape tells: none for a session of our own and for
    /// `OpenAI` Chat.
    pub wire_format: Option<WireFormat>,
    /// The limits it brings.
    pub limits: RequestLimits,
    /// The conversation.
    pub log: Conversation,
    /// The tools declared.
    pub tools: Vec<Tool>,
    /// The retrieved documents.
    pub rag: Vec<RagItem>,
    /// The focus hint.
    pub focus: Option<String>,
    /// Volatile state: id and text.
    pub state: Vec<(ItemId, String)>,
    /// Context that a logged body names and does not hold: its provider adds it (rule B8).
    pub remote: Vec<RemoteContext>,
    /// What the last prompt left behind (rule S5).
    pub previous: Option<Anchor>,
    /// Options that the application had set, as the text of a file of options; with [`session_json`].
    pub options: Option<String>,
    /// The tokenizer that the application counted with, by its name; likewise.
    pub tokenizer: Option<String>,
    /// Keys of the session that are not used.
    unread: Vec<String>,
    /// Compactions that could not be used.
    pub(crate) ignored: Vec<String>,
}

impl Session {
    /// A conversation and nothing else.
    fn of(log: Conversation) -> Self {
        Self {
            id: None,
            model: None,
            wire_format: None,
            limits: RequestLimits::default(),
            log,
            tools: Vec::new(),
            rag: Vec::new(),
            focus: None,
            state: Vec::new(),
            remote: Vec::new(),
            previous: None,
            options: None,
            tokenizer: None,
            unread: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// Checks whether another reading of the same file gives the same conversation.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        self.log.messages() == other.log.messages()
            && self.log.system() == other.log.system()
            && self.tools == other.tools
            && self.log.compactions().eq(other.log.compactions())
    }

    /// Checks that the session names no tokenizer but a built-in one. Any other name is the path of a file,
    /// which whoever wrote the session would choose for you to open.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Input`](crate::ErrorKind::Input) with the name, and with the key that has it.
    pub fn check_tokenizer(&self) -> Result<(), Error> {
        let options = self.options.as_deref().and_then(|options| toml::from_str::<toml::Table>(options).ok());
        let of_options = options
            .as_ref()
            .and_then(|options| options.get("model")?.get("default")?.get("tokenizer")?.as_str());
        let named = [
            ("context_window.tokenizer", self.tokenizer.as_deref()),
            ("context_window.options.model.default.tokenizer", of_options),
        ];
        for (key, name) in named {
            if let Some(name) = name.filter(|name| !BUILT_IN_TOKENIZERS.contains(name)) {
                let (name, known) = (plain::short(name), BUILT_IN_TOKENIZERS.join(", "));
                let detail = format!(
                    "`{name}` is no built-in tokenizer, and a session file may name no file; expected one of {known}"
                );
                return Err(Error::input(key, detail));
            }
        }
        Ok(())
    }

    /// Sets what of the file is not used.
    pub(crate) fn with_ignored(mut self, ignored: Vec<String>) -> Self {
        self.ignored = ignored;
        self
    }

    /// The keys of the session that are not read although another one may have been meant, each with that
    /// one. Unknown keys are no error: logs carry whatever their writers need.
    #[must_use]
    pub fn unread_keys(&self) -> Vec<(String, &'static str)> {
        let meant = |key: &String| Some((key.clone(), read::meant(key)?));
        self.unread.iter().filter_map(meant).collect()
    }

    /// What of the session is not used, and why, as sentences: compactions that are incomplete or name what
    /// is not there (the messages stay as they are), keys of messages that are probably misspelt, events of a
    /// transcript that are no part of the conversation.
    #[must_use]
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// The request for the session's next prompt.
    #[must_use]
    pub fn request(&self) -> PlanRequest<'_> {
        let mut request = PlanRequest::new(&self.log);
        request.focus.clone_from(&self.focus);
        request.state.clone_from(&self.state);
        request.previous.clone_from(&self.previous);
        let request = request.with_remote_context(self.remote.iter().cloned());
        request.with_tools(&self.tools).with_rag(self.rag.iter().cloned()).with_limits(self.limits)
    }
}

/// A conversation and nothing else: no model, tools or documents.
impl From<Conversation> for Session {
    fn from(log: Conversation) -> Self {
        Self::of(log)
    }
}

#[cfg(test)]
mod tests {
    /// A session may name what this build knows, and nothing else.
    #[test]
    fn built_in_tokenizers_are_those_of_the_counter() {
        assert_eq!(super::BUILT_IN_TOKENIZERS, context_window::TokenCounter::NAMES);
    }
}
