//! HTTP/2 in clear.

use crate::plans::{measured, to, try_run, with_source};
use crate::scripted::{GOAWAY, RST_STREAM, Reply, framed, ok, serve};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wellspring_load::engine::{RunError, spawn};
use wellspring_load::null_server::NullServer;
use wellspring_load::plan::{Arrivals, Load, Protocol, Stop};
use wellspring_load::result::{ErrorKind, Finish};
use wellspring_load::scenario::{FixedSource, Statuses};
use wellspring_load::workload::{
    Answer, Endpoint, Judgement, Needs, Next, OwnedRequest, Request, Source, Workload,
};

#[test]
fn many_streams_of_many_connections_are_answered_without_a_failure() {
    let server = NullServer::start(None).unwrap();
    let mut plan = to(server.address());
    plan.settings.connections = 5;
    plan.settings.streams = 16;
    plan.settings.workers = 2;
    plan.settings.phases = true;
    let (measured, total) = measured(&plan);
    assert_eq!(measured.run.failures(), 0, "{:?}", measured.first_error);
    assert!(total.counters.successes > 1000, "{}", total.counters.successes);
    assert_eq!(total.counters.connections_opened, 5);
    assert_eq!(total.counters.statuses.keys().collect::<Vec<_>>(), [&200]);
    // Two frames of an answer are 25 bytes; the first on a connection has one more, and settings.
    let bytes = total.counters.bytes_received;
    assert!(bytes >= 25 * total.counters.successes, "{bytes}");
    let phases = total.phases.unwrap();
    assert_eq!(phases.first_byte.count(), total.counters.successes);
}

#[test]
fn a_count_is_kept_to_the_request() {
    let server = NullServer::start(None).unwrap();
    let mut plan = to(server.address());
    plan.settings.streams = 7;
    plan.settings.stop = Stop { requests: Some(1234), duration_ms: None };
    let (measured, total) = measured(&plan);
    assert_eq!((total.counters.sent, total.counters.successes), (1234, 1234));
    assert_eq!(measured.run.finish, Finish::Count);
}

#[test]
fn an_open_loop_keeps_its_rate_over_streams() {
    let server = NullServer::start(None).unwrap();
    let mut plan = to(server.address());
    plan.settings.streams = 8;
    plan.settings.load = Load::Open { rate_per_s: 2000.0, arrivals: Arrivals::Poisson };
    let (measured, total) = measured(&plan);
    let open_loop = measured.run.open_loop.unwrap();
    assert_eq!(open_loop.sent + open_loop.never_sent, open_loop.due);
    assert!((250..=550).contains(&open_loop.due), "{open_loop:?}");
    assert_eq!(total.counters.successes, open_loop.sent);
}

#[test]
fn connections_without_keep_alive_are_reopened_without_losses() {
    let server = NullServer::start(None).unwrap();
    for streams in [1, 3] {
        let mut plan = to(server.address());
        plan.settings.streams = streams;
        plan.settings.keep_alive = false;
        plan.settings.stop = Stop { requests: Some(60), duration_ms: None };
        let (measured, total) = measured(&plan);
        assert_eq!(measured.run.failures(), 0, "{:?}", measured.first_error);
        let opened = total.counters.connections_opened;
        assert!(opened >= 60 / u64::from(streams), "{opened} with {streams} streams");
    }
}

#[test]
fn bodies_larger_than_every_window_arrive() {
    let server = NullServer::start(None).unwrap();
    let body = vec![b'x'; 3 << 20];
    let request =
        OwnedRequest { method: "POST".into(), path: "/".into(), body, ..Default::default() };
    let source = FixedSource::new(request, Statuses::default()).unwrap();
    let mut plan = with_source(&format!("http://{}/", server.address()), Arc::new(source));
    plan.settings.streams = 4;
    plan.settings.stop = Stop { requests: Some(20), duration_ms: None };
    let (measured, total) = measured(&plan);
    assert_eq!((measured.run.failures(), total.counters.successes), (0, 20));
}

/// Demands that each answer is to be read as the null server wrote it.
struct Reader;

impl Source for Reader {
    fn endpoints(&self) -> Vec<Endpoint> {
        vec![Endpoint { name: "all".into(), needs: Needs { head: true, body: true } }]
    }

    fn name(&self) -> String {
        "reader".into()
    }

    fn identity(&self) -> Vec<u8> {
        Vec::new()
    }

    fn workload(&self, _worker: u32, _workers: u32, _seed: u64) -> Box<dyn Workload> {
        Box::new(Reads { path: String::new(), number: 0 })
    }
}

struct Reads {
    path: String,
    number: u64,
}

impl Workload for Reads {
    fn next(&mut self, _user: u32) -> Next<'_> {
        self.number += 1;
        self.path = format!("/{}", self.number);
        let (path, headers, body) = (self.path.as_str(), &[][..], &b""[..]);
        Next::Send(Request { endpoint: 0, fixed: None, method: "GET", path, headers, body })
    }

    fn judge(&mut self, _user: u32, answer: &Answer<'_>) -> Judgement {
        let right = answer.body == b"ok" && answer.head.get("content-length") == Some("2");
        if right { Judgement::Success } else { Judgement::FailedCheck(0) }
    }

    fn lost(&mut self, _user: u32) {}
}

#[test]
fn heads_and_bodies_reach_the_workload() {
    let server = NullServer::start(None).unwrap();
    let mut plan = with_source(&format!("http://{}/", server.address()), Arc::new(Reader));
    plan.settings.streams = 5;
    plan.settings.stop = Stop { requests: Some(500), duration_ms: None };
    let (_, total) = measured(&plan);
    assert_eq!(total.counters.successes, 500, "{:?}", total.counters);
}

