//! JSON objects that keep the order of their keys and the exact spelling of their values, such as the digits
//! of a number.

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::value::{RawValue, to_raw_value};
use std::{collections::BTreeMap, fmt};

/// A JSON object that keeps the order and the spelling of its keys and values. If a key occurs twice, the
/// last value counts, at the place of the first.
#[derive(Debug, Clone, Default)]
pub struct Object(Vec<(String, Box<RawValue>)>);

impl Object {
    /// Parses a JSON object. Returns `None` if the text is another value or not JSON.
    #[must_use]
    pub fn parse(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// Returns the value of a key as JSON text, or `None` if the object lacks the key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == key).map(|(_, value)| value.get())
    }

    /// Returns the string value of a key, or `None` if the object lacks the key or the value is not a string.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<String> {
        serde_json::from_str(self.get(key)?).ok()
    }

    /// Sets the value of a key, in place or at the end. Does nothing if the value is not JSON.
    pub fn set(&mut self, key: &str, json: String) {
        if let Ok(value) = RawValue::from_string(json) {
            self.insert(key.into(), value);
        }
    }

    /// Appends a key that the object lacks. Does nothing if the value is not JSON.
    pub fn push(&mut self, key: String, json: String) {
        if let Ok(value) = RawValue::from_string(json) {
            self.0.push((key, value));
        }
    }

    /// Sets a key to a string.
    pub fn set_text(&mut self, key: &str, text: &str) {
        if let Ok(value) = to_raw_value(text) {
            self.insert(key.into(), value);
        }
    }

    /// Removes a key. Returns true if the object had it.
    pub fn remove(&mut self, key: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|(own, _)| own != key);
        self.0.len() < before
    }

    /// Iterates over keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.get()))
    }

    /// Returns the object as JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Replaces the value of a key, or appends the key.
    pub fn insert(&mut self, key: String, value: Box<RawValue>) {
        match self.0.iter_mut().find(|(own, _)| *own == key) {
            Some(known) => known.1 = value,
            None => self.0.push((key, value)),
        }
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let mut all: Vec<(String, Box<RawValue>)> = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
            // The index of places makes this linear; a search in `all` would be quadratic in the number of
            // keys.
            match places.get(&key) {
                Some(at) => all[*at].1 = value,
                None => {
                    places.insert(key.clone(), all.len());
                    all.push((key, value));
                }
            }
        }
        Ok(Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_numbers_keep_their_spelling() {
        let json = r#"{"b":1.0,"a":[1e2,{"y":1,"x":-0}],"":null}"#;
        assert_eq!(Object::parse(json).unwrap().to_json(), json);
        assert_eq!(Object::parse(r#"{"a":1,"b":2,"a":3}"#).unwrap().to_json(), r#"{"a":3,"b":2}"#);
        assert!(Object::parse("[1]").is_none());
        let mut object = Object::parse(json).unwrap();
        object.set("a", "{".into());
        object.set_text("c", "\"");
        assert!(object.remove("b") && !object.remove("b"));
        assert_eq!(object.to_json(), r#"{"a":[1e2,{"y":1,"x":-0}],"":null,"c":"\""}"#);
        assert_eq!(object.text("c").as_deref(), Some("\""));
        assert_eq!(object.text(""), None);
    }
}
