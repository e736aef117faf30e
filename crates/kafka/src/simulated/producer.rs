//! Producers.

use super::fault::DeliveredPart;
use super::{Operation, Shared, State};
use crate::cluster::Producer;
use crate::fault::{Fault, FaultKind};
use crate::record::OutgoingRecord;
use std::collections::BTreeMap;
use std::sync::Arc;

fn spent() -> Fault {
    Fault::new(FaultKind::Unusable, "a producer that has failed delivers nothing more")
}

/// Checks that all topics and partitions exist and accept their records.
fn check(state: &State, records: &[OutgoingRecord]) -> Result<(), Fault> {
    let mut by_partition: BTreeMap<(&str, i32), Vec<&OutgoingRecord>> = BTreeMap::new();
    for record in records {
        let place = (record.topic.as_str(), record.partition);
        by_partition.entry(place).or_default().push(record);
    }
    for ((topic, partition), records) in by_partition {
        let topic = state.topic(topic)?;
        topic.partition(partition)?;
        topic.require_fit(&records)?;
    }
    Ok(())
}

/// Appends checked records. A transaction leaves a marker in each partition.
fn append(state: &mut State, records: Vec<OutgoingRecord>, in_transaction: bool) {
    let mut marked: Vec<(String, i32)> = Vec::new();
    for record in records {
        let (name, partition) = (record.topic.clone(), record.partition);
        let topic = state.topic_mut(&name).expect("checked");
        topic.partition_mut(partition).expect("checked").append(record);
        let place = (name, partition);
        if in_transaction && !marked.contains(&place) {
            marked.push(place);
        }
    }
    for (name, partition) in marked {
        let topic = state.topic_mut(&name).expect("checked");
        topic.partition_mut(partition).expect("checked").append_marker();
    }
}

/// Delivers each batch in a transaction.
pub(super) struct TransactionalProducer {
    shared: Arc<Shared>,
    id: String,
    epoch: u64,
    is_spent: bool,
}

impl TransactionalProducer {
    pub(super) fn open(shared: &Arc<Shared>, id: &str) -> Result<TransactionalProducer, Fault> {
        let mut state = shared.lock();
        state.faults.fail(Operation::MakeProducer)?;
        let newest = state.epochs.entry(id.to_owned()).or_default();
        *newest += 1;
        let epoch = *newest;
        Ok(TransactionalProducer {
            shared: Arc::clone(shared),
            id: id.to_owned(),
            epoch,
            is_spent: false,
        })
    }

    fn transact(&self, records: Vec<OutgoingRecord>) -> Result<(), Fault> {
        let mut state = self.shared.lock();
        if state.epochs.get(&self.id) != Some(&self.epoch) {
            let detail = format!("another producer has taken the transactional id {}", self.id);
            return Err(Fault::new(FaultKind::Fenced, detail));
        }
        let planned = state.faults.take(Operation::Deliver);
        check(&state, &records)?;
        if planned.is_none_or(|planned| planned.delivered == DeliveredPart::Everything) {
            append(&mut state, records, true);
        }
        planned.map_or(Ok(()), |planned| Err(planned.fault()))
    }
}

impl Producer for TransactionalProducer {
    fn deliver(&mut self, records: Vec<OutgoingRecord>) -> Result<(), Fault> {
        if self.is_spent {
            return Err(spent());
        }
        if records.is_empty() {
            return Ok(()); // like the client, which commits no empty transaction
        }
        let result = self.transact(records);
        self.is_spent = result.is_err();
        self.shared.changed.notify_all();
        result
    }
}

/// Delivers records individually.
pub(super) struct IdempotentProducer {
    shared: Arc<Shared>,
    is_spent: bool,
}

impl IdempotentProducer {
    pub(super) fn open(shared: &Arc<Shared>) -> Result<IdempotentProducer, Fault> {
        shared.lock().faults.fail(Operation::MakeProducer)?;
        Ok(IdempotentProducer { shared: Arc::clone(shared), is_spent: false })
    }

    fn produce(&self, mut records: Vec<OutgoingRecord>) -> Result<(), Fault> {
        let mut state = self.shared.lock();
        let planned = state.faults.take(Operation::Deliver);
        check(&state, &records)?;
        match planned.map(|planned| planned.delivered) {
            None | Some(DeliveredPart::Everything) => {}
            Some(DeliveredPart::Half) => records.truncate(records.len() / 2),
            Some(DeliveredPart::Nothing) => records.clear(),
        }
        append(&mut state, records, false);
        planned.map_or(Ok(()), |planned| Err(planned.fault()))
    }
}

impl Producer for IdempotentProducer {
    fn deliver(&mut self, records: Vec<OutgoingRecord>) -> Result<(), Fault> {
        if self.is_spent {
            return Err(spent());
        }
        let result = self.produce(records);
        self.is_spent = result.is_err();
        self.shared.changed.notify_all();
        result
    }
}
