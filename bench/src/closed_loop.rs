//! A closed loop over many connections on one thread: raw epoll, the same loop for HTTP/1.1 and
//! gRPC, so that both servers meet the same client.

use crate::{
    epoll::{Epoll, would_block},
    flags::Outcome,
    http1::{Extent, number_after, parse_head, write_request},
    http2::{self, Session, take_frame},
    machine,
    proto::{AppendRequest, AppendResponse, write_grpc},
    sample::Samples,
    store::Dialect,
    workload::{Orders, write_json},
};
use prost::Message as _;
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    os::fd::AsRawFd as _,
    time::{Duration, Instant},
};

/// What to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Whom to speak to and how.
    pub(crate) dialect: Dialect,
    /// `host:port`.
    pub(crate) address: String,
    /// Connections, and requests in flight on each (always 1 over HTTP/1.1).
    pub(crate) connections: usize,
    /// Requests in flight on each connection.
    pub(crate) streams: usize,
    /// Not measured.
    pub(crate) warmup: Duration,
    /// Measured.
    pub(crate) duration: Duration,
}

/// What came of it.
pub(crate) struct Result {
    /// Appends acknowledged over the whole run: what the head must have grown by.
    pub(crate) acknowledged: u64,
    /// Acknowledged within the measured time.
    pub(crate) measured: u64,
    /// The measured time.
    pub(crate) elapsed: Duration,
    /// Append conditions that failed; a correct run has none.
    pub(crate) conflicts: u64,
    /// Other refusals.
    pub(crate) failures: u64,
    /// Latencies of the measured appends.
    pub(crate) samples: Samples,
    /// Share of one core the client used while measuring; over 0.8 the client is the limit.
    pub(crate) client_busy: f64,
}

/// A request in flight.
struct Flight {
    stream: u32,
    sent: Instant,
    position: Option<u64>,
}

struct Connection {
    socket: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    /// `None` for HTTP/1.1.
    session: Option<Session>,
    flights: Vec<Flight>,
    waits_to_write: bool,
}

/// What one answer said.
enum Answer {
    Appended(u64),
    Conflict,
    Failed,
}

/// Writes requests of the plan's dialect, reusing its memory.
struct Writer<'a> {
    orders: &'a mut Orders,
    request: AppendRequest,
    body: Vec<u8>,
    seen_head: u64,
    host: String,
}

impl Writer<'_> {
    fn send_next(&mut self, connection: &mut Connection) -> Outcome<()> {
        self.orders.write_next(&mut self.request, self.seen_head);
        self.body.clear();
        let stream = match &mut connection.session {
            None => {
                write_json(&self.request, &mut self.body);
                let out = &mut connection.output;
                write_request(
                    "POST",
                    &self.host,
                    "/v1/append",
                    "",
                    "application/json",
                    &self.body,
                    out,
                );
                0
            }
            Some(session) => {
                write_grpc(&self.request, &mut self.body);
                session.write_unary("/umadb.v1.DCB/Append", &self.body, &mut connection.output)?
            }
        };
        connection.flights.push(Flight { stream, sent: Instant::now(), position: None });
        Ok(())
    }
}

/// Runs the plan: every stream sends its next request as soon as the last is answered; at the end
/// what is in flight is awaited and counted.
pub(crate) fn run(plan: &Plan, orders: &mut Orders, seen_head: u64) -> Outcome<Result> {
    let epoll = Epoll::new()?;
    let mut connections = Vec::with_capacity(plan.connections);
    for token in 0..plan.connections {
        connections.push(Connection::open(plan, &epoll, token)?);
    }
    let host = plan.address.clone();
    let mut writer =
        Writer { orders, request: AppendRequest::default(), body: vec![], seen_head, host };
    for connection in &mut connections {
        for _ in 0..plan.streams {
            writer.send_next(connection)?;
        }
        connection.flush(&epoll)?;
    }
    let started = Instant::now();
    let from = started + plan.warmup;
    let until = from + plan.duration;
    let mut result = Result {
        acknowledged: 0,
        measured: 0,
        elapsed: plan.duration,
        conflicts: 0,
        failures: 0,
        samples: Samples::with_capacity(1 << 20),
        client_busy: 0.0,
    };
    let mut cpu_from = None;
    let mut in_flight = plan.connections * plan.streams;
    let mut answers = Vec::with_capacity(plan.streams);
    while in_flight > 0 {
        for token in epoll.wait(100)? {
            let connection = &mut connections[token];
            connection.receive(&mut answers)?;
            let now = Instant::now();
            for (sent, answer) in answers.drain(..) {
                in_flight -= 1;
                match answer {
                    Answer::Appended(position) => {
                        writer.seen_head = writer.seen_head.max(position);
                        result.acknowledged += 1;
                        if now >= from && now < until {
                            result.measured += 1;
                            result.samples.add(now - sent);
                        }
                    }
                    Answer::Conflict => result.conflicts += 1,
                    Answer::Failed => result.failures += 1,
                }
                if now < until {
                    writer.send_next(connection)?;
                    in_flight += 1;
                }
            }
            connection.flush(&epoll)?;
        }
        let now = Instant::now();
        if cpu_from.is_none() && now >= from {
            cpu_from = Some((now, machine::own_cpu()));
        }
        if now >= until && result.client_busy == 0.0 {
            let (since, cpu) = cpu_from.unwrap_or((started, Duration::ZERO));
            result.client_busy =
                (machine::own_cpu() - cpu).as_secs_f64() / (now - since).as_secs_f64().max(1e-9);
        }
        if now > until + Duration::from_secs(60) {
            return Err(
                format!("{in_flight} requests are unanswered a minute after the end").into()
            );
        }
    }
    Ok(result)
}

