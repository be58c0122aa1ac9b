//! Options: the shipped file equals the defaults of the code, every key has an effect, and every error names
//! the place and the fault.

use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, PinnedItem, PlanRequest, RagItem,
    RequestLimits, TokenCounter, ToolCall, Ttl, WireFormat,
    config::{ConfigLayers, Leave, LoadedConfig, Placement, Sections, ToolResults, TtlPolicy},
    message::Reasoning,
    usage::Level,
};
use std::collections::BTreeMap;

const SHIPPED: &str = include_str!("../../config/default.toml");

fn load(text: &str) -> Config {
    ConfigLayers::new().with_text("test.toml", text).load().unwrap().config
}

fn error(text: &str) -> String {
    ConfigLayers::new().with_text("mine.toml", text).load().unwrap_err().to_string()
}

#[test]
fn shipped_defaults_equal_the_defaults_of_the_code() {
    assert_eq!(load(SHIPPED), Config::default());
}

#[test]
fn every_key_that_has_a_default_is_shipped_and_no_other() {
    let shipped: Vec<&str> = LoadedConfig::keys().collect();
    let settings = Config::default().settings();
    let missing: Vec<&String> = settings.keys().filter(|key| !shipped.contains(&key.as_str())).collect();
    assert!(missing.is_empty(), "config/default.toml does not show {missing:?}");
    // Keys that are unset by default are known to the loader too: each such line is valid without its comment
    // sign.
    let all = SHIPPED.replace("\n#", "\n");
    let lines =
        all.lines().filter(|line| line.starts_with('[') || (line.contains(" = ") && !line.starts_with(' ')));
    let set = load(&lines.collect::<Vec<_>>().join("\n")).settings();
    assert_eq!(
        set.keys().map(String::as_str).collect::<std::collections::BTreeSet<_>>(),
        shipped.into_iter().collect()
    );
    // Each key has a comment.
    let mut comment = false;
    for line in SHIPPED.lines() {
        let key =
            line.trim_start_matches('#').split_once(" = ").is_some_and(|(key, _)| !key.starts_with(' '));
        let documented = comment || !key || line.contains("share = ") || line.contains("cap = ");
        assert!(documented, "no comment above: {line}");
        comment = line.starts_with("# ");
    }
}

#[test]
fn the_presets_are_these_options() {
    let mut agent = Config::default();
    agent.preset = Some("agent".into());
    agent.sections = Sections::shares(150, 750, 100);
    agent.conversation.low_mark = 500;
    agent.conversation.tool_results = ToolResults::Clear;
    agent.conversation.keep_results = 5;
    assert_eq!(Config::preset("agent").unwrap(), agent);

    let mut chat = Config::default();
    chat.preset = Some("chat".into());
    chat.sections = Sections::shares(150, 700, 150);
    assert_eq!(Config::preset("chat").unwrap(), chat);

    let mut rag = Config::default();
    rag.preset = Some("rag".into());
    rag.sections = Sections::shares(50, 50, 900);
    assert_eq!(Config::preset("rag").unwrap(), rag);

    let mut append_only = Config::default();
    append_only.preset = Some("append-only".into());
    append_only.conversation.low_mark = 500;
    append_only.rag.placement = Placement::WithQuestion;
    append_only.rag.leave = Leave::AtCut;
    append_only.ttl_policy = TtlPolicy::Unlimited;
    assert_eq!(Config::preset("append-only").unwrap(), append_only);

    // Presets that imitate other tools; `tests/it/compaction` checks their behaviour.
    let others = ["dropping", "lights", "summary-only", "summary-tail"];
    let own = ["agent", "append-only", "chat", "rag"];
    assert_eq!(
        Config::presets().collect::<std::collections::BTreeSet<_>>(),
        own.into_iter().chain(others).collect()
    );
    assert!(others.iter().all(|name| Config::preset(name).is_ok()));
}

