//! Explanations, diffs, repeated prefixes, and test vectors.

use super::{EXAMPLE, fails, file, inspect, out};
use serde_json::Value;

/// The shipped test vectors, at least 200, pass; a wrong one is found and named.
#[test]
fn the_vectors_hold() {
    let said = out(&["vectors", "tests/vectors"]);
    let count: usize = said.split(' ').next().unwrap().parse().unwrap();
    assert!(count >= 200 && said.starts_with(&format!("{count} vectors, 0 failed\n")), "{said}");
    let sound = std::fs::read_to_string(crate::support::root().join("tests/vectors/s8_not_monotone_16.json"))
        .unwrap();
    let wrong = file("wrong-vector.json", sound.replace("\"total\": 16", "\"total\": 17").as_bytes());
    let assert = inspect(&["vectors", wrong.to_str().unwrap()]).assert().code(1);
    let said = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert!(
        said.contains("total: expected 17\n  total: planned  16") && said.contains("1 vector, 1 failed"),
        "{said}"
    );
    let none = file("no-vector.json", b"{\"rules\": [], \"budget\": -1}");
    assert!(fails(&["vectors", none.to_str().unwrap()]).contains("not a test vector"));
}

/// The report of the largest prompt states its budget too, because a prompt may be large only relative to it.
#[test]
fn a_replay_names_the_budget_of_its_largest_prompt() {
    let text = out(&["replay", "examples/long-talk.json", "--budget", "200"]);
    assert!(
        text.contains(", largest prompt 196 of its budget of 200 tokens, 70 % of all budgets used"),
        "{text}"
    );
}

/// The row of a run has the same token count in the report and in its explanation.
#[test]
fn a_run_costs_the_same_in_the_report_and_in_its_explanation() {
    let talk = ["examples/long-talk.json", "--budget", "200"];
    let report = out(&talk);
    let row = report.lines().find(|line| line.contains("..") && line.contains("older;")).unwrap();
    let (tokens, name) = row.trim().split_once("  ").unwrap();
    let name = name.split_whitespace().next().unwrap();
    let table = out(&[&["explain"], &talk[..]].concat());
    let line = table.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line.split_whitespace().any(|cell| cell == tokens), "{row}\n{line}");
    let one = out(&[&["explain", talk[0], name], &talk[1..]].concat());
    assert!(one.starts_with(name) && one.contains(&format!("this run needs {tokens}\n")), "{one}");
}

