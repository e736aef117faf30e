//! Which peers a node trusts, and what it keeps secret.

use crate::closed::{PASSWORD, ask, token};
use crate::done::StopSignal;
use crate::following::{flags_of, new_key};
use crate::nodes::{Nodes, event, position_of};
use crate::postgres;
use crate::server::Server;
use crate::tls_certificates::{Authority, Ground, config, over_tls, text};
use serde_json::json;
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wellspring_log::shared::entry::{Claim, Entry};
use wellspring_patience::PATIENCE;

/// Runs the program with these arguments, which must make it exit; returns its output.
fn ends(words: &[&str]) -> (Output, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_wellspring"))
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            let output = child.wait_with_output().unwrap();
            panic!("it goes on: {}", String::from_utf8_lossy(&output.stderr));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let said = [&output.stdout[..], &output.stderr].concat();
    (output, String::from_utf8_lossy(&said).into_owned())
}

/// A node with TLS of its own.
fn node_with_tls(name: &str, dir: &Path, journal: &str, key: &Path, more: &[&str]) -> Server {
    let own = flags_of(name, journal, key);
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let flags = [&own[..], more, &["--leader-wait-ms", "1000"]].concat();
    Server::start_alone(None, &[], &dir.join(name), &flags)
}

#[test]
fn nodes_reach_each_other_by_tls_and_only_whom_they_trust() {
    let Some(postgres) = postgres::shared("TLS between nodes") else { return };
    let ground = Ground::new();
    let (journal, dir) = (postgres.new_journal(), ground.dir.path());
    let key = new_key(dir);
    let tls = ground.pair.flags();
    let trusted = ["--cluster-cacert", text(&ground.authority.file)];
    let stranger = Authority::new(dir, "stranger");
    let strange = ["--cluster-cacert", text(&stranger.file)];
    let _leader = node_with_tls("a", dir, &journal, &key, &[&tls[..], &trusted].concat());
    let follower = node_with_tls("b", dir, &journal, &key, &[&tls[..], &trusted].concat());
    let distrusts = node_with_tls("c", dir, &journal, &key, &[&tls[..], &strange].concat());
    let client =
        |server: &Server| over_tls(server.address, config(&ground.authority, None)).unwrap();
    // A node supports TLS before it joins others.
    let follows = |server: &Server, ready: &str| {
        let is_ready = || client(server).get(ready).unwrap().status == 200;
        crate::nodes::until("a node is ready", is_ready);
    };
    follows(&follower, "/health/ready");
    follows(&distrusts, "/health/ready?for=reads");
    // It cannot announce itself to the leader, and could forward no write.
    let not_ready = client(&distrusts).get("/health/ready?for=writes").unwrap().problem(503);
    assert_eq!(not_ready["type"], "/problems/catching-up", "{not_ready}");
    let appended = client(&follower).post("/v1/append", &event("by b")).unwrap();
    assert_eq!(position_of(&appended), 1);
    let told = client(&follower).get("/v1/cluster").unwrap().expect(200);
    assert!(told["leader"]["url"].as_str().unwrap().starts_with("https://127.0.0.1:"), "{told}");
    let refused = client(&distrusts).post("/v1/append", &event("by c")).unwrap().problem(503);
    assert_eq!(refused["type"], "/problems/not-leading", "{refused}");
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("certificate") || detail.contains("cacert"), "{refused}");
    let read = client(&distrusts).get("/v1/head?consistency=linearizable").unwrap();
    assert_eq!(read.expect(200)["head"], 1);
}

#[test]
fn an_address_that_others_reach_in_the_clear_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let key = new_key(dir.path());
    let data = dir.path().join("data");
    let own = flags_of("a", "postgres://postgres@127.0.0.1:1/postgres", &key);
    let mut words = vec!["serve", "--data", data.to_str().unwrap()];
    words.extend(own.iter().map(String::as_str));
    words.extend(["--listen", "127.0.0.1:0", "--advertise", "http://10.1.2.3:4000"]);
    let (output, said) = ends(&words);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("without TLS") && said.contains("--insecure"), "{said}");
}

#[test]
fn a_node_with_another_key_is_told_so() {
    let Some(postgres) = postgres::shared("another cluster key") else { return };
    let nodes = Nodes::start(postgres.new_journal(), &[]);
    position_of(&nodes.client(0).post("/v1/append", &event(1)).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let other = new_key(dir.path());
    let data = dir.path().join("data");
    let own = flags_of("d", &nodes.journal, &other);
    let mut words = vec!["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:4999"];
    words.extend(own.iter().map(String::as_str));
    let (output, said) = ends(&words);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("another cluster key") && said.contains("--cluster-key"), "{said}");
    // The others have not noticed.
    position_of(&nodes.client(1).post("/v1/append", &event(2)).unwrap());
}

