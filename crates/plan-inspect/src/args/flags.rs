//! Flags that several subcommands share, and their values.

#![expect(clippy::doc_markdown, reason = "comments here are help texts")]

use anyhow::Result;
use clap::{
    Args, ColorChoice, ValueEnum, ValueHint,
    builder::{
        NonEmptyStringValueParser, OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser,
    },
};
use context_window::{
    Config, Registry, RequestLimits,
    config::{ConfigLayers, LoadedConfig},
    usage::{CacheLife, CostTerms},
};
use context_window_formats::{FieldMap, FileFormat, ReadOptions};
use std::{
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// A session with the terms for planning its next prompt.
#[derive(Debug, Clone, Args)]
pub(crate) struct Request {
    /// Session file, logged request body, or file of another tool: .json, .jsonl, either of them with .gz, or
    /// - for standard input; or a store: sqlite:FILE, postgres://...
    pub(crate) session: PathBuf,
    /// Id of the session in a file or a store of several, or its line number if it has no id
    #[arg(long)]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Anchor of the last prompt, in place of the session's `previous`; --save-anchor can overwrite the same
    /// file
    #[arg(long, value_name = "FILE")]
    pub(crate) previous: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) documents: Documents,
    #[command(flatten)]
    pub(crate) terms: Terms,
}

impl Request {
    /// Returns the files that the request reads.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        let documents = self.documents.rag.iter().map(|list| &list.path);
        let own = [&self.session].into_iter().chain(&self.previous).chain(documents);
        Ok(own.cloned().chain(self.terms.files()?).collect())
    }
}

/// The format of a session file, and the treatment of unknown values.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Session file")]
pub(crate) struct Reading {
    /// The format of the file, if its shape is ambiguous
    #[arg(long, value_name = "NAME", value_parser = format_name())]
    from: Option<FileFormat>,
    /// Leave out unknown values with a note, in place of an error
    #[arg(long)]
    lenient: bool,
}

impl Reading {
    /// Converts the flags to options of the reader.
    pub(crate) fn options(&self) -> ReadOptions {
        let options = self.from.map_or_else(ReadOptions::new, |format| ReadOptions::new().read_as(format));
        if self.lenient { options.lenient() } else { options }
    }
}

/// Builds the parser of format names. Help lists every format with its title.
fn format_name() -> impl TypedValueParser<Value = FileFormat> {
    let names = FileFormat::all().map(|format| PossibleValue::new(format.name()).help(format.title()));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<FileFormat>())
}

/// The terms for planning a prompt: options, target, models and limits.
#[derive(Debug, Clone, Args)]
pub(crate) struct Terms {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) models: Models,
    #[command(flatten)]
    pub(crate) limits: Limits,
}

impl Terms {
    /// Returns the files that the terms read: options, models, tokenizers, and the files next to tokenizers.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        const TOKENIZER_FILES: [&str; 3] = ["tokenizer.json", "chat_template.jinja", "tokenizer_config.json"];
        let of_options = &self.options.config()?.config.default_model.tokenizer;
        let named = self.target.tokenizer.iter().chain([of_options]).chain(self.models.tokenizers()?);
        let tokenizers = named.flat_map(|name| {
            let path = PathBuf::from(name);
            let beside = TOKENIZER_FILES.map(|name| path.with_file_name(name));
            // Built-in tokenizers have a name but no files.
            let beside = beside.into_iter().filter(|_| path.is_file()).collect::<Vec<_>>();
            [path].into_iter().chain(beside)
        });
        // All of these are inputs, so no result may overwrite them.
        let named = self.options.file().into_iter().chain(self.models.models.clone());
        Ok(named.chain(tokenizers).collect())
    }
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Documents")]
pub(crate) struct Documents {
    /// Retrieval results (JSON), in place of the session's documents; repeat it for several ranked lists,
    /// which are named by their files if they have no NAME
    #[arg(long, value_name = "[NAME=]FILE", value_parser = rag_file(), value_hint = ValueHint::FilePath)]
    pub(crate) rag: Vec<RagFile>,
    /// Search the earlier messages for the live question, and bring them back as the list `recall` (rule S15)
    #[arg(long)]
    pub(crate) recall: bool,
    #[command(flatten)]
    pub(crate) hits: Hits,
}

