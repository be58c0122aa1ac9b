//! The path to the value at which parsing of a JSON text failed, such as `messages[3].role`.
//!
//! A deserializer that tracks the path is compiled again for every type that is read. All these copies were
//! an eighth of the library's code. So each text is parsed by the plain deserializer. After an error, the
//! path is found by parsing the text again up to the error, and by parsing that beginning with other endings.

use serde_json::Error;

/// A function that parses a text again and returns only its error.
pub(super) type Read<'a> = &'a dyn Fn(&str) -> Result<(), Error>;

/// The position at the end of a partial JSON text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Before or inside the key of an object.
    Key,
    /// After a key.
    Colon,
    /// Before a value.
    Value,
    /// Inside a string, a number or a literal.
    Inside,
    /// After a value.
    End,
}

/// An object or array that is not closed yet.
struct Open {
    /// The byte offset of its bracket.
    start: usize,
    step: Step,
}

/// The current entry of an object or array: its key or index.
#[derive(Clone)]
enum Step {
    Key(String),
    Index(usize),
}

/// Returns the path to the value that `read` refused in `text`. The path of the whole text is `.`.
pub(super) fn to_error(error: &Error, text: &str, read: Read<'_>) -> String {
    let sound = if error.is_eof() { text.len() } else { sound_end(error, text, read) };
    let (open, position) = walk(&text[..sound]);
    let Some(innermost) = open.last() else { return ".".into() };
    let next = text.as_bytes().get(sound);
    let is_enum = || read(&format!("{}}}", &text[..=innermost.start])).is_err_and(|error| error.is_syntax());
    let last = match (&innermost.step, position) {
        (Step::Index(_), Position::Value) if matches!(next, None | Some(b']')) => None,
        (step, Position::Inside | Position::Value) => Some(step.clone()),
        (step, Position::End) if is_number(error, next) => Some(step.clone()),
        (step, Position::Colon) if error.is_data() => Some(step.clone()),
        (Step::Key(_), Position::Key) if error.to_string().starts_with("unknown field") => {
            walk(&text[..=sound]).0.pop().map(|object| object.step)
        }
        // An enum cannot be `{}`. Its key is the variant, and the deserializer records no step before it.
        (Step::Key(_), Position::Key | Position::End) if !error.is_data() && !is_enum() => {
            Some(Step::Key("?".into()))
        }
        _ => None,
    };
    let inside = if error.is_data() { refused_content(error, text, sound, read) } else { None };
    // Ignored values and raw values have no path inside.
    let known = if error.is_data() {
        // A type error is never inside an ignored value, so all open objects belong to the path.
        open.len()
    } else {
        open.partition_point(|open| !is_ignored(&text[..open.start], read))
    };
    let (parents, last) = if known < open.len() { (known, None) } else { (known - 1, last) };
    let steps = open.into_iter().take(parents).map(|open| open.step);
    let steps: Vec<Step> = steps.chain(last).chain(inside).collect();
    if steps.is_empty() {
        return ".".into();
    }
    let mut path = String::new();
    for (depth, step) in steps.into_iter().enumerate() {
        match step {
            Step::Index(index) => path.extend(["[", &index.to_string(), "]"]),
            Step::Key(key) if depth == 0 => path = key,
            Step::Key(key) => path.extend([".", &key]),
        }
    }
    path
}

/// Returns the end of the longest beginning of `text` whose only fault is its missing end. The next character
/// is wrong.
///
/// The position of a type error is that of the deserializer, which may be after the next comma or bracket.
/// The search moves back from it in doubling steps and then bisects, so it parses O(log n) times.
fn sound_end(error: &Error, text: &str, read: Read<'_>) -> usize {
    let is_sound = |end: usize| read(&text[..end]).map_or_else(|error| error.is_eof(), |()| true);
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let stood = lines.map(str::len).sum::<usize>() + error.column();
    let (mut sound, mut step) = (text.floor_char_boundary(stood), 1);
    let mut wrong = text.ceil_char_boundary(stood + 1);
    while !is_sound(sound) {
        wrong = sound;
        sound = text.floor_char_boundary(sound.saturating_sub(step));
        step *= 2;
    }
    loop {
        // Invariant: the text up to `sound` is a valid beginning, and the text up to `wrong` is not.
        let between = text.floor_char_boundary(sound.midpoint(wrong));
        let between = if between > sound { between } else { text.ceil_char_boundary(sound + 1) };
        if between >= wrong {
            return sound;
        }
        if is_sound(between) { sound = between } else { wrong = between }
    }
}

