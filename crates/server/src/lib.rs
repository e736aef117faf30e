//! The `wellspring` program: the shell around the log, with every effect.
//!
//! A library, so that other programs can add faces ([`embed`]) and fuzz targets reach the parsers;
//! `main.rs` calls [`main`].

#![forbid(unsafe_code)]

#[macro_use] // its eprintln, which no closed standard error can make panic
extern crate wellspring_host;

mod config;
pub mod embed;
mod faces;
mod flags;
mod journal;
mod manual;
#[cfg(feature = "fuzzing")]
pub mod parsers;
mod start;
mod variables;

use clap::{Args as _, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Wellspring: an event store with dynamic consistency boundaries
#[derive(Debug, Parser)]
#[command(
    name = "wellspring",
    version,
    after_help = "`wellspring help COMMAND` explains a command, `wellspring COMMAND -h` lists its options.",
    after_long_help = "\
`wellspring help COMMAND` explains a command, `wellspring COMMAND -h` lists its options.
NO_COLOR=1 turns colours off."
)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

// Read once at start; its size does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server: everything on one port
    #[command(
        after_help = "More settings: `wellspring help serve`.",
        after_long_help = "\
Each setting comes from its flag, else from its environment variable, else from the file named by \
--config, else it is the default. --print-config shows the result. The server warns of variables \
that begin with WELLSPRING_ and have no meaning.

The server exits with 0 after SIGTERM or Ctrl-C, and with 1 if it cannot start or cannot go on."
    )]
    Serve(config::ServeArgs),
    #[command(flatten)]
    Tool(wellspring_cli::Tool),
    /// Print a completion script for a shell
    #[command(after_long_help = "\
Examples:
  wellspring completions bash > /etc/bash_completion.d/wellspring
  wellspring completions zsh > \"${fpath[1]}/_wellspring\"
  wellspring completions fish > ~/.config/fish/completions/wellspring.fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one for each command
    #[command(after_long_help = "\
Example:
  wellspring man /usr/local/share/man/man1")]
    Man {
        /// Directory to write to; must exist
        dir: PathBuf,
    },
}

/// As [`main`], with these faces in addition to the program's own.
#[must_use]
pub fn main_with(faces: Vec<embed::EmbeddedFace>) -> ExitCode {
    faces::embed(faces);
    main()
}

/// Runs the command line and returns the exit code.
#[must_use]
pub fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let unknown = || {
        let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        variables::unknown(Line::command, set)
    };
    if let Some(args) = serve_alone(&words) {
        return start::run(args, &unknown());
    }
    let matches = match command_line().try_get_matches_from(&words) {
        Ok(matches) => matches,
        Err(error) => {
            let error = variables::named(error, &command_line(), &words);
            return ended_by(&flags::respelled(error, &mut command_line(), &words));
        }
    };
    let line = match Line::from_arg_matches(&matches) {
        Ok(line) => line,
        Err(error) => return ended_by(&error),
    };
    let mut command = command_line();
    command.build();
    let origins = wellspring_host::settings::Origins::of(&command, &matches);
    match line.command {
        Command::Serve(args) => start::run(args.with_origins(origins), &unknown()),
        Command::Tool(tool) => {
            if tool.reads_variables() {
                unknown().iter().for_each(|warning| eprintln!("wellspring: {warning}"));
            }
            wellspring_cli::run(tool, &origins)
        }
        Command::Completions { shell } => manual::completions(shell, command_line()),
        Command::Man { dir } => manual::pages(&dir, command_line()),
    }
}

/// The arguments of `wellspring serve`, if that is the command and nothing is wrong with it. The
/// whole command line is for help, mistakes and tools: a server that starts does not pay for it.
fn serve_alone(words: &[OsString]) -> Option<config::ServeArgs> {
    let words = words.get(1..).filter(|words| words.first().is_some_and(|word| word == "serve"))?;
    let mut command = config::ServeArgs::augment_args(clap::Command::new("serve"));
    let matches = command.try_get_matches_from_mut(words).ok()?;
    let args = config::ServeArgs::from_arg_matches(&matches).ok()?;
    Some(args.with_origins(wellspring_host::settings::Origins::of(&command, &matches)))
}

