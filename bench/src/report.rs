//! Tables from rows: medians over rounds with their range, and ratios made within each round, from
//! raw values. Both are printed as Markdown for `docs/benchmarks.md`.

use crate::{
    flags::{Flags, Outcome},
    row::{self, Row},
    sample::median,
};
use std::collections::BTreeMap;

/// `wsbench report --file … --against umadb`; `--against umadb*` takes, case by case, the variant
/// of UmaDB with the best median.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let file: String = flags.required("file")?;
    let ours = flags.or("of", "wellspring".to_owned())?;
    let other = flags.or("against", "umadb".to_owned())?;
    let growth = flags.or("growth", false)?;
    flags.finish()?;
    let rows = row::read(&file)?;
    if growth {
        print_growth(&rows)
    } else {
        print_comparison(&rows, &ours, &other)
    }
    Ok(())
}

/// Keys in the order of their first appearance.
pub(crate) fn in_order<K: PartialEq>(keys: impl Iterator<Item = K>) -> Vec<K> {
    let mut seen = Vec::new();
    for key in keys {
        if !seen.contains(&key) {
            seen.push(key);
        }
    }
    seen
}

fn print_comparison(rows: &[Row], ours: &str, pattern: &str) {
    let other = pattern.trim_end_matches('*');
    println!(
        "| case | pinning | unit | {ours} | {other} | {ours} ÷ {other} | server cores | remarks |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (case, pinning, unit) in
        in_order(rows.iter().map(|row| (&row.case, &row.pinning, &row.unit)))
    {
        let of = |server: &str| -> Vec<&Row> {
            let same = |row: &&Row| (&row.case, &row.pinning, &row.unit) == (case, pinning, unit);
            rows.iter().filter(same).filter(|row| row.server == server).collect()
        };
        let servers = in_order(rows.iter().map(|row| row.server.as_str()));
        let chosen = best_variant(&servers, pattern, unit, &of);
        let other = chosen.as_str();
        let (mine, theirs) = (of(ours), of(other));
        let other_servers: Vec<_> = in_order(rows.iter().map(|row| row.server.as_str()))
            .into_iter()
            .filter(|&server| server != ours && server != other && !of(server).is_empty())
            .collect();
        let ratios: Vec<f64> = mine
            .iter()
            .filter_map(|row| {
                let pair = theirs.iter().find(|pair| pair.round == row.round)?;
                Some(row.value / pair.value)
            })
            .collect();
        let mut remarks = Vec::new();
        if pattern.ends_with('*') && !theirs.is_empty() {
            remarks.push(format!("compared with {other}"));
        }
        for server in other_servers {
            remarks.push(format!("{server}: {}", spread(&values(&of(server)))));
        }
        for (name, rows) in [(ours, &mine), (other, &theirs)] {
            let busy: Vec<f64> = rows.iter().filter_map(|row| row.client_busy).collect();
            if median(&busy) > 0.8 {
                remarks.push(format!(
                    "**{name}: client-limited** ({:.0} % busy)",
                    median(&busy) * 100.0
                ));
            }
        }
        let cores = |rows: &[&Row]| {
            let busy: Vec<f64> = rows.iter().filter_map(|row| row.server_busy).collect();
            if busy.is_empty() { "–".to_owned() } else { format!("{:.2}", median(&busy)) }
        };
        let cores = match (cores(&mine), cores(&theirs)) {
            (mine, theirs) if mine == "–" && theirs == "–" => String::new(),
            (mine, theirs) => format!("{mine} / {theirs}"),
        };
        let ratio = if ratios.is_empty() { "–".into() } else { ratio_spread(&ratios) };
        println!(
            "| {case} | {pinning} | {unit} | {} | {} | {ratio} | {cores} | {} |",
            spread(&values(&mine)),
            spread(&values(&theirs)),
            remarks.join("; ")
        );
    }
    println!("\nMedians over rounds (lowest … highest); the ratio is made within each round.");
}

/// The server a pattern stands for: itself, or for `name*` the best of all whose name begins so.
fn best_variant<'a>(
    servers: &[&str],
    pattern: &str,
    unit: &str,
    of: &impl Fn(&str) -> Vec<&'a Row>,
) -> String {
    let Some(prefix) = pattern.strip_suffix('*') else { return pattern.to_owned() };
    let mut best: Option<(f64, &str)> = None;
    for &server in servers.iter().filter(|server| server.starts_with(prefix)) {
        let here = values(&of(server));
        // Rates are better when higher, times and sizes when lower.
        let merit = if unit.ends_with("/s") { median(&here) } else { -median(&here) };
        if !here.is_empty() && best.is_none_or(|(known, _)| merit > known) {
            best = Some((merit, server));
        }
    }
    best.map_or(prefix, |(_, server)| server).to_owned()
}

