//! Compactions and rewinds in the log, in plans and in files (rules C1, U4, E4).

use super::*;
use context_window::plan::NoticeCode;

#[test]
fn a_rewind_across_a_compaction_brings_the_messages_back() {
    let manager = bytes(config(|config| config.compaction.retain.messages = Some(2)));
    let mut log = talk(12, 60);
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
    log.extend((12..16).map(|at| said(at, 60)));
    log.rewind_before("m14").unwrap();
    assert_eq!(ids(&log), ["#1", "m10", "m11", "m12", "m13"], "after the compaction: it stays");
    log.rewind_before("m8").unwrap();
    assert_eq!(ids(&log), range(0, 8), "across it: what it archived is back");
    assert!(log.rewind_before("m9").is_err(), "taken away already");
    assert!(log.rewind_before("nobody").is_err());
    log.push(said(16, 60));
    assert_eq!(ids(&log), [range(0, 8), vec!["m16".into()]].concat());
    let markers = log.history().filter(|row| !matches!(row, HistoryRow::Message { .. })).count();
    assert_eq!((markers, log.messages().len()), (3, 17));
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    let reasons: Vec<String> = plan.excluded.iter().map(|row| row.reason.to_string()).collect();
    assert_eq!(reasons, ["archived by a rewind"]);
    // Numbering continues.
    log.extend((0..10).map(|at| said(20 + at, 60)));
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    assert_eq!(manager.compactor().apply_summary(&mut log, &job, "Again.").unwrap().number, 2);
}

#[test]
fn starting_fresh_archives_everything_without_a_summary() {
    let manager = bytes(Config::default());
    let mut log = Conversation::new();
    log.push_system("s0", "Be brief.");
    log.extend((0..12).map(|at| said(at, 60)));
    log.start_fresh();
    assert!(ids(&log).is_empty());
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!(plan.included.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["s0"]);
    log.push(said(12, 60));
    assert_eq!(ids(&log), ["m12"]);
    let stats = manager.stats(&PlanRequest::like_last(&log)).unwrap();
    assert_eq!((stats.messages, stats.active, stats.archived, stats.turns), (13, 1, 12, 1));
}

/// A compaction has a notice of its own. So a window is lost only if its start is not in the conversation.
#[test]
fn archived_window_is_not_reported_as_lost() {
    let manager = bytes(Config::default());
    let mut log = talk(11, 60);
    let anchor = manager.build_plan(&PlanRequest::new(&log)).unwrap().anchor();
    let loses_the_window = |log: &Conversation| {
        let plan = manager.build_plan(&PlanRequest::new(log).with_previous(anchor.clone())).unwrap();
        plan.notices.iter().any(|notice| notice.code == NoticeCode::WindowLost)
    };
    assert!(!loses_the_window(&log));
    log.start_fresh();
    assert!(!loses_the_window(&log));
    assert!(loses_the_window(&Conversation::from([Message::user("Hello.").with_id("other")])));
}

#[test]
fn plan_after_archiving_equals_plan_of_the_active_messages() {
    let manager = bytes(Config::default());
    for keep in [3, 8, 14, 19] {
        let mut log = talk(20, 90);
        log.rewind_before("m15").unwrap();
        log.start_fresh();
        log.extend((0..keep).map(|at| said(40 + at, 90)));
        let same: Conversation =
            (0..keep).map(|at| said(40 + at, 90).with_id(format!("m{}", 20 + at))).collect::<Vec<_>>().into();
        for budget in [100, 300, 700, 1_500, 5_000] {
            let plan = |log| {
                manager
                    .build_plan(&PlanRequest::new(log).with_limits(RequestLimits::prompt_budget(budget)))
                    .unwrap()
            };
            let (compacted, fresh) = (plan(&log), plan(&same));
            let rows = |plan: &ContextPlan| -> Vec<String> {
                plan.included
                    .iter()
                    .map(|row| format!("{} {:?} {:?}", row.id, row.token_estimate, row.reason))
                    .collect()
            };
            assert_eq!(rows(&compacted), rows(&fresh));
            assert_eq!(compacted.estimated_tokens_total, fresh.estimated_tokens_total);
            let out = |plan: &ContextPlan| {
                plan.excluded
                    .iter()
                    .filter(|row| row.reason.name() != "archived")
                    .cloned()
                    .collect::<Vec<_>>()
            };
            assert_eq!(out(&compacted), out(&fresh));
        }
    }
}

