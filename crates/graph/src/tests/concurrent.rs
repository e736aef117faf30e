//! Transactions with the same base: commits are equivalent to running them one after the other.

use super::history::{create_unique, encoded, raw};
use super::script::{Action, ScriptRun, any_act, run, run_within};
use crate::{
    ChangeSet, CommittedChanges, Graph, GraphFold, NodeChange, NodeId, Transaction, Verdict,
};
use proptest::prelude::*;

fn dump(graph: &Graph) -> Vec<String> {
    graph.dump().collect()
}

/// The fold at a version, as a process has it that never saw a transaction.
fn folded(graph: &Graph) -> GraphFold {
    GraphFold::decode(&mut &encoded(&GraphFold::from(graph.clone()))[..]).expect("a snapshot")
}

fn begin(acts: &[Action], is_unique: bool) -> Graph {
    let mut graph = Graph::new();
    if is_unique {
        create_unique(&mut graph);
    }
    let Ok(ScriptRun { prepared, .. }) = run(&graph, &graph, acts) else { return graph };
    match prepared.decide(&graph, &[]) {
        Verdict::Committed(commit) => commit.graph,
        _ => graph,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]
    #[test]
    fn committed_is_serial(
        setup in prop::collection::vec(any_act(), 0..14),
        scripts in prop::collection::vec(prop::collection::vec(any_act(), 1..7), 2..5),
        is_unique in any::<bool>(),
        limit in prop::sample::select(vec![0, 1, 2, 4_096]),
    ) {
        let base = begin(&setup, is_unique);
        let runs: Vec<_> = scripts.iter().map(|acts| run_within(limit, &base, &base, acts)).collect();
        let (mut head, mut since) = (base.clone(), Vec::<CommittedChanges>::new());
        let (mut fold, mut position) = (folded(&base), base.position());
        for (acts, first) in scripts.iter().zip(runs) {
            let Ok(first) = first else { continue };
            let (log, changes) = (first.log.clone(), first.normal_changes());
            let later: Vec<&CommittedChanges> = since.iter().collect();
            match first.prepared.decide(&head, &later) {
                Verdict::Committed(commit) => {
                    let again = run(&base, &head, acts);
                    let Ok(again) = again else { panic!("refused when it comes second: {again:?}") };
                    prop_assert_eq!(&log, &again.log);
                    prop_assert_eq!(changes, again.normal_changes());
                    // Replays on the other side.
                    let mut other = head.clone();
                    other.set_names(commit.graph.names().clone());
                    other.apply(&commit.changes.changes).expect("it is the graph's next");
                    // So does the fold.
                    let events = first.prepared.events(7).expect("small enough");
                    for event in events {
                        position += 1;
                        fold.apply(position, &event.event_type, &event.data);
                    }
                    prop_assert_eq!(raw(fold.graph()), raw(&commit.graph));
                    prop_assert_eq!(dump(&other), dump(&commit.graph));
                    prop_assert_eq!(commit.graph.audit(), Ok(()));
                    (head, since) = (commit.graph, { since.push((*commit.changes).clone()); since });
                }
                Verdict::Refused(_) => prop_assert!(run(&base, &head, acts).is_err()),
                Verdict::Overtaken => {
                    let Ok(again) = run(&base, &head, acts) else { continue };
                    if let Verdict::Committed(commit) = again.prepared.decide(&head, &[]) {
                        for event in again.prepared.events(7).expect("small enough") {
                            position += 1;
                            fold.apply(position, &event.event_type, &event.data);
                        }
                        (head, since) = (commit.graph, { since.push((*commit.changes).clone()); since });
                    }
                }
                Verdict::Unchanged => {}
            }
        }
    }
}

/// Whether the second of two transactions commits after the first.
fn second_commits(setup: &[Action], first: &[Action], second: &[Action]) -> bool {
    let base = begin(setup, false);
    let [first, second] =
        [first, second].map(|acts| run(&base, &base, acts).expect("nothing broken"));
    let Verdict::Committed(commit) = first.prepared.decide(&base, &[]) else {
        panic!("the first always commits")
    };
    matches!(second.prepared.decide(&commit.graph, &[&commit.changes]), Verdict::Committed(_))
}

