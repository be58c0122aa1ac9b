//! Requests of Cohere's Chat: version 1 (`message` with `chat_history`), and requests of version 2 with
//! documents or a plan. Compatible servers do not have these keys.

use super::{
    FormatReader,
    node::{Fault, Fields, Node, Reading},
    shape::{Shape, text},
    talk::{Answer, Call, Entry, Piece, Step, Talk},
};
use crate::format::FileFormat;
use context_window::{RagItem, Role, Tool};
use serde_json::{Map, Value, json};

pub(super) const READER: FormatReader = FormatReader::new(FileFormat::Cohere, fits, read).or_session();

fn fits(shape: &Shape) -> bool {
    let is_turn = |message: &Value| {
        let is_role =
            matches!(text(message, "role").to_uppercase().as_str(), "USER" | "CHATBOT" | "SYSTEM" | "TOOL");
        let says =
            message.get("message").is_some_and(Value::is_string) || message.get("tool_results").is_some();
        (is_role || message.get("user_name").is_some()) && says
    };
    let of_version_1 = ["preamble", "connectors", "tool_results", "prompt_truncation", "search_queries_only"];
    let is_request = shape.has("message") && of_version_1.iter().any(|key| shape.has(key));
    is_request
        || shape.container == "chat_history" && shape.messages.iter().any(is_turn)
        || has_documents(shape)
}

/// Checks for a request of version 2 with documents outside the messages.
fn has_documents(shape: &Shape) -> bool {
    let of_version_2 = ["citation_options", "safety_mode", "strict_tools"];
    // These keys belong to a session file of this library, whose documents are not those of a request.
    let of_session = ["rag", "passages", "pinned", "limits", "focus", "state", "previous", "system", "query"];
    shape.container == "messages"
        && shape.has("documents")
        && !of_session.iter().any(|key| shape.has(key))
        && (of_version_2.iter().any(|key| shape.has(key))
            || shape.any_has(&["tool_plan"])
            || shape.has("model"))
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let fields = node.object()?;
    let mut talk = Talk { model: fields.text("model")?, ..Talk::default() };
    talk.stated.max_completion_tokens = fields.get("max_tokens").and_then(|most| most.number());
    let documents = fields.get("documents").map(|all| all.list()).transpose()?.unwrap_or_default();
    talk.rag = reading.each(documents, |node, _| document(node))?;
    fields.ignore(&[
        "stream",
        "temperature",
        "p",
        "k",
        "seed",
        "stop_sequences",
        "frequency_penalty",
        "response_format",
    ]);
    fields.ignore(&[
        "presence_penalty",
        "citation_options",
        "safety_mode",
        "strict_tools",
        "tool_choice",
        "thinking",
    ]);
    if let Some(messages) = fields.get("messages") {
        let tools = fields.get("tools").map(|tools| tools.list()).transpose()?.unwrap_or_default();
        talk.tools = reading.each(tools, |node, _| function(node))?;
        // Messages of version 2 have the form of Chat, so they are kept as JSON.
        let wire = |node: Node<'_>| Step::Wire { path: node.path().to_owned(), json: node.json().to_owned() };
        talk.steps = messages.list()?.into_iter().map(wire).collect();
        fields.finish(reading)?;
        return Ok(talk);
    }
    version_1(&fields, &mut talk, reading)?;
    fields.finish(reading)?;
    Ok(talk)
}

