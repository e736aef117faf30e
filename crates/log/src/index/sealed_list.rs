//! Writes posting lists of a sealed index, and reads them by index.
//!
//! Up to [`INLINE`] elements are stored in the dictionary entry. Longer lists are in the postings
//! section, in blocks of [`BLOCK`], each a separate ascending list (see [`super::varint`]), after a
//! skip table that finds a block without reading earlier ones:
//!
//! | size | field |
//! |---|---|
//! | 12·b | per block: last element u32, end of its bytes counted from the first block u32, CRC32C of its bytes |
//! | 4 | CRC32C of the above |
//! | … | the blocks |

use super::IndexError;
use super::file::{ReadAt, Section, read};
use super::varint;
use wellspring_format::record::read_u32;

/// Maximum length of a list stored in its dictionary entry.
pub(super) const INLINE: usize = 16;
/// Elements per block.
pub(super) const BLOCK: usize = 128;
const SKIP_BYTES: usize = 12;
const WHAT: &str = "postings";

/// A list being read. The skip table is read when first needed; then one block at a time is held.
#[derive(Debug, Clone, Default)]
pub(crate) struct SealedList {
    count: u32,
    last: u32,
    /// Offset in the file; unused for a list in its entry.
    at: u64,
    skips: Vec<Skip>,
    /// The current block; meaningless while `values` is empty.
    block: u32,
    values: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Skip {
    last: u32,
    end: u32,
    crc: u32,
}

/// Appends the list's value to a dictionary entry: count, then the elements or their location (last
/// element, offset in the postings section).
pub(super) fn put(entry: &mut Vec<u8>, postings: &mut Vec<u8>, values: &[u32]) {
    varint::put(entry, values.len() as u64);
    if values.len() <= INLINE {
        varint::put_ascending(entry, values);
        return;
    }
    varint::put(entry, u64::from(values[values.len() - 1]));
    varint::put(entry, postings.len() as u64);
    let start = postings.len();
    let skip_bytes = values.len().div_ceil(BLOCK) * SKIP_BYTES;
    postings.resize(start + skip_bytes + 4, 0);
    let blocks_at = postings.len();
    for (i, block) in values.chunks(BLOCK).enumerate() {
        let block_at = postings.len();
        varint::put_ascending(postings, block);
        let crc = crc32c::crc32c(&postings[block_at..]);
        let end = (postings.len() - blocks_at) as u32;
        let skip = &mut postings[start + i * SKIP_BYTES..][..SKIP_BYTES];
        skip[..4].copy_from_slice(&block[block.len() - 1].to_le_bytes());
        skip[4..8].copy_from_slice(&end.to_le_bytes());
        skip[8..].copy_from_slice(&crc.to_le_bytes());
    }
    let crc = crc32c::crc32c(&postings[start..start + skip_bytes]);
    postings[start + skip_bytes..blocks_at].copy_from_slice(&crc.to_le_bytes());
}

impl SealedList {
    /// Becomes the list that [`put`] wrote into an entry, and advances `at`; `None` if it is
    /// malformed.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
        events: u32,
        postings: Section,
    ) -> Option<()> {
        self.skips.clear();
        self.values.clear();
        self.block = 0;
        self.count = u32::try_from(varint::take(bytes, at)?).ok()?;
        if self.count == 0 || self.count > events {
            return None;
        }
        if self.is_inline() {
            let count = self.count as usize;
            self.values.reserve_exact(count);
            varint::take_ascending(bytes, at, count, events, &mut self.values)?;
            (self.last, self.at) = (*self.values.last()?, 0);
        } else {
            self.last = u32::try_from(varint::take(bytes, at)?).ok()?;
            let offset = varint::take(bytes, at)?;
            let skips = u64::from(self.count).div_ceil(BLOCK as u64) * SKIP_BYTES as u64 + 4;
            offset.checked_add(skips).filter(|&end| end <= postings.len)?;
            self.at = postings.offset + offset;
        }
        (self.last < events).then_some(())
    }

    /// The list just passed to [`put`], whose postings begin at `at`; to be read from the postings
    /// as a separate file.
    pub(super) fn written(at: usize, values: &[u32]) -> SealedList {
        let last = *values.last().expect("a list has elements");
        let inline = values.len() <= INLINE;
        SealedList {
            count: values.len() as u32,
            last,
            at: at as u64,
            skips: Vec::new(),
            block: 0,
            values: if inline { values.to_vec() } else { Vec::new() },
        }
    }

