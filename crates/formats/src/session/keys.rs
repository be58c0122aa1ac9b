//! The keys of an object, and the values of unknown keys.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, IntoDeserializer, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// The keys of an object, without their values.
#[derive(Default)]
pub(crate) struct Keys(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = Keys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
        let mut keys = Vec::new();
        while let Some((key, _)) = map.next_entry::<String, IgnoredAny>()? {
            keys.push(key);
        }
        Ok(Keys(keys))
    }
}

/// The keys of an object with their values as raw JSON.
#[derive(Default)]
pub(crate) struct KeysWithValues<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for KeysWithValues<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor).map(Self)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = map.next_entry()? {
            all.push(entry);
        }
        Ok(all)
    }
}

/// A key of an object, and its value if the key is unknown.
pub(crate) struct Key {
    pub(crate) name: Cow<'static, str>,
    pub(crate) unread: Option<Box<RawValue>>,
}

/// A map access that records all keys in their order, with the values of unknown keys, and passes only the
/// known entries on.
pub(crate) struct Watched<'a, A> {
    map: A,
    known: &'static [&'static str],
    keys: &'a mut Vec<Key>,
}

impl<'a, A> Watched<'a, A> {
    pub(crate) fn new(map: A, known: &'static [&'static str], keys: &'a mut Vec<Key>) -> Self {
        Self { map, known, keys }
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Watched<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.next_key_seed(KeySeed { known: self.known })? {
            match key {
                Cow::Borrowed(name) => {
                    self.keys.push(Key { name: name.into(), unread: None });
                    return seed.deserialize(name.into_deserializer()).map(Some);
                }
                Cow::Owned(name) => {
                    // The value is read here, so the derived reader never meets the unknown key.
                    let unread = Some(self.map.next_value()?);
                    self.keys.push(Key { name: name.into(), unread });
                }
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

struct KeySeed {
    known: &'static [&'static str],
}

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Cow<'static, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = Cow<'static, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Self::Value, E> {
        // A known key is returned as `Borrowed`; the caller distinguishes unknown keys by `Owned`.
        let known = self.known.iter().find(|known| **known == key);
        Ok(known.map_or_else(|| Cow::Owned(key.to_owned()), |known| Cow::Borrowed(*known)))
    }
}
