//! Decides when a node claims the lead, sends heartbeats, and steps down.
//!
//! Pure: the caller passes times of the node's monotonic clock in µs; timeouts are drawn from a
//! seed. Safety does not depend on this module, only on the [rule](super::rule): a wrong guess
//! costs a change of leader.
//!
//! - A follower claims after hearing nothing from a leader for 1 to 1.75 times the lead timeout,
//!   drawn again for each silence so that two nodes rarely claim at once; and immediately if the
//!   current leader is an earlier process of the same node. Time in which the node could not hear,
//!   or was suspended, does not count. Writes thus resume within twice the lead timeout, provided
//!   offers arrive in the remaining time.
//! - If the engine elects, only the elected node claims, immediately.
//! - A claim that does not arrive within the lead timeout is offered again.
//! - A leader that offered nothing for a quarter of the lead timeout sends a heartbeat. A leader
//!   whose own entries have not arrived for the whole timeout, or that the engine no longer names,
//!   steps down.
//! - All this holds for an engine that answers in time. The longest recent delay of the leader's
//!   entries, as far as it exceeds the beat, extends the lead timeout to four times itself, and to
//!   at most eight lead timeouts: an engine with slow commits keeps its leader.
//! - A node that resigned on request does not claim on its own for twice the lead timeout, unless
//!   another leader appears meanwhile.
//! - With claims [on request](Claims::WhenTold), no node claims on its own, and a leader sends no
//!   heartbeats. It steps down when one of its offers has not arrived within the lead timeout.

use super::{Claims, EngineLeader};
use wellspring_types::random::SplitMix64;

/// The state of a node as far as timing depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeadState {
    /// Another node leads, or none.
    Following,
    /// The current claim is that of an earlier process of this node, so no node leads.
    FollowingFormerSelf,
    /// This node's claim is in flight.
    Claiming,
    /// This node leads.
    Leading {
        /// When the oldest batch that has not arrived was first offered; `None` if all have
        /// arrived.
        awaits_since_us: Option<u64>,
    },
}

/// The next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeadAction {
    /// None, and without arrivals none for this long.
    Wait {
        /// In µs, at least 1.
        due_in_us: u64,
    },
    /// Offer a claim, then call [`LeadTimer::claimed`].
    Claim,
    /// Offer a heartbeat, then call [`LeadTimer::offered`].
    Beat,
    /// Follow, then call [`LeadTimer::follows`]: give up the lead, or a claim that has not arrived.
    StepDown,
    /// Offer the claim again, then call [`LeadTimer::claimed`].
    ClaimAgain,
}

/// The lead timeout over a slow engine, as a number of its longest recent delay...
const TIMEOUT_DELAYS: u64 = 4;
/// ...and at most, as a number of the configured one.
const LONGEST_TIMEOUTS: u64 = 8;

/// The timers of one node.
#[derive(Debug)]
pub(crate) struct LeadTimer {
    claims: Claims,
    lead_timeout_us: u64,
    random: SplitMix64,
    /// Follower: when the leader was last heard, or listening began.
    heard_us: u64,
    /// Follower: how long to tolerate silence.
    patience_us: u64,
    /// Follower: it checked too late for this silence to be reliable, and listens for a moment
    /// longer.
    listens_again: bool,
    /// Leader: a beat is due, and waits for what is on its way.
    beat_waits: bool,
    /// When the claim in flight was offered.
    claimed_us: u64,
    /// Leader: when something was last offered.
    offered_us: u64,
    /// Leader: when one of its own entries last arrived.
    delivered_us: u64,
    /// The longest recent delay of an entry of the leader, this node's own claim included.
    delay_us: u64,
    /// Follower that resigned on request: until then it does not claim on its own.
    resigned_until_us: Option<u64>,
}

impl LeadTimer {
    /// A node that starts following.
    pub(crate) fn new(claims: Claims, lead_timeout_us: u64, seed: u64, now_us: u64) -> LeadTimer {
        let mut timer = LeadTimer {
            claims,
            lead_timeout_us: lead_timeout_us.max(4),
            random: SplitMix64::new(seed),
            heard_us: now_us,
            patience_us: 0,
            listens_again: false,
            beat_waits: false,
            claimed_us: now_us,
            offered_us: now_us,
            delivered_us: now_us,
            delay_us: 0,
            resigned_until_us: None,
        };
        timer.follows(now_us);
        timer
    }

    /// Another node's claim took effect.
    pub(crate) fn another_leads(&mut self, now_us: u64) {
        self.resigned_until_us = None;
        self.heard(now_us);
    }

