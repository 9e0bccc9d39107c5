//! What a tool answers.

use std::fmt;

use oarlock_proto::jsonrpc::ErrorObject;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::schema;
use crate::stream::Json;

/// The answer to a call. Functions rarely make one themselves: see [`IntoToolOutput`].
///
/// ```
/// use oarlock_agent::tool::{Image, ToolOutput};
/// let output = ToolOutput::text("the plot").with(Image::png(b"\x89PNG")).meta("took_ms", 12);
/// ```
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolOutput {
    /// Texts, pictures and so on.
    pub content: Vec<Content>,
    /// The same as data: an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Json>,
    /// Did the tool fail?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Remarks that the model does not see; the CLI passes them on in its messages.
    #[serde(rename = "_meta", skip_serializing_if = "serde_json::Map::is_empty")]
    pub meta: serde_json::Map<String, serde_json::Value>,
}

impl ToolOutput {
    /// One text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().with(text.into())
    }

    /// Adds a block.
    #[must_use]
    pub fn with(mut self, content: impl Into<Content>) -> Self {
        self.content.push(content.into());
        self
    }

    /// Says the same as data, which must be an object. [`Structured`] does it with a type, and tells its schema.
    #[must_use]
    pub fn structured(mut self, data: Json) -> Self {
        self.structured_content = Some(data);
        self
    }

    /// Adds a remark.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }
}

/// A block of an answer.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text {
        /// The text itself.
        text: String,
    },
    /// A picture.
    Image(Image),
    /// Sound.
    Audio(Audio),
    /// Where something can be read.
    ResourceLink(ResourceLink),
    /// Something that can be read, with its contents.
    Resource {
        /// What it is.
        resource: Resource,
    },
    /// Any other block, as MCP defines it.
    #[serde(untagged)]
    Other(Json),
}

/// A picture for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The file, in base64.
    pub data: String,
    /// Such as `image/png`.
    pub mime_type: String,
}

impl Image {
    /// A picture of any kind that the API takes: PNG, JPEG, GIF or WebP.
    pub fn new(mime_type: impl Into<String>, file: &[u8]) -> Self {
        Self { data: base64(file), mime_type: mime_type.into() }
    }

    /// The contents of a PNG file.
    #[must_use]
    pub fn png(file: &[u8]) -> Self {
        Self::new("image/png", file)
    }

    /// The contents of a JPEG file.
    #[must_use]
    pub fn jpeg(file: &[u8]) -> Self {
        Self::new("image/jpeg", file)
    }
}

/// Sound. The CLI saves it and tells the model where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Audio {
    /// The file, in base64.
    pub data: String,
    /// Such as `audio/wav`.
    pub mime_type: String,
}

impl Audio {
    /// The contents of an audio file.
    pub fn new(mime_type: impl Into<String>, file: &[u8]) -> Self {
        Self { data: base64(file), mime_type: mime_type.into() }
    }
}

/// Where something can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceLink {
    /// Its address.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Such as `text/plain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// How many bytes it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl ResourceLink {
    /// A link with a name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), ..Self::default() }
    }

    /// Says what it is.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}

/// Something that can be read, with its contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// Such as `text/plain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its contents, if they are text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its contents in base64, if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

impl Resource {
    /// One that is text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self { uri: uri.into(), text: Some(text.into()), ..Self::default() }
    }

    /// One that is not. The CLI saves it and tells the model where.
    pub fn blob(uri: impl Into<String>, mime_type: impl Into<String>, file: &[u8]) -> Self {
        let (mime_type, blob) = (Some(mime_type.into()), Some(base64(file)));
        Self { uri: uri.into(), mime_type, blob, ..Self::default() }
    }
}

