//! How the types of this module are read and written: what the macros stand on.
//!
//! A record is read in one pass, from the text straight into the place where it will stay ([`Record::fill`]): the
//! structs are large, and moving them cost more than parsing. A field of the wrong type ends that pass, and the message
//! is read again field by field ([`Record::from_fields`]), which cannot fail: what does not fit is kept in [`Extra`].

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Json;

/// An object's key or a tag, borrowed from the text when it has no escapes.
pub(crate) enum Key<'de> {
    Borrowed(&'de str),
    Owned(String),
}

impl Key<'_> {
    #[inline]
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }

    pub(crate) fn into_string(self) -> String {
        match self {
            Self::Borrowed(text) => text.into(),
            Self::Owned(text) => text,
        }
    }
}

impl<'de> Deserialize<'de> for Key<'de> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            #[inline]
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key::Borrowed(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key::Owned(text.into()))
            }

            fn visit_string<E>(self, text: String) -> Result<Key<'de>, E> {
                Ok(Key::Owned(text))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}

/// What a record held besides its known fields, and how it wrote "nothing".
///
/// Unknown fields are here under their own names, and so is a known field whose value had the wrong type. Whether a
/// known field was `null` or not there at all is remembered too, so that a record that was read is written as it was.
///
/// ```
/// use oarlock_proto::stream::{decode, Message};
///
/// let line = br#"{"type":"tool_progress","tool_name":"Bash","elapsed_time_seconds":"soon","mood":"fine"}"#;
/// let Ok(Message::ToolProgress(progress)) = decode(line) else { panic!("known type") };
/// assert_eq!(progress.tool_name, "Bash");
/// assert_eq!(progress.extra.get("mood").expect("kept").value(), "fine");
/// assert_eq!(progress.extra.get("elapsed_time_seconds").expect("kept").value(), "soon");
/// ```
#[derive(Clone, Default)]
pub struct Extra {
    /// One bit for each known field: an optional one that was `null`, another one that was not there.
    marks: u64,
    fields: Option<Box<Fields>>,
}

impl Extra {
    /// The field of that name; of several, the last.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.fields.as_ref()?.get(name)
    }

    /// All fields, in the order they were read.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.fields.iter().flat_map(|fields| &fields.0).map(|(key, value)| (key.as_str(), value))
    }

    /// No fields?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_none()
    }

    /// Adds a field, or replaces the one of that name.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Json>) {
        let name = name.into();
        self.remove(&name);
        self.push(name, value.into());
    }

    /// Takes a field out.
    pub fn remove(&mut self, name: &str) -> Option<Json> {
        let fields = self.fields.as_mut()?;
        let taken = fields.take(name);
        if fields.0.is_empty() {
            self.fields = None;
        }
        taken
    }

    #[cold]
    pub(crate) fn push(&mut self, name: String, value: Json) {
        self.fields.get_or_insert_default().0.push((name, value));
    }

    pub(crate) fn take_fields(&mut self) -> Fields {
        self.fields.take().map(|fields| *fields).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn mark(&mut self, at: u32) {
        self.marks |= 1 << at;
    }

    /// Marks all the fields of a set.
    #[inline]
    pub(crate) fn mark_all(&mut self, set: u64) {
        self.marks |= set;
    }

    #[inline]
    pub(crate) fn is_marked(&self, at: u32) -> bool {
        self.marks & 1 << at != 0
    }

    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))
    }
}

impl fmt::Debug for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The same fields. How "nothing" was written makes no difference.
impl PartialEq for Extra {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

/// An object's fields, in order, none of them read.
#[derive(Clone, Default)]
pub(crate) struct Fields(pub(crate) Vec<(String, Json)>);

impl Fields {
    /// The fields that are left in a map.
    pub(crate) fn rest<'de, A: MapAccess<'de>>(mut self, map: &mut A) -> Result<Self, A::Error> {
        while let Some(entry) = map.next_entry()? {
            self.0.push(entry);
        }
        Ok(self)
    }

    /// Takes out the fields of that name; the last one counts.
    pub(crate) fn take(&mut self, name: &str) -> Option<Json> {
        let at = self.0.iter().rposition(|(key, _)| key == name)?;
        let (_, value) = self.0.remove(at);
        self.0.retain(|(key, _)| key != name);
        Some(value)
    }

    /// The field of that name; of several, the last.
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    pub(crate) fn to_json(&self) -> Json {
        Json::write(self).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                Fields::default().rest(&mut map)
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// Something of a kind this version does not know.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Unknown {
    /// The name of its kind; empty when it did not say.
    pub tag: String,
    /// All of it (but for the tags of what it is part of).
    pub raw: Json,
}

impl Unknown {
    pub(crate) fn write_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let fields: Fields = self.raw.read().unwrap_or_default();
        fields.0.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))
    }
}

/// An object of the protocol.
pub(crate) trait Record: Default {
    /// Reads what is left of a map, after fields that came before the tag, into a record that is empty. A value of the
    /// wrong type is an error.
    fn fill<'de, A: MapAccess<'de>>(&mut self, before: Fields, map: &mut A) -> Result<(), A::Error>;
    /// Makes the best of fields read before. What does not fit is kept as it is.
    fn from_fields(fields: Fields) -> Self;
    fn write_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

impl<R: Record> Record for Box<R> {
    #[inline]
    fn fill<'de, A: MapAccess<'de>>(&mut self, before: Fields, map: &mut A) -> Result<(), A::Error> {
        R::fill(self, before, map)
    }

    fn from_fields(fields: Fields) -> Self {
        Self::new(R::from_fields(fields))
    }

    fn write_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        R::write_fields(self, map)
    }
}

