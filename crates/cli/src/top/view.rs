//! From figures to lines, for the terminal and for `--once` alike. What deserves a look is
//! red; no information is in colour alone.

use super::rates::{
    Answers, ConnectorFigures, ConsumerFigures, Figures, GraphFigures, IngestFigures, LogFigures,
    Quantile, RouteFigures, ViewFigures,
};
use crate::cluster::document::{EngineDocument, NodeDocument};
use ratatui::style::{Style, Stylize as _};
use ratatui::text::{Line, Span};
use std::cmp::Ordering;
use wellspring_readable::numbers::{bytes, count, duration, percent, significant};
use wellspring_readable::text::visible;

/// Rows of a table other than the routes' when there is not room for all.
const FEW: usize = 4;

/// Columns of the table of routes, from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Route,
    Requests,
    ClientErrors,
    ServerErrors,
    Mean,
    P50,
    P90,
    P99,
}

const COLUMNS: [(Column, &str); 8] = [
    (Column::Route, "Route"),
    (Column::Requests, "requests/s"),
    (Column::ClientErrors, "4xx/s"),
    (Column::ServerErrors, "5xx/s"),
    (Column::Mean, "mean"),
    (Column::P50, "p50"),
    (Column::P90, "p90"),
    (Column::P99, "p99"),
];

/// The order of routes: names ascending, figures descending; or reversed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    /// By which column.
    pub(super) column: Column,
    /// The other way round.
    pub(super) reversed: bool,
}

impl Default for Order {
    fn default() -> Order {
        Order { column: Column::Requests, reversed: false }
    }
}

impl Order {
    /// By the column `by` places to the right, wrapping around.
    pub(super) fn moved(self, by: usize) -> Order {
        let at = COLUMNS.iter().position(|(column, _)| *column == self.column).unwrap_or(0);
        Order { column: COLUMNS[(at + by) % COLUMNS.len()].0, reversed: false }
    }

    /// By the column to the left, and round.
    pub(super) fn moved_back(self) -> Order {
        self.moved(COLUMNS.len() - 1)
    }

    fn compare(self, a: &RouteFigures, b: &RouteFigures) -> Ordering {
        let time = |pick: fn(&super::rates::Latency) -> f64| {
            let of = |route: &RouteFigures| route.answers.latency.as_ref().map_or(-1.0, pick);
            of(b).total_cmp(&of(a))
        };
        let rate = |pick: fn(&Answers) -> f64| pick(&b.answers).total_cmp(&pick(&a.answers));
        let by_column = match self.column {
            Column::Route => a.route.cmp(&b.route),
            Column::Requests => rate(|a| a.requests_per_s),
            Column::ClientErrors => rate(|a| a.client_errors_per_s),
            Column::ServerErrors => rate(|a| a.server_errors_per_s),
            Column::Mean => time(|l| l.mean_us),
            Column::P50 => time(|l| l.p50.about_us),
            Column::P90 => time(|l| l.p90.about_us),
            Column::P99 => time(|l| l.p99.about_us),
        };
        let by_column = if self.reversed { by_column.reverse() } else { by_column };
        by_column.then_with(|| a.route.cmp(&b.route))
    }
}

/// The first line: which server, over what time.
pub(super) fn title(url: &str, figures: &Figures) -> Line<'static> {
    let mut spans = vec![
        "wellspring top  ".bold(),
        visible(url).into(),
        format!("  over {}", duration(figures.interval_s * 1e9)).into(),
    ];
    if figures.restarted {
        spans.push("  RESTARTED".red().bold());
    }
    Line::from(spans)
}

/// Everything else. With `height`, tables are cut to fit, and say so.
pub(super) fn lines(figures: &Figures, order: Order, height: Option<usize>) -> Vec<Line<'static>> {
    let mut lines = server(figures);
    lines.extend(figures.journal.as_ref().map(journal));
    let mut by_load: Vec<&LogFigures> = figures.logs.iter().collect();
    let load = |log: &LogFigures| log.events_per_s + log.appends_per_s + log.ingest.accepted_per_s;
    by_load.sort_by(|a, b| load(b).total_cmp(&load(a)).then_with(|| a.log.cmp(&b.log)));
    let graph = figures.graph.as_ref().map(graph).unwrap_or_default();
    let connectors = connectors(&figures.connectors);
    let consumers = consumers(&figures.consumers);
    let tables = [
        nodes(&figures.nodes),
        logs(&by_load),
        ingest(&by_load),
        views(&figures.views),
        connectors,
        consumers,
        graph,
    ];
    let routes = routes(&figures.routes, order);
    let wanted =
        lines.len() + tables.iter().chain([&routes]).map(|table| table.len() + 1).sum::<usize>();
    let cut = height.is_some_and(|height| wanted > height);
    // A table of only its head says nothing.
    for table in tables.into_iter().filter(|table| table.len() > 1) {
        lines.push(Line::default());
        lines.extend(shortened(table, if cut { FEW + 1 } else { usize::MAX }));
    }
    lines.push(Line::default());
    let room = height.map_or(usize::MAX, |height| height.saturating_sub(lines.len()).max(2));
    lines.extend(shortened(routes, room));
    lines
}