#[test]
fn each_layer_holds_over_the_one_before() {
    let file = "preset = \"rag\"\n[rag]\nmax_items = 3\nmin_score = 0.25\n[conversation]\nlow_mark = 700\n";
    let variables = [
        ("CONTEXT_WINDOW_RAG__MAX_ITEMS", "4"),
        ("CONTEXT_WINDOW_TTL__POLICY", "ask"),
        ("CONTEXT_WINDOW_DATA", "/somewhere"),
        ("PATH", "/bin"),
    ];
    let loaded = ConfigLayers::new()
        .with_text("mine.toml", file)
        .with_environment(variables)
        .with_pairs("flag --set", [("conversation.low_mark", "800")])
        .load()
        .unwrap();
    let (config, origin) = (&loaded.config, |key| loaded.origin(key));
    assert_eq!(config.sections.rag.share, 900);
    assert_eq!(origin("sections.rag.share"), "preset rag:10");
    assert_eq!(config.rag.min_score, Some(0.25));
    assert_eq!(origin("rag.min_score"), "mine.toml:4");
    assert_eq!(config.rag.max_items, Some(4));
    assert_eq!(origin("rag.max_items"), "environment CONTEXT_WINDOW_RAG__MAX_ITEMS");
    assert_eq!(config.ttl_policy, TtlPolicy::Ask);
    assert_eq!(config.conversation.low_mark, 800);
    assert_eq!(origin("conversation.low_mark"), "flag --set conversation.low_mark");
    assert_eq!(origin("usage.approaching"), "default");
}

/// Returns the observable behaviour of a planner with these options: a plan of a session with every kind of
/// item, and its levels.
fn behaviour(config: &Config) -> String {
    let call = |id: &str| ToolCall::new(id, "look_up", "{}");
    let mut log = Conversation::new();
    log.push_system("s0", "Answer from the documents. ".repeat(2));
    log.pin(PinnedItem::new("gone", "A note whose days are over.").with_ttl(Ttl::NoneRemaining));
    log.pin(PinnedItem::new("agreed", "What was agreed. ".repeat(30)));
    for turn in 0..6 {
        log.push(Message::user(format!("Question {turn}: {}", "why? ".repeat(6))));
        log.push(Message::assistant("").with_tool_calls([call(&format!("c{turn}"))]));
        log.push(Message::tool(format!("c{turn}"), "result ".repeat(100)));
        log.push(Message::assistant(format!("Answer {turn}: {}", "because. ".repeat(6))));
    }
    log.push(Message::user("And now?"));
    log.push(Message::assistant("").with_tool_calls([call("open"), call("never answered")]));
    log.push(Message::tool("open", "a long result ".repeat(30)));
    let document = |id: &str, score: f64, words: usize, origin: &str| {
        RagItem::new(id, score, format!("{id} says: {}", "so it is. ".repeat(words))).with_origin(origin)
    };
    let documents = [
        document("large", 0.9, 60, "book"),
        document("first", 0.8, 12, "book"),
        document("second", 0.7, 11, "book"),
        document("third", 0.2, 10, "letter"),
        document("fourth", 0.1, 9, "letter"),
        document("fifth", 0.05, 8, "diary"),
    ];
    let manager = || {
        let model = Model::custom("test");
        match TokenCounter::named(&config.default_model.tokenizer) {
            Ok(counter) => ContextWindowManager::new(model, counter, config.clone()),
            Err(error) => Err(error.into()),
        }
    };
    let manager = match manager() {
        Ok(manager) => manager,
        Err(error) => return error.to_string(),
    };
    let with = |budget: Option<u64>, start: Option<&str>| {
        let mut request = PlanRequest::new(&log).with_rag(documents.iter().cloned());
        if let Some(budget) = budget {
            request = request.with_limits(RequestLimits::prompt_budget(budget));
        }
        if let Some(start) = start {
            let anchor = serde_json::json!({ "window_start": start });
            let anchor: context_window::plan::Anchor = serde_json::from_value(anchor).unwrap();
            request = request.with_previous(anchor);
        }
        match manager.build_plan(&request) {
            Ok(plan) => plan.to_json(),
            Err(error) => error.to_string(),
        }
    };
    let limits = manager.build_plan(&PlanRequest::new(&log)).map(|plan| plan.limits);
    let levels = limits.map(|limits| {
        let levels = (0..=130).map(|percent| {
            Level::from_tokens(limits.model_context_len / 100 * percent, &limits, &config.usage)
        });
        format!("{:?}", levels.collect::<Vec<_>>())
    });
    // With much room, little room, little room and an earlier window start, less than the minimum, and with
    // estimated counts before and after a report.
    format!(
        "{}{}{}{}{}{}{}{levels:?}",
        with(None, None),
        with(Some(700), None),
        with(Some(1400), Some("m0")),
        with(Some(120), None),
        estimates(config),
        compactions(config),
        thoughts(config),
    )
}