/// Returns the variant of an enum with wrong or missing content, if the deserializer reached the content.
///
/// Some types have one error for everything, including a missing end. For these the text seems wrong from its
/// colon or bracket on.
fn refused_content(error: &Error, text: &str, sound: usize, read: Read<'_>) -> Option<Step> {
    let key = |name: &str| serde_json::from_str(name).ok().map(Step::Key);
    if error.to_string().starts_with("invalid type: unit variant") {
        return key(&text[text[..sound].rfind('"')?..=sound]);
    }
    let value = text[sound..].trim_start_matches(':').trim_start();
    let (name, content) = match value.strip_prefix('{').map(str::trim_start) {
        Some(entry) => {
            let (name, rest) = entry.split_at(string_length(entry)?);
            (name, rest.trim_start().strip_prefix(':')?.trim_start())
        }
        None => (&value[..string_length(value)?], ""),
    };
    let before = &text[..text.len() - value.len()];
    let fits = |content: &str| {
        read(&format!("{before}{{{name}:{content}}}")).map_or_else(|error| error.is_eof(), |()| true)
    };
    let after = content.trim_start_matches(|c: char| c.is_ascii_digit() || ".eE".contains(c));
    let is_refused = !fits(&content[..content.len() - after.len()]) && ["1", "null"].into_iter().any(fits);
    if is_refused { key(name) } else { None }
}

