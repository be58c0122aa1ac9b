//! The chat with a provider on loopback, in two wire formats.

use crate::{
    server::{Reply, Server, Wire},
    support::{Place, Run, environment},
};
use context_window::{Role, compaction::CompactionKind};
use rag_chat::{answerer::remote::LONGEST, chat::Turn, models::Environment};
use serde_json::Value;
use std::sync::Arc;

const KEY: &str = "sk-very-secret-0123456789";

fn asked_at(server: &Server, wire: Wire) -> Environment {
    match wire {
        Wire::OpenAi => environment(&[
            ("OPENAI_API_KEY", KEY),
            ("OPENAI_BASE_URL", &server.url),
            ("RAG_CHAT_MODEL", "gpt-4o-mini"),
        ]),
        Wire::Anthropic => environment(&[("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", &server.url)]),
    }
}

fn run(place: &Place, server: &Server, wire: Wire, arguments: &[&str]) -> Run {
    Run::new(place, arguments, &asked_at(server, wire))
}

/// Returns the bytes of the messages in the first request.
fn text_of_messages(server: &Server) -> usize {
    server.asked()[0]["messages"].to_string().len()
}

/// Returns all texts of a request as one text.
fn text_of(body: &Value) -> String {
    body["messages"].to_string() + &body["system"].to_string()
}

#[test]
fn a_reply_is_streamed_and_its_usage_fed_back() {
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let server = Server::start(wire, vec![Reply::Words("Five days, says [terms/refunds.md#1].", 1)]);
        let place = Place::shop();
        let mut run = run(&place, &server, wire, &[]);
        run.chat.ask("How long does a refund take?");
        run.until(
            "the first words",
            |chat| matches!(&chat.turn, Turn::Answering(answering) if answering.text == "Five "),
        );
        run.settle();
        assert_eq!(run.last(), "Five days, says [terms/refunds.md#1].");
        let billed = run.chat.log.billed();
        assert_eq!(
            (billed.input, billed.cache_read, billed.output),
            ((text_of_messages(&server) / 4 - 20) as u64, 20, 7),
            "{wire:?}"
        );
        run.enter("And how much is postage?");
        // If the tokenizer is not the model's own, the next plan is calibrated by the provider's counts.
        let learnt = run.chat.plan.calibration.as_ref().map(|calibration| calibration.reports);
        assert_eq!(learnt, (wire == Wire::Anthropic).then_some(2));
        let asked = server.asked();
        assert_eq!(asked.len(), 2);
        assert!(text_of(&asked[0]).contains("A refund takes five days"), "{}", asked[0]);
        assert!(text_of(&asked[1]).contains("Five days, says [terms/refunds.md#1]."), "{}", asked[1]);
        run.enter("/cost");
        assert!(run.said().contains("This run: $0.") && !run.said().contains("no price"), "{}", run.said());
    }
}

#[test]
fn invented_and_misquoted_citations_are_marked() {
    let reply = "They take \"five days after the parcel\" [1], or \"six weeks\" [1], says [9].";
    let server = Server::start(Wire::OpenAi, vec![Reply::Words(reply, 0), Reply::Words("None.", 0)]);
    let place = Place::shop();
    let mut run = run(&place, &server, Wire::OpenAi, &[]);
    run.enter("How long does a refund take?");
    let said = "Sources: [1] terms/refunds.md#1. Not confirmed: terms/refunds.md#1 does not say \"six weeks\" [1]; \
                [9] is no document.";
    assert!(run.has_said(said), "{:?}", run.chat.remarks);
    run.enter("And how much is postage?");
    assert!(run.said().contains(said), "no citation, no remark: {}", run.said());
}

#[test]
fn request_body_holds_only_the_plan() {
    let server = Server::start(Wire::OpenAi, vec![Reply::Words("Yes.", 0)]);
    let place = Place::shop();
    let mut run = run(&place, &server, Wire::OpenAi, &[]);
    run.enter("/pin Answer in rhyme.").chat.ask("Do you sell kettles?");
    run.until("the request", |chat| matches!(chat.turn, Turn::Answering(_)));
    let rendered = serde_json::to_value(context_window::render::openai(&run.chat.plan)).unwrap();
    run.settle();
    assert_eq!(server.asked()[0]["messages"], rendered["messages"]);
}

