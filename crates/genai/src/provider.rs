//! Who is called, where, and with which key.

use super::Failure;
use context_window::WireFormat;
use genai::{
    Client, ModelIden, ServiceTarget,
    adapter::AdapterKind,
    resolver::{AuthData, Endpoint},
};

/// A provider, and its wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    OpenAi,
    Anthropic,
    Gemini,
    Ollama,
    /// Whoever speaks as `OpenAI` does.
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

    /// Whether the client library reads an effort off the end of a model's name ("qwen-max" as "qwen" with the effort
    /// "max") unless one is set. An effort that is a number keeps the name whole, and is not sent in this wire format.
    pub(super) fn reads_efforts(self) -> bool {
        matches!(self, Self::OpenAi | Self::Compatible)
    }

    /// The names that the client library takes for tools which the provider runs itself.
    pub(super) fn reserved_tools(self) -> &'static [&'static str] {
        match self {
            Self::Anthropic => &["web_search"],
            Self::Gemini => &["googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext"],
            Self::OpenAi | Self::Compatible | Self::Ollama => &[],
        }
    }

    pub(super) async fn target(
        self,
        client: &Client,
        model: &str,
        url: Option<&str>,
        key: Option<&str>,
    ) -> Result<ServiceTarget, Failure> {
        let named = ModelIden::new(self.adapter(), model);
        let mut target = client.resolve_service_target(named).await.map_err(Failure::of)?;
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

/// A base URL as it is joined to: with a slash at the end of its path.
fn base(url: &str) -> String {
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
