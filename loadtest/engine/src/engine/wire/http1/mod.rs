//! HTTP/1.1 (RFC 9112), the client's side of one connection: one request under way at a time.

use super::{Advance, LARGEST_KEPT_BYTES, Layout, ServerFacts};
use crate::result::ErrorKind;
use crate::workload::{Answer, Head, Needs, Request};
use std::io::Write as _;

/// The largest answer head.
const LARGEST_HEAD_BYTES: usize = 256 << 10;
/// The most header fields of an answer.
const MOST_FIELDS: usize = 256;
/// The longest line that gives a chunk's size.
const LONGEST_CHUNK_LINE: usize = 4096;

/// How the end of a body is found (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// What one answer head said.
#[derive(Clone, Copy, Debug)]
struct Parsed {
    status: u16,
    framing: Framing,
    keeps_alive: bool,
    from_cache: bool,
}

/// The last answer head and what it said. Servers repeat themselves: while the
/// bytes are the same, so is their meaning, and comparing is cheaper than parsing.
#[derive(Debug, Default)]
pub(crate) struct HeadCache {
    bytes: Vec<u8>,
    parsed: Option<Parsed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is under way.
    Free,
    /// Waiting for the end of the head.
    Head,
    /// So many bytes of the body are missing.
    Length(u64),
    /// Until the peer closes.
    UntilClose,
    /// Before or within the line that gives a chunk's size.
    ChunkSize,
    /// So many bytes of the chunk are missing, its line end included.
    Chunk(u64),
    /// Within the trailer section.
    Trailers,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Http1 {
    state: State,
    /// Input that is not complete enough to use: a head, a chunk's size line, trailers.
    kept: Vec<u8>,
    to_head_request: bool,
    needs: Needs,
    phases: bool,
    begun: bool,
    status: u16,
    keeps_alive: bool,
    asked_to_close: bool,
    head: Vec<u8>,
    body: Vec<u8>,
    body_bytes: u64,
    /// The requests that stand for themselves, laid out: by [`Request::fixed`].
    fixed: Option<(u32, Vec<u8>)>,
}

impl Http1 {
    /// A fresh connection.
    pub(crate) fn new(phases: bool) -> Self {
        Http1 {
            state: State::Free,
            kept: Vec::new(),
            to_head_request: false,
            needs: Needs::default(),
            phases,
            begun: false,
            status: 0,
            keeps_alive: true,
            asked_to_close: false,
            head: Vec::new(),
            body: Vec::new(),
            body_bytes: 0,
            fixed: None,
        }
    }

    pub(super) fn send(
        &mut self,
        _place: u32,
        request: &Request<'_>,
        needs: Needs,
        layout: Layout<'_>,
        out: &mut Vec<u8>,
    ) {
        debug_assert_eq!(self.state, State::Free);
        self.state = State::Head;
        self.needs = needs;
        self.begun = false;
        self.to_head_request = request.method == "HEAD";
        self.asked_to_close = !layout.keep_alive;
        self.keeps_alive = true;
        self.body_bytes = 0;
        self.body.clear();
        match (request.fixed, &self.fixed) {
            (Some(number), Some((there, bytes))) if number == *there => {
                out.extend_from_slice(bytes);
            }
            (Some(number), _) => {
                let mut bytes = Vec::new();
                write_request(request, layout, &mut bytes);
                out.extend_from_slice(&bytes);
                self.fixed = Some((number, bytes));
            }
            (None, _) => write_request(request, layout, out),
        }
    }

    pub(super) fn advance(
        &mut self,
        input: &[u8],
        heads: &mut HeadCache,
        seen: &mut ServerFacts,
    ) -> Result<Advance, ErrorKind> {
        if self.state == State::Free {
            // An answer to nothing: whatever it is, it cannot be matched to a request.
            return if input.is_empty() { Ok(Advance::More) } else { Err(ErrorKind::Protocol) };
        }
        if self.phases && !self.begun && !input.is_empty() {
            self.begun = true;
            return Ok(Advance::Begun { used: 0, place: 0 });
        }
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let (taken, complete) = match self.state {
                State::Free => return self.complete(used, input),
                State::Head => self.read_head(rest, heads, seen)?,
                State::Length(missing) => self.read_length(rest, missing)?,
                State::UntilClose => {
                    self.keep_body(rest)?;
                    (rest.len(), Complete::No)
                }
                State::ChunkSize => self.read_chunk_size(rest)?,
                State::Chunk(missing) => self.read_chunk(rest, missing)?,
                State::Trailers => self.read_trailers(rest)?,
            };
            used += taken;
            match complete {
                Complete::Part => {}
                Complete::Whole => self.state = State::Free,
                Complete::No => return Ok(Advance::More),
            }
        }
    }

    fn complete(&mut self, used: usize, input: &[u8]) -> Result<Advance, ErrorKind> {
        // One request, one answer: bytes beyond it make the answer itself doubtful.
        if used < input.len() {
            return Err(ErrorKind::Protocol);
        }
        Ok(Advance::Answered { used, place: 0 })
    }

