//! Which running engine a command talks to.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use oarlock_ide::client::{Client, Credential, NOT_FOUND};
use oarlock_ide::discover::Environment;
use oarlock_ide::lock::LockFile;
use oarlock_ide::state::{self, Engines, Running};
use oarlock_ide::token::Token;
use serde_json::Value;

use crate::exit::Failure;

/// Options that every command for a running engine has.
#[derive(clap::Args)]
pub(crate) struct Target {
    /// The engine's port; otherwise the engine of this directory
    #[arg(long, value_name = "PORT")]
    pub(crate) engine: Option<u16>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Target {
    /// The engine that is meant.
    pub(crate) fn find(&self) -> anyhow::Result<Running> {
        let engine = choose(running()?, &std::env::current_dir()?, self.engine)?;
        engine.ok_or_else(|| Failure::not_found("no engine is running; start one with `oarlock serve`"))
    }

    /// Asks it one thing.
    pub(crate) async fn ask(&self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let client = self.connect().await?;
        let answer = client.request(method, params).await;
        client.close().await;
        answer.map_err(refused)
    }

    /// A connection to it that may decide.
    pub(crate) async fn connect(&self) -> anyhow::Result<Client> {
        let engine = self.find()?;
        Ok(Client::connect(engine.socket(), Credential::Control(&engine.control)).await?)
    }
}

/// An engine's error with the exit code that it deserves.
pub(crate) fn refused(error: oarlock_ide::Error) -> anyhow::Error {
    match error {
        oarlock_ide::Error::Answer { code, message } if code == i64::from(NOT_FOUND) => {
            Failure::not_found(message)
        }
        other => other.into(),
    }
}

/// The engines that run and answer at their port.
pub(crate) fn running() -> anyhow::Result<Vec<Running>> {
    let engines = Engines::open(state::engines_dir(&Environment::from_process())?)?;
    Ok(engines.running().into_iter().filter(|engine| answers(engine.socket())).collect())
}

/// After a crash another process may have the engine's id; the port tells.
fn answers(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok()
}

/// Chooses: the one that was asked for, else the one whose folder is the nearest above the directory. `None` when none
/// runs at all.
pub(crate) fn choose(
    running: Vec<Running>,
    cwd: &Path,
    asked: Option<u16>,
) -> anyhow::Result<Option<Running>> {
    if let Some(port) = asked {
        let list = list(&running);
        let found = running.into_iter().find(|engine| engine.port == port);
        return found
            .map(Some)
            .ok_or_else(|| Failure::not_found(format!("no engine of Oarlock runs on port {port}; {list}")));
    }
    if running.is_empty() {
        return Ok(None);
    }
    let nearness = |engine: &Running| {
        let above = engine.workspace.iter().filter(|folder| cwd.starts_with(folder));
        above.map(|folder| folder.components().count()).max()
    };
    let best = running.iter().filter_map(nearness).max();
    let is_best = |engine: &&Running| best.is_some() && nearness(engine) == best;
    let near: Vec<&Running> = running.iter().filter(is_best).collect();
    match near.as_slice() {
        [engine] => Ok(Some((*engine).clone())),
        [] => Err(Failure::not_found(format!(
            "no running engine has {} in its folders; choose one with --engine PORT, or start one here with `oarlock serve`; {}",
            cwd.display(),
            list(&running)
        ))),
        _ => Err(Failure::not_found(format!(
            "several engines have {} in their folders; choose one with --engine PORT; {}",
            cwd.display(),
            list(&running)
        ))),
    }
}

fn list(running: &[Running]) -> String {
    if running.is_empty() {
        return "none is running".to_owned();
    }
    let mut text = "running:".to_owned();
    for engine in running {
        let folders: Vec<String> =
            engine.workspace.iter().map(|folder| folder.display().to_string()).collect();
        text.push_str(&format!("\n  --engine {}  {}", engine.port, folders.join(", ")));
    }
    text
}

/// The token that the engine's own clients use.
pub(crate) fn token(engine: &Running) -> anyhow::Result<Token> {
    let path = engine.lock.display();
    let bytes = std::fs::read(&engine.lock).with_context(|| format!("failed to read lock file {path}"))?;
    let lock =
        LockFile::parse(&bytes).with_context(|| format!("lock file {path} is broken; restart the engine"))?;
    lock.auth_token.with_context(|| format!("lock file {path} has no token; restart the engine"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(port: u16, folders: &[&str]) -> Running {
        Running {
            address: std::net::Ipv4Addr::LOCALHOST.into(),
            port,
            pid: 1,
            workspace: folders.iter().map(Into::into).collect(),
            control: Token::from_text("control".to_owned()),
            lock: format!("/locks/{port}.lock").into(),
        }
    }

    fn port(running: &[Running], cwd: &str, asked: Option<u16>) -> Result<Option<u16>, String> {
        match choose(running.to_vec(), Path::new(cwd), asked) {
            Ok(chosen) => Ok(chosen.map(|engine| engine.port)),
            Err(error) => {
                assert!(matches!(error.downcast_ref::<Failure>(), Some(Failure::NotFound(_))), "exit code 3");
                Err(error.to_string())
            }
        }
    }

    #[test]
    fn the_nearest_folder_above_wins() {
        let all = [engine(1, &["/w"]), engine(2, &["/x", "/w/a"]), engine(3, &["/w/a/b"])];
        assert_eq!(port(&all, "/w", None), Ok(Some(1)));
        assert_eq!(port(&all, "/w/a", None), Ok(Some(2)));
        assert_eq!(port(&all, "/w/a/c", None), Ok(Some(2)));
        assert_eq!(port(&all, "/w/a/b/c", None), Ok(Some(3)));
        assert_eq!(port(&all, "/w/ab", None), Ok(Some(1)), "whole names only");
        assert_eq!(port(&all, "/w/a", Some(3)), Ok(Some(3)), "the flag counts more");
        assert_eq!(port(&[], "/w", None), Ok(None));
    }

    #[test]
    fn none_or_two_that_match_are_listed() {
        let two = [engine(1, &["/w"]), engine(2, &["/w"])];
        let error = port(&two, "/w/a", None).unwrap_err();
        assert!(
            error.contains("several") && error.contains("--engine 1") && error.contains("--engine 2"),
            "{error}"
        );
        let error = port(&two, "/elsewhere", None).unwrap_err();
        assert!(
            error.contains("no running engine has /elsewhere") && error.contains("--engine 2  /w"),
            "{error}"
        );
        let error = port(&two, "/w", Some(9)).unwrap_err();
        assert!(error.contains("port 9") && error.contains("--engine 1"), "{error}");
        assert!(port(&[], "/w", Some(9)).unwrap_err().contains("none is running"));
    }
}
