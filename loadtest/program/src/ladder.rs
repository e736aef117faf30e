//! `wellspring bench ladder`: the same request at several numbers of connections or users.

use crate::exit::Failure;
use crate::finish::Shared;
use crate::options::{Offer, plan};
use crate::quantity::{crowd, think_us};
use std::process::ExitCode;
use wellspring_load::driver::PlannedStep;
use wellspring_load::plan::Arrivals;

#[derive(Debug, clap::Args)]
pub(crate) struct LadderArgs {
    /// What to ask.
    url: String,
    /// Numbers of connections, one step each, e.g. 1,2,4,8.
    #[arg(short = 'c', long, value_name = "N,N,…", value_delimiter = ',',
        value_parser = crowd)]
    connections: Vec<u32>,
    /// Numbers of users who think between their requests, one step each.
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', conflicts_with = "connections",
        value_parser = crowd)]
    users: Vec<u32>,
    /// How long a user thinks: a time or a range.
    #[arg(long, value_name = "TIME..TIME", requires = "users", value_parser = think_us)]
    think: Option<(u64, u64)>,
    #[command(flatten)]
    shared: Shared,
}

pub(crate) fn run(args: &LadderArgs) -> Result<ExitCode, Failure> {
    if args.connections.is_empty() && args.users.is_empty() {
        return Err(Failure::usage(
            "say which rungs: -c 1,2,4,8 for connections, or --users 1,20,100 --think 10ms..50ms",
        ));
    }
    let thresholds = args.shared.finish.thresholds()?;
    let target = args.shared.connection.target(&args.url)?;
    let source = args.shared.request.source(&target, &args.shared.connection)?;
    let (rungs, label) =
        if args.users.is_empty() { (&args.connections, "c") } else { (&args.users, "users") };
    let mut planned = Vec::new();
    for rung in rungs {
        let offer = Offer {
            connections: Some(*rung),
            rate_per_s: None,
            arrivals: Arrivals::Constant,
            think_us: args.think.unwrap_or((0, 0)),
        };
        let name = format!("{label}={rung}");
        if planned.iter().any(|step: &PlannedStep| step.name == name) {
            return Err(Failure::usage(format!("{rung} is given twice")));
        }
        let plan =
            plan(&target, source.clone(), offer, &args.shared.connection, &args.shared.length)?;
        planned.push(PlannedStep { name, plan });
    }
    let mut session = args.shared.begin(&planned[0].plan)?;
    let steps = session.steps(&planned, 1..=args.shared.length.repeat)?;
    session.end(steps, None, &args.shared.finish, &thresholds)
}
