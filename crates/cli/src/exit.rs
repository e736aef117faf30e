//! Failures of tools: one sentence and an exit code. The codes are the same
//! for all tools; their table in the help and in the manual is generated here.

use std::io;
use std::process::ExitCode;
use wellspring_client::ClientError;

/// Exit codes, after BSD's `sysexits.h` where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// The answer is no: an append condition failed, a name is taken, a log is damaged.
    Refused = 1,
    /// The command makes no sense as given, or names something that does not exist.
    Usage = 64,
    /// The input data is wrong.
    Data = 65,
    /// An input file or folder cannot be opened.
    NoInput = 66,
    /// The server cannot be reached, fails, or takes no requests now.
    Unavailable = 69,
    /// Reading or writing failed on the way.
    Io = 74,
    /// Credentials are missing or invalid, or they do not grant the access needed.
    Denied = 77,
    /// Ctrl-C.
    Interrupted = 130,
    /// The reader of the output has ended (`| head`). No message.
    Pipe = 141,
}

/// The origin of a request's input, which decides the exit code of a violated rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputKind {
    /// Flags and arguments: the command is wrong.
    Arguments,
    /// A file, standard input or a payload: the data is wrong.
    Data,
}

/// Every exit code with its meaning, for the help and the manual.
pub(crate) const EXIT_CODES: [(u8, &str); 12] = [
    (0, "success"),
    (
        Code::Refused as u8,
        "the answer is no: a condition failed, a name or event id is taken, a log is damaged (HTTP \
         409); serve: cannot start",
    ),
    (
        Code::Usage as u8,
        "usage: an unknown flag, a wrong value (also if the server refuses it), or a log, account or \
         key that does not exist (HTTP 404)",
    ),
    (Code::Data as u8, "the input data is invalid (HTTP 400, 413, 422)"),
    (Code::NoInput as u8, "an input file or folder cannot be opened"),
    (
        Code::Unavailable as u8,
        "the server cannot be reached, is busy or full, or fails (HTTP 408, 429, 5xx); try again later",
    ),
    (Code::Io as u8, "reading or writing a file failed"),
    // These two are those of the program that `bench` becomes.
    (75, "bench compare: too much noise for a conclusion; measure again"),
    (
        Code::Denied as u8,
        "credentials are missing or invalid (HTTP 401) or do not grant this access (HTTP 403)",
    ),
    (99, "bench: a threshold failed"),
    (Code::Interrupted as u8, "interrupted by Ctrl-C"),
    (Code::Pipe as u8, "the reader of standard output has gone (| head)"),
];

impl Code {
    /// The exit code for an answer with this status, which is not a success. No other code maps
    /// statuses.
    pub(crate) fn of_status(status: u16, input: InputKind) -> Code {
        match (status, input) {
            (401 | 403, _) => Code::Denied,
            (404, _) => Code::Usage,
            (409, _) => Code::Refused,
            (408 | 429, _) => Code::Unavailable,
            (400..=499, InputKind::Arguments) => Code::Usage,
            (400..=499, InputKind::Data) => Code::Data,
            _ => Code::Unavailable,
        }
    }
}

/// Why a tool stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit code of the process.
    pub(crate) code: Code,
    /// For the person at the terminal: what is wrong and what to do.
    pub(crate) message: String,
}

impl Failure {
    /// A failure with a code.
    pub(crate) fn new(code: Code, message: impl ToString) -> Failure {
        Failure { code, message: message.to_string() }
    }

    /// The command makes no sense as given.
    pub(crate) fn usage(message: impl ToString) -> Failure {
        Failure::new(Code::Usage, message)
    }

    /// The input data is wrong.
    pub(crate) fn data(message: impl ToString) -> Failure {
        Failure::new(Code::Data, message)
    }

    /// Writing our output failed.
    pub fn output(name: &str, error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::new(Code::Pipe, "");
        }
        Failure::new(Code::Io, format!("writing {name}: {error}"))
    }

    /// Says the message on standard error and gives the code.
    pub fn report(&self) -> ExitCode {
        if !self.message.is_empty() {
            eprintln!("wellspring: {}", self.message);
        }
        ExitCode::from(self.code as u8)
    }
}

/// Writes a line to standard output. A closed pipe or a full disk is a failure, not a
/// panic.
pub fn say(line: &str) -> Result<(), Failure> {
    use io::Write as _;
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|error| Failure::output("the answer", &error))
}

/// Writes lines to standard output.
pub(crate) fn say_lines(lines: &[String]) -> Result<(), Failure> {
    if lines.is_empty() { Ok(()) } else { say(&lines.join("\n")) }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        Failure::new(Code::Unavailable, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_what_scripts_rely_on() {
        let codes = [
            (Code::Refused, 1),
            (Code::Usage, 64),
            (Code::Data, 65),
            (Code::NoInput, 66),
            (Code::Unavailable, 69),
            (Code::Io, 74),
            (Code::Denied, 77),
            (Code::Interrupted, 130),
            (Code::Pipe, 141),
        ];
        for (code, number) in codes {
            assert_eq!(code as u8, number);
            assert!(EXIT_CODES.iter().any(|(listed, _)| *listed == number), "{number}");
        }
        assert_eq!(EXIT_CODES.len(), codes.len() + 3, "and 0, and those of bench");
        assert!(EXIT_CODES.is_sorted_by_key(|(code, _)| *code));
    }

    #[test]
    fn a_status_has_one_exit_code() {
        for (status, code) in [
            (401, Code::Denied),
            (403, Code::Denied),
            (404, Code::Usage),
            (409, Code::Refused),
            (422, Code::Data),
            (429, Code::Unavailable),
            (500, Code::Unavailable),
            (503, Code::Unavailable),
        ] {
            assert_eq!(Code::of_status(status, InputKind::Data), code, "{status}");
        }
        assert_eq!(Code::of_status(422, InputKind::Arguments), Code::Usage);
    }

    /// The table in the manual is that of the help.
    #[test]
    fn the_manual_has_the_table_of_exit_codes() {
        let manual = include_str!("../../../docs/operations.md");
        let (_, table) = manual.split_once("## Exit codes of the tools").expect("its heading");
        let rows = table.split("\n## ").next().unwrap_or_default();
        let rows =
            rows.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| code"));
        let told = EXIT_CODES.map(|(code, meaning)| {
            format!("| {code} | {} |", meaning.replace("| head", "`\\| head`"))
        });
        assert_eq!(rows.collect::<Vec<_>>(), told);
    }

    #[test]
    fn a_reader_that_left_is_no_error_worth_words() {
        let gone = Failure::output("standard output", &io::ErrorKind::BrokenPipe.into());
        assert_eq!((gone.code, gone.message.as_str()), (Code::Pipe, ""));
        let full = Failure::output("x.ndjson", &io::ErrorKind::StorageFull.into());
        assert_eq!(full.code, Code::Io);
        assert!(full.message.contains("x.ndjson"));
    }
}