/// The form of retrieval results.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Documents")]
pub(crate) struct Hits {
    /// Format of the retrieval results
    #[arg(long, value_enum, default_value_t = Retriever::List, value_name = "FORMAT", requires = "rag")]
    pub(crate) rag_from: Retriever,
    /// Treat scores as distances (smaller is better), and invert them
    #[arg(long, requires = "rag")]
    pub(crate) rag_distances: bool,
}

/// A file with the results of one retriever, and the name of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RagFile {
    pub(crate) name: Option<String>,
    pub(crate) path: PathBuf,
}

impl RagFile {
    /// Splits NAME=FILE. The path of an existing file, or a text with a folder before the equals sign, is a
    /// path without a name.
    fn from_argument(argument: OsString) -> Self {
        let named = argument.to_str().and_then(|text| text.split_once('='));
        let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '\\']);
        match named.filter(|(name, _)| is_name(name) && !Path::new(&argument).exists()) {
            Some((name, path)) => Self { name: Some(name.to_owned()), path: path.into() },
            None => Self { name: None, path: argument.into() },
        }
    }

    /// Returns the name of the list: the given one, or the file's name up to the first full stop.
    pub(crate) fn list_name(&self) -> String {
        let file = || self.path.file_name().unwrap_or_default().to_string_lossy();
        let stem = || file().split('.').find(|part| !part.is_empty()).unwrap_or_default().to_owned();
        self.name.clone().unwrap_or_else(stem)
    }
}

/// Builds the parser of a file with a list of documents.
pub(super) fn rag_file() -> impl TypedValueParser<Value = RagFile> {
    OsStringValueParser::new().map(RagFile::from_argument)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Retriever {
    /// A list of objects with id, text and score
    List,
    /// Qdrant's points: id, score, payload.text or payload.content
    Qdrant,
    /// LanceDB's rows: id, text, _relevance_score, _score or _distance
    Lancedb,
    /// Responses of tantivy-cli: doc.text or doc.body, score
    Tantivy,
    /// LangChain's documents, with scores inside or next to them
    Langchain,
    /// LlamaIndex's nodes with scores
    Llamaindex,
    /// Rows of pgvector: content or text, score, similarity or distance
    Pgvector,
    /// Elasticsearch and OpenSearch: _id, _score, _source.text or _source.content
    #[value(alias = "opensearch")]
    Elasticsearch,
    /// Weaviate: text or content, _additional
    Weaviate,
    /// Milvus: text or content, distance
    Milvus,
    /// Chroma: ids, documents, distances
    Chroma,
    /// Pinecone: metadata.text or fields.text, score
    Pinecone,
}

impl Retriever {
    /// Returns the field names of this retriever's results.
    pub(crate) fn fields(self) -> FieldMap {
        match self {
            Self::List => FieldMap::new(),
            Self::Qdrant => FieldMap::qdrant(),
            Self::Lancedb => FieldMap::lancedb(),
            Self::Tantivy => FieldMap::tantivy(),
            Self::Langchain => FieldMap::langchain(),
            Self::Llamaindex => FieldMap::llamaindex(),
            Self::Pgvector => FieldMap::pgvector(),
            Self::Elasticsearch => FieldMap::elasticsearch(),
            Self::Weaviate => FieldMap::weaviate(),
            Self::Milvus => FieldMap::milvus(),
            Self::Chroma => FieldMap::chroma(),
            Self::Pinecone => FieldMap::pinecone(),
        }
    }
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Planner options")]
pub(crate) struct Options {
    /// Options in TOML; see config/default.toml [default: the file named by CONTEXT_WINDOW_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Start from a preset instead of the defaults
    #[arg(long, value_parser = Config::presets().collect::<Vec<_>>())]
    preset: Option<String>,
    /// Set one option; overrides everything else: --set rag.max_items=5
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = pair)]
    settings: Vec<(String, String)>,
    /// The loaded options. They are cached, because a pipe can be read only once.
    #[arg(skip)]
    loaded: OnceLock<Box<LoadedConfig>>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Models {
    /// Your own models, which override the built-in ones; see `plan-inspect models import`
    #[arg(long, value_name = "FILE")]
    models: Option<PathBuf>,
    /// The registry, and the tokenizers of the user's own models. Cached, because a pipe can be read only
    /// once.
    #[arg(skip)]
    known: OnceLock<Box<(Registry, Vec<String>)>>,
}

impl Options {
    /// Returns the options file from the flag, or else from the environment variable.
    fn file(&self) -> Option<PathBuf> {
        self.config.clone().or_else(|| env::var_os("CONTEXT_WINDOW_CONFIG").map(PathBuf::from))
    }

    /// Returns the options. Later sources override earlier ones: defaults, preset, file, environment, flags.
    pub(crate) fn config(&self) -> Result<&LoadedConfig> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = self.layered(ConfigLayers::new())?;
        Ok(self.loaded.get_or_init(|| Box::new(loaded)))
    }

    /// Returns the options with those of a session file added. The options file, the environment and the
    /// flags override them.
    pub(crate) fn config_over(&self, session: &str) -> Result<LoadedConfig> {
        self.layered(ConfigLayers::new().with_text("options of the session", session))
    }

    fn layered(&self, mut layers: ConfigLayers) -> Result<LoadedConfig> {
        if let Some(path) = self.file() {
            layers = layers.with_file(&path)?;
        }
        let text =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        // Layers added later override earlier ones.
        layers = layers.with_environment(env::vars_os().filter_map(text));
        layers = layers.with_pairs("flag --preset", self.preset.iter().map(|name| ("preset", name)));
        layers = layers.with_pairs("flag --set", self.settings.iter().map(|(key, value)| (key, value)));
        Ok(layers.load()?)
    }
}

