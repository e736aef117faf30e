//! Moves records from a Kafka topic into a log, always starting from the cursors in the log.

use super::beginning::{partition_states, require_range};
use super::definition::SourceDefinition;
use super::intake::Intake;
use super::interruption::Interruption;
use super::mapping::Mapper;
use super::origin::Origin;
use super::rejects::RejectStore;
use crate::backoff::Backoff;
use crate::control::Control;
use crate::fault::{Fault, StopCode};
use crate::kafka::Connect;
use crate::sink::StartAt;
use crate::status::{ConnectorState, Counters, Status};
use std::sync::Arc;
use std::time::Duration;
use wellspring_kafka::{Cluster, FaultKind, Reader};
use wellspring_log::{Clock, Log};

/// Maximum wait for a record before the pump checks whether to stop.
const IDLE_WAIT: Duration = Duration::from_millis(100);
/// Time between two checks of the topic (its identity, partition count and ends), in µs.
const LOOK_US: u64 = 10_000_000;
/// First and longest wait after a fault that resolves by itself.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// The same after a conflict.
const CONFLICT_BACKOFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(5));
/// Conflicts within this time of each other count as consecutive, in µs.
const CONFLICT_ROW_US: u64 = 60_000_000;
/// This many consecutive conflicts are not caused by a dying process: another server runs the
/// source.
const CONFLICTS_TO_TELL: u32 = 3;

/// Settings of a source's pump.
pub struct SourcePumpSettings {
    /// The source's name: 1 to 245 bytes without control characters. Identifies its cursors in the
    /// log.
    pub name: String,
    /// Number of times a start position was set for the source. Cursors of earlier generations are
    /// invalid.
    pub generation: u64,
    /// The definition. Its log names and its connection are not used.
    pub definition: SourceDefinition,
    /// The log to append to.
    pub log: Log,
    /// The log for records that cannot become events; `None`: the source stops at the first one.
    pub reject_log: Option<Log>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// Moves records from a Kafka topic into a log, each once: as an event or into the reject log.
pub struct SourcePump {
    settings: SourcePumpSettings,
    connect: Connect,
    status: Arc<Status>,
    control: Arc<Control>,
    cluster: Option<Arc<dyn Cluster>>,
    conflicts: ConflictRow,
    /// Whether events get ids: no longer once foreign events in the log have the same ids.
    with_ids: bool,
    /// Partition and first offset of the append whose id was already in the log.
    id_reused_at: Option<(i32, i64)>,
}

/// Consecutive conflicts.
struct ConflictRow {
    count: u32,
    last_us: u64,
    backoff: Backoff,
}

/// Why an attempt ended without a fault.
enum AttemptEnd {
    /// The pump was asked to stop.
    Stopped,
    /// The log was closed.
    LogClosed,
    /// The topic has gained partitions.
    MorePartitions,
}

/// The state of an attempt.
struct Attempt {
    cluster: Arc<dyn Cluster>,
    origin: Origin,
    topic_id: [u8; 16],
    reader: Box<dyn Reader>,
    intake: Intake,
    looked_us: u64,
}

impl SourcePump {
    /// A pump that has not started. It reconnects after faults.
    #[must_use]
    pub fn new(
        settings: SourcePumpSettings,
        connect: Connect,
        status: Arc<Status>,
        control: Arc<Control>,
    ) -> SourcePump {
        let seed = settings.clock.monotonic_us() ^ settings.clock.wall_us();
        let backoff = Backoff::new(CONFLICT_BACKOFF.0, CONFLICT_BACKOFF.1, seed);
        SourcePump {
            settings,
            connect,
            status,
            control,
            cluster: None,
            conflicts: ConflictRow { count: 0, last_us: 0, backoff },
            with_ids: true,
            id_reused_at: None,
        }
    }

