//! Addresses of stores: `sqlite:FILE` or `postgres://…`.

use crate::error::{Error, Repr};

/// The parsed address of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// The path of a file.
    Sqlite(String),
    /// A connection string. It contains the password, so it is never printed.
    Postgres(String),
}

/// The place named in errors about an invalid address. The address itself may contain a password.
const PLACE: &str = "address of a store";

impl Address {
    /// Returns true if the text is the address of a store rather than the name of a file.
    pub(super) fn is_one(text: &str) -> bool {
        let begins =
            |scheme: &&str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
        ["sqlite:", "postgres://", "postgresql://"].iter().any(begins)
    }

    /// Returns the error for an address whose database this program was built without.
    #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
    pub(super) fn not_built(&self) -> Error {
        let (place, feature) = match self {
            Self::Sqlite(path) => (format!("sqlite:{path}"), "sqlite"),
            Self::Postgres(_) => ("PostgreSQL".into(), "postgres"),
        };
        let detail =
            format!("this program was built without this database; build it with the feature `{feature}`");
        Error::new(Repr::Store { place, detail })
    }

    /// Parses an address. Schemes may be in upper or lower case.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Store` if the scheme is unknown or the path is empty or contains a NUL character.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let fault = |detail: &str| Error::new(Repr::Store { place: PLACE.into(), detail: detail.into() });
        let (scheme, rest) = text.split_once(':').unwrap_or_default();
        if scheme.eq_ignore_ascii_case("sqlite") {
            let path = rest;
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path {
                "" => Err(fault("has no file name; expected sqlite:FILE")),
                _ if path.contains('\0') => Err(fault("contains a NUL character; expected sqlite:FILE")),
                // SQLite treats these names as in-memory databases, which keep nothing, or as URIs. A prefix
                // of `./` makes them ordinary files.
                _ if path.starts_with(':') || path.starts_with("file:") => {
                    Ok(Self::Sqlite(format!("./{path}")))
                }
                _ => Ok(Self::Sqlite(path.into())),
            };
        }
        if Self::is_one(text) {
            // The driver accepts only a lower-case scheme.
            return Ok(Self::Postgres(format!("{}:{rest}", scheme.to_ascii_lowercase())));
        }
        Err(fault("has an unknown form; expected sqlite:FILE or postgres://USER:PASSWORD@HOST:PORT/DATABASE"))
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
            ("sqlite:file:a.db?mode=memory", file("./file:a.db?mode=memory")),
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
            assert_eq!(Address::is_one(&text.to_uppercase()), Address::is_one(text));
        }
    }
}
