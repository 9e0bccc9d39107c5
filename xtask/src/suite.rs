//! `cargo xtask test`: the one command that passes all tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::steps::Steps;
use crate::{examples, shell, tidy};

/// How many of the end-to-end scenarios run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Those of every commit.
    Usual,
    /// All, on every version of the CLI; the results are kept as pages in `docs`.
    Full,
}

/// A test target with scenarios in several cells, and the page that a full run makes of it.
struct Suite {
    target: &'static str,
    title: &'static str,
    page: &'static str,
}

const MATRICES: [Suite; 3] = [
    Suite { target: "e2e", title: "End-to-end scenarios on the real CLI", page: "docs/full-matrix.md" },
    Suite {
        target: "sdk",
        title: "All SDKs on the scripted and on the real CLI",
        page: "docs/sdk-matrix.md",
    },
    Suite { target: "acp", title: "The ACP agent between clients and CLIs", page: "docs/acp-matrix.md" },
];

pub(crate) fn run(extent: Extent) -> Result<ExitCode> {
    let targets = test_targets(&shell::root().join("crates"))?;
    let mut steps = Steps::default();

    steps.command("format", &mut cargo(&["fmt", "--all", "--check"]));
    steps.command(
        "lints",
        &mut cargo(&["clippy", "--workspace", "--all-features", "--all-targets", "--", "-D", "warnings"]),
    );
    steps.command(
        "docs",
        cargo(&["doc", "--workspace", "--all-features", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"),
    );
    steps.check("tidy", tidy::run);

    let mut tests = workspace_tests(&["--no-fail-fast", "--lib", "--bins", "--examples"]);
    for target in targets.iter().filter(|target| MATRICES.iter().all(|matrix| matrix.target != **target)) {
        tests.args(["--test", target]);
    }
    steps.tests("tests", &mut tests, |_| {});
    steps.tests("doc tests", &mut workspace_tests(&["--no-fail-fast", "--doc"]), |_| {});
    steps.check("examples", examples::run);

    // What the README shows first, as it says it; without the optimiser.
    steps.command("readme", &mut cargo(&["run", "--quiet", "--", "demo", "--yes"]));

    for suite in MATRICES {
        suite.run(&mut steps, &targets, extent);
    }

    finish(steps)
}

/// Runs one suite alone.
pub(crate) fn run_one(name: &str, extent: Extent) -> Result<ExitCode> {
    let suite = MATRICES.into_iter().find(|suite| suite.target == name);
    let suite = suite.with_context(|| {
        let names = MATRICES.map(|suite| suite.target).join(", ");
        format!("there is no suite `{name}`; there are {names}")
    })?;
    let targets = test_targets(&shell::root().join("crates"))?;
    let mut steps = Steps::default();
    suite.run(&mut steps, &targets, extent);
    finish(steps)
}

fn finish(steps: Steps) -> Result<ExitCode> {
    let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    Ok(if steps.finish(in_ci) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Suite {
    fn run(&self, steps: &mut Steps, targets: &BTreeSet<String>, extent: Extent) {
        let Self { target, title, page } = *self;
        if !targets.contains(target) {
            steps.skip(target, "there is no such test target");
            return;
        }
        let mut matrix = Matrix::default();
        let mut command = workspace_tests(&["--test", target]);
        if extent == Extent::Full {
            command.env("OARLOCK_E2E", "full");
        }
        steps.tests(target, &mut command, |line| matrix.see(line));
        if extent == Extent::Full {
            steps.check("matrix", || {
                // An old table says more than an empty one.
                ensure!(!matrix.results.is_empty(), "no scenario ran; {page} is left as it was");
                let path = shell::root().join(page);
                fs::create_dir_all(shell::root().join("docs"))?;
                fs::write(path, matrix.page(title, &shell::today()?))
                    .with_context(|| format!("failed to write {page}"))
            });
        }
    }
}

/// Tests of all crates. The features are always the same ones, or everything would be built again in between.
fn workspace_tests(arguments: &[&str]) -> Command {
    let mut command = cargo(&["test", "--workspace", "--all-features"]);
    command.args(arguments);
    command
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = shell::cargo_command();
    command.args(arguments);
    command
}

/// The names of all integration tests, so that the end-to-end one can be run apart.
fn test_targets(crates: &Path) -> Result<BTreeSet<String>> {
    let mut targets = BTreeSet::new();
    for entry in fs::read_dir(crates).context("failed to list crates/")? {
        let Ok(tests) = fs::read_dir(entry?.path().join("tests")) else { continue };
        for test in tests {
            let path = test?.path();
            let is_target = path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").is_file();
            if let (true, Some(name)) = (is_target, path.file_stem()) {
                targets.insert(name.to_string_lossy().into_owned());
            }
        }
    }
    Ok(targets)
}

/// Scenarios by CLI versions, read from the lines `test SCENARIO::VERSION ... ok` and, for the time they took,
/// `1.25 s  SCENARIO::VERSION`.
#[derive(Debug, Default)]
struct Matrix {
    results: BTreeMap<String, BTreeMap<String, Cell>>,
}

#[derive(Debug, Default)]
struct Cell {
    result: String,
    time: String,
}

impl Matrix {
    fn see(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, result, time) = match words[..] {
            ["test", name, "...", result] => (name, result, ""),
            [time, "s", name] if time.parse::<f64>().is_ok() => (name, "", time),
            _ => return,
        };
        let Some((scenario, version)) = name.rsplit_once("::") else { return };
        let cell =
            self.results.entry(scenario.to_owned()).or_default().entry(version.to_owned()).or_default();
        for (field, value) in [(&mut cell.result, result), (&mut cell.time, time)] {
            if !value.is_empty() {
                value.clone_into(field);
            }
        }
    }

    fn page(&self, title: &str, date: &str) -> String {
        let versions: BTreeSet<&String> = self.results.values().flat_map(BTreeMap::keys).collect();
        let cells = || self.results.values().flat_map(BTreeMap::values);
        let passed = cells().filter(|cell| cell.result == "ok").count();
        let mut page = format!(
            "# {title}\n\nMade by `cargo xtask test --full` on {date}: {passed} of {} passed.\n\n",
            cells().count()
        );
        let mut rule = String::from("| --- |");
        page.push_str("| scenario |");
        for version in &versions {
            let _ = write!(page, " {version} |");
            rule.push_str(" --- |");
        }
        let _ = writeln!(page, "\n{rule}");
        for (scenario, cells) in &self.results {
            let _ = write!(page, "| `{scenario}` |");
            for version in &versions {
                let text = match cells.get(*version) {
                    None => "–".to_owned(),
                    Some(Cell { result, time }) => {
                        let result = match result.as_str() {
                            "ok" => "pass",
                            "FAILED" => "**FAIL**",
                            "" => "no result",
                            other => other,
                        };
                        if time.is_empty() { result.to_owned() } else { format!("{result}, {time} s") }
                    }
                };
                let _ = write!(page, " {text} |");
            }
            page.push('\n');
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_has_a_row_per_scenario_and_a_column_per_version() {
        let mut matrix = Matrix::default();
        for line in [
            "running 3 tests",
            "test edit_accepted::2.1.197 ... ok",
            "   1.25 s  edit_accepted::2.1.197",
            "test edit_accepted::2.1.325 ... FAILED",
            "test auto_mode::2.1.325    ... ok",
            "test result: FAILED. 2 passed; 1 failed; 0 ignored",
        ] {
            matrix.see(line);
        }
        let page = matrix.page("Scenarios", "2026-01-31");
        assert!(page.contains("on 2026-01-31: 2 of 3 passed."), "{page}");
        assert!(
            page.ends_with(
                "\
| scenario | 2.1.197 | 2.1.325 |
| --- | --- | --- |
| `auto_mode` | – | pass |
| `edit_accepted` | pass, 1.25 s | **FAIL** |
"
            ),
            "{page}"
        );
    }

    #[test]
    fn targets_are_files_and_folders_with_a_main() {
        let folder = std::env::temp_dir().join(format!("xtask-targets-{}", std::process::id()));
        for (path, text) in [("a/tests/one.rs", ""), ("a/tests/two/main.rs", ""), ("a/tests/data/x.json", "")]
        {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(folder.join("b/src")).unwrap();
        let targets = test_targets(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(targets.unwrap().into_iter().collect::<Vec<_>>(), ["one", "two"]);
    }
}
