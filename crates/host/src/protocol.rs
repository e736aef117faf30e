//! Protocols beside HTTP on the same ports: told from it by the first bytes of a connection.
//!
//! ```text
//! lean loop ─ socket and the bytes read ─┐
//! listener ─ (TLS) ─► first bytes ───────┴─► a protocol's magic ─► the protocol
//!                                            anything else ──────► HTTP
//!                            first bytes ◄─ WebSocket of a browser ─┘
//! ```

use crate::socket::{CountedStream, Socket, WebSocket};
use crate::stats::Stats;
use bytes::{Bytes, BytesMut};
use rustix::net::sockopt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::TcpStream;

/// A protocol beside HTTP.
pub trait Protocol: Send + Sync {
    /// The bytes with which its clients begin. No HTTP request begins so: one of the first four is
    /// in no method's name.
    fn magic(&self) -> &'static [u8];

    /// Serves a connection until it ends or the server stops.
    fn serve(&self, connection: ProtocolConnection) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

pub use wellspring_client::connection::ByteStream;

/// A connection whose client speaks a protocol.
pub struct ProtocolConnection {
    /// The connection; its bytes are counted.
    pub stream: Box<dyn ByteStream>,
    /// What has been read of it: the magic, and perhaps more.
    pub read: Bytes,
    /// The client's address, if known.
    pub client: Option<IpAddr>,
}

impl ProtocolConnection {
    /// A connection that speaks the protocol from its first byte.
    pub(crate) fn new<S: Socket + Send + 'static>(
        stream: S,
        read: Bytes,
        client: Option<IpAddr>,
        stats: &Arc<Stats>,
    ) -> ProtocolConnection {
        keep_alive(stream.tcp());
        let stream = Box::new(CountedStream::new(stream, stats));
        ProtocolConnection { stream, read, client }
    }

    /// A connection that speaks the protocol within a WebSocket.
    pub(crate) fn within<S: Socket + Send + 'static>(
        stream: WebSocket<CountedStream<S>>,
        read: Bytes,
        client: Option<IpAddr>,
    ) -> ProtocolConnection {
        keep_alive(stream.get_ref().get_ref().tcp());
        ProtocolConnection { stream: Box::new(stream), read, client }
    }
}

/// Has the kernel find out whether a silent client is still there, as nothing but its protocol ends
/// the connection: after a minute, and every 15 s until it has not answered four times.
fn keep_alive(socket: &TcpStream) {
    let set = || {
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, Duration::from_secs(60))?;
        sockopt::set_tcp_keepintvl(socket, Duration::from_secs(15))?;
        sockopt::set_tcp_keepcnt(socket, 4)
    };
    if let Err(error) = set() {
        tracing::debug!(%error, "cannot keep a connection alive");
    }
}

/// What the first bytes of a connection say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstBytes {
    /// They are those of HTTP, or of nothing known.
    Http,
    /// They are the magic of the protocol with this index.
    Protocol(usize),
    /// They are the beginning of a magic.
    Undecided,
}

/// What these first bytes say, if these are the magics.
pub(crate) fn first_bytes(magics: &[&'static [u8]], read: &[u8]) -> FirstBytes {
    let found = magics.iter().position(|magic| read.starts_with(magic));
    if let Some(index) = found {
        return FirstBytes::Protocol(index);
    }
    if magics.iter().any(|magic| magic.starts_with(read)) {
        FirstBytes::Undecided
    } else {
        FirstBytes::Http
    }
}

/// Time limits for the first bytes of a connection.
pub(crate) struct FirstBytesWait {
    /// For the first.
    pub(crate) idle: Duration,
    /// For the others after it.
    pub(crate) header: Duration,
}

/// Reads the first bytes of a connection after those that are known. `None`: it has ended, or took
/// too long.
pub(crate) async fn read_first_bytes<S: AsyncRead + Unpin>(
    stream: &mut S,
    known: Bytes,
    magics: &[&'static [u8]],
    wait: FirstBytesWait,
) -> Option<(FirstBytes, Bytes)> {
    let mut read = BytesMut::from(known);
    loop {
        // No bytes are the beginning of every magic.
        let said = first_bytes(magics, &read);
        if magics.is_empty() || said != FirstBytes::Undecided {
            return Some((said, read.freeze()));
        }
        let patience = if read.is_empty() { wait.idle } else { wait.header };
        match tokio::time::timeout(patience, stream.read_buf(&mut read)).await {
            Ok(Ok(count)) if count > 0 => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGICS: [&[u8]; 1] = [&[0x60, 0x60, 0xb0, 0x17]];

    #[test]
    fn the_first_bytes_tell_a_protocol_from_http() {
        let of = |read: &[u8]| first_bytes(&MAGICS, read);
        assert_eq!(of(&[0x60, 0x60, 0xb0, 0x17, 0, 0]), FirstBytes::Protocol(0));
        assert_eq!([of(&[0x60]), of(&[0x60, 0x60, 0xb0])], [FirstBytes::Undecided; 2]);
        assert_eq!([of(b"G"), of(b"``a"), of(b"PRI *")], [FirstBytes::Http; 3]);
    }

    #[tokio::test]
    async fn the_kernel_looks_for_a_client_that_is_silent() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let socket = TcpStream::connect(address).await.expect("a listener");
        assert_eq!(sockopt::socket_keepalive(&socket), Ok(false));
        keep_alive(&socket);
        assert_eq!(sockopt::socket_keepalive(&socket), Ok(true));
        assert_eq!(sockopt::tcp_keepidle(&socket), Ok(Duration::from_secs(60)));
    }

    #[tokio::test]
    async fn a_connection_is_read_until_it_is_clear_what_it_is() {
        let wait = || FirstBytesWait {
            idle: Duration::from_millis(20),
            header: Duration::from_millis(20),
        };
        let of = async |known: &'static [u8], sent: &'static [u8]| {
            let mut sent = sent;
            read_first_bytes(&mut sent, Bytes::from_static(known), &MAGICS, wait()).await
        };
        let http = of(b"", b"GET / HTTP/1.1\r\n").await.expect("decided");
        assert_eq!(http, (FirstBytes::Http, Bytes::from_static(b"GET / HTTP/1.1\r\n")));
        let bolt = of(&[0x60, 0x60], &[0xb0, 0x17, 9]).await.expect("decided");
        assert_eq!(
            (bolt.0, &bolt.1[..]),
            (FirstBytes::Protocol(0), &[0x60, 0x60, 0xb0, 0x17, 9][..])
        );
        assert_eq!(of(&[0x60, 0x60], &[]).await, None);
        let (mut silent, _other) = tokio::io::duplex(8);
        assert_eq!(read_first_bytes(&mut silent, Bytes::new(), &MAGICS, wait()).await, None);
    }
}
