//! JSON-RPC 2.0: the envelope.
//!
//! Reading is liberal and lossless. Ids are kept as the text they were written in, so `0`, `"a"` and
//! `12345678901234567890` all come back unchanged. What cannot be read is a value ([`Malformed`]) that knows how it
//! must be answered, not an end of the connection.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The text is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The JSON is not a JSON-RPC message.
pub const INVALID_REQUEST: i32 = -32600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// The method is there, its parameters are wrong.
pub const INVALID_PARAMS: i32 = -32602;
/// The answer could not be made.
pub const INTERNAL_ERROR: i32 = -32603;
/// A limit of this server was reached (a server-defined code).
pub const LIMIT_REACHED: i32 = -32000;

/// A request's id, as the JSON text it was written in.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Id(Box<str>);

impl Id {
    /// The id `null`: for answers to requests whose id could not be read.
    #[must_use]
    pub fn null() -> Self {
        Self("null".into())
    }

    /// The JSON text of the id.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// The id as an unsigned number, if that is what it is.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// Strings and numbers are ids; `null`, objects, lists and truth values are not.
    fn from_raw(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        matches!(text.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9')).then(|| Self(text.into()))
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self(number.to_string().into())
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One message, borrowed from the text it was read from.
#[derive(Debug)]
pub enum Message<'a> {
    /// Wants exactly one answer.
    Request {
        /// What the answer must carry.
        id: Id,
        /// The method's name.
        method: Cow<'a, str>,
        /// Parameters, if any were sent.
        params: Option<&'a RawValue>,
    },
    /// Wants none.
    Notification {
        /// The method's name.
        method: Cow<'a, str>,
        /// Parameters, if any were sent.
        params: Option<&'a RawValue>,
    },
    /// The answer to a request of ours.
    Response {
        /// The id of our request.
        id: Id,
        /// The result, or the error the other side reports.
        outcome: Result<&'a RawValue, ErrorObject>,
    },
}

/// Text that is not a message, with the answer it deserves.
#[derive(Debug)]
pub struct Malformed {
    /// The id to answer with; `null` when none could be read.
    pub id: Id,
    /// What to answer.
    pub error: ErrorObject,
}

/// A JSON-RPC error.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ErrorObject {
    /// One of the codes of this module, or one of the other side's.
    #[serde(default)]
    pub code: i64,
    /// What went wrong, for people.
    #[serde(default)]
    pub message: String,
    /// Whatever else the other side said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl ErrorObject {
    /// An error with a code and a message.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), data: None }
    }

    /// The other side's error; one of another shape is kept as the message.
    fn from_raw(raw: &RawValue) -> Self {
        serde_json::from_str(raw.get()).unwrap_or_else(|_| Self::new(0, raw.get()))
    }

    /// -32601 for a method that is not there.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        let shown: String = method.chars().take(100).collect();
        Self::new(METHOD_NOT_FOUND, format!("method not found: {shown}"))
    }

    /// -32602 with the field and the reason.
    pub fn invalid_params(why: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, why)
    }

    /// -32603 with what failed.
    pub fn internal(what: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, what)
    }
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ErrorObject {}

