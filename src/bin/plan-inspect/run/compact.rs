//! `plan-inspect compact`: what a compaction would archive, keep and ask for, and the same done in a new file.

use crate::stdout::print;
use crate::{
    args::{Compact, DataFormat, Screen},
    compaction::{self, Compacted},
    input, json,
    prepared::Prepared,
    stderr,
    wrap::folded,
};
use anyhow::{Result, bail};
use context_window::{
    ItemId,
    compaction::{BlockedBy, CompactionState},
};
use serde_json::json;
use std::process::ExitCode;

pub(crate) fn run(args: &Compact, screen: &Screen) -> Result<ExitCode> {
    let prepared = Prepared::read(&args.request)?;
    let (request, manager) = (prepared.request(), &prepared.manager);
    let state = manager.compactor().state(request.clone())?;
    let by_hand = args.from.is_some() || args.to.is_some();
    let job = if by_hand {
        let [from, to] = [&args.from, &args.to].map(|id| id.as_deref().map(ItemId::from));
        manager.compactor().range(request, from.as_ref(), to.as_ref())?
    } else {
        manager.compactor().now(request)?
    };
    let Some(job) = job else {
        let why = waiting(state).unwrap_or("nothing is older than the messages to keep");
        if args.apply.is_some() {
            bail!("nothing to compact: {why}; nothing was written");
        }
        print(&nothing(args.format, why)?)?;
        return Ok(ExitCode::SUCCESS);
    };
    let summary = args.summary.as_deref().map(input::text).transpose()?;
    let summary = summary.as_ref().map(|(_, text)| &**text);
    let compacted = Compacted::by(&prepared, job, summary)?;
    let text = match args.format {
        DataFormat::Text => folded(&compacted.text(state)?, screen.limit()),
        DataFormat::Json => compacted.json(state, prepared.model.wire_format)?,
    };
    if let Some(path) = &args.apply {
        compaction::write(path, &args.request, &[&compacted])?;
        stderr::note(&format!("written to {}", path.display()));
    }
    print(&text)?;
    prepared.hint();
    Ok(ExitCode::SUCCESS)
}

/// What blocks the compaction, in words.
fn waiting(state: CompactionState) -> Option<&'static str> {
    match state {
        // Who asks for it is not kept waiting by that.
        CompactionState::Waiting(BlockedBy::TooShort | BlockedBy::Disabled) => None,
        CompactionState::Waiting(blocked_by) => Some(blocked_by.text()),
        _ => None,
    }
}

fn nothing(format: DataFormat, why: &str) -> Result<String> {
    Ok(match format {
        DataFormat::Text => format!("nothing to compact: {why}\n"),
        DataFormat::Json => {
            let none: [&str; 0] = [];
            let all = json!({"archived": none, "kept": null, "tokens_before": null, "tokens_after": null,
                "request": null, "digest": null, "why": why});
            json::indented(&all)?
        }
    })
}
