//! Each idea has one term on all surfaces: reports, screens, pages, errors and help
//! (docs/reference/glossary.md).

use super::{inspect, out};
use std::fs;

/// The term of each idea, and the words that no surface may use for it.
const TERMS: [(&str, &[&str]); 35] = [
    ("JSON array", &["a text, null or a list", "expected a list", "expected a sequence"]),
    ("JSON string", &["expected a text"]),
    ("Overhead: document wrapper", &["rag_block"]),
    ("Overhead: reply header", &["reply_priming"]),
    ("again", &["anew", "once more"]),
    ("attempts", &["strikes"]),
    ("because", &["for want of"]),
    ("budget", &["pot", "purse", "what there is to share out"]),
    ("contains", &["says that", "stands", "stands in"]),
    ("contents of the prompt", &["what fills"]),
    ("continued", &["goes on from", "went on from"]),
    ("dropped", &["goes out", "taken out"]),
    ("evicted", &["leaves then"]),
    ("excluded", &["absent", "is out already", "not there"]),
    ("free tokens", &["left over", "no room", "others leave them", "room", "used up"]),
    ("full conversation", &["pressure"]),
    ("included", &["comes in", "in force"]),
    ("incomplete", &["no whole", "not whole", "unfinished"]),
    ("intact", &["is whole"]),
    ("limit for pins", &["what pins may take"]),
    ("merged", &["thrown together"]),
    ("new item inserted", &["new_item"]),
    ("next to", &["beside"]),
    ("placeholder", &["in its place", "its place", "made up", "made-up"]),
    ("previous prompt", &["last_prompt", "newest of them"]),
    ("reasoning", &["thought", "thoughts"]),
    ("renamed", &["respelt"]),
    ("requested", &["as asked"]),
    ("required", &["always sent", "has to be in"]),
    ("reversed", &["other way round", "turned round"]),
    ("safety margin", &["margin"]),
    ("signed", &["sealed"]),
    ("system and pins", &["system_pinned"]),
    ("unchanged", &["all but that", "as it is", "as it was", "as they are", "steady"]),
    ("wire format", &["framing", "wire form", "wire forms"]),
];

/// Words without a term: the sentence needs another form.
const RIDDLES: [&str; 9] = [
    "it costs",
    "none is",
    "not to be tried",
    "nothing of it",
    "taken back",
    "too much already",
    "what is",
    "what it",
    "what the",
];

/// Terms that contain one of those words.
const FINE: [&str; 1] = ["safety margin"];

/// Joins each line of a text with the indented lines after it, which continue it.
fn joined(text: &str) -> String {
    let mut joined = String::new();
    for line in text.lines() {
        joined.push(if line.starts_with(' ') { ' ' } else { '\n' });
        joined += &line.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    joined.to_lowercase()
}

/// Returns each banned word in a text, with its context. Parts of other words and of option names do not
/// count.
fn dialect(text: &str) -> Vec<String> {
    let lines = FINE.iter().fold(joined(text), |lines, fine| lines.replace(fine, ""));
    let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || ['_', '-'].contains(&c));
    let mut found = Vec::new();
    let terms = TERMS.iter().flat_map(|(term, words)| words.iter().map(move |word| (*word, *term)));
    for (word, term) in terms.chain(RIDDLES.map(|word| (word, "another sentence"))) {
        for (at, _) in lines.match_indices(word) {
            let mut before = lines[..at].chars().rev();
            let mut after = lines[at + word.len()..].chars();
            let (before, after) = ([before.next(), before.next()], [after.next(), after.next()]);
            let joined = |[next, then]: [Option<char>; 2]| inside(next) || next == Some('.') && inside(then);
            if !joined(before) && !joined(after) {
                let from = lines[..at].char_indices().rev().nth(30).map_or(0, |(from, _)| from);
                found.push(format!(
                    "`{word}` in place of `{term}` in: {}",
                    lines[from..].chars().take(80).collect::<String>()
                ));
            }
        }
    }
    found
}

/// Returns the visible text of a page and the labels of its elements.
fn seen(page: &str) -> String {
    let mut text = String::new();
    let scripts =
        page.split("<script").skip(1).map(|script| script.split("</script>").next().unwrap_or_default());
    let page = scripts.fold(page.to_owned(), |page, script| page.replace(script, ""));
    for part in page.split('<').skip(1) {
        let (tag, after) = part.split_once('>').unwrap_or((part, ""));
        if tag.starts_with("style") || tag.starts_with("script") {
            continue;
        }
        let label = tag.split("aria-label=\"").nth(1).and_then(|label| label.split('"').next());
        text += &format!(" {} {after}", label.unwrap_or_default());
    }
    text
}

fn is_plain(source: &str, text: &str) {
    let found = if text.starts_with("<!doctype html>") { dialect(&seen(text)) } else { dialect(text) };
    assert!(found.is_empty(), "{source}\n{}", found.join("\n"));
}

