//! What is done, and in which order: every round visits everyone, so that whatever else the machine does meets all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use oarlock_testkit::acp::reference::Adapter;
use oarlock_testkit::cli::{Cli, Sandbox};
use oarlock_testkit::model::{Model, Request, Script, pieces, text, tool};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::alone::{Alone, Recipe};
use crate::client::Client;
use crate::figures::{Figure, Samples, Who};

/// Rounds over everything; the median counts.
pub(crate) const ROUNDS: usize = 7;
const SESSIONS: usize = 8;
const TURNS: usize = 100;
pub(crate) const DELTAS: usize = 2000;
/// Starts are cheap, and noisy.
const STARTS: usize = 3;
/// Until a process that was just busy has given back what it will, or has made the calls that nobody waits for.
const SETTLE: Duration = Duration::from_millis(1500);

/// All that was measured with one CLI.
pub(crate) struct Figures {
    pub(crate) version: String,
    pub(crate) rounds: usize,
    pub(crate) samples: Samples,
    /// How many API calls three prompts made, by kind.
    pub(crate) calls: Vec<(Who, BTreeMap<String, usize>)>,
    pub(crate) payloads: Payloads,
}

/// Every text that a client must get, once each, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Payloads {
    pub(crate) read: usize,
    pub(crate) write: usize,
    /// The old and the new text.
    pub(crate) edit: usize,
}

/// Where it happens.
struct Stage<'a> {
    sandbox: &'a Sandbox,
    ours: &'a Path,
    adapter: &'a Adapter,
    cli: &'a Cli,
    runtime: &'a Runtime,
    model: &'a Model,
    files: Files,
}

/// The texts that tools are used on.
struct Files {
    listing: PathBuf,
    before: String,
    after: String,
    written: String,
}

pub(crate) fn run(
    runtime: &Runtime,
    ours: &Path,
    adapter: &Adapter,
    cli: &Cli,
    rounds: usize,
) -> Result<Figures> {
    let sandbox = Sandbox::new(Some(cli))?;
    let model = runtime.block_on(Model::start())?;
    let files = Files::new(&sandbox);
    let payloads = Payloads {
        read: files.before.len(),
        write: files.written.len(),
        edit: files.before.len() + files.after.len(),
    };
    let stage = Stage { sandbox: &sandbox, ours, adapter, cli, runtime, model: &model, files };
    let mut samples = Samples::default();

    println!("{}: warming up", cli.version);
    // The first start fills the cache, and shows how the CLI is started.
    let recipe = stage.observe()?;
    let history = stage.make_history(&recipe)?;
    for round in 1..=rounds {
        println!("{}: round {round} of {rounds}", cli.version);
        stage.visit_alone(&recipe, &mut samples)?;
        for who in [Who::Ours, Who::Reference] {
            let about = || format!("{who:?}");
            stage.visit(who, &mut samples).with_context(about)?;
            stage.visit_many(who, &mut samples).with_context(about)?;
            stage.visit_load(who, &history, &mut samples).with_context(about)?;
        }
    }
    let mut calls = Vec::new();
    for who in [Who::Alone, Who::Ours, Who::Reference] {
        println!("{}: API calls of {who:?}", cli.version);
        calls.push((who, stage.count_calls(who, &recipe)?));
    }
    Ok(Figures { version: cli.version.clone(), rounds, samples, calls, payloads })
}

impl Files {
    fn new(sandbox: &Sandbox) -> Self {
        let line =
            |n: usize| format!("line {n:05}: what a file of source code looks like, more or less, here\n");
        let lines = |bytes: usize| {
            let mut text = String::new();
            for n in 0..bytes / line(0).len() {
                text.push_str(&line(n));
            }
            text
        };
        let before = lines(50_000);
        let after = before.replace("line 00300:", "line three hundred:");
        Self { listing: sandbox.work().join("listing.txt"), before, after, written: lines(102_000) }
    }
}

