//! `oarlock sessions export`.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use oarlock_agent::history::{Export, Format, Library};

use super::WhichOrLast;
use crate::output::note;

/// Write a session as Markdown or JSON
///
/// What was sent to the API (system prompts, context) is no part of it.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: WhichOrLast,
    /// The format; otherwise by the name of the file, or else Markdown
    #[arg(short, long, value_enum)]
    format: Option<Kind>,
    /// The file to write to, which only you may read; otherwise stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// With what subagents did
    #[arg(short, long)]
    subagents: bool,
    /// With what the model thought
    #[arg(short, long)]
    thinking: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Kind {
    /// Markdown
    #[value(name = "md", alias = "markdown")]
    Markdown,
    /// JSON
    Json,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let transcript = self.which.find(&Library::new()?)?;
        let file = self.output.as_deref().filter(|file| file.as_os_str() != "-");
        let by_name =
            file.and_then(Path::extension).filter(|extension| *extension == "json").map(|_| Kind::Json);
        let format = match self.format.or(by_name) {
            Some(Kind::Json) => Format::Json,
            _ => Format::Markdown,
        };
        let export = Export::new(format).thinking(self.thinking).subagents(self.subagents);
        let Some(file) = file else {
            let mut out = BufWriter::new(std::io::stdout().lock());
            transcript.export(&export, &mut out)?;
            return Ok(out.flush()?);
        };
        let cannot = || format!("failed to write {}", file.display());
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The file is whole when it gets its name.
        let mut out = BufWriter::new(tempfile::NamedTempFile::new_in(folder).with_context(cannot)?);
        transcript.export(&export, &mut out)?;
        let out = out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(cannot)?;
        out.persist(file).map_err(|error| error.error).with_context(cannot)?;
        note(&format!("wrote {}", file.display()));
        Ok(())
    }
}
