//! The logs that the leader of `system` fails to lead, and for how long.

use super::Node;
use crate::cluster::Cluster;
use crate::names::SYSTEM_LOG;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;
use wellspring_log::{Log, Role};

/// Least time the leader of `system` has to take the lead of another log.
const FIT_WITHIN: Duration = Duration::from_secs(3);

/// Time between two checks of all logs.
const LOOK: Duration = Duration::from_millis(200);

/// Time before a node gives up the lead again for the same log. Where no node is fit, the lead
/// would otherwise move round for ever, and all logs would suffer for one.
const GIVES_UP_AGAIN: Duration = Duration::from_secs(600);

/// A log, by its name and incarnation: a new incarnation has the full time.
type LogId = (String, u64);

/// This node's role for a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeadRole {
    Led,
    NotLed,
    Detached,
    NotOpen,
}

/// The logs that this node does not lead although it leads `system`, and since when.
#[derive(Debug, Default)]
pub(super) struct UnledLogs {
    since: HashMap<LogId, Instant>,
    looked: Option<Instant>,
    /// The logs for which this node has given up the lead, and when.
    gave_up: HashMap<LogId, Instant>,
}

impl UnledLogs {
    /// Gives up `system` if this node fails to lead another log: its copy is detached or cannot be
    /// opened, or its disk is full. As long as this node led, no client could write to that log;
    /// another node may be fit.
    pub(super) fn give_up_if_unfit(&mut self, node: &Node, system: &Log, cluster: &Cluster) {
        if !system.role().leads() {
            self.since.clear();
            return;
        }
        let now = Instant::now();
        if self.looked.is_some_and(|at| now - at < LOOK) {
            return;
        }
        self.looked = Some(now);
        let patience = FIT_WITHIN.max(2 * cluster.lead_timeout);
        if let Some((name, standing)) = self.unfit(standings(node), now, patience) {
            tracing::error!(
                log = name,
                standing = ?standing,
                "this node leads the log system but cannot lead this log: it gives up the lead \
                 so that another node can take it"
            );
            system.resign();
        }
    }

    /// The first log that this node is not fit to lead, and has not given up the lead for recently.
    fn unfit(
        &mut self,
        logs: impl Iterator<Item = (LogId, LeadRole)>,
        now: Instant,
        patience: Duration,
    ) -> Option<(String, LeadRole)> {
        self.gave_up.retain(|_, at| now - *at < GIVES_UP_AGAIN);
        let mut since = HashMap::new();
        let mut unfit = None;
        for (log, standing) in logs.filter(|(_, standing)| *standing != LeadRole::Led) {
            let began = *self.since.get(&log).unwrap_or(&now);
            let is_unfit = standing == LeadRole::Detached || now - began > patience;
            if is_unfit && unfit.is_none() && !self.gave_up.contains_key(&log) {
                self.gave_up.insert(log.clone(), now);
                unfit = Some((log.0.clone(), standing));
            }
            since.insert(log, began);
        }
        self.since = since;
        unfit
    }
}

/// All existing logs except `system`.
fn standings(node: &Node) -> impl Iterator<Item = (LogId, LeadRole)> {
    let open = node.entries().into_iter().filter(|(name, _)| name != SYSTEM_LOG);
    let open = open.map(|(name, entry)| {
        let standing = match entry.log.role() {
            Role::Detached { .. } => LeadRole::Detached,
            role if role.leads() => LeadRole::Led,
            _ => LeadRole::NotLed,
        };
        ((name, entry.incarnation), standing)
    });
    let unopened = node.shared.as_ref().map(|shared| shared.unopened.all()).unwrap_or_default();
    let unopened = unopened.into_iter().filter_map(|(name, log)| {
        log.incarnation.map(|incarnation| ((name, incarnation), LeadRole::NotOpen))
    });
    open.chain(unopened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_its_time_from_when_it_was_made_or_its_lead_lost() {
        let mut logs = UnledLogs::default();
        let begun = Instant::now();
        let mut unfit = |at: u64, roles: &[(&str, u64, LeadRole)]| {
            let roles = roles
                .iter()
                .map(|&(name, incarnation, standing)| ((name.to_owned(), incarnation), standing));
            let now = begun + Duration::from_secs(at);
            logs.unfit(roles, now, Duration::from_secs(3)).map(|(name, _)| name)
        };
        let some = |name: &str| Some(name.to_owned());
        use LeadRole::{Detached, Led, NotLed, NotOpen};
        assert_eq!(unfit(0, &[("a", 1, NotLed)]), None);
        assert_eq!(unfit(3, &[("a", 1, NotLed)]), None);
        assert_eq!(unfit(4, &[("a", 1, NotLed)]), some("a"));
        assert_eq!(unfit(9, &[("a", 1, NotLed)]), None, "once is enough: nobody may be fit");
        // The lead is lost, or another log has the name: its time starts again.
        assert_eq!(unfit(10, &[("a", 1, Led), ("b", 2, NotOpen)]), None);
        assert_eq!(unfit(14, &[("b", 3, NotLed)]), None);
        assert_eq!(unfit(18, &[("b", 3, NotOpen)]), some("b"));
        assert_eq!(unfit(19, &[("c", 1, Detached)]), some("c"), "that does not pass");
        assert_eq!(unfit(700, &[("a", 1, Detached)]), some("a"), "it was long ago");
    }
}
