//! The citations of a reply, checked against the documents of its prompt.

use context_window::analysis::{CitationVerdict, Citations};
use std::collections::BTreeMap;

/// Lists the documents that a reply cites, then the citations that they do not confirm. Returns `None` if the
/// reply has no citation.
pub(super) fn describe(citations: &Citations, reply: &str) -> Option<String> {
    let found = citations.check(reply);
    let mut sources = BTreeMap::new();
    let mut faults = Vec::new();
    for one in &found {
        let quote = one.quote.as_ref().map(|quote| reply[quote.clone()].trim()).unwrap_or_default();
        let label = one.label;
        match (one.verdict, &one.document) {
            (CitationVerdict::Valid, Some(id)) => drop(sources.insert(label, format!("[{label}] {id}"))),
            (CitationVerdict::Misquoted, Some(id)) => {
                faults.push(format!("{id} does not say \"{quote}\" [{label}]"))
            }
            (CitationVerdict::NotSent, Some(id)) => {
                faults.push(format!("[{label}] {id} was not in this prompt"));
            }
            _ => faults.push(format!("[{label}] is no document")),
        }
    }
    let sources: Vec<String> = sources.into_values().collect();
    let checked = (!sources.is_empty()).then(|| format!("Sources: {}.", sources.join(", ")));
    let wrong = (!faults.is_empty()).then(|| format!("Not confirmed: {}.", faults.join("; ")));
    let parts: Vec<String> = checked.into_iter().chain(wrong).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}
