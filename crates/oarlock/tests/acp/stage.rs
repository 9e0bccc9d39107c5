//! What every scenario starts from: a sandbox, a scripted model, a CLI, and `oarlock acp`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use oarlock_testkit::acp::laws::{self, Facts};
use oarlock_testkit::acp::schema::Schemas;
use oarlock_testkit::acp::{Abilities, Client, Ended};
use oarlock_testkit::cli::{Cli, Program, Sandbox};
use oarlock_testkit::model::{Model, Script, text, tool};
use serde_json::{Map, Value, json};
use tokio::process::Command;

/// How long the agent and all that it started may take to be gone.
pub(crate) const GONE: Duration = Duration::from_secs(5);

/// A command that lasts longer than any test. A plain `sleep` is refused by the newest CLI.
pub(crate) const SLEEP: &str = "touch started; sleep 4711; true";

/// Whether that command runs.
pub(crate) fn sleeps(stage: &Stage) -> Result<bool> {
    Ok(stage.sandbox.processes()?.iter().any(|line| line.starts_with("sleep 4711")))
}

/// A scenario's surroundings.
pub(crate) struct Stage {
    pub(crate) program: Program,
    pub(crate) sandbox: Sandbox,
    pub(crate) model: Model,
    schemas: Arc<Schemas>,
    scripts: Mutex<BTreeMap<String, Script>>,
    /// Set by scenarios whose work goes on after its turn.
    background: bool,
}

impl Stage {
    pub(crate) async fn new(program: Program, target: &Path, schemas: Arc<Schemas>) -> Result<Self> {
        let cli = program.version().map(|version| Cli::at(&target.join("claude-cli"), version));
        if let Some(cli) = &cli {
            ensure!(cli.exists(), "{} is not there; it is fetched before the cage", cli.program.display());
        }
        Ok(Self {
            program,
            sandbox: Sandbox::new(cli.as_ref())?,
            model: Model::start().await?,
            schemas,
            scripts: Mutex::default(),
            background: false,
        })
    }

    /// Says that work goes on after its turn.
    pub(crate) fn with_background(mut self) -> Self {
        self.background = true;
        self
    }

    /// Whether tools really run, and transcripts are written.
    pub(crate) fn is_real(&self) -> bool {
        self.program != Program::Scripted
    }

    /// A path in the working directory.
    pub(crate) fn path(&self, name: &str) -> String {
        self.sandbox.work().join(name).to_string_lossy().into_owned()
    }

    /// A file in the working directory.
    pub(crate) fn given(&self, name: &str, contents: &str) -> Result<String> {
        self.sandbox.write(name, contents)?;
        Ok(self.path(name))
    }

