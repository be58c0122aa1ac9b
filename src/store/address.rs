//! Where a store is: `sqlite:FILE` or `postgres://…`.

use crate::error::{Error, Repr};

/// The address of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// The path of a file.
    Sqlite(String),
    /// A connection string, with its password: never printed.
    Postgres(String),
}

/// What stands in an error for an address that is none: it may hold a password.
const PLACE: &str = "address of a store";

impl Address {
    /// Whether a text names a store rather than a file.
    pub(super) fn is_one(text: &str) -> bool {
        ["sqlite:", "postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// What is to be said where the database of an address is no part of this program.
    #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
    pub(super) fn not_built(&self) -> Error {
        let (place, feature) = match self {
            Self::Sqlite(path) => (format!("sqlite:{path}"), "sqlite"),
            Self::Postgres(_) => ("PostgreSQL".into(), "postgres"),
        };
        let detail = format!("this program was built without it; build it with the feature `{feature}`");
        Error::new(Repr::Store { place, detail })
    }

    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let fault = |detail: &str| Error::new(Repr::Store { place: PLACE.into(), detail: detail.into() });
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path {
                "" => Err(fault("names no file; expected sqlite:FILE")),
                _ if path.contains('\0') => Err(fault("holds a NUL character; expected sqlite:FILE")),
                // SQLite takes this name for a database in memory, where nothing would be kept.
                _ if path.starts_with(':') => Ok(Self::Sqlite(format!("./{path}"))),
                _ => Ok(Self::Sqlite(path.into())),
            };
        }
        if Self::is_one(text) {
            return Ok(Self::Postgres(text.into()));
        }
        Err(fault("is not understood; expected sqlite:FILE or postgres://USER:PASSWORD@HOST:PORT/DATABASE"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_files_and_servers() {
        let file = |path: &str| Some(Address::Sqlite(path.into()));
        for (text, expected) in [
            ("sqlite:a.db", file("a.db")),
            ("sqlite:///srv/a.db", file("/srv/a.db")),
            ("sqlite:file:a.db?mode=memory", file("file:a.db?mode=memory")),
            ("sqlite::memory:", file("./:memory:")),
            ("postgres://u:p@h/d", Some(Address::Postgres("postgres://u:p@h/d".into()))),
            ("sqlite:", None),
            ("sqlite:a\0b", None),
            ("a.db", None),
            ("mysql://u:secret@h/d", None),
        ] {
            let parsed = Address::parse(text);
            if let Err(error) = &parsed {
                assert!(!error.to_string().contains("secret"), "{error}");
            }
            assert_eq!(parsed.ok(), expected, "{text}");
            assert_eq!(Address::is_one(text), text.starts_with("sqlite:") || text.starts_with("postgres:"));
        }
    }
}
