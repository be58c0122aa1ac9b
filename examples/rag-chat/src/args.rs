//! The command line.

use clap::Parser;
use std::path::PathBuf;

/// A chat over a folder of documents, in the terminal.
///
/// Indexes the Markdown and text files of a folder and answers questions from them. The conversation is saved
/// and continues in the next run. The screen lists the included and excluded items of each prompt, with
/// reasons.
#[derive(Debug, Clone, Parser)]
#[command(version, after_long_help = ENVIRONMENT)]
pub struct Args {
    /// The folder of documents: .md, .markdown, .mdx, .txt, .text, .rst, .adoc, .org
    pub folder: PathBuf,
    /// Answer this question without a screen, and exit
    #[arg(long, value_name = "QUESTION")]
    pub ask: Option<String>,
    /// The model: `offline`, `offline-4k`, a name such as gpt-5.4-mini, or with its provider, such as
    /// ollama/llama3.2
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// A smaller window than the model's, in tokens
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
    pub context: Option<u64>,
    /// Maximum number of documents retrieved for a question
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u64).range(0..=1_000))]
    pub documents: u64,
    /// The session to continue or start; "chat" by default, and a new one with --ask
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Leave out earlier turns that the question needs after they left the window
    #[arg(long)]
    pub no_recall: bool,
    /// Options of context-window that replace the defaults (docs/reference/options.md)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder of the index and the conversations; by default a folder in the user's data
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
}

const ENVIRONMENT: &str = "\
Without --model, the first of these providers whose variable is set answers; otherwise the offline answerer, which quotes \
the best passages and sends nothing.

  RAG_CHAT_URL       any server with the API of OpenAI, such as http://localhost:8000/v1
                     (RAG_CHAT_MODEL: its model; RAG_CHAT_KEY: its key, if it needs one)
  OPENAI_API_KEY     OpenAI, gpt-5.4-mini; OPENAI_BASE_URL another address
  ANTHROPIC_API_KEY  Anthropic, claude-haiku-5-5; ANTHROPIC_BASE_URL another address
  GEMINI_API_KEY     Google, gemini-3.5-flash; GEMINI_BASE_URL another address

RAG_CHAT_MODEL overrides the model of each; RAG_CHAT_EFFORT sets the reasoning effort (low, medium, high). You select Ollama \
by name: --model ollama/llama3.2; OLLAMA_HOST is its address, by default http://localhost:11434. A key is sent only to the \
address of its own provider.

Exits with 0; with 1 if --ask has no answer or something could not be saved; with 2 if the chat cannot start.";
