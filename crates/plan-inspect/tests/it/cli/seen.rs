//! Regression tests for problems that users saw in reports and screens: the order of flags in the help,
//! uninformative numbers, colours, pages.

use super::{fails, file, out};
use crate::support::data;

const CHAT: &str = "examples/support-chat.json";
const TALK: &str = "examples/long-talk.json";

/// Returns the heading of the help above a flag.
fn heading(help: &str, flag: &str) -> String {
    let lines: Vec<&str> = help.lines().collect();
    let at = lines.iter().position(|line| line.starts_with(' ') && line.trim_start().starts_with(flag));
    let before = lines[..at.unwrap_or_else(|| panic!("{flag} in {help}"))].iter().rev();
    let found = before.map(|line| line.trim_end()).find(|line| line.ends_with(':') && !line.starts_with(' '));
    found.unwrap().to_owned()
}

#[test]
fn flags_are_listed_under_their_topic() {
    let tui = out(&["tui", "-h"]);
    for flag in ["--follow", "--against", "--what-if", "--print", "--keys"] {
        assert_eq!(heading(&tui, flag), "Screen:", "{flag}");
    }
    let compact = out(&["compact", "-h"]);
    for flag in ["--first <", "--last <", "--summary", "--apply"] {
        assert_eq!(heading(&compact, flag), "Compaction:", "{flag}");
    }
    assert_eq!(heading(&out(&["plan", "-h"]), "--list"), "Output:");
    assert_eq!(heading(&out(&["explain", "-h"]), "[ID]"), "Arguments:");
    assert_eq!(heading(&out(&["replay", "-h"]), "--cache-life"), "Costs:");
}

