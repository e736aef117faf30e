//! From plans to a report: runs steps in the right order, watches the machine
//! meanwhile, and asks the server what it counted.

mod ask;
mod headroom;
mod search;
mod server_count;
mod server_watch;

pub use ask::{AskError, OwnedAnswer, ask};
pub use search::{ProbeOutcome, Search, SearchEnd, SearchStep};
pub use server_count::ServerCount;

use crate::engine::{Observer, RunError, run};
use crate::invalid::Invalid;
use crate::machine::NoiseProbe;
use crate::plan::Plan;
use crate::result::{Environment, Run, ServerUse, Step};
use server_watch::ServerWatch;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How runs are made, apart from their plans.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The server's process, if it runs here and is known: its work is reported and is no noise.
    pub server_pid: Option<u32>,
    /// Whether to measure, before each step, what this client reaches against a server that does
    /// nothing.
    pub headroom: bool,
    /// Where the server tells how many requests it handled.
    pub server_count: Option<ServerCount>,
}

/// Makes runs and numbers them.
pub struct Driver<'a> {
    options: Options,
    stop: Arc<AtomicBool>,
    observer: &'a mut dyn Observer,
    order: u32,
    server_header: Option<String>,
}

/// A step to be measured.
#[derive(Clone)]
pub struct PlannedStep {
    /// Name, unique within the report.
    pub name: String,
    /// What to offer.
    pub plan: Plan,
}

impl<'a> Driver<'a> {
    /// A driver; `order` is the number of runs the report already has. Setting
    /// `stop` ends the run under way and all after it; what was measured stays.
    pub fn new(
        options: Options,
        stop: Arc<AtomicBool>,
        observer: &'a mut dyn Observer,
        order: u32,
    ) -> Self {
        Driver { options, stop, observer, order, server_header: None }
    }

    /// The number of runs made so far.
    #[must_use]
    pub fn order(&self) -> u32 {
        self.order
    }

    /// Whether the user wants no more.
    #[must_use]
    pub fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Measures every step once for each of the `repeats`, which count from 1, in turns: all steps
    /// once, then all again, so that a machine that drifts does not favour one of them.
    ///
    /// # Errors
    /// The error of the first run if not even that could be made; later ones end
    /// the measuring and leave what is there.
    pub fn steps(
        &mut self,
        planned: &[PlannedStep],
        repeats: RangeInclusive<u32>,
    ) -> Result<Vec<Step>, RunError> {
        let mut steps: Vec<Step> = planned
            .iter()
            .map(|step| Step {
                name: step.name.clone(),
                settings: step.plan.settings.clone(),
                runs: Vec::new(),
            })
            .collect();
        let (first, last) = repeats.clone().into_inner();
        for repeat in repeats {
            for (step, planned) in steps.iter_mut().zip(planned) {
                if self.stopping() && self.order > 0 {
                    break;
                }
                let what = if first == last {
                    planned.name.clone()
                } else {
                    format!("{}, repeat {repeat} of {last}", planned.name)
                };
                match self.run(&planned.plan, &what, repeat) {
                    Ok(run) => step.runs.push(run),
                    Err(error) if self.order == 0 => return Err(error),
                    Err(error) => {
                        step.runs.push(aborted(&error, repeat, self.order + 1));
                        self.order += 1;
                    }
                }
            }
        }
        steps.retain(|step| !step.runs.is_empty());
        Ok(steps)
    }

