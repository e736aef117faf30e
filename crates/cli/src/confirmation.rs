//! What cannot be taken back is confirmed on the terminal, by typing its name.

use crate::exit::{Code, Failure};
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};

/// Longest line that is read, in bytes.
const MAX_LINE_BYTES: u64 = 4_096;

/// Says what will happen, and goes on only if `name` is typed on the terminal, whatever standard
/// input is.
///
/// # Errors
/// Usage, if there is no terminal: `--yes` stands for the answer. [`Code::Refused`], if something
/// else is typed. Nothing has happened then.
pub(crate) fn ask_for(what: &str, name: &str) -> Result<(), Failure> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let terminal = terminal.map_err(|_| {
        Failure::usage(format!("{what} There is no terminal to confirm it on; add --yes"))
    })?;
    let failed =
        |error: io::Error| Failure::new(Code::Io, format!("asking on the terminal: {error}"));
    write!(&terminal, "{what} Type {name:?} to go on: ").map_err(failed)?;
    let mut typed = String::new();
    let mut line = BufReader::new(io::Read::take(&terminal, MAX_LINE_BYTES));
    line.read_line(&mut typed).map_err(failed)?;
    if typed.trim() == name {
        return Ok(());
    }
    Err(Failure::new(Code::Refused, "that is not its name; nothing was changed"))
}
