//! One flipped byte in any file of the data folder shows within one pass of the scrub: in
//! `/health/ready`, in the server's log and in the figures. No answer is ever wrong.

use crate::client::{Answer, Client};
use crate::closed::{PASSWORD, ask, login, token};
use crate::numbered::Coins;
use crate::server::Server;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wellspring_patience::Patience;

const SMALL: [&str; 2] = ["--segment-bytes", "65536"];
/// More events than justify a snapshot of a view when the server stops.
const EVENTS: usize = 10_500;

/// Files of the data folder, by their paths in it.
fn files(data: &Path) -> Vec<String> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { collect(&path, found) } else { found.push(path) }
        }
    }
    let mut found = Vec::new();
    collect(data, &mut found);
    let name = |path: &PathBuf| path.strip_prefix(data).unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<String> = found.iter().map(name).collect();
    names.sort();
    names
}

/// Changes one byte in place, below everything that the server knows of the file.
fn flip(data: &Path, name: &str, coins: &mut Coins) {
    let file = File::options().read(true).write(true).open(data.join(name)).unwrap();
    let at = coins.below(file.metadata().unwrap().len());
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    byte[0] ^= 1 << coins.below(8);
    file.write_all_at(&byte, at).unwrap();
}

/// A data folder with events, full segments and their indexes, views with snapshots, an account,
/// keys and links.
fn filled(data: &Path) {
    // Without the scrub, which this is not about.
    let mut server =
        Server::start_alone(None, &[], data, &[&SMALL[..], &["--scrub-bytes-per-s", "0"]].concat());
    let mut client = server.client();
    for chunk in 0..EVENTS / 500 {
        let event = |n: usize| {
            let tags = [format!("a:{}", n % 90), "b:1".to_owned()];
            json!({"type": format!("T{}", n % 5), "tags": tags, "data": {"n": n, "chunk": chunk}})
        };
        let events: Vec<Value> = (0..500).map(event).collect();
        client.post("/v1/append", &json!({"events": events})).unwrap().expect(200);
    }
    for n in 0..20 {
        let link = json!({"url": format!("http://example.com/{n}"), "alias": format!("link{n}")});
        client.post("/api/urls", &link).unwrap().expect(201);
    }
    let root = json!({"name": "root", "password": PASSWORD, "roles": ["admin"]});
    client.post("/v1/accounts", &root).unwrap().expect(201);
    drop(client);
    assert!(server.terminate().success());
}

/// Answers that come from everything there is.
fn answers(client: &mut Client, bearer: &str) -> Vec<String> {
    let paths = [
        "/v1/events?tag=a:8&limit=1000",
        "/v1/events?type=T3&tag=a:13&order=desc&limit=1000",
        "/v1/events?after=4000&limit=50",
        "/api/urls?limit=100",
        "/api/urls/link7",
        "/v1/accounts",
    ];
    let mut all: Vec<String> = Vec::new();
    for path in paths {
        let answer = ask(client, bearer, "GET", path, &Value::Null);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        all.push(answer.text());
    }
    all
}

/// Asks whether the server is ready until the answer satisfies a check.
fn ready(client: &mut Client, query: &str, holds: impl Fn(&Answer) -> bool) -> Answer {
    let mut patience = Patience::new();
    loop {
        let answer = client.get(&format!("/health/ready{query}")).unwrap();
        if holds(&answer) {
            return answer;
        }
        patience.pause(format_args!("{}", answer.text()));
    }
}

