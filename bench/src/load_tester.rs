//! `wellspring bench` as the client: closed loops of one request, every answer accounted for.

use crate::flags::{Flags, Outcome};
use crate::machine;
use serde_json::Value;
use std::{process::Command, time::Duration};

/// How long the run lasts that finds out how many requests fill the measured time. The measured run
/// has a count and no duration: only then does the load tester know of every answer. At the end of
/// a duration each connection may have one more that is in no figure.
const PROBE_S: f64 = 0.3;

/// What the client's result file says of one run.
pub(crate) struct Seen {
    /// Answers as expected, those of the warm-up included.
    pub(crate) answered: u64,
    pub(crate) rate_per_s: f64,
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
    pub(crate) client_busy: f64,
    pub(crate) measured: u64,
}

/// When a run ends.
pub(crate) enum Until {
    Seconds(f64),
    Requests(u64),
}

impl Until {
    /// After as many requests as fill this time, by what a probe saw.
    pub(crate) fn filled(probe: &Seen, seconds: f64) -> Self {
        Self::Requests((probe.rate_per_s * seconds).ceil().max(1.0) as u64)
    }
}

/// What every command is told that has the load tester ask a running server.
pub(crate) struct Told {
    /// Host and port of the server.
    pub(crate) address: String,
    /// The load tester's program.
    pub(crate) bench: String,
    /// The server's process.
    pub(crate) server_pid: u32,
    pub(crate) connections: u64,
    /// How long to measure, in s.
    pub(crate) seconds: f64,
    /// How long to load before, in s.
    pub(crate) warmup: f64,
}

impl Told {
    /// Takes the flags that are left, and goes to the core that `--pin` names.
    pub(crate) fn from_flags(mut flags: Flags) -> Outcome<Self> {
        let told = Self {
            address: flags.required("address")?,
            bench: flags.required("bench")?,
            server_pid: flags.required("server-pid")?,
            connections: flags.required("connections")?,
            seconds: flags.or("seconds", 3.0)?,
            warmup: flags.or("warmup", 0.5)?,
        };
        let core: Option<usize> = flags.optional("pin")?;
        flags.finish()?;
        if let Some(core) = core {
            machine::pin_to(core)?;
        }
        Ok(told)
    }
}

/// The load tester, and what it is to ask again and again.
pub(crate) struct LoadTester<'a> {
    /// The program.
    pub(crate) bench: &'a str,
    /// Its flags that make the request.
    pub(crate) request: &'a [&'a str],
    /// Where it goes.
    pub(crate) url: &'a str,
    /// What every answer must say.
    pub(crate) status: u16,
    /// How many connections ask.
    pub(crate) connections: u64,
}

impl LoadTester<'_> {
    /// A short run, to know how many requests fill a longer one.
    pub(crate) fn probe(&self, warmup_s: f64) -> Outcome<Seen> {
        self.load(Until::Seconds(PROBE_S), warmup_s)
    }

    /// Runs it and reads its result.
    pub(crate) fn load(&self, until: Until, warmup_s: f64) -> Outcome<Seen> {
        let milliseconds = |s: f64| format!("{}ms", Duration::from_secs_f64(s).as_millis());
        let mut command = Command::new(self.bench);
        command
            .args(["bench", "-c", &self.connections.to_string(), "-t", "1", "--no-headroom", "-q"])
            .args(["--expect", &self.status.to_string(), "--json", "-"])
            .args(self.request)
            .args(["--warmup", &milliseconds(warmup_s)]);
        match until {
            Until::Seconds(s) => command.args(["-z", &milliseconds(s)]),
            Until::Requests(count) => command.args(["-n", &count.to_string()]),
        };
        let output =
            command.arg(self.url).output().map_err(|error| format!("{}: {error}", self.bench))?;
        if !output.status.success() {
            let text = |bytes: &[u8]| {
                String::from_utf8_lossy(bytes).chars().take(2000).collect::<String>()
            };
            let (errors, said) = (text(&output.stderr), text(&output.stdout));
            return Err(format!("the load tester: {}: {errors}{said}", output.status).into());
        }
        let result: Value = serde_json::from_slice(&output.stdout)?;
        read_result(&result["steps"][0]["runs"][0], self.status)
    }
}

/// Takes the figures of a run, and fails if anything but that status happened in it.
fn read_result(run: &Value, status: u16) -> Outcome<Seen> {
    let number = |pointer: &str| -> Outcome<u64> {
        run.pointer(pointer)
            .and_then(Value::as_u64)
            .ok_or_else(|| format!("the load tester's result has no {pointer}").into())
    };
    let successes = number("/endpoints/0/counters/successes")?;
    let accounted = number("/endpoints/0/counters/sent")? == successes
        && number(&format!("/endpoints/0/counters/statuses/{status}"))? == successes
        && number("/unanswered")? == 0
        && number("/warmup_requests")? == number("/warmup_successes")?
        && number("/warmup_unanswered")? == 0;
    if !accounted {
        let counters = &run["endpoints"][0]["counters"];
        return Err(format!("not trusted: requests failed or are unanswered: {counters}").into());
    }
    let microseconds = |name: &str| {
        run["endpoints"][0]["service"]["quantiles_ns"][name].as_f64().map(|ns| ns / 1000.0)
    };
    let worker = &run["client"]["workers"][0];
    let measured = number("/endpoints/0/counters/completed")?;
    Ok(Seen {
        answered: successes + number("/warmup_successes")?,
        rate_per_s: measured as f64 * 1e9 / number("/measured_ns")? as f64,
        p50_us: microseconds("p50"),
        p99_us: microseconds("p99"),
        client_busy: worker["cpu_ns"].as_f64().unwrap_or(0.0)
            / worker["wall_ns"].as_f64().unwrap_or(f64::INFINITY),
        measured,
    })
}
