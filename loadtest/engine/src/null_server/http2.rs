//! The null server's HTTP/2 in clear, for clients that know beforehand (RFC 9113 section 3.3).
//!
//! Requests are counted, not read: no header block is decoded, so it costs
//! less than any real server and a client's own cost shows. It shares no code
//! with the engine, whose answers it must be able to judge.

use std::collections::VecDeque;
use std::io;

/// What such a client says first.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
/// Of DATA and HEADERS.
const END_STREAM: u8 = 1;
/// Of HEADERS and CONTINUATION.
const END_HEADERS: u8 = 4;
/// Of SETTINGS and PING.
const ACK: u8 = 1;

/// `:status 200` and `content-length: 2`, which need no table but the static one, then "ok".
const ANSWER: &[u8] = b"\0\0\x05\x01\x04\0\0\0\0\x88\x0f\x0d\x012\0\0\x02\0\x01\0\0\0\0ok";
/// Where the stream stands in its two frames.
const STREAM_AT: [usize; 2] = [5, 19];
/// What an answer takes of the client's windows.
const BODY_BYTES: i64 = 2;
/// The largest frame that is taken: no other size was agreed on.
const LARGEST_FRAME: usize = 16_384;
/// When this much was received, the connection's window is given back.
const GIVE_BACK: u32 = 1 << 29;

/// One connection.
#[derive(Debug)]
pub(super) struct Session {
    window: i64,
    received: u32,
    /// Streams whose answer waits for the connection's window.
    waiting: VecDeque<u32>,
    /// The stream of a header block that has not ended and ends its stream.
    unfinished: Option<u32>,
    /// The client has made our table smaller, which the next block must acknowledge.
    announce: bool,
}

impl Session {
    /// Begins, after [`PREFACE`].
    pub(super) fn new(output: &mut Vec<u8>) -> Self {
        // Initial windows of 2^31 - 1, and the same for the connection.
        output.extend_from_slice(b"\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\xff\xff");
        output.extend_from_slice(b"\0\0\x04\x08\0\0\0\0\0\x7f\xff\0\0");
        Session {
            window: 65_535,
            received: 0,
            waiting: VecDeque::new(),
            unfinished: None,
            announce: false,
        }
    }

    /// Answers every request completed by the frames at the front of `input`; returns how much was
    /// used.
    pub(super) fn answer_all(&mut self, input: &[u8], output: &mut Vec<u8>) -> io::Result<usize> {
        let mut used = 0;
        while let Some(head) = input[used..].first_chunk::<9>() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            if length > LARGEST_FRAME {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let Some(payload) = input[used..].get(9..9 + length) else { break };
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
            self.frame(head[3], head[4], stream, payload, output)?;
            used += 9 + length;
        }
        Ok(used)
    }

    fn frame(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
        output: &mut Vec<u8>,
    ) -> io::Result<()> {
        match kind {
            HEADERS if flags & END_STREAM != 0 && flags & END_HEADERS != 0 => {
                self.answer(stream, output);
            }
            HEADERS if flags & END_STREAM != 0 => self.unfinished = Some(stream),
            CONTINUATION if flags & END_HEADERS != 0 => {
                if let Some(stream) = self.unfinished.take() {
                    self.answer(stream, output);
                }
            }
            DATA => {
                self.received += u32::try_from(payload.len()).unwrap_or(0);
                if self.received >= GIVE_BACK {
                    output.extend_from_slice(b"\0\0\x04\x08\0\0\0\0\0");
                    output.extend_from_slice(&self.received.to_be_bytes());
                    self.received = 0;
                }
                if flags & END_STREAM != 0 {
                    self.answer(stream, output);
                }
            }
            SETTINGS if flags & ACK == 0 => self.settings(payload, output)?,
            PING if flags & ACK == 0 && payload.len() == 8 => {
                output.extend_from_slice(b"\0\0\x08\x06\x01\0\0\0\0");
                output.extend_from_slice(payload);
            }
            WINDOW_UPDATE if stream == 0 => {
                self.window += i64::from(word(payload)?);
                while self.window >= BODY_BYTES
                    && let Some(stream) = self.waiting.pop_front()
                {
                    self.answer(stream, output);
                }
            }
            RST_STREAM => self.waiting.retain(|waiting| *waiting != stream),
            GOAWAY => return Err(io::ErrorKind::ConnectionAborted.into()),
            _ => {}
        }
        Ok(())
    }

