//! Arbitrary bytes behind a header whose checksums are right: a message that is written as it was
//! read, or refused; never a panic.
use crate::crc32c;
use bytes::Bytes;
use wellspring_journal_raft::{HEADER_BYTES, Message};

pub fn run((kind, request, damaged, body): (u8, u64, Option<u8>, Vec<u8>)) {
    let mut header = b"WSRM".to_vec();
    header.extend([1, kind, 0, 0]);
    header.extend((body.len() as u32).to_le_bytes());
    header.extend(crc32c(&body).to_le_bytes());
    header.extend(request.to_le_bytes());
    header.extend([0; 4]);
    header.extend(crc32c(&header).to_le_bytes());
    if let Some(at) = damaged {
        header[usize::from(at) % HEADER_BYTES] ^= 1 << (at % 8);
    }
    let header: [u8; HEADER_BYTES] = header.try_into().expect("32 bytes");
    let read = Message::decode(&header, Bytes::from(body.clone()));
    assert!(damaged.is_none() || read.is_err());
    if let Ok(message) = read {
        assert_eq!(message.encode()[..], [&header[..], &body].concat());
    }
}
