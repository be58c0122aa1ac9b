//! The command line arguments.

#![expect(clippy::doc_markdown, reason = "comments here are help texts")]

use clap::{
    Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
    builder::NonEmptyStringValueParser,
};
use clap_complete::Shell;
use std::{
    ffi::OsString,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

mod flags;
mod eval;
mod rag;

pub(crate) use eval::{Compactions, Eval, EvalFormat};
pub(crate) use flags::{
    Costs, Counts, DataFormat, DiffFormat, FailOn, Format, FormatName, Hits, Models, Options, RagFile,
    Reading, Request, Screen, Terms,
};
use flags::{at_least_one, tokens};
pub(crate) use rag::Rag;

const USAGE: &str = "plan-inspect [plan] SESSION [OPTIONS]\n       plan-inspect COMMAND [ARGUMENTS]";

const EXAMPLES: &str = "Examples:
  plan-inspect chat.json --budget 8k                 show the items that fit into 8,000 tokens
  plan-inspect logs.jsonl --list                     list the sessions of a file
  plan-inspect logs.jsonl --id 17 --model gpt-5      plan one of them for another model
  plan-inspect chat.json --format messages           print the request body
  plan-inspect chat.json --format html -o plan.html  write a web page with texts and explanations
  plan-inspect explain chat.json m12 --budget 8k     explain why m12 is in or out
  plan-inspect rag words=a.json meaning=b.json --budget 2k    fuse two lists and show the selected documents
  plan-inspect diff monday.json tuesday.json         show the changes and their causes
  plan-inspect compact chat.json                     show the result of a compaction
  plan-inspect history chat.json                     show all messages, archived or not
  plan-inspect eval questions.jsonl --budget 2048    measure how much evidence the prompts hold
  plan-inspect sqlite:sessions.db --list             list the sessions of a store
  plan-inspect chat.json --preset agent --set rag.max_items=5
  plan-inspect plan --help                           show all options of a plan";

/// Show the included and excluded items of a prompt, and the reasons.
///
/// `plan-inspect SESSION` is short for `plan-inspect plan SESSION`.
#[derive(Debug, Parser)]
#[command(name = "plan-inspect", version, arg_required_else_help = true, override_usage = USAGE, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) screen: Screen,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Plan the session's next prompt and show the plan (the default command)
    Plan(Box<Plan>),
    /// Explain why an item is in or out, and which budgets would change that
    Explain(Box<Explain>),
    /// Show the number of tokens available for documents in the next prompt, before they are retrieved
    Retrieval(Box<Retrieval>),
    /// Select documents from ranked lists within a budget, without a session
    Rag(Box<Rag>),
    /// Compare the plans of two sessions and show the cause of each change
    Diff(Box<Diff>),
    /// Show the result of a compaction: archived and kept messages, and the request for a summary; with
    /// --apply, write it to a new file
    Compact(Box<Compact>),
    /// Show all messages, archived or not, with a marker for each compaction
    History(History),
    /// Plan every prompt of a session again, and show its cached prefix and the totals
    Replay(Box<Replay>),
    /// Measure how much of the evidence for questions is in the prompt, for several policies and budgets
    Eval(Box<Eval>),
    /// Show the plan on an interactive screen: filter it, try other budgets, look at earlier prompts
    Tui(Box<Tui>),
    /// Import sessions into a store (SQLite, PostgreSQL), export them, check a store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Find the damaged line of a log on disk; with --cut, cut the log off before it and keep a copy. Exits
    /// with 1 if the log is damaged
    Repair(Repair),
    /// Plan test vectors and compare with the expected plans
    Vectors(Vectors),
    /// Show the effective options
    #[command(subcommand)]
    Config(ConfigCommand),
    /// List, show and import models
    #[command(subcommand)]
    Models(ModelsCommand),
    /// Print the JSON Schema of plans, sessions or option files, for editors and checks
    Schema {
        /// Subject of the schema
        #[arg(value_enum, value_name = "SUBJECT")]
        of: SchemaOf,
    },
    /// Print a script that completes command lines: plan-inspect completions bash > FOLDER/plan-inspect
    Completions {
        /// Target shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page of the tool, or of one command
    Man(Man),
}

impl Cli {
    /// Parses arguments, the first of which is the name of the program. Without a subcommand, it inserts
    /// `plan`.
    ///
    /// # Errors
    ///
    /// Returns an error in the arguments, or the requested help or version, to be printed in the requested
    /// colours.
    pub(crate) fn from_arguments(mut arguments: Vec<OsString>) -> Result<Self, clap::Error> {
        let at = first_word(&arguments);
        // A command name has priority over a file of the same name.
        let bare = arguments.get(at).is_some_and(|first| {
            let name = first.to_string_lossy();
            let of_the_tool = ["help", "-h", "--help", "-V", "--version"].contains(&&*name);
            // A word that is neither an existing file nor similar to a path is a misspelt command. Clap
            // suggests the right one.
            let word = name.chars().all(|c| c.is_ascii_alphabetic()) && !Path::new(first).exists();
            !of_the_tool && !word && !Command::has_subcommand(&name)
        });
        if bare {
            arguments.insert(at, "plan".into());
        } else if arguments.len() == at && !io::stdin().is_terminal() {
            // Without arguments, input from a pipe is planned. At a terminal, clap prints the help.
            arguments.extend(["plan".into(), "-".into()]);
        }
        if arguments.get(at).is_some_and(|first| first == "help") {
            // Clap implements `help` itself and accepts only command names after it.
            arguments = flags_first(arguments);
        }
        let colour = colour_asked(&arguments);
        match colour {
            ColorChoice::Always => anstream::ColorChoice::Always.write_global(),
            ColorChoice::Never => anstream::ColorChoice::Never.write_global(),
            // `anstream` checks the terminal and the environment itself.
            ColorChoice::Auto => {}
        }
        let mut command = Self::command().color(colour);
        if let Some(columns) = value_of("--width", &arguments).and_then(|width| width.parse().ok()) {
            command = command.term_width(columns);
        }
        // Colour and width are already set, because parsing can end with help or an error.
        let matches = command.try_get_matches_from_mut(arguments)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

/// Returns the index of the first argument that is not a global flag or the value of one.
fn first_word(arguments: &[OsString]) -> usize {
    let mut at = 1;
    while let Some(flag) = arguments.get(at).and_then(|argument| argument.to_str()) {
        // A flag at the end without a value is left to clap, which reports it.
        at += match flag {
            "--color" | "--width" if at + 1 < arguments.len() => 2,
            _ if flag.starts_with("--color=") || flag.starts_with("--width=") => 1,
            _ => break,
        };
    }
    at
}

/// Moves the global flags to the front, after the program name. All other arguments keep their order.
fn flags_first(arguments: Vec<OsString>) -> Vec<OsString> {
    let (mut first, mut then) = (Vec::new(), Vec::new());
    let mut arguments = arguments.into_iter();
    first.extend(arguments.next());
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy().into_owned();
        let joined =
            EVERYWHERE.iter().any(|flag| text.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')));
        if EVERYWHERE.contains(&&*text) {
            first.push(argument);
            first.extend(arguments.next());
        } else if joined {
            first.push(argument);
        } else {
            then.push(argument);
        }
    }
    first.into_iter().chain(then).collect()
}

/// The global flags that have a value.
const EVERYWHERE: [&str; 2] = ["--color", "--width"];

/// Returns the value of `--color` for help and argument errors, which are printed before the arguments are
/// parsed.
fn colour_asked(arguments: &[OsString]) -> ColorChoice {
    value_of("--color", arguments).and_then(|value| value.parse().ok()).unwrap_or_default()
}

/// Returns the last value of a flag in arguments that are not parsed yet.
fn value_of<'a>(flag: &str, arguments: &'a [OsString]) -> Option<&'a str> {
    let texts = || arguments.iter().map(|argument| argument.to_str().unwrap_or_default());
    // A value can be the next argument or follow an equals sign.
    let apart = texts().zip(texts().skip(1)).filter(|(name, _)| *name == flag).map(|(_, value)| value);
    let joined = texts().filter_map(|argument| argument.strip_prefix(flag)?.strip_prefix('='));
    apart.chain(joined).last()
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) request: Request,
    /// List the file's sessions instead
    #[arg(long, help_heading = "Output")]
    pub(crate) list: bool,
    /// Show the prompt's composition as a grid of cells, in place of the tables and lists
    #[arg(long, help_heading = "Output")]
    pub(crate) grid: bool,
    /// Number of largest items to list
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Output")]
    pub(crate) top: usize,
    #[command(flatten)]
    pub(crate) printed: Printed,
    /// Write a web page (--format html) that plans by itself, to try budgets, models, options, pins and
    /// exclusions. DIR is the folder of the npm package: node_modules/context-window
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) live: Option<PathBuf>,
    /// Write the anchor of this prompt to this file, for --previous of the next prompt; can be the file of
    /// --previous
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) save_anchor: Option<PathBuf>,
    /// Mark cache breakpoints in the messages (--format messages), if the provider supports them
    #[arg(long, help_heading = "Output")]
    pub(crate) breakpoints: bool,
    #[command(flatten)]
    pub(crate) certainty: Counts,
    /// Exit with 1 if the plan is over its budget
    #[arg(long, help_heading = "Output")]
    pub(crate) strict: bool,
}

