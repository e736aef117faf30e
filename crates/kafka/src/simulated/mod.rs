//! A Kafka cluster in memory, for tests: topics with ids, transactions whose markers take offsets,
//! fencing, and planned faults. Nothing is compacted or deleted automatically, and no time passes.

mod fault;
mod partition;
mod producer;
mod reader;
mod topic;

pub use fault::{DeliveredPart, Operation, PlannedFault};

use crate::cluster::{
    Cluster, Creation, NewTopic, OffsetRange, Producer, Reader, TopicDescription,
};
use crate::fault::{Fault, FaultKind};
use crate::record::{OutgoingRecord, Record};
use fault::FaultPlan;
use producer::{IdempotentProducer, TransactionalProducer};
use reader::PartitionReader;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use topic::Topic;

/// A Kafka cluster in memory. Clones are handles of the same cluster.
#[derive(Clone, Default)]
pub struct SimulatedCluster {
    shared: Arc<Shared>,
}

/// The state shared by all handles, producers and readers.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified whenever records become readable or a topic is deleted.
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct State {
    topics: HashMap<String, Topic>,
    topics_created: u64,
    transactions_opened: u64,
    /// The newest epoch of each transactional id. Producers with earlier epochs are fenced.
    epochs: HashMap<String, u64>,
    faults: FaultPlan,
}

impl State {
    fn topic(&self, name: &str) -> Result<&Topic, Fault> {
        self.topics.get(name).ok_or_else(|| no_topic(name))
    }

    fn topic_mut(&mut self, name: &str) -> Result<&mut Topic, Fault> {
        self.topics.get_mut(name).ok_or_else(|| no_topic(name))
    }

    fn create(&mut self, topic: &NewTopic) -> Result<Creation, Fault> {
        if self.topics.contains_key(&topic.name) {
            return Ok(Creation::Existed);
        }
        self.topics_created += 1;
        let made = Topic::new(topic, self.topics_created)?;
        self.topics.insert(topic.name.clone(), made);
        Ok(Creation::Created)
    }
}

fn no_topic(name: &str) -> Fault {
    Fault::new(FaultKind::NoTopic, format!("the topic {name} does not exist"))
}

/// An open transaction of another producer in one partition. Readers of committed records see
/// nothing after its record until it is committed or aborted; dropping the handle leaves it open.
pub struct OpenTransaction {
    shared: Arc<Shared>,
    topic: String,
    partition: i32,
    number: u64,
}

impl OpenTransaction {
    /// Commits the transaction: readers see its record.
    pub fn commit(self) {
        self.end(true);
    }

    /// Aborts the transaction: readers skip its record.
    pub fn abort(self) {
        self.end(false);
    }

    fn end(self, commit: bool) {
        if let Ok(topic) = self.shared.lock().topic_mut(&self.topic) {
            topic.end_transaction(self.partition, self.number, commit);
        }
        self.shared.changed.notify_all();
    }
}

impl SimulatedCluster {
    /// A cluster without topics.
    #[must_use]
    pub fn new() -> SimulatedCluster {
        SimulatedCluster::default()
    }

    /// Creates a topic with this many partitions and the default settings: 7 days of retention, 1
    /// MiB per batch.
    ///
    /// # Panics
    /// If a topic with this name exists, or `partitions` is less than 1.
    pub fn add_topic(&self, name: &str, partitions: i32) {
        self.add_topic_with(name, partitions, &[]);
    }

    /// Creates a topic with settings; supported are `cleanup.policy`, `max.message.bytes` and
    /// `retention.ms`.
    ///
    /// # Panics
    /// If a topic with this name exists, a setting does not parse, or `partitions` is less than 1.
    pub fn add_topic_with(&self, name: &str, partitions: i32, settings: &[(&str, &str)]) {
        let settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let new = NewTopic {
            name: name.to_owned(),
            partitions: Some(partitions),
            replicas: Some(1),
            settings,
        };
        assert_eq!(self.shared.lock().create(&new), Ok(Creation::Created), "{name}");
    }

    /// Deletes a topic with all its records.
    ///
    /// # Panics
    /// If the topic does not exist.
    pub fn delete_topic(&self, name: &str) {
        assert!(self.shared.lock().topics.remove(name).is_some(), "there is no topic {name}");
        self.shared.changed.notify_all();
    }

