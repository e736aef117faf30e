//! The blocking client: one kept-alive connection, how long it waits, when it tries again, and what
//! it says of failures.

use crate::authorization::Authorization;
use crate::connection::{ConnectError, Content, Sender, connect};
use crate::endpoint::Endpoint;
use crate::message::{Head, MessageError, Stream, timed_out};
use crate::reactor::Reactor;
use crate::tls_fault::TlsFault;
use crate::trust::{Trust, UnusableClient};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Response};
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::timeout;
use wellspring_tls::ClientTerms;
use zeroize::Zeroizing;

/// Longer than the server's heartbeats and group commits, shorter than patience.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Largest answer that is read as a whole.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// A request on its way.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// `GET`, `POST`, …
    pub method: &'a str,
    /// Path and query, already encoded.
    pub path: &'a str,
    /// Further headers.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body, if the method has one.
    pub body: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    /// A request without a body.
    pub fn get(path: &'a str, headers: &'a [(&'a str, &'a str)]) -> Request<'a> {
        Request { method: "GET", path, headers, body: None }
    }

    /// Whether sending it twice does no harm.
    fn is_repeatable(&self) -> bool {
        self.method == "GET" || self.headers.iter().any(|(name, _)| *name == "Idempotency-Key")
    }
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    /// Status and headers.
    pub head: Head,
    /// The whole body.
    pub body: Vec<u8>,
}

/// Why there is no answer. For a request that changes something the outcome is unknown.
#[derive(Debug)]
pub enum ClientError {
    /// No connection could be made: nothing was sent.
    Connect {
        /// Host and port.
        address: String,
        /// What the system said.
        error: io::Error,
    },
    /// There was a connection, and no TLS on it: nothing was sent. It will be the same next time.
    Tls {
        /// Host and port.
        address: String,
        /// What is wrong, in words.
        error: TlsFault,
    },
    /// The connection failed after that.
    Message(MessageError),
    /// The answer is larger than the tools read as a whole.
    TooLarge,
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Connect { address, error } => {
                write!(
                    f,
                    "cannot reach {address}: {error}; is `wellspring serve` running there? (--url)"
                )
            }
            ClientError::Tls { address, error } => write!(f, "{address}: {error}"),
            ClientError::Message(error) => error.fmt(f),
            ClientError::TooLarge => {
                write!(f, "the answer is larger than {} MiB", MAX_ANSWER_BYTES >> 20)
            }
        }
    }
}

impl From<MessageError> for ClientError {
    fn from(error: MessageError) -> ClientError {
        ClientError::Message(error)
    }
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> ClientError {
        ClientError::Message(MessageError::Io(error))
    }
}

/// One client, one connection. It waits on the thread that calls it, which must not be one that
/// serves a runtime.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    tls: Option<ClientTerms>,
    /// A connection of which the last answer has been read.
    idle: Option<Sender>,
    patience: Duration,
    /// Shown with every request.
    authorization: Option<Authorization>,
    reactor: Arc<Reactor>,
}

/// Why an exchange failed.
enum ExchangeError {
    /// Nothing of the request left this machine.
    Unsent(MessageError),
    /// Some of it may have.
    Unknown(MessageError),
}

impl From<TrySendError<hyper::Request<Content>>> for ExchangeError {
    fn from(mut error: TrySendError<hyper::Request<Content>>) -> ExchangeError {
        let unsent = error.take_message().is_some();
        let why = MessageError::from(error.error());
        if unsent { ExchangeError::Unsent(why) } else { ExchangeError::Unknown(why) }
    }
}

impl Client {
    /// A client; connects at its first request.
    ///
    /// # Errors
    /// What is wrong with the terms: TLS cannot be spoken with this server under these terms.
    pub fn new(endpoint: Endpoint, trust: &Trust) -> Result<Client, UnusableClient> {
        let tls = trust.terms(&endpoint)?;
        let reactor = Reactor::new().map_err(UnusableClient::Reactor)?;
        Ok(Client {
            endpoint,
            tls,
            idle: None,
            patience: READ_TIMEOUT,
            authorization: None,
            reactor: Arc::new(reactor),
        })
    }

