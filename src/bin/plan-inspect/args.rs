//! The command line.

#![expect(clippy::doc_markdown, reason = "comments here are help texts")]

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::{
    env,
    ffi::OsString,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

mod flags;

use flags::tokens;
pub(crate) use flags::{
    CertaintyAsked, DataFormat, Documents, Format, Models, Options, Provider, Request, Screen, Terms,
};

const USAGE: &str = "plan-inspect [plan] SESSION [OPTIONS]\n       plan-inspect COMMAND [ARGUMENTS]";

const EXAMPLES: &str = "Examples:
  plan-inspect chat.json --budget 8k                 what of this session fits into 8,000 tokens
  plan-inspect logs.jsonl --list                     the sessions of a file
  plan-inspect logs.jsonl --id 17 --model gpt-5      one of them, for another model
  plan-inspect chat.json --format messages           the request body itself
  plan-inspect explain chat.json m12 --budget 8k     why m12 is in or out, and what would change that
  plan-inspect diff monday.json tuesday.json         what differs, and the cause of each difference
  plan-inspect compact chat.json                     what a compaction would archive, keep and ask for
  plan-inspect history chat.json                     everything that was said, archived or not
  plan-inspect chat.json --preset agent --set rag.max_items=5
  plan-inspect plan --help                           all options of a plan";

/// See what goes into a prompt, what does not, and why.
///
/// `plan-inspect SESSION` is short for `plan-inspect plan SESSION`.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, override_usage = USAGE, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Plan the session's next prompt and show the plan (what a bare SESSION does)
    Plan(Box<Plan>),
    /// Why an item is in or out, and which budgets would change that
    Explain(Box<Explain>),
    /// What differs between the plans of two sessions, and the one input that each difference comes from
    Diff(Box<Diff>),
    /// What a compaction would archive, keep and ask for; with --apply, do it in a new file
    Compact(Box<Compact>),
    /// Everything that was said, with a marker wherever messages were archived
    History(History),
    /// Plan test vectors and compare with what they expect
    Vectors(Vectors),
    /// Show the options in force
    #[command(subcommand)]
    Config(ConfigCommand),
    /// List, show and import models
    #[command(subcommand)]
    Models(ModelsCommand),
}

impl Cli {
    /// Reads the arguments of the process; `plan` is put in where no subcommand stands.
    pub(crate) fn from_process() -> Self {
        let mut arguments: Vec<OsString> = env::args_os().collect();
        let bare = arguments.get(1).is_some_and(|first| {
            let name = first.to_string_lossy();
            let of_the_tool = ["help", "-h", "--help", "-V", "--version"].contains(&&*name);
            // A word that is neither a file nor looks like one is a misspelt command, and clap knows the right one.
            let word = name.chars().all(|c| c.is_ascii_alphabetic()) && !Path::new(first).exists();
            !of_the_tool && !word && !Command::has_subcommand(&name)
        });
        if bare {
            arguments.insert(1, "plan".into());
        } else if arguments.len() == 1 && !io::stdin().is_terminal() {
            arguments.extend(["plan".into(), "-".into()]);
        }
        Self::parse_from(arguments)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) request: Request,
    /// List the ids of the file's sessions instead
    #[arg(long)]
    pub(crate) list: bool,
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) screen: Screen,
    /// Write what the next prompt needs to begin as this one does (see --previous)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) save_anchor: Option<PathBuf>,
    /// Mark cache breakpoints in the messages (--format messages), where the provider knows them
    #[arg(long, help_heading = "Output")]
    pub(crate) breakpoints: bool,
    /// How sure the numbers of what is left out are: bounds cost nothing, exact ones are counted in full
    #[arg(long, value_enum, default_value_t = CertaintyAsked::Bounds, value_name = "HOW", help_heading = "Output")]
    pub(crate) certainty: CertaintyAsked,
    /// Exit with 1 when the plan is over its budget
    #[arg(long, help_heading = "Output")]
    pub(crate) strict: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) request: Request,
    /// The item: a message, note, document or system text by its id; item:ID and rag:ID where both are called so. Without
    /// it, everything
    #[arg(value_name = "ID")]
    pub(crate) item: Option<String>,
    /// What to print
    #[arg(long, value_enum, default_value_t = DataFormat::Text, help_heading = "Output")]
    pub(crate) format: DataFormat,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The session before
    pub(crate) before: PathBuf,
    /// The session after; the same file where only --then-... differ
    pub(crate) after: PathBuf,
    /// The session to take from the first file, and from the second unless --then-id says otherwise
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// The session to take from the second file
    #[arg(long, value_name = "ID")]
    pub(crate) then_id: Option<String>,
    /// The model of the second plan
    #[arg(long, value_name = "MODEL")]
    pub(crate) then_model: Option<String>,
    /// The prompt budget of the second plan
    #[arg(long, value_name = "N", value_parser = tokens)]
    pub(crate) then_budget: Option<u64>,
    #[command(flatten)]
    pub(crate) terms: Terms,
    /// What to print
    #[arg(long, value_enum, default_value_t = DataFormat::Text, help_heading = "Output")]
    pub(crate) format: DataFormat,
}

