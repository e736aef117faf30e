use super::super::{Basis, render_markdown, render_text};
use super::*;
use crate::table::Color;

/// Written by Go 1.26 for four benchmarks, one of which logs, with `-benchmem -count 4`.
const REAL: &str = include_str!("real.txt");

fn named<'a>(report: &'a MicroReport, name: &str) -> &'a MicroBenchmark {
    report.benchmarks.iter().find(|there| there.name == name).expect(name)
}

#[test]
fn what_go_wrote_is_read() {
    let report = parse_go_bench(REAL).unwrap();
    let names: Vec<&str> = report.benchmarks.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["Encode", "Hash/size=64", "Hash/size=4096", "Batch"]);
    assert!(report.benchmarks.iter().all(|benchmark| benchmark.n == 4));
    let encode = named(&report, "Encode");
    assert!((encode.time_ns.unwrap() - (675.7 + 983.1) / 2.0).abs() < 1e-9);
    assert!((encode.ops_per_s.unwrap() * encode.time_ns.unwrap() - 1e9).abs() < 1e-3);
    assert_eq!((encode.bytes_per_op, encode.allocs_per_op), (Some(96.0), Some(2.0)));
    assert_eq!(encode.iterations, Some(22_092 + 31_471 + 27_259 + 32_979));
    let spread = encode.spread.unwrap();
    assert_eq!((spread.low_ns, spread.high_ns, spread.basis), (669.0, 999.0, Basis::Extremes));
    let hash = named(&report, "Hash/size=64");
    assert!((hash.bytes_per_s.unwrap() - (200.17 + 221.65) / 2.0 * 1e6).abs() < 1.0);
    assert_eq!(named(&report, "Batch").other, [("events/op".to_owned(), 17.0)]);
    let context: Vec<&str> = report.context.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(context, ["goos", "goarch", "cpu", "GOMAXPROCS", "pkg"]);
    assert_eq!(report.context[3].1, "2");
}

#[test]
fn ten_repeats_give_an_interval() {
    let lines: String = (1..=10).map(|at| format!("BenchmarkX 1000 {} ns/op\n", at * 10)).collect();
    let report = parse_go_bench(&lines).unwrap();
    let spread = report.benchmarks[0].spread.unwrap();
    assert_eq!((spread.low_ns, spread.high_ns), (20.0, 90.0));
    assert_eq!(spread.basis, Basis::Repeats { confidence: 0.95 });
}

#[test]
fn packages_are_kept_apart_and_output_in_between_is_survived() {
    let text = "pkg: a/one\nBenchmarkX-4   loading 3 files\n100 200 items read\n   50\t 2.5e3 ns/op\n\
        note: not a context\nPASS\npkg: a/two\nBenchmarkX-4\t7 9 ns/op 3 B/op 1\n\
        --- FAIL: BenchmarkY-4\n--- SKIP: BenchmarkZ\n--- FAIL: TestQ\npanic: index out of range\n";
    let report = parse_go_bench(text).unwrap();
    let told: Vec<_> = report.benchmarks.iter().map(|b| (b.full_name(), b.time_ns, b.n)).collect();
    assert_eq!(told, [("a/one.X".into(), Some(2_500.0), 1), ("a/two.X".into(), Some(9.0), 1)]);
    assert_eq!(report.benchmarks[0].spread, None);
    assert_eq!(report.notes.len(), 4, "{:?}", report.notes);
    assert!(report.notes[0].starts_with("Line 8 ends in the middle of a figure"));
    assert_eq!(report.notes[1], "BenchmarkY-4 failed and has no figures.");
    assert_eq!(report.context, [("GOMAXPROCS".to_owned(), "4".to_owned())]);
}

#[test]
fn events_of_go_test_json_are_put_together_first() {
    let text = r#"{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Output":"goos: linux\n"}
{"Action":"output","Package":"q","Output":"BenchmarkA-2 \t"}
{"Action":"output","Package":"p","Test":"BenchmarkA","Output":"BenchmarkA-2 \t"}
{"Action":"output","Package":"p","Test":"BenchmarkA","Output":" 10\t 5.0 ns/op\n"}
{"Action":"output","Package":"q","Output":" 20\t 7.0 ns/op\n"}"#;
    let report = parse_go_bench(text).unwrap();
    let told: Vec<_> = report.benchmarks.iter().map(|b| (b.full_name(), b.time_ns)).collect();
    assert_eq!(told, [("p.A".into(), Some(5.0)), ("q.A".into(), Some(7.0))]);
}

#[test]
fn nothing_found_says_what_to_do() {
    let error = parse_go_bench("ok  \texample.com\t0.1s\n--- SKIP: BenchmarkA\n").unwrap_err();
    assert!(error.to_string().contains("go test -run '^$' -bench ."), "{error}");
    assert!(error.to_string().contains("BenchmarkA was skipped"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("utf16.txt");
    std::fs::write(&path, [0xff, 0xfe, b'B', 0]).unwrap();
    let error = read_go_bench(&path).unwrap_err().to_string();
    assert!(error.contains("utf16.txt is not UTF-8 (byte 0)"), "{error}");
    let missing = read_go_bench(&folder.path().join("none")).unwrap_err().to_string();
    assert!(missing.contains("none could not be read"), "{missing}");
}

#[test]
fn renderings_and_file_carry_the_figures() {
    let report = parse_go_bench(REAL).unwrap();
    let text = render_text(&report, Color::Plain);
    assert!(text.starts_with("go test -bench · goos linux · goarch amd64 · cpu Intel"), "{text}");
    let encode = text.lines().find(|line| line.contains("Encode")).unwrap();
    let cells: Vec<&str> = encode.split_whitespace().collect();
    assert_eq!(cells[..4], ["Encode", "1,205,691", "829", "ns"], "{text}");
    assert!(text.contains("669 ns … 999 ns") && text.contains("use -count 10"), "{text}");
    assert!(render_markdown(&report).contains("| Hash/size=64 "));
    let read = MicroReport::from_json(&report.to_json()).unwrap();
    assert_eq!(read.benchmarks.len(), 4);
    assert_eq!(read.ranked()[0].name, "Hash/size=64");
    let wrong = MicroReport::from_json("{\"format\":\"x\"}").unwrap_err();
    assert!(wrong.to_string().contains("its format is \"x\""), "{wrong}");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(Benchmark[A-Z/0-9-]{0,6}|[0-9.e+-]{1,5}|ns/op|B/op|[ \t\n]|.){0,60}") {
        if let Ok(report) = parse_go_bench(&text) {
            proptest::prop_assert!(report.benchmarks.iter().all(|benchmark| benchmark.n > 0));
            let _ = render_text(&report, Color::Ansi);
        }
    }
}
