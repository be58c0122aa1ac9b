//! A compaction of a session, made in a copy of its conversation. The result is shown as text or JSON, or
//! written to a new file.

use crate::{args, input, json, output, prepared::Prepared};
use anyhow::{Result, bail};
use context_window::{
    ContextPlan, Conversation, ExcludedItem, ExcludedReason, ItemId, Section, WireFormat,
    compaction::{CompactionKind, CompactionRequest, CompactionState, summary_text},
    config::{CompactionStrategy, RequestForm},
    conversation::{Compaction, HistoryRow},
    render,
};
use context_window_formats::SessionFile;
use context_window_report as report;
use flate2::{Compression, write::GzEncoder};
use serde_json::Value;
use serde_json::json;
use std::{collections::BTreeSet, fmt::Write as _, io::Write as _, path::Path};

/// A compaction that was made in a copy of the conversation.
#[derive(Debug)]
pub(crate) struct Compacted {
    /// The compaction request. `None` for a fresh start.
    job: Option<CompactionRequest>,
    /// The conversation after the compaction.
    pub(crate) log: Conversation,
    record: Compaction,
    /// The tokens of the full conversation before and after the compaction.
    tokens: (u64, u64),
    /// The tokens of the next prompt without and with the compaction.
    prompt: (u64, u64),
    /// The reason for a refusal, if the compaction is refused.
    refusal: Option<String>,
}

/// The maximum number of documents that a refusal names.
const NAMED: usize = 4;

impl Compacted {
    /// Compacts a copy of the conversation with this summary. Without a summary, it compacts without a model.
    pub(crate) fn from_job(
        prepared: &Prepared,
        job: CompactionRequest,
        summary: Option<&str>,
    ) -> Result<Self> {
        let (mut log, compactor) = (prepared.session.log.clone(), prepared.manager.compactor());
        let record = match summary {
            // The author of the given summary may have read more than the messages of the request, so the
            // summary is taken as it is.
            Some(summary) => {
                let summary = summary_text(summary)?.to_owned();
                compactor.archive_by(&mut log, &job, CompactionKind::Summary, Some(summary))?
            }
            None => compactor.compact_without_model(&mut log, &job)?,
        };
        let tokens = (record.tokens_before, record.tokens_after);
        let before = prepared.manager.build_plan(&prepared.request())?;
        let after = plan_with(prepared, &log)?;
        let (prompt, refusal) = (
            (before.estimated_tokens_total.tokens, after.estimated_tokens_total.tokens),
            refusal(&before, &after),
        );
        Ok(Self { job: Some(job), log, record, tokens, prompt, refusal })
    }

    /// Returns the reason for a refusal: the next prompt would not be smaller (useless compaction, rule C5).
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Archives all messages for a fresh start. Returns `None` if there are no active messages.
    pub(crate) fn fresh(prepared: &Prepared) -> Result<Option<Self>> {
        let full = |prepared: &Prepared| -> Result<u64> {
            Ok(prepared.manager.usage(&prepared.request())?.conversation_tokens.tokens)
        };
        let mut log = prepared.session.log.clone();
        log.start_fresh();
        // A fresh start without active messages leaves no record with archived messages.
        let Some(record) = log.compactions().last().filter(|record| record.messages_archived > 0).cloned()
        else {
            return Ok(None);
        };
        let tokens = (full(prepared)?, full(&prepared.with_log(log.clone()))?);
        let before = prepared.manager.build_plan(&prepared.request())?;
        let prompt =
            (before.estimated_tokens_total.tokens, plan_with(prepared, &log)?.estimated_tokens_total.tokens);
        Ok(Some(Self { job: None, log, record, tokens, prompt, refusal: None }))
    }

