//! Large folders and large transcripts.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufWriter, Seek as _, SeekFrom, Write as _};
use std::time::Instant;

use oarlock_agent::history::{Filter, Search};
use serde_json::json;

use crate::desk::{Desk, assistant, id, lines, user};

/// Bytes that this process has read, from whatever.
fn bytes_read() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok()).unwrap()
}

#[test]
fn a_folder_of_a_gigabyte_is_listed_by_its_ends() {
    const FILES: u64 = 200;
    let desk = Desk::new();
    for number in 0..FILES {
        let mut records = vec![user(&format!("prompt {number}"), None)];
        records.extend((0..80).map(|at| assistant(&format!("{at} {}", "text ".repeat(200)), Some("x"))));
        let path = desk.write(number, &records);
        // The middle is a hole, which takes no room on the disk and would be read like anything else.
        let mut file = fs::File::options().write(true).open(path).unwrap();
        file.seek(SeekFrom::Start(5 << 20)).unwrap();
        let title = json!({ "type": "custom-title", "customTitle": format!("title {number}") });
        let end = lines(&[assistant(&"end ".repeat(10_000), Some("x")), title]);
        file.write_all(format!("\n{end}").as_bytes()).unwrap();
    }
    let filter = Filter::project(desk.cwd());
    let (before, start) = (bytes_read(), Instant::now());
    let all: Vec<_> = desk.library.list(&filter).unwrap().collect();
    let (read, took) = (bytes_read() - before, start.elapsed());
    assert_eq!(all.len() as u64, FILES);
    assert!(all.iter().map(|one| one.size).sum::<u64>() > 1_000_000_000);
    for summary in &all {
        let number = summary.title.strip_prefix("title ").unwrap();
        assert_eq!(summary.first_prompt.as_deref(), Some(format!("prompt {number}").as_str()));
    }
    // Other tests of this process read too, but nothing like a gigabyte.
    assert!(read < FILES * 3 * 65536 + (100 << 20), "{read} bytes");
    println!("{FILES} files, 1 GB: {took:?}");
    // A twentieth of this is usual; a busy machine and a debug build shall not fail it.
    assert!(took.as_secs() < 5, "{took:?}");

    let (before, start) = (bytes_read(), Instant::now());
    assert_eq!(desk.library.list(&filter).unwrap().take(5).count(), 5);
    println!("the first five: {:?}, {} bytes", start.elapsed(), bytes_read() - before);
}

#[test]
fn a_long_transcript_is_read_from_one_end_to_the_other() {
    let desk = Desk::new();
    let path = desk.write_text(1, "");
    let mut out = BufWriter::new(fs::File::create(&path).unwrap());
    let mut parent = None;
    for at in 0..4000_u64 {
        let text = format!("m{at}");
        let record =
            if at % 2 == 0 { user(&text, parent.as_deref()) } else { assistant(&text, parent.as_deref()) };
        out.write_all(lines(&[record]).as_bytes()).unwrap();
        parent = Some(text);
    }
    out.flush().unwrap();
    let messages = desk.open(1).messages().unwrap();
    assert_eq!(messages.len(), 4000);
    for (at, record) in messages.enumerate() {
        assert_eq!(record.unwrap().uuid, format!("m{at}"));
    }
    let late = desk.open(1).messages().unwrap().nth(3999).unwrap().unwrap();
    assert_eq!(late.uuid, "m3999");
    assert_eq!(desk.open(1).search(&Search::new("m3998")).count(), 1);
    assert_eq!(desk.open(1).id(), id(1));
}
