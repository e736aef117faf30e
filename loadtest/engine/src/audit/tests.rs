//! Tables that must trip each check of the audit, and tables that must not; and the page of
//! published ones.

use super::*;
use std::fs;
use std::path::{Path, PathBuf};

/// An audit of one table with these rows and claims.
fn of(rows: &[&str], claims: &[&str]) -> AuditReport {
    let mut text = "title = \"t\"\nsource = \"s\"\n[[table]]\nname = \"T\"\n".to_owned();
    for (kind, parts) in [("row", rows), ("claim", claims)] {
        for part in parts {
            text += &format!("[[table.{kind}]]\n{}\n", part.replace("; ", "\n"));
        }
    }
    audit(Published::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

/// What check `number` says of a table of one row.
fn row(number: u8, row: &str) -> (Outcome, String) {
    let report = of(&[&format!("name = \"r\"; {row}")], &[]);
    let of: Vec<_> = report.findings.into_iter().filter(|one| one.check.0 == number).collect();
    assert_eq!(of.len(), 1, "{of:?}");
    (of[0].outcome, of[0].sentence.clone())
}

#[test]
fn littles_law_trips_only_outside_all_rounding() {
    let busy = |throughput: &str, mean: &str| {
        row(1, &format!("concurrency = 1; throughput = \"{throughput}\"; mean = \"{mean}\""))
    };
    assert_eq!(busy("2,124 ops/sec", "0.47ms").0, Outcome::Passed);
    let (outcome, sentence) = busy("3,649 ops/sec", "357μs");
    assert_eq!(outcome, Outcome::Stop);
    assert!(
        sentence.contains("of 1 user busy (130.1% … 130.5%)") || sentence.contains("busy (130%"),
        "{sentence}"
    );
    // 96% to 116% is possible: no objection.
    assert_eq!(busy("106/s", "10 ms").0, Outcome::Passed);
    let (outcome, sentence) = busy("50/s", "10 ms");
    assert_eq!(outcome, Outcome::Care);
    assert!(sentence.contains("is in neither figure"), "{sentence}");
}

#[test]
fn think_time_ramps_and_open_loops_are_allowed_for() {
    let thinking =
        "concurrency = 20; throughput = \"500/s\"; mean = \"10 ms\"; think = \"30.0 ms\"";
    assert_eq!(row(1, thinking).0, Outcome::Passed);
    let ramp = "concurrency = \"up to 50\"; throughput = \"100/s\"; mean = \"200 ms\"";
    assert_eq!(row(1, ramp).0, Outcome::Passed);
    let too_many = "concurrency = \"up to 50\"; throughput = \"1,000/s\"; mean = \"200 ms\"";
    assert_eq!(row(1, too_many).0, Outcome::Stop);
}

#[test]
fn requests_under_way_at_the_end_are_allowed_for() {
    let long = "concurrency = 10; throughput = \"10.0/s\"; mean = \"1.05 s\"; max = \"3.0 s\"";
    assert_eq!(row(1, long).0, Outcome::Stop);
    assert_eq!(row(1, &format!("{long}; duration = \"20 s\"")).0, Outcome::Passed);
    assert_eq!(row(1, &format!("{long}; duration = \"200 s\"")).0, Outcome::Stop);
}

#[test]
fn a_mean_not_given_is_bounded_by_the_percentiles() {
    // At least half of the answers take 10 ms.
    let over = "concurrency = 4; throughput = \"1,000.0/s\"; p50 = \"10.0 ms\"";
    assert_eq!(row(1, over).0, Outcome::Stop);
    let open_above = "concurrency = 40; throughput = \"1,000.0/s\"; p50 = \"10.0 ms\"";
    assert_eq!(row(1, open_above).0, Outcome::NotChecked);
    let closed_above = format!("{open_above}; max = \"12.0 ms\"");
    assert_eq!(row(1, &closed_above).0, Outcome::Care, "at most 11 of 40 users");
    assert_eq!(row(1, "concurrency = 4").0, Outcome::NotChecked);
}

#[test]
fn percentiles_must_fit_the_mean_and_each_other() {
    // A median of 301 ms with a mean of 97.58 ms.
    let (outcome, sentence) = row(2, "mean = \"97.58ms\"; p50 = \"301ms\"");
    assert_eq!(outcome, Outcome::Stop);
    assert!(
        sentence.contains("the mean is at least 150 ms, and it is given as 97.58ms"),
        "{sentence}"
    );
    assert_eq!(
        row(2, "mean = \"201.79ms\"; p50 = \"39.19ms\"; p95 = \"657.86ms\"; max = \"24.98s\"").0,
        Outcome::Passed
    );
    let (outcome, sentence) =
        row(2, "mean = \"10 ms\"; p50 = \"1 ms\"; p99 = \"2 ms\"; max = \"9 ms\"");
    assert_eq!(outcome, Outcome::Stop);
    assert!(sentence.contains("at most 2.07 ms"), "{sentence}");
    assert_eq!(row(2, "p95 = \"5.0 ms\"; p99 = \"4.0 ms\"").0, Outcome::Stop);
    assert_eq!(row(2, "p95 = \"5 ms\"; p99 = \"4 ±1 ms\"").0, Outcome::Passed);
    assert_eq!(row(2, "p95 = \"5 ms\"").0, Outcome::NotChecked);
}

#[test]
fn requests_duration_and_throughput_must_fit() {
    let counted = |throughput: &str| {
        row(
            2,
            &format!("requests = \"50,000\"; duration = \"6.77 s\"; throughput = \"{throughput}\""),
        )
    };
    assert_eq!(counted("7,382.69 req/s").0, Outcome::Passed);
    assert_eq!(counted("8,000.5 req/s").0, Outcome::Stop);
    let each = |per: &str| {
        row(
            2,
            &format!(
                "concurrency = 8; throughput = \"499,511\"; per_connection = \"{per}\"; mean = \"1 ms\"; p50 = \"1 ms\""
            ),
        )
    };
    assert_eq!(each("62,439").0, Outcome::Passed);
    assert_eq!(each("62,539").0, Outcome::Stop);
}

#[test]
fn coarse_figures_few_requests_and_failures_are_told() {
    assert_eq!(row(3, "p50 = \"4ms\"").0, Outcome::Note);
    assert_eq!(row(3, "p50 = \"11ms\"").0, Outcome::Passed);
    assert_eq!(row(4, "p99 = \"16ms\"; requests = 364").0, Outcome::Care);
    assert_eq!(row(4, "p99 = \"16ms\"; requests = 1000").0, Outcome::Passed);
    assert_eq!(
        row(4, "p99 = \"16ms\"; throughput = \"24/s\"; duration = \"15 s\"").0,
        Outcome::Care
    );
    assert_eq!(row(4, "p99 = \"16ms\"").0, Outcome::NotChecked);
    assert_eq!(row(5, "requests = 1739; failures = 1").0, Outcome::Note);
    assert_eq!(row(5, "requests = 100; failures = 2").0, Outcome::Care);
    assert_eq!(row(5, "requests = 100; failures = 200").0, Outcome::Stop);
    assert_eq!(row(5, "requests = 364; failures = 0").0, Outcome::Passed);
    assert_eq!(row(5, "failures = 0").0, Outcome::NotChecked);
}

fn ladder(rows: &[(u32, &str)], extra: &str) -> Vec<AuditFinding> {
    let rows: Vec<String> = rows
        .iter()
        .map(|(users, rate)| {
            format!("name = \"{users}\"; concurrency = {users}; throughput = \"{rate}\"{extra}")
        })
        .collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    of(&rows, &[]).findings.into_iter().filter(|one| one.check.0 == 12).collect()
}

#[test]
fn superlinear_ladders_are_told() {
    let found = ladder(&[(1, "38,886"), (2, "153,920"), (4, "220,168")], "");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].sentence.starts_with("Throughput grew 3.96 times from “1” to “2”"),
        "{found:?}"
    );
    let found = ladder(&[(1, "24"), (20, "355")], "");
    assert_eq!(found[0].outcome, Outcome::Passed);
    // 48 to 51 for 24 to 25 is possible within rounding.
    assert_eq!(ladder(&[(1, "24"), (2, "51")], "")[0].outcome, Outcome::Passed);
}

