//! Tools whose output is closed, and the advice in refusals.

use crate::closed::{Closed, PASSWORD};
use crate::program::{ProgramOutput, program};
use crate::server::Server;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use wellspring_patience::{PATIENCE, Patience};

fn append(server: &Server, more: &[&str]) -> ProgramOutput {
    let url = server.url();
    ProgramOutput::of(
        program(&[&["append", "--url", &url, "--type", "T"], more].concat()).output().unwrap(),
    )
}

/// The write end of a pipe whose reader has gone.
fn gone() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    Stdio::from(writer)
}

#[test]
fn a_reader_that_has_gone_ends_a_tool_quietly() {
    let server = Server::start();
    let url = server.url();
    append(&server, &["--data", "1"]).done();
    // Standard output is a pipe without a reader: exit code 141, as for the system's tools. A
    // closed standard error loses only the messages.
    for (words, out, err) in [
        (&["tail", "--url", &url][..], 141, 0),
        (&["tail", "--url", &url, "--log", "none"], 64, 64),
        (&["export", "--url", &url], 141, 0),
        (&["append", "--url", &url, "--type", "T"], 141, 0),
        (&["append", "--url", &url, "--type", "T", "--fail-if-type", "T"], 1, 1),
        (&["import", "/does/not/exist.ndjson", "--url", &url], 66, 66),
        (&["user", "list", "--url", &url], 141, 0),
    ] {
        let status = program(words).stdout(gone()).stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(out), "{words:?}");
        let status = program(words).stdout(Stdio::null()).stderr(gone()).status().unwrap();
        assert_eq!(status.code(), Some(err), "{words:?}");
        let status = program(words).stdout(gone()).stderr(gone()).status().unwrap();
        assert_eq!(status.code(), Some(out), "{words:?}");
    }
}

#[test]
fn what_a_conflict_advises_can_be_pasted() {
    let server = Server::start();
    assert_eq!(server.client().call("PUT", "/v1/logs/names", &[], b"").unwrap().status, 201);
    let claim =
        ["--log", "names", "--tag", "name:O'Neil & son", "--fail-if-tag", "name:O'Neil & son"];
    append(&server, &["--log", "names", "--tag", "name:other"]).done();
    append(&server, &claim).done();
    append(&server, &["--log", "names", "--tag", "name:other"]).done();
    let refused = append(&server, &claim);
    let (_, advice) = refused.err.split_once("wellspring tail").unwrap();
    let command = format!("wellspring tail{}", advice.lines().next().unwrap());
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_wellspring")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let shell = Command::new("sh")
        .args(["-c", &command])
        .env("PATH", path)
        .env_remove("WELLSPRING_URL")
        .output()
        .unwrap();
    let told = ProgramOutput::of(shell).done();
    // The conflicting event, and none that the condition does not match.
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.starts_with("2 "), "{told}");
    refused.failed(1, "--after 2 added to the same command");
    append(&server, &[&claim[..], &["--after", "2"]].concat()).done();
    append(&server, &[&claim[..], &["--after", "2"]].concat())
        .failed(1, "--after 4 instead of --after 2");
}

