//! Limits on JSON inside the texts of a session and on parts kept as raw JSON. Each piece is parsed as a
//! whole later, and all of them are sent in one request body.

use context_window::{Message, Part, Tool, text::plain::grouped, text::size};

/// The place of a value that is too large, and a description of the excess.
pub(crate) type Fault = (String, String);

/// The totals of the values checked so far.
#[derive(Default)]
struct Sum {
    values: u64,
    opaque_bytes: u64,
}

/// Checks the size of parts of an unknown type, arguments of calls and schemas. Returns an error if one of
/// them, or all together, hold too many JSON values.
pub(crate) fn check(messages: &[Message], tools: &[Tool]) -> Result<(), Fault> {
    let mut sum = Sum::default();
    for (at, message) in messages.iter().enumerate() {
        let place = |what: &str| format!("message {at}: {what}");
        for part in message.parts() {
            if let Part::Opaque { json, .. } = part {
                sum.add(json, || place("a part of an unknown type"))?;
                sum.opaque(json, || place("a part of an unknown type"))?;
            }
        }
        for call in message.tool_calls() {
            sum.add(&call.arguments, || place("the arguments of a call"))?;
        }
    }
    for (at, tool) in tools.iter().enumerate() {
        sum.add(tool.hosted_json().unwrap_or(&tool.schema), || format!("tools[{at}]: its JSON"))?;
    }
    Ok(())
}

impl Sum {
    fn add(&mut self, json: &str, what: impl Fn() -> String) -> Result<(), Fault> {
        let mut tally = size::Tally::default();
        let known = tally.count_bytes(json.as_bytes(), size::VALUES_OF_A_TREE);
        known.map_err(|_| (what(), size::too_many("it", size::VALUES_OF_A_TREE)))?;
        self.values += tally.values();
        if self.values > size::VALUES {
            return Err((what(), size::too_many("together with the earlier ones, it", size::VALUES)));
        }
        Ok(())
    }

    fn opaque(&mut self, json: &str, what: impl Fn() -> String) -> Result<(), Fault> {
        // Opaque parts are sent unchanged, so their bytes are limited in addition to their values.
        self.opaque_bytes += json.len() as u64;
        if self.opaque_bytes > size::OPAQUE_BYTES {
            let most = grouped(size::OPAQUE_BYTES);
            return Err((
                what(),
                format!("together with the earlier ones, it is larger than {most} bytes; expected no more"),
            ));
        }
        Ok(())
    }
}
