//! Tables of ingest: what each server did, and Wellspring against the better floor and the general
//! stack. Ratios are made within a round; the better floor is the one with the better median of
//! that figure.

use crate::{
    flags::{Flags, Outcome},
    report::{in_order, ratio_spread, spread},
    row::{self, Row},
    sample::median,
};

/// Names of servers that begin so store nothing and are as fast as we can make them.
const FLOOR: &str = "floor-";
/// The name of the hello-world on hyper.
const HYPER: &str = "hyper";
/// Share of a core from which on the client is the limit.
const CLIENT_LIMITED: f64 = 0.8;

/// One figure of a row.
type Figure = fn(&Row) -> Option<f64>;

/// `wsbench ingest-report --file …`: ratios to floors and hyper; with `--against`, to that server.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let file: String = flags.required("file")?;
    let against: Option<String> = flags.optional("against")?;
    flags.finish()?;
    let rows = row::read(&file)?;
    let of = |measurement: &str| -> Vec<&Row> {
        rows.iter().filter(|row| row.measurement == measurement).collect()
    };
    let (ingest, counted) = (of("ingest"), of("read-counter"));
    if !ingest.is_empty() {
        print_figures(&ingest);
        match against {
            None => print_ratios(&ingest),
            Some(base) => print_against(&ingest, &base),
        }
    }
    if !counted.is_empty() {
        print_reads(&counted);
    }
    Ok(())
}

fn figures(rows: &[&Row], case: &str, server: &str, figure: Figure) -> Vec<(u32, f64)> {
    rows.iter()
        .filter(|row| row.case == case && row.server == server)
        .filter_map(|row| Some((row.round, figure(row)?)))
        .collect()
}

fn values(figures: &[(u32, f64)]) -> Vec<f64> {
    figures.iter().map(|&(_, value)| value).collect()
}

pub(crate) fn print_figures(rows: &[&Row]) {
    println!(
        "| load | server | requests/s | p50, µs | p99, µs | server CPU, µs a request | client, cores |"
    );
    println!("|---|---|---|---|---|---|---|");
    for case in in_order(rows.iter().map(|row| row.case.as_str())) {
        for server in in_order(rows.iter().map(|row| row.server.as_str())) {
            let shown = |figure: Figure| spread(&values(&figures(rows, case, server, figure)));
            let busy = median(&values(&figures(rows, case, server, |row| row.client_busy)));
            let limited = if busy > CLIENT_LIMITED { " **client-limited**" } else { "" };
            println!(
                "| {case} | {server} | {} | {} | {} | {} | {busy:.2}{limited} |",
                shown(|row| Some(row.value)),
                shown(|row| row.p50_us),
                shown(|row| row.p99_us),
                precise(&values(&figures(rows, case, server, |row| row.server_us))),
            );
        }
    }
}

/// Like [`spread`], for microseconds below ten, where the first decimal is too coarse.
fn precise(values: &[f64]) -> String {
    if values.is_empty() {
        return "–".into();
    }
    ratio_spread(values)
}

