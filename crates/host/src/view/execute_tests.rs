//! Decisions based on others that fail.
#![allow(clippy::disallowed_methods)]

use super::*;
use crate::view::short_links::{Command, Links, Naming, code};
use std::path::Path;
use std::sync::{Arc, mpsc};
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{Log, Options};
use wellspring_types::Event;

fn open(storage: &SimulatedStorage, dir: &Path) -> (Log, Arc<Live<Links>>) {
    let log = Log::open_on(Arc::new(storage.clone()), Options::default()).unwrap();
    let live = Live::open(log.clone(), dir, (), crate::clock::system()).unwrap();
    (log, live)
}

fn create(alias: &str) -> Command {
    Command::Create { url: "http://a.example".into(), naming: Naming::Alias(code(alias)) }
}

fn change(alias: &str) -> Command {
    Command::Change { code: code(alias), url: "http://b.example".into() }
}

fn raw(event: &Event) -> Append {
    let mut events = EncodedEvents::new();
    events.push(&event.as_ref()).unwrap();
    Append { events, ..Append::default() }
}

fn types(log: &Log) -> Vec<String> {
    let mut events = log.snapshot().read(&Query::all(), ReadOptions::default());
    let mut types = Vec::new();
    while let Some(record) = events.next().unwrap() {
        types.push(record.event_type().to_owned());
    }
    types
}

async fn answer(decided: DecideOutcome<Links>) -> Result<Appended, AppendError> {
    let DecideOutcome::Batch(batch) = decided else { panic!("not decided") };
    batch.answer.expect("there is something to append").await.unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_decision_on_top_of_one_that_came_to_nothing_is_not_appended() {
    let dir = tempfile::tempdir().unwrap();
    let storage = SimulatedStorage::new(5);
    let (log, live) = open(&storage, dir.path());
    runtime().block_on(async {
        live.execute(&Effects::default(), &[create("first")], None, CommitOn::ThisThread)
            .await
            .unwrap();
        live.caught_up(log.head(), Duration::from_secs(20)).await.unwrap();
        let held: u64 = storage.contents().values().map(|file| file.len() as u64).sum();
        // Room for a small event, which is at the device while the others gather behind it.
        let capacity_bytes = Some(held + (64 << 10));
        storage.set_faults(Faults { capacity_bytes, ..Faults::default() });
        storage.hold_barriers();
        log.stage(raw(&Event::json("Other", &[], "1")), Box::new(|_| {}));
        log.commit(CommitOn::JournalThread);
        storage.wait_for_held_barrier();
        // A foreign append in the same batch is first told that the disk is full. In that moment,
        // before the first decision is known to have failed, there is room again and the second one
        // is made.
        let (tell, told) = mpsc::channel();
        let (second_live, second_storage) = (Arc::clone(&live), storage.clone());
        let large = Event::json("Other", &[], &format!("\"{}\"", "x".repeat(1 << 19)));
        log.stage(
            raw(&large),
            Box::new(move |outcome| {
                assert_eq!(outcome, Err(AppendError::StorageFull));
                second_storage.set_faults(Faults::default());
                let second = second_live.decide(&[change("mine")], None, CommitOn::ThisThread);
                tell.send(second).unwrap();
            }),
        );
        let first = live.decide(&[create("mine")], None, CommitOn::JournalThread);
        storage.release_barriers();
        assert_eq!(answer(first).await, Err(AppendError::StorageFull));
        assert_eq!(answer(told.recv().unwrap()).await, Err(AppendError::SetBack));
        assert!(!types(&log).contains(&"LinkChanged".to_owned()));
        // Both continue as if nothing had happened.
        live.execute(&Effects::default(), &[create("mine")], None, CommitOn::ThisThread)
            .await
            .unwrap();
        live.execute(&Effects::default(), &[change("mine")], None, CommitOn::ThisThread)
            .await
            .unwrap();
    });
    log.close();
    live.close();
}

#[test]
fn a_decision_without_positions_is_not_decided_upon() {
    let dir = tempfile::tempdir().unwrap();
    let storage = SimulatedStorage::new(5);
    let (log, live) = open(&storage, dir.path());
    runtime().block_on(async {
        live.execute(&Effects::default(), &[create("first")], None, CommitOn::ThisThread)
            .await
            .unwrap();
        live.caught_up(log.head(), Duration::from_secs(20)).await.unwrap();
        // Staged behind a batch at the device: an event that the fold ignores.
        storage.hold_barriers();
        log.stage(raw(&Event::json("Other", &[], "1")), Box::new(|_| {}));
        log.commit(CommitOn::JournalThread);
        storage.wait_for_held_barrier();
        log.stage(raw(&Event::json("LinkCreated", &["link:mine"], "{}")), Box::new(|_| {}));
        let first = live.decide(&[create("mine")], None, CommitOn::JournalThread);
        // Refused by that event, so it has no place in the order before later ones.
        let second = live.decide(&[change("mine")], None, CommitOn::JournalThread);
        assert!(matches!(second, DecideOutcome::Refused(_)));
        storage.release_barriers();
        assert!(matches!(answer(first).await, Err(AppendError::Conflict(_))));
        live.execute(&Effects::default(), &[create("mine")], None, CommitOn::ThisThread)
            .await
            .unwrap();
    });
    log.close();
    live.close();
}
