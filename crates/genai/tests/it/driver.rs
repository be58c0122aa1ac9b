//! Tests of summaries by a model against a scripted provider that answers over real HTTP, with successes and
//! failures. After a success there is one summary, an error changes nothing, and no message is ever lost.

mod server;

use context_window::{
    compaction::CompactionRequest,
    config::{CompactionStrategy, RequestForm},
    conversation::{Compaction, CompactionKind, HistoryRow, ProviderSummary},
    *,
};
use context_window_genai::{Error, ErrorKind, Summariser};
use serde_json::{Value, json};
use server::{Reply, Server, Wire};
use std::{future::Future, time::Duration};

const KEY: &str = "topsecretkey";
const SUMMARY: &str = "The user looks for kettles; refunds take 5 days.";
const BOTH: [Wire; 2] = [Wire::OpenAi, Wire::Anthropic];

/// A conversation about kettles, the compaction job that is due for it, and a provider.
struct World {
    wire: Wire,
    manager: ContextWindowManager,
    log: Conversation,
    job: CompactionRequest,
    server: Server,
}

fn limits() -> RequestLimits {
    RequestLimits::new().with_model_context_len(14_000).with_max_completion_tokens(500).with_safety_buffer(0)
}

fn tools() -> Vec<Tool> {
    let schema = r#"{"type":"object","properties":{"q":{"type":"string"}}}"#;
    vec![Tool::new("look", "Looks something up.", schema), Tool::new("web_search", "Searches.", "")]
}

/// Builds turns of about 250 tokens, each with two tool calls at once.
fn conversation(turns: usize) -> Conversation {
    let mut log = Conversation::new();
    log.push_system("s0", "Answer from the catalogue.");
    let long = |what: &str, at: usize| format!("{what} {at} of many. ").repeat(14);
    for at in 0..turns {
        let (a, b) = (format!("call_{at}a"), format!("call_{at}b"));
        log.push(Message::user(long("Question", at)));
        log.push(Message::assistant("").with_tool_calls([
            ToolCall::new(&a, "look", format!("{{\"q\":\"kettle {at}\"}}")),
            ToolCall::new(&b, "web_search", "{}"),
        ]));
        log.push(Message::tool(&a, format!("Found kettle {at}.")));
        log.push(Message::tool(&b, long("Result", at)).into_failed());
        log.push(Message::assistant(long("Answer", at)));
    }
    log
}

impl World {
    fn new(wire: Wire, script: Vec<Reply>) -> Self {
        Self::with(wire, conversation(24), RequestForm::Conversation, script)
    }

    fn with(wire: Wire, log: Conversation, form: RequestForm, script: Vec<Reply>) -> Self {
        let model = match wire {
            Wire::OpenAi | Wire::Ollama => "gpt-4o",
            Wire::Anthropic => "claude-sonnet-4-5",
            Wire::Gemini => "gemini-2.5-flash",
        };
        let mut config = Config::default();
        config.compaction.messages = Some(50);
        // 50 messages are a low limit for 24 turns of 5 messages, so a compaction is always due.
        config.compaction.summary.form = form;
        config.compaction.summary.max_tokens = 400;
        let manager =
            ContextWindowManager::configured(Registry::built_in().unwrap().model(model), config).unwrap();
        let tools = tools();
        let job = manager
            .compactor()
            .due(&PlanRequest::new(&log).with_tools(&tools).with_limits(limits()))
            .unwrap()
            .unwrap();
        assert_eq!(job.form(), form);
        Self { wire, manager, log, job, server: Server::start(script) }
    }

    fn summariser(&self) -> Summariser {
        let summariser = match self.wire {
            Wire::OpenAi => Summariser::openai("gpt-4o"),
            Wire::Anthropic => Summariser::anthropic("claude-sonnet-4-5"),
            Wire::Gemini => Summariser::gemini("gemini-2.5-flash"),
            Wire::Ollama => Summariser::ollama("qwen3"),
        };
        summariser.with_url(&self.server.url).with_api_key(KEY).with_timeout(Duration::from_secs(20))
    }

    /// Returns the result of `summarise`, which does not change the log.
    async fn summarise(&self) -> Result<String, Error> {
        self.summariser().summarise(&self.job).await
    }

