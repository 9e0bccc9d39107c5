//! The examples of the SDK, run against the scripted CLI: what they print is what their comments say.

use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use crate::shell;

/// An example, the script that plays `claude` for it, and a line that it must print.
const EXAMPLES: [(&str, &str, &str); 9] = [
    ("ask", "text", "Hello there, friend."),
    ("chat", "text", "> And once more, please."),
    ("permissions", "tool-allow", "Write {\"content\":\"alpha\\n\",\"file_path\":\"a.txt\"}: allow"),
    ("hooks", "hook", "the turn is over"),
    ("tools", "mcp-tool", "add 2 3"),
    ("structured", "structured-output", "bob is 7"),
    ("interrupt", "interrupt", "After the interrupt."),
    ("warm", "text", "Hello there, friend."),
    ("blocking", "text", "Hello there, friend."),
];

/// Builds and runs them all.
pub(crate) fn run() -> Result<()> {
    shell::check(shell::cargo_command().args([
        "build",
        "--workspace",
        "--all-features",
        "--examples",
        "--bins",
    ]))?;
    let target = shell::target();
    let folder = target.join("tmp/examples");
    fs::create_dir_all(&folder)?;
    let mut failed = Vec::new();
    for (example, script, line) in EXAMPLES {
        let claude = folder.join(format!("claude-{script}{}", env::consts::EXE_SUFFIX));
        let script = shell::root().join(format!("crates/script/examples/{script}.toml"));
        let oarlock = target.join("debug").join(format!("oarlock{}", env::consts::EXE_SUFFIX));
        let _ = fs::remove_file(&claude);
        shell::check(Command::new(oarlock).arg("script").arg(script).arg("--as").arg(&claude))?;
        let program = target.join("debug/examples").join(format!("{example}{}", env::consts::EXE_SUFFIX));
        let output = Command::new(&program)
            .env("CLAUDE_CODE_EXECUTABLE", &claude)
            .current_dir(&folder)
            .output()
            .with_context(|| format!("failed to start {}", program.display()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        if output.status.success() && said.lines().any(|said| said == line) {
            println!("example {example}: ok");
        } else {
            println!(
                "example {example}: FAILED, {}\n{said}{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
            failed.push(example);
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}
