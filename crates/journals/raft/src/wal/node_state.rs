//! The file `state`: what a node overwrites in place, so that a full disk stops no vote. It has two
//! sectors, and the older one is written next. Both are written when the file is made, so one that
//! fails its checksum is damaged and never torn: see [the sectors](super::sector).

use super::fault::WalFault;
use super::record::EntryId;
use super::sector::{BLOCK_BYTES, Source};
use crate::plants::{Plant, planted};
use std::io;
use std::sync::Arc;
use wellspring_format::batch::SECTOR_BYTES;
use wellspring_format::record::{read_u32, read_u64};
use wellspring_log::storage::{Storage, StorageFile, replace_file};

pub(super) const STATE_FILE: &str = "state";
const MAGIC: &[u8; 8] = b"WSRFTSTA";
const VERSION: u32 = 1;
const HAS_VOTED: u8 = 1;
const IS_COMMITTED: u8 = 2;

/// What a node has last promised in an election.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vote {
    /// The greatest term that the node knows.
    pub term: u64,
    /// The id of the node that it voted for in this term, if it has voted.
    pub voted_for: Option<u64>,
    /// Whether a majority has voted for that node: it is the orderer of the term.
    pub is_committed: bool,
}

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct NodeState {
    pub(super) vote: Vote,
    /// The last entry that was purged.
    pub(super) purged: EntryId,
    /// The number of the newest file, 0 if there is none. A newer one has no records.
    pub(super) newest: u32,
}

impl NodeState {
    fn encode(&self, node_id: u64, generation: u64) -> [u8; SECTOR_BYTES] {
        let vote = self.vote;
        let has_voted = if vote.voted_for.is_some() { HAS_VOTED } else { 0 };
        let is_committed = if vote.is_committed { IS_COMMITTED } else { 0 };
        let mut bytes = [0; SECTOR_BYTES];
        bytes[4..12].copy_from_slice(MAGIC);
        bytes[12..16].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&generation.to_le_bytes());
        bytes[24..32].copy_from_slice(&node_id.to_le_bytes());
        bytes[32..40].copy_from_slice(&vote.term.to_le_bytes());
        bytes[40..48].copy_from_slice(&vote.voted_for.unwrap_or_default().to_le_bytes());
        bytes[48..56].copy_from_slice(&self.purged.term.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.purged.index.to_le_bytes());
        bytes[64..68].copy_from_slice(&self.newest.to_le_bytes());
        bytes[68] = has_voted | is_committed;
        let crc = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The generation and the state of the sector at this offset, of this node.
    fn decode(bytes: &[u8], at: usize, node_id: u64) -> Result<(u64, NodeState), WalFault> {
        let damaged = |what| WalFault::damaged(STATE_FILE, at as u64, what);
        let bytes = &bytes[at..at + SECTOR_BYTES];
        if read_u32(bytes, 0) != crc32c::crc32c(&bytes[4..]) || &bytes[4..12] != MAGIC {
            return Err(damaged("a sector fails its checksum"));
        }
        let version = read_u32(bytes, 12);
        if version != VERSION {
            return Err(WalFault::Version { file: STATE_FILE.to_owned(), version });
        }
        if read_u64(bytes, 24) != node_id {
            return Err(damaged("it is the file of another node"));
        }
        let vote = Vote {
            term: read_u64(bytes, 32),
            voted_for: (bytes[68] & HAS_VOTED != 0).then(|| read_u64(bytes, 40)),
            is_committed: bytes[68] & IS_COMMITTED != 0,
        };
        let purged = EntryId { term: read_u64(bytes, 48), index: read_u64(bytes, 56) };
        Ok((read_u64(bytes, 16), NodeState { vote, purged, newest: read_u32(bytes, 64) }))
    }
}

/// The open file. Its sectors are in different blocks; an even generation is in the first.
#[derive(Debug)]
pub(super) struct StateFile {
    file: Arc<dyn StorageFile>,
    node_id: u64,
    generation: u64,
    pub(super) state: NodeState,
}

impl StateFile {
    /// Makes the file, durably, or replaces one.
    pub(super) fn create(storage: &dyn Storage, node_id: u64) -> io::Result<()> {
        let mut bytes = vec![0; 2 * BLOCK_BYTES];
        for (generation, block) in (0..).zip(bytes.chunks_exact_mut(BLOCK_BYTES)) {
            let sector = NodeState::default().encode(node_id, generation);
            block[..SECTOR_BYTES].copy_from_slice(&sector);
        }
        replace_file(storage, STATE_FILE, &bytes)
    }

    /// Opens the file of this node, and makes durable what it has.
    pub(super) fn open(storage: &dyn Storage, node_id: u64) -> Result<StateFile, WalFault> {
        let reading = WalFault::io("reading the state of the node");
        let file = storage.open(STATE_FILE).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => WalFault::damaged(STATE_FILE, 0, "the file is missing"),
            _ => reading(error),
        })?;
        let mut bytes = vec![0; 2 * BLOCK_BYTES];
        Source::device(&file).fill(&mut bytes, 0).map_err(reading)?;
        let even = NodeState::decode(&bytes, 0, node_id)?;
        let odd = NodeState::decode(&bytes, BLOCK_BYTES, node_id)?;
        if even.0 % 2 != 0 || even.0.abs_diff(odd.0) != 1 {
            return Err(WalFault::damaged(STATE_FILE, 0, "its sectors do not belong together"));
        }
        file.sync_data().map_err(reading)?;
        let (generation, state) = if even.0 > odd.0 { even } else { odd };
        Ok(StateFile { file, node_id, generation, state })
    }

    /// Replaces the state, durably. If it fails, either may be found at the next opening.
    pub(super) fn set(&mut self, state: NodeState) -> io::Result<()> {
        let generation = self.generation + 1;
        let at = generation % 2 * BLOCK_BYTES as u64;
        self.file.write_all_at(&state.encode(self.node_id, generation), at)?;
        if state.vote == self.state.vote || !planted(Plant::VoteNotDurable) {
            self.file.sync_data()?;
        }
        (self.generation, self.state) = (generation, state);
        Ok(())
    }
}
