//! Structure of the source tree: modules depend on each other in one direction, and files stay small.
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push(path);
        }
    }
    all.sort();
    all
}

/// Returns the code outside tests: everything before `#[cfg(test)]` or `#[cfg(all(test`.
fn code(text: &str) -> &str {
    let end = text.find("#[cfg(test)]").or_else(|| text.find("#[cfg(all(test")).unwrap_or(text.len());
    &text[..end]
}

/// Every module of a crate by its path, with its code.
struct House {
    modules: BTreeMap<Vec<String>, String>,
}

impl House {
    /// Reads the modules below a folder with this root file.
    fn read(root: &Path, first: &str) -> Self {
        let mut modules = BTreeMap::new();
        for file in files(root) {
            let inside = file.strip_prefix(root).unwrap();
            let mut path: Vec<String> =
                inside.iter().map(|part| part.to_string_lossy().trim_end_matches(".rs").to_owned()).collect();
            if path.contains(&"tests".to_owned()) {
                continue;
            }
            if path.last().is_some_and(|name| name == "mod" || (path.len() == 1 && name == first)) {
                path.pop();
            }
            modules.insert(path, code(&std::fs::read_to_string(&file).unwrap()).to_owned());
        }
        Self { modules }
    }

    /// Returns the children of a module in the order of their `mod` lines, which is the order of the layers.
    fn children(&self, path: &[String]) -> Vec<String> {
        let lines = self.modules[path].lines();
        let names = lines.filter_map(|line| {
            let line = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
            line.strip_prefix("mod ")?.strip_suffix(';').map(str::to_owned)
        });
        names.collect()
    }

    /// Returns the module at the end of a path from the root, through re-exports of its parents.
    fn resolve(&self, path: &[String]) -> Vec<String> {
        let mut at = Vec::new();
        for name in path {
            let mut next = at.clone();
            next.push(name.clone());
            if self.modules.contains_key(&next) {
                at = next;
                continue;
            }
            let Some(code) = self.modules.get(&at) else { break };
            // The name belongs to the module itself, unless it is re-exported from a child.
            let from = uses(code).into_iter().find(|used| used.len() > 1 && used.last() == Some(name));
            if let Some(child) = from.and_then(|used| used.first().cloned()) {
                next = at.clone();
                next.push(child);
                if self.modules.contains_key(&next) {
                    at = next;
                }
            }
            break;
        }
        at
    }

    /// Returns the modules that a module uses outside tests.
    fn used_by(&self, path: &[String]) -> BTreeSet<Vec<String>> {
        let mut found = BTreeSet::new();
        for used in paths(&self.modules[path]) {
            let absolute = match used[0].as_str() {
                "crate" => used[1..].to_vec(),
                "super" => {
                    let ups = used.iter().take_while(|part| *part == "super").count();
                    if ups > path.len() {
                        continue;
                    }
                    path[..path.len() - ups].iter().chain(&used[ups..]).cloned().collect()
                }
                _ => continue,
            };
            found.insert(self.resolve(&absolute));
        }
        found
    }

    /// Returns every use of a module by one declared before it, as text, and the number of uses checked.
    fn backward(&self) -> (Vec<String>, usize) {
        let (mut wrong, mut looked_at) = (Vec::new(), 0);
        for path in self.modules.keys() {
            for used in self.used_by(path) {
                // The first part in which the paths differ: two children of one module.
                let common = path.iter().zip(&used).take_while(|(a, b)| a == b).count();
                let (Some(own), Some(other)) = (path.get(common), used.get(common)) else { continue };
                looked_at += 1;
                let order = self.children(&path[..common]);
                let place = |name: &String| order.iter().position(|one| one == name);
                if place(own) < place(other) {
                    wrong.push(format!("{} uses {}", path.join("::"), used.join("::")));
                }
            }
        }
        (wrong, looked_at)
    }
}

/// Returns the paths in the `use` lines of a module, each split into its parts.
fn uses(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for line in code.split(';') {
        let Some(at) = line.rfind("use ") else { continue };
        if line[..at].rsplit('\n').next().is_some_and(|before| before.contains("//")) {
            continue;
        }
        tree(&line[at + 4..], &[], &mut found);
    }
    found
}

/// Returns the paths that begin with `crate` or `super`, in `use` lines and in code.
fn paths(code: &str) -> Vec<Vec<String>> {
    let lines: String = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut found = Vec::new();
    for root in ["crate::", "super::"] {
        for (at, _) in lines.match_indices(root) {
            let before = lines[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            tree(&lines[at..], &[], &mut found);
        }
    }
    found
}

/// Collects the paths of one `use` tree, or one path, split into their parts.
fn tree(text: &str, before: &[String], found: &mut Vec<Vec<String>>) {
    let text = text.trim_start();
    if let Some(inner) = text.strip_prefix('{') {
        let (mut depth, mut start) = (0, 0);
        for (at, c) in inner.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                '}' | ',' if depth == 0 => {
                    tree(&inner[start..at], before, found);
                    start = at + 1;
                    if c == '}' {
                        return;
                    }
                }
                _ => {}
            }
        }
        return;
    }
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    if name.is_empty() {
        found.extend((!before.is_empty()).then(|| before.to_vec()));
        return;
    }
    let mut path = before.to_vec();
    if name != "self" || before.is_empty() {
        path.push(name.clone());
    }
    match text[name.len()..].strip_prefix("::") {
        Some(rest) => tree(rest, &path, found),
        None => found.push(path),
    }
}

