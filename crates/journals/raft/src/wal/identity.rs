//! Who the node is, in the file `identity`: text, ending with a check of the lines before it.
//!
//! ```text
//! cluster 4f1c09d2a87b4e6f9033c5d1e2a4b687
//! generation 1
//! node node-a
//! id 9120391203
//! check 9b2f01aa
//! ```
//!
//! A line `alone` before the check: its majority was lost, and the node is about to go on alone, in
//! this generation.
//!
//! Quorums count ids, not names: a node whose disk was emptied has another id, as it no longer
//! keeps what the former one had acknowledged.

use super::fault::WalFault;
use wellspring_log::shared::entry::{ClusterId, MAX_NAME_BYTES};
use wellspring_log::storage::{Storage, checked_lines, read_small_file, replace_file, with_check};

const FILE: &str = "identity";
const LARGEST_BYTES: usize = 4096;

/// Who a node is in its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The cluster.
    pub cluster: ClusterId,
    /// How many times the cluster went on without its quorum; nodes of an older generation are
    /// refused.
    pub generation: u64,
    /// The node's name, 1 to 255 bytes: for people.
    pub node: String,
    /// The node's id: drawn at random when it was founded or joined.
    pub node_id: u64,
}

impl Identity {
    /// Reads it, and whether the node is about to go on alone; `None` if the folder has none.
    pub(super) fn read(storage: &dyn Storage) -> Result<Option<(Identity, bool)>, WalFault> {
        let reading = WalFault::io("reading the identity of the node");
        let Some(bytes) = read_small_file(storage, FILE, LARGEST_BYTES).map_err(reading)? else {
            return Ok(None);
        };
        let damaged = || WalFault::damaged(FILE, 0, "it does not say who the node is");
        parse(&bytes).map(Some).ok_or_else(damaged)
    }

    /// Writes it durably.
    pub(super) fn write(&self, storage: &dyn Storage, alone: bool) -> Result<(), WalFault> {
        let is_name = !self.node.is_empty()
            && self.node.len() <= MAX_NAME_BYTES
            && !self.node.contains(char::is_control);
        if !is_name {
            return Err(WalFault::NodeName);
        }
        let Identity { cluster, generation, node, node_id } = self;
        let alone = if alone { "alone\n" } else { "" };
        let text = format!(
            "cluster {cluster}\ngeneration {generation}\nnode {node}\nid {node_id}\n{alone}"
        );
        let writing = WalFault::io("writing the identity of the node");
        replace_file(storage, FILE, with_check(text).as_bytes()).map_err(writing)
    }
}

fn parse(bytes: &[u8]) -> Option<(Identity, bool)> {
    let mut lines = checked_lines(bytes)?;
    let identity = Identity {
        cluster: lines.next()?.strip_prefix("cluster ")?.parse().ok()?,
        generation: lines.next()?.strip_prefix("generation ")?.parse().ok()?,
        node: lines.next()?.strip_prefix("node ")?.to_owned(),
        node_id: lines.next()?.strip_prefix("id ")?.parse().ok()?,
    };
    let alone = lines.next();
    alone.is_none_or(|line| line == "alone").then_some((identity, alone.is_some()))
}
