//! `plan-inspect [plan]`: plans the next prompt of a session and prints the plan.

use crate::stdout::print;
use crate::{
    args::{Counts, Format, Plan, Printed, Screen},
    json,
    listed::Listed,
    message_text,
    output::{Output, Outputs},
    prepared::Prepared,
    stderr, stored,
    table::{Align, Table},
    web_page::{self, LivePackage, PageOptions},
};
use anyhow::{Result, bail};
use context_window::{
    ContextPlan, Model, PlanRequest, render,
    usage::{CacheLife, CostTerms},
};
use context_window_report as report;
use std::{
    io::{self, IsTerminal},
    process::ExitCode,
};

pub(crate) fn run(args: &Plan, screen: &Screen) -> Result<ExitCode> {
    if args.list {
        return list(args, screen);
    }
    let printed = &args.printed;
    check_redaction(printed)?;
    if args.live.is_some() && printed.format != Format::Html {
        bail!("--live needs --format html");
    }
    let mut outputs = Outputs::for_inputs(args.request.files()?);
    let output = outputs.claim("--output", printed.output.as_deref())?;
    // The new anchor can replace the previous one in the same file.
    let previous = args.request.previous.as_deref();
    let anchor = outputs.claim_replacing("--save-anchor", args.save_anchor.as_deref(), previous)?;
    let prepared = Prepared::read(&args.request)?;
    let view = View {
        printed,
        certainty: &args.certainty,
        title: title(args),
        live: args
            .live
            .as_deref()
            .map(|folder| LivePackage { folder, models: args.request.terms.models.file() }),
        top: args.top,
        grid: args.grid,
        breakpoints: args.breakpoints,
    };
    let request = view.request(&prepared);
    let (plan, model) = (prepared.manager.build_plan(&request)?, &prepared.model);
    let text = view.text(&prepared, &request, &plan, screen)?;
    if let Some(anchor) = anchor {
        anchor.save(&(serde_json::to_string_pretty(&plan.anchor())? + "\n"))?;
    }
    view.write(&text, output.as_ref(), model)?;
    if args.breakpoints {
        // Texts of the session can contain the key of a mark, so the marks are the difference.
        let unmarked = messages(&plan, model, false)?;
        report_breakpoints(printed.format, marks(&text).saturating_sub(marks(&unmarked)));
    }
    prepared.report_hints();
    if printed.format == Format::Messages {
        report_notices(&plan);
    }
    Ok(ExitCode::from(u8::from(args.strict && plan.overflow.is_some())))
}

/// Lists the sessions of a file with id, model, messages, and the tokens of the next prompt. For a store, it
/// lists the tokens of the newest prompt and the time of the last write.
fn list(args: &Plan, screen: &Screen) -> Result<ExitCode> {
    let sessions = Listed::from_request(&args.request)?;
    let is_store = stored::address(&args.request.session).is_some();
    let unreadable = sessions.iter().filter(|session| !is_store && session.messages.is_none()).count();
    if unreadable > 0 {
        let all = sessions.len();
        stderr::note(&format!("{unreadable} of {all} sessions cannot be read; --id shows the error of one"));
    }
    let text = if args.printed.format == Format::Json {
        json::indented(&sessions)?
    } else if is_store {
        let columns = [
            ("id", Align::Left),
            ("model", Align::Left),
            ("messages", Align::Right),
            ("last prompt", Align::Right),
            ("updated (UTC)", Align::Left),
        ];
        let mut table = Table::new(&columns).within(screen.limit()).in_colour(screen.colour());
        for session in &sessions {
            let [id, model, messages, tokens] = session.cells();
            let updated = session.updated.as_deref().map(seconds).unwrap_or_default();
            let archived = if session.archived { ", archived" } else { "" };
            table.row([id, model, messages, tokens, format!("{updated}{archived}")]);
        }
        table.to_string()
    } else {
        let columns = [
            ("id", Align::Left),
            ("model", Align::Left),
            ("messages", Align::Right),
            ("tokens", Align::Right),
        ];
        let mut table = Table::new(&columns).within(screen.limit()).in_colour(screen.colour());
        for session in &sessions {
            table.row(session.cells());
        }
        table.to_string()
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Formats a time such as `2026-11-25T13:00:00.123Z` for people, to the second.
fn seconds(updated: &str) -> String {
    let (date, time) = updated.split_once('T').unwrap_or((updated, ""));
    format!("{date} {}", time.split(['.', 'Z']).next().unwrap_or_default()).trim_end().to_owned()
}

/// The number of rows of a list that are shown without `--all`.
const MAX_LISTED_ROWS: usize = 60;

/// The appearance of a printed plan.
pub(super) struct View<'a> {
    pub(super) printed: &'a Printed,
    pub(super) certainty: &'a Counts,
    /// The title of the web page.
    pub(super) title: String,
    /// The package of a web page that plans by itself.
    pub(super) live: Option<LivePackage<'a>>,
    pub(super) top: usize,
    pub(super) grid: bool,
    pub(super) breakpoints: bool,
}

impl View<'_> {
    /// Returns the request of a plan for this view.
    pub(super) fn request<'p>(&self, prepared: &'p Prepared) -> PlanRequest<'p> {
        let request = prepared.request();
        // JSON and request bodies are read by programs, for which bounds are enough.
        let for_people = !matches!(self.printed.format, Format::Json | Format::Messages);
        let exact = self.certainty.is_exact() || for_people && self.certainty.in_full(prepared.bytes());
        if exact { request.with_excluded_counts() } else { request }
    }

    /// Returns the plan in the requested format.
    pub(super) fn text(
        &self,
        prepared: &Prepared,
        request: &PlanRequest<'_>,
        plan: &ContextPlan,
        screen: &Screen,
    ) -> Result<String> {
        let printed = self.printed;
        Ok(match printed.format {
            Format::Text => {
                let colour = if printed.output.is_some() { screen.colour_in_file() } else { screen.colour() };
                let rows = if printed.all { usize::MAX } else { MAX_LISTED_ROWS };
                // Advice tries a compaction, which counts all texts, so it is limited to small sessions.
                let is_tried = self.certainty.in_full(prepared.bytes());
                let advice = if is_tried { prepared.manager.explainer(request).advice(plan)? } else { None };
                let text =
                    report::text(plan).with_width(screen.width()).with_colour(colour).with_advice(advice);
                text.with_top(self.top).with_rows(rows).with_grid(self.grid).to_string()
            }
            Format::Markdown => report::markdown(plan).to_string(),
            Format::Json => json::escape_control(&plan.to_json()) + "\n",
            Format::Messages => messages(plan, &prepared.model, self.breakpoints)?,
            Format::Html => {
                let options = PageOptions {
                    title: self.title.clone(),
                    redact: printed.redact,
                    earlier: &[],
                    first: 1,
                    terms: CostTerms::default(),
                    live: self.live.as_ref(),
                };
                web_page::render_page(prepared, request, plan, options)?
            }
        })
    }

    /// Writes the text to the output file, or else to standard output.
    pub(super) fn write(&self, text: &str, output: Option<&Output>, model: &Model) -> Result<()> {
        let is_text_for_a_model = self.printed.format == Format::Messages && has_template(model);
        match output {
            Some(output) => output.save(text),
            // A file or a program gets the exact text, only a terminal gets the safe one. Unlike JSON, the
            // text of a chat template does not escape control characters.
            None if is_text_for_a_model && io::stdout().is_terminal() => print(&printable_text(text)),
            None => print(text),
        }
    }
}

