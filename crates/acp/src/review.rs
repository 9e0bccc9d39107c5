//! Edit review: Write and Edit go through the editor, so that it can show and undo each change.
//!
//! The CLI's own tools are taken away, and tools of the same shape are served from inside this program. They read by
//! `fs/read_text_file`, which knows what is not saved yet, and write by `fs/write_text_file`.
//!
//! The CLI asks about them as about any MCP tool, and knows neither paths in their rules nor that `acceptEdits` means them.
//! So the user's rules for `Edit` and `Write` are [kept here](rules), and so is that mode.

mod rules;

use std::path::Path;
use std::sync::Arc;

use oarlock_agent::Options;
use oarlock_agent::permission::{Decision, PermissionRequest};
use oarlock_agent::stream::{
    ContentBlock, ControlRequest, Event, Json, Message, ModeUpdate, PermissionDestination, PermissionMode,
    PermissionUpdate, Request,
};
use oarlock_agent::tool::{Tool, ToolError, ToolOutput, ToolServer};
use oarlock_proto::acp::{ClientCapabilities, ReadTextFile, ReadTextFileResponse, WriteTextFile};
use oarlock_wire::CallError;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::ask::Situation;
use crate::context::Asker;
use rules::{Places, Rules, Verdict, real_paths};

/// The name of the MCP server.
const SERVER: &str = "acp";
/// The tools as the CLI names them, and the built-in ones in whose place they are.
const TOOLS: [(&str, &str); 2] = [("mcp__acp__Edit", "Edit"), ("mcp__acp__Write", "Write")];
/// Built-in tools that would go past the editor.
const TAKEN_AWAY: [&str; 3] = ["Edit", "Write", "MultiEdit"];
/// Where a result tells what was changed (in its `_meta`), in the form of the built-in tools' results.
const CHANGE: &str = "oarlock/change";
/// Larger files are not repeated in a result.
const LARGEST: usize = 256 << 10;

/// The built-in tool in whose place a tool is; its own name if it is none of ours.
pub(crate) fn plain_name(tool: &str) -> &str {
    TOOLS.iter().find(|(name, _)| *name == tool).map_or(tool, |(_, plain)| plain)
}

/// Makes a message speak of the built-in tools where it speaks of ours, so that nobody else has to know them: calls have
/// their plain names, and results say what was changed.
pub(crate) fn disguise(message: &mut Message) {
    let rename = |block: &mut ContentBlock| {
        if let ContentBlock::ToolUse(call) = block
            && let Some((_, plain)) = TOOLS.iter().find(|(name, _)| *name == call.name)
        {
            call.name = (*plain).to_owned();
        }
    };
    match message {
        Message::Assistant(assistant) => assistant.message.content.iter_mut().for_each(rename),
        Message::StreamEvent(event) => {
            if let Event::ContentBlockStart(start) = &mut event.event {
                rename(&mut start.content_block);
            }
        }
        Message::ControlRequest(ControlRequest { request: Request::CanUseTool(ask), .. }) => {
            ask.tool_name = plain_name(&ask.tool_name).to_owned();
        }
        Message::User(user) => {
            if let Some(change) = user.tool_use_result.as_ref().and_then(change) {
                user.tool_use_result = Some(change);
            }
        }
        _ => {}
    }
}

/// What a result of ours says about the change.
fn change(result: &Json) -> Option<Json> {
    // Other results can be large; they are not taken apart.
    if !result.is_object() || !result.text().contains(CHANGE) {
        return None;
    }
    Some(result.value().get("_meta")?.get(CHANGE)?.clone().into())
}

/// Can the client do it?
fn is_possible(client: &ClientCapabilities) -> bool {
    client.fs.read_text_file && client.fs.write_text_file
}

fn is_on(asker: &Asker) -> bool {
    asker.context.settings.review_edits && is_possible(asker.client())
}

/// What the client itself says about the tools of a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    /// The only built-in tools there are to be.
    pub(crate) tools: Option<Vec<String>>,
    /// Tools that there are not to be, and rules that forbid.
    pub(crate) disallowed: Vec<String>,
}

impl Wishes {
    /// Is this built-in tool, and so the one in its place, not to be there?
    fn forbid(&self, plain: &str) -> bool {
        self.disallowed.iter().any(|rule| rule == plain)
            || self
                .tools
                .as_ref()
                .is_some_and(|tools| !tools.iter().any(|tool| tool == plain || tool == "default"))
    }
}