impl Models {
    pub(crate) fn registry(&self) -> Result<&Registry> {
        Ok(&self.known()?.0)
    }

    /// Returns the file of the user's own models, if any.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        self.models.clone()
    }

    /// Returns the tokenizers of the user's own models.
    fn tokenizers(&self) -> Result<&[String]> {
        Ok(&self.known()?.1)
    }

    /// Loads the registry and the tokenizers of the user's own models, once.
    fn known(&self) -> Result<&(Registry, Vec<String>)> {
        if let Some(known) = self.known.get() {
            return Ok(known);
        }
        let built_in = Registry::built_in()?;
        let known = match &self.models {
            Some(path) => {
                let own = Registry::from_file(path)?;
                let tokenizers = own.entries().iter().filter_map(|entry| entry.tokenizer.clone()).collect();
                // The user's own entries are looked up before the built-in ones.
                (own.with_fallback(built_in), tokenizers)
            }
            None => (built_in.clone(), Vec::new()),
        };
        // `OnceLock` has no stable fallible initialiser, so the value is set after it is loaded.
        Ok(self.known.get_or_init(|| Box::new(known)))
    }
}

/// Parses a setting of the form KEY=VALUE.
fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').ok_or("expected KEY=VALUE, as in rag.max_items=5")?;
    Ok((pair.0.trim().into(), pair.1.trim().into()))
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Target")]
pub(crate) struct Target {
    /// Plan for this model, regardless of the session's model
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,
    /// Wire format for counting and output, in place of the model's own
    #[arg(long, alias = "provider", value_enum)]
    pub(crate) wire_format: Option<FormatName>,
    /// Count with this tokenizer: o200k_base, cl100k_base, chars/4, chars/3.5, bytes, or a tokenizer.json or
    /// its folder
    #[arg(long, value_name = "NAME|PATH", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) tokenizer: Option<String>,
    /// Open the tokenizer file that the session names
    #[arg(long)]
    pub(crate) allow_tokenizer_file: bool,
    /// Declare the tool `recall`, without which conversation.tool_results=offload changes nothing (rule S7)
    #[arg(long)]
    pub(crate) recall_tool: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum FormatName {
    /// OpenAI Chat Completions
    Openai,
    /// OpenAI Responses
    OpenaiResponses,
    /// Anthropic Messages
    Anthropic,
    /// Gemini generateContent
    Gemini,
    /// The model's own chat template, from the folder of --tokenizer
    ChatTemplate,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits, in tokens")]
pub(crate) struct Limits {
    /// Prompt budget, in place of context length - reply reserve - safety margin
    #[arg(long, value_name = "N", value_parser = tokens, allow_hyphen_values = true)]
    budget: Option<u64>,
    /// Context length: prompt and reply together
    #[arg(long, value_name = "N", value_parser = tokens, allow_hyphen_values = true)]
    context_len: Option<u64>,
    /// Reply reserve: kept free for the reply
    #[arg(long, value_name = "N", value_parser = tokens, allow_hyphen_values = true)]
    max_completion: Option<u64>,
    /// Safety margin: kept free on top of the reply reserve
    #[arg(long, value_name = "N", value_parser = tokens, allow_hyphen_values = true)]
    safety_buffer: Option<u64>,
}

/// Parses a number of tokens, as people and reports write it: 128000, 128,000, 128_000 or 128k.
pub(super) fn tokens(text: &str) -> Result<u64, String> {
    let plain: String = text.chars().filter(|c| !matches!(c, ',' | '_')).collect();
    let (digits, thousand) = match plain.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => (plain.as_str(), 1),
    };
    let number: Result<u64, _> = digits.parse();
    // Overflow is an invalid number, not a wrapped one.
    let number = number.ok().and_then(|number| number.checked_mul(thousand));
    number.ok_or_else(|| "expected a number of tokens, as in 8000, 8,000 or 8k".into())
}

/// Parses a number greater than 0.
pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    let number: Option<usize> = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a number of 1 or more".into())
}

