//! `wellspring user` and `wellspring token`, and how the tools authenticate.

use crate::closed::{Closed, PASSWORD, ask, login};
use crate::load_tester;
use crate::program::{ProgramOutput, file, program, run, typed};
use crate::server::Server;
use serde_json::{Value, json};
use std::path::Path;

/// The cells of a table: two spaces or more stand between them.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .skip(1)
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect()
}

#[test]
fn the_first_admin_is_made_before_the_first_start() {
    let dir = tempfile::tempdir().unwrap();
    let password = file(dir.path(), "password", PASSWORD);
    let password = password.to_str().unwrap();
    let data = dir.path().join("data");
    let data = data.to_str().unwrap();
    run(&["user", "list", "--data", data]).failed(66, "there are no accounts");
    let add = |words: &[&str]| {
        run(&[&["user", "add", "--data", data, "--password-file", password], words].concat())
    };
    add(&["ann", "--role", "writer"]).failed(1, "admin of all logs");
    run(&["user", "add", "ann", "--data", data, "--role", "admin", "--no-password"])
        .failed(1, "password");
    add(&["Ann", "--role", "admin"]).failed(64, "a-z");
    add(&["ann", "--role", "root"]).failed(64, "writer:orders");
    add(&["ann", "--role", "admin", "--role", "writer"]).failed(64, "one for all");
    add(&["ann", "--role", "admin"]).done();
    // A folder that loses its accounts later does not start without them.
    assert!(Path::new(data).join("has-accounts").exists());
    add(&["ann", "--role", "admin"]).failed(1, "already");
    add(&["bob", "--role", "reader", "--role", "writer:orders"]).done();
    run(&["user", "disable", "ann", "--data", data]).failed(1, "last enabled admin");
    run(&["user", "roles", "bob", "--data", data, "--role", "writer"]).done();
    run(&["user", "disable", "bob", "--data", data]).done();
    let list = run(&["user", "list", "--data", data]).done();
    let list: Vec<Vec<&str>> = rows(&list).into_iter().map(|row| row[..4].to_vec()).collect();
    assert_eq!(list, [["ann", "admin", "enabled", "yes"], ["bob", "writer", "disabled", "yes"]]);
    run(&["user", "enable", "bob", "--data", data]).done();
    // Only the key is on standard output.
    let create = ["token", "create", "--data", data, "--role", "writer", "--expires", "1d"];
    run(&create).failed(64, "--account");
    let made = run(&[&create[..], &["--account", "bob", "--label", "for the test"]].concat());
    let said = made.err.clone();
    let key = made.done();
    let key = key.strip_suffix('\n').unwrap();
    assert!(key.starts_with("wsk_") && !key.contains('\n') && !said.contains(&key[4..]), "{said}");
    let list = run(&["token", "list", "--data", data]).done();
    assert_eq!(rows(&list)[0][1..5], ["for the test", "bob", "writer", "live"]);
    assert!(!list.contains(&key[4..]));
    // A server knows them now, and offline commands refer to it.
    let server = Server::start_in(Path::new(data), &[]);
    let mut client = server.client();
    client.get("/v1/head").unwrap().problem(401);
    assert_eq!(login(&mut client, "ann", PASSWORD).status, 200);
    ask(&mut client, key, "GET", "/v1/head", &Value::Null).expect(200);
    run(&["user", "list", "--data", data]).failed(69, "in use by a running server");
    add(&["eve", "--role", "admin"]).failed(69, "--url");
    drop(server);
    // An operator without a working credential.
    let other = file(dir.path(), "other", "battery staple");
    let other = other.to_str().unwrap();
    run(&["user", "passwd", "ann", "--data", data, "--password-file", other]).done();
    run(&["user", "passwd", "eve", "--data", data, "--password-file", other])
        .failed(64, "no account");
    let id = rows(&list)[0][0].to_owned();
    run(&["token", "rotate", &id, "--data", data]).failed(64, "running server");
    run(&["token", "revoke", &id, "--data", data]).done();
    let server = Server::start_in(Path::new(data), &[]);
    assert_eq!(login(&mut server.client(), "ann", "battery staple").status, 200);
    ask(&mut server.client(), key, "GET", "/v1/head", &Value::Null).problem(401);
}

