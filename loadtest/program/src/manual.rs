//! What other programs make of the command line as it is declared: completions of shells, and
//! manual pages.

use crate::exit::Failure;
use clap::Command;
use clap_complete::Shell;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

/// Writes the script by which a shell completes the command line to standard output.
pub(crate) fn completions(shell: Shell, mut line: Command) -> Result<ExitCode, Failure> {
    let name = line.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut line, name, &mut script);
    let mut out = io::stdout().lock();
    ended("standard output", out.write_all(&script).and_then(|()| out.flush()))
}

/// Writes a page for each command into a folder that is there.
pub(crate) fn pages(dir: &Path, line: Command) -> Result<ExitCode, Failure> {
    ended(&dir.display().to_string(), clap_mangen::generate_to(in_full(line), dir))
}

/// A page has all options, with their texts, not those of the short help alone.
fn in_full(command: Command) -> Command {
    command.mut_args(|argument| argument.hide_short_help(false)).mut_subcommands(in_full)
}

fn ended(name: &str, written: io::Result<()>) -> Result<ExitCode, Failure> {
    written.map(|()| ExitCode::SUCCESS).map_err(|error| Failure::output(name, &error))
}
