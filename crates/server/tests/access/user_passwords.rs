//! The sources from which the tools take passwords, and their errors when one is missing or wrong.

use crate::closed::{Closed, PASSWORD, login};
use crate::program::{ProgramOutput, file, program, run};
use crate::server::Server;
use std::process::{Command, Stdio};

/// A tool without a terminal.
fn without_terminal(words: &[&str]) -> ProgramOutput {
    let mut command = Command::new("setsid");
    command.args(["--wait", env!("CARGO_BIN_EXE_wellspring")]).args(words).stdin(Stdio::null());
    for variable in ["WELLSPRING_URL", "WELLSPRING_TOKEN", "HOME", "XDG_STATE_HOME"] {
        command.env_remove(variable);
    }
    ProgramOutput::of(command.output().unwrap())
}

#[test]
fn the_password_there_is_comes_from_the_file_that_is_named() {
    let closed = Closed::start();
    let dir = tempfile::tempdir().unwrap();
    let text = |name: &str, text: &str| file(dir.path(), name, text).to_str().unwrap().to_owned();
    let (right, wrong) = (text("right", PASSWORD), text("wrong", "wrong wrong"));
    let new = text("new", "battery staple");
    let url = closed.server.url();
    let passwd = |name: &str, more: &[&str]| {
        let words = ["user", "passwd", name, "--url", &url, "--password-file", &new];
        run(&[&words[..], more].concat())
    };
    closed.add("ann", &["reader"]);
    let as_root = ["--user", "root", "--user-password-file", &right];
    let refused = passwd("root", &[&as_root[..], &["--current-password-file", &wrong]].concat());
    assert!(!refused.err.contains("account with access"), "{refused:?}");
    refused.failed(77, "--current-password-file");
    passwd("ann", &[&as_root[..], &["--current-password-file", &right]].concat())
        .failed(64, "your own password");
    assert_eq!(login(&mut closed.client(), "root", PASSWORD).status, 200);
    // Without --user-password-file the one file provides both, and there is no prompt.
    passwd("root", &["--user", "root", "--current-password-file", &right]).done();
    assert_eq!(login(&mut closed.client(), "root", "battery staple").status, 200);
}

#[test]
fn without_a_terminal_the_option_is_named_that_stands_for_it() {
    let closed = Closed::start();
    let dir = tempfile::tempdir().unwrap();
    let token = file(dir.path(), "token", &closed.root);
    let (url, token) = (closed.server.url(), token.to_str().unwrap().to_owned());
    let state = dir.path().to_str().unwrap().to_owned();
    for (words, option) in [
        (
            &["user", "add", "ann", "--role", "reader", "--token-file", &token][..],
            "--password-file",
        ),
        (&["user", "passwd", "ann", "--token-file", &token], "--password-file"),
        (&["user", "passwd", "root", "--token-file", &token], "--current-password-file"),
        (&["user", "list", "--user", "root"], "--user-password-file"),
        (&["tail", "--user", "root"], "--user-password-file"),
    ] {
        let refused = without_terminal(&[words, &["--url", &url]].concat());
        let named = ["--password-file", "--current-password-file", "--user-password-file"]
            .map(|option| refused.err.contains(&format!(" {option} ")));
        assert_eq!(named.iter().filter(|&&is_named| is_named).count(), 1, "{refused:?}");
        refused.failed(64, &format!("{option} FILE"));
    }
    let mut command = Command::new("setsid");
    command.args(["--wait", env!("CARGO_BIN_EXE_wellspring"), "login", "root", "--url", &url]);
    command.env("XDG_STATE_HOME", state).stdin(Stdio::null());
    ProgramOutput::of(command.output().unwrap()).failed(64, "--password-file FILE");
}

#[test]
fn a_folder_and_a_server_are_not_meant_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let password = file(dir.path(), "password", PASSWORD);
    let data = dir.path().join("data");
    let data = data.to_str().unwrap();
    let add =
        ["user", "add", "ann", "--role", "admin", "--password-file", password.to_str().unwrap()];
    let url = ["--url", "http://127.0.0.1:1"];
    run(&[&add[..], &["--data", data], &url].concat()).failed(64, "give one of them");
    run(&[&["user", "--data", data], &url[..], &["list"]].concat()).failed(64, "give one of them");
    run(&[&["token", "list", "--data", data], &url[..]].concat()).failed(64, "give one of them");
    // A variable that is always set causes no conflict, and names the server.
    let with_variable = |words: &[&str]| {
        ProgramOutput::of(
            program(words).env("WELLSPRING_URL", "http://127.0.0.1:1").output().unwrap(),
        )
    };
    with_variable(&[&add[..], &["--data", data]].concat()).done();
    with_variable(&["user", "list"]).failed(69, "127.0.0.1:1");
}

#[test]
fn what_would_be_overlooked_is_said() {
    let open = Server::start();
    let nobody = run(&["user", "list", "--url", &open.url()]);
    assert!(nobody.err.contains("There are no accounts"), "{nobody:?}");
    assert_eq!(nobody.done().lines().count(), 1);
    let closed = Closed::start();
    let dir = tempfile::tempdir().unwrap();
    let password = file(dir.path(), "password", PASSWORD);
    let (url, password) = (closed.server.url(), password.to_str().unwrap());
    let log_in = |token: Option<&str>| {
        let mut command = program(&["login", "root", "--url", &url, "--password-file", password]);
        command.env("XDG_STATE_HOME", dir.path());
        if let Some(token) = token {
            command.env("WELLSPRING_TOKEN", token);
        }
        ProgramOutput::of(command.output().unwrap())
    };
    assert!(!log_in(None).err.contains("WELLSPRING_TOKEN"));
    // An empty one too: no login is looked up then.
    for token in ["wsk_x", ""] {
        let told = log_in(Some(token));
        assert!(told.err.contains("WELLSPRING_TOKEN is set"), "{told:?}");
        told.done();
    }
}
