//! Tokens of another issuer: which are accepted, for what and until when, and what happens to them
//! when keys and secrets change under a running server.

use crate::client::{Answer, Client};
use crate::closed::ask;
use crate::issuer::{
    self, by_ed, by_ed_under, by_hmac, by_rsa, claims, ed_jwk, jwks, rsa_jwk, unsigned,
};
use crate::server::Server;
use crate::tls_certificates::{Authority, Ground};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wellspring_patience::Patience;

fn call(client: &mut Client, line: &str, token: &str, body: &Value) -> Answer {
    let (method, path) = line.split_once(' ').unwrap();
    ask(client, token, method, path, body)
}

fn head(client: &mut Client, token: &str) -> Answer {
    call(client, "GET /v1/head", token, &Value::Null)
}

fn append(client: &mut Client, log: &str, token: &str) -> Answer {
    let event = json!({"events": [{"type": "A", "data": {}}]});
    call(client, &format!("POST /v1/logs/{log}/append"), token, &event)
}

/// A server that trusts signatures by these keys: a file or a URL.
fn trusting(dir: &Path, keys: &str, flags: &[&str]) -> Server {
    let all =
        ["--jwt-issuer", issuer::NAME, "--jwt-audience", issuer::AUDIENCE, "--jwt-keys", keys];
    Server::start_in(dir, &[&all[..], flags].concat())
}

/// The same with a file of these keys.
fn with_file(dir: &Path, keys: &[Value], flags: &[&str]) -> Server {
    let path = dir.join("keys.json");
    fs::write(&path, jwks(keys)).unwrap();
    trusting(dir, path.to_str().unwrap(), flags)
}

fn hang_up(server: &Server) {
    let killed = Command::new("kill").args(["-HUP", &server.pid().to_string()]).status();
    assert!(killed.unwrap().success());
}

/// Repeats the request until the answer has this status.
fn until(status: u16, mut ask: impl FnMut() -> Answer) {
    let mut patience = Patience::new();
    loop {
        let answer = ask();
        if answer.status == status {
            return;
        }
        patience.pause(format_args!("still {}: {}", answer.status, answer.text()));
    }
}

#[test]
fn a_token_may_what_it_says_and_no_account_is_looked_up() {
    let dir = tempfile::tempdir().unwrap();
    let password = "WELLSPRING_ADMIN_PASSWORD=correct horse";
    let path = dir.path().join("keys.json");
    fs::write(&path, jwks(&[ed_jwk(1, "e"), rsa_jwk("r")])).unwrap();
    let keys = path.to_str().unwrap();
    let flags =
        ["--jwt-issuer", issuer::NAME, "--jwt-audience", issuer::AUDIENCE, "--jwt-keys", keys];
    let server = Server::start_under(&["env", password], dir.path(), &flags);
    let mut client = server.client();
    let admin = by_rsa("r", &claims("ann", json!(["admin"])));
    assert!(call(&mut client, "PUT /v1/logs/orders", &admin, &Value::Null).status < 300);

    let reader = by_ed(1, "e", &claims("ann", json!(["reader", "something-else"])));
    head(&mut client, &reader).expect(200);
    append(&mut client, "main", &reader).problem(403);
    call(&mut client, "POST /e", &reader, &json!({})).problem(403);
    let scope = by_ed(1, "e", &claims("ann", json!("openid writer:orders")));
    append(&mut client, "orders", &scope).expect(200);
    append(&mut client, "main", &scope).problem(403);
    head(&mut client, &scope).problem(403);
    let mut lean = server.client();
    for _ in 0..3 {
        call(&mut lean, "POST /e", &admin, &json!({})).expect(202);
    }
    // There is an account `admin`; this is a different identity.
    let stranger = by_ed(1, "e", &claims("admin", json!([])));
    head(&mut client, &stranger).problem(403);
    let me = call(&mut client, "GET /auth/me", &stranger, &Value::Null).expect(200);
    assert_eq!((&me["account"], &me["subject"]), (&Value::Null, &json!("jwt:admin")), "{me}");
    assert_eq!((&me["by"], &me["roles"]), (&json!("issuer"), &json!([])), "{me}");
    assert!(call(&mut client, "POST /auth/logout", &stranger, &json!({})).status >= 400);
    // Tokens of the server itself still work.
    let log_in = json!({"username": "admin", "password": "correct horse"});
    let own = client.post("/auth/token", &log_in).unwrap().expect(200);
    head(&mut client, own["access_token"].as_str().unwrap()).expect(200);
}