/// One stream at a time, at most.
const ONE_STREAM: &[u8] = &[0, 3, 0, 0, 0, 1];

#[test]
fn a_server_that_takes_one_stream_gets_one_at_a_time() {
    let server = serve(ONE_STREAM, |_, stream| Reply::Send(ok(stream)));
    let mut plan = to(server.address);
    plan.settings.streams = 6;
    plan.settings.stop = Stop { requests: Some(300), duration_ms: None };
    let (measured, total) = measured(&plan);
    assert_eq!((measured.run.failures(), total.counters.successes), (0, 300));
    assert_eq!(total.counters.connections_opened, 1);
}

#[test]
fn a_server_that_leaves_in_order_costs_a_connection_and_no_answer() {
    let server = serve(&[], |number, stream| {
        let mut bytes = ok(stream);
        if number == 10 {
            let last = [stream.to_be_bytes(), [0; 4]].concat();
            bytes.splice(0..0, framed(GOAWAY, 0, 0, &last));
        }
        Reply::Send(bytes)
    });
    let mut plan = to(server.address);
    plan.settings.stop = Stop { requests: Some(95), duration_ms: None };
    let (run, total) = measured(&plan);
    assert_eq!((run.run.failures(), total.counters.successes), (0, 95), "{:?}", run.first_error);
    assert_eq!(total.counters.connections_opened, 10);
    assert_eq!(total.counters.unprocessed, 0);
    // With more streams some are on their way when the server leaves: others take their place.
    plan.settings.streams = 4;
    let (run, total) = measured(&plan);
    let counters = &total.counters;
    assert_eq!(
        (run.run.failures(), counters.successes, counters.sent),
        (0, 95, 95),
        "{counters:?}"
    );
    assert!(counters.unprocessed > 0, "{counters:?}");
    // In open loop each is due only once, and answered.
    plan.settings.load = Load::Open { rate_per_s: 2_000.0, arrivals: Arrivals::Constant };
    plan.settings.stop = Stop { requests: None, duration_ms: Some(300) };
    let (run, total) = measured(&plan);
    let open_loop = run.run.open_loop.clone().unwrap_or_default();
    let counters = &total.counters;
    assert_eq!((open_loop.due, open_loop.sent, counters.sent), (600, 600, 600), "{counters:?}");
    assert_eq!((run.run.failures(), counters.successes), (0, 600), "{counters:?}");
}

#[test]
fn a_stream_without_an_answer_times_out_and_the_connection_goes_on() {
    let server = serve(&[], |number, stream| {
        Reply::Send(if number % 50 == 3 { Vec::new() } else { ok(stream) })
    });
    let mut plan = to(server.address);
    plan.settings.streams = 3;
    plan.settings.timeout_ms = 60;
    plan.settings.stop = Stop { requests: Some(200), duration_ms: None };
    let (_, total) = measured(&plan);
    assert_eq!(total.counters.errors.get(&ErrorKind::Timeout), Some(&4), "{:?}", total.counters);
    assert_eq!((total.counters.successes, total.counters.connections_opened), (196, 1));
    assert!(server.resets.load(Ordering::Relaxed) >= 3);
}

#[test]
fn a_stream_that_is_reset_is_lost_and_named() {
    let server = serve(&[], |number, stream| match number % 10 {
        0 => Reply::Send(framed(RST_STREAM, 0, stream, &[0, 0, 0, 7])),
        _ => Reply::Send(ok(stream)),
    });
    let mut plan = to(server.address);
    plan.settings.streams = 2;
    plan.settings.stop = Stop { requests: Some(100), duration_ms: None };
    let (measured, total) = measured(&plan);
    assert_eq!(total.counters.errors.get(&ErrorKind::Reset), Some(&10));
    assert_eq!((total.counters.successes, total.counters.connections_opened), (90, 1));
    assert!(measured.first_error.unwrap().contains("REFUSED_STREAM"));
}

#[test]
fn an_answer_that_is_cut_off_is_never_a_success() {
    // A head that announces three bytes, of which two come before the connection ends.
    let server = serve(&[], |number, stream| {
        let mut bytes = framed(1, 4, stream, &[0x88, 0x0f, 0x0d, 1, b'3']);
        bytes.extend(framed(0, 0, stream, b"ab"));
        if number < 3 { Reply::Send(ok(stream)) } else { Reply::SendAndClose(bytes) }
    });
    let mut plan = to(server.address);
    plan.settings.stop = Stop { requests: Some(30), duration_ms: None };
    let (_, total) = measured(&plan);
    assert_eq!(total.counters.errors.values().sum::<u64>(), 10, "{:?}", total.counters);
    assert_eq!(total.counters.successes, 20);
}

#[test]
fn a_server_of_http_1_is_found_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    spawn("http1-only", move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.read(&mut [0; 1024]);
            let _ = socket
                .write_all(b"HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Length: 0\r\n\r\n");
        }
    })
    .unwrap();
    let mut plan = to(address);
    plan.settings.stop = Stop { requests: Some(5), duration_ms: Some(500) };
    let (measured, total) = measured(&plan);
    assert_eq!(total.counters.successes, 0);
    assert!(total.counters.errors.contains_key(&ErrorKind::Protocol), "{:?}", total.counters);
    assert!(measured.first_error.unwrap().contains("does not speak HTTP/2"));
}

#[test]
fn streams_are_for_http_2_alone() {
    let server = NullServer::start(None).unwrap();
    let mut plan = to(server.address());
    plan.settings.protocol = Protocol::Http1;
    plan.settings.streams = 2;
    assert!(matches!(try_run(&plan), Err(RunError::Settings(_))));
    plan.settings.streams = 1;
    let (measured, _) = measured(&plan);
    assert_eq!(measured.run.failures(), 0);
}