/// The form and the place of a printed plan.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Printed {
    /// Show all rows of long lists
    #[arg(long)]
    pub(crate) all: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Write the output to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// In the web page (--format html), replace every text by a hash and a size; ids remain
    #[arg(long)]
    pub(crate) redact: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    // This field comes first. After the flattened options, it would be listed under their last heading.
    /// Id of a message, note, document or system text; item:ID or rag:ID if a document shares the id with
    /// another item [default: all items]
    #[arg(value_name = "ID", index = 2)]
    pub(crate) item: Option<String>,
    #[command(flatten)]
    pub(crate) request: Request,
    /// Output format
    #[arg(long, value_enum, default_value_t = DataFormat::Text, help_heading = "Output")]
    pub(crate) format: DataFormat,
}

#[derive(Debug, Args)]
pub(crate) struct Retrieval {
    #[command(flatten)]
    pub(crate) request: Request,
    /// Tokens per document, to show the number of documents that fit
    #[arg(long, value_name = "N", value_parser = tokens, help_heading = "Documents")]
    pub(crate) tokens_each: Option<u64>,
    /// Output format
    #[arg(long, value_enum, default_value_t = DataFormat::Text, help_heading = "Output")]
    pub(crate) format: DataFormat,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// Session before the change
    pub(crate) before: PathBuf,
    /// Session after the change; the same file if only the --then-... options differ
    pub(crate) after: PathBuf,
    /// Id of the session in the first file, and in the second unless --then-id is given
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Id of the session in the second file
    #[arg(long, value_name = "ID")]
    pub(crate) then_id: Option<String>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Model of the second plan
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) then_model: Option<String>,
    /// Prompt budget of the second plan
    #[arg(long, value_name = "N", value_parser = tokens)]
    pub(crate) then_budget: Option<u64>,
    #[command(flatten)]
    pub(crate) terms: Terms,
    /// Output format
    #[arg(long, value_enum, default_value_t = DiffFormat::Text, help_heading = "Output")]
    pub(crate) format: DiffFormat,
    /// Exit with 1 if one of these happened; separate several with commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "EVENT", help_heading = "Output")]
    pub(crate) fail_on: Vec<FailOn>,
}

