//! Decides which node is to lead which log. Pure: time is passed in.
//!
//! - A log that no fit node leads goes to its pin if that node may lead it, otherwise at once to
//!   the least loaded node that may.
//! - A pinned log that another node leads goes to its pin as soon as that node may lead it.
//! - Balance: if one node has had 1.3 times the mean load for 30 s, a log moves from it to the
//!   least loaded node, provided that the larger of both loads falls by a tenth. One such move in
//!   5 s, and none of the same log within 10 minutes.
//!
//! A log's load is its events a second, and as much as [`LOG_LOAD`] for itself: so idle logs are
//! spread by their number, and the noise of small rates moves nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What an idle log counts, in events a second.
const LOG_LOAD: u64 = 10;
/// A node is overloaded from this load on, in percent of the mean.
const OVERLOAD_PERCENT: u64 = 130;
/// A move for balance leaves at most this part of the larger load, in percent.
const RELIEF_PERCENT: u64 = 90;
/// How long a node must have been overloaded.
const OVERLOADED_FOR: Duration = Duration::from_secs(30);
/// Time between two moves for balance.
const BALANCE_PAUSE: Duration = Duration::from_secs(5);
/// Time between two moves of one log for balance.
const MOVES_AGAIN: Duration = Duration::from_secs(600);
/// Time for which a node that did not take a lead is not asked for that log.
const REFUSED_FOR: Duration = Duration::from_secs(10);

/// A node that may lead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LivingNode {
    /// Its name.
    pub(crate) node: String,
    /// The logs that it leads, with the epochs.
    pub(crate) leads: BTreeMap<String, u64>,
    /// The logs that it must not lead: its copy is detached, behind or not open, its disk is full.
    pub(crate) unfit: BTreeSet<String>,
}

/// A log to be led, other than `system`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlacedLog {
    pub(super) log: String,
    /// Events a second.
    pub(super) rate: u64,
    /// The node that has to lead it while it may.
    pub(super) pin: Option<String>,
    /// The node that has been told to lead it and has not answered yet.
    pub(super) told: Option<String>,
}

/// Why a log moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MoveReason {
    /// No node that may leads it.
    Unled,
    /// It is pinned to that node.
    Pinned,
    /// Another node has too much to do.
    Balance,
}

impl MoveReason {
    /// Its name in figures and messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            MoveReason::Unled => "unled",
            MoveReason::Pinned => "pinned",
            MoveReason::Balance => "balance",
        }
    }
}

/// A node is to lead a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) log: String,
    pub(crate) to: String,
    pub(crate) reason: MoveReason,
}

/// The decisions so far, as far as later ones depend on them. Times count from any fixed moment.
#[derive(Debug, Default)]
pub(super) struct Placer {
    /// Since when one node or another has been overloaded.
    overloaded: Option<Duration>,
    balanced: Option<Duration>,
    /// The last move of each log for balance.
    moved: BTreeMap<String, Duration>,
    /// Nodes that did not take a lead: log, node, and until when it is not asked.
    refused: BTreeMap<(String, String), Duration>,
}

/// Who leads, and how much that is.
struct Leads<'a> {
    nodes: &'a [LivingNode],
    /// By log: the index of the node.
    leads: BTreeMap<&'a str, usize>,
    /// By node.
    loads: Vec<u64>,
}

impl Leads<'_> {
    fn at(&self, node: &str) -> Option<usize> {
        self.nodes.iter().position(|living| living.node == node)
    }
}

fn load(log: &PlacedLog) -> u64 {
    log.rate + LOG_LOAD
}

impl Placer {
    /// A node did not take the lead of a log.
    pub(super) fn refused(&mut self, log: &str, node: &str, now: Duration) {
        self.refused.insert((log.to_owned(), node.to_owned()), now + REFUSED_FOR);
    }

