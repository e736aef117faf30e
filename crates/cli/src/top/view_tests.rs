//! Tests of the shown text.

use super::rates::{Figures, between};
use super::rates_tests::sample;
use super::sample::{Graphs, Intake, Log, Process, Route, Sample, UNBOUNDED, View};
use super::view::{Column, Order, lines, title};
use crate::cluster::document::{ClusterDocument, EngineDocument, NodeDocument};
use ratatui::style::Color;

fn figures() -> Figures {
    let mut before = sample(0, &[(200, 100)], &[]);
    before.logs.insert("main".to_owned(), Log::default());
    let within_us = [(1_000, 1_900), (5_000, 2_000), (UNBOUNDED, 2_010)];
    let mut now = sample(1, &[(200, 2_100), (404, 10)], &within_us);
    let slow = Route {
        statuses: [(503, 3)].into(),
        within_us: [(1_000, 0), (UNBOUNDED, 3)].into(),
        sum_s: 3.0,
    };
    now.routes.insert("POST /slow".to_owned(), slow);
    let main = Log {
        head: 12_345,
        appends: 50,
        events: 200,
        batches: 20,
        batch_bytes: 8_000,
        barrier_us: 10_000,
        barriers_within_us: [(100, 5), (300, 20), (UNBOUNDED, 20)].into(),
        subscribers: 2,
        staged_bytes: 2048,
        disk_bytes: 1 << 20,
        segments: 1,
        accepted_events: 150,
        shed_events: 4,
        partitions: 2,
        storage_full: 1,
        window_last_us: 231,
        ..Log::default()
    };
    now.logs.insert("main".to_owned(), main);
    now.logs.insert("audit".to_owned(), Log::default());
    let view = View {
        position: 12_000,
        lag_events: 345,
        lag_us: 1_500_000,
        answers: 0,
        state: Some("rebuilding".to_owned()),
    };
    now.views.insert(("main".to_owned(), "links".to_owned()), view);
    now.intake = Some(Intake { overflow: "block".to_owned(), partition_bytes: 8 << 20 });
    now.process = Process {
        subscribers: 3,
        in_flight: 4,
        received_bytes: 2048,
        sent_bytes: 1 << 20,
        cpu_us: 500_000,
        threads: 9,
        ..Process::default()
    };
    between(&before, &now)
}

fn text(figures: &Figures, order: Order, height: Option<usize>) -> Vec<String> {
    lines(figures, order, height)
        .iter()
        .map(|line| line.to_string().trim_end().to_owned())
        .collect()
}

