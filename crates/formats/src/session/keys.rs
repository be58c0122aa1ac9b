//! The keys of an object, and those among them that are not read.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, IntoDeserializer, MapAccess, Visitor},
};
use std::fmt;

/// The keys of a session, whatever they hold.
#[derive(Default)]
pub(super) struct Keys(pub(super) Vec<String>);

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

/// The entries of an object on their way to who reads them, and beside it the keys that are none of the known ones.
pub(super) struct Watched<'a, A> {
    map: A,
    known: &'a [&'static str],
    unread: &'a mut Vec<String>,
}

impl<'a, A> Watched<'a, A> {
    pub(super) fn new(map: A, known: &'a [&'static str], unread: &'a mut Vec<String>) -> Self {
        Self { map, known, unread }
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Watched<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.map.next_key_seed(WatchedKey { seed, known: self.known, unread: self.unread })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

struct WatchedKey<'a, K> {
    seed: K,
    known: &'a [&'static str],
    unread: &'a mut Vec<String>,
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for WatchedKey<'_, K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<'de, K: DeserializeSeed<'de>> Visitor<'de> for WatchedKey<'_, K> {
    type Value = K::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<K::Value, E> {
        // More keys than any message has, and longer ones, are no slips of the hand.
        const MOST: usize = 32;
        const LONGEST: usize = 100;
        if !self.known.contains(&key) && key.len() <= LONGEST && self.unread.len() < MOST {
            self.unread.push(key.to_owned());
        }
        self.seed.deserialize(key.into_deserializer())
    }
}
