//! Servers whose answers take a known time.

use crate::random::SplitMix64;
use crate::selftest::books::{answered, balance, errors, service, successes};
use crate::selftest::ledger::{Ledger, Trouble, duration};
use crate::selftest::offer::{Observations, Offer};
use crate::selftest::server::Reaction;
use crate::selftest::truth::{Error, Exact, quantiles, same};
use crate::selftest::{Bench, Case};
use std::collections::BTreeMap;

pub(super) const CASES: &[Case] = &[
    Case {
        name: "latency/constant",
        about: "every answer takes 2 ms; every quantile says so",
        run: |bench, ledger| distribution(bench, ledger, Delay::Constant),
    },
    Case {
        name: "latency/uniform",
        about: "answers take 1 to 10 ms, all equally often",
        run: |bench, ledger| distribution(bench, ledger, Delay::Uniform),
    },
    Case {
        name: "latency/bimodal",
        about: "nine answers in ten take 1 ms, the tenth 20 ms",
        run: |bench, ledger| distribution(bench, ledger, Delay::Bimodal),
    },
    Case {
        name: "latency/exponential",
        about: "answers take 4 ms on average, exponentially distributed",
        run: |bench, ledger| distribution(bench, ledger, Delay::Exponential),
    },
];

/// How long a server means to take.
#[derive(Clone, Copy, Debug)]
enum Delay {
    Constant,
    Uniform,
    Bimodal,
    Exponential,
}

impl Delay {
    fn draw_ns(self, random: &mut SplitMix64) -> u64 {
        match self {
            Delay::Constant => 2_000_000,
            Delay::Uniform => random.between(1_000_000, 10_000_000),
            Delay::Bimodal if random.between(1, 10) == 1 => 20_000_000,
            Delay::Bimodal => 1_000_000,
            Delay::Exponential => (random.exponential() * 4e6).min(40e6) as u64,
        }
    }
}

/// Users of the closed loop.
const USERS: u32 = 8;

fn distribution(bench: &Bench, ledger: &mut Ledger, delay: Delay) -> Result<(), Trouble> {
    let floor = transport(bench)?;
    let requests = bench.size(1_200, 12_000);
    let mut random = SplitMix64::stream(bench.seed, 0x1A7E);
    let script = move |asked: &_| Reaction::answer(asked).after(delay.draw_ns(&mut random));
    let seen = Offer::count(USERS, requests).to(bench.clock, Box::new(script))?;
    balance(&seen, ledger);
    ledger.equal("errors", BTreeMap::new(), errors(&seen));
    ledger.equal("requests the server read", requests, seen.log.served.len() as u64);

    let Some(total) = seen.run.total() else { return Ok(()) };
    same(ledger, "service against the stopwatch", &total.service, &service(&seen));

    // What the server took, and at most what carrying it costs here, three times over.
    let truth = Exact::new(answered(&seen).into_values());
    let above_ns = 3 * floor.quantile(0.99) + 100_000;
    for q in quantiles(truth.len()) {
        let told_ns = total.service.quantile_ns(q).unwrap_or(0);
        let error = Error { share: 0.001, below_ns: 0, above_ns };
        let range_ns = error.around(truth.quantile(q));
        // Less than the server took is wrong on any machine; more may be the machine's.
        ledger.lasts(&format!("quantile {q} of service"), *range_ns.start()..=u64::MAX, told_ns);
        ledger.timely(&format!("quantile {q} of service"), 0..=*range_ns.end(), told_ns);
    }
    little(&seen, ledger);
    let told = |q| duration(total.service.quantile_ns(q).unwrap_or(0));
    ledger.note(format!(
        "p50 {} for {}, p99 {} for {}, allowed + {}",
        told(0.5),
        duration(truth.quantile(0.5)),
        told(0.99),
        duration(truth.quantile(0.99)),
        duration(above_ns)
    ));
    Ok(())
}

/// What carrying a request and its answer costs on this machine: one user, no
/// delay, and per request the difference between the stopwatch and the server.
fn transport(bench: &Bench) -> Result<Exact, Trouble> {
    let seen = Offer::count(1, 300).to(bench.clock, Box::new(Reaction::answer))?;
    let took = answered(&seen);
    let extra = successes(&seen).filter_map(|sample| {
        Some((sample.ended_ns - sample.asked_ns).saturating_sub(*took.get(&sample.tag)?))
    });
    Ok(Exact::new(extra))
}

/// Little's law: users who do nothing but ask are all the time waiting for an answer.
fn little(seen: &Observations, ledger: &mut Ledger) {
    let truth = service(seen);
    let busy = seen.run.throughput_per_s() * truth.mean() / 1e9 / f64::from(USERS);
    // When a count ends the run, users finish one by one: up to one longest answer each.
    let edge = truth.quantile(1.0) as f64 / seen.run.measured_ns.max(1) as f64;
    ledger.timely_ratio("throughput × mean / users", 0.93 - edge..=1.005, busy);
}
