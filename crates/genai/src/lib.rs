//! Summaries by a real model, through the crate `genai`. [`Summariser`] sends a compaction request to the
//! model's provider and returns the summary. Rules: the request (C3), failures (C5), the size of the request
//! (C8).

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

/// A client for a model that writes summaries. It sends a [`CompactionRequest`] to the provider and returns
/// the text.
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
/// A job is made for the model of its manager. If another model summarizes, convert the job first. It then
/// has that model's wire format and fits its context window:
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
/// The client follows no redirects: a key is sent only to the requested URL.
///
/// Keys come from the environment (`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GEMINI_API_KEY`) unless you set
/// one with [`Summariser::with_api_key`]. Await every request inside a Tokio runtime with I/O and time
/// enabled.
///
/// The request consists of system texts, messages, tool calls with their results, the tools, and the
/// instruction at the end. The model may not call the tools. The maximum answer length is
/// [`CompactionRequest::max_tokens`]. Images and other parts without text are replaced by a short
/// description. Reasoning and provider-run tools are left out. The reasoning of a reasoning model counts
/// towards the answer length: raise `compaction.summary.max_tokens` for such a model. An answer that was cut
/// at that length is accepted.
#[derive(Clone)]
pub struct Summariser {
    provider: Provider,
    model: String,
    url: Option<String>,
    key: Option<String>,
    timeout: Duration,
}

impl Summariser {
    /// Creates a summariser with an `OpenAI` model, over Chat Completions.
    #[must_use]
    pub fn openai(model: impl Into<String>) -> Self {
        Self::with_provider(Provider::OpenAi, model)
    }

    /// Creates a summariser with an Anthropic model, over the Messages API.
    #[must_use]
    pub fn anthropic(model: impl Into<String>) -> Self {
        Self::with_provider(Provider::Anthropic, model)
    }

    /// Creates a summariser with a Google model, over the Gemini API.
    #[must_use]
    pub fn gemini(model: impl Into<String>) -> Self {
        Self::with_provider(Provider::Gemini, model)
    }

    /// Creates a summariser with a model of an Ollama server. The URL is `http://localhost:11434` unless you
    /// set another with [`Summariser::with_url`]. It needs no key. Ollama truncates a prompt without an error
    /// if it is longer than its context length (`OLLAMA_CONTEXT_LENGTH`). Set that length to at least the
    /// window of the job.
    #[must_use]
    pub fn ollama(model: impl Into<String>) -> Self {
        Self::with_provider(Provider::Ollama, model)
    }

    /// Creates a summariser for any server with `OpenAI`'s Chat Completions API, such as vLLM, llama.cpp or a
    /// gateway. The URL is the part before `chat/completions`, such as `http://localhost:8000/v1`. Keys from
    /// the environment are never sent there.
    #[must_use]
    pub fn compatible(url: impl Into<String>, model: impl Into<String>) -> Self {
        Self::with_provider(Provider::Compatible, model).with_url(url)
    }

    fn with_provider(provider: Provider, model: impl Into<String>) -> Self {
        Self { provider, model: model.into(), url: None, key: None, timeout: TIMEOUT }
    }

