//! What is kept of which request, and that nothing waits for it.

use super::*;
use crate::access::Needs;
use crate::access::Principal;
use crate::http::Host;
use crate::http::routes::Routes;
use crate::identity::AccountName;
use crate::identity::Caller;
use crate::identity::Role;
use crate::names::SYSTEM_LOG;
use crate::record::RouteName;
use crate::testing;
use crate::view::all_stored;
use std::path::Path;
use std::sync::Arc;
use wellspring_log::ReadOptions;
use wellspring_types::Query;

/// Routes of all concerns.
fn routes() -> Routes {
    let [reader, writer, admin] = [Role::Reader, Role::Writer, Role::Admin].map(Needs::Role);
    testing::routes(&[
        ("POST", "/v1/append", writer),
        ("GET", "/v1/head", reader),
        ("PUT", "/v1/logs/{log}", admin),
        ("POST", "/auth/token", Needs::Public),
        ("GET", "/{code}", Needs::Public),
        ("GET", "/metrics", reader),
        ("DELETE", "/v1/keys/{id}", Needs::Account),
    ])
}

fn host(data: &Path, flags: &[&str]) -> Arc<Host> {
    testing::host_with(data, flags, routes())
}

fn route(method: &str, path: &str) -> RouteName {
    let route = routes().name_of(method, path);
    assert!(route.path.is_some(), "no {method} {path}");
    route
}

/// The record of a request, of which tests change what they are about.
fn record(caller: &Principal, route: RouteName, status: u16) -> RequestRecord<'_> {
    RequestRecord {
        route,
        method: "PUT",
        path: "/v1/logs/orders",
        log: "orders",
        status,
        client: Some([192, 0, 2, 7].into()),
        request_id: "r1",
        ..RequestRecord::for_tests(caller.identity())
    }
}

fn name(text: &str) -> AccountName {
    AccountName::parse(text).expect("a name")
}

/// Type, tags and data of all that is kept.
fn kept(host: &Host) -> Vec<(String, Vec<String>, serde_json::Value)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    if let Some(batcher) = host.node.started_batcher(SYSTEM_LOG) {
        runtime.block_on(all_stored(&batcher, Duration::from_secs(20))).unwrap();
    }
    let snapshot = host.node.get(SYSTEM_LOG).unwrap().snapshot();
    let mut events = snapshot.read(&Query::all(), ReadOptions::default());
    let mut found = Vec::new();
    while let Some(event) = events.next().unwrap() {
        let data = serde_json::from_slice(event.data()).unwrap();
        let tags = event.tags().map(str::to_owned).collect();
        found.push((event.event_type().to_owned(), tags, data));
    }
    found
}

#[test]
fn what_was_done_can_be_asked_for_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path(), &[]);
    let open = Principal::of_open_server(&host.access.state()).unwrap();
    let create = route("PUT", "/v1/logs/{log}");
    let note = |record: &RequestRecord<'_>| host.audit.note(&host.node, record);
    note(&record(&open, create, 201));
    let unknown = Principal::unauthenticated();
    let login = route("POST", "/auth/token");
    let at_login = |caller: &Caller, status| {
        note(&RequestRecord {
            caller: Some(caller),
            log: "",
            method: "POST",
            path: "/auth/token",
            ..record(&unknown, login, status)
        })
    };
    at_login(&Caller::LoggedIn(name("ann")), 200);
    at_login(&Caller::Claimed(Some(name("ann"))), 401);
    at_login(&Caller::Claimed(None), 429);
    let read = RequestRecord {
        shows_credentials: true,
        ..record(&unknown, route("GET", "/v1/head"), 401)
    };
    note(&read);
    let kept = kept(&host);
    let types: Vec<&str> = kept.iter().map(|(event_type, ..)| event_type.as_str()).collect();
    assert_eq!(types, [ACCESSED, ACCESSED, REFUSED, REFUSED, REFUSED]);
    assert_eq!(kept[0].1, ["log:orders", "client:192.0.2.7"]);
    assert_eq!(
        kept[0].2,
        serde_json::json!({"status": 201, "by": "open", "method": "PUT", "route": "/v1/logs/{log}",
            "path": "/v1/logs/orders", "log": "orders", "client": "192.0.2.7", "request": "r1"})
    );
    assert_eq!(kept[1].1, ["account:ann", "client:192.0.2.7"]);
    assert_eq!((&kept[1].2["account"], &kept[1].2["by"]), (&"ann".into(), &"password".into()));
    assert_eq!(kept[2].1, ["claimed:ann", "client:192.0.2.7"]);
    assert_eq!((kept[2].2.get("account"), &kept[2].2["by"]), (None, &"nothing".into()));
    assert_eq!(kept[3].1, ["client:192.0.2.7"]);
    host.node.close();
}

