//! Columns of a sealed index: one number per event, 1, 2 or 4 bytes each, in blocks of at most
//! 4,092 bytes of numbers followed by their CRC32C. All blocks but the last are full, so a number's
//! offset can be computed.

use super::IndexError;
use super::file::{ReadAt, Section, read, read_into};
use super::image::Image;
use super::loaded::{Slot, has_room};
use super::matching::ColumnBlock;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

const BLOCK_NUMBERS_BYTES: usize = 4092;
const CRC_BYTES: usize = 4;

/// Bytes per number needed for type numbers below `types`.
pub(super) fn type_width(types: u32) -> usize {
    match types {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

/// Writes a column, number by number.
pub(super) struct ColumnWriter {
    width: usize,
    /// The block being filled.
    block: Vec<u8>,
}

impl ColumnWriter {
    pub(super) fn new(width: usize) -> ColumnWriter {
        ColumnWriter { width, block: Vec::with_capacity(BLOCK_NUMBERS_BYTES + CRC_BYTES) }
    }

    pub(super) fn push(&mut self, number: u32, image: &mut Image<'_>) -> Result<(), IndexError> {
        self.block.extend_from_slice(&number.to_le_bytes()[..self.width]);
        if self.block.len() == BLOCK_NUMBERS_BYTES { self.close(image) } else { Ok(()) }
    }

    fn close(&mut self, image: &mut Image<'_>) -> Result<(), IndexError> {
        let crc = crc32c::crc32c(&self.block);
        self.block.extend_from_slice(&crc.to_le_bytes());
        image.put(&self.block)?;
        self.block.clear();
        Ok(())
    }

    pub(super) fn finish(mut self, image: &mut Image<'_>) -> Result<(), IndexError> {
        if self.block.is_empty() { Ok(()) } else { self.close(image) }
    }
}

/// Number of bytes of a column that can be read and checked in the time it takes to read one block.
const READ_WORTH_BYTES: u64 = 4 << 10;

/// A column that is read as a whole once as many of its blocks have been read one by one, if the
/// budget of [`super::loaded`] has room for it.
#[derive(Debug)]
pub(super) struct SealedColumn {
    section: Section,
    width: usize,
    what: &'static str,
    /// The section, verified.
    whole: Slot<Vec<u8>>,
    block_reads: AtomicU64,
}

impl SealedColumn {
    /// Reads nothing.
    pub(super) fn new(section: Section, width: usize, what: &'static str) -> SealedColumn {
        SealedColumn { section, width, what, whole: Slot::new(), block_reads: AtomicU64::new(0) }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.whole.measure(Vec::len)
    }

    /// The numbers of some events, which must be below the count of events, in this order.
    pub(super) fn get_all(
        &self,
        file: &dyn ReadAt,
        rels: impl IntoIterator<Item = u32>,
        mut each: impl FnMut(u32),
    ) -> Result<(), IndexError> {
        if let Some(whole) = self.open(file)? {
            for rel in rels {
                let (number, at) = place(rel, self.width);
                let start = number as usize * (BLOCK_NUMBERS_BYTES + CRC_BYTES);
                each(self.number(whole.get(start..).unwrap_or_default(), at)?);
            }
            return Ok(());
        }
        let mut block = ColumnBlock::default();
        let mut reads = 0;
        for rel in rels {
            let (number, at) = place(rel, self.width);
            if block.bytes.is_empty() || block.number != number {
                load(file, self.section, number, &mut block, self.what)?;
                reads += 1;
            }
            each(self.number(&block.bytes, at)?);
        }
        self.block_reads.fetch_add(reads, Relaxed);
        Ok(())
    }

    /// The number at a place in a block.
    fn number(&self, block: &[u8], at: usize) -> Result<u32, IndexError> {
        let bytes = block.get(at..at + self.width).ok_or_else(|| self.damaged())?;
        let mut value = [0; 4];
        value[..self.width].copy_from_slice(bytes);
        Ok(u32::from_le_bytes(value))
    }

    fn damaged(&self) -> IndexError {
        IndexError::Damaged { what: self.what, offset: self.section.offset }
    }

    /// The whole column, if it is in memory or worth reading.
    fn open(&self, file: &dyn ReadAt) -> Result<Option<Arc<Vec<u8>>>, IndexError> {
        let whole = self.whole.get();
        if whole.is_some() || self.block_reads.load(Relaxed) <= self.section.len / READ_WORTH_BYTES
        {
            return Ok(whole);
        }
        let len = usize::try_from(self.section.len).map_err(|_| self.damaged())?;
        if !has_room(len) {
            return Ok(None);
        }
        self.block_reads.store(0, Relaxed);
        let bytes = read(file, self.section.offset, len, self.what)?;
        let blocks = bytes.chunks(BLOCK_NUMBERS_BYTES + CRC_BYTES);
        let is_whole = blocks.into_iter().all(|block| {
            let Some((numbers, crc)) = block.split_last_chunk() else { return false };
            crc32c::crc32c(numbers).to_le_bytes() == *crc
        });
        if is_whole { Ok(Some(self.whole.put(bytes, len))) } else { Err(self.damaged()) }
    }
}

/// The block of an event's number, and the offset in it.
fn place(rel: u32, width: usize) -> (u64, usize) {
    let at = rel as usize * width;
    ((at / BLOCK_NUMBERS_BYTES) as u64, at % BLOCK_NUMBERS_BYTES)
}

/// The number of event `rel`, which must be below the count of events. Reads at most one block.
pub(super) fn get(
    file: &dyn ReadAt,
    section: Section,
    width: usize,
    rel: u32,
    block: &mut ColumnBlock,
    what: &'static str,
) -> Result<u32, IndexError> {
    debug_assert!(matches!(width, 1 | 2 | 4), "no number crosses the end of a block");
    let (number, at) = place(rel, width);
    if block.bytes.is_empty() || block.number != number {
        load(file, section, number, block, what)?;
    }
    let damaged = IndexError::Damaged { what, offset: section.offset };
    let bytes = block.bytes.get(at..at + width).ok_or(damaged)?;
    let mut value = [0; 4];
    value[..width].copy_from_slice(bytes);
    Ok(u32::from_le_bytes(value))
}

/// Processes a number of a column.
pub(super) type EachNumber<'f> = dyn FnMut(u32) -> Result<(), IndexError> + 'f;

/// Processes the numbers of the first `events` events.
pub(super) fn each(
    file: &dyn ReadAt,
    section: Section,
    width: usize,
    events: u32,
    what: &'static str,
    each: &mut EachNumber<'_>,
) -> Result<(), IndexError> {
    let mut block = ColumnBlock::default();
    let mut left = events as usize;
    for number in 0.. {
        if left == 0 {
            break;
        }
        load(file, section, number, &mut block, what)?;
        let count = left.min(BLOCK_NUMBERS_BYTES / width);
        let damaged = IndexError::Damaged { what, offset: section.offset };
        for bytes in block.bytes.get(..count * width).ok_or(damaged)?.chunks_exact(width) {
            let mut value = [0; 4];
            value[..width].copy_from_slice(bytes);
            each(u32::from_le_bytes(value))?;
        }
        left -= count;
    }
    Ok(())
}

fn load(
    file: &dyn ReadAt,
    section: Section,
    number: u64,
    block: &mut ColumnBlock,
    what: &'static str,
) -> Result<(), IndexError> {
    let full = (BLOCK_NUMBERS_BYTES + CRC_BYTES) as u64;
    let start = number * full;
    let offset = section.offset + start;
    let len = section.len.saturating_sub(start).min(full) as usize;
    let damaged = IndexError::Damaged { what, offset };
    let Some(numbers) = len.checked_sub(CRC_BYTES) else { return Err(damaged) };
    // Emptied first: after an error the block must not be mistaken for the requested one.
    let mut bytes = std::mem::take(&mut block.bytes);
    bytes.resize(len, 0);
    read_into(file, offset, &mut bytes, what)?;
    if crc32c::crc32c(&bytes[..numbers]).to_le_bytes() != bytes[numbers..] {
        return Err(damaged);
    }
    bytes.truncate(numbers);
    *block = ColumnBlock { number, bytes };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::image::image_of;
    use super::*;

    #[test]
    fn columns_of_every_width_and_length_read_back() {
        for width in [1, 2, 4] {
            for events in [0u32, 1, 1023, 1024, 2046, 4092, 4093, 9000] {
                let value = |rel: u32| rel.wrapping_mul(77) & (u32::MAX >> (32 - 8 * width));
                let file = image_of(|image| {
                    let mut writer = ColumnWriter::new(width as usize);
                    (0..events).try_for_each(|rel| writer.push(value(rel), image))?;
                    writer.finish(image)
                });
                let section = Section { len: file.len() as u64, ..Section::default() };
                let mut block = ColumnBlock::default();
                for rel in (0..events).rev() {
                    let got = get(&file, section, width as usize, rel, &mut block, "column");
                    assert_eq!(got.unwrap(), value(rel));
                }
                let mut rels = 0..events;
                each(&file, section, width as usize, events, "column", &mut |number| {
                    assert_eq!(number, value(rels.next().unwrap()));
                    Ok(())
                })
                .unwrap();
                assert!(rels.is_empty());
                // By blocks first, then as a whole.
                let column = SealedColumn::new(section, width as usize, "column");
                for round in 0..30 {
                    let mut numbers = Vec::new();
                    let rels = (0..events).rev().step_by(100);
                    column.get_all(&file, rels.clone(), |number| numbers.push(number)).unwrap();
                    assert!(numbers.into_iter().eq(rels.map(value)), "round {round}");
                }
                assert_eq!(column.memory_bytes(), file.len());
            }
        }
    }
}