/// The compiler enforces the order of crates. This test enforces the order of modules inside a crate.
#[test]
fn modules_use_only_those_declared_before_them() {
    let crates = [
        ("src", "lib", 300),
        ("crates/tokens/src", "lib", 10),
        ("crates/formats/src", "lib", 30),
        ("crates/store/src", "lib", 20),
        ("crates/recall/src", "lib", 20),
        ("crates/eval/src", "lib", 20),
        ("crates/report/src", "lib", 30),
        ("crates/ratatui/src", "lib", 30),
        ("crates/genai/src", "lib", 3),
        ("crates/plan-inspect/src", "main", 50),
        ("bindings/python/src", "lib", 30),
        ("bindings/node/src", "lib", 15),
    ];
    let mut wrong = Vec::new();
    for (folder, first, least) in crates {
        let (backward, looked_at) = House::read(&crate::support::root().join(folder), first).backward();
        assert!(looked_at >= least, "{folder}: only {looked_at} uses found");
        wrong.extend(backward.into_iter().map(|one| format!("{folder}: {one}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Ids and rows are compared and looked up, never parsed, because an id may hold any character. The listed
/// files parse forms that a person writes or a file contains.
#[test]
fn ids_are_not_read_for_their_parts() {
    let borders = [
        "src/conversation/ids.rs",         // `m7`: the id of a message that brings none
        "src/plan/anchor.rs",              // the two hashes of a stored item
        "src/plan/mod.rs",                 // `rag:ID` and `item:ID`, as people ask
        "src/plan/composition.rs",         // paths and lines of texts
        "src/analysis/explain/subject.rs", // `rag:ID` and `item:ID`, as people ask
        "src/analysis/explain/ranked.rs",  // ids of placeholder messages, which no caller may use
        "src/analysis/explain/many_budgets/sequence_costs.rs",
    ];
    let reads =
        ["split_once(", ".split(", ".rsplit(", "strip_prefix(", "starts_with(", ".parse(", ".parse::<"];
    let (mut looked_at, mut wrong) = (0, Vec::new());
    for folder in ["src/planner", "src/conversation", "src/plan", "src/analysis"] {
        for file in files(&crate::support::root().join(folder)) {
            let place = file.strip_prefix(crate::support::root()).unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&file).unwrap();
            looked_at += 1;
            for line in code(&text).lines().filter(|line| !line.trim_start().starts_with("//")) {
                if reads.iter().any(|read| line.contains(read)) && !borders.contains(&place.as_str()) {
                    wrong.push(format!("{place}: {}", line.trim()));
                }
            }
        }
    }
    assert!(looked_at > 100, "only {looked_at} files");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A package is published without the folders around it.
#[test]
fn files_that_are_included_are_inside_their_package() {
    let mut looked_at = 0;
    let crates = std::fs::read_dir(crate::support::root().join("crates")).unwrap();
    let packages = crates.map(|entry| entry.unwrap().path()).chain([crate::support::root().to_owned()]);
    for package in packages {
        for file in files(&package.join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            for included in text.split("include_str!(\"").skip(1) {
                let included = file.with_file_name(included.split('"').next().unwrap());
                let place =
                    included.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", included.display()));
                assert!(place.starts_with(package.canonicalize().unwrap()), "{}", included.display());
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 10, "{looked_at}");
}

#[test]
fn the_reader_of_imports_reads_every_form() {
    let house = |modules: &[(&str, &str)]| House {
        modules: modules
            .iter()
            .map(|(path, code)| {
                (
                    path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect(),
                    (*code).to_owned(),
                )
            })
            .collect(),
    };
    let backward = |code: &str| {
        let all = [
            ("", "mod a;\npub mod b;\n"),
            ("a", "pub(crate) mod x;\nmod y;\npub(crate) use y::{Late, More};\n"),
            ("a::x", code),
            ("a::y", ""),
            ("b", ""),
        ];
        house(&all).backward().0
    };
    for code in [
        "use crate::b::Thing;",
        "use crate::{a::Own, b};",
        "fn f() { crate::b::g() }",
        "use super::super::b::Thing;",
        "use super::y::Late;",
        "use super::{Own, Late};",
        "use super::More as Other;",
        "use crate::a::{self, More};",
    ] {
        assert_eq!(backward(code).len(), 1, "{code}");
    }
    for code in ["use super::Own;", "// use crate::b::Thing;", "use crate::a::x::Own;", "use std::b;"] {
        assert_eq!(backward(code).len(), 0, "{code}");
    }
}

#[test]
fn no_file_is_over_500_lines_of_code() {
    for path in files(&crate::support::root().join("src")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = code(&text)
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.trim().starts_with("//"))
            .count();
        assert!(lines <= 500, "{}: {lines} lines of code", path.display());
    }
}

/// New readers look at `ls src` first, so it has few entries.
#[test]
fn the_first_folder_is_short() {
    let entries = std::fs::read_dir(crate::support::root().join("src")).unwrap().count();
    assert!(entries <= 20, "{entries} entries in src");
}

/// Selection uses ids, order and costs only. Private fields hide the texts from it, and this test keeps it
/// from naming the types that hold texts.
#[test]
fn selection_names_nothing_that_holds_a_text() {
    let mut looked_at = 0;
    for file in files(&crate::support::root().join("src/planner/select")) {
        let text = std::fs::read_to_string(&file).unwrap();
        for word in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
            assert!(
                !["Candidates", "PlanRequest", "Message", "RagItem", "PinnedItem"].contains(&word),
                "{} names {word}",
                file.display()
            );
        }
        looked_at += 1;
    }
    assert!(looked_at >= 6, "{looked_at}");
}
