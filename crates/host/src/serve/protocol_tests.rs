//! A protocol beside HTTP on every way to it: the lean loop, a plain listener, TLS, the second
//! address, a WebSocket.

use super::{ServingThreads, runtime, start_threads};
use crate::declare::routes;
use crate::http::face::{Face, ServedRoute};
use crate::http::{Answer, Host, Request, Response, TEXT};
use crate::protocol::{Protocol, ProtocolConnection};
use crate::settings::NoSettings;
use crate::setup::SetupError;
use crate::testing;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::watch;
use wellspring_tls::ClientTerms;
use wellspring_tls::testing::Authority;

const MAGIC: [u8; 4] = [0x60, 0x60, 0xb0, 0x17];

/// Sends back what comes, until a `.` or the end of the server, which it tells with `!`.
struct Echo(watch::Receiver<bool>);

impl Protocol for Echo {
    fn magic(&self) -> &'static [u8] {
        &MAGIC
    }

    fn serve(&self, connection: ProtocolConnection) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut stopping = self.0.clone();
        Box::pin(async move {
            let ProtocolConnection { mut stream, read, client } = connection;
            assert_eq!(client, Some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
            let mut piece = read.strip_prefix(&MAGIC).expect("the magic").to_vec();
            while !piece.ends_with(b".") {
                stream.write_all(&piece).await.expect("a client that reads");
                stream.flush().await.expect("a client that reads");
                piece.clear();
                tokio::select! {
                    read = stream.read_buf(&mut piece) => {
                        if read.is_ok_and(|bytes| bytes > 0) {
                            continue;
                        }
                        break;
                    }
                    _ = stopping.wait_for(|&stopping| stopping) => piece.extend_from_slice(b"!."),
                }
            }
            let _ = stream.write_all(&piece).await;
            let _ = stream.shutdown().await;
        })
    }
}

/// The file in the data folder in which the face leaves the address of its server.
const ADDRESS: &str = "address-of-the-test";

/// A face with that protocol and a route.
struct Echoes(Arc<Host>);

impl Face for Echoes {
    const NAME: &'static str = "echoes";
    type Settings = NoSettings;
    const ROUTES: &'static [ServedRoute<Echoes>] = routes! { |face| face;
        GET "/" Node Public here: "Where WebSockets begin." => [200 TEXT ""];
        GET "/here" Node Public here: "Whether it serves." => [200 TEXT ""];
    };

    fn open(_: NoSettings, host: &Arc<Host>) -> Result<Echoes, SetupError> {
        Ok(Echoes(Arc::clone(host)))
    }

    fn bound_to(&self, address: SocketAddr) {
        let file = self.0.process.data.join(ADDRESS);
        std::fs::write(file, address.to_string()).expect("a folder");
    }

    fn protocols(self: &Arc<Self>) -> Vec<Arc<dyn Protocol>> {
        vec![Arc::new(Echo(self.0.stopping.clone()))]
    }
}

async fn here(_: Arc<Echoes>, _: Box<Request>) -> Answer {
    Ok(Response::text(TEXT, "here"))
}

/// A server on a free port.
struct Serving {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    threads: ServingThreads,
    _main: tokio::runtime::Runtime,
}

impl Serving {
    fn start(data: &Path, flags: &[&str]) -> Serving {
        let flags = [&["--listen", "127.0.0.1:0"], flags].concat();
        let opened = testing::open_server::<Echoes>(data, &flags, None);
        let main = runtime("test", 1).expect("a runtime");
        let threads = start_threads(&opened.server, &main, "", None).expect("free ports");
        let address = std::fs::read_to_string(data.join(ADDRESS)).expect("an address");
        let address = address.parse().expect("an address");
        Serving { address, stop: opened.stop, threads, _main: main }
    }

    fn stop(self) {
        let _ = self.stop.send(true);
        self.threads.wakes.iter().for_each(|wake| wake());
        self.threads.threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    }
}

/// A connection whose reads fail instead of waiting forever.
fn connected(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a server");
    stream.set_read_timeout(Some(wellspring_patience::PATIENCE)).expect("a timeout");
    stream
}

/// The text that is read until the end of the connection.
fn read_to_end(stream: &mut impl Read) -> String {
    let mut text = String::new();
    match stream.read_to_string(&mut text) {
        // A server that ends without TLS's farewell, or with input unread.
        Err(error) if error.kind() != ErrorKind::WouldBlock => text,
        read => read.map(|_| text).expect("an end in time"),
    }
}

/// Speaks both protocols over connections that `connect` makes.
fn speaks_both<S: Read + Write>(connect: impl Fn() -> S) {
    let request = b"GET /here HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    // In one piece, with the magic alone, and byte by byte.
    for lengths in [vec![7], vec![4, 3], vec![1; 7]] {
        let mut client = connect();
        let mut rest = &[&MAGIC[..], b"ab."].concat()[..];
        for length in lengths {
            let (piece, after) = rest.split_at(length);
            client.write_all(piece).expect("a server");
            client.flush().expect("a server");
            rest = after;
        }
        assert_eq!(read_to_end(&mut client).trim_end_matches('.'), "ab");
        let mut client = connect();
        client.write_all(request).expect("a server");
        let answer = read_to_end(&mut client);
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nhere"),
            "{answer}"
        );
    }
}

/// Opens a WebSocket with these further headers. Returns the answer's status line, or headers.
fn opened(client: &mut (impl Read + Write), headers: &str) -> String {
    let request = format!(
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    );
    client.write_all(request.as_bytes()).expect("a server");
    client.flush().expect("a server");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).expect("an answer");
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("text").to_ascii_lowercase()
}

