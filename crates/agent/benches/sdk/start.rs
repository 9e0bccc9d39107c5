//! From a prompt to the first frame of its turn (`init`), with the real CLI in the cage: from nothing (cold), from a
//! [`Pool`] (warm), and as a bare driver sees it that has started the CLI with the same arguments before (raw).

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use oarlock_agent::stream::{Message, System};
use oarlock_agent::{Events, Options, Pool, Session};
use oarlock_testkit::cage;
use oarlock_testkit::cli::{Cli, Sandbox, VERSIONS};
use oarlock_testkit::install::Availability;
use oarlock_testkit::model::{Model, Script, text};

use crate::measure::median;

const ROUNDS: usize = 11;
/// A CLI that has just said it is ready is still busy with itself; one that waits in a pool is not.
const SETTLE: Duration = Duration::from_millis(700);

/// Milliseconds from a prompt to `init`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) cold: f64,
    pub(crate) warm: f64,
    pub(crate) raw: f64,
    /// Warm to raw, each round compared with itself.
    pub(crate) to_raw: f64,
}

/// Brings the CLIs here and measures them in a process that sees no network.
pub(crate) fn measure(target: &Path) -> Result<Vec<(&'static str, Start)>> {
    let store = target.join("claude-cli");
    for version in VERSIONS {
        if let Availability::Missing(why) = Cli::obtain(&store, version)? {
            bail!("the CLI {version} cannot be had: {why}");
        }
    }
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.arg("--start").arg(&store).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{command:?} failed: {}", output.status);
    let text = String::from_utf8(output.stdout)?;
    let figures = VERSIONS.into_iter().zip(text.lines()).map(|(version, line)| {
        let numbers: Vec<f64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [cold, warm, raw, to_raw] = numbers[..] else { bail!("the caged process said {line:?}") };
        Ok((version, Start { cold, warm, raw, to_raw }))
    });
    figures.collect()
}

/// Runs as the caged process.
pub(crate) fn run_caged(store: &Path) -> Result<()> {
    cage::enter()?;
    let runtime = tokio::runtime::Runtime::new().context("failed to start tokio")?;
    for version in VERSIONS {
        let start = runtime.block_on(compare(&Cli::at(store, version)))?;
        println!("{} {} {} {}", start.cold, start.warm, start.raw, start.to_raw);
    }
    Ok(())
}

async fn compare(cli: &Cli) -> Result<Start> {
    let sandbox = Sandbox::new(Some(cli))?;
    let model = Model::start().await?;
    let prompt = format!("say it {}", model.script("start", Script::new().turn([text("ok")])));
    let options = Options::new()
        .program(&cli.program)
        .cwd(sandbox.work())
        .env_clear()
        .envs(sandbox.environment(Some(&model))?);

    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let raw = tokio::task::block_in_place(|| raw(&options, &prompt))?;

        let pool = Pool::new(options.clone(), 1);
        while pool.ready() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(SETTLE).await;
        let start = Instant::now();
        let (session, events) = pool.take().await?;
        let warm = first_frame(start, session, events, &prompt).await?;
        drop(pool);

        let start = Instant::now();
        let (session, events) = options.clone().connect().await?;
        let cold = first_frame(start, session, events, &prompt).await?;
        rounds.push([cold, warm, raw]);
    }
    let of = |at: usize| median(rounds.iter().map(|round| round[at]));
    let to_raw = median(rounds.iter().map(|[_, warm, raw]| warm / raw));
    Ok(Start { cold: of(0), warm: of(1), raw: of(2), to_raw })
}

/// Milliseconds from `start` to the first frame of the prompt's turn.
async fn first_frame(start: Instant, session: Session, mut events: Events, prompt: &str) -> Result<f64> {
    session.send(prompt).await?;
    while let Some(message) = events.next().await {
        if let Message::System(System::Init(_)) = message? {
            let time = start.elapsed();
            session.kill().await;
            return Ok(milliseconds(time));
        }
    }
    bail!("the CLI ended before it said `init`")
}

/// What the CLI itself needs.
fn raw(options: &Options, prompt: &str) -> Result<f64> {
    let launch = options.launch()?;
    let mut command: Command = launch.command().into_std();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = Kill(command.spawn().with_context(|| format!("failed to start {command:?}"))?);
    let mut stdin = child.0.stdin.take().context("stdin is a pipe")?;
    let mut lines = BufReader::new(child.0.stdout.take().context("stdout is a pipe")?).lines();
    let mut wait_for = |start: &str| -> Result<()> {
        let line = lines.by_ref().find(|line| !line.as_ref().is_ok_and(|line| !line.starts_with(start)));
        line.with_context(|| format!("the CLI ended before it said {start}"))?.map(drop).map_err(Into::into)
    };

    stdin.write_all(
        b"{\"type\":\"control_request\",\"request_id\":\"1\",\"request\":{\"subtype\":\"initialize\"}}\n",
    )?;
    wait_for(r#"{"type":"control_response""#)?;
    std::thread::sleep(SETTLE);
    let message = serde_json::json!({"role": "user", "content": prompt});
    let start = Instant::now();
    stdin.write_all(
        format!("{{\"type\":\"user\",\"message\":{message},\"parent_tool_use_id\":null}}\n").as_bytes(),
    )?;
    wait_for(r#"{"type":"system","subtype":"init""#)?;
    Ok(milliseconds(start.elapsed()))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Ends the process when dropped.
struct Kill(Child);

impl Drop for Kill {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
