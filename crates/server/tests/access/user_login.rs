//! `wellspring login` and `logout`, `user show` and `delete`.

use crate::closed::{Closed, PASSWORD};
use crate::program::{ProgramOutput, file, program, run, typed};
use crate::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A user with a place to keep logins and the right password in a file.
struct Person {
    dir: tempfile::TempDir,
    password: PathBuf,
}

impl Person {
    fn new() -> Person {
        let dir = tempfile::tempdir().unwrap();
        let password = file(dir.path(), "password", PASSWORD);
        Person { dir, password }
    }

    fn run(&self, words: &[&str]) -> ProgramOutput {
        ProgramOutput::of(program(words).env("XDG_STATE_HOME", self.dir.path()).output().unwrap())
    }

    fn log_in(&self, name: &str, url: &str, more: &[&str]) -> ProgramOutput {
        let file = self.password.to_str().unwrap();
        self.run(&[&["login", name, "--url", url, "--password-file", file], more].concat())
    }

    fn kept(&self) -> Vec<PathBuf> {
        let folder = self.dir.path().join("wellspring/logins");
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_login_is_kept_for_its_server_alone_and_logout_ends_it() {
    let (closed, other, person) = (Closed::start(), Closed::start(), Person::new());
    let [url, other_url] = [&closed, &other].map(|closed| closed.server.url());
    closed.add("ann", &["writer"]);
    let append = ["append", "--type", "T", "--url", &url];
    person.run(&append).failed(77, "wellspring login");
    let wrong = file(person.dir.path(), "wrong", "wrong wrong");
    let with_wrong = ["--password-file", wrong.to_str().unwrap()];
    person.run(&[&["login", "ann", "--url", &url][..], &with_wrong].concat()).failed(77, "401");
    assert_eq!(person.kept(), Vec::<PathBuf>::new());
    let long = person.log_in("ann", &url, &["--expires", "400d"]);
    assert!(!long.err.contains("expires_in_s"), "{long:?}");
    long.failed(64, "--expires");
    let said = person.log_in("ann", &url, &[]);
    assert!(said.err.contains("until 2") && said.out.is_empty(), "{said:?}");
    said.done();
    let kept = person.kept();
    assert_eq!((kept.len(), mode(&kept[0]), mode(kept[0].parent().unwrap())), (1, 0o600, 0o700));
    assert_eq!(person.run(&append).done(), "1\n");
    // Explicit credentials take precedence, and no other server receives the login.
    let words = [
        &append[..],
        &["--user", "root", "--user-password-file", person.password.to_str().unwrap()],
    ];
    assert_eq!(person.run(&words.concat()).done(), "2\n");
    let mut with_variable = program(&append);
    with_variable.env("XDG_STATE_HOME", person.dir.path()).env("WELLSPRING_TOKEN", "wsk_no");
    ProgramOutput::of(with_variable.output().unwrap()).failed(77, "credentials are invalid");
    person.run(&["append", "--type", "T", "--url", &other_url]).failed(77, "requires credentials");
    // Nor is one whose file was copied to its name, or that others may read.
    let token: Value = serde_json::from_slice(&fs::read(&kept[0]).unwrap()).unwrap();
    let token = token["token"].as_str().unwrap().to_owned();
    let port = |url: &str| url.rsplit(':').next().unwrap().to_owned();
    let elsewhere = kept[0].to_str().unwrap().replace(&port(&url), &port(&other_url));
    fs::copy(&kept[0], &elsewhere).unwrap();
    person
        .run(&["append", "--type", "T", "--url", &other_url])
        .failed(77, "belongs to another server");
    fs::remove_file(&elsewhere).unwrap();
    fs::set_permissions(&kept[0], fs::Permissions::from_mode(0o640)).unwrap();
    let open = person.run(&append);
    assert!(!open.err.contains(&token));
    open.failed(77, "chmod 600");
    fs::set_permissions(&kept[0], fs::Permissions::from_mode(0o600)).unwrap();
    assert!(closed.counts(&token));
    let out = person.run(&["logout", "--url", &url]);
    assert!(!out.err.contains(&token) && out.err.contains("Logged out"), "{out:?}");
    out.done();
    assert!(!closed.counts(&token) && person.kept().is_empty());
    person.run(&append).failed(77, "requires credentials");
    person.run(&["logout", "--url", &url]).failed(1, "not logged in");
}

#[test]
fn a_login_that_has_ended_is_said_to_have() {
    let (closed, person) = (Closed::start(), Person::new());
    let url = closed.server.url();
    closed.add("ann", &["writer"]);
    person.log_in("ann", &url, &["--expires", "1s"]).done();
    std::thread::sleep(Duration::from_millis(1_100));
    let late = person.run(&["tail", "--url", &url]);
    assert!(
        late.err.contains("expired at 2") && late.err.contains("wellspring login ann"),
        "{late:?}"
    );
    late.failed(77, &url);
    // A session that was revoked at the server.
    person.log_in("ann", &url, &[]).done();
    let change = json!({"enabled": false});
    closed.ask(&closed.root, "PATCH", "/v1/accounts/ann", &change).expect(200);
    person.run(&["tail", "--url", &url]).failed(77, "wellspring login");
    let out = person.run(&["logout", "--url", &url]);
    assert!(out.err.contains("no longer valid"), "{out:?}");
    out.done();
    closed.ask(&closed.root, "PATCH", "/v1/accounts/ann", &json!({"enabled": true})).expect(200);
    person.log_in("ann", &url, &[]).done();
    drop(closed);
    person.run(&["logout", "--url", &url]).failed(69, "removed the stored login");
    assert!(person.kept().is_empty());
    // Without accounts there is no account to log in to, and without a place no token is created.
    let open = Server::start();
    person.log_in("ann", &open.url(), &[]).failed(1, "no accounts");
    let file = person.password.to_str().unwrap();
    run(&["login", "ann", "--url", &open.url(), "--password-file", file]).failed(74, "HOME");
}

#[test]
fn an_account_is_shown_and_deleted_with_all_it_had() {
    let (closed, person) = (Closed::start(), Person::new());
    let url = closed.server.url();
    let token = closed.add("bob", &["writer:main"]);
    let (id, key) = closed.key(&token, &json!({"role": "writer", "log": "main"}));
    person.log_in("root", &url, &[]).done();
    let user = |words: &[&str]| person.run(&[&["user"], words, &["--url", &url]].concat());
    let shown = user(&["show", "bob"]).done();
    assert!(shown.contains("roles      writer:main\n"), "{shown}");
    assert!(shown.contains("live keys  1\n"), "{shown}");
    let shown: Value = serde_json::from_str(&user(&["show", "bob", "--json"]).done()).unwrap();
    assert_eq!((&shown["enabled"], &shown["keys"][0]["id"]), (&json!(true), &json!(id)));
    user(&["show", "eve"]).failed(64, "no account");
    user(&["delete", "root", "--yes"]).failed(1, "last enabled admin");
    user(&["delete", "eve", "--yes"]).failed(64, "no account");
    closed.ask(&token, "DELETE", "/v1/accounts/root", &Value::Null).problem(403);
    let mut lean = closed.client();
    let taken = |client: &mut crate::client::Client| {
        crate::closed::ask(client, &key, "POST", "/e", &json!({})).status
    };
    assert_eq!(taken(&mut lean), 202);
    user(&["delete", "bob", "--yes"]).done();
    assert!(!closed.counts(&token) && !closed.counts(&key));
    assert_eq!(taken(&mut lean), 401, "on the connection that is open");
    user(&["show", "bob"]).failed(64, "no account");
    // A new account of the same name inherits nothing.
    let fresh = closed.add("bob", &["reader"]);
    assert!(closed.counts(&fresh) && !closed.counts(&token) && !closed.counts(&key));
    let keys = user(&["show", "bob", "--json"]).done();
    assert!(keys.contains("\"keys\":[]"), "{keys}");
    let audit =
        closed.get(&closed.root, "/v1/logs/system/events?type=AccountDeleted&tag=account:bob");
    assert_eq!(audit.expect(200)["events"].as_array().unwrap().len(), 1);
    let audit =
        closed.get(&closed.root, "/v1/logs/system/events?type=Accessed&order=desc&limit=1000");
    let audit = audit.text();
    assert!(audit.contains("DELETE") && audit.contains("/v1/accounts/{name}"), "{audit}");
}

#[test]
fn a_deletion_is_confirmed_on_the_terminal_or_by_a_word() {
    let person = Person::new();
    let data = person.dir.path().join("data");
    let at = ["--data", data.to_str().unwrap()];
    let password = person.password.to_str().unwrap();
    for name in ["ann", "bob"] {
        let add = ["user", "add", name, "--role", "admin", "--password-file", password];
        run(&[&add[..], &at].concat()).done();
    }
    let delete = [&["user", "delete", "bob"][..], &at].concat();
    typed("ann", &delete).failed_on_terminal(1, "nothing was changed");
    let shown = run(&[&["user", "show", "bob"][..], &at].concat()).done();
    assert!(shown.contains("live keys  0\n"), "{shown}");
    typed("bob", &delete).done();
    run(&[&["user", "show", "bob"][..], &at].concat()).failed(64, "no account");
    run(&[&["user", "delete", "ann", "--yes"][..], &at].concat()).failed(1, "last enabled admin");
}