/// A frame of a client, whose mask changes nothing.
fn frame(content: &[u8]) -> Vec<u8> {
    [&[0x82, 0x80 | content.len() as u8, 0, 0, 0, 0], content].concat()
}

/// Speaks the protocol within a WebSocket.
fn speaks_within_a_websocket(mut client: impl Read + Write) {
    let head = opened(&mut client, "");
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
    for piece in [&MAGIC[..2], &MAGIC[2..], b"ab", b"c."] {
        client.write_all(&frame(piece)).expect("a server");
        client.flush().expect("a server");
    }
    let mut answer = Vec::new();
    // Over TLS, the end may come without a farewell.
    let _ = client.read_to_end(&mut answer);
    let letters = answer.iter().copied().filter(u8::is_ascii_alphabetic);
    assert_eq!(letters.collect::<Vec<_>>(), b"abc", "{answer:?}");
    assert!(answer.ends_with(&[0x88, 2, 0x03, 0xE8]), "{answer:?}");
}

#[test]
fn a_browser_speaks_a_protocol_within_a_websocket() {
    for lean in ["true", "false"] {
        let dir = TempDir::new().expect("a folder");
        let serving = Serving::start(dir.path(), &["--lean-loop", lean]);
        speaks_within_a_websocket(connected(serving.address));
        // The server's own pages may, those of others not.
        let own = format!("Origin: http://127.0.0.1:{}\r\n", serving.address.port());
        let head = opened(&mut connected(serving.address), &own);
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        let foreign = "Origin: https://evil.example\r\n";
        let head = opened(&mut connected(serving.address), foreign);
        assert!(head.starts_with("http/1.1 403 "), "{head}");
        serving.stop();
    }
}

#[test]
fn a_websocket_without_a_known_protocol_is_closed() {
    let dir = TempDir::new().expect("a folder");
    let serving = Serving::start(dir.path(), &["--header-timeout-ms", "100"]);
    for content in [&b"GET / HTTP/1.1"[..], &MAGIC[..2]] {
        let mut client = connected(serving.address);
        opened(&mut client, "");
        client.write_all(&frame(content)).expect("a server");
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("an end");
        assert_eq!(answer, [0x88, 2, 0x03, 0xE8]);
    }
    serving.stop();
}

#[test]
fn the_lean_loop_and_the_general_stack_hand_a_protocol_its_connections() {
    for lean in ["true", "false"] {
        let dir = TempDir::new().expect("a folder");
        let serving = Serving::start(dir.path(), &["--lean-loop", lean]);
        speaks_both(|| connected(serving.address));
        serving.stop();
    }
}

#[test]
fn a_protocol_is_spoken_within_tls_and_not_beside_it() {
    let dir = TempDir::new().expect("a folder");
    let authority = Authority::new();
    let (certificate, key) = authority.issue(dir.path(), "server", 2100);
    let flags = ["--tls-cert", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let data = dir.path().join("data");
    let serving = Serving::start(&data, &flags);
    let mut roots = rustls::RootCertStore::empty();
    let root = CertificateDer::from_pem_file(authority.written(dir.path())).expect("a certificate");
    roots.add(root).expect("an authority");
    let terms = ClientTerms::new("localhost", Some(roots), None).expect("terms");
    let mut config = rustls::ClientConfig::clone(&terms.config);
    // Drivers name no protocol.
    config.alpn_protocols.clear();
    let config = Arc::new(config);
    let connect = || {
        let client = rustls::ClientConnection::new(Arc::clone(&config), terms.name.clone());
        rustls::StreamOwned::new(client.expect("a client"), connected(serving.address))
    };
    speaks_both(connect);
    speaks_within_a_websocket(connect());
    let mut plain = connected(serving.address);
    plain.write_all(&[&MAGIC[..], b"ab."].concat()).expect("a server");
    assert!(!read_to_end(&mut plain).contains("ab"));
    serving.stop();
}

#[test]
fn a_second_address_serves_the_same() {
    let second = SocketAddr::from((Ipv4Addr::LOCALHOST, wellspring_patience::free_port()));
    let dir = TempDir::new().expect("a folder");
    let flags = ["--listen-also", &second.to_string()];
    let serving = Serving::start(dir.path(), &flags);
    speaks_both(|| connected(second));
    speaks_both(|| connected(serving.address));
    serving.stop();
}

#[test]
fn a_client_that_stops_within_the_magic_is_disconnected() {
    for lean in ["true", "false"] {
        let dir = TempDir::new().expect("a folder");
        let flags = ["--lean-loop", lean, "--header-timeout-ms", "100"];
        let serving = Serving::start(dir.path(), &flags);
        let mut client = connected(serving.address);
        client.write_all(&MAGIC[..3]).expect("a server");
        assert_eq!(read_to_end(&mut client), "", "lean loop: {lean}");
        serving.stop();
    }
}

#[test]
fn a_connection_learns_of_the_end_and_the_server_waits_for_it() {
    let dir = TempDir::new().expect("a folder");
    let serving = Serving::start(dir.path(), &[]);
    let mut client = connected(serving.address);
    client.write_all(&[&MAGIC[..], b"a"].concat()).expect("a server");
    client.read_exact(&mut [0]).expect("an echo");
    serving.stop();
    assert_eq!(read_to_end(&mut client), "!.");
}
