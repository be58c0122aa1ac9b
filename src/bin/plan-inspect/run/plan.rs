//! `plan-inspect [plan]`: read, plan, print.

#![expect(clippy::print_stderr, reason = "that is where a command line tool says what is beside its result")]

use super::{print, save};
use crate::{
    args::{CertaintyAsked, Format, Plan},
    body::body,
    input,
    prepared::Prepared,
};
use anyhow::Result;
use context_window::{ContextPlan, ItemId, Model, render, report};
use std::process::ExitCode;

pub(crate) fn run(args: &Plan) -> Result<ExitCode> {
    if args.list {
        let ids: Vec<String> =
            input::sessions(&args.request.session)?.ids().map(|id| report::printable(&id) + "\n").collect();
        print(&ids.concat())?;
        return Ok(ExitCode::SUCCESS);
    }
    let prepared = Prepared::read(&args.request)?;
    let request = prepared.request();
    let request = if args.certainty == CertaintyAsked::Exact { request.count_excluded() } else { request };
    let (plan, model) = (prepared.manager.build_plan(&request)?, &prepared.model);
    let text = match args.format {
        Format::Text => {
            report::text(&plan).width(args.screen.width()).colour(args.screen.colour()).to_string()
        }
        Format::Json => report::json(&plan) + "\n",
        Format::Messages => messages(&plan, model, args.breakpoints)?,
    };
    if let Some(path) = &args.save_anchor {
        save(path, &(serde_json::to_string_pretty(&plan.anchor())? + "\n"))?;
    }
    print(&text)?;
    if args.breakpoints {
        let unmarked = messages(&plan, model, false)?;
        say_breakpoints(args.format, marks(&text).saturating_sub(marks(&unmarked)));
    }
    prepared.hint();
    if args.format == Format::Messages {
        say_beside(&plan);
    }
    Ok(ExitCode::from(u8::from(args.strict && plan.overflow.is_some())))
}

/// What is sent: the body of the model's wire form, or the text of its own chat template.
fn messages(plan: &ContextPlan, model: &Model, marked: bool) -> Result<String> {
    if let Some(template) = &model.template {
        return Ok(render::chat_template(plan, template)?);
    }
    Ok(serde_json::to_string_pretty(&body(plan, model.framing, marked)?)? + "\n")
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
