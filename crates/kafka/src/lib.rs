//! Kafka as Wellspring uses it: producers that deliver batches completely or not at all, readers
//! with assigned partitions, and topic metadata. Calls block with a timeout, because each caller
//! has its own thread. The implementation behind [`Cluster`], [`Producer`] and [`Reader`] is
//! `krafka` (feature `client`, decision 0034) or a cluster in memory (feature `simulated`).

#![forbid(unsafe_code)]

#[cfg(feature = "client")]
mod client;
mod cluster;
mod connection;
mod fault;
mod partition;
mod record;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;
#[cfg(feature = "testing")]
pub mod testing;

#[cfg(feature = "client")]
pub use client::KafkaCluster;
pub use cluster::{
    Cluster, Creation, NewTopic, OffsetRange, Producer, Reader, Retention, TopicDescription,
};
pub use connection::{ConnectionSettings, Sasl, SaslMechanism, Tls};
pub use fault::{Fault, FaultKind};
pub use partition::{murmur2, partition_of};
pub use record::{Header, OutgoingRecord, Record};
