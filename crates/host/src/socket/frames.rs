//! Frames of WebSocket (RFC 6455) as a server reads and writes them: their content is a stream of
//! bytes, whatever the frames and messages it is cut into. No frame is kept.

/// Longest content of a control frame, in bytes.
const MAX_CONTROL_BYTES: usize = 125;
/// Longest header that a client sends: two bytes, a length of 64 bits, a mask.
const MAX_HEADER_BYTES: usize = 14;
/// Longest content of a frame that the server sends, in bytes: its header has four bytes at most.
pub(crate) const MAX_SENT_BYTES: usize = 0xFFFF;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;
/// The bit of the last frame of a message.
const LAST: u8 = 0x80;
/// The bit of masked content, which everything from a client is.
const MASKED: u8 = 0x80;

/// The status of an end without a fault.
const NORMAL: u16 = 1000;

/// Why a client is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameFault {
    /// It breaks a rule of the protocol.
    Protocol,
    /// It sends text, where bytes are expected.
    Text,
}

impl FrameFault {
    /// The status that tells the client.
    fn status(self) -> u16 {
        match self {
            FrameFault::Protocol => 1002,
            FrameFault::Text => 1003,
        }
    }
}

/// The frame whose content comes next.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    opcode: u8,
    /// Bytes of content still to come.
    left: u64,
    mask: [u8; 4],
    /// Place of the next byte in the mask.
    at: usize,
}

impl Frame {
    fn is_control(self) -> bool {
        self.opcode & 0x8 != 0
    }

    /// Unmasks content.
    fn unmask(&mut self, content: &mut [u8]) {
        let aligned = content.as_chunks_mut::<4>();
        let mask: [u8; 4] = std::array::from_fn(|index| self.mask[(self.at + index) % 4]);
        for piece in aligned.0 {
            for (byte, mask) in piece.iter_mut().zip(mask) {
                *byte ^= mask;
            }
        }
        aligned.1.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
        self.at = (self.at + content.len()) % 4;
    }
}

/// What a client sends, cut anywhere, becomes the bytes it means.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    /// The beginning of a header.
    header: [u8; MAX_HEADER_BYTES],
    header_bytes: usize,
    frame: Frame,
    /// The content of a control frame.
    control: Vec<u8>,
    /// Whether a message goes on in the next frame.
    is_within_message: bool,
    /// Whether the client has said that it sends nothing more.
    has_ended: bool,
}

impl FrameReader {
    /// Reads what was received: unmasks content in place and moves it to the front. Returns how
    /// much that is. What is to be sent to the client, such as the answer to a ping, is appended to
    /// `replies`.
    ///
    /// # Errors
    /// The client is not understood; `replies` tells it so. Nothing more is read.
    pub(crate) fn read(
        &mut self,
        received: &mut [u8],
        replies: &mut Vec<u8>,
    ) -> Result<usize, FrameFault> {
        let (mut at, mut content) = (0, 0);
        while at < received.len() && !self.has_ended {
            if self.frame.left == 0 {
                self.header[self.header_bytes] = received[at];
                self.header_bytes += 1;
                at += 1;
                self.begin().inspect_err(|fault| {
                    self.has_ended = true;
                    push_close(replies, fault.status());
                })?;
            } else {
                let left = usize::try_from(self.frame.left).unwrap_or(usize::MAX);
                let end = at + left.min(received.len() - at);
                self.frame.unmask(&mut received[at..end]);
                self.frame.left -= (end - at) as u64;
                if self.frame.is_control() {
                    self.control.extend_from_slice(&received[at..end]);
                } else {
                    received.copy_within(at..end, content);
                    content += end - at;
                }
                at = end;
            }
            if self.header_bytes == 0 && self.frame.left == 0 && self.frame.is_control() {
                self.end_control(replies);
            }
        }
        Ok(content)
    }

