//! Root runs a tool on a data folder of another user, who has planted links in it: they lead the
//! tool nowhere that the owner could not go. Only root can make the case.

use crate::server::Server;
use serde_json::json;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const NOBODY: u32 = 65_534;
const SMALL: &[&str] = &["--segment-bytes", "65536", "--scrub-bytes-per-s", "0"];

/// Runs a tool; returns its exit code and everything that it said.
fn told(words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_wellspring")).args(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout) + &text(output.stderr))
}

/// A folder that the tools' users can go through, and paths in it; `None` without root.
fn for_all() -> Option<tempfile::TempDir> {
    let dir = tempfile::tempdir().unwrap();
    let probe = dir.path().join("probe");
    fs::write(&probe, "").unwrap();
    chown(&probe, Some(NOBODY), Some(NOBODY)).ok()?;
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
    Some(dir)
}

fn private(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn give(path: &Path) {
    let given = Command::new("chown").args(["-hR", "65534:65534"]).arg(path).status().unwrap();
    assert!(given.success());
}

/// The paths of other owners than the folder's, of what is in it and what its links lead to.
fn of_root(data: &Path) -> String {
    let found = Command::new("find").arg(data).args(["-uid", "0"]).output().unwrap();
    String::from_utf8(found.stdout).unwrap()
}

/// A stopped server's data folder with an account, some full segments, and a backup in a place that
/// root alone can read.
fn filled(data: &Path, place: &Path) {
    let mut server = Server::start_alone(None, &[], data, SMALL);
    let event = json!({"type": "T", "tags": ["a:1"], "data": "x".repeat(100)});
    for _ in 0..4 {
        let events = json!({"events": vec![event.clone(); 500]});
        server.client().post("/v1/append", &events).unwrap().expect(200);
    }
    let backup = ["backup", "--url", &server.url(), "--to", place.to_str().unwrap()];
    let (code, said) = told(&backup);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fs::metadata(place).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(server.terminate().success());
}

#[test]
fn links_in_a_folder_of_another_user_lead_a_tool_of_root_nowhere() {
    let Some(dir) = for_all() else { return };
    let [data, place, password] =
        ["data", "place", "password"].map(|name: &str| -> PathBuf { dir.path().join(name) });
    filled(&data, &place);
    private(&password, "a long enough password\n");
    let [data_word, place_word, password_word] =
        [&data, &place, &password].map(|path| path.to_str().unwrap());
    let secrets = dir.path().join("secrets");
    fs::create_dir(&secrets).unwrap();
    let names = ["shadow", "epoch", "segment", "index", "lock", "mark"];
    names.iter().for_each(|name| private(&secrets.join(name), "precious"));
    let logs = data.join("logs");
    symlink(&secrets, logs.join("x")).unwrap();
    symlink(secrets.join("shadow"), logs.join("main/shadow")).unwrap();
    for log in ["main", "system"] {
        let first = "00000000000000000001";
        symlink(secrets.join("epoch"), logs.join(log).join("epoch.tmp")).unwrap();
        for (end, target) in [("seg", "segment"), ("idx", "index")] {
            let link = logs.join(log).join(format!("{first}.{end}.tmp"));
            symlink(secrets.join(target), link).unwrap();
        }
        let lock = logs.join(log).join("LOCK");
        fs::remove_file(&lock).unwrap();
        symlink(secrets.join("lock"), &lock).unwrap();
    }
    symlink(secrets.join("mark"), data.join("has-accounts")).unwrap();
    give(&data);
    let user = ["user", "add", "ann", "--role", "admin", "--password-file", password_word];
    let tools: [&[&str]; 5] = [
        &[&user[..], &["--data", data_word]].concat(),
        &["token", "list", "--data", data_word],
        &["restore", "--rolled-back", "--data", data_word],
        &["restore", "--from", place_word, "--data", data_word, "--log", "main"],
        &["mend", "--from", place_word, "--data", data_word, "--log", "main"],
    ];
    let look = || {
        let entries = names.map(|name| secrets.join(name)).into_iter().chain([secrets.clone()]);
        let looks = entries.map(|path| {
            let metadata = fs::metadata(&path).unwrap();
            let text = fs::read_to_string(&path).unwrap_or_default();
            (metadata.uid(), metadata.gid(), metadata.mode(), metadata.len(), text)
        });
        looks.collect::<Vec<_>>()
    };
    let before = look();
    for words in tools {
        let (code, said) = told(words);
        assert_ne!(code, Some(0), "{words:?}: the links are in its way: {said}");
        assert!(look() == before, "{words:?}: {:?} {said}", look());
    }
    assert_eq!(of_root(&data), "");
}

#[test]
fn what_root_alone_can_read_outside_the_folder_is_read_and_what_is_in_it_is_told() {
    let Some(dir) = for_all() else { return };
    let [old, data, place, password] =
        ["old", "data", "place", "password"].map(|name: &str| dir.path().join(name));
    filled(&old, &place);
    private(&password, "a long enough password\n");
    fs::create_dir(&data).unwrap();
    give(&data);
    let [data_word, place_word, password_word] =
        [&data, &place, &password].map(|path| path.to_str().unwrap());
    let restore = ["restore", "--from", place_word, "--data", data_word];
    let user = ["user", "add", "ann", "--role", "admin", "--password-file", password_word];
    for words in [&restore[..], &[&user[..], &["--data", data_word]].concat()] {
        let (code, said) = told(words);
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(of_root(&data), "");
    }
    // As an earlier version left it.
    let segment = data.join("logs/main/00000000000000000001.seg");
    chown(&segment, Some(0), Some(0)).unwrap();
    let (code, said) = told(&["restore", "--rolled-back", "--data", data_word, "--log", "main"]);
    assert_eq!(code, Some(74), "{said}");
    let remedy = format!("`chown -R {NOBODY}:{NOBODY} {data_word}`");
    assert!(said.contains(&remedy) && said.contains(segment.to_str().unwrap()), "{said}");
}
