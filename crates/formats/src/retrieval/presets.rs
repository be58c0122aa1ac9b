//! Maps of fields for stores with a known JSON format.

use super::{FieldMap, paths};

impl FieldMap {
    /// Creates a map for Qdrant's answer to `points/query` or `points/search`, or for its list of points. The
    /// text is in `payload.text`, `payload.content`, `payload.page_content` or `payload.document`. For a
    /// collection that measures a distance (Euclid, Manhattan) add [`FieldMap::with_distances`].
    #[must_use]
    pub fn qdrant() -> Self {
        Self {
            hits: paths(&["result.points", "result", "points", ""]),
            text: paths(&["payload.text", "payload.content", "payload.page_content", "payload.document"]),
            source: paths(&["payload.source"]),
            ..Self::for_store("qdrant")
        }
    }

    /// Creates a map for `LanceDB`'s rows as JSON. Scores come from `_relevance_score` or `_score`. A
    /// `_distance` is negated, because a smaller distance is a better match.
    #[must_use]
    pub fn lancedb() -> Self {
        Self {
            score: paths(&["_relevance_score", "_score", "score"]),
            distance: paths(&["_distance"]),
            text: paths(&["text", "content"]),
            ..Self::for_store("lancedb")
        }
    }

    /// Creates a map for the answers of `tantivy-cli serve`, in which every field is a list of values. Its
    /// `id` is unique only within a segment. Set a unique field with [`FieldMap::with_id`], such as
    /// `doc.path`.
    #[must_use]
    pub fn tantivy() -> Self {
        Self {
            hits: paths(&["hits", ""]),
            id: paths(&["doc.id", "id"]),
            text: paths(&["doc.text", "doc.body", "doc.content"]),
            source: paths(&["doc.source", "doc.path"]),
            ..Self::for_store("tantivy")
        }
    }

    /// Creates a map for `LangChain`'s documents as JSON, alone or as pairs of a document and its score. For
    /// a store that returns distances as scores, add [`FieldMap::with_distances`]. A document without an id
    /// is named by its position.
    #[must_use]
    pub fn langchain() -> Self {
        Self {
            id: paths(&["kwargs.id", "id", "metadata.id"]),
            text: paths(&["page_content", "pageContent", "kwargs.page_content"]),
            score: paths(&["score", "metadata.score", "metadata.relevance_score", "kwargs.metadata.score"]),
            source: paths(&["metadata.source", "kwargs.metadata.source"]),
            pairs: true,
            ..Self::for_store("langchain")
        }
    }

    /// Creates a map for `LlamaIndex`'s nodes with scores as JSON.
    #[must_use]
    pub fn llamaindex() -> Self {
        Self {
            hits: paths(&["source_nodes", "nodes", ""]),
            id: paths(&["node.id_", "node.node_id", "id_", "id"]),
            text: paths(&["node.text", "node.text_resource.text", "text", "text_resource.text"]),
            source: paths(&["node.metadata.file_path", "node.metadata.file_name", "metadata.file_path"]),
            span: Some(("node.start_char_idx".into(), "node.end_char_idx".into())),
            ..Self::for_store("llamaindex")
        }
    }

    /// Creates a map for the rows of a `pgvector` query as JSON. The text is in `content`, `text`,
    /// `document`, `chunk` or `body`, and the score in `score` or `similarity`. A `distance` is negated,
    /// because a smaller distance is a better match.
    #[must_use]
    pub fn pgvector() -> Self {
        Self {
            hits: paths(&["rows", ""]),
            text: paths(&["content", "text", "document", "chunk", "body"]),
            score: paths(&["score", "similarity"]),
            distance: paths(&["distance"]),
            source: paths(&["source", "metadata.source"]),
            ..Self::for_store("pgvector")
        }
    }

    /// Creates a map for the answers of Elasticsearch and `OpenSearch` to `_search`, or for their list of
    /// hits. The text is in `_source.text`, `_source.content`, `_source.body` or `_source.page_content`.
    #[must_use]
    pub fn elasticsearch() -> Self {
        Self {
            hits: paths(&["hits.hits", "hits", ""]),
            id: paths(&["_id"]),
            text: paths(&["_source.text", "_source.content", "_source.body", "_source.page_content"]),
            score: paths(&["_score"]),
            source: paths(&["_source.source", "_source.metadata.source"]),
            ..Self::for_store("elasticsearch")
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
            ..Self::for_store("weaviate")
        }
    }

    /// Creates a map for Milvus: the answer of its REST interface to `search`, or the hits of one query of
    /// `pymilvus`. Its `distance` is larger for a better match with the metrics `COSINE` and `IP`. For the
    /// metric `L2` add [`FieldMap::with_distances`].
    #[must_use]
    pub fn milvus() -> Self {
        Self {
            hits: paths(&["data", ""]),
            id: paths(&["id", "pk", "entity.id"]),
            text: paths(&["text", "content", "entity.text", "entity.content"]),
            score: paths(&["distance", "score"]),
            source: paths(&["source", "entity.source"]),
            ..Self::for_store("milvus")
        }
    }

    /// Creates a map for Chroma's answer to `query`, which has a list for each field. Its distances are
    /// negated, because a smaller distance is a better match.
    #[must_use]
    pub fn chroma() -> Self {
        Self {
            id: paths(&["ids"]),
            text: paths(&["documents"]),
            score: Vec::new(),
            distance: paths(&["distances"]),
            source: paths(&["metadatas.source"]),
            columns: true,
            ..Self::for_store("chroma")
        }
    }

    /// Creates a map for Pinecone's answer to `query`, with the text in `metadata.text`,
    /// `metadata.content` or `metadata.chunk_text`, or to a search of records, with the text in `fields`. For
    /// an index with the metric `euclidean` add [`FieldMap::with_distances`].
    #[must_use]
    pub fn pinecone() -> Self {
        Self {
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
            ..Self::for_store("pinecone")
        }
    }
}
