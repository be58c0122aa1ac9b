//! The choice of the model, its server and its key.

use crate::answerer::{Answerer, remote::Remote};
use anyhow::{Result, anyhow, bail, ensure};
use context_window::{Model, WireFormat};
use std::sync::Arc;

/// The default window of the offline answerer, in units of 1,024 tokens.
const OFFLINE: u64 = 8;

/// A lookup of environment variables by name. Tests supply their own.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Returns the environment of this process. Empty variables count as unset.
#[allow(clippy::disallowed_methods, reason = "an application reads its environment")]
pub fn environment() -> Environment {
    Arc::new(|name| std::env::var(name).ok().filter(|value| !value.trim().is_empty()))
}

/// A provider as the environment describes it.
struct Access {
    /// The prefix of model names that selects it.
    prefix: &'static str,
    /// The environment variable of its key.
    key: &'static str,
    /// The environment variable of its URL.
    url: &'static str,
    /// The default URL.
    default_url: &'static str,
    /// The path after the URL, which the providers' own libraries add.
    path: &'static str,
    /// The default model.
    model: &'static str,
}

#[rustfmt::skip]
const ACCESS: [Access; 5] = [
    Access { prefix: "local", key: "RAG_CHAT_KEY", url: "RAG_CHAT_URL", default_url: "", path: "", model: "default" },
    Access { prefix: "openai", key: "OPENAI_API_KEY", url: "OPENAI_BASE_URL",
             default_url: "https://api.openai.com", path: "/v1", model: "gpt-5.4-mini" },
    Access { prefix: "anthropic", key: "ANTHROPIC_API_KEY", url: "ANTHROPIC_BASE_URL",
             default_url: "https://api.anthropic.com", path: "/v1", model: "claude-haiku-5-5" },
    Access { prefix: "gemini", key: "GEMINI_API_KEY", url: "GEMINI_BASE_URL",
             default_url: "https://generativelanguage.googleapis.com", path: "/v1beta", model: "gemini-3.5-flash" },
    Access { prefix: "ollama", key: "", url: "OLLAMA_HOST",
             default_url: "http://localhost:11434", path: "/v1", model: "llama3.2" },
];

/// A model and its answerer.
#[derive(Debug, Clone)]
pub struct Choice {
    pub model: Model,
    pub answerer: Answerer,
    /// A description for the screen.
    pub says: String,
}

/// Returns the model with this name, or the one for which the environment has a key or a URL, otherwise the
/// offline answerer. Returns an error if the name does not identify a provider, or the provider has no key.
pub fn choose(name: Option<&str>, environment: &Environment) -> Result<Choice> {
    let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) else {
        // A server without a key is used only if its URL is set or it is named.
        let is_there = |access: &&Access| {
            environment(if access.prefix == "local" { access.url } else { access.key }).is_some()
        };
        let Some(access) = ACCESS.iter().find(is_there) else { return Ok(offline(OFFLINE)) };
        let model = environment("RAG_CHAT_MODEL").unwrap_or_else(|| access.model.into());
        return remote(access, &model, environment);
    };
    if let Some(size) = name.strip_prefix("offline") {
        let size = if size.is_empty() { Some(OFFLINE) } else { kilos(size) };
        return size
            .map(offline)
            .ok_or_else(|| anyhow!("{name}: expected offline, or offline-Nk with N from 1 to 1024"));
    }
    if let Some((prefix, model)) = name.split_once('/')
        && let Some(access) = ACCESS.iter().find(|access| access.prefix == prefix)
    {
        return remote(access, model, environment);
    }
    let model = Model::named(name)?;
    let prefix = match model.provider.as_str() {
        _ if environment("RAG_CHAT_URL").is_some() => "local",
        _ if model.unknown => "",
        "google" => "gemini",
        provider => provider,
    };
    let Some(access) = ACCESS.iter().find(|access| access.prefix == prefix) else {
        let near = model.near.map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
        bail!(
            "{name}: the provider is unknown.{near} Expected openai/{name}, anthropic/{name}, gemini/{name} or ollama/{name}, or \
             local/{name} with the server's URL in RAG_CHAT_URL; \"offline\" sends nothing"
        );
    };
    remote(access, name, environment)
}

/// Parses the N of "-Nk".
fn kilos(text: &str) -> Option<u64> {
    let size = text.strip_prefix('-')?.strip_suffix('k')?.parse().ok()?;
    (1..=1_024).contains(&size).then_some(size)
}

/// Returns the built-in answerer as a model with a window of `size` times 1,024 tokens.
fn offline(size: u64) -> Choice {
    let mut model =
        Model::custom(&if size == OFFLINE { "offline".into() } else { format!("offline-{size}k") });
    model.provider = "offline".into();
    (model.context_len, model.max_output) = (Some(size * 1_024), Some((size * 128).min(1_024)));
    model.tokenizer = Some("o200k_base".into());
    let says = format!("{}: quotes the documents, no model is asked", model.name);
    Choice { model, answerer: Answerer::Offline, says }
}

fn remote(access: &Access, name: &str, environment: &Environment) -> Result<Choice> {
    let Access { prefix, key: key_name, url: url_name, default_url, path, .. } = *access;
    let url = environment(url_name).unwrap_or_else(|| default_url.into());
    ensure!(
        !url.is_empty(),
        "{prefix}/{name}: the server is unknown. Set {url_name} to its URL, such as http://localhost:8000/v1"
    );
    let scheme = if url.contains("://") { "" } else { "http://" };
    let bare = url.trim_end_matches('/');
    // The same rule as Ollama applies to its variable.
    let port = if prefix == "ollama" && !bare.rsplit('/').next().unwrap_or_default().contains(':') {
        ":11434"
    } else {
        ""
    };
    let url = format!("{scheme}{}{port}{path}", bare.strip_suffix(path).unwrap_or(bare));
    let key = environment(key_name);
    let needs_key = !matches!(prefix, "local" | "ollama");
    ensure!(
        key.is_some() || !needs_key,
        "{name}: there is no key. Set {key_name}, or use the model \"offline\""
    );
    let mut model = Model::named(name)?;
    if model.unknown {
        model.provider = prefix.into();
    }
    model = match prefix {
        "anthropic" => model.with_wire_format(WireFormat::Anthropic),
        "gemini" => model.with_wire_format(WireFormat::Gemini),
        "openai" => model,
        _ => model.with_wire_format(WireFormat::OpenAiChat),
    };
    let unknown = if model.unknown { "; its window is unknown, --context sets it" } else { "" };
    let says = format!("{name}, asked at {url}{unknown}");
    let (effort, wire_format) = (environment("RAG_CHAT_EFFORT"), model.wire_format);
    let remote = Remote { model: name.into(), wire_format, url, key, key_name, effort };
    Ok(Choice { model, answerer: Answerer::Remote(remote), says })
}
