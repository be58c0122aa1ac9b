//! Tests of maps: answers of each store, and unreadable ones.

use super::*;

fn read(map: &FieldMap, json: &str) -> Vec<(String, f64, String)> {
    let items = map.read_hits(json).unwrap();
    items.iter().map(|item| (item.id().as_str().to_owned(), item.score(), item.text().to_owned())).collect()
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
    for node in [r#"{"id_":"n","text":"t","metadata":{}}"#, r#"{"id_":"n","text_resource":{"text":"t"}}"#] {
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
    let hybrid = r#"{"data":{"Get":{"Article":[{"text":"t","_additional":{"id":"u-1","score":"0.0163"}}]}}}"#;
    assert_eq!(read(&FieldMap::weaviate(), hybrid), [hit("u-1", 0.0163, "t")]);
    let objects = r#"{"objects":[{"uuid":"u-2","properties":{"content":"t"},"metadata":{"certainty":0.8,"distance":0.4}}]}"#;
    assert_eq!(read(&FieldMap::weaviate(), objects), [hit("u-2", 0.8, "t")]);

    let rest = r#"{"code":0,"data":[{"id":7,"distance":0.9,"text":"t"},{"id":8,"distance":0.4,"text":"u"}]}"#;
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
    let records = r#"{"result":{"hits":[{"_id":"p","_score":0.7,"fields":{"chunk_text":"t"}}]},"usage":{}}"#;
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

#[test]
fn place_and_date_of_a_hit_are_read() {
    let own = r#"[{"id":"a","text":"t","score":1,"span":[4,9],"position":2,"date":"2026-11-27"},
        {"id":"b","text":"t","score":1,"span":null,"date":""}]"#;
    let expected = RagItem::new("a", 1.0, "t").with_span(4..9).with_position(2).with_date(1_795_737_600);
    assert_eq!(FieldMap::new().read_hits(own).unwrap(), [expected.clone(), RagItem::new("b", 1.0, "t")]);
    let payload = r#"[{"id":"a","score":1,"payload":{"text":"t","at":{"from":"4","to":[9]},"n":[2],"day":1795737600.5}}]"#;
    let map = FieldMap::qdrant().with_span("payload.at.from", "payload.at.to").with_position("payload.n");
    assert_eq!(map.with_date("payload.day").read_hits(payload).unwrap(), [expected]);
    // Stores may use these names for anything else.
    let rows = r#"[{"id":"a","content":"t","score":1,"position":"Manager","date":"soon","span":7}]"#;
    assert_eq!(FieldMap::pgvector().read_hits(rows).unwrap(), [RagItem::new("a", 1.0, "t")]);
    let node = r#"[{"node":{"id_":"a","text":"t","start_char_idx":4,"end_char_idx":9},"score":1}]"#;
    assert_eq!(FieldMap::llamaindex().read_hits(node).unwrap()[0].span, Some(4..9));
    let columns = r#"{"ids":[["a"]],"documents":[["t"]],"distances":[[0.5]],"metadatas":[[{"day":"2026-11-27","n":2}]]}"#;
    let map = FieldMap::chroma().with_date("metadatas.day").with_position("metadatas.n");
    let expected = RagItem::new("a", -0.5, "t").with_position(2).with_date(1_795_737_600);
    assert_eq!(map.read_hits(columns).unwrap(), [expected]);
}

#[test]
fn unreadable_place_or_date_is_an_error_with_its_path() {
    let error = |keys: &str| {
        let json = format!(r#"[{{"id":"a","text":"t","score":1,{keys}}}]"#);
        FieldMap::new().with_name("hits.json").read_hits(&json).unwrap_err().to_string()
    };
    let shown = [
        error(r#""date":"last week""#),
        error(r#""date":{"day":1}"#),
        error(r#""position":-1"#),
        error(r#""span":[9,4]"#),
        error(r#""span":["a",4]"#),
    ];
    insta::assert_snapshot!(shown.join("\n"), @r#"
    hits.json[0]: `date` is "last week"; expected seconds since 1970, or a date such as 2026-11-27 or 2026-11-27T10:00:00Z
    hits.json[0]: `date` is an object with day; expected seconds since 1970, or a date such as 2026-11-27 or 2026-11-27T10:00:00Z
    hits.json[0]: `position` is -1; expected a whole number of 0 or more
    hits.json[0]: `span.1` is 4; expected 9 or more, the start
    hits.json[0]: `span.0` is "a"; expected a whole number of 0 or more
    "#);
}

#[test]
fn values_of_another_type_are_errors_and_never_ignored() {
    let read = |json: &str| FieldMap::new().with_name("hits").read_hits(json).unwrap_err().to_string();
    let errors = [
        r#"[{"id": "a", "text": "t", "score": "high"}]"#,
        r#"[{"id": "a", "text": "t", "score": [0.5, 0.2]}, {"id": "b", "text": "u", "score": {}}]"#,
        r#"[{"id": "a", "text": "t", "score": 1, "span": [1]}]"#,
        r#"[{"id": "a", "text": "t", "score": 1, "span": [null, 2]}]"#,
        r#"[{"id": "a", "text": "t", "score": 1, "span": "1-2"}]"#,
        r#"[{"id": "a", "text": "t", "score": 1, "span": [2, 1]}]"#,
    ]
    .map(read);
    insta::assert_snapshot!(errors.join("\n"), @r#"
    hits[0]: no numeric score; looked for score, found an object with id, text, score
    hits[1]: no numeric score; looked for score, found an object with id, text, score
    hits[0]: `span.1` is null; expected the end of the span
    hits[0]: `span.0` is null; expected the start of the span
    hits[0]: `span` is "1-2"; expected a start and an end
    hits[0]: `span.1` is 1; expected 2 or more, the start
    "#);
    // A store that leaves the field out, or empty, ranks by order.
    let hits =
        FieldMap::new().read_hits(r#"[{"text": "t", "score": ""}, {"text": "u", "score": null}]"#).unwrap();
    assert_eq!((hits[0].score, hits[1].score), (0.0, -1.0));
}