#[test]
fn a_server_with_an_issuer_and_no_account_is_not_open() {
    let dir = tempfile::tempdir().unwrap();
    let server = with_file(dir.path(), &[ed_jwk(1, "e")], &[]);
    let mut client = server.client();
    let refused = client.get("/v1/head").unwrap();
    refused.problem(401);
    assert!(refused.header("www-authenticate").is_some());
    client.call("POST", "/e", &[], b"{}").unwrap().problem(401);
    client.get("/health").unwrap().expect(200);
}

#[test]
fn what_is_forged_is_refused_alike() {
    let dir = tempfile::tempdir().unwrap();
    let server = with_file(dir.path(), &[ed_jwk(1, "e"), rsa_jwk("r")], &[]);
    let good = claims("ann", json!(["admin"]));
    let with = |change: Value| {
        let mut claims = good.clone();
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        by_ed(1, "e", &claims)
    };
    let under = |header: Value| by_ed_under(1, &header, &good);
    let now_s = issuer::now_s();
    let modulus = rsa_jwk("r")["n"].as_str().unwrap().to_owned();
    let forged = [
        unsigned(&good),
        by_hmac(jwks(&[rsa_jwk("r")]).as_bytes(), &good),
        by_hmac(modulus.as_bytes(), &good),
        by_ed(2, "e", &good),
        by_ed(1, "x", &good),
        by_ed(1, "r", &good),
        by_rsa("e", &good),
        under(json!({"alg": "RS256", "kid": "r"})),
        under(json!({"alg": "HS256", "kid": "e"})),
        under(json!({"alg": "EdDSA", "kid": "e", "crit": ["exp"]})),
        under(json!({"alg": "EdDSA", "kid": "x", "jwk": ed_jwk(1, "x")})),
        with(json!({"iss": "https://other.example"})),
        with(json!({"aud": "another"})),
        with(json!({"aud": null})),
        with(json!({"exp": now_s - 31})),
        with(json!({"iat": now_s + 60, "exp": now_s + 120})),
        with(json!({"nbf": now_s + 60})),
        with(json!({"sub": "a\nb"})),
        with(json!({"roles": {"admin": true}})),
    ];
    let mut client = server.client();
    head(&mut client, &by_ed(1, "e", &good)).expect(200);
    let said = head(&mut client, &unsigned(&good)).problem(401)["detail"].clone();
    for token in forged {
        assert_eq!(head(&mut client, &token).problem(401)["detail"], said, "{token}");
        call(&mut server.client(), "POST /e", &token, &json!({})).problem(401);
    }
}

#[test]
fn keys_that_are_taken_out_of_the_file_end_their_tokens() {
    for lean in ["--lean-loop=true", "--lean-loop=false"] {
        let dir = tempfile::tempdir().unwrap();
        let server = with_file(dir.path(), &[ed_jwk(1, "old")], &[lean]);
        let [old, new] = [(1, "old"), (2, "new")]
            .map(|(seed, id)| by_ed(seed, id, &claims("ann", json!(["writer"]))));
        let (mut client, mut lean) = (server.client(), server.client());
        head(&mut client, &old).expect(200);
        for _ in 0..3 {
            call(&mut lean, "POST /e", &old, &json!({})).expect(202);
        }
        head(&mut client, &new).problem(401);
        // A truncated file is rejected: the current keys stay.
        let path = dir.path().join("keys.json");
        fs::write(&path, &jwks(&[ed_jwk(2, "new")])[..40]).unwrap();
        hang_up(&server);
        std::thread::sleep(Duration::from_millis(300));
        head(&mut client, &old).expect(200);
        // Checked every two seconds, without a signal.
        fs::write(&path, jwks(&[ed_jwk(2, "new")])).unwrap();
        until(200, || head(&mut client, &new));
        head(&mut client, &old).problem(401);
        call(&mut lean, "POST /e", &old, &json!({})).problem(401);
        call(&mut lean, "POST /e", &new, &json!({})).expect(202);
    }
}

/// Serves one document until the test ends, over TLS if certificates are given; `None`: 500.
fn publish(document: Arc<Mutex<Option<String>>>, tls: Option<rustls::ServerConfig>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}/keys", listener.local_addr().unwrap());
    let tls = tls.map(Arc::new);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (mut socket, document) = (socket.unwrap(), document.lock().unwrap().clone());
            match &tls {
                None => answer(&mut socket, document),
                Some(config) => {
                    let connection = rustls::ServerConnection::new(Arc::clone(config)).unwrap();
                    answer(&mut rustls::StreamOwned::new(connection, socket), document);
                }
            }
        }
    });
    url
}

