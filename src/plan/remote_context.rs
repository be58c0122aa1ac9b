//! Context that a provider adds to a request by itself.

use super::{Notice, NoticeCode};
use crate::text::plain::short;
use serde::{Deserialize, Serialize};

/// Context that the body of a request names but does not contain. The provider adds it, and no plan counts it
/// (context added by the provider, rule B8). A plan reports it in a notice.
///
/// ```
/// use context_window::{Conversation, Message, Model, PlanRequest, plan::RemoteContext};
/// # use context_window::{Config, ContextWindowManager, TokenCounter};
///
/// # fn main() -> Result<(), context_window::Error> {
/// # let manager = ContextWindowManager::new(Model::custom("m"), TokenCounter::bytes(), Config::default())?;
/// let log = Conversation::from([Message::user("And now?")]);
/// let remote = RemoteContext::previous_response("resp_1");
/// let plan = manager.build_plan(&PlanRequest::new(&log).with_remote_context([remote]))?;
/// assert!(plan.notices.iter().any(|notice| notice.code.name() == "remote_context"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RemoteContext {
    pub(crate) kind: RemoteContextKind,
    /// The id of this context in the body.
    pub id: String,
}

/// The kinds of context that a provider adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RemoteContextKind {
    /// The messages up to an earlier response (`previous_response_id` of `OpenAI` Responses).
    PreviousResponse,
    /// The items of a conversation that the provider keeps (`conversation` of `OpenAI` Responses).
    Conversation,
    /// The messages of a stored prompt (`prompt` of `OpenAI` Responses).
    StoredPrompt,
    /// Contents that were cached before (`cachedContent` of Gemini).
    CachedContent,
    /// The tools that a server lists to the provider (`mcp_servers` of Anthropic).
    McpServer,
}

impl RemoteContext {
    /// Names the messages up to an earlier response (`previous_response_id` of `OpenAI` Responses).
    #[must_use]
    pub fn previous_response(id: impl Into<String>) -> Self {
        Self { kind: RemoteContextKind::PreviousResponse, id: id.into() }
    }

    /// Names the items of a conversation that the provider keeps (`conversation` of `OpenAI` Responses).
    #[must_use]
    pub fn conversation(id: impl Into<String>) -> Self {
        Self { kind: RemoteContextKind::Conversation, id: id.into() }
    }

    /// Names the messages of a stored prompt (`prompt` of `OpenAI` Responses).
    #[must_use]
    pub fn stored_prompt(id: impl Into<String>) -> Self {
        Self { kind: RemoteContextKind::StoredPrompt, id: id.into() }
    }

    /// Names contents that were cached before (`cachedContent` of Gemini).
    #[must_use]
    pub fn cached_content(id: impl Into<String>) -> Self {
        Self { kind: RemoteContextKind::CachedContent, id: id.into() }
    }

    /// Names the tools that a server lists to the provider (`mcp_servers` of Anthropic).
    #[must_use]
    pub fn mcp_server(id: impl Into<String>) -> Self {
        Self { kind: RemoteContextKind::McpServer, id: id.into() }
    }

    /// Returns the key of the body that names it, such as `previous_response_id`.
    #[must_use]
    pub fn body_key(&self) -> &'static str {
        self.words().0
    }

    /// Returns the notice about the part that is missing from the count, and the remedy.
    pub(crate) fn notice(&self) -> Notice {
        let (key, missing, instead) = self.words();
        let id = short(&self.id);
        let text = format!(
            "`{key}` {id}: the provider adds {missing}, which are not in this count; {instead}, or set a \
             prompt budget that leaves their tokens free"
        );
        Notice { code: NoticeCode::RemoteContext, ids: Vec::new(), text }
    }

    /// Returns the key of the body, the part that is missing from the count, and the remedy.
    fn words(&self) -> (&'static str, &'static str, &'static str) {
        use RemoteContextKind::{CachedContent, Conversation, McpServer, PreviousResponse, StoredPrompt};
        match self.kind {
            PreviousResponse => (
                "previous_response_id",
                "the messages up to that response",
                "send the whole conversation as `input`",
            ),
            Conversation => ("conversation", "the items of that conversation", "send them as `input`"),
            StoredPrompt => ("prompt", "the messages of that prompt", "send its text as `instructions`"),
            CachedContent => ("cachedContent", "the cached contents", "send them as `contents`"),
            McpServer => ("mcp_servers", "the tools of that server", "declare them in `tools`"),
        }
    }
}