    /// An entry of the current leader, another node, arrived: a heartbeat or a batch.
    pub(crate) fn leader_lives(&mut self, now_us: u64) {
        self.delayed(self.heard_us + self.quarter_us(), now_us);
        self.another_leads(now_us);
    }

    /// An entry arrived that would have been here at `since_us` over a quick engine.
    fn delayed(&mut self, since_us: u64, now_us: u64) {
        let fading_us = self.delay_us - self.delay_us / 8;
        self.delay_us = now_us.saturating_sub(since_us).max(fading_us);
    }

    /// The lead timeout over the engine as it is.
    pub(crate) fn timeout_us(&self) -> u64 {
        let longest_us = self.lead_timeout_us.saturating_mul(LONGEST_TIMEOUTS);
        self.delay_us.saturating_mul(TIMEOUT_DELAYS).clamp(self.lead_timeout_us, longest_us)
    }

    /// An entry arrived that this node offered during a lead that it has given up: its offers
    /// arrive after all, and no other node has claimed. It claims immediately, unless it resigned
    /// on request.
    pub(crate) fn past_lead_arrives(&mut self, now_us: u64) {
        self.delivered(now_us, Some(self.offered_us));
        self.heard(now_us);
        if !self.has_resigned(now_us) {
            self.patience_us = 0;
        }
    }

    fn heard(&mut self, now_us: u64) {
        self.heard_us = now_us;
        self.listens_again = false;
        let timeout_us = self.timeout_us();
        self.patience_us = timeout_us + self.draw() % (timeout_us * 3 / 4 + 1);
    }

    /// Nothing can be heard, because the engine is unavailable. Silence is measured from when
    /// hearing resumes.
    pub(crate) fn cut_off(&mut self, now_us: u64) {
        self.heard_us = now_us;
    }

    /// A claim was offered.
    pub(crate) fn claimed(&mut self, now_us: u64) {
        self.claimed_us = now_us;
    }

    /// The claim took effect.
    pub(crate) fn began_to_lead(&mut self, now_us: u64) {
        self.resigned_until_us = None;
        self.delayed(self.claimed_us, now_us);
        self.offered_us = now_us;
        self.delivered_us = now_us;
    }

    /// An entry that this leader offered in its epoch arrived. `awaits_since_us`: when the oldest
    /// batch under way was first offered.
    pub(crate) fn delivered(&mut self, now_us: u64, awaits_since_us: Option<u64>) {
        let since_us = match self.claims {
            Claims::BySilence => self.delivered_us + self.quarter_us(),
            // Between its batches it is silent.
            Claims::WhenTold => self.delivered_us.max(awaits_since_us.unwrap_or(now_us)),
        };
        self.delayed(since_us, now_us);
        self.delivered_us = now_us;
        if std::mem::take(&mut self.beat_waits) {
            self.offered_us = now_us.saturating_sub(self.quarter_us());
        }
    }

    /// This leader offered something new. Repeated offers do not count: a leader that is not heard
    /// must not appear busy.
    pub(crate) fn offered(&mut self, now_us: u64) {
        self.offered_us = now_us;
    }

    /// A beat is due, but something else is on its way, which shows life as well.
    pub(crate) fn beat_waits(&mut self, now_us: u64) {
        self.beat_waits = true;
        self.offered_us = now_us;
    }

    /// This node starts following.
    pub(crate) fn follows(&mut self, now_us: u64) {
        self.heard(now_us);
    }

    /// This node was asked to give up the lead or its claim, and follows.
    pub(crate) fn resigned(&mut self, now_us: u64) {
        self.follows(now_us);
        self.resigned_until_us = Some(now_us + 2 * self.lead_timeout_us);
    }

    /// This node was asked to claim.
    pub(crate) fn told_to_claim(&mut self) {
        self.resigned_until_us = None;
    }

    /// Whether it resigned on request so recently that it must not claim.
    pub(crate) fn has_resigned(&self, now_us: u64) -> bool {
        self.resigned_until_us.is_some_and(|until_us| now_us < until_us)
    }

