//! A prompt as rendered by a model's own chat template. The result must equal the reference (Python's Jinja
//! in the setup of `transformers`). `docs/reference/counting.md` lists the settings and limits.

use crate::{
    error::{Error, Repr},
    message::{Message, Part, Prompt, Role, Tool, WireFormat},
    provider::control::ControlTokens,
    provider::{
        conform::{self, TargetProfile},
        model::ChatTemplate,
        wording,
    },
    text::size,
};
use minijinja::{
    Environment, ErrorKind, Value,
    syntax::SyntaxConfig,
    value::{Kwargs, Serde},
};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use std::{borrow::Cow, collections::BTreeMap, io};

mod growth;
mod source;

/// The maximum number of engine steps per rendering: far more than any prompt needs, but finite.
const FUEL: u64 = 20_000_000;

/// A compiled template.
#[derive(Debug)]
pub(crate) struct Renderer {
    environment: Environment<'static>,
    origin: String,
    variables: BTreeMap<String, serde_json::Value>,
    control: ControlTokens,
}

/// The features in which templates differ. All combinations are tried. They differ in the content of a
/// message with only calls, the arguments of calls (an object or text), the system role, and the support of
/// calls and results.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is tried with each")]
struct Shape {
    arguments_as_text: bool,
    empty_content: bool,
    system_in_user: bool,
    calls_as_text: bool,
}

impl Shape {
    fn all() -> impl Iterator<Item = Self> {
        // The bits count upwards, so the shape that changes the prompt least comes first.
        (0..16u8).map(|bits| Self {
            empty_content: bits & 1 > 0,
            arguments_as_text: bits & 2 > 0,
            system_in_user: bits & 4 > 0,
            calls_as_text: bits & 8 > 0,
        })
    }
}

impl Renderer {
    /// Compiles a template. Content cannot spell out its markers or the `control` tokens of a tokenizer.
    pub(crate) fn new(template: &ChatTemplate, control: &[String]) -> Result<Self, Error> {
        let origin = template.origin().to_owned();
        let fault = |error: minijinja::Error| refused(&origin, &error);
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(fault)?);
        growth::watch(&mut environment);
        environment.set_fuel(Some(FUEL));
        environment.add_filter("tojson", to_json);
        let raise =
            |message: String| Err::<Value, _>(minijinja::Error::new(ErrorKind::InvalidOperation, message));
        environment.add_function("raise_exception", raise);
        // Without the function, a template that checks for it uses a fixed date of its own.
        if !template.source().contains("strftime_now is defined") {
            let day = template.clone();
            environment.add_function("strftime_now", move |format: String| day.day(&format));
        }
        let text = without_marks(template.source());
        environment.add_template_owned("chat", source::counted(&text)).map_err(fault)?;
        let written = source::written_before_values(&text);
        let control = ControlTokens::new(control.iter().cloned().chain(template.markers()))
            .after(written.iter().map(String::as_str));
        Ok(Self { environment, origin, variables: template.variables().clone(), control })
    }

    /// Breaks every control token and marker in the texts of a prompt, including those that adjacent texts
    /// would form together. Otherwise the model would obey them.
    pub(crate) fn neutralise(&self, prompt: &mut Prompt) {
        let text = |text: &str| self.control.guarded(text).into_owned();
        let json = |json: &str| self.guarded_json(json).into_owned();
        for message in &mut prompt.messages {
            if self.names_control(message) {
                *message = message.with_texts_changed(&text, &json);
            }
        }
        for tool in &mut prompt.tools {
            tool.name = text(&tool.name);
            tool.description = text(&tool.description);
            tool.schema = json(&tool.schema);
        }
    }

    /// Returns true if a text of a message contains a control token, or a part of one that other texts could
    /// complete.
    fn names_control(&self, message: &Message) -> bool {
        let ids = message.tool_calls().iter().map(|call| call.id.as_str()).chain(message.answers());
        let json = message.tool_calls().iter().map(|call| call.arguments.as_str());
        let opaque = message.parts().iter().filter_map(|part| match part {
            Part::Opaque { json, .. } => Some(json.as_str()),
            Part::Text(_) | Part::Image { .. } => None,
        });
        message.texts().chain(ids).any(|text| matches!(self.control.guarded(text), Cow::Owned(_)))
            || json.chain(opaque).any(|json| matches!(self.guarded_json(json), Cow::Owned(_)))
    }

    /// Returns JSON with guarded strings. A template reads each string separately and without its escapes, so
    /// each is guarded in that form.
    fn guarded_json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        let (mut out, mut rest, mut changed) = (String::new(), json, false);
        while let Some(open) = rest.find('"') {
            // An unterminated string ends the search; the rest is guarded as plain text.
            let Some(length) = quoted(&rest[open..]) else { break };
            let literal = &rest[open..open + length];
            out.push_str(&rest[..open]);
            let text = serde_json::from_str::<String>(literal).unwrap_or_default();
            match self.control.guarded(&text) {
                Cow::Owned(text) => {
                    out.push_str(&serde_json::Value::from(text).to_string());
                    changed = true;
                }
                Cow::Borrowed(_) => out.push_str(literal),
            }
            rest = &rest[open + length..];
        }
        if !changed {
            return self.control.guarded(json);
        }
        out.push_str(rest);
        // The whole text is guarded as well, because adjacent strings may form a token.
        self.control.guarded(&out).into_owned().into()
    }

    /// Renders a prompt to text. With `reply`, the text ends with the beginning of the reply.
    pub(crate) fn render(&self, messages: &[Message], tools: &[Tool], reply: bool) -> Result<String, Error> {
        let mut first = None;
        for shape in Shape::all() {
            match self.render_as(messages, tools, reply, shape) {
                Ok(text) => return Ok(text),
                // A template that does not end for one shape does not end for another, and each attempt is
                // expensive.
                Err(error) if error.kind() == ErrorKind::OutOfFuel => {
                    return Err(refused(&self.origin, &error));
                }
                Err(error) => drop(first.get_or_insert(error)),
            }
        }
        // The first error is reported: it belongs to the shape that changes the prompt least.
        let error =
            first.unwrap_or_else(|| minijinja::Error::new(ErrorKind::InvalidOperation, "no way to render"));
        Err(refused(&self.origin, &error))
    }

    fn render_as(
        &self,
        messages: &[Message],
        tools: &[Tool],
        reply: bool,
        shape: Shape,
    ) -> Result<String, minijinja::Error> {
        let mut context: BTreeMap<&str, Value> = BTreeMap::new();
        for (name, value) in &self.variables {
            context.insert(name, Value::from(Serde(value)));
        }
        let bytes = messages.iter().flat_map(Message::texts).map(str::len);
        let declared = tools.iter().map(|tool| tool.name.len() + tool.description.len() + tool.schema.len());
        let bytes: usize = bytes.chain(declared).sum();
        let messages: Vec<Value> =
            in_shape(messages, shape).iter().map(|message| wire(message, shape)).collect();
        context.insert("messages", Value::from(messages));
        context.insert("add_generation_prompt", Value::from(reply));
        if !tools.is_empty() {
            context.insert("tools", tools.iter().map(tool).collect());
        }
        let template = self.environment.get_template("chat")?;
        growth::bounded(bytes as u64, |out| {
            template.render_captured_to(Value::from_pairs(context), out).map(|_| ())
        })
    }
}

