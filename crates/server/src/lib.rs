//! The `wellspring` program: the shell around the log, with every effect.
//!
//! A library so that other programs can add faces of their own ([`embed`]) and the fuzz targets
//! reach the parsers; `main.rs` calls [`main`].

#![forbid(unsafe_code)]

#[macro_use] // its eprintln, which no closed standard error can make panic
extern crate wellspring_host;

mod config;
pub mod embed;
mod faces;
mod flags;
mod journal;
mod nearest;
#[cfg(feature = "fuzzing")]
pub mod parsers;
mod start;
mod variables;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::process::ExitCode;

/// Wellspring: an event store with dynamic consistency boundaries
#[derive(Debug, Parser)]
#[command(name = "wellspring", version)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

// Read once at start; its size is of no account.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Subcommand)]
enum Command {
    /// Serves everything on one port.
    #[command(after_help = "Each setting is taken from the flag, or else from the variable, or \
                            else from the file of --config, or else it is the
default. \
                            --print-config shows what comes of it. The server warns of unknown \
                            variables that begin with WELLSPRING_.

Exit codes: 0 stopped by \
                            SIGTERM or Ctrl-C, 1 cannot start or cannot go on, 2 usage.")]
    Serve(config::ServeArgs),
    #[command(flatten)]
    Tool(wellspring_cli::Tool),
}

/// As [`main`], with these faces besides the program's own.
#[must_use]
pub fn main_with(faces: Vec<embed::EmbeddedFace>) -> ExitCode {
    faces::embed(faces);
    main()
}

/// Runs the command line and returns the exit code.
#[must_use]
pub fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let matches = command_line().try_get_matches_from(&words).unwrap_or_else(|error| {
        let error = variables::named(error, &command_line(), &words);
        flags::respelled(error, &mut command_line(), &words).exit()
    });
    let line = Line::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let mut command = command_line();
    command.build();
    let origins = wellspring_host::settings::Origins::of(&command, &matches);
    let unknown = || {
        let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        variables::unknown(&Line::command(), set)
    };
    match line.command {
        Command::Serve(args) => start::run(args.with_origins(origins), &unknown()),
        Command::Tool(tool) => {
            if tool.reads_variables() {
                unknown().iter().for_each(|warning| eprintln!("wellspring: {warning}"));
            }
            wellspring_cli::run(tool, &origins)
        }
    }
}

fn command_line() -> clap::Command {
    wellspring_cli::help::with_exit_codes(Line::command())
}

#[cfg(test)]
mod tests {

    #[test]
    fn the_command_line_makes_sense() {
        super::command_line().debug_assert();
    }

    #[test]
    fn every_help_names_exit_codes() {
        fn check(command: &clap::Command, path: &str, without: &mut Vec<String>) {
            let path = format!("{path} {}", command.get_name());
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            if !help.contains("Exit codes:") {
                without.push(path.clone());
            }
            command.get_subcommands().for_each(|command| check(command, &path, without));
        }
        let mut without = Vec::new();
        check(&super::command_line(), "", &mut without);
        assert_eq!(without, [" wellspring"]);
    }
}
