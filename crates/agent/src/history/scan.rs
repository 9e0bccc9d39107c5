//! What a record says about itself, read without looking into the rest of it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::stream::Json;

/// The name of a record, a message or a call, in 16 bytes: a UUID is itself, any other text its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name(u128);

impl Name {
    /// No name has this.
    pub(crate) const NONE: Self = Self(0);

    /// Half of it: enough for what is few in a file. Never 0.
    pub(crate) fn short(self) -> u64 {
        ((self.0 ^ (self.0 >> 64)) as u64).max(1)
    }

    pub(crate) fn of(text: &str) -> Self {
        let uuid = (text.len() == 36).then(|| uuid::Uuid::try_parse(text).ok()).flatten();
        Self(uuid.map_or_else(|| hash(text), |uuid| uuid.as_u128()))
    }
}

/// FNV-1a: the same in every process, and far too wide for two names of one file to meet by chance.
fn hash(text: &str) -> u128 {
    let start = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    text.bytes().fold(start, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

/// What kind of record it is, as far as the conversation's tree is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    User,
    Assistant,
    Attachment,
    Progress,
    System,
    /// What was said before was summed up here.
    Compaction,
    /// Holds what was sent to the API, with system prompts: never shown, exported or copied.
    Private,
    /// A title, a mark, bookkeeping, or something newer than this program.
    #[default]
    Other,
}

impl Kind {
    /// Does it have a place in the conversation's tree?
    pub(crate) fn is_linked(self) -> bool {
        !matches!(self, Self::Private | Self::Other)
    }

    pub(crate) fn is_message(self) -> bool {
        matches!(self, Self::User | Self::Assistant)
    }

    fn of(kind: &str, subtype: &str) -> Self {
        match kind {
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "attachment" => Self::Attachment,
            "progress" => Self::Progress,
            "system" if subtype == "compact_boundary" => Self::Compaction,
            "system" => Self::System,
            _ if is_private(kind) => Self::Private,
            _ => Self::Other,
        }
    }
}

/// Is this the type of a record that holds what was sent to the API?
pub(crate) fn is_private(kind: &str) -> bool {
    kind.starts_with("api-request")
}

/// The fields of a record that say what it is and where it belongs. Everything else is passed over unread.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) kind: Kind,
    pub(crate) uuid: Option<Name>,
    pub(crate) parent: Option<Name>,
    pub(crate) logical_parent: Option<Name>,
    /// The record of the call that a tool's result belongs to.
    pub(crate) source: Option<Name>,
    /// The subagent that wrote it.
    pub(crate) agent: Option<Name>,
    pub(crate) is_sidechain: bool,
    pub(crate) is_meta: bool,
    pub(crate) is_team: bool,
    pub(crate) message: MessageScan,
}

/// The names in a record's message.
#[derive(Debug, Default)]
pub(crate) struct MessageScan {
    /// All records of one answer of the model share it.
    pub(crate) id: Option<Name>,
    /// Calls that it makes.
    pub(crate) calls: Vec<Name>,
    /// Calls that it answers.
    pub(crate) answers: Vec<Name>,
}

impl Scan {
    /// `None` when the line is no JSON object. Bytes that are no UTF-8, and halves of surrogate pairs, do no harm.
    pub(crate) fn of(line: &[u8]) -> Option<Self> {
        let text = match std::str::from_utf8(line) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(line),
        };
        serde_json::from_str(&text).ok().or_else(|| serde_json::from_str(&repaired(&text)?).ok())
    }

    /// Is it a message of the main conversation, one that people see?
    pub(crate) fn is_visible(&self) -> bool {
        self.kind.is_message() && self.uuid.is_some() && !(self.is_sidechain || self.is_meta || self.is_team)
    }
}

/// JSON text without halves of surrogate pairs.
#[cold]
pub(crate) fn repaired(text: &str) -> Option<String> {
    let json: Json = serde_json::from_str(text).ok()?;
    serde_json::to_string(&json).ok()
}

/// Takes any value whatever, so that a field of the wrong type spoils nothing. What is kept of it is up to the methods
/// that are given.
macro_rules! any_value {
    ($type:ty, $visitor:ident { $($body:tt)* }) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any($visitor)
            }
        }

        struct $visitor;

        impl<'de> Visitor<'de> for $visitor {
            type Value = $type;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Self::Value::default())
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Self::Value::default())
            }

            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Self::Value::default())
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Self::Value::default())
            }

            $($body)*
        }
    };
}

/// The methods for values that are of no use.
macro_rules! nothing {
    (bool) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (str) => {
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (seq) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
    (map) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
}

impl<'de> Deserialize<'de> for Scan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ScanVisitor;

        impl<'de> Visitor<'de> for ScanVisitor {
            type Value = Scan;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scan, A::Error> {
                let mut scan = Scan::default();
                let (mut kind, mut subtype) = (Text::default(), Text::default());
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    match key.as_str() {
                        "type" => kind = map.next_value()?,
                        "subtype" => subtype = map.next_value()?,
                        "uuid" => scan.uuid = name(&mut map)?,
                        "parentUuid" => scan.parent = name(&mut map)?,
                        "logicalParentUuid" => scan.logical_parent = name(&mut map)?,
                        "sourceToolAssistantUUID" => scan.source = name(&mut map)?,
                        "agentId" => scan.agent = name(&mut map)?,
                        "teamName" => scan.is_team = name(&mut map)?.is_some(),
                        "isSidechain" => scan.is_sidechain = map.next_value::<Flag>()?.0,
                        "isMeta" => scan.is_meta = map.next_value::<Flag>()?.0,
                        "message" => scan.message = map.next_value()?,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                scan.kind = Kind::of(kind.as_str(), subtype.as_str());
                Ok(scan)
            }
        }

        deserializer.deserialize_map(ScanVisitor)
    }
}