#[test]
fn a_prompt_that_is_too_long_is_made_smaller() {
    let refusals = [
        (
            Wire::OpenAi,
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        ),
        (Wire::Anthropic, "prompt is too long: 208310 tokens > 200000 maximum"),
    ];
    for (wire, refusal) in refusals {
        let script =
            vec![Reply::Error(400, refusal), Reply::Error(400, refusal), Reply::Words("Five days.", 0)];
        let server = Server::start(wire, script);
        let place = Place::shop();
        for n in 0..9 {
            place.write(
                &format!("long{n}.md"),
                format!("Of refund {n}. {}", "How long does it take? ".repeat(30)).as_bytes(),
            );
        }
        let mut run = run(&place, &server, wire, &[]);
        run.enter("How long does a refund take?");
        assert_eq!(run.last(), "Five days.", "{wire:?}: {:?}", run.chat.remarks);
        let sizes: Vec<usize> = server.asked().iter().map(|body| text_of(body).len()).collect();
        assert!(sizes.len() == 3 && sizes[0] > sizes[1] && sizes[1] > sizes[2], "{wire:?}: {sizes:?}");
        assert!(server.asked().iter().all(|body| text_of(body).contains("How long does a refund take?")));
        assert!(run.has_said("tokens are too many."), "{:?}", run.chat.remarks);
    }
}

#[test]
fn a_prompt_that_is_always_too_long_ends_with_an_error() {
    let server = Server::start(Wire::OpenAi, vec![Reply::Error(400, "maximum context length is 10 tokens")]);
    let place = Place::shop();
    let mut run = run(&place, &server, Wire::OpenAi, &[]);
    run.enter("How long does a refund take?");
    assert!(server.asked().len() <= 5, "{}", server.asked().len());
    assert!(run.chat.remarks.last().unwrap().is_error, "{:?}", run.chat.remarks);
    assert_eq!(run.last(), "How long does a refund take?", "the question stays");
}

#[test]
fn signed_reasoning_is_sent_back_and_refused_reasoning_is_omitted() {
    let refusal = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.";
    let script = vec![
        Reply::Thought("Five days.", "seal-of-the-first-thought"),
        Reply::Words("Four crowns.", 0),
        Reply::Error(400, refusal),
        Reply::Words("From nine to six.", 0),
    ];
    let server = Server::start(Wire::Anthropic, script);
    let place = Place::shop();
    let mut run = run(&place, &server, Wire::Anthropic, &[]);
    run.enter("How long does a refund take?").enter("And postage?").enter("And when are you open?");
    assert_eq!(run.last(), "From nine to six.");
    let sealed: Vec<bool> =
        server.asked().iter().map(|body| text_of(body).contains("seal-of-the-first-thought")).collect();
    assert_eq!(sealed, [false, true, true, false]);
    assert!(text_of(&server.asked()[1]).contains("The user wants to know."), "with the thought itself");
    // Refused reasoning is not sent again.
    run.enter("And on Saturdays?");
    assert_eq!(server.asked().len(), 5, "{:?}", run.chat.remarks);
    assert!(!text_of(&server.asked()[4]).contains("seal-of-the-first-thought"));
    assert!(run.has_said("refuses its earlier reasoning"), "{:?}", run.chat.remarks);
    let kept = run.chat.log.messages().iter().filter(|message| !message.reasoning().is_empty()).count();
    assert_eq!(kept, 1, "the conversation keeps what was thought");
}

#[test]
fn a_stream_that_is_cut_loses_nothing() {
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let server = Server::start(
            wire,
            vec![Reply::Cut("Half of an answer"), Reply::Cut(""), Reply::Words("All of it.", 0)],
        );
        let place = Place::shop();
        let mut run = run(&place, &server, wire, &[]);
        run.enter("How long does a refund take?");
        assert_eq!(run.last(), "Half of an answer", "{wire:?}: {:?}", run.chat.remarks);
        assert!(run.chat.remarks.last().unwrap().is_error, "{wire:?}");
        assert!(
            run.said()
                .ends_with("closed before the reply was complete. The received part of the reply is kept."),
            "{}",
            run.said()
        );
        assert!(!run.chat.is_whole);
        run.enter("/retry");
        assert!(
            run.said().contains("there is nothing to retry") && server.asked().len() == 1,
            "{}",
            run.said()
        );
        run.enter("Go on?");
        assert_eq!(run.last(), "Go on?", "nothing came, so the question waits");
        run.enter("/retry");
        assert_eq!(run.last(), "All of it.");
        assert_eq!(run.chat.log.messages().iter().filter(|message| message.role() == Role::User).count(), 2);
    }
}

#[test]
fn a_server_that_is_silent_can_be_stopped() {
    let server = Server::start(Wire::OpenAi, vec![Reply::Silence, Reply::Words("Here.", 0)]);
    let place = Place::shop();
    let mut run = run(&place, &server, Wire::OpenAi, &[]);
    run.chat.ask("Are you there?");
    run.until("the request", |chat| matches!(chat.turn, Turn::Answering(_)));
    server.has_asked(1);
    run.chat.interrupt();
    run.settle();
    assert_eq!(run.last(), "Are you there?");
    run.enter("/retry");
    assert_eq!(run.last(), "Here.");
}

