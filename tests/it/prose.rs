//! Plain English: rates of phrasings that make comments hard to read, crate by crate, each with a limit.
//!
//! The limits are one to three times the rates of well-written crates (`jiff`, `regex`, `minijinja`). A rate
//! that exceeds its limit is reported with the worst files.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// The folders that are measured, each by itself: crates, and the tests and pages of the workspace.
const ROOMS: [&str; 17] = [
    "src",
    "tests",
    "benches",
    "examples",
    "docs",
    "bindings/python",
    "crates/eval",
    "crates/formats",
    "crates/genai",
    "crates/plan-inspect",
    "crates/ratatui",
    "crates/recall",
    "crates/report",
    "crates/store",
    "crates/tokens",
    "crates/plan-inspect/src/tui",
    "src/planner",
];

/// Words of the book at most, without programs, tables' code and links.
const BOOK: usize = 18_000;

/// Columns of a comment line at most.
const COLUMNS: usize = 110;

/// Counts of one file, or of a folder.
#[derive(Default, Clone)]
struct Counts {
    words: u64,
    blocks: u64,
    lines: u64,
    what: u64,
    stand: u64,
    say: u64,
    vague: u64,
    wh_starts: u64,
    returns: u64,
    why: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.words += other.words;
        self.blocks += other.blocks;
        self.lines += other.lines;
        self.what += other.what;
        self.stand += other.stand;
        self.say += other.say;
        self.vague += other.vague;
        self.wh_starts += other.wh_starts;
        self.returns += other.returns;
        self.why += other.why;
    }

    /// Counts the words of a text without its code: a block of comments, or a paragraph of a page.
    fn add_block(&mut self, text: &str) {
        let words = words(text);
        if words.is_empty() {
            return;
        }
        let count =
            |forms: &[&str]| words.iter().filter(|word| forms.contains(&word.as_str())).count() as u64;
        self.blocks += 1;
        self.words += words.len() as u64;
        self.what += count(&["what"]);
        self.stand += count(&["stand", "stands", "stood", "standing"]);
        self.say += count(&["say", "says", "said", "tell", "tells", "told"]);
        self.returns += count(&["return", "returns"]);
        let pairs = words.windows(2).map(|pair| (pair[0].as_str(), pair[1].as_str()));
        let is_vague = |pair| matches!(pair, ("none", "where") | ("so", "many" | "much"));
        self.vague += pairs.filter(|pair| is_vague(*pair)).count() as u64;
        const OPENERS: [&str; 8] = ["what", "whether", "where", "how", "which", "who", "when", "why"];
        self.wh_starts += u64::from(OPENERS.contains(&words[0].as_str()));
    }

    /// Counts the comments of a Rust file; code in them is left out.
    fn of_rust(text: &str) -> Self {
        let mut counts = Self { lines: text.lines().count() as u64, ..Self::default() };
        let (mut block, mut is_fenced) = (String::new(), false);
        // The empty line ends a block at the end of the file.
        for line in text.lines().chain([""]) {
            let comment = line.trim_start().strip_prefix("//").filter(|rest| !rest.starts_with("//"));
            let body = comment.map(|rest| rest.trim_start_matches(['/', '!']).trim());
            counts.why += u64::from(line.trim_start().starts_with("// "));
            match body {
                Some(body) if body.starts_with("```") => is_fenced = !is_fenced,
                Some(body) if is_fenced || body.starts_with("# ") => {}
                Some(body) if !body.is_empty() => block = block + " " + body,
                _ => {
                    is_fenced = is_fenced && body.is_some();
                    counts.add_block(&std::mem::take(&mut block));
                }
            }
        }
        counts
    }

    /// Counts the prose of a page; programs, inline code and link targets are left out.
    fn of_page(text: &str) -> Self {
        let mut counts = Self { lines: text.lines().count() as u64, ..Self::default() };
        let programs_apart = text.split("```").step_by(2).collect::<String>();
        for paragraph in programs_apart.split("\n\n") {
            let lines = paragraph.lines().filter(|line| !line.starts_with('[') || !line.contains("]: "));
            let prose = lines.collect::<Vec<_>>().join(" ");
            counts.add_block(&prose.split('`').step_by(2).collect::<Vec<_>>().join(" "));
        }
        counts
    }

    /// Returns the limits that these counts exceed, each with its rate.
    fn exceeded(&self, has_code: bool) -> Vec<String> {
        let per_thousand = |count: u64| count as f64 * 1000.0 / self.words.max(1) as f64;
        let mut exceeded = Vec::new();
        let mut check = |name: &str, rate: f64, limit: f64, is_least: bool| {
            if if is_least { rate < limit } else { rate > limit } {
                exceeded.push(format!("{name} {rate:.2}, limit {limit}"));
            }
        };
        // Of a small folder one word is allowed.
        let of = |count: u64| per_thousand(count.saturating_sub(1));
        check("what", of(self.what), 1.5, false);
        check("stand", of(self.stand), 0.1, false);
        check("say and tell", of(self.say), 0.8, false);
        check("`none where` and `so many`", of(self.vague), 0.1, false);
        let starts = self.wh_starts as f64 * 100.0 / self.blocks.max(1) as f64;
        check("blocks that begin with a wh-word, per cent", starts, 3.5, false);
        if has_code {
            check("returns", per_thousand(self.returns), 3.0, true);
            check(
                "comments inside functions, per cent",
                self.why as f64 * 100.0 / self.lines.max(1) as f64,
                2.0,
                true,
            );
        }
        exceeded
    }
}

