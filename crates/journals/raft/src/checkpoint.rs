//! What a node has to know in place of the entries up to an index: where each log goes on, and who
//! the members are. It is what purged entries leave, and what a node gets that lacks them; the
//! events come from the copies of other nodes.

use crate::frame::take_bytes;
use crate::wal::EntryId;
use bytes::{Buf as _, BufMut as _, Bytes};
use std::collections::BTreeMap;
use std::sync::Arc;
use wellspring_log::shared::Place;

/// Where a log goes on, and what its readers have to know there: opaque, from the log itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownStart {
    /// Not before any of the log's entries up to the checkpoint's index; may be behind it.
    pub(crate) place: Place,
    pub(crate) state: Arc<[u8]>,
}

/// See the module's documentation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Checkpoint {
    /// The last entry that it stands for.
    pub(crate) id: EntryId,
    /// The newest entry about members among those, and its body.
    pub(crate) members: (EntryId, Bytes),
    pub(crate) logs: BTreeMap<Arc<str>, KnownStart>,
}

impl Checkpoint {
    /// Its bytes, little-endian:
    /// ```text
    /// term u64 | index u64 | of the entry about members: term u64 | index u64 | length u32, bytes
    /// | count u32 | for each log: length u16, name | place u64 | length u32, state
    /// ```
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        let (members_id, members) = &self.members;
        [self.id, *members_id].iter().for_each(|id| id.put(&mut out));
        put(&mut out, members);
        out.put_u32_le(u32::try_from(self.logs.len()).expect("logs are few"));
        for (log, KnownStart { place, state }) in &self.logs {
            out.put_u16_le(u16::try_from(log.len()).expect("names of logs are short"));
            out.put_slice(log.as_bytes());
            out.put_u64_le(place.0);
            put(&mut out, state);
        }
        out.into()
    }

    /// Decodes it; `None` if it is none.
    pub(crate) fn decode(mut bytes: Bytes) -> Option<Checkpoint> {
        let (id, members_id) = (EntryId::take(&mut bytes)?, EntryId::take(&mut bytes)?);
        let members = take(&mut bytes)?;
        let mut logs = BTreeMap::new();
        for _ in 0..bytes.try_get_u32_le().ok()? {
            let length = usize::from(bytes.try_get_u16_le().ok()?);
            let log = take_bytes(&mut bytes, length)?;
            let place = Place(bytes.try_get_u64_le().ok()?);
            let state = Arc::from(&take(&mut bytes)?[..]);
            logs.insert(std::str::from_utf8(&log).ok()?.into(), KnownStart { place, state });
        }
        bytes.is_empty().then_some(Checkpoint { id, members: (members_id, members), logs })
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u32_le(u32::try_from(bytes.len()).expect("states are short"));
    out.put_slice(bytes);
}

/// Takes a length and as many bytes.
fn take(bytes: &mut Bytes) -> Option<Bytes> {
    let length = bytes.try_get_u32_le().ok()? as usize;
    take_bytes(bytes, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_read_as_it_was_written_and_no_part_of_it_is_one() {
        let start = |place| KnownStart { place: Place(place), state: Arc::from(&b"state"[..]) };
        let checkpoint = Checkpoint {
            id: EntryId { term: 3, index: 90 },
            members: (EntryId { term: 1, index: 1 }, Bytes::from_static(b"members")),
            logs: [("main".into(), start(7)), ("system".into(), start(u64::MAX))].into(),
        };
        let bytes = checkpoint.encode();
        assert_eq!(Checkpoint::decode(bytes.clone()), Some(checkpoint));
        for end in 0..bytes.len() {
            assert_eq!(Checkpoint::decode(bytes.slice(..end)), None, "{end}");
        }
        assert_eq!(Checkpoint::decode([&bytes[..], b"x"].concat().into()), None);
    }
}
