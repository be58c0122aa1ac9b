//! The house itself: layers that point one way, files of one noun.
#![allow(clippy::pedantic, clippy::unwrap_used, missing_docs, reason = "a test")]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

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

/// The modules in the order of lib.rs.
fn layers() -> BTreeMap<String, usize> {
    let lib = std::fs::read_to_string(source().join("lib.rs")).unwrap();
    let names = lib.lines().filter_map(|line| {
        let name = line.strip_prefix("mod ").or_else(|| line.strip_prefix("pub mod "))?;
        name.split(';').next().map(str::to_owned)
    });
    names.enumerate().map(|(layer, name)| (name, layer)).collect()
}

/// The layer that a file belongs to; none for lib.rs and the binary.
fn layer_of(path: &Path) -> Option<String> {
    let inside = path.strip_prefix(source()).unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    let name = first.strip_suffix(".rs").unwrap_or(&first).to_owned();
    (name != "lib" && name != "bin").then_some(name)
}

/// What is outside of tests: everything before `#[cfg(test)]` or `#[cfg(all(test`.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let end = text.find("#[cfg(test)]").or_else(|| text.find("#[cfg(all(test")).unwrap_or(text.len());
    text[..end].to_owned()
}

/// The modules that a piece of code names behind `crate::`, in `use` trees and in paths.
fn imports(code: &str, layers: &BTreeMap<String, usize>) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("crate::") {
        rest = &rest[at + "crate::".len()..];
        if let Some(tree) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut name = String::new();
            for c in tree.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    c if depth == 0 && (c.is_alphanumeric() || c == '_') => name.push(c),
                    ':' if depth == 0 && !name.is_empty() => found.push(std::mem::take(&mut name)),
                    _ if depth == 0 => found.extend((!name.is_empty()).then(|| std::mem::take(&mut name))),
                    _ => {}
                }
            }
            found.extend((!name.is_empty()).then_some(name));
        } else {
            found.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    found.retain(|name| layers.contains_key(name));
    found
}

#[test]
fn no_import_points_down() {
    let layers = layers();
    assert!(layers.len() > 20, "{layers:?}");
    let mut checked = 0;
    for path in files(&source()) {
        let Some(own) = layer_of(&path) else { continue };
        for import in imports(&code(&path), &layers) {
            checked += 1;
            assert!(
                layers[&import] <= layers[&own],
                "{} uses `{import}`, which stands below it in lib.rs",
                path.display()
            );
        }
    }
    assert!(checked > 100, "only {checked} imports found");
}

#[test]
fn the_import_reader_reads_every_form() {
    let layers: BTreeMap<String, usize> = ["a", "b", "c"].into_iter().map(str::to_owned).zip(0..).collect();
    let code = "use crate::{a::{x, c}, b};\nfn f() { crate::c::g() }\nuse crate::b::y;";
    assert_eq!(imports(code, &layers), ["a", "b", "c", "b"]);
}

#[test]
fn no_file_is_over_500_lines_of_code() {
    for path in files(&source()) {
        let lines = code(&path)
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.trim().starts_with("//"))
            .count();
        assert!(lines <= 500, "{}: {lines} lines of code", path.display());
    }
}

/// `select` decides by ids, order and weights: it cannot see a message, a counter or a wording.
#[test]
fn selection_sees_no_text_and_no_tokenizer() {
    let layers = layers();
    for path in files(&source()).iter().filter(|path| layer_of(path).as_deref() == Some("select")) {
        for hidden in ["message", "meter", "wording", "conversation", "repair"] {
            let seen = imports(&code(path), &layers);
            assert!(!seen.contains(&hidden.to_owned()), "{} uses `{hidden}`", path.display());
        }
    }
}