/// Returns the treatment of signed reasoning.
fn thoughts(config: &Config) -> String {
    let model = Model::custom("test").with_wire_format(WireFormat::Anthropic);
    let manager = match ContextWindowManager::new(model, TokenCounter::chars_per_4(), config.clone()) {
        Ok(manager) => manager,
        Err(error) => return error.to_string(),
    };
    let thought = Reasoning::signed(WireFormat::Anthropic, "Hm.", "c2VhbA==");
    let call = ToolCall::new("c", "look_up", "{}");
    let log = Conversation::from([
        Message::user("Who?"),
        Message::assistant("<think>Hm.</think>Ida."),
        Message::user("Where?"),
        Message::assistant("").with_reasoning(thought).with_tool_calls([call]),
        Message::tool("c", "Here."),
    ]);
    manager.build_plan(&PlanRequest::new(&log)).map_or_else(|error| error.to_string(), |plan| plan.to_json())
}

/// Returns the course of a growing conversation: its compactions, their requests, and the messages that stay.
fn compactions(config: &Config) -> String {
    let limits = RequestLimits::new().with_model_context_len(12_000).with_max_completion_tokens(500);
    let counter = TokenCounter::chars_per_4();
    let manager = match ContextWindowManager::new(Model::custom("test"), counter, config.clone()) {
        Ok(manager) => manager,
        Err(error) => return error.to_string(),
    };
    let mut told = String::new();
    let mut log = Conversation::new();
    for turn in 0..60 {
        log.push(Message::user(format!("Question {turn}: {}", "why? ".repeat(90))));
        log.push(Message::assistant(format!("Answer {turn}: {}", "because. ".repeat(90))));
        let request = || PlanRequest::new(&log).with_limits(limits);
        let state = match manager.compactor().state(&request()) {
            Ok(state) => state,
            Err(error) => return error.to_string(),
        };
        told += &format!("{state:?} ");
        if let Some(job) = manager.compactor().due(&request()).unwrap() {
            let said: Vec<&str> = job.messages().iter().map(Message::text).collect();
            told += &format!("{:?} {:?} {said:?} {:?}", job.first_active(), job.form(), job.digest());
            told += &format!("{:?}\n", manager.compactor().compact_without_model(&mut log, &job));
        }
    }
    told
}

/// Returns the counts of an estimating counter before and after a report of half as much again.
fn estimates(config: &Config) -> String {
    let manager =
        match ContextWindowManager::new(Model::custom("test"), TokenCounter::chars_per_4(), config.clone()) {
            Ok(manager) => manager,
            Err(error) => return error.to_string(),
        };
    let mut log = Conversation::from([Message::user("How long does a kettle last?")]);
    let before = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    let usage = context_window::Usage::openai(before.counted() * 3 / 2, 0, 9);
    log.push_reply(&before, Message::assistant("Ten years."), usage);
    let after = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    format!("{} {}", before.estimated_tokens_total.tokens, after.estimated_tokens_total.tokens)
}

/// A value other than the default for each key.
const OTHER_VALUES: [(&str, &str); 34] = [
    ("preset", "\"rag\""),
    ("model.default.context_len", "9000"),
    ("model.default.max_completion", "1000"),
    ("model.default.safety_buffer", "3"),
    ("model.default.tokenizer", "\"chars/4\""),
    ("sections.system_pinned.share", "50"),
    ("sections.system_pinned.cap", "9"),
    ("sections.conversation.share", "450"),
    ("sections.conversation.cap", "90"),
    ("sections.rag.share", "200"),
    ("sections.rag.cap", "60"),
    ("conversation.low_mark", "300"),
    ("conversation.repair", "\"drop\""),
    ("conversation.tool_results", "\"clear\""),
    ("conversation.keep_results", "1"),
    ("conversation.clear_at_least", "100000"),
    ("rag.fill", "\"prefix\""),
    ("rag.placement", "\"before_conversation\""),
    ("rag.template.header", "'id=\"{id}\" score=\"{score}\"'"),
    ("rag.template.introduction", "\"Found for the question.\""),
    ("rag.labels", "true"),
    ("rag.min_score", "0.5"),
    ("rag.max_items", "1"),
    ("rag.max_item_tokens", "40"),
    ("rag.max_source_tokens", "50"),
    ("rag.max_source_items", "1"),
    ("rag.order", "\"relevance_last\""),
    ("rag.question_limit", "200"),
    ("ttl.policy", "\"unlimited\""),
    ("tokens.calibrate", "false"),
    ("tokens.calibration_per_mille", "1200"),
    ("usage.approaching", "60"),
    ("usage.at_limit", "90"),
    ("usage.base", "\"context\""),
];

