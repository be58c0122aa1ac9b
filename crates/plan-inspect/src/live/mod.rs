//! A web page that plans by itself: a session, the npm package, and controls for changes to try.

mod package;

use self::package::Package;
use crate::prepared::Prepared;
use anyhow::{Result, bail};
use base64::{Engine, prelude::BASE64_STANDARD};
use context_window::{Model, PlanRequest, WireFormat};
use context_window_formats::{SessionTexts, session_json};
use flate2::{Compression, write::GzEncoder};
use serde::Serialize;
use std::{collections::BTreeMap, io::Write, path::Path};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The data of a page, as its script reads them.
#[derive(Serialize)]
struct Data<'a> {
    title: &'a str,
    model: &'a str,
    /// The text of the user's own registry.
    models: Option<String>,
    tokenizer: &'a str,
    /// The wire format, if it may be another one than that of the model's entry.
    wire_format: Option<&'static str>,
    /// The options that differ from their defaults, as TOML.
    options: String,
    /// The prompt budget of the plan, in tokens.
    budget: u64,
    /// The largest prompt budget of the model, in tokens.
    largest_budget: u64,
    redact: bool,
    /// A session file that gives the same plan.
    session: String,
    /// The files of the encodings, in base64.
    encodings: BTreeMap<&'static str, String>,
}

/// The parts of a page beside the session.
pub(crate) struct LiveOptions<'a> {
    pub(crate) title: &'a str,
    /// The folder of the npm package.
    pub(crate) package: &'a Path,
    /// The file of the user's own models.
    pub(crate) models: Option<&'a Path>,
    pub(crate) redact: bool,
    /// The prompt budget of the plan, in tokens.
    pub(crate) budget: u64,
}

/// Renders a page that plans a request with the npm package in a browser.
///
/// # Errors
///
/// Returns an error if the package cannot be read, or cannot plan for this model and tokenizer.
pub(crate) fn render_live_page(
    prepared: &Prepared,
    request: &PlanRequest<'_>,
    options: &LiveOptions<'_>,
) -> Result<String> {
    let (manager, model) = (&prepared.manager, &prepared.model);
    #[cfg(feature = "chat-template")]
    if model.template.is_some() {
        bail!("--live: a page cannot use a chat template; expected another --wire-format");
    }
    // The package has no model without a name.
    if !model.unknown
        && prepared.session.model.as_deref() != Some(&*model.name)
        && Model::named(&model.name)?.unknown
    {
        bail!("--live: the session names no model; expected --model NAME");
    }
    let tokenizer = manager.counter().name();
    let package = Package::read(options.package, tokenizer)?;
    let texts = if options.redact { SessionTexts::Redacted } else { SessionTexts::Kept };
    let session = session_json(manager, request, texts)?;
    let models = options.models.map(crate::input::text).transpose()?.map(|(_, text)| text);
    let data = Data {
        title: options.title,
        model: &model.name,
        models,
        tokenizer,
        wire_format: format_name(model.wire_format),
        options: options_of(&session)?,
        budget: options.budget,
        largest_budget: largest_budget(prepared).max(options.budget),
        redact: options.redact,
        encodings: package
            .encodings
            .iter()
            .map(|(name, file)| (*name, BASE64_STANDARD.encode(file)))
            .collect(),
        session,
    };
    // A text can contain the end of a script element.
    let data = serde_json::to_string(&data)?.replace('<', "\\u003c");
    let parts = [
        ("TITLE", escaped(options.title)),
        ("STYLE", STYLE.to_owned()),
        ("DATA", data),
        ("CORE", BASE64_STANDARD.encode(package.code)),
        ("MODULE", BASE64_STANDARD.encode(packed(&package.module)?)),
        ("SCRIPT", SCRIPT.to_owned()),
    ];
    Ok(filled(PAGE, &parts))
}

/// Fills the parts into a template. Each place `{{NAME}}` gets its part, and the text of a part is not
/// searched for places.
fn filled(template: &str, parts: &[(&str, String)]) -> String {
    let mut page = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, after)) = after.split_once("}}") else { break };
        page.push_str(before);
        page.extend(parts.iter().filter(|(known, _)| *known == name).map(|(_, text)| text.as_str()));
        rest = after;
    }
    page + rest
}

/// Escapes a text for the content of an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Compresses bytes with gzip.
fn packed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes)?;
    Ok(packed.finish()?)
}

/// Returns the options of a session file as the text of an options file.
fn options_of(session: &str) -> Result<String> {
    let session: serde_json::Value = serde_json::from_str(session)?;
    Ok(toml::to_string(&session["context_window"]["options"])?)
}

/// Returns the largest prompt budget of the model, in tokens.
fn largest_budget(prepared: &Prepared) -> u64 {
    let length = prepared.limits().model_context_len.or(prepared.model.context_len);
    let length = length.unwrap_or(prepared.manager.config().default_model.context_len);
    prepared.model.max_input.map_or(length, |most| most.min(length))
}

/// Returns the name of a wire format in the npm package. Returns `None` if only the entries of models have
/// it.
fn format_name(format: WireFormat) -> Option<&'static str> {
    match format {
        WireFormat::OpenAiChat => Some("openai"),
        WireFormat::OpenAiResponses => Some("openai_responses"),
        WireFormat::Anthropic => Some("anthropic"),
        WireFormat::Gemini => Some("gemini"),
        _ => None,
    }
}
