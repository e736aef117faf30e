//! Figures of logs: appends, commits, storage, and the account of ingest.

use super::shared::SharedFigures;
use crate::node::IngestAccount;
use crate::stats::family::{Distribution, Family, Kind, Value, scaled};
use wellspring_log::LogStats;
use wellspring_log::batcher::Amount;

/// The figures of one log.
#[derive(Debug, Clone)]
pub(crate) struct LogFigures {
    pub(crate) log: String,
    pub(crate) stats: LogStats,
    pub(crate) account: IngestAccount,
    /// Subscriptions to it.
    pub(crate) subscribers: u64,
    /// Time since its last event, if any.
    pub(crate) idle_us: Option<u64>,
    /// Present for the copy of a shared log.
    pub(crate) shared: Option<SharedFigures>,
}

#[cfg(test)]
impl LogFigures {
    /// The figures of an unused log.
    pub(super) fn for_tests(log: &str) -> LogFigures {
        LogFigures {
            log: log.to_owned(),
            stats: LogStats::default(),
            account: IngestAccount::default(),
            subscribers: 0,
            idle_us: None,
            shared: None,
        }
    }
}

type Pick<T> = fn(&LogFigures) -> T;

pub(super) fn families(logs: &[LogFigures]) -> Vec<Family> {
    let mut families = numbers(logs);
    families.push(terms(logs));
    families.push(idle(logs));
    families.extend(distributions(logs));
    families.extend(ingest(logs));
    families
}

fn of_each<T: Into<Value>>(
    family: Family,
    logs: &[LogFigures],
    pick: impl Fn(&LogFigures) -> T,
) -> Family {
    logs.iter().fold(family, |family, log| family.with(vec![("log", log.log.clone())], pick(log)))
}

fn numbers(logs: &[LogFigures]) -> Vec<Family> {
    use Kind::{Counter, Gauge};
    let figures: [(&'static str, Kind, &'static str, Pick<u64>); 23] = [
        (
            "wellspring_log_first",
            Gauge,
            "Position of the first event; more than 1 where the beginning was removed.",
            |l| l.stats.first,
        ),
        ("wellspring_log_head", Gauge, "Last durable position.", |l| l.stats.head),
        ("wellspring_log_disk_bytes", Gauge, "Bytes of all files of the log.", |l| {
            l.stats.disk_bytes
        }),
        ("wellspring_log_segment_bytes", Gauge, "Bytes of segments on disk.", |l| {
            l.stats.segment_bytes
        }),
        ("wellspring_log_index_bytes", Gauge, "Bytes of sealed indexes on disk.", |l| {
            l.stats.sealed_index_bytes
        }),
        ("wellspring_log_segments", Gauge, "Segment files.", |l| l.stats.segments),
        (
            "wellspring_log_index_memory_bytes",
            Gauge,
            "Approximate memory of all indexes in bytes, including the active one.",
            |l| l.stats.index_memory_bytes,
        ),
        (
            "wellspring_log_active_index_memory_bytes",
            Gauge,
            "Approximate memory of the active segment's index in bytes.",
            |l| l.stats.active_index_memory_bytes,
        ),
        ("wellspring_log_staged_bytes", Gauge, "Bytes staged but not yet durable.", |l| {
            l.stats.staged_bytes
        }),
        (
            "wellspring_log_storage_full",
            Gauge,
            "1 while appends fail because the device is full.",
            |l| u64::from(l.stats.storage_full),
        ),
        (
            "wellspring_log_closed",
            Gauge,
            "1 while the log accepts no appends because a write or a barrier failed.",
            |l| u64::from(l.stats.closed),
        ),
        (
            "wellspring_log_damaged_segments",
            Gauge,
            "Segments in which reads have found damage since the start.",
            |l| l.stats.damaged_segments,
        ),
        (
            "wellspring_log_indexes_mended_total",
            Counter,
            "Damaged indexes that were rebuilt.",
            |l| l.stats.indexes_mended,
        ),
        (
            "wellspring_log_background_panics_total",
            Counter,
            "Panics of threads that write or merge indexes. The work is retried.",
            |l| l.stats.background_panics,
        ),
        (
            "wellspring_log_index_write_failures_total",
            Counter,
            "Failed attempts to write an index. They are retried.",
            |l| l.stats.index_write_failures,
        ),
        (
            "wellspring_log_indexes_unwritten",
            Gauge,
            "Indexes kept in memory because writing them has failed so far.",
            |l| l.stats.indexes_unwritten,
        ),
        ("wellspring_log_epoch", Gauge, "Single-writer epoch.", |l| l.stats.epoch),
        ("wellspring_log_subscribers", Gauge, "Live subscriptions to the log.", |l| l.subscribers),
        ("wellspring_log_appends_total", Counter, "Appends made.", |l| l.stats.appends),
        ("wellspring_log_events_total", Counter, "Events appended.", |l| l.stats.events),
        ("wellspring_log_conflicts_total", Counter, "Append conditions that failed.", |l| {
            l.stats.conflicts
        }),
        ("wellspring_log_replays_total", Counter, "Appends answered as replays.", |l| {
            l.stats.replays
        }),
        ("wellspring_log_batches_total", Counter, "Durable group commits.", |l| l.stats.batches),
    ];
    let figures = figures.into_iter();
    figures
        .map(|(name, kind, help, pick)| of_each(Family::new(kind, name, help), logs, pick))
        .collect()
}

