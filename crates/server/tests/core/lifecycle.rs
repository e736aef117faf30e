//! Starting, stopping, and health checks.

use crate::server::Server;
use serde_json::json;
use std::process::Command;

#[test]
fn a_terminated_server_answers_what_is_in_flight_and_exits_with_zero() {
    let mut server = Server::start();
    let address = server.address;
    let writers: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = crate::client::Client::connect(address).unwrap();
                let body = json!({"events": [{"type": "T", "tags": [], "data": 1}]});
                let mut durable = 0u64;
                while let Ok(answer) = client.post("/v1/append", &body) {
                    if answer.status != 200 {
                        assert_eq!(answer.status, 503);
                        break;
                    }
                    durable += 1;
                }
                durable
            })
        })
        .collect();
    std::thread::sleep(std::time::Duration::from_millis(150));
    assert!(server.terminate().success());
    let durable: u64 = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
    let again = Server::start_in(&server.dir, &[]);
    let head = again.client().get("/v1/head").unwrap().expect(200)["head"].as_u64().unwrap();
    assert!(durable > 0);
    assert_eq!(head, durable, "no request was left without an answer");
}

#[test]
fn health_metrics_openapi_and_terms_are_served() {
    let server = Server::start();
    let mut client = server.client();
    let events = [
        json!({"type": "A", "tags": ["x:1", "y"], "data": 1}),
        json!({"type": "B", "tags": ["x:1"], "data": 2}),
    ];
    client.post("/v1/append", &json!({"events": events})).unwrap().expect(200);
    assert_eq!(client.get("/health").unwrap().expect(200)["status"], "healthy");
    assert_eq!(client.get("/health/live").unwrap().status, 200);
    let metrics = client.get("/metrics").unwrap();
    assert_eq!(metrics.status, 200);
    assert!(
        metrics.text().lines().any(|l| l.contains("head") && l.ends_with(" 2")),
        "{}",
        metrics.text()
    );
    let openapi = client.get("/openapi.json").unwrap().expect(200);
    assert!(openapi["openapi"].as_str().unwrap().starts_with("3.1"));
    assert!(openapi["paths"]["/v1/append"]["post"].is_object());
    let types = client.get("/v1/types").unwrap().expect(200);
    assert!(types.to_string().contains("\"A\"") && types.to_string().contains("\"B\""));
    let tags = client.get("/v1/tags?prefix=x").unwrap().expect(200).to_string();
    assert!(tags.contains("\"x:1\"") && tags.contains('2') && !tags.contains("\"y\""), "{tags}");
    let logs = client.get("/v1/logs").unwrap().expect(200).to_string();
    assert!(logs.contains("\"main\""));
}

#[test]
fn a_folder_in_use_is_refused_with_a_message() {
    let server = Server::start();
    let output = Command::new(env!("CARGO_BIN_EXE_wellspring"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data", server.dir.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    let folder = server.dir.display().to_string();
    assert!(message.contains("in use") && message.contains(&folder), "{message}");
}

#[test]
fn a_folder_that_is_given_back_a_moment_later_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(dir.path(), &[]);
    let child = Command::new(env!("CARGO_BIN_EXE_wellspring"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data", dir.path().to_str().unwrap()])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    drop(server);
    // It holds the log now: a third is refused, and the second is still running.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    let mut child = child;
    let ended = child.try_wait().unwrap();
    child.kill().unwrap();
    let told = child.wait_with_output().unwrap();
    assert!(ended.is_none(), "{}", String::from_utf8_lossy(&told.stderr));
}

#[test]
fn a_public_address_is_refused_unless_insisted_on() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_wellspring"))
        .args(["serve", "--listen", "0.0.0.0:0", "--data", dir.path().to_str().unwrap()])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--insecure"));
}

#[test]
fn every_route_of_the_openapi_document_answers_something_other_than_404() {
    let server = Server::start();
    let document = server.client().get("/openapi.json").unwrap().expect(200);
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            if !["get", "post", "put", "delete"].contains(&method.as_str()) {
                continue;
            }
            let concrete = path
                .replace("{log}", "main")
                .replace("{name}", "n")
                .replace("{position}", "1")
                .replace("{id}", "018f5c3e-9b2a-7c11-8d3e-0123456789ab")
                .replace("{uuid}", "018f5c3e-9b2a-7c11-8d3e-0123456789ab");
            let answer = server.client().call(&method.to_uppercase(), &concrete, &[], b"").unwrap();
            let unrouted = answer.status == 405
                || (answer.status == 404 && answer.text().contains("no such route"));
            assert!(!unrouted, "{method} {path} is not served");
        }
    }
}

#[test]
fn a_port_is_never_shared_with_another_server() {
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_wellspring"))
        .args(["serve", "--listen", &server.address.to_string()])
        .args(["--data", dir.path().to_str().unwrap()])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("is in use"));
}

#[test]
fn output_that_nobody_can_read_is_a_failure_not_a_panic() {
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let server = Server::start();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wellspring"));
        let output = command.args(arguments).stdout(full()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, message) = run(&["append", "--type", "T", "--url", &server.url()]);
    assert_eq!(code, Some(74), "{message}");
    let (code, message) = run(&["serve", "--print-config"]);
    assert_eq!(code, Some(74), "{message}");
}
