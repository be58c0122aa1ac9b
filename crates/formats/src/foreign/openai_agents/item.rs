//! Checks of single items, and conversion of `JavaScript` keys to those of `OpenAI` Responses.

use super::{Fault, Node, Reading};
use crate::foreign::talk::data_url;
use context_window::text::object::Object;
use serde_json::{Value, json};

/// Checks an item. Returns its JSON as an item of Responses, converted from `JavaScript` if necessary.
pub(super) fn item(node: &Node<'_>, reading: &mut Reading) -> Result<String, Fault> {
    let fields = node.object()?;
    fields.ignore(&[
        "providerData",
        "provider_data",
        "status",
        "id",
        "type",
        "phase",
        "namespace",
        "created_by",
    ]);
    let kind = fields.peek("type").map(Node::text).transpose()?.unwrap_or_else(|| "message".into());
    let mut own = node.as_object().ok_or_else(|| node.expected("an item"))?;
    own.remove("providerData");
    let beside = fields.get("providerData").and_then(|data| data.as_object());
    match &*kind {
        "message" => {
            fields.ignore(&["role"]);
            if let Some(content) = fields.get("content").filter(Node::is_list) {
                let parts = reading.each(content.list()?, part)?;
                own.set("content", format!("[{}]", parts.join(",")));
            }
        }
        "reasoning" => {
            for key in ["summary", "content", "rawContent"] {
                let parts = fields.get(key).map(|parts| parts.list()).transpose()?.unwrap_or_default();
                for part in parts {
                    let part = part.object()?;
                    part.need("text")?.text()?;
                    part.ignore(&["type", "providerData"]);
                    part.finish(reading)?;
                }
            }
            fields.ignore(&["encrypted_content"]);
            // In JavaScript, the summary is under `content`.
            if !fields.has("summary") {
                thought_of_js(&mut own, beside.as_ref());
            }
        }
        "function_call" | "custom_tool_call" => {
            fields.need("name")?;
            fields.ignore(&["call_id", "callId", "arguments", "input", "caller"]);
        }
        "function_call_output" | "custom_tool_call_output" => {
            fields.ignore(&["call_id", "output", "name", "caller"]);
        }
        "function_call_result" => {
            fields.ignore(&["callId", "name", "namespace"]);
            let output = fields.need("output")?;
            own.set_text("type", "function_call_output");
            own.remove("name");
            own.set("output", output_of_js(&output, reading)?);
        }
        // The JavaScript item is generic; `providerData` has the type and the fields of the original.
        "hosted_tool_call" => {
            let beside = beside.filter(|data| data.text("type").is_some());
            let mut item = beside.ok_or_else(|| {
                node.fault("is a hosted tool's call without the `providerData` of its type")
            })?;
            for key in ["id", "status"] {
                if let Some(value) = fields.peek(key).filter(|_| item.get(key).is_none()) {
                    item.set(key, value.json().to_owned());
                }
            }
            return Ok(item.to_json());
        }
        _ => fields.ignore_all(),
    }
    fields.finish(reading)?;
    if let Some(id) = own.text("callId") {
        own.remove("callId");
        own.set_text("call_id", &id);
    }
    Ok(own.to_json())
}

/// Checks a part of a message. Returns its JSON with the keys of Responses for images and files.
fn part(node: &Node<'_>, reading: &mut Reading) -> Result<String, Fault> {
    let fields = node.object()?;
    let mut own = node.as_object().unwrap_or_default();
    own.remove("providerData");
    let known = [
        "type",
        "text",
        "refusal",
        "image_url",
        "file_id",
        "file_data",
        "file_url",
        "filename",
        "detail",
        "annotations",
        "logprobs",
        "input_audio",
        "providerData",
    ];
    fields.ignore(&known);
    let kind = own.text("type").unwrap_or_default();
    if matches!(&*kind, "input_text" | "output_text" | "text") {
        fields.need("text")?.text()?;
    }
    for (key, other, url) in [("image", "file_id", "image_url"), ("file", "file_id", "file_url")] {
        let Some(value) = fields.get(key) else { continue };
        own.remove(key);
        if value.is_text() {
            let text = value.text()?;
            let is_data = key == "file" && text.starts_with("data:");
            own.set_text(if is_data { "file_data" } else { url }, &text);
        } else {
            let inner = value.object()?;
            let id = inner.first(&["id", "fileId"]);
            let address = inner.get("url");
            inner.finish(reading)?;
            match (id, address) {
                (Some(id), _) => own.set_text(other, &id.text()?),
                (None, Some(address)) => own.set_text(url, &address.text()?),
                (None, None) => return Err(value.fault("has neither `id` nor `url`")),
            }
        }
    }
    fields.finish(reading)?;
    Ok(own.to_json())
}

/// Moves the texts of a `JavaScript` reasoning item to the keys of Responses.
fn thought_of_js(own: &mut Object, beside: Option<&Object>) {
    let texts = |json: Option<&str>, kind: &str| {
        let parts: Vec<Value> = json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
        let part = |part: Value| json!({ "type": kind, "text": part.get("text") });
        Value::from(parts.into_iter().map(part).collect::<Vec<_>>()).to_string()
    };
    let (summary, raw) =
        (texts(own.get("content"), "summary_text"), texts(own.get("rawContent"), "reasoning_text"));
    own.remove("content");
    own.set("summary", summary);
    if own.remove("rawContent") {
        own.set("content", raw);
    }
    if let Some(encrypted) = beside.and_then(|data| data.text("encrypted_content")) {
        own.set_text("encrypted_content", &encrypted);
    }
}

/// Returns the output of a tool in the form of Responses: a string, or a list of parts.
fn output_of_js(output: &Node<'_>, reading: &mut Reading) -> Result<String, Fault> {
    if output.is_text() {
        return Ok(output.json().to_owned());
    }
    if output.is_list() {
        return Ok(format!("[{}]", reading.each(output.list()?, part)?.join(",")));
    }
    let fields = output.object()?;
    let kind = fields.need("type")?;
    let json = match &*kind.text()? {
        "text" => fields.need("text")?.json().to_owned(),
        "image" => {
            fields.ignore(&["detail"]);
            let (data, image) = (fields.first(&["data", "image_url"]), fields.first(&["image", "imageUrl"]));
            let media_type = fields.text("mediaType")?.unwrap_or_else(|| "image/png".into());
            let url = match (data, image) {
                (_, Some(image)) => image.text()?,
                (Some(data), None) => data_url(&media_type, &data.text()?),
                (None, None) => return Err(output.fault("has no image")),
            };
            json!([{ "type": "input_image", "image_url": url }]).to_string()
        }
        _ => return Err(kind.unknown("is not a known output of a tool")),
    };
    fields.ignore(&["providerData"]);
    fields.finish(reading)?;
    Ok(json)
}
