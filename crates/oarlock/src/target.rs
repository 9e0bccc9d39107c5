//! Which running engine a command talks to.

use std::path::Path;

use anyhow::Context as _;
use oarlock_ide::client::{Client, Credential};
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
        pick(running()?, self.engine, &std::env::current_dir()?)
    }

    /// Asks it one thing.
    pub(crate) async fn ask(&self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let client = self.connect().await?;
        let answer = client.request(method, params).await;
        client.close().await;
        Ok(answer?)
    }

    /// A connection to it that may decide.
    pub(crate) async fn connect(&self) -> anyhow::Result<Client> {
        let engine = self.find()?;
        Ok(Client::connect(engine.port, Credential::Control(&engine.control)).await?)
    }

    /// A connection to it as an ordinary MCP client.
    pub(crate) async fn connect_as_client(&self) -> anyhow::Result<Client> {
        let engine = self.find()?;
        let client = Client::connect(engine.port, Credential::Token(&token(&engine)?)).await?;
        client.initialize("oarlock").await?;
        Ok(client)
    }
}

/// All engines of this user that run.
pub(crate) fn running() -> anyhow::Result<Vec<Running>> {
    let dir = state::engines_dir(&Environment::from_process())?;
    Ok(Engines::open(dir)?.running())
}

/// The token that the engine's own clients use.
pub(crate) fn token(engine: &Running) -> anyhow::Result<Token> {
    let path = engine.lock.display();
    let bytes = std::fs::read(&engine.lock).with_context(|| format!("failed to read lock file {path}"))?;
    let lock =
        LockFile::parse(&bytes).with_context(|| format!("lock file {path} is broken; restart the engine"))?;
    lock.auth_token.with_context(|| format!("lock file {path} has no token; restart the engine"))
}

/// The engine with this port, or else the one whose folder is nearest above the directory.
pub(crate) fn pick(engines: Vec<Running>, port: Option<u16>, cwd: &Path) -> anyhow::Result<Running> {
    let list = |engines: &[Running]| -> String {
        engines
            .iter()
            .map(|e| {
                let folders: Vec<_> = e.workspace.iter().map(|f| f.display().to_string()).collect();
                format!("\n  --engine {}  {} (pid {})", e.port, folders.join(", "), e.pid)
            })
            .collect()
    };
    if engines.is_empty() {
        return Err(Failure::not_found("no engine is running; start one with `oarlock serve`"));
    }
    if let Some(port) = port {
        let all = list(&engines);
        let found = engines.into_iter().find(|engine| engine.port == port);
        return found.ok_or_else(|| Failure::not_found(format!("no engine on port {port}; running:{all}")));
    }
    let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let nearness = |engine: &Running| -> usize {
        let inside = engine.workspace.iter().filter(|folder| cwd.starts_with(folder));
        inside.map(|folder| folder.components().count()).max().unwrap_or(0)
    };
    let best = engines.iter().map(nearness).max().unwrap_or(0);
    let all = list(&engines);
    let mut found = engines.into_iter().filter(|engine| best > 0 && nearness(engine) == best);
    match (found.next(), found.next()) {
        (Some(engine), None) => Ok(engine),
        (Some(_), Some(_)) => {
            Err(Failure::not_found(format!("several engines serve this directory; choose one:{all}")))
        }
        (None, _) => Err(Failure::not_found(format!("no engine serves {}; running:{all}", cwd.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(port: u16, folder: &str) -> Running {
        Running {
            port,
            pid: 1,
            workspace: vec![folder.into()],
            control: Token::from_text("secret".into()),
            lock: "/nowhere".into(),
        }
    }

    #[test]
    fn the_nearest_folder_wins_and_a_tie_is_an_error() {
        let engines = vec![engine(1, "/a"), engine(2, "/a/b"), engine(3, "/x")];
        let cwd = Path::new("/a/b/c");
        assert_eq!(pick(engines.clone(), None, cwd).unwrap().port, 2);
        assert_eq!(pick(engines.clone(), Some(3), cwd).unwrap().port, 3);
        let none = pick(engines, None, Path::new("/ab")).unwrap_err().to_string();
        assert!(none.contains("--engine 3  /x") && !none.contains("secret"), "{none}");
        let tie = vec![engine(1, "/a"), engine(2, "/a")];
        assert!(pick(tie, None, cwd).unwrap_err().to_string().contains("several"));
    }
}
