//! One table of exit codes: every tool against a server that answers in each of the ways that the
//! table names.

use crate::program::{ProgramOutput, file, program};
use crate::server::NOBODY;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use tempfile::TempDir;

/// A server that answers every request with the same status; its URL. It serves until the tests
/// have ended.
fn answering(status: u16) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = answer(stream.unwrap(), status);
        }
    });
    url
}

fn answer(mut stream: TcpStream, status: u16) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length])?;
    let body = format!("{{\"type\":\"/problems/x\",\"title\":\"x\",\"status\":{status}}}");
    let head = "Content-Type: application/problem+json\r\nConnection: close\r\nContent-Length:";
    write!(stream, "HTTP/1.1 {status} X\r\n{head} {}\r\n\r\n{body}", body.len())
}

/// The command lines of all tools that ask a server, each but for the server.
fn tools(dir: &TempDir) -> Vec<Vec<String>> {
    let path = |name: &str, text: &str| file(dir.path(), name, text).to_str().unwrap().to_owned();
    let (events, password) =
        (path("a.ndjson", "{\"type\":\"T\",\"data\":1}"), path("p", "password"));
    let definition = path("sink.json", "{}");
    let lines = [
        "append --type T".to_owned(),
        "export".to_owned(),
        "tail".to_owned(),
        "tail -f".to_owned(),
        format!("import {events}"),
        format!("login ann --password-file {password}"),
        "log list".to_owned(),
        "log create orders".to_owned(),
        "log delete orders --yes".to_owned(),
        "user list".to_owned(),
        "user disable ann".to_owned(),
        "token list".to_owned(),
        "token create --role reader".to_owned(),
        "cluster status".to_owned(),
        "cluster transfer --to b".to_owned(),
        "cluster transfer --log orders --to b".to_owned(),
        "sink list".to_owned(),
        format!("sink put a {definition}"),
        "source status a".to_owned(),
        "top --once".to_owned(),
    ];
    lines.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

fn run(dir: &TempDir, tool: &[String], url: &str) -> ProgramOutput {
    let words: Vec<&str> = tool.iter().map(String::as_str).chain(["--url", url]).collect();
    ProgramOutput::of(program(&words).env("XDG_STATE_HOME", dir.path()).output().unwrap())
}

#[test]
fn every_tool_ends_alike_whatever_the_server_answers() {
    let dir = tempfile::tempdir().unwrap();
    let tools = tools(&dir);
    for (status, code) in
        [(401, 77), (403, 77), (404, 64), (409, 1), (429, 69), (500, 69), (503, 69)]
    {
        let url = answering(status);
        for tool in &tools {
            let ran = run(&dir, tool, &url);
            assert_eq!(ran.code, Some(code), "{status}, {tool:?}: {ran:?}");
            assert!(ran.err.starts_with("wellspring: "), "{status}, {tool:?}: {ran:?}");
        }
    }
}

#[test]
fn what_breaks_a_rule_is_the_command_or_the_data() {
    let dir = tempfile::tempdir().unwrap();
    let url = answering(422);
    for tool in tools(&dir) {
        let of_data = ["append", "login", "user", "token"].contains(&tool[0].as_str())
            || tool[1..].iter().any(|word| word == "put");
        let code = if of_data { 65 } else { 64 };
        let ran = run(&dir, &tool, &url);
        assert_eq!(ran.code, Some(code), "{tool:?}: {ran:?}");
    }
}

#[test]
fn every_tool_tells_a_server_that_is_not_there_and_a_flag_that_is_not_known() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("http://{NOBODY}");
    for tool in tools(&dir) {
        run(&dir, &tool, &url).failed(69, "cannot reach");
        let unknown = [&tool[..], &["--no-such-flag".to_owned()]].concat();
        run(&dir, &unknown, &url).failed(64, "unexpected argument");
        let help = [&tool[..], &["--help".to_owned()]].concat();
        let help = run(&dir, &help, &url).done();
        assert!(help.contains("\nExit codes:\n    0  success\n"), "{tool:?}: {help}");
    }
    ProgramOutput::of(program(&[]).output().unwrap()).failed(64, "Usage: wellspring");
}

#[test]
fn scripts_and_pages_are_made_of_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let script = ProgramOutput::of(program(&["completions", "bash"]).output().unwrap()).done();
    assert!(script.contains("complete -F _wellspring") && script.contains("--skip-invalid"));
    let path = file(dir.path(), "completion.bash", &script);
    let check = std::process::Command::new("bash").arg("-n").arg(&path).status().unwrap();
    assert!(check.success(), "bash reads it");
    ProgramOutput::of(program(&["completions", "tcsh"]).output().unwrap())
        .failed(64, "possible values");
    let pages = dir.path().to_str().unwrap();
    assert_eq!(ProgramOutput::of(program(&["man", pages]).output().unwrap()).done(), "");
    for name in ["wellspring.1", "wellspring-import.1", "wellspring-user-add.1"] {
        assert!(dir.path().join(name).is_file(), "{name}");
    }
    ProgramOutput::of(program(&["man", "/does/not/exist"]).output().unwrap())
        .failed(74, "/does/not/exist");
}