#[test]
fn the_level_and_the_status_decide() {
    use AuditDecision::{Accessed, Failed, Ignored, Refused};
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path(), &[]);
    let (open, unknown) =
        (Principal::of_open_server(&host.access.state()).unwrap(), Principal::unauthenticated());
    let [append, head, create, login, redirect, metrics] = [
        ("POST", "/v1/append"),
        ("GET", "/v1/head"),
        ("PUT", "/v1/logs/{log}"),
        ("POST", "/auth/token"),
        ("GET", "/{code}"),
        ("GET", "/metrics"),
    ]
    .map(|(method, path)| route(method, path));
    let claimed = Caller::Claimed(None);
    let logged_in = Caller::LoggedIn(name("ann"));
    let known = Caller::Known(open.identity().clone());
    let shown = |record| RequestRecord { shows_credentials: true, ..record };
    let by = |caller, record| RequestRecord { caller: Some(caller), ..record };
    let (who, not) = (
        |route, status| record(&open, route, status),
        |route, status| record(&unknown, route, status),
    );
    for (expected, record) in [
        // Off, changes, writes, all.
        ([Ignored, Accessed, Accessed, Accessed], who(create, 201)),
        ([Ignored, Failed, Failed, Failed], who(create, 422)),
        ([Ignored, Accessed, Accessed, Accessed], who(create, 507)),
        ([Ignored, Ignored, Accessed, Accessed], who(append, 409)),
        ([Ignored, Ignored, Accessed, Accessed], who(append, 200)),
        ([Ignored, Ignored, Ignored, Accessed], who(head, 200)),
        ([Ignored, Ignored, Ignored, Accessed], who(metrics, 200)),
        ([Ignored; 4], not(redirect, 302)),
        ([Ignored; 4], not(routes().no_name(), 404)),
        // Denied callers.
        ([Ignored, Refused, Refused, Refused], shown(not(head, 401))),
        ([Ignored, Refused, Refused, Refused], by(&known, shown(not(head, 403)))),
        ([Ignored, Refused, Refused, Refused], by(&claimed, not(login, 401))),
        ([Ignored, Refused, Refused, Refused], by(&claimed, shown(not(head, 429)))),
        ([Ignored; 4], not(head, 401)),
        ([Ignored; 4], shown(not(head, 429))),
        ([Ignored; 4], not(login, 429)),
        ([Ignored; 4], not(login, 400)),
        ([Ignored; 4], not(create, 503)),
        // A login with the right password.
        ([Ignored, Accessed, Accessed, Accessed], by(&logged_in, not(login, 200))),
        ([Ignored, Accessed, Accessed, Accessed], by(&logged_in, not(login, 422))),
        ([Ignored; 4], not(redirect, 400)),
    ] {
        for (level, expected) in
            [Level::Off, Level::Changes, Level::Writes, Level::All].into_iter().zip(expected)
        {
            let verdict = Audit::new(level, routes().concerns()).verdict(&record);
            assert_eq!(verdict, expected, "{level:?} {:?} {}", record.route, record.status);
        }
    }
    host.node.close();
}

