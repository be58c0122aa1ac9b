//! `plan-inspect [plan]`: read, plan, print.

use super::{print, save};
use crate::{
    args::{Format, Options, Plan, Target},
    input,
};
use anyhow::Result;
use context_window::{Anchor, Config, ContextWindowManager, Model, Session, TokenCounter, render, report};
use std::process::ExitCode;

pub(crate) fn run(args: &Plan) -> Result<ExitCode> {
    let config = args.options.config()?.config;
    let mut session = input::sessions(&args.session)?.session(args.id.as_deref())?;
    if let Some(path) = &args.previous {
        session.previous = Some(previous(path)?);
    }
    let manager = manager(&args.target, &args.options, config, &session)?;
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
    Ok(ExitCode::from(u8::from(args.strict && plan.overflow.is_some())))
}

/// What an earlier run saved with `--save-anchor`.
fn previous(path: &std::path::Path) -> Result<Anchor> {
    let (name, text) = input::text(path)?;
    let read: Result<Anchor, _> = serde_json::from_str(&text);
    read.map_err(|error| {
        anyhow::anyhow!(
            "{name}:{}:{}: no anchor ({error}); expected what --save-anchor writes",
            error.line(),
            error.column()
        )
    })
}

/// The manager for the model that the flags name, or else the session; without either, the defaults.
fn manager(
    target: &Target,
    options: &Options,
    config: Config,
    session: &Session,
) -> Result<ContextWindowManager> {
    let name = target.model.as_deref().or(session.model.as_deref());
    let model = match name {
        Some(name) => options.registry()?.model(name),
        None => Model::custom("default"),
    };
    Ok(match &target.tokenizer {
        Some(name) => ContextWindowManager::new(model, TokenCounter::named(name)?, config)?,
        None => ContextWindowManager::configured(model, config)?,
    })
}
