//! `wellspring import`: the same content is added once, in whatever form it is given.

use crate::closed::{Closed, PASSWORD};
use crate::disk::SmallDisk;
use crate::server::Server;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use wellspring_patience::Patience;

/// A server, and a folder for files to import.
struct Ground {
    server: Server,
    dir: tempfile::TempDir,
}

fn command(server: &Server, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wellspring"));
    command
        .args(args)
        .args(["--url", &server.url()])
        .env_remove("WELLSPRING_URL")
        .env_remove("WELLSPRING_TOKEN")
        .env_remove("HOME")
        .env_remove("XDG_STATE_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn finish(mut command: Command, input: &[u8]) -> Output {
    let mut child = command.spawn().unwrap();
    // An import that refuses before reading closes its end.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

impl Ground {
    fn new() -> Ground {
        Ground { server: Server::start(), dir: tempfile::tempdir().unwrap() }
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn import(&self, file: &Path, more: &[&str]) -> Output {
        let args = [&["import", file.to_str().unwrap()], more].concat();
        finish(command(&self.server, &args), b"")
    }

    /// The output of a successful import.
    fn imported(&self, file: &Path, more: &[&str]) -> String {
        let output = self.import(file, more);
        assert!(output.status.success(), "{more:?}: {}", said(&output));
        said(&output)
    }

    /// The error output of an import that exits with this code.
    fn refused(&self, file: &Path, more: &[&str], code: i32) -> String {
        let output = self.import(file, more);
        assert_eq!(output.status.code(), Some(code), "{more:?}: {}", said(&output));
        said(&output)
    }

    fn head(&self) -> u64 {
        self.server.client().get("/v1/head").unwrap().expect(200)["head"].as_u64().unwrap()
    }

    /// All events, without the fields that the log assigns.
    fn events(&self) -> Vec<Value> {
        let headers = [("Accept", "application/x-ndjson")];
        let all = self.server.client().call("GET", "/v1/events", &headers, b"").unwrap().text();
        let event = |line: &str| {
            let mut event: Value = serde_json::from_str(line).unwrap();
            event.as_object_mut().unwrap().remove("position");
            event.as_object_mut().unwrap().remove("recorded_at");
            event
        };
        all.lines().map(event).collect()
    }
}

fn lines(range: std::ops::Range<usize>) -> String {
    range.map(|n| format!("{{\"type\":\"T\",\"tags\":[\"n:{n}\"],\"data\":{n}}}\n")).collect()
}

fn gzipped(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn one_file_is_added_once_in_any_batch_size_compression_name_and_through_a_pipe() {
    let ground = Ground::new();
    let text = lines(0..2_500);
    let file = ground.file("a.ndjson", &text);
    assert!(ground.imported(&file, &[]).contains("Imported 2,500 events: 2,500 added;"));
    let known = "Imported 2,500 events: 0 added, 2,500 known";
    for batch in ["1", "7", "500", "999", "1000"] {
        assert!(ground.imported(&file, &["--batch", batch]).contains(known), "{batch}");
    }
    assert!(ground.imported(&ground.file("b.jsonl", &text), &[]).contains(known));
    assert!(ground.imported(&ground.file("a.ndjson.gz", gzipped(&text)), &[]).contains(known));
    for input in [text.clone().into_bytes(), gzipped(&text), text.replace('\n', "\r\n\n").into()] {
        let piped = finish(command(&ground.server, &["import", "--format", "ndjson", "-"]), &input);
        assert!(said(&piped).contains(known), "{}", said(&piped));
    }
    // Parsed by the tool, not the server: the same events are the same import.
    let array = format!("[{}]", text.trim_end().replace('\n', ",\n"));
    assert!(ground.imported(&ground.file("array.ndjson", array), &[]).contains(known));
    assert_eq!(ground.head(), 2_500);
    let order: Vec<u64> = ground.events().iter().map(|e| e["data"].as_u64().unwrap()).collect();
    assert_eq!(order, (0..2_500).collect::<Vec<_>>());
}

#[test]
fn a_small_batch_first_and_a_large_one_then_is_one_import_too() {
    let ground = Ground::new();
    let file = ground.file("a.csv", "a,b\n".to_owned() + &"1,x\n2,y\n".repeat(150));
    let csv = ["--type", "Row", "--tag", "a"];
    ground.imported(&file, &[&csv[..], &["--batch", "50"]].concat());
    let again = ground.imported(&file, &csv);
    assert!(again.contains("300 events: 0 added, 300 known"), "{again}");
    assert_eq!(ground.head(), 300);
}

#[test]
fn a_grown_file_adds_its_new_lines_and_a_changed_one_nothing() {
    let ground = Ground::new();
    let file = ground.file("a.ndjson", lines(0..1_200));
    ground.imported(&file, &[]);
    let file = ground.file("a.ndjson", lines(0..3_000));
    let grown = ground.imported(&file, &["--batch", "77"]);
    assert!(grown.contains("3,000 events: 1,800 added, 1,200 known"), "{grown}");
    let all: Vec<String> = lines(0..3_000).lines().map(|line| format!("{line}\n")).collect();
    for at in [0, 1, 2, 500, 1_199, 1_200, 2_999] {
        for what in ["changed", "inserted", "removed"] {
            let mut all = all.clone();
            match what {
                "changed" => all[at] = lines(9_000..9_001),
                "inserted" => all.insert(at, lines(9_000..9_001)),
                _ => drop(all.remove(at)),
            }
            // The head of a file counts as the same file.
            if at == 2_999 && what == "removed" {
                all.push(lines(9_000..9_001));
            }
            let changed = ground.file("changed.ndjson", all.concat());
            let told = ground.refused(&changed, &[], 1);
            assert!(told.contains("has changed since") && told.contains("--again"), "{told}");
            let line = match (at + 1).to_string() {
                four if four.len() == 4 => format!("line {},{}:", &four[..1], &four[1..]),
                fewer => format!("line {fewer}:"),
            };
            assert!(told.contains(&line), "{what} at {at}: {told}");
            assert_eq!(ground.head(), 3_000, "{what} at {at}: {told}");
        }
    }
    let shorter = ground.refused(&ground.file("shorter.ndjson", lines(0..700)), &[], 1);
    assert!(shorter.contains("ends earlier"), "{shorter}");
    let again = ground.imported(&file, &["--again", "second"]);
    assert!(again.contains("3,000 added;"), "{again}");
    ground.imported(&file, &["--again", "second"]);
    assert_eq!(ground.head(), 6_000);
}

#[test]
fn killed_on_either_side_an_import_goes_on_and_adds_nothing_twice() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_in(data.path(), &[]);
    let ground = Ground { server, dir: tempfile::tempdir().unwrap() };
    let text = lines(0..150_000);
    let file = ground.file("a.ndjson", &text);
    let args = ["import", file.to_str().unwrap(), "--batch", "100"];
    let wait_until = |ground: &Ground, head: u64| {
        // Everything may be there before a kill comes: the server stores what it was sent.
        let head = head.min(150_000);
        let mut patience = Patience::new();
        while ground.head() < head {
            patience.saw(ground.head());
            patience.pause(format_args!("position {head}"));
        }
    };
    for goal in [500, 20_000] {
        let mut child = command(&ground.server, &args).spawn().unwrap();
        wait_until(&ground, goal);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // The server starts while an import waits for it.
    let child = command(&ground.server, &args).spawn().unwrap();
    wait_until(&ground, ground.head() + 10_000);
    let address = ground.server.address;
    let Ground { server, dir } = ground;
    server.kill();
    let server = Server::start_at(Some(address), &[], data.path(), &[]);
    let ground = Ground { server, dir };
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(ground.head(), 150_000);
    assert!(ground.imported(&file, &[]).contains("0 added, 150,000 known"));
    let order: Vec<u64> = ground.events().iter().map(|e| e["data"].as_u64().unwrap()).collect();
    assert_eq!(order, (0..150_000).collect::<Vec<_>>());
}

#[test]
fn bad_lines_and_repeated_tags_are_counted_and_cost_no_more_than_themselves() {
    let ground = Ground::new();
    let long = format!("{{\"type\":\"T\",\"data\":\"{}\"}}", "x".repeat(3 << 20));
    let good = "{\"type\":\"T\",\"tags\":[\"a\",\"b\",\"a\",\"a\"],\"data\":1}";
    let text = format!("{good}\n{good}\nno\n\n{long}\n{{\"type\":\"\",\"data\":1}}\n{good}");
    let file = ground.file("dirty.ndjson", text);
    let told = ground.refused(&file, &[], 65);
    assert!(told.contains("line 3: ") && told.contains("--skip-invalid"), "{told}");
    assert!(!told.contains("line 1"), "{told}");
    assert_eq!(ground.head(), 2, "what is complete before a bad line is kept");
    let told = ground.imported(&file, &["--skip-invalid"]);
    let counts = "3 events: 1 added, 2 known (already in the log), 6 repeated tags dropped, 3 invalid lines skipped;";
    assert!(told.contains(counts), "{told}");
    for line in ["line 3: ", "line 5: ", "line 6: "] {
        assert!(told.contains(line), "{told}");
    }
    assert!(told.contains("from a file of their own"), "{told}");
    assert_eq!(ground.events()[1]["tags"], serde_json::json!(["a", "b"]));
    // A line corrected later is a change, and the message names it.
    let text = std::fs::read_to_string(&file)
        .unwrap()
        .replace("\nno\n", "\n{\"type\":\"T\",\"data\":2}\n");
    let told = ground.refused(&ground.file("dirty.ndjson", text), &["--skip-invalid"], 1);
    assert!(told.contains("line 3: ") && told.contains("corrected since"), "{told}");
}

#[test]
fn an_unclosed_quote_costs_its_row() {
    let ground = Ground::new();
    let file = ground.file("a.csv", "a,b\n1,x\n2,\"oops\n3,y\n4,\"z\nz\"\n5,\"open\n6,w\n");
    let csv = ["--type", "Row", "--tag", "a"];
    let told = ground.refused(&file, &csv, 65);
    assert!(told.contains("line 3") && told.contains("--skip-invalid"), "{told}");
    let told = ground.imported(&file, &[&csv[..], &["--skip-invalid"]].concat());
    assert!(told.contains("2 invalid lines skipped"), "{told}");
    let rows: Vec<Value> =
        ground.events().into_iter().map(|event| event["tags"][0].clone()).collect();
    assert_eq!(rows, ["a:1", "a:3", "a:4", "a:6"]);
}

#[test]
fn what_export_writes_is_read_back_unless_its_format_is_one_way() {
    let ground = Ground::new();
    let text = "{\"type\":\"A\",\"tags\":[\"x:1\",\"y,\\\"2\\\"\"],\"data\":{\"n\": 1.50},\"id\":\"018f5c3e-9b2a-7c11-8d3e-0123456789ab\",\"metadata\":{\"k\":\"v\"}}\n\
                {\"type\":\"B\",\"data_base64\":\"AP8=\"}\n{\"type\":\"C\",\"data\":null}\n";
    ground.imported(&ground.file("a.ndjson", text), &[]);
    let export = |format: &str| {
        let out = ground.dir.path().join(format!("out.{format}"));
        let args = ["export", "--format", format, "-o", out.to_str().unwrap()];
        let exported = finish(command(&ground.server, &args), b"");
        assert!(exported.status.success(), "{}", said(&exported));
        (out, said(&exported))
    };
    for format in ["ndjson", "cloudevents"] {
        let (out, _) = export(format);
        for (how, kept) in [("keep", false), ("metadata", true), ("drop", false)] {
            let other = Ground::new();
            other.imported(&out, &["--recorded-at", how]);
            let mut again = other.events();
            for event in again.iter_mut().filter(|_| kept) {
                let metadata = event["metadata"].as_object_mut().unwrap();
                assert!(metadata.remove("recorded_at").is_some(), "{format}: {event}");
                if metadata.is_empty() {
                    event.as_object_mut().unwrap().remove("metadata");
                }
            }
            assert_eq!(again, ground.events(), "{format}, {how}");
        }
    }
    let (out, told) = export("csv");
    assert!(told.contains("CSV is one-way"), "{told}");
    let other = Ground::new();
    let told = other.refused(&out, &[], 64);
    assert!(told.contains("one-way") && told.contains("--type-column type"), "{told}");
    other.imported(&out, &["--type-column", "type", "--tag", "id"]);
    let rows = other.events();
    let named = rows.iter().map(|event| event["type"].as_str().unwrap());
    assert_eq!(named.collect::<Vec<_>>(), ["A", "B", "C"]);
    assert_eq!(rows[0]["tags"][0], "id:018f5c3e-9b2a-7c11-8d3e-0123456789ab");
}

#[test]
fn parquet_is_written_by_programs_that_have_it() {
    let ground = Ground::new();
    ground.imported(&ground.file("a.ndjson", lines(0..10)), &[]);
    let out = ground.dir.path().join("a.parquet");
    let args = ["export", "-o", out.to_str().unwrap()];
    let exported = finish(command(&ground.server, &args), b"");
    if cfg!(feature = "parquet") {
        assert!(exported.status.success(), "{}", said(&exported));
        let bytes = fs::read(&out).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    } else {
        assert_eq!(exported.status.code(), Some(64));
        assert!(said(&exported).contains("--features parquet"), "{}", said(&exported));
        assert!(!out.exists());
    }
}

#[test]
fn uuid5_gives_every_event_an_id_and_the_same_one_each_time() {
    let (ground, other) = (Ground::new(), Ground::new());
    let given = "{\"type\":\"G\",\"data\":1,\"id\":\"018f5c3e-9b2a-7c11-8d3e-0123456789ab\"}\n";
    let file = ground.file("a.ndjson", lines(0..300) + &lines(0..300) + given);
    ground.imported(&file, &["--ids", "uuid5"]);
    other.imported(&file, &["--ids", "uuid5", "--batch", "13"]);
    let ids = |ground: &Ground| -> Vec<String> {
        ground.events().iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
    };
    let mut all = ids(&ground);
    assert_eq!(all, ids(&other));
    assert_eq!(all[600], "018f5c3e-9b2a-7c11-8d3e-0123456789ab");
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 601);
    assert!(ground.imported(&file, &["--ids", "uuid5"]).contains("0 added, 601 known"));
}

#[test]
fn a_full_disk_stops_at_once_and_says_where_it_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::start(dir.path(), &[]) else {
        println!("not tested: this system lets nobody mount a small disk");
        return;
    };
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("a.ndjson");
    let pad = "x".repeat(1_000);
    let text: String =
        (0..60_000).map(|n| format!("{{\"type\":\"T\",\"data\":\"{n} {pad}\"}}\n")).collect();
    fs::write(&file, text).unwrap();
    let args = ["import", file.to_str().unwrap()];
    let began = Instant::now();
    let output = finish(command(&disk.server, &args), b"");
    let told = said(&output);
    assert_eq!(output.status.code(), Some(69), "{told}");
    assert!(began.elapsed() < Duration::from_secs(20), "it does not wait for room");
    assert!(told.contains("disk is full"), "{told}");
    let head = disk.server.client().get("/v1/head").unwrap().expect(200)["head"].as_u64().unwrap();
    assert!(told.contains(&format!("up to line {head} (position {head})")), "{head}: {told}");
    let again = finish(command(&disk.server, &args), b"");
    let known = said(&again);
    assert!(known.contains(" known"), "{known}");
}

#[test]
fn an_import_is_known_to_its_account_alone() {
    let closed = Closed::start();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.ndjson");
    fs::write(&file, lines(0..10)).unwrap();
    for (name, added) in [("ann", "10 added"), ("bob", "10 added"), ("ann", "0 added, 10 known")] {
        if added.starts_with("10") {
            closed.add(name, &["writer"]);
        }
        let password = dir.path().join("password");
        fs::write(&password, PASSWORD).unwrap();
        fs::set_permissions(&password, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
        let args = ["import", file.to_str().unwrap(), "--user", name, "--user-password-file"];
        let args = [&args[..], &[password.to_str().unwrap()]].concat();
        let output = finish(command(&closed.server, &args), b"");
        assert!(said(&output).contains(added), "{name}: {}", said(&output));
    }
}

#[test]
fn wrong_parameters_and_bodies_get_a_problem_that_names_them() {
    let server = Server::start();
    let ndjson = [("Content-Type", "application/x-ndjson")];
    let post = |path: &str, body: &str| {
        server.client().call("POST", path, &ndjson, body.as_bytes()).unwrap()
    };
    for (query, field) in [
        ("batch=0", "batch"),
        ("batch=1001", "batch"),
        ("invalid=maybe", "invalid"),
        ("more=1", "more"),
        ("continues=x", "continues"),
        ("label=a%00b", "label"),
    ] {
        let problem = post(&format!("/v1/import?{query}"), "").problem(422);
        assert_eq!(problem["field"], field, "{query}");
    }
    let body = format!("{}{{\"type\":1}}\n", lines(0..3));
    let problem = post("/v1/import", &body).problem(422);
    assert_eq!((&problem["line"], &problem["durable_lines"]), (&4.into(), &3.into()));
    let answer = post("/v1/import?invalid=skip", &body).expect(200);
    let counts = ["lines", "added", "known", "skipped"].map(|name| answer[name].as_u64().unwrap());
    assert_eq!(counts, [4, 0, 3, 1]);
    assert_eq!(answer["faults"][0]["line"], 4);
    let json = [("Content-Type", "application/json")];
    server.client().call("POST", "/v1/import", &json, b"{}").unwrap().problem(415);
}
