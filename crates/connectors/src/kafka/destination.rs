//! Kafka as a destination of a sink.

use super::batch::{Batch, Oversize, RecordFormat};
use super::cursor_topic::{CursorDocument, CursorTopic, hex};
use super::warnings::KafkaWarnings;
use crate::control::Control;
use crate::cursor::Cursor;
use crate::fault::{Fault, StopCode};
use crate::sink::{
    BatchLimits, DeliveryEnd, DeliveryMode, Destination, KafkaTarget, PayloadFormat,
};
use std::sync::Arc;
use std::time::Duration;
use wellspring_kafka::{Cluster, FaultKind, Producer, TopicDescription};
use wellspring_log::{Clock, RecordView};
use wellspring_types::Position;

/// Most events of a batch, and most bytes of them as they lie in the log.
const BATCH_EVENTS: usize = 10_000;
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Longest that a batch waits for more events. A transaction costs several requests, records alone
/// one.
const LINGER_EXACTLY_ONCE: Duration = Duration::from_millis(50);
const LINGER_AT_LEAST_ONCE: Duration = Duration::from_millis(20);
/// A topic that takes less at once gets smaller batches. The client puts up to 512 KiB of a
/// partition together.
const COMMON_MESSAGE_BYTES: usize = 1024 * 1024;
/// A batch that the brokers found too large becomes so many times smaller.
const SHRINK: usize = 4;
/// Least time between two looks at the topic, in µs.
const LOOK_US: u64 = 1_000_000;

/// Makes a connection to the cluster.
pub type Connect = Box<dyn Fn() -> Result<Arc<dyn Cluster>, Fault> + Send>;

/// What a [`KafkaDestination`] needs to know.
pub struct KafkaDestinationSettings {
    /// The log, which stands in a header of each record.
    pub log_name: String,
    /// Tells this sink from all others that use the cluster: key of its cursor, and the
    /// transactional id after `wellspring-`. Two destinations with the same identity fence each
    /// other.
    pub identity: String,
    /// Name of the sink, shown in the cursor and in faults.
    pub sink_name: String,
    /// Number of times the sink was told where to begin.
    pub generation: u64,
    /// Where to deliver.
    pub target: KafkaTarget,
    /// What a record's value is.
    pub format: PayloadFormat,
    /// The key of a record is the rest of the event's first tag that begins with this and a colon;
    /// `None`: records have no key.
    pub partition_by: Option<String>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// Delivers events to a Kafka topic. In each partition positions grow.
///
/// - [`DeliveryMode::ExactlyOnce`]: records and the cursor are one transaction. `open` fences any
///   earlier owner of this sink, then reads the cursor.
/// - [`DeliveryMode::AtLeastOnce`]: records are delivered without transactions, and the cursor is
///   kept elsewhere.
///
/// The number of partitions counts that the topic has at `open`: partitions that are added later
/// are used after the next one. Otherwise a key would move to another partition while it runs, and
/// its readers could see events of the key out of order without anybody having restarted anything.
///
/// A topic that is deleted and made again is noticed within about a second; until then records may
/// go to the new one.
pub struct KafkaDestination {
    topic: String,
    sink_name: String,
    generation: u64,
    mode: DeliveryMode,
    transactional_id: String,
    cursors: CursorTopic,
    clock: Arc<dyn Clock>,
    connect: Connect,
    batch: Batch,
    /// Most events of a batch; fewer after brokers have refused one as too large.
    most_events: usize,
    link: Option<Link>,
    warnings: Arc<KafkaWarnings>,
}

/// A connection, and what was found there.
struct Link {
    cluster: Arc<dyn Cluster>,
    producer: Box<dyn Producer>,
    topic: TopicDescription,
    /// Number of partitions when it was opened.
    partitions: i32,
    /// Offset of our probe in the topic of cursors (exactly-once).
    probe_offset: i64,
    looked_us: u64,
}

impl KafkaDestination {
    /// A destination that is not connected yet. `connect` is called at each
    /// [`open`](Destination::open).
    #[must_use]
    pub fn new(settings: KafkaDestinationSettings, connect: Connect) -> KafkaDestination {
        let target = settings.target;
        let format = RecordFormat {
            log_name: settings.log_name.clone(),
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
            sink_name: settings.sink_name,
            generation: settings.generation,
            mode: target.mode,
            transactional_id: format!("wellspring-{}", settings.identity),
            cursors,
            clock: settings.clock,
            connect,
            batch: Batch::new(format),
            most_events: BATCH_EVENTS,
            link: None,
            warnings: Arc::default(),
        }
    }

