//! `oarlock ide diagnostics`: problems from a build or a linter, for the engine to pass on.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::show;
use crate::exit::Failure;
use crate::target::Target;

/// Publish diagnostics from a build or a linter
///
/// The input is JSON as getDiagnostics gives it: [{"uri": "file:///…", "diagnostics": [{"message", "severity",
/// "range": {"start": {"line", "character"}, "end": …}, "source", "code"}]}], counted from 0. A list replaces what was
/// known of its files; an empty one clears them.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file to read; `-` for stdin
    #[arg(default_value = "-")]
    file: PathBuf,
    #[command(flatten)]
    target: Target,
}

impl Args {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (mut text, mut name) = (String::new(), "standard input".to_owned());
        if self.file == Path::new("-") {
            std::io::stdin().read_to_string(&mut text).context("failed to read stdin")?;
        } else {
            name = self.file.display().to_string();
            text = std::fs::read_to_string(&self.file)
                .with_context(|| format!("failed to read {}", self.file.display()))?;
        }
        let files: Value = serde_json::from_str(&text)
            .map_err(|error| Failure::usage(format!("{name} is not JSON: {error}")))?;
        let answer = self.target.ask("oarlock/publishDiagnostics", &json!({ "files": files })).await?;
        show(&self.target, &answer, &format!("published the diagnostics of {} files", answer["files"]))
    }
}