    /// Returns the error text of `summarise`, and checks the rules for all such errors: its kind, and no
    /// secrets.
    async fn error(&self) -> String {
        let error = self.summarise().await.unwrap_err();
        let kind = error.core().map(context_window::Error::kind);
        assert!(
            error.kind() == ErrorKind::Model || kind == Some(context_window::ErrorKind::NoSummary),
            "{error}"
        );
        let text = format!("{error} {error:?}");
        assert!(error.to_string().ends_with("nothing was archived"), "{text}");
        assert!(
            !text.contains(KEY)
                && !text.contains("urlsecret1")
                && !text.contains("Question 1")
                && !text.contains("catalogue"),
            "{text}"
        );
        error.to_string()
    }

    /// Compacts, and checks the rules for every outcome: no message is lost, and an error changes nothing.
    async fn compact(&mut self, summariser: &Summariser) -> Result<Compaction, Error> {
        let said = said(&self.log);
        let before = shape(&self.log);
        let compacted = summariser.compact(&self.manager, &mut self.log, &self.job).await;
        assert_eq!(self::said(&self.log), said, "nothing is lost");
        match &compacted {
            Ok(record) => {
                assert_eq!(self.log.compactions().collect::<Vec<_>>(), [record]);
                assert!(record.tokens_after < record.tokens_before);
                let plan =
                    self.manager.build_plan(&PlanRequest::new(&self.log).with_limits(limits())).unwrap();
                assert!(plan.overflow.is_none());
            }
            Err(_) => assert_eq!(shape(&self.log), before),
        }
        compacted
    }

    /// Checks a model that fails: the error of `summarise` contains `words`, and `compact` makes a digest.
    async fn fails(&mut self, words: &[&str]) {
        let told = self.error().await;
        for word in words {
            assert!(told.contains(word), "{told}");
        }
        let record = self.compact(&self.summariser()).await.unwrap();
        assert_eq!(record.kind, CompactionKind::Digest);
        assert!(record.summary.unwrap().contains("Question"));
    }
}

/// Returns every message of the log in order, including archived ones.
fn said(log: &Conversation) -> Vec<String> {
    let messages = log.history().filter_map(|row| match row {
        HistoryRow::Message { message, .. } => Some(format!("{message:?}")),
        _ => None,
    });
    messages.collect()
}

/// Returns the complete state of a log: its visible rows and its active parts.
fn shape(log: &Conversation) -> (Vec<String>, Vec<String>) {
    let shown = log.history().map(|row| format!("{row:?}")).collect();
    (shown, log.active().map(|part| format!("{part:?}")).collect())
}

/// Returns the messages of a request as lines, in the same form for each wire format.
fn arrived(wire: Wire, body: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(system) = body["system"].as_str() {
        lines.push(format!("system: {system}"));
    }
    for message in body["messages"].as_array().unwrap() {
        let role = message["role"].as_str().unwrap();
        match (&message["content"], wire) {
            (Value::String(text), _) if role == "tool" => {
                lines.push(format!("result {}: {text}", message["tool_call_id"].as_str().unwrap()));
            }
            (Value::String(text), _) if !text.is_empty() => lines.push(format!("{role}: {text}")),
            (Value::Array(blocks), Wire::Anthropic) => lines.extend(blocks.iter().map(|block| {
                let field = |name: &str| block[name].as_str().unwrap();
                match field("type") {
                    "text" => format!("{role}: {}", field("text")),
                    "tool_use" => format!("call {} {} {}", field("id"), field("name"), block["input"]),
                    "tool_result" => format!("result {}: {}", field("tool_use_id"), field("content")),
                    other => panic!("{other}"),
                }
            })),
            _ => {}
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            let (name, arguments) = (function["name"].as_str(), function["arguments"].as_str());
            lines.push(format!(
                "call {} {} {}",
                call["id"].as_str().unwrap(),
                name.unwrap(),
                arguments.unwrap()
            ));
        }
    }
    lines
}

/// Returns the expected lines of a job's request, to compare with the lines that the server received.
fn asked(wire: Wire, job: &CompactionRequest) -> Vec<String> {
    let mut lines = Vec::new();
    for message in job.messages() {
        let text = message.text();
        match message.role() {
            Role::Tool => {
                let failed = if message.is_failed() { "[the call failed] " } else { "" };
                lines.push(format!("result {}: {failed}{text}", message.answers().unwrap()));
            }
            role if !text.is_empty() => lines.push(format!("{}: {text}", format!("{role:?}").to_lowercase())),
            _ => {}
        }
        lines.extend(message.tool_calls().iter().map(|call| {
            // The library would take this name for Anthropic's own tool.
            let name = match call.name.as_str() {
                "web_search" if wire == Wire::Anthropic => "web_search_function",
                name => name,
            };
            format!("call {} {name} {}", call.id, call.arguments)
        }));
    }
    lines
}

