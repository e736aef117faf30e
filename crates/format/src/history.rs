//! The identity of a log's history, derived from what is on disk already.
//!
//! A log of files: from the salt of its first segment, which is random, never changes and travels
//! with every copy of the folder. The derivation is one-way, because the salt must not leave the
//! disk (see [`batch`](crate::batch)). A restore writes the first segment with another salt. A copy
//! of a shared log: from the id that the log's founder drew, and the generation of the engine, so
//! all nodes agree.
//!
//! There is no file with an id: it would be one more thing to lose, and logs of earlier versions
//! have none. There is no lineage of forks either: a client whose position lies before a fork may
//! have derived data from other logs, so it is told, with the head, and decides (decision 0040).

use sha2::{Digest, Sha256};
use wellspring_types::HistoryId;

/// Separates this use of the salt from any other.
const DOMAIN: &[u8] = b"wellspring history 1\0";

/// The same of the id of a cluster.
const GENERATION_DOMAIN: &[u8] = b"wellspring history of a generation 1\0";

/// The history of a log of files whose first segment has this salt.
#[must_use]
pub fn history_of_salt(salt: u64) -> HistoryId {
    let digest = Sha256::new().chain_update(DOMAIN).chain_update(salt.to_le_bytes()).finalize();
    let first: [u8; 8] = digest[..8].try_into().expect("a digest has 32 bytes");
    HistoryId(u64::from_be_bytes(first))
}

/// The history of a shared log whose cluster has this id. An engine that went on although it may
/// have lost entries is of another generation than 1, and its logs have other histories.
#[must_use]
pub fn history_of_cluster(cluster: [u8; 16], generation: u64) -> HistoryId {
    let of_generation = Sha256::new().chain_update(GENERATION_DOMAIN).chain_update(cluster);
    let digest = of_generation.chain_update(generation.to_le_bytes()).finalize();
    let bytes = if generation > 1 { &digest[..] } else { &cluster[..] };
    let first: [u8; 8] = bytes[..8].try_into().expect("both have as many bytes");
    HistoryId(u64::from_be_bytes(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_derivation_is_pinned() {
        // Consumers keep ids, so no release may derive others.
        assert_eq!(history_of_salt(0).to_string(), "290d865039207030");
        assert_eq!(history_of_salt(0x0123_4567_89ab_cdef).to_string(), "27082c778dc36ff5");
        let cluster = [1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 9, 9, 9, 9];
        assert_eq!(history_of_cluster(cluster, 1).to_string(), "0102030405060708");
        assert_eq!(history_of_cluster(cluster, 2).to_string(), "7d03dcc973b381d0");
    }
}
