//! Permissions: rules, changes to them, and decisions.

use super::Json;
use super::control::PermissionMode;
use super::macros::{record, tagged, word};

tagged! {
    /// A change to the permission rules: a suggestion of the CLI's, or part of a host's answer.
    pub enum PermissionUpdate by "type" {
        /// Rules are added.
        "addRules" => AddRules(RulesUpdate),
        /// Rules take the place of all others of their kind.
        "replaceRules" => ReplaceRules(RulesUpdate),
        /// Rules are taken away.
        "removeRules" => RemoveRules(RulesUpdate),
        /// Another mode.
        "setMode" => SetMode(ModeUpdate),
        /// More directories.
        "addDirectories" => AddDirectories(DirectoriesUpdate),
        /// Fewer directories.
        "removeDirectories" => RemoveDirectories(DirectoriesUpdate),
    }
}

record! {
    /// Rules and where they are kept.
    pub struct RulesUpdate {
        rules: Vec<PermissionRule>,
        behavior: PermissionBehavior,
        destination: PermissionDestination,
    }

    /// A mode and where it is kept.
    pub struct ModeUpdate {
        mode: PermissionMode,
        destination: PermissionDestination,
    }

    /// Directories and where they are kept.
    pub struct DirectoriesUpdate {
        directories: Vec<String>,
        destination: PermissionDestination,
    }

    /// A rule, `Bash(npm install *)`.
    pub struct PermissionRule {
        tool_name = "toolName": String,
        /// What is in the brackets.
        rule_content = "ruleContent": Option<String>,
    }

    /// The tool may run.
    pub struct Allow {
        /// The whole input. CLIs before 2.1.325 insist on it, so send it always.
        updated_input = "updatedInput": Option<Json>,
        updated_permissions = "updatedPermissions": Option<Vec<PermissionUpdate>>,
        tool_use_id = "toolUseID": Option<String>,
        decision_classification = "decisionClassification": Option<DecisionClassification>,
    }

    /// The tool may not run.
    pub struct Deny {
        /// What the model reads.
        message: String,
        /// End the turn; the model reads nothing then.
        interrupt: Option<bool>,
        tool_use_id = "toolUseID": Option<String>,
        decision_classification = "decisionClassification": Option<DecisionClassification>,
    }
}

tagged! {
    /// The answer to `can_use_tool`, and the decision of a `PermissionRequest` hook.
    ///
    /// ```
    /// use oarlock_proto::stream::PermissionResult;
    ///
    /// let answer = serde_json::to_string(&PermissionResult::deny("not today")).expect("plain data");
    /// assert_eq!(answer, r#"{"behavior":"deny","message":"not today"}"#);
    /// ```
    pub enum PermissionResult by "behavior" {
        /// Yes.
        "allow" => Allow(Allow),
        /// No.
        "deny" => Deny(Deny),
    }
}

impl PermissionResult {
    /// Yes, with this input.
    #[must_use]
    pub fn allow(input: impl Into<Json>) -> Self {
        Self::Allow(Allow { updated_input: Some(input.into()), ..Default::default() })
    }

    /// No, and why.
    #[must_use]
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny(Deny { message: message.into(), ..Default::default() })
    }
}

word! {
    /// What a rule does.
    pub enum PermissionBehavior {
        /// The tool may run.
        Allow = "allow",
        /// It may not.
        Deny = "deny",
        /// Somebody is asked.
        Ask = "ask",
    }

    /// Where a rule is kept.
    pub enum PermissionDestination {
        /// The user's settings.
        UserSettings = "userSettings",
        /// The project's settings, shared.
        ProjectSettings = "projectSettings",
        /// The project's settings, private.
        LocalSettings = "localSettings",
        /// This session.
        Session = "session",
        /// The command line.
        CliArg = "cliArg",
    }

    /// How long a decision shall count.
    pub enum DecisionClassification {
        /// Once.
        UserTemporary = "user_temporary",
        /// Ever after.
        UserPermanent = "user_permanent",
        /// It was a no.
        UserReject = "user_reject",
    }
}
