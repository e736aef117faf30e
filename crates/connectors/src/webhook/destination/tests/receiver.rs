//! A scripted receiver of webhooks.

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A received request.
#[derive(Debug, Clone)]
pub(super) struct ReceivedRequest {
    pub(super) line: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl ReceivedRequest {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} twice: {self:?}");
        value
    }

    pub(super) fn position(&self) -> u64 {
        self.header("wellspring-position").unwrap().parse().unwrap()
    }
}

/// A scripted reaction.
pub(super) enum Reply {
    /// Sends these bytes; the connection stays open.
    Send(String),
    /// The same after a delay.
    SendLater(Duration, String),
    /// Sends these bytes and closes the connection without announcing that.
    SendAndClose(String),
    /// Closes the connection without a response.
    Close,
    /// Sends nothing; the connection stays open.
    Silence,
    /// Sends this head, and bytes until the client stops reading.
    Endless(String),
}

impl Reply {
    pub(super) fn status(status: u16) -> Reply {
        Reply::Send(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"))
    }

    pub(super) fn text(status: u16, text: &str) -> Reply {
        let length = text.len();
        Reply::Send(format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{text}"))
    }
}

type Script = dyn FnMut(&ReceivedRequest) -> Reply + Send;

struct Shared {
    script: Mutex<Box<Script>>,
    received: Mutex<Vec<ReceivedRequest>>,
    tls: Option<Arc<ServerConfig>>,
    ending: AtomicBool,
    connections: AtomicUsize,
    active: AtomicUsize,
    most_active: AtomicUsize,
    endless_bytes: AtomicUsize,
}

/// A receiver on its own port.
pub(super) struct Receiver {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Receiver {
    pub(super) fn start(
        script: impl FnMut(&ReceivedRequest) -> Reply + Send + 'static,
    ) -> Receiver {
        Receiver::on(TcpListener::bind("127.0.0.1:0").unwrap(), None, script)
    }

    #[allow(clippy::disallowed_methods)] // threads of a test
    pub(super) fn on(
        listener: TcpListener,
        tls: Option<Arc<ServerConfig>>,
        script: impl FnMut(&ReceivedRequest) -> Reply + Send + 'static,
    ) -> Receiver {
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            received: Mutex::default(),
            tls,
            ending: AtomicBool::default(),
            connections: AtomicUsize::default(),
            active: AtomicUsize::default(),
            most_active: AtomicUsize::default(),
            endless_bytes: AtomicUsize::default(),
        });
        let of_listener = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if of_listener.ending.load(SeqCst) {
                    return;
                }
                let of_stream = Arc::clone(&of_listener);
                of_stream.connections.fetch_add(1, SeqCst);
                std::thread::spawn(move || of_stream.serve(stream.unwrap()));
            }
        });
        Receiver { address, shared }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hook?token=of-the-url", self.address)
    }

    pub(super) fn received(&self) -> Vec<ReceivedRequest> {
        self.shared.received.lock().unwrap().clone()
    }

    pub(super) fn positions(&self) -> Vec<u64> {
        self.received().iter().map(ReceivedRequest::position).collect()
    }

    pub(super) fn connections(&self) -> usize {
        self.shared.connections.load(SeqCst)
    }

    /// Maximum number of concurrent requests.
    pub(super) fn most_active(&self) -> usize {
        self.shared.most_active.load(SeqCst)
    }

    pub(super) fn endless_bytes(&self) -> usize {
        self.shared.endless_bytes.load(SeqCst)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.ending.store(true, SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        match &self.tls {
            None => self.converse(stream),
            Some(config) => {
                let connection = ServerConnection::new(Arc::clone(config)).unwrap();
                self.converse(StreamOwned::new(connection, stream));
            }
        }
    }

    fn converse(&self, stream: impl Read + Write) {
        let mut stream = BufReader::new(stream);
        while let Some(request) = read(&mut stream) {
            let active = self.active.fetch_add(1, SeqCst) + 1;
            self.most_active.fetch_max(active, SeqCst);
            let reply = {
                let mut script = self.script.lock().unwrap();
                self.received.lock().unwrap().push(request.clone());
                script(&request)
            };
            if let Reply::SendLater(time, _) = &reply {
                std::thread::sleep(*time);
            }
            self.active.fetch_sub(1, SeqCst);
            match reply {
                Reply::Send(bytes) | Reply::SendLater(_, bytes) => {
                    if stream.get_mut().write_all(bytes.as_bytes()).is_err() {
                        return;
                    }
                }
                Reply::SendAndClose(bytes) => {
                    let _ = stream.get_mut().write_all(bytes.as_bytes());
                    return;
                }
                Reply::Close => return,
                Reply::Silence => {
                    let _ = stream.read(&mut [0]);
                    return;
                }
                Reply::Endless(head) => {
                    let _ = stream.get_mut().write_all(head.as_bytes());
                    let chunk = [b'x'; 4096];
                    while stream.get_mut().write_all(&chunk).is_ok() {
                        self.endless_bytes.fetch_add(chunk.len(), SeqCst);
                    }
                    return;
                }
            }
        }
    }
}

fn read(stream: &mut BufReader<impl Read>) -> Option<ReceivedRequest> {
    let mut line = || {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
        Some(line.strip_suffix("\r\n").expect("CRLF").to_owned())
    };
    let mut request = ReceivedRequest { line: line()?, headers: Vec::new(), body: Vec::new() };
    loop {
        let header = line()?;
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').expect("a header");
        request.headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let length = request.header("content-length").expect("a length").parse().unwrap();
    request.body = vec![0; length];
    stream.read_exact(&mut request.body).ok()?;
    Some(request)
}
