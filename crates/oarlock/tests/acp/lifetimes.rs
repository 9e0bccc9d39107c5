//! Beginnings and ends: of the agent, of its sessions, and of all that they have started.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use oarlock_testkit::acp::{Abilities, Client};
use oarlock_testkit::model::{Script, hold, text, tool};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::stage::{GONE, SLEEP, Stage, sleeps};
use crate::turns::text_of;

/// A session in the middle of a command, and another in the middle of a text.
async fn busy(stage: &Stage) -> Result<Client> {
    let run = tool("Bash", json!({"command": SLEEP, "description": "Sleep"}));
    let command = stage.script("command", Script::new().turn([run]));
    let held = stage.script("held", Script::new().turn([text("words"), hold("never")]));
    let (client, one) = stage.open(Abilities::Zed).await?;
    client.ask(&one, &command).await?;
    let two = client.new_session(stage.sandbox.work()).await?;
    client.ask(&two, &held).await?;
    client.seen(&two, "words", |picture| picture.text() == "words").await?;
    stage.until("the command", || sleeps(stage)).await?;
    Ok(client)
}

pub(crate) async fn acp_end_01_the_end_of_stdin_ends_everything(stage: Stage) -> Result<()> {
    let client = busy(&stage).await?;
    let ended = client.end(GONE).await?;
    ensure!(ended.status.success(), "{}", ended.status);
    // Who closes stdin need not wait for answers, but who still reads gets them.
    let is_answer = |message: &Value| message["result"]["stopReason"] == "cancelled";
    let answers = ended.lines.iter().filter(|line| !line.sent && is_answer(&line.message)).count();
    ensure!(answers == 2, "{answers} of 2 prompts are answered");
    stage.check(&ended, Abilities::Zed, true)?;
    stage.all_gone().await
}

fn signal(client: &Client, signal: Signal) -> Result<()> {
    let id = client.pid().and_then(Pid::from_raw).context("it runs")?;
    Ok(kill_process(id, signal)?)
}

pub(crate) async fn acp_end_02_signals_end_everything(stage: Stage) -> Result<()> {
    for ends in [Signal::TERM, Signal::INT, Signal::HUP] {
        let client = busy(&stage).await?;
        signal(&client, ends)?;
        let ended = client.gone(GONE).await?;
        stage.check(&ended, Abilities::Zed, true)?;
        stage.all_gone().await.with_context(|| format!("after {ends:?}"))?;
    }
    Ok(())
}

pub(crate) async fn caa_1011_openclaw_70860_a_killed_agent_leaves_no_cli(stage: Stage) -> Result<()> {
    let client = busy(&stage).await?;
    signal(&client, Signal::KILL)?;
    let ended = client.gone(GONE).await?;
    stage.check(&ended, Abilities::Zed, true)?;
    stage.all_gone().await
}

pub(crate) async fn closing_a_session_ends_its_commands(stage: Stage) -> Result<()> {
    let run = tool("Bash", json!({"command": SLEEP, "description": "Sleep"}));
    let command = stage.script("command", Script::new().turn([run]));
    let (client, session) = stage.open(Abilities::Zed).await?;
    let id = client.ask(&session, &command).await?;
    stage.until("the command", || sleeps(&stage)).await?;
    client.call("session/close", json!({"sessionId": session})).await?.result()?;
    let answer = client.answered(&id).await?;
    ensure!(answer.stop_reason()? == "cancelled", "{answer:?}");
    stage.until("the end of all", || Ok(stage.sandbox.processes()?.len() == 1)).await?;
    client.call("session/prompt", json!({"sessionId": session, "prompt": []})).await?.error(-32002)?;
    stage.end(client).await
}

