//! One attempt at delivering one event.

use super::connection::Connection;
use super::endpoint::Endpoint;
use super::message::{IDEMPOTENCY_KEY, Message};
use super::signature::Signer;
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_LENGTH, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, timeout_at};
use wellspring_client::connection::Content;
use wellspring_log::Clock;
use wellspring_tls::ClientTerms;
use zeroize::Zeroizing;

static WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
static WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
static WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Maximum size read of a response body. A connection with more data is closed.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// Bytes of a refusal that are examined, and characters that are shown.
const REFUSAL: (usize, usize) = (4 << 10, 200);
/// Longest wait that a receiver can request.
const LONGEST_RETRY_AFTER_S: u64 = 300;

/// Sends requests to one receiver.
pub(super) struct Client {
    /// The receiver's address.
    pub(super) endpoint: Endpoint,
    /// TLS, if the URL is `https://`.
    pub(super) tls: Option<ClientTerms>,
    /// Headers of every request.
    pub(super) template: HeaderMap,
    /// Signs requests.
    pub(super) signer: Option<Signer>,
    /// Secrets that must not be shown even if a response repeats them.
    pub(super) secrets: Vec<Zeroizing<String>>,
    /// Timeout of an attempt.
    pub(super) timeout: Duration,
    /// The clock for signatures.
    pub(super) clock: Arc<dyn Clock>,
}

/// The response of a receiver that did not accept an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReceiverRefusal {
    /// Its status.
    pub(super) status: StatusCode,
    /// When to retry, if the receiver says so.
    pub(super) retry_after: Option<Duration>,
    /// The first printable characters of its body.
    pub(super) text: String,
}

/// The outcome of an attempt.
#[derive(Debug)]
pub(super) enum DeliveryResult {
    /// The receiver accepted the event.
    Accepted,
    /// The receiver answered but did not accept the event.
    Refused(ReceiverRefusal),
    /// The connection brought no response.
    Unanswered(String),
    /// The connection failed.
    Unreachable(String),
}

/// A finished attempt.
pub(super) struct Attempt {
    /// What came of it.
    pub(super) outcome: DeliveryResult,
    /// Its connection, if it can be reused.
    pub(super) connection: Option<Connection>,
    /// Whether it opened a new connection.
    pub(super) connected: bool,
}

impl Client {
    /// Sends an event once, over `idle` if that is still open.
    pub(super) async fn attempt(&self, message: &Message, mut idle: Option<Connection>) -> Attempt {
        let deadline = Instant::now() + self.timeout;
        let mut connected = false;
        let over = |outcome, connected| Attempt { outcome, connection: None, connected };
        loop {
            let mut connection = match idle.take() {
                Some(connection) => connection,
                None => match self.connect(deadline).await {
                    Ok(connection) => {
                        connected = true;
                        connection
                    }
                    Err(reason) => return over(DeliveryResult::Unreachable(reason), false),
                },
            };
            match timeout_at(deadline, connection.send(self.request(message))).await {
                Ok(Ok(answer)) => {
                    let (outcome, ended) = self.read(answer, deadline).await;
                    let connection = ended.then_some(connection);
                    return Attempt { outcome, connection, connected };
                }
                // A receiver may close an idle connection at any time. If it processed the request
                // anyway, it recognizes the idempotency key.
                Ok(Err(error)) if !connected && !error.is_parse() => {}
                Ok(Err(error)) => {
                    let reason = format!("{} sent no response: {error}", self.endpoint.origin());
                    return over(DeliveryResult::Unanswered(reason), connected);
                }
                Err(_) => {
                    let reason = format!(
                        "{} sent no response within {} ms",
                        self.endpoint.origin(),
                        self.timeout.as_millis()
                    );
                    return over(DeliveryResult::Unanswered(reason), connected);
                }
            }
        }
    }

    async fn connect(&self, deadline: Instant) -> Result<Connection, String> {
        let connecting = Connection::open(&self.endpoint, self.tls.as_ref());
        timeout_at(deadline, connecting).await.unwrap_or_else(|_| {
            let limit = self.timeout.as_millis();
            Err(format!("connecting to {} took more than {limit} ms", self.endpoint.origin()))
        })
    }