/// Values of other keys that have to be set too, so that the options stay valid or the key has an effect.
const WITH: [(&str, &str, &str); 10] = [
    ("compaction.strict", "compaction.messages", "16"),
    ("compaction.on_drop", "compaction.percent", "0"),
    ("compaction.target", "compaction.retain.capacity", "100"),
    ("sections.system_pinned.share", "sections.rag.share", "400"),
    ("sections.conversation.share", "sections.rag.share", "400"),
    ("sections.rag.share", "sections.conversation.share", "650"),
    ("rag.question_limit", "rag.placement", "\"with_question\""),
    ("rag.order", "rag.near_duplicates", "0"),
    ("conversation.keep_results", "conversation.tool_results", "\"clear\""),
    ("conversation.clear_at_least", "conversation.tool_results", "\"clear\""),
];

#[test]
fn every_key_changes_something() {
    let mut values: BTreeMap<&str, &str> = OTHER_VALUES.into();
    values.extend([
        ("sections.system_pinned.pins_limit", "0"),
        ("compaction.enabled", "false"),
        ("compaction.strategy", "\"sliding_window\""),
        ("compaction.strict", "true"),
        ("compaction.percent", "70"),
        ("compaction.base", "\"context\""),
        ("compaction.tokens", "1000"),
        ("compaction.remaining", "2000"),
        ("compaction.messages", "12"),
        ("compaction.turns", "7"),
        ("compaction.on_drop", "false"),
        ("compaction.min_messages", "100"),
        ("compaction.target", "40"),
        ("compaction.retain.tokens", "200"),
        ("compaction.retain.messages", "2"),
        ("compaction.retain.capacity", "10"),
        ("compaction.retain.active", "20"),
        ("compaction.summary.max_tokens", "300"),
        ("compaction.summary.form", "\"transcript\""),
        ("compaction.summary.instruction", "\"chat\""),
        ("compaction.digest.max_tokens", "100"),
        ("conversation.reasoning", "\"drop\""),
        ("conversation.think_tags", "\"reasoning\""),
    ]);
    // `tokens.cache_bytes` changes speed only, as `counts_in_plans` checks. `rag.leave` takes effect over
    // many prompts, as `sent_with` checks. `selection` checks the keys about texts that contain each
    // other, `variants` shorter forms, `native` the format, `offloaded` those of offloading, `standing_rules`
    // those of rules.
    let elsewhere = [
        "tokens.cache_bytes",
        "rag.leave",
        "rag.near_duplicates",
        "rag.repeats",
        "rag.join_chunks",
        "rag.variants",
        "rag.format",
        "rag.recall_share",
        "conversation.offload_above",
        "conversation.offload_keep",
        "compaction.rules",
        "compaction.rules_limit",
    ];
    for key in LoadedConfig::keys().filter(|key| !elsewhere.contains(key)) {
        let value = values.remove(key).unwrap_or_else(|| panic!("no test value for {key}"));
        let mut base: Vec<(&str, &str)> = vec![("conversation.clear_at_least", "50")];
        let mut pairs = vec![(key, value)];
        for (of, other, value) in WITH.iter().filter(|(of, ..)| *of == key) {
            let needed = if of.starts_with("sections") { &mut pairs } else { &mut base };
            needed.push((other, value));
        }
        let config = |pairs: &[(&str, &str)]| {
            ConfigLayers::new()
                .with_pairs("base", base.iter().copied())
                .with_pairs("test", pairs.iter().copied())
                .load()
                .unwrap()
                .config
        };
        let strip = |mut text: String| {
            // The hash of the options changes with any key, which would hide a key without an effect.
            for part in ["\"config\": \"", "\"fingerprint\": \""] {
                while let Some(at) = text.find(part) {
                    let end = at + part.len() + text[at + part.len()..].find('"').unwrap() + 1;
                    text.replace_range(at..end, "");
                }
            }
            text
        };
        let (with, without) = (strip(behaviour(&config(&pairs))), strip(behaviour(&config(&[]))));
        assert!(with != without, "{key} = {value} changes nothing");
    }
    assert!(values.is_empty(), "not keys: {values:?}");
}