#[test]
fn only_what_was_read_is_in_the_way() {
    let two = [Action::Create(0, 0, 1), Action::Create(0, 0, 2)];
    // A hub node: adding relationships conflicts with nothing that did not read them.
    let connect = [Action::Read(0), Action::Connect(0, 1, 0)];
    assert!(second_commits(&two, &connect, &connect));
    assert!(!second_commits(
        &two,
        &connect,
        &[Action::Adjacent(0, 0, None), Action::Create(0, 0, 9)]
    ));
    assert!(second_commits(
        &two,
        &connect,
        &[Action::Adjacent(0, 0, Some(1)), Action::Create(0, 0, 9)]
    ));
    assert!(!second_commits(&two, &connect, &[Action::ConnectOnce(0, 1, 0)]));
    assert!(second_commits(&two, &connect, &[Action::ConnectOnce(1, 0, 0)]));
    // Two transactions merge the same key; another key does not conflict.
    assert!(!second_commits(&[], &[Action::Merge(0, 0, 1)], &[Action::Merge(0, 0, 1)]));
    assert!(second_commits(&[], &[Action::Merge(0, 0, 1)], &[Action::Merge(0, 0, 2)]));
    assert!(second_commits(&[], &[Action::Merge(0, 0, 1)], &[Action::Merge(1, 0, 1)]));
    // Both increment one counter.
    assert!(!second_commits(&two, &[Action::Increment(0, 1)], &[Action::Increment(0, 2)]));
    assert!(second_commits(&two, &[Action::Increment(0, 1)], &[Action::Increment(1, 1)]));
    // An end node is deleted.
    assert!(!second_commits(&two, &[Action::DetachDelete(1)], &connect));
    assert!(!second_commits(&two, &connect, &[Action::Delete(0)]));
    // A count was read.
    assert!(!second_commits(
        &two,
        &[Action::Create(0, 0, 3)],
        &[Action::CountLabel(0), Action::Create(1, 0, 1)]
    ));
    assert!(second_commits(
        &two,
        &[Action::Create(1, 0, 3)],
        &[Action::CountLabel(0), Action::Create(1, 0, 1)]
    ));
}

#[test]
fn to_have_seen_all_nodes_is_not_to_have_seen_their_labels() {
    let count = [Action::CountAll, Action::CountLabel(0), Action::Create(1, 1, 1)];
    assert!(!second_commits(&[Action::Create(0, 0, 1)], &[Action::Unlabel(0, 0)], &count));
}

#[test]
fn what_was_looked_for_in_vain_is_noted_however_much_else_was_read() {
    let setup: Vec<Action> = (0..5_000).map(|number| Action::Create(0, 0, number)).collect();
    let base = begin(&setup, false);
    let mut tx = Transaction::writing(base.clone());
    let absent = NodeId::new(7_000).expect("an id");
    assert!(!tx.has_node(absent));
    assert!(base.node_ids().all(|id| tx.has_node(id)));
    tx.create_node(&[], []).expect("a node");
    let mut head = base.clone();
    let created = NodeChange::Created { labels: Vec::new(), properties: Vec::new() };
    let changes = ChangeSet { nodes: vec![(absent, created)], ..ChangeSet::default() };
    let touches = head.apply(&changes).expect("it is not there");
    let theirs = CommittedChanges { changes, touches };
    let prepared = tx.finish().expect("nothing broken").prepare();
    assert!(matches!(prepared.decide(&head, &[&theirs]), Verdict::Overtaken));
}

#[test]
fn a_footprint_that_grows_becomes_coarser_and_stays_sound() {
    let setup: Vec<Action> = (0..6_000).map(|number| Action::Create(0, 0, number)).collect();
    let read_all: Vec<Action> =
        (0..6_000).map(Action::Read).chain([Action::Create(1, 1, 1)]).collect();
    assert!(!second_commits(&setup, &[Action::Increment(5_999, 0)], &read_all));
    assert!(second_commits(&setup, &[Action::Create(0, 0, 7)], &read_all));
    let seek_all: Vec<Action> = (0..6_000)
        .map(|number| Action::Seek(2, 0, number))
        .chain([Action::Create(1, 1, 1)])
        .collect();
    assert!(!second_commits(&[], &[Action::Create(2, 0, 9_999)], &seek_all));
    assert!(second_commits(&[], &[Action::Create(1, 0, 9_999)], &seek_all));
}
