//! Compares the ledger with the body: the sent JSON is counted again with the figures of config/models.toml.

use super::body::Goal;
use crate::rules::Form;
use context_window::{ContextPlan, Message, Part, Role, TokenCounter};
use serde_json::Value;

/// Token figures of a wire format, from its documentation or from this project's.
struct Figures {
    message: u64,
    role: bool,
    part: u64,
    name: u64,
    call: u64,
    priming: u64,
    /// Tokens of an image of unknown size.
    image: u64,
    /// Tokens of a document of unknown size.
    file: u64,
    /// Tokens of a second of sound.
    second: u64,
}

/// Returns the token figures of the providers' documentation by model: image, document of ten pages, second
/// of sound.
fn media(model: &str) -> (u64, u64, u64) {
    match model {
        "gpt-4o" => (85 + 8 * 170, 10 * (1_000 + 85 + 4 * 170), 10),
        "gpt-5" => (70 + 8 * 140, 10 * (1_000 + 70 + 4 * 140), 10),
        "gpt-5.6" => (30_000 * 12 / 10, 10 * (1_000 + 1_613), 10),
        "claude-sonnet-4-5" => (1_600, 31_000, 0),
        "claude-opus-5" | "claude-sonnet-5" => (4_784, 31_000, 0),
        "gemini-2.5-pro" => (9 * 258, 2_580, 32),
        "gemini-3-pro-preview" => (1_120, 5_600, 32),
        _ => (85 + 8 * 170, 10 * (1_000 + 85 + 4 * 170), 32),
    }
}

pub fn adds_up(goal: &Goal, plan: &ContextPlan, body: &Value, counter: TokenCounter) -> Result<(), String> {
    let (image, file, second) = media(&goal.model.name);
    let figures = match goal.rules.form {
        Form::OpenAiChat | Form::ChatTemplate => {
            Figures { message: 3, role: true, part: 0, name: 1, call: 3, priming: 3, image, file, second }
        }
        Form::OpenAiResponses => {
            Figures { message: 3, role: true, part: 0, name: 0, call: 3, priming: 3, image, file, second }
        }
        Form::Anthropic => {
            Figures { message: 0, role: false, part: 2, name: 0, call: 2, priming: 3, image, file, second }
        }
        Form::Gemini => {
            Figures { message: 0, role: false, part: 0, name: 0, call: 3, priming: 1, image, file, second }
        }
    };
    let sum = Sum { figures, counter };
    let sent = match goal.rules.form {
        Form::OpenAiChat | Form::ChatTemplate => sum.chat(body),
        Form::OpenAiResponses => sum.responses(body),
        Form::Anthropic => sum.anthropic(body),
        Form::Gemini => sum.gemini(body),
    };
    let tools = sum.tools(goal.rules.form, body) as i64;
    let said: i64 =
        plan.overhead.iter().filter(|line| line.what.name() == "tools").map(|line| line.tokens).sum();
    // A template also gets data that no request body has a field for.
    if said != tools && goal.rules.form != Form::ChatTemplate {
        return Err(format!("N3: the body's tools count {tools}, the plan says {said}\n{body:#}"));
    }
    // If arguments are sent as JSON, reading the body back loses the white space between values.
    let as_json = matches!(goal.rules.form, Form::Anthropic | Form::Gemini);
    let calls = plan.messages().iter().flat_map(|message| message.tool_calls()).filter(|_| as_json);
    let sent = calls.fold(sent as i64, |sent, call| {
        let compact: Value = serde_json::from_str(&call.arguments).unwrap();
        sent + sum.counter.count(&call.arguments).unwrap().tokens as i64 - sum.json(&compact) as i64
    });
    let as_objects = matches!(goal.rules.form, Form::Gemini);
    let results = plan.messages().iter().filter(|message| as_objects && message.role() == Role::Tool);
    let texts = results.flat_map(|result| [Some(result.text()), only_part(result)].into_iter().flatten());
    let sent = texts.fold(sent, |sent, text| match serde_json::from_str::<Value>(text) {
        Ok(object) if object.is_object() => {
            sent + sum.counter.count(text).unwrap().tokens as i64 - sum.response(&object) as i64
        }
        _ => sent,
    });
    // Each hosted item is a separate item in the body, and its message has one frame.
    let hosted = plan.messages().iter().filter(|_| goal.rules.form == Form::OpenAiResponses);
    let sent = hosted.fold(sent, |sent, message| {
        let items = message.parts().iter().filter(|part| is_hosted_item(part)).count() as i64;
        sent - (items - 1).max(0) * sum.message("assistant") as i64
    });
    let recounted = sent + sum.figures.priming as i64 + said;
    if recounted == plan.estimated_tokens_total.tokens as i64 {
        return Ok(());
    }
    let lines: Vec<String> =
        plan.overhead.iter().map(|line| format!("{} {}", line.what, line.tokens)).collect();
    let rows: Vec<String> =
        plan.included.iter().map(|row| format!("{} {}", row.id, row.token_estimate.tokens)).collect();
    Err(format!(
        "N3: the body counts {recounted}, the plan says {}\n{lines:?}\n{rows:?}\n{body:#}",
        plan.estimated_tokens_total.tokens
    ))
}

