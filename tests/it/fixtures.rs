//! Snapshots of small sessions: each fixture gives a report and JSON, or an error. Every fixture names the
//! rules it shows, and every plan fulfils the general laws.

use crate::support::laws::{self, Case};
use context_window::{Config, ContextWindowManager, Model, TokenCounter, WireFormat, render};
use context_window_formats::Session;
use context_window_report as report;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{collections::BTreeSet, fmt::Write as _, path::Path};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    rules: Vec<String>,
    /// Numbers of the required behaviours that it shows.
    #[serde(default)]
    behaviours: Vec<u32>,
    why: String,
    /// The session, or text that is not a session.
    session: Option<Box<RawValue>>,
    text: Option<String>,
    budget: Option<u64>,
    #[serde(default)]
    config: String,
    counter: Option<String>,
    /// The wire format of the plan and of the body in the snapshot.
    body: Option<String>,
    /// Number of turns that are completed and planned again.
    #[serde(default)]
    turns: u32,
}

/// An error of any of the crates: its kind and its text.
struct Refused {
    kind: String,
    error: Box<dyn std::error::Error>,
}

macro_rules! refused {
    ($($error:ty),*) => {
        $(impl From<$error> for Refused {
            fn from(error: $error) -> Self {
                Self { kind: format!("{:?}", error.kind()), error: Box::new(error) }
            }
        })*
    };
}

refused!(context_window::Error, context_window_formats::Error);

impl From<context_window::tokens::Error> for Refused {
    fn from(error: context_window::tokens::Error) -> Self {
        context_window::Error::from(error).into()
    }
}

fn read(path: &Path) -> Fixture {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn run(fixture: &Fixture) -> Result<String, Refused> {
    let text =
        fixture.session.as_ref().map(|raw| raw.get().to_owned()).or_else(|| fixture.text.clone()).unwrap();
    let mut session = Session::from_json(&text)?;
    let config = Config::from_toml(&fixture.config, "config.toml")?;
    let mut model = session.model.as_deref().map_or_else(|| Ok(Model::custom("default")), Model::named)?;
    if fixture.body.as_deref() == Some("openai-responses") {
        model = model.with_wire_format(WireFormat::OpenAiResponses);
    }
    let manager = match &fixture.counter {
        Some(name) => ContextWindowManager::new(model, TokenCounter::named(name)?, config.clone())?,
        None => ContextWindowManager::configured(model, config.clone())?,
    };
    session.limits.prompt_budget = fixture.budget;
    let mut out = String::new();
    for turn in 0..=fixture.turns {
        let request = session.request();
        let plan = manager.build_plan(&request)?;
        let case = Case {
            manager: &manager,
            request: &request,
            messages: session.log.messages(),
            rag: session.rag.iter().map(|item| item.id().as_str().to_owned()).collect(),
            config: &config,
            plan: &plan,
        };
        laws::hold(&case).unwrap();
        if fixture.turns > 0 {
            let _ = writeln!(out, "=== turn {turn}");
        }
        let _ = writeln!(out, "{}\n{}", report::text(&plan), plan.to_json());
        let body = match fixture.body.as_deref() {
            Some("openai") => serde_json::to_string_pretty(&render::openai(&plan)).unwrap(),
            Some("openai-responses") => {
                serde_json::to_string_pretty(&render::openai_responses(&plan)).unwrap()
            }
            Some("anthropic") => serde_json::to_string_pretty(&render::anthropic(&plan)).unwrap(),
            Some("gemini") => serde_json::to_string_pretty(&render::gemini(&plan)).unwrap(),
            Some(other) => panic!("no body of {other}"),
            None => String::new(),
        };
        out.push_str(&body);
        session.log.complete_turn(&plan);
    }
    Ok(out)
}

#[test]
fn every_fixture_plans_as_it_did() {
    insta::glob!("..", "fixtures/*.json", |path| {
        let fixture = read(path);
        let out = run(&fixture).unwrap_or_else(|error| {
            let mut text = format!("error ({}): {}\n", error.kind, error.error);
            let mut source = error.error.source();
            while let Some(cause) = source {
                let _ = writeln!(text, "because: {cause}");
                source = cause.source();
            }
            text
        });
        insta::with_settings!({ description => fixture.why, omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(out);
        });
    });
}

#[test]
fn every_rule_has_a_fixture() {
    let folder = crate::support::root().join("tests/fixtures");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 40, "{} fixtures", files.len());
    let named: BTreeSet<String> = files.iter().flat_map(|path| read(path).rules).collect();
    let rules =
        "B1 B2 B3 B4 B5 B6 S1 S2 S3 S4 S5 S6 S7 S8 S9 T1 T2 T3 O1 O2 O3 O4 O5 H1 H2 H3 H4 H5 H6 H7 N1 N3";
    let missing: Vec<&str> = rules.split(' ').filter(|rule| !named.contains(*rule)).collect();
    assert!(missing.is_empty(), "no fixture names {missing:?}");
    let rulebook = include_str!("../../docs/rules.md");
    let unknown: Vec<&String> =
        named.iter().filter(|rule| !rulebook.contains(&format!("**{rule}**"))).collect();
    assert!(unknown.is_empty(), "docs/rules.md does not know {unknown:?}");
}

/// Required behaviours of planning, by their number in `behaviours` of a fixture, that other tests check.
/// Each is found by words of the test's name or comment.
const IN_TESTS: [(u32, &str); 18] = [
    (1, "the_budget_never_wraps"),
    (2, "missing_figures_fall_back_and_the_source_is_named"),
    (3, "budgets_agree_with_a_search_for_lambda"),
    (4, "unused_shares_flow_to_the_others"),
    (6, "the_live_question_is_in_even_when_it_alone_is_over_the_budget"),
    (7, "the_live_question_is_in_even_when_it_alone_is_over_the_budget"),
    (9, "bad_input_is_a_clear_error_or_a_plan"),
    (10, "every message and document is in exactly one row"),
    (11, "rows and lines sum to the total"),
    (12, "system first, the block right before the live question"),
    (14, "a call is in with exactly one result for each of its calls"),
    (15, "a call is in with exactly one result for each of its calls"),
    (17, "placeholder results depend on the call alone"),
    (25, "Planning reads and never writes"),
    (26, "the lifetimes of a clone fall independently"),
    (29, "errors_name_place_value_and_allowed_values"),
    (39, "both_unit_systems_give_one_context_size"),
    (67, "one record a plan, with numbers and without a word of the prompt"),
];

#[test]
fn every_behaviour_of_planning_has_a_test() {
    let root = crate::support::root();
    let mut named: BTreeSet<u32> = BTreeSet::new();
    let mut sources = String::new();
    for folder in [
        "tests/it",
        "tests/support/src",
        "crates/tokens/tests/it",
        "crates/tokens/src",
        "crates/formats/tests/it",
        "crates/store/tests/it",
        "crates/plan-inspect/tests/it",
        "tests/fixtures",
        "src/planner",
        "src/planner/budget",
        "src/provider/model",
        "src/usage",
    ] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("rs") if !path.ends_with(file!()) => sources += &std::fs::read_to_string(path).unwrap(),
                Some("json") => named.extend(read(&path).behaviours),
                _ => {}
            }
        }
    }
    for (number, words) in IN_TESTS {
        assert!(sources.contains(words), "behaviour {number}: no test says `{words}`");
        named.insert(number);
    }
    let missing: Vec<u32> = (1..=36).chain([39, 67, 68]).filter(|number| !named.contains(number)).collect();
    assert!(missing.is_empty(), "no test holds the behaviours {missing:?}");
}