fn print_ratios(rows: &[&Row]) {
    let servers = in_order(rows.iter().map(|row| row.server.as_str()));
    let floors: Vec<_> = servers.iter().copied().filter(|name| name.starts_with(FLOOR)).collect();
    let hyper: Vec<_> = servers.iter().copied().filter(|&name| name == HYPER).collect();
    if floors.is_empty() && hyper.is_empty() {
        return;
    }
    println!(
        "\n| load | server | rate ÷ better floor's | rate ÷ hyper's | floor's CPU ÷ its | hyper's CPU ÷ its | \
         p50 ÷ floor's | p99 ÷ floor's |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let (rate, cpu): (Figure, Figure) = (|row| Some(row.value), |row| row.server_us);
    for case in in_order(rows.iter().map(|row| row.case.as_str())) {
        for &server in servers.iter().filter(|name| !floors.contains(name) && **name != HYPER) {
            let against = |peers: &[&str], figure: Figure, better: Better| {
                let peer = best_of(rows, case, peers, figure, better);
                ratio(rows, case, server, peer, figure, false)
            };
            let cpu_against = |peers: &[&str]| {
                let peer = best_of(rows, case, peers, cpu, Better::Lower);
                ratio(rows, case, server, peer, cpu, true)
            };
            println!(
                "| {case} | {server} | {} | {} | {} | {} | {} | {} |",
                against(&floors, rate, Better::Higher),
                against(&hyper, rate, Better::Higher),
                cpu_against(&floors),
                cpu_against(&hyper),
                against(&floors, |row| row.p50_us, Better::Lower),
                against(&floors, |row| row.p99_us, Better::Lower),
            );
        }
    }
    println!(
        "\nMedians over rounds (lowest … highest); ratios are made within each round, against the floor with the \
         better median of that figure. Where the client is the limit, the ratio of rates says little and that of \
         CPU time, floor's or hyper's over its own, says what the server could do: 1 is as cheap, below 1 dearer."
    );
}

pub(crate) fn print_against(rows: &[&Row], base: &str) {
    println!("\n| load | server | rate ÷ {base}'s | CPU ÷ | p50 ÷ | p99 ÷ |");
    println!("|---|---|---|---|---|---|");
    for case in in_order(rows.iter().map(|row| row.case.as_str())) {
        for server in in_order(rows.iter().map(|row| row.server.as_str())) {
            if server != base {
                let to = |figure: Figure| ratio(rows, case, server, Some(base), figure, false);
                println!(
                    "| {case} | {server} | {} | {} | {} | {} |",
                    to(|row| Some(row.value)),
                    to(|row| row.server_us),
                    to(|row| row.p50_us),
                    to(|row| row.p99_us),
                );
            }
        }
    }
    println!("\nMedians over rounds (lowest … highest); ratios are made within each round.");
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    Higher,
    Lower,
}

fn best_of<'a>(
    rows: &[&Row],
    case: &str,
    peers: &[&'a str],
    figure: Figure,
    better: Better,
) -> Option<&'a str> {
    let merit = |server: &str| {
        let middle = median(&values(&figures(rows, case, server, figure)));
        if better == Better::Higher { middle } else { -middle }
    };
    let there = peers.iter().copied().filter(|peer| !figures(rows, case, peer, figure).is_empty());
    there.max_by(|a, b| merit(a).total_cmp(&merit(b)))
}

/// Ours over the peer's (or, turned round, the peer's over ours) in each round that has both.
fn ratio(
    rows: &[&Row],
    case: &str,
    ours: &str,
    peer: Option<&str>,
    figure: Figure,
    turned: bool,
) -> String {
    let Some(peer) = peer else { return "–".into() };
    let theirs = figures(rows, case, peer, figure);
    let ratios: Vec<f64> = figures(rows, case, ours, figure)
        .into_iter()
        .filter_map(|(round, mine)| {
            let (_, other) = theirs.iter().find(|(number, _)| *number == round)?;
            Some(if turned { other / mine } else { mine / other })
        })
        .collect();
    // Which of the floors it is differs from figure to figure.
    let name = peer.strip_prefix(FLOOR).map(|name| format!(" [{name}]")).unwrap_or_default();
    if ratios.is_empty() { "–".into() } else { ratio_spread(&ratios) + &name }
}

fn print_reads(rows: &[&Row]) {
    println!("\nThe original's kind of client: every read counts as one answer.\n");
    println!("| load | server | reads/s | client, cores |");
    println!("|---|---|---|---|");
    for case in in_order(rows.iter().map(|row| row.case.as_str())) {
        for server in in_order(rows.iter().map(|row| row.server.as_str())) {
            let rates = figures(rows, case, server, |row| Some(row.value));
            let busy = figures(rows, case, server, |row| row.client_busy);
            println!(
                "| {case} | {server} | {} | {:.2} |",
                spread(&values(&rates)),
                median(&values(&busy))
            );
        }
    }
    println!(
        "\nFor the servers that store, the reads equal the events stored, or there is no row."
    );
}