/// The cells of the first line that begins so.
fn cells(text: &[String], start: &str) -> Vec<String> {
    let line = text.iter().find(|line| line.starts_with(start));
    let line =
        line.unwrap_or_else(|| panic!("no line begins with {start} in\n{}", text.join("\n")));
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_log_in_trouble_says_so() {
    for (appends_full, damaged_segments, closed, state) in
        [(0, 0, 0, "ok"), (1, 0, 0, "DISK FULL"), (1, 2, 0, "DAMAGED"), (0, 1, 1, "NO APPENDS")]
    {
        let mut now = sample(1, &[(200, 1)], &[]);
        let log = Log { appends_full, damaged_segments, closed, ..Log::default() };
        now.logs.insert("main".to_owned(), log);
        let figures = between(&sample(0, &[(200, 1)], &[]), &now);
        let text: Vec<String> =
            lines(&figures, Order::default(), None).iter().map(ToString::to_string).collect();
        let row = text.iter().skip_while(|line| !line.starts_with("Log")).nth(1);
        let at = row.and_then(|row| row.find(state));
        assert!(at.is_some_and(|at| at < 20), "a narrow terminal shows {state}: {text:?}");
    }
}

#[test]
fn graphs_have_a_line_when_they_are_used() {
    let before = sample(0, &[(200, 1)], &[]);
    let mut now = sample(2, &[(200, 1)], &[]);
    let shown = |now: &Sample| text(&between(&before, now), Order::default(), None);
    assert!(!shown(&now).iter().any(|line| line.starts_with("Graph")));
    now.graphs = Graphs {
        reading: 30,
        writing: 10,
        commits: 8,
        overtaken: 2,
        limited: 4,
        plan_hits: 39,
        plan_misses: 1,
        open_transactions: 3,
        nodes: 12_345,
        relationships: 7,
        bolt_connections: 5,
        bolt_messages: 60,
        bolt_failures: 2,
        ..Graphs::default()
    };
    let text = shown(&now);
    assert_eq!(
        cells(&text, "all logs"),
        [
            "all logs", "15.0", "5.00", "4.00", "1.00", "0", "2.00", "3", "0", "97.5%", "12,345",
            "7", "5", "30.0", "1.00"
        ]
    );
}

#[test]
fn every_figure_has_its_place() {
    let text = text(&figures(), Order::default(), None);
    assert!(
        text[0].starts_with("2,013 requests/s   10.0 4xx/s   0 refused/s   3.00 5xx/s   p50 "),
        "{}",
        text[0]
    );
    assert!(text[1].contains("3 subscribers"), "{}", text[1]);
    assert_eq!(
        text[2],
        "4 in flight   in 2.00 KiB/s   out 1.00 MiB/s   processors 50.0%   9 threads"
    );
    assert_eq!(
        cells(&text, "main"),
        [
            "main", "ok", "12,345", "50.0", "200", "0", "0", "20.0", "10.0", "400 B", "500 µs",
            "297 µs", "1.0%", "2.00 KiB", "1.00 MiB", "1", "2"
        ]
    );
    let ingest = text.iter().position(|line| line.starts_with("Ingest")).unwrap();
    assert_eq!(
        cells(&text[ingest..], "main"),
        ["main", "DISK FULL", "150", "0", "4.00", "0", "0", "0 B", "16.0 MiB", "231 µs", "0 ns"]
    );
    assert_eq!(
        cells(&text, "links"),
        ["links", "main", "rebuilding", "12,000", "345", "1.50 s", "0"]
    );
    let route = cells(&text, "GET /x");
    assert_eq!(route[..5], ["GET /x", "2,010", "10.0", "0", "2.00 ms"]);
    assert_eq!(cells(&text, "POST /slow")[4..], ["1.00 s", ">1.00 ms", ">1.00 ms", ">1.00 ms"]);
    // The busiest log is the first, and columns stand below each other.
    let (main, audit) = (
        text.iter().position(|l| l.starts_with("main")),
        text.iter().position(|l| l.starts_with("audit")),
    );
    assert!(main < audit);
    let end = |start: &str| text.iter().find(|l| l.starts_with(start)).unwrap().chars().count();
    assert_eq!(end("GET /x"), end("POST /slow"));
}

#[test]
fn what_deserves_a_look_is_red_and_nothing_else() {
    let red = |figures: &Figures| -> Vec<String> {
        let lines = lines(figures, Order::default(), None);
        let spans = lines.iter().flat_map(|line| &line.spans);
        let red = spans.filter(|span| span.style.fg == Some(Color::Red));
        red.map(|span| span.content.to_string()).collect()
    };
    assert_eq!(red(&figures()), ["3.00 5xx/s", "DISK FULL", "4.00", "rebuilding", "3.00"]);
    let well = Sample::read(0, include_str!("metrics.txt")).unwrap();
    assert_eq!(red(&between(&well, &well)), [""; 0]);
}

#[test]
fn routes_are_sorted_by_any_column_and_say_which() {
    let figures = figures();
    let shown = |column, reversed| {
        let text = text(&figures, Order { column, reversed }, None);
        let at = text.iter().position(|line| line.starts_with("Route")).unwrap();
        let first = text[at + 1].split("  ").next().unwrap().to_owned();
        let marked =
            cells(&text[at..], "Route").into_iter().find(|c| c.contains(['▲', '▼'])).unwrap();
        format!("{marked}: {first}")
    };
    assert_eq!(shown(Column::Requests, false), "requests/s ▼: GET /x");
    assert_eq!(shown(Column::Requests, true), "requests/s ▲: POST /slow");
    assert_eq!(shown(Column::Route, false), "Route ▲: GET /x");
    assert_eq!(shown(Column::Route, true), "Route ▼: POST /slow");
    assert_eq!(shown(Column::ServerErrors, false), "5xx/s ▼: POST /slow");
    assert_eq!(shown(Column::Mean, false), "mean ▼: GET /x".replace("GET /x", "POST /slow"));
}

#[test]
fn what_does_not_fit_is_counted() {
    let mut figures = figures();
    for name in 0..20 {
        figures.logs.push(super::rates::LogFigures {
            log: format!("log{name:02}"),
            ..figures.logs[0].clone()
        });
        figures.routes.push(super::rates::RouteFigures {
            route: format!("GET /{name:02}"),
            ..figures.routes[0].clone()
        });
    }
    assert!(text(&figures, Order::default(), None).len() > 70);
    let cut = text(&figures, Order::default(), Some(24));
    assert_eq!(cut.len(), 24);
    let more: Vec<_> = cut.iter().filter(|line| line.starts_with('…')).collect();
    assert_eq!(more[..2], ["… 19 more", "… 19 more"]);
    assert_eq!(more.len(), 3, "{}", cut.join("\n"));
    assert!(text(&figures, Order::default(), Some(0)).len() < 30, "no panic without any room");
}

#[test]
fn what_comes_from_outside_cannot_drive_the_terminal() {
    let mut figures = figures();
    figures.routes[0].route = "GET /\u{1b}[2J".to_owned();
    figures.logs[0].log = "a\nb".to_owned();
    let all = text(&figures, Order::default(), None).join("|");
    assert!(!all.contains(['\u{1b}', '\n']), "{all}");
    figures.restarted = true;
    let title = title("http://h\u{7}", &figures).to_string();
    assert_eq!(title, "wellspring top  http://h\u{fffd}  over 1.00 s  RESTARTED");
}

#[test]
fn a_node_of_several_shows_all_of_them_and_its_roles() {
    let node = |node: &str, role: Option<&str>| NodeDocument {
        node: node.to_owned(),
        url: format!("http://{node}:1"),
        version: role.map(|_| "0.1.0".to_owned()),
        applied_index: None,
        reachable: role.is_some(),
        error: None,
        role: role.map(str::to_owned),
        position: role.map(|_| 7),
    };
    let mut now = sample(1, &[(200, 1)], &[]);
    let of_role = |role: &str| Log { role: Some(role.to_owned()), epoch: 9, ..Log::default() };
    now.logs.insert("main".to_owned(), of_role("following"));
    now.logs.insert("lost".to_owned(), of_role("detached"));
    now.cluster = Some(ClusterDocument {
        node: Some("a".to_owned()),
        journal: "postgres".to_owned(),
        engine: Some(EngineDocument {
            kind: "postgres".to_owned(),
            connected: false,
            trouble: Some("refused".to_owned()),
            durable: "one server".to_owned(),
            reconnects: 0,
            group: None,
        }),
        leader: None,
        nodes: vec![node("a", Some("leading")), node("b", None)],
        logs: Vec::new(),
    });
    let mut before = now.clone();
    before.at_ns = 0;
    before.logs.insert("main".to_owned(), Log { epoch: 8, ..of_role("leading") });
    let figures = between(&before, &now);
    assert!(!figures.restarted, "another leader is no restart");
    let lines: Vec<String> =
        lines(&figures, Order::default(), None).iter().map(ToString::to_string).collect();
    let text = lines.join("\n");
    let not_reached = "journal postgres NOT REACHED: refused";
    for part in ["Node", "leading", not_reached, "http://b:1", "following", "DETACHED"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}