/// Every key is optional here; what must be there depends on the kind of message, which [`read`] decides.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    // `null` and absent differ for an id: the first is a broken request, the second a notification.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads one message.
///
/// A missing `jsonrpc` member is tolerated (seed documents show messages without it); another version is not.
///
/// # Errors
/// [`Malformed`] when the text is not JSON (-32700) or not a message (-32600).
pub fn read(text: &str) -> Result<Message<'_>, Malformed> {
    let envelope: Envelope<'_> = match serde_json::from_str(text) {
        Ok(envelope) => envelope,
        Err(error) => return Err(explain(text, &error)),
    };
    let invalid = |id: Option<Id>, why: &str| Malformed {
        id: id.unwrap_or_else(Id::null),
        error: ErrorObject::new(INVALID_REQUEST, why),
    };
    let id = envelope.id.map(|raw| Id::from_raw(raw).ok_or(raw));
    if envelope.jsonrpc.as_deref().is_some_and(|version| version != "2.0") {
        return Err(invalid(id.and_then(Result::ok), "not JSON-RPC 2.0: `jsonrpc` must be \"2.0\""));
    }
    match (envelope.method, id) {
        (Some(method), None) => Ok(Message::Notification { method, params: envelope.params }),
        (Some(method), Some(Ok(id))) => Ok(Message::Request { id, method, params: envelope.params }),
        (None, Some(Ok(id))) => match (envelope.error, envelope.result) {
            (Some(error), _) => Ok(Message::Response { id, outcome: Err(ErrorObject::from_raw(error)) }),
            (None, Some(result)) => Ok(Message::Response { id, outcome: Ok(result) }),
            (None, None) => Err(invalid(Some(id), "neither `method`, `result` nor `error`")),
        },
        (_, Some(Err(_))) => Err(invalid(None, "`id` must be a string or a number")),
        (None, None) => Err(invalid(None, "neither `method` nor `id`")),
    }
}

/// Only for text that could not be read: JSON of another shape is -32600, anything else -32700.
fn explain(text: &str, error: &serde_json::Error) -> Malformed {
    if serde_json::from_str::<&RawValue>(text).is_err() {
        let error = ErrorObject::new(PARSE_ERROR, format!("not JSON: {error}"));
        return Malformed { id: Id::null(), error };
    }
    let why = if text.trim_start().starts_with('[') {
        "batches are not supported; send one message a frame".to_owned()
    } else {
        format!("not a JSON-RPC message: {error}")
    };
    // Even a message with, say, a number as its method deserves an answer that carries its id.
    let id = serde_json::from_str::<IdOnly<'_>>(text).ok().and_then(|only| Id::from_raw(only.id?));
    Malformed { id: id.unwrap_or_else(Id::null), error: ErrorObject::new(INVALID_REQUEST, why) }
}

#[derive(Deserialize)]
struct IdOnly<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
}

/// The text of a successful answer.
///
/// A `result` that cannot be written as JSON (a map with keys that are not strings) becomes an error answer.
pub fn write_result(id: &Id, result: &impl Serialize) -> String {
    let mut out = Vec::with_capacity(128);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_json().as_bytes());
    out.extend_from_slice(br#","result":"#);
    if let Err(error) = serde_json::to_writer(&mut out, result) {
        return write_error(id, &ErrorObject::internal(format!("failed to write the answer: {error}")));
    }
    out.push(b'}');
    into_text(out)
}

