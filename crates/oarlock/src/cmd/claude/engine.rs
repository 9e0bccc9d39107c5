//! Which engine `claude` connects to.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use oarlock_ide::discover::{self, Connects, Environment};
use oarlock_ide::state::{self, Engines, Running};

use crate::exit::Failure;

/// The engines that run and answer at their port.
pub(super) fn running() -> anyhow::Result<Vec<Running>> {
    let engines = Engines::open(state::engines_dir(&Environment::from_process())?)?;
    Ok(engines.running().into_iter().filter(|engine| answers(engine.port)).collect())
}

/// After a crash another process may have the engine's id; the port tells.
fn answers(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok()
}

/// Chooses: the one that was asked for, else the one whose folder is the nearest above the directory. `None` when none
/// runs at all.
pub(super) fn choose(
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

/// Why `claude` would not connect to this port from here, if it would not.
pub(super) fn obstacle(port: u16, cwd: &Path) -> Option<String> {
    let environment = Environment { port: Some(port), auto_connect: None, ..Environment::from_process() };
    let outcome = discover::discover(&environment, cwd).verdict.port_variable?;
    (outcome.connects != Connects::Yes).then_some(outcome.text)
}

#[cfg(test)]
mod tests {
    use oarlock_ide::token::Token;

    use super::*;

    fn engine(port: u16, folders: &[&str]) -> Running {
        Running {
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
