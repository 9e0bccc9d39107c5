//! `oarlock ide list`: every IDE that announces itself, and what `claude` would make of it.

use oarlock_ide::discover::{self, Answer, Candidate, Connects, Environment, Match};

use crate::output::{BAD, DIM, GOOD, STRONG, WARN, json_line, say, visible};

/// List the IDEs that announce themselves, and say which one `claude --ide` takes here, and why not
///
/// All directories are read that any version of Claude Code or any document names. Nothing is changed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let discovery = discover::discover(&Environment::from_process(), &std::env::current_dir()?);
        if self.json {
            return json_line(&discovery);
        }
        for directory in &discovery.unreadable {
            say!("{WARN}{}{WARN:#}\n", visible(directory))?;
        }
        for candidate in &discovery.candidates {
            show(candidate)?;
            say!("")?;
        }
        say!("{STRONG}{}{STRONG:#}", visible(&discovery.verdict.ide_flag.text))?;
        if let Some(outcome) = &discovery.verdict.port_variable {
            say!("{STRONG}{}{STRONG:#}", visible(&outcome.text))?;
        }
        Ok(())
    }
}

fn show(candidate: &Candidate) -> anyhow::Result<()> {
    let name = visible(candidate.name.as_deref().unwrap_or("IDE"));
    let ours =
        candidate.ours.as_ref().map_or(String::new(), |v| format!(" {DIM}(Oarlock {}){DIM:#}", visible(v)));
    let port = candidate.port.map_or("no port".to_owned(), |port| format!("port {port}"));
    let open =
        if candidate.port_open { format!("{GOOD}open{GOOD:#}") } else { format!("{BAD}closed{BAD:#}") };
    let process = match (candidate.pid, candidate.alive) {
        (Some(pid), Some(true)) => format!("process {pid} {GOOD}alive{GOOD:#}"),
        (Some(pid), _) => format!("process {pid} {BAD}gone{BAD:#}"),
        (None, _) => format!("process {DIM}not named{DIM:#}"),
    };
    say!("{STRONG}{name}{STRONG:#}{ours}  {port} {open}  {process}")?;
    say!("  lock     {}", visible(&candidate.path.to_string_lossy()))?;
    let folders: Vec<String> = candidate.folders.iter().map(|folder| visible(folder)).collect();
    say!("  folders  {}", if folders.is_empty() { "none".to_owned() } else { folders.join(", ") })?;
    say!("  here     {}", here(&candidate.matches_cwd))?;
    answer("--ide", &candidate.would_connect)?;
    // The variable gets round the folders; it is worth a line where it makes a difference.
    if candidate.with_port_variable != candidate.would_connect {
        answer("by port", &candidate.with_port_variable)?;
        if let Some(port) = candidate.port.filter(|_| candidate.with_port_variable.connects == Connects::Yes)
        {
            let way = if candidate.ours.is_some() {
                format!("oarlock claude --engine {port}")
            } else {
                format!("CLAUDE_CODE_SSE_PORT={port} claude")
            };
            say!("           {DIM}{way}{DIM:#}")?;
        }
    }
    Ok(())
}

fn here(matches: &Match) -> String {
    match matches {
        Match::Folder { folder } => format!("yes, {} contains this directory", visible(folder)),
        Match::Root => "only for newer versions: its folder is /".to_owned(),
        Match::Symlink { folder, real } => {
            format!("no, {} is a link to {}", visible(folder), visible(&real.to_string_lossy()))
        }
        Match::Elsewhere => "no, its folders are elsewhere".to_owned(),
        Match::NoFolders => "no, it has no folders".to_owned(),
    }
}

fn answer(way: &str, answer: &Answer) -> anyhow::Result<()> {
    let (style, word) = match answer.connects {
        Connects::Yes => (GOOD, "connects"),
        Connects::No => (BAD, "does not connect"),
        Connects::Depends => (WARN, "depends on the version of Claude Code"),
    };
    say!("  {way:<8} {style}{word}{style:#}")?;
    for reason in &answer.reasons {
        say!("           {}", visible(&reason.to_string()))?;
    }
    Ok(())
}
