//! The possible steps.

use crate::facts::News;
use crate::node::{Running, Trouble};
use crate::world::World;
use wellspring_log::OpenError;
use wellspring_log::TurnProgress;
use wellspring_log::shared::EngineLeader;
use wellspring_log::shared::simulated::{Landing, Stage, UnderWay};

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
            30,
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
            _ => self.revive(),
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
            self.engine.show(node as u64, u64::MAX >> 1);
            self.turn(node, 50);
        }
    }

    fn show(&mut self, node: usize) {
        let more = 1 + self.dice.below(6);
        self.engine.show(node as u64, more);
        self.turns(node);
    }

    /// The engine acts on an operation in flight.
    fn engine_decides(&mut self) {
        for _ in 0..=self.dice.below(3) {
            let under_way = self.engine.under_way();
            if under_way.is_empty() {
                return;
            }
            let at = if self.dice.chance(self.mood.reorder) {
                self.dice.index(under_way.len())
            } else {
                0
            };
            self.decide(&under_way[at]);
        }
    }

    fn decide(&mut self, under_way: &UnderWay) {
        let UnderWay { id, node, stage } = under_way;
        let (node, id, number) = (*node, *id, id.0);
        match stage {
            Stage::Offered if self.dice.chance(self.mood.lose) => {
                self.say(format_args!("offer {number} of n{node} is lost"));
                self.engine.lose(id);
            }
            Stage::Offered if self.dice.chance(self.mood.unknown) => {
                self.say(format_args!("offer {number} of n{node} is in doubt"));
                self.engine.report_unknown(id);
            }
            Stage::Zombie if self.dice.chance(300) => {
                self.say(format_args!("offer {number} of n{node} is gone"));
                self.engine.lose(id);
            }
            Stage::Offered | Stage::Zombie => {
                if self.dice.chance(self.mood.duplicate)
                    && let Some(again) = self.engine.duplicate(id)
                {
                    self.say(format_args!("offer {number} of n{node} is repeated as {}", again.0));
                }
                match self.engine.land(id) {
                    Landing::Stands(place) => {
                        self.say(format_args!("offer {number} of n{node} stands at {}", place.0));
                    }
                    _ => self.say(format_args!("offer {number} of n{node} is refused")),
                }
                if self.dice.chance(500) {
                    self.engine.report(id);
                }
            }
            Stage::Settled => match self.dice.below(1000) {
                odds if odds < self.mood.lose => self.engine.lose(id),
                odds if odds < self.mood.lose + self.mood.unknown => self.engine.report_unknown(id),
                _ => self.engine.report(id),
            },
            Stage::Asked => match self.dice.below(1000) {
                odds if odds < self.mood.lose => self.engine.lose(id),
                odds if odds < self.mood.lose + self.mood.unknown => self.engine.answer_unknown(id),
                _ => self.engine.answer(id),
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
        self.orphan(node);
        self.nodes[node].crash(&self.engine);
        if self.dice.chance(self.mood.rot / 8) {
            self.nodes[node].replace_disk(&mut self.dice);
            self.say(format_args!("n{node}: gets an empty disk"));
        } else if self.dice.chance(self.mood.rot)
            && let Some(what) = self.nodes[node].rot(&mut self.dice)
        {
            self.say(format_args!("n{node}: rot takes {what}"));
        }
    }

    fn rot_in_place(&mut self, node: usize) {
        if self.nodes[node].running != Running::Dead
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
        match self.nodes[node].start(&self.engine, &self.mood, &mut self.dice) {
            Ok(()) => {
                let log = self.nodes[node].log.as_ref().expect("it has begun");
                self.say(format_args!(
                    "n{node}: process {} begins at {}",
                    self.nodes[node].life,
                    log.head()
                ));
            }
            Err(error) => {
                self.say(format_args!("n{node}: does not begin: {error}"));
                let at = &self.nodes[node];
                // An error caused by disk trouble or an unreachable engine is expected.
                let is_expected = matches!(error, OpenError::Io { .. })
                    && (at.trouble != Trouble::None || at.cut_off);
                if !is_expected {
                    self.news.push(News::NotOpened { node, why: error.to_string() });
                }
            }
        }
    }

    fn revive(&mut self) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].running == Running::Leaving {
                self.nodes[node].has_left();
            }
        }
        let dead: Vec<usize> = (self.nodes.iter())
            .filter(|node| node.running == Running::Dead)
            .map(|node| node.id)
            .collect();
        if !dead.is_empty() {
            let node = dead[self.dice.index(dead.len())];
            self.start(node);
        }
    }

    fn cut_off_or_heal(&mut self, node: usize) {
        let cut_off = !self.nodes[node].cut_off;
        self.nodes[node].cut_off = cut_off;
        if cut_off {
            self.engine.disconnect(node as u64)
        } else {
            self.engine.reconnect(node as u64)
        }
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
        self.engine.elect(node as u64, EngineLeader::ThisNode);
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            if self.dice.chance(800) {
                self.engine.elect(other as u64, EngineLeader::NotThisNode);
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
