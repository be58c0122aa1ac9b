//! Outlines of messages. A store keeps them in addition to the texts, to load a conversation without archived
//! texts. They contain roles, ids and sizes.

use context_window::{
    ItemId, Message, Role, ToolCall,
    events::checksum::{checksum, has_checksum},
    message::Sizes,
    provider::meter,
};
use serde::{Deserialize, Serialize};

/// A message without its texts. The field names are the JSON keys in the column `outline`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Outline {
    role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<ItemId>,
    /// The id and name of each tool call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<(String, String)>,
    /// The id of the tool call that a tool result answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answers: Option<String>,
    /// True if the message is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    empty: bool,
    /// The checksum of the entry.
    entry: String,
    /// The size of the message in bytes.
    bytes: u64,
    /// The size as a user message in bytes. `None` if it equals `bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes_of_a_user: Option<u64>,
}

impl Outline {
    /// Creates the outline of a message whose entry has the checksum `sum`.
    pub(super) fn from_message(message: &Message, sum: &str) -> Self {
        let calls = message.tool_calls().iter().map(|call| (call.id.clone(), call.name.clone()));
        let (bytes, of_a_user) = (meter::bytes(message), meter::bytes_of_a_user(message));
        Self {
            role: message.role(),
            id: message.id().cloned(),
            calls: calls.collect(),
            answers: message.answers().map(str::to_owned),
            empty: message.is_empty(),
            entry: sum.into(),
            bytes,
            bytes_of_a_user: Some(of_a_user).filter(|of_a_user| *of_a_user != bytes),
        }
    }

    /// Returns a message without texts that has this outline.
    pub(super) fn into_message(self) -> Message {
        let entry = number(&self.entry);
        let call = |(id, name): (String, String)| ToolCall::new(id, name, "");
        let sizes = Sizes {
            bytes: self.bytes,
            bytes_of_a_user: self.bytes_of_a_user.unwrap_or(self.bytes),
            is_empty: self.empty,
            entry,
        };
        let calls = self.calls.into_iter().map(call).collect();
        Message::outlined(self.role, self.id, calls, self.answers, sizes)
    }

    /// Returns the text of the column: a checksum over the entry number and the outline, followed by the
    /// outline as JSON.
    pub(super) fn written(&self, n: u64) -> serde_json::Result<String> {
        let json = serde_json::to_string(self)?;
        Ok(format!("{} {json}", checksum(n, &json)))
    }

    /// Parses the column of entry `n`. Returns a description of the problem if it is damaged.
    pub(super) fn read(n: u64, text: &str) -> Result<Self, String> {
        let (sum, json) = text.split_once(' ').ok_or("its outline has no checksum")?;
        if !has_checksum(n, json, sum) {
            return Err("its outline does not match its checksum".into());
        }
        serde_json::from_str(json).map_err(|error| format!("its outline cannot be read: {error}"))
    }
}

/// Checks if a message was created from the outline of the entry with this checksum.
pub(super) fn is_outline_of(message: &Message, sum: &str) -> bool {
    message.sizes().is_some_and(|sizes| sizes.entry == number(sum))
}

/// Returns the 16 hexadecimal digits of a checksum as a number. An invalid checksum becomes 0, which matches
/// no entry.
fn number(sum: &str) -> u64 {
    u64::from_str_radix(sum, 16).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use context_window::{Part, message::Reasoning};

    #[test]
    fn outline_keeps_the_data_of_turns_and_bounds() {
        for message in [
            Message::user("Which <kettle>?").with_id("q"),
            Message::user("  "),
            Message::user("").with_parts([Part::Image { url: "x".into(), detail: None }]),
            Message::user("run").with_tool_calls([ToolCall::new("u", "f", "{\"a\":\"<&>\"}")]),
            Message::assistant("").with_tool_calls([
                ToolCall::new("a", "f", "{}"),
                ToolCall::new("b", "g", "no object \"here\""),
            ]),
            Message::assistant("yes").with_name("Ada").with_reasoning(Reasoning::from("hm")),
            Message::assistant(""),
            Message::tool("a", ""),
            Message::tool("b", "a \"long\" <answer>").into_failed(),
            Message::system("rules <note>"),
        ] {
            let sum = checksum(7, message.text());
            let written = Outline::from_message(&message, &sum).written(7).unwrap();
            let stub = Outline::read(7, &written).unwrap().into_message();
            assert!(message.is_loaded() && !stub.is_loaded());
            assert_eq!(Outline::from_message(&stub, &sum), Outline::from_message(&message, &sum));
            assert!(
                is_outline_of(&stub, &sum)
                    && !is_outline_of(&stub, "0123456789abcdef")
                    && !is_outline_of(&message, &sum)
            );
            assert_eq!(
                (stub.role(), stub.id(), stub.answers(), stub.is_empty()),
                (message.role(), message.id(), message.answers(), message.is_empty())
            );
            assert_eq!(
                (meter::bytes(&stub), meter::bytes_of_a_user(&stub)),
                (meter::bytes(&message), meter::bytes_of_a_user(&message))
            );
            assert!(stub.text().is_empty() && stub.parts().is_empty() && stub.reasoning().is_empty());
            assert!(serde_json::to_string(&stub).unwrap_err().to_string().contains("store"));
            // The outline of another entry, and a changed one.
            assert!(Outline::read(8, &written).is_err());
            assert!(Outline::read(7, &written.replace("bytes", "byte5")).is_err());
            assert!(Outline::read(7, "").is_err());
        }
    }
}
