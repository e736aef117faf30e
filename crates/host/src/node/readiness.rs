//! Whether the server is ready for requests, and if not, why.

use super::Node;
use crate::cluster::{EngineReach, EngineStatus};
use crate::names::{MAIN, SYSTEM_LOG};
use crate::view::{Progress, State};
use crate::wire::json::push_string;
use crate::wire::problem::{self, Kind, Problem};
use wellspring_log::{Corruption, Log, Role};

/// The purpose of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Reads only: any node that has caught up is ready.
    Reads,
    /// Writes only: there must be a leader.
    Writes,
    /// Both.
    Both,
}

/// The kinds of reasons, worst first: the answer is the worst.
pub const KINDS: &[&Kind] = &[
    &problem::SHUTTING_DOWN,
    &problem::LOG_CLOSED,
    &problem::DETACHED,
    &problem::DAMAGED,
    &problem::MAIN_DELETED,
    &problem::STORAGE_FULL,
    &problem::JOURNAL_UNREACHABLE,
    &problem::CATCHING_UP,
    &problem::NOT_LEADING,
    &problem::VIEW_NOT_READY,
];

/// Why the server is not ready for these requests, worst first; empty if it is.
pub fn reasons(node: &Node, is_stopping: bool, purpose: Purpose) -> Vec<Problem> {
    let mut reasons = Vec::new();
    if is_stopping {
        reasons.push(*problem::SHUTTING_DOWN.because("the server is shutting down"));
    }
    let logs = node.all();
    if !logs.iter().any(|(name, _)| name == MAIN) {
        let detail = "the log main has been deleted; PUT /v1/logs/main creates an empty one, \
                      and so does the next start";
        reasons.push(*problem::MAIN_DELETED.because(detail).about(MAIN));
    }
    for (name, log) in &logs {
        let ingest_full = node.account(name).is_some_and(|account| account.full);
        reasons.extend(of_log(name, log, ingest_full));
        // Damage is in bytes at rest: appends go on.
        if purpose != Purpose::Writes {
            reasons.extend(of_damage(name, &log.damage()));
        }
        reasons.extend(of_role(name, &log.role(), purpose));
    }
    for (name, _) in node.unopened_logs() {
        // The cause, with paths of this machine, is in the server's log.
        let detail = format!("the log {name} cannot be opened on this node; see the server's log");
        reasons.push(*problem::CATCHING_UP.because(detail).about(&name));
    }
    if purpose != Purpose::Reads && !node.has_joined() {
        let detail = "this node has not yet announced itself: other nodes do not know it";
        reasons.push(*problem::CATCHING_UP.because(detail).about(SYSTEM_LOG));
    }
    let engine = node.cluster().map(|cluster| cluster.engine.status());
    reasons.extend(engine.and_then(|engine| of_engine(&engine, purpose)));
    for (log, view, progress) in node.awaited_views() {
        if progress.state != State::Live {
            let Progress { position, head, .. } = progress;
            let detail =
                format!("the view {view} of {log} is not ready yet: {position} of {head} events");
            reasons.push(*problem::VIEW_NOT_READY.because(detail).about(&log));
        }
    }
    reasons.sort_by_key(|reason| KINDS.iter().position(|&kind| kind == reason.kind));
    reasons
}

/// What deserves attention although it is no reason against these requests.
pub fn warnings(node: &Node, purpose: Purpose) -> Vec<Problem> {
    if purpose != Purpose::Writes {
        return Vec::new();
    }
    node.all().iter().filter_map(|(name, log)| of_damage(name, &log.damage())).collect()
}

fn of_log(name: &str, log: &Log, ingest_full: bool) -> Vec<Problem> {
    let mut reasons = Vec::new();
    if let Some(reason) = log.closed_reason() {
        let detail = format!("{name} accepts no appends: {reason}");
        reasons.push(*problem::LOG_CLOSED.because(detail));
    }
    if log.is_full() || ingest_full {
        let detail = format!("{name} accepts no events: no space left on the device");
        reasons.push(*problem::STORAGE_FULL.because(detail));
    }
    reasons.iter_mut().for_each(|reason| reason.log = Some(name.into()));
    reasons
}

/// The reason in damage of a log's segments.
fn of_damage(name: &str, damage: &[Corruption]) -> Option<Problem> {
    let first = damage.first()?;
    let more = match damage.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more segments are"),
    };
    let detail = format!(
        "log {name}: {first}{more}; wellspring verify lists all damage. Stop the server, run \
         `wellspring mend` with a backup, and restart"
    );
    let mut file = Vec::new();
    push_string(&mut file, &first.file);
    let mut reason = *problem::DAMAGED
        .because(detail)
        .with("file", String::from_utf8(file).unwrap_or_default())
        .with("offset", first.offset.to_string());
    reason.log = Some(name.into());
    Some(reason)
}

