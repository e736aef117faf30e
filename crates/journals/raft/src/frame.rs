//! A frame: what all logs have offered meanwhile, as one entry of the group's log.
//!
//! ```text
//! 1 u8 | count u16 | count × (start u64 | offer u64 | log u16 length, bytes | entry u32 length, bytes)
//! ```
//!
//! Numbers are little-endian. `start` is that of the process that made the offer, so that it knows
//! its own. The place of the n-th item of the frame at an index is `index << 12 | n`.

use bytes::{Buf as _, BufMut as _, Bytes};
use std::sync::Arc;
use wellspring_log::shared::Place;

/// The first byte, which tells it from other bodies of entries.
const KIND: u8 = 1;
/// Most items of a frame.
pub(crate) const MAX_ITEMS: usize = 1 << ITEM_BITS;
const ITEM_BITS: u32 = 12;
/// Bytes before the first item.
pub(crate) const HEADER_BYTES: usize = 3;
/// Bytes of a frame around the entry of one item, if its log has the longest name.
pub(crate) const LARGEST_OVERHEAD_BYTES: usize = HEADER_BYTES + ITEM_BYTES + 255;
/// Bytes of an item beside the log's name and the entry.
const ITEM_BYTES: usize = 22;
/// Bytes of a frame with which no more items are taken.
pub(crate) const FULL_BYTES: usize = 1 << 20;

/// An entry of a log that is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// The process that offers it, and its number there.
    pub(crate) start: u64,
    pub(crate) offer: u64,
    pub(crate) log: Arc<str>,
    pub(crate) entry: Bytes,
}

impl Item {
    /// Bytes in a frame.
    pub(crate) fn bytes(&self) -> usize {
        ITEM_BYTES + self.log.len() + self.entry.len()
    }
}

/// The place of the n-th item at an index.
pub(crate) fn place(index: u64, item: usize) -> Place {
    assert!(item < MAX_ITEMS && index < 1 << (64 - ITEM_BITS), "a place has 64 bits");
    Place(index << ITEM_BITS | item as u64)
}

/// The index of a place.
pub(crate) fn index_of(place: Place) -> u64 {
    place.0 >> ITEM_BITS
}

/// Encodes a frame.
pub(crate) fn encode(items: &[Item]) -> Bytes {
    assert!(items.len() <= MAX_ITEMS, "a frame has a limit");
    let mut out = Vec::with_capacity(HEADER_BYTES + items.iter().map(Item::bytes).sum::<usize>());
    out.put_u8(KIND);
    out.put_u16_le(items.len() as u16);
    for Item { start, offer, log, entry } in items {
        out.put_u64_le(*start);
        out.put_u64_le(*offer);
        out.put_u16_le(u16::try_from(log.len()).expect("names of logs are short"));
        out.put_slice(log.as_bytes());
        out.put_u32_le(u32::try_from(entry.len()).expect("entries are short"));
        out.put_slice(entry);
    }
    out.into()
}

/// Decodes a frame, whose entries share its bytes; `None` if it is none.
pub(crate) fn decode(mut frame: Bytes) -> Option<Vec<Item>> {
    if frame.try_get_u8() != Ok(KIND) {
        return None;
    }
    let count = frame.try_get_u16_le().ok()?;
    let mut items = Vec::with_capacity(count.into());
    for _ in 0..count {
        let (start, offer) = (frame.try_get_u64_le().ok()?, frame.try_get_u64_le().ok()?);
        let length = usize::from(frame.try_get_u16_le().ok()?);
        let log = std::str::from_utf8(&take_bytes(&mut frame, length)?).ok()?.into();
        let length = frame.try_get_u32_le().ok()? as usize;
        let entry = take_bytes(&mut frame, length)?;
        items.push(Item { start, offer, log, entry });
    }
    frame.is_empty().then_some(items)
}

/// Takes so many bytes, if there are as many.
pub(crate) fn take_bytes(from: &mut Bytes, length: usize) -> Option<Bytes> {
    (length <= from.len()).then(|| from.split_to(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written_and_no_part_of_it_is_one() {
        let item = |offer: u64, log: &str, entry: &'static [u8]| Item {
            start: 7,
            offer,
            log: log.into(),
            entry: Bytes::from_static(entry),
        };
        let items = vec![item(1, "main", b"one"), item(u64::MAX, "", b""), item(3, "ü", &[0; 300])];
        let frame = encode(&items);
        assert_eq!(frame.len(), 3 + items.iter().map(Item::bytes).sum::<usize>());
        assert_eq!(decode(frame.clone()), Some(items));
        assert_eq!(decode(encode(&[])), Some(Vec::new()));
        for end in 0..frame.len() {
            assert_eq!(decode(frame.slice(..end)), None, "{end}");
        }
        assert_eq!(decode([&frame[..], b"x"].concat().into()), None);
    }

    #[test]
    fn places_ascend_with_frames_and_items() {
        let places = [place(1, 0), place(1, 1), place(1, MAX_ITEMS - 1), place(2, 0)];
        assert!(places.is_sorted() && places[0] > Place(0));
        assert_eq!(places.map(index_of), [1, 1, 1, 2]);
    }
}