#[test]
fn a_server_outlives_the_reader_of_its_lines() {
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let words =
        ["serve", "--listen", &address, "--access-log", "--data", dir.path().to_str().unwrap()];
    let mut server = program(&words).stderr(gone()).stdout(gone()).spawn().unwrap();
    let url = format!("http://{address}");
    let deadline = Instant::now() + PATIENCE;
    let mut appended = 0;
    // Each request is a line that nobody reads.
    while appended < 3 {
        assert!(Instant::now() < deadline, "it does not answer");
        assert_eq!(server.try_wait().unwrap(), None, "it has ended");
        let append = program(&["append", "--type", "T", "--url", &url]).output().unwrap();
        appended += u32::from(append.status.success());
        std::thread::sleep(Duration::from_millis(50));
    }
    interrupt(&server);
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn an_export_that_is_given_up_leaves_nothing_behind() {
    // A server that sends one event, and then nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let line = "{\"position\":1,\"type\":\"T\",\"tags\":[],\"data\":1}\n";
    let serve = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked";
        write!(stream, "{head}\r\n\r\n{:x}\r\n{line}\r\n", line.len()).unwrap();
        // Until the client disconnects.
        let _ = stream.read(&mut [0; 16]);
    });
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("all.ndjson");
    let words = ["export", "--url", &url, "-o", out.to_str().unwrap()];
    let child = program(&words).stderr(Stdio::piped()).spawn().unwrap();
    let part = dir.path().join("all.ndjson.part");
    let mut patience = Patience::new();
    while !part.exists() {
        patience.pause(format_args!("no {}", part.display()));
    }
    std::thread::sleep(Duration::from_millis(200));
    interrupt(&child);
    ProgramOutput::of(child.wait_with_output().unwrap()).failed(130, "no file was written");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    serve.join().unwrap();
}

#[test]
fn an_export_beyond_a_limit_on_file_sizes_fails_like_one_on_a_full_disk() {
    let server = Server::start();
    let events: Vec<Value> =
        (0..200).map(|n| json!({"type": "T", "tags": [], "data": "x".repeat(n)})).collect();
    server.client().post("/v1/append", &json!({"events": events})).unwrap().expect(200);
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("all.ndjson");
    let run = format!(
        "ulimit -f 2; exec {} export --url {} -o {}",
        env!("CARGO_BIN_EXE_wellspring"),
        server.url(),
        out.display()
    );
    let output = Command::new("sh").args(["-c", &run]).output().unwrap();
    ProgramOutput::of(output).failed(74, "File too large");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn an_interrupted_import_tells_what_may_be_stored_besides() {
    // A server that receives the events and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (taken, is_taken) = std::sync::mpsc::channel();
    let serve = std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            // A head may arrive without its body.
            let end = |request: &[u8]| {
                if request.starts_with(b"POST") {
                    request.ends_with(b"3}\n")
                } else {
                    request.ends_with(b"\r\n\r\n")
                }
            };
            while !end(&request) {
                let mut piece = [0; 4096];
                let count = stream.read(&mut piece).unwrap();
                assert!(count > 0, "a whole request");
                request.extend_from_slice(&piece[..count]);
            }
            if request.starts_with(b"POST") && request.ends_with(b"3}\n") {
                taken.send(()).unwrap();
                // Until the client disconnects.
                let _ = stream.read(&mut [0; 16]);
                return;
            }
            let close = "Connection: close\r\nContent-Length: 2";
            write!(stream, "HTTP/1.1 200 OK\r\n{close}\r\n\r\n{{}}").unwrap();
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.ndjson");
    let lines: String = (1..=3).map(|i| format!("{{\"type\":\"T\",\"data\":{i}}}\n")).collect();
    std::fs::write(&file, lines).unwrap();
    let words = ["import", file.to_str().unwrap(), "--url", &url];
    let child = program(&words).stderr(Stdio::piped()).spawn().unwrap();
    is_taken.recv_timeout(PATIENCE).unwrap();
    interrupt(&child);
    let ran = ProgramOutput::of(child.wait_with_output().unwrap());
    ran.failed(130, "0 events are known to be stored, and up to 3 lines in flight may be as well");
    serve.join().unwrap();
}

#[test]
fn a_log_that_is_not_there_is_made_by_the_command_that_is_advised() {
    let server = Server::start();
    let url = server.url();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.ndjson");
    std::fs::write(&file, "{\"type\":\"T\",\"data\":1}\n").unwrap();
    let advice = format!(
        "create it (as an admin, if there are accounts) with: wellspring log create orders --url {url}\n"
    );
    for words in [
        &["append", "--type", "T"][..],
        &["tail"],
        &["tail", "-f"],
        &["tail", "--from-start"],
        &["export"],
        &["import", file.to_str().unwrap()],
    ] {
        let run = |log: &str| {
            ProgramOutput::of(
                program(&[words, &["--url", &url, "--log", log]].concat()).output().unwrap(),
            )
        };
        run("orders").failed(64, &advice);
        run("Orders").failed(64, "not a valid name of a log");
    }
}

#[test]
fn logs_are_made_listed_and_deleted() {
    let server = Server::start();
    let url = server.url();
    let log = |words: &[&str]| {
        ProgramOutput::of(program(&[&["log"], words, &["--url", &url]].concat()).output().unwrap())
    };
    let made = log(&["create", "orders"]);
    assert!(made.err.contains("Created log orders."), "{made:?}");
    assert_eq!(made.done(), "");
    append(&server, &["--log", "orders"]).done();
    let again = log(&["create", "orders"]);
    assert!(again.err.contains("already exists; nothing was changed"), "{again:?}");
    again.done();
    log(&["create", "Orders"]).failed(64, "starting with a letter or digit");
    let listed = log(&["list"]).done();
    let rows: Vec<Vec<&str>> =
        listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["LOG", "FIRST", "HEAD"]);
    let heads = |name: &str| rows.iter().find(|row| row[0] == name).map(|row| row[2]);
    assert!(heads("main").is_some() && heads("orders") == Some("1"), "{listed}");
    let json = log(&["list", "--json"]).done();
    let rows: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.iter().any(|row| row["name"] == "orders" && row["head"] == 1), "{json}");
    // Nothing is deleted without confirmation, and an absent log needs none.
    log(&["delete", "none"]).failed(64, "log none does not exist");
    log(&["drop", "none", "--yes"]).failed(64, "log none does not exist");
    let delete = ["setsid", "--wait", env!("CARGO_BIN_EXE_wellspring"), "log", "delete", "orders"];
    let mut unasked = Command::new(delete[0]);
    unasked.args(&delete[1..]).args(["--url", &url]).env_remove("WELLSPRING_TOKEN");
    ProgramOutput::of(unasked.output().unwrap())
        .failed(64, "with 1 event, permanently. Without a terminal");
    append(&server, &["--log", "orders"]).done();
    log(&["delete", "orders", "--yes"]).done();
    append(&server, &["--log", "orders"]).failed(64, "log orders does not exist");
    let closed = Closed::start();
    let url = closed.server.url();
    ProgramOutput::of(program(&["log", "create", "a", "--url", &url]).output().unwrap())
        .failed(77, "login");
}