fn figure(client: &mut Client, bearer: &str, name: &str) -> u64 {
    let page = ask(client, bearer, "GET", "/metrics", &Value::Null).text();
    let line = page.lines().find(|line| line.starts_with(name)).expect("a figure of this name");
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// The files that the warnings of an answer name.
fn warned(answer: &Answer) -> BTreeSet<String> {
    let body = answer.json();
    let warnings = body["warnings"].as_array().into_iter().flatten();
    let file = |warning: &Value| {
        assert_eq!(warning["type"], "/problems/mended", "{warning}");
        warning["detail"].as_str().unwrap().split(' ').next().unwrap().to_owned()
    };
    warnings.map(file).collect()
}

/// Appends into a file without a name would be acknowledged, and gone with the process.
#[test]
fn a_segment_that_is_removed_under_a_running_server_is_told_as_damage() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path();
    let server =
        Server::start_alone(None, &[], data, &[&SMALL[..], &["--scrub-every-s", "1"]].concat());
    let mut client = server.client().patient();
    let event = json!({"type": "T", "data": "x".repeat(200)});
    let append = json!({"events": vec![event; 500]});
    (0..3).for_each(|_| drop(client.post("/v1/append", &append).unwrap().expect(200)));
    ready(&mut client, "", |answer| answer.status == 200);
    let last = files(data)
        .into_iter()
        .rfind(|name| name.starts_with("logs/main/") && name.ends_with(".seg"))
        .unwrap();
    fs::remove_file(data.join(&last)).unwrap();
    let told = ready(&mut client, "", |answer| answer.status == 503).json();
    let file = Path::new(&last).file_name().unwrap().to_str().unwrap();
    assert_eq!((&told["type"], &told["file"]), (&json!("/problems/damaged"), &json!(file)));
    server.logged(&["stored data is damaged", file, "removed or replaced", "wellspring mend"]);
    let page = client.get("/metrics").unwrap().text();
    let figure = "wellspring_log_damaged_segments{log=\"main\"} 1";
    assert!(page.contains(figure), "{page}");
}

/// The folder of a running server is moved away, and another server starts at its path.
#[test]
fn a_server_writes_nothing_into_a_folder_that_has_taken_the_place_of_its_own() {
    let root = tempfile::tempdir().unwrap();
    let (data, away) = (root.path().join("data"), root.path().join("away"));
    let every = ["--scrub-every-s", "1", "--scrub-bytes-per-s", "100000000"];
    let first = Server::start_alone(None, &[], &data, &every);
    let mut client = first.client().patient();
    let account = json!({"name": "root", "password": PASSWORD, "roles": ["admin"]});
    client.post("/v1/accounts", &account).unwrap().expect(201);
    fs::rename(&data, &away).unwrap();
    first.logged(&["a check could not read a file", "has-accounts", "no longer the folder"]);
    assert!(!data.exists(), "nothing is made there");
    // It has no accounts. Opened twice, so that its epochs are others.
    let quiet = ["--scrub-bytes-per-s", "0"];
    for _ in 0..2 {
        assert!(Server::start_alone(None, &[], &data, &quiet).terminate().success());
    }
    let others = || {
        let read = |name: String| (fs::read(data.join(&name)).unwrap(), name);
        files(&data).into_iter().map(read).collect::<Vec<_>>()
    };
    let before = others();
    let passes = || first.log().iter().filter(|line| line.contains("has-accounts")).count();
    let (done, begun) = (passes(), Instant::now());
    while passes() < done + 3 {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(50));
    }
    let names = |found: &[(Vec<u8>, String)]| -> Vec<String> {
        found.iter().map(|(_, name)| name.clone()).collect()
    };
    let after = others();
    assert_eq!(names(&after), names(&before));
    assert!(after == before, "a file has changed");
    let told = ready(&mut client, "", |answer| answer.status == 503).json();
    assert_eq!(told["type"], "/problems/damaged", "{told}");
    drop(first);
    assert_eq!(others(), before, "nor at its end");
    Server::start_alone(None, &[], &data, &quiet);
}

