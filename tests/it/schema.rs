//! The JSON Schemas of `crates/plan-inspect/schema` match the data that the code reads and writes, as
//! strictly as a schema can express it.

mod options;
mod sessions;

use crate::support::{data, generate};
use boon::{Compiler, SchemaIndex, Schemas};
use context_window::{Config, ContextWindowManager, Model, TokenCounter, WireFormat, plan::NoticeCode};
use context_window_formats::Session;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, fs, path::PathBuf};

const METASCHEMA: &str = "https://json-schema.org/draft/2020-12/schema";

struct Schema {
    text: Value,
    compiled: Schemas,
    index: SchemaIndex,
}

impl Schema {
    fn named(name: &str) -> Self {
        let text = fs::read_to_string(root(&format!("crates/plan-inspect/schema/{name}.json"))).unwrap();
        let text: Value = serde_json::from_str(&text).unwrap();
        let (mut compiler, mut compiled) = (Compiler::new(), Schemas::new());
        let id = text["$id"].as_str().unwrap();
        compiler.add_resource(id, text.clone()).unwrap();
        let index = compiler.compile(id, &mut compiled).unwrap();
        Self { text, compiled, index }
    }

    fn takes(&self, value: &Value) -> bool {
        self.compiled.validate(value, self.index).is_ok()
    }

    fn expect(&self, value: &Value, what: &str) {
        if let Err(error) = self.compiled.validate(value, self.index) {
            panic!("{what}: {error:#}");
        }
    }
}

fn root(path: &str) -> PathBuf {
    crate::support::root().join(path)
}

fn json_files(folder: &str) -> Vec<(String, Value)> {
    let entries = fs::read_dir(root(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect();
    paths.sort();
    let read = |path: &PathBuf| serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    paths.iter().map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), read(path))).collect()
}

/// Returns the sessions of the fixtures and examples, each with its name and its fixture, if it has one.
fn sessions() -> Vec<(String, Value, Value)> {
    let fixtures = json_files("tests/fixtures").into_iter().filter(|(name, _)| !name.starts_with("error_"));
    let fixtures = fixtures.map(|(name, fixture)| {
        // Text that is not JSON is not a session either.
        let text = fixture["text"].as_str().map(|text| serde_json::from_str(text).unwrap_or_default());
        (name, text.unwrap_or_else(|| fixture["session"].clone()), fixture)
    });
    let fixtures = fixtures.filter(|(_, session, _)| !session.is_null());
    let examples = json_files("examples").into_iter().filter(|(name, _)| !name.ends_with("anchor"));
    let all: Vec<_> = fixtures.chain(examples.map(|(name, session)| (name, session, Value::Null))).collect();
    assert!(all.len() > 80, "{}", all.len());
    all
}

/// Returns every plan of a session under the options of its fixture, or the error that the fixture expects.
fn plans(
    session: &Value,
    fixture: &Value,
    budget: Option<u64>,
) -> Result<Vec<Value>, Box<dyn std::error::Error>> {
    let mut session = Session::from_json(&session.to_string())?;
    let config = Config::from_toml(fixture["config"].as_str().unwrap_or_default(), "config.toml")?;
    let model = session.model.as_deref().map_or_else(|| Ok(Model::custom("default")), Model::named)?;
    let model = match fixture["body"].as_str() {
        Some("openai-responses") => model.with_wire_format(WireFormat::OpenAiResponses),
        _ => model,
    };
    let manager = match fixture["counter"].as_str() {
        Some(name) => ContextWindowManager::new(model, TokenCounter::named(name)?, config)?,
        None => ContextWindowManager::configured(model, config)?,
    };
    session.limits.prompt_budget = budget.or(fixture["budget"].as_u64());
    let mut plans = Vec::new();
    for _ in 0..=fixture["turns"].as_u64().unwrap_or_default() {
        let plan = manager.build_plan(&session.request())?;
        plans.push(serde_json::from_str(&plan.to_json()).unwrap());
        session.previous = Some(plan.anchor());
        session.log.complete_turn(&plan);
    }
    Ok(plans)
}

