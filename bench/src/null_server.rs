//! A server that stores nothing: it acknowledges every append at once, over HTTP/1.1 and gRPC. What
//! the client reaches against it is the client's own ceiling; a real result near it is
//! client-limited. Over HTTP/1.1 it also streams as many made-up events as it has acknowledged, ten
//! for a tag; and it takes `POST /e`, with an account that is right unless it was told to lose
//! events, to try the drivers' checks.

use crate::{
    epoll::{Epoll, would_block},
    flags::Outcome,
    http2::{self, take_frame},
    proto::{AppendResponse, Event, write_grpc},
    workload::write_standing,
};
use std::{
    collections::HashMap,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::fd::AsRawFd as _,
};

/// Token of the listener.
const LISTENER: usize = usize::MAX;
/// Static header 8 (`:status 200`) and `content-type: application/grpc`.
const ANSWER_HEADERS: &[u8] = b"\x88\x0f\x10\x10application/grpc";
/// `grpc-status: 0`.
const TRAILERS: &[u8] = b"\x00\x0bgrpc-status\x010";

/// The answer to `POST /e`, as WIRE §2 has it.
const ACCEPTED: &[u8] =
    b"HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\
    Connection: keep-alive\r\n\r\n{\"ok\":true}";

struct Peer {
    socket: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    speaks_http2: Option<bool>,
    /// Bytes of DATA not yet given back to the client's send window.
    owed_window: u32,
}

/// What the server pretends to have stored.
struct Pretence {
    /// The position of the last event.
    position: u64,
    /// Events taken by `POST /e`.
    accepted: u64,
    /// Every so many of them one is not in the log.
    lose: Option<u64>,
}

/// Serves until killed. Answers carry growing positions, and `head` tells the last one. With
/// `lose`, each event of that number that `POST /e` takes is missing from the head.
pub(crate) fn serve(address: &str, lose: Option<u64>) -> Outcome<()> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let epoll = Epoll::new()?;
    epoll.add(listener.as_raw_fd(), LISTENER)?;
    let mut peers: HashMap<usize, Peer> = HashMap::new();
    let mut log = Pretence { position: 0, accepted: 0, lose };
    loop {
        for token in epoll.wait(-1)? {
            if token == LISTENER {
                while let Ok((socket, _)) = listener.accept() {
                    socket.set_nodelay(true)?;
                    socket.set_nonblocking(true)?;
                    let token = socket.as_raw_fd() as usize;
                    epoll.add(socket.as_raw_fd(), token)?;
                    let (input, output) = (Vec::new(), Vec::new());
                    peers.insert(
                        token,
                        Peer { socket, input, output, speaks_http2: None, owed_window: 0 },
                    );
                }
            } else if let Some(peer) = peers.get_mut(&token)
                && peer.serve(&mut log).is_err()
            {
                peers.remove(&token);
            }
        }
    }
}

impl Pretence {
    fn take(&mut self, events: u64) {
        let lost = |accepted: u64| self.lose.map_or(0, |every| accepted / every.max(1));
        self.position += events - (lost(self.accepted + events) - lost(self.accepted));
        self.accepted += events;
    }

