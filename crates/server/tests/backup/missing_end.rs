//! A log whose last files are gone leaves no damage. An index, a snapshot of a view or a backup
//! that knows more tells: the server does not start, so that it gives no position twice, and the
//! tools say what is missing and bring it back.

use crate::disk::copy_folder;
use crate::program::told;
use crate::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const SMALL: &[&str] = &["--segment-bytes", "65536", "--scrub-bytes-per-s", "0"];
/// More events than justify a snapshot of a view when the server stops.
const EVENTS: u64 = 10_500;

/// The files of the log main with this suffix, in order.
pub(crate) fn files(data: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("logs/main")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut found: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|end| end == suffix)).collect();
    found.sort();
    found
}

pub(crate) fn append(server: &Server, count: u64) {
    let mut client = server.client();
    for _ in 0..count / 500 {
        let event = json!({"type": "T", "tags": ["a:1"], "data": "x".repeat(60)});
        let events = vec![event; 500];
        client.post("/v1/append", &json!({"events": events})).unwrap().expect(200);
    }
}

fn head(server: &Server) -> Value {
    server.client().get("/v1/head").unwrap().expect(200)["head"].clone()
}

pub(crate) fn head_of(server: &Server) -> u64 {
    head(server).as_u64().unwrap()
}

/// The position of a segment's first event.
pub(crate) fn base_of(segment: &Path) -> u64 {
    segment.file_stem().unwrap().to_str().unwrap().parse().unwrap()
}

#[test]
fn a_log_that_has_lost_its_last_segments_does_not_start_and_a_backup_brings_them_back() {
    let dir = tempfile::tempdir().unwrap();
    let (data, place) = (dir.path().join("data"), dir.path().join("backups"));
    let (data_word, place_word) = (data.to_str().unwrap(), place.to_str().unwrap());
    let mut server = Server::start_alone(None, &[], &data, SMALL);
    append(&server, EVENTS);
    let (code, said) = told(&["backup", "--url", &server.url(), "--to", place_word]);
    assert_eq!(code, Some(0), "{said}");
    assert!(server.terminate().success());
    drop(server);
    assert!(data.join("logs/main/views/links.snapshot").exists());
    let both = ["verify", "--from", place_word, "--data", data_word];
    let (code, said) = told(&both);
    assert_eq!(code, Some(0), "{said}");
    let (segments, indexes) = (files(&data, "seg"), files(&data, "idx"));
    assert!(segments.len() > 8 && !indexes.is_empty(), "{segments:?}");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data", data_word];
    let verify = ["verify", "--data", data_word];
    // An index covers more than there is.
    let aside = dir.path().join("aside");
    fs::create_dir(&aside).unwrap();
    let take = |paths: &[PathBuf]| {
        for path in paths {
            fs::rename(path, aside.join(path.file_name().unwrap())).unwrap();
        }
    };
    take(&segments[segments.len() - 1..]);
    for words in [&serve[..], &verify] {
        let (code, said) = told(words);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("the events after it are missing"), "{said}");
    }
    // No index is left: a snapshot of a view knows.
    take(&segments[segments.len() - 3..segments.len() - 1]);
    take(&indexes);
    let (code, said) = told(&serve);
    assert_eq!(code, Some(1), "{said}");
    for part in ["events up to 10500", "links.snapshot", "wellspring mend"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (code, said) = told(&verify);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("events up to 10500") && said.contains("NOT SOUND"), "{said}");
    // No snapshot either: only the backup knows.
    fs::remove_dir_all(data.join("logs/main/views")).unwrap();
    let (code, said) = told(&verify);
    assert_eq!(code, Some(0), "nothing tells: {said}");
    let (code, said) = told(&both);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("knows of events up to 10500"), "{said}");
    let mend = ["mend", "--from", place_word, "--data", data_word, "--log", "main"];
    let (code, said) = told(&mend);
    assert_eq!(code, Some(0), "{said}");
    // What came after the backup, nobody knows.
    for part in ["log main now ends at position 10,500", "another-history"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("every event is present"), "{said}");
    let (code, said) = told(&both);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = told(&mend);
    assert_eq!(code, Some(0), "{said}");
    for part in ["nothing to mend", "not be compared", "of this one before it was restored"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let server = Server::start_alone(None, &[], &data, SMALL);
    assert_eq!(head(&server), json!(EVENTS));
    drop(server);
    fs::remove_dir_all(data.join("logs/main")).unwrap();
    let (code, said) = told(&both);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("log main: not here") && said.contains("--log NAME"), "{said}");
}

