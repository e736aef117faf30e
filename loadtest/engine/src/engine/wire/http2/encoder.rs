//! Writes the header blocks of requests, with a dynamic table of our own
//! (RFC 7541 sections 2.3.2 and 6).
//!
//! The table is only ever added to, as long as there is room: nothing is
//! evicted, so an index changes only when an entry is added, and a block that
//! added nothing stays valid until then ([`Encoder::stamp`]).

use super::hpack::{STATIC, write_number};

/// The table's size before the peer says otherwise; we never use more.
const TABLE_BYTES: usize = 4096;
/// What an entry counts besides its text (RFC 7541 section 4.1).
const ENTRY_BYTES: usize = 32;
/// Fields remembered as seen once.
const SEEN: usize = 64;

/// Whether a field goes into the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Index {
    /// Yes: it will be sent again just so.
    Now,
    /// When it is sent for the second time: it may be different every time.
    Repeated,
}

#[derive(Debug)]
struct Entry {
    hash: u32,
    name: Box<str>,
    value: Box<str>,
}

/// The request side of one connection's header compression.
#[derive(Debug)]
pub(super) struct Encoder {
    entries: Vec<Entry>,
    used_bytes: usize,
    limit_bytes: usize,
    /// A lower limit was agreed on; the next block must say so first.
    announce: bool,
    stamp: u64,
    seen: [u32; SEEN],
}

impl Encoder {
    pub(super) fn new() -> Self {
        Encoder {
            entries: Vec::new(),
            used_bytes: 0,
            limit_bytes: TABLE_BYTES,
            announce: false,
            stamp: 0,
            seen: [0; SEEN],
        }
    }

    /// Changes whenever blocks written before may no longer be repeated as they are.
    pub(super) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// The peer's `SETTINGS_HEADER_TABLE_SIZE`.
    pub(super) fn set_peer_limit(&mut self, bytes: u32) {
        let limit = usize::try_from(bytes).map_or(TABLE_BYTES, |bytes| bytes.min(TABLE_BYTES));
        if limit != self.limit_bytes {
            self.limit_bytes = limit;
            self.announce = true;
            self.stamp += 1;
        }
    }

    /// To be called before the first field of each block.
    pub(super) fn begin(&mut self, out: &mut Vec<u8>) {
        if !self.announce {
            return;
        }
        // Through 0: whatever sizes were agreed on in between, none was smaller (section 4.2).
        self.announce = false;
        self.entries.clear();
        self.used_bytes = 0;
        self.stamp += 1;
        write_number(0x20, 5, 0, out);
        if self.limit_bytes > 0 {
            write_number(0x20, 5, self.limit_bytes, out);
        }
    }

    /// Appends one field. The name is in lower case.
    pub(super) fn field(&mut self, name: &str, value: &str, index: Index, out: &mut Vec<u8>) {
        let mut name_at = None;
        for (at, (known, its_value)) in STATIC.iter().enumerate() {
            if *known != name {
                continue;
            }
            if *its_value == value && !value.is_empty() {
                return write_number(0x80, 7, at + 1, out);
            }
            name_at.get_or_insert(at + 1);
        }
        let hash = hash(name, value);
        let same =
            |entry: &Entry| entry.hash == hash && *entry.name == *name && *entry.value == *value;
        if let Some(at) = self.entries.iter().rposition(same) {
            return write_number(0x80, 7, self.index_of(at), out);
        }
        if name_at.is_none() {
            let known = self.entries.iter().rposition(|entry| *entry.name == *name);
            name_at = known.map(|at| self.index_of(at));
        }
        if self.wants(name, value, hash, index) {
            write_number(0x40, 6, name_at.unwrap_or(0), out);
            self.used_bytes += name.len() + value.len() + ENTRY_BYTES;
            self.entries.push(Entry { hash, name: name.into(), value: value.into() });
            self.stamp += 1;
        } else {
            write_number(0x00, 4, name_at.unwrap_or(0), out);
        }
        if name_at.is_none() {
            write_string(name, out);
        }
        write_string(value, out);
    }

    /// The newest entry has the lowest index after the static ones.
    fn index_of(&self, at: usize) -> usize {
        STATIC.len() + self.entries.len() - at
    }

