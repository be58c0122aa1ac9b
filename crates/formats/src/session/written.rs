//! Export of a request as a session file, from which `plan-inspect` computes the application's plan.

use super::{redacted::Redactor, wire::Own};
use crate::error::Error;
use context_window::{
    Config, ContextWindowManager, Conversation, ItemId, PlanRequest, RagItem, RequestLimits, Tool, Ttl,
    config::{DocumentFormat, RulePolicy},
    plan::Anchor,
    provider::wording,
    render::definition_as_written,
};
use serde::{Serialize, Serializer};
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};
use std::{borrow::Cow, sync::Arc};

/// The version of the data under the key `context_window`.
const VERSION: u32 = 1;

/// The treatment of texts in a session file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionTexts {
    /// Texts are kept unchanged.
    Kept,
    /// Each text is replaced by a meaningless text with the same number of tokens, and each image by another
    /// of the same kind. Names, ids, tool definitions and signed reasoning stay. Only the provider can read
    /// signed reasoning.
    Redacted,
}

#[derive(Serialize)]
struct Written<'a> {
    model: &'a str,
    limits: RequestLimits,
    #[serde(skip_serializing_if = "Option::is_none")]
    focus: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    state: Vec<super::wire::StateText>,
    #[serde(skip_serializing_if = "Documents::is_empty")]
    rag: Documents,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<Anchor>,
    context_window: Own,
}

#[derive(Serialize)]
struct Document {
    id: ItemId,
    score: f64,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<Ttl>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<[u32; 2]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    variants: Vec<Variant>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requires: Vec<ItemId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
}

#[derive(Serialize)]
struct Variant {
    name: String,
    text: String,
}

/// The documents of a request: an array, or an object with an array for each list.
enum Documents {
    Unnamed(Vec<Document>),
    Lists(Vec<(String, Vec<Document>)>),
}

impl Documents {
    fn is_empty(&self) -> bool {
        match self {
            Self::Unnamed(list) => list.is_empty(),
            Self::Lists(lists) => lists.is_empty(),
        }
    }
}

impl Serialize for Documents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unnamed(list) => list.serialize(serializer),
            // The order of the lists breaks ties, so it is kept.
            Self::Lists(lists) => serializer.collect_map(lists.iter().map(|(name, list)| (name, list))),
        }
    }
}

/// Writes a request as the JSON of a session file: model, limits, options that differ from their defaults,
/// tokenizer, the whole conversation, documents, tools and state.
///
/// `plan-inspect FILE` then computes a plan with the same fingerprint, for a registered model and a tokenizer
/// with a name. With [`SessionTexts::Redacted`] the file contains no text of the conversation, its documents,
/// state or focus, and the same items are included with the same tokens. A tool result that is cleared or
/// clipped may have another token count, because clipping counts bytes. The comparisons of texts (rules S9,
/// S14) are turned off, so documents that repeat other texts are included again.
///
/// A session file does not contain the request's own token calibration or
/// [`PlanRequest::with_excluded_counts`].
///
/// # Errors
///
/// Returns [`ErrorKind::Conversation`](crate::ErrorKind::Conversation) if the token counter fails, and
/// `Input` if the conversation cannot be written as JSON.
pub fn session_json(
    manager: &ContextWindowManager,
    request: &PlanRequest<'_>,
    texts: SessionTexts,
) -> Result<String, Error> {
    let redactor = (texts == SessionTexts::Redacted).then(|| Redactor::new(manager));
    // The focus hint is sent inside a wording, so its tokens are counted inside it.
    let focus = |hint: &str| match &redactor {
        Some(redactor) => redactor.text_in(hint, |hint| wording::focus(hint).text().to_owned()),
        None => Ok(hint.to_owned()),
    };
    let document = |item: &RagItem| -> Result<Document, Error> {
        let item = match &redactor {
            Some(redactor) => Cow::Owned(redactor.document(item)?),
            None => Cow::Borrowed(item),
        };
        let variant =
            |(name, text): &(Arc<str>, Arc<str>)| Variant { name: name.to_string(), text: text.to_string() };
        Ok(Document {
            id: item.id.clone(),
            score: item.score,
            text: item.text.to_string(),
            source: item.origin.as_deref().map(str::to_owned),
            ttl: item.ttl,
            span: item.span.as_ref().map(|span| [span.start, span.end]),
            position: item.position,
            date: item.date,
            messages: item.messages.as_ref().map(|messages| [messages.start, messages.end]),
            variants: item.variants.iter().map(variant).collect(),
            requires: item.requires.clone(),
            group: item.group.as_deref().map(str::to_owned),
        })
    };
    let documents = |items: &[RagItem]| items.iter().map(document).collect::<Result<Vec<_>, Error>>();
    let lists = |(name, list): (&str, Vec<RagItem>)| Ok((name.to_owned(), documents(&list)?));
    let rag = match request.rag.list_names().next() {
        Some(_) => Documents::Lists(request.rag.lists().map(lists).collect::<Result<_, Error>>()?),
        None => Documents::Unnamed(documents(&request.rag)?),
    };
    let previous = request.previous.clone();
    let (log, previous) = match &redactor {
        Some(redactor) => {
            let previous = previous.map(|anchor| redactor.anchor(anchor)).transpose()?;
            (with_found_rules(manager, request)?, previous)
        }
        None => (Cow::Borrowed(request.log), previous),
    };
    let events = log.events();
    let events = match &redactor {
        Some(redactor) => events.map(|event| redactor.event(event)).collect::<Result<_, _>>()?,
        None => events.collect(),
    };
    // State is sent inside delimiters, so its tokens are counted inside them.
    let state = |(id, text): &(ItemId, String)| -> Result<_, Error> {
        let text = match &redactor {
            Some(redactor) => redactor.text_in(text, |text| wording::state(id.as_str(), text))?,
            None => text.clone(),
        };
        Ok(super::wire::StateText { id: id.clone(), text })
    };
    let mut config = manager.requested_config().clone();
    if let Some(redactor) = &redactor {
        let introduction = &config.rag.template.introduction;
        // Counted as it is sent: a native one has no line before it.
        let is_native = config.rag.format == DocumentFormat::Native;
        let sent = |text: &str| if is_native { text.to_owned() } else { wording::block_open(Some(text)) };
        config.rag.template.introduction = redactor.text_in(introduction, sent)?;
        // Meaningless texts must not be compared: short ones may have the same words by chance.
        (config.rag.near_duplicates, config.rag.repeats, config.rag.join_chunks) = (0, 0, false);
        config.compaction.rules = RulePolicy::Off;
    }
    let written = Written {
        model: manager.model_name(),
        limits: request.limits,
        focus: request.focus.as_deref().map(focus).transpose()?,
        tools: request.tools.iter().filter_map(tool).collect(),
        state: request.state.iter().map(state).collect::<Result<_, _>>()?,
        rag,
        previous,
        context_window: Own {
            version: VERSION,
            options: options(&config),
            tokenizer: manager.counter().name().into(),
            events,
            remote: request.remote_context().to_vec(),
            structured_output: request.wants_structured_output,
        },
    };
    serde_json::to_string(&written).map_err(|error| Error::input("conversation", error.to_string()))
}

