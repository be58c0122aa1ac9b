//! Summaries by a real model, over the crate `genai`: it sends a job and returns the summary (rules C3, C5,
//! C8).

use crate::error::Repr;
use context_window::{
    ContextWindowManager, Conversation,
    compaction::{CompactionRequest, summary_text},
    config::CompactionStrategy,
    conversation::{Compaction, CompactionKind},
};
use genai::{Client, ServiceTarget};
use provider::Provider;
use std::{fmt, future::Future, time::Duration};

mod error;
mod failure;
mod answer;
mod provider;
mod wire;

pub use error::{Error, ErrorKind};
use failure::Failure;

/// The default timeout of one request.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A model that makes summaries: takes a [`CompactionRequest`] to its provider and brings the text back.
///
/// ```no_run
/// use context_window::{ContextWindowManager, Conversation, Message, PlanRequest};
/// use context_window_genai::Summariser;
/// use std::time::Duration;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let manager = ContextWindowManager::for_model("gpt-4o")?;
/// let mut log = Conversation::from([Message::user("Hello")]);
/// let summariser = Summariser::openai("gpt-4o").with_timeout(Duration::from_secs(90));
///
/// if let Some(job) = manager.compactor().due(&PlanRequest::like_last(&log))? {
///     let record = summariser.compact(&manager, &mut log, &job).await?;
///     println!("{} messages archived", record.messages_archived);
/// }
/// # Ok(())
/// # }
/// ```
///
/// A job is made for the model of its manager. For a summary by another one, convert it first, so that it is
/// in that model's wire format and fits its window:
///
/// ```no_run
/// # use context_window::{*, compaction::CompactionRequest};
/// # use context_window_genai::Summariser;
/// # async fn run(log: &mut Conversation, job: CompactionRequest) -> Result<(), Box<dyn std::error::Error>> {
/// # let manager = ContextWindowManager::for_model("gpt-4o")?;
/// let small = ContextWindowManager::for_model("claude-haiku-4-5")?;
/// let job = job.for_summariser(&small)?;
/// Summariser::anthropic("claude-haiku-4-5").compact(&manager, log, &job).await?;
/// # Ok(())
/// # }
/// ```
///
/// No redirect is followed: a key goes to the URL that is asked, and nowhere else.
///
/// Keys come from the environment (`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GEMINI_API_KEY`) unless
/// [`Summariser::with_api_key`] gives one. Every request is awaited inside a Tokio runtime with I/O and time
/// enabled.
///
/// The request has system texts, messages, calls with their results, and the tools (with an instruction not
/// to use them), the instruction last, and [`CompactionRequest::max_tokens`] as the longest answer. Images
/// and parts that are no text are replaced by a few words; reasoning and tools that a provider runs itself
/// are left out. A reasoning model spends that length on its reasoning too: raise
/// `compaction.summary.max_tokens` for one. An answer that was cut at that length is taken as it is.
#[derive(Clone)]
pub struct Summariser {
    provider: Provider,
    model: String,
    url: Option<String>,
    key: Option<String>,
    timeout: Duration,
}

impl Summariser {
    /// Creates a summariser with a model of `OpenAI`, by Chat Completions.
    #[must_use]
    pub fn openai(model: impl Into<String>) -> Self {
        Self::of(Provider::OpenAi, model)
    }

    /// Creates a summariser with a model of Anthropic, by Messages.
    #[must_use]
    pub fn anthropic(model: impl Into<String>) -> Self {
        Self::of(Provider::Anthropic, model)
    }

    /// Creates a summariser with a model of Google, by the Gemini API.
    #[must_use]
    pub fn gemini(model: impl Into<String>) -> Self {
        Self::of(Provider::Gemini, model)
    }

    /// Creates a summariser with a model of an Ollama server, `http://localhost:11434` unless
    /// [`Summariser::with_url`] names another. It takes no key. Ollama cuts a prompt that is longer than its
    /// own context length (`OLLAMA_CONTEXT_LENGTH`) without an error: set that length to at least the window
    /// of the job.
    #[must_use]
    pub fn ollama(model: impl Into<String>) -> Self {
        Self::of(Provider::Ollama, model)
    }

