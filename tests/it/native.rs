//! Documents as blocks that the model can cite.

use crate::support::generate;
use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, ErrorKind, Message, Model, Part, PlanRequest,
    RagItem, RequestLimits, TokenCounter, WireFormat,
    analysis::CitationVerdict,
    config::{DocumentFormat, Placement, RagOptions},
    plan::{NoticeCode, PrefixCause},
    render,
};
use context_window_formats::{Session, SessionTexts, session_json};
use proptest::prelude::*;
use serde_json::{Value, json};

fn manager(model: &str, change: impl FnOnce(&mut RagOptions)) -> ContextWindowManager {
    let mut config = Config::default();
    config.rag.format = DocumentFormat::Native;
    change(&mut config.rag);
    ContextWindowManager::new(Model::named(model).unwrap(), generate::bytes(), config).unwrap()
}

const CLAUDE: &str = "claude-sonnet-4-5";

fn request(log: &Conversation, documents: Vec<RagItem>, budget: u64) -> PlanRequest<'_> {
    PlanRequest::new(log).with_rag(documents).with_limits(RequestLimits::prompt_budget(budget))
}

/// Returns all documents of a request body in order.
fn blocks(plan: &ContextPlan) -> Vec<Value> {
    all_blocks(plan).into_iter().filter(|block| block["type"] == "document").collect()
}

/// Returns the content of all messages of a request body in order.
fn all_blocks(plan: &ContextPlan) -> Vec<Value> {
    let body = serde_json::to_value(render::anthropic(plan)).unwrap();
    let messages = body["messages"].as_array().unwrap().clone();
    let content = messages.into_iter().flat_map(|mut message| match message["content"].take() {
        Value::Array(blocks) => blocks,
        _ => Vec::new(),
    });
    content.collect()
}

fn titles(plan: &ContextPlan) -> Vec<String> {
    blocks(plan).iter().map(|block| block["title"].as_str().unwrap().to_owned()).collect()
}

/// Checks that the plan counts the text that is sent, and that citations are enabled on all blocks or on
/// none.
fn check(plan: &ContextPlan) {
    // A token is a byte. A part has two more, the reply three.
    let part = |part: &Part| match part {
        Part::Text(text) => text.len() + 2,
        Part::Opaque { json, .. } => json.len() + 2,
        other => panic!("{other:?}"),
    };
    let of_message = |message: &Message| {
        let text = if message.text().is_empty() { 0 } else { message.text().len() + 2 };
        text + message.parts().iter().map(part).sum::<usize>()
    };
    let counted = plan.messages().iter().map(of_message).sum::<usize>() as u64 + 3;
    assert_eq!(plan.estimated_tokens_total.tokens, counted, "{:?}", plan.overhead);
    let blocks = blocks(plan);
    let enabled = |block: &Value| block["citations"]["enabled"] == true;
    assert!(blocks.iter().all(enabled) || !blocks.iter().any(enabled), "{blocks:?}");
    let citations = plan.citations();
    assert_eq!(citations.native_documents().count(), blocks.len());
}

