//! One cell of the matrix at work: a sandbox, a scripted model, and a driver as a process of its own.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use oarlock_testkit::cli::{Cli, Program, Sandbox};
use oarlock_testkit::model::{Model, Script};
use oarlock_testkit::sdk;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::expect;
use crate::plan::Plan;
use crate::scenario::{Cell, Scenario, Sdk};

/// How long a session may take. Waiting ends with the event, so this is only met by failures.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) struct Stage<'a> {
    scenario: &'a Scenario,
    cell: Cell,
    target: &'a Path,
    sandbox: Sandbox,
    model: Model,
}

impl<'a> Stage<'a> {
    pub(crate) async fn new(scenario: &'a Scenario, cell: Cell, target: &'a Path) -> Result<Self> {
        let cli = cell.program.version().map(|version| Cli::at(&target.join("claude-cli"), version));
        if let Some(cli) = &cli {
            ensure!(cli.exists(), "{} is not there; it is fetched before the cage", cli.program.display());
        }
        let sandbox = Sandbox::new(cli.as_ref())?;
        Ok(Self { scenario, cell, target, sandbox, model: Model::start().await? })
    }

    pub(crate) async fn play(&self) -> Result<()> {
        for (name, script) in &self.scenario.scripts {
            self.model.script(name, self.placed::<Script>(script)?);
        }
        if self.cell.program == Program::Scripted {
            self.install_scripted_cli()?;
        }
        for (name, contents) in &self.scenario.given {
            self.sandbox.write(name, contents)?;
        }
        let plan = Plan {
            cli: self.sandbox.bin().join("claude"),
            cwd: self.sandbox.work().to_owned(),
            limit: LIMIT.as_secs(),
            sessions: self.placed(&self.scenario.sessions)?,
        };
        let path = self.sandbox.root().join("plan.json");
        std::fs::write(&path, serde_json::to_vec(&plan)?)?;

        let summary = self.drive(&path, plan.sessions.len()).await?;
        if std::env::var_os("OARLOCK_SDK_SHOW").is_some() {
            println!("{}::{}: {summary}", self.scenario.name, self.cell);
        }
        let complaints = [self.complaints(&summary), self.left_behind().await?].concat();
        let asked: Vec<String> = self.model.requests().iter().map(|request| format!("{request:?}")).collect();
        let reasons = self.scenario.reasons(self.cell);
        ensure!(
            complaints.is_empty(),
            "{}\n\nknown exceptions here: {reasons:?}\n\nsummary: {summary}\n\nthe model was asked:\n{}",
            complaints.join("\n"),
            asked.join("\n")
        );
        Ok(())
    }

