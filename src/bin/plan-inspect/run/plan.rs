//! `plan-inspect [plan]`: read, plan, print.

#![expect(clippy::print_stderr, reason = "that is where a command line tool says what is beside its result")]

use super::{print, save};
use crate::{
    args::{Format, Plan, Provider},
    input,
};
use anyhow::{Result, bail};
use context_window::{
    Anchor, Config, ContextPlan, ContextWindowManager, Framing, ItemId, Model, Session, render, report,
};
use std::process::ExitCode;

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
    let manager = manager(args, config, &session)?;
    let limits = args.limits.over(session.limits);
    let plan = manager.build_plan(&session.request().limits(limits))?;
    let text = match args.format {
        Format::Text => {
            report::text(&plan).width(args.screen.width()).colour(args.screen.colour()).to_string()
        }
        Format::Json => report::json(&plan) + "\n",
        Format::Messages => serde_json::to_string_pretty(&render::openai(&plan))? + "\n",
    };
    if let Some(path) = &args.save_anchor {
        save(path, &(serde_json::to_string_pretty(&plan.anchor())? + "\n"))?;
    }
    print(&text)?;
    hint(&session.unread_keys());
    if args.format == Format::Messages {
        say_beside(&plan);
    }
    Ok(ExitCode::from(u8::from(args.strict && plan.overflow.is_some())))
}

/// Keys of the session that are not read, where one that is may have been meant.
fn hint(unread: &[(String, &str)]) {
    for (key, meant) in unread {
        let key = report::printable(key);
        eprintln!("plan-inspect: note: the session's key `{key}` is not read; did you mean `{meant}`?");
    }
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
fn previous(path: &std::path::Path) -> Result<Anchor> {
    let (name, text) = input::text(path)?;
    let known: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_str(&text);
    if !known.is_ok_and(|object| object.contains_key("window_start")) {
        bail!("{name}: no anchor; expected an object with `window_start`, as --save-anchor writes it");
    }
    let read: Result<Anchor, _> = serde_json::from_str(&text);
    read.map_err(|error| anyhow::anyhow!("{name}: no anchor ({error}); expected what --save-anchor writes"))
}

/// The manager for the model that the flags name, or else the session; without either, the defaults.
fn manager(args: &Plan, config: Config, session: &Session) -> Result<ContextWindowManager> {
    let target = &args.target;
    let name = target.model.as_deref().or(session.model.as_deref());
    let mut model = match name {
        Some(name) => args.models.registry()?.model(name),
        None => Model::custom("default"),
    };
    if let Some(Provider::Openai) = target.provider {
        model.framing = Framing::OpenAiChat;
    }
    if target.tokenizer.is_some() {
        model.tokenizer.clone_from(&target.tokenizer);
    }
    Ok(ContextWindowManager::configured(model, config)?)
}
