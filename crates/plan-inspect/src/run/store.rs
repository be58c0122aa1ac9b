//! `plan-inspect store`: import of sessions into a store, export from it, and a check for damage.

use crate::{
    args::{DataFormat, Reading, Screen, StoreCommand},
    input, json,
    output::{self, Outputs},
    prepared::say_ignored,
    progress::Progress,
    stderr,
    stdout::print,
    stored::{self, Stored},
    table::{Align, Table, Tone},
};
use anyhow::{Context, Result, bail, ensure};
use context_window::{
    ContextPlan, ContextWindowManager, Conversation, PlanRequest, Registry, RequestLimits,
    conversation::{Entry, Event},
    plan::Anchor,
};
use context_window_formats::Session;
use context_window_report as report;
use context_window_store::{ErrorKind, SessionCheck, SessionStore, SessionSummary};
use serde::Serialize;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::ExitCode,
};

pub(crate) fn run(command: &StoreCommand, screen: &Screen) -> Result<ExitCode> {
    match command {
        StoreCommand::Import { store, files, id, reading } => {
            import(address(store)?, files, id.as_deref(), reading)
        }
        StoreCommand::Export { store, file, id } => export(address(store)?, id.as_deref(), file),
        StoreCommand::Check { store, id, format } => check(address(store)?, id.as_deref(), *format, screen),
    }
}

fn address(path: &Path) -> Result<&str> {
    stored::address(path).with_context(|| {
        format!("{} is not a store; expected sqlite:FILE or postgres://...", input::name(path))
    })
}

