//! The engine as a log sees it.

use crate::checkpoint::KnownStart;
use crate::delivery::{Asker, DeliveryEnd, NextArrival};
use crate::frame::{self, LARGEST_OVERHEAD_BYTES, index_of, place};
use crate::shared_node::SharedNode;
use crate::wal::{Entry, WalFault, WalReader};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use wellspring_log::shared::{
    Arrival, AskId, EngineLeader, Fetched, LogStart, OfferId, Place, PlacedEntry, Retention,
    SharedLimits, SharedLog, SharedLogError,
};

const WINDOW: usize = 32;
/// More is written back at once with less delay for others: larger pieces delayed barriers tenfold
/// when backups were measured.
const UNSYNCED_BYTES: u64 = 512 << 10;
/// After so many times the patience, half a minute as a rule, a log says what its copy holds,
/// however little it has written.
const TELL_WITHIN: u32 = 60;
/// Bytes of entries that are searched at a time.
const SEARCHED_BYTES: usize = 4 << 20;

/// Whether a log is led by the node that orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeadChoice {
    /// The orderer leads it: for the log that says who leads the others.
    Orderer,
    /// Claims alone decide.
    Claims,
}

/// One log over the group.
pub struct RaftLog {
    node: Arc<SharedNode>,
    log: Arc<str>,
    lead: LeadChoice,
    connection: u64,
    /// The last place that was delivered; `None` before it follows.
    read: Option<Place>,
    /// What was found in the WAL.
    found: VecDeque<PlacedEntry>,
    /// Where the entries begin that it can be told, if it lacks some before: those come from
    /// copies.
    gap_until: Place,
}

impl RaftLog {
    pub(crate) fn new(node: Arc<SharedNode>, log: &str, lead: LeadChoice) -> RaftLog {
        let log: Arc<str> = log.into();
        let connection = node.delivery.connect(&log);
        RaftLog {
            node,
            log,
            lead,
            connection,
            read: None,
            found: VecDeque::new(),
            gap_until: Place(0),
        }
    }
}

impl Drop for RaftLog {
    fn drop(&mut self) {
        self.node.delivery.disconnect(&self.log, self.connection);
    }
}

fn unusable(fault: &WalFault) -> SharedLogError {
    match fault {
        WalFault::Damaged { .. } => SharedLogError::Unusable { reason: fault.to_string() },
        _ => SharedLogError::Unavailable { reason: fault.to_string() },
    }
}

/// The entries of a log after a place in some entries of the group.
fn entries_of<'a>(
    log: &'a str,
    after: Place,
    entries: &'a [Entry],
) -> impl Iterator<Item = PlacedEntry> + 'a {
    let items = entries.iter().flat_map(|Entry { id, body }| {
        let items = frame::decode(body.clone()).unwrap_or_default();
        items.into_iter().enumerate().map(|(n, item)| (place(id.index, n), item))
    });
    let mine = items.filter(move |(place, item)| *place > after && &*item.log == log);
    mine.map(|(place, item)| (place, Arc::from(&item.entry[..])))
}

/// The committed entries of a log after a place: at least one unless there is none, and about
/// `most_bytes`.
fn search(
    reader: &WalReader,
    log: &str,
    after: Place,
    applied: u64,
    most_bytes: usize,
) -> Result<Vec<PlacedEntry>, SharedLogError> {
    let mut next = index_of(after).max(1);
    let (mut found, mut bytes) = (Vec::new(), 0);
    while next <= applied {
        let entries = reader.read(next..applied + 1, SEARCHED_BYTES).map_err(|f| unusable(&f))?;
        let Some(last) = entries.last() else { break };
        next = last.id.index + 1;
        for (place, entry) in entries_of(log, after, &entries) {
            bytes += entry.len();
            if bytes > most_bytes && !found.is_empty() {
                return Ok(found);
            }
            found.push((place, entry));
        }
    }
    Ok(found)
}

impl SharedLog for RaftLog {
    fn limits(&self) -> SharedLimits {
        let lead_timeout_min = self.node.patience.max(Duration::from_millis(10));
        let retention = Retention::UntilCopied {
            unsynced_bytes: UNSYNCED_BYTES,
            within: lead_timeout_min * TELL_WITHIN,
        };
        let entry_bytes = self.node.full_bytes.saturating_sub(LARGEST_OVERHEAD_BYTES);
        SharedLimits { entry_bytes, window: WINDOW, lead_timeout_min, retention }
    }

