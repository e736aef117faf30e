//! `wellspring import` of CSV as real programs write it: nothing is misread in silence.

use crate::program::{ProgramOutput, program};
use crate::server::Server;
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::Stdio;

struct Machine {
    server: Server,
    dir: tempfile::TempDir,
}

impl Machine {
    fn new() -> Machine {
        Machine { server: Server::start(), dir: tempfile::tempdir().unwrap() }
    }

    fn import(&self, name: &str, content: impl AsRef<[u8]>, more: &[&str]) -> ProgramOutput {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        let url = self.server.url();
        let words = [&["import", path.to_str().unwrap(), "--url", &url], more].concat();
        let state = self.dir.path().join("state");
        ProgramOutput::of(program(&words).env("XDG_STATE_HOME", state).output().unwrap())
    }

    /// The data of all events.
    fn data(&self) -> Vec<Value> {
        let headers = [("Accept", "application/x-ndjson")];
        let all = self.server.client().call("GET", "/v1/events", &headers, b"").unwrap().text();
        let data = |line| serde_json::from_str::<Value>(line).unwrap()["data"].take();
        all.lines().map(data).collect()
    }
}

const ROW: [&str; 2] = ["--type", "Row"];

#[test]
fn files_of_real_programs_give_the_same_rows() {
    let want = [json!({"id": 1, "name": "Ann"}), json!({"id": 2, "name": "Bob"})];
    for (what, content, told) in [
        ("a Macintosh", "id,name\r1,Ann\r2,Bob\r", "2 columns separated by commas"),
        ("Windows", "\u{feff}id,name\r\n1,Ann\r\n2,Bob\r\n", "commas"),
        ("twice converted", "id,name\r\r\n1,Ann\r\r\n2,Bob", "commas"),
        ("Europe", "id;name\n1;Ann\n2;Bob\n", "2 columns separated by semicolons"),
        ("tabs", "id\tname\n1\tAnn\n2\tBob\n", "separated by tabs"),
        ("bars", "id|name\n1|Ann\n2|Bob\n", "separated by vertical bars"),
        ("Excel", "sep=;\r\nid;name\r\n1;Ann\r\n2;Bob\r\n", "separated by semicolons"),
    ] {
        let machine = Machine::new();
        let ran = machine.import("a.csv", content, &ROW);
        assert!(ran.err.contains(told), "{what}: {ran:?}");
        ran.done();
        assert_eq!(machine.data(), want, "{what}");
    }
    let machine = Machine::new();
    machine.import("r.csv", "\"\",\"a\",\"b\"\n\"1\",1,2\n", &ROW).done();
    assert_eq!(machine.data(), [json!({"column1": 1, "a": 1, "b": 2})]);
    let machine = Machine::new();
    machine.import("a.csv", "id;name\n1;Ann\n", &["--type", "Row", "--delimiter", ","]).done();
    assert_eq!(machine.data(), [json!({"id;name": "1;Ann"})]);
}

#[test]
fn what_is_no_csv_is_named_and_nothing_is_imported() {
    let machine = Machine::new();
    let wide: Vec<u8> = "\u{feff}id,name\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (content, word) in [
        (&b"PK\x03\x04\x14\0\0\0\x08\0aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"[..], "zip archive"),
        (&wide, "UTF-16"),
        (b"<!DOCTYPE html>\n<html></html>\n", "HTML"),
        (b"{\"type\":\"T\",\"data\":1}\n", "--format ndjson"),
        (b"id,name\n1,\"Ann, Bob\n", "never closed"),
        (b"id,name\n1, \"Ann, Bob\"\n", "a space stands"),
        (b"id,name\n1,A\0n\n", "byte 0"),
        (b"id,name\n1,Ann\r2,Bob\n", "line end"),
        (b"id,name,id\n1,Ann,2\n", "column id appears twice, as column 1 and 3"),
        (b"id,,b\n1,Ann,2\n", "column 2 has no name"),
        (b"id,name\n1,Ann\nid,name\n", "repeats the header"),
        (b"id;price, EUR\n1;1,5\n2;2,5\n", "--delimiter"),
        (b"id,name\n1,M\xfcller\n", "UTF-8"),
        (b"", "no line with text"),
    ] {
        let ran = machine.import("a.csv", content, &[&ROW[..], &["--dry-run"]].concat());
        assert!(matches!(ran.code, Some(64 | 65)), "{ran:?}");
        assert!(ran.err.contains(word), "{word}: {ran:?}");
    }
    let ran = machine.import("a.csv", "id,name\n", &ROW);
    assert!(ran.err.contains("contains only a header, id, name (8 bytes read)"), "{ran:?}");
    ran.done();
    assert_eq!(machine.data(), [] as [Value; 0]);
}

