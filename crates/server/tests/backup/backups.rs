//! Backup and restore with the real program: the drill of docs/production.md, a trial under load
//! with kill -9, the schedule, the scrub, and what they say of trouble.

use crate::client::Client;
use crate::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use wellspring_patience::Patience;

const PROGRAM: &str = env!("CARGO_BIN_EXE_wellspring");

fn tool(words: &[&str]) -> Output {
    Command::new(PROGRAM).args(words).output().unwrap()
}

/// Runs a tool that has to succeed; returns what it printed.
pub(crate) fn done(words: &[&str]) -> String {
    let output = tool(words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {said}");
    String::from_utf8(output.stdout).unwrap() + &said
}

/// Runs a tool that has to fail with this code; returns what it said.
pub(crate) fn refused(code: i32, words: &[&str]) -> String {
    let output = tool(words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    said
}

pub(crate) fn append(client: &mut Client, n: u64) -> u64 {
    let event = json!({"type": "T", "tags": ["a:1"], "data": {"n": n, "fill": "x".repeat(300)}});
    let answer = client.post("/v1/append", &json!({"events": [event.clone(), event]})).unwrap();
    answer.expect(200)["last"].as_u64().unwrap()
}

pub(crate) fn head(client: &mut Client) -> u64 {
    client.get("/v1/head").unwrap().expect(200)["head"].as_u64().unwrap()
}

pub(crate) fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The segments of the log main, in order.
fn segments(data: &Path) -> Vec<PathBuf> {
    let dir = data.join("logs/main");
    let mut found: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "seg"))
        .collect();
    found.sort();
    found
}

pub(crate) const SMALL: &[&str] = &["--segment-bytes", "65536", "--scrub-bytes-per-s", "0"];
/// Segments for many rounds: each open one takes two file descriptors.
const LARGER: &[&str] = &["--segment-bytes", "1048576", "--scrub-bytes-per-s", "0"];

/// The steps of docs/production.md, in their order.
#[test]
fn the_drill_of_the_manual_brings_everything_back() {
    let dir = tempfile::tempdir().unwrap();
    let (data, place) = (dir.path().join("data"), dir.path().join("backups"));
    let server = Server::start_in(&data, SMALL);
    let mut client = server.client();
    for n in 0..200 {
        append(&mut client, n);
    }
    let before = client.get("/v1/logs/main").unwrap().expect(200);
    let said = done(&["backup", "--url", &server.url(), "--to", shown(&place)]);
    assert!(said.contains("is finished: ") && said.contains(" of 2 logs"), "{said}");
    let list = done(&["backup", "list", "--from", shown(&place)]);
    assert!(list.contains("main 400"), "{list}");
    let list = done(&["backup", "list", "--json", "--from", shown(&place)]);
    let listed: Value = serde_json::from_str(&list).unwrap();
    assert_eq!((&listed["state"], &listed["logs"][0]["head"]), (&json!("finished"), &json!(400)));
    assert_eq!(listed["logs"][0]["history"], before["history"]);
    let sound = done(&["verify", "--from", shown(&place)]);
    assert!(sound.contains("sound: every event is present and unchanged"), "{sound}");
    // What comes after the backup is lost with the server.
    append(&mut client, 7);
    drop(client);
    drop(server);
    let old = dir.path().join("data.lost");
    fs::rename(&data, &old).unwrap();
    let said = done(&["restore", "--from", shown(&place), "--data", shown(&data)]);
    assert!(said.contains("main: up to position 400; history "), "{said}");
    assert!(said.contains("409 another-history") && said.contains("take a backup"), "{said}");
    let verified = done(&["verify", "--data", shown(&data), "--log", "main"]);
    assert!(verified.contains("400 events"), "{verified}");
    let server = Server::start_in(&data, SMALL);
    let mut client = server.client();
    assert_eq!(head(&mut client), 400);
    let after = client.get("/v1/logs/main").unwrap().expect(200);
    assert_ne!(before["history"], after["history"]);
    // A consumer that saw more is told, by its history and by its position alone.
    let known = before["history"].as_str().unwrap();
    let headers = [("Wellspring-History", known)];
    let told = client.call("GET", "/v1/events?after=10", &headers, b"").unwrap().problem(409);
    assert_eq!(told["type"], "/problems/another-history");
    assert_eq!((&told["head"], &told["history"]), (&json!(400), &after["history"]));
    let told = client.get("/v1/events?after=402").unwrap().problem(409);
    assert_eq!((&told["position"], &told["head"]), (&json!(402), &json!(400)));
    assert_eq!(append(&mut client, 1), 402);
    // No backup holds the state of a time that it does not cover.
    let other = dir.path().join("other");
    for time in ["2099-01-01T00:00:00Z", "2000-01-01T00:00:00Z"] {
        let words = ["restore", "--from", shown(&place), "--data", shown(&other), "--time", time];
        let said = refused(64, &words);
        assert!(said.contains(time.trim_end_matches('Z')) && said.contains("covers 20"), "{said}");
        assert!(!other.exists(), "nothing is made");
    }
    // The backup of the other history goes when it is named, and only all of the names together.
    let old_name = listed["name"].as_str().unwrap_or_else(|| panic!("{listed}"));
    done(&["backup", "--url", &server.url(), "--to", shown(&place), "--keep", "1"]);
    let remove = ["backup", "remove", "--from", shown(&place), old_name];
    let said = refused(66, &[&remove[..], &["20000101T000000Z"]].concat());
    assert!(said.contains("holds no backup 20000101T000000Z"), "{said}");
    assert_eq!(done(&["backup", "list", "--from", shown(&place)]).lines().count(), 3);
    let said = done(&remove);
    assert!(said.contains(&format!("Removed 1 backup: {old_name}; and ")), "{said}");
    assert_eq!(done(&["backup", "list", "--from", shown(&place)]).lines().count(), 2);
    // A folder that has logs is never written to.
    let said = refused(64, &["restore", "--from", shown(&place), "--data", shown(&old)]);
    assert!(said.contains("is not empty"), "{said}");
}

