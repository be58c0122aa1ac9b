//! Web pages, parsed like in a browser.

/// A tag of a page: its name, and its attributes with their values.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    /// True if it closes itself.
    pub closed: bool,
}

/// Returns the tags and texts of a page as a browser reads them: the content of style and script is one text.
pub fn read(page: &str) -> (Vec<Tag>, Vec<String>) {
    let (mut tags, mut texts, mut rest) = (Vec::new(), Vec::new(), page);
    while let Some(at) = rest.find('<') {
        texts.push(rest[..at].to_owned());
        rest = &rest[at + 1..];
        let name_ends = rest.find(|c: char| c.is_whitespace() || c == '>').unwrap();
        let name = rest[..name_ends].to_owned();
        rest = &rest[name_ends..];
        let (mut attributes, mut closed) = (Vec::new(), false);
        loop {
            rest = rest.trim_start();
            closed |= rest.starts_with("/>");
            rest = rest.trim_start_matches('/');
            if let Some(after) = rest.strip_prefix('>') {
                rest = after;
                break;
            }
            let end = rest.find(['=', '>', ' ', '\n']).unwrap();
            let key = rest[..end].to_owned();
            rest = &rest[end..];
            let Some(value) = rest.strip_prefix('=') else {
                attributes.push((key, String::new()));
                continue;
            };
            let value = value.strip_prefix('"').expect("values stand in quotes");
            let end = value.find('"').unwrap();
            attributes.push((key, value[..end].to_owned()));
            rest = &value[end + 1..];
        }
        if name == "style" || name == "script" {
            rest = &rest[rest.find(&format!("</{name}")).unwrap()..];
        }
        tags.push(Tag { name, attributes, closed });
    }
    (tags, texts)
}

pub fn unescaped(text: &str) -> String {
    let names = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&#x2f;", "/")];
    names.iter().fold(text.to_owned(), |text, (name, c)| text.replace(name, c)).replace("&amp;", "&")
}

/// Checks that a page contains only tags and attributes of the template.
pub fn is_sound(page: &str) {
    const NAMES: &str = "!doctype html head meta title style body a header h1 p bdi strong main section div h2 b svg rect line \
        ul li ol dl dt dd h3 table thead tr th tbody td label input span kbd button details summary footer code script path select \
        option";
    const KEYS: &str = "html lang charset http-equiv content name class href dir aria-label viewBox preserveAspectRatio role x \
        x1 x2 y1 y2 width height tabindex scope data-name id hidden for type autocomplete spellcheck aria-describedby \
        aria-keyshortcuts data-key data-value aria-pressed aria-live aria-hidden data-state data-section \
        rx y d min value data-tokens data-item data-id data-prompt";
    let (tags, texts) = read(page);
    let mut open: Vec<&str> = Vec::new();
    for tag in &tags {
        let name = tag.name.strip_prefix('/').unwrap_or(&tag.name);
        assert!(NAMES.split_whitespace().any(|known| known == name), "the template writes no <{name}>");
        for (key, value) in &tag.attributes {
            assert!(KEYS.split_whitespace().any(|known| known == key), "no attribute {key} of <{name}>");
            assert!(key != "href" || value == "#items", "{value}");
        }
        match tag.name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if tag.closed || ["!doctype", "meta", "input"].contains(&name) => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    let count = |name: &str| tags.iter().filter(|tag| tag.name == name).count();
    assert_eq!([count("script"), count("style")], [2, 1]);
    assert!([1, 3].contains(&count("input")));
    assert!(tags.iter().filter(|tag| tag.name == "script").all(|tag| tag.attributes.is_empty()
        || tag.attributes.contains(&("type".into(), "application/json".into()))));
    for text in texts {
        let seen = unescaped(&text);
        let unseen = |c: char| c.is_control() && c != '\n' && c != '\t';
        assert!(!seen.contains(unseen), "{seen:?}");
        assert!(!seen.contains(['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}']), "{seen:?}");
    }
}
