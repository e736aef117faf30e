//! Two servers measured in turns: the only way to tell a small difference from a machine that
//! drifts.

use crate::compare::CompareArgs;
use crate::exit::Failure;
use crate::finish::{FinishOptions, Session};
use crate::one::Spread;
use crate::options::{Offer, plan};
use crate::scenario::{Prepared, ScenarioInput, ScenarioLoad};
use std::path::Path;
use std::sync::atomic::Ordering;
use wellspring_load::compare::{Side, abba};
use wellspring_load::driver::PlannedStep;
use wellspring_load::plan::{Arrivals, Plan};
use wellspring_load::result::{Report, Step};

/// Length of one run, in milliseconds.
const TURN_MS: u64 = 2_000;

/// One of the two servers.
struct Contender {
    plan: Plan,
    session: Session,
    step: Option<Step>,
}

/// The reports of A and B.
pub(crate) fn measure(args: &CompareArgs) -> Result<[Report; 2], Failure> {
    match &args.scenario {
        None => requests(args),
        Some(file) => scenario(args, file),
    }
}

/// The same request to both.
fn requests(args: &CompareArgs) -> Result<[Report; 2], Failure> {
    let contender = |url: &str| {
        let target = args.connection.target(url)?;
        let source = args.request.source(&target, &args.connection)?;
        let offer = Offer {
            connections: args.connections,
            rate_per_s: args.rate,
            arrivals: Arrivals::Constant,
            think_us: (0, 0),
        };
        let plan = plan(&target, source, offer, &args.connection, &args.length)?;
        let title = plan.settings.url.clone();
        Contender::new(plan, &title, args)
    };
    take_turns([contender(&args.a)?, contender(&args.b)?], args.pairs)
}

/// A scenario on both. What its setup made is taken down again on both, also when something went
/// wrong in between.
fn scenario(args: &CompareArgs, file: &Path) -> Result<[Report; 2], Failure> {
    let mut prepared = Vec::new();
    let measured = scenario_on(args, file, &mut prepared);
    let taken_down: Vec<Result<(), Failure>> =
        prepared.iter().map(|prepared| prepared.take_down()).collect();
    let reports = measured?;
    taken_down.into_iter().collect::<Result<(), Failure>>()?;
    Ok(reports)
}

fn scenario_on<'a>(
    args: &'a CompareArgs,
    file: &'a Path,
    prepared: &mut Vec<Prepared<'a>>,
) -> Result<[Report; 2], Failure> {
    let input = ScenarioInput {
        file,
        vars: &args.vars,
        headers: args.request.headers(),
        credentials: args.request.credentials(),
        connection: &args.connection,
        length: &args.length,
    };
    let load = ScenarioLoad {
        users: args.connections,
        rate_per_s: args.rate,
        arrivals: Spread::Poisson,
        think_us: args.think,
    };
    for url in [&args.a, &args.b] {
        prepared.push(input.prepare(Some(url))?);
    }
    let contender = |prepared: &Prepared<'_>| {
        let plan = prepared.plan(load)?;
        let title = format!("{} at {}", prepared.scenario.name(), plan.settings.url);
        Contender::new(plan, &title, args)
    };
    take_turns([contender(&prepared[0])?, contender(&prepared[1])?], args.pairs)
}

impl Contender {
    fn new(mut plan: Plan, title: &str, args: &CompareArgs) -> Result<Self, Failure> {
        let settings = &mut plan.settings;
        if args.length.duration.is_none() && settings.stop.requests.is_none() {
            settings.stop.duration_ms = Some(TURN_MS);
            settings.warmup_ms = settings.warmup_ms.min(TURN_MS / 10);
        }
        let finish = FinishOptions::silent(args.quiet);
        let session = Session::begin(&plan, title, (&args.connection, &args.context), &finish)?;
        Ok(Contender { plan, session, step: None })
    }

    /// One run; `turn` counts those of both sides from 0, `made` its own from 1.
    fn run(&mut self, name: String, turn: usize, made: u32) -> Result<(), Failure> {
        let planned = PlannedStep { name, plan: self.plan.clone() };
        // Only the first repeat asks what this client can reach: it does not change from turn to
        // turn.
        for mut step in self.session.steps(&[planned], made..=made)? {
            for run in &mut step.runs {
                run.order = u32::try_from(turn).unwrap_or(u32::MAX).saturating_add(1);
            }
            match &mut self.step {
                Some(there) => there.runs.append(&mut step.runs),
                None => {
                    "run".clone_into(&mut step.name);
                    self.step = Some(step);
                }
            }
        }
        Ok(())
    }
}

fn take_turns(mut contenders: [Contender; 2], pairs: u32) -> Result<[Report; 2], Failure> {
    let order = abba(pairs as usize);
    let mut made = [0u32; 2];
    for (turn, side) in order.iter().enumerate() {
        if contenders.iter().any(|each| each.session.stop.load(Ordering::Relaxed)) {
            break;
        }
        let (at, letter) = if *side == Side::A { (0, "A") } else { (1, "B") };
        made[at] += 1;
        let name = format!("{letter}, run {} of {}", turn + 1, order.len());
        contenders[at].run(name, turn, made[at])?;
    }
    let urls = contenders.each_ref().map(|each| each.plan.settings.url.clone());
    let mut reports =
        contenders.map(|each| each.session.into_report(each.step.into_iter().collect()));
    if reports[0].title == reports[1].title {
        // One name for both, by --title: told apart by their addresses.
        for (report, url) in reports.iter_mut().zip(urls) {
            report.title = format!("{} at {url}", report.title);
        }
    }
    Ok(reports)
}
