//! From a connection to one that speaks TLS, within the time for a request's head.

use super::Tls;
use crate::http::{Shell, problem};
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The first byte of a TLS connection: a record of the type handshake (RFC 8446 section 5.1).
const HANDSHAKE: u8 = 0x16;

/// What a client that is sent away may have sent before it hears of it, and for how long it may go on.
const MAX_UNHEARD_BYTES: usize = 1 << 20;
const UNHEARD_FOR: Duration = Duration::from_secs(1);

/// Why there is no TLS on a connection.
enum Failure {
    /// The client went without a word: those who look whether a port is open do.
    Silent,
    /// It speaks something else.
    NotTls,
    /// The handshake failed.
    Broken(io::Error),
}

/// Makes the handshake. `None`: there is none to be made, and the client has been told as far as
/// that is possible; it is counted if the client is to blame.
pub(crate) async fn shake_hands(
    tls: &Tls,
    stream: TcpStream,
    peer: Option<IpAddr>,
    shell: &Shell,
) -> Option<TlsStream<TcpStream>> {
    let patience = Duration::from_millis(shell.config.header_timeout_ms);
    let mut stopping = shell.stopping.clone();
    let outcome = tokio::select! {
        outcome = tokio::time::timeout(patience, attempt(tls, stream)) => outcome,
        // Nothing has been asked yet, so nothing is left without an answer.
        _ = stopping.wait_for(|&stopping| stopping) => return None,
    };
    let why = match outcome {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(Failure::Silent)) => return None,
        Ok(Err(Failure::NotTls)) => "it does not speak TLS".to_owned(),
        Ok(Err(Failure::Broken(error))) => error.to_string(),
        Err(_) => "it took too long".to_owned(),
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
            // Whether it is heard makes no difference here.
            let _ = stream.write_all(&speak_tls()).await;
            be_heard(&mut stream).await;
            return Err(Failure::NotTls);
        }
    }
    match TlsAcceptor::from(tls.current()).accept(stream).into_fallible().await {
        Ok(stream) => Ok(stream),
        Err((error, mut stream)) => {
            // TLS has told it why.
            be_heard(&mut stream).await;
            Err(Failure::Broken(error))
        }
    }
}

/// What a client that does not speak TLS is told, whatever it asked for.
fn speak_tls() -> Vec<u8> {
    problem::TLS_REQUIRED
        .because("this port speaks TLS: say https:// instead of http://")
        .last_words()
}

/// Ends a connection so that what was written last arrives: one that is closed with something
/// unread is reset, and takes with it what the client has not read.
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
