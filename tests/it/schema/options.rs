//! Option files: every key with its default, and options refused by both schema and loader.

use super::{Schema, inside, root, sessions};
use context_window::{
    Config,
    config::{ConfigLayers, LoadedConfig},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs};

fn as_json(text: &str) -> Value {
    serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap()
}

fn loads(text: &str) -> bool {
    ConfigLayers::new().with_text("mine.toml", text).load().is_ok()
}

#[test]
fn every_option_is_in_the_schema_with_its_default() {
    let schema = Schema::named("config");
    let defaults = include_str!("../../../config/default.toml");
    schema.expect(&as_json(defaults), "default.toml");
    // Includes the keys that are unset by default, with the values of their comments.
    let all = defaults.replace("\n#", "\n");
    let lines =
        all.lines().filter(|line| line.starts_with('[') || line.contains(" = ") && !line.starts_with(' '));
    schema.expect(&as_json(&lines.collect::<Vec<_>>().join("\n")), "default.toml with everything set");
    for preset in Config::presets() {
        let text = fs::read_to_string(root(&format!("config/presets/{preset}.toml"))).unwrap();
        schema.expect(&as_json(&text), preset);
    }
    for (name, _, fixture) in sessions() {
        let config = fixture["config"].as_str().unwrap_or_default();
        if loads(config) {
            schema.expect(&as_json(config), &name);
        }
    }
    let settings = Config::default().settings();
    let mut known = BTreeSet::new();
    for key in LoadedConfig::keys() {
        let place = format!("/properties/{}", key.replace('.', "/properties/"));
        let property = schema.text.pointer(&place).unwrap_or_else(|| panic!("{key} is not in the schema"));
        let default = settings.get(key).map(|value| serde_json::from_str::<Value>(value).unwrap());
        assert_eq!(property.get("default"), default.as_ref(), "{key}");
        known.insert(place);
    }
    let table = |value: &Value| value["properties"].is_object() || value["additionalProperties"].is_object();
    for (place, value) in inside(&schema.text) {
        let is_key =
            place.rsplit('/').nth(1) == Some("properties") && !place.contains("additionalProperties");
        if is_key && !table(value) {
            assert!(known.contains(&place), "{place} is no option");
        }
        if table(value) {
            assert_eq!(
                value["additionalProperties"].is_boolean(),
                value["properties"].is_object(),
                "{place}"
            );
            assert_ne!(value["additionalProperties"], json!(true), "{place}");
        }
    }
    let models = "[compaction.models.\"gpt-4o\"]\npercent = 70\ntokens = 5\nremaining = 6\n";
    assert!(loads(models) && schema.takes(&as_json(models)));
}

/// Every key with values of every kind: the loader refuses all values that the schema refuses. The schema
/// refuses all values that the loader refuses, except those that depend on other keys.
#[test]
fn schema_and_loader_refuse_the_same_options() {
    let schema = Schema::named("config");
    let kinds = [
        "true",
        "-1",
        "0",
        "1",
        "40",
        "60",
        "499",
        "1001",
        "70000",
        "0.6",
        "1.5",
        "-0.6",
        "nan",
        "\"zzz\"",
        "\"60\"",
        "\"60%\"",
        "\"60 %\"",
        "\"60.05%\"",
        "\"0.6\"",
        "\"300%\"",
        "\"-60%\"",
        "[]",
        "{}",
        "[1]",
    ];
    let models = [
        "percent",
        "tokens",
        "remaining",
        "strategy",
        "retain",
        "retain.tokens",
        "retain.messages",
        "retain.capacity",
        "retain.active",
    ]
    .map(|key| format!("compaction.models.\"x\".{key}"));
    let mut by_others = BTreeSet::new();
    let keys = LoadedConfig::keys().map(str::to_owned).chain(models);
    for key in keys.chain(["rag.zzz", "zzz", "rag", "compaction.models"].map(str::to_owned)) {
        for value in kinds {
            let text = format!("{key} = {value}\n");
            // Serde accepts a list for a table in which every key is optional.
            if (key == "rag" || key.ends_with(".retain")) && value.starts_with('[') {
                continue;
            }
            match (schema.takes(&as_json(&text)), loads(&text)) {
                (true, false) => drop(by_others.insert(format!("{key} = {value}"))),
                (taken, loaded) => assert_eq!(taken, loaded, "{text}"),
            }
        }
    }
    let hang_on_others = |text: &String| {
        ["sections.", "usage.", "compaction.percent", "compaction.target", "compaction.models"]
            .iter()
            .any(|start| text.starts_with(start))
    };
    assert!(by_others.iter().all(hang_on_others), "{by_others:?}");
    assert!(by_others.len() < 45, "{by_others:?}");
}
