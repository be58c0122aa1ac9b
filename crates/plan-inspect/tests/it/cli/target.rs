//! The target of a prompt: options, models, limits, wire formats.

use super::{EXAMPLE, fails, file, inspect, out};
use serde_json::Value;
use std::path::PathBuf;

#[test]
fn options_come_from_file_environment_and_flags() {
    let path = file("layers.toml", b"preset = \"rag\"\n[rag]\nmax_items = 3\n[ttl]\npolicy = \"ask\"\n");
    let path = path.to_str().unwrap();
    let show = |args: &[&str]| {
        let mut command = inspect(&[&["config", "show", "--origin"], args].concat());
        let output = command
            .env("CONTEXT_WINDOW_CONFIG", path)
            .env("CONTEXT_WINDOW_TTL__POLICY", "unlimited")
            .assert();
        String::from_utf8(output.success().get_output().stdout.clone()).unwrap().replace(path, "layers.toml")
    };
    insta::assert_snapshot!(show(&["--set", "rag.max_items=7"]));
    let json: Value = serde_json::from_str(&show(&["--format", "json"])).unwrap();
    let setting = json["settings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|setting| setting["key"] == "rag.max_items")
        .unwrap();
    assert_eq!((&setting["value"], &setting["origin"]), (&3.into(), &"layers.toml:3".into()));
    // The printed options are a file that can be loaded again.
    let again = file("again.toml", out(&["config", "show", "--config", path]).as_bytes());
    assert_eq!(out(&[EXAMPLE, "--config", again.to_str().unwrap()]), out(&[EXAMPLE, "--config", path]));
    let mut command = inspect(&[EXAMPLE]);
    let error =
        command.env("CONTEXT_WINDOW_RAG__MAX_ITEMS", "many").assert().code(2).get_output().stderr.clone();
    assert!(String::from_utf8(error).unwrap().contains("environment CONTEXT_WINDOW_RAG__MAX_ITEMS"));
    assert!(fails(&[EXAMPLE, "--set", "rag.max_items"]).contains("KEY=VALUE"));
    assert!(fails(&[EXAMPLE, "--preset", "agnet"]).contains("agent"));
}

#[test]
fn models_are_listed_shown_and_imported() {
    assert!(out(&["models", "list", "claude", "haiku"]).contains("claude-haiku-4-5"));
    insta::assert_snapshot!(out(&["models", "show", "gpt-5-2025-08-07"]));
    insta::assert_snapshot!(fails(&["models", "show", "gpt-5-minni"]), @r"
    plan-inspect: model `gpt-5-minni` is not in the registry; did you mean `gpt-5-mini`?
    `plan-inspect models list` shows all of them
    ");
    let json: Value = serde_json::from_str(&out(&["models", "list", "kimi-k3", "--format", "json"])).unwrap();
    assert_eq!(json["models"][0]["provider"], "moonshot");
    let catalogue = file(
        "catalogue.json",
        br#"{"acme": {"models": {"wren-2": {"limit": {"context": 5000, "output": 900}, "cost": {"input": 1, "output": 2}}}}}"#,
    );
    let own = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("own-models.toml");
    let own = own.to_str().unwrap();
    let said = out(&["models", "import", catalogue.to_str().unwrap(), "--date", "2026-11-22", "-o", own]);
    assert!(said.starts_with("1 models of "), "{said}");
    assert!(out(&["models", "show", "wren-2", "--models", own]).contains("5,000 tokens"));
    let plan: Value =
        serde_json::from_str(&out(&[EXAMPLE, "--model", "acme/wren-2", "--models", own, "--format", "json"]))
            .unwrap();
    assert_eq!((&plan["model_context_len"], &plan["max_completion_tokens"]), (&5000.into(), &900.into()));
    assert_eq!(plan["certainty"], "estimate");
    assert!(fails(&["models", "list", "zzzz"]).contains("zzzz"));
}

#[test]
fn limits_and_target_are_flags() {
    let plan = |args: &[&str]| -> Value {
        let args: Vec<&str> = [EXAMPLE, "--format", "json"].iter().chain(args).copied().collect();
        serde_json::from_str(&out(&args)).unwrap()
    };
    let flags = plan(&["--context-len", "9000", "--max-completion", "1000", "--safety-buffer", "500"]);
    assert_eq!((&flags["prompt_budget"], &flags["limits_source"]), (&7500.into(), &"request".into()));
    let model = plan(&["--model", "gpt-5"]);
    assert_eq!((&model["prompt_budget"], &model["budget_source"]), (&270_976.into(), &"max_input".into()));
    assert_eq!(plan(&["--tokenizer", "chars/4"])["certainty"], "estimate");
    assert_eq!(plan(&["--wire-format", "openai"])["target"]["provider"], "openai");
    let config = file("config.toml", b"[rag]\nmax_items = 1\n");
    let capped = plan(&["--config", config.to_str().unwrap()]);
    assert_eq!(capped["sections"]["rag"]["included"], 1);
}

#[test]
fn chat_template_is_counted_and_printed_unchanged() {
    let folder = "tests/tokenizers/small";
    let args = [EXAMPLE, "--budget", "700", "--tokenizer", folder, "--wire-format", "chat-template"];
    let plan: Value = serde_json::from_str(&out(&[&args[..], &["--format", "json"]].concat())).unwrap();
    assert_eq!(plan["certainty"], "exact");
    assert!(plan["tokenizer"].as_str().unwrap().starts_with("small@"));
    let sent = out(&[&args[..], &["--format", "messages"]].concat());
    assert!(
        sent.starts_with("<|endoftext|><|im_start|>system") && sent.ends_with("<|im_start|>assistant\n"),
        "{sent}"
    );
    assert!(out(&args).contains("joined texts"), "{}", out(&args));
    let of_the_guide = format!("plan-inspect {EXAMPLE} --tokenizer {folder} --wire-format chat-template");
    assert!(
        std::fs::read_to_string(crate::support::root().join("docs/guide/counting.md"))
            .unwrap()
            .contains(&of_the_guide)
    );
    insta::assert_snapshot!(fails(&[EXAMPLE, "--wire-format", "chat-template"]), @"plan-inspect: --wire-format chat-template: there is no template; expected --tokenizer with the model's folder, which contains tokenizer.json and chat_template.jinja or tokenizer_config.json");
    let none = fails(&[EXAMPLE, "--wire-format", "chat-template", "--tokenizer", "examples"]);
    assert!(
        none.starts_with("plan-inspect: chat template examples/tokenizer_config.json: has no chat template"),
        "{none}"
    );
    let broken = fails(&[EXAMPLE, "--tokenizer", "examples/support-chat.json"]);
    assert!(
        broken.contains("examples/support-chat.json") && broken.contains("expected a tokenizer.json"),
        "{broken}"
    );
}

#[test]
fn a_margin_that_is_set_is_shown() {
    let text = out(&[
        EXAMPLE,
        "--tokenizer",
        "chars/4",
        "--set",
        "tokens.calibration_per_mille=1250",
        "--budget",
        "800",
    ]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("(estimate, calibrated x 1.250 set by option)") && text.contains("token calibration "),
        "{text}"
    );
}

/// Every provider's body from the command line, with cache marks on request if the provider has them.
#[test]
fn every_provider_has_a_request_body() {
    let first = |args: &[&str]| {
        let body: serde_json::Value = serde_json::from_str(&out(args)).unwrap();
        body.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
    };
    for (provider, keys) in [
        ("openai", "messages tools"),
        ("openai-responses", "input tools"),
        ("anthropic", "system messages tools"),
        ("gemini", "systemInstruction contents tools"),
    ] {
        assert_eq!(first(&[EXAMPLE, "--wire-format", provider, "--format", "messages"]), keys, "{provider}");
    }
    let args = [EXAMPLE, "--model", "gpt-4o", "--format", "messages", "--breakpoints"];
    let said = String::from_utf8(inspect(&args).assert().success().get_output().stderr.clone()).unwrap();
    assert!(said.contains("breakpoints: none"), "{said}");
}

#[test]
fn tool_that_reads_results_is_declared_on_request() {
    let session = |tools: &str| {
        let result = "line\\n".repeat(10_000);
        let call = r#"{"id": "c", "type": "function", "function": {"name": "list", "arguments": "{}"}}"#;
        format!(
            r#"{{"model": "gpt-4o", "tools": [{tools}], "messages": [{{"role": "user", "content": "List it."}},
            {{"role": "assistant", "tool_calls": [{call}]}},
            {{"role": "tool", "tool_call_id": "c", "content": "{result}"}}]}}"#
        )
    };
    let plain = file("results.json", session("").as_bytes());
    let plain = plain.to_str().unwrap();
    let offload = ["--set", "conversation.tool_results=offload"];
    let whole = out(&[&[plain][..], &offload].concat());
    assert!(whole.contains("m2: sent whole: offloading needs the tool recall in the request"), "{whole}");
    let short = out(&[&[plain, "--recall-tool"][..], &offload].concat());
    assert!(short.contains("m2: only beginning and end are sent; the tool recall reads the rest"), "{short}");
    let own = r#"{"type": "function", "function": {"name": "recall", "parameters": {"properties": {"product": {}}}}}"#;
    let own = file("own.json", session(own).as_bytes());
    insta::assert_snapshot!(fails(&[own.to_str().unwrap(), "--recall-tool"]), @"plan-inspect: --recall-tool: the session declares a tool `recall` of its own without a parameter `handle`; expected a session without it, or with it under another name");
}