/// The options of a CLI whose edits go through the editor, and what the user should know about it. As they are when the
/// client cannot write files.
pub(crate) fn apply(
    options: Options,
    asker: &Asker,
    cwd: &str,
    wishes: &Wishes,
) -> (Options, Option<String>) {
    if !is_possible(asker.client()) {
        return (
            options,
            Some("Edits are not reviewed: this editor does not write files for agents.".into()),
        );
    }
    let rules = load(asker, cwd);
    let word = (!rules.unread.is_empty()).then(|| {
        format!(
            "Edits go through the editor. These rules of your settings cannot be kept there, so you are asked about \
             every edit that they may be about: {}",
            rules.unread.join(", ")
        )
    });
    let forbidden = TOOLS.iter().filter(|(_, plain)| wishes.forbid(plain)).map(|(ours, _)| *ours);
    let options = options.disallowed_tools(TAKEN_AWAY).disallowed_tools(forbidden).tool_server(server(
        asker,
        cwd,
        wishes.disallowed.clone(),
    ));
    let options = TOOLS.iter().fold(options, |options, (ours, plain)| options.tool_alias(*plain, *ours));
    (options, word)
}

fn load(asker: &Asker, cwd: &str) -> Rules {
    load_with(asker, cwd, &[])
}

/// The rules, and more that forbid.
fn load_with(asker: &Asker, cwd: &str, disallowed: &[String]) -> Rules {
    let home = etcetera::home_dir().ok();
    let places =
        Places { cwd: Path::new(cwd), config_dir: asker.context.config_dir(), home: home.as_deref() };
    let mut rules = Rules::load(places);
    rules.forbid(disallowed, places);
    rules
}

// ---- permissions

/// What is decided about an edit without asking: by the user's rules, or by the mode.
pub(crate) fn decide(asker: &Asker, request: &PermissionRequest, situation: &Situation) -> Option<Decision> {
    let (tool, path) = edit_of(asker, request)?;
    match load(asker, &situation.cwd).verdict(tool, Path::new(&path)) {
        Verdict::Deny(rule) => Some(request.deny(forbidden(&path, &rule))),
        Verdict::Allow if situation.mode != Some(PermissionMode::Plan) => Some(request.allow()),
        Verdict::Silent if situation.mode == Some(PermissionMode::AcceptEdits) => {
            is_plain_file_of(&path, &situation.cwd).then(|| request.allow())
        }
        _ => None,
    }
}

/// What "always" is for an edit that goes through the editor; `None` when it does not go there. (The CLI would suggest a rule
/// that allows every edit everywhere, for ever.)
pub(crate) fn always(
    asker: &Asker,
    request: &PermissionRequest,
    situation: &Situation,
) -> Option<Vec<PermissionUpdate>> {
    let (_, path) = edit_of(asker, request)?;
    if situation.mode == Some(PermissionMode::Plan) || !is_plain_file_of(&path, &situation.cwd) {
        return Some(vec![]);
    }
    Some(vec![PermissionUpdate::SetMode(ModeUpdate {
        mode: PermissionMode::AcceptEdits,
        destination: PermissionDestination::Session,
        ..Default::default()
    })])
}

fn edit_of(asker: &Asker, request: &PermissionRequest) -> Option<(&'static str, String)> {
    let (_, tool) = TOOLS.iter().find(|(name, _)| *name == request.tool_name)?;
    let path = request.input.value().get("file_path")?.as_str()?.to_owned();
    is_on(asker).then_some((tool, path))
}

/// Is it a file of the project, and none that configures anything (`.git/config`, `.bashrc`)?
fn is_plain_file_of(path: &str, cwd: &str) -> bool {
    let roots = real_paths(Path::new(cwd));
    real_paths(Path::new(path)).iter().all(|path| {
        roots.iter().any(|root| {
            path.strip_prefix(root)
                .is_ok_and(|rest| rest.iter().all(|part| !part.as_encoded_bytes().starts_with(b".")))
        })
    })
}

fn forbidden(path: &str, rule: &str) -> String {
    format!("{path} may not be changed: the user's settings have the rule {rule}. Nothing was done.")
}

// ---- the tools

