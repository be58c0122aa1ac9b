use super::{assert_says, read, said, sample, try_read};
use context_window_formats::SessionFile;

#[test]
fn blocks_are_read() {
    let session = sample("llamaindex.json");
    assert_says(
        &session,
        &[
            "system: You help with the boat rental.",
            "user: Which boats are free on Friday?",
            "user image: data:image/png;base64,",
            "user image: https://example.org/h.",
            r#"user opaque: {"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERg==","filename":"Rules"}}"#,
            "thought: Check the list first.",
            "assistant: I look it up.",
            r#"call call_1 free_boats {"day":"Friday"}"#,
            r#"call call_2 tide {"harbour": "North"}"#,
            "result call_1: Heron, Otter",
            "result call_2: Error: tide table offline",
            "assistant: Heron and Otter are free; Teal is not.",
            "user: Book the Otter, please.",
        ],
        &[],
    );
    assert_eq!(session.log.messages()[2].reasoning()[0].signature.as_deref(), Some("c2ln"));
}

#[test]
fn messages_without_blocks_are_read() {
    assert_says(
        &sample("llamaindex-old.json"),
        &["system: You help.", "user: Hi", "call c1 free {}", "result c1: Heron", "user: Book."],
        &[],
    );
}

#[test]
fn a_store_of_several_talks_is_each_of_them_by_its_key() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/llamaindex-store.json");
    let file = SessionFile::new("store", std::fs::read(path).unwrap()).unwrap();
    assert_eq!(file.ids().collect::<Vec<_>>(), ["ida", "zoe"]);
    assert_eq!(file.session(Some("zoe")).unwrap().log.messages().len(), 2);
    assert_says(
        &file.session(Some("ida")).unwrap(),
        &[
            "system: You help with the boat rental.",
            "user: Which boats are free on Friday?",
            "user image: data:image/png;base64,",
            "user image: https://example.org/h.",
            r#"user opaque: {"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERg==","filename":"Rules"}}"#,
            "assistant: I look it up.",
            r#"call call_1 free_boats {"day": "Friday"}"#,
            r#"call call_2 tide {"harbour":"North"}"#,
            "result call_1: Heron, Otter",
            "result call_2: Error: tide table offline",
            "assistant: Heron and Otter are free; Teal is not.",
            "user: Book the Otter, please.",
        ],
        &[],
    );
}

#[test]
fn a_block_of_each_kind_is_read_or_refused() {
    let of = |block: &str| format!(r#"[{{"role":"user","additional_kwargs":{{}},"blocks":[{block}]}}]"#);
    let read = |block: &str| said(&read("talk", &of(block)));
    let citable = r#"{"block_type":"citable","title":"Boats","source":"doc1","content":[{"block_type":"text","text":"Herons are blue."}]}"#;
    assert_eq!(read(citable), ["user: Herons are blue."]);
    let image = r#"{"block_type":"image","image":"b'/9j/4AAQ'","image_mimetype":null}"#;
    assert_eq!(read(image), ["user image: data:image/jpeg;base64"]);
    let audio = r#"{"block_type":"audio","audio":"YWJj","format":"mp3"}"#;
    assert_eq!(
        read(audio),
        [r#"user opaque: {"type":"input_audio","input_audio":{"data":"YWJj","format":"mp3"}}"#]
    );
    for refused in [
        r#"{"block_type":"video","url":"https://example.org/a.mp4"}"#,
        r#"{"block_type":"image","path":"/home/ida/boat.png"}"#,
        r#"{"block_type":"hologram","text":"Herons are blue."}"#,
    ] {
        let error = try_read("talk", &of(refused)).unwrap_err().to_string();
        assert!(error.contains("[0].blocks[0]"), "{error}");
    }
}
