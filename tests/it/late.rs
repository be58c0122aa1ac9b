//! Tools and instructions added after the first prompt go to the end, so that the prompt only grows (rule
//! S12).

use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits,
    Tool, ToolCall, WireFormat, config::Placement, message::Reasoning, plan::DropReason, render,
};
use context_window_store::Journal;
use serde_json::{Value, json};

fn manager_for(model: &str, config: &Config) -> ContextWindowManager {
    let mut model = Model::named(model).unwrap();
    model.tokenizer = Some("chars/4".into());
    ContextWindowManager::configured(model, config.clone()).unwrap()
}

fn body(plan: &ContextPlan) -> Value {
    match plan.wire_format {
        WireFormat::Anthropic => serde_json::to_value(render::anthropic(plan)).unwrap(),
        WireFormat::OpenAiResponses => serde_json::to_value(render::openai_responses(plan)).unwrap(),
        _ => serde_json::to_value(render::openai(plan)).unwrap(),
    }
}

/// Returns the parts of a body in order, tools and system text first.
fn pieces(plan: &ContextPlan) -> Vec<String> {
    let body = body(plan);
    let mut pieces: Vec<String> =
        ["tools", "system"].iter().map(|key| body.get(*key).unwrap_or(&Value::Null).to_string()).collect();
    for message in body.get("messages").or(body.get("input")).and_then(Value::as_array).unwrap() {
        match message.get("content").and_then(Value::as_array) {
            Some(parts) => pieces.extend(parts.iter().map(|part| format!("{}: {part}", message["role"]))),
            None => pieces.push(message.to_string()),
        }
    }
    pieces
}

fn tool(name: &str) -> Tool {
    Tool::new(
        name,
        format!("What {name} does."),
        r#"{"type":"object","properties":{"of":{"type":"string"}}}"#,
    )
}

struct Talk {
    manager: ContextWindowManager,
    log: Conversation,
    tools: Vec<Tool>,
    limits: RequestLimits,
    steps: usize,
}

impl Talk {
    fn new(model: &str) -> Self {
        let manager = manager_for(model, &Config::default());
        let log = Conversation::from([Message::system("Be brief."), Message::user("Where is it?")]);
        Self { manager, log, tools: vec![tool("look")], limits: RequestLimits::new(), steps: 0 }
    }

    fn plan(&self) -> ContextPlan {
        let request = PlanRequest::new(&self.log).with_tools(&self.tools).with_limits(self.limits);
        self.manager.build_plan(&request.with_state("clock", format!("{} o'clock", self.steps / 2))).unwrap()
    }

    /// Adds a step of the tool loop with reasoning.
    fn step(&mut self) -> ContextPlan {
        let plan = self.plan();
        let id = format!("c{}", self.steps);
        self.steps += 1;
        let seal = format!("s{}", self.steps);
        let thought = match plan.wire_format {
            WireFormat::OpenAiResponses => {
                Reasoning::signed(WireFormat::OpenAiResponses, "", seal.clone()).with_id(seal)
            }
            wire_format => Reasoning::signed(wire_format, "", seal),
        };
        let name = self.tools.last().map_or("look", |tool| &*tool.name).to_owned();
        let reply = Message::assistant("").with_tool_calls([ToolCall::new(&*id, name, "{}")]);
        self.log.push_reply(&plan, reply.with_reasoning(thought), None);
        self.log.push(Message::tool(&*id, "Not here."));
        plan
    }
}

const CHECKING: [&str; 3] = ["claude-fable-5-2", "claude-opus-5-5", "gpt-6.2-astra"];

#[test]
fn prompts_only_grow_when_tools_and_instructions_are_added() {
    for model in CHECKING {
        let mut talk = Talk::new(model);
        let mut plans = vec![talk.step(), talk.step()];
        talk.tools.push(tool("dig"));
        plans.push(talk.step());
        talk.log.push_system("rules", "Never dig at night.");
        plans.push(talk.step());
        talk.tools.extend([tool("ask"), tool("tell")]);
        talk.log.push_system("more", "Ask first.");
        plans.push(talk.step());
        plans.push(talk.step());
        plans.push(talk.plan());
        for (at, pair) in plans.windows(2).enumerate() {
            let (before, now) = (pieces(&pair[0]), pieces(&pair[1]));
            assert!(now.starts_with(&before), "{model}, prompt {at}:\n{before:#?}\n{now:#?}");
            assert!(pair[1].thoughts.lost.is_empty(), "{model}, prompt {at}: {:?}", pair[1].thoughts);
            assert_eq!(pair[1].thoughts.sent, at as u64 + 1);
        }
        let text = body(plans.last().unwrap()).to_string();
        for name in ["look", "dig", "ask", "tell"] {
            let definition = format!("What {name} does.");
            assert_eq!(text.matches(&definition).count(), 1, "{model}: {name}");
        }
        for said in ["Never dig at night.", "Ask first."] {
            assert_eq!(text.matches(said).count(), 1, "{model}: {said}");
        }
    }
}

