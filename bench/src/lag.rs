//! How far a follower is behind: the same subscription at both nodes, and when each position
//! arrives.

use crate::{
    flags::{Flags, Outcome},
    row::{Row, Sink},
    sample::Samples,
    store::{Dialect, Store},
};
use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

/// `wsbench lag`: `--leader A --follower B --seconds N`, while something else appends. A position
/// that reaches the follower's subscriber first counts as no lag.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let sink = Sink::from_flags("lag", "wellspring", &mut flags)?;
    let leader: String = flags.required("leader")?;
    let follower: String = flags.required("follower")?;
    let time = Duration::from_secs_f64(flags.or("seconds", 4.0)?);
    flags.finish()?;
    let head = Store::open(Dialect::Wellspring, &leader)?.head()?;
    let until = Instant::now() + time;
    let of_leader =
        std::thread::spawn(move || arrivals(&leader, head, until).map_err(|e| e.to_string()));
    let of_follower = arrivals(&follower, head, until)?;
    let of_leader = of_leader.join().map_err(|_| "the leader's subscriber failed")??;
    let mut samples = Samples::with_capacity(of_leader.len());
    for (position, at) in &of_follower {
        if let Some(first) = of_leader.get(position) {
            samples.add(at.saturating_duration_since(*first));
        }
    }
    let p99 = samples.quantile_us(0.99).ok_or("too few events for a p99: append meanwhile")?;
    let p50_us = samples.quantile_us(0.5);
    let row = sink.row("follower behind its leader", p99, "µs p99");
    sink.put(&Row { p50_us, p99_us: Some(p99), samples: samples.len() as u64, ..row })
}

/// When each position after `head` reached a subscriber of `address`.
fn arrivals(address: &str, head: u64, until: Instant) -> Outcome<HashMap<u64, Instant>> {
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "GET /v1/events?after={head} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n"
    )?;
    let mut lines = BufReader::with_capacity(1 << 16, stream);
    let (mut found, mut line) = (HashMap::new(), Vec::new());
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(found);
        }
        lines.get_ref().set_read_timeout(Some(left))?;
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) => return Err(format!("{address} ended the subscription").into()),
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) =>
            {
                return Ok(found);
            }
            Err(error) => return Err(error.into()),
        }
        let id = line.strip_prefix(b"id:").and_then(|id| std::str::from_utf8(id).ok());
        // `id: POSITION@HISTORY`
        let position = id.and_then(|id| id.split('@').next()?.trim().parse().ok());
        if let Some(position) = position {
            found.insert(position, Instant::now());
        }
    }
}