fn every_plan() -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for (name, session, fixture) in sessions() {
        for budget in [None, Some(15), Some(60), Some(300), Some(2_000)] {
            let plans = plans(&session, &fixture, budget).unwrap_or_default();
            all.extend(plans.into_iter().map(|plan| (format!("{name} at {budget:?}"), plan)));
        }
    }
    // An estimating counter, with a margin.
    let estimated = json!({"counter": "chars/4", "config": "[tokens]\ncalibration_per_mille = 1200\n"});
    for (name, session, _) in sessions() {
        let plans = plans(&session, &estimated, None).unwrap_or_default();
        all.extend(plans.into_iter().map(|plan| (format!("{name} by estimate"), plan)));
    }
    assert!(all.len() > 400, "{}", all.len());
    all
}

/// Returns every value inside a value with its place as a JSON pointer, the value itself first.
fn inside(value: &Value) -> Vec<(String, &Value)> {
    let mut found = vec![(String::new(), value)];
    let mut at = 0;
    while let Some((place, value)) = found.get(at).cloned() {
        match value {
            Value::Object(object) => {
                found.extend(object.iter().map(|(key, value)| (format!("{place}/{}", escaped(key)), value)));
            }
            Value::Array(list) => {
                found.extend(list.iter().enumerate().map(|(nth, value)| (format!("{place}/{nth}"), value)));
            }
            _ => {}
        }
        at += 1;
    }
    found
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Returns the value with another value at this place.
fn with(value: &Value, place: &str, other: Value) -> Value {
    let mut changed = value.clone();
    *changed.pointer_mut(place).unwrap() = other;
    changed
}

fn object<'a>(value: &'a mut Value, place: &str) -> &'a mut Map<String, Value> {
    value.pointer_mut(place).unwrap().as_object_mut().unwrap()
}

#[test]
fn schemas_are_valid_and_describe_every_property() {
    let (mut compiler, mut compiled) = (Compiler::new(), Schemas::new());
    let meta = compiler.compile(METASCHEMA, &mut compiled).unwrap();
    for name in ["config", "plan", "session"] {
        let schema = Schema::named(name).text;
        compiled.validate(&schema, meta).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        assert_eq!(schema["$schema"], METASCHEMA);
        assert_eq!(schema["$id"], format!("urn:context-window:{name}:1"));
        assert!(schema["title"].is_string() && schema["description"].is_string());
        for (place, value) in inside(&schema) {
            let Some(properties) = place.ends_with("/properties").then(|| value.as_object().unwrap()) else {
                continue;
            };
            // Conditions and alternatives repeat the keys that they distinguish.
            let condition =
                ["/if/", "/anyOf/", "/then/properties", "/allOf/"].iter().any(|part| place.contains(part));
            for (key, property) in properties {
                let definition = property["$ref"].as_str().and_then(|name| schema.pointer(&name[1..]));
                let said = property["description"].is_string()
                    || definition.is_some_and(|definition| definition["description"].is_string())
                    || !property["const"].is_null();
                assert!(said || condition, "{name}: {place}/{key} has no description");
            }
        }
    }
}

#[test]
fn every_plan_matches_its_schema() {
    let schema = Schema::named("plan");
    for (name, plan) in every_plan() {
        schema.expect(&plan, &name);
    }
}

proptest! {
    #![proptest_config(generate::cases(100, 5_000))]
    #[test]
    fn plans_of_broken_sessions_match_the_schema(session in generate::session()) {
        if let Ok(plan) = session.plan() {
            let schema = Schema::named("plan");
            schema.expect(&serde_json::from_str(&plan.to_json()).unwrap(), "generated");
        }
    }
}

