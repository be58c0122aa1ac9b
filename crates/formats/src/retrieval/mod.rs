//! Results of retrievers as documents: a map of fields, with presets for stores with a known JSON format.

mod columns;
mod presets;
#[cfg(test)]
mod tests;

use crate::{
    date::{self, Date},
    error::Error,
};
use context_window::{
    ItemId, RagItem,
    text::{plain, size},
};
use serde_json::Value;

/// The dotted paths of a hit's fields in a retriever's JSON, and the direction of its score.
///
/// Every preset can be changed, since in most stores the application chooses the path of the text.
///
/// ```
/// use context_window_formats::FieldMap;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let answer = r#"{"result": {"points": [
///     {"id": 7, "score": 0.9, "payload": {"text": "Paris.", "file": "a.md"}}
/// ]}}"#;
/// let hits = FieldMap::qdrant().with_source("payload.file").read_hits(answer)?;
/// assert_eq!((hits[0].id().as_str(), hits[0].text()), ("7", "Paris."));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldMap {
    name: String,
    /// The paths at which the list of hits may be. The empty path is the whole answer.
    hits: Vec<String>,
    id: Vec<String>,
    text: Vec<String>,
    score: Vec<String>,
    distance: Vec<String>,
    source: Vec<String>,
    position: Vec<String>,
    /// The paths of the start and of the end of the text in its source.
    span: Option<(String, String)>,
    date: Vec<String>,
    /// True if a hit may be a pair of a document and its score.
    pairs: bool,
    /// True if the answer has a list for each field in place of a list of hits.
    columns: bool,
}

