//! Histories of folders made for the purpose.

use super::*;
use std::path::Path;
use wellspring_load::compare::{Metric, Verdict};
use wellspring_load::result::{Report, Verdict as Trust};
use wellspring_load::stats::SplitMix64;
use wellspring_load::table::Color;
use wellspring_load::testing::{report, run};

/// A day's report: five runs around `per_s`, with a noise of 2%.
fn day(day: u64, per_s: u64) -> Report {
    let start = 1_750_000_000 + day * 86_400;
    let mut random = SplitMix64::new(day);
    let runs = (0..5).map(|at| {
        let per_s = (per_s as f64 * (1.0 + 0.02 * random.normal())) as u64;
        run(start + 10 * at, per_s, 16_000_000 / per_s)
    });
    let mut report = report("server", runs.collect());
    report.environment.git_revision = Some(format!("rev{day:02}"));
    report.environment.target = "127.0.0.1:8080".into();
    report.environment.kernel = Some("Linux 6.1".into());
    report
}

fn write(folder: &Path, name: &str, report: &Report) {
    std::fs::write(folder.join(name), report.to_json()).unwrap();
}

/// Twelve days; from the eighth on the server is slower by a fifth.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for at in 0..12 {
        let per_s = if at < 7 { 20_000 } else { 16_000 };
        // Names in another order than time.
        write(folder.path(), &format!("{}.json", 99 - at), &day(at, per_s));
    }
    folder
}

#[test]
fn a_lasting_change_is_found_between_its_revisions() {
    let folder = folder();
    let history = read_folder(folder.path(), &Options::default()).unwrap();
    assert_eq!((history.files, history.series.len(), history.skipped.len()), (12, 1, 0));
    let series = &history.series[0];
    let times: Vec<u64> = series.entries.iter().map(|entry| entry.started_unix_us).collect();
    assert!(times.is_sorted());
    let throughput: Vec<_> =
        series.changes.iter().filter(|change| change.metric == Metric::Throughput).collect();
    assert_eq!(throughput.len(), 1, "{:?}", series.changes);
    assert_eq!(throughput[0].revision_before.as_deref(), Some("rev06"));
    assert_eq!(throughput[0].revision_after.as_deref(), Some("rev07"));
    assert!((throughput[0].log_ratio.exp() - 0.8).abs() < 0.02);
    assert!(throughput[0].confidence > 0.95);
    assert!(series.changes.iter().any(|change| change.metric == Metric::P99));
    let called: Vec<usize> = (0..12).filter(|&at| series.entries[at].changed()).collect();
    assert_eq!(called, [7]);
    assert_eq!(series.entries[7].verdict, Some(Verdict::Slower));
}

#[test]
fn the_renderings_show_every_result_and_the_change() {
    let folder = folder();
    std::fs::write(folder.path().join("broken.json"), "{\"format\":\"other/1\"}").unwrap();
    std::fs::write(folder.path().join("notes.txt"), "not read").unwrap();
    let history = read_folder(folder.path(), &Options::default()).unwrap();
    let text = render_text(&history, Color::Plain);
    assert!(text.starts_with("12 result files, 1 series, 1 file skipped\n"), "{text}");
    assert!(
        text.contains("GET /health · c=16 · closed loop, 16 connections, HTTP/1.1, duration 1 s")
    );
    assert!(text.contains("throughput changed by −"), "{text}");
    assert!(
        text.contains(
            "% between rev06 (2025-06-21 15:06) and rev07 (2025-06-22 15:06); confidence 9"
        ),
        "{text}"
    );
    assert!(text.contains("\nbroken.json: the file's format is \"other/1\""), "{text}");
    assert_eq!(text.matches("2025-06-").count(), 12 + 2 * history.series[0].changes.len());
    let markdown = render_markdown(&history);
    assert!(markdown.contains("| 2025-06-22 15:06 | rev07    |    5 |"), "{markdown}");
    assert!(markdown.contains("| slower  "), "{markdown}");
    let json = serde_json::to_string(&history).unwrap();
    let read: History = serde_json::from_str(&json).unwrap();
    assert_eq!(read.series[0].changes.len(), history.series[0].changes.len());
    assert!(!json.contains("figures"), "runs are not kept");
}

#[test]
fn other_settings_are_another_series_and_other_machines_are_said() {
    let folder = folder();
    let mut other = day(20, 40_000);
    other.steps[0].settings.connections = 64;
    write(folder.path(), "other.json", &other);
    let mut moved = day(21, 16_000);
    moved.environment.kernel = Some("Linux 7.0".into());
    moved.environment.target = "127.0.0.1:9090".into();
    write(folder.path(), "moved.json", &moved);
    let history = read_folder(folder.path(), &Options::default()).unwrap();
    assert_eq!(history.series.len(), 2);
    let last = history.series[0].entries.last().unwrap();
    assert_eq!(last.machine_changes, ["kernel: Linux 6.1 → Linux 7.0"]);
    assert_eq!(history.series[0].targets, ["127.0.0.1:8080", "127.0.0.1:9090"]);
    let text = render_text(&history, Color::Plain);
    assert!(text.contains("on the conditions were others: kernel: Linux 6.1 → Linux 7.0."));
    assert!(text.contains("Several targets are in this series"), "{text}");
    let apart = Options { grouping: Grouping::WorkloadAndTarget, ..Options::default() };
    assert_eq!(read_folder(folder.path(), &apart).unwrap().series.len(), 3);
}

#[test]
fn copies_are_not_counted_twice_and_what_measured_nothing_sways_nothing() {
    let folder = folder();
    write(folder.path(), "00-copy.json", &day(3, 20_000));
    for at in 12..20 {
        let mut useless = day(at, 500);
        useless.verdict = Some(Trust::NotMeasurable(vec!["the client was saturated".into()]));
        write(folder.path(), &format!("useless{at}.json"), &useless);
    }
    let history = read_folder(folder.path(), &Options::default()).unwrap();
    assert_eq!(history.skipped.len(), 1);
    assert_eq!(history.skipped[0].reason, "the same measurement as 00-copy.json");
    let series = &history.series[0];
    assert_eq!(series.entries.len(), 20);
    assert!(series.changes.iter().all(|change| change.after == 7), "{:?}", series.changes);
}

#[test]
fn errors_name_the_folder_the_files_and_what_to_do() {
    let missing = read_folder(Path::new("/nowhere/at/all"), &Options::default()).unwrap_err();
    assert!(missing.to_string().starts_with("the folder /nowhere/at/all could not be read: "));
    let folder = tempfile::tempdir().unwrap();
    let empty = read_folder(folder.path(), &Options::default()).unwrap_err();
    assert!(empty.to_string().contains("--json FILE"), "{empty}");
    std::fs::write(folder.path().join("a.json"), "{").unwrap();
    std::fs::write(folder.path().join("b.json"), [0xff, 0xfe]).unwrap();
    write(folder.path(), "c.json", &report("nothing", Vec::new()));
    let useless = read_folder(folder.path(), &Options::default()).unwrap_err().to_string();
    assert!(useless.contains("a.json: not a result file"), "{useless}");
    assert!(useless.contains("b.json: ") && useless.contains("UTF-8"), "{useless}");
    assert!(useless.contains("c.json: no step has a run"), "{useless}");
}
