//! The three macros that define the types of this module.
//!
//! `record!` makes a struct of known fields plus [`Extra`](super::Extra), `tagged!` an open enum told apart by one field,
//! `word!` an open enum of strings.

/// A field's name on the wire: its own, unless another is given.
macro_rules! wire_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $wire:literal) => {
        $wire
    };
}

/// Structs of known fields plus `extra`. `field: Option<T>` may be missing, `field: T` is always sent;
/// `field = "wireName": T` when the protocol writes the name in another way.
macro_rules! record {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$field_meta:meta])* $field:ident $(= $wire:literal)? : $ty:ty ),* $(,)?
        }
    )*) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $name {
            $(
                $(#[$field_meta])*
                #[doc = concat!("(`", $crate::stream::macros::wire_name!($field $($wire)?), "`)")]
                pub $field: $ty,
            )*
            /// What else it held.
            pub extra: $crate::stream::Extra,
        }

        impl $name {
            /// Was every field there that the protocol always sends? (One that was not reads as empty.)
            #[must_use]
            pub fn is_complete(&self) -> bool {
                #[allow(non_camel_case_types, dead_code, clippy::upper_case_acronyms)]
                enum At { $( $field, )* End }
                true $( && !$crate::stream::record::Slot::is_missing(&self.$field, &self.extra, At::$field as u32) )*
            }
        }

        impl $name {
            /// Takes fields that are kept as text. What does not fit goes to `extra`.
            #[cold]
            fn absorb(&mut self, fields: $crate::stream::record::Fields) -> u64 {
                #[allow(non_camel_case_types, dead_code)]
                enum At { $( $field, )* End }
                let mut seen = 0;
                for (key, raw) in fields.0 {
                    #[allow(unused_labels, reason = "a record may have no fields")]
                    let taken: Option<u32> = 'taken: {
                        $(
                            if key == $crate::stream::macros::wire_name!($field $($wire)?) {
                                let at = At::$field as u32;
                                let fits = $crate::stream::record::Slot::salvage(
                                    &mut self.$field, &raw, &mut self.extra, at,
                                );
                                break 'taken fits.then_some(at);
                            }
                        )*
                        None
                    };
                    match taken {
                        Some(at) => seen |= 1 << at,
                        None => self.extra.push(key, raw),
                    }
                }
                seen
            }

            /// Remembers which of the fields that are always sent were not.
            #[inline]
            fn settle(&mut self, seen: u64) {
                #[allow(non_camel_case_types, dead_code)]
                enum At { $( $field, )* End }
                const ALWAYS: u64 =
                    0 $( | (<$ty as $crate::stream::record::Slot>::ALWAYS as u64) << At::$field as u32 )*;
                self.extra.mark_all(ALWAYS & !seen);
            }
        }

        impl $crate::stream::record::Record for $name {
            fn fill<'de, A: ::serde::de::MapAccess<'de>>(
                &mut self,
                before: $crate::stream::record::Fields,
                map: &mut A,
            ) -> Result<(), A::Error> {
                #[allow(non_camel_case_types, dead_code)]
                enum At { $( $field, )* End }
                #[allow(unused_mut)]
                let mut seen = if before.0.is_empty() { 0 } else { self.absorb(before) };
                while let Some(key) = map.next_key::<$crate::stream::record::Key<'de>>()? {
                    $(
                        if key.as_str() == $crate::stream::macros::wire_name!($field $($wire)?) {
                            let again = seen & 1 << At::$field as u32 != 0;
                            $crate::stream::record::Slot::fill(
                                &mut self.$field, map, &mut self.extra, At::$field as u32, again,
                            )?;
                            seen |= 1 << At::$field as u32;
                            continue;
                        }
                    )*
                    self.extra.push(key.into_string(), map.next_value()?);
                }
                self.settle(seen);
                Ok(())
            }

            fn from_fields(fields: $crate::stream::record::Fields) -> Self {
                let mut this = Self::default();
                let seen = this.absorb(fields);
                this.settle(seen);
                this
            }

            fn write_fields<M: ::serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                #[allow(non_camel_case_types, dead_code)]
                enum At { $( $field, )* End }
                $( $crate::stream::record::Slot::write(
                    &self.$field, $crate::stream::macros::wire_name!($field $($wire)?), &self.extra, At::$field as u32, map,
                )?; )*
                self.extra.write(map)
            }
        }

        $crate::stream::macros::record_serde!($name);
    )* };
}

/// `Serialize`, `Deserialize` and the second try for a record.
macro_rules! record_serde {
    ($name:ident) => {
        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::stream::record::read_record(deserializer)
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $crate::stream::record::Record::write_fields(self, &mut map)?;
                map.end()
            }
        }

        impl $crate::stream::record::Wire for $name {
            #[inline]
            fn fill<'de, D: ::serde::Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
                $crate::stream::record::fill_record(self, deserializer)
            }

            fn salvage(raw: &$crate::stream::Json) -> Option<Self> {
                $crate::stream::record::salvage_record(raw)
            }
        }
    };
}

