//! Follows the framing of the requests on a connection of HTTP/1.1, on the way to hyper, and finds
//! what the lean loop refuses and hyper does not: it drops the second of two equal `Content-Length`
//! headers and one beside a `Transfer-Encoding`, and takes lengths and sizes of chunks with any
//! number of zeros in front. Another reader of the same bytes may see other requests.

use super::chunked::Chunked;
use super::head_rules::HeadAmbiguity;

/// Digits of a length that always fits 64 bits.
pub(crate) const LENGTH_DIGITS: usize = 19;

/// Bytes of a line that are kept while the rest of it is not there: more than the lines that matter
/// have before they are at fault.
const MOST_KEPT: usize = 256;

/// A valid Content-Length: at most [`LENGTH_DIGITS`] digits, nothing else.
pub(crate) fn length(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > LENGTH_DIGITS {
        return None;
    }
    digits.iter().try_fold(0u64, |value, digit| {
        digit.is_ascii_digit().then(|| value * 10 + u64::from(digit - b'0'))
    })
}

/// Where the next byte belongs.
#[derive(Debug)]
enum Place {
    /// Before a head.
    Between,
    Head,
    /// Content of this length, in bytes.
    Content(u64),
    Chunks(Chunked),
    /// Not followed: HTTP/2, or after a fault.
    Beyond,
}

/// What the lines of a head say of its content.
#[derive(Debug, Default, Clone, Copy)]
struct HeadFraming {
    lengths: usize,
    /// Of the last of them; `None`: it is none.
    length: Option<u64>,
    digits: usize,
    has_coding: bool,
    is_chunked: bool,
}

/// The framing of what has come.
#[derive(Debug)]
pub(super) struct RequestFraming {
    place: Place,
    /// The beginning of a line that is not complete.
    line: Vec<u8>,
    head: HeadFraming,
    /// Complete heads.
    heads: u64,
    faulty: Option<(u64, HeadAmbiguity)>,
    /// Bytes that extensions and trailers of chunks may take.
    allowance: usize,
}

impl RequestFraming {
    /// Of a connection without requests.
    pub(super) fn new(allowance: usize) -> RequestFraming {
        let (place, head) = (Place::Between, HeadFraming::default());
        RequestFraming { place, line: Vec::new(), head, heads: 0, faulty: None, allowance }
    }

    /// Bytes that need not be looked at.
    pub(super) fn unseen(&self) -> u64 {
        match self.place {
            Place::Content(left) => left,
            Place::Beyond => u64::MAX,
            _ => 0,
        }
    }

    /// Whether the rest of a request is still to come.
    pub(super) fn is_within(&self) -> bool {
        match &self.place {
            Place::Head | Place::Chunks(_) => true,
            Place::Content(left) => *left > 0,
            Place::Between => !self.line.is_empty(),
            Place::Beyond => false,
        }
    }

    /// Counts received bytes that were not parsed.
    pub(super) fn pass(&mut self, bytes: u64) {
        if let Place::Content(left) = &mut self.place {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                self.place = Place::Between;
            }
        }
    }

    /// The number of the head that is at fault, from 1, and why.
    pub(super) fn faulty(&self) -> Option<(u64, HeadAmbiguity)> {
        self.faulty
    }

    /// Looks at the next bytes. If a chunk in them is at fault, returns the number of bytes before
    /// it.
    pub(super) fn follow(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match &mut self.place {
                Place::Beyond => return None,
                Place::Content(left) => {
                    let now =
                        usize::try_from(*left).map_or(rest.len(), |left| left.min(rest.len()));
                    self.pass(now as u64);
                    at += now;
                }
                Place::Chunks(chunks) => match chunks.next(rest) {
                    Ok(piece) => {
                        at += piece.used;
                        if piece.end {
                            self.place = Place::Between;
                        }
                    }
                    Err(_) => {
                        self.place = Place::Beyond;
                        return Some(at);
                    }
                },
                Place::Between | Place::Head => at += self.take_line(rest),
            }
        }
        None
    }

    /// Takes a line, or the beginning of one; returns its length.
    fn take_line(&mut self, rest: &[u8]) -> usize {
        let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
            let room = MOST_KEPT.saturating_sub(self.line.len());
            self.line.extend_from_slice(&rest[..rest.len().min(room)]);
            return rest.len();
        };
        if self.line.is_empty() {
            self.read_line(&rest[..end]);
        } else {
            let mut line = std::mem::take(&mut self.line);
            line.extend_from_slice(&rest[..end.min(MOST_KEPT)]);
            self.read_line(&line);
        }
        end + 1
    }

    fn read_line(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match (&self.place, line) {
            (Place::Between, b"") => {}
            (Place::Between, b"PRI * HTTP/2.0") => self.place = Place::Beyond,
            (Place::Between, _) => {
                self.head = HeadFraming::default();
                self.place = Place::Head;
            }
            (_, b"") => self.end_head(),
            _ => self.head.note(line),
        }
    }

    fn end_head(&mut self) {
        self.heads += 1;
        self.place = match self.head.content() {
            Ok(Content::Length(0)) => Place::Between,
            Ok(Content::Length(left)) => Place::Content(left),
            Ok(Content::Chunks) => Place::Chunks(Chunked::new(self.allowance)),
            Ok(Content::Unknown) => Place::Beyond,
            Err(ambiguity) => {
                self.faulty = Some((self.heads, ambiguity));
                Place::Beyond
            }
        };
    }
}

