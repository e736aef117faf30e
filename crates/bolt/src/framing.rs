//! Messages in chunks, written in place. A message is written behind room for the header of its
//! first chunk; what is longer than a chunk is moved apart when it ends. So rows are written once,
//! into one buffer, and sent from there.

use crate::message::tag;
use crate::packstream::Writer;

/// Most bytes of a message in one chunk.
pub const MAX_CHUNK_BYTES: usize = 0xFFFF;

const HEADER_BYTES: usize = 2;
const END: [u8; HEADER_BYTES] = [0; HEADER_BYTES];

/// Where a message began that is being written.
#[derive(Debug)]
#[must_use = "a message ends by `end_message`"]
pub struct MessageStart(usize);

impl MessageStart {
    /// Takes the message back: the buffer is as before.
    pub fn undo(self, out: &mut Vec<u8>) {
        out.truncate(self.0);
    }
}

/// Begins a message at the end of `out`. What is appended until [`end_message`] is the message.
#[inline]
pub fn begin_message(out: &mut Vec<u8>) -> MessageStart {
    let start = MessageStart(out.len());
    out.extend_from_slice(&END);
    start
}

/// Begins a `RECORD` with this many values, which the caller writes before [`end_message`].
#[inline]
pub fn begin_record(out: &mut Vec<u8>, values: usize) -> MessageStart {
    let start = begin_message(out);
    let mut writer = Writer::new(out);
    writer.structure(tag::RECORD, 1);
    writer.list(values);
    start
}

/// Ends a message that is not empty: writes its chunks' headers and its end.
#[inline]
pub fn end_message(out: &mut Vec<u8>, MessageStart(start): MessageStart) {
    let length = out.len() - start - HEADER_BYTES;
    debug_assert!(length > 0, "an empty message is a NOOP");
    match u16::try_from(length) {
        Ok(length) => out[start..start + HEADER_BYTES].copy_from_slice(&length.to_be_bytes()),
        Err(_) => split(out, start, length),
    }
    out.extend_from_slice(&END);
}

/// Makes room for the headers of a message of more than one chunk, from the last one on.
#[cold]
fn split(out: &mut Vec<u8>, start: usize, length: usize) {
    let chunks = length.div_ceil(MAX_CHUNK_BYTES);
    out.resize(out.len() + (chunks - 1) * HEADER_BYTES, 0);
    for chunk in (0..chunks).rev() {
        let from = chunk * MAX_CHUNK_BYTES;
        let bytes = (length - from).min(MAX_CHUNK_BYTES);
        let source = start + HEADER_BYTES + from;
        let header = source + chunk * HEADER_BYTES - HEADER_BYTES;
        out.copy_within(source..source + bytes, header + HEADER_BYTES);
        out[header..header + HEADER_BYTES].copy_from_slice(&(bytes as u16).to_be_bytes());
    }
}

/// Whole messages at the start of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredMessages {
    /// How many.
    pub messages: u64,
    /// Their length, in bytes.
    pub bytes: usize,
}

/// Measures at most `most` whole messages at the start of `framed`, which [`end_message`] wrote.
/// Reads headers alone.
#[must_use]
pub fn measure_messages(framed: &[u8], most: u64) -> MeasuredMessages {
    let (mut measured, mut at) = (MeasuredMessages { messages: 0, bytes: 0 }, 0);
    while measured.messages < most {
        let Some(header) = framed[at..].first_chunk::<HEADER_BYTES>() else { break };
        let length = usize::from(u16::from_be_bytes(*header));
        at += HEADER_BYTES + length;
        if at > framed.len() {
            break;
        }
        if length == 0 {
            measured = MeasuredMessages { messages: measured.messages + 1, bytes: at };
        }
    }
    measured
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dechunk::Dechunker;

    fn framed(message: &[u8]) -> Vec<u8> {
        let mut out = vec![7];
        let start = begin_message(&mut out);
        out.extend_from_slice(message);
        end_message(&mut out, start);
        assert_eq!(out.remove(0), 7);
        out
    }

    #[test]
    fn a_message_of_any_length_is_read_as_it_was_written() {
        let of_lengths = [1_usize, 2, 65_534, 65_535, 65_536, 131_070, 131_071, 200_000];
        for length in of_lengths {
            let message: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let bytes = framed(&message);
            let chunks = length.div_ceil(MAX_CHUNK_BYTES);
            assert_eq!(bytes.len(), length + 2 * chunks + 2);
            let mut input = Dechunker::new(1 << 20);
            input.receive(&bytes);
            assert_eq!(input.take().as_deref(), Some(&message[..]), "{length}");
        }
    }

    #[test]
    fn messages_are_measured_by_their_headers() {
        let long = framed(&[1; 70_000]);
        let all = [framed(&[1, 2, 3]), long.clone(), framed(&[4])].concat();
        let measured = |bytes, most| {
            let MeasuredMessages { messages, bytes } = measure_messages(bytes, most);
            (messages, bytes)
        };
        assert_eq!(measured(&all, 0), (0, 0));
        assert_eq!(measured(&all, 1), (1, 7));
        assert_eq!(measured(&all, 2), (2, 7 + long.len()));
        assert_eq!(measured(&all, u64::MAX), (3, all.len()));
        assert_eq!(measured(&all[..all.len() - 1], u64::MAX), (2, 7 + long.len()));
    }

    #[test]
    fn a_record_is_a_structure_with_a_list() {
        let mut out = Vec::new();
        let start = begin_record(&mut out, 2);
        let mut writer = Writer::new(&mut out);
        writer.int(1);
        writer.text("a");
        end_message(&mut out, start);
        assert_eq!(out, [0, 6, 0xB1, 0x71, 0x92, 0x01, 0x81, b'a', 0, 0]);
        begin_record(&mut out, 1).undo(&mut out);
        assert_eq!(out.len(), 10);
    }
}
