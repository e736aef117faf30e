//! Passwords from the terminal, without showing them, or from a file.

use crate::exit::{Code, Failure};
use crate::folder_owner::as_caller;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use wellspring_host::access::password;
use zeroize::Zeroizing;

/// A new password: from a file (`-` is standard input; a line end behind it is not part of it), or
/// asked for twice.
///
/// # Errors
/// No terminal, no file, two passwords that differ, or one that breaks a rule.
pub(crate) fn new_password(file: Option<&Path>, of: &str) -> Result<Zeroizing<String>, Failure> {
    let password = match file {
        Some(path) => of_file("--password-file", path)?,
        None => {
            let password = ask(&format!("New password for {of}: "), "--password-file")?;
            check(&password)?;
            if ask("Repeat new password: ", "--password-file")? != password {
                return Err(Failure::data("passwords do not match; nothing was changed"));
            }
            password
        }
    };
    check(&password)?;
    Ok(password)
}

fn check(password: &str) -> Result<(), Failure> {
    password::check(password).map_err(|fault| Failure::data(fault.to_string()))
}

/// The password in a file named by an option.
///
/// # Errors
/// It cannot be read, or is too long to be one.
pub(crate) fn of_file(option: &str, path: &Path) -> Result<Zeroizing<String>, Failure> {
    let failed = |error: io::Error| {
        let code = match error.kind() {
            io::ErrorKind::InvalidData => Code::Data,
            _ => Code::NoInput,
        };
        Failure::new(code, format!("{option} {}: {error}", path.display()))
    };
    let source: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(io::stdin()),
        _ => Box::new(as_caller(|| File::open(path)).map_err(failed)?),
    };
    // Allocated at once, so that growth leaves no copy behind.
    let most = password::MAX_BYTES + 3;
    let mut text = Zeroizing::new(String::with_capacity(most));
    source.take(most as u64).read_to_string(&mut text).map_err(failed)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    Ok(Zeroizing::new(line.to_owned()))
}

/// Asks on the terminal without echo, even if standard input is not a terminal. `option` names a
/// file instead.
///
/// # Errors
/// There is no terminal; the user gave up.
pub(crate) fn ask(prompt: &str, option: &str) -> Result<Zeroizing<String>, Failure> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let terminal = terminal.map_err(|_| {
        let asked = prompt.trim_end_matches([' ', ':']);
        Failure::usage(format!(
            "cannot ask for the password without a terminal ({asked}); name a file that holds it: {option} \
             FILE, or {option} - for standard input"
        ))
    })?;
    let failed =
        |error: io::Error| Failure::new(Code::Io, format!("asking for a password: {error}"));
    (&terminal).write_all(prompt.as_bytes()).map_err(failed)?;
    let silent = Silent::new(&terminal).map_err(|error| failed(error.into()))?;
    #[allow(clippy::unbuffered_bytes)] // a person types, and what comes after the line is not ours
    let typed = read_typed((&terminal).bytes());
    drop(silent);
    (&terminal).write_all(b"\n").map_err(failed)?;
    match typed.map_err(failed)? {
        Some(password) => Ok(password),
        None => Err(Failure::new(Code::Interrupted, "")),
    }
}

/// A terminal without echo and without signals, so that it is never left in that state: Ctrl-C is a
/// byte like any other.
struct Silent<'a> {
    terminal: &'a File,
    before: Termios,
}

impl Silent<'_> {
    fn new(terminal: &File) -> rustix::io::Result<Silent<'_>> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        let shown = LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG;
        silent.local_modes.remove(shown);
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        Ok(Silent { terminal, before })
    }
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// A line as typed, with the keys that correct it; `None` if the user gave up.
fn read_typed(
    bytes: impl Iterator<Item = io::Result<u8>>,
) -> io::Result<Option<Zeroizing<String>>> {
    let mut line = Zeroizing::new(Vec::with_capacity(4 * password::MAX_BYTES));
    for byte in bytes {
        match byte? {
            b'\r' | b'\n' => {
                let text = std::str::from_utf8(&line);
                let text = text.map_err(|_| io::Error::other("the input is not UTF-8"))?;
                return Ok(Some(Zeroizing::new(text.to_owned())));
            }
            // Ctrl-C, Ctrl-D, Ctrl-\
            0x03 | 0x04 | 0x1c => return Ok(None),
            // Backspace takes a whole character.
            0x08 | 0x7f => while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            // Ctrl-U
            0x15 => line.clear(),
            byte if line.len() < line.capacity() => line.push(byte),
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[u8]) -> Option<String> {
        let typed = read_typed(keys.iter().map(|&byte| Ok(byte))).unwrap();
        typed.map(|text| text.to_string())
    }

    #[test]
    fn what_is_typed_can_be_corrected() {
        assert_eq!(typed(b"secret\r").as_deref(), Some("secret"));
        assert_eq!(typed("geh\u{e9}\u{20ac}\x7f\x7feim\n".as_bytes()).as_deref(), Some("geheim"));
        assert_eq!(typed(b"\x7f\x7fa\n").as_deref(), Some("a"));
        assert_eq!(typed(b"wrong\x15right\n").as_deref(), Some("right"));
        assert_eq!(typed(b"half"), None);
        assert_eq!(typed(b"ab\x03c\n"), None);
        assert!(read_typed([Ok(0xff), Ok(b'\n')].into_iter()).is_err());
    }

    #[test]
    fn a_file_holds_a_password_and_perhaps_a_line_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p");
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            new_password(Some(&path), "ann").map(|text| text.to_string())
        };
        for bytes in ["correct horse", "correct horse\n", "correct horse\r\n"] {
            assert_eq!(read(bytes.as_bytes()).unwrap(), "correct horse");
        }
        assert_eq!(read(b" with spaces \n").unwrap(), " with spaces ");
        for (bytes, code) in [
            (&b"short\n"[..], Code::Data),
            (b"two lines\nof it\n", Code::Data),
            (b"not utf-8 \xff\n", Code::Data),
            (&[b'x'; 2000], Code::Data),
        ] {
            assert_eq!(read(bytes).unwrap_err().code, code);
        }
        assert_eq!(new_password(Some(Path::new("/no")), "x").unwrap_err().code, Code::NoInput);
    }
}
