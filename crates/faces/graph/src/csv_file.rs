//! `LOAD CSV`: files in the folder that the operator allows, and nothing else.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use wellspring_cypher::EachRecord;
use wellspring_cypher::error::{Detail, Error, ErrorKind, Result};

/// The most bytes and fields of a record.
const MOST_RECORD_BYTES: usize = 4 << 20;
const MOST_FIELDS: usize = 10_000;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Why a file is not read.
#[derive(Debug)]
enum CsvFault {
    /// There is no folder for such files.
    NoFolder,
    /// The address is not one of a file.
    NoFile,
    /// The file is not within the folder, or not a plain file.
    Outside,
    /// It cannot be opened or read.
    Io(io::Error),
    /// A record is too large.
    TooLarge,
    /// A record is not text.
    NotText,
}

impl std::fmt::Display for CsvFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CsvFault::NoFolder => f.write_str(
                "LOAD CSV is off: the operator can allow a folder by --graph-csv-folder",
            ),
            CsvFault::NoFile => f.write_str(
                "LOAD CSV reads files only: write FROM 'file:///name.csv', of a file in the \
                 folder that the operator allows",
            ),
            CsvFault::Outside => {
                f.write_str("there is no such file in the folder that the operator allows")
            }
            CsvFault::Io(error) => write!(f, "the file cannot be read: {error}"),
            CsvFault::TooLarge => write!(
                f,
                "a record has more than {MOST_RECORD_BYTES} bytes or {MOST_FIELDS} fields; is a \
                 quotation mark never closed?"
            ),
            CsvFault::NotText => f.write_str("a record is not UTF-8"),
        }
    }
}

impl From<CsvFault> for Error {
    fn from(fault: CsvFault) -> Error {
        let detail = Detail::ExternalResource;
        Error::runtime(ErrorKind::SemanticError, detail, format!("Cannot load CSV: {fault}"))
    }
}

