//! `wellspring bench search`: the highest rate at which a condition still holds.

use crate::exit::Failure;
use crate::finish::Shared;
use crate::one::Spread;
use crate::options::{Offer, plan, rate};
use crate::quantity::crowd;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use wellspring_load::check::{Slo, SloOutcome};
use wellspring_load::driver::{PlannedStep, ProbeOutcome, Search, SearchEnd, SearchStep};
use wellspring_load::plan::{Load, Stop};
use wellspring_load::result::{Run, SearchOutcome, Step};

/// How long the capacity is looked at in closed loop, in milliseconds.
const CAPACITY_MS: u64 = 2_000;
/// How much of what was due must have been sent and answered for a rate to count as kept.
const KEPT_SHARE: f64 = 0.98;
/// Highest failing rate ÷ highest holding one at which the search ends.
const PRECISION: f64 = 1.05;

#[derive(Debug, clap::Args)]
pub(crate) struct SearchArgs {
    /// What to ask.
    url: String,
    /// What must hold, e.g. 'p99<10ms' or 'p99<10ms,failure_rate<0.1%'.
    #[arg(long, value_name = "CONDITIONS")]
    slo: String,
    /// Never offers more than this.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    max_rate: Option<f64>,
    /// Connections (default 128).
    #[arg(short = 'c', long, value_name = "N", value_parser = crowd)]
    connections: Option<u32>,
    /// How the requests are spread.
    #[arg(long, value_enum, default_value_t = Spread::Poisson)]
    arrivals: Spread,
    #[command(flatten)]
    shared: Shared,
}

pub(crate) fn run(args: &SearchArgs) -> Result<ExitCode, Failure> {
    let slo = Slo::parse(&args.slo).map_err(|why| Failure::usage(format!("--slo: {why}")))?;
    let thresholds = args.shared.finish.thresholds()?;
    let target = args.shared.connection.target(&args.url)?;
    let source = args.shared.request.source(&target, &args.shared.connection)?;
    let offer = Offer {
        connections: args.connections,
        rate_per_s: Some(1.0),
        arrivals: args.arrivals.into(),
        think_us: (0, 0),
    };
    let mut open = plan(&target, source, offer, &args.shared.connection, &args.shared.length)?;
    let mut session = args.shared.begin(&open)?;
    let mut closed = open.clone();
    closed.settings.load = Load::Closed { think_min_us: 0, think_max_us: 0 };
    closed.settings.connections = args.connections.unwrap_or(16);
    closed.settings.stop = Stop { requests: None, duration_ms: Some(CAPACITY_MS) };
    let capacity = PlannedStep { name: "capacity (closed loop)".to_owned(), plan: closed };
    let mut steps = session.steps(&[capacity], 1..=1)?;
    let capacity_per_s = steps[0].runs[0].throughput_per_s();
    let ceiling = args.max_rate.unwrap_or(capacity_per_s * 2.0).max(1.0);
    let mut search = Search::new(ceiling, PRECISION);
    let mut decisive = None;
    while let SearchStep::Try(rate) = search.next(capacity_per_s) {
        if session.stop.load(Ordering::Relaxed) {
            break;
        }
        open.settings.load = Load::Open { rate_per_s: rate, arrivals: args.arrivals.into() };
        let probe = steps.len();
        let name = format!("probe {probe}: {rate}/s");
        let measured = session.steps(&[PlannedStep { name, plan: open.clone() }], 1..=1)?;
        let Some(step) = measured.into_iter().next() else { break };
        // A probe that was cut short has shown nothing.
        if session.stop.load(Ordering::Relaxed) {
            steps.push(step);
            break;
        }
        let outcome = probe_outcome(&slo, &step, rate);
        if outcome == ProbeOutcome::Holds && search.bounds().0.is_none_or(|highest| rate >= highest)
        {
            decisive = Some(step.name.clone());
        }
        search.tell(rate, outcome);
        steps.push(step);
    }
    let interrupted = session.stop.load(Ordering::Relaxed);
    let end = if interrupted { None } else { search.end(capacity_per_s) };
    let outcome = outcome(&args.slo, &search, ceiling, end, decisive);
    session.end(steps, Some(outcome), &args.shared.finish, &thresholds)
}

/// Whether a rate was kept and the conditions held at it.
fn probe_outcome(slo: &Slo, step: &Step, rate_per_s: f64) -> ProbeOutcome {
    let kept = |run: &Run| {
        let sent_share = run.open_loop.as_ref().map_or(0.0, |open| {
            if open.due == 0 { 1.0 } else { open.sent as f64 / open.due as f64 }
        });
        let total = run.total();
        let answered = total.map_or(0, |total| total.counters.statuses.values().sum::<u64>());
        let seconds = run.measured_ns as f64 / 1e9;
        // At low rates chance alone leaves some seconds with fewer requests than the mean.
        let due = run.open_loop.as_ref().map_or(rate_per_s * seconds, |open| open.due as f64);
        sent_share >= KEPT_SHARE && answered as f64 >= KEPT_SHARE * due
    };
    let holds = matches!(slo.judge(step), SloOutcome::Holds(_));
    if step.runs.iter().all(kept) && holds { ProbeOutcome::Holds } else { ProbeOutcome::Fails }
}

fn outcome(
    slo: &str,
    search: &Search,
    ceiling: f64,
    end: Option<SearchEnd>,
    decisive_step: Option<String>,
) -> SearchOutcome {
    let (holds, fails) = search.bounds();
    let reason = match end {
        None => "the search was interrupted".to_owned(),
        Some(SearchEnd::Ceiling) => format!(
            "it still held at {ceiling:.0} requests a second, where the search ends; try a higher --max-rate"
        ),
        Some(SearchEnd::Narrow) => {
            "the lowest failing rate is within 5% of the highest holding one; a failure counts \
             when it happens twice"
                .to_owned()
        }
        Some(SearchEnd::NeverHeld) => "it did not hold at any rate tried".to_owned(),
        Some(SearchEnd::TooMany(probes)) => format!(
            "{probes} rates were tried and the limit is not known to 5%: the same rate holds at one time and \
             fails at another; try a longer duration (-z)"
        ),
    };
    SearchOutcome {
        slo: slo.to_owned(),
        highest_rate_per_s: holds,
        lowest_failing_rate_per_s: fails,
        reason,
        decisive_step,
    }
}