    /// Whether the client has said that it sends nothing more.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Begins a frame if its header is complete.
    fn begin(&mut self) -> Result<(), FrameFault> {
        let header = &self.header[..self.header_bytes];
        let [first, second, rest @ ..] = header else { return Ok(()) };
        let opcode = first & 0x0F;
        let is_last = first & LAST != 0;
        let is_sound = match opcode {
            CONTINUATION => self.is_within_message,
            BINARY => !self.is_within_message,
            TEXT => return Err(FrameFault::Text),
            CLOSE | PING | PONG => is_last && usize::from(second & !MASKED) <= MAX_CONTROL_BYTES,
            _ => false,
        };
        if !is_sound || first & 0x70 != 0 || second & MASKED == 0 {
            return Err(FrameFault::Protocol);
        }
        let (length, mask) = match second & !MASKED {
            126 => match rest.split_first_chunk() {
                Some((length, mask)) => (u64::from(u16::from_be_bytes(*length)), mask),
                None => return Ok(()),
            },
            127 => match rest.split_first_chunk() {
                Some((length, mask)) => (u64::from_be_bytes(*length), mask),
                None => return Ok(()),
            },
            length => (u64::from(length), rest),
        };
        let Ok(mask) = mask.try_into() else { return Ok(()) };
        if length > i64::MAX.cast_unsigned() {
            return Err(FrameFault::Protocol);
        }
        self.header_bytes = 0;
        self.frame = Frame { opcode, left: length, mask, at: 0 };
        if !self.frame.is_control() {
            self.is_within_message = !is_last;
        }
        Ok(())
    }

    /// A control frame is complete.
    fn end_control(&mut self, replies: &mut Vec<u8>) {
        let content = std::mem::take(&mut self.control);
        match self.frame.opcode {
            // A client that pings without reading gets no answer to each.
            PING if replies.is_empty() => push_frame(replies, PONG, &content),
            CLOSE => {
                self.has_ended = true;
                let status =
                    content.first_chunk().map_or(NORMAL, |status| u16::from_be_bytes(*status));
                push_close(replies, status);
            }
            _ => {}
        }
        self.frame = Frame::default();
    }
}

/// Appends a frame with this content, of at most [`MAX_SENT_BYTES`].
pub(crate) fn push_binary(out: &mut Vec<u8>, content: &[u8]) {
    push_frame(out, BINARY, content);
}

/// Appends the frame that ends the connection without a fault.
pub(crate) fn push_farewell(out: &mut Vec<u8>) {
    push_close(out, NORMAL);
}

fn push_close(out: &mut Vec<u8>, status: u16) {
    push_frame(out, CLOSE, &status.to_be_bytes());
}

