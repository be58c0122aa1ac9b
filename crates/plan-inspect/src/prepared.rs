//! The conversion of a session and flags to a manager and a request.

use crate::{
    args::{self, FormatName, Hits, RagFile, Terms},
    input, stderr,
};
use anyhow::{Context, Result, anyhow, bail};
use context_window::{
    ContextWindowManager, Conversation, ErrorKind, Model, Part, PlanRequest, RagItem, RequestLimits,
    RetrievedItems, WireFormat, plan::Anchor, text::plain,
};
use context_window_formats::Session;
use context_window_recall::Recall;
use context_window_report as report;
use std::path::Path;

/// The common basis of all subcommands that plan prompts.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) model: Model,
    pub(crate) manager: ContextWindowManager,
    pub(crate) session: Session,
    /// True if the flags or the session name the model.
    #[cfg_attr(not(feature = "html"), allow(dead_code, reason = "only pages read it"))]
    pub(crate) has_model_name: bool,
    limits: RequestLimits,
}

impl Prepared {
    /// Reads the session and the other input files of the flags.
    pub(crate) fn read(args: &args::Request) -> Result<Self> {
        let mut session =
            input::sessions(&args.session, args.reading.options())?.session(args.id.as_deref())?;
        if let Some(path) = &args.previous {
            session.previous = Some(previous(path)?);
        }
        if !args.documents.rag.is_empty() {
            session.rag = documents(&args.documents.rag, &args.documents.hits)?;
        }
        if args.documents.recall {
            session.rag = Recall::new().for_request(session.request()).retrieved().clone();
        }
        Self::new(session, &args.terms, args.terms.target.model.as_deref())
    }

    /// Prepares a session for a model. Without a model name, the session's own model is used.
    pub(crate) fn new(mut session: Session, terms: &Terms, model: Option<&str>) -> Result<Self> {
        if terms.target.recall_tool {
            declare_recall(&mut session)?;
        }
        if terms.target.tokenizer.is_none() && !terms.target.allow_tokenizer_file {
            let hint = "--allow-tokenizer-file opens it, --tokenizer sets another";
            session.check_tokenizer().map_err(|error| anyhow!("{error}; {hint}"))?;
        }
        let loaded = match &session.options {
            Some(options) => &terms.options.config_over(options)?,
            None => terms.options.config()?,
        };
        let has_model_name = model.is_some() || session.model.is_some();
        let model = target(terms, model, &session)?;
        // The tokenizer from the options is used only if neither flags nor session name one. Only this call
        // shows if it is needed.
        let manager = ContextWindowManager::configured(model.clone(), loaded.config.clone());
        let manager = manager.map_err(|error| match error.kind() {
            ErrorKind::Config => anyhow!("{}: {error}", loaded.origin("model.default.tokenizer")),
            _ => error.into(),
        })?;
        let limits = terms.limits.over(session.limits);
        Ok(Self { model, manager, session, has_model_name, limits })
    }

    /// Returns a copy with another conversation.
    pub(crate) fn with_log(&self, log: Conversation) -> Self {
        let mut changed = self.clone();
        changed.session.log = log;
        changed
    }

    /// Sets the prompt budget in tokens, if there is one.
    pub(crate) fn budget(mut self, budget: Option<u64>) -> Self {
        self.limits.prompt_budget = budget.or(self.limits.prompt_budget);
        self
    }

    pub(crate) fn request(&self) -> PlanRequest<'_> {
        self.session.request().with_limits(self.limits)
    }

    /// Returns the total size in bytes of the texts that can be excluded: messages and documents.
    pub(crate) fn bytes(&self) -> usize {
        let messages = self.session.log.messages().iter();
        let messages = messages.map(|message| {
            let calls = message.tool_calls().iter().map(|call| call.arguments.len());
            let parts = message.parts().iter().map(|part| match part {
                Part::Text(text) => text.len(),
                _ => 0,
            });
            message.text().len() + calls.sum::<usize>() + parts.sum::<usize>()
        });
        messages.sum::<usize>() + self.session.rag.iter().map(|document| document.text().len()).sum::<usize>()
    }

    /// Returns the limits of the session, overridden by those of the flags.
    pub(crate) fn limits(&self) -> RequestLimits {
        self.limits
    }

    /// Prints a note if the model is unknown. For commands whose report does not contain it.
    pub(crate) fn report_model(&self) {
        if self.model.unknown {
            let name = report::brief(&self.model.name);
            let near = self.model.near.as_ref().map(|near| format!("; did you mean `{near}`?"));
            let near = near.unwrap_or_default();
            stderr::note(&format!("model `{name}` is not in the registry: default limits apply{near}"));
        }
    }

    /// Prints notes on unknown session keys that resemble known ones, and on ignored parts of the session.
    pub(crate) fn report_hints(&self) {
        for (key, meant) in self.session.unread_keys() {
            let key = plain::short(&key);
            stderr::note(&format!("the session's key `{key}` is not read; did you mean `{meant}`?"));
        }
        report_ignored(&self.session);
    }
}