#[test]
fn late_items_have_the_form_of_the_provider() {
    let mut talk = Talk::new("claude-fable-5-2");
    talk.step();
    talk.tools.push(tool("dig"));
    talk.log.push_system("rules", "Never dig at night.");
    let plan = talk.plan();
    let body = body(&plan);
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "system");
    let schema = json!({"type": "object", "properties": {"of": {"type": "string"}}});
    let definition = json!({"name": "dig", "description": "What dig does.", "input_schema": schema});
    let addition =
        json!({"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}});
    assert_eq!(last["content"][1], addition);
    assert!(last["content"][0]["text"].as_str().unwrap().contains("Never dig at night."));
    let header = ("anthropic-beta".to_owned(), "inline-tools-2026-09-15".to_owned());
    assert_eq!(plan.headers, [header]);

    let mut talk = Talk::new("gpt-6.2-astra");
    talk.step();
    talk.tools.push(tool("dig"));
    let plan = talk.plan();
    let body = serde_json::to_value(render::openai_responses(&plan)).unwrap();
    let last = body["input"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["type"], &last["role"]), (&json!("additional_tools"), &json!("developer")));
    assert_eq!(last["tools"][0]["name"], "dig");
    assert!(plan.headers.is_empty());
}

/// A tool that changed or is gone cannot be sent as before. All tools are declared once before the messages
/// again, and the notice names them.
#[test]
fn changed_tool_is_declared_again() {
    for model in CHECKING {
        let mut talk = Talk::new(model);
        talk.step();
        talk.tools.push(tool("dig"));
        talk.step();
        talk.tools[0].description = "Looks otherwise.".into();
        let plan = talk.plan();
        assert_eq!(plan.thoughts.sent, 0, "{model}");
        let named = |loss: &DropReason| matches!(loss, DropReason::PrefixChanged { at, .. } if at.as_str() == "tools");
        assert!(plan.thoughts.lost.iter().all(|lost| named(&lost.why)), "{model}: {:?}", plan.thoughts);
        let body = body(&plan);
        assert_eq!(body["tools"].as_array().unwrap().len(), 2, "{model}");
        assert_eq!(body.to_string().matches("What dig does.").count(), 1, "{model}");
    }
}

/// A removed late tool is no longer offered.
#[test]
fn removed_late_tool_is_not_sent() {
    for model in CHECKING {
        let mut talk = Talk::new(model);
        talk.step();
        talk.tools.push(tool("dig"));
        talk.step();
        talk.tools.truncate(1);
        talk.tools.push(tool("ask"));
        let plan = talk.plan();
        let text = body(&plan).to_string();
        assert_eq!((text.matches("What dig").count(), text.matches("What ask").count()), (0, 1), "{model}");
        // The first reasoning was made before the tool was added.
        assert_eq!(plan.thoughts.sent, 1, "{model}: {:?}", plan.thoughts);
    }
}

#[test]
fn other_models_get_late_items_at_the_start() {
    // A target that accepts instructions in one place only, one without retained documents, and a model that
    // was switched to.
    for model in ["gpt-4o", "claude-sonnet-4-5", "mistral-large-2512"] {
        let mut talk = Talk::new(model);
        talk.step();
        talk.tools.push(tool("dig"));
        talk.log.push_system("rules", "Never dig at night.");
        let plan = talk.plan();
        assert_eq!(plan.included[0].role.map(|role| role.instructs()), Some(true));
        let ids: Vec<&str> = plan.included.iter().map(|row| row.id.as_str()).take(2).collect();
        assert!(ids.contains(&"rules"), "{model}: {ids:?}");
        assert_eq!(body(&plan)["tools"].as_array().unwrap().len(), 2, "{model}");
    }
    let mut talk = Talk::new("claude-fable-5-2");
    talk.step();
    talk.tools.push(tool("dig"));
    talk.step();
    talk.manager = manager_for("gpt-6.2-astra", &Config::default());
    let plan = talk.plan();
    assert_eq!(body(&plan)["tools"].as_array().unwrap().len(), 2);
    assert_eq!(body(&plan).to_string().matches("What dig does.").count(), 1);
    // After switching back, the prompt continues from the one before only if that was for the same model.
    talk.manager = manager_for("claude-fable-5-2", &Config::default());
    assert_eq!(talk.plan().thoughts.sent, 2);
}

