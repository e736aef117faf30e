//! Frames as bytes (RFC 9113 sections 4 and 6).

use super::Broken;

/// What a client says first (section 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes before the payload of every frame.
pub(super) const HEAD_BYTES: usize = 9;

pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;
pub(super) const PRIORITY: u8 = 0x2;
pub(super) const RST_STREAM: u8 = 0x3;
pub(super) const SETTINGS: u8 = 0x4;
pub(super) const PUSH_PROMISE: u8 = 0x5;
pub(super) const PING: u8 = 0x6;
pub(super) const GOAWAY: u8 = 0x7;
pub(super) const WINDOW_UPDATE: u8 = 0x8;
pub(super) const CONTINUATION: u8 = 0x9;

/// Of DATA and HEADERS.
pub(super) const END_STREAM: u8 = 0x1;
/// Of SETTINGS and PING.
pub(super) const ACK: u8 = 0x1;
/// Of HEADERS and CONTINUATION.
pub(super) const END_HEADERS: u8 = 0x4;
/// Of DATA and HEADERS.
pub(super) const PADDED: u8 = 0x8;
/// Of HEADERS.
pub(super) const HAS_PRIORITY: u8 = 0x20;

/// Error codes that we send (section 7).
pub(super) const PROTOCOL_ERROR: u32 = 0x1;
pub(super) const CANCEL: u32 = 0x8;

/// Identifiers of settings (section 6.5.2).
pub(super) const HEADER_TABLE_SIZE: u16 = 0x1;
pub(super) const ENABLE_PUSH: u16 = 0x2;
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 0x3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 0x4;
pub(super) const MAX_FRAME_SIZE: u16 = 0x5;

/// What precedes a frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHead {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    /// 0 is the connection itself.
    pub(super) stream: u32,
}

impl FrameHead {
    /// Reads one off the front of `bytes`, if there are enough.
    #[inline]
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let head = bytes.first_chunk::<HEAD_BYTES>()?;
        Some(FrameHead {
            length: usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]),
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff,
        })
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends the head of a frame; `length` is below 2^24.
pub(super) fn write_head(length: usize, kind: u8, flags: u8, stream: u32, out: &mut Vec<u8>) {
    let id = stream.to_be_bytes();
    let size = [(length >> 16) as u8, (length >> 8) as u8, length as u8];
    out.extend_from_slice(&[size[0], size[1], size[2], kind, flags, id[0], id[1], id[2], id[3]]);
}

/// Appends a frame.
pub(super) fn write(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    write_head(payload.len(), kind, flags, stream, out);
    out.extend_from_slice(payload);
}

/// Appends SETTINGS.
pub(super) fn write_settings(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    write_head(settings.len() * 6, SETTINGS, 0, 0, out);
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the frames of a header block: HEADERS, and CONTINUATION as long as it does not fit.
pub(super) fn write_block(
    block: &[u8],
    flags: u8,
    stream: u32,
    most_bytes: usize,
    out: &mut Vec<u8>,
) {
    let (mut part, mut rest) = block.split_at(block.len().min(most_bytes));
    let mut kind = HEADERS;
    let mut flags = flags;
    loop {
        flags |= if rest.is_empty() { END_HEADERS } else { 0 };
        write(kind, flags, stream, part, out);
        if rest.is_empty() {
            return;
        }
        (kind, flags) = (CONTINUATION, 0);
        (part, rest) = rest.split_at(rest.len().min(most_bytes));
    }
}

/// The block within the payload of HEADERS: without padding and priority (section 6.2).
pub(super) fn block_of<'a>(head: &FrameHead, payload: &'a [u8]) -> Result<&'a [u8], Broken> {
    let mut block = payload;
    if head.has(PADDED) {
        let (padding, rest) = block.split_first().ok_or(SHORT)?;
        let length = rest.len().checked_sub(usize::from(*padding));
        block = &rest[..length.ok_or(Broken::protocol("padding longer than its frame"))?];
    }
    if head.has(HAS_PRIORITY) {
        block = block.get(5..).ok_or(SHORT)?;
    }
    Ok(block)
}

/// A frame shorter or longer than its kind must be.
pub(super) const SHORT: Broken = Broken::protocol("a frame of the wrong size");

/// A payload that is one number.
pub(super) fn word(payload: &[u8]) -> Result<u32, Broken> {
    payload.try_into().map(u32::from_be_bytes).map_err(|_| SHORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_block_goes_out_in_pieces_that_belong_together() {
        let block: Vec<u8> = (0..25).collect();
        let mut out = Vec::new();
        write_block(&block, END_STREAM, 7, 10, &mut out);
        let (mut rest, mut seen, mut whole) = (out.as_slice(), Vec::new(), Vec::new());
        while let Some(head) = FrameHead::parse(rest) {
            seen.push((head.kind, head.flags, head.stream, head.length));
            whole.extend_from_slice(&rest[9..9 + head.length]);
            rest = &rest[9 + head.length..];
        }
        assert_eq!(whole, block);
        assert_eq!(seen, [(1, 1, 7, 10), (9, 0, 7, 10), (9, 4, 7, 5)]);
    }

    #[test]
    fn padding_and_priority_are_stripped_and_never_read_past() {
        let head = |flags| FrameHead { length: 0, kind: HEADERS, flags, stream: 1 };
        assert_eq!(block_of(&head(0), b"abc").unwrap(), b"abc");
        assert_eq!(block_of(&head(PADDED), b"\x02abc\0\0").unwrap(), b"abc");
        let both = PADDED | HAS_PRIORITY;
        assert_eq!(block_of(&head(both), b"\x01\0\0\0\0\x0fabc\0").unwrap(), b"abc");
        for (flags, payload) in
            [(PADDED, &b""[..]), (PADDED, b"\x02a"), (HAS_PRIORITY, b"1234"), (both, b"\x01123456")]
        {
            let result = block_of(&head(flags), payload);
            assert_eq!(result.is_ok(), payload == b"\x01123456", "{payload:?}");
        }
    }
}