    /// Describes the compaction as text: its trigger, the archived and retained messages, the freed tokens,
    /// the request for a summary, and the summary.
    pub(crate) fn text(&self, state: CompactionState) -> Result<String> {
        let Self { record, tokens: (before, after), prompt, .. } = self;
        let tokens = report::grouped;
        let due = match state {
            CompactionState::Due(trigger) => format!("due ({})", trigger.text()),
            CompactionState::Waiting(blocked_by) => {
                format!("requested; not automatic: {}", blocked_by.text())
            }
            CompactionState::Stopped { attempts } => {
                format!("requested; automatic compaction stopped after {attempts} attempts without progress")
            }
            _ => "requested; below all thresholds".into(),
        };
        let archived =
            runs(record.archived.iter().map(|run| (run.id.as_str(), run.last_id.as_str(), run.count)));
        let kept = kept(&self.log);
        let request =
            self.job.as_ref().map_or_else(|| "none: a fresh start needs no model".into(), request_text);
        let mut text = format!(
            "compaction  {due}\narchived    {}: {archived}\nkept        {}\ntokens      {} before, {} after, {} freed\nprompt      {} before, {} after\nrequest     {request}\n\n",
            plural(record.messages_archived, "message"),
            if kept.is_empty() { "nothing" } else { &kept },
            tokens(*before),
            tokens(*after),
            tokens(before.saturating_sub(*after)),
            tokens(prompt.0),
            tokens(prompt.1),
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
        if !record.rules.is_empty() {
            writeln!(text, "\nstanding rules kept:")?;
            for rule in &record.rules {
                writeln!(
                    text,
                    "  {}  {}",
                    rule.id(),
                    rule.text().split_whitespace().collect::<Vec<_>>().join(" ")
                )?;
            }
        }
        if !record.left_out.is_empty() {
            let ids: Vec<&str> = record.left_out.iter().map(ItemId::as_str).collect();
            writeln!(text, "\nleft out of the next prompt: {}", ids.join(", "))?;
        }
        // Ids and summaries come from the session, so the whole text is made printable.
        Ok(text.lines().map(|line| report::printable(line.trim_end()) + "\n").collect())
    }

    /// Describes the compaction as JSON. The request is shown as messages of the wire format.
    pub(crate) fn json(&self, state: CompactionState, form: WireFormat) -> Result<String> {
        let job = self.job.as_ref();
        // Only the summary strategy sends a request to a model.
        let asks = job.filter(|job| job.strategy() == CompactionStrategy::Summary);
        let body = asks.map(|job| json!(render::body(job, form)));
        let all = json!({
            "state": state,
            "strategy": job.map(CompactionRequest::strategy),
            "archived": self.record.archived,
            "kept": self.log.active().filter_map(id).collect::<Vec<_>>(),
            "head": self.record.head,
            "first_active": self.record.first_active,
            "rules": self.record.rules,
            "left_out": self.record.left_out,
            "tokens_before": self.tokens.0,
            "tokens_after": self.tokens.1,
            "request": body.as_ref().map(messages),
            "request_tokens": asks.map(|job| job.tokens().tokens),
            "digest": job.map(CompactionRequest::digest).transpose()?,
            "kind": self.record.kind,
            "summary": self.record.summary,
        });
        json::indented(&all)
    }
}

/// Plans the next prompt with another conversation.
fn plan_with(prepared: &Prepared, log: &Conversation) -> Result<ContextPlan> {
    let changed = prepared.with_log(log.clone());
    Ok(changed.manager.build_plan(&changed.request())?)
}

/// Returns the reason to refuse a compaction: the prompt does not become smaller.
///
/// If the prompt without it drops messages, the compaction is accepted, because its summary replaces those
/// messages.
fn refusal(before: &ContextPlan, after: &ContextPlan) -> Option<String> {
    let is_dropped = |row: &ExcludedItem| {
        row.section == Section::Conversation && matches!(row.reason, ExcludedReason::Budget { .. })
    };
    if after.estimated_tokens_total.tokens < before.estimated_tokens_total.tokens
        || before.excluded.iter().any(is_dropped)
    {
        return None;
    }
    let was_in = |id: &ItemId| before.included.iter().any(|row| row.kind.is_document() && row.id == *id);
    // Documents that fit after the compaction are the usual cause of a prompt of the same size.
    let joins = after.included.iter().filter(|row| row.kind.is_document() && !was_in(&row.id));
    let joins: Vec<String> = joins.take(NAMED).map(|row| report::brief(row.id.as_str())).collect();
    let joins = match joins.len() {
        0 => String::new(),
        1 => format!(", because {} is added", joins[0]),
        _ => format!(", because {} are added", joins.join(", ")),
    };
    let (before, after) = (
        report::grouped(before.estimated_tokens_total.tokens),
        report::grouped(after.estimated_tokens_total.tokens),
    );
    Some(format!("the prompt has {before} tokens, and would have {after} after a compaction{joins}"))
}

/// Writes the session with these compactions, in order, to a new file. If the session is a list of messages,
/// its own text is kept; otherwise a log is written.
pub(crate) fn write(path: &Path, source: &args::Request, compactions: &[&Compacted]) -> Result<()> {
    // This check only gives an early error. The write itself checks again, because another process can create
    // the file in between.
    if path.exists() {
        return Err(output::exists(path));
    }
    let [.., last] = compactions else { bail!("no compaction to write") };
    // Standard input and other pipes can be read only once.
    let is_pipe = !source.session.is_file();
    let text = if is_pipe { None } else { text_with(source, compactions)? };
    match text {
        Some(text) if input::is_packed(&source.session)? => output::create(path, &packed(&text)?),
        Some(text) => output::create(path, text.as_bytes()),
        None => output::create_log(path, &last.log),
    }
}

/// Returns the session's own text with the compactions added. Returns `None` if the session is not a list of
/// messages.
fn text_with(source: &args::Request, compactions: &[&Compacted]) -> Result<Option<String>> {
    let mut sessions = input::file(&source.session, source.reading.options())?;
    let mut text = None;
    for one in compactions {
        text = sessions.with_compaction(source.id.as_deref(), &one.record)?;
        let Some(text) = &text else { return Ok(None) };
        // Each compaction refers to the text with the compactions before it, so the new text is parsed again.
        sessions = {
            let (name, options) = (source.session.display().to_string(), source.reading.options());
            SessionFile::with_options(&name, text.clone().into_bytes(), options)?
        };
    }
    Ok(text)
}

/// Describes the request for a summary, or the reason for sending none.
fn request_text(job: &CompactionRequest) -> String {
    if job.strategy() != CompactionStrategy::Summary {
        return format!("none: the strategy {} needs no model", job.strategy().name());
    }
    let form = match job.form() {
        RequestForm::Transcript => "a transcript",
        _ => "the conversation",
    };
    match job.messages().len() as u64 {
        0 => format!("none: it does not fit the context window of {}", job.model()),
        count => format!(
            "{form}: {}, {} tokens for {}, reply reserve {}",
            plural(count, "message"),
            report::grouped(job.tokens().tokens),
            job.model(),
            report::grouped(job.max_tokens())
        ),
    }
}

/// Compresses a text with gzip, as its source was. Equal texts give equal bytes.
fn packed(text: &str) -> Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(text.as_bytes())?;
    Ok(packer.finish()?)
}

