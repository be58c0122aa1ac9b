//! Results of retrievers as documents: a map of fields, with presets for stores with a known JSON format.

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

    /// Creates a map for Qdrant's answer to `points/query` or `points/search`, or for its list of points. The
    /// text is in `payload.text`, `payload.content`, `payload.page_content` or `payload.document`. For a
    /// collection that measures a distance (Euclid, Manhattan) add [`FieldMap::with_distances`].
    #[must_use]
    pub fn qdrant() -> Self {
        Self {
            name: "qdrant".into(),
            hits: paths(&["result.points", "result", "points", ""]),
            text: paths(&["payload.text", "payload.content", "payload.page_content", "payload.document"]),
            source: paths(&["payload.source"]),
            ..Self::new()
        }
    }

    /// Creates a map for `LanceDB`'s rows as JSON. Scores come from `_relevance_score` or `_score`. A
    /// `_distance` is negated, because a smaller distance is a better match.
    #[must_use]
    pub fn lancedb() -> Self {
        Self {
            name: "lancedb".into(),
            score: paths(&["_relevance_score", "_score", "score"]),
            distance: paths(&["_distance"]),
            text: paths(&["text", "content"]),
            ..Self::new()
        }
    }

    /// Creates a map for the answers of `tantivy-cli serve`, in which every field is a list of values. Its
    /// `id` is unique only within a segment. Set a unique field with [`FieldMap::with_id`], such as
    /// `doc.path`.
    #[must_use]
    pub fn tantivy() -> Self {
        Self {
            name: "tantivy".into(),
            hits: paths(&["hits", ""]),
            id: paths(&["doc.id", "id"]),
            text: paths(&["doc.text", "doc.body", "doc.content"]),
            source: paths(&["doc.source", "doc.path"]),
            ..Self::new()
        }
    }

    /// Creates a map for `LangChain`'s documents as JSON, alone or as pairs of a document and its score. For
    /// a store that returns distances as scores, add [`FieldMap::with_distances`]. A document without an id
    /// is named by its position.
    #[must_use]
    pub fn langchain() -> Self {
        Self {
            name: "langchain".into(),
            id: paths(&["kwargs.id", "id", "metadata.id"]),
            text: paths(&["page_content", "pageContent", "kwargs.page_content"]),
            score: paths(&["score", "metadata.score", "metadata.relevance_score", "kwargs.metadata.score"]),
            source: paths(&["metadata.source", "kwargs.metadata.source"]),
            pairs: true,
            ..Self::new()
        }
    }

    /// Creates a map for `LlamaIndex`'s nodes with scores as JSON.
    #[must_use]
    pub fn llamaindex() -> Self {
        Self {
            name: "llamaindex".into(),
            hits: paths(&["source_nodes", "nodes", ""]),
            id: paths(&["node.id_", "node.node_id", "id_", "id"]),
            text: paths(&["node.text", "node.text_resource.text", "text", "text_resource.text"]),
            source: paths(&["node.metadata.file_path", "node.metadata.file_name", "metadata.file_path"]),
            ..Self::new()
        }
    }

    /// Creates a map for the rows of a `pgvector` query as JSON. The text is in `content`, `text`,
    /// `document`, `chunk` or `body`, and the score in `score` or `similarity`. A `distance` is negated,
    /// because a smaller distance is a better match.
    #[must_use]
    pub fn pgvector() -> Self {
        Self {
            name: "pgvector".into(),
            hits: paths(&["rows", ""]),
            text: paths(&["content", "text", "document", "chunk", "body"]),
            score: paths(&["score", "similarity"]),
            distance: paths(&["distance"]),
            source: paths(&["source", "metadata.source"]),
            ..Self::new()
        }
    }

    /// Creates a map for the answers of Elasticsearch and `OpenSearch` to `_search`, or for their list of
    /// hits. The text is in `_source.text`, `_source.content`, `_source.body` or `_source.page_content`.
    #[must_use]
    pub fn elasticsearch() -> Self {
        Self {
            name: "elasticsearch".into(),
            hits: paths(&["hits.hits", "hits", ""]),
            id: paths(&["_id"]),
            text: paths(&["_source.text", "_source.content", "_source.body", "_source.page_content"]),
            score: paths(&["_score"]),
            source: paths(&["_source.source", "_source.metadata.source"]),
            ..Self::new()
        }
    }

    /// Creates a map for Weaviate's answer to a GraphQL `Get` of one class, or for the objects of its
    /// clients. Scores come from `score` or `certainty`. A `distance` is negated, because a smaller distance
    /// is a better match.
    #[must_use]
    pub fn weaviate() -> Self {
        let meta = ["_additional", "metadata"];
        let both = |name: &str| meta.map(|prefix| format!("{prefix}.{name}"));
        Self {
            name: "weaviate".into(),
            hits: paths(&["data.Get.*", "objects", ""]),
            id: paths(&["_additional.id", "uuid", "id"]),
            text: paths(&[
                "text",
                "content",
                "body",
                "properties.text",
                "properties.content",
                "properties.body",
            ]),
            score: [both("score"), both("certainty")].concat(),
            distance: both("distance").into(),
            source: paths(&["source", "properties.source"]),
            ..Self::new()
        }
    }

    /// Creates a map for Milvus: the answer of its REST interface to `search`, or the hits of one query of
    /// `pymilvus`. Its `distance` is larger for a better match with the metrics `COSINE` and `IP`. For the
    /// metric `L2` add [`FieldMap::with_distances`].
    #[must_use]
    pub fn milvus() -> Self {
        Self {
            name: "milvus".into(),
            hits: paths(&["data", ""]),
            id: paths(&["id", "pk", "entity.id"]),
            text: paths(&["text", "content", "entity.text", "entity.content"]),
            score: paths(&["distance", "score"]),
            source: paths(&["source", "entity.source"]),
            ..Self::new()
        }
    }

    /// Creates a map for Chroma's answer to `query`, which has a list for each field. Its distances are
    /// negated, because a smaller distance is a better match.
    #[must_use]
    pub fn chroma() -> Self {
        Self {
            name: "chroma".into(),
            id: paths(&["ids"]),
            text: paths(&["documents"]),
            score: Vec::new(),
            distance: paths(&["distances"]),
            source: paths(&["metadatas.source"]),
            columns: true,
            ..Self::new()
        }
    }

    /// Creates a map for Pinecone's answer to `query`, with the text in `metadata.text`,
    /// `metadata.content` or `metadata.chunk_text`, or to a search of records, with the text in `fields`. For
    /// an index with the metric `euclidean` add [`FieldMap::with_distances`].
    #[must_use]
    pub fn pinecone() -> Self {
        Self {
            name: "pinecone".into(),
            hits: paths(&["matches", "result.hits", ""]),
            id: paths(&["id", "_id"]),
            text: paths(&[
                "metadata.text",
                "metadata.content",
                "metadata.chunk_text",
                "fields.text",
                "fields.content",
                "fields.chunk_text",
            ]),
            score: paths(&["score", "_score"]),
            source: paths(&["metadata.source", "fields.source"]),
            ..Self::new()
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

    /// Turns the lists of an answer with a list for each field into a list of hits.
    fn rows(&self, whole: &Value) -> Result<Value, Error> {
        let fields =
            || self.id.iter().chain(&self.text).chain(&self.distance).chain(&self.score).chain(&self.source);
        let mut columns: Vec<(&str, &Vec<Value>)> = Vec::new();
        // `metadatas.source` is a key inside of the values of `metadatas`.
        for name in fields().map(|path| path.split('.').next().unwrap_or_default()) {
            let Some(column) = at(whole, name).and_then(Value::as_array) else { continue };
            // The outer list has one entry for each query.
            let column = match column.as_slice() {
                [Value::Array(only)] => only,
                [Value::Array(_), ..] => {
                    let detail =
                        format!("`{name}` has the results of {} queries; expected one", column.len());
                    return Err(Error::input(&self.name, detail));
                }
                _ => column,
            };
            columns.push((name, column));
        }
        // A list that is missing or null was not asked for, so it says nothing about the number of hits.
        let length = columns.first().map_or(0, |(_, column)| column.len());
        if let Some((name, column)) = columns.iter().find(|(_, column)| column.len() != length) {
            let (first, _) = columns[0];
            let detail = format!(
                "`{name}` has {} values and `{first}` has {length}; expected equal numbers",
                column.len()
            );
            return Err(Error::input(&self.name, detail));
        }
        if columns.is_empty() {
            let looked: Vec<&str> = fields().map(String::as_str).collect();
            let detail =
                format!("no lists of fields; looked for {}, found {}", looked.join(", "), shape(whole));
            return Err(Error::input(&self.name, detail));
        }
        let row = |nth: usize| {
            columns.iter().map(|(name, column)| ((*name).to_owned(), column[nth].clone())).collect()
        };
        Ok(Value::Array((0..length).map(|nth| Value::Object(row(nth))).collect()))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(map: &FieldMap, json: &str) -> Vec<(String, f64, String)> {
        let items = map.read_hits(json).unwrap();
        items
            .iter()
            .map(|item| (item.id().as_str().to_owned(), item.score(), item.text().to_owned()))
            .collect()
    }

    fn hit(id: &str, score: f64, text: &str) -> (String, f64, String) {
        (id.into(), score, text.into())
    }

    #[test]
    fn each_preset_reads_its_stores_answer() {
        let point = r#"{"id":"5c56c793","version":0,"score":0.8,"payload":{"text":"t"}}"#;
        for whole in [
            format!(r#"{{"result":{{"points":[{point}]}},"status":"ok"}}"#),
            format!(r#"{{"result":[{point}]}}"#),
            format!("[{point}]"),
        ] {
            assert_eq!(read(&FieldMap::qdrant(), &whole), [hit("5c56c793", 0.8, "t")]);
            assert_eq!(read(&FieldMap::qdrant().with_distances(), &whole), [hit("5c56c793", -0.8, "t")]);
        }
        let rows =
            r#"[{"id":1,"text":"near","vector":[0.1],"_distance":0.25},{"id":2,"text":"far","_distance":3}]"#;
        assert_eq!(read(&FieldMap::lancedb(), rows), [hit("1", -0.25, "near"), hit("2", -3.0, "far")]);
        let ranked = r#"[{"id":1,"text":"x","_distance":0.25,"_relevance_score":0.9}]"#;
        assert_eq!(read(&FieldMap::lancedb(), ranked), [hit("1", 0.9, "x")]);
        let served = r#"{"q":"a","num_hits":1,"hits":[{"score":7.5,"doc":{"path":["a.md"],"body":["one","two"]},"id":3}]}"#;
        assert_eq!(read(&FieldMap::tantivy(), served), [hit("3", 7.5, "one\ntwo")]);
        assert_eq!(read(&FieldMap::tantivy().with_id("doc.path"), served), [hit("a.md", 7.5, "one\ntwo")]);
        let pairs = r#"[[{"id":null,"metadata":{"source":"s"},"page_content":"t","type":"Document"},0.3]]"#;
        assert_eq!(read(&FieldMap::langchain(), pairs), [hit("hit0", 0.3, "t")]);
        assert_eq!(read(&FieldMap::langchain().with_distances(), pairs), [hit("hit0", -0.3, "t")]);
        let dumped = r#"[[{"lc":1,"type":"constructor","id":["langchain","Document"],"kwargs":{"id":"d","page_content":"t"}},1]]"#;
        assert_eq!(read(&FieldMap::langchain(), dumped), [hit("d", 1.0, "t")]);
        let javascript = r#"[{"pageContent":"t","metadata":{"score":0.5},"id":"x"}]"#;
        assert_eq!(read(&FieldMap::langchain(), javascript), [hit("x", 0.5, "t")]);
        for node in [r#"{"id_":"n","text":"t","metadata":{}}"#, r#"{"id_":"n","text_resource":{"text":"t"}}"#]
        {
            let nodes = format!(r#"[{{"node":{node},"score":0.5,"class_name":"NodeWithScore"}}]"#);
            assert_eq!(read(&FieldMap::llamaindex(), &nodes), [hit("n", 0.5, "t")]);
        }
    }

    #[test]
    fn each_preset_reads_its_databases_answer() {
        let rows = r#"[{"id":4,"content":"near","distance":0.2,"metadata":{"source":"a.md"}},{"id":9,"content":"far","distance":0.7}]"#;
        assert_eq!(read(&FieldMap::pgvector(), rows), [hit("4", -0.2, "near"), hit("9", -0.7, "far")]);
        assert_eq!(FieldMap::pgvector().read_hits(rows).unwrap()[0].origin.as_deref(), Some("a.md"));
        let scored = r#"{"rows":[{"id":"x","text":"t","similarity":0.9}]}"#;
        assert_eq!(read(&FieldMap::pgvector(), scored), [hit("x", 0.9, "t")]);

        let found = r#"{"took":3,"timed_out":false,"hits":{"total":{"value":1,"relation":"eq"},"max_score":1.5,
            "hits":[{"_index":"docs","_id":"d7","_score":1.5,"_source":{"content":"t","source":"b.md"}}]}}"#;
        assert_eq!(read(&FieldMap::elasticsearch(), found), [hit("d7", 1.5, "t")]);

        let got = r#"{"data":{"Get":{"Article":[{"text":"t","_additional":{"id":"u-1","distance":0.25}}]}}}"#;
        assert_eq!(read(&FieldMap::weaviate(), got), [hit("u-1", -0.25, "t")]);
        let hybrid =
            r#"{"data":{"Get":{"Article":[{"text":"t","_additional":{"id":"u-1","score":"0.0163"}}]}}}"#;
        assert_eq!(read(&FieldMap::weaviate(), hybrid), [hit("u-1", 0.0163, "t")]);
        let objects = r#"{"objects":[{"uuid":"u-2","properties":{"content":"t"},"metadata":{"certainty":0.8,"distance":0.4}}]}"#;
        assert_eq!(read(&FieldMap::weaviate(), objects), [hit("u-2", 0.8, "t")]);

        let rest =
            r#"{"code":0,"data":[{"id":7,"distance":0.9,"text":"t"},{"id":8,"distance":0.4,"text":"u"}]}"#;
        assert_eq!(read(&FieldMap::milvus(), rest), [hit("7", 0.9, "t"), hit("8", 0.4, "u")]);
        let client = r#"[[{"id":7,"distance":0.9,"entity":{"text":"t"}}]]"#;
        assert_eq!(read(&FieldMap::milvus(), client), [hit("7", 0.9, "t")]);
        assert_eq!(read(&FieldMap::milvus().with_distances(), client), [hit("7", -0.9, "t")]);

        let columns = r#"{"ids":[["a","b"]],"documents":[["t","u"]],"distances":[[0.1,0.3]],
            "metadatas":[[{"source":"c.md"},null]],"embeddings":null,"include":["documents"]}"#;
        assert_eq!(read(&FieldMap::chroma(), columns), [hit("a", -0.1, "t"), hit("b", -0.3, "u")]);
        assert_eq!(FieldMap::chroma().read_hits(columns).unwrap()[0].origin.as_deref(), Some("c.md"));
        let without_distances = r#"{"ids":[["a","b"]],"documents":[["t","u"]]}"#;
        assert_eq!(read(&FieldMap::chroma(), without_distances), [hit("a", 0.0, "t"), hit("b", -1.0, "u")]);
        assert!(read(&FieldMap::chroma(), r#"{"ids":[[]],"documents":[[]],"distances":[[]]}"#).is_empty());

        let matches =
            r#"{"matches":[{"id":"p","score":0.7,"values":[],"metadata":{"text":"t"}}],"namespace":"n"}"#;
        assert_eq!(read(&FieldMap::pinecone(), matches), [hit("p", 0.7, "t")]);
        let records =
            r#"{"result":{"hits":[{"_id":"p","_score":0.7,"fields":{"chunk_text":"t"}}]},"usage":{}}"#;
        assert_eq!(read(&FieldMap::pinecone(), records), [hit("p", 0.7, "t")]);
    }

    #[test]
    fn columns_that_do_not_match_are_an_error() {
        let error = |json: &str| FieldMap::chroma().read_hits(json).unwrap_err().to_string();
        let shown = [
            error(r#"{"ids":[["a","b"]],"documents":[["t"]]}"#),
            error(r#"{"ids":[["a"],["b"]],"documents":[["t"],["u"]]}"#),
            error(r#"{"hits":[]}"#),
            error(r#"{"ids":[["a"]],"documents":null,"distances":[[0.1]]}"#),
        ];
        insta::assert_snapshot!(shown.join("\n"), @r#"
        chroma: `documents` has 1 values and `ids` has 2; expected equal numbers
        chroma: `ids` has the results of 2 queries; expected one
        chroma: no lists of fields; looked for ids, documents, distances, metadatas.source, found an object with hits
        chroma[0]: no text; looked for documents, found an object with ids, distances
        "#);
    }

    #[test]
    fn hits_without_scores_are_ranked_by_order() {
        let documents = r#"[{"page_content":"first","metadata":{}},{"page_content":"second"}]"#;
        let read = read(&FieldMap::langchain(), documents);
        assert_eq!(read, [hit("hit0", 0.0, "first"), hit("hit1", -1.0, "second")]);
        let lines = "{\"id\":1,\"text\":\"a\",\"score\":2}\n{\"id\":2,\"text\":\"b\",\"score\":1}\n";
        assert_eq!(FieldMap::new().read_hits(lines).unwrap().len(), 2);
    }

    #[test]
    fn unreadable_hits_report_place_and_expected_fields() {
        let error = |map: FieldMap, json: &str| map.read_hits(json).unwrap_err().to_string();
        let shown = [
            error(FieldMap::qdrant(), "{\"a\":\n x}"),
            error(FieldMap::qdrant(), r#"{"hits":[]}"#),
            error(FieldMap::qdrant(), r#"[{"id":1,"score":1,"payload":{"body":"t"}}]"#),
            error(
                FieldMap::llamaindex(),
                r#"[{"node":{"id_":"n","text":"t"},"score":null},{"node":{"id_":"m","text":"t"},"score":1}]"#,
            ),
        ];
        insta::assert_snapshot!(shown.join("\n"), @r#"
        qdrant:2:2: not JSON: expected value
        qdrant: no array of hits; looked for result.points, result, points, an array, found an object with hits
        qdrant[0]: no text; looked for payload.text, payload.content, payload.page_content, payload.document, found an object with id, score, payload
        llamaindex[0]: no numeric score; looked for score, found an object with node, score
        "#);
    }
}
