//! Reasoning that models write into the text (rule K9).

use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, TokenCounter, ToolCall,
    config::ThinkTags, plan::NoticeCode,
};

/// Returns the sent texts and the tokens of the plan.
fn sent(model: &str, think_tags: ThinkTags, messages: &[Message]) -> (Vec<String>, u64) {
    let mut config = Config::default();
    config.conversation.think_tags = think_tags;
    let manager =
        ContextWindowManager::new(Model::named(model).unwrap(), TokenCounter::bytes(), config).unwrap();
    let mut log = Conversation::new();
    for message in messages {
        log.push(message.clone());
    }
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    let texts: Vec<String> = plan.messages().iter().map(|message| message.text().to_owned()).collect();
    let is_told = plan.notices.iter().any(|notice| notice.code == NoticeCode::ReasoningDropped);
    let is_cut = texts.iter().zip(messages).any(|(sent, own)| sent != own.text());
    assert_eq!(is_told, is_cut, "{:?}", plan.notices);
    (texts, plan.estimated_tokens_total.tokens)
}

fn turns() -> [Message; 5] {
    [
        Message::user("Q0"),
        Message::assistant("<think>plank plank plank</think>\n\nA0"),
        Message::user("Q1"),
        // Some templates open the tag in the prompt.
        Message::assistant("plank plank</think>A1"),
        Message::user("Q2"),
    ]
}

#[test]
fn registry_decides_unless_the_option_is_set() {
    let kept = turns().map(|message| message.text().to_owned());
    let cut = ["Q0", "A0", "Q1", "A1", "Q2"].map(str::to_owned);
    for (model, think_tags, expected) in [
        ("deepseek-r1", ThinkTags::Auto, &cut),
        ("qwq-32b", ThinkTags::Auto, &cut),
        ("minimax-m2", ThinkTags::Auto, &kept),
        ("gpt-4o", ThinkTags::Auto, &kept),
        ("deepseek-r1", ThinkTags::Keep, &kept),
        ("gpt-4o", ThinkTags::Reasoning, &cut),
        ("claude-sonnet-4-5", ThinkTags::Reasoning, &cut),
    ] {
        let (texts, tokens) = sent(model, think_tags, &turns());
        assert_eq!(texts, expected, "{model} {think_tags:?}");
        let other = if *expected == cut { ThinkTags::Keep } else { ThinkTags::Reasoning };
        let (_, others) = sent(model, other, &turns());
        assert_eq!(tokens < others, *expected == cut, "{model}: {tokens} and {others} tokens");
    }
}

#[test]
fn running_turn_sends_think_tags_unchanged() {
    let call = || Message::assistant("<think>look</think>").with_tool_calls([ToolCall::new("c", "f", "{}")]);
    let said = [Message::user("Q"), call(), Message::tool("c", "R")];
    assert_eq!(sent("deepseek-r1", ThinkTags::Auto, &said).0, ["Q", "<think>look</think>", "R"]);
    let over = [&said[..], &[Message::assistant("A"), Message::user("Q1")]].concat();
    assert_eq!(sent("deepseek-r1", ThinkTags::Auto, &over).0, ["Q", "", "R", "A", "Q1"]);
}

#[test]
fn other_think_tags_are_kept() {
    for text in ["<think>alone</think>", "About <think>tags</think> in texts", "<think>open", "A <b>"] {
        let said = [Message::user("Q"), Message::assistant(text), Message::user("<think>mine</think> Q1")];
        let texts = sent("deepseek-r1", ThinkTags::Auto, &said).0;
        assert_eq!(texts, ["Q", text, "<think>mine</think> Q1"]);
    }
}
