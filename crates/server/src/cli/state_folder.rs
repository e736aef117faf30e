//! Where the tools keep what they remember from one command to the next.

use std::env;
use std::path::PathBuf;

/// The folder for one kind of it, e.g. `logins`; it may not exist yet. `None`: the environment names no
/// place. State, not configuration: people put their configuration under version control.
pub(crate) fn of(kind: &str) -> Option<PathBuf> {
    // A path that is not absolute is to be ignored, says the specification.
    let absolute =
        |variable: &str| env::var_os(variable).map(PathBuf::from).filter(|p| p.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local").join("state")))?;
    Some(state.join("wellspring").join(kind))
}