#[test]
fn a_running_server_is_asked_with_credentials() {
    let closed = Closed::start();
    let dir = tempfile::tempdir().unwrap();
    let password = file(dir.path(), "password", PASSWORD);
    let password = password.to_str().unwrap();
    let root = file(dir.path(), "root", &closed.root);
    let url = closed.server.url();
    let root = ["--url", &url, "--token-file", root.to_str().unwrap()];
    let as_root = |words: &[&str]| run(&[words, &root[..]].concat());
    run(&["user", "list", "--url", &url]).failed(77, "WELLSPRING_TOKEN");
    as_root(&["user", "add", "ann", "--role", "writer:main", "--password-file", password]).done();
    as_root(&["user", "add", "ann", "--role", "reader", "--password-file", password])
        .failed(1, "already");
    as_root(&["user", "add", "ci", "--role", "reader", "--no-password"]).done();
    let short = file(dir.path(), "short", "short");
    as_root(&[
        "user",
        "add",
        "eve",
        "--role",
        "reader",
        "--password-file",
        short.to_str().unwrap(),
    ])
    .failed(65, "at least 8");
    let without = as_root(&["user", "add", "eve", "--password-file", password]);
    assert!(without.err.contains("reader, writer, operator and admin"), "{without:?}");
    without.failed(64, "wellspring user add eve --role writer");
    as_root(&["user", "roles", "ci", "--none"]).done();
    let list = as_root(&["user", "list"]).done();
    let list: Vec<Vec<&str>> = rows(&list).into_iter().map(|row| row[..4].to_vec()).collect();
    let expected = [
        ["ann", "writer:main", "enabled", "yes"],
        ["ci", "-", "enabled", "no"],
        ["root", "admin", "enabled", "yes"],
    ];
    assert_eq!(list, expected);
    let ann =
        closed.client().post("/auth/token", &json!({"username": "ann", "password": PASSWORD}));
    let ann = ann.unwrap().expect(200)["access_token"].as_str().unwrap().to_owned();
    let as_ann = |words: &[&str]| {
        let words = [words, &["--url", &url]].concat();
        ProgramOutput::of(program(&words).env("WELLSPRING_TOKEN", &ann).output().unwrap())
    };
    as_ann(&["user", "list"]).failed(77, "this needs the role admin");
    as_ann(&["token", "create", "--role", "admin"]).failed(77, "can create such a key");
    as_ann(&["token", "create", "--role", "writer", "--log", "-x"]).failed(64, "");
    let key = as_ann(&["token", "create", "--role", "writer", "--log", "main"]).done();
    let key = key.trim();
    let list = as_ann(&["token", "list"]).done();
    let id = rows(&list)[0][0].to_owned();
    let rotated = as_ann(&["token", "rotate", &id, "--overlap", "1h"]).done();
    assert!(closed.counts(key) && closed.counts(rotated.trim()));
    // The server's error for a member of the body names the flag that set it.
    let long = as_ann(&["token", "rotate", &id, "--overlap", "31d"]);
    assert!(!long.err.contains("overlap_s"), "{long:?}");
    long.failed(64, "--overlap (in seconds) must be from 0 to 2592000");
    let past = as_ann(&["token", "create", "--role", "writer", "--expires", "2001-01-01"]);
    past.failed(64, "--expires is in the past");
    as_ann(&["token", "revoke", &id]).done();
    assert!(!closed.counts(key));
    as_ann(&["token", "revoke", "0123"]).failed(64, "no API key");
    // An error does not repeat a secret that was given in place of an id.
    let wrong = as_ann(&["token", "revoke", rotated.trim()]);
    assert_eq!(wrong.code, Some(64));
    let current = ["--current-password-file", password];
    let new = file(dir.path(), "new", "battery staple");
    let set = ["user", "passwd", "ann", "--password-file", new.to_str().unwrap()];
    let wrong = file(dir.path(), "wrong", "wrong wrong");
    as_ann(&[&set[..], &["--current-password-file", wrong.to_str().unwrap()]].concat())
        .failed(77, "not the password");
    as_ann(&[&set[..], &current[..]].concat()).done();
    assert_eq!(login(&mut closed.client(), "ann", "battery staple").status, 200);
    as_ann(&["user", "list"]).failed(77, "the credentials are invalid");
}

#[test]
fn tools_show_credentials_and_keep_them_to_themselves() {
    let closed = Closed::start();
    let dir = tempfile::tempdir().unwrap();
    let (_, key) = closed.key(&closed.root, &json!({"role": "operator"}));
    let path = file(dir.path(), "key", &key);
    let (url, path) = (closed.server.url(), path.to_str().unwrap());
    let target = ["--url", url.as_str()];
    // The same error has the same exit code in every tool.
    let events = file(dir.path(), "a.ndjson", "{\"type\":\"T\",\"data\":1}\n");
    let events = events.to_str().unwrap();
    for words in [
        &["append", "--type", "T"][..],
        &["tail"],
        &["export"],
        &["import", events],
        &["top", "--once"],
        &["user", "list"],
        &["token", "list"],
    ] {
        run(&[words, &target[..]].concat()).failed(77, "WELLSPRING_TOKEN");
    }
    let root = file(dir.path(), "root", &closed.root);
    let root = root.to_str().unwrap();
    let nowhere = ["--log", "nowhere", "--token-file", root, "--url", url.as_str()];
    for words in [&["append", "--type", "T"][..], &["tail"], &["export"], &["import", events]] {
        run(&[words, &nowhere[..]].concat()).failed(64, "nowhere");
    }
    let with_file = |words: &[&str]| run(&[words, &target[..], &["--token-file", path]].concat());
    let with_variable = |words: &[&str]| {
        let words = [words, &target[..]].concat();
        ProgramOutput::of(program(&words).env("WELLSPRING_TOKEN", &key).output().unwrap())
    };
    assert_eq!(with_file(&["append", "--type", "T"]).done(), "1\n");
    assert_eq!(with_variable(&["append", "--type", "T"]).done(), "2\n");
    assert_eq!(with_variable(&["tail", "-n", "5"]).done().lines().count(), 2);
    assert_eq!(with_file(&["export"]).done().lines().count(), 2);
    let csv = file(dir.path(), "e.csv", "id\n7");
    with_variable(&["import", csv.to_str().unwrap(), "--type", "Row"]).done();
    let none = dir.path().join("none");
    run(&[&["tail"], &target[..], &["--token-file", none.to_str().unwrap()]].concat())
        .failed(66, "none");
    if cfg!(target_os = "linux") {
        run(&["top", "--once", "--url", &url]).failed(77, "401: set WELLSPRING_TOKEN");
        assert!(with_variable(&["top", "--once"]).done().contains("main"));
        let result = dir.path().join("result.json");
        let head = format!("{url}/v1/head");
        let flags = ["-n", "20", "-c", "1", "--no-headroom", "--json", result.to_str().unwrap()];
        let Some(mut bench) = load_tester::bench() else { return };
        let ran = bench.args(["--token-file", path]).args(flags).arg(&head).output().unwrap();
        let kept = std::fs::read(&result).unwrap();
        for text in [&ran.stdout, &ran.stderr, &kept].map(|text| String::from_utf8_lossy(text)) {
            assert!(!text.contains(&key[4..]));
        }
        let kept = String::from_utf8(kept).unwrap();
        assert!(kept.contains("\"200\"") && !kept.contains("\"401\""), "{kept}");
    }
}

