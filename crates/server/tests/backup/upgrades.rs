//! What an earlier version wrote is opened by this one and answers as it did; what a later version
//! wrote is refused by name, and no event of it is touched. The folders are those in `fixtures`,
//! made by `fixtures/make-data` with the program of their version.

use crate::closed::ask;
use crate::program::run;
use crate::server::Server;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A data folder of an earlier version, unpacked.
struct DataFolder {
    version: String,
    /// What the program of that version answered.
    answers: Value,
    dir: tempfile::TempDir,
}

impl DataFolder {
    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn log(&self, name: &str) -> PathBuf {
        self.data().join("logs").join(name)
    }

    /// What `wellspring verify` says of a log.
    fn verify(&self, log: &str) -> crate::program::ProgramOutput {
        run(&["verify", "--data", self.data().to_str().unwrap(), "--log", log])
    }

    /// A server of this version on the folder.
    fn serve(&self) -> Server {
        // Not through a node that follows: that one has a folder of its own.
        Server::start_alone(None, &[], &self.data(), &[])
    }

    /// Asks what was asked then, and compares.
    fn compare(&self, server: &Server, bearer: &str) {
        let questions = self.answers["questions"].as_array().expect("a list");
        assert!(questions.len() >= 15, "only {} questions", questions.len());
        for question in questions {
            let word = |name: &str| question[name].as_str().expect("a text");
            let place = format!("{}: {} {}", self.version, word("method"), word("path"));
            let body = &question["body"];
            let answer = ask(&mut server.client(), bearer, word("method"), word("path"), body);
            let mut got = match answer.header("location") {
                Some(target) if answer.status / 100 == 3 => json!(target),
                _ => answer.json(),
            };
            // Later versions name it.
            if let Some(members) = got.as_object_mut().filter(|it| it.contains_key("head")) {
                members.remove("first");
            }
            assert_eq!(question["status"], answer.status, "{place}: {got}");
            assert_eq!(question["answer"], got, "{place}");
            let history = answer.header("wellspring-history");
            // Later versions name it on more routes.
            if let Some(known) = question["history"].as_str() {
                assert_eq!(Some(known), history, "{place}");
            }
        }
    }

    fn login(&self, server: &Server) -> String {
        let words =
            json!({"username": self.answers["account"], "password": self.answers["password"]});
        let token = server.client().post("/auth/token", &words).unwrap().expect(200);
        token["access_token"].as_str().expect("a token").to_owned()
    }
}

/// All folders, oldest first.
fn all() -> Vec<DataFolder> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut found = Vec::new();
    for entry in fs::read_dir(&fixtures).expect("the fixtures") {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8");
        let archive = name.strip_prefix("data-").and_then(|rest| rest.strip_suffix(".tar.gz"));
        let Some(version) = archive else { continue };
        let answers = fs::read(fixtures.join(format!("data-{version}.json"))).expect("its answers");
        let dir = tempfile::tempdir().unwrap();
        let unpacked = Command::new("tar").arg("xzf").arg(&path).arg("-C").arg(dir.path()).status();
        assert!(unpacked.expect("tar").success());
        let answers = serde_json::from_slice(&answers).expect("JSON");
        found.push(DataFolder { version: version.to_owned(), answers, dir });
    }
    assert!(!found.is_empty(), "no fixtures in {}", fixtures.display());
    found.sort_by(|a, b| a.version.cmp(&b.version));
    found
}

/// CRC32C, bit by bit.
fn checksum(bytes: impl IntoIterator<Item = u8>) -> u32 {
    !bytes.into_iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0x82f6_3b78 * (crc & 1)))
    })
}

