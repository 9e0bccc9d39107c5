//! The SDK with the real CLI, where only the real one can show it: many at once, a hanging one, and what a kill leaves.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use oarlock_agent::stream::{Request, Unknown};
use oarlock_agent::{Error, Events, Options, Pool, Session};
use oarlock_testkit::model::{Script, text, tool};
use serde_json::json;

use crate::stage::{PATIENCE, Stage};

/// The stage's CLI, with its environment and nothing else.
fn options(stage: &Stage) -> Result<Options> {
    let environment = stage.sandbox.environment(Some(&stage.model))?;
    Ok(Options::new().program(&stage.cli.program).cwd(stage.sandbox.work()).env_clear().envs(environment))
}

async fn answer(session: &Session, events: &mut Events, prompt: String) -> Result<String> {
    session.send(prompt).await?;
    let turn = tokio::time::timeout(PATIENCE, events.turn(|_| {})).await.context("no result")??;
    Ok(turn.context("the stream ended")?.result.unwrap_or_default())
}

/// Waits until none of the sandbox's processes but those named is left.
async fn all_gone(stage: &Stage) -> Result<()> {
    let begin = Instant::now();
    loop {
        let left = stage.sandbox.processes()?;
        if left.is_empty() {
            return Ok(());
        }
        ensure!(begin.elapsed() < PATIENCE, "left behind: {left:?}");
        // Another process is watched; it sends no event.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) async fn eight_sessions_at_once(stage: Stage) -> Result<()> {
    let prompt = stage.model.script("many", Script::new().turn([text("One of eight.")]));
    let sessions = (0..8).map(|_| {
        let (options, prompt) = (options(&stage), prompt.clone());
        async move {
            let (session, mut events) = options?.connect().await?;
            let said = answer(&session, &mut events, prompt).await?;
            ensure!(said == "One of eight.", "{said}");
            Ok::<_, anyhow::Error>((session, events))
        }
    });
    let sessions = futures_util::future::try_join_all(sessions).await?;
    for (index, (session, events)) in sessions.into_iter().enumerate() {
        match index % 3 {
            0 => ensure!(session.close().await?.success()),
            1 => drop(session.kill().await),
            _ => drop((session, events)),
        }
    }
    all_gone(&stage).await
}

pub(crate) async fn a_killed_session_leaves_no_shell(stage: Stage) -> Result<()> {
    let command = json!({"command": "touch started; sleep 4711; true", "description": "wait"});
    let prompt = stage.model.script("shell", Script::new().turn([tool("Bash", command)]));
    let (session, events) = options(&stage)?.allowed_tools(["Bash"]).connect().await?;
    session.send(prompt).await?;
    let started = stage.sandbox.work().join("started");
    let begin = Instant::now();
    while !started.exists() {
        ensure!(begin.elapsed() < PATIENCE, "the command did not start");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ensure!(stage.sandbox.processes()?.len() > 1, "the shell runs");
    drop((session, events));
    all_gone(&stage).await
}

pub(crate) async fn a_hanging_cli_is_told_from_a_slow_one_and_ended(stage: Stage) -> Result<()> {
    let options = options(&stage)?.request_timeout(Duration::from_secs(5));
    let (session, _events) = options.connect().await?;
    // 2.1.197 answers nothing more after this; newer ones refuse it.
    let raw = json!({"subtype": "set_model", "model": 5}).into();
    let wrong = session.request(Request::Unknown(Unknown { tag: "set_model".into(), raw })).await;
    match wrong {
        Err(Error::NoAnswer { silent: true, .. }) if stage.cli.version == crate::OLDEST => {}
        Err(Error::Refused { .. }) if stage.cli.version == crate::NEWEST => {}
        other => bail!("{other:?}"),
    }
    let begin = Instant::now();
    session.close().await?;
    ensure!(begin.elapsed() < Duration::from_secs(4), "it took {:?}", begin.elapsed());
    all_gone(&stage).await
}

pub(crate) async fn a_pool_answers_from_a_warm_cli(stage: Stage) -> Result<()> {
    let prompt = stage.model.script("warm", Script::new().turn([text("Warm.")]));
    let pool = Pool::new(options(&stage)?, 1);
    for _ in 0..2 {
        let (session, mut events) = pool.take().await?;
        let said = answer(&session, &mut events, prompt.clone()).await?;
        ensure!(said == "Warm.", "{said}");
        session.close().await?;
    }
    drop(pool);
    all_gone(&stage).await
}

pub(crate) async fn errors_say_what_to_do(stage: Stage) -> Result<()> {
    use oarlock_testkit::model::Block;
    let ask = |name: &str, script: Script| {
        let question = oarlock_agent::ask(stage.model.script(name, script));
        Ok::<_, anyhow::Error>(question.options(options(&stage)?.max_retries(0)))
    };
    let login = ask("login", Script::new().turn([Block::Error { error: 401, times: None }]))?.await;
    ensure!(matches!(&login, Err(Error::Login { .. })), "{login:?}");
    let api = ask("api", Script::new().turn([Block::Error { error: 529, times: None }]))?.await;
    ensure!(matches!(&api, Err(Error::Api { status: Some(529), .. })), "{api:?}");
    let missing = oarlock_agent::ask("x")
        .options(options(&stage)?.resume("0d3fa1c2-5a50-4c55-9c1e-6a5b7cb0a999"))
        .await;
    ensure!(
        matches!(&missing, Err(Error::NotStarted { reason, .. }) if reason.contains("No conversation")),
        "{missing:?}"
    );
    if stage.cli.version == crate::OLDEST {
        let old = options(&stage)?.restricted(true).connect().await;
        let Err(error) = old else { bail!("2.1.197 knows --restricted") };
        ensure!(matches!(&error, Error::TooOld { option: "restricted", .. }), "{error}");
    }
    Ok(())
}
