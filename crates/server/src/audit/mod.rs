//! The audit: who did what, as events of the system log. Nothing waits for it, and nothing is
//! refused because of it: what finds no room is counted.
//!
//! ```text
//! answer known ─► which requests are kept (level) ─► refusals, failures: at most so many ─► event ─► batcher
//!                                                              └ the rest: one event with their number
//! ```

mod entry;
mod level;
mod refusals;
mod trail;

pub(crate) use entry::{Caller, Done};
pub(crate) use level::Level;

use crate::http::routes::TABLE;
use crate::node::Node;
use crate::stats::family::Family;
use level::Concern;
use refusals::Refusals;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use trail::{Kept, Trail};

/// How often refusals that were not kept one by one are told by their number.
pub(crate) const TELL_EVERY: Duration = Duration::from_secs(10);

/// The type of an event about somebody who was let in, or who logged in.
const ACCESSED: &str = "Accessed";
/// The type of an event about somebody who was not.
const REFUSED: &str = "AccessRefused";
/// The type of an event that stands for more of those.
const REFUSED_OFTEN: &str = "AccessRefusedOften";
/// The type of an event that stands for more of those who were let in and got nothing done.
const FAILED_OFTEN: &str = "AccessFailedOften";

/// What becomes of the audit of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It is of no concern at this level.
    Ignored,
    /// An event, whatever happens.
    Accessed,
    /// An event unless there were too many of its kind.
    Refused,
    /// The same, about somebody who was let in and got nothing done: neither may he fill the disk, nor
    /// do those who were not let in hide him.
    Failed,
}

/// Keeps what was done.
pub(crate) struct Audit {
    level: Level,
    /// What each route of the table concerns; for a request without a route nothing does.
    concerns: Vec<Concern>,
    refusals: Refusals,
    failures: Refusals,
    trail: Trail,
    written: AtomicU64,
    shed: AtomicU64,
    not_kept: AtomicU64,
}

impl Audit {
    /// At this level; nothing has happened yet.
    pub(crate) fn new(level: Level) -> Audit {
        Audit {
            level,
            concerns: TABLE.iter().map(Concern::of).collect(),
            refusals: Refusals::default(),
            failures: Refusals::default(),
            trail: Trail::default(),
            written: AtomicU64::new(0),
            shed: AtomicU64::new(0),
            not_kept: AtomicU64::new(0),
        }
    }

    /// Whether each event that is taken in concerns it.
    pub(crate) fn keeps_writes(&self) -> bool {
        self.level >= Level::Writes
    }

    /// Keeps what was done, if it is to be kept; now on the monotonic clock.
    pub(crate) fn note(&self, node: &Node, done: &Done<'_>, now_us: u64) {
        let event_type = match self.verdict(done) {
            Verdict::Ignored => return,
            Verdict::Accessed => ACCESSED,
            Verdict::Refused if self.may_keep(&self.refusals, done.client, now_us) => REFUSED,
            Verdict::Failed if self.may_keep(&self.failures, done.client, now_us) => ACCESSED,
            Verdict::Refused | Verdict::Failed => return,
        };
        self.keep(node, event_type, &done.tags(), &done.data());
    }

    fn verdict(&self, done: &Done<'_>) -> Verdict {
        let Some(&concern) = self.concerns.get(done.route) else { return Verdict::Ignored };
        if self.level == Level::Off || concern == Concern::Never {
            return Verdict::Ignored;
        }
        let kept = self.level.keeps(concern);
        match done.status {
            403 => Verdict::Refused,
            // Without credentials somebody has merely come to the wrong door.
            401 if done.shows_credentials || done.caller.is_some() => Verdict::Refused,
            // Too many logins; other limits say nothing of who it is.
            429 if done.caller.is_some() => Verdict::Refused,
            401 | 429 => Verdict::Ignored,
            _ if !kept => Verdict::Ignored,
            // Who did not say who he is came to no harm, and did none.
            400.. if !done.is_identified() => Verdict::Ignored,
            // Whom writes or reads are kept of may write or read that often anyway.
            400..500 if concern == Concern::Change => Verdict::Failed,
            _ => Verdict::Accessed,
        }
    }

    fn may_keep(&self, of: &Refusals, client: Option<IpAddr>, now_us: u64) -> bool {
        let may = of.may_keep(client, now_us);
        if !may {
            self.not_kept.fetch_add(1, Relaxed);
        }
        may
    }

    /// Tells of the refusals and failures that were not kept one by one since it last did. To be called
    /// every [`TELL_EVERY`], and at the end.
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
            Kept::Accepted => &self.written,
            Kept::Shed => &self.shed,
        };
        count.fetch_add(1, Relaxed);
    }

    /// What it counted.
    pub(crate) fn families(&self) -> Vec<Family> {
        let counter =
            |name, help, count: &AtomicU64| Family::counter(name, help, count.load(Relaxed));
        vec![
            counter(
                "wellspring_audit_events_total",
                "Events of the audit accepted for the system log.",
                &self.written,
            ),
            counter(
                "wellspring_audit_shed_total",
                "Events of the audit lost because there was no room for them.",
                &self.shed,
            ),
            counter(
                "wellspring_audit_refusals_not_kept_total",
                "Refusals told by their number only, because there were too many.",
                &self.not_kept,
            ),
        ]
    }
}

#[cfg(test)]
mod tests;