/// How content ends.
enum Content {
    Length(u64),
    Chunks,
    /// The rules of heads refuse it.
    Unknown,
}

impl HeadFraming {
    fn note(&mut self, line: &[u8]) {
        // Of the other lines most are told by their first letter.
        if !matches!(line.first(), Some(b'c' | b'C' | b't' | b'T')) {
            return;
        }
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { return };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            self.lengths += 1;
            (self.length, self.digits) = (length(value), value.len());
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.is_chunked = !self.has_coding && value.eq_ignore_ascii_case(b"chunked");
            self.has_coding = true;
        }
    }

    fn content(&self) -> Result<Content, HeadAmbiguity> {
        match (self.has_coding, self.lengths) {
            (true, 1..) => Err(HeadAmbiguity::LengthAndCoding),
            (true, 0) if self.is_chunked => Ok(Content::Chunks),
            (true, 0) => Ok(Content::Unknown),
            (false, 0) => Ok(Content::Length(0)),
            (false, 1) if self.digits > LENGTH_DIGITS => Err(HeadAmbiguity::Length),
            (false, 1) => Ok(self.length.map_or(Content::Unknown, Content::Length)),
            (false, _) => Err(HeadAmbiguity::Lengths),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "Host: t\r\n";

    /// Follows in pieces of any size.
    fn followed(text: &str, piece: usize) -> (RequestFraming, Option<usize>) {
        let mut framing = RequestFraming::new(64);
        let mut before = 0;
        for bytes in text.as_bytes().chunks(piece) {
            if let Some(at) = framing.follow(bytes) {
                return (framing, Some(before + at));
            }
            before += bytes.len();
        }
        (framing, None)
    }

    #[test]
    fn heads_are_counted_whatever_stands_between_them() {
        let text = format!(
            "\r\nGET / HTTP/1.1\r\n{HOST}\r\nPOST / HTTP/1.1\r\ncontent-LENGTH: 5 \r\n{HOST}\r\n\
             a\r\n\r\nPOST / HTTP/1.1\nTransfer-Encoding: chunked\n\n3\r\n\r\n\r\r\n0\r\n\r\n\
             GET / HTTP/1.1\r\n{HOST}Cookie: {}\r\n\r\n",
            "x".repeat(1_000)
        );
        for piece in [1, 2, 7, 100, 10_000] {
            let (framing, broken) = followed(&text, piece);
            assert_eq!((framing.heads, framing.faulty(), broken), (4, None, None), "{piece}");
            assert!(matches!(framing.place, Place::Between));
        }
    }

    #[test]
    fn what_another_reader_could_read_differently_is_found() {
        let zeros = format!("Content-Length: {}3\r\n", "0".repeat(19));
        for (lines, ambiguity) in [
            ("Content-Length: 3\r\nContent-Length: 3\r\n", HeadAmbiguity::Lengths),
            (&*zeros, HeadAmbiguity::Length),
            ("Transfer-Encoding: chunked\r\ncontent-length: 3\r\n", HeadAmbiguity::LengthAndCoding),
        ] {
            let text =
                format!("GET / HTTP/1.1\r\n{HOST}\r\nPOST / HTTP/1.1\r\n{lines}{HOST}\r\nabc");
            for piece in [1, 30, 10_000] {
                let (framing, broken) = followed(&text, piece);
                assert_eq!((framing.faulty(), broken), (Some((2, ambiguity)), None), "{lines}");
            }
        }
        let head = format!("POST / HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n");
        let zeros = format!("{head}{}1\r\na\r\n0\r\n\r\n", "0".repeat(20));
        assert_eq!(followed(&zeros, 10_000).1, Some(head.len()));
        assert!(followed(&zeros, 1).1.is_some_and(|at| at <= head.len() + 16));
    }

    #[test]
    fn content_need_not_be_looked_at() {
        let (mut framing, _) =
            followed(&format!("POST / HTTP/1.1\r\nContent-Length: 9\r\n{HOST}\r\nab"), 1_000);
        assert_eq!(framing.unseen(), 7);
        framing.pass(7);
        assert_eq!(framing.unseen(), 0);
        framing.follow(b"GET / HTTP/1.1\r\n\r\n");
        assert_eq!(framing.heads, 2);
        let (framing, _) = followed("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 5);
        assert_eq!(framing.unseen(), u64::MAX);
    }

    #[test]
    fn the_rest_of_a_request_is_awaited_from_its_first_byte_to_its_last() {
        let mut framing = RequestFraming::new(100);
        let mut within = |bytes: &[u8]| {
            assert_eq!(framing.follow(bytes), None);
            framing.is_within()
        };
        for (bytes, awaited) in [
            (&b"POST / HTTP/1.1\r\nContent-Le"[..], true),
            (b"ngth: 3\r\n\r\n", true),
            (b"ab", true),
            (b"c", false),
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n", true),
            (b"a\r\n0\r\n\r\n", false),
        ] {
            assert_eq!(within(bytes), awaited, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
