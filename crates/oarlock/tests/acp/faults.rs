//! CLIs that die, hang or babble, disks that are full, clients that do not read.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarlock_testkit::acp::{Abilities, Client};
use oarlock_testkit::model::{Block, Script, hold, text, tool};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::turns::text_of;

/// How long a prompt may wait for the end of a CLI that is dead.
const AFTER_DEATH: Duration = Duration::from_secs(10);

pub(crate) fn kill_clis(stage: &Stage) -> Result<usize> {
    let clis = stage.clis()?;
    for id in &clis {
        // It may have ended since.
        let _ = kill_process(Pid::from_raw(*id).context("no process has the id 0")?, Signal::KILL);
    }
    Ok(clis.len())
}

pub(crate) async fn acp_prompt_03_caa_734_a_killed_cli_answers_the_prompt(stage: Stage) -> Result<()> {
    let held = stage.script("held", Script::new().turn([text("begun"), hold("never")]));
    let next = stage.says("next", "alive");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let id = client.ask(&session, &held).await?;
    client.update("agent_message_chunk", |_| true).await?;
    ensure!(kill_clis(&stage)? == 1, "one CLI runs");
    let answer = client.answered_within(&id, AFTER_DEATH).await?;
    answer.error(-32603)?;
    let said = text_of(&client, &session, &next).await?;
    ensure!(said.ends_with("alive"), "{said}");
    stage.end(client).await
}

/// Whatever the CLI was at, the prompt is answered, the calls are ended, and the next prompt works.
pub(crate) async fn killed_at_random_points_of_a_turn(stage: Stage) -> Result<()> {
    let file = stage.given("a.txt", "one\n")?;
    let script = || {
        Script::new()
            .turn([text("a"), Block::Pause { pause: 40 }, tool("Read", json!({"file_path": file}))])
            .turn([tool("Bash", json!({"command": "sleep 0.1; echo b", "description": "b"}))])
            .turn([Block::Pause { pause: 40 }, text("c")])
    };
    let prompts: Vec<String> = (0..6).map(|n| stage.script(&format!("work{n}"), script())).collect();
    let next = stage.says("next", "alive");
    let (client, session) = stage.open(Abilities::Zed).await?;
    text_of(&client, &session, &next).await?;
    // Reproducible, and different each time.
    let delays = [3, 47, 121, 190, 270, 420];
    for (prompt, delay) in prompts.iter().zip(delays) {
        let id = client.ask(&session, prompt).await?;
        tokio::time::sleep(Duration::from_millis(delay)).await;
        kill_clis(&stage)?;
        client.answered_within(&id, AFTER_DEATH).await?;
        let said = text_of(&client, &session, &next).await?;
        ensure!(said.ends_with("alive"), "after {delay} ms: {said}");
    }
    stage.end(client).await
}

/// Between prompts nobody notices, but for a word about it.
pub(crate) async fn caa_338_a_dead_cli_comes_back(stage: Stage) -> Result<()> {
    let (one, two) = (stage.says("one", "remember this"), stage.says("two", "it is back"));
    let (client, session) = stage.open(Abilities::Full).await?;
    text_of(&client, &session, &one).await?;
    stage.written("remember this").await?;
    ensure!(kill_clis(&stage)? == 1);
    stage.until("its end", || Ok(stage.clis()?.is_empty())).await?;
    ensure!(text_of(&client, &session, &two).await? == "it is back");
    let asked = stage.model.turn("two", 0, Duration::from_secs(5)).await?;
    ensure!(asked.body.to_string().contains("remember this"), "the conversation is lost");
    ensure!(!client.picture(&session).notices.is_empty(), "the user is not told");
    stage.end(client).await
}

pub(crate) async fn caa_570_caa_361_the_reason_of_a_death_is_told(stage: Stage) -> Result<()> {
    stage.play(
        "[[turn]]\nsteps = [{ text = \"half a\" }, { stderr = \"the licence has expired\" }, { exit = 1 }]\n",
    )?;
    let (client, session) = stage.open(Abilities::Zed).await?;
    let answer = client.prompt(&session, "go").await?;
    let error = answer.error(-32603)?.to_string();
    ensure!(error.contains("the licence has expired"), "what the CLI said last is not told: {error}");
    stage.end(client).await
}

pub(crate) async fn a_cli_that_hangs_at_its_start(stage: Stage) -> Result<()> {
    stage.fake("case \"$1\" in --version|-v) echo '2.1.325 (Claude Code)';; *) exec sleep 3600;; esac")?;
    let client = stage.agent(Abilities::Zed).await?;
    let begin = std::time::Instant::now();
    let (session, _) = stage.open_with(&client, json!({})).await?;
    ensure!(begin.elapsed() < Duration::from_secs(6), "session/new waited {:?}", begin.elapsed());
    let id = client.ask(&session, "anyone there?").await?;
    client.cancel(&session).await?;
    let answer = client.answered_within(&id, Duration::from_secs(2)).await?;
    ensure!(answer.stop_reason()? == "cancelled", "{answer:?}");
    client.call("session/close", json!({"sessionId": session})).await?.result()?;
    stage.end(client).await
}

