//! Sessions with questions, in each form of their files.

use crate::{evaluation, talk};
use context_window::{Config, ContextWindowManager, Model, PlanRequest, RequestLimits, TokenCounter};
use context_window_eval::{Baseline, ErrorKind, EvalCase, Metric, Policy, Scores};
use context_window_formats::{SessionTexts, session_json};
use serde_json::json;

/// Returns the error of a case that cannot be read.
fn error(json: &serde_json::Value) -> String {
    let error = EvalCase::from_json(&json.to_string()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    error.to_string()
}

#[test]
fn each_form_has_the_same_questions() {
    let documents = |gold: bool| {
        json!([
            {"id": "d1", "text": "Refunds take five working days from the day of the return.", "score": 2.0, "gold": gold},
            {"id": "d2", "text": "The shop is closed on Sundays and on all public holidays.", "score": 1.0}
        ])
    };
    let lists = |gold: bool| json!({"words": documents(gold), "meaning": documents(gold)});
    let forms = [
        json!({"query": "How long do refunds take?", "passages": lists(true)}),
        json!({"rag": lists(false), "questions": [{"text": "How long do refunds take?", "evidence": ["d1"]}]}),
        json!({"query": "How long do refunds take?", "passages": documents(true)}),
        json!({"query": "How long do refunds take?", "rag": documents(true)}),
        json!({"rag": documents(false), "questions": [{"text": "How long do refunds take?", "evidence": ["d1"]}]}),
        json!({"rag": documents(false), "qa": [{"question": "How long do refunds take?", "evidence": ["d1"]}]}),
    ];
    for form in forms {
        let case = EvalCase::from_json(&form.to_string()).unwrap();
        let [question] = case.questions() else { panic!("{form}") };
        assert_eq!(question.evidence().map(|id| id.as_str()).collect::<Vec<_>>(), ["d1"]);
        let result = evaluation([60]).evaluate(&case).unwrap();
        assert_eq!(result.cells[0].questions[0].missing, [""; 0], "{form}");
    }
}

#[test]
fn question_is_asked_after_its_message() {
    let question = |key: &str, after: &str, evidence: &str| json!({"text": "Whereabouts?", "evidence": [evidence], key: after});
    let questions =
        [question("after", "m5", "m5"), question("asked", "m5", "m7"), question("asked", "2024-01-01", "m7")];
    let case = json!({"messages": talk(8), "questions": questions});
    let case = EvalCase::from_json(&case.to_string()).unwrap();
    assert_eq!(case.questions().iter().map(|one| one.messages_before).collect::<Vec<_>>(), [6, 6, 8]);
    for cell in evaluation([100_000]).evaluate(&case).unwrap().cells {
        let missing: Vec<_> = cell.questions.iter().map(|result| result.missing.len()).collect();
        match cell.policy.as_str() {
            // Retrieval finds nothing for a question without a word of the messages. The oracle knows the
            // future.
            "bm25" => assert_eq!(missing, [1, 1, 1]),
            "oracle" => assert_eq!(missing, [0, 0, 0]),
            _ => assert_eq!(missing, [0, 1, 0], "{}", cell.policy),
        }
    }
}

#[test]
fn baselines_send_system_texts_notes_and_tools_like_the_planner() {
    let tool = json!({"type": "function", "function": {"name": "stock", "description": "Returns the stock of an item.",
        "parameters": {"type": "object", "properties": {"item": {"type": "string"}}}}});
    let case = json!({
        "system": "You answer for a shop. Name the document that you used.",
        "pinned": [{"id": "customer", "text": "The customer is Ida; she prefers short answers."}],
        "tools": [tool],
        "messages": talk(8),
        "questions": [{"text": "How much is item 3?", "evidence": ["m3"]}]
    });
    let case = EvalCase::from_json(&case.to_string()).unwrap();
    let result = evaluation([100_000]).with_every(1).evaluate(&case).unwrap();
    let cell = |policy: &str| result.cells.iter().find(|cell| cell.policy == policy).unwrap();
    let (planner, newest) = (cell("default"), cell("newest"));
    assert_eq!(newest.questions[0].tokens, planner.questions[0].tokens);
    assert_eq!(newest.turns, planner.turns);
}

/// A session that its application compacted is asked as if it had not been.
#[test]
fn recorded_compactions_are_not_those_of_the_evaluation() {
    let mut json = json!({"messages": talk(60), "questions": [{"text": "How much is item 3?", "evidence": ["m3", "m57"]}]});
    let plain = EvalCase::from_json(&json.to_string()).unwrap();
    let counter = TokenCounter::chars_per_4();
    let manager = ContextWindowManager::new(Model::custom("m"), counter, Config::default()).unwrap();
    let limits = RequestLimits::prompt_budget(600);
    let mut log = plain.session().log.clone();
    let job = manager.compactor().now(&PlanRequest::new(&log).with_limits(limits)).unwrap().unwrap();
    manager.compactor().compact_without_model(&mut log, &job).unwrap();
    let own =
        session_json(&manager, &PlanRequest::new(&log).with_limits(limits), SessionTexts::Kept).unwrap();
    let questions = json["questions"].take();
    json = serde_json::from_str(&own).unwrap();
    json["questions"] = questions;
    let compacted = EvalCase::from_json(&json.to_string()).unwrap();
    assert_eq!(log.compactions().count(), 1);
    assert_eq!(compacted.session().log.compactions().count(), 0);
    let evaluation = evaluation([300, 2_000]);
    assert_eq!(evaluation.evaluate(&compacted).unwrap().cells, evaluation.evaluate(&plain).unwrap().cells);
}

#[test]
fn question_without_evidence_has_tokens_and_no_share() {
    let case = json!({"messages": talk(4), "questions": [{"text": "Who is Ida?", "evidence": null}]});
    let case = EvalCase::from_json(&case.to_string()).unwrap();
    let mut scores = Scores::default();
    scores.add("talk", &evaluation([200]).evaluate(&case).unwrap());
    let row = &scores.rows()[0];
    assert_eq!((row.questions, row.prompts, row.whole().per_mille()), (0, 1, None));
    assert!(row.tokens > 0);
}

#[test]
fn used_budget_of_prompts_that_overflow_exceeds_100_percent() {
    let case =
        json!({"messages": talk(4), "questions": [{"text": "How much is item 3?", "evidence": ["m3"]}]});
    let case = EvalCase::from_json(&case.to_string()).unwrap();
    let evaluation =
        evaluation([5, u64::MAX]).with_policies([Policy::baseline(Baseline::Newest)]).with_every(1);
    let mut scores = Scores::default();
    scores.add("talk", &evaluation.evaluate(&case).unwrap());
    let [small, large] = scores.rows() else { panic!() };
    assert_eq!((small.overflows, small.turns.overflows), (1, 2));
    assert!(small.per_mille(Metric::BudgetUsed) > Some(1_000));
    assert_eq!(large.per_mille(Metric::BudgetUsed), Some(0));
}

#[test]
fn near_duplicate_of_a_document_counts_as_its_original() {
    let text = "Refunds take five working days from the day of the return. Send the parcel to the address on your \
                invoice, and write the order number on the outside, so that we know who sent it to us and why.";
    let documents = json!([
        {"id": "old", "text": text, "score": 1.0, "gold": true},
        {"id": "new", "text": text.replace("and why.", "and when."), "score": 2.0}
    ]);
    let case = json!({"query": "How long do refunds take?", "passages": documents}).to_string();
    let result = evaluation([75]).evaluate(&EvalCase::from_json(&case).unwrap()).unwrap();
    let best_score = result.cells.iter().find(|cell| cell.policy == "best-score").unwrap();
    assert!(best_score.questions[0].tokens <= 75);
    assert_eq!(best_score.questions[0].missing, [""; 0]);
}

#[test]
fn unusable_case_is_an_error_with_its_place() {
    let messages = talk(2);
    assert_eq!(
        error(&json!({"id": "s", "messages": messages})),
        "session `s`: no questions; expected `questions`, `qa`, or `query` with documents that are `gold`"
    );
    assert_eq!(
        error(
            &json!({"id": "s", "messages": messages, "questions": [{"text": "Why?", "evidence": ["m0", "m9"]}]})
        ),
        "session `s`, questions[0].evidence[1]: no message or document has the id `m9`; expected one of the session"
    );
    assert_eq!(
        error(
            &json!({"id": "s", "messages": messages, "questions": [{"text": "Why?", "after": "2024-01-01"}]})
        ),
        "session `s`, questions[0].after: no message has the id `2024-01-01`; expected one of the session"
    );
    let no_questions = json!({"id": 7, "messages": messages, "questions": []});
    assert!(error(&no_questions).starts_with("session `7`: no questions"));
    assert_eq!(
        error(&json!({"id": "s", "messages": messages, "query": " "})),
        "session `s`, query: is empty; expected a question"
    );
    let both = json!({"messages": messages, "questions": [], "qa": []});
    assert!(error(&both).contains("duplicate field `questions`"));
    assert_eq!(
        error(&json!({"id": "s", "messages": messages, "questions": [{"text": " ", "evidence": []}]})),
        "session `s`, questions[0].text: is empty; expected a question"
    );
    assert!(
        error(&json!({"messages": messages, "questions": [{"evidence": []}]}))
            .contains("missing field `text`")
    );
    assert!(error(&json!({"messages": [], "questions": []})).contains("empty session"));
}

#[test]
fn default_ids_of_questions_and_needles_do_not_clash_with_recorded_ids() {
    // The ids of the messages are those that later positions have by default.
    let mut messages = talk(40);
    for (message, at) in messages.iter_mut().zip(1..) {
        message["id"] = json!(if at == 40 { "question".into() } else { format!("m{at}") });
    }
    let case =
        json!({"messages": messages, "questions": [{"text": "Whereabouts?", "evidence": ["question"]}]});
    let evaluation = evaluation([500]).with_needles(context_window_eval::Needles::from_seed(1));
    let result = evaluation.evaluate(&EvalCase::from_json(&case.to_string()).unwrap()).unwrap();
    assert_eq!(result.cells[0].questions[0].missing, [""; 0]);
    assert!(!result.cells[0].needles.is_empty());
}

#[test]
fn message_without_words_is_no_evidence() {
    let mut messages = talk(4);
    messages[1]["content"] = json!("...");
    let case = json!({"messages": messages, "questions": [{"text": "Why?", "evidence": ["m0", "m1"]}]});
    let case = EvalCase::from_json(&case.to_string()).unwrap();
    assert_eq!(case.questions()[0].evidence().map(|id| id.as_str()).collect::<Vec<_>>(), ["m0"]);
}
