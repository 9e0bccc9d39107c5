//! A client that answers as it is told.

use std::sync::Arc;

use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_wire::frame::{Memory, memory};
use oarlock_wire::{Connection, Ended, Limits, Responder, Service, Tasks};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::Settings;
use crate::context::{Asker, Context};

/// What the client was sent, and how it answers.
pub(crate) struct FakeClient {
    pub(crate) asker: Asker,
    asked: mpsc::Receiver<(String, Value)>,
}

struct Script<F> {
    answer: F,
    asked: mpsc::Sender<(String, Value)>,
}

impl<F: FnMut(&str, &Value) -> Result<Value, ErrorObject> + Send> Service for Script<F> {
    fn request(&mut self, method: &str, params: Option<&RawValue>, responder: Responder, _: &mut Tasks) {
        let params = params.map_or(Value::Null, |params| serde_json::from_str(params.get()).expect("JSON"));
        let answer = (self.answer)(method, &params);
        let _ = self.asked.try_send((method.to_owned(), params));
        match answer {
            Ok(answer) => responder.reply(&answer),
            Err(error) => responder.error(&error),
        }
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>, _: &mut Tasks) {
        let params = params.map_or(Value::Null, |params| serde_json::from_str(params.get()).expect("JSON"));
        let _ = self.asked.try_send((method.to_owned(), params));
    }

    fn closed(&mut self, _: &Ended) {}
}

/// Nobody calls us here.
pub(crate) struct Deaf;

impl Service for Deaf {
    fn request(&mut self, _: &str, _: Option<&RawValue>, responder: Responder, _: &mut Tasks) {
        responder.error(&ErrorObject::internal("not here"));
    }

    fn notification(&mut self, _: &str, _: Option<&RawValue>, _: &mut Tasks) {}

    fn closed(&mut self, _: &Ended) {}
}

impl FakeClient {
    pub(crate) fn new(
        capabilities: Value,
        settings: Settings,
        config_dir: Option<&std::path::Path>,
        answer: impl FnMut(&str, &Value) -> Result<Value, ErrorObject> + Send + 'static,
    ) -> Self {
        let (ours, theirs): (Memory, Memory) = memory(64);
        let connection = Connection::new(ours, Limits::default());
        let context = Context {
            settings: Arc::new(settings),
            peer: connection.peer(),
            client: Arc::new(serde_json::from_value(capabilities).expect("capabilities")),
            client_info: None,
            library: config_dir.map(oarlock_agent::history::Library::at),
        };
        tokio::spawn(connection.run(Deaf));
        let (sender, asked) = mpsc::channel(64);
        tokio::spawn(Connection::new(theirs, Limits::default()).run(Script { answer, asked: sender }));
        Self { asker: Asker { context: Arc::new(context), session_id: "s1".into() }, asked }
    }

    pub(crate) fn plain(
        answer: impl FnMut(&str, &Value) -> Result<Value, ErrorObject> + Send + 'static,
    ) -> Self {
        Self::new(json!({}), Settings::default(), None, answer)
    }

    pub(crate) fn with_forms(
        answer: impl FnMut(&str, &Value) -> Result<Value, ErrorObject> + Send + 'static,
    ) -> Self {
        Self::new(json!({ "elicitation": { "form": {}, "url": {} } }), Settings::default(), None, answer)
    }

    pub(crate) async fn asked(&mut self) -> (String, Value) {
        self.asked.recv().await.expect("a question")
    }

    pub(crate) fn asked_all(&mut self) -> Vec<(String, Value)> {
        std::iter::from_fn(|| self.asked.try_recv().ok()).collect()
    }
}