    /// The moves that are due. `own`: the deciding node, which is preferred if loads are equal.
    pub(super) fn moves(
        &mut self,
        own: &str,
        nodes: &[LivingNode],
        logs: &[PlacedLog],
        now: Duration,
    ) -> Vec<Move> {
        self.refused.retain(|_, until| now < *until);
        self.moved.retain(|_, at| now - *at < MOVES_AGAIN);
        let mut leads = Leads { nodes, leads: BTreeMap::new(), loads: vec![0; nodes.len()] };
        for log in logs {
            let led = match &log.told {
                Some(told) => leads.at(told),
                None => self.led_at(nodes, &log.log),
            };
            if let Some(at) = led {
                leads.leads.insert(&log.log, at);
                leads.loads[at] += load(log);
            }
        }
        let mut moves = Vec::new();
        // The largest first, so that they spread best.
        let mut due: Vec<&PlacedLog> = logs.iter().filter(|log| log.told.is_none()).collect();
        due.sort_by_key(|log| std::cmp::Reverse(log.rate));
        for log in due {
            let led = leads.leads.get(log.log.as_str()).copied();
            let pin = log.pin.as_deref().and_then(|pin| leads.at(pin));
            let pin = pin.filter(|&at| self.may_lead(&nodes[at], &log.log));
            let (to, reason) = match (led, pin) {
                (Some(at), Some(pin)) if at != pin => (Some(pin), MoveReason::Pinned),
                (Some(_), _) => continue,
                (None, Some(pin)) => (Some(pin), MoveReason::Unled),
                (None, None) => (self.least_loaded(own, &leads, &log.log), MoveReason::Unled),
            };
            let Some(to) = to else { continue };
            leads.loads[to] += load(log);
            moves.push(Move { log: log.log.clone(), to: nodes[to].node.clone(), reason });
        }
        let is_settled = moves.is_empty() && logs.iter().all(|log| log.told.is_none());
        moves.extend(self.balance(own, &leads, logs, is_settled, now));
        moves
    }

    /// The node that leads a log; one that must not only while no other may.
    fn led_at(&self, nodes: &[LivingNode], log: &str) -> Option<usize> {
        let epoch = |node: &LivingNode| node.leads.get(log).copied();
        let leads = (0..nodes.len()).filter(|&at| epoch(&nodes[at]).is_some());
        let at = leads.max_by_key(|&at| epoch(&nodes[at]))?;
        let is_fit = !nodes[at].unfit.contains(log);
        (is_fit || !nodes.iter().any(|node| self.may_lead(node, log))).then_some(at)
    }

    fn may_lead(&self, node: &LivingNode, log: &str) -> bool {
        let refused = self.refused.keys().any(|(of, by)| of == log && *by == node.node);
        !node.unfit.contains(log) && !refused
    }

    fn least_loaded(&self, own: &str, leads: &Leads<'_>, log: &str) -> Option<usize> {
        let nodes = leads.nodes;
        let fit = (0..nodes.len()).filter(|&at| self.may_lead(&nodes[at], log));
        fit.min_by_key(|&at| (leads.loads[at], nodes[at].node != own))
    }

    /// The move that balance asks for, if it is time for one.
    fn balance(
        &mut self,
        own: &str,
        leads: &Leads<'_>,
        logs: &[PlacedLog],
        is_settled: bool,
        now: Duration,
    ) -> Option<Move> {
        let total: u64 = leads.loads.iter().sum();
        let is_over = |at: &usize| {
            leads.loads[*at] * 100 * leads.nodes.len() as u64 >= total * OVERLOAD_PERCENT
        };
        let mut over: Vec<usize> = (0..leads.nodes.len()).filter(is_over).collect();
        if over.is_empty() {
            self.overloaded = None;
            return None;
        }
        let since = *self.overloaded.get_or_insert(now);
        let is_due = now - since >= OVERLOADED_FOR
            && self.balanced.is_none_or(|at| now - at >= BALANCE_PAUSE);
        if !is_due || !is_settled {
            return None;
        }
        // The busiest first; it may have nothing that can move.
        over.sort_by_key(|&at| std::cmp::Reverse(leads.loads[at]));
        let (log, to) = over.into_iter().find_map(|from| self.relief(own, leads, logs, from))?;
        let (log, to) = (log.log.clone(), leads.nodes[to].node.clone());
        self.balanced = Some(now);
        self.moved.insert(log.clone(), now);
        Some(Move { log, to, reason: MoveReason::Balance })
    }

    /// The log whose move relieves a node most, and the node that it moves to.
    fn relief<'a>(
        &self,
        own: &str,
        leads: &Leads<'_>,
        logs: &'a [PlacedLog],
        from: usize,
    ) -> Option<(&'a PlacedLog, usize)> {
        let most = leads.loads[from];
        let movable = logs.iter().filter(|log| {
            leads.leads.get(log.log.as_str()) == Some(&from)
                && log.pin.is_none()
                && !self.moved.contains_key(&log.log)
        });
        let after = movable.filter_map(|log| {
            let to = self.least_loaded(own, leads, &log.log).filter(|&to| to != from)?;
            let larger = (most - load(log)).max(leads.loads[to] + load(log));
            (larger * 100 <= most * RELIEF_PERCENT).then_some((larger, log, to))
        });
        let relief = after.min_by_key(|(larger, log, _)| (*larger, &log.log))?;
        Some((relief.1, relief.2))
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