#[test]
fn errors_name_place_value_and_allowed_values() {
    let cases = [
        ("a typo in a key", "[rag]\nfill = \"prefix\"\nmax_itmes = 3\n"),
        ("a typo in a table", "[sections.ragg]\nshare = 300\n"),
        ("a typo in a value", "[ttl]\npolicy = \"automatc\"\n"),
        ("a wrong type", "[rag]\nmax_items = \"three\"\n"),
        ("a number where a table belongs", "rag = 3\n"),
        ("a fraction that is too fine", "[conversation]\nlow_mark = 0.6005\n"),
        ("a share without a unit", "[conversation]\nlow_mark = \"60\"\n"),
        ("a share over everything, in per cent", "[sections.rag]\nshare = \"130 %\"\n"),
        ("a fraction over everything", "[compaction]\npercent = 85.0\n"),
        ("a fraction of tokens", "[conversation]\nkeep_results = 0.6\n"),
        ("a negative number", "[conversation]\nkeep_results = -1\n"),
        ("a share that does not sum", "[sections.conversation]\nshare = 500 # less\n"),
        ("a share over everything", "[sections.rag]\nshare = 70000\n"),
        ("not a number", "[rag]\nmin_score = nan\n"),
        ("infinite", "[rag]\nmin_score = -inf\n"),
        ("a percent over 100", "[usage]\napproaching = 175\n"),
        ("a percent over 100", "[compaction]\npercent = 101\n"),
        ("a target over its trigger", "[compaction]\ntarget = 90\npercent = 80\n"),
        ("a target equal to its trigger", "[compaction]\ntarget = 85\n"),
        ("a trigger under the default target", "[compaction]\npercent = 40\n"),
        ("approaching behind at_limit", "[usage]\nat_limit = 70\n"),
        ("a low mark of 0", "[conversation]\nlow_mark = 0\n"),
        ("an unknown preset", "preset = \"agents\"\n"),
        ("a key twice", "[rag]\nmax_items = 1\nmax_items = 2\n"),
        ("no TOML", "[rag\nmax_items = 1\n"),
        ("no window", "[model.default]\ncontext_len = 0\n"),
        (
            "a tab, an umlaut and a wide letter before the place",
            "[rag]\n\tmax_items = 1 # ä\nmin_score = \"日本\"\n",
        ),
        ("escape codes", "[rag]\n\"max\\u001b[31mitems\" = 1\n"),
    ];
    let text: String = cases.iter().map(|(what, text)| format!("--- {what}\n{}\n\n", error(text))).collect();
    insta::assert_snapshot!("config_errors", text);
}

#[test]
fn errors_of_variables_and_flags_name_them() {
    let layers = || ConfigLayers::new().with_text("mine.toml", "[rag]\nmax_items = 3\n");
    let errors = [
        layers().with_environment([("CONTEXT_WINDOW_RAG__MAX_ITMES", "3")]).load(),
        layers().with_environment([("CONTEXT_WINDOW_RAG__MAX_ITEMS", "many")]).load(),
        layers().with_pairs("flag --set", [("sections.rag.share", "10")]).load(),
        layers().with_pairs("flag --set", [("rag", "\n[ttl]")]).load(),
        layers().with_pairs("flag --preset", [("preset", "chatt")]).load(),
        layers().with_pairs("flag --set", [("et", "3")]).load(),
    ];
    let text: String = errors.into_iter().map(|error| format!("{}\n\n", error.unwrap_err())).collect();
    insta::assert_snapshot!("config_errors_of_pairs", text);
}

/// Each displayed name parses to the same value, and an error for an unknown name lists the valid ones.
#[test]
fn displayed_names_parse_to_the_same_value() {
    use context_window::{ErrorKind, Priority, Role, Section, WireFormat};
    for section in Section::ALL {
        assert_eq!(section.to_string().parse::<Section>().unwrap(), section);
    }
    for role in [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool] {
        assert_eq!(role.to_string().parse::<Role>().unwrap(), role);
    }
    for format in ["openai_chat", "openai_responses", "anthropic", "gemini", "chat_template", "plain"] {
        assert_eq!(format.parse::<WireFormat>().unwrap().to_string(), format);
    }
    let error = "highest".parse::<Priority>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert_eq!(error.to_string(), "priority: `highest` is unknown; expected one of: low, normal, high");
}

