//! HTTP/1.1 answers, read from any buffered source. A body that ends early is
//! an error and never a short body: what is exported or tailed must be whole.

use std::fmt;
use std::io::{self, BufRead, Read};

/// Longest line of an answer's head or chunk header, in bytes.
const MAX_LINE_BYTES: usize = 16 << 10;
/// Most header lines of an answer.
const MAX_HEADERS: usize = 128;

/// Why no answer was understood.
#[derive(Debug)]
pub enum MessageError {
    /// The connection ended before the first byte of an answer: an idle
    /// connection that the server had closed looks like this.
    Gone,
    /// The connection failed or was cut.
    Io(io::Error),
    /// What came is not HTTP/1.1, or uses what the tools do not read.
    Malformed(String),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageError::Gone => write!(f, "the server closed the connection"),
            MessageError::Io(error) if is_timeout(error) => {
                write!(f, "the server did not answer in time")
            }
            MessageError::Io(error) => error.fmt(f),
            MessageError::Malformed(what) => {
                write!(f, "the answer is not HTTP as expected ({what}); is this a Wellspring?")
            }
        }
    }
}

impl From<io::Error> for MessageError {
    fn from(error: io::Error) -> MessageError {
        MessageError::Io(error)
    }
}

/// Whether an I/O error is a time-out of the socket.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Status and headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Three digits.
    pub status: u16,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    /// Whether the connection may carry another request.
    pub(crate) keep_alive: bool,
}

impl Head {
    /// Value of the first header of that name (given in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Whether the media type is `wanted`, whatever its parameters.
    pub fn is_type(&self, wanted: &str) -> bool {
        let media = self.header("content-type").and_then(|value| value.split(';').next());
        media.is_some_and(|media| media.trim().eq_ignore_ascii_case(wanted))
    }
}

/// Reads the head of the final answer; interim answers (1xx) are passed over.
pub(crate) fn read_head(source: &mut impl BufRead) -> Result<Head, MessageError> {
    if source.fill_buf()?.is_empty() {
        return Err(MessageError::Gone);
    }
    loop {
        let head = read_one_head(source)?;
        if head.status >= 200 {
            return Ok(head);
        }
    }
}

fn read_one_head(source: &mut impl BufRead) -> Result<Head, MessageError> {
    let malformed = |what: &str| MessageError::Malformed(what.to_owned());
    let line = read_line(source)?;
    let mut parts = line.splitn(3, ' ');
    let version = parts.next().unwrap_or_default();
    if version != "HTTP/1.1" && version != "HTTP/1.0" {
        return Err(malformed("no HTTP/1.1 status line"));
    }
    let status = parts.next().filter(|s| s.len() == 3).and_then(|s| s.parse().ok());
    let status: u16 = status.filter(|s| *s >= 100).ok_or_else(|| malformed("no status"))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(source)?;
        if line.is_empty() {
            break;
        }
        if headers.len() == MAX_HEADERS {
            return Err(malformed("too many headers"));
        }
        let (name, value) =
            line.split_once(':').ok_or_else(|| malformed("a header without a colon"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut head = Head { status, headers, keep_alive: version == "HTTP/1.1" };
    if head.header("connection").is_some_and(|v| v.to_ascii_lowercase().contains("close")) {
        head.keep_alive = false;
    }
    Ok(head)
}

/// Reads one line without its line end.
fn read_line(source: &mut impl BufRead) -> Result<String, MessageError> {
    let mut line = Vec::new();
    source.by_ref().take(MAX_LINE_BYTES as u64).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        if line.len() == MAX_LINE_BYTES {
            return Err(MessageError::Malformed("a line that is too long".to_owned()));
        }
        return Err(cut().into());
    }
    while matches!(line.last(), Some(b'\n' | b'\r')) {
        line.pop();
    }
    String::from_utf8(line).map_err(|_| MessageError::Malformed("a line is not UTF-8".to_owned()))
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the answer was cut off in the middle")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// So many bytes are still to come.
    Length(u64),
    /// So many bytes of this chunk are still to come.
    Chunk(u64),
    /// A chunk's header comes next; `true` once a chunk's data has to be closed by a line end.
    ChunkHeader(bool),
    Done,
}

/// The body of an answer. Reads as the bytes of the body; fails with
/// `UnexpectedEof` if the connection ends before the body does.
#[derive(Debug)]
pub struct Body<R> {
    source: R,
    framing: Framing,
}

impl<R: BufRead> Body<R> {
    /// The body that follows a head.
    ///
    /// # Errors
    /// [`MessageError::Malformed`] if the head does not say where the body ends:
    /// such a body could be cut off without anyone noticing.
    pub(crate) fn new(head: &Head, source: R) -> Result<Body<R>, MessageError> {
        let malformed = |what: &str| MessageError::Malformed(what.to_owned());
        let framing = if matches!(head.status, 204 | 304) {
            Framing::Done
        } else if let Some(coding) = head.header("transfer-encoding") {
            if !coding.eq_ignore_ascii_case("chunked") {
                return Err(malformed("unknown transfer-encoding"));
            }
            Framing::ChunkHeader(false)
        } else {
            let length = head.header("content-length");
            let length = length.ok_or_else(|| malformed("neither length nor chunks"))?;
            Framing::Length(length.parse().map_err(|_| malformed("content-length"))?)
        };
        Ok(Body { source, framing })
    }

    /// Whether every byte of the body has been read.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.framing, Framing::Done | Framing::Length(0))
    }

    /// The connection underneath, for the next answer.
    pub(crate) fn into_source(self) -> R {
        self.source
    }

    fn next_chunk(&mut self, close_last: bool) -> Result<Framing, MessageError> {
        if close_last && !read_line(&mut self.source)?.is_empty() {
            return Err(MessageError::Malformed("a chunk longer than it said".to_owned()));
        }
        let line = read_line(&mut self.source)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        // `from_str_radix` would take a sign.
        let size = Some(digits)
            .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|d| u64::from_str_radix(d, 16).ok())
            .ok_or_else(|| MessageError::Malformed("a chunk without a size".to_owned()))?;
        if size > 0 {
            return Ok(Framing::Chunk(size));
        }
        while !read_line(&mut self.source)?.is_empty() {}
        Ok(Framing::Done)
    }
}