/// A key outside the schema is refused at every place, and so is a plan without a key that the code always
/// writes.
#[test]
fn the_schema_of_plans_is_closed() {
    let schema = Schema::named("plan");
    let mut left_out = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for (name, plan) in every_plan() {
        for (place, value) in inside(&plan) {
            let Some(keys) = value.as_object() else { continue };
            // One of each kind is enough: a place without its numbers, and its keys.
            let kind: String = place.chars().filter(|c| !c.is_ascii_digit()).collect();
            if !seen.insert((kind, keys.keys().cloned().collect::<Vec<_>>())) {
                continue;
            }
            let mut more = plan.clone();
            object(&mut more, &place).insert("zzz".into(), json!(1));
            assert!(!schema.takes(&more), "{name}: a key more at {place:?}");
            for key in keys.keys() {
                let mut less = plan.clone();
                object(&mut less, &place).shift_remove(key);
                if schema.takes(&less) {
                    left_out.insert(key.clone());
                }
            }
        }
    }
    let may_be_left_out =
        ["cap", "compaction", "last_id", "thoughts", "token_calibration", "max_input", "role"]
            .map(String::from);
    assert_eq!(left_out, BTreeSet::from(may_be_left_out));
}

/// Returns the names of an enum's variants as serde writes them, read from the source.
fn variants(file: &str, name: &str) -> BTreeSet<String> {
    let source = fs::read_to_string(root(file)).unwrap();
    let (_, body) = source.split_once(&format!("enum {name} {{\n")).unwrap_or_else(|| panic!("{name}"));
    let (body, _) = body.split_once("\n}").unwrap();
    let mut renamed = None;
    let mut found = BTreeSet::new();
    for line in body.lines().filter(|line| line.starts_with("    ") && !line.starts_with("     ")) {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("#[serde(rename = \"") {
            renamed = Some(name.split_once('"').unwrap().0.to_owned());
        } else if line.starts_with(|c: char| c.is_ascii_uppercase()) {
            let word: String = line.chars().take_while(char::is_ascii_alphanumeric).collect();
            let mut snake = String::new();
            for c in word.chars() {
                if c.is_ascii_uppercase() && !snake.is_empty() {
                    snake.push('_');
                }
                snake.push(c.to_ascii_lowercase());
            }
            found.insert(renamed.take().unwrap_or(snake));
        }
    }
    found
}