/// Changes that a compaction makes to a plan have the compaction as cause, confirmed by planning again (rule
/// E4).
#[test]
fn a_diff_names_compactions() {
    let manager = bytes(config(|config| config.compaction.retain.messages = Some(2)));
    let before = talk(12, 60);
    let mut after = before.clone();
    let job = manager.compactor().now(&PlanRequest::like_last(&after)).unwrap().unwrap();
    manager.compactor().apply_summary(&mut after, &job, "They talked.").unwrap();
    let (a, b) = (PlanRequest::new(&before), PlanRequest::new(&after));
    let diff = Diff::between(&manager.explainer(&a), &manager.explainer(&b)).unwrap();
    assert!(!diff.changes.is_empty());
    for change in &diff.changes {
        assert_eq!((change.cause, change.evidence), (Cause::Compaction, Evidence::Alone), "{change:?}");
    }
    let ids: Vec<&str> = diff.changes.iter().map(|change| change.id.as_str()).collect();
    assert_eq!(ids[0], "summary:1");
    assert!(ids.contains(&"m0") && ids.contains(&"m9") && !ids.contains(&"m10"));
    // The same holds in the other direction.
    let back = Diff::between(&manager.explainer(&b), &manager.explainer(&a)).unwrap();
    assert!(back.changes.iter().all(|change| change.cause == Cause::Compaction));
    let explained = manager.explainer(&b).explain("m4").unwrap();
    assert_eq!(explained.never.map(|never| never.to_string()).as_deref(), Some("archived by compaction #1"));
    let summary = manager.explainer(&b).explain("summary:1").unwrap();
    assert!(summary.included && summary.leaves_at.is_none());
}

#[test]
fn records_of_a_file_that_make_no_sense_are_not_used() {
    let block = |fields: &str| {
        format!(
            r#"{{"messages":[{{"role":"user","content":"a"}},
            {{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}},
            {{"role":"tool","tool_call_id":"c","content":"r"}},{{"role":"assistant","content":"b"}},
            {{"role":"user","content":[{{"type":"context_compaction","summary":"s",{fields}}}]}},{{"role":"user","content":"d"}}]}}"#
        )
    };
    for fields in [
        r#""head":"m2""#,
        r#""head":"m1""#,
        r#""first_active":"m2""#,
        r#""from":"m3","first_active":"m1""#,
        r#""from":"m1","first_active":"m1""#,
        r#""from":"nobody""#,
    ] {
        let session = Session::from_json(&block(fields)).unwrap();
        assert_eq!((session.ignored().len(), session.log.compactions().count()), (1, 0), "{fields}");
    }
    let session =
        Session::from_json(&block(r#""compaction_number":4294967295,"first_active":"m3""#)).unwrap();
    assert_eq!(session.log.compactions().map(|record| record.number).collect::<Vec<_>>(), [1]);
    let session = Session::from_json(&block(r#""head":"m0""#)).unwrap();
    assert_eq!(ids(&session.log), ["m0", "#1", "m4"]);
}

#[test]
fn rewind_removes_the_call_of_a_removed_result() {
    let mut log =
        Conversation::from([Message::user("a"), call("x"), Message::tool("x", "r"), Message::assistant("b")]);
    log.rewind_before("m2").unwrap();
    assert_eq!(ids(&log), ["m0"]);
    assert_eq!(log.open_calls().count(), 0);
    // Calls with archived results stay answered (rule H1).
    let manager = bytes(Config::default());
    let mut log = Conversation::from([Message::user("a"), call("x"), Message::tool("x", "first")]);
    log.extend((0..8).map(|at| said(at, 80)));
    let job =
        manager.compactor().range(&PlanRequest::like_last(&log), None, Some(&"m4".into())).unwrap().unwrap();
    manager.compactor().apply_summary(&mut log, &job, "s").unwrap();
    log.push(Message::tool("x", "again"));
    log.push(call("x"));
    log.push(Message::tool("x", "second"));
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(plan.messages().iter().any(|message| message.text() == "second"));
    assert!(plan.excluded.iter().any(|row| row.reason.to_string() == "second result for one call"));
}
