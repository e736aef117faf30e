//! A TLS server of the test's own before a null server.

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use wellspring_load::engine::spawn;
use wellspring_load::null_server::NullServer;

/// What the server does with each connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Speaks TLS on all.
    Well,
    /// Speaks TLS on the first, and something else afterwards.
    WellOnce,
    /// Answers once without a length and says goodbye.
    Goodbye,
    /// Answers once without a length and hangs up.
    HangUp,
}

/// Starts a server that offers these protocols by ALPN; it runs for the rest of the test process.
pub(crate) fn serve(alpn: &[&str], manner: Manner) -> SocketAddr {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("certificate.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    spawn("tls-server", move || {
        let null = NullServer::start(None).unwrap();
        for (number, socket) in listener.incoming().flatten().enumerate() {
            let (config, behind) = (Arc::clone(&config), null.address());
            let garbled = manner == Manner::WellOnce && number > 0;
            spawn("tls-peer", move || {
                if garbled {
                    let _ = (&socket).write_all(b"HTTP/1.1 400 not so\r\n\r\n");
                    let _ = (&socket).read(&mut [0; 1024]);
                } else if matches!(manner, Manner::Goodbye | Manner::HangUp) {
                    let _ = answer_once(&config, socket, manner);
                } else {
                    let _ = relay(&config, socket, behind);
                }
            })
            .unwrap();
        }
    })
    .unwrap();
    address
}

/// Answers one request with a body that ends with the connection.
fn answer_once(config: &Arc<ServerConfig>, socket: TcpStream, manner: Manner) -> io::Result<()> {
    let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
    let mut outside = rustls::StreamOwned::new(connection, socket);
    // A request without a body is small enough to come at once.
    let _whole = outside.read(&mut [0; 4096])?;
    outside.write_all(b"HTTP/1.1 200 OK\r\n\r\nall or not all")?;
    if manner == Manner::Goodbye {
        outside.conn.send_close_notify();
    }
    outside.flush()
}

/// Carries bytes both ways until one side ends.
fn relay(config: &Arc<ServerConfig>, socket: TcpStream, behind: SocketAddr) -> io::Result<()> {
    let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
    let mut outside = rustls::StreamOwned::new(connection, socket);
    let mut inside = TcpStream::connect(behind)?;
    outside.sock.set_nonblocking(true)?;
    outside.sock.set_nodelay(true)?;
    inside.set_nodelay(true)?;
    inside.set_read_timeout(Some(Duration::from_millis(1)))?;
    let mut buffer = [0; 4096];
    loop {
        // The peer's bytes first, as long as there are any; then an answer is waited for a moment,
        // which is pause enough.
        match outside.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                inside.write_all(&buffer[..count])?;
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                // The alert that says why.
                let _ = outside.flush();
                return Err(error);
            }
        }
        match inside.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                outside.conn.writer().write_all(&buffer[..count])?;
                while outside.conn.wants_write() {
                    match outside.conn.write_tls(&mut outside.sock) {
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
}
