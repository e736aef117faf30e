//! What a restore reads of a backup: the manifest, and the bytes of a segment. Whatever they are,
//! they are refused or read, without a panic and in bounded memory; and what is read as a segment
//! can be written anew.
use wellspring_backup::Manifest;
use wellspring_format::segment_copy::SegmentCopy;
use wellspring_format::segment_reader::SegmentReader;

pub fn run(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else { return };
    if kind & 1 == 0 {
        // Half of them with the checksum that they need to come as far as the other checks.
        let sealed = match kind & 2 {
            0 => bytes.to_vec(),
            _ => match serde_json::from_slice::<Manifest>(bytes) {
                Ok(manifest) => manifest.encode(),
                Err(_) => return,
            },
        };
        if let Ok(manifest) = Manifest::decode(&sealed, "m") {
            let _ = (manifest.bytes(), manifest.events(), manifest.files().count());
            assert_eq!(Manifest::decode(&manifest.encode(), "m").ok(), Some(manifest));
        }
        return;
    }
    let base = u64::from(kind >> 1);
    let Ok(mut reader) = SegmentReader::begin(bytes, "s", base, bytes.len() as u64) else { return };
    let Ok(mut copy) = SegmentCopy::begin(Vec::new(), reader.header(), Some(7)) else { return };
    while let Ok(Some(batch)) = reader.next_batch() {
        if copy.add(&batch).is_err() || batch.records().any(|record| record.is_none()) {
            return;
        }
    }
}
