//! `wellspring bench scenario FILE`: weighted steps by many users.

use super::finish::{FinishOptions, Session};
use super::one::Spread;
use super::options::{ConnectionOptions, ContextOptions, LengthOptions, Offer, plan, rate};
use super::quantity::{crowd, pair, think_us};
use crate::exit::{Code, Failure};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use wellspring_load::driver::{self, PlannedStep};
use wellspring_load::engine::{Clock, Target};
use wellspring_load::plan::Stop;
use wellspring_load::scenario::{Options, Scenario, ScenarioError, Setup};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Ready-made scenarios are in the folder scenarios/; docs/bench/scenarios.md explains the file.

  wellspring bench scenario scenarios/links.toml --url http://127.0.0.1:4000 --users 20 -z 30s")]
pub(super) struct ScenarioArgs {
    /// The scenario file.
    file: PathBuf,
    /// The server; the file's `base` otherwise.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Users, each with a connection; several numbers make a ladder.
    #[arg(short = 'u', long, visible_alias = "connections", value_name = "N,N,…", value_delimiter = ',',
        value_parser = crowd)]
    users: Vec<u32>,
    /// How long users think; the file's own time otherwise.
    #[arg(long, value_name = "TIME..TIME", value_parser = think_us)]
    think: Option<(u64, u64)>,
    /// Requests a second in open loop; nobody thinks then.
    #[arg(short = 'r', long, value_name = "RATE", value_parser = rate, conflicts_with = "think")]
    rate: Option<f64>,
    /// How the requests of --rate are spread.
    #[arg(long, value_enum, default_value_t = Spread::Poisson)]
    arrivals: Spread,
    /// Sets a variable of the file; repeats.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = pair)]
    vars: Vec<(String, String)>,
    /// Reads the file and says what it would do, without sending anything.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    connection: ConnectionOptions,
    #[command(flatten)]
    length: LengthOptions,
    #[command(flatten)]
    context: ContextOptions,
    #[command(flatten)]
    finish: FinishOptions,
}

pub(super) fn run(args: &ScenarioArgs) -> Result<ExitCode, Failure> {
    let thresholds = args.finish.thresholds()?;
    let options = Options { vars: args.vars.clone(), ..Options::default() };
    let scenario = Scenario::load_with(&args.file, &options).map_err(|error| {
        let code = if args.file.exists() { Code::Data } else { Code::NoInput };
        Failure::new(code, error.to_string())
    })?;
    let url =
        args.url.as_deref().or(scenario.base()).ok_or_else(|| {
            Failure::usage("the scenario has no base; say which server with --url")
        })?;
    let target = args.connection.target(url)?;
    if args.check {
        crate::say(&format!("{} can be run against {}.\n", args.file.display(), target.url()))?;
        crate::say(scenario.outline().trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut setup = scenario.setup(args.length.seed, Clock::unix_ns);
    perform(&mut setup, &target, &args.connection)?;
    let values = setup.finish();
    let planned = planned(args, &scenario, &target, &values)?;
    let mut session = Session::begin(&planned[0].plan, &args.context, &args.finish)?;
    let measured = session.steps(&planned, 1..=args.length.repeat);
    // Whatever setup made is taken down again, also when measuring failed.
    let mut teardown = scenario.teardown(&values, args.length.seed, Clock::unix_ns);
    let taken_down = perform(&mut teardown, &target, &args.connection);
    let code = session.end(measured?, None, &args.finish, &thresholds)?;
    taken_down?;
    Ok(code)
}

fn wrong(error: &ScenarioError) -> Failure {
    Failure::data(error.to_string())
}

/// One step for each number of users.
fn planned(
    args: &ScenarioArgs,
    scenario: &Scenario,
    target: &Target,
    values: &wellspring_load::scenario::SetupValues,
) -> Result<Vec<PlannedStep>, Failure> {
    let source = scenario.source(values, Clock::unix_ns).map_err(|error| wrong(&error))?;
    let hash = driver::workload_hash(&source);
    let source: Arc<dyn wellspring_load::workload::Source> = Arc::new(source);
    let suggested = scenario.suggested();
    let rate_per_s = args.rate.or(if args.users.is_empty() { suggested.rate_per_s } else { None });
    let think_us = args.think.unwrap_or_else(|| scenario.think_us());
    let rungs: Vec<Option<u32>> = if args.users.is_empty() {
        vec![suggested.users]
    } else {
        args.users.iter().copied().map(Some).collect()
    };
    let mut planned = Vec::new();
    for users in rungs {
        let offer =
            Offer { connections: users, rate_per_s, arrivals: args.arrivals.into(), think_us };
        let source = (Arc::clone(&source), hash.clone());
        let mut plan = plan(target, source, offer, &args.connection, &args.length)?;
        if args.length.duration.is_none()
            && plan.settings.stop.requests.is_none()
            && suggested.duration_ms.is_some()
        {
            plan.settings.stop = Stop { requests: None, duration_ms: suggested.duration_ms };
        }
        let name = match rate_per_s {
            Some(rate) => format!("{rate}/s, {} connections", plan.settings.connections),
            None => format!("users={}", plan.settings.connections),
        };
        planned.push(PlannedStep { name, plan });
    }
    Ok(planned)
}

/// Sends the requests of setup or teardown, one after another.
fn perform(
    setup: &mut Setup,
    target: &Target,
    connection: &ConnectionOptions,
) -> Result<(), Failure> {
    while let Some(request) = setup.next_request().map_err(|error| wrong(&error))? {
        let elsewhere = match &request.origin {
            Some(origin) => Some(connection.target(origin)?),
            None => None,
        };
        let target = elsewhere.as_ref().unwrap_or(target);
        let answer = connection.ask(target, request.request)?;
        setup
            .answered(answer.status, &answer.headers, &answer.body)
            .map_err(|error| Failure::new(Code::Unavailable, error.to_string()))?;
    }
    Ok(())
}