    /// Creates a summariser for any URL with `OpenAI`'s Chat Completions (vLLM, llama.cpp, a gateway). The
    /// URL is the part before `chat/completions`, such as `http://localhost:8000/v1`. No key from the
    /// environment is ever sent there.
    #[must_use]
    pub fn compatible(url: impl Into<String>, model: impl Into<String>) -> Self {
        Self::of(Provider::Compatible, model).with_url(url)
    }

    fn of(provider: Provider, model: impl Into<String>) -> Self {
        Self { provider, model: model.into(), url: None, key: None, timeout: TIMEOUT }
    }

    /// Sets the base URL, for a proxy or a gateway: the part before `chat/completions` (`OpenAI`), `messages`
    /// (Anthropic), `models/` (Gemini) or `api/chat` (Ollama). The API key, also one from the environment, is
    /// sent to this URL.
    #[must_use]
    pub fn with_url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Sets the API key. It is shown in no error and no debug output.
    #[must_use]
    pub fn with_api_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the time limit of one request, from connecting to the last byte of the answer (default: 60
    /// seconds). A shorter request that is sent in its place has the whole time again.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Asks the model for the summary of a job, and returns its text without the reasoning around it. If the
    /// provider refuses the prompt as too long, [`CompactionRequest::smaller`] is sent instead, until that
    /// returns `None`: at most six requests. Nothing else is sent twice.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Model` for a request without room for the earlier summaries (rule C8), a time-out, an HTTP
    /// error, a connection that fails or is cut, an error inside of an answer, an answer that was held back,
    /// is empty, is a tool call or has more than 4,194,304 bytes, a missing key, and outside of a Tokio
    /// runtime. The message has the status and the beginning of the provider's answer, never a key, and
    /// nothing of the prompt. As [`CompactionRequest::smaller`] otherwise.
    pub async fn summarise(&self, job: &CompactionRequest) -> Result<String, Error> {
        if job.messages().is_empty() {
            let what = "the request does not fit its context window";
            return Err(self.error(&Failure::new(what), "", job));
        }
        // A provider's own summary is no text, and this client sends texts only.
        let in_text = job.with_summaries_as_text()?;
        let job = &in_text;
        let (client, target, key) =
            self.connection().await.map_err(|failure| self.error(&failure, "", job))?;
        let mut smaller: Option<CompactionRequest> = None;
        loop {
            let sent = smaller.as_ref().unwrap_or(job);
            let failure = match self.attempt(&client, target.clone(), sent).await {
                Ok(text) => return Ok(summary_text(&text)?.to_owned()),
                Err(failure) => failure,
            };
            let next = if failure.is_overflow() { sent.smaller()? } else { None };
            let Some(next) = next else { return Err(self.error(&failure, &key, job)) };
            smaller = Some(next);
        }
    }

    /// Compacts by the strategy of the job's options: with `summary` it asks the model and applies its
    /// summary ([`Compactor::apply_summary`]), with any other one it asks no model
    /// ([`Compactor::compact_without_model`]). If the model fails, or its answer is refused as a summary, it
    /// compacts without one ([`Compactor::compact_without_model`]); the record's kind is that of the method
    /// used, and a warning of `tracing` has the reason.
    ///
    /// The log changes only when the answer is there: if you drop the future before, it stays as it was. For
    /// a log that has to grow meanwhile, call [`Summariser::summarise`] and apply its text afterwards.
    ///
    /// [`Compactor::apply_summary`]: context_window::compaction::Compactor::apply_summary
    /// [`Compactor::compact_without_model`]: context_window::compaction::Compactor::compact_without_model
    ///
    /// # Errors
    ///
    /// As [`Compactor::compact_without_model`]; a job that is stale already is not sent. Nothing changes
    /// then.
    pub async fn compact(
        &self,
        manager: &ContextWindowManager,
        log: &mut Conversation,
        job: &CompactionRequest,
    ) -> Result<Compaction, Error> {
        job.check(log)?;
        if job.strategy() != CompactionStrategy::Summary {
            return Ok(manager.compactor().compact_without_model(log, job)?);
        }
        let answer = self.summarise(job).await;
        self.settle(manager, log, job, answer)
    }

    /// [`Summariser::compact`], unless `cancel` is done first: a token, a key press, the application's end.
    /// The request is dropped then, and the log holds what it held; the attempt is noted
    /// ([`Conversation::compaction_failed`]), so that repeated failures stop further requests.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Cancelled` if it is cancelled; otherwise as [`Summariser::compact`].
    pub async fn compact_unless(
        &self,
        manager: &ContextWindowManager,
        log: &mut Conversation,
        job: &CompactionRequest,
        cancel: impl Future<Output = ()>,
    ) -> Result<Compaction, Error> {
        job.check(log)?;
        if job.strategy() != CompactionStrategy::Summary {
            return Ok(manager.compactor().compact_without_model(log, job)?);
        }
        let answer = tokio::select! {
            biased;
            () = cancel => None,
            answer = self.summarise(job) => Some(answer),
        };
        let Some(answer) = answer else {
            log.compaction_failed();
            return Err(Error::new(Repr::Cancelled));
        };
        self.settle(manager, log, job, answer)
    }

    /// Applies an answer, or compacts without one. A compaction that is made in the end is no failure, so no
    /// earlier failure of it is recorded.
    fn settle(
        &self,
        manager: &ContextWindowManager,
        log: &mut Conversation,
        job: &CompactionRequest,
        answer: Result<String, Error>,
    ) -> Result<Compaction, Error> {
        let applied = answer.and_then(|summary| {
            Ok(manager.compactor().archive_by(log, job, CompactionKind::Summary, Some(summary))?)
        });
        match applied {
            Err(error) if error.leaves_the_log() => {
                tracing::warn!(target: "context_window::tokens", model = self.model, %error, "compacting without a summary");
                Ok(manager.compactor().compact_without_model(log, job)?)
            }
            applied => applied,
        }
    }

    /// Returns a client, the model to call, and the key.
    async fn connection(&self) -> Result<(Client, ServiceTarget, String), Failure> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(Failure::new("there is no Tokio runtime"));
        }
        // A redirect would take the key, in a header of the provider's own, and the prompt to another server.
        // Without a provider of its own, `reqwest` takes the one of the process; an application's choice
        // stays.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
        let http = http.map_err(|error| Failure::new(format!("no HTTP client could be made: {error}")))?;
        let client = Client::builder().with_reqwest(http).build().map_err(Failure::of)?;
        let target =
            self.provider.target(&client, &self.model, self.url.as_deref(), self.key.as_deref()).await?;
        let key = target.auth.single_key_value().map_err(Failure::of_key)?;
        Ok((client, target, key))
    }

    /// Sends one request and returns its answer.
    async fn attempt(
        &self,
        client: &Client,
        target: ServiceTarget,
        job: &CompactionRequest,
    ) -> Result<String, Failure> {
        let request = wire::request(job, self.provider);
        let options = wire::options(job, self.provider);
        let sent = client.exec_chat(target, request, Some(&options));
        match tokio::time::timeout(self.timeout, sent).await {
            Ok(answer) => answer::text(&answer.map_err(Failure::of)?),
            Err(_) => Err(Failure::new(format!("no whole answer within {:?}", self.timeout))),
        }
    }

    fn error(&self, failure: &Failure, key: &str, job: &CompactionRequest) -> Error {
        Error::new(Repr::Summariser { model: self.model.clone(), what: failure.detail(key, job.messages()) })
    }
}

impl fmt::Debug for Summariser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, model, timeout, .. } = self;
        f.debug_struct("Summariser")
            .field("provider", provider)
            .field("model", model)
            .field("timeout", timeout)
            .finish_non_exhaustive()
    }
}
