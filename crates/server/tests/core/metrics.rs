//! `/metrics`: well formed, complete, and correct.

use crate::client::Client;
use crate::exposition::{Page, read, value};
use crate::server::Server;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Write;
use wellspring_patience::Patience;

fn scrape(server: &Server) -> Page {
    read(&server.client().get("/metrics").unwrap().text())
}

const MAIN: &[(&str, &str)] = &[("log", "main")];
const LINKS: &[(&str, &str)] = &[("log", "main"), ("view", "links")];

/// Every family that exists without TLS, export and an index for search.
const FAMILIES: &[&str] = &include!("metrics_names.txt");

fn happen(client: &mut Client) {
    let three = json!({"events": [
        {"type": "A", "tags": ["t:1", "u"], "data": 1},
        {"type": "B", "tags": ["t:2", "u"], "data": 2},
        {"type": "A", "tags": ["t:3", "u"], "data": 3},
    ]});
    client.post("/v1/append", &three).unwrap().expect(200);
    let never = json!({
        "events": [{"type": "B", "data": 1}],
        "condition": {"failIfExists": {"items": [{"types": ["A"]}]}},
    });
    client.post("/v1/append", &never).unwrap().problem(409);
    client.post("/api/urls", &json!({"url": "https://example.com/"})).unwrap().expect(201);
}

