//! Placement: the node that leads the log `system` tells the nodes which other logs to lead.
//!
//! That node is the *placer*. It asks the others for their state, several times in a lead timeout,
//! and decides ([`policy`]). A node that has not answered for a lead timeout, that no longer hears
//! the others through the journal, or that is about to stop, leads nothing in its eyes. Two placers
//! at once cost moves, not safety: leads are claims, and the rule of the log decides.
//!
//! ```text
//! node/shared.rs (its thread)           host/leads.rs (a runtime)
//! look: decide ── own log: claim
//!             └── others: Move ───────► POST /v1/cluster/lead ─► settled
//!   what was heard  ◄────────────────── GET /v1/cluster/node, a quarter of a lead timeout apart
//! ```

pub(crate) mod policy;
mod rates;

use super::Node;
use super::status::NodeStatus;
use crate::cluster::Cluster;
use crate::names::SYSTEM_LOG;
use policy::{LivingNode, Move, MoveReason, PlacedLog, Placer};
use rates::Rates;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;
use wellspring_log::shared::Place;
use wellspring_log::{Log, Role};
use wellspring_types::Position;

/// Time between two decisions, unless something is recorded in `system`.
const DECIDE: Duration = Duration::from_millis(100);
/// Time between two claims of a log by the node that is to lead it.
pub(crate) const CLAIM_AGAIN: Duration = Duration::from_millis(500);
/// Time after which another node's answer to a move is no longer expected.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);
/// Places by which a copy may be behind on a node that takes a lead.
const MOST_BEHIND: u64 = 1_000;
/// A node gives up its leads after a silence of this many lead timeouts: more than the election of
/// another placer takes.
const SILENT_TIMEOUTS: u32 = 2;

/// The state of placement on one node, whether or not it is the placer.
pub(crate) struct Placement {
    begun: Instant,
    placer: Mutex<PlacerState>,
    rates: Mutex<Rates>,
    /// Who was told to lead a log, as far as this node knows, and when.
    named: Mutex<BTreeMap<String, (String, Instant)>>,
    /// When an entry of `system` last arrived here, and its place.
    heard: Mutex<(Place, Instant)>,
    moves: UnboundedSender<Move>,
    received: Mutex<Option<UnboundedReceiver<Move>>>,
    /// Logs of connectors: they run where `system` is led and need those leads, too.
    led_with_system: Mutex<BTreeSet<String>>,
    is_leaving: AtomicBool,
    counts: [AtomicU64; 3],
}

/// What the placer knows and has decided.
#[derive(Default)]
struct PlacerState {
    policy: Placer,
    /// The epoch in which this node leads `system`, and since when.
    leads: Option<(u64, Instant)>,
    /// Whether the other nodes are asked, and the last epoch in which they were, and when.
    asks: bool,
    asked: Option<(u64, Instant)>,
    /// What each of the other nodes has told, and when.
    nodes: BTreeMap<String, HeardNode>,
    /// When it last decided, and what `system` held then.
    decided: Option<(Instant, Position)>,
    /// Moves without an outcome.
    told: BTreeMap<String, (String, Instant)>,
}

/// Another node, as it has described itself.
struct HeardNode {
    living: LivingNode,
    at: Instant,
    /// Questions since then for which no connection could be made.
    unconnected: u32,
}

