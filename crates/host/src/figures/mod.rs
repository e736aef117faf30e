//! All figures of a server at one moment, for `/metrics` and for export.
//!
//! ```text
//! counters (stats) ──────┐
//! audit, otlp, tls ──────┼─► gather ─► families ─► stats::prometheus (text), otlp (export)
//! logs, views, device, process ┘
//! ```

mod device;
mod logs;
mod process;
mod shared;
mod views;

use crate::audit::Audit;
use crate::backup::Backups;
use crate::node::Node;
use crate::otlp::Otlp;
use crate::scrub::Scrubs;
use crate::stats::Stats;
use crate::stats::family::{Family, Kind};
use crate::tls::Tls;
use logs::LogFigures;
use shared::SharedFigures;
use views::ViewFigures;
use wellspring_log::{Clock, Log, LogStats};
use wellspring_types::Position;

/// The parts of a server with figures.
pub(crate) struct Sources<'a> {
    pub(crate) stats: &'a Stats,
    /// Whether `/health/ready` answers 200 now.
    pub(crate) is_ready: bool,
    pub(crate) audit: &'a Audit,
    pub(crate) backups: &'a Backups,
    pub(crate) scrubs: &'a Scrubs,
    pub(crate) otlp: &'a Otlp,
    pub(crate) node: &'a Node,
    pub(crate) tls: Option<&'a Tls>,
    pub(crate) clock: &'a dyn Clock,
    /// The figures of the faces.
    pub(crate) face_families: &'a [Family],
}

/// The figures of all parts. Reads the file system, so not for a serving thread.
pub(crate) fn gather(sources: &Sources<'_>) -> Vec<Family> {
    let Sources {
        stats, is_ready, audit, backups, scrubs, otlp, tls, clock, face_families, ..
    } = sources;
    let mut families = stats.request_families();
    families.extend(stats.connection_families());
    families.push(Family::gauge(
        "wellspring_ready",
        "1 while /health/ready answers 200.",
        u64::from(*is_ready),
    ));
    families.extend(audit.families());
    families.extend(backups.families());
    families.extend(scrubs.families());
    families.extend(otlp.families());
    let logs = log_figures(sources);
    families.extend(logs::families(&logs));
    families.extend(shared::families(&logs));
    families.extend(shared::lead_families(sources.node, &logs));
    let engine = sources.node.cluster().map(|cluster| cluster.engine.status());
    families.extend(engine.iter().flat_map(shared::engine_families));
    families.extend(views::families(&view_figures(sources)));
    families.extend(face_families.iter().cloned());
    families.extend(tls.iter().flat_map(|tls| tls.families()));
    families.extend(device::families(sources.node.data()));
    families.extend(process::families());
    families.push(Family::gauge(
        "wellspring_uptime_seconds",
        "Time since the server started.",
        stats.uptime_us(clock.monotonic_us()) as f64 / 1e6,
    ));
    families.push(build());
    families
}

fn build() -> Family {
    let labels = vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("os", std::env::consts::OS.to_owned()),
        ("arch", std::env::consts::ARCH.to_owned()),
    ];
    Family::new(
        Kind::Gauge,
        "wellspring_build_info",
        "Always 1; the labels describe what is running.",
    )
    .with(labels, 1)
}

fn log_figures(sources: &Sources<'_>) -> Vec<LogFigures> {
    let now_us = sources.clock.wall_us();
    let figures = |(log, stats, account): (String, LogStats, _)| {
        let last_us = Some(stats.last_recorded_at_us).filter(|&us| us > 0);
        LogFigures {
            subscribers: sources.stats.subscribers_of(&log),
            idle_us: last_us.map(|us| now_us.saturating_sub(us)),
            shared: sources.node.get(&log).and_then(|log| shared_figures(&log)),
            log,
            stats,
            account,
        }
    };
    sources.node.figures().into_iter().map(figures).collect()
}

/// The figures of the copy of a shared log; `None` for a log of files.
fn shared_figures(log: &Log) -> Option<SharedFigures> {
    let stats = log.shared_stats()?;
    Some(SharedFigures { role: log.role(), role_changes: log.role_changes().head(), stats })
}

fn view_figures(sources: &Sources<'_>) -> Vec<ViewFigures> {
    let now_us = sources.clock.wall_us();
    let figures = |(log, view, figures): (String, _, crate::view::Figures)| {
        let oldest_us = oldest_after(sources.node, &log, figures.progress.position);
        let lag_us = oldest_us.map_or(0, |oldest_us| now_us.saturating_sub(oldest_us));
        ViewFigures { log, view, figures, lag_us }
    };
    sources.node.view_figures().into_iter().map(figures).collect()
}

/// The recording time of the event after a position; `None` if there is none or it cannot be read.
fn oldest_after(node: &Node, log: &str, position: Position) -> Option<u64> {
    let snapshot = node.get(log)?.snapshot();
    snapshot.at(position + 1, |record| record.recorded_at_us()).ok()?
}

#[cfg(test)]
mod tests;
