//! Enums with a name in JSON and options: formatting and parsing by that name.

use crate::item::{Priority, Section};

/// Implements `Display` and `FromStr` for an enum by its `name()`.
macro_rules! by_name {
    ($type:ident, $what:literal, [$($variant:ident),+ $(,)?]) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        /// Parses the name used in JSON and options. For an unknown name, returns an error of kind `Input`
        /// that lists all names.
        impl std::str::FromStr for $type {
            type Err = crate::error::Error;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                let all = [$(Self::$variant),+];
                all.into_iter().find(|one| one.name() == name).ok_or_else(|| {
                    let names: Vec<&str> = all.iter().map(|one| one.name()).collect();
                    let expected = names.join(", ");
                    let name = crate::text::plain::short(name);
                    crate::error::Error::input($what, format!("`{name}` is unknown; expected one of: {expected}"))
                })
            }
        }
    };
}

pub(crate) use by_name;

by_name!(Section, "section", [SystemPinned, Conversation, Rag]);
by_name!(Priority, "priority", [Low, Normal, High]);