impl PlacerState {
    /// What was decided in another epoch no longer counts; what was heard does.
    fn begin(&mut self, leads: Option<(u64, Instant)>) {
        self.leads = leads;
        self.policy = Placer::default();
        self.decided = None;
        self.told.clear();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Placement {
    fn default() -> Placement {
        let (moves, received) = unbounded_channel();
        let now = Instant::now();
        Placement {
            begun: now,
            placer: Mutex::default(),
            rates: Mutex::default(),
            named: Mutex::default(),
            heard: Mutex::new((Place(0), now)),
            moves,
            received: Mutex::new(Some(received)),
            led_with_system: Mutex::default(),
            is_leaving: AtomicBool::new(false),
            counts: Default::default(),
        }
    }
}

impl Placement {
    /// The moves for other nodes, for the one that carries them out and asks the nodes.
    pub(crate) fn take_moves(&self) -> Option<UnboundedReceiver<Move>> {
        lock(&self.placer).asks = true;
        lock(&self.received).take()
    }

    /// Moves that this node has decided on, by reason.
    pub(crate) fn move_counts(&self) -> [(&'static str, u64); 3] {
        let count = |reason: MoveReason| self.counts[reason as usize].load(Ordering::Relaxed);
        let reasons = [MoveReason::Unled, MoveReason::Pinned, MoveReason::Balance];
        reasons.map(|reason| (reason.name(), count(reason)))
    }

    /// Events a second of a log, over the last minute.
    pub(super) fn rate(&self, log: &str) -> u64 {
        lock(&self.rates).per_s(log)
    }

    /// Takes note that a node was told to lead a log.
    pub(crate) fn name(&self, log: &str, node: &str) {
        lock(&self.named).insert(log.to_owned(), (node.to_owned(), Instant::now()));
    }

    /// The node that was told to lead a log, as far as this node knows, and how long ago.
    pub(crate) fn named(&self, log: &str) -> Option<(String, Duration)> {
        lock(&self.named).get(log).map(|(node, at)| (node.clone(), at.elapsed()))
    }

    /// Has these logs led by the node that leads `system`.
    pub(super) fn lead_with_system(&self, logs: BTreeSet<String>) {
        *lock(&self.led_with_system) = logs;
    }

    /// This node is about to stop: others are to lead.
    pub(crate) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    /// How long nothing has arrived in `system`.
    pub(super) fn silence(&self, system: &Log) -> Duration {
        let place = system.shared_stats().map_or(Place(0), |stats| stats.place);
        let mut heard = lock(&self.heard);
        if heard.0 != place {
            *heard = (place, Instant::now());
        }
        heard.1.elapsed()
    }

    /// The other nodes have been asked in this epoch, and have answered or will not soon.
    pub(crate) fn asked(&self, epoch: u64) {
        lock(&self.placer).asked = Some((epoch, Instant::now()));
    }

    /// A node has described itself. Returns whether it has heard, or should have, that this one
    /// leads `system`: a node that does not hear that is cut off, and leads nothing.
    pub(crate) fn heard_from(&self, node: &Node, status: &NodeStatus) -> bool {
        let of_node = (status.node.clone(), node.cluster(), node.get(SYSTEM_LOG));
        let (Some(name), Some(cluster), Some(system)) = of_node else { return true };
        let timeout = lead_timeout(&system, cluster);
        let mut placer = lock(&self.placer);
        let Some((epoch, since)) = placer.leads else { return false };
        let knows = status.epoch == Some(epoch);
        if !knows && since.elapsed() < timeout / 2 {
            return false;
        }
        if !knows {
            return true;
        }
        if !status.takes_leads || Duration::from_millis(status.silent_ms) > timeout {
            placer.nodes.remove(&name);
            return true;
        }
        let mut living = LivingNode { node: name.clone(), ..LivingNode::default() };
        living.unfit.extend(status.unopened.iter().cloned());
        for state in &status.logs {
            let here = node.get(&state.log);
            if here.is_some() && node.incarnation(&state.log) != Some(state.incarnation) {
                continue;
            }
            let place = here.and_then(|log| log.shared_stats()).map_or(0, |stats| stats.place.0);
            let is_behind = state.place.is_none_or(|there| there + MOST_BEHIND < place);
            let cannot = matches!(state.role.as_str(), "catching-up" | "detached");
            if is_behind || cannot || state.is_full {
                living.unfit.insert(state.log.clone());
            }
            if let ("leading", Some(epoch)) = (state.role.as_str(), state.epoch) {
                living.leads.insert(state.log.clone(), epoch);
            }
        }
        placer.nodes.insert(name, HeardNode { living, at: Instant::now(), unconnected: 0 });
        true
    }

    /// No connection to a node could be made. After the second time in a row it is dead, and no
    /// lead timeout is waited for: its process is gone.
    pub(crate) fn not_connected(&self, name: &str) {
        let mut placer = lock(&self.placer);
        let Some(heard) = placer.nodes.get_mut(name) else { return };
        heard.unconnected += 1;
        if heard.unconnected > 1 {
            placer.nodes.remove(name);
        }
    }

    /// A move has an outcome: the node leads the log, in this epoch, or did not take the lead.
    pub(crate) fn settled(&self, moved: &Move, epoch: Option<u64>) {
        let now = self.begun.elapsed();
        let mut placer = lock(&self.placer);
        // If that node seemed dead meanwhile, another has been told.
        if placer.told.get(&moved.log).is_some_and(|(to, _)| *to == moved.to) {
            placer.told.remove(&moved.log);
        }
        let Some(epoch) = epoch else { return placer.policy.refused(&moved.log, &moved.to, now) };
        // Known before that node is asked again.
        if let Some(node) = placer.nodes.get_mut(&moved.to) {
            node.living.leads.insert(moved.log.clone(), epoch);
        }
    }

    /// Does what is due: gives up leads, or decides and has the nodes lead.
    pub(super) fn look(&self, node: &Node, system: &Log, cluster: &Cluster) {
        lock(&self.rates).look(node);
        self.give_up_if_cut_off(node, system, cluster);
        match system.role() {
            Role::Leading { epoch } => self.place(node, system, cluster, epoch),
            role => {
                lock(&self.placer).begin(None);
                // There was never a leader: no silence to wait for.
                if matches!(role, Role::Following { leader: None })
                    && system.stats().epoch == 0
                    && system.head() == 0
                {
                    system.claim_lead();
                }
            }
        }
    }

    /// Gives up all leads of a node that hears nothing in `system`: another node is told to lead
    /// these logs, and until then this one must promise nothing.
    fn give_up_if_cut_off(&self, node: &Node, system: &Log, cluster: &Cluster) {
        if self.silence(system) <= lead_timeout(system, cluster) * SILENT_TIMEOUTS {
            return;
        }
        for (name, log) in node.all() {
            if name != SYSTEM_LOG && log.role().leads() {
                tracing::warn!(log = name, "gives up the lead: nothing arrives from the journal");
                log.resign();
            }
        }
    }

    fn place(&self, node: &Node, system: &Log, cluster: &Cluster, epoch: u64) {
        let now = Instant::now();
        let mut placer = lock(&self.placer);
        if placer.leads.is_none_or(|(known, _)| known != epoch) {
            placer.begin(Some((epoch, now)));
        }
        let seen = system.head();
        let is_due = placer.decided.is_none_or(|(at, head)| now - at >= DECIDE || head != seen);
        let timeout = lead_timeout(system, cluster);
        // Old answers would make the others seem dead: this process may have been suspended.
        let has_asked = |(of, at): (u64, Instant)| of == epoch && now - at <= timeout / 2;
        let is_informed = !placer.asks || placer.asked.is_some_and(has_asked);
        if !is_due || !is_informed || self.silence(system) > timeout {
            return;
        }
        placer.decided = Some((now, seen));
        let own = own_state(node, cluster, self.is_leaving());
        let heard = placer.nodes.values().filter(|node| now - node.at <= timeout);
        let mut nodes: Vec<LivingNode> = heard.map(|node| node.living.clone()).collect();
        placer.told.retain(|log, (to, at)| {
            let is_own = *to == own.node;
            let limit = if is_own { CLAIM_AGAIN } else { ANSWERS_WITHIN };
            let is_living = is_own || nodes.iter().any(|living| living.node == *to);
            is_living && !(is_own && own.leads.contains_key(log)) && now - *at < limit
        });
        nodes.push(own);
        let logs = self.placed_logs(node, cluster, &placer);
        let moves = placer.policy.moves(cluster.node.as_str(), &nodes, &logs, self.begun.elapsed());
        for due in moves {
            self.counts[due.reason as usize].fetch_add(1, Ordering::Relaxed);
            placer.told.insert(due.log.clone(), (due.to.clone(), now));
            let is_led = nodes.iter().any(|living| living.leads.contains_key(&due.log));
            tracing::debug!(log = due.log, to = due.to, reason = due.reason.name(), "a lead moves");
            match node.get(&due.log).filter(|_| due.to == cluster.node.as_str() && !is_led) {
                Some(log) => log.claim_lead(),
                None => drop(self.moves.send(due)),
            }
        }
    }

    /// All existing logs except `system`.
    fn placed_logs(&self, node: &Node, cluster: &Cluster, placer: &PlacerState) -> Vec<PlacedLog> {
        let with_system = lock(&self.led_with_system).clone();
        let pins = node.pins();
        let open = node.all().into_iter().map(|(name, _)| name);
        let unopened = node.unopened_logs().into_iter().map(|(name, _)| name);
        let names: BTreeSet<String> = open.chain(unopened).collect();
        let placed = names.into_iter().filter(|name| name != SYSTEM_LOG).map(|log| PlacedLog {
            rate: self.rate(&log),
            pin: if with_system.contains(&log) {
                Some(cluster.node.to_string())
            } else {
                pins.get(&log).cloned()
            },
            told: placer.told.get(&log).map(|(to, _)| to.clone()),
            log,
        });
        placed.collect()
    }
}

/// The lead timeout over the engine as it is.
fn lead_timeout(system: &Log, cluster: &Cluster) -> Duration {
    system.shared_stats().unwrap_or_default().lead_timeout.max(cluster.lead_timeout)
}

/// The placer itself, as one of the nodes.
fn own_state(node: &Node, cluster: &Cluster, is_leaving: bool) -> LivingNode {
    let mut own = LivingNode { node: cluster.node.to_string(), ..LivingNode::default() };
    own.unfit.extend(node.unopened_logs().into_iter().map(|(name, _)| name));
    for (name, log) in node.all() {
        match log.role() {
            Role::Leading { epoch } => drop(own.leads.insert(name.clone(), epoch)),
            Role::Detached { .. } | Role::CatchingUp { .. } => drop(own.unfit.insert(name.clone())),
            Role::Following { .. } | Role::Claiming { .. } => {}
        }
        if log.is_full() || is_leaving {
            own.unfit.insert(name);
        }
    }
    own
}
