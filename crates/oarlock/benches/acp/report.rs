//! The bars, the tables, and `docs/bench-acp.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use oarlock_testkit::acp::reference::VERSION;
use oarlock_testkit::bench::{self, Bar, Limit};

use crate::figures::{Figure, Who};
use crate::measure::{DELTAS, Figures};

/// Prints the page, writes it to `path` if there is one, and tells whether every bar holds.
pub(crate) fn publish(all: &[Figures], path: Option<&Path>) -> Result<bool> {
    let page = page(all)?;
    println!("\n{page}");
    if let Some(path) = path {
        std::fs::write(path, page).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(all.iter().flat_map(bars).all(|bar| bar.holds()))
}

fn bars(figures: &Figures) -> Vec<Bar> {
    use Figure::*;
    let samples = &figures.samples;
    let mut bars = Vec::new();
    let mut bar = |what: &str, value, limit| {
        bars.push(Bar { what: format!("{}: {what}", figures.version), value, limit, unit: "times" });
    };
    let to_reference = |figure| samples.ratio(figure, Who::Reference);
    let to_cli = |figure| samples.ratio(figure, Who::Alone);
    bar("start to `initialize`, to the reference", to_reference(Initialize), Limit::Part(50.0));
    bar("memory with 1 session, to the reference", to_reference(MemoryOne), Limit::Part(10.0));
    bar("memory with 8 sessions, to the reference", to_reference(MemoryEight), Limit::Part(8.0));
    bar("`session/new` with a cache, to the reference", to_reference(New), Limit::Part(20.0));
    bar("start to the first text, to the CLI alone", to_cli(FirstText), Limit::Most(1.15));
    bar("2,000 deltas, prompt to end, to the CLI alone", to_cli(DeltasWall), Limit::Most(1.1));
    bar("2,000 deltas, CPU, to the reference", to_reference(DeltasCpu), Limit::Part(20.0));
    bar("2,000 deltas, bytes, to the reference", to_reference(DeltasBytes), Limit::Part(3.0));
    let payloads = figures.payloads;
    for (what, figure, payload) in [
        ("Read, bytes to the payload", Read, payloads.read),
        ("Write, bytes to the payload", Write, payloads.write),
        ("Edit, bytes to the payload", Edit, payloads.edit),
    ] {
        bar(what, samples.median(Who::Ours, figure) / payload as f64, Limit::Most(1.3));
    }
    let calls = |who| {
        let calls = figures.calls.iter().find(|(other, _)| *other == who);
        calls.map_or(f64::NAN, |(_, calls)| calls.values().sum::<usize>() as f64)
    };
    bar("API calls of 3 prompts, to the CLI alone", calls(Who::Ours) / calls(Who::Alone), Limit::Most(1.0));
    bar("`session/load` of 100 turns, to the reference", to_reference(Load), Limit::Part(10.0));
    bars
}

fn page(all: &[Figures]) -> Result<String> {
    let setting = bench::setting()?;
    let rounds = all.first().map_or(0, |figures| figures.rounds);
    let mut page = format!(
        "\
# What the ACP agent costs

Made by `cargo xtask bench acp` on {setting}. Medians of {rounds} rounds, with the least and the most in
brackets; every round visits everyone, and ratios are taken within a round.

Beside `oarlock acp` stands the reference adapter, `@agentclientprotocol/claude-agent-acp` {VERSION} from npm on node 22;
both drive the same CLI for the same client, which speaks raw lines with the capabilities of Zed. The model is scripted and
unpaced; nothing but loopback is in reach. The limit is the CLI alone: started with the same flags, initialised, and
prompted at once. CPU and memory are those of the adapter's process.

* {DELTAS} deltas have 12 characters each
* Write and Edit ask for permission; the edited file is shown whole, before and after
* a turn of the 100 that are loaded has a prompt, a text, a call of Read, and another text

## The bars

",
    );
    page.push_str(&bench::table(&all.iter().flat_map(bars).collect::<Vec<_>>()));
    for figures in all {
        table(&mut page, figures);
    }
    Ok(page)
}

fn table(page: &mut String, figures: &Figures) {
    let _ = writeln!(
        page,
        "\n## CLI {}\n\n| | Oarlock | reference | CLI alone |\n| --- | --- | --- | --- |",
        figures.version
    );
    for figure in Figure::ALL {
        let cell = |who| {
            let values = figures.samples.of(who, figure);
            let least = values.iter().copied().reduce(f64::min)?;
            let most = values.iter().copied().reduce(f64::max)?;
            let middle = figures.samples.median(who, figure);
            Some(format!("{} [{} - {}]", figure.show(middle), figure.show(least), figure.show(most)))
        };
        let cell = |who| cell(who).unwrap_or_default();
        let _ = writeln!(
            page,
            "| {figure} | {} | {} | {} |",
            cell(Who::Ours),
            cell(Who::Reference),
            cell(Who::Alone)
        );
    }
    let calls = |who| {
        let calls = figures.calls.iter().find(|(other, _)| *other == who);
        calls.map(|(_, calls)| describe(calls)).unwrap_or_default()
    };
    let _ = writeln!(
        page,
        "| API calls of 3 prompts | {} | {} | {} |",
        calls(Who::Ours),
        calls(Who::Reference),
        calls(Who::Alone)
    );
}

fn describe(calls: &BTreeMap<String, usize>) -> String {
    let all: usize = calls.values().sum();
    let kinds: Vec<String> = calls.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    format!("{all} ({})", kinds.join(", "))
}
