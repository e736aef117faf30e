//! Reading one record.

use super::record::{RECORD_HEADER_BYTES, RecordHeader};
use super::sector::{NoRecord, SectorReader, place_of};

/// Reads the record at `offset`, and its body into `body`. Returns its header and the link of the
/// next record.
pub(super) fn read_record(
    sectors: &mut SectorReader,
    offset: u64,
    body: &mut Vec<u8>,
) -> Result<(RecordHeader, u32), NoRecord> {
    let place = place_of(offset);
    let mut bytes = [0; RECORD_HEADER_BYTES];
    sectors.read(offset, &mut bytes[..1])?;
    if bytes[0] == 0 {
        return Err(NoRecord::Unwritten { place });
    }
    sectors.read(offset, &mut bytes)?;
    let damaged = |what| NoRecord::Damaged { place, what };
    let header = RecordHeader::decode(&bytes);
    let (header, link) = header.ok_or(damaged("the header of a record fails its checks"))?;
    body.resize(header.body_bytes as usize, 0);
    sectors.read(offset + RECORD_HEADER_BYTES as u64, body)?;
    if crc32c::crc32c(body) != header.body_crc {
        return Err(damaged("the body of a record fails its checksum"));
    }
    Ok((header, link))
}