fn print_growth(rows: &[Row]) {
    for server in in_order(rows.iter().map(|row| row.server.as_str())) {
        let of_server: Vec<_> = rows
            .iter()
            .filter(|row| row.server == server && row.measurement == "condition-growth")
            .collect();
        let mut sizes: Vec<u64> = in_order(of_server.iter().map(|row| row.size));
        sizes.sort_unstable();
        let Some(&smallest) = sizes.first() else { continue };
        println!("\n{server}: p50 in µs, and how many times that of {} events\n", count(smallest));
        print!("| condition |");
        for &size in &sizes {
            print!(" {} |", count(size));
        }
        println!("\n|---|{}", "---|".repeat(sizes.len()));
        for case in in_order(of_server.iter().map(|row| row.case.as_str())) {
            let by_round = |size: u64| -> BTreeMap<u32, f64> {
                let these = of_server.iter().filter(|row| row.size == size && row.case == case);
                these.map(|row| (row.round, row.value)).collect()
            };
            let base = by_round(smallest);
            print!("| {case} |");
            for &size in &sizes {
                let here = by_round(size);
                let p50 = spread(&here.values().copied().collect::<Vec<_>>());
                let ratios: Vec<f64> = here
                    .iter()
                    .filter_map(|(round, value)| Some(value / base.get(round)?))
                    .collect();
                if size == smallest || ratios.is_empty() {
                    print!(" {p50} |");
                } else {
                    print!(" {p50} · **×{}** |", ratio_spread(&ratios));
                }
            }
            println!();
        }
    }
    println!("\nMedians over rounds (lowest … highest); ratios are made within each round.");
}

fn values(rows: &[&Row]) -> Vec<f64> {
    rows.iter().map(|row| row.value).collect()
}

/// The median, with the lowest and highest where there are several.
pub(crate) fn spread(values: &[f64]) -> String {
    let (low, high) = range(values);
    match values.len() {
        0 => "–".into(),
        1 => figure(values[0]),
        _ => format!("{} ({} … {})", figure(median(values)), figure(low), figure(high)),
    }
}

/// The same of ratios.
pub(crate) fn ratio_spread(ratios: &[f64]) -> String {
    let (low, high) = range(ratios);
    format!("{:.2} ({low:.2} … {high:.2})", median(ratios))
}

fn range(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold((f64::INFINITY, 0.0), |(low, high), &value| (value.min(low), value.max(high)))
}

/// Three significant digits, thousands set apart.
pub(crate) fn figure(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.2} M", v / 1e6),
        v if v >= 1e4 => format!("{:.1} k", v / 1e3),
        v if v >= 100.0 => format!("{v:.0}"),
        v => format!("{v:.1}"),
    }
}

/// A round number of events.
fn count(events: u64) -> String {
    match events {
        e if e >= 1_000_000 => format!("{} M", e as f64 / 1e6),
        e if e >= 1000 => format!("{} k", e as f64 / 1e3),
        e => e.to_string(),
    }
}
