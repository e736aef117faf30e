//! Tests of sending parts to a server with arbitrary answers.

use super::*;
use crate::import::parts::LineNumbers;
use crate::server::Server;
use wellspring_client::test_server::{Reply, TestServer};
use wellspring_client::trust::Trust;

fn part() -> Part {
    Part {
        body: b"{}\n{}\n".to_vec(),
        lines: 2,
        numbers: LineNumbers::Each(vec![10, 12]),
        taken_bytes: 0,
        is_last: true,
    }
}

fn send(server: &TestServer) -> Result<PartReply, Box<Refusal>> {
    send_with(server, None)
}

fn send_with(
    server: &TestServer,
    recorded_at: Option<RecordedAt>,
) -> Result<PartReply, Box<Refusal>> {
    let server = Server {
        url: server.url().to_owned(),
        trust: Trust::default(),
        credentials: Default::default(),
    };
    let target = Target { server, log: "main".to_owned() };
    let terms = Terms { batch: 7, recorded_at, file: "a.csv".to_owned(), ..Terms::default() };
    Sender::new(&target, terms).unwrap().send(&part(), "0.x", &mut |_| ())
}

#[test]
fn temporary_failures_are_retried() {
    let server = TestServer::start(|request, earlier| {
        assert_eq!(request.path, "/v1/logs/main/import?batch=7&recorded_at=keep&continues=0.x");
        match earlier {
            0 => Reply::json(503, r#"{"detail":"busy","retry":1}"#),
            1 => Reply::raw("HTTP/1.1 200 OK\r\nContent-Le").then_hang_up(),
            2 => Reply::json(429, "").then_hang_up(),
            _ => Reply::json(200, r#"{"lines":2,"added":1,"known":1,"next":"n"}"#),
        }
    });
    let settled = send(&server).unwrap();
    assert_eq!((settled.added, settled.known, settled.next.as_str()), (1, 1, "n"));
}

#[test]
fn retries_are_bounded() {
    let server = TestServer::start(|_, _| Reply::json(503, r#"{"detail":"busy"}"#));
    let failure = send(&server).unwrap_err().failure;
    assert_eq!(failure.code, Code::Unavailable);
    assert!(failure.message.contains("busy"), "{}", failure.message);
}

#[test]
fn an_import_does_not_wait_for_a_full_disk() {
    let server = TestServer::start(|_, earlier| {
        assert_eq!(earlier, 0);
        let body = r#"{"type":"/problems/storage-full","detail":"full","retry":30,"durable_lines":1,"added":1,"durable_last":9}"#;
        Reply::json(503, body)
    });
    let refusal = send(&server).unwrap_err();
    assert_eq!(refusal.failure.code, Code::Unavailable);
    assert_eq!((refusal.settled.lines, refusal.settled.last), (1, Some(9)));
}

#[test]
fn times_that_cannot_be_kept_become_metadata_unless_they_have_to_be_kept() {
    let early = r#"{"type":"/problems/invalid","detail":"line 2: recorded_at is before X. Import","reason":"recorded_at is before X","field":"recorded_at","line":2,"durable_lines":1,"added":1}"#;
    let serve = move || {
        TestServer::start(move |request, _| {
            if request.path.contains("recorded_at=metadata") {
                Reply::json(200, r#"{"lines":2,"added":1,"known":1,"next":"n"}"#)
            } else {
                Reply::json(422, early)
            }
        })
    };
    let settled = send(&serve()).unwrap();
    assert_eq!(
        (settled.added, settled.known),
        (2, 0),
        "each event is counted as what it was first"
    );
    let refusal = send_with(&serve(), Some(RecordedAt::Keep)).unwrap_err();
    assert_eq!((refusal.failure.code, refusal.settled.added), (Code::Data, 1));
    let told = refusal.failure.message;
    assert!(told.starts_with("a.csv, line 12: recorded_at is before X. Import into"), "{told}");
}

#[test]
fn what_is_wrong_with_a_time_is_a_whole_sentence() {
    let no_time = r#"{"type":"/problems/invalid","detail":"line 2: recorded_at must be a moment, e.g. 2026-01-01T00:00:00Z","field":"recorded_at","line":2}"#;
    let server = TestServer::start(move |_, _| Reply::json(422, no_time));
    let told = send_with(&server, Some(RecordedAt::Keep)).unwrap_err().failure.message;
    assert!(told.contains("moment, e.g. 2026-01-01T00:00:00Z. Correct the line"), "{told}");
}

#[test]
fn refusals_speak_of_lines() {
    for (body, code, word) in [
        (r#"{"detail":"line 2: bad","line":2}"#, Code::Data, "a.csv, line 12: bad. Correct"),
        (r#"{"type":"/problems/import-changed","line":2}"#, Code::Data, "line 12"),
        (
            r#"{"type":"/problems/import-changed","line":2,"detail":"line 2: changed"}"#,
            Code::Data,
            "line 12: changed",
        ),
        (r#"{"type":"/problems/log-not-found"}"#, Code::Usage, "log main does not exist"),
        (r#"{"field":"label"}"#, Code::Data, "lines 10 to 12"),
    ] {
        let server = TestServer::start(move |_, _| Reply::json(422, body));
        let failure = send(&server).unwrap_err().failure;
        assert_eq!(failure.code, code);
        assert!(failure.message.contains(word), "{}", failure.message);
    }
}
