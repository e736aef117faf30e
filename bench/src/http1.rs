//! HTTP/1.1 as a client needs it here: a request written in one piece, an answer parsed with
//! `httparse`, and a blocking connection for the measurements at one client.

use crate::flags::Outcome;
use std::{
    io::{Read, Write},
    net::TcpStream,
};

/// Writes a whole request. An empty `content_type` means there is no body.
pub(crate) fn write_request(
    method: &str,
    host: &str,
    path: &str,
    accept: &str,
    content_type: &str,
    body: &[u8],
    out: &mut Vec<u8>,
) {
    write!(out, "{method} {path} HTTP/1.1\r\nHost: {host}\r\n").expect("a Vec grows as needed");
    if !accept.is_empty() {
        write!(out, "Accept: {accept}\r\n").expect("a Vec grows as needed");
    }
    if !content_type.is_empty() {
        write!(out, "Content-Type: {content_type}\r\nContent-Length: {}\r\n", body.len())
            .expect("a Vec grows as needed");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
}

/// How the body of an answer ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// After this many bytes.
    Length(usize),
    /// With the last chunk.
    Chunked,
}

/// The head of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// The status code.
    pub(crate) status: u16,
    /// Bytes the head takes, blank line included.
    pub(crate) length: usize,
    /// How the body ends.
    pub(crate) extent: Extent,
}

/// Parses the head of an answer; `None` if it is not complete yet.
pub(crate) fn parse_head(input: &[u8]) -> Outcome<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = response.parse(input)? else { return Ok(None) };
    let mut extent = Extent::Length(0);
    for header in response.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") {
            extent = Extent::Length(std::str::from_utf8(header.value)?.trim().parse()?);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            extent = Extent::Chunked;
        }
    }
    let status = response.code.ok_or("an answer without a status")?;
    Ok(Some(Head { status, length, extent }))
}

/// The number after `"name":` in a JSON answer, without parsing the rest.
pub(crate) fn number_after(body: &[u8], name: &str) -> Option<u64> {
    let mut wanted = [0u8; 32];
    let wanted = {
        let length = name.len() + 2;
        wanted[0] = b'"';
        wanted[1..=name.len()].copy_from_slice(name.as_bytes());
        wanted[name.len() + 1] = b'"';
        &wanted[..length]
    };
    let rest = &body[memchr::memmem::find(body, wanted)? + wanted.len()..];
    let start = rest.iter().position(u8::is_ascii_digit)?;
    let digits = rest[start..].iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// One blocking keep-alive connection.
pub(crate) struct HttpConnection {
    stream: TcpStream,
    host: String,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Bytes of the last request and of its answer's head and body.
    pub(crate) last_sizes: (usize, usize),
}

impl HttpConnection {
    /// Connects.
    pub(crate) fn open(address: &str) -> Outcome<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(120)))?;
        let host = address.to_owned();
        Ok(Self {
            stream,
            host,
            input: Vec::with_capacity(1 << 20),
            output: Vec::with_capacity(4096),
            last_sizes: (0, 0),
        })
    }

    /// Sends a request, with JSON if there is a body, and hands the answer's body to `each` as it
    /// arrives; returns the status.
    pub(crate) fn call(
        &mut self,
        method: &str,
        path: &str,
        accept: &str,
        body: Option<&[u8]>,
        each: impl FnMut(&[u8]),
    ) -> Outcome<u16> {
        self.call_with(method, path, accept, body.map(|body| ("application/json", body)), each)
    }

    /// The same with the body's content type.
    pub(crate) fn call_with(
        &mut self,
        method: &str,
        path: &str,
        accept: &str,
        body: Option<(&str, &[u8])>,
        mut each: impl FnMut(&[u8]),
    ) -> Outcome<u16> {
        self.output.clear();
        let (content_type, body) = body.unwrap_or_default();
        write_request(method, &self.host, path, accept, content_type, body, &mut self.output);
        self.stream.write_all(&self.output)?;
        self.input.clear();
        let head = loop {
            self.fill()?;
            if let Some(head) = parse_head(&self.input)? {
                break head;
            }
        };
        self.last_sizes.0 = self.output.len();
        self.last_sizes.1 = head.length;
        self.input.drain(..head.length);
        match head.extent {
            Extent::Length(length) => self.pass_exactly(length, &mut each)?,
            Extent::Chunked => loop {
                let size = self.chunk_size()?;
                self.pass_exactly(size, &mut each)?;
                self.drop_line_end()?;
                if size == 0 {
                    break;
                }
            },
        }
        Ok(head.status)
    }

    fn fill(&mut self) -> Outcome<()> {
        let used = self.input.len();
        self.input.resize(used + (1 << 18), 0);
        let read = self.stream.read(&mut self.input[used..])?;
        self.input.truncate(used + read);
        if read == 0 { Err("the server closed the connection".into()) } else { Ok(()) }
    }

    fn pass_exactly(&mut self, mut length: usize, each: &mut impl FnMut(&[u8])) -> Outcome<()> {
        self.last_sizes.1 += length;
        loop {
            let part = length.min(self.input.len());
            if part > 0 {
                each(&self.input[..part]);
                self.input.drain(..part);
                length -= part;
            }
            if length == 0 {
                return Ok(());
            }
            self.fill()?;
        }
    }

    fn chunk_size(&mut self) -> Outcome<usize> {
        loop {
            match httparse::parse_chunk_size(&self.input).map_err(|_| "a broken chunk size")? {
                httparse::Status::Complete((used, size)) => {
                    self.input.drain(..used);
                    return Ok(size as usize);
                }
                httparse::Status::Partial => self.fill()?,
            }
        }
    }

    fn drop_line_end(&mut self) -> Outcome<()> {
        while self.input.len() < 2 {
            self.fill()?;
        }
        self.input.drain(..2);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_numbers_are_found() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{\"last\": 77}";
        let head = parse_head(answer).expect("valid").expect("complete");
        assert_eq!((head.status, head.extent), (200, Extent::Length(12)));
        assert_eq!(number_after(&answer[head.length..], "last"), Some(77));
        assert_eq!(number_after(&answer[head.length..], "head"), None);
        assert!(parse_head(&answer[..20]).expect("valid").is_none());
    }
}