/// The text of an error answer.
#[must_use]
pub fn write_error(id: &Id, error: &ErrorObject) -> String {
    let body = serde_json::to_string(error).unwrap_or_else(|_| r#"{"code":-32603,"message":""}"#.to_owned());
    format!(r#"{{"jsonrpc":"2.0","id":{},"error":{body}}}"#, id.as_json())
}

/// The text of a notification; `params` are left out when they serialise to `null`.
pub fn write_notification(method: &str, params: &impl Serialize) -> String {
    write_call(None, method, params)
}

/// The text of a request.
pub fn write_request(id: &Id, method: &str, params: &impl Serialize) -> String {
    write_call(Some(id), method, params)
}

fn write_call(id: Option<&Id>, method: &str, params: &impl Serialize) -> String {
    let mut out = Vec::with_capacity(128);
    out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    if let Some(id) = id {
        out.extend_from_slice(br#","id":"#);
        out.extend_from_slice(id.as_json().as_bytes());
    }
    out.extend_from_slice(br#","method":"#);
    // A string always serialises; params are our own types, and a failure leaves them out.
    let _ = serde_json::to_writer(&mut out, method);
    let before = out.len();
    out.extend_from_slice(br#","params":"#);
    let start = out.len();
    if serde_json::to_writer(&mut out, params).is_err() || &out[start..] == b"null" {
        out.truncate(before);
    }
    out.push(b'}');
    into_text(out)
}

fn into_text(bytes: Vec<u8>) -> String {
    // serde_json writes UTF-8 and ids come from text, so nothing is ever replaced here.
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ide_mcp_03_ids_come_back_unchanged() {
        for id in ["0", "\"a\"", "12345678901234567890123", "-1", "1.5e3", "\"\\u00e9\""] {
            let text = format!(r#"{{"method":"m","id":{id}}}"#);
            let Ok(Message::Request { id: read, .. }) = read(&text) else { panic!("{text}") };
            assert_eq!(write_result(&read, &1), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":1}}"#));
        }
    }

    #[test]
    fn ide_mcp_04_key_order_unknown_fields_and_missing_params_are_accepted() {
        let text = r#"{"later":[1],"params":{"a":1},"id":0,"method":"x","jsonrpc":"2.0"}"#;
        assert!(matches!(read(text), Ok(Message::Request { params: Some(_), .. })));
        assert!(matches!(read(r#"{"method":"x"}"#), Ok(Message::Notification { params: None, .. })));
        assert!(matches!(
            read(r#"{"method":"x","params":null}"#),
            Ok(Message::Notification { params: None, .. })
        ));
    }

    #[test]
    fn malformed_text_knows_its_answer() {
        let code = |text: &str| match read(text) {
            Err(malformed) => (malformed.id.as_json().to_owned(), malformed.error.code),
            Ok(message) => panic!("{message:?}"),
        };
        assert_eq!(code("{bad"), ("null".into(), -32700));
        assert_eq!(code(""), ("null".into(), -32700));
        assert_eq!(code("42"), ("null".into(), -32600));
        assert_eq!(code("[]"), ("null".into(), -32600));
        assert_eq!(code(r#"{"id":7,"method":5}"#), ("7".into(), -32600));
        assert_eq!(code(r#"{"id":null,"method":"m"}"#), ("null".into(), -32600));
        assert_eq!(code(r#"{"id":{},"method":"m"}"#), ("null".into(), -32600));
        assert_eq!(code(r#"{"id":7}"#), ("7".into(), -32600));
        assert_eq!(code(r#"{"jsonrpc":"1.0","id":7,"method":"m"}"#), ("7".into(), -32600));
    }

    #[test]
    fn a_result_of_null_is_a_response() {
        let text = r#"{"id":1,"result":null}"#;
        assert!(matches!(read(text), Ok(Message::Response { outcome: Ok(_), .. })));
    }

    #[test]
    fn an_error_of_another_shape_is_still_an_answer() {
        let Ok(Message::Response { outcome: Err(error), .. }) = read(r#"{"id":1,"error":"no"}"#) else {
            panic!()
        };
        assert_eq!(error.message, "\"no\"");
    }

    #[test]
    fn null_params_are_left_out() {
        assert_eq!(write_notification("m", &()), r#"{"jsonrpc":"2.0","method":"m"}"#);
        assert_eq!(
            write_request(&Id::from(3), "m", &[1]),
            r#"{"jsonrpc":"2.0","id":3,"method":"m","params":[1]}"#
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_answered(text in ".*") {
            if let Err(malformed) = read(&text) {
                prop_assert!(matches!(malformed.error.code, -32700 | -32600));
            }
        }

        #[test]
        fn what_we_write_we_read(id in any::<u64>(), method in ".*", value in ".*") {
            let text = write_request(&Id::from(id), &method, &[&value]);
            let Ok(Message::Request { id: back, method: name, params }) = read(&text) else { panic!("{text}") };
            prop_assert_eq!(back.as_u64(), Some(id));
            prop_assert_eq!(name.as_ref(), method.as_str());
            let values: Vec<String> = serde_json::from_str(params.unwrap().get()).unwrap();
            prop_assert_eq!(&values[0], &value);
        }
    }
}