/// Parses a width of at least 40 columns.
fn columns(text: &str) -> Result<usize, String> {
    let columns: Option<usize> = text.parse().ok().filter(|columns| *columns >= 40);
    columns.ok_or_else(|| "expected 40 columns or more".into())
}

impl Limits {
    /// Returns the session's limits, overridden by these flags.
    pub(crate) fn over(&self, mut session: RequestLimits) -> RequestLimits {
        // The input limit belongs to the model's own context length.
        if self.context_len.is_some() {
            session.max_input = None;
        }
        session.model_context_len = self.context_len.or(session.model_context_len);
        session.max_completion_tokens = self.max_completion.or(session.max_completion_tokens);
        session.safety_buffer = self.safety_buffer.or(session.safety_buffer);
        let others = [self.context_len, self.max_completion, self.safety_buffer];
        // A budget of the session would hide the effect of the other flags, which determine the budget.
        if others.iter().any(Option::is_some) {
            session.prompt_budget = None;
        }
        session.prompt_budget = self.budget.or(session.prompt_budget);
        session
    }
}

/// The appearance of output. Every command has these flags.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Screen {
    /// Output width in columns, 40 or more (a plan's report takes 60) [default: the terminal's, or 80]
    #[arg(long, value_name = "COLUMNS", value_parser = columns, global = true, display_order = 900)]
    width: Option<usize>,
    /// Colours; `auto` checks the terminal, NO_COLOR and CLICOLOR_FORCE
    #[arg(long, default_value = "auto", value_name = "WHEN", global = true, display_order = 901)]
    color: ColorChoice,
}

impl Screen {
    /// Returns the width of a page in columns.
    pub(crate) fn width(&self) -> usize {
        self.limit().unwrap_or(80)
    }

    /// Returns the maximum line length in columns. Returns `None` without the flag and without a terminal.
    pub(crate) fn limit(&self) -> Option<usize> {
        let terminal =
            || terminal_size::terminal_size_of(io::stdout()).map(|(columns, _)| usize::from(columns.0));
        // A pipe has no width, so the length of its lines is not limited.
        self.width.or_else(terminal)
    }

