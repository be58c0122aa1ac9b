//! The session of a page in pieces: the page changes some of them, and all others stay as they are written.
//!
//! A script would change numbers such as `1.0`, and the order of keys that are whole numbers, if it read and
//! wrote the session as a whole.

use anyhow::Result;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A JSON object, with the text of each value.
type Object = IndexMap<String, Box<RawValue>>;

/// A session file in pieces. Each piece is a JSON text.
#[derive(Debug, Serialize)]
pub(super) struct Pieces {
    /// The fields of the file that the page does not change.
    fields: Texts,
    limits: Texts,
    /// The lists of documents, each with its name, if it has one, and with the ids of its documents.
    lists: Vec<(Option<String>, Texts)>,
    /// The fields of `context_window` that the page does not change.
    own: Texts,
    events: Vec<String>,
}

/// JSON texts with their names.
type Texts = Vec<(String, String)>;

#[derive(Deserialize)]
struct Named {
    id: String,
}

impl Pieces {
    /// Reads a session file in the format of this project.
    pub(super) fn read(session: &str) -> Result<Self> {
        let mut fields: Object = serde_json::from_str(session)?;
        let mut own: Object = taken(&mut fields, "context_window")?;
        let limits: Object = taken(&mut fields, "limits")?;
        let events: Vec<Box<RawValue>> = taken(&mut own, "events")?;
        let lists = match fields.shift_remove("rag") {
            None => Vec::new(),
            Some(rag) if rag.get().starts_with('[') => {
                vec![(None, with_ids(serde_json::from_str(rag.get())?)?)]
            }
            Some(rag) => {
                let lists: IndexMap<String, Vec<Box<RawValue>>> = serde_json::from_str(rag.get())?;
                let with_name = |(name, list)| Ok((Some(name), with_ids(list)?));
                lists.into_iter().map(with_name).collect::<Result<_>>()?
            }
        };
        let events = events.iter().map(|event| event.get().to_owned()).collect();
        Ok(Self { fields: texts(&fields), limits: texts(&limits), lists, own: texts(&own), events })
    }

    /// Returns the options as the text of an options file.
    pub(super) fn options(&self) -> Result<String> {
        let tables = self.own.iter().find(|(name, _)| name == "options").map_or("{}", |(_, text)| text);
        let tables: toml::Table = serde_json::from_str(tables)?;
        Ok(toml::to_string(&tables)?)
    }
}

/// Removes a field of an object, and reads it.
fn taken<T: for<'t> Deserialize<'t>>(object: &mut Object, name: &str) -> Result<T> {
    let field = object.shift_remove(name);
    Ok(serde_json::from_str(field.as_ref().map_or("null", |field| field.get()))?)
}

fn texts(object: &Object) -> Texts {
    object.iter().map(|(name, value)| (name.clone(), value.get().to_owned())).collect()
}

/// Returns the JSON texts of documents with their ids.
fn with_ids(documents: Vec<Box<RawValue>>) -> Result<Texts> {
    let with_id = |document: Box<RawValue>| {
        let Named { id } = serde_json::from_str(document.get())?;
        Ok((id, document.get().to_owned()))
    };
    documents.into_iter().map(with_id).collect()
}