#[test]
fn an_archive_goes_through_pipes_and_a_log_ends_where_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_with(SMALL);
    let mut client = server.client();
    let mut time = String::new();
    for n in 0..30 {
        let last = append(&mut client, n);
        if n == 9 {
            let event = client.get(&format!("/v1/events/{last}")).unwrap().expect(200);
            time = event["recorded_at"].as_str().unwrap().to_owned();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let server_url = server.url();
    let archive = tool(&["backup", "--url", &server_url, "--to", "-"]).stdout;
    let tar = dir.path().join("b.tar");
    fs::write(&tar, &archive).unwrap();
    let from_pipe = dir.path().join("pipe");
    let mut piped = Command::new(PROGRAM)
        .args(["restore", "--from", "-", "--data", shown(&from_pipe)])
        .stdin(Stdio::from(fs::File::open(&tar).unwrap()))
        .spawn()
        .unwrap();
    assert!(piped.wait().unwrap().success());
    assert!(!from_pipe.join("logs.restoring.tar").exists());
    let to_time = dir.path().join("time");
    let said =
        done(&["restore", "--from", shown(&tar), "--data", shown(&to_time), "--time", &time]);
    assert!(said.contains("main: up to position 20, 40 later events left out"), "{said}");
    let position = ["--log", "main", "--position"];
    let to_position = dir.path().join("position");
    let words = ["restore", "--from", shown(&tar), "--data", shown(&to_position)];
    let said = refused(64, &[&words[..], &position, &["7"]].concat());
    assert!(said.contains("restore up to 6 or 8"), "{said}");
    let said = refused(64, &[&words[..], &["--log", "absent"]].concat());
    assert!(said.contains("has no log absent"), "{said}");
    done(&[&words[..], &position, &["8"]].concat());
    let restored = Server::start_in(&to_position, SMALL);
    assert_eq!(head(&mut restored.client()), 8);
    // A reader that leaves is told nothing, as with every tool.
    let mut left = Command::new(PROGRAM)
        .args(["backup", "--url", &server_url, "--to", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(left.stdout.take());
    let output = left.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(141), "{said}");
    assert!(!said.contains("wellspring: "), "{said}");
    // Cut off, it is refused by name.
    fs::write(&tar, &archive[..archive.len() / 2]).unwrap();
    let cut = dir.path().join("cut");
    let said = refused(1, &["restore", "--from", shown(&tar), "--data", shown(&cut)]);
    assert!(said.contains("was begun and not finished"), "{said}");
    let said = refused(66, &["verify", "--from", shown(&dir.path().join("none"))]);
    assert!(said.contains("holds no backups"), "{said}");
}

/// Under load, with kill -9 of the server or of the backup at random: every finished backup holds
/// every event acknowledged before it began, and an unfinished one is refused.
///
/// `WELLSPRING_TEST_BACKUP_ROUNDS` sets the number of rounds (default 8).
#[test]
fn backups_under_load_and_kill_9_are_whole_or_refused() {
    let rounds = std::env::var("WELLSPRING_TEST_BACKUP_ROUNDS");
    let rounds: u64 = rounds.map_or(8, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let (data, place) = (dir.path().join("data"), dir.path().join("backups"));
    let (mut finished, mut broken) = (0, 0);
    for round in 0..rounds {
        let server = Server::start_in(&data, LARGER);
        let (address, url) = (server.address, server.url());
        let acknowledged = AtomicU64::new(head(&mut server.client()));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let Ok(mut client) = Client::connect(address) else { return };
                    let event = json!({"type": "T", "data": "x".repeat(2_000)});
                    let body = json!({"events": [event]});
                    while !stop.load(Ordering::Relaxed) {
                        let Ok(answer) = client.post("/v1/append", &body) else { return };
                        let last = answer.expect(200)["last"].as_u64().unwrap();
                        acknowledged.fetch_max(last, Ordering::SeqCst);
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(150));
            let before = acknowledged.load(Ordering::SeqCst);
            let mut backup = Command::new(PROGRAM)
                .args(["backup", "--url", &url, "--to", shown(&place), "--rate", "4000000"])
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            // A third of the rounds each: nothing, the server, the backup.
            let delay = Duration::from_millis(40 + round * 37 % 400);
            let mut server = Some(server);
            match round % 3 {
                0 => {}
                1 => {
                    std::thread::sleep(delay);
                    server.take().unwrap().kill();
                }
                _ => {
                    std::thread::sleep(delay);
                    let _ = backup.kill();
                }
            }
            let status = backup.wait().unwrap();
            stop.store(true, Ordering::Relaxed);
            let list = done(&["backup", "list", "--from", shown(&place)]);
            let is_unfinished = |line: &&str| line.contains(" unfinished ");
            let newest = list.lines().rfind(|line| !is_unfinished(line));
            if status.success() {
                finished += 1;
                let name = newest.unwrap().split(' ').next().unwrap();
                done(&["verify", "--from", shown(&place), "--backup", name]);
                let to = dir.path().join(format!("restored-{round}"));
                let words = ["restore", "--from", shown(&place), "--data", shown(&to)];
                let said = done(&[&words[..], &["--backup", name]].concat());
                let head: u64 = {
                    let server = Server::start_in(&to, LARGER);
                    crate::backups::head(&mut server.client())
                };
                assert!(head >= before, "round {round}: {head} of {before}: {said}");
                done(&["verify", "--data", shown(&to), "--log", "main"]);
                fs::remove_dir_all(to).unwrap();
            } else {
                broken += 1;
                if let Some(line) = list.lines().find(is_unfinished) {
                    let name = line.split(' ').next().unwrap();
                    let to = dir.path().join("never");
                    let words = ["restore", "--from", shown(&place), "--data", shown(&to)];
                    let said = refused(1, &[&words[..], &["--backup", name]].concat());
                    assert!(said.contains(name) && said.contains("not finished"), "{said}");
                }
            }
        });
    }
    assert!(finished > 0, "{finished} finished, {broken} broken");
}

/// Short-lived logs must not keep a server from ever having a backup.
#[test]
fn a_backup_is_finished_without_the_logs_that_are_deleted_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("backups");
    let server = Server::start_with(SMALL);
    let mut client = server.client();
    for n in 0..300 {
        append(&mut client, n);
    }
    let event = json!({"events": [{"type": "T", "data": 1}]});
    for log in ["zz-gone", "zz-made-anew", "zz-stays"] {
        client.call("PUT", &format!("/v1/logs/{log}"), &[], b"").unwrap().expect(201);
        client.post(&format!("/v1/logs/{log}/append"), &event).unwrap().expect(200);
    }
    let mut backup = Command::new(PROGRAM)
        .args(["backup", "--url", &server.url(), "--to", shown(&place), "--rate", "65536"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let is_planned = || fs::read_dir(place.join("segments")).is_ok();
    let mut patience = Patience::new();
    while !is_planned() {
        patience.pause("the backup does not begin");
    }
    for log in ["zz-gone", "zz-made-anew"] {
        let path = format!("/v1/logs/{log}?confirm={log}");
        client.call("DELETE", &path, &[], b"").unwrap().expect(200);
    }
    client.call("PUT", "/v1/logs/zz-made-anew", &[], b"").unwrap().expect(201);
    client.post("/v1/logs/zz-made-anew/append", &event).unwrap().expect(200);
    assert!(backup.try_wait().unwrap().is_none(), "the logs were deleted too late");
    let output = backup.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("because deleted while it was taken: zz-gone, zz-made-anew"), "{said}");
    let list = done(&["backup", "list", "--from", shown(&place)]);
    assert!(list.contains("main 600") && list.contains("zz-stays 1"), "{list}");
    assert!(!list.contains("zz-gone") && !list.contains("zz-made-anew"), "{list}");
    done(&["verify", "--from", shown(&place)]);
}

/// Waits until a figure satisfies a check.
pub(crate) fn figure(client: &mut Client, name: &str, holds: impl Fn(f64) -> bool) -> f64 {
    let mut patience = Patience::new();
    loop {
        let page = client.get("/metrics").unwrap().text();
        let line = page.lines().find(|line| line.starts_with(name) && !line.starts_with('#'));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        if let Some(value) = value.filter(|&value| holds(value)) {
            return value;
        }
        patience.pause(format_args!("{name}: {value:?}"));
    }
}

#[test]
fn the_server_takes_backups_of_itself_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("backups");
    let flags = ["--backup-to", shown(&place), "--backup-keep", "2"];
    let server = Server::start_in(&dir.path().join("data"), &[SMALL, &flags].concat());
    let mut client = server.client();
    append(&mut client, 1);
    figure(&mut client, "wellspring_backups_total{outcome=\"finished\"}", |count| count >= 1.0);
    let newest =
        figure(&mut client, "wellspring_backup_last_success_timestamp_seconds", |us| us > 0.0);
    assert!(newest > 1.6e9);
    server.logged(&["a scheduled backup is finished"]);
    done(&["verify", "--from", shown(&place)]);
    // After a restart the figure is that of before, although no backup is due.
    drop((client, server));
    let server = Server::start_in(&dir.path().join("data"), &[SMALL, &flags].concat());
    let mut client = server.client();
    let again =
        figure(&mut client, "wellspring_backup_last_success_timestamp_seconds", |us| us > 0.0);
    assert!((newest - again).abs() < 0.01, "{newest} {again}");
    assert_eq!(
        figure(&mut client, "wellspring_backups_total{outcome=\"finished\"}", |_| true),
        0.0
    );
    // The backup of one server is not that of another in the same place, which takes its own.
    let other = Server::start_with(&[SMALL, &flags].concat());
    let finished = "wellspring_backups_total{outcome=\"finished\"}";
    figure(&mut other.client(), finished, |count| count >= 1.0);
    // It says which stay that its count does not concern.
    other.logged(&["backups stay until they are named", "another server's", "remove --from"]);
    drop((client, other));
    // A damaged manifest is told at the start. The next backup is as good as any; what fails is the
    // removal of old ones.
    let list = done(&["backup", "list", "--from", shown(&place)]);
    let name = list.lines().nth(1).unwrap().split(' ').next().unwrap();
    let manifest = place.join(format!("backups/{name}.json"));
    let mut bytes = fs::read(&manifest).unwrap();
    bytes[100] ^= 1;
    fs::write(&manifest, &bytes).unwrap();
    let third = Server::start_with(&[SMALL, &flags].concat());
    let remedy = format!("backup remove --from {} {name}", shown(&place));
    third.logged(&["the manifest of a backup cannot be read", &remedy]);
    let mut client = third.client();
    figure(&mut client, finished, |count| count >= 1.0);
    third.logged(&["old backups could not be removed", &remedy]);
    for (name, count) in [
        ("wellspring_backups_total{outcome=\"failed\"}", 0.0),
        ("wellspring_backup_unreadable_manifests", 1.0),
        ("wellspring_backup_failed_removals_total", 1.0),
    ] {
        assert_eq!(figure(&mut client, name, |_| true), count, "{name}");
    }
    drop((client, third));
    // Another process may not write to it at the same moment, and the folder may vanish: the
    // server goes on.
    let bad = ["--backup-to", "/proc/none", "--backup-every-s", "60"];
    let server = Server::start_with(&[SMALL, &bad].concat());
    let mut client = server.client();
    figure(&mut client, "wellspring_backups_total{outcome=\"failed\"}", |count| count >= 1.0);
    append(&mut client, 1);
    let said = refused(1, &["serve", "--listen", "127.0.0.1:0", "--backup-to", "ftp://x"]);
    assert!(said.contains("backup_to"), "{said}");
    let said = refused(1, &["serve", "--listen", "127.0.0.1:0", "--backup-to", "-"]);
    assert!(said.contains("backup_to -: must be a folder"), "{said}");
    assert!(!Path::new("-").exists());
}

