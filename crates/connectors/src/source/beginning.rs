//! Where a source starts or continues: compares the cursors in the log with the current topic.
//!
//! When a source starts a generation, it appends a cursor for each partition before it reads
//! anything, so a restart knows where "now" was and which partitions were added since. The cursor
//! of partition 0 is appended last, with the last of the others, and shows that all exist.

use super::advance::{SourceAdvanced, StoredAdvance, unchanged_since};
use super::intake::PartitionState;
use super::interruption::Interruption;
use super::origin::Origin;
use crate::fault::{Fault, StopCode};
use crate::sink::StartAt;
use std::collections::BTreeMap;
use wellspring_kafka::{Cluster, OffsetRange, TopicDescription};
use wellspring_log::{Append, EncodedEvents, Log};
use wellspring_types::Position;
use wellspring_types::limits::MAX_EVENTS;

/// Determines where to continue in each partition of a topic, and appends cursors for partitions
/// without one.
///
/// # Errors
/// An [`Interruption`].
pub(super) fn partition_states(
    log: &Log,
    cluster: &dyn Cluster,
    origin: &Origin,
    topic: &TopicDescription,
    start: StartAt,
) -> Result<BTreeMap<i32, PartitionState>, Interruption> {
    let newest = StoredAdvance::of_source(log, origin)?;
    if let Some(advance) = &newest.advance {
        require_same_topic(origin, advance)?;
    }
    let mut partitions = BTreeMap::new();
    let mut missing = Vec::new();
    let mut ranges = BTreeMap::new();
    for partition in 0..topic.partitions {
        let range = cluster.offsets(&origin.topic, partition)?;
        ranges.insert(partition, range);
        let stored = StoredAdvance::of_partition(log, origin, partition)?;
        match stored.advance.filter(|advance| advance.generation == origin.generation) {
            Some(advance) => {
                let next = advance.offset.saturating_add(1);
                require_range(origin, partition, next, range)?;
                partitions.insert(
                    partition,
                    PartitionState::new(origin, partition, next, stored.position),
                );
            }
            None => missing.push(partition),
        }
    }
    let has_begun = partitions.contains_key(&0);
    let nexts = missing.into_iter().rev().map(|partition| {
        let range = ranges[&partition];
        let next = match start {
            // The partition was added later, so everything in it came after the start.
            _ if has_begun => range.first,
            StartAt::Now => range.end,
            StartAt::Beginning | StartAt::After(_) | StartAt::Since(_) => range.first,
        };
        (partition, next)
    });
    let nexts: Vec<(i32, i64)> = nexts.collect();
    append_cursors(log, origin, &nexts, newest.position, &mut partitions)?;
    for (partition, state) in &mut partitions {
        state.end = ranges[partition].end;
    }
    Ok(partitions)
}

/// Appends the first cursors of partitions, in this order.
fn append_cursors(
    log: &Log,
    origin: &Origin,
    nexts: &[(i32, i64)],
    mut newest: Position,
    partitions: &mut BTreeMap<i32, PartitionState>,
) -> Result<(), Interruption> {
    for nexts in nexts.chunks(MAX_EVENTS) {
        let mut events = EncodedEvents::new();
        for (partition, next) in nexts {
            SourceAdvanced::new(origin, *partition, next - 1, 0)
                .push(origin, &mut events)
                .map_err(wellspring_log::AppendError::from)?;
        }
        let condition = unchanged_since(origin.source_query(), newest);
        let appended = log.append(Append { events, condition, ..Append::default() })?;
        newest = appended.last;
        for ((partition, next), position) in nexts.iter().zip(appended.first..) {
            partitions.insert(*partition, PartitionState::new(origin, *partition, *next, position));
        }
    }
    Ok(())
}

/// Checks that the source's newest cursor is of this topic or of an earlier generation.
fn require_same_topic(origin: &Origin, newest: &SourceAdvanced) -> Result<(), Fault> {
    if newest.generation > origin.generation {
        let detail = format!(
            "the source runs in generation {} elsewhere, while this server has generation {}",
            newest.generation, origin.generation
        );
        return Err(Fault::stop(StopCode::Fenced, detail));
    }
    let is_same = newest.topic_id == origin.topic_id && newest.cluster == origin.cluster;
    if is_same || newest.generation < origin.generation {
        return Ok(());
    }
    let detail = format!(
        "the source has read the topic {} with id {} of the cluster {}, and the topic {} has id {} in the cluster {}: \
         it was deleted and created again, or is another topic",
        newest.topic,
        newest.topic_id,
        newest.cluster,
        origin.topic,
        origin.topic_id,
        origin.cluster
    );
    Err(Fault::stop(StopCode::TopicRecreated, detail))
}

/// Checks that a partition holds the next offset to read, or ends there.
pub(super) fn require_range(
    origin: &Origin,
    partition: i32,
    next: i64,
    range: OffsetRange,
) -> Result<(), Fault> {
    let topic = &origin.topic;
    let detail = if next < range.first {
        format!(
            "the topic {topic} has lost records before they were read, unless they were markers of transactions: \
             partition {partition} was to be read from offset {next}, and the first it keeps is {}",
            range.first
        )
    } else if next > range.end {
        format!(
            "partition {partition} of the topic {topic} was to be read from offset {next}, and it ends before \
             offset {}: its end was lost",
            range.end
        )
    } else {
        return Ok(());
    };
    Err(Fault::stop(StopCode::RecordsLost, detail))
}
