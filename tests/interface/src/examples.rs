//! Examples of a crate's types.

use std::{collections::BTreeSet, path::Path};

use libtest_mimic::Failed;

use crate::{crates::Published, document::Document, limits};

/// Checks that each public type of a crate is named in a program: an example in its documentation, in the
/// book or in an `examples` folder. Types listed in `limits.rs` need none.
pub(crate) fn check(published: &Published, document: &Document) -> Result<(), Failed> {
    let mut code = Code::default();
    for item in document.json.index.values().filter_map(|item| item.docs.as_deref()) {
        code.add_page(item);
    }
    for folder in ["docs", "examples", "crates", "README.md"] {
        code.add_files(&published.workspace.join(folder))?;
    }
    let allowed = limits::WITHOUT_EXAMPLE.iter().find(|(name, _)| *name == published.name);
    let allowed: BTreeSet<&str> = allowed.map_or(&[][..], |(_, types)| types).iter().copied().collect();
    let without = document.shown_types().filter(|name| !code.words.contains(*name));
    let without: BTreeSet<&str> = without.collect();
    let new: Vec<&str> = without.difference(&allowed).copied().collect();
    let old: Vec<&str> = allowed.difference(&without).copied().collect();
    let mut wrong = Vec::new();
    if !new.is_empty() {
        wrong.push(format!("no example names {}", new.join(", ")));
    }
    if !old.is_empty() {
        wrong.push(format!("an example names {}: take it out of WITHOUT_EXAMPLE", old.join(", ")));
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{}: {}", published.name, wrong.join("; ")).into()) }
}

/// The words of programs.
#[derive(Default)]
struct Code {
    words: BTreeSet<String>,
}

impl Code {
    /// Adds the blocks of code of a page in Markdown.
    fn add_page(&mut self, page: &str) {
        let mut is_code = false;
        for line in page.lines() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            } else if is_code {
                self.add(line);
            }
        }
    }

    /// Adds the programs below a folder: pages in Markdown, and Rust in folders of examples.
    fn add_files(&mut self, path: &Path) -> Result<(), Failed> {
        if path.is_dir() {
            let entries = std::fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
            return entries.iter().try_for_each(|entry| self.add_files(&entry.path()));
        }
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("md") => self.add_page(&std::fs::read_to_string(path)?),
            Some("rs") if path.components().any(|part| part.as_os_str() == "examples") => {
                self.add(&std::fs::read_to_string(path)?);
            }
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, code: &str) {
        let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        self.words.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
    }
}
