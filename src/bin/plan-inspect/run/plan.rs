//! `plan-inspect [plan]`: read, plan, print.

#![expect(clippy::print_stderr, reason = "that is where a command line tool says what is beside its result")]

use super::{print, save};
use crate::{
    args::{CertaintyAsked, Documents, Format, Plan, Provider},
    input,
};
use anyhow::{Context, Result, bail};
use context_window::{
    Anchor, ChatTemplate, ContextPlan, ContextWindowManager, Framing, ItemId, Model, RagItem, Session,
    render::{self, CacheLife},
    report,
};
use std::{path::Path, process::ExitCode};

pub(crate) fn run(args: &Plan) -> Result<ExitCode> {
    let config = args.options.config()?.config;
    let file = input::sessions(&args.session)?;
    if args.list {
        let ids: Vec<String> = file.ids().map(|id| report::printable(&id) + "\n").collect();
        print(&ids.concat())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut session = file.session(args.id.as_deref())?;
    if let Some(path) = &args.previous {
        session.previous = Some(previous(path)?);
    }
    if let Some(path) = &args.documents.rag {
        session.rag = documents(path, &args.documents)?;
    }
    let model = model(args, &session)?;
    let manager = ContextWindowManager::configured(model.clone(), config)?;
    let request = session.request().limits(args.limits.over(session.limits));
    let request = if args.certainty == CertaintyAsked::Exact { request.count_excluded() } else { request };
    let plan = manager.build_plan(&request)?;
    let text = match args.format {
        Format::Text => {
            report::text(&plan).width(args.screen.width()).colour(args.screen.colour()).to_string()
        }
        Format::Json => report::json(&plan) + "\n",
        Format::Messages => messages(&plan, &model, args.breakpoints)?,
    };
    if let Some(path) = &args.save_anchor {
        save(path, &(serde_json::to_string_pretty(&plan.anchor())? + "\n"))?;
    }
    print(&text)?;
    if args.breakpoints {
        let unmarked = messages(&plan, &model, false)?;
        say_breakpoints(args.format, marks(&text).saturating_sub(marks(&unmarked)));
    }
    hint(&session.unread_keys());
    if args.format == Format::Messages {
        say_beside(&plan);
    }
    Ok(ExitCode::from(u8::from(args.strict && plan.overflow.is_some())))
}

/// What a retriever answered.
fn documents(path: &Path, how: &Documents) -> Result<Vec<RagItem>> {
    let (name, text) = input::text(path)?;
    let fields = how.rag_from.fields();
    let fields = if how.rag_distances { fields.distances() } else { fields };
    Ok(fields.called(&name).read(&text)?)
}

/// What is sent: the body of the model's wire form, or the text of its own chat template.
fn messages(plan: &ContextPlan, model: &Model, marked: bool) -> Result<String> {
    if let Some(template) = &model.template {
        return Ok(render::chat_template(plan, template)?);
    }
    let body = match (model.framing, marked) {
        (Framing::OpenAiResponses, false) => serde_json::to_string_pretty(&render::openai_responses(plan)),
        (Framing::OpenAiResponses, true) => {
            serde_json::to_string_pretty(&render::openai_responses(plan).breakpoints())
        }
        (Framing::Anthropic, false) => serde_json::to_string_pretty(&render::anthropic(plan)),
        (Framing::Anthropic, true) => {
            serde_json::to_string_pretty(&render::anthropic(plan).breakpoints(CacheLife::default()))
        }
        (Framing::Gemini, _) => serde_json::to_string_pretty(&render::gemini(plan)),
        (_, false) => serde_json::to_string_pretty(&render::openai(plan)),
        (_, true) => serde_json::to_string_pretty(&render::openai(plan).breakpoints()),
    };
    Ok(body? + "\n")
}

/// Keys of the session that are not read, where one that is may have been meant.
fn hint(unread: &[(String, &str)]) {
    for (key, meant) in unread {
        let key = report::printable(key);
        eprintln!("plan-inspect: note: the session's key `{key}` is not read; did you mean `{meant}`?");
    }
}

/// Keys of a body that may be breakpoints: arguments of a call may hold such keys too.
fn marks(body: &str) -> usize {
    ["\"cache_control\"", "\"prompt_cache_breakpoint\""].map(|mark| body.matches(mark).count()).iter().sum()
}

/// How many breakpoints were marked, on standard error: none is an answer too.
fn say_breakpoints(format: Format, marks: usize) {
    let said = match (format, marks) {
        (Format::Messages, 0) => {
            "none: the target knows no marks, or the prompt is shorter than its cache's least".into()
        }
        (Format::Messages, marks) => format!("{marks} marked"),
        _ => "they show in the messages; expected --format messages".into(),
    };
    eprintln!("plan-inspect: note: breakpoints: {said}");
}

/// What a request body cannot say, on standard error.
fn say_beside(plan: &ContextPlan) {
    if let Some(overflow) = &plan.overflow {
        let over = report::grouped(overflow.tokens);
        eprintln!("plan-inspect: note: over budget by {over} tokens; the text report says what would help");
    }
    for notice in &plan.notices {
        let ids: Vec<&str> = notice.ids.iter().map(ItemId::as_str).collect();
        let at = if ids.is_empty() { String::new() } else { format!("{}: ", ids.join(", ")) };
        eprintln!(
            "plan-inspect: note: {}",
            report::printable(&format!("{} {at}{}", notice.rule, notice.text))
        );
    }
}

/// What an earlier run saved with `--save-anchor`.
fn previous(path: &Path) -> Result<Anchor> {
    let (name, text) = input::text(path)?;
    let known: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_str(&text);
    if !known.is_ok_and(|object| object.contains_key("window_start")) {
        bail!("{name}: no anchor; expected an object with `window_start`, as --save-anchor writes it");
    }
    let read: Result<Anchor, _> = serde_json::from_str(&text);
    read.map_err(|error| anyhow::anyhow!("{name}: no anchor ({error}); expected what --save-anchor writes"))
}

/// The model that the flags name, or else the session; without either, the defaults.
fn model(args: &Plan, session: &Session) -> Result<Model> {
    let target = &args.target;
    let name = target.model.as_deref().or(session.model.as_deref());
    let mut model = match name {
        Some(name) => args.models.registry()?.model(name),
        None => Model::custom("default"),
    };
    if target.tokenizer.is_some() {
        model.tokenizer.clone_from(&target.tokenizer);
    }
    let model = match target.provider {
        Some(Provider::Openai) => model.in_form(Framing::OpenAiChat),
        Some(Provider::OpenaiResponses) => model.in_form(Framing::OpenAiResponses),
        Some(Provider::Anthropic) => model.in_form(Framing::Anthropic),
        Some(Provider::Gemini) => model.in_form(Framing::Gemini),
        Some(Provider::ChatTemplate) => return with_its_template(model),
        None => as_logged(model, name.is_some(), session),
    };
    Ok(model)
}

/// A logged request body is planned in its own wire form where the model's is not known, or where the model has two.
fn as_logged(model: Model, named: bool, session: &Session) -> Model {
    let known = named && !model.unknown;
    match session.framing {
        Some(form) if !known || form == Framing::OpenAiResponses && model.framing == Framing::OpenAiChat => {
            model.in_form(form)
        }
        _ => model,
    }
}

/// The model with the template in its tokenizer's folder: what is counted then is what is sent.
fn with_its_template(model: Model) -> Result<Model> {
    let folder = model.tokenizer.as_deref().map(Path::new).filter(|path| path.exists());
    let folder = folder.map(|path| if path.is_dir() { path } else { path.parent().unwrap_or(path) });
    let folder = folder.context(
        "--provider chat-template: no template is known; expected --tokenizer with the model's folder, which holds \
         tokenizer.json and chat_template.jinja or tokenizer_config.json",
    )?;
    let template = ChatTemplate::from_folder(folder)?;
    Ok(model.with_template(template))
}