/// Returns the files of a folder whose names end with `ending`.
fn files(folder: &str, ending: &str) -> Vec<String> {
    crate::support::enter_root();
    let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().display().to_string());
    let mut all: Vec<String> = all.filter(|path| path.ends_with(ending)).collect();
    all.sort();
    assert!(!all.is_empty(), "{folder}");
    all
}

fn examples() -> Vec<String> {
    let mut all = files("examples", ".json");
    all.retain(|path| !path.ends_with("-anchor.json"));
    all
}

#[test]
fn banned_words_are_found_and_option_names_are_not() {
    assert_eq!(dialect("Left\n  over: 5, and the margin. A room").len(), 3);
    let fine =
        "safety margin, tokens.calibrate, sections.system_pinned.share, mushroom, margins, synth:room-2";
    assert_eq!(dialect(fine), Vec::<String>::new());
}

#[test]
fn each_idea_has_one_term_and_each_word_one_idea() {
    let mut words: Vec<&str> = TERMS.iter().flat_map(|(_, words)| words.iter().copied()).collect();
    words.extend(RIDDLES);
    let count = words.len();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), count, "a word is banned twice");
    assert!(TERMS.is_sorted(), "the terms are not sorted");
    // A term may contain a word that is banned alone, such as `safety margin`.
    let clashes = TERMS.iter().filter(|(term, _)| !dialect(term).is_empty()).map(|(term, _)| *term);
    assert_eq!(clashes.collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn reports_use_the_terms() {
    for file in examples() {
        for budget in ["60", "200", "300", "400", "8k"] {
            for args in [
                vec!["plan", &file, "--budget", budget],
                vec!["plan", &file, "--budget", budget, "--model", "claude-sonnet-5"],
                vec!["plan", &file, "--budget", budget, "--model", "gemini-2.5-pro"],
                vec!["plan", &file, "--budget", budget, "--format", "html", "--redact"],
                vec!["explain", &file, "--budget", budget],
                vec!["replay", &file, "--budget", budget],
                vec!["diff", &file, "examples/long-talk.json", "--budget", budget],
                vec!["diff", &file, &file, "--budget", budget, "--then-budget", "250"],
            ] {
                is_plain(&args.join(" "), &out(&args));
            }
        }
        is_plain(&file, &out(&["replay", &file, "--format", "html", "--redact"]));
        is_plain(&file, &out(&["compact", &file]));
    }
}

/// Checks notices, causes and errors of every shipped fixture, also for targets with more constraints than
/// its own.
#[test]
fn notices_and_errors_use_the_terms() {
    for file in files("tests/fixtures", ".json") {
        for target in [&[][..], &["--wire-format", "anthropic"], &["--wire-format", "gemini"]] {
            let args = [&["plan", &file], target].concat();
            let done = inspect(&args).output().unwrap();
            let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
            // File names are not part of the wording.
            is_plain(&args.join(" "), &said.replace(&file, ""));
        }
    }
}

#[test]
fn screens_use_the_terms() {
    let keys = [
        "", "?", "?G", "2", "3", "4", "4G", "5", "!", "G<Enter>", "<<<<<<", "<<<<<<d", "p", "pu", "t", "u",
        "{",
    ];
    for file in examples() {
        for size in ["62x16", "80x24", "120x40"] {
            for keys in keys {
                let keys = keys.replace('<', "<lt>").replace("<lt>Enter>", "<Enter>");
                let args = ["tui", &file, "--budget", "300", "--print", size, "--keys", &keys];
                is_plain(&args.join(" "), &out(&args));
            }
        }
    }
}

#[test]
fn help_uses_the_terms() {
    let commands = [
        "plan",
        "explain",
        "rag",
        "diff",
        "compact",
        "history",
        "replay",
        "tui",
        "vectors",
        "config show",
        "models list",
        "models show",
        "models import",
        "schema",
        "completions",
        "man",
    ];
    is_plain("--help", &out(&["--help"]));
    for command in commands {
        let args: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        is_plain(command, &out(&args));
        is_plain(command, &out(&[&args[..args.len() - 1], &["-h"]].concat()));
    }
}

/// Checks that the glossary is sorted and has the terms of the screens.
#[test]
fn glossary_has_the_terms() {
    let page = fs::read_to_string(crate::support::root().join("docs/reference/glossary.md")).unwrap();
    let lines = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    let terms: Vec<String> =
        lines.skip(1).map(|line| line.split('|').nth(1).unwrap().trim().to_lowercase()).collect();
    assert!(terms.is_sorted(), "{terms:?}");
    for term in [
        "anchor",
        "budget",
        "cached prefix",
        "candidate",
        "certainty",
        "compaction",
        "digest",
        "document",
        "dropped",
        "exchange",
        "expired",
        "fixed part",
        "full conversation",
        "live question",
        "minimum",
        "notice",
        "overflow",
        "pin",
        "placeholder result",
        "prompt budget",
        "reply reserve",
        "required",
        "safety margin",
        "section",
        "share",
        "sticky window",
        "summary",
        "token calibration",
        "ttl",
        "turn",
        "wire format",
    ] {
        assert!(terms.iter().any(|known| known == term), "{term}");
    }
}
