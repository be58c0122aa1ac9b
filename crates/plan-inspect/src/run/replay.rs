//! `plan-inspect replay`: plans every prompt of a session in order, and shows their figures and totals.

use crate::stdout::print;
use crate::{
    args::{Replay, ReplayFormat, Screen},
    input, json,
    output::Outputs,
    prepared::Prepared,
    progress::Progress,
    prompt::Figures,
    stored::{self, Stored},
    table::{Align, Table, Tone},
    web_page::{self, PageOptions},
};
use anyhow::{Context, Result, bail};
use context_window::{Role, analysis::Step};
use context_window_formats::Session;
use context_window_report as report;
use serde::Serialize;
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    num::NonZeroUsize,
    process::ExitCode,
    sync::{Mutex, PoisonError},
    thread,
};

/// The maximum number of earlier prompts on a page.
const MAX_PAGE_PROMPTS: usize = 1_000;

/// The maximum number of rows of all planned prompts of a session, unless `--newest` is given. Planning them
/// takes less than a minute.
///
/// A prompt has a row for each of its messages. In a long conversation that fits its budget, the total number
/// of rows is therefore quadratic in its length.
const MAX_ROWS: u64 = 100_000_000;

/// A line of the JSON output.
#[derive(Serialize)]
struct Line<'a> {
    session: &'a str,
    #[serde(flatten)]
    figures: &'a Figures,
}

/// Sums over prompts.
#[derive(Default)]
struct Sums {
    plans: u64,
    overflows: u64,
    reused: u128,
    /// The sums of the prompts with a known predecessor: the tokens of the predecessors, and the tokens of
    /// the prompts themselves.
    before: u128,
    after: u128,
    tokens: u128,
    budgets: u128,
    /// The tokens of the largest prompt, and its budget.
    largest: (u64, u64),
    compactions: u64,
    /// The number of messages sent with their reasoning, and of those whose reasoning was lost, summed over
    /// the prompts.
    thoughts_sent: u64,
    thoughts_lost: u64,
    /// The number of prompts with a cache break, and the number of predecessor tokens that were not repeated.
    breaks: u64,
    sent_again: u64,
    /// The number of cache breaks by cause, and their cost.
    causes: BTreeMap<&'static str, u64>,
    break_cost: u64,
    /// The cost of the input with and without a cache, in billionths of a US dollar. `None` without a price.
    cost: Option<(u64, u64)>,
}

impl Sums {
    fn from_prompts<'a>(prompts: impl Iterator<Item = &'a Figures>) -> Self {
        let mut sums = Self::default();
        for prompt in prompts {
            sums.plans += 1;
            sums.overflows += u64::from(prompt.over > 0);
            sums.tokens += u128::from(prompt.tokens);
            sums.budgets += u128::from(prompt.budget);
            // Tuples compare by tokens first, so the budget belongs to the largest prompt.
            sums.largest = sums.largest.max((prompt.tokens, prompt.budget));
            sums.thoughts_sent += prompt.thoughts_sent;
            sums.thoughts_lost += prompt.thoughts_lost;
            sums.breaks += u64::from(prompt.cause.is_some());
            if let Some(cause) = prompt.cause {
                *sums.causes.entry(cause).or_default() += 1;
            }
            sums.break_cost = sums.break_cost.saturating_add(prompt.break_cost.unwrap_or_default());
            sums.pay(prompt.cost.map(|cost| (cost.billionths, cost.uncached)));
            // Only a cache break sends tokens again. A prompt that is just shorter does not.
            if let (Some(_), Some((reused, before))) = (prompt.cause, prompt.repeats()) {
                sums.sent_again += before - reused;
            }
            if let (Some(reused), Some(before)) = (prompt.reused, prompt.before) {
                sums.reused += u128::from(reused);
                sums.before += u128::from(before);
                sums.after += u128::from(prompt.tokens);
            }
        }
        sums
    }

    fn pay(&mut self, cost: Option<(u64, u64)>) {
        if let Some((cost, uncached)) = cost {
            let (sum, sum_uncached) = self.cost.unwrap_or_default();
            self.cost = Some((sum.saturating_add(cost), sum_uncached.saturating_add(uncached)));
        }
    }

    fn add(mut self, other: &Self) -> Self {
        self.plans += other.plans;
        self.overflows += other.overflows;
        self.reused += other.reused;
        self.before += other.before;
        self.after += other.after;
        self.tokens += other.tokens;
        self.budgets += other.budgets;
        self.largest = self.largest.max(other.largest);
        self.compactions += other.compactions;
        self.thoughts_sent += other.thoughts_sent;
        self.thoughts_lost += other.thoughts_lost;
        self.breaks += other.breaks;
        self.sent_again += other.sent_again;
        for (cause, count) in &other.causes {
            *self.causes.entry(cause).or_default() += count;
        }
        self.break_cost = self.break_cost.saturating_add(other.break_cost);
        self.pay(other.cost);
        self
    }
}

