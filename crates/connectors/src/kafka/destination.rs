//! Kafka as a destination of a sink.

use super::batch::{Batch, Oversize, RecordFormat};
use super::cursor_topic::{CursorTopic, KeptCursor, describe_new};
use super::warnings::KafkaWarnings;
use crate::control::Control;
use crate::cursor::Cursor;
use crate::fault::{Fault, StopCode};
use crate::sink::{
    BatchLimits, DeliveryEnd, DeliveryMode, Destination, KafkaTarget, PayloadFormat, TopicToCreate,
};
use std::sync::Arc;
use std::time::Duration;
use wellspring_kafka::{Cluster, Creation, FaultKind, NewTopic, Producer, TopicDescription};
use wellspring_log::{Clock, RecordView};
use wellspring_types::{HistoryId, Position, hex};

/// Maximum number of events in a batch, and of their bytes in the log.
const BATCH_EVENTS: usize = 10_000;
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Maximum wait of a batch for more events. A transaction costs several requests; plain records
/// cost one.
const LINGER_EXACTLY_ONCE: Duration = Duration::from_millis(50);
const LINGER_AT_LEAST_ONCE: Duration = Duration::from_millis(20);
/// Topics with a lower limit get smaller batches. The client combines up to 512 KiB for a
/// partition.
const COMMON_MESSAGE_BYTES: usize = 1024 * 1024;
/// Factor by which a batch is reduced after brokers found it too large.
const SHRINK: usize = 4;
/// Minimum time between two checks of the topic, in µs.
const LOOK_US: u64 = 1_000_000;

/// Connects to the cluster.
pub type Connect = Box<dyn Fn() -> Result<Arc<dyn Cluster>, Fault> + Send>;

/// Settings of a [`KafkaDestination`].
pub struct KafkaDestinationSettings {
    /// The log's name, sent as a header of each record.
    pub log_name: String,
    /// Its history, in the ids of documents of events without ids; `None`: not known yet.
    pub history: Option<HistoryId>,
    /// Identifies this sink among all that use the cluster: key of its cursor and, after
    /// `wellspring-`, its transactional id. Two destinations with the same identity fence each
    /// other.
    pub identity: String,
    /// The sink's name, used in the cursor and in faults.
    pub sink_name: String,
    /// Number of times a start position was set for the sink.
    pub generation: u64,
    /// The target.
    pub target: KafkaTarget,
    /// The content of a record's value.
    pub format: PayloadFormat,
    /// Prefix of the key tag: a record's key is the text after this and a colon in the event's
    /// first such tag; `None`: records have no key.
    pub partition_by: Option<String>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// Delivers events to a Kafka topic. Within each partition, positions ascend.
///
/// - [`DeliveryMode::ExactlyOnce`]: one transaction holds the records and the cursor. `open` fences
///   any earlier owner of this sink, then reads the cursor.
/// - [`DeliveryMode::AtLeastOnce`]: records are delivered without transactions, and the cursor is
///   stored elsewhere.
///
/// The destination uses the partitions that exist at `open`; partitions added later are used after
/// the next `open`. Otherwise a key would move to another partition during operation, and readers
/// could see its events out of order without any restart.
///
/// A topic that is deleted and created again is detected within about a second; until then records
/// may go to the new one.
pub struct KafkaDestination {
    topic: String,
    create_topic: Option<TopicToCreate>,
    sink_name: String,
    generation: u64,
    mode: DeliveryMode,
    transactional_id: String,
    cursors: CursorTopic,
    clock: Arc<dyn Clock>,
    connect: Connect,
    batch: Batch,
    /// Maximum number of events in a batch; reduced after brokers refused one as too large.
    most_events: usize,
    opened: Option<OpenCluster>,
    warnings: Arc<KafkaWarnings>,
}

/// An open connection and the properties of its topic.
struct OpenCluster {
    cluster: Arc<dyn Cluster>,
    producer: Box<dyn Producer>,
    topic: TopicDescription,
    /// Number of partitions at `open`.
    partitions: i32,
    /// Offset of this destination's probe in the cursor topic (exactly-once).
    probe_offset: i64,
    looked_us: u64,
}

impl KafkaDestination {
    /// A destination that is not connected yet. Each [`open`](Destination::open) calls `connect`.
    #[must_use]
    pub fn new(settings: KafkaDestinationSettings, connect: Connect) -> KafkaDestination {
        let target = settings.target;
        let format = RecordFormat {
            log_name: settings.log_name.clone(),
            history: settings.history,
            topic: target.topic.clone(),
            payload: settings.format,
            partition_by: settings.partition_by,
        };
        let cursors = CursorTopic {
            topic: target.cursor_topic,
            identity: settings.identity.clone(),
            log_name: settings.log_name,
            sink_name: settings.sink_name.clone(),
        };
        KafkaDestination {
            topic: target.topic,
            create_topic: target.create_topic,
            sink_name: settings.sink_name,
            generation: settings.generation,
            mode: target.mode,
            transactional_id: format!("wellspring-{}", settings.identity),
            cursors,
            clock: settings.clock,
            connect,
            batch: Batch::new(format),
            most_events: BATCH_EVENTS,
            opened: None,
            warnings: Arc::default(),
        }
    }