#[test]
fn reopened_log_keeps_late_items() {
    let path = std::env::temp_dir().join(format!("context-window-{}-late.log", std::process::id()));
    drop(std::fs::remove_file(&path));
    let mut talk = Talk::new("claude-opus-5-5");
    talk.step();
    talk.tools.push(tool("dig"));
    talk.log.push_system("rules", "Never dig at night.");
    talk.step();
    let plan = talk.step();
    Journal::create(&path, &talk.log).unwrap();
    let (_, log) = Journal::open(&path).unwrap();
    let next = talk.plan();
    talk.log = log;
    drop(std::fs::remove_file(&path));
    assert_eq!(pieces(&talk.plan()), pieces(&next));
    assert!(pieces(&next).starts_with(&pieces(&plan)));
}

/// Late items removed by a window cut are sent again: no tool and no instruction is ever missing or repeated.
#[test]
fn window_cut_keeps_late_items() {
    for model in CHECKING {
        let mut config = Config::default();
        config.rag.placement = Placement::WithQuestion;
        let mut talk = Talk::new(model);
        talk.manager = manager_for(model, &config);
        talk.limits = RequestLimits::prompt_budget(900);
        talk.step();
        talk.tools.push(tool("dig"));
        talk.log.push_system("rules", "Never dig at night.");
        let mut cuts = 0;
        for turn in 0..30 {
            let plan = talk.step();
            assert!(plan.overflow.is_none());
            let text = body(&plan).to_string();
            for said in ["What look does.", "What dig does.", "Never dig at night."] {
                assert_eq!(text.matches(said).count(), 1, "{model}, turn {turn}: {said}\n{:#}", body(&plan));
            }
            cuts += usize::from(plan.repeated().is_some_and(|prefix| prefix.cause.is_some()));
            talk.log.push(Message::assistant("Nowhere, it seems. ".repeat(6)));
            talk.log.push(Message::user("Look again, please, in the other room. ".repeat(3)));
        }
        assert!(cuts > 0, "{model}: never cut");
    }
}

/// Sent items keep their positions for every end of the log. Only new items are then declared at the start.
#[test]
fn late_items_stay_if_nothing_can_be_added() {
    for model in CHECKING {
        let mut talk = Talk::new(model);
        talk.step();
        talk.tools.push(tool("dig"));
        talk.log.push_system("rules", "Never dig at night.");
        let plan = talk.step();
        talk.log.push(Message::assistant("Nowhere."));
        let after = talk.plan();
        assert!(after.thoughts.lost.is_empty(), "{model}: {:?}", after.thoughts);
        assert!(pieces(&after).starts_with(&pieces(&plan)), "{model}");
        talk.tools.push(tool("ask"));
        let text = body(&talk.plan()).to_string();
        for name in ["look", "dig", "ask"] {
            assert_eq!(text.matches(&format!("What {name} does.")).count(), 1, "{model}: {name}");
        }
        assert_eq!(text.matches("Never dig at night.").count(), 1, "{model}");
    }
}

/// A rewind or a compaction changes the beginning of the prompt anyway, so late items move there.
#[test]
fn rewound_or_compacted_log_gets_late_items_at_the_start() {
    for model in CHECKING {
        for rewinds in [true, false] {
            let mut talk = Talk::new(model);
            talk.step();
            talk.tools.push(tool("dig"));
            talk.log.push_system("rules", "Never dig at night.");
            let late = talk.step();
            assert!(late.included.iter().all(|row| row.id != "rules"), "{model}");
            talk.step();
            if rewinds {
                talk.log.rewind_before("m6").unwrap();
            } else {
                talk.log.start_fresh();
                talk.log.push(Message::user("Where is the other one?"));
            }
            let plan = talk.plan();
            assert_eq!(plan.included[0].id, "rules", "{model}");
            assert_eq!(body(&plan)["tools"].as_array().unwrap().len(), 2, "{model}");
        }
    }
}

/// If the log has no record of prompts, everything is declared at the start.
#[test]
fn caller_with_only_anchors_gets_late_items_at_the_start() {
    let manager = manager_for("claude-fable-5-2", &Config::default());
    let mut log = Conversation::from([Message::system("Be brief."), Message::user("Where is it?")]);
    let first = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    log.push(Message::assistant("Here."));
    log.push(Message::user("Thanks."));
    log.push_system("rules", "Never dig at night.");
    let plan = manager.build_plan(&PlanRequest::new(&log).with_previous(first.anchor())).unwrap();
    assert!(plan.included.iter().position(|row| row.id == "rules").is_some_and(|at| at <= 1));
}

/// Tools hosted by another provider add nothing.
#[test]
fn a_foreign_tool_adds_nothing() {
    for model in CHECKING {
        let mut talk = Talk::new(model);
        talk.step();
        talk.tools.push(tool("dig"));
        talk.step();
        let before = body(&talk.plan());
        let foreign =
            if model.starts_with("gpt") { WireFormat::Anthropic } else { WireFormat::OpenAiResponses };
        talk.tools.push(Tool::hosted("search", foreign, r#"{"type": "web_search"}"#));
        assert_eq!(body(&talk.plan()), before, "{model}");
    }
}
