//! Percentages: the parts of a prompt sum to 100 % in every report.

use super::html::all;
use context_window::{text::plain::per_cent, usage::Level};
use context_window_report as report;

/// Returns the sum of the percentages in these lines; `<1 %` counts as 0.
fn shares<'a>(lines: impl Iterator<Item = &'a str>) -> u64 {
    let share = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.windows(2).position(|pair| pair[1].starts_with('%') && !pair[0].contains('<'))?;
        words[at].parse::<u64>().ok()
    };
    lines.filter_map(share).sum()
}

/// For every prompt, the kinds in each report sum to 100 %, and a kind has the same percentage in all of
/// them.
#[test]
fn shares_sum_to_the_whole_in_every_report() {
    let mut plans = 0;
    for planned in all() {
        for budget in [None, Some(60), Some(300)] {
            let request = planned.session.request();
            let request = match budget {
                Some(budget) => request.with_limits(planned.at(budget)),
                None => request,
            };
            let Ok(plan) = planned.manager.build_plan(&request) else { continue };
            if plan.composition(0).kinds.is_empty() {
                continue;
            }
            plans += 1;
            let (name, text) = (&planned.name, report::text(&plan).to_string());
            let (_, fills) = text.split_once("\ncontents of the prompt\n").unwrap();
            let fills = fills.split("\n\n").next().unwrap();
            assert_eq!(shares(fills.lines()), 100, "{name} at {budget:?}\n{fills}");
            let markdown = report::markdown(&plan).to_string();
            let (_, table) = markdown.split_once("| contents of the prompt |").unwrap();
            let table = table.split("\n\n").next().unwrap();
            assert_eq!(
                shares(table.lines().map(|line| line.rsplit("| ").next().unwrap())),
                100,
                "{name}\n{table}"
            );
            let grid = report::grid(&plan).to_string();
            assert_eq!(shares(grid.lines()), 100, "{name} at {budget:?}\n{grid}");
            let page = report::html(&plan).render().unwrap();
            for (from, cell) in [("id=\"kinds\"", "<td>"), ("id=\"legend\"", "class=\"unit\">")] {
                let part = page.split_once(from).unwrap().1;
                let end = if cell == "<td>" { "</table>" } else { "</ul>" };
                let part = part.split(end).next().unwrap();
                let cells = part.split(cell).map(|cell| cell.split('<').next().unwrap());
                assert_eq!(shares(cells), 100, "{name} at {budget:?}: {from}\n{part}");
            }
        }
    }
    assert!(plans > 150, "{plans}");
}

/// A single share is rounded down, like the usage level, and is 100 % only for the whole.
#[test]
fn share_is_never_rounded_up() {
    let shares = |parts: &[u64], whole: u64| report::percentages(parts, whole).join(", ");
    assert_eq!(shares(&[1, 1, 1], 3), "34 %, 33 %, 33 %");
    assert_eq!(shares(&[1, 1, 1], 6), "17 %, 17 %, 16 %");
    assert_eq!(shares(&[9_999, 1], 10_000), "100 %, <1 %");
    assert_eq!(shares(&[], 0), "");
    assert_eq!(shares(&[0, 5], 5), "0 %, 100 %");
    for (part, whole, expected) in [
        (0_u64, 0_u64, "0 %"),
        (1, 1_000, "<1 %"),
        (5, 1_000, "<1 %"),
        (806, 1_000, "80 %"),
        (995, 1_000, "99 %"),
        (1_000, 1_000, "100 %"),
        (246, 180, "136 %"),
        (12_345, 1_000, "1,234 %"),
        (5, 0, "0 %"),
        (u64::MAX, u64::MAX, "100 %"),
    ] {
        assert_eq!(report::percent(part, whole), expected, "{part} of {whole}");
    }
}

/// Returns the share of these tokens in a limit as every report must show it: in whole per cent, rounded
/// down.
fn rounded_down(tokens: u64, of: u64) -> String {
    match per_cent(tokens, of) {
        0 if tokens > 0 && of > 0 => "<1 %".into(),
        percent => format!("{} %", report::grouped(percent)),
    }
}

/// The share of a prompt in its budget is the same in every report, and so is that of the whole conversation.
#[test]
fn a_figure_is_rounded_down_in_every_report() {
    let (mut nearer_above, mut levels) = (0, 0);
    for planned in all() {
        for budget in (40..400).step_by(27) {
            let request = planned.session.request().with_limits(planned.at(budget));
            let Ok(plan) = planned.manager.build_plan(&request) else { continue };
            let (tokens, of) = (plan.estimated_tokens_total.tokens, plan.prompt_budget);
            nearer_above += u32::from(tokens < of && tokens * 100 % of >= of.div_ceil(2));
            let (percent, usage) = (rounded_down(tokens, of), &plan.usage);
            assert_eq!(report::percent(tokens, of), percent);
            let text = report::text(&plan).to_string();
            assert!(text.lines().next().unwrap().ends_with(&format!(", {percent}")), "{percent}\n{text}");
            let markdown = report::markdown(&plan).to_string();
            assert!(
                markdown.lines().next().unwrap().contains(&format!("({percent})")),
                "{percent}\n{markdown}"
            );
            let page = report::html(&plan).render().unwrap();
            assert!(page.contains(&format!("id=\"percent\">{}<", percent.replace('<', "&lt;"))), "{percent}");
            if usage.level == Level::Normal || usage.limit == 0 {
                continue;
            }
            levels += 1;
            let full = rounded_down(usage.conversation_tokens.tokens, usage.limit);
            assert_eq!(full, format!("{} %", report::grouped(usage.percent)));
            let line = text.lines().find(|line| line.contains("full conversation ")).unwrap();
            assert!(line.contains(&format!(", {full}: ")), "{full}\n{text}");
            assert!(page.contains(&format!(" tokens, {full}</p>")), "{full}");
        }
    }
    assert!(nearer_above > 100 && levels > 20, "{nearer_above} {levels}");
}
