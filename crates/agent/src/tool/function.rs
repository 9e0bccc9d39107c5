//! Tools made of functions.

use std::fmt;
use std::time::Duration;

use oarlock_proto::mcp;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::call::ToolCx;
use super::output::{IntoToolOutput, ToolError, ToolOutput};
use super::{BoxFuture, schema};
use crate::stream::Json;

type Function = Box<dyn Fn(Json, ToolCx) -> BoxFuture<Result<ToolOutput, ToolError>> + Send + Sync>;

/// A function that the model can call, with what it should know about it.
///
/// Calls run at the same time unless the tool is [`serial`](Self::serial). A function that fails, panics or takes
/// [too long](Self::timeout) gives the model an answer that says so; the session goes on.
pub struct Tool {
    pub(super) name: String,
    pub(super) function: Function,
    pub(super) turn: Option<Mutex<()>>,
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Duration,
    title: Option<String>,
    description: String,
    input_schema: Schema,
    output_schema: Option<Schema>,
    annotations: Annotations,
    meta: Map<String, Value>,
}

/// MCP's hints about a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Annotations {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_only_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destructive_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotent_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_world_hint: Option<bool>,
}

impl Tool {
    /// A tool of an async function or closure: `Fn()`, `Fn(Args)` or `Fn(Args, ToolCx)`.
    ///
    /// `Args` is a struct (or a map) that is `Deserialize` and [`JsonSchema`]; doc comments on its fields are what the
    /// model reads about them. Arguments that do not fit are answered with the field and the reason, and the function is
    /// not called.
    ///
    /// ```
    /// use oarlock_agent::tool::{Image, Tool, ToolCx, ToolError};
    /// # use schemars::JsonSchema;
    /// # use serde::Deserialize;
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Shot {
    ///     /// Which window; the one in front if there is none.
    ///     window: Option<String>,
    /// }
    ///
    /// let shot = Tool::new("screenshot", |args: Shot, cx: ToolCx| async move {
    ///     if args.window.as_deref() == Some("") {
    ///         return Err(ToolError::new("a window without a name cannot be found"));
    ///     }
    ///     let png = std::fs::read("screen.png")?; // any error that can be shown will do
    ///     tracing::info!(id = cx.tool_use_id(), "taken");
    ///     Ok(Image::png(&png))
    /// })
    /// .description("Take a picture of a window.")
    /// .read_only(true);
    /// ```
    pub fn new<F: ToolFunction<Kind>, Kind>(name: impl Into<String>, function: F) -> Self {
        let name = name.into();
        let function = std::sync::Arc::new(function);
        let call: Function = {
            let name = name.clone();
            Box::new(move |arguments, cx| {
                let (name, function) = (name.clone(), std::sync::Arc::clone(&function));
                Box::pin(async move {
                    let arguments = read(&arguments).map_err(|why| {
                        ToolError::new(format!("the arguments of `{name}` do not fit: {why}"))
                    })?;
                    function.call(arguments, cx).await.into_output()
                })
            })
        };
        let (input, output) = (schema::of_input::<F::Args>(), F::Output::output_schema());
        Self::with(name, call, input, output)
    }

    /// A tool whose schema is written by hand, or known only at run time. Its arguments come as JSON and have not been held
    /// against the schema: the CLI does not do that either.
    ///
    /// ```
    /// use oarlock_agent::stream::Json;
    /// use oarlock_agent::tool::{Tool, ToolCx};
    /// use serde_json::json;
    ///
    /// let schema = json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    /// let search = Tool::raw("search", schema, |args: Json, _cx: ToolCx| async move {
    ///     format!("nothing found for {}", args.value()["query"])
    /// });
    /// ```
    pub fn raw<F, Fut>(name: impl Into<String>, schema: Value, function: F) -> Self
    where
        F: Fn(Json, ToolCx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoToolOutput> + Send + 'static,
    {
        let call: Function = Box::new(move |arguments, cx| {
            let outcome = function(arguments, cx);
            Box::pin(async move { outcome.await.into_output() })
        });
        // What is no schema at all becomes one that `check` refuses.
        let schema = Schema::try_from(schema).unwrap_or_default();
        Self::with(name.into(), call, schema, Fut::Output::output_schema())
    }

    fn with(name: String, function: Function, input: Schema, output: Option<Schema>) -> Self {
        Self {
            name,
            function,
            turn: None,
            timeout: None,
            grace: Duration::ZERO,
            title: None,
            description: String::new(),
            input_schema: input,
            output_schema: output,
            annotations: Annotations::default(),
            meta: Map::new(),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it does and when to use it. The model decides by this text.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Its name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        let title = title.into();
        // MCP moved the title out of the annotations; the CLI (both versions) looks only there.
        self.annotations.title = Some(title.clone());
        self.title = Some(title);
        self
    }

    /// Says that it changes nothing (`readOnlyHint`). The CLI then calls it at the same time as others.
    #[must_use]
    pub fn read_only(mut self, hint: bool) -> Self {
        self.annotations.read_only_hint = Some(hint);
        self
    }

    /// Says whether what it changes may be lost (`destructiveHint`).
    #[must_use]
    pub fn destructive(mut self, hint: bool) -> Self {
        self.annotations.destructive_hint = Some(hint);
        self
    }

    /// Says whether a second call with the same arguments changes nothing more (`idempotentHint`).
    #[must_use]
    pub fn idempotent(mut self, hint: bool) -> Self {
        self.annotations.idempotent_hint = Some(hint);
        self
    }

    /// Says whether it reaches beyond this program and its data, as a web search does (`openWorldHint`).
    #[must_use]
    pub fn open_world(mut self, hint: bool) -> Self {
        self.annotations.open_world_hint = Some(hint);
        self
    }

    /// A remark for the CLI or another reader of the list (`_meta`).
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// Puts it into the prompt from the start. Otherwise a CLI that has tool search (2.1.325) tells the model only its name,
    /// and the model must look it up before it can call it well.
    #[must_use]
    pub fn always_load(self) -> Self {
        self.meta("anthropic/alwaysLoad", true)
    }

    /// How many characters of text it may answer before the CLI puts the answer into a file, of which the model sees only
    /// the beginning: 50,000 unless told, 500,000 at most.
    #[must_use]
    pub fn max_result_chars(self, most: u32) -> Self {
        self.meta("anthropic/maxResultSizeChars", most)
    }

    /// Stops a call that takes longer and tells the model so. Without it only the CLI's own limit counts.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// When the CLI withdraws a call, lets the function go on for so long, to see [`ToolCx::cancelled`] and tidy up.
    /// Without it the function is dropped at its next `await`. At the end of a session it always is.
    #[must_use]
    pub fn grace(mut self, time: Duration) -> Self {
        self.grace = time;
        self
    }

    /// Makes calls of this tool wait for each other, in all sessions.
    #[must_use]
    pub fn serial(mut self) -> Self {
        self.turn = Some(Mutex::new(()));
        self
    }

    /// Could the CLI and the API take it?
    pub(super) fn check(&self) -> Result<(), String> {
        check_name(&self.name)?;
        schema::check(&self.input_schema, "its arguments")?;
        match &self.output_schema {
            Some(output) => schema::check(output, "its answer"),
            None => Ok(()),
        }
    }

    /// Its entry in `tools/list`.
    pub(super) fn entry(&self) -> impl Serialize {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Entry<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            title: Option<&'a str>,
            description: &'a str,
            input_schema: &'a Schema,
            #[serde(skip_serializing_if = "Option::is_none")]
            output_schema: Option<&'a Schema>,
            #[serde(skip_serializing_if = "Option::is_none")]
            annotations: Option<&'a Annotations>,
            #[serde(skip_serializing_if = "Map::is_empty", rename = "_meta")]
            meta: &'a Map<String, Value>,
        }
        Entry {
            name: &self.name,
            title: self.title.as_deref(),
            description: &self.description,
            input_schema: &self.input_schema,
            output_schema: self.output_schema.as_ref(),
            annotations: Some(&self.annotations).filter(|&hints| *hints != Annotations::default()),
            meta: &self.meta,
        }
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The CLI makes `_` of every other character, and then two names can be one.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let fits = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if fits && (1..=128).contains(&name.len()) {
        return Ok(());
    }
    Err(format!("{name:?} cannot be a name; use 1 to 128 of the characters a-z, A-Z, 0-9, `_` and `-`"))
}

/// Reads the arguments, or says which field does not fit and why.
fn read<T: DeserializeOwned>(arguments: &Json) -> Result<T, String> {
    // No arguments are an empty object.
    let arguments = if arguments.is_null() { &Json::from(Value::Object(Map::new())) } else { arguments };
    arguments.read().map_err(|error| {
        // Slowly, once more, for the name of the field.
        match serde_path_to_error::deserialize::<_, T>(arguments.value()) {
            Err(error) => mcp::explain(&error),
            Ok(_) => error.to_string(),
        }
    })
}

/// Functions that can be a tool: `Fn()`, `Fn(Args)` and `Fn(Args, ToolCx)`, async, or returning a future.
///
/// `Kind` only keeps the three apart for the compiler.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a tool",
    label = "not an async `Fn()`, `Fn(Args)` or `Fn(Args, ToolCx)`",
    note = "`Args` must be `DeserializeOwned + JsonSchema + Send`, the output `IntoToolOutput`, the future `Send`, \
            the function `Send + Sync + 'static`; a closure needs the types of its arguments: `|args: Args, cx: ToolCx|`"
)]
pub trait ToolFunction<Kind>: Send + Sync + 'static {
    /// What it takes.
    type Args: DeserializeOwned + JsonSchema + Send;
    /// What it gives.
    type Output: IntoToolOutput;

