//! The library's own tests of a storage, without those that begin a log after a gap, which the WAL
//! takes for a bug of its caller, and without those of snapshots.

#![allow(clippy::disallowed_methods)] // tests start threads

use super::{Checkpoints, LogStore, Machine, Types, WalWriter};
use crate::checkpoint::Checkpoint;
use crate::delivery::Delivery;
use crate::runtime::{BetweenTurns, HandRuntime};
use crate::wal::{EntryId, Identity, Wal, WalOptions};
use openraft::StorageError;
use openraft::testing::{StoreBuilder, Suite};
use std::sync::Arc;
use std::sync::mpsc::channel;
use wellspring_log::SystemClock;
use wellspring_log::shared::entry::ClusterId;
use wellspring_log::storage::simulated::SimulatedStorage;

struct OverWal;

impl StoreBuilder<Types, LogStore, Machine> for OverWal {
    async fn build(&self) -> Result<((), LogStore, Machine), StorageError<u64>> {
        let storage = Arc::new(SimulatedStorage::new(1));
        let (cluster, node) = (ClusterId([1; 16]), "a".to_owned());
        let identity = Identity { cluster, generation: 1, node, node_id: 1 };
        Wal::create(Arc::clone(&storage) as _, &identity).unwrap();
        let wal = Wal::open(storage, WalOptions::default()).unwrap().unwrap();
        let (queue, writer) = WalWriter::new(wal, Arc::default());
        // It stands for whatever is purged.
        let all = EntryId { term: u64::MAX, index: u64::MAX };
        let all = Checkpoint { id: all, ..Checkpoint::default() };
        let stands_for_all = Arc::new(Checkpoints::new(queue.clone(), Some(all)));
        let store = LogStore::new(queue.clone(), stands_for_all, &writer.wal);
        std::thread::spawn(move || writer.serve());
        let none = Arc::new(Checkpoints::new(queue, None));
        let machine = Machine::new(Arc::new(Delivery::new(1, None)), none);
        Ok(((), store, machine.expect("it begins with nothing")))
    }
}

/// Runs a test of the suite in our runtime, and beside one of tokio's, in which it sleeps.
fn run(test: impl Future<Output = Result<(), StorageError<u64>>> + Send + 'static) {
    let mut sleeping = tokio::runtime::Builder::new_multi_thread();
    let sleeping = sleeping.worker_threads(1).enable_time().build().unwrap();
    let runtime = HandRuntime::new(Arc::new(SystemClock));
    let (done, result) = channel();
    runtime.spawn(async move { done.send(test.await).unwrap() });
    let mut told = None;
    sleeping.block_on(runtime.serve(|| {
        told = result.try_recv().ok();
        if told.is_some() { BetweenTurns::Ended } else { BetweenTurns::Idle }
    }));
    told.expect("it ended with a result").unwrap();
}

/// Runs tests of the suite, each on a new store.
macro_rules! suite {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            type Tests = Suite<Types, LogStore, Machine, OverWal, ()>;
            run(async {
                let ((), store, machine) = OverWal.build().await?;
                Tests::$name(store, machine).await
            });
        })*
    };
}

suite! {
    last_membership_in_log_initial
    get_membership_initial
    get_membership_from_empty_log_and_sm
    get_initial_state_without_init
    get_initial_state_with_state
    get_initial_state_last_log_gt_sm
    save_vote
    get_log_entries
    limited_get_log_entries
    try_get_log_entry
    initial_logs
    get_log_state
    get_log_id
    last_id_in_log
    last_applied_state
    purge_logs_upto_0
    purge_logs_upto_5
    purge_logs_upto_20
    delete_logs_since_11
    delete_logs_since_0
    append_to_log
    apply_single
    apply_multiple
}