/// Checks whether the error is in a number that continues with the next character.
fn is_number(error: &Error, next: Option<&u8>) -> bool {
    let message = error.to_string();
    let goes_on = matches!(next, Some(b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    (error.is_data() && goes_on)
        || message.starts_with("invalid number")
        || message.starts_with("number out of range")
}

/// Checks whether the deserializer ignores a value after `before`. Every type refuses a number as large as
/// `1e999`, so it is accepted only if it is ignored.
fn is_ignored(before: &str, read: Read<'_>) -> bool {
    read(&format!("{before}1e999")).is_err_and(|error| error.is_eof())
}

/// Returns the objects and arrays that are open at the end of `text`, and the position in the innermost one.
fn walk(text: &str) -> (Vec<Open>, Position) {
    let (mut open, mut position, mut at) = (Vec::<Open>::new(), Position::Value, 0);
    while let Some(byte) = text.as_bytes().get(at) {
        let start = at;
        at += 1;
        match byte {
            b'{' => {
                open.push(Open { start, step: Step::Key(String::new()) });
                position = Position::Key;
            }
            b'[' => open.push(Open { start, step: Step::Index(0) }),
            b'}' | b']' => {
                open.pop();
                position = Position::End;
            }
            b',' => {
                position = match open.last_mut().map(|open| &mut open.step) {
                    Some(Step::Index(index)) => {
                        *index += 1;
                        Position::Value
                    }
                    _ => Position::Key,
                }
            }
            b':' => position = Position::Value,
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'"' => {
                let Some(length) = string_length(&text[start..]) else {
                    let is_key = position == Position::Key;
                    return (open, if is_key { Position::Key } else { Position::Inside });
                };
                at = start + length;
                match open.last_mut() {
                    Some(object) if position == Position::Key => {
                        let key = &text[start..at];
                        object.step = Step::Key(serde_json::from_str(key).unwrap_or_else(|_| key.into()));
                        position = Position::Colon;
                    }
                    _ => position = Position::End,
                }
            }
            _ => {
                let ends = |c: char| !(c.is_alphanumeric() || matches!(c, '+' | '-' | '.'));
                let word = text[start..].split(ends).next().unwrap_or_default();
                at = start + word.len().max(1);
                // A partial literal, or a number that ends with a point or sign, still lacks its end.
                let whole = matches!(word, "true" | "false" | "null")
                    || word.ends_with(|last: char| last.is_ascii_digit());
                position = if whole { Position::End } else { Position::Inside };
            }
        }
    }
    (open, position)
}

/// Returns the length in bytes of the string at the start of `text`, quotes included. Returns `None` if the
/// string does not end.
fn string_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map(|end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::super::wire::{Message, Session};
    use super::*;
    use serde::de::DeserializeOwned;

    /// A session with a value of every kind: parts as raw text, enums, tuples, and an object that is ignored.
    const SESSION: &str = r#"{"id": "s", "limits": {"budget": 400}, "system": [{"id": "r", "text": "x"}],
 "tools": [{"type": "function", "function": {"name": "look", "parameters": {"a": [1]}}}], "state": [{"text": "\u00e9"}],
 "pinned": [{"id": 5, "text": "t", "priority": "high", "ttl": {"limited": 3}}], "": {"a": [1, {"b": null}]},
 "messages": [{"role": "user", "content": [{"type": "text", "text": "hé"}], "id": "m\"0"},
  {"role": "assistant" , "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": "{}"}}], "pinned": true}],
 "rag": [{"id": "d", "text": "t", "score": 0.5, "span": [0, 2], "date": "2026-11-27"}, {"text": "t", "score": -1.5e3, "id": "e" } ],
 "passages": {"words": [{"id": "d", "text": "t", "score": 0.5, "position": 1}], "": []},
 "previous": {"target": {"model": "m", "provider": "p"}, "prompt": [["i", "h", 3]], "lost": [{"id": "i"}]},
 "context_window": {"version": 1, "options": {"rag": {"max_items": 3}}, "tokenizer": "o", "events": [
  {"version": 1, "entry": {"event": {"sent_with": {"question": "q", "documents": [["d", "t"]]}}}},
  {"version": 1, "entry": {"event": {"unpinned": "i"} } }, {"version": 1, "entry": {"event": {"level_crossed": {"level": "x"}}}}]}}"#;

    /// Parses a text with both deserializers and compares errors and paths. Returns whether the text has an
    /// error.
    fn compare<T: DeserializeOwned>(text: &str) -> bool {
        let read = |text: &str| T::deserialize(&mut serde_json::Deserializer::from_str(text)).map(drop);
        let tracked: Result<T, _> =
            serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text));
        let Err(tracked) = tracked else { return false };
        let error = read(text).unwrap_err();
        assert_eq!(error.to_string(), tracked.inner().to_string());
        assert_eq!(to_error(&error, text, &read), tracked.path().to_string(), "{error} in {text}");
        true
    }

    /// Returns broken copies of a text for each start and end of a token: cut off there, without the token,
    /// and with another token in its place.
    fn broken(text: &str) -> Vec<String> {
        const OTHERS: &str = " null true 7 -7 300.5 1e999 01 1.x tru nulx \"\" \"id\" \"zz\" \"\\q\" \"\t\" [] [1,[2]] {} \
            {\"a\":1} {\"id\":\"\"} x é , \"limited\" \"message\" \"sent\"";
        let starts = (0..text.len()).filter(|&at| {
            let before = at.checked_sub(1).map(|at| text.as_bytes()[at]);
            let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-\\".contains(&byte);
            text.is_char_boundary(at) && !(before.is_some_and(inside) && inside(text.as_bytes()[at]))
        });
        let starts: Vec<usize> = starts.chain([text.len()]).collect();
        let mut all = Vec::new();
        for (nth, &start) in starts.iter().enumerate() {
            all.push(text[..start].to_owned());
            for &end in starts[nth..].iter().take(4) {
                all.extend(
                    OTHERS.split(' ').map(|other| format!("{}{other}{}", &text[..start], &text[end..])),
                );
            }
        }
        all
    }

    #[test]
    fn path_equals_that_of_a_tracking_deserializer() {
        let all = broken(SESSION);
        let wrong = all.iter().filter(|text| compare::<Session>(text)).count();
        assert!(wrong > 10_000, "{wrong} of {}", all.len());
        let list =
            r#"[{"role": "user", "documents": [{"id": "d", "text": "t", "score": 1}]}, {"role": "tool"} ]"#;
        assert!(broken(list).iter().filter(|text| compare::<Vec<Message>>(text)).count() > 1_000);
    }
}
