//! The input of an import: a file or standard input, compressed or not, always as a stream.

use crate::exit::{Code, Failure};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read, Seek as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BUFFER_BYTES: usize = 128 << 10;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The first bytes of the content identify it.
const START_BYTES: u64 = 64 << 10;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// An input, opened.
pub(crate) struct Source {
    /// Its bytes, decompressed, without a byte-order mark.
    pub(crate) reader: Box<dyn BufRead + Send>,
    /// Their first bytes, at most 64 KiB.
    pub(crate) start: Vec<u8>,
    /// Bytes read from the file so far, before decompression.
    pub(crate) taken: Arc<AtomicU64>,
    /// Size of the file, if it is one.
    pub(crate) total_bytes: Option<u64>,
    /// The file, if it can be read from its beginning again.
    file: Option<File>,
}

impl Source {
    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(path: &str) -> Result<Source, Failure> {
        match open_file(path)? {
            None => Source::over(Box::new(io::stdin()), path, None),
            Some(file) => Source::of_file(file, path),
        }
    }

    /// The input from its beginning again.
    ///
    /// # Errors
    /// It cannot be read again.
    pub(crate) fn rewound(self, path: &str) -> Result<Source, Failure> {
        let failed = |error: io::Error| {
            Failure::new(Code::NoInput, format!("cannot read {path} a second time: {error}"))
        };
        let Some(mut file) = self.file else {
            return Err(failed(io::Error::from(ErrorKind::NotSeekable)));
        };
        file.rewind().map_err(failed)?;
        Source::of_file(file, path)
    }

    /// Opens an input that can be read twice. What is no file, a pipe for example, is copied to a
    /// temporary one.
    ///
    /// # Errors
    /// The input cannot be read, or the copy not be written.
    pub(crate) fn open_rewindable(path: &str) -> Result<Source, Failure> {
        let mut stream: Box<dyn Read> = match open_file(path)? {
            Some(file) if file.metadata().is_ok_and(|about| about.is_file()) => {
                return Source::of_file(file, path);
            }
            Some(file) => Box::new(file),
            None => Box::new(io::stdin()),
        };
        let copy = tempfile::tempfile().and_then(|mut file| {
            io::copy(&mut stream, &mut file)?;
            file.rewind()?;
            Ok(file)
        });
        let file = copy.map_err(|error| {
            let message = format!(
                "cannot keep a copy of {path} in {}, which is needed to find the types of its columns: \
                 {error}. Save the input to a file first, or make every column text with --text all",
                std::env::temp_dir().display()
            );
            Failure::new(Code::Io, message)
        })?;
        Source::of_file(file, path)
    }

    /// Whether [`start`](Self::start) is all there is.
    pub(crate) fn is_in_start(&self) -> bool {
        self.start.len() < START_BYTES as usize
    }

    fn of_file(file: File, path: &str) -> Result<Source, Failure> {
        let failed =
            |error: io::Error| Failure::new(Code::NoInput, format!("cannot read {path}: {error}"));
        let about = file.metadata().map_err(failed)?;
        let total = about.is_file().then_some(about.len());
        let again = file.try_clone().map_err(failed)?;
        let source = Source::over(Box::new(file), path, total)?;
        Ok(Source { file: total.map(|_| again), ..source })
    }

    /// Reads from anything.
    pub(crate) fn over(
        raw: Box<dyn Read + Send>,
        name: &str,
        total_bytes: Option<u64>,
    ) -> Result<Source, Failure> {
        let taken = Arc::new(AtomicU64::new(0));
        let counted = CountedReader { raw, taken: Arc::clone(&taken) };
        let mut raw = BufReader::with_capacity(BUFFER_BYTES, counted);
        let failed = |error: io::Error| match error.kind() {
            // Errors of the gzip decoder.
            ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof => {
                Failure::data(format!("{name} is not a valid gzip file: {error}"))
            }
            _ => Failure::new(Code::NoInput, format!("cannot read {name}: {error}")),
        };
        let magic = take_start(&mut raw, GZIP_MAGIC.len() as u64).map_err(failed)?;
        let is_gzip = magic == GZIP_MAGIC;
        if magic.is_empty() && name.to_ascii_lowercase().ends_with(".gz") {
            return Err(Failure::data(format!(
                "{name} is empty (0 bytes), which no gzip file is: it was truncated or never written. Create \
                 it again"
            )));
        }
        if !is_gzip && name.to_ascii_lowercase().ends_with(".gz") {
            return Err(Failure::data(format!(
                "{name} is not a gzip file although its name ends in .gz: its first bytes are {magic:02x?}, not \
                 [1f, 8b]. Compress it, or remove .gz from its name"
            )));
        }
        let whole = Cursor::new(magic).chain(raw);
        let mut plain: Box<dyn BufRead + Send> = if is_gzip {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(whole)))
        } else {
            Box::new(whole)
        };
        let mut start = take_start(&mut plain, START_BYTES).map_err(failed)?;
        if start.starts_with(BOM) {
            start.drain(..BOM.len());
        }
        let reader = Box::new(Cursor::new(start.clone()).chain(plain));
        Ok(Source { reader, start, taken, total_bytes, file: None })
    }
}