/// The reason for a detached copy, and the remedy.
pub(crate) fn detached(name: &str, reason: &str) -> Box<Problem> {
    problem::DETACHED.because(format!(
        "the copy of {name} on this node is detached: {reason}. If the reason names no \
         remedy and the shared log is right, stop this node, run `wellspring journal reset-copy --log {name} --data` with its data \
         folder, and start it again: it then fetches the log again and keeps the old copy aside"
    ))
}

/// The reason in a node's role.
fn of_role(name: &str, role: &Role, purpose: Purpose) -> Option<Problem> {
    let reason = match role {
        Role::Detached { reason } => detached(name, reason),
        Role::CatchingUp { place, end } => {
            let end =
                end.map_or("an end that is not known yet".to_owned(), |end| end.0.to_string());
            problem::CATCHING_UP.because(format!(
                "the copy of {name} is not complete yet: at place {} of {end}",
                place.0
            ))
        }
        Role::Following { leader: None } if purpose != Purpose::Reads => {
            problem::NOT_LEADING.because(format!("no leader is known for {name} at the moment"))
        }
        Role::Claiming { epoch } if purpose != Purpose::Reads => problem::NOT_LEADING
            .because(format!("this node is about to lead {name}, in epoch {epoch}")),
        Role::Following { .. } | Role::Claiming { .. } | Role::Leading { .. } => return None,
    };
    Some(*reason.about(name))
}

/// The reason in the engine. Its address, and why it cannot be reached, are not public.
fn of_engine(engine: &EngineStatus, purpose: Purpose) -> Option<Problem> {
    match &engine.reach {
        EngineReach::Lost { .. } if purpose != Purpose::Reads => {
            let detail = format!(
                "this node does not reach the journal ({}); GET /v1/cluster tells operators why",
                engine.kind
            );
            Some(*problem::JOURNAL_UNREACHABLE.because(detail))
        }
        EngineReach::Lost { .. } | EngineReach::Connected => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_log::Leader;
    use wellspring_log::shared::Place;

    fn slug(role: &Role, purpose: Purpose) -> Option<&'static str> {
        of_role("main", role, purpose).map(|reason| reason.kind.slug)
    }

    #[test]
    fn reads_need_a_copy_that_is_complete_and_writes_need_a_leader() {
        use Purpose::{Both, Reads, Writes};
        let leader = Leader { node: "a".into(), url: "http://a:1".into(), epoch: 3 };
        let catching_up = Role::CatchingUp { place: Place(7), end: Some(Place(9)) };
        let detached = Role::Detached { reason: "another past".into() };
        for (role, reads, writes) in [
            (Role::Leading { epoch: 3 }, None, None),
            (Role::Following { leader: Some(leader) }, None, None),
            (Role::Following { leader: None }, None, Some("not-leading")),
            (Role::Claiming { epoch: 4 }, None, Some("not-leading")),
            (catching_up, Some("catching-up"), Some("catching-up")),
            (detached, Some("detached"), Some("detached")),
        ] {
            assert_eq!(slug(&role, Reads), reads, "{role:?}");
            assert_eq!(slug(&role, Writes), writes, "{role:?}");
            assert_eq!(slug(&role, Both), writes, "{role:?}");
        }
    }

    #[test]
    fn writes_need_the_journal() {
        let mut engine = EngineStatus {
            kind: "postgres",
            reach: EngineReach::Connected,
            trouble: None,
            durable: String::new(),
            reconnects: 0,
            group: None,
        };
        assert!(of_engine(&engine, Purpose::Both).is_none());
        engine.reach = EngineReach::Lost { reason: "db.internal refused".into() };
        assert!(of_engine(&engine, Purpose::Reads).is_none());
        for purpose in [Purpose::Writes, Purpose::Both] {
            let reason = of_engine(&engine, purpose).unwrap();
            assert_eq!(reason.kind.slug, "journal-unreachable");
            assert!(
                !reason.detail.contains("db.internal"),
                "whoever asks is told: {}",
                reason.detail
            );
        }
    }

    #[test]
    fn a_detached_copy_tells_the_way_out() {
        let role = Role::Detached { reason: "another past".into() };
        let reason = of_role("main", &role, Purpose::Both).unwrap();
        for part in ["another past", "wellspring journal reset-copy --log main"] {
            assert!(reason.detail.contains(part), "{}", reason.detail);
        }
    }
}
