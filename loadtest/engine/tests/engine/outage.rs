//! Servers that are there at first, or never answer.

use crate::plans::{measured, to};
use std::net::TcpListener;
use std::time::Duration;
use wellspring_load::engine::spawn;
use wellspring_load::null_server::NullServer;
use wellspring_load::plan::{Arrivals, Load, Plan, Protocol, Stop};
use wellspring_load::result::ErrorKind;

fn http1(mut plan: Plan) -> Plan {
    plan.settings.protocol = Protocol::Http1;
    plan
}

/// Tries up to three times: a machine that stands still for a tenth of a second in one of them is
/// no fault of the client.
fn within_three<T>(attempt: impl Fn() -> T, is_on_time: impl Fn(&T) -> bool) -> T {
    (0..2).map(|_| attempt()).find(is_on_time).unwrap_or_else(attempt)
}

#[test]
fn requests_due_while_the_server_is_gone_are_errors_not_absences() {
    // Refused when due, not when the client next looked: it is not late.
    let is_on_time = |p75_ns: &u64| *p75_ns < 20_000_000;
    let p75_ns = within_three(lateness_while_the_server_goes, is_on_time);
    assert!(is_on_time(&p75_ns), "{p75_ns}");
}

/// The third quartile in ns, of requests to a server that ends in their midst; all of them are
/// accounted for.
fn lateness_while_the_server_goes() -> u64 {
    let server = NullServer::start(None).unwrap();
    let mut plan = http1(to(server.address()));
    plan.settings.connections = 4;
    plan.settings.load = Load::Open { rate_per_s: 500.0, arrivals: Arrivals::Constant };
    plan.settings.stop = Stop { requests: None, duration_ms: Some(1_000) };
    let killer = spawn("killer", move || {
        std::thread::sleep(Duration::from_millis(400));
        drop(server);
    });
    let (measured, total) = measured(&plan);
    killer.unwrap().join().unwrap();
    let open = measured.run.open_loop.unwrap();
    let refused = total.counters.errors.get(&ErrorKind::Connect).copied().unwrap_or(0);
    assert_eq!(open.due, 500);
    assert_eq!(open.due, open.sent + open.never_sent);
    assert!(refused > 150, "{refused} refused of {open:?}: {:?}", total.counters);
    assert!(open.never_sent < 50, "{open:?}");
    // The first of all may be a request that was under way when the server went.
    let first = measured.first_error.unwrap();
    let under_way = total.counters.errors.keys().any(|&kind| kind != ErrorKind::Connect);
    assert!(first.contains("refused") || under_way, "{first}");
    total.lateness.unwrap().quantile_ns(0.75).unwrap()
}

#[test]
fn a_server_that_never_answers_is_told_of_even_if_only_the_warm_up_asked_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut plan = http1(to(listener.local_addr().unwrap()));
    plan.settings.connections = 2;
    plan.settings.warmup_ms = 100;
    plan.settings.timeout_ms = 400;
    // A client that stands still through the warm-up asks only after it.
    let asked_in_time = |unanswered: &u64| *unanswered == 2;
    let attempt = || {
        let (measured, total) = measured(&plan);
        assert_eq!(total.counters.successes, 0);
        measured.run.warmup_unanswered
    };
    assert_eq!(within_three(attempt, asked_in_time), 2);
}
