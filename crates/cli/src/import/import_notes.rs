//! Notes about earlier imports from this machine. The same content under other options gives other
//! events, which the server cannot recognize, so the tool does.
//!
//! A note has a digest of the beginning of the content, the options, and the position of one of its
//! events. A note is valid only while that event exists, so a log that was created again has none.

use crate::exit::{Code, Failure};
use crate::import::csv::column_types::{Column, first_changed, letters};
use crate::state_folder;
use crate::target::Target;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use wellspring_client::endpoint::percent_encode;
use wellspring_client::{Client, Request};
use wellspring_types::hex;

/// Folder of the notes.
const IMPORTS: &str = "imports";
/// Most notes that are kept for a log: the newest.
const MAX_NOTES: usize = 256;
/// Largest file of notes that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// An import of some content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// Number of leading bytes of the content that are hashed.
    start_bytes: usize,
    /// Their SHA-256, in hexadecimal.
    start_sha256: String,
    /// The options that make events of it, as they are written on a command line.
    options: String,
    /// The types of its columns, if it is CSV: a letter each.
    #[serde(default)]
    types: String,
    /// Position of one of its events, …
    position: u64,
    /// … and when that was recorded.
    recorded_at: String,
}

/// The imports into one log that this machine remembers, and the one that is under way.
#[derive(Debug)]
pub(crate) struct EarlierImports {
    /// The folder of notes; `None` without one, or if the current import is noted already.
    path: Option<PathBuf>,
    target: Target,
    start: Vec<u8>,
    options: String,
    columns: Vec<Column>,
}

impl EarlierImports {
    /// For content that begins like this, has these columns if it is CSV, and is imported with
    /// these options.
    ///
    /// # Errors
    /// Usage, if the address of the server is not valid.
    pub(crate) fn of(
        target: &Target,
        start: Vec<u8>,
        options: String,
        columns: Vec<Column>,
    ) -> Result<EarlierImports, Failure> {
        let endpoint = crate::server::endpoint(&target.server.url)?;
        let name = format!("{} {}.json", endpoint.origin(), target.log);
        let folder = state_folder::of(IMPORTS).filter(|_| !start.is_empty());
        let path = folder.map(|folder| folder.join(percent_encode(&name)));
        Ok(EarlierImports { path, target: target.clone(), start, options, columns })
    }

    /// Refuses content that is already in the log, imported with other options, or when one of its
    /// columns had another type.
    ///
    /// # Errors
    /// [`Code::Refused`], and what to do. It is the same the next time.
    pub(crate) fn refuse_other_options(
        &mut self,
        client: &mut Client,
        file: &str,
    ) -> Result<(), Failure> {
        let Some(path) = &self.path else { return Ok(()) };
        let matching = read(path).into_iter().filter(|note| note.is_of(&self.start));
        let present: Vec<Note> =
            matching.filter(|note| is_present(client, &self.target, note)).collect();
        if let Some(note) = present.iter().rfind(|note| note.options == self.options) {
            if let Some(column) = first_changed(&self.columns, &note.types) {
                return Err(self.other_type(file, note, column));
            }
            if note.types == letters(&self.columns) {
                // The server recognizes it.
                self.path = None;
            }
            return Ok(());
        }
        let Some(note) = present.last() else { return Ok(()) };
        Err(Failure::new(
            Code::Refused,
            format!(
                "{file}: this content is already in log {}, imported with other options (its event at position \
                 {} was recorded at {}). Other options make other events, so all of it would be added a second \
                 time.\n  then: {}\n  now:  {}\nNothing was added. To add only what is new, use the earlier \
                 options; to add it all again, use --again LABEL{}",
                self.target.log,
                note.position,
                note.recorded_at,
                note.options,
                self.options,
                if self.options.contains("--subject-from") {
                    ". Neither seals what is stored clear: import into a new log, and delete this one"
                } else {
                    ""
                },
            ),
        ))
    }