#[tokio::test]
async fn job_is_sent_completely_and_its_summary_is_returned() {
    for wire in BOTH {
        let mut world = World::new(wire, vec![wire.answer(SUMMARY)]);
        assert_eq!(world.summarise().await.unwrap(), SUMMARY);
        let requests = world.server.requests();
        let [request] = requests.as_slice() else { panic!("{requests:?}") };
        let body = &request.body;
        let (path, key, model) = match wire {
            Wire::OpenAi => ("/v1/chat/completions", "authorization: bearer topsecretkey", "gpt-4o"),
            _ => ("/v1/messages", "x-api-key: topsecretkey", "claude-sonnet-4-5"),
        };
        assert_eq!((request.path.as_str(), &body["model"]), (path, &json!(model)));
        assert!(request.head.contains(key), "{}", request.head);
        assert_eq!(body["max_tokens"], 400);
        assert!(body.get("temperature").is_none() && body.get("reasoning_effort").is_none(), "{body:#}");
        assert_ne!(body["stream"], true);

        let lines = arrived(wire, body);
        assert_eq!(lines, asked(wire, &world.job));
        let instruction = world.job.messages().last().unwrap().text();
        assert!(instruction.contains("At most 300 words."));
        assert_eq!(lines.last().unwrap(), &format!("user: {instruction}"));
        assert!(lines.iter().filter(|line| line.starts_with("call")).count() > 10);

        let tools = body["tools"].as_array().unwrap();
        let names: Vec<&str> = tools
            .iter()
            .map(|tool| {
                let of = if wire == Wire::OpenAi { &tool["function"] } else { tool };
                of["name"].as_str().unwrap()
            })
            .collect();
        match wire {
            Wire::OpenAi => {
                assert_eq!(names, ["look", "web_search"]);
                assert_eq!(body["tool_choice"], "none");
            }
            _ => {
                assert_eq!(names, ["look", "web_search_function"]);
                assert_eq!(body["tool_choice"], json!({"type": "none"}));
                assert!(tools.iter().all(|tool| tool["input_schema"]["type"] == "object"));
                // Anthropic requires the results of one message's calls in one message.
                let results = body["messages"].as_array().unwrap().iter().filter(|message| {
                    message["content"].as_array().is_some_and(|blocks| blocks[0]["type"] == "tool_result")
                });
                assert!(results.clone().count() > 5);
                assert!(results.clone().all(|message| message["content"].as_array().unwrap().len() == 2));
            }
        }

        let record = world.compact(&world.summariser()).await.unwrap();
        assert_eq!((record.kind, record.summary.as_deref()), (CompactionKind::Summary, Some(SUMMARY)));
        assert_eq!(record.messages_archived, world.job.messages_archived());
        let summaries = world.log.active().filter(|part| matches!(part, HistoryRow::Compaction(_))).count();
        assert_eq!(summaries, 1);
    }
}