impl Connection {
    fn open(plan: &Plan, epoll: &Epoll, token: usize) -> Outcome<Self> {
        let socket = TcpStream::connect(&plan.address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        epoll.add(socket.as_raw_fd(), token)?;
        let mut output = Vec::with_capacity(1 << 14);
        let session = (plan.dialect == Dialect::Umadb).then(|| {
            http2::write_opening(&mut output);
            Session::new(&plan.address)
        });
        let input = Vec::with_capacity(1 << 16);
        let flights = Vec::with_capacity(plan.streams);
        Ok(Self { socket, input, output, session, flights, waits_to_write: false })
    }

    /// Reads once and takes every complete answer.
    fn receive(&mut self, answers: &mut Vec<(Instant, Answer)>) -> Outcome<()> {
        let kept = self.input.len();
        self.input.resize(kept + (1 << 14), 0);
        let read = match self.socket.read(&mut self.input[kept..]) {
            Ok(0) => return Err("the server closed a connection".into()),
            Ok(read) => read,
            Err(error) if would_block(&error) => 0,
            Err(error) => return Err(error.into()),
        };
        self.input.truncate(kept + read);
        let used = match self.session {
            None => self.take_http1(answers)?,
            Some(_) => self.take_http2(answers)?,
        };
        self.input.drain(..used);
        Ok(())
    }

    fn take_http1(&mut self, answers: &mut Vec<(Instant, Answer)>) -> Outcome<usize> {
        let mut used = 0;
        while !self.flights.is_empty()
            && let Some(head) = parse_head(&self.input[used..])?
        {
            let Extent::Length(length) = head.extent else {
                return Err("an append answered in chunks".into());
            };
            let start = used + head.length;
            let Some(body) = self.input.get(start..start + length) else { break };
            let answer = match (head.status, number_after(body, "last")) {
                (200, Some(position)) => Answer::Appended(position),
                (409, _) => Answer::Conflict,
                _ => Answer::Failed,
            };
            answers.push((self.flights.remove(0).sent, answer));
            used = start + length;
        }
        Ok(used)
    }

    fn take_http2(&mut self, answers: &mut Vec<(Instant, Answer)>) -> Outcome<usize> {
        let Some(session) = &mut self.session else { return Ok(0) };
        let mut used = 0;
        while let Some((frame, length)) = take_frame(&self.input[used..]) {
            used += length;
            session.note(&frame, &mut self.output)?;
            let Some(index) = self.flights.iter().position(|flight| flight.stream == frame.stream)
            else {
                continue;
            };
            match frame.kind {
                // An append's answer is one small message; servers send it in one frame.
                http2::DATA if frame.payload.len() >= 5 => {
                    let answer = AppendResponse::decode(&frame.payload[5..])?;
                    self.flights[index].position = Some(answer.position);
                }
                _ => {}
            }
            let ended = frame.flags & http2::END_STREAM != 0
                && matches!(frame.kind, http2::DATA | http2::HEADERS)
                || frame.kind == http2::RST_STREAM;
            if ended {
                let flight = self.flights.swap_remove(index);
                let answer = match flight.position {
                    Some(position) => Answer::Appended(position),
                    None if frame.kind == http2::HEADERS => Answer::Conflict,
                    None => Answer::Failed,
                };
                answers.push((flight.sent, answer));
            }
        }
        Ok(used)
    }

    /// Writes what it can; asks epoll to tell when there is room for the rest.
    fn flush(&mut self, epoll: &Epoll) -> Outcome<()> {
        let mut written = 0;
        while written < self.output.len() {
            match self.socket.write(&self.output[written..]) {
                Ok(count) => written += count,
                Err(error) if would_block(&error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.output.drain(..written);
        let waits = !self.output.is_empty();
        if waits != self.waits_to_write {
            self.waits_to_write = waits;
            epoll.watch_writes(self.socket.as_raw_fd(), waits)?;
        }
        Ok(())
    }
}