/// A small generator of numbers: runs are reproducible, and need no crate.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Opens, prompts, cancels and closes at random, until so many sessions have been there.
async fn come_and_go(stage: &Stage, prompt: &str, count: usize) -> Result<()> {
    let client = stage.agent(Abilities::Zed).await?;
    let mut dice = Dice(4711);
    let (mut open, mut opened) = (Vec::new(), 0);
    let (mut asked, mut closed) = (Vec::new(), Vec::new());
    while opened < count || !open.is_empty() {
        match dice.below(4) {
            0 | 1 if opened < count => {
                open.push(client.new_session(stage.sandbox.work()).await?);
                opened += 1;
            }
            2 if !open.is_empty() => {
                let session = &open[usize::try_from(dice.below(open.len() as u64))?];
                asked.push(client.ask(session, prompt).await?);
                if dice.below(3) == 0 {
                    client.cancel(session).await?;
                }
            }
            _ if open.len() > 8 || (opened == count && !open.is_empty()) => {
                let session = open.swap_remove(usize::try_from(dice.below(open.len() as u64))?);
                closed.push(client.request("session/close", json!({"sessionId": session})).await?);
            }
            _ => {}
        }
    }
    for id in asked {
        let answer = client.answered(&id).await?;
        let asked = client.lines().into_iter().find(|line| line.sent && line.message["id"] == id);
        let reason = answer.stop_reason().with_context(|| format!("{asked:?}"))?;
        ensure!(matches!(reason, "end_turn" | "cancelled"), "{answer:?}");
    }
    for id in closed {
        client.answered(&id).await?.result()?;
    }
    stage.until("the end of all CLIs", || Ok(stage.clis()?.is_empty())).await?;
    stage.end(client).await
}

pub(crate) async fn sixty_four_sessions_come_and_go(stage: Stage) -> Result<()> {
    let prompt = stage.says("many", "one of many");
    come_and_go(&stage, &prompt, 64).await
}

pub(crate) async fn eight_real_sessions_come_and_go(stage: Stage) -> Result<()> {
    let prompt = stage.says("many", "one of many");
    come_and_go(&stage, &prompt, 8).await
}

/// An idle CLI is let go; the next prompt brings it back in the same conversation.
pub(crate) async fn an_idle_session_is_parked_and_comes_back(stage: Stage) -> Result<()> {
    let prompt = stage.says("hi", "hello");
    let client = stage.agent_with(Abilities::Full, &["--park-after", "0.02"]).await?;
    let session = client.new_session(stage.sandbox.work()).await?;
    ensure!(text_of(&client, &session, &prompt).await? == "hello");
    let begin = Instant::now();
    stage.until("the parking", || Ok(stage.clis()?.is_empty())).await?;
    ensure!(begin.elapsed() > Duration::from_millis(300), "it was parked at once");
    ensure!(text_of(&client, &session, &prompt).await? == "hello");
    ensure!(client.picture(&session).notices.is_empty(), "parking is no fault");
    stage.end(client).await
}

/// Puts a program around the CLI that takes its time to go, and that sees whether another one is there.
fn linger(stage: &Stage) -> Result<PathBuf> {
    let place = stage.sandbox.bin().join("claude");
    std::fs::rename(&place, place.with_extension("real"))?;
    stage.fake(
        r#"case "$1" in --version|-v) exec "$0.real" "$@";; esac
[ -e "$0.pid" ] && kill -0 "$(cat "$0.pid")" 2>/dev/null && touch "$0.two"
echo $$ > "$0.pid"
trap '' TERM
"$0.real" "$@"
touch "$0.going"
sleep 3600"#,
    )
}

/// A prompt that comes while the CLI is being let go waits for its end: two would write one transcript.
pub(crate) async fn a_session_has_one_cli_at_a_time(stage: Stage) -> Result<()> {
    stage.play("[[turn]]\nsteps = [{ text = \"hello\" }]\n")?;
    let place = linger(&stage)?;
    let client = stage.agent_with(Abilities::Full, &["--park-after", "0.01"]).await?;
    let session = client.new_session(stage.sandbox.work()).await?;
    ensure!(text_of(&client, &session, "one").await? == "hello");
    stage.until("the parking", || Ok(place.with_extension("going").exists())).await?;
    ensure!(text_of(&client, &session, "two").await? == "hello");
    ensure!(!place.with_extension("two").exists(), "two CLIs at once");
    stage.end(client).await
}

/// One that is closed and opened again at once waits for the end of the first.
pub(crate) async fn a_reopened_session_has_one_cli_at_a_time(stage: Stage) -> Result<()> {
    let place = linger(&stage)?;
    let (one, two) = (stage.says("one", "hello"), stage.says("two", "hello again"));
    let (client, session) = stage.open(Abilities::Full).await?;
    ensure!(text_of(&client, &session, &one).await? == "hello");
    stage.written("hello").await?;
    let closed = client.request("session/close", json!({"sessionId": session})).await?;
    let params = json!({"sessionId": session, "cwd": stage.sandbox.work(), "mcpServers": []});
    client.call("session/resume", params).await?.result()?;
    ensure!(text_of(&client, &session, &two).await? == "hello again");
    client.answered(&closed).await?.result()?;
    ensure!(!place.with_extension("two").exists(), "two CLIs at once");
    stage.end(client).await
}