    fn follow(&mut self, after: Place) {
        self.read = Some(after);
    }

    fn offer(&mut self, id: OfferId, _: Place, entry: Arc<[u8]>) {
        self.node.offer(&self.log, self.connection, id, Bytes::from_owner(entry));
    }

    fn ask_end(&mut self, id: AskId) {
        let log = Arc::clone(&self.log);
        self.node.ask_end(Asker { log, connection: self.connection, id });
    }

    fn next(&mut self, waker: &Waker) -> Result<Arrival, SharedLogError> {
        loop {
            if let Some((place, entry)) = self.found.pop_front() {
                self.read = Some(place);
                return Ok(Arrival::Entry { place, entry });
            }
            let next = self.node.delivery.next(&self.log, self.connection, self.read, waker);
            let unusable = |end: DeliveryEnd| SharedLogError::Unusable { reason: end.to_string() };
            match next.map_err(unusable)? {
                None => return Ok(Arrival::Nothing),
                Some(NextArrival::Arrival(arrival)) => {
                    if let Arrival::Entry { place, .. } = arrival {
                        self.read = Some(place);
                    }
                    return Ok(arrival);
                }
                Some(NextArrival::InWal { applied }) => {
                    let after = self.read.expect("it follows");
                    if let Some(start) = self.gap_after(after)? {
                        self.read = Some(start.place);
                        return Ok(Arrival::Gap(start));
                    }
                    let found =
                        search(&self.node.reader, &self.log, after, applied, SEARCHED_BYTES)?;
                    if found.is_empty() {
                        // A checkpoint does not tell where the log's last entry is.
                        self.read = Some(after.max(place(applied, frame::MAX_ITEMS - 1)));
                    }
                    self.found = found.into();
                }
            }
        }
    }

    fn fetch(&mut self, after: Place, max_bytes: usize) -> Result<Fetched, SharedLogError> {
        if self.gap_after(after)?.is_some() || after < self.gap_until {
            let batches = self.node.copies.accepted_after(&self.log, after, max_bytes)?;
            return Ok(Fetched::Accepted(batches));
        }
        let applied = self.node.delivery.applied_index();
        search(&self.node.reader, &self.log, after, applied, max_bytes).map(Fetched::Entries)
    }

    fn gap_after(&mut self, after: Place) -> Result<Option<LogStart>, SharedLogError> {
        let purged = self.node.reader.purged().index;
        Ok(self.node.delivery.gap_after(&self.log, after, purged).map(
            |KnownStart { place, state }| {
                self.gap_until = self.gap_until.max(place);
                LogStart { place, state: Some(state) }
            },
        ))
    }

    fn durable(&mut self, upto: Place, state: Arc<[u8]>) {
        self.node.delivery.durable(&self.log, KnownStart { place: upto, state });
        self.node.has_copied.notify_one();
    }

    fn generation(&self) -> u64 {
        self.node.generation
    }

    fn engine_leader(&self) -> Option<EngineLeader> {
        (self.lead == LeadChoice::Orderer).then(|| {
            if self.node.orders() { EngineLeader::ThisNode } else { EngineLeader::NotThisNode }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::EntryId;

    #[test]
    fn a_log_finds_its_own_entries_after_a_place() {
        let item = |log: &str, entry: &'static [u8]| frame::Item {
            start: 1,
            offer: 1,
            log: log.into(),
            entry: Bytes::from_static(entry),
        };
        let frames = [
            frame::encode(&[item("a", b"1"), item("b", b"2"), item("a", b"3")]),
            Bytes::new(),
            frame::encode(&[item("b", b"4"), item("a", b"5")]),
        ];
        let entry = |(n, body): (u64, Bytes)| Entry { id: EntryId { term: 1, index: n }, body };
        let entries: Vec<Entry> = (1..).zip(frames).map(entry).collect();
        let of = |after| entries_of("a", after, &entries).map(|(p, e)| (p, e.to_vec()));
        let all = [
            (place(1, 0), b"1".to_vec()),
            (place(1, 2), b"3".to_vec()),
            (place(3, 1), b"5".to_vec()),
        ];
        assert_eq!(of(Place(0)).collect::<Vec<_>>(), all);
        assert_eq!(of(place(1, 0)).collect::<Vec<_>>(), all[1..]);
        assert_eq!(of(place(1, 2)).collect::<Vec<_>>(), all[2..]);
        assert_eq!(index_of(all[2].0), 3);
    }
}