    /// The next action. `engine`: the leader elected by the engine, if it elects.
    pub(crate) fn due(
        &mut self,
        now_us: u64,
        state: LeadState,
        engine: Option<EngineLeader>,
    ) -> LeadAction {
        match (state, engine) {
            (LeadState::Following | LeadState::FollowingFormerSelf, _)
                if self.claims == Claims::WhenTold =>
            {
                NOTHING_DUE
            }
            (LeadState::Following | LeadState::FollowingFormerSelf, _)
                if self.has_resigned(now_us) =>
            {
                // It listens meanwhile, so the check at the end of that wait is not too late.
                self.listens_again = true;
                let until_us = self.resigned_until_us.unwrap_or(now_us);
                LeadAction::Wait { due_in_us: until_us - now_us }
            }
            (LeadState::Following | LeadState::FollowingFormerSelf, Some(engine)) => match engine {
                EngineLeader::ThisNode => LeadAction::Claim,
                EngineLeader::NotThisNode => LeadAction::Wait { due_in_us: self.quarter_us() },
            },
            (LeadState::FollowingFormerSelf, None) => LeadAction::Claim,
            (LeadState::Following, None) => self.due_of_follower(now_us),
            (LeadState::Claiming | LeadState::Leading { .. }, Some(EngineLeader::NotThisNode)) => {
                LeadAction::StepDown
            }
            (LeadState::Claiming, _) => {
                within(self.claimed_us, self.timeout_us(), now_us).unwrap_or(LeadAction::ClaimAgain)
            }
            (LeadState::Leading { awaits_since_us }, _) => {
                self.due_of_leader(now_us, awaits_since_us)
            }
        }
    }

    fn due_of_follower(&mut self, now_us: u64) -> LeadAction {
        let silence_us = now_us.saturating_sub(self.heard_us);
        // A node that checks this late was suspended, and has yet to hear what was sent meanwhile.
        if silence_us > self.patience_us + self.quarter_us() && !self.listens_again {
            self.listens_again = true;
            self.heard_us = (now_us + self.quarter_us()).saturating_sub(self.patience_us);
        }
        within(self.heard_us, self.patience_us, now_us).unwrap_or(LeadAction::Claim)
    }

    fn due_of_leader(&self, now_us: u64, awaits_since_us: Option<u64>) -> LeadAction {
        match (self.claims, awaits_since_us) {
            (Claims::WhenTold, None) => NOTHING_DUE,
            (Claims::WhenTold, Some(since_us)) => {
                within(self.delivered_us.max(since_us), self.timeout_us(), now_us)
                    .unwrap_or(LeadAction::StepDown)
            }
            (Claims::BySilence, _) => match within(self.delivered_us, self.timeout_us(), now_us) {
                None => LeadAction::StepDown,
                Some(lead) => match within(self.offered_us, self.quarter_us(), now_us) {
                    None => LeadAction::Beat,
                    Some(beat) => sooner(lead, beat),
                },
            },
        }
    }

    fn quarter_us(&self) -> u64 {
        self.lead_timeout_us / 4
    }

    fn draw(&mut self) -> u64 {
        self.random.next_u64()
    }
}

/// Nothing is due until something arrives or the node gets an order.
const NOTHING_DUE: LeadAction = LeadAction::Wait { due_in_us: u64::MAX };

/// Time until `bound_us` after `since_us`; `None` if that has passed.
fn within(since_us: u64, bound_us: u64, now_us: u64) -> Option<LeadAction> {
    let left = bound_us.saturating_sub(now_us.saturating_sub(since_us));
    (left > 0).then_some(LeadAction::Wait { due_in_us: left })
}

fn sooner(a: LeadAction, b: LeadAction) -> LeadAction {
    match (a, b) {
        (LeadAction::Wait { due_in_us: a }, LeadAction::Wait { due_in_us: b }) => {
            LeadAction::Wait { due_in_us: a.min(b) }
        }
        (LeadAction::Wait { .. }, act) | (act, _) => act,
    }
}

#[cfg(test)]
mod tests {
    use super::Claims::{BySilence, WhenTold};
    use super::EngineLeader::{NotThisNode, ThisNode};
    use super::LeadAction::{Beat, Claim, ClaimAgain, StepDown, Wait};
    use super::LeadState::{Claiming, Following, FollowingFormerSelf};
    use super::*;

    const TIMEOUT: u64 = 1000;
    #[allow(non_upper_case_globals)] // reads as the others
    const Leading: LeadState = LeadState::Leading { awaits_since_us: None };

    fn wait(timer: &mut LeadTimer, now: u64, state: LeadState) -> u64 {
        match timer.due(now, state, None) {
            Wait { due_in_us } => due_in_us,
            other => panic!("{other:?} at {now}"),
        }
    }

    #[test]
    fn a_follower_claims_after_a_silence_of_newly_drawn_length() {
        let mut timer = LeadTimer::new(BySilence, TIMEOUT, 1, 50);
        let mut drawn = std::collections::BTreeSet::new();
        let mut now = 50;
        for _ in 0..200 {
            timer.leader_lives(now);
            let patience = wait(&mut timer, now, Following);
            assert!((TIMEOUT..=TIMEOUT * 7 / 4).contains(&patience));
            drawn.insert(patience);
            assert_eq!(wait(&mut timer, now + patience - 1, Following), 1);
            assert_eq!(timer.due(now + patience, Following, None), Claim);
            now += 400;
        }
        assert!(drawn.len() > 100, "{drawn:?}");
    }

