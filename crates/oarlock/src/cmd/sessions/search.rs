//! `oarlock sessions search`.

use std::io::Write;

use oarlock_agent::history::{Hit, Library, Part, Search};
use serde_json::json;

use super::pager::page;
use super::{Scope, age, one_line, short};
use crate::exit::Failure;
use crate::output::{BAD, DIM, STRONG, json_line, visible, warn};

/// Find a text in what was said and done
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The text, letter for letter
    text: String,
    #[command(flatten)]
    scope: Scope,
    /// Letters of either case are the same
    #[arg(short, long)]
    ignore_case: bool,
    /// Not in what subagents did
    #[arg(long)]
    no_subagents: bool,
    /// How many places; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 200)]
    limit: usize,
    /// Print one JSON object for each place
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        if self.text.is_empty() {
            return Err(Failure::usage("there is no text to look for; give at least one character"));
        }
        let search = Search::new(&self.text).ignore_case(self.ignore_case).subagents(!self.no_subagents);
        let limit = if self.limit == 0 { usize::MAX } else { self.limit };
        let hits = Library::new()?.search(&self.scope.filter()?, &search)?;
        // A transcript that cannot be read is no reason to give up the others.
        let hits = hits.filter_map(|hit| hit.map_err(|error| warn(&visible(&error.to_string()))).ok());
        let mut hits = hits.take(limit).peekable();
        if self.json {
            return hits.try_for_each(|hit| json_line(&entry(&hit)));
        }
        if hits.peek().is_none() {
            let text = visible(&self.text);
            let all = if self.scope.all { "" } else { "; --all looks into all projects" };
            return Err(Failure::not_found(format!("`{text}` was not found{all}")));
        }
        page(|out| {
            let mut session = String::new();
            for hit in hits {
                if hit.session.id != session {
                    if !session.is_empty() {
                        writeln!(out)?;
                    }
                    session.clone_from(&hit.session.id);
                    heading(out, &hit, self.scope.all)?;
                }
                line(out, &hit)?;
            }
            Ok(())
        })
    }
}

fn entry(hit: &Hit) -> serde_json::Value {
    json!({
        "session": hit.session.id, "title": hit.session.title, "path": hit.session.path, "agent": hit.agent,
        "message": hit.message, "timestamp": hit.timestamp, "part": part(&hit.part), "excerpt": hit.excerpt,
        "start": hit.at.start, "end": hit.at.end,
    })
}

fn part(part: &Part) -> String {
    match part {
        Part::Prompt => "prompt".to_owned(),
        Part::Answer => "answer".to_owned(),
        Part::Thinking => "thinking".to_owned(),
        Part::Call(tool) => format!("call of {tool}"),
        Part::Result => "result".to_owned(),
        Part::Summary => "summary".to_owned(),
        _ => "other".to_owned(),
    }
}

fn heading(out: &mut dyn Write, hit: &Hit, all: bool) -> anyhow::Result<()> {
    let session = &hit.session;
    let place = session.cwd.as_deref().filter(|_| all).map(|cwd| format!("  {}", one_line(cwd)));
    let (id, age, place) = (short(&session.id), age(session.modified), place.unwrap_or_default());
    Ok(writeln!(out, "{STRONG}{}{STRONG:#}  {DIM}{id}  {age}{place}{DIM:#}", one_line(&session.title))?)
}

fn line(out: &mut dyn Write, hit: &Hit) -> anyhow::Result<()> {
    let part = one_line(&part(&hit.part));
    let who = hit.agent.as_deref().map(|agent| format!(" of {}", one_line(agent))).unwrap_or_default();
    let mut text = [&hit.excerpt[..hit.at.start], &hit.excerpt[hit.at.clone()], &hit.excerpt[hit.at.end..]];
    // Code is indented, and an excerpt need not be.
    text[0] = text[0].trim_start();
    let [before, found, after] = text.map(visible);
    let message = short(&hit.message);
    writeln!(out, "  {DIM}{} {part}{who}:{DIM:#} {before}{BAD}{found}{BAD:#}{after}", visible(message))?;
    Ok(())
}
