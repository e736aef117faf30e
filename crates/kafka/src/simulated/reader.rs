//! A reader of partitions.

use super::{Operation, Shared, State};
use crate::cluster::Reader;
use crate::fault::{Fault, FaultKind};
use crate::record::Record;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Reads committed records of some partitions of a topic.
pub(super) struct PartitionReader {
    shared: Arc<Shared>,
    topic: String,
    id: [u8; 16],
    /// Partitions and the offset at which to continue in each.
    places: Vec<(i32, i64)>,
    is_spent: bool,
}

impl PartitionReader {
    pub(super) fn open(
        shared: &Arc<Shared>,
        topic: &str,
        starts: &[(i32, i64)],
    ) -> Result<PartitionReader, Fault> {
        let mut state = shared.lock();
        state.faults.fail(Operation::MakeReader)?;
        let id = state.topic(topic)?.id();
        for (partition, start) in starts {
            require_range(&state, topic, *partition, *start)?;
        }
        Ok(PartitionReader {
            shared: Arc::clone(shared),
            topic: topic.to_owned(),
            id,
            places: starts.to_vec(),
            is_spent: false,
        })
    }
}

/// Checks that a partition holds an offset, or ends there.
fn require_range(state: &State, topic: &str, partition: i32, offset: i64) -> Result<(), Fault> {
    let range = state.topic(topic)?.partition(partition)?.range();
    if (range.first..=range.end).contains(&offset) {
        return Ok(());
    }
    let detail = format!(
        "partition {partition} of {topic} holds offsets {} to {}, not the requested {offset}",
        range.first, range.end
    );
    Err(Fault::new(FaultKind::OutOfRange, detail))
}

/// Reads the current records and advances the places.
fn read(
    state: &State,
    topic: &str,
    id: [u8; 16],
    places: &mut [(i32, i64)],
) -> Result<Vec<Record>, Fault> {
    if state.topic(topic)?.id() != id {
        let detail = format!("the topic {topic} was deleted and created again");
        return Err(Fault::new(FaultKind::TopicRecreated, detail));
    }
    let mut all = Vec::new();
    for (partition, offset) in places {
        require_range(state, topic, *partition, *offset)?;
        let (records, next) = state.topic(topic)?.partition(*partition)?.read(*offset);
        all.extend(records);
        *offset = next;
    }
    Ok(all)
}

impl Reader for PartitionReader {
    fn poll(&mut self, timeout: Duration) -> Result<Vec<Record>, Fault> {
        if self.is_spent {
            return Err(Fault::new(FaultKind::Unusable, "a reader that has failed reads no more"));
        }
        let PartitionReader { shared, topic, id, places, .. } = self;
        let mut state = shared.lock();
        let mut result =
            state.faults.fail(Operation::Poll).and_then(|()| read(&state, topic, *id, places));
        if result.as_ref().is_ok_and(Vec::is_empty) {
            let nothing_yet = |state: &mut State| {
                result = read(state, topic, *id, places);
                result.as_ref().is_ok_and(Vec::is_empty)
            };
            let waited = shared.changed.wait_timeout_while(state, timeout, nothing_yet);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
        self.is_spent = result.is_err();
        result
    }
}
