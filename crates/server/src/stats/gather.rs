//! All figures of a server at one moment: what `/metrics` shows, and what is exported.

use super::family::{Family, Kind};
use super::{LogFigures, ViewFigures, logs, process, views};
use crate::http::{Shell, routes};
use wellspring_log::LogStats;
use wellspring_types::Position;

/// Everything there is to tell. Asks the file system, so not for a serving thread.
pub(crate) fn gather(shell: &Shell) -> Vec<Family> {
    let stats = &shell.stats;
    let mut families = stats.requests.families(&routes::names());
    families.extend(stats.connections());
    families.extend(shell.audit.families());
    families.extend(shell.otlp.families());
    families.extend(logs::families(&log_figures(shell)));
    families.extend(views::families(&view_figures(shell)));
    if let Some(links) = shell.node.link_count() {
        families.push(Family::gauge("wellspring_links", "Links ever made.", links));
    }
    families.extend(shell.tls.iter().flat_map(|tls| tls.families()));
    families.extend(process::families());
    let uptime_us = shell.clock.monotonic_us().saturating_sub(stats.started_us);
    families.push(Family::gauge(
        "wellspring_uptime_seconds",
        "Time since the server was ready to start.",
        uptime_us as f64 / 1e6,
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
    Family::new(Kind::Gauge, "wellspring_build_info", "Always 1; what is running.").with(labels, 1)
}

fn log_figures(shell: &Shell) -> Vec<LogFigures> {
    let now_us = shell.clock.wall_us();
    let figures = |(log, stats, account): (String, LogStats, _)| {
        let last_us = Some(stats.last_recorded_at_us).filter(|&us| us > 0);
        LogFigures {
            subscribers: shell.stats.subscribers_of(&log),
            idle_us: last_us.map(|us| now_us.saturating_sub(us)),
            log,
            stats,
            account,
        }
    };
    shell.node.figures().into_iter().map(figures).collect()
}

fn view_figures(shell: &Shell) -> Vec<ViewFigures> {
    let now_us = shell.clock.wall_us();
    let figures = |(log, view, figures): (String, _, crate::view::Figures)| {
        let oldest_us = oldest_after(shell, &log, figures.progress.position);
        let lag_us = oldest_us.map_or(0, |oldest_us| now_us.saturating_sub(oldest_us));
        ViewFigures { log, view, figures, lag_us }
    };
    shell.node.view_figures().into_iter().map(figures).collect()
}

/// When the event after a position was recorded; `None` if there is none, or it cannot be read.
fn oldest_after(shell: &Shell, log: &str, position: Position) -> Option<u64> {
    let snapshot = shell.node.get(log)?.snapshot();
    snapshot.at(position + 1, |record| record.recorded_at_us()).ok()?
}