    /// The refusal of content whose column would have another type than before.
    fn other_type(&self, file: &str, note: &Note, column: &Column) -> Failure {
        let name = &column.name;
        Failure::new(
            Code::Refused,
            format!(
                "{file}: this content is already in log {}, imported when column {name} had another type (its \
                 event at position {} was recorded at {}).\n  now: {}\nThat makes other events, so all of it \
                 would be added a second time. Nothing was added. Correct the row, or put the new rows into \
                 a file of their own; to add it all again, use --again LABEL, with --text {name} if that is \
                 meant",
                self.target.log,
                note.position,
                note.recorded_at,
                column.told(),
            ),
        )
    }

    /// Remembers the import under way, once: it has an event at this position. An import does not
    /// fail because this fails.
    pub(crate) fn note(&mut self, client: &mut Client, position: u64) {
        let Some(path) = self.path.take() else { return };
        let Some(recorded_at) = recorded_at(client, &self.target, position) else { return };
        let mut notes = read(&path);
        notes.retain(|note| !(note.is_of(&self.start) && note.options == self.options));
        let excess = (notes.len() + 1).saturating_sub(MAX_NOTES);
        notes.drain(..excess);
        notes.push(Note {
            start_bytes: self.start.len(),
            start_sha256: sha256(&self.start),
            options: self.options.clone(),
            types: letters(&self.columns),
            position,
            recorded_at,
        });
        let _ = write(&path, &notes);
    }
}

impl Note {
    /// Whether content that begins like this is what was imported, or has grown from it.
    fn is_of(&self, start: &[u8]) -> bool {
        start.get(..self.start_bytes).is_some_and(|start| sha256(start) == self.start_sha256)
    }
}

fn sha256(bytes: &[u8]) -> String {
    hex::digits(digest(&SHA256, bytes).as_ref())
}

/// Whether the event of a note is in the log as it was.
fn is_present(client: &mut Client, target: &Target, note: &Note) -> bool {
    recorded_at(client, target, note.position).as_ref() == Some(&note.recorded_at)
}

/// The time at which the event at a position was recorded; `None` if unknown or without an event.
fn recorded_at(client: &mut Client, target: &Target, position: u64) -> Option<String> {
    let path = target.path(&format!("events/{position}"));
    let answer = client.call(&Request::get(&path, &[])).ok()?;
    let event: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
    event["recorded_at"].as_str().map(str::to_owned)
}

/// The notes there are, oldest first; none if they cannot be read.
fn read(path: &Path) -> Vec<Note> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut text));
    read.ok().and_then(|_| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

fn write(path: &Path, notes: &[Note]) -> io::Result<()> {
    path.parent().map_or(Ok(()), state_folder::make)?;
    state_folder::replace(path, &serde_json::to_vec(notes)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn content_that_has_grown_is_the_same_and_other_content_is_not() {
        let note = Note {
            start_bytes: 4,
            start_sha256: sha256(b"a\n1\n"),
            options: String::new(),
            types: String::new(),
            position: 1,
            recorded_at: String::new(),
        };
        assert!(note.is_of(b"a\n1\n"));
        assert!(note.is_of(b"a\n1\n2\n"));
        assert!(!note.is_of(b"a\n2\n"));
        assert!(!note.is_of(b"a\n"));
    }

    #[test]
    fn notes_are_kept_for_their_owner_and_rubbish_is_none() {
        use std::os::unix::fs::MetadataExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("imports").join("x.json");
        assert_eq!(read(&path), []);
        let note = Note {
            start_bytes: 1,
            start_sha256: sha256(b"a"),
            options: "--type T".to_owned(),
            types: "nt".to_owned(),
            position: 3,
            recorded_at: "t".to_owned(),
        };
        write(&path, std::slice::from_ref(&note)).unwrap();
        assert_eq!(read(&path), [note]);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        fs::write(&path, "[{").unwrap();
        assert_eq!(read(&path), []);
    }
}