/// Returns the keys that are shares, read from the options page: their values are a range of whole numbers.
fn shares() -> Vec<(String, u64, u64)> {
    let page = include_str!("../../docs/reference/options.md");
    let row = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix("| `")?.split(" | ").collect();
        let [key, values, ..] = cells.as_slice() else { return None };
        let (from, to) = values.split_once(" to ")?;
        let (to, _) = to.split_once(',').unwrap_or((to, ""));
        let key = key.trim_end_matches('`').replace("NAME", "\"gpt-4o.new\"");
        Some((key, from.parse().ok()?, to.parse().ok()?))
    };
    page.lines().filter_map(row).collect()
}

/// Every key with a range of values is read as per cent and as a fraction, in a file, a variable and a flag.
/// A new key is covered too, because the page has a row for each option.
#[test]
fn every_share_is_read_as_percent_and_as_a_fraction() {
    let shares = shares();
    assert!(shares.len() >= 16, "{shares:?}");
    // Other keys to set where the value alone would be refused because of them.
    let beside = |key: &str| match key {
        "sections.system_pinned.share" => "sections.conversation.share = 0\nsections.rag.share = 400\n",
        "sections.conversation.share" => "sections.system_pinned.share = 0\nsections.rag.share = 400\n",
        "sections.rag.share" => "sections.system_pinned.share = 0\nsections.conversation.share = 400\n",
        "usage.at_limit" => "usage.approaching = 1\n",
        "compaction.percent" | "compaction.models.\"gpt-4o.new\".percent" => "compaction.target = 1\n",
        _ => "",
    };
    for (key, _, most) in &shares {
        let whole = if *most == 2_000 { 1_000 } else { *most };
        let number = whole * 6 / 10;
        let beside = beside(key);
        let read = |value: &str| {
            ConfigLayers::new().with_text("mine.toml", format!("{beside}{key} = {value}\n")).load()
        };
        let expected = read(&number.to_string()).unwrap_or_else(|error| panic!("{key}: {error}")).config;
        for value in ["\"60%\"", "\"60 %\"", "\"60.0%\"", "0.6", "0.60", "\"0.6\""] {
            let loaded = read(value).unwrap_or_else(|error| panic!("{key} = {value}: {error}"));
            assert_eq!(loaded.config, expected, "{key} = {value}");
        }
        for value in ["60%", "60 %", "0.6", ".6"] {
            let layers =
                ConfigLayers::new().with_text("beside", beside).with_pairs("flag --set", [(key, value)]);
            assert_eq!(layers.load().unwrap().config, expected, "--set {key}={value}");
            let name = format!("CONTEXT_WINDOW_{}", key.replace('.', "__").to_uppercase());
            // A model's name cannot be part of a variable's name.
            if !key.contains('"') {
                let layers =
                    ConfigLayers::new().with_text("beside", beside).with_environment([(name, value)]);
                assert_eq!(layers.load().unwrap().config, expected, "{key} from the environment");
            }
        }
        for wrong in [
            "\"60\"",
            "0.60001",
            "\"60.01%\"",
            "\"201%\"",
            "2.5",
            "-0.5",
            "\"-6%\"",
            "\"six\"",
            "\"60 per cent\"",
        ] {
            let error = read(wrong).unwrap_err().to_string();
            let bare = key.replace('"', "");
            assert!(
                error.starts_with("mine.toml:") && error.contains(&format!("{bare}: {wrong}")),
                "{error}"
            );
            assert!(error.contains("; expected per "), "{error}");
        }
    }
    // No other number accepts a unit.
    for key in LoadedConfig::keys().filter(|key| shares.iter().all(|(share, ..)| share != key)) {
        let text = format!("{key} = \"60%\"\n");
        let taken = ConfigLayers::new().with_text("mine.toml", text).load().is_ok();
        assert_eq!(
            taken,
            ["model.default.tokenizer", "compaction.summary.instruction", "rag.template.introduction"]
                .contains(&key),
            "{key}"
        );
    }
}

/// The decimal text of a number is read, not the nearest binary fraction.
#[test]
fn fraction_is_read_by_its_decimal_text() {
    for number in 1..=1_000_u16 {
        let text = format!("[conversation]\nlow_mark = {}.{:03}\n", number / 1_000, number % 1_000);
        assert_eq!(load(&text).conversation.low_mark, number, "{text}");
    }
    let nearest = error("[conversation]\nlow_mark = 0.60000000000000000000001\n");
    assert!(nearest.contains("0.60000000000000000000001 is more precise than this option"), "{nearest}");
}
