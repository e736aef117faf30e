//! No credential ever appears in a log line, a problem, `/metrics`, an event or a file.

use crate::client::{Answer, Client};
use crate::server::Server;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

const ADMIN: &str = "canary-admin-password";
const PASSWORD: &str = "canary-of-ann";
const NEW_PASSWORD: &str = "canary-new-password";
const WRONG: &str = "canary-wrong-password";

fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in text.as_bytes().chunks(3) {
        let bits = three.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte))
            << (8 * (3 - three.len()));
        for n in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * n)) as usize & 63] as char;
            out.push(if n <= three.len() { digit } else { '=' });
        }
    }
    out
}

/// Everything observed of the server, and what it must not contain.
#[derive(Default)]
struct Watch {
    seen: Vec<(String, Vec<u8>)>,
    secrets: Vec<String>,
}

impl Watch {
    fn secret(&mut self, text: &str) -> String {
        self.secrets.push(text.to_owned());
        text.to_owned()
    }

    /// Sends a request with these headers and records the answer.
    fn ask(
        &mut self,
        client: &mut Client,
        line: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let (method, path) = line.split_once(' ').unwrap();
        let mut all = vec![("Content-Type", "application/json")];
        all.extend_from_slice(headers);
        let answer = client.call(method, path, &all, body.as_bytes()).unwrap();
        let heads: String =
            answer.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        self.seen.push((format!("headers of {line}"), heads.into_bytes()));
        self.seen.push((format!("body of {line} with {body}"), answer.body.clone()));
        answer
    }

    /// Sends a request whose answer shows a secret once: that answer is not recorded.
    fn show(
        &mut self,
        client: &mut Client,
        line: &str,
        headers: &[(&str, &str)],
        body: &str,
        member: &str,
    ) -> String {
        let shown = self.ask(client, line, headers, body);
        self.seen.pop();
        assert!((200..300).contains(&shown.status), "{line}: {}", shown.text());
        self.secret(
            shown.json()[member].as_str().unwrap_or_else(|| panic!("{line} shows {member}")),
        )
    }

    fn file(&mut self, path: &Path) {
        self.seen.push((path.display().to_string(), fs::read(path).unwrap()));
    }

