//! `plan-inspect compact`: what a compaction would archive, keep and ask for, and the same done in a new file.

use crate::stdout::print;
use crate::{
    args::{Compact, DataFormat, Screen},
    body::{body, messages},
    input, json, output,
    prepared::Prepared,
    stderr,
    wrap::folded,
};
use anyhow::{Result, bail};
use context_window::{
    Conversation, ItemId, WireFormat,
    compaction::{BlockedBy, CompactionRequest, CompactionState},
    config::RequestForm,
    conversation::{ActiveEntry, Compaction, HistoryRow},
    report,
};
use flate2::{Compression, write::GzEncoder};
use serde_json::json;
use std::{collections::BTreeSet, fmt::Write as _, io::Write as _, path::Path, process::ExitCode};

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
    let mut log = prepared.session.log.clone();
    let record = match &args.summary {
        Some(path) => {
            let summary = input::text(path)?.1;
            manager.compactor().apply(&mut log, &job, &summary)?
        }
        None => manager.compactor().fall_back(&mut log, &job)?,
    };
    let preview = Preview { job: &job, log: &log, record: &record, state, form: prepared.model.wire_format };
    let text = match args.format {
        DataFormat::Text => folded(&preview.text()?, screen.limit()),
        DataFormat::Json => preview.json()?,
    };
    if let Some(path) = &args.apply {
        write(path, args, &log, &record)?;
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

/// The session with the compaction in it: its own text where that is a list of messages, a log otherwise.
fn write(path: &Path, args: &Compact, log: &Conversation, record: &Compaction) -> Result<()> {
    // Looked at again when it is written: another process may be faster.
    if path.exists() {
        return Err(output::exists(path));
    }
    // Standard input and other pipes are read once.
    let is_pipe = !args.request.session.is_file();
    let text = if is_pipe {
        None
    } else {
        input::sessions(&args.request.session)?.with_compaction(args.request.id.as_deref(), record)?
    };
    match text {
        Some(text) if input::is_packed(&args.request.session)? => output::create(path, &packed(&text)?),
        Some(text) => output::create(path, text.as_bytes()),
        None => output::create_log(path, log),
    }
}

/// What was packed stays so; the same text gives the same bytes.
fn packed(text: &str) -> Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(text.as_bytes())?;
    Ok(packer.finish()?)
}

/// What would happen, or has.
struct Preview<'a> {
    job: &'a CompactionRequest,
    /// The conversation after it.
    log: &'a Conversation,
    record: &'a Compaction,
    state: CompactionState,
    /// The wire format of the target.
    form: WireFormat,
}

impl Preview<'_> {
    fn text(&self) -> Result<String> {
        let Self { job, record, .. } = self;
        let tokens = report::grouped;
        let due = match self.state {
            CompactionState::Due(trigger) => format!("due ({})", trigger.text()),
            CompactionState::Waiting(blocked_by) => format!("not now: {}", blocked_by.text()),
            CompactionState::Stopped { attempts } => {
                format!("stopped after {attempts} attempts without progress")
            }
            _ => "not needed: below all thresholds".into(),
        };
        let archived =
            runs(record.archived.iter().map(|run| (run.id.as_str(), run.last_id.as_str(), run.count)));
        let kept = kept(self.log);
        let form = match job.form() {
            RequestForm::Transcript => "a transcript",
            _ => "the conversation",
        };
        let request = match job.messages().len() as u64 {
            0 => format!("none: it does not fit the context window of {}", job.model()),
            count => format!(
                "{form}: {}, {} tokens for {}, reply reserve {}",
                plural(count, "message"),
                tokens(job.tokens().n),
                job.model(),
                tokens(job.max_tokens())
            ),
        };
        let mut text = format!(
            "compaction  {due}\narchived    {}: {archived}\nkept        {}\ntokens      {} before, {} after, {} freed\nrequest     {request}\n\n",
            plural(record.messages_archived, "message"),
            if kept.is_empty() { "nothing" } else { &kept },
            tokens(record.tokens_before),
            tokens(record.tokens_after),
            tokens(record.freed()),
        );
        match &record.summary {
            Some(summary) => {
                writeln!(text, "{}:", record.kind.name())?;
                for line in summary.lines() {
                    writeln!(text, "  {line}")?;
                }
            }
            None => writeln!(text, "{}: no summary", record.kind.name())?,
        }
        Ok(text.lines().map(|line| report::printable(line.trim_end()) + "\n").collect())
    }

    fn json(&self) -> Result<String> {
        let body = body(self.job, self.form, false)?;
        let all = json!({
            "state": self.state,
            "archived": self.record.archived,
            "kept": self.log.active().filter_map(id).collect::<Vec<_>>(),
            "head": self.record.head,
            "first_active": self.record.first_active,
            "tokens_before": self.record.tokens_before,
            "tokens_after": self.record.tokens_after,
            "request": messages(&body),
            "request_tokens": self.job.tokens().n,
            "digest": self.job.digest()?,
            "kind": self.record.kind,
            "summary": self.record.summary,
        });
        json::indented(&all)
    }
}

/// The id of an active message.
fn id(part: ActiveEntry<'_>) -> Option<ItemId> {
    match part {
        ActiveEntry::Message { id, .. } => Some(id),
        _ => None,
    }
}

/// The messages that are still sent, in runs; those that only a pin keeps last.
fn kept(log: &Conversation) -> String {
    let mut found: Vec<(ItemId, ItemId, u64)> = Vec::new();
    let mut archived_ids = BTreeSet::new();
    let mut open = false;
    for row in log.display() {
        let HistoryRow::Message { id, archived, .. } = row else { continue };
        match found.last_mut().filter(|_| open && archived.is_none()) {
            Some((_, last, count)) => (*last, *count) = (id, *count + 1),
            None if archived.is_none() => found.push((id.clone(), id, 1)),
            None => drop(archived_ids.insert(id)),
        }
        open = archived.is_none();
    }
    let found = found.iter().map(|(first, last, count)| (first.as_str(), last.as_str(), *count));
    let pinned = log.active().filter_map(id).filter(|id| archived_ids.contains(id));
    let pinned = pinned.map(|id| format!("{id} (pinned)"));
    [runs(found)].into_iter().filter(|runs| !runs.is_empty()).chain(pinned).collect::<Vec<_>>().join(", ")
}

/// `m3..m9 (7), m12`.
fn runs<'a>(runs: impl Iterator<Item = (&'a str, &'a str, u64)>) -> String {
    let run = |(first, last, count): (&str, &str, u64)| {
        if count == 1 { first.to_owned() } else { format!("{first}..{last} ({count})") }
    };
    runs.map(run).collect::<Vec<_>>().join(", ")
}

fn plural(count: u64, what: &str) -> String {
    format!("{} {what}{}", report::grouped(count), if count == 1 { "" } else { "s" })
}