fn paths(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

impl FieldMap {
    /// Creates a map that reads `id`, `text` and `score` of each hit in a list, and `source`, `position`,
    /// `span` and `date` if it has them. Set other paths with the methods below.
    #[must_use]
    pub fn new() -> Self {
        Self {
            name: "hits".into(),
            hits: paths(&[""]),
            id: paths(&["id"]),
            text: paths(&["text"]),
            score: paths(&["score"]),
            distance: Vec::new(),
            source: paths(&["source"]),
            position: paths(&["position"]),
            span: Some(("span.0".into(), "span.1".into())),
            date: paths(&["date"]),
            pairs: false,
            columns: false,
        }
    }

    /// Creates a map for a store, whose hits may use the names of the optional fields for anything else.
    fn for_store(name: &str) -> Self {
        Self { name: name.into(), position: Vec::new(), span: None, date: Vec::new(), ..Self::new() }
    }

    /// Sets the name of the answer in errors, such as a file or an address.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the path of the list of hits. An empty path is the whole answer.
    #[must_use]
    pub fn with_hits(mut self, path: &str) -> Self {
        self.hits = paths(&[path]);
        self
    }

    /// Sets the path of a hit's id.
    #[must_use]
    pub fn with_id(mut self, path: &str) -> Self {
        self.id = paths(&[path]);
        self
    }

    /// Sets the path of a hit's text.
    #[must_use]
    pub fn with_text(mut self, path: &str) -> Self {
        self.text = paths(&[path]);
        self
    }

    /// Sets the path of a hit's score. Larger is better.
    #[must_use]
    pub fn with_score(mut self, path: &str) -> Self {
        (self.score, self.distance) = (paths(&[path]), Vec::new());
        self
    }

    /// Sets the path of a hit's distance. Smaller is better, so the hit's score is the negated distance.
    #[must_use]
    pub fn with_distance(mut self, path: &str) -> Self {
        (self.distance, self.score) = (paths(&[path]), Vec::new());
        self
    }

    /// Treats the scores of the map as distances, so that smaller is better.
    #[must_use]
    pub fn with_distances(mut self) -> Self {
        let scores = std::mem::take(&mut self.score);
        self.distance.extend(scores);
        self
    }

    /// Sets the path of the name of a hit's source. A hit without one has no source.
    #[must_use]
    pub fn with_source(mut self, path: &str) -> Self {
        self.source = paths(&[path]);
        self
    }

    /// Sets the path of a chunk's number in its source, from 0 or 1. A hit without one has no number.
    #[must_use]
    pub fn with_position(mut self, path: &str) -> Self {
        self.position = paths(&[path]);
        self
    }

    /// Sets the paths of the start and the end of a hit's text in its source, in bytes or in characters. A
    /// number as a key is a place in an array, as in `span.0`.
    ///
    /// ```
    /// use context_window::RagItem;
    /// use context_window_formats::FieldMap;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let nodes = r#"[{"id": "a", "text": "Paris.", "start": 40, "end": 46, "day": "2026-11-27"}]"#;
    /// let hits = FieldMap::new().with_span("start", "end").with_date("day").read_hits(nodes)?;
    /// let expected = RagItem::new("a", 0.0, "Paris.").with_span(40..46).with_date(1_795_737_600);
    /// assert_eq!(hits, [expected]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_span(mut self, start_path: &str, end_path: &str) -> Self {
        self.span = Some((start_path.into(), end_path.into()));
        self
    }

    /// Sets the path of a hit's date: seconds since 1970, or a text such as `2026-11-27` or
    /// `2026-11-27T10:00:00Z`. A hit without one has no date.
    #[must_use]
    pub fn with_date(mut self, path: &str) -> Self {
        self.date = paths(&[path]);
        self
    }

    /// Returns the documents of a retriever's answer, in its order. If no hit has a score, scores are
    /// assigned from the order.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Input` with the place of the hit and the paths searched. Causes are text that is
    /// not JSON, a missing list of hits, and hits without a text or a numeric score. A position, span or date
    /// of another form is an error too.
    pub fn read_hits(&self, json: &str) -> Result<Vec<RagItem>, Error> {
        let mut whole = self.parse(json)?;
        if self.columns {
            whole = self.rows(&whole)?;
        }
        let list = self.hits.iter().find_map(|path| at(&whole, path)?.as_array()).ok_or_else(|| {
            let paths: Vec<&str> =
                self.hits.iter().map(|path| if path.is_empty() { "an array" } else { path }).collect();
            let detail =
                format!("no array of hits; looked for {}, found {}", paths.join(", "), shape(&whole));
            Error::input(&self.name, detail)
        })?;
        // A list for each query. Only milvus has one that is not a pair.
        let list = match list.as_slice() {
            [Value::Array(only)] if !self.pairs => only,
            _ => list,
        };
        // Without any score only the order is known, and retrievers list the best hit first.
        let ranked = list.iter().all(|hit| !self.has_score(hit));
        list.iter().enumerate().map(|(nth, hit)| self.item(nth, hit, ranked)).collect()
    }

    /// Parses one JSON value, or JSON lines as a list.
    fn parse(&self, json: &str) -> Result<Value, Error> {
        // The limit is checked before parsing, so a huge answer cannot fill the memory.
        size::check(json, size::VALUES).map_err(|excess| {
            let place = format!("{}:{}", self.name, excess.line);
            Error::input(place, size::too_many("an answer", size::VALUES))
        })?;
        let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
        let first = values.next().unwrap_or(Ok(Value::Null));
        let rest: Result<Vec<Value>, serde_json::Error> = values.collect();
        let both = first.and_then(|first| Ok((first, rest?)));
        let (first, rest) = both.map_err(|error| {
            let place = format!("{}:{}:{}", self.name, error.line(), error.column());
            Error::input(place, format!("not JSON: {}", plain::without_place(&error)))
        })?;
        // Several values are JSON lines, which become one list.
        Ok(if rest.is_empty() { first } else { std::iter::once(first).chain(rest).collect() })
    }

    /// Splits a pair into its document and its score. Returns any other hit unchanged, without a score.
    fn split_hit<'v>(&self, hit: &'v Value) -> (&'v Value, Option<&'v Value>) {
        match hit.as_array().map(Vec::as_slice) {
            Some([document, score]) if self.pairs => (document, Some(score)),
            _ => (hit, None),
        }
    }

    /// Checks if a hit has a score, of whatever type.
    fn has_score(&self, hit: &Value) -> bool {
        let (hit, outer_score) = self.split_hit(hit);
        let mut paths = self.score.iter().chain(&self.distance);
        outer_score.is_some_and(|score| !score.is_null())
            || paths.any(|path| at(hit, path).map(one).is_some_and(|score| score.as_str() != Some("")))
    }

    /// Returns a hit's score, larger for a better match. Returns `None` if the hit has no numeric score.
    fn score_of(&self, hit: &Value) -> Option<f64> {
        let (hit, outer_score) = self.split_hit(hit);
        // Stores such as Tantivy wrap each value in a list, which `one` unwraps.
        let number = |paths: &[String]| paths.iter().find_map(|path| number_of(one(at(hit, path)?)));
        // The score of a pair has no path of its own. It is a distance if the map reads distances only.
        let turned_round = self.score.is_empty();
        let outer_score = outer_score.and_then(Value::as_f64);
        let outer_score = outer_score.map(|score| if turned_round { -score } else { score });
        outer_score
            .or_else(|| number(&self.score))
            .or_else(|| number(&self.distance).map(|distance| -distance))
    }

    fn item(&self, nth: usize, whole: &Value, ranked: bool) -> Result<RagItem, Error> {
        let (hit, _) = self.split_hit(whole);
        let missing = |what: &str, looked: &[String]| {
            let place = format!("{}[{nth}]", self.name);
            Error::input(place, format!("no {what}; looked for {}, found {}", looked.join(", "), shape(hit)))
        };
        let text = self.text.iter().find_map(|path| text_of(at(hit, path)?));
        let text = text.ok_or_else(|| missing("text", &self.text))?;
        let looked = || -> Vec<String> { self.score.iter().chain(&self.distance).cloned().collect() };
        let rank = u32::try_from(nth).unwrap_or(u32::MAX);
        // The negated position keeps the order of the answer.
        let score = if ranked { Some(-f64::from(rank)) } else { self.score_of(whole) };
        let score = score.ok_or_else(|| missing("numeric score", &looked()))?;
        let id = self.id.iter().find_map(|path| text_of(at(hit, path)?));
        // Every item needs an id, so a hit without one is named by its position.
        let id: ItemId = id.unwrap_or_else(|| format!("hit{nth}")).into();
        let mut item = RagItem::new(id, score, text);
        item.origin = self.source.iter().find_map(|path| text_of(at(hit, path)?)).map(Into::into);
        self.add_place(nth, hit, &mut item)?;
        Ok(item)
    }

    /// Adds the position, the span and the date of a hit to its document.
    fn add_place(&self, nth: usize, hit: &Value, item: &mut RagItem) -> Result<(), Error> {
        let refused = |path: &str, value: &Value, expected: &str| {
            let place = format!("{}[{nth}]", self.name);
            Error::input(place, format!("`{path}` is {}; expected {expected}", shape(value)))
        };
        let found = |path: &str| at(hit, path).map(one).filter(|value| value.as_str() != Some(""));
        let whole = |path: &str| -> Result<Option<u64>, Error> {
            let Some(value) = found(path) else { return Ok(None) };
            let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
            number.map(Some).ok_or_else(|| refused(path, value, "a whole number of 0 or more"))
        };
        for path in &self.position {
            // The first path with a value is used, as for the other fields.
            item.position = item.position.or(whole(path)?);
        }
        if let Some((start, end)) = &self.span {
            item.span = match (whole(start)?, whole(end)?) {
                (Some(first), Some(last)) if first <= last => Some(first..last),
                (Some(first), Some(last)) => {
                    return Err(refused(end, &Value::from(last), &format!("{first} or more, the start")));
                }
                (None, None) => {
                    // A span of another type has neither of the two.
                    let outer = start.rsplit_once('.').map(|(outer, _)| outer);
                    let other = outer.and_then(|outer| Some((outer, at(hit, outer)?)));
                    match other.filter(|(_, value)| !value.is_object() && !value.is_array()) {
                        Some((outer, value)) => return Err(refused(outer, value, "a start and an end")),
                        None => None,
                    }
                }
                (Some(_), None) => return Err(refused(end, &Value::Null, "the end of the span")),
                (None, Some(_)) => return Err(refused(start, &Value::Null, "the start of the span")),
            };
        }
        for path in &self.date {
            let Some(value) = found(path) else { continue };
            let number = || value.as_i64().map(Date).or_else(|| Date::from_number(value.as_f64()?));
            // A text of digits only is no date: it could be a year as well as seconds.
            let date = value.as_str().and_then(Date::from_text).or_else(number);
            item.date = Some(date.ok_or_else(|| refused(path, value, date::EXPECTED))?.0);
        }
        Ok(())
    }
}

