//! A server that writes each answer in two pieces and leaves Nagle's algorithm on.

use crate::plans::{measured, to};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use wellspring_load::check;
use wellspring_load::engine::spawn;
use wellspring_load::plan::{Protocol, Stop};
use wellspring_load::result::{CheckId, FORMAT, Finding, Outcome, Report, Step};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Nagle {
    On,
    Off,
}

/// A server for the rest of the test process.
fn serve(nagle: Nagle) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    spawn("two-pieces", move || {
        for socket in listener.incoming().flatten() {
            let _ = spawn("two-pieces-peer", move || converse(socket, nagle));
        }
    })
    .unwrap();
    address
}

fn converse(mut socket: TcpStream, nagle: Nagle) -> std::io::Result<()> {
    socket.set_nodelay(nagle == Nagle::Off)?;
    let mut buffer = [0; 4096];
    // A request without a body is small enough to come at once.
    while socket.read(&mut buffer)? > 0 {
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")?;
        socket.write_all(b"ok")?;
    }
    Ok(())
}

/// What the check says after so many requests over one connection.
fn said(nagle: Nagle, requests: u64) -> Finding {
    let mut plan = to(serve(nagle));
    plan.settings.protocol = Protocol::Http1;
    plan.settings.stop = Stop { requests: Some(requests), duration_ms: None };
    let (measured, total) = measured(&plan);
    assert_eq!(total.counters.successes, requests);
    let step = Step { name: "c=1".into(), settings: plan.settings, runs: vec![measured.run] };
    let mut report = Report {
        format: FORMAT.into(),
        tool: "test".into(),
        title: "two pieces".into(),
        started_unix_us: 0,
        command: Vec::new(),
        environment: Default::default(),
        steps: vec![step],
        findings: Vec::new(),
        thresholds: Vec::new(),
        verdict: None,
        search: None,
    };
    check::apply(&mut report, &[]);
    report.findings.into_iter().find(|finding| finding.check == CheckId(19)).unwrap()
}

#[test]
fn answers_in_two_pieces_with_nagles_algorithm_are_explained() {
    let finding = said(Nagle::On, 60);
    assert_eq!(finding.outcome, Outcome::Note, "{finding:?}");
    assert!(finding.sentence.contains("TCP_NODELAY"), "{finding:?}");
    let finding = said(Nagle::Off, 200);
    assert_eq!(finding.outcome, Outcome::Passed, "{finding:?}");
}
