//! Which model answers, where, and with which key.

use crate::answerer::{Answerer, remote::Remote};
use anyhow::{Result, anyhow, bail, ensure};
use context_window::{Model, WireFormat};
use std::sync::Arc;

/// The window of the offline answerer, in units of 1,024 tokens, unless its name says otherwise.
const OFFLINE: u64 = 8;

/// What the environment says: a variable's value by its name. Tests bring their own.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The environment of this process; empty variables are none.
#[allow(clippy::disallowed_methods, reason = "an application reads its environment")]
pub fn environment() -> Environment {
    Arc::new(|name| std::env::var(name).ok().filter(|value| !value.trim().is_empty()))
}

/// How a model's name begins that asks for a provider, variable of the key, variable of the URL, URL, its path (which the
/// variables of the providers' own libraries leave out), model where nobody names one.
type Access = [&'static str; 6];

#[rustfmt::skip]
const ACCESS: [Access; 5] = [
    ["local", "RAG_CHAT_KEY", "RAG_CHAT_URL", "", "", "default"],
    ["openai", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com", "/v1", "gpt-5.4-mini"],
    ["anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com", "/v1", "claude-haiku-5-5"],
    ["gemini", "GEMINI_API_KEY", "GEMINI_BASE_URL", "https://generativelanguage.googleapis.com", "/v1beta", "gemini-3.5-flash"],
    ["ollama", "", "OLLAMA_HOST", "http://localhost:11434", "/v1", "llama3.2"],
];

/// A model, and who answers for it.
#[derive(Debug, Clone)]
pub struct Choice {
    pub model: Model,
    pub answerer: Answerer,
    /// For the screen: what is in use.
    pub says: String,
}

/// The model of a name, or the one for which the environment has a key or a URL; the offline answerer where it has none. Errors: a
/// name that says nothing of its provider, a provider without a key.
pub fn choose(name: Option<&str>, environment: &Environment) -> Result<Choice> {
    let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) else {
        // A server that needs no key is asked where somebody says where it is, or by name.
        let is_there = |access: &&Access| environment(access[if access[0] == "local" { 2 } else { 1 }]).is_some();
        let Some(access) = ACCESS.iter().find(is_there) else { return Ok(offline(OFFLINE)) };
        let model = environment("RAG_CHAT_MODEL").unwrap_or_else(|| access[5].into());
        return remote(access, &model, environment);
    };
    if let Some(size) = name.strip_prefix("offline") {
        let size = if size.is_empty() { Some(OFFLINE) } else { kilos(size) };
        return size
            .map(offline)
            .ok_or_else(|| anyhow!("{name}: expected offline, or offline-Nk with N from 1 to 1024"));
    }
    if let Some((prefix, model)) = name.split_once('/')
        && let Some(access) = ACCESS.iter().find(|access| access[0] == prefix)
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
    let Some(access) = ACCESS.iter().find(|access| access[0] == prefix) else {
        let near = model.near.map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
        bail!(
            "{name}: whose model is this?{near} Say openai/{name}, anthropic/{name}, gemini/{name} or ollama/{name}, or local/{name} \
             with the server's URL in RAG_CHAT_URL; \"offline\" asks nobody"
        );
    };
    remote(access, name, environment)
}

/// The N of "-Nk".
fn kilos(text: &str) -> Option<u64> {
    let size = text.strip_prefix('-')?.strip_suffix('k')?.parse().ok()?;
    (1..=1_024).contains(&size).then_some(size)
}

/// The built-in answerer, as a model with a window of so many times 1,024 tokens.
fn offline(size: u64) -> Choice {
    let mut model = Model::custom(&if size == OFFLINE { "offline".into() } else { format!("offline-{size}k") });
    model.provider = "offline".into();
    (model.context_len, model.max_output) = (Some(size * 1_024), Some((size * 128).min(1_024)));
    model.tokenizer = Some("o200k_base".into());
    let says = format!("{}: quotes the documents, no model is asked", model.name);
    Choice { model, answerer: Answerer::Offline, says }
}

fn remote(access: &Access, name: &str, environment: &Environment) -> Result<Choice> {
    let [prefix, key_name, url_name, url, path, _] = *access;
    let url = environment(url_name).unwrap_or_else(|| url.into());
    ensure!(!url.is_empty(), "{prefix}/{name}: where is the server? Set {url_name}, such as http://localhost:8000/v1");
    let scheme = if url.contains("://") { "" } else { "http://" };
    let bare = url.trim_end_matches('/');
    // Ollama's own rule for its variable.
    let port =
        if prefix == "ollama" && !bare.rsplit('/').next().unwrap_or_default().contains(':') { ":11434" } else { "" };
    let url = format!("{scheme}{}{port}{path}", bare.strip_suffix(path).unwrap_or(bare));
    let key = environment(key_name);
    let needs_key = !matches!(prefix, "local" | "ollama");
    ensure!(key.is_some() || !needs_key, "{name}: there is no key. Set {key_name}, or take the model \"offline\"");
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
    let unknown = if model.unknown { "; its window is not known, --context says how large it is" } else { "" };
    let says = format!("{name}, asked at {url}{unknown}");
    let (effort, wire_format) = (environment("RAG_CHAT_EFFORT"), model.wire_format);
    let remote = Remote { model: name.into(), wire_format, url, key, key_name, effort };
    Ok(Choice { model, answerer: Answerer::Remote(remote), says })
}