/// Truncates to `height` lines; the last one counts the lines left out.
fn shortened(mut table: Vec<Line<'static>>, most: usize) -> Vec<Line<'static>> {
    if table.len() > most {
        let more = table.len() + 1 - most;
        table.truncate(most - 1);
        table.push(Line::from(format!("… {more} more").dim()));
    }
    table
}

fn server(figures: &Figures) -> Vec<Line<'static>> {
    let server = &figures.server;
    let answers = &server.answers;
    let mut first = vec![
        format!("{} requests/s   ", significant(answers.requests_per_s)).bold(),
        format!("{} 4xx/s   ", significant(answers.client_errors_per_s)).into(),
        format!("{} refused/s   ", significant(answers.refusals_per_s)).into(),
        alarm(
            format!("{} 5xx/s", significant(answers.server_errors_per_s)),
            answers.server_errors_per_s > 0.0,
        ),
    ];
    if let Some(latency) = &answers.latency {
        let times = [("p50", latency.p50), ("p90", latency.p90), ("p99", latency.p99)];
        first.extend(times.map(|(name, time)| format!("   {name} {}", quantile(time)).into()));
    }
    let second = vec![
        format!("{} connections   ", count(server.connections)).into(),
        alarm(
            format!("{} turned away/s   ", significant(server.connections_refused_per_s)),
            server.connections_refused_per_s > 0.0,
        ),
        format!("{} subscribers   ", count(server.subscribers)).into(),
        format!("bodies {}   ", bytes(server.body_bytes as f64)).into(),
        format!("memory {}   ", bytes(server.resident_bytes as f64)).into(),
        format!("{} open files", count(server.open_files)).into(),
    ];
    let third = vec![
        format!("{} in flight   ", count(server.in_flight)).into(),
        format!("in {}/s   ", bytes(server.received_bytes_per_s)).into(),
        format!("out {}/s   ", bytes(server.sent_bytes_per_s)).into(),
        format!("processors {}   ", percent(server.processors)).into(),
        format!("{} threads", count(server.threads)).into(),
    ];
    vec![Line::from(first), Line::from(second), Line::from(third)]
}

/// Whether a node of several reaches what orders its logs.
fn journal(engine: &EngineDocument) -> Line<'static> {
    let reach = if engine.connected { "connected" } else { "NOT REACHED" };
    let mut spans = vec![
        format!("journal {} ", visible(&engine.kind)).into(),
        alarm(reach.to_owned(), !engine.connected),
    ];
    spans.extend(engine.trouble.as_ref().map(|trouble| format!(": {}", visible(trouble)).into()));
    Line::from(spans)
}

fn nodes(nodes: &[NodeDocument]) -> Vec<Line<'static>> {
    let head = ["Node", "role", "system head", "version", "url"];
    let row = |node: &NodeDocument| {
        let known = |text: Option<String>| Span::from(text.unwrap_or_else(|| "-".to_owned()));
        let role = match (&node.role, node.reachable) {
            (Some(role), true) => visible(role),
            (_, true) => "-".to_owned(),
            (_, false) => "NOT REACHED".to_owned(),
        };
        let is_bad = !node.reachable || role == "detached";
        vec![
            visible(&node.node).into(),
            alarm(role, is_bad),
            known(node.position.map(count)),
            known(node.version.as_deref().map(visible)),
            visible(&node.url).into(),
        ]
    };
    table(head.map(Span::from).to_vec(), nodes.iter().map(row).collect())
}

