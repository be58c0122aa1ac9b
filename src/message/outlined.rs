//! Messages whose texts remain in a store: only the fields that the structure of a conversation requires.

use super::Message;
use {
    super::{Role, ToolCall},
    crate::item::ItemId,
};

/// Facts about the texts of an outlined message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub struct Sizes {
    /// Upper bound in bytes of the sent text (`meter::bytes`).
    pub bytes: u64,
    /// The same bound if the message is sent in the user role (`meter::bytes_of_a_user`).
    pub bytes_of_a_user: u64,
    /// True if the message has no content ([`Message::is_empty`]).
    pub is_empty: bool,
    /// The checksum of the log entry, which identifies the text when it is loaded.
    pub entry: u64,
}

impl Message {
    /// Returns true if the texts of the message are loaded. `SessionStore::load_active` of the crate
    /// `context-window-store` does not load the texts of archived messages. Such a message has no text, parts
    /// or reasoning, and its calls have no arguments. A plan that needs the texts fails with
    /// [`ErrorKind::NotLoaded`](crate::ErrorKind::NotLoaded), and the message cannot be serialised.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.sizes().is_none()
    }

    /// Returns the sizes of an outlined message, or `None` if its texts are loaded.
    #[doc(hidden)]
    #[must_use]
    pub fn sizes(&self) -> Option<Sizes> {
        self.extra().and_then(|extra| extra.rare.sizes)
    }

    /// Creates a message without its texts.
    #[doc(hidden)]
    #[must_use]
    pub fn outlined(
        role: Role,
        id: Option<ItemId>,
        calls: Vec<ToolCall>,
        answers: Option<String>,
        sizes: Sizes,
    ) -> Self {
        Self::new(role, "").edit(|extra| {
            extra.id = id;
            extra.calls = calls.into();
            extra.answers = answers.map(Into::into);
            extra.rare.sizes = Some(sizes);
        })
    }
}