#[test]
fn identifiers_stay_text_and_options_decide_otherwise() {
    let text =
        "hash,version,zip,n,price\n1e5,1.10,007,1,1.50\nabc1234,-0,12,2,\n1e999999,2,3,-3.5,2\n";
    let machine = Machine::new();
    let dry = machine.import("a.csv", text, &[&ROW[..], &["--dry-run"]].concat());
    for told in [
        "hash: text, as line 2 has \"1e5\"",
        "zip: text, as line 2 has \"007\"",
        "n: number",
        "price: text, as line 2 has \"1.50\", which JSON prints otherwise; --number price",
    ] {
        assert!(dry.err.contains(told), "{told}: {dry:?}");
    }
    dry.done();
    machine.import("a.csv", text, &ROW).done();
    let first = json!({"hash": "1e5", "version": "1.10", "zip": "007", "n": 1, "price": "1.50"});
    assert_eq!(machine.data()[0], first);
    let machine = Machine::new();
    let more = ["--text", "n", "--number", "price"];
    machine.import("a.csv", text, &[&ROW[..], &more].concat()).done();
    let first = json!({"hash": "1e5", "version": "1.10", "zip": "007", "n": "1", "price": 1.5});
    assert_eq!(machine.data()[0], first);
    let machine = Machine::new();
    machine.import("a.csv", text, &[&ROW[..], &["--text", "all"]].concat()).done();
    assert_eq!(machine.data()[1]["n"], "2");
    machine.import("b.csv", text, &[&ROW[..], &["--text", "x"]].concat()).failed(64, "no column x");
}

#[test]
fn a_file_whose_column_becomes_another_type_is_refused_and_not_doubled() {
    let machine = Machine::new();
    let text = "n,later\n1,\n2,\n";
    machine.import("a.csv", text, &ROW).done();
    let grown = machine.import("a.csv", format!("{text}3,x\n"), &ROW);
    assert!(grown.err.contains("1 added, 2 known"), "an empty column may become text: {grown:?}");
    let broken = machine.import("a.csv", format!("{text}3,x\nfour,\n"), &ROW);
    assert!(broken.err.contains("n: text, as line 5 has \"four\""), "{broken:?}");
    broken.failed(1, "Nothing was added");
    assert_eq!(machine.data().len(), 3);
    machine.import("a.csv", format!("{text}3,x\n4,y\n"), &ROW).done();
    assert_eq!(machine.data().len(), 4);
}

#[test]
fn times_of_recording_come_from_a_column() {
    let machine = Machine::new();
    let text =
        "at,n\n2020-01-01T00:00:00Z,1\n2020-01-01T01:00:00+01:00,2\n2021-06-01T00:00:00Z,3\n";
    let by = [&ROW[..], &["--recorded-at-column", "at"]].concat();
    machine.import("a.csv", text, &by).done();
    let event = machine.server.client().get("/v1/events/2").unwrap().expect(200);
    assert_eq!(event["recorded_at"], "2020-01-01T00:00:00.000000Z");
    let url = machine.server.url();
    let lines = |words: &[&str]| {
        let ran = ProgramOutput::of(program(&[words, &["--url", &url]].concat()).output().unwrap());
        ran.done().lines().count()
    };
    assert_eq!(lines(&["export", "--since", "2020-01-01T00:00:00Z", "--until", "2021-06-01"]), 2);
    assert_eq!(lines(&["export", "--since", "2020-01-01T01:00:00.000001+01:00"]), 1);
    assert_eq!(lines(&["tail", "--since", "2020-01-02"]), 1);
    assert_eq!(lines(&["tail", "--until", "2020-01-02", "-n", "1"]), 1);
    let bad = "at,n\n2020-02-30T00:00:00Z,1\n";
    machine.import("b.csv", bad, &by).failed(65, "line 2: at: must be a moment");
}

#[test]
fn a_time_that_is_none_costs_its_line_alone() {
    let machine = Machine::new();
    let line = |time: &str| format!("{{\"type\":\"T\",\"data\":1,\"recorded_at\":\"{time}\"}}\n");
    let times = ["2020-01-01T00:00:00Z", "2020-02-30T00:00:00Z", "2020-01-03T00:00:00Z"];
    let text = times.map(line).concat();
    let ran = machine.import("b.ndjson", text.clone(), &[]);
    ran.failed(65, "line 2: recorded_at must be a moment since 1970");
    machine.import("b.ndjson", text, &["--skip-invalid"]).done();
    for (position, time) in [(1, "2020-01-01T00:00:00.000000Z"), (2, "2020-01-03T00:00:00.000000Z")]
    {
        let event =
            machine.server.client().get(&format!("/v1/events/{position}")).unwrap().expect(200);
        assert_eq!(event["recorded_at"], time);
    }
}

#[test]
fn rows_that_are_skipped_decide_no_type() {
    let by = [&ROW[..], &["--skip-invalid"]].concat();
    let machine = Machine::new();
    machine.import("a.csv", "day,sold\n1,5\nday,sold\n2,9\n", &by).done();
    let by_id = [&by[..], &["--recorded-at-column", "at"]].concat();
    machine.import("b.csv", "at,n\n2020-01-01T00:00:00Z,1\nnever,x\n", &by_id).done();
    let data = machine.data();
    assert_eq!(data[..2], [json!({"day": 1, "sold": 5}), json!({"day": 2, "sold": 9})]);
    assert_eq!(data[2]["n"], 1);
}

#[test]
fn a_pipe_has_types_too() {
    let machine = Machine::new();
    let url = machine.server.url();
    let words = ["import", "-", "--format", "csv", "--type", "Row", "--url", &url];
    let mut child = program(&words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"a;b\n1;x\n2;3\n").unwrap();
    ProgramOutput::of(child.wait_with_output().unwrap()).done();
    assert_eq!(machine.data(), [json!({"a": 1, "b": "x"}), json!({"a": 2, "b": "3"})]);
}

#[test]
fn work_of_a_moment_has_no_rate() {
    let machine = Machine::new();
    let ran = machine.import("a.csv", "a\n1\n", &ROW);
    assert!(ran.err.contains("Imported 1 event") && !ran.err.contains("events/s"), "{ran:?}");
}