fn answer(stream: &mut (impl Read + Write), document: Option<String>) {
    let mut head = [0; 4096];
    // A client that does not trust this server hangs up.
    let Ok(read) = stream.read(&mut head) else { return };
    assert!(read == 0 || head[..read].starts_with(b"GET /keys HTTP/1.1\r\n"));
    let status = if document.is_some() { 200 } else { 500 };
    let body = document.unwrap_or_default();
    let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n", body.len());
    let _ = write!(stream, "{head}Connection: close\r\n\r\n{body}");
    let _ = stream.flush();
}

#[test]
fn keys_come_from_a_url_and_its_failing_takes_none_away() {
    let published = Arc::new(Mutex::new(None));
    let url = publish(Arc::clone(&published), None);
    let publish = |keys: Option<&[Value]>| *published.lock().unwrap() = keys.map(jwks);
    let dir = tempfile::tempdir().unwrap();
    // It answers 500: the server starts anyway.
    let server = trusting(dir.path(), &url, &[]);
    let mut client = server.client();
    let [one, two] =
        [(1, "1"), (2, "2")].map(|(seed, id)| by_ed(seed, id, &claims("ann", json!(["reader"]))));
    head(&mut client, &one).problem(401);
    publish(Some(&[ed_jwk(1, "1")]));
    hang_up(&server);
    until(200, || head(&mut client, &one));
    publish(None);
    hang_up(&server);
    std::thread::sleep(Duration::from_millis(300));
    head(&mut client, &one).expect(200);
    head(&mut client, &two).problem(401);
    publish(Some(&[ed_jwk(2, "2"), ed_jwk(3, "3")]));
    hang_up(&server);
    until(200, || head(&mut client, &two));
    head(&mut client, &one).problem(401);
}

/// An issuer behind TLS with a certificate of an authority that only the test knows.
fn issuer_behind_tls() -> (Ground, String) {
    let ground = Ground::new();
    let chain = CertificateDer::from_pem_file(&ground.pair.certificate).unwrap();
    let key = PrivateKeyDer::from_pem_file(&ground.pair.key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .unwrap();
    let url = publish(Arc::new(Mutex::new(Some(jwks(&[ed_jwk(1, "1")])))), Some(config));
    (ground, url)
}

#[test]
fn over_https_keys_are_taken_from_whom_the_machine_trusts_and_nobody_else() {
    let (ground, url) = issuer_behind_tls();
    let other = Authority::new(ground.dir.path(), "other");
    let token = by_ed(1, "1", &claims("ann", json!(["reader"])));
    for (authority, status) in [(&ground.authority, 200), (&other, 401)] {
        let trusted = format!("SSL_CERT_FILE={}", authority.file.display());
        let dir = tempfile::tempdir().unwrap();
        let flags =
            ["--jwt-issuer", issuer::NAME, "--jwt-audience", issuer::AUDIENCE, "--jwt-keys", &url];
        let server =
            Server::start_under(&["env", "-u", "SSL_CERT_DIR", &trusted], dir.path(), &flags);
        assert_eq!(head(&mut server.client(), &token).status, status);
    }
}

#[test]
fn an_issuer_behind_a_private_authority_is_reached_by_naming_it() {
    let (ground, url) = issuer_behind_tls();
    let other = Authority::new(ground.dir.path(), "other");
    let token = by_ed(1, "1", &claims("ann", json!(["reader"])));
    for (authority, status) in [(&ground.authority, 200), (&other, 401)] {
        let dir = tempfile::tempdir().unwrap();
        let server =
            trusting(dir.path(), &url, &["--jwt-keys-ca", authority.file.to_str().unwrap()]);
        assert_eq!(head(&mut server.client(), &token).status, status);
    }
    // A file that is not a certificate of an authority, or is not used, prevents the start.
    let keys = ground.pair.key.to_str().unwrap();
    for (keys_url, file, word) in [
        (url.as_str(), "/nowhere.pem", "nowhere.pem"),
        (&url, keys, "jwt_keys_ca"),
        ("http://127.0.0.1:1/keys", ground.authority.file.to_str().unwrap(), "https"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_wellspring"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data", dir.path().to_str().unwrap()])
            .args(["--jwt-issuer", issuer::NAME, "--jwt-audience", issuer::AUDIENCE])
            .args(["--jwt-keys", keys_url, "--jwt-keys-ca", file])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(word), "{file}: {said}");
    }
}