    /// Calls it.
    fn call(&self, args: Self::Args, cx: ToolCx) -> impl Future<Output = Self::Output> + Send;
}

impl<F, Args, Fut> ToolFunction<fn(Args, ToolCx)> for F
where
    F: Fn(Args, ToolCx) -> Fut + Send + Sync + 'static,
    Args: DeserializeOwned + JsonSchema + Send,
    Fut: Future<Output: IntoToolOutput> + Send,
{
    type Args = Args;
    type Output = Fut::Output;

    fn call(&self, args: Args, cx: ToolCx) -> impl Future<Output = Self::Output> + Send {
        self(args, cx)
    }
}

impl<F, Args, Fut> ToolFunction<fn(Args)> for F
where
    F: Fn(Args) -> Fut + Send + Sync + 'static,
    Args: DeserializeOwned + JsonSchema + Send,
    Fut: Future<Output: IntoToolOutput> + Send,
{
    type Args = Args;
    type Output = Fut::Output;

    fn call(&self, args: Args, _: ToolCx) -> impl Future<Output = Self::Output> + Send {
        self(args)
    }
}

impl<F, Fut> ToolFunction<fn()> for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoToolOutput> + Send,
{
    type Args = NoArgs;
    type Output = Fut::Output;

    fn call(&self, _: NoArgs, _: ToolCx) -> impl Future<Output = Self::Output> + Send {
        self()
    }
}

/// The arguments of a tool that takes none but wants its [`ToolCx`]: `|_: NoArgs, cx: ToolCx| …`.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
// Without it the model would read this comment.
#[schemars(description = "")]
pub struct NoArgs {}