#[test]
fn answers_faster_than_the_shortest_are_told() {
    let found = ladder(&[(1, "990"), (2, "9,900")], "; min = \"0.50 ms\"");
    assert!(
        found
            .iter()
            .any(|one| one.outcome == Outcome::Stop && one.sentence.contains("at most 202 µs")),
        "{found:?}"
    );
}

#[test]
fn claims_are_compared_with_what_the_figures_allow() {
    let rows = [
        "name = \"a\"; throughput = \"124 ops/sec\"",
        "name = \"b\"; throughput = \"100 ops/sec\"",
    ];
    let judged = |value: &str, word: &str| {
        let claim = format!(
            "says = \"so\"; value = \"{value}\"; word = \"{word}\"; of = \"b: throughput\"; over = \"a: throughput\""
        );
        let report = of(&rows, &[&claim]);
        let found = report.findings.into_iter().find(|one| one.check.0 == 15).unwrap();
        (found.outcome, found.sentence)
    };
    assert_eq!(judged("19%", "slower").0, Outcome::Passed);
    let (outcome, sentence) = judged("24%", "slower");
    assert_eq!(outcome, Outcome::Care);
    assert!(
        sentence.contains("18.6% … 20.1%") && sentence.contains("share of the other figure"),
        "{sentence}"
    );
    assert_eq!(judged("24%", "faster").0, Outcome::Care);
    assert_eq!(judged("1.2x", "slower").0, Outcome::Passed);
    assert_eq!(judged("1.5x", "slower").0, Outcome::Care);
}

