//! Tool definitions by the published formula for flat schemas (cookbook, "How to count tokens with tiktoken",
//! section on tools, read 2026-11-21). Deeper schemas are counted the same way level by level: an estimate.

use crate::{
    error::Error,
    message::Tool,
    tokens::{Certainty, TokenCount, TokenCounter},
};
use serde_json::Value;

const PER_LIST: u64 = 12;
const PER_PROPERTIES: u64 = 3;
const PER_PROPERTY: u64 = 3;
const PER_ENUM_VALUE: u64 = 3;

pub(super) fn count(counter: &TokenCounter, tools: &[Tool]) -> Result<TokenCount, Error> {
    let mut sum = Sum { counter, n: 0, certainty: counter.certainty() };
    if !tools.is_empty() {
        sum.n += PER_LIST;
    }
    // 7 for gpt-4o, 10 for gpt-4 and gpt-3.5: the encodings tell them apart.
    let per_tool = if counter.name() == "cl100k_base" { 10 } else { 7 };
    for tool in tools {
        sum.n += per_tool;
        sum.text(&format!("{}:{}", tool.name, sentence(&tool.description)))?;
        match serde_json::from_str(&tool.schema) {
            Ok(schema) => sum.properties(&schema, 0)?,
            Err(_) => {
                sum.certainty = Certainty::Estimate;
                sum.text(&tool.schema)?;
            }
        }
    }
    let Sum { n, certainty, .. } = sum;
    Ok(TokenCount { n, certainty })
}

struct Sum<'a> {
    counter: &'a TokenCounter,
    n: u64,
    certainty: Certainty,
}

impl Sum<'_> {
    fn text(&mut self, text: &str) -> Result<(), Error> {
        self.n += self.counter.count(text)?.n;
        Ok(())
    }

    fn properties(&mut self, schema: &Value, depth: u32) -> Result<(), Error> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Ok(());
        };
        if properties.is_empty() {
            return Ok(());
        }
        if depth > 0 {
            self.certainty = Certainty::Estimate;
        }
        self.n += PER_PROPERTIES;
        for (name, property) in properties {
            self.property(name, property)?;
            for below in [Some(property), property.get("items")].into_iter().flatten() {
                self.properties(below, depth + 1)?;
            }
        }
        Ok(())
    }

    fn property(&mut self, name: &str, property: &Value) -> Result<(), Error> {
        let text = |key: &str| match property.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        self.n += PER_PROPERTY;
        if let Some(values) = property.get("enum").and_then(Value::as_array) {
            // The formula takes 3 back for the list and gives 3 to each value.
            self.n -= PER_PROPERTY;
            for value in values {
                self.n += PER_ENUM_VALUE;
                match value {
                    Value::String(value) => self.text(value)?,
                    other => self.text(&other.to_string())?,
                }
            }
        }
        let description = text("description");
        self.text(&format!("{name}:{}:{}", text("type"), sentence(&description)))
    }
}

/// A description as the formula counts it: without its final full stop.
fn sentence(text: &str) -> &str {
    text.strip_suffix('.').unwrap_or(text)
}

#[cfg(all(test, feature = "openai"))]
mod tests {
    use super::*;

    #[test]
    fn the_cookbooks_example_counts_as_published() {
        // The weather tool of the cookbook: the whole request there is 101 tokens for gpt-4o and gpt-4o-mini, of
        // which the two messages and the priming take 31.
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
            messages += 3 + counter.count(role).unwrap().n + counter.count(text).unwrap().n;
        }
        let tools = count(&counter, &[tool]).unwrap();
        assert_eq!((tools.n + messages, tools.certainty), (101, Certainty::Exact));
    }

    #[test]
    fn a_nested_schema_is_an_estimate() {
        let nested = r#"{"properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}"#;
        let tools = [Tool::new("f", "", nested)];
        let counter = TokenCounter::cl100k_base();
        assert_eq!(count(&counter, &tools).unwrap().certainty, Certainty::Estimate);
    }
}