    /// Makes one run and says what the machine and the server did meanwhile.
    ///
    /// # Errors
    /// [`RunError`] if nothing could be measured.
    pub fn run(&mut self, plan: &Plan, what: &str, repeat: u32) -> Result<Run, RunError> {
        let null_rate = if self.options.headroom && repeat == 1 && !self.stopping() {
            self.observer.begin("measuring this client against a server that does nothing");
            headroom::null_server_rate_per_s(plan, &self.stop)
        } else {
            None
        };
        let elsewhere = plan.target.is_local() == Some(false);
        let counted_before = self.options.server_count.as_ref().map(ServerCount::read);
        let probe = NoiseProbe::start(self.options.server_pid, elsewhere);
        let server_before = self.options.server_pid.and_then(crate::machine::process_cpu_ns);
        self.observer.begin(what);
        let mut watch = ServerWatch::new(self.observer, self.options.server_pid);
        let measured = run(plan, &self.stop, &mut watch)?;
        let server_cpu_ns = watch.cpu_ns(measured.run.measured_ns);
        let mut run = measured.run;
        run.noise = probe.finish();
        run.repeat = repeat;
        self.order += 1;
        run.order = self.order;
        run.client.null_server_rate_per_s = null_rate;
        run.first_error = measured.first_error;
        self.server_header = self.server_header.take().or(measured.server);
        run.server = self.server_use(server_before, counted_before);
        if let (Some(server), Some(cpu_ns)) = (&mut run.server, server_cpu_ns) {
            server.cpu_ns = Some(cpu_ns);
        }
        Ok(run)
    }

    fn server_use(
        &self,
        cpu_before_ns: Option<u64>,
        counted_before: Option<Result<u64, Invalid>>,
    ) -> Option<ServerUse> {
        let pid = self.options.server_pid;
        let count = self.options.server_count.as_ref();
        if pid.is_none() && count.is_none() {
            return None;
        }
        let cpu_ns = pid
            .and_then(crate::machine::process_cpu_ns)
            .zip(cpu_before_ns)
            .map(|(after, before)| after.saturating_sub(before));
        let counted = match (counted_before, count.map(ServerCount::read)) {
            (Some(Ok(before)), Some(Ok(after))) => Ok(after.checked_sub(before)),
            (Some(Err(why)), _) | (_, Some(Err(why))) => Err(why),
            _ => Ok(None),
        };
        let named = count.map(|count| count.metric.clone());
        Some(ServerUse {
            cpu_ns,
            rss_bytes: pid.and_then(crate::machine::process_rss_bytes),
            counted_by: match &counted {
                Ok(_) => named,
                Err(why) => named.map(|name| format!("{name} (not read: {why})")),
            },
            counted_requests: counted.ok().flatten(),
        })
    }

    /// Completes what is known of the environment after the runs.
    pub fn complete(&self, environment: &mut Environment, plan: &Plan) {
        if self.server_header.is_some() {
            environment.server.header.clone_from(&self.server_header);
        }
        let protocol = match (plan.settings.protocol, plan.target.tls) {
            (crate::plan::Protocol::Http1, false) => "HTTP/1.1",
            (crate::plan::Protocol::Http1, true) => "HTTP/1.1 over TLS",
            (crate::plan::Protocol::Http2, false) => "h2c",
            (crate::plan::Protocol::Http2, true) => "h2",
        };
        environment.server.protocol = Some(protocol.to_owned());
        if let Some(pid) = self.options.server_pid {
            crate::machine::identify_server(&mut environment.server, pid);
        }
    }
}

/// The hash of everything a source sends and checks: FNV-1a, 64 bits, hexadecimal
/// (Fowler, Noll, Vo). Equal for equal workloads; not a protection against forgery.
#[must_use]
pub fn workload_hash(source: &dyn crate::workload::Source) -> String {
    let hash = source.identity().iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    });
    format!("{hash:016x}")
}

/// A run that could not be made is part of the report: leaving it out would be survivors only.
fn aborted(error: &RunError, repeat: u32, order: u32) -> Run {
    Run {
        repeat,
        order,
        started_unix_us: crate::clock::Clock::unix_us(),
        measured_ns: 0,
        warmup_requests: 0,
        warmup_unanswered: 0,
        warmup_successes: None,
        finish: crate::result::Finish::Aborted(error.to_string()),
        endpoints: Vec::new(),
        think_ns: 0,
        open_loop: None,
        slices: Vec::new(),
        unanswered: 0,
        silent_tail_ns: 0,
        client: crate::result::ClientUse::default(),
        server: None,
        noise: crate::result::Noise::default(),
        first_error: None,
    }
}
