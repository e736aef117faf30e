//! How a command fails: one sentence and an exit code. The codes are those of `wellspring`.

use crate::called;
use std::io;
use std::process::ExitCode;

/// Exit codes, after BSD's `sysexits.h` where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// No request succeeded, or what was asked for is not so.
    Refused = 1,
    /// The command makes no sense as given.
    Usage = 64,
    /// The input data is wrong.
    Data = 65,
    /// An input file or folder cannot be opened.
    NoInput = 66,
    /// The server cannot be reached.
    Unavailable = 69,
    /// Reading or writing failed on the way.
    Io = 74,
    /// Nothing could be measured this time; another time it may be.
    Unsettled = 75,
    /// A threshold failed, as k6 has it.
    Threshold = 99,
    /// Ctrl-C.
    Interrupted = 130,
    /// The reader of the output has gone (`| head`). Not worth a message.
    Pipe = 141,
}

/// Every exit code with its meaning, for the help and the manual.
pub(crate) const EXIT_CODES: [(u8, &str); 11] = [
    (0, "success"),
    (
        Code::Refused as u8,
        "no request succeeded; --strict: not TRUSTED; --fail-if-slower: slower; self-test: a case failed",
    ),
    (Code::Usage as u8, "usage: an unknown flag, or a wrong value"),
    (Code::Data as u8, "the input data is invalid"),
    (Code::NoInput as u8, "an input file or folder cannot be opened"),
    (Code::Unavailable as u8, "the server cannot be reached"),
    (Code::Io as u8, "reading or writing a file failed"),
    (Code::Unsettled as u8, "compare: too much noise for a conclusion; measure again"),
    (Code::Threshold as u8, "a threshold failed"),
    (Code::Interrupted as u8, "interrupted by Ctrl-C"),
    (Code::Pipe as u8, "the reader of standard output has gone (| head)"),
];

/// Why a command stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What the process exits with.
    pub(crate) code: Code,
    /// For the person at the terminal: what is wrong and what to do.
    pub(crate) message: String,
}

impl Failure {
    /// A failure with a code.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    /// The command makes no sense as given.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Code::Usage, message)
    }

    /// The input data is wrong.
    pub(crate) fn data(message: impl Into<String>) -> Failure {
        Failure::new(Code::Data, message)
    }

    /// Writing our output failed.
    pub(crate) fn output(name: &str, error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::new(Code::Pipe, "");
        }
        Failure::new(Code::Io, format!("writing {name}: {error}"))
    }

    /// Says the message on standard error and gives the code.
    pub(crate) fn report(&self) -> ExitCode {
        if !self.message.is_empty() {
            called::complain(&self.message);
        }
        ExitCode::from(self.code as u8)
    }
}

/// Writes a line to standard output. A reader that has gone, or a full disk, is a failure, not a
/// panic.
pub(crate) fn say(line: &str) -> Result<(), Failure> {
    use io::Write as _;
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|error| Failure::output("the answer", &error))
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
            (Code::Unsettled, 75),
            (Code::Threshold, 99),
            (Code::Interrupted, 130),
            (Code::Pipe, 141),
        ];
        for (code, number) in codes {
            assert_eq!(code as u8, number);
            assert!(EXIT_CODES.iter().any(|(listed, _)| *listed == number), "{number}");
        }
        assert_eq!(EXIT_CODES.len(), codes.len() + 1, "and 0");
        assert!(EXIT_CODES.is_sorted_by_key(|(code, _)| *code));
    }

    #[test]
    fn a_reader_that_left_is_no_error_worth_words() {
        let gone = Failure::output("standard output", &io::ErrorKind::BrokenPipe.into());
        assert_eq!((gone.code, gone.message.as_str()), (Code::Pipe, ""));
        let full = Failure::output("x.json", &io::ErrorKind::StorageFull.into());
        assert_eq!(full.code, Code::Io);
        assert!(full.message.contains("x.json"));
    }
}
