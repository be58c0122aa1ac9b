//! Estimated savings by caching, compared with provider reports of Claude Code and Copilot Chat sessions.
//! Needs `CONTEXT_WINDOW_DATA` and reports a skip without it. The table of `docs/guide/caching.md` is made
//! here.

use crate::support::data;
use context_window::{Model, usage::CostTerms};
use serde_json::Value;

/// Tokens of a series of prompts, as estimated by the cache model and as reported by the provider.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Sums {
    prompts: u64,
    tokens: u64,
    read: [u64; 2],
    written: [u64; 2],
    /// Costs in billionths of a US dollar.
    cost: [u64; 2],
    /// Number of prompts whose estimated cached tokens differ from the report by at most 1 % of the prompt.
    close: u64,
}

/// Returns the tokens of a reported prompt: read from the cache, written to it, and neither.
fn parts(usage: &Value) -> [u64; 3] {
    ["cache_read", "cache_write", "prompt"].map(|key| usage[key].as_u64().unwrap_or_default())
}

/// Compares estimates with reports. Each prompt extends the one before, unless a compaction came between
/// them. Then only the instructions are repeated, which are not in the log.
fn compared(model: &Model, reports: &[Value], compacted_at: &[u64]) -> Sums {
    let mut sums = Sums::default();
    let price = model.price.as_ref().unwrap();
    // Prices in millionths of a millionth of a dollar per token.
    let [input, cache_read, cache_write] =
        [price.input, price.cache_read.unwrap(), price.cache_write.unwrap()]
            .map(|price| (price * 1e6).round() as u64);
    for pair in reports.windows(2) {
        let ([read, written, plain], before) = (parts(&pair[1]), parts(&pair[0]));
        let (total, last) = (read + written + plain, before.iter().sum::<u64>());
        let [from, to] = [&pair[0], &pair[1]].map(|usage| usage["at"].as_u64().unwrap());
        if last == 0 || total == 0 || compacted_at.iter().any(|at| (from..=to).contains(at)) {
            continue;
        }
        let said = model.input_cost(total, last.min(total), CostTerms::default()).unwrap();
        sums.prompts += 1;
        sums.tokens += total;
        sums.close += u64::from(said.read.abs_diff(read) * 100 <= total);
        for (sum, (own, reported)) in [
            (&mut sums.read, (said.read, read)),
            (&mut sums.written, (said.written, written)),
            (
                &mut sums.cost,
                (said.billionths, (read * cache_read + written * cache_write + plain * input) / 1_000),
            ),
        ] {
            sum[0] += own;
            sum[1] += reported;
        }
    }
    sums
}

/// Formats a row of the table: prompts, tokens, read, written and cost, each as estimated and as reported.
fn row(name: &str, sums: &Sums) -> String {
    let k = |tokens: u64| context_window_report::grouped(tokens);
    let ratio = |[own, reported]: [u64; 2]| match reported {
        0 => "-".to_owned(),
        _ => format!("{}.{:02}", own * 100 / reported / 100, own * 100 / reported % 100),
    };
    format!(
        "| {name} | {} | {} | {} of {} | {} | {} | {} |",
        sums.prompts,
        k(sums.tokens),
        sums.close,
        sums.prompts,
        ratio(sums.read),
        ratio(sums.written),
        ratio(sums.cost)
    )
}

#[test]
fn cache_costs_equal_the_reported_costs() {
    let sessions: Vec<Value> = data::texts(&["conv_claudecode"])
        .iter()
        .flat_map(|text| text.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    if sessions.is_empty() {
        return;
    }
    let model = Model::named("claude-opus-4-6").unwrap();
    assert!(model.price.is_some());
    let mut rows = Vec::new();
    let mut all = Sums::default();
    for session in &sessions {
        let meta = &session["meta"];
        let reports = meta["usage"].as_array().cloned().unwrap_or_default();
        let compacted = meta["compact_summary_at"].as_array().into_iter().flatten();
        let compacted: Vec<u64> = compacted.filter_map(Value::as_u64).collect();
        let sums = compared(&model, &reports, &compacted);
        if sums.prompts >= 100 {
            let id = session["id"].as_str().unwrap();
            rows.push(row(&format!("Claude Code {}", &id[11..19]), &sums));
        }
        all.prompts += sums.prompts;
        all.tokens += sums.tokens;
        all.close += sums.close;
        for at in 0..2 {
            all.read[at] += sums.read[at];
            all.written[at] += sums.written[at];
            all.cost[at] += sums.cost[at];
        }
    }
    rows.push(row("all 21 sessions", &all));
    let copilot = data::texts(&["replay_copilot"]).concat();
    let copilot: Value = serde_json::from_str(copilot.lines().next().unwrap()).unwrap();
    let requests = copilot["requests"].as_array().unwrap();
    let mut of_copilot = Sums::default();
    for pair in requests.windows(2) {
        let [before, now] = [&pair[0], &pair[1]].map(|one| one["usage"]["prompt"].as_u64().unwrap());
        // Another model has none of it in its cache.
        let same = pair[0]["model"] == pair[1]["model"];
        let model = Model::named("claude-sonnet-4-5").unwrap();
        let said = model.input_cost(now, if same { before } else { 0 }, CostTerms::default()).unwrap();
        let read = pair[1]["usage"]["cache_read"].as_u64().unwrap();
        of_copilot.prompts += 1;
        of_copilot.tokens += now;
        of_copilot.close += u64::from(said.read.abs_diff(read) * 20 <= now);
        of_copilot.read = [of_copilot.read[0] + said.read, of_copilot.read[1] + read];
    }
    rows.push(row("Copilot Chat, within 5 %", &of_copilot));
    eprintln!("{}", rows.join("\n"));
    // Most prompts of an agent extend the last one and are read from the cache up to its end.
    assert!(all.prompts > 400 && all.close * 100 >= all.prompts * 90, "{all:?}");
    // Cache misses for reasons outside the log are not in the estimate, so it may be lower.
    assert!(all.cost[0] <= all.cost[1] && all.cost[0] * 100 >= all.cost[1] * 80, "{all:?}");
    assert_eq!(of_copilot.close, of_copilot.prompts, "{of_copilot:?}");
    let page = std::fs::read_to_string("docs/guide/caching.md").unwrap();
    for row in rows {
        assert!(page.contains(&row), "{row}");
    }
}
