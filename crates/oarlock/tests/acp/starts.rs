//! How it is started: by an editor, or by somebody who wants to know what it is.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarlock_testkit::acp::{Abilities, Client};
use oarlock_testkit::tui::Launch;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::stage::Stage;

/// What a program said before it ended.
struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

async fn run(mut command: Command) -> Result<Said> {
    let output = command.stdin(std::process::Stdio::null()).output().await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    Ok(Said { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) })
}

/// Writes the user's configuration.
fn configure(stage: &Stage, contents: &str) -> Result<()> {
    let dir = stage.sandbox.home().join(".config/oarlock");
    std::fs::create_dir_all(&dir)?;
    Ok(std::fs::write(dir.join("config.toml"), contents)?)
}

/// The flag, our variable, everybody's variable, the configuration, the PATH: each counts more than what follows.
pub(crate) async fn caa_184_the_claude_that_is_named_is_driven(stage: Stage) -> Result<()> {
    let named = |name: &str| stage.sandbox.program(name, &format!("echo {name}"));
    let (flag, ours, common, file) = (named("flag")?, named("ours")?, named("common")?, named("file")?);
    stage.fake("echo path")?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    configure(&stage, &format!("[claude]\nprogram = {:?}\n", text(&file)))?;
    let said = async |arguments: &[&str], variables: &[(&str, &Path)]| -> Result<String> {
        let mut command = stage.command(arguments)?;
        command.envs(variables.iter().copied());
        let said = run(command).await?;
        ensure!(said.code == Some(0), "{}", said.stderr);
        Ok(said.stdout)
    };
    let both: [(&str, &Path); 2] = [("OARLOCK_CLAUDE_PROGRAM", &ours), ("CLAUDE_CODE_EXECUTABLE", &common)];
    ensure!(said(&["--claude", &text(&flag), "--cli"], &both).await? == "flag");
    ensure!(said(&["--cli"], &both).await? == "ours");
    ensure!(said(&["--cli"], &both[1..]).await? == "common");
    ensure!(said(&["--cli"], &[]).await? == "file");
    configure(&stage, "")?;
    ensure!(said(&["--cli"], &[]).await? == "path");
    Ok(())
}

pub(crate) async fn a_wrong_command_line_says_what_is_wrong(stage: Stage) -> Result<()> {
    let cases: [(&[&str], i32, &str); 6] = [
        (&["--thinking", "loud"], 2, "summarized"),
        (&["--park-after", "soon"], 2, "minutes"),
        (&["--park-after=-1"], 2, "minutes"),
        (&["--trace", "/no/such/place/trace"], 1, "/no/such/place/trace"),
        (&["--log", "/no/such/place/log"], 1, "/no/such/place/log"),
        (&["zed"], 2, "zed"),
    ];
    for (arguments, code, word) in cases {
        let said = run(stage.command(arguments)?).await?;
        ensure!(said.code == Some(code) && said.stderr.contains(word), "{arguments:?}: {}", said.stderr);
        ensure!(said.stdout.is_empty(), "{arguments:?}: stdout is for the wire: {}", said.stdout);
    }
    Ok(())
}

/// Editors keep what is said on stderr, and show it as it is.
pub(crate) async fn without_a_cli_nothing_is_lost(stage: Stage) -> Result<()> {
    let mut command = stage.command(&["--cli", "auth", "login"])?;
    command.env("PATH", stage.sandbox.bin());
    let said = run(command).await?;
    ensure!(said.code == Some(3) && said.stderr.contains("npm install"), "{}", said.stderr);

    let mut command = stage.command(&[])?;
    command.env("PATH", stage.sandbox.bin());
    let client = Client::start(command, Abilities::Zed)?;
    client.initialize().await?;
    let answer = client.call("session/new", json!({"cwd": stage.sandbox.work(), "mcpServers": []})).await?;
    let error = answer.error(-32603)?.to_string();
    ensure!(error.contains("--claude PATH") && error.contains("CLAUDE_CODE_EXECUTABLE"), "{error}");
    // It can be installed meanwhile.
    stage.play("[[turn]]\nsteps = [{ text = \"here\" }]\n")?;
    let session = client.new_session(stage.sandbox.work()).await?;
    client.prompt(&session, "go").await?.result()?;
    ensure!(client.picture(&session).text() == "here");
    let noise = client.stderr();
    ensure!(!noise.contains('\u{1b}'), "{noise:?}");
    stage.end(client).await
}

