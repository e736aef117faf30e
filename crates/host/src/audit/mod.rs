//! The audit: which caller did what, as events of the system log. No request waits for it or is
//! refused because of it: entries that do not fit are counted.
//!
//! ```text
//! answer known ─► which requests are kept (level) ─► refusals, failures: at most so many ─► event ─► batcher
//!                                                              └ the rest: one event with their number
//! ```

mod entry;
mod level;
mod refusals;
mod trail;

pub use level::{AuditConfig, Concern, Level};

use crate::node::Node;
use crate::record::RequestRecord;
use crate::stats::family::Family;
use refusals::Refusals;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use trail::{KeepOutcome, Trail};

/// Time between two events that stand for refusals beyond those kept one by one.
pub(crate) const TELL_EVERY: Duration = Duration::from_secs(10);

/// The type of an event about a caller that was admitted, or that logged in.
const ACCESSED: &str = "Accessed";
/// The type of an event about a caller that was denied access.
const REFUSED: &str = "AccessRefused";
/// The type of an event that stands for further denied callers.
const REFUSED_OFTEN: &str = "AccessRefusedOften";
/// The type of an event that stands for further failed requests of admitted callers.
const FAILED_OFTEN: &str = "AccessFailedOften";

/// What the audit does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AuditDecision {
    /// Nothing: the level does not cover it.
    Ignored,
    /// Always keeps an event.
    Accessed,
    /// Keeps an event of a refusal, unless there were too many.
    Refused,
    /// Keeps an event of an admitted caller's failure, unless there were too many. Counted apart
    /// from refusals: neither kind may fill the disk, and a flood of refusals must not hide
    /// failures.
    Failed,
}

/// Keeps the records of requests that it covers.
pub(crate) struct Audit {
    level: Level,
    /// What each route is to the audit, by its place; a request without a route is of no concern.
    concerns: Vec<Concern>,
    refusals: Refusals,
    failures: Refusals,
    trail: Trail,
    written: AtomicU64,
    shed: AtomicU64,
    not_kept: AtomicU64,
}

impl Audit {
    /// At this level, of the routes with these concerns; nothing has happened yet.
    pub(crate) fn new(level: Level, concerns: Vec<Concern>) -> Audit {
        Audit {
            level,
            concerns,
            refusals: Refusals::default(),
            failures: Refusals::default(),
            trail: Trail::default(),
            written: AtomicU64::new(0),
            shed: AtomicU64::new(0),
            not_kept: AtomicU64::new(0),
        }
    }

    /// Whether the level covers appends, so that every ingested event needs a look.
    pub(crate) fn keeps_writes(&self) -> bool {
        self.level >= Level::Writes
    }

    /// Keeps the record of a request, if it is to be kept.
    pub(crate) fn note(&self, node: &Node, record: &RequestRecord<'_>) {
        let &RequestRecord { client, ended_us: now_us, .. } = record;
        let event_type = match self.verdict(record) {
            AuditDecision::Ignored => return,
            AuditDecision::Accessed => ACCESSED,
            AuditDecision::Refused if self.may_keep(&self.refusals, client, now_us) => REFUSED,
            AuditDecision::Failed if self.may_keep(&self.failures, client, now_us) => ACCESSED,
            AuditDecision::Refused | AuditDecision::Failed => return,
        };
        self.keep(node, event_type, &entry::tags(record), &entry::data(record));
    }

    fn verdict(&self, record: &RequestRecord<'_>) -> AuditDecision {
        let Some(&concern) = self.concerns.get(record.route.index) else {
            return AuditDecision::Ignored;
        };
        if self.level == Level::Off || concern == Concern::Never {
            return AuditDecision::Ignored;
        }
        let kept = self.level.keeps(concern);
        match record.status {
            403 => AuditDecision::Refused,
            // A request without credentials was no attempt to break in.
            401 if record.shows_credentials || record.caller.is_some() => AuditDecision::Refused,
            // Too many logins; other limits say nothing about the caller.
            429 if record.caller.is_some() => AuditDecision::Refused,
            401 | 429 => AuditDecision::Ignored,
            _ if !kept => AuditDecision::Ignored,
            // A failure of an unauthenticated caller changed nothing and revealed nothing.
            400.. if !record.is_identified() => AuditDecision::Ignored,
            // Failed writes and reads are not capped: successful ones are kept as often.
            400..500 if concern == Concern::Change => AuditDecision::Failed,
            _ => AuditDecision::Accessed,
        }
    }

    fn may_keep(&self, of: &Refusals, client: Option<IpAddr>, now_us: u64) -> bool {
        let may = of.may_keep(client, now_us);
        if !may {
            self.not_kept.fetch_add(1, Relaxed);
        }
        may
    }

    /// Keeps one event each for the refusals and the failures that were not kept one by one since
    /// the last call. To be called every [`TELL_EVERY`], and at shutdown.
    pub(crate) fn tell_refusals(&self, node: &Node, now_us: u64) {
        for (event_type, of) in [(REFUSED_OFTEN, &self.refusals), (FAILED_OFTEN, &self.failures)] {
            if let Some(often) = of.take_untold(now_us) {
                let data = format!(r#"{{"count":{},"seconds":{}}}"#, often.count, often.seconds);
                self.keep(node, event_type, &[], data.as_bytes());
            }
        }
    }

    fn keep(&self, node: &Node, event_type: &str, tags: &[String], data: &[u8]) {
        let count = match self.trail.keep(node, event_type, tags, data) {
            KeepOutcome::Accepted => &self.written,
            KeepOutcome::Shed => &self.shed,
        };
        count.fetch_add(1, Relaxed);
    }

    /// The audit's own counters.
    pub(crate) fn families(&self) -> Vec<Family> {
        let counter =
            |name, help, count: &AtomicU64| Family::counter(name, help, count.load(Relaxed));
        vec![
            counter(
                "wellspring_audit_events_total",
                "Audit events accepted for the system log.",
                &self.written,
            ),
            counter(
                "wellspring_audit_shed_total",
                "Audit events lost because their buffer was full.",
                &self.shed,
            ),
            counter(
                "wellspring_audit_refusals_not_kept_total",
                "Refusals that were only counted, because there were too many.",
                &self.not_kept,
            ),
        ]
    }
}

#[cfg(test)]
mod tests;
