//! The command line, and which form of the load tester runs.

use crate::exit::{Code, Failure};
use crate::{called, compare, help, ladder, manual, offline, one, scenario, search, typed};
use clap::{CommandFactory as _, FromArgMatches as _};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Load-test any HTTP service and judge whether the figures can be trusted
#[derive(Debug, clap::Parser)]
#[command(
    name = "wellspring-bench",
    version,
    args_conflicts_with_subcommands = true,
    after_long_help = "\
Without a rate, each of -c users sends its next request when the last was answered (closed loop): that answers \
\"how much\". With --rate, requests are due at times that do not depend on answers (open loop): that answers \"how \
long\". Every report ends with TRUSTED, USE WITH CARE or NOT MEASURABLE, and why.

Examples:
  wellspring bench http://127.0.0.1:4000/health
  wellspring bench -r 5000 -z 30s --fail-if 'p99>5ms' http://127.0.0.1:4000/health
  wellspring bench -c 64 -d @append.json http://127.0.0.1:4000/v1/append
  wellspring bench ladder -c 1,2,4,8,16,32,64 http://127.0.0.1:4000/health
  wellspring bench search --slo 'p99<10ms' http://127.0.0.1:4000/health

Exits with 1 if no request succeeded (with --strict: unless TRUSTED), 99 if a threshold failed."
)]
struct Line {
    #[command(subcommand)]
    what: Option<BenchCommand>,
    #[command(flatten)]
    one: one::OneArgs,
}

#[derive(Debug, clap::Subcommand)]
enum BenchCommand {
    /// Send the same request at several numbers of connections or users
    Ladder(ladder::LadderArgs),
    /// Find the highest rate at which a condition holds
    Search(search::SearchArgs),
    /// Run a scenario file: weighted steps, captured values, data files
    Scenario(scenario::ScenarioArgs),
    /// Compare two result files, or two URLs measured in turns, also with a scenario
    Compare(typed::Typed<compare::CompareArgs>),
    /// Convert result files: Markdown, HTML, ab's block
    Report(offline::ReportArgs),
    /// Make a scenario of a curl command line; read micro-benchmarks
    Import(offline::ImportArgs),
    /// Check this client against built-in servers of known behaviour
    SelfTest(offline::SelfTestArgs),
    /// Apply the checks to tables of a published report
    Audit(offline::AuditArgs),
    /// Print a completion script for a shell
    #[command(hide = true)] // for packages; the short help is a screen without them
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one for each form
    #[command(hide = true)]
    Man {
        /// Directory to write to; must exist
        dir: PathBuf,
    },
}

/// Options that the short help has; the rest is in the long help.
const ESSENTIAL: [&str; 20] = [
    "url",
    "file",
    "files",
    "a",
    "b",
    "connections",
    "rate",
    "users",
    "slo",
    "pairs",
    "data",
    "requests",
    "duration",
    "fail_if",
    "json",
    "form",
    "format",
    "output",
    "fail_if_slower",
    "check",
];

/// The command line as people see it.
fn command_line() -> clap::Command {
    help::finished(Line::command(), &ESSENTIAL)
}

/// Runs the command line and returns the exit code.
pub(crate) fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let line = command_line().bin_name(called::name());
    let matches = match line.try_get_matches_from(&words) {
        Ok(matches) => matches,
        Err(error) => return ended_by(&error),
    };
    match Line::from_arg_matches(&matches) {
        Ok(line) => run(&line).unwrap_or_else(|failure| failure.report()),
        Err(error) => ended_by(&error),
    }
}

/// What clap says instead of running a form: a help that was asked for, or what is wrong.
fn ended_by(message: &clap::Error) -> ExitCode {
    // Nothing is left to be told where it cannot be told.
    let _ = message.print();
    if message.use_stderr() { ExitCode::from(Code::Usage as u8) } else { ExitCode::SUCCESS }
}

fn run(line: &Line) -> Result<ExitCode, Failure> {
    match &line.what {
        None => one::run(&line.one),
        Some(BenchCommand::Ladder(args)) => ladder::run(args),
        Some(BenchCommand::Search(args)) => search::run(args),
        Some(BenchCommand::Scenario(args)) => scenario::run(args),
        Some(BenchCommand::Compare(args)) => compare::run(args),
        Some(BenchCommand::Report(args)) => offline::report(args),
        Some(BenchCommand::Import(args)) => offline::import(args),
        Some(BenchCommand::SelfTest(args)) => offline::self_test(args),
        Some(BenchCommand::Audit(args)) => offline::audit(args),
        Some(BenchCommand::Completions { shell }) => manual::completions(*shell, command_line()),
        Some(BenchCommand::Man { dir }) => manual::pages(dir, command_line()),
    }
}