    /// Reads and appends until the pump is asked to stop, the log is closed or an operator must
    /// intervene. The status shows the progress.
    pub fn run(mut self) {
        let mut backoff = Backoff::new(BACKOFF.0, BACKOFF.1, self.settings.clock.monotonic_us());
        loop {
            let before = self.status.position();
            let ended = self.attempt();
            let has_advanced = self.status.position() > before;
            let wait = match ended {
                Ok(AttemptEnd::Stopped | AttemptEnd::LogClosed) => break,
                Ok(AttemptEnd::MorePartitions) => continue,
                Err(Interruption::Fault(fault)) => {
                    self.cluster = None;
                    if self.settings.log.feed().is_closed() {
                        break;
                    }
                    self.status.set_fault(&fault);
                    if let Fault::Stop { .. } = fault {
                        return;
                    }
                    if has_advanced {
                        backoff.reset();
                    }
                    backoff.next_wait()
                }
                Err(Interruption::Conflict(detail)) => self.after_conflict(&detail),
                Err(Interruption::IdReused { partition, first, detail }) => {
                    self.look_at_reused_id((partition, first), &detail);
                    self.after_conflict(&detail)
                }
            };
            Counters::add(&self.status.counters.restarts, 1);
            if self.control.sleep(wait) {
                break;
            }
        }
        self.status.set_state(ConnectorState::Ended);
    }

    /// Counts a conflict and reports it if there are many; returns how long to wait.
    fn after_conflict(&mut self, detail: &str) -> Duration {
        Counters::add(&self.status.counters.conflicts, 1);
        let row = &mut self.conflicts;
        let now_us = self.settings.clock.monotonic_us();
        if now_us.saturating_sub(row.last_us) > CONFLICT_ROW_US {
            row.count = 0;
            row.backoff.reset();
        }
        row.count += 1;
        row.last_us = now_us;
        if row.count >= CONFLICTS_TO_TELL {
            let reason = format!(
                "another server seems to run this source too: {} times in a row the cursor in the log had moved; \
                 each record still comes once ({detail})",
                row.count
            );
            tracing::warn!(source = self.settings.name, conflicts = row.count, "{reason}");
            self.status.set_state(ConnectorState::Retrying { reason });
        }
        row.backoff.next_wait()
    }

    /// Handles an id that the log already contains. If the same append fails again with the newest
    /// cursor known, the id belongs to a foreign event, so events get no ids from here on: ids only
    /// serve to look events up.
    fn look_at_reused_id(&mut self, at: (i32, i64), detail: &str) {
        if self.id_reused_at == Some(at) {
            tracing::warn!(
                source = self.settings.name,
                "this source's events get no ids from here on: {detail}"
            );
            self.with_ids = false;
        }
        self.id_reused_at = Some(at);
    }

    /// Connects, determines where to continue, and reads until interrupted.
    fn attempt(&mut self) -> Result<AttemptEnd, Interruption> {
        self.status.set_state(ConnectorState::Starting);
        let mut attempt = self.begin()?;
        self.status.set_state(ConnectorState::Running);
        let ended = self.read(&mut attempt);
        attempt.intake.drain();
        ended
    }

    fn begin(&mut self) -> Result<Attempt, Interruption> {
        let SourcePumpSettings { name, generation, definition, log, reject_log, clock } =
            &self.settings;
        if let StartAt::After(_) | StartAt::Since(_) = definition.start {
            let detail = "a source starts at the beginning or now, not in between";
            return Err(Fault::stop(StopCode::Unusable, detail).into());
        }
        let role = log.role();
        if !role.leads() {
            return Err(Fault::transient("this node does not lead the log").into());
        }
        let cluster = match &self.cluster {
            Some(cluster) => Arc::clone(cluster),
            None => Arc::clone(self.cluster.insert((self.connect)()?)),
        };
        let topic = cluster.topic(&definition.topic)?;
        let origin = Origin::new(name, *generation, &cluster.id()?, &definition.topic, topic.id)?;
        let partitions = partition_states(log, &*cluster, &origin, &topic, definition.start)?;
        let mut rejects = reject_log.clone().map(RejectStore::new);
        if let Some(rejects) = &mut rejects {
            for (partition, state) in &partitions {
                rejects.load(&origin, *partition, state.next - 1)?;
            }
        }
        let newest = partitions.values().map(|state| state.position).max();
        self.status.set_position(self.status.position().max(newest.unwrap_or(0)));
        let starts: Vec<(i32, i64)> =
            partitions.iter().map(|(partition, state)| (*partition, state.next)).collect();
        let mapper = Mapper::new(definition);
        let mut intake = Intake::new(
            log.clone(),
            origin.clone(),
            mapper,
            rejects,
            self.with_ids,
            Arc::clone(&self.status),
            Arc::clone(&self.control),
        );
        intake.partitions = partitions;
        self.status.set_records_behind(intake.records_behind());
        let reader = cluster.reader(&definition.topic, &starts)?;
        // The reader has the topic as it was at opening, which is the cursors' topic unless it was
        // deleted and created again just now.
        require_id(&*cluster, &definition.topic, topic.id)?;
        let (topic_id, looked_us) = (topic.id, clock.monotonic_us());
        Ok(Attempt { cluster, origin, topic_id, reader, intake, looked_us })
    }

