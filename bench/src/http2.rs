//! HTTP/2 frames, hand-made: what one gRPC client on a trusted loopback needs and no more.
//!
//! Answers' header blocks are never decoded (no HPACK decoder): a gRPC success is a data frame
//! followed by trailers, a gRPC error is trailers alone. That keeps the client as cheap as the
//! HTTP/1.1 one, so that UmaDB is measured and not the client's gRPC stack.

use crate::flags::Outcome;

/// What a client says first.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Frame types.
pub(crate) const DATA: u8 = 0;
/// Header block.
pub(crate) const HEADERS: u8 = 1;
/// A stream was refused.
pub(crate) const RST_STREAM: u8 = 3;
/// Settings.
pub(crate) const SETTINGS: u8 = 4;
/// Ping.
pub(crate) const PING: u8 = 6;
/// The connection ends.
pub(crate) const GOAWAY: u8 = 7;
/// More may be sent.
pub(crate) const WINDOW_UPDATE: u8 = 8;
/// Flag of DATA and HEADERS.
pub(crate) const END_STREAM: u8 = 1;
/// Flag of SETTINGS and PING.
pub(crate) const ACK: u8 = 1;
/// Flag of HEADERS.
pub(crate) const END_HEADERS: u8 = 4;

/// The window we give every stream and the connection: in effect no flow control towards us.
const OUR_WINDOW: u32 = i32::MAX as u32;
/// When this much was received, the windows are topped up.
const TOP_UP: u32 = 1 << 28;
/// The largest frame we accept. Larger frames mean fewer of them in long reads.
const OUR_FRAME: u32 = 1 << 20;

/// One frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// Its type.
    pub(crate) kind: u8,
    /// Its flags.
    pub(crate) flags: u8,
    /// Its stream; 0 is the connection.
    pub(crate) stream: u32,
    /// Its payload.
    pub(crate) payload: &'a [u8],
}

/// Takes one frame off the front of `input`, if it is complete.
pub(crate) fn take_frame(input: &[u8]) -> Option<(Frame<'_>, usize)> {
    let head = input.first_chunk::<9>()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
    let payload = input.get(9..9 + length)?;
    Some((Frame { kind: head[3], flags: head[4], stream, payload }, 9 + length))
}

