//! Figures of copies of shared logs: this node's role, and entries of others.

use super::logs::LogFigures;
use crate::cluster::{EngineReach, EngineStatus, GroupState};
use crate::node::Node;
use crate::stats::family::{Family, Kind};
use wellspring_log::{Role, SharedStats};

/// The possible roles of a node for a log, as [`Role::name`] gives them.
const ROLES: [&str; 5] = ["catching-up", "following", "claiming", "leading", "detached"];

/// The figures of one copy.
#[derive(Debug, Clone)]
pub(crate) struct SharedFigures {
    pub(crate) role: Role,
    /// Number of role changes.
    pub(crate) role_changes: u64,
    pub(crate) stats: SharedStats,
}

impl SharedFigures {
    /// The epoch in force, as far as this node knows.
    fn epoch(&self) -> Option<u64> {
        match &self.role {
            Role::Leading { epoch } => Some(*epoch),
            Role::Following { leader } => leader.as_ref().map(|leader| leader.epoch),
            Role::CatchingUp { .. } | Role::Claiming { .. } | Role::Detached { .. } => None,
        }
    }

    /// Places still to be fetched of what the shared log held when the node started.
    fn missing_places(&self) -> Option<u64> {
        match &self.role {
            Role::CatchingUp { place, end } => end.map(|end| end.0.saturating_sub(place.0)),
            _ => None,
        }
    }
}

/// How many logs this node leads, and the moves that it has decided on.
pub(super) fn lead_families(node: &Node, logs: &[LogFigures]) -> Vec<Family> {
    let Some(placement) = node.placement() else { return Vec::new() };
    let shared = logs.iter().filter_map(|log| log.shared.as_ref());
    let leads = shared.filter(|shared| shared.role.leads()).count() as u64;
    let moves = Family::new(
        Kind::Counter,
        "wellspring_lead_moves_total",
        "Leads that this node, leading the log system, has moved, by reason.",
    );
    let moves = placement.move_counts().into_iter().fold(moves, |family, (reason, count)| {
        family.with(vec![("reason", reason.to_owned())], count)
    });
    vec![Family::gauge("wellspring_leads", "Logs that this node leads.", leads), moves]
}

type Pick = fn(&SharedFigures) -> Option<u64>;

/// Empty for logs of files.
pub(super) fn families(logs: &[LogFigures]) -> Vec<Family> {
    use Kind::{Counter, Gauge};
    let figures: [(&'static str, Kind, &'static str, Pick); 8] = [
        (
            "wellspring_shared_role_changes_total",
            Counter,
            "How often this node's role has changed.",
            |s| Some(s.role_changes),
        ),
        (
            "wellspring_shared_epoch",
            Gauge,
            "Epoch of the leader, as far as this node knows.",
            SharedFigures::epoch,
        ),
        (
            "wellspring_shared_place",
            Gauge,
            "Place in the shared log up to which the copy is complete.",
            |s| Some(s.stats.place.0),
        ),
        (
            "wellspring_shared_missing_places",
            Gauge,
            "Places that the copy still lacks while catching up, up to the end of the shared \
             log at the start.",
            SharedFigures::missing_places,
        ),
        (
            "wellspring_shared_void_entries_total",
            Counter,
            "Entries without effect: repeated, late, or from a former leader.",
            |s| Some(s.stats.void_entries),
        ),
        (
            "wellspring_shared_repeated_offers_total",
            Counter,
            "Entries that this node has offered more than once.",
            |s| Some(s.stats.repeated_offers),
        ),
        (
            "wellspring_shared_foreign_batches_total",
            Counter,
            "Batches of other nodes applied here.",
            |s| Some(s.stats.foreign_batches),
        ),
        (
            "wellspring_shared_mend_failures_total",
            Counter,
            "Failed attempts to repair damaged segments.",
            |s| Some(s.stats.mend_failures),
        ),
    ];
    let copies = || logs.iter().filter_map(|log| Some((&log.log, log.shared.as_ref()?)));
    let family = |(name, kind, help, pick): (_, _, _, Pick)| {
        let values = copies().filter_map(|(log, shared)| Some((log.clone(), pick(shared)?)));
        Family::of_each(kind, name, help, "log", values)
    };
    let mut families: Vec<Family> = figures.into_iter().map(family).collect();
    let role = Family::new(
        Gauge,
        "wellspring_shared_role",
        "1 for the current role of this node for the log, 0 for all other roles.",
    );
    families.push(copies().fold(role, |family, (log, shared)| {
        ROLES.iter().fold(family, |family, &role| {
            let labels = vec![("log", log.clone()), ("role", role.to_owned())];
            family.with(labels, u64::from(shared.role.name() == role))
        })
    }));
    families
}

