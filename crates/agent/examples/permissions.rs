//! The program decides about tools: it reads freely, writes only text files, and shows what it decided.

#![allow(clippy::print_stdout)]

use oarlock_agent::permission::{Decision, PermissionRequest};
use oarlock_agent::stream::ToolInput;
use oarlock_agent::{Error, Options};

async fn decide(request: PermissionRequest) -> Decision {
    let decision = match request.tool() {
        ToolInput::Read(_) => request.allow(),
        ToolInput::Write(write) if write.file_path.ends_with(".txt") => request.allow(),
        // The model reads why, and goes on.
        _ => request.deny("only text files may be written here"),
    };
    println!("{} {}: {}", request.tool_name, request.input.text(), decision.tag());
    decision
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let answer =
        oarlock_agent::ask("Write alpha into a.txt.").options(Options::new().can_use_tool(decide)).await?;
    println!("{}", answer.text());
    for denial in answer.result.permission_denials.iter().flatten() {
        println!("refused: {}", denial.tool_name);
    }
    Ok(())
}
