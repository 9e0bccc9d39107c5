//! Permission modes, and who may use them.

use oarlock_agent::stream::PermissionMode;
use oarlock_proto::acp::Mode;

/// All modes, in the order in which they are offered, with their names and what they mean.
const MODES: [(PermissionMode, &str, &str); 6] = [
    (PermissionMode::Default, "Manual", "Always ask before making changes"),
    (PermissionMode::AcceptEdits, "Accept edits", "Automatically accept all file edits"),
    (PermissionMode::Plan, "Plan", "Create a plan before making changes"),
    (PermissionMode::Auto, "Auto", "Claude handles permission decisions"),
    (PermissionMode::BypassPermissions, "Bypass permissions", "Accept all without asking"),
    (PermissionMode::DontAsk, "Don't ask", "Refuse what would need a question"),
];

/// Is it a mode of which we know what it means?
pub(super) fn is_known(mode: &PermissionMode) -> bool {
    MODES.iter().any(|(known, ..)| known == mode)
}

/// The modes that somebody may choose, by what is allowed.
pub(super) fn offered(may_bypass: bool, may_auto: bool) -> impl Iterator<Item = PermissionMode> {
    MODES.into_iter().map(|(mode, ..)| mode).filter(move |mode| match mode {
        PermissionMode::BypassPermissions => may_bypass,
        PermissionMode::Auto => may_auto,
        // It would make most tools fail, which is for scripts: it works for those who know it.
        PermissionMode::DontAsk => false,
        _ => true,
    })
}

/// How a mode is shown.
pub(super) fn describe(mode: &PermissionMode) -> Mode {
    let id = mode.as_str().to_owned();
    match MODES.iter().find(|(known, ..)| known == mode) {
        Some((_, name, description)) => {
            Mode { id, name: (*name).into(), description: Some((*description).into()) }
        }
        None => Mode { name: id.clone(), id, description: None },
    }
}

/// Does the CLI let this user bypass permissions? It refuses root, and does not even start then, unless it is told that
/// it runs in a sandbox; nothing but `1` tells it so.
pub(super) fn user_may_bypass() -> bool {
    let is_sandbox = std::env::var_os("IS_SANDBOX").is_some_and(|value| value == "1");
    is_sandbox || !is_root()
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}
