//! The open nodes of a log under test, and what was acknowledged so far.

use crate::{Harness, JournalUnderTest, Link};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use wellspring_log::{
    Append, AppendError, Appended, Clock, Log, NotConfirmed, Options, Role, SystemClock,
};
use wellspring_patience::Patience;
use wellspring_types::Position;

/// How long a node that was asked to lead may take before another is asked.
const NUDGE: Duration = Duration::from_millis(200);

/// Pause between two checks of an answer.
const GLANCE: Duration = Duration::from_millis(1);

/// All nodes of one log, open unless they were killed or closed.
pub struct Nodes {
    harness: Box<dyn Harness>,
    options: Options,
    logs: Vec<Mutex<Option<Log>>>,
    /// The greatest position reported durable to any client.
    acknowledged: AtomicU64,
    /// The next node in turn.
    turn: AtomicUsize,
    left_alone: AtomicBool,
    /// When a node was last asked to claim the lead.
    nudged_us: Mutex<Option<u64>>,
}

impl Nodes {
    /// Creates a log and opens it on all its nodes.
    #[must_use]
    pub fn open(journal: &dyn JournalUnderTest, seed: u64, options: &Options) -> Nodes {
        let harness = journal.begin(seed);
        let logs = (0..harness.nodes()).map(|_| Mutex::new(None)).collect();
        let nodes = Nodes {
            harness,
            options: options.clone(),
            logs,
            acknowledged: AtomicU64::new(0),
            turn: AtomicUsize::new(0),
            left_alone: AtomicBool::new(false),
            nudged_us: Mutex::new(None),
        };
        nodes.open_all();
        nodes
    }

