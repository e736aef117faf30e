//! The protocol at every split, against known answers.

use super::answer::CONTINUE;
use super::head::HeadLimits;
use super::replay::{End, LARGEST_BODY, Trace, replay, shared, statuses};
use super::session::{NextStep, Phase, Session};
use crate::http::body_memory::{BodyMemory, Charge};
use std::sync::atomic::Ordering::Relaxed;

pub(super) const LIMITS: HeadLimits =
    HeadLimits { headers: 12, head_bytes: 8_192, url_bytes: 4_096, traced: false };
pub(super) const PLAIN: &[u8] =
    b"POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: 7\r\n\r\n{\"e\":1}";

/// The answer to an accepted event.
pub(super) const ACCEPTED: &[u8] = b"HTTP/1.1 202 Accepted\r\n\
Content-Type: application/json\r\n\
Content-Length: 11\r\n\
Connection: keep-alive\r\n\r\n\
{\"ok\":true}";
/// The same for the last request of a connection.
pub(super) const ACCEPTED_LAST: &[u8] = b"HTTP/1.1 202 Accepted\r\n\
Content-Type: application/json\r\n\
Content-Length: 11\r\n\
Connection: close\r\n\
\r\n\
{\"ok\":true}";

pub(super) fn whole(input: &[u8]) -> Trace {
    replay(LIMITS, std::iter::once(input))
}

/// The trace of `input`, which must be the same at every split in two and byte by byte.
#[track_caller]
pub(super) fn everywhere(input: &[u8]) -> Trace {
    let trace = whole(input);
    for at in 1..input.len() {
        let (a, b) = input.split_at(at);
        assert_eq!(without_continue(replay(LIMITS, [a, b].into_iter())), trace, "split at {at}");
    }
    assert_eq!(without_continue(replay(LIMITS, input.chunks(1))), trace, "byte by byte");
    trace
}

/// Whether the client gets `100 Continue` depends on whether it has already sent the body.
pub(super) fn without_continue(mut trace: Trace) -> Trace {
    while let Some(at) = trace.answers.windows(CONTINUE.len()).position(|w| w == CONTINUE) {
        trace.answers.drain(at..at + CONTINUE.len());
    }
    trace
}

#[track_caller]
pub(super) fn refused(head: &str, body: &str, status: u16) -> Trace {
    let input = [head.replace('\n', "\r\n").as_bytes(), body.as_bytes()].concat();
    let trace = everywhere(&input);
    assert_eq!(statuses(&trace.answers).unwrap(), [status], "{head:?}");
    assert!(trace.taken.is_empty(), "{head:?}");
    let text = String::from_utf8(trace.answers.clone()).unwrap();
    assert!(text.contains("Content-Type: application/problem+json\r\n"), "{text}");
    trace
}

#[test]
fn one_request_is_taken_once_at_every_split_and_answered_byte_for_byte() {
    let trace = everywhere(PLAIN);
    assert_eq!(trace.taken, [("/e".to_owned(), b"{\"e\":1}".to_vec())]);
    assert_eq!(trace.answers, ACCEPTED);
    assert_eq!(trace.end, End::Closed);
}

#[test]
fn ten_pipelined_requests_get_ten_answers() {
    let trace = everywhere(&PLAIN.repeat(10));
    assert_eq!(trace.taken.len(), 10);
    assert_eq!(trace.answers, ACCEPTED.repeat(10));
}

#[test]
fn many_answers_leave_in_several_goes_and_none_is_lost() {
    let trace = whole(&PLAIN.repeat(2_000));
    assert_eq!((trace.taken.len(), trace.answers.len()), (2_000, 2_000 * ACCEPTED.len()));
}

#[test]
fn lengths_that_vary_are_not_confused_by_what_came_before() {
    let mut input = Vec::new();
    let mut bodies = Vec::new();
    for length in [7, 0, 12, 100, 99, 1, 600, 7] {
        let body = vec![b'x'; length];
        input.extend_from_slice(
            format!("POST /e HTTP/1.1\r\nContent-Length: {length}\r\nHost: l\r\n\r\n").as_bytes(),
        );
        input.extend_from_slice(&body);
        bodies.push(("/e".to_owned(), body));
    }
    assert_eq!(everywhere(&input).taken, bodies);
}

