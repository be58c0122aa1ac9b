//! The messages of a session without `messages`: request bodies of providers, and `ShareGPT`.

use super::{gemini, place::Place, responses, sharegpt, wire};
use crate::{error::Error, scan};
use context_window::{Message, WireFormat, text::plain};
use serde_json::value::RawValue;

/// The content of such a session.
#[derive(Default)]
pub(super) struct Logged {
    pub(super) wire_format: Option<WireFormat>,
    pub(super) instructions: Vec<String>,
    pub(super) messages: Vec<Message>,
    pub(super) is_sharegpt: bool,
    /// Notes on values that are not read.
    pub(super) ignored: Vec<String>,
}

impl Logged {
    pub(super) fn read(
        place: Place<'_>,
        session: &wire::Session,
        is_lenient: bool,
    ) -> Result<Option<Self>, Error> {
        let (key, wire_format, read) = match (&session.contents, &session.input) {
            (Some(contents), _) => ("contents", WireFormat::Gemini, gemini::messages(contents)),
            (None, Some(input)) => ("input", WireFormat::OpenAiResponses, responses::messages(input)),
            (None, None) => return Self::sharegpt(place, session, is_lenient),
        };
        let messages = read.map_err(|fault| fault_at(place, key, fault))?;
        let instructions = Self::instructions(place, session, is_lenient)?;
        Ok(Some(Self { wire_format: Some(wire_format), instructions, messages, ..Self::default() }))
    }

    /// Returns the system texts outside the messages. Returns an error if one of them has text that is not
    /// read, unless the reading is lenient.
    fn instructions(
        place: Place<'_>,
        session: &wire::Session,
        is_lenient: bool,
    ) -> Result<Vec<String>, Error> {
        let config = gemini::config(session);
        let of_gemini = session.system_instruction.as_deref().or(config.system_instruction.as_deref());
        let of_openai = session.instructions.as_deref();
        let mut all = Vec::new();
        for (key, raw) in [("instructions", of_openai), ("systemInstruction", of_gemini)] {
            let Some(raw) = raw else { continue };
            let texts = match key {
                "instructions" => serde_json::from_str(raw.get()).ok().into_iter().collect(),
                _ => gemini::texts(raw),
            };
            // A text under another key than `text` would be lost without an error (lossless reading, J3).
            if !is_lenient && scan::find_missing(raw.get(), &texts).is_some() {
                return Err(place
                    .fault(key, "contains text that is not read; expected a string, or parts with `text`"));
            }
            all.extend(texts);
        }
        Ok(all)
    }

    /// Returns the messages of a JSON array of Gemini's `contents` or of `input` items.
    pub(super) fn items(
        place: Place<'_>,
        json: &str,
        wire_format: WireFormat,
    ) -> Result<Vec<Message>, Error> {
        let list: &RawValue = serde_json::from_str(json)
            .map_err(|error| Error::input(place.name, plain::words(&error.to_string())))?;
        let read = match wire_format {
            WireFormat::Gemini => gemini::messages(list),
            _ => responses::messages(list),
        };
        read.map_err(|fault| fault_at(place, "", fault))
    }

    /// Reads `conversations` as `ShareGPT`. Returns `None` for another value, because logs use this key for
    /// other things.
    fn sharegpt(place: Place<'_>, session: &wire::Session, is_lenient: bool) -> Result<Option<Self>, Error> {
        let Some(turns) = session.conversations.as_deref().and_then(sharegpt::turns) else { return Ok(None) };
        let read = sharegpt::messages(&turns, is_lenient)
            .map_err(|fault| fault_at(place, "conversations", fault))?;
        let (messages, ignored) = read;
        Ok(Some(Self { messages, is_sharegpt: true, ignored, ..Self::default() }))
    }
}

fn fault_at(place: Place<'_>, key: &str, (at, detail): (Option<usize>, String)) -> Error {
    let at = at.map(|at| format!("[{at}]")).unwrap_or_default();
    place.fault(&format!("{key}{at}"), &plain::words(&detail))
}