    /// Sets the base URL, for a proxy or a gateway. It is the part before `chat/completions` (`OpenAI`),
    /// `messages` (Anthropic), `models/` (Gemini) or `api/chat` (Ollama). The API key is sent to this URL,
    /// even if it comes from the environment.
    #[must_use]
    pub fn with_url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Sets the API key. Errors and debug output never contain it.
    #[must_use]
    pub fn with_api_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the time limit of one request, from connecting to the last byte of the answer (default: 60
    /// seconds). If a smaller request replaces it, that one has the full time limit again.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Requests a summary of a job from the model and returns its text without reasoning. If the provider
    /// refuses the prompt as too long, sends [`CompactionRequest::smaller`] instead, at most six requests in
    /// all. Repeats no request after any other error.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Model` in these cases:
    ///
    /// - the request has no room for the earlier summaries (the size of the request, rule C8);
    /// - the request times out, the connection fails or breaks, or the status is an HTTP error;
    /// - the answer contains an error, was withheld, is empty, is a tool call or has more than 4,194,304
    ///   bytes;
    /// - the API key is missing, or there is no Tokio runtime.
    ///
    /// The message has the status and the beginning of the provider's answer. It never contains a key or any
    /// text of the prompt. Returns `ErrorKind::Compaction` for an answer that is only reasoning or a tool
    /// call in its text, and for the errors of [`CompactionRequest::smaller`].
    pub async fn summarise(&self, job: &CompactionRequest) -> Result<String, Error> {
        if job.messages().is_empty() {
            let what = "the request does not fit its context window";
            return Err(self.error(&Failure::new(what), "", job));
        }
        // A provider's own summary may be opaque data, and this client sends only texts.
        let in_text = job.with_summaries_as_text()?;
        let job = &in_text;
        let (client, target, key) =
            self.connection().await.map_err(|failure| self.error(&failure, "", job))?;
        let mut smaller: Option<CompactionRequest> = None;
        // `smaller` halves the request and returns `None` after five steps, so the loop ends.
        loop {
            let sent = smaller.as_ref().unwrap_or(job);
            let failure = match self.attempt(&client, target.clone(), sent).await {
                Ok(text) => return Ok(summary_text(&text)?.to_owned()),
                Err(failure) => failure,
            };
            let next = if failure.is_overflow() { sent.smaller()? } else { None };
            // The provider may quote any request, and the original job contains the texts of all of them.
            let Some(next) = next else { return Err(self.error(&failure, &key, job)) };
            smaller = Some(next);
        }
    }

    /// Compacts by the strategy in the options of the job. With the strategy `summary`, requests a summary
    /// from the model and applies it ([`Compactor::apply_summary`]). Any other strategy calls no model
    /// ([`Compactor::compact_without_model`]).
    ///
    /// If the model fails or its answer is refused as a summary, compacts without a model as well. The `kind`
    /// of the record names the method that was used, and a `tracing` warning gives the reason.
    ///
    /// The log changes only after the answer has arrived. If you drop the future earlier, the log is
    /// unchanged. If the log has to grow in the meantime, call [`Summariser::summarise`] and apply its text
    /// afterwards.
    ///
    /// [`Compactor::apply_summary`]: context_window::compaction::Compactor::apply_summary
    /// [`Compactor::compact_without_model`]: context_window::compaction::Compactor::compact_without_model
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Compactor::compact_without_model`]. A stale job is not sent. On an error the
    /// log is unchanged.
    pub async fn compact(
        &self,
        manager: &ContextWindowManager,
        log: &mut Conversation,
        job: &CompactionRequest,
    ) -> Result<Compaction, Error> {
        // Checked before the request: a stale job could not be applied, and its summary would cost money.
        job.check(log)?;
        if job.strategy() != CompactionStrategy::Summary {
            return Ok(manager.compactor().compact_without_model(log, job)?);
        }
        let answer = self.summarise(job).await;
        self.settle(manager, log, job, answer)
    }

    /// Compacts like [`Summariser::compact`], unless the future `cancel` completes first, such as a token, a
    /// key press or the shutdown of the application. On cancellation the request is dropped and the log keeps
    /// its contents. The attempt is recorded ([`Conversation::compaction_failed`]), so that repeated failures
    /// stop further requests.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Cancelled` on cancellation, and otherwise the errors of [`Summariser::compact`].
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
            // `biased` polls `cancel` first: a compaction that is already cancelled sends nothing.
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

    /// Applies a summary, or compacts without one. A compaction without a summary is a success, so the
    /// failure of the model is not recorded in the log.
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

    /// Returns a client, the target to call, and the API key.
    async fn connection(&self) -> Result<(Client, ServiceTarget, String), Failure> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(Failure::new("there is no Tokio runtime"));
        }
        // `reqwest` is built without a TLS provider and uses the one of the process. This call fails, and is
        // ignored, if the application has already chosen one.
        drop(rustls::crypto::ring::default_provider().install_default());
        // A redirect would send the prompt, and the key in the provider's own header, to another server.
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
        let http =
            http.map_err(|error| Failure::new(format!("the HTTP client could not be created: {error}")))?;
        let client = Client::builder().with_reqwest(http).build().map_err(Failure::from_error)?;
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
            Ok(answer) => answer::text(&answer.map_err(Failure::from_error)?),
            Err(_) => Err(Failure::new(format!("no complete reply within {:?}", self.timeout))),
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