/// The prompts of one session.
struct ReplayedSession {
    session: String,
    /// The number of oldest prompts that were not planned, because all prompts together have too many rows.
    not_examined: usize,
    prompts: Vec<Figures>,
    sums: Sums,
}

pub(crate) fn run(args: &Replay, screen: &Screen) -> Result<ExitCode> {
    let read = args.files.iter().cloned().chain(args.terms.files()?);
    let output = Outputs::for_inputs(read).claim("--output", args.output.as_deref())?;
    let text = match args.format {
        ReplayFormat::Html => page(args)?,
        _ => figures(args, screen)?,
    };
    match output {
        Some(output) => output.save(&text)?,
        None => print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the figures of every prompt of every session.
fn figures(args: &Replay, screen: &Screen) -> Result<String> {
    let played = replay_all(args, sessions(args)?)?;
    let whole = played.iter().fold(Sums::default(), |sums, one| sums.add(&one.sums));
    match args.format {
        ReplayFormat::Json => json(&played, &whole),
        _ => text(&played, &whole, screen),
    }
}

/// A requested session.
enum SessionSource<'a> {
    Read(Box<Session>),
    /// A session in a store, by its id. It is read only when it is replayed, because all sessions of a store
    /// may not fit into memory.
    Stored {
        address: &'a str,
        id: String,
    },
}

impl SessionSource<'_> {
    /// Loads the session. `open` keeps the last used store open.
    fn session(self, open: &mut Option<(String, Stored)>) -> Result<Session> {
        let (address, id) = match self {
            Self::Read(session) => return Ok(*session),
            Self::Stored { address, id } => (address, id),
        };
        let store = match open {
            Some((of, store)) if of == address => store,
            _ => &mut open.insert((address.to_owned(), Stored::open(address)?)).1,
        };
        store.session(Some(&id))
    }
}

/// Returns the requested sessions, each with a name.
fn sessions(args: &Replay) -> Result<Vec<(String, SessionSource<'_>)>> {
    let mut all = Vec::new();
    for path in &args.files {
        if let Some(address) = stored::address(path) {
            let ids = match &args.id {
                Some(id) => vec![id.clone()],
                None => Stored::open(address)?.summaries()?.into_iter().map(|one| one.id).collect(),
            };
            all.extend(ids.into_iter().map(|id| (id.clone(), SessionSource::Stored { address, id })));
            continue;
        }
        let file = input::file(path, args.reading.options())?;
        let short = path.file_name().map_or_else(|| "-".into(), |name| name.to_string_lossy().into_owned());
        if let Some(id) = &args.id {
            all.push((id.clone(), SessionSource::Read(Box::new(file.session(Some(id))?))));
            continue;
        }
        let ids: Vec<String> = file.ids().collect();
        for (at, session) in file.sessions().enumerate() {
            let name = match ids.get(at) {
                Some(id) if ids.len() > 1 && args.files.len() > 1 => format!("{short} {id}"),
                Some(id) if ids.len() > 1 => id.clone(),
                _ => short.clone(),
            };
            all.push((name.clone(), SessionSource::Read(Box::new(session?))));
        }
    }
    Ok(all)
}

