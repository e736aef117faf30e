//! `wellspring bench`: the load tester on the command line.
//!
//! Everything that measures, judges and renders is in the crate `wellspring-load`;
//! here are the options, the files, and what a person sees meanwhile.

mod compare;
mod finish;
mod ladder;
mod live;
mod offline;
mod one;
mod options;
mod outcome;
pub(crate) mod quantity;
mod scenario;
mod search;
mod turns;
mod typed;
mod watch;

use crate::exit::Failure;
use std::process::ExitCode;

/// What `wellspring bench` takes.
#[derive(Debug, clap::Args)]
#[command(
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
pub struct BenchArgs {
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
    /// Show a folder of result files over time, with lasting changes
    History(offline::HistoryArgs),
    /// Convert result files: Markdown, HTML, CSV, ab's block, Prometheus
    Report(offline::ReportArgs),
    /// Make a scenario of curl, HAR or OpenAPI; read micro-benchmarks
    Import(offline::ImportArgs),
    /// Check this client against built-in servers of known behaviour
    SelfTest(offline::SelfTestArgs),
    /// Apply the checks to tables of a published report
    Audit(offline::AuditArgs),
}

/// Options that the short help has; the rest is in the long help.
pub(crate) const ESSENTIAL: [&str; 20] = [
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

/// Runs it to its end.
pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode, Failure> {
    match &args.what {
        None => one::run(&args.one),
        Some(BenchCommand::Ladder(args)) => ladder::run(args),
        Some(BenchCommand::Search(args)) => search::run(args),
        Some(BenchCommand::Scenario(args)) => scenario::run(args),
        Some(BenchCommand::Compare(args)) => compare::run(args),
        Some(BenchCommand::History(args)) => offline::history(args),
        Some(BenchCommand::Report(args)) => offline::report(args),
        Some(BenchCommand::Import(args)) => offline::import(args),
        Some(BenchCommand::SelfTest(args)) => offline::self_test(args),
        Some(BenchCommand::Audit(args)) => offline::audit(args),
    }
}
