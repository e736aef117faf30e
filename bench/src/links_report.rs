//! Tables of links: redirects against `POST /e`, links made against durable appends, a link with
//! many clicks against one without, how long a view takes to be there, and what a link costs in
//! memory.

use crate::{
    flags::{Flags, Outcome},
    ingest_report::{print_against, print_figures},
    report::{in_order, spread},
    row::{self, Row},
    sample::median,
};

/// `wsbench links-report --file …`.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let file: String = flags.required("file")?;
    flags.finish()?;
    let rows = row::read(&file)?;
    let of = |measurement: &str| -> Vec<&Row> {
        rows.iter().filter(|row| row.measurement == measurement).collect()
    };
    for (ours, base) in [
        (&["redirect", "many"][..], "events"),
        (&["create"], "append"),
        (&["redirect-full"], "redirect-empty"),
    ] {
        let those: Vec<&Row> = of("links")
            .into_iter()
            .filter(|row| ours.contains(&row.server.as_str()) || row.server == base)
            .collect();
        if !those.is_empty() {
            print_figures(&those);
            print_against(&those, base);
            println!();
        }
    }
    let (fills, opens) = (of("links-fill"), of("links-open"));
    print_values(&fills);
    print_values(&opens);
    print_memory(&opens);
    Ok(())
}

fn print_values(rows: &[&Row]) {
    if rows.is_empty() {
        return;
    }
    println!("| what | events in the log | value | unit |");
    println!("|---|---|---|---|");
    for case in in_order(rows.iter().map(|row| row.case.as_str())) {
        let those: Vec<&&Row> = rows.iter().filter(|row| row.case == case).collect();
        let values: Vec<f64> = those.iter().map(|row| row.value).collect();
        println!("| {case} | {} | {} | {} |", those[0].size, spread(&values), those[0].unit);
    }
    println!("\nMedians over rounds (lowest … highest).\n");
}

/// What links and their clicks add to the memory of a server without any: cases are named `empty`,
/// `N links` and `N links, M clicked`.
fn print_memory(rows: &[&Row]) {
    let mib = |case: &str| -> Option<f64> {
        let name = format!("{case}, rebuilt: memory, not of files");
        let values: Vec<f64> =
            rows.iter().filter(|row| row.case == name).map(|row| row.value).collect();
        (!values.is_empty()).then(|| median(&values))
    };
    let cases = in_order(
        rows.iter().filter_map(|row| row.case.split_once(", rebuilt:").map(|(case, _)| case)),
    );
    let numbers = |case: &str| -> Vec<f64> {
        case.split([' ', ',']).filter_map(|word| word.parse().ok()).collect()
    };
    let Some(empty) = mib("empty") else { return };
    let per = |more: f64, less: f64, count: f64| (more - less) * 1_048_576.0 / count;
    println!("| memory | bytes each |");
    println!("|---|---|");
    for case in &cases {
        match (numbers(case)[..].as_ref(), mib(case)) {
            ([links], Some(here)) if case.ends_with(" links") => {
                println!("| a link ({case}) | {:.0} |", per(here, empty, *links));
            }
            ([links, clicked, ..], Some(here)) if case.contains(" clicked") => {
                if let Some(before) = mib(&format!("{links} links")) {
                    println!(
                        "| and with clicks ({case}) | {:.0} more |",
                        per(here, before, *clicked)
                    );
                }
            }
            _ => {}
        }
    }
    println!("\nDifferences of memory that is not of files, each after a rebuild.");
}
