//! Model registries: refused entries, imported catalogues, and built-in figures that equal those of the
//! catalogues.

use crate::support::data;
use context_window::{Model, Registry, WireFormat};

mod complete;
mod names;

const ENTRY: &str = "[[model]]\nname = \"m\"\nprovider = \"p\"\nsource = \"s\"\ndate = \"d\"\n";

#[test]
fn impossible_registry_values_are_refused_with_their_place() {
    let cases = [
        ("an input over the context", "context_len = 10\nmax_input = 11\n"),
        ("a length of 0", "context_len = 0\n"),
        ("a typo", "context_length = 10\n"),
        ("a price below nothing", "price = { input = -1.0, output = 2.0 }\n"),
        ("a price that is no number", "price = { input = nan, output = 2.0 }\n"),
        ("a wire format that nobody speaks", "wire_format = \"smoke\"\n"),
        (
            "a name twice",
            "aliases = [\"n\"]\n[[model]]\nname = \"n\"\nprovider = \"p\"\nsource = \"s\"\ndate = \"d\"\n",
        ),
        ("no name for a length", "context_len = \"long\"\n"),
    ];
    let error =
        |more: &str| Registry::from_toml(&format!("{ENTRY}{more}"), "own.toml").unwrap_err().to_string();
    let mut text: String =
        cases.iter().map(|(what, more)| format!("--- {what}\n{}\n\n", error(more))).collect();
    for json in ["", "{}", "[]", "{\"a\": 1}", "[{\"model\": 3}]", "{\"m\": {\"mode\": \"chat\"", "nonsense"]
    {
        let error = Registry::default().import(json, "catalogue.json", "today").unwrap_err();
        text += &format!("--- import of {json}\n{error}\n\n");
    }
    insta::assert_snapshot!("registry_errors", text);
}

/// The format of LiteLLM's price file: an object by name, prices per token, "context" as an input limit.
const LITELLM: &str = r#"{
  "sample_spec": {"litellm_provider": "one of many", "mode": "chat", "max_input_tokens": "a number", "max_output_tokens": 1},
  "acme/one": {"litellm_provider": "acme", "mode": "chat", "max_input_tokens": 900, "max_output_tokens": 300,
    "input_cost_per_token": 4.0000000000000003e-07, "output_cost_per_token": 1e-06},
  "one": {"litellm_provider": "openai", "mode": "chat", "max_input_tokens": 1000, "max_output_tokens": 250,
    "input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06, "cache_read_input_token_cost": 5e-07},
  "drawer": {"litellm_provider": "acme", "mode": "image_generation", "max_input_tokens": 1000},
  "two": {"litellm_provider": "acme", "mode": "chat", "max_input_tokens": 1000, "max_output_tokens": 1000},
  "three": {"litellm_provider": "acme", "mode": "chat", "max_tokens": 5}
}"#;

/// The format of models.dev's api.json: providers with their models, prices per million tokens.
const MODELS_DEV: &str = r#"{
  "openai": {"id": "openai", "models": {
    "one": {"id": "one", "limit": {"context": 1400, "output": 400}, "cost": {"input": 2, "output": 8, "cache_read": 0.5}},
    "four": {"id": "four", "limit": {"context": 1400, "input": 1100, "output": 300}}}},
  "anthropic": {"id": "anthropic", "models": {"five": {"limit": {"context": 2000, "output": 100}}}}
}"#;

#[test]
fn both_catalogues_are_read() {
    let litellm = Registry::default().import(LITELLM, "prices.json", "2026-11-22").unwrap();
    let names: Vec<&str> = litellm.entries().iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    let one = litellm.entry("one").unwrap();
    assert_eq!((one.provider.as_str(), one.context_len, one.max_input), ("openai", Some(1000), None));
    assert_eq!((one.max_output, one.price.as_ref().unwrap().cache_read), (Some(250), Some(0.5)));
    assert_eq!(litellm.entry("two").unwrap().max_output, None, "as large as the window is unknown");

    let dev = Registry::default().import(MODELS_DEV, "api.json", "2026-11-22").unwrap();
    let four = dev.entry("four").unwrap();
    assert_eq!((four.context_len, four.max_input, four.max_output), (Some(1400), Some(1100), Some(300)));
    let five = dev.entry("five").unwrap();
    assert_eq!((five.wire_format, five.is_estimated()), (WireFormat::Anthropic, true));
    insta::assert_snapshot!("registry_imported", dev.to_toml().unwrap());
}

#[test]
fn list_of_both_catalogues_becomes_one_entry_per_model() {
    let entry = |origin: &str, provider: &str, context: u64, output: u64| {
        format!(
            r#"{{"model": "x/one", "provider": "{provider}", "context_len": {context}, "max_output": {output},
                "input_price": 1e-06, "output_price": 2e-06, "cache_read_price": null, "cache_write_price": null, "origin": "{origin}"}}"#
        )
    };
    let list = [
        entry("litellm", "reseller", 100, 50),
        entry("litellm", "openai", 272, 128),
        entry("models.dev", "openai", 400, 130),
        entry("models.dev", "reseller", 90, 40),
    ];
    let registry =
        Registry::default().import(&format!("[{}]", list.join(",")), "models.json", "2026-11-22").unwrap();
    let one = registry.entry("one").unwrap();
    assert_eq!((one.context_len, one.max_input, one.max_output), (Some(400), Some(272), Some(128)));
    assert_eq!(one.source, "litellm openai: input 272 output 128; models.dev openai: context 400 output 130");
}

