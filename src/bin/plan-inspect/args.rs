//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use context_window::{RequestLimits, TokenCounter};
use std::{ffi::OsString, path::PathBuf};

/// See what goes into a prompt, what does not, and why.
///
/// `plan-inspect SESSION` is short for `plan-inspect plan SESSION`.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Plan the session's next prompt and show the plan (what a bare SESSION does)
    Plan(Plan),
}

impl Cli {
    /// Reads the arguments of the process; `plan` is put in where no subcommand stands.
    pub(crate) fn from_process() -> Self {
        let mut arguments: Vec<OsString> = std::env::args_os().collect();
        let bare = arguments.get(1).is_some_and(|first| {
            let name = first.to_string_lossy();
            let of_the_tool = ["help", "-h", "--help", "-V", "--version"].contains(&&*name);
            !of_the_tool && !Command::has_subcommand(&name)
        });
        if bare {
            arguments.insert(1, "plan".into());
        }
        Self::parse_from(arguments)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// Session file: .json, .jsonl, either of them with .gz, or - for standard input
    pub(crate) session: PathBuf,
    /// The session to take from a file of several: its id, or its line number if it has none
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Options in TOML; see config/default.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) limits: Limits,
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
    /// Columns of the text report
    #[arg(long, value_name = "COLUMNS", default_value_t = 80, help_heading = "Output")]
    pub(crate) width: usize,
    /// Exit with 1 when the plan is over its budget
    #[arg(long, help_heading = "Output")]
    pub(crate) strict: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Target")]
pub(crate) struct Target {
    /// Plan for this model, whatever the session names
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// The wire form the plan is priced in and printed as
    #[arg(long, value_enum, default_value_t = Provider::Openai)]
    pub(crate) provider: Provider,
    /// Count with this tokenizer
    #[arg(long, value_name = "NAME", value_parser = TokenCounter::NAMES.to_vec())]
    pub(crate) tokenizer: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Provider {
    #[expect(clippy::doc_markdown, reason = "this is the help text")]
    /// OpenAI Chat Completions
    Openai,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits, in tokens")]
pub(crate) struct Limits {
    /// The prompt budget itself, in place of context length - completion - safety buffer
    #[arg(long, value_name = "N")]
    budget: Option<u64>,
    /// Prompt and completion together
    #[arg(long, value_name = "N")]
    context_len: Option<u64>,
    /// Kept free for the reply
    #[arg(long, value_name = "N")]
    max_completion: Option<u64>,
    /// Kept free for what cannot be foreseen
    #[arg(long, value_name = "N")]
    safety_buffer: Option<u64>,
}

impl Limits {
    /// These flags over what the session brings.
    pub(crate) fn over(&self, mut session: RequestLimits) -> RequestLimits {
        if self.context_len.is_some() {
            session.max_input = None;
        }
        session.context_len = self.context_len.or(session.context_len);
        session.max_completion = self.max_completion.or(session.max_completion);
        session.safety_buffer = self.safety_buffer.or(session.safety_buffer);
        session.prompt_budget = self.budget.or(session.prompt_budget);
        session
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A report for people
    Text,
    /// The plan as one JSON object
    Json,
    /// The provider's request body: messages and tools
    Messages,
}