impl Default for FieldMap {
    fn default() -> Self {
        Self::new()
    }
}

/// Describes a value in errors.
fn shape(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            const SHOWN: usize = 8;
            let keys: Vec<_> = object.keys().take(SHOWN).map(|key| plain::short(key)).collect();
            let more = if object.len() > SHOWN { ", ..." } else { "" };
            format!("an object with {}{more}", keys.join(", "))
        }
        Value::Array(_) => "an array".into(),
        other => plain::short(&other.to_string()).into_owned(),
    }
}

/// Returns the value at a dotted path. Returns `None` for a missing value and for null. The key `*` is the
/// only key of an object, such as the name of a class.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    // An empty path has no keys, so it returns the whole value.
    let keys = path.split('.').filter(|key| !key.is_empty());
    let step = |value: &'v Value, key: &str| match value {
        Value::Object(object) if key == "*" && object.len() == 1 => object.values().next(),
        Value::Array(list) => list.get(key.parse::<usize>().ok()?),
        value => value.get(key),
    };
    keys.into_iter().try_fold(value, step).filter(|found| !found.is_null())
}

/// Returns a number, also if it is a text: GraphQL has scores as texts.
fn number_of(value: &Value) -> Option<f64> {
    let parsed = || value.as_str()?.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    value.as_f64().or_else(parsed)
}

/// Returns a value, or the first element of a list.
fn one(value: &Value) -> &Value {
    value.as_array().and_then(|list| list.first()).unwrap_or(value)
}

/// Returns a text, a number as text, or the texts of a list joined by line breaks.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(list) => {
            let texts: Vec<String> = list.iter().filter_map(text_of).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        _ => None,
    }
}
