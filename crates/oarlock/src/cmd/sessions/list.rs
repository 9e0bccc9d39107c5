//! `oarlock sessions list`.

use std::collections::HashMap;
use std::io::Write;

use oarlock_agent::history::{Library, Summary};
use serde_json::json;

use super::pager::page;
use super::{Scope, age, nothing, one_line, short, size};
use crate::output::{DIM, GOOD, STRONG, fitting, json_line, note, visible};

/// List sessions, the last one first
///
/// A dot marks those that a running `claude` has open.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    scope: Scope,
    /// How many; 0 for all
    #[arg(short = 'n', long, allow_negative_numbers = true, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Only those with this tag
    #[arg(long)]
    tag: Option<String>,
    /// Count the messages too, which reads every transcript
    #[arg(long)]
    count: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let library = Library::new()?;
        let mut filter = self.scope.filter()?.count(self.count);
        if let Some(tag) = &self.tag {
            filter = filter.tag(tag);
        }
        let mut sessions = library.list(&filter)?;
        let limit = if self.limit == 0 { usize::MAX } else { self.limit };
        let listed: Vec<Summary> = sessions.by_ref().take(limit).collect();
        let live: HashMap<String, u32> =
            library.live().into_iter().map(|live| (live.session, live.pid)).collect();
        if self.json {
            let entries =
                listed.iter().map(|session| entry(session, &live)).collect::<Result<Vec<_>, _>>()?;
            return json_line(&json!({ "sessions": entries }));
        }
        if listed.is_empty() {
            let none = nothing(self.scope.cwd()?.as_deref());
            note(&match &self.tag {
                Some(tag) => {
                    none.replacen("no sessions", &format!("no sessions with the tag `{}`", visible(tag)), 1)
                }
                None => none,
            });
            return Ok(());
        }
        page(|out| table(out, &listed, &live, self.scope.all))?;
        if sessions.next().is_some() {
            note(&format!("these are the last {limit}; --limit 0 lists all"));
        }
        Ok(())
    }
}

fn entry(session: &Summary, live: &HashMap<String, u32>) -> serde_json::Result<serde_json::Value> {
    let mut entry = serde_json::to_value(session)?;
    entry["pid"] = json!(live.get(&session.id));
    Ok(entry)
}

fn table(
    out: &mut dyn Write,
    listed: &[Summary],
    live: &HashMap<String, u32>,
    all: bool,
) -> anyhow::Result<()> {
    let rows: Vec<[String; 5]> = listed.iter().map(|session| row(session, all)).collect();
    let widths: Vec<usize> =
        (0..5).map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
    let room = columns().map(|columns| columns.saturating_sub(widths.iter().sum::<usize>() + 12).max(20));
    for (session, [id, age, size, place, count]) in listed.iter().zip(&rows) {
        let dot = if live.contains_key(&session.id) { format!("{GOOD}●{GOOD:#}") } else { " ".into() };
        let mut title = one_line(&session.title);
        if let Some(room) = room {
            title = fitting(&title, room);
        }
        let tag =
            session.tag.as_ref().map(|tag| format!(" {DIM}#{}{DIM:#}", one_line(tag))).unwrap_or_default();
        let [a, b, c, d, e] = [widths[0], widths[1], widths[2], widths[3], widths[4]];
        // Columns with nothing in them are left out.
        let count = if e > 0 { format!("{count:>e$}  ") } else { String::new() };
        let place = if d > 0 { format!("{place:d$}  ") } else { String::new() };
        writeln!(
            out,
            "{dot} {id:a$}  {DIM}{age:>b$}  {size:>c$}  {count}{place}{DIM:#}{STRONG}{title}{STRONG:#}{tag}"
        )?;
    }
    Ok(())
}

/// Id, age, size, branch (or directory), number of messages.
fn row(session: &Summary, all: bool) -> [String; 5] {
    let branch = session.git_branch.as_deref().filter(|branch| *branch != "HEAD").unwrap_or_default();
    let place = if all { session.cwd.as_deref().unwrap_or(&session.project) } else { branch };
    let count = session.messages.map(|messages| messages.to_string()).unwrap_or_default();
    [short(&session.id).into(), age(session.modified), size(session.size), tail(&visible(place), 40), count]
}

/// At most so many characters of the end, which tells paths apart.
fn tail(text: &str, room: usize) -> String {
    let count = text.chars().count();
    if count <= room {
        text.into()
    } else {
        format!("…{}", text.chars().skip(count + 1 - room).collect::<String>())
    }
}

/// The width of the terminal; `None` when there is none, and nothing is cut.
fn columns() -> Option<usize> {
    #[cfg(unix)]
    {
        use std::io::IsTerminal as _;
        let stdout = std::io::stdout();
        let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten();
        size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
    }
    #[cfg(not(unix))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_where_they_say_least() {
        assert_eq!(tail("/a/b/c", 6), "/a/b/c");
        assert_eq!(tail("/srv/me/work", 6), "…/work");
    }
}
