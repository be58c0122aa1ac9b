//! Answers with a list for each field in place of a list of hits.

use super::{FieldMap, at, shape};
use crate::error::Error;
use serde_json::Value;

impl FieldMap {
    /// Turns the lists of an answer with a list for each field into a list of hits.
    pub(super) fn rows(&self, whole: &Value) -> Result<Value, Error> {
        let fields = || {
            let required = self.id.iter().chain(&self.text).chain(&self.distance).chain(&self.score);
            let span = self.span.iter().flat_map(|(start, end)| [start, end]);
            required.chain(&self.source).chain(&self.position).chain(span).chain(&self.date)
        };
        let mut columns: Vec<(&str, &Vec<Value>)> = Vec::new();
        // `metadatas.source` is a key inside of the values of `metadatas`.
        for name in fields().map(|path| path.split('.').next().unwrap_or_default()) {
            let Some(column) = at(whole, name).and_then(Value::as_array) else { continue };
            // The outer list has one entry for each query.
            let column = match column.as_slice() {
                [Value::Array(only)] => only,
                [Value::Array(_), ..] => {
                    let detail =
                        format!("`{name}` has the results of {} queries; expected one", column.len());
                    return Err(Error::input(&self.name, detail));
                }
                _ => column,
            };
            columns.push((name, column));
        }
        // A list that is missing or null was not asked for, so its length does not matter.
        let length = columns.first().map_or(0, |(_, column)| column.len());
        if let Some((name, column)) = columns.iter().find(|(_, column)| column.len() != length) {
            let (first, _) = columns[0];
            let detail = format!(
                "`{name}` has {} values and `{first}` has {length}; expected equal numbers",
                column.len()
            );
            return Err(Error::input(&self.name, detail));
        }
        if columns.is_empty() {
            let looked: Vec<&str> = fields().map(String::as_str).collect();
            let detail =
                format!("no lists of fields; looked for {}, found {}", looked.join(", "), shape(whole));
            return Err(Error::input(&self.name, detail));
        }
        // Values of the same position belong to one hit.
        let row = |nth: usize| {
            columns.iter().map(|(name, column)| ((*name).to_owned(), column[nth].clone())).collect()
        };
        Ok(Value::Array((0..length).map(|nth| Value::Object(row(nth))).collect()))
    }
}
