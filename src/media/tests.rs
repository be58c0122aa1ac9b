use super::*;
use crate::{
    provider::model::{Model, Registry},
    tokens::Certainty,
};
use context_window_testing::media as samples;
use proptest::prelude::*;
use serde_json::json;

fn measured(json: &Value) -> Option<PartMedia> {
    PartMedia::from_json(&json.to_string())
}

fn only(json: &Value) -> Medium {
    let media = measured(json).map(|part| part.media).unwrap_or_default();
    assert_eq!(media.len(), 1, "{json}: {media:?}");
    media[0]
}

#[expect(clippy::unnecessary_wraps, reason = "what it is compared with is an Option")]
fn pixels(width: u64, height: u64) -> Option<Pixels> {
    Some(Pixels { width, height })
}

fn image(width: u32, height: u32, detail: Option<&str>) -> Medium {
    let url = format!("data:image/png;base64,{}", samples::base64(&samples::png(width, height)));
    PartMedia::from_url(&url, detail).media[0]
}

fn price(model: &str, medium: &Medium) -> (u64, Certainty) {
    let count = Model::named(model).unwrap().media_prices().tokens(medium);
    (count.tokens, count.certainty)
}

#[test]
fn media_are_found_in_every_shape_that_a_provider_has() {
    let png = samples::base64(&samples::png(640, 480));
    let url = format!("data:image/png;base64,{png}");
    let pdf = samples::base64(&samples::pdf(4, 20));
    let wav = samples::base64(&samples::wav(100, 300, 300));
    let mp4 = samples::base64(&samples::mp4(b"isom", 10, 120));
    let detail = Detail::Auto;
    let picture = Medium::Image { pixels: pixels(640, 480), detail };
    let elsewhere = Medium::Image { pixels: None, detail };
    let document = Medium::Document { pages: Some(PageCount { pages: 4, is_read: true }), detail };
    let far = Medium::Document { pages: None, detail };
    let sound = Medium::Audio { duration: Some(Duration { seconds: 3, is_read: true }) };
    let film = Medium::Video { duration: Some(Duration { seconds: 12, is_read: true }) };
    let cases = [
        // Anthropic.
        (
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}}),
            picture,
        ),
        (json!({"type": "image", "source": {"type": "file", "file_id": "file_1"}}), elsewhere),
        (
            json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": pdf}}),
            document,
        ),
        (json!({"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}}), far),
        (json!({"type": "document", "source": {"type": "file", "file_id": "file_1"}}), far),
        // OpenAI Chat.
        (json!({"type": "image_url", "image_url": {"url": url, "detail": "auto"}}), picture),
        (
            json!({"type": "file", "file": {"filename": "a.pdf", "file_data": format!("data:application/pdf;base64,{pdf}")}}),
            document,
        ),
        (json!({"type": "file", "file": {"file_id": "file_1"}}), far),
        (json!({"type": "input_audio", "input_audio": {"data": wav, "format": "wav"}}), sound),
        // Responses.
        (json!({"type": "input_image", "image_url": url}), picture),
        (json!({"type": "input_image", "file_id": "file_1"}), elsewhere),
        (json!({"type": "input_file", "filename": "a.pdf", "file_data": pdf}), document),
        (json!({"type": "input_file", "file_id": "file_1"}), far),
        (json!({"type": "input_file", "file_url": "https://example.org/a.pdf"}), far),
        (
            json!({"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": url}}),
            picture,
        ),
        (json!({"type": "image_generation_call", "id": "ig_1", "result": png}), picture),
        // Gemini.
        (json!({"inlineData": {"mimeType": "image/png", "data": png}}), picture),
        (json!({"inline_data": {"mime_type": "application/pdf", "data": pdf}}), document),
        (json!({"inlineData": {"mimeType": "audio/wav", "data": wav}}), sound),
        (json!({"inlineData": {"mimeType": "video/mp4", "data": mp4}}), film),
        (json!({"fileData": {"mimeType": "application/pdf", "fileUri": "gs://a"}}), far),
        (json!({"fileData": {"fileUri": "https://example.org/watch"}}), Medium::Video { duration: None }),
        // An MCP server and Bedrock.
        (json!({"type": "image", "data": png, "mimeType": "image/png"}), picture),
        (json!({"type": "audio", "data": wav, "mimeType": "audio/wav"}), sound),
        (json!({"document": {"format": "pdf", "name": "a", "source": {"bytes": pdf}}}), document),
        // Inside of a tool result.
        (
            json!({"type": "mcp_tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}}]}),
            picture,
        ),
    ];
    for (json, medium) in cases {
        assert_eq!(only(&json), medium, "{json:.120}");
        assert_eq!(count(&json.to_string()), 1);
        let text = measured(&json).unwrap().text;
        assert!(!text.contains(&png) && !text.contains(&pdf) && !text.contains(&wav), "{text:.200}");
    }
}

#[test]
fn text_next_to_media_is_counted_and_media_data_are_not() {
    let png = samples::base64(&samples::png(8, 8));
    let source = json!({"type": "base64", "media_type": "image/png", "data": png});
    let titled = json!({
        "type": "document", "title": "Tides", "context": "of May",
        "source": {"type": "url", "url": "https://x/y"}
    });
    assert_eq!(&*measured(&titled).unwrap().text, "Tides\nof May");
    assert_eq!(&*measured(&json!({"type": "image", "source": source})).unwrap().text, "");
    let around = json!({"type": "x_tool_result", "content": [{"type": "text", "text": "north"}, {"type": "image", "source": source}]});
    assert!(measured(&around).unwrap().text.contains("north"));
    // A text file counts as text in every kind of part.
    let notes = samples::base64("wind from the east".as_bytes());
    let file = json!({"type": "input_file", "filename": "notes.txt", "file_data": format!("data:text/plain;base64,{notes}")});
    let file = measured(&file).unwrap();
    assert_eq!((file.media.len(), &*file.text), (0, "notes.txt\nwind from the east"));
}

#[test]
fn parts_without_media_are_unchanged() {
    for json in [
        json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Attack at dawn."}}),
        json!({"type": "search_result", "source": "https://example.org", "title": "image", "content": []}),
        json!({"type": "web_search_call", "action": {"sources": [
            {"type": "url", "url": "https://example.org/a.png", "image_url": "https://example.org/b.png"}
        ]}}),
        json!({"type": "input_text", "text": "data:image/png;base64,AAAA"}),
        json!({"type": "container_upload", "file_id": "file_1"}),
        json!({"type": "image"}),
        json!({"type": "file", "file": "file_1"}),
        json!("image"),
        json!([]),
    ] {
        assert_eq!(measured(&json), None, "{json}");
    }
    assert_eq!(PartMedia::from_json("{\"image"), None);
}

#[test]
fn image_costs_match_provider_documentation() {
    use Certainty::{Estimate, Exact, UpperBound};
    let cases = [
        // The examples of developers.openai.com, images and vision.
        ("gpt-4o", (1_024, 1_024), Some("high"), (765, Exact)),
        ("gpt-4o", (2_048, 4_096), Some("high"), (1_105, Exact)),
        ("gpt-4o", (4_096, 8_192), Some("low"), (85, Exact)),
        ("gpt-4.1-mini", (1_024, 1_024), Some("high"), (1_659, Exact)),
        ("gpt-4.1-mini", (1_800, 2_400), Some("high"), (2_353, Estimate)),
        ("gpt-4o-mini", (512, 512), Some("low"), (2_833, Exact)),
        ("gpt-4o-mini", (512, 512), Some("high"), (8_500, Exact)),
        ("gpt-5", (512, 512), Some("high"), (210, Exact)),
        ("o3", (512, 512), Some("high"), (225, Exact)),
        ("gpt-4o", (32, 32), None, (255, UpperBound)),
        ("gpt-4o", (20_000, 20_000), Some("high"), (765, Exact)),
        // Billed: 1,453 and 773, including eight tokens of text.
        ("gpt-4o", (2_049, 513), Some("high"), (1_445, Exact)),
        ("gpt-4o", (2_050, 513), Some("high"), (765, Exact)),
        // Measured (huggingface.co, image-token-cost).
        ("gpt-6-sol", (256, 256), None, (77, UpperBound)),
        ("gpt-6-sol", (2_560, 1_440), None, (4_320, UpperBound)),
        ("gpt-6-sol", (4_032, 3_024), None, (14_364, UpperBound)),
        ("gpt-6-sol", (3_840, 2_160), Some("high"), (2_931, Estimate)),
        ("gpt-6-sol", (4_032, 3_024), Some("high"), (2_942, Estimate)),
        ("gpt-5.5", (4_032, 3_024), None, (11_868, Estimate)),
        ("gpt-6-sol", (1_280, 720), Some("low"), (173, Exact)),
        // platform.claude.com, images and vision, and own measurements.
        ("claude-opus-4-8", (200, 200), None, (64, Exact)),
        ("claude-opus-4-8", (1_000, 1_000), None, (1_296, Exact)),
        ("claude-opus-5-5", (1_920, 1_080), None, (2_691, Exact)),
        ("claude-opus-4-8", (10_000, 6_000), None, (4_784, UpperBound)),
        ("claude-opus-4-8", (3_840, 2_160), None, (4_784, Exact)),
        ("claude-sonnet-4-5", (10_000, 6_000), None, (1_600, UpperBound)),
        ("claude-sonnet-4-5", (10_000, 100), None, (56, Exact)),
        // ai.google.dev, tokens and media resolution.
        ("gemini-2.5-pro", (384, 384), None, (258, Exact)),
        ("gemini-2.5-pro", (1_536, 1_536), None, (1_032, UpperBound)),
        ("gemini-2.5-pro", (960, 540), None, (1_548, UpperBound)),
        ("gemini-3.5-flash", (4_032, 3_024), None, (1_120, UpperBound)),
        // No published rule: an estimate.
        ("no-such-model", (1_024, 1_024), Some("high"), (765, Estimate)),
    ];
    for (model, (width, height), detail, expected) in cases {
        assert_eq!(
            price(model, &image(width, height, detail)),
            expected,
            "{model} {width}x{height} {detail:?}"
        );
    }
}

#[test]
fn an_image_of_unknown_size_costs_the_highest_price() {
    let elsewhere = |detail: &str| PartMedia::from_url("https://example.org/a.png", Some(detail)).media[0];
    for (model, detail, tokens) in [
        ("gpt-4o", "auto", 1_445),
        ("gpt-4o-mini", "high", 48_169),
        ("gpt-5-mini", "auto", 2_489),
        ("gpt-6-sol", "auto", 36_000),
        ("claude-opus-4-8", "auto", 4_784),
        ("claude-sonnet-4-5", "auto", 1_600),
        ("gemini-3.5-flash", "auto", 1_120),
        ("gemini-2.5-pro", "auto", 2_322),
    ] {
        assert_eq!(price(model, &elsewhere(detail)), (tokens, Certainty::UpperBound), "{model}");
    }
    assert_eq!(price("gpt-4o", &elsewhere("low")), (85, Certainty::Exact));
    // Data that are not an image, and an incomplete header.
    for data in ["AAAA", "iVBORw0KGgo=", "!", ""] {
        let medium = PartMedia::from_url(&format!("data:image/png;base64,{data}"), None).media[0];
        assert_eq!(price("gpt-4o", &medium).0, 1_445, "{data}");
    }
}

#[test]
fn documents_sound_and_video_cost_their_pages_and_seconds() {
    use Certainty::{Estimate, UpperBound};
    let detail = Detail::Auto;
    let pages = |pages, is_read| Medium::Document { pages: Some(PageCount { pages, is_read }), detail };
    let sound = Medium::Audio { duration: Some(Duration { seconds: 60, is_read: true }) };
    let film = Medium::Video { duration: Some(Duration { seconds: 12, is_read: true }) };
    for (model, medium, expected) in [
        ("claude-sonnet-4-5", pages(40, true), (124_000, Estimate)),
        ("claude-opus-5-5", pages(1, false), (3_100, Estimate)),
        ("gpt-4o", pages(40, true), (70_600, Estimate)),
        ("gemini-2.5-flash", pages(40, true), (10_320, UpperBound)),
        ("gemini-2.5-flash", pages(40, false), (10_320, Estimate)),
        ("gemini-3.5-flash", pages(10, true), (5_600, UpperBound)),
        ("claude-sonnet-4-5", Medium::Document { pages: None, detail }, (31_000, Estimate)),
        ("gemini-2.5-flash", sound, (1_920, Estimate)),
        ("gpt-4o", sound, (600, Estimate)),
        ("gemini-2.5-flash", film, (3_600, Estimate)),
        ("gemini-2.5-flash", Medium::Video { duration: None }, (90_000, Estimate)),
    ] {
        assert_eq!(price(model, &medium), expected, "{model} {medium:?}");
    }
}

#[test]
fn a_scan_counts_its_pages_and_not_its_base64() {
    let scan = samples::base64(&samples::pdf(40, 75_000));
    assert!(scan.len() > 4_000_000);
    let part = json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": scan}});
    assert_eq!(price("claude-sonnet-4-5", &only(&part)), (124_000, Certainty::Estimate));
}

#[test]
fn every_model_of_the_registry_has_prices_below_the_bounds() {
    let media = [
        image(u32::MAX, u32::MAX, None),
        image(1, u32::MAX, Some("original")),
        Medium::Image { pixels: None, detail: Detail::UltraHigh },
        Medium::Document {
            pages: Some(PageCount { pages: MOST_EXTENT.0, is_read: true }),
            detail: Detail::High,
        },
        Medium::Video { duration: Some(Duration { seconds: MOST_EXTENT.1, is_read: true }) },
    ];
    let names = Registry::built_in().unwrap().entries().iter().map(|entry| entry.name.as_str());
    for name in names.chain(["no-such-model", "computer-use-preview", "claude-next-9"]) {
        for medium in &media {
            let (tokens, _) = price(name, medium);
            let most = crate::provider::meter::most_tokens(matches!(medium, Medium::Image { .. }));
            assert!((1..=most).contains(&tokens), "{name}: {tokens} of {most} for {medium:?}");
        }
    }
}

/// Damaged data of every kind (100,000 cases with `FULL=1`) cause no panic, and token counts stay within
/// their bounds.
#[test]
fn hostile_media_are_bounded() {
    let whole = [
        samples::png(640, 480),
        [b"\xFF\xD8\xFF\xE0\0\x10".as_slice(), &[0; 14], b"\xFF\xC0\0\x11\x08\x01\0\x02\0\x03", &[0; 20]].concat(),
        b"GIF89a\x40\x01\xF0\0\0\0\0".to_vec(),
        b"RIFF\x20\0\0\0WEBPVP8X\x0A\0\0\0\0\0\0\0\x7F\x02\0\xDF\x01\0".to_vec(),
        b"\0\0\0\x18ftypheic\0\0\0\0mif1heic\0\0\0\x40meta\0\0\0\0\0\0\0\x30iprp\0\0\0\x28ipco\0\0\0\x14ispe\0\0\0\0\0\0\x02\x80\0\0\x01\xE0".to_vec(),
        samples::pdf(7, 30),
        samples::wav(100, 900, 900),
        samples::mp4(b"isom", 600, 7_200),
        [&[0xFF, 0xFB, 0x90, 0x00], &[0; 400][..]].concat(),
        [b"OggS\0\0".as_slice(), &[1; 22], b"OpusHead\x01\x01", &[0; 40]].concat(),
    ];
    let kinds = ["image/png", "application/pdf", "audio/wav", "video/mp4", "text/plain", ""];
    let cases = if std::env::var_os("FULL").is_some_and(|full| full == "1") { 100_000 } else { 4_000 };
    let mut state = 7_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    for nth in 0..cases {
        let mut bytes = whole[next(whole.len())].clone();
        for _ in 0..next(12) {
            let at = next(bytes.len());
            bytes[at] = [0, 1, 0x7F, 0xFF, b'<', b'(', b'[', b' '][next(8)];
        }
        bytes.truncate(if next(3) == 0 { next(bytes.len() + 1) } else { bytes.len() });
        let mut data = samples::base64(&bytes);
        if next(4) == 0 {
            let at = next(data.len() + 1);
            data.insert(at, ['!', '=', '\n', '-'][next(4)]);
        }
        let mime = kinds[next(kinds.len())];
        let part = json!({"inlineData": {"mimeType": mime, "data": data}});
        for medium in measured(&part).map(|part| part.media).unwrap_or_default() {
            let most = crate::provider::meter::most_tokens(matches!(medium, Medium::Image { .. }));
            for model in ["gpt-4o-mini", "claude-opus-4-8", "gemini-2.5-pro"] {
                assert!(price(model, &medium).0 <= most, "case {nth}: {medium:?}");
            }
        }
    }
}

/// A JPEG of only small segments has no size. One with a header after some segments has its size.
#[test]
fn headers_are_read_within_a_bound() {
    let segments = [b"\xFF\xD8\xFF\xE0".as_slice(), &b"\0\x02\xFF\xE0".repeat(500_000)].concat();
    assert_eq!(super::image::pixels(Base64::new(&samples::base64(&segments))), None);
    let hidden = [
        b"\xFF\xD8".as_slice(),
        &b"\xFF\xE1\0\x02".repeat(20),
        b"\xFF\xC0\0\x11\x08\x01\0\x02\0\x03",
        &[0; 9],
    ]
    .concat();
    assert_eq!(super::image::pixels(Base64::new(&samples::base64(&hidden))), pixels(512, 256));
}

#[test]
fn redacted_data_keep_their_size_and_hold_no_content() {
    let detail = Detail::Auto;
    let parts = [
        [samples::png(640, 480), b"what the picture shows".to_vec()].concat(),
        samples::pdf(12, 50),
        samples::wav(1_000, 90_000, 90_000),
        samples::mp4(b"isom", 10, 120),
        b"no file at all".repeat(20_000),
    ];
    for (bytes, mime) in
        parts.iter().zip(["image/png", "application/pdf", "audio/wav", "video/mp4", "application/x"])
    {
        let part = json!({"inlineData": {"mimeType": mime, "data": samples::base64(bytes)}}).to_string();
        let replaced = redacted_data(&part);
        let (data, placeholder) = replaced.iter().next().unwrap();
        assert_ne!(data, placeholder);
        let redacted: Value = serde_json::from_str(&part.replace(data, placeholder)).unwrap();
        let original: Value = serde_json::from_str(&part).unwrap();
        assert_eq!(only(&redacted), only(&original), "{mime}");
    }
    let url = format!("data:image/png;base64,{}", samples::base64(&samples::png(9, 7)));
    assert_eq!(
        PartMedia::from_url(&redacted_url(&url), None).media,
        [Medium::Image { pixels: pixels(9, 7), detail }]
    );
    assert!(!redacted_url("https://example.org/secret.png").contains("secret"));
}

proptest! {
    #[test]
    fn downscaled_larger_image_costs_hardly_less(width in 1u32..9_000, height in 1u32..9_000) {
        // More tiles cost more, up to a model's limit, beyond which images are scaled to whole tiles.
        for model in ["claude-opus-4-8", "gpt-6-sol"] {
            let (small, _) = price(model, &image(width, height, None));
            let (large, _) = price(model, &image(width.saturating_mul(2), height.saturating_mul(2), None));
            prop_assert!(large * 100 >= small * 98, "{} {}x{}: {} then {}", model, width, height, small, large);
        }
    }
}