#[test]
fn a_secret_that_another_process_replaces_ends_the_tokens_of_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let env = ["env", "WELLSPRING_ADMIN_PASSWORD=correct horse"];
    let server = Server::start_under(&env, dir.path(), &[]);
    let log_in = json!({"username": "admin", "password": "correct horse"});
    let mut client = server.client();
    let mut issue = || {
        let told = client.post("/auth/token", &log_in).unwrap().expect(200);
        told["access_token"].as_str().unwrap().to_owned()
    };
    let first = issue();
    let (mut general, mut lean) = (server.client(), server.client());
    let mut both = |token: &str, wanted: [u16; 2]| {
        let told = [
            head(&mut general, token).status,
            call(&mut lean, "POST /e", token, &json!({})).status,
        ];
        assert_eq!(told, wanted);
    };
    both(&first, [200, 202]);
    let path = dir.path().join("token-secret");
    let old = fs::read_to_string(&path).unwrap();
    let replace = |text: &str| {
        let new = dir.path().join("token-secret.test");
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&new).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        fs::rename(&new, &path).unwrap();
        hang_up(&server);
        std::thread::sleep(Duration::from_millis(300));
    };
    // Both secrets are valid as long as the old one is listed.
    replace(&format!("{}\n{old}", "ab".repeat(32)));
    both(&first, [200, 202]);
    let second = issue();
    both(&second, [200, 202]);
    // An invalid file changes nothing.
    replace("rubbish\n");
    both(&first, [200, 202]);
    replace(&format!("{}\n", "ab".repeat(32)));
    both(&first, [401, 401]);
    both(&second, [200, 202]);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_idempotency_key_belongs_to_its_subject() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys.json");
    fs::write(&path, jwks(&[ed_jwk(1, "e")])).unwrap();
    let keys = path.to_str().unwrap();
    let flags =
        ["--jwt-issuer", issuer::NAME, "--jwt-audience", issuer::AUDIENCE, "--jwt-keys", keys];
    let password = "WELLSPRING_ADMIN_PASSWORD=correct horse";
    let server = Server::start_under(&["env", password], dir.path(), &flags);
    let mut client = server.client();
    let append = |client: &mut Client, token: &str, key: &str, data: u64| {
        let authorization = format!("Bearer {token}");
        let headers = [
            ("Authorization", authorization.as_str()),
            ("Idempotency-Key", key),
            ("Content-Type", "application/json"),
        ];
        let body = json!({"events": [{"type": "Paid", "data": data}]}).to_string();
        client.call("POST", "/v1/append", &headers, body.as_bytes()).unwrap()
    };
    let subject = |name: &str| by_ed(1, "e", &claims(name, json!(["writer"])));
    for (name, data) in [("mallory", 1), ("bob", 1), ("carol", 2)] {
        let stored = append(&mut client, &subject(name), "order-7", data).expect(200);
        assert_eq!(stored["replayed"], false, "{name} has a name space of its own");
        let again = append(&mut client, &subject(name), "order-7", data).expect(200);
        assert_eq!((&again["replayed"], &again["first"]), (&json!(true), &stored["first"]));
    }
    // A subject cannot write an account's names by hand, nor can an account that takes over a name
    // find the keys of the former one.
    let root = |client: &mut Client| {
        let log_in = json!({"username": "admin", "password": "correct horse"});
        let told = client.post("/auth/token", &log_in).unwrap().expect(200);
        told["access_token"].as_str().unwrap().to_owned()
    };
    let admin = root(&mut client);
    let eve = json!({"name": "eve", "password": "battery staple", "roles": ["writer"]});
    let mut stored = Vec::new();
    for _ in 0..2 {
        call(&mut client, "POST /v1/accounts", &admin, &eve).expect(201);
        let log_in = json!({"username": "eve", "password": "battery staple"});
        let token = client.post("/auth/token", &log_in).unwrap().expect(200);
        let token = token["access_token"].as_str().unwrap();
        stored.push(append(&mut client, token, "order-1", 1).expect(200)["replayed"].clone());
        let lease = json!({"ttl_ms": 60_000});
        let lease = call(&mut client, "POST /v1/leases/mine", token, &lease);
        assert_eq!(lease.status, if stored.len() == 1 { 201 } else { 409 }, "{lease:?}");
        assert!(call(&mut client, "DELETE /v1/accounts/eve", &admin, &Value::Null).status < 300);
    }
    assert_eq!(stored, [json!(false), json!(false)]);
    let lease = |client: &mut Client, name: &str, token: &str| {
        let asked = json!({"ttl_ms": 60_000});
        call(client, &format!("POST /v1/leases/{name}"), token, &asked)
    };
    let token = lease(&mut client, "own", &subject("mallory")).expect(201)["token"].take();
    let renew = json!({ "token": token, "ttl_ms": 60_000 });
    call(&mut client, "PUT /v1/leases/own", &subject("bob"), &renew).problem(409);
    call(&mut client, "PUT /v1/leases/own", &subject("mallory"), &renew).expect(200);
}
