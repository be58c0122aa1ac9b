//! Results of retrievers as documents: a map of fields, with presets for stores with a known JSON format.

mod columns;
mod presets;
#[cfg(test)]
mod tests;

use crate::error::Error;
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
    /// True if a hit may be a pair of a document and its score.
    pairs: bool,
    /// True if the answer has a list for each field in place of a list of hits.
    columns: bool,
}

fn paths(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

impl FieldMap {
    /// Creates a map that reads `id`, `text` and `score` of each hit in a list. Set other paths with the
    /// methods below.
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
            pairs: false,
            columns: false,
        }
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

    /// Returns the documents of a retriever's answer, in its order. If no hit has a score, scores are
    /// assigned from the order.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Input` with the place of the hit and the paths searched. Causes are text that is
    /// not JSON, a missing list of hits, and hits without a text or a numeric score.
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
        let ranked = list.iter().all(|hit| self.score_of(hit).is_none());
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
    fn split_hit<'v>(&self, hit: &'v Value) -> (&'v Value, Option<f64>) {
        match hit.as_array().map(Vec::as_slice) {
            Some([document, score]) if self.pairs => (document, score.as_f64()),
            _ => (hit, None),
        }
    }

    /// Returns a hit's score, larger for a better match. Returns `None` if the hit has no numeric score.
    fn score_of(&self, hit: &Value) -> Option<f64> {
        let (hit, outer_score) = self.split_hit(hit);
        // Stores such as Tantivy wrap each value in a list, which `one` unwraps.
        let number = |paths: &[String]| paths.iter().find_map(|path| number_of(one(at(hit, path)?)));
        // The score of a pair has no path of its own. It is a distance if the map reads distances only.
        let turned_round = self.score.is_empty();
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
        let item = RagItem::new(id, score, text);
        let source = self.source.iter().find_map(|path| text_of(at(hit, path)?));
        Ok(match source {
            Some(source) => item.with_origin(source),
            None => item,
        })
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