/// Returns the length in bytes of the JSON string at the start of `json`, with its quotes, or `None` if it
/// does not end.
fn quoted(json: &str) -> Option<usize> {
    let mut escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    Some(end? + 2)
}

fn refused(origin: &str, error: &minijinja::Error) -> Error {
    let line = error.line().map(|line| format!("line {line}: ")).unwrap_or_default();
    let detail = match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, None) => format!("does not end within {FUEL} steps"),
        (_, Some(detail)) => detail.to_owned(),
        (kind, None) => kind.to_string(),
    };
    Error::new(Repr::Template { origin: origin.into(), detail: format!("{line}{detail}") })
}

/// Removes the tags that mark the model's text for training. `transformers` knows them, Jinja does not.
fn without_marks(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let Some(length) = rest[start..].find("%}") else { break };
        let (before, tag) = (&rest[..start], &rest[start..start + length + 2]);
        let word = tag.trim_matches(|c: char| matches!(c, '{' | '}' | '%' | '-' | '+') || c.is_whitespace());
        text.push_str(before);
        match word {
            "generation" => text.push_str(&tag.replace("generation", "if true")),
            "endgeneration" => text.push_str(&tag.replace("endgeneration", "endif")),
            _ => text.push_str(tag),
        }
        rest = &rest[start + length + 2..];
    }
    text.push_str(rest);
    text
}

/// Returns the messages in the form that a template of this shape expects.
fn in_shape(messages: &[Message], shape: Shape) -> Cow<'_, [Message]> {
    let mut messages = Cow::Borrowed(messages);
    if shape.calls_as_text {
        let texts: Vec<Message> = messages.iter().map(as_text).collect();
        messages = TargetProfile::unknown(WireFormat::ChatTemplate).sequence(texts).messages.into();
    }
    if shape.system_in_user
        && let [first, second, rest @ ..] = &*messages
        && first.role().instructs()
        && second.role() == Role::User
    {
        let mut all = vec![first.in_role(Role::User).joined_with(second)];
        all.extend_from_slice(rest);
        messages = all.into();
    }
    messages
}

/// Returns calls and results as text, for templates without either.
fn as_text(message: &Message) -> Message {
    if let Some(id) = message.answers() {
        return Message::user(wording::result_as_text(id, message.plain_texts()));
    }
    if message.tool_calls().is_empty() {
        return message.clone();
    }
    let calls = message.tool_calls().iter().map(wording::call_as_text);
    let texts: Vec<String> = message.plain_texts().map(str::to_owned).chain(calls).collect();
    Message::assistant(texts.join("\n"))
}