pub(crate) fn history(server: &Server) -> Value {
    server.client().get("/v1/logs/main").unwrap().expect(200)["history"].clone()
}

/// Consumers may have seen events that a backup does not have: positions that are given again are
/// those of another history.
#[test]
fn a_log_whose_end_is_put_back_from_a_backup_gets_another_history() {
    let dir = tempfile::tempdir().unwrap();
    let (data, place) = (dir.path().join("data"), dir.path().join("backups"));
    let (data_word, place_word) = (data.to_str().unwrap(), place.to_str().unwrap());
    let mut server = Server::start_alone(None, &[], &data, SMALL);
    append(&server, EVENTS);
    let (code, said) = told(&["backup", "--url", &server.url(), "--to", place_word]);
    assert_eq!(code, Some(0), "{said}");
    append(&server, 500);
    let before = history(&server);
    assert!(before.is_string());
    assert!(server.terminate().success());
    drop(server);
    let mend = ["mend", "--from", place_word, "--data", data_word, "--log", "main"];
    let begun = |head: u64| {
        let server = Server::start_alone(None, &[], &data, SMALL);
        assert_eq!(head_of(&server), head);
        assert_ne!(history(&server), before);
        append(&server, 500);
        let (path, known) = (format!("/v1/events?after={}", head + 1), before.as_str().unwrap());
        let headers = [("Wellspring-History", known)];
        let told = server.client().call("GET", &path, &headers, b"").unwrap().problem(409);
        assert_eq!(told["type"], "/problems/another-history");
    };
    // The events after the backup begin in its last segment.
    let covered: Vec<PathBuf> = files(&data, "seg");
    let copied = dir.path().join("copied");
    copy_folder(&data, &copied);
    let last_of_backup =
        (1..covered.len()).rev().find(|&at| base_of(&covered[at]) <= EVENTS).unwrap();
    covered[last_of_backup..].iter().for_each(|path| fs::remove_file(path).unwrap());
    let (code, said) = told(&mend);
    assert_eq!(code, Some(0), "{said}");
    begun(EVENTS);
    // All segments are gone.
    fs::remove_dir_all(&data).unwrap();
    copy_folder(&copied, &data);
    files(&data, "seg").iter().for_each(|path| fs::remove_file(path).unwrap());
    for words in [
        &["serve", "--listen", "127.0.0.1:0", "--data", data_word][..],
        &["verify", "--data", data_word],
    ] {
        let (code, said) = told(words);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("all segments are missing"), "{said}");
    }
    let (code, said) = told(&mend);
    assert_eq!(code, Some(0), "{said}");
    begun(EVENTS);
    // A segment in the middle: nothing is lost, and the history stays.
    fs::remove_dir_all(&data).unwrap();
    copy_folder(&copied, &data);
    fs::remove_file(&covered[2]).unwrap();
    let (code, said) = told(&mend);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("sound: every event is present"), "{said}");
    let server = Server::start_alone(None, &[], &data, SMALL);
    assert_eq!((head_of(&server), history(&server)), (EVENTS + 500, before.clone()));
    drop(server);
    // Damage in the place of backups, which all of them share.
    let found = Command::new("find")
        .arg(&place)
        .args(["-size", "+40k", "-name", "*.seg"])
        .output()
        .unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    let file = found.lines().next().unwrap();
    let mut bytes = fs::read(file).unwrap();
    bytes[200] ^= 1;
    fs::write(file, bytes).unwrap();
    let fresh = dir.path().join("fresh");
    let restore = ["restore", "--from", place_word, "--data", fresh.to_str().unwrap()];
    for words in [&["verify", "--from", place_word][..], &restore] {
        let (code, said) = told(words);
        assert_eq!(code, Some(1), "{said}");
        let advice = format!("delete each file that is named in {place_word}, then take a backup");
        assert!(said.contains(&advice) && said.contains("segments/"), "{said}");
    }
}

