//! A confirmed head is the end of the log at any node, and an unknown end is not confirmed.

use crate::oracle::small_segments;
use crate::sent::numbered;
use crate::{JournalUnderTest, Nodes, OnTheWay};
use std::time::Duration;
use wellspring_patience::PATIENCE;

/// Long enough for an answer, if there is one.
const A_WHILE: Duration = Duration::from_millis(300);

/// An append is answered by one node; each node confirms an end at or after it.
pub fn what_was_acknowledged_anywhere_is_confirmed_everywhere(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    for number in 0..50 {
        let appended = nodes.append(numbered(number)).unwrap();
        for node in 0..nodes.count() {
            let end = nodes.confirmed(node, PATIENCE).expect("it is answered").unwrap();
            assert!(end >= appended.last, "node {node} confirms {end}, {} is told", appended.last);
        }
    }
}

/// Neither a disconnected follower nor a leader that does not know yet that it was replaced.
pub fn who_is_cut_off_confirms_nothing(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    nodes.append(numbered(0)).unwrap();
    let leader = nodes.leader().0;
    for away in [nodes.after(leader), leader] {
        nodes.link(away).cut_off();
        let others = nodes.after(away);
        nodes.take_lead(others);
        let appended = nodes.client(others).append(numbered(1)).unwrap();
        let told = nodes.confirmed(away, A_WHILE);
        assert!(!matches!(told, Some(Ok(_))), "node {away} is cut off and confirms {told:?}");
        nodes.link(away).heal(OnTheWay::Lost);
        // A lost question may be answered as unreachable, and is asked again.
        let mut end = 0;
        nodes.wait_until("the end is confirmed again", || {
            end = nodes.confirmed(away, PATIENCE).expect("it is answered").unwrap_or(0);
            end > 0
        });
        assert!(end >= appended.last, "node {away} confirms {end}, {} is told", appended.last);
        nodes.take_lead(leader);
    }
}