fn push_frame(out: &mut Vec<u8>, opcode: u8, content: &[u8]) {
    out.push(LAST | opcode);
    match u8::try_from(content.len()) {
        Ok(length) if usize::from(length) <= MAX_CONTROL_BYTES => out.push(length),
        _ => {
            let length = u16::try_from(content.len()).expect("at most MAX_SENT_BYTES");
            out.push(126);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
    out.extend_from_slice(content);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A frame as a client sends it.
    fn sent(first: u8, content: &[u8], mask: [u8; 4]) -> Vec<u8> {
        let mut frame = vec![first];
        match content.len() {
            length @ ..=125 => frame.push(MASKED | length as u8),
            length @ ..=0xFFFF => {
                frame.push(MASKED | 126);
                frame.extend_from_slice(&(length as u16).to_be_bytes());
            }
            length => {
                frame.push(MASKED | 127);
                frame.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        frame.extend_from_slice(&mask);
        frame.extend(content.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
        frame
    }

    /// What is read of these bytes in pieces, and the replies.
    fn read(bytes: &[u8], piece: usize) -> (Result<Vec<u8>, FrameFault>, Vec<u8>, bool) {
        let (mut reader, mut content, mut replies) =
            (FrameReader::default(), Vec::new(), Vec::new());
        for piece in bytes.chunks(piece) {
            let mut piece = piece.to_vec();
            match reader.read(&mut piece, &mut replies) {
                Ok(length) => content.extend_from_slice(&piece[..length]),
                Err(fault) => return (Err(fault), replies, reader.has_ended()),
            }
        }
        (Ok(content), replies, reader.has_ended())
    }

    #[test]
    fn a_ping_is_answered_between_the_frames_of_a_message() {
        let frames = [
            sent(BINARY, b"ab", [1, 2, 3, 4]),
            sent(LAST | PING, b"hi", [5, 6, 7, 8]),
            sent(LAST | PONG, b"", [0; 4]),
            sent(LAST | CONTINUATION, b"c", [9; 4]),
        ];
        for piece in [1, 2, 100] {
            let (content, replies, has_ended) = read(&frames.concat(), piece);
            assert_eq!((content, has_ended), (Ok(b"abc".to_vec()), false));
            assert_eq!(replies, [LAST | PONG, 2, b'h', b'i']);
        }
    }

    #[test]
    fn a_client_that_closes_is_told_the_same_and_nothing_behind_is_read() {
        let close = sent(LAST | CLOSE, &[0x03, 0xE9, b'x'], [1; 4]);
        let frames = [close, sent(LAST | BINARY, b"late", [2; 4])].concat();
        for piece in [1, 100] {
            let expected = vec![LAST | CLOSE, 2, 0x03, 0xE9];
            assert_eq!(read(&frames, piece), (Ok(Vec::new()), expected, true));
        }
        let (_, replies, has_ended) = read(&sent(LAST | CLOSE, b"", [0; 4]), 1);
        assert_eq!((replies, has_ended), (vec![LAST | CLOSE, 2, 0x03, 0xE8], true));
    }

    #[test]
    fn what_breaks_the_rules_ends_the_connection() {
        let mut unmasked = sent(LAST | BINARY, b"a", [0; 4]);
        unmasked[1] &= !MASKED;
        let mut huge = sent(LAST | BINARY, &[0; 0x1_0000], [0; 4]);
        huge[2] = 0x80;
        let broken = [
            unmasked,
            huge,
            sent(LAST | CONTINUATION, b"a", [0; 4]),
            sent(LAST | 0x40 | BINARY, b"a", [0; 4]),
            sent(LAST | 0x3, b"a", [0; 4]),
            sent(PING, b"a", [0; 4]),
            sent(LAST | PING, &[0; 126], [0; 4]),
            [sent(BINARY, b"", [0; 4]), sent(LAST | BINARY, b"a", [0; 4])].concat(),
        ];
        for frames in broken {
            let (content, replies, has_ended) = read(&frames, 1);
            assert_eq!((content, has_ended), (Err(FrameFault::Protocol), true), "{frames:?}");
            assert_eq!(replies, [LAST | CLOSE, 2, 0x03, 0xEA]);
        }
        let (content, replies, _) = read(&sent(LAST | TEXT, b"a", [0; 4]), 1);
        assert_eq!((content, &replies[2..]), (Err(FrameFault::Text), &[0x03, 0xEB][..]));
    }

    #[test]
    fn what_is_sent_has_the_shortest_header() {
        for (length, header) in [(0, 2), (125, 2), (126, 4), (0xFFFF, 4)] {
            let mut out = Vec::new();
            push_binary(&mut out, &vec![7; length]);
            assert_eq!((out.len(), out[0]), (header + length, LAST | BINARY));
        }
    }

    proptest! {
        #[test]
        fn content_is_read_however_it_is_cut(
            messages in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..4),
                0..5,
            ),
            mask in any::<[u8; 4]>(),
            piece in 1_usize..200,
        ) {
            let mut frames = Vec::new();
            for message in &messages {
                for (at, content) in message.iter().enumerate() {
                    let opcode = if at == 0 { BINARY } else { CONTINUATION };
                    let last = if at + 1 == message.len() { LAST } else { 0 };
                    frames.extend(sent(last | opcode, content, mask));
                }
            }
            let expected = messages.concat().concat();
            prop_assert_eq!(read(&frames, piece), (Ok(expected), Vec::new(), false));
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            piece in 1_usize..50,
        ) {
            prop_assert_eq!(read(&bytes, piece), read(&bytes, bytes.len().max(1)));
        }
    }
}