    /// Deletes a topic and creates it again with the same settings and another id.
    ///
    /// # Panics
    /// If the topic does not exist.
    pub fn recreate_topic(&self, name: &str) {
        let mut state = self.shared.lock();
        let old = state.topics.remove(name).expect("the topic exists");
        state.topics_created += 1;
        let id = state.topics_created;
        state.topics.insert(name.to_owned(), old.recreated(id));
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Adds partitions to a topic.
    ///
    /// # Panics
    /// If the topic does not exist, or has more partitions already.
    pub fn grow_topic(&self, name: &str, partitions: i32) {
        self.shared.lock().topic_mut(name).expect("the topic exists").grow(partitions);
    }

    /// Appends records outside of transactions, in order, to the topics and partitions they name.
    ///
    /// # Panics
    /// If a topic or partition does not exist.
    pub fn append(&self, records: Vec<OutgoingRecord>) {
        let mut state = self.shared.lock();
        for record in records {
            let topic = state.topic_mut(&record.topic).expect("the topic exists");
            topic.partition_mut(record.partition).expect("the partition exists").append(record);
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Appends a record in a transaction of another producer, and leaves that open.
    ///
    /// # Panics
    /// If the topic or partition does not exist.
    #[must_use]
    pub fn append_uncommitted(&self, record: OutgoingRecord) -> OpenTransaction {
        let mut state = self.shared.lock();
        state.transactions_opened += 1;
        let number = state.transactions_opened;
        let (name, partition) = (record.topic.clone(), record.partition);
        let topic = state.topic_mut(&name).expect("the topic exists");
        let place = topic.partition_mut(partition).expect("the partition exists");
        place.append_uncommitted(record, number);
        drop(state);
        OpenTransaction { shared: Arc::clone(&self.shared), topic: name, partition, number }
    }

    /// All committed records of a topic, by partition and in order.
    ///
    /// # Panics
    /// If the topic does not exist.
    #[must_use]
    pub fn committed(&self, topic: &str) -> Vec<Record> {
        self.shared.lock().topic(topic).expect("the topic exists").committed()
    }

    /// Deletes the records of a partition before an offset, as retention does.
    ///
    /// # Panics
    /// If the topic or partition does not exist, or ends before the offset.
    pub fn delete_records_before(&self, topic: &str, partition: i32, offset: i64) {
        let mut state = self.shared.lock();
        let topic = state.topic_mut(topic).expect("the topic exists");
        topic.partition_mut(partition).expect("the partition exists").delete_before(offset);
    }

    /// Deletes all committed records with a key that a later record has, as compaction does.
    ///
    /// # Panics
    /// If the topic does not exist.
    pub fn compact(&self, topic: &str) {
        self.shared.lock().topic_mut(topic).expect("the topic exists").compact();
    }

    /// Plans a fault: the next call of this kind without an earlier plan fails this way, on any
    /// handle.
    pub fn fail_next(&self, operation: Operation, fault: PlannedFault) {
        self.shared.lock().faults.plan(operation, fault);
    }

    /// Removes all planned faults that have not occurred.
    pub fn forget_faults(&self) {
        self.shared.lock().faults = FaultPlan::default();
    }

    fn ask<T>(&self, ask: impl FnOnce(&mut State) -> Result<T, Fault>) -> Result<T, Fault> {
        let mut state = self.shared.lock();
        state.faults.fail(Operation::Describe)?;
        ask(&mut state)
    }
}

impl Cluster for SimulatedCluster {
    fn id(&self) -> Result<String, Fault> {
        self.ask(|_| Ok("simulated".to_owned()))
    }

    fn topic(&self, name: &str) -> Result<TopicDescription, Fault> {
        self.ask(|state| Ok(state.topic(name)?.description()))
    }

    fn create_topic(&self, topic: &NewTopic) -> Result<Creation, Fault> {
        self.ask(|state| state.create(topic))
    }

    fn offsets(&self, topic: &str, partition: i32) -> Result<OffsetRange, Fault> {
        self.ask(|state| Ok(state.topic(topic)?.partition(partition)?.range()))
    }

    fn transactional_producer(&self, transactional_id: &str) -> Result<Box<dyn Producer>, Fault> {
        TransactionalProducer::open(&self.shared, transactional_id)
            .map(|producer| Box::new(producer) as Box<dyn Producer>)
    }

    fn idempotent_producer(&self) -> Result<Box<dyn Producer>, Fault> {
        IdempotentProducer::open(&self.shared)
            .map(|producer| Box::new(producer) as Box<dyn Producer>)
    }

    fn reader(&self, topic: &str, starts: &[(i32, i64)]) -> Result<Box<dyn Reader>, Fault> {
        PartitionReader::open(&self.shared, topic, starts)
            .map(|reader| Box::new(reader) as Box<dyn Reader>)
    }
}

#[cfg(test)]
mod tests;