/// Returns the values of an `enum`, or the one of a `const`, without null.
fn values(schema: &Value) -> BTreeSet<String> {
    let all = schema["enum"].as_array().cloned().unwrap_or_else(|| vec![schema["const"].clone()]);
    all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn every_name_that_the_code_has_is_in_the_schemas_and_no_other() {
    let places: [(&str, &str, &str, &str); 32] = [
        ("plan", "/properties/limits_source", "src/provider/model/limits.rs", "LimitsSource"),
        ("plan", "/properties/budget_source", "src/plan/mod.rs", "BudgetSource"),
        ("plan", "/properties/usage/properties/level", "src/usage/mod.rs", "Level"),
        ("plan", "/$defs/wire_format", "src/message/wire_format.rs", "WireFormat"),
        ("plan", "/$defs/certainty", "crates/tokens/src/certainty.rs", "Certainty"),
        ("plan", "/$defs/source", "src/item.rs", "Source"),
        ("plan", "/$defs/section", "src/item.rs", "Section"),
        ("plan", "/$defs/role", "src/message/role.rs", "Role"),
        ("plan", "/$defs/priority", "src/item.rs", "Priority"),
        ("plan", "/$defs/included/properties/reason", "src/plan/reason/mod.rs", "IncludedReason"),
        ("plan", "/$defs/excluded/properties/reason", "src/plan/reason/mod.rs", "ExcludedReason"),
        ("plan", "/$defs/excluded/oneOf/0/properties/held_by", "src/plan/reason/mod.rs", "LimitedBy"),
        ("plan", "/$defs/prefix/properties/cause", "src/plan/reasoning.rs", "PrefixCause"),
        ("session", "/$defs/message/properties/role", "crates/formats/src/session/wire.rs", "Role"),
        ("session", "/$defs/priority", "src/item.rs", "Priority"),
        ("session", "/$defs/compaction/properties/kind", "src/conversation/compaction.rs", "CompactionKind"),
        (
            "session",
            "/$defs/previous/properties/target/oneOf/1/properties/wire_format",
            "src/message/wire_format.rs",
            "WireFormat",
        ),
        ("session", "/$defs/item/then/properties/role", "crates/formats/src/session/responses.rs", "Speaker"),
        ("config", "/properties/conversation/properties/repair", "src/config/mod.rs", "Repair"),
        ("config", "/properties/conversation/properties/tool_results", "src/config/mod.rs", "ToolResults"),
        ("config", "/properties/rag/properties/fill", "src/config/rag.rs", "RagFill"),
        ("config", "/properties/rag/properties/placement", "src/config/rag.rs", "Placement"),
        ("config", "/properties/rag/properties/format", "src/config/rag.rs", "DocumentFormat"),
        ("config", "/properties/rag/properties/variants", "src/config/rag.rs", "Variants"),
        ("session", "/$defs/previous/properties/rag_format", "src/config/rag.rs", "DocumentFormat"),
        ("config", "/properties/ttl/properties/policy", "src/config/mod.rs", "TtlPolicy"),
        ("config", "/properties/usage/properties/base", "src/config/mod.rs", "UsageBase"),
        (
            "config",
            "/properties/compaction/properties/strategy",
            "src/config/compaction.rs",
            "CompactionStrategy",
        ),
        (
            "config",
            "/properties/compaction/properties/summary/properties/form",
            "src/config/compaction.rs",
            "RequestForm",
        ),
        ("plan", "/$defs/ttl/oneOf/0", "src/item.rs", "TtlForm"),
        ("session", "/$defs/ttl/oneOf/0", "src/item.rs", "TtlForm"),
        ("plan", "/$defs/excluded/oneOf", "src/plan/reason/mod.rs", "PolicyRule"),
    ];
    for (schema, place, file, name) in places {
        let schema = Schema::named(schema).text;
        let at = schema.pointer(place).unwrap_or_else(|| panic!("{place}"));
        let shown = match (name, at.as_array()) {
            // These are spread over the alternatives of a row.
            (_, Some(alternatives)) => alternatives
                .iter()
                .flat_map(|one| values(&one["properties"]["rule"]))
                .collect::<BTreeSet<String>>(),
            ("TtlForm", None) => values(at).into_iter().chain(["limited".into()]).collect(),
            (_, None) => values(at),
        };
        assert_eq!(shown, variants(file, name), "{place} and {name} of {file}");
    }
    let schema = Schema::named("config").text;
    let presets = Config::presets().map(str::to_owned).collect::<BTreeSet<String>>();
    assert_eq!(values(&schema["properties"]["preset"]), presets);
    let schema = Schema::named("plan").text;
    let remedies = schema["$defs"]["remedy"]["oneOf"].as_array().unwrap();
    let remedies = remedies.iter().map(|one| one["required"][0].as_str().unwrap().to_owned());
    assert_eq!(remedies.collect::<BTreeSet<String>>(), variants("src/plan/mod.rs", "Remedy"));
    let codes = NoticeCode::ALL.iter().map(|code| code.name().to_owned());
    let shown = values(&schema["properties"]["notices"]["items"]["properties"]["code"]);
    assert_eq!(codes.collect::<BTreeSet<String>>(), shown);
}

/// Values of the schema that no source text names: each of these occurs in some plan.
#[test]
fn every_overhead_line_and_most_reasons_occur() {
    let (mut lines, mut rules) = (BTreeSet::new(), BTreeSet::new());
    for (_, plan) in every_plan() {
        let what = |line: &Value| line["what"].as_str().unwrap().to_owned();
        lines.extend(plan["overhead"].as_array().unwrap().iter().map(what));
        let rule = |row: &Value| row["rule"].as_str().map(str::to_owned);
        rules.extend(plan["excluded"].as_array().unwrap().iter().filter_map(rule));
    }
    let schema = Schema::named("plan").text;
    let mut known = values(&schema["properties"]["overhead"]["items"]["properties"]["what"]);
    // Lines of other counters, which counting.rs and calibration.rs check.
    for other in ["joins", "token_calibration", "template"] {
        if !lines.contains(other) {
            assert!(known.remove(other), "{other}");
        }
    }
    assert_eq!(lines, known);
    assert!(rules.len() >= 7, "{rules:?}");
}
