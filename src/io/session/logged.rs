//! Request bodies of providers that have no `messages`.

use super::{gemini, place::Place, responses, wire};
use crate::{
    error::Error,
    message::{Message, WireFormat},
    text::plain,
};
use serde_json::value::RawValue;

/// What a body of another provider holds where there are no `messages`.
pub(super) struct Logged {
    pub(super) wire_format: WireFormat,
    pub(super) instructions: Vec<String>,
    pub(super) messages: Vec<Message>,
}

impl Logged {
    pub(super) fn read(place: Place<'_>, session: &wire::Session) -> Result<Option<Self>, Error> {
        let (key, wire_format, read) = match (&session.contents, &session.input) {
            (Some(contents), _) => ("contents", WireFormat::Gemini, gemini::messages(contents)),
            (None, Some(input)) => ("input", WireFormat::OpenAiResponses, responses::messages(input)),
            (None, None) => return Ok(None),
        };
        let fault = |(at, detail): (Option<usize>, String)| {
            let at = at.map(|at| format!("[{at}]")).unwrap_or_default();
            place.fault(&format!("{key}{at}"), &plain::words(&detail))
        };
        let messages = read.map_err(fault)?;
        let instruction = session.system_instruction.as_deref().map(gemini::texts);
        let text = |raw: &RawValue| serde_json::from_str::<String>(raw.get()).ok();
        let instructions = session.instructions.as_deref().and_then(text);
        let instructions = instructions.into_iter().chain(instruction.into_iter().flatten()).collect();
        Ok(Some(Self { wire_format, instructions, messages }))
    }
}
