//! The tools over TLS: the real binary against the real server.

use crate::tls_certificates::{Authority, Ground, text};
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// Runs a tool without environment variables that would affect it.
fn tool(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_wellspring"))
        .args(args)
        .env_remove("WELLSPRING_URL")
        .env_remove("WELLSPRING_CACERT")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A tool that refuses before reading closes its end.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> String {
    let [out, error] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{error}")
}

#[test]
fn the_tools_speak_tls() {
    let ground = Ground::new();
    let server = ground.start(&[]);
    let url = format!("https://localhost:{}", server.address.port());
    let by_address = format!("https://{}", server.address);
    let run = |url: &str, args: &[&str], input: &[u8]| {
        let reach = ["--url", url, "--cacert", text(&ground.authority.file)];
        let output = tool(&[args, &reach].concat(), input);
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        said(&output)
    };
    run(&url, &["append", "--type", "A", "--data", "{\"a\":1}"], b"");
    run(&by_address, &["append", "--type", "B", "--data", "{\"b\":2}"], b"");
    let line = format!("{{\"type\":\"C\",\"data\":\"{}\"}}\n", "z".repeat(1_000));
    run(&url, &["import", "--format", "ndjson", "-"], line.repeat(2_000).as_bytes());
    let exported = run(&url, &["export"], b"");
    assert_eq!(exported.matches("zzzz\"").count(), 2_000);
    assert!(exported.contains("{\"a\":1}") && exported.contains("{\"b\":2}"));
    let top = run(&url, &["top", "--json", "--interval", "100ms"], b"");
    assert!(top.contains("\"head\":2002"), "{top}");
}

#[test]
fn a_server_that_is_not_trusted_is_not_spoken_to() {
    let ground = Ground::new();
    let server = ground.start(&[]);
    let other = Authority::new(ground.dir.path(), "other");
    let url = format!("https://localhost:{}", server.address.port());
    for (args, code, word) in [
        (&["--url", &url, "--cacert", text(&other.file)][..], 69, "--cacert"),
        (&["--url", &url, "--cacert", "/nowhere.pem"], 64, "/nowhere.pem"),
        (&["--url", &url, "--client-cert", "a"], 64, "--client-key"),
    ] {
        for tool_args in [&["append", "--type", "A"][..], &["export"]] {
            let output = tool(&[tool_args, args].concat(), b"");
            assert_eq!(output.status.code(), Some(code), "{args:?}: {}", said(&output));
            assert!(said(&output).contains(word), "{args:?}: {}", said(&output));
        }
    }
    // Over plain HTTP they report what is wrong.
    let output = tool(&["export", "--url", &server.url()], b"");
    assert_eq!(output.status.code(), Some(64), "{}", said(&output));
    assert!(said(&output).contains("speaks TLS"), "{}", said(&output));
    // A tool that retries recognizes errors that no retry solves.
    let output = tool(&["tail", "--follow", "--url", &url, "--cacert", text(&other.file)], b"");
    assert_eq!(output.status.code(), Some(69), "{}", said(&output));
    // Another name than the certificate's, and a server without TLS.
    let cacert = ["--cacert", text(&ground.authority.file)];
    let elsewhere = format!("https://localhost.localdomain.invalid:{}", server.address.port());
    let output = tool(&[&["export", "--url", &elsewhere][..], &cacert].concat(), b"");
    assert_eq!(output.status.code(), Some(69), "{}", said(&output));
    let without = crate::server::Server::start();
    let url = format!("https://{}", without.address);
    let output = tool(&[&["export", "--url", &url][..], &cacert].concat(), b"");
    assert_eq!(output.status.code(), Some(69), "{}", said(&output));
    assert!(said(&output).contains("not TLS"), "{}", said(&output));
    assert_eq!(ground.client(&server).get("/v1/head").unwrap().expect(200)["head"], 0);
}

#[test]
fn a_tool_shows_its_certificate_where_one_is_asked_for() {
    let ground = Ground::new();
    let dir = ground.dir.path();
    let (friends, strangers) = (Authority::new(dir, "friends"), Authority::new(dir, "strangers"));
    let (friend, stranger) = (friends.issue(dir, "friend"), strangers.issue(dir, "stranger"));
    let server = ground.start(&["--tls-client-ca", text(&friends.file)]);
    let url = format!("https://localhost:{}", server.address.port());
    let reach = ["--url", &url, "--cacert", text(&ground.authority.file)];
    let run = |shown: &[&str]| {
        tool(&[&["append", "--type", "A", "--data", "1"][..], &reach, shown].concat(), b"")
    };
    let shows = |pair: &crate::tls_certificates::Pair| {
        run(&["--client-cert", text(&pair.certificate), "--client-key", text(&pair.key)])
    };
    let right = shows(&friend);
    assert!(right.status.success(), "{}", said(&right));
    let wrong = shows(&stranger);
    assert_eq!(wrong.status.code(), Some(69), "{}", said(&wrong));
    assert!(said(&wrong).contains("does not accept"), "{}", said(&wrong));
    let none = run(&[]);
    assert_eq!(none.status.code(), Some(69), "{}", said(&none));
    assert!(said(&none).contains("--client-cert"), "{}", said(&none));
}
