//! The possible steps of a group's network, disks and processes.

use super::wires::Break;
use super::{Group, NotStarted};
use crate::engine::Engine;
use crate::facts::News;
use crate::node::Running;
use crate::world::World;
use std::fmt::Write as _;
use wellspring_log::storage::simulated::Faults;

impl World {
    /// The network delivers, WALs are worked on, nodes are turned.
    pub(crate) fn group_acts(&mut self) {
        let World { engine: Engine::Raft(group), nodes, dice, .. } = self else { return };
        let is_awake = |at: usize| nodes[at].running != Running::Paused;
        for _ in 0..=dice.below(group.pace) {
            let at = dice.index(nodes.len());
            match dice.weighted(&[60, 25, 15]) {
                0 => {
                    let arrived = group.wires.take(dice, group.faults);
                    let to = arrived.and_then(|(from, to, what)| group.deliver(from, to, what));
                    if let Some(to) = to.filter(|to| is_awake(*to) && dice.chance(850)) {
                        group.turn(to);
                    }
                }
                1 if is_awake(at) && !group.members[at].is_slow => drop(group.work(at)),
                _ if is_awake(at) => group.turn(at),
                _ => {}
            }
        }
        self.tell_of_group();
    }

    /// Adds the group's state to the trace, if it changed.
    fn tell_of_group(&mut self) {
        let Engine::Raft(group) = &mut self.engine else { return };
        let mut state = String::new();
        for (at, report) in group.reports() {
            let (term, last) = (report.term, report.last);
            let orders = if report.orderer == Some(group.members[at].id) { "*" } else { "" };
            let stopped = if report.stopped.is_some() { "!" } else { "" };
            let _ = write!(
                state,
                " n{at}{orders}{stopped} {term}:{}/{}:{}",
                last.term, last.index, report.applied
            );
        }
        if state != group.last_state {
            group.last_state.clone_from(&state);
            self.say(format_args!("group:{state}"));
        }
    }

    /// Starts the member under a node; whether it runs.
    pub(crate) fn start_member(&mut self, node: usize) -> bool {
        let World { engine: Engine::Raft(group), dice, .. } = self else { return true };
        let Err(why) = group.start(node, dice) else { return true };
        let member = &group.members[node];
        match why {
            NotStarted::Damaged(what) if member.is_rotten => {
                group.replace(node, dice);
                self.say(format_args!("n{node}: is replaced, because its WAL is damaged: {what}"));
            }
            NotStarted::Later(what) if member.has_trouble => {
                self.say(format_args!("n{node}: its member does not start: {what}"));
            }
            NotStarted::Later(why) | NotStarted::Damaged(why) => {
                self.news.push(News::NotOpened { node, why });
            }
        }
        false
    }

    /// The process of a member dies, and perhaps its disk with it.
    pub(crate) fn crash_member(&mut self, node: usize) {
        let World { engine: Engine::Raft(group), dice, mood, .. } = self else { return };
        match dice.below(10) {
            0..4 => group.lose_power(node),
            4..7 => group.lose_power_at_work(node, dice),
            _ => group.stop(node),
        }
        let (is_lost, rots) = (dice.chance(mood.rot / 2), dice.chance(mood.rot));
        if !(is_lost || rots) || !group.may_lose(node) {
            return;
        }
        if is_lost {
            group.lose_power(node);
            group.replace(node, dice);
            self.say(format_args!("n{node}: gets an empty WAL"));
        } else if let Some(what) = group.rot(node, dice) {
            self.say(format_args!("n{node}: rot takes {what}"));
        }
    }

    /// Processes whose engine has stopped are killed now and then.
    pub(crate) fn kill_stopped(&mut self, permille: u64) {
        let Engine::Raft(group) = &self.engine else { return };
        let members = 0..group.members.len();
        let stopped: Vec<usize> = members.filter(|at| group.has_stopped(*at)).collect();
        for node in stopped {
            if self.dice.chance(permille) {
                self.kill_process(node);
            }
        }
    }

    pub(crate) fn break_pair_or_mend(&mut self, node: usize) {
        let World { engine: Engine::Raft(group), dice, .. } = self else { return };
        let other = dice.index(group.members.len());
        let pair = (group.members[node].id, group.members[other].id);
        let now = match group.wires.mend(pair) {
            Some(_) => None,
            None => Some(if dice.chance(500) { Break::Cut } else { Break::Held }),
        };
        if let Some(how) = now {
            group.wires.break_up(pair, how, dice);
        }
        self.say(format_args!("n{node} to n{other}: {now:?}"));
    }