/// Data, with its schema: an object for the CLI's `structuredContent`, and its JSON as text. The model reads the JSON.
///
/// ```
/// use oarlock_agent::tool::{Structured, Tool};
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Weather {
///     celsius: f64,
///     rain: bool,
/// }
/// let weather = Tool::new("weather", async || Structured(Weather { celsius: 21.5, rain: false }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structured<T>(pub T);

/// What a tool's function may return: text, numbers, [`Structured`] data, [`Image`]s and other [`Content`], a `Vec` of
/// them, nothing at all, and a `Result` of these with any error that can be shown.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool's answer",
    note = "return text, a number, `Structured(data)`, an `Image` or other `Content`, a `Vec` of them, a `ToolOutput`, \
            `()`, or a `Result` of these with an error that is `Display`"
)]
pub trait IntoToolOutput {
    /// The answer.
    ///
    /// # Errors
    /// [`ToolError`] when the function failed.
    fn into_output(self) -> Result<ToolOutput, ToolError>;

    /// The schema of `structuredContent`, if there always is one.
    #[must_use]
    fn output_schema() -> Option<Schema> {
        None
    }
}

impl IntoToolOutput for ToolOutput {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl IntoToolOutput for () {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default())
    }
}

impl<T: Into<Content>> IntoToolOutput for Vec<T> {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput { content: self.into_iter().map(Into::into).collect(), ..ToolOutput::default() })
    }
}

impl<T: Serialize + JsonSchema> IntoToolOutput for Structured<T> {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        let json = Json::write(&self.0)
            .map_err(|error| ToolError::new(format!("the answer cannot be written as JSON: {error}")))?;
        Ok(ToolOutput::text(json.text()).structured(json))
    }

    fn output_schema() -> Option<Schema> {
        Some(schema::of_output::<T>())
    }
}

impl<T: IntoToolOutput, E: Into<ToolError>> IntoToolOutput for Result<T, E> {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        self.map_err(Into::into)?.into_output()
    }

    fn output_schema() -> Option<Schema> {
        T::output_schema()
    }
}

/// What is one block is an answer too.
macro_rules! contents {
    ($($from:ty => |$value:ident| $content:expr;)*) => { $(
        impl From<$from> for Content {
            fn from($value: $from) -> Self {
                $content
            }
        }

        impl IntoToolOutput for $from {
            fn into_output(self) -> Result<ToolOutput, ToolError> {
                Ok(ToolOutput::default().with(self))
            }
        }
    )* };
}

contents! {
    String => |text| Self::Text { text };
    &str => |text| Self::Text { text: text.to_owned() };
    Image => |image| Self::Image(image);
    Audio => |audio| Self::Audio(audio);
    ResourceLink => |link| Self::ResourceLink(link);
    Resource => |resource| Self::Resource { resource };
}

impl IntoToolOutput for Content {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default().with(self))
    }
}

/// What can be shown is text.
macro_rules! texts {
    ($($from:ty)*) => { $(
        impl IntoToolOutput for $from {
            fn into_output(self) -> Result<ToolOutput, ToolError> {
                Ok(ToolOutput::text(self.to_string()))
            }
        }
    )* };
}

