//! What other programs make of the command line as it is declared: completions of shells, and
//! manual pages.

use clap::Command;
use clap_complete::Shell;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use wellspring_cli::Failure;

/// Writes the script by which a shell completes the command line to standard output.
pub(crate) fn completions(shell: Shell, mut line: Command) -> ExitCode {
    let name = line.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut line, name, &mut script);
    let mut out = io::stdout().lock();
    ended("standard output", out.write_all(&script).and_then(|()| out.flush()))
}

/// Writes a page for each command into a folder that is there.
pub(crate) fn pages(dir: &Path, line: Command) -> ExitCode {
    ended(&dir.display().to_string(), clap_mangen::generate_to(in_full(line), dir))
}

/// A page has all options, with their texts, not those of the short help alone.
fn in_full(command: Command) -> Command {
    command.mut_args(|argument| argument.hide_short_help(false)).mut_subcommands(in_full)
}

fn ended(name: &str, written: io::Result<()>) -> ExitCode {
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Failure::output(name, &error).report(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_page_for_every_command() {
        let dir = tempfile::tempdir().unwrap();
        pages(dir.path(), crate::command_line());
        let page = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(page("wellspring.1").contains("wellspring\\-import(1)"));
        assert!(page("wellspring-user-add.1").contains("password"));
        let serve = page("wellspring-serve.1");
        for text in ["Maximum number of connections", "WELLSPRING_LISTEN", "Exit codes:"] {
            assert!(serve.contains(text), "{text}");
        }
    }

    #[test]
    fn scripts_complete_commands_and_flags() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut crate::command_line(), "wellspring", &mut script);
            let script = String::from_utf8(script).unwrap();
            for word in ["import", "skip-invalid", "cloudevents"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }
}
