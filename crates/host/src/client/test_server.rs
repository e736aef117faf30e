//! A tiny HTTP server for the tools' tests: it answers what a closure says.

use crate::client::Client;
use crate::client::endpoint::Endpoint;
use crate::client::trust::Trust;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A request as it came.
#[derive(Debug, Clone)]
pub struct SeenRequest {
    /// `GET`, …
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl SeenRequest {
    /// A header's value, or the empty text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v)
    }
}

/// What to answer.
#[derive(Debug, Clone)]
pub struct Reply {
    bytes: Vec<u8>,
    hang_up: bool,
}

impl Reply {
    /// An answer with a JSON body.
    pub fn json(status: u16, body: &str) -> Reply {
        Reply::typed(status, "application/json", body)
    }

    /// An answer with a body of a type.
    pub fn typed(status: u16, media: &str, body: &str) -> Reply {
        let length = body.len();
        Reply::raw(&format!(
            "HTTP/1.1 {status} X\r\nContent-Type: {media}\r\nContent-Length: {length}\r\nRetry-After: 0\r\n\r\n{body}"
        ))
    }

    /// These bytes.
    pub fn raw(bytes: &str) -> Reply {
        Reply { bytes: bytes.as_bytes().to_vec(), hang_up: false }
    }

    /// And then the connection is closed.
    pub fn then_hang_up(mut self) -> Reply {
        self.hang_up = true;
        self
    }
}

/// Listens on a free port until the test's process ends.
pub struct TestServer {
    url: String,
    connections: Arc<AtomicUsize>,
}

impl TestServer {
    /// Starts it; the closure also gets how many requests came before.
    #[allow(clippy::disallowed_methods)] // test only
    pub fn start(
        answer: impl Fn(&SeenRequest, usize) -> Reply + Send + Sync + 'static,
    ) -> TestServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let (count, requests) = (Arc::clone(&connections), Arc::new(AtomicUsize::new(0)));
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
                let (answer, requests) = (Arc::clone(&answer), Arc::clone(&requests));
                std::thread::spawn(move || serve(stream.unwrap(), &*answer, &requests));
            }
        });
        TestServer { url, connections }
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A client for it.
    pub fn client(&self) -> Client {
        Client::new(Endpoint::parse(&self.url).unwrap(), &Trust::default()).unwrap()
    }

    /// Connections taken so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn serve(stream: TcpStream, answer: &dyn Fn(&SeenRequest, usize) -> Reply, requests: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    while let Some(seen) = read(&mut reader) {
        let reply = answer(&seen, requests.fetch_add(1, Ordering::SeqCst));
        if reader.get_mut().write_all(&reply.bytes).is_err() || reply.hang_up {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<SeenRequest> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut first = lines.first()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let split = |line: &String| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_ascii_lowercase(), value.trim().to_owned())
    };
    let headers: Vec<_> = lines[1..].iter().map(split).collect();
    let mut seen = SeenRequest { method, path, headers, body: Vec::new() };
    seen.body = vec![0; seen.header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut seen.body).ok()?;
    Some(seen)
}
