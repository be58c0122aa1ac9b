//! `plan-inspect vectors`: plans test vectors and compares them with the expected plans. A vector is a
//! session with sizes in place of texts. See tests/vectors/README.md.

use crate::stdout::print;
use crate::{
    args::{DataFormat, Vectors},
    json,
    progress::Progress,
};
use anyhow::{Context, Result, bail};
use context_window::{
    Config, ContextPlan, ContextWindowManager, ExcludedReason, Model, RequestLimits, Section, TokenCounter,
    WireFormat, config::ConfigLayers, plan::Notice,
};
use context_window_formats::Session;
use context_window_report as report;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap, convert::Infallible, fmt::Write as _, fs, path::PathBuf, process::ExitCode,
};

/// A vector file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    rules: Vec<String>,
    why: String,
    budget: u64,
    /// The options that differ from the defaults, by key.
    #[serde(default)]
    config: BTreeMap<String, Value>,
    /// A session with a `size` in tokens in place of every text.
    session: Map<String, Value>,
    expect: Option<Value>,
}

#[derive(Serialize)]
struct Outcome {
    file: String,
    rules: Vec<String>,
    passed: bool,
    planned: Value,
}

pub(crate) fn run(args: &Vectors) -> Result<ExitCode> {
    let (mut outcomes, mut differences) = (Vec::new(), String::new());
    let files = files(&args.paths)?;
    let shown = Progress::bar("planning vectors", files.len());
    for path in files {
        let name = path.display().to_string();
        let text = fs::read_to_string(&path).with_context(|| format!("{name} cannot be read"))?;
        let vector: Vector =
            serde_json::from_str(&text).with_context(|| format!("{name}: not a test vector"))?;
        let planned = vector.planned().with_context(|| name.clone())?;
        let passed = vector.expect.as_ref() == Some(&planned);
        if !passed && args.format == DataFormat::Text {
            let expected = vector.expect.unwrap_or_default();
            let why = report::printable(&format!("{name}: {}", vector.why));
            write!(differences, "{why}\n{}", difference(&expected, &planned)?)?;
        }
        outcomes.push(Outcome { file: name, rules: vector.rules, passed, planned });
        shown.step();
    }
    drop(shown);
    let failed = outcomes.iter().filter(|outcome| !outcome.passed).count();
    let text = match args.format {
        DataFormat::Json => json::indented(&json!({ "vectors": outcomes }))?,
        DataFormat::Text => differences + &summary(&outcomes, failed)?,
    };
    print(&text)?;
    Ok(ExitCode::from(u8::from(failed > 0)))
}

fn summary(outcomes: &[Outcome], failed: usize) -> Result<String> {
    let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
    for rule in outcomes.iter().flat_map(|outcome| &outcome.rules) {
        *rules.entry(rule).or_default() += 1;
    }
    let vectors = if outcomes.len() == 1 { "vector" } else { "vectors" };
    let mut text = format!("{} {vectors}, {failed} failed\n", outcomes.len());
    for (rule, count) in rules {
        writeln!(text, "  {:<4} {count}", report::printable(rule))?;
    }
    Ok(text)
}

/// Describes the parts that differ between the expected and the actual outcome.
fn difference(expected: &Value, planned: &Value) -> Result<String> {
    let mut text = String::new();
    for (key, value) in planned.as_object().into_iter().flatten() {
        if expected.get(key) != Some(value) {
            let expected = expected.get(key).unwrap_or(&Value::Null);
            writeln!(text, "  {key}: expected {expected}\n  {key}: planned  {value}")?;
        }
    }
    Ok(text)
}

/// Returns the named files, and the JSON files of named folders, sorted by name.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let mut inside: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        inside.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        if inside.is_empty() {
            bail!("{} contains no .json file; expected test vectors", path.display());
        }
        // The order of a directory differs between machines.
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

