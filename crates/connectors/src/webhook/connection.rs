//! One connection to a receiver.

use super::endpoint::Endpoint;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use wellspring_client::connection::{Content, Sender, SpeakError, speak};
use wellspring_tls::ClientTerms;

/// Longest idle time after which a connection is reused. Receivers and middleboxes close or drop
/// idle connections after 5 s to a few minutes; one dropped silently costs a whole timeout.
const LONGEST_IDLE: Duration = Duration::from_secs(30);
/// Maximum size of a response head, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// One connection; dropping it closes it.
pub(super) struct Connection {
    sender: Sender,
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
        let mut http = http1::Builder::new();
        http.max_buf_size(MAX_HEAD_BYTES);
        let spoken = speak(stream, tls, &http).await;
        let (sender, driver) = spoken.map_err(|error| match error {
            SpeakError::Tls(error) => failed("the TLS handshake with", &error),
            SpeakError::Http(error) => failed("connecting to", &error),
        })?;
        Ok(Connection { sender, driver, used: Instant::now() })
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
        request: Request<Content>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        self.sender.ready().await?;
        let answer = self.sender.send_request(request).await?;
        self.used = Instant::now();
        Ok(answer)
    }
}
