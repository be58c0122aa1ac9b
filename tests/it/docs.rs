//! Consistency of the book: its links, its index, the rules and options it names, and its rustdoc version.

use context_window::{
    ContextWindowManager, Conversation, Message, PinnedItem, PlanRequest, RagItem, RequestLimits,
    config::LoadedConfig,
};
use context_window_report as report;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
};

fn root(path: &str) -> PathBuf {
    crate::support::root().join(path)
}

fn text(path: &str) -> String {
    fs::read_to_string(root(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the files below a folder with one of these endings, as paths from the root.
fn files(folder: &str, endings: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root(folder)).unwrap() {
        let path = format!("{folder}/{}", entry.unwrap().file_name().to_str().unwrap());
        if root(&path).is_dir() {
            found.extend(files(&path, endings));
        } else if endings.iter().any(|ending| path.ends_with(ending)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn book() -> Vec<String> {
    files("docs", &[".md"])
}

/// Returns the paths of the files or folders with this name in `crates/`, one per crate.
fn crates(name: &str) -> Vec<String> {
    let folders = fs::read_dir(root("crates")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut found: Vec<String> =
        folders.map(|folder| format!("crates/{}/{name}", folder.to_str().unwrap())).collect();
    found.sort();
    assert!(found.len() > 6, "{found:?}");
    found
}

/// Returns a page's prose: without code blocks, and with the link characters in code spans replaced.
fn prose(page: &str) -> String {
    let mut prose = String::new();
    let (mut in_block, mut in_code) = (false, false);
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            // A span may continue on the next line, but not beyond a paragraph.
            in_code &= !line.trim().is_empty();
            for c in line.chars() {
                in_code ^= c == '`';
                prose.push(if in_code && "[]()<>".contains(c) { '_' } else { c });
            }
        }
        prose.push('\n');
    }
    prose
}

/// Parses a line that defines a link into its label and its target.
fn definition(line: &str) -> Option<(&str, &str)> {
    let (label, target) = line.strip_prefix('[')?.split_once("]: ")?;
    (!label.contains(['[', ']'])).then_some((label, target.trim()))
}

/// Returns the link targets of a page, including those of its definitions, and a list of faults in the
/// definitions.
fn links(page: &str) -> (Vec<String>, Vec<String>) {
    let page = prose(page);
    let defined: BTreeMap<String, String> = page
        .lines()
        .filter_map(definition)
        .map(|(label, target)| (label.to_lowercase(), target.to_owned()))
        .collect();
    let body: Vec<&str> = page.lines().filter(|line| definition(line).is_none()).collect();
    let body = body.join("\n");
    let (mut targets, mut wrong, mut used) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut rest = body.as_str();
    while let Some((_, after)) = rest.split_once('[') {
        rest = after;
        let Some((label, after)) = after.split_once(']') else { break };
        let label = if let Some(target) = after.strip_prefix('(') {
            targets.extend(target.split_once(')').map(|(target, _)| target.to_owned()));
            continue;
        } else if let Some((label, _)) = after.strip_prefix('[').and_then(|label| label.split_once(']')) {
            rest = &after[1..];
            rest = rest.split_once(']').unwrap().1;
            label
        } else {
            label
        };
        let label = label.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        match defined.get(&label) {
            Some(target) => targets.push(target.clone()),
            None => wrong.push(format!("[{label}] is not defined")),
        }
        used.insert(label);
    }
    targets.sort_unstable();
    targets.dedup();
    wrong.extend(
        defined.keys().filter(|label| !used.contains(*label)).map(|label| format!("[{label}] is not used")),
    );
    (targets, wrong)
}

/// Returns the anchors that GitHub and rustdoc give to the headings of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for heading in prose(page).lines().filter(|line| line.starts_with('#')) {
        let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
        let anchor: String = heading.trim_start_matches('#').trim().chars().filter(kept).collect();
        anchors.insert(anchor.to_lowercase().replace(' ', "-"));
    }
    anchors
}

/// Resolves a path from the root, without `..` in it. Returns `None` if it leaves the repository.
fn resolved(page: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => drop(parts.pop()?),
            Component::Normal(name) => parts.push(name.to_str()?),
            _ => {}
        }
    }
    Some(parts.join("/"))
}