/// Returns the conversation with the user's rules that were found in its messages as rules of the
/// application. A message without its text no longer shows them.
fn with_found_rules<'a>(
    manager: &ContextWindowManager,
    request: &PlanRequest<'a>,
) -> Result<Cow<'a, Conversation>, Error> {
    if manager.requested_config().compaction.rules != RulePolicy::Keep {
        return Ok(Cow::Borrowed(request.log));
    }
    let mut log = request.log.clone();
    for rule in manager.build_plan(request)?.rules() {
        log.keep_rule(rule.clone())?;
    }
    Ok(Cow::Owned(log))
}

impl Own {
    /// Returns the options as the text of an options file, and the name of the tokenizer. An error describes
    /// the invalid value.
    pub(super) fn settings(&self) -> Result<(String, String), String> {
        if self.version != VERSION {
            return Err(format!("has version {}; expected version {VERSION}", self.version));
        }
        let options = toml::to_string(&self.options).map_err(|error| format!("options: {error}"))?;
        Ok((options, self.tokenizer.clone()))
    }
}

/// Returns the options that differ from their defaults, as tables.
fn options(config: &Config) -> Map<String, Value> {
    let tables = |config: &Config| serde_json::to_value(config).unwrap_or_default();
    let mut differing = match differing(&tables(config), &tables(&Config::default())) {
        Some(Value::Object(tables)) => tables,
        _ => Map::new(),
    };
    // The values of a preset are among the other options already.
    differing.remove("preset");
    differing
}

fn differing(own: &Value, default: &Value) -> Option<Value> {
    match own {
        Value::Object(tables) => {
            let part = |(key, value): (&String, &Value)| {
                Some((key.clone(), differing(value, default.get(key).unwrap_or(&Value::Null))?))
            };
            let parts: Map<String, Value> = tables.iter().filter_map(part).collect();
            (!parts.is_empty()).then_some(Value::Object(parts))
        }
        // A null is an unset option, which TOML cannot express.
        _ if own.is_null() || own == default => None,
        _ => Some(own.clone()),
    }
}

/// Returns a tool in the form of `OpenAI` Chat, or in its original form. Returns `None` for invalid JSON.
fn tool(tool: &Tool) -> Option<Box<RawValue>> {
    if let Some((_, definition)) = &tool.hosted {
        return serde_json::from_str(definition).ok();
    }
    // The original JSON may have fields that `Tool` does not have.
    if let Some(definition) = definition_as_written(tool) {
        return RawValue::from_string(definition).ok();
    }
    let mut function = json!({ "name": tool.name });
    if !tool.description.is_empty() {
        function["description"] = Value::String(tool.description.clone());
    }
    if !tool.schema.is_empty() {
        let schema: Option<Box<RawValue>> = serde_json::from_str(&tool.schema).ok();
        function["parameters"] = schema
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_else(|| Value::String(tool.schema.clone()));
    }
    to_raw_value(&json!({ "type": "function", "function": function })).ok()
}