    pub(super) fn closed(&mut self) -> Result<u32, ErrorKind> {
        match self.state {
            State::UntilClose => {
                self.state = State::Free;
                self.keeps_alive = false;
                Ok(0)
            }
            _ => Err(ErrorKind::Closed),
        }
    }

    pub(super) fn awaits_first_byte(&self) -> bool {
        self.state == State::Head && self.kept.is_empty()
    }

    pub(super) fn reusable(&self) -> bool {
        self.keeps_alive && !self.asked_to_close
    }

    pub(super) fn answer(&self, _place: u32, endpoint: u16) -> Answer<'_> {
        Answer {
            endpoint,
            status: self.status,
            head: if self.needs.head { fields(&self.head) } else { Head::default() },
            body: &self.body,
            body_bytes: self.body_bytes,
        }
    }

    /// Reads up to the end of the head; interim answers (1xx) are passed over.
    fn read_head(
        &mut self,
        rest: &[u8],
        heads: &mut HeadCache,
        seen: &mut ServerFacts,
    ) -> Result<(usize, Complete), ErrorKind> {
        if self.kept.is_empty()
            && !self.needs.head
            && let Some(parsed) = heads.parsed
            && rest.starts_with(&heads.bytes)
        {
            seen.cache_hits += u64::from(parsed.from_cache);
            return Ok((heads.bytes.len(), self.begin_body(parsed)));
        }
        let before = self.kept.len();
        let whole: &[u8] = if before == 0 {
            rest
        } else {
            self.kept.extend_from_slice(rest);
            &self.kept
        };
        let Some((length, parsed)) = parse_head(whole, seen)? else {
            if before == 0 {
                self.kept.extend_from_slice(rest);
            }
            if self.kept.len() > LARGEST_HEAD_BYTES {
                return Err(ErrorKind::TooLarge);
            }
            return Ok((rest.len(), Complete::No));
        };
        let interim = (100..200).contains(&parsed.status);
        if parsed.status == 101 {
            return Err(ErrorKind::Protocol);
        }
        if !interim {
            if self.needs.head {
                self.head.clear();
                self.head.extend_from_slice(&whole[..length]);
            }
            heads.bytes.clear();
            heads.bytes.extend_from_slice(&whole[..length]);
            heads.parsed = Some(parsed);
        }
        self.kept.clear();
        let taken = length - before;
        if interim {
            return Ok((taken, Complete::Part));
        }
        seen.cache_hits += u64::from(parsed.from_cache);
        Ok((taken, self.begin_body(parsed)))
    }

    fn begin_body(&mut self, parsed: Parsed) -> Complete {
        self.status = parsed.status;
        self.keeps_alive = parsed.keeps_alive;
        let without_body = self.to_head_request || matches!(parsed.status, 204 | 304);
        self.state = match parsed.framing {
            _ if without_body => return Complete::Whole,
            Framing::Length(0) => return Complete::Whole,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::ChunkSize,
            Framing::UntilClose => {
                self.keeps_alive = false;
                State::UntilClose
            }
        };
        Complete::Part
    }

    fn keep_body(&mut self, part: &[u8]) -> Result<(), ErrorKind> {
        self.body_bytes += part.len() as u64;
        if self.needs.body {
            if self.body.len() + part.len() > LARGEST_KEPT_BYTES {
                return Err(ErrorKind::TooLarge);
            }
            self.body.extend_from_slice(part);
        }
        Ok(())
    }

    fn read_length(&mut self, rest: &[u8], missing: u64) -> Result<(usize, Complete), ErrorKind> {
        let part = at_most(rest, missing);
        self.keep_body(part)?;
        let left = missing - part.len() as u64;
        self.state = State::Length(left);
        Ok((part.len(), if left == 0 { Complete::Whole } else { Complete::No }))
    }

    fn read_chunk(&mut self, rest: &[u8], missing: u64) -> Result<(usize, Complete), ErrorKind> {
        // The last two bytes are the line end after the data.
        let data = at_most(rest, missing.saturating_sub(2));
        self.keep_body(data)?;
        let mut left = missing - data.len() as u64;
        let mut taken = data.len();
        while left <= 2 && left > 0 && taken < rest.len() {
            if rest[taken] != [b'\n', b'\r'][usize::from(left == 2)] {
                return Err(ErrorKind::Protocol);
            }
            taken += 1;
            left -= 1;
        }
        self.state = if left == 0 { State::ChunkSize } else { State::Chunk(left) };
        Ok((taken, if left == 0 { Complete::Part } else { Complete::No }))
    }

    /// Takes one line without its end, if it is there; what is not is kept.
    fn take_line(&mut self, rest: &[u8]) -> Result<(usize, Option<Vec<u8>>), ErrorKind> {
        let end = rest.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(rest.len(), |end| end + 1);
        self.kept.extend_from_slice(&rest[..taken]);
        if self.kept.len() > LONGEST_CHUNK_LINE {
            return Err(ErrorKind::Protocol);
        }
        if end.is_none() {
            return Ok((taken, None));
        }
        let mut line = std::mem::take(&mut self.kept);
        line.pop();
        if line.pop() != Some(b'\r') {
            return Err(ErrorKind::Protocol);
        }
        Ok((taken, Some(line)))
    }

    fn read_chunk_size(&mut self, rest: &[u8]) -> Result<(usize, Complete), ErrorKind> {
        let (taken, line) = self.take_line(rest)?;
        let Some(line) = line else { return Ok((taken, Complete::No)) };
        let digits = line.split(|byte| matches!(byte, b';' | b' ' | b'\t')).next();
        let size = digits
            .filter(|digits| !digits.is_empty() && digits.len() <= 15)
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .ok_or(ErrorKind::Protocol)?;
        self.state = if size == 0 { State::Trailers } else { State::Chunk(size + 2) };
        Ok((taken, Complete::Part))
    }

    fn read_trailers(&mut self, rest: &[u8]) -> Result<(usize, Complete), ErrorKind> {
        let (taken, line) = self.take_line(rest)?;
        Ok(match line {
            None => (taken, Complete::No),
            Some(line) if line.is_empty() => (taken, Complete::Whole),
            Some(_) => (taken, Complete::Part),
        })
    }
}

