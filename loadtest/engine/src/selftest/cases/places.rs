//! Where runs go, and what they need: Unix sockets, IPv6, memory.

use crate::engine::{Observer, Progress, run};
use crate::null_server::NullServer;
use crate::scenario::{FixedSource, Statuses};
use crate::selftest::books::{balance, errors};
use crate::selftest::ledger::{Ledger, Trouble};
use crate::selftest::offer::{ListenPlace, Offer};
use crate::selftest::server::Reaction;
use crate::selftest::{Bench, Case};
use crate::target::Target;
use crate::workload::OwnedRequest;
use std::collections::BTreeMap;
use std::net::{Ipv6Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(super) const CASES: &[Case] = &[
    Case { name: "places/unix-socket", about: "a server behind a Unix socket", run: unix_socket },
    Case { name: "places/ipv6", about: "a server on the IPv6 loopback", run: ipv6 },
    Case {
        name: "places/memory",
        about: "memory does not grow with the number of requests",
        run: memory,
    },
];

fn answered(bench: &Bench, ledger: &mut Ledger, on: ListenPlace) -> Result<(), Trouble> {
    let offer = Offer { on, ..Offer::count(4, 500) };
    let seen = offer.to(bench.clock, Box::new(Reaction::answer))?;
    balance(&seen, ledger);
    ledger.equal("errors", BTreeMap::new(), errors(&seen));
    ledger.equal("requests the server read", 500, seen.log.served.len());
    Ok(())
}

fn unix_socket(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let name = format!("wellspring-self-test-{}.sock", std::process::id());
    let path = std::env::temp_dir().join(name);
    // One of an earlier process with the same number, if any.
    let _ = std::fs::remove_file(&path);
    let result = answered(bench, ledger, ListenPlace::Path(path.clone()));
    let _ = std::fs::remove_file(&path);
    result
}

fn ipv6(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    if let Err(error) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        return Err(Trouble::Unsuited(format!("there is no IPv6 loopback here: {error}")));
    }
    answered(bench, ledger, ListenPlace::Ip(Ipv6Addr::LOCALHOST.into()))
}

/// Growth that is allowed: a leak of ten bytes a request is more in either extent.
const ALLOWED_GROWTH_BYTES: u64 = 1 << 20;

fn memory(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let requests = bench.size(if cfg!(debug_assertions) { 120_000 } else { 300_000 }, 1_000_000);
    let server = NullServer::start(None)
        .map_err(|error| Trouble::of("the null server could not start", &error))?;
    let target = Target::parse(&format!("http://{}/", server.address()))
        .and_then(|mut target| target.resolve().map(|()| target))
        .map_err(|error| Trouble::of("the target", &error))?;
    let request =
        OwnedRequest { method: "GET".into(), path: "/".into(), ..OwnedRequest::default() };
    let source = FixedSource::new(request, Statuses::default())
        .map_err(|invalid| Trouble::Broken(invalid.into()))?;
    let plan = Offer::count(32, requests).plan(target, Arc::new(source));
    let mut sizes = Sizes::default();
    let measured = run(&plan, &Arc::new(AtomicBool::new(false)), &mut sizes)
        .map_err(|error| Trouble::of("the run could not be made", &error))?;
    let total = measured.run.total();
    ledger.equal("successes", requests, total.map_or(0, |total| total.counters.successes));
    // A tenth is enough for every buffer and histogram to have been touched.
    let early = sizes.0.iter().find(|(answers, _)| *answers > requests / 10);
    let late = sizes.0.iter().rev().find(|(answers, _)| *answers > requests / 2);
    let (Some((from, early_bytes)), Some((to, late_bytes))) = (early, late) else {
        return Err(Trouble::Unsuited(
            "the requests went by too fast to look at the memory".into(),
        ));
    };
    let grown = late_bytes.saturating_sub(*early_bytes);
    ledger.within("bytes grown", 0..=ALLOWED_GROWTH_BYTES, grown);
    ledger.note(format!("{} kB grown over {} requests", grown / 1000, to - from));
    Ok(())
}

/// Answers so far, and resident bytes at that moment.
#[derive(Default)]
struct Sizes(Vec<(u64, u64)>);

impl Observer for Sizes {
    fn progress(&mut self, progress: &Progress<'_>) {
        // Field 2 of statm: resident pages (proc_pid_statm(5)).
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: Option<u64> = statm.split_whitespace().nth(1).and_then(|word| word.parse().ok());
        if let Some(pages) = pages {
            let bytes = pages * rustix::param::page_size() as u64;
            self.0.push((progress.successes, bytes));
        }
    }
}