/// Reads a request of version 1, or its response, whose history ends with the reply.
fn version_1(fields: &Fields<'_>, talk: &mut Talk, reading: &mut Reading) -> Result<(), Fault> {
    fields.ignore(&[
        "prompt_truncation",
        "citation_quality",
        "search_queries_only",
        "raw_prompting",
        "force_single_step",
    ]);
    fields.ignore(&["max_input_tokens", "return_prompt", "truncation", "response_id", "generation_id"]);
    fields.ignore(&[
        "finish_reason",
        "meta",
        "citations",
        "search_queries",
        "search_results",
        "is_search_required",
    ]);
    talk.system.extend(fields.text("preamble")?.filter(|text| !text.is_empty()));
    if fields.name("conversation_id")?.is_some() && !fields.has("chat_history") {
        reading.note("earlier messages are not in the request: Cohere keeps them (`conversation_id`)");
    }
    if fields.get("connectors").is_some_and(|connectors| connectors.json() != "[]") {
        reading.note("the results of the connectors are not in the request");
    }
    let tools = fields.get("tools").map(|tools| tools.list()).transpose()?.unwrap_or_default();
    talk.tools = reading.each(tools, tool)?;
    let mut open = Open::default();
    let history = fields.get("chat_history").map(|all| all.list()).transpose()?.unwrap_or_default();
    for entries in reading.each(history, |node, reading| turn(node, &mut open, reading))? {
        talk.steps.extend(entries.into_iter().map(Step::Entry));
    }
    if let Some(results) = fields.get("tool_results") {
        talk.steps.extend(answers(&results, &mut open, reading)?.into_iter().map(Step::Entry));
    }
    if let Some(message) = fields.get("message") {
        let text = message.text()?;
        if !text.is_empty() {
            talk.steps.push(Step::Entry(Entry::new(Role::User, vec![Piece::text(text)])));
        }
    }
    if let Some(reply) = fields.get("text") {
        let text = reply.text()?;
        let last = fields.get("chat_history").and_then(|all| all.list().ok()?.pop());
        // The history of a response includes the reply.
        let is_said = last.is_some_and(|last| last.json().contains(reply.json()));
        if !text.is_empty() && !is_said {
            let call = fields.get("tool_calls");
            let mut pieces = vec![Piece::text(text)];
            pieces.extend(calls(call.as_ref(), &mut open, reading)?);
            talk.steps.push(Step::Entry(Entry::new(Role::Assistant, pieces)));
        } else if is_said {
            fields.ignore(&["tool_calls"]);
        }
    }
    Ok(())
}

/// The open calls of version 1. They have no ids, so a result names its call by name and parameters.
#[derive(Default)]
struct Open {
    calls: Vec<(String, String, String)>,
    made: usize,
}

impl Open {
    fn add(&mut self, name: &str, parameters: &str) -> String {
        let id = format!("call_{}", self.made);
        self.made += 1;
        self.calls.push((id.clone(), name.to_owned(), parameters.to_owned()));
        id
    }

    fn answered(&mut self, name: &str, parameters: &str) -> Option<String> {
        // Of equal calls, the oldest is answered first.
        let at = self.calls.iter().position(|(_, own, with)| own == name && with == parameters)?;
        Some(self.calls.remove(at).0)
    }
}

fn turn(node: &Node<'_>, open: &mut Open, reading: &mut Reading) -> Result<Vec<Entry>, Fault> {
    let fields = node.object()?;
    let kind = fields.first(&["role", "user_name"]).ok_or_else(|| node.fault("has no `role`"))?;
    let role = match kind.text()?.to_uppercase().as_str() {
        "USER" => Role::User,
        "CHATBOT" => Role::Assistant,
        "SYSTEM" => Role::System,
        "TOOL" => Role::Tool,
        _ => return Err(kind.unknown("is not a role of Cohere; expected USER, CHATBOT, SYSTEM or TOOL")),
    };
    let mut pieces = Vec::new();
    let text = fields.first(&["message", "text"]).map(|text| text.text()).transpose()?.unwrap_or_default();
    if !text.is_empty() {
        pieces.push(Piece::text(text));
    }
    pieces.extend(calls(fields.get("tool_calls").as_ref(), open, reading)?);
    let results = fields.get("tool_results");
    fields.finish(reading)?;
    let mut entries =
        results.map(|results| answers(&results, open, reading)).transpose()?.unwrap_or_default();
    if !pieces.is_empty() || entries.is_empty() {
        entries.push(Entry::new(role, pieces));
    }
    Ok(entries)
}

fn calls(node: Option<&Node<'_>>, open: &mut Open, reading: &mut Reading) -> Result<Vec<Piece>, Fault> {
    let all = node.map(Node::list).transpose()?.unwrap_or_default();
    reading.each(all, |node, reading| {
        let (name, parameters) = called(node, reading)?;
        let id = Some(open.add(&name, &parameters));
        Ok(Piece::Call(Call { id, name, arguments: parameters, signature: None }))
    })
}

fn called(node: &Node<'_>, reading: &mut Reading) -> Result<(String, String), Fault> {
    let fields = node.object()?;
    fields.ignore(&["generation_id"]);
    let name = fields.need("name")?.text()?;
    let parameters = super::talk::arguments(fields.get("parameters"));
    fields.finish(reading)?;
    Ok((name, parameters))
}

