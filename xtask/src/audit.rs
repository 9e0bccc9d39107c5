//! `cargo xtask audit`: what the dependencies are, under which licence, and from where.

use std::process::Command;

use anyhow::Result;

use crate::shell;

pub(crate) fn run() -> Result<()> {
    let tools = shell::root().join("target/tools");
    let deny = tools.join("bin").join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    let mut command = if works(&mut Command::new("cargo-deny")) {
        Command::new("cargo-deny")
    } else {
        if !works(&mut Command::new(&deny)) {
            println!("cargo-deny is missing: installing it under target/tools");
            shell::check(
                shell::cargo_command().args(["install", "--locked", "cargo-deny", "--root"]).arg(&tools),
            )?;
        }
        Command::new(deny)
    };
    shell::check(command.current_dir(shell::root()).args(["check", "bans", "licenses", "sources"]))
}

fn works(command: &mut Command) -> bool {
    command.arg("--version").output().is_ok_and(|output| output.status.success())
}