#[test]
fn better_known_figures_survive_an_import() {
    let known = |provider: &str, context: u64| {
        let entry = format!(
            "name = \"one\"\nprovider = \"{provider}\"\naliases = [\"uno\", \"TWO\"]\ncontext_len = {context}\n"
        );
        Registry::from_toml(&format!("[[model]]\n{entry}"), "known.toml").unwrap()
    };
    // The catalogue has only an input limit of 1,000. A longer context does not contradict it, but a shorter
    // one does.
    let longer = known("openai", 1_400).import(LITELLM, "prices.json", "2026-11-22").unwrap();
    let one = longer.entry("one").unwrap();
    assert_eq!((one.context_len, one.max_input), (Some(1_400), Some(1_000)));
    assert!(one.source.ends_with("; context 1400 as known before"), "{}", one.source);
    assert_eq!(one.aliases, ["uno"], "another model of the catalogue is called `two`");
    let shorter = known("openai", 900).import(LITELLM, "prices.json", "2026-11-22").unwrap();
    assert_eq!(shorter.entry("one").unwrap().context_len, Some(1_000));
    // A reseller's figures are ignored for a model that is known.
    let resold =
        r#"{"reseller": {"models": {"one": {"limit": {"context": 70}}, "six": {"limit": {"context": 70}}}}}"#;
    let rest = known("openai", 1_400).import(resold, "api.json", "2026-11-22").unwrap();
    assert_eq!(rest.entries().iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["six"]);
}

/// A catalogue on top of the built-in models changes figures only. Constraints of the same wire format stay.
#[test]
fn catalogue_removes_no_constraints() {
    let own = |demands: &str| {
        let entry = format!("[[model]]\nname = \"one\"\nprovider = \"openai\"\ncontext_len = 100\n{demands}");
        Registry::from_toml(&entry, "own.toml").unwrap()
    };
    let demanding = own("constraints = { names = false }\n");
    let both = own("").with_fallback(&demanding);
    assert_eq!(both.entry("one"), demanding.entry("one"));
    let agreeing = own("constraints = { names = true }\n");
    assert_ne!(agreeing, demanding);
    assert_eq!(agreeing.clone().with_fallback(&demanding).entry("one"), agreeing.entry("one"));
}

#[test]
fn built_in_figures_equal_those_of_the_catalogues() {
    let Some(folder) = data::folder() else { return };
    let text = std::fs::read_to_string(folder.join("models.json")).unwrap();
    let catalogue = Registry::default().import(&text, "models.json", "2026-11-22").unwrap();
    let gpt_5 = catalogue.entry("gpt-5").unwrap();
    assert_eq!(
        (gpt_5.context_len, gpt_5.max_input, gpt_5.max_output),
        (Some(400_000), Some(272_000), Some(128_000))
    );
    // The output of `models import` can be read again, and replaces no better known figure.
    let built_in = Registry::built_in().unwrap();
    let file = built_in.import(&text, "models.json", "2026-11-22").unwrap().to_toml().unwrap();
    let both = Registry::from_toml(&file, "imported.toml").unwrap().with_fallback(built_in);
    for name in ["claude-sonnet-4", "claude-opus-4", "minimax-m2", "gpt-5.1", "llama-3.1-8b-instruct"] {
        let (before, after) = (built_in.entry(name).unwrap(), both.entry(name).unwrap());
        assert_eq!((after.context_len, after.max_input), (before.context_len, before.max_input), "{name}");
    }
    let (mut compared, mut differing) = (0, Vec::new());
    for entry in Registry::built_in().unwrap().entries() {
        let names = std::iter::once(&entry.name).chain(&entry.aliases);
        let Some(known) =
            names.filter_map(|name| catalogue.entries().iter().find(|known| known.name == *name)).next()
        else {
            continue;
        };
        compared += 1;
        // If the entry names a page in addition to the catalogues, that page is the source of a larger
        // context.
        let by_page = entry.source.starts_with("context ");
        if known.provider == entry.provider
            && !by_page
            && (known.context_len, known.max_input) != (entry.context_len, entry.max_input)
        {
            differing.push(&entry.name);
        }
    }
    assert!(compared >= 100, "{compared} compared");
    assert!(differing.is_empty(), "{differing:?}");
}

#[test]
fn an_unknown_name_gets_a_hint_and_the_defaults() {
    let model = Model::named("gpt-5-minni").unwrap();
    assert!(model.unknown);
    assert_eq!(model.near.as_deref(), Some("gpt-5-mini"));
    assert_eq!(Model::named("my-own-finetune-of-something").unwrap().near, None);
}
