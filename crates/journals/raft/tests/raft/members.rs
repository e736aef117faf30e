//! Members join, vote and leave, and nothing that was placed is lost.

use crate::group::{Group, Reach};
use crate::orders::{all_up_to, put};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wellspring_journal_raft::{GroupReport, MembersError};
use wellspring_log::shared::{Place, SharedLog as _};

const PATIENCE: Duration = Duration::from_millis(100);

fn set(ids: &[u64]) -> BTreeSet<u64> {
    ids.iter().copied().collect()
}

/// Waits until the node's report is so.
fn until(group: &Arc<Group>, number: usize, is_so: impl Fn(&GroupReport) -> bool) {
    let begun = Instant::now();
    loop {
        let report = group.running(number).report();
        if is_so(&report) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "node {number}: {report:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_learner_follows_votes_once_it_is_told_to_and_replaces_a_voter() {
    let group = Group::of_voters(4, 3, 11, PATIENCE);
    let mut next = 0;
    let orderer = group.orderer();
    let node = group.running(orderer);
    let mut log = group.connect(orderer, "a");
    log.follow(Place(0));
    put(&mut log, b"1", &mut next);
    let other = (orderer + 1) % 3;
    until(&group, other, |report| report.orderer == Some(orderer as u64 + 1));
    let refused = group.running(other).add_learner(4).wait();
    let ordering = MembersError::NotOrdering { orderer: Some(orderer as u64 + 1) };
    assert_eq!(refused, Err(ordering));
    let no_member = MembersError::NoMember { node: 4 };
    assert_eq!(node.change_voters(&[1, 2, 3, 4]).wait(), Err(no_member));
    assert_eq!(node.change_voters(&[]).wait(), Err(MembersError::NoVoters));

    node.add_learner(4).wait().unwrap();
    let place = put(&mut log, b"2", &mut next);
    let entries = |number, place| {
        let all = all_up_to(&mut group.connect(number, "a"), place);
        all.into_iter().map(|(_, entry)| entry).collect::<Vec<_>>()
    };
    assert_eq!(entries(3, place), [b"1", b"2"]);
    until(&group, 3, |report| report.voters == set(&[1, 2, 3]) && report.learners == set(&[4]));
    // It has no vote: with one voter of three it places nothing, and does not stand.
    group.set_reach(other, Reach::Nothing);
    group.set_reach((orderer + 2) % 3, Reach::Nothing);
    let under_way = node.change_voters(&[1, 2, 3, 4]);
    assert_eq!(node.add_learner(9).wait(), Err(MembersError::UnderWay));
    group.set_reach(orderer, Reach::Nothing);
    std::thread::sleep(5 * PATIENCE);
    assert_ne!(group.running(3).report().orderer, Some(4));
    (0..3).for_each(|number| group.set_reach(number, Reach::All));
    // The change is committed, or was undone because another node was elected meanwhile.
    let _ = under_way.wait();
    drop((node, log));

    let begun = Instant::now();
    let gone = loop {
        let orderer = group.orderer();
        let voters = set(&[1, 2, 3, 4]);
        let rest: Vec<u64> = voters.into_iter().filter(|id| *id != orderer as u64 + 1).collect();
        let node = group.running(orderer);
        if node.change_voters(&[1, 2, 3, 4]).wait().is_ok()
            && node.change_voters(&rest).wait().is_ok()
        {
            break orderer;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "the voters are not replaced");
        std::thread::sleep(Duration::from_millis(5));
    };
    let gone_id = gone as u64 + 1;
    group.kill(gone);
    let left = (gone + 1) % 3;
    let orderer = group.orderer();
    let mut log = group.connect(orderer, "a");
    log.follow(Place(0));
    let place = put(&mut log, b"3", &mut next);
    until(&group, left, |report| {
        let is_done = !report.is_replacing_voters && report.learners.is_empty();
        is_done && report.voters.len() == 3 && !report.voters.contains(&gone_id)
    });
    for number in (0..4).filter(|number| *number != gone) {
        assert_eq!(entries(number, place), [b"1", b"2", b"3"]);
    }
    // All restart, and the members are those of the WAL.
    let left: Vec<usize> = (0..4).filter(|number| *number != gone).collect();
    drop(log);
    left.iter().for_each(|number| group.kill(*number));
    left.iter().for_each(|number| group.start(*number));
    let orderer = group.orderer();
    assert!(!group.running(orderer).report().voters.contains(&gone_id));
    let mut log = group.connect(orderer, "a");
    log.follow(Place(0));
    put(&mut log, b"4", &mut next);
}

#[test]
fn an_orderer_does_not_remove_itself_if_its_vote_may_be_needed() {
    let group = Group::new(2, 12, PATIENCE);
    let orderer = group.orderer();
    until(&group, orderer, |report| report.applied > 1);
    let others = [2 - orderer as u64];
    let refused = group.running(orderer).change_voters(&others).wait();
    assert_eq!(refused, Err(MembersError::RemovesOrderer));
    group.running(orderer).change_voters(&[orderer as u64 + 1]).wait().unwrap();
}

#[test]
fn an_orderer_that_is_no_voter_any_more_changes_nothing() {
    for seed in 0..10 {
        let group = Group::new(3, 20 + seed, PATIENCE);
        let orderer = group.orderer();
        let node = group.running(orderer);
        let id = orderer as u64 + 1;
        let rest: Vec<u64> = (1..=3).filter(|other| *other != id).collect();
        until(&group, orderer, |report| report.applied > 1);
        node.change_voters(&rest).wait().unwrap();
        let refused = node.add_learner(id).wait();
        assert!(matches!(refused, Err(MembersError::NotOrdering { .. })), "{refused:?}");
        drop(node);
        until(&group, (orderer + 1) % 3, |report| {
            report.orderer.is_some_and(|orderer| rest.contains(&orderer))
        });
    }
}