impl<R: BufRead> BufRead for Body<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if let Framing::ChunkHeader(close_last) = self.framing {
            self.framing = self.next_chunk(close_last).map_err(|error| match error {
                MessageError::Io(error) => error,
                other => io::Error::new(io::ErrorKind::InvalidData, other.to_string()),
            })?;
        }
        let left = match self.framing {
            Framing::Length(left) | Framing::Chunk(left) => left,
            Framing::ChunkHeader(_) | Framing::Done => 0,
        };
        if left == 0 {
            return Ok(&[]);
        }
        let bytes = self.source.fill_buf()?;
        if bytes.is_empty() {
            return Err(cut());
        }
        let usable = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        Ok(&bytes[..usable])
    }

    fn consume(&mut self, amount: usize) {
        self.source.consume(amount);
        self.framing = match self.framing {
            Framing::Length(left) => Framing::Length(left.saturating_sub(amount as u64)),
            Framing::Chunk(left) if left <= amount as u64 => Framing::ChunkHeader(true),
            Framing::Chunk(left) => Framing::Chunk(left - amount as u64),
            other => other,
        };
    }
}

impl<R: BufRead> Read for Body<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// Gives its bytes one at a time, as a slow network may.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = into.len().min(1).min(self.0.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn answer(bytes: &str) -> Result<(Head, Vec<u8>), MessageError> {
        let mut source = BufReader::new(Drip(bytes.as_bytes()));
        let head = read_head(&mut source)?;
        let mut body = Body::new(&head, source)?;
        let mut all = Vec::new();
        body.read_to_end(&mut all)?;
        assert!(body.is_done());
        Ok((head, all))
    }

    #[test]
    fn both_framings_survive_split_reads() {
        let (head, body) =
            answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A:  b \r\n\r\nhello").unwrap();
        assert_eq!((head.status, head.header("x-a"), head.keep_alive), (200, Some("b"), true));
        assert_eq!(body, b"hello");
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nConnection: close\r\n\r\n\
                       3;x=y\r\nhel\r\nA\r\nlo, world!\r\n0\r\nTrailer: t\r\n\r\n";
        let (head, body) = answer(chunked).unwrap();
        assert!(!head.keep_alive);
        assert_eq!(body, b"hello, world!");
    }

    #[test]
    fn interim_answers_are_passed_over() {
        let (head, _) =
            answer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n").unwrap();
        assert_eq!(head.status, 204);
    }

    #[test]
    fn every_truncation_is_an_error() {
        for whole in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        ] {
            assert!(answer(whole).is_ok());
            for end in 0..whole.len() {
                assert!(answer(&whole[..end]).is_err(), "{:?}", &whole[..end]);
            }
        }
    }

    #[test]
    fn what_is_not_http_is_refused() {
        for bad in [
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\nuntil the end",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        ] {
            assert!(matches!(answer(bad), Err(MessageError::Malformed(_))), "{bad}");
        }
        let bad_chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\nx\r\n0\r\n\r\n";
        assert!(answer(bad_chunk).is_err());
        let long = format!("HTTP/1.1 200 {}\r\n\r\n", "x".repeat(MAX_LINE_BYTES));
        assert!(matches!(answer(&long), Err(MessageError::Malformed(_))));
    }
}