fn is_hosted_item(part: &Part) -> bool {
    matches!(part, Part::Opaque { json, .. } if json.contains("web_search_call"))
}

fn only_part(message: &Message) -> Option<&str> {
    message.parts().iter().find_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    })
}

struct Sum {
    figures: Figures,
    counter: TokenCounter,
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Returns a part without its breakpoint, which is no text of the prompt.
fn without_mark(part: &Value) -> Value {
    let mut part = part.clone();
    let fields = part.as_object_mut().unwrap();
    for mark in ["cache_control", "prompt_cache_breakpoint"] {
        fields.remove(mark);
    }
    part
}

impl Sum {
    /// Counts the tools of a body by the cookbook's formula (rule N3), for the field names of each wire
    /// format.
    fn tools(&self, form: Form, body: &Value) -> u64 {
        let lists = list(body, "tools").iter();
        let each: Vec<&Value> = lists
            .flat_map(|tool| match tool.get("functionDeclarations").and_then(Value::as_array) {
                Some(declared) => declared.iter().collect(),
                None => vec![tool],
            })
            .collect();
        let around = 12 + if form == Form::Anthropic { 346 } else { 0 };
        if each.is_empty() { 0 } else { around + each.into_iter().map(|tool| self.tool(tool)).sum::<u64>() }
    }

    fn tool(&self, tool: &Value) -> u64 {
        let function = tool.get("function").unwrap_or(tool);
        let keys = ["parameters", "input_schema", "parametersJsonSchema"];
        let schema = keys.iter().find_map(|key| function.get(*key));
        let own = function.get("description").is_some() || schema.is_some();
        if !own {
            return self.json(tool);
        }
        let said = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
        let sentence = |text: String| text.strip_suffix('.').map_or(text.clone(), str::to_owned);
        let count = |text: String| self.counter.count(&text).unwrap().tokens;
        let mut sum =
            7 + count(format!("{}:{}", said(function, "name"), sentence(said(function, "description"))));
        // Other fields of a definition count as JSON, except those that no model reads.
        let known = [
            &keys[..],
            &["type", "name", "description", "function"],
            &["strict", "defer_loading", "allowed_callers", "eager_input_streaming", "behavior"],
        ];
        let known = known.concat();
        let own = tool.as_object().into_iter().chain(tool.get("function").and_then(Value::as_object));
        let further = own.flatten().filter(|(key, value)| !known.contains(&key.as_str()) && !value.is_null());
        sum += further.map(|(key, value)| count(format!("{key}:{value}"))).sum::<u64>();
        let Some(schema) = schema.and_then(Value::as_object) else { return sum };
        let free = ["type", "properties", "required", "additionalProperties", "$schema"];
        let others = schema.iter().filter(|(key, _)| !free.contains(&key.as_str()));
        sum += others.map(|(key, value)| count(format!("{key}:{value}"))).sum::<u64>();
        let properties = schema.get("properties").and_then(Value::as_object);
        let Some(properties) = properties.filter(|properties| !properties.is_empty()) else { return sum };
        sum += 3;
        for (name, property) in properties {
            let kind = said(property, "type");
            sum += 3 + count(format!("{name}:{kind}:{}", sentence(said(property, "description"))));
            for (key, value) in property.as_object().unwrap() {
                sum += match (key.as_str(), value) {
                    ("type" | "description", Value::String(_)) => 0,
                    ("enum", Value::Array(values)) => {
                        let texts = values.iter().map(|value| 3 + count(value.as_str().unwrap().into()));
                        texts.sum::<u64>().wrapping_sub(3)
                    }
                    _ => count(format!("{key}:{value}")),
                };
            }
        }
        sum
    }

    fn text(&self, text: &Value) -> u64 {
        self.counter.count(text.as_str().unwrap_or_default()).unwrap().tokens
    }

    fn json(&self, value: &Value) -> u64 {
        self.counter.count(&value.to_string()).unwrap().tokens
    }