impl Stage<'_> {
    /// The adapter, in the sandbox.
    fn command(&self, who: Who, model: &Model) -> Result<Command> {
        let mut command = match who {
            Who::Ours => {
                let mut command = Command::new(self.ours);
                command.arg("acp");
                command
            }
            _ => self.adapter.command(),
        };
        command.env_clear().envs(self.sandbox.environment(Some(model))?).current_dir(self.sandbox.work());
        command.env("CLAUDE_CODE_EXECUTABLE", &self.cli.program);
        Ok(command)
    }

    fn start(&self, who: Who) -> Result<Client> {
        self.wait_for_silence()?;
        Client::start(self.command(who, self.model)?)
    }

    /// Waits until nothing of the last visit runs any more.
    fn wait_for_silence(&self) -> Result<()> {
        let limit = Instant::now() + Duration::from_secs(20);
        loop {
            let running = self.sandbox.processes()?;
            if running.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < limit, "these do not end: {running:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn new_session(&self, client: &mut Client) -> Result<(String, f64)> {
        let params = json!({"cwd": self.sandbox.work(), "mcpServers": []});
        let exchange = client.call("session/new", params)?;
        let id = exchange.result["sessionId"].as_str().context("no sessionId")?.to_owned();
        Ok((id, exchange.time()))
    }

    fn hello(&self) -> String {
        format!("say it {}", self.model.script("hello", Script::new().turn([text("Hello there.")])))
    }

    fn deltas(&self) -> String {
        let words = (0..DELTAS).map(|n| format!("word {n:05}, "));
        let script = Script::new().turn([pieces(words)]);
        format!("say much {}", self.model.script("deltas", script))
    }

    /// Starts ours, and looks at the CLI that it has started.
    fn observe(&self) -> Result<Recipe> {
        let mut client = self.start(Who::Ours)?;
        client.initialize()?;
        let (session, _) = self.new_session(&mut client)?;
        client.prompt(&session, &self.hello())?;
        Recipe::observe(self.sandbox, self.cli)
    }

    /// A session of 100 turns, each with a call of a tool. Gives its id.
    fn make_history(&self, recipe: &Recipe) -> Result<String> {
        self.wait_for_silence()?;
        let model = self.runtime.block_on(Model::start())?;
        let note = self.sandbox.write("note.txt", "A note of a few words.\n".repeat(10))?;
        let script = Script::new()
            .turn([text("I shall read the note. "), tool("Read", json!({"file_path": note}))])
            .turn([text("It has a few words, ten times over. ".repeat(16))]);
        let prompt = format!("what is in the note? {}", model.script("history", script));
        let mut alone = Alone::start(recipe, Some(model.base_url()))?;
        for _ in 0..TURNS {
            alone.prompt(&prompt)?;
        }
        Ok(alone.session.clone())
    }

    fn visit_alone(&self, recipe: &Recipe, samples: &mut Samples) -> Result<()> {
        self.wait_for_silence()?;
        let mut alone = Alone::start(recipe, None)?;
        let turn = alone.prompt(&self.hello())?;
        let first = turn.first_text.context("no text came")?;
        samples.add(Who::Alone, Figure::FirstText, (first - alone.process.started).as_secs_f64());
        std::thread::sleep(SETTLE);
        let turn = alone.prompt(&self.deltas())?;
        let first = turn.first_text.context("no text came")?;
        samples.add(Who::Alone, Figure::LaterText, (first - turn.sent).as_secs_f64());
        samples.add(Who::Alone, Figure::DeltasWall, (turn.ended - turn.sent).as_secs_f64());
        Ok(())
    }

    /// One process and one session, from its start through all kinds of prompts.
    fn visit(&self, who: Who, samples: &mut Samples) -> Result<()> {
        let mut starts = Vec::new();
        for _ in 0..STARTS {
            let mut client = self.start(who)?;
            starts.push((client.initialize()?.answered - client.process.started).as_secs_f64());
        }

        let mut client = self.start(who)?;
        let answered = client.initialize()?.answered;
        starts.push((answered - client.process.started).as_secs_f64());
        starts.sort_by(f64::total_cmp);
        samples.add(who, Figure::Initialize, starts[starts.len() / 2]);

        let (session, time) = self.new_session(&mut client)?;
        samples.add(who, Figure::New, time);
        let exchange = client.prompt(&session, &self.hello())?;
        let first = exchange.first_text.context("no text came")?;
        samples.add(who, Figure::FirstText, (first - client.process.started).as_secs_f64());
        std::thread::sleep(SETTLE);
        samples.add(who, Figure::MemoryOne, client.process.memory()?);

        let cpu = client.process.cpu()?;
        let exchange = client.prompt(&session, &self.deltas())?;
        samples.add(who, Figure::DeltasCpu, client.process.cpu()? - cpu);
        samples.add(who, Figure::DeltasWall, exchange.time());
        samples.add(who, Figure::DeltasBytes, exchange.bytes as f64);
        let first = exchange.first_text.context("no text came")?;
        samples.add(who, Figure::LaterText, (first - exchange.sent).as_secs_f64());
        self.visit_tools(who, &mut client, &session, samples)
    }

    fn visit_tools(&self, who: Who, client: &mut Client, session: &str, samples: &mut Samples) -> Result<()> {
        let Files { listing, before, after, written } = &self.files;
        std::fs::write(listing, before)?;
        let new = self.sandbox.work().join("written.txt");
        let _ = std::fs::remove_file(&new);
        let edit =
            json!({"file_path": listing, "old_string": "line 00300:", "new_string": "line three hundred:"});
        for (figure, name, input) in [
            (Figure::Read, "Read", json!({"file_path": listing})),
            (Figure::Write, "Write", json!({"file_path": new, "content": written})),
            (Figure::Edit, "Edit", edit),
        ] {
            let script = Script::new().turn([tool(name, input)]).turn([text("Done.")]);
            let prompt = format!("use it {}", self.model.script(name, script));
            let exchange = client.prompt(session, &prompt)?;
            samples.add(who, figure, exchange.bytes as f64);
            if who == Who::Ours {
                let is_there = match figure {
                    Figure::Read => exchange.holds("line 00600: what a file"),
                    Figure::Write => exchange.holds(written),
                    _ => exchange.holds(before) && exchange.holds(after),
                };
                ensure!(is_there, "{name}: the client did not get all of the text");
            }
        }
        ensure!(std::fs::read_to_string(listing)? == *after, "Edit did not edit");
        ensure!(std::fs::read_to_string(new)? == *written, "Write did not write");
        Ok(())
    }

    /// One process and eight sessions with a prompt each.
    fn visit_many(&self, who: Who, samples: &mut Samples) -> Result<()> {
        let mut client = self.start(who)?;
        client.initialize()?;
        for _ in 0..SESSIONS {
            let (session, _) = self.new_session(&mut client)?;
            client.prompt(&session, &self.hello())?;
        }
        std::thread::sleep(SETTLE);
        samples.add(who, Figure::MemoryEight, client.process.memory()?);
        Ok(())
    }

    fn visit_load(&self, who: Who, session: &str, samples: &mut Samples) -> Result<()> {
        let mut client = self.start(who)?;
        client.initialize()?;
        let params = json!({"sessionId": session, "cwd": self.sandbox.work(), "mcpServers": []});
        let exchange = client.call("session/load", params)?;
        let prompts = exchange.lines.iter().filter(|line| line.contains("\"user_message_chunk\"")).count();
        ensure!(prompts == TURNS, "{prompts} of {TURNS} prompts were shown");
        samples.add(who, Figure::Load, exchange.time());
        Ok(())
    }

    /// What the model was asked for by a session of three prompts.
    fn count_calls(&self, who: Who, recipe: &Recipe) -> Result<BTreeMap<String, usize>> {
        self.wait_for_silence()?;
        let model = self.runtime.block_on(Model::start())?;
        let prompt = format!("say it {}", model.script("hello", Script::new().turn([text("Hello there.")])));
        if who == Who::Alone {
            let mut alone = Alone::start(recipe, Some(model.base_url()))?;
            for _ in 0..3 {
                alone.prompt(&prompt)?;
            }
            std::thread::sleep(SETTLE);
        } else {
            let mut client = Client::start(self.command(who, &model)?)?;
            client.initialize()?;
            let (session, _) = self.new_session(&mut client)?;
            for _ in 0..3 {
                client.prompt(&session, &prompt)?;
            }
            std::thread::sleep(SETTLE);
        }
        self.wait_for_silence()?;
        let mut calls = BTreeMap::new();
        for request in model.requests() {
            *calls.entry(kind(&request)).or_default() += 1;
        }
        Ok(calls)
    }
}

fn kind(request: &Request) -> String {
    let path = request.path.split('?').next().unwrap_or_default();
    match path {
        "/v1/messages" if request.turn.is_some() => "turns".to_owned(),
        "/v1/messages" => "messages beside the turns".to_owned(),
        "/v1/messages/count_tokens" => "count_tokens".to_owned(),
        _ => format!("{} {path}", request.method),
    }
}