/// Gives a file a version from the future, with the checksum that goes with it.
fn from_the_future(path: &Path) {
    let mut bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    bytes[8..12].copy_from_slice(&99_u32.to_le_bytes());
    let kind = path.extension().and_then(|kind| kind.to_str()).expect("a kind");
    let (at, crc) = match kind {
        "seg" => (12, checksum([&bytes[..12], &bytes[16..64]].concat())),
        "idx" => (400, checksum(bytes[..400].iter().copied())),
        "snapshot" => (bytes.len() - 4, checksum(bytes[..bytes.len() - 4].iter().copied())),
        other => panic!("{other}"),
    };
    bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

/// The files below a folder with a checksum of each. Without what every opening of a log touches:
/// the counter of its writers, and unfinished files, which hold nothing and are removed.
fn files(dir: &Path) -> BTreeMap<PathBuf, u32> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut files(&path));
        } else if !path.ends_with("epoch") && path.extension().is_none_or(|kind| kind != "tmp") {
            let bytes = fs::read(&path).unwrap();
            found.insert(path, checksum(bytes));
        }
    }
    found
}

/// The files of a log with this ending, in order.
fn with_ending(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let found = files(dir).into_keys();
    found.filter(|path| path.extension().is_some_and(|e| e == ending)).collect()
}

#[test]
fn what_each_version_wrote_is_opened_and_answers_as_it_did() {
    for written in all() {
        for log in ["main", "other", "system"] {
            assert!(written.verify(log).done().contains("sound"), "{} {log}", written.version);
        }
        // It has of each kind of file something to read.
        assert!(with_ending(&written.log("main"), "seg").len() >= 4);
        assert!(with_ending(&written.log("main"), "idx").len() >= 2);
        assert!(with_ending(&written.log("main"), "snapshot").len() >= 3);
        let mut server = written.serve();
        let token = written.login(&server);
        written.compare(&server, &token);
        let key = written.answers["key"].as_str().expect("a key");
        ask(&mut server.client(), key, "GET", "/v1/head", &Value::Null).expect(200);
        ask(&mut server.client(), "wsk_wrong", "GET", "/v1/head", &Value::Null).expect(401);

        // It goes on from there, and what it wrote is there after a restart.
        let event = json!({"events": [{"type": "Upgraded", "tags": ["to:now"], "data": 1}]});
        let first = ask(&mut server.client(), &token, "POST", "/v1/append", &event).expect(200);
        assert!(server.terminate().success());
        let server = written.serve();
        let path = "/v1/events?tag=to:now";
        let found = ask(&mut server.client(), &token, "GET", path, &Value::Null).expect(200);
        assert_eq!(found["events"][0]["position"], first["first"]);
        drop(server);
        for log in ["main", "other", "system"] {
            assert!(written.verify(log).done().contains("sound"), "{} {log}", written.version);
        }
    }
}

#[test]
fn segments_of_a_later_version_are_refused_by_name_and_stay_as_they_are() {
    for (log, segment) in [("main", "last"), ("main", "middle"), ("system", "last")] {
        let written = all().pop().expect("the newest");
        let segments = with_ending(&written.log(log), "seg");
        let at = if segment == "last" { segments.len() - 1 } else { segments.len() / 2 };
        from_the_future(&segments[at]);
        let before = files(&written.data());
        let name = segments[at].file_name().and_then(|name| name.to_str()).expect("UTF-8");
        let words = format!("{name} has format version 99");
        let data = written.data();
        let serve = ["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"];
        run(&serve).failed(1, &words);
        written.verify(log).failed(74, &words);
        assert_eq!(before, files(&data), "{log}, {segment} segment");
    }
}

#[test]
fn indexes_and_snapshots_of_a_later_version_are_rebuilt_and_change_no_answer() {
    let written = all().pop().expect("the newest");
    let derived =
        ["idx", "snapshot"].map(|ending| with_ending(&written.log("main"), ending)).concat();
    assert!(derived.len() >= 5, "{derived:?}");
    derived.iter().for_each(|path| from_the_future(path));
    let segments = |written: &DataFolder| {
        let files = files(&written.log("main")).into_iter();
        let full = with_ending(&written.log("main"), "seg").len() - 1;
        files.filter(|(path, _)| path.extension().is_some_and(|e| e == "seg")).take(full).collect()
    };
    let before: BTreeMap<PathBuf, u32> = segments(&written);
    let server = written.serve();
    let token = written.login(&server);
    written.compare(&server, &token);
    drop(server);
    assert_eq!(before, segments(&written));
    assert!(written.verify("main").done().contains("sound"));
}