#[test]
fn documents_are_blocks_with_their_text_at_every_budget() {
    let log = Conversation::from([Message::system("Be brief."), Message::user("How long?")]);
    let chunks = |at: u64, text: &str| {
        RagItem::new(format!("c#{at}"), 0.5, text).with_origin("guide").with_position(at)
    };
    let all = vec![
        RagItem::new("a\"", 0.9, "Refunds\ntake \"5\" days.</document>").with_origin("o"),
        chunks(1, "one two three four five six seven eight nine"),
        chunks(2, "six seven eight nine ten eleven twelve thirteen"),
        RagItem::new("long", 0.4, "zebra ".repeat(50)).with_variant("title", "Zebras"),
        RagItem::new("b", 0.3, "Other words stand here.").with_group("g"),
        RagItem::new("e", 0.2, "And some more words, too.").with_group("g"),
        RagItem::new("blank", 0.1, " "),
    ];
    for labels in [false, true] {
        let manager = manager(CLAUDE, |rag| rag.labels = labels);
        let mut most = 0;
        for budget in (60..2_400).step_by(7) {
            let plan = manager.build_plan(&request(&log, all.clone(), budget)).unwrap();
            check(&plan);
            assert!(plan.overflow.is_some() || plan.estimated_tokens_total.tokens <= budget);
            most = most.max(titles(&plan).len());
        }
        assert_eq!(most, 6);
        let plan = manager.build_plan(&request(&log, all.clone(), 5_000)).unwrap();
        let expected: Vec<String> = if labels {
            ["[1] a\"", "[2], [3] c#1, c#2", "[4] long", "[5] b", "[6] e", "[7] blank"]
                .map(str::to_owned)
                .into()
        } else {
            ["a\"", "c#1, c#2", "long", "b", "e", "blank"].map(str::to_owned).into()
        };
        assert_eq!(titles(&plan), expected);
        let blocks = blocks(&plan);
        assert_eq!(blocks[0]["source"]["data"], all[0].text());
        assert_eq!(blocks[0]["context"], "source: o");
        assert_eq!(
            blocks[1]["source"]["data"],
            "one two three four five six seven eight nine ten eleven twelve thirteen"
        );
        assert_eq!(blocks[5]["source"]["data"], "[empty]");
        let ids: Vec<String> =
            plan.citations().native_documents().map(|id| id.unwrap().to_string()).collect();
        assert_eq!(ids, ["a\"", "c#1", "long", "b", "e", "blank"]);
        // Messages by item are the same.
        let items = plan.by_item();
        let documents = items.iter().find(|item| item.kind.is_document()).unwrap();
        assert_eq!((documents.ids.len(), documents.message.parts().len()), (7, 6));
        // The parts are never text that a document could imitate.
        assert!(!plan.messages().iter().any(|message| message.text().contains("<document")));
    }
}

#[test]
fn other_providers_get_text_with_a_notice() {
    let log = Conversation::from([Message::user("How?")]);
    for (model, native) in [("gpt-4o", false), ("gemini-2.5-pro", false), (CLAUDE, true)] {
        let plan = manager(model, |_| {})
            .build_plan(&request(&log, vec![RagItem::new("a", 0.9, "x")], 900))
            .unwrap();
        let says = plan.notices.iter().any(|notice| notice.code == NoticeCode::DocumentsAsText);
        assert_eq!(says, !native, "{model}");
        let texts = |plan: &ContextPlan| format!("{:?}", plan.messages());
        assert_eq!(texts(&plan).contains("<document id"), !native, "{model}");
        let without = manager(model, |_| {}).build_plan(&request(&log, Vec::new(), 900)).unwrap();
        assert!(without.notices.is_empty());
    }
}

fn own_block(citations: Value) -> Part {
    let json = json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Mine."},
        "citations": {"enabled": citations}});
    Part::Opaque { wire_format: WireFormat::Anthropic, json: json.to_string() }
}

#[test]
fn blocks_of_the_application_decide_for_all() {
    let item = || vec![RagItem::new("a", 0.9, "Refunds take 5 days.")];
    for enabled in [true, false] {
        let manager =
            manager(CLAUDE, |rag| (rag.placement, rag.question_limit) = (Placement::WithQuestion, 1000));
        let mut log = Conversation::from([Message::user("How?")]);
        let first = manager.build_plan(&request(&log, item(), 900)).unwrap();
        check(&first);
        log.push_reply(&first, Message::assistant("So."), None);
        log.push(Message::user("And here?").with_parts([own_block(json!(enabled))]));
        let more = vec![RagItem::new("b", 0.9, "Other words.")];
        let plan = manager.build_plan(&request(&log, more, 1_900)).unwrap();
        check(&plan);
        assert_eq!(blocks(&plan).len(), 3);
        assert_eq!(blocks(&plan)[0]["citations"]["enabled"], enabled);
        let says = plan.notices.iter().any(|notice| notice.code == NoticeCode::CitationsOff);
        assert_eq!(says, !enabled);
        // The number of a document counts the application's blocks too.
        let citations = plan.citations();
        let ids: Vec<Option<&str>> =
            citations.native_documents().map(|id| id.map(|id| id.as_str())).collect();
        assert_eq!(ids, [Some("a"), Some("b"), None]);
    }
}