    fn judge(&self) {
        assert!(self.secrets.len() > 10);
        for (place, bytes) in &self.seen {
            // Hashes are kept in the files of the log `system` and appear in no answer.
            let is_answer = place.starts_with("body of") || place.starts_with("headers of");
            let has_hash = bytes.windows(7).any(|window| window == b"$argon2");
            assert!(!(is_answer && has_hash), "a hash is in {place}");
            for secret in &self.secrets {
                let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
                assert!(!found, "{secret} is in {place}");
            }
        }
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn bearer(token: &str) -> [(&'static str, String); 1] {
    [("Authorization", format!("Bearer {token}"))]
}

#[test]
fn no_credential_is_to_be_seen_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("server.log");
    let run = format!("exec \"$0\" \"$@\" 2>> {}", log.display());
    let admin = format!("WELLSPRING_ADMIN_PASSWORD={ADMIN}");
    let data = dir.path().join("data");
    let flags = ["--log-level", "trace", "--access-log", "--log-format", "json", "--audit", "all"];
    let mut server = Server::start_under(&["env", &admin, "sh", "-c", &run], &data, &flags);
    let mut watch = Watch::default();
    for password in [ADMIN, PASSWORD, NEW_PASSWORD, WRONG] {
        watch.secret(password);
        for name in ["admin", "ann"] {
            watch.secret(&base64(&format!("{name}:{password}")));
        }
    }
    let mut client = server.client();
    let client = &mut client;
    let log_in =
        |name: &str, password: &str| json!({"username": name, "password": password}).to_string();

    let token =
        watch.show(client, "POST /auth/token", &[], &log_in("admin", ADMIN), "access_token");
    let as_admin = bearer(&token);
    let as_admin = as_admin.each_ref().map(|(name, value)| (*name, value.as_str()));
    let ann = json!({"name": "ann", "password": PASSWORD, "roles": ["writer"]}).to_string();
    watch.ask(client, "POST /v1/accounts", &as_admin, &ann).expect(201);
    watch.ask(client, "POST /v1/accounts", &as_admin, &ann).problem(409);
    let key = json!({"label": "x", "role": "writer", "account": "ann"}).to_string();
    let key = watch.show(client, "POST /v1/keys", &as_admin, &key, "secret");
    let second =
        watch.show(client, "POST /auth/token", &[], &log_in("ann", PASSWORD), "access_token");

    let made_up = watch.secret("canary.canary.canary");
    let basic =
        |name: &str, password: &str| format!("Basic {}", base64(&format!("{name}:{password}")));
    let sent = [
        ("Authorization", format!("Bearer {token}")),
        ("Authorization", format!("Bearer {second}")),
        ("Authorization", format!("Bearer {made_up}")),
        ("Authorization", format!("Bearer {second}x")),
        ("Authorization", format!("Bearer {key}")),
        ("Authorization", format!("Canary {key}")),
        ("Authorization", format!("Basic {key}")),
        ("Authorization", format!("Basic {PASSWORD}:")),
        ("Authorization", basic("ann", PASSWORD)),
        ("Authorization", basic("ann", WRONG)),
        ("Authorization", basic(PASSWORD, WRONG)),
        ("X-API-Key", key.clone()),
        ("X-API-Key", format!("{key}x")),
        ("X-API-Key", PASSWORD.to_owned()),
    ];
    for (name, value) in &sent {
        let headers = [(*name, value.as_str())];
        for line in [
            "GET /v1/head",
            "GET /auth/me",
            "POST /e",
            "GET /v1/accounts",
            "GET /nothing",
            "DELETE /v1/head",
            "GET /v1/keys",
            "GET /metrics",
            "POST /cleanup",
            "GET /Abc",
        ] {
            watch.ask(client, line, &headers, if line.starts_with("POST") { "{}" } else { "" });
        }
        // A connection that the lean loop keeps.
        let mut own = server.client();
        for _ in 0..3 {
            watch.ask(&mut own, "POST /e", &headers, "{}");
        }
        watch.ask(&mut own, "POST /e?colour=red", &headers, "{}");
    }
    let bodies = [
        log_in("ann", WRONG),
        log_in(PASSWORD, WRONG),
        format!(r#"{{"username":"ann","password":"{PASSWORD}"#),
        format!(r#"{{"username":"ann","password":["{PASSWORD}"]}}"#),
        format!(r#"{{"username":"ann","passwort":"{PASSWORD}"}}"#),
        format!(r#"{{"username":"ann","password":"{PASSWORD}","password":"{WRONG}"}}"#),
        format!(r#""{PASSWORD}""#),
        format!("username=ann&password={PASSWORD}"),
        format!(r#"{{"name":"{}","password":"short"}}"#, "bob"),
        format!(r#"{{"password":"{NEW_PASSWORD}","current":"{WRONG}"}}"#),
        format!(r#"{{"password":"{NEW_PASSWORD}\u0000","current":"{PASSWORD}"}}"#),
        format!(r#"{{"password":"{NEW_PASSWORD}","colour":"{PASSWORD}"}}"#),
    ];
    for body in &bodies {
        for line in [
            "POST /auth/token",
            "POST /v1/accounts",
            "PUT /v1/accounts/ann/password",
            "POST /v1/keys",
            "POST /auth/logout",
        ] {
            if watch.ask(client, line, &as_admin, body).status < 300 && line == "POST /auth/token" {
                panic!("{body} is no login");
            }
        }
    }
    let as_ann = bearer(&second);
    let as_ann = as_ann.each_ref().map(|(name, value)| (*name, value.as_str()));
    watch.ask(client, "POST /auth/logout", &as_ann, "{}").expect(200);
    watch.ask(client, "GET /v1/head", &as_ann, "").problem(401);

    watch.ask(client, "DELETE /v1/accounts/admin", &as_admin, "").problem(409);
    assert_eq!(watch.ask(client, "DELETE /v1/accounts/ann", &as_admin, "").status, 204);
    watch.ask(client, "GET /v1/accounts/ann", &as_admin, "").problem(404);
    watch
        .ask(client, "GET /v1/head", &[("Authorization", &format!("Bearer {key}"))], "")
        .problem(401);

    watch.ask(client, "GET /metrics", &as_admin, "");
    watch.ask(client, "GET /v1/logs/system/events", &as_admin, "").expect(200);
    watch.ask(client, "GET /v1/accounts", &as_admin, "").expect(200);
    watch.ask(client, "GET /v1/keys", &as_admin, "").expect(200);
    watch.ask(client, "GET /openapi.json", &as_admin, "");
    let pid = server.pid();
    assert!(server.terminate().success());
    let printed = std::process::Command::new(env!("CARGO_BIN_EXE_wellspring"))
        .args(["serve", "--print-config"])
        .env("WELLSPRING_ADMIN_PASSWORD", ADMIN)
        .output()
        .unwrap();
    watch.seen.push(("--print-config".to_owned(), printed.stdout));
    watch.file(&log);
    let lines = fs::read_to_string(&log).unwrap();
    assert!(
        lines.contains("/auth/me") && lines.lines().count() > 100,
        "pid {pid} logged little:\n{lines}"
    );
    for path in files(&data) {
        // The one secret that must be stored in clear; only the owner can read the file.
        if path.file_name().is_some_and(|name| name != "token-secret") {
            watch.file(&path);
        }
    }
    watch.judge();
}