    #[test]
    fn a_node_that_was_paused_listens_before_it_claims() {
        let mut timer = LeadTimer::new(Claims::BySilence, TIMEOUT, 1, 0);
        let late = 10 * TIMEOUT;
        assert_eq!(wait(&mut timer, late, Following), TIMEOUT / 4);
        // Nothing arrived: it was silence after all, however late the next check is.
        assert_eq!(timer.due(late + TIMEOUT, Following, None), Claim);
        let mut timer = LeadTimer::new(Claims::BySilence, TIMEOUT, 1, 0);
        assert_eq!(wait(&mut timer, late, Following), TIMEOUT / 4);
        timer.leader_lives(late + 1);
        assert!(wait(&mut timer, late + 1, Following) >= TIMEOUT);
        assert_eq!(wait(&mut timer, 2 * late, Following), TIMEOUT / 4, "each time anew");
    }

    #[test]
    fn time_without_hearing_is_no_silence() {
        let mut timer = LeadTimer::new(BySilence, TIMEOUT, 1, 0);
        timer.cut_off(10_000);
        assert!(wait(&mut timer, 10_500, Following) >= 500);
    }

    #[test]
    fn a_former_life_is_replaced_at_once() {
        let mut timer = LeadTimer::new(BySilence, TIMEOUT, 1, 0);
        assert_eq!(timer.due(0, FollowingFormerSelf, None), Claim);
        assert_eq!(
            timer.due(0, FollowingFormerSelf, Some(NotThisNode)),
            Wait { due_in_us: TIMEOUT / 4 }
        );
    }

    #[test]
    fn where_the_engine_elects_its_word_alone_decides() {
        let mut timer = LeadTimer::new(BySilence, TIMEOUT, 1, 0);
        assert_eq!(timer.due(1, Following, Some(ThisNode)), Claim);
        let late = TIMEOUT * 100;
        assert!(matches!(timer.due(late, Following, Some(NotThisNode)), Wait { .. }));
        timer.claimed(late);
        assert_eq!(timer.due(late, Claiming, Some(NotThisNode)), StepDown);
        assert!(matches!(timer.due(late, Claiming, Some(ThisNode)), Wait { .. }));
        timer.began_to_lead(late);
        assert!(matches!(timer.due(late, Leading, Some(ThisNode)), Wait { .. }));
        assert_eq!(timer.due(late, Leading, Some(NotThisNode)), StepDown);
    }

    #[test]
    fn a_claim_that_does_not_come_back_is_offered_again() {
        let mut timer = LeadTimer::new(BySilence, TIMEOUT, 1, 0);
        timer.claimed(100);
        assert_eq!(wait(&mut timer, 200, Claiming), 900);
        assert_eq!(timer.due(1100, Claiming, None), ClaimAgain);
        timer.claimed(1100);
        assert_eq!(wait(&mut timer, 1100, Claiming), TIMEOUT);
    }

    #[test]
    fn a_leader_beats_while_idle_and_steps_down_when_not_heard() {
        let mut timer = LeadTimer::new(BySilence, TIMEOUT, 1, 0);
        timer.began_to_lead(0);
        assert_eq!(wait(&mut timer, 0, Leading), 250);
        assert_eq!(wait(&mut timer, 249, Leading), 1);
        assert_eq!(timer.due(250, Leading, None), Beat);
        timer.offered(250);
        assert_eq!(wait(&mut timer, 250, Leading), 250);
        timer.offered(900);
        assert_eq!(wait(&mut timer, 900, Leading), 100);
        assert_eq!(timer.due(1000, Leading, None), StepDown);
        timer.delivered(1000, None);
        timer.offered(1000);
        assert_eq!(wait(&mut timer, 1000, Leading), 250);
        timer.follows(1000);
        assert!(wait(&mut timer, 1000, Following) >= TIMEOUT);
    }