impl Vector {
    fn planned(&self) -> Result<Value> {
        let session = Session::from_json(&Value::Object(worded(&self.session)?).to_string())?;
        let mut model = Model::custom("sizes");
        model.wire_format = WireFormat::Plain;
        let manager = ContextWindowManager::new(
            model,
            TokenCounter::from_fn("sizes", |text| Ok::<_, Infallible>(sizes(text))),
            self.options()?,
        )?;
        let request = session.request().with_limits(RequestLimits::prompt_budget(self.budget));
        Ok(outcome(&manager.build_plan(&request)?))
    }

    fn options(&self) -> Result<Config> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let pairs: Vec<(&str, String)> =
            self.config.iter().map(|(key, value)| (&**key, text(value))).collect();
        Ok(ConfigLayers::new().with_pairs("config of the vector", pairs).load()?.config)
    }
}

/// Builds the session with texts that contain their sizes. Items with the same `text` get the same text; all
/// others get different ones.
fn worded(session: &Map<String, Value>) -> Result<Map<String, Value>> {
    let mut session = session.clone();
    for (key, value) in &mut session {
        let field = if key == "messages" { "content" } else { "text" };
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    word(item, field, &format!("{key}-{at}"))?;
                }
            }
            Value::Object(_) if key == "focus" => {
                word(value, field, key)?;
                // The session format has a plain string for the focus.
                *value = value[field].take();
            }
            _ => {}
        }
    }
    Ok(session)
}

/// Replaces the `size` of an item with a text of that size. `own` is the name in the text if the item has no
/// `text`.
fn word(item: &mut Value, field: &str, own: &str) -> Result<()> {
    let Some(object) = item.as_object_mut() else { return Ok(()) };
    let Some(size) = object.shift_remove("size") else { return Ok(()) };
    let size = size.as_u64().filter(|size| *size <= 1_000_000);
    let size = size.with_context(|| format!("{own}: expected a size from 0 to 1000000"))?;
    let shared = object.shift_remove("text");
    let name = shared.as_ref().and_then(Value::as_str).unwrap_or(own);
    // A text has at least as many bytes as tokens, so that bounds derived from bytes are valid.
    let text =
        if size == 0 { String::new() } else { format!("[[{name}:{size}]]{}", ".".repeat(size as usize)) };
    object.insert(field.into(), text.into());
    Ok(())
}

/// Returns the sum of the sizes in a text. Other characters count as 0 tokens.
fn sizes(text: &str) -> u64 {
    let said = text.split("[[").skip(1).filter_map(|rest| {
        let (_, size) = rest.split_once("]]")?.0.rsplit_once(':')?;
        size.parse::<u64>().ok()
    });
    said.sum()
}

/// Returns the decisions of a plan, without the parts that depend on texts.
fn outcome(plan: &ContextPlan) -> Value {
    let included: Vec<Value> = plan
        .included
        .iter()
        .map(|row| json!([row.id, row.section.name(), row.reason.name(), row.token_estimate.tokens]))
        .collect();
    let excluded: Vec<Value> = plan
        .excluded
        .iter()
        .map(|row| {
            let last = row.last_id.as_ref().unwrap_or(&row.id);
            let detail = match &row.reason {
                ExcludedReason::Budget { limited_by, .. } => limited_by.name(),
                ExcludedReason::Policy(rule) => rule.name(),
                ExcludedReason::Duplicate { of }
                | ExcludedReason::InWindow { of }
                | ExcludedReason::NearDuplicate { of, .. }
                | ExcludedReason::Repeats { of, .. } => of.as_str(),
                _ => "",
            };
            json!([row.id, last, row.count, row.section.name(), row.reason.name(), detail])
        })
        .collect();
    let budgets = Section::ALL.map(|section| plan.section(section).budget);
    json!({
        "budgets": budgets,
        "included": included,
        "excluded": excluded,
        "total": plan.estimated_tokens_total.tokens,
        "overflow": plan.overflow_tokens(),
        "conflict": plan.overflow.iter().flat_map(|overflow| &overflow.conflict).collect::<Vec<_>>(),
        "window_start": plan.window_start,
        "notices": plan.notices.iter().map(Notice::rule).collect::<Vec<_>>(),
    })
}