/// Figures of the engine that orders the logs.
pub(super) fn engine_families(engine: &EngineStatus) -> Vec<Family> {
    let mut families = vec![
        Family::gauge(
            "wellspring_shared_engine_connected",
            "1 while this node can reach the journal.",
            u64::from(engine.reach == EngineReach::Connected),
        ),
        Family::counter(
            "wellspring_shared_engine_reconnects_total",
            "Reconnections to the journal.",
            engine.reconnects,
        ),
    ];
    families.extend(engine.group.iter().flat_map(group_families));
    families
}

/// Figures of the group of nodes that orders the logs.
fn group_families(group: &GroupState) -> [Family; 10] {
    use Kind::{Counter, Gauge};
    let (reachable, voters) = group.voters();
    let orders = group.orders;
    [
        (Gauge, "wellspring_raft_is_orderer", "1 while this node orders.", orders.into()),
        (Gauge, "wellspring_raft_term", "The term of the group.", group.term),
        (Gauge, "wellspring_raft_voters", "Voters of the group.", voters as u64),
        (
            Gauge,
            "wellspring_raft_reachable_voters",
            "Voters that this node reaches, itself included.",
            reachable as u64,
        ),
        (
            Gauge,
            "wellspring_raft_last_index",
            "Index of the last entry that is durable on this node.",
            group.last_index,
        ),
        (
            Gauge,
            "wellspring_raft_applied_index",
            "Index of the last entry that this node has applied.",
            group.applied_index,
        ),
        (
            Gauge,
            "wellspring_raft_dropped_index",
            "Index of the last entry that this node has dropped because its logs have it.",
            group.dropped_index,
        ),
        (Gauge, "wellspring_raft_kept_bytes", "Bytes of entries in data/raft.", group.kept_bytes),
        (
            Counter,
            "wellspring_raft_frames_total",
            "Entries of the group that this node has proposed.",
            group.frames,
        ),
        (
            Counter,
            "wellspring_raft_refused_streams_total",
            "Streams between this node and others that one of the two has refused.",
            group.refused_streams,
        ),
    ]
    .map(|(kind, name, help, value)| Family::new(kind, name, help).with(Vec::new(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::prometheus;
    use wellspring_log::Leader;
    use wellspring_log::shared::Place;

    fn page(role: Role) -> String {
        let stats = SharedStats { place: Place(40), void_entries: 2, ..SharedStats::default() };
        let shared = Some(SharedFigures { role, role_changes: 3, stats });
        let log = LogFigures::for_tests("main");
        let alone = LogFigures::for_tests("alone");
        prometheus::page(&families(&[alone, LogFigures { shared, ..log }]))
    }

    #[test]
    fn a_copy_tells_its_role_and_what_came_from_others() {
        let leader = Leader { node: "a".into(), url: "http://a:1".into(), epoch: 7 };
        let text = page(Role::Following { leader: Some(leader) });
        for line in [
            r#"wellspring_shared_role{log="main",role="following"} 1"#,
            r#"wellspring_shared_role{log="main",role="leading"} 0"#,
            r#"wellspring_shared_epoch{log="main"} 7"#,
            r#"wellspring_shared_place{log="main"} 40"#,
            r#"wellspring_shared_void_entries_total{log="main"} 2"#,
            r#"wellspring_shared_role_changes_total{log="main"} 3"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("alone") && !text.contains("missing_places"), "{text}");
    }

    #[test]
    fn while_it_catches_up_it_tells_what_is_missing() {
        let text = page(Role::CatchingUp { place: Place(40), end: Some(Place(100)) });
        assert!(text.contains("wellspring_shared_missing_places{log=\"main\"} 60\n"), "{text}");
        assert!(!text.contains("wellspring_shared_epoch"), "{text}");
    }

    #[test]
    fn the_engine_tells_whether_it_is_reached() {
        let engine = EngineStatus {
            kind: "postgres",
            reach: EngineReach::Lost { reason: "gone".into() },
            trouble: None,
            durable: String::new(),
            reconnects: 4,
            group: None,
        };
        let text = prometheus::page(&engine_families(&engine));
        for line in
            ["wellspring_shared_engine_connected 0", "wellspring_shared_engine_reconnects_total 4"]
        {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn every_role_has_its_name_here() {
        let roles = [
            Role::CatchingUp { place: Place(0), end: None },
            Role::Following { leader: None },
            Role::Claiming { epoch: 1 },
            Role::Leading { epoch: 1 },
            Role::Detached { reason: String::new() },
        ];
        assert_eq!(roles.map(|role| role.name()), ROLES);
    }
}
