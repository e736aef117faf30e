//! The possible steps.

use crate::engine::Engine;
use crate::facts::News;
use crate::node::{Running, Trouble};
use crate::world::World;
use wellspring_log::OpenError;
use wellspring_log::TurnProgress;
use wellspring_log::shared::EngineLeader;
use wellspring_log::shared::simulated::{Landing, SimulatedLog, Stage, UnderWay};

impl World {
    /// One step.
    pub fn step(&mut self) {
        self.step += 1;
        let tick_us = match self.dice.below(200) {
            0 => self.mood.lead_timeout.as_micros() as u64 * 3,
            _ => self.mood.tick_us,
        };
        let us = self.dice.below(tick_us);
        self.pass(us);
        let node = self.dice.index(self.nodes.len());
        let mood = &self.mood;
        let of_group = |weight: u64| match self.engine {
            Engine::Simulated(_) => 0,
            Engine::Raft(_) => weight,
        };
        let weights = [
            300,
            250,
            200,
            150,
            40,
            20,
            20,
            mood.pause,
            mood.crash,
            mood.cut_off,
            mood.clock_step,
            mood.disk_trouble,
            mood.take_lead,
            mood.leave,
            mood.rot / 50,
            if mood.engine.elects { 20 } else { 0 },
            mood.resign,
            mood.trim,
            30,
            of_group(600),
            of_group(60),
            of_group(mood.cut_off + mood.reorder / 15),
            of_group(mood.disk_trouble + mood.pause),
            of_group(mood.take_lead),
            of_group(mood.leave),
            of_group(mood.rot / 50),
        ];
        match self.dice.weighted(&weights) {
            0 => self.turns(node),
            1 => self.engine_decides(),
            2 => self.show(node),
            3 => self.client(node),
            4 => self.ask_to_confirm(node),
            5 => self.follow_a_link(node),
            6 => self.everybody(),
            7 => self.pause_or_go_on(node),
            8 => self.crash(node),
            9 => self.cut_off_or_heal(node),
            10 => self.set_clock(node),
            11 => self.trouble_or_none(node),
            12 => self.take_lead(node),
            13 => self.leave(node),
            14 => self.rot_in_place(node),
            15 => self.elect(node),
            16 => self.resign(node),
            17 => self.trim(),
            18 => self.revive(),
            19 => self.group_acts(),
            20 => self.offer_beside(node),
            21 => self.break_pair_or_mend(node),
            22 => self.wal_trouble_or_none(node),
            23 => self.change_members(),
            24 => self.stand(node),
            _ => self.rot_wal_in_place(node),
        }
    }

    fn client(&mut self, node: usize) {
        // Most clients know the leader.
        let leads =
            |node: &crate::node::Node| node.log.as_ref().is_some_and(|log| log.role().leads());
        let leaders: Vec<usize> =
            self.nodes.iter().filter(|node| leads(node)).map(|node| node.id).collect();
        let node = match leaders.len() {
            _ if self.dice.chance(100) => node,
            0 => return,
            n => leaders[self.dice.index(n)],
        };
        if self.nodes[node].running != Running::Yes {
            return;
        }
        match self.dice.below(5) {
            0 => self.try_again(node),
            _ => self.ask_something(node),
        }
    }

    /// Lets a process run for a while.
    pub(crate) fn turns(&mut self, node: usize) {
        let most = 1 + self.dice.below(8);
        self.turn(node, most);
    }

    /// Lets a process run for this many turns, or until it is idle. Returns whether it did
    /// anything.
    pub(crate) fn turn(&mut self, node: usize, most: u64) -> TurnProgress {
        let mut did = TurnProgress::Nothing;
        if self.nodes[node].running != Running::Yes {
            return did;
        }
        for _ in 0..most {
            let Some(log) = self.nodes[node].log.clone() else { break };
            let before = log.role();
            let turn = log.turn();
            let after = log.role();
            if before.name() != after.name() || before.leads() && before != after {
                self.say(format_args!("n{node}: {after:?}"));
            }
            self.collect(node);
            if turn.did == TurnProgress::Nothing {
                break;
            }
            did = TurnProgress::Something;
        }
        self.poll_reads(node);
        did
    }

    /// Lets every node catch up with all entries.
    fn everybody(&mut self) {
        for node in 0..self.nodes.len() {
            self.engine.show(node, u64::MAX >> 1);
            self.turn(node, 50);
        }
    }

    fn show(&mut self, node: usize) {
        let more = 1 + self.dice.below(6);
        self.engine.show(node, more);
        self.turns(node);
    }

