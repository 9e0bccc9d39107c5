//! The user's `claude`, as the configuration may name it.

use std::path::PathBuf;

use oarlock_agent::{Error, program};

use crate::config::{Config, Origin};
use crate::exit::Failure;

/// Finds the `claude` to start: our own variable's, the one of the variable that other programs have too, the one of the
/// configuration file, or else the one that [`program::find`] finds.
pub(crate) fn locate(config: &Config) -> Result<PathBuf, Error> {
    let configured = &config.claude_program;
    let is_file = !matches!(configured.origin, Origin::Environment { .. } | Origin::Flag);
    let other = std::env::var_os(program::VARIABLE).is_some_and(|value| !value.is_empty());
    match &configured.value {
        Some(path) if !(is_file && other) => {
            program::named(&format!("claude.program ({})", configured.origin), path)
        }
        _ => program::find(),
    }
}

/// [`locate`], with the exit code for a program that is not there.
pub(crate) fn find(config: &Config) -> anyhow::Result<PathBuf> {
    locate(config).map_err(|error| match error {
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
