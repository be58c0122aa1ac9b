//! Prompts of turns before the questions.

use crate::{evaluation, talk};
use context_window::{Config, Model, TokenCounter};
use context_window_eval::{EvalCase, Evaluation, Policy, Scores};
use serde_json::json;

fn case(messages: usize) -> EvalCase {
    let questions = json!([{"text": "How much is item 3?", "evidence": ["m3"]}]);
    EvalCase::from_json(&json!({"messages": talk(messages), "questions": questions}).to_string()).unwrap()
}

/// A prompt that grows repeats all of the one before it, so the prefix is kept until the window is full.
#[test]
fn prefix_is_kept_while_everything_fits() {
    let result = evaluation([100_000]).with_every(1).evaluate(&case(40)).unwrap();
    for cell in &result.cells {
        let turns = cell.turns;
        match cell.policy.as_str() {
            "oracle" => assert_eq!(turns.prompts, 0),
            // Retrieval leaves out messages without a word of the question, even if they would fit.
            "bm25" => assert_eq!((turns.prompts, turns.overflows), (20, 0)),
            _ => {
                assert_eq!((turns.prompts, turns.compactions, turns.overflows), (20, 0, 0));
                assert!(turns.kept * 100 >= turns.before * 90, "{}: {turns:?}", cell.policy);
                assert!(turns.kept <= turns.before && turns.before <= turns.after);
            }
        }
    }
}

#[test]
fn every_second_prompt_is_half_of_them() {
    let prompts =
        |every| evaluation([500]).with_every(every).evaluate(&case(41)).unwrap().cells[0].turns.prompts;
    assert_eq!([1, 2, 10, 20, 21, 0].map(prompts), [20, 10, 2, 1, 0, 0]);
}

#[test]
fn due_compactions_are_made_and_change_the_prompt_of_the_question() {
    let mut config = Config::default();
    config.compaction.enabled = false;
    let evaluation = Evaluation::new(Model::custom("m"), TokenCounter::chars_per_4())
        .with_budgets([400])
        .with_every(1)
        .with_policies([Policy::preset("default").unwrap(), Policy::planner("none", config)]);
    let result = evaluation.evaluate(&case(80)).unwrap();
    let [compacting, none] = &result.cells[..] else { panic!() };
    assert!(compacting.turns.compactions > 1);
    assert_eq!(none.turns.compactions, 0);
    assert!(compacting.questions[0].tokens != none.questions[0].tokens);
}

#[test]
fn cost_of_turns_and_questions_is_summed() {
    let model = Model::named("gpt-4o").unwrap();
    let counter = TokenCounter::named("o200k_base").unwrap();
    let evaluation = Evaluation::new(model, counter).with_budgets([1_000]).with_every(5);
    let result = evaluation.evaluate(&case(40)).unwrap();
    let (turns, question) = (result.cells[0].turns, &result.cells[0].questions[0]);
    // 2.5 dollars for a million tokens, half for those read from the cache (only from 1,024 tokens on).
    assert_eq!(question.cost, Some(question.tokens * 2_500));
    let mut scores = Scores::default();
    scores.add("talk", &result);
    assert_eq!(scores.rows()[0].cost(), Some(turns.cost.unwrap() + question.cost.unwrap()));
}