    /// Number of nodes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.logs.len()
    }

    /// The harness.
    #[must_use]
    pub fn harness(&self) -> &dyn Harness {
        &*self.harness
    }

    fn slot(&self, node: usize) -> MutexGuard<'_, Option<Log>> {
        self.logs[node].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log of a node; `None` if it is not open.
    #[must_use]
    pub fn log(&self, node: usize) -> Option<Log> {
        self.slot(node).clone()
    }

    /// Opens the log on a node.
    ///
    /// # Panics
    /// If it cannot be opened, or is open.
    pub fn open_node(&self, node: usize) {
        let opened = self.harness.open(node, self.options.clone());
        let log = opened.unwrap_or_else(|error| panic!("node {node} does not open: {error}"));
        assert!(self.slot(node).replace(log).is_none(), "node {node} was open");
    }

    /// Opens the log on all nodes where it is not open.
    pub fn open_all(&self) {
        for node in 0..self.count() {
            if self.log(node).is_none() {
                self.open_node(node);
            }
        }
    }

    /// Closes the log on a node regularly.
    pub fn close_node(&self, node: usize) {
        let log = self.slot(node).take();
        if let Some(log) = log {
            log.close();
        }
    }

    /// Closes the log on a node and opens it again.
    pub fn restart_node(&self, node: usize) {
        self.close_node(node);
        self.open_node(node);
    }

    /// Closes the log everywhere, then opens it everywhere.
    pub fn restart(&self) {
        for node in 0..self.count() {
            self.close_node(node);
        }
        self.open_all();
    }

    /// Kills the process of a node. Later answers do not count.
    pub fn kill(&self, node: usize) {
        let log = self.slot(node).take();
        self.harness.kill(node);
        if let Some(log) = log {
            log.close();
        }
    }

    /// The next open node in turn.
    #[must_use]
    pub fn next_node(&self) -> usize {
        let all = self.count();
        let from = self.turn.fetch_add(1, Ordering::Relaxed);
        let open = (0..all).map(|n| (from + n) % all).find(|&node| self.log(node).is_some());
        open.expect("a node is open")
    }

    /// The node with this name, if it is open.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        let node = (0..self.count()).find(|&node| self.harness.name(node) == name)?;
        self.log(node).map(|_| node)
    }

    /// Appends, first at the next node in turn, then wherever the lead is; the outcome is definite.
    ///
    /// # Errors
    /// Errors of the append that do not go away with a retry or at another node.
    pub fn append(&self, append: Append) -> Result<Appended, AppendError> {
        self.client(self.next_node()).append(append)
    }

    /// Notes that everything up to this position was reported durable.
    pub(crate) fn was_acknowledged(&self, last: Position) {
        self.acknowledged.fetch_max(last, Ordering::SeqCst);
    }

    /// The greatest position reported durable to any client.
    #[must_use]
    pub fn acknowledged(&self) -> Position {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// The log of a node, once it has everything acknowledged so far.
    ///
    /// # Panics
    /// If the node is not open, or does not catch up.
    #[must_use]
    pub fn caught_up(&self, node: usize) -> Log {
        let log = self.log(node).expect("the node is open");
        let wanted = self.acknowledged();
        self.wait_until(&format!("node {node} has position {wanted}"), || log.head() >= wanted);
        log
    }

    /// The log of the next node in turn, once it has everything acknowledged so far.
    #[must_use]
    pub fn reader(&self) -> Log {
        self.caught_up(self.next_node())
    }

    /// The heads of the open nodes' logs.
    pub(super) fn heads(&self) -> Vec<Position> {
        (0..self.count()).filter_map(|node| Some(self.log(node)?.head())).collect()
    }

    /// The logs of all nodes, once they have everything acknowledged so far.
    #[must_use]
    pub fn readers(&self) -> Vec<Log> {
        (0..self.count()).map(|node| self.caught_up(node)).collect()
    }

    /// The leading node and its log, if there is one: of two that believe they lead, the later.
    #[must_use]
    pub fn leading(&self) -> Option<(usize, Log)> {
        let open = (0..self.count()).filter_map(|node| Some((node, self.log(node)?)));
        let epoch = |log: &Log| match log.role() {
            Role::Leading { epoch } => Some(epoch),
            _ => None,
        };
        let leading = open.filter_map(|(node, log)| Some((epoch(&log)?, node, log)));
        leading.max_by_key(|(epoch, ..)| *epoch).map(|(_, node, log)| (node, log))
    }

    /// The leading node and its log. If no node leads, asks one to.
    ///
    /// # Panics
    /// If no node takes the lead.
    #[must_use]
    pub fn leader(&self) -> (usize, Log) {
        let mut deadline = Deadline::new(self, "a node leads");
        loop {
            if let Some(leader) = self.leading() {
                return leader;
            }
            self.nudge();
            deadline.glance();
        }
    }

    /// Makes a node lead, whichever led before; repeats the claim if another's came first.
    ///
    /// # Panics
    /// If it does not take the lead.
    pub fn take_lead(&self, node: usize) -> Log {
        let log = self.log(node).expect("the node is open");
        let mut claimed_us = None;
        self.wait_until(&format!("node {node} leads"), || {
            let now_us = SystemClock.monotonic_us();
            if claimed_us.is_none_or(|at_us| now_us >= at_us + NUDGE.as_micros() as u64) {
                claimed_us = Some(now_us);
                log.claim_lead();
            }
            log.role().leads()
        });
        log
    }

    /// From now on the suite does not ask nodes to lead; they claim on their own.
    pub fn leave_alone(&self) {
        self.left_alone.store(true, Ordering::SeqCst);
    }

    /// Makes a node claim the lead if none leads or claims, so that tests need not wait for a
    /// silence.
    pub(crate) fn nudge(&self) {
        if self.left_alone.load(Ordering::SeqCst) {
            return;
        }
        let roles = (0..self.count()).filter_map(|node| Some(self.log(node)?.role()));
        if roles
            .into_iter()
            .any(|role| matches!(role, Role::Leading { .. } | Role::Claiming { .. }))
        {
            return;
        }
        let mut nudged_us = self.nudged_us.lock().unwrap_or_else(PoisonError::into_inner);
        let now_us = SystemClock.monotonic_us();
        if nudged_us.is_none_or(|at_us| now_us >= at_us + NUDGE.as_micros() as u64)
            && let Some(log) = self.log(self.next_node())
        {
            *nudged_us = Some(now_us);
            log.claim_lead();
        }
    }

    /// The connection of a node to the engine.
    ///
    /// # Panics
    /// If the harness has none.
    #[must_use]
    pub fn link(&self, node: usize) -> Link {
        self.harness.link(node).expect("a journal of several nodes has links")
    }

    /// The next node after this one.
    #[must_use]
    pub fn after(&self, node: usize) -> usize {
        (node + 1) % self.count()
    }

    /// The result of [`Log::confirm`] on a node; `None` if there is none within this time.
    ///
    /// # Panics
    /// If the node is not open.
    #[must_use]
    pub fn confirmed(
        &self,
        node: usize,
        within: Duration,
    ) -> Option<Result<Position, NotConfirmed>> {
        let log = self.log(node).expect("the node is open");
        let until_us = SystemClock.monotonic_us() + within.as_micros() as u64;
        let mut confirm = pin!(log.confirm());
        loop {
            match confirm.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(told) => return Some(told),
                Poll::Pending if SystemClock.monotonic_us() > until_us => return None,
                Poll::Pending => std::thread::sleep(GLANCE),
            }
        }
    }

    /// Polls until a condition holds.
    ///
    /// # Panics
    /// If it does not hold although nothing new has come to any node for a minute.
    pub fn wait_until(&self, what: &str, mut is: impl FnMut() -> bool) {
        let mut deadline = Deadline::new(self, what);
        while !is() {
            deadline.glance();
        }
    }
}

/// The deadline of a wait, which moves on whenever an event comes to any node.
pub(crate) struct Deadline<'a> {
    nodes: &'a Nodes,
    what: String,
    patience: Patience,
}

impl<'a> Deadline<'a> {
    /// Starts now.
    pub(crate) fn new(nodes: &'a Nodes, what: impl Into<String>) -> Deadline<'a> {
        Deadline { nodes, what: what.into(), patience: Patience::new() }
    }

    /// The awaited work goes on in a way that the nodes do not show.
    pub(crate) fn goes_on(&mut self) {
        self.patience.renew();
    }

    /// Pauses briefly; panics after the deadline.
    pub(crate) fn glance(&mut self) {
        let heads = self.nodes.heads();
        self.patience.saw(&heads);
        self.patience.pause(format_args!("{}, with heads {heads:?}", self.what));
    }
}
