//! Logging in: the client runs this program again, in a terminal, and it becomes the CLI.
//!
//! Nothing here knows a key or a token. Who is logged in, and how, is the CLI's own business.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use oarlock_proto::acp::{AuthMethod, ClientCapabilities};
use oarlock_proto::jsonrpc::ErrorObject;
use serde_json::{Map, json};
use tokio::process::Command;
use tokio::time::timeout;

use crate::context::Context;
use crate::{Settings, fault};

/// How long the CLI may take to forget its login.
const LOGOUT: Duration = Duration::from_secs(30);
/// How much of what it says is repeated.
const SAID: usize = 2000;

/// The variables of a machine that is used from afar, where no browser can be opened.
const REMOTE: [&str; 4] = ["NO_BROWSER", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"];

/// A way to log in, before anybody knows how to run it.
struct Way {
    id: &'static str,
    name: &'static str,
    description: &'static str,
    /// The title of the terminal.
    label: &'static str,
    args: &'static [&'static str],
}

const HERE: [Way; 2] = [
    Way {
        id: "claude-ai-login",
        name: "Claude Subscription",
        description: "Use Claude subscription",
        label: "Claude Login",
        args: &["--cli", "auth", "login", "--claudeai"],
    },
    Way {
        id: "console-login",
        name: "Anthropic Console",
        description: "Use Anthropic Console (API usage billing)",
        label: "Anthropic Console Login",
        args: &["--cli", "auth", "login", "--console"],
    },
];

/// The CLI itself shows an address to open elsewhere, and takes the code from there.
const AFAR: [Way; 1] = [Way {
    id: "claude-login",
    name: "Log in with Claude",
    description: "Run `claude /login` in the terminal",
    label: "Claude Login",
    args: &["--cli"],
}];

/// The ways to log in that the client can offer.
pub(crate) fn methods(client: &ClientCapabilities, settings: &Settings) -> Vec<AuthMethod> {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    methods_at(client, settings, REMOTE.iter().any(is_set))
}

fn methods_at(client: &ClientCapabilities, settings: &Settings, is_remote: bool) -> Vec<AuthMethod> {
    if !client.logs_in_by_terminal() {
        return Vec::new();
    }
    let ways: &[Way] = if is_remote { &AFAR } else { &HERE };
    let method = |way: &Way| AuthMethod::Terminal {
        id: way.id.into(),
        name: way.name.into(),
        description: Some(way.description.into()),
        args: strings(way.args),
        env: BTreeMap::new(),
        meta: client.has_meta("terminal-auth").then(|| {
            let (command, args) = command(settings, way.args);
            let terminal = json!({ "command": command, "args": args, "label": way.label });
            Map::from_iter([("terminal-auth".to_owned(), terminal)])
        }),
    };
    ways.iter().map(method).collect()
}