/// Returns the faults in the links of a page.
fn broken(page: &str, content: &str) -> Vec<String> {
    let (targets, mut wrong) = links(content);
    for target in targets.iter().filter(|target| !target.starts_with("https://")) {
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let file = if path.is_empty() { Some(page.to_owned()) } else { resolved(page, path) };
        match file.filter(|file| root(file).exists()) {
            None => wrong.push(format!("{target} is not there")),
            Some(_) if anchor.is_empty() => {}
            Some(file) if file.ends_with(".md") && anchors(&text(&file)).contains(anchor) => {}
            Some(_) => wrong.push(format!("{target}: no heading has this anchor")),
        }
    }
    wrong.iter().map(|wrong| format!("{page}: {wrong}")).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let readmes = ["README.md".into(), "tests/vectors/README.md".into()];
    let pages = book().into_iter().chain(readmes).chain(crates("README.md"));
    let (mut wrong, mut looked_at) = (Vec::new(), 0);
    for page in pages {
        let content = text(&page);
        looked_at += links(&content).0.len();
        wrong.extend(broken(&page, &content));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(looked_at > 120, "{looked_at} links");
}

#[test]
fn broken_links_are_found() {
    let page = "[a](../rules.md#budget) [b][rules] [rules] `[no][link]`\n[b][rules]: text\n\n```text\n[none]\n```\n\n[rules]: ../rules.md#words\n";
    assert_eq!(broken("docs/guide/x.md", page), Vec::<String>::new());
    for (from, to, found) in [
        ("../rules.md#budget", "../rulez.md", "../rulez.md is not there"),
        ("#budget", "#budgets", "../rules.md#budgets: no heading has this anchor"),
        ("[b][rules] [rules]", "[b][rule] [rules]", "[rule] is not defined"),
        ("[b][rules] [rules] `[no][link]`\n[b][rules]", "", "[rules] is not used"),
        ("../rules.md#words", "../../../rules.md", "../../../rules.md is not there"),
    ] {
        assert_eq!(broken("docs/guide/x.md", &page.replace(from, to)), [format!("docs/guide/x.md: {found}")]);
    }
}

#[test]
fn the_index_lists_every_page() {
    let listed: BTreeSet<String> = links(&text("docs/README.md"))
        .0
        .iter()
        .filter_map(|target| resolved("docs/README.md", target))
        .collect();
    for page in book().iter().filter(|page| *page != "docs/README.md") {
        assert!(listed.contains(page), "{page} is not in docs/README.md");
    }
}

/// Checks that the book's package runs the programs of every page and README, and knows the target of every
/// link in rustdoc.
#[test]
fn book_package_has_every_page() {
    let (modules, known) = (text("docs/lib.rs"), text("docs/links.in"));
    let labels: BTreeSet<&str> = known.lines().filter_map(definition).map(|(label, _)| label).collect();
    for readme in crates("README.md").iter().filter(|readme| text(readme).contains("```rust")) {
        assert!(
            modules.contains(&format!("include_str!(\"../{readme}\")")),
            "{readme} is not in docs/lib.rs"
        );
    }
    for page in book() {
        let name = page.strip_prefix("docs/").unwrap();
        assert!(modules.contains(&format!("include_str!(\"{name}\")")), "{page} is not in docs/lib.rs");
        for line in prose(&text(&page)).lines() {
            let Some((label, target)) = definition(line) else { continue };
            assert!(
                target.starts_with("https://") || labels.contains(label),
                "{page}: docs/links.in does not know [{label}]"
            );
        }
    }
}

/// Returns the words of a text that look like rule ids.
fn rule_ids<'t>(text: &'t str, letters: &BTreeSet<char>) -> BTreeSet<&'t str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let is_id = |word: &&str| {
        word.starts_with(|c| letters.contains(&c))
            && (2..=3).contains(&word.len())
            && word[1..].bytes().all(|byte| byte.is_ascii_digit())
    };
    words.filter(|word| word.is_ascii()).filter(is_id).collect()
}

#[test]
fn every_rule_that_is_named_exists() {
    let page = text("docs/rules.md");
    let rules: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("- **")?.split_once("**"))
        .map(|(id, _)| id)
        .collect();
    assert!(rules.len() > 50 && rules.contains("S5") && rules.contains("C10"), "{rules:?}");
    let letters: BTreeSet<char> = rules.iter().filter_map(|rule| rule.chars().next()).collect();
    let mut named = BTreeSet::new();
    let folders = ["src", "docs", "config", "crates/plan-inspect/schema"]
        .map(str::to_owned)
        .into_iter()
        .chain(crates("src"));
    let places = folders.flat_map(|folder| files(&folder, &[".rs", ".md", ".toml", ".json"]));
    for place in places.chain(["README.md".into()]).chain(crates("README.md")) {
        let text = text(&place);
        let found = rule_ids(&text, &letters);
        let unknown: Vec<&&str> = found.iter().filter(|id| !rules.contains(**id)).collect();
        assert!(unknown.is_empty(), "{place}: docs/rules.md does not know {unknown:?}");
        named.extend(found.iter().map(|id| (*id).to_owned()));
    }
    assert!(named.len() > 50, "{named:?}");
    assert_eq!(
        rule_ids("(rule S5), S55: C10; xS5, S5x, S_5, S", &letters),
        BTreeSet::from(["S5", "S55", "C10"])
    );
}