#[test]
fn structured_output_with_citations_is_refused() {
    let log = Conversation::from([Message::user("How?")]);
    let item = || vec![RagItem::new("a", 0.9, "Refunds take 5 days.")];
    let error =
        manager(CLAUDE, |_| {}).build_plan(&request(&log, item(), 900).with_structured_output()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert_eq!(
        error.to_string(),
        "the provider refuses citations together with structured output (rule S20); set rag.format = \"text\", or ask for plain text"
    );
    for (model, documents) in [("gpt-4o", item()), (CLAUDE, Vec::new())] {
        assert!(
            manager(model, |_| {})
                .build_plan(&request(&log, documents, 900).with_structured_output())
                .is_ok()
        );
    }
}

/// All documents of a prompt have one format, which changes only after documents left together. Until then
/// the beginning of each prompt is the whole one before.
#[test]
fn format_changes_after_documents_left_together() {
    let manager = |format| {
        manager(CLAUDE, |rag| {
            (rag.format, rag.placement) = (format, Placement::WithQuestion);
            rag.question_limit = 1000;
        })
    };
    let managers = [manager(DocumentFormat::Text), manager(DocumentFormat::Native)];
    for starts_native in [false, true] {
        let (before, after) = (&managers[usize::from(starts_native)], &managers[usize::from(!starts_native)]);
        let mut log = Conversation::new();
        let (mut last, mut formats) = (None::<ContextPlan>, Vec::new());
        for turn in 0..30 {
            log.push(Message::user(format!("Question {turn}?")));
            let manager = if turn < 2 { before } else { after };
            let text = format!("Text of turn {turn}.\n").repeat(5);
            let documents = vec![RagItem::new(format!("d{}", turn % 4), 0.9, text)];
            let plan = manager.build_plan(&request(&log, documents.clone(), 1_600)).unwrap();
            check(&plan);
            let sent = titles(&plan).len();
            let rows = plan.included.iter().filter(|row| row.kind.is_document()).count();
            assert!(sent == rows || sent == 0, "{sent} of {rows} at {turn}");
            let left = plan.notices.iter().any(|notice| notice.code == NoticeCode::DocumentsReleased);
            formats.push((sent > 0, left));
            let changed = formats.len() > 1 && formats[turn - 1].0 != formats[turn].0;
            let is_cut = plan.notices.iter().any(|notice| notice.code == NoticeCode::WindowCut);
            let now = all_blocks(&plan);
            if let Some(last) = last.as_ref().filter(|_| !left && !is_cut) {
                let before = all_blocks(last);
                assert_eq!(now.starts_with(&before), !changed, "{turn}");
            }
            // The same question keeps its format, also as the prompt grows.
            let again =
                after.build_plan(&request(&log, documents, 1_600).with_previous(plan.anchor())).unwrap();
            check(&again);
            assert_eq!(titles(&again), titles(&plan), "{turn}");
            log.push_reply(&plan, Message::assistant(format!("Answer {turn}.")), None);
            last = Some(plan);
        }
        let first_left = formats.iter().skip(2).position(|(_, left)| *left).unwrap() + 2;
        assert!(formats[..=first_left].iter().all(|(native, _)| *native == starts_native), "{formats:?}");
        assert!(formats[first_left + 1..].iter().all(|(native, _)| *native != starts_native), "{formats:?}");
        // Another provider gets the documents as text.
        let other = self::manager("gpt-4o", |rag| rag.placement = Placement::WithQuestion);
        let plan = other.build_plan(&request(&log, Vec::new(), 1_600)).unwrap();
        let rows = plan.included.iter().filter(|row| row.kind.is_document()).count();
        let body = serde_json::to_string(&render::openai(&plan)).unwrap();
        assert_eq!(body.matches("<document id").count(), rows);
        assert!(rows > 0 && last.is_some());
    }
}

/// The same text in another format is another prompt, and so no part of the beginning that a cache has.
#[test]
fn change_of_the_format_is_a_cache_break() {
    let log = Conversation::from([Message::user("How?")]);
    let documents = || vec![RagItem::new("a", 0.9, "Refunds take 5 days.")];
    let managers = [DocumentFormat::Text, DocumentFormat::Native]
        .map(|format| manager(CLAUDE, |rag| rag.format = format));
    let [text, native] =
        managers.map(|manager| manager.build_plan(&request(&log, documents(), 2_000)).unwrap());
    assert_eq!(native.prefix(&native.anchor()).unwrap().cause, None);
    for (before, after) in [(&text, &native), (&native, &text)] {
        let prefix = after.prefix(&before.anchor()).unwrap();
        assert_eq!((prefix.tokens, prefix.cause), (0, Some(PrefixCause::Changed)));
    }
}

#[test]
fn retained_joined_documents_are_counted_as_sent() {
    let chunk = |at: u64, text: &str| {
        RagItem::new(format!("c#{at}"), 0.5, text).with_origin("guide").with_position(at)
    };
    let chunks = || {
        vec![
            chunk(1, "one \"two\" three four five six seven\neight nine"),
            chunk(2, "six seven\neight nine ten <document> eleven twelve thirteen"),
        ]
    };
    for format in [DocumentFormat::Text, DocumentFormat::Native] {
        // This counter does not add up anywhere.
        let counter = TokenCounter::from_fn("squares", |text| {
            Ok::<_, std::convert::Infallible>((text.len() as u64).pow(2).div_ceil(99))
        });
        let mut config = Config::default();
        (config.rag.format, config.rag.placement) = (format, Placement::WithQuestion);
        (config.rag.question_limit, config.rag.labels) = (1000, true);
        let manager = ContextWindowManager::new(Model::named(CLAUDE).unwrap(), counter, config).unwrap();
        let mut log = Conversation::from([Message::user("How?")]);
        for turn in 0..3 {
            let plan = manager.build_plan(&request(&log, chunks(), 2_000)).unwrap();
            let tokens: i64 = plan.included.iter().map(|row| row.token_estimate.tokens as i64).sum();
            let lines: i64 = plan.overhead.iter().map(|line| line.tokens).sum();
            assert_eq!(tokens + lines, plan.estimated_tokens_total.tokens as i64);
            let part = |text: &str| (text.len() as u64).pow(2).div_ceil(99) + 2;
            let of_message = |message: &Message| {
                let parts = message.parts().iter().map(|one| match one {
                    Part::Text(text) => part(text),
                    Part::Opaque { json, .. } => part(json),
                    other => panic!("{other:?}"),
                });
                let text = if message.text().is_empty() { 0 } else { part(message.text()) };
                text + parts.sum::<u64>()
            };
            let counted = plan.messages().iter().map(of_message).sum::<u64>() + 3;
            assert_eq!(plan.estimated_tokens_total.tokens, counted, "{format:?} {turn}");
            log.push_reply(&plan, Message::assistant("So."), None);
            log.push(Message::user("And?"));
        }
    }
}

#[test]
fn citations_of_a_reply_are_kept_on_replay() {
    let manager =
        manager(CLAUDE, |rag| (rag.placement, rag.question_limit) = (Placement::WithQuestion, 1000));
    let mut log = Conversation::from([Message::user("How?")]);
    let item = || vec![RagItem::new("a", 0.9, "Refunds take 5 days.")];
    let plan = manager.build_plan(&request(&log, item(), 2_900)).unwrap();
    let reply = reply(&[json!({"type": "char_location", "cited_text": "take 5 days", "document_index": 0,
        "document_title": "a", "start_char_index": 8, "end_char_index": 19})]);
    let found = plan.citations().check_native(&reply);
    assert_eq!(
        (found[0].document.as_ref().unwrap().as_str(), found[0].verdict),
        ("a", CitationVerdict::Valid)
    );
    log.push_reply(&plan, reply, None);
    log.push(Message::user("And?"));
    let next = manager.build_plan(&request(&log, Vec::new(), 2_900)).unwrap();
    let body = serde_json::to_value(render::anthropic(&next)).unwrap();
    assert_eq!(body["messages"][1]["content"][0]["citations"][0]["cited_text"], "take 5 days");
}

/// The conversation remembers the text, so a file has it, and gives the same prompt.
#[test]
fn session_with_native_documents_is_read_back() {
    let manager =
        manager(CLAUDE, |rag| (rag.placement, rag.question_limit) = (Placement::WithQuestion, 1000));
    let mut log = Conversation::from([Message::user("How?")]);
    let item = |id: &str| RagItem::new(id, 0.9, format!("{id} says:\n\"Refunds take 5 days.\""));
    let plan = manager.build_plan(&request(&log, vec![item("a")], 2_900)).unwrap();
    log.push_reply(&plan, Message::assistant("So."), None);
    log.push(Message::user("And?"));
    let request = request(&log, vec![item("a"), item("b")], 2_900);
    let plan = manager.build_plan(&request).unwrap();
    assert_eq!(titles(&plan), ["a", "b"]);
    let json = session_json(&manager, &request, SessionTexts::Kept).unwrap();
    let read = Session::from_json(&json).unwrap();
    let again = manager.build_plan(&read.request()).unwrap();
    assert_eq!((again.to_json(), all_blocks(&again)), (plan.to_json(), all_blocks(&plan)));
    let redacted = session_json(&manager, &request, SessionTexts::Redacted).unwrap();
    assert!(!redacted.contains("Refunds"));
    let read = Session::from_json(&redacted).unwrap();
    assert_eq!(titles(&manager.build_plan(&read.request()).unwrap()), ["a", "b"]);
}

#[test]
fn structured_output_of_a_body_is_read_and_written() {
    let manager = manager(CLAUDE, |_| {});
    let read = |more: Value| {
        let mut body = json!({"query": "How?", "rag": [{"id": "a", "score": 1, "text": "x"}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Session::from_json(&body.to_string()).unwrap()
    };
    let schema = json!({"type": "json_schema", "schema": {"type": "object"}});
    let openai = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {}}});
    for more in [
        json!({"output_format": schema}),
        json!({"output_config": {"format": schema}}),
        json!({"response_format": openai}),
        json!({"text": {"format": {"type": "json_schema", "name": "x", "schema": {}}}}),
        json!({"generationConfig": {"responseSchema": {"type": "OBJECT"}}}),
        json!({"generation_config": {"response_json_schema": {"type": "object"}}}),
        json!({"config": {"response_schema": {"type": "OBJECT"}}}),
    ] {
        let session = read(more);
        assert!(manager.build_plan(&session.request()).is_err());
        let written = session_json(&manager, &session.request(), SessionTexts::Kept).unwrap();
        assert!(Session::from_json(&written).unwrap().structured_output);
    }
    for more in [
        json!({"output_format": null}),
        json!({"output_config": {"effort": "low"}}),
        json!({"response_format": {"type": "json_object"}}),
        json!({"text": {"format": {"type": "text"}, "verbosity": "low"}}),
        json!({"generationConfig": {"responseMimeType": "application/json", "responseSchema": null}}),
        json!({}),
    ] {
        let session = read(more);
        assert!(!session.structured_output && manager.build_plan(&session.request()).is_ok());
    }
}

/// Builds a reply of one text as Anthropic writes it.
fn reply(citations: &[Value]) -> Message {
    let body = json!({"messages": [{"role": "assistant", "content": [
        {"type": "text", "text": "Soon.", "citations": citations}]}]});
    Session::from_json(&body.to_string()).unwrap().log.messages()[0].clone()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..generate::cases(200, 1_000) })]

    #[test]
    fn native_citations_are_judged_without_error(
        texts in prop::collection::vec("[a-z \\n\"<]{1,40}", 1..6),
        cited in prop::collection::vec((0u64..8, 0u8..3, 0usize..40, 1usize..40), 0..8),
    ) {
        let manager = manager(CLAUDE, |rag| (rag.near_duplicates, rag.repeats) = (0, 0));
        let log = Conversation::from([Message::user("How?")]);
        let items: Vec<RagItem> = (0..).zip(&texts).map(|(at, text)| {
            RagItem::new(format!("d{at}"), 0.5, format!("{at} {text} end"))
        }).collect();
        let plan = manager.build_plan(&request(&log, items.clone(), 90_000)).unwrap();
        check(&plan);
        let citations = plan.citations();
        let ids: Vec<String> = citations.native_documents().map(|id| id.unwrap().to_string()).collect();
        let mut expected = Vec::new();
        let mut written = Vec::new();
        for (document, kind, from, length) in cited {
            let item = ids.get(document as usize).map(|id| items.iter().find(|item| item.id().as_str() == id).unwrap());
            let letters: Vec<char> = item.map_or("none", |item| item.text()).chars().collect();
            let from = from.min(letters.len() - 1);
            let real: String = letters[from..(from + length).min(letters.len())].iter().collect();
            let (quote, verdict) = match (item, kind) {
                (None, _) => (real, CitationVerdict::Unknown),
                (_, 0) => (format!("{real}Z"), CitationVerdict::Misquoted),
                // White space is folded.
                (_, 1) => (real.replace(' ', "\n "), CitationVerdict::Valid),
                _ => (real, CitationVerdict::Valid),
            };
            written.push(json!({"type": "char_location", "cited_text": quote, "document_index": document}));
            expected.push((document, verdict));
        }
        let found: Vec<(u64, CitationVerdict)> = citations
            .check_native(&reply(&written)).iter().map(|one| (one.document_index, one.verdict)).collect();
        prop_assert_eq!(found, expected);
    }
}
