//! Requests to other nodes with small answers: read whole, within a time.

use super::peers::{PeerError, PeerRequest, Peers};
use bytes::{Bytes, BytesMut};
use hyper::Method;
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

/// Largest accepted answer, unless a request says another.
const MOST_BYTES: usize = 4 << 20;

/// A complete answer of another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerAnswer {
    /// Its status.
    pub status: u16,
    /// Its content.
    pub content: Bytes,
}

impl PeerAnswer {
    /// The detail of a problem, if it is one.
    pub(crate) fn detail(&self) -> String {
        let problem: serde_json::Value = serde_json::from_slice(&self.content).unwrap_or_default();
        problem["detail"].as_str().unwrap_or("no reason given").to_owned()
    }
}

impl PeerRequest {
    /// A request of this node itself.
    pub fn get(target: &str) -> PeerRequest {
        PeerRequest {
            method: Method::GET,
            target: target.to_owned(),
            headers: HeaderMap::new(),
            content: Bytes::new(),
            client: None,
        }
    }

    /// A request of this node itself, with JSON or without content.
    pub fn post(target: &str, content: Bytes) -> PeerRequest {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        PeerRequest { method: Method::POST, headers, content, ..PeerRequest::get(target) }
    }
}

impl Peers {
    /// As [`send`](Peers::send), with the complete answer, within a time.
    ///
    /// # Errors
    /// [`PeerError`]; also `Unknown` if the answer does not arrive in time or is too large.
    pub async fn ask(
        &self,
        url: &str,
        request: &PeerRequest,
        patience: Duration,
        now_us: u64,
    ) -> Result<PeerAnswer, PeerError> {
        self.ask_for(url, request, patience, now_us, MOST_BYTES).await
    }

    /// The same, for an answer of at most so many bytes.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask).
    pub(super) async fn ask_for(
        &self,
        url: &str,
        request: &PeerRequest,
        patience: Duration,
        now_us: u64,
        most_bytes: usize,
    ) -> Result<PeerAnswer, PeerError> {
        let asking = async {
            let response = self.send(url, request, now_us).await?;
            let (head, body) = response.into_parts();
            let content = whole(body, most_bytes).await;
            let content = content.map_err(|fault| {
                PeerError::Unknown(match fault {
                    WholeBodyFault::TooLarge => format!("{url}: the answer is too large"),
                    WholeBodyFault::Broken(error) => {
                        format!("{url}: the answer ended early: {error}")
                    }
                })
            })?;
            Ok(PeerAnswer { status: head.status.as_u16(), content })
        };
        tokio::time::timeout(patience, asking).await.unwrap_or_else(|_| {
            let waited = patience.as_millis();
            Err(PeerError::Unknown(format!("{url} did not answer within {waited} ms")))
        })
    }
}

/// Why a body was not read whole.
pub(crate) enum WholeBodyFault {
    /// It has more bytes than are accepted.
    TooLarge,
    /// It ended early, or is malformed.
    Broken(hyper::Error),
}

/// All of a body of at most so many bytes.
///
/// # Errors
/// [`WholeBodyFault`].
pub(crate) async fn whole(mut body: Incoming, most_bytes: usize) -> Result<Bytes, WholeBodyFault> {
    let mut content = BytesMut::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(data) = frame.map_err(WholeBodyFault::Broken)?.into_data() else { continue };
        if content.len() + data.len() > most_bytes {
            return Err(WholeBodyFault::TooLarge);
        }
        content.extend_from_slice(&data);
    }
    Ok(content.freeze())
}
