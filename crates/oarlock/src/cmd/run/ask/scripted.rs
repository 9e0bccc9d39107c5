//! A person who says what a test wants.

use std::collections::VecDeque;
use std::io;

use oarlock_agent::Options;
use oarlock_agent::permission::PermissionRequest;
use oarlock_agent::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::{Person, Silence, Spoken};

/// Says the lines of a script, and has an editor that makes one text of another.
#[derive(Default)]
pub(super) struct Scripted {
    pub(super) lines: VecDeque<&'static str>,
    pub(super) edits: VecDeque<fn(&str) -> String>,
    pub(super) shown: String,
}

impl Scripted {
    pub(super) fn saying(lines: impl IntoIterator<Item = &'static str>) -> Self {
        Self { lines: lines.into_iter().collect(), ..Self::default() }
    }

    pub(super) fn plain(&self) -> String {
        anstream::adapter::strip_str(&self.shown).to_string()
    }
}

impl Person for Scripted {
    fn print(&mut self, text: &str) -> io::Result<()> {
        self.shown.push_str(text);
        Ok(())
    }

    fn ask(&mut self, question: &str) -> Spoken<String> {
        self.shown.push_str(question);
        let line = self.lines.pop_front().ok_or(Silence::Gone)?;
        self.shown.push_str(&format!("{line}\n"));
        Ok(line.trim().to_owned())
    }

    fn edit(&mut self, _: &str, text: &str) -> io::Result<String> {
        let edit = self.edits.pop_front().ok_or_else(|| io::Error::other("there is no editor"))?;
        Ok(edit(text))
    }
}

/// A question as a session hands it to its callback: a CLI at the other end of a pipe asks it.
pub(super) fn request(body: serde_json::Value) -> PermissionRequest {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (host, cli) = tokio::io::duplex(1 << 20);
        let (heard, said) = tokio::io::split(host);
        let (asked, mut questions) = tokio::sync::mpsc::channel(1);
        let options = Options::new().can_use_tool(move |request| {
            let _ = asked.try_send(request.clone());
            async move { request.deny("") }
        });
        let play = async {
            let (from, mut to) = tokio::io::split(cli);
            let mut lines = BufReader::new(from).lines();
            let hello: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
            let ready = json!({"type": "control_response", "response": {
                "subtype": "success", "request_id": hello["request_id"], "response": {}}});
            let question = json!({"type": "control_request", "request_id": "r", "request": body});
            to.write_all(format!("{ready}\n{question}\n").as_bytes()).await.unwrap();
            // It stays until the question has come through.
            std::future::pending::<()>().await
        };
        let host = async {
            let _session = options.connect_over(Transport::new(heard, said)).await.unwrap();
            questions.recv().await.unwrap()
        };
        tokio::select! {
            request = host => request,
            () = play => unreachable!("it waits"),
        }
    })
}
