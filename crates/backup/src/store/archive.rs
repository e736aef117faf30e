//! One backup as a tar archive: written sequentially, also to a pipe; read from a file.

use super::{PendingFile, Store, not_found};
use crate::fault::{BackupError, BackupResult};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use tar::{Archive, Header};

const BLOCK_BYTES: usize = 512;
const BUFFER_BYTES: usize = 1 << 20;

/// Writes an archive.
pub struct ArchiveWriter<W: Write> {
    out: BufWriter<W>,
    place: String,
}

impl<W: Write> ArchiveWriter<W> {
    /// Writes an archive to `out`; `place` is for messages.
    pub fn new(out: W, place: impl Into<String>) -> ArchiveWriter<W> {
        ArchiveWriter { out: BufWriter::with_capacity(BUFFER_BYTES, out), place: place.into() }
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> BackupError + use<W> {
        BackupError::io(format!("writing {}", self.place))
    }
}

impl<W: Write> Store for ArchiveWriter<W> {
    fn place(&self) -> String {
        self.place.clone()
    }

    /// Empty: an archive cannot be read while it is written.
    fn list(&mut self, _prefix: &str) -> BackupResult<Vec<(String, u64)>> {
        Ok(Vec::new())
    }

    fn read(&mut self, name: &str) -> BackupResult<Box<dyn Read + '_>> {
        Err(not_found(&self.place, name))
    }

    fn create(&mut self, name: &str, bytes: u64) -> BackupResult<Box<dyn PendingFile + '_>> {
        let mut header = Header::new_ustar();
        header.set_path(name).map_err(self.failed())?;
        header.set_size(bytes);
        header.set_mode(0o600);
        header.set_cksum();
        self.out.write_all(header.as_bytes()).map_err(self.failed())?;
        Ok(Box::new(PendingEntry { archive: self, bytes, written: 0 }))
    }

    /// Does nothing: an archive cannot remove files.
    fn remove(&mut self, _name: &str) -> BackupResult<()> {
        Ok(())
    }

    fn close(&mut self) -> BackupResult<()> {
        let end = [0; 2 * BLOCK_BYTES];
        self.out.write_all(&end).and_then(|()| self.out.flush()).map_err(self.failed())
    }
}

struct PendingEntry<'a, W: Write> {
    archive: &'a mut ArchiveWriter<W>,
    bytes: u64,
    written: u64,
}

impl<W: Write> Write for PendingEntry<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let got = self.archive.out.write(bytes)?;
        self.written += got as u64;
        Ok(got)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write> PendingFile for PendingEntry<'_, W> {
    fn finish(self: Box<Self>) -> BackupResult<()> {
        assert_eq!(self.written, self.bytes, "as many bytes as the header says");
        let padding = self.bytes.next_multiple_of(BLOCK_BYTES as u64) - self.bytes;
        let zeros = [0; BLOCK_BYTES];
        let failed = self.archive.failed();
        self.archive.out.write_all(&zeros[..padding as usize]).map_err(failed)
    }
}

/// An archive in a file.
#[derive(Debug)]
pub struct ArchiveReader {
    file: File,
    place: String,
    /// Offset and length of each entry.
    entries: BTreeMap<String, (u64, u64)>,
}

impl ArchiveReader {
    /// Reads the names in an archive.
    ///
    /// # Errors
    /// [`BackupError::NotFound`], [`BackupError::Damaged`] if it is not an archive, or an error of
    /// the file system.
    pub fn open(path: &Path) -> BackupResult<ArchiveReader> {
        let place = path.display().to_string();
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(BackupError::NotFound { what: format!("there is no file {place}") });
            }
            Err(error) => return Err(BackupError::Io { doing: format!("opening {place}"), error }),
        };
        let length = file.metadata().map_err(BackupError::io(format!("reading {place}")))?.len();
        let mut entries = BTreeMap::new();
        let mut archive = Archive::new(BufReader::new(&file));
        let found =
            archive.entries_with_seek().map_err(BackupError::io(format!("reading {place}")))?;
        for entry in found {
            // It ends here if it was cut off; without its manifest it holds no finished backup.
            let Ok(entry) = entry else { break };
            let Some(name) = entry.path().ok().and_then(|p| p.to_str().map(str::to_owned)) else {
                continue;
            };
            let (at, bytes) = (entry.raw_file_position(), entry.size());
            // One that is cut off is not there.
            if at.checked_add(bytes).is_some_and(|end| end <= length) {
                entries.insert(name, (at, bytes));
            }
        }
        if entries.is_empty() {
            let what = "it is not the archive of a backup".into();
            return Err(BackupError::Damaged { file: place, what });
        }
        Ok(ArchiveReader { file, place, entries })
    }
}

impl Store for ArchiveReader {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn list(&mut self, prefix: &str) -> BackupResult<Vec<(String, u64)>> {
        let found = self.entries.iter().filter(|(name, _)| name.starts_with(prefix));
        Ok(found.map(|(name, (_, bytes))| (name.clone(), *bytes)).collect())
    }

    fn read(&mut self, name: &str) -> BackupResult<Box<dyn Read + '_>> {
        let Some(&(at, bytes)) = self.entries.get(name) else {
            return Err(not_found(&self.place, name));
        };
        let failed = BackupError::io(format!("reading {}", self.place));
        self.file.seek(SeekFrom::Start(at)).map_err(failed)?;
        Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, &self.file).take(bytes)))
    }

    fn create(&mut self, _name: &str, _bytes: u64) -> BackupResult<Box<dyn PendingFile + '_>> {
        Err(BackupError::Unfit(format!("{} is an archive, which cannot be added to", self.place)))
    }

    fn remove(&mut self, _name: &str) -> BackupResult<()> {
        Err(BackupError::Unfit(format!("{} is an archive: delete the file", self.place)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{get, put};

    fn archive() -> Vec<u8> {
        let mut out = Vec::new();
        let mut store = ArchiveWriter::new(&mut out, "a pipe");
        put(&mut store, "backups/x.begun", b"").unwrap();
        put(&mut store, "segments/a/1.seg", &[7; 1000]).unwrap();
        put(&mut store, "backups/x.json", b"{}").unwrap();
        store.close().unwrap();
        drop(store);
        out
    }

    #[test]
    fn an_archive_reads_back_and_is_one_for_others_too() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tar");
        std::fs::write(&path, archive()).unwrap();
        let mut read = ArchiveReader::open(&path).unwrap();
        assert_eq!(get(&mut read, "segments/a/1.seg", 9_000).unwrap(), [7; 1000]);
        assert_eq!(get(&mut read, "backups/x.json", 9_000).unwrap(), b"{}");
        assert_eq!(read.list("backups/").unwrap().len(), 2);
        let listed = std::process::Command::new("tar").arg("tf").arg(&path).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert_eq!(listed, "backups/x.begun\nsegments/a/1.seg\nbackups/x.json\n");
    }

    #[test]
    fn an_archive_that_was_cut_off_lacks_what_comes_last() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tar");
        let whole = archive();
        let manifest_at = whole.len() - 4 * BLOCK_BYTES;
        for len in 0..manifest_at {
            std::fs::write(&path, &whole[..len]).unwrap();
            let Ok(mut read) = ArchiveReader::open(&path) else { continue };
            assert!(get(&mut read, "backups/x.json", 9_000).is_err(), "{len}");
        }
    }
}
