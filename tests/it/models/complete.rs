//! Compares the registry with a public catalogue, and checks the age of its figures.

use crate::support::{self, data};
use context_window::{Registry, provider::ModelEntry};
use serde::Deserialize;
use std::collections::BTreeSet;

/// Companies that make models, by their names in the catalogue.
const MAKERS: [&str; 22] = [
    "openai",
    "anthropic",
    "google",
    "gemini",
    "mistral",
    "codestral",
    "deepseek",
    "xai",
    "moonshot",
    "moonshotai",
    "zai",
    "zhipuai",
    "alibaba",
    "dashscope",
    "meta_llama",
    "llama",
    "cohere",
    "cohere_chat",
    "minimax",
    "amazon_nova",
    "inception",
    "ai21",
];

/// Models with tools that the registry does not have, each with the reason.
const EXCEPTIONS: [(&str, &str); 6] = [
    ("gemini-exp-1114", "an experiment that has ended"),
    ("gemini-exp-1206", "an experiment that has ended; two figures for one name"),
    ("learnlm-1.5-pro-experimental", "an experiment that has ended"),
    ("gemini-gemma-2-27b-it", "no longer served; open weights have a template and no tools"),
    ("gemini-gemma-2-9b-it", "no longer served; open weights have a template and no tools"),
    ("gemini-robotics-er-2-streaming-preview", "nobody publishes its context length"),
];

#[derive(Deserialize)]
struct Sold {
    model: String,
    provider: String,
    tools: bool,
}

#[test]
fn models_that_their_makers_sell_are_known() {
    let Some(folder) = data::folder() else { return };
    let text = std::fs::read_to_string(folder.join("models.json")).unwrap();
    let sold: Vec<Sold> = serde_json::from_str(&text).unwrap();
    let registry = Registry::built_in().unwrap();
    let unknown: BTreeSet<&str> = sold
        .iter()
        .filter(|model| model.tools && MAKERS.contains(&model.provider.as_str()))
        .filter(|model| registry.entry(&model.model).is_none())
        .map(|model| model.model.rsplit('/').next().unwrap())
        .collect();
    let exceptions: BTreeSet<&str> = EXCEPTIONS.iter().map(|(name, _)| *name).collect();
    assert_eq!(unknown, exceptions);
    let found = sold.iter().filter(|model| registry.entry(&model.model).is_some()).count();
    assert!(found >= 2_481, "{found} of {} names are found", sold.len());
}

/// Returns the days since 1 March of the year 0 in the Gregorian calendar.
fn day(date: &str) -> Option<u64> {
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let year = if month <= 2 { year - 1 } else { year };
    Some(year * 365 + year / 4 - year / 100 + year / 400 + (153 * ((month + 9) % 12) + 2) / 5 + day - 1)
}

/// Returns the entries whose figures were read more than 60 days before the newest ones.
fn old(registry: &Registry) -> Vec<&ModelEntry> {
    let newest = registry.entries().iter().filter_map(|entry| day(&entry.date)).max().unwrap_or_default();
    let is_old = |entry: &&ModelEntry| day(&entry.date).is_none_or(|day| newest - day > 60);
    registry.entries().iter().filter(is_old).collect()
}

/// `./check` prints these names at its end. They are no failure, so that no test fails only because time
/// passes.
#[test]
fn figures_older_than_sixty_days_are_named() {
    let entry = |name: &str, date: &str| {
        format!("[[model]]\nname = \"{name}\"\ncontext_len = 9\ndate = \"{date}\"\n")
    };
    let text = entry("new", "2026-03-02")
        + &entry("kept", "2026-01-01")
        + &entry("old", "2025-12-31")
        + &entry("none", "");
    let registry = Registry::from_toml(&text, "own.toml").unwrap();
    assert_eq!(old(&registry).iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["old", "none"]);

    let names: Vec<&str> =
        old(Registry::built_in().unwrap()).iter().map(|entry| entry.name.as_str()).collect();
    if !names.is_empty() {
        let list = names.join(", ");
        support::skip(
            "figures of models",
            &format!("{} are over 60 days older than the newest: {list}", names.len()),
        );
    }
}
