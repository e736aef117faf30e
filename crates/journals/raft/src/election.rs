//! Who orders: elections, handing ordering over, and giving it up.

use crate::elector::Step;
use crate::group::{self, Raft};
use crate::message::{Answer, Message, Question};
use crate::runtime::{HandRuntime, pause, within};
use crate::shared_node::{SharedNode, locked};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A node that orders stops once no majority has answered for this many times the patience. Others
/// that still hear it would wait for it for ever.
const UNHEARD_PATIENCE: u32 = 4;
/// Time between looks while ordering is handed over.
const LOOK_AFTER: Duration = Duration::from_millis(1);

/// Has the node elected when there is no orderer, and stops its ordering when no majority answers.
pub(crate) async fn elect(shared: Arc<SharedNode>, runtime: HandRuntime, raft: Raft) {
    let mut orders_since_us = None;
    loop {
        let now_us = shared.now_us();
        if shared.is_orderer() {
            let since_us = *orders_since_us.get_or_insert(now_us);
            let ordered = Duration::from_micros(now_us - since_us);
            let unheard = group::unheard(&raft).map_or(ordered, |unheard| unheard.min(ordered));
            if unheard > shared.patience * UNHEARD_PATIENCE && group::step_down(&raft).await {
                tracing::warn!(node = shared.node, "no majority answers: it no longer orders");
            }
        } else {
            orders_since_us = None;
        }
        let members = locked(&shared.members).clone();
        let step = {
            let mut elector = locked(&shared.elector);
            if shared.is_orderer() {
                elector.hears(now_us);
            }
            elector.step(now_us, shared.node, &members)
        };
        match step {
            Step::WaitUntil(due_us) => {
                let wait = Duration::from_micros(due_us.saturating_sub(now_us).max(1));
                let _ = within(wait, shared.elector_moved.notified()).await;
            }
            Step::Ask { round } => {
                let last = shared.reader.last();
                let voters = members.all_voters();
                for voter in voters.into_iter().filter(|voter| *voter != shared.node) {
                    let shared = Arc::clone(&shared);
                    runtime.spawn(async move {
                        let asked = shared.peers.ask(voter, Question::WouldElect { last });
                        let answered = within(shared.patience, asked).await;
                        if let Ok(Some(Answer::WouldElect(would))) = answered {
                            locked(&shared.elector).answered(round, voter, would);
                            shared.elector_moved.notify_one();
                        }
                    });
                }
            }
            Step::Stand => {
                if !group::stand(&raft).await {
                    return;
                }
            }
        }
    }
}

/// Has another voter order in place of this node, if it is the one that orders in this term. Frames
/// wait while it gets the last ones: this node stops ordering once everything is committed and the
/// other one has it. They do not wait for one that takes nothing, such as one with a full disk.
pub(crate) async fn hand_over(shared: Arc<SharedNode>, raft: Raft, to: u64, term: u64) {
    let is_meant = || {
        let orders = shared.is_orderer() && shared.term.load(Ordering::Acquire) == term;
        orders && to != shared.node && locked(&shared.members).votes(to)
    };
    let now = shared.reader.last().index;
    let follows = async {
        while is_meant() && !group::has(&raft, to, now) {
            pause(LOOK_AFTER).await;
        }
    };
    let has_waited = within(shared.patience, follows).await.is_ok();
    if !has_waited || !is_meant() || std::mem::replace(&mut locked(&shared.offered).is_held, true) {
        return;
    }
    let stopping = async {
        loop {
            let is_idle = locked(&shared.offered).under_way == 0;
            let has_all = group::has(&raft, to, shared.reader.last().index);
            if is_idle && has_all && group::step_down(&raft).await {
                return;
            }
            pause(LOOK_AFTER).await;
        }
    };
    if within(shared.patience, stopping).await.is_ok() {
        shared.peers.links.send(to, Message::Stand { term });
        let known = async {
            while shared.is_orderer() {
                pause(LOOK_AFTER).await;
            }
        };
        let _ = within(shared.patience, known).await;
    }
    locked(&shared.offered).is_held = false;
    shared.has_offers.notify_one();
}

/// Stands for election: the node that ordered in this term has stopped in favour of this one. In a
/// large group, it stands again once the others no longer refuse because they heard that node.
pub(crate) async fn stand_for(shared: Arc<SharedNode>, raft: Raft, term: u64) {
    for later in 0..2 {
        let is_due = shared.term.load(Ordering::Acquire) <= term + later && !shared.is_orderer();
        if !is_due || !group::stand(&raft).await {
            return;
        }
        pause(shared.patience * 3 / 4).await;
    }
}