#[test]
fn errors_give_advice_and_never_a_key() {
    let echo = "Incorrect API key provided: sk-very-secret-0123456789";
    for (wire, reply, expected) in [
        (Wire::OpenAi, Reply::Error(401, echo), "does not accept the key in OPENAI_API_KEY"),
        (
            Wire::Anthropic,
            Reply::Error(401, "invalid x-api-key"),
            "does not accept the key in ANTHROPIC_API_KEY",
        ),
        (Wire::OpenAi, Reply::Error(404, "The model does not exist"), "does not know the model gpt-4o-mini"),
        (Wire::Anthropic, Reply::Error(529, "Overloaded"), "answered 529: Overloaded. /retry asks again."),
        (
            Wire::OpenAi,
            Reply::Error(429, "Rate limit reached: too many tokens per minute"),
            "answered 429: Rate limit",
        ),
    ] {
        let server = Server::start(wire, vec![reply, Reply::Words("Now.", 0)]);
        let place = Place::shop();
        let mut run = run(&place, &server, wire, &[]);
        run.enter("Hello?");
        assert!(run.said().contains(expected), "{}", run.said());
        assert!(!run.chat.remarks.iter().any(|remark| remark.text.contains(KEY)), "{:?}", run.chat.remarks);
        assert_eq!(run.last(), "Hello?");
        run.enter("/retry");
        assert_eq!(run.last(), "Now.");
    }
    // No server listens on this address any more.
    let away = { std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    let place = Place::shop();
    let url = format!("http://{away}/v1");
    let mut run = Run::new(&place, &[], &environment(&[("RAG_CHAT_URL", &url)]));
    run.enter("Hello?");
    assert!(
        run.said().contains(&format!("no answer from {url}: ")) && run.said().contains("refused"),
        "{}",
        run.said()
    );
    run.enter("/model offline").enter("/retry");
    assert!(run.chat.log.messages().last().unwrap().role() == Role::Assistant, "another model answers");
}

#[test]
fn summary_is_made_while_the_chat_continues() {
    let quick = || Reply::Words("Yes, we do, and gladly.", 0);
    let script = vec![
        quick(),
        quick(),
        quick(),
        quick(),
        quick(),
        Reply::Words("Slow words of a reply on its way.", 60),
    ];
    let server = Server::start(Wire::OpenAi, script);
    let place = Place::shop();
    let mut run = run(&place, &server, Wire::OpenAi, &[]);
    for n in 0..5 {
        run.enter(&format!("Question {n} about kettles?"));
    }
    let texts = run.texts();
    run.chat.enter("/compact");
    assert!(run.said().contains("In their place: a summary by gpt-4o-mini."), "{}", run.said());
    run.chat.decide(true);
    // The chat continues meanwhile. The summary arrives long before the reply, and waits for it.
    run.chat.ask("One more?");
    run.until(
        "some words",
        |chat| matches!(&chat.turn, Turn::Answering(answering) if answering.text.len() > 12),
    );
    assert_eq!(server.summaries(), 1);
    assert_eq!(run.chat.log.compactions().count(), 0, "the reply was planned without it");
    run.settle();
    // The user reviews it before it is used.
    assert!(run.has_said("kettles, refunds and opening hours"), "{:?}", run.chat.remarks);
    assert_eq!(run.chat.log.compactions().count(), 0);
    run.chat.decide(true);
    assert_eq!(run.chat.log.compactions().count(), 1);
    assert_eq!(run.texts()[..texts.len()], texts[..], "nothing is deleted");
    assert_eq!(run.last(), "Slow words of a reply on its way.");
    let summary = run.chat.log.compactions().next().unwrap().summary.clone().unwrap();
    assert!(summary.contains("kettles, refunds and opening hours"), "{summary}");
    run.enter("And then?");
    assert!(text_of(server.asked().last().unwrap()).contains("kettles, refunds and opening hours"));
}

#[test]
fn compaction_ends_with_the_history_it_was_requested_for() {
    let server = Server::start(Wire::OpenAi, vec![Reply::Words("Yes, we do, and gladly.", 0)]);
    let place = Place::shop();
    let mut run = run(&place, &server, Wire::OpenAi, &[]);
    for n in 0..5 {
        run.enter(&format!("Question {n} about kettles?"));
    }
    // A failing command changes nothing and stops nothing.
    run.chat.enter("/compact");
    run.chat.decide(true);
    run.enter("/undo nothing").chat.decide(true);
    assert_eq!(run.chat.log.compactions().count(), 1);
    run.enter("/undo");
    for command in ["/sessions other", "/model offline", "/fresh"] {
        run.chat.enter("/sessions chat");
        run.chat.enter("/model gpt-4o-mini");
        run.enter("And one more?").chat.enter("/compact");
        run.chat.decide(true);
        assert!(run.chat.can_stop(), "{command}: {}", run.said());
        run.enter(command);
        assert!(!run.chat.can_stop(), "{command}");
        let summaries =
            run.chat.log.compactions().filter(|record| record.kind == CompactionKind::Summary).count();
        // Only the undone compaction has a summary; the late one is not in the log.
        let known = usize::from(command != "/sessions other");
        assert_eq!(summaries, known, "{command}: a late summary changes nothing");
    }
    run.enter("/undo");
    assert_eq!(run.chat.log.active().count(), 1 + 2 * 8, "nothing is lost");
}

#[test]
fn a_smaller_model_begins_the_summary_that_its_window_needs() {
    let server = Server::start(Wire::OpenAi, vec![Reply::Words("Yes.", 0)]);
    let place = Place::shop();
    let mut run = run(&place, &server, Wire::OpenAi, &["--model", "offline-64k"]);
    for n in 0..8 {
        run.enter(&format!(
            "Question {n}: when are you open? {}",
            "And please say why that is so. ".repeat(150)
        ));
    }
    run.enter("/model gpt-4");
    assert_eq!(server.summaries(), 1, "{:?}", run.chat.remarks);
    let kinds: Vec<CompactionKind> = run.chat.log.compactions().map(|record| record.kind).collect();
    assert_eq!(kinds, [CompactionKind::Summary]);
}

#[test]
fn redirect_sends_no_key_to_another_server() {
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let thief = Server::start(wire, vec![Reply::Words("Thank you.", 0)]);
        let server = Server::start(wire, vec![Reply::Moved(thief.url.clone())]);
        let place = Place::shop();
        let mut run = run(&place, &server, wire, &[]);
        run.enter("Hello?");
        assert!(run.said().contains("answered 307"), "{}", run.said());
        assert!(thief.asked().is_empty(), "it was asked, with the key");
    }
}