/// Declares the tool that reads offloaded results, unless the session declares it.
///
/// # Errors
///
/// Returns an error if the session declares another tool of that name.
fn declare_recall(session: &mut Session) -> Result<()> {
    let recall = Recall::tool();
    match session.tools.iter().find(|tool| tool.name == recall.name) {
        None => session.tools.push(recall),
        Some(own) if own.reads_results() => {}
        Some(_) => bail!(
            "--recall-tool: the session declares a tool `recall` of its own without a parameter `handle`; \
             expected a session without it, or with it under another name"
        ),
    }
    Ok(())
}

/// Prints a note for each part of a session that is ignored.
pub(crate) fn report_ignored(session: &Session) {
    session.ignored().iter().for_each(|what| stderr::note(what));
}

/// Reads the documents of the answers of retrievers. Several answers, and one with a name, are ranked lists.
///
/// # Errors
///
/// Returns an error for an answer that cannot be read, and for two lists of the same name.
pub(crate) fn documents(files: &[RagFile], how: &Hits) -> Result<RetrievedItems> {
    if let [RagFile { name: None, path }] = files {
        return Ok(hits(path, how)?.into());
    }
    let mut items = RetrievedItems::default();
    for file in files {
        let name = file.list_name();
        if items.list_names().any(|known| known == name) {
            let (name, path) = (plain::short(&name), file.path.display());
            bail!("two lists have the name `{name}`; expected another name for one of them: NAME={path}");
        }
        items = items.with_list(name, hits(&file.path, how)?);
    }
    Ok(items)
}

/// Reads the documents of one retriever's answer.
fn hits(path: &Path, how: &Hits) -> Result<Vec<RagItem>> {
    let (name, text) = input::text(path)?;
    let fields = how.rag_from.fields();
    let fields = if how.rag_distances { fields.with_distances() } else { fields };
    Ok(fields.with_name(&name).read_hits(&text)?)
}

/// Reads the anchor that an earlier run saved with `--save-anchor`.
fn previous(path: &Path) -> Result<Anchor> {
    let (name, text) = input::text(path)?;
    // Every field of an anchor is optional, so another JSON object would be accepted without this check.
    let known: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_str(&text);
    if !known.is_ok_and(|object| object.contains_key("window_start")) {
        bail!("{name}: not an anchor; expected an object with `window_start`, as written by --save-anchor");
    }
    let read: Result<Anchor, _> = serde_json::from_str(&text);
    read.map_err(|error| {
        anyhow::anyhow!(
            "{name}: not an anchor ({}); expected a file written by --save-anchor",
            plain::without_long_value(&error.to_string())
        )
    })
}

/// Returns the named model, else the session's model, else a model with default limits.
fn target(terms: &Terms, named: Option<&str>, session: &Session) -> Result<Model> {
    let target = &terms.target;
    let name = named.or(session.model.as_deref());
    let mut model = match name {
        Some(name) => terms.models.registry()?.model(name),
        None => Model::custom("default"),
    };
    if let Some(tokenizer) = target.tokenizer.as_ref().or(session.tokenizer.as_ref()) {
        model.tokenizer = Some(tokenizer.clone());
    }
    let model = match target.wire_format {
        Some(FormatName::Openai) => model.with_wire_format(WireFormat::OpenAiChat),
        Some(FormatName::OpenaiResponses) => model.with_wire_format(WireFormat::OpenAiResponses),
        Some(FormatName::Anthropic) => model.with_wire_format(WireFormat::Anthropic),
        Some(FormatName::Gemini) => model.with_wire_format(WireFormat::Gemini),
        Some(FormatName::ChatTemplate) => return with_its_template(model),
        None => as_logged(model, name.is_some(), session),
    };
    Ok(model)
}

/// Applies the wire format of a logged request body if the model is unknown, or if the model supports both
/// formats of `OpenAI`.
fn as_logged(model: Model, named: bool, session: &Session) -> Model {
    let known = named && !model.unknown;
    match session.wire_format {
        Some(form)
            if !known
                || form == WireFormat::OpenAiResponses && model.wire_format == WireFormat::OpenAiChat =>
        {
            model.with_wire_format(form)
        }
        _ => model,
    }
}

/// Adds the chat template from the tokenizer's folder to the model. Token counts then include the template's
/// text.
#[cfg_attr(
    not(feature = "chat-template"),
    expect(clippy::needless_pass_by_value, reason = "a build without templates gives it back to nobody")
)]
fn with_its_template(model: Model) -> Result<Model> {
    let folder = model.tokenizer.as_deref().map(Path::new).filter(|path| path.exists());
    let folder = folder.map(|path| if path.is_dir() { path } else { path.parent().unwrap_or(path) });
    let folder = folder.context(
        "--wire-format chat-template: there is no template; expected --tokenizer with the model's folder, \
         which contains tokenizer.json and chat_template.jinja or tokenizer_config.json",
    )?;
    #[cfg(feature = "chat-template")]
    {
        let template = context_window::provider::ChatTemplate::from_folder(folder)?;
        Ok(model.with_template(template))
    }
    #[cfg(not(feature = "chat-template"))]
    crate::missing_feature::fail(
        &format!("--wire-format chat-template ({})", folder.display()),
        "chat-template",
    )
}