    /// Shows this with every request.
    pub fn with_authorization(self, authorization: Option<Authorization>) -> Client {
        Client { authorization, ..self }
    }

    /// Waits at most so long for the next bytes of an answer.
    pub fn with_patience(self, patience: Duration) -> Client {
        Client { patience, ..self }
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// [`ClientError`]; the next call makes a new connection.
    pub fn call(&mut self, request: &Request<'_>) -> Result<Answer, ClientError> {
        let (head, mut body) = self.open(request)?;
        let mut bytes = Vec::new();
        body.by_ref().take(MAX_ANSWER_BYTES).read_to_end(&mut bytes)?;
        if !body.is_done() {
            return Err(ClientError::TooLarge);
        }
        self.idle = Some(body.into_sender());
        Ok(Answer { head, body: bytes })
    }

    /// Sends a request and hands over the body as it comes, on a connection of its own.
    ///
    /// # Errors
    /// [`ClientError`], also later while the body is read.
    pub fn open(&mut self, request: &Request<'_>) -> Result<(Head, Stream), ClientError> {
        // A copy that is wiped after use: it may hold a password.
        let content = Zeroizing::new(request.body.unwrap_or_default().to_vec());
        let content = Bytes::from_owner(content);
        if let Some(sender) = self.take_idle() {
            // A server may close an idle connection at any time; only this case is
            // tried again here, everything else is the caller's decision.
            match self.exchange(sender, request, &content) {
                Ok(opened) => return Ok(opened),
                Err(ExchangeError::Unsent(_)) => {}
                Err(ExchangeError::Unknown(MessageError::Gone | MessageError::Io(_)))
                    if request.is_repeatable() => {}
                Err(ExchangeError::Unknown(error)) => return Err(error.into()),
            }
        }
        let sender = self.connect()?;
        self.exchange(sender, request, &content).map_err(|error| match error {
            ExchangeError::Unsent(error) | ExchangeError::Unknown(error) => error.into(),
        })
    }

    /// The idle connection, unless it was closed or its last request was never wholly taken.
    fn take_idle(&mut self) -> Option<Sender> {
        let sender = self.idle.take()?;
        self.reactor.catch_up();
        sender.is_ready().then_some(sender)
    }

    fn connect(&self) -> Result<Sender, ClientError> {
        let address = self.endpoint.authority();
        // Each address has its own time for the connection; this is for the words of TLS.
        let connecting = connect(&self.endpoint, self.tls.as_ref(), self.patience);
        self.reactor.wait(connecting).map_err(|error| match error {
            ConnectError::Unreachable(error) => ClientError::Connect { address, error },
            ConnectError::Tls(error) => ClientError::Tls { address, error: TlsFault::from(&error) },
        })
    }

    fn exchange(
        &self,
        mut sender: Sender,
        request: &Request<'_>,
        content: &Bytes,
    ) -> Result<(Head, Stream), ExchangeError> {
        let content = Content::new(content.clone());
        let sent = content.sent();
        let outgoing = self.outgoing(request, content).map_err(ExchangeError::Unsent)?;
        let answer = sender.try_send_request(outgoing);
        let answer = self.reactor.wait(self.patient(answer, &sent))?;
        Stream::begin(Arc::clone(&self.reactor), sender, answer, self.patience)
            .map_err(ExchangeError::Unknown)
    }

    /// Waits for the head of an answer, for as long as some of the request goes out.
    async fn patient(
        &self,
        answer: impl Future<Output = Result<Response<Incoming>, TrySendError<hyper::Request<Content>>>>,
        sent: &AtomicUsize,
    ) -> Result<Response<Incoming>, ExchangeError> {
        let mut answer = std::pin::pin!(answer);
        let mut before = 0;
        loop {
            if let Ok(answered) = timeout(self.patience, answer.as_mut()).await {
                return Ok(answered?);
            }
            let now = sent.load(Ordering::Relaxed);
            if now == before {
                return Err(ExchangeError::Unknown(timed_out().into()));
            }
            before = now;
        }
    }

    /// A request as hyper takes it.
    fn outgoing(
        &self,
        request: &Request<'_>,
        content: Content,
    ) -> Result<hyper::Request<Content>, MessageError> {
        let unfit = |what: &dyn fmt::Display| {
            MessageError::Io(io::Error::new(io::ErrorKind::InvalidInput, what.to_string()))
        };
        let value = |text: &str| HeaderValue::from_str(text).map_err(|error| unfit(&error));
        let target = format!("{}{}", self.endpoint.prefix, request.path);
        let mut outgoing = hyper::Request::new(content);
        *outgoing.method_mut() =
            Method::from_bytes(request.method.as_bytes()).map_err(|error| unfit(&error))?;
        *outgoing.uri_mut() = target.parse().map_err(|error| unfit(&error))?;
        let headers = outgoing.headers_mut();
        headers.insert(HOST, value(&self.endpoint.authority())?);
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("wellspring/", env!("CARGO_PKG_VERSION"))),
        );
        if let Some(authorization) = &self.authorization {
            let mut shown = value(&authorization.header())?;
            shown.set_sensitive(true);
            headers.insert(AUTHORIZATION, shown);
        }
        for (name, text) in request.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| unfit(&error))?;
            headers.append(name, value(text)?);
        }
        Ok(outgoing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_server::{Reply, TestServer};

    #[test]
    fn a_connection_serves_many_requests_and_a_closed_one_is_replaced() {
        let server = TestServer::start(|request, _| match request.path.as_str() {
            "/close" => Reply::json(200, "{\"a\":1}").then_hang_up(),
            _ => Reply::json(200, &format!("\"{}\"", request.body.len())),
        });
        let mut client = server.client();
        for path in ["/1", "/2", "/close", "/3"] {
            assert_eq!(client.call(&Request::get(path, &[])).unwrap().head.status, 200);
        }
        let body = vec![b'x'; 300_000];
        let post = Request { method: "POST", path: "/", headers: &[], body: Some(&body) };
        assert_eq!(client.call(&post).unwrap().body, b"\"300000\"");
        assert_eq!(server.connections(), 2);
    }

    #[test]
    fn an_address_without_a_server_is_told_how_to_start_one() {
        // A port that no program is given as a free one.
        let endpoint = Endpoint::parse("http://127.0.0.1:1").unwrap();
        let mut client = Client::new(endpoint, &Trust::default()).unwrap();
        let error = client.call(&Request::get("/", &[])).unwrap_err().to_string();
        assert!(error.contains("wellspring serve"), "{error}");
    }

    #[test]
    fn a_request_that_never_left_is_sent_again_whatever_it_is() {
        let server = TestServer::start(|_, _| Reply::json(200, "1").then_hang_up());
        let mut client = server.client();
        for _ in 0..20 {
            let post = Request { method: "POST", path: "/", headers: &[], body: Some(b"x") };
            assert_eq!(client.call(&post).unwrap().head.status, 200);
            // The server closes meanwhile; nothing says so until the client looks.
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(server.connections(), 20);
    }

    #[test]
    fn an_answer_that_comes_before_the_body_was_sent_is_read() {
        let server = TestServer::start_deaf(Reply::json(413, "{\"a\":1}"));
        let body = vec![b'x'; 64 << 20];
        let post = Request { method: "POST", path: "/", headers: &[], body: Some(&body) };
        let answer = server.client().call(&post).unwrap();
        assert_eq!((answer.head.status, &answer.body[..]), (413, &b"{\"a\":1}"[..]));
    }

    #[test]
    fn a_server_that_falls_silent_is_not_waited_for() {
        for silent in ["", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"] {
            let server = TestServer::start(move |_, _| Reply::raw(silent));
            let mut client = server.client().with_patience(Duration::from_millis(50));
            let error = client.call(&Request::get("/", &[])).unwrap_err().to_string();
            assert!(error.contains("in time"), "{silent:?}: {error}");
        }
    }

    #[test]
    fn a_cut_answer_is_an_error() {
        let server = TestServer::start(|_, _| {
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").then_hang_up()
        });
        assert!(server.client().call(&Request::get("/", &[])).is_err());
    }
}