/// Passes the records of a file to `each`, until it stops.
///
/// # Errors
/// Those of `each`, and those of [`CsvFault`].
pub(crate) fn pass(
    folder: Option<&Path>,
    address: &str,
    terminator: u8,
    each: &mut EachRecord<'_>,
) -> Result<()> {
    let folder = folder.ok_or(CsvFault::NoFolder)?;
    let path = find(folder, address)?;
    let mut input = BufReader::new(File::open(path).map_err(CsvFault::Io)?);
    if input.fill_buf().map_err(CsvFault::Io)?.starts_with(BOM) {
        input.consume(BOM.len());
    }
    let mut builder = ReaderBuilder::new();
    let parser = builder.delimiter(terminator).escape(Some(b'\\')).build();
    let mut records = Records { input, parser, text: vec![0; 4096], ends: vec![0; 64] };
    while let Some(fields) = records.next()? {
        if each(fields)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// The file of an address.
fn find(folder: &Path, address: &str) -> std::result::Result<PathBuf, CsvFault> {
    let name = match address.split_once(':') {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("file") => {
            let rest = rest.strip_prefix("//localhost/").or_else(|| rest.strip_prefix("///"));
            rest.or_else(|| address.strip_prefix("file:/")).ok_or(CsvFault::NoFile)?
        }
        Some(_) => return Err(CsvFault::NoFile),
        None => address.trim_start_matches('/'),
    };
    let name = decoded(name).ok_or(CsvFault::NoFile)?;
    let path = Path::new(&name);
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    if name.is_empty() || !is_plain {
        return Err(CsvFault::Outside);
    }
    // Links within the folder may not lead out of it.
    let folder = folder.canonicalize().map_err(CsvFault::Io)?;
    let path = folder.join(path).canonicalize().map_err(|_| CsvFault::Outside)?;
    let is_file = path.metadata().is_ok_and(|it| it.is_file());
    if path.starts_with(&folder) && is_file { Ok(path) } else { Err(CsvFault::Outside) }
}

/// A name without its `%20`.
fn decoded(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok().filter(|name| !name.contains('\0'))
}

/// The records of a file.
struct Records<R> {
    input: R,
    parser: Reader,
    /// The text of all fields of a record, and room.
    text: Vec<u8>,
    /// The end of each field in it, and room.
    ends: Vec<usize>,
}

impl<R: BufRead> Records<R> {
    /// The fields of the next record; `None` at the end.
    fn next(&mut self) -> std::result::Result<Option<Vec<Arc<str>>>, CsvFault> {
        let (mut written, mut count) = (0, 0);
        loop {
            let input = self.input.fill_buf().map_err(CsvFault::Io)?;
            let text = self.text.get_mut(written..).unwrap_or_default();
            let ends = self.ends.get_mut(count..).unwrap_or_default();
            let (result, read, out, ended) = self.parser.read_record(input, text, ends);
            self.input.consume(read);
            written += out;
            count += ended;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => grow(&mut self.text, MOST_RECORD_BYTES)?,
                ReadRecordResult::OutputEndsFull => grow(&mut self.ends, MOST_FIELDS)?,
                ReadRecordResult::Record => return self.fields(count).map(Some),
                ReadRecordResult::End => return Ok(None),
            }
        }
    }

    fn fields(&self, count: usize) -> std::result::Result<Vec<Arc<str>>, CsvFault> {
        let mut from = 0;
        let ends = self.ends.get(..count).unwrap_or_default();
        let fields = ends.iter().map(|end| {
            let bytes = self.text.get(from..*end).unwrap_or_default();
            from = *end;
            std::str::from_utf8(bytes).map(Arc::from).map_err(|_| CsvFault::NotText)
        });
        fields.collect()
    }
}

fn grow<T: Clone + Default>(room: &mut Vec<T>, most: usize) -> std::result::Result<(), CsvFault> {
    if room.len() >= most {
        return Err(CsvFault::TooLarge);
    }
    room.resize((room.len() * 2).min(most), T::default());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::pass;
    use std::fs::write;
    use std::ops::ControlFlow;
    use std::path::Path;

    fn read(folder: &Path, address: &str) -> Result<Vec<String>, String> {
        let mut all = Vec::new();
        let passed = pass(Some(folder), address, b',', &mut |fields| {
            all.push(fields.join("|"));
            Ok(ControlFlow::Continue(()))
        });
        passed.map(|()| all).map_err(|error| error.message)
    }

    #[test]
    fn records_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let text = "\u{feff}id,name\r\n1,\"Ann, \"\"A\"\"\"\n\n2,x\\,y\n3,\"two\nlines\",\n";
        write(dir.path().join("a b.csv"), text).unwrap();
        let expected = ["id|name", "1|Ann, \"A\"", "2|x\\|y", "3|two\nlines|"];
        for address in ["file:///a%20b.csv", "file:/a b.csv", "a b.csv", "FILE:///a%20b.csv"] {
            assert_eq!(read(dir.path(), address).unwrap(), expected, "{address}");
        }
        let wide = "x".repeat(100_000);
        write(dir.path().join("wide.csv"), format!("{wide},{wide}\n")).unwrap();
        assert_eq!(read(dir.path(), "file:///wide.csv").unwrap()[0].len(), 200_001);
        write(dir.path().join("open.csv"), format!("\"{}", "x\n".repeat(3 << 20))).unwrap();
        assert!(read(dir.path(), "file:///open.csv").unwrap_err().contains("never closed"));
        write(dir.path().join("bytes.csv"), [b'a', 0xff, b'\n']).unwrap();
        assert!(read(dir.path(), "file:///bytes.csv").unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn nothing_outside_of_the_folder_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("in");
        std::fs::create_dir_all(folder.join("deep")).unwrap();
        write(dir.path().join("secret.csv"), "secret\n").unwrap();
        write(folder.join("deep/fine.csv"), "fine\n").unwrap();
        assert_eq!(read(&folder, "file:///deep/fine.csv").unwrap(), ["fine"]);
        #[cfg(unix)]
        for (link, target) in
            [("out.csv", "../secret.csv"), ("up", ".."), ("ok.csv", "deep/fine.csv")]
        {
            std::os::unix::fs::symlink(target, folder.join(link)).unwrap();
        }
        #[cfg(unix)]
        assert_eq!(read(&folder, "file:///ok.csv").unwrap(), ["fine"]);
        let absolute = format!("file://{}", dir.path().join("secret.csv").display());
        for address in [
            "file:///../secret.csv",
            "file:///%2e%2e/secret.csv",
            "file:///deep/../../secret.csv",
            "file:///out.csv",
            "file:///up/secret.csv",
            "file:///deep",
            "file:///",
            "file:///none.csv",
            "file:////etc/passwd",
            "../secret.csv",
            &absolute,
            "http://localhost/secret.csv",
            "ftp://x/y",
            "file://host/secret.csv",
            "file:///a%0",
        ] {
            assert!(read(&folder, address).is_err(), "{address}");
        }
        let error =
            pass(None, "file:///deep/fine.csv", b',', &mut |_| Ok(ControlFlow::Continue(())));
        assert!(error.unwrap_err().message.contains("--graph-csv-folder"));
    }
}
