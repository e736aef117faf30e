//! Requests for links at every split, alone and among events.

use super::head::Persistence;
use super::replay::{End, replay, shared, statuses};
use super::session::{NextStep, Session};
use super::session_tests::{ACCEPTED, LIMITS, PLAIN, everywhere, refused, whole};

/// A request for a link as a browser sends it.
pub(super) fn visit(code: &str) -> Vec<u8> {
    format!("GET /{code} HTTP/1.1\r\nHost: l\r\nUser-Agent: curl/8.5.0\r\nReferer: https://a.example/x\r\n\r\n").into()
}

/// The click recorded for it.
pub(super) fn clicked(code: &str) -> (String, Vec<u8>) {
    (code.to_owned(), b"curl/8.5.0 https://a.example/x".to_vec())
}

fn found_at(code: &str, after: Persistence) -> Vec<u8> {
    let connection = if after == Persistence::Keep { "keep-alive" } else { "close" };
    format!(
        "HTTP/1.1 302 Found\r\nLocation: https://example.com/{code}\r\n\
         Cache-Control: private, no-store\r\nContent-Length: 0\r\nConnection: {connection}\r\n\r\n"
    )
    .into()
}

#[test]
fn a_visitor_is_told_where_the_link_leads_at_every_split_and_the_click_is_recorded() {
    let trace = everywhere(&visit("Yci"));
    assert_eq!(trace.taken, [clicked("Yci")]);
    assert_eq!(trace.answers, found_at("Yci", Persistence::Keep));
    assert_eq!(trace.end, End::Closed);
}

#[test]
fn links_and_events_share_a_connection_in_any_order() {
    let codes = ["a", "0123456789", "unknown", "Yci", "b"];
    let mut input = Vec::new();
    for code in codes {
        input.extend_from_slice(&[&visit(code), PLAIN].concat());
    }
    let last = b"GET /end HTTP/1.1\r\nHost: l\r\nConnection: close\r\n\r\n";
    let trace = everywhere(&[&input[..], last, PLAIN].concat());
    let got = statuses(&trace.answers).unwrap();
    assert_eq!(got, [302, 202, 302, 202, 404, 202, 302, 202, 302, 202, 302]);
    let taken: Vec<&str> = trace.taken.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(taken, ["a", "/e", "0123456789", "/e", "/e", "Yci", "/e", "b", "/e", "end"]);
    assert!(trace.answers.ends_with(&found_at("end", Persistence::Close)));
    assert_eq!(trace.end, End::Closed);
}

#[test]
fn a_repeated_head_with_another_code_is_judged_like_a_new_one() {
    let again = |code: &str| whole(&[visit("first"), visit(code), PLAIN.to_vec()].concat());
    for code in ["a", "0123456789", "first"] {
        let trace = again(code);
        assert_eq!(statuses(&trace.answers).unwrap(), [302, 302, 202], "{code:?}");
        assert_eq!(trace.taken[1], clicked(code));
    }
    for code in ["", "01234567890", "a-b", "a%20", "a/b", "a?x", "health", "wait", "é"] {
        let trace = again(code);
        assert_eq!(trace.answers, found_at("first", Persistence::Keep), "{code:?}");
        let rest = [visit(code), PLAIN.to_vec()].concat();
        assert_eq!(trace.end, End::Left(rest), "{code:?}");
    }
    // The head after the code determines the visit: nothing of the previous one remains.
    let other = b"GET /x HTTP/1.1\r\nHost: l\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\n\r\n";
    let trace = everywhere(&[&visit("a")[..], other, &visit("b")].concat());
    let told = b"  192.0.2.2".to_vec();
    assert_eq!(trace.taken, [clicked("a"), ("x".to_owned(), told), clicked("b")]);
}

