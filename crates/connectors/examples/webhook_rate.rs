//! Measures how many webhooks per second one sink delivers to a local receiver that answers at
//! once.
//!
//! ```text
//! cargo run --release -p wellspring-connectors --example webhook_rate [EVENTS [IN_FLIGHT]]
//! ```
//!
//! Events have 1,000 different keys and 150 bytes of JSON; requests are signed. The log, the sink
//! and the receiver share the processors.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use wellspring_connectors::sink::{DeliveryEnd, Destination as _, PayloadFormat, WebhookTarget};
use wellspring_connectors::webhook::{WebhookDestination, WebhookDestinationSettings};
use wellspring_connectors::{Control, Counters, Cursor, Status};
use wellspring_log::{Append, Clock as _, EncodedEvents, Log, Options, SystemClock};
use wellspring_types::{Event, Query};
use zeroize::Zeroizing;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number =
        |default: u64| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (events, in_flight) = (number(200_000), number(64));
    let dir = tempfile::tempdir().expect("a folder");
    let log = Log::open(dir.path(), Options::default()).expect("a log");
    fill(&log, events);
    let status = Arc::new(Status::default());
    let settings = WebhookDestinationSettings {
        sink_name: "rate".into(),
        identity: "rate".into(),
        log_name: "main".into(),
        history: None,
        target: WebhookTarget {
            url: format!("http://{}/hook", receiver()),
            secret: Some("signing".into()),
            headers: Vec::new(),
            secret_headers: Vec::new(),
            ca_file: None,
            in_flight: in_flight as usize,
            timeout_ms: 10_000,
            max_tries: None,
            dead_letter_log: None,
        },
        format: PayloadFormat::Data,
        partition_by: Some("customer".into()),
        dead_letters: None,
        clock: Arc::new(SystemClock),
        status: Arc::clone(&status),
    };
    let secret = |_: &str| Ok(Zeroizing::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned()));
    let mut destination = WebhookDestination::new(settings, secret);
    destination.open().expect("a client");
    let limits = destination.limits();
    let control = Control::default();
    let mut subscription = log.subscribe(Query::all(), 0);
    let (mut cursor, mut batch) = (Cursor::start(1, None), 0);
    let began_us = SystemClock.monotonic_us();
    while cursor.position < events {
        let event = subscription.next(Duration::ZERO).expect("readable").expect("an event");
        destination.push(&event).expect("room");
        cursor = cursor.on(&event);
        batch += 1;
        if batch == limits.events || cursor.position == events {
            assert_eq!(destination.deliver(cursor, &control), Ok(DeliveryEnd::complete(cursor)));
            Counters::add(&status.counters.batches, 1);
            batch = 0;
        }
    }
    let took_s = (SystemClock.monotonic_us() - began_us) as f64 / 1e6;
    let rate = events as f64 / took_s;
    println!("{events} events, {in_flight} in flight: {took_s:.2} s, {rate:.0} requests/s");
    println!("{:?}", status.counters);
}

fn fill(log: &Log, events: u64) {
    let filler = "x".repeat(110);
    let mut encoded = EncodedEvents::new();
    for n in 1..=events {
        let tag = format!("customer:{}", n % 1_000);
        let data = format!(r#"{{"order":{n},"note":"{filler}"}}"#);
        encoded.push(&Event::json("OrderPlaced", &[&tag], &data).as_ref()).expect("valid");
        if encoded.len() == 1_000 || n == events {
            let events = std::mem::take(&mut encoded);
            log.append(Append { events, ..Append::default() }).expect("appended");
        }
    }
}

/// Answers 200 to every request, with one thread per connection.
#[allow(clippy::disallowed_methods)] // threads of a measurement
fn receiver() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}

fn answer(mut stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 << 10];
    loop {
        let read = stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&chunk[..read]);
        while let Some(length) = request_length(&bytes) {
            bytes.drain(..length);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()?;
        }
    }
}

/// Length of the first request, if it is complete.
fn request_length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&bytes[..head]).ok()?;
    let body = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
    });
    let length = head + body?.ok()?;
    (bytes.len() >= length).then_some(length)
}