#[derive(Debug, Args)]
pub(crate) struct Compact {
    #[command(flatten)]
    pub(crate) request: Request,
    /// The first message to archive, in place of what the options choose; without --to, up to the last
    #[arg(long, value_name = "ID")]
    pub(crate) from: Option<String>,
    /// The last message to archive; without --from, from the first
    #[arg(long, value_name = "ID")]
    pub(crate) to: Option<String>,
    /// The summary, made elsewhere or edited: a text file, or - for standard input [default: the digest]
    #[arg(long, value_name = "FILE")]
    pub(crate) summary: Option<PathBuf>,
    /// Write the compacted session there; the session itself is left as it is
    #[arg(long, value_name = "NEW FILE")]
    pub(crate) apply: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t = DataFormat::Text, help_heading = "Output")]
    pub(crate) format: DataFormat,
}

#[derive(Debug, Args)]
pub(crate) struct History {
    /// Session file, or a log on disk
    pub(crate) session: PathBuf,
    /// The session to take from a file of several
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Show summaries under their markers, and messages whole
    #[arg(long)]
    pub(crate) expand: bool,
    /// What to print
    #[arg(long, value_enum, default_value_t = HistoryFormat::Text, help_heading = "Output")]
    pub(crate) format: HistoryFormat,
    #[command(flatten)]
    pub(crate) screen: Screen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryFormat {
    /// One line a message, archived ones dimmed
    Text,
    /// Everything, for reading or keeping
    Markdown,
    /// One JSON object
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Vectors {
    /// Files of vectors, or folders of them
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t = DataFormat::Text, help_heading = "Output")]
    pub(crate) format: DataFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every option with its value
    Show {
        #[command(flatten)]
        options: Options,
        /// Say where each value came from
        #[arg(long)]
        origin: bool,
        /// What to print
        #[arg(long, value_enum, default_value_t = DataFormat::Text)]
        format: DataFormat,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the models that are known, or those with these words in name or provider
    List {
        #[arg(value_name = "WORD")]
        words: Vec<String>,
        #[command(flatten)]
        models: Models,
        /// What to print
        #[arg(long, value_enum, default_value_t = DataFormat::Text)]
        format: DataFormat,
    },
    /// Show what is known of one model, and where it comes from
    Show {
        name: String,
        #[command(flatten)]
        models: Models,
        /// What to print
        #[arg(long, value_enum, default_value_t = DataFormat::Text)]
        format: DataFormat,
    },
    /// Turn a public catalogue (LiteLLM's price file, or models.dev's api.json) into a file for --models
    Import {
        /// The catalogue, or - for standard input
        file: PathBuf,
        /// When the catalogue was fetched, for the entries' `date`
        #[arg(long, default_value = "unknown")]
        date: String,
        /// Write to this file instead of standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}
