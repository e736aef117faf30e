//! Columns of a sealed index: one number per event, 1, 2 or 4 bytes each, in blocks of at most
//! 4,092 bytes of numbers followed by their CRC32C. All blocks but the last are full, so a number's
//! offset can be computed.

use super::IndexError;
use super::file::{ReadAt, Section, read_into};
use super::image::Image;
use super::matching::ColumnBlock;

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
    let at = rel as usize * width;
    let (number, at) = ((at / BLOCK_NUMBERS_BYTES) as u64, at % BLOCK_NUMBERS_BYTES);
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
            }
        }
    }
}
