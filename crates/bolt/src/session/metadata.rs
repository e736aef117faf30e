//! The map of a `SUCCESS`, written member by member.

use crate::packstream::Writer;

/// The most members of the shortest header of a map.
const TINY: usize = 15;

/// Writes members of a map whose number is known only at its end.
#[derive(Debug)]
pub struct Metadata<'a> {
    out: &'a mut Vec<u8>,
    /// Where the header is.
    start: usize,
    members: usize,
}

impl<'a> Metadata<'a> {
    /// Begins a map at the end of `out`.
    pub(super) fn begin(out: &'a mut Vec<u8>) -> Metadata<'a> {
        let start = out.len();
        Writer::new(out).map(0);
        Metadata { out, start, members: 0 }
    }

    /// Writes a key; the caller writes one value. Keys differ.
    pub fn member(&mut self, key: &str) -> Writer<'_> {
        self.members += 1;
        let mut writer = Writer::new(self.out);
        writer.text(key);
        writer
    }

    /// A member that is a text.
    pub fn text(&mut self, key: &str, value: &str) {
        self.member(key).text(value);
    }

    /// A member that is an integer.
    pub fn int(&mut self, key: &str, value: i64) {
        self.member(key).int(value);
    }

    /// A member that is `true` or `false`.
    pub fn bool(&mut self, key: &str, value: bool) {
        self.member(key).bool(value);
    }

    /// Writes the header.
    pub(super) fn finish(self) {
        let mut header = Vec::new();
        if self.members <= TINY {
            self.out[self.start] |= self.members as u8;
        } else {
            Writer::new(&mut header).map(self.members);
            self.out.splice(self.start..=self.start, header);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packstream::{Item, Reader};

    #[test]
    fn the_header_says_how_many_members_were_written() {
        for members in [0, 1, 15, 16, 300] {
            let mut out = vec![0xC0];
            let mut metadata = Metadata::begin(&mut out);
            (0..members).for_each(|index| metadata.int(&index.to_string(), 1));
            metadata.finish();
            let mut reader = Reader::new(&out[1..]);
            assert_eq!(reader.item(), Ok(Item::Map(members)));
            assert_eq!(Reader::new(&out[1..]).value().map(<[u8]>::len), Ok(out.len() - 1));
        }
    }
}
