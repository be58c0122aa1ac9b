//! A model's own chat template, as data. The module `render` renders it to text.

use crate::{
    error::{Error, Repr},
    text::file,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};

/// The maximum size in bytes of a template file.
const MOST_BYTES: u64 = 1 << 24;
/// The maximum size in bytes of a `tokenizer.json` whose control tokens are read.
const MOST_TOKENIZER_BYTES: u64 = 1 << 28;

/// The tokens that a tokenizer adds to its vocabulary, from either of the two files that list them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Tokens {
    added_tokens_decoder: BTreeMap<String, Token>,
    added_tokens: Vec<Token>,
}

#[derive(Deserialize)]
struct Token {
    content: String,
    #[serde(default)]
    special: bool,
}

impl Tokens {
    /// Returns the control tokens.
    fn control(self) -> impl Iterator<Item = String> {
        let all = self.added_tokens_decoder.into_values().chain(self.added_tokens);
        all.filter(|token| token.special).map(|token| token.content)
    }
}

/// A Jinja chat template, as published with models on Hugging Face, with the special tokens and the date that
/// it uses.
///
/// Pass it to [`crate::Model::with_template`]: plans are then priced by rendering it.
///
/// ```
/// use context_window::{ContextWindowManager, Conversation, Config, Message, Model, PlanRequest};
/// use context_window::TokenCounter;
/// use context_window::{provider::ChatTemplate, render};
///
/// # fn main() -> Result<(), context_window::Error> {
/// let source =
///     "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}<assistant>";
/// let template = ChatTemplate::new("own", source).with_variable("enable_thinking", false);
/// let model = Model::custom("own").with_template(template.clone());
/// let manager = ContextWindowManager::new(model, TokenCounter::bytes(), Config::default())?;
/// let log = Conversation::from([Message::user("Hello")]);
/// let plan = manager.build_plan(&PlanRequest::new(&log))?;
/// assert_eq!(render::chat_template(&plan, &template)?, "<user>Hello<assistant>");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ChatTemplate {
    origin: Arc<str>,
    source: Arc<str>,
    variables: BTreeMap<String, Value>,
    /// The control tokens in the settings of its tokenizer.
    control: Vec<String>,
    date: (u16, u8, u8),
}

impl ChatTemplate {
    /// Creates a template from its Jinja source. `origin` names it in errors.
    #[must_use]
    pub fn new(origin: &str, source: &str) -> Self {
        let (origin, source) = (origin.into(), source.into());
        Self { origin, source, variables: BTreeMap::new(), control: Vec::new(), date: (2025, 1, 1) }
    }

    /// Reads the template in a model's folder. It is in `chat_template.jinja`, or else in
    /// `tokenizer_config.json`, where the template named `default` or the only one is used. The entries
    /// `bos_token`, `eos_token` and the like of that file become variables.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Template` if neither file exists, or if they cannot be read.
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let folder = folder.as_ref();
        let own = folder.join("chat_template.jinja");
        let config = folder.join("tokenizer_config.json");
        let settings = if config.exists() { read_json(&config)? } else { Value::Null };
        let (path, source) = if own.exists() {
            let source = read(&own, "a chat template")?;
            (own, Some(source))
        } else {
            (config, in_settings(&settings).map(str::to_owned))
        };
        let origin = path.display().to_string();
        let Some(source) = source else {
            return Err(fault(
                &origin,
                "has no chat template; expected `chat_template` in it, or chat_template.jinja next to it",
            ));
        };
        let mut template = Self::new(&origin, &source);
        // Both files may list control tokens, and either may be incomplete, so both are read.
        let settings_tokens: Tokens = serde_json::from_value(settings.clone()).unwrap_or_default();
        let tokenizer = folder.join("tokenizer.json");
        let tokenizer_tokens: Tokens = if tokenizer.exists() {
            let text = file::text(&tokenizer, MOST_TOKENIZER_BYTES, "a tokenizer.json");
            let text = text.map_err(|detail| fault(&tokenizer.display().to_string(), &detail))?;
            serde_json::from_str(&text).unwrap_or_default()
        } else {
            Tokens::default()
        };
        template.control.extend([settings_tokens, tokenizer_tokens].into_iter().flat_map(Tokens::control));
        for (name, value) in settings.as_object().into_iter().flatten() {
            let text = value.as_str().or_else(|| value.get("content").and_then(Value::as_str));
            if let Some(text) = text.filter(|_| name.ends_with("_token")) {
                template = template.with_variable(name, text);
            }
        }
        Ok(template)
    }

    /// Sets a variable of the template, such as `enable_thinking` or `bos_token`, to a JSON value.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: impl Serialize) -> Self {
        self.variables.insert(name.into(), serde_json::to_value(value).unwrap_or_default());
        self
    }

    /// Sets the date for templates that use the current date (default: 1 January 2025). The clock is never
    /// read, so that the same plan has the same result tomorrow.
    #[must_use]
    pub fn with_date(mut self, year: u16, month: u8, day: u8) -> Self {
        self.date = (year, month, day);
        self
    }

    /// Returns the Jinja source.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    pub(crate) fn variables(&self) -> &BTreeMap<String, Value> {
        &self.variables
    }

    /// Returns the markers that content must not spell out, because the model would obey them. They are the
    /// control tokens of the tokenizer, the `_token` variables of the template, and texts in its source that
    /// look like markers: `<|im_start|>`, `[INST]`, `<tool_call>`.
    pub(crate) fn markers(&self) -> Vec<String> {
        let variables = self.variables.iter().filter(|(name, _)| name.ends_with("_token"));
        let variables = variables.filter_map(|(_, value)| value.as_str().map(str::to_owned));
        let mut markers: Vec<String> =
            self.control.iter().cloned().chain(variables).chain(marks_in(&self.source)).collect();
        // Shorter texts and white space occur in ordinary content, and breaking them would change it.
        markers.retain(|marker| marker.chars().count() > 2 && !marker.chars().all(char::is_whitespace));
        markers.sort_unstable();
        markers.dedup();
        markers
    }

    /// Formats the date. The placeholders of `strftime` that are known are `%Y`, `%m`, `%d`, `%B` and `%b`.
    pub(crate) fn day(&self, format: &str) -> String {
        const MONTHS: [&str; 12] = [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ];
        let (year, month, day) = self.date;
        let name = MONTHS[usize::from(month.clamp(1, 12)) - 1];
        format
            .replace("%Y", &format!("{year:04}"))
            .replace("%m", &format!("{month:02}"))
            .replace("%d", &format!("{day:02}"))
            .replace("%B", name)
            .replace("%b", &name[..3])
    }
}