    /// The engine drops entries that all copies hold; one of nodes does so by itself.
    fn trim(&mut self) {
        let Engine::Simulated(engine) = &self.engine else { return self.group_acts() };
        let nodes: Vec<u64> = (0..self.nodes.len() as u64).collect();
        let kept = engine.trim(&nodes);
        self.say(format_args!("the engine keeps what is after {kept:?}"));
    }

    /// The engine acts on an operation in flight.
    fn engine_decides(&mut self) {
        let Engine::Simulated(engine) = &self.engine else { return self.group_acts() };
        let engine = engine.clone();
        for _ in 0..=self.dice.below(3) {
            let under_way = engine.under_way();
            if under_way.is_empty() {
                return;
            }
            let at = if self.dice.chance(self.mood.reorder) {
                self.dice.index(under_way.len())
            } else {
                0
            };
            self.decide(&engine, &under_way[at]);
        }
    }

    fn decide(&mut self, engine: &SimulatedLog, under_way: &UnderWay) {
        let UnderWay { id, node, stage } = under_way;
        let (node, id, number) = (*node, *id, id.0);
        match stage {
            Stage::Offered if self.dice.chance(self.mood.lose) => {
                self.say(format_args!("offer {number} of n{node} is lost"));
                engine.lose(id);
            }
            Stage::Offered if self.dice.chance(self.mood.unknown) => {
                self.say(format_args!("offer {number} of n{node} is in doubt"));
                engine.report_unknown(id);
            }
            Stage::Zombie if self.dice.chance(300) => {
                self.say(format_args!("offer {number} of n{node} is gone"));
                engine.lose(id);
            }
            Stage::Offered | Stage::Zombie => {
                if self.dice.chance(self.mood.duplicate)
                    && let Some(again) = engine.duplicate(id)
                {
                    self.say(format_args!("offer {number} of n{node} is repeated as {}", again.0));
                }
                match engine.land(id) {
                    Landing::Stands(place) => {
                        self.say(format_args!("offer {number} of n{node} stands at {}", place.0));
                    }
                    _ => self.say(format_args!("offer {number} of n{node} is refused")),
                }
                if self.dice.chance(500) {
                    engine.report(id);
                }
            }
            Stage::Settled => match self.dice.below(1000) {
                odds if odds < self.mood.lose => engine.lose(id),
                odds if odds < self.mood.lose + self.mood.unknown => engine.report_unknown(id),
                _ => engine.report(id),
            },
            Stage::Asked => match self.dice.below(1000) {
                odds if odds < self.mood.lose => engine.lose(id),
                odds if odds < self.mood.lose + self.mood.unknown => engine.answer_unknown(id),
                _ => engine.answer(id),
            },
        }
    }

    fn pause_or_go_on(&mut self, node: usize) {
        let running = match self.nodes[node].running {
            Running::Yes => Running::Paused,
            Running::Paused => Running::Yes,
            Running::Leaving | Running::Dead => return,
        };
        self.nodes[node].running = running;
        self.say(format_args!("n{node}: paused or going on: {running:?}"));
    }

    fn crash(&mut self, node: usize) {
        if self.nodes[node].running == Running::Dead {
            return;
        }
        self.say(format_args!("n{node}: crash"));
        self.kill_process(node);
        self.crash_member(node);
        if !self.may_harm_copy(node) {
        } else if self.dice.chance(self.mood.rot / 8) {
            self.nodes[node].replace_disk(&mut self.dice);
            self.engine.lose_copy(node);
            self.say(format_args!("n{node}: gets an empty disk"));
        } else if self.dice.chance(self.mood.rot)
            && let Some(what) = self.nodes[node].rot(&mut self.dice)
        {
            self.say(format_args!("n{node}: rot takes {what}"));
        }
    }

    /// Kills the process of a node with a power loss, except for the group's member.
    pub(crate) fn kill_process(&mut self, node: usize) {
        self.orphan(node);
        // What the old process does during its destruction has no effect.
        match &mut self.engine {
            Engine::Simulated(log) => log.disconnect(node as u64),
            Engine::Raft(group) => group.stop(node),
        }
        self.nodes[node].crash();
        if let (Engine::Simulated(log), false) = (&self.engine, self.nodes[node].cut_off) {
            log.reconnect(node as u64);
        }
    }

    /// Whether a copy may be damaged or lost. What is dropped has to be good in another one.
    fn may_harm_copy(&self, node: usize) -> bool {
        let mut others = self.nodes.iter().filter(|other| other.id != node);
        let Engine::Raft(group) = &self.engine else { return true };
        !group.drops() || others.all(|other| !other.rotten) && group.copies.has_spare(node)
    }