#[test]
fn the_page_is_well_formed_and_says_what_happened() {
    let server = Server::start();
    let mut client = server.client();
    happen(&mut client);
    let page = scrape(&server);
    // The index is there once it has been made.
    let is_of_search = |name: &&str| name.starts_with("wellspring_catalogue_search_");
    let names: Vec<&str> =
        page.keys().map(String::as_str).filter(|name| !is_of_search(name)).collect();
    assert_eq!(names, FAMILIES);
    let main = |line: &str| value(&page, line, MAIN);
    assert_eq!(
        (main("wellspring_log_head"), main("wellspring_log_conflicts_total")),
        (5.0, 1.0),
        "two of the link"
    );
    assert_eq!(main("wellspring_log_batch_events_count"), main("wellspring_log_batches_total"));
    assert_eq!(main("wellspring_log_batch_events_sum"), main("wellspring_log_events_total"));
    let of_size = |le| value(&page, "wellspring_log_batch_events_bucket", &[MAIN[0], ("le", le)]);
    assert_eq!((of_size("1"), of_size("2"), of_size("4")), (0.0, 1.0, 2.0));
    assert!(main("wellspring_log_batch_bytes_sum") > 100.0);
    assert_eq!(main("wellspring_log_barrier_seconds_count"), 2.0);
    assert!((1e-6..10.0).contains(&main("wellspring_log_barrier_seconds_sum")));
    assert!((0.0..60.0).contains(&main("wellspring_log_last_event_age_seconds")));
    assert!(main("wellspring_log_disk_bytes") >= main("wellspring_log_segment_bytes"));
    assert!(main("wellspring_log_active_index_memory_bytes") > 0.0);
    let terms = |kind| value(&page, "wellspring_log_index_terms", &[MAIN[0], ("kind", kind)]);
    assert!(terms("type") >= 3.0 && terms("tag") >= 4.0);
    let links = |line: &str| value(&page, line, LINKS);
    assert_eq!(
        (links("wellspring_view_lag_events"), links("wellspring_view_lag_seconds")),
        (0.0, 0.0)
    );
    assert!(links("wellspring_view_applied_events_total") >= 1.0);
    assert!(links("wellspring_view_fold_seconds_total") > 0.0);
    let whole = |line: &str| value(&page, line, &[]);
    assert_eq!(whole("wellspring_links"), 1.0);
    assert!(whole("wellspring_received_bytes_total") > 300.0);
    assert!(whole("wellspring_sent_bytes_total") > 300.0);
    // The scrape itself.
    assert_eq!(whole("wellspring_requests_in_flight"), 1.0);
    assert!(whole("process_threads") >= 4.0 && whole("process_cpu_seconds_total") < 60.0);
    let peak = whole("process_resident_memory_peak_bytes");
    assert!(peak >= 1e6 && whole("process_resident_memory_bytes") <= peak * 1.1);
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let started = whole("process_start_time_seconds");
    assert!((now - 600.0..now + 2.0).contains(&started), "{started}, now {now}");
    assert!(whole("wellspring_uptime_seconds") <= now - started + 2.0);
    let [(_, build, 1.0)] = &page["wellspring_build_info"].lines[..] else { panic!("one build") };
    assert_eq!(build["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn every_figure_is_documented_and_nothing_else() {
    let text = include_str!("../../../../docs/operations.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let figures =
        rows.filter(|(name, _)| name.starts_with("wellspring_") || name.starts_with("process_"));
    let mut documented: Vec<&str> =
        figures.filter(|(_, rest)| !rest.contains("| With ")).map(|(name, _)| name).collect();
    documented.sort_unstable();
    assert_eq!(documented, FAMILIES);
}

#[test]
fn every_figure_has_the_kind_and_the_labels_that_are_documented() {
    let server = Server::start();
    let mut client = server.client();
    happen(&mut client);
    let page = scrape(&server);
    let text = include_str!("../../../../docs/operations.md");
    let mut compared = 0;
    for row in text.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let mut cell = || cells.next().unwrap_or_default();
        let (name, kind, labels) = (cell().trim_matches('`'), cell(), cell());
        let Some(family) = page.get(name) else { continue };
        let documented: BTreeSet<&str> = labels
            .split(',')
            .map(|label| label.trim_matches([' ', '`']))
            .filter(|l| !l.is_empty())
            .collect();
        assert_eq!(family.kind, kind, "{name}");
        for (line, of_line, _) in &family.lines {
            let of_line = of_line.keys().map(String::as_str).filter(|label| *label != "le");
            assert_eq!(of_line.collect::<BTreeSet<_>>(), documented, "{line}");
        }
        // Those that need something special may be there, too.
        compared += usize::from(FAMILIES.contains(&name));
    }
    assert_eq!(compared, FAMILIES.len());
}

#[test]
fn answers_of_both_stacks_are_counted_by_route_status_and_time() {
    let server = Server::start();
    let mut client = server.client();
    for _ in 0..3 {
        client.post("/e", &json!({"e": 1})).unwrap().expect(202);
        client.get("/v1/head").unwrap().expect(200);
    }
    client.get("/v1/events/7").unwrap().problem(404);
    let page = scrape(&server);
    let requests = |route: &str, status: &str| {
        value(&page, "wellspring_requests_total", &[("route", route), ("status", status)])
    };
    assert_eq!((requests("POST /e", "202"), requests("GET /v1/head", "200")), (3.0, 3.0));
    assert_eq!(requests("GET /v1/events/{position}", "404"), 1.0);
    for route in ["POST /e", "GET /v1/head"] {
        let name = "wellspring_request_duration_seconds";
        let of = |suffix: &str, labels: &[(&str, &str)]| {
            let labels: Vec<_> = [("route", route)].iter().chain(labels).copied().collect();
            value(&page, &format!("{name}{suffix}"), &labels)
        };
        assert_eq!((of("_count", &[]), of("_bucket", &[("le", "+Inf")])), (3.0, 3.0));
        assert!(of("_sum", &[]) > 0.0);
        // Bounds below 1 ms are close together.
        for le in ["0.00001", "0.00003", "0.000075", "0.0002", "0.00035", "0.00075"] {
            of("_bucket", &[("le", le)]);
        }
    }
}

#[test]
fn subscriptions_and_connections_come_and_go() {
    // A client that only half-closed is noticed when the server writes to it.
    let server = Server::start_with(&["--heartbeat-ms", "100"]);
    server.client().call("PUT", "/v1/logs/other", &[], b"").unwrap();
    let figures = |wanted: (f64, f64, f64)| {
        let mut patience = Patience::new();
        loop {
            let page = scrape(&server);
            let of = |log| value(&page, "wellspring_log_subscribers", &[("log", log)]);
            let all = value(&page, "wellspring_subscribers", &[]);
            let seen = (all, of("main"), of("other"));
            if seen == wanted {
                return page;
            }
            patience.pause(format_args!("{seen:?}, not {wanted:?}"));
        }
    };
    let subscribe = |log: &str| {
        let mut stream = std::net::TcpStream::connect(server.address).unwrap();
        let path = format!("/v1/logs/{log}/events");
        let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let (a, b, c) = (subscribe("main"), subscribe("other"), subscribe("other"));
    let page = figures((3.0, 1.0, 2.0));
    // These and the scrape. A page reads them before it reads the subscribers.
    let mut patience = Patience::new();
    while value(&scrape(&server), "wellspring_requests_in_flight", &[]) != 4.0 {
        patience.pause("three subscriptions and the scrape are under way");
    }
    assert!(value(&page, "wellspring_connections", &[]) >= 4.0);
    drop((a, b));
    figures((1.0, 0.0, 1.0));
    drop(c);
    figures((0.0, 0.0, 0.0));
}

#[test]
fn figures_only_grow_and_a_restart_begins_at_zero() {
    let mut server = Server::start();
    let mut client = server.client();
    happen(&mut client);
    let counters = |page: &Page| -> Vec<(String, f64)> {
        let of = page.values().filter(|family| family.kind != "gauge");
        let lines = of.flat_map(|family| &family.lines);
        lines.map(|(name, labels, value)| (format!("{name}{labels:?}"), *value)).collect()
    };
    let before = scrape(&server);
    client.post("/v1/append", &json!({"events": [{"type": "A", "data": 1}]})).unwrap().expect(200);
    let after = scrape(&server);
    let later = counters(&after);
    for (name, value) in counters(&before) {
        let (_, now) = later.iter().find(|(n, _)| *n == name).unwrap();
        assert!(*now >= value, "{name} fell from {value} to {now}");
    }
    server.terminate();
    let again = Server::start_in(&server.dir, &[]);
    let page = scrape(&again);
    assert_eq!(value(&page, "wellspring_log_appends_total", MAIN), 0.0);
    assert_eq!(value(&page, "wellspring_log_head", MAIN), 6.0);
    // The age of the event, not of the process.
    let age = value(&page, "wellspring_log_last_event_age_seconds", MAIN);
    assert!((0.0..60.0).contains(&age), "{age}");
    assert!(value(&page, "wellspring_log_epoch", MAIN) == 2.0);
}