#[test]
fn the_text_lists_what_was_found_and_what_could_not_be_asked() {
    let report =
        of(&["name = \"one\"; mean = \"97.58ms\"; p50 = \"301ms\"; requests = \"42,372\""], &[]);
    let text = render_text(&report);
    assert!(text.contains("C2  does not fit    one: With the percentiles given"), "{text}");
    assert!(
        text.contains(
            "2 checks passed; the figures needed were not given for C1 in 1 row, C5 in 1 row."
        ),
        "{text}"
    );
    let page = render_markdown(&report);
    assert!(page.starts_with("### T\n\n|     |    mean |   p50 | requests |\n| --- | ------: | ----: | -------: |\n| one | 97.58ms | 301ms |   42,372 |\n"), "{page}");
}

/// The page of published tables and the files it is made from.
fn page() -> (PathBuf, String) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench/published.md");
    let text =
        fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    (page.with_extension(""), text)
}

/// The page with what the audit says now between its markers, and the files it embeds.
fn rendered(folder: &Path, page: &str) -> (String, Vec<String>) {
    let (mut text, mut files) = (String::new(), Vec::new());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("<!-- audit: ") {
        let (file, after) = after.split_once(" -->\n").expect("a marker ends with -->");
        let (_, after) =
            after.split_once("<!-- end of audit -->").expect("each marker has its end");
        let source =
            fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let published = Published::parse(&source).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(page.contains(&published.source), "the page links to {}", published.source);
        let now = render_markdown(&audit(published));
        text += &format!("{before}<!-- audit: {file} -->\n\n{now}\n<!-- end of audit -->");
        files.push(file.to_owned());
        rest = after;
    }
    (text + rest, files)
}

/// Only reads. To see the text as it should be:
/// `cargo test -p wellspring-load-tools shows_the_page -- --ignored --nocapture`.
#[test]
fn the_page_says_exactly_what_the_audit_finds() {
    let (folder, page) = page();
    let (now, mut embedded) = rendered(&folder, &page);
    for (line, (there, here)) in page.lines().zip(now.lines()).enumerate() {
        assert_eq!(there, here, "docs/bench/published.md, line {}", line + 1);
    }
    assert_eq!(page.lines().count(), now.lines().count());
    embedded.sort();
    let files = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = files.collect();
    files.sort();
    assert_eq!(files, embedded, "each file is embedded once");
}

#[test]
#[ignore = "prints the page as it should be; it checks nothing"]
fn shows_the_page() {
    let (folder, page) = page();
    println!("{}", rendered(&folder, &page).0);
}