/// What was recorded before the log was restored is in no other backup, although the log system is
/// the same.
#[test]
fn a_backup_from_before_one_log_was_restored_stays_and_the_tool_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let (data, place) = (dir.path().join("data"), dir.path().join("backups"));
    let server = Server::start_in(&data, SMALL);
    let mut client = server.client();
    for n in 0..3 {
        append(&mut client, n);
    }
    let backup = |server: &Server, more: &[&str]| {
        let url = server.url();
        done(&[&["backup", "--url", &url, "--to", shown(&place)], more].concat())
    };
    backup(&server, &[]);
    let list = done(&["backup", "list", "--from", shown(&place)]);
    let old = list.lines().nth(1).unwrap().split(' ').next().unwrap();
    drop((client, server));
    fs::remove_dir_all(data.join("logs/main")).unwrap();
    let from = ["restore", "--from", shown(&place), "--data", shown(&data)];
    done(&[&from[..], &["--log", "main", "--position", "2"]].concat());
    let server = Server::start_in(&data, SMALL);
    let names = || done(&["backup", "list", "--from", shown(&place)]).lines().count() - 1;
    for _ in 0..2 {
        append(&mut server.client(), 9);
        let said = backup(&server, &["--keep", "1"]);
        for part in [
            &format!("{old} stays, not counted: the log main has another history now"),
            &format!("`wellspring backup remove --from {} {old}`", shown(&place)),
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(names(), 2);
    }
    drop(server);
    // The history of the old one cannot be kept where the place has later events.
    let newest = done(&["backup", "list", "--from", shown(&place)]);
    let newest = newest.lines().nth(2).unwrap().split(' ').next().unwrap().to_owned();
    let other = dir.path().join("other");
    let kept = ["restore", "--from", shown(&place), "--data", shown(&other), "--keep-history"];
    done(&[&kept[..], &["--backup", &newest]].concat());
    let server = Server::start_in(&other, SMALL);
    append(&mut server.client(), 9);
    let said = backup(&server, &["--keep", "2"]);
    assert!(said.contains("stays, not counted"), "{said}");
    drop(server);
    fs::remove_dir_all(&other).unwrap();
    let said = refused(64, &[&kept[..], &["--backup", &newest]].concat());
    assert!(said.contains("leave out --keep-history"), "{said}");
    assert!(!other.exists());
}

