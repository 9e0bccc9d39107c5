//! The bars, the tables, and `docs/bench-sdk.md`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use oarlock_testkit::bench::{self, Bar, Limit};

use crate::contender::Contender;
use crate::measure::{Figures, PAUSE, Speed};
use crate::raw::Raw;

/// Prints the page, writes it to `path`, and tells whether every bar holds.
pub(crate) fn publish(figures: &Figures, path: &Path) -> Result<bool> {
    let bars = bars(figures);
    let page = page(figures, &bars)?;
    println!("\n{page}");
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, page).with_context(|| format!("failed to write {}", path.display()))?;
    Ok(bars.iter().all(Bar::holds))
}

fn bars(figures: &Figures) -> Vec<Bar> {
    let mut bars = Vec::new();
    let mut bar = |what: String, value, limit, unit| bars.push(Bar { what, value, limit, unit });
    for speed in &figures.speed {
        let traffic = speed.recording.traffic;
        for (other, name, least) in [
            (Contender::Python, "the Python SDK", 8.0),
            (Contender::TypeScript, "the TypeScript SDK", 3.0),
            (Contender::Raw(Raw::Tagged), "serde_json, internally tagged", 0.9),
            (Contender::Raw(Raw::Peek), "serde_json, `type` first", 0.9),
        ] {
            let times = speed.times(Contender::Ours, other);
            bar(format!("{traffic}: speed to {name}"), times, Limit::Least(least), "times");
        }
        let peak = speed.peak(Contender::Ours) as f64 / 1e6;
        bar(format!("{traffic}: most memory"), peak, Limit::Most(20.0), "MB");
    }
    let ours = figures.slow.iter().find(|(contender, _)| *contender == Contender::Ours);
    let peak = ours.map_or(f64::NAN, |(_, peak)| *peak as f64 / 1e6);
    bar("slow consumer: most memory".to_owned(), peak, Limit::Most(20.0), "MB");
    for (version, start) in &figures.start {
        bar(format!("{version}: warm start to what the CLI needs"), start.to_raw, Limit::Most(1.2), "times");
        bar(format!("{version}: warm start to cold"), start.warm / start.cold, Limit::Most(0.25), "times");
    }
    bars
}

fn page(figures: &Figures, bars: &[Bar]) -> Result<String> {
    let setting = bench::setting()?;
    let mut page = format!(
        "\
# How fast the SDK reads

Made by `cargo xtask bench sdk` on {setting}. Medians of {} rounds; every round visits every client, and
ratios are taken within a round.

A native program plays the CLI: it answers control requests and copies a recording to stdout in writes of 64 KiB. Each
client is a process of its own that starts it, sends a prompt, reads all messages as its own types, and counts them. The
time is that from the prompt to the result; CPU and memory are those of the client alone.

* **mixed**, {}: text deltas, whole messages with tool calls, tool results of 1 to 100 kB
* **deltas**, {}: text deltas only
* the **raw** clients are what a loop without an SDK would do: owned derived types with an internally tagged enum; the
  same types after a first look at `type`; no more than finding the line ends

",
        figures.rounds,
        describe(figures.speed.first()),
        describe(figures.speed.get(1)),
    );
    for speed in &figures.speed {
        let _ = writeln!(
            page,
            "| {} | MB/s | thousand messages/s | Oarlock is faster by | CPU s | most memory, MB |\n\
             | --- | --- | --- | --- | --- | --- |",
            speed.recording.traffic
        );
        for contender in Contender::ALL {
            let wall = speed.median(contender, |cost| cost.wall);
            let _ = writeln!(
                page,
                "| {contender} | {:.0} | {:.0} | {:.2} | {:.2} | {:.1} |",
                speed.recording.bytes as f64 / 1e6 / wall,
                speed.recording.messages as f64 / 1e3 / wall,
                speed.times(Contender::Ours, contender),
                speed.median(contender, |cost| cost.cpu),
                speed.peak(contender) as f64 / 1e6,
            );
        }
        page.push('\n');
    }

    let _ = writeln!(
        page,
        "## A slow consumer\n\nIt pauses for {} seconds after the first message of the mixed traffic.\n\n\
         | | most memory, MB |\n| --- | --- |",
        PAUSE.as_secs()
    );
    for (contender, peak) in &figures.slow {
        let _ = writeln!(page, "| {contender} | {:.1} |", *peak as f64 / 1e6);
    }

    page.push_str(
        "\n## From a prompt to the first frame\n\nThe real CLI in the cage, until it says `init`. Cold: nothing runs yet. \
         Warm: a session from a pool. Raw: a bare driver\nthat has started the CLI before.\n\n\
         | CLI | cold, ms | warm, ms | raw, ms |\n| --- | --- | --- | --- |\n",
    );
    for (version, start) in &figures.start {
        let _ = writeln!(page, "| {version} | {:.0} | {:.1} | {:.1} |", start.cold, start.warm, start.raw);
    }

    page.push_str("\n## The bars\n\n");
    page.push_str(&bench::table(bars));
    Ok(page)
}

fn describe(speed: Option<&Speed>) -> String {
    let Some(Speed { recording, .. }) = speed else { return String::new() };
    format!("{} MB in {} messages", recording.bytes / 1_000_000, recording.messages)
}
