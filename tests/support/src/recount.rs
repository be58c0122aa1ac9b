//! The cookbook's formula applied to the JSON of a rendered body, which computes the same number in a second
//! way.

use context_window::{ContextPlan, TokenCounter, render};
use serde_json::Value;

/// Returns the tokens of the rendered messages by the published formula: 3 per message, each of its texts, 1
/// per name, 3 for priming. Calls count their name, arguments and 3, and images of unknown size the stated
/// maximum. Tools are not included.
pub fn messages(plan: &ContextPlan, counter: &TokenCounter) -> u64 {
    let body = serde_json::to_value(render::openai(plan)).unwrap();
    let count = |text: &Value| counter.count(text.as_str().unwrap()).unwrap().tokens;
    let mut sum = 3;
    for message in body["messages"].as_array().unwrap() {
        sum += 3 + count(&message["role"]);
        match &message["content"] {
            Value::String(_) => sum += count(&message["content"]),
            Value::Array(parts) => {
                for part in parts {
                    sum += match part["type"].as_str() {
                        Some("text") => count(&part["text"]),
                        Some("image_url") if part["image_url"]["detail"] == "low" => 85,
                        Some("image_url") => 85 + 8 * 170,
                        _ => counter.count(&part.to_string()).unwrap().tokens,
                    };
                }
            }
            _ => {}
        }
        if message.get("name").is_some() {
            sum += 1 + count(&message["name"]);
        }
        if message.get("reasoning_content").is_some() {
            sum += count(&message["reasoning_content"]);
        }
        for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            sum += 3 + count(&call["function"]["name"]) + count(&call["function"]["arguments"]);
        }
    }
    sum
}