#[test]
fn missing_summary_is_replaced_by_a_digest() {
    let server = Server::start(Wire::OpenAi, vec![Reply::Words("Yes, we do, and gladly.", 0)]);
    let place = Place::shop();
    let gone = Server::start(Wire::OpenAi, vec![Reply::Words("x", 0)]).url;
    let environment: Environment = {
        // Streams go to the server. After /model, summary requests fail.
        let (first, nowhere) = (server.url.clone(), gone.replace("127.0.0.1", "127.0.0.2"));
        Arc::new(move |name| match name {
            "OPENAI_API_KEY" => Some(KEY.into()),
            "OPENAI_BASE_URL" => Some(first.clone()),
            "RAG_CHAT_MODEL" => Some("gpt-4o-mini".into()),
            "ANTHROPIC_API_KEY" => Some(KEY.into()),
            "ANTHROPIC_BASE_URL" => Some(nowhere.clone()),
            _ => None,
        })
    };
    let mut run = Run::new(&place, &[], &environment);
    for n in 0..5 {
        run.enter(&format!("Question {n} about kettles?"));
    }
    run.enter("/model claude-haiku-5-5").enter("/compact");
    run.chat.decide(true);
    run.settle();
    assert!(
        run.has_said("There is no summary, so the compaction is done without a model"),
        "{:?}",
        run.chat.remarks
    );
    assert_eq!(run.chat.log.compactions().count(), 1);
}

#[test]
fn endless_reply_is_stopped_and_its_beginning_kept() {
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let server = Server::start(wire, vec![Reply::Flood]);
        let place = Place::shop();
        let mut run = run(&place, &server, wire, &[]);
        run.enter("Say it again?");
        assert!(run.has_said("and continues; expected at most 4,194,304"), "{:?}", run.chat.remarks);
        assert!(!run.chat.is_whole);
        match wire {
            Wire::OpenAi => {
                assert!((4_000_000..=LONGEST).contains(&run.last().len()), "{}", run.last().len());
                assert!(run.has_said("The received part of the reply is kept"));
            }
            // Only reasoning arrived.
            Wire::Anthropic => assert_eq!(run.last(), "Say it again?"),
        }
    }
}

#[test]
fn an_empty_reply_is_an_error_and_the_question_waits() {
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let script = vec![Reply::Words("", 0), Reply::Thought(" ", "c2Vhb"), Reply::Words("Five days.", 0)];
        let server = Server::start(wire, script);
        let place = Place::shop();
        let mut run = run(&place, &server, wire, &[]);
        for line in ["How long does a refund take?", "/retry"] {
            run.enter(line);
            assert!(run.said().starts_with("The reply is empty"), "{wire:?} {line}: {}", run.said());
            assert!(run.said().ends_with("/retry asks again."), "{}", run.said());
            assert_eq!(run.last(), "How long does a refund take?");
            assert!(!run.chat.is_whole);
        }
        run.enter("/retry");
        assert_eq!(run.last(), "Five days.");
        assert!(run.chat.is_whole);
    }
}