    /// What a person should know although the sink works; it stays up to date while the sink runs.
    #[must_use]
    pub fn warnings(&self) -> Arc<KafkaWarnings> {
        Arc::clone(&self.warnings)
    }

    /// The topic as it is now.
    fn describe(&self, cluster: &dyn Cluster) -> Result<TopicDescription, Fault> {
        let topic = cluster.topic(&self.topic)?;
        if topic.partitions < 1 {
            let detail = format!("the topic {} has no partitions", self.topic);
            return Err(Fault::stop(StopCode::Unusable, detail));
        }
        Ok(topic)
    }

    /// The cursor that a document is, if it belongs to this topic and definition.
    fn check_cursor(&self, document: &CursorDocument, topic_id: [u8; 16]) -> Result<Cursor, Fault> {
        let cursor = document.cursor();
        if cursor.generation > self.generation {
            let detail = format!(
                "the cursor in {} is of generation {}, and this server knows generation {}: another server runs \
                 this sink with a newer definition",
                self.cursors.topic, cursor.generation, self.generation
            );
            return Err(Fault::stop(StopCode::AnotherHistory, detail));
        }
        // In an earlier generation it says nothing: a person has told the sink where to begin
        // since.
        if cursor.generation == self.generation && document.topic_id != hex(topic_id) {
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

    /// The fault of an attempt to take over.
    fn opening_fault(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Stop { code: StopCode::Fenced, .. } => self.fenced(),
            fault => fault,
        }
    }

    /// The fault that a delivery of so many events came to.
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
            // Smaller batches pass, or tell in the end which event it is. Whatever this one left is
            // made sure of by beginning again from the cursor.
            (FaultKind::TooLarge, Some(_)) => {
                self.most_events = (events / SHRINK).max(1);
                Fault::transient(format!(
                    "{}; going on with batches of {} events",
                    fault.detail, self.most_events
                ))
            }
            (FaultKind::Fenced, _) => self.fencing_fault(fault),
            _ => fault.into(),
        }
    }

