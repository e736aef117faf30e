//! HTTP/1.1 servers that end connections between requests without announcing it.

use crate::plans::{measured, to};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use wellspring_load::engine::spawn;
use wellspring_load::plan::{Protocol, Stop};

/// When a connection ends.
#[derive(Clone, Copy)]
enum End {
    /// In the same moment as its last answer.
    WithAnAnswer,
    /// When the next request has come.
    WithARequest,
}

/// A server that ends each connection after so many answers, for the rest of the test process.
fn serve(answers: u32, end: End) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    spawn("unannounced", move || {
        for socket in listener.incoming().flatten() {
            let _ = spawn("unannounced-peer", move || answer(socket, answers, end));
        }
    })
    .unwrap();
    address
}

fn answer(mut socket: TcpStream, answers: u32, end: End) {
    let requests = answers + u32::from(matches!(end, End::WithARequest));
    for number in 0..requests {
        let mut request = [0; 4096];
        if !matches!(socket.read(&mut request), Ok(1..)) {
            return;
        }
        if number == answers {
            return;
        }
        if socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

/// Not one request is sent over a connection whose end had come. That the end may come later than
/// the request is written stays possible: such a request is lost, and told as that.
#[test]
fn requests_over_connections_that_have_ended_are_sent_over_others() {
    for answers in [1, 10] {
        let mut plan = to(serve(answers, End::WithAnAnswer));
        plan.settings.protocol = Protocol::Http1;
        plan.settings.streams = 1;
        plan.settings.connections = 2;
        plan.settings.stop = Stop { requests: Some(400), duration_ms: None };
        let (run, total) = measured(&plan);
        let counters = &total.counters;
        assert_eq!(counters.successes + run.run.failures(), 400, "{counters:?}");
        assert!(counters.unprocessed > 0, "{counters:?}");
        assert!(counters.crossed <= run.run.failures(), "{counters:?}");
        println!("{answers} answers a connection: {counters:?}");
    }
}

#[test]
fn requests_that_cross_the_end_of_a_used_connection_are_told_apart() {
    for (answers, all_cross) in [(3, true), (0, false)] {
        let mut plan = to(serve(answers, End::WithARequest));
        plan.settings.protocol = Protocol::Http1;
        plan.settings.streams = 1;
        plan.settings.connections = 2;
        plan.settings.stop = Stop { requests: Some(80), duration_ms: None };
        let (run, total) = measured(&plan);
        let (counters, failures) = (&total.counters, run.run.failures());
        assert!(failures > 0, "{counters:?}");
        // A connection that has brought nothing ends for another reason.
        assert_eq!(counters.crossed, if all_cross { failures } else { 0 }, "{counters:?}");
    }
}
