//! `wellspring bench` becomes the load tester, a program of its own.

use std::path::Path;
use std::process::Command;

/// The program in a folder where no load tester is beside it.
fn alone_in(folder: &Path) -> Command {
    // Copied by a child: what another thread's child still holds open cannot be executed.
    let words = [Path::new(env!("CARGO_BIN_EXE_wellspring")), folder];
    assert!(Command::new("cp").args(words).status().unwrap().success());
    Command::new(folder.join("wellspring"))
}

#[test]
fn without_the_load_tester_one_sentence_says_how_to_get_it() {
    let dir = tempfile::tempdir().unwrap();
    let output = alone_in(dir.path()).args(["bench", "--help"]).env("PATH", "").output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    for part in ["wellspring-bench", "PATH", "cargo install --path loadtest/program"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn arguments_environment_and_exit_code_pass_through() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tester = dir.path().join("wellspring-bench");
    // Written by a child, as above.
    let script = "#!/bin/sh\nprintf '%s|' \"$MARK\" \"$@\"\nexit 99\n";
    let write = ["-c", "printf %s \"$1\" > \"$2\" && chmod 755 \"$2\"", "sh", script];
    assert!(Command::new("sh").args(write).arg(&tester).status().unwrap().success());
    let words = ["bench", "-n", "1", "--help", "", "a b", "--", "-q"];
    let output = alone_in(other.path())
        .args(words)
        .env("PATH", format!("{}:/usr/bin:/bin", dir.path().display()))
        .env("MARK", "kept")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!((said.as_str(), output.status.code()), ("kept|-n|1|--help||a b|--|-q|", Some(99)));
}
