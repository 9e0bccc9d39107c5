//! The user's `claude`, as the configuration may name it.

use std::path::PathBuf;

use oarlock_agent::{Error, program};

use crate::config::Config;
use crate::exit::Failure;

/// Finds the `claude` to start: the configured one, or else the one that [`program::find`] finds.
pub(crate) fn find(config: &Config) -> anyhow::Result<PathBuf> {
    let configured = &config.claude_program;
    let found = match &configured.value {
        Some(path) => program::named(&format!("claude.program ({})", configured.origin), path),
        None => program::find(),
    };
    found.map_err(|error| match error {
        Error::ProgramNotFound { .. } => Failure::not_found(format!(
            "{error} as claude.program in the configuration (`oarlock config path`)"
        )),
        error => Failure::not_found(error),
    })
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_program_that_is_not_there_is_exit_code_3_and_says_who_named_it() {
        let mut config = Config::default();
        config.claude_program.value = Some("/no/such/claude".into());
        let error = find(&config).unwrap_err();
        assert!(matches!(error.downcast_ref::<Failure>(), Some(Failure::NotFound(_))));
        assert!(error.to_string().starts_with("claude.program ("), "{error}");
    }
}
