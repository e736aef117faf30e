//! How the user called the program: by its name, or as a command of `wellspring`.

use std::ffi::OsStr;

/// What the program is called when `wellspring bench` hands over to it.
const AS_COMMAND: &str = "wellspring bench";

/// What the user typed, for lines of usage.
pub(crate) fn name() -> &'static str {
    if is_command() { AS_COMMAND } else { "wellspring-bench" }
}

/// Says one sentence on standard error, after the name of the program that the user called.
pub(crate) fn complain(sentence: &str) {
    let program = if is_command() { "wellspring" } else { "wellspring-bench" };
    eprintln!("{program}: {sentence}");
}

fn is_command() -> bool {
    std::env::args_os().next().as_deref() == Some(OsStr::new(AS_COMMAND))
}