/// Replays the sessions in parallel, with one thread per core. The result has the order of the sessions. If
/// several fail, the error is that of the first one.
fn replay_all(args: &Replay, sessions: Vec<(String, SessionSource<'_>)>) -> Result<Vec<ReplayedSession>> {
    let shown = Progress::bar("replaying sessions", sessions.len());
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    // More threads than sessions would be idle.
    let workers = cores.min(sessions.len());
    let waiting = Mutex::new(sessions.into_iter().enumerate());
    let work = || {
        let (mut played, mut open) = (Vec::new(), None);
        loop {
            // Threads take the next session when they are free, so one long session does not delay the
            // others.
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((at, (name, asked))) = next else { return played };
            let one = asked.session(&mut open).and_then(|session| replay_one(args, &name, session));
            played.push((at, one.with_context(|| name.clone())));
            shown.step();
        }
    };
    let mut played: Vec<(usize, Result<ReplayedSession>)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let played = workers.into_iter().flat_map(|worker| match worker.join() {
            Ok(played) => played,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        played.collect()
    });
    drop(shown);
    // Threads finish in any order.
    played.sort_by_key(|(at, _)| *at);
    played.into_iter().map(|(_, played)| played).collect()
}

fn replay_one(args: &Replay, name: &str, session: Session) -> Result<ReplayedSession> {
    let prepared = Prepared::new(session, &args.terms, args.terms.target.model.as_deref())?;
    let request = prepared.request();
    let mut prompts = Vec::new();
    let explainer = prepared.manager.explainer(&request);
    let all = explainer.count_prompts();
    let newest = match args.newest {
        Some(newest) => newest,
        None => prompts_within(&prepared, MAX_ROWS)?,
    };
    let not_examined = if args.newest.is_none() { all - newest.min(all) } else { 0 };
    for step in explainer.replay_newest(newest) {
        prompts.push(Figures::from_step(&step?, &prepared.model, args.costs.terms()));
    }
    // The total counts all compactions of the session, not only those of the planned prompts.
    let compactions = prepared.session.log.compactions().count() as u64;
    let sums = Sums { compactions, ..Sums::from_prompts(prompts.iter()) };
    Ok(ReplayedSession { session: name.into(), not_examined, prompts, sums })
}

/// Returns the number of newest prompts that have at most `most` rows together.
///
/// This is an estimate from the last prompt. An earlier prompt has at most one row per message before it, and
/// about as many rows as the last prompt.
fn prompts_within(prepared: &Prepared, most: u64) -> Result<usize> {
    let messages = prepared.session.log.messages();
    let replies = messages.iter().enumerate().skip(1).filter(|(_, one)| one.role() == Role::Assistant);
    let before: Vec<u64> = replies.map(|(at, _)| at as u64).chain([messages.len() as u64]).collect();
    if before.iter().sum::<u64>() <= most {
        return Ok(before.len());
    }
    let rows = prepared.manager.build_plan(&prepared.request())?.included.len() as u64;
    Ok(newest_within(&before, rows, most))
}

/// Returns the number of newest prompts, at least one, that have at most `most` rows together. Each prompt
/// has one row per message before it, but at most `rows`.
fn newest_within(messages: &[u64], rows: u64, most: u64) -> usize {
    let mut sum = 0u64;
    let within = messages.iter().rev().take_while(|before| {
        sum = sum.saturating_add(rows.min(**before));
        sum <= most
    });
    within.count().max(1)
}

/// Formats one JSON line per prompt, then the totals.
fn json(played: &[ReplayedSession], whole: &Sums) -> Result<String> {
    let mut text = String::new();
    for one in played {
        for figures in &one.prompts {
            let line = Line { session: &one.session, figures };
            text.push_str(&json::on_a_line(&line)?);
        }
    }
    let totals = serde_json::json!({
        "totals": {
            "sessions": played.len(),
            "plans": whole.plans,
            "not_examined": not_examined(played),
            "overflows": whole.overflows,
            "compactions": whole.compactions,
            "estimated_tokens": u64::try_from(whole.tokens).unwrap_or(u64::MAX),
            "reused_prefix_tokens": u64::try_from(whole.reused).unwrap_or(u64::MAX),
            "prefix_reuse": ratio(whole.reused, whole.before),
            "prompt_reuse": ratio(whole.reused, whole.after),
            "budget_use": ratio(whole.tokens, whole.budgets),
            "thoughts_sent": whole.thoughts_sent,
            "thoughts_lost": whole.thoughts_lost,
            "cache_breaks": whole.breaks,
            "sent_again_tokens": whole.sent_again,
            "cache_breaks_by_cause": whole.causes,
            "cache_breaks_cost_billionths": whole.cost.map(|_| whole.break_cost),
            "input_cost_billionths": whole.cost.map(|(cost, _)| cost),
            "uncached_cost_billionths": whole.cost.map(|(_, uncached)| uncached),
        },
    });
    text.push_str(&json::on_a_line(&totals)?);
    Ok(text)
}

/// Returns the number of prompts that were not planned.
fn not_examined(played: &[ReplayedSession]) -> usize {
    played.iter().map(|one| one.not_examined).sum()
}

/// Returns a ratio of two sums with four decimals. Returns `None` if `whole` is 0.
fn ratio(part: u128, whole: u128) -> Option<f64> {
    // Dividing whole numbers avoids rounding differences between machines.
    let parts = u32::try_from((part * 10_000).checked_div(whole)?).ok()?;
    Some(f64::from(parts) / 10_000.0)
}

fn percent(part: u128, whole: u128) -> String {
    if whole == 0 { "-".into() } else { report::percent(part, whole) }
}

fn text(played: &[ReplayedSession], whole: &Sums, screen: &Screen) -> Result<String> {
    let mut text = match played {
        [only] => prompts(only, screen),
        several => one_line_each(several, screen),
    };
    let counted = |count: u64, one: &str, more: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{} {more}", report::grouped(count)),
    };
    writeln!(
        text,
        "\n{} of {}: {} over budget, {}, largest prompt {} of its budget of {} tokens, {} of all budgets used",
        counted(whole.plans, "prompt", "prompts"),
        counted(played.len() as u64, "session", "sessions"),
        report::grouped(whole.overflows),
        counted(whole.compactions, "compaction", "compactions"),
        report::grouped(whole.largest.0),
        report::grouped(whole.largest.1),
        percent(whole.tokens, whole.budgets),
    )?;
    writeln!(
        text,
        "prefix kept {}; cache hit rate {}",
        percent(whole.reused, whole.before),
        percent(whole.reused, whole.after),
    )?;
    let colour = screen.colour();
    if let earlier @ 1.. = not_examined(played) {
        let prompts = counted(earlier as u64, "earlier prompt", "earlier prompts");
        let note =
            format!("{prompts} not planned: they have too many rows; --newest N plans the newest N prompts");
        writeln!(text, "{}", Tone::Warning.paint(&note, colour))?;
    }
    if whole.breaks == 0 {
        writeln!(text, "no cache breaks")?;
    } else {
        let causes = whole.causes.iter().map(|(cause, count)| format!("{} {cause}", report::grouped(*count)));
        let causes = causes.collect::<Vec<_>>().join("; ");
        let cost = match whole.break_cost {
            0 => String::new(),
            cost => format!(" = {}", report::dollars(cost)),
        };
        let breaks = counted(whole.breaks, "cache break", "cache breaks");
        let again = report::grouped(whole.sent_again);
        let note = format!("{breaks} sent {again} tokens again{cost}: {causes}");
        writeln!(text, "{}", Tone::Warning.paint(&note, colour))?;
    }
    let sent = report::grouped(u64::try_from(whole.tokens).unwrap_or(u64::MAX));
    writeln!(text, "sent {sent} tokens{}", money(whole))?;
    let thoughts = whole.thoughts_sent + whole.thoughts_lost;
    if thoughts > 0 {
        writeln!(
            text,
            "reasoning kept {} of {} ({})",
            report::grouped(whole.thoughts_sent),
            report::grouped(thoughts),
            percent(whole.thoughts_sent.into(), thoughts.into()),
        )?;
    }
    Ok(text)
}