/// Writes one frame.
pub(crate) fn write_frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    let length = (payload.len() as u32).to_be_bytes();
    out.extend_from_slice(&[length[1], length[2], length[3], kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// Writes the client's preface, settings and a wide-open connection window.
pub(crate) fn write_opening(out: &mut Vec<u8>) {
    out.extend_from_slice(PREFACE);
    let mut settings = Vec::with_capacity(18);
    for (id, value) in [(2u16, 0u32), (4, OUR_WINDOW), (5, OUR_FRAME)] {
        settings.extend_from_slice(&id.to_be_bytes());
        settings.extend_from_slice(&value.to_be_bytes());
    }
    write_frame(SETTINGS, 0, 0, &settings, out);
    write_frame(WINDOW_UPDATE, 0, 0, &(OUR_WINDOW - 65_535).to_be_bytes(), out);
}

/// The client's side of one connection: header compression, flow control, and the frames that are
/// about the connection.
pub(crate) struct Session {
    authority: String,
    /// Whether the header table holds our four headers, and the path that is in it.
    indexed_path: Option<String>,
    next_stream: u32,
    /// What we may still send: on the connection, and on each new stream.
    pub(crate) connection_window: i64,
    stream_window: i64,
    /// Received and not yet given back: on the connection, and on the stream that received last.
    received: u32,
    receiving: u32,
    received_on_stream: u32,
}

impl Session {
    /// A session that has sent [`write_opening`].
    pub(crate) fn new(authority: &str) -> Self {
        Self {
            authority: authority.to_owned(),
            indexed_path: None,
            next_stream: 1,
            connection_window: 65_535,
            stream_window: 65_535,
            received: 0,
            receiving: 0,
            received_on_stream: 0,
        }
    }

    /// Writes the HEADERS of a gRPC request and returns its stream and that stream's send window.
    pub(crate) fn write_headers(&mut self, path: &str, out: &mut Vec<u8>) -> (u32, i64) {
        let stream = self.next_stream;
        self.next_stream += 2;
        let mut block = Vec::with_capacity(128);
        // Static table: 3 = POST, 6 = http, 4 = :path, 1 = :authority, 31 = content-type.
        block.extend_from_slice(&[0x83, 0x86]);
        match &self.indexed_path {
            Some(indexed) => {
                if indexed == path {
                    block.push(0x80 | 65);
                } else {
                    block.push(0x04);
                    write_text(path, &mut block);
                }
                block.extend_from_slice(&[0x80 | 64, 0x80 | 63, 0x80 | 62]);
            }
            None => {
                block.push(0x40 | 4);
                write_text(path, &mut block);
                block.push(0x40 | 1);
                write_text(&self.authority, &mut block);
                block.push(0x40 | 31);
                write_text("application/grpc", &mut block);
                block.push(0x40);
                write_text("te", &mut block);
                write_text("trailers", &mut block);
                self.indexed_path = Some(path.to_owned());
            }
        }
        write_frame(HEADERS, END_HEADERS, stream, &block, out);
        (stream, self.stream_window)
    }

    /// Writes a whole small request; an error if the server's window has no room for it.
    pub(crate) fn write_unary(
        &mut self,
        path: &str,
        grpc_message: &[u8],
        out: &mut Vec<u8>,
    ) -> Outcome<u32> {
        let (stream, window) = self.write_headers(path, out);
        let length = grpc_message.len() as i64;
        if length > window.min(self.connection_window) || length > 16_384 {
            return Err("the server's flow-control window is too small for these streams".into());
        }
        self.connection_window -= length;
        write_frame(DATA, END_STREAM, stream, grpc_message, out);
        Ok(stream)
    }

    /// Handles what concerns the connection: acknowledges settings and pings, tracks windows, tops
    /// up ours. Returns the number of bytes by which the window of the frame's own stream grew.
    pub(crate) fn note(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) -> Outcome<i64> {
        match frame.kind {
            SETTINGS if frame.flags & ACK == 0 => {
                for setting in frame.payload.chunks_exact(6) {
                    let value =
                        u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
                    if setting[..2] == [0, 4] {
                        self.stream_window = i64::from(value);
                    }
                }
                write_frame(SETTINGS, ACK, 0, &[], out);
            }
            PING if frame.flags & ACK == 0 => write_frame(PING, ACK, 0, frame.payload, out),
            WINDOW_UPDATE => {
                let grown = i64::from(u32::from_be_bytes(frame.payload.try_into()?));
                if frame.stream != 0 {
                    return Ok(grown);
                }
                self.connection_window += grown;
            }
            GOAWAY => return Err("the server closed the HTTP/2 connection".into()),
            DATA => {
                let length = frame.payload.len() as u32;
                self.received += length;
                if self.received > TOP_UP {
                    write_frame(WINDOW_UPDATE, 0, 0, &self.received.to_be_bytes(), out);
                    self.received = 0;
                }
                // A window may never grow beyond its limit, so each stream gets back what it used
                // itself. Only long reads come this far, and they are alone on their connection.
                if frame.stream != self.receiving {
                    (self.receiving, self.received_on_stream) = (frame.stream, 0);
                }
                self.received_on_stream += length;
                if self.received_on_stream > TOP_UP {
                    if frame.flags & END_STREAM == 0 {
                        let used = self.received_on_stream.to_be_bytes();
                        write_frame(WINDOW_UPDATE, 0, frame.stream, &used, out);
                    }
                    self.received_on_stream = 0;
                }
            }
            _ => {}
        }
        Ok(0)
    }
}

/// A string literal, not Huffman-coded. Everything we send is shorter than 127 bytes.
fn write_text(text: &str, block: &mut Vec<u8>) {
    assert!(text.len() < 127, "HPACK lengths over 126 bytes are not needed here");
    block.push(text.len() as u8);
    block.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_topped_up_by_what_its_own_stream_used() {
        let mut session = Session::new("test");
        let payload = vec![0; TOP_UP as usize - 10];
        let mut note = |stream, bytes: usize| {
            let mut out = Vec::new();
            let frame = Frame { kind: DATA, flags: 0, stream, payload: &payload[..bytes] };
            session.note(&frame, &mut out).expect("no error");
            out.chunks(13).map(|frame| frame[8]).collect::<Vec<_>>()
        };
        assert!(note(1, TOP_UP as usize - 10).is_empty());
        assert_eq!(note(3, 100), [0], "only the connection used its window up");
        assert_eq!(note(3, TOP_UP as usize - 50), [3], "now the stream did");
    }

    #[test]
    fn a_written_frame_is_taken_back_whole() {
        let mut bytes = Vec::new();
        write_frame(DATA, END_STREAM, 5, b"abc", &mut bytes);
        assert!(take_frame(&bytes[..11]).is_none());
        let (frame, used) = take_frame(&bytes).expect("complete");
        assert_eq!(
            (frame.kind, frame.flags, frame.stream, frame.payload, used),
            (0, 1, 5, &b"abc"[..], 12)
        );
    }
}