#[test]
fn help_fits_the_requested_width() {
    for width in ["60", "80"] {
        let most: usize = width.parse().unwrap();
        let help = out(&["plan", "--help", "--width", width]);
        // A name longer than the page stays whole.
        let too_long = help.lines().filter(|line| line.chars().count() > most && line.trim().contains(' '));
        assert_eq!(too_long.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}

/// Excluded items are counted in full if that is fast. In JSON, whose plans are compared, they are counted
/// only on request.
#[test]
fn excluded_items_are_counted_if_that_is_quick() {
    let report = out(&[CHAT, "--budget", "400"]);
    assert!(report.contains("      87  care ") && !report.contains(">="), "{report}");
    let bounds = out(&[CHAT, "--budget", "400", "--certainty", "bounds"]);
    assert!(bounds.contains(">=31  care"), "{bounds}");
    let json = |how: &[&str]| out(&[&[CHAT, "--budget", "400", "--format", "json"], how].concat());
    assert_eq!(json(&[]), json(&["--certainty", "bounds"]));
    assert_ne!(json(&[]), json(&["--certainty", "exact"]));
    // The screen accepts the flag too, and shows the same fingerprint.
    let screen = |how: &str| out(&["tui", CHAT, "--budget", "400", "--print", "120x40", "--certainty", how]);
    assert!(screen("exact").contains("- care             87") && screen("bounds").contains(">=31"));
    let fingerprint = |text: &str| text.split(" plan ").nth(1).unwrap()[..8].to_owned();
    assert_eq!(fingerprint(&screen("exact")), fingerprint(&screen("bounds")));
    // Texts of more than 2,000,000 bytes are not counted.
    let long = "words ".repeat(60_000);
    let messages: Vec<_> = (0..8)
        .map(|n| serde_json::json!({"role": (["user", "assistant"][n % 2]), "content": long}))
        .collect();
    let last = serde_json::json!({"role": "user", "content": "And?"});
    let messages = [&messages[..], &[last]].concat();
    let session = serde_json::json!({"model": "gpt-4o", "messages": messages});
    let path = file("long-texts.json", session.to_string().as_bytes());
    assert!(out(&[path.to_str().unwrap(), "--budget", "100"]).contains("<="));
}

/// The report states if a section uses tokens that other sections leave.
#[test]
fn grown_section_is_reported() {
    let mut found = 0;
    for budget in (100..600).step_by(7) {
        for example in [CHAT, TALK, "examples/agent-parallel-tools.json"] {
            let budget = budget.to_string();
            let plan: serde_json::Value =
                serde_json::from_str(&out(&[example, "--budget", &budget, "--format", "json"])).unwrap();
            let sections = plan["sections"].as_object().unwrap().values();
            let grew = sections.filter(|one| one["used"].as_u64() > one["budget"].as_u64()).count();
            let report = out(&[example, "--budget", &budget]);
            assert_eq!(
                report.matches("above its budget, unused by others").count(),
                grew,
                "{example} {budget}"
            );
            found += grew;
        }
    }
    assert!(found > 0);
}

#[test]
fn sessions_are_listed_and_picked() {
    let lines = "{\"id\": \"one\", \"model\": \"gpt-4o\", \"messages\": [{\"role\": \"user\", \"content\": \"One?\"}]}\n\
                 {\"id\": \"two\", \"messages\": [{\"role\": \"user\", \"content\": \"Two?\"}]}\n";
    let path = file("two.jsonl", lines.as_bytes());
    let path = path.to_str().unwrap();
    let listed = out(&[path, "--list"]);
    assert_eq!(listed.lines().next(), Some("id   model   messages  tokens"), "{listed}");
    assert!(listed.contains("one  gpt-4o         1       9"), "{listed}");
    let json: serde_json::Value = serde_json::from_str(&out(&[path, "--list", "--format", "json"])).unwrap();
    assert_eq!((json[1]["id"].as_str(), json[1]["messages"].as_u64()), (Some("two"), Some(1)));
    // An unreadable session hides no other. The session to compare with on the screen does not need this id.
    let broken =
        format!("{lines}{{\"id\": \"bad\", \"messages\": [{{\"role\": \"nobody\", \"content\": \"x\"}}]}}\n");
    let with_broken = file("broken.jsonl", broken.as_bytes());
    let listed = out(&[with_broken.to_str().unwrap(), "--list"]);
    assert!(
        listed.contains("one  gpt-4o         1       9")
            && listed.contains("\nbad  -              -       -"),
        "{listed}"
    );
    let against = ["tui", path, "--against", CHAT, "--print", "120x40", "--keys", "j<Enter>d"];
    assert!(out(&against).contains("this session vs. --against"));
    let picker = out(&["tui", path, "--print", "80x10"]);
    assert!(picker.contains("[Sessions · 1 of 2]") && picker.contains("Enter open"), "{picker}");
    let chosen = out(&["tui", path, "--print", "80x24", "--keys", "j<Enter>"]);
    assert!(chosen.starts_with("two · ") && chosen.contains("Contents of the prompt"), "{chosen}");
    let of_the_first = out(&["tui", path, "--print", "80x24", "--keys", "jjkk<Enter>v"]);
    assert!(of_the_first.starts_with("one · ") && of_the_first.contains("Sections"), "{of_the_first}");
}

/// Every report has colours on request and the same text without. The tool's errors have colours too.
#[test]
fn reports_and_errors_have_colours() {
    let commands: [&[&str]; 5] = [
        &["diff", CHAT, CHAT, "--budget", "400", "--then-budget", "300"],
        &["explain", CHAT, "--budget", "400"],
        &["explain", CHAT, "hours", "--budget", "400"],
        &["compact", TALK],
        &["replay", TALK, "--budget", "200"],
    ];
    for command in commands {
        let plain = out(command);
        let coloured = out(&[command, &["--color", "always"]].concat());
        assert!(!plain.contains('\u{1b}') && coloured.contains("\u{1b}["), "{command:?}");
        let mut bare = String::new();
        for (at, part) in coloured.split("\u{1b}[").enumerate() {
            bare += if at == 0 { part } else { part.split_once('m').unwrap().1 };
        }
        assert_eq!(bare, plain, "{command:?}");
    }
    let red = out(&["plan", "examples/overflow.json", "--color", "always"]);
    assert!(red.contains("\u{1b}[1;31mover budget by 66 tokens"), "{red}");
    assert!(
        fails(&["--color", "always", "nowhere.json"])
            .starts_with("\u{1b}[1;31mplan-inspect:\u{1b}[0m nowhere.json")
    );
    assert!(fails(&["nowhere.json"]).starts_with("plan-inspect: nowhere.json"));
}

#[test]
fn a_diff_is_a_page_and_a_compaction_markdown() {
    let page = out(&["diff", CHAT, CHAT, "--budget", "400", "--then-budget", "300", "--format", "html"]);
    assert!(page.starts_with("<!doctype html>") && !page.contains("<script"), "{page}");
    assert!(page.contains("<tr class=\"left\"><td>faults</td>"), "{page}");
    let same = out(&["diff", CHAT, CHAT, "--format", "html"]);
    assert!(same.contains("No differences."));
    let text = out(&["compact", TALK, "--format", "markdown"]);
    assert!(text.starts_with("| compaction | |\n| --- | --- |\n| compaction | "), "{text}");
    assert!(text.contains("| tokens | ") && text.contains("\n> "), "{text}");
}

/// With 200 columns, each row shows the beginning of its text.
#[test]
fn wide_reports_show_texts() {
    let wide = out(&[CHAT, "--budget", "400", "--width", "200"]);
    assert!(
        wide.contains("Do you sell kettles") || wide.contains("do you sell kettles that whistle?"),
        "{wide}"
    );
    assert!(!out(&[CHAT, "--budget", "400", "--width", "100"]).contains("Is the Finch in stock?"));
    assert!(wide.lines().all(|line| line.chars().count() <= 200));
}

/// The totals of a replay are the sums of its lines: breaks by cause, and their costs.
#[test]
fn a_replay_names_the_causes_of_its_breaks() {
    let arguments = ["replay", TALK, "--budget", "200", "--model", "claude-opus-5-5"];
    let text = out(&arguments);
    let json = out(&[&arguments[..], &["--format", "json"]].concat());
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (totals, prompts) = lines.split_last().unwrap();
    let totals = &totals["totals"];
    let causes = totals["cache_breaks_by_cause"].as_object().unwrap();
    assert!(!causes.is_empty());
    for (cause, count) in causes {
        let own = prompts.iter().filter(|prompt| prompt["cause"] == **cause).count();
        assert_eq!(count.as_u64(), Some(own as u64), "{cause}");
        assert!(text.contains(&format!("{own} {cause}")), "{text}");
    }
    let cost = prompts.iter().filter_map(|prompt| prompt["cache_break_billionths"].as_u64()).sum::<u64>();
    assert_eq!(totals["cache_breaks_cost_billionths"].as_u64(), Some(cost));
    // A cache life of one hour costs more, and a date with other prices gives those costs.
    let hour = out(&[&arguments[..], &["--cache-life", "1h", "--format", "json"]].concat());
    let sum = |json: &str| -> u64 {
        let totals: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
        totals["totals"]["input_cost_billionths"].as_u64().unwrap()
    };
    assert!(sum(&hour) >= sum(&json));
    assert!(fails(&[&arguments[..], &["--day", "tomorrow"]].concat()).contains("as in 2026-12-01"));
}

/// A real session that showed this error: every break is on the timeline, for any number of prompts per
/// column.
#[test]
fn no_break_is_hidden_if_prompts_share_a_column() {
    let Some(folder) = data::folder() else { return };
    let path = folder.join("conv_claudecode.jsonl.gz");
    let session = [
        path.to_str().unwrap(),
        "--id",
        "claudecode-258c7280-ae70-4798-800f-63464d01a85d",
        "--budget",
        "60k",
    ];
    let json = out(&[&["replay"], &session[..], &["--format", "json"]].concat());
    let breaks = json.lines().filter(|line| line.contains("\"cause\":\"")).count();
    assert!(breaks >= 2, "{breaks}");
    for size in ["100x40", "120x40", "200x50"] {
        let screen = out(&[&["tui"], &session[..], &["--print", size]].concat());
        let marks = screen.lines().skip_while(|line| !line.contains("Timeline · ")).skip(1);
        let marks = marks
            .filter_map(|line| line.split('│').nth(1))
            .find(|line| line.contains('B') && line.trim().len() < 60);
        let marks = marks.unwrap_or_else(|| panic!("{screen}"));
        assert_eq!(marks.matches('B').count(), breaks, "{size}\n{screen}");
    }
}
