//! Hooks: every call of a tool is written down, and one kind of command is refused.

#![allow(clippy::print_stdout)]

use oarlock_agent::hook::{Hook, HookCall};
use oarlock_agent::stream::hook::{HookEvent, HookOutput};
use oarlock_agent::{Error, Options};

async fn guard(call: HookCall) -> HookOutput {
    match &call.event {
        HookEvent::PreToolUse(event) if event.tool_input.text().contains("rm -rf") => {
            call.deny("not on this machine")
        }
        HookEvent::PreToolUse(event) => {
            println!("{} {}", event.tool_name, event.tool_input.text());
            call.allow()
        }
        _ => HookOutput::default(),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let options = Options::new().hook(Hook::on("PreToolUse").matching("Bash"), guard).hook(
        Hook::on("Stop"),
        |_| async {
            println!("the turn is over");
            HookOutput::default()
        },
    );
    let answer = oarlock_agent::ask("Make a directory d1.").options(options).await?;
    println!("{}", answer.text());
    Ok(())
}
