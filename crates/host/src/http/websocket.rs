//! WebSockets of browsers (RFC 6455), which carry the protocols beside HTTP: `GET /` with an
//! upgrade, from a page that may use this server.

use super::server::Server;
use super::watched_stream::WatchedStream;
use super::{Answer, Request, Response};
use crate::protocol::{FirstBytes, FirstBytesWait, ProtocolConnection, read_first_bytes};
use crate::socket::{Socket, WebSocket};
use crate::wire::problem;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::header::{CONNECTION, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Version};
use hyper_util::server::conn::auto::upgrade::{Parts, downcast};
use ring::digest;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

/// What a server adds to the key of a client.
const KEY_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The only version.
const VERSION: &str = "13";
/// The status of an answer that ends HTTP on a connection.
pub(super) const SWITCHING: u16 = 101;

/// The answer to a request for a WebSocket; `None`: it asks for none, or no protocol is spoken in
/// one.
pub(super) fn answer(server: &Server, request: &Request) -> Option<Answer> {
    let is_asked = request.method == Method::GET
        && request.version == Version::HTTP_11
        && request.uri.path() == "/"
        && has_token(request, CONNECTION.as_str(), "upgrade")
        && has_token(request, UPGRADE.as_str(), "websocket");
    (is_asked && !server.protocols().is_empty()).then(|| open(server, request))
}

fn open(server: &Server, request: &Request) -> Answer {
    let gate = &server.host.access;
    gate.pages().check_connection(&request.uri, &request.headers, gate.is_open())?;
    if request.header("sec-websocket-version") != Some(VERSION) {
        let detail = format!("WebSockets have version {VERSION} here");
        return Err(problem::BAD_REQUEST.because(detail).field("Sec-WebSocket-Version"));
    }
    let key = request.header("sec-websocket-key").unwrap_or_default();
    if !STANDARD.decode(key).is_ok_and(|key| key.len() == 16) {
        let detail = "the key of a WebSocket is 16 bytes in Base64";
        return Err(problem::BAD_REQUEST.because(detail).field("Sec-WebSocket-Key"));
    }
    let response = Response::empty(SWITCHING)
        .with("connection", "upgrade".to_owned())
        .with("upgrade", "websocket".to_owned());
    Ok(response.with("sec-websocket-accept", accepted(key)))
}

/// The proof that a key was read.
fn accepted(key: &str) -> String {
    let mut proof = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    proof.update(key.as_bytes());
    proof.update(KEY_SUFFIX);
    STANDARD.encode(proof.finish())
}

/// Whether a header that is a list has this member.
fn has_token(request: &Request, name: &str, token: &str) -> bool {
    let values = request.headers.get_all(name).into_iter();
    let mut members = values.flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
    members.any(|member| member.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

/// Serves a connection from the answer that opened its WebSocket, until it ends or the server
/// stops.
pub(super) async fn serve<S: Socket + Send + 'static>(
    upgrade: OnUpgrade,
    peer: Option<IpAddr>,
    server: &Server,
) {
    let Ok(upgraded) = upgrade.await else { return };
    let Ok(Parts { io, read_buf, .. }) = downcast::<WatchedStream<S>>(upgraded) else { return };
    let mut socket = WebSocket::new(io.into_inner(), read_buf);
    let patience = Duration::from_millis(server.host.config.header_timeout_ms);
    let wait = FirstBytesWait { idle: patience, header: patience };
    let magics = server.magics();
    let mut stopping = server.host.stopping.clone();
    let first = tokio::select! {
        biased;
        first = read_first_bytes(&mut socket, Bytes::new(), &magics, wait) => first,
        _ = stopping.wait_for(|&stopping| stopping) => None,
    };
    match first {
        Some((FirstBytes::Protocol(index), read)) => {
            let connection = ProtocolConnection::within(socket, read, peer);
            server.protocols()[index].serve(connection).await;
        }
        _ => {
            // The client may be gone.
            let _ = tokio::time::timeout(patience, socket.shutdown()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the standard.
    #[test]
    fn a_key_is_proven_to_be_read() {
        assert_eq!(accepted("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
