//! How far a transcript must be for all that was shown to be in it.
//!
//! The CLI writes its transcript a moment after it has said something. Whoever reads the transcript of a session that is
//! open waits until the last record that was shown is there.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

use memchr::memmem::Finder;
use oarlock_agent::history::Transcript;
use oarlock_proto::jsonrpc::ErrorObject;
use tokio::time::{Instant, sleep};

use super::open;
use crate::context::Context;

/// How long the CLI may take to write down what it has said. It is a tenth of a second on a machine at rest.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks. The file may not be there yet, so there is no event to wait for.
pub(super) const PAUSE: Duration = Duration::from_millis(20);
/// What is looked for is here, as a rule.
const TAIL: u64 = 256 << 10;

/// How far a session is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The CLI's own id of the session.
    pub(crate) session: String,
    /// The last record that was shown by a CLI that runs, or has ended in peace.
    pub(crate) record: Option<String>,
    /// A turn runs: more is shown than is said to its end.
    pub(crate) is_running: bool,
}

impl Mark {
    /// A session that says nothing at present.
    pub(crate) fn of(session: &str) -> Self {
        Self { session: session.to_owned(), ..Self::default() }
    }

    /// Waits until all that was shown is in the transcript.
    pub(crate) async fn written(
        &self,
        context: &Context,
        cwd: Option<&str>,
        deadline: Instant,
    ) -> Result<Transcript, ErrorObject> {
        let mut reading: Option<Reading> = None;
        loop {
            let transcript = open(context, &self.session, cwd);
            let Some(record) = &self.record else { return transcript };
            if let Ok(transcript) = transcript {
                let reading = match &mut reading {
                    Some(reading) => Ok(reading),
                    None => Reading::begin(transcript.path(), record).map(|begun| reading.insert(begun)),
                };
                if reading.and_then(Reading::go_on).map_err(|error| unreadable(&transcript, &error))? {
                    return Ok(transcript);
                }
            }
            if Instant::now() >= deadline {
                return Err(self.unwritten());
            }
            sleep(PAUSE).await;
        }
    }

    fn unwritten(&self) -> ErrorObject {
        ErrorObject::internal(format!(
            "Claude Code has not written down what was said last in the session {}; try again, or see whether the disk is \
             full and the settings keep transcripts (cleanupPeriodDays)",
            self.session
        ))
    }
}

fn unreadable(transcript: &Transcript, error: &io::Error) -> ErrorObject {
    ErrorObject::internal(format!("failed to read the transcript {}: {error}", transcript.path().display()))
}

/// A file that grows, read for a record.
struct Reading {
    file: BufReader<File>,
    record: Finder<'static>,
    /// The line that is being written.
    line: Vec<u8>,
    found: bool,
}

impl Reading {
    fn begin(path: &Path, record: &str) -> io::Result<Self> {
        let mut file = BufReader::new(File::open(path)?);
        let length = file.get_ref().metadata()?.len();
        let record = Finder::new(&format!("\"uuid\":\"{record}\"")).into_owned();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut reading = Self { file, record, line: Vec::new(), found: false };
        if !reading.go_on()? && length > TAIL {
            reading.file.rewind()?;
            reading.line.clear();
        }
        Ok(reading)
    }

    /// Reads what is new. Is the record there, as a whole line?
    fn go_on(&mut self) -> io::Result<bool> {
        while !self.found && self.file.read_until(b'\n', &mut self.line)? > 0 && self.line.ends_with(b"\n") {
            self.found = self.record.find(&self.line).is_some();
            self.line.clear();
        }
        Ok(self.found)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn line(uuid: &str, padding: usize) -> String {
        format!("{{\"parentUuid\":\"a\",\"uuid\":\"{uuid}\",\"text\":\"{}\"}}\n", "x".repeat(padding))
    }

    #[test]
    fn a_record_is_there_when_its_line_is_whole() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(line("first", 0).as_bytes()).unwrap();
        let mut reading = Reading::begin(file.path(), "last").unwrap();
        assert!(!reading.go_on().unwrap());
        let last = line("last", 10);
        let (begin, end) = last.split_at(last.len() - 4);
        file.write_all(begin.as_bytes()).unwrap();
        assert!(!reading.go_on().unwrap(), "half a line is no record");
        file.write_all(end.as_bytes()).unwrap();
        assert!(reading.go_on().unwrap());
        assert!(reading.go_on().unwrap(), "it stays there");
    }

    #[test]
    fn a_record_is_not_one_that_another_hangs_on() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(line("first", 0).as_bytes()).unwrap();
        assert!(!Reading::begin(file.path(), "a").unwrap().go_on().unwrap());
    }

    #[test]
    fn a_record_is_found_far_from_the_end() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(line("early", 0).as_bytes()).unwrap();
        for _ in 0..20 {
            file.write_all(line("late", 32 << 10).as_bytes()).unwrap();
        }
        assert!(Reading::begin(file.path(), "early").unwrap().go_on().unwrap());
        assert!(!Reading::begin(file.path(), "never").unwrap().go_on().unwrap());
    }
}
