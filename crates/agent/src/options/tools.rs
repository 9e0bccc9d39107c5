//! What the model has to work with: tools, skills, subagents, and who is asked about them.

use std::collections::BTreeMap;

use super::args::Args;
use super::word::word;
use super::{Options, refuse, strings};
use crate::Error;
use crate::stream::{AgentDefinition, Initialize, PermissionMode};

/// The options of this file.
#[derive(Clone, Default)]
pub(super) struct Tools {
    base: Option<Vec<String>>,
    allowed: Vec<String>,
    disallowed: Vec<String>,
    aliases: BTreeMap<String, String>,
    skills: Option<Skills>,
    agent: Option<String>,
    agents: BTreeMap<String, AgentDefinition>,
    mode: Option<PermissionMode>,
    allow_bypass: bool,
    prompt_tool: Option<String>,
    prompts: Option<PermissionPrompts>,
}

#[derive(Clone)]
enum Skills {
    All,
    Only(Vec<String>),
}

word! {
    /// Who answers when a tool needs a decision.
    pub enum PermissionPrompts {
        /// This program, or the tool of `permission_prompt_tool`.
        Host = "host",
        /// Nobody: what would ask is refused at once, and the model is told so.
        None = "none",
    }

    /// How the model writes the previews of the answers it offers.
    pub enum QuestionPreview {
        /// As Markdown.
        Markdown = "markdown",
        /// As HTML fragments.
        Html = "html",
    }
}

impl Options {
    /// The built-in tools that there are (`--tools`); an empty list is no tool at all. Without it there are the default
    /// ones, for which the name `default` stands, too.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools.base = Some(strings(tools));
        self
    }

    /// Tools, or uses of tools, that nobody is asked about: `Read`, `Bash(git log *)`, `mcp__db__query`
    /// (`--allowedTools`). What is allowed here never reaches `can_use_tool`.
    #[must_use]
    pub fn allowed_tools(mut self, rules: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools.allowed.extend(strings(rules));
        self
    }

    /// Tools that are taken away, or uses of tools that are refused: `WebFetch`, `Bash(rm *)` (`--disallowedTools`).
    #[must_use]
    pub fn disallowed_tools(mut self, rules: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools.disallowed.extend(strings(rules));
        self
    }

    /// Another tool for a name that the model may use (`initialize.toolAliases`): `Bash` → `mcp__sandbox__bash`.
    #[must_use]
    pub fn tool_alias(mut self, name: impl Into<String>, tool: impl Into<String>) -> Self {
        self.tools.aliases.insert(name.into(), tool.into());
        self
    }

    /// The skills that the model is told of and may use unasked (`initialize.skills`, and `--allowedTools=Skill(NAME)`
    /// for each). An empty list hides them all.
    #[must_use]
    pub fn skills(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools.skills = Some(Skills::Only(strings(names)));
        self
    }

    /// All skills that there are may be used unasked (`--allowedTools=Skill`).
    #[must_use]
    pub fn all_skills(mut self) -> Self {
        self.tools.skills = Some(Skills::All);
        self
    }

    /// The agent that leads the conversation, with its prompt, tools and model (`--agent`). It is one of
    /// [`agent_definition`](Self::agent_definition), or of the user's own.
    #[must_use]
    pub fn agent(mut self, name: impl Into<String>) -> Self {
        self.tools.agent = Some(name.into());
        self
    }

    /// A subagent (`initialize.agents`).
    #[must_use]
    pub fn agent_definition(mut self, name: impl Into<String>, agent: AgentDefinition) -> Self {
        self.tools.agents.insert(name.into(), agent);
        self
    }

    /// Who decides about tools, at the start (`--permission-mode`). `manual` is written as `default`, the word that all
    /// CLIs know.
    #[must_use]
    pub fn permission_mode(mut self, mode: impl Into<PermissionMode>) -> Self {
        self.tools.mode = Some(match mode.into() {
            PermissionMode::Other(word) if word == "manual" => PermissionMode::Default,
            mode => mode,
        });
        self
    }

    /// Lets the session change to `bypassPermissions` later (`--allow-dangerously-skip-permissions`). The CLI refuses to
    /// start with it as root.
    #[must_use]
    pub fn allow_bypass_permissions(mut self, allow: bool) -> Self {
        self.tools.allow_bypass = allow;
        self
    }

    /// The MCP tool that decides about tools, in place of `can_use_tool` (`--permission-prompt-tool`).
    #[must_use]
    pub fn permission_prompt_tool(mut self, tool: impl Into<String>) -> Self {
        self.tools.prompt_tool = Some(tool.into());
        self
    }

    /// Who answers when a tool needs a decision (`--permission-prompts`; 2.1.197 does not know it, and refuses
    /// whatever needs one when there is neither `can_use_tool` nor `permission_prompt_tool`).
    #[must_use]
    pub fn permission_prompts(mut self, who: impl Into<PermissionPrompts>) -> Self {
        self.tools.prompts = Some(who.into());
        self
    }

    /// How the model writes the previews of the answers it offers (variable `CLAUDE_CODE_QUESTION_PREVIEW_FORMAT`).
    #[must_use]
    pub fn question_preview(self, format: impl Into<QuestionPreview>) -> Self {
        self.env("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT", format.into().as_str())
    }
}