#[test]
fn a_repeated_head_with_other_digits_is_judged_like_a_new_one() {
    let again = |length: &str| {
        let second =
            format!("POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: {length}\r\n\r\n1234567");
        statuses(&whole(&[PLAIN, second.as_bytes()].concat()).answers).unwrap()
    };
    for good in ["7", "07", "0000000000000000007"] {
        assert_eq!(again(good), [202, 202], "{good}");
    }
    for bad in ["", "+7", "-7", "7 7", "7,7", "0x7", "7.0", "00000000000000000007", "7\0"] {
        assert_eq!(again(bad), [202, 400], "{bad:?}");
    }
    for large in ["601", "9999999999999999999"] {
        assert_eq!(again(large), [202, 413], "{large}");
    }
}

#[test]
fn close_ends_the_connection_and_what_follows_is_not_taken() {
    let last =
        b"POST /e HTTP/1.1\r\nHost: l\r\nConnection: Foo, Close\r\nContent-Length: 1\r\n\r\n1";
    let trace = everywhere(&[PLAIN, last, PLAIN].concat());
    assert_eq!(trace.answers, [ACCEPTED, ACCEPTED_LAST].concat());
    assert_eq!((trace.taken.len(), trace.end), (2, End::Closed));
}

#[test]
fn chunked_bodies_are_taken_whole() {
    let input = b"POST /e HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: Chunked\r\n\r\n5;x\r\nhello\r\n1\r\n!\r\n0\r\nT: v\r\n\r\n";
    let trace = everywhere(&[input, PLAIN].concat());
    assert_eq!(trace.taken[0], ("/e".to_owned(), b"hello!".to_vec()));
    assert_eq!(trace.answers, ACCEPTED.repeat(2));
}

#[test]
fn a_client_that_asks_before_it_sends_is_told_once_to_go_on() {
    let head = b"POST /e HTTP/1.1\r\nHost: l\r\nExpect: 100-Continue\r\nContent-Length: 7\r\n\r\n";
    let asked = replay(LIMITS, [&head[..], b"{\"e\"", b":1}"].into_iter());
    assert_eq!(asked.answers, [CONTINUE, ACCEPTED].concat());
    let sent = replay(LIMITS, std::iter::once(&[&head[..], b"{\"e\":1}"].concat()[..]));
    assert_eq!(sent.answers, ACCEPTED);
    let begun = replay(LIMITS, [&[&head[..], b"{"].concat()[..], b"\"e\":1}"].into_iter());
    assert_eq!(begun.answers, ACCEPTED);
    everywhere(&[&head[..], b"{\"e\":1}", PLAIN].concat());
}

