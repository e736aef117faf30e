//! A minimal HTTP/1.1 client: one connection, one request at a time.

use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use wellspring_patience::PATIENCE;

/// Over a socket, or any stream.
pub struct Client<S = TcpStream> {
    stream: BufReader<S>,
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("UTF-8")
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// Asserts the status and returns the body.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// Asserts a problem of this kind and returns it.
    #[track_caller]
    pub fn problem(&self, status: u16) -> Value {
        let problem = self.expect(status);
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert_eq!(problem["status"], status);
        for member in ["type", "title", "detail"] {
            assert!(problem[member].is_string(), "{member} of {problem}");
        }
        problem
    }
}

impl From<TcpStream> for Client {
    fn from(stream: TcpStream) -> Client {
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Client::over(stream)
    }
}

impl Client {
    pub fn connect(address: SocketAddr) -> io::Result<Client> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_nodelay(true)?;
        Ok(Client::from(stream))
    }

    /// Waits longer for each answer, for tests that load the disk or threads that are niced.
    pub fn patient(self) -> Client {
        let timeout = Some(10 * PATIENCE);
        self.stream.get_ref().set_read_timeout(timeout).expect("a socket");
        self
    }
}

impl<S: Read + Write> Client<S> {
    pub fn over(stream: S) -> Client<S> {
        Client { stream: BufReader::new(stream) }
    }

    /// The underlying stream; anything read ahead is lost.
    pub fn into_stream(self) -> S {
        self.stream.into_inner()
    }

    pub fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.call("GET", path, &[], b"")
    }

    pub fn post(&mut self, path: &str, body: &Value) -> io::Result<Answer> {
        let headers = [("Content-Type", "application/json")];
        self.call("POST", path, &headers, body.to_string().as_bytes())
    }

    pub fn call(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: test\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() || method == "POST" || method == "PUT" {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        let mut bytes = request.into_bytes();
        bytes.extend_from_slice(body);
        self.send(&bytes)?;
        self.answer()
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// One line of the answer, without its end; `None` at the end of the stream.
    pub fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
    }

    pub fn answer(&mut self) -> io::Result<Answer> {
        let (status, headers) = self.head()?;
        let find = |name: &str| {
            headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v.clone())
        };
        let mut body = Vec::new();
        if find("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
            self.chunks(&mut body)?;
        } else if let Some(length) = find("content-length") {
            let length = length.parse().map_err(|_| io::ErrorKind::InvalidData)?;
            body.resize(length, 0);
            self.stream.read_exact(&mut body)?;
        }
        Ok(Answer { status, headers, body })
    }

    /// The status line and the headers.
    pub fn head(&mut self) -> io::Result<(u16, Vec<(String, String)>)> {
        let line = self.line()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        Ok((status, headers))
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let line = self.line()?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let length = usize::from_str_radix(line.trim(), 16);
            let length = length.map_err(|_| io::ErrorKind::InvalidData)?;
            let start = body.len();
            body.resize(start + length, 0);
            self.stream.read_exact(&mut body[start..])?;
            self.line()?;
            if length == 0 {
                return Ok(());
            }
        }
    }
}

/// The content of an answer, without headers about the connection, the request or the time.
pub fn said(answer: &Answer) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let mut headers = answer.headers.clone();
    headers.iter_mut().for_each(|(name, _)| name.make_ascii_lowercase());
    // Two servers, so two logs, each with a history.
    let apart = ["connection", "content-length", "date", "wellspring-history", "x-request-id"];
    headers.retain(|(name, _)| !apart.contains(&name.as_str()));
    headers.sort();
    (answer.status, headers, answer.body.clone())
}
