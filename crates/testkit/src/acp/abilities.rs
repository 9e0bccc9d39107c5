//! What a client says it can do.

use serde_json::{Value, json};

/// The capabilities of a client, as `initialize` carries them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abilities {
    /// What Zed declares: files, terminals, boolean options, terminal output in `_meta`.
    Zed,
    /// Everything that version 1 has, and the drafts beside it.
    Full,
    /// Nothing.
    Bare,
}

impl Abilities {
    /// `clientCapabilities`.
    #[must_use]
    pub fn capabilities(self) -> Value {
        match self {
            Self::Zed => json!({
                "fs": {"readTextFile": true, "writeTextFile": true},
                "terminal": true,
                "auth": {"terminal": true},
                "session": {"configOptions": {"boolean": {}}},
                "_meta": {"terminal_output": true, "terminal-auth": true},
            }),
            Self::Full => json!({
                "fs": {"readTextFile": true, "writeTextFile": true},
                "terminal": true,
                "auth": {"terminal": true},
                "session": {"compaction": {}, "notices": {}, "configOptions": {"boolean": {}}},
                "elicitation": {"form": {}, "url": {}},
                "plan": {},
                "subagents": {},
                "_meta": {"terminal_output": true, "terminal-auth": true},
            }),
            Self::Bare => json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false}),
        }
    }

    /// Whether the capability at this path was declared: present, and not `false`.
    #[must_use]
    pub fn has(self, path: &[&str]) -> bool {
        let mut at = &self.capabilities();
        for name in path {
            at = &at[name];
        }
        !at.is_null() && at != &Value::Bool(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ability_is_there_unless_it_is_absent_or_false() {
        assert!(Abilities::Full.has(&["elicitation", "form"]));
        assert!(!Abilities::Zed.has(&["elicitation", "form"]));
        assert!(!Abilities::Bare.has(&["fs", "readTextFile"]));
        assert!(Abilities::Zed.has(&["session", "configOptions", "boolean"]));
    }
}