#[tokio::test]
async fn a_transcript_has_no_tools() {
    for wire in BOTH {
        let script = vec![wire.answer(SUMMARY)];
        let world = World::with(wire, conversation(24), RequestForm::Transcript, script);
        assert_eq!(world.summarise().await.unwrap(), SUMMARY);
        let body = &world.server.requests()[0].body;
        assert!(body.get("tools").is_none() && body.get("tool_choice").is_none());
        assert_eq!(arrived(wire, body), asked(wire, &world.job));
        assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_job_for_one_wire_form_is_valid_in_another() {
    let mut log = conversation(24);
    log.push(Message::system("Speak of kettles only."));
    log.push(Message::user("Well?"));
    let image = Part::Image { url: "http://example.com/kettle.png".into(), detail: None };
    log.push(Message::user("Look.").with_parts([image]).with_name("Ada"));
    log.push(Message::assistant("I see.").with_reasoning("Hm, a kettle."));
    log.push(Message::user("Go on."));
    for wire in [Wire::OpenAi, Wire::Anthropic, Wire::Gemini, Wire::Ollama] {
        let manager = ContextWindowManager::for_model("gpt-4o").unwrap();
        let tools = tools();
        let request = PlanRequest::new(&log)
            .with_tools(&tools)
            .with_limits(RequestLimits::new().with_model_context_len(40_000));
        let job = manager.compactor().range(&request, None, None).unwrap().unwrap();
        let mut world = World::new(wire, vec![wire.answer(SUMMARY)]);
        world.job = job;
        assert_eq!(world.summarise().await.unwrap(), SUMMARY);
        let request = world.server.requests().remove(0);
        let sent = request.body.to_string();
        assert!(sent.contains("Look.\\n\\n[an image]"), "{wire:?}: {sent}");
        assert!(!sent.contains("kettle.png") && !sent.contains("Hm, a kettle."));
        // The later instruction keeps its place, in a form that the provider accepts there.
        let (at, end) = (sent.find("Speak of kettles only.").unwrap(), sent.find("[an image]").unwrap());
        assert!(at < end && at > sent.find("Question 23").unwrap());
        match wire {
            Wire::OpenAi => assert!(sent.contains("Ada: Look.")),
            Wire::Anthropic => assert!(sent.contains("<system_note>")),
            Wire::Gemini => {
                assert_eq!(request.path, "/v1/models/gemini-2.5-flash:generateContent");
                assert!(sent.contains("<system_note>"));
                assert_eq!(request.body["generationConfig"]["maxOutputTokens"], 2000);
            }
            Wire::Ollama => {
                assert_eq!(request.path, "/v1/api/chat");
                assert_eq!(request.body["options"]["num_predict"], 2000);
                let results = request.body["messages"].as_array().unwrap().iter();
                assert_eq!(results.filter(|message| message["role"] == "tool").count(), 48);
            }
        }
    }
}

#[tokio::test]
async fn a_compatible_server_gets_no_key_of_the_environment_and_the_whole_name() {
    let world = World::new(Wire::OpenAi, vec![Wire::OpenAi.answer(SUMMARY)]);
    let summariser = Summariser::compatible(&world.server.url, "org/qwen-max");
    assert_eq!(summariser.summarise(&world.job).await.unwrap(), SUMMARY);
    let request = &world.server.requests()[0];
    assert!(request.head.contains("authorization: bearer none"));
    assert_eq!(request.body["model"], "org/qwen-max");
    assert!(request.body.get("reasoning_effort").is_none());
    assert!(!format!("{:?}", summariser.with_api_key(KEY)).contains(KEY));
}

#[tokio::test]
async fn silent_server_times_out() {
    for wire in BOTH {
        let mut world = World::new(wire, vec![Reply::Silence]);
        let summariser = world.summariser().with_timeout(Duration::from_millis(300));
        let told = summariser.summarise(&world.job).await.unwrap_err();
        assert_eq!(told.kind(), ErrorKind::Model);
        assert!(told.to_string().contains("within 300ms"), "{told}");
        let record = world.compact(&summariser).await.unwrap();
        assert_eq!(record.kind, CompactionKind::Digest);
        // No request is repeated: one comes from `summarise`, one from `compact`.
        assert_eq!(world.server.requests().len(), 2);
    }
}

#[tokio::test]
async fn too_long_request_is_retried_in_halves() {
    for wire in BOTH {
        let mut world = World::new(wire, vec![wire.overflow(), wire.answer(SUMMARY)]);
        let record = world.compact(&world.summariser()).await.unwrap();
        assert_eq!((record.kind, record.summary.as_deref()), (CompactionKind::Summary, Some(SUMMARY)));
        assert_eq!(record.messages_archived, world.job.messages_archived());
        let requests = world.server.requests();
        assert_eq!(requests.len(), 2);
        let length = |at: usize| requests[at].body["messages"].to_string().len();
        assert!(length(1) < length(0) * 2 / 3, "{} {}", length(0), length(1));
        assert_eq!(requests[1].body["max_tokens"], 400);
        assert!(requests[1].body.get("tools").is_none());
    }
}

#[tokio::test]
async fn request_that_is_always_too_long_fails() {
    for wire in BOTH {
        let full = wire.ended("The begin", "model_context_window_exceeded");
        let inside = Reply::Json(200, wire.error("prompt is too long"));
        for script in [
            vec![wire.overflow()],
            vec![Reply::Page(413, "<html>too large</html>")],
            vec![full],
            vec![inside],
        ] {
            let mut world = World::new(wire, script);
            // `fails` summarizes twice: by `summarise` and by `compact`. Both halves must be the same series
            // of ever shorter requests.
            world.fails(&[]).await;
            let requests = world.server.requests();
            assert!(requests.len() >= 4 && requests.len() <= 12, "{}", requests.len());
            let lengths: Vec<usize> =
                requests.iter().map(|request| request.body["messages"].to_string().len()).collect();
            let (first, second) = lengths.split_at(lengths.len() / 2);
            assert_eq!(first, second);
            assert!(first.is_sorted_by(|a, b| a > b), "{first:?}");
        }
    }
}

/// A redirect would send the prompt, and the key in the provider's own header (`x-api-key`), to a server that
/// the redirect chooses.
#[tokio::test]
async fn a_key_follows_no_redirect() {
    for wire in BOTH {
        let other = Server::start(vec![wire.answer(SUMMARY)]);
        World::new(wire, vec![Reply::Moved(other.url.clone())]).fails(&["307"]).await;
        assert!(other.requests().is_empty(), "{wire:?}");
    }
}

#[tokio::test]
async fn provider_errors_are_reported() {
    for wire in BOTH {
        let down = wire.error("The server had an error while processing your request.");
        World::new(wire, vec![Reply::Json(500, down)]).fails(&["500", "The server had an error"]).await;
        let limited = wire.error("Rate limit reached: too many tokens per minute");
        World::new(wire, vec![Reply::Json(429, limited)]).fails(&["429", "Rate limit"]).await;
        World::new(wire, vec![Reply::Page(502, "<html>Bad gateway</html>")]).fails(&["HTTP 502"]).await;
        World::new(wire, vec![Reply::Page(200, "<html>Log in</html>")]).fails(&["not JSON"]).await;
        World::new(wire, vec![Reply::Json(200, json!([1]))]).fails(&["the reply"]).await;
    }
}

#[tokio::test]
async fn an_error_repeats_no_key_and_nothing_of_the_prompt() {
    for wire in BOTH {
        let wrong = wire.error("Incorrect API key provided: topsecretkey.");
        World::new(wire, vec![Reply::Json(401, wrong)]).fails(&["401", "provided: [key]"]).await;
        let echo = wire.error("cannot read \"Question 1 of many. Question 1 of many.\"");
        World::new(wire, vec![Reply::Json(400, echo)]).fails(&["400", "is not shown"]).await;
    }
}

#[tokio::test]
async fn truncated_answer_is_no_summary() {
    for wire in BOTH {
        World::new(wire, vec![wire.cut()])
            .fails(&["the connection closed before the reply was complete"])
            .await;
    }
}

#[tokio::test]
async fn an_empty_answer_is_no_summary() {
    for wire in BOTH {
        for blank in ["", " \n"] {
            World::new(wire, vec![wire.answer(blank)]).fails(&["empty"]).await;
        }
        // A reasoning model that spent all its tokens on reasoning.
        World::new(wire, vec![wire.ended("", "length")]).fails(&["empty", "`length`"]).await;
        World::new(wire, vec![wire.answer("<think>Hm.</think>")]).fails(&["nothing"]).await;
    }
    let thoughtful = World::new(Wire::OpenAi, vec![Wire::OpenAi.answer("<think>Hm.</think>\nAll said.")]);
    assert_eq!(thoughtful.summarise().await.unwrap(), "All said.");
}

#[tokio::test]
async fn answer_longer_than_any_summary_is_refused() {
    for wire in BOTH {
        let long = "So far. ".repeat(524_289);
        World::new(wire, vec![wire.answer(&long)]).fails(&["bytes; expected at most 4,194,304"]).await;
    }
}

#[tokio::test]
async fn a_call_is_no_summary() {
    let call = json!([{"id": "x", "type": "function", "function": {"name": "look", "arguments": "{}"}}]);
    let body = json!({"model": "made", "choices": [{
        "index": 0, "finish_reason": "tool_calls",
        "message": {"role": "assistant", "content": null, "tool_calls": call}
    }]});
    World::new(Wire::OpenAi, vec![Reply::Json(200, body)]).fails(&["a tool call"]).await;
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "made", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "x", "name": "look", "input": {}}],
    });
    World::new(Wire::Anthropic, vec![Reply::Json(200, body)]).fails(&["a tool call"]).await;
}

