//! How a tool ends when it does not succeed: one sentence and an exit code.

use std::io;
use std::process::ExitCode;
use wellspring_host::client::ClientError;

/// Exit codes, after BSD's `sysexits.h` where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// The answer is no: an append condition failed, a name is taken, a log is damaged.
    Refused = 1,
    /// The command makes no sense as given, or names a log that is not there.
    Usage = 64,
    /// The input data is wrong.
    Data = 65,
    /// An input file cannot be opened.
    NoInput = 66,
    /// The server cannot be reached, or does not take requests.
    Unavailable = 69,
    /// Reading or writing failed on the way.
    Io = 74,
    /// It could not be measured this time; another time it may be.
    Unsettled = 75,
    /// Credentials are missing, do not count, or are for less than what is asked.
    Denied = 77,
    /// Ctrl-C.
    Interrupted = 130,
    /// Whoever read our output has gone (`| head`). Not worth a message.
    Pipe = 141,
}

/// Why a tool stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
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
    pub fn report(&self) -> ExitCode {
        if !self.message.is_empty() {
            eprintln!("wellspring: {}", self.message);
        }
        ExitCode::from(self.code as u8)
    }
}

/// Writes a line to standard output. A reader that has gone, or a full disk, is a failure, not a
/// panic.
pub fn say(line: &str) -> Result<(), Failure> {
    use io::Write as _;
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|error| Failure::output("the answer", &error))
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
    fn codes_are_what_scripts_rely_on() {
        let codes = [
            (Code::Refused, 1),
            (Code::Usage, 64),
            (Code::Data, 65),
            (Code::Unavailable, 69),
            (Code::Unsettled, 75),
            (Code::Denied, 77),
            (Code::Interrupted, 130),
        ];
        for (code, number) in codes {
            assert_eq!(code as u8, number);
        }
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
