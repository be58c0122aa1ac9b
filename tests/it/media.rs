//! Images, documents, sound and video in plans: their counts (rule N3), and tool results with media (rule
//! S7).

use crate::support::media::{base64, mp4, pdf, png, wav};
use context_window::tokens::Certainty;
use context_window::{
    ContextPlan, ContextWindowManager, Conversation, Message, Part, PlanRequest, Usage, WireFormat,
};
use context_window_formats::{Session, SessionTexts, session_json};
use serde_json::{Value, json};

fn manager(model: &str) -> ContextWindowManager {
    ContextWindowManager::for_model(model).unwrap()
}

fn plan(body: &Value) -> ContextPlan {
    let session = Session::from_json(&body.to_string()).unwrap();
    manager(body["model"].as_str().unwrap()).build_plan(&session.request()).unwrap()
}

fn picture(width: u32, height: u32) -> Value {
    let url = format!("data:image/png;base64,{}", base64(&png(width, height)));
    json!({"type": "image_url", "image_url": {"url": url}})
}

/// Returns the additional tokens of a question with these parts, compared with the question alone.
fn cost(model: &str, parts: &[Value]) -> (u64, Certainty) {
    let text = json!({"type": "text", "text": "What is this?"});
    let question = |parts: &[Value]| {
        let content: Vec<Value> = [text.clone()].into_iter().chain(parts.iter().cloned()).collect();
        plan(&json!({"model": model, "messages": [{"role": "user", "content": content}]}))
    };
    let (with, without) = (question(parts), question(&[]));
    let row = with.included.last().unwrap();
    (with.estimated_tokens_total.tokens - without.estimated_tokens_total.tokens, row.token_estimate.certainty)
}

#[test]
fn ten_icons_cost_ten_times_the_smallest_image() {
    let icons: Vec<Value> = (0..10).map(|_| picture(32, 32)).collect();
    assert_eq!(cost("gpt-4o", &icons), (2_550, Certainty::UpperBound));
}

#[test]
fn large_image_costs_its_downscaled_size() {
    let (tokens, _) = cost("claude-opus-4-8", &[picture(9_000, 5_000)]);
    // The delimiters of a block count two tokens.
    assert_eq!(tokens, 4_784 + 2);
    assert_eq!(cost("claude-sonnet-4-5", &[picture(9_000, 5_000)]).0, 1_600 + 2);
    assert_eq!(cost("claude-sonnet-4-5", &[picture(200, 200)]).0, 64 + 2);
}

#[test]
fn a_document_costs_its_pages() {
    let scan = base64(&pdf(40, 75_000));
    let document = |data: &str| json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}});
    assert_eq!(cost("claude-sonnet-4-5", &[document(&scan)]), (124_002, Certainty::Estimate));
    // Without a page tree, one page per 50,000 bytes is assumed.
    let unreadable = base64(&[b"%PDF-1.4\n".as_slice(), &b"ABCD".repeat(2_000)].concat());
    assert_eq!(cost("claude-sonnet-4-5", &[document(&unreadable)]), (3_102, Certainty::Estimate));
    let file = json!({"type": "file", "file": {"filename": "a.pdf", "file_data": format!("data:application/pdf;base64,{scan}")}});
    let name = manager("gpt-4o").counter().count("a.pdf").unwrap().tokens;
    assert_eq!(cost("gpt-4o", &[file]), (70_600 + name, Certainty::Estimate));
}

#[test]
fn media_behind_a_url_cost_the_highest_price_or_ten_pages() {
    let address = json!({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}});
    assert_eq!(cost("gpt-4o", &[address]), (1_445, Certainty::UpperBound));
    let file = json!({"type": "document", "source": {"type": "file", "file_id": "file_1"}});
    assert_eq!(cost("claude-sonnet-4-5", &[file]), (31_002, Certainty::Estimate));
}

#[test]
fn sound_and_video_cost_their_seconds() {
    let contents = |mime: &str, bytes: &[u8]| {
        let part = json!({"inlineData": {"mimeType": mime, "data": base64(bytes)}});
        let body = |parts: &[Value]| json!({"contents": [{"role": "user", "parts": parts}]}).to_string();
        let total = |parts: &[Value]| {
            let session = Session::from_json(&body(parts)).unwrap();
            manager("gemini-2.5-flash").build_plan(&session.request()).unwrap().estimated_tokens_total.tokens
        };
        total(&[json!({"text": "What is this?"}), part]) - total(&[json!({"text": "What is this?"})])
    };
    assert_eq!(contents("audio/wav", &wav(1_000, 60_000, 60_000)), 60 * 32);
    assert_eq!(contents("video/mp4", &mp4(b"isom", 600, 7_200)), 12 * 300);
}

