//! The server's log of its own failures: every answer of 500 and above leaves a line with the
//! cause. Both HTTP stacks report here.
//!
//! The first failure of its kind is logged at once; those that follow within `TELL_EVERY` are
//! counted, and the next line gives their number. So a full disk under load costs a few lines a
//! minute.

use crate::wire::problem::{self, Kind, Problem};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Time between two lines about the same kind of problem of the same log.
pub(crate) const TELL_EVERY: Duration = Duration::from_secs(10);

/// Most combinations of kind, log and place that are distinguished: clients choose the names of the
/// logs that they request.
const MOST_KEYS: usize = 256;

/// Why an answer has a status of 500 or above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    kind: &'static Kind,
    detail: String,
    log: Option<Box<str>>,
}

impl Cause {
    /// The cause in a problem; `None` if the client is at fault.
    pub(crate) fn of(problem: &Problem) -> Option<Box<Cause>> {
        (problem.kind.status >= 500).then(|| {
            let (detail, log) = (problem.detail.clone(), problem.log.clone());
            Box::new(Cause { kind: problem.kind, detail, log })
        })
    }
}

/// A request that the server failed to serve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailedRequest<'a> {
    /// Why it failed.
    pub(crate) cause: &'a Cause,
    /// Path of its route, if it has one.
    pub(crate) route: Option<&'a str>,
    /// The log concerned, used if the cause names none; empty for none.
    pub(crate) log: &'a str,
    /// Its id, if it has one.
    pub(crate) request_id: Option<&'a str>,
}

impl FailedRequest<'_> {
    /// Whether the request asked whether the server is ready, and it is not yet: that is the answer
    /// and no failure, and passes by itself.
    fn only_asked_whether_ready(&self) -> bool {
        let passing = [&problem::CATCHING_UP, &problem::VIEW_NOT_READY];
        self.route == Some("/health/ready") && passing.contains(&self.cause.kind)
    }
}

