//! Values of attributes: typed as in OTLP, as JSON, or as a string that contains JSON.

use super::{Fault, Node, Reading};
use crate::foreign::node::Fields;
use serde_json::{Map, Value};

/// Returns attributes as a JSON object. OTLP has a list of keys with typed values.
pub(super) fn plain(node: &Node<'_>) -> Result<String, Fault> {
    if !node.is_list() {
        return Ok(node.json().to_owned());
    }
    let mut object = Map::new();
    for entry in node.list()? {
        let entry = entry.object()?;
        object.insert(entry.need("key")?.text()?, any_value(&entry.need("value")?)?);
    }
    Ok(Value::Object(object).to_string())
}

/// Returns an OTLP value as JSON.
pub(super) fn any_value(node: &Node<'_>) -> Result<Value, Fault> {
    node.check_depth()?;
    let fields = node.object()?;
    let Some(name) = fields.names().next().map(str::to_owned) else { return Ok(Value::Null) };
    let text = |key| fields.need(key)?.name();
    Ok(match name.as_str() {
        "stringValue" => fields.need("stringValue")?.text()?.into(),
        "boolValue" => fields.is_true("boolValue").into(),
        // OTLP writes 64-bit integers as strings.
        "intValue" => serde_json::from_str(&text("intValue")?).map_err(|_| node.expected("a number"))?,
        "doubleValue" | "bytesValue" => {
            let value = fields.first(&["doubleValue", "bytesValue"]);
            value.and_then(|value| serde_json::from_str(value.json()).ok()).unwrap_or_default()
        }
        "arrayValue" => {
            let inner = fields.need("arrayValue")?.object()?;
            let values = inner.get("values").map(|values| values.list()).transpose()?.unwrap_or_default();
            inner.finish(&mut Reading::default())?;
            Value::Array(values.iter().map(any_value).collect::<Result<_, _>>()?)
        }
        "kvlistValue" => {
            let inner = fields.need("kvlistValue")?.object()?;
            let values = inner.get("values").map_or_else(|| Ok("{}".to_owned()), |values| plain(&values))?;
            inner.finish(&mut Reading::default())?;
            serde_json::from_str(&values).unwrap_or_default()
        }
        _ => return Err(node.fault(format!("is an OTLP value of the unknown kind `{name}`"))),
    })
}

/// The value of an attribute: JSON, possibly from inside a string, and its path.
pub(super) struct Inside {
    json: String,
    path: String,
}

impl Inside {
    pub(super) fn node(&self) -> Node<'_> {
        Node::at(&self.json, &self.path)
    }
}

/// Returns the value of an attribute. Returns `None` if the attribute is missing.
pub(super) fn get(fields: &Fields<'_>, key: &'static str) -> Option<Inside> {
    let node = fields.get(key)?;
    let json = node.text().unwrap_or_else(|_| node.json().to_owned());
    Some(Inside { json, path: node.path().to_owned() })
}