pub(crate) async fn a_cli_that_hangs_in_a_turn(stage: Stage) -> Result<()> {
    stage.play(
        "ignore = [\"interrupt\"]\nignore_signals = true\n\
         [[turn]]\nwhen = \"hang\"\nsteps = [{ text = \"I hang\" }, { stop_reading = true }, { after_ms = 3600000 }]\n\
         [[turn]]\nsteps = [{ text = \"fine\" }]\n",
    )?;
    let (client, session) = stage.open(Abilities::Zed).await?;
    let id = client.ask(&session, "hang").await?;
    client.update("agent_message_chunk", |_| true).await?;
    client.cancel(&session).await?;
    let answer = client.answered_within(&id, Duration::from_secs(2)).await?;
    ensure!(answer.stop_reason()? == "cancelled", "{answer:?}");
    // It is killed in the end, and another takes its place.
    let said = text_of(&client, &session, "again").await?;
    ensure!(said.contains("fine"), "{said}");
    stage.end(client).await
}

pub(crate) async fn a_cli_that_prints_garbage(stage: Stage) -> Result<()> {
    stage.play(
        "[[turn]]\nsteps = [{ line = \"this is no JSON\" }, { line = '{\"type\":\"future\",\"x\":[1]}' }, { line = '{\"type\":5}' }, \
         { bytes = \"ff fe 00 0a\" }, { line = '{\"type\":\"assistant\"}' }, { text = \"words in between\" }, { line = \"[]\" }]\n",
    )?;
    let (client, session) = stage.open(Abilities::Zed).await?;
    let said = text_of(&client, &session, "go").await?;
    ensure!(said == "words in between", "{said}");
    stage.end(client).await
}

pub(crate) async fn a_cli_that_dies_at_once(stage: Stage) -> Result<()> {
    stage.fake("case \"$1\" in --version|-v) echo '2.1.325 (Claude Code)';; *) echo 'no disk, no fun' >&2; exit 7;; esac")?;
    let client = stage.agent(Abilities::Zed).await?;
    let answer = client.call("session/new", json!({"cwd": stage.sandbox.work(), "mcpServers": []})).await?;
    let error = answer.error(-32603)?.to_string();
    ensure!(error.contains("no disk, no fun"), "{error}");
    stage.end(client).await
}

pub(crate) async fn agent_shell_305_without_a_cli_the_error_says_how_to_get_one(stage: Stage) -> Result<()> {
    let mut command = stage.command(&[])?;
    command.env("PATH", stage.sandbox.bin());
    let client = Client::start(command, Abilities::Zed)?;
    client.initialize().await?;
    let answer = client.call("session/new", json!({"cwd": stage.sandbox.work(), "mcpServers": []})).await?;
    let error = answer.0["error"].to_string();
    ensure!(error.contains("claude") && error.to_lowercase().contains("install"), "{error}");
    stage.end(client).await
}

/// The CLI cannot write its transcript; the turn is answered all the same.
pub(crate) async fn a_full_disk_for_the_transcript(stage: Stage) -> Result<()> {
    let prompt = stage.says("hi", "hello");
    let projects = stage.sandbox.home().join(".claude/projects");
    std::fs::create_dir_all(&projects)?;
    // A disk of its own, with room for nothing. Where it may not be mounted, a file in its place does as well.
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4k,nr_inodes=3", "tmpfs"])
        .arg(&projects)
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        std::fs::remove_dir(&projects)?;
        std::fs::write(&projects, "not a directory")?;
    }
    let outcome = async {
        let (client, session) = stage.open(Abilities::Full).await?;
        for _ in 0..2 {
            client.prompt(&session, &prompt).await?;
        }
        client.call("session/list", json!({})).await?;
        stage.end(client).await
    };
    let outcome = outcome.await;
    if mounted {
        std::process::Command::new("umount").arg("-l").arg(&projects).status()?;
    }
    outcome
}

fn resident(pid: i32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse()?)
}

/// A client that does not read holds back the CLI, not memory.
pub(crate) async fn acp_end_03_a_client_that_stops_reading(stage: Stage) -> Result<()> {
    stage.play("delta = 1000\n[[turn]]\nwhen = \"flood\"\nsteps = [{ text = \"0123456789abcdef\", repeat = 8000000 }]\n[[turn]]\nsteps = [{ text = \"fine\" }]\n")?;
    let (client, session) = stage.open(Abilities::Bare).await?;
    text_of(&client, &session, "hello").await?;
    let pid = client.pid().context("it runs")?;
    let before = resident(pid)?;
    client.read(false);
    let id = client.ask(&session, "flood").await?;
    let mut most = before;
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        most = most.max(resident(pid)?);
    }
    ensure!(most - before < 64 * 1024, "it grew by {} kB", most - before);
    client.cancel(&session).await?;
    client.read(true);
    let answer = client.answered(&id).await?;
    ensure!(matches!(answer.stop_reason()?, "cancelled" | "end_turn"), "{answer:?}");
    let is_list = |answer: &Value| answer["sessions"].is_array();
    ensure!(is_list(client.call("session/list", json!({})).await?.result()?));
    stage.end(client).await
}

