//! The output of an export: a file that is renamed when it is complete, or standard output.

use crate::exit::{Code, Failure};
use flate2::write::GzEncoder;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The path of an export, symbolic links resolved. The file is renamed to it when it is complete,
/// which would replace a device, a pipe or a folder of that name.
fn place_of(path: &Path) -> Result<PathBuf, Failure> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(path.to_owned()) };
    let usage = |why: &str| {
        let message = format!("-o {}: {why}", path.display());
        Err(Failure::new(Code::Usage, message))
    };
    if found.is_symlink() {
        return match fs::canonicalize(path) {
            Ok(place) => place_of(&place),
            Err(_) => usage("is a dangling symbolic link; remove it or name another file"),
        };
    }
    if !found.is_file() {
        return usage(
            "is not a regular file, and an export would replace it; to write into it, omit -o and \
             redirect standard output",
        );
    }
    Ok(path.to_owned())
}

/// The output of an export. A file gets its name only when it is complete.
pub(super) struct Output {
    writer: Box<dyn Finish>,
    name: String,
    /// Its name while it is written, and then.
    pub(super) rename: Option<(PathBuf, PathBuf)>,
    /// Locks the file until it has its name.
    _lock: Option<File>,
}

/// Creates the file that an export writes and locks it, so that two exports of one name do not
/// write into each other's.
fn create_alone(part: &Path, name: &str) -> Result<File, Failure> {
    let failed = |error| Failure::new(Code::Io, format!("cannot write {name}: {error}"));
    loop {
        let mut options = File::options();
        let file = options.create(true).truncate(false).write(true).open(part).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::new(
                    Code::Unavailable,
                    format!(
                        "another export is writing {name}; wait for it, or name another file (-o)"
                    ),
                ));
            }
            // A file system without locks.
            Err(TryLockError::Error(_)) => {}
        }
        // The one before may have renamed or removed it between the two.
        let locked = file.metadata().map_err(failed)?;
        let is_there = fs::metadata(part)
            .is_ok_and(|there| (there.dev(), there.ino()) == (locked.dev(), locked.ino()));
        if is_there {
            file.set_len(0).map_err(failed)?;
            return Ok(file);
        }
    }
}

/// A place for bytes that can be made durable.
pub(super) trait Finish: Write + Send {
    /// Writes what is left, so that it survives.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

struct Plain(BufWriter<File>);
struct Gzip(GzEncoder<BufWriter<File>>);
struct Standard(BufWriter<io::Stdout>);

macro_rules! write_through {
    ($($name:ty),*) => {$(
        impl Write for $name {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                self.0.flush()
            }
        }
    )*};
}
write_through!(Plain, Gzip, Standard);

impl Finish for Plain {
    fn finish(self: Box<Self>) -> io::Result<()> {
        self.0.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}

impl Finish for Gzip {
    fn finish(self: Box<Self>) -> io::Result<()> {
        Box::new(Plain(self.0.finish()?)).finish()
    }
}

impl Finish for Standard {
    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}

impl Output {
    /// Opens it; standard output without a path, or for `-`.
    pub(super) fn open(path: Option<&Path>) -> Result<Output, Failure> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            let writer = Box::new(Standard(BufWriter::with_capacity(1 << 16, io::stdout())));
            let name = "standard output".to_owned();
            return Ok(Output { writer, name, rename: None, _lock: None });
        };
        let name = path.display().to_string();
        let path = place_of(path)?;
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = create_alone(&part, &name)?;
        let lock = file.try_clone().map_err(|error| Failure::output(&name, &error))?;
        let file = BufWriter::with_capacity(1 << 18, file);
        let writer: Box<dyn Finish> =
            if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gz")) {
                Box::new(Gzip(GzEncoder::new(file, flate2::Compression::default())))
            } else {
                Box::new(Plain(file))
            };
        Ok(Output { writer, name, rename: Some((part, path)), _lock: Some(lock) })
    }

    /// The bytes' way out.
    #[cfg(feature = "parquet")]
    pub(super) fn writer(&mut self) -> &mut dyn Finish {
        &mut *self.writer
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.writer.write_all(bytes).map_err(|error| Failure::output(&self.name, &error))
    }

    /// Writes what is left and gives the file its name.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let writer =
            std::mem::replace(&mut self.writer, Box::new(Standard(BufWriter::new(io::stdout()))));
        let done = writer.finish().and_then(|()| match &self.rename {
            Some((part, whole)) => fs::rename(part, whole),
            None => Ok(()),
        });
        done.map_err(|error| Failure::output(&self.name, &error))?;
        // The name while it was written is free, and may be another export's by now.
        self.rename = None;
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.rename {
            let _ = fs::remove_file(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_replaces_regular_files_only() {
        use std::os::unix::net::UnixListener;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let write = |path: &Path| {
            let mut output = Output::open(Some(path))?;
            output.write(b"whole")?;
            output.finish()
        };
        write(&at("new")).unwrap();
        fs::write(at("old"), "of before").unwrap();
        std::os::unix::fs::symlink(at("old"), at("link")).unwrap();
        write(&at("link")).unwrap();
        for name in ["new", "old", "link"] {
            assert_eq!(fs::read_to_string(at(name)).unwrap(), "whole", "{name}");
        }
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        let _socket = UnixListener::bind(at("socket")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
        for name in ["socket", "folder", "dangling"] {
            let failure = write(&at(name)).unwrap_err();
            assert_eq!(failure.code, Code::Usage, "{name}");
        }
        assert!(!fs::symlink_metadata(at("socket")).unwrap().is_file());
        // Standard output.
        assert!(Output::open(Some(Path::new("-"))).unwrap().rename.is_none());
        assert!(!Path::new("-").exists());
    }

    #[test]
    fn of_two_exports_to_one_file_at_once_one_is_refused_and_the_other_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("all.ndjson");
        let mut first = Output::open(Some(&path)).unwrap();
        first.write(b"of the first").unwrap();
        let refused = Output::open(Some(&path)).map(drop).unwrap_err();
        assert_eq!(refused.code, Code::Unavailable, "{}", refused.message);
        assert!(refused.message.contains("another export is writing"), "{}", refused.message);
        first.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "of the first");
        // The file of a killed export is overwritten.
        fs::write(dir.path().join("all.ndjson.part"), "longer than what comes").unwrap();
        let mut next = Output::open(Some(&path)).unwrap();
        next.write(b"next").unwrap();
        next.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "next");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn exports_in_turn_never_mix() {
        let dir = tempfile::tempdir().unwrap();
        let path = &dir.path().join("all.ndjson");
        std::thread::scope(|scope| {
            for letter in [b'a', b'b', b'c'] {
                scope.spawn(move || {
                    for round in 0..200 {
                        let Ok(mut output) = Output::open(Some(path)) else { continue };
                        output.write(&vec![letter; 1 + round]).unwrap();
                        // Half of them are given up.
                        if round % 2 == 0 {
                            output.finish().unwrap();
                        }
                    }
                });
            }
        });
        let whole = fs::read(path).unwrap();
        assert!(whole.iter().all(|byte| *byte == whole[0]), "{whole:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
