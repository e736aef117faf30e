//! The TLS handshake of a connection, within the time for a request's head.

use super::Tls;
use crate::wire::problem;
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The first byte of a TLS connection: a record of the type handshake (RFC 8446 section 5.1).
const HANDSHAKE: u8 = 0x16;

/// What a refused client may still send, in bytes and in time, while it has not read the refusal.
const MAX_UNHEARD_BYTES: usize = 1 << 20;
const UNHEARD_FOR: Duration = Duration::from_secs(1);

/// Why a connection has no TLS.
enum Failure {
    /// The client closed the connection without sending anything, as port scans do.
    Silent,
    /// The client speaks another protocol.
    NotTls,
    /// The handshake failed.
    Broken(io::Error),
}

/// Performs the handshake, within `patience` and until `stopping` becomes true. `None`: it failed,
/// and the client has been told why as far as possible. Failures caused by the client are counted.
pub(crate) async fn shake_hands(
    tls: &Tls,
    stream: TcpStream,
    peer: Option<IpAddr>,
    patience: Duration,
    mut stopping: watch::Receiver<bool>,
) -> Option<TlsStream<TcpStream>> {
    let outcome = tokio::select! {
        outcome = tokio::time::timeout(patience, attempt(tls, stream)) => outcome,
        // No request has arrived yet, so none stays unanswered.
        _ = stopping.wait_for(|&stopping| stopping) => return None,
    };
    let why = match outcome {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(Failure::Silent)) => return None,
        Ok(Err(Failure::NotTls)) => "the client does not speak TLS".to_owned(),
        Ok(Err(Failure::Broken(error))) => error.to_string(),
        Err(_) => "the handshake took too long".to_owned(),
    };
    tls.failed();
    tracing::debug!(peer = ?peer, why, "a TLS handshake failed");
    None
}

async fn attempt(tls: &Tls, mut stream: TcpStream) -> Result<TlsStream<TcpStream>, Failure> {
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(0) | Err(_) => return Err(Failure::Silent),
        Ok(_) if first == [HANDSHAKE] => {}
        Ok(_) => {
            // The connection ends whether or not the client reads this.
            let _ = stream.write_all(&speak_tls()).await;
            be_heard(&mut stream).await;
            return Err(Failure::NotTls);
        }
    }
    match TlsAcceptor::from(tls.current()).accept(stream).into_fallible().await {
        Ok(stream) => Ok(stream),
        Err((error, mut stream)) => {
            // The TLS alert has told the client why.
            be_heard(&mut stream).await;
            Err(Failure::Broken(error))
        }
    }
}

/// The answer to a client that does not speak TLS, whatever it asked for.
fn speak_tls() -> Vec<u8> {
    problem::TLS_REQUIRED
        .because("this port speaks TLS: use https:// instead of http://")
        .last_words()
}

/// Closes a connection so that the last bytes written arrive: closing a socket with unread input
/// resets the connection, and the client loses what it has not read yet.
async fn be_heard(stream: &mut TcpStream) {
    let ended = async {
        stream.shutdown().await?;
        let (mut left, mut buffer) = (MAX_UNHEARD_BYTES, [0; 1024]);
        while left > 0 {
            match stream.read(&mut buffer).await? {
                0 => break,
                count => left = left.saturating_sub(count),
            }
        }
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(UNHEARD_FOR, ended).await;
}