#[test]
fn a_scrub_finds_a_flipped_byte_names_the_remedy_and_the_remedy_works() {
    let dir = tempfile::tempdir().unwrap();
    let (data, place) = (dir.path().join("data"), dir.path().join("backups"));
    let server = Server::start_in(&data, SMALL);
    let mut client = server.client();
    for n in 0..300 {
        append(&mut client, n);
    }
    done(&["backup", "--url", &server.url(), "--to", shown(&place)]);
    for n in 0..50 {
        append(&mut client, n);
    }
    let all = client.call("GET", "/v1/events", &[("Accept", "application/x-ndjson")], b"").unwrap();
    let all = all.text();
    drop(client);
    drop(server);
    // In a segment whose index is there, so the start does not read it.
    let damaged = segments(&data)[1].clone();
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[20_000] ^= 4;
    fs::write(&damaged, bytes).unwrap();
    let eager = ["--segment-bytes", "65536", "--scrub-every-s", "1"];
    let server = Server::start_in(&data, &eager);
    let mut client = server.client();
    figure(&mut client, "wellspring_scrub_damaged_files", |files| files == 1.0);
    figure(&mut client, "wellspring_log_damaged_segments{log=\"main\"}", |files| files == 1.0);
    let ready = client.get("/health/ready").unwrap();
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains("wellspring mend"), "{}", ready.text());
    // A subscription that can be sent nothing says so, at the latest when it comes again.
    let first: u64 = damaged.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let mut is_unreadable =
        |position: &u64| client.get(&format!("/v1/events/{position}")).unwrap().status == 500;
    let unreadable = (first..).find(|position| is_unreadable(position)).unwrap();
    let path = format!("/v1/events?after={}", unreadable - 1);
    let headers = [("Accept", "text/event-stream")];
    let told = server.client().call("GET", &path, &headers, b"").unwrap().problem(500);
    assert_eq!(told["type"], "/problems/corrupt");
    // One that was sent something breaks off; however often, that is a line, which names the log.
    let before_it = format!("/v1/events?after={}", unreadable - 3);
    for path in [&before_it, "/v1/events?after=0"] {
        for accept in ["text/event-stream", "application/x-ndjson"] {
            for _ in 0..10 {
                let _ = server.client().call("GET", path, &[("Accept", accept)], b"");
            }
        }
    }
    server.logged(&[
        "a request failed",
        "corrupt",
        "main",
        damaged.file_name().unwrap().to_str().unwrap(),
    ]);
    let told = server.log().iter().filter(|line| line.contains("was cut")).count();
    assert_eq!(told, 0, "a client must not fill the log: {:#?}", server.log());
    let told = server.log().iter().filter(|line| line.contains("a request failed")).count();
    assert!(told < 12, "{:#?}", server.log());
    // Whoever reads all of it is told once, with the file and the remedy.
    let name = damaged.file_name().unwrap().to_str().unwrap();
    let file = dir.path().join("all.ndjson");
    let said = refused(1, &["export", "-o", shown(&file), "--url", &server.url()]);
    for part in [name, "`wellspring mend`"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!file.exists() && !said.contains("--after"), "{said}");
    let another = dir.path().join("another");
    let said = refused(1, &["backup", "--url", &server.url(), "--to", shown(&another)]);
    for part in ["on the server, main/", name, "`wellspring mend` with an earlier backup"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let line = server.logged(&["stored data is damaged", "wellspring mend"]);
    assert!(line.contains(damaged.file_name().unwrap().to_str().unwrap()), "{line}");
    let mend = ["mend", "--from", shown(&place), "--data", shown(&data), "--log", "main"];
    let said = refused(1, &mend);
    assert!(said.contains("in use by a running server"), "{said}");
    drop(client);
    drop(server);
    let said = done(&mend);
    assert!(said.contains("mended ") && said.contains("sound"), "{said}");
    assert!(done(&mend).contains("nothing to mend"));
    let server = Server::start_in(&data, SMALL);
    let mut client = server.client();
    let now = client.call("GET", "/v1/events", &[("Accept", "application/x-ndjson")], b"").unwrap();
    assert_eq!(now.text(), all);
    let ready: Value = client.get("/health/ready").unwrap().expect(200);
    assert!(ready["reasons"].as_array().is_none_or(Vec::is_empty), "{ready}");
}