/// What clap says instead of running a command: a help that was asked for, or what is wrong.
fn ended_by(message: &clap::Error) -> ExitCode {
    // Nothing is left to be told where it cannot be told.
    let _ = message.print();
    if message.use_stderr() { ExitCode::from(wellspring_cli::USAGE) } else { ExitCode::SUCCESS }
}

fn command_line() -> clap::Command {
    let line = Line::command().mut_subcommand("serve", config::with_defaults_shown);
    wellspring_cli::help::finished(line)
}

#[cfg(test)]
mod tests {
    use clap::{Command, Parser as _};

    /// Most lines of a short help: a screen. Most columns of any help.
    const SHORT_LINES: usize = 40;
    const COLUMNS: usize = 80;

    #[test]
    fn serve_alone_reads_as_the_whole_line_and_leaves_help_and_mistakes_to_it() {
        let alone = |words: &str| {
            let words: Vec<_> = words.split(' ').map(std::ffi::OsString::from).collect();
            super::serve_alone(&words)
        };
        let line = "wellspring serve --data d --listen 127.0.0.1:5";
        let args = alone(line).expect("it serves");
        let whole = super::Line::try_parse_from(line.split(' ')).expect("it serves");
        let super::Command::Serve(whole) = whole.command else { panic!("it serves") };
        let settings = |args: &super::config::ServeArgs| {
            format!("{args:?}").split("origins").next().map(str::to_owned)
        };
        assert_eq!(settings(&args), settings(&whole));
        assert!(format!("{args:?}").contains("\"listen\": Flag"), "{args:?}");
        for other in ["", " backup", " help serve", " serve -h", " serve --help", " serve --no"] {
            assert!(alone(&format!("wellspring{other}")).is_none(), "{other}");
        }
    }

    #[test]
    fn the_command_line_makes_sense() {
        super::command_line().debug_assert();
    }

    /// Calls `look` with every command and the words that lead to it.
    fn walk(command: &mut Command, path: &str, look: &mut dyn FnMut(&str, &mut Command)) {
        look(path, command);
        for below in command.get_subcommands_mut() {
            let path = format!("{path} {}", below.get_name());
            walk(below, &path, look);
        }
    }

    fn every_command(mut look: impl FnMut(&str, &mut Command)) {
        let mut line = super::command_line();
        line.build();
        let mut count = 0;
        walk(&mut line, "wellspring", &mut |path, command| {
            if path.contains(" help") {
                return;
            }
            count += 1;
            look(path, command);
        });
        assert!(count > 50, "{count} commands");
    }

    #[test]
    fn every_short_help_fits_a_screen() {
        let mut faults = Vec::new();
        every_command(|path, command| {
            let help = command.render_help().to_string();
            if help.lines().count() > SHORT_LINES {
                faults.push(format!("{path}: {} lines", help.lines().count()));
            }
            let wide = help.lines().filter(|line| line.chars().count() > COLUMNS);
            faults.extend(wide.map(|line| format!("{path}: {line}")));
        });
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn every_long_help_fits_the_width_and_names_the_exit_codes() {
        let mut faults = Vec::new();
        every_command(|path, command| {
            let help = command.render_long_help().to_string();
            if !help.contains("\nExit codes:\n    0  success\n") {
                faults.push(format!("{path}: no exit codes"));
            }
            let wide = help.lines().filter(|line| line.chars().count() > COLUMNS);
            faults.extend(wide.map(|line| format!("{path}: {line}")));
        });
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn every_command_and_option_is_described_in_the_short_help() {
        let mut faults = Vec::new();
        every_command(|path, command| {
            if command.get_about().is_none() {
                faults.push(path.to_owned());
            }
            let silent =
                command.get_arguments().filter(|a| a.get_help().is_none() && !a.is_hide_set());
            faults.extend(silent.map(|argument| format!("{path} {}", argument.get_id())));
        });
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