#[tokio::test]
async fn an_error_inside_of_a_good_answer_is_no_summary() {
    for wire in BOTH {
        let error = wire.error("Provider returned error");
        World::new(wire, vec![Reply::Json(200, error)]).fails(&["Provider returned error"]).await;
        World::new(wire, vec![wire.ended("I cannot help with that.", "refusal")]).fails(&["withheld"]).await;
    }
    // A gateway that fails after the start of the reply.
    let body = json!({"model": "made", "choices": [{
        "index": 0, "finish_reason": "error", "error": {"code": 502, "message": "Upstream is gone"},
        "message": {"role": "assistant", "content": "The begin"}
    }]});
    World::new(Wire::OpenAi, vec![Reply::Json(200, body)]).fails(&["Upstream is gone"]).await;
}

#[tokio::test]
async fn a_summary_that_is_too_long_is_refused() {
    for wire in BOTH {
        let mut world = World::new(wire, vec![wire.answer(&"far too long ".repeat(9_000))]);
        let record = world.compact(&world.summariser()).await.unwrap();
        assert_eq!(record.kind, CompactionKind::Digest);
    }
}

/// The summary of an earlier compaction reaches the model in full, even if a provider made it. This client
/// sends only texts.
#[tokio::test]
async fn an_earlier_summary_reaches_the_model_as_text() {
    let wire = Wire::Anthropic;
    let response = json!({"stop_reason": "compaction",
        "content": [{"type": "compaction", "content": "ZEBRA is the task.", "signature": "c2Vj"}]});
    for form in [RequestForm::Conversation, RequestForm::Transcript] {
        let first = World::with(wire, conversation(24), form, Vec::new());
        let mut log = first.log.clone();
        let made = ProviderSummary::from_json("anthropic", &response).unwrap();
        first.manager.compactor().apply_provider_summary(&mut log, &first.job, made).unwrap();
        for message in conversation(20).messages() {
            log.push(message.clone().without_id());
        }
        let world = World::with(wire, log, form, vec![wire.answer(SUMMARY)]);
        assert_eq!(world.summarise().await.unwrap(), SUMMARY);
        let requests = world.server.requests();
        let lines = arrived(wire, &requests[0].body);
        assert!(lines.iter().any(|line| line.contains("ZEBRA is the task.")), "{lines:#?}");
        assert!(!requests[0].body.to_string().contains("c2Vj"));
    }
}