#[test]
fn explanation_names_the_reason_and_the_remedy() {
    let args = ["explain", EXAMPLE, "hours", "--budget", "400"];
    insta::assert_snapshot!(out(&args), @r"
    hours  out: too large; 30 tokens left
      prompt budget  400, this item needs 33
      blocked by     postage
      enters at      403, 3 more
      in at          403 to 456, 490 and more
      always from    490
    ");
    let readme = std::fs::read_to_string(crate::support::root().join("README.md")).unwrap();
    assert!(readme.contains(&out(&args)), "the README shows another explanation");
    let json: Value = serde_json::from_str(&out(&[&args[..], &["--format", "json"]].concat())).unwrap();
    assert_eq!((&json["enters_at"], &json["stays_from"]), (&403.into(), &490.into()));
    // Planning confirms the explanation.
    for (budget, is_in) in
        [("402", false), ("403", true), ("456", true), ("457", false), ("489", false), ("490", true)]
    {
        let plan: Value =
            serde_json::from_str(&out(&[EXAMPLE, "--budget", budget, "--format", "json"])).unwrap();
        let ids = plan["included"].as_array().unwrap().iter().map(|row| &row["id"]);
        assert_eq!(ids.filter(|id| *id == "hours").count() == 1, is_in, "{budget}");
    }
    let all = out(&["explain", EXAMPLE, "--budget", "400"]);
    assert!(all.contains("hours     out      33        403          490"), "{all}");
    assert!(
        fails(&["explain", EXAMPLE, "huors"])
            .contains("no item has the id `huors`; expected the id of a message, note, document or system text; did you mean `hours`?")
    );
}

#[test]
fn diff_names_one_cause_per_change() {
    let said = out(&["diff", EXAMPLE, EXAMPLE, "--budget", "400", "--then-budget", "300"]);
    insta::assert_snapshot!(said, @r"
    before  370 / 400 tokens, 13 in, 2 out
    after   280 / 300 tokens, 11 in, 4 out
    cached  246 of the second prompt's 280 tokens, 68 % of the first one's items, cache break at faults: dropped: budget

    item     before        after            cause   verified by
    faults   in: relevant  dropped: budget  budget  this change alone
    postage  in: relevant  dropped: budget  budget  this change alone

    2 changes
    ");
    assert!(out(&["diff", EXAMPLE, EXAMPLE]).ends_with("\nno differences\n"));
    assert!(out(&["diff", EXAMPLE, EXAMPLE, "--format", "markdown"]).ends_with("\n\nno differences\n"));
    let json = out(&["diff", EXAMPLE, EXAMPLE, "--then-budget", "300", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["changes"].as_array().unwrap().iter().all(|change| change["cause"] == "budget"));
    assert!(fails(&["diff", EXAMPLE, "nowhere.json"]).contains("nowhere.json cannot be read"));
}

/// Tools in another order are the only difference: every format reports it, and its effect on the cache.
#[test]
fn diff_reports_reordered_tools() {
    let session = |names: [&str; 3], about: &str| {
        let tool = |name: &str| serde_json::json!({"name": name, "description": format!("{about} {name}")});
        let tools: Vec<Value> = names.into_iter().map(tool).collect();
        serde_json::json!({"model": "gpt-4o", "tools": tools, "messages": [{"role": "user", "content": "Which?"}]})
    };
    let path = |name: &str, session: Value| file(name, session.to_string().as_bytes());
    let first = path("tools-1.json", session(["stock", "price", "ship"], "Looks up"));
    let second = path("tools-2.json", session(["ship", "stock", "price"], "Looks up"));
    let third = path("tools-3.json", session(["stock", "price", "route"], "Finds"));
    let [first, second, third] = [&first, &second, &third].map(|path| path.to_str().unwrap());
    let said = out(&["diff", first, second, "--width", "200"]);
    let order = "tools   the same tools in another order; tools come first in a prompt: nothing is read from the cache";
    assert!(said.contains(order) && said.contains("cache break at tools: order changed"), "{said}");
    assert!(said.ends_with("\nno item changed its state or text\n"), "{said}");
    for format in ["markdown", "html"] {
        let said = out(&["diff", first, second, "--format", format]);
        assert!(
            said.contains("the same tools in another order") && !said.contains("No differences."),
            "{said}"
        );
    }
    let json = |one: &str, other: &str| -> Value {
        serde_json::from_str(&out(&["diff", one, other, "--format", "json"])).unwrap()
    };
    let reordered = json(first, second);
    assert_eq!(reordered["tools"]["reordered"], true);
    assert_eq!(
        (&reordered["prefix"]["tokens"], &reordered["prefix"]["differs_at"]),
        (&0.into(), &"tools".into())
    );
    let assert = inspect(&["diff", first, second, "--fail-on", "cache"]).assert().code(1);
    let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(said.contains("cache break at tools: order changed"), "{said}");
    let other = json(first, third);
    assert_eq!(other["tools"]["added"], serde_json::json!(["route"]));
    assert_eq!(other["tools"]["removed"], serde_json::json!(["ship"]));
    assert_eq!(other["tools"]["changed"], serde_json::json!(["stock", "price"]));
    assert!(
        out(&["diff", first, third, "--width", "200"])
            .contains("tools   added route; removed ship; changed stock, price")
    );
    let same = json(first, first);
    assert!(same["tools"].is_null() && same["prefix"]["cause"].is_null(), "{same}");
}

/// All commands name a document by its id alone, unless another item has that id too (rule O5).
#[test]
fn namespace_is_written_if_two_items_share_an_id() {
    let session = |message: &str| {
        serde_json::json!({
            "model": "gpt-4o",
            "messages": [{"id": message, "role": "user", "content": "How long do refunds take?"}],
            "rag": [{"id": "refunds", "score": 0.9, "text": "Refunds take 5 days."}],
        })
    };
    for (message, name) in [("m0", "refunds"), ("refunds", "rag:refunds")] {
        let path = file(&format!("namespace-{message}.json"), session(message).to_string().as_bytes());
        let path = path.to_str().unwrap();
        let first_words = |text: &str| -> Vec<String> {
            text.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
        };
        let diff = first_words(&out(&["diff", path, path, "--budget", "60", "--then-budget", "20"]));
        assert!(diff.contains(&name.to_owned()), "{diff:?}");
        let explained = first_words(&out(&["explain", path]));
        assert!(explained.contains(&name.to_owned()), "{explained:?}");
        let one = out(&["explain", path, "rag:refunds"]);
        assert!(one.starts_with(&format!("{name}  in")), "{one}");
        let plan = out(&[path]);
        let row = plan.lines().find(|line| line.ends_with("document")).unwrap();
        assert_eq!(row.split_whitespace().nth(1), Some(name), "{plan}");
    }
}

/// The tokens in a list are those of each session's next prompt, including its documents.
#[test]
fn a_list_has_the_tokens_of_the_plans() {
    let session = |id: &str, documents: usize| {
        let documents: Vec<Value> = (0..documents)
            .map(|n| serde_json::json!({"id": format!("d{n}"), "score": 0.5, "text": "Refunds take 5 days. ".repeat(n + 1)}))
            .collect();
        serde_json::json!({"id": id, "model": "gpt-4o", "rag": documents, "messages": [{"role": "user", "content": "How long?"}]})
    };
    let lines: Vec<String> = [("a", 0), ("b", 3), ("c", 40)].map(|(id, n)| session(id, n).to_string()).into();
    let path = file("retrieval.jsonl", lines.join("\n").as_bytes());
    let path = path.to_str().unwrap();
    let listed: Value = serde_json::from_str(&out(&[path, "--list", "--format", "json"])).unwrap();
    for one in listed.as_array().unwrap() {
        let id = one["id"].as_str().unwrap();
        let plan: Value = serde_json::from_str(&out(&[path, "--id", id, "--format", "json"])).unwrap();
        assert_eq!(one["tokens"]["n"], plan["estimated_tokens_total"], "{id}");
    }
}

/// The cached prefix is in the report and the JSON.
#[test]
fn plan_reports_the_length_of_its_cached_prefix() {
    let anchor = file("repeats-anchor.json", b"");
    let anchor = anchor.to_str().unwrap();
    out(&[EXAMPLE, "--budget", "400", "--save-anchor", anchor]);
    let again = out(&[EXAMPLE, "--budget", "400", "--previous", anchor]);
    let json: Value =
        serde_json::from_str(&out(&[EXAMPLE, "--budget", "400", "--previous", anchor, "--format", "json"]))
            .unwrap();
    let sum: u64 =
        json["included"].as_array().unwrap().iter().map(|row| row["token_estimate"].as_u64().unwrap()).sum();
    let sum = sum + 42; // the tools
    let total = &json["estimated_tokens_total"];
    let whole =
        format!("cached    {sum} of this prompt's {total} tokens, 100 % of the last prompt's items\n");
    assert!(again.contains(&whole), "{again}");
    assert_eq!(json["prefix"]["tokens"], sum);
    let page = std::fs::read_to_string(crate::support::root().join("docs/reference/explaining.md")).unwrap();
    let shown = out(&[EXAMPLE, "--budget", "330", "--previous", anchor]);
    let line = shown.lines().find(|line| line.starts_with("cached")).unwrap();
    assert!(page.contains(line), "the page shows another line than {line}");
    let less = out(&[EXAMPLE, "--budget", "300", "--previous", anchor]);
    let less = less.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(less.contains("of the last prompt's items, breaks at faults: dropped: budget"), "{less}");
}

#[test]
fn replay_totals_are_the_sums_of_its_prompts() {
    let files = ["examples/long-talk.json", EXAMPLE];
    let lines = out(&["replay", files[0], files[1], "--format", "json"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (totals, prompts) = lines.split_last().unwrap();
    let sum = |key: &str| prompts.iter().filter_map(|line| line[key].as_u64()).sum::<u64>();
    let totals = &totals["totals"];
    assert_eq!(prompts.len(), 16);
    assert_eq!((totals["sessions"].as_u64(), totals["plans"].as_u64()), (Some(2), Some(16)));
    assert_eq!(totals["compactions"], 1);
    assert_eq!(totals["estimated_tokens"], sum("estimated_tokens_total"));
    assert_eq!(totals["reused_prefix_tokens"], sum("reused_prefix_tokens"));
    let ratio = |part: u64, whole: u64| (part * 10_000 / whole) as f64 / 10_000.0;
    assert_eq!(totals["prefix_reuse"], ratio(sum("reused_prefix_tokens"), sum("previous_tokens")));
    assert_eq!(totals["budget_use"], ratio(sum("estimated_tokens_total"), sum("prompt_budget")));
    let later = prompts.iter().filter(|line| line["previous_tokens"].is_u64());
    let after: u64 = later.filter_map(|line| line["estimated_tokens_total"].as_u64()).sum();
    assert_eq!(totals["prompt_reuse"], ratio(sum("reused_prefix_tokens"), after));

    let text = out(&["replay", files[0]]);
    assert!(
        text.contains("compacted #1")
            && text.contains("12 prompts of 1 session: 0 over budget, 1 compaction,")
    );
    // Events before the first planned prompt are not shown at that prompt.
    let newest = out(&["replay", files[0], "--newest", "3"]);
    assert!(!newest.contains("compacted #") && newest.contains("\n    10"), "{newest}");
    assert!(out(&["replay", files[0], files[1]]).contains("support-chat.json        4"));
    let page = out(&["replay", files[0], "--newest", "3", "--format", "html"]);
    assert!(page.contains(">12</th>") && page.contains("9 older prompts"));
    assert!(fails(&["replay", files[0], files[1], "--format", "html"]).contains("a page shows one session"));
    assert!(fails(&["replay", "nowhere.json"]).contains("nowhere.json cannot be read"));
}

/// Code keeps its layout in every output.
#[test]
fn tabs_are_spaces() {
    let session = br#"{"messages": [{"role": "user", "id": "q", "content": "if x {\n\tgo()\n}"}]}"#;
    let path = file("tabs.json", session);
    let path = path.to_str().unwrap();
    for args in [
        &["history", path, "--expand"][..],
        &["history", path, "--format", "markdown"],
        &["tui", path, "--print", "120x30", "--keys", "j"],
    ] {
        let shown = out(args);
        assert!(shown.contains("    go()") && !shown.contains('\t') && !shown.contains("?go"), "{shown}");
    }
    assert!(out(&["history", path, "--format", "json"]).contains("{\\n\\tgo()"));
}

/// The prompts on the screen and those of `replay` are equal.
#[test]
fn replay_and_screen_agree_on_a_prompt() {
    let args = ["examples/long-talk.json", "--budget", "200"];
    let replayed = out(&[&["replay"], &args[..]].concat());
    let screen = out(&[&["tui"], &args[..], &["--print", "200x60", "--keys", "2g"]].concat());
    let rows = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.trim_matches('│').trim());
        let lines = lines.filter(|line| !line.contains(" prompts of "));
        // The numbers of the axis are followed by bars.
        let lines = lines.skip_while(|line| !line.starts_with("prompt"));
        let lines = lines.filter(|line| !line.contains(" tokens again"));
        let rows =
            lines.filter(|line| line.split_whitespace().next().is_some_and(|n| n.parse::<u8>().is_ok()));
        rows.map(|row| row.split("  ").last().unwrap().trim().to_owned()).collect()
    };
    assert_eq!(rows(&replayed), rows(&screen));
    assert!(replayed.contains(" dropped (budget)"), "{replayed}");
}
