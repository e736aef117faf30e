//! Which logs a node that leads `system` does not come to lead, and for how long.

use super::Node;
use crate::cluster::Cluster;
use crate::names::SYSTEM_LOG;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;
use wellspring_log::{Log, Role};

/// How long a node that leads `system` may take to lead another log, at least.
const FIT_WITHIN: Duration = Duration::from_secs(3);

/// Time between two looks at all logs.
const LOOK: Duration = Duration::from_millis(200);

/// The logs that this node does not lead although it leads `system`, and since when. A log is known by its name and
/// incarnation: one that was made a moment ago has all the time of any.
#[derive(Debug, Default)]
pub(super) struct UnledLogs {
    since: HashMap<(String, u64), Instant>,
    looked: Option<Instant>,
}

impl UnledLogs {
    /// Gives up `system` if this node does not come to lead another log: its copy of that is detached, or its disk is
    /// full. Nobody could write to that log as long as this node led; of the others one may be fit.
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
        let unled = self.look(
            node.entries()
                .iter()
                .filter(|(name, _)| name != SYSTEM_LOG)
                .map(|(name, entry)| ((name.clone(), entry.incarnation), entry.log.role())),
            now,
        );
        let unfit = unled.into_iter().find(|unled| unled.is_detached || unled.lasts > patience);
        if let Some(unfit) = unfit {
            tracing::error!(
                log = unfit.name,
                is_detached = unfit.is_detached,
                after_ms = u64::try_from(unfit.lasts.as_millis()).unwrap_or(u64::MAX),
                "this node leads the log system and cannot lead this one: it gives the lead up, for a node that can"
            );
            system.resign();
            self.since.clear();
        }
    }

    fn look(
        &mut self,
        roles: impl Iterator<Item = ((String, u64), Role)>,
        now: Instant,
    ) -> Vec<Unled> {
        let mut unled = Vec::new();
        let mut since = HashMap::new();
        for (log, role) in roles.filter(|(_, role)| !role.leads()) {
            let began = *self.since.get(&log).unwrap_or(&now);
            let is_detached = matches!(role, Role::Detached { .. });
            unled.push(Unled { name: log.0.clone(), is_detached, lasts: now - began });
            since.insert(log, began);
        }
        self.since = since;
        unled
    }
}

/// A log that is not led.
#[derive(Debug, PartialEq, Eq)]
struct Unled {
    name: String,
    is_detached: bool,
    lasts: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_its_time_from_when_it_was_made_or_its_lead_lost() {
        let mut logs = UnledLogs::default();
        let begun = Instant::now();
        let mut look = |at: u64, roles: &[(&str, u64, Role)]| -> Vec<(String, u64)> {
            let roles = roles.iter().map(|(name, incarnation, role)| {
                (((*name).to_owned(), *incarnation), role.clone())
            });
            let unled = logs.look(roles, begun + Duration::from_secs(at));
            unled.into_iter().map(|unled| (unled.name, unled.lasts.as_secs())).collect()
        };
        let told = |name: &str, lasts| (name.to_owned(), lasts);
        let following = || Role::Following { leader: None };
        let leading = || Role::Leading { epoch: 1 };
        assert_eq!(look(0, &[("a", 1, following())]), [told("a", 0)]);
        assert_eq!(look(5, &[("a", 1, following())]), [told("a", 5)]);
        assert_eq!(look(6, &[("a", 1, leading()), ("b", 2, following())]), [told("b", 0)]);
        // The lead is lost, or another log has the name: its time begins anew.
        assert_eq!(
            look(9, &[("a", 1, following()), ("b", 3, following())]),
            [told("a", 0), told("b", 0)]
        );
    }
}