/// Somebody who starts it by hand is told what it is, and whether it would work.
pub(crate) async fn at_a_terminal_it_says_what_it_is(stage: Stage) -> Result<()> {
    let claude = stage.fake("exit 1")?;
    let environment = stage.sandbox.environment(None)?;
    let launch = Launch::new(env!("CARGO_BIN_EXE_oarlock"), stage.sandbox.work(), environment);
    let tui = launch.args(["acp"]).start()?;
    let wait = Duration::from_secs(10);
    tui.wait_for_text("Agent Client Protocol", wait).await?;
    let name = claude.file_name().context("a name")?.to_string_lossy().into_owned();
    let is_named = |screen: &str| screen.split_whitespace().collect::<String>().contains(&format!("/{name}"));
    tui.wait_until("the claude it would drive", wait, is_named).await?;
    // The end of the input.
    tui.type_text("\u{4}")?;
    tui.wait_for_end(wait).await?;
    stage.all_gone().await
}

/// A configuration that cannot be read may name the `claude` to drive, so no other is.
pub(crate) async fn a_broken_configuration_is_told(stage: Stage) -> Result<()> {
    stage.fake("touch \"$HOME/started\"")?;
    configure(&stage, "[claude]\nprogram = 5\n")?;
    let said = run(stage.command(&["--cli"])?).await?;
    ensure!(said.code == Some(2) && said.stderr.contains("config.toml"), "{}", said.stderr);
    let client = Client::start(stage.command(&[])?, Abilities::Zed)?;
    client.initialize().await?;
    let params = json!({"cwd": stage.sandbox.work(), "mcpServers": []});
    let answer = client.call("session/new", params.clone()).await?;
    let error = answer.error(-32603)?.to_string();
    ensure!(error.contains("config.toml:2") && error.contains("claude.program"), "{error}");
    ensure!(!stage.sandbox.home().join("started").exists(), "another one was started");
    stage.end(client).await?;

    // A name that is not known is only told.
    std::fs::remove_file(stage.sandbox.bin().join("claude"))?;
    configure(&stage, "[claude]\nprogam = \"x\"\n")?;
    stage.play("[[turn]]\nsteps = [{ text = \"here\" }]\n")?;
    let (client, _) = stage.open(Abilities::Zed).await?;
    let noise = client.stderr();
    ensure!(noise.contains("claude.progam") && noise.contains("claude.program"), "{noise}");
    stage.end(client).await
}

/// A script that dies leaves a stack and the version of its runtime behind; what was wrong is before that.
pub(crate) async fn acpel_10_the_reason_of_a_death_is_not_its_stack(stage: Stage) -> Result<()> {
    stage.fake(
        "printf 'file.js:1\\nTypeError: no such thing\\n    at main (file.js:1:1)\\n\\nNode.js v22.1.0\\n' >&2; exit 1",
    )?;
    let client = stage.agent(Abilities::Zed).await?;
    let answer = client.call("session/new", json!({"cwd": stage.sandbox.work(), "mcpServers": []})).await?;
    let error = answer.error(-32603)?.to_string();
    ensure!(error.contains("TypeError: no such thing") && !error.contains("Node.js"), "{error}");
    stage.end(client).await
}

/// What was recorded can be played again: the client's side is a script.
pub(crate) async fn a_trace_can_be_played_again(stage: Stage) -> Result<()> {
    let prompt = stage.says("first", "said once");
    let file = stage.path("trace.jsonl");
    let client = stage.agent_with(Abilities::Zed, &["--trace", &file]).await?;
    let session = client.new_session(stage.sandbox.work()).await?;
    client.prompt(&session, &prompt).await?.result()?;
    stage.end(client).await?;

    let trace = stage.read("trace.jsonl").context("no trace")?;
    let lines: Vec<Value> = trace.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let requests = lines.iter().filter(|line| line["dir"] == "client->agent").map(|line| &line["msg"]);
    let client = Client::start(stage.command(&[])?, Abilities::Zed)?;
    let mut again = None;
    for request in requests.filter(|message| message.get("method").is_some()) {
        let method = request["method"].as_str().context("no method")?;
        let mut params = request["params"].clone();
        if let (Some(again), Some(_)) = (&again, params.get("sessionId")) {
            params["sessionId"] = json!(again);
        }
        let result = client.call(method, params).await?.result()?.clone();
        again = result["sessionId"].as_str().map(str::to_owned).or(again);
    }
    let again = again.context("no session")?;
    ensure!(client.picture(&again).text() == "said once", "{}", client.picture(&again).text());
    stage.end(client).await
}
