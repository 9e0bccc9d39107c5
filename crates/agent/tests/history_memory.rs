//! How much memory a large transcript takes: alone in its process, so that it can be measured.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};

use oarlock_agent::history::{Export, Filter, Format, Library, Search};

/// The most memory that the process has had, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn a_large_transcript_takes_little_memory() {
    const MESSAGES: u64 = 16_000;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("projects/-w");
    fs::create_dir_all(&folder).unwrap();
    let id = "00000000-0000-4000-8000-000000000001";
    let path = folder.join(format!("{id}.jsonl"));
    let mut out = BufWriter::new(File::create(&path).unwrap());
    let filler = "0123456789".repeat(320);
    let uuid = |at: u64| format!("00000000-0000-4000-8000-1{at:011x}");
    for at in 0..MESSAGES {
        let parent = if at == 0 { "null".into() } else { format!("\"{}\"", uuid(at - 1)) };
        writeln!(
            out,
            r#"{{"parentUuid":{parent},"isSidechain":false,"type":"user","message":{{"role":"user","content":"{at} {filler}"}},"uuid":"{}"}}"#,
            uuid(at)
        )
        .unwrap();
    }
    out.flush().unwrap();
    let size = path.metadata().unwrap().len();
    assert!(size > 48 << 20);
    let before = peak();
    let library = Library::at(dir.path());
    let transcript = library.open(id, None).unwrap();
    let texts = transcript.messages().unwrap().map(|record| record.unwrap().text());
    assert_eq!(texts.filter(|text| text.ends_with("789")).count() as u64, MESSAGES);
    transcript.export(&Export::new(Format::Json), &mut std::io::sink()).unwrap();
    transcript.export(&Export::new(Format::Markdown), &mut std::io::sink()).unwrap();
    assert_eq!(library.search(&Filter::default(), &Search::new("15999 0123")).unwrap().count(), 1);
    let more = peak() - before;
    println!("{} MB read with {} MB", size >> 20, more >> 20);
    assert!(more < 12 << 20, "{} MB more", more >> 20);
}
