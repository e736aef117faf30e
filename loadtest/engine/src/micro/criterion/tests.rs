use super::super::{render_markdown, render_text};
use super::*;
use crate::table::Color;

/// Written by Criterion 0.5 for a plain benchmark, one with a throughput in
/// bytes and a value, and one with flat sampling and elements.
const REAL: [(&str, [&str; 3]); 3] = [
    (
        "encode",
        [
            include_str!("encode.estimates.json"),
            include_str!("encode.benchmark.json"),
            include_str!("encode.sample.json"),
        ],
    ),
    (
        "crc_sum/bytes/64",
        [
            include_str!("sum64.estimates.json"),
            include_str!("sum64.benchmark.json"),
            include_str!("sum64.sample.json"),
        ],
    ),
    (
        "batch/hundred",
        [
            include_str!("hundred.estimates.json"),
            include_str!("hundred.benchmark.json"),
            include_str!("hundred.sample.json"),
        ],
    ),
];

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, files) in REAL {
        let path = folder.path().join("target/criterion").join(name).join("new");
        std::fs::create_dir_all(&path).unwrap();
        for (file, text) in ["estimates", "benchmark", "sample"].into_iter().zip(files) {
            std::fs::write(path.join(file).with_extension("json"), text).unwrap();
        }
    }
    // The run before, and Criterion's own report: not results.
    for other in ["encode/base", "report"] {
        let path = folder.path().join("target/criterion").join(other);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("estimates.json"), REAL[0].1[0]).unwrap();
    }
    folder
}

#[test]
fn what_criterion_wrote_is_read_from_project_and_folder() {
    let project = project();
    let report = read_criterion(project.path()).unwrap();
    let names: Vec<&str> = report.benchmarks.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["batch/hundred", "crc/sum/bytes/64", "encode"]);
    for benchmark in &report.benchmarks {
        let (spread, time) = (benchmark.spread.unwrap(), benchmark.time_ns.unwrap());
        assert!(spread.low_ns <= time && time <= spread.high_ns, "{benchmark:?}");
        assert_eq!(spread.basis, Basis::SamplesOfOneRun { confidence: 0.95 });
    }
    let [hundred, sum, encode] = &report.benchmarks[..] else { panic!("three") };
    assert_eq!((hundred.n, sum.n, encode.n), (12, 10, 10));
    let rate = hundred.ops_per_s.unwrap();
    assert_eq!(hundred.other, [("elements/s".to_owned(), rate * 100.0)]);
    assert!((sum.bytes_per_s.unwrap() - sum.ops_per_s.unwrap() * 64.0).abs() < 1.0);
    let folder = project.path().join("target/criterion");
    assert_eq!(read_criterion(&folder).unwrap(), report);
    assert_eq!(read_criterion(&folder.join("encode")).unwrap().benchmarks[0], *encode);
}

#[test]
fn the_median_is_that_of_the_samples() {
    #[derive(Deserialize)]
    struct Times {
        iters: Vec<f64>,
        times: Vec<f64>,
    }
    let report = read_criterion(project().path()).unwrap();
    let sample: Times = serde_json::from_str(REAL[0].1[2]).unwrap();
    let per_op: Vec<f64> = sample.times.iter().zip(&sample.iters).map(|(t, n)| t / n).collect();
    let median = crate::stats::median(&per_op).unwrap();
    let told = report.benchmarks[2].time_ns.unwrap();
    assert!((told / median - 1.0).abs() < 1e-9, "{told} against {median}");
    let iterations: f64 = sample.iters.iter().sum();
    assert_eq!(report.benchmarks[2].iterations, Some(iterations as u64));
}

#[test]
fn damage_is_named_and_what_can_be_read_is_read() {
    let project = project();
    let folder = project.path().join("target/criterion");
    std::fs::write(folder.join("encode/new/estimates.json"), "{\"median\":{}}").unwrap();
    std::fs::remove_file(folder.join("batch/hundred/new/benchmark.json")).unwrap();
    std::fs::remove_file(folder.join("batch/hundred/new/sample.json")).unwrap();
    let report = read_criterion(&folder).unwrap();
    assert_eq!(report.benchmarks.len(), 2);
    assert_eq!((report.benchmarks[0].name.as_str(), report.benchmarks[0].n), ("batch/hundred", 1));
    assert_eq!(report.notes.len(), 1);
    assert!(report.notes[0].contains("encode/new is left out: estimates.json: missing field"));
    let text = render_text(&report, Color::Plain);
    assert!(text.contains("runs differ by more") && text.contains("is left out"), "{text}");
    assert!(render_markdown(&report).contains("| crc/sum/bytes/64 "));
}

#[test]
fn an_empty_folder_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let error = read_criterion(folder.path()).unwrap_err().to_string();
    assert!(error.contains("*/new/estimates.json") && error.contains("cargo bench"), "{error}");
    let missing = read_criterion(Path::new("/nowhere/at/all")).unwrap_err().to_string();
    assert!(missing.starts_with("/nowhere/at/all could not be read: "), "{missing}");
}
