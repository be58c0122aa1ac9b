//! The arguments of a call of the tool `recall`.

use serde_json::{Map, Value};

/// The arguments of a call.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) subject: Subject,
    /// The first and the last line, from 1.
    pub(crate) lines: (usize, usize),
    pub(crate) pattern: Option<String>,
    pub(crate) max_tokens: Option<u64>,
}

/// The text that a call is about.
#[derive(Debug)]
pub(crate) enum Subject {
    /// Passages with these words.
    Query(String),
    /// The message with this id.
    Message(String),
}

impl Arguments {
    /// Parses the JSON that a model wrote. Numbers may be strings, and empty values count as unset, because
    /// models fill in every parameter.
    ///
    /// # Errors
    ///
    /// Returns a sentence for the model with the mistake and the remedy.
    pub(crate) fn parse(json: &str) -> Result<Self, String> {
        let mut fields: Map<String, Value> = serde_json::from_str(json)
            .map_err(|_| "the arguments are no JSON object: give a query or a handle".to_owned())?;
        let mut text = |key: &str| match fields.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.trim().is_empty())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(format!("{key} is no text")),
        };
        let (query, handle, pattern) = (text("query")?, text("handle")?, text("pattern")?);
        let mut number = |key: &str| {
            let mistake = || format!("{key} is no whole number of 0 or more");
            let Some(written) = text(key).map_err(|_| mistake())? else {
                return Ok::<_, String>(None);
            };
            // Some clients turn every number of JSON into one with a decimal point.
            let whole = written.trim().trim_end_matches('0').strip_suffix('.').map(str::to_owned);
            let number = whole.as_deref().unwrap_or(written.trim()).parse::<u64>().map_err(|_| mistake())?;
            Ok(Some(number).filter(|number| *number > 0))
        };
        let (first, last) = (number("first_line")?, number("last_line")?);
        let max_tokens = number("max_tokens")?;
        if let Some(key) = fields.keys().next() {
            let known = "query, handle, first_line, last_line, pattern, max_tokens";
            return Err(format!("there is no parameter {key}: the parameters are {known}"));
        }
        // Models that fill in both parameters want a part of the message.
        let subject = match (query, handle) {
            (_, Some(handle)) => Subject::Message(handle.trim().into()),
            (Some(query), None) => Subject::Query(query),
            (None, None) => return Err("give a query to search, or a handle to read".into()),
        };
        let line = |number: Option<u64>, or: usize| {
            number.map_or(or, |at| usize::try_from(at).unwrap_or(usize::MAX))
        };
        Ok(Self { subject, lines: (line(first, 1), line(last, usize::MAX)), pattern, max_tokens })
    }
}