#[test]
fn a_head_too_long_to_remember_is_understood_each_time() {
    let long = |code: &str| {
        let filling = "y".repeat(3_000);
        format!(
            "GET /{code} HTTP/1.1\r\nHost: l\r\nCookie: {filling}\r\nUser-Agent: curl/8\r\n\r\n"
        )
    };
    let input = [visit("a"), long("b").into(), long("c").into(), visit("d")].concat();
    for step in [1, 7, 1_000, input.len()] {
        let trace = replay(LIMITS, input.chunks(step));
        assert_eq!(statuses(&trace.answers).unwrap(), [302; 4]);
        assert_eq!(trace.taken[3], clicked("d"));
        assert!(!trace.taken[2].1.ends_with(clicked("c").1.as_slice()), "it named no referrer");
    }
}

#[test]
fn what_is_rarely_sent_for_a_link_is_for_the_other_stack() {
    for foreign in [
        "HEAD /a HTTP/1.1\r\nHost: l\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: l\r\nContent-Length: 0\r\n\r\n",
        "GET /a HTTP/1.0\r\nHost: l\r\n\r\n",
        "GET /a?b HTTP/1.1\r\nHost: l\r\n\r\n",
        "GET /a.qr HTTP/1.1\r\nHost: l\r\n\r\n",
        "GET /a/ HTTP/1.1\r\nHost: l\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: l\r\n\r\n",
        "GET http://l/a HTTP/1.1\r\nHost: l\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: l\r\nContent-Length: 3\r\n\r\nabc",
        "GET /a HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: l\r\nExpect: 100-continue\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: l\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
        "GET /wait HTTP/1.1\r\nHost: l\r\n\r\n",
    ] {
        let trace = everywhere(&[&visit("a"), PLAIN, foreign.as_bytes(), PLAIN].concat());
        let rest = [foreign.as_bytes(), PLAIN].concat();
        assert_eq!(trace.end, End::Left(rest), "{foreign:?}");
        assert_eq!(trace.answers, [&found_at("a", Persistence::Keep), ACCEPTED].concat());
    }
    let empty = b"GET /a HTTP/1.1\r\nHost: l\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(everywhere(empty).answers, found_at("a", Persistence::Keep));
}

#[test]
fn a_visit_that_two_readers_could_read_differently_is_refused() {
    for head in [
        "GET /a HTTP/1.1\n\n",
        "GET /a HTTP/1.1\nHost: l\nHost: l\n\n",
        "GET /a HTTP/1.1\nHost: l\nContent-Length: 0\nContent-Length: 0\n\n",
        "GET /a HTTP/1.1\nHost: l\nContent-Length: 0\nTransfer-Encoding: chunked\n\n",
        "GET /a HTTP/1.1\nHost: l\nContent-Length: x\n\n",
        "GET /a HTTP/1.1\nHost: l\nTransfer-Encoding: gzip\n\n",
        "GET /a HTTP/1.1\nHost: l\nX: a\0b\n\n",
        "GET /a HTTP/1.1\nHost: l\n X: a\n\n",
    ] {
        let trace = refused(head, "GET /b HTTP/1.1\r\nHost: l\r\n\r\n", 400);
        assert_eq!(trace.end, End::Closed, "{head:?}");
    }
}

#[test]
fn a_redirect_keeps_its_place_behind_what_waits_and_ends_a_connection_when_the_server_stops() {
    let durable = b"POST /e?durable HTTP/1.1\r\nHost: l\r\nContent-Length: 1\r\n\r\n1";
    let trace = everywhere(&[durable, &visit("a")[..], durable, &visit("unknown")].concat());
    assert_eq!(statuses(&trace.answers).unwrap(), [202, 302, 202, 404]);
    let mut shared = shared(LIMITS);
    shared.stopping = true;
    let mut session = Session::new(None);
    assert_eq!(session.receive(&mut shared, &visit("a").repeat(2)), NextStep::End);
    let answers = [found_at("a", Persistence::Keep), found_at("a", Persistence::Close)].concat();
    assert_eq!(shared.out, answers);
    assert_eq!((shared.paths[1].forms[0].prompt, shared.tally.others.len()), (2, 0));
}