#[test]
fn the_password_in_a_journals_url_is_told_nobody() {
    const PASSWORD: &str = "sesame-0451";
    let Some(postgres) = postgres::shared("the password of a journal") else { return };
    let with_password = |url: &str| url.replace("postgres@", &format!("postgres:{PASSWORD}@"));
    let journal = with_password(&postgres.new_journal());
    assert!(journal.contains(PASSWORD));
    let dir = tempfile::tempdir().unwrap();
    let key = new_key(dir.path());
    let own = flags_of("a", &journal, &key);
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let data = dir.path().join("data");
    let flags = [&own[..], &["--log-level", "trace"]].concat();
    let mut server = Server::start_alone(None, &[], &data, &flags);
    let mut client = server.client();
    position_of(&client.post("/v1/append", &event(1)).unwrap());
    for path in ["/v1/cluster", "/v1/logs", "/metrics", "/health/ready", "/v1/logs/system/events"] {
        let answer = client.get(path).unwrap();
        assert!(!answer.text().contains(PASSWORD), "{path}: {}", answer.text());
    }
    assert!(server.terminate().success());
    let log = server.log().join("\n");
    // How much of it there is, and from where, depends on the features of the build.
    assert!(log.contains("DEBUG") || log.contains("TRACE"), "{log}");
    assert!(!log.contains(PASSWORD), "{log}");
    let words = |journal: &str| {
        let own = flags_of("a", journal, &key);
        let mut words = vec!["serve".to_owned(), "--data".to_owned(), data.display().to_string()];
        words.extend(own);
        words
    };
    let mut printing = words(&journal);
    printing.push("--print-config".to_owned());
    // Nor where the URL cannot be used.
    let no_database = journal.replace("/postgres?", "/absent?");
    let rubbish = format!("postgres://postgres:{PASSWORD}@127.0.0.1:x/y");
    for (words, succeeds) in
        [(printing, true), (words(&no_database), false), (words(&rubbish), false)]
    {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (output, said) = ends(&words);
        assert_eq!(output.status.success(), succeeds, "{said}");
        assert!(said.contains("journal") && !said.contains(PASSWORD), "{said}");
    }
}

/// Claims the lead of the log `main` under a URL, as any role that writes to the database can; the
/// nodes claim it back.
fn forge_claim(postgres: &postgres::Postgres, journal: &str, epoch: u64, url: &str) {
    let claim = Entry::Claim(Claim { epoch, node: "thief", start: 7, url });
    let entry: String = claim.encode().iter().map(|byte| format!("{byte:02x}")).collect();
    let schema = postgres::schema_of(journal);
    postgres.sql(&format!(
        r#"WITH e AS (UPDATE "{schema}".ws_end SET place = place + 1 WHERE log = 'main' RETURNING place)
           INSERT INTO "{schema}".ws_entry SELECT 'main', place, decode('{entry}', 'hex') FROM e"#
    ));
}

#[test]
fn a_forged_claim_gets_no_request_of_a_client() {
    let Some(postgres) = postgres::shared("a forged claim") else { return };
    let nodes = Nodes::start(postgres.new_journal(), &["--leader-wait-ms", "3000"]);
    let first = json!({"name": "root", "password": PASSWORD, "roles": ["admin"]});
    nodes.client(0).post("/v1/accounts", &first).unwrap().expect(201);
    let token = token(&mut nodes.client(0), "root");
    let thief = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", thief.local_addr().unwrap());
    let stolen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&stolen);
    std::thread::spawn(move || {
        for mut stream in thief.incoming().flatten() {
            let mut bytes = [0; 4096];
            let length = stream.read(&mut bytes).unwrap_or(0);
            kept.lock().unwrap().push(String::from_utf8_lossy(&bytes[..length]).into_owned());
        }
    });
    let done = StopSignal::default();
    let epoch = std::sync::atomic::AtomicU64::new(1_000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.is_set() {
                let epoch = epoch.fetch_add(10, std::sync::atomic::Ordering::Relaxed);
                forge_claim(postgres, &nodes.journal, epoch, &url);
            }
        });
        let _ends = done.at_the_end();
        let mut told = Vec::new();
        let claims = || epoch.load(std::sync::atomic::Ordering::Relaxed);
        for round in 0.. {
            if claims() > 1_200 {
                break;
            }
            let mut client = nodes.client(round % 3);
            let answer = ask(&mut client, &token, "POST", "/v1/append", &event(round));
            told.push((answer.status, answer.text()));
            let batch = ask(&mut client, &token, "POST", "/v1/e", &json!({ "n": round }));
            assert!(batch.status < 500, "{batch:?}");
        }
        assert!(told.iter().all(|(_, text)| !text.contains(&url)), "{told:?}");
    });
    assert_eq!(*stolen.lock().unwrap(), Vec::<String>::new());
    crate::nodes::until("the lead is a node's again", || {
        ask(&mut nodes.client(1), &token, "POST", "/v1/append", &event("after")).status == 200
    });
}
