//! TLS, with a certificate that nobody trusts.

use crate::plans::{measured, plan, to, try_run, with_source};
use crate::tls_server::{Manner, serve};
use std::net::SocketAddr;
use std::sync::Arc;
use wellspring_load::engine::RunError;
use wellspring_load::null_server::NullServer;
use wellspring_load::plan::{Plan, Protocol, Stop, TlsTerms};
use wellspring_load::result::ErrorKind;
use wellspring_load::scenario::{FixedSource, Statuses};
use wellspring_load::workload::OwnedRequest;

fn over_tls(address: SocketAddr, protocol: Protocol) -> Plan {
    let mut plan = plan(&format!("https://localhost:{}/", address.port()));
    plan.tls = TlsTerms::accepting_any();
    plan.settings.protocol = protocol;
    plan.settings.stop = Stop { requests: Some(50), duration_ms: None };
    plan
}

fn refused(plan: &Plan) -> String {
    match try_run(plan) {
        Err(error @ RunError::Connect { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_protocols_are_spoken_over_tls_when_any_certificate_is_accepted() {
    for (alpn, protocol, streams) in [
        (&["h2", "http/1.1"][..], Protocol::Http2, 4),
        (&["h2", "http/1.1"], Protocol::Http1, 1),
        (&[], Protocol::Http1, 1),
    ] {
        let mut plan = over_tls(serve(alpn, Manner::Well), protocol);
        plan.settings.streams = streams;
        plan.settings.connections = 2;
        plan.settings.phases = true;
        let (measured, total) = measured(&plan);
        assert_eq!((measured.run.failures(), total.counters.successes), (0, 50), "{alpn:?}");
        let phases = total.phases.unwrap();
        assert_eq!((phases.tls.count(), phases.connect.count()), (2, 2));
    }
}

#[test]
fn an_untrusted_certificate_is_refused_with_the_reason() {
    let mut plan = over_tls(serve(&["h2"], Manner::Well), Protocol::Http2);
    plan.tls = TlsTerms::default();
    match try_run(&plan) {
        Err(RunError::Connect { why, .. }) => {
            assert!(why.starts_with("TLS: the server's certificate is not accepted"), "{why}");
            assert!(why.contains("--insecure"), "{why}");
        }
        // A machine that trusts nobody says so before it connects.
        Err(RunError::Settings(why)) => assert!(why.contains("ca-certificates"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_that_does_not_offer_http_2_is_refused_with_the_reason() {
    for alpn in [&["http/1.1"][..], &[]] {
        let why = refused(&over_tls(serve(alpn, Manner::Well), Protocol::Http2));
        assert!(why.contains("does not offer HTTP/2"), "{why}");
    }
}

#[test]
fn a_server_that_offers_only_http_2_is_refused_with_the_way_out() {
    let why = refused(&over_tls(serve(&["h2"], Manner::Well), Protocol::Http1));
    assert!(why.contains("does not offer HTTP/1.1") && why.contains("--http2"), "{why}");
}

#[test]
fn a_server_without_tls_is_named_as_such() {
    let null = NullServer::start(None).unwrap();
    let why = refused(&over_tls(null.address(), Protocol::Http1));
    assert!(why.contains("closed the connection within the handshake"), "{why}");
    // The other way round: a TLS server that is spoken to in clear.
    let mut plan = to(serve(&["h2"], Manner::Well));
    plan.settings.stop = Stop { requests: Some(3), duration_ms: Some(300) };
    let (_, total) = measured(&plan);
    assert_eq!(total.counters.successes, 0);
    assert!(total.counters.errors.values().sum::<u64>() > 0);
}

#[test]
fn reopened_connections_shake_hands_again() {
    let mut plan = over_tls(serve(&[], Manner::Well), Protocol::Http1);
    plan.settings.keep_alive = false;
    plan.settings.stop = Stop { requests: Some(12), duration_ms: None };
    let (measured, total) = measured(&plan);
    assert_eq!((measured.run.failures(), total.counters.successes), (0, 12));
    assert!(total.counters.connections_opened >= 12);
}

#[test]
fn a_handshake_that_fails_within_a_run_counts_as_such() {
    let mut plan = over_tls(serve(&[], Manner::WellOnce), Protocol::Http1);
    plan.settings.keep_alive = false;
    plan.settings.stop = Stop { requests: None, duration_ms: Some(200) };
    let (measured, total) = measured(&plan);
    assert_eq!(total.counters.successes, 1);
    let kinds: Vec<_> = total.counters.errors.keys().copied().collect();
    assert_eq!(kinds, [ErrorKind::Tls], "{:?}", measured.first_error);
    assert!(measured.first_error.unwrap().contains("not TLS"));
}

#[test]
fn large_bodies_pass_through_tls() {
    let address = serve(&["h2"], Manner::Well);
    let body = vec![b'x'; 300_000];
    let request =
        OwnedRequest { method: "PUT".into(), path: "/".into(), body, ..Default::default() };
    let source = Arc::new(FixedSource::new(request, Statuses::default()).unwrap());
    let mut plan = with_source(&format!("https://127.0.0.1:{}/", address.port()), source);
    plan.tls = TlsTerms::accepting_any();
    plan.settings.streams = 2;
    plan.settings.stop = Stop { requests: Some(6), duration_ms: None };
    let (measured, total) = measured(&plan);
    assert_eq!((measured.run.failures(), total.counters.successes), (0, 6));
}

#[test]
fn without_a_goodbye_a_body_of_unknown_length_is_not_taken_for_whole() {
    for (manner, successes) in [(Manner::Goodbye, 4), (Manner::HangUp, 0)] {
        let mut plan = over_tls(serve(&[], manner), Protocol::Http1);
        plan.settings.stop = Stop { requests: Some(4), duration_ms: None };
        let (_, total) = measured(&plan);
        assert_eq!(total.counters.successes, successes, "{manner:?}: {:?}", total.counters);
        let closed = total.counters.errors.get(&ErrorKind::Closed).copied().unwrap_or(0);
        assert_eq!(closed, 4 - successes, "{manner:?}: {:?}", total.counters);
    }
}
