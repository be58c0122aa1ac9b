//! Token counts of tool definitions, by the published formula for flat schemas (cookbook, "How to count
//! tokens with tiktoken", section on tools, read 2026-11-21). Parts outside the formula are counted as their
//! JSON text, which is an estimate and rather too high than too low.

use crate::{
    error::Error,
    message::Tool,
    tokens::{Certainty, TokenCount, TokenCounter},
};
use serde_json::{Map, Value};

const PER_LIST: u64 = 12;
const PER_PROPERTIES: u64 = 3;
const PER_PROPERTY: u64 = 3;
const PER_ENUM_VALUE: u64 = 3;

/// The fields of a definition that control the provider's handling of a tool. The model never sees them.
const UNSEEN: [&str; 5] = ["strict", "defer_loading", "allowed_callers", "eager_input_streaming", "behavior"];

/// The keys of a schema for which the formula counts nothing.
const FREE: [&str; 5] = ["type", "properties", "required", "additionalProperties", "$schema"];

/// Counts the tokens of tool definitions. The count is an estimate if a part is outside the formula.
pub(super) fn count(counter: &TokenCounter, tools: &[Tool]) -> Result<TokenCount, Error> {
    let mut sum = Sum { counter, n: 0, certainty: counter.certainty() };
    if !tools.is_empty() {
        sum.n += PER_LIST;
    }
    // 7 for gpt-4o, 10 for gpt-4 and gpt-3.5, which the formula distinguishes by their encoding.
    let per_tool = if counter.name() == "cl100k_base" { 10 } else { 7 };
    for tool in tools {
        if let Some(json) = tool.hosted_json() {
            sum.unknown(json)?;
            continue;
        }
        sum.n += per_tool;
        sum.text(&format!("{}:{}", tool.name, sentence(&tool.description)))?;
        let fields = tool.further_fields();
        // The model sees only the name and description of a tool that is loaded on demand, until a search
        // finds it. Sources: OpenAI, tool search, "only the name and description"; Anthropic, tool search,
        // definitions are loaded when they are found; both read 2026-11-26.
        if fields.iter().any(|(name, value)| name == "defer_loading" && value == "true") {
            sum.certainty = Certainty::Estimate;
            continue;
        }
        for (name, value) in fields.iter().filter(|(name, _)| !UNSEEN.contains(&name.as_str())) {
            sum.unknown(&format!("{name}:{value}"))?;
        }
        match serde_json::from_str(&tool.schema) {
            Ok(Value::Object(schema)) => sum.schema(&schema)?,
            _ if tool.schema.trim().is_empty() => {}
            _ => sum.unknown(&tool.schema)?,
        }
    }
    let Sum { n, certainty, .. } = sum;
    Ok(TokenCount { tokens: n, certainty })
}

/// The sum of a count in progress.
struct Sum<'a> {
    counter: &'a TokenCounter,
    n: u64,
    certainty: Certainty,
}

impl Sum<'_> {
    fn text(&mut self, text: &str) -> Result<(), Error> {
        self.n += self.counter.count(text)?.tokens;
        Ok(())
    }

    /// Counts a part outside the formula as text, which makes the sum an estimate.
    fn unknown(&mut self, text: &str) -> Result<(), Error> {
        self.certainty = Certainty::Estimate;
        self.text(text)
    }

    fn schema(&mut self, schema: &Map<String, Value>) -> Result<(), Error> {
        for (key, value) in schema.iter().filter(|(key, _)| !FREE.contains(&key.as_str())) {
            self.unknown(&format!("{key}:{value}"))?;
        }
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Ok(());
        };
        if !properties.is_empty() {
            self.n += PER_PROPERTIES;
        }
        for (name, property) in properties {
            match property {
                Value::Object(property) => self.property(name, property)?,
                other => self.unknown(&format!("{name}:{other}"))?,
            }
        }
        Ok(())
    }

    fn property(&mut self, name: &str, property: &Map<String, Value>) -> Result<(), Error> {
        let text = |key: &str| property.get(key).and_then(Value::as_str);
        self.n += PER_PROPERTY;
        for (key, value) in property {
            match (key.as_str(), value) {
                ("type" | "description", Value::String(_)) => {}
                ("enum", Value::Array(values)) => {
                    // The formula subtracts 3 for the list and adds 3 per value.
                    self.n -= PER_PROPERTY;
                    for value in values {
                        self.n += PER_ENUM_VALUE;
                        match value {
                            Value::String(value) => self.text(value)?,
                            other => self.text(&other.to_string())?,
                        }
                    }
                }
                _ => self.unknown(&format!("{key}:{value}"))?,
            }
        }
        let (kind, description) = (text("type"), text("description"));
        let description = sentence(description.unwrap_or_default());
        self.text(&format!("{name}:{}:{description}", kind.unwrap_or_default()))
    }
}

/// Returns a description as the formula counts it, without its final full stop.
fn sentence(text: &str) -> &str {
    text.strip_suffix('.').unwrap_or(text)
}

#[cfg(all(test, feature = "openai"))]
mod tests {
    use super::*;

    #[test]
    fn cookbook_example_has_the_published_count() {
        // The weather tool of the cookbook: its whole request has 101 tokens for gpt-4o and gpt-4o-mini.
        let tool = Tool::new(
            "get_current_weather",
            "Get the current weather in a given location",
            r#"{"type":"object","properties":{
                "location":{"type":"string","description":"The city and state, e.g. San Francisco, CA"},
                "unit":{"type":"string","description":"The unit of temperature to return","enum":["celsius","fahrenheit"]}},
                "required":["location"]}"#,
        );
        let counter = TokenCounter::o200k_base();
        let system = "You are a helpful assistant that can answer to questions about the weather.";
        let user = "What's the weather like in San Francisco?";
        let mut messages = 3;
        for (role, text) in [("system", system), ("user", user)] {
            messages += 3 + counter.count(role).unwrap().tokens + counter.count(text).unwrap().tokens;
        }
        let tools = count(&counter, &[tool]).unwrap();
        assert_eq!((tools.tokens + messages, tools.certainty), (101, Certainty::Exact));
    }

    #[test]
    fn schema_keys_unknown_to_the_formula_are_counted() {
        let long = "a long description of something deep inside ".repeat(50);
        let counter = TokenCounter::cl100k_base();
        let least = counter.count(&long).unwrap().tokens;
        for schema in [
            format!(
                r#"{{"properties":{{"a":{{"type":"object","properties":{{"b":{{"description":"{long}"}}}}}}}}}}"#
            ),
            format!(r#"{{"$defs":{{"A":{{"description":"{long}"}}}},"properties":{{}}}}"#),
            format!(r#"{{"properties":{{"a":{{"anyOf":[{{"const":"{long}"}}]}}}}}}"#),
            format!(r#"{{"properties":{{"a":{{"type":"array","items":{{"enum":["{long}"]}}}}}}}}"#),
            format!(r#"{{"properties":{{"a":["{long}"]}}}}"#),
            format!(r#"["{long}"]"#),
            long.clone(),
        ] {
            let tools = count(&counter, &[Tool::new("f", "", schema.as_str())]).unwrap();
            assert!(
                tools.tokens >= least && tools.certainty == Certainty::Estimate,
                "{} of {schema}",
                tools.tokens
            );
        }
    }
}