    /// Tells a newer owner from a transaction that the brokers have ended because it took too long:
    /// they answer both alike. A new owner has left a probe.
    fn fencing_fault(&self, fault: wellspring_kafka::Fault) -> Fault {
        let Some(link) = &self.link else { return fault.into() };
        let clock = &*self.clock;
        match self.cursors.has_newer_owner(&*link.cluster, link.probe_offset, clock) {
            Ok(true) => self.fenced(),
            Ok(false) => Fault::transient(format!(
                "{}, and no other server delivers: the brokers have ended the transaction, as it took too long",
                fault.detail
            )),
            // Beginning again is safe: it fences and reads the cursor, and one of two owners stops
            // in the end.
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

    /// Looks at the topic, unless that was done a moment ago.
    fn look_if_due(&mut self) -> Result<(), Fault> {
        let now_us = self.clock.monotonic_us();
        let due = |link: &Link| now_us.saturating_sub(link.looked_us) >= LOOK_US;
        if self.link.as_ref().is_some_and(due) { self.look() } else { Ok(()) }
    }
}

fn recreated(topic: &str) -> Fault {
    let detail = format!(
        "the topic {topic} was deleted and made again: what the sink had delivered is gone. Tell the sink where to \
         begin"
    );
    Fault::stop(StopCode::TopicRecreated, detail)
}

/// The fault of a call before `open`, or after a fault.
fn not_open() -> Fault {
    Fault::transient("the destination is not open")
}

impl Destination for KafkaDestination {
    fn open(&mut self) -> Result<Option<Cursor>, Fault> {
        self.batch.clear();
        self.link = None;
        let cluster = (self.connect)()?;
        let topic = self.describe(&*cluster)?;
        let looked_us = self.clock.monotonic_us();
        let (producer, probe_offset, document) = match self.mode {
            DeliveryMode::AtLeastOnce => (cluster.idempotent_producer()?, 0, None),
            DeliveryMode::ExactlyOnce => {
                self.cursors.require(&*cluster)?;
                // First the id, then the cursor: what an earlier owner commits in between would be
                // missed.
                let producer = cluster.transactional_producer(&self.transactional_id);
                let mut producer = producer.map_err(|fault| self.opening_fault(fault.into()))?;
                let taken = self.cursors.take_over(&*cluster, &mut *producer, &*self.clock);
                let (document, offset) = taken.map_err(|fault| self.opening_fault(fault))?;
                (producer, offset, document)
            }
        };
        let kept = document.map(|document| self.check_cursor(&document, topic.id)).transpose()?;
        let partitions = topic.partitions;
        self.warnings.described(&topic, partitions, self.clock.wall_us());
        self.link = Some(Link { cluster, producer, topic, partitions, probe_offset, looked_us });
        Ok(kept)
    }

    fn limits(&self) -> BatchLimits {
        let most = self.link.as_ref().map_or(usize::MAX, |link| link.topic.max_message_bytes);
        let bytes = if most < COMMON_MESSAGE_BYTES { (most / 2).max(1) } else { BATCH_BYTES };
        let linger = match self.mode {
            DeliveryMode::ExactlyOnce => LINGER_EXACTLY_ONCE,
            DeliveryMode::AtLeastOnce => LINGER_AT_LEAST_ONCE,
        };
        BatchLimits { events: self.most_events, bytes, linger }
    }

    fn push(&mut self, event: &RecordView<'_>) -> Result<(), Fault> {
        let link = self.link.as_ref().ok_or_else(not_open)?;
        let limit = link.topic.max_message_bytes;
        if let Err(Oversize(size)) = self.batch.push(event, link.partitions, limit) {
            let why = format!("its record has {size} bytes, and max.message.bytes is {limit}");
            let detail = self.too_large(event.position(), &why);
            return Err(Fault::stop(StopCode::TooLarge, detail).at(event.position()));
        }
        self.warnings.pushed(event.position(), event.recorded_at_us());
        Ok(())
    }

    fn deliver(&mut self, cursor: Cursor, _: &Control) -> Result<DeliveryEnd, Fault> {
        self.look_if_due()?;
        let link = self.link.as_mut().ok_or_else(not_open)?;
        let (events, first) = (self.batch.len(), self.batch.first_position());
        let (mut records, bytes) = self.batch.take(link.partitions, 1);
        if self.mode == DeliveryMode::ExactlyOnce {
            records.push(self.cursors.cursor_record(cursor, link.topic.id, &*self.clock));
        }
        if let Err(fault) = link.producer.deliver(records) {
            let fault = self.delivery_fault(fault, events, first);
            self.link = None;
            return Err(fault);
        }
        self.batch.reuse(bytes);
        Ok(DeliveryEnd::complete(cursor))
    }

    fn look(&mut self) -> Result<(), Fault> {
        let cluster = Arc::clone(&self.link.as_ref().ok_or_else(not_open)?.cluster);
        let topic = self.describe(&*cluster)?;
        let link = self.link.as_mut().ok_or_else(not_open)?;
        if topic.id != link.topic.id {
            return Err(recreated(&self.topic));
        }
        self.warnings.described(&topic, link.partitions, self.clock.wall_us());
        link.topic = topic;
        link.looked_us = self.clock.monotonic_us();
        Ok(())
    }
}

#[cfg(test)]
#[path = "destination_tests.rs"]
mod tests;
