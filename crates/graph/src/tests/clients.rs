//! Concurrent clients, as a view serves them: the lock is held for decisions, never for execution.

use crate::{
    Adoption, CommittedChanges, EntityScan, FoldStep, Graph, GraphFold, NodeId,
    PreparedTransaction, Transaction, Value, Verdict,
};
use std::sync::{Arc, Mutex, PoisonError};
use wellspring_types::Event;

/// The newest version, everything committed since the first one, and the events.
#[derive(Default)]
struct Log {
    head: Graph,
    committed: Vec<(u64, Arc<CommittedChanges>)>,
    events: Vec<Event>,
}

enum Reply {
    Committed,
    Again,
}

#[derive(Default)]
struct View(Mutex<Log>);

impl View {
    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commit(&self, prepared: PreparedTransaction) -> Reply {
        let events = prepared.events(0).expect("small enough");
        let mut log = self.log();
        let base = prepared.base_position();
        let since: Vec<_> =
            log.committed.iter().rev().take_while(|(position, _)| *position > base).collect();
        let since: Vec<&CommittedChanges> = since.iter().rev().map(|(_, one)| &**one).collect();
        match prepared.decide(&log.head, &since) {
            Verdict::Committed(commit) => {
                log.events.extend(events);
                let position = log.events.len() as u64;
                log.head = commit.graph;
                log.head.set_position(position);
                log.committed.push((position, Arc::clone(&commit.changes)));
                Reply::Committed
            }
            Verdict::Unchanged => Reply::Committed,
            Verdict::Overtaken => Reply::Again,
            Verdict::Refused(violation) => panic!("{violation}"),
        }
    }

    fn run(&self, statement: impl Fn(&mut Transaction)) {
        loop {
            let mut tx = Transaction::writing(self.log().head.clone());
            statement(&mut tx);
            let prepared = tx.finish().expect("nothing broken").prepare();
            if let Reply::Committed = self.commit(prepared) {
                return;
            }
        }
    }
}

#[test]
fn no_increment_is_lost_and_no_key_is_merged_twice() {
    const CLIENTS: i64 = 4;
    const ROUNDS: i64 = 150;
    let view = View::default();
    view.run(|tx| {
        let (label, key) = (tx.name("Counter"), tx.name("n"));
        tx.create_node(&[label], [(key, 0.into())]).expect("a node");
    });
    let counter = NodeId::new(0).expect("the first id");
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    view.run(|tx| {
                        let n = tx.name("n");
                        let Ok(Some(Value::Integer(value))) = tx.node_property(counter, n) else {
                            panic!("no number")
                        };
                        tx.set_node_property(counter, n, Some((value + 1).into())).expect("there");
                    });
                    view.run(|tx| {
                        let (label, key, value) = (tx.name("Key"), tx.name("k"), round.into());
                        if tx.seek_nodes(label, key, &value).collect(tx).is_empty() {
                            let id = tx.create_node(&[label], [(key, value)]).expect("a node");
                            let kind = tx.name("OF");
                            tx.create_relationship(kind, id, counter, []).expect("both there");
                        }
                    });
                }
            });
        }
    });
    let log = view.log();
    let tx = Transaction::reading(log.head.clone());
    let expected = Value::Integer(CLIENTS * ROUNDS);
    assert_eq!(tx.node_property(counter, tx.name("n")), Ok(Some(expected)));
    assert_eq!(tx.label_count(tx.name("Key")), ROUNDS as u64);
    assert_eq!(log.head.audit(), Ok(()));
    let mut rebuilt = GraphFold::new();
    for (event, position) in log.events.iter().zip(1..) {
        let step = rebuilt.apply(position, &event.event_type, &event.data);
        assert!(matches!(step, FoldStep::Applied(_)), "{step:?}");
    }
    assert!(rebuilt.graph().dump().eq(log.head.dump()));
    assert_eq!(rebuilt.adopt(&log.head, rebuilt.graph().stamp()), Adoption::MustFold);
}

#[test]
fn a_version_is_adopted_by_the_fold_it_came_from() {
    let mut fold = GraphFold::new();
    let mut tx = Transaction::writing(fold.graph().clone());
    tx.create_node(&[], []).expect("a node");
    let prepared = tx.finish().expect("nothing broken").prepare();
    let event = prepared.events(0).expect("small").remove(0);
    let Verdict::Committed(mut commit) = prepared.decide(fold.graph(), &[]) else {
        panic!("alone")
    };
    commit.graph.set_position(3);
    let mut other = fold.clone();
    assert_eq!(fold.adopt(&commit.graph, commit.follows), Adoption::Adopted);
    assert!(matches!(fold.apply(3, &event.event_type, &event.data), FoldStep::Passed));
    assert_eq!(fold.graph().node_count(), 1);
    assert_eq!(fold.adopt(&commit.graph, commit.follows), Adoption::MustFold);
    // A foreign event lies between, so the earlier decision no longer applies.
    assert!(matches!(other.apply(2, &event.event_type, b"nonsense"), FoldStep::Void(_)));
    assert_eq!(other.adopt(&commit.graph, commit.follows), Adoption::MustFold);
    assert!(matches!(other.apply(3, &event.event_type, &event.data), FoldStep::Applied(_)));
    assert!(other.graph().dump().eq(fold.graph().dump()));
}
