//! Producers: transactional, and for individual records.

use super::faults::fault_of;
use super::{ASK_WITHIN, DELIVER_WITHIN, Link, TRANSACTION_ENDS_AFTER};
use crate::cluster::Producer;
use crate::fault::{Fault, FaultKind};
use crate::record::OutgoingRecord;
use bytes::Bytes;
use krafka::Compression;
use krafka::error::KrafkaError;
use krafka::producer::{Acks, ProducerBuilder};
use std::sync::Arc;
use std::time::Duration;

/// Size of a batch for one partition, in bytes. Brokers accept 1 MiB by default, counting
/// compressed bytes.
const BATCH_BYTES: usize = 512 * 1024;

/// Maximum time that records wait for others of their partition. A whole batch is passed at once,
/// so a moment suffices.
const LINGER: Duration = Duration::from_millis(2);

/// Maximum wait for a failed transaction to be aborted.
const ABORT_WITHIN: Duration = Duration::from_secs(2);

fn settings(link: &Link) -> ProducerBuilder {
    link.kafka
        .producer()
        .acks(Acks::All)
        .idempotent(true)
        .compression(Compression::Lz4)
        .batch_size(BATCH_BYTES)
        .linger(LINGER)
        .delivery_timeout(DELIVER_WITHIN)
}

fn record_of(record: OutgoingRecord) -> krafka::Record {
    let mut made = krafka::Record::new(record.topic, Bytes::new())
        .partition(record.partition)
        .timestamp(record.timestamp_ms);
    made.key = record.key;
    made.value = record.value;
    made.headers = record.headers;
    made
}

/// Refuses calls after an error.
fn spent() -> Fault {
    Fault::new(FaultKind::Unusable, "a producer that has failed delivers nothing more")
}

/// Delivers each batch in a transaction.
pub(super) struct TransactionalProducer {
    link: Arc<Link>,
    /// `None` after an error.
    producer: Option<krafka::producer::TransactionalProducer>,
}

impl TransactionalProducer {
    /// Takes the transactional id, and aborts what its previous owner left open.
    pub(super) fn open(link: &Arc<Link>, id: &str) -> Result<TransactionalProducer, Fault> {
        let what = format!("taking the transactional id {id}");
        let opened =
            settings(link).transaction_timeout(TRANSACTION_ENDS_AFTER).build_transactional(id);
        let producer = link.within(ASK_WITHIN, &what, opened)?;
        Ok(TransactionalProducer { link: Arc::clone(link), producer: Some(producer) })
    }
}

/// Why a transaction was not committed.
enum CommitFailure {
    /// Its commit was not started.
    Before(KrafkaError),
    /// Its commit was started.
    During(KrafkaError),
}

async fn transact(
    producer: &krafka::producer::TransactionalProducer,
    records: Vec<OutgoingRecord>,
) -> Result<(), CommitFailure> {
    producer.begin().map_err(CommitFailure::Before)?;
    let mut handles = Vec::with_capacity(records.len());
    for record in records {
        handles.push(producer.enqueue(record_of(record)).await.map_err(CommitFailure::Before)?);
    }
    for handle in handles {
        let _placed = handle.await.map_err(CommitFailure::Before)?;
    }
    producer.commit().await.map_err(CommitFailure::During)
}

impl Producer for TransactionalProducer {
    fn deliver(&mut self, records: Vec<OutgoingRecord>) -> Result<(), Fault> {
        if records.is_empty() {
            return Ok(()); // krafka commits no empty transaction
        }
        let producer = self.producer.take().ok_or_else(spent)?;
        let limit = DELIVER_WITHIN + ASK_WITHIN;
        let bounded = async { tokio::time::timeout(limit, transact(&producer, records)).await };
        let failed = match self.link.runtime.block_on(bounded) {
            Ok(Ok(())) => {
                self.producer = Some(producer);
                return Ok(());
            }
            Ok(Err(failed)) => failed,
            Err(_) => CommitFailure::During(KrafkaError::timeout("a transaction")),
        };
        Err(match failed {
            CommitFailure::Before(error) => {
                // So that readers need not wait until the broker aborts it; also, a producer that
                // has lost its id learns so here at the latest.
                let aborted = async { tokio::time::timeout(ABORT_WITHIN, producer.abort()).await };
                if let Ok(Err(fenced @ KrafkaError::Fenced { .. })) =
                    self.link.runtime.block_on(aborted)
                {
                    return Err(fault_of("delivering a transaction", &fenced));
                }
                let fault = fault_of("delivering a transaction", &error);
                match fault.kind {
                    // None of it is visible without its commit.
                    FaultKind::InDoubt => Fault::new(FaultKind::Unavailable, fault.detail),
                    _ => fault,
                }
            }
            CommitFailure::During(error) => {
                let fault = fault_of("committing a transaction", &error);
                match fault.kind {
                    FaultKind::Fenced => fault,
                    _ => Fault::new(FaultKind::InDoubt, fault.detail),
                }
            }
        })
    }
}

/// Delivers records, each acknowledged individually.
pub(super) struct IdempotentProducer {
    link: Arc<Link>,
    /// `None` after an error.
    producer: Option<krafka::producer::Producer>,
}

impl IdempotentProducer {
    /// Takes a producer id.
    pub(super) fn open(link: &Arc<Link>) -> Result<IdempotentProducer, Fault> {
        let opened = settings(link).build();
        let producer = link.within(ASK_WITHIN, "creating a producer", opened)?;
        Ok(IdempotentProducer { link: Arc::clone(link), producer: Some(producer) })
    }
}

impl Producer for IdempotentProducer {
    fn deliver(&mut self, records: Vec<OutgoingRecord>) -> Result<(), Fault> {
        let producer = self.producer.take().ok_or_else(spent)?;
        let delivered = async {
            let mut handles = Vec::with_capacity(records.len());
            for record in records {
                handles.push(producer.enqueue(record_of(record)).await?);
            }
            for handle in handles {
                let _placed = handle.await?;
            }
            Ok(())
        };
        let within = DELIVER_WITHIN + ASK_WITHIN;
        let result = self.link.within(within, "delivering records", delivered);
        match result {
            Ok(()) => {
                self.producer = Some(producer);
                Ok(())
            }
            // Other records of the batch may have been delivered, whatever happened to this one.
            Err(fault) if fault.kind == FaultKind::Unavailable => {
                Err(Fault::new(FaultKind::InDoubt, fault.detail))
            }
            Err(fault) => Err(fault),
        }
    }
}