    fn rot_in_place(&mut self, node: usize) {
        // Damage that nothing has met yet would take what is written later, too: where copies are
        // all there is, and one voter may be enough, that is a loss.
        let drops = matches!(&self.engine, Engine::Raft(group) if group.drops());
        if self.nodes[node].running != Running::Dead
            && !drops
            && let Some(what) = self.nodes[node].rot_in_place(&mut self.dice)
        {
            self.say(format_args!("n{node}: rot takes {what}, unseen"));
        }
    }

    /// Shuts a process down.
    pub(crate) fn leave(&mut self, node: usize) {
        if self.nodes[node].running != Running::Yes {
            return;
        }
        self.say(format_args!("n{node}: is shut down"));
        self.nodes[node].leave();
        self.collect(node);
        self.poll_reads(node);
        for what in self.unanswered(node) {
            self.news.push(News::Unanswered { node, what });
        }
        self.orphan(node);
    }

    /// Starts a process on a node without one.
    pub(crate) fn start(&mut self, node: usize) {
        if !self.start_member(node) {
            return;
        }
        let connection = self.engine.connect(node, self.mood.engine.elects);
        let connection = connection.expect("the engine runs");
        match self.nodes[node].start(connection, &self.mood, &mut self.dice) {
            Ok(()) => {
                let log = self.nodes[node].log.as_ref().expect("it has begun");
                if let Engine::Raft(group) = &self.engine {
                    group.copies.opened(node, log);
                }
                self.say(format_args!(
                    "n{node}: process {} begins at {}",
                    self.nodes[node].life,
                    log.head()
                ));
            }
            Err(error) => {
                self.say(format_args!("n{node}: does not begin: {error}"));
                let at = &self.nodes[node];
                let is_behind =
                    matches!(&self.engine, Engine::Raft(group) if group.is_behind(node));
                // An error caused by disk trouble or an unreachable engine is expected.
                let is_expected = matches!(error, OpenError::Io { .. })
                    && (at.trouble != Trouble::None || at.cut_off || is_behind);
                if !is_expected {
                    self.news.push(News::NotOpened { node, why: error.to_string() });
                }
            }
        }
    }

    fn revive(&mut self) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].running == Running::Leaving {
                self.has_left(node);
            }
        }
        self.kill_stopped(300);
        let dead: Vec<usize> = (self.nodes.iter())
            .filter(|node| node.running == Running::Dead)
            .map(|node| node.id)
            .collect();
        if !dead.is_empty() {
            let node = dead[self.dice.index(dead.len())];
            self.start(node);
        }
    }

    /// A process that was shut down has ended.
    pub(crate) fn has_left(&mut self, node: usize) {
        if let Engine::Raft(group) = &self.engine {
            group.copies.closed(node);
        }
        self.nodes[node].has_left();
        if let Engine::Raft(group) = &mut self.engine {
            group.stop(node);
        }
    }

    fn cut_off_or_heal(&mut self, node: usize) {
        let cut_off = !self.nodes[node].cut_off;
        self.nodes[node].cut_off = cut_off;
        self.engine.cut_off(node, cut_off, &mut self.dice);
        self.say(format_args!("n{node}: cut off: {cut_off}"));
    }

    fn set_clock(&mut self, node: usize) {
        let by_us = self.dice.below(20_000_000) as i64 - 10_000_000;
        self.nodes[node].clock.step_wall(by_us);
        self.say(format_args!("n{node}: wall clock set by {by_us} µs"));
    }

    fn trouble_or_none(&mut self, node: usize) {
        let trouble = match (self.nodes[node].trouble, self.dice.below(4)) {
            (Trouble::None, 0) => Trouble::FewFiles { more: self.dice.index(3) },
            (Trouble::None, 1) => Trouble::BarrierFails { after: self.dice.below(6) },
            (Trouble::None, _) => Trouble::Full { room: self.dice.below(70_000) },
            _ => Trouble::None,
        };
        self.nodes[node].set_trouble(trouble);
        self.say(format_args!("n{node}: trouble with its disk: {trouble:?}"));
    }

    /// The engine elects another node, and the nodes learn of it gradually.
    fn elect(&mut self, node: usize) {
        self.say(format_args!("n{node}: is elected"));
        let Engine::Simulated(engine) = &self.engine else { return };
        engine.elect(node as u64, EngineLeader::ThisNode);
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            if self.dice.chance(800) {
                engine.elect(other as u64, EngineLeader::NotThisNode);
            }
        }
    }

    fn resign(&mut self, node: usize) {
        if let Some(log) = &self.nodes[node].log {
            log.resign();
            self.say(format_args!("n{node}: is told to give up the lead"));
        }
    }

    pub(crate) fn take_lead(&mut self, node: usize) {
        if let Some(log) = &self.nodes[node].log {
            log.claim_lead();
            self.say(format_args!("n{node}: is told to lead"));
        }
    }
}
