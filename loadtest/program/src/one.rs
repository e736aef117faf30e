//! `wellspring bench URL`: one request, one load.

use crate::exit::Failure;
use crate::finish::Shared;
use crate::options::{Offer, plan, rate};
use crate::quantity::crowd;
use std::process::ExitCode;
use wellspring_load::driver::PlannedStep;
use wellspring_load::plan::Arrivals;

/// How an open loop spreads its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Spread {
    /// Evenly.
    Constant,
    /// With exponential gaps, as many independent callers would.
    Poisson,
}

impl From<Spread> for Arrivals {
    fn from(spread: Spread) -> Arrivals {
        match spread {
            Spread::Constant => Arrivals::Constant,
            Spread::Poisson => Arrivals::Poisson,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct OneArgs {
    /// What to ask.
    url: Option<String>,
    /// Connections; without a rate also the number of users (default 16, with a rate 128).
    #[arg(short = 'c', long, value_name = "N", value_parser = crowd)]
    connections: Option<u32>,
    /// Requests a second, due at times that do not depend on answers (open loop).
    #[arg(short = 'r', long, value_name = "RATE", value_parser = rate)]
    rate: Option<f64>,
    /// How the requests of --rate are spread.
    #[arg(long, value_enum, default_value_t = Spread::Constant, requires = "rate")]
    arrivals: Spread,
    #[command(flatten)]
    shared: Shared,
}

pub(crate) fn run(args: &OneArgs) -> Result<ExitCode, Failure> {
    let url = args.url.as_deref().ok_or_else(|| {
        Failure::usage("say what to ask: wellspring bench URL (or see wellspring bench --help)")
    })?;
    if !url.contains(['.', ':', '/']) && url != "localhost" {
        return Err(Failure::usage(format!(
            "{url:?} is neither a URL nor one of: ladder, search, scenario, compare, report, \
             import, self-test, audit (a host alone is written {url}:80)"
        )));
    }
    let thresholds = args.shared.finish.thresholds()?;
    let target = args.shared.connection.target(url)?;
    let source = args.shared.request.source(&target, &args.shared.connection)?;
    let offer = Offer {
        connections: args.connections,
        rate_per_s: args.rate,
        arrivals: args.arrivals.into(),
        think_us: (0, 0),
    };
    let plan = plan(&target, source, offer, &args.shared.connection, &args.shared.length)?;
    let name = match args.rate {
        Some(rate) => format!("{rate}/s"),
        None => format!("c={}", plan.settings.connections),
    };
    let mut session = args.shared.begin(&plan)?;
    let steps = session.steps(&[PlannedStep { name, plan }], 1..=args.shared.length.repeat)?;
    session.end(steps, None, &args.shared.finish, &thresholds)
}