#[test]
fn each_row_of_the_table_of_exit_codes_is_true() {
    let server = Server::start();
    let url = server.url();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("rows.csv"), "a,b\n1,2\n").unwrap();
    std::fs::write(path("cut.ndjson.gz"), b"\x1f\x8b\x08").unwrap();
    let (rows, cut, none, no_folder) =
        (path("rows.csv"), path("cut.ndjson.gz"), path("none.ndjson"), path("none/x"));
    let cases: [(i32, &[&str]); 17] = [
        (0, &["append", "--type", "T"]),
        (1, &["append", "--type", "T", "--fail-if-type", "T"]),
        (1, &["token", "create", "--role", "writer"]),
        (64, &["append"]),
        (64, &["tail", "--no-such-flag"]),
        (64, &["append", "--type", "T", "--after", "1"]),
        (64, &["tail", "--log", "none"]),
        (64, &["import", &rows]),
        (64, &["import", &rows, "--type", "T", "--tag", "c"]),
        (65, &["append", "--type", "T", "--data", "{"]),
        (65, &["import", &cut]),
        (66, &["import", &none]),
        (66, &["append", "--type", "T", "--data", "@/does/not/exist"]),
        (74, &["export", "-o", &no_folder]),
        (69, &["tail", "--url", "http://127.0.0.1:1"]),
        (69, &["login", "ann", "--url", "http://127.0.0.1:1", "--password-file", &rows]),
        (64, &["tail", "--url", "ftp://x"]),
    ];
    for (code, words) in cases {
        let mut command = program(words);
        command.env("WELLSPRING_URL", &url).env("XDG_STATE_HOME", dir.path());
        let ran = ProgramOutput::of(command.output().unwrap());
        assert_eq!(ran.code, Some(code), "{words:?}: {ran:?}");
    }
    append(&server, &["--after", "1"]).failed(64, "Add --fail-if-type or --fail-if-tag");
    let verify = ["verify", "--data", dir.path().to_str().unwrap()];
    ProgramOutput::of(program(&verify).output().unwrap()).failed(66, "not a data folder");
    let tail = program(&["tail", "-f", "--url", &url]).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    interrupt(&tail);
    assert_eq!(tail.wait_with_output().unwrap().status.code(), Some(130));
    // 77, and 69 for too many attempts: a server with accounts.
    let closed = Closed::start();
    let url = closed.server.url();
    ProgramOutput::of(program(&["tail", "--url", &url]).output().unwrap())
        .failed(77, "WELLSPRING_TOKEN");
    let right = path("right");
    std::fs::write(&right, PASSWORD).unwrap();
    let words = ["login", "root", "--url", &url, "--password-file", &right, "--expires", "9000d"];
    let long =
        ProgramOutput::of(program(&words).env("XDG_STATE_HOME", dir.path()).output().unwrap());
    long.failed(64, "--expires");
    let wrong = path("wrong");
    std::fs::write(&wrong, "wrong wrong").unwrap();
    let attempt = || {
        let words = ["login", "root", "--url", &url, "--password-file", &wrong];
        ProgramOutput::of(program(&words).env("XDG_STATE_HOME", dir.path()).output().unwrap())
    };
    let last = (0..8).map(|_| attempt()).find(|ran| ran.code != Some(77)).unwrap();
    last.failed(69, "try again in");
}