/// A request without room for an earlier summary is not sent. The earlier summary becomes part of a digest.
#[tokio::test]
async fn no_model_is_called_without_room_for_an_earlier_summary() {
    let wire = Wire::OpenAi;
    let first = World::new(wire, Vec::new());
    let mut log = first.log.clone();
    let earlier = "ZEBRA is the task. ".repeat(300);
    first.manager.compactor().apply_summary(&mut log, &first.job, &earlier).unwrap();
    for message in conversation(20).messages() {
        log.push(message.clone().without_id());
    }
    let mut world = World::with(wire, log, RequestForm::Conversation, vec![wire.answer(SUMMARY)]);
    let small = RequestLimits::new().with_model_context_len(2_000).with_max_completion_tokens(200);
    let request = PlanRequest::new(&world.log).with_limits(small);
    world.job = world.manager.compactor().now(&request).unwrap().unwrap();
    assert!(world.job.messages().is_empty());
    assert!(world.error().await.contains("does not fit its context window"));
    let error = world.manager.compactor().apply_summary(&mut world.log, &world.job, SUMMARY).unwrap_err();
    assert_eq!(error.kind(), context_window::ErrorKind::Budget);
    let record = world.summariser().compact(&world.manager, &mut world.log, &world.job).await.unwrap();
    assert_eq!((record.kind, world.server.requests().len()), (CompactionKind::Digest, 0));
    assert!(record.summary.unwrap().contains(earlier.trim()));
}

