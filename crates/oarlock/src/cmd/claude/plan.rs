//! What is added to a start of `claude`, as a value.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::command_line::CommandLine;

/// The variable that chooses the engine, whatever the directory.
pub(super) const PORT_VARIABLE: &str = "CLAUDE_CODE_SSE_PORT";
const AUTO_CONNECT: &str = "CLAUDE_CODE_AUTO_CONNECT_IDE";
const NO_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];
const LOOPBACK: &str = "127.0.0.1";

/// How `claude` is started.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Whether a conversation starts in this terminal. Only that connects to an engine.
    pub(super) interactive: bool,
    /// What goes in front of the given arguments.
    pub(super) added: Vec<&'static str>,
    /// All arguments.
    pub(super) args: Vec<OsString>,
    /// Who chose the permission mode.
    pub(super) mode_chosen_by: Option<String>,
    /// What is wrong with the environment.
    pub(super) warnings: Vec<String>,
}

impl Plan {
    /// Decides. `mode_chosen_by` says who, if anybody, chose the permission mode.
    pub(super) fn new(
        args: Vec<OsString>,
        line: &CommandLine,
        mode_chosen_by: Option<String>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let interactive = line.not_interactive.is_none();
        // Newer versions start in a mode that writes unasked, and then no diff is ever shown. Both versions take
        // `default`, although the newer one calls it `manual`.
        let asks = interactive && mode_chosen_by.is_none();
        let added = if asks { vec!["--permission-mode", "default"] } else { Vec::new() };
        let mut warnings = Vec::new();
        if let Some(value) = variable(AUTO_CONNECT).filter(|value| interactive && is_no(value)) {
            let value = value.to_string_lossy();
            warnings.push(format!("{AUTO_CONNECT}={value} keeps `claude` from connecting; unset it"));
        }
        let args = added.iter().map(OsString::from).chain(args).collect();
        Self { interactive, added, args, mode_chosen_by, warnings }
    }
}

/// The variables that connect to an engine. A proxy must not come between two programs of one machine.
pub(super) fn variables(
    port: u16,
    variable: impl Fn(&str) -> Option<OsString>,
) -> BTreeMap<&'static str, OsString> {
    let mut variables = BTreeMap::from([(PORT_VARIABLE, port.to_string().into())]);
    for (name, other) in [(NO_PROXY[0], NO_PROXY[1]), (NO_PROXY[1], NO_PROXY[0])] {
        // Programs read one or the other, so the one that is missing starts from the one that is there.
        let given = variable(name);
        let list = given.clone().or_else(|| variable(other)).unwrap_or_default();
        if let Some(longer) = with_loopback(&list) {
            variables.insert(name, longer);
        } else if given.is_none() {
            variables.insert(name, list);
        }
    }
    variables
}

/// The list with 127.0.0.1 at its end; `None` if it is covered already.
fn with_loopback(list: &OsStr) -> Option<OsString> {
    let text = list.to_string_lossy();
    if text.split([',', ' ']).any(|host| host == LOOPBACK || host == "*") {
        return None;
    }
    let mut longer = list.to_owned();
    if !text.trim().is_empty() {
        longer.push(",");
    }
    longer.push(LOOPBACK);
    Some(longer)
}

fn is_no(value: &OsStr) -> bool {
    let value = value.to_string_lossy();
    ["false", "0", "no", "off"].contains(&value.trim().to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(of: &[(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
        move |name| of.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
    }

    fn plan(args: &[&str], mode_chosen_by: Option<&str>, of: &[(&str, &str)]) -> Plan {
        let args: Vec<OsString> = args.iter().map(Into::into).collect();
        let line = CommandLine::parse(&args);
        Plan::new(args, &line, mode_chosen_by.map(str::to_owned), environment(of))
    }

    #[test]
    fn an_interactive_start_without_a_mode_asks_before_it_writes() {
        let plan = plan(&["--model", "opus", "fix it"], None, &[]);
        assert!(plan.interactive);
        assert_eq!(plan.added, ["--permission-mode", "default"]);
        assert_eq!(plan.args, ["--permission-mode", "default", "--model", "opus", "fix it"]);
        assert!(plan.warnings.is_empty());
    }

    #[test]
    fn a_chosen_mode_stays() {
        let plan = plan(&["fix it"], Some("settings.json"), &[]);
        assert_eq!(plan.args, ["fix it"]);
        assert!(plan.added.is_empty());
    }

    #[test]
    fn subcommands_and_print_are_left_alone() {
        for args in [&["-p", "hi"][..], &["mcp", "list"], &["--version"]] {
            let plan = plan(args, None, &[("CLAUDE_CODE_AUTO_CONNECT_IDE", "false")]);
            assert!(!plan.interactive);
            assert_eq!(plan.args, args);
            assert!(plan.warnings.is_empty());
        }
    }

    #[test]
    fn a_variable_that_blocks_the_connection_is_reported() {
        for value in ["false", "0", "FALSE"] {
            let plan = plan(&[], None, &[("CLAUDE_CODE_AUTO_CONNECT_IDE", value)]);
            assert_eq!(plan.warnings.len(), 1, "{value}");
            assert!(plan.warnings[0].contains("unset it"));
        }
        assert!(plan(&[], None, &[("CLAUDE_CODE_AUTO_CONNECT_IDE", "true")]).warnings.is_empty());
    }

    #[test]
    fn no_proxy_gains_the_loopback_address_once() {
        let of = |given: &[(&str, &str)]| {
            let variables = variables(4711, environment(given));
            assert_eq!(variables[PORT_VARIABLE], "4711");
            NO_PROXY.map(|name| variables.get(name).map(|value| value.to_str().unwrap().to_owned()))
        };
        let both = |value: &str| [Some(value.to_owned()), Some(value.to_owned())];
        assert_eq!(of(&[]), both("127.0.0.1"));
        assert_eq!(of(&[("NO_PROXY", "")]), both("127.0.0.1"));
        assert_eq!(of(&[("NO_PROXY", "corp")]), both("corp,127.0.0.1"), "the other one must not lose `corp`");
        assert_eq!(of(&[("no_proxy", "a, b")]), both("a, b,127.0.0.1"));
        let mixed = of(&[("NO_PROXY", "x,127.0.0.1"), ("no_proxy", "y")]);
        assert_eq!(mixed, [None, Some("y,127.0.0.1".to_owned())]);
        assert_eq!(of(&[("NO_PROXY", "*"), ("no_proxy", "*")]), [None, None]);
        assert_eq!(
            of(&[("NO_PROXY", "127.0.0.11"), ("no_proxy", "127.0.0.1")])[0].as_deref(),
            Some("127.0.0.11,127.0.0.1")
        );
    }
}
