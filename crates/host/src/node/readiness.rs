//! Whether the server should be sent requests, and if not, why.

use super::Node;
use crate::names::MAIN;
use crate::view::{Progress, State};
use crate::wire::json::push_string;
use crate::wire::problem::{self, Kind, Problem};
use wellspring_log::Log;

/// The kinds of reasons, the worst first: the answer is the worst.
pub const KINDS: &[&Kind] = &[
    &problem::SHUTTING_DOWN,
    &problem::LOG_CLOSED,
    &problem::DAMAGED,
    &problem::MAIN_DELETED,
    &problem::STORAGE_FULL,
    &problem::VIEW_NOT_READY,
];

/// Why the server is not ready, the worst first; empty if it is.
pub fn reasons(node: &Node, is_stopping: bool) -> Vec<Problem> {
    let mut reasons = Vec::new();
    if is_stopping {
        reasons.push(*problem::SHUTTING_DOWN.because("the server is stopping"));
    }
    let logs = node.all();
    if !logs.iter().any(|(name, _)| name == MAIN) {
        let detail = "the log main has been deleted; PUT /v1/logs/main makes an empty one, and so \
                      does the next start";
        reasons.push(*problem::MAIN_DELETED.because(detail).about(MAIN));
    }
    for (name, log) in &logs {
        let ingest_full = node.account(name).is_some_and(|account| account.full);
        reasons.extend(of_log(name, log, ingest_full));
    }
    for (log, view, progress) in node.awaited_views() {
        if progress.state != State::Live {
            let Progress { position, head, .. } = progress;
            let detail = format!(
                "the view {view} of {log} does not answer yet: {position} of {head} events"
            );
            reasons.push(*problem::VIEW_NOT_READY.because(detail).about(&log));
        }
    }
    reasons.sort_by_key(|reason| KINDS.iter().position(|&kind| kind == reason.kind));
    reasons
}

fn of_log(name: &str, log: &Log, ingest_full: bool) -> Vec<Problem> {
    let mut reasons = Vec::new();
    if let Some(reason) = log.closed_reason() {
        let detail = format!("{name} takes no appends: {reason}");
        reasons.push(*problem::LOG_CLOSED.because(detail));
    }
    let damage = log.damage();
    if let Some(first) = damage.first() {
        let more = match damage.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more segments are"),
        };
        let detail = format!(
            "of {name}, {first}{more}; wellspring verify tells all of it. Restore the file, then \
             start again"
        );
        let mut file = Vec::new();
        push_string(&mut file, &first.file);
        let reason = *problem::DAMAGED
            .because(detail)
            .with("file", String::from_utf8(file).unwrap_or_default())
            .with("offset", first.offset.to_string());
        reasons.push(reason);
    }
    if log.is_full() || ingest_full {
        let detail = format!("{name} takes nothing in: no room left on the device");
        reasons.push(*problem::STORAGE_FULL.because(detail));
    }
    reasons.iter_mut().for_each(|reason| reason.log = Some(name.into()));
    reasons
}