    /// Rot in the WAL of a running node.
    pub(crate) fn rot_wal_in_place(&mut self, node: usize) {
        let World { engine: Engine::Raft(group), dice, .. } = self else { return };
        if group.members[node].running.is_some()
            && group.may_lose(node)
            && let Some(what) = group.rot(node, dice)
        {
            self.say(format_args!("n{node}: rot takes {what}, unseen"));
        }
    }

    pub(crate) fn wal_trouble_or_none(&mut self, node: usize) {
        let World { engine: Engine::Raft(group), dice, .. } = self else { return };
        let member = &mut group.members[node];
        let mut faults = Faults::default();
        member.has_trouble = !member.has_trouble && !member.is_slow;
        if member.is_slow {
            member.is_slow = false;
        } else if member.has_trouble {
            match dice.below(5) {
                0 => faults.sync_fails_after = Some(dice.below(6)),
                1 => faults.descriptors = Some(member.disk.open_files() + dice.index(2)),
                2 => {
                    let used: usize = member.disk.contents().values().map(Vec::len).sum();
                    faults.capacity_bytes = Some(used as u64 + dice.below(100_000));
                }
                _ => (member.has_trouble, member.is_slow) = (false, true),
            }
        }
        member.disk.set_faults(faults);
        let is_slow = member.is_slow;
        self.say(format_args!("n{node}: its WAL is slow: {is_slow}; {faults:?}"));
    }

    pub(crate) fn change_members(&mut self) {
        let World { engine: Engine::Raft(group), dice, .. } = self else { return };
        if let Some(what) = group.change_members(dice) {
            self.say(format_args!("{what}"));
        }
    }

    /// A node stands for election without asking first, or asks to order.
    pub(crate) fn stand(&mut self, node: usize) {
        let World { engine: Engine::Raft(group), dice, .. } = self else { return };
        let member = &group.members[node];
        // An orderer never does.
        if let Some(running) = &member.running
            && running.node.report().orderer != Some(member.id)
        {
            let what = if dice.chance(500) {
                running.node.take_over();
                "asks to order"
            } else {
                running.node.stand();
                "stands for election"
            };
            self.say(format_args!("n{node}: {what}"));
        }
    }

    pub(crate) fn offer_beside(&mut self, node: usize) {
        let World { engine: Engine::Raft(group), dice, .. } = self else { return };
        group.offer_beside(node, dice);
    }

    /// Everything that can happen at this time happens.
    pub(crate) fn settle_group(&mut self) {
        let World { engine: Engine::Raft(group), dice, .. } = self else { return };
        for _ in 0..1_000 {
            let mut did = false;
            for at in 0..group.members.len() {
                group.turn(at);
                while group.work(at) {
                    did = true;
                }
            }
            while let Some((from, to, what)) = group.wires.take(dice, group.faults) {
                did = true;
                if let Some(at) = group.deliver(from, to, what) {
                    group.turn(at);
                }
            }
            if !did {
                break;
            }
        }
        group.mend_members();
        self.tell_of_group();
    }
}

impl Group {
    /// Removes all faults.
    pub fn heal(&mut self) {
        self.wires.mend_all();
        self.faults = super::WireFaults::default();
        for member in &mut self.members {
            member.disk.set_faults(Faults::default());
            (member.is_slow, member.has_trouble) = (false, false);
        }
    }

    /// Cuts a member off from all others, or mends that.
    pub fn cut_off(&mut self, at: usize, is_cut: bool, dice: &mut crate::dice::Dice) {
        let id = self.members[at].id;
        let others: Vec<u64> = self.members.iter().map(|member| member.id).collect();
        for other in others.into_iter().filter(|other| *other != id) {
            for pair in [(id, other), (other, id)] {
                if is_cut {
                    self.wires.break_up(pair, Break::Cut, dice);
                } else {
                    self.wires.mend(pair);
                }
            }
        }
    }

    /// Whether a member has not applied what is committed.
    #[must_use]
    pub fn is_behind(&self, at: usize) -> bool {
        let committed = self.facts.committed();
        let running = self.members[at].running.as_ref();
        running.is_none_or(|running| running.node.report().applied < committed)
    }
}