fn terms(logs: &[LogFigures]) -> Family {
    let family = Family::new(
        Kind::Gauge,
        "wellspring_log_index_terms",
        "Terms in the indexes of all segments; a term in several segments counts once for each.",
    );
    logs.iter().fold(family, |family, log| {
        let labels = |kind: &str| vec![("log", log.log.clone()), ("kind", kind.to_owned())];
        let terms = log.stats.terms;
        family.with(labels("type"), terms.types).with(labels("tag"), terms.tags)
    })
}

fn idle(logs: &[LogFigures]) -> Family {
    let family = Family::new(
        Kind::Gauge,
        "wellspring_log_last_event_age_seconds",
        "Time since the last event was recorded.",
    );
    logs.iter().fold(family, |family, log| match log.idle_us {
        Some(us) => family.with(vec![("log", log.log.clone())], scaled(us, 1e-6)),
        None => family,
    })
}

fn distributions(logs: &[LogFigures]) -> [Family; 3] {
    let histogram = |name, help| Family::new(Kind::Histogram, name, help);
    [
        of_each(histogram("wellspring_log_batch_events", "Events per group commit."), logs, |l| {
            Distribution::of(&l.stats.batch_events, 1.0)
        }),
        of_each(
            histogram("wellspring_log_batch_bytes", "Bytes written per group commit."),
            logs,
            |l| Distribution::of(&l.stats.batch_bytes, 1.0),
        ),
        of_each(
            histogram("wellspring_log_barrier_seconds", "Duration of each barrier."),
            logs,
            |l| Distribution::of(&l.stats.barriers_us, 1e-6),
        ),
    ]
}

fn ingest(logs: &[LogFigures]) -> Vec<Family> {
    type PickAmount = fn(&IngestAccount) -> Amount;
    let amounts: [(&str, &str, Kind, &str, PickAmount); 5] = [
        ("accepted", "_total", Kind::Counter, "accepted before they were durable", |a| a.accepted),
        ("stored", "_total", Kind::Counter, "accepted and then made durable", |a| a.stored),
        ("shed", "_total", Kind::Counter, "refused because memory for them was full", |a| a.shed),
        ("dropped", "_total", Kind::Counter, "accepted and then dropped by a full disk", |a| {
            a.dropped
        }),
        ("lost_possible", "", Kind::Gauge, "that a crash now would lose", IngestAccount::in_flight),
    ];
    let mut families = Vec::new();
    for (name, suffix, kind, what, pick) in amounts {
        let family = |unit: &str, title: &str| {
            let name = format!("wellspring_ingest_{name}_{unit}{suffix}");
            Family::new(kind, name, format!("{title} {what}."))
        };
        families.push(of_each(family("events", "Events"), logs, |l| pick(&l.account).events));
        families.push(of_each(family("bytes", "Encoded bytes of events"), logs, |l| {
            pick(&l.account).bytes
        }));
    }
    for (at, (name, what, _)) in IngestAccount::default().gauges().into_iter().enumerate() {
        let family = Family::new(Kind::Gauge, name, what);
        families.push(of_each(family, logs, |l| l.account.gauges()[at].2));
    }
    families
}