#[derive(Debug, Args)]
pub(crate) struct Compact {
    #[command(flatten)]
    pub(crate) request: Request,
    /// First message to archive, in place of the options' choice; without --last, archive up to the last
    /// message
    #[arg(long, value_name = "ID", help_heading = "Compaction")]
    pub(crate) first: Option<String>,
    /// Last message to archive; without --first, archive from the first message on
    #[arg(long, value_name = "ID", help_heading = "Compaction")]
    pub(crate) last: Option<String>,
    /// Summary to use: a text file, or - for standard input [default: the digest]
    #[arg(long, value_name = "FILE", help_heading = "Compaction")]
    pub(crate) summary: Option<PathBuf>,
    /// Write the compacted session to a new file; the session itself is not changed
    #[arg(long, value_name = "NEW FILE", help_heading = "Compaction")]
    pub(crate) apply: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = CompactFormat::Text, help_heading = "Output")]
    pub(crate) format: CompactFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompactFormat {
    /// For people
    Text,
    /// Markdown, for a comment on a pull request
    Markdown,
    /// One JSON object
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct History {
    /// Session file, log on disk, or store
    pub(crate) session: PathBuf,
    /// Id of the session in a file of several
    #[arg(long)]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Show summaries under their markers, and messages in full
    #[arg(long)]
    pub(crate) expand: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = HistoryFormat::Text, help_heading = "Output")]
    pub(crate) format: HistoryFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryFormat {
    /// One line for each message, archived ones dimmed
    Text,
    /// Every message in full, as Markdown
    Markdown,
    /// One JSON object
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Session files, logs on disk, or stores; all of their sessions are replayed
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Replay only the session with this id in each file
    #[arg(long)]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Replay only the newest N prompts of each session
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) newest: Option<usize>,
    #[command(flatten)]
    pub(crate) terms: Terms,
    #[command(flatten)]
    pub(crate) costs: Costs,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReplayFormat::Text, help_heading = "Output")]
    pub(crate) format: ReplayFormat,
    /// Write the output to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// In the web page (--format html), replace every text by a hash and a size
    #[arg(long, help_heading = "Output")]
    pub(crate) redact: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayFormat {
    /// One line per prompt; for several sessions, one line per session
    Text,
    /// JSON lines: one object per prompt, then the totals
    Json,
    /// The last prompt as a web page, with a timeline of the earlier prompts
    Html,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Tui {
    #[command(flatten)]
    pub(crate) request: Request,
    #[command(flatten)]
    pub(crate) certainty: Counts,
    /// Read the session again whenever its file grows
    #[arg(long, help_heading = "Screen")]
    pub(crate) follow: bool,
    /// Compare with the plan of this session, in place of the previous prompt
    #[arg(long, value_name = "FILE", help_heading = "Screen")]
    pub(crate) against: Option<PathBuf>,
    /// Id of the session in that file
    #[arg(long, value_name = "ID", requires = "against", help_heading = "Screen")]
    pub(crate) against_id: Option<String>,
    /// Start with the what-if changes in this file, as saved with the key `w`
    #[arg(long, value_name = "FILE", help_heading = "Screen")]
    pub(crate) what_if: Option<PathBuf>,
    /// Print one screen of this size as text and exit
    #[arg(long, value_name = "COLUMNSxLINES", value_parser = picture_size, conflicts_with = "follow", help_heading = "Screen")]
    pub(crate) print: Option<(u16, u16)>,
    // A doc comment would turn the names of keys into HTML tags of the documentation.
    #[arg(
        long,
        requires = "print",
        help_heading = "Screen",
        help = "Keys to press before printing: characters, or names such as <Enter>, <Tab>, <C-d>, <lt>"
    )]
    pub(crate) keys: Option<String>,
    /// True if the session was chosen from a list. Its id then does not apply to other files.
    #[arg(skip)]
    pub(crate) picked: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Import every session of these files, each in its own transaction; create the store if it does not
    /// exist. Existing sessions are not changed
    Import {
        /// sqlite:FILE, or postgres://USER:PASSWORD@HOST:PORT/DATABASE
        #[arg(value_name = "STORE")]
        store: PathBuf,
        /// Session files, logs on disk, other stores, or - for standard input
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Id of the session in the store, if the files contain only one [default: its id, or the name of its
        /// file]
        #[arg(long)]
        id: Option<String>,
        #[command(flatten)]
        reading: Reading,
    },
    /// Export a session as a new log on disk
    Export {
        /// sqlite:FILE, or postgres://USER:PASSWORD@HOST:PORT/DATABASE
        #[arg(value_name = "STORE")]
        store: PathBuf,
        /// The log to write
        #[arg(value_name = "NEW FILE")]
        file: PathBuf,
        /// Id of the session in a store of several
        #[arg(long)]
        id: Option<String>,
    },
    /// Check every entry of every session: numbers, checksums, order; plan with and without archived texts.
    /// Exits with 1 if an entry is damaged
    Check {
        /// sqlite:FILE, or postgres://USER:PASSWORD@HOST:PORT/DATABASE
        #[arg(value_name = "STORE")]
        store: PathBuf,
        /// Check only this session
        #[arg(long)]
        id: Option<String>,
        /// Output format
        #[arg(long, value_enum, default_value_t = DataFormat::Text)]
        format: DataFormat,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Repair {
    /// The log on disk
    pub(crate) log: PathBuf,
    /// Cut the log off before its first damaged line; the removed lines are kept in a new file next to it
    #[arg(long)]
    pub(crate) cut: bool,
    /// Show all rows of long lists
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = DataFormat::Text, help_heading = "Output")]
    pub(crate) format: DataFormat,
}

