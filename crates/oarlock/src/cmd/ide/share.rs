//! `oarlock ide select`, `mention`, `open`, `pause` and `resume`: what the person shows.

use serde_json::{Value, json};

use super::show;
use crate::place::Place;
use crate::target::Target;

/// Select a part of a file, so that the next prompt knows of it
#[derive(clap::Args)]
pub(crate) struct SelectArgs {
    /// FILE, FILE:LINE, FILE:LINE-LINE or FILE:LINE:COL-LINE:COL; counted from 1, ends included
    place: Place,
    #[command(flatten)]
    target: Target,
}

impl SelectArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let path = self.place.absolute()?;
        let range = self.place.range()?;
        let answer = open(&self.target, &json!({ "path": path, "range": range })).await?;
        show(&self.target, &answer, &format!("selected {}{}", path.display(), withheld(&answer)))
    }
}

/// Open a file in the editor behind the engine
#[derive(clap::Args)]
pub(crate) struct OpenArgs {
    /// The file
    file: Place,
    #[command(flatten)]
    target: Target,
}

impl OpenArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let path = self.file.absolute()?;
        let range = self.file.range()?;
        let answer = open(&self.target, &json!({ "path": path, "range": range })).await?;
        show(&self.target, &answer, &format!("opened {}{}", path.display(), withheld(&answer)))
    }
}

/// What is selected but not told.
fn withheld(answer: &Value) -> String {
    answer["withheld"].as_str().map(|why| format!(", but nothing of it is shared: {why}")).unwrap_or_default()
}

async fn open(target: &Target, params: &Value) -> anyhow::Result<Value> {
    target.ask("oarlock/open", params).await
}

/// Mention a file, or lines of it, in the prompt of Claude Code
#[derive(clap::Args)]
pub(crate) struct MentionArgs {
    /// FILE, FILE:LINE or FILE:LINE-LINE; counted from 1
    place: Place,
    /// Only to the session with this process id (`oarlock ide watch` shows them)
    #[arg(long, value_name = "PID")]
    to: Option<u32>,
    #[command(flatten)]
    target: Target,
}

impl MentionArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let path = self.place.absolute()?;
        // Lines that are not there are better refused here than mentioned.
        self.place.range()?;
        let lines = self.place.lines();
        let (first, last) = (lines.map(|lines| lines.0), lines.map(|lines| lines.1));
        let params = json!({ "path": path, "lineStart": first, "lineEnd": last, "to": self.to });
        let answer = self.target.ask("oarlock/mention", &params).await?;
        let line = match answer["clients"].as_u64() {
            Some(0) | None => "no session is ready; the mention waits for the next one".to_owned(),
            Some(1) => format!("mentioned {}", path.display()),
            Some(n) => format!("mentioned {} to {n} sessions", path.display()),
        };
        show(&self.target, &answer, &line)
    }
}

/// Stop sharing selections and mentions, and take back what is selected
#[derive(clap::Args)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    target: Target,
}

/// Share selections and mentions again
#[derive(clap::Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    target: Target,
}

impl PauseArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        set_paused(&self.target, true).await
    }
}

impl ResumeArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        set_paused(&self.target, false).await
    }
}

async fn set_paused(target: &Target, paused: bool) -> anyhow::Result<()> {
    let answer = target.ask("oarlock/pause", &json!({ "paused": paused })).await?;
    show(target, &answer, if paused { "sharing is paused" } else { "sharing goes on" })
}