/// A CLI that writes its last words late does not bring back a session that was closed and deleted.
pub(crate) async fn a_deleted_session_stays_deleted(stage: Stage) -> Result<()> {
    let place = stage.sandbox.bin().join("claude");
    std::fs::rename(&place, place.with_extension("real"))?;
    stage.fake(
        r#"case "$1" in --version|-v) exec "$0.real" "$@";; esac
"$0.real" "$@"
sleep 0.4
id=$(printf '%s\n' "$@" | grep -o '[0-9a-f]*-[0-9a-f]*-[0-9a-f]*-[0-9a-f]*-[0-9a-f]*' | head -1)
for project in "$HOME"/.claude/projects/*; do echo '{"type":"late"}' >> "$project/$id.jsonl"; done"#,
    )?;
    let one = stage.says("one", "hello");
    let (client, session) = stage.open(Abilities::Full).await?;
    ensure!(text_of(&client, &session, &one).await? == "hello");
    stage.written("hello").await?;
    let closed = client.request("session/close", json!({"sessionId": session})).await?;
    client.call("session/delete", json!({"sessionId": session})).await?.result()?;
    client.answered(&closed).await?.result()?;
    stage.until("the end of the CLI", || Ok(stage.clis()?.is_empty())).await?;
    let name = format!("{session}.jsonl");
    for project in std::fs::read_dir(stage.sandbox.home().join(".claude/projects"))? {
        ensure!(!project?.path().join(&name).exists(), "the transcript is there again");
    }
    stage.end(client).await
}

/// A session that is loaded while it works goes on working, and its calls are not over.
pub(crate) async fn loading_a_busy_session_leaves_it_busy(stage: Stage) -> Result<()> {
    let run = tool("Bash", json!({"command": SLEEP, "description": "Sleep"}));
    let command = stage.script("command", Script::new().turn([text("words"), run]));
    let (client, session) = stage.open(Abilities::Zed).await?;
    let id = client.ask(&session, &command).await?;
    stage.until("the command", || sleeps(&stage)).await?;
    stage.written("sleep 4711").await?;
    for more in ["load", "resume"] {
        let params = json!({"sessionId": session, "cwd": stage.sandbox.work(), "mcpServers": [],
            "additionalDirectories": [stage.sandbox.home()]});
        client.call(&format!("session/{more}"), params).await?.result()?;
        ensure!(sleeps(&stage)?, "the command was ended by session/{more}");
        let call = client.picture(&session).calls.pop().context("no call")?;
        ensure!(call.status() == "in_progress", "after session/{more}: {call:?}");
    }
    client.cancel(&session).await?;
    ensure!(client.answered(&id).await?.stop_reason()? == "cancelled");
    // Now that nothing is at work, what the client has asked for counts.
    let is_open = |line: &String| line.contains("--add-dir");
    stage.until("the directory", || Ok(stage.sandbox.processes()?.iter().any(is_open))).await?;
    stage.end(client).await
}

/// A command in the background ends with its session and with the agent, however that ends.
pub(crate) async fn commands_in_the_background_end_with_all(stage: Stage) -> Result<()> {
    let stage = stage.with_background();
    let input = json!({"command": SLEEP, "description": "Sleep", "run_in_background": true});
    let command = stage.uses("command", "Bash", input, "started");
    for way in ["close", "stdin", "SIGTERM", "SIGKILL"] {
        let (client, session) = stage.open(Abilities::Zed).await?;
        ensure!(client.prompt(&session, &command).await?.stop_reason()? == "end_turn");
        stage.until("the command", || sleeps(&stage)).await?;
        let ended = match way {
            "close" => {
                client.call("session/close", json!({"sessionId": session})).await?.result()?;
                ensure!(!sleeps(&stage)?, "it outlives its session");
                client.end(GONE).await?
            }
            "stdin" => client.end(GONE).await?,
            way => {
                signal(&client, if way == "SIGTERM" { Signal::TERM } else { Signal::KILL })?;
                client.gone(GONE).await?
            }
        };
        stage.check(&ended, Abilities::Zed, true)?;
        stage.all_gone().await.with_context(|| format!("after {way}"))?;
    }
    Ok(())
}
