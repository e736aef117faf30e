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
    after_help = "\
Without a rate, each of -c users sends its next request when the last was answered (closed loop): that answers \
\"how much\". With --rate, requests are due at times that do not depend on answers (open loop): that answers \"how \
long\". Every report ends with TRUSTED, USE WITH CARE or NOT MEASURABLE, and why.

Examples:
  wellspring bench http://127.0.0.1:4000/health
  wellspring bench -r 5000 -z 30s --fail-if 'p99>5ms' http://127.0.0.1:4000/health
  wellspring bench -c 64 -d '{\"events\":[{\"type\":\"T\",\"data\":{}}]}' http://127.0.0.1:4000/v1/append
  wellspring bench ladder -c 1,2,4,8,16,32,64 http://127.0.0.1:4000/health
  wellspring bench search --slo 'p99<10ms' http://127.0.0.1:4000/health

Exit codes: 0 done, 1 no request succeeded (or, with --strict, not TRUSTED), 64 or 2 usage, 65 bad data, \
66 no such file, 69 not reachable, 74 a file could not be written, 99 a threshold failed, 130 interrupted."
)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: Option<BenchCommand>,
    #[command(flatten)]
    one: one::OneArgs,
}

#[derive(Debug, clap::Subcommand)]
enum BenchCommand {
    /// The same request at several numbers of connections or users.
    Ladder(ladder::LadderArgs),
    /// The highest rate at which a condition still holds, e.g. --slo 'p99<10ms'.
    Search(search::SearchArgs),
    /// A scenario file: weighted steps, captured values, data files. Or makes one from curl, HAR or
    /// OpenAPI.
    Scenario(scenario::ScenarioArgs),
    /// Two result files, or two URLs measured in turns: what differs, and by how much.
    Compare(typed::Typed<compare::CompareArgs>),
    /// A folder of result files over time, with lasting changes.
    History(offline::HistoryArgs),
    /// Result files in another form: Markdown, HTML, CSV, ab's block, Prometheus, or one of five
    /// report forms.
    Report(offline::ReportArgs),
    /// A scenario from a curl command line, HAR or OpenAPI; micro-benchmarks from `go test -bench`
    /// or Criterion.
    Import(offline::ImportArgs),
    /// Runs the client against built-in servers of known behaviour; fails if a figure is wrong.
    SelfTest(offline::SelfTestArgs),
    /// Applies the checks to tables of a published report, entered by hand.
    Audit(offline::AuditArgs),
}

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