    fn request(&self, message: &Message) -> Request<Content> {
        let mut headers = self.template.clone();
        for (name, value) in &message.headers {
            headers.entry(name).or_insert_with(|| value.clone());
        }
        headers.insert(&IDEMPOTENCY_KEY, message.id.clone());
        if let Some(signer) = &self.signer {
            let timestamp_s = self.clock.wall_us() / 1_000_000;
            let id = message.id.as_bytes();
            let signature = signer.sign(id, &timestamp_s.to_string(), &message.body);
            headers.insert(&WEBHOOK_ID, message.id.clone());
            headers.insert(&WEBHOOK_TIMESTAMP, HeaderValue::from(timestamp_s));
            headers.insert(&WEBHOOK_SIGNATURE, HeaderValue::try_from(signature).expect("base64"));
        }
        if message.body.is_empty() {
            // hyper sends no length for an empty body, but receivers may require one for a `POST`.
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let mut request = Request::new(Content::new(message.body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.endpoint.path.clone();
        *request.headers_mut() = headers;
        request
    }

    /// Reads a response; also returns whether it was read to its end.
    async fn read(&self, answer: Response<Incoming>, deadline: Instant) -> (DeliveryResult, bool) {
        let (head, mut body) = answer.into_parts();
        let mut text = Vec::new();
        let accepted = head.status.is_success();
        let keep = if accepted { 0 } else { REFUSAL.0 };
        let ended = timeout_at(deadline, drain(&mut body, &mut text, keep)).await.unwrap_or(false);
        if accepted {
            return (DeliveryResult::Accepted, ended);
        }
        let refusal = ReceiverRefusal {
            status: head.status,
            retry_after: self.retry_after(&head.headers),
            text: self.printable(&text),
        };
        (DeliveryResult::Refused(refusal), ended)
    }

    /// How long the receiver asks to wait. A date of its counts from the time of its answer, if it
    /// tells that: clocks differ.
    fn retry_after(&self, headers: &HeaderMap) -> Option<Duration> {
        let date = |name| httpdate::parse_http_date(headers.get(name)?.to_str().ok()?.trim()).ok();
        let here = SystemTime::UNIX_EPOCH + Duration::from_micros(self.clock.wall_us());
        retry_after(headers.get(RETRY_AFTER)?, date(DATE).unwrap_or(here))
    }

    /// The first characters of a text, without unprintable characters and credentials.
    fn printable(&self, bytes: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        let mut longest = 0;
        for secret in self.secrets.iter().filter(|secret| !secret.is_empty()) {
            text = text.replace(secret.as_str(), "…");
            longest = longest.max(secret.chars().count());
        }
        // A text that was cut off may end with part of a secret.
        let cut = if bytes.len() >= REFUSAL.0 { longest } else { 0 };
        let length = text.chars().count().saturating_sub(cut).min(REFUSAL.1);
        let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        printable.take(length).collect::<String>().trim().to_owned()
    }
}

/// Reads a body and keeps `keep` bytes of it. Returns whether it ended within the limit.
async fn drain(body: &mut Incoming, kept: &mut Vec<u8>, keep: usize) -> bool {
    let mut count = 0;
    loop {
        if body.is_end_stream() {
            return true;
        }
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
            None => return true,
            Some(Err(_)) => return false,
            Some(Ok(frame)) => {
                let Some(data) = frame.data_ref() else { continue };
                count += data.len();
                let room = keep.saturating_sub(kept.len());
                kept.extend_from_slice(&data[..data.len().min(room)]);
                if count > MAX_ANSWER_BYTES {
                    return false;
                }
            }
        }
    }
}

/// The time until a `Retry-After`, in seconds or a date, at most five minutes.
fn retry_after(value: &HeaderValue, answered: SystemTime) -> Option<Duration> {
    let most = Duration::from_secs(LONGEST_RETRY_AFTER_S);
    let text = value.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that overflows also exceeds five minutes.
        return Some(text.parse().map_or(most, Duration::from_secs).min(most));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(answered).unwrap_or_default().min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_to_wait_are_understood_and_bounded() {
        let answered = httpdate::parse_http_date("Wed, 21 Oct 2015 07:28:00 GMT").unwrap();
        let read = |text: &str| retry_after(&HeaderValue::from_str(text).unwrap(), answered);
        assert_eq!(read("0"), Some(Duration::ZERO));
        assert_eq!(read(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(read("301"), Some(Duration::from_secs(300)));
        assert_eq!(read("99999999999999999999999"), Some(Duration::from_secs(300)));
        // In the three forms of dates, one of them past and one far ahead.
        assert_eq!(read("Wed, 21 Oct 2015 07:28:03 GMT"), Some(Duration::from_secs(3)));
        assert_eq!(read("Wednesday, 21-Oct-15 07:29:00 GMT"), Some(Duration::from_secs(60)));
        assert_eq!(read("Wed Oct 21 07:28:01 2015"), Some(Duration::from_secs(1)));
        assert_eq!(read("Wed, 21 Oct 2015 07:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("Wed, 21 Oct 2026 07:28:00 GMT"), Some(Duration::from_secs(300)));
        for none in ["", "-1", "1.5", "soon", "Wed, 99 Oct 2015 07:28:00 GMT"] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
