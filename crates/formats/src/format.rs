//! The names of the file formats.

use std::{fmt, str::FromStr};

/// A file format. Set it with [`ReadOptions::read_as`](crate::ReadOptions::read_as) if the shape of the file
/// does not determine it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FileFormat {
    /// A session file of this library, a request body of `OpenAI`, Anthropic, Gemini or a compatible server,
    /// or `ShareGPT`.
    Session,
    /// The AI SDK of Vercel: `UIMessage`, `ModelMessage`, and the messages of version 4.
    AiSdk,
    /// A request of Amazon Bedrock's Converse.
    Bedrock,
    /// An export of `ChatGPT`.
    ChatGpt,
    /// A transcript of Claude Code.
    ClaudeCode,
    /// An export of Claude.ai.
    ClaudeAi,
    /// Cline's `api_conversation_history.json`.
    Cline,
    /// A rollout of Codex CLI.
    Codex,
    /// A request of Cohere's Chat.
    Cohere,
    /// Messages of `Microsoft.Extensions.AI`.
    DotnetAi,
    /// Gemini CLI: a checkpoint or a session.
    GeminiCli,
    /// A session of goose.
    Goose,
    /// Chat messages of Haystack.
    Haystack,
    /// Messages of `LangChain`, in Python or JavaScript.
    LangChain,
    /// Chat messages of `LlamaIndex`.
    LlamaIndex,
    /// A request of Mistral.
    Mistral,
    /// A request of Ollama.
    Ollama,
    /// Items of the `OpenAI` Agents SDK.
    OpenAiAgents,
    /// A session of opencode.
    Opencode,
    /// Messages of the conventions for generative AI of `OpenTelemetry`.
    OpenTelemetry,
    /// Messages of Pydantic AI.
    PydanticAi,
    /// Roo Code's `api_conversation_history.json`.
    Roo,
    /// A chat history of Semantic Kernel.
    SemanticKernel,
}

/// All formats, each with its name and its title for people, sorted by name.
const ALL: [(FileFormat, &str, &str); 23] = [
    (FileFormat::AiSdk, "ai-sdk", "the AI SDK"),
    (FileFormat::Bedrock, "bedrock", "Bedrock Converse"),
    (FileFormat::ChatGpt, "chatgpt", "ChatGPT"),
    (FileFormat::ClaudeAi, "claude-ai", "Claude.ai"),
    (FileFormat::ClaudeCode, "claude-code", "Claude Code"),
    (FileFormat::Cline, "cline", "Cline"),
    (FileFormat::Codex, "codex", "Codex CLI"),
    (FileFormat::Cohere, "cohere", "Cohere"),
    (FileFormat::DotnetAi, "dotnet-ai", "Microsoft.Extensions.AI"),
    (FileFormat::GeminiCli, "gemini-cli", "Gemini CLI"),
    (FileFormat::Goose, "goose", "goose"),
    (FileFormat::Haystack, "haystack", "Haystack"),
    (FileFormat::LangChain, "langchain", "LangChain"),
    (FileFormat::LlamaIndex, "llamaindex", "LlamaIndex"),
    (FileFormat::Mistral, "mistral", "Mistral"),
    (FileFormat::Ollama, "ollama", "Ollama"),
    (FileFormat::OpenAiAgents, "openai-agents", "the OpenAI Agents SDK"),
    (FileFormat::Opencode, "opencode", "opencode"),
    (FileFormat::OpenTelemetry, "opentelemetry", "OpenTelemetry GenAI"),
    (FileFormat::PydanticAi, "pydantic-ai", "Pydantic AI"),
    (FileFormat::Roo, "roo", "Roo Code"),
    (FileFormat::SemanticKernel, "semantic-kernel", "Semantic Kernel"),
    (FileFormat::Session, "session", "a session file or request body"),
];

impl FileFormat {
    /// Iterates over all formats in the order of their names.
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.iter().map(|(format, _, _)| *format)
    }

    /// Returns the name that [`FromStr`] reads, such as `ai-sdk`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the title of the format for people, such as `the AI SDK`.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> &'static (Self, &'static str, &'static str) {
        // Every variant has a row, which a test checks, so the fallback is never used.
        ALL.iter().find(|(format, _, _)| *format == self).unwrap_or(&ALL[ALL.len() - 1])
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FileFormat {
    type Err = crate::Error;

    /// Parses the name of a format.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Input`](crate::ErrorKind::Input) for any other name. The error lists all names.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = ALL.iter().find(|(_, own, _)| *own == name).map(|(format, _, _)| *format);
        found.ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|(_, name, _)| *name).collect();
            let near = context_window::text::plain::nearest(name, names.iter().copied());
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let name = context_window::text::plain::short(name);
            crate::Error::input(
                "format",
                format!("`{name}` is unknown; expected one of {}{near}", names.join(", ")),
            )
        })
    }
}

/// Options for reading a file.
///
/// ```
/// use context_window_formats::{FileFormat, ReadOptions, SessionFile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let json = br#"[{"role": "user", "content": [{"text": "Is the Heron free?"}]}]"#;
/// let options = ReadOptions::new().read_as(FileFormat::Bedrock);
/// let file = SessionFile::with_options("talk.json", json.to_vec(), options)?;
/// assert_eq!(file.session(None)?.log.messages()[0].text(), "Is the Heron free?");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadOptions {
    pub(crate) format: Option<FileFormat>,
    pub(crate) is_lenient: bool,
}

impl ReadOptions {
    /// Returns the defaults: the format is detected from the file's shape, and unknown content is an error.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the format, so that the shape of the file is not examined.
    #[must_use]
    pub fn read_as(mut self, format: FileFormat) -> Self {
        self.format = Some(format);
        self
    }

    /// Sets the lenient mode: unknown content is omitted with a note in
    /// [`Session::ignored`](crate::Session::ignored), in place of an error.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.is_lenient = true;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_format_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = FileFormat::all().map(FileFormat::name).collect();
        assert_eq!(names.len(), ALL.len());
        for format in FileFormat::all() {
            assert_eq!(format.name().parse::<FileFormat>().unwrap(), format);
            assert!(!format.title().is_empty());
        }
        let sorted: Vec<&str> = FileFormat::all().map(FileFormat::name).collect();
        assert_eq!(sorted, names.into_iter().collect::<Vec<_>>());
        let error = "ai_sdk".parse::<FileFormat>().unwrap_err().to_string();
        assert!(error.ends_with("did you mean `ai-sdk`?"), "{error}");
    }
}