#[test]
fn what_two_readers_could_read_differently_is_refused_and_ends_the_connection() {
    let cases = [
        "POST /e HTTP/1.1\nHost: l\nContent-Length: 3\nTransfer-Encoding: chunked\n\n",
        "POST /e HTTP/1.1\nHost: l\nTransfer-Encoding: chunked\nContent-Length: 3\n\n",
        "POST /e HTTP/1.1\nHost: l\nContent-Length: 3\nContent-Length: 4\n\n",
        "POST /e HTTP/1.1\nHost: l\nContent-Length: 3\nContent-Length: 3\n\n",
        "POST /e HTTP/1.1\nHost: l\nContent-Length: 3, 3\n\n",
        "POST /e HTTP/1.1\nHost: l\nContent-Length: +3\n\n",
        "POST /e HTTP/1.1\nHost: l\nContent-Length: -3\n\n",
        "POST /e HTTP/1.1\nHost: l\nContent-Length: 0x3\n\n",
        "POST /e HTTP/1.1\nHost: l\nContent-Length: 3 3\n\n",
        "POST /e HTTP/1.1\nHost: l\nContent-Length: \n\n",
        "POST /e HTTP/1.1\nHost: l\nContent-Length: 99999999999999999999\n\n",
        "POST /e HTTP/1.1\nHost: l\nContent-Length : 3\n\n",
        "POST /e HTTP/1.1\nHost: l\n Content-Length: 3\n\n",
        "POST /e HTTP/1.1\nHost: l\nX: a\n b\nContent-Length: 3\n\n",
        "POST /e HTTP/1.1\nHost: l\nTransfer-Encoding: gzip, chunked\n\n",
        "POST /e HTTP/1.1\nHost: l\nTransfer-Encoding: chunked, identity\n\n",
        "POST /e HTTP/1.1\nHost: l\nTransfer-Encoding: identity\n\n",
        "POST /e HTTP/1.1\nHost: l\nTransfer-Encoding: xchunked\n\n",
        "POST /e HTTP/1.1\nHost: l\nTransfer-Encoding: \"chunked\"\n\n",
        "POST /e HTTP/1.1\nHost: l\nTransfer-Encoding: chunked\nTransfer-Encoding: chunked\n\n",
        "POST /e HTTP/1.1\nHost: l\nTransfer-Encoding:\x0bchunked\n\n",
        "POST /e HTTP/1.1\nHost: l\nTransfer_Encoding\n\n",
        "POST /e HTTP/1.1\nContent-Length: 3\n\n",
        "POST /e HTTP/1.1\nHost: l\nHost: l\nContent-Length: 3\n\n",
        "POST /e HTTP/1.1\nHost: l\rX: y\nContent-Length: 3\n\n",
        "POST /e HTTP/1.1\nHost: l\nX: a\0b\n\n",
        "POST /e  HTTP/1.1\nHost: l\n\n",
        "POST /e HTTP/1.1 \nHost: l\n\n",
        "POST /e HTTP/1.2\nHost: l\n\n",
        "POST /e http/1.1\nHost: l\n\n",
        " POST /e HTTP/1.1\nHost: l\n\n",
        "POST\t/e HTTP/1.1\nHost: l\n\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01",
        "\0\x01\x02\x03\n\n",
        "GET\n\n",
        "GET /v1/head HTTP/9.9\n\n",
        "{\"e\":1}\n",
    ];
    for head in cases {
        let trace =
            refused(head, "abcPOST /e HTTP/1.1\r\nHost: l\r\nContent-Length: 0\r\n\r\n", 400);
        assert_eq!(trace.end, End::Closed, "{head:?}");
        let text = String::from_utf8(trace.answers).unwrap();
        assert!(text.contains("Connection: close\r\n"), "{text}");
    }
}

#[test]
fn chunks_that_cannot_be_read_end_the_connection() {
    let head = "POST /e HTTP/1.1\nHost: l\nTransfer-Encoding: chunked\n\n";
    for (body, status) in [
        ("zz\r\nPOST", 400),
        ("3\nabc\r\n0\r\n\r\n", 400),
        ("3\r\nabcd\r\n0\r\n\r\n", 400),
        ("10000000000000000\r\n", 400),
        ("0\r\nfoo\r\n\r\n", 400),
    ] {
        assert_eq!(refused(head, body, status).end, End::Closed);
    }
}

