//! `wellspring bench scenario FILE`: weighted steps by many users.

use crate::exit::{Code, Failure};
use crate::finish::{FinishOptions, Session};
use crate::one::Spread;
use crate::options::{
    ConnectionOptions, ContextOptions, Credentials, LengthOptions, Offer, plan, rate,
};
use crate::quantity::{crowd, header, pair, think_us};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use wellspring_load::driver::{self, PlannedStep};
use wellspring_load::engine::{Clock, Target};
use wellspring_load::plan::{Plan, Stop};
use wellspring_load::scenario::{Options, Scenario, ScenarioError, Setup, SetupValues};

#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Ready-made scenarios are in the folder scenarios/; docs/bench/scenarios.md explains the file.

  wellspring bench scenario scenarios/links.toml --users 20 -z 30s

To compare two servers with a scenario: wellspring bench compare --scenario FILE URL URL.")]
pub(crate) struct ScenarioArgs {
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
    /// Requests per second in open loop; users do not think then.
    #[arg(short = 'r', long, value_name = "RATE", value_parser = rate, conflicts_with = "think")]
    rate: Option<f64>,
    /// How the requests of --rate are spread.
    #[arg(long, value_enum, default_value_t = Spread::Poisson)]
    arrivals: Spread,
    /// Sets a variable of the file; repeats.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = pair)]
    vars: Vec<(String, String)>,
    /// A header field of every request to this server; repeats. A request's own comes before it.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// Reads the file and says what it would do, without sending anything.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    credentials: Credentials,
    #[command(flatten)]
    connection: ConnectionOptions,
    #[command(flatten)]
    length: LengthOptions,
    #[command(flatten)]
    context: ContextOptions,
    #[command(flatten)]
    finish: FinishOptions,
}

/// A scenario file and what the command line gives it.
#[derive(Clone, Copy)]
pub(crate) struct ScenarioInput<'a> {
    pub(crate) file: &'a Path,
    pub(crate) vars: &'a [(String, String)],
    pub(crate) headers: &'a [(String, String)],
    pub(crate) credentials: &'a Credentials,
    pub(crate) connection: &'a ConnectionOptions,
    pub(crate) length: &'a LengthOptions,
}

/// The load of a scenario, as far as the command line says; the file suggests the rest.
#[derive(Clone, Copy)]
pub(crate) struct ScenarioLoad {
    pub(crate) users: Option<u32>,
    pub(crate) rate_per_s: Option<f64>,
    pub(crate) arrivals: Spread,
    pub(crate) think_us: Option<(u64, u64)>,
}

/// A scenario made ready on one server: its setup has been sent there, and its teardown is owed.
pub(crate) struct Prepared<'a> {
    pub(crate) scenario: Scenario,
    target: Target,
    values: SetupValues,
    input: ScenarioInput<'a>,
}

impl<'a> ScenarioInput<'a> {
    /// Reads the file, without credentials.
    fn load(&self) -> Result<Scenario, Failure> {
        self.load_with(None)
    }

    fn load_with(&self, authorization: Option<String>) -> Result<Scenario, Failure> {
        let (vars, headers) = (self.vars.to_vec(), self.headers.to_vec());
        let options = Options { vars, headers, authorization, ..Options::default() };
        Scenario::load_with(self.file, &options).map_err(|error| {
            let code = if self.file.exists() { Code::Data } else { Code::NoInput };
            Failure::new(code, error.to_string())
        })
    }

    /// The server that is measured.
    fn target(&self, scenario: &Scenario, url: Option<&str>) -> Result<Target, Failure> {
        let url = url.or(scenario.base()).ok_or_else(|| {
            Failure::usage("the scenario has no base; say which server with --url")
        })?;
        self.connection.target(url)
    }

    /// Logs in, if it is asked to, and sends the setup to the server at `url`, or at the file's
    /// `base`.
    pub(crate) fn prepare(self, url: Option<&str>) -> Result<Prepared<'a>, Failure> {
        let mut scenario = self.load()?;
        let target = self.target(&scenario, url)?;
        if let Some(value) = self.credentials.authorization(&target, self.connection)? {
            scenario = self.load_with(Some(value))?;
        }
        let mut setup = scenario.setup(self.length.seed, Clock::unix_ns);
        perform(&mut setup, &target, self.connection)?;
        Ok(Prepared { values: setup.finish(), scenario, target, input: self })
    }
}