    fn wants(&mut self, name: &str, value: &str, hash: u32, index: Index) -> bool {
        let bytes = name.len() + value.len() + ENTRY_BYTES;
        if self.used_bytes + bytes > self.limit_bytes {
            return false;
        }
        let seen = &mut self.seen[hash as usize % SEEN];
        index == Index::Now || std::mem::replace(seen, hash) == hash
    }
}

/// Without Huffman coding: it would save the peer bytes and cost both time.
fn write_string(text: &str, out: &mut Vec<u8>) {
    write_number(0, 7, text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

/// FNV-1a, 32 bits; never 0, which stands for "nothing seen".
fn hash(name: &str, value: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    name.bytes().chain([b':']).chain(value.bytes()).fold(0x811c_9dc5, step).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(encoder: &mut Encoder, fields: &[(&str, &str)], index: Index) -> Vec<u8> {
        let mut out = Vec::new();
        encoder.begin(&mut out);
        for (name, value) in fields {
            encoder.field(name, value, index, &mut out);
        }
        out
    }

    const FIRST: [(&str, &str); 4] = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
    ];

    #[test]
    fn requests_are_those_of_appendix_c_3() {
        let mut encoder = Encoder::new();
        let first = block(&mut encoder, &FIRST, Index::Now);
        assert_eq!(first, b"\x82\x86\x84\x41\x0fwww.example.com");
        let mut second = FIRST.to_vec();
        second.push(("cache-control", "no-cache"));
        let second = block(&mut encoder, &second, Index::Now);
        assert_eq!(second, b"\x82\x86\x84\xbe\x58\x08no-cache");
        let third = [
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/index.html"),
            (":authority", "www.example.com"),
            ("custom-key", "custom-value"),
        ];
        let third = block(&mut encoder, &third, Index::Now);
        assert_eq!(third, b"\x82\x87\x85\xbf\x40\x0acustom-key\x0ccustom-value");
        assert_eq!(encoder.used_bytes, 164);
    }

    #[test]
    fn a_block_that_added_nothing_can_be_repeated() {
        let mut encoder = Encoder::new();
        block(&mut encoder, &FIRST, Index::Now);
        let stamp = encoder.stamp();
        let again = block(&mut encoder, &FIRST, Index::Now);
        assert_eq!((again, encoder.stamp()), (vec![0x82, 0x86, 0x84, 0xbe], stamp));
        block(&mut encoder, &[("x", "y")], Index::Now);
        assert_ne!(encoder.stamp(), stamp);
    }

    #[test]
    fn what_may_vary_is_indexed_when_it_comes_again() {
        let mut encoder = Encoder::new();
        let one = block(&mut encoder, &[("x-id", "1")], Index::Repeated);
        assert_eq!(one, b"\x00\x04x-id\x011");
        let two = block(&mut encoder, &[("x-id", "1")], Index::Repeated);
        assert_eq!(two, b"\x40\x04x-id\x011");
        let three = block(&mut encoder, &[("x-id", "1"), ("x-id", "2")], Index::Repeated);
        assert_eq!(three, b"\xbe\x0f\x2f\x012");
    }

    #[test]
    fn the_peers_limit_is_kept_and_told() {
        let mut encoder = Encoder::new();
        block(&mut encoder, &FIRST, Index::Now);
        encoder.set_peer_limit(4096);
        encoder.set_peer_limit(65_536);
        assert_eq!(block(&mut encoder, &FIRST, Index::Now)[0], 0x82, "no less than we use");
        encoder.set_peer_limit(0);
        let literal = b"\x82\x86\x84\x01\x0fwww.example.com";
        assert_eq!(block(&mut encoder, &FIRST, Index::Now)[..1], [0x20]);
        assert_eq!(block(&mut encoder, &FIRST, Index::Now), literal);
        encoder.set_peer_limit(100);
        assert_eq!(block(&mut encoder, &FIRST, Index::Now)[..4], [0x20, 0x3f, 69, 0x82]);
        assert_eq!(block(&mut encoder, &FIRST, Index::Now), [0x82, 0x86, 0x84, 0xbe]);
        // 57 of 100 bytes are in use: another entry has no room, and none is evicted for it.
        block(&mut encoder, &[("a", "0123456789abcdef")], Index::Now);
        assert_eq!(encoder.entries.len(), 1);
    }
}