/// The whole command: this very program, wherever it was found when it was started.
fn command(settings: &Settings, args: &[&str]) -> (String, Vec<String>) {
    let mut command = settings.command.iter().cloned();
    let name = command.next().unwrap_or_else(|| "oarlock".into());
    let program = std::env::current_exe().map_or(name, |path| path.to_string_lossy().into_owned());
    (program, command.chain(strings(args)).collect())
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// `authenticate`: nothing to do here, since the client runs the method itself; a method that is not there is an error.
pub(crate) fn authenticate(context: &Context, method_id: &str) -> Result<(), ErrorObject> {
    refuse(&methods(&context.client, &context.settings), &context.settings, method_id)
}

fn refuse(methods: &[AuthMethod], settings: &Settings, method_id: &str) -> Result<(), ErrorObject> {
    let mut ids = Vec::new();
    for method in methods {
        let AuthMethod::Terminal { id, args, .. } = method else { continue };
        if id == method_id {
            let command = settings.command.iter().chain(args).cloned().collect::<Vec<_>>().join(" ");
            return Err(ErrorObject::invalid_params(format!(
                "methodId: `{id}` is for a terminal; run `{command}` in one, and then open a session"
            )));
        }
        ids.push(id.as_str());
    }
    let shown: String = method_id.chars().take(80).collect();
    let there = match ids.as_slice() {
        [] => "there are none for this client; run `claude` in a terminal and log in there".to_owned(),
        ids => format!("there are {}", ids.join(", ")),
    };
    Err(ErrorObject::invalid_params(format!("methodId: there is no method `{shown}`; {there}")))
}

/// `logout`: the CLI forgets its login.
pub(crate) async fn logout(context: &Context) -> Result<(), ErrorObject> {
    let program = context.program().map_err(|error| fault::cli(&error))?;
    let mut command = Command::new(&program);
    command.args(["auth", "logout"]).stdin(Stdio::null()).kill_on_drop(true);
    let shown = format!("`{} auth logout`", program.display());
    let output = match timeout(LOGOUT, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => {
            return Err(ErrorObject::internal(format!("failed to run {shown}: {error}")));
        }
        Err(_) => {
            let why = format!("{shown} took more than {} s; run it in a terminal", LOGOUT.as_secs());
            return Err(ErrorObject::internal(why));
        }
    };
    if output.status.success() {
        return Ok(());
    }
    let said = if output.stderr.trim_ascii().is_empty() { &output.stdout } else { &output.stderr };
    let said: String = String::from_utf8_lossy(said).trim().chars().take(SAID).collect();
    Err(ErrorObject::internal(format!("{shown} failed ({}): {said}", output.status)))
}

#[cfg(test)]
mod tests {
    use oarlock_proto::jsonrpc::INVALID_PARAMS;
    use serde_json::Value;

    use super::*;

    fn client(capabilities: Value) -> ClientCapabilities {
        serde_json::from_value(capabilities).unwrap()
    }

    fn shown(client: &ClientCapabilities, is_remote: bool) -> Value {
        serde_json::to_value(methods_at(client, &Settings::default(), is_remote)).unwrap()
    }

    #[test]
    fn acp_init_03_a_client_without_terminals_is_offered_nothing() {
        assert_eq!(shown(&ClientCapabilities::default(), false), json!([]));
        assert_eq!(shown(&client(json!({ "_meta": { "terminal-auth": false } })), false), json!([]));
    }

    #[test]
    fn a_client_with_terminals_is_offered_both_accounts() {
        assert_eq!(
            shown(&client(json!({ "auth": { "terminal": true } })), false),
            json!([
                { "type": "terminal", "id": "claude-ai-login", "name": "Claude Subscription",
                  "description": "Use Claude subscription", "args": ["--cli", "auth", "login", "--claudeai"] },
                { "type": "terminal", "id": "console-login", "name": "Anthropic Console",
                  "description": "Use Anthropic Console (API usage billing)",
                  "args": ["--cli", "auth", "login", "--console"] },
            ])
        );
    }

    #[test]
    fn zed_is_given_the_whole_command() {
        let methods = shown(&client(json!({ "_meta": { "terminal-auth": true } })), false);
        let terminal = &methods[0]["_meta"]["terminal-auth"];
        let program = std::env::current_exe().unwrap();
        assert_eq!(terminal["command"], program.to_str().unwrap());
        assert_eq!(terminal["args"], json!(["acp", "--cli", "auth", "login", "--claudeai"]));
        assert_eq!(terminal["label"], "Claude Login");
        assert_eq!(methods[1]["_meta"]["terminal-auth"]["label"], "Anthropic Console Login");
    }

    #[test]
    fn caa_184_from_afar_there_is_one_way_without_a_browser() {
        let methods = shown(&client(json!({ "auth": { "terminal": true } })), true);
        assert_eq!(methods.as_array().unwrap().len(), 1);
        assert_eq!((&methods[0]["id"], &methods[0]["args"]), (&json!("claude-login"), &json!(["--cli"])));
    }

    #[test]
    fn a_method_that_is_not_there_is_a_wrong_parameter() {
        let settings = Settings::default();
        let methods = methods_at(&client(json!({ "auth": { "terminal": true } })), &settings, false);
        let error = refuse(&methods, &settings, "gateway").unwrap_err();
        assert_eq!(error.code, i64::from(INVALID_PARAMS));
        assert!(error.message.contains("claude-ai-login, console-login"), "{error}");
        let error = refuse(&methods, &settings, "console-login").unwrap_err();
        assert!(error.message.contains("`oarlock acp --cli auth login --console`"), "{error}");
        let error = refuse(&[], &settings, "x").unwrap_err();
        assert!(error.message.contains("claude"), "{error}");
    }
}