/// Describes the cost of the input of all prompts. Returns an empty string without a price.
fn money(sums: &Sums) -> String {
    let cost_text = |(cost, uncached): (u64, u64)| {
        format!(": {} for input, {} without a cache", report::dollars(cost), report::dollars(uncached))
    };
    sums.cost.map(cost_text).unwrap_or_default()
}

fn prompts(played: &ReplayedSession, screen: &Screen) -> String {
    let mut table = Table::new(&[
        ("prompt", Align::Right),
        ("turn", Align::Right),
        ("messages", Align::Right),
        ("tokens", Align::Right),
        ("cached", Align::Right),
        ("new", Align::Right),
        ("cost", Align::Right),
        ("events", Align::Left),
    ]);
    let mut before = None;
    for prompt in &played.prompts {
        let (change, earlier) = (prompt.change_text(before), before);
        before = Some(prompt);
        let tone = match () {
            () if prompt.over > 0 => Tone::Alarm,
            () if prompt.cause.is_some() || prompt.is_compacted_since(earlier) => Tone::Warning,
            () => Tone::Plain,
        };
        table.row_in(
            tone,
            [
                report::grouped(prompt.number as u64),
                report::grouped(prompt.turn as u64),
                report::grouped(prompt.messages as u64),
                report::grouped(prompt.tokens),
                prompt.reused.map_or_else(|| "-".into(), report::grouped),
                report::grouped(prompt.new_tokens()),
                prompt.cost.map_or_else(|| "-".into(), |cost| report::dollars(cost.billionths)),
                change,
            ],
        );
    }
    table.within(screen.limit()).in_colour(screen.colour()).to_string()
}

