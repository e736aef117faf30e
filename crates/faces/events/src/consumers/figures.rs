//! Figures of open consumers.

use super::Consumers;
use super::open::OpenConsumer;
use super::status::ConsumerStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use wellspring_consumers::RunState;
use wellspring_host::stats::family::{Family, FigureOf, Kind};

/// One consumer's figures.
struct ConsumerFigures {
    /// Log and name.
    labels: [String; 2],
    status: ConsumerStatus,
    checkpoint_bytes: u64,
}

const FIGURES: [FigureOf<ConsumerFigures>; 14] = [
    FigureOf {
        kind: Kind::Gauge,
        name: "wellspring_consumer_running",
        help: "1 while the consumer delivers, 0 while it is paused or stopped.",
        value: |of| u64::from(of.status.state == RunState::Running),
    },
    FigureOf {
        kind: Kind::Gauge,
        name: "wellspring_consumer_lag_events",
        help: "Positions of the log that the consumer has not looked at yet.",
        value: |of| of.status.lag,
    },
    FigureOf {
        kind: Kind::Gauge,
        name: "wellspring_consumer_open_keys",
        help: "Keys with events that are looked at and not settled; an event without order is a key.",
        value: |of| of.status.open_keys as u64,
    },
    FigureOf {
        kind: Kind::Gauge,
        name: "wellspring_consumer_ready",
        help: "Deliveries that wait for a worker.",
        value: |of| of.status.ready as u64,
    },
    FigureOf {
        kind: Kind::Gauge,
        name: "wellspring_consumer_in_flight",
        help: "Deliveries that workers hold.",
        value: |of| of.status.in_flight as u64,
    },
    FigureOf {
        kind: Kind::Gauge,
        name: "wellspring_consumer_parked",
        help: "Keys that are parked.",
        value: |of| of.status.parked as u64,
    },
    FigureOf {
        kind: Kind::Gauge,
        name: "wellspring_consumer_workers",
        help: "Workers that have given a sign lately.",
        value: |of| of.status.workers as u64,
    },
    FigureOf {
        kind: Kind::Gauge,
        name: "wellspring_consumer_waiting_pulls",
        help: "Requests that wait for events.",
        value: |of| of.status.waiting as u64,
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_consumer_delivered_total",
        help: "Deliveries taken by workers.",
        value: |of| of.status.counters.delivered,
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_consumer_settled_total",
        help: "Events settled.",
        value: |of| of.status.counters.settled,
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_consumer_failed_total",
        help: "Deliveries that their workers reported as failed.",
        value: |of| of.status.counters.failed,
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_consumer_expired_total",
        help: "Deliveries taken from workers that were silent, or held them for too long.",
        value: |of| of.status.counters.expired,
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_consumer_late_total",
        help: "Results refused because their delivery was lost.",
        value: |of| of.status.counters.late,
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_consumer_checkpoint_bytes_total",
        help: "Bytes of checkpoints appended to the log.",
        value: |of| of.checkpoint_bytes,
    },
];

/// The figures of all open consumers. Looks at all open keys, and reads an event of each consumer.
pub(crate) fn families(consumers: &Consumers, wall_us: u64) -> Vec<Family> {
    let of = |(log, consumer): (String, Arc<OpenConsumer>)| {
        // One that is being changed has none.
        let status = ConsumerStatus::of(&consumer, wall_us).ok()?;
        let checkpoint_bytes = consumer.checkpoint_bytes.load(Relaxed);
        let labels = [log, consumer.name.clone()];
        Some(ConsumerFigures { labels, status, checkpoint_bytes })
    };
    let consumers: Vec<ConsumerFigures> = consumers.opened().into_iter().filter_map(of).collect();
    let labels = ["log", "consumer"];
    let series = || consumers.iter().map(|of| (of.labels.clone(), of));
    let mut families: Vec<Family> =
        FIGURES.iter().map(|figure| figure.of_every(labels, series())).collect();
    let ages = consumers
        .iter()
        .filter_map(|of| Some((of.labels.clone(), of.status.oldest_age_ms? as f64 / 1_000.0)));
    families.push(Family::of_every(
        Kind::Gauge,
        "wellspring_consumer_oldest_age_seconds",
        "Age of the oldest event that is neither settled nor parked, or that was not looked at.",
        labels,
        ages,
    ));
    families
}
