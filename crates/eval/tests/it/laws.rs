//! Laws of evaluations.

use crate::{evaluation, talk};
use context_window::{Model, TokenCounter, usage::CostTerms};
use context_window_eval::{EvalCase, Evaluation, Policy, Scores, evaluate_all};
use serde_json::json;

/// Sessions with questions whose evidence is anywhere.
fn cases() -> Vec<String> {
    let case = |seed: usize| {
        let messages = 20 + seed * 7 % 60;
        let question = |nth: usize| {
            let evidence: Vec<String> =
                (0..=nth % 3).map(|one| format!("m{}", (seed * 13 + nth * 5 + one * 3) % messages)).collect();
            json!({"text": format!("How much is item {}?", seed + nth), "evidence": evidence})
        };
        let questions: Vec<_> = (0..4).map(question).collect();
        json!({"id": seed.to_string(), "messages": talk(messages), "questions": questions}).to_string()
    };
    (0..12).map(case).collect()
}

fn scores(evaluation: &Evaluation, threads: usize) -> Scores {
    let mut scores = Scores::default();
    let sessions = cases().into_iter().map(Ok::<_, context_window_eval::Error>);
    let evaluate = |json: String| evaluation.evaluate(&EvalCase::from_json(&json)?);
    evaluate_all(sessions, threads, evaluate, |result| {
        scores.add("talks", &result);
        Ok(())
    })
    .unwrap();
    scores
}

#[test]
fn scores_do_not_depend_on_threads() {
    let evaluation = evaluation([100, 400]);
    let one = scores(&evaluation, 1);
    for threads in [2, 7] {
        assert_eq!(scores(&evaluation, threads).to_json(), one.to_json());
    }
    assert_eq!(one.to_csv().lines().count(), 1 + 2 * 6);
}

#[test]
fn no_policy_exceeds_the_oracle() {
    let retrieves = Policy::preset("rag").unwrap().with_recall();
    let policies = ["default", "chat", "dropping"].map(|name| Policy::preset(name).unwrap());
    let baselines = context_window_eval::Baseline::ALL.map(Policy::baseline);
    let all = policies.into_iter().chain([retrieves]).chain(baselines);
    let evaluation = evaluation([150, 600, 2_000]).with_policies(all);
    let scores = scores(&evaluation, 2);
    for budget in [150, 600, 2_000] {
        let found = |row: &context_window_eval::ScoreRow| (row.questions_whole, row.evidence_found);
        let rows: Vec<_> = scores.rows().iter().filter(|row| row.budget == budget).collect();
        let oracle = found(rows.last().unwrap());
        assert_eq!(rows.len(), 9);
        assert!(oracle.0 > 0);
        for row in rows {
            let (whole, evidence) = found(row);
            assert!(whole <= oracle.0 && evidence <= oracle.1, "{} at {budget}", row.policy);
        }
    }
    assert!(scores.rows().iter().any(|row| row.policy == "rag+recall" && row.questions_whole > 0));
}

#[test]
fn every_policy_finds_everything_if_everything_fits() {
    let evaluation = evaluation([100_000]).with_every(0);
    for row in scores(&evaluation, 1).rows() {
        let is_retrieval = row.policy == "bm25";
        assert!(is_retrieval || row.questions_whole == row.questions, "{}", row.policy);
        assert_eq!(row.overflows, 0);
    }
}

#[test]
fn first_error_in_the_order_of_the_sessions_is_returned() {
    let sessions = ["1", "x", "3", "y"].map(|text| Ok::<_, String>(text.to_owned()));
    let mut seen = Vec::new();
    let evaluate = |text: String| text.parse::<u32>().map_err(|_| text);
    let error = evaluate_all(sessions.into_iter(), 3, evaluate, |number| {
        seen.push(number);
        Ok(())
    });
    assert_eq!((error, seen), (Err("x".to_owned()), vec![1]));
}

#[test]
fn settings_tell_evaluations_apart() {
    let counter = || TokenCounter::named("o200k_base").unwrap();
    let settings = [
        evaluation([100]).settings(),
        evaluation([100]).with_costs(CostTerms::default().with_day(Some("2026-12-01"))).settings(),
        Evaluation::new(Model::custom("m"), counter()).settings(),
        Evaluation::new(Model::custom("n"), counter()).settings(),
        Evaluation::new(Model::custom("m"), TokenCounter::chars_per_4()).settings(),
        evaluation([200]).settings(),
        evaluation([100]).with_every(3).settings(),
        evaluation([100]).with_needles(context_window_eval::Needles::from_seed(1)).settings(),
        evaluation([100]).with_policies([Policy::preset("rag").unwrap()]).settings(),
        evaluation([100]).with_policies([Policy::preset("chat").unwrap()]).settings(),
    ];
    let different: std::collections::BTreeSet<_> = settings.iter().collect();
    assert_eq!(different.len(), settings.len());
    assert_eq!(evaluation([100]).settings(), settings[0]);
}