/// A CLI that starts, reads what it is told, and begins no turn. What it does at the end of its input is `last`.
fn dumb(stage: &Stage, last: &str) -> Result<()> {
    let script = format!(
        r#"case "$1" in --version|-v) echo '2.1.325 (Claude Code)'; exit;; esac
[ -e "$0.second" ] && exec "$0.second" "$@"
read -r line
id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
printf '{{"type":"control_response","response":{{"subtype":"success","request_id":"%s","response":{{"commands":[],"models":[]}}}}}}\n' "$id"
while read -r line; do case $line in *'"type":"user"'*) told=1;; esac; done
{last}"#
    );
    stage.fake(&script)?;
    Ok(())
}

/// One that never begins the turn is killed like one that does not end it, and what was cancelled stays so.
pub(crate) async fn a_cli_that_never_begins_the_turn(stage: Stage) -> Result<()> {
    stage.play("[[turn]]\nsteps = [{ text = \"said: ${prompt}\" }]\n")?;
    let program = stage.sandbox.bin().join("claude");
    let second = stage.sandbox.bin().join("claude.second");
    std::fs::rename(&program, stage.sandbox.bin().join("claude.waits"))?;
    dumb(&stage, "exec sleep 3600")?;
    let (client, session) = stage.open(Abilities::Zed).await?;
    std::fs::rename(stage.sandbox.bin().join("claude.waits"), &second)?;
    let id = client.ask(&session, "one").await?;
    client.cancel(&session).await?;
    let answer = client.answered_within(&id, Duration::from_secs(2)).await?;
    ensure!(answer.stop_reason()? == "cancelled", "{answer:?}");
    let id = client.ask(&session, "two").await?;
    client.answered_within(&id, Duration::from_secs(20)).await?.stop_reason()?;
    let said = client.picture(&session).text();
    ensure!(said.ends_with("said: two") && !said.contains("one"), "{said}");
    stage.end(client).await
}

/// A client that cancels again and again does not put off the answer.
pub(crate) async fn cancels_in_a_row_do_not_put_off_the_answer(stage: Stage) -> Result<()> {
    stage.play(
        "ignore = [\"interrupt\"]\n[[turn]]\nsteps = [{ text = \"I hang\" }, { after_ms = 3600000 }]\n",
    )?;
    let (client, session) = stage.open(Abilities::Zed).await?;
    let id = client.ask(&session, "hang").await?;
    client.update("agent_message_chunk", |_| true).await?;
    let mut answer = None;
    for _ in 0..5 {
        client.cancel(&session).await?;
        answer = client.answered_within(&id, Duration::from_millis(500)).await.ok();
        if answer.is_some() {
            break;
        }
    }
    ensure!(answer.context("it is not answered while the client cancels")?.stop_reason()? == "cancelled");
    stage.end(client).await
}

/// However much a CLI babbles at once, it is not taken for dead.
pub(crate) async fn a_cli_that_babbles_lives_on(stage: Stage) -> Result<()> {
    std::fs::write(stage.sandbox.root().join("babble"), "no\n".repeat(60_000))?;
    stage
        .play("[[turn]]\nsteps = [{ text = \"before \" }, { play = \"babble\" }, { text = \"behind\" }]\n")?;
    let (client, session) = stage.open(Abilities::Zed).await?;
    let said = text_of(&client, &session, "go").await?;
    ensure!(said == "before behind", "{said}");
    stage.end(client).await
}

/// A prompt that the CLI has and has not begun is not begun because its session is closed.
pub(crate) async fn a_closed_session_begins_nothing(stage: Stage) -> Result<()> {
    dumb(&stage, &format!("[ -n \"$told\" ] && sleep 0.3 && touch {}", stage.path("ran")))?;
    let (client, session) = stage.open(Abilities::Zed).await?;
    let id = client.ask(&session, "one").await?;
    // It gives no sign that it has the prompt.
    tokio::time::sleep(Duration::from_millis(300)).await;
    client.call("session/close", json!({"sessionId": session})).await?.result()?;
    ensure!(client.answered(&id).await?.stop_reason()? == "cancelled");
    stage.end(client).await?;
    tokio::time::sleep(Duration::from_millis(400)).await;
    ensure!(stage.read("ran").is_none(), "what was cancelled was done");
    Ok(())
}
