//! Retention removes a backup only if the newest backup replaces it: every log that both name has
//! the same history, the same full segments and no fewer events in the newest, and no backup in
//! between has fewer. This is decided by lengths and last checksums in the manifests; no segment is
//! read.
//!
//! - A log that the newest backup lacks was deleted, which keeps no backup.
//! - A log with another history was restored or cut, or deleted and created again. These cases
//!   cannot be distinguished, so its earlier backups stay until an operator removes them by name.
//! - Whether a backup is in between depends on its name and on its moment: of two processes, the
//!   one with the later plan may have the earlier name.

use crate::manifest::{LogBackup, Manifest, SegmentBackup};
use std::collections::BTreeMap;
use std::fmt;

/// A backup that stays until an operator removes it by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StayingBackup {
    /// Its name.
    pub name: String,
    /// Why it stays.
    pub reason: StayReason,
}

/// Why a backup stays.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum StayReason {
    /// It shares no history with the newest backup.
    OtherServer,
    /// The newest backup has this log with another history.
    OtherHistory {
        /// The log.
        log: String,
    },
    /// The newest backup has this log with the same history and lacks events of it; or a backup in
    /// between lacked them, so their positions may have been assigned to other events.
    LostEvents {
        /// The log.
        log: String,
    },
    /// It proves that this log had lost events at that moment.
    Witness {
        /// The log.
        log: String,
    },
}

impl fmt::Display for StayReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StayReason::OtherServer => f.write_str(
                "no history in common with the newest backup: another server's, or this one's from \
                 before it was restored",
            ),
            StayReason::OtherHistory { log } => write!(
                f,
                "the log {log} has another history now, because it was restored, cut, or deleted \
                 and created again; its events of before may exist nowhere else"
            ),
            StayReason::LostEvents { log } => write!(
                f,
                "the server has lost events of the log {log} since, which may exist nowhere else"
            ),
            StayReason::Witness { log } => {
                write!(f, "tells where the log {log} ended when it had lost events")
            }
        }
    }
}

/// The names of these backups by reason, for messages.
#[must_use]
pub fn by_reason(staying: &[StayingBackup]) -> BTreeMap<&StayReason, Vec<&str>> {
    let mut by_reason: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for StayingBackup { name, reason } in staying {
        by_reason.entry(reason).or_default().push(name);
    }
    by_reason
}

/// The backups of a store, sorted by whether retention keeps them.
#[derive(Debug, Default)]
pub(crate) struct Retained<'a> {
    /// Those to remove.
    pub(crate) old: Vec<&'a Manifest>,
    /// Those kept because they are recent.
    pub(crate) recent: Vec<&'a Manifest>,
    /// Those kept regardless of age.
    pub(crate) staying: Vec<(&'a Manifest, StayReason)>,
}

impl<'a> Retained<'a> {
    /// Keeps the newest `keep` backups (at least one), counting the newest one and those that it
    /// replaces, and every backup that it does not replace. `manifests` are sorted by name.
    pub(crate) fn of(manifests: &'a [Manifest], keep: usize) -> Retained<'a> {
        let Some((newest, earlier)) = manifests.split_last() else { return Retained::default() };
        let mut retained = Retained::default();
        let mut ordinary = Vec::new();
        let mut witnesses: Vec<(&Manifest, &str)> = Vec::new();
        for (at, manifest) in earlier.iter().enumerate() {
            match judge(manifest, newest, &earlier[at + 1..]) {
                Verdict::Replaced => ordinary.push(manifest),
                Verdict::Stays(reason) => retained.staying.push((manifest, reason)),
                Verdict::Contradicted { log, by } => {
                    let reason = StayReason::LostEvents { log: log.to_owned() };
                    retained.staying.push((manifest, reason));
                    witnesses.push((by, log));
                }
            }
        }
        let recent_from = (ordinary.len() + 1).saturating_sub(keep.max(1)).min(ordinary.len());
        retained.recent = ordinary.split_off(recent_from);
        retained.recent.push(newest);
        for manifest in ordinary {
            match witnesses.iter().find(|(by, _)| by.name == manifest.name) {
                Some((_, log)) => {
                    let reason = StayReason::Witness { log: (*log).to_owned() };
                    retained.staying.push((manifest, reason));
                }
                None => retained.old.push(manifest),
            }
        }
        retained
    }
}

/// Whether the newest backup replaces another one.
enum Verdict<'a> {
    Replaced,
    Stays(StayReason),
    /// Backup `by`, taken between the two, lacked events of this log.
    Contradicted {
        log: &'a str,
        by: &'a Manifest,
    },
}