/// Returns the role's name. Templates know only one name for the system role.
fn role(message: &Message) -> &'static str {
    match message.role() {
        Role::Developer => Role::System.name(),
        role => role.name(),
    }
}

/// Returns the content as a string, or as a list of parts if some part is not text.
fn content(message: &Message, shape: Shape) -> Value {
    if message.parts().iter().any(|part| !matches!(part, Part::Text(_))) {
        return parts(message);
    }
    let texts: Vec<&str> = message.plain_texts().collect();
    if texts.is_empty() && !message.tool_calls().is_empty() && !shape.empty_content {
        return Value::from(());
    }
    Value::from(texts.join("\n\n"))
}

fn parts(message: &Message) -> Value {
    let part = |part: &Part| match part {
        Part::Text(text) => object([("type", Value::from("text")), ("text", Value::from(text.as_str()))]),
        Part::Image { .. } => object([("type", Value::from("image"))]),
        Part::Opaque { json, .. } => from_json(json),
    };
    message.as_parts().iter().map(part).collect()
}

fn wire(message: &Message, shape: Shape) -> Value {
    let mut fields = vec![("role", Value::from(role(message))), ("content", content(message, shape))];
    let thoughts: Vec<&str> = message.reasoning().iter().map(|reasoning| reasoning.text.as_str()).collect();
    if !thoughts.is_empty() {
        fields.push(("reasoning_content", Value::from(thoughts.join("\n"))));
    }
    if let Some(name) = message.name() {
        fields.push(("name", Value::from(name)));
    }
    let calls = message.tool_calls().iter().map(|call| {
        let arguments = match from_json(&call.arguments) {
            object if object.kind() == minijinja::value::ValueKind::Map && !shape.arguments_as_text => object,
            _ => Value::from(call.arguments.as_str()),
        };
        let function = object([("name", Value::from(call.name.as_str())), ("arguments", arguments)]);
        object([
            ("type", Value::from("function")),
            ("id", Value::from(call.id.as_str())),
            ("function", function),
        ])
    });
    let calls: Vec<Value> = calls.collect();
    if !calls.is_empty() {
        fields.push(("tool_calls", Value::from(calls)));
    }
    if let Some(id) = message.answers() {
        fields.push(("tool_call_id", Value::from(id)));
    }
    object(fields)
}

fn tool(tool: &Tool) -> Value {
    let mut fields = vec![
        ("name", Value::from(tool.name.as_str())),
        ("description", Value::from(tool.description.as_str())),
    ];
    if !tool.schema.trim().is_empty() {
        fields.push(("parameters", from_json(&tool.schema)));
    }
    object([("type", Value::from("function")), ("function", object(fields))])
}

fn object<'k>(fields: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
    Value::from_pairs(fields)
}

/// Parses JSON with its keys in order. Invalid JSON stays text.
fn from_json(text: &str) -> Value {
    size::tree(text).unwrap_or_else(|| Value::from(text))
}

/// Formats a value like Python's `json.dumps(ensure_ascii=False)`: without HTML escapes, and with a space
/// after comma and colon.
#[expect(clippy::needless_pass_by_value, reason = "the shape of a filter")]
fn to_json(value: &Value, options: Kwargs) -> Result<Value, minijinja::Error> {
    let indent: Option<usize> = options.get("indent")?;
    // The other options of Python make no difference that templates rely on.
    let _: Option<Value> = options.get("ensure_ascii")?;
    let _: Option<Value> = options.get("separators")?;
    let _: Option<Value> = options.get("sort_keys")?;
    options.assert_all_used()?;
    let text = growth::write_json(|out| {
        let done = match indent {
            Some(indent) => {
                let indent = " ".repeat(indent.min(64));
                let formatter = PrettyFormatter::with_indent(indent.as_bytes());
                value.serialize(&mut Serializer::with_formatter(out, formatter))
            }
            None => value.serialize(&mut Serializer::with_formatter(out, Spaced)),
        };
        done.map_err(|error| error.to_string())
    })?;
    Ok(Value::from_safe_string(text))
}

/// A JSON formatter that writes `", "` and `": "`.
struct Spaced;

impl Spaced {
    fn comma<W: ?Sized + io::Write>(writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }
}

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        Self::comma(writer, first)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        Self::comma(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

/// Renders a prompt with a template, without the control tokens of a tokenizer.
pub(super) fn render(prompt: &Prompt, template: &ChatTemplate) -> Result<String, Error> {
    let renderer = Renderer::new(template, &[])?;
    let mut prompt = conform::normalized(prompt, WireFormat::ChatTemplate).into_owned();
    renderer.neutralise(&mut prompt);
    renderer.render(&prompt.messages, &prompt.tools, true)
}
