//! What a session holds as JSON inside of texts, or as it came: each piece is looked into as a whole later
//! on, and all of them are sent in one body.

use context_window::{Message, Part, Tool, text::plain::grouped, text::size};

/// Where something is too large, and what it is.
pub(crate) type Fault = (String, String);

/// What has been met so far.
#[derive(Default)]
struct Sum {
    values: u64,
    opaque_bytes: u64,
}

/// Fails where a part of an unknown type, the arguments of a call or a schema holds more values than are
/// looked into, and where all of them together do.
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
            return Err((what(), size::too_many("with those before it, it", size::VALUES)));
        }
        Ok(())
    }

    fn opaque(&mut self, json: &str, what: impl Fn() -> String) -> Result<(), Fault> {
        self.opaque_bytes += json.len() as u64;
        if self.opaque_bytes > size::OPAQUE_BYTES {
            let most = grouped(size::OPAQUE_BYTES);
            return Err((
                what(),
                format!("with those before it, it takes more than {most} bytes; expected no more than that"),
            ));
        }
        Ok(())
    }
}