texts!(bool char f32 f64 i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

/// Why a tool failed. The model reads it and can try again.
///
/// Everything that can be shown becomes one, so `?` works on any error in a function that returns it. (That is also why
/// it cannot be shown itself.)
#[derive(Clone, Debug)]
pub struct ToolError(Failure);

#[derive(Clone, Debug)]
enum Failure {
    Tool(Box<ToolOutput>),
    Protocol(ErrorObject),
}

impl ToolError {
    /// A failure of the tool, in a sentence for the model.
    pub fn new(message: impl Into<String>) -> Self {
        ToolOutput::text(message).into_error()
    }

    /// A JSON-RPC error instead of an answer: for requests that make no sense, rather than for tools that fail.
    pub fn protocol(code: i32, message: impl Into<String>) -> Self {
        Self(Failure::Protocol(ErrorObject::new(code, message)))
    }

    /// As an answer, or as a JSON-RPC error.
    pub(super) fn into_answer(self) -> Result<ToolOutput, ErrorObject> {
        match self.0 {
            Failure::Tool(output) => Ok(*output),
            Failure::Protocol(error) => Err(error),
        }
    }
}

impl ToolOutput {
    /// The same answer, as a failure with more than one block.
    #[must_use]
    pub fn into_error(mut self) -> ToolError {
        self.is_error = true;
        ToolError(Failure::Tool(Box::new(self)))
    }
}

impl<E: fmt::Display> From<E> for ToolError {
    fn from(error: E) -> Self {
        // The long form, which has the causes where the error keeps them apart (anyhow).
        Self::new(format!("{error:#}"))
    }
}

/// Base64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
            (b"fooba", "Zm9vYmE="),
            (b"foobar", "Zm9vYmFy"),
            (b"\xff\xfe\xfb\xef\x00", "//777wA="),
        ] {
            assert_eq!(base64(bytes), text);
        }
    }

    fn answer(output: impl IntoToolOutput) -> serde_json::Value {
        let output = output.into_output().or_else(ToolError::into_answer).unwrap();
        serde_json::to_value(output).unwrap()
    }

    #[test]
    fn every_kind_of_block_has_mcps_shape() {
        let other = Content::Other(Json::from(json!({"type": "future", "x": 1})));
        let blocks: Vec<Content> = vec![
            "a".into(),
            Image::jpeg(b"foo").into(),
            Audio::new("audio/wav", b"foo").into(),
            ResourceLink::new("file:///a", "a").description("d").into(),
            Resource::text("mem:a", "t").into(),
            Resource::blob("mem:b", "x/y", b"foo").into(),
            other,
        ];
        assert_eq!(
            answer(blocks),
            json!({"content": [
                {"type": "text", "text": "a"},
                {"type": "image", "data": "Zm9v", "mimeType": "image/jpeg"},
                {"type": "audio", "data": "Zm9v", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "file:///a", "name": "a", "description": "d"},
                {"type": "resource", "resource": {"uri": "mem:a", "text": "t"}},
                {"type": "resource", "resource": {"uri": "mem:b", "mimeType": "x/y", "blob": "Zm9v"}},
                {"type": "future", "x": 1},
            ]})
        );
    }

    #[test]
    fn values_are_texts_and_nothing_is_nothing() {
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        assert_eq!(answer("x"), text("x"));
        assert_eq!(answer(2.5), text("2.5"));
        assert_eq!(answer(-7_i8), text("-7"));
        assert_eq!(answer(true), text("true"));
        assert_eq!(answer(Ok::<_, std::io::Error>(String::from("y"))), text("y"));
        assert_eq!(answer(()), json!({"content": []}));
    }

    #[test]
    fn an_error_is_an_answer_that_says_so() {
        let failed = |text: &str| json!({"content": [{"type": "text", "text": text}], "isError": true});
        assert_eq!(answer(Err::<(), _>("no")), failed("no"));
        let error = std::io::Error::other("disk gone");
        assert_eq!(answer(Err::<(), _>(error)), failed("disk gone"));
        let fails = || -> Result<(), ToolError> { Err("7".parse::<u8>().map(|n| n + 1)?.to_string())? };
        assert_eq!(answer(fails()), failed("8"));
        let two = ToolOutput::text("a").with("b").meta("k", 1).into_error();
        assert_eq!(answer(Err::<(), _>(two))["content"][1]["text"], "b");
    }

    #[test]
    fn a_protocol_error_is_none() {
        let error = Err::<(), _>(ToolError::protocol(-32602, "no")).into_output().unwrap_err();
        assert_eq!(error.into_answer().unwrap_err().code, -32602);
    }

    #[test]
    fn what_cannot_be_written_is_an_error_for_the_model() {
        #[derive(Serialize, JsonSchema)]
        struct Odd {
            map: std::collections::BTreeMap<Vec<u8>, u8>,
        }
        let answer = answer(Structured(Odd { map: [(vec![1], 1)].into() }));
        assert_eq!(answer["isError"], true);
        assert!(answer["content"][0]["text"].as_str().unwrap().contains("cannot be written"), "{answer}");
    }
}
