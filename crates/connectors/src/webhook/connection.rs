//! One connection to a receiver.

use super::client::Payload;
use super::endpoint::Endpoint;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use wellspring_tls::ClientTerms;

/// Longest idle time after which a connection is reused. Receivers and middleboxes close or drop
/// idle connections after 5 s to a few minutes; one dropped silently costs a whole timeout.
const LONGEST_IDLE: Duration = Duration::from_secs(30);
/// Maximum size of a response head, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// One connection; dropping it closes it.
pub(super) struct Connection {
    sender: http1::SendRequest<Payload>,
    driver: AbortHandle,
    used: Instant,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// A sentence.
    pub(super) async fn open(
        endpoint: &Endpoint,
        tls: Option<&ClientTerms>,
    ) -> Result<Connection, String> {
        let failed = |doing: &str, error: &dyn std::fmt::Display| {
            format!("{doing} {} failed: {error}", endpoint.origin())
        };
        let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port))
            .await
            .map_err(|error| failed("connecting to", &error))?;
        // Otherwise a request's body could wait for the acknowledgement of its head.
        stream.set_nodelay(true).map_err(|error| failed("connecting to", &error))?;
        let opened = match tls {
            None => Connection::over(stream).await,
            Some(tls) => {
                let stream = TlsConnector::from(Arc::clone(&tls.config))
                    .connect(tls.name.clone(), stream)
                    .await
                    .map_err(|error| failed("the TLS handshake with", &error))?;
                Connection::over(stream).await
            }
        };
        opened.map_err(|error| failed("connecting to", &error))
    }

    async fn over<S>(stream: S) -> Result<Connection, hyper::Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_HEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await?;
        let driver = tokio::spawn(async move {
            // The caller waiting for the response gets the error.
            let _ = connection.await;
        });
        Ok(Connection { sender, driver: driver.abort_handle(), used: Instant::now() })
    }

    /// Whether a request can be attempted; sending reports if it is closed.
    pub(super) fn is_usable(&self) -> bool {
        !self.sender.is_closed() && self.used.elapsed() < LONGEST_IDLE
    }

    /// Sends a request and waits for the response head.
    ///
    /// # Errors
    /// There was no response.
    pub(super) async fn send(
        &mut self,
        request: Request<Payload>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        self.sender.ready().await?;
        let answer = self.sender.send_request(request).await?;
        self.used = Instant::now();
        Ok(answer)
    }
}
