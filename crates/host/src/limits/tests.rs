//! All limits together, under a clock that the test sets.

use super::*;
use crate::config::HostConfig;
use crate::identity::Holder;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Stands still until set.
#[derive(Debug, Default)]
struct ManualClock(AtomicU64);

impl Clock for ManualClock {
    fn wall_us(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn monotonic_us(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

struct Server {
    limits: Arc<Limits>,
    stats: Arc<Stats>,
    clock: Arc<ManualClock>,
}

impl Server {
    fn with(flags: &[&str]) -> Server {
        let (stats, clock) =
            (Arc::new(Stats::new(1, Vec::new(), 0)), Arc::new(ManualClock::default()));
        let any: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let config = HostConfig::for_tests(flags);
        let limits =
            Limits::of(&config.process, &config.limits, &stats, &any).expect("right settings");
        Server { limits: Arc::new(limits), stats, clock }
    }

    fn sleep_ms(&self, ms: u64) {
        self.clock.0.fetch_add(ms * 1_000, Relaxed);
    }

    /// A request from an address, perhaps of an account.
    fn request(&self, address: &str, account: Option<&str>) -> Result<Payer, Box<Problem>> {
        let now_us = self.clock.monotonic_us();
        let mut quota_keys = self.limits.quota_keys(ip(address));
        self.limits.admit(None, quota_keys, now_us)?;
        if let Some(account) = account {
            self.limits.admit_account(&mut quota_keys, Holder::Subject(account), now_us)?;
        }
        Ok(Payer::new(&self.limits, quota_keys))
    }

    /// How many of a hundred requests pass, and why the others do not.
    fn hundred(&self, address: &str, account: Option<&str>) -> (usize, Option<Box<Problem>>) {
        let mut first = None;
        let through = (0..100).filter(|_| match self.request(address, account) {
            Ok(_) => true,
            Err(problem) => {
                first.get_or_insert(problem);
                false
            }
        });
        (through.count(), first)
    }

    fn refused(&self, refused: RefusalReason) -> u64 {
        self.stats.refusals.of(refused)
    }
}

fn ip(text: &str) -> Option<IpAddr> {
    Some(text.parse().expect("an address"))
}

#[test]
fn nothing_is_looked_at_where_nothing_is_limited() {
    assert!(!Server::with(&[]).limits.looks_at_requests());
    assert!(Server::with(&[]).limits.of_connection().is_none());
    for flag in [
        "--requests-per-second-per-connection",
        "--requests-per-second-per-address",
        "--requests-per-second-per-account",
        "--bytes-per-second-per-address",
        "--read-ms-per-second-per-account",
        "--max-subscribers-per-address",
    ] {
        assert!(Server::with(&[flag, "1"]).limits.looks_at_requests(), "{flag}");
    }
}

#[test]
fn requests_of_addresses_and_accounts_are_apart() {
    let server = Server::with(&[
        "--requests-per-second-per-address",
        "10",
        "--requests-per-second-per-account",
        "4",
    ]);
    let (through, problem) = server.hundred("192.0.2.1", None);
    let problem = problem.expect("a refusal");
    assert_eq!((through, problem.kind.slug, problem.kind.status), (50, "too-many-requests", 429));
    assert_eq!((problem.retry_after_s(), problem.limit), (Some(1), Some(10)));
    assert!(problem.detail.contains("from this address"), "{}", problem.detail);
    assert_eq!(server.refused(RefusalReason::RequestOfAddress), 50);
    assert_eq!(server.hundred("192.0.2.2", None).0, 50, "another address has its own");
    let (through, problem) = server.hundred("192.0.2.3", Some("ann"));
    assert_eq!(through, 20);
    assert!(problem.expect("a refusal").detail.contains("of this account"));
    assert!(server.refused(RefusalReason::RequestOfAccount) > 0);
    // Ann's requests count wherever they come from; bob's do not count as hers.
    assert_eq!(server.hundred("192.0.2.4", Some("ann")).0, 0);
    assert_eq!(server.hundred("192.0.2.5", Some("bob")).0, 20);
    server.sleep_ms(1_000);
    assert_eq!(server.hundred("192.0.2.6", Some("ann")).0, 4);
}

#[test]
fn a_connection_has_its_own_rate() {
    let server = Server::with(&["--requests-per-second-per-connection", "2"]);
    let [one, other] = [(); 2].map(|()| server.limits.of_connection().expect("limited"));
    let quota_keys = server.limits.quota_keys(ip("192.0.2.1"));
    let admit = |bucket: &SharedBucket| server.limits.admit(Some(bucket), quota_keys, 0);
    assert_eq!((0..100).filter(|_| admit(&one).is_ok()).count(), 10);
    assert_eq!((0..100).filter(|_| admit(&other).is_ok()).count(), 10);
    assert!(admit(&one).unwrap_err().detail.contains("over this connection"));
    assert_eq!(server.refused(RefusalReason::RequestOfConnection), 181);
}

#[test]
fn bytes_are_owed_and_the_next_request_waits_for_them() {
    let server = Server::with(&["--bytes-per-second-per-address", "1000"]);
    let payer = server.request("192.0.2.1", None).expect("nothing is owed");
    payer.bytes(5_000);
    assert!(server.request("192.0.2.1", None).is_ok(), "five seconds' worth may come at once");
    payer.bytes(2_500);
    let problem = server.request("192.0.2.1", None).map(drop).unwrap_err();
    assert_eq!((problem.kind.slug, problem.retry_after_s()), ("too-many-bytes", Some(3)));
    assert_eq!(problem.limit, Some(1_000));
    assert!(server.request("192.0.2.2", None).is_ok());
    server.sleep_ms(2_499);
    assert!(server.request("192.0.2.1", None).is_err());
    server.sleep_ms(1);
    assert!(server.request("192.0.2.1", None).is_ok());
    assert_eq!(server.refused(RefusalReason::BytesOfAddress), 2);
}

#[test]
fn reads_are_charged_for_their_time_and_only_reads_are_refused() {
    let server = Server::with(&["--read-ms-per-second-per-account", "100"]);
    let payer = server.request("192.0.2.1", Some("ann")).expect("nothing is owed");
    let reads = payer.reads().expect("nothing is owed");
    reads.timed(|| server.sleep_ms(900));
    let again = server.request("192.0.2.2", Some("ann")).expect("other requests are not refused");
    // In the 900 ms nothing came back that the bucket had room for.
    let problem = again.reads().map(drop).unwrap_err();
    assert_eq!((problem.kind.slug, problem.retry_after_s()), ("reads-too-costly", Some(4)));
    assert_eq!(problem.limit, Some(100));
    assert!(server.request("192.0.2.1", Some("bob")).expect("no limit").reads().is_ok());
    server.sleep_ms(4_000);
    assert!(again.reads().is_ok());
    assert_eq!(server.refused(RefusalReason::ReadsOfAccount), 1);
}

#[test]
fn subscriptions_are_counted_while_they_last() {
    let server =
        Server::with(&["--max-subscribers-per-address", "3", "--max-subscribers-per-account", "2"]);
    let ann = server.request("192.0.2.1", Some("ann")).expect("no limit of requests");
    let bob = server.request("192.0.2.1", Some("bob")).expect("no limit of requests");
    let held = [ann.subscribe().expect("room"), ann.subscribe().expect("room")];
    let problem = ann.subscribe().unwrap_err();
    assert_eq!((problem.kind.slug, problem.limit), ("too-many-subscriptions", Some(2)));
    assert!(problem.detail.contains("this account"), "{}", problem.detail);
    let third = bob.subscribe().expect("what ann was refused was given back");
    assert!(bob.subscribe().unwrap_err().detail.contains("this address"));
    drop((held, third));
    assert!(ann.subscribe().is_ok());
    assert_eq!(server.refused(RefusalReason::SubscriptionOfAccount), 1);
    assert_eq!(server.refused(RefusalReason::SubscriptionOfAddress), 1);
}

#[test]
fn connections_are_counted_while_they_last_and_those_of_proxies_are_many_clients() {
    let server = Server::with(&[
        "--max-connections",
        "5",
        "--max-connections-per-address",
        "2",
        "--trusted-proxies",
        "10.0.0.0/8",
    ]);
    let connect = |address: &str| server.limits.connect(ip(address));
    let held = [connect("192.0.2.1").expect("room"), connect("192.0.2.1").expect("room")];
    let told = String::from_utf8(connect("192.0.2.1").expect_err("a refusal")).expect("text");
    assert!(told.starts_with("HTTP/1.1 503 ") && told.contains("\r\nRetry-After: 1\r\n"), "{told}");
    let (head, body) = told.split_once("\r\n\r\n").expect("a head");
    let json: serde_json::Value = serde_json::from_str(body).expect("a problem");
    assert_eq!(json["type"], "/problems/too-many-connections");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    assert_eq!(server.refused(RefusalReason::ConnectionOfAddress), 1);
    let of_proxy: Vec<_> = (0..3).map(|_| connect("10.1.1.1").expect("room")).collect();
    assert!(connect("192.0.2.2").is_err(), "that is all");
    assert_eq!(server.refused(RefusalReason::Connection), 1);
    drop((held, of_proxy));
    assert_eq!(server.stats.connections.load(Relaxed), 0);
    let again: Vec<_> = (0..2).filter_map(|_| connect("192.0.2.1").ok()).collect();
    assert_eq!(again.len(), 2, "what was refused for all is not counted for its address");
}

#[test]
fn a_debt_slows_down_what_goes_on() {
    let server = Server::with(&["--bytes-per-second-per-account", "1000"]);
    let payer = server.request("192.0.2.1", Some("ann")).expect("nothing is owed");
    let quota_keys = payer.quota_keys().expect("limited");
    assert_eq!(server.limits.debt_ns(quota_keys), None);
    payer.bytes(5_500);
    assert_eq!(server.limits.debt_ns(quota_keys), Some(500_000_000));
    server.sleep_ms(500);
    assert_eq!(server.limits.debt_ns(quota_keys), None);
}
