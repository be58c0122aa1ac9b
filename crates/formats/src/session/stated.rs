//! Limits that the body of a logged request states, and remote context that its provider adds (stated limits,
//! B8).

use super::wire;
use context_window::{plan::RemoteContext, provider::StatedLimits};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The keys of a body that are read here.
pub(super) const KEYS: [&str; 23] = [
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxOutputTokens",
    "maxTokens",
    "num_ctx",
    "num_predict",
    "options",
    "generationConfig",
    "generation_config",
    "config",
    "inferenceConfig",
    "thinking",
    "previous_response_id",
    "conversation",
    "prompt",
    "cachedContent",
    "cached_content",
    "mcp_servers",
    "output_config",
    "output_format",
    "response_format",
    "text",
];

/// Maximum number of MCP servers that are named.
const MAX_SERVERS: usize = 16;

/// The values of these keys, of any type, because logs use the same names for other things.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Body {
    max_tokens: Raw,
    max_completion_tokens: Raw,
    max_output_tokens: Raw,
    #[serde(rename = "maxOutputTokens")]
    max_output: Raw,
    #[serde(rename = "maxTokens")]
    most: Raw,
    num_ctx: Raw,
    num_predict: Raw,
    /// Ollama's options.
    options: Raw,
    /// Gemini's options, in the spellings of the API, its Python SDK and logs.
    #[serde(rename = "generationConfig")]
    generation: Raw,
    generation_config: Raw,
    config: Raw,
    /// The options of Bedrock's Converse.
    #[serde(rename = "inferenceConfig")]
    inference: Raw,
    /// Anthropic's options of reasoning.
    thinking: Raw,
    previous_response_id: Raw,
    conversation: Raw,
    prompt: Raw,
    #[serde(rename = "cachedContent")]
    cached: Raw,
    cached_content: Raw,
    mcp_servers: Raw,
    /// Anthropic's options of the reply.
    output_config: Raw,
    output_format: Raw,
    /// The options of the reply of `OpenAI`.
    response_format: Raw,
    text: Raw,
}

type Raw = Option<Box<RawValue>>;

/// Returns a number of tokens in a body. Returns `None` for any other value, and for -1 and -2, with which
/// Ollama has no fixed limit.
fn tokens(raw: &Raw) -> Option<u64> {
    serde_json::from_str(raw.as_deref()?.get()).ok().filter(|tokens| *tokens > 0)
}

/// Returns a string that is not empty.
fn text(raw: &Raw) -> Option<String> {
    serde_json::from_str(raw.as_deref()?.get()).ok().filter(|text: &String| !text.is_empty())
}

/// Returns the value of a key in an object.
fn inside(raw: &Raw, key: &str) -> Raw {
    let mut object: BTreeMap<String, Box<RawValue>> = serde_json::from_str(raw.as_deref()?.get()).ok()?;
    object.remove(key)
}

/// Returns the string itself, or the `id` of an object.
fn id(raw: &Raw) -> Option<String> {
    text(raw).or_else(|| text(&inside(raw, "id")))
}

impl Body {
    /// Checks if the body asks for a reply that follows a JSON schema, in the words of any provider.
    pub(super) fn wants_structured_output(&self) -> bool {
        let is_object = |raw: &Raw| raw.as_deref().is_some_and(|raw| raw.get().starts_with('{'));
        // `OpenAI` has formats without a schema, too.
        let has_schema = |raw: &Raw| text(&inside(raw, "type")).as_deref() == Some("json_schema");
        let generation = [&self.generation, &self.generation_config, &self.config];
        let schemas = ["responseSchema", "responseJsonSchema", "response_schema", "response_json_schema"];
        is_object(&self.output_format)
            || is_object(&inside(&self.output_config, "format"))
            || has_schema(&self.response_format)
            || has_schema(&inside(&self.text, "format"))
            || generation.iter().any(|options| schemas.iter().any(|key| is_object(&inside(options, key))))
    }

    /// Returns the limits that the body states, in tokens.
    pub(super) fn limits(&self) -> StatedLimits {
        let within = |raw: &Raw, keys: &[&str]| keys.iter().find_map(|key| tokens(&inside(raw, key)));
        let generation = || {
            let places = [&self.generation, &self.generation_config, &self.config];
            places.into_iter().find_map(|raw| within(raw, &["maxOutputTokens", "max_output_tokens"]))
        };
        let mut stated = StatedLimits::default();
        stated.model_context_len = within(&self.options, &["num_ctx"]).or_else(|| tokens(&self.num_ctx));
        // `max_completion_tokens` takes precedence over the older `max_tokens` (OpenAI's reference).
        let named = [
            &self.max_completion_tokens,
            &self.max_output_tokens,
            &self.max_tokens,
            &self.max_output,
            &self.most,
            &self.num_predict,
        ];
        stated.max_completion_tokens = named
            .into_iter()
            .find_map(tokens)
            .or_else(generation)
            .or_else(|| within(&self.options, &["num_predict"]))
            .or_else(|| within(&self.inference, &["maxTokens"]));
        // The reasoning budget is part of `max_tokens`, so it is used only without that.
        let reasoning = || within(&self.thinking, &["budget_tokens"]);
        stated.reasoning = if stated.max_completion_tokens.is_none() { reasoning() } else { None };
        stated
    }

    /// Returns the prompt of a completion request, which is not a chat.
    pub(super) fn asked(&self) -> Option<String> {
        text(&self.prompt)
    }

    /// Returns the remote context that the provider adds to this body.
    pub(super) fn remote(&self, session: &wire::Session) -> Vec<RemoteContext> {
        let of_responses = session.messages.is_none() && session.contents.is_none();
        let has_input = of_responses && session.input.is_some();
        let mut remote: Vec<RemoteContext> = [
            text(&self.previous_response_id).map(RemoteContext::previous_response),
            // Logs use `conversation` and `prompt` for other things. Those of Responses come with `input`.
            id(&self.conversation)
                .filter(|id| has_input || id.starts_with("conv_"))
                .map(RemoteContext::conversation),
            text(&inside(&self.prompt, "id")).filter(|_| of_responses).map(RemoteContext::stored_prompt),
            text(&self.cached).or_else(|| text(&self.cached_content)).map(RemoteContext::cached_content),
        ]
        .into_iter()
        .flatten()
        .collect();
        let servers: Vec<Box<RawValue>> = self
            .mcp_servers
            .as_deref()
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        let name = |server: Box<RawValue>| {
            let server = Some(server);
            text(&inside(&server, "name")).or_else(|| text(&inside(&server, "url")))
        };
        let names = servers.into_iter().take(MAX_SERVERS).filter_map(name);
        remote.extend(names.map(RemoteContext::mcp_server));
        remote
    }
}
