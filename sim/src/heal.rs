//! The end of a history: all faults are removed, and every promise must be fulfilled.

use crate::clients::AttemptState;
use crate::engine::Engine;
use crate::node::{Running, Trouble};
use crate::world::World;
use wellspring_log::shared::EngineLeader::{NotThisNode, ThisNode};
use wellspring_log::shared::simulated::{SimulatedLog, Stage, UnderWay};
use wellspring_log::{Claims, Role, TurnProgress};

/// Time until everything must have recovered: a number of lead timeouts, and at least the second
/// figure. A reader that finds damage in many segments waits a second for the repair of each.
const TIMEOUTS: u64 = 40;
const LEAST_US: u64 = 30_000_000;
/// Rounds of turns per lead timeout.
const ROUNDS: u64 = 40;

impl World {
    /// Removes all faults; offers in flight land late.
    pub fn heal(&mut self) {
        let elected = self.dice.index(self.nodes.len());
        self.elected = elected;
        self.step += 1;
        self.say(format_args!("everything is healed"));
        if let Engine::Raft(group) = &mut self.engine {
            group.heal();
        }
        self.kill_stopped(1_000);
        for node in 0..self.nodes.len() {
            self.nodes[node].set_trouble(Trouble::None);
            self.nodes[node].cut_off = false;
            if let Engine::Simulated(engine) = &self.engine {
                engine.reconnect(node as u64);
                let elects = if node == elected { ThisNode } else { NotThisNode };
                engine.elect(node as u64, elects);
            }
            match self.nodes[node].running {
                Running::Yes => {}
                Running::Paused => self.nodes[node].running = Running::Yes,
                Running::Leaving => {
                    self.has_left(node);
                    self.start(node);
                }
                Running::Dead => self.start(node),
            }
        }
    }

    /// One round without faults. Returns whether everything is quiet and well.
    ///
    /// # Errors
    /// What is still missing.
    pub fn healthy_round(&mut self) -> Result<(), String> {
        self.step += 1;
        self.pass(self.mood.lead_timeout.as_micros() as u64 / ROUNDS);
        if let Engine::Simulated(engine) = &self.engine {
            let engine = engine.clone();
            engine.under_way().iter().for_each(|under_way| self.settle(&engine, under_way));
        }
        self.settle_group();
        for node in 0..self.nodes.len() {
            if self.nodes[node].running == Running::Dead {
                self.start(node);
            }
        }
        self.tell_somebody();
        for node in 0..self.nodes.len() {
            self.engine.show(node, u64::MAX >> 1);
            while self.turn(node, 64) == TurnProgress::Something {}
        }
        self.is_well()
    }

    /// With claims on request only, asks a node to lead if none does.
    fn tell_somebody(&mut self) {
        let elected = match &self.engine {
            Engine::Raft(group) if self.mood.engine.elects => group.orderer_at(),
            _ => Some(self.elected),
        };
        let Some(elected) = elected else { return };
        let leads = |role| matches!(role, Role::Leading { .. } | Role::Claiming { .. });
        let mut logs = self.nodes.iter().filter_map(|node| node.log.as_ref());
        if self.mood.claims == Claims::WhenTold && !logs.any(|log| leads(log.role())) {
            self.take_lead(elected);
        }
    }

    /// Number of rounds within which everything must have recovered.
    #[must_use]
    pub fn patience(&self) -> u64 {
        let round_us = self.mood.lead_timeout.as_micros() as u64 / ROUNDS;
        (TIMEOUTS * ROUNDS).max(LEAST_US / round_us)
    }

    fn settle(&mut self, engine: &SimulatedLog, under_way: &UnderWay) {
        let id = under_way.id;
        match under_way.stage {
            Stage::Offered | Stage::Zombie => {
                let (landing, node) = (engine.land(id), under_way.node);
                self.say(format_args!("offer {} of n{node}: {landing:?}", id.0));
                engine.report(id);
            }
            Stage::Settled => engine.report(id),
            Stage::Asked => engine.answer(id),
        }
    }

    fn is_well(&self) -> Result<(), String> {
        if let Engine::Raft(group) = &self.engine {
            group.is_well()?;
        }
        let mut leader = None;
        let mut heads = Vec::new();
        for node in &self.nodes {
            let Some(log) = &node.log else { return Err(format!("n{} is not running", node.id)) };
            heads.push(log.head());
            if node.learned < log.head() {
                return Err(format!("n{} cannot read events after {}", node.id, node.learned));
            }
            if log.staged_bytes() > 0 {
                return Err(format!("n{}: {} bytes stay staged", node.id, log.staged_bytes()));
            }
            if log.is_full() {
                return Err(format!("n{} still says that its disk is full", node.id));
            }
            if let Some(damage) = log.damage().first() {
                return Err(format!("n{}: {damage}", node.id));
            }
            if let Role::Leading { epoch } = log.role()
                && leader.replace((node.id, epoch)).is_some()
            {
                return Err("two nodes lead".into());
            }
        }
        let Some((leader, epoch)) = leader else { return Err("nobody leads".into()) };
        for node in self.nodes.iter().filter(|node| node.id != leader) {
            let role = node.log.as_ref().map(|log| log.role());
            match role {
                Some(Role::Following { leader: Some(of) }) if of.epoch == epoch => {}
                // Its disk has lost the leader's identity, and no heartbeat reveals it.
                Some(Role::Following { leader: None }) if self.mood.claims == Claims::WhenTold => {}
                role => return Err(format!("n{} does not follow n{leader}: {role:?}", node.id)),
            }
        }
        if heads.iter().any(|head| *head != heads[0]) {
            return Err(format!("the heads differ: {heads:?}"));
        }
        let waits = |(_, attempt): &(usize, &crate::clients::Attempt)| {
            attempt.state == AttemptState::Waiting
        };
        if let Some((id, attempt)) = self.clients.attempts.iter().enumerate().find(waits) {
            return Err(format!("attempt {id} at n{} has no answer", attempt.node));
        }
        match self.clients.reads.first() {
            Some(read) => Err(format!("a read at n{} has no answer", read.node)),
            None => Ok(()),
        }
    }

    /// Shuts everything down and restarts it on segments alone: indexes are rebuilt, and damage
    /// that no reader has met is found.
    pub fn restart_all(&mut self) {
        self.step += 1;
        self.say(format_args!("everything is shut down, and begins again without indexes"));
        for node in 0..self.nodes.len() {
            self.leave(node);
            self.has_left(node);
            self.nodes[node].remove_indexes(&mut self.dice);
        }
        for node in 0..self.nodes.len() {
            self.start(node);
        }
    }

    /// After recovery: every node confirms a read, and a request succeeds.
    pub fn last_requests(&mut self) {
        for node in 0..self.nodes.len() {
            self.ask_to_confirm(node);
            self.follow_a_link(node);
            self.try_again(node);
            self.ask_something(node);
        }
    }
}
