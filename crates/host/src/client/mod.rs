//! A small blocking HTTP/1.1 client over one kept-alive connection: all that the tools, the keys of
//! a foreign issuer and the export of figures need, at no cost in dependencies.

pub mod authorization;
pub mod endpoint;
pub mod message;
#[cfg(any(test, feature = "testing"))]
pub mod test_server;
mod transport;
pub mod trust;

use authorization::Authorization;
use endpoint::Endpoint;
use message::{Body, Head, MessageError, read_head};
use std::fmt;
use std::io::{self, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use transport::{Tls, Transport, is_of_tls};
use trust::{Terms, Trust};
use zeroize::Zeroizing;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
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
        error: io::Error,
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

/// A streamed body.
pub type Stream = Body<BufReader<Transport>>;

/// One client, one connection.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    tls: Option<Terms>,
    idle: Option<BufReader<Transport>>,
    patience: Duration,
    /// Shown with every request.
    authorization: Option<Authorization>,
}

impl Client {
    /// A client; connects at its first request.
    ///
    /// # Errors
    /// What is wrong with the terms: TLS cannot be spoken with this server under these terms.
    pub fn new(endpoint: Endpoint, trust: &Trust) -> Result<Client, String> {
        let tls = trust.terms(&endpoint)?;
        Ok(Client { endpoint, tls, idle: None, patience: READ_TIMEOUT, authorization: None })
    }

    /// Shows this with every request.
    pub fn with_authorization(self, authorization: Option<Authorization>) -> Client {
        Client { authorization, ..self }
    }

    /// Waits at most so long for the next bytes of an answer, on connections made from now on.
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
        if head.keep_alive {
            self.idle = Some(body.into_source());
        }
        Ok(Answer { head, body: bytes })
    }

    /// Sends a request and hands over the body as it comes, on a connection of its own.
    ///
    /// # Errors
    /// [`ClientError`], also later while the body is read.
    pub fn open(&mut self, request: &Request<'_>) -> Result<(Head, Stream), ClientError> {
        if let Some(connection) = self.idle.take() {
            // A server may close an idle connection at any time; only this case is
            // tried again here, everything else is the caller's decision.
            match self.exchange(connection, request) {
                Err(ClientError::Message(MessageError::Gone | MessageError::Io(_)))
                    if request.is_repeatable() => {}
                done => return done,
            }
        }
        let connection = BufReader::with_capacity(64 << 10, self.connect()?);
        self.exchange(connection, request)
    }

    fn connect(&self) -> Result<Transport, ClientError> {
        let socket = self.reach()?;
        let Some(terms) = &self.tls else { return Ok(Transport::Plain(socket)) };
        let address = self.endpoint.authority();
        match Tls::begin(terms, socket) {
            Ok(tls) => Ok(Transport::Tls(Box::new(tls))),
            Err(error) if is_of_tls(&error) => Err(ClientError::Tls { address, error }),
            Err(error) => Err(ClientError::Connect { address, error }),
        }
    }

    fn reach(&self) -> Result<TcpStream, ClientError> {
        let address = self.endpoint.authority();
        let failed = |error| ClientError::Connect { address: address.clone(), error };
        let found = (self.endpoint.host.as_str(), self.endpoint.port).to_socket_addrs();
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for socket in found.map_err(failed)? {
            match TcpStream::connect_timeout(&socket, CONNECT_TIMEOUT) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(self.patience))?;
                    stream.set_write_timeout(Some(self.patience))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(failed(last))
    }

    fn exchange(
        &self,
        mut connection: BufReader<Transport>,
        request: &Request<'_>,
    ) -> Result<(Head, Stream), ClientError> {
        let written = self.write(connection.get_mut(), request);
        // A server that refuses early answers before it has read the body; its
        // answer says more than our failed write.
        let head = match (read_head(&mut connection), written) {
            (Ok(head), _) => head,
            (Err(_), Err(error)) => return Err(error.into()),
            (Err(error), Ok(())) => return Err(error.into()),
        };
        let body = Body::new(&head, connection)?;
        Ok((head, body))
    }

    fn write(&self, stream: &mut Transport, request: &Request<'_>) -> io::Result<()> {
        // Room for all of it, so that it does not move and leave a copy of what is secret.
        let mut head = Zeroizing::new(String::with_capacity(16 << 10));
        let first = format!(
            "{} {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: wellspring/{}\r\n",
            request.method,
            self.endpoint.prefix,
            request.path,
            self.endpoint.authority(),
            env!("CARGO_PKG_VERSION"),
        );
        head.push_str(&first);
        if let Some(authorization) = &self.authorization {
            head.push_str("Authorization: ");
            head.push_str(&authorization.header());
            head.push_str("\r\n");
        }
        for (name, value) in request.headers {
            debug_assert!(!value.contains(['\r', '\n']));
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = request.body {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes())?;
        stream.write_all(request.body.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::test_server::{Reply, TestServer};

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
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let endpoint = Endpoint::parse(&format!("http://{free}")).unwrap();
        let mut client = Client::new(endpoint, &Trust::default()).unwrap();
        let error = client.call(&Request::get("/", &[])).unwrap_err().to_string();
        assert!(error.contains("wellspring serve"), "{error}");
    }

    #[test]
    fn a_cut_answer_is_an_error() {
        let server = TestServer::start(|_, _| {
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").then_hang_up()
        });
        assert!(server.client().call(&Request::get("/", &[])).is_err());
    }
}