    /// What a file in the working directory holds.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.sandbox.work().join(name)).ok()
    }

    /// Registers what the model says, and gives the prompt that makes it say it. Comes before the agent is started,
    /// because a scripted CLI reads all of it at its start.
    pub(crate) fn script(&self, name: &str, script: Script) -> String {
        let marker = self.model.script(name, script.clone());
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), script);
        format!("please {marker}")
    }

    /// One turn of text.
    pub(crate) fn says(&self, name: &str, words: &str) -> String {
        self.script(name, Script::new().turn([text(words)]))
    }

    /// A tool and then a text.
    pub(crate) fn uses(&self, name: &str, tool_name: &str, input: Value, words: &str) -> String {
        self.script(name, Script::new().turn([tool(tool_name, input)]).turn([text(words)]))
    }

    /// The command that starts the agent.
    pub(crate) fn command(&self, arguments: &[&str]) -> Result<Command> {
        let program =
            std::env::var_os("OARLOCK_E2E_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_oarlock").into());
        let mut command = Command::new(program);
        command.arg("acp").args(arguments).current_dir(self.sandbox.work()).env_clear();
        command.envs(self.sandbox.environment(Some(&self.model))?);
        Ok(command)
    }

    /// Starts an agent that has been said hello to.
    pub(crate) async fn agent(&self, abilities: Abilities) -> Result<Client> {
        self.agent_with(abilities, &[]).await
    }

    pub(crate) async fn agent_with(&self, abilities: Abilities, arguments: &[&str]) -> Result<Client> {
        self.install()?;
        let client = Client::start(self.command(arguments)?, abilities)?;
        client.initialize().await?;
        Ok(client)
    }

    /// An agent with a session.
    pub(crate) async fn open(&self, abilities: Abilities) -> Result<(Client, String)> {
        let client = self.agent(abilities).await?;
        let session = client.new_session(self.sandbox.work()).await?;
        Ok((client, session))
    }

    /// `session/new` with more than a directory.
    pub(crate) async fn open_with(&self, client: &Client, more: Value) -> Result<(String, Value)> {
        let mut params = json!({"cwd": self.sandbox.work(), "mcpServers": []});
        for (name, value) in more.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        let result = client.call("session/new", params).await?.result()?.clone();
        Ok((result["sessionId"].as_str().context("no id")?.to_owned(), result))
    }

    /// Ends the agent: it must go soon, have kept all laws, and leave nothing behind.
    pub(crate) async fn end(&self, client: Client) -> Result<()> {
        let abilities = client.abilities();
        let ended = client.end(GONE).await?;
        ensure!(ended.status.success(), "the agent ended with {}: {}", ended.status, ended.stderr);
        self.check(&ended, abilities, false)?;
        self.all_gone().await
    }

    /// The laws, for an agent that is gone.
    pub(crate) fn check(&self, ended: &Ended, abilities: Abilities, cut_off: bool) -> Result<()> {
        if std::env::var_os("OARLOCK_ACP_SHOW").is_some() {
            ended.lines.iter().for_each(|line| println!("{:?} {}", line.sent, line.message));
        }
        let secrets: Vec<String> = self
            .sandbox
            .environment(Some(&self.model))?
            .into_iter()
            .filter(|(name, _)| name == "ANTHROPIC_API_KEY")
            .map(|(_, value)| value.to_string_lossy().into_owned())
            .collect();
        let facts = Facts {
            abilities,
            secrets: &secrets,
            stderr: &ended.stderr,
            background: self.background,
            cut_off,
        };
        let complaints = laws::check(&ended.lines, &facts, &self.schemas)?;
        ensure!(
            complaints.is_empty(),
            "{} complaints:\n{}\n\nstderr: {}",
            complaints.len(),
            complaints.join("\n"),
            ended.stderr
        );
        Ok(())
    }

    /// Waits until no process of the sandbox is left.
    pub(crate) async fn all_gone(&self) -> Result<()> {
        let deadline = Instant::now() + GONE;
        loop {
            let left = self.sandbox.processes()?;
            if left.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "left behind: {left:?}");
            // A process that is no child of ours gives no sign of its end.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The ids of the CLIs that run here.
    pub(crate) fn clis(&self) -> Result<Vec<i32>> {
        let table = self.sandbox.process_table()?;
        let is_cli = |line: &str| line.contains("stream-json");
        Ok(table.into_iter().filter(|(_, line)| is_cli(line)).map(|(id, _)| id).collect())
    }

    /// Waits until something is so; for what gives no event.
    pub(crate) async fn until(&self, what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_so()? {
            ensure!(Instant::now() < deadline, "{what}: did not happen");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Waits until a transcript holds these words: the CLI writes it a moment after it has said them.
    pub(crate) async fn written(&self, words: &str) -> Result<()> {
        let projects = self.sandbox.home().join(".claude/projects");
        let holds = |path: PathBuf| std::fs::read_to_string(path).is_ok_and(|text| text.contains(words));
        let is_written = || -> Result<bool> {
            for project in std::fs::read_dir(&projects)? {
                let mut files = std::fs::read_dir(project?.path())?.flatten();
                if files.any(|file| holds(file.path())) {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        self.until(&format!("{words:?} in a transcript"), is_written).await
    }

    /// Puts a program in the place of `claude`: the text of a shell script.
    pub(crate) fn fake(&self, script: &str) -> Result<PathBuf> {
        self.sandbox.program("claude", script)
    }

    /// Makes `claude` play a script of the scripted CLI.
    pub(crate) fn play(&self, script: &str) -> Result<()> {
        self.sandbox.play(Path::new(env!("CARGO_BIN_EXE_oarlock")), script)
    }

    /// Makes `claude` the scripted CLI with all scripts of the model, where no CLI is there.
    fn install(&self) -> Result<()> {
        if self.is_real() || self.sandbox.bin().join("claude").exists() {
            return Ok(());
        }
        let scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        let turns: Result<Vec<Value>> = scripts
            .iter()
            .map(|(name, script)| {
                Ok(json!({"when": format!("{{{{script {name}}}}}"), "steps": steps(script, &scripts)?}))
            })
            .collect();
        let document = json!({"turn": turns?});
        self.play(&toml::to_string(&document)?)
    }
}

/// The steps of a scripted CLI that do what the model's script would have made the real one do.
fn steps(script: &Script, all: &BTreeMap<String, Script>) -> Result<Vec<Value>> {
    let turns: Vec<Vec<Value>> = serde_json::from_value(serde_json::to_value(script)?)?;
    let mut steps = Vec::new();
    for block in turns.into_iter().flatten() {
        let mut step = Map::new();
        if block.get("tool").is_some() {
            step.insert("tool".to_owned(), block["tool"].clone());
            step.insert("input".to_owned(), block["input"].clone());
            let prompt = block["input"]["prompt"].as_str().unwrap_or_default();
            let nested = all.iter().find(|(name, _)| prompt.contains(&format!("{{{{script {name}}}}}")));
            if let Some((_, nested)) = nested {
                step.insert("steps".to_owned(), json!(self::steps(nested, all)?));
            }
        } else if let Some(milliseconds) = block.get("pause") {
            step.insert("after_ms".to_owned(), milliseconds.clone());
        } else if let Some(status) = block.get("error") {
            step.insert("api_error".to_owned(), status.clone());
        } else {
            for name in ["text", "thinking"] {
                if let Some(words) = block.get(name) {
                    step.insert(name.to_owned(), words.clone());
                }
            }
        }
        ensure!(!step.is_empty(), "the scripted CLI cannot play {block}");
        steps.push(Value::Object(step));
    }
    Ok(steps)
}