#[derive(Deserialize)]
struct Edit {
    file_path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

#[derive(Deserialize)]
struct Write {
    file_path: String,
    content: String,
}

/// The editor's files, as the tools see them.
struct Files {
    asker: Asker,
    cwd: String,
    /// What the client forbids.
    disallowed: Vec<String>,
    /// Reading and writing is one step.
    turn: Mutex<()>,
}

fn server(asker: &Asker, cwd: &str, disallowed: Vec<String>) -> ToolServer {
    let (asker, cwd) = (asker.clone(), cwd.to_owned());
    let files = Arc::new(Files { asker, cwd, disallowed, turn: Mutex::new(()) });
    let (for_edit, for_write) = (files.clone(), files);
    let path = json!({ "type": "string", "description": "The absolute path of the file" });
    let edit = Tool::raw(
        "Edit",
        json!({
            "type": "object",
            "properties": {
                "file_path": path,
                "old_string": { "type": "string", "description": "The text to replace" },
                "new_string": { "type": "string", "description": "The text that takes its place (must differ)" },
                "replace_all": { "type": "boolean", "default": false,
                    "description": "Replace every place where old_string is (false unless told)" },
            },
            "required": ["file_path", "old_string", "new_string"],
            "additionalProperties": false,
        }),
        move |args: Json, _| {
            let files = for_edit.clone();
            async move { files.edit(read_args(&args)?).await }
        },
    )
    .description(
        "Replaces an exact text in a file. This is the way to change files here. Read the file first: old_string must \
         be in it exactly as it is, indentation included, and only once; give more of the lines around it if it is \
         not, or use replace_all. An empty old_string makes a new file.",
    )
    .destructive(true)
    .always_load();
    let write = Tool::raw(
        "Write",
        json!({
            "type": "object",
            "properties": {
                "file_path": path,
                "content": { "type": "string", "description": "What the file shall hold" },
            },
            "required": ["file_path", "content"],
            "additionalProperties": false,
        }),
        move |args: Json, _| {
            let files = for_write.clone();
            async move { files.write(read_args(&args)?).await }
        },
    )
    .description(
        "Writes a file, whole. What was in it is lost: read a file that exists before you do so, and prefer Edit for \
         changes. Make no new files that nobody needs.",
    )
    .destructive(true)
    .always_load();
    ToolServer::new(SERVER).tool(edit).tool(write)
}

fn read_args<T: serde::de::DeserializeOwned>(args: &Json) -> Result<T, ToolError> {
    args.read().map_err(|error| ToolError::new(format!("the arguments do not fit: {error}")))
}

impl Files {
    async fn edit(&self, edit: Edit) -> Result<ToolOutput, ToolError> {
        self.check("Edit", &edit.file_path)?;
        let _turn = self.turn.lock().await;
        let original = self.read(&edit.file_path).await?;
        let changed = replace(original.as_deref(), &edit).map_err(ToolError::new)?;
        self.store(&edit.file_path, &changed).await?;
        let change = json!({
            "filePath": edit.file_path,
            "oldString": edit.old_string,
            "newString": edit.new_string,
            "originalFile": original.as_deref().filter(|text| text.len() <= LARGEST),
            "replaceAll": edit.replace_all,
            "structuredPatch": hunks(original.as_deref().unwrap_or_default(), &changed),
        });
        Ok(done(&edit.file_path, original.is_some(), change))
    }

    async fn write(&self, write: Write) -> Result<ToolOutput, ToolError> {
        self.check("Write", &write.file_path)?;
        let _turn = self.turn.lock().await;
        let original = self.read(&write.file_path).await?;
        self.store(&write.file_path, &write.content).await?;
        let change = json!({
            "type": if original.is_some() { "update" } else { "create" },
            "filePath": write.file_path,
            "content": write.content,
            "originalFile": original.as_deref().filter(|text| text.len() <= LARGEST),
            "structuredPatch": original.as_deref().map_or_else(Vec::new, |text| hunks(text, &write.content)),
        });
        Ok(done(&write.file_path, original.is_some(), change))
    }

