//! Figures of views: lag, and the cost of folding and snapshots.

use crate::stats::family::{Family, Kind, Value, scaled};
use crate::view::{Figures, State};

/// The figures of one view.
#[derive(Debug, Clone)]
pub(crate) struct ViewFigures {
    pub(crate) log: String,
    pub(crate) view: &'static str,
    pub(crate) figures: Figures,
    /// Age of the oldest event that is not folded; 0 if there is none.
    pub(crate) lag_us: u64,
}

type Pick = fn(&ViewFigures) -> Value;

pub(super) fn families(views: &[ViewFigures]) -> Vec<Family> {
    use Kind::{Counter, Gauge};
    let figures: [(&'static str, Kind, &'static str, Pick); 11] = [
        ("wellspring_view_position", Gauge, "Position up to which events are folded.", |v| {
            v.figures.progress.position.into()
        }),
        ("wellspring_view_lag_events", Gauge, "Durable events that are not yet folded.", |v| {
            let progress = v.figures.progress;
            progress.head.saturating_sub(progress.position).into()
        }),
        (
            "wellspring_view_lag_seconds",
            Gauge,
            "Age of the oldest event that is not yet folded.",
            |v| scaled(v.lag_us, 1e-6).into(),
        ),
        ("wellspring_view_answers", Gauge, "1 while the view is ready.", |v| {
            u64::from(v.figures.progress.state == State::Live).into()
        }),
        ("wellspring_view_folds_total", Counter, "Runs of the fold.", |v| v.figures.folds.into()),
        (
            "wellspring_view_fold_seconds_total",
            Counter,
            "Time spent folding, including reading the log.",
            |v| scaled(v.figures.fold_us, 1e-6).into(),
        ),
        ("wellspring_view_applied_events_total", Counter, "Events folded.", |v| {
            v.figures.applied.into()
        }),
        ("wellspring_view_snapshots_total", Counter, "Snapshots written.", |v| {
            v.figures.snapshots.into()
        }),
        ("wellspring_view_snapshot_seconds_total", Counter, "Time spent writing snapshots.", |v| {
            scaled(v.figures.snapshot_us, 1e-6).into()
        }),
        (
            "wellspring_view_snapshot_position",
            Gauge,
            "Position of the newest snapshot on disk.",
            |v| v.figures.progress.snapshot.into(),
        ),
        ("wellspring_view_snapshot_bytes", Gauge, "Size of the last snapshot written.", |v| {
            v.figures.snapshot_bytes.into()
        }),
    ];
    let labels =
        |view: &ViewFigures| vec![("log", view.log.clone()), ("view", view.view.to_owned())];
    let family = |(name, kind, help, pick): (_, _, _, Pick)| {
        let empty = Family::new(kind, name, help);
        views.iter().fold(empty, |family, view| family.with(labels(view), pick(view)))
    };
    figures.into_iter().map(family).collect()
}
