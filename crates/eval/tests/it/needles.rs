//! Needles and their survival.

use crate::{evaluation, talk};
use context_window::{Config, config::RulePolicy};
use context_window_eval::{EvalCase, NeedleKind, NeedlePlace, NeedleResult, Needles, Policy};
use serde_json::json;

fn case(messages: usize) -> EvalCase {
    let questions = json!([{"text": "How much is item 3?", "evidence": ["m3"]}]);
    EvalCase::from_json(&json!({"messages": talk(messages), "questions": questions}).to_string()).unwrap()
}

#[test]
fn needles_are_planted_in_sessions_that_are_long_enough() {
    let evaluation = evaluation([2_000]).with_needles(Needles::from_seed(3));
    let count = |messages| {
        let result = evaluation.evaluate(&case(messages)).unwrap();
        assert!(result.cells.iter().all(|cell| cell.needles.is_empty() == cell.is_baseline));
        result.cells[0].needles.len()
    };
    let per_run = NeedleKind::ALL.len() * NeedlePlace::ALL.len();
    // 36 messages are six parts of 6 messages, enough for 5 compactions.
    assert_eq!([12, 18, 36].map(count), [per_run, 2 * per_run, 3 * per_run]);
}

#[test]
fn short_session_has_no_needles() {
    let evaluation = evaluation([2_000]).with_needles(Needles::from_seed(3));
    assert!(evaluation.evaluate(&case(11)).unwrap().cells.iter().all(|cell| cell.needles.is_empty()));
}

/// A sliding window archives everything before its end, and nothing is left of it.
#[test]
fn dropped_messages_take_their_needles_with_them() {
    let mut config = Config::default();
    config.compaction.strategy = context_window::config::CompactionStrategy::Fresh;
    let evaluation = evaluation([2_000])
        .with_policies([Policy::planner("fresh", config)])
        .with_needles(Needles::from_seed(3));
    let result = evaluation.evaluate(&case(60)).unwrap();
    assert!(!result.cells[0].needles.is_empty());
    assert!(result.cells[0].needles.iter().all(|needle| !needle.survived));
}

#[test]
fn equal_seeds_have_equal_needles() {
    let result = |seed| evaluation([300]).with_needles(Needles::from_seed(seed)).evaluate(&case(60)).unwrap();
    assert_eq!(result(1), result(1));
}

/// A session of a single turn has no place for a second compaction, and needles that passed one would count
/// as survivors of two.
#[test]
fn compactions_that_cannot_be_made_have_no_needles() {
    let mut messages = talk(60);
    for message in messages.iter_mut().skip(1) {
        message["role"] = json!("assistant");
    }
    let questions = json!([{"text": "How much is item 3?", "evidence": ["m3"]}]);
    let case = json!({"messages": messages, "questions": questions}).to_string();
    let evaluation = evaluation([2_000]).with_needles(Needles::from_seed(1));
    let result = evaluation.evaluate(&EvalCase::from_json(&case).unwrap()).unwrap();
    let compactions: Vec<u64> = result.cells[0].needles.iter().map(|needle| needle.compactions).collect();
    assert_eq!(compactions, [1; 12]);
}

/// A lasting instruction of the user survives every compaction in its own words, and other needles do not.
#[test]
fn instructions_survive_with_kept_rules() {
    let mut config = Config::default();
    config.compaction.rules = RulePolicy::Keep;
    let survival = |needles: Needles, config: &Config| {
        let policies = [Policy::planner("rules", config.clone())];
        let evaluation = evaluation([4_000, 8_000]).with_policies(policies).with_needles(needles);
        let result = evaluation.evaluate(&case(240)).unwrap();
        result.cells.into_iter().flat_map(|cell| cell.needles).collect::<Vec<_>>()
    };
    for needles in [Needles::from_seed(3), Needles::from_seed(3).with_empty_summaries()] {
        let kept = survival(needles, &config);
        // Two budgets, three numbers of compactions, four kinds at three places.
        assert_eq!(kept.len(), 2 * 3 * 4 * 3);
        let is_instruction = |needle: &&NeedleResult| needle.kind == NeedleKind::Instruction;
        assert!(kept.iter().filter(is_instruction).all(|needle| needle.survived), "{kept:?}");
        if needles != Needles::from_seed(3) {
            let others = kept.iter().filter(|needle| !is_instruction(needle));
            assert!(others.clone().count() > 0 && !others.clone().all(|needle| needle.survived));
            let off = survival(needles, &Config::default());
            assert!(off.iter().any(|needle| is_instruction(&needle) && !needle.survived));
        }
    }
}
