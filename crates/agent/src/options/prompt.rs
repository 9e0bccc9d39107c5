//! What the model is told before the conversation, and the shape of its answer.

use std::path::PathBuf;

use super::Options;
use super::args::Args;
use super::refuse;
use crate::Error;
use crate::stream::{Initialize, Json};

/// The options of this file.
#[derive(Clone, Default)]
pub(super) struct Prompt {
    system: Option<SystemPrompt>,
    append: Option<String>,
    append_file: Option<PathBuf>,
    append_subagent: Option<String>,
    exclude_dynamic_sections: Option<bool>,
    snapshot: Option<bool>,
    plan_mode_instructions: Option<String>,
    schema: Option<Json>,
}

/// A system prompt in place of Claude Code's own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemPrompt {
    /// This text. The empty one leaves a single sentence of the CLI's, which is what the official SDKs start with.
    Text(String),
    /// These blocks, one after the other. What comes before a block that is [`SystemPrompt::DYNAMIC_BOUNDARY`] can be
    /// cached across sessions (CLIs that do not know the mark send it to the model).
    Blocks(Vec<String>),
    /// The text of this file, which the CLI reads.
    File(PathBuf),
}

impl SystemPrompt {
    /// Marks the end of the blocks that are the same in every session.
    pub const DYNAMIC_BOUNDARY: &str = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__";
}

impl From<&str> for SystemPrompt {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SystemPrompt {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<String>> for SystemPrompt {
    fn from(blocks: Vec<String>) -> Self {
        Self::Blocks(blocks)
    }
}

impl Options {
    /// A system prompt in place of Claude Code's own (`initialize.systemPrompt`; `--system-prompt-file` for a file).
    ///
    /// Without it the session has Claude Code's own prompt. The official SDKs start with an empty one instead: for the
    /// same, say `system_prompt("")`.
    #[must_use]
    pub fn system_prompt(mut self, prompt: impl Into<SystemPrompt>) -> Self {
        self.prompt.system = Some(prompt.into());
        self
    }

    /// A text after the system prompt, be it Claude Code's own or another (`initialize.appendSystemPrompt`).
    #[must_use]
    pub fn append_system_prompt(mut self, text: impl Into<String>) -> Self {
        self.prompt.append = Some(text.into());
        self
    }

    /// A file whose text comes after the system prompt (`--append-system-prompt-file`).
    #[must_use]
    pub fn append_system_prompt_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.prompt.append_file = Some(path.into());
        self
    }

    /// A text after the system prompt of every subagent (`--append-subagent-system-prompt-file` with a private file;
    /// 2.1.197 does not know it).
    #[must_use]
    pub fn append_subagent_system_prompt(mut self, text: impl Into<String>) -> Self {
        self.prompt.append_subagent = Some(text.into());
        self
    }

    /// Whether Claude Code's own prompt leaves out what differs from machine to machine (directory, memory, git status),
    /// so that many users share one prompt cache (`initialize.excludeDynamicSections`). The model is told in the first
    /// message instead.
    #[must_use]
    pub fn exclude_dynamic_sections(mut self, exclude: bool) -> Self {
        self.prompt.exclude_dynamic_sections = Some(exclude);
        self
    }

    /// Whether the system prompt is recorded at the first request and reused as it is until the conversation is
    /// compacted, also after a resume (`initialize.systemPromptSnapshot`; older CLIs ignore it).
    #[must_use]
    pub fn system_prompt_snapshot(mut self, record: bool) -> Self {
        self.prompt.snapshot = Some(record);
        self
    }

    /// The way of working that plan mode asks for, in place of its own (`initialize.planModeInstructions`).
    #[must_use]
    pub fn plan_mode_instructions(mut self, text: impl Into<String>) -> Self {
        self.prompt.plan_mode_instructions = Some(text.into());
        self
    }

    /// The JSON schema of the answer (`initialize.jsonSchema`). The result then has it as `structured_output`.
    #[must_use]
    pub fn output_schema(mut self, schema: impl Into<Json>) -> Self {
        self.prompt.schema = Some(schema.into());
        self
    }
}

impl Prompt {
    pub(super) fn arguments(&self, args: &mut Args) -> Result<(), Error> {
        if self.append.is_some() && self.append_file.is_some() {
            return refuse(
                "append_system_prompt_file",
                "append_system_prompt is there too, and only one can count",
            );
        }
        if self.schema.as_ref().is_some_and(|schema| !schema.is_object()) {
            return refuse("output_schema", "a schema is a JSON object");
        }
        if let Some(SystemPrompt::File(path)) = &self.system {
            args.value("--system-prompt-file", path)?;
        }
        args.maybe("--append-system-prompt-file", self.append_file.as_ref())?;
        if let Some(text) = &self.append_subagent {
            let (file, inline) = ("--append-subagent-system-prompt-file", "--append-subagent-system-prompt");
            args.file_or(file, inline, "prompt.md", text.clone());
        }
        Ok(())
    }

    pub(super) fn initialize(&self, hello: &mut Initialize) {
        hello.system_prompt = match &self.system {
            Some(SystemPrompt::Text(text)) => Some(vec![text.clone()]),
            Some(SystemPrompt::Blocks(blocks)) => Some(blocks.clone()),
            Some(SystemPrompt::File(_)) | None => None,
        };
        hello.append_system_prompt = self.append.clone();
        hello.exclude_dynamic_sections = self.exclude_dynamic_sections;
        hello.system_prompt_snapshot = self.snapshot;
        hello.plan_mode_instructions = self.plan_mode_instructions.clone();
        hello.json_schema = self.schema.clone();
    }
}
