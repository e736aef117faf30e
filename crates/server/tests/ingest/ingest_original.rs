//! The original's load generator sends one fixed request of 55 bytes and counts every read as an
//! answer. Against this server its count is the number of events stored.

use crate::account::{Account, count_of};
use crate::server::BOTH_LOOPS;
use crate::server::Server;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use wellspring_patience::PATIENCE;

const REQUEST: &[u8; 55] = b"POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: 7\r\n\r\n{\"e\":1}";
/// The longest answer in bytes that such a client certainly reads in one piece.
const MOST_ANSWER_BYTES: usize = 256;
const CONNECTIONS: u64 = 4;
const REQUESTS: u64 = 1_500;

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// One request, one read. Returns what the original would report as its number of answers.
fn count_reads(address: SocketAddr) -> u64 {
    let mut stream = connect(address);
    let mut reads = 0;
    let mut buffer = [0; 4096];
    for n in 0..REQUESTS {
        stream.write_all(REQUEST).unwrap();
        let len = stream.read(&mut buffer).unwrap();
        reads += 1;
        let text = String::from_utf8_lossy(&buffer[..len]);
        assert!(len <= MOST_ANSWER_BYTES, "{n}: {len} bytes: {text}");
        assert!(text.starts_with("HTTP/1.1 202 Accepted\r\n"), "{n}: {text}");
        assert!(text.ends_with("\r\n\r\n{\"ok\":true}"), "{n}: a read is a whole answer: {text}");
    }
    // Nothing is left that a later read would count.
    stream.set_nonblocking(true).unwrap();
    assert!(stream.read(&mut buffer).is_err(), "there is more than one answer a request");
    reads
}

#[test]
fn its_client_counts_as_many_answers_as_events_are_stored() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let address = server.address;
        let clients: Vec<_> =
            (0..CONNECTIONS).map(|_| std::thread::spawn(move || count_reads(address))).collect();
        let reads: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
        assert_eq!(reads, CONNECTIONS * REQUESTS);
        let account = Account::at_rest(&server, "main");
        assert_eq!((account.accepted.events, account.stored.events), (reads, reads));
        assert_eq!(count_of(&server, "main", "Ingested"), reads);
    }
}