/// Only the strategy `summary` calls a model. Any other strategy sends nothing.
#[tokio::test]
async fn no_model_is_called_by_another_strategy() {
    for (strategy, kind) in [
        (CompactionStrategy::Digest, CompactionKind::Digest),
        (CompactionStrategy::SlidingWindow, CompactionKind::SlidingWindow),
        (CompactionStrategy::Fresh, CompactionKind::Fresh),
    ] {
        let wire = Wire::OpenAi;
        let mut world = World::new(wire, vec![wire.answer(SUMMARY)]);
        let mut config = Config::default();
        config.compaction.messages = Some(50);
        config.compaction.strategy = strategy;
        world.manager =
            ContextWindowManager::configured(Registry::built_in().unwrap().model("gpt-4o"), config).unwrap();
        let request = PlanRequest::new(&world.log).with_limits(limits());
        world.job = world.manager.compactor().due(&request).unwrap().unwrap();
        let record = world.compact(&world.summariser()).await.unwrap();
        assert_eq!(record.kind, kind);
        assert_eq!(world.server.requests().len(), 0, "{strategy:?}");
        // The same holds for `compact_unless`.
        let mut log = conversation(24);
        let job =
            world.manager.compactor().due(&PlanRequest::new(&log).with_limits(limits())).unwrap().unwrap();
        let never = std::future::pending();
        let record = world.summariser().compact_unless(&world.manager, &mut log, &job, never).await.unwrap();
        assert_eq!((record.kind, world.server.requests().len()), (kind, 0));
    }
}

#[tokio::test]
async fn unreachable_server_is_reported() {
    for wire in BOTH {
        let mut world = World::new(wire, vec![]);
        // No server listens at a port that was just released.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        world.server.url = format!("http://{port}/v1?key=urlsecret1");
        world.fails(&["the connection failed"]).await;
        world.server.url = format!("not a URL {KEY}");
        world.log = conversation(24);
        world.error().await;
    }
}

#[tokio::test]
async fn a_cancelled_compaction_changes_nothing() {
    for wire in BOTH {
        let mut world = World::new(wire, vec![Reply::Silence]);
        let (before, summariser) = (shape(&world.log), world.summariser());
        let World { manager, log, job, server, .. } = &mut world;
        // Waits for the request itself, however slow the machine is. Only a request that arrived can be
        // cancelled.
        let seen = async |requests: usize| {
            while server.requests().len() < requests {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let error = summariser.compact_unless(manager, log, job, seen(1)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert!(error.to_string().contains("cancelled"), "{error}");
        assert_eq!(shape(log), before);
        // Cancelled from the start: nothing is sent.
        assert!(summariser.compact_unless(manager, log, job, async {}).await.is_err());
        assert_eq!(shape(log), before);
        // The future is dropped without a cancellation.
        tokio::select! {
            answered = summariser.compact(manager, log, job) => panic!("{answered:?}"),
            () = seen(2) => {}
        }
        assert_eq!(shape(log), before);
        assert_eq!(world.server.requests().len(), 2);
    }
    let wire = Wire::OpenAi;
    let mut world = World::new(wire, vec![wire.answer(SUMMARY)]);
    let summariser = world.summariser();
    let never = std::future::pending();
    let record = summariser.compact_unless(&world.manager, &mut world.log, &world.job, never).await.unwrap();
    assert_eq!(record.kind, CompactionKind::Summary);
}

#[tokio::test]
async fn a_stale_job_is_not_sent() {
    let wire = Wire::OpenAi;
    let mut world = World::new(wire, vec![wire.answer(SUMMARY)]);
    let summariser = world.summariser();
    summariser.compact(&world.manager, &mut world.log, &world.job).await.unwrap();
    let before = shape(&world.log);
    let error = summariser.compact(&world.manager, &mut world.log, &world.job).await.unwrap_err();
    assert_eq!(error.core().unwrap().kind(), context_window::ErrorKind::Stale);
    assert_eq!((shape(&world.log), world.server.requests().len()), (before, 1));
}

#[test]
fn outside_of_a_runtime_there_is_an_error() {
    let world = World::new(Wire::OpenAi, vec![]);
    let summarised = world.summarise();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(answer) = std::pin::pin!(summarised).poll(&mut context) else { panic!() };
    assert!(answer.unwrap_err().to_string().contains("no Tokio runtime"));
}

#[test]
fn it_can_run_on_any_thread() {
    fn sends<T: Send>(_: T) {}
    let mut world = World::new(Wire::OpenAi, vec![]);
    let summariser = world.summariser();
    sends(summariser.summarise(&world.job));
    sends(summariser.compact(&world.manager, &mut world.log, &world.job));
    sends(summariser.compact_unless(&world.manager, &mut world.log, &world.job, std::future::pending()));
}
