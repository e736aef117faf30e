//! The tools beside the server.

use std::process::ExitCode;

/// The tools of the command line.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Tool {}

/// Runs one tool.
pub(crate) fn run(tool: Tool) -> ExitCode {
    match tool {}
}
