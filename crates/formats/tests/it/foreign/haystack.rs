use super::{assert_says, read, said, sample, try_read};

#[test]
fn parts_under_their_keys_are_read() {
    assert_says(
        &sample("haystack.json"),
        &[
            "system: You help with the boat rental.",
            "user: Which boats are free on Friday?",
            "user image: data:image/png;base64,",
            r#"user opaque: {"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERi0xLjQK","filename":"rules.pdf"}}"#,
            "thought: Check the list first.",
            "assistant: I look it up.",
            r#"call call_1 free_boats {"day":"Friday"}"#,
            r#"call call_2 tide {"harbour":"North"}"#,
            "result call_1: Heron, Otter",
            "result call_2 (failed): tide table offline",
            "assistant: Heron and Otter are free; Teal is not.",
            "user: Book the Otter, please.",
        ],
        &[],
    );
}

#[test]
fn names_with_a_leading_underscore_are_read() {
    assert_eq!(said(&sample("haystack-2.9.json")), said(&sample("haystack.json")));
}

#[test]
fn results_without_ids_find_their_calls_by_tool_and_arguments() {
    assert_says(
        &sample("haystack-no-ids.json"),
        &[
            "user: Hi",
            r#"call call_0 free_boats {"day":"Friday"}"#,
            "call call_1 tide {}",
            "result call_1: Low",
            "result call_1 image: data:image/png;base64,",
            "result call_0: Heron",
        ],
        &[],
    );
}

#[test]
fn texts_of_early_versions_and_the_calls_in_them_are_read() {
    let text = r#"[{"content":"Tide?","role":"user","name":null,"meta":{}},
        {"content":"[{\"id\":\"c1\",\"function\":{\"name\":\"tide\",\"arguments\":\"{}\"},\"type\":\"function\"}]",
            "role":"assistant","name":null,"meta":{"finish_reason":"tool_calls"}},
        {"content":"low","role":"function","name":"tide","meta":{}}]"#;
    assert_eq!(said(&read("talk", text)), ["user: Tide?", "call c1 tide {}", "result c1: low"]);
}

#[test]
fn a_trace_without_the_bytes_of_an_image_is_refused() {
    let text = r#"[{"role":"user","meta":{},"name":null,"content":[{"text":"See this."},
        {"image":{"base64_image":"Base64 string (96 characters)","mime_type":"image/png"}}]}]"#;
    let error = try_read("talk", text).unwrap_err().to_string();
    assert!(error.contains("[0].content[1].image.base64_image: is not base64"), "{error}");
}
