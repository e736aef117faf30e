//! Backups to an object store, with the real program and a server that speaks S3.

use crate::server::Server;
use serde_json::json;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A store of this test's own. It goes with the process.
struct ObjectStore {
    url: String,
    _dir: TempDir,
}

impl ObjectStore {
    /// `None`, loudly, if there is none on this machine and none is required.
    fn start() -> Option<ObjectStore> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-servers/s3.sh");
        let dir = TempDir::new().unwrap();
        let run = dir.path().join("s3");
        let pid = std::process::id().to_string();
        let output = Command::new(script)
            .args(["up", run.to_str().unwrap(), "--while", &pid])
            .output()
            .unwrap();
        if output.status.code() == Some(3) {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let required = std::env::var("WELLSPRING_TEST_ENGINES").is_ok_and(|v| v == "required");
            assert!(!required, "{said}");
            eprintln!("SKIPPED: {said}");
            return None;
        }
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let url = said.lines().find_map(|line| line.strip_prefix("url="));
        let url = url.unwrap_or_else(|| panic!("{output:?}")).to_owned();
        Some(ObjectStore { url, _dir: dir })
    }

    fn run(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_wellspring"))
            .args(words)
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ENDPOINT_URL", &self.url)
            .env("AWS_ALLOW_HTTP", "true")
            .output()
            .unwrap()
    }

    fn done(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).unwrap() + &said
    }
}

#[test]
fn a_backup_goes_to_an_object_store_and_comes_back() {
    let Some(store) = ObjectStore::start() else { return };
    let dir = TempDir::new().unwrap();
    // Segments above and below what goes in one request.
    let server = Server::start_with(&["--segment-bytes", "16777216", "--scrub-bytes-per-s", "0"]);
    let mut client = server.client();
    let event = json!({"type": "T", "data": "x".repeat(200_000)});
    let events: Vec<_> = std::iter::repeat_n(event, 20).collect();
    let body = json!({"events": events});
    for _ in 0..5 {
        client.post("/v1/append", &body).unwrap().expect(200);
    }
    let place = "s3://backups/of/wellspring";
    let first = store.done(&["backup", "--url", &server.url(), "--to", place]);
    assert!(first.contains("is finished"), "{first}");
    client.post("/v1/append", &json!({"events": [{"type": "U", "data": 1}]})).unwrap().expect(200);
    let second = store.done(&["backup", "--url", &server.url(), "--to", place, "--keep", "1"]);
    assert!(second.contains(" there already") && !second.contains(", 0 B there"), "{second}");
    assert!(second.contains("Removed 1 backup: "), "{second}");
    let list = store.done(&["backup", "list", "--from", place]);
    assert_eq!(list.lines().count(), 2, "the heading and {list}");
    assert!(store.done(&["verify", "--from", place]).contains("sound"), "{list}");
    let to = dir.path().join("data");
    let said = store.done(&["restore", "--from", place, "--data", to.to_str().unwrap()]);
    assert!(said.contains("main: up to position 101"), "{said}");
    let restored = Server::start_in(&to, &[]);
    let head = restored.client().get("/v1/head").unwrap().expect(200);
    assert_eq!(head["head"], 101);
    let nowhere = store.run(&["backup", "--url", &server.url(), "--to", "s3://no-such-bucket/x"]);
    let said = String::from_utf8_lossy(&nowhere.stderr).into_owned();
    assert!(!nowhere.status.success() && said.contains("no-such-bucket"), "{said}");
}

/// A bucket has no lock: processes that take backups to it and remove old ones at the same time
/// leave whole backups, and each ends with success or says that it is to be tried again.
#[test]
fn several_processes_back_up_to_one_bucket() {
    let Some(store) = ObjectStore::start() else { return };
    let server = Server::start_with(&["--segment-bytes", "65536", "--scrub-bytes-per-s", "0"]);
    let mut client = server.client();
    let (url, place) = (server.url(), "s3://backups/shared");
    let words = ["backup", "--url", &url, "--to", place, "--keep", "1"];
    let event = json!({"type": "T", "data": "x".repeat(20_000)});
    for round in 0..3 {
        for _ in 0..5 {
            client.post("/v1/append", &json!({"events": [event]})).unwrap().expect(200);
        }
        let outputs: Vec<Output> = std::thread::scope(|scope| {
            let running: Vec<_> = (0..3).map(|_| scope.spawn(|| store.run(&words))).collect();
            running.into_iter().map(|one| one.join().unwrap()).collect()
        });
        for output in &outputs {
            let said = String::from_utf8_lossy(&output.stderr);
            let is_told = said.contains("is removing old backups") || said.contains("there is no");
            let ended = output.status.code();
            assert!(ended == Some(0) || is_told && ended != Some(101), "{ended:?}: {said}");
        }
        assert!(outputs.iter().any(|output| output.status.success()), "round {round}");
        let list = store.done(&["backup", "list", "--json", "--from", place]);
        let names = list.lines().map(|line| {
            let listed: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(listed["state"], "finished", "{list}");
            listed["name"].as_str().unwrap().to_owned()
        });
        for name in names.collect::<Vec<_>>() {
            let sound = store.done(&["verify", "--from", place, "--backup", &name]);
            assert!(sound.contains("sound: every event"), "{sound}");
        }
    }
}
