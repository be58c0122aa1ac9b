//! Plans for chat templates compared with the released tokenizers (rule N3).

use context_window::{
    Config, ContextPlan, ContextWindowManager, Model, PlanRequest, RagItem, RequestLimits, TokenCounter,
    Tool, provider::ChatTemplate, render, tokens::Certainty,
};
use context_window_benches::{corpus::conversation, tokenizers};
use std::path::Path;

fn template_of(model: &Model) -> &ChatTemplate {
    model.template.as_ref().unwrap()
}

/// Counts the whole prompt with the reference, including its real control tokens.
fn by_reference(folder: &Path, text: &str) -> u64 {
    let mut reference = tokenizers_v0::Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
    reference.with_truncation(None).unwrap();
    reference.encode_fast(text, false).unwrap().len() as u64
}

fn ledger(plan: &ContextPlan) -> i128 {
    let items = plan.included.iter().map(|item| i128::from(item.token_estimate.tokens));
    items.chain(plan.overhead.iter().map(|line| i128::from(line.tokens))).sum()
}

/// With a chat template, the total is the count of the rendered text at any budget (rule N3).
#[test]
fn chat_template_plan_total_equals_count_of_rendered_text() {
    let tools = [Tool::new(
        "stock",
        "Counts \"<b>\" things & 'more'.",
        r#"{"type":"object","properties":{"item":{"type":"string"}}}"#,
    )];
    let documents =
        [RagItem::new("d1", 0.9, "Finch kettles whistle."), RagItem::new("d2", 0.8, "Wrens do not.")];
    let mut folders = tokenizers::folders();
    folders.retain(|folder| ChatTemplate::from_folder(folder).is_ok());
    for folder in folders {
        let model = Model::custom("m").with_template(ChatTemplate::from_folder(&folder).unwrap());
        let manager = ContextWindowManager::new(
            model.clone(),
            TokenCounter::huggingface(&folder).unwrap(),
            Config::default(),
        );
        let manager = manager.unwrap();
        let log = conversation();
        let mut joined = 0;
        for budget in [300, 500, 800, 1_300, 2_500, 20_000] {
            let request = PlanRequest::new(&log)
                .with_rag(documents.clone())
                .with_tools(&tools)
                .with_limits(RequestLimits::prompt_budget(budget));
            let plan = match manager.build_plan(&request) {
                Ok(plan) => plan,
                // Some templates support no tools and give an error.
                Err(error) => {
                    assert!(
                        error.to_string().contains("roles must alternate"),
                        "{}: {error}",
                        folder.display()
                    );
                    break;
                }
            };
            let text = render::chat_template(&plan, template_of(&model)).unwrap();
            assert_eq!(
                plan.estimated_tokens_total.tokens,
                by_reference(&folder, &text),
                "{} at {budget}",
                folder.display()
            );
            assert_eq!(i128::from(plan.estimated_tokens_total.tokens), ledger(&plan));
            assert_eq!(plan.estimated_tokens_total.certainty, Certainty::Exact);
            // The frame that a template adds to a message is estimated, so only the total is exact.
            assert!(plan.included.iter().all(|item| item.token_estimate.certainty == Certainty::Estimate));
            assert!(
                plan.estimated_tokens_total.tokens <= budget || plan.overflow.is_some(),
                "{} at {budget}",
                folder.display()
            );
            assert!(text.contains("And the Wren?"), "{}", folder.display());
            joined +=
                plan.overhead.iter().filter(|line| line.what.name() == "joins" && line.tokens != 0).count();
        }
        eprintln!("{}: {joined} plans with joins", folder.display());
    }
}