fn name<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Option<Name>, A::Error> {
    let text: Text<'de> = map.next_value()?;
    Ok(text.0.filter(|text| !text.is_empty()).map(|text| Name::of(&text)))
}

/// A string, if it is one.
#[derive(Default)]
pub(crate) struct Text<'a>(pub(crate) Option<Cow<'a, str>>);

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

any_value! { Text<'de>, TextVisitor {
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Some(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Some(Cow::Owned(text.into()))))
    }

    nothing!(bool);
    nothing!(seq);
    nothing!(map);
}}

/// `true`, or anything else.
#[derive(Default)]
pub(crate) struct Flag(pub(crate) bool);

any_value! { Flag, FlagVisitor {
    fn visit_bool<E>(self, is: bool) -> Result<Flag, E> {
        Ok(Flag(is))
    }

    nothing!(str);
    nothing!(seq);
    nothing!(map);
}}

any_value! { MessageScan, MessageVisitor {
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MessageScan, A::Error> {
        let mut message = MessageScan::default();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "id" => message.id = name(&mut map)?,
                "content" => Blocks(message.calls, message.answers) = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(message)
    }

    nothing!(bool);
    nothing!(str);
    nothing!(seq);
}}

/// The calls and answers among the blocks of a content.
#[derive(Default)]
struct Blocks(Vec<Name>, Vec<Name>);

any_value! { Blocks, BlocksVisitor {
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Blocks, A::Error> {
        let mut blocks = Blocks::default();
        while let Some(block) = seq.next_element::<Block>()? {
            blocks.0.extend(block.call);
            blocks.1.extend(block.answer);
        }
        Ok(blocks)
    }

    nothing!(bool);
    nothing!(str);
    nothing!(map);
}}

#[derive(Default)]
struct Block {
    call: Option<Name>,
    answer: Option<Name>,
}

any_value! { Block, BlockVisitor {
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Block, A::Error> {
        let (mut kind, mut id, mut tool_use_id) = (Text::default(), None, None);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "type" => kind = map.next_value()?,
                "id" => id = name(&mut map)?,
                "tool_use_id" => tool_use_id = name(&mut map)?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Block {
            call: id.filter(|_| kind.as_str() == "tool_use"),
            answer: tool_use_id.filter(|_| kind.as_str() == "tool_result"),
        })
    }

    nothing!(bool);
    nothing!(str);
    nothing!(seq);
}}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_wherever_they_stand() {
        let line = br#"{"message":{"content":[{"type":"text","text":"x"},{"id":"toolu_1","type":"tool_use","input":{"id":"no"}}],
            "id":"msg_1"},"uuid":"4bc4d3f0-0000-4000-8000-000000000001","parentUuid":null,"type":"assistant","isMeta":true}"#;
        let scan = Scan::of(line).unwrap();
        assert_eq!((scan.kind, scan.is_meta, scan.is_sidechain), (Kind::Assistant, true, false));
        assert_eq!(
            scan.uuid,
            Some(Name::of("4BC4D3F0-0000-4000-8000-000000000001")),
            "letters of either case"
        );
        assert_eq!(scan.parent, None);
        assert_eq!(scan.message.id, Some(Name::of("msg_1")));
        assert_eq!(scan.message.calls, [Name::of("toolu_1")]);
    }

    #[test]
    fn odd_values_spoil_nothing() {
        for line in [
            r#"{"type":"user","uuid":"u","isSidechain":"yes","message":"text","parentUuid":[1,{"a":2}]}"#,
            r#"{"type":"user","uuid":"u","message":{"id":7,"content":{"a":[]}},"isMeta":1.5}"#,
            r#"{"type":"user","uuid":"u","message":{"content":["a",null,3,{"type":9}]},"teamName":{}}"#,
            r#"{"type":"user","uuid":"u","message":{"content":"half \ud83d"}}"#,
            r#"{"type":"user","uuid":"u","uuid":"u","agentId":false,"message":null}"#,
        ] {
            let scan = Scan::of(line.as_bytes()).unwrap_or_else(|| panic!("{line}"));
            assert!(scan.is_visible(), "{line}");
            assert_eq!(scan.uuid, Some(Name::of("u")), "{line}");
        }
        assert!(Scan::of(b"{\"type\":\"user\",\"uuid\":\"u\",\"message\":{\"content\":\"\xff\"}}").is_some());
        for line in ["", "[1]", "null", "{\"type\":", "{} {}"] {
            assert!(Scan::of(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[test]
    fn what_was_sent_to_the_api_is_private() {
        for kind in ["api-request", "api-request-shape", "api-request-blob", "api-request-of-tomorrow"] {
            let scan = Scan::of(format!(r#"{{"type":"{kind}","uuid":"u"}}"#).as_bytes()).unwrap();
            assert_eq!(scan.kind, Kind::Private);
            assert!(!scan.kind.is_linked());
        }
    }
}
