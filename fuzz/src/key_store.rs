//! Arbitrary slots, with their checksums put right, and a piece at the end as a store of subject
//! keys: opened or refused, never a panic; no key that is made up seals, and an erasure stays.
use crate::crc32c;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_subject_keys::{
    KeyState, NonceSalt, PlainPart, RootSource, Sealer, StorageOpener, SubjectKeys, SubjectNames,
};

fn open(disk: &SimulatedStorage) -> Option<Arc<SubjectKeys>> {
    let root = "../crates/subject-keys/tests/fixtures/v1/root";
    let source = RootSource::File(Path::new(env!("CARGO_MANIFEST_DIR")).join(root));
    let disk = disk.clone();
    let opener: StorageOpener = Box::new(move || Ok(Arc::new(disk.clone())));
    SubjectKeys::open(opener, source, true, SubjectNames::Opaque).ok().map(Arc::new)
}

pub fn run((slots, rest): (Vec<&[u8]>, &[u8])) {
    let mut store = b"WSKEYS\n\0\x01\0\0\0".to_vec();
    store.extend(crc32c(&store).to_le_bytes());
    store.resize(4096, 0);
    let mut subjects = Vec::new();
    for slot in slots {
        let mut bytes = slot.to_vec();
        bytes.resize(252, 0);
        store.extend(crc32c(&bytes).to_le_bytes());
        store.extend(&bytes);
        let length = usize::from(bytes[1]).min(120);
        subjects.extend(str::from_utf8(&bytes[120..120 + length]).map(str::to_owned));
    }
    store.extend(rest);
    let disk = SimulatedStorage::with_contents(1, &BTreeMap::from([("store".to_owned(), store)]));
    let Some(keys) = open(&disk) else { return };
    let status = keys.status().unwrap();
    let mut ids = Vec::new();
    for subject in &subjects {
        let Some((id, state)) = keys.state_of(subject) else { continue };
        ids.push(id);
        let plaintext = b"1";
        let kind = wellspring_format::sealed_parts::PartKind::Personal;
        let part = PlainPart { tag: 0, subject, kind, plaintext };
        let mut sealer = Sealer::new(Some(Arc::clone(&keys)), 0);
        let sealed = sealer.seal("T", NonceSalt::Random, &[part]);
        assert!(sealed.is_err() || matches!(state, KeyState::Erased { fence_until_us: 0 }));
    }
    keys.erase(&ids, 9, 9).unwrap();
    let again = open(&disk).expect("an erasure leaves a store that opens").status().unwrap();
    assert!(again.erased >= status.erased.max(u64::from(!ids.is_empty())));
}