#[test]
fn requests_that_are_refused_leave_the_connection_open() {
    let cases: [(&str, &str, u16); 8] = [
        ("POST /e?bad HTTP/1.1\nHost: l\nContent-Length: 3\n\n", "abc", 422),
        ("POST /e HTTP/1.1\nHost: l\nContent-Length: 3\nContent-Encoding: gzip\n\n", "abc", 415),
        ("POST /e HTTP/1.1\nHost: l\nContent-Length: 3\nIdempotency-Key: k\n\n", "abc", 422),
        ("POST /e HTTP/1.1\nHost: l\nContent-Length: 3\nExpect: tea\n\n", "abc", 417),
        ("POST /e HTTP/1.1\nHost: l\nContent-Length: 4\n\n", "!abc", 422),
        (
            "POST /e HTTP/1.1\nHost: l\nContent-Length: 3\nContent-Type: application/x-ndjson\n\n",
            "abc",
            400,
        ),
        (
            "POST /e?bad HTTP/1.1\nHost: l\nTransfer-Encoding: chunked\n\n",
            "3\r\nabc\r\n0\r\n\r\n",
            422,
        ),
        ("POST /e HTTP/1.1\nHost: l\nTransfer-Encoding: chunked\n\n", "3\r\n!bc\r\n0\r\n\r\n", 422),
    ];
    for (head, body, status) in cases {
        let input = [head.replace('\n', "\r\n").as_bytes(), body.as_bytes(), PLAIN].concat();
        let trace = everywhere(&input);
        // A client with an expectation may or may not send the body: the connection must be closed.
        let expected: &[u16] = if status == 417 { &[417] } else { &[status, 202] };
        assert_eq!(statuses(&trace.answers).unwrap(), expected, "{head:?}");
        assert_eq!(trace.taken.len(), expected.len() - 1);
    }
    let named = refused(cases[2].0, "abc", 422);
    assert!(String::from_utf8(named.answers).unwrap().contains(r#""field":"Idempotency-Key""#));
}

#[test]
fn bodies_beyond_their_limit_are_refused_and_small_ones_skipped() {
    let sized = |length: usize| {
        let head = format!("POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: {length}\r\n\r\n");
        [head.into_bytes(), vec![b'x'; length]].concat()
    };
    let fits = everywhere(&[&sized(LARGEST_BODY)[..], PLAIN].concat());
    assert_eq!(statuses(&fits.answers).unwrap(), [202, 202]);
    let over = everywhere(&[&sized(LARGEST_BODY + 1)[..], PLAIN].concat());
    assert_eq!(statuses(&over.answers).unwrap(), [413, 202]);
    let far = whole(&[&sized(3 << 20)[..], PLAIN].concat());
    assert_eq!((statuses(&far.answers).unwrap(), far.end), (vec![413], End::Closed));
    let mut chunks = b"POST /e HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..7 {
        chunks.extend_from_slice(format!("64\r\n{}\r\n", "x".repeat(100)).as_bytes());
    }
    chunks.extend_from_slice(b"0\r\n\r\n");
    let over = everywhere(&[&chunks[..], PLAIN].concat());
    assert_eq!(statuses(&over.answers).unwrap(), [413, 202]);
}

#[test]
fn heads_beyond_their_limits_are_refused() {
    let many: String = (0..13).map(|i| format!("X-{i}: y\r\n")).collect();
    let trace = everywhere(format!("POST /e HTTP/1.1\r\n{many}\r\n").as_bytes());
    assert_eq!(statuses(&trace.answers).unwrap(), [431]);
    let long = format!("POST /e HTTP/1.1\r\nHost: l\r\nX: {}\r\n\r\n", "y".repeat(8_192));
    for step in [1, 100, 8_192, 10_000] {
        let trace = replay(LIMITS, long.as_bytes().chunks(step));
        assert_eq!(statuses(&trace.answers).unwrap(), [431], "step {step}");
        assert_eq!(trace.end, End::Closed);
    }
    let url = format!("POST /e?{} HTTP/1.1\r\nHost: l\r\n\r\n", "y".repeat(5_000));
    for step in [1, 100, 10_000] {
        let trace = replay(LIMITS, url.as_bytes().chunks(step));
        assert_eq!(statuses(&trace.answers).unwrap(), [414], "step {step}");
    }
    let other = format!("GET /{} HTTP/1.1\r\n\r\n", "y".repeat(5_000));
    for step in [1, 100, 10_000] {
        let trace = replay(LIMITS, other.as_bytes().chunks(step));
        assert_eq!(trace.end, End::Left(other.clone().into_bytes()), "step {step}");
    }
}

#[test]
fn everything_else_is_handed_over_untouched_behind_the_answers_before_it() {
    for foreign in [
        "GET /health HTTP/1.1\r\nHost: l\r\n\r\n",
        "GET /health HTTP/1.1\r\n",
        "POST /v1/append HTTP/1.1\r\nHost: l\r\nContent-Length: 100\r\n\r\nabc",
        "POST /e HTTP/1.0\r\n\r\n",
        "PUT /e HTTP/1.1\r\n\r\n",
        "GET /e HTTP/1.1\r\n\0bad: header\r\n\r\n",
        "POST /e HTTP/1.1\r\nHost: l\r\nWELLSPRING-Node: v1\r\nContent-Length: 1\r\n\r\n1",
        "POST /e HTTP/1.1\r\nHost: l\r\nwellspring-min-system-position: 1\r\n\r\n",
        "POST /e HTTP/1.1\r\nHost: l\r\nWellspring-History: 4f1c09d2a87b4e6f\r\n\r\n",
    ] {
        let trace = everywhere(&[PLAIN, PLAIN, foreign.as_bytes(), PLAIN].concat());
        let rest = [foreign.as_bytes(), PLAIN].concat();
        assert_eq!(trace.end, End::Left(rest), "{foreign:?}");
        assert_eq!(trace.answers, ACCEPTED.repeat(2));
    }
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    assert_eq!(everywhere(preface).end, End::Left(preface.to_vec()));
    let late = everywhere(&[PLAIN, preface].concat());
    assert_eq!(statuses(&late.answers).unwrap(), [202, 400], "a preface comes first or not at all");
}

#[test]
fn durable_answers_wait_and_stay_in_order() {
    let durable = b"POST /e?durable HTTP/1.1\r\nHost: l\r\nContent-Length: 1\r\n\r\n1";
    let mut shared = shared(LIMITS);
    let mut session = Session::new(None);
    let input = [durable, PLAIN, durable, &b"GET /health HTTP/1.1\r\n"[..]].concat();
    assert_eq!(session.receive(&mut shared, &input), NextStep::Wait, "all taken, none answered");
    assert_eq!((shared.guards.script.borrow().taken.len(), shared.out.len()), (3, 0));
    shared.guards.script.borrow_mut().stored = 1;
    assert_eq!(session.settle(&mut shared), NextStep::Wait);
    assert_eq!(shared.out, ACCEPTED.repeat(2));
    shared.guards.script.borrow_mut().stored = 2;
    assert_eq!(session.settle(&mut shared), NextStep::Leave);
    assert_eq!(shared.out, ACCEPTED.repeat(3));
    let trace = everywhere(&durable.repeat(20));
    let statuses = statuses(&trace.answers).unwrap();
    assert_eq!(statuses.len(), 20);
    assert_eq!(statuses.iter().position(|&s| s == 503), Some(13), "one failed, at its place");
    assert_eq!(whole(&durable.repeat(200)).taken.len(), 200, "more than may wait at once");
    // Ready answers behind a pending one are bounded, too.
    let mut shared = super::replay::shared(LIMITS);
    let mut session = Session::new(None);
    assert_eq!(session.receive(&mut shared, durable), NextStep::More);
    assert_eq!(session.receive(&mut shared, &PLAIN.repeat(1_000)), NextStep::Wait);
    assert!(
        (200..300).contains(&shared.guards.script.borrow().taken.len()),
        "{}",
        shared.guards.script.borrow().taken.len()
    );
    shared.guards.script.borrow_mut().stored = 1;
    assert_eq!(session.settle(&mut shared), NextStep::Flush);
    while session.resume(&mut shared) == NextStep::Flush {
        shared.out.clear();
    }
    assert_eq!(shared.guards.script.borrow().taken.len(), 1_001);
}

#[test]
fn a_request_without_room_is_kept_and_those_behind_it_wait() {
    let full = b"POST /e?full HTTP/1.1\r\nHost: l\r\nContent-Length: 1\r\n\r\n1";
    let trace = everywhere(&[PLAIN, full, PLAIN, full].concat());
    let targets: Vec<&str> = trace.taken.iter().map(|(target, _)| target.as_str()).collect();
    assert_eq!(targets, ["/e", "/e?full", "/e", "/e?full"]);
    assert_eq!(trace.answers, ACCEPTED.repeat(4));
    // Another connection does not overtake while the target is known to be full.
    let mut shared = shared(LIMITS);
    let (mut first, mut second) = (Session::new(None), Session::new(None));
    assert_eq!(first.receive(&mut shared, full), NextStep::Stalled);
    shared.guards.script.borrow_mut().room = 1;
    assert_eq!(second.receive(&mut shared, full), NextStep::Stalled);
    shared.full.clear();
    assert_eq!(first.retry(&mut shared), NextStep::Flush);
    assert_eq!(second.retry(&mut shared), NextStep::Stalled);
    assert_eq!(shared.out, ACCEPTED);
}

#[test]
fn late_clients_are_told_and_idle_ones_are_not() {
    const NONE: [u16; 0] = [];
    let expire = |input: &[u8], phase: Phase| {
        let mut shared = shared(LIMITS);
        let mut session = Session::new(None);
        session.receive(&mut shared, input);
        assert_eq!(session.phase(), phase);
        shared.out.clear();
        assert_eq!(session.expire(&mut shared), NextStep::End);
        statuses(&shared.out).unwrap()
    };
    assert_eq!(expire(b"", Phase::Idle), NONE);
    assert_eq!(expire(PLAIN, Phase::Idle), NONE);
    assert_eq!(expire(b"PO", Phase::Head), [408]);
    assert_eq!(expire(&PLAIN[..30], Phase::Head), [408]);
    assert_eq!(expire(&PLAIN[..50], Phase::Body), [408]);
    let skipped = b"POST /e?bad HTTP/1.1\r\nHost: l\r\nContent-Length: 7\r\n\r\nabc";
    assert_eq!(expire(skipped, Phase::Body), NONE, "its answer is sent");
}

#[test]
fn when_the_server_stops_what_was_read_is_answered_and_the_last_answer_says_so() {
    let mut shared = shared(LIMITS);
    shared.stopping = true;
    let mut session = Session::new(None);
    assert_eq!(session.receive(&mut shared, &PLAIN.repeat(3)), NextStep::End);
    assert_eq!(shared.out, [&ACCEPTED.repeat(2)[..], ACCEPTED_LAST].concat());
    shared.out.clear();
    let mut session = Session::new(None);
    assert_eq!(session.receive(&mut shared, &PLAIN[..50]), NextStep::More, "in a request");
    assert_eq!(session.receive(&mut shared, &PLAIN[50..]), NextStep::End);
    assert_eq!(shared.out, ACCEPTED_LAST);
    shared.out.clear();
    let durable = b"POST /e?durable HTTP/1.1\r\nHost: l\r\nContent-Length: 1\r\n\r\n1";
    let mut session = Session::new(None);
    assert_eq!(session.receive(&mut shared, durable), NextStep::More);
    shared.guards.script.borrow_mut().stored = 1;
    assert_eq!(session.settle(&mut shared), NextStep::End);
    assert_eq!(shared.out, ACCEPTED_LAST);
}

#[test]
fn memory_for_bodies_is_charged_and_given_back() {
    let mut shared = shared(LIMITS);
    let stats = std::sync::Arc::new(crate::stats::Stats::new(1, Vec::new(), 0));
    shared.memory = BodyMemory::new(&stats, 60 << 10);
    let mut charge = Charge::default();
    charge.raise(&shared.memory, 16 << 10).unwrap();
    assert_eq!(stats.body_bytes.load(Relaxed), 0, "small ones are free");
    charge.raise(&shared.memory, 40 << 10).unwrap();
    assert_eq!(stats.body_bytes.load(Relaxed), 40 << 10);
    let mut other = Charge::default();
    let refused = other.raise(&shared.memory, 21 << 10).unwrap_err();
    assert_eq!(refused.kind.status, 503);
    drop(charge);
    assert_eq!(stats.body_bytes.load(Relaxed), 0);
}

#[test]
fn long_heads_that_do_not_end_are_charged_like_bodies() {
    let mut shared = shared(HeadLimits { head_bytes: 64 << 10, ..LIMITS });
    let stats = std::sync::Arc::new(crate::stats::Stats::new(1, Vec::new(), 0));
    shared.memory = BodyMemory::new(&stats, 60 << 10);
    let head = format!("POST /e HTTP/1.1\r\nHost: l\r\nX: {}", "x".repeat(40 << 10));
    let mut first = Session::new(None);
    assert_eq!(first.receive(&mut shared, head.as_bytes()), NextStep::More);
    assert!(stats.body_bytes.load(Relaxed) >= 40 << 10);
    let mut second = Session::new(None);
    assert_eq!(second.receive(&mut shared, head.as_bytes()), NextStep::End);
    assert_eq!(statuses(&std::mem::take(&mut shared.out)).unwrap(), [503]);
    // The first continues, and returns its memory.
    assert_eq!(first.receive(&mut shared, b"\r\nContent-Length: 1\r\n\r\n1"), NextStep::More);
    assert_eq!(shared.out, ACCEPTED);
    assert_eq!(stats.body_bytes.load(Relaxed), 0);
}
