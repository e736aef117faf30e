//! One partition: records and transaction markers at offsets that grow by one.

use crate::cluster::OffsetRange;
use crate::record::{OutgoingRecord, Record};
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};

/// Maximum number of records that a reader gets from a partition at once.
const MOST_RECORDS: usize = 10_000;

/// The content of an offset.
enum Slot {
    /// A visible record.
    Committed(Record),
    /// A record of an open transaction, with the transaction's number.
    Open(Record, u64),
    /// A transaction marker, or a record of an aborted transaction: readers skip it.
    Passed,
}

/// A partition.
#[derive(Default)]
pub(super) struct Partition {
    first: i64,
    end: i64,
    /// Slots by offset. Compaction leaves gaps.
    slots: VecDeque<(i64, Slot)>,
}

fn record_at(record: OutgoingRecord, offset: i64) -> Record {
    Record {
        partition: record.partition,
        offset,
        timestamp_ms: record.timestamp_ms,
        key: record.key,
        value: record.value,
        headers: record.headers,
    }
}

impl Partition {
    fn push(&mut self, slot: Slot) {
        self.slots.push_back((self.end, slot));
        self.end += 1;
    }

    pub(super) fn append(&mut self, record: OutgoingRecord) {
        let record = record_at(record, self.end);
        self.push(Slot::Committed(record));
    }

    pub(super) fn append_uncommitted(&mut self, record: OutgoingRecord, transaction: u64) {
        let record = record_at(record, self.end);
        self.push(Slot::Open(record, transaction));
    }

    pub(super) fn append_marker(&mut self) {
        self.push(Slot::Passed);
    }

    pub(super) fn end_transaction(&mut self, transaction: u64, commit: bool) {
        for (_, slot) in &mut self.slots {
            match slot {
                Slot::Open(record, number) if *number == transaction => {
                    *slot = if commit { Slot::Committed(record.clone()) } else { Slot::Passed };
                }
                _ => {}
            }
        }
        self.append_marker();
    }

    pub(super) fn range(&self) -> OffsetRange {
        OffsetRange { first: self.first, end: self.end }
    }

    /// The first offset that readers of committed records cannot pass.
    fn stable_end(&self) -> i64 {
        let open = self.slots.iter().find(|(_, slot)| matches!(slot, Slot::Open(..)));
        open.map_or(self.end, |(offset, _)| *offset)
    }

    /// Committed records from an offset on, and the offset at which to continue.
    pub(super) fn read(&self, from: i64) -> (Vec<Record>, i64) {
        let stable_end = self.stable_end();
        let begin = self.slots.partition_point(|(offset, _)| *offset < from);
        let mut records = Vec::new();
        for (offset, slot) in self.slots.range(begin..) {
            if *offset >= stable_end {
                break;
            }
            if records.len() == MOST_RECORDS {
                return (records, *offset);
            }
            if let Slot::Committed(record) = slot {
                records.push(record.clone());
            }
        }
        (records, stable_end.max(from))
    }

    pub(super) fn delete_before(&mut self, offset: i64) {
        assert!(offset <= self.end, "the partition ends at {}", self.end);
        self.first = self.first.max(offset);
        self.slots.retain(|(at, _)| *at >= offset);
    }

    pub(super) fn compact(&mut self) {
        let mut newest: HashMap<Bytes, i64> = HashMap::new();
        for (offset, slot) in &self.slots {
            if let Slot::Committed(Record { key: Some(key), .. }) = slot {
                newest.insert(key.clone(), *offset);
            }
        }
        self.slots.retain(|(offset, slot)| match slot {
            Slot::Committed(Record { key: Some(key), .. }) => newest.get(key) == Some(offset),
            _ => true,
        });
    }
}