/// Kind, log and place of a failure. Only damage has a place: a second damaged spot must not hide
/// behind the first.
type Key = (&'static str, Box<str>, Box<str>);

/// What happened since the last line about a key.
struct Recent {
    told_us: u64,
    passed_over: u64,
    /// The last failure that was not logged.
    last: Option<Cause>,
}

/// Recent failures, by key; see the module.
#[derive(Default)]
pub(crate) struct Troubles(Mutex<BTreeMap<Key, Recent>>);

impl Troubles {
    /// Writes a line about a request, or counts it. `now_us` is on the monotonic clock.
    pub(crate) fn tell(&self, failed: FailedRequest<'_>, now_us: u64) {
        if failed.only_asked_whether_ready() {
            return;
        }
        let Some(passed_over) = self.note(failed.cause, failed.log, now_us) else { return };
        write_line(failed, passed_over);
    }

    /// Writes a line for each key whose last failures were only counted. Call it periodically.
    pub(crate) fn tell_passed_over(&self, now_us: u64) {
        for (cause, log, passed_over) in self.due(now_us) {
            write_line(
                FailedRequest { cause: &cause, route: None, log: &log, request_id: None },
                passed_over,
            );
        }
    }

    /// The number of failures not logged before this one, if this one is to be logged now.
    fn note(&self, cause: &Cause, log: &str, now_us: u64) -> Option<u64> {
        let log = cause.log.as_deref().unwrap_or(log);
        let place = if cause.kind == &problem::CORRUPT { &*cause.detail } else { "" };
        let mut key: Key = (cause.kind.slug, log.into(), place.into());
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= MOST_KEYS && !recent.contains_key(&key) {
            key = (cause.kind.slug, "".into(), "".into());
        }
        let Some(before) = recent.get_mut(&key) else {
            recent.insert(key, Recent { told_us: now_us, passed_over: 0, last: None });
            return Some(0);
        };
        if !is_due(before, now_us) {
            before.passed_over += 1;
            before.last = Some(cause.clone());
            return None;
        }
        let passed_over = before.passed_over;
        *before = Recent { told_us: now_us, passed_over: 0, last: None };
        Some(passed_over)
    }

    /// The counted failures that are due; keys without recent failures are forgotten.
    fn due(&self, now_us: u64) -> Vec<(Cause, Box<str>, u64)> {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = Vec::new();
        recent.retain(|(_, log, _), recent| {
            if !is_due(recent, now_us) {
                return true;
            }
            let Some(cause) = recent.last.take() else { return false };
            // The line is about the last of them, which counts as logged.
            due.push((cause, log.clone(), recent.passed_over - 1));
            *recent = Recent { told_us: now_us, passed_over: 0, last: None };
            true
        });
        due
    }
}

fn is_due(recent: &Recent, now_us: u64) -> bool {
    now_us.saturating_sub(recent.told_us) >= TELL_EVERY.as_micros() as u64
}

fn write_line(failed: FailedRequest<'_>, passed_over: u64) {
    let FailedRequest { cause, route, log, request_id } = failed;
    let log = Some(cause.log.as_deref().unwrap_or(log)).filter(|log| !log.is_empty());
    let (problem, status, detail) = (cause.kind.slug, cause.kind.status, &*cause.detail);
    // The level of a line is part of its call site, so there are two call sites.
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                problem,
                status,
                log,
                route,
                detail,
                request_id,
                passed_over,
                "a request failed"
            )
        };
    }
    match status {
        500 => line!(error),
        // 503 and the like: the server is overloaded for a moment, not broken.
        _ => line!(warn),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_US: u64 = 1_000_000;

    fn cause(kind: &'static Kind, detail: &str) -> Cause {
        *Cause::of(&kind.because(detail)).expect("a cause")
    }

    #[test]
    fn what_is_the_clients_has_no_cause() {
        assert_eq!(Cause::of(&problem::INVALID.because("")), None);
        assert!(Cause::of(&problem::STORAGE_FULL.because("")).is_some());
    }

    #[test]
    fn the_first_is_told_at_once_and_the_others_by_their_number() {
        let troubles = Troubles::default();
        let full = cause(&problem::STORAGE_FULL, "full");
        assert_eq!(troubles.note(&full, "main", 0), Some(0));
        for n in 1..10 {
            assert_eq!(troubles.note(&full, "main", n * SECOND_US), None);
        }
        assert_eq!(troubles.note(&full, "orders", SECOND_US), Some(0), "another log");
        let closed = cause(&problem::LOG_CLOSED, "closed");
        assert_eq!(troubles.note(&closed, "main", SECOND_US), Some(0), "another kind");
        assert_eq!(troubles.note(&full, "main", 10 * SECOND_US), Some(9));
        assert_eq!(troubles.note(&full, "main", 20 * SECOND_US), Some(0));
    }

    #[test]
    fn who_asks_whether_the_server_is_ready_has_failed_at_nothing() {
        let asked = |kind, route| {
            let cause = cause(kind, "not yet");
            let failed = FailedRequest { cause: &cause, route, log: "", request_id: None };
            failed.only_asked_whether_ready()
        };
        assert!(asked(&problem::CATCHING_UP, Some("/health/ready")));
        assert!(asked(&problem::VIEW_NOT_READY, Some("/health/ready")));
        assert!(!asked(&problem::STORAGE_FULL, Some("/health/ready")));
        assert!(!asked(&problem::VIEW_NOT_READY, Some("/api/urls")));
    }

    #[test]
    fn what_nothing_follows_is_told_later_and_then_forgotten() {
        let troubles = Troubles::default();
        let full = cause(&problem::STORAGE_FULL, "full");
        for _ in 0..4 {
            troubles.note(&full, "main", 0);
        }
        assert!(troubles.due(9 * SECOND_US).is_empty());
        assert_eq!(troubles.due(10 * SECOND_US), [(full.clone(), "main".into(), 2)]);
        assert!(troubles.due(15 * SECOND_US).is_empty());
        assert!(troubles.due(20 * SECOND_US).is_empty());
        assert!(troubles.0.lock().unwrap().is_empty());
        assert_eq!(troubles.note(&full, "main", 21 * SECOND_US), Some(0));
    }

    #[test]
    fn each_place_of_damage_is_told() {
        let troubles = Troubles::default();
        for place in ["1.seg at byte 1", "1.seg at byte 2"] {
            let damage = cause(&problem::CORRUPT, place);
            assert_eq!(troubles.note(&damage, "main", 0), Some(0));
            assert_eq!(troubles.note(&damage, "main", 1), None);
        }
    }

    #[test]
    fn names_that_clients_make_up_take_no_memory() {
        let troubles = Troubles::default();
        let busy = cause(&problem::OVERLOADED, "");
        let told = (0..5_000).filter(|n| troubles.note(&busy, &n.to_string(), 0).is_some());
        assert_eq!(told.count(), MOST_KEYS + 1);
        assert!(troubles.0.lock().unwrap().len() <= MOST_KEYS + 1);
    }

    #[test]
    fn a_cause_that_knows_its_log_is_believed() {
        let troubles = Troubles::default();
        let full = *Cause::of(&problem::STORAGE_FULL.because("").about("main")).unwrap();
        assert_eq!(troubles.note(&full, "", 0), Some(0));
        assert_eq!(troubles.note(&full, "main", 0), None);
    }
}