fn one_line_each(played: &[ReplayedSession], screen: &Screen) -> String {
    let mut table = Table::new(&[
        ("session", Align::Left),
        ("prompts", Align::Right),
        ("over budget", Align::Right),
        ("compactions", Align::Right),
        ("largest", Align::Right),
        ("prefix kept", Align::Right),
    ]);
    for ReplayedSession { session, sums, .. } in played {
        table.row([
            report::brief(session),
            report::grouped(sums.plans),
            report::grouped(sums.overflows),
            report::grouped(sums.compactions),
            report::grouped(sums.largest.0),
            percent(sums.reused, sums.before),
        ]);
    }
    table.within(screen.limit()).in_colour(screen.colour()).to_string()
}

/// Renders the last prompt of a session as a web page, with the earlier prompts as its timeline.
fn page(args: &Replay) -> Result<String> {
    let mut sessions = sessions(args)?;
    let (Some((name, asked)), true) = (sessions.pop(), sessions.is_empty()) else {
        bail!("replay: a page shows one session; expected one file of one session, or --id");
    };
    let prepared = Prepared::new(asked.session(&mut None)?, &args.terms, args.terms.target.model.as_deref())?;
    let request = prepared.request();
    let newest = args.newest.unwrap_or(MAX_PAGE_PROMPTS).min(MAX_PAGE_PROMPTS);
    let shown = Progress::spinner("replaying");
    let steps: Result<Vec<Step>, _> = prepared.manager.explainer(&request).replay_newest(newest).collect();
    let steps = steps?;
    drop(shown);
    // The page numbers its prompts from the first one that was planned.
    let first = steps.first().map_or(1, |step| step.prompt);
    let mut plans: Vec<_> = steps.into_iter().map(|step| step.plan).collect();
    let last = plans.pop().context("replay: a session has at least one prompt")?;
    let terms = args.costs.terms();
    let beside = PageOptions { title: name, redact: args.redact, earlier: &plans, first, terms, live: None };
    web_page::render_page(&prepared, &request, &last, beside)
}

#[cfg(test)]
mod tests {
    use super::newest_within;

    #[test]
    fn prompts_are_planned_from_the_newest_back_while_their_rows_are_within_the_bound() {
        let messages: Vec<u64> = (1..=10).map(|prompt| 2 * prompt).collect();
        assert_eq!(newest_within(&messages, 100, 110), 10, "all of them have 110 rows");
        assert_eq!(newest_within(&messages, 100, 109), 9);
        assert_eq!(newest_within(&messages, 100, 38), 2, "20 and 18");
        assert_eq!(newest_within(&messages, 100, 1), 1, "the last one is planned in any case");
        assert_eq!(newest_within(&messages, 5, 46), 10, "in a window of 5 rows: 2, 4, and 5 each");
        assert_eq!(newest_within(&messages, 5, 45), 9);
    }
}
