//! The program as a tool: what it prints, and with which code it ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The path of the program `wellspring` that cargo has built with the tests: it is in the folder
/// above that of their own programs.
pub fn program_path() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let tests = std::env::current_exe().expect("the path of the tests");
        let built = tests.parent().and_then(Path::parent).expect("target/debug/deps");
        built.join("wellspring").to_str().expect("a path in UTF-8").to_owned()
    })
}

/// The program with these arguments, and without its environment variables.
pub fn program(words: &[&str]) -> Command {
    let mut command = Command::new(program_path());
    for variable in
        ["WELLSPRING_URL", "WELLSPRING_TOKEN", "WELLSPRING_DATA", "HOME", "XDG_STATE_HOME"]
    {
        command.env_remove(variable);
    }
    command.args(words).stdin(Stdio::null());
    command
}

pub fn run(words: &[&str]) -> ProgramOutput {
    ProgramOutput::of(program(words).output().unwrap())
}

#[derive(Debug)]
pub struct ProgramOutput {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl ProgramOutput {
    pub fn of(output: Output) -> ProgramOutput {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        ProgramOutput {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    #[track_caller]
    pub fn done(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    #[track_caller]
    pub fn failed(self, code: i32, word: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.err.contains(word), "{self:?}");
    }
}

impl ProgramOutput {
    /// As [`failed`](ProgramOutput::failed), for [`typed`] input: all output is in one stream.
    #[track_caller]
    pub fn failed_on_terminal(self, code: i32, word: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.out.contains(word), "{self:?}");
    }
}

/// A file with a secret.
pub fn file(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, format!("{text}\n")).unwrap();
    path
}

const TYPIST: &str = r#"
import os, pty, select, sys, time
answers = sys.argv[1].split("|")
pid, tty = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
shown, asked, deadline = b"", 0, time.monotonic() + 60
while time.monotonic() < deadline:
    if not select.select([tty], [], [], 0.2)[0]:
        continue
    try:
        piece = os.read(tty, 4096)
    except OSError:
        break
    if not piece:
        break
    shown += piece
    while shown.count(b": ") > asked and asked < len(answers):
        time.sleep(0.3)
        os.write(tty, answers[asked].encode() + (b"" if answers[asked] == "\x03" else b"\r"))
        asked += 1
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(status))
"#;

pub fn typed(answers: &str, words: &[&str]) -> ProgramOutput {
    let mut command = Command::new("python3");
    command.args(["-c", TYPIST, answers, program_path()]).args(words);
    command.env_remove("WELLSPRING_TOKEN").env_remove("WELLSPRING_URL");
    ProgramOutput::of(command.output().unwrap())
}

/// Runs a tool; returns its exit code and everything that it said.
pub fn told(words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(program_path()).args(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout) + &text(output.stderr))
}