impl Prepared<'_> {
    /// What to offer.
    pub(crate) fn plan(&self, load: ScenarioLoad) -> Result<Plan, Failure> {
        let source =
            self.scenario.source(&self.values, Clock::unix_ns).map_err(|error| wrong(&error))?;
        let hash = driver::workload_hash(&source);
        let suggested = self.scenario.suggested();
        let suggested_rate = suggested.rate_per_s.filter(|_| load.users.is_none());
        let offer = Offer {
            connections: load.users.or(suggested.users),
            rate_per_s: load.rate_per_s.or(suggested_rate),
            arrivals: load.arrivals.into(),
            think_us: load.think_us.unwrap_or_else(|| self.scenario.think_us()),
        };
        let (connection, length) = (self.input.connection, self.input.length);
        plan(&self.target, (Arc::new(source), hash), offer, connection, length)
    }

    /// Sends the teardown. It is owed also when measuring failed.
    pub(crate) fn take_down(&self) -> Result<(), Failure> {
        let seed = self.input.length.seed;
        let mut teardown = self.scenario.teardown(&self.values, seed, Clock::unix_ns);
        perform(&mut teardown, &self.target, self.input.connection)
    }
}

pub(crate) fn run(args: &ScenarioArgs) -> Result<ExitCode, Failure> {
    let thresholds = args.finish.thresholds()?;
    let input = ScenarioInput {
        file: &args.file,
        vars: &args.vars,
        headers: &args.headers,
        credentials: &args.credentials,
        connection: &args.connection,
        length: &args.length,
    };
    if args.check {
        let scenario = input.load()?;
        let target = input.target(&scenario, args.url.as_deref())?;
        crate::exit::say(&format!(
            "{} can be run against {}.\n",
            args.file.display(),
            target.url()
        ))?;
        crate::exit::say(scenario.outline().trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let prepared = input.prepare(args.url.as_deref())?;
    let ended = measure(args, &prepared);
    let taken_down = prepared.take_down();
    let (session, steps) = ended?;
    let code = session.end(steps?, None, &args.finish, &thresholds)?;
    taken_down?;
    Ok(code)
}

type Steps = Result<Vec<wellspring_load::result::Step>, Failure>;

fn measure(args: &ScenarioArgs, prepared: &Prepared<'_>) -> Result<(Session, Steps), Failure> {
    let planned = planned(args, prepared)?;
    let title = prepared.scenario.name();
    let measuring = (&args.connection, &args.context);
    let mut session = Session::begin(&planned[0].plan, title, measuring, &args.finish)?;
    let steps = session.steps(&planned, 1..=args.length.repeat);
    Ok((session, steps))
}

fn wrong(error: &ScenarioError) -> Failure {
    Failure::data(error.to_string())
}

/// One step for each number of users.
fn planned(args: &ScenarioArgs, prepared: &Prepared<'_>) -> Result<Vec<PlannedStep>, Failure> {
    let suggested = prepared.scenario.suggested();
    let rungs: Vec<Option<u32>> = if args.users.is_empty() {
        vec![None]
    } else {
        args.users.iter().copied().map(Some).collect()
    };
    let mut planned = Vec::new();
    for users in rungs {
        let load = ScenarioLoad {
            users,
            rate_per_s: args.rate,
            arrivals: args.arrivals,
            think_us: args.think,
        };
        let mut plan = prepared.plan(load)?;
        let settings = &mut plan.settings;
        if args.length.duration.is_none()
            && settings.stop.requests.is_none()
            && suggested.duration_ms.is_some()
        {
            settings.stop = Stop { requests: None, duration_ms: suggested.duration_ms };
        }
        if let (None, Some(warmup_ms)) = (args.length.warmup, suggested.warmup_ms) {
            settings.warmup_ms = warmup_ms;
        }
        let name = match settings.load {
            wellspring_load::plan::Load::Open { rate_per_s, .. } => {
                format!("{rate_per_s}/s, {} connections", settings.connections)
            }
            wellspring_load::plan::Load::Closed { .. } => format!("users={}", settings.connections),
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