/// An open enum of records, told apart by one field. When that field comes first (it does, nearly always), the rest is
/// read in the same pass.
macro_rules! tagged {
    (
        $(#[$meta:meta])*
        pub enum $name:ident by $tag:literal {
            $( $(#[$variant_meta:meta])* $kind:literal => $variant:ident($ty:ty) ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $(
                $(#[$variant_meta])*
                #[doc = concat!("(`", $kind, "`)")]
                $variant($ty),
            )*
            /// A kind this version does not know, kept as it is.
            Unknown($crate::stream::Unknown),
        }

        impl $name {
            /// The names of all kinds that are known.
            pub const TAGS: &'static [&'static str] = &[$( $kind ),*];

            #[doc = concat!("The name of its kind (`", $tag, "` on the wire).")]
            #[must_use]
            pub fn tag(&self) -> &str {
                match self {
                    $( Self::$variant(_) => $kind, )*
                    Self::Unknown(unknown) => &unknown.tag,
                }
            }

            /// Was every field there that the protocol always sends with this kind?
            #[must_use]
            pub fn is_complete(&self) -> bool {
                match self {
                    $( Self::$variant(value) => value.is_complete(), )*
                    Self::Unknown(_) => true,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Unknown($crate::stream::Unknown::default())
            }
        }

        impl $crate::stream::record::Record for $name {
            fn fill<'de, A: ::serde::de::MapAccess<'de>>(
                &mut self,
                mut before: $crate::stream::record::Fields,
                map: &mut A,
            ) -> Result<(), A::Error> {
                use $crate::stream::record::{Key, Record};
                let mut tag = None;
                if before.get($tag).is_none() {
                    while let Some(key) = map.next_key::<Key<'de>>()? {
                        if key.as_str() == $tag {
                            tag = Some(map.next_value::<Key<'de>>()?);
                            break;
                        }
                        before.0.push((key.into_string(), map.next_value()?));
                    }
                }
                if let Some(tag) = tag {
                    match tag.as_str() {
                        $( $kind => {
                            *self = Self::$variant(Default::default());
                            if let Self::$variant(value) = self {
                                return Record::fill(value, before, map);
                            }
                        } )*
                        tag => before.0.push(($tag.into(), ::serde_json::Value::from(tag).into())),
                    }
                }
                *self = Self::from_fields(before.rest(map)?);
                Ok(())
            }

            fn from_fields(mut fields: $crate::stream::record::Fields) -> Self {
                let tag = fields.get($tag).and_then(|tag| tag.as_string()).unwrap_or_default();
                match tag.as_str() {
                    $( $kind => {
                        fields.take($tag);
                        Self::$variant($crate::stream::record::Record::from_fields(fields))
                    } )*
                    _ => Self::Unknown($crate::stream::Unknown { tag, raw: fields.to_json() }),
                }
            }

            fn write_fields<M: ::serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                match self {
                    $( Self::$variant(value) => {
                        map.serialize_entry($tag, $kind)?;
                        $crate::stream::record::Record::write_fields(value, map)
                    } )*
                    Self::Unknown(unknown) => unknown.write_fields(map),
                }
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::stream::record::read_record(deserializer)
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeMap as _;
                if let Self::Unknown(unknown) = self {
                    return unknown.raw.serialize(serializer);
                }
                let mut map = serializer.serialize_map(None)?;
                $crate::stream::record::Record::write_fields(self, &mut map)?;
                map.end()
            }
        }

        impl $crate::stream::record::Wire for $name {
            #[inline]
            fn fill<'de, D: ::serde::Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
                $crate::stream::record::fill_record(self, deserializer)
            }

            fn salvage(raw: &$crate::stream::Json) -> Option<Self> {
                // Not even an object is no reason to give up: it is one more thing we do not know.
                Some($crate::stream::record::salvage_record(raw).unwrap_or_else(|| {
                    Self::Unknown($crate::stream::Unknown { tag: String::new(), raw: raw.clone() })
                }))
            }
        }
    };
}

/// Open enums of strings.
macro_rules! word {
    ($(
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $text:literal ),* $(,)? }
    )*) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$variant_meta])* #[doc = concat!("`", $text, "`")] $variant, )*
            /// A word this version does not know.
            Other(String),
        }

        impl $name {
            /// The word.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $text, )*
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $( $text => Self::$variant, )*
                    _ => Self::Other(word.into()),
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Other(String::new())
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::stream::record::Key::deserialize(deserializer).map(|word| word.as_str().into())
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl $crate::stream::record::Wire for $name {}
    )* };
}

pub(crate) use {record, record_serde, tagged, wire_name, word};