#[test]
fn the_environment_makes_the_first_admin() {
    let dir = tempfile::tempdir().unwrap();
    let start = |variables: &[&str]| {
        let command = [&["env"], variables].concat();
        Server::start_under(&command, dir.path(), &[])
    };
    let secret = format!("WELLSPRING_ADMIN_PASSWORD={PASSWORD}");
    let server = start(&[&secret, "WELLSPRING_ADMIN_USER=chief"]);
    let mut client = server.client();
    client.get("/v1/head").unwrap().problem(401);
    assert_eq!(login(&mut client, "chief", PASSWORD).status, 200);
    drop(server);
    // Later starts ignore it.
    let server = start(&["WELLSPRING_ADMIN_PASSWORD=another password"]);
    let mut client = server.client();
    assert_eq!(login(&mut client, "chief", PASSWORD).status, 200);
    assert_eq!(login(&mut client, "admin", "another password").status, 401);
    drop(server);
    let fresh = tempfile::tempdir().unwrap();
    let data = fresh.path().to_str().unwrap();
    let refused = |variables: &[(&str, &str)]| {
        let words = ["serve", "--listen", "127.0.0.1:0", "--data", data];
        ProgramOutput::of(program(&words).envs(variables.iter().copied()).output().unwrap())
    };
    refused(&[("WELLSPRING_ADMIN_PASSWORD", "")]).failed(1, "at least 8");
    let weak = refused(&[("WELLSPRING_ADMIN_PASSWORD", "sesame")]);
    assert!(!weak.err.contains("sesame"), "{weak:?}");
    weak.failed(1, "WELLSPRING_ADMIN_PASSWORD");
    let name = ("WELLSPRING_ADMIN_USER", "The Chief");
    refused(&[("WELLSPRING_ADMIN_PASSWORD", PASSWORD), name]).failed(1, "WELLSPRING_ADMIN_USER");
    let shown = program(&["serve", "--print-config"]);
    let mut shown = shown;
    let shown =
        ProgramOutput::of(shown.env("WELLSPRING_ADMIN_PASSWORD", PASSWORD).output().unwrap())
            .done();
    assert!(!shown.contains(PASSWORD) && shown.contains("token_life_s = 3600"), "{shown}");
}

/// Types one answer at each prompt that ends in a colon, and records everything shown.
#[test]
fn passwords_are_asked_for_and_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let add = ["user", "add", "ann", "--role", "admin", "--data", data.to_str().unwrap()];
    let differ = typed("correct horse|another horse", &add);
    assert!(differ.code == Some(65) && differ.out.contains("do not match"), "{differ:?}");
    assert_eq!(typed("short", &add).code, Some(65));
    assert_eq!(typed("\u{3}", &add).code, Some(130), "given up");
    let done = typed("correct horsf\u{7f}e|correct horse", &add);
    assert!(!done.out.contains("horse"), "{done:?}");
    done.done();
    // Without a terminal there is no prompt.
    let server = Server::start_in(&data, &[]);
    let url = server.url();
    let list = ["user", "list", "--url", &url, "--user", "ann"];
    let asked = typed(PASSWORD, &list);
    assert!(!asked.out.contains("horse") && asked.out.contains("ann      admin"), "{asked:?}");
    asked.done();
    let own = ["user", "passwd", "ann", "--url", &url, "--user", "ann"];
    typed("correct horse|battery staple|battery staple", &own).done();
    assert_eq!(login(&mut server.client(), "ann", "battery staple").status, 200);
}
