//! The original's kind of client: it sends the 55 bytes of WIRE §2, takes every read for one
//! answer, and sends the next. A server that answered in two writes would look twice as fast; so
//! the reads are held against the events the server has stored.

use crate::{
    epoll::{Epoll, would_block},
    flags::{Flags, Outcome},
    ingest::Kind,
    ingest_account::Account,
    machine,
    row::{Row, Sink},
};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    os::fd::AsRawFd as _,
    time::{Duration, Instant},
};

/// Byte for byte what the original's client sends.
const REQUEST: &[u8; 55] = b"POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: 7\r\n\r\n{\"e\":1}";
/// After the last request: how long a connection must be silent to have had its last answer.
const SILENCE: Duration = Duration::from_millis(500);

/// `wsbench read-counter`.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let kind: Kind = flags.required("server")?;
    let sink = Sink::from_flags("read-counter", "wellspring", &mut flags)?;
    let address: String = flags.required("address")?;
    let connections: usize = flags.or("connections", 8)?;
    let seconds: f64 = flags.or("seconds", 3.0)?;
    let core: Option<usize> = flags.optional("pin")?;
    flags.finish()?;
    if let Some(core) = core {
        machine::pin_to(core)?;
    }
    let before = match kind {
        Kind::Stores => Some(Account::settled(&address)?),
        Kind::Answers => None,
    };
    let cpu = machine::own_cpu();
    let count = count_reads(&address, connections, Duration::from_secs_f64(seconds))?;
    let busy = (machine::own_cpu() - cpu).as_secs_f64() / count.elapsed.as_secs_f64();
    if let Some(before) = before {
        Account::settled(&address)?.must_have_grown_by(count.reads..=count.reads, &before)?;
    }
    if count.reads != count.sent {
        return Err(format!(
            "not trusted: {} requests were sent and {} reads counted",
            count.sent, count.reads
        )
        .into());
    }
    let rate = count.reads_in_time as f64 / count.elapsed.as_secs_f64();
    let case = format!("every read an answer, {connections} connections");
    sink.put(&Row {
        client_busy: Some(busy),
        samples: count.reads,
        size: before.map_or(0, |account| account.head),
        ..sink.row(&case, rate, "reads/s")
    })
}

struct Count {
    sent: u64,
    reads: u64,
    /// Reads before the last request was sent.
    reads_in_time: u64,
    elapsed: Duration,
}

fn count_reads(address: &str, connections: usize, duration: Duration) -> Outcome<Count> {
    let epoll = Epoll::new()?;
    let mut sockets = Vec::with_capacity(connections);
    for token in 0..connections {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        epoll.add(socket.as_raw_fd(), token)?;
        sockets.push(socket);
    }
    let mut answer = [0; 4096];
    let mut count = Count { sent: 0, reads: 0, reads_in_time: 0, elapsed: Duration::ZERO };
    let started = Instant::now();
    for socket in &mut sockets {
        send(socket)?;
        count.sent += 1;
    }
    let mut last_read = started;
    let mut sending = true;
    while sending || last_read.elapsed() < SILENCE {
        for token in epoll.wait(100)? {
            let socket = &mut sockets[token];
            match socket.read(&mut answer) {
                Ok(0) => return Err("the server closed a connection".into()),
                Ok(_) => count.reads += 1,
                Err(error) if would_block(&error) => continue,
                Err(error) => return Err(error.into()),
            }
            if sending {
                send(socket)?;
                count.sent += 1;
            } else {
                last_read = Instant::now();
            }
        }
        if sending && started.elapsed() >= duration {
            (sending, last_read) = (false, Instant::now());
            (count.elapsed, count.reads_in_time) = (started.elapsed(), count.reads);
        }
    }
    Ok(count)
}

/// One request is far smaller than a socket's buffer: less than all of it is an error.
fn send(socket: &mut TcpStream) -> Outcome<()> {
    match socket.write(REQUEST)? {
        sent if sent == REQUEST.len() => Ok(()),
        sent => Err(format!("only {sent} bytes of a request were taken").into()),
    }
}