/// Whether a step of reading finished what it was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Complete {
    /// More input is needed.
    No,
    /// This part is done, the next one follows.
    Part,
    /// The answer is complete.
    Whole,
}

fn at_most(bytes: &[u8], most: u64) -> &[u8] {
    let end = usize::try_from(most).map_or(bytes.len(), |most| most.min(bytes.len()));
    &bytes[..end]
}

fn write_request(request: &Request<'_>, layout: Layout<'_>, out: &mut Vec<u8>) {
    let Request { method, path, headers, body, .. } = request;
    // Writing to memory cannot fail.
    let _ = write!(out, "{method} {path} HTTP/1.1\r\nHost: {}\r\n", layout.authority);
    for (name, value) in *headers {
        let _ = write!(out, "{name}: {value}\r\n");
    }
    if !body.is_empty() || matches!(*method, "POST" | "PUT" | "PATCH") {
        let _ = write!(out, "Content-Length: {}\r\n", body.len());
    }
    if !layout.keep_alive {
        out.extend_from_slice(b"Connection: close\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
}

/// The header fields of a head that [`parse_head`] accepted.
fn fields(head: &[u8]) -> Head<'_> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut response = httparse::Response::new(&mut headers);
    let _ = response.parse(head);
    let named = |field: &httparse::Header<'_>| {
        (field.name.to_owned().into(), String::from_utf8_lossy(field.value).into_owned().into())
    };
    Head(response.headers.iter().filter(|field| !field.name.is_empty()).map(named).collect())
}

/// The length of the head and what it says; `None` if it is not complete.
fn parse_head(bytes: &[u8], seen: &mut ServerFacts) -> Result<Option<(usize, Parsed)>, ErrorKind> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(ErrorKind::Protocol),
    };
    let status = response.code.filter(|status| (100..1000).contains(status));
    let status = status.ok_or(ErrorKind::Protocol)?;
    let mut content_length: Option<u64> = None;
    let mut chunked = false;
    let mut keeps_alive = response.version == Some(1);
    let mut from_cache = status == 304;
    for field in response.headers.iter() {
        let value = field.value.trim_ascii();
        if field.name.eq_ignore_ascii_case("content-length") {
            let given = parse_length(value)?;
            if content_length.is_some_and(|before| before != given) {
                return Err(ErrorKind::Protocol);
            }
            content_length = Some(given);
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
            chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
        } else if field.name.eq_ignore_ascii_case("connection") {
            let has = |word: &[u8]| {
                value.split(|byte| *byte == b',').any(|w| w.trim_ascii().eq_ignore_ascii_case(word))
            };
            keeps_alive = !has(b"close") && (keeps_alive || has(b"keep-alive"));
        } else if field.name.eq_ignore_ascii_case("age") {
            from_cache |= value != b"0";
        } else if field.name.eq_ignore_ascii_case("x-cache") {
            from_cache |= value.len() >= 3 && value[..3].eq_ignore_ascii_case(b"hit");
        } else if field.name.eq_ignore_ascii_case("server") && seen.server.is_none() {
            seen.server = Some(String::from_utf8_lossy(value).into_owned());
        }
    }
    let framing = if chunked {
        Framing::Chunked
    } else {
        content_length.map_or(Framing::UntilClose, Framing::Length)
    };
    Ok(Some((length, Parsed { status, framing, keeps_alive, from_cache })))
}

fn parse_length(value: &[u8]) -> Result<u64, ErrorKind> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(ErrorKind::Protocol);
    }
    std::str::from_utf8(value)
        .ok()
        .and_then(|digits| digits.parse().ok())
        .ok_or(ErrorKind::Protocol)
}

#[cfg(test)]
mod tests;