/// Reads results. If a call occurs only in its result, it is added before the result.
fn answers(node: &Node<'_>, open: &mut Open, reading: &mut Reading) -> Result<Vec<Entry>, Fault> {
    let mut calls = Vec::new();
    let answers = reading.each(node.list()?, |node, reading| {
        let fields = node.object()?;
        let (name, parameters) = called(&fields.need("call")?, reading)?;
        let outputs = fields.need("outputs")?;
        fields.finish(reading)?;
        // Adding and answering the call at once gives it an id that no other result gets.
        let id = open.answered(&name, &parameters).unwrap_or_else(|| {
            open.add(&name, &parameters);
            let id = open.answered(&name, &parameters);
            let call = Call { id: id.clone(), name: name.clone(), arguments: parameters, signature: None };
            calls.push(Piece::Call(call));
            id.unwrap_or_default()
        });
        Ok(Piece::Answer(Answer::text(Some(id), Some(name), output(&outputs)?)))
    })?;
    let calls = (!calls.is_empty()).then(|| Entry::new(Role::Assistant, calls));
    Ok(calls.into_iter().chain([Entry::new(Role::Tool, answers)]).collect())
}

/// Returns the text of a result: the text of a single output with a single key, or the JSON of all outputs.
fn output(node: &Node<'_>) -> Result<String, Fault> {
    node.list()?;
    let all: Vec<Map<String, Value>> = serde_json::from_str(node.json()).unwrap_or_default();
    let only = |one: &Map<String, Value>| {
        one.values().next().filter(|_| one.len() == 1)?.as_str().map(str::to_owned)
    };
    let text = all.first().filter(|_| all.len() == 1).and_then(only);
    Ok(text.unwrap_or_else(|| node.compact()))
}

fn tool(node: &Node<'_>, reading: &mut Reading) -> Result<Tool, Fault> {
    let fields = node.object()?;
    let (mut properties, mut required) = (Map::new(), Vec::new());
    let parameters = fields.get("parameter_definitions").map(|all| all.object()).transpose()?;
    for (name, node) in parameters.iter().flat_map(Fields::entries) {
        let parameter = node.object()?;
        let kind = parameter.text("type")?.unwrap_or_default();
        let kind = match kind.to_lowercase().as_str() {
            "int" | "integer" => "integer",
            "float" | "number" => "number",
            "bool" | "boolean" => "boolean",
            kind if kind.starts_with("list") => "array",
            kind if kind.starts_with("dict") => "object",
            _ => "string",
        };
        let mut schema = json!({ "type": kind });
        if let Some(description) = parameter.text("description")? {
            schema["description"] = description.into();
        }
        properties.insert(name.to_owned(), schema);
        if parameter.is_true("required") {
            required.push(name.to_owned());
        }
    }
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    let description = fields.text("description")?.unwrap_or_default();
    let tool = Tool::new(fields.need("name")?.text()?, description, schema.to_string());
    fields.finish(reading)?;
    Ok(tool)
}

/// Reads a tool of version 2, which has the form of `OpenAI`.
fn function(node: &Node<'_>) -> Result<Tool, Fault> {
    let function = node.object()?.need("function")?.object()?;
    let schema = function.get("parameters").map(|schema| schema.compact()).unwrap_or_default();
    Ok(Tool::new(function.need("name")?.text()?, function.text("description")?.unwrap_or_default(), schema))
}

/// Reads a document: its keys with their texts, as Cohere shows them to the model.
fn document(node: &Node<'_>) -> Result<RagItem, Fault> {
    let id =
        || format!("document{}", node.path().rsplit('[').next().unwrap_or_default().trim_end_matches(']'));
    if node.is_text() {
        return Ok(RagItem::new(id(), 1.0, node.text()?));
    }
    let fields = node.object()?;
    let own = fields.name("id")?;
    let texts = match fields.get("data") {
        Some(data) if data.is_text() => vec![data.text()?],
        Some(data) => lines(&data.object()?),
        None => lines(&fields),
    };
    // A request has no scores, so all documents count the same.
    Ok(RagItem::new(own.unwrap_or_else(id), 1.0, texts.join("\n")))
}

fn lines(fields: &Fields<'_>) -> Vec<String> {
    let shown = fields.entries().filter(|(name, _)| *name != "id" && *name != "_excludes");
    shown.map(|(name, value)| format!("{name}: {}", value.text_or_json())).collect()
}
