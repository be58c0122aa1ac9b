//! Figures on real sessions and retrieval sets that were measured by another program too.

use context_window::{Model, TokenCounter};
use context_window_eval::{Baseline, EvalCase, Evaluation, Policy, QuestionResult};
use context_window_testing::data;

/// Returns the results of the first questions with evidence at one budget, for the default options.
fn results(file: &str, budget: u64, questions: usize) -> Option<Vec<QuestionResult>> {
    let text = data::text(file)?;
    let evaluation = Evaluation::new(Model::custom("m"), TokenCounter::named("o200k_base").unwrap())
        .with_budgets([budget])
        .with_policies([Policy::preset("default").unwrap(), Policy::baseline(Baseline::Oracle)])
        .with_every(0);
    let mut found = Vec::new();
    for line in text.lines() {
        let result = evaluation.evaluate(&EvalCase::from_json(line).unwrap()).unwrap();
        let [cell, oracle] = <[_; 2]>::try_from(result.cells).unwrap();
        for (own, best) in cell.questions.iter().zip(&oracle.questions) {
            assert!(
                best.missing.len() <= own.missing.len() || best.tokens + 200 > budget,
                "{}",
                result.session
            );
        }
        found.extend(cell.questions.into_iter().filter(|result| result.evidence > 0));
        if found.len() >= questions {
            break;
        }
    }
    found.truncate(questions);
    Some(found)
}

/// Checks the number of questions with all evidence, and the mean share in per mille.
fn check(file: &str, budget: u64, questions: usize, whole: usize, share: usize) {
    let Some(results) = results(file, budget, questions) else { return };
    assert_eq!(results.len(), questions);
    assert_eq!(
        results.iter().filter(|result| result.missing.is_empty()).count(),
        whole,
        "{file} at {budget}"
    );
    let shares = results.iter().map(|result| {
        let all = result.evidence as usize;
        (all - result.missing.len()) * 1_000_000 / all
    });
    let mean = shares.sum::<usize>() / questions;
    assert!(mean.abs_diff(share * 1_000) <= 1_000, "{file} at {budget}: {mean} millionths");
}

#[test]
fn questions_about_long_talks() {
    check("long_longmemeval.jsonl.gz", 2_048, 21, 0, 0);
    check("long_longmemeval.jsonl.gz", 4_096, 21, 1, 48);
}

#[test]
fn questions_about_meetings() {
    check("long_qmsum.jsonl.gz", 2_048, 150, 7, 87);
    check("long_qmsum.jsonl.gz", 4_096, 150, 25, 217);
}

#[test]
fn questions_with_documents() {
    check("rag_musique.jsonl.gz", 512, 100, 15, 480);
    check("rag_musique.jsonl.gz", 1_024, 100, 29, 609);
    check("rag_musique.jsonl.gz", 2_048, 100, 62, 824);
}
