//! The targets, their rules, and the bodies sent to them.

use crate::rules::{Form, Target};
use context_window::{
    Config, ContextPlan, Model, WireFormat,
    config::{DocumentFormat, ToolResults},
    render,
    usage::CacheLife,
};
use serde_json::{Value, json};
use std::{cell::RefCell, collections::BTreeMap, fs::File, io::Write, path::PathBuf};

/// One target.
pub struct Goal {
    pub name: &'static str,
    pub model: Model,
    pub config: Config,
    pub rules: Target,
    /// True if breakpoints are requested.
    pub marked: bool,
}

impl Goal {
    /// Returns the request body.
    pub fn body(&self, plan: &ContextPlan) -> Value {
        let marked = match self.rules.form {
            _ if !self.marked => return self.unmarked(plan),
            Form::OpenAiChat => {
                serde_json::to_value(render::openai(plan).with_breakpoints(CacheLife::FiveMinutes))
            }
            Form::OpenAiResponses => {
                serde_json::to_value(render::openai_responses(plan).with_breakpoints(CacheLife::FiveMinutes))
            }
            Form::Anthropic => {
                serde_json::to_value(render::anthropic(plan).with_breakpoints(CacheLife::OneHour))
            }
            Form::Gemini | Form::ChatTemplate => return self.unmarked(plan),
        };
        marked.unwrap()
    }

    /// Returns the body without breakpoints, which move from one prompt to the next, for a comparison of two
    /// prompts.
    pub fn unmarked(&self, plan: &ContextPlan) -> Value {
        in_form(plan, self.rules.form)
    }
}

/// Renders a plan for a wire format, its own or another one.
pub fn in_form(plan: &ContextPlan, form: Form) -> Value {
    in_form_of(plan, form)
}

/// Renders any prompt, such as that of a compaction job, for a wire format.
pub fn in_form_of(plan: &impl AsRef<context_window::message::Prompt>, form: Form) -> Value {
    let value = match form {
        Form::OpenAiChat | Form::ChatTemplate => serde_json::to_value(render::openai(plan)),
        Form::OpenAiResponses => serde_json::to_value(render::openai_responses(plan)),
        Form::Anthropic => serde_json::to_value(render::anthropic(plan)),
        Form::Gemini => serde_json::to_value(render::gemini(plan)),
    };
    value.unwrap()
}

pub fn goals() -> Vec<Goal> {
    let goal = |name, model: &str, rules: Target| Goal {
        name,
        model: Model::named(model).unwrap(),
        config: Config::default(),
        rules,
        marked: false,
    };
    let chat = Target::new(Form::OpenAiChat);
    let mut compatible = goal("a strict compatible server", "gpt-4o", chat.clone());
    compatible.model.provider = "acme".into();
    let mut cleared =
        goal("openai", "gpt-4o", Target { many_system: true, developer_role: true, ..chat.clone() });
    cleared.config.conversation.tool_results = ToolResults::Clip;
    let template = Target { reasoning_content: true, ..Target::new(Form::ChatTemplate) };
    let anthropic = Target::new(Form::Anthropic);
    let gemini = Target::new(Form::Gemini);
    let responses = Target::new(Form::OpenAiResponses);
    let mut in_responses = goal("responses", "gpt-5", responses.clone());
    in_responses.model = in_responses.model.with_wire_format(WireFormat::OpenAiResponses);
    let mut marked = goal("responses, marked", "gpt-5.6", Target { breakpoints: true, ..responses });
    marked.model = marked.model.with_wire_format(WireFormat::OpenAiResponses);
    marked.model = marked.model.without_cache_rule();
    let mut marked_chat = goal(
        "openai, marked",
        "gpt-5.6",
        Target { many_system: true, developer_role: true, breakpoints: true, ..chat.clone() },
    );
    marked_chat.model = marked_chat.model.without_cache_rule();
    let mut sonnet = goal(
        "claude, prefill",
        "claude-sonnet-4-5",
        Target { trailing_assistant: true, ..anthropic.clone() },
    );
    sonnet.model = sonnet.model.without_cache_rule();
    let opus =
        goal("claude, system inside", "claude-opus-5", Target { system_inside: true, ..anthropic.clone() });
    let mut native = goal("claude, native documents", "claude-sonnet-5", anthropic.clone());
    (native.config.rag.format, native.config.rag.labels) = (DocumentFormat::Native, true);
    native.model = native.model.without_cache_rule();
    let mut reasons = chat.clone();
    reasons.reasoning_content = true;
    vec![
        cleared,
        compatible,
        goal("mistral", "mistral-large-latest", chat),
        goal("deepseek", "deepseek-reasoner", reasons),
        in_responses,
        Goal { marked: true, ..marked },
        Goal { marked: true, ..marked_chat },
        Goal { marked: true, ..sonnet },
        opus,
        goal("claude", "claude-sonnet-5", anthropic),
        Goal { marked: true, ..native },
        goal("gemini", "gemini-2.5-pro", gemini.clone()),
        goal("gemini 3", "gemini-3-pro-preview", Target { thought_signatures: true, ..gemini }),
        goal("a chat template", "llama-3.1-8b-instruct", template),
    ]
}

/// Writes a body for checks by other programs, if a folder for them is named.
pub fn write(goal: &Goal, body: &Value) {
    thread_local!(static FILES: RefCell<BTreeMap<&'static str, (File, u32)>> = RefCell::default());
    let Some(folder) = std::env::var_os("CONTEXT_WINDOW_BODIES").map(PathBuf::from) else { return };
    let provider = match goal.rules.form {
        Form::OpenAiChat => "openai",
        Form::OpenAiResponses => "openai-responses",
        Form::Anthropic => "anthropic",
        Form::Gemini => "gemini",
        Form::ChatTemplate => return,
    };
    // Compatible servers add fields that the provider's own types do not have.
    if goal.rules.reasoning_content {
        return;
    }
    FILES.with_borrow_mut(|files| {
        let (file, lines) = files.entry(goal.name).or_insert_with(|| {
            std::fs::create_dir_all(&folder).unwrap();
            let thread = format!("{:?}", std::thread::current().id());
            let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
            let name = goal.name.replace([' ', ','], "-");
            // Some runners start a process for each test.
            let name = format!("{name}-{}-{thread}.jsonl", std::process::id());
            (File::create(folder.join(name)).unwrap(), 0)
        });
        // This number of bodies is enough to check the types of a wire format.
        if *lines < 1_500 {
            *lines += 1;
            let line = json!({ "provider": provider, "name": goal.name, "body": body });
            writeln!(file, "{line}").unwrap();
        }
    });
}
