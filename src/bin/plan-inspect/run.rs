//! One function a subcommand: read, plan, print.

use crate::{
    args::{Command, Format, Plan, Provider},
    input,
};
use anyhow::Result;
use context_window::{Config, ContextWindowManager, Framing, Model, Session, TokenCounter, render, report};
use std::{io::Write, process::ExitCode};

pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Plan(args) => plan_session(args),
    }
}

fn plan_session(args: &Plan) -> Result<ExitCode> {
    let session = input::sessions(&args.session)?.session(args.id.as_deref())?;
    let manager = manager(args, &session)?;
    let limits = args.limits.over(session.limits);
    let plan = manager.build_plan(&session.request().limits(limits))?;
    let text = match args.format {
        Format::Text => report::text(&plan).width(args.width).to_string(),
        Format::Json => report::json(&plan) + "\n",
        Format::Messages => serde_json::to_string_pretty(&render::openai(&plan))? + "\n",
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(ExitCode::from(u8::from(args.strict && plan.overflow.is_some())))
}

/// The manager for the model that the flags name, or else the session; without either, the defaults.
fn manager(args: &Plan, session: &Session) -> Result<ContextWindowManager> {
    let config = args.config.as_deref().map(Config::from_file).transpose()?.unwrap_or_default();
    let name = args.target.model.as_deref().or(session.model.as_deref());
    let mut model = name.map_or_else(|| Ok(Model::custom("default")), Model::named)?;
    model.framing = match args.target.provider {
        Provider::Openai => Framing::OpenAiChat,
    };
    Ok(match &args.target.tokenizer {
        Some(name) => ContextWindowManager::new(model, TokenCounter::named(name)?, config)?,
        None => ContextWindowManager::configured(model, config)?,
    })
}