    /// Checks if a file gets colours. This needs an explicit request, regardless of the terminal.
    pub(crate) fn colour_in_file(&self) -> bool {
        self.color == ColorChoice::Always
    }

    /// Checks if standard output gets colours.
    pub(crate) fn colour(&self) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never,
        }
    }
}

/// The terms of payment for prompts.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Costs")]
pub(crate) struct Costs {
    /// Date of the prices, as in 2026-12-01 [default: prices without a date]
    #[arg(long, value_name = "DAY", value_parser = day)]
    day: Option<String>,
    /// Lifetime of the cache, for Anthropic: writing for an hour costs more
    #[arg(long, value_enum, default_value_t = Life::FiveMinutes, value_name = "TIME")]
    cache_life: Life,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Life {
    /// Five minutes
    #[value(name = "5m")]
    FiveMinutes,
    /// An hour
    #[value(name = "1h")]
    Hour,
}

impl Costs {
    /// Converts the flags to terms of payment.
    pub(crate) fn terms(&self) -> CostTerms<'_> {
        let life = if self.cache_life == Life::Hour { CacheLife::OneHour } else { CacheLife::FiveMinutes };
        CostTerms::default().with_day(self.day.as_deref()).with_life(life)
    }
}

/// Parses a date of the form YYYY-MM-DD. Only the form is checked.
fn day(text: &str) -> Result<String, String> {
    if CostTerms::is_day(text) {
        Ok(text.into())
    } else {
        Err("expected year, month and day, as in 2026-12-01".into())
    }
}

/// The precision of token counts of excluded items.
#[derive(Debug, Clone, Args)]
pub(crate) struct Counts {
    /// Precision of the token counts of excluded items
    #[arg(long, value_enum, default_value_t = CertaintyAsked::Auto, value_name = "PRECISION", help_heading = "Output")]
    certainty: CertaintyAsked,
}

impl Counts {
    /// Checks if texts of this many bytes are counted in full, for output to people.
    pub(crate) fn in_full(&self, bytes: usize) -> bool {
        match self.certainty {
            CertaintyAsked::Auto => Self::is_unnoticed(bytes),
            CertaintyAsked::Bounds => false,
            CertaintyAsked::Exact => true,
        }
    }

    /// Returns true if counting texts of this many bytes causes no noticeable delay.
    pub(crate) fn is_unnoticed(bytes: usize) -> bool {
        /// A tenth of a second at 20 million bytes per second, the slowest tokenizer of the benchmarks.
        const UNNOTICED: usize = 2_000_000;
        bytes <= UNNOTICED
    }

    /// Checks if full counts were explicitly requested.
    pub(crate) fn is_exact(&self) -> bool {
        self.certainty == CertaintyAsked::Exact
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CertaintyAsked {
    /// Counted in full if that causes no noticeable delay: up to 2,000,000 bytes of texts, and not in JSON;
    /// otherwise bounds
    Auto,
    /// Bounds that need no counting
    Bounds,
    /// Counted in full
    Exact,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A report for people
    Text,
    /// The plan as one JSON object
    Json,
    /// The request: the provider's request body (messages and tools), or the text of the chat template
    Messages,
    /// The report as Markdown, for a comment on a pull request
    Markdown,
    /// One self-contained web page: the plan, its items with their texts, and the budgets at which each is
    /// included
    Html,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// For people
    Text,
    /// One JSON object
    Json,
    /// A table as Markdown, for a comment on a pull request
    Markdown,
    /// One self-contained web page
    Html,
}

/// A condition that makes `diff` fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// An item of the first prompt is dropped from the second for lack of budget
    Dropped,
    /// The second plan is over its budget
    Overflow,
    /// The second prompt does not begin with the whole first one: the cache breaks
    Cache,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataFormat {
    /// For people
    Text,
    /// One JSON object
    Json,
}