#[test]
fn one_flipped_byte_in_any_file_shows_within_one_pass_and_no_answer_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path();
    filled(data);
    let server =
        Server::start_alone(None, &[], data, &[&SMALL[..], &["--scrub-every-s", "1"]].concat());
    let mut client = server.client().patient();
    let root = token(&mut client, "root");
    let expected = answers(&mut client, &root);
    let mut coins = Coins::new(20_261_126);
    // Everything that can be told from something else: it is written again.
    let is_derived = |name: &&String| {
        [".idx", "epoch", ".snapshot", "links-visitor-key", "has-accounts"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    let kinds = files(data);
    for wanted in ["/epoch", ".idx", "main/views/links.snapshot", "has-accounts", "visitor-key"] {
        assert!(kinds.iter().any(|name| name.ends_with(wanted)), "{wanted}: {kinds:?}");
    }
    for round in 0..3 {
        let mended = figure(&mut client, &root, "wellspring_scrub_mended_files_total");
        let names = files(data);
        let derived: BTreeSet<String> = names.iter().filter(is_derived).cloned().collect();
        derived.iter().for_each(|name| flip(data, name, &mut coins));
        assert_eq!(answers(&mut client, &root), expected, "round {round}");
        // A pass under way may find some of them, and only the next one the others.
        let mut found = BTreeSet::new();
        let mut patience = Patience::new();
        while found != derived {
            let told = client.get("/health/ready").unwrap();
            assert_eq!((told.status, told.json()["status"].as_str()), (200, Some("ready")));
            found.append(&mut warned(&told));
            assert!(found.is_subset(&derived), "{}", told.text());
            let missing: Vec<_> = derived.difference(&found).collect();
            patience.pause(format_args!("{missing:?}"));
        }
        let mended = figure(&mut client, &root, "wellspring_scrub_mended_files_total") - mended;
        assert_eq!(mended, derived.len() as u64, "round {round}");
        for name in &derived {
            server.logged(&["a damaged file was mended", name]);
        }
        assert_eq!(answers(&mut client, &root), expected, "round {round}");
        // A whole pass that finds nothing.
        let told = ready(&mut client, "", |answer| warned(answer).is_empty());
        assert_eq!(told.text(), r#"{"status":"ready"}"#);
    }
    // Written in place it may be another secret, which another process has rotated to: then tokens
    // end. Or it is none: then the one in use stays, and is written again.
    flip(data, "token-secret", &mut coins);
    let mut patience = Patience::new();
    while !["reloaded the token secrets", "kept the token secrets in use"]
        .iter()
        .any(|text| server.log().iter().any(|line| line.contains(text)))
    {
        patience.pause(format_args!("{:#?}", server.log()));
    }
    login(&mut client, "root", PASSWORD).expect(200);
    let root = token(&mut client, "root");
    // A segment is what all else is told from: the server reads on elsewhere, and says so.
    let segment = files(data).into_iter().find(|name| name.ends_with(".seg")).unwrap();
    flip(data, &segment, &mut coins);
    let told = ready(&mut client, "", |answer| answer.status == 503).json();
    let file = Path::new(&segment).file_name().unwrap().to_str().unwrap();
    assert_eq!((&told["type"], &told["file"]), (&json!("/problems/damaged"), &json!(file)));
    server.logged(&["stored data is damaged", file, "wellspring mend"]);
    let mut patience = Patience::new();
    while figure(&mut client, &root, "wellspring_scrub_damaged_files") != 1 {
        patience.pause("the damaged file is not counted");
    }
    // A balancer still sends writes here.
    let writes = client.get("/health/ready?for=writes").unwrap().expect(200);
    assert_eq!(writes["warnings"][0]["type"], "/problems/damaged", "{writes}");
    assert_eq!(client.get("/health/ready?for=reads").unwrap().status, 503);
    let event = json!({"events": [{"type": "T", "data": 1}]});
    ask(&mut client, &root, "POST", "/v1/append", &event).expect(200);
    // Every event is what it was, or an error.
    let (mut read, mut refused) = (0, 0);
    for position in (1..EVENTS).step_by(EVENTS / 50) {
        let path = format!("/v1/events/{position}");
        let answer = ask(&mut client, &root, "GET", &path, &Value::Null);
        match answer.status {
            200 => {
                read += 1;
                let n = answer.json()["data"]["n"].as_u64();
                assert_eq!(n, Some((position as u64 - 1) % 500), "{position}");
            }
            _ => {
                refused += 1;
                answer.problem(500);
            }
        }
    }
    assert!(read > 30 && read + refused > 49, "{read} read, {refused} refused");
}