    fn account(&self) -> String {
        let taken = format!(r#"{{"events":{},"bytes":0}}"#, self.accepted);
        let none = r#"{"events":0,"bytes":0}"#;
        format!(r#"{{"accepted":{taken},"stored":{taken},"in_flight":{none},"dropped":{none}}}"#)
    }
}

impl Peer {
    fn serve(&mut self, log: &mut Pretence) -> Outcome<()> {
        let kept = self.input.len();
        self.input.resize(kept + (1 << 16), 0);
        let read = match self.socket.read(&mut self.input[kept..]) {
            Ok(0) => return Err("closed".into()),
            Ok(read) => read,
            Err(error) if would_block(&error) => 0,
            Err(error) => return Err(error.into()),
        };
        self.input.truncate(kept + read);
        let speaks_http2 = *self.speaks_http2.get_or_insert(self.input.starts_with(b"PRI "));
        let used = if speaks_http2 { self.answer_http2(log) } else { self.answer_http1(log)? };
        self.input.drain(..used);
        self.flush()
    }

    fn flush(&mut self) -> Outcome<()> {
        let mut written = 0;
        while written < self.output.len() {
            match self.socket.write(&self.output[written..]) {
                Ok(count) => written += count,
                Err(error) if would_block(&error) => std::thread::yield_now(),
                Err(error) => return Err(error.into()),
            }
        }
        self.output.clear();
        Ok(())
    }

    fn answer_http1(&mut self, log: &mut Pretence) -> Outcome<usize> {
        let mut used = 0;
        loop {
            let mut headers = [httparse::EMPTY_HEADER; 16];
            let mut request = httparse::Request::new(&mut headers);
            let httparse::Status::Complete(head) = request.parse(&self.input[used..])? else {
                break;
            };
            let (mut length, mut lines) = (0, false);
            for header in request.headers.iter() {
                if header.name.eq_ignore_ascii_case("content-length") {
                    length = std::str::from_utf8(header.value)?.parse()?;
                } else if header.name.eq_ignore_ascii_case("content-type") {
                    lines = header.value == b"application/x-ndjson";
                }
            }
            if self.input.len() < used + head + length {
                break;
            }
            let path = request.path.unwrap_or_default().to_owned();
            let method = request.method.unwrap_or_default().to_owned();
            let body = &self.input[used + head..used + head + length];
            log.position += memchr::memmem::find_iter(body, b"{\"type\":").count() as u64;
            used += head + length;
            if path == "/e" && method == "POST" {
                log.take(if lines { memchr::memchr_iter(b'\n', body).count() } else { 1 } as u64);
                self.output.extend_from_slice(ACCEPTED);
                continue;
            }
            if path.starts_with("/v1/events") {
                self.stream_events(if path.contains("tag=") { 10 } else { log.position })?;
                continue;
            }
            let position = log.position;
            let body = if path == "/v1/ingest" {
                log.account()
            } else {
                format!(
                    r#"{{"first":{position},"last":{position},"head":{position},"replayed":false}}"#
                )
            };
            write!(
                self.output,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nwellspring-position: {position}\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            )?;
        }
        Ok(used)
    }

    /// NDJSON of the size a real event has, in chunks.
    fn stream_events(&mut self, count: u64) -> Outcome<()> {
        self.output.extend_from_slice(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n",
        );
        let mut chunk = Vec::with_capacity(1 << 17);
        let mut event = Event::default();
        for index in 0..count {
            write_standing(&mut event, index, 10_007, 200);
            write!(
                chunk,
                r#"{{"position":{},"type":"{}","tags":["{}"],"data":"#,
                index + 1,
                event.event_type,
                event.tags.join("\",\"")
            )?;
            chunk.extend_from_slice(&event.data);
            chunk.extend_from_slice(b"}\n");
            if chunk.len() > 1 << 16 || index + 1 == count {
                write!(self.output, "{:x}\r\n", chunk.len())?;
                self.output.append(&mut chunk);
                self.output.extend_from_slice(b"\r\n");
                self.flush()?;
            }
        }
        self.output.extend_from_slice(b"0\r\n\r\n");
        Ok(())
    }

    fn answer_http2(&mut self, log: &mut Pretence) -> usize {
        let mut used = 0;
        if self.input.starts_with(http2::PREFACE) {
            used = http2::PREFACE.len();
            http2::write_frame(http2::SETTINGS, 0, 0, &[], &mut self.output);
        }
        while let Some((frame, length)) = take_frame(&self.input[used..]) {
            used += length;
            match frame.kind {
                http2::SETTINGS if frame.flags & http2::ACK == 0 => {
                    http2::write_frame(http2::SETTINGS, http2::ACK, 0, &[], &mut self.output);
                }
                http2::DATA => {
                    self.owed_window += frame.payload.len() as u32;
                    if self.owed_window > 20_000 {
                        let owed = self.owed_window.to_be_bytes();
                        http2::write_frame(http2::WINDOW_UPDATE, 0, 0, &owed, &mut self.output);
                        self.owed_window = 0;
                    }
                    if frame.flags & http2::END_STREAM != 0 {
                        // A Head request is an empty message; both answers have the position in
                        // field 1.
                        log.position += u64::from(frame.payload.len() > 5);
                        let out = &mut self.output;
                        http2::write_frame(
                            http2::HEADERS,
                            http2::END_HEADERS,
                            frame.stream,
                            ANSWER_HEADERS,
                            out,
                        );
                        let mut message = Vec::with_capacity(16);
                        write_grpc(&AppendResponse { position: log.position }, &mut message);
                        http2::write_frame(http2::DATA, 0, frame.stream, &message, out);
                        let flags = http2::END_HEADERS | http2::END_STREAM;
                        http2::write_frame(http2::HEADERS, flags, frame.stream, TRAILERS, out);
                    }
                }
                _ => {}
            }
        }
        used
    }
}
