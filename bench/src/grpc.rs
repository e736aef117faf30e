//! A blocking gRPC connection: unary calls with bodies of any size, and server streams.

use crate::{
    flags::Outcome,
    http2::{self, Session, take_frame},
    proto::write_grpc,
};
use prost::Message;
use std::{
    io::{Read, Write},
    net::TcpStream,
};

/// The largest data frame every server must accept.
const FRAME: usize = 16_384;

/// One blocking HTTP/2 connection with one call at a time.
pub(crate) struct GrpcConnection {
    stream: TcpStream,
    session: Session,
    input: Vec<u8>,
    used: usize,
    output: Vec<u8>,
    /// Bytes sent and received by the last call.
    pub(crate) last_sizes: (usize, usize),
}

/// What the next frame meant for the call under way.
enum Step {
    /// Nothing.
    Other,
    /// The stream's send window grew.
    Window(i64),
    /// Bytes of gRPC messages were put into the buffer.
    Data { end: bool },
    /// The stream ended with trailers.
    End,
}

impl GrpcConnection {
    /// Connects and opens the HTTP/2 session.
    pub(crate) fn open(address: &str) -> Outcome<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(120)))?;
        let mut output = Vec::with_capacity(1 << 16);
        http2::write_opening(&mut output);
        stream.write_all(&output)?;
        let session = Session::new(address);
        Ok(Self {
            stream,
            session,
            input: Vec::with_capacity(1 << 21),
            used: 0,
            output,
            last_sizes: (0, 0),
        })
    }

    /// Calls a method and hands every message of the answer to `each`. No message and then trailers
    /// is the server's way to refuse; `Ok(0)` tells that.
    pub(crate) fn call(
        &mut self,
        method: &str,
        request: &impl Message,
        mut each: impl FnMut(&[u8]) -> Outcome<()>,
    ) -> Outcome<u64> {
        let mut body = Vec::with_capacity(request.encoded_len() + 5);
        write_grpc(request, &mut body);
        self.last_sizes = (0, 0);
        let path = format!("/umadb.v1.DCB/{method}");
        self.output.clear();
        let (id, mut window) = self.session.write_headers(&path, &mut self.output);
        let mut messages = Vec::new();
        let mut count = 0;
        let mut rest = &body[..];
        loop {
            while !rest.is_empty() {
                let room = window.min(self.session.connection_window).max(0) as usize;
                let part = rest.len().min(FRAME).min(room);
                if part == 0 {
                    break;
                }
                let end = if part == rest.len() { http2::END_STREAM } else { 0 };
                http2::write_frame(http2::DATA, end, id, &rest[..part], &mut self.output);
                window -= part as i64;
                self.session.connection_window -= part as i64;
                rest = &rest[part..];
            }
            self.flush()?;
            match self.step(id, &mut messages)? {
                Step::Other => {}
                Step::Window(grown) => window += grown,
                Step::Data { end } => {
                    count += take_messages(&mut messages, &mut each)?;
                    if end {
                        return Ok(count);
                    }
                }
                Step::End => return Ok(count),
            }
        }
    }

    fn flush(&mut self) -> Outcome<()> {
        if !self.output.is_empty() {
            self.stream.write_all(&self.output)?;
            self.last_sizes.0 += self.output.len();
            self.output.clear();
        }
        Ok(())
    }

    /// Waits for one frame and deals with it.
    fn step(&mut self, id: u32, messages: &mut Vec<u8>) -> Outcome<Step> {
        loop {
            let Some((frame, length)) = take_frame(&self.input[self.used..]) else {
                self.fill()?;
                continue;
            };
            let grown = self.session.note(&frame, &mut self.output)?;
            let end = frame.flags & http2::END_STREAM != 0;
            let step = if frame.stream != id {
                Step::Other
            } else {
                match frame.kind {
                    http2::DATA => {
                        messages.extend_from_slice(frame.payload);
                        Step::Data { end }
                    }
                    http2::HEADERS if end => Step::End,
                    http2::RST_STREAM => return Err("the server reset the stream".into()),
                    http2::WINDOW_UPDATE => Step::Window(grown),
                    _ => Step::Other,
                }
            };
            self.used += length;
            self.last_sizes.1 += length;
            return Ok(step);
        }
    }

    fn fill(&mut self) -> Outcome<()> {
        self.input.drain(..self.used);
        self.used = 0;
        let kept = self.input.len();
        self.input.resize(kept + (1 << 18), 0);
        let read = self.stream.read(&mut self.input[kept..])?;
        self.input.truncate(kept + read);
        if read == 0 { Err("the server closed the connection".into()) } else { Ok(()) }
    }
}

/// Passes every complete gRPC message on and keeps the rest.
fn take_messages(bytes: &mut Vec<u8>, each: &mut impl FnMut(&[u8]) -> Outcome<()>) -> Outcome<u64> {
    let mut used = 0;
    let mut count = 0;
    while let Some(head) = bytes[used..].first_chunk::<5>() {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let Some(message) = bytes.get(used + 5..used + 5 + length) else { break };
        each(message)?;
        used += 5 + length;
        count += 1;
    }
    bytes.drain(..used);
    Ok(count)
}