    /// Appends all elements plus `shift` to `out`. `events` is an upper bound of elements.
    pub(super) fn read_all(
        &mut self,
        file: &dyn ReadAt,
        events: u32,
        shift: u32,
        out: &mut Vec<u32>,
    ) -> Result<(), IndexError> {
        let blocks = if self.is_inline() { 1 } else { self.count.div_ceil(BLOCK as u32) };
        for block in 0..blocks {
            self.load_block(file, block, events)?;
            out.extend(self.values.iter().map(|value| value + shift));
        }
        Ok(())
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    fn is_inline(&self) -> bool {
        self.count as usize <= INLINE
    }

    fn damaged(&self) -> IndexError {
        IndexError::Damaged { what: WHAT, offset: self.at }
    }

    fn load_skips(&mut self, file: &dyn ReadAt) -> Result<(), IndexError> {
        if !self.skips.is_empty() {
            return Ok(());
        }
        let blocks = (self.count as usize).div_ceil(BLOCK);
        let bytes = read(file, self.at, blocks * SKIP_BYTES + 4, WHAT)?;
        let (table, crc) = bytes.split_at(blocks * SKIP_BYTES);
        if crc32c::crc32c(table).to_le_bytes() != crc {
            return Err(self.damaged());
        }
        let skip = |bytes: &[u8]| Skip {
            last: read_u32(bytes, 0),
            end: read_u32(bytes, 4),
            crc: read_u32(bytes, 8),
        };
        let skips: Vec<Skip> = table.chunks_exact(SKIP_BYTES).map(skip).collect();
        let ordered = skips.windows(2).all(|s| s[0].last < s[1].last && s[0].end < s[1].end);
        if !ordered || skips.last().is_none_or(|skip| skip.last != self.last) {
            return Err(self.damaged());
        }
        self.skips = skips;
        Ok(())
    }

    fn load_block(&mut self, file: &dyn ReadAt, block: u32, limit: u32) -> Result<(), IndexError> {
        if self.is_inline() || !self.values.is_empty() && self.block == block {
            return Ok(());
        }
        self.load_skips(file)?;
        let i = block as usize;
        let damaged = self.damaged();
        let Some(&skip) = self.skips.get(i) else { return Err(damaged) };
        let start = if i == 0 { 0 } else { self.skips[i - 1].end };
        let blocks_at = self.at + (self.skips.len() * SKIP_BYTES + 4) as u64;
        // A number takes at most five bytes: a larger block is damage, not a reason to allocate.
        let len = skip.end.checked_sub(start).filter(|&len| len as usize <= BLOCK * 5);
        let Some(len) = len else { return Err(damaged) };
        let bytes = read(file, blocks_at + u64::from(start), len as usize, WHAT)?;
        if crc32c::crc32c(&bytes) != skip.crc {
            return Err(damaged);
        }
        let count = BLOCK.min(self.count as usize - i * BLOCK);
        let mut values = std::mem::take(&mut self.values);
        let read = varint::take_ascending(&bytes, &mut 0, count, limit, &mut values);
        if read.is_none() || values.last() != Some(&skip.last) {
            return Err(damaged);
        }
        (self.values, self.block) = (values, block);
        Ok(())
    }

    /// Number of elements below `bound`. `events` is an upper bound of elements.
    pub(super) fn rank(
        &mut self,
        file: &dyn ReadAt,
        bound: u32,
        events: u32,
    ) -> Result<u32, IndexError> {
        if bound > self.last {
            return Ok(self.count);
        }
        // No element is below 0, so the skip table is not needed.
        if bound == 0 {
            return Ok(0);
        }
        if self.is_inline() {
            return Ok(self.values.partition_point(|&value| value < bound) as u32);
        }
        let held = !self.values.is_empty()
            && self.values[0] < bound
            && self.values.last().is_some_and(|&last| last >= bound);
        if !held {
            self.load_skips(file)?;
            let block = self.skips.partition_point(|skip| skip.last < bound);
            self.load_block(file, block as u32, events)?;
        }
        let within = self.values.partition_point(|&value| value < bound);
        Ok(self.block * BLOCK as u32 + within as u32)
    }

    /// The element at an index below the count.
    pub(super) fn get(
        &mut self,
        file: &dyn ReadAt,
        index: u32,
        events: u32,
    ) -> Result<u32, IndexError> {
        if index + 1 == self.count {
            return Ok(self.last);
        }
        if self.is_inline() {
            return self.values.get(index as usize).copied().ok_or(self.damaged());
        }
        self.load_block(file, index / BLOCK as u32, events)?;
        let value = self.values.get(index as usize % BLOCK);
        value.copied().ok_or(self.damaged())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lists_of_any_length_read_back_and_rank(
            gaps in prop::collection::vec(1u32..9, 1..700),
            bounds in prop::collection::vec(0u32..4000, 1..30),
        ) {
            let mut value = 0;
            let values: Vec<u32> = gaps.iter().map(|gap| { value += gap; value }).collect();
            let (mut entry, mut postings) = (Vec::new(), vec![9; 5]);
            put(&mut entry, &mut postings, &values);
            let section = Section { len: postings.len() as u64, ..Section::default() };
            let mut at = 0;
            let mut list = SealedList::written(3, &[7; 40]);
            list.take(&entry, &mut at, value + 1, section).unwrap();
            prop_assert_eq!(at, entry.len());
            for bound in bounds {
                let rank = values.iter().filter(|&&v| v < bound).count() as u32;
                prop_assert_eq!(list.rank(&postings, bound, value + 1).unwrap(), rank);
            }
            let mut all = Vec::new();
            list.read_all(&postings, value + 1, 3, &mut all).unwrap();
            prop_assert!(all.iter().map(|v| v - 3).eq(values.iter().copied()));
            let mut all = Vec::new();
            let mut again = SealedList::written(5, &values);
            again.read_all(&postings, value + 1, 0, &mut all).unwrap();
            prop_assert_eq!(&all, &values);
            for (i, &v) in values.iter().enumerate().rev() {
                prop_assert_eq!(list.get(&postings, i as u32, value + 1).unwrap(), v);
            }
        }
    }
}