/// Returns the id of an active message.
fn id(part: HistoryRow<'_>) -> Option<ItemId> {
    match part {
        HistoryRow::Message { id, .. } => Some(id),
        _ => None,
    }
}

/// Returns the retained messages in runs. Archived messages that are retained because they are pinned come
/// last.
fn kept(log: &Conversation) -> String {
    let mut found: Vec<(ItemId, ItemId, u64)> = Vec::new();
    let mut archived_ids = BTreeSet::new();
    let mut open = false;
    for row in log.history() {
        let HistoryRow::Message { id, is_archived, .. } = row else { continue };
        // A run ends at an archived message.
        match found.last_mut().filter(|_| open && !is_archived) {
            Some((_, last, count)) => (*last, *count) = (id, *count + 1),
            None if !is_archived => found.push((id.clone(), id, 1)),
            None => drop(archived_ids.insert(id)),
        }
        open = !is_archived;
    }
    let found = found.iter().map(|(first, last, count)| (first.as_str(), last.as_str(), *count));
    let pinned = log.active().filter_map(id).filter(|id| archived_ids.contains(id));
    let pinned = pinned.map(|id| format!("{id} (pinned)"));
    [runs(found)].into_iter().filter(|runs| !runs.is_empty()).chain(pinned).collect::<Vec<_>>().join(", ")
}

/// Formats runs of messages as in `m3..m9 (7), m12`.
fn runs<'a>(runs: impl Iterator<Item = (&'a str, &'a str, u64)>) -> String {
    let run = |(first, last, count): (&str, &str, u64)| {
        if count == 1 { first.to_owned() } else { format!("{first}..{last} ({count})") }
    };
    runs.map(run).collect::<Vec<_>>().join(", ")
}

/// Formats a count with its noun in the singular or plural.
fn plural(count: u64, what: &str) -> String {
    format!("{} {what}{}", report::grouped(count), if count == 1 { "" } else { "s" })
}

/// Returns the messages of a request body. Their key depends on the wire format.
fn messages(body: &Value) -> &Value {
    ["messages", "input", "contents"].iter().find_map(|key| body.get(key)).unwrap_or(&Value::Null)
}
