//! `oarlock config`: each value and where it came from.

use std::path::PathBuf;

use oarlock_ide::consent::DEFAULT_RULES;
use serde_json::{Map, Value, json};

use crate::config::{self, Config, KEYS, Origin, Place};
use crate::exit::Failure;
use crate::output::{DIM, STRONG, WARN, json_line, say};

/// Show the configuration: each value, and where it came from
///
/// Settings come from the user's file (`oarlock config path`), `.oarlock.toml` in the workspace or above it in its repository,
/// variables such as OARLOCK_IDE_PORT for ide.port, and flags, each over the one before. A project's file may only
/// tighten: add to share.ignore, turn on share.git_ignored, lower share.max_bytes, and set ide.name.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The folder whose project file counts [default: this directory]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Print the path of the user's file, whether it exists or not
    Path,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if matches!(self.command, Some(Command::Path)) {
            let file = config::user_file().ok_or_else(|| {
                Failure::not_found("no home directory is known; set HOME or XDG_CONFIG_HOME")
            })?;
            return say!("{}", file.display());
        }
        let workspace = match self.workspace {
            Some(workspace) => workspace,
            None => std::env::current_dir()?,
        };
        let config = Config::read(std::slice::from_ref(&workspace))?;
        if self.json { json_line(&to_json(&config)) } else { show(&config) }
    }
}

fn show(config: &Config) -> anyhow::Result<()> {
    let sources = &config.sources;
    let state = |file: &std::path::Path| if file.exists() { "" } else { " (not there)" };
    if let Some(file) = &sources.user {
        say!("{DIM}# user     {}{}{DIM:#}", file.display(), state(file))?;
    }
    for file in &sources.projects {
        say!("{DIM}# project  {}{}{DIM:#}", file.display(), state(file))?;
    }
    let mut section = "";
    for key in KEYS {
        let (head, name) = key.name.split_once('.').unwrap_or(("", key.name));
        if head != section {
            section = head;
            say!("\n{STRONG}[{section}]{STRONG:#}")?;
        }
        line(name, &(key.show)(config), (key.origin)(config))?;
        if key.name == "share.ignore" {
            built_in()?;
        }
        for (rules, place) in sources.project_ignore.iter().filter(|_| key.name == "share.ignore") {
            line("  and", &json!(rules), &Origin::Project(place.clone()))?;
        }
    }
    if !sources.ignored.is_empty() {
        say!("")?;
    }
    for ignored in &sources.ignored {
        say!("{WARN}{ignored}{WARN:#}")?;
    }
    Ok(())
}

/// The rules that are there before anybody adds any, as many in a line as fit.
fn built_in() -> anyhow::Result<()> {
    let mut lines = vec![String::new()];
    for rule in DEFAULT_RULES {
        if lines.last().is_some_and(|line| line.len() + rule.len() > 72) {
            lines.push(String::new());
        }
        let Some(line) = lines.last_mut() else { continue };
        line.push_str(if line.is_empty() { "" } else { ", " });
        line.push_str(&json!(rule).to_string());
    }
    say!("{:<20} {DIM}built in; !rule takes one back:{DIM:#}", "  and")?;
    lines.iter().try_for_each(|line| say!("    {DIM}{line}{DIM:#}"))
}

fn line(name: &str, value: &Value, origin: &Origin) -> anyhow::Result<()> {
    let value = if value.is_null() { "-".to_owned() } else { value.to_string() };
    // What somebody chose stands out from the defaults.
    let style = if *origin == Origin::Default { DIM } else { STRONG };
    say!("{name:<20} {style}{value:<20}{style:#}  {DIM}{origin}{DIM:#}")
}

fn to_json(config: &Config) -> Value {
    let sources = &config.sources;
    let mut keys = Map::new();
    for key in KEYS {
        let mut about = json!({
            "value": (key.show)(config),
            "origin": (key.origin)(config),
            "variable": key.variable(),
            "help": key.help,
        });
        if key.name == "share.ignore" {
            let added = |(rules, place): &(Vec<String>, Place)| json!({ "value": rules, "origin": Origin::Project(place.clone()) });
            about["built_in"] = json!(DEFAULT_RULES);
            about["added_by_projects"] = sources.project_ignore.iter().map(added).collect();
        }
        keys.insert(key.name.to_owned(), about);
    }
    json!({
        "user_file": sources.user,
        "project_files": sources.projects,
        "keys": keys,
        "ignored": sources.ignored,
    })
}
