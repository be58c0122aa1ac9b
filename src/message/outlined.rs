//! Messages whose texts were left in a store: what the shape of a conversation needs of them, and no more.

use super::Message;
use {
    super::{Role, ToolCall},
    crate::item::ItemId,
};

/// What is known of the texts that were left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub struct Sizes {
    /// Upper bound in bytes of what is sent (`meter::bytes`).
    pub bytes: u64,
    /// Likewise, sent in the user role (`meter::bytes_of_a_user`).
    pub bytes_of_a_user: u64,
    /// Whether there is nothing in it ([`Message::is_empty`]).
    pub is_empty: bool,
    /// The checksum of its entry, by which its text is known again.
    pub entry: u64,
}

impl Message {
    /// Whether its texts are here. They are not where `SessionStore::load_active` of the crate
    /// `context-window-store` left those of an archived message in the store: then its text, parts and
    /// reasoning are empty, and so are the arguments of its calls. A plan that needs them fails with
    /// [`ErrorKind::NotLoaded`](crate::ErrorKind::NotLoaded), and such a message cannot be serialised.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.sizes().is_none()
    }

    #[doc(hidden)]
    #[must_use]
    pub fn sizes(&self) -> Option<Sizes> {
        self.extra().and_then(|extra| extra.rare.sizes)
    }

    /// A message without its texts.
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