impl fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatTemplate").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// Finds the markers in a template's source. A marker has up to 40 characters without white space, quotes or
/// braces between angle brackets, or upper-case letters between square brackets.
fn marks_in(source: &str) -> impl Iterator<Item = String> {
    let marker = |(at, open): (usize, &str)| {
        let close = if open == "<" { '>' } else { ']' };
        let length = source[at..].chars().take(42).position(|c| c == close)?;
        let inside: String = source[at..].chars().skip(1).take(length - 1).collect();
        let spelt = |c: char| match open {
            "<" => !c.is_whitespace() && !"'\"{}<>=()".contains(c),
            _ => c.is_ascii_uppercase() || c == '_' || c == '/',
        };
        let sound = inside.chars().count() > 1 && inside.chars().all(spelt);
        sound.then(|| format!("{open}{inside}{close}"))
    };
    source.match_indices(['<', '[']).filter_map(marker)
}

/// Returns the template in a `tokenizer_config.json`, from a string or a list of named templates.
fn in_settings(settings: &Value) -> Option<&str> {
    let given = settings.get("chat_template")?;
    let list = given.as_array().map_or(&[][..], Vec::as_slice);
    let named = |entry: &&Value| entry.get("name").and_then(Value::as_str) == Some("default");
    let entry = list.iter().find(named).or_else(|| list.first().filter(|_| list.len() == 1));
    given.as_str().or_else(|| entry?.get("template")?.as_str())
}

fn read(path: &Path, expected: &str) -> Result<String, Error> {
    file::text(path, MOST_BYTES, expected).map_err(|detail| fault(&path.display().to_string(), &detail))
}

fn read_json(path: &Path) -> Result<Value, Error> {
    let text = read(path, "JSON")?;
    serde_json::from_str(&text).map_err(|error| fault(&path.display().to_string(), &error.to_string()))
}

fn fault(origin: &str, detail: &str) -> Error {
    Error::new(Repr::Template { origin: origin.into(), detail: detail.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marker_like_texts_of_a_template_are_markers() {
        let source =
            "{% if a < b and c > d %}<|im_start|>{{ x[0] }}[INST] <<SYS>> <tool_call>\n</s> x['a'] [ok]<a b>";
        let template =
            ChatTemplate::new("t", source).with_variable("eos_token", "<eos>").with_variable("date", "<x>");
        assert_eq!(
            template.markers(),
            ["</s>", "<<SYS>", "<SYS>", "<eos>", "<tool_call>", "<|im_start|>", "[INST]"]
                .into_iter()
                .filter(|marker| *marker != "<<SYS>")
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn date_is_formatted_as_requested() {
        let template = ChatTemplate::new("t", "").with_date(2026, 7, 4);
        assert_eq!(template.day("%d %b %Y, %B, %Y-%m-%d"), "04 Jul 2026, July, 2026-07-04");
    }
}