#[derive(Debug, Args)]
pub(crate) struct Vectors {
    /// Vector files, or folders of them
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = DataFormat::Text, help_heading = "Output")]
    pub(crate) format: DataFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// Option files: TOML, read as JSON
    Config,
    /// Plans, as --format json prints them
    Plan,
    /// Session files
    Session,
    /// Sessions with questions, for `eval`
    Questions,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Command, as in `config show` [default: the tool]
    pub(crate) command: Vec<String>,
    /// Write all pages into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) output_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every option with its value
    Show {
        #[command(flatten)]
        options: Options,
        /// Show the origin of each value
        #[arg(long)]
        origin: bool,
        /// Output format
        #[arg(long, value_enum, default_value_t = DataFormat::Text)]
        format: DataFormat,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the known models, or those with these words in name or provider
    List {
        /// Words that the name or the provider contains [default: all models]
        #[arg(value_name = "WORD")]
        words: Vec<String>,
        #[command(flatten)]
        models: Models,
        /// Output format
        #[arg(long, value_enum, default_value_t = DataFormat::Text)]
        format: DataFormat,
    },
    /// Show the entry of one model, and its source
    Show {
        /// Name of the model, or another name of it
        name: String,
        #[command(flatten)]
        models: Models,
        /// Output format
        #[arg(long, value_enum, default_value_t = DataFormat::Text)]
        format: DataFormat,
    },
    /// Convert a public catalogue (LiteLLM's price file, or models.dev's api.json) into a file for --models
    Import {
        /// The catalogue, or - for standard input
        file: PathBuf,
        /// Date of the catalogue's download, for the `date` of the entries
        #[arg(long, default_value = "unknown")]
        date: String,
        /// Write to this file instead of standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Parses a screen size in columns and lines, as in 120x40.
pub(crate) fn picture_size(text: &str) -> Result<(u16, u16), String> {
    let sides =
        text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    // The limit bounds the memory of the drawing.
    let sides = sides.filter(|(width, height)| (1..=1_000).contains(width) && (1..=1_000).contains(height));
    sides.ok_or_else(|| "expected columns and lines up to 1000, as in 120x40".into())
}
