//! The bars, the table, and `docs/bench-ide.md`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use oarlock_testkit::bench::{self, Bar, Limit};

use crate::measure::{Cost, Figures};

/// Prints all figures, writes the page to `path`, and tells whether every bar holds.
pub(crate) fn publish(figures: &Figures, path: Option<&Path>) -> Result<bool> {
    let bars = bars(figures);
    println!("\n{:<34} {:>10} {:>10} {:>10}", "µs", "ours", "floor", "rmcp");
    for (what, costs) in loads(figures) {
        println!("{:<34} {}", format!("{what}: CPU"), row(&costs.map(|cost| cost.cpu)));
        println!("{:<34} {}", format!("{what}: wall"), row(&costs.map(|cost| cost.wall)));
    }
    println!("{:<34} {}", "selection_changed: CPU", row(&figures.notification));
    println!("{:<34} {:>10} {:>10} {:>10}", "kB", "ours", "floor", "rmcp");
    println!("{:<34} {}", "resident, idle", row(&figures.memory.map(|memory| memory.idle as f64 / 1e3)));
    println!("{:<34} {}", "resident, after", row(&figures.memory.map(|memory| memory.after as f64 / 1e3)));
    println!(
        "{:<34} {}",
        "per idle client",
        row(&figures.memory.map(|memory| memory.per_client as f64 / 1e3))
    );
    println!();
    print!("{}", bench::table(&bars));

    if let Some(path) = path {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, page(figures, &bars)?).context("failed to write docs/bench-ide.md")?;
    }
    Ok(bars.iter().all(Bar::holds))
}

fn row(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:>10.1}")).collect::<Vec<_>>().join(" ")
}

fn loads(figures: &Figures) -> [(&'static str, [Cost; 3]); 3] {
    [
        ("small call, one at a time", figures.one_by_one),
        ("small call, 64 in flight", figures.bursts),
        ("openDiff of 10 MiB", figures.large),
    ]
}

fn bars(figures: &Figures) -> Vec<Bar> {
    let bar =
        |what: &str, value, most, unit| Bar { what: what.into(), value, limit: Limit::Most(most), unit };
    let cpu = |[ours, floor, rmcp]: [Cost; 3]| (ours.cpu / floor.cpu, ours.cpu / rmcp.cpu);
    let (single_floor, single_rmcp) = cpu(figures.one_by_one);
    let (burst_floor, burst_rmcp) = cpu(figures.bursts);
    let [large, large_floor, _] = figures.large;
    let [ours, ..] = figures.memory;
    let growth = ours.after.saturating_sub(ours.idle);
    vec![
        bar("CPU per call, one at a time, to the floor", single_floor, 1.5, "times"),
        bar("CPU per call, one at a time, to rmcp", single_rmcp, 0.6, "times"),
        bar("CPU per call, 64 in flight, to the floor", burst_floor, 1.5, "times"),
        bar("CPU per call, 64 in flight, to rmcp", burst_rmcp, 0.6, "times"),
        bar("CPU of a 10 MiB openDiff, to the floor", large.cpu / large_floor.cpu, 2.0, "times"),
        bar("time of a 10 MiB openDiff, to the floor", large.wall / large_floor.wall, 2.0, "times"),
        bar("resident memory, idle", ours.idle as f64 / 1e6, 8.0, "MB"),
        bar("growth of it by the large messages", growth as f64 / 1e6, 2.0, "MB"),
        bar("memory per idle client", ours.per_client as f64 / 1e3, 60.0, "kB"),
        bar("start to lock file", figures.start, 15.0, "ms"),
    ]
}

fn page(figures: &Figures, bars: &[Bar]) -> Result<String> {
    let setting = bench::setting()?;
    let mut page = format!(
        "\
# What our server costs

Made by `cargo xtask bench ide` on {setting}. Medians of {} interleaved rounds.

The **floor** is a bare tokio-tungstenite loop that parses the envelope and answers a constant inline. **rmcp** is an
rmcp 3.8 server over the same socket code. All three run as processes of their own under the same client, with
TCP_NODELAY and small buffers. Costs are ratios to the floor; CPU is that of the server process.

| load | | ours | floor | rmcp |
| --- | --- | --- | --- | --- |
",
        figures.rounds,
    );
    for (what, [ours, floor, rmcp]) in loads(figures) {
        let _ = writeln!(
            page,
            "| {what} | CPU | {:.2} | 1 | {:.2} |",
            ours.cpu / floor.cpu,
            rmcp.cpu / floor.cpu
        );
        let _ =
            writeln!(page, "| | time | {:.2} | 1 | {:.2} |", ours.wall / floor.wall, rmcp.wall / floor.wall);
    }
    let [ours, floor, rmcp] = figures.notification;
    let _ = writeln!(
        page,
        "| one `selection_changed` to one client | CPU | {:.2} | 1 | {:.2} |",
        ours / floor,
        rmcp / floor
    );
    let per_second = |cpu: f64| (1e3 / cpu).round();
    let _ = writeln!(
        page,
        "| `selection_changed` per second of CPU | thousands | {} | {} | {} |",
        per_second(ours),
        per_second(floor),
        per_second(rmcp)
    );
    let [ours, floor, rmcp] = figures.memory;
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let _ = writeln!(
        page,
        "| resident memory, idle | MB | {:.1} | {:.1} | {:.1} |",
        mb(ours.idle),
        mb(floor.idle),
        mb(rmcp.idle)
    );
    let _ = writeln!(
        page,
        "| resident memory after 15 large messages | MB | {:.1} | {:.1} | {:.1} |",
        mb(ours.after),
        mb(floor.after),
        mb(rmcp.after)
    );
    let _ = writeln!(
        page,
        "| memory per idle client, of 1,000 | kB | {:.1} | {:.1} | {:.1} |",
        ours.per_client as f64 / 1e3,
        floor.per_client as f64 / 1e3,
        rmcp.per_client as f64 / 1e3
    );
    page.push_str("\n## The bars\n\n");
    page.push_str(&bench::table(bars));
    Ok(page)
}
