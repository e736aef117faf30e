//! `wellspring bench` as people and scripts use it: the real binary against the real server.

use crate::load_tester;
use crate::server::{NOBODY, Server};
use std::path::Path;
use std::process::{Command, Output};

fn bench(dir: &Path, args: &[&str]) -> Output {
    let mut command = load_tester::bench().expect("looked for before");
    command.args(args).current_dir(dir).env_remove("WELLSPRING_URL").output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn last_line(output: &Output) -> String {
    text(&output.stdout).lines().last().unwrap_or_default().to_owned()
}

fn ends_with_a_verdict(line: &str) -> bool {
    ["TRUSTED", "USE WITH CARE", "NOT MEASURABLE"].iter().any(|verdict| line.starts_with(verdict))
}

#[test]
fn what_the_client_counts_is_what_the_server_stored() {
    if load_tester::bench().is_none() {
        return;
    }
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let url = format!("{}/v1/append", server.url());
    let body = r#"{"events":[{"type":"Counted","data":{}}]}"#;
    let args = ["-n", "500", "-c", "5", "-d", body, "--json", "r.json", "--no-headroom", &url];
    let output = bench(dir.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(ends_with_a_verdict(&last_line(&output)), "{}", text(&output.stdout));
    let report = json(&dir.path().join("r.json"));
    let counters = &report["steps"][0]["runs"][0]["endpoints"][0]["counters"];
    assert_eq!(counters["sent"], 500);
    assert_eq!(counters["successes"], 500);
    assert_eq!(report["steps"][0]["runs"][0]["finish"], "count");
    let head = server.client().get("/v1/head").unwrap();
    assert!(head.text().contains("500"), "{}", head.text());
}

#[test]
fn every_form_of_output_is_written_and_can_be_made_again_from_the_result() {
    if load_tester::bench().is_none() {
        return;
    }
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let url = format!("{}/health", server.url());
    let args = [
        "ladder",
        "-c",
        "1,2",
        "-z",
        "300ms",
        "--warmup",
        "0",
        "--repeat",
        "2",
        "--json",
        "r.json",
        "--html",
        "r.html",
        "--md",
        "r.md",
        "-q",
        "--no-headroom",
        &url,
    ];
    let output = bench(dir.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().count(), 3, "{}", text(&output.stdout));
    for (file, part) in [("r.html", "<svg"), ("r.md", "| c=1")] {
        let written = std::fs::read_to_string(dir.path().join(file)).unwrap();
        assert!(written.contains(part), "{part:?} is not in {file}:\n{written}");
    }
    for (format, part) in [
        ("text", "Steps"),
        ("md", "| c=1"),
        ("html", "<svg"),
        ("ab", "Requests per second:"),
        ("json", "wellspring-bench/1"),
    ] {
        let again = bench(dir.path(), &["report", "--as", format, "r.json"]);
        assert!(text(&again.stdout).contains(part), "{format}: {}", text(&again.stdout));
    }
    let form = bench(dir.path(), &["report", "--form", "2", "r.json"]);
    assert!(text(&form.stdout).contains("| users"), "{}", text(&form.stdout));
    let same = bench(dir.path(), &["compare", "r.json", "r.json"]);
    assert!(matches!(same.status.code(), Some(0 | 75)), "{}", text(&same.stderr));
    assert!(!text(&same.stdout).contains("slower"), "{}", text(&same.stdout));
}

#[test]
fn exit_codes_are_what_scripts_rely_on() {
    if load_tester::bench().is_none() {
        return;
    }
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let url = format!("{}/health", server.url());
    let code = |args: &[&str]| bench(dir.path(), args).status.code();
    let short = ["-z", "200ms", "--no-headroom", "-q"];
    let with = |more: &[&str]| {
        let args: Vec<&str> = short.iter().chain(more).copied().collect();
        code(&args)
    };
    assert_eq!(with(&[&url]), Some(0));
    assert_eq!(with(&["--fail-if", "p50<100s", &url]), Some(99));
    assert_eq!(with(&["--fail-if", "p50>100s", &url]), Some(0));
    assert_eq!(with(&["--fail-if", "speed>1", &url]), Some(64));
    assert_eq!(with(&[&format!("{}/nothing/here", server.url())]), Some(1));
    let missing = format!("{}/nothing/here", server.url());
    let quiet = bench(dir.path(), &[&short[..], &[&missing]].concat());
    let why = text(&quiet.stderr);
    assert!(why.starts_with("wellspring: no request succeeded: HTTP 404 ("), "{why}");
    assert_eq!(why.lines().count(), 1, "{why}");
    let threshold = bench(dir.path(), &[&short[..], &["--fail-if", "p50<100s", &url]].concat());
    let why = text(&threshold.stderr);
    assert!(why.starts_with("wellspring: a threshold failed: p50<100s (c=16: "), "{why}");
    assert_eq!(with(&["--expect", "404", &format!("{}/nothing/here", server.url())]), Some(0));
    assert_eq!(with(&["ftp://x/"]), Some(64));
    assert_eq!(code(&[]), Some(64));
    assert_eq!(with(&[&format!("http://{NOBODY}/")]), Some(69));
    assert_eq!(with(&["--json", "/nonexistent/r.json", &url]), Some(74));
    assert_eq!(with(&["--timeout", "0", &url]), Some(64));
    assert_eq!(code(&["lader", "-z", "1s"]), Some(64));
    assert_eq!(code(&["compare", "a.json", "b.json"]), Some(66));
    std::fs::write(dir.path().join("a.json"), "{}").unwrap();
    assert_eq!(code(&["compare", "a.json", "a.json"]), Some(65));
    // Result files of a machine that was too busy, of another load, and none at all.
    assert_eq!(with(&["--json", "r.json", &url]), Some(0));
    assert_eq!(with(&["--json", "other.json", "-c", "3", &url]), Some(0));
    let mut busy = json(&dir.path().join("r.json"));
    busy["verdict"] = serde_json::json!({"verdict": "not_measurable", "reasons": ["C8: noise."]});
    std::fs::write(dir.path().join("busy.json"), busy.to_string()).unwrap();
    assert_eq!(code(&["compare", "r.json", "busy.json"]), Some(75));
    assert_eq!(code(&["compare", "other.json", "busy.json"]), Some(65));
    assert_eq!(code(&["compare", "a.json", "a.json", "--pairs", "3"]), Some(64));
    assert_eq!(code(&["compare", &url, &url, "--repeat", "3"]), Some(64));
    assert_eq!(code(&["scenario", "none.toml"]), Some(66));
}

#[test]
fn an_open_loop_keeps_its_rate_and_tells_the_three_distributions() {
    if load_tester::bench().is_none() {
        return;
    }
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let url = format!("{}/health", server.url());
    let args = [
        "-r",
        "500",
        "-z",
        "1s",
        "--arrivals",
        "poisson",
        "--phases",
        "--json",
        "-",
        "--no-headroom",
        &url,
    ];
    let output = bench(dir.path(), &args);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &report["steps"][0]["runs"][0];
    let due = run["open_loop"]["due"].as_u64().unwrap();
    assert!((380..620).contains(&due), "{due} were due");
    let endpoint = &run["endpoints"][0];
    assert_eq!(endpoint["counters"]["successes"].as_u64(), Some(due));
    for distribution in ["service", "response", "lateness"] {
        assert_eq!(endpoint[distribution]["count"].as_u64(), Some(due), "{distribution}");
    }
    assert_eq!(endpoint["phases"]["first_byte"]["count"].as_u64(), Some(due));
}

#[test]
fn interrupting_ends_with_a_report() {
    if load_tester::bench().is_none() {
        return;
    }
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let url = format!("{}/health", server.url());
    let child = load_tester::bench()
        .expect("looked for before")
        .args(["-z", "1m", "--no-headroom", "--warmup", "0", &url])
        .current_dir(dir.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(ends_with_a_verdict(&last_line(&output)), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("interrupted after"), "{}", text(&output.stdout));
}

#[test]
fn a_scenario_runs_its_setup_and_its_steps() {
    if load_tester::bench().is_none() {
        return;
    }
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/events.toml");
    let file = file.to_str().unwrap();
    let url = server.url();
    let args = [
        "scenario",
        file,
        "--url",
        &url,
        "--users",
        "4",
        "-z",
        "1s",
        "--warmup",
        "0",
        "--json",
        "r.json",
        "--no-headroom",
        "-q",
    ];
    let output = bench(dir.path(), &args);
    assert!(output.status.success(), "{}{}", text(&output.stderr), text(&output.stdout));
    let report = json(&dir.path().join("r.json"));
    let endpoints = report["steps"][0]["runs"][0]["endpoints"].as_array().unwrap().clone();
    assert!(endpoints.len() >= 4, "{} endpoints", endpoints.len());
    for endpoint in endpoints {
        let counters = &endpoint["counters"];
        assert!(counters["successes"].as_u64().unwrap() > 0, "{endpoint}");
        assert_eq!(counters["sent"], counters["successes"], "{}: {counters}", endpoint["name"]);
    }
    assert!(bench(dir.path(), &["scenario", file, "--check"]).status.success());
}

#[test]
fn what_others_wrote_becomes_a_scenario() {
    if load_tester::bench().is_none() {
        return;
    }
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let line = format!("curl '{}/health' -H 'Accept: */*'", server.url());
    let made = bench(dir.path(), &["import", "curl", &line, "-o", "s.toml"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let args = ["scenario", "s.toml", "-n", "20", "--users", "2", "-q", "--no-headroom"];
    let output = bench(dir.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn two_servers_measured_in_turns_are_compared_in_pairs() {
    if load_tester::bench().is_none() {
        return;
    }
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let url = format!("{}/health", server.url());
    let args = [
        "compare",
        &url,
        &url,
        "--pairs",
        "4",
        "-z",
        "150ms",
        "--json",
        "-",
        "-q",
        "--no-headroom",
    ];
    let output = bench(dir.path(), &args);
    // 75: nothing was concluded, which the machine decides.
    assert!(matches!(output.status.code(), Some(0 | 75)), "{}", text(&output.stderr));
    let comparison: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(comparison["steps"][0]["design"], "paired");
    assert_eq!(comparison["steps"][0]["runs_a"], 4);
}

#[test]
fn a_token_is_fetched_first_and_no_secret_reaches_the_result() {
    if load_tester::bench().is_none() {
        return;
    }
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let secret = "hunter2-very-secret";
    let asked = format!("{}/health?access_token={secret}", server.url());
    let url = format!("{}/health", server.url());
    let header = format!("X-API-Key: {secret}");
    let args = [
        "-n",
        "10",
        "-c",
        "1",
        "-q",
        "--no-headroom",
        "--json",
        "r.json",
        "--basic",
        &format!("me:{secret}"),
        "-H",
        &header,
        &asked,
    ];
    let output = bench(dir.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let written = std::fs::read_to_string(dir.path().join("r.json")).unwrap();
    assert!(!written.contains(secret), "a secret is in the result file");
    // A token service that refuses is distinguished from one that is unreachable.
    let refused = bench(dir.path(), &["-n", "1", "--token-url", &url, &url]);
    assert_eq!(refused.status.code(), Some(69));
    assert!(text(&refused.stderr).contains("logging in"), "{}", text(&refused.stderr));
}
