//! A tiny HTTP server for the tools' tests: it answers what a closure says.

use crate::Client;
use crate::endpoint::Endpoint;
use crate::trust::Trust;
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
    dripped: bool,
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
        Reply { bytes: bytes.as_bytes().to_vec(), hang_up: false, dripped: false }
    }

    /// And then the connection is closed.
    pub fn then_hang_up(mut self) -> Reply {
        self.hang_up = true;
        self
    }

    /// One byte at a time, as a slow network may.
    pub fn dripped(mut self) -> Reply {
        self.dripped = true;
        self
    }

    fn write(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        let size = if self.dripped { 1 } else { self.bytes.len().max(1) };
        self.bytes.chunks(size).try_for_each(|piece| stream.write_all(piece))
    }
}

/// Listens on a free port until the test's process ends.
pub struct TestServer {
    url: String,
    connections: Arc<AtomicUsize>,
}

impl TestServer {
    /// Starts it; the closure also gets how many requests came before.
    pub fn start(
        answer: impl Fn(&SeenRequest, usize) -> Reply + Send + Sync + 'static,
    ) -> TestServer {
        let requests = AtomicUsize::new(0);
        TestServer::listen(move |stream| serve(stream, &answer, &requests))
    }

    /// Starts one that answers when it has the head of a request, and never reads what follows.
    pub fn start_deaf(reply: Reply) -> TestServer {
        TestServer::listen(move |stream| {
            let mut reader = BufReader::new(stream);
            if read_lines(&mut reader).is_some() && reply.write(reader.get_mut()).is_ok() {
                // Until the process ends: closing it would tell the client that the server
                // does not read.
                std::mem::forget(reader);
            }
        })
    }

    #[allow(clippy::disallowed_methods)] // test only
    fn listen(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> TestServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let serve = Arc::new(serve);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(stream.unwrap()));
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
        if reply.write(reader.get_mut()).is_err() || reply.hang_up {
            return;
        }
    }
}

/// The lines of a head.
fn read_lines(reader: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => return Some(lines),
            line => lines.push(line.to_owned()),
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<SeenRequest> {
    let lines = read_lines(reader)?;
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