#[test]
fn foolish_places_are_refused_and_an_unfinished_restore_is_no_data_folder() {
    let dir = tempfile::tempdir().unwrap();
    let (data, place) = (dir.path().join("data"), dir.path().join("backups"));
    let server = Server::start_in(&data, SMALL);
    append(&mut server.client(), 1);
    let url = server.url();
    done(&["backup", "--url", &url, "--to", shown(&place)]);
    let logs = data.join("logs");
    for to in ["", shown(&data), shown(&logs)] {
        refused(64, &["backup", "--url", &url, "--to", to]);
    }
    for to in [&logs, &place] {
        refused(64, &["restore", "--from", shown(&place), "--data", shown(to)]);
    }
    // Another server's backups do not go when those of this one are counted.
    let other = Server::start_with(SMALL);
    for _ in 0..2 {
        done(&["backup", "--url", &other.url(), "--to", shown(&place), "--keep", "1"]);
    }
    let list = done(&["backup", "list", "--from", shown(&place)]);
    assert_eq!(list.lines().count(), 3, "the heading and {list}");
    let name = list.lines().nth(1).unwrap().split(' ').next().unwrap();
    // One log joins the others, once its place is free and no server has them.
    let one = [
        "restore",
        "--from",
        shown(&place),
        "--backup",
        name,
        "--log",
        "main",
        "--data",
        shown(&data),
    ];
    for words in [&one[..], &["restore", "--rolled-back", "--data", shown(&data)]] {
        let said = refused(1, words);
        assert!(said.contains("stop it first"), "{said}");
    }
    drop(server);
    let said = refused(64, &one);
    assert!(said.contains("move it away first"), "{said}");
    fs::rename(logs.join("main"), dir.path().join("main.lost")).unwrap();
    done(&one);
    let server = Server::start_in(&data, SMALL);
    assert_eq!(head(&mut server.client()), 2);
    drop(server);
    fs::create_dir(data.join("logs.restoring")).unwrap();
    let listen = ["serve", "--listen", "127.0.0.1:0", "--data", shown(&data)];
    let said = refused(1, &listen);
    assert!(said.contains("interrupted restore"), "{said}");
}