    fn message(&self, role: &str) -> u64 {
        let role = if self.figures.role { self.counter.count(role).unwrap().tokens } else { 0 };
        self.figures.message + role
    }

    /// Counts a plain text or a list of parts.
    fn content(&self, content: &Value) -> u64 {
        match content {
            Value::Array(parts) => parts.iter().map(|part| self.figures.part + self.part(part)).sum(),
            Value::String(text) if text.is_empty() => 0,
            text => self.figures.part + self.text(text),
        }
    }

    fn part(&self, part: &Value) -> u64 {
        match part["type"].as_str() {
            Some("text" | "input_text" | "summary_text") => self.text(&part["text"]),
            Some("image_url" | "input_image" | "image") => self.figures.image,
            _ if part.get("text").is_some() => self.text(&part["text"]),
            _ if part.get("inlineData").is_some() || part.get("fileData").is_some() => self.figures.image,
            // Three bytes without a header last less than a second.
            Some("input_audio") => self.figures.second,
            Some("input_file") => self.figures.file,
            _ => self.json(&without_mark(part)),
        }
    }

    fn call(&self, name: &Value, arguments: u64) -> u64 {
        self.figures.call + self.text(name) + arguments
    }

    fn chat(&self, body: &Value) -> u64 {
        let message = |message: &Value| {
            let calls = list(message, "tool_calls").iter().map(|call| &call["function"]);
            let calls: u64 = calls.map(|call| self.call(&call["name"], self.text(&call["arguments"]))).sum();
            let name = message.get("name").map_or(0, |name| self.figures.name + self.text(name));
            self.message(message["role"].as_str().unwrap())
                + self.content(&message["content"])
                + self.text(&message["reasoning_content"])
                + name
                + calls
        };
        list(body, "messages").iter().map(message).sum()
    }

    fn responses(&self, body: &Value) -> u64 {
        let item = |item: &Value| match item["type"].as_str().unwrap() {
            "message" => self.message(item["role"].as_str().unwrap()) + self.content(&item["content"]),
            "function_call_output" => self.message("tool") + self.content(&item["output"]),
            "function_call" => self.call(&item["name"], self.text(&item["arguments"])),
            "web_search_call" => self.message("assistant") + self.json(item),
            _ => {
                let summary = list(item, "summary");
                let shown = summary.iter().map(|part| part["text"].as_str().unwrap().len() as u64).sum();
                let texts: u64 = summary.iter().map(|text| self.part(text)).sum();
                texts + self.sealed(&item["encrypted_content"], shown)
            }
        };
        list(body, "input").iter().map(item).sum()
    }

    /// Counts a result object. One with only a text counts as that text.
    fn response(&self, response: &Value) -> u64 {
        let only = response.as_object().filter(|object| object.len() == 1);
        let text = only.and_then(|object| object.get("output").or(object.get("error")));
        match text.filter(|text| text.is_string()) {
            Some(text) => self.text(text),
            None => self.json(response),
        }
    }

    /// Returns a quarter of the signature's length beyond the shown text.
    fn sealed(&self, seal: &Value, shown: u64) -> u64 {
        (seal.as_str().unwrap_or_default().len() as u64).saturating_sub(shown).div_ceil(4)
    }

    fn anthropic(&self, body: &Value) -> u64 {
        let block = |block: &Value| match block["type"].as_str().unwrap() {
            "tool_use" => self.call(&block["name"], self.json(&block["input"])),
            "tool_result" => self.content(&block["content"]),
            "thinking" if block["thinking"] == "" => self.sealed(&block["signature"], 0),
            "thinking" => self.text(&block["thinking"]),
            "redacted_thinking" => self.sealed(&block["data"], 0),
            _ => self.figures.part + self.part(block),
        };
        let blocks = |message: &Value| list(message, "content").iter().map(block).sum::<u64>();
        let messages: u64 = list(body, "messages").iter().map(blocks).sum();
        list(body, "system").iter().map(block).sum::<u64>() + messages
    }

    fn gemini(&self, body: &Value) -> u64 {
        let part = |part: &Value| {
            if let Some(call) = part.get("functionCall") {
                self.call(&call["name"], self.json(&call["args"]))
            } else if let Some(answer) = part.get("functionResponse") {
                self.response(&answer["response"])
            } else {
                self.part(part)
            }
        };
        let parts = |content: &Value| list(content, "parts").iter().map(part).sum::<u64>();
        let contents: u64 = list(body, "contents").iter().map(parts).sum();
        parts(&body["systemInstruction"]) + contents
    }
}
