//! Confirmation on the terminal, by typing a name, of what cannot be undone.

use crate::exit::{Code, Failure};
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};

/// Longest line that is read, in bytes.
const MAX_LINE_BYTES: u64 = 4_096;

/// As [`ask_for`], unless `--yes` was given.
///
/// # Errors
/// As [`ask_for`].
pub(crate) fn ask_unless(yes: bool, what: &str, name: &str) -> Result<(), Failure> {
    if yes { Ok(()) } else { ask_for(what, name) }
}

/// Explains the effect, and succeeds only if `name` is typed on the terminal, independent of
/// standard input is.
///
/// # Errors
/// Usage, if there is no terminal: `--yes` replaces the answer. [`Code::Refused`], if something
/// else is typed.
pub(crate) fn ask_for(what: &str, name: &str) -> Result<(), Failure> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let terminal = terminal.map_err(|_| {
        Failure::usage(format!("{what} Without a terminal it cannot be confirmed; add --yes"))
    })?;
    let failed =
        |error: io::Error| Failure::new(Code::Io, format!("asking on the terminal: {error}"));
    write!(&terminal, "{what} Type {name:?} to continue: ").map_err(failed)?;
    let mut typed = String::new();
    let mut line = BufReader::new(io::Read::take(&terminal, MAX_LINE_BYTES));
    line.read_line(&mut typed).map_err(failed)?;
    if typed.trim() == name {
        return Ok(());
    }
    Err(Failure::new(Code::Refused, "not confirmed; nothing was changed"))
}