    /// Runs the driver to its end.
    async fn drive(&self, plan: &Path, sessions: usize) -> Result<Value> {
        let mut driver = self.driver(plan)?.spawn().context("failed to start the driver")?;
        let mut stderr = driver.stderr.take().context("stderr is piped")?;
        let noise = tokio::spawn(async move {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes).await;
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let longest = LIMIT * u32::try_from(sessions)? + LIMIT;
        let ended = tokio::time::timeout(longest, self.attend(&mut driver)).await;
        let summary = ended.with_context(|| format!("the driver did not end within {longest:?}")).flatten();
        if summary.is_err()
            && let Some(group) = driver.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()))
        {
            // Also the holders of its stderr.
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL)?;
        }
        match summary {
            Ok(summary) => Ok(summary),
            Err(error) => Err(error.context(format!("stderr: {}", noise.await?))),
        }
    }

    /// What still runs in the sandbox although the SDK's session is over.
    async fn left_behind(&self) -> Result<Vec<String>> {
        let deadline = Instant::now() + Duration::from_secs(3);
        loop {
            let processes = self.sandbox.processes()?;
            if processes.is_empty() || Instant::now() > deadline {
                return Ok(processes.iter().map(|line| format!("left behind: {line}")).collect());
            }
            // A process that is no child of ours gives no sign of its end.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Makes `claude` play the scenario's script.
    fn install_scripted_cli(&self) -> Result<()> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdk/scripts");
        let template = Path::new(folder).join(format!("{}.toml", self.scenario.script));
        let mut script = std::fs::read_to_string(&template)
            .with_context(|| format!("failed to read {}", template.display()))?;
        for (name, path) in self.places()? {
            script = script.replace(name, &path);
        }
        self.sandbox.play(Path::new(env!("CARGO_BIN_EXE_oarlock")), &script)
    }

    /// Reads what the driver says until its summary.
    async fn attend(&self, driver: &mut Child) -> Result<Value> {
        let mut lines = BufReader::new(driver.stdout.take().context("stdout is piped")?).lines();
        while let Some(line) = lines.next_line().await? {
            let mut said: Value = serde_json::from_str(&line).with_context(|| format!("no JSON: {line}"))?;
            if let Some(name) = said["signal"].as_str() {
                self.sandbox.write(&format!("{name}.signal"), "")?;
                self.model.release(name);
            } else {
                driver.wait().await?;
                return self.unplaced(&said["summary"].take());
            }
        }
        bail!("the driver ended without a summary: {}", driver.wait().await?)
    }

    fn complaints(&self, summary: &Value) -> Vec<String> {
        let mut complaints = expect::differences(&self.scenario.expectation(self.cell), summary);
        if let Some(same) = self.scenario.same_session {
            let ids: Vec<&Value> =
                summary.as_array().into_iter().flatten().map(|one| &one["session"]).collect();
            let as_wanted =
                ids.iter().all(|id| id.is_string()) && ids.windows(2).all(|two| (two[0] == two[1]) == same);
            if !as_wanted {
                complaints.push(format!("the ids of the sessions {ids:?} must be the same: {same}"));
            }
        }
        if self.cell.program.version().is_some() {
            for (name, wanted) in &self.scenario.files {
                let found = std::fs::read_to_string(self.sandbox.work().join(name)).ok();
                if found.as_deref() != *wanted {
                    complaints.push(format!("file {name}: wanted {wanted:?}, found {found:?}"));
                }
            }
            let requests = self.model.requests();
            for text in &self.scenario.told {
                if !requests.iter().any(|request| request.body.to_string().contains(text)) {
                    complaints.push(format!("the model was not told {text:?}"));
                }
            }
        }
        complaints
    }

    fn driver(&self, plan: &Path) -> Result<Command> {
        let mut command = match self.cell.sdk {
            Sdk::Ours => {
                let mut command = std::process::Command::new(std::env::current_exe()?);
                command.arg(crate::OURS_MODE);
                command
            }
            Sdk::Python => {
                let mut command = sdk::Sdk::Python.interpreter(self.target);
                command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdk/drivers/driver.py"));
                command
            }
            Sdk::TypeScript => {
                let mut command = sdk::Sdk::TypeScript.interpreter(self.target);
                command.args(["--input-type=module", "--eval", include_str!("drivers/driver.mjs"), "--"]);
                command
            }
        };
        command.arg(plan).env_clear().envs(self.sandbox.environment(Some(&self.model))?);
        command.envs(self.scenario.environment.iter().copied());
        let mut command = Command::from(command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        Ok(command)
    }

    /// The names of the sandbox's folders in plans and scripts, and what they stand for in this run.
    fn places(&self) -> Result<[(&'static str, String); 3]> {
        let text =
            |path: &Path| path.to_str().map(str::to_owned).context("a test folder's path is not UTF-8");
        let root = self.sandbox.home().parent().context("a home has a parent")?;
        let own = std::env::current_exe()?;
        Ok([("$WORK", text(self.sandbox.work())?), ("$ROOT", text(root)?), ("$SELF", text(&own)?)])
    }

    fn placed<T: DeserializeOwned>(&self, value: &impl Serialize) -> Result<T> {
        let mut text = serde_json::to_string(value)?;
        for (name, path) in self.places()? {
            text = text.replace(name, &path);
        }
        Ok(serde_json::from_str(&text)?)
    }

    fn unplaced(&self, value: &Value) -> Result<Value> {
        let mut text = value.to_string();
        for (name, path) in self.places()? {
            text = text.replace(&path, name);
        }
        Ok(serde_json::from_str(&text)?)
    }
}