/// Checks that only a web page is redacted.
pub(super) fn check_redaction(printed: &Printed) -> Result<()> {
    if printed.redact && printed.format != Format::Html {
        bail!("--redact needs --format html");
    }
    Ok(())
}

/// Returns the title of the web page of a session.
fn title(args: &Plan) -> String {
    let file = args.request.session.file_name().map(|name| name.to_string_lossy().into_owned());
    // A page of standard input needs a readable title.
    let file = file.filter(|name| name != "-").unwrap_or_else(|| "standard input".into());
    args.request.id.iter().fold(file, |title, id| format!("{title}, {id}"))
}

#[cfg(feature = "chat-template")]
fn has_template(model: &Model) -> bool {
    model.template.is_some()
}

#[cfg(not(feature = "chat-template"))]
fn has_template(_: &Model) -> bool {
    false
}

/// Makes a text safe to print to a terminal, line by line (control characters, rule V3).
fn printable_text(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| match line.strip_suffix('\n') {
            Some(line) => message_text::shown(line) + "\n",
            None => message_text::shown(line),
        })
        .collect()
}

/// Returns the request body in the model's wire format, or the text of the model's chat template.
fn messages(plan: &ContextPlan, model: &Model, marked: bool) -> Result<String> {
    #[cfg(feature = "chat-template")]
    if let Some(template) = &model.template {
        return Ok(render::chat_template(plan, template)?);
    }
    let body = render::body(plan, model.wire_format);
    let body = if marked { body.with_breakpoints(CacheLife::FiveMinutes) } else { body };
    Ok(json::indented_text(&body.to_string()))
}

/// Counts the keys of breakpoint marks in a body. Arguments of calls can contain such keys too.
fn marks(body: &str) -> usize {
    ["\"cache_control\"", "\"prompt_cache_breakpoint\""].map(|mark| body.matches(mark).count()).iter().sum()
}

/// Prints the number of breakpoints on standard error, even if there are none.
fn report_breakpoints(format: Format, marks: usize) {
    let said = match (format, marks) {
        (Format::Messages, 0) => {
            "none: the provider supports none, or the prompt is below the minimum of its cache".into()
        }
        (Format::Messages, marks) => format!("{marks} marked"),
        _ => "cache marks are in the messages; expected --format messages".into(),
    };
    stderr::note(&format!("breakpoints: {said}"));
}

/// Prints the parts of a plan that a request body cannot contain: overflow and notices.
fn report_notices(plan: &ContextPlan) {
    if let Some(overflow) = &plan.overflow {
        let over = report::grouped(overflow.tokens);
        stderr::note(&format!("over budget by {over} tokens; the text report lists fixes"));
    }
    for notice in &plan.notices {
        let ids: Vec<String> = notice.ids.iter().map(|id| report::brief(id.as_str())).collect();
        let at = if ids.is_empty() { String::new() } else { format!("{}: ", ids.join(", ")) };
        stderr::note(&format!("{} {at}{}", notice.rule(), notice.text));
    }
}