/// Opens a file; `None` for standard input.
fn open_file(path: &str) -> Result<Option<File>, Failure> {
    if path == "-" {
        return Ok(None);
    }
    let failed =
        |error: io::Error| Failure::new(Code::NoInput, format!("cannot read {path}: {error}"));
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(failed(io::Error::other("it is a folder")));
    }
    Ok(Some(file))
}

/// The first `count` bytes, or fewer if there are no more.
fn take_start(reader: &mut impl Read, count: u64) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    reader.by_ref().take(count).read_to_end(&mut start)?;
    Ok(start)
}

struct CountedReader {
    raw: Box<dyn Read + Send>,
    taken: Arc<AtomicU64>,
}

impl Read for CountedReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(into)?;
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn all(bytes: Vec<u8>) -> io::Result<String> {
        let mut source = Source::over(Box::new(Cursor::new(bytes)), "x", None)
            .map_err(|failure| io::Error::other(failure.message))?;
        let mut text = String::new();
        source.reader.read_to_string(&mut text)?;
        Ok(text)
    }

    fn gz(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn compressed_or_not_with_mark_or_without() {
        let long = "a,b\n".repeat(5000);
        assert_eq!(all(long.clone().into_bytes()).unwrap(), long);
        assert_eq!(all(gz(&format!("\u{feff}{long}"))).unwrap(), long);
        assert_eq!(all([gz("one "), gz("two")].concat()).unwrap(), "one two");
        assert_eq!(all("\u{feff}x".into()).unwrap(), "x");
        assert_eq!(all(Vec::new()).unwrap(), "");
    }

    #[test]
    fn a_file_is_read_from_its_beginning_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.gz");
        std::fs::write(&path, gz("\u{feff}one two")).unwrap();
        let path = path.to_str().unwrap();
        let mut source = Source::open_rewindable(path).unwrap();
        for _ in 0..2 {
            let mut text = String::new();
            source.reader.read_to_string(&mut text).unwrap();
            assert_eq!((text.as_str(), source.start.as_slice()), ("one two", &b"one two"[..]));
            source = source.rewound(path).unwrap();
        }
        let pipe = Source::over(Box::new(Cursor::new(b"x".to_vec())), "-", None).unwrap();
        assert!(pipe.rewound("-").is_err());
    }

    #[test]
    fn a_name_that_promises_gzip_is_held_to_it() {
        let open = |name: &str, bytes: Vec<u8>| {
            Source::over(Box::new(Cursor::new(bytes)), name, None).map(drop)
        };
        for name in ["a.ndjson.gz", "A.CSV.GZ"] {
            assert_eq!(open(name, gz("x")), Ok(()));
            let empty = open(name, Vec::new()).unwrap_err();
            assert_eq!(empty.code, Code::Data, "{empty:?}");
            assert!(empty.message.starts_with(&format!("{name} is empty (0 bytes)")), "{empty:?}");
            for bytes in [&b"{}"[..], b"\x1f"] {
                let failure = open(name, bytes.to_vec()).unwrap_err();
                assert_eq!(failure.code, Code::Data, "{failure:?}");
                assert!(failure.message.contains("[1f, 8b]"), "{failure:?}");
            }
        }
        assert_eq!(open("-", b"{}".to_vec()), Ok(()));
    }

    #[test]
    fn a_compressed_file_that_is_cut_short_is_an_error() {
        let whole = gz(&(0..5000).map(|i| format!("{i}\n")).collect::<String>());
        assert!(all(whole[..whole.len() / 2].to_vec()).is_err());
        assert!(all(whole[..whole.len() - 4].to_vec()).is_err());
    }
}
