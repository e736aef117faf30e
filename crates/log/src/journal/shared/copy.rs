//! The identity of a copy: the file `journal`, which names the shared log.
//!
//! ```text
//! cluster 4f1c…(32 hex digits)
//! log main
//! leader 7 9120391203 node-a http://10.0.0.1:7070
//! check 9b2f01aa
//! ```
//!
//! The third line, which may be missing, is a hint: the last known leader's epoch, process, name
//! and URL. The last line is the CRC32C of those before it.

use crate::shared::entry::ClusterId;
use crate::shared::rule::Claimant;
use crate::storage::small_file::{checked_lines, read_small_file, with_check};
use crate::storage::{Storage, replace_file};
use std::io;

pub(crate) const JOURNAL_FILE: &str = "journal";
/// Maximum size of the file: names are limited by what fits into a claim.
const LARGEST_BYTES: usize = 8 << 10;

/// The content of the file; see the module's documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyIdentity {
    pub(crate) cluster: ClusterId,
    pub(crate) log: String,
    pub(crate) leader: Option<Claimant>,
}

impl CopyIdentity {
    /// Reads it; `None` if the folder is not a copy.
    ///
    /// # Errors
    /// `InvalidData` if the file is damaged, or an error of the file system.
    pub(crate) fn read(storage: &dyn Storage) -> io::Result<Option<CopyIdentity>> {
        let Some(bytes) = read_small_file(storage, JOURNAL_FILE, LARGEST_BYTES)? else {
            return Ok(None);
        };
        parse(&bytes).map(Some).ok_or_else(|| {
            let what = "the file journal is damaged: it does not name a cluster and a log";
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    }

    /// Writes it durably.
    ///
    /// # Errors
    /// An error of the file system.
    pub(crate) fn write(&self, storage: &dyn Storage) -> io::Result<()> {
        let mut text = format!("cluster {}\nlog {}\n", self.cluster, self.log);
        if let Some(Claimant { node, start, url, epoch }) = &self.leader {
            text.push_str(&format!("leader {epoch} {start} {node} {url}\n"));
        }
        replace_file(storage, JOURNAL_FILE, with_check(text).as_bytes())
    }
}

fn parse(bytes: &[u8]) -> Option<CopyIdentity> {
    let mut lines = checked_lines(bytes)?;
    let cluster = lines.next()?.strip_prefix("cluster ")?.parse().ok()?;
    let log = lines.next()?.strip_prefix("log ")?.to_owned();
    Some(CopyIdentity { cluster, log, leader: lines.next().and_then(parse_leader) })
}

fn parse_leader(line: &str) -> Option<Claimant> {
    let mut words = line.strip_prefix("leader ")?.splitn(4, ' ');
    let epoch = words.next()?.parse().ok()?;
    let start = words.next()?.parse().ok()?;
    let (node, url) = (words.next()?.to_owned(), words.next()?.to_owned());
    Some(Claimant { node, start, url, epoch })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::simulated::SimulatedStorage;

    #[test]
    fn an_identity_reads_back_and_a_damaged_one_is_refused() {
        let storage = SimulatedStorage::new(1);
        assert_eq!(CopyIdentity::read(&storage).unwrap(), None);
        let mut identity =
            CopyIdentity { cluster: ClusterId([7; 16]), log: "main".into(), leader: None };
        identity.write(&storage).unwrap();
        assert_eq!(CopyIdentity::read(&storage).unwrap().as_ref(), Some(&identity));
        let (node, url) = ("a".into(), "http://a:1".into());
        identity.leader = Some(Claimant { node, url, start: 9, epoch: 3 });
        identity.write(&storage).unwrap();
        assert_eq!(CopyIdentity::read(&storage).unwrap().as_ref(), Some(&identity));
        storage.open(JOURNAL_FILE).unwrap().write_all_at(b"x", 3).unwrap();
        assert_eq!(CopyIdentity::read(&storage).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