    /// Modes in which nobody is asked do not lift what is forbidden.
    fn check(&self, tool: &str, path: &str) -> Result<(), ToolError> {
        if !Path::new(path).is_absolute() {
            return Err(ToolError::new(format!("{path} is not an absolute path")));
        }
        match load_with(&self.asker, &self.cwd, &self.disallowed).verdict(tool, Path::new(path)) {
            Verdict::Deny(rule) => Err(ToolError::new(forbidden(path, &rule))),
            _ => Ok(()),
        }
    }

    /// What the file holds in the editor; `None` when there is no such file.
    async fn read(&self, path: &str) -> Result<Option<String>, ToolError> {
        let request = ReadTextFile { session_id: self.asker.session_id.to_string(), path: path.to_owned() };
        match self.asker.ask::<ReadTextFileResponse>("fs/read_text_file", &request).await {
            Ok(response) => Ok(Some(response.content)),
            // Editors differ in how they say that a file is not there.
            Err(CallError::Refused(_)) if !Path::new(path).exists() => Ok(None),
            Err(error) => Err(ToolError::new(format!("the editor could not read {path}: {error}"))),
        }
    }

    async fn store(&self, path: &str, content: &str) -> Result<(), ToolError> {
        let request = WriteTextFile {
            session_id: self.asker.session_id.to_string(),
            path: path.to_owned(),
            content: content.to_owned(),
        };
        let written = self.asker.ask::<Option<Value>>("fs/write_text_file", &request).await;
        written
            .map(drop)
            .map_err(|error| ToolError::new(format!("the editor could not write {path}: {error}")))
    }
}

fn done(path: &str, was_there: bool, change: Value) -> ToolOutput {
    let what = if was_there { "updated" } else { "created" };
    ToolOutput::text(format!("The file {path} has been {what}, through the user's editor."))
        .meta(CHANGE, change)
}

/// What has changed, as the built-in tools tell it: one part, from the first line that differs to the last.
fn hunks(old: &str, new: &str) -> Vec<Value> {
    /// Lines around a change.
    const AROUND: usize = 3;

    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[before..], &new[before..]);
    if old_rest.is_empty() && new_rest.is_empty() {
        return vec![];
    }
    let after = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (gone, kept) = old_rest.split_at(old_rest.len() - after);
    let come = &new_rest[..new_rest.len() - after];
    let first = before.saturating_sub(AROUND);
    let kept = &kept[..kept.len().min(AROUND)];
    let mut lines = Vec::new();
    for (sign, part) in [(' ', &old[first..before]), ('-', gone), ('+', come), (' ', kept)] {
        for line in part {
            lines.push(format!("{sign}{}", line.strip_suffix('\n').unwrap_or(line)));
            if !line.ends_with('\n') {
                lines.push("\\ No newline at end of file".to_owned());
            }
        }
    }
    let around = before - first + kept.len();
    vec![json!({
        "oldStart": first + 1,
        "oldLines": around + gone.len(),
        "newStart": first + 1,
        "newLines": around + come.len(),
        "lines": lines,
    })]
}

/// The text after an edit.
fn replace(original: Option<&str>, edit: &Edit) -> Result<String, String> {
    let path = &edit.file_path;
    if edit.old_string == edit.new_string {
        return Err("old_string and new_string are the same: there is nothing to change.".into());
    }
    let text = match (original, edit.old_string.is_empty()) {
        (None | Some(""), true) => return Ok(edit.new_string.clone()),
        (None, false) => return Err(format!("{path} does not exist.")),
        (Some(_), true) => {
            return Err(format!("old_string is empty, but {path} has content; say which text to replace."));
        }
        (Some(text), false) => text,
    };
    // The model sees no carriage returns.
    let is_crlf = text.contains("\r\n") && !edit.old_string.contains('\r');
    let in_file = |part: &str| {
        if is_crlf { part.replace("\r\n", "\n").replace('\n', "\r\n") } else { part.to_owned() }
    };
    let (old, new) = (in_file(&edit.old_string), in_file(&edit.new_string));
    match text.matches(old.as_str()).count() {
        0 => Err(format!(
            "old_string is not in {path}. The file may have changed, or the editor may hold changes that are not \
             saved; read it again."
        )),
        1 => Ok(text.replacen(&old, &new, 1)),
        _ if edit.replace_all => Ok(text.replace(&old, &new)),
        count => Err(format!(
            "old_string is in {path} {count} times. Give more of the text around it, or set replace_all."
        )),
    }
}

#[cfg(test)]
mod tests;