fn logs(logs: &[&LogFigures]) -> Vec<Line<'static>> {
    let head = [
        "Log",
        // What matters most is never cut off at the right.
        "state",
        "head",
        "appends/s",
        "events/s",
        "conflicts/s",
        "replays/s",
        "batches/s",
        "events/batch",
        "bytes/batch",
        "barrier",
        "p99",
        "busy",
        "staged",
        "on disk",
        "segments",
        "subscribers",
    ];
    let row = |log: &&LogFigures| {
        // The worst, in the order of `/health/ready`.
        let (state, is_bad) = match log {
            LogFigures { closed: true, .. } => ("NO APPENDS", true),
            LogFigures { role: Some(role), .. } if role == "detached" => ("DETACHED", true),
            LogFigures { damaged_segments: 1.., .. } => ("DAMAGED", true),
            LogFigures { storage_full: true, .. } => ("DISK FULL", true),
            LogFigures { role: Some(role), .. } => (role.as_str(), false),
            LogFigures { role: None, .. } => ("ok", false),
        };
        vec![
            visible(&log.log).into(),
            alarm(visible(state), is_bad),
            count(log.head).into(),
            significant(log.appends_per_s).into(),
            significant(log.events_per_s).into(),
            significant(log.conflicts_per_s).into(),
            significant(log.replays_per_s).into(),
            significant(log.batches_per_s).into(),
            log.events_per_batch.map_or("-".into(), |mean| significant(mean).into()),
            log.bytes_per_batch.map_or("-".into(), |mean| bytes(mean).into()),
            log.barrier_us.map_or("-".into(), |mean| time(mean).into()),
            log.barrier_p99.map_or("-".into(), |p99| quantile(p99).into()),
            percent(log.barrier_share).into(),
            bytes(log.staged_bytes as f64).into(),
            bytes(log.disk_bytes as f64).into(),
            count(log.segments).into(),
            count(log.subscribers).into(),
        ]
    };
    table(head.map(Span::from).to_vec(), logs.iter().map(row).collect())
}

fn ingest(logs: &[&LogFigures]) -> Vec<Line<'static>> {
    let head = [
        "Ingest",
        "state",
        "accepted/s",
        "stored/s",
        "shed/s",
        "dropped/s",
        "in flight",
        "bytes",
        "room",
        "window",
        "longest",
    ];
    let row = |log: &&LogFigures| {
        let IngestFigures { storage_full, overflow, .. } = &log.ingest;
        let ingest = &log.ingest;
        let state = match (storage_full, overflow) {
            (true, _) => "DISK FULL".to_owned(),
            (false, Some(overflow)) => format!("{} when full", visible(overflow)),
            (false, None) => "-".to_owned(),
        };
        vec![
            visible(&log.log).into(),
            alarm(state, *storage_full),
            significant(ingest.accepted_per_s).into(),
            significant(ingest.stored_per_s).into(),
            alarm(significant(ingest.shed_per_s), ingest.shed_per_s > 0.0),
            alarm(significant(ingest.dropped_per_s), ingest.dropped_per_s > 0.0),
            count(ingest.in_flight_events).into(),
            bytes(ingest.in_flight_bytes as f64).into(),
            ingest.room_bytes.map_or("-".into(), |room| bytes(room as f64).into()),
            duration(ingest.window_last_us as f64 * 1e3).into(),
            duration(ingest.window_longest_us as f64 * 1e3).into(),
        ]
    };
    table(head.map(Span::from).to_vec(), logs.iter().map(row).collect())
}

fn views(views: &[ViewFigures]) -> Vec<Line<'static>> {
    let head = ["View", "log", "state", "position", "lag", "behind", "folded/s"];
    let row = |view: &ViewFigures| {
        let known = if view.answers { "answers" } else { "does not answer" };
        let state = view.state.as_deref().map_or_else(|| known.to_owned(), visible);
        vec![
            visible(&view.view).into(),
            visible(&view.log).into(),
            alarm(state, !view.answers),
            count(view.position).into(),
            count(view.lag_events).into(),
            duration((view.lag_s * 1e9).round()).into(),
            significant(view.folded_per_s).into(),
        ]
    };
    table(head.map(Span::from).to_vec(), views.iter().map(row).collect())
}

fn connectors(connectors: &[ConnectorFigures]) -> Vec<Line<'static>> {
    let head =
        ["Connector", "kind", "state", "behind", "events/s", "bytes/s", "restarts", "set aside"];
    let row = |connector: &ConnectorFigures| {
        let (state, is_bad) = match connector {
            ConnectorFigures { stopped: true, .. } => ("STOPPED", true),
            ConnectorFigures { running: true, .. } => ("running", false),
            _ => ("not running", false),
        };
        vec![
            visible(&connector.name).into(),
            connector.kind.into(),
            alarm(state.to_owned(), is_bad),
            count(connector.lag).into(),
            significant(connector.events_per_s).into(),
            bytes(connector.bytes_per_s).into(),
            count(connector.restarts).into(),
            alarm(count(connector.set_aside), connector.set_aside > 0),
        ]
    };
    table(head.map(Span::from).to_vec(), connectors.iter().map(row).collect())
}

