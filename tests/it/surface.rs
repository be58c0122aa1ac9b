//! The public surface, as a list: every change of it shows in a diff of the snapshot.
//!
//! The lints `unreachable_pub` and `unnameable_types` make `pub` mean public, so the list is read from the source: every
//! `pub` item with its signature, variants of public enums, and traits that public types implement.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

fn source() -> PathBuf {
    crate::support::root().join("src")
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.ends_with("bin") || path.ends_with("_documentation") => {}
            true => files(&path, found),
            false => found.extend((path.extension().is_some_and(|end| end == "rs")).then_some(path)),
        }
    }
}

/// From a line on, up to where a signature ends.
fn signature(lines: &[&str], at: usize) -> String {
    let mut text = String::new();
    for line in &lines[at..] {
        text.push_str(line.trim());
        if let Some(end) = text.find(" {").or_else(|| text.find(';')) {
            text.truncate(end);
            break;
        }
        if text.ends_with(',') && !text.contains('(') {
            text.pop();
            break;
        }
        text.push(' ');
    }
    text.replace("( ", "(").replace(", )", ")").trim_end_matches([' ', ',']).to_owned()
}

/// The public items of one file, each under the type that it belongs to.
fn items(module: &str, text: &str, found: &mut BTreeSet<String>) {
    let text = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let mut of = String::new();
    let mut variants = false;
    for (at, line) in lines.iter().enumerate() {
        let (indent, rest) = (line.len() - line.trim_start().len(), line.trim_start());
        if indent == 0 {
            if line.starts_with('}') {
                (of, variants) = (String::new(), false);
            }
            let name = |after: &str| -> String {
                after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
            };
            if let Some(rest) = line.strip_prefix("impl") {
                let head = signature(&lines, at);
                if let Some((head, on)) = head.split_once(" for ") {
                    let of_ours = !on.contains("::");
                    found.extend(of_ours.then(|| format!("{module}: {head} for {on}")));
                }
                let rest = if rest.starts_with('<') {
                    rest.split_once("> ").map_or("", |(_, rest)| rest)
                } else {
                    rest
                };
                of = name(rest.trim_start());
            } else if let Some(rest) = line.strip_prefix("pub ") {
                found.insert(format!("{module}: {}", signature(&lines, at)));
                let kind = ["struct ", "enum ", "trait "].iter().find_map(|kind| rest.strip_prefix(kind));
                of = kind.map(name).unwrap_or_default();
                variants = rest.starts_with("enum ");
            }
        } else if rest.starts_with("pub ") {
            found.insert(format!("{module}: {of}: {}", signature(&lines, at)));
        } else if variants && indent == 4 && rest.starts_with(char::is_uppercase) {
            let variant: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
            found.insert(format!("{module}: {of}::{variant}"));
        }
    }
}

#[test]
fn the_public_surface_is_what_it_was() {
    let mut all = Vec::new();
    files(&source(), &mut all);
    let mut found = BTreeSet::new();
    for file in all {
        let path = file.strip_prefix(source()).unwrap().with_extension("");
        let module = path.to_string_lossy().replace('/', "::").replace("::mod", "");
        items(&module, &std::fs::read_to_string(&file).unwrap(), &mut found);
    }
    assert!(found.len() > 500, "{}", found.len());
    let list: Vec<String> = found.into_iter().collect();
    insta::assert_snapshot!("surface", list.join("\n"));
}

/// What an application sees first is a page, not a catalogue.
#[test]
fn the_root_has_few_names() {
    let lib = std::fs::read_to_string(source().join("lib.rs")).unwrap();
    let mut names = BTreeSet::new();
    for line in lib.lines() {
        if let Some(module) = line.strip_prefix("pub mod ") {
            names.insert(module.trim_end_matches(';').to_owned());
        }
    }
    for import in lib.split("\npub use ").skip(1) {
        let import = import.split(';').next().unwrap();
        for path in import.split(['{', '}', ',', '\n']) {
            let name = path.trim().rsplit("::").next().unwrap();
            names.extend((!name.is_empty()).then(|| name.to_owned()));
        }
    }
    assert!(names.contains("ContextWindowManager") && names.contains("analysis"), "{names:?}");
    assert!(names.len() <= 46, "{}: {names:?}", names.len());
}