#[test]
fn a_log_goes_on_without_its_lost_end_under_another_history() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let data_word = data.to_str().unwrap();
    let mut server = Server::start_alone(None, &[], &data, SMALL);
    append(&server, EVENTS);
    let before = history(&server);
    assert!(server.terminate().success());
    drop(server);
    let segments = files(&data, "seg");
    let last = segments.last().unwrap();
    let end = base_of(last) - 1;
    fs::remove_file(last).unwrap();
    let (code, said) = told(&["serve", "--listen", "127.0.0.1:0", "--data", data_word]);
    assert_eq!(code, Some(1), "{said}");
    let ends = format!("log main ends at position {end}, and the events after it are missing");
    let go_on = format!("`wellspring restore --rolled-back --data {data_word} --log main`");
    assert!(said.contains(&ends) && said.contains(&go_on), "{said}");
    assert!(!said.contains("damaged"), "{said}");
    let (code, said) = told(&["restore", "--rolled-back", "--data", data_word, "--log", "main"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = told(&["verify", "--data", data_word]);
    assert_eq!(code, Some(0), "{said}");
    let server = Server::start_alone(None, &[], &data, SMALL);
    assert_eq!(head_of(&server), end);
    assert_ne!(history(&server), before);
    let read = [("Accept", "application/x-ndjson")];
    let all = server.client().call("GET", "/v1/events", &read, b"").unwrap();
    assert_eq!(all.text().lines().count() as u64, end);
}

/// With delayed barriers a power loss takes the end, as the operator accepts: the server says so
/// and goes on. A log of another history is not compared.
#[test]
fn what_may_be_lost_by_the_settings_is_said_and_no_reason_against_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let (data, place) = (dir.path().join("data"), dir.path().join("backups"));
    let place_word = place.to_str().unwrap();
    let mut server = Server::start_alone(None, &[], &data, SMALL);
    append(&server, EVENTS);
    let (code, said) = told(&["backup", "--url", &server.url(), "--to", place_word]);
    assert_eq!(code, Some(0), "{said}");
    assert!(server.terminate().success());
    drop(server);
    let (segments, indexes) = (files(&data, "seg"), files(&data, "idx"));
    for path in segments[segments.len() - 2..].iter().chain(&indexes) {
        fs::remove_file(path).unwrap();
    }
    let delayed = [SMALL, &["--sync", "interval=100"]].concat();
    let server = Server::start_alone(None, &[], &data, &delayed);
    server.logged(&["the log has lost its last events", "links.snapshot"]);
    assert!(head(&server).as_u64().unwrap() < EVENTS);
    drop(server);
    let other = dir.path().join("other");
    let (code, said) = told(&["restore", "--from", place_word, "--data", other.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    let both = ["verify", "--from", place_word, "--data", other.to_str().unwrap()];
    let (code, said) = told(&both);
    assert_eq!(code, Some(0), "{said}");
    // The variable is for the server: only the flag asks for a comparison.
    let verify = Command::new(env!("CARGO_BIN_EXE_wellspring"))
        .args(&both[..3])
        .env("WELLSPRING_DATA", dir.path().join("none"))
        .output();
    assert!(verify.unwrap().status.success());
}

/// Nothing in a folder tells that a snapshot of the disk has put it back; the place of its backups
/// does.
#[test]
fn a_folder_that_was_put_back_is_told_by_its_backups() {
    let dir = tempfile::tempdir().unwrap();
    let [data, snapshot, place] = ["data", "snapshot", "backups"].map(|name| dir.path().join(name));
    let (data_word, place_word) = (data.to_str().unwrap(), place.to_str().unwrap());
    let mut server = Server::start_alone(None, &[], &data, SMALL);
    assert_eq!(server.client().call("PUT", "/v1/logs/orders", &[], b"").unwrap().status, 201);
    append(&server, 2_000);
    let before = history(&server);
    assert!(server.terminate().success());
    copy_folder(&data, &snapshot);
    let mut server = Server::start_alone(None, &[], &data, SMALL);
    append(&server, 1_000);
    let backup = |server: &Server| told(&["backup", "--url", &server.url(), "--to", place_word]);
    let (code, said) = backup(&server);
    assert!(code == Some(0) && !said.contains("WARNING"), "{said}");
    assert!(server.terminate().success());
    drop(server);
    fs::remove_dir_all(&data).unwrap();
    copy_folder(&snapshot, &data);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data", data_word];
    let (code, said) = told(&[&serve[..], &["--backup-to", place_word]].concat());
    assert_eq!(code, Some(1), "{said}");
    let remedy = format!("`wellspring restore --rolled-back --data {data_word} --log main`");
    for words in ["main ends at position 2000", "up to 3000", place_word, &remedy] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // A server that does not know the place cannot tell; a backup of it does.
    let mut server = Server::start_alone(None, &[], &data, SMALL);
    append(&server, 500);
    let (code, said) = backup(&server);
    assert_eq!(code, Some(0), "{said}");
    let warning = "WARNING: the log main ends at position 2500";
    assert!(said.contains(warning) && said.contains("up to 3000"), "{said}");
    assert!(server.terminate().success());
    drop(server);
    // A damaged log keeps no other from its new history.
    let orders = data.join("logs/orders/00000000000000000001.seg");
    let sound = fs::read(&orders).unwrap();
    fs::write(&orders, [&[sound[0] ^ 1], &sound[1..]].concat()).unwrap();
    let roll_back = || told(&["restore", "--rolled-back", "--data", data_word]);
    let (code, said) = roll_back();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("orders keeps its history") && said.contains("main: up to"), "{said}");
    fs::write(&orders, sound).unwrap();
    let (code, said) = roll_back();
    assert_eq!(code, Some(0), "{said}");
    let keep = ["--backup-to", place_word];
    let server = Server::start_alone(None, &[], &data, &[SMALL, &keep].concat());
    assert_eq!(head_of(&server), 2_500);
    assert_ne!(history(&server), before);
    let ready = server.client().get("/health/ready").unwrap().expect(200);
    assert!(ready.get("warnings").is_none_or(|found| found == &json!([])), "{ready}");
    server.logged(&["a scheduled backup is finished"]);
    let (code, said) = backup(&server);
    assert!(code == Some(0) && !said.contains("WARNING"), "{said}");
}

/// The files of root in a folder that belongs to another user.
/// One flipped byte in the newest manifest takes its positions; the segments in the place still
/// tell that there were more events.
#[test]
fn a_damaged_manifest_does_not_hide_that_a_folder_was_put_back() {
    let dir = tempfile::tempdir().unwrap();
    let [data, snapshot, place] = ["data", "snapshot", "backups"].map(|name| dir.path().join(name));
    let (data_word, place_word) = (data.to_str().unwrap(), place.to_str().unwrap());
    let backup = |server: &Server| told(&["backup", "--url", &server.url(), "--to", place_word]);
    let stopped = |mut server: Server| assert!(server.terminate().success());
    let server = Server::start_alone(None, &[], &data, SMALL);
    append(&server, 500);
    assert_eq!(backup(&server).0, Some(0));
    stopped(server);
    copy_folder(&data, &snapshot);
    let server = Server::start_alone(None, &[], &data, SMALL);
    append(&server, 500);
    assert_eq!(backup(&server).0, Some(0));
    stopped(server);
    fs::remove_dir_all(&data).unwrap();
    copy_folder(&snapshot, &data);
    let mut manifests: Vec<_> =
        fs::read_dir(place.join("backups")).unwrap().map(|entry| entry.unwrap().path()).collect();
    // `…Z-002` is later than `…Z`.
    manifests.sort_by_key(|path| path.file_stem().unwrap().to_owned());
    let newest = manifests.last().unwrap();
    let mut bytes = fs::read(newest).unwrap();
    bytes[100] ^= 1;
    fs::write(newest, bytes).unwrap();
    let name = newest.file_stem().unwrap().to_str().unwrap();
    let remove = format!("backup remove --from {place_word} {name}");
    let serve =
        ["serve", "--listen", "127.0.0.1:0", "--data", data_word, "--backup-to", place_word];
    let (code, said) = told(&serve);
    assert_eq!(code, Some(1), "{said}");
    for part in ["main ends at position 500", "segments/", &remove, "restore --rolled-back"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (code, said) = told(&["verify", "--from", place_word, "--data", data_word]);
    assert_eq!(code, Some(1), "{said}");
    for part in ["DAMAGED: backups/", &remove, "main in", "the last segments are missing"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (code, said) = told(&["backup", "list", "--from", place_word]);
    assert!(code == Some(0) && said.contains(&remove), "{said}");
    let server = Server::start_alone(None, &[], &data, SMALL);
    let (code, said) = backup(&server);
    assert_eq!(code, Some(0), "{said}");
    for part in ["WARNING: backups/", &remove, "WARNING: the log main ends at position 500"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let keep = ["backup", "--url", &server.url(), "--to", place_word, "--keep", "1"];
    let (code, said) = told(&keep);
    assert_eq!(code, Some(1), "{said}");
    for part in ["is finished", "this backup is finished, but old ones stay", &remove] {
        assert!(said.contains(part), "{part}: {said}");
    }
    stopped(server);
    let (code, said) = told(&["restore", "--rolled-back", "--data", data_word]);
    assert_eq!(code, Some(0), "{said}");
    let flags = [SMALL, &["--backup-to", place_word]].concat();
    let server = Server::start_alone(None, &[], &data, &flags);
    server.logged(&["the manifest of a backup cannot be read", &remove]);
    assert_eq!(head_of(&server), 500);
}

fn of_root(data: &Path) -> String {
    let found = Command::new("find").arg(data).args(["-uid", "0"]).output().unwrap();
    assert!(found.status.success());
    String::from_utf8(found.stdout).unwrap()
}

/// Only root can make the case.
#[test]
fn what_a_tool_writes_as_root_belongs_to_the_owner_of_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let [accounts, data] = ["accounts", "data"].map(|name| dir.path().join(name));
    let place = dir.path().join("backups");
    let [accounts_word, data_word, place_word] =
        [&accounts, &data, &place].map(|path| path.to_str().unwrap());
    // The owner must be able to reach its folder.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
    fs::create_dir(&accounts).unwrap();
    if chown(&accounts, Some(65_534), Some(65_534)).is_err() {
        return;
    }
    let password = dir.path().join("password");
    fs::write(&password, "a long enough password\n").unwrap();
    let user = ["user", "add", "ann", "--role", "admin", "--password-file"];
    let user = [&user[..], &[password.to_str().unwrap(), "--data", accounts_word]].concat();
    let (code, said) = told(&user);
    assert_eq!(code, Some(0), "{said}");
    assert!(accounts.join("logs/system/epoch").exists());
    assert_eq!(of_root(&accounts), "");
    let mut server = Server::start_alone(None, &[], &data, SMALL);
    append(&server, 2_000);
    let (code, said) = told(&["backup", "--url", &server.url(), "--to", place_word]);
    assert_eq!(code, Some(0), "{said}");
    assert!(server.terminate().success());
    drop(server);
    let given = Command::new("chown").args(["-R", "65534:65534", data_word]).status().unwrap();
    assert!(given.success());
    let (code, said) = told(&["restore", "--rolled-back", "--data", data_word]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(of_root(&data), "", "with another history");
    fs::remove_dir_all(data.join("logs/main")).unwrap();
    let restore = ["restore", "--from", place_word, "--data", data_word, "--log", "main"];
    let (code, said) = told(&restore);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(of_root(&data), "", "restored");
    let (code, said) = told(&["restore", "--rolled-back", "--data", data_word, "--log", "main"]);
    assert_eq!(code, Some(0), "{said}");
    let segment = files(&data, "seg").pop().unwrap();
    fs::remove_file(segment).unwrap();
    // It is of another history by now, which is told.
    let (code, said) = told(&["mend", "--from", place_word, "--data", data_word, "--log", "main"]);
    assert_eq!(code, Some(64), "{said}");
    assert_eq!(of_root(&data), "", "refused");
}