/// Collects the options of the schema by key.
fn options(schema: &Value, path: &str, found: &mut BTreeMap<String, Value>) {
    if schema["type"] != "object" {
        found.insert(path.to_owned(), schema.clone());
        return;
    }
    let named = schema["properties"].as_object().into_iter().flatten();
    let any = schema["additionalProperties"].is_object().then(|| ("NAME", &schema["additionalProperties"]));
    for (name, inside) in named.map(|(name, inside)| (name.as_str(), inside)).chain(any) {
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        options(inside, &path, found);
    }
}

/// The page has one row per option with the values and the default of the schema, and no other rows.
#[test]
fn the_page_of_options_has_every_option() {
    let page = text("docs/reference/options.md");
    let rows: BTreeMap<&str, Vec<&str>> = page
        .lines()
        .filter(|line| line.split(" | ").count() == 4 && line.starts_with("| `"))
        .map(|line| line.trim_matches(['|', ' ']).split(" | ").collect::<Vec<_>>())
        .map(|cells| (cells[0].trim_matches('`'), cells))
        .collect();
    let mut known = BTreeMap::new();
    let all: Value = serde_json::from_str(&text("crates/plan-inspect/schema/config.json")).unwrap();
    options(&all, "", &mut known);
    for key in LoadedConfig::keys() {
        assert!(known.contains_key(key), "{key} is not in crates/plan-inspect/schema/config.json");
    }
    assert_eq!(
        rows.keys().map(|key| (*key).to_owned()).collect::<BTreeSet<_>>(),
        known.keys().cloned().collect()
    );
    for (key, schema) in &known {
        let cells = &rows[key.as_str()];
        let default = match &schema["default"] {
            Value::Null => "unset".to_owned(),
            Value::String(text) if text.is_empty() => "empty".to_owned(),
            Value::String(text) => format!("`{text}`"),
            other => format!("`{other}`"),
        };
        assert_eq!(cells[2], default, "{key}");
        for value in schema["enum"].as_array().into_iter().flatten() {
            assert!(cells[1].contains(&format!("`{}`", value.as_str().unwrap())), "{key}: {value}");
        }
        // The limits of a share are those of its whole number.
        let share =
            schema["$ref"].as_str().and_then(|name| all.pointer(&name[1..])).map(|share| &share["anyOf"][0]);
        let limits = share.unwrap_or(schema);
        for limit in
            ["minimum", "maximum"].iter().filter_map(|limit| limits[limit].as_u64()).filter(|n| *n > 0)
        {
            assert!(cells[1].split(' ').any(|word| word == limit.to_string()), "{key}: {limit}");
        }
    }
}

/// Returns the lines of a fenced block without their indentation.
fn block<'p>(page: &'p str, from: &str, to: &str) -> Vec<&'p str> {
    let (_, rest) = page.split_once(from).unwrap();
    let lines = rest.split_once(to).unwrap().0.lines();
    lines
        .map(|line| line.strip_prefix("    ").unwrap_or(line))
        .filter(|line| !line.trim().is_empty())
        .collect()
}

/// The change on the snapshot page is the real effect of that change on its plan.
#[test]
fn diff_on_the_snapshot_page_matches_the_output() {
    let page = text("docs/guide/snapshots.md");
    let taken = |system: &str| {
        let mut log = Conversation::from([
            Message::system(system),
            Message::user("Do you sell kettles?"),
            Message::assistant("Yes, two of them: the Wren and the Finch."),
            Message::user("How long do refunds take?"),
        ]);
        log.pin(PinnedItem::new("tone", "The customer likes short answers."));
        let hits = [
            RagItem::new("refunds", 0.92, "Refunds take 5 days."),
            RagItem::new("hours", 0.10, "We are open from 9 to 18."),
        ];
        let request = PlanRequest::new(&log).with_rag(hits).with_limits(RequestLimits::prompt_budget(112));
        let manager = ContextWindowManager::for_model("gpt-4o").unwrap();
        report::snapshot(&manager.build_plan(&request).unwrap()).to_string()
    };
    let before = taken("Answer from the documents.");
    assert_eq!(before.lines().collect::<Vec<_>>(), block(&page, "@r\"\n", "\");"));
    let after = taken("Answer from the documents, in two sentences at the most, and name the one you used.");
    let shown = block(&page, "```diff\n", "```");
    let side = |other: char| -> Vec<&str> {
        shown.iter().filter(|line| !line.starts_with(other)).map(|line| &line[1..]).collect()
    };
    assert_eq!(side('+'), before.lines().collect::<Vec<_>>());
    assert_eq!(side('-'), after.lines().collect::<Vec<_>>());
}
