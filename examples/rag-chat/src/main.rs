//! A chat in the terminal over a folder of documents, built on `context-window`.

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use rag_chat::{
    args::Args, chat::Chat, event::Tasks, fingerprint::fingerprint, models, once, private, screen,
};
use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        // Help and version, in colour if the terminal supports it.
        Err(instead) if !instead.use_stderr() => instead.exit(),
        Err(instead) => {
            // The message repeats the arguments, and a file's name may contain control characters.
            eprint!("{}", once::shown(&instead.render().to_string()));
            return ExitCode::from(2);
        }
    };
    run(args).unwrap_or_else(|error| {
        eprintln!("{}", once::shown(&format!("rag-chat: {error:#}")));
        ExitCode::from(2)
    })
}

fn run(args: Args) -> Result<ExitCode> {
    if args.ask.is_none() && !stdout().is_terminal() {
        bail!("standard output is not a terminal; expected one, or --ask QUESTION for one answer");
    }
    let folder = args.folder.canonicalize();
    let folder =
        folder.with_context(|| format!("{}: expected a folder of documents", args.folder.display()))?;
    ensure!(folder.is_dir(), "{}: is a file; expected the folder that contains it", folder.display());
    let data = args.data.clone().map_or_else(|| data_of(&folder), Ok)?;
    private::create_folder(&data)
        .with_context(|| format!("{}: expected a folder to write to; see --data", data.display()))?;
    // Threads for background work: document search, model requests, summaries.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (sender, events) = mpsc::channel();
    let tasks = Tasks { runtime: runtime.handle().clone(), sender };
    let question = args.ask.clone();
    let chat = Chat::open(args, &data, models::environment(), tasks.clone())?;
    let code = match question {
        Some(question) => once::run(chat, &events, &question)?,
        None => screen::run(chat, &events, tasks)?,
    };
    // Drops a request that is still running.
    runtime.shutdown_background();
    Ok(code)
}

/// Returns the folder of the index and conversations of a document folder: in the user's data, named after
/// the folder and a hash of its path.
fn data_of(folder: &Path) -> Result<PathBuf> {
    let base = dirs::data_local_dir()
        .context("HOME is not set; expected --data with a folder for index and conversations")?;
    let name = folder.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy());
    let number = fingerprint(folder.as_os_str().as_encoded_bytes());
    Ok(base.join("rag-chat").join(format!("{name}-{number:016x}")))
}