    fn settings(&mut self, payload: &[u8], output: &mut Vec<u8>) -> io::Result<()> {
        for setting in payload.chunks_exact(6) {
            let value = word(&setting[2..])?;
            match setting[1] {
                // Our blocks use no table, but its shrinking is to be acknowledged all the same.
                1 if value < 4096 => self.announce = true,
                // A client that will not take two bytes unasked is not one we serve.
                4 if i64::from(value) < BODY_BYTES => {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                _ => {}
            }
        }
        output.extend_from_slice(b"\0\0\0\x04\x01\0\0\0\0");
        Ok(())
    }

    fn answer(&mut self, stream: u32, output: &mut Vec<u8>) {
        if self.window < BODY_BYTES {
            self.waiting.push_back(stream);
            return;
        }
        self.window -= BODY_BYTES;
        let mut from = output.len();
        output.extend_from_slice(ANSWER);
        if self.announce {
            // One byte more: a table size of 0 before everything else.
            self.announce = false;
            output[from + 2] += 1;
            output.insert(from + 9, 0x20);
            output[from + 5..from + 9].copy_from_slice(&stream.to_be_bytes());
            from += 1;
            output[from + STREAM_AT[1]..from + STREAM_AT[1] + 4]
                .copy_from_slice(&stream.to_be_bytes());
            return;
        }
        for at in STREAM_AT {
            output[from + at..from + at + 4].copy_from_slice(&stream.to_be_bytes());
        }
    }
}

fn word(payload: &[u8]) -> io::Result<u32> {
    payload.try_into().map(u32::from_be_bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(stream: u8) -> Vec<u8> {
        vec![0, 0, 4, HEADERS, END_HEADERS | END_STREAM, 0, 0, 0, stream, 0x82, 0x86, 0x84, 0xbe]
    }

    #[test]
    fn every_request_gets_the_answer_on_its_stream() {
        let mut output = Vec::new();
        let mut session = Session::new(&mut output);
        output.clear();
        let mut input = b"\0\0\x06\x04\0\0\0\0\0\0\x01\0\0\0\0".to_vec();
        input.extend(request(1));
        input.extend(request(3));
        input.extend_from_slice(&request(5)[..7]);
        assert_eq!(session.answer_all(&input, &mut output).unwrap(), input.len() - 7);
        let expected = b"\0\0\0\x04\x01\0\0\0\0\
            \0\0\x06\x01\x04\0\0\0\x01\x20\x88\x0f\x0d\x012\0\0\x02\0\x01\0\0\0\x01ok\
            \0\0\x05\x01\x04\0\0\0\x03\x88\x0f\x0d\x012\0\0\x02\0\x01\0\0\0\x03ok";
        assert_eq!(output, expected);
    }

    #[test]
    fn the_clients_window_is_kept() {
        let mut output = Vec::new();
        let mut session = Session::new(&mut output);
        session.window = 3;
        output.clear();
        session.answer_all(&[request(1), request(3), request(5)].concat(), &mut output).unwrap();
        assert_eq!(output.len(), ANSWER.len());
        let update = [0, 0, 4, WINDOW_UPDATE, 0, 0, 0, 0, 0, 0, 0, 0, 2];
        session.answer_all(&update, &mut output).unwrap();
        assert_eq!(output.len(), 2 * ANSWER.len());
        assert_eq!(session.waiting, [5]);
    }

    #[test]
    fn a_body_and_a_long_block_are_waited_for() {
        let mut output = Vec::new();
        let mut session = Session::new(&mut output);
        output.clear();
        let begin = [0, 0, 1, HEADERS, END_STREAM, 0, 0, 0, 1, 0x82];
        session.answer_all(&begin, &mut output).unwrap();
        session.answer_all(&[0, 0, 0, HEADERS, END_HEADERS, 0, 0, 0, 3], &mut output).unwrap();
        assert!(output.is_empty());
        session.answer_all(&[0, 0, 0, CONTINUATION, END_HEADERS, 0, 0, 0, 1], &mut output).unwrap();
        session.answer_all(&[0, 0, 1, DATA, END_STREAM, 0, 0, 0, 3, 7], &mut output).unwrap();
        assert_eq!(output.len(), 2 * ANSWER.len());
        assert!(session.answer_all(&[0xff; 9], &mut output).is_err());
    }
}
