//! `cargo xtask bench sdk`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark reports on the terminal")]
mod client;
mod fake;
mod plain;
mod raw;
mod traffic;
use raw::Raw;
use std::path::Path;
use std::process::Command;
fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--client", "lines", fake] => return raw::run(Raw::Lines, Path::new(fake)),
        ["--client", "tagged", fake] => return raw::run(Raw::Tagged, Path::new(fake)),
        ["--client", "peek", fake] => return raw::run(Raw::Peek, Path::new(fake)),
        _ => {}
    }
    if let Some(recording) = std::env::var_os(fake::RECORDING) {
        return fake::play(Path::new(&recording));
    }
    let me = std::env::current_exe()?;
    for t in traffic::Traffic::ALL {
        let r = traffic::Recording::obtain(Path::new("target/bench"), t)?;
        for _ in 0..3 {
            for k in ["lines", "tagged", "peek", "python", "node"] {
                let c = match k {
                    "python" => {
                        let mut c = Command::new("/tmp/h/venv-b/bin/python");
                        c.arg("crates/agent/benches/sdk/peer.py").arg(&me).arg("0");
                        c
                    }
                    "node" => {
                        let mut c = Command::new("node");
                        c.arg("/tmp/h/npm-b/peer.mjs").arg(&me).arg("0");
                        c
                    }
                    k => {
                        let mut c = Command::new(&me);
                        c.args(["--client", k]).arg(&me);
                        c
                    }
                };
                let cost = client::observe(c, &r)?;
                println!(
                    "{t} {k:<10} {:>6.0} MB/s {:>6.0} k/s cpu {:.2} peak {:.1}",
                    r.bytes as f64 / 1e6 / cost.wall,
                    r.messages as f64 / 1e3 / cost.wall,
                    cost.cpu,
                    cost.peak as f64 / 1e6
                );
            }
        }
    }
    Ok(())
}
