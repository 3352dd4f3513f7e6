//! JSON as a tree, for the cards of an index.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A value. What a card never has, such as a fraction, is read as null.
#[derive(Debug)]
pub(super) enum Json<'a> {
    Null,
    /// An integer; a negative one in two's complement. A boolean is 0 or 1.
    Number(u64),
    Text(Cow<'a, str>),
    List(Vec<Self>),
    Object(Vec<(Self, Self)>),
}

/// What a field that is not there reads as.
const NULL: &Json<'static> = &Json::Null;

impl<'a> Json<'a> {
    /// Reads a value.
    ///
    /// # Errors
    /// The text is no JSON.
    pub(super) fn parse(text: &'a [u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| error.to_string())
    }

    /// A field of an object; null if there is none.
    pub(super) fn get(&self, name: &str) -> &Self {
        let Self::Object(fields) = self else { return NULL };
        let is_wanted = |key: &Self| matches!(key, Self::Text(key) if key == name);
        fields.iter().find(|(key, _)| is_wanted(key)).map_or(NULL, |(_, value)| value)
    }

    pub(super) fn number(&self) -> Option<u64> {
        if let Self::Number(number) = *self { Some(number) } else { None }
    }

    pub(super) fn str(&self) -> &str {
        if let Self::Text(text) = self { text } else { "" }
    }

    pub(super) fn list(&self) -> &[Self] {
        if let Self::List(list) = self { list } else { &[] }
    }

    /// The number of a field; 0 if there is none.
    pub(super) fn count(&self, name: &str) -> u64 {
        self.get(name).number().unwrap_or(0)
    }

    /// The text of a field; empty if there is none.
    pub(super) fn text(&self, name: &str) -> String {
        self.get(name).str().to_owned()
    }

    /// The numbers of a list in a field.
    pub(super) fn numbers(&self, name: &str) -> Vec<u64> {
        self.get(name).list().iter().map(|value| value.number().unwrap_or(0)).collect()
    }

    /// The texts of a list in a field.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        self.get(name).list().iter().map(|value| value.str().to_owned()).collect()
    }
}

impl<'de> Deserialize<'de> for Json<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Tree)
    }
}

struct Tree;

impl<'de> Visitor<'de> for Tree {
    type Value = Json<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value.cast_unsigned()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(text.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(text.to_owned().into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Json<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element()? {
            list.push(value);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<Json<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = values.next_entry()? {
            fields.push(field);
        }
        Ok(Json::Object(fields))
    }
}