/// Plans a result with this content, alone in a prompt that it does not fit.
fn page_beside_screenshot(content: Value) -> ContextPlan {
    plan(&json!({"model": "claude-sonnet-4-5", "limits": {"prompt_budget": 2_500}, "messages": [
        {"role": "user", "content": "Read the harbour page."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "open", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": content}]},
    ]}))
}

#[test]
fn a_result_with_media_is_clipped_in_its_texts() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": base64(&png(640, 640))}});
    let text = |word: &str, times: usize| json!({"type": "text", "text": format!("{word} ").repeat(times)});
    for content in [
        json!([text("tide", 6_000), image]),
        json!([image, text("tide", 6_000)]),
        json!([text("tide", 3_000), image, text("quay", 3_000), text("berth", 3)]),
    ] {
        let plan = page_beside_screenshot(content.clone());
        assert!(
            plan.estimated_tokens_total.tokens <= 2_500 && plan.estimated_tokens_total.tokens > 2_300,
            "{} of 2,500 for {content:.60}",
            plan.estimated_tokens_total.tokens
        );
        let body = serde_json::to_value(context_window::render::anthropic(&plan)).unwrap();
        let sent = body["messages"][2]["content"][0]["content"].as_array().unwrap();
        let kinds = |parts: &[Value]| parts.iter().map(|part| part["type"].clone()).collect::<Vec<_>>();
        assert_eq!(kinds(sent), kinds(content.as_array().unwrap()));
        let at = sent.iter().position(|part| part["type"] == "image").unwrap();
        assert_eq!(sent[at]["source"]["data"], image["source"]["data"]);
        // The short text is whole, and each long text contains a note about its omitted part.
        let texts = sent.iter().filter_map(|part| part["text"].as_str());
        let cut = texts.filter(|text| text.contains("bytes of m2 are left out here.]")).count();
        assert_eq!(
            cut,
            content
                .as_array()
                .unwrap()
                .iter()
                .filter(|part| part["text"].as_str().is_some_and(|text| text.len() > 1_000))
                .count()
        );
    }
}

/// Page counts are an estimate. Provider reports calibrate them even if texts are counted exactly (rule N6).
#[test]
fn usage_reports_calibrate_page_counts() {
    let document = Part::Opaque {
        wire_format: WireFormat::OpenAiChat,
        json: json!({"type": "file", "file": {"file_data": base64(&pdf(10, 100))}}).to_string(),
    };
    let manager = manager("gpt-4o");
    let mut log = Conversation::from([Message::user("Summarise.").with_parts([document])]);
    let first = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    let counted = first.estimated_tokens_total.tokens;
    assert!(counted > 17_650 && first.estimated_tokens_total.certainty == Certainty::Estimate);
    log.push_reply(&first, Message::assistant("Tides."), Usage::openai(12_000, 0, 9));
    log.push(Message::user("And then?"));
    let second = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(
        (12_000..12_100).contains(&second.estimated_tokens_total.tokens),
        "{} after {counted}",
        second.estimated_tokens_total.tokens
    );

    // Without media the counter is exact, and reports are ignored.
    let mut log = Conversation::from([Message::user("Summarise the tides of May.")]);
    let first = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    log.push_reply(
        &first,
        Message::assistant("Tides."),
        Usage::openai(first.estimated_tokens_total.tokens + 9, 0, 9),
    );
    log.push(Message::user("And then?"));
    let second = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!((second.calibration, second.estimated_tokens_total.certainty), (None, Certainty::Exact));
}

#[test]
fn redacted_session_keeps_the_tokens_of_its_media() {
    let scan = base64(&pdf(7, 400));
    let body = json!({"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": [
        {"type": "text", "text": "Compare both."},
        picture(700, 300),
        {"type": "document", "title": "Harbour rules", "source": {"type": "base64", "media_type": "application/pdf", "data": scan}},
    ]}]});
    let session = Session::from_json(&body.to_string()).unwrap();
    let manager = manager("claude-sonnet-4-5");
    let json = session_json(&manager, &session.request(), SessionTexts::Redacted).unwrap();
    assert!(!json.contains(&scan) && !json.contains("Harbour"));
    let redacted = Session::from_json(&json).unwrap();
    let total = |session: &Session| manager.build_plan(&session.request()).unwrap().estimated_tokens_total;
    assert_eq!(total(&redacted), total(&session));
}
