//! Connections to HTTP/1.1 servers, in the clear or through TLS: for the blocking client, for a
//! node that speaks to other nodes, and for webhooks.

use crate::endpoint::Endpoint;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use wellspring_tls::ClientTerms;

/// How long one address of a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes that a piece of a request's content has.
const PIECE_BYTES: usize = 256 << 10;
/// Most header lines of an answer.
const MAX_HEADERS: usize = 128;

/// Sends requests over one connection, which ends when this is dropped.
pub type Sender = SendRequest<Content>;

/// A connection in both directions.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

/// Why there is no connection. Nothing was sent.
#[derive(Debug)]
pub enum ConnectError {
    /// The server cannot be reached.
    Unreachable(io::Error),
    /// TLS cannot be spoken with it. It will be the same next time.
    Tls(rustls::Error),
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> ConnectError {
        match error.downcast::<rustls::Error>() {
            Ok(error) => ConnectError::Tls(error),
            Err(error) => ConnectError::Unreachable(error),
        }
    }
}

impl From<SpeakError> for ConnectError {
    fn from(error: SpeakError) -> ConnectError {
        match error {
            SpeakError::Tls(error) => error.into(),
            SpeakError::Http(error) => ConnectError::Unreachable(io::Error::other(error)),
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Unreachable(error) => error.fmt(f),
            ConnectError::Tls(error) => error.fmt(f),
        }
    }
}

/// Connects to a server, each of its addresses in turn; TLS may take `handshake` more. To be called
/// within a runtime, which then drives the connection.
///
/// # Errors
/// [`ConnectError`]: of the last address, if the server has several.
pub async fn connect(
    endpoint: &Endpoint,
    terms: Option<&ClientTerms>,
    handshake: Duration,
) -> Result<Sender, ConnectError> {
    let socket = reach(endpoint).await?;
    let mut http = http1::Builder::new();
    http.max_headers(MAX_HEADERS);
    match timeout(handshake, speak(socket, terms, &http)).await {
        // The connection ends with its sender; a caller that waits for an answer gets the error.
        Ok(spoken) => Ok(spoken?.0),
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no TLS in time").into()),
    }
}

/// Connects to a server without any protocol, to each of its addresses in turn.
///
/// # Errors
/// That of the last address.
pub async fn reach(endpoint: &Endpoint) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in lookup_host((endpoint.host.as_str(), endpoint.port)).await? {
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(socket)) => {
                // Without it, the body of a request could wait for the acknowledgement of its head.
                socket.set_nodelay(true)?;
                return Ok(socket);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, "connection timed out"),
        }
    }
    Err(last)
}

/// Why a socket does not become a connection.
#[derive(Debug)]
pub enum SpeakError {
    /// The handshake of TLS failed.
    Tls(io::Error),
    /// HTTP cannot begin.
    Http(hyper::Error),
}

/// Speaks HTTP/1.1 over a socket, through TLS if there are terms for it. The connection ends with
/// its sender, or when its task is aborted or the other side closes it. To be called within a
/// runtime, which then drives the connection.
///
/// # Errors
/// [`SpeakError`].
pub async fn speak(
    socket: TcpStream,
    terms: Option<&ClientTerms>,
    http: &http1::Builder,
) -> Result<(Sender, AbortHandle), SpeakError> {
    let Some(terms) = terms else { return begin(socket, http).await.map_err(SpeakError::Http) };
    let connector = TlsConnector::from(Arc::clone(&terms.config));
    let connecting = connector.connect(terms.name.clone(), socket);
    let stream = connecting.await.map_err(SpeakError::Tls)?;
    begin(stream, http).await.map_err(SpeakError::Http)
}

async fn begin<S>(stream: S, http: &http1::Builder) -> hyper::Result<(Sender, AbortHandle)>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) = http.handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(async move { drop(connection.await) });
    Ok((sender, driver.abort_handle()))
}

/// The content of a request, all of it at hand. It is handed over in pieces, so that progress is
/// seen and an answer that comes early is read.
#[derive(Debug)]
pub struct Content {
    rest: Bytes,
    sent: Arc<AtomicUsize>,
}

impl Content {
    /// All of these bytes.
    pub fn new(bytes: Bytes) -> Content {
        Content { rest: bytes, sent: Arc::default() }
    }

    /// Bytes that were handed over so far, also while it is sent.
    pub fn sent(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.sent)
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(length);
        self.sent.fetch_add(length, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