    fn read(&self, attempt: &mut Attempt) -> Result<AttemptEnd, Interruption> {
        loop {
            if self.control.is_stopping() {
                attempt.intake.settle()?;
                return Ok(AttemptEnd::Stopped);
            }
            if self.settings.log.feed().is_closed() {
                return Ok(AttemptEnd::LogClosed);
            }
            match attempt.reader.poll(IDLE_WAIT) {
                Ok(records) if records.is_empty() => {}
                Ok(records) => {
                    attempt.intake.take(records)?;
                    self.status.set_records_behind(attempt.intake.records_behind());
                }
                Err(fault) if fault.kind == FaultKind::OutOfRange => {
                    attempt.require_ranges()?;
                    return Err(fault.into());
                }
                Err(fault) => return Err(fault.into()),
            }
            attempt.intake.look()?;
            let now_us = self.settings.clock.monotonic_us();
            if now_us.saturating_sub(attempt.looked_us) >= LOOK_US {
                attempt.looked_us = now_us;
                if attempt.look_at_topic()? {
                    attempt.intake.settle()?;
                    return Ok(AttemptEnd::MorePartitions);
                }
                self.status.set_records_behind(attempt.intake.records_behind());
            }
        }
    }
}

impl Attempt {
    /// Checks the topic; returns whether it has gained partitions.
    fn look_at_topic(&mut self) -> Result<bool, Interruption> {
        let partitions = require_id(&*self.cluster, &self.origin.topic, self.topic_id)?;
        self.look_at_ends()?;
        Ok(partitions as usize > self.intake.partitions.len())
    }

    /// Updates the partitions' ends. A partition that starts after the next offset is no fault
    /// here: the reader may have passed transaction markers, which are not records.
    fn look_at_ends(&mut self) -> Result<(), Interruption> {
        for (partition, state) in &mut self.intake.partitions {
            state.end = self.cluster.offsets(&self.origin.topic, *partition)?.end;
        }
        Ok(())
    }

    /// Reports a partition that no longer holds the next offset to read.
    fn require_ranges(&self) -> Result<(), Interruption> {
        for (partition, state) in &self.intake.partitions {
            let range = self.cluster.offsets(&self.origin.topic, *partition)?;
            require_range(&self.origin, *partition, state.next, range)?;
        }
        Ok(())
    }
}

/// Checks that a topic has this id; returns its number of partitions.
fn require_id(cluster: &dyn Cluster, topic: &str, id: [u8; 16]) -> Result<i32, Interruption> {
    let now = cluster.topic(topic)?;
    if now.id != id {
        let detail = format!("the topic {topic} was deleted and created again");
        return Err(Fault::stop(StopCode::TopicRecreated, detail).into());
    }
    Ok(now.partitions)
}

#[cfg(test)]
#[path = "bench.rs"]
mod bench;

#[cfg(test)]
#[path = "pump_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "crash_tests.rs"]
mod crash_tests;

#[cfg(test)]
#[path = "throughput_tests.rs"]
mod throughput_tests;
