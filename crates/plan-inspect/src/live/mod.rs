//! A web page that plans by itself: a session, the npm package, and controls for changes to try.

mod package;
mod session;

use self::{package::Package, session::Pieces};
use crate::{
    input,
    prepared::Prepared,
    web_page::{LivePackage, MAX_EXPLAINED, PageOptions},
};
use anyhow::{Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use context_window::{ContextPlan, PlanRequest, WireFormat};
use context_window_formats::{SessionTexts, session_json};
use flate2::{Compression, write::GzEncoder};
use minijinja::{Environment, UndefinedBehavior, Value, context};
use serde::Serialize;
use std::{collections::BTreeMap, io::Write};

/// The name ends in `.html`, so that the template engine escapes all values.
const NAME: &str = "page.html";
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
    /// The number of items above which none is explained.
    most_explained: usize,
    session: Pieces,
    /// The files of the encodings, in base64.
    encodings: BTreeMap<&'static str, String>,
}

/// Renders a page that plans a request with the npm package in a browser. It begins with the plan.
///
/// # Errors
///
/// Returns an error if the package cannot be read, or cannot plan for this model and tokenizer.
pub(crate) fn render_page(
    prepared: &Prepared,
    request: &PlanRequest<'_>,
    plan: &ContextPlan,
    options: &PageOptions<'_>,
    package: &LivePackage<'_>,
) -> Result<String> {
    let (manager, model) = (&prepared.manager, &prepared.model);
    #[cfg(feature = "chat-template")]
    ensure!(
        model.template.is_none(),
        "--live: a page cannot use a chat template; expected another --wire-format"
    );
    // The package knows models by their names alone.
    ensure!(prepared.has_model_name, "--live: the session names no model; expected --model NAME");
    let tokenizer = manager.counter().name();
    let Package { code, module, encodings } = Package::read(package.folder, tokenizer)?;
    let texts = if options.redact { SessionTexts::Redacted } else { SessionTexts::Kept };
    let session = Pieces::read(&session_json(manager, request, texts)?)?;
    let base64 = |bytes: &[u8]| BASE64_STANDARD.encode(bytes);
    let data = Data {
        title: &options.title,
        model: &model.name,
        models: package.models.as_deref().map(input::text).transpose()?.map(|(_, text)| text),
        tokenizer,
        wire_format: nameable(model.wire_format),
        options: session.options()?,
        budget: plan.prompt_budget,
        largest_budget: plan.limits.largest_budget().max(plan.prompt_budget),
        redact: options.redact,
        most_explained: MAX_EXPLAINED,
        session,
        encodings: encodings.iter().map(|(name, file)| (*name, base64(file))).collect(),
    };
    let safe = |text: &str| Value::from_safe_string(text.into());
    let values = context! {
        title => options.title.as_str(),
        style => safe(STYLE),
        script => safe(SCRIPT),
        // A text can contain the end of a script element.
        data => safe(&serde_json::to_string(&data)?.replace('<', "\\u003c")),
        core => safe(&base64(code.as_bytes())),
        module => safe(&base64(&packed(&module)?)),
    };
    let mut engine = Environment::new();
    // By default a missing value would render as an empty string.
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.add_template(NAME, PAGE)?;
    Ok(engine.get_template(NAME)?.render(values)?)
}

/// Compresses bytes with gzip.
fn packed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes)?;
    Ok(packed.finish()?)
}

/// Returns the name of a wire format. Returns `None` if the npm package has it only for models that have it.
fn nameable(format: WireFormat) -> Option<&'static str> {
    use WireFormat::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};
    matches!(format, OpenAiChat | OpenAiResponses | Anthropic | Gemini).then(|| format.name())
}
