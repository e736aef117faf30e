//! Columns of a sealed index: one number per event, 1, 2 or 4 bytes each, in
//! blocks of at most 4,092 bytes of numbers followed by their CRC32C. All
//! blocks but the last are full, so a number's place is computed.

use super::IndexError;
use super::file::{ReadAt, Section, read_into};
use super::matching::ColumnBlock;

const BLOCK_NUMBERS_BYTES: usize = 4092;
const CRC_BYTES: usize = 4;

/// Bytes per number that type numbers below `types` need.
pub(super) fn type_width(types: u32) -> usize {
    match types {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

/// Appends a column.
pub(super) fn put(out: &mut Vec<u8>, width: usize, values: impl Iterator<Item = u32>) {
    let mut block_at = out.len();
    let close = |out: &mut Vec<u8>, block_at: usize| {
        let crc = crc32c::crc32c(&out[block_at..]);
        out.extend_from_slice(&crc.to_le_bytes());
        out.len()
    };
    for value in values {
        out.extend_from_slice(&value.to_le_bytes()[..width]);
        if out.len() - block_at == BLOCK_NUMBERS_BYTES {
            block_at = close(out, block_at);
        }
    }
    if out.len() > block_at {
        close(out, block_at);
    }
}

/// The number of the event `rel`, which must be below the count of events. Reads at most one block.
pub(super) fn get(
    file: &dyn ReadAt,
    section: Section,
    width: usize,
    rel: u32,
    block: &mut ColumnBlock,
    what: &'static str,
) -> Result<u32, IndexError> {
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
    // Emptied first: after an error the block must not pass for the one asked for.
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
    use super::*;

    #[test]
    fn columns_of_every_width_and_length_read_back() {
        for width in [1, 2, 4] {
            for events in [0u32, 1, 1023, 1024, 2046, 4092, 4093, 9000] {
                let value = |rel: u32| rel.wrapping_mul(77) & (u32::MAX >> (32 - 8 * width));
                let mut file = Vec::new();
                put(&mut file, width as usize, (0..events).map(value));
                let section = Section { len: file.len() as u64, ..Section::default() };
                let mut block = ColumnBlock::default();
                for rel in (0..events).rev() {
                    let got = get(&file, section, width as usize, rel, &mut block, "column");
                    assert_eq!(got.unwrap(), value(rel));
                }
            }
        }
    }
}
