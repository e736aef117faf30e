//! `POST /e` under the load tester's closed loop: the rate, the latencies, what the server spent on
//! each request, and, where the server stores, whether every 202 became an event.

use crate::{
    flags::{Flags, Outcome},
    ingest_account::Account,
    load_tester::{LoadTester, Seen, Told, Until},
    machine,
    row::{Row, Sink},
};

/// The 7 bytes of WIRE §2.
pub(crate) const BODY: &str = r#"{"e":1}"#;

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

/// `wsbench ingest`: one run against one running server.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let kind: Kind = flags.required("server")?;
    let sink = Sink::from_flags("ingest", "wellspring", &mut flags)?;
    let Told { address, bench, server_pid, connections, seconds, warmup } =
        Told::from_flags(flags)?;
    let server_cpu = || machine::cpu_of(server_pid).ok_or("the server is gone");
    let account = || (kind == Kind::Stores).then(|| Account::settled(&address)).transpose();
    let url = format!("http://{address}/e");
    let request = ["-m", "POST", "-d", BODY];
    let client =
        LoadTester { bench: &bench, request: &request, url: &url, status: 202, connections };

    let before_probe = account()?;
    let probe = client.probe(warmup)?;
    let before = account()?;
    if let (Some(probed), Some(before)) = (before_probe, before) {
        before.must_have_grown_by(probe.answered..=probe.answered + connections, &probed)?;
    }

    let cpu = server_cpu()?;
    let seen = client.load(Until::filled(&probe, seconds), warmup)?;
    // What was accepted and not yet stored is work the server still owes: its time counts.
    let after = account()?;
    let spent = server_cpu()?.saturating_sub(cpu);
    if let (Some(before), Some(after)) = (before, after) {
        after.must_have_grown_by(seen.answered..=seen.answered, &before)?;
    }
    sink.put(&Row {
        size: before.map_or(0, |account| account.head),
        server_us: Some(spent.as_secs_f64() * 1e6 / seen.answered as f64),
        ..row(&sink, connections, &seen)
    })
}

/// What the client saw, as a row.
pub(crate) fn row(sink: &Sink, connections: u64, seen: &Seen) -> Row {
    let case = format!("{connections} connection{}", if connections == 1 { "" } else { "s" });
    Row {
        p50_us: seen.p50_us,
        p99_us: seen.p99_us,
        client_busy: Some(seen.client_busy),
        samples: seen.measured,
        ..sink.row(&case, seen.rate_per_s, "requests/s")
    }
}