impl Tools {
    pub(super) fn arguments(&self, args: &mut Args, prompts_host: bool) -> Result<(), Error> {
        match self.base.as_deref() {
            None => {}
            Some([]) => args.value_or_empty("--tools", "")?,
            Some(tools) => args.each("--tools", tools)?,
        }
        args.each("--allowedTools", &self.allowed)?;
        match &self.skills {
            None => {}
            Some(Skills::All) => args.value("--allowedTools", "Skill")?,
            Some(Skills::Only(names)) => {
                for name in names {
                    check_skill(name)?;
                    args.value("--allowedTools", format!("Skill({name})"))?;
                }
            }
        }
        args.each("--disallowedTools", &self.disallowed)?;
        args.maybe("--agent", self.agent.as_ref())?;
        args.maybe("--permission-mode", self.mode.as_ref().map(PermissionMode::as_str))?;
        args.switch("--allow-dangerously-skip-permissions", self.allow_bypass);
        match &self.prompt_tool {
            Some(_) if prompts_host => {
                return refuse("permission_prompt_tool", "can_use_tool decides already; keep one of the two");
            }
            Some(tool) => args.value("--permission-prompt-tool", tool)?,
            None if prompts_host => args.value("--permission-prompt-tool", "stdio")?,
            None => {}
        }
        args.maybe("--permission-prompts", self.prompts.as_ref().map(PermissionPrompts::as_str))
    }

    pub(super) fn initialize(&self, hello: &mut Initialize) {
        hello.tool_aliases = (!self.aliases.is_empty()).then(|| self.aliases.clone());
        hello.agents = (!self.agents.is_empty()).then(|| self.agents.clone());
        hello.skills = match &self.skills {
            Some(Skills::Only(names)) => Some(names.clone()),
            Some(Skills::All) | None => None,
        };
    }

    /// Tools that are allowed whatever they do: `can_use_tool` is not asked about them.
    pub(super) fn unasked(&self) -> impl Iterator<Item = &str> {
        self.allowed.iter().map(String::as_str).filter(|rule| !rule.contains('('))
    }
}

/// A skill's name is written into a rule, so it must not be able to end that rule or to mean others.
fn check_skill(name: &str) -> Result<(), Error> {
    let reason = if name.is_empty() || name.trim() != name || name.contains('\u{feff}') {
        "has blanks around it, or is nothing else"
    } else if name.contains(|c: char| matches!(c, '(' | ')' | ',' | '*' | '\\') || c.is_control()) {
        "holds a character that no skill's name has: ( ) , * \\ or a control character"
    } else if name.starts_with('/') {
        "begins with / as a command does; a skill is named without it"
    } else {
        return Ok(());
    };
    refuse("skills", format!("the name {name:?} {reason}"))
}