#[test]
fn a_flood_of_refusals_is_counted_and_told_by_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path(), &[]);
    let unknown = Principal::unauthenticated();
    let refused = RequestRecord {
        shows_credentials: true,
        ..record(&unknown, route("GET", "/v1/head"), 401)
    };
    for now_us in 0..1_000 {
        host.audit.note(&host.node, &RequestRecord { ended_us: now_us, ..refused });
    }
    host.audit.tell_refusals(&host.node, 2_000_000);
    host.audit.tell_refusals(&host.node, 3_000_000);
    let kept = kept(&host);
    assert_eq!(kept.len(), 21);
    let (event_type, _, data) = &kept[20];
    assert_eq!((event_type.as_str(), &data["count"]), (REFUSED_OFTEN, &980.into()));
    let text = crate::stats::prometheus::page(&host.audit.families());
    assert!(text.contains("\nwellspring_audit_events_total 21\n"), "{text}");
    assert!(text.contains("\nwellspring_audit_refusals_not_kept_total 980\n"), "{text}");
    host.node.close();
}

#[test]
fn an_admitted_client_cannot_fill_the_disk_with_failing_requests() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path(), &[]);
    let open = Principal::of_open_server(&host.access.state()).unwrap();
    let revoke = record(&open, route("DELETE", "/v1/keys/{id}"), 404);
    for now_us in 0..1_000 {
        host.audit.note(&host.node, &RequestRecord { ended_us: now_us, ..revoke });
    }
    host.audit.tell_refusals(&host.node, 2_000_000);
    let kept = kept(&host);
    assert_eq!(kept.len(), 21);
    let (event_type, _, data) = &kept[20];
    assert_eq!((event_type.as_str(), &data["count"]), (FAILED_OFTEN, &980.into()));
    host.node.close();
}

#[test]
fn without_room_an_audit_event_is_counted_and_no_request_waits() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path(), &[]);
    let open = Principal::of_open_server(&host.access.state()).unwrap();
    let create = route("PUT", "/v1/logs/{log}");
    host.audit.note(&host.node, &record(&open, create, 201));
    host.node.close();
    host.audit.note(&host.node, &record(&open, create, 201));
    host.audit.note(&host.node, &record(&open, create, 201));
    let text = crate::stats::prometheus::page(&host.audit.families());
    assert!(text.contains("\nwellspring_audit_events_total 1\n"), "{text}");
    assert!(text.contains("\nwellspring_audit_shed_total 2\n"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_log_that_takes_nothing_costs_no_memory_for_each_event() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path(), &[]);
    let open = Principal::of_open_server(&host.access.state()).unwrap();
    let create = record(&open, route("PUT", "/v1/logs/{log}"), 201);
    host.audit.note(&host.node, &create);
    host.node.batcher(SYSTEM_LOG).unwrap().close();
    let mapped_pages = || -> u64 {
        let sizes = std::fs::read_to_string("/proc/self/statm").unwrap();
        sizes.split(' ').next().unwrap().parse().unwrap()
    };
    let before = mapped_pages();
    for _ in 0..2_000 {
        host.audit.note(&host.node, &create);
    }
    let grown = mapped_pages().saturating_sub(before) * 4096;
    assert!(grown < 4 << 30, "{grown} bytes, for what is lost anyway");
    host.node.close();
}

#[test]
fn what_a_client_chose_can_break_nothing() {
    let open = Principal::unauthenticated();
    let long = format!("/v1/logs/{}", "ä".repeat(5_000));
    let log = "x\u{1}\"".repeat(200);
    let route = routes().name_at(0);
    let record = RequestRecord { path: &long, log: &log, ..record(&open, route, 403) };
    let data: serde_json::Value = serde_json::from_slice(&entry::data(&record)).unwrap();
    let path = data["path"].as_str().unwrap();
    assert!(long.starts_with(path) && (250..=256).contains(&path.len()), "{path}");
    assert_eq!(entry::tags(&record), ["client:192.0.2.7"]);
    assert_eq!(data.get("log"), None, "it may be as long as a URL");
}