/// Reads an object into an empty record.
#[inline]
pub(crate) fn fill_record<'de, R: Record, D: Deserializer<'de>>(
    record: &mut R,
    deserializer: D,
) -> Result<(), D::Error> {
    struct RecordVisitor<'a, R>(&'a mut R);

    impl<'de, R: Record> Visitor<'de> for RecordVisitor<'_, R> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        #[inline]
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            self.0.fill(Fields::default(), &mut map)
        }
    }

    deserializer.deserialize_map(RecordVisitor(record))
}

/// Reads any record from an object.
pub(crate) fn read_record<'de, R: Record, D: Deserializer<'de>>(deserializer: D) -> Result<R, D::Error> {
    let mut record = R::default();
    fill_record(&mut record, deserializer)?;
    Ok(record)
}

/// A value that can stand in a field.
pub(crate) trait Wire: Serialize + DeserializeOwned {
    /// Reads it into its place. A record must be empty before.
    #[inline]
    fn fill<'de, D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
        *self = Self::deserialize(deserializer)?;
        Ok(())
    }

    /// The second try, for a message in which something has the wrong type. `None`: this is what has it.
    fn salvage(raw: &Json) -> Option<Self> {
        raw.read().ok()
    }
}

/// The second try of a record: any object will do.
pub(crate) fn salvage_record<R: Record>(raw: &Json) -> Option<R> {
    raw.read().ok().map(R::from_fields)
}

impl Wire for Json {
    fn salvage(raw: &Json) -> Option<Self> {
        Some(raw.clone())
    }
}
impl Wire for String {}
impl Wire for bool {}
impl Wire for u64 {}
impl Wire for i64 {}
impl Wire for serde_json::Number {}

impl<T: Wire> Wire for Vec<T> {
    fn salvage(raw: &Json) -> Option<Self> {
        let items: Vec<Json> = raw.read().ok()?;
        items.iter().map(T::salvage).collect()
    }
}

impl<T: Wire> Wire for BTreeMap<String, T> {
    fn salvage(raw: &Json) -> Option<Self> {
        let fields: Fields = raw.read().ok()?;
        fields.0.into_iter().map(|(key, value)| Some((key, T::salvage(&value)?))).collect()
    }
}

impl<T: Wire> Wire for Box<T> {
    fn salvage(raw: &Json) -> Option<Self> {
        T::salvage(raw).map(Self::new)
    }
}

/// Reads a value into its place.
struct Place<'a, T>(&'a mut T);

impl<'de, T: Wire> DeserializeSeed<'de> for Place<'_, T> {
    type Value = ();

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.fill(deserializer)
    }
}

/// A field of a record: an optional one (`Option`), or one that the protocol always sends.
pub(crate) trait Slot: Sized {
    /// Reads the next value. `again`: the key has been there before, and this value counts.
    fn fill<'de, A: MapAccess<'de>>(
        &mut self,
        map: &mut A,
        extra: &mut Extra,
        at: u32,
        again: bool,
    ) -> Result<(), A::Error>;
    /// The second try. `false`: the value does not fit, and nothing has changed. One copy for each type is enough of
    /// what hardly ever runs.
    fn salvage(&mut self, raw: &Json, extra: &mut Extra, at: u32) -> bool;
    /// Does the protocol always send it?
    const ALWAYS: bool;
    /// Always sent, and was not there.
    fn is_missing(&self, extra: &Extra, at: u32) -> bool;
    fn write<M: SerializeMap>(&self, key: &str, extra: &Extra, at: u32, map: &mut M) -> Result<(), M::Error>;
}

/// A mark says that the value was `null`.
impl<T: Wire> Slot for Option<T> {
    #[inline]
    fn fill<'de, A: MapAccess<'de>>(
        &mut self,
        map: &mut A,
        extra: &mut Extra,
        at: u32,
        _: bool,
    ) -> Result<(), A::Error> {
        *self = map.next_value()?;
        if self.is_none() {
            extra.mark(at);
        }
        Ok(())
    }

    #[inline(never)]
    fn salvage(&mut self, raw: &Json, extra: &mut Extra, at: u32) -> bool {
        if raw.is_null() {
            extra.mark(at);
            *self = None;
            return true;
        }
        let Some(value) = T::salvage(raw) else { return false };
        *self = Some(value);
        true
    }

    const ALWAYS: bool = false;

    fn is_missing(&self, _: &Extra, _: u32) -> bool {
        false
    }

    fn write<M: SerializeMap>(&self, key: &str, extra: &Extra, at: u32, map: &mut M) -> Result<(), M::Error> {
        if self.is_some() || extra.is_marked(at) { map.serialize_entry(key, self) } else { Ok(()) }
    }
}

/// A mark says that the field was not there. If somebody has filled it since, it is written all the same.
impl<T: Wire + Default + PartialEq> Slot for T {
    #[inline]
    fn fill<'de, A: MapAccess<'de>>(
        &mut self,
        map: &mut A,
        _: &mut Extra,
        _: u32,
        again: bool,
    ) -> Result<(), A::Error> {
        if again {
            *self = T::default();
        }
        map.next_value_seed(Place(self))
    }

    #[inline(never)]
    fn salvage(&mut self, raw: &Json, _: &mut Extra, _: u32) -> bool {
        let Some(value) = <T as Wire>::salvage(raw) else { return false };
        *self = value;
        true
    }

    const ALWAYS: bool = true;

    fn is_missing(&self, extra: &Extra, at: u32) -> bool {
        extra.is_marked(at) && *self == T::default()
    }

    fn write<M: SerializeMap>(&self, key: &str, extra: &Extra, at: u32, map: &mut M) -> Result<(), M::Error> {
        if self.is_missing(extra, at) { Ok(()) } else { map.serialize_entry(key, self) }
    }
}