/// Judges a backup. A log that the newest backup lacks was deleted, which is no reason to stay.
fn judge<'a>(manifest: &'a Manifest, newest: &Manifest, between: &'a [Manifest]) -> Verdict<'a> {
    if manifest.histories().is_disjoint(&newest.histories()) {
        return Verdict::Stays(StayReason::OtherServer);
    }
    for log in &manifest.logs {
        let Ok(now) = newest.log(&log.name) else { continue };
        if now.history != log.history {
            return Verdict::Stays(StayReason::OtherHistory { log: log.name.clone() });
        }
        if !goes_on(log, now) {
            return Verdict::Stays(StayReason::LostEvents { log: log.name.clone() });
        }
        let is_shorter = |other: &&Manifest| {
            let is_same = |of: &&LogBackup| of.history == log.history && of.head < log.head;
            // Of two processes that take backups at a time, the later plan may be named first.
            other.taken_at_us > manifest.taken_at_us && other.logs.iter().any(|of| is_same(&of))
        };
        if let Some(by) = between.iter().find(is_shorter) {
            return Verdict::Contradicted { log: &log.name, by };
        }
    }
    Verdict::Replaced
}

/// Whether `now` can result from `before` by appends and cuts of the beginning alone: from there on
/// it has the same full segments, and at least as many bytes of the last one.
fn goes_on(before: &LogBackup, now: &LogBackup) -> bool {
    let Some((last, full)) = before.segments.split_last() else { return true };
    let same_base = |base| now.segments.iter().find(|segment| segment.base == base);
    let is_kept = |segment: &SegmentBackup| {
        let bytes = |of: &SegmentBackup| (of.bytes, of.anchor);
        same_base(segment.base).is_some_and(|same| bytes(same) == bytes(segment))
    };
    let has_grown = same_base(last.base).is_some_and(|same| same.bytes > last.bytes);
    let is_removed = |segment: &SegmentBackup| segment.base < now.first();
    let mut full = full.iter().filter(|segment| !is_removed(segment));
    let goes_on = is_removed(last) || is_kept(last) || has_grown;
    now.head >= before.head && full.all(is_kept) && goes_on
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::FORMAT;
    use wellspring_types::Position;

    /// A log of segments that hold ten events each; `course` tells its events after the tenth from
    /// others'.
    fn log(name: &str, history: &str, head: Position, course: u32) -> LogBackup {
        let segment = |base: Position| {
            let next = (base + 10).min(head + 1);
            let anchor = if base > 10 { course * 1000 } else { 0 } + next as u32;
            let bytes = 64 + (next - base) * 50;
            SegmentBackup { base, next, bytes, anchor, crc32c: anchor, recorded_at_us: next }
        };
        let segments = (1..=head.max(1)).step_by(10).map(segment).collect();
        let (name, history) = (name.to_owned(), history.to_owned());
        LogBackup { name, history, head, recorded_at_us: head, removed_until_us: None, segments }
    }

    /// A server's backups, named and taken in this order: the logs beside `system` in each.
    fn backups(logs: &[&[LogBackup]]) -> Vec<Manifest> {
        let backup = |(at, logs): (usize, &&[LogBackup])| Manifest {
            format: FORMAT,
            name: format!("{at}"),
            version: String::new(),
            taken_at_us: at as u64,
            has_accounts: false,
            logs: [logs.to_vec(), vec![log("system", "s", 20, 0)]].concat(),
        };
        logs.iter().enumerate().map(backup).collect()
    }

    /// The names of those that go, and of those that stay, with the reason.
    fn retained(manifests: &[Manifest], keep: usize) -> (Vec<&str>, Vec<(&str, StayReason)>) {
        let Retained { old, staying, .. } = Retained::of(manifests, keep);
        let mut staying: Vec<_> =
            staying.into_iter().map(|(backup, reason)| (backup.name.as_str(), reason)).collect();
        staying.sort();
        (old.into_iter().map(|backup| backup.name.as_str()).collect(), staying)
    }

    fn main(history: &str, head: Position) -> [LogBackup; 1] {
        [log("main", history, head, 0)]
    }

    #[test]
    fn a_log_with_another_history_keeps_every_backup_of_the_one_before() {
        let before = (main("a", 3), main("a", 30));
        let all = backups(&[&before.0, &before.1, &main("b", 40), &main("b", 50), &main("b", 60)]);
        let reason = || StayReason::OtherHistory { log: "main".to_owned() };
        let staying = vec![("0", reason()), ("1", reason())];
        assert_eq!(retained(&all, 1), (vec!["2", "3"], staying.clone()));
        assert_eq!(retained(&all, 2), (vec!["2"], staying), "those that stay are not counted");
        assert_eq!(retained(&all[..2], 1), (vec!["0"], vec![]));
        assert_eq!(retained(&all[..1], 1), (vec![], vec![]));
        assert_eq!(retained(&[], 1), (vec![], vec![]));
    }

    #[test]
    fn a_deleted_log_and_a_new_one_keep_no_backup() {
        let [main] = main("a", 30);
        let extra = log("extra", "x", 9, 0);
        let alone = std::slice::from_ref(&main);
        let all = backups(&[
            alone,
            &[main.clone(), extra.clone()],
            alone,
            &[main.clone(), log("new", "n", 5, 0)],
        ]);
        assert_eq!(retained(&all, 1), (vec!["0", "1", "2"], vec![]));
        // Created again under its name, it is told from one that was restored by nothing.
        let again = backups(&[&[main.clone(), extra], &[main, log("extra", "y", 90, 0)]]);
        let reason = StayReason::OtherHistory { log: "extra".to_owned() };
        assert_eq!(retained(&again, 1), (vec![], vec![("0", reason)]));
    }

    #[test]
    fn a_backup_of_another_server_stays() {
        let other = Manifest {
            logs: vec![log("main", "o", 5, 0), log("system", "p", 5, 0)],
            ..backups(&[&[]]).remove(0)
        };
        let own = backups(&[&main("a", 3), &main("a", 4), &main("a", 5)]);
        let all = [vec![other], own[1..].to_vec()].concat();
        assert_eq!(retained(&all, 1), (vec!["1"], vec![("0", StayReason::OtherServer)]));
    }

    #[test]
    fn a_folder_that_was_put_back_keeps_the_backup_of_what_it_lost_although_it_has_gone_on() {
        let lost = || StayReason::LostEvents { log: "main".to_owned() };
        let witness = || StayReason::Witness { log: "main".to_owned() };
        let all = backups(&[
            &main("a", 12),
            &main("a", 18),
            &main("a", 13),
            &[log("main", "a", 19, 1)],
            &[log("main", "a", 25, 1)],
        ]);
        assert_eq!(retained(&all[..3], 1), (vec!["0"], vec![("1", lost())]));
        // The open segment hides it from names and lengths: the shorter backup is what tells.
        let staying = vec![("1", lost()), ("2", witness())];
        assert_eq!(retained(&all[..4], 1), (vec!["0"], staying.clone()));
        assert_eq!(retained(&all, 1), (vec!["0", "3"], staying));
        let without = [&all[..1], &all[2..]].concat();
        assert_eq!(retained(&without, 1), (vec!["0", "2", "3"], vec![]), "nothing to tell of");
        // Full segments of the two courses differ, so nothing else is needed.
        let full = backups(&[&main("a", 28), &[log("main", "a", 40, 1)]]);
        assert_eq!(retained(&full, 1), (vec![], vec![("0", lost())]));
    }

    #[test]
    fn a_backup_that_was_planned_later_and_named_earlier_has_lost_nothing() {
        let mut all = backups(&[&main("a", 12), &main("a", 8), &main("a", 20)]);
        (all[0].taken_at_us, all[1].taken_at_us) = (1, 0);
        assert_eq!(retained(&all, 1), (vec!["0", "1"], vec![]));
    }
}
