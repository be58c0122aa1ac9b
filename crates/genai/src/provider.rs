//! The providers, with their base URLs and API keys.

use super::Failure;
use context_window::WireFormat;
use genai::{
    Client, ModelIden, ServiceTarget,
    adapter::AdapterKind,
    resolver::{AuthData, Endpoint},
};

/// A provider with its wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    OpenAi,
    Anthropic,
    Gemini,
    Ollama,
    /// A server with the API of `OpenAI`.
    Compatible,
}

impl Provider {
    fn adapter(self) -> AdapterKind {
        match self {
            Self::OpenAi | Self::Compatible => AdapterKind::OpenAI,
            Self::Anthropic => AdapterKind::Anthropic,
            Self::Gemini => AdapterKind::Gemini,
            Self::Ollama => AdapterKind::Ollama,
        }
    }

    pub(super) fn wire_format(self) -> WireFormat {
        match self {
            Self::OpenAi | Self::Compatible | Self::Ollama => WireFormat::OpenAiChat,
            Self::Anthropic => WireFormat::Anthropic,
            Self::Gemini => WireFormat::Gemini,
        }
    }

    /// Returns true if the client library reads a reasoning effort from the end of the model's name. It then
    /// reads "qwen-max" as "qwen" with the effort "max", unless an effort is set. A numeric effort keeps the
    /// name whole and is not sent in this wire format.
    pub(super) fn reads_efforts(self) -> bool {
        matches!(self, Self::OpenAi | Self::Compatible)
    }

    /// Returns the tool names that the client library treats as tools of the provider.
    pub(super) fn reserved_tools(self) -> &'static [&'static str] {
        match self {
            Self::Anthropic => &["web_search"],
            Self::Gemini => &["googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext"],
            Self::OpenAi | Self::Compatible | Self::Ollama => &[],
        }
    }

    /// Returns the address, the model and the key of a request.
    pub(super) async fn target(
        self,
        client: &Client,
        model: &str,
        url: Option<&str>,
        key: Option<&str>,
    ) -> Result<ServiceTarget, Failure> {
        // The adapter is given explicitly: the library would otherwise guess it from the model's name.
        let named = ModelIden::new(self.adapter(), model);
        let mut target = client.resolve_service_target(named).await.map_err(Failure::from_error)?;
        if let Some(url) = url {
            target.endpoint = Endpoint::from_owned(base(url));
        }
        match key {
            Some(key) => target.auth = AuthData::from_single(key),
            // The OpenAI key must not be sent to this server, but the library requires a key.
            None if self == Self::Compatible => target.auth = AuthData::from_single("none"),
            None => {}
        }
        Ok(target)
    }
}

/// Returns a base URL with a slash at the end of its path. The library appends to it.
fn base(url: &str) -> String {
    // The query stays at the end of the URL: some gateways need one, such as an API version.
    let (path, query) = url.split_once('?').map_or((url, None), |(path, query)| (path, Some(query)));
    let path = path.trim_end_matches('/');
    match query {
        Some(query) => format!("{path}/?{query}"),
        None => format!("{path}/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_end_in_a_slash() {
        assert_eq!(base("http://localhost:8000/v1"), "http://localhost:8000/v1/");
        assert_eq!(base("http://localhost:8000/v1//"), "http://localhost:8000/v1/");
        assert_eq!(base("https://a.b/c?version=1"), "https://a.b/c/?version=1");
    }
}
