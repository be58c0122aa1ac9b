//! Model names (rule B7): one case for each kind of rule, and names that no rule resolves.

use context_window::{Model, Registry, WireFormat};
use proptest::prelude::*;

/// Returns the name of the entry for a model name.
fn found(name: &str) -> Option<&'static str> {
    Registry::built_in().unwrap().entry(name).map(|entry| entry.name.as_str())
}

#[test]
fn each_rule_leads_to_the_entry() {
    for (name, entry) in [
        // Providers and routers before the name.
        ("openai:gpt-4o", "gpt-4o"),
        ("azure/gpt-4o", "gpt-4o"),
        ("google-gla:gemini-2.5-pro", "gemini-2.5-pro"),
        ("models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("openrouter:anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("vertex_ai/claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("projects/p/locations/l/publishers/anthropic/models/claude-opus-4-1@20250805", "claude-opus-4-1"),
        ("anthropic--claude-4.5-sonnet", "claude-sonnet-4-5"),
        ("databricks-claude-opus-4-1", "claude-opus-4-1"),
        ("accounts/fireworks/models/llama-v3p1-8b-instruct", "llama-3.1-8b-instruct"),
        ("accounts/fireworks/models/glm-4p6", "glm-4.6"),
        ("@cf/meta/llama-3.1-8b-instruct", "llama-3.1-8b-instruct"),
        // Variants, dates and versions after the name.
        ("openai/gpt-oss-120b:free", "gpt-oss-120b"),
        ("anthropic/claude-3.7-sonnet:thinking", "claude-3-7-sonnet"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("openrouter/openai/GPT-4o-20240806", "gpt-4o"),
        ("gpt-4o@20240806", "gpt-4o"),
        ("gemini-2.0-flash-001", "gemini-2.0-flash"),
        ("gemini-2.5-pro-preview-06-05", "gemini-2.5-pro"),
        ("deepseek-v3.1-maas", "deepseek-v3.1"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b-instruct"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct-FP8", "llama-3.1-8b-instruct"),
        // Amazon Bedrock: ids, inference profiles, ARNs.
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("bedrock/converse/eu.anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("global.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("us.meta.llama3-1-8b-instruct-v1:0", "llama-3.1-8b-instruct"),
        ("us.deepseek.r1-v1:0", "deepseek-r1"),
        ("openai.gpt-oss-120b-1:0", "gpt-oss-120b"),
        ("arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-pro-v1:0", "nova-pro"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5",
        ),
        (
            "bedrock/arn:aws-us-gov:bedrock:r:1:inference-profile/anthropic.claude-3-haiku-20240307-v1:0",
            "claude-3-haiku",
        ),
        // Local models: tags and quantised weights.
        ("llama3.1", "llama-3.1-8b-instruct"),
        ("llama3.1:latest", "llama-3.1-8b-instruct"),
        ("llama3.1:8b-instruct-q4_K_M", "llama-3.1-8b-instruct"),
        ("ollama/llama3.1:70b", "llama-3.1-70b-instruct"),
        ("gemma3:27b", "gemma-3-27b-it"),
        ("gpt-oss:120b-cloud", "gpt-oss-120b"),
        // Fine-tuned models.
        ("ft:gpt-4o-2024-08-06:acme::A1b2C3", "gpt-4o"),
        ("openai/ft:gpt-4.1-mini-2025-04-14:acme:helper:A1b2", "gpt-4.1-mini"),
        ("ft:gpt-3.5-turbo", "gpt-3.5-turbo"),
        // Other spellings.
        ("claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("gpt-4-1-mini", "gpt-4.1-mini"),
        ("gpt-35-turbo", "gpt-3.5-turbo"),
        ("azure/gpt-35-turbo-16k", "gpt-3.5-turbo-16k"),
        ("Claude-Opus-4.6", "claude-opus-4-6"),
    ] {
        assert_eq!(found(name), Some(entry), "{name}");
    }
}

#[test]
fn a_name_that_no_rule_explains_is_unknown() {
    for name in [
        // Parts of a name, and names with additional text.
        "gpt",
        "gpt-4o-",
        "my-gpt-4o",
        "gpt-4o-my",
        "gpt-4omni",
        "claude-sonnet",
        "xgpt-4o",
        "notopenai:gpt-4o-tuned",
        // Ids that name no model.
        "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/gpt-4o",
        "arn:aws:bedrock:us-east-1:123456789012:provisioned-model/claude-sonnet-4-5",
        "arn:aws:sagemaker:us-east-1:123456789012:endpoint/llama-3.1-8b-instruct",
        "ft:davinci-002:acme::x",
        // Sizes and derivatives that are other models.
        "deepseek-r1:1b",
        "deepseek-r1-distill-qwen-1.5b",
        "llama3.1:3b",
        "gpt-4o:70b",
        // Invalid dates.
        "gpt-4o-2024-08-0x",
        "gpt-4o-2024",
        "-2024-08-06",
        "é2024-08-06",
        "",
        "/",
        ":",
        ".",
        "ft:",
        "[1m]",
        ":free",
    ] {
        assert_eq!(found(name), None, "{name}");
    }
    assert_eq!(Model::named("openai:gpt-4o-minni").unwrap().near.as_deref(), Some("gpt-4o-mini"));
}

#[test]
fn an_ending_sets_the_context_length() {
    let length = |name: &str| Model::named(name).unwrap().context_len;
    assert_eq!(length("claude-sonnet-4-5"), Some(200_000));
    assert_eq!(length("claude-sonnet-4-5[1m]"), Some(1_000_000));
    assert_eq!(length("anthropic/claude-opus-4.6[1m]"), Some(1_000_000));
    assert_eq!(length("anthropic.claude-3-haiku-20240307-v1:0:48k"), Some(48_000));
    let long = Model::named("gpt-5[1m]").unwrap();
    assert_eq!(
        (long.context_len, long.max_input),
        (Some(1_000_000), None),
        "an input limit of another length"
    );
    let unknown = Model::named("nobody-7b[1m]").unwrap();
    assert!(unknown.unknown && unknown.context_len.is_none());
}

/// A name in another notation has the limits, wire format and price of its entry.
#[test]
fn a_read_name_has_the_figures_of_its_entry() {
    let model = Model::named("us.anthropic.claude-sonnet-4-5-20250929-v1:0").unwrap();
    let own = Model::named("claude-sonnet-4-5").unwrap();
    assert_eq!(model.wire_format, WireFormat::Anthropic);
    let mut renamed = model.clone();
    renamed.name.clone_from(&own.name);
    assert_eq!(renamed, own);
}

#[test]
fn names_in_a_users_file_have_priority() {
    let long = "deep/".repeat(400) + "own";
    let text = format!(
        "[[model]]\nname = \"openai:gpt-4o\"\nprovider = \"me\"\ncontext_len = 9\n\
         [[model]]\nname = \"{long}\"\nprovider = \"me\"\ncontext_len = 8\n"
    );
    let own = Registry::from_toml(&text, "own.toml").unwrap().with_fallback(Registry::built_in().unwrap());
    assert_eq!(own.entry("OpenAI:gpt-4o").unwrap().context_len, Some(9));
    assert_eq!(own.entry("gpt-4o").unwrap().context_len, Some(128_000));
    assert_eq!(own.entry(&long).unwrap().context_len, Some(8));
}

/// The work for a name is bounded: such names are rejected as unknown at once.
#[test]
fn hostile_names_are_bounded() {
    for name in [
        "a".repeat(1 << 20),
        "openai:".repeat(10_000) + "gpt-4o",
        "us.".repeat(10_000) + "gpt-4o",
        "gpt-4o".to_owned() + &":free".repeat(10_000),
        "1p".repeat(5_000),
        "é".repeat(10_000),
        "arn:".repeat(10_000),
    ] {
        assert_eq!(found(&name), None);
    }
    // A name of the maximum length that needs the largest number of rules.
    let bytes = 512 - "gpt-4o".len();
    for (beginning, ending) in
        [("us.", ""), ("openai:", ""), ("a/", ""), ("", ":free"), ("us.", "-v1"), ("llama-v", "")]
    {
        let each = beginning.len() + ending.len();
        let name = beginning.repeat(bytes / each) + "gpt-4o" + &ending.repeat(bytes / each);
        let _ = Model::named(&name).unwrap();
    }
}

proptest! {
    /// An entry is found by its name and each alias, with any known prefix and suffix.
    #[test]
    fn a_decorated_name_is_its_entry(
        at in 0..usize::MAX,
        nth in 0..usize::MAX,
        before in prop::sample::select(vec!["", "openai:", "azure/", "openrouter/a/", "us.anthropic.", "bedrock/eu.meta."]),
        behind in prop::sample::select(vec!["", "@20250929", ":free", "-2031-02-03", "-20310203-v1:0", "-q4_K_M", "@latest"]),
        capital in any::<bool>(),
    ) {
        let registry = Registry::built_in().unwrap();
        let entry = &registry.entries()[at % registry.entries().len()];
        let names: Vec<&String> = std::iter::once(&entry.name).chain(&entry.aliases).collect();
        let name = format!("{before}{}{behind}", names[nth % names.len()]);
        let name = if capital { name.to_uppercase() } else { name };
        prop_assert_eq!(registry.entry(&name).map(|found| &found.name), Some(&entry.name), "{}", name);
    }
}