fn consumers(consumers: &[ConsumerFigures]) -> Vec<Line<'static>> {
    let head = [
        "Consumer",
        "log",
        "state",
        "behind",
        "oldest",
        "in flight",
        "done/s",
        "again/s",
        "parked",
        "workers",
    ];
    let row = |consumer: &ConsumerFigures| {
        let state = if consumer.running { "running" } else { "not running" };
        vec![
            visible(&consumer.name).into(),
            visible(&consumer.log).into(),
            alarm(state.to_owned(), !consumer.running),
            count(consumer.lag).into(),
            duration(consumer.oldest_us as f64 * 1e3).into(),
            count(consumer.in_flight).into(),
            significant(consumer.settled_per_s).into(),
            significant(consumer.again_per_s).into(),
            alarm(count(consumer.parked), consumer.parked > 0),
            count(consumer.workers).into(),
        ]
    };
    table(head.map(Span::from).to_vec(), consumers.iter().map(row).collect())
}

fn graph(graph: &GraphFigures) -> Vec<Line<'static>> {
    let cells = [
        ("Graph", String::new()),
        ("reads/s", significant(graph.reads_per_s)),
        ("writes/s", significant(graph.writes_per_s)),
        ("commits/s", significant(graph.commits_per_s)),
        ("overtaken/s", significant(graph.overtaken_per_s)),
        ("outdated/s", significant(graph.outdated_per_s)),
        ("limited/s", significant(graph.limited_per_s)),
        ("open", count(graph.open_transactions)),
        ("expired/s", significant(graph.expired_per_s)),
        ("plans kept", graph.plan_share.map_or("-".into(), percent)),
        ("nodes", count(graph.nodes)),
        ("relationships", count(graph.relationships)),
        ("Bolt", count(graph.bolt_connections)),
        ("messages/s", significant(graph.bolt_messages_per_s)),
        ("failures/s", significant(graph.bolt_failures_per_s)),
    ];
    let (head, mut row): (Vec<Span<'static>>, Vec<Span<'static>>) =
        cells.into_iter().map(|(name, cell)| (Span::from(name), Span::from(cell))).unzip();
    row[0] = "all logs".into();
    table(head, vec![row])
}

fn routes(routes: &[RouteFigures], order: Order) -> Vec<Line<'static>> {
    let mut sorted: Vec<&RouteFigures> = routes.iter().collect();
    sorted.sort_by(|a, b| order.compare(a, b));
    let head = COLUMNS.map(|(column, name)| {
        if column != order.column {
            return Span::from(name);
        }
        // Names ascend unless the order is reversed; figures descend.
        let falls = (column == Column::Route) == order.reversed;
        format!("{name} {}", if falls { '▼' } else { '▲' }).underlined()
    });
    let row = |route: &&RouteFigures| {
        let answers = &route.answers;
        let latency = answers.latency.as_ref();
        let shown = |text: Option<String>| Span::from(text.unwrap_or_else(|| "-".to_owned()));
        vec![
            visible(&route.route).into(),
            significant(answers.requests_per_s).into(),
            significant(answers.client_errors_per_s).into(),
            alarm(significant(answers.server_errors_per_s), answers.server_errors_per_s > 0.0),
            shown(latency.map(|l| time(l.mean_us))),
            shown(latency.map(|l| quantile(l.p50))),
            shown(latency.map(|l| quantile(l.p90))),
            shown(latency.map(|l| quantile(l.p99))),
        ]
    };
    table(head.to_vec(), sorted.iter().map(row).collect())
}

/// Columns as wide as their widest cell; the first one to the left, the others to the right.
fn table(head: Vec<Span<'static>>, rows: Vec<Vec<Span<'static>>>) -> Vec<Line<'static>> {
    let mut widths = vec![0; head.len()];
    for row in rows.iter().chain([&head]) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let line = |row: Vec<Span<'static>>, style: Style| {
        let mut spans = Vec::with_capacity(row.len() * 2);
        for (at, (cell, width)) in row.into_iter().zip(&widths).enumerate() {
            let gap = " ".repeat(width - cell.width() + if at > 0 { 2 } else { 0 });
            if at == 0 {
                spans.extend([cell, gap.into()]);
            } else {
                spans.extend([gap.into(), cell]);
            }
        }
        Line::from(spans).style(style)
    };
    let mut lines = vec![line(head, Style::new().bold())];
    lines.extend(rows.into_iter().map(|row| line(row, Style::new())));
    lines
}

fn alarm(text: String, bad: bool) -> Span<'static> {
    if bad { text.red().bold() } else { text.into() }
}

fn time(us: f64) -> String {
    duration((us * 1000.0).round())
}

fn quantile(quantile: Quantile) -> String {
    let above = if quantile.at_most_us.is_none() { ">" } else { "" };
    format!("{above}{}", time(quantile.about_us))
}