    #[test]
    fn a_resigned_leader_does_not_claim_for_two_timeouts_unless_another_leads() {
        for engine in [None, Some(ThisNode)] {
            let mut timer = LeadTimer::new(BySilence, TIMEOUT, 1, 0);
            timer.began_to_lead(0);
            timer.resigned(100);
            // Its own earlier offer arrives, which is not another leader.
            timer.past_lead_arrives(150);
            for state in [Following, FollowingFormerSelf] {
                assert_eq!(timer.due(100, state, engine), Wait { due_in_us: 2 * TIMEOUT });
                assert_eq!(timer.due(2099, state, engine), Wait { due_in_us: 1 });
                assert_eq!(timer.due(2100, state, engine), Claim);
            }
            timer.leader_lives(200);
            assert!(!timer.has_resigned(200));
            let now = 200 + timer.patience_us;
            assert_eq!(timer.due(now, Following, engine), Claim);
            timer.resigned(now);
            timer.told_to_claim();
            assert!(!timer.has_resigned(now));
        }
    }

    #[test]
    fn where_the_engine_elects_no_silence_leads_to_a_claim() {
        let mut timer = LeadTimer::new(WhenTold, TIMEOUT, 1, 0);
        let late = TIMEOUT * 1000;
        for state in [Following, FollowingFormerSelf] {
            for engine in [None, Some(ThisNode), Some(NotThisNode)] {
                assert_eq!(timer.due(late, state, engine), NOTHING_DUE);
            }
        }
        timer.claimed(late);
        assert_eq!(wait(&mut timer, late, Claiming), TIMEOUT);
        assert_eq!(timer.due(late + TIMEOUT, Claiming, None), ClaimAgain);
    }

    #[test]
    fn a_leader_that_was_told_stays_until_something_it_offered_does_not_come_back() {
        let mut timer = LeadTimer::new(WhenTold, TIMEOUT, 1, 0);
        timer.began_to_lead(0);
        let late = TIMEOUT * 1000;
        assert_eq!(timer.due(late, Leading, None), NOTHING_DUE);
        assert_eq!(timer.due(late, Leading, Some(NotThisNode)), StepDown);
        let awaits = |since_us| LeadState::Leading { awaits_since_us: Some(since_us) };
        timer.offered(late);
        assert_eq!(wait(&mut timer, late, awaits(late)), TIMEOUT);
        assert_eq!(wait(&mut timer, late + 999, awaits(late)), 1);
        // A part of it, or the batch before it.
        timer.delivered(late + 200, Some(late));
        assert_eq!(wait(&mut timer, late + 300, awaits(late)), 900);
        assert_eq!(timer.due(late + 1200, awaits(late), None), StepDown);
        assert_eq!(timer.due(late + 1200, Leading, None), NOTHING_DUE);
    }
    /// Each of its entries takes longer than the lead timeout.
    #[test]
    fn over_a_slow_engine_a_leader_is_kept_from_its_second_entry_on() {
        const SLOW: u64 = 3 * TIMEOUT;
        let mut leader = LeadTimer::new(BySilence, TIMEOUT, 1, 0);
        let mut follower = LeadTimer::new(BySilence, TIMEOUT, 2, 0);
        leader.claimed(0);
        leader.began_to_lead(SLOW);
        follower.another_leads(SLOW);
        // Its claim has shown the delay.
        assert_eq!(leader.due(2 * SLOW, Leading, None), Beat);
        leader.delivered(2 * SLOW, None);
        follower.leader_lives(2 * SLOW);
        for at in 3..20 {
            assert_eq!(leader.due(at * SLOW, Leading, None), Beat);
            assert!(wait(&mut follower, at * SLOW - 1, Following) > 0);
            leader.delivered(at * SLOW, None);
            follower.leader_lives(at * SLOW);
        }
        let longest = LONGEST_TIMEOUTS * TIMEOUT;
        assert_eq!(leader.due(19 * SLOW + longest, Leading, None), StepDown);
        // The engine is quick again.
        for n in 1..40 {
            leader.delivered(19 * SLOW + n * TIMEOUT / 4, None);
            follower.leader_lives(19 * SLOW + n * TIMEOUT / 4);
        }
        assert_eq!((leader.timeout_us(), follower.timeout_us()), (TIMEOUT, TIMEOUT));
    }

    #[test]
    fn over_a_slow_engine_a_leader_that_was_told_is_kept_from_its_second_entry_on() {
        const SLOW: u64 = 3 * TIMEOUT;
        let mut timer = LeadTimer::new(WhenTold, TIMEOUT, 1, 0);
        timer.claimed(0);
        timer.began_to_lead(SLOW);
        for at in 2..20 {
            let offered = at * 10 * SLOW;
            let awaits = LeadState::Leading { awaits_since_us: Some(offered) };
            timer.offered(offered);
            assert!(wait(&mut timer, offered + SLOW, awaits) >= SLOW);
            timer.delivered(offered + SLOW, Some(offered));
        }
    }
}