/// Returns the words of a text in lower case, code in backticks as one word.
fn words(text: &str) -> Vec<String> {
    let mut plain = String::new();
    for (at, part) in text.split('`').enumerate() {
        plain += if at % 2 == 0 { part } else { "code" };
    }
    let parts = plain.split(|c: char| !c.is_ascii_alphabetic() && c != '\'' && c != '-');
    let words = parts.map(|word| word.trim_matches(['\'', '-']).to_ascii_lowercase());
    words.filter(|word| !word.is_empty()).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files of a folder with an ending, without those that are built.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["target", "node_modules", ".venv"].contains(&name.as_str()) {
            all.extend(files(&path, ending));
        } else if name.ends_with(ending) {
            all.push(path);
        }
    }
    all.sort();
    all
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn comments_of_every_crate_are_plain_english() {
    let mut report = String::new();
    for room in ROOMS {
        let counted: Vec<(PathBuf, Counts)> = files(&root().join(room), ".rs")
            .into_iter()
            .map(|file| {
                let counts = Counts::of_rust(&read(&file));
                (file, counts)
            })
            .collect();
        let mut all = Counts::default();
        for (file, counts) in &counted {
            all.add(counts);
            // Tests need no reason at each step: their lines would dilute the rate of the code.
            if file.components().any(|part| part.as_os_str() == "tests") {
                all.lines -= counts.lines;
                all.why -= counts.why;
            }
        }
        let has_code = room.starts_with("src") || room.starts_with("crates");
        for fault in all.exceeded(has_code) {
            let _ = writeln!(report, "{room}: {fault}");
        }
        let is_bad =
            |counts: &Counts| counts.what + counts.stand + counts.say + counts.vague + counts.wh_starts;
        let mut worst: Vec<_> = counted.iter().map(|(file, counts)| (is_bad(counts), file)).collect();
        worst.sort_by(|a, b| b.cmp(a));
        if report.contains(&format!("{room}: ")) {
            for (count, file) in worst.iter().take(5) {
                let _ = writeln!(report, "    {count} in {}", file.strip_prefix(root()).unwrap().display());
            }
        }
    }
    assert!(report.is_empty(), "{report}");
}

#[test]
fn the_book_is_short_and_plain_and_speaks_to_its_reader() {
    let mut all = Counts::default();
    let mut readers = 0;
    for page in files(&root().join("docs"), ".md") {
        let text = read(&page);
        all.add(&Counts::of_page(&text));
        readers += words(&text).iter().filter(|word| ["you", "your"].contains(&word.as_str())).count() as u64;
    }
    assert_eq!(all.exceeded(false), Vec::<String>::new());
    assert!(all.words <= BOOK as u64, "{} words in docs/, at most {BOOK}", all.words);
    assert!(readers * 1000 >= all.words * 3, "`you` {readers} times in {} words", all.words);
}

#[test]
fn comment_lines_are_not_wide() {
    let mut wide = Vec::new();
    for room in ROOMS {
        for file in files(&root().join(room), ".rs") {
            for (line, number) in read(&file).lines().zip(1..) {
                let is_comment = line.trim_start().starts_with("//");
                if is_comment && line.chars().count() > COLUMNS && !line.contains("://") {
                    wide.push(format!("{}:{number}", file.strip_prefix(root()).unwrap().display()));
                }
            }
        }
    }
    assert!(wide.is_empty(), "{} lines are wider than {COLUMNS}: {wide:#?}", wide.len());
}

#[test]
fn names_are_verbs_with_objects() {
    let mut faults = Vec::new();
    for room in ROOMS {
        for file in files(&root().join(room), ".rs") {
            let text = read(&file);
            let functions = text.match_indices("fn ").map(|(at, _)| &text[at + 3..]);
            for name in functions.map(|rest| rest.split(['(', '<']).next().unwrap_or_default()) {
                let is_test_name = name.len() < 100 && name.split('_').any(|word| word == "what");
                if name == "of" || is_test_name && !name.contains("what_if") {
                    faults.push(format!("{}: {name}", file.strip_prefix(root()).unwrap().display()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn counters_count_phrases_and_skip_code() {
    let text = "/// What stands of what was sent, so many tokens.\n/// `what`\nfn f() {\n    // none where it says so\n}\n\
                /// Returns it.\n/// ```\n/// what what what\n/// ```\n";
    let counts = Counts::of_rust(text);
    assert_eq!((counts.blocks, counts.what, counts.stand, counts.say), (3, 2, 1, 1));
    assert_eq!((counts.vague, counts.wh_starts, counts.returns, counts.why), (2, 1, 1, 1));
    let page = Counts::of_page("# A\n\nSay what\n```rust\nwhat\n```\n[what]: what.md\n");
    assert_eq!((page.words, page.what, page.say), (3, 1, 1));
}
