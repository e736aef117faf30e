//! `POST /e` under the load tester's closed loop: the rate, the latencies, what the server spent on each
//! request, and, where the server stores, whether every 202 became an event.

use crate::{
    flags::{Flags, Outcome},
    ingest_account::Account,
    machine,
    row::{Row, Sink},
};
use serde_json::Value;
use std::{process::Command, time::Duration};

/// The 7 bytes of WIRE §2.
pub(crate) const BODY: &str = r#"{"e":1}"#;

/// How long the run lasts that finds out how many requests fill the measured time. The measured run has a
/// count and no duration: only then does the load tester know of every answer. At the end of a duration each
/// connection may have one more that is in no figure.
const PROBE_S: f64 = 0.3;

/// What a server does with an event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It stores it, and tells how many.
    Stores,
    /// It answers only.
    Answers,
}

impl std::str::FromStr for Kind {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "wellspring" => Ok(Self::Stores),
            "floor" => Ok(Self::Answers),
            _ => Err(()),
        }
    }
}

/// What the client's result file says of one run.
struct Seen {
    /// Answers with 202, those of the warm-up included.
    answered: u64,
    rate_per_s: f64,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    client_busy: f64,
    measured: u64,
}

/// `wsbench ingest`: one run against one running server.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let kind: Kind = flags.required("server")?;
    let sink = Sink::from_flags("ingest", "wellspring", &mut flags)?;
    let address: String = flags.required("address")?;
    let bench: String = flags.required("bench")?;
    let server_pid: u32 = flags.required("server-pid")?;
    let connections: u64 = flags.required("connections")?;
    let seconds: f64 = flags.or("seconds", 3.0)?;
    let warmup: f64 = flags.or("warmup", 0.5)?;
    let core: Option<usize> = flags.optional("pin")?;
    flags.finish()?;
    if let Some(core) = core {
        machine::pin_to(core)?;
    }
    let server_cpu = || machine::cpu_of(server_pid).ok_or("the server is gone");
    let account = || (kind == Kind::Stores).then(|| Account::settled(&address)).transpose();
    let client = Client { bench: &bench, address: &address, connections };

    let before_probe = account()?;
    let probe = client.load(Until::Seconds(PROBE_S), warmup)?;
    let before = account()?;
    if let (Some(probed), Some(before)) = (before_probe, before) {
        before.must_have_grown_by(probe.answered..=probe.answered + connections, &probed)?;
    }

    let cpu = server_cpu()?;
    let count = (probe.rate_per_s * seconds).ceil().max(1.0) as u64;
    let seen = client.load(Until::Requests(count), warmup)?;
    // What was accepted and not yet stored is work the server still owes: its time counts.
    let after = account()?;
    let spent = server_cpu()?.saturating_sub(cpu);
    if let (Some(before), Some(after)) = (before, after) {
        after.must_have_grown_by(seen.answered..=seen.answered, &before)?;
    }
    let case = format!("{connections} connection{}", if connections == 1 { "" } else { "s" });
    sink.put(&Row {
        size: before.map_or(0, |account| account.head),
        p50_us: seen.p50_us,
        p99_us: seen.p99_us,
        client_busy: Some(seen.client_busy),
        server_us: Some(spent.as_secs_f64() * 1e6 / seen.answered as f64),
        samples: seen.measured,
        ..sink.row(&case, seen.rate_per_s, "requests/s")
    })
}

/// When a run ends.
enum Until {
    Seconds(f64),
    Requests(u64),
}

/// The load tester.
struct Client<'a> {
    bench: &'a str,
    address: &'a str,
    connections: u64,
}

impl Client<'_> {
    /// Runs it and reads its result.
    fn load(&self, until: Until, warmup_s: f64) -> Outcome<Seen> {
        let milliseconds = |s: f64| format!("{}ms", Duration::from_secs_f64(s).as_millis());
        let mut command = Command::new(self.bench);
        command
            .args(["bench", "-c", &self.connections.to_string(), "-t", "1", "--no-headroom", "-q"])
            .args(["-m", "POST", "-d", BODY, "--expect", "202", "--json", "-"])
            .args(["--warmup", &milliseconds(warmup_s)]);
        match until {
            Until::Seconds(s) => command.args(["-z", &milliseconds(s)]),
            Until::Requests(count) => command.args(["-n", &count.to_string()]),
        };
        let output = command
            .arg(format!("http://{}/e", self.address))
            .output()
            .map_err(|error| format!("{}: {error}", self.bench))?;
        if !output.status.success() {
            let text = |bytes: &[u8]| {
                String::from_utf8_lossy(bytes).chars().take(2000).collect::<String>()
            };
            let (errors, said) = (text(&output.stderr), text(&output.stdout));
            return Err(format!("the load tester: {}: {errors}{said}", output.status).into());
        }
        let result: Value = serde_json::from_slice(&output.stdout)?;
        read_result(&result["steps"][0]["runs"][0])
    }
}

/// Takes the figures of a run, and fails if anything but a 202 happened in it.
fn read_result(run: &Value) -> Outcome<Seen> {
    let number = |pointer: &str| -> Outcome<u64> {
        run.pointer(pointer)
            .and_then(Value::as_u64)
            .ok_or_else(|| format!("the load tester's result has no {pointer}").into())
    };
    let successes = number("/endpoints/0/counters/successes")?;
    let accounted = number("/endpoints/0/counters/sent")? == successes
        && number("/endpoints/0/counters/statuses/202")? == successes
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