    /// Warnings that are not faults; kept up to date while the sink runs.
    #[must_use]
    pub fn warnings(&self) -> Arc<KafkaWarnings> {
        Arc::clone(&self.warnings)
    }

    fn describe(&self, cluster: &dyn Cluster) -> Result<TopicDescription, Fault> {
        let topic = cluster.topic(&self.topic)?;
        if topic.partitions < 1 {
            let detail = format!("the topic {} has no partitions", self.topic);
            return Err(Fault::stop(StopCode::Unusable, detail));
        }
        Ok(topic)
    }

    /// Describes the topic, which it creates if it is missing and was asked for.
    fn describe_or_create(&self, cluster: &dyn Cluster) -> Result<TopicDescription, Fault> {
        let is_missing =
            |fault: &Fault| matches!(fault, Fault::Stop { code: StopCode::NoTopic, .. });
        match (self.describe(cluster), self.create_topic) {
            (Err(fault), Some(TopicToCreate { partitions, replicas })) if is_missing(&fault) => {
                let name = self.topic.clone();
                let new = NewTopic { name, partitions, replicas, settings: Vec::new() };
                if cluster.create_topic(&new)? == Creation::Created {
                    tracing::info!(topic = self.topic, sink = self.sink_name, "created the topic");
                }
                describe_new(cluster, &self.topic)
            }
            (described, _) => described,
        }
    }

    /// The kept cursor, if it belongs to this topic and definition.
    fn check_cursor(&self, kept: &KeptCursor, topic_id: [u8; 16]) -> Result<Cursor, Fault> {
        let cursor = kept.cursor;
        if cursor.generation > self.generation {
            let detail = format!(
                "the cursor in {} is of generation {}, and this server knows generation {}: another server runs \
                 this sink with a newer definition",
                self.cursors.topic, cursor.generation, self.generation
            );
            return Err(Fault::stop(StopCode::AnotherHistory, detail));
        }
        // A cursor of an earlier generation is irrelevant: a start position has been set since.
        if cursor.generation == self.generation && kept.topic_id != hex::digits(&topic_id) {
            return Err(recreated(&self.topic));
        }
        Ok(cursor)
    }

    fn fenced(&self) -> Fault {
        let detail = format!(
            "another server runs the sink {}: it has taken the transactional id {}",
            self.sink_name, self.transactional_id
        );
        Fault::stop(StopCode::Fenced, detail)
    }

    /// Converts a fault of a takeover.
    fn opening_fault(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Stop { code: StopCode::Fenced, .. } => self.fenced(),
            fault => fault,
        }
    }

    /// Converts a fault of delivering this many events.
    fn delivery_fault(
        &mut self,
        fault: wellspring_kafka::Fault,
        events: usize,
        first: Option<Position>,
    ) -> Fault {
        match (fault.kind, first) {
            (FaultKind::TooLarge, Some(position)) if events == 1 => {
                Fault::stop(StopCode::TooLarge, self.too_large(position, &fault.detail))
                    .at(position)
            }
            // Smaller batches succeed or eventually identify the event. Starting over from the
            // cursor determines what this batch left behind.
            (FaultKind::TooLarge, Some(_)) => {
                self.most_events = (events / SHRINK).max(1);
                Fault::transient(format!(
                    "{}; retrying with batches of {} events",
                    fault.detail, self.most_events
                ))
            }
            (FaultKind::Fenced, _) => self.fencing_fault(fault),
            _ => fault.into(),
        }
    }

    /// Distinguishes a newer owner from a transaction that timed out: brokers report both alike,
    /// but a new owner has left a probe.
    fn fencing_fault(&self, fault: wellspring_kafka::Fault) -> Fault {
        let Some(opened) = &self.opened else { return fault.into() };
        let clock = &*self.clock;
        match self.cursors.has_newer_owner(&*opened.cluster, opened.probe_offset, clock) {
            Ok(true) => self.fenced(),
            Ok(false) => Fault::transient(format!(
                "{}, although no other server delivers: the brokers ended the transaction because it took too long",
                fault.detail
            )),
            // Starting over is safe: it fences and reads the cursor, so of two owners one
            // eventually stops.
            Err(unknown) => Fault::transient(format!("{}; {unknown}", fault.detail)),
        }
    }

    fn too_large(&self, position: Position, why: &str) -> String {
        format!(
            "the event at position {position} is too large for the topic {}: {why}. Raise max.message.bytes of the \
             topic, or pass the event over: wellspring sink skip {} --position {position}",
            self.topic, self.sink_name
        )
    }