#[test]
fn a_mistyped_variable_is_told_with_the_right_one() {
    let dir = tempfile::tempdir().unwrap();
    let config = ProgramOutput::of(
        program(&["serve", "--print-config", "--data", dir.path().to_str().unwrap()])
            .env("WELLSPRING_MAX_CONECTIONS", "canary")
            .env("WELLSPRING_MAX_LOGS", "7")
            .output()
            .unwrap(),
    );
    assert!(config.err.contains("WELLSPRING_MAX_CONECTIONS is unknown and ignored"), "{config:?}");
    assert!(config.err.contains("did you mean WELLSPRING_MAX_CONNECTIONS?"), "{config:?}");
    assert!(!config.err.contains("canary") && !config.err.contains("MAX_LOGS"), "{config:?}");
    let text = config.done();
    assert!(text.contains("max_logs = 7\n"), "{text}");
    let unset =
        "# max_connections_per_address is not set: any number, as --listen is a loopback address\n";
    assert!(text.contains(unset), "{text}");
    // A flag takes precedence over a variable, a variable over the file.
    let file = dir.path().join("w.toml");
    std::fs::write(&file, "max_logs = 1\nmax_headers = 20\nmax_streams = 9\n").unwrap();
    let words = ["serve", "--print-config", "--config", file.to_str().unwrap(), "--max-logs", "3"];
    let mut command = program(&words);
    command.env("WELLSPRING_MAX_LOGS", "2").env("WELLSPRING_MAX_HEADERS", "21");
    let text = ProgramOutput::of(command.output().unwrap()).done();
    for line in ["max_logs = 3\n", "max_headers = 21\n", "max_streams = 9\n"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn a_wrong_value_is_told_with_the_place_it_comes_from() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("w.toml");
    let file = file.to_str().unwrap();
    let serve = |more: &[&str], variables: &[(&str, &str)]| {
        let data = dir.path().to_str().unwrap();
        let words = [&["serve", "--print-config", "--data", data], more].concat();
        ProgramOutput::of(program(&words).envs(variables.iter().copied()).output().unwrap())
    };
    let variable = serve(&[], &[("WELLSPRING_THREADS", "many")]);
    assert!(variable.err.contains("invalid value 'many' for 'WELLSPRING_THREADS'"), "{variable:?}");
    assert!(variable.err.contains("WELLSPRING_THREADS sets --threads <N>"), "{variable:?}");
    variable.failed(64, "invalid digit");
    // What is typed is told as typed, whatever the variable says.
    let typed = serve(&["--threads", "many"], &[("WELLSPRING_THREADS", "lots")]);
    assert!(!typed.err.contains("WELLSPRING_THREADS"), "{typed:?}");
    typed.failed(64, "invalid value 'many' for '--threads <N>'");
    // Values that are of the right kind and wrong all the same.
    let variables = [("WELLSPRING_THREADS", "5000")];
    let wrong = "(threads is set by the variable WELLSPRING_THREADS)";
    serve(&[], &variables).failed(1, wrong);
    let flag = serve(&["--threads", "6000"], &variables);
    assert!(!flag.err.contains("WELLSPRING_THREADS"), "{flag:?}");
    std::fs::write(file, "# ours\nlisten = \"nowhere\"\n").unwrap();
    let of_file = format!("(listen is set in {file}, line 2)");
    serve(&["--config", file], &[]).failed(1, &of_file);
    std::fs::write(file, "# ours\nthreads = \"many\"\n").unwrap();
    serve(&["--config", file], &[]).failed(1, "w.toml: TOML parse error at line 2, column 11");
    std::fs::write(file, "\nthreds = 1\n").unwrap();
    serve(&[], &[("WELLSPRING_CONFIG", file)]).failed(
        1,
        "w.toml: line 2, column 1: there is no setting \"threds\"; did you mean threads?",
    );
    serve(&[], &[("WELLSPRING_CONFIG", "/does/not/exist")])
        .failed(1, "(config is set by the variable WELLSPRING_CONFIG)");
    // Errors that only opening reveals.
    let data = ["serve", "--listen", "127.0.0.1:0", "--data", dir.path().to_str().unwrap()];
    let mut command = program(&data);
    command.env("WELLSPRING_TLS_CERT", "/none").env("WELLSPRING_TLS_KEY", "/none");
    ProgramOutput::of(command.output().unwrap())
        .failed(1, "(tls_cert is set by the variable WELLSPRING_TLS_CERT;");
    // The tools have fewer variables, with the same rules.
    let url =
        ProgramOutput::of(program(&["tail"]).env("WELLSPRING_URL", "ftp://x").output().unwrap());
    assert!(url.err.contains("--url ftp://x: must begin with"), "{url:?}");
    url.failed(64, "(url is set by the variable WELLSPRING_URL)");
    let url = ProgramOutput::of(
        program(&["user", "list"]).env("WELLSPRING_URL", "ftp://x").output().unwrap(),
    );
    url.failed(64, "wellspring: WELLSPRING_URL ftp://x: must begin with");
    let alone =
        ProgramOutput::of(program(&["tail"]).env("WELLSPRING_CLIENT_CERT", "x").output().unwrap());
    assert!(alone.err.contains("not provided:\n  --client-key"), "{alone:?}");
    alone.failed(64, "WELLSPRING_CLIENT_CERT is set in the environment and counts as a flag");
    let mut command = program(&["log", "list", "--url", "https://127.0.0.1:1"]);
    let trust = ProgramOutput::of(command.env("WELLSPRING_CACERT", "/none").output().unwrap());
    trust.failed(64, "(cacert is set by the variable WELLSPRING_CACERT)");
    let mut command = program(&["tail", "--url", "ftp://x"]);
    let mistyped = ProgramOutput::of(command.env("WELLSPRING_TOKN", "canary").output().unwrap());
    assert!(!mistyped.err.contains("canary"), "{mistyped:?}");
    let told = "wellspring: the variable WELLSPRING_TOKN is unknown and ignored; did you mean WELLSPRING_TOKEN?\n";
    mistyped.failed(64, told);
}