/// Imports every session of the files. All ids are checked before anything is written.
fn import(address: &str, files: &[PathBuf], id: Option<&str>, reading: &Reading) -> Result<ExitCode> {
    let mut sessions: Vec<(String, Session)> = Vec::new();
    for path in files {
        sessions.extend(sessions_of(path, reading)?);
    }
    if let Some(id) = id {
        let [(name, _)] = sessions.as_mut_slice() else {
            bail!(
                "--id sets the id of one session, but there are {}; expected one file with one session",
                sessions.len()
            );
        };
        id.clone_into(name);
    }
    // Two sessions with one id cannot both be imported, so this is checked before the first write.
    let mut ids = BTreeSet::new();
    for (id, _) in &sessions {
        ensure!(
            ids.insert(id),
            "two sessions of these files have the id `{}`; expected different ids: import them one at a time (--id)",
            report::brief(id)
        );
    }
    for id in ids {
        // The limits of the store are checked before the first session is written.
        let fits = !id.is_empty() && id.len() <= 1_000 && !id.contains('\0');
        ensure!(fits, "a session's id has 1 to 1,000 bytes and no NUL character; nothing was written");
    }
    let mut store = SessionStore::open(address)?;
    let mut new = Vec::new();
    let count = sessions.len();
    for (id, session) in sessions {
        // After an interrupted import, the user repeats it. Sessions that are already in the store are not
        // changed.
        let there = store.summary(&id)?.map(|_| store.load(&id)).transpose()?;
        match there {
            None => new.push((id, session)),
            Some((log, _)) => ensure!(
                log == session.log,
                "another session `{}` exists in the store; nothing was written; expected another id{}",
                report::brief(&id),
                if count == 1 { " (--id)" } else { "" },
            ),
        }
    }
    let shown = Progress::bar("importing sessions", new.len());
    let mut entries = 0;
    for (done, (id, session)) in new.iter().enumerate() {
        // Each session is written in its own transaction.
        let written = store.import(id, &session.log);
        entries += written.with_context(|| format!("{done} of {} sessions were imported", new.len()))?;
        say_ignored(session);
        shown.step();
    }
    drop(shown);
    let beside = new.iter().filter(|(_, session)| holds_more(session)).count() as u64;
    if beside > 0 {
        stderr::note(&format!(
            "a store contains only conversations: model, tools, documents and options of {} are not imported",
            plural(beside, "session")
        ));
    }
    let there = match (count - new.len()) as u64 {
        0 => String::new(),
        same => format!("; {} existed already", plural(same, "session")),
    };
    print(&format!(
        "{} imported, {}{there}\n",
        plural(new.len() as u64, "session"),
        plural(entries, "entry")
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the sessions of a file or a store, each with a name: its id, or the name of the file.
fn sessions_of(path: &Path, reading: &Reading) -> Result<Vec<(String, Session)>> {
    if let Some(address) = stored::address(path) {
        let mut store = Stored::open(address)?;
        let ids: Vec<String> = store.summaries()?.into_iter().map(|one| one.id).collect();
        return ids.into_iter().map(|id| Ok((id.clone(), store.session(Some(&id))?))).collect();
    }
    let file = input::file(path, reading.options())?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stem = stem.filter(|stem| stem != "-").unwrap_or_else(|| "session".into());
    // A file name can have a second extension, as in `talks.jsonl.gz`.
    let stem = stem.strip_suffix(".jsonl").or(stem.strip_suffix(".json")).unwrap_or(&stem).to_owned();
    let (several, ids) = (file.len() > 1, file.ids().collect::<Vec<_>>());
    let name = |at: usize, session: &Session| match (&session.id, several) {
        (Some(id), _) => id.clone(),
        (None, false) => stem.clone(),
        (None, true) => format!("{stem}:{}", ids.get(at).map_or_else(|| at.to_string(), String::clone)),
    };
    let named = file.sessions().enumerate().map(|(at, session)| {
        let session = session?;
        Ok((name(at, &session), session))
    });
    named.collect()
}

/// Checks if a session contains data that a conversation does not.
fn holds_more(session: &Session) -> bool {
    session.model.is_some()
        || !session.tools.is_empty()
        || !session.rag.is_empty()
        || !session.state.is_empty()
        || session.focus.is_some()
        || session.options.is_some()
        || session.limits != RequestLimits::default()
}

/// Exports a session as a log on disk.
fn export(address: &str, id: Option<&str>, file: &Path) -> Result<ExitCode> {
    let mut outputs = Outputs::beside([Path::new(address)]);
    // The check prevents overwriting the file of the store itself.
    outputs.claim("FILE", Some(file))?;
    if file.exists() {
        return Err(output::exists(file));
    }
    let session = Stored::open(address)?.session(id)?;
    output::create_log(file, &session.log)?;
    stderr::note(&format!("written to {}", file.display()));
    Ok(ExitCode::SUCCESS)
}

/// The result of checking one session.
#[derive(Serialize)]
struct Checked {
    session: String,
    entries: u64,
    messages: u64,
    /// The items of its last prompt that a new plan repeats with the recorded hash, and the items whose texts
    /// are in the log.
    repeated: Option<(usize, usize)>,
    faults: Vec<String>,
}

fn check(address: &str, id: Option<&str>, format: DataFormat, screen: &Screen) -> Result<ExitCode> {
    let ids = match id {
        Some(id) => vec![id.to_owned()],
        None => Stored::open(address)?.summaries()?.into_iter().map(|one: SessionSummary| one.id).collect(),
    };
    // A check never writes, not even a migration.
    let mut store = SessionStore::open_read_only(address)?;
    let shown = Progress::bar("checking sessions", ids.len());
    let mut all = Vec::new();
    for id in ids {
        all.push(one(&mut store, id)?);
        shown.step();
    }
    drop(shown);
    let faulty = all.iter().filter(|one| !one.faults.is_empty()).count();
    print(&match format {
        DataFormat::Json => json::indented(&all)?,
        DataFormat::Text => text(&all, screen),
    })?;
    Ok(ExitCode::from(u8::from(faulty > 0)))
}

fn one(store: &mut SessionStore, id: String) -> Result<Checked> {
    let SessionCheck { entries, messages, mut faults, .. } = match store.check(&id) {
        // A database error concerns this session only. Other sessions can be whole.
        Err(error) if error.kind() == ErrorKind::Store => {
            let faults = vec![error.to_string()];
            return Ok(Checked { session: id, entries: 0, messages: 0, repeated: None, faults });
        }
        check => check?,
    };
    let mut repeated = None;
    if faults.is_empty() {
        let (log, _) = store.load(&id)?;
        let (active, _) = store.load_active(&id)?;
        // If another process wrote in between, the two states are not comparable.
        if active.event_count() == log.event_count() {
            // Archived texts must not influence a plan, so both plans have to be equal.
            let [whole, without] = [&log, &active].map(next_plan);
            if whole != without {
                faults.push("its plan differs if archived texts are not loaded".into());
            }
        }
        repeated = repeats(&log);
    }
    Ok(Checked { session: id, entries, messages, repeated, faults })
}

/// Returns the next plan as JSON, or the error of planning it.
fn next_plan(log: &Conversation) -> Result<String, String> {
    let plan = planned(log, RequestLimits::default());
    plan.map(|plan| plan.to_json()).map_err(|error| error.to_string())
}

/// Plans the next prompt for the model of the newest prompt, with default options.
fn planned(log: &Conversation, limits: RequestLimits) -> Result<ContextPlan, context_window::Error> {
    let model = log.anchor().and_then(Anchor::model).unwrap_or("default");
    let model = Registry::default().model(model);
    let manager = ContextWindowManager::configured(model, context_window::Config::default())?;
    manager.build_plan(&PlanRequest::new(log).with_limits(limits))
}

/// Plans the newest prompt again, at its time, and compares the items with the recorded hashes. Returns the
/// number of equal items, and the number of items whose texts are in the log.
///
/// Equal items can be fewer without damage, because the application may use other options.
fn repeats(log: &Conversation) -> Option<(usize, usize)> {
    let anchor: &Anchor = log.anchor()?;
    let recorded = anchor.sent_items()?;
    let (mut messages, mut before) = (0, None);
    for entry in log.entries() {
        match entry {
            Entry::Message(_) => messages += 1,
            Entry::Event(Event::Sent { .. }) => before = Some(messages),
            Entry::Event(_) => {}
        }
    }
    // The prompt was planned before the messages that follow it, so they are left out.
    let past = log.as_of(before?);
    let plan = planned(&past, anchor.limits().unwrap_or_default()).ok()?;
    let again = plan.anchor().sent_items()?;
    Some((recorded.count_in(&again), recorded.count_ids_in(&again)))
}

fn text(all: &[Checked], screen: &Screen) -> String {
    let columns = [
        ("session", Align::Left),
        ("entries", Align::Right),
        ("messages", Align::Right),
        ("last prompt", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for one in all {
        let (tone, said) = match one.faults.as_slice() {
            [] => (Tone::Plain, "intact".to_owned()),
            [first, ..] => (Tone::Alarm, first.clone()),
        };
        let repeated = one.repeated.map_or_else(|| "-".into(), |(same, of)| format!("{same} of {of}"));
        let counts = [one.entries, one.messages].map(report::grouped);
        let [entries, messages] = counts;
        table.row_in(
            tone,
            [report::brief(&one.session), entries, messages, repeated, report::printable(&said)],
        );
    }
    let faulty = all.iter().filter(|one| !one.faults.is_empty()).count() as u64;
    let sum = match faulty {
        0 => format!("{} intact", plural(all.len() as u64, "session")),
        _ => format!("{} of {} damaged", report::grouped(faulty), plural(all.len() as u64, "session")),
    };
    let table = table.within(screen.limit()).in_colour(screen.colour());
    format!("{table}\n{sum}\n")
}

fn plural(count: u64, what: &str) -> String {
    let many = what.strip_suffix('y').map_or_else(|| format!("{what}s"), |stem| format!("{stem}ies"));
    format!("{} {}", report::grouped(count), if count == 1 { what } else { &many })
}