    /// Checks the topic unless it was checked recently.
    fn look_if_due(&mut self) -> Result<(), Fault> {
        let now_us = self.clock.monotonic_us();
        let due = |opened: &OpenCluster| now_us.saturating_sub(opened.looked_us) >= LOOK_US;
        if self.opened.as_ref().is_some_and(due) { self.look() } else { Ok(()) }
    }
}

fn recreated(topic: &str) -> Fault {
    let detail = format!(
        "the topic {topic} was deleted and created again: everything the sink had delivered is gone. Reset the sink to a \
         start position"
    );
    Fault::stop(StopCode::TopicRecreated, detail)
}

/// The fault of a call before `open` or after a fault.
fn not_open() -> Fault {
    Fault::transient("the destination is not open")
}

impl Destination for KafkaDestination {
    fn open(&mut self) -> Result<Option<Cursor>, Fault> {
        self.batch.clear();
        self.opened = None;
        let cluster = (self.connect)()?;
        let topic = self.describe_or_create(&*cluster)?;
        let looked_us = self.clock.monotonic_us();
        let (producer, probe_offset, kept) = match self.mode {
            DeliveryMode::AtLeastOnce => (cluster.idempotent_producer()?, 0, None),
            DeliveryMode::ExactlyOnce => {
                self.cursors.require(&*cluster)?;
                // The id comes before the cursor: otherwise commits of an earlier owner in between
                // would be missed.
                let producer = cluster.transactional_producer(&self.transactional_id);
                let mut producer = producer.map_err(|fault| self.opening_fault(fault.into()))?;
                let taken = self.cursors.take_over(&*cluster, &mut *producer, &*self.clock);
                let (kept, offset) = taken.map_err(|fault| self.opening_fault(fault))?;
                (producer, offset, kept)
            }
        };
        let kept = kept.map(|kept| self.check_cursor(&kept, topic.id)).transpose()?;
        let partitions = topic.partitions;
        self.warnings.described(&topic, partitions, self.clock.wall_us());
        self.opened =
            Some(OpenCluster { cluster, producer, topic, partitions, probe_offset, looked_us });
        Ok(kept)
    }

    fn limits(&self) -> BatchLimits {
        let most = self.opened.as_ref().map_or(usize::MAX, |opened| opened.topic.max_message_bytes);
        let bytes = if most < COMMON_MESSAGE_BYTES { (most / 2).max(1) } else { BATCH_BYTES };
        let linger = match self.mode {
            DeliveryMode::ExactlyOnce => LINGER_EXACTLY_ONCE,
            DeliveryMode::AtLeastOnce => LINGER_AT_LEAST_ONCE,
        };
        BatchLimits { events: self.most_events, bytes, linger }
    }

    fn push(&mut self, event: &RecordView<'_>) -> Result<(), Fault> {
        let opened = self.opened.as_ref().ok_or_else(not_open)?;
        let limit = opened.topic.max_message_bytes;
        if let Err(Oversize(size)) = self.batch.push(event, opened.partitions, limit) {
            let why = format!("its record has {size} bytes, and max.message.bytes is {limit}");
            let detail = self.too_large(event.position(), &why);
            return Err(Fault::stop(StopCode::TooLarge, detail).at(event.position()));
        }
        self.warnings.pushed(event.position(), event.recorded_at_us());
        Ok(())
    }

    fn deliver(&mut self, cursor: Cursor, _: &Control) -> Result<DeliveryEnd, Fault> {
        self.look_if_due()?;
        let opened = self.opened.as_mut().ok_or_else(not_open)?;
        let (events, first) = (self.batch.len(), self.batch.first_position());
        let (mut records, bytes) = self.batch.take(opened.partitions, 1);
        if self.mode == DeliveryMode::ExactlyOnce {
            records.push(self.cursors.cursor_record(cursor, opened.topic.id, &*self.clock));
        }
        if let Err(fault) = opened.producer.deliver(records) {
            let fault = self.delivery_fault(fault, events, first);
            self.opened = None;
            return Err(fault);
        }
        self.batch.reuse(bytes);
        Ok(DeliveryEnd::complete(cursor))
    }

    fn look(&mut self) -> Result<(), Fault> {
        let cluster = Arc::clone(&self.opened.as_ref().ok_or_else(not_open)?.cluster);
        let topic = self.describe(&*cluster)?;
        let opened = self.opened.as_mut().ok_or_else(not_open)?;
        if topic.id != opened.topic.id {
            return Err(recreated(&self.topic));
        }
        self.warnings.described(&topic, opened.partitions, self.clock.wall_us());
        opened.topic = topic;
        opened.looked_us = self.clock.monotonic_us();
        Ok(())
    }
}

#[cfg(test)]
#[path = "destination_tests.rs"]
mod tests;
